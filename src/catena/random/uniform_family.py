"""Bits, and what is a comparison or a few bit operations away from them: uniform numbers, integers, coins."""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, scalar_value
from catena.core.context import context
from catena.core.zeros import get_aval
from catena.lax.structure import told
from catena.random.dtype import generator_of
from catena.random.fused import multiply_add
from catena.random.kernels import remembered
from catena.random.keys import asked_shape, consumed_key, pair
from catena.random.primitives import bits_of, random_bits_p, stream
from catena.random.sampler import (
    as_float,
    check_broadcasts,
    float_dtype,
    integer_dtype,
    lift,
    sampler,
    shape_of,
)

UNSIGNED = {width: np.dtype(f"uint{width}") for width in (8, 16, 32, 64)}


@remembered
def bits(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Random bits, as unsigned integers.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: an unsigned integer dtype; uint32 by default, uint64 with x64.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not an unsigned integer, or ``key`` is an array of keys.

    Source: the generator of the key; for Threefry and Philox Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
    as easy as 1, 2, 3" (2011).

    >>> from catena import random
    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return told(out_sharding, bits, key, shape, dtype)
    key = consumed_key("bits", key)
    if dtype is None:
        dtype = UNSIGNED[64 if context.x64 else 32]
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "bits")
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtypes.dtype_name(dtype)}")
    width = dtypes.itemsize_bits(dtype)
    drawn = random_bits_p.bind(
        key, impl=generator_of(key), bit_width=max(width, 8), shape=asked_shape(shape), **stream()
    )
    return lax.convert_element_type(drawn, dtype) if width < 8 else drawn


# ---- uniform


@remembered
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None) -> Array:
    """Uniform numbers in ``[minval, maxval)``.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      minval, maxval: the bounds, scalars or arrays that broadcast to ``shape``. One number may have bounds with axes
        of size 1.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype; one number has the axes of ``minval``, as in JAX.
    Raises:
      ValueError: the dtype is not a float dtype, or the bounds do not broadcast to ``shape``.

    Source: random bits below the exponent of 1, less 1.

    >>> from catena import random
    >>> random.uniform(random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    if out_sharding is not None:
        return told(out_sharding, uniform, key, shape, dtype, minval, maxval)
    key = consumed_key("uniform", key)
    dtype, shape = float_dtype(dtype, "uniform"), asked_shape(shape)
    axes = np.shape(minval), np.shape(maxval)
    if not shape and any(axes) and math.prod([*axes[0], *axes[1]]) == 1:
        number = _uniform(key, lax.reshape(minval, ()), lax.reshape(maxval, ()), shape=(), dtype=dtype, exact=False)
        return lax.reshape(number, axes[0])
    for bound in (minval, maxval):
        check_broadcasts("uniform", shape, np.shape(bound))
    return _uniform(key, minval, maxval, shape=shape, dtype=dtype, exact=is_exact(minval, maxval))


def is_exact(minval, maxval) -> bool:
    """Whether scaling to these bounds rounds once anyhow: the width is a power of two."""
    if type(minval) not in (int, float) or type(maxval) not in (int, float):
        return False
    return math.isfinite(maxval - minval) and math.frexp(maxval - minval)[0] == 0.5


@sampler
def _uniform(key, minval, maxval, *, shape, dtype, exact=True):
    """Uniform numbers; ``exact`` says that products with the width are exact, else they are
    not rounded by themselves.
    """
    minval, maxval = [lift(as_float(x, dtype), shape) for x in (minval, maxval)]
    unit = lax.sub(one_to_two(key, shape, dtype), dtype.type(1))
    width = lax.sub(maxval, minval)
    scaled = lax.add(lax.mul(unit, width), minval) if exact else multiply_add(unit, width, minval)
    return lax.max(minval, scaled)


def one_to_two(key, shape: tuple, dtype):
    """Floats in ``[1, 2)``: random bits below the exponent of 1."""
    width, mantissa = dtypes.itemsize_bits(dtype), dtypes.finfo(dtype).nmant
    drawn_width = 8 if mantissa < 8 else width
    if width not in UNSIGNED:
        raise TypeError(f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtypes.dtype_name(dtype)}.")
    word = UNSIGNED[width]
    drawn = lax.convert_element_type(bits_of(key, bit_width=drawn_width, shape=shape), word)
    one = np.ones((), dtype).view(word)[()]
    return lax.bitcast_convert_type(
        lax.bitwise_or(lax.shift_right_logical(drawn, word.type(drawn_width - mantissa)), one), dtype
    )


# ---- integers


@remembered
def randint(key, shape, minval, maxval, dtype=None, *, out_sharding=None) -> Array:
    """Uniform integers in ``[minval, maxval)``.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      minval, maxval: the bounds, integers that broadcast to ``shape``; where none lies between, ``minval`` is
        drawn.
      dtype: an integer dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      TypeError: the dtype is not an integer dtype.
      OverflowError: a bound is a Python integer that the default integer dtype does not hold.
      ValueError: the bounds do not broadcast to ``shape``.

    Source: the remainder of a number of twice the bits, from two words.

    >>> from catena import random
    >>> random.randint(random.key(0), (5,), 0, 10).tolist()
    [9, 0, 2, 3, 1]
    """
    if out_sharding is not None:
        return told(out_sharding, randint, key, shape, minval, maxval, dtype)
    key = consumed_key("randint", key)
    if dtype is not None and not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtypes.dtype_name(dtypes.as_dtype(dtype))}")
    dtype, shape = integer_dtype(dtype, "randint"), asked_shape(shape)
    bounds = [integer_bound(x) for x in (minval, maxval)]
    for bound in bounds:
        check_broadcasts("randint", shape, np.shape(bound))
    return _randint(key, *bounds, shape=shape, dtype=dtype)


def integer_bound(x):
    """A bound of ``randint`` as an integer array; floats lose their fraction."""
    if type(x) is int:
        return scalar_value(x)
    if dtypes.is_integer(dtypes.dtype(x, canonicalize=True)):
        return x
    return lax.convert_element_type(x, dtypes.canonicalize_dtype(int))


def clip_integer(x, low: int, high: int):
    """An integer array within limits, in a dtype that holds them."""
    dtype = get_aval(x).dtype
    limits = dtypes.iinfo(dtype)
    lowest, highest = (np.asarray(min(max(limit, int(limits.min)), int(limits.max)), dtype) for limit in (low, high))
    return lax.convert_element_type(lax.min(highest, lax.max(lowest, x)), np.int32)


@sampler
def _randint(key, minval, maxval, *, shape, dtype):
    if dtypes.itemsize_bits(dtype) >= 32:
        return _integers(key, minval, maxval, shape, dtype)
    low, high = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
    minval, maxval = clip_integer(minval, low, high), clip_integer(maxval, low, high + 1)
    return lax.convert_element_type(_integers(key, minval, maxval, shape, np.dtype(np.int32)), dtype)


def _integers(key, minval, maxval, shape: tuple, dtype):
    """Integers of 32 or 64 bits."""
    width = dtypes.itemsize_bits(dtype)
    word, limits = UNSIGNED[width], dtypes.iinfo(dtype)
    beyond = exceeds(maxval, int(limits.max))
    low, high = [lift(saturate(x, dtype), shape) for x in (minval, maxval)]
    first, second = [bits_of(k, bit_width=width, shape=shape) for k in pair(key)]
    one = word.type(1)
    empty = lax.le(high, low)
    span = lax.select_n(empty, lax.convert_element_type(lax.sub(high, low), word), lax.full_like(empty, 1, word))
    whole = lax.bitwise_and(beyond, lax.gt(high, low))  # maxval is one beyond the dtype: its largest may be drawn, too
    span = lax.select_n(whole, span, lax.add(span, one))
    half = lax.rem(word.type(2 ** (width // 2)), span)
    factor = lax.rem(lax.mul(half, half), span)  # 2**width, modulo the span
    offset = lax.rem(lax.add(lax.mul(lax.rem(first, span), factor), lax.rem(second, span)), span)
    return lax.add(low, lax.convert_element_type(offset, dtype))


def exceeds(x, limit: int):
    """Whether an integer array is above ``limit``, which its dtype may not hold."""
    dtype = get_aval(x).dtype
    if int(dtypes.iinfo(dtype).max) <= limit:
        return np.zeros((), bool)
    return lax.gt(x, np.asarray(limit, dtype))


def saturate(x, dtype):
    """An integer array in another integer dtype, values beyond its ends at them."""
    own, target = dtypes.iinfo(get_aval(x).dtype), dtypes.iinfo(dtype)
    low, high = max(int(own.min), int(target.min)), min(int(own.max), int(target.max))
    kind = get_aval(x).dtype
    return lax.convert_element_type(lax.min(np.asarray(high, kind), lax.max(np.asarray(low, kind), x)), dtype)


# ---- coins


@remembered
def bernoulli(key, p=0.5, shape=None, mode: str = "low", *, out_sharding=None) -> Array:
    """True with probability ``p``.

    Arguments:
      key: a key, typed or raw.
      p: probabilities, floats that broadcast to ``shape``.
      shape: the shape of the result; that of ``p`` by default.
      mode: ``"high"`` draws twice the bits, to be right for very small probabilities, too; ``"low"`` does
        not.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      A boolean array.
    Raises:
      TypeError: ``p`` is not a float.
      ValueError: ``p`` does not broadcast to ``shape``, or ``mode`` is neither.

    Source: comparison of a uniform number.

    >>> from catena import random
    >>> random.bernoulli(random.key(0), 0.3, (4,)).tolist()
    [False, False, False, False]
    """
    if out_sharding is not None:
        return told(out_sharding, bernoulli, key, p, shape, mode)
    key = consumed_key("bernoulli", key)
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    dtype = dtypes.canonicalize_dtype(float if type(p) is float else dtypes.dtype(p))
    if not dtypes.is_floating(dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtypes.dtype_name(dtype)}.")
    shape = shape_of(shape, "bernoulli", p)
    return _bernoulli(key, lax.convert_element_type(p, dtype), shape=shape, mode=mode)


@sampler
def _bernoulli(key, p, *, shape, mode):
    dtype = get_aval(p).dtype
    p = lift(p, shape) if np.ndim(p) else p
    if mode == "low":
        return lax.lt(_uniform(key, 0.0, 1.0, shape=shape, dtype=dtype), p)
    first, second = rows(_uniform(key, 0.0, 1.0, shape=(2, *shape), dtype=dtype))
    return lax.lt(lax.mul(second, dtype.type(dtypes.finfo(dtype).eps)), lax.sub(p, first))


def rows(x):
    """The entries along the first axis."""
    return [lax.squeeze(lax.slice_in_dim(x, i, i + 1), (0,)) for i in range(get_aval(x).shape[0])]


@remembered
def rademacher(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """One or minus one, each with probability 1/2.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: any dtype; the default integer. Unsigned ones have their largest number for minus one, bool has True.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: ``shape`` has a negative length, or ``key`` is an array of keys.

    Source: comparison of a uniform number.

    >>> from catena import random
    >>> random.rademacher(random.key(0), (4,)).tolist()
    [-1, -1, 1, 1]
    """
    if out_sharding is not None:
        return told(out_sharding, rademacher, key, shape, dtype)
    key = consumed_key("rademacher", key)
    dtype = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "rademacher")
    return _rademacher(key, shape=asked_shape(shape), dtype=dtype)


@sampler
def _rademacher(key, *, shape, dtype):
    half = np.asarray(0.5, dtypes.canonicalize_dtype(float))
    coins = _bernoulli(key, half, shape=shape, mode="low")
    number = np.dtype(np.int8) if dtype == dtypes.BOOL else dtype
    two, one = [np.asarray(n).astype(number)[()] for n in (2, 1)]
    signs = lax.sub(lax.mul(two, lax.convert_element_type(coins, number)), one)
    return lax.convert_element_type(signs, dtype)
