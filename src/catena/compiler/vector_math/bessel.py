"""Modified Bessel functions of orders 0 and 1, exponentially scaled or not.

Below a split, exp(-x) or 1 times the series in z = x^2/4, I0 = 1 + z P(z) and I1 = x/2 (1 + z P(z)), whose terms all
have one sign; beyond, Q(1/x) / sqrt(x), times exp(x) or 1. The minimax polynomials are by ``remez.py``, relative to
the whole result, with errors below 2^-34 (2^-58). The form is that of NIST DLMF 10.25.2 and 10.40.1.
Floats that are scaled have functions of their own (`of_floats.py`).
"""

import math
from typing import Any

from . import fitted
from .polynomials import fitted_to, horner

# Splits and polynomials P and Q, low power first, by order; for results in single and in double precision.
SINGLE: dict[str | int, Any] = {
    "split": 12.0,
    0: (
        (1.0000000008473704, 0.2499999960834617, 0.027777783449336367, 0.0017361073280027543, 6.944582680475141e-05,
         1.9287072982965444e-06, 3.941072431606893e-08, 6.110741962648976e-10, 7.849857571991284e-12,
         6.504441262023047e-14, 9.330002324226778e-16, -9.425200792254075e-19, 7.477359027651591e-20),
        (0.39894228041409985, 0.04986777112642324, 0.028053120799386252, 0.029053973648340198, 0.04985635768978815,
         0.013194975422359442, 0.7422671700495517),
    ),
    1: (
        (0.500000000155868, 0.08333333273666965, 0.006944445185992151, 0.0003472217860333279, 1.1574217614515752e-05,
         2.755441885139557e-07, 4.924754548678171e-09, 6.801184519311177e-11, 7.794361554090876e-13,
         6.090262095436274e-15, 7.417584952947623e-17, -3.124425218364897e-20, 5.1335722213565135e-21),
        (0.3989422803869563, -0.14960333931247846, -0.04675387394288746, -0.04071995284615579, -0.06330743937255834,
         -0.023207365125968916, -0.8524297809031798),
    ),
}  # fmt: skip
DOUBLE: dict[str | int, Any] = {
    "split": 16.0,
    0: (
        (1.0, 0.24999999999999994, 0.02777777777777792, 0.00173611111111097, 6.944444444452537e-05,
         1.929012345649758e-06, 3.9367598898529675e-08, 6.151187314552503e-10, 7.59405858138561e-12,
         7.59405699187199e-14, 6.276091592322345e-16, 4.358333476034952e-18, 2.5791695616759487e-20,
         1.3149790165539546e-22, 5.868656987810668e-25, 2.242815238690195e-27, 8.537872471820794e-30,
         1.720251884806614e-32, 1.2588793730981479e-34, -1.4374201207199018e-37, 1.3195444070791041e-39),
        (0.3989422804014327, 0.04986778505018227, 0.02805062908744927, 0.029219406626222303, 0.044741936280379487,
         0.09063782920593637, 0.2255849295315199, 0.841661881328712, -3.2604035492817047, 156.15272313144274,
         -2524.338223798699, 29623.73240201903, -198416.663330717, 628091.7436858632),
    ),
    1: (
        (0.5, 0.08333333333333333, 0.0069444444444444605, 0.0003472222222222079, 1.1574074074081434e-05,
         2.755731922374357e-07, 4.9209498619695115e-09, 6.834652576631827e-11, 7.594058530154327e-13,
         6.903688577313373e-15, 5.230073905282734e-17, 3.352575445331688e-19, 1.842223562548392e-21,
         8.767654612731246e-24, 3.665480129594978e-26, 1.3233026739396881e-28, 4.693990708594383e-31,
         9.493399180678763e-34, 6.026649965473729e-36, -5.848452402409268e-39, 5.827180503289639e-41),
        (0.3989422804014327, -0.1496033551505407, -0.04675104848099062, -0.04090716885504434, -0.05752540418804494,
         -0.11077448837358561, -0.26690278962497577, -0.9586941400549575, 3.336154425540983, -167.30343374612363,
         2690.7908929627383, -31556.022662716343, 210997.35322446676, -667403.7393094938),
    ),
}  # fmt: skip
ENDLESS = 2.0**1000  # whose inverse root is no float but zero


def _bessel(m, x, order: int, precision, scaled: bool):
    """I(x), times exp(-|x|) where ``scaled``, in float64, by the mathematics ``m``; odd where the order is."""
    table = SINGLE if precision > 1e-12 else DOUBLE
    series, far = table[order]
    a, split = m.abs(x), table["split"]
    near = a <= split
    b = m.where(near, a, split)
    half = b * 0.5
    z = half * half
    front = m.exp(-b) if scaled else m.like(b, 1.0)
    front = front * half if order else front
    if table is DOUBLE:  # dI/dz is about I/half for large z, so that the rounding of z would be a few units
        front = front + front * (m.product_error(half, half, z) / (1.0 + half))
    large = m.maximum(a, split)
    if table is SINGLE:
        root = m.short_rsqrt(m.where(large > ENDLESS, ENDLESS, large))
        beyond = horner(m, far, root * root) * root
    else:
        beyond = horner(m, far, 1.0 / large) / m.sqrt(a)
    beyond = beyond if scaled else _grown(m, a, beyond, table)
    result = m.where(near, m.fma(front, z * horner(m, series, z), front), beyond)
    return m.where(x < 0.0, -result, m.where(m.equal(x, 0.0), x, result)) if order else result


def _grown(m, a, y, table: dict):
    """exp(a) y, in two steps where it may overflow too early."""
    if table is SINGLE:
        return m.short_exp(m.where(a > 700.0, 700.0, a)) * y
    large = a > 700.0
    high, low = m.exp_pair(m.where(large, 0.5 * m.where(a < 1400.0, a, 1400.0), a))
    return m.where(large, (high * y) * high, high * y + low * y)


def bessel_i0e(m, x, precision):
    """The even one, of order 0."""
    return _bessel(m, x, 0, precision, True)


def bessel_i1e(m, x, precision):
    """The odd one, of order 1."""
    return _bessel(m, x, 1, precision, True)


def bessel_difference(m, x, precision):
    """exp(-|x|) (I0(x) - I1(|x|)), which is far less than its terms are far out."""
    a = m.abs(x)
    near = a < 20.0
    inverse = 1.0 / m.where(near, 20.0, a)
    far = inverse * m.sqrt(inverse) * fitted_to(m, fitted.BESSEL_DIFFERENCE_FAR, inverse)
    return m.where(near, fitted_to(m, fitted.BESSEL_DIFFERENCE, m.where(near, a, 20.0)), far)


def bessel_i0(m, x, precision):
    """I0(x)."""
    return m.where(m.abs(x) < math.inf, _bessel(m, x, 0, precision, False), x * x)


def bessel_i1(m, x, precision):
    """I1(x)."""
    return m.where(m.abs(x) < math.inf, _bessel(m, x, 1, precision, False), x)
