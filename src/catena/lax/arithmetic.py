"""Arithmetic: sums, products, quotients, powers, roots, rounding, and the larger and smaller of two numbers."""

import enum
import operator

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.primitive import NoRule
from catena.core.structural import add_any_p
from catena.core.zeros import UndefinedPrimal, Zero, get_aval, is_undefined_primal
from catena.lax import complex_edges
from catena.lax.comparison import eq, ge, select
from catena.lax.complex_numbers import conj, match_dtype, real
from catena.lax.declared import max_p, min_p, neg_p
from catena.lax.elementwise import (
    ANY,
    FLOAT,
    NUMBER,
    REAL,
    SIGNED,
    WIDER_WITH_HALF,
    check_admitted,
    check_same_dtypes,
    elementwise,
    spread_operands,
)
from catena.lax.signed_zeros import maximum, minimum
from catena.lax.structure import broadcast_to, constant_like, like, unbroadcast

# ------------------------------------------------------------------------------------------------------------
# What several share


def transposed(ct, *rules):
    """The cotangents of operands, from pairs of an operand and its rule; a known operand has none."""
    return [_cotangent(ct, x.aval, rule) if type(x) is UndefinedPrimal else None for x, rule in rules]


def _cotangent(ct, aval, rule):
    if type(ct) is Zero:
        return Zero(aval)
    out = rule(ct)
    return out if get_aval(out) is aval else unbroadcast(out, aval)


def _same(ct):
    return ct


def _choice_tangents(x, y, out):
    """The share of ``x`` in the derivative of the larger (or smaller) of two numbers: all, nothing, or half in ties."""
    shape = get_aval(out).shape
    one, zero, half = (broadcast_to(like(out, c), shape) for c in (1, 0, 0.5))
    return select(eq(x, out), select(eq(y, out), half, one), zero)


# ---- neg


def _negative(x):
    """NumPy's; of complex numbers on their parts, which is ten times as fast."""
    if x.dtype.kind == "c" and x.flags.c_contiguous and x.ndim:
        return np.negative(x.view(x.real.dtype)).view(x.dtype)
    return np.negative(x)


def _neg_transpose(ct, x):
    return transposed(ct, (x, neg))


elementwise(neg_p, _negative, NUMBER, lambda t, x, y: neg(t), transpose=_neg_transpose)


def neg(x):
    r"""Elementwise negation: :math:`-x`; unsigned integers wrap around.

    Arguments:
      x: array of numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.neg(2).item()
    -2
    """
    return neg_p.bind(x)


# ---- add


def _add_transpose(ct, x, y):
    return transposed(ct, (x, _same), (y, _same))


def _sum_jvp(bind_tangents, negate_second=_same):
    """Differentiation of a sum or difference: the same operation on the tangents, broadcast like the operands."""

    def jvp(primals, tangents):
        out = bind_tangents(*primals)
        shape = get_aval(out).shape
        t, u = (x if type(x) is Zero else broadcast_to(x, shape) for x in tangents)
        if type(t) is Zero and type(u) is Zero:
            return out, Zero.of_primal(out)
        if type(t) is Zero:
            return out, negate_second(u)
        return out, t if type(u) is Zero else bind_tangents(t, u)

    return jvp


add_p = elementwise(
    "add", np.add, NUMBER, transpose=_add_transpose, jvp=_sum_jvp(lambda x, y: add(x, y))
)  # fmt: skip


def add(x, y):
    r"""Elementwise sum: :math:`x + y`.

    Arguments:
      x, y: arrays of the same dtype, numbers, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.add(1, 2).item()
    3
    """
    return add_p.bind(x, y)


# ---- sub


def _sub_transpose(ct, x, y):
    return transposed(ct, (x, _same), (y, neg))


sub_p = elementwise(
    "sub",
    np.subtract,
    NUMBER,
    transpose=_sub_transpose,
    jvp=_sum_jvp(lambda x, y: sub(x, y), lambda t: neg(t)),
)


def sub(x, y):
    r"""Elementwise difference: :math:`x - y`.

    Arguments:
      x, y: arrays of the same dtype, numbers, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.sub(1, 2).item()
    -1
    """
    return sub_p.bind(x, y)


# ---- mul


def _mul_transpose(ct, x, y):
    return transposed(ct, (x, lambda ct: mul_p.bind(ct, y)), (y, lambda ct: mul_p.bind(x, ct)))


mul_p = elementwise(
    "mul",
    np.multiply,
    NUMBER,
    lambda t, x, y, z: mul_p.bind(t, y),
    lambda t, x, y, z: mul_p.bind(x, t),
    transpose=_mul_transpose,
)


def mul(x, y, *, out_dtype=None):
    r"""Elementwise product: :math:`x \times y`.

    Arguments:
      x, y: arrays of the same dtype, numbers, of shapes that broadcast.
      out_dtype: the dtype of the result, if it is not that of the operands; a wider one is multiplied in.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax, numpy as np
    >>> lax.mul(2, 3).item(), lax.mul(np.int8(100), np.int8(2), out_dtype="int32").item()
    (6, 200)
    """
    if out_dtype is None:
        return mul_p.bind(x, y)
    return _mul_to(x, y, dtypes.check_user_dtype_supported(out_dtype, "mul"))


def _mul_to(x, y, out_dtype):
    """The product in another dtype, rounded once."""
    check_same_dtypes("mul", (get_aval(x), get_aval(y)))
    if dtypes.itemsize_bits(out_dtype) < dtypes.itemsize_bits(get_aval(x).dtype):
        return match_dtype(mul_p.bind(x, y), out_dtype)
    return mul_p.bind(match_dtype(x, out_dtype), match_dtype(y, out_dtype))


# ---- div


def _divide(x, y):
    """Quotients; of integers towards zero, with all ones for division by zero."""
    if x.dtype.kind not in "iu":
        return complex_edges.divide(x, y) if x.dtype.kind == "c" else np.divide(x, y)
    nonzero = np.where(y == 0, y.dtype.type(1), y)
    quotient = (x - np.fmod(x, nonzero)) // nonzero
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient)


def _div_transpose(ct, x, y):
    if is_undefined_primal(y):
        raise TypeError("The transpose rule for 'div' is not defined for the divisor: it is not linear in it")
    return transposed(ct, (x, lambda ct: div(ct, y)))[:1] + [None]


div_p = elementwise(
    "div", _divide, NUMBER, lambda t, x, y, z: div(t, y),
    lambda t, x, y, z: mul(mul(neg(t), x), integer_pow(y, -2)), transpose=_div_transpose,
)  # fmt: skip


def div(x, y):
    r"""Elementwise quotient: :math:`x \over y`; of integers rounded towards zero, and -1 for division by zero.

    Arguments:
      x, y: arrays of the same dtype, numbers, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.div(7, -2).item(), lax.div(1, 0).item()
    (-3, -1)
    """
    return div_p.bind(x, y)


# ---- rem


def _remainder(x, y):
    """Remainders of division towards zero; of integers, the dividend where the divisor is zero."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def _rem_tangent_y(t, x, y, z):
    quotient = div(x, y)
    return mul(neg(t), mul(sign(quotient), floor(abs(quotient))))


rem_p = elementwise("rem", _remainder, REAL, lambda t, x, y, z: t, _rem_tangent_y)


def rem(x, y):
    r"""Elementwise remainder of division towards zero, with the sign of ``x``; for integers ``x`` where ``y`` is 0.

    Arguments:
      x, y: arrays of the same dtype, real numbers, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.rem(-7, 2).item(), lax.rem(5, 0).item()
    (-1, 5)
    """
    return rem_p.bind(x, y)


# ---- max


def _extreme_lower(op, first_wins):
    """Lowering of the maximum or minimum; of complex numbers by real, then imaginary part, NaN first."""

    def lower(b, x, y):
        x, y = spread_operands(b, (x, y))
        if not dtypes.is_complex(x.dtype):
            return b.map(op, x, y)
        (xr, xi), (yr, yi) = ((b.map("real", v), b.map("imag", v)) for v in (x, y))
        later = b.map("and", b.map("eq", xr, yr), b.map(first_wins, xi, yi))
        wins = b.map("or", b.map(first_wins, xr, yr), later)
        x_nan, y_nan = (b.map("ne", v, v) for v in (x, y))
        wins = b.map("and", b.map("not", y_nan), b.map("or", x_nan, wins))
        return b.map("select", wins, x, y)

    return lower


def _tie(t, x, y, out):
    return mul(t, _choice_tangents(x, y, out))


def _tie_swapped(t, x, y, out):
    return mul(t, _choice_tangents(y, x, out))


max_p = elementwise(
    max_p, maximum, ANY, _tie, _tie_swapped, lower=_extreme_lower("max", "gt"),
)  # fmt: skip


def max(x, y):
    r"""Elementwise larger one: :math:`\mathrm{max}(x, y)`; complex numbers compare by real, then imaginary part.

    Arguments:
      x, y: arrays of the same dtype, numbers or booleans, of shapes that broadcast.
    Returns:
      An array of that dtype. NaN where either is NaN.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.max(1, 2).item()
    2
    """
    return max_p.bind(x, y)


# ---- min

min_p = elementwise(
    min_p, minimum, ANY, _tie, _tie_swapped, lower=_extreme_lower("min", "lt"),
)  # fmt: skip


def min(x, y):
    r"""Elementwise smaller one: :math:`\mathrm{min}(x, y)`; complex numbers compare by real, then imaginary part.

    Arguments:
      x, y: arrays of the same dtype, numbers or booleans, of shapes that broadcast.
    Returns:
      An array of that dtype. NaN where either is NaN.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.min(1, 2).item()
    1
    """
    return min_p.bind(x, y)


# ---- abs


def _abs_tangent(t, x, y):
    if not dtypes.is_complex(get_aval(x).dtype):
        ones = broadcast_to(like(t, 1), get_aval(x).shape)
        return mul(t, select(ge(x, like(x, 0)), ones, neg(ones)))  # of one reader, where a choice of signs has two
    size = match_dtype(y, get_aval(x).dtype)
    ones = broadcast_to(like(size, 1), get_aval(x).shape)
    return real(mul(t, div(conj(x), select(eq(size, like(size, 0)), ones, size))))


def _real_of_complex(x):
    return dtypes.to_real_dtype(x.dtype)


abs_p = elementwise("abs", np.abs, SIGNED, _abs_tangent, result=_real_of_complex)


def abs(x):
    r"""Elementwise absolute value: :math:`|x|`; the smallest integer stays itself.

    Arguments:
      x: array of floats, complex numbers or signed integers.
    Returns:
      An array of the same type; for complex numbers, of floats.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.abs(-3).item(), lax.abs(3 + 4j).item()
    (3, 5.0)
    """
    return abs_p.bind(x)


# ---- sign


def _sign(x):
    out = np.sign(x)
    if x.dtype.kind == "f":
        return np.copysign(out, x)
    return np.where(x == 0, x, out) if x.dtype.kind == "c" else out


sign_p = elementwise("sign", _sign, NUMBER, None, of_complex=complex_edges.sign)


def sign(x):
    r"""Elementwise sign: -1, 0 or 1, of complex numbers :math:`x / |x|`.

    Arguments:
      x: array of numbers.
    Returns:
      An array of the same type. Zeros keep their sign, NaN stays NaN.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.sign(-3.0).item()
    -1.0
    """
    return sign_p.bind(x)


# ---- floor

floor_p = elementwise("floor", np.floor, FLOAT, None)


def floor(x):
    r"""Elementwise largest integer that is not larger: :math:`\lfloor x \rfloor`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.floor(-1.5).item()
    -2.0
    """
    return floor_p.bind(x)


# ---- ceil

ceil_p = elementwise("ceil", np.ceil, FLOAT, None)


def ceil(x):
    r"""Elementwise smallest integer that is not smaller: :math:`\lceil x \rceil`.

    Arguments:
      x: array of floats.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.ceil(-1.5).item()
    -1.0
    """
    return ceil_p.bind(x)


# ---- round


class RoundingMethod(enum.IntEnum):
    """How ``round`` rounds numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round(x, *, rounding_method):
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    almost_half = np.nextafter(x.dtype.type(0.5), x.dtype.type(0))  # with it, sums round to the right side
    return np.trunc(x + np.copysign(almost_half, x))


def _round_lower(b, x, *, rounding_method):
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return b.map("round_half_even" if even else "round_half_away", x)


round_p = elementwise("round", _round, FLOAT, None, lower=_round_lower, wider=WIDER_WITH_HALF)


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """Elementwise nearest integer.

    Arguments:
      x: array of floats.
      rounding_method: what to do halfway between two integers, a ``RoundingMethod``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not a float dtype.
      ValueError: ``rounding_method`` is not one.

    >>> import catena.lax as lax
    >>> lax.round(2.5).item(), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN).item()
    (3.0, 2.0)
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


# ---- nextafter


def _nextafter(x, y):
    """NumPy's gives the first of two equal halves."""
    return np.where(x == y, y, np.nextafter(x, y)) if x.dtype == np.float16 else np.nextafter(x, y)


nextafter_p = elementwise(
    "nextafter",
    _nextafter,
    FLOAT,
    NoRule("it steps between neighbouring floats"),
    wider={},
)


def nextafter(x1, x2):
    """Elementwise next float after ``x1`` in the direction of ``x2``.

    Arguments:
      x1, x2: arrays of the same float dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not float dtypes, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.nextafter(1.0, 2.0).item() - 1.0
    1.1920928955078125e-07
    """
    return nextafter_p.bind(x1, x2)


# ---- integer_pow


def _integer_pow(x, *, y):
    """Powers by repeated squaring: the same products in the same order as in compiled code."""
    if y == 0:
        return np.ones_like(x)
    out, n = None, y if y > 0 else -y
    while n:
        if n & 1:
            out = x if out is None else out * x
        n >>= 1
        if n:
            x = x * x
    return out if y > 0 else _divide(np.ones((), out.dtype), out)


def _integer_pow_tangent(t, x, out, *, y):
    if y == 0:
        return Zero(get_aval(out))
    if y == 1:
        return t
    return mul(t, mul(constant_like(x, y), x if y == 2 else integer_pow(x, y - 1)))


def _integer_pow_abstract(x, *, y):
    check_admitted("integer_pow", x, NUMBER)
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x}, {y}). For a float result make the "
            f"exponent one (x ** {float(y)}), or the base (x.astype(float) ** {y})."
        )
    return ShapedArray(x.shape, x.dtype, x.weak_type)


def _integer_pow_jvp(primals, tangents, *, y):
    (x,), (t,) = primals, tangents
    out = integer_pow_p.bind(x, y=y)
    return out, Zero.of_primal(out) if type(t) is Zero or y == 0 else _integer_pow_tangent(t, x, out, y=y)


integer_pow_p = elementwise(
    "integer_pow", _integer_pow, NUMBER, jvp=_integer_pow_jvp, abstract=_integer_pow_abstract,
    lower=lambda b, x, *, y: b.map("integer_pow", x, y=y),
)  # fmt: skip


def integer_pow(x, y):
    r"""Elementwise power with a fixed integer exponent: :math:`x^y`.

    Arguments:
      x: array of numbers.
      y: a Python integer.
    Returns:
      An array of the type of ``x``.
    Raises:
      TypeError: the dtype is not admitted, ``y`` is not an integer, or it is negative and ``x`` is of
        integers.

    >>> import catena.lax as lax
    >>> lax.integer_pow(2, 10).item(), lax.integer_pow(2.0, -2).item()
    (1024, 0.25)
    """
    return integer_pow_p.bind(x, y=operator.index(y))


# ---- add_any


def _add_any_abstract(x, y):
    if x.shape != y.shape or x.dtype != y.dtype:
        raise TypeError(f"add_any: cotangents must have the same type, got {x.str_short()} and {y.str_short()}")
    return ShapedArray(x.shape, x.dtype, x.weak_type)


def _add_any_batch(axis, args, dims):
    return add_any_p.bind(*[at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]), 0


elementwise(
    add_any_p,
    np.add,
    NUMBER,
    abstract=_add_any_abstract,
    transpose=_add_transpose,
    op="add",
    jvp=_sum_jvp(lambda x, y: add_any_p.bind(x, y)),
)
add_any_p.batch = _add_any_batch
