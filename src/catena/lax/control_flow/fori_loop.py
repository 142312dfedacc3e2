"""``fori_loop``: a counted loop; a ``scan`` where the bounds are known, else a ``while``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_unflatten, treedef_children, treedef_tuple
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add
from catena.lax.comparison import lt_p
from catena.lax.control_flow import common
from catena.lax.control_flow.scan import bind_scan, unroll_factor
from catena.lax.control_flow.while_loop import while_p
from catena.lax.convert import convert
from catena.lax.structure import like


def fori_loop(
    lower, upper, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """``for i in range(lower, upper): val = body_fun(i, val)``. Differentiable in both modes, whatever the bounds.

    Arguments:
      lower, upper: the bounds: integer scalars of one type, known or traced.
      body_fun: ``(i, value) -> value``; the value keeps its structure, shapes and dtypes.
      init_val: the first value: a tree of arrays and scalars.
      unroll: how many iterations each step of the compiled loop does; ``True`` for all. Only with known
        bounds.
    Returns:
      The last value.
    Raises:
      TypeError: ``body_fun`` is not callable or changes the type of the value, or the bounds differ in type.
      ValueError: ``unroll`` is given and the bounds are traced.

    >>> import catena.lax as lax
    >>> lax.fori_loop(0, 4, lambda i, total: total + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    leaves, tree = common.flatten_values(init_val)
    known = known_bound(lower), known_bound(upper)
    lower, upper = check_bounds(lower, upper)
    if None in known:
        if unroll is not None:
            raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
        return dynamic_loop(lower, upper, body_fun, leaves, tree)
    if common.jit_is_disabled():
        return loop_in_python(*known, body_fun, tree_unflatten(tree, leaves))
    return counted_loop(*known, body_fun, leaves, tree, unroll)


def known_bound(x) -> int | None:
    """A bound as a Python integer where its value is known."""
    if isinstance(x, Tracer):
        return None
    if not isinstance(x, Array) and not dtypes.is_scalar_or_numpy(x):
        raise TypeError(f"fori_loop bounds must be integer scalars, got {x!r} of type {type(x)}")
    return int(x) if not np.ndim(x) else None


def check_bounds(lower, upper):
    """The bounds as values of one type."""
    lower, upper = leaf_value(lower), leaf_value(upper)
    a, b = get_aval(lower), get_aval(upper)
    for bound, aval in ((lower, a), (upper, b)):
        if aval.shape:
            raise TypeError(f"fori_loop bounds must be integer scalars, got {bound} of shape {aval.shape}")
    if a.dtype == b.dtype:
        return lower, upper
    if a.weak_type == b.weak_type or dtypes.KIND.get(a.dtype) in "fc" or dtypes.KIND.get(b.dtype) in "fc":
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{dtypes.dtype_name(a.dtype)} and {dtypes.dtype_name(b.dtype)}"
        )
    dtype = b.dtype if a.weak_type else a.dtype
    return convert(lower, dtype), convert(upper, dtype)


# ---- known bounds: a scan


def counted_step(body_fun):
    """``body_fun`` as a function of the counter and the value that returns both."""

    def step(loop_carry):
        i, value = loop_carry
        return add(i, like(i, 1)), body_fun(i, value)

    return step


def counted_loop(lower: int, upper: int, body_fun, leaves, tree, unroll):
    """The loop as a ``scan`` that carries the counter."""
    length = max(upper - lower, 0)
    counter = leaf_value(lower)
    body, avals = trace_step(body_fun, counted_step, [get_aval(counter)], leaves, tree, "scan")
    carry = [counter, *common.converted(leaves, avals)]
    last, _ = bind_scan(body, carry, [], length, False, unroll_factor(1 if unroll is None else unroll, length))
    return tree_unflatten(tree, last[1:])


def loop_in_python(lower: int, upper: int, body_fun, value):
    """The loop in Python, for when jit is disabled: ``body_fun`` sees concrete values."""
    for i in range(lower, upper):
        value = body_fun(leaf_value(i), value)
    leaves, tree = common.flatten_values(value)
    return tree_unflatten(tree, leaves)


# ---- traced bounds: a while


def bounded_step(body_fun):
    """``body_fun`` as a function of the counter, its bound and the value that returns all three."""

    def step(loop_carry):
        i, upper, value = loop_carry
        return add(i, like(i, 1)), upper, body_fun(i, value)

    return step


def below_bound(loop_carry):
    i, upper, _ = loop_carry
    return lt_p.bind(i, upper)


def dynamic_loop(lower, upper, body_fun, leaves, tree):
    """The loop as a ``while`` that carries the counter and its bound."""
    counters = [get_aval(lower), get_aval(upper)]
    body, avals = trace_step(body_fun, bounded_step, counters, leaves, tree, "while_loop")
    in_tree = treedef_tuple((treedef_tuple((common.LEAF, common.LEAF, tree)),))
    cond = common.trace_body(below_bound, in_tree, [*counters, *avals], "while_loop")
    outs = while_p.bind(
        *body.consts, lower, upper, *common.converted(leaves, avals),
        cond_jaxpr=cond.jaxpr, cond_nconsts=0, body_jaxpr=body.jaxpr, body_nconsts=len(body.consts),
    )  # fmt: skip
    return tree_unflatten(tree, outs[2:])


def trace_step(body_fun, adapt, counters: list, leaves, tree, what: str):
    """The traced step of a loop that carries ``counters`` before its value, and the types of the value."""
    carry_tree = treedef_tuple([*[common.LEAF] * len(counters), tree])
    avals = [get_aval(x) for x in leaves]
    name = common.argument_names(body_fun, (0, 0), {})[1]  # of the value, as the user calls it
    while True:
        carry = [*counters, *avals]
        body = common.trace_body(body_fun, treedef_tuple((carry_tree,)), carry, what, adapt)
        out_tree, out_avals = treedef_children(body.out_tree)[-1], body.out_avals[len(counters) :]
        common.check_same_tree(tree, out_tree, avals, out_avals, "fori_loop body", name)
        wider = common.promoted(avals, out_avals)
        if wider == avals:
            common.check_same_types(tree, avals, out_avals, "fori_loop body", name)
            return body, avals
        avals = wider
