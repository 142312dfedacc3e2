"""How gathers and scatters address an operand: windows at positions read from an array of indices.

First the words in which both are described (modes and dimension numbers) and the checks they share; then
``Addressing``, which turns an array of indices into what NumPy can index with.

The *work layout* of windows has, in this order: the batch axes (those of the indices without their last),
the window axes of the operand's indexed dimensions, and the dimensions that are not indexed. ``to_public``
is the permutation from it to the layout of a gather's result or a scatter's updates.
"""

from __future__ import annotations

import enum
from functools import lru_cache

import numpy as np

from catena.core import dtypes
from catena.core.named import NamedTuple


class GatherScatterMode(enum.Enum):
    """What happens to windows that do not lie wholly in the operand.

    ``CLIP`` moves them inside. ``FILL_OR_DROP`` makes gathers return a fill value and scatters skip the
    update. ``PROMISE_IN_BOUNDS`` says that there are none; here such gathers clip and such scatters drop, so
    that a broken promise gives a wrong number and not a wrong read. ``ONE_HOT`` is for
    ``take_along_axis`` only: gathers refuse it, scatters drop.

    >>> GatherScatterMode.from_any("fill")
    <GatherScatterMode.FILL_OR_DROP: 2>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode that a string, a mode or None (fill or drop) stands for; ValueError for any other."""
        if isinstance(s, GatherScatterMode):
            return s
        if s in _MODES:
            return _MODES[s]
        names = ", ".join(repr(mode) for mode in _MODES if mode is not None)
        raise ValueError(f'Unknown gather mode "{s}"; the modes are {names}')


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}
CLIP, FILL_OR_DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS = GatherScatterMode.PROMISE_IN_BOUNDS
MODE_NAMES = {CLIP: "clip", FILL_OR_DROP: "fill", PROMISE_IN_BOUNDS: "promise"}


class GatherDimensionNumbers(NamedTuple):
    """How a gather's operand, indices and result correspond.

    ``offset_dims``: the result's axes that run over windows. ``collapsed_slice_dims``: operand dimensions,
    with windows of size 1, that have no axis in the result. ``start_index_map``: the operand dimension that
    each component of an index addresses. ``operand_batching_dims`` and ``start_indices_batching_dims``:
    pairs of dimensions that run together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How a scatter's operand, indices and updates correspond.

    ``update_window_dims``: the axes of the updates that run over windows. ``inserted_window_dims``: operand
    dimensions, with windows of size 1, that have no axis in the updates. ``scatter_dims_to_operand_dims``:
    the operand dimension that each component of an index addresses. ``operand_batching_dims`` and
    ``scatter_indices_batching_dims``: pairs of dimensions that run together.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


# ------------------------------------------------------------------------------------------------------------
# Checks that gathers and scatters share


def check_sorted(dims, op: str, name: str):
    if list(dims) != sorted(dims):
        raise TypeError(f"{name} in {op} op must be sorted; got {tuple(dims)}")


def check_unique(dims, op: str, name: str):
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name} in {op} op must not repeat; got: {tuple(dims)}.")


def check_range(dims, rank: int, op: str, name: str):
    for d in dims:
        if not 0 <= d < rank:
            raise TypeError(f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: {d}.")


def check_disjoint(a, b, op: str, names: tuple):
    if set(a) & set(b):
        raise TypeError(f"{names[0]} and {names[1]} in {op} op must be disjoint, got {tuple(a)} and {tuple(b)}.")


def check_batching(operand_shape, indices_shape, operand_dims, indices_dims, op: str, names: tuple):
    """Batching dimensions must pair off, be in range, and agree in size."""
    check_unique(operand_dims, op, names[0])
    check_range(operand_dims, len(operand_shape), op, names[0])
    check_sorted(operand_dims, op, names[0])
    check_unique(indices_dims, op, names[1])
    check_range(indices_dims, len(indices_shape) - 1, op, names[1])
    if len(operand_dims) != len(indices_dims):
        raise TypeError(
            f"{op.capitalize()} op requires equal numbers of {names[0]} and {names[1]}, got {tuple(operand_dims)} and "
            f"{tuple(indices_dims)}."
        )
    sizes = tuple(operand_shape[d] for d in operand_dims), tuple(indices_shape[d] for d in indices_dims)
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"{op.capitalize()} op requires operand batching dimensions and indices batching dimensions to have the "
            f"same shape, got {sizes[0]} and {sizes[1]}."
        )


def check_index_map(index_map, rank: int, indices_shape, op: str, name: str):
    index_size = indices_shape[-1]
    if len(index_map) != index_size:
        raise TypeError(
            f"{op.capitalize()} op has {len(index_map)} elements in {name} and the bound of dimension "
            f"index_vector_dim={len(indices_shape) - 1} of indices is {index_size}. These two numbers "
            "must be equal."
        )
    for i, d in enumerate(index_map):
        if not 0 <= d < rank:
            mapping = f"Invalid {name}" if op == "gather" else f"Invalid {name} mapping"
            raise TypeError(f"{mapping}; domain is [0, {rank}), got: {i}->{d}.")
    check_unique(index_map, op, name)


def check_integer_indices(indices, op: str):
    if not dtypes.is_integer(indices.dtype):
        raise ValueError("indices must have an integer type")
    if not indices.shape:
        raise TypeError(
            f"{op.capitalize()} index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is 0 and "
            f"{op} index leaf dimension is -1."
        )


def shift(dims, by: int = 1) -> tuple:
    """Dimension numbers after ``by`` new dimensions in front."""
    return tuple(d + by for d in dims)


def check_scatter(operand_shape, indices_shape, updates_shape, n: ScatterDimensionNumbers):
    """TypeError where the dimension numbers make no sense for these shapes."""
    rank, op = len(operand_shape), "scatter"
    expected = len(indices_shape) - 1 + len(n.update_window_dims)
    if len(updates_shape) != expected:
        raise TypeError(f"Updates tensor must be of rank {expected}; got {len(updates_shape)}.")
    for dims, bound, name in (
        (n.update_window_dims, len(updates_shape), "update_window_dims"),
        (n.inserted_window_dims, rank, "inserted_window_dims"),
    ):
        check_sorted(dims, op, name)
        check_unique(dims, op, name)
        check_range(dims, bound, op, name)
    names = "operand_batching_dims", "scatter_indices_batching_dims"
    check_batching(operand_shape, indices_shape, n.operand_batching_dims, n.scatter_indices_batching_dims, op, names)
    check_disjoint(n.inserted_window_dims, n.operand_batching_dims, op, ("inserted_window_dims", names[0]))
    to_operand = "scatter_dims_to_operand_dims"
    check_disjoint(n.scatter_dims_to_operand_dims, n.operand_batching_dims, op, (to_operand, names[0]))
    window_rank = len(n.update_window_dims) + len(n.inserted_window_dims) + len(n.operand_batching_dims)
    if window_rank != rank:
        raise TypeError(
            f"Scatter op has window of size {window_rank}, and operand has rank {rank}; the sizes of "
            "update_window_dims, inserted_window_dims and operand_batching_dims must add up to the operand's "
            "rank."
        )
    check_index_map(n.scatter_dims_to_operand_dims, rank, indices_shape, op, to_operand)
    for axis, d in zip(n.update_window_dims, _window_dims(rank, n), strict=True):
        if updates_shape[axis] > operand_shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding "
                f"dimensions of operand. For dimension {axis}, updates bound is {updates_shape[axis]}, operand bound "
                f"is {operand_shape[d]}."
            )
    scatter_axes = (d for d in range(len(updates_shape)) if d not in n.update_window_dims)
    for axis, size in zip(scatter_axes, indices_shape[:-1], strict=True):
        if updates_shape[axis] != size:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
                f"dimensions of scatter indices. For scatter dimension {axis}, updates bound is {updates_shape[axis]}, "
                f"indices bound is {size}."
            )


def _window_dims(rank: int, n: ScatterDimensionNumbers) -> list:
    """The operand dimensions that updates have an axis for, in order."""
    return [d for d in range(rank) if d not in n.inserted_window_dims and d not in n.operand_batching_dims]


def slice_sizes_of(operand_shape, updates_shape, n: ScatterDimensionNumbers) -> tuple:
    """The shape of the windows: one size for each operand dimension."""
    sizes = [1] * len(operand_shape)
    for axis, d in zip(n.update_window_dims, _window_dims(len(operand_shape), n), strict=True):
        sizes[d] = updates_shape[axis]
    return tuple(sizes)


# ------------------------------------------------------------------------------------------------------------
# Addressing


class Numbers(NamedTuple):
    """The common form of gather and scatter dimension numbers, with the sizes of the windows."""

    window_dims: tuple  # axes of the result (updates) that run over windows
    collapsed: tuple  # operand dimensions whose windows of one element have no axis
    index_map: tuple  # the operand dimension that each component of an index addresses
    operand_batching: tuple
    indices_batching: tuple
    slice_sizes: tuple


class Addressing:
    """Where the elements of windows lie in an operand, for given shapes and dimension numbers."""

    def __init__(self, operand_shape: tuple, indices_shape: tuple, numbers: Numbers):
        self.operand_shape, self.numbers = operand_shape, numbers
        self.batch_shape = indices_shape[:-1]
        sizes = numbers.slice_sizes
        dropped = {*numbers.collapsed, *numbers.operand_batching}
        rank = len(operand_shape)
        self.indexed = tuple(sorted({*numbers.index_map, *numbers.operand_batching}))
        self.rest = tuple(d for d in range(rank) if d not in self.indexed)
        self.windows = tuple(d for d in self.indexed if d not in dropped)  # indexed dimensions with a window axis
        self.kept_rest = tuple(d for d in self.rest if d not in dropped)
        self.limits = tuple(operand_shape[d] - sizes[d] for d in numbers.index_map)
        self.index_shape = self.batch_shape + tuple(sizes[d] for d in self.windows)
        self.work_shape = self.index_shape + tuple(sizes[d] for d in self.kept_rest)
        self.to_public = self._permutation(dropped)
        self.from_public = tuple(int(i) for i in np.argsort(self.to_public))
        self.shape = tuple(self.work_shape[i] for i in self.to_public)
        self.mask_shape = self._mask_shape()
        # Not indexed but narrower windows start at 0; a collapsed dimension that is not indexed is read at 0.
        self.rest_slices = tuple(0 if d in dropped else slice(0, sizes[d]) for d in self.rest)
        self.trims = any(s == 0 or s.stop < operand_shape[d] for s, d in zip(self.rest_slices, self.rest, strict=True))
        self.leading = self.indexed == tuple(range(len(self.indexed)))
        # Whether reading is one ``take`` whose clipping of single positions is the clamping of windows.
        single = len(self.indexed) == 1 and self.limits == (operand_shape[self.indexed[0]] - 1,)
        self.take_clamps = single and self.leading and not self.trims

    def _permutation(self, dropped) -> tuple:
        """From each axis of the public layout to its axis of the work layout."""
        n_batch = len(self.batch_shape)
        order = self.windows + self.kept_rest
        windows = [n_batch + order.index(d) for d in range(len(self.operand_shape)) if d not in dropped]
        batch = iter(range(n_batch))
        window_of = dict(zip(self.numbers.window_dims, windows, strict=True))
        return tuple(window_of[i] if i in window_of else next(batch) for i in range(n_batch + len(windows)))

    def _mask_shape(self) -> tuple:
        """The public layout of an array with batch axes only."""
        n_batch = len(self.batch_shape)
        return tuple(self.batch_shape[i] if i < n_batch else 1 for i in self.to_public)

    # ---- from indices to positions

    def starts(self, indices: np.ndarray) -> list:
        """The position that each component of the indices gives, not yet clamped, as ``intp``."""
        if indices.dtype == np.uint64:
            indices = np.minimum(indices, np.uint64(np.iinfo(np.intp).max))
        return [indices[..., j].astype(np.intp, copy=False) for j in range(len(self.numbers.index_map))]

    def all_inside(self, starts: list) -> bool:
        """Whether all windows lie in the operand; ten times faster than asking for each."""
        pairs = zip(starts, self.limits, strict=True)
        return all(not s.size or (s.min() >= 0 and s.max() <= limit) for s, limit in pairs)

    def in_bounds(self, starts: list):
        """For each index whether its whole window lies in the operand: a bool array, or None where all do."""
        if self.all_inside(starts):
            return None
        valid = None
        for start, limit in zip(starts, self.limits, strict=True):
            inside = (start >= 0) & (start <= limit)
            valid = inside if valid is None else valid & inside
        return valid

    def clamp(self, starts: list) -> list:
        """The positions moved so that every window lies in the operand."""
        if self.all_inside(starts):
            return starts
        return [np.minimum(np.maximum(s, 0), m) for s, m in zip(starts, self.limits, strict=True)]

    def positions(self, starts: list) -> tuple:
        """For each indexed dimension an array of positions; together they broadcast to ``index_shape``."""
        return tuple(self._position(d, starts) for d in self.indexed)

    def _position(self, d: int, starts: list):
        n_batch, n = len(self.batch_shape), len(self.index_shape)
        numbers = self.numbers
        if d in numbers.operand_batching:
            axis = numbers.indices_batching[numbers.operand_batching.index(d)]
            return np.arange(self.operand_shape[d]).reshape((-1,) + (1,) * (n - axis - 1))
        start = starts[numbers.index_map.index(d)]
        if n > n_batch:
            start = start.reshape(start.shape + (1,) * (n - n_batch))
        if d not in self.windows or numbers.slice_sizes[d] == 1:
            return start
        axis = n_batch + self.windows.index(d)
        return start + np.arange(numbers.slice_sizes[d]).reshape((-1,) + (1,) * (n - axis - 1))

    def linear(self, positions: tuple) -> np.ndarray:
        """One position for each element, in an operand whose indexed dimensions come first and are merged."""
        if not positions:
            return np.zeros(self.index_shape, np.intp)
        if len(positions) == 1:
            return self._spread(positions[0])
        total = np.empty(self.index_shape, np.intp)
        np.multiply(positions[0], self.operand_shape[self.indexed[1]], out=total)
        total += positions[1]
        for d, p in zip(self.indexed[2:], positions[2:], strict=True):
            total *= self.operand_shape[d]
            total += p
        return total

    def _spread(self, position: np.ndarray) -> np.ndarray:
        """``position`` in the shape of the index; NumPy takes twice as long with what was broadcast."""
        same = position.shape == self.index_shape
        return position if same else np.broadcast_to(position, self.index_shape)

    def merged_shape(self) -> tuple:
        """The shape of the operand with its indexed dimensions, which come first, merged into one."""
        count = 1
        for d in self.indexed:
            count *= self.operand_shape[d]
        return (count, *(self.operand_shape[d] for d in self.rest))

    # ---- reading and writing

    def read(self, operand: np.ndarray, starts: list) -> np.ndarray:
        """The windows at ``starts``, which are in bounds, in the public layout."""
        positions = self.positions(starts)
        if self.leading and len(self.indexed) == 1 and not self.trims:
            work = operand.take(self._spread(positions[0]), axis=0, mode="clip")
        elif self.leading and operand.flags.c_contiguous:
            merged = operand.reshape(self.merged_shape())[(slice(None), *self.rest_slices)]
            work = merged.take(self.linear(positions), axis=0, mode="clip")
        else:
            moved = operand.transpose(self.indexed + self.rest)
            moved = moved[(slice(None),) * len(self.indexed) + self.rest_slices]
            work = moved[positions] if positions else moved
        if work.shape != self.work_shape:
            work = np.broadcast_to(work, self.work_shape)
        return work.transpose(self.to_public)

    def rows(self, indices: np.ndarray, mode: str):
        """For writing: the linear positions of the updates that count, and which these are (None for all).

        Positions come as ``(updates, window elements)``; the selection is over updates.
        """
        starts = self.starts(indices)
        valid = None
        if mode == "clip":
            starts = self.clamp(starts)
        else:
            valid = self.in_bounds(starts)
            if valid is not None:
                valid = np.broadcast_to(valid, self.batch_shape).reshape(-1)
                starts = self.clamp(starts)
        n_updates = 1
        for n in self.batch_shape:
            n_updates *= n
        linear = self.linear(self.positions(starts)).reshape(n_updates, -1) if n_updates else np.zeros((0, 1), np.intp)
        return (linear if valid is None else linear[valid]), valid


@lru_cache(4096)
def addressing(operand_shape: tuple, indices_shape: tuple, numbers: Numbers) -> Addressing:
    """The addressing for these shapes and numbers."""
    return Addressing(operand_shape, indices_shape, numbers)


WIDE_ROW = 256  # from this width on, one call for each row is faster than ``ufunc.at``


def combine_rows(ufunc: np.ufunc, table: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    """Combine each update with the row of the table that it is for, one after the other."""
    for at, update in zip(rows.tolist(), updates, strict=True):
        row = table[at]
        ufunc(row, update, out=row)


class Written:
    """A copy of the operand with the elements that a scatter addresses laid open.

    ``table`` is a writable view of the copy ``out``, flat but for the dimensions that are not indexed:
    element ``rows[u, w]`` of it is where window element ``w`` of update ``u`` goes.
    """

    def __init__(self, operand, indices, updates, numbers: ScatterDimensionNumbers, mode):
        sizes = slice_sizes_of(operand.shape, updates.shape, numbers)
        address = addressing(operand.shape, indices.shape, Numbers(*numbers, sizes))
        order = address.indexed + address.rest
        if address.leading:
            self.out = operand.astype(operand.dtype, order="C", copy=True)
            merged = self.out.reshape(address.merged_shape())
        else:
            moved = operand.transpose(order).astype(operand.dtype, order="C", copy=True)
            merged = moved.reshape(address.merged_shape())
            self.out = moved.transpose(np.argsort(order))
        self.table = merged[(slice(None), *address.rest_slices)]
        self.rows, valid = address.rows(indices, MODE_NAMES[mode])
        kept = self.table.shape[1:]
        work = updates.transpose(address.from_public)
        n_updates = self.rows.shape[0] if valid is None else valid.shape[0]
        work = work.reshape((n_updates, self.rows.shape[1], *kept))
        self.updates = work if valid is None else work[valid]

    def combine(self, ufunc: np.ufunc):
        """Combine every update with what it addresses, in order."""
        width = self.table[:1].size
        if width < WIDE_ROW:
            ufunc.at(*self.flat())
            return
        combine_rows(ufunc, self.table, self.rows.reshape(-1), self.updates.reshape((-1, *self.table.shape[1:])))

    def flat(self):
        """Table, positions and updates with every element of the table addressed by itself.

        ``ufunc.at`` is five times faster on scalars than on rows.
        """
        table, rows, updates = self.table, self.rows.reshape(-1), self.updates
        if table.ndim == 1:
            return table, rows, updates.reshape(-1)
        strides = np.empty(table.shape, np.bool_).strides
        if not table.flags.c_contiguous:
            return table, rows, updates.reshape((-1, *table.shape[1:]))
        width = strides[0]
        positions = rows[:, None] * width + np.arange(width)
        return table.reshape(-1), positions.reshape(-1), updates.reshape(-1)
