"""Operations on the bits of integers and booleans."""

import numpy as np

from catena.core import dtypes
from catena.lax.elementwise import BITS, INTEGER, elementwise, lower_rule, spread_operands

# ------------------------------------------------------------------------------------------------------------
# What several share


def _unsigned(dtype) -> np.dtype:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def _width(dtype) -> int:
    return dtypes.itemsize_bits(dtype)


def _low_bits(x):
    """The bits of ``x`` as unsigned integers of NumPy's, zero above the width of its dtype."""
    bits = x.view(_unsigned(x.dtype)) if x.dtype.kind != "V" else x.astype(np.int8).view(np.uint8)
    width = _width(x.dtype)
    return bits if width >= 8 else bits & ((1 << width) - 1)


def _from_low_bits(bits, dtype):
    if dtype.kind != "V":
        return bits.view(dtype)
    width = _width(dtype)
    return (bits & ((1 << width) - 1)).astype(np.uint8).astype(dtype)


def _on_bits(fun):
    """A bitwise function of NumPy's for the narrow integers, too."""

    def evaluate(*xs):
        if xs[0].dtype.kind != "V":
            return fun(*xs)
        return _from_low_bits(fun(*[_low_bits(x) for x in xs]), xs[0].dtype)

    return evaluate


AS_IS: dict = {}  # these functions know the narrow integers themselves

# ---- not

not_p = elementwise("not", _on_bits(np.invert), BITS, None, wider=AS_IS)


def bitwise_not(x):
    r"""Elementwise logical or bitwise not: :math:`\neg x`.

    Arguments:
      x: array of integers or booleans.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype of ``x`` is not admitted.

    >>> import catena.lax as lax, numpy as np
    >>> lax.bitwise_not(np.uint8(1)).item()
    254
    """
    return not_p.bind(x)


# ---- and

and_p = elementwise("and", _on_bits(np.bitwise_and), BITS, None, None, wider=AS_IS)


def bitwise_and(x, y):
    r"""Elementwise logical or bitwise and: :math:`x \wedge y`.

    Arguments:
      x, y: arrays of the same dtype, integers or booleans, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.bitwise_and(6, 3).item()
    2
    """
    return and_p.bind(x, y)


# ---- or

or_p = elementwise("or", _on_bits(np.bitwise_or), BITS, None, None, wider=AS_IS)


def bitwise_or(x, y):
    r"""Elementwise logical or bitwise or: :math:`x \vee y`.

    Arguments:
      x, y: arrays of the same dtype, integers or booleans, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.bitwise_or(6, 3).item()
    7
    """
    return or_p.bind(x, y)


# ---- xor

xor_p = elementwise("xor", _on_bits(np.bitwise_xor), BITS, None, None, wider=AS_IS)


def bitwise_xor(x, y):
    r"""Elementwise logical or bitwise exclusive or: :math:`x \oplus y`.

    Arguments:
      x, y: arrays of the same dtype, integers or booleans, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.bitwise_xor(6, 3).item()
    5
    """
    return xor_p.bind(x, y)


# ---- shift_left


def _shift(fun, beyond):
    """A shift by ``fun``; shifts by the width or more (negative ones count as such) give ``beyond(x)``."""

    def evaluate(x, y):
        width = _width(x.dtype)
        by = y.astype(np.int8) if y.dtype.kind == "V" else y
        if by.size and 0 <= by.min() and by.max() < width:
            return fun(x, by)
        good = (by >= 0) & (by < width)
        return np.where(good, fun(x, np.where(good, by, 0)), beyond(x))

    return evaluate


def _zero(x):
    return np.zeros((), x.dtype)


def _shift_left(x, by):
    bits = _low_bits(x)
    return _from_low_bits(bits << by.astype(bits.dtype), x.dtype)


shift_left_p = elementwise("shift_left", _shift(_shift_left, _zero), INTEGER, None, None, wider=AS_IS)


def shift_left(x, y):
    r"""Elementwise shift to the left: :math:`x \ll y`; zero where ``y`` is the width of the dtype or more.

    Arguments:
      x, y: integer arrays of the same dtype, of shapes that broadcast. A negative ``y`` counts as a large
        one.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not integers, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.shift_left(1, 4).item(), lax.shift_left(1, 32).item()
    (16, 0)
    """
    return shift_left_p.bind(x, y)


# ---- shift_right_logical


def _shift_right_logical(x, by):
    bits = _low_bits(x)
    return _from_low_bits(bits >> by.astype(bits.dtype), x.dtype)


shift_right_logical_p = elementwise(
    "shift_right_logical",
    _shift(_shift_right_logical, _zero),
    INTEGER,
    None,
    None,
    wider=AS_IS,
)


def shift_right_logical(x, y):
    r"""Elementwise shift to the right that brings zeros in: :math:`x \gg y` on the bits of ``x``.

    Arguments:
      x, y: integer arrays of the same dtype, of shapes that broadcast. A negative ``y`` counts as a large
        one.
    Returns:
      An array of that dtype; zero where ``y`` is the width of the dtype or more.
    Raises:
      TypeError: the dtypes differ or are not integers, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.shift_right_logical(-8, 1).item()
    2147483644
    """
    return shift_right_logical_p.bind(x, y)


# ---- shift_right_arithmetic


def _signed(x):
    """The bits of ``x`` as signed integers of NumPy's; of narrow dtypes with the sign in all bits above."""
    if x.dtype.kind != "V":
        return x.view(f"i{x.dtype.itemsize}")
    shift = np.uint8(8 - _width(x.dtype))
    return (_low_bits(x) << shift).view(np.int8) >> shift.view(np.int8)


def _from_signed(x, dtype):
    return x.view(dtype) if dtype.kind != "V" else _from_low_bits(x.view(np.uint8), dtype)


def _shift_right_arithmetic(x, by):
    """The highest bit counts as a sign in unsigned integers, too."""
    signed = _signed(x)
    return _from_signed(np.asarray(signed >> by.astype(signed.dtype)), x.dtype)


def _sign_bits(x):
    """All ones where the highest bit is one, else zero."""
    signed = _signed(x)
    last = np.asarray(8 * signed.dtype.itemsize - 1, signed.dtype)
    return _from_signed(np.asarray(signed >> last), x.dtype)


shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic",
    _shift(_shift_right_arithmetic, _sign_bits),
    INTEGER,
    None,
    None,
    wider=AS_IS,
)


def shift_right_arithmetic(x, y):
    r"""Elementwise shift to the right that repeats the sign bit: :math:`\lfloor x / 2^y \rfloor`.

    Arguments:
      x, y: integer arrays of the same dtype, of shapes that broadcast. A negative ``y`` counts as a large
        one.
    Returns:
      An array of that dtype; 0 or -1 where ``y`` is the width of the dtype or more.
    Raises:
      TypeError: the dtypes differ or are not integers, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.shift_right_arithmetic(-8, 1).item(), lax.shift_right_arithmetic(-8, 40).item()
    (-4, -1)
    """
    return shift_right_arithmetic_p.bind(x, y)


# ---- population_count


def _population_count(x):
    return np.bitwise_count(_low_bits(x)).astype(x.dtype)


population_count_p = elementwise("population_count", _population_count, INTEGER, None, wider=AS_IS)


def population_count(x):
    """Elementwise number of bits that are one.

    Arguments:
      x: array of integers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype of ``x`` is not an integer dtype.

    >>> import catena.lax as lax
    >>> lax.population_count(7).item()
    3
    """
    return population_count_p.bind(x)


# ---- clz


def _clz(x):
    """Leading zeros, by halving: fill every bit below the highest, then count."""
    bits = _low_bits(x)
    shift = 1
    while shift < 8 * bits.dtype.itemsize:
        bits = bits | (bits >> np.asarray(shift, bits.dtype))
        shift *= 2
    return (_width(x.dtype) - np.bitwise_count(bits)).astype(x.dtype)


clz_p = elementwise("clz", _clz, INTEGER, None, wider=AS_IS)


def clz(x):
    """Elementwise number of leading zero bits.

    Arguments:
      x: array of integers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype of ``x`` is not an integer dtype.

    >>> import catena.lax as lax
    >>> lax.clz(1).item()
    31
    """
    return clz_p.bind(x)


# ---- mulhi


def _mulhi(x, y):
    width = _width(x.dtype)
    if width < 64:
        wide = np.int64 if dtypes.KIND[x.dtype] == "i" else np.uint64
        return (x.astype(wide) * y.astype(wide) >> wide(width)).astype(x.dtype)
    return _mulhi_64(x, y)


def _mulhi_64(x, y):
    """The high 64 bits of 128-bit products, from four products of 32-bit halves."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = x.view(np.uint64), y.view(np.uint64)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    carry = (a_low * b_high + (middle & mask)) >> half
    high = a_high * b_high + (middle >> half) + carry
    if x.dtype == np.uint64:
        return high
    return high.view(np.int64) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def _mulhi_lower(b, x, y):
    """Narrow integers are multiplied in a wider dtype: the compiler has the operation for whole bytes."""
    dtype = x.dtype
    if _width(dtype) >= 8:
        return lower_rule("mulhi")(b, x, y)
    wide = np.dtype(np.int32)
    product = b.map("mul", *[b.convert(v, wide) for v in spread_operands(b, (x, y))])
    high = b.map("shift_right_arithmetic", product, b.constant(np.asarray(_width(dtype), wide)))
    return b.convert(high, dtype)


mulhi_p = elementwise("mulhi", _mulhi, INTEGER, None, None, wider=AS_IS, lower=_mulhi_lower)


def mulhi(x, y):
    """Elementwise high half of the double-width product of two integers.

    Arguments:
      x, y: integer arrays of the same dtype, of shapes that broadcast.
    Returns:
      An array of that dtype: the product shifted right by the width of the dtype.
    Raises:
      TypeError: the dtypes differ or are not integers, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.mulhi(2**30, 8).item()
    2
    """
    return mulhi_p.bind(x, y)
