"""Normal numbers and what is made of them directly."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.shapes import broadcast_shapes
from catena.lax.structure import told
from catena.random.kernels import remembered
from catena.random.keys import asked_shape, consumed_key, pair
from catena.random.sampler import (
    as_float,
    float_dtype,
    lift,
    safe_float,
    sampler,
    shape_of,
    spread,
)
from catena.random.uniform_family import _rademacher, _uniform

SQRT_2 = np.sqrt(2.0)


@remembered
def normal(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Standard normal numbers.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float or complex dtype; complex numbers have variance 1/2 in each part.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is neither float nor complex.

    Source: inversion; the inverse error function by Giles, "Approximating the erfinv function" (2010).

    >>> from catena import random
    >>> random.normal(random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    if out_sharding is not None:
        return told(out_sharding, normal, key, shape, dtype)
    key = consumed_key("normal", key)
    return _normal(key, shape=asked_shape(shape), dtype=inexact_dtype(dtype, "normal"))


def inexact_dtype(dtype, name: str):
    """The canonical float or complex dtype asked of the sampler ``name``."""
    if dtype is None:
        return dtypes.canonicalize_dtype(float)
    full = dtypes.asked_dtype(dtype, name)
    if not dtypes.is_inexact(full):
        raise ValueError(f"dtype argument to `{name}` must be a float or complex dtype, got {dtypes.dtype_name(full)}")
    return dtypes.check_user_dtype_supported(dtype, name)


def real_dtype(dtype) -> np.dtype:
    """The dtype of the parts of complex numbers."""
    return np.dtype(f"float{4 * dtype.itemsize}")


@sampler
def _normal(key, *, shape, dtype):
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape=shape, dtype=dtype)
    real, imag = [
        lax.convert_element_type(_normal_real(k, shape=shape, dtype=real_dtype(dtype)), dtype) for k in pair(key)
    ]
    return lax.div(lax.add(real, lax.mul(dtype.type(1j), imag)), dtype.type(real_dtype(dtype).type(SQRT_2)))


@sampler
def _normal_real(key, *, shape, dtype):
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    unit = _uniform(key, low, dtype.type(1), shape=shape, dtype=dtype)
    return lax.mul(np.asarray(SQRT_2, dtype)[()], lax.erf_inv(unit))


@remembered
def truncated_normal(key, lower, upper, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Standard normal numbers given that they lie between bounds.

    Arguments:
      key: a key, typed or raw.
      lower, upper: the bounds, that broadcast to ``shape``.
      shape: the shape of the result; that of the bounds by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or the bounds do not broadcast to ``shape``.

    Source: inversion between the two bounds, as for ``normal``.

    >>> from catena import random
    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (2,))
    Array([0.8618594, 0.9412883], dtype=float32)
    """
    if out_sharding is not None:
        return told(out_sharding, truncated_normal, key, lower, upper, shape, dtype)
    key = consumed_key("truncated_normal", key)
    dtype = float_dtype(dtype, "truncated_normal")
    shape = shape_of(shape, "truncated_normal", lower, upper)
    return _truncated_normal(key, as_float(lower, dtype), as_float(upper, dtype), shape=shape, dtype=dtype)


@sampler
def _truncated_normal(key, lower, upper, *, shape, dtype):
    root = np.asarray(SQRT_2, dtype)[()]
    low, high = [lax.erf(lax.div(x, root)) for x in (lower, upper)]
    drawn = lax.mul(root, lax.erf_inv(_uniform(key, low, high, shape=shape, dtype=dtype, exact=False)))
    infinity = np.asarray(np.inf, dtype)[()]
    inside = [lax.nextafter(lax.stop_gradient(x), i) for x, i in ((lower, infinity), (upper, -infinity))]
    low, high = [spread(x, shape) if np.ndim(x) else x for x in inside]
    return lax.min(high, lax.max(low, drawn))


@remembered
def lognormal(key, sigma=1.0, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers whose logarithm is normal with mean 0.

    Arguments:
      key: a key, typed or raw.
      sigma: the standard deviation of the logarithm, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``sigma`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``sigma`` does not broadcast to ``shape``.

    Source: the exponential of a normal number.

    >>> from catena import random
    >>> random.lognormal(random.key(0), 0.5, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, lognormal, key, sigma, shape, dtype)
    key = consumed_key("lognormal", key)
    dtype = float_dtype(dtype, "lognormal")
    shape = shape_of(shape, "lognormal", sigma)
    return _lognormal(key, safe_float(sigma, dtype, "lognormal"), shape=shape, dtype=dtype)


@sampler
def _lognormal(key, sigma, *, shape, dtype):
    return lax.exp(lax.mul(_normal(key, shape=shape, dtype=dtype), lift(sigma, shape)))


# ---- Maxwell's distribution: lengths of normal vectors in three dimensions


def maxwell(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Lengths of standard normal vectors of three dimensions.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype.

    Source: the length of a normal vector.

    >>> from catena import random
    >>> random.maxwell(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, maxwell, key, shape, dtype)
    key = consumed_key("maxwell", key)
    return _maxwell(key, shape=asked_shape(shape), dtype=float_dtype(dtype, "maxwell"))


@sampler(positional=False)
def _maxwell(key, *, shape, dtype):
    vectors = _normal(key, shape=(*shape, 3), dtype=dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(vectors, vectors), (len(shape),)))


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None) -> Array:
    """Maxwell's distribution on both sides of a centre.

    Arguments:
      key: a key, typed or raw.
      loc, scale: the centre and the scale, that broadcast to the shape of the result.
      shape: the shape of the draws, in front of the shape of ``loc`` and ``scale``; without one, theirs, as in JAX.
      dtype: a float dtype.
    Returns:
      An array of shape ``shape + broadcast(loc, scale)``.
    Raises:
      ValueError: the dtype is not a float dtype, or ``loc`` and ``scale`` do not broadcast together.

    Source: a length as in ``maxwell``, with a random sign.

    >>> from catena import random
    >>> random.double_sided_maxwell(random.key(0), 1.0, 2.0, (2,)).shape
    (2,)
    """
    key = consumed_key("double_sided_maxwell", key)
    dtype, shape = float_dtype(dtype, "double_sided_maxwell"), asked_shape(shape)
    together = broadcast_shapes(np.shape(loc), np.shape(scale))
    full = (*(shape or together), *together)
    return _double_sided_maxwell(key, as_float(loc, dtype), as_float(scale, dtype), shape=full, dtype=dtype)


@sampler(positional=False)
def _double_sided_maxwell(key, loc, scale, *, shape, dtype):
    first, second = pair(key)
    lengths = _maxwell(first, shape=shape, dtype=dtype)
    signs = _rademacher(second, shape=shape, dtype=dtype)
    return lax.add(lax.mul(lax.mul(signs, lengths), lift(scale, shape)), lift(loc, shape))


# ---- the inverse Gaussian distribution


def wald(key, mean, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Wald (inverse Gaussian) distribution with scale 1.

    Arguments:
      key: a key, typed or raw.
      mean: the mean, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``mean`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``mean`` does not broadcast to ``shape``.

    Source: Michael, Schucany, Haas, "Generating random variates using transformations with multiple roots" (1976).

    >>> from catena import random
    >>> random.wald(random.key(0), 1.0, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, wald, key, mean, shape, dtype)
    key = consumed_key("wald", key)
    dtype = float_dtype(dtype, "wald")
    return _wald(key, safe_float(mean, dtype, "wald"), shape=shape_of(shape, "wald", mean), dtype=dtype)


@sampler
def _wald(key, mean, *, shape, dtype):
    """Michael, Schucany, Haas: "Generating random variates using transformations with multiple roots" (1976)."""
    first, second = pair(key)
    mean = spread(mean, shape)
    y = lax.square(_normal(first, shape=shape, dtype=dtype))
    unit = _uniform(second, 0.0, 1.0, shape=shape, dtype=dtype)
    squared, two, four = lax.square(mean), dtype.type(2), dtype.type(4)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(four, mean), y), lax.mul(squared, lax.square(y))))
    smaller = lax.sub(lax.add(mean, lax.div(lax.mul(squared, y), two)), lax.mul(lax.div(mean, two), root))
    take = lax.le(unit, lax.div(mean, lax.add(mean, smaller)))
    return lax.select_n(take, lax.div(squared, smaller), smaller)
