"""``scan``: a loop over the leading axis of arrays that carries a value along."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import errors
from catena.core.array import typed_array
from catena.core.axes import broadcast_axis, move_axis
from catena.core.context import context
from catena.core.failures import FOUND, note_iteration
from catena.core.jaxpr import ClosedJaxpr, Var, eval_jaxpr
from catena.core.named import NamedTuple
from catena.core.primitive import as_bodies_say
from catena.core.ref import is_reference
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.structural import broadcast_in_dim_p, slice_p, squeeze_p
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_map, tree_unflatten, treedef_children, treedef_tuple
from catena.core.zeros import get_aval
from catena.lax.control_flow import common
from catena.lax.control_flow.loop_rules import (
    loop_jvp,
    loop_partial_eval,
    loop_prune,
    loop_save,
    loop_transpose,
)
from catena.lax.control_flow.state import scan_rule
from catena.lax.join import concatenate_p
from catena.transform import interpreted
from catena.transform.arguments import check_aliasing
from catena.transform.batch import batch_jaxpr, mapped_aval
from catena.transform.call_primitive import CallPrimitive, lift_body
from catena.transform.jit_primitive import jaxpr_axis_names
from catena.transform.memo import memoised

# ---- the primitive


def _abstract(*avals, jaxpr, num_consts, num_carry, length, **params):
    carry, ys = common.split(jaxpr.out_avals, num_carry)
    return [*carry, *[mapped_aval(a, length) for a in ys]]


def _evaluate(*args, **params):
    if common.jit_is_disabled():
        return common.converted(run_steps(args, **params), _abstract(**params))
    return common.run_alone(scan_p, params["jaxpr"], args, params)


def run_steps(args, *, jaxpr, num_consts, num_carry, length, reverse, **params) -> list:
    """Run the loop iteration by iteration in Python, operation by operation."""
    consts, carry, xs = common.split([leaf_value(x) for x in args], num_consts, num_carry)
    rows = []
    for i in reversed(range(length)) if reverse else range(length):
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *[item(x, i) for x in xs])
        carry = outs[:num_carry]
        rows.append(outs[num_carry:])
    if reverse:
        rows.reverse()
    avals = [mapped_aval(a, length) for a in jaxpr.out_avals[num_carry:]]
    return [*carry, *[stacked([row[k] for row in rows], a) for k, a in enumerate(avals)]]


def _interpreted(*, jaxpr, num_consts, num_carry, length, reverse, **params):
    """The loop on NumPy values, where there is no compiler."""
    body, row_avals = interpreted.steps(jaxpr), jaxpr.out_avals[num_carry:]

    def run(*values) -> list:
        consts, carry, xs = common.split(values, num_consts, num_carry)
        ys = [interpreted.empty(length, a) for a in row_avals]
        for i in reversed(range(length)) if reverse else range(length):
            try:
                outs = body(*consts, *carry, *[x[i, ...] for x in xs])
            except FOUND as error:
                note_iteration(error, i)
                raise
            carry = outs[:num_carry]
            for y, row in zip(ys, outs[num_carry:], strict=True):
                y[i, ...] = row
        return [*carry, *ys]

    return run


def item(x, i: int):
    """``x[i]``."""
    shape = get_aval(x).shape
    start, limit = (i, *[0] * (len(shape) - 1)), (i + 1, *shape[1:])
    row = slice_p.bind(x, start_indices=start, limit_indices=limit, strides=None)
    return squeeze_p.bind(row, dimensions=(0,))


def stacked(rows: list, aval):
    """The rows along a new leading axis, as an array of the type ``aval``."""
    if not rows:
        return bind_zeros(aval)
    wide = [
        broadcast_in_dim_p.bind(x, shape=(1, *aval.shape[1:]), broadcast_dimensions=tuple(range(1, aval.ndim)))
        for x in rows
    ]
    return concatenate_p.bind(*wide, dimension=0)


def bind_zeros(aval):
    """An array of the type ``aval`` without elements."""
    shape, dtype = aval.dtype.physical(aval.shape) if aval.extended else (aval.shape, aval.dtype)
    return typed_array(np.zeros(shape, dtype), aval)


def _batch(axis, args, dims, *, jaxpr, num_consts, num_carry, **params):
    consts_d, carry_d, xs_d = common.split([d is not None for d in dims], num_consts, num_carry)
    batched, carry_d, ys_d = batched_body(jaxpr, axis, tuple(consts_d), tuple(carry_d), tuple(xs_d))
    moved = []
    for i, (x, d) in enumerate(zip(args, dims, strict=True)):
        if i >= num_consts + num_carry:
            moved.append(x if d is None else move_axis(x, d, 1))
        elif d is None and num_consts <= i and carry_d[i - num_consts]:
            moved.append(broadcast_axis(x, axis.size))
        else:
            moved.append(x if d is None else move_axis(x, d, 0))
    outs = scan_p.bind(*moved, jaxpr=batched, num_consts=num_consts, num_carry=num_carry, **params)
    return outs, [0 if d else None for d in carry_d] + [1 if d else None for d in ys_d]


@memoised
def batched_body(jaxpr: ClosedJaxpr, axis, consts_d: tuple, carry_d: tuple, xs_d: tuple):
    """The body over a mapped axis, which components of the carry are mapped, and which other results."""
    num_carry = len(carry_d)
    num_ys = len(jaxpr.out_avals) - num_carry
    while True:
        batched, mapped_out = batch_jaxpr(jaxpr, axis, consts_d + carry_d + xs_d, carry_d + (False,) * num_ys)
        if mapped_out[:num_carry] == carry_d:
            return batched, carry_d, mapped_out[num_carry:]
        carry_d = common.either(carry_d, mapped_out[:num_carry])


def _lower(b, *operands, jaxpr, num_consts, num_carry, length, reverse, unroll, **params):
    consts, init, xs = common.split(operands, num_consts, num_carry)
    block = max(1, min(int(unroll), length))
    body, whole = (
        (jaxpr, length)
        if block == 1
        else (unrolled_body(jaxpr, num_consts, num_carry, block, reverse), length // block)
    )
    rest = length - whole * block
    heads, tails = xs, []
    if block > 1:  # the iterations that do not fill a block run after the others
        start = rest if reverse else 0
        heads = [b.reshape(rows(b, x, start, start + whole * block), (whole, block, *x.shape[1:])) for x in xs]
        tails = [rows(b, x, *((0, rest) if reverse else (length - rest, length))) for x in xs]
    carry, ys = b.scan(body, consts, init, heads, whole, reverse, block)
    if block == 1:
        return [*carry, *ys]
    ys = [b.reshape(y, (whole * block, *y.shape[2:])) for y in ys]
    if rest:
        carry, last = b.scan(jaxpr, consts, carry, tails, rest, reverse)
        pairs = zip(last, ys, strict=True) if reverse else zip(ys, last, strict=True)
        ys = [b.concatenate(list(pair), 0) for pair in pairs]
    return [*carry, *ys]


def rows(b, x, start: int, limit: int):
    """``x[start:limit]`` in the compiler's graph."""
    return b.slice(x, (start, *[0] * (x.ndim - 1)), (limit, *x.shape[1:]), None)


@memoised
def unrolled_body(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, block: int, reverse: bool) -> ClosedJaxpr:
    """A body that does ``block`` iterations."""
    consts, carry, xs = common.split(jaxpr.in_avals, num_consts, num_carry)

    def fun(*args):
        consts, carry, xs = common.split(args, num_consts, num_carry)
        made = []
        for i in reversed(range(block)) if reverse else range(block):
            outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *[item(x, i) for x in xs])
            carry = outs[:num_carry]
            made.append(outs[num_carry:])
        if reverse:
            made.reverse()
        avals = [mapped_aval(a, block) for a in jaxpr.out_avals[num_carry:]]
        return [*carry, *[stacked([row[k] for row in made], a) for k, a in enumerate(avals)]]

    avals = [*consts, *carry, *[mapped_aval(a, block) for a in xs]]
    traced, values = trace_to_jaxpr(fun, avals, DebugInfo("scan", "an unrolled loop"))
    return ClosedJaxpr(traced, values)


scan_p = CallPrimitive(
    "scan",
    lift=lift_body(count="num_consts"),
    multiple_results=True,
    takes_arrays=True,
    takes_tokens=True,
    effects=lambda avals, params: params["jaxpr"].effects,
    axis_names=lambda params: jaxpr_axis_names(params["jaxpr"]),
    abstract=_abstract,
    varying=as_bodies_say,
    evaluate=_evaluate,
    batch=_batch,
    lower=_lower,
)
scan_p.jvp = loop_jvp(scan_p, 0)
scan_p.partial_eval = loop_partial_eval(scan_p, 0)
scan_p.save = loop_save(lambda aval, params: mapped_aval(aval, params["length"]))
scan_p.transpose = loop_transpose(scan_p, 0)
scan_p.prune = loop_prune(0)
scan_p.discharge = scan_rule(scan_p)
interpreted.calls[scan_p] = _interpreted


# ---- the function


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Loop over the leading axis of ``xs``, carrying a value along and collecting results.

    Arguments:
      f: ``(carry, x) -> (carry, y)``; the carry keeps its structure, shapes and dtypes.
      init: the first carry: a tree of arrays and scalars. Weakly typed ones take the dtype that ``f``
        returns.
      xs: a tree of arrays with equal leading axes, or ``None``.
      length: the number of iterations; needed only where ``xs`` has no arrays.
      reverse: whether to begin with the last item; the results stand in the order of ``xs`` all the same.
      unroll: how many iterations each step of the compiled loop does; ``True`` for all.
      _split_transpose: makes no difference: where it pays, the compiler takes what needs not wait for the carry out
        of the backward loop (sums of products, above all), whichever is asked for.
    Returns:
      The last carry, and the results ``y`` stacked along a new leading axis.
    Raises:
      TypeError: ``f`` is not callable, does not return a pair, or changes the type of the carry.
      ValueError: the leading axes differ from each other or from ``length``, or there is no length.

    >>> import catena.lax as lax, numpy as np
    >>> total, partial = lax.scan(lambda c, x: (c + x, c), 0.0, np.arange(4.0))
    >>> partial.tolist()
    [0.0, 0.0, 1.0, 3.0]
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    init_leaves, init_tree = common.flatten_values(init)
    xs_leaves, xs_tree = common.flatten_values(xs)
    length = scan_length(xs_leaves, length)
    if common.jit_is_disabled() and length:
        return scan_in_python(f, init, tree_unflatten(xs_tree, xs_leaves), length, reverse)
    check_not_split(xs_leaves)
    x_avals = [get_aval(x).without_axis(0) for x in xs_leaves]
    body, carry_avals, y_tree = trace_scan_body(f, init_tree, [get_aval(x) for x in init_leaves], xs_tree, x_avals)
    if any(map(is_reference, xs_leaves)):
        names = lambda: common.argument_names(f, (init, xs), {})[len(init_leaves) :]  # noqa: E731
        check_aliasing([f], body.consts, xs_leaves, names, "scan")
    carry = common.converted(init_leaves, carry_avals)
    carry, ys = bind_scan(body, carry, xs_leaves, length, bool(reverse), unroll_factor(unroll, length))
    return tree_unflatten(init_tree, carry), tree_unflatten(y_tree, ys)


def check_not_split(xs: list):
    """Raise ValueError where an array to loop over is split along its leading axis."""
    for x in xs if context.laid_out else ():
        split = get_aval(x).along(0)
        if split is not None:
            raise ValueError(
                "scan: xs must not be split along axis 0, over which the loop goes, but one of the type "
                f"{get_aval(x).str_short()} is over {split.spec[0]!r}; reshard it (jax.reshard)"
            )


def bind_scan(body: common.Body, carry: list, xs: list, length: int, reverse: bool, unroll: int):
    """Apply the primitive to a traced body; what the body only hands on stays outside the loop.

    Returns:
      The last carry and the collected results.
    """
    slim = without_forwarding(body.jaxpr, len(body.consts), len(carry))
    moving, fixed = common.partition(carry, slim.fixed)
    outs = scan_p.bind(
        *body.consts, *fixed, *moving, *xs,
        jaxpr=slim.jaxpr, length=length, num_carry=len(moving), num_consts=len(body.consts) + len(fixed),
        reverse=reverse, unroll=unroll,
    )  # fmt: skip
    last, made = common.split(outs, len(moving))
    made = iter(made)
    ys = [next(made) if source is None else xs[source] for source in slim.forwarded]
    return common.merge(slim.fixed, last, fixed), ys


class SlimBody(NamedTuple):
    """A body without what it only hands on: carries that never change are constants (``fixed`` flags them),
    and results that are items are not collected (``forwarded`` says which item each result is, or ``None``).
    """

    jaxpr: ClosedJaxpr
    fixed: tuple
    forwarded: tuple


@memoised
def without_forwarding(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> SlimBody:
    """Take what a scan body only hands on out of it."""
    consts, carry, xs = common.split(closed.jaxpr.invars, num_consts, num_carry)
    outs, ys = common.split(closed.jaxpr.outvars, num_carry)
    fixed = tuple(v is out for v, out in zip(carry, outs, strict=True))
    place = {x: i for i, x in enumerate(xs)}
    forwarded = tuple(place.get(y) if type(y) is Var else None for y in ys)
    if not any(fixed) and all(i is None for i in forwarded):
        return SlimBody(closed, fixed, forwarded)
    moving, constant = common.partition(carry, fixed)
    kept = [y for y, i in zip(ys, forwarded, strict=True) if i is None]
    slim = common.with_invars(closed, consts + constant + moving + xs)
    slim = common.with_outvars(slim, common.partition(outs, fixed)[0] + kept)
    return SlimBody(slim, fixed, forwarded)


def trace_scan_body(f, init_tree, carry_avals: list, xs_tree, x_avals):
    """The traced body, the types of the carry once weak ones gave way, and the structure of the results."""
    in_tree = treedef_tuple((init_tree, xs_tree))
    while True:
        body = common.trace_body(f, in_tree, [*carry_avals, *x_avals], "scan")
        check_pair(body)
        out_carry_tree, y_tree = treedef_children(body.out_tree)
        out_avals = body.out_avals[: out_carry_tree.num_leaves]
        name = carry_name(f)
        common.check_same_tree(init_tree, out_carry_tree, carry_avals, out_avals, "scan body", name)
        wider = common.promoted(carry_avals, out_avals)
        if wider == carry_avals:
            common.check_same_types(init_tree, carry_avals, out_avals, "scan body", name)
            return body, carry_avals, y_tree
        carry_avals = wider


def carry_name(f) -> str:
    """The name of the first argument of a body, as messages print it."""
    names = common.argument_names(f, (0,), {})
    return names[0]


def check_pair(body):
    """Raise where a body does not return ``(carry, y)``."""
    if body.out_tree.num_nodes is not None and not is_pair(body.out_tree):
        shown = tree_unflatten(body.out_tree, [str(a) for a in body.out_avals])
        raise TypeError(f"scan body output must be a pair, got {shown}.")


def is_pair(treedef) -> bool:
    return (
        treedef.node_data() is not None
        and treedef.node_data()[0] in (tuple, list)
        and len(treedef_children(treedef)) == 2
    )


def scan_length(xs_leaves: list, length, name: str = "scan") -> int:
    """The number of iterations; ``name`` is the function's that is called so."""
    for x in xs_leaves:
        if not get_aval(x).shape:
            raise ValueError(
                f"{name} got value with no leading axis to scan over: {x}. All of xs need one, of one length; what is "
                "the same in every step stands in the carry, or is closed over."
            )
    sizes = list(dict.fromkeys(get_aval(x).shape[0] for x in xs_leaves))
    if length is not None:
        length = concrete_length(length)
        if any(n != length for n in sizes):
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
        return length
    if len(sizes) > 1:
        raise ValueError(f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}.")
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return sizes[0]


def concrete_length(length) -> int:
    """``length`` as a Python integer."""
    if isinstance(length, Tracer) and length.concrete_value() is None:
        raise errors.ConcretizationTypeError(
            length,
            "The `length` argument to `scan` expects a concrete `int` value. For scan-like iteration with a "
            "dynamic length, use `while_loop` or `fori_loop`.",
        )
    try:
        length = int(length) if isinstance(length, float) and length.is_integer() else operator.index(length)
    except TypeError:
        raise TypeError(f"The `length` argument to `scan` must be an int, got {length!r}") from None
    if length < 0:
        raise ValueError(f"The `length` argument to `scan` must not be negative, got {length}")
    if length >= 2**63:
        raise OverflowError(f"The `length` argument to `scan` must be less than 2**63, got {length}")
    return length


def unroll_factor(unroll, length: int) -> int:
    """How many iterations one step of the compiled loop does."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    if isinstance(unroll, Tracer):
        raise errors.ConcretizationTypeError(unroll, "The `unroll` argument of a loop must be known while tracing.")
    try:
        unroll = operator.index(unroll)
    except TypeError:
        raise ValueError(f"`unroll` must be a `bool` or a non-negative `int`, got {unroll!r}.") from None
    if unroll < 0:
        raise ValueError(f"`unroll` must be a `bool` or a non-negative `int`, got {unroll}.")
    return unroll


def scan_in_python(f, init, xs, length: int, reverse: bool):
    """The loop in Python, for when jit is disabled: ``f`` sees concrete values."""
    carry, ys = init, []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, tree_map(lambda x: item(x, i), xs))  # noqa: B023
        ys.append(y)
    if reverse:
        ys.reverse()
    leaves = [common.flatten_values(y) for y in ys]
    columns = [list(column) for column in zip(*[row for row, _ in leaves], strict=True)]
    out = [stacked(column, mapped_aval(get_aval(column[0]), length)) for column in columns]
    return tree_map(leaf_value, carry), tree_unflatten(leaves[0][1], out)
