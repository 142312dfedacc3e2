"""Special functions: error functions, gamma, beta, zeta and Bessel functions."""

import math

import numpy as np

from catena.core import dtypes
from catena.core.lazy import LazyModule, load
from catena.core.primitive import NoRule
from catena.core.zeros import Zero, get_aval
from catena.lax.arithmetic import abs, add, div, mul, neg, sign, sub
from catena.lax.comparison import gt, select
from catena.lax.convert import convert
from catena.lax.elementwise import FLOAT, WIDER_WITH_HALF, elementwise
from catena.lax.powers import square
from catena.lax.structure import broadcast_to, constant_like, like
from catena.lax.transcendental import exp, log, log1p

# ------------------------------------------------------------------------------------------------------------
# What several share


def _algorithm(name):
    """The compiler's own algorithm, run by NumPy in double precision."""
    return lambda *xs: mathematics.evaluated(algorithms.ALGORITHMS[name], *xs).astype(xs[0].dtype, copy=False)


algorithms = LazyModule("catena.compiler.vector_math.algorithms")
bessel = LazyModule("catena.compiler.vector_math.bessel")
incomplete_gamma = LazyModule("catena.compiler.vector_math.incomplete_gamma")
mathematics = LazyModule("catena.compiler.vector_math.mathematics")


def _special(name, evaluate, *tangents, **rules):
    return elementwise(name, evaluate, FLOAT, *tangents, wider=WIDER_WITH_HALF, **rules)


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
NO_PARAMETER_DERIVATIVE = "its derivative by a parameter is no function that this system has"

# ---- erf


def _scipy(name):
    return lambda *xs: getattr(load("scipy.special"), name)(*xs)


def _density(factor: float, scale: float):
    """``scale exp(factor x^2)``."""

    def evaluate(x):
        with np.errstate(over="ignore", under="ignore"):
            wide = x.astype(np.longdouble)
            return (scale * np.exp(factor * (wide * wide))).astype(x.dtype)

    return evaluate


def _with_constant(derivative):
    """A derivative with a constant in it, see ``constant_like``."""
    aval = get_aval(derivative)
    return convert(derivative, aval.dtype, aval.weak_type and not aval.shape)


# The derivatives of erf and of the normal distribution function
error_density_p = _special(
    "error_density", _density(-1, TWO_OVER_ROOT_PI), lambda t, x, y: mul(t, mul(constant_like(x, -2), mul(x, y)))
)
normal_density_p = _special(
    "normal_density", _density(-0.5, 1 / math.sqrt(2 * math.pi)), lambda t, x, y: neg(mul(t, mul(x, y)))
)
erf_p = _special("erf", _scipy("erf"), lambda t, x, y: mul(t, _with_constant(error_density_p.bind(x))))


def erf(x):
    r"""Elementwise error function: :math:`\mathrm{erf}(x)`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.erf(0.0).item()
    0.0
    """
    return erf_p.bind(x)


# ---- erfc

erfc_p = _special("erfc", _scipy("erfc"), lambda t, x, y: neg(mul(t, _with_constant(error_density_p.bind(x)))))


def erfc(x):
    r"""Elementwise complement of the error function: :math:`1 - \mathrm{erf}(x)`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.erfc(0.0).item()
    1.0
    """
    return erfc_p.bind(x)


# ---- erf_inv


def _erf_inv(x):
    """SciPy's function of doubles: what normal numbers are made of should not lose digits."""
    return np.where(x == 0, x, load("scipy.special").erfinv(x.astype(np.float64)).astype(x.dtype))


def _erf_inv_tangent(t, x, y):
    return mul(constant_like(x, 1 / TWO_OVER_ROOT_PI), mul(t, exp(square(y))))


erf_inv_p = _special("erf_inv", _erf_inv, _erf_inv_tangent)


def erf_inv(x):
    r"""Elementwise inverse of the error function.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.erf_inv(0.0).item()
    0.0
    """
    return erf_inv_p.bind(x)


# ---- lgamma


def _lgamma(x):
    return np.where(np.isinf(x), x.dtype.type(np.inf), load("scipy.special").gammaln(x))


lgamma_p = _special("lgamma", _lgamma, lambda t, x, y: mul(t, digamma(x)))


def lgamma(x):
    r"""Elementwise logarithm of the absolute value of the gamma function: :math:`\log |\Gamma(x)|`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.lgamma(2.0).item()
    0.0
    """
    return lgamma_p.bind(x)


# ---- digamma


def _digamma(x):
    return np.where(x == 0, x.dtype.type(np.nan), load("scipy.special").psi(x))


digamma_p = _special("digamma", _digamma, lambda t, x, y: mul(t, _with_constant(trigamma_p.bind(x))))


def _trigamma(x):
    wide, special = x.astype(np.float64), load("scipy.special")
    with np.errstate(all="ignore"):
        whole = np.rint(wide)
        sine = np.where(whole == wide, 0.0, special.sindg(180.0 * (wide - whole)))
        other = special.polygamma(1, np.where(x < 0, 1.0 - wide, wide))
        return np.where(x < 0, (np.pi / sine) ** 2 - other, other).astype(x.dtype)


trigamma_p = _special("trigamma", _trigamma, lambda t, x, y: mul(t, polygamma(constant_like(x, 2), x)))


def digamma(x):
    r"""Elementwise derivative of the logarithm of the gamma function: :math:`\psi(x)`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.digamma(1.0).item()
    -0.577216
    """
    return digamma_p.bind(x)


# ---- bessel_i0e


def _bessel(scipy_name, name):
    """SciPy's function where its result is rounded to a smaller float; of doubles it is off by five units."""

    def evaluate(x):
        if x.dtype == np.float64:
            return mathematics.evaluated(getattr(bessel, name), x)
        out = getattr(load("scipy.special"), scipy_name)(x)
        return np.where(x == 0, x, out) if name == "bessel_i1e" else out  # SciPy loses the sign of zero

    return evaluate


# The slopes are those of exp(-|x|) (I0(x) - I1(|x|)), of which nothing is left in the difference of the two far out.
bessel_difference_p = _special(
    "bessel_difference", _algorithm("bessel_difference"), lambda t, x, y: mul(t, _slope_of_difference(x, y)),
)  # fmt: skip


def _slope_of_difference(x, y):
    """exp(-x) I1(x) / x - 2 y for x > 0, odd, and 0 at 0."""
    return mul(sign(x), sub(_i1e_over(x, bessel_i1e(x)), mul(like(x, 2), y)))


bessel_i0e_p = _special(
    "bessel_i0e", _bessel("i0e", "bessel_i0e"), lambda t, x, y: neg(mul(t, mul(sign(x), bessel_difference_p.bind(x)))),
)  # fmt: skip


def bessel_i0e(x):
    r"""Elementwise modified Bessel function of order 0 times :math:`e^{-|x|}`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.bessel_i0e(0.0).item()
    1.0
    """
    return bessel_i0e_p.bind(x)


# ---- bessel_i1e


def _i1e_over(x, y):
    """y / x for y = exp(-|x|) I1(x); 1/2 around 0."""
    aval = get_aval(x)
    tiny = like(x, dtypes.finfo(aval.dtype).eps)
    large = gt(abs(x), tiny)
    quotient = div(y, select(large, x, broadcast_to(tiny, aval.shape)))
    return select(large, quotient, broadcast_to(like(x, 0.5), aval.shape))


bessel_i1e_p = _special(
    "bessel_i1e", _bessel("i1e", "bessel_i1e"),
    lambda t, x, y: mul(t, sub(bessel_difference_p.bind(x), _i1e_over(x, y))),
)  # fmt: skip


def bessel_i1e(x):
    r"""Elementwise modified Bessel function of order 1 times :math:`e^{-|x|}`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.bessel_i1e(0.0).item()
    0.0
    """
    return bessel_i1e_p.bind(x)


# ---- polygamma


def jvp_in(find, names, *tangents):
    """Differentiation where some operands, called ``names``, admit no derivative."""

    def jvp(primals, given):
        out = find().bind(*primals)
        total = Zero.of_primal(out)
        for rule, t, name in zip(tangents, given, names, strict=True):
            if type(t) is Zero:
                continue
            if rule is None:
                raise ValueError(
                    f"{find().name} gradient with respect to {name} is not supported: {NO_PARAMETER_DERIVATIVE}"
                )
            total = broadcast_to(rule(t, *primals, out), get_aval(out).shape)
        return out, total

    return jvp


def _polygamma(n, x):
    special = load("scipy.special")
    n64, x64 = n.astype(np.float64), x.astype(np.float64)
    signs = np.where(np.fmod(n64, 2) == 0, -1.0, 1.0)
    out = np.where(n64 == 0, _digamma(x64), signs * special.gamma(n64 + 1) * special.zeta(n64 + 1, x64))
    return np.where((n64 >= 0) & (np.floor(n64) == n64), out, np.nan).astype(x.dtype)


def _polygamma_tangent(t, n, x, y):
    return mul(t, polygamma(add(n, like(n, 1)), x))


polygamma_p = _special(
    "polygamma", _polygamma, jvp=jvp_in(lambda: polygamma_p, ("m", "x"), None, _polygamma_tangent),
)  # fmt: skip


def polygamma(m, x):
    r"""Elementwise derivative of order ``m`` of the digamma function: :math:`\psi^{(m)}(x)`.

    Arguments:
      m, x: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.polygamma(1.0, 1.0).item()
    1.644934
    """
    return polygamma_p.bind(m, x)


# ---- zeta


def _zeta(x, q):
    """SciPy's function where its result is rounded to a smaller float; of doubles it is off by twenty units."""
    if x.dtype == np.float64:
        return _algorithm("zeta")(x, q)
    return np.where(np.isinf(x), x.dtype.type(np.nan), load("scipy.special").zeta(x, q))


zeta_by_x_p = _special(
    "zeta_by_x", _algorithm("zeta_by_x"), NoRule("second derivatives of zeta by its exponent are not available")
)

zeta_p = _special(
    "zeta", _zeta,
    lambda t, x, q, y: mul(t, zeta_by_x_p.bind(x, q)),
    lambda t, x, q, y: neg(mul(t, mul(x, zeta(add(x, like(x, 1)), q)))),
)  # fmt: skip


def zeta(x, q):
    r"""Elementwise Hurwitz zeta function: :math:`\sum_{k \geq 0} (k + q)^{-x}`.

    Arguments:
      x, q: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.zeta(2.0, 1.0).item()
    1.644934
    """
    return zeta_p.bind(x, q)


# ---- igamma


def _incomplete_gamma(scipy_name, name):
    """SciPy's function, but for huge shapes, where it loses the digits of the tails."""

    def evaluate(a, x):
        out = getattr(load("scipy.special"), scipy_name)(a, x)
        huge = a >= incomplete_gamma.HUGE_SHAPE
        if not np.any(huge):
            return out
        return np.where(huge, _algorithm(name)(np.where(huge, a, np.nan), x), out)

    return evaluate


def _igamma_slope(a, x):
    """The derivative of P(a, x) by x: x^(a-1) e^-x / gamma(a)."""
    return exp(sub(add(neg(x), mul(sub(a, like(a, 1)), log(x))), lgamma(a)))


igamma_p = _special(
    "igamma", _incomplete_gamma("gammainc", "igamma"),
    lambda t, a, x, y: mul(t, igamma_grad_a(a, x)),
    lambda t, a, x, y: mul(t, _igamma_slope(a, x)),
)  # fmt: skip


def igamma(a, x):
    r"""Elementwise regularised lower incomplete gamma function: :math:`P(a, x)`.

    Arguments:
      a, x: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.igamma(1.0, 1.0).item()
    0.632121
    """
    return igamma_p.bind(a, x)


# ---- igammac

igammac_p = _special(
    "igammac", _incomplete_gamma("gammaincc", "igammac"),
    lambda t, a, x, y: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, a, x, y: neg(mul(t, _igamma_slope(a, x))),
)  # fmt: skip


def igammac(a, x):
    r"""Elementwise regularised upper incomplete gamma function: :math:`Q(a, x) = 1 - P(a, x)`.

    Arguments:
      a, x: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.igammac(1.0, 1.0).item()
    0.367879
    """
    return igammac_p.bind(a, x)


# ---- igamma_grad_a

igamma_grad_a_p = _special(
    "igamma_grad_a", _algorithm("igamma_grad_a"), NoRule("second derivatives of igamma by a are not "
    "available"),
)  # fmt: skip


def igamma_grad_a(a, x):
    r"""Elementwise derivative by ``a`` of the lower incomplete gamma function.

    Arguments:
      a, x: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.igamma_grad_a(1.0, 1.0).item()
    -0.43173
    """
    return igamma_grad_a_p.bind(a, x)


# ---- random_gamma_grad

random_gamma_grad_p = _special(
    "random_gamma_grad", _algorithm("random_gamma_grad"),
    NoRule("second derivatives of gamma samples by their parameter are not available"),
)  # fmt: skip


def random_gamma_grad(*args):
    """Elementwise derivative of samples of a gamma distribution by its shape parameter.

    Arguments:
      args: the shape parameters, and the samples: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: there are not two arguments, their dtypes differ or are not float dtypes, or the shapes do
        not fit.

    >>> import catena.lax as lax
    >>> lax.random_gamma_grad(1.0, 1.0).item()
    1.17356
    """
    if len(args) != 2:
        raise TypeError(f"random_gamma_grad takes the shape parameters and the samples, got {len(args)} arguments")
    return random_gamma_grad_p.bind(*args)


# ---- regularized_incomplete_beta


def _betainc(a, b, x):
    """In float64: SciPy computes floats as such, and loses all digits of small results."""
    return load("scipy.special").betainc(*[v.astype(np.float64) for v in (a, b, x)]).astype(x.dtype)


def betainc_slope(a, b, x):
    """The derivative by x: x^(a-1) (1-x)^(b-1) / B(a, b)."""
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(b, like(b, 1)), log1p(neg(x))), mul(sub(a, like(a, 1)), log(x)))
    return exp(sub(powers, log_beta))


regularized_incomplete_beta_p = _special(
    "regularized_incomplete_beta", _betainc, op="betainc",
    jvp=jvp_in(
        lambda: regularized_incomplete_beta_p, ("a", "b", "x"), None, None,
        lambda t, a, b, x, y: mul(t, betainc_slope(a, b, x)),
    ),
)  # fmt: skip


def betainc(a, b, x):
    r"""Elementwise regularised incomplete beta function: :math:`I_x(a, b)`.

    Arguments:
      a, b, x: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.betainc(1.0, 2.0, 0.5).item()
    0.75
    """
    return regularized_incomplete_beta_p.bind(a, b, x)
