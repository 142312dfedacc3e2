"""What ``custom_jvp`` and ``custom_vjp`` share: a primitive that is bound together with Python functions, its rule.

Each trace takes what it needs: evaluation runs the function, a JVP trace runs the rule, a batch trace
vectorises both, a jaxpr trace writes an equation that keeps both.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import cast

from catena.core import dtypes
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.jaxpr import Eqn, Var, jaxpr_as_fun
from catena.core.pickling import global_name
from catena.core.primitive import NoRule, Primitive
from catena.core.ref import Ref
from catena.core.source import function_name, user_source
from catena.core.staging import DebugInfo, JaxprTracer, trace_to_closed_jaxpr
from catena.core.trace import VALUES, leaf_value
from catena.core.tree import tree_leaves, tree_map
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform import interpreted
from catena.transform.arguments import resolve_argnums, signature_of
from catena.transform.discharge import State, discharged, put_back, values_of
from catena.transform.functions import check_callable

BY_TRACE = NoRule("the trace takes the function and its rule apart instead")


def _abstract(*avals, call_jaxpr, **params):
    return call_jaxpr.out_avals


def _lower(b, *operands, call_jaxpr, **params):
    return b.call(call_jaxpr, operands)


class CustomCall(Primitive):
    """A call of a function together with its derivative rule; ``rule_names`` are the parameters that hold the rule."""

    __slots__ = ("rule_names",)

    def __init__(self, name: str, rule_names: tuple):
        super().__init__(
            name,
            multiple_results=True,
            takes_tokens=True,
            effects=lambda avals, params: params["call_jaxpr"].effects,
            abstract=_abstract,
            evaluate=BY_TRACE,
            jvp=BY_TRACE,
            transpose=BY_TRACE,
            batch=BY_TRACE,
            lower=_lower,
        )
        self.rule_names = rule_names
        self.discharge = self.discharge_call
        interpreted.calls[self] = interpreted.call_of("call_jaxpr")

    def bind_functions(self, functions: tuple, args, params: dict) -> list:
        """Call the first function, whose rule the others are, under the current trace."""
        trace = context.trace
        return functions[0](*args) if trace is None else trace.process_custom(self, functions, args, params)

    def bind(self, *args, call_jaxpr=None, subfuns=(), num_consts: int = 0, **params):
        """Call the function of a traced equation again; or the first of ``subfuns``, whose rule the others are, as
        users' traces hand a call on.
        """
        if subfuns:
            known = {"name": subfuns[0].__name__, "symbolic_zeros": params["symbolic_zeros"]}
            return self.bind_functions(tuple(f.call_wrapped for f in subfuns), args, known)
        rule = [params.pop(name) for name in self.rule_names]
        return self.bind_functions((jaxpr_as_fun(call_jaxpr), *rule), args, params)

    def discharge_call(self, *operands, call_jaxpr, **params) -> list:
        """The call on values. A rule that takes references cannot take values: who differentiates is told so."""
        inner, written = discharged(call_jaxpr)
        if any(type(x) is State for x in operands):
            params |= dict.fromkeys(self.rule_names, functools.partial(refuse_rule, params["name"]))
        outs = self.bind(*values_of(operands), call_jaxpr=inner, **params)
        return put_back(operands, written, outs)

    def jvp_of_functions(self, functions: tuple, primals, tangents, params: dict) -> tuple[list, list]:
        """The results and their tangents, by the rule; not all tangents are zero."""
        raise NotImplementedError

    def batch_of_functions(self, functions: tuple, trace, dims: tuple, outputs) -> tuple:
        """The functions over the mapped axes ``dims`` of the arguments; ``outputs`` notes which results are mapped."""
        raise NotImplementedError

    def stage(self, trace, functions: tuple, args, params: dict) -> list:
        """Write the call as an equation of the jaxpr that ``trace`` is writing."""
        fun, *rules = functions
        closed, outer = trace_to_closed_jaxpr(fun, [get_aval(x) for x in args], DebugInfo(self.name, params["name"]))
        rule = dict(zip(self.rule_names, rules, strict=True))
        if outer:
            rule = {k: SKIP[k](f, len(outer)) for k, f in rule.items()}
        atoms = [x._var if type(x) is JaxprTracer and x._trace is trace else trace.constant(x) for x in (*outer, *args)]
        outvars = [Var(a) for a in closed.out_avals]
        source = context.source or user_source(context.name_stack, context.surroundings)
        all_params = {**params, **rule, "call_jaxpr": closed}
        trace.eqns.append(Eqn(atoms, outvars, self, all_params, closed.effects, source))
        trace.effects |= closed.effects
        return [JaxprTracer(trace, v.aval, v, source) for v in outvars]


def refuse_rule(name: str, *args):
    """The rule of a call with references where they have become values."""
    raise NotImplementedError(
        f"the custom derivative function {name} takes a reference, so the jitted function, loop or branch that calls "
        "it cannot be differentiated as a whole: differentiate inside it, jit(grad(f)) instead of grad(jit(f))"
    )


class SkipConstants:
    """A rule of a call with ``count`` closed-over values in front, which are constants to the derivative."""

    __slots__ = ("rule", "count", "__dict__")

    def __init__(self, rule: Callable, count: int):
        self.rule, self.count = rule, count
        functools.update_wrapper(cast(Callable, self), rule, assigned=("__name__",), updated=())

    def __reduce__(self):
        return type(self), (self.rule, self.count)


class SkipInJVP(SkipConstants):
    """The JVP rule of such a call: the constants stand in front of the primals and of the tangents."""

    def __call__(self, *primals_and_tangents):
        half = len(primals_and_tangents) // 2
        return self.rule(*primals_and_tangents[self.count : half], *primals_and_tangents[half + self.count :])


class SkipInForward(SkipConstants):
    """The forward rule of such a call."""

    def __call__(self, perturbed, *args):
        return self.rule(perturbed[self.count :], *args[self.count :])


class SkipInBackward(SkipConstants):
    """The backward rule of such a call: the constants have no cotangents."""

    def __call__(self, residual_tree, *residuals_and_cts):
        return [None] * self.count + self.rule(residual_tree, *residuals_and_cts)


SKIP = {"jvp": SkipInJVP, "fwd": SkipInForward, "bwd": SkipInBackward}


# ---- what the decorators share


class CustomFunction:
    """A function with a derivative rule: what ``custom_jvp`` and ``custom_vjp`` have in common."""

    def __init__(self, fun: Callable, nondiff_argnums=(), nondiff_argnames=()):
        check_callable(fun)
        functools.update_wrapper(cast(Callable, self), fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.symbolic_zeros = False

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        return f"<{type(self).__name__} function {function_name(self.fun)}>"

    def __reduce__(self):
        return global_name(self) or (_rebuild, (type(self), vars(self)))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _rebuild(kind, attributes: dict):
    custom = object.__new__(kind)
    vars(custom).update(attributes)
    return custom


# ---- arguments of custom functions


def check_leaf(x):
    """Raise TypeError where a leaf is no value of the language, nor a Python or NumPy value that stands for one."""
    if not isinstance(x, (*VALUES, Ref)) and not dtypes.is_scalar_or_numpy(x):
        raise TypeError(f"Value {x!r} of type {type(x)} is not a valid JAX type.{how_to_register(x)}")


def nondiff_positions(fun: Callable, argnums, argnames) -> tuple:
    """The positions of the arguments that are not differentiated."""
    signature = signature_of(fun)
    by_name, _ = resolve_argnums(signature, None, argnames or None, "nondiff")
    by_position, _ = resolve_argnums(signature, argnums or None, None, "nondiff")
    return tuple(sorted({*by_name, *by_position}))


def positional(custom, args, kwargs) -> tuple:
    """The arguments of a custom function as positional ones, defaults filled in; keywords with defaults keep these."""
    given = _by_code(custom.fun, args, kwargs)
    if given is not None:
        return given
    signature = signature_of(custom.fun)
    try:
        if signature is None and not kwargs:
            return args
        if signature is None:
            raise TypeError("the function has no signature that Python can read")
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()  # before one asks for positions: a default may stand between two that are given by name
        without_position = [name for name in bound.kwargs if name in kwargs]
        if without_position:
            raise TypeError(
                f"The following keyword arguments could not be resolved to positions: {', '.join(without_position)}"
            )
    except TypeError as error:
        raise TypeError(
            f"The input arguments to the {type(custom).__name__}-decorated function {function_name(custom.fun)} could "
            f"not be resolved to positional-only arguments. Binding failed with the error:\n{error}"
        ) from None
    return bound.args


def _by_code(fun: Callable, args, kwargs) -> tuple | None:
    """``positional`` for a plain function all of whose parameters have positions; None where there is more to say, or
    something wrong. To read a signature and bind it takes 30 us.
    """
    if hasattr(fun, "__wrapped__"):
        fun = inspect.unwrap(fun, stop=lambda f: hasattr(f, "__signature__"))
    if type(fun) is not types.FunctionType or fun.__dict__:  # which may say that the signature is another's
        return None
    code, defaults = fun.__code__, fun.__defaults__ or ()
    count, found = code.co_argcount, list(args)
    more = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if more or len(args) > count:
        return None
    first_default, named = count - len(defaults), 0
    for i in range(len(args), count):
        name = code.co_varnames[i]
        if name in kwargs and i >= code.co_posonlyargcount:
            found.append(kwargs[name])
            named += 1
        elif i >= first_default:
            found.append(defaults[i - first_default])
        else:
            return None
    return tuple(found) if named == len(kwargs) else None


def call_eagerly(fun: Callable, args, leaves):
    """Call a function where nothing is transformed: what its rule says does not matter."""
    for x in leaves:
        check_leaf(x)
    out = fun(*args)
    for x in tree_leaves(out):
        check_leaf(x)
    return out


def without_nondiff(fun: Callable, nondiff_argnums, args):
    """The arguments that are not differentiated, the others, and the function of the others."""
    nums = [i % len(args) for i in nondiff_argnums]
    if not nums:
        return [], args, fun

    def call(*diff):
        rest = iter(diff)
        return fun(*[args[i] if i in nums else next(rest) for i in range(len(args))])

    return [args[i] for i in nums], tuple(x for i, x in enumerate(args) if i not in nums), call


class SymbolicZero:
    """A zero tangent or cotangent as a rule with ``symbolic_zeros`` sees it; it has the ``aval`` of the value."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(val) -> SymbolicZero:
        """The zero tangent of a value.

        >>> from catena.custom_derivatives import SymbolicZero
        >>> SymbolicZero.from_primal_value(1.0).dtype
        dtype('float32')
        """
        return SymbolicZero(get_aval(leaf_value(val)).to_tangent_aval())

    def __repr__(self):
        return f"SymbolicZero({self.aval.str_short()})"


def symbolic(tangent):
    """A tangent as rules see it."""
    return SymbolicZero(tangent.aval) if type(tangent) is Zero else tangent


def zero_from_primal(val, symbolic_zeros: bool = False):
    """The zero tangents of values.

    Arguments:
      val: a tree of arrays and scalars.
      symbolic_zeros: whether they are ``SymbolicZero``s instead of arrays.
    Returns:
      A tree of zeros of the types of tangents of ``val``: for integers and booleans of dtype float0.
    Raises:
      TypeError: a leaf of ``val`` is not an array or scalar.

    >>> from catena.custom_derivatives import zero_from_primal
    >>> zero_from_primal((2.0, None))
    (Array(0., dtype=float32, weak_type=True), None)
    """
    zeros = tree_map(SymbolicZero.from_primal_value, val)
    return zeros if symbolic_zeros else tree_map(lambda zero: instantiate(Zero(zero.aval)), zeros)
