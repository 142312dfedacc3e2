"""Windows that slide over an array: their arithmetic, reductions over them, the derivative of max pooling."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from catena.core import dtypes
from catena.core.array import as_array, make_array, typed_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.evaluate import abstract_eval
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax import native
from catena.lax.arithmetic import add_p, max_p, min_p, sub_p
from catena.lax.bitwise import bitwise_and, bitwise_or
from catena.lax.comparison import eq, gt, lt, ne, select_n
from catena.lax.elementwise import ANY, NUMBER, ORDERED, WIDER_WITH_HALF, check_admitted, check_same_dtypes
from catena.lax.reductions import initial_value
from catena.lax.scatter_primitives import scatter_add_p
from catena.lax.shape import broadcast, iota, pad, reshape
from catena.lax.shape import slice as slice_
from catena.lax.signed_zeros import as_floats, as_integers, has_both_zeros
from catena.lax.structure import like
from catena.lax.whole import whole
from catena.lax.window_shapes import (
    check_windows,
    dilated,
    dilated_operand,
    padtype_to_pads,
    parts_of_windows,
    reduce_window_shape_tuple,
    window_count,
)
from catena.lax.windowed import FILL_OR_DROP, ScatterDimensionNumbers
from catena.transform.batch import Axis, batch_flat
from catena.transform.canonical import canonical
from catena.transform.jvp import jvp_flat

# ------------------------------------------------------------------------------------------------------------
# Sums, maxima and minima over windows


def lowest(dtype):
    """The identity of max."""
    return _extreme(dtype, -np.inf, "min", False)


def highest(dtype):
    """The identity of min."""
    return _extreme(dtype, np.inf, "max", True)


def _extreme(dtype, infinity, bound: str, truth: bool):
    kind = dtypes.KIND[dtype]
    if kind == "b":
        return truth
    if kind in "iu":
        return getattr(dtypes.iinfo(dtype), bound)
    if kind == "c":
        return infinity
    has_infinity = np.isinf(np.asarray(infinity).astype(dtype).astype(np.float64))
    return infinity if has_infinity else float(getattr(dtypes.finfo(dtype), bound))


def _zero(dtype):
    return 0


def result_shape(name, operand, params) -> tuple:
    check_windows(name, operand.shape, **params)
    return reduce_window_shape_tuple(operand.shape, **params)


def _separable(ufunc: np.ufunc, identity: Callable):
    """Evaluation of a reduction over windows one axis at a time."""

    def evaluate(x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        dtype, start = x.dtype, identity(x.dtype)
        wide = WIDER_WITH_HALF.get(dtype, dtype)
        x = x.astype(wide, copy=False)
        by_bits = ufunc is not np.add and has_both_zeros(x)
        if by_bits:
            x, start = (as_integers(v, ufunc is np.minimum) for v in (x, np.asarray(start, wide)))
        out = dilated_operand(x, start, padding, base_dilation)
        for d, along in enumerate(zip(window_dimensions, window_strides, window_dilation, strict=True)):
            out = np.moveaxis(_reduce_along(ufunc, np.moveaxis(out, d, 0), *along), 0, d)
        if ufunc is np.add and out.dtype.kind in "fc":
            out = out + np.zeros((), out.dtype)  # programs add to a zero: no sum is -0
        return (as_floats(out, wide) if by_bits else out).astype(dtype, copy=False)

    return evaluate


def _reduce_along(ufunc, x, window: int, stride: int, dilation: int):
    """Windows along the first axis. Long ones are joined from windows whose lengths are powers of two."""
    count = window_count(x.shape[0], window, stride, (0, 0), 1, dilation)
    if count == 0:
        return x[:0]
    if window > 8 and 2 * stride * window.bit_length() < window:
        return _reduce_by_doubling(ufunc, x, window, dilation)[: (count - 1) * stride + 1 : stride]
    extent = (count - 1) * stride + 1
    out = x[:extent:stride]
    for j in range(1, window):
        out = ufunc(out, x[j * dilation : j * dilation + extent : stride], out=None if j == 1 else out)
    return out


def _reduce_by_doubling(ufunc, x, window: int, dilation: int):
    count = x.shape[0] - (window - 1) * dilation
    out, done, length = None, 0, 1
    while True:
        if window & length:
            part = x[done * dilation : done * dilation + count]
            out = part if out is None else ufunc(out, part)
            done += length
        length *= 2
        if length > window:
            return out
        half = length // 2 * dilation
        x = ufunc(x[: x.shape[0] - half], x[half:])


def _monoid(name: str, ufunc, identity, admitted, jvp, transpose) -> Primitive:
    def abstract(operand, **params):
        check_admitted(name, operand, admitted)
        return operand.update(shape=result_shape(name, operand, params))

    def batch(axis, args, dims, **params):
        return primitive.bind(move_axis(args[0], dims[0], 0), **_with_batch(params)), 0

    def lower(b, x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        init = b.constant(np.asarray(identity(x.dtype)).astype(x.dtype))
        sizes = window_dimensions, window_strides, padding, base_dilation, window_dilation
        if dtypes.is_complex(x.dtype) and ufunc is not np.add:
            return b.reduce_window_general(
                [x], [init], _scalar_jaxpr(min_p if fold == "min" else max_p, x.dtype), *sizes
            )[0]
        return b.reduce_window(fold, x, init, *sizes)

    def evaluate(x, **params):
        """Programs look at every element of a window; NumPy's evaluation of large windows does not."""
        short = math.prod(params["window_dimensions"]) <= SHORT
        return (compiled if short else in_numpy)(x, **params)

    fold = name.rsplit("_", 1)[1]
    in_numpy = _separable(ufunc, identity)
    primitive = Primitive(
        name, abstract=abstract, evaluate=evaluate, jvp=jvp, transpose=transpose, batch=batch, lower=lower
    )
    compiled = native.shaped(primitive, in_numpy)
    return primitive


SHORT = 32  # elements of a window


@lru_cache(64)
def _scalar_jaxpr(primitive: Primitive, dtype) -> ClosedJaxpr:
    """A primitive of two scalars."""
    scalar = ShapedArray((), dtype)
    info = DebugInfo("compilation", primitive.name)
    return trace_to_closed_jaxpr(lambda x, y: [primitive.bind(x, y)], [scalar, scalar], info)[0]


def _with_batch(params) -> dict:
    """The parameters of windows over an array with a batch axis in front."""
    front_value = {"padding": (0, 0)}
    return {k: (front_value.get(k, 1), *v) if isinstance(v, tuple) else v for k, v in params.items()}


def _sum_jvp(primals, tangents, **params):
    out = reduce_window_sum_p.bind(*primals, **params)
    t = tangents[0]
    return out, Zero.of_primal(out) if type(t) is Zero else reduce_window_sum_p.bind(t, **params)


def _sum_transpose(ct, operand, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The cotangents of all windows that contain an element: a sum over windows of the dilated cotangent."""
    ct = instantiate(ct)
    pads = []
    for n, out, window, stride, (low, _), bd, wd in zip(
        operand.aval.shape,
        get_aval(ct).shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
        strict=True,
    ):
        before = dilated(window, wd) - 1 - low
        pads.append((before, dilated(n, bd) + dilated(window, wd) - 1 - dilated(out, stride) - before, stride - 1))
    padded = pad(ct, like(ct, 0), pads)
    return [
        reduce_window_sum_p.bind(
            padded,
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=((0, 0),) * len(pads),
            base_dilation=(1,) * len(pads),
            window_dilation=window_dilation,
        )
    ]


def _extremum_jvp(primals, tangents, primitive, select_prim, params):
    out = primitive.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, select_and_gather_add_p.bind(tangents[0], primals[0], select_prim=select_prim, **params)


def _max_jvp(primals, tangents, **params):
    return _extremum_jvp(primals, tangents, reduce_window_max_p, "ge", params)


def _min_jvp(primals, tangents, **params):
    return _extremum_jvp(primals, tangents, reduce_window_min_p, "le", params)


NOT_LINEAR = NoRule("it is not linear in its operands")
reduce_window_sum_p = _monoid("reduce_window_sum", np.add, _zero, NUMBER, _sum_jvp, _sum_transpose)
reduce_window_max_p = _monoid("reduce_window_max", np.maximum, lowest, ANY, _max_jvp, NOT_LINEAR)
reduce_window_min_p = _monoid("reduce_window_min", np.minimum, highest, ANY, _min_jvp, NOT_LINEAR)

# ------------------------------------------------------------------------------------------------------------
# select_and_gather_add: what stands in one array where another has its largest (smallest) element of a window


def _chosen(operand, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The place of every window's first chosen element in the padded operand, and that one's shape."""
    wide = operand.astype(WIDER_WITH_HALF.get(operand.dtype, operand.dtype), copy=False)
    fill = (lowest if select_prim == "ge" else highest)(operand.dtype)
    x = dilated_operand(wide, fill, padding, base_dilation)
    better = np.greater if select_prim == "ge" else np.less
    numbered = np.arange(x.size).reshape(x.shape)
    best = chosen = None
    for part in parts_of_windows(x.shape, window_dimensions, window_strides, window_dilation):
        value, place = x[part], numbered[part]
        if best is None:
            best, chosen = value, place
            continue
        wins = better(value, best) | (np.isnan(value) & ~np.isnan(best))
        best, chosen = np.where(wins, value, best), np.where(wins, place, chosen)
    return chosen, x.shape


def _check_selection(name: str, a, b, params):
    if a.shape != b.shape:
        raise TypeError(f"{name} requires operands of equal shapes, got {a.shape} and {b.shape}")
    check_admitted(name, b, ORDERED)


def _gather_add_abstract(tangents, operand, *, select_prim, **params):
    _check_selection("select_and_gather_add", tangents, operand, params)
    return tangents.update(shape=result_shape("select_and_gather_add", operand, params))


def _gather_add_evaluate(tangents, operand, *, select_prim, padding, base_dilation, **params):
    chosen, _ = _chosen(operand, select_prim, padding=padding, base_dilation=base_dilation, **params)
    padded = dilated_operand(tangents, 0, padding, base_dilation)
    return padded.reshape(-1).take(chosen, mode="clip") if padded.size else np.zeros(chosen.shape, tangents.dtype)


def _gather_add_jvp(primals, tangents, **params):
    out = select_and_gather_add_p.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, select_and_gather_add_p.bind(tangents[0], primals[1], **params)


def _gather_add_transpose(ct, tangents, operand, *, select_prim, base_dilation, window_dilation, **params):
    ct = instantiate(ct)
    if all(d == 1 for d in (*base_dilation, *window_dilation)):
        return [select_and_scatter_add_p.bind(ct, operand, select_prim=select_prim, **params), None]
    shape = get_aval(operand).shape
    size = math.prod(shape)
    # Numbered from 1, so that windows with nothing but padding choose the number 0, which the scatter drops.
    one = np.ones((), np.int32)
    numbers = reshape(add_p.bind(iota(np.int32, size), one), shape)
    dilations = {"base_dilation": base_dilation, "window_dilation": window_dilation}
    chosen = select_and_gather_add_p.bind(numbers, operand, select_prim=select_prim, **dilations, **params)
    count = get_aval(ct).size
    flat = scatter_add_p.bind(
        broadcast(np.zeros((), get_aval(ct).dtype), (size,)),
        reshape(sub_p.bind(chosen, one), (count, 1)),
        reshape(ct, (count,)),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        mode=FILL_OR_DROP,
        unique_indices=False,
        update_consts=(),
        update_jaxpr=None,
    )
    return [reshape(flat, shape), None]


def _selection_batch(primitive):
    def batch(axis, args, dims, **params):
        args = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
        return primitive.bind(*args, **_with_batch(params)), 0

    return batch


@lru_cache(64)
def _first_jaxpr(select_prim: str, value_dtype, tangent_dtype) -> ClosedJaxpr:
    """From a place, what is there and a tangent, twice, to those of the one that is chosen: the first of equal ones."""
    better = gt if select_prim == "ge" else lt

    def choose(place, value, tangent, other_place, other_value, other_tangent):
        earlier = lt(other_place, place)
        equal = bitwise_and(eq(other_value, value), earlier)
        nan = bitwise_and(ne(other_value, other_value), bitwise_or(eq(value, value), earlier))
        wins = bitwise_or(better(other_value, value), bitwise_or(equal, nan))
        pairs = (place, other_place), (value, other_value), (tangent, other_tangent)
        return [select_n(wins, *pair) for pair in pairs]

    avals = [ShapedArray((), d) for d in (np.dtype(np.int32), value_dtype, tangent_dtype)] * 2
    return trace_to_closed_jaxpr(choose, avals, DebugInfo("select_and_gather_add", "choose"))[0]


def _gather_add_lower(
    b, tangents, operand, *, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation
):
    sizes = window_dimensions, window_strides, padding, base_dilation, window_dilation
    first = _first_jaxpr(str(select_prim), operand.dtype, tangents.dtype)
    return b.select_and_gather_add(tangents, operand, str(select_prim), first, *sizes)


select_and_gather_add_p = Primitive(
    "select_and_gather_add",
    abstract=_gather_add_abstract,
    evaluate=_gather_add_evaluate,
    jvp=_gather_add_jvp,
    transpose=_gather_add_transpose,
    lower=_gather_add_lower,
)
select_and_gather_add_p.batch = _selection_batch(select_and_gather_add_p)

# ------------------------------------------------------------------------------------------------------------
# select_and_scatter_add: each element of the source added to the chosen element of its window


def _undilated(params) -> dict:
    ones = (1,) * len(params["window_dimensions"])
    return {**params, "base_dilation": ones, "window_dilation": ones}


def _scatter_add_abstract(source, operand, *, select_prim, **params):
    check_admitted("select_and_scatter_add", operand, ORDERED)
    expected = result_shape("select_and_scatter_add", operand, _undilated(params))
    if source.shape != expected:
        raise TypeError(
            f"select_and_scatter_add requires a source of the shape of the windows, {expected}, got {source.shape}"
        )
    check_same_dtypes("select_and_scatter_add", (source, operand))
    return ShapedArray(operand.shape, source.dtype)


def _scatter_add_evaluate(source, operand, *, select_prim, padding, **params):
    ones = (1,) * operand.ndim
    chosen, shape = _chosen(operand, select_prim, padding=padding, base_dilation=ones, window_dilation=ones, **params)
    wide = WIDER_WITH_HALF.get(source.dtype, source.dtype)
    out = np.zeros(math.prod(shape), wide)
    np.add.at(out, chosen.reshape(-1), source.reshape(-1).astype(wide, copy=False))
    cropped = dilated_operand(out.reshape(shape), 0, [(-lo, -hi) for lo, hi in padding], ones)
    return cropped.astype(source.dtype, copy=False)


def _scatter_add_jvp(primals, tangents, **params):
    out = select_and_scatter_add_p.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, select_and_scatter_add_p.bind(tangents[0], primals[1], **params)


def _scatter_add_transpose(ct, source, operand, *, select_prim, **params):
    out = select_and_gather_add_p.bind(instantiate(ct), operand, select_prim=select_prim, **_undilated(params))
    return [out, None]


def _scatter_add_lower(b, source, operand, *, select_prim, window_dimensions, window_strides, padding):
    return b.select_and_scatter_add(source, operand, str(select_prim), window_dimensions, window_strides, padding)


select_and_scatter_add_p = Primitive(
    "select_and_scatter_add",
    abstract=_scatter_add_abstract,
    evaluate=_scatter_add_evaluate,
    jvp=_scatter_add_jvp,
    transpose=_scatter_add_transpose,
    lower=_scatter_add_lower,
)
select_and_scatter_add_p.batch = _selection_batch(select_and_scatter_add_p)

# ------------------------------------------------------------------------------------------------------------
# reduce_window with any computation


def _general_abstract(*args, jaxpr, **params):
    operands, inits = _halves(args)
    for init in inits:
        if init.shape:
            raise TypeError(
                "reduce_window expected init_values to be scalars but init_values have shapes "
                f"{[i.shape for i in inits]}."
            )
    check_same_shapes(operands)
    shape = result_shape("reduce_window", operands[0], params)
    return [ShapedArray(shape, x.dtype) for x in operands]


def check_same_shapes(operands):
    if any(x.shape != operands[0].shape for x in operands):
        raise TypeError(f"reduce_window requires operands of equal shapes, got {[x.shape for x in operands]}")


def _halves(args) -> tuple:
    return args[: len(args) // 2], args[len(args) // 2 :]


def _one_by_one(*args, jaxpr, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The reduction written out: one application of the computation for each element of a window."""
    operands, inits = _halves(args)
    shape = get_aval(operands[0]).shape
    counts = reduce_window_shape_tuple(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    totals = [broadcast(init, counts) for init in inits]
    if 0 in counts:  # where padding may take away more than there is
        return totals
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation, strict=True)]
    padded = [pad(x, init, config) for x, init in zip(operands, inits, strict=True)]
    for at in np.ndindex(*window_dimensions):
        starts = [i * d for i, d in zip(at, window_dilation, strict=True)]
        limits = [s + (c - 1) * w + 1 for s, c, w in zip(starts, counts, window_strides, strict=True)]
        elements = [slice_(x, starts, limits, window_strides) for x in padded]
        totals = apply_scalar_jaxpr(jaxpr, [*totals, *elements])
    return totals


def apply_scalar_jaxpr(closed: ClosedJaxpr, args) -> list:
    """A jaxpr from scalars to scalars, applied elementwise to arrays of one shape."""
    shape = get_aval(args[0]).shape
    axis = Axis(None, math.prod(shape))
    flat = [reshape(x, (axis.size,)) for x in args]
    outs, dims = batch_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), axis, flat, [0] * len(flat))
    spread = [broadcast(x, (axis.size,)) if d is None else x for x, d in zip(outs, dims, strict=True)]
    return [reshape(x, shape) for x in spread]


def _general_evaluate(*args, **params):
    arrays = [as_array(x) for x in args]
    avals = abstract_eval(reduce_window_p, tuple([x.aval for x in arrays]), params)  # raises what is to be raised
    outs = _general_values(*[x._value for x in arrays], **params)
    return [typed_array(x, aval) for x, aval in zip(outs, avals, strict=True)]


def _general_in_numpy(*values, **params):
    return [x._value for x in _one_by_one(*map(make_array, values), **params)]


def _general_jvp(primals, tangents, **params):
    return jvp_flat(lambda *args: _one_by_one(*args, **params), primals, tangents)


def _general_batch(axis, args, dims, **params):
    operand_dims, init_dims = _halves(dims)
    if any(d is not None for d in init_dims):
        return batch_flat(lambda *xs: _one_by_one(*xs, **params), axis, args, dims)
    operands, inits = _halves(args)
    operands = [at_front(axis.size, x, d) for x, d in zip(operands, operand_dims, strict=True)]
    outs = reduce_window_p.bind(*operands, *inits, **_with_batch(params))
    return outs, [0] * len(outs)


def _general_lower(b, *args, jaxpr, **params):
    operands, inits = _halves(args)
    return b.reduce_window_general(list(operands), list(inits), jaxpr, **params)


reduce_window_p = Primitive(
    "reduce_window",
    multiple_results=True,
    takes_arrays=True,
    abstract=_general_abstract,
    evaluate=_general_evaluate,
    jvp=_general_jvp,
    transpose=NOT_LINEAR,
    batch=_general_batch,
    lower=_general_lower,
)
_general_values = native.shaped(reduce_window_p, _general_in_numpy)

# ------------------------------------------------------------------------------------------------------------
# Public function

_MONOIDS = {
    "add": (reduce_window_sum_p, _zero),
    "max": (reduce_window_max_p, lowest),
    "min": (reduce_window_min_p, highest),
}


@whole
def reduce_window(
    operand,
    init_value,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
):
    """The reduction of every window of an array.

    Arguments:
      operand: an array, or a pytree of arrays of one shape.
      init_value: the scalar to start from (a pytree of them), which also stands where padding is.
      computation: from two scalars (pytrees of them) to one; associative.
      window_dimensions: the shape of the window.
      window_strides: the distance of neighbouring windows along each axis; 1 by default.
      padding: 'VALID', 'SAME', 'SAME_LOWER', or for each axis how much to pad before and after.
      base_dilation: how far apart the operand's elements are placed; 1 by default.
      window_dilation: how far apart the window's elements are; 1 by default.
    Returns:
      An array (pytree of arrays) with one element for each window.
    Raises:
      TypeError: the numbers of axes do not agree, or a size is not positive.

    >>> import numpy as np
    >>> from catena.lax.arithmetic import add
    >>> reduce_window(np.arange(5), 0, add, (3,))
    Array([3, 6, 9], dtype=int32)
    """
    operands, tree = tree_flatten(operand)
    inits, init_tree = tree_flatten(init_value)
    if tree != init_tree:
        raise ValueError(
            f"reduce_window: operand and init_value must have the same structure, got {tree} and {init_tree}"
        )
    if not operands:
        raise ValueError("reduce_window must have at least one operand.")
    inits = [
        initial_value("reduce_window", i, get_aval(x).dtype) if isinstance(i, (bool, int, float, complex)) else i
        for x, i in zip(operands, inits, strict=True)
    ]
    if any(get_aval(i).shape for i in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[get_aval(i).shape for i in inits]}."
        )
    params = _window_params(
        get_aval(operands[0]).shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    closed = _computation_jaxpr(computation, operands, tree)
    monoid = _MONOIDS.get(_single_primitive(closed)) if len(operands) == 1 else None
    if monoid is not None and _is_value(inits[0], monoid[1](get_aval(operands[0]).dtype)):
        return tree_unflatten(tree, [monoid[0].bind(*operands, **params)])
    return tree_unflatten(tree, reduce_window_p.bind(*operands, *inits, jaxpr=closed, **params))


def _window_params(shape, window, strides, padding, base_dilation, window_dilation) -> dict:
    def ints(values, name):
        try:
            return tuple(map(operator.index, values))
        except TypeError:
            raise TypeError(f"reduce_window: {name} must be a sequence of integers, got {values!r}") from None

    window = ints(window, "window_dimensions")
    ones = (1,) * len(window)
    params = {
        "window_dimensions": window,
        "window_strides": ones if strides is None else ints(strides, "window_strides"),
        "base_dilation": ones if base_dilation is None else ints(base_dilation, "base_dilation"),
        "window_dilation": ones if window_dilation is None else ints(window_dilation, "window_dilation"),
    }
    check_windows("reduce_window", shape, padding=((0, 0),) * len(window), **params)
    if isinstance(padding, str):
        extents = [dilated(n, d) for n, d in zip(shape, params["base_dilation"], strict=True)]
        reaches = [dilated(n, d) for n, d in zip(window, params["window_dilation"], strict=True)]
        padding = padtype_to_pads(extents, reaches, params["window_strides"], padding)
    params["padding"] = tuple((operator.index(lo), operator.index(hi)) for lo, hi in padding)
    return params


def _computation_jaxpr(computation, operands, tree) -> ClosedJaxpr:
    avals = [ShapedArray((), get_aval(x).dtype) for x in operands]

    def flat(*args):
        a, b = _halves(args)
        return tree_flatten(computation(tree_unflatten(tree, list(a)), tree_unflatten(tree, list(b))))[0]

    info = DebugInfo("reduce_window", getattr(computation, "__name__", repr(computation)))
    closed, outer = trace_to_closed_jaxpr(flat, avals * 2, info)
    if outer:
        raise TypeError("reduce_window: computation must not use traced values from outside of it")
    got = [a.strip_weak_type() for a in closed.out_avals]
    if got != avals:
        raise TypeError(f"reduce_window: computation must return scalars of types {avals}, got {got}")
    return closed if closed.consts else canonical(closed)


def _single_primitive(closed: ClosedJaxpr) -> str | None:
    """The name of the primitive that is all of a computation on two scalars."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or jaxpr.outvars != jaxpr.eqns[0].outvars:
        return None
    same = set(map(id, jaxpr.eqns[0].invars)) == set(map(id, jaxpr.invars))
    return jaxpr.eqns[0].primitive.name if same else None


def _is_value(x, value) -> bool:
    if isinstance(x, Tracer):
        return False
    return bool(np.asarray(x) == np.asarray(value).astype(get_aval(x).dtype))
