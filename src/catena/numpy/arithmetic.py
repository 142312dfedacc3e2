"""Arithmetic: sums, products, quotients, remainders, powers, extrema and functions of two numbers.

Operands are promoted to one dtype by the lattice. Division of integers follows JAX: ``x // 0`` and ``x % 0``
do not raise, and have the values that XLA's fix-up on CPU gives.
"""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.core.trace import Tracer
from catena.lax import native
from catena.lax.policy import INTEGERS
from catena.lax.powers import wrapping_pow
from catena.lax.structure import like as weak_like
from catena.lax.whole import whole
from catena.numpy.boundary import (
    SCALARS,
    as_array_argument,
    as_operand,
    broadcast_together,
    convert,
    direct,
    dtype_of,
    like,
    operands,
    promote,
    promote_inexact,
    promote_numeric,
    promoted_dtype,
    same_rank,
)
from catena.numpy.documentation import document_binary, document_unary
from catena.numpy.hot import (
    C64,
    C128,
    F32,
    F64,
    LARGE,
    NONE,
    NUMBER_OR_INTEGER,
    OWN,
    REAL,
    REAL_OR_INT,
    REAL_OR_INTEGER,
    SCALAR_KINDS,
    ArrayLike,
    are_for_numpy,
    binary,
    by_keyword,
    fits,
    nonzero_divisors,
    second_names,
    unary,
)

_PROMOTED = "of the dtype that the arguments promote to"
_INEXACT = "float, or complex where an argument is complex"


def _lax(lax_fun, name: str, promotion=promote):
    """The general form of a function that is a lax function of promoted operands."""
    return lambda x, y: lax_fun(*promotion(name, x, y))


# ---- sums, products, quotients


def _or_of_booleans(lax_fun, on_booleans, name: str):
    """A sum or product, which of booleans is ``or`` or ``and``."""

    def general(x, y):
        x, y = promote(name, x, y)
        return (on_booleans if x.dtype == dtypes.BOOL else lax_fun)(x, y)

    return general


add = document_binary(
    binary("add", np.add, _or_of_booleans(lax.add, lax.bitwise_or, "add"), NUMBER_OR_INTEGER),
    "The sum of two arrays, element by element.",
    _PROMOTED,
    "jnp.add(jnp.arange(3), 0.5)",
    "Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)",
)
subtract = document_binary(
    binary("subtract", np.subtract, _lax(lax.sub, "subtract"), NUMBER_OR_INTEGER),
    "The difference of two arrays, element by element.",
    _PROMOTED,
    "jnp.subtract(jnp.arange(3), 1)",
    "Array([-1,  0,  1], dtype=int32)",
    refused=", or they are booleans",
)
multiply = document_binary(
    binary("multiply", (np.multiply, "mul"), _or_of_booleans(lax.mul, lax.bitwise_and, "multiply"), NUMBER_OR_INTEGER),
    "The product of two arrays, element by element.",
    _PROMOTED,
    "jnp.multiply(jnp.arange(3), 2)",
    "Array([0, 2, 4], dtype=int32)",
)


def _quotient(name):
    fast = frozenset({F32, F64, C64, C128})
    return binary(name, (np.divide, "div"), _lax(lax.div, name, promote_inexact), fast, inexact=True)


divide, true_divide = (
    document_binary(
        second_names(_quotient(name)),
        "The quotient of two arrays, element by element; infinite or NaN by zero.",
        _INEXACT,
        f"jnp.{name}(jnp.arange(3), 2)",
        "Array([0. , 0.5, 1. ], dtype=float32)",
        "x1, x2",
    )
    for name in ("divide", "true_divide")
)


def _floor_divide(x, y):
    x, y = promote_numeric("floor_divide", x, y)
    kind = dtypes.KIND[x.dtype]
    if kind == "c":
        raise TypeError("floor_divide does not support complex-valued inputs")
    if kind == "f":
        return _float_divmod(x, y)[0]
    x, y = broadcast_together("floor_divide", [x, y])
    quotient = lax.div(x, y)
    if kind == "u":
        return quotient
    opposite = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), lax.ne(lax.rem(x, y), like(x, 0)))
    return lax.select(opposite, lax.sub(quotient, weak_like(x, 1)), quotient)


def _float_divmod(x, y):
    """Quotient rounded down, and remainder with the sign of ``y``."""
    x, y = broadcast_together("divmod", [x, y])
    remainder = lax.rem(x, y)
    exact = lax.select(lax.eq(y, like(y, 0)), x, lax.sub(x, remainder))
    quotient = lax.div(exact, y)
    off = lax.bitwise_and(lax.ne(remainder, like(x, 0)), lax.ne(lax.sign(y), lax.sign(remainder)))
    one_less = lax.sub(quotient, weak_like(x, 1))
    quotient = lax.round(lax.select(off, one_less, quotient), lax.RoundingMethod.AWAY_FROM_ZERO)
    return quotient, lax.select(off, lax.add(remainder, y), remainder)


def _remainder(x, y):
    x, y = promote_numeric("remainder", x, y)
    if dtypes.is_integer(x.dtype):
        y = _one_for_zero(y)
    x, y = broadcast_together("remainder", [x, y])
    remainder = lax.rem(x, y)
    zero = like(x, 0)
    opposite = lax.ne(lax.lt(remainder, zero), lax.lt(y, zero))
    off = lax.bitwise_and(opposite, lax.ne(remainder, zero))
    return lax.select(off, lax.add(remainder, y), remainder)


def _one_for_zero(y):
    """Integers with 1 in the place of 0: the divisors whose remainder is zero; as they are where checks look for 0."""
    if "div" in context.checks:
        return y
    return lax.select(lax.eq(y, like(y, 0)), lax.full_like(y, 1), y)


def _fmod(x, y):
    x, y = promote_numeric("fmod", x, y)
    return lax.rem(x, _one_for_zero(y) if dtypes.is_integer(x.dtype) else y)


_LONG = 1 << 8  # elements, from which on three passes of vectors are quicker than one of divisions


def _numpy_remainder(x, y, out):
    """NumPy divides vectors of integers by one number, but does not take remainders of them."""
    if y.ndim or x.size < _LONG or x.dtype not in INTEGERS:
        return np.remainder(x, y, out=out)
    found = np.floor_divide(x, y, out=out)
    np.multiply(found, y, found)
    return np.subtract(x, found, found)


floor_quotient, floor_remainder = nonzero_divisors(np.floor_divide), nonzero_divisors(_numpy_remainder)

floor_divide = document_binary(
    second_names(binary("floor_divide", (floor_quotient, OWN), _floor_divide, REAL_OR_INTEGER)),
    "The quotient of two arrays rounded down, element by element.",
    _PROMOTED,
    "jnp.floor_divide(jnp.array([7, -7]), 2)",
    "Array([ 3, -4], dtype=int32)",
    "x1, x2",
    refused=", or they are complex",
)
remainder, mod = (
    document_binary(
        second_names(binary(name, (floor_remainder, OWN), _remainder, REAL_OR_INTEGER)),
        "The remainder of division rounded down, with the sign of the divisor; 0 for integers by zero.",
        _PROMOTED,
        f"jnp.{name}(jnp.array([7, -7]), 3)",
        "Array([1, 2], dtype=int32)",
        "x1, x2",
        refused=", or they are complex",
    )
    for name in ("remainder", "mod")
)
fmod = document_binary(
    second_names(binary("fmod", (nonzero_divisors(np.fmod), OWN), _fmod, REAL_OR_INTEGER)),
    "The remainder of division rounded towards zero, with the sign of the dividend; 0 for integers by zero.",
    _PROMOTED,
    "jnp.fmod(jnp.array([7, -7]), 3)",
    "Array([ 1, -1], dtype=int32)",
    "x1, x2",
    refused=", or they are complex",
)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The quotients of two arrays rounded down, and the remainders.

    Arguments:
      x1, x2: arrays or scalars, of shapes that broadcast together; not complex.
    Returns:
      The pair ``(x1 // x2, x1 % x2)``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, is complex, or the shapes do not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    if _are_divided_at_once(x1, x2):  # the hot path
        return floor_divide(x1, x2), remainder(x1, x2)
    x, y = promote_numeric("divmod", x1, x2)
    if dtypes.is_floating(x.dtype):
        return _float_divmod(x, y)
    return _floor_divide(x, y), _remainder(x, y)


def _are_divided_at_once(x, y) -> bool:
    """Whether these are concrete reals of one type, or one such array and a number of Python's."""
    if not direct(x):
        return type(x) in SCALAR_KINDS and direct(y) and y.dtype in REAL_OR_INTEGER
    return x.dtype in REAL_OR_INTEGER and (type(y) in SCALAR_KINDS or direct(y) and x.aval == y.aval)


# ---- powers


def static_exponent(y):
    """The exponent as a Python integer where it is known to be one: a Python or NumPy integer, not an Array."""
    if isinstance(y, bool | int | np.bool_ | np.integer) or (
        isinstance(y, np.ndarray) and not y.ndim and y.dtype.kind in "biu"
    ):
        return int(y)
    return None


def _power(x, y):
    exponent = static_exponent(y)
    if exponent is not None:
        return integer_power(as_operand("power", x), exponent)
    x, y = operands("power", x, y)
    dtype, weak = promoted_dtype([x, y])
    if dtypes.is_inexact(dtype):
        return _inexact_power(x, y, dtype, weak)
    known = not isinstance(y, Tracer)  # then JAX computes products, which are as weak as the base
    dtype, weak = dtypes.to_numeric_dtype(dtype), weak and known and all(dtype_of(v)[1] for v in (x, y))
    return _integer_to_integer(*same_rank("power", [convert(x, dtype, weak), convert(y, dtype, weak)]))


def integer_power(x, exponent: int):
    """``x`` to a power known to be an integer; booleans become int32."""
    dtype, weak = dtype_of(x)
    return lax.integer_pow(convert(x, dtypes.to_numeric_dtype(dtype), weak), exponent)


def _inexact_power(x, y, dtype, weak):
    exponent_dtype = dtype_of(y)[0]
    x = convert(x, dtype, weak)
    if dtypes.is_integer(exponent_dtype) and type(y) not in SCALARS:  # exact for integer exponents
        return lax.pow(*same_rank("power", [x, y]))
    return lax.pow(*same_rank("power", [x, convert(y, dtype, weak)]))


def _integer_to_integer(x, y):
    """Integers to integer powers in the ring of their width; negative exponents count as unsigned."""
    if type(y) is Array and direct(y) and not y.ndim and y._value < 0:
        return lax.integer_pow(x, int(y._value))  # raises
    return wrapping_pow(*broadcast_together("power", [x, y]))


power, pow = (
    document_binary(
        second_names(binary(name, lax.pow_p.name, _power, REAL, scalars=frozenset({float}))),
        "The first array to the power of the second, element by element. An exponent that is a Python integer is "
        "computed by multiplication.",
        _PROMOTED,
        f"jnp.{name}(jnp.array([2, 3]), 2)",
        "Array([4, 9], dtype=int32)",
        "x1, x2",
        refused=", or an integer would be raised to a negative power known to be one",
    )
    for name in ("power", "pow")
)

float_power = document_binary(
    binary("float_power", lax.pow_p.name, _lax(lax.pow, "float_power", promote_inexact), REAL),
    "The first array to the power of the second, element by element, computed in floating point.",
    _INEXACT,
    "jnp.float_power(2, jnp.array([3, -1]))",
    "Array([8. , 0.5], dtype=float32)",
)


def _square(x):
    x = as_operand("square", x)
    dtype, weak = dtype_of(x)
    return lax.square(convert(x, dtypes.to_numeric_dtype(dtype), weak))


square = document_unary(
    unary("square", (np.square, lax.square_p.name), _square, NUMBER_OR_INTEGER),
    "The square of each element.",
    "of its dtype",
    "jnp.square(jnp.array([3, -4]))",
    "Array([ 9, 16], dtype=int32)",
)

# ---- signs


def _same_dtype(lax_fun, name):
    def general(x):
        x = as_operand(name, x)
        dtype, weak = dtype_of(x)
        return lax_fun(convert(x, dtype, weak))

    return general


def _magnitude(x):
    return x if x.dtype == dtypes.BOOL or dtypes.issubdtype(x.dtype, np.unsignedinteger) else lax.abs(x)


negative = document_unary(
    unary("negative", (np.negative, lax.neg_p.name), _same_dtype(lax.neg, "negative"), NUMBER_OR_INTEGER),
    "Minus each element.",
    "of its dtype",
    "jnp.negative(jnp.array([1, -2]))",
    "Array([-1,  2], dtype=int32)",
    takes="numbers",
    refused=", or is boolean",
)
positive = document_unary(
    unary("positive", None, _same_dtype(lambda x: x, "positive"), NONE),
    "Each element as it is.",
    "of its dtype",
    "jnp.positive(jnp.array([1, -2]))",
    "Array([ 1, -2], dtype=int32)",
)
abs, absolute = (
    document_unary(
        unary(name, (np.absolute, lax.abs_p.name), _same_dtype(_magnitude, name), REAL_OR_INTEGER),
        "The absolute value of each element.",
        "real, of its dtype",
        f"jnp.{name}(jnp.array([3, -4]))",
        "Array([3, 4], dtype=int32)",
    )
    for name in ("abs", "absolute")
)
sign = document_unary(
    unary("sign", (np.sign, lax.sign_p.name), _same_dtype(lax.sign, "sign"), REAL_OR_INTEGER),
    "The sign of each element: -1, 0 or 1; for complex ones, the direction from zero.",
    "of its dtype",
    "jnp.sign(jnp.array([3, 0, -4]))",
    "Array([ 1,  0, -1], dtype=int32)",
    takes="numbers",
    refused=", or is boolean",
)


def _fabs(x):
    x = as_operand("fabs", x)
    dtype, weak = dtype_of(x)
    if dtypes.is_complex(dtype):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(convert(x, dtypes.to_inexact_dtype(dtype), weak))


fabs = document_unary(
    unary("fabs", np.fabs, _fabs),
    "The absolute value of each element.",
    "float",
    "jnp.fabs(jnp.array([3, -4]))",
    "Array([3., 4.], dtype=float32)",
    refused=", or is complex",
)

# ---- extrema


maximum = document_binary(
    binary("maximum", (np.maximum, "max"), _lax(lax.max, "maximum"), REAL_OR_INTEGER),
    "The greater of two elements, NaN if one is. Complex numbers are ordered by real, then imaginary parts.",
    _PROMOTED,
    "jnp.maximum(jnp.array([1, 5]), 3)",
    "Array([3, 5], dtype=int32)",
)
minimum = document_binary(
    binary("minimum", (np.minimum, "min"), _lax(lax.min, "minimum"), REAL_OR_INTEGER),
    "The lesser of two elements, NaN if one is. Complex numbers are ordered by real, then imaginary parts.",
    _PROMOTED,
    "jnp.minimum(jnp.array([1, 5]), 3)",
    "Array([1, 3], dtype=int32)",
)


def _ignoring_nan(name: str, numpy_fun, extremum, which: str, result: str):
    """The function ``name``: the other element where one is NaN, and otherwise an extremum; of equal elements the
    second, which has the whole derivative.
    """

    def general(x, y):
        x, y = broadcast_together(name, promote(name, x, y))
        first = lax.bitwise_and(lax.ne(x, y), lax.eq(extremum(x, y), x))
        return lax.select(lax.bitwise_or(lax.ne(y, y), first), x, y)

    return document_binary(
        by_keyword(binary(name, (numpy_fun, OWN), general, REAL_OR_INTEGER)),
        f"The {which} of two elements; where one is NaN, the other one.",
        _PROMOTED,
        f"jnp.{name}(jnp.array([1.0, jnp.nan]), 0.5)",
        result,
        "x1, x2",
    )


fmax = _ignoring_nan("fmax", np.fmax, lax.max, "greater", "Array([1. , 0.5], dtype=float32)")
fmin = _ignoring_nan("fmin", np.fmin, lax.min, "lesser", "Array([0.5, 0.5], dtype=float32)")


def _clipped(arr, low, high):
    """``clip`` of a concrete array of a common dtype to bounds of its type; None for all else."""
    value, weak = arr._value, arr.weak_type
    dtype, bounds = value.dtype, []
    if dtype not in REAL_OR_INT:
        return None
    for bound in (low, high):
        if type(bound) is Array and bound._value.dtype is dtype and are_for_numpy(value, bound._value):
            weak = weak and bound.weak_type
            bound = bound._value
        elif bound is not None and not fits(value, type(bound), bound):
            return None
        bounds.append(bound)
    larger, smaller = np.maximum, np.minimum
    if dtype in REAL:  # which order zeros by their signs
        larger, smaller = native.LOOPS["max"][dtype], native.LOOPS["min"][dtype]
    try:
        if low is not None:
            value = quiet.run(larger, bounds[0], value, out=...)
        return make_array(value if high is None else quiet.run(smaller, bounds[1], value, out=...), weak)
    except ValueError:  # the general path says what is wrong
        return None


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Elements kept within bounds.

    Arguments:
      arr: an array or a scalar; not complex.
      min, max: the bounds, arrays or scalars that broadcast with ``arr``; None for no bound. Where the lower
        bound is above the upper one, the upper one wins.
    Returns:
      An array of the broadcast shape, of the dtype that the arguments promote to.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: an argument is complex.

    >>> import catena.numpy as jnp
    >>> jnp.clip(jnp.array([-2, 0, 7]), 0, 5)
    Array([0, 0, 5], dtype=int32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    if direct(arr) and arr._value.nbytes < LARGE and (found := _clipped(arr, min, max)) is not None:  # the hot path
        return found
    return _any_clip(arr, min, max)


@whole
def _any_clip(arr, min, max):
    given = [as_operand("clip", x, i) for i, x in enumerate((arr, min, max)) if x is not None]
    if any(dtypes.is_complex(dtype_of(x)[0]) for x in given):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no "
            "ordering and cannot be clipped. Please convert to a real value or array by taking the real or imaginary "
            "components via jax.numpy.real/imag respectively."
        )
    result = as_array_argument("clip", arr)
    if min is not None:
        result = maximum(min, result)
    return minimum(max, result) if max is not None else result
