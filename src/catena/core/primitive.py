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

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from catena.core.array import as_array
from catena.core.context import context, set_trace
from catena.core.evaluate import abstract_eval, concrete, evaluate, evaluated_by

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


class Primitive:
    """A named operation of the language and its rules.

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

    if TYPE_CHECKING:

        def __getattr__(self, table: str) -> Any: ...

    def __init__(self, name: str, **meaning):
        self.name = name
        self.own = True  # its name says in every process what it computes; not so for those of users
        self.interpreted = False  # whether a function of the user's evaluates it, which native programs know nothing of
        for kind in tables:
            setattr(self, kind, None)  # in one order, so that reading an attribute is fast
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

    def bind(self, *args, **params) -> Any:
        """Apply the primitive under the current trace; evaluation comes first and is one call."""
        trace = context.trace
        if trace is None:
            return evaluate(self, args, params)
        return trace.process(self, args, params)

    call_primitive = False  # whether the first argument of `bind` is a function

    def bind_with_trace(self, trace, args, params):
        """Apply the primitive under a given trace."""
        with set_trace(trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: dict) -> tuple[list, dict]:
        """What ``bind`` is given before the operands, and the parameters, to apply an equation's primitive again."""
        return [], params

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
        if isinstance(function, Implementation) and function.primitive is self:
            self.evaluate, self.takes_arrays = function.rule, function.takes_arrays
            self.interpreted = function.interpreted
        else:
            self.evaluate, self.takes_arrays, self.interpreted = with_values(self, function), True, True

    def def_impl(self, impl):
        """Let ``impl`` evaluate the primitive: from arrays and the parameters to an array, or several."""
        self.impl = impl
        return impl

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return find, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class StatePrimitive(Primitive):
    """A primitive that makes a reference, or writes to one.

    Every transformation has a part in it, whatever the operands (``Trace.process_state``).
    """

    def bind(self, *args, **params) -> Any:
        """Apply the primitive under the current trace."""
        trace = context.trace
        if trace is None:
            return evaluate(self, args, params)
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


def with_values(primitive: Primitive, function):
    """``function``, with what it returns made values of the language."""

    def evaluate(*args, **params):
        out = function(*args, **params)
        return [as_value(x) for x in out] if primitive.multiple_results else as_value(out)

    return evaluate


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
        setattr(Primitive, name, None)
        unclaimed.pop(name, None)

    def of(self, primitive: Primitive) -> Callable:
        """The rule of a primitive.

        Raises:
          NotImplementedError: it has none, with the reason where one is stated.
        """
        rule = getattr(primitive, self.name)
        if rule:
            return rule
        reason = f": {rule.reason}" if rule is not None else ""
        raise NotImplementedError(self.missing.format(primitive.name) + reason)

    def remove(self) -> None:
        """Forget the table and its rules."""
        for primitive in list(registry.values()):
            vars(primitive).pop(self.name, None)
        delattr(Primitive, self.name)
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
    if not name.isidentifier() or hasattr(Primitive, name) or name in tables:
        raise ValueError(f"a table of rules cannot be called {name!r}: that is an attribute of primitives already")


# What a primitive means; the compiler's too, whose modules are only loaded where something is compiled.
abstract_rules = RuleTable("abstract", "Abstract evaluation for '{}' not implemented")
evaluate_rules = RuleTable("evaluate", "Evaluation rule for '{}' not implemented")
lower_rules = RuleTable(
    "lower", "MLIR translation rule for primitive '{}' not found for platform cpu (mlir.lower_fun makes one)"
)


def find(name: str) -> Primitive:
    """The registered primitive of this name."""
    return registry[name]
