"""exp and its family.

x = n ln2 + r with |r| <= ln2 / 2 (Cody & Waite, "Software Manual for the Elementary Functions", 1980), a
minimax polynomial for exp(r), then 2^n in two factors so that the result may be subnormal and is rounded
once.
"""

from . import tables
from .constants import LN2, LOG2_E
from .text import Value, copysign, fabs, fma, horner, maximum, minimum, power_of_two, round_to_integer, select

# Beyond these exp(x) is zero or infinite: the least x sits below half the smallest subnormal.
EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}


def reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """n as float and integer, and r = x - n ln2."""
    high, low = LN2[x.elem]
    n, n_integer = round_to_integer(x * LOG2_E[x.elem][0])
    return n, n_integer, fma(n, -low, fma(n, -high, x))


def scale(x: Value, n: Value) -> Value:
    """x 2^n for n of up to twice the normal range."""
    half = n >> 1
    return x * power_of_two(half, x.elem) * power_of_two(n - half, x.elem)


def exp_minus_one_reduced(r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln2 / 2."""
    return fma(r * r, horner(r, tables.EXP[r.elem]), r)


def exp(x: Value) -> Value:
    least, greatest = EXP_RANGE[x.elem]
    _, n, r = reduce_exp(minimum(maximum(x, least), greatest))
    return scale(exp_minus_one_reduced(r) + 1.0, n)


def exp_normal(x: Value) -> Value:
    """exp(x) where the caller knows that the result is a normal number."""
    _, n, r = reduce_exp(x)
    return (exp_minus_one_reduced(r) + 1.0) * power_of_two(n, x.elem)


def exp_sum(high: Value, low: Value) -> Value:
    """exp(high + low), |low| much smaller than one."""
    least, greatest = EXP_RANGE[high.elem]
    clamped = minimum(maximum(high, least), greatest)
    low = select(clamped.equals(high), low, 0.0)
    _, n, r = reduce_exp(clamped)
    r_sum = r + low
    low = (r - r_sum) + low
    tail = fma(r_sum * r_sum, horner(r_sum, tables.EXP[high.elem]), low)
    return scale((r_sum + tail) + 1.0, n)


def exp2(x: Value) -> Value:
    least, greatest = (-151.0, 129.0) if x.elem == "float" else (-1076.0, 1025.0)
    x = minimum(maximum(x, least), greatest)
    n, n_integer = round_to_integer(x)
    r = x - n
    return scale(fma(r, horner(r, tables.EXP2[x.elem]), 1.0), n_integer)


def expm1(x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1), with everything halved until the end so that 2^1024 never appears."""
    greatest = EXP_RANGE[x.elem][1]
    n, n_integer, r = reduce_exp(minimum(maximum(x, -50.0), greatest))
    p = exp_minus_one_reduced(r)
    half = power_of_two(n_integer - 1, x.elem)
    result = fma(half, p, half - 0.5) * 2.0
    # n = 0 needs no scaling, and halving would lose bits of subnormals; zero keeps its sign.
    return select(n.equals(0.0), select(fabs(x) < x.format.epsilon, x, p), result)


def logistic(x: Value) -> Value:
    """1 / (1 + exp(-x)), written with exp(-|x|), which cannot overflow."""
    e = exp(-fabs(x))
    return select(x < 0.0, e, 1.0) / (e + 1.0)


def tanh(x: Value) -> Value:
    """An odd polynomial to 0.625, 1 - 2 / (exp(2x) + 1) beyond (Cephes' split)."""
    a = fabs(x)
    z = x * x
    small = fma(x * z, horner(z, tables.TANH[x.elem]), x)
    e = exp_normal(minimum(a + a, 50.0))
    large = copysign(1.0 - 2.0 / (e + 1.0), x)
    return select(a < 0.625, select(a < x.format.epsilon, x, small), large)


def half_exp(x: Value) -> Value:
    """exp(x) / 2 for x >= 0, finite wherever that is."""
    _, n, r = reduce_exp(minimum(x, EXP_RANGE[x.elem][1] + 1.0))
    return scale(exp_minus_one_reduced(r) + 1.0, n - 1)


def sinh(x: Value) -> Value:
    """An odd polynomial to 1, (e - 1/e) / 2 beyond."""
    a = fabs(x)
    z = x * x
    small = fma(x * z, horner(z, tables.SINH[x.elem]), x)
    h = half_exp(a)
    return select(a < 1.0, select(a < x.format.epsilon, x, small), copysign(h - 0.25 / h, x))


def cosh(x: Value) -> Value:
    h = half_exp(fabs(x))
    return h + 0.25 / h
