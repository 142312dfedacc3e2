"""The gamma function and what is made of it: factorials, beta functions, polygamma and zeta functions."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import concrete_or_error, promote_inexact
from catena.scipy.special.arguments import floats, numbers, real, strong
from catena.scipy.special.complex_gamma import complex_loggamma
from catena.scipy.special.primitives import beta_p, binomial_p, gamma_p, log_beta_p, poch_p, riemann_zeta_p
from catena.transform.jit import jit
from catena.typing import ArrayLike

# ---- gamma


def gamma(x: ArrayLike) -> Array:
    """The gamma function of each element.

    Arguments:
      x: real or complex numbers.
    Returns:
      An array of the float or complex dtype that ``x`` promotes to: NaN at the negative integers, and an infinity of
      the sign of zero at zero.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    Source: Abramowitz and Stegun (1964), 6.1.17 and 6.1.37.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.gamma(jnp.array([0.5, 5.0]))
    Array([ 1.7724539, 24.       ], dtype=float32)
    """
    (x,) = promote_inexact("gamma", x)
    return strong(lax.exp(complex_loggamma(x)) if dtypes.is_complex(x.dtype) else gamma_p.bind(x))


@floats
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the gamma function's magnitude.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.gammaln(jnp.array([1.0, 10.0, 1e10]))
    Array([0.0000000e+00, 1.2801827e+01, 2.2025852e+11], dtype=float32)
    """
    return lax.lgamma(*promote_inexact("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function of each element; of complex numbers its principal branch.

    Arguments:
      x: real or complex numbers.
    Returns:
      An array of the float or complex dtype that ``x`` promotes to; NaN for negative real numbers.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    Source: Hare, "Computing the principal branch of log-gamma" (1997).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> jnp.round(special.loggamma(jnp.array([0.5 + 1j])), 3)
    Array([-0.653-0.955j], dtype=complex64)
    """
    (x,) = promote_inexact("loggamma", x)
    return strong(complex_loggamma(x)) if dtypes.is_complex(x.dtype) else _real_loggamma(x)


@jit
def _real_loggamma(x):
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


@whole
@numbers
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function: 1 or -1, NaN at the negative integers, that of zero at zero.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.gammasgn(jnp.array([2.5, -0.5, -1.5, -2.0]))
    Array([ 1., -1.,  1., nan], dtype=float32)
    """
    return _gammasgn(*real("gammasgn", x))


@jit
def _gammasgn(x):
    whole = jnp.floor(x)
    sign = jnp.where((x > 0) | (jnp.floor(whole / 2) * 2 == whole), 1, -1).astype(x.dtype)
    sign = jnp.where(x == 0, jnp.copysign(jnp.ones_like(x), x), sign)
    return jnp.where(jnp.isnan(x) | (x == -np.inf) | ((x < 0) & (whole == x)), np.nan, sign)


# ---- factorials


@whole
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial of each element, ``gamma(n + 1)``; 0 for negative ones.

    Arguments:
      n: numbers.
      exact: only False: arrays hold no integers of any size.
    Returns:
      An array of the float dtype that ``n`` promotes to.
    Raises:
      TypeError: ``n`` is neither an array nor a scalar, or is complex.
      NotImplementedError: ``exact`` is true.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.factorial(jnp.arange(5))
    Array([ 1.,  1.,  2.,  6., 24.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True asks for integers of any size, which arrays do not hold")
    return _factorial(*real("factorial", n, error=TypeError))


@jit
def _factorial(n):
    return jnp.where(n < 0, 0, gamma_p.bind(jnp.where(n < 0, 0, n) + 1))


@whole
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:  # noqa: N803
    """The number of ways to choose ``k`` of ``N``: the binomial coefficient.

    Arguments:
      N: numbers.
      k: numbers, of a shape that broadcasts with ``N``.
      repetition: whether the same may be chosen again.
    Returns:
      An array of the float dtype that the arguments promote to; 0 where ``k`` is negative or greater than ``N``, or
      ``N`` is negative. Whole where both arguments are.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or is complex.
      ValueError: shapes do not broadcast.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.comb(jnp.array([4, 5, 2]), 2), special.comb(4, 2, repetition=True).item()
    (Array([ 6., 10.,  1.], dtype=float32), 10.0)
    """
    n, k = real("comb", N, k, error=TypeError)
    return _comb(n + k - 1 if repetition else n, k)


@jit
def _comb(n, k):
    """Rounded to whole numbers where they are to be."""
    none = (n < 0) | (k < 0) | (k > n)
    n, k = jnp.where(none, 1, n), jnp.where(none, 1, k)
    ways = binomial_p.bind(n, k)
    whole = (jnp.floor(n) == n) & (jnp.floor(k) == k)
    ways = ways + lax.stop_gradient(jnp.where(whole & (ways < 1 / jnp.finfo(n.dtype).eps), jnp.round(ways) - ways, 0))
    return jnp.where(none, 0, ways)


@whole
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial ``gamma(z + m) / gamma(z)``.

    Arguments:
      z: numbers.
      m: numbers, of a shape that broadcasts with ``z``.
    Returns:
      An array of the float dtype that the arguments promote to; 1 where ``m`` is 0.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: an argument is complex, or shapes do not broadcast.

    >>> from catena.scipy import special
    >>> special.poch(2.0, 3.0).item()
    24.0
    """
    return strong(poch_p.bind(*real("poch", z, m)))


@whole
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the gamma function of ``d`` by ``d`` matrices.

    Arguments:
      a: numbers, greater than ``(d - 1) / 2`` where the function is defined.
      d: the dimension, a number that is known when the function is compiled.
    Returns:
      An array of the float dtype that ``a`` and ``d`` promote to.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar, or is complex, or ``d`` is no scalar.

    Source: James, "Distributions of matrix variates and latent roots derived from normal samples" (1964).

    >>> from catena.scipy import special
    >>> special.multigammaln(5.0, 1).item(), special.multigammaln(5.0, 2).item()
    (3.178053855895996, 6.204154968261719)
    """
    d = concrete_or_error(int, d, "d argument of multigammaln")
    (a,) = real("multigammaln", a, error=TypeError)
    constant = d * (d - 1) / 4 * float(np.log(np.pi))  # not of a dtype, which would be that of the result
    if d <= 0:
        return strong(jnp.full_like(a, constant))
    steps = np.arange(d) / 2
    return strong(jnp.sum(lax.lgamma(a[..., None] - jnp.asarray(steps, a.dtype)), axis=-1) + constant)


# ---- beta functions


@numbers
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function.

    Source: as a quotient of gamma functions while these are small, else as for `betaln`.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.beta(jnp.array([1.0, 2.0]), 3.0)
    Array([0.33333334, 0.08333334], dtype=float32)
    """
    return strong(beta_p.bind(*real("beta", a, b)))


@floats
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the beta function's magnitude.

    Source: Didonato and Morris, "Algorithm 708" (1992): Stirling's series of large arguments are combined.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.betaln(jnp.array([1.0, 1e8]), 2.0)
    Array([ -0.6931472, -36.841362 ], dtype=float32)
    """
    return log_beta_p.bind(*real("betaln", a, b, error=TypeError))


@numbers
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function, differentiable by ``x``.

    >>> from catena.scipy import special
    >>> special.betainc(1.0, 2.0, 0.5).item()
    0.75
    """
    return lax.betainc(*real("betainc", a, b, x))


# ---- incomplete gamma functions


@floats
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.gammainc(1.0, jnp.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return lax.igamma(*promote_inexact("gammainc", a, x))


@floats
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.gammaincc(1.0, jnp.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    return lax.igammac(*promote_inexact("gammaincc", a, x))


# ---- derivatives of gammaln, and zeta


@floats
def digamma(x: ArrayLike) -> Array:
    """The derivative of the logarithm of the gamma function.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.digamma(jnp.array([1.0, 2.0]))
    Array([-0.5772157 ,  0.42278433], dtype=float32)
    """
    return lax.digamma(*promote_inexact("digamma", x))


@whole
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order ``n`` of the digamma function.

    Arguments:
      n: integers.
      x: numbers, of a shape that broadcasts with ``n``.
    Returns:
      An array of the float dtype that ``x`` promotes to; NaN for negative orders.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or ``x`` is complex.
      ValueError: ``n`` is not of an integer dtype, or shapes do not broadcast.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.polygamma(1, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    if not jnp.issubdtype(jnp.result_type(n), np.integer):
        raise ValueError(f"polygamma: n must be of an integer dtype, got {jnp.result_type(n)}")
    return lax.polygamma(*promote_inexact("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function, the sum of ``(q + n) ** -x`` over ``n = 0, 1, 2 ...``; Riemann's where ``q`` is None.

    Arguments:
      x: exponents; greater than 1, unless ``q`` is None.
      q: numbers, of a shape that broadcasts with ``x``.
    Returns:
      An array of the float dtype that the arguments promote to.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or is complex.
      ValueError: shapes do not broadcast.

    Source: Euler-Maclaurin summation, and Riemann's functional equation (NIST DLMF 25.4.1, 25.11.5).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.zeta(2.0, jnp.array([1.0, 2.0])), special.zeta(-1.0).item()
    (Array([1.644934  , 0.64493406], dtype=float32), -0.0833333358168602)
    """
    if q is None:
        return riemann_zeta_p.bind(*real("zeta", x, error=TypeError))
    return lax.zeta(*promote_inexact("zeta", x, q))
