"""Spherical harmonics."""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, concrete_or_error
from catena.scipy.special.arguments import real
from catena.transform.jit import jit
from catena.typing import ArrayLike


@whole
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonics of degree ``n`` and order ``m``, with the phase of Condon and Shortley.

    Arguments:
      n: degrees, integers that are not negative.
      m: orders, integers; the function is 0 where their magnitude is greater than the degree.
      theta: polar angles, from 0 to pi.
      phi: azimuthal angles, from 0 to 2 pi.
      diff_n: only None: derivatives are those that transformations give.
      n_max: the greatest degree, a number that is known when the function is compiled; by default that in ``n``.
    Returns:
      A complex array of the shape to which the arguments broadcast.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or degrees or orders are not integers.
      ValueError: shapes do not broadcast, or an angle is complex.
      NotImplementedError: ``diff_n`` is given.
      ConcretizationTypeError: ``n`` is traced and ``n_max`` is not given.

    Source: NIST DLMF 14.30.1; the recurrence is that of Holmes and Featherstone, "A unified approach
    to the Clenshaw summation and the recursive computation of very high degree and order normalised associated Legendre
    functions" (2002).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.sph_harm_y(jnp.array([0, 1]), jnp.array([0, 1]), 1.0, 0.5)
    Array([ 0.2820948 +0.j        , -0.25513372-0.13938019j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with jax.jvp or jax.grad")
    n, m = (as_array_argument("sph_harm_y", v) for v in (n, m))
    for name, v in (("n", n), ("m", m)):
        if not jnp.issubdtype(v.dtype, np.integer):
            raise TypeError(f"sph_harm_y: {name} must be of an integer dtype, got {v.dtype}")
    theta, phi = real("sph_harm_y", theta, phi)
    if n_max is None:
        n_max = concrete_or_error(int, jnp.max(n, initial=0), "The greatest degree of sph_harm_y; pass it as n_max.")
    return _harmonics(*jnp.broadcast_arrays(n, m, theta, phi), int(n_max))


def _of_points(n, m, theta, phi, n_max: int):
    """Up the orders along the diagonal, then up the degrees."""
    order, cosine, sine = jnp.abs(m), jnp.cos(theta), jnp.sin(theta)

    def diagonal(j, p):
        factor = -jnp.sqrt((2 * j + 1) / (2 * j)).astype(p.dtype) * sine
        return jnp.where(j <= order, p * factor, p)

    start = jnp.full_like(cosine, math.sqrt(1 / (4 * math.pi)))
    below = lax.fori_loop(1, n_max + 1, diagonal, start)
    mm = jnp.square(order).astype(cosine.dtype)

    def degree(k, state):
        """From degrees l - 1 and l to l + 1, for the order of each point."""
        before, now, kept = state
        degrees = order + k
        kept = jnp.where(degrees == n, now, kept)
        size = degrees.astype(cosine.dtype)
        above = jnp.square(size + 1) - mm
        up = jnp.sqrt((2 * size + 3) * (2 * size + 1) / above)
        inner = jnp.where(
            k == 0, 0, (2 * size + 3) * (jnp.square(size) - mm) / (jnp.where(k == 0, 1, 2 * size - 1) * above)
        )
        down = jnp.where(k == 0, 0, jnp.sqrt(jnp.where(k == 0, 1, inner)))
        return now, up * cosine * now - down * before, kept

    zeros = jnp.zeros_like(below)
    _, _, value = lax.fori_loop(0, n_max + 1, degree, (zeros, below, zeros))
    sign = jnp.where((m < 0) & (order % 2 == 1), -1, 1)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(sign * value * jnp.cos(angle), sign * value * jnp.sin(angle))


_harmonics = jit(_of_points, static_argnums=4)
