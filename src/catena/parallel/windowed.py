"""Operations whose parts depend on where they lie: how they are computed in parts all the same.

What is made from nothing, a part makes from its own position on: random numbers are the same however they are split.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from catena.core import dtypes
from catena.core.factors import Factor
from catena.core.named import NamedTuple
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add, mul, sub
from catena.lax.bitwise import bitwise_and
from catena.lax.comparison import clamp, eq, ge, lt, select_n
from catena.lax.convert import convert_element_type
from catena.lax.exchanges import all_gather
from catena.lax.indexing import GatherScatterMode
from catena.lax.named_axes import axis_index
from catena.lax.reductions import reduce_max, reduce_min, reduce_sum
from catena.lax.shape import broadcast_in_dim, iota, reshape
from catena.parallel.choice import Choice
from catena.parallel.halos import elements_sent, fetched, halo, of_device
from catena.random.dtype import U32
from catena.random.kernels import is_positional
from catena.random.primitives import random_unwrap_p
from catena.transform.vmap import vmap


def as_they_are(eqn, factors: list) -> list:
    """The factors of the table."""
    return factors


class Window(NamedTuple):
    """How an operation is computed in parts along factors whose parts depend on each other.

    Arguments:
      price: ``price(partitioner, eqn, way)``: what it sends; infinite where it cannot be done.
      run: ``run(partitioner, eqn, way, xs, params, names)``: the results for operands as the way has them; ``params``
        are those for parts, ``names`` split these factors.
      kinds: the kinds of these factors.
      sums: whether the parts are terms of the results.
      factors: ``factors(eqn, factors)``: all of its factors, given those of the table.
    """

    price: Callable
    run: Callable
    kinds: tuple = ("window",)
    sums: bool = False
    factors: Callable = as_they_are


def split_names(window: Window, factors: list, way: Choice) -> tuple:
    """The names that split factors whose parts depend on each other."""
    return tuple(n for f, names in zip(factors, way.names, strict=True) if f.kind in window.kinds for n in names)


def is_split(window: Window, factors: list, way: Choice) -> bool:
    """Whether there are such."""
    return bool(split_names(window, factors, way))


def free(p, eqn, way: Choice) -> float:
    """It sends nothing."""
    return 0.0


def first(names: tuple, size: int):
    """The position at which this device's part begins, of ``size`` elements each."""
    return mul(axis_index(names), np.int32(size)) if names else np.int32(0)


def positions(p, eqn, way: Choice, xs, params, names) -> list:
    """``iota``: numbers from the beginning of the part on."""
    (split,), (out,) = way.results, eqn.outvars
    local, axis = p.local_aval(out.aval, split), params["dimension"]
    part = eqn.primitive.bind(**{**params, "shape": local.shape})
    start = convert_element_type(first(split[axis], local.shape[axis]), local.dtype)
    return [add(part, broadcast_in_dim(start, local.shape, ()))]


def can_draw(p, eqn, way: Choice) -> float:
    """Numbers are drawn in parts where the generator counts, from one key."""
    (keys,), (out,) = eqn.invars, eqn.outvars
    counts = is_positional(eqn.own_params["impl"]) and eqn.own_params.get("partitionable", True)
    return 0.0 if counts and not keys.aval.ndim and out.aval.size < 2**32 else math.inf


def drawn(p, eqn, way: Choice, xs, params, names) -> list:
    """``random_bits``: each row that lies in one piece in the whole is drawn from its position on."""
    (split,), (out,), impl = way.results, eqn.outvars, params["impl"]
    shape, local = out.aval.shape, p.local_aval(out.aval, split).shape
    inner = max(axis for axis, names in enumerate(split) if names)
    count = math.prod(local[inner:])
    start = broadcast_in_dim(np.uint32(0), local[:inner], ())
    for axis in range(inner + 1):
        stride = np.uint32(math.prod(shape[axis + 1 :]))
        begins = convert_element_type(first(split[axis], local[axis]), U32)
        own = add(iota(U32, local[axis]), begins) if axis < inner else begins
        steps = broadcast_in_dim(mul(own, stride), local[:inner], (axis,) if axis < inner else ())
        start = add(start, steps)
    words = random_unwrap_p.bind(xs[0], impl=impl)
    draw = lambda low: impl.bits_at(words, params["bit_width"], np.uint32(0), low, count)  # noqa: E731
    return [reshape(vmap(draw)(reshape(start, (math.prod(local[:inner]),))), local)]


# ---- windows that slide


def steps_of(p, eqn, way: Choice, x, out, spatial: list) -> list:
    """For axes of ``x`` that are split, and along which a window slides: the axis, its names, what is needed of others,
    and how many elements a device reads. ``spatial`` has for each the axes of operand and result, the window's extent,
    its step, and the padding in front.
    """
    found = []
    for axis, at, extent, step, low in spatial:
        names = way.operands[0][axis]
        if names:
            ways, size = p.ways(names), out.shape[at] // p.ways(names)
            length = (size - 1) * step + extent
            begins = [k * size * step - low for k in range(ways)]
            found.append((axis, names, halo(begins, length, x.shape[axis] // ways, (0, x.shape[axis])), length, begins))
    return found


def price_of(spatial: Callable) -> Callable:
    """The price of halos."""

    def price(p, eqn, way: Choice) -> float:
        x, out = eqn.invars[0].aval, eqn.outvars[0].aval
        axes = spatial(eqn)
        if axes is None:
            return math.inf
        size, total = p.part_size(x, way.operands[0]), 0.0
        for axis, names, found, _, _ in steps_of(p, eqn, way, x, out, axes):
            total += size * elements_sent(found, p.ways(names)) / (x.shape[axis] // p.ways(names))
        return total

    return price


def with_halos(p, eqn, way: Choice, xs, spatial: list, filling) -> list:
    """The operands with what the first one needs of its neighbours, padded at the ends of the whole."""
    x, out = eqn.invars[0].aval, eqn.outvars[0].aval
    row = xs[0]
    for axis, names, found, length, begins in steps_of(p, eqn, way, x, out, spatial):
        p.tell_halo(found, row, axis, names, p.value(x, None, None), eqn, 0)
        ways, n = p.ways(names), x.shape[axis]
        row = fetched(row, axis, names, found, length, ways)
        where = add(iota(np.int32, length), of_device(begins, names))
        inside = bitwise_and(ge(where, np.int32(0)), lt(where, np.int32(n)))
        shape = get_aval(row).shape
        row = select_n(broadcast_in_dim(inside, shape, (axis,)), broadcast_in_dim(filling, shape, ()), row)
    return [row, *xs[1:]]


def convolved(eqn) -> list | None:
    """The axes of space of a convolution, where nothing stands between elements of its operand."""
    params, numbers = eqn.own_params, eqn.own_params["dimension_numbers"]
    if any(d != 1 for d in params["lhs_dilation"]):
        return None
    kernel = [eqn.invars[1].aval.shape[a] for a in numbers.rhs_spec[2:]]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, params["rhs_dilation"], strict=True)]
    lows = [low for low, _ in params["padding"]]
    axes = zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True)
    return [(a, b, *rest) for (a, b), *rest in zip(axes, extents, params["window_strides"], lows, strict=True)]


def convolution(p, eqn, way: Choice, xs, params, names) -> list:
    spatial = convolved(eqn)
    zero = np.zeros((), eqn.invars[0].aval.dtype)
    own = [(0, 0) if way.operands[0][a] else pair for (a, *_), pair in zip(spatial, params["padding"], strict=True)]
    rows = with_halos(p, eqn, way, xs, spatial, zero)
    return [eqn.primitive.bind(*rows, **{**params, "padding": tuple(own)})]


def pooled(eqn) -> list | None:
    """The axes of a reduction over windows, where nothing stands between elements."""
    params = eqn.own_params
    dilated = [*params["base_dilation"], *params.get("window_dilation", ())]
    if any(d != 1 for d in dilated):
        return None
    lows = [low for low, _ in params["padding"]]
    rows = zip(params["window_dimensions"], params["window_strides"], lows, strict=True)
    return [(a, a, *rest) for a, rest in enumerate(rows)]


def filling_of(eqn) -> np.ndarray:
    """What changes no maximum, minimum or sum."""
    dtype = eqn.invars[0].aval.dtype
    if eqn.primitive.name == "reduce_window_sum":
        return np.zeros((), dtype)
    sign = -1 if eqn.primitive.name == "reduce_window_max" else 1
    if dtypes.is_inexact(dtype):
        return np.asarray(sign * np.inf, dtype)
    return np.asarray(dtypes.iinfo(dtype).min if sign < 0 else dtypes.iinfo(dtype).max, dtype)


def pooling(p, eqn, way: Choice, xs, params, names) -> list:
    own = [(0, 0) if names else pair for names, pair in zip(way.operands[0], params["padding"], strict=True)]
    rows = with_halos(p, eqn, way, xs, pooled(eqn), filling_of(eqn))
    return [eqn.primitive.bind(*rows, **{**params, "padding": tuple(own)})]


# ---- where something is largest


def rows_of_largest(p, eqn, way: Choice) -> float:
    """Every device sends its largest elements, and where they are."""
    size = p.part_size(eqn.outvars[0].aval, way.results[0])
    itemsize = eqn.outvars[0].aval.dtype.itemsize
    ways = p.ways(way.operands[0][eqn.own_params["axes"][0]])
    return size * (1 + eqn.invars[0].aval.dtype.itemsize / itemsize) * (ways - 1)


def largest(p, eqn, way: Choice, xs, params, names) -> list:
    """``argmax`` and ``argmin``: of each part, then of the parts' extrema; the first one wins, and NaN."""
    (x,), (axis,) = xs, params["axes"]
    aval, own = get_aval(x), eqn.primitive.bind(x, **params)
    place = add(own, convert_element_type(first(names, aval.shape[axis]), get_aval(own).dtype))
    extremum = (reduce_max if eqn.primitive.name == "argmax" else reduce_min)(x, (axis,))
    rows = [all_gather(v, names, axis=0) for v in (extremum, place)]
    for v in (extremum, place):
        size = get_aval(v).size * get_aval(v).dtype.itemsize * (p.ways(names) - 1)
        p.tell("all_gather", names, size, eqn, f"{eqn.primitive} along axes that are split")
    device = eqn.primitive.bind(rows[0], **{**params, "axes": (0,)})
    shape = get_aval(rows[1]).shape
    here = eq(iota_of(get_aval(device).dtype, shape), broadcast_in_dim(device, shape, tuple(range(1, len(shape)))))
    zero = broadcast_in_dim(np.zeros((), get_aval(place).dtype), shape, ())
    return [reduce_sum(select_n(here, zero, rows[1]), (0,))]


def iota_of(dtype, shape: tuple):
    """For each element its position along the first axis."""
    return broadcast_in_dim(iota(dtype, shape[0]), shape, (0,))


# ---- rows by their numbers


def rows_gathered(eqn, factors: list) -> list:
    """A gather of single rows: the axis that they are taken from is one whose parts give terms of the result."""
    numbers, sizes, operand = eqn.own_params["dimension_numbers"], eqn.own_params["slice_sizes"], eqn.invars[0].aval
    axes = numbers.start_index_map
    if len(axes) != 1 or sizes[axes[0]] != 1 or axes[0] not in numbers.collapsed_slice_dims:
        return factors
    own = [f for f in factors if f.operands[0] != axes[0]]
    return [*own, Factor(operand.shape[axes[0]], (axes[0], None), (None,), "whole")]


def can_add(p, eqn, way: Choice) -> float:
    """Terms can be added up of numbers, where it is said what stands for rows that do not exist."""
    out, fills = eqn.outvars[0].aval, eqn.own_params["mode"] is GatherScatterMode.FILL_OR_DROP
    numeric = not out.extended and out.dtype != bool
    return 0.0 if numeric and not (fills and eqn.own_params["fill_value"] is None) else math.inf


def taken(p, eqn, way: Choice, xs, params, names) -> list:
    """``gather``: each device takes the rows that it has; the others are zero. What stands for rows that do not exist,
    the first one has.
    """
    (x, indices), (axis,) = xs, params["dimension_numbers"].start_index_map
    out = p.local_aval(eqn.outvars[0].aval, way.results[0])
    count, part = eqn.invars[0].aval.shape[axis], get_aval(x).shape[axis]
    offsets = params["dimension_numbers"].offset_dims
    batch = tuple(a for a in range(out.ndim) if a not in offsets)
    wide = lambda v: broadcast_in_dim(reshape(v, get_aval(v).shape[:-1]), out.shape, batch)  # noqa: E731
    exist = bitwise_and(ge(indices, constant(indices, 0)), lt(indices, constant(indices, count)))
    indices = clamp(constant(indices, 0), indices, constant(indices, count - 1))
    begins = convert_element_type(first(names, part), get_aval(indices).dtype)
    own = sub(indices, broadcast_in_dim(begins, get_aval(indices).shape, ()))
    within = bitwise_and(ge(own, constant(own, 0)), lt(own, constant(own, part)))
    rows = eqn.primitive.bind(x, clamp(constant(own, 0), own, constant(own, part - 1)), **params)
    zeros = broadcast_in_dim(np.zeros((), out.dtype), out.shape, ())
    rows = select_n(wide(within), zeros, rows)
    if params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return [rows]
    fill = broadcast_in_dim(np.asarray(params["fill_value"], out.dtype), out.shape, ())
    here = broadcast_in_dim(eq(axis_index(names), np.int32(0)), out.shape, ())
    return [select_n(wide(exist), select_n(here, zeros, fill), rows)]


def constant(like, number: int) -> np.ndarray:
    """A number of the dtype of an array, as far as this holds it."""
    dtype = get_aval(like).dtype
    return np.asarray(min(number, dtypes.iinfo(dtype).max), dtype)


def scattered(p, eqn, way: Choice, xs, params, names) -> list:
    """``scatter-add``: each device adds what it has; what was there before, the first one has."""
    operand, *rest = xs
    aval = get_aval(operand)
    here = broadcast_in_dim(eq(axis_index(names), np.int32(0)), aval.shape, ())
    before = select_n(here, broadcast_in_dim(np.zeros((), aval.dtype), aval.shape, ()), operand)
    return [eqn.primitive.bind(before, *rest, **params)]


WINDOWED = {
    "iota": Window(free, positions),
    "random_bits": Window(can_draw, drawn),
    "conv_general_dilated": Window(price_of(convolved), convolution),
    **dict.fromkeys(["reduce_window_max", "reduce_window_min", "reduce_window_sum"], Window(price_of(pooled), pooling)),
    **dict.fromkeys(["argmax", "argmin"], Window(rows_of_largest, largest, ("whole",))),
    "gather": Window(can_add, taken, ("whole",), True, rows_gathered),
    "scatter-add": Window(free, scattered, ("whole",), True),
}
