"""What is checked of single operations: indices, divisors, asserted conditions; and which results need no check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena import lax
from catena.core.aval import ShapedArray
from catena.core.structural import (
    broadcast_in_dim_p,
    convert_element_type_p,
    reshape_p,
    slice_p,
    squeeze_p,
    stack_add_p,
    stack_empty_p,
    stop_gradient_p,
    transpose_p,
)
from catena.core.trace import Tracer
from catena.core.zeros import get_aval
from catena.experimental.checkify.checking import check_p
from catena.experimental.checkify.errors import Check, DivisionByZeroError, OOBError
from catena.experimental.checkify.trace import CheckTrace, check_rules, source
from catena.lax.control_flow.stack import stack_read_p, stack_write_p
from catena.lax.order_statistics import order_statistics_p
from catena.lax.scatter_by_function import scatter_apply_p
from catena.lax.windowed import CLIP
from catena.transform.checkpoint import name_p

# ---- what moves, selects or compares numbers makes no NaN of them


def _unchecked(primitive):
    return lambda trace, args, params: primitive.bind(*args, **params)


for _primitive in (
    broadcast_in_dim_p, convert_element_type_p, reshape_p, slice_p, squeeze_p, stop_gradient_p, transpose_p, name_p,
    stack_add_p, stack_empty_p, stack_read_p, stack_write_p, order_statistics_p,
    lax.abs_p, lax.bitcast_convert_type_p, lax.ceil_p, lax.clamp_p, lax.complex_p, lax.concatenate_p, lax.conj_p,
    lax.copy_p, lax.device_put_p, lax.floor_p, lax.imag_p, lax.max_p, lax.min_p, lax.neg_p, lax.nextafter_p,
    lax.optimization_barrier_p,
    lax.real_p, lax.reduce_max_p, lax.reduce_min_p, lax.reduce_precision_p, lax.rev_p, lax.round_p, lax.select_n_p,
    lax.sign_p, lax.sort_p, lax.split_p, lax.top_k_p, lax.approx_top_k_p, lax.tile_p,
):  # fmt: skip
    check_rules[_primitive] = _unchecked(_primitive)


# ---- division


def _divided(primitive):
    """Of what divides by its last operand, or, as ``rsqrt``, by the root of it."""

    def rule(trace: CheckTrace, args, params):
        aval = get_aval(args[-1])
        if DivisionByZeroError in trace.enabled:
            failed = lax.reduce_or(lax.eq(args[-1], np.zeros((), aval.dtype)), tuple(range(aval.ndim)))
            trace.report.add(failed, Check(DivisionByZeroError, source()))
        out = primitive.bind(*args, **params)
        trace.check_numbers(primitive, out)
        return out

    return rule


for _primitive in (lax.div_p, lax.rsqrt_p):
    check_rules[_primitive] = _divided(_primitive)


# ---- indices: each component of an index must leave room for the window that begins there


def check_indices(trace: CheckTrace, shape: tuple, windows: Sequence[int], indices, axes: tuple):
    """Check an array of indices whose last axis has a component for each of ``axes``.

    Arguments:
      trace: who asks.
      shape: that of the array that is indexed.
      windows: the sizes of the windows along its axes.
      indices: the indices.
      axes: the axis that each component addresses.
    """
    aval = get_aval(indices)
    if OOBError not in trace.enabled or not aval.size:
        return
    numbers, outside = out_of_bounds(indices, [shape[a] - windows[a] for a in axes])
    check, flat = index_check(shape, axes, aval.dtype), (aval.size,)

    def first() -> list:
        place = lax.argmax(lax.reshape(outside, flat), 0, np.int32)
        index = lax.dynamic_index_in_dim(lax.reshape(numbers, flat), place, 0, False)
        return [lax.convert_element_type(index, check.kept[0].dtype), lax.rem(place, np.int32(len(axes)))]

    trace.report.add(lax.reduce_or(outside, tuple(range(aval.ndim))), check, first)


def check_starts(trace: CheckTrace, shape: tuple, windows: tuple, starts):
    """Check the corner of one window, in scalars: those that are known to be in bounds cost nothing."""
    if not starts or OOBError not in trace.enabled:
        return
    axes = tuple(range(len(shape)))
    check = index_check(shape, axes, get_aval(starts[0]).dtype)
    failed, kept = np.bool_(False), [np.zeros((), check.kept[0].dtype), np.int32(0)]
    for axis in reversed(axes):
        start, last = starts[axis], shape[axis] - windows[axis]
        if isinstance(start, Tracer) or not 0 <= int(start) <= last:
            number, outside = out_of_bounds(start, last)
            given = lax.convert_element_type(number, check.kept[0].dtype), np.int32(axis)
            kept = [lax.select(outside, new, old) for new, old in zip(given, kept, strict=True)]
            failed = lax.bitwise_or(failed, outside)
    trace.report.add(failed, check, kept)


def index_check(shape: tuple, axes: tuple, dtype) -> Check:
    """The check of indices of this dtype: it keeps one that is out of bounds, and the place of its axis in ``axes``."""
    wide = np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32
    return Check(OOBError, source(), (shape, axes), (ShapedArray((), wide), ShapedArray((), np.int32)))


def out_of_bounds(indices, last) -> tuple:
    """The indices in a dtype that can count, and where they are not between 0 and ``last``, one for each component."""
    dtype = get_aval(indices).dtype
    numbers = lax.convert_element_type(indices, np.int32) if dtype.itemsize < 4 else indices
    aval = get_aval(numbers)
    held = np.iinfo(aval.dtype)
    limits = np.clip(np.asarray(last, np.int64), 0, held.max).astype(aval.dtype)
    outside = lax.gt(numbers, lax.broadcast(limits, aval.shape[:-1]) if limits.ndim else limits)
    if held.min < 0:
        outside = lax.bitwise_or(outside, lax.lt(numbers, np.zeros((), aval.dtype)))
    return numbers, outside


def _gather(trace: CheckTrace, args, params):
    operand, indices = args
    if params["mode"] is not CLIP:
        axes = tuple(params["dimension_numbers"].start_index_map)
        check_indices(trace, get_aval(operand).shape, params["slice_sizes"], indices, axes)
    return lax.gather_p.bind(operand, indices, **params)


check_rules[lax.gather_p] = _gather


def _scatter(primitive):
    def rule(trace: CheckTrace, args, params):
        operand, indices, updates = args[:3]
        shape, n = get_aval(operand).shape, params["dimension_numbers"]
        if params["mode"] is not CLIP:
            single = {*n.inserted_window_dims, *n.operand_batching_dims}
            sizes = iter([get_aval(updates).shape[d] for d in n.update_window_dims])
            windows = [1 if d in single else next(sizes) for d in range(len(shape))]
            check_indices(trace, shape, windows, indices, tuple(n.scatter_dims_to_operand_dims))
        out = primitive.bind(*args, **params)
        trace.check_numbers(primitive, out)
        return out

    return rule


for _primitive in (
    lax.scatter_p, lax.scatter_add_p, lax.scatter_sub_p, lax.scatter_mul_p, lax.scatter_min_p, lax.scatter_max_p,
    scatter_apply_p,
):  # fmt: skip
    check_rules[_primitive] = _scatter(_primitive)


def _dynamic_slice(trace: CheckTrace, args, params):
    check_starts(trace, get_aval(args[0]).shape, params["slice_sizes"], args[1:])
    return lax.dynamic_slice_p.bind(*args, **params)


def _dynamic_update_slice(trace: CheckTrace, args, params):
    check_starts(trace, get_aval(args[0]).shape, get_aval(args[1]).shape, args[2:])
    return lax.dynamic_update_slice_p.bind(*args, **params)


check_rules[lax.dynamic_slice_p] = _dynamic_slice
check_rules[lax.dynamic_update_slice_p] = _dynamic_update_slice


# ---- asserted conditions: errors that are checked here become this report's


def _check(trace: CheckTrace, args, params):
    """Of an error of several checks those count whose categories are looked for."""
    code, *kept = args
    checks = params["checks"]
    wanted = [check.is_wanted(trace.enabled) for check in checks]
    if not all(wanted):
        table = np.array([0, *[i + 1 if w else 0 for i, w in enumerate(wanted)]], np.int32)
        code = lax.dynamic_index_in_dim(table, code, 0, False)
    if any(wanted):
        trace.report.absorb(code, kept, checks)
    return []


check_rules[check_p] = _check
