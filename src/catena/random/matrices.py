"""Random vectors and matrices."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.shapes import broadcast_shapes
from catena.core.zeros import get_aval
from catena.lax import linalg
from catena.lax.structure import told
from catena.numpy import asarray, broadcast_to, diagonal, einsum
from catena.random.keys import asked_shape, consumed_key
from catena.random.normal_family import _normal, inexact_dtype
from catena.random.sampler import as_float, float_dtype, sampler

METHODS = ("svd", "eigh", "cholesky")


def multivariate_normal(
    key, mean, cov, shape=None, dtype=None, method: str = "cholesky", *, out_sharding=None
) -> Array:
    """Normal vectors of given mean and covariance.

    Arguments:
      key: a key, typed or raw.
      mean: ``[..., n]``.
      cov: ``[..., n, n]``, positive definite; with ``svd`` and ``eigh`` semidefinite will do.
      shape: the shape of the array of vectors, to which the leading axes broadcast; those by default.
      dtype: a float dtype.
      method: the factorisation of the covariance: ``cholesky``, ``eigh`` or ``svd``.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of shape ``(*shape, n)``.
    Raises:
      ValueError: the arguments do not fit each other, or there is no such method.

    Source: a root of the covariance times independent normal numbers.

    >>> from catena import random
    >>> import numpy as np
    >>> random.multivariate_normal(random.key(0), np.zeros(2, np.float32), np.eye(2, dtype=np.float32), (3,)).shape
    (3, 2)
    """
    if out_sharding is not None:
        return told(out_sharding, multivariate_normal, key, mean, cov, shape, dtype, method)
    key = consumed_key("multivariate_normal", key)
    dtype = float_dtype(dtype, "multivariate_normal")
    mean, cov = as_float(asarray(mean), dtype), as_float(asarray(cov), dtype)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    if not mean.ndim:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {cov.shape}."
        )
    together = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    lead = together if shape is None else asked_shape(shape)
    if broadcast_shapes(lead, together) != lead:
        raise ValueError(
            f"multivariate_normal: mean and cov must broadcast to shape {lead}, got leading axes "
            f"{mean.shape[:-1]} and {cov.shape[:-2]}"
        )
    return _multivariate_normal(key, mean, cov, shape=(*lead, n), dtype=dtype, method=method)


@sampler(positional=False)
def _multivariate_normal(key, mean, cov, *, shape, dtype, method):
    drawn = _normal(key, shape=shape, dtype=dtype)
    return broadcast_to(mean, shape) + einsum("...ij,...j->...i", covariance_root(cov, method), drawn)


def covariance_root(cov, method: str):
    """A matrix whose product with its transpose is ``cov``; floats of 16 bits are factorised in float32."""
    dtype = get_aval(cov).dtype
    if dtypes.itemsize_bits(dtype) < 32:
        return as_float(covariance_root(as_float(cov, np.float32), method), dtype)
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "svd":
        vectors, values, _ = linalg.svd(cov)
    else:
        vectors, values = linalg.eigh(cov)
    return vectors * lax.expand_dims(lax.sqrt(values), (values.ndim - 1,))


def orthogonal(key, n: int, shape=(), dtype=None, m: int | None = None, *, out_sharding=None) -> Array:
    """Matrices with orthonormal columns (or rows), uniformly distributed.

    Arguments:
      key: a key, typed or raw.
      n: the number of rows.
      shape: the shape of the array of matrices.
      dtype: a float or complex dtype.
      m: the number of columns; ``n`` by default.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of shape ``(*shape, n, m)``.
    Raises:
      ValueError: a dimension is negative, or the dtype is neither float nor complex.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).

    >>> from catena import random
    >>> random.orthogonal(random.key(0), 3).shape
    (3, 3)
    """
    if out_sharding is not None:
        return told(out_sharding, orthogonal, key, n, shape, dtype, m)
    key = consumed_key("orthogonal", key)
    if n < 0 or (m is not None and m < 0):
        raise ValueError(f"negative dimensions are not allowed, got {n} and {m}")
    dtype = inexact_dtype(dtype, "normal")
    return _orthogonal(key, shape=(*asked_shape(shape), n, n if m is None else m), dtype=dtype)


@sampler(positional=False)
def _orthogonal(key, *, shape, dtype):
    """The Q of a normal matrix, with the signs of the diagonal of R: Mezzadri (2007), arXiv math-ph/0609050."""
    tall = shape[-2] >= shape[-1]
    drawn = _normal(key, shape=shape if tall else (*shape[:-2], shape[-1], shape[-2]), dtype=dtype)
    q, r = linalg.qr(drawn, full_matrices=False)
    signs = lax.sign(diagonal(r, axis1=-2, axis2=-1))
    q = q * lax.expand_dims(signs, (signs.ndim - 1,))
    return q if tall else lax.conj(transposed(q)) if dtypes.is_complex(get_aval(q).dtype) else transposed(q)


def transposed(x):
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
