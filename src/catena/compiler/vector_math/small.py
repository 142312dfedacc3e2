"""Products and quotients of numbers some of which may be subnormal, rounded as by the processor.

Processors take a hundred cycles for a vector with a product or quotient of subnormal numbers, or with a product that is
one. So where some number of a vector is that small, all of it is computed of doubles, in which products of floats are
exact, and which are rounded to floats, subnormal ones too, as quickly as others.

Whether something may be `small`, so that it is looked at, is told: exponentials look for what is far below zero anyway,
and what is small of a product is small of its factors.
"""

import math
from collections.abc import Callable

from . import exponential
from .stages import record
from .text import (
    SELDOM,
    Type,
    Value,
    Writer,
    any_lane,
    call,
    copysign,
    define,
    either,
    fabs,
    fence,
    fma,
    if_any,
    select,
    symbol,
)

# What is no less is no subnormal number, multiplied by one that is no less than 2^-6, or than 2^-22; or by another that
# is no less; by a tiny one anything may be, but zero.
LEAST_BY_LARGE, LEAST, LEAST_OF_BOTH, LEAST_BY_TINY = LEASTS = -120, -104, -63, 127  # exponents of 2
BESIDE = {2.0**-6: LEAST_BY_LARGE, 2.0**-22: LEAST, 2.0**-63: LEAST_OF_BOTH}
BELOW_FLOATS = (1 << 29) - 1  # the bits of a double that a float has not
SIZE = 0x7FFFFFFF  # the bits of a number but its sign
LEAST_NORMAL, STEPS = 2.0**-126, 1.5 * 2.0 ** (52 - 149)  # of floats; a double whose last bit is the least float
EXPONENT = 1 << 23  # the least bit of an exponent, whose bias is 127
ROOM = 3  # how many powers of two products are looked at beyond the subnormal ones: factors of these may be so large
FAR_ABOVE = ROOM - 125 + 25  # to what is no less than 2 to this, these products add less than half of its last bit

# Functions of x, what 2 is to them, and from where on they are no zeros, which are not small: masks make many.
TELLING: dict[str, tuple[Callable[..., Value], float, dict[str, tuple[float, float]]]] = {
    "exp": (exponential.exp, math.log(2.0), exponential.EXP_RANGE),
    "exp2": (exponential.exp2, 1.0, exponential.EXP2_RANGE),
    "logistic": (exponential.logistic, math.log(2.0), exponential.EXP_RANGE),
}
PRODUCT, PRODUCT_SUM, QUOTIENT = "small_product", "small_product_sum", "small_quotient"
FOUND = "found_"  # begins what these are called where something is small, as is known
ODD_SUM = "sum_by_odd"
IS_SMALL, IS_SMALL_SIZE = "is_small", "is_small_size"


def asking(name: str, least: int) -> str:
    """What asks whether something is less than a power of two, `IS_SMALL` or `IS_SMALL_SIZE` (of what has no sign); or
    a function of `TELLING` that says so of its result, too.

    >>> asking("exp", LEAST)
    'exp_below_104'
    """
    return f"{name}_below_{-least}"


ASKING = {asking(name, least): (name, least) for name in (IS_SMALL, IS_SMALL_SIZE, *TELLING) for least in LEASTS}


def least_beside(factor: float) -> int:
    """From which power of two on a product with such a number is none that is subnormal.

    >>> least_beside(0.1), least_beside(-1e-38)
    (-120, 127)
    """
    return next((least for bound, least in BESIDE.items() if abs(factor) >= bound), LEAST_BY_TINY)


def found(name: str) -> str:
    """What an operation is called where something is small.

    >>> found(PRODUCT)
    'found_small_product'
    """
    return FOUND + name


def definition(name: str, elem: str, width: int) -> tuple[str, frozenset[str], tuple]:
    """See `text.define`; products, with sums or without, and quotients take whether something may be small, too."""
    writer, type_, truth = Writer(), Type(elem, width), Type("i1", 1)
    x, y, z = (Value(writer, type_, f"%{p}") for p in "xyz")
    small = Value(writer, truth, "%small")
    parameters = [f"{type_} %x"]
    if name in OPERATIONS or name in OF_FOUND:
        operands = [x, y, z][: ARITY[name.removeprefix(FOUND)]]
        given = [*operands, small] if name in OPERATIONS else operands
        result = (OPERATIONS[name] if name in OPERATIONS else OF_FOUND[name])(*given)
        parameters = [f"{each.type} {each.name}" for each in given]
        return define(symbol(name, elem, width), writer, parameters, str(type_), result.name, name != ODD_SUM)
    asked, least = ASKING[name]
    if asked not in TELLING:
        small = any_lane(_is_below(x.bits() & SIZE if asked == IS_SMALL else x.bits(), 127 + least))
        return define(symbol(name, elem, width), writer, parameters, str(truth), small.name)
    function, two, bounds = TELLING[asked]
    small = any_lane((x < least * two) & (x >= bounds[elem][0]))
    result, types = function(x), record([type_, truth])
    writer.lines += [
        f"  %result = insertvalue {types} poison, {type_} {result.name}, 0",
        f"  %both = insertvalue {types} %result, {truth} {small.name}, 1",
    ]
    return define(symbol(name, elem, width), writer, parameters, types, "%both")


def _is_below(size: Value, exponent: int) -> Value:
    """Whether something is less than a power of two, but not zero, of which products are as quick as others."""
    return size.like(exponent * EXPONENT - 1).is_above(size - 1)


def _product(x: Value, y: Value, small: Value) -> Value:
    """By doubles wherever something may be small, be it zero: to ask first which is subnormal is a branch that nobody
    guesses, which takes longer.
    """
    return either(small, lambda: _found_product(x, y), lambda: x * y, SELDOM)


def _found_product(x: Value, y: Value) -> Value:
    return _rounded(x.to_double() * y.to_double())


def _quotient(x: Value, y: Value, small: Value) -> Value:
    return either(small, lambda: _found_quotient(x, y), lambda: x / y, SELDOM)


def _found_quotient(x: Value, y: Value) -> Value:
    """By doubles rounded twice, as if once: what is no middle of two floats is farther from it than a double tells.
    They multiply by the inverse, which a loop has once if y does not change, and correct that by the residual, by
    which what is a middle is found (see `inverses.quotient`).
    """
    dividend, divisor = x.to_double(), y.to_double()
    inverse = 1.0 / divisor
    near = dividend * inverse
    quotient = copysign(fma(-fma(near, divisor, -dividend), inverse, near), near)  # of zeros it would be lost
    is_special = quotient.differs(quotient)  # by zeros, or where something is not finite
    return _rounded(if_any(is_special, lambda: [dividend / divisor], [quotient])[0])


def _product_sum(x: Value, y: Value, z: Value, small: Value) -> Value:
    """x y + z, rounded once."""
    return either(small, lambda: _found_product_sum(x, y, z), lambda: fma(x, y, z), SELDOM)


def _found_product_sum(x: Value, y: Value, z: Value) -> Value:
    """What is far above such a product stays itself."""
    first = x.bits() & SIZE
    is_low = first.like((128 + ROOM) * EXPONENT).is_above(first + (y.bits() & SIZE)) & first.differs(0)
    added = z.bits() & SIZE
    is_near = added.like((127 + FAR_ABOVE) * EXPONENT).is_above(added) & (is_low | added.differs(0))
    return either(is_near, lambda: _summed(x, y, z), lambda: fma(select(is_low, 0.0, x), y, z))


def _summed(x: Value, y: Value, z: Value) -> Value:
    """x y + z by doubles rounded twice, as if once but where the double is the middle of two floats, as some that were
    rounded are. What is subnormal is rounded once: added to a double whose last bit is the step of such numbers. To
    more than `STEPS` hold, products that leave so little add without an error.
    """
    a, b, c = x.to_double(), y.to_double(), z.to_double()
    total = fma(a, b, c)
    is_low = (fabs(total) < LEAST_NORMAL) & (fabs(c) < STEPS / 3)
    low = copysign(fma(a, b, c + STEPS) - STEPS, total)  # of zeros it would be lost
    is_middle = (total.bits() & BELOW_FLOATS).equals((BELOW_FLOATS + 1) // 2) & ~is_low
    result = _rounded(select(is_low, low, total))
    return if_any(is_middle, lambda: [call(x.type, ODD_SUM, x.elem, x.type.width, x, y, z)], [result], SELDOM)[0]


def _sum_by_odd(x: Value, y: Value, z: Value) -> Value:
    """x y + z by doubles. The sum is rounded to one whose last bit is set, unless it is exact; rounded once more, that
    is the nearest float (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
    using rounding to odd", IEEE TC 57, 2008).
    """
    product, z = x.to_double() * y.to_double(), z.to_double()
    total = product + z
    added = total - product
    lost = (product - (total - added)) + (z - added)
    bits = total.bits()
    step = select((bits ^ lost.bits()) < 0, bits.like(-1), 1)
    odd = (bits & 1).equals(1) | ~((lost < 0.0) | (lost > 0.0))
    return select(odd, total, (bits + step).as_float(total.elem)).to_float()


def _rounded(double: Value) -> Value:
    """A float. LLVM must not compute the doubles of floats as such, though it knows that it would be the same."""
    return fence(double).to_float()


ARITY = {PRODUCT: 2, QUOTIENT: 2, PRODUCT_SUM: 3, ODD_SUM: 3}
OPERATIONS: dict[str, Callable[..., Value]] = {PRODUCT: _product, PRODUCT_SUM: _product_sum, QUOTIENT: _quotient}
OF_FOUND: dict[str, Callable[..., Value]] = {
    found(PRODUCT): _found_product,
    found(PRODUCT_SUM): _found_product_sum,
    found(QUOTIENT): _found_quotient,
    ODD_SUM: _sum_by_odd,
}
NAMES = (*OPERATIONS, *OF_FOUND, *ASKING)
