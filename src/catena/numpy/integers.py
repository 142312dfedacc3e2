"""Functions of integers: bits, shifts, greatest common divisors."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.policy import INTEGERS
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_operand,
    broadcast_together,
    convert,
    direct,
    dtype_of,
    like,
    operands,
    promote,
    promote_numeric,
    promoted_dtype,
    same_rank,
)
from catena.numpy.documentation import document_binary, document_unary
from catena.numpy.hot import BOOL, INT, NONE, binary, second_names, unary
from catena.typing import ArrayLike

_BITS = INTEGERS | {BOOL}
_PROMOTED = "of the dtype that the arguments promote to"
_NO_FLOATS = ", or is a float or complex"

# ---- bits


def _bits(name, numpy_fun, lax_fun, purpose, result):
    fun = binary(name, numpy_fun, lambda x, y: lax_fun(*promote(name, x, y)), _BITS)
    example = f"jnp.{name}(jnp.array([0b1100]), 0b1010)"
    return document_binary(fun, purpose, _PROMOTED, example, result, refused=_NO_FLOATS)


bitwise_and = _bits(
    "bitwise_and",
    np.bitwise_and,
    lax.bitwise_and,
    "The bits that are set in both elements.",
    "Array([8], dtype=int32)",
)
bitwise_or = _bits(
    "bitwise_or",
    np.bitwise_or,
    lax.bitwise_or,
    "The bits that are set in one of two elements or in both.",
    "Array([14], dtype=int32)",
)
bitwise_xor = _bits(
    "bitwise_xor",
    np.bitwise_xor,
    lax.bitwise_xor,
    "The bits that differ between two elements.",
    "Array([6], dtype=int32)",
)


def _invert(name):
    def general(x):
        x = as_operand(name, x)
        return lax.bitwise_not(convert(x, *dtype_of(x)))

    return unary(name, np.invert, general, _BITS)


invert, bitwise_not, bitwise_invert = (
    document_unary(
        _invert(name),
        "The bits that are not set in each element; for booleans, whether it is false.",
        "of its dtype",
        f"jnp.{name}(jnp.array([0, 5]))",
        "Array([-1, -6], dtype=int32)",
        takes="integers or booleans",
        refused=_NO_FLOATS,
    )
    for name in ("invert", "bitwise_not", "bitwise_invert")
)


def _bitwise_count(x):
    x = as_operand("bitwise_count", x)
    x = convert(x, dtype_of(x)[0])
    if x.dtype == dtypes.BOOL:
        return convert(x, np.dtype("uint8"))
    magnitude = lax.abs(x) if dtypes.KIND[x.dtype] in "if" else x
    return convert(lax.population_count(magnitude), np.dtype("uint8"))


bitwise_count = document_unary(
    unary("bitwise_count", None, whole(_bitwise_count, "elementwise"), NONE),
    "The number of bits set in the absolute value of each element.",
    "uint8",
    "jnp.bitwise_count(jnp.array([0, 5, -7]))",
    "Array([0, 2, 3], dtype=uint8)",
    takes="integers or booleans",
    refused=_NO_FLOATS,
)

# ---- shifts


def _shift(name, numpy_fun, lax_fun, purpose, names, result):
    fun = binary(name, numpy_fun, lambda x, y: lax_fun(*promote_numeric(name, x, y)), INT)
    fun = second_names(fun) if names == "x1, x2" else fun
    return document_binary(fun, purpose, _PROMOTED, f"jnp.{name}(jnp.array([8, -8]), 1)", result, names, _NO_FLOATS)


def _right(x, y):
    shift = lax.shift_right_logical if dtypes.KIND[x.dtype] == "u" else lax.shift_right_arithmetic
    return shift(x, y)


left_shift, bitwise_left_shift = (
    _shift(
        name,
        np.left_shift,
        lax.shift_left,
        "The bits of each element shifted left; 0 beyond its width.",
        "x, y",
        "Array([ 16, -16], dtype=int32)",
    )
    for name in ("left_shift", "bitwise_left_shift")
)
right_shift, bitwise_right_shift = (
    _shift(
        name,
        np.right_shift,
        _right,
        "The bits of each element shifted right; signed ones keep their sign.",
        "x1, x2",
        "Array([ 4, -4], dtype=int32)",
    )
    for name in ("right_shift", "bitwise_right_shift")
)

# ---- divisors


def _integers(name, x, y):
    """Promoted integer operands; the error of ``name`` for others."""
    xs = operands(name, x, y)
    dtype, weak = promoted_dtype(xs)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    weak = weak and not any(map(np.ndim, xs))  # constants make weak arrays strong
    return same_rank(name, [convert(x, dtype, weak) for x in xs])


def _both_direct(x, y) -> bool:
    return direct(x) and direct(y) and x.dtype.kind in "iu"


def _numpy(fun, x, y):
    lax.broadcast_shapes(x.shape, y.shape)
    return make_array(fun(x._value, y._value, out=...), x.weak_type and y.weak_type)


def _euclid(x, y):
    """Euclid's algorithm on all elements at once."""

    def step(pair):
        x, y = pair
        divides = lax.eq(y, like(y, 0))
        rest = lax.rem(x, lax.select(divides, lax.full_like(y, 1), y))
        return lax.select(divides, x, y), lax.select(divides, y, rest)

    def unfinished(pair):
        return lax.reduce_or(lax.ne(pair[1], like(pair[1], 0)), tuple(range(pair[1].ndim)))

    return lax.while_loop(unfinished, step, (x, y))[0]


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of two integers, element by element; never negative.

    Arguments:
      x1, x2: integer arrays or scalars, of shapes that broadcast together.
    Returns:
      An array of the broadcast shape, of the dtype that the arguments promote to.
    Raises:
      ValueError: the arguments promote to a dtype that is not an integer's.

    >>> import catena.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18]), -8)
    Array([4, 2], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    if _both_direct(x, y):
        return _numpy(np.gcd, x, y)
    return _magnitude(_euclid(*map(_magnitude, broadcast_together("gcd", [x, y]))))


def _magnitude(x):
    return x if dtypes.issubdtype(x.dtype, np.unsignedinteger) else lax.abs(x)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of two integers, element by element; never negative.

    Arguments:
      x1, x2: integer arrays or scalars, of shapes that broadcast together.
    Returns:
      An array of the broadcast shape, of the dtype that the arguments promote to.
    Raises:
      ValueError: the arguments promote to a dtype that is not an integer's.

    >>> import catena.numpy as jnp
    >>> jnp.lcm(jnp.array([4, 0]), 6)
    Array([12,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    if _both_direct(x, y):
        return _numpy(np.lcm, x, y)
    x, y = map(_magnitude, broadcast_together("lcm", [x, y]))
    divisor = _euclid(x, y)
    safe = lax.select(lax.eq(divisor, like(divisor, 0)), lax.full_like(divisor, 1), divisor)
    return lax.mul(x, lax.div(y, safe))
