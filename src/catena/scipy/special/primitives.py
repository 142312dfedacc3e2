"""The primitives of the special functions: each an algorithm of the compiler's library, with its derivatives.

Eagerly they are loops of compiled code, as the special functions of ``lax`` are; in programs they are calls of the same
code. Where there is no compiler, NumPy runs the same algorithms. Floats are rounded once, from doubles.
"""

import math

import numpy as np

from catena.core.lazy import LazyModule
from catena.core.primitive import NoRule
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add, div, mul, neg, sub
from catena.lax.comparison import eq, lt, select
from catena.lax.elementwise import FLOAT, WIDER_WITH_HALF, abstract_rule, elementwise
from catena.lax.powers import square
from catena.lax.special import betainc_slope, digamma, erf, jvp_in, normal_density_p, trigamma_p
from catena.lax.structure import broadcast_to, constant_like, like
from catena.lax.transcendental import cos, exp, log, log1p, sin
from catena.transform.jvp import jvp_flat

algorithms = LazyModule("catena.compiler.vector_math.algorithms")
mathematics = LazyModule("catena.compiler.vector_math.mathematics")


def special(name: str, *tangents, strong: bool = False, **rules):
    """The primitive of an algorithm.

    Arguments:
      tangents: a rule an operand, as ``elementwise`` takes them.
      strong: whether results are not weak, whatever the operands are.
    """

    def evaluate(*xs):
        found = mathematics.evaluated(algorithms.ALGORITHMS[name], *xs)
        return found.astype(xs[0].dtype, copy=False)

    abstract = abstract_rule(name, FLOAT)
    if strong:
        rules["abstract"] = lambda *avals: abstract(*avals).strip_weak_type()
    return elementwise(name, evaluate, FLOAT, *tangents, wider=WIDER_WITH_HALF, **rules)


def times(x, number: float):
    return mul(like(x, number), x)


def plus(x, number: float):
    return add(x, like(x, number))


def safe(x, bad, replacement: float):
    """``x``, but for the elements where ``bad``, which may have axes of size 1."""
    shape = get_aval(x).shape
    return select(broadcast_to(bad, shape), broadcast_to(like(x, replacement), shape), x)


# ------------------------------------------------------------------------------------------------------------
# Gamma and beta functions


# digamma(a + b) - digamma(a), which no difference of the two gives where it is small
digamma_difference_p = special(
    "digamma_difference",
    lambda t, a, b, y: mul(t, sub(trigamma_p.bind(add(a, b)), trigamma_p.bind(a))),
    lambda t, a, b, y: mul(t, trigamma_p.bind(add(a, b))),
)


def _by_parameter(t, a, b, y):
    """log B(a, b) by a."""
    return neg(mul(t, digamma_difference_p.bind(a, b)))


gamma_p = special("gamma", lambda t, x, y: mul(t, mul(y, digamma(x))))
log_beta_p = special(
    "log_beta", lambda t, a, b, y: _by_parameter(t, a, b, y), lambda t, a, b, y: _by_parameter(t, b, a, y)
)
# log(p / q) of what is not negative
log_quotient_p = special("log_quotient", lambda t, p, q, y: div(t, p), lambda t, p, q, y: neg(div(t, q)))
poch_p = special(
    "poch",
    lambda t, z, m, y: mul(t, mul(y, digamma_difference_p.bind(z, m))),
    lambda t, z, m, y: mul(t, mul(y, digamma(add(z, m)))),
)
binomial_p = special(
    "binomial",
    lambda t, n, k, y: mul(t, mul(y, digamma_difference_p.bind(plus(sub(n, k), 1), k))),
    lambda t, n, k, y: mul(t, mul(y, sub(digamma(plus(sub(n, k), 1)), digamma(plus(k, 1))))),
)
# log(x^a e^-x / gamma(a + 1)): of large numbers the difference has digits that its terms have not
log_gamma_density_p = special(
    "log_gamma_density",
    lambda t, a, x, y: mul(t, sub(log(x), digamma(plus(a, 1)))),
    lambda t, a, x, y: mul(t, plus(safe(div(a, x), eq(a, like(a, 0)), 0), -1)),
)

# The logarithms of the incomplete gamma and beta functions, and of their complements, also where these are zero


def _log_gamma_slope(a, x, y):
    """The density at x over what y is the logarithm of."""
    return mul(div(a, x), exp(sub(log_gamma_density_p.bind(a, x), y)))


def _log_gammac_slope(a, x, y):
    """The same of the complement; for large x, where density and y cancel, by the continued fraction of the upper
    incomplete gamma function (DLMF 8.9.2).
    """
    fraction = like(x, 0)
    for k in (4, 3, 2, 1):
        steps = sub(plus(x, 2 * k + 1), a)
        fraction = div(times(sub(like(a, k), a), k), sub(steps, fraction))
    far = sub(plus(div(sub(like(a, 1), a), x), 1), div(fraction, x))
    return neg(select(lt(times(plus(a, 1), 100), x), far, _log_gamma_slope(a, x, y)))


log_igamma_p = special(
    "log_igamma", lambda t, a, x, y: mul(t, log_igamma_grad_a_p.bind(a, x)),
    lambda t, a, x, y: mul(t, _log_gamma_slope(a, x, y)),
)  # fmt: skip
log_igammac_p = special(
    "log_igammac",
    lambda t, a, x, y: mul(t, log_igammac_grad_a_p.bind(a, x)),
    lambda t, a, x, y: mul(t, _log_gammac_slope(a, x, y)),
)
log_igamma_grad_a_p, log_igammac_grad_a_p = (
    special(name, NoRule(f"second derivatives of {name[:-7]} by a are not available"))
    for name in ("log_igamma_grad_a", "log_igammac_grad_a")
)


def _log_beta_slope(t, a, b, x, y):
    powers = add(mul(plus(a, -1), log(x)), mul(plus(b, -1), log1p(neg(x))))
    return mul(t, exp(sub(sub(powers, log_beta_p.bind(a, b)), y)))


def _of_beta(name, find, slope):
    return special(name, jvp=jvp_in(find, ("a", "b", "x"), None, None, slope))


log_betainc_p = _of_beta("log_betainc", lambda: log_betainc_p, _log_beta_slope)
log_betaincc_p = _of_beta("log_betaincc", lambda: log_betaincc_p, lambda *of: neg(_log_beta_slope(*of)))

# The complement of the incomplete beta function
betaincc_p = _of_beta("betaincc", lambda: betaincc_p, lambda t, a, b, x, y: neg(mul(t, betainc_slope(a, b, x))))

riemann_zeta_p = special("riemann_zeta", lambda t, x, y: mul(t, riemann_zeta_slope_p.bind(x)))
riemann_zeta_slope_p = special(
    "riemann_zeta_slope", NoRule("second derivatives of the zeta function are not available")
)
beta_p = special(
    "beta",
    lambda t, a, b, y: mul(y, _by_parameter(t, a, b, y)),
    lambda t, a, b, y: mul(y, _by_parameter(t, b, a, y)),
)

# ------------------------------------------------------------------------------------------------------------
# The entropy of a probability


def _entropy_slope(x):
    """-log(x) - 1, 0 below 0."""
    below = lt(x, like(x, 0))
    return safe(plus(neg(log(safe(x, below, 1))), -1), below, 0)


def _entr(x):
    wide = x.astype(np.longdouble)
    inside = (wide > 0) & (wide < np.inf)
    outside = np.where(x == 0, -0.0, np.where(np.isnan(x), np.nan, -np.inf))
    return np.where(inside, -wide * np.log(np.where(inside, wide, 1)), outside).astype(x.dtype)


entr_p = elementwise("entr", _entr, FLOAT, lambda t, x, y: mul(t, _entropy_slope(x)), wider=WIDER_WITH_HALF)

# ------------------------------------------------------------------------------------------------------------
# Log-odds


def _logit(x):
    """Around 1/2 by log1p, whose argument is exact there."""
    wide = x.astype(np.longdouble)
    inside, near = (x > 0) & (x < 1), np.abs(x - 0.5) < 0.25
    p, middle = np.where(inside, wide, 0.5), np.where(near, wide, 0.5)
    value = np.where(near, np.log1p((2 * middle - 1) / (1 - middle)), np.log(p) - np.log1p(-p))
    outside = np.where(x == 0, -np.inf, np.where(x == 1, np.inf, np.nan))
    return np.where(inside, value, outside).astype(x.dtype)


logit_p = elementwise(
    "logit", _logit, FLOAT, lambda t, x, y: div(t, mul(x, sub(constant_like(x, 1), x))), wider=WIDER_WITH_HALF
)

# ------------------------------------------------------------------------------------------------------------
# Modified Bessel functions

i0_p = special("bessel_i0", lambda t, x, y: mul(t, i1_p.bind(x)))
i1_p = special("bessel_i1", lambda t, x, y: mul(t, sub(i0_p.bind(x), _over(y, x))))


def _over(y, x):
    """I1(x) / x, 1/2 at 0."""
    zero = eq(x, like(x, 0))
    return safe(div(y, safe(x, zero, 1)), zero, 0.5)


# ------------------------------------------------------------------------------------------------------------
# The normal distribution and error functions


ndtr_p = special("ndtr", lambda t, x, y: mul(t, normal_density_p.bind(x)))
log_ndtr_p = special(
    "log_ndtr",
    lambda t, x, y: div(times(t, math.sqrt(2 / math.pi)), erfcx_p.bind(times(x, -math.sqrt(0.5)))),
    strong=True,
)


def _quantile_slope(p, y):
    """One over the density at the quantile y: Mills' ratio over the lesser tail; exp(y^2 / 2) loses digits far out."""
    below = lt(y, like(y, 0))
    tail = select(below, p, plus(neg(p), 1))
    none = eq(tail, like(tail, 0))
    ratio = times(erfcx_p.bind(times(select(below, neg(y), y), math.sqrt(0.5))), math.sqrt(math.pi / 2))
    return safe(div(ratio, safe(tail, none, 1)), none, math.inf)


ndtri_p = special("ndtri", lambda t, p, y: mul(t, _quantile_slope(p, y)))
owens_t_p = special(
    "owens_t",
    lambda t, h, a, y: mul(t, mul(times(normal_density_p.bind(h), -0.5), erf(times(mul(a, h), math.sqrt(0.5))))),
    lambda t, h, a, y: mul(t, div(
        exp(times(mul(square(h), plus(square(a), 1)), -0.5)), times(plus(square(a), 1), 2 * math.pi))),
)  # fmt: skip
# Of the derivatives, the terms cancel for large numbers.
erfcx_p = special("erfcx", lambda t, x, y: mul(t, erfcx_slope_p.bind(x)))
erfcx_slope_p = special("erfcx_slope", lambda t, x, y: mul(t, times(add(erfcx_p.bind(x), mul(x, y)), 2)))
dawsn_p = special("dawsn", lambda t, x, y: mul(t, dawsn_slope_p.bind(x)))
dawsn_slope_p = special("dawsn_slope", lambda t, x, y: mul(t, times(add(dawsn_p.bind(x), mul(x, y)), -2)))

# w is holomorphic: the derivatives of its parts are those of w'. w'' = -2 w - 2 z w'.
faddeeva_real_p = special(
    "faddeeva_real",
    lambda t, x, y, u: mul(t, faddeeva_slope_real_p.bind(x, y)),
    lambda t, x, y, u: neg(mul(t, faddeeva_slope_imag_p.bind(x, y))),
)
faddeeva_imag_p = special(
    "faddeeva_imag",
    lambda t, x, y, v: mul(t, faddeeva_slope_imag_p.bind(x, y)),
    lambda t, x, y, v: mul(t, faddeeva_slope_real_p.bind(x, y)),
)


def _curvature_of_real(x, y, p, q):
    return times(add(faddeeva_real_p.bind(x, y), sub(mul(x, p), mul(y, q))), -2)


def _curvature_of_imag(x, y, p, q):
    return times(add(faddeeva_imag_p.bind(x, y), add(mul(x, q), mul(y, p))), -2)


faddeeva_slope_real_p = special(
    "faddeeva_slope_real",
    lambda t, x, y, p: mul(t, _curvature_of_real(x, y, p, faddeeva_slope_imag_p.bind(x, y))),
    lambda t, x, y, p: neg(mul(t, _curvature_of_imag(x, y, p, faddeeva_slope_imag_p.bind(x, y)))),
)
faddeeva_slope_imag_p = special(
    "faddeeva_slope_imag",
    lambda t, x, y, q: mul(t, _curvature_of_imag(x, y, faddeeva_slope_real_p.bind(x, y), q)),
    lambda t, x, y, q: mul(t, _curvature_of_real(x, y, faddeeva_slope_real_p.bind(x, y), q)),
)

# ------------------------------------------------------------------------------------------------------------
# Integrals


def _cardinal_sine(x):
    zero = eq(x, like(x, 0))
    return safe(div(sin(x), safe(x, zero, 1)), zero, 1)


def _expn_slope(t, n, x, y):
    """-E_(n-1)(x)."""
    return neg(mul(t, expn_p.bind(sub(n, like(n, 1)), x)))


def _dilogarithm_slope(x):
    """log(x) / (1 - x), -1 at 1."""
    one = eq(x, like(x, 1))
    return safe(neg(div(log(x), safe(plus(x, -1), one, 1))), one, -1)


expi_slope_p = special("expi_slope", lambda t, x, y: mul(t, sub(y, div(y, x))))
exp1_p = special("exp1", lambda t, x, y: mul(t, expi_slope_p.bind(neg(x))), strong=True)
expi_p = special("expi", lambda t, x, y: mul(t, expi_slope_p.bind(x)), strong=True)
expn_p = special("expn", None, _expn_slope, strong=True)
sine_integral_p = special("sine_integral", lambda t, x, y: mul(t, _cardinal_sine(x)))
cosine_integral_p = special("cosine_integral", lambda t, x, y: mul(t, div(cos(x), x)))
# sin(pi x^2 / 2) and its cosine, for which the square of a float has not enough digits
fresnel_s_slope_p = special(
    "fresnel_s_slope", lambda t, x, y: mul(t, mul(times(x, math.pi), fresnel_c_slope_p.bind(x)))
)
fresnel_c_slope_p = special(
    "fresnel_c_slope", lambda t, x, y: neg(mul(t, mul(times(x, math.pi), fresnel_s_slope_p.bind(x))))
)
fresnel_s_p = special("fresnel_s", lambda t, x, y: mul(t, fresnel_s_slope_p.bind(x)))
fresnel_c_p = special("fresnel_c", lambda t, x, y: mul(t, fresnel_c_slope_p.bind(x)))
spence_p = special("spence", lambda t, x, y: mul(t, _dilogarithm_slope(x)))

# ------------------------------------------------------------------------------------------------------------
# Hypergeometric functions

ONCE = NoRule("second derivatives by a parameter of a hypergeometric function are not available")
hyp1f1_by_a_p, hyp1f1_by_b_p = (special(f"hyp1f1_by_{name}", ONCE) for name in "ab")
hyp2f1_by_a_p, hyp2f1_by_b_p, hyp2f1_by_c_p = (special(f"hyp2f1_by_{name}", ONCE) for name in "abc")

hyp1f1_p = special(
    "hyp1f1",
    lambda t, a, b, x, y: mul(t, hyp1f1_by_a_p.bind(a, b, x)),
    lambda t, a, b, x, y: mul(t, hyp1f1_by_b_p.bind(a, b, x)),
    lambda t, a, b, x, y: mul(t, hyp1f1_by_x_p.bind(a, b, x)),
)
hyp2f1_p = special(
    "hyp2f1",
    lambda t, a, b, c, x, y: mul(t, hyp2f1_by_a_p.bind(a, b, c, x)),
    lambda t, a, b, c, x, y: mul(t, hyp2f1_by_b_p.bind(a, b, c, x)),
    lambda t, a, b, c, x, y: mul(t, hyp2f1_by_c_p.bind(a, b, c, x)),
    lambda t, a, b, c, x, y: mul(t, hyp2f1_by_x_p.bind(a, b, c, x)),
)


def _by_formula(primitive, formula):
    """The rule for derivatives of ``primitive``: those of a formula for it, which has fewer digits than it."""

    def jvp(primals, tangents):
        _, (tangent,) = jvp_flat(lambda *xs: [formula(*xs)], primals, tangents)
        return primitive().bind(*primals), tangent

    return jvp


hyp1f1_by_x_p = special(
    "hyp1f1_by_x",
    jvp=_by_formula(lambda: hyp1f1_by_x_p, lambda a, b, x: mul(div(a, b), hyp1f1_p.bind(plus(a, 1), plus(b, 1), x))),
)
hyp2f1_by_x_p = special(
    "hyp2f1_by_x",
    jvp=_by_formula(
        lambda: hyp2f1_by_x_p,
        lambda a, b, c, x: mul(div(mul(a, b), c), hyp2f1_p.bind(plus(a, 1), plus(b, 1), plus(c, 1), x)),
    ),
)
