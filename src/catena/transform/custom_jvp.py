"""``custom_jvp``: a function whose forward derivative is given by a rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from catena.core import dtypes
from catena.core.context import context
from catena.core.ref import for_users
from catena.core.source import function_name, function_place
from catena.core.staging import JaxprTracer
from catena.core.structural import stop_gradient_p
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform.batch import Vectorised, VectorisedJVP
from catena.transform.custom_call import (
    CustomCall,
    CustomFunction,
    SymbolicZero,
    call_eagerly,
    positional,
    symbolic,
    without_nondiff,
)
from catena.transform.functions import flatten_function

P = ParamSpec("P")
R = TypeVar("R")


class CustomJVPCall(CustomCall):
    """The call of a function together with its forward derivative."""

    __slots__ = ()

    def batch_of_functions(self, functions, trace, dims, outputs):
        fun, jvp = functions
        rule = VectorisedJVP(jvp, trace, dims, outputs)
        return Vectorised(fun, trace, dims, outputs, rule), rule

    def jvp_of_functions(self, functions, primals, tangents, params):
        if not params["symbolic_zeros"]:
            tangents = [instantiate(t) for t in tangents]
        outs = functions[1](*primals, *tangents)
        half = len(outs) // 2
        return outs[:half], outs[half:]


custom_jvp_call_p = CustomJVPCall("custom_jvp_call", ("jvp",))


class JVPRule:
    """The rule of one call as a flat function of primals and tangents; ``trees`` notes the tree of the result."""

    __slots__ = ("custom", "nondiff", "tree", "trees", "__name__")

    def __init__(self, custom: custom_jvp, nondiff, tree, trees: dict):
        self.custom, self.nondiff, self.tree, self.trees = custom, nondiff, tree, trees
        self.__name__ = function_name(custom.jvp)

    def __call__(self, *primals_and_tangents):
        half = len(primals_and_tangents) // 2
        primals = tree_unflatten(self.tree, for_users(primals_and_tangents[:half]))
        tangents = tree_unflatten(self.tree, [symbolic(t) for t in primals_and_tangents[half:]])
        self.trees["out"], outs = flatten_rule_result(self.custom, self.custom.jvp(*self.nondiff, primals, tangents))
        return outs

    def __reduce__(self):
        return JVPRule, (self.custom, self.nondiff, self.tree, self.trees)


class custom_jvp(CustomFunction, Generic[P, R]):  # noqa: N801
    """A function whose forward derivative is given by a rule.

    Arguments:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated and are passed first to the rule.
      nondiff_argnames: their names, as an alternative.

    >>> import catena as jax, catena.numpy as jnp
    >>> @jax.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(primals[0]), 10.0 * tangents[0]
    >>> jax.grad(f)(0.0)
    Array(10., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule: from ``(*nondiff, primals, tangents)`` to ``(value, tangent)``.

        Arguments:
          jvp: the rule.
          symbolic_zeros: whether zero tangents arrive as ``SymbolicZero`` objects instead of arrays.
        Returns:
          ``jvp``, so that this may be used as a decorator.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set the rule argument by argument: each a function ``(tangent, value, *primals) -> tangent``, or ``None``."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            value = self(*primals)
            parts = [rule(t, value, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            zero = tree_map(lambda x: instantiate(Zero.of_primal(x)), value)
            add = lambda a, b: tree_map(lambda x, y: x + y, a, b)  # noqa: E731
            return value, functools.reduce(add, parts) if parts else zero

        self.defjvp(jvp)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {function_name(self.fun)} using defjvp. "
                f"Give it one: {function_name(self.fun)}.defjvp(rule), of {function_place(self.fun)}."
            )
        given = positional(self, args, kwargs)
        nums = {i % len(given) for i in self.nondiff_argnums}
        given = tuple([tree_map(constant, x) if i in nums else x for i, x in enumerate(given)])
        nondiff, diff, call = without_nondiff(self.fun, self.nondiff_argnums, given)
        leaves, tree = tree_flatten(diff)
        if context.trace is None:
            return call_eagerly(self.fun, given, leaves)
        leaves = [leaf_value(x) for x in leaves]
        trees: dict = {}
        flat = with_tree(flatten_function(call, tree), trees)
        rule = JVPRule(self, nondiff, tree, trees)
        params = {"name": function_name(self.fun), "symbolic_zeros": self.symbolic_zeros}
        outs = custom_jvp_call_p.bind_functions((flat, rule), leaves, params)
        return tree_unflatten(trees["out"], outs)


def constant(x):
    """A leaf of an argument that is not differentiated, without its tangent: rules run outside of the trace of it."""
    return stop_gradient_p.bind(x) if isinstance(x, Tracer) and not isinstance(x, JaxprTracer) else x


def with_tree(flat, trees: dict) -> Callable:
    """A flat function that notes the tree of its result."""

    def noting(*leaves):
        outs = [leaf_value(x) for x in flat(*leaves)]
        trees["out"] = flat.out_tree
        return outs

    return noting


def flatten_rule_result(custom: custom_jvp, pair):
    """The tree of the value, and values followed by tangents, of what a JVP rule returned; checked."""
    rule_name, fun_name = function_name(custom.jvp), function_name(custom.fun)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {fun_name} must produce a pair (list or tuple of length two) "
            f"representing primal and tangent outputs, but got {pair}."
        )
    primals, tree = tree_flatten(pair[0])
    tangents, tangent_tree = tree_flatten(pair[1])
    if tree != tangent_tree:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {fun_name} must produce primal and tangent outputs with equal "
            f"container (pytree) structures, but got {tree} and {tangent_tree} respectively."
        )
    primals = [leaf_value(x) for x in primals]
    tangents = [checked_tangent(p, t) for p, t in zip(primals, tangents, strict=True)]
    return tree, [*primals, *tangents]


def checked_tangent(primal, tangent):
    """A tangent that a rule returned, of the right type, or an error."""
    expected = get_aval(primal).to_tangent_aval()
    if isinstance(tangent, (SymbolicZero, Zero)) or getattr(tangent, "dtype", None) == dtypes.float0:
        return Zero(expected)
    tangent = leaf_value(tangent)
    got = get_aval(tangent)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. Expected "
            f"{expected.str_short()} (tangent type of {get_aval(primal).str_short()}) but got {got.str_short()}."
        )
    return tangent
