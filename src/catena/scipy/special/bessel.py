"""Bessel functions: modified ones of orders 0 and 1, and those of the first kind of several orders."""

from __future__ import annotations

import operator

from catena import lax
from catena import numpy as jnp
from catena.core.array import Array
from catena.numpy.boundary import promote_inexact
from catena.scipy.special.arguments import floats, real, strong
from catena.scipy.special.primitives import i0_p, i1_p
from catena.transform.jit import jit
from catena.typing import ArrayLike


@floats
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.i0(jnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return i0_p.bind(*real("i0", x, error=TypeError))


@floats
def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0 times ``exp(-abs(x))``.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return lax.bessel_i0e(*promote_inexact("i0e", x))


@floats
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.i1(jnp.array([0.0, 1.0]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return i1_p.bind(*real("i1", x, error=TypeError))


@floats
def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1 times ``exp(-abs(x))``.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return lax.bessel_i1e(*promote_inexact("i1e", x))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to ``v``.

    Arguments:
      z: numbers.
      v: the greatest order.
      n_iter: from which order on the recurrence runs down; somewhat more than ``v`` and the greatest of ``abs(z)``.
    Returns:
      An array of shape ``(v + 1, *z.shape)``, of the float dtype that ``z`` promotes to.
    Raises:
      TypeError: ``z`` is neither an array nor a scalar, or is complex, or ``v`` or ``n_iter`` is no integer.
      ValueError: ``v`` is negative, or ``n_iter`` less than ``v``.

    Source: Gautschi, "Computational aspects of three-term recurrence relations" (1967), 3: quotients of functions of
    consecutive orders, from high to low, which neither overflow nor underflow.

    >>> from catena.scipy import special
    >>> special.bessel_jn(1.0, v=2)
    Array([0.7651977 , 0.4400506 , 0.11490349], dtype=float32)
    """
    v, n_iter = operator.index(v), operator.index(n_iter)
    if v < 0 or n_iter < v:
        raise ValueError(f"bessel_jn needs 0 <= v <= n_iter, got v={v}, n_iter={n_iter}")
    (z,) = real("bessel_jn", z, error=TypeError)
    return _bessel_jn(strong(z), v, n_iter)


def _bessel(z, v: int, n_iter: int):
    tiny = float(jnp.finfo(z.dtype).tiny)

    def step(carry, k):
        """J_k / J_(k-1), and the sum 2 J_2 + 2 J_4 + ... of what follows, relative to J_(k-1)."""
        quotient, rest = carry
        below = 2 * k - z * quotient
        quotient = z / jnp.where(below == 0, tiny, below)
        rest = quotient * (jnp.where(k % 2 == 0, 2, 0).astype(z.dtype) + rest)
        return (quotient, rest), quotient

    orders = jnp.arange(n_iter + 1, 0, -1).astype(z.dtype)
    (_, rest), quotients = lax.scan(step, (jnp.zeros_like(z), jnp.zeros_like(z)), orders)
    first = 1 / (1 + rest)
    steps = jnp.concatenate([first[None], jnp.flip(quotients, 0)[:v]])
    return jnp.cumprod(steps, axis=0)


_bessel_jn = jit(_bessel, static_argnums=(1, 2))
