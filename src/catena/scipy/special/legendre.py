"""Associated Legendre functions."""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.array import Array
from catena.numpy.boundary import as_array_argument, concrete_or_error
from catena.transform.jit import jit


def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """The associated Legendre functions of all degrees and orders up to one, and their derivatives.

    Arguments:
      m, n: the greatest order and the greatest degree, which must be equal.
      z: a vector of floats of 32 or 64 bits, from -1 to 1.
    Returns:
      Two arrays of shape ``(m + 1, n + 1, len(z))``: the functions, with the phase of Condon and Shortley, and their
      derivatives by ``z``; 0 where the order is greater than the degree.
    Raises:
      TypeError: ``z`` is of another dtype.
      ValueError: ``z`` is no vector, or ``n`` is negative.
      NotImplementedError: ``m`` and ``n`` differ.

    Source: NIST DLMF 14.10.3 and 14.10.5, the latter divided by the sine, so that it holds at the ends, too.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> values, slopes = special.lpmn(1, 1, jnp.array([0.6]))
    >>> values[..., 0]
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], dtype=float32)
    """
    return _with_slopes(_points("lpmn", m, n, z), int(n))


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """The associated Legendre functions of all degrees and orders up to one.

    Arguments:
      m, n, z: as of ``lpmn``.
      is_normalized: whether they are those of spherical harmonics, whose squares have integral 1 over the sphere.
    Returns:
      An array of shape ``(m + 1, n + 1, len(z))``.
    Raises:
      TypeError, ValueError, NotImplementedError: as ``lpmn``.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.lpmn_values(1, 1, jnp.array([0.6]), False)[..., 0]
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], dtype=float32)
    """
    return _values(_points("lpmn_values", m, n, z), int(n), bool(is_normalized))


def _points(name: str, m: int, n: int, z) -> Array:
    z = as_array_argument(name, z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: z must be of dtype float32 or float64, got {z.dtype}")
    if z.ndim != 1:
        raise ValueError(f"{name}: z must be a vector, got an array of shape {z.shape}")
    m, n = (concrete_or_error(int, v, f"The greatest order and degree of {name}.") for v in (m, n))
    if m != n:
        raise NotImplementedError(f"{name}: the greatest order and the greatest degree must be equal, got {m} and {n}")
    if n < 0:
        raise ValueError(f"{name}: the greatest degree must not be negative, got {n}")
    return z


def _coefficients(n: int, is_normalized: bool) -> tuple[np.ndarray, ...]:
    """By degree, from 1: what takes the two degrees below, at each order, to this one, and the diagonal to the next."""
    degree, order = np.arange(1.0, n + 1)[:, None], np.arange(n + 1.0)
    inside = order < degree
    above = np.where(inside, degree - order, 1)
    if not is_normalized:
        return inside * (2 * degree - 1) / above, inside * (degree + order - 1) / above, 1 - 2 * degree[:, 0]
    above *= np.where(inside, degree + order, 1)
    below = np.where(order < degree - 1, ((degree - 1) ** 2 - order**2) / np.maximum(2 * degree - 3, 1), 0)
    size = 2 * degree + 1
    diagonal = -np.sqrt(1 + 0.5 / degree[:, 0])
    return inside * np.sqrt(size * (2 * degree - 1) / above), inside * np.sqrt(size * below / above), diagonal


def _divided(z, n: int, is_normalized: bool):
    """The functions of shape (order, degree, point), those of orders above 0 divided by the sine; and the sine."""
    sine = jnp.sqrt((1 - z) * (1 + z))
    least = math.sqrt(0.25 / math.pi) if is_normalized else 1.0
    first = jnp.zeros((n + 1, z.size), z.dtype).at[0].set(least)
    tables = [jnp.asarray(table, z.dtype) for table in _coefficients(n, is_normalized)]

    def degree(state, row):
        before, now = state
        up, down, diagonal, k = row
        above = up[:, None] * z * now - down[:, None] * before
        above = above.at[k].set(diagonal * now[k - 1] * jnp.where(k > 1, sine, 1))
        return (now, above), above

    _, rest = lax.scan(degree, (jnp.zeros_like(first), first), (*tables, jnp.arange(1, n + 1)))
    return jnp.swapaxes(jnp.concatenate([first[None], rest]), 0, 1), sine


def _multiplied(divided, sine):
    return jnp.concatenate([divided[:1], divided[1:] * sine])


def _of_points(z, n: int, is_normalized: bool):
    return _multiplied(*_divided(z, n, is_normalized))


def _of_points_with_slopes(z, n: int):
    """The slope of order m is half of what the orders beside it say, of which one is below and one above."""
    divided, sine = _divided(z, n, False)
    values, nothing = _multiplied(divided, sine), jnp.zeros_like(divided[:1])
    degree, order = np.arange(n + 1.0), np.arange(n + 1.0)[:, None]
    factor = jnp.asarray(np.where(order <= degree, (degree + order) * (degree - order + 1), 0), z.dtype)[..., None]
    below = jnp.concatenate([nothing, divided[:1] / sine, divided[1:]])[: n + 1]
    above = jnp.concatenate([divided[1:], nothing])
    slopes = (jnp.where(factor == 0, 0, factor * below) - above) / 2  # the function of order 1 is vertical at the ends
    return values, slopes.at[0].set(0 - above[0])


_values = jit(_of_points, static_argnums=(1, 2))
_with_slopes = jit(_of_points_with_slopes, static_argnums=1)
