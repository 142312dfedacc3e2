"""Scaled dot-product attention: its arguments, and the choice between computing all scores and computing by blocks."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.context import context
from catena.core.dtypes import dtype_name
from catena.lax.whole import whole
from catena.nn.blockwise import MASKED, Limits, Window, all_of, attention
from catena.numpy.softmax import logsumexp, softmax
from catena.transform.jit import jit
from catena.typing import ArrayLike

STORED = 1 << 24  # scores, 64 MiB: so many are computed by blocks


@whole
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
):
    """Means of values, weighted by the softmax of products of queries and keys: ``softmax(q k^T * scale + bias) v``.

    Long sequences are computed by blocks: neither values nor derivatives need memory for all scores.

    Arguments:
      query: ``(b, t, n, h)``, or ``(t, n, h)`` for one sequence: ``t`` positions of ``n`` heads.
      key: ``(b, s, k, h)``, where ``k`` divides ``n``: heads of queries share heads of keys.
      value: like ``key``.
      bias: added to the scores; broadcasts to ``(b, n, t, s)``.
      mask: booleans, False where a query does not see a key; broadcasts to ``(b, n, t, s)``.
      scale: the factor of the products; ``1 / sqrt(h)`` by default.
      is_causal: whether a query sees no keys behind its own position.
      query_seq_lengths: ``(b,)`` of int32, how many queries there are; the results of others are 0.
      key_value_seq_lengths: ``(b,)`` of int32, how many keys there are; others are not seen.
      local_window_size: how many keys before and behind its own position a query sees: one number, or a pair.
      implementation: ``"xla"`` or None; ``"cudnn"`` is for GPUs.
      return_residual: whether to return the logarithm of each sum of exponentials, too.
    Returns:
      An array like ``query``; a query that sees no key has the mean of all values. With ``return_residual``, a pair of
      it and an array ``(b, t, n)``.
    Raises:
      ValueError: shapes, dtypes or ``implementation`` do not fit.
      TypeError: an argument is not made of numbers, or ``bias`` does not broadcast.
      RuntimeError: ``implementation`` is ``"cudnn"``.

    Source: Vaswani and others, "Attention is all you need" (2017); by blocks, see ``nn/blockwise.py``.

    >>> import catena as jax, catena.numpy as jnp
    >>> x = jnp.eye(3)[:, None]  # three positions, one head
    >>> jax.nn.dot_product_attention(x, x, x, is_causal=True, scale=0.0)[:, 0].round(2)
    Array([[1.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.33, 0.33, 0.33]], dtype=float32)
    """
    query, key, value = (jnp.asarray(x) for x in (query, key, value))
    shape = query.shape
    q, k, v = (_of_rank_four(name, x) for name, x in [("query", query), ("key", key), ("value", value)])
    _check_operands(q, k, v)
    table = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    bias = None if bias is None else _table("bias", jnp.asarray(bias), table, TypeError)
    mask = None if mask is None else _table("mask", jnp.asarray(mask), table, ValueError)
    if mask is not None and mask.dtype != dtypes.BOOL:
        raise ValueError(f"dot_product_attention: mask must be boolean, got {dtype_name(mask.dtype)}")
    query_lengths = _lengths("query_seq_lengths", query_seq_lengths, q.shape[0])
    key_lengths = _lengths("key_value_seq_lengths", key_value_seq_lengths, q.shape[0])
    window = _window(local_window_size, bool(is_causal))
    if implementation == "cudnn":
        raise RuntimeError("dot_product_attention: there is no cuDNN here; use implementation=None or 'xla'")
    if implementation not in (None, "xla"):
        raise ValueError(
            f"dot_product_attention: implementation must be None, 'xla' or 'cudnn', got {implementation!r}"
        )
    if scale is None:
        scale = 1 / np.sqrt(q.shape[3]) if q.shape[3] else 1.0
    out, residual = _attend(window, q, k, v, scale, Limits(bias, mask, query_lengths, key_lengths))
    if query_lengths is not None:
        out = out * (jnp.arange(q.shape[1]) < query_lengths[:, None])[..., None, None].astype(out.dtype)
    out = out.reshape(shape)
    return (out, residual.reshape(shape[:-1])) if return_residual else out


# ---- arguments


def _of_rank_four(name: str, x):
    if x.ndim > 4:
        raise ValueError(f"dot_product_attention: {name} must have 3 or 4 axes, got shape {x.shape}")
    return lax.expand_dims(x, tuple(range(4 - x.ndim)))


def _check_operands(q, k, v):
    for name, x in [("query", q), ("value", v)]:
        if x.dtype != k.dtype:
            raise ValueError(
                f"dot_product_attention: {name} must be of the dtype {dtype_name(k.dtype)} of key, got "
                f"{dtype_name(x.dtype)}"
            )
    if v.shape != k.shape:
        raise ValueError(f"dot_product_attention: value must have the shape {k.shape} of key, got {v.shape}")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(
            f"dot_product_attention: query must be as key {k.shape} in its first and last axis, got {q.shape}"
        )
    if q.shape[2] % k.shape[2] if k.shape[2] else q.shape[2]:
        raise ValueError(
            "dot_product_attention: the number of heads of query must be a multiple of that of key, got "
            f"{q.shape[2]} and {k.shape[2]}"
        )


def _table(name: str, x, shape: tuple, error: type):
    """A bias or mask with four axes that broadcast to ``shape``."""
    if x.ndim > 4:
        raise ValueError(f"dot_product_attention: {name} must have at most 4 axes, got shape {x.shape}")
    x = lax.expand_dims(x, tuple(range(4 - x.ndim)))
    if any(n not in (1, m) for n, m in zip(x.shape, shape, strict=True)):
        raise error(f"dot_product_attention: {name} must broadcast to (b, n, t, s) = {shape}, got {x.shape}")
    return x


def _lengths(name: str, x, batch: int):
    if x is None:
        return None
    x = jnp.asarray(x)
    if x.shape != (batch,) or x.dtype != np.int32:
        raise ValueError(
            f"dot_product_attention: {name} must be {batch} numbers of dtype int32, got shape {x.shape} and dtype "
            f"{dtype_name(x.dtype)}"
        )
    return x


def _window(size, is_causal: bool) -> Window:
    """The keys a query sees by its position."""
    if size is None:
        left = right = None
    elif isinstance(size, int):
        left = right = size
    else:
        left, right = size
        if not (isinstance(left, int) and isinstance(right, int)):
            raise TypeError(f"dot_product_attention: local_window_size must be an integer or two, got {size!r}")
    if is_causal:
        right = 0 if right is None else min(right, 0)
    return Window(left, right)


# ---- the two ways


def _attend(window: Window, q, k, v, scale, limits: Limits) -> tuple:
    """The results, and the logarithms of sums of exponentials ``(b, t, n)``."""
    (b, t, n, _), s = q.shape, k.shape[1]
    if b * n * t * s < STORED or min(t, s) < 2 or not dtypes.is_floating(q.dtype):
        return _with_all_scores(window, q, k, v, scale, limits)
    by_blocks = _by_blocks if context.trace is not None else _BY_BLOCKS
    return by_blocks(window, q, k, v, scale, limits)


def _with_all_scores(window: Window, q, k, v, scale, limits: Limits) -> tuple:
    (b, t, n, h), (s, kept) = q.shape, k.shape[1:3]
    groups = n // kept if kept else 0
    wide = dtypes.promote((q.dtype, False), (np.dtype(np.float32), False))[0]
    # scores (b, kept, t, groups, s)
    keys, values = lax.transpose(k, (0, 2, 1, 3)), lax.transpose(v, (0, 2, 1, 3))
    queries = lax.transpose(q.reshape(b, t, kept, groups, h), (0, 2, 1, 3, 4))
    scores = jnp.einsum("bktgh,bksh->bktgs", queries, keys, preferred_element_type=wide)
    scores = scores * jnp.asarray(scale).astype(wide)
    if limits.bias is not None:
        scores = scores + _by_group(limits.bias, kept, groups).astype(wide)
    seen = _seen(window, b, t, s, limits, kept, groups)
    if seen is not None:
        scores = jnp.where(seen, scores, MASKED)
    weights = softmax(scores, -1).astype(q.dtype)
    out = jnp.einsum("bktgs,bksh->bktgh", weights, values)
    out = lax.transpose(out, (0, 2, 1, 3, 4)).reshape(b, t, n, h)
    sums = lax.transpose(logsumexp(scores, -1), (0, 2, 1, 3)).reshape(b, t, n)
    return out.astype(q.dtype), sums.astype(q.dtype)


def _by_group(x, kept: int, groups: int):
    """A table ``(b, n, t, s)`` as ``(b, kept, t, groups, s)``, each 1 where it is."""
    b, n, t, s = x.shape
    split = (b, kept, groups, t, s) if n > 1 else (b, 1, 1, t, s)
    return lax.transpose(lax.reshape(x, split), (0, 1, 3, 2, 4))


def _seen(window: Window, b: int, t: int, s: int, limits: Limits, kept: int, groups: int):
    """Which scores are not masked, an array that broadcasts with them; None for all."""
    rows = lax.broadcasted_iota(np.int32, (1, 1, t, 1, 1), 2)
    columns = lax.broadcasted_iota(np.int32, (1, 1, 1, 1, s), 4)
    query_lengths, key_lengths = (
        None if x is None else lax.expand_dims(x, (1, 2, 3, 4)) for x in (limits.query_lengths, limits.key_lengths)
    )
    return all_of([
        None if window.left is None else columns >= rows - window.left,
        None if window.right is None else columns <= rows + window.right,
        None if query_lengths is None else rows < query_lengths,
        None if key_lengths is None else columns < key_lengths,
        None if limits.mask is None else _by_group(limits.mask, kept, groups),
    ])  # fmt: skip


def _by_blocks(window: Window, q, k, v, scale, limits: Limits) -> tuple:
    (b, t, n, h), (s, kept) = q.shape, k.shape[1:3]
    groups = n // kept
    wide = np.promote_types(q.dtype, np.float32) if q.dtype.kind == "f" else np.dtype(np.float32)
    queries = (q.astype(wide) * jnp.asarray(scale).astype(wide)).reshape(b, t, kept, groups, h)
    queries = lax.transpose(queries, (0, 2, 1, 3, 4)).reshape(b * kept, t, groups, h)
    keys, values = (lax.transpose(x.astype(wide), (0, 2, 1, 3)).reshape(b * kept, s, h) for x in (k, v))
    by_head = lambda x: None if x is None else _heads_of_table(x, b, kept, groups)  # noqa: E731
    of_lengths = lambda x: None if x is None else jnp.repeat(x, kept)  # noqa: E731
    bias = None if limits.bias is None else limits.bias.astype(wide)
    limits = Limits(by_head(bias), by_head(limits.mask), *map(of_lengths, limits[2:]))
    out, sums = attention(window, queries, keys, values, limits)
    out = lax.transpose(out.reshape(b, kept, t, groups, h), (0, 2, 1, 3, 4)).reshape(b, t, n, h)
    sums = lax.transpose(sums.reshape(b, kept, t, groups), (0, 2, 1, 3)).reshape(b, t, n)
    return out.astype(q.dtype), sums.astype(q.dtype)


def _heads_of_table(x, b: int, kept: int, groups: int):
    """A table ``(b, n, t, s)`` as ``(b * kept, t, groups, s)``, each 1 where it is; the first axis where both are."""
    x = _by_group(x, kept, groups)
    if x.shape[:2] != (1, 1):
        x = jnp.broadcast_to(x, (b, kept, *x.shape[2:]))
    return x.reshape(-1, *x.shape[2:])


_BY_BLOCKS: Any = jit(_by_blocks, static_argnums=0)
