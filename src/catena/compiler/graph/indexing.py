"""Gather and scatter, brought from their general form to one index map.

A gather reads `operand[start(batch position) + window position]`; a scatter writes there. `start` comes from
the rows of `indices` (its last axis is the index vector); the node keeps, for every operand dimension, where
its index is from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from catena.compiler.graph import constants, one_each, ordering
from catena.compiler.graph.forms import Indices, Scatter
from catena.core.dtypes import KIND
from catena.core.errors import CompileError


def gather(b, operand, indices, numbers, slice_sizes, mode: str, fill_value=None):
    """The `gather` view of `operand`."""
    n = numbers
    offset_dims = tuple(n.offset_dims)
    batching = tuple(getattr(n, "operand_batching_dims", ()))
    start_batching = tuple(getattr(n, "start_indices_batching_dims", ()))
    rank = len(offset_dims) + len(indices.shape) - 1
    batch_dims = tuple(d for d in range(rank) if d not in offset_dims)
    dropped = set(n.collapsed_slice_dims) | set(batching)
    window_dims = tuple(d for d in range(len(operand.shape)) if d not in dropped)
    shape = [0] * rank
    for d, size in zip(batch_dims, indices.shape[:-1]):
        shape[d] = size
    for d, w in zip(offset_dims, window_dims):
        shape[d] = slice_sizes[w]
    mode = _mode(mode)
    places = Indices(
        offset_dims=offset_dims,
        window_dims=window_dims,
        batch_dims=batch_dims,
        batching=tuple(zip(batching, start_batching)),
        start_index_map=tuple(n.start_index_map),
        slice_sizes=tuple(slice_sizes),
        mode=mode,
    )
    start = window(operand.shape, indices, places)
    if start is not None:
        limit = [s + m for s, m in zip(start, places.slice_sizes)]
        return b.reshape(b.slice(operand, start, limit), shape)
    fill = fill_value if hasattr(fill_value, "form") or mode != "fill" else b.constant(fill_value, operand.dtype)
    indices, places = _without_rows(b, indices, places, operand.shape)
    while _is_of_gathered(b, operand, places):
        indices, operand, fill, places = _composed(b, operand, indices, places)
    if _lies_in_parts(b, operand, places):
        return _gather_parts(b, operand, indices, fill, shape, places)
    return _gather(b, operand, indices, fill, shape, places)


def _is_of_gathered(b, operand, p: Indices) -> bool:
    """Whether elements along one dimension are read, the others whole, of what was read so along the same."""
    if operand.form != "gather" or p.mode == "fill" or b.checks.kinds:
        return False
    inner = operand.params
    d = _only_dimension(operand.args[0].shape, inner)
    return d is not None and inner.batch_dims == (d,) and d == _only_dimension(operand.shape, p)


def _only_dimension(shape: tuple, p: Indices) -> int | None:
    """The dimension along which single elements are read, where windows have the whole of all others."""
    if len(p.start_index_map) != 1 or p.batching:
        return None
    (d,) = p.start_index_map
    whole = all(n == m for e, (n, m) in enumerate(zip(shape, p.slice_sizes)) if e != d)
    return d if whole and p.slice_sizes[d] == 1 and d not in p.window_dims else None


def _composed(b, operand, indices, p: Indices) -> tuple:
    """`x[i][j]` as `x[i[j]]`: the places of places, and what is read there."""
    x, first, *fill = operand.args
    rank = indices.ndim - 1
    rows = Indices((rank,), (1,), tuple(range(rank)), (), (0,), (1, 1), p.mode)
    found = _gather(b, first, indices, None, (*indices.shape[:-1], 1), rows)
    sizes = tuple(1 if e == p.start_index_map[0] else n for e, n in enumerate(x.shape))
    return found, x, fill[0] if fill else None, p._replace(mode=operand.params.mode, slice_sizes=sizes)


def _without_rows(b, indices, p: Indices, shape: tuple) -> tuple[Any, Indices]:
    """Indices that are the same in each row of a batch, without the rows, of which windows have the whole: so it is
    seen that rows share places (`take_along_axis` by one row of indices).
    """
    if indices.form != "broadcast" or not p.batching:
        return indices, p
    same = {k: d for d, k in p.batching if k not in indices.params.dims}
    kept = [k for k in range(indices.ndim) if k not in same]
    windows = sorted([*zip(p.offset_dims, p.window_dims), *((p.batch_dims[k], d) for k, d in same.items())])
    window_dims = tuple(d for _, d in windows)
    if not same or list(window_dims) != sorted(window_dims):
        return indices, p
    inner = b.broadcast_in_dim(
        indices.args[0], [indices.shape[k] for k in kept], [kept.index(k) for k in indices.params.dims]
    )
    return inner, p._replace(
        offset_dims=tuple(o for o, _ in windows),
        window_dims=window_dims,
        batch_dims=tuple(o for k, o in enumerate(p.batch_dims) if k not in same),
        batching=tuple((d, kept.index(k)) for d, k in p.batching if k not in same),
        slice_sizes=tuple(shape[d] if d in same.values() else n for d, n in enumerate(p.slice_sizes)),
    )


def _gather(b, operand, indices, fill, shape, p: Indices):
    args = [operand, indices, *([fill] if p.mode == "fill" else [])]
    return b.value("gather", shape, operand.dtype, args, p)


MOST_JOINED = 8  # arrays


def _lies_in_parts(b, operand, p: Indices) -> bool:
    """Whether what is read are arrays that are joined along a dimension of which windows have the whole."""
    if operand.form != "concatenate" or len(operand.args) > MOST_JOINED or b.checks.kinds:
        return False
    d = operand.params.dimension
    return d in p.window_dims and d not in p.start_index_map and p.slice_sizes[d] == operand.shape[d]


def _gather_parts(b, operand, indices, fill, shape, p: Indices):
    """What is read of each of the arrays, joined."""
    d = operand.params.dimension
    out = p.offset_dims[p.window_dims.index(d)]
    parts = []
    for x in operand.args:
        of_part = p._replace(slice_sizes=(*p.slice_sizes[:d], x.shape[d], *p.slice_sizes[d + 1 :]))
        parts.append(_gather(b, x, indices, fill, (*shape[:out], x.shape[d], *shape[out + 1 :]), of_part))
    return b.concatenate(parts, out)


def scatter(b, kind: str, operand, indices, updates, numbers, mode: str, update_body=None):
    """`operand` with `updates` combined into it by `kind`, in row-major order of the updates."""
    n = numbers
    batching = tuple(getattr(n, "operand_batching_dims", ()))
    index_batching = tuple(getattr(n, "scatter_indices_batching_dims", ()))
    window_out = tuple(n.update_window_dims)
    dropped = set(n.inserted_window_dims) | set(batching)
    window_dims = tuple(d for d in range(len(operand.shape)) if d not in dropped)
    if len(window_out) != len(window_dims):
        raise CompileError("scatter: update_window_dims do not match the operand's window dimensions")
    sizes = [1] * len(operand.shape)
    for d, w in zip(window_out, window_dims):
        sizes[w] = updates.shape[d]
    batch_dims = tuple(d for d in range(len(updates.shape)) if d not in window_out)
    places = Indices(
        offset_dims=window_out,
        window_dims=window_dims,
        batch_dims=batch_dims,
        batching=tuple(zip(batching, index_batching)),
        start_index_map=tuple(n.scatter_dims_to_operand_dims),
        slice_sizes=tuple(sizes),
        mode=_mode(mode),
    )
    params = Scatter(kind, places, update_body)
    if (chosen := one_each.choice(b, operand, indices, updates, params)) is not None:
        return chosen
    if _pays_in_parts(operand, updates, params):
        return _scatter_in_parts(b, operand, indices, updates, params)
    if _are_rows(operand, updates, params):
        return _sums_of_rows(b, operand, indices, updates, params)
    if _are_points(operand, updates, params):
        return _scatter_points(b, operand, indices, updates, params)
    return _scatter(b, operand, indices, updates, params)


def _scatter(b, operand, indices, updates, params: Scatter):
    return b.value("scatter", operand.shape, operand.dtype, [operand, indices, updates], params)


# ---- many single elements: their places are found by vectors, before the updates, which go one after another --------

POINTS = 1 << 12  # updates


def _are_points(operand, updates, p: Scatter) -> bool:
    """Whether each of many updates goes to one element, whose place takes several indices."""
    at = p.indices
    whole = len(at.start_index_map) == operand.ndim > 1 and not at.batching
    alone = set(at.slice_sizes) == {1} and not at.offset_dims and operand.size < 1 << 31
    return whole and alone and updates.size >= POINTS and KIND[updates.dtype] != "c" and p.kind != "general"


def _scatter_points(b, operand, indices, updates, p: Scatter):
    """The update of elements that are numbered in one row; -1 is none of them."""
    places: Any = None
    inside: Any = None
    for k, d in enumerate(p.indices.start_index_map):
        start = (0,) * (indices.ndim - 1) + (k,)
        index = b.reshape(b.slice(indices, start, (*indices.shape[:-1], k + 1)), updates.shape)
        step, last = math.prod(operand.shape[d + 1 :]), operand.shape[d] - 1
        index, here = _within(b, index, last, p.indices.mode)
        part = b.map("mul", b.convert(index, np.int32), b.constant(np.int32(step)))
        places = part if places is None else b.map("add", places, part)
        inside = here if inside is None else b.map("and", inside, here)
    places = b.map("select", inside, places, b.full(places.shape, np.int32(-1)))
    at = p.indices._replace(window_dims=(), start_index_map=(0,), slice_sizes=(1,), mode="fill")
    row = p._replace(indices=at)
    places = b.reshape(places, (*places.shape, 1))
    return b.reshape(_scatter(b, b.reshape(operand, (operand.size,)), places, updates, row), operand.shape)


def _within(b, index, last: int, mode: str) -> tuple:
    """An index, and whether it is one of 0 to `last`; what is not is brought there where the mode says so."""
    low, high = (b.constant(np.asarray(n, index.dtype)) for n in (0, min(last, np.iinfo(index.dtype).max)))
    if mode == "clip":
        index = b.map("min", b.map("max", index, low), high)
    return index, b.map("and", b.map("ge", index, low), b.map("le", index, high))


# ---- many updates of few elements: threads have results of their own, which are combined in the end ----------

PARTS = 8  # of the updates; the order of additions depends on them, so they do not depend on the machine
MANY = 1 << 18  # updates
PER_ELEMENT = 4  # updates in a part for each element of the result


def _pays_in_parts(operand, updates, p: Scatter) -> bool:
    few = operand.size * PARTS * PER_ELEMENT <= updates.size
    plain = KIND[operand.dtype] in "fiu" and operand.dtype.itemsize >= 4 and p.kind in ("add", "mul", "min", "max")
    return updates.size >= MANY and few and plain and not p.indices.batching and p.indices.batch_dims[:1] == (0,)


def _scatter_in_parts(b, operand, indices, updates, p: Scatter):
    """The updates, cut along the first axis of the indices, go to an array for each part."""
    size = updates.shape[0] // PARTS

    def cut(x, start: int, stop: int):
        return b.slice(x, [start] + [0] * (x.ndim - 1), [stop, *x.shape[1:]], [1] * x.ndim)

    def parts(x):
        return b.reshape(cut(x, 0, size * PARTS), (PARTS, size, *x.shape[1:]))

    own = b.full((PARTS, *operand.shape), _neutral(p.kind, operand.dtype))
    out = _scatter(b, own, parts(indices), parts(updates), _one_axis_more(p))
    result = operand
    for k in range(PARTS):
        result = b.map(p.kind, result, b.reshape(cut(out, k, k + 1), operand.shape))
    if size * PARTS < updates.shape[0]:
        left, new = (cut(x, size * PARTS, x.shape[0]) for x in (indices, updates))
        result = _scatter(b, result, left, new, p)
    return result


def _neutral(kind: str, dtype):
    """What changes nothing: for sums of floats -0, since 0 + -0 is 0."""
    least, most = (-np.inf, np.inf) if KIND[dtype] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.asarray({"add": -0.0 if KIND[dtype] == "f" else 0, "mul": 1, "min": most, "max": least}[kind], dtype)


def _one_axis_more(p: Scatter) -> Scatter:
    """The parameters where operand, indices and updates have a batch axis in front."""
    at = p.indices

    def later(dims: tuple) -> tuple:
        return tuple(d + 1 for d in dims)

    return p._replace(
        indices=at._replace(
            offset_dims=later(at.offset_dims),
            window_dims=later(at.window_dims),
            batch_dims=(0, *later(at.batch_dims)),
            batching=((0, 0),),
            start_index_map=later(at.start_index_map),
            slice_sizes=(1, *at.slice_sizes),
        )
    )


# ---- rows that are added to zeros: sorted by their places, those of one place lie one behind the other --------------

ROWS = 1 << 10  # updates
LEAST_ROW = 1 << 9  # bytes
BEYOND = 1 << 21  # bytes of all updates, from which on they and what they go to lie further away than near caches


def _are_rows(operand, updates, p: Scatter) -> bool:
    """Whether many long rows are added to rows of zeros."""
    at, whole = p.indices, operand.shape[1:]
    rows = p.kind == "add" and at.start_index_map == (0,) and at.slice_sizes == (1, *whole) and not at.batching
    behind = at.offset_dims == tuple(range(updates.ndim - len(whole), updates.ndim))
    exact = KIND[operand.dtype] in "fiu" and operand.dtype.itemsize >= 4  # others are rounded after each addition
    size = math.prod(whole)
    many = updates.nbytes >= BEYOND and updates.size >= ROWS * size and size * operand.dtype.itemsize >= LEAST_ROW
    return rows and behind and exact and many and constants.is_zero(operand) and 0 < operand.size < 1 << 31


def _sums_of_rows(b, operand, indices, updates, p: Scatter):
    """Each row of the result, as the sum of the updates that go there, in their order: it is written once, and threads
    share the rows. Updates that go nowhere are sorted behind all others.
    """
    n, whole = operand.shape[0], operand.shape[1:]
    updates = b.reshape(updates, (updates.size // math.prod(whole), *whole))
    place, inside = _within(b, b.reshape(indices, updates.shape[:1]), n - 1, p.indices.mode)
    place = b.map("select", inside, b.convert(place, np.int32), b.constant(np.int32(n)))
    order = ordering.argsort(b, [b.convert(place, np.uint32)])
    behind = tuple(range(1, updates.ndim))
    rows = Indices(behind, behind, (0,), (), (0,), (1, *whole), "promise")
    ordered = b.value("gather", updates.shape, updates.dtype, [updates, b.reshape(order, (*order.shape, 1))], rows)
    return b.runs(ordered, b.cumulative("sum", _counts(b, place, n), 0), in_order=True)


def _counts(b, place, n: int):
    """How many numbers are one less than each of 0 to `n`."""
    behind = b.reshape(b.map("add", place, b.constant(np.int32(1))), (*place.shape, 1))
    points = Indices((), (), (0,), (), (0,), (1,), "fill")
    ones = b.full(place.shape, np.int32(1))
    return _scatter(b, b.full((n + 1,), np.int32(0)), behind, ones, Scatter("add", points))


# ---- one window, at a place that is known --------------------------------------------------------------------

FEW = 32  # numbers that are looked at


def window(shape: tuple, indices, p: Indices) -> tuple | None:
    """Where the window begins that indices name in an array of this shape, if it is one, inside of it, and known."""
    single = math.prod(indices.shape[:-1]) == 1 and not p.batching
    numbers = known_numbers(indices) if single else None
    if numbers is None:
        return None
    start = [0] * len(shape)
    for d, at in zip(p.start_index_map, numbers.ravel().tolist()):
        room = shape[d] - p.slice_sizes[d]
        start[d] = min(max(at, 0), room) if p.mode == "clip" else at
        if not 0 <= start[d] <= room:
            return None
    return tuple(start)


def known_numbers(v) -> np.ndarray | None:
    """A few numbers that do not hang on what the program is given; None where they are more, or may."""
    if v.size > FEW or v.form not in ("constant", "broadcast", "reshape", "concatenate"):
        return None
    if v.form == "constant":
        return v.params.array
    parts = [part for a in v.args if (part := known_numbers(a)) is not None]
    if len(parts) < len(v.args):
        return None
    if v.form == "concatenate":
        return np.concatenate(parts, v.params.dimension)
    if v.form == "reshape":
        return parts[0].reshape(v.shape)
    return np.full(v.shape, parts[0]) if parts[0].ndim == 0 else None


def _mode(mode) -> str:
    name = str(getattr(mode, "name", mode)).lower()
    for ours, theirs in (("clip", "clip"), ("fill", "fill"), ("drop", "fill"), ("promise", "promise")):
        if ours in name:
            return theirs
    raise CompileError(f"gather/scatter: mode must be 'clip', 'fill' or 'promise', got {mode!r}")
