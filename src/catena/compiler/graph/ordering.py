"""Sorting and selection, brought to the stable sorting of unsigned keys along the last axis.

A key orders like its element: NaN last, -0 equal to 0 (but before it where only the elements themselves are
sorted).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from catena.compiler.graph import layouts
from catena.compiler.graph.forms import Map
from catena.core.dtypes import KIND
from catena.core.errors import CompileError

UNSIGNED: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
# Of rows of at most so many keys, so many least ones are found one after the other; measured. Without instructions for
# the lesser of two numbers of 64 bits, more of them, or those of longer rows, are found sooner by a selection.
FEW, SHORT = 4, 1024
SOME, SHORTER = 8, 512


def sort(b, xs, dimension: int, num_keys: int) -> list:
    """`xs` sorted along `dimension` by their first `num_keys` arrays."""
    rank = xs[0].ndim
    if rank == 0 or xs[0].shape[dimension] <= 1:
        return list(xs)
    perm = [d for d in range(rank) if d != dimension] + [dimension]
    back = np.argsort(perm)
    rows = [b.transpose(x, perm) for x in xs]
    if len(rows) == 1 and KIND[rows[0].dtype] != "c":
        x = _orderly(b, rows[0])
        (keys,) = b.multi("sort_keys", [sort_key(b, x)], [(x.shape, key_dtype(x.dtype))])
        ordered = b.value("map", x.shape, x.dtype, [keys], Map("sort_unkey"))
        return [b.transpose(b.convert(ordered, rows[0].dtype), back)]
    keys = [k for x in rows[:num_keys] for k in _keys(b, x)]
    order = argsort(b, keys)
    return [b.transpose(take_last(b, x, order), back) for x in rows]


def _keys(b, x) -> list:
    if KIND[x.dtype] == "c":
        return [sort_key(b, b.map("real", x), True), sort_key(b, b.map("imag", x), True)]
    return [sort_key(b, x, True)]


def key_dtype(dtype: np.dtype) -> np.dtype:
    return UNSIGNED[dtype.itemsize]


def _orderly(b, x):
    """Floats of a byte as float32: not all of them have their sign in the first bit, or a sign at all."""
    return b.convert(x, np.float32) if KIND[x.dtype] == "f" and x.dtype.itemsize == 1 else x


def sort_key(b, x, merge_zeros: bool = False):
    """Unsigned integers that order as the elements do."""
    x = _orderly(b, x)
    if (found := layouts.before(b, lambda x: sort_key(b, x, merge_zeros), x)) is not None:
        return found
    return b.value("map", x.shape, key_dtype(x.dtype), [x], Map("sort_key", bool(merge_zeros)))


def argsort(b, keys: list):
    """The places of the elements in the order of their keys, the first of which counts most; equal ones as they are."""
    shape = keys[0].shape
    if shape[-1] >= 2**31:
        raise CompileError(f"sort: rows of {shape[-1]} elements are longer than 2**31 - 1")
    return b.multi("argsort", keys, [(shape, np.int32)])[0]


def take_last(b, x, order):
    """`x[..., order]`, row by row."""
    rank = x.ndim
    batch = tuple(range(rank - 1))
    numbers = SimpleNamespace(
        offset_dims=(),
        collapsed_slice_dims=(rank - 1,),
        start_index_map=(rank - 1,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return b.gather(x, b.reshape(order, (*order.shape, 1)), numbers, (1,) * rank, "promise")


def ranked(b, x, ranks):
    """The elements of rows of `x` that sorting brings to the places `ranks`, NaN last."""
    if x.shape[-1] == 1:
        return b.broadcast_in_dim(x, ranks.shape, range(x.ndim))
    x, dtype = _orderly(b, x), x.dtype
    if x.shape[-1] >= 2**31:
        raise CompileError(f"selection: rows of {x.shape[-1]} elements are longer than 2**31 - 1")
    (keys,) = b.multi("ranked", [sort_key(b, x), ranks], [(ranks.shape, key_dtype(x.dtype))])
    return b.convert(b.value("map", ranks.shape, x.dtype, [keys], Map("sort_unkey")), dtype)


def _few(n: int) -> int:
    """How many least keys of a row of `n` are found one after the other."""
    return SOME if n <= SHORTER else FEW if n <= SHORT else 0


def _few_least(b, keys, k: int):
    """The places of the `k` least keys of each row, in order, one after the other: the least of a key and its place, as
    one number, beyond the one before. That reads the row `k` times, and is two to four times as fast as sorting it.
    """
    last, number = keys.ndim - 1, UNSIGNED[4 if keys.dtype.itemsize <= 2 else 8]
    half = 4 * number.itemsize  # the bits of a place
    full = lambda x, of: b.full(of.shape, number.type(x))
    high = b.map("shift_left", b.convert(keys, number), full(half, keys))
    joined = b.map("or", high, b.iota(number, keys.shape, last))
    found = [b.reduce("min", joined, (last,))]
    while len(found) < k:
        before = b.broadcast_in_dim(found[-1], keys.shape, tuple(range(last)))
        rest = b.map("select", b.map("gt", joined, before), joined, full(np.iinfo(number).max, keys))
        found.append(b.reduce("min", rest, (last,)))
    order = b.concatenate([b.reshape(x, (*x.shape, 1)) for x in found], last)
    return b.convert(b.map("and", order, full((1 << half) - 1, order)), np.int32)


def top_k(b, x, k: int, axis: int, of) -> list:
    """The indices of the `k` greatest elements along `axis` in descending order (NaN first), behind the elements `of`
    another array that are there.
    """
    if k == x.shape[axis] == 1:
        return [of, b.full(x.shape, np.zeros((), np.int32))]
    perm = [d for d in range(x.ndim) if d != axis] + [axis]
    rows = b.transpose(x, perm)
    down = b.map("not", sort_key(b, rows, True))
    if rows.shape[-1] >= 2**31:
        raise CompileError(f"top_k: rows of {rows.shape[-1]} elements are longer than 2**31 - 1")
    shape = (*rows.shape[:-1], k)
    if k == 1:
        order = b.reshape(b.argreduce("min", down, x.ndim - 1, np.int32), shape)
    elif 1 < k <= _few(rows.shape[-1]) and down.dtype.itemsize <= 4:
        order = _few_least(b, down, k)
    else:
        (order,) = b.multi("select", [down], [(shape, np.int32)])
    back = np.argsort(perm)
    return [b.transpose(take_last(b, b.transpose(of, perm), order), back), b.transpose(order, back)]
