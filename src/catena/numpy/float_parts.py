"""Floats and their parts: rounding, signs, exponents, neighbours; real and imaginary parts."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, live, make_array
from catena.lax.whole import whole
from catena.numpy.boundary import (
    SCALARS,
    as_array_argument,
    as_operand,
    broadcast_together,
    concrete_values,
    convert,
    direct,
    dtype_of,
    like,
    one_inexact,
    operands,
    promote_inexact,
    refuse_out,
    run,
    spread_together,
    static_int,
    strong,
)
from catena.numpy.documentation import document_binary, document_unary
from catena.numpy.hot import LARGE, NONE, OWN, REAL, WEAK_NUMBER, binary, second_names, unary
from catena.numpy.protocol import present_as
from catena.typing import ArrayLike

_NO_COMPLEX = ", or is complex"
_EVEN = lax.RoundingMethod.TO_NEAREST_EVEN

# ---- rounding


def _whole(name, lax_fun):
    """Rounding that leaves integers and booleans as they are."""

    def general(x):
        x = as_array_argument(name, x)
        return lax_fun(x) if dtypes.is_inexact(x.dtype) else x

    return general


def _towards_zero(x):
    return lax.select(lax.lt(x, like(x, 0)), lax.ceil(x), lax.floor(x))


def _to_even(x):
    if dtypes.is_complex(x.dtype):
        return lax.complex(_to_even(lax.real(x)), _to_even(lax.imag(x)))
    return lax.round(x, _EVEN)


floor = document_unary(
    unary("floor", (np.floor, lax.floor_p.name), _whole("floor", lax.floor)),
    "The greatest integer not above each element.",
    "of its dtype",
    "jnp.floor(jnp.array([1.7, -1.2]))",
    "Array([ 1., -2.], dtype=float32)",
    refused=_NO_COMPLEX,
)
ceil = document_unary(
    unary("ceil", (np.ceil, lax.ceil_p.name), _whole("ceil", lax.ceil)),
    "The least integer not below each element.",
    "of its dtype",
    "jnp.ceil(jnp.array([1.2, -1.7]))",
    "Array([ 2., -1.], dtype=float32)",
    refused=_NO_COMPLEX,
)
rint = document_unary(
    unary("rint", np.rint, lambda x: _rint(x)),
    "Each element rounded to the nearest integer, half to even.",
    "float or complex",
    "jnp.rint(jnp.array([0.5, 1.5, -1.2]))",
    "Array([ 0.,  2., -1.], dtype=float32)",
)
_trunc = unary("trunc", np.trunc, whole(_whole("trunc", _towards_zero), "elementwise"))


def _rint(x):
    x = as_operand("rint", x)
    dtype, weak = dtype_of(x)
    if not dtypes.is_inexact(dtype):
        return convert(x, dtypes.canonicalize_dtype(float))
    return _to_even(convert(x, dtype, weak))


def trunc(x: ArrayLike) -> Array:
    """Each element rounded towards zero.

    Arguments:
      x: an array of any shape, or a scalar; not complex.
    Returns:
      An array of the shape and dtype of ``x``.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or is complex.

    >>> import catena.numpy as jnp
    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    return _trunc(x)


present_as(_trunc, trunc)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Each element rounded to a number of decimals, half to even.

    Arguments:
      a: an array of any shape, or a scalar.
      decimals: how many decimals to keep; negative ones round to tens, hundreds ..., for floats only.
      out: not supported; arrays are immutable.
    Returns:
      An array of the shape and dtype of ``a``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``a`` is boolean.
      NotImplementedError: ``a`` is an integer array and ``decimals`` is negative.

    >>> import catena.numpy as jnp
    >>> jnp.round(jnp.array([0.5, 1.5, 2.25]))
    Array([0., 2., 2.], dtype=float32)
    """
    refuse_out("round", out)
    if decimals == 0 and type(decimals) is int and direct(a) and a._value.dtype in REAL:  # the hot path
        return make_array(run(np.rint, a._value, out=...), a.weak_type)
    a = as_array_argument("round", a)
    decimals = static_int(decimals, "'decimals' argument of jnp.round")
    if dtypes.is_integer(a.dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a
    if a.dtype == dtypes.BOOL:
        raise ValueError("round: a must be numbers, got booleans")
    return _to_even(a) if decimals == 0 else _round_to(a, decimals)


@whole
def _round_to(x, decimals: int):
    """Rounding by way of scaled values, in float32 at least for narrower dtypes; of complex numbers by their parts."""
    if dtypes.is_complex(x.dtype):
        return lax.complex(*(_round_to(part, decimals) for part in (lax.real(x), lax.imag(x))))
    wide = np.dtype("float32") if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4 else x.dtype
    scaled = convert(x, wide, x.weak_type)
    factor = like(scaled, 10.0**decimals if decimals > 0 else 10.0**-decimals)
    scale, restore = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    return convert(restore(_to_even(scale(scaled, factor)), factor), x.dtype, x.weak_type and not x.ndim)


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Each element rounded to a number of decimals, half to even; the same as ``round``.

    Arguments:
      a: an array of any shape, or a scalar.
      decimals: how many decimals to keep; negative ones round to tens, hundreds ..., for floats only.
      out: not supported; arrays are immutable.
    Returns:
      An array of the shape and dtype of ``a``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.around(jnp.array([0.5, 1.5]))
    Array([0., 2.], dtype=float32)
    """
    return round(a, decimals, out)


# ---- signs


def _signbit(x):
    x = strong(as_array_argument("signbit", x))
    kind = dtypes.KIND[x.dtype]
    if kind == "c":
        raise ValueError(f"jax.numpy.signbit is not well defined for {x.dtype}")
    if kind == "f":
        bits = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
        return lax.lt(bits, like(bits, 0))
    return lax.lt(x, like(x, 0)) if kind == "i" else lax.full_like(x, False, dtypes.BOOL)


signbit = document_unary(
    unary("signbit", np.signbit, _signbit, weak=False),
    "Whether the sign bit of each element is set: -0.0 counts.",
    "bool",
    "jnp.signbit(jnp.array([-1.0, 0.0, -0.0]))",
    "Array([ True, False,  True], dtype=bool)",
    refused=", or is complex (ValueError)",
)


def _copysign(x, y):
    x, y = broadcast_together("copysign", promote_inexact("copysign", x, y), ValueError)
    if dtypes.is_complex(x.dtype):
        raise TypeError("copysign does not support complex-valued inputs")
    magnitude = lax.abs(x)
    return lax.select(signbit(y), lax.neg(magnitude), magnitude)


copysign = document_binary(
    second_names(binary("copysign", OWN, _copysign, REAL)),
    "The magnitudes of the first array with the signs of the second.",
    "float",
    "jnp.copysign(jnp.array([1.0, -2.0]), -0.0)",
    "Array([-1., -2.], dtype=float32)",
    "x1, x2",
    refused=_NO_COMPLEX,
)


@whole
def _heaviside(x, y):
    x, y = broadcast_together("heaviside", promote_inexact("heaviside", x, y), ValueError)
    zero = like(x, 0)
    at_zero = lax.select(lax.ne(x, x), x, y)
    positive = lax.select(lax.gt(x, zero), lax.full_like(x, 1), at_zero)
    chosen = lax.select(lax.lt(x, zero), lax.full_like(x, 0), positive)
    return strong(chosen) if x.ndim else chosen


heaviside = document_binary(
    second_names(binary("heaviside", OWN, _heaviside, REAL, WEAK_NUMBER)),
    "The step function: 0 for negative ``x1``, 1 for positive, and ``x2`` at zero.",
    "float",
    "jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)",
    "Array([0. , 0.5, 1. ], dtype=float32)",
    "x1, x2",
    refused=_NO_COMPLEX,
)

# ---- exponents and neighbours

nextafter = document_binary(
    binary("nextafter", "nextafter", lambda x, y: lax.nextafter(*promote_inexact("nextafter", x, y)), REAL),
    "The float next to the first element in the direction of the second.",
    "float",
    "jnp.nextafter(jnp.array([0.0, 1.0]), 2.0)",
    "Array([1.4012985e-45, 1.0000001e+00], dtype=float32)",
    refused=_NO_COMPLEX,
)


def _spacing(x):
    x = strong(one_inexact("spacing", x))
    if dtypes.is_complex(x.dtype):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    outwards = _copysign(lax.full_like(x, np.inf), x)
    return lax.sub(lax.nextafter(x, outwards), x)


spacing = document_unary(
    unary("spacing", None, whole(_spacing, "elementwise"), NONE),
    "The distance from each element to the next float away from zero.",
    "float",
    "jnp.spacing(jnp.array([1.0, 1024.0]))",
    "Array([1.1920929e-07, 1.2207031e-04], dtype=float32)",
    refused=", or is complex (ValueError)",
)

_FORMATS = {  # by dtype: bits of the mantissa that are stored, exponent bits, bias
    np.dtype("float16"): (10, 5, 15),
    np.dtype("bfloat16"): (7, 8, 127),
    np.dtype("float32"): (23, 8, 127),
    np.dtype("float64"): (52, 11, 1023),
}


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Each element as a mantissa of magnitude in [0.5, 1) and an exponent of two.

    Arguments:
      x: an array of any shape, or a scalar; not complex.
    Returns:
      The pair ``(mantissa, exponent)``, float and int32, with ``x == mantissa * 2 ** exponent``. Zeros,
      infinities and NaNs have themselves as mantissa and the exponent 0.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or is complex.

    >>> import catena.numpy as jnp
    >>> jnp.frexp(jnp.array([0.0, 1.0, -3.0]))
    (Array([ 0.  ,  0.5 , -0.75], dtype=float32), Array([0, 1, 2], dtype=int32))
    """
    x = strong(one_inexact("frexp", x))
    if dtypes.is_complex(x.dtype):
        raise TypeError("frexp does not support complex-valued inputs")
    if x.dtype not in _FORMATS:
        raise TypeError(f"frexp: x must be a float of 16 bits or more, got {x.dtype}")
    if direct(x) and x.dtype in REAL and x.nbytes < LARGE:
        return _frexp_values(x._value)
    return _frexp_at_once(x)


def _frexp_values(value):
    mantissa, exponent = np.frexp(value)
    special = ~np.isfinite(value)
    return make_array(np.asarray(mantissa)), make_array(np.asarray(np.where(special, 0, exponent), np.int32))


def _frexp(x):
    stored, width, bias = _FORMATS[x.dtype]
    subnormal = lax.lt(lax.abs(x), like(x, dtypes.finfo(x.dtype).smallest_normal))
    normal = lax.select(subnormal, lax.mul(x, like(x, 2.0**stored)), x)
    bits = lax.bitcast_convert_type(lax.stop_gradient(normal), np.dtype(f"int{8 * x.dtype.itemsize}"))
    mask = like(bits, (1 << width) - 1)
    biased = lax.bitwise_and(lax.shift_right_logical(bits, like(bits, stored)), mask)
    shift = lax.select(subnormal, lax.full_like(bits, stored), lax.full_like(bits, 0))
    exponent = lax.sub(lax.sub(biased, like(bits, bias - 1)), shift)
    special = lax.bitwise_or(lax.eq(x, like(x, 0)), lax.eq(biased, mask))
    exponent = lax.select(special, lax.full_like(bits, 0), exponent)
    return _scaled(x, lax.neg(exponent)), convert(exponent, np.dtype("int32"))


_frexp_at_once = whole(_frexp, "elementwise")


def _scaled(x, exponent):
    """``x * 2 ** exponent`` in two steps, so that neither factor overflows where the product does not; the factors are
    normal numbers, by their bits.
    """
    stored, _, bias = _FORMATS[x.dtype]
    exponent = convert(exponent, np.dtype(f"int{8 * x.dtype.itemsize}"))
    half = lax.shift_right_arithmetic(exponent, like(exponent, 1))
    for part in (half, lax.sub(exponent, half)):
        bits = lax.shift_left(lax.add(part, like(part, bias)), like(part, stored))
        x = lax.mul(x, lax.bitcast_convert_type(bits, x.dtype))
    return x


def _ldexp(x, exponent):
    if (found := concrete_values(REAL, x)) and (power := _plain_exponent(exponent, x.shape)) is not None:
        return make_array(run(np.ldexp, found[0], power, out=...))  # the hot path
    x, exponent = operands("ldexp", x, exponent)
    kinds = [dtypes.KIND[dtype_of(v)[0]] for v in (x, exponent)]
    if kinds[0] == "c" or kinds[1] not in "iub":
        found = tuple(dtype_of(v)[0] for v in (x, exponent))
        raise ValueError(f"ldexp not supported for input types {found}")
    dtype = dtypes.to_inexact_dtype(dtype_of(x)[0])
    x, exponent = broadcast_together("ldexp", [convert(x, dtype), _small_exponent(exponent, dtype)])
    if direct(x) and direct(exponent) and dtype in REAL:
        return make_array(np.asarray(run(np.ldexp, x._value, exponent._value)))
    still = lax.bitwise_or(lax.eq(lax.abs(x), like(x, np.inf)), lax.eq(x, like(x, 0)))
    return lax.select(still, x, _scaled(_scaled_by_half(x, exponent), _rest(exponent)))


def _plain_exponent(exponent, shape: tuple):
    """A number, or what an array of ``shape`` holds, that is an exponent as C takes them; None for all else."""
    if type(exponent) is int:
        return np.int32(exponent) if abs(exponent) < 1 << 31 else None
    found = concrete_values(_EXPONENTS, exponent)
    return found[0] if found and found[0].shape in (shape, ()) else None


_EXPONENTS = frozenset(map(np.dtype, ("int8", "int16", "int32")))


def _small_exponent(exponent, dtype):
    """An exponent as int32, kept in the range beyond which nothing of ``dtype`` changes any more."""
    exponent = convert(exponent, dtype_of(exponent)[0])
    limit = 2 * (dtypes.finfo(dtype).maxexp + dtypes.finfo(dtype).nmant)
    if dtypes.KIND[exponent.dtype] != "b" and dtypes.iinfo(exponent.dtype).max > limit:
        least = like(exponent, 0 if dtypes.KIND[exponent.dtype] == "u" else -limit)
        exponent = lax.clamp(least, exponent, like(exponent, limit))
    return convert(exponent, np.dtype("int32"))


def _scaled_by_half(x, exponent):
    return _scaled(x, lax.shift_right_arithmetic(exponent, like(exponent, 1)))


def _rest(exponent):
    return lax.sub(exponent, lax.shift_right_arithmetic(exponent, like(exponent, 1)))


ldexp = document_binary(
    second_names(binary("ldexp", None, _ldexp, NONE)),
    "``x1 * 2 ** x2`` for integers ``x2``.",
    "float",
    "jnp.ldexp(jnp.array([1.0, 3.0]), 2)",
    "Array([ 4., 12.], dtype=float32)",
    "x1, x2",
    refused=", or ``x1`` is complex or ``x2`` no integer (ValueError)",
)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Each element as its fractional and its whole part, both with its sign.

    Arguments:
      x: an array of any shape, or a scalar; not complex.
      out: not supported; arrays are immutable.
    Returns:
      The pair ``(fraction, whole)``, float.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or is complex.

    >>> import catena.numpy as jnp
    >>> jnp.modf(jnp.array([1.5, -1.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -1.], dtype=float32))
    """
    refuse_out("modf", out)
    return _modf(x)


def _parts(x):
    x = one_inexact("modf", x)
    integer = lax.select(lax.ge(x, like(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, integer), integer


_modf = whole(_parts, "elementwise")


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Each element, with numbers in the place of NaN and infinities.

    Arguments:
      x: an array of any shape, or a scalar.
      copy: has no effect: arrays are immutable, so the result is a new one.
      nan: what replaces NaN.
      posinf, neginf: what replaces the infinities; None for the greatest and the least finite float.
    Returns:
      An array of the shape and dtype of ``x``.
    Raises:
      TypeError: an argument is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
    Array([1., 0., 9.], dtype=float32)
    """
    del copy
    x = as_array_argument("nan_to_num", x)
    if direct(x) and x._value.dtype in REAL and np.isfinite(x._value).all():  # nothing to replace
        if all(v is None or type(v) in SCALARS for v in (nan, posinf, neginf)):
            return strong(x)
    return _any_nan_to_num(x, nan, posinf, neginf)


@whole
def _any_nan_to_num(x, nan, posinf, neginf):
    if dtypes.is_complex(x.dtype):
        parts = (nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    if not dtypes.is_floating(x.dtype):
        return x
    info = dtypes.finfo(x.dtype)
    x = strong(x)
    x = _replace(x, lax.ne(x, x), nan, 2)
    x = _replace(x, lax.eq(x, like(x, np.inf)), info.max if posinf is None else posinf, 3)
    return _replace(x, lax.eq(x, like(x, -np.inf)), info.min if neginf is None else neginf, 4)


def _replace(x, mask, value, position):
    mask, value, x = spread_together(
        "nan_to_num", [mask, convert(as_array_argument("nan_to_num", value, position), x.dtype), x]
    )
    return lax.select(mask, value, x)


# ---- complex numbers


def _part(name, lax_fun, of_real):
    def general(x):
        x = as_array_argument(name, x)
        return lax_fun(x) if dtypes.is_complex(x.dtype) else of_real(x)

    return general


def _angle(z, degrees=False):
    x = as_operand("angle", z)
    dtype, weak = dtype_of(x)
    is_complex = dtypes.is_complex(dtype)
    wanted = dtype if dtypes.is_inexact(dtype) else dtypes.canonicalize_dtype(float)
    x = convert(x, wanted, weak and is_complex)
    parts = (lax.imag(x), lax.real(x)) if is_complex else (lax.full_like(x, 0), x)
    radians = lax.atan2(*parts)
    return lax.mul(radians, like(radians, 180 / np.pi)) if degrees else radians


_angle_at_once = whole(_angle, "elementwise")


def real(val: ArrayLike, /) -> Array:
    """The real part of each element.

    Arguments:
      val: an array of any shape, or a scalar.
    Returns:
      An array of the shape of ``val``, of its dtype or, where that is complex, of the float dtype of its
      parts.
    Raises:
      TypeError: ``val`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.real(jnp.array([1 + 2j, 3.0]))
    Array([1., 3.], dtype=float32)
    """
    return _part("real", lax.real, _alive)(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each element, zero for real ones.

    Arguments:
      val: an array of any shape, or a scalar.
    Returns:
      An array of the shape of ``val``, of its dtype or, where that is complex, of the float dtype of its
      parts.
    Raises:
      TypeError: ``val`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.imag(jnp.array([1 + 2j, 3.0]))
    Array([2., 0.], dtype=float32)
    """
    return _part("imag", lax.imag, _zeros)(val)


def _zeros(x):
    """Zeros like a real operand."""
    x = _alive(x)
    return make_array(np.zeros(x.shape, x.dtype), x.weak_type) if direct(x) else lax.full_like(x, 0)


def _alive(x):
    """A real operand, of whose data nothing is read: it may have been deleted."""
    if type(x) is Array:
        live(x)
    return x


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each element in the complex plane, from the positive real axis.

    Arguments:
      z: an array of any shape, or a scalar.
      deg: whether the result is in degrees instead of radians.
    Returns:
      An array of the shape of ``z``, float, in [-pi, pi].
    Raises:
      TypeError: ``z`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    return _angle_at_once(z, deg)


conj, conjugate = (
    document_unary(
        unary(name, None, _part(name, lax.conj, lambda x: x), NONE),
        "The complex conjugate of each element; real ones as they are.",
        "of its dtype",
        f"jnp.{name}(jnp.array([1 + 2j, 3.0]))",
        "Array([1.-2.j, 3.-0.j], dtype=complex64)",
    )
    for name in ("conj", "conjugate")
)
