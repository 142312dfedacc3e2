"""Primitives: the words of the language, each with all its rules in one place.

A primitive is a name and a row of rules; the row is filled where the primitive is defined (in ``lax`` or
``transform``), so that a reader finds its whole meaning on one page. Which rules there are, transformations say: each
makes a ``RuleTable`` in its own file, and so may a user's. Those of the system:

``abstract(*avals, **params) -> aval(s)``
    the types of the results, and every error a user can cause.
``evaluate(*values, **params) -> value(s)``
    the result for concrete NumPy values. It must not bind primitives, unless ``takes_arrays`` is set: then it
    is given Arrays and returns Arrays (higher-order primitives do so).
``jvp(primals, tangents, **params) -> (primals_out, tangents_out)``
    forward differentiation; a tangent may be a symbolic ``Zero``.
``transpose(cotangents, *args, **params) -> list of cotangents``
    for primitives linear in the arguments that arrive as ``UndefinedPrimal``; one entry an argument, ``None``
    for the others.
``batch(axis, args, dims, **params) -> (out(s), dim(s))``
    vectorisation; ``dims`` holds each argument's mapped axis, or ``None``.
``lower(builder, *operands, **params) -> value(s)``
    translation to the compiler's graph.

And only for primitives that call functions:

``partial_eval(trace, args, **params)``
    how to split into what is known now and what is linear in unknowns.
``prune(eqn, used) -> eqn``
    an equation with no results but those used (and others that it cannot do without).
``save(eqn, unknown, saving) -> SavedEquation or None``
    the equation with what a checkpoint policy saves inside as further results, and with it as further operands (see
    ``transform.saving``).

Arrays are positional arguments of ``bind``, static parameters are keywords.
"""

import sys
from collections.abc import Callable, Iterator, MutableMapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from catena.core.array import as_array
from catena.core.aval import AbstractToken, ShapedArray
from catena.core.context import context, set_trace
from catena.core.effects import GenericEffect
from catena.core.evaluate import abstract_eval, concrete, evaluate, evaluated_by, is_defined, varying_axes
from catena.core.jaxpr import subjaxprs
from catena.core.lazy import load
from catena.core.trace import eval_trace, in_force, leaf_value
from catena.core.usual import USUAL, without_usual

registry: dict[str, "Primitive"] = {}
tables: dict[str, "RuleTable"] = {}
unclaimed: dict[str, "Primitive"] = {}  # by a rule's name that no table has (yet): the last primitive that has it


class NoRule:
    """The stated reason why a primitive lacks a rule; asking for the rule raises it as an error."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason = reason

    def __bool__(self):
        return False

    def __repr__(self):
        return f"NoRule({self.reason!r})"


def no_effects(avals, params) -> frozenset:
    return frozenset()


def no_axis_names(params) -> tuple:
    return ()


def module_in_the_making() -> str | None:
    """The module whose import is under way, in which primitives are made."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_globals.get("__name__") if frame is not None else None


class Operation:
    """A named operation, and what is asked of all of them: the language's own (``Primitive``), and those of users,
    which are made by this class (``catena.extend.core.Primitive``) and get one rule after the other.

    ``def_abstract_eval`` gives it types, ``def_impl`` values; ``catena.interpreters.ad`` and ``batching`` say how it is
    differentiated and vectorised, and ``mlir.register_lowering`` with ``mlir.lower_fun`` what it compiles to.

    Arguments:
      name: how it prints in jaxprs.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.extend.core import Primitive
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> twice_p.bind(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    if TYPE_CHECKING:
        abstract: Any
        evaluate: Any

        def __getattr__(self, table: str) -> Any: ...

    multiple_results = False
    call_primitive = False  # whether the first argument of `bind` is a function
    ref_primitive = False  # whether it works on references
    ref_allocating = False  # whether it makes one
    own = False  # whether its name says in every process what it computes: not so for those of users
    interpreted = False  # whether a function of the user's evaluates it, which native programs know nothing of
    takes_arrays = takes_tokens = True  # the others of the attributes are explained in ``Primitive``
    takes_references = places_results = False
    effects = staticmethod(no_effects)
    axis_names = staticmethod(no_axis_names)
    usual: dict[str, Any] = {}  # parameters that equations leave out, by what they then are: see `core/usual.py`

    def __init__(self, name: str):
        self.name = name
        for kind in tables:
            setattr(self, kind, None)  # in one order, so that reading an attribute is fast
        self.abstract, self.evaluate = without_rule(self, "abstract"), without_rule(self, "evaluate")
        self._take_methods()

    def _take_methods(self) -> None:
        """Classes of users may say what their primitives are by methods, in place of ``def_impl`` and its kin."""
        if type(self).abstract_eval is not Operation.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)
        if type(self).impl is not Operation.impl:
            self._evaluate_by(self.impl)

    def bind(self, *args, **params) -> Any:
        """Apply the primitive under the current trace; evaluation comes first and is one call."""
        trace = context.trace
        if trace is None:
            return evaluate(self, args, params)
        if params and self.usual:
            params = without_usual(self, params)
        if context.typed_axes and self.varying is None:
            args = varying_alike(args)
        return trace.process(self, args, params)

    def bind_with_trace(self, trace, args, avals, params, /):
        """Apply the primitive under a given trace.

        Arguments:
          trace: the trace, or None for evaluation.
          args: the operands.
          avals: their types, which they also know themselves.
          params: the parameters.
        """
        if len(args) != len(avals):
            raise ValueError(f"{self} is applied to {len(args)} operands, but {len(avals)} types are given")
        with set_trace(in_force(trace)):
            return self.bind(*args, **params)

    def def_bind_with_trace(self, bind_with_trace: Callable) -> Callable:
        """Let ``bind_with_trace(trace, args, avals, params)`` say what ``bind`` does. It is called with no trace in
        force; ``trace`` is the one that was.
        """

        def bind(*args, **params):
            trace = eval_trace if context.trace is None else context.trace
            values = [leaf_value(x) for x in args]
            with set_trace(None):
                return bind_with_trace(trace, values, [x.aval for x in values], params)

        self.bind, self.bind_with_trace = bind, bind_with_trace  # type: ignore[method-assign]
        return bind_with_trace

    def abstract_eval(self, *args, **kwargs) -> tuple:
        """The type of the result, or of several, and the set of effects, from those of operands and the parameters."""
        return self.abstract(*args, **kwargs), self.effects(args, kwargs)

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Let a function give the type of the result, or several, from those of the arguments and the parameters."""
        self.abstract = lambda *avals, **params: checked_types(self, abstract_eval(*avals, **params))
        self.effects = no_effects
        return abstract_eval

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Callable) -> Callable:
        """Let a function give the type of the result, or several, and the set of effects of the application.

        An equation with effects stays in its jaxpr whether its results are read or not.

        >>> import catena as jax
        >>> from catena.extend.core import Effect, Primitive
        >>> class Noise(Effect):
        ...     pass
        >>> beep_p = Primitive("beep")
        >>> _ = beep_p.def_effectful_abstract_eval(lambda x: (x, {Noise()}))
        >>> jax.make_jaxpr(lambda x: (beep_p.bind(x), x + 1)[1])(1.0).effects
        frozenset({Noise})
        """
        rule = effectful_abstract_eval
        self.def_abstract_eval(lambda *avals, **params: rule(*avals, **params)[0])
        self.effects = lambda avals, params: frozenset(rule(*avals, **params)[1])
        return rule

    def def_effectful_abstract_eval2(self, abstract_eval: Callable) -> Callable:
        """``def_abstract_eval`` of a primitive with an effect that has no other name than the primitive."""
        self.def_abstract_eval(abstract_eval)
        self.effects = lambda avals, params: frozenset([GenericEffect(self)])
        return abstract_eval

    def get_bind_params(self, params: dict) -> dict:
        """What ``bind`` is given by name, besides the operands, to apply an equation's primitive again."""
        return params

    def is_high(self, *avals, **params) -> bool:
        """Whether it works on objects of the user's own type: there are none."""
        return False

    skip_canonicalization = False  # operands are made values of the language whenever it is applied

    def is_effectful(self, params: dict) -> bool:
        """Whether jaxprs among the parameters have effects."""
        return any(jaxpr.effects for jaxpr in subjaxprs(params))

    def to_lojax(self, *lotypes_wrapped_in_hitypes, **params):
        """The application on what objects of the user's own type are made of: of others, the application itself."""
        return self.bind(*lotypes_wrapped_in_hitypes, **params)

    def rule(self, kind: str):
        """The rule of this kind; a missing one raises a clear error with the stated reason."""
        return tables[kind].of(self)

    @property
    def impl(self):
        """The function that evaluates the primitive, from arrays and parameters to an array, or several; another one
        may be set, and what was read before be set again.
        """
        return Implementation(self, self.evaluate, self.takes_arrays, self.interpreted)

    @impl.setter
    def impl(self, function):
        self._evaluate_by(function)

    def _evaluate_by(self, function: Callable) -> None:
        if isinstance(function, Implementation) and function.primitive is self:
            self.evaluate, self.takes_arrays = function.rule, function.takes_arrays
            self.interpreted = function.interpreted
        else:
            self.evaluate, self.takes_arrays, self.interpreted = with_values(self, function), True, True

    def def_impl(self, impl):
        """Let ``impl`` evaluate the primitive: from arrays and the parameters to an array, or several."""
        self.impl = impl
        if type(self).impl is not Operation.impl:  # a method, which that hides
            self._evaluate_by(impl)
        return impl

    def __repr__(self):
        return self.name

    def __reduce__(self):
        raise TypeError(f"the primitive {self.name} cannot be pickled: another process would not know its rules")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Primitive(Operation):
    """An operation of the language, with its rules.

    Arguments:
      name: how it prints in jaxprs; registered names are unique.
      multiple_results: whether it returns a list of results instead of one.
      takes_arrays: whether ``evaluate`` works on Arrays instead of NumPy values.
      takes_tokens: whether operands may be tokens instead of arrays; those that call jaxprs take references as well.
      takes_references: whether operands may be references.
      places_results: whether ``evaluate`` itself puts its results on the devices that they belong to.
      effects: from the operands' types and the parameters to the set of effects of one application.
      axis_names: from the parameters to the named axes that the primitive reads.
      rules: the rules by the names of their tables, as described at the head of this module.
    """

    own = True

    def __init__(self, name: str, *, home: str | None = None, **meaning):
        super().__init__(name)
        self.abstract = self.evaluate = None
        self.usual = USUAL.get(name, self.usual)
        self.home = home or module_in_the_making()  # it is loaded at the first use of what is only declared elsewhere
        self.define(**meaning)
        registry[name] = self

    def define(
        self,
        *,
        multiple_results: bool = False,
        takes_arrays: bool = False,
        takes_tokens: bool = False,
        takes_references: bool = False,
        places_results: bool = False,
        effects=no_effects,
        axis_names=no_axis_names,
        **rules,
    ) -> "Primitive":
        """Say what a primitive means that was only declared; the arguments are those of ``Primitive``."""
        self.multiple_results = multiple_results
        self.takes_arrays = takes_arrays
        self.takes_tokens = takes_tokens
        self.takes_references = takes_references
        self.places_results = places_results
        self.effects = effects
        self.axis_names = axis_names
        for kind, rule in rules.items():
            if kind not in tables:
                check_is_free(kind)
                unclaimed[kind] = self
            setattr(self, kind, rule)
        return self

    def __reduce__(self):
        return find, (self.name, self.home)


class StatePrimitive(Primitive):
    """A primitive that makes a reference, or writes to one.

    Every transformation has a part in it, whatever the operands (``Trace.process_state``).
    """

    def bind(self, *args, **params) -> Any:
        """Apply the primitive under the current trace."""
        trace = context.trace
        if trace is None:
            return evaluate(self, args, params)
        if context.typed_axes and self.varying is None:
            args = varying_alike(args)
        return trace.process_state(self, args, params)


class Implementation:
    """How a primitive is evaluated, at the time that somebody asked, as a function of arrays."""

    __slots__ = ("primitive", "rule", "takes_arrays", "interpreted")

    def __init__(self, primitive: Primitive, rule, takes_arrays: bool, interpreted: bool):
        self.primitive, self.rule, self.takes_arrays, self.interpreted = primitive, rule, takes_arrays, interpreted

    def __call__(self, *args, **params):
        if self.takes_arrays:
            return self.rule(*args, **params)
        arrays = [concrete(x, self.primitive) for x in args]
        out_aval = abstract_eval(self.primitive, tuple([x.aval for x in arrays]), params)
        return evaluated_by(self.rule, [x._value for x in arrays], params, out_aval, self.primitive.multiple_results)

    def __repr__(self):
        return f"<implementation of {self.primitive}>"


def with_values(primitive: Operation, function):
    """``function``, with what it returns made values of the language."""

    def evaluate(*args, **params):
        out = function(*args, **params)
        return [as_value(x) for x in out] if primitive.multiple_results else as_value(out)

    return evaluate


def without_rule(primitive: Operation, kind: str) -> Callable:
    """The rule of a primitive that was given none of this kind: it says so."""

    def refuse(*args, **params):
        raise NotImplementedError(tables[kind].missing.format(primitive.name))

    return refuse


def checked_types(primitive: Operation, out):
    """What a user's rule gave as the type of the result, or of several; an error where it is not that."""
    several = isinstance(out, (tuple, list))
    if several != primitive.multiple_results:
        raise ValueError(
            f"{primitive}.abstract_eval() method should return a tuple or a list iff {primitive}.multiple_results."
        )
    for aval in out if several else (out,):
        if not isinstance(aval, (ShapedArray, AbstractToken)):
            raise TypeError(f"the abstract evaluation of {primitive} must give types such as ShapedArray, got {aval!r}")
    return out


def as_value(x):
    """What a user's function returned, as a value of the language."""
    return x if hasattr(x, "_trace") else as_array(x)


def define(primitive: str | Primitive, **meaning) -> Primitive:
    """A primitive with its meaning: a new one of this name, or one declared before (see ``structural.py``)."""
    return primitive.define(**meaning) if isinstance(primitive, Primitive) else Primitive(primitive, **meaning)


class RuleTable(MutableMapping):
    """The rules of one transformation, by primitive.

    A rule stands on its primitive, as the attribute of the table's name, and ``Primitive(...)`` takes it by that name;
    where there is none, the attribute is ``None``. So a primitive has all its rules on one page, whoever made the
    tables, and a transformation reads ``primitive.name or table.of(primitive)``.

    Arguments:
      name: an identifier that is no attribute of primitives yet.
      missing: what the error says where there is no rule, with ``{}`` for the primitive.
      optional: whether primitives may do without, without saying why.
    Raises:
      ValueError: the name is taken.

    >>> from catena.lax import neg_p
    >>> cost_rules = RuleTable("cost", "nobody knows what '{}' costs")
    >>> cost_rules[neg_p] = lambda x: x.size
    >>> cost_rules.of(neg_p) is neg_p.cost
    True
    >>> cost_rules.remove()
    """

    def __init__(self, name: str, missing: str = "", *, optional: bool = False):
        if name not in unclaimed:
            check_is_free(name)
        self.name, self.missing, self.optional = name, missing or f"No {name} rule for '{{}}'", optional
        tables[name] = self
        setattr(Operation, name, None)
        unclaimed.pop(name, None)

    def of(self, primitive: Operation) -> Callable:
        """The rule of a primitive.

        Raises:
          NotImplementedError: it has none, with the reason where one is stated.
        """
        rule = getattr(primitive, self.name)
        if rule:
            return rule
        if rule is None and primitive.abstract is None and is_defined(primitive):
            return self.of(primitive)
        reason = f": {rule.reason}" if rule is not None else ""
        raise NotImplementedError(self.missing.format(primitive.name) + reason)

    def remove(self) -> None:
        """Forget the table and its rules."""
        for primitive in list(registry.values()):
            vars(primitive).pop(self.name, None)
        delattr(Operation, self.name)
        del tables[self.name]

    def __getitem__(self, primitive: Primitive) -> Callable:
        rule = getattr(primitive, self.name)
        if not rule:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Callable):
        setattr(primitive, self.name, rule)

    def __delitem__(self, primitive: Primitive):
        setattr(primitive, self.name, None)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in registry.values() if getattr(p, self.name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def check_is_free(name: str):
    """Raise where a rule cannot have this name."""
    if not name.isidentifier() or hasattr(Operation, name) or name in tables:
        raise ValueError(f"a table of rules cannot be called {name!r}: that is an attribute of primitives already")


# What a primitive means; the compiler's too, whose modules are only loaded where something is compiled.
abstract_rules = RuleTable("abstract", "Abstract evaluation for '{}' not implemented")
evaluate_rules = RuleTable("evaluate", "Evaluation rule for '{}' not implemented")
lower_rules = RuleTable(
    "lower", "MLIR translation rule for primitive '{}' not found for platform cpu (mlir.lower_fun makes one)"
)
# How it may be computed in parts (``core/factors.py``); the table is ``parallel/rules.py``, loaded where it is needed.
sharding_rules = RuleTable("sharding", "there is no rule for '{}' on arrays that are split", optional=True)

# What becomes of operands that are sums still to be taken (``core/terms.py``); they stand in the same table.
terms_rules = RuleTable("terms", optional=True)

# In a `shard_map`, where types say over which axes of the mesh values vary: from the operands' axes, a set each, and
# the parameters to the set of the result's, or sets of the results'. Those without a rule are handed operands that vary
# over the same axes, and so do their results.
varying_rules = RuleTable("varying", optional=True)

pvary_p = Primitive("pvary", home="catena.lax.varying")  # the same on all devices, now each device's own


pcast_p = Primitive("pcast", home="catena.lax.varying")  # what types say of it, changed: see `core/terms.py`


def as_bodies_say(operands, /, **params) -> None:
    """The ``varying`` rule of primitives whose results are those of jaxprs, whose types say it."""


def varying_alike(args) -> tuple:
    """The operands, all varying over the axes over which any of them does."""
    axes = [varying_axes(x.aval if hasattr(x, "aval") else None) for x in args]
    union = frozenset().union(*axes)
    if all(a == union for a in axes):
        return args
    return tuple([x if a == union else made_varying(x, union - a) for x, a in zip(args, axes, strict=True)])


def made_varying(x, axes: frozenset):
    """``x``, which is the same along these axes, as a value that varies over them."""
    aval = getattr(x, "aval", None)
    if aval is not None and not hasattr(aval, "manual_axis_type"):  # a token, or a reference, which stays what it is
        return x
    reduced = axes & aval.manual_axis_type.reduced if context.has_terms and aval is not None else None
    if reduced:
        x, axes = pcast_p.bind(x, axes=in_order(reduced), of="reduced", to="varying"), axes - reduced
    return pvary_p.bind(x, axes=in_order(axes)) if axes else x


def in_order(axes) -> tuple:
    """Names of axes as they stand in the mesh in force."""
    mesh = context.abstract_mesh.axis_names if context.abstract_mesh is not None else ()
    return tuple([*(n for n in mesh if n in axes), *(n for n in axes if n not in mesh)])


def find(name: str, home: str | None = None) -> Primitive:
    """The registered primitive of this name, as pickles name it; ``home``: the module that makes it."""
    if name not in registry and home is not None:
        load(home)
    return registry[name]
