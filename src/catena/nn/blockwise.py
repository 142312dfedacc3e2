"""Attention without its scores: ``softmax(q k^T) v`` by blocks, forward and backward, in memory linear in the lengths.

A block of scores is computed where it is needed and forgotten. Forward, the softmax is taken over the blocks of a row
one after the other: of what came before, the greatest score, the sum of exponentials and the weighted sum of values
are kept, and scaled when a greater score comes (Milakov, Gimelshein, "Online normalizer calculation for softmax",
2018; Rabe, Staats, "Self-attention does not need O(n^2) memory", 2021). The derivatives need the logarithm of each
row's sum beside the result, and compute the scores once more (Dao, Fu, Ermon, Rudra, Re, "FlashAttention", 2022).
Blocks in which everything is masked by position are not visited. The derivative is a ``linear_call``: forwards it
sweeps over the blocks with tangents, backwards with cotangents.

Shapes, the same everywhere: queries ``(n, t, g, h)``, for ``n`` heads of keys and ``g`` heads of queries for each of
them; keys and values ``(n, s, h)``; results ``(n, t, g, h)``, and the logarithms of sums ``(n, t, g)``; bias and mask
``(n or 1, t or 1, g or 1, s or 1)``; lengths ``(n,)``. In blocks, ``t`` is ``(i, p)`` and ``s`` is ``(j, r)``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.named import NamedTuple
from catena.transform.custom_call import SymbolicZero
from catena.transform.custom_gradient import linear_call
from catena.transform.custom_jvp import custom_jvp

MASKED = -0.7 * float(np.finfo(np.float32).max)  # the score where a mask is false
LEAST = MASKED / 2  # the least score that counts: that of masked ones less this has exponential 0
BLOCK = 256  # positions of queries, times ``g``, and of keys in a block: 256 KiB of scores stay in a cache


class Window(NamedTuple):
    """The keys that a query sees by its position: from ``left`` before it to ``right`` after it; None for all."""

    left: int | None
    right: int | None


class Limits(NamedTuple):
    """What else makes scores: arrays, or None."""

    bias: Any = None
    mask: Any = None
    query_lengths: Any = None
    key_lengths: Any = None


class Grid(NamedTuple):
    """How positions are cut into blocks: numbers and sizes of blocks of queries and of keys."""

    rows: int
    height: int
    columns: int
    width: int


def grid_of(q, k) -> Grid:
    """Blocks of nearly equal sizes, so that few positions are added to fill them."""
    (_, t, g, _), s = q.shape, k.shape[1]
    rows, columns = -(-t * g // BLOCK), -(-s // BLOCK)
    return Grid(rows, -(-t // rows), columns, -(-s // columns))


def in_blocks(x, axis: int, number: int, size: int):
    """``x`` with an axis cut into blocks; one of length 1 is that for every block and stays."""
    if x.shape[axis] != 1 or number * size == 1:
        after = number * size - x.shape[axis]
        x = jnp.pad(x, [(0, after if i == axis else 0) for i in range(x.ndim)])
        return x.reshape(*x.shape[:axis], number, size, *x.shape[axis + 1 :])
    return lax.expand_dims(x, (axis,))


def block_of(x, *places):
    """The block of an array at indices of its first axes; 0 where an axis has length 1."""
    for i in places:
        x = lax.dynamic_index_in_dim(x, i if x.shape[0] > 1 else 0, 0, keepdims=False)
    return x


def all_of(tests):
    """The conjunction of boolean arrays that are not None; None of none."""
    found = None
    for test in tests:
        if test is not None:
            found = test if found is None else jnp.logical_and(found, test)
    return found


class Head(NamedTuple):
    """One head, in blocks: everything by which its scores are computed."""

    window: Window
    grid: Grid
    keys: int  # how many there are
    q: Any  # (i, p, g, h)
    k: Any  # (j, r, h)
    v: Any
    bias: Any  # (i, j, p, g, r), each 1 where it is the same
    mask: Any
    query_length: Any
    key_length: Any

    def visited(self, i) -> tuple:
        """The range of blocks of keys that a block of queries sees something of."""
        window, grid = self.window, self.grid
        first, last = i * grid.height, (i + 1) * grid.height - 1
        low, high = jnp.int32(0), jnp.int32(grid.columns)
        if window.left is not None:
            low = jnp.maximum(low, (first - window.left) // grid.width)
        if window.right is not None:
            high = jnp.minimum(high, (last + window.right) // grid.width + 1)
        if self.key_length is not None:
            high = jnp.minimum(high, -(-self.key_length // grid.width))
        if self.query_length is not None:
            high = jnp.where(first < self.query_length, high, low)
        return low, high

    def seen(self, i, j):
        """Which scores of a block are not masked; None for all."""
        window, grid = self.window, self.grid
        rows = i * grid.height + lax.broadcasted_iota(np.int32, (grid.height, 1, 1), 0)
        columns = j * grid.width + lax.broadcasted_iota(np.int32, (1, 1, grid.width), 2)
        return all_of([
            None if window.left is None else columns >= rows - window.left,
            None if window.right is None else columns <= rows + window.right,
            None if self.query_length is None else rows < self.query_length,
            None if self.key_length is None else columns < self.key_length,
            None if self.keys == grid.columns * grid.width else columns < self.keys,
            None if self.mask is None else block_of(self.mask, i, j),
        ])  # fmt: skip

    def scores(self, i, j, q):
        """The block of scores ``(p, g, r)`` of queries ``q``, and the keys of the block."""
        k = block_of(self.k, j)
        found = times(q, k, 1)
        if self.bias is not None:
            found = found + block_of(self.bias, i, j)
        seen = self.seen(i, j)
        if seen is not None:
            found = jnp.where(seen, found, MASKED)
        return found, k


def times(x, y, contracted: int):
    """The product of ``(p, g, a)`` and a matrix, of which one axis is contracted: ``(p, g, b)``."""
    flat = lax.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))
    product = lax.dot_general(flat, y, (((1,), (contracted,)), ((), ())))
    return lax.reshape(product, (*x.shape[:2], product.shape[1]))


def over_rows(x, y):
    """The sum over ``p, g`` of products of ``(p, g, a)`` and ``(p, g, b)``: ``(a, b)``."""
    return lax.dot_general(x, y, (((0, 1), (0, 1)), ((), ())))


def heads(window: Window, q, k, v, limits: Limits) -> tuple:
    """The number of heads, a function from the number of one to it, and the grid."""
    grid = grid_of(q, k)
    q = in_blocks(q, 1, grid.rows, grid.height)
    k, v, keys = in_blocks(k, 1, grid.columns, grid.width), in_blocks(v, 1, grid.columns, grid.width), k.shape[1]
    bias, mask = (None if x is None else table_in_blocks(x, grid) for x in limits[:2])

    def head(n) -> Head:
        of_head = [None if x is None else block_of(x, n) for x in (q, k, v, bias, mask, *limits[2:])]
        return Head(window, grid, keys, *of_head)

    return head, grid


def table_in_blocks(x, grid: Grid):
    """A bias or mask ``(n, t, g, s)`` as ``(n, i, j, p, g, r)``."""
    x = in_blocks(in_blocks(x, 3, grid.columns, grid.width), 1, grid.rows, grid.height)
    return jnp.moveaxis(x, 4, 2)


def table_from_blocks(x, shape: tuple):
    """The reverse of ``table_in_blocks``, of values that were added up."""
    x = jnp.moveaxis(x, 2, 4)
    n, i, p, g, j, r = x.shape
    return x.reshape(n, i * p, g, j * r)[:, : shape[1], :, : shape[3]]


def from_blocks(x, length: int):
    """Rows ``(n, i, p, ...)`` as ``(n, t, ...)``."""
    return x.reshape(x.shape[0], -1, *x.shape[3:])[:, :length]


# ---- forwards


@partial(custom_jvp, nondiff_argnums=(0,))
def attention(window: Window, q, k, v, limits: Limits) -> tuple:
    """The weighted means of values, and the logarithms of the sums of weights.

    A query that sees no key has the mean of all values, and ``MASKED``.
    """
    head, grid = heads(window, q, k, v, limits)
    mean = jnp.mean(v, 1)

    def of_head(n):
        this = head(n)
        return lax.map(lambda row: forward_row(this, block_of(mean, n), *row), (lax.iota(np.int32, grid.rows), this.q))

    out, log_sum = lax.map(of_head, lax.iota(np.int32, q.shape[0]))
    return from_blocks(out, q.shape[1]), from_blocks(log_sum, q.shape[1])


def forward_row(head: Head, mean, i, q):
    """The results of a block of queries."""

    def visit(j, carry):
        greatest, total, weighted = carry
        scores, _ = head.scores(i, j, q)
        now = jnp.maximum(greatest, scores.max(-1))
        weights, before = jnp.exp(scores - now[..., None]), jnp.exp(greatest - now)
        total = total * before + weights.sum(-1)
        weighted = weighted * before[..., None] + times(weights, block_of(head.v, j), 0)
        return now, total, weighted

    start = jnp.full(q.shape[:2], LEAST, q.dtype), jnp.zeros(q.shape[:2], q.dtype), jnp.zeros_like(q)
    greatest, total, weighted = lax.fori_loop(*head.visited(i), visit, start)
    alive = total > 0
    total = jnp.where(alive, total, 1)
    out = jnp.where(alive[..., None], weighted / total[..., None], mean)
    return out, jnp.where(alive, greatest + jnp.log(total), MASKED)


# ---- derivatives


@partial(attention.defjvp, symbolic_zeros=True)
def _attention_jvp(window, primals, tangents):
    q, k, v, limits = primals
    out, log_sum = attention(window, q, k, v, limits)
    changes = [None if isinstance(x, SymbolicZero) else x for x in (*tangents[:3], tangents[3].bias)]
    wanted = [x is not None for x in changes]
    forward, backward = partial(tangent_sweep, window), partial(cotangent_sweep, window, wanted)
    return (out, log_sum), linear_call(forward, backward, (q, k, v, limits, out, log_sum), changes)


def row_parts(grid: Grid, log_sum, *xs) -> tuple:
    """Rows in blocks: numbers that exponentials are divided by, which of them see a key, and others."""
    alive = log_sum > MASKED
    shift = jnp.where(alive, log_sum, 0)  # masked scores have exponential 0 here, too
    return tuple(in_blocks(x, 1, grid.rows, grid.height) for x in (shift, alive, *xs))


def tangent_sweep(window: Window, residuals, changes):
    """The tangents of results, from those of queries, keys, values and bias (None for zero)."""
    q, k, v, limits, out, log_sum = residuals
    head, grid = heads(window, q, k, v, limits)
    dq, dk, dv, dbias = changes
    dmean = None if dv is None else jnp.mean(dv, 1)
    rows = [*row_parts(grid, log_sum, out), None if dq is None else in_blocks(dq, 1, grid.rows, grid.height)]
    dk, dv = (None if x is None else in_blocks(x, 1, grid.columns, grid.width) for x in (dk, dv))
    dbias = None if dbias is None else table_in_blocks(dbias, grid)

    def of_head(n):
        this = head(n)
        mine = [None if x is None else block_of(x, n) for x in (dk, dv, dbias, dmean)]
        xs = [None if x is None else block_of(x, n) for x in rows]
        return lax.map(lambda row: tangent_row(this, mine, *row), (lax.iota(np.int32, grid.rows), this.q, *xs))

    dout, dlog_sum = lax.map(of_head, lax.iota(np.int32, q.shape[0]))
    return from_blocks(dout, q.shape[1]), from_blocks(dlog_sum, q.shape[1])


def tangent_row(head: Head, mine, i, q, shift, alive, out, dq):
    """The tangents of the results of a block of queries."""
    dk, dv, dbias, dmean = mine

    def visit(j, carry):
        weighted, total = carry
        scores, k = head.scores(i, j, q)
        weights = jnp.exp(scores - shift[..., None])
        parts = [
            None if dq is None else times(dq, k, 1),
            None if dk is None else times(q, block_of(dk, j), 1),
            None if dbias is None else block_of(dbias, i, j),
        ]
        for part in parts:
            if part is not None:
                change = weights * part
                total = total + change.sum(-1)
                weighted = weighted + times(change, block_of(head.v, j), 0)
        if dv is not None:
            weighted = weighted + times(weights, block_of(dv, j), 0)
        return weighted, total

    start = jnp.zeros_like(q), jnp.zeros_like(shift)
    weighted, total = lax.fori_loop(*head.visited(i), visit, start)
    dead = jnp.zeros_like(weighted) if dmean is None else dmean
    return jnp.where(alive[..., None], weighted - total[..., None] * out, dead), total


def cotangent_sweep(window: Window, wanted, residuals, cotangents):
    """The cotangents of queries, keys, values and bias, None for those that are not wanted, from those of results."""
    q, k, v, limits, out, log_sum = residuals
    dout, dlog_sum = cotangents
    head, grid = heads(window, q, k, v, limits)
    alive = (log_sum > MASKED)[..., None]
    dead = jnp.where(alive, 0, dout).sum((1, 2)) / k.shape[1]  # what queries that see no key give to all values
    dout = jnp.where(alive, dout, 0)
    level = dlog_sum - (dout * out).sum(-1)
    shift, _, *rows = row_parts(grid, log_sum, dout, level)
    zeros = jnp.zeros((grid.columns, grid.width, k.shape[2]), k.dtype)
    bias = jnp.zeros_like(table_in_blocks(limits.bias, grid)) if wanted[3] else None

    def of_head(bias, n):
        this, place = head(n), n if bias is not None and bias.shape[0] > 1 else 0
        mine = block_of(bias, n) if wanted[3] else None
        step = lambda carry, row: cotangent_row(this, carry, *row)  # noqa: E731
        xs = (lax.iota(np.int32, grid.rows), this.q, *(block_of(x, n) for x in (shift, *rows)))
        (dk, dv, mine), dq = lax.scan(step, (zeros, zeros, mine), xs)
        return None if bias is None else lax.dynamic_update_index_in_dim(bias, mine, place, 0), (dq, dk, dv)

    bias, (dq, dk, dv) = lax.scan(of_head, bias, lax.iota(np.int32, q.shape[0]))
    dk, dv = from_blocks(dk, k.shape[1]), from_blocks(dv, k.shape[1]) + dead[:, None]
    found = from_blocks(dq, q.shape[1]), dk, dv, table_from_blocks(bias, limits.bias.shape) if wanted[3] else None
    return [x if want else None for x, want in zip(found, wanted, strict=True)]


def cotangent_row(head: Head, carry, i, q, shift, dout, level):
    """What a block of queries adds to the cotangents of keys, values and bias, and the cotangent of itself."""

    def visit(j, carry):
        dq, dk, dv, dbias = carry
        scores, k = head.scores(i, j, q)
        weights = jnp.exp(scores - shift[..., None])
        change = weights * (times(dout, block_of(head.v, j), 1) + level[..., None])
        dq = dq + times(change, k, 0)
        dk, dv = added(dk, j, over_rows(change, q)), added(dv, j, over_rows(weights, dout))
        return dq, dk, dv, None if dbias is None else added_to_table(dbias, i, j, change)

    dq, *carry = lax.fori_loop(*head.visited(i), visit, (jnp.zeros_like(q), *carry))
    return tuple(carry), dq


def added(x, j, change):
    """``x`` with a change added to its block ``j``."""
    return lax.dynamic_update_index_in_dim(x, block_of(x, j) + change, j, 0)


def added_to_table(table, i, j, change):
    """A table of blocks ``(i, j, p, g, r)`` with a change added, summed over axes that are 1."""
    i, j = (jnp.int32(n if size > 1 else 0) for n, size in zip((i, j), table.shape, strict=False))
    summed = tuple(axis for axis, size in enumerate(table.shape[2:]) if size == 1)
    change = change.sum(summed, keepdims=True)
    start = (i, j, *[jnp.int32(0)] * 3)
    block = lax.dynamic_slice(table, start, (1, 1, *table.shape[2:]))
    return lax.dynamic_update_slice(table, block + change, start)
