"""exp and its family.

x = n ln2 + r with |r| <= ln2 / 2 (Cody & Waite, "Software Manual for the Elementary Functions", 1980), a
minimax polynomial for exp(r), then one product by 2^n. Where a vector has results below the normal numbers, they are
made by integers: processors take a hundred cycles for each product that is subnormal, or underflows to zero.
"""

from . import fitted, helpers, pieces, tables, text
from .constants import LN2, LOG2_E
from .double_double import Pair, fast_two_sum
from .polynomials import fitted_to, in_pairs
from .text import (
    Value,
    copysign,
    either,
    fabs,
    fma,
    horner,
    if_any,
    joined,
    maximum,
    minimum,
    power_of_two,
    round_to_integer,
    select,
    without_tiny,
)

# Beyond these exp(x) is zero or infinite: the least x sits below half the smallest subnormal.
EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
RANGE_OF_HALVES = (-20.0, 12.0)  # likewise, rounded to float16
EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}

# Added to arguments that may be subnormal, since each operation with these takes processors a hundred cycles: far less
# than what is rounded off where exp(x) is next to 1, and nothing beside greater arguments.
NEGLIGIBLE = {"float": 2.0**-60, "double": 2.0**-200}

LEAST_COUNTED = 4  # floats of a vector whose bits are made by one instruction, where they are below the normal numbers
RAISED = 32  # 2 to this times a function is computed whose least values are no normal numbers
FAR_BELOW = {"float": -87.0, "double": -708.0}  # up to here, 1 + exp(-x) and its inverse are normal numbers


def reduce_exp(x: Value, less: int = 0) -> tuple[Value, Value, Value]:
    """n as float and integer, and r = x - n ln2; 2^(n - less) is one shift."""
    high, low = LN2[x.elem]
    n, n_integer = round_to_integer(x, LOG2_E[x.elem][0], x.format.bias - less)
    return n, n_integer, fma(n, -low, fma(n, -high, x))


def scale(x: Value, n: Value, low: Value | None = None) -> Value:
    """x 2^n, rounded once, for 0 <= x < 4 and n up to where 2^n is infinite, down to twice the normal range; ``low``:
    where 2^n is no normal number.

    Results down to 2^(n + 1), which x >= 1 has, come from normal numbers; exp and its kin pass 2x and n - 1, so that
    2^n is finite where x 2^n is.
    """
    low = n < 1 - x.format.bias if low is None else low
    normal = x * power_of_two(n, x.elem)
    return if_any(low, lambda: [select(low & x.equals(x), _scale_low(x, n), normal)], [normal])[0]


def scale_down(x: Value, n: Value, integer: Value, less: int) -> Value:
    """`scale` by n - less, of n as float and integer: floats are compared without the integer being made."""
    return scale(x, integer - less, n < 1.0 + less - x.format.bias)


def _scale_low(x: Value, n: Value) -> Value:
    """x 2^n as a number of steps of the least subnormal, which are the bits of the result below the normal numbers."""
    fmt, steps = x.format, _steps(x)
    count, first = x * power_of_two(n + steps, x.elem), 2.0**fmt.mantissa_bits
    subnormal = (count + first).bits() - x.like(first).bits()  # adding rounds to an integer
    normal = count.bits() - (steps << fmt.mantissa_bits)
    return select(count < first, subnormal, normal).as_float(x.elem)


def _steps(x: Value) -> int:
    """2 to this is the number of steps in one."""
    return x.format.bias + x.format.mantissa_bits - 1


def exp_minus_one_reduced(r: Value) -> Value:
    """exp(r) - 1 for |r| <= ln2 / 2."""
    return fma(r * r, horner(r, tables.EXP[r.elem]), r)


def exp(x: Value) -> Value:
    least, greatest = EXP_RANGE[x.elem]
    n, integer, r = reduce_exp(minimum(maximum(x, least), greatest) + NEGLIGIBLE[x.elem], 1)
    return _halved_times(fma(exp_minus_one_reduced(r), 2.0, 2.0), n, integer)


def exp_of_halves(x: Value) -> Value:
    """The same of what is rounded to float16: there are no small results."""
    least, greatest = RANGE_OF_HALVES
    _, integer, r = reduce_exp(minimum(maximum(x, least), greatest) + NEGLIGIBLE[x.elem])
    return (exp_minus_one_reduced(r) + 1.0) * power_of_two(integer, x.elem)


def _halved_times(x: Value, n: Value, integer: Value) -> Value:
    """x 2^(n - 1) for 1 <= x < 3, see `scale`. Of vectors of floats, up to 2^-125 the bits are the number of steps,
    which one instruction makes; those of sixteen have no branch, which is often guessed wrong where some take it.
    """
    low = n < 2.0 - x.format.bias
    if x.elem != "float" or x.type.width < LEAST_COUNTED:
        return scale(x, integer - 1, low)

    def counted() -> Value:
        more = select(low, integer.like(_steps(x) << x.format.mantissa_bits), 0)
        return _counted(x * (power_of_two(integer - 1, x.elem).bits() + more).as_float(x.elem), low)

    if x.type.width == helpers.LONGEST:
        return counted()
    return if_any(low, lambda: [counted()], [x * power_of_two(integer - 1, x.elem)])[0]


def _counted(x: Value, low: Value) -> Value:
    """x, and the float whose bits are x where that is `low`."""
    (x, low), steps = joined(x, low), helpers.Steps(x.type.width)
    x.writer.declares |= {steps.definition, steps.declared}
    return x.writer.emit(x.type, f"call {x.type} {steps.name}({x.type} {x.name}, {low.type} {low.name})")


def short_exp(x: Value) -> Value:
    """exp(x) to single precision, of a double for which it is a normal number."""
    n, n_integer = round_to_integer(x, LOG2_E["double"][0], x.format.bias)
    r = fma(n, -LN2["double"][0], x)
    return fitted_to(text, fitted.EXP_SINGLE, r, in_pairs) * power_of_two(n_integer, "double")


def exp_pair(x: Value) -> Pair:
    """exp(x) where it and what is rounded off it are normal numbers."""
    high, low = LN2[x.elem]
    n, n_integer = round_to_integer(x, LOG2_E[x.elem][0], x.format.bias)
    part = fma(n, -high, x)
    r = fma(n, -low, part)
    lost = fma(n, -low, part - r)
    one = fast_two_sum(x.like(1.0), r)
    whole = fast_two_sum(one.high, one.low + fma(r * r, horner(r, tables.EXP[x.elem]), lost))
    power = power_of_two(n_integer, x.elem)
    return Pair(whole.high * power, whole.low * power)


def exp_sum_times(high: Value, low: Value, factor: Value) -> Value:
    """exp(high + low) times a factor from 2^-6 to 2, for |low| much smaller than one; the factor goes in before the
    scaling, since products of what is subnormal take processors a hundred cycles.
    """
    least, greatest = EXP_RANGE[high.elem]
    clamped = minimum(maximum(high, least - 1.0), greatest)
    low = select(clamped.equals(high), low, 0.0)
    n, integer, r, tail = _reduced_exp_of_sum(clamped + NEGLIGIBLE[high.elem], low, 7)
    return scale_down(fma(r + tail, 2.0, 2.0) * (factor * 64.0), n, integer, 7)


def _reduced_exp_of_sum(high: Value, low: Value, less: int) -> tuple[Value, Value, Value, Value]:
    """n as float and integer, r and the rest of exp(high + low) = 2^n (1 + r + rest); `less` as in `reduce_exp`."""
    n, integer, r = reduce_exp(high, less)
    r_sum = r + low
    low = (r - r_sum) + low
    return n, integer, r_sum, fma(r_sum * r_sum, horner(r_sum, tables.EXP[high.elem]), low)


def moderate_exp_sum_times(high: Value, low: Value, factor: Pair) -> Value:
    """`exp_sum_times` a 64th of a factor from 1.2 to 80, for `high` from the least of `EXP_RANGE` to a number below
    zero whose square is a normal number; what is rounded off the products and sums is added at the end.
    """
    n, integer, r, tail = _reduced_exp_of_sum(high, low, 6)
    f = factor.high
    first = fma(f, r, f)
    lost = fma(f, r, f - first)
    return scale_down(first + (fma(f, tail, factor.low) + lost), n, integer, 6)


def exp_sum(high: Value, low: Value) -> Value:
    """exp(high + low) for |low| much smaller than one."""
    return exp_sum_times(high, low, high.like(1.0))


def exp2(x: Value) -> Value:
    least, greatest = EXP2_RANGE[x.elem]
    bound = minimum(maximum(x, least), greatest) + NEGLIGIBLE[x.elem]
    n, integer = round_to_integer(bound, offset=x.format.bias - 1)
    r = bound - n
    return _halved_times(fma(r + r, horner(r, tables.EXP2[x.elem]), 2.0), n, integer)


def expm1(x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1), with everything halved until the end so that 2^1024 never appears."""
    greatest, small = EXP_RANGE[x.elem][1], fabs(x) < x.format.epsilon
    n, n_integer, r = reduce_exp(select(small, 0.0, minimum(maximum(x, -50.0), greatest)), 1)
    p = exp_minus_one_reduced(r)
    half = power_of_two(n_integer - 1, x.elem)
    result = fma(half, p, half - 0.5) * 2.0
    # n = 0 needs no scaling, and halving would lose bits of subnormals; zero keeps its sign.
    return select(n.equals(0.0), select(small, x, p), result)


def logistic(x: Value) -> Value:
    """1 / (1 + 2^n q) of exp(-x) = 2^n q. Far below zero doubles have exp(x); floats, all of it raised meanwhile."""
    far = FAR_BELOW[x.elem]
    if x.elem == "double":
        return _logistic_below(x, _raised_logistic(maximum(x, far), 0))
    bound = maximum(x, EXP_RANGE[x.elem][0])
    return _lowered(_raised_logistic(bound, RAISED), bound < far)


def logistic_of_halves(x: Value) -> Value:
    """The same of what is rounded to float16."""
    return _raised_logistic(maximum(x, RANGE_OF_HALVES[0]), 0)


def _raised_logistic(x: Value, by: int) -> Value:
    """2^by times the function, with what is rounded off the sum and the quotient: the derivative y (1 - y) has errors
    enough of its own.
    """
    bound, (high, low) = minimum(x, 40.0) + NEGLIGIBLE[x.elem], LOG2_E[x.elem]
    n, n_integer = round_to_integer(bound, -high, x.format.bias - by)
    r = fma(bound, -low, fma(bound, -high, -n))
    one, power = 2.0**-by, power_of_two(n_integer - by, x.elem)
    other = fma(power * r, horner(r, tables.EXP2[x.elem]), power)
    total = other + one
    lost = minimum(other, one) - (total - maximum(other, one))
    result = 1.0 / total
    return fma(result, fma(-result, lost, fma(-result, total, 1.0)), result)


def _lowered(x: Value, low: Value) -> Value:
    """2^-RAISED x; where it is `low`, which is below 2^-125, a number of steps (see `_halved_times`)."""

    def lowered() -> Value:
        if x.type.width < LEAST_COUNTED:
            return select(low, _scale_low(x, x.bits().like(-RAISED)), x * 2.0**-RAISED)
        return _counted(x * select(low, 2.0 ** (_steps(x) - RAISED), x.like(2.0**-RAISED)), low)

    return either(low, lowered, lambda: x * 2.0**-RAISED)


def _logistic_below(x: Value, above: Value) -> Value:
    below = x < FAR_BELOW[x.elem]
    return if_any(below, lambda: [select(below, _small_exp(x), above)], [above])[0]


def _small_exp(x: Value) -> Value:
    """exp(x) where it is no normal number, or nearly so; something of greater numbers."""
    least = EXP_RANGE[x.elem][0]
    n, integer, r = reduce_exp(maximum(x, least), 1)
    return _scale_low(fma(exp_minus_one_reduced(r), 2.0, 2.0), integer - 1)


def tanh(x: Value) -> Value:
    """Of doubles, a quotient of polynomials to 0.7, 1 - 2 / (exp(2x) + 1) beyond (Cephes' form), where errors of
    exp(2x) count a third: it is 2^n 2^r, of which only the sum with one is rounded. Both subtract one quotient.
    """
    if x.elem == "float":
        return pieces.TANH(x)
    a = fabs(x)
    near, z = a < 0.7, a * a
    over, under = (horner(z, numbers) for numbers in fitted.TANH)
    bound, twice = minimum(a, 21.0) + NEGLIGIBLE[x.elem], 2.0 * LOG2_E[x.elem][0]
    n, integer = round_to_integer(bound, twice, x.format.bias)
    r, power = fma(bound, twice, -n), power_of_two(integer, x.elem)
    sum_with_one = fma(r * power, fitted_to(text, fitted.TANH_POWER, r), power + 1.0)
    less = select(near, a * z * over, 2.0) / select(near, under, sum_with_one)
    return copysign(select(near, a, 1.0) - less, x)


def half_exp(x: Value) -> Value:
    """exp(x) / 2 for x >= 0, finite wherever that is."""
    n, integer, r = reduce_exp(minimum(x, EXP_RANGE[x.elem][1] + 1.0) + NEGLIGIBLE[x.elem], 2)
    return scale_down(fma(exp_minus_one_reduced(r), 2.0, 2.0), n, integer, 2)


def sinh(x: Value) -> Value:
    """An odd polynomial to 1, (e - 1/e) / 2 beyond."""
    a, safe = fabs(x), without_tiny(x, x.format.epsilon)
    z = safe * safe
    small = fma(safe * z, horner(z, tables.SINH[x.elem]), safe)
    h = half_exp(a)
    return select(a < 1.0, select(a < x.format.epsilon, x, small), copysign(h - _quarter(h), x))


def cosh(x: Value) -> Value:
    h = half_exp(fabs(x))
    return h + _quarter(h)


def _quarter(h: Value) -> Value:
    """1 / 4h, as it counts beside h: of what is large it would be subnormal."""
    return 0.25 / minimum(h, 2.0**60)
