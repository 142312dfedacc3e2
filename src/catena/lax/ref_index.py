"""What an index of a reference means, and how a part of a value is read and written.

A *path* leads from a value to a part of it, step by step: an ``Index`` selects, a ``Permute`` and a ``Reshape`` look at
the same elements otherwise. Integers that are known are part of the path, those that are not are operands, in the order
in which the path mentions them. ``read`` follows a path, ``write`` puts a part back: both are functions of values,
which differentiate and vectorise as such; ``numpy_part`` is the same for memory.

Integers count from the end where they are negative. Scalars that are not known, and windows at unknown places, are
moved inside; arrays of indices read the nearest element where they point outside, and write nothing there.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.context import context
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.named import NamedTuple
from catena.core.slices import Slice, is_static
from catena.core.trace import VALUES, Tracer, leaf_value
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add
from catena.lax.broadcasting import iota_p
from catena.lax.dynamic_slicing import dynamic_slice, dynamic_update_slice
from catena.lax.indexing import gather
from catena.lax.join import concatenate
from catena.lax.positions import from_end
from catena.lax.reshaping import transpose
from catena.lax.scattering import scatter, scatter_add
from catena.lax.shape import broadcast_in_dim, reshape, squeeze
from catena.lax.slicing import slice as static_slice
from catena.lax.windowed import CLIP, FILL_OR_DROP, GatherDimensionNumbers, ScatterDimensionNumbers

SCALAR, ARRAY = "scalar", "array"  # entries whose values are operands


class Span(NamedTuple):
    """``size`` elements from ``start`` on (SCALAR: an operand says where), ``stride`` apart."""

    start: Any
    size: int
    stride: int = 1


class Index(NamedTuple):
    """A step that selects: one entry for each axis, an integer, a Span, SCALAR or ARRAY."""

    entries: tuple

    @property
    def count(self) -> int:
        """The number of operands."""
        return sum(e in (SCALAR, ARRAY) if isinstance(e, str) else is_moving(e) for e in self.entries)

    @property
    def has_arrays(self) -> bool:
        """Whether arrays of indices select."""
        return ARRAY in self.entries

    def text(self, operands: list[str], shape: tuple) -> str:
        """What stands between the brackets, as jaxprs print it; the shape is that of the whole reference."""
        given = iter(operands)
        sizes = shape if len(shape) == len(self.entries) else (None,) * len(self.entries)
        return f"[{','.join(entry_text(e, given, size) for e, size in zip(self.entries, sizes, strict=True))}]"


class Permute(NamedTuple):
    """A step that exchanges axes."""

    permutation: tuple
    count = 0

    def text(self, operands: list[str], shape: tuple) -> str:
        """As jaxprs print it."""
        return f".transpose{self.permutation}"


class Reshape(NamedTuple):
    """A step to another shape."""

    shape: tuple
    count = 0

    def text(self, operands: list[str], shape: tuple) -> str:
        """As jaxprs print it."""
        return f".reshape{self.shape}"


def is_moving(entry) -> bool:
    """Whether an entry is a window at a place that an operand says."""
    return type(entry) is Span and entry.start == SCALAR


# ---- from what stands between the brackets to a step


def parse(shape: tuple, index) -> tuple[tuple, list]:
    """The steps of ``index`` into a value of this shape, and the operands.

    Raises:
      ValueError: there are too many items, or one is out of bounds. TypeError: one is no index.
    """
    items = full_index(shape, index)
    if items is None:
        return (), []
    entries: list = []
    operands: list = []
    for axis, (item, size) in enumerate(zip(items, shape, strict=True)):
        entry, values = entry_of(item, size, axis)
        entries.append(entry)
        operands += values
    if ARRAY not in entries:
        return (Index(tuple(entries)),), operands
    return split_at_arrays(shape, entries, operands)


def full_index(shape: tuple, index) -> tuple | None:
    """One item for each axis; None for all of the value."""
    if index is None or index is Ellipsis or type(index) is tuple and not index:
        return None
    items = index if type(index) is tuple else (index,)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise ValueError("an index of a reference has one ellipsis at most")
    if len(items) - len(dots) > len(shape):
        raise ValueError(f"too many items in the index {index!r} of a reference of shape {shape}")
    place = dots[0] if dots else len(items)
    missing = (slice(None),) * (len(shape) - len(items) + len(dots))
    items = (*items[:place], *missing, *items[place + 1 :])
    return None if all(type(i) is slice and i == slice(None) for i in items) and shape else items


def entry_of(item, size: int, axis: int) -> tuple[Any, list]:
    """What an item selects along an axis of this size, and the operands."""
    if type(item) is slice:
        return span_of(item, size), []
    if isinstance(item, Slice):
        return window_of(item, size, axis)
    if item is None:
        raise ValueError("None among other items of a reference's index is not supported: reshape what was read")
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (*VALUES, np.ndarray)) and not is_static(item):
        kind = "lists of integers must be arrays" if isinstance(item, list) else f"got {item!r} of type {type(item)}"
        raise TypeError(
            f"a reference is indexed by integers, slices, ds(start, size), ... and arrays of integers; {kind}"
        )
    if not isinstance(item, (*VALUES, np.ndarray)) or is_known_scalar(item):
        i = operator.index(item)
        if not -size <= i < size:
            raise ValueError(f"index {i} is out of bounds for axis {axis} of size {size}")
        return i % size, []
    value = leaf_value(item)
    aval = get_aval(value)
    if aval.dtype == np.bool_:
        if isinstance(value, Tracer):
            raise NonConcreteBooleanIndexError(value, "a reference")
        raise IndexError("boolean arrays do not index references: use jnp.nonzero(mask), or jnp.where on what was read")
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"an index of a reference must be of an integer dtype, got {aval.str_short()}")
    return (ARRAY if aval.shape else SCALAR), [value]


def is_known_scalar(item) -> bool:
    """Whether an array is one integer that is known, where nothing is traced."""
    return context.trace is None and not np.ndim(item) and item.dtype.kind in "iu"


def span_of(item: slice, size: int) -> Span:
    step = 1 if item.step is None else operator.index(item.step)
    if step < 1:
        raise ValueError(f"a slice of a reference must have a step of at least 1, got {step}")
    start, stop, step = item.indices(size)
    return Span(start if stop > start else 0, max(-(-(stop - start) // step), 0), step)


def window_of(item: Slice, size: int, axis: int) -> tuple[Span, list]:
    if not is_static(item.size):
        raise TypeError(f"the size of a window into a reference must be known, got {item.size!r}")
    count, stride = operator.index(item.size), operator.index(item.stride)
    extent = max((count - 1) * stride + 1, 0)
    if is_static(item.start):
        start = operator.index(item.start)
        if start < 0 or start + extent > size:
            raise ValueError(f"{item!r} reaches out of bounds for axis {axis} of size {size}")
        return Span(start, count, stride), []
    if extent > size:
        raise ValueError(f"a window of {extent} elements does not fit into axis {axis} of size {size}")
    return Span(SCALAR, count, stride), [leaf_value(item.start)]


def split_at_arrays(shape: tuple, entries: list, operands: list) -> tuple[tuple, list]:
    """Slices beside arrays of indices as a step of their own, so that windows of the other are whole."""
    whole = [type(e) is not Span or e == Span(0, size) for e, size in zip(entries, shape, strict=True)]
    if all(whole):
        return (Index(tuple(entries)),), operands
    spans = [e if type(e) is Span else Span(0, size) for e, size in zip(entries, shape, strict=True)]
    others = [Span(0, e.size) if type(e) is Span else e for e in entries]
    given = iter(operands)
    first, second = [], []
    for e in entries:
        if is_moving(e):
            first.append(next(given))
        elif isinstance(e, str):
            second.append(next(given))
    return (Index(tuple(spans)), Index(tuple(others))), first + second


# ---- shapes


def shape_after(path: tuple, shape: tuple, operand_shapes: list) -> tuple:
    """The shape of the part that a path leads to."""
    shapes = iter(operand_shapes)
    for step in path:
        if type(step) is Permute:
            shape = tuple(shape[i] for i in step.permutation)
        elif type(step) is Reshape:
            shape = step.shape
        else:
            given = [next(shapes) for _ in range(step.count)]
            sizes = tuple(e.size for e in step.entries if type(e) is Span)
            if step.has_arrays:
                block, place = np.broadcast_shapes(*given), place_of_block(step.entries)
                sizes = sizes[:place] + block + sizes[place:]
            shape = sizes
    return shape


def place_of_block(entries: tuple) -> int:
    """Where the axes of the arrays of indices stand: where they are if all that is no slice stands together, else in
    front, as in NumPy.
    """
    places = [i for i, e in enumerate(entries) if type(e) is not Span]
    return places[0] if places[-1] - places[0] == len(places) - 1 else 0


# ---- functions of values


def read(path: tuple, x, operands):
    """The part of ``x`` that the path leads to."""
    operands = list(operands)
    for step in path:
        given, operands = operands[: step.count], operands[step.count :]
        x = take(step, x, given)
    return x


def write(path: tuple, x, operands, part, adding: bool = False):
    """``x`` with the part that the path leads to replaced, or added to."""
    if not path:
        return add(x, part) if adding else part
    step, rest = path[0], path[1:]
    given, others = operands[: step.count], operands[step.count :]
    if rest:
        part = write(rest, take(step, x, given), others, part, adding)
    return put(step, x, given, part, adding and not rest)


def take(step, x, operands):
    if type(step) is Permute:
        return transpose(x, step.permutation)
    if type(step) is Reshape:
        return reshape(x, step.shape)
    if step.has_arrays:
        numbers, indices, sizes = addressed(step, get_aval(x).shape, operands)
        return gather(x, indices, GatherDimensionNumbers(*numbers), sizes, mode=CLIP)
    return picked(windowed(step, x, operands), step.entries)


def put(step, x, operands, part, adding: bool):
    if type(step) is Permute:
        part = transpose(part, tuple(np.argsort(step.permutation).tolist()))
        return add(x, part) if adding else part
    if type(step) is Reshape:
        part = reshape(part, get_aval(x).shape)
        return add(x, part) if adding else part
    if step.has_arrays:
        numbers, indices, _ = addressed(step, get_aval(x).shape, operands)
        function = scatter_add if adding else scatter
        return function(x, indices, part, ScatterDimensionNumbers(*numbers), mode=FILL_OR_DROP)
    kept = tuple(1 if type(e) is not Span else e.size for e in step.entries)
    part = reshape(part, kept)
    strides = [e.stride if type(e) is Span and e.size > 1 else 1 for e in step.entries]
    if 0 in kept:
        return x
    if adding or max(strides, default=1) > 1:
        window = windowed(step, x, operands)
        part = interleaved(window, part, strides, adding)
    return dynamic_update_slice(x, part, starts_of(step, operands))


def starts_of(step: Index, operands) -> list:
    given = iter(operands)
    return [next(given) if e == SCALAR or is_moving(e) else e.start if type(e) is Span else e for e in step.entries]


def extent(entry) -> int:
    """The elements that an entry reaches over."""
    return 1 if type(entry) is not Span else max((entry.size - 1) * entry.stride + 1, 0)


def windowed(step: Index, x, operands):
    """What lies between the first and the last element of each entry."""
    sizes = tuple(map(extent, step.entries))
    if sizes == get_aval(x).shape:
        return x
    starts = starts_of(step, operands)
    if all(type(s) is int for s in starts):
        return static_slice(x, starts, [s + n for s, n in zip(starts, sizes, strict=True)])
    return dynamic_slice(x, starts, sizes)


def picked(window, entries: tuple):
    """The elements of a window that its entries select."""
    strides = [e.stride if type(e) is Span else 1 for e in entries]
    if max(strides, default=1) > 1:
        shape = get_aval(window).shape
        window = static_slice(window, [0] * len(shape), shape, strides)
    return squeeze(window, tuple(i for i, e in enumerate(entries) if type(e) is not Span))


def interleaved(window, part, strides: list, adding: bool):
    """A window with ``part`` at every so many of its elements; axis by axis."""
    axis = next((i for i, s in enumerate(strides) if s > 1), None)
    if axis is None:
        return add(window, part) if adding else part
    shape = get_aval(window).shape
    every = [1] * len(shape)
    every[axis] = strides[axis]
    others = [1 if i == axis else s for i, s in enumerate(strides)]
    inner = interleaved(static_slice(window, [0] * len(shape), shape, every), part, others, adding)
    count = get_aval(inner).shape[axis]
    indices = iota_p.bind(dtype=np.dtype(np.int32), shape=(count, 1), dimension=0) * np.int32(strides[axis])
    windows = tuple(i for i in range(len(shape)) if i != axis)
    numbers = ScatterDimensionNumbers(windows, (axis,), (axis,))
    return scatter(window, indices, inner, numbers, indices_are_sorted=True, unique_indices=True)


def addressed(step: Index, shape: tuple, operands) -> tuple:
    """What arrays of indices address, in the words of gathers: dimension numbers, indices, sizes of windows."""
    given = iter(operands)
    chosen = [i for i, e in enumerate(step.entries) if type(e) is not Span]
    columns = [next(given) if isinstance(e, str) else np.int32(e) for e in step.entries if type(e) is not Span]
    block = np.broadcast_shapes(*[get_aval(c).shape for c in columns])
    dtype = np.dtype(np.int32)
    columns = [from_end(leaf_value(c), shape[i], dtype) for c, i in zip(columns, chosen, strict=True)]
    widest = max((get_aval(c).dtype for c in columns), key=lambda d: d.itemsize)
    columns = [c.astype(widest) for c in columns]
    wide = [broadcast_in_dim(c, (*block, 1), tuple(range(len(block) - get_aval(c).ndim, len(block)))) for c in columns]
    indices = concatenate(wide, len(block)) if len(wide) > 1 else wide[0]
    place, kept = place_of_block(step.entries), len(shape) - len(chosen)
    axes = tuple(i if i < place else i + len(block) for i in range(kept))
    sizes = tuple(1 if i in chosen else n for i, n in enumerate(shape))
    return (axes, tuple(chosen), tuple(chosen)), indices, sizes


# ---- memory


def numpy_part(path: tuple, memory: np.ndarray, operands, writing: bool) -> tuple[np.ndarray, Any] | None:
    """A view of memory and the key in it that the path leads to.

    None where NumPy has no such: a write would go to a copy, or outside.
    """
    operands = [x._value for x in operands]
    key: Any = None
    for step in path:
        if key is not None:
            part = memory[key]
            if writing and part.base is None:
                return None
            memory = np.asarray(part)
        given, operands = operands[: step.count], operands[step.count :]
        if type(step) is Permute:
            memory, key = memory.transpose(step.permutation), None
        elif type(step) is Reshape:
            seen = memory.reshape(step.shape)
            if writing and not np.may_share_memory(seen, memory):
                return None
            memory, key = seen, None
        else:
            key = numpy_key(step, memory.shape, given, writing)
            if key is None:
                return None
    return memory, (Ellipsis if key is None else key)


def numpy_key(step: Index, shape: tuple, operands, writing: bool) -> tuple | None:
    given = iter(operands)
    key: list = []
    for e, size in zip(step.entries, shape, strict=True):
        if type(e) is Span:
            start = inside(next(given), size, extent(e)) if e.start == SCALAR else e.start
            key.append(slice(start, start + extent(e), e.stride))
        elif e == SCALAR:
            key.append(inside(next(given), size, 1))
        elif e == ARRAY:
            i = next(given).astype(np.int64)
            i = np.where(i < 0, i + size, i)
            if i.size and (i.min() < 0 or i.max() >= size):
                if writing or not size:
                    return None
                i = i.clip(0, size - 1)
            key.append(i)
        else:
            key.append(e)
    return tuple(key)


def inside(start, size: int, extent: int) -> int:
    """A start that is known now, moved so that the window lies inside."""
    start = int(start)
    return min(max(start + size if start < 0 else start, 0), size - extent)


# ---- as jaxprs print it


def entry_text(entry, operands, size: int | None) -> str:
    """An entry between the brackets; ``operands`` runs over the names of the operands."""
    if type(entry) is not Span:
        return next(operands) if isinstance(entry, str) else str(entry)
    start = next(operands) if is_moving(entry) else entry.start
    if start == 0 and entry.size == size:
        return ":"
    stop = f"{start}+{extent(entry)}" if isinstance(start, str) else start + extent(entry)
    return f"{start or ''}:{'' if stop == size else stop}{f':{entry.stride}' if entry.stride > 1 else ''}"
