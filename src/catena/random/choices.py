"""Permutations, choices and categories."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.shapes import broadcast_shapes, check_positions
from catena.core.zeros import get_aval
from catena.lax.structure import canonical_axis, told
from catena.lax.whole import whole
from catena.numpy import asarray, boundary, cumsum, searchsorted, take
from catena.random.continuous import _gumbel, checked_mode
from catena.random.kernels import remembered
from catena.random.keys import asked_shape, consumed_key, pair
from catena.random.primitives import bits_of
from catena.random.sampler import sampler
from catena.random.uniform_family import _randint, _uniform


def as_array_or_count(x, name: str):
    """``x`` as a count, where it is an integer scalar, or as an array."""
    if not np.ndim(x):
        if not dtypes.is_integer(dtypes.dtype(x)):
            raise TypeError(f"{name} must be an integer or at least 1-dimensional")
        return operator.index(x), True
    return asarray(x), False


# ---- permutations


def permutation(key, x, axis: int = 0, independent: bool = False, *, out_sharding=None) -> Array:
    """A random permutation.

    Arguments:
      key: a key, typed or raw.
      x: an array to permute, or an integer ``n`` for ``arange(n)``.
      axis: the axis along which to permute.
      independent: whether each vector along the axis is permuted by itself.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array like ``x``.
    Raises:
      TypeError: ``x`` is a scalar that is not an integer.
      ValueError: there is no such axis.

    Source: sorting by random numbers, often enough that ties are rare.

    >>> from catena import random
    >>> random.permutation(random.key(0), 5).tolist()
    [0, 1, 4, 3, 2]
    """
    if out_sharding is not None:
        return told(out_sharding, permutation, key, x, axis, independent)
    key = consumed_key("permutation", key)
    x, counted = as_array_or_count(x, "x")
    if counted:
        return shuffled_range(key, max(x, 0))  # as in NumPy, a negative number of elements is none
    axis = canonical_axis(axis, x.ndim, "axis")
    if independent or x.ndim == 1:
        return _shuffle(key, x, shape=x.shape, axis=axis)
    return take(x, shuffled_range(key, x.shape[axis]), axis=axis, unique_indices=True)


def shuffled_range(key, n: int):
    return _shuffle(key, lax.iota(dtypes.canonicalize_dtype(int), n), shape=(n,), axis=0)


def rounds_for(size: int) -> int:
    """How often to sort by 32-bit numbers, so that ties are as rare as with a key of three times the bits needed."""
    return math.ceil(3 * math.log(max(1, size)) / math.log(np.iinfo(np.uint32).max))


@sampler(positional=False)
def _shuffle(key, x, *, shape, axis):
    for _ in range(rounds_for(math.prod(shape))):
        key, subkey = pair(key)
        _, x = lax.sort_key_val(bits_of(subkey, bit_width=32, shape=shape), x, axis)
    return x


# ---- choices


@remembered
def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0, mode: str | None = None) -> Array:
    """Entries of an array, drawn at random.

    Arguments:
      key: a key, typed or raw.
      a: the array, or an integer ``n`` for ``arange(n)``.
      shape: the shape of the draws.
      replace: whether an entry may be drawn more than once.
      p: the probability of each entry; all the same by default.
      axis: the axis of ``a`` whose entries are drawn.
      mode: ``"high"`` or ``"low"``, how finely to draw with ``p``, as in ``gumbel``.
    Returns:
      An array of shape ``a.shape`` with ``shape`` in place of the axis.
    Raises:
      TypeError: ``a`` is a scalar that is not an integer, or ``shape`` is not a sequence.
      ValueError: there are not enough entries, or ``p`` does not fit.

    Source: a permutation; with ``p`` inversion, or without replacement the largest noisy log-probabilities (see
    ``categorical``).

    >>> from catena import random
    >>> random.choice(random.key(0), 5, (3,), replace=False).tolist()
    [0, 1, 4]
    """
    key = consumed_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"choice: shape must be a sequence of integers, got {shape!r}")
    shape = asked_shape(shape)
    a, counted = as_array_or_count(a, "a")
    axis = 0 if counted else canonical_axis(axis, a.ndim, "axis")
    total, draws = a if counted else a.shape[axis], math.prod(shape)
    if draws and total <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > total:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {total}) when 'replace=False'"
        )
    if not draws:
        taken = lax.full(shape, 0, dtypes.canonicalize_dtype(int))
        return taken if counted else take(a, taken, axis=axis)
    if p is None and not replace and not counted:
        return split_axis(lax.slice_in_dim(permuted(key, a, axis), 0, draws, axis=axis), axis, shape)
    taken = chosen(key, total, draws, shape, replace, p, checked_mode(mode))
    taken = taken if taken.shape == shape else lax.reshape(taken, shape)
    return taken if counted else take(a, taken, axis=axis)


def split_axis(x, axis: int, shape: tuple):
    return lax.reshape(x, (*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


def permuted(key, a, axis: int):
    return (
        _shuffle(key, a, shape=a.shape, axis=0)
        if a.ndim == 1
        else take(a, shuffled_range(key, a.shape[axis]), axis=axis)
    )


def chosen(key, total: int, draws: int, shape: tuple, replace: bool, p, mode: str):
    """The numbers of the entries drawn."""
    integer = dtypes.canonicalize_dtype(int)
    check_positions("choice", total + 1, integer)
    if p is None:
        if replace:
            return _randint(key, np.asarray(0, integer), np.asarray(total, integer), shape=shape, dtype=integer)
        return lax.slice_in_dim(shuffled_range(key, total), 0, draws)
    p = asarray(p)
    p = lax.convert_element_type(p, dtypes.result_type(p, float)) if not dtypes.is_floating(p.dtype) else p
    if p.shape != (total,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {p.shape} and a.shape[axis] is {total}."
        )
    if replace:
        return weighted(key, p, shape)
    scores = lax.add(_gumbel(key, shape=(total,), dtype=p.dtype, mode=mode), lax.log(p))
    return lax.top_k(scores, draws)[1]


def weighted(key, p, shape: tuple):
    """Entries drawn with probabilities ``p``, by the cumulated probabilities."""
    return _inverted(p, _uniform(key, 0.0, 1.0, shape=shape, dtype=p.dtype))


@whole
def _inverted(p, unit):
    """The numbers below whose cumulated probabilities numbers from the unit interval lie, counted from its end."""
    cumulated = cumsum(p)
    last = lax.squeeze(lax.slice_in_dim(cumulated, p.shape[0] - 1, p.shape[0]), (0,))
    return searchsorted(cumulated, lax.mul(last, lax.sub(np.asarray(1, p.dtype)[()], unit)))


# ---- categories


def categorical(
    key,
    logits,
    axis: int = -1,
    shape=None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding=None,
) -> Array:
    """Categories, drawn by their unnormalised log-probabilities.

    Arguments:
      key: a key, typed or raw.
      logits: the log-probabilities, up to a constant.
      axis: the axis of the categories.
      shape: the shape of the result, which ends with the other axes of ``logits``; those by default.
      replace: whether, along the leading axes of ``shape``, a category may be drawn more than once.
      mode: ``"high"`` or ``"low"``, as in ``gumbel``.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An integer array; of int32 without replacement.
    Raises:
      ValueError: ``logits`` are no floats, ``shape`` does not fit, or there are fewer categories than draws without
        replacement.

    Source: the largest of the log-probabilities with Gumbel noise: Maddison, Tarlow, Minka, "A* sampling" (2014).

    >>> from catena import random
    >>> import numpy as np
    >>> random.categorical(random.key(0), np.zeros((2, 3), np.float32)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, categorical, key, logits, axis, shape, replace, mode)
    key = consumed_key("categorical", key)
    logits, mode = asarray(logits), checked_mode(mode)
    if not dtypes.is_floating(logits.dtype):
        raise ValueError(
            "categorical: logits must be floats, as the noise that is added to them, got "
            f"{dtypes.dtype_name(logits.dtype)}: categorical(key, logits.astype(float))"
        )
    axis = boundary.canonical_axis(operator.index(axis), logits.ndim)  # an IndexError in JAX
    others = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = others if shape is None else asked_shape(shape)
    extra = shape[: len(shape) - len(others)]
    if shape[len(shape) - len(others) :] != others and broadcast_shapes(shape, others) != shape:
        raise ValueError(f"categorical: shape must end with the other axes of logits, {others}, got {shape}")
    if replace:
        full = list(shape)
        full.insert(len(extra) + axis, logits.shape[axis])
        return _categorical(key, logits, shape=tuple(full), axis=len(extra) + axis, mode=mode)
    return without_replacement(key, logits, axis, extra, mode)


@sampler(positional=False)
def _categorical(key, logits, *, shape, axis, mode):
    noise = _gumbel(key, shape=shape, dtype=get_aval(logits).dtype, mode=mode)
    return lax.argmax(lax.add(noise, leading(logits, shape)), axis, dtypes.canonicalize_dtype(int))


def leading(x, shape: tuple):
    """``x`` with axes in front, to broadcast to ``shape``."""
    own = x.shape
    return lax.broadcast_in_dim(
        x, (*[1] * (len(shape) - len(own)), *own), tuple(range(len(shape) - len(own), len(shape)))
    )


def without_replacement(key, logits, axis: int, extra: tuple, mode: str):
    """The categories with the largest noisy log-probabilities."""
    draws, total = math.prod(extra), logits.shape[axis]
    if draws > total:
        raise ValueError(
            f"Number of samples without replacement ({draws}) cannot exceed number of categories ({total})."
        )
    scores = lax.add(logits, _gumbel(key, shape=logits.shape, dtype=logits.dtype, mode=mode))
    last = move_last(scores, axis)
    _, taken = lax.top_k(last, draws)
    others = taken.shape[:-1]
    front = lax.transpose(taken, (taken.ndim - 1, *range(taken.ndim - 1)))
    return lax.reshape(front, (*extra, *others))


def move_last(x, axis: int):
    order = [i for i in range(x.ndim) if i != axis]
    return lax.transpose(x, (*order, axis))
