"""What an index means: the tokens of ``x[...]``, and the plan of the gather or scatter that addresses them.

``parse`` turns whatever stands between the brackets into one token for each position: ``None`` (a new axis),
a ``Span`` (a slice), an ``int``, an array of integers, or an ``Extent`` (a scalar boolean, which is an
advanced index of no dimension). A boolean mask becomes arrays of integers, so it must be known while tracing.

``Plan`` arranges the axes as NumPy does: arrays and, beside them, integers make one block of axes, which
stands where they stand if they are adjacent and in front if not. Spans of step 1 are windows of a gather,
others are batch axes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, live, make_array
from catena.core.dimensions import stand_in
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.named import NamedTuple
from catena.core.shapes import position_dtype
from catena.core.slices import Slice
from catena.core.trace import Tracer, find_concrete
from catena.lax.positions import as_position, constant, from_end
from catena.numpy.boundary import as_plain_array


class Span(NamedTuple):
    """A slice of an axis of ``length``: ``size`` elements, the first at ``start``, ``step`` apart."""

    start: int
    step: int
    size: int
    length: int
    for_all: bool = True  # lengths of the axis it is whole where it is for this one

    @property
    def whole(self) -> bool:
        return self.size == self.length and self.step == 1 and self.for_all


class Extent(NamedTuple):
    """A scalar boolean as an index: an axis of one element (True) or none (False)."""

    size: int


class Token(NamedTuple):
    """One position of an index: its meaning, and the dimension that it addresses (None for new axes and extents)."""

    item: object
    dim: int | None


# ----------------------------------------------------------------------------------------------------
# From an index to tokens


def parse(shape: tuple, index) -> list:
    """The tokens of ``index`` for an array of ``shape``; whole spans stand for the ellipsis and what is left out.

    The ellipsis, where it covers no dimension, still separates advanced indices, as in NumPy: then it is a
    Token of None that is no new axis, marked by dimension -1.
    """
    if isinstance(index, str):
        raise TypeError(f"JAX does not support string indexing; got idx={index!r}")
    if isinstance(index, Sequence) and not isinstance(index, tuple):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead of "
            f"`arr[seq]`, got {index!r}. A list might mean either: x[jnp.array([0, 1])] are the elements 0 and 1 of "
            "the first axis, x[0, 1] is one element by two axes."
        )
    index = index if isinstance(index, tuple) else (index,)
    items = [_item(item, position) for position, item in enumerate(index)]
    counts = [_dimensions(item) for item in items]
    _check_counts(shape, items, sum(counts))
    left_out = len(shape) - sum(counts)
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
        counts.append(0)
    return _assign_dimensions(shape, items, counts, left_out)


def _assign_dimensions(shape, items, counts, left_out) -> list:
    tokens, dim = [], 0
    last = len(items) - 1
    for position, (item, count) in enumerate(zip(items, counts, strict=True)):
        if item is Ellipsis:
            whole = [Token(Span(0, 1, n, n), dim + i) for i, n in enumerate(shape[dim : dim + left_out])]
            tokens += whole or ([Token(None, -1)] if position < last else [])
            dim += left_out
            continue
        tokens += _tokens(item, shape, dim, position)
        dim += count
    return tokens


def _tokens(item, shape, dim: int, position: int) -> list:
    """The tokens of one item, whose first dimension is ``dim``."""
    if item is None:
        return [Token(None, None)]
    if isinstance(item, slice):
        return [Token(_span(item, shape[dim], position), dim)]
    if isinstance(item, Slice):
        return _tokens(_sized(item, shape[dim], position), shape, dim, position)
    if isinstance(item, Extent):
        return [Token(item, None)]
    if isinstance(item, Mask):
        expected = shape[dim : dim + item.value.ndim]
        if item.value.shape != expected:
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {position}: got {item.value.shape}, "
                f"expected {list(expected)}"
            )
        return [Token(where, dim + i) for i, where in enumerate(np.nonzero(item.value))]
    return [Token(item, dim)]


def _sized(item: Slice, n: int, position: int):
    """A slice of known size as a Python slice; where its start is traced, an index array. It stays inside."""
    if item.is_dynamic_size:
        raise IndexError(f"the size of a slice made by ds must be a static integer. Got {item} at position {position}")
    size, stride = operator.index(item.size), operator.index(item.stride)
    span = (size - 1) * stride + 1 if size else 0
    if size < 0 or stride < 1 or span > n:
        raise IndexError(f"{item} at position {position} does not fit into an axis of size {n}")
    if not item.is_dynamic_start:
        start = operator.index(item.start)
        start = min(max(start + n if start < 0 else start, 0), n - span)
        return slice(start, start + span, stride)
    dtype = position_dtype(n, np.dtype(np.int32))
    start = from_end(as_position(item.start, dtype), n)
    start = lax.clamp(constant(0, dtype), start, constant(n - span, dtype))
    return lax.add(start, make_array(np.arange(0, size * stride, stride, dtype=dtype)))


class Mask(NamedTuple):
    """A boolean array of at least one dimension, whose elements are known."""

    value: np.ndarray


def _dimensions(item) -> int:
    """How many dimensions an item addresses."""
    if item is None or item is Ellipsis or isinstance(item, Extent):
        return 0
    return item.value.ndim if isinstance(item, Mask) else 1


def _check_counts(shape, items, count: int):
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if count > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {count} were indexed")


def _item(item, position: int):
    """One item of an index in a canonical form."""
    kind = type(item)
    if item is None or item is Ellipsis or kind is int or kind is slice or kind is Slice:
        return item
    if kind is bool or kind is np.bool_:
        return Extent(int(item))
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if isinstance(item, int | np.integer):
        return int(item)
    if isinstance(item, list | tuple):
        item = np.asarray(item) if item else np.zeros((0,), np.int32)
    return _array_item(_as_array(item, position))


def _as_array(item, position: int):
    if isinstance(item, Array | Tracer | np.ndarray):
        return item
    if isinstance(item, float | complex | np.generic):
        return np.asarray(item)
    if hasattr(item, "__jax_array__"):
        return as_plain_array("indexing", item, position)
    if hasattr(item, "__index__"):
        return np.asarray(operator.index(item))
    if isinstance(item, Sequence):
        raise TypeError(f"{item!r} is no index of elements; jnp.array({item!r}) is, of those at its positions")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid "
        f"indices. Got {item!r}"
    )


def _array_item(item):
    """An array as an item: known scalars become ints, known arrays NumPy arrays, masks their shape or positions."""
    known = find_concrete(item)
    if item.dtype == dtypes.BOOL:
        if known is None:
            raise NonConcreteBooleanIndexError(item)
        value = _numpy(known)
        return Mask(value) if value.ndim else Extent(int(value))
    if not dtypes.is_integer(item.dtype):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {dtypes.dtype_name(item.dtype)}; "
            "convert it, x[i.astype(int)]"
        )
    if known is None:
        return item
    value = _numpy(known)
    return value if value.ndim else int(value)


def _numpy(known) -> np.ndarray:
    return live(known) if isinstance(known, Array) else known


def _span(item: slice, n: int, position: int) -> Span:
    """A slice of an axis of length ``n``."""
    for entry in (item.start, item.stop, item.step):
        if isinstance(entry, Tracer) and find_concrete(entry) is None:
            raise IndexError(
                f"Slice entries must be static integers. Got {item} at position {position}. The length of a slice is "
                "part of a shape. Where only its start varies, take a slice of fixed length: jax.lax.dynamic_slice(x, "
                "(i,), (3,)) is x[i:i+3], jax.lax.dynamic_update_slice writes one; where its length varies, keep the "
                "shape and leave elements out: jnp.where(jnp.arange(len(x)) < n, x, 0); or make what decides a static "
                "argument of jit (static_argnames).\n" + entry.describe_origin()
            )
        if entry is not None and not hasattr(entry, "__index__"):
            raise TypeError(
                f"'{type(entry).__name__}' object cannot be interpreted as an integer; slice entries must be integers, "
                f"got {item} at position {position}"
            )
    start, stop, step = item.indices(n)
    for_all = not stand_in() or item.start in (None, 0) and item.stop is None
    return Span(start, step, len(range(start, stop, step)), n, for_all)


def traced_mask(index):
    """The one traced boolean array in ``index``, as its position (-1: it is the index), or None."""
    if type(index) is not tuple:
        return -1 if _is_traced_mask(index) else None
    found = [i for i, item in enumerate(index) if _is_traced_mask(item)]
    return found[0] if len(found) == 1 else None


def _is_traced_mask(item) -> bool:
    return isinstance(item, Tracer) and item.dtype == dtypes.BOOL and find_concrete(item) is None


# ----------------------------------------------------------------------------------------------------
# From tokens to a gather or scatter


def is_array(item) -> bool:
    """Whether a token's item is an array of integers, known or traced."""
    return not (item is None or isinstance(item, int | Span | Extent))


def has_block(tokens) -> bool:
    """Whether there is an advanced index, so that NumPy's block of axes exists."""
    return any(isinstance(t.item, Extent) or (is_array(t.item) and t.item.ndim) for t in tokens)


def check_not_empty(tokens, shape):
    """Integers, also traced ones, cannot address an axis without elements."""
    for item, dim in tokens:
        single = isinstance(item, int) or (is_array(item) and item.ndim == 0)
        if single and shape[dim] == 0:
            raise IndexError(f"index is out of bounds for axis {dim} with size 0")


class Component(NamedTuple):
    """One component of the index vectors: positions in ``dim``, whose last axis is the batch axis before ``end``."""

    dim: int
    value: object
    end: int


class Plan:
    """The axes of ``x[...]``, and what a gather or scatter needs to address them.

    ``shape`` is the shape of the result, ``new_axes`` are the axes in it that came from None. ``window_dims``
    are the result's axes (without new ones) that run over windows; ``batch_shape`` is the shape of the
    others.
    """

    def __init__(self, tokens: list, shape: tuple, wrap: bool = True):
        self.operand_shape, self.wrap = shape, wrap
        self.slice_sizes = [1] * len(shape)
        self.collapsed, self.components = [], []
        self.axes, self.window_dims, self.batch_shape, self.new_axes = [], [], [], []
        self.advanced = has_block(tokens)
        self._lay_out(tokens)
        self.shape, self.batch_shape = tuple(self.axes), tuple(self.batch_shape)

    def _lay_out(self, tokens):
        block = [i for i, t in enumerate(tokens) if self.advanced and _in_block(t.item)]
        first = block[0] if block else None
        if block and block[-1] - first != len(block) - 1:  # not adjacent: the block goes in front
            first = None
            self._add_block([tokens[i] for i in block])
        for i, token in enumerate(tokens):
            if i == first:
                self._add_block([tokens[i] for i in block])
            if i not in block:
                self._add(token)

    def _add_block(self, block: list):
        self._add_batch_axes(lax.broadcast_shapes(*(_extent_shape(t.item) for t in block)))
        for item, dim in block:
            if dim is not None:
                self._add_component(dim, item)

    def _add_batch_axes(self, sizes):
        self.batch_shape += sizes
        self.axes += sizes

    def _add_component(self, dim: int, value):
        self.collapsed.append(dim)
        self.components.append(Component(dim, value, len(self.batch_shape)))

    def _add(self, token: Token):
        item, dim = token
        if item is None:
            if dim is None:
                self.new_axes.append(len(self.axes))
                self.axes.append(1)
        elif not isinstance(item, Span):  # a scalar
            self._add_component(dim, item)
        elif item.step == 1:
            self._add_window(item, dim)
        else:
            self._add_batch_axes([item.size])
            self._add_component(dim, item.start + item.step * np.arange(item.size))

    def _add_window(self, span: Span, dim: int):
        self.window_dims.append(len(self.axes) - len(self.new_axes))
        self.axes.append(span.size)
        self.slice_sizes[dim] = span.size
        if not span.whole:
            self.components.append(Component(dim, span.start if span.size else 0, 0))

    # ---- the array of indices

    def indices(self):
        """The array of index vectors."""
        dtype = self._index_dtype()
        columns = [self._column(component, dtype) for component in self.components]
        rank = len(self.batch_shape)
        if not columns:
            return np.zeros((*self.batch_shape, 0), dtype)
        if all(isinstance(c, np.ndarray) for c in columns):
            if len(columns) == 1 and not rank:
                return lax.broadcast_in_dim(make_array(columns[0]), (1,), ())
            return make_array(np.stack([np.broadcast_to(c, self.batch_shape) for c in columns], -1))
        columns = [self._spread(c) for c in columns]
        return columns[0] if len(columns) == 1 else lax.concatenate(columns, rank)

    def _spread(self, column):
        """A component for every batch position, with an axis for the index vectors."""
        shape = (*self.batch_shape, 1)
        if isinstance(column, np.ndarray):
            return make_array(np.broadcast_to(column[..., None], shape))
        lead = len(self.batch_shape) - column.ndim
        return lax.broadcast_in_dim(column, shape, tuple(range(lead, len(self.batch_shape))))

    def _index_dtype(self) -> np.dtype:
        """The dtype of the indices: that of the arrays if they agree on a wide signed one, else the default
        int; 64 bits wide where an axis is longer than that can count.
        """
        longest = max((self.operand_shape[c.dim] for c in self.components), default=0)
        return position_dtype(longest, self._given_dtype())

    def _given_dtype(self) -> np.dtype:
        kinds = {c.value.dtype for c in self.components if isinstance(c.value, Array | Tracer)}
        if len(kinds) == 1 and (kind := kinds.pop()).itemsize >= 4 and dtypes.KIND[kind] == "i":
            return kind
        return dtypes.python_scalar_dtype(int)[0]

    def _column(self, component: Component, dtype):
        """One component of the indices: negative ones counted from the end, axes where they belong."""
        dim, value, end = component
        n = self.operand_shape[dim]
        after = len(self.batch_shape) - end
        if isinstance(value, Array | Tracer):
            column = from_end(value, n, dtype) if self.wrap else as_position(value, dtype)
            return lax.expand_dims(column, tuple(range(-after, 0))) if column.ndim and after else column
        value = np.asarray(value)
        if dtypes.KIND[value.dtype] == "u":  # what is too large for a position is not one from the end
            value = np.minimum(value, min(np.iinfo(value.dtype).max, np.iinfo(np.int64).max))
        value = value.astype(np.int64, copy=False)
        value = np.where(value < 0, value + n, value) if self.wrap else value
        column = np.asarray(np.clip(value, -1, np.iinfo(dtype).max)).astype(dtype)
        return column.reshape(column.shape + (1,) * after) if column.ndim else column

    # ---- dimension numbers

    def _index_map(self) -> tuple:
        return tuple(c.dim for c in self.components)

    def gather_numbers(self) -> lax.GatherDimensionNumbers:
        return lax.GatherDimensionNumbers(tuple(self.window_dims), tuple(sorted(self.collapsed)), self._index_map())

    def scatter_numbers(self) -> lax.ScatterDimensionNumbers:
        return lax.ScatterDimensionNumbers(tuple(self.window_dims), tuple(sorted(self.collapsed)), self._index_map())


def _in_block(item) -> bool:
    return isinstance(item, int | Extent) or is_array(item)


def _extent_shape(item) -> tuple:
    if isinstance(item, Extent):
        return (item.size,)
    return () if isinstance(item, int) else item.shape
