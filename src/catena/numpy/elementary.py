"""Elementary functions: exponentials, logarithms, trigonometric and hyperbolic functions, roots.

They take numbers and booleans and compute in a float or complex dtype: integers and booleans become the
default float, narrower than that where the argument is weak or a small float already.
"""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.lax import native
from catena.lax.structure import strong_like
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_operand,
    broadcast_together,
    convert,
    dtype_of,
    like,
    one_inexact,
    promote_inexact,
)
from catena.numpy.documentation import document_binary, document_unary
from catena.numpy.hot import OWN, REAL, WEAK_NUMBER, binary, positional_or_keyword, second_names, unary

_INEXACT = "float, or complex where ``x`` is complex"


def _inexact(name, lax_fun, purpose, example, result, how=None, returns=_INEXACT, refused="", weak=True):
    how = how or (lax_fun.__name__ if lax_fun.__name__ in native.LOOPS else OWN)
    fun = unary(name, how, lambda x: lax_fun(one_inexact(name, x)), weak=weak, inexact=True)
    return document_unary(fun, purpose, returns, example, result, refused=refused)


def _named(names, *row, **options):
    """One function for each of several names for the same thing."""
    return (_inexact(name, *row[:2], row[2].replace("F(", f"jnp.{name}("), *row[3:], **options) for name in names)


# ---- exponentials and logarithms

exp = _inexact(
    "exp",
    lax.exp,
    "The exponential of each element.",
    "jnp.exp(jnp.array([0.0, 1.0]))",
    "Array([1.     , 2.71828], dtype=float32)",
)
exp2 = _inexact(
    "exp2",
    lax.exp2,
    "Two to the power of each element.",
    "jnp.exp2(jnp.array([0.0, 3.0]))",
    "Array([1., 8.], dtype=float32)",
)
expm1 = _inexact(
    "expm1",
    lax.expm1,
    "``exp(x) - 1`` of each element, exact for small ones too.",
    "jnp.expm1(jnp.array([0.0, 1e-8]))",
    "Array([0.e+00, 1.e-08], dtype=float32)",
)
log = _inexact(
    "log",
    lax.log,
    "The natural logarithm of each element.",
    "jnp.log(jnp.array([1.0, 8.0]))",
    "Array([0.       , 2.0794415], dtype=float32)",
)
log1p = _inexact(
    "log1p",
    lax.log1p,
    "``log(1 + x)`` of each element, exact for small ones too.",
    "jnp.log1p(jnp.array([0.0, 1e-8]))",
    "Array([0.e+00, 1.e-08], dtype=float32)",
)


def _scaled(scale, x, by: float):
    """A number times or over a real one, never weak: each part, since infinite parts times zero would be no numbers."""
    if not dtypes.is_complex(x.dtype):
        return scale(x, strong_like(x, by))
    return lax.complex(*(scale(part(x), strong_like(part(x), by)) for part in (lax.real, lax.imag)))


def _log2(x):
    return _scaled(lax.div, lax.log(one_inexact("log2", x)), np.log(2.0))


def _log10(x):
    return _scaled(lax.mul, lax.log(one_inexact("log10", x)), 1 / np.log(10.0))


log2 = document_unary(
    unary("log2", OWN, _log2, weak=False),
    "The logarithm to base 2 of each element.",
    _INEXACT,
    "jnp.log2(jnp.array([1.0, 8.0]))",
    "Array([0., 3.], dtype=float32)",
)
log10 = document_unary(
    unary("log10", OWN, _log10, weak=False),
    "The logarithm to base 10 of each element.",
    _INEXACT,
    "jnp.log10(jnp.array([1.0, 2.0]))",
    "Array([0.     , 0.30103], dtype=float32)",
)

# ---- trigonometric functions

sin = _inexact(
    "sin",
    lax.sin,
    "The sine of each element, in radians.",
    "jnp.sin(jnp.array([0.0, 1.0]))",
    "Array([0.      , 0.841471], dtype=float32)",
)
cos = _inexact(
    "cos",
    lax.cos,
    "The cosine of each element, in radians.",
    "jnp.cos(jnp.array([0.0, 1.0]))",
    "Array([1.       , 0.5403023], dtype=float32)",
)
tan = _inexact(
    "tan",
    lax.tan,
    "The tangent of each element, in radians.",
    "jnp.tan(jnp.array([0.0, 1.0]))",
    "Array([0.       , 1.5574077], dtype=float32)",
)
asin, arcsin = _named(
    ("asin", "arcsin"),
    lax.asin,
    "The inverse sine of each element, in radians; NaN beyond [-1, 1].",
    "F(jnp.array([0.0, 1.0]))",
    "Array([0.       , 1.5707964], dtype=float32)",
)
acos, arccos = _named(
    ("acos", "arccos"),
    lax.acos,
    "The inverse cosine of each element, in radians; NaN beyond [-1, 1].",
    "F(jnp.array([0.0, 1.0]))",
    "Array([1.5707964, 0.       ], dtype=float32)",
)
atan, arctan = _named(
    ("atan", "arctan"),
    lax.atan,
    "The inverse tangent of each element, in radians.",
    "F(jnp.array([0.0, 1.0]))",
    "Array([0.      , 0.785398], dtype=float32)",
)

# ---- hyperbolic functions

sinh = _inexact(
    "sinh",
    lax.sinh,
    "The hyperbolic sine of each element.",
    "jnp.sinh(jnp.array([0.0, 1.0]))",
    "Array([0.       , 1.1752012], dtype=float32)",
)
cosh = _inexact(
    "cosh",
    lax.cosh,
    "The hyperbolic cosine of each element.",
    "jnp.cosh(jnp.array([0.0, 1.0]))",
    "Array([1.     , 1.54308], dtype=float32)",
)
tanh = _inexact(
    "tanh",
    lax.tanh,
    "The hyperbolic tangent of each element.",
    "jnp.tanh(jnp.array([0.0, 1.0]))",
    "Array([0.       , 0.7615942], dtype=float32)",
)
asinh, arcsinh = _named(
    ("asinh", "arcsinh"),
    lax.asinh,
    "The inverse hyperbolic sine of each element.",
    "F(jnp.array([0.0, 1.0]))",
    "Array([0.      , 0.881374], dtype=float32)",
)
acosh, arccosh = _named(
    ("acosh", "arccosh"),
    lax.acosh,
    "The inverse hyperbolic cosine of each element; NaN below 1.",
    "F(jnp.array([1.0, 2.0]))",
    "Array([0.      , 1.316958], dtype=float32)",
)
atanh, arctanh = _named(
    ("atanh", "arctanh"),
    lax.atanh,
    "The inverse hyperbolic tangent of each element; NaN beyond [-1, 1].",
    "F(jnp.array([0.0, 0.5]))",
    "Array([0.        , 0.54930615], dtype=float32)",
)

# ---- roots and angles

sqrt = _inexact(
    "sqrt",
    lax.sqrt,
    "The square root of each element; NaN for negative real ones.",
    "jnp.sqrt(jnp.array([4.0, 2.0]))",
    "Array([2.       , 1.4142135], dtype=float32)",
    how=(np.sqrt, lax.sqrt_p.name),
)
cbrt = _inexact(
    "cbrt",
    lax.cbrt,
    "The real cube root of each element.",
    "jnp.cbrt(jnp.array([2.0, -3.0]))",
    "Array([ 1.25992, -1.44225], dtype=float32)",
    returns="float",
    refused=", or is complex",
)


def _to_radians(x):
    return lax.mul(x, like(x, np.pi / 180))


def _to_degrees(x):
    return lax.mul(x, like(x, 180 / np.pi))


deg2rad, radians = _named(
    ("deg2rad", "radians"),
    _to_radians,
    "Angles in degrees as angles in radians.",
    "F(jnp.array([0.0, 180.0]))",
    "Array([0.       , 3.1415927], dtype=float32)",
    weak=WEAK_NUMBER,
)
rad2deg, degrees = _named(
    ("rad2deg", "degrees"),
    _to_degrees,
    "Angles in radians as angles in degrees.",
    "F(jnp.array([0.0, 1.0]))",
    "Array([ 0.    , 57.2958], dtype=float32)",
    weak=WEAK_NUMBER,
)


def _reciprocal(x):
    return lax.integer_pow(one_inexact("reciprocal", x), -1)


reciprocal = document_unary(
    unary("reciprocal", np.reciprocal, _reciprocal),
    "One over each element.",
    _INEXACT,
    "jnp.reciprocal(jnp.array([2.0, 0.0]))",
    "Array([0.5, inf], dtype=float32)",
)


def _sinc(x):
    x = one_inexact("sinc", x)
    nonzero = lax.ne(x, like(x, 0))
    safe = lax.select(nonzero, lax.mul(x, like(x, np.pi)), lax.full_like(x, 1))
    near_zero = lax.select(nonzero, lax.full_like(x, 0), x)  # elsewhere its powers could overflow
    return lax.select(nonzero, lax.div(lax.sin(safe), safe), _sinc_near_zero(near_zero))


def _sinc_near_zero(x):
    """1 at zero with its derivatives up to the fourth, by the series of sin(pi x) / (pi x)."""
    square = lax.square(lax.mul(x, like(x, np.pi)))
    quadratic = lax.add(like(x, -1 / 6), lax.mul(square, like(x, 1 / 120)))
    return lax.add(lax.mul(square, quadratic), lax.full_like(x, 1))


sinc = document_unary(
    unary("sinc", OWN, _sinc, weak=WEAK_NUMBER, inexact=True),
    "``sin(pi x) / (pi x)`` of each element, 1 at zero.",
    _INEXACT,
    "jnp.sinc(jnp.array([0.0, 0.5]))",
    "Array([1.        , 0.63661975], dtype=float32)",
)


def _i0(x):
    x = as_operand("i0", x)
    dtype, weak = dtype_of(x)
    if dtypes.is_complex(dtype):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {dtype}")
    x = convert(x, dtypes.to_inexact_dtype(dtype), weak)
    magnitude = lax.max(x, lax.neg(x))  # its derivative at zero is zero, as it must be here
    return lax.mul(lax.exp(magnitude), lax.bessel_i0e(x))


i0 = document_unary(
    positional_or_keyword("i0", whole(_i0, "elementwise")),
    "The modified Bessel function of order zero of each element.",
    "float",
    "jnp.i0(jnp.array([0.0, 1.0]))",
    "Array([1.     , 1.26607], dtype=float32)",
    refused=", or is complex (ValueError)",
)


# ---- functions of two arrays


def _two(lax_fun, name):
    return lambda x, y: lax_fun(*promote_inexact(name, x, y))


atan2, arctan2 = (
    document_binary(
        second_names(binary(name, "atan2", _two(lax.atan2, name), REAL)),
        "The angle, in radians, of the point with ordinate ``x1`` and abscissa ``x2``.",
        "float, in [-pi, pi]",
        f"jnp.{name}(jnp.array([1.0, -1.0]), jnp.array([1.0, 0.0]))",
        "Array([ 0.785398, -1.570796], dtype=float32)",
        "x1, x2",
    )
    for name in ("atan2", "arctan2")
)


def _hypot(x, y):
    x, y = broadcast_together("hypot", promote_inexact("hypot", x, y))
    if dtypes.is_complex(x.dtype):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, "
            "such as by using abs(x)"
        )
    x, y = lax.abs(x), lax.abs(y)
    infinity, zero = like(x, np.inf), like(x, 0)
    infinite = lax.bitwise_or(lax.eq(x, infinity), lax.eq(y, infinity))
    greater, lesser = lax.max(x, y), lax.min(x, y)
    no_length = lax.eq(greater, zero)
    ratio = lax.div(lesser, lax.select(no_length, lax.full_like(x, 1), greater))
    length = lax.mul(greater, lax.sqrt(lax.add(like(x, 1), lax.square(ratio))))
    return lax.select(infinite, lax.full_like(x, np.inf), lax.select(no_length, greater, length))


hypot = document_binary(
    second_names(binary("hypot", OWN, _hypot, REAL, WEAK_NUMBER)),
    "The length of the hypotenuse of a right triangle with legs ``x1`` and ``x2``, without overflow in between.",
    "float",
    "jnp.hypot(jnp.array([3.0]), 4.0)",
    "Array([5.], dtype=float32)",
    "x1, x2",
    refused=", or they are complex (ValueError)",
)


def log_of_one_minus_exp(x):
    """``log(1 - exp(-x))`` of floats ``x >= 0``, by one logarithm: of the difference as it is rounded where that has
    all digits, with what is rounded off it beyond ``log(2)`` (where Maechler, 2012, has another formula).
    """
    rest = lax.neg(lax.expm1(lax.neg(x)))
    lost = lax.sub(lax.sub(lax.full_like(x, 1), rest), lax.exp(lax.neg(x)))
    lost = lax.select(lax.lt(x, lax.full_like(x, math.log(2))), lax.full_like(x, 0), lost)
    return lax.add(lax.log(rest), lax.div(lost, lax.max(rest, lax.full_like(x, 0.5))))


def _log_of_sum(x, y, exp, factor):
    """``log(e ** x + e ** y)`` for a base whose ``exp`` is given, and ``factor = 1 / log(base)``.

    The greater operand is chosen by comparison, so the derivatives of all orders are right at ties too.
    """
    first = lax.ge(x, y)
    greater = lax.select(first, x, y)
    minus_distance = lax.select(first, lax.sub(y, x), lax.sub(x, y))
    rest = lax.log1p(exp(minus_distance))
    rest = rest if factor is None else lax.mul(rest, like(rest, factor))
    # where the distance is NaN, the operands are equal infinities, or one is NaN: their sum is right for both
    return lax.select(lax.ne(minus_distance, minus_distance), lax.add(x, y), lax.add(greater, rest))


def _complex_log_of_sum(x, y, factor):
    """The same for complex operands, with the imaginary part wrapped into the principal branch."""
    scale = like(x, factor or 1.0)
    greater = lax.max(x, y)
    other = lax.sub(lax.add(x, y), lax.mul(greater, like(x, 2)))
    total = lax.add(greater, lax.mul(lax.log1p(lax.exp(lax.div(other, scale))), scale))
    half_turn = np.pi * (factor or 1.0)
    angle = lax.add(lax.imag(total), like(lax.imag(total), half_turn))
    turn = like(angle, 2 * half_turn)
    wrapped = lax.rem(angle, turn)
    wrapped = lax.select(lax.lt(wrapped, like(angle, 0)), lax.add(wrapped, turn), wrapped)
    return lax.complex(lax.real(total), lax.sub(wrapped, like(angle, half_turn)))


def _logaddexp(x, y):
    x, y = broadcast_together("logaddexp", promote_inexact("logaddexp", x, y))
    if dtypes.is_complex(x.dtype):
        return _complex_log_of_sum(x, y, None)
    return _log_of_sum(x, y, lax.exp, None)


def _logaddexp2(x, y):
    x, y = broadcast_together("logaddexp2", promote_inexact("logaddexp2", x, y))
    if dtypes.is_complex(x.dtype):
        return _complex_log_of_sum(x, y, 1 / np.log(2.0))
    return _log_of_sum(x, y, lax.exp2, 1 / np.log(2.0))


logaddexp = document_binary(
    second_names(binary("logaddexp", OWN, _logaddexp, REAL)),
    "``log(exp(x1) + exp(x2))`` without overflow.",
    "float, or complex where an argument is complex",
    "jnp.logaddexp(jnp.array([0.0, 1000.0]), 0.0)",
    "Array([6.931472e-01, 1.000000e+03], dtype=float32)",
    "x1, x2",
)
logaddexp2 = document_binary(
    second_names(binary("logaddexp2", OWN, _logaddexp2, REAL, WEAK_NUMBER)),
    "``log2(2 ** x1 + 2 ** x2)`` without overflow.",
    "float, or complex where an argument is complex",
    "jnp.logaddexp2(jnp.array([0.0, 1000.0]), 0.0)",
    "Array([   1., 1000.], dtype=float32)",
    "x1, x2",
)
