"""Reading elements, the general path: indices out of bounds, traced ones and traced masks, as slices and gathers."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena import lax
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.shapes import position_dtype
from catena.core.trace import Tracer
from catena.lax.positions import as_position
from catena.lax.whole import whole
from catena.lax.windowed import CLIP, FILL_OR_DROP, PROMISE_IN_BOUNDS, GatherScatterMode
from catena.numpy.boundary import SCALARS
from catena.numpy.indexers import Plan, Span, check_not_empty, has_block, is_array, parse, traced_mask
from catena.numpy.indexing import read_by_numpy
from catena.numpy.masked import Selection


def read_any(x, index):
    """``x[index]`` for whatever NumPy does not read."""
    masked = traced_mask(index)
    return _read(x, index) if masked is None else select(x, index, masked)


def read(
    x,
    index,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
):
    """``x.at[index].get(...)``: the general path of reading."""
    if wrap and type(x) is Array and context.trace is None and (mode is None or GatherScatterMode.from_any(mode)):
        value = read_by_numpy(x._value, index)  # what is in bounds
        if value is not None:
            return make_array(value, x._weak)
    masked = traced_mask(index)
    if masked is not None:
        return select(x, index, masked)
    return _get(x, index, mode, fill_value, indices_are_sorted, unique_indices, wrap)


def _read(x, index, mode=None, fill_value=None, indices_are_sorted=False, unique_indices=False, wrap=True):
    mode = PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    shape = x.shape
    tokens = parse(shape, index)
    if context.check_static_indices and mode is PROMISE_IN_BOUNDS:
        check_static(tokens, shape, wrap)
    check_not_empty(tokens, shape)
    if mode is FILL_OR_DROP and not _known_in_bounds(tokens, shape, wrap):
        return _gather(x, tokens, shape, mode, fill_value, indices_are_sorted, unique_indices, wrap)
    if has_block(tokens):
        x, tokens = _slice_spans(x, tokens)
        return _gather(x, tokens, x.shape, mode, None, indices_are_sorted, unique_indices, wrap)
    return _read_basic(x, tokens, wrap, mode)


_get = whole(_read, "get")


def check_static(tokens, shape, wrap: bool):
    """Raise where an integer among the indices is out of bounds, which otherwise reads the nearest element."""
    for item, dim in tokens:
        if isinstance(item, int) and not (-shape[dim] if wrap else 0) <= item < shape[dim]:
            raise IndexError(
                f"index {item} out of bounds for axis {dim} with size {shape[dim]}"
                f"{'' if wrap else ' (wrap_negative_indices=False)'}: jax_check_static_indices is set"
            )


def _known_in_bounds(tokens, shape, wrap: bool) -> bool:
    """Whether it is plain, without looking at data, that all indices are in bounds."""
    for item, dim in tokens:
        if isinstance(item, int):
            if not (-shape[dim] if wrap else 0) <= item < shape[dim]:
                return False
        elif is_array(item):
            return False
    return True


# ---- basic indices: slices, integers, scalars, new axes


def _read_basic(x, tokens, wrap: bool, mode: GatherScatterMode):
    if all(isinstance(t.item, Span) and t.item.whole for t in tokens if t.item is not None):
        return _add_new_axes(x, tokens)
    static = not any(is_array(t.item) for t in tokens)
    if static and (mode is CLIP or _known_in_bounds(tokens, x.shape, wrap)):
        x = _slice_all(x, tokens, wrap)
    else:  # the index itself is written down, so that checks may find it out of bounds
        x, tokens = _slice_spans(x, tokens, strided_only=True)
        x = _dynamic_window(x, tokens, wrap)
    dropped = tuple(t.dim for t in tokens if t.dim is not None and t.dim >= 0 and not isinstance(t.item, Span))
    return _add_new_axes(lax.squeeze(x, dropped) if dropped else x, tokens)


def _add_new_axes(x, tokens):
    """``x`` with the new axes of ``tokens``, whose other axes it has."""
    axes, place = [], 0
    for item, dim in tokens:
        if item is None and dim is None:
            axes.append(place)
        place += (item is None and dim is None) or isinstance(item, Span)
    return lax.expand_dims(x, tuple(axes)) if axes else x


def _clamped(i: int, n: int, wrap: bool) -> int:
    """A static index moved into an axis of ``n`` elements."""
    i = i + n if i < 0 and wrap else i
    return min(max(i, 0), n - 1)


def _slice_all(x, tokens, wrap: bool):
    """Static slices and integers, the latter as windows of one element."""
    spans = {}
    for item, dim in tokens:
        if isinstance(item, int):
            spans[dim] = Span(_clamped(item, x.shape[dim], wrap), 1, 1, x.shape[dim])
        elif isinstance(item, Span):
            spans[dim] = item
    return _apply_spans(x, spans)


def _apply_spans(x, spans: dict):
    """``x`` sliced in some dimensions; negative steps slice forwards, then reverse."""
    if all(s.whole for s in spans.values()):
        return x
    starts, limits, strides, reverse = [0] * x.ndim, list(x.shape), [1] * x.ndim, []
    for dim, (start, step, size, *_) in spans.items():
        if step < 0 and size:
            start, step = start + (size - 1) * step, -step
            reverse.append(dim)
        starts[dim] = start if size else 0
        limits[dim] = start + (size - 1) * step + 1 if size else 0
        strides[dim] = step if size > 1 else 1
    steps = strides != [1] * x.ndim
    if starts != [0] * x.ndim or limits != list(x.shape) or steps or not all(s.for_all for s in spans.values()):
        x = lax.slice(x, starts, limits, strides if steps else None)
    return lax.rev(x, tuple(reverse)) if reverse else x


def _slice_spans(x, tokens, strided_only: bool = False):
    """``x`` with the slices among ``tokens`` applied, and the tokens that are left to apply."""
    spans = {t.dim: t.item for t in tokens if isinstance(t.item, Span) and not (strided_only and t.item.step == 1)}
    tokens = [t._replace(item=Span(0, 1, t.item.size, t.item.size)) if t.dim in spans else t for t in tokens]
    return _apply_spans(x, spans), tokens


def _dynamic_window(x, tokens, wrap: bool):
    """Scalar indices, some traced or out of bounds, and slices of step 1, as one dynamic slice, which clamps."""
    starts, sizes, negative = [0] * x.ndim, list(x.shape), [False] * x.ndim
    for item, dim in tokens:
        if isinstance(item, Span):
            starts[dim], sizes[dim] = item.start if item.size else 0, item.size
        elif item is not None:
            starts[dim] = max(item, 0) if isinstance(item, int) and not wrap else item
            sizes[dim], negative[dim] = 1, wrap
    return lax.dynamic_slice(x, _same_dtype(starts, x.shape), sizes, allow_negative_indices=tuple(negative))


def _same_dtype(starts: list, shape: tuple) -> list:
    """Start indices of one dtype, if several traced ones differ."""
    kinds = {s.dtype for s in starts if isinstance(s, Tracer | Array)}
    if len(kinds) < 2:
        return starts
    width = max(kind.itemsize for kind in kinds)
    dtype = position_dtype(max(shape), np.dtype(np.int64 if width == 8 else np.int32))
    return [as_position(s, dtype) if isinstance(s, Tracer | Array) else s for s in starts]


# ---- advanced indices


def _gather(x, tokens, shape, mode, fill_value, indices_are_sorted, unique_indices, wrap):
    plan = Plan(tokens, shape, wrap)
    if 0 in plan.shape and any(shape[d] < plan.slice_sizes[d] for d in range(len(shape))):
        return lax.full(plan.shape, 0, x.dtype)  # nothing is read, from an axis that has nothing
    result = lax.gather(
        x,
        plan.indices(),
        plan.gather_numbers(),
        tuple(plan.slice_sizes),
        indices_are_sorted=indices_are_sorted or not plan.advanced,
        unique_indices=unique_indices or not plan.advanced,
        mode=mode,
        fill_value=fill_scalar(fill_value),
    )
    return lax.expand_dims(result, tuple(plan.new_axes)) if plan.new_axes else result


def fill_scalar(fill_value):
    """A fill value as a Python scalar (None stays)."""
    if fill_value is None or type(fill_value) in SCALARS:
        return fill_value
    return np.asarray(fill_value).item()


# ---- traced masks


def select(x, index, position: int) -> Selection:
    """``x[index]`` where one item, at ``position``, is a traced mask."""
    part, mask, first, _ = masked_part(x, index, position)
    shape = part.shape[:first] + (mask.size,) + part.shape[first + mask.ndim :]
    return Selection(lax.reshape(part, shape), lax.reshape(mask, (mask.size,)), first, mask)


def masked_part(x, index, position: int) -> tuple:
    """What the other items of an index with a traced mask select, and where the mask lies in it.

    Returns:
      The part, the mask, the first of the part's axes that the mask covers, and the index of the part (None
      where it is all of ``x``).
    """
    entries = [index] if position < 0 else list(index)
    place = max(position, 0)
    mask = entries[place]
    if not _beside(entries, place):
        raise NonConcreteBooleanIndexError(mask, "an index with other arrays, or integers apart from the mask,")
    entries[place : place + 1] = [slice(None)] * mask.ndim
    trivial = all(type(e) is slice and e == slice(None) or e is Ellipsis for e in entries)
    others = tuple(entries)
    part = x if trivial else _read(x, others)
    first = _axis_of_mask(entries, place, part.ndim)
    _check_mask(mask, part.shape[first : first + mask.ndim], place)
    return part, mask, first, None if trivial else others


def _beside(entries, place: int) -> bool:
    """Whether all that is advanced beside the mask are integers next to it."""
    block = [i for i, e in enumerate(entries) if not (e is None or e is Ellipsis or isinstance(e, slice))]
    integers = all(i == place or np.ndim(entries[i]) == 0 and hasattr(entries[i], "__index__") for i in block)
    return integers and block[-1] - block[0] == len(block) - 1


def _axis_of_mask(entries, place: int, rank: int) -> int:
    """The first axis, in the part that the other entries select, that the mask covers."""
    if any(e is Ellipsis for e in entries[:place]):
        return rank - sum(e is None or isinstance(e, slice) for e in entries[place:])
    return sum(e is None or isinstance(e, slice) for e in entries[:place])


def _check_mask(mask, expected, position: int):
    if mask.shape != expected:
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {position}: got {mask.shape}, expected "
            f"{list(expected)}"
        )
