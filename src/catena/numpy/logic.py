"""Comparisons, truth, and tests of elements: ``equal``, ``logical_and``, ``isnan``, ``isclose`` and their kin."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.evaluate import quiet
from catena.core.scalar_types import ScalarType
from catena.core.shapes import broadcast_shapes
from catena.core.struct import ShapeDtypeStruct
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    as_operand,
    broadcast_together,
    concrete_values,
    convert,
    direct,
    dtype_of,
    like,
    operands,
    promote,
    refuse_out,
    spread_together,
    strong,
)
from catena.numpy.conversion import as_array_or_list
from catena.numpy.documentation import document_binary, document_unary
from catena.numpy.hot import (
    BOOL,
    HALVES,
    NONE,
    REAL,
    REAL_OR_INTEGER,
    WEAK_NUMBER,
    binary,
    positional_or_keyword,
    unary,
)
from catena.numpy.protocol import takes_part
from catena.typing import ArrayLike

_COMPARED = REAL_OR_INTEGER | {BOOL}
_MANY_FLOATS = 1 << 10  # whose truth NumPy finds quicker before it combines it

# ---- comparisons


def _comparison(name, numpy_fun, lax_fun, relation, example):
    """An ordering comparison: complex numbers by real parts, then imaginary parts."""

    def general(x, y):
        x, y = promote(name, x, y)
        if not dtypes.is_complex(x.dtype):
            return lax_fun(x, y)
        x, y = broadcast_together(name, [x, y])
        by_real = lax_fun(lax.real(x), lax.real(y))
        by_imag = lax_fun(lax.imag(x), lax.imag(y))
        return lax.select(lax.eq(lax.real(x), lax.real(y)), by_imag, by_real)

    fun = binary(name, numpy_fun, general, _COMPARED)
    return document_binary(fun, f"Whether the first element is {relation} the second.", "bool", *example)


def _equality(name, numpy_fun, lax_fun, relation, example):
    fun = binary(name, numpy_fun, lambda x, y: lax_fun(*promote(name, x, y)), _COMPARED)
    return document_binary(fun, f"Whether two elements are {relation}; NaN equals nothing.", "bool", *example)


equal = _equality(
    "equal",
    np.equal,
    lax.eq,
    "equal",
    ("jnp.equal(jnp.arange(3), 1)", "Array([False,  True, False], dtype=bool)"),
)
not_equal = _equality(
    "not_equal",
    np.not_equal,
    lax.ne,
    "different",
    ("jnp.not_equal(jnp.arange(3), 1)", "Array([ True, False,  True], dtype=bool)"),
)
less = _comparison(
    "less",
    np.less,
    lax.lt,
    "less than",
    ("jnp.less(jnp.arange(3), 1)", "Array([ True, False, False], dtype=bool)"),
)
less_equal = _comparison(
    "less_equal",
    np.less_equal,
    lax.le,
    "less than, or equal to,",
    ("jnp.less_equal(jnp.arange(3), 1)", "Array([ True,  True, False], dtype=bool)"),
)
greater = _comparison(
    "greater",
    np.greater,
    lax.gt,
    "greater than",
    ("jnp.greater(jnp.arange(3), 1)", "Array([False, False,  True], dtype=bool)"),
)
greater_equal = _comparison(
    "greater_equal",
    np.greater_equal,
    lax.ge,
    "greater than, or equal to,",
    ("jnp.greater_equal(jnp.arange(3), 1)", "Array([False,  True,  True], dtype=bool)"),
)

# ---- truth


def truth(x):
    """Whether elements are not zero, as booleans; NaN is not zero."""
    return x if x.dtype == dtypes.BOOL else lax.ne(x, like(x, 0))


def _half_truth(x):
    """Whether halves, which NumPy takes one by one, are not zero: whether a bit but that of the sign is set."""
    return x.view(np.uint16) & 0x7FFF != 0 if x.dtype in HALVES else x


def _logical(name, numpy_fun, lax_fun, purpose, result):
    def general(x, y):
        return lax_fun(*map(truth, promote(name, x, y)))

    def at_once(x, y, out):
        if x.dtype in HALVES or y.dtype in HALVES:
            x, y = _half_truth(x), _half_truth(y)
        elif x.size >= _MANY_FLOATS and x.dtype in REAL:  # NumPy takes them one by one
            x, y = np.not_equal(x, 0), np.not_equal(y, 0)
        return numpy_fun(x, y, out=out)

    fun = binary(name, at_once, general, _COMPARED | HALVES, WEAK_NUMBER, scalars=NONE)
    example = f"jnp.{name}(jnp.array([True, True, False]), jnp.array([1, 0, 0]))"
    return document_binary(fun, purpose, "bool", example, f"Array([{result}], dtype=bool)")


logical_and = _logical(
    "logical_and",
    np.logical_and,
    lax.bitwise_and,
    "Whether both elements are true, that is, not zero.",
    " True, False, False",
)
logical_or = _logical(
    "logical_or",
    np.logical_or,
    lax.bitwise_or,
    "Whether one of two elements is true, that is, not zero.",
    " True,  True, False",
)
logical_xor = _logical(
    "logical_xor",
    np.logical_xor,
    lax.bitwise_xor,
    "Whether just one of two elements is true.",
    "False,  True, False",
)


def _one(name, x):
    """A single argument as an Array or traced value."""
    return as_array_argument(name, x)


def _is_zero(x, out):
    """NumPy compares numbers in a third of the time in which it asks whether they are true."""
    return np.logical_not(x, out=out) if x.dtype == BOOL else np.equal(x, 0, out=out)


logical_not = document_unary(
    unary("logical_not", _is_zero, lambda x: lax.bitwise_not(truth(_one("logical_not", x))), _COMPARED, WEAK_NUMBER),
    "Whether each element is zero.",
    "bool",
    "jnp.logical_not(jnp.array([0, 1, 2]))",
    "Array([ True, False, False], dtype=bool)",
)

# ---- tests of floats


def _isnan(x):
    x = _one("isnan", x)
    return lax.ne(x, x)


def _isfinite(x):
    x = _one("isfinite", x)
    kind = dtypes.KIND[x.dtype]
    if kind == "c":
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x) if kind == "f" else lax.full_like(strong(x), True, dtypes.BOOL)


def _isinf(x):
    x = strong(_one("isinf", x))
    kind = dtypes.KIND[x.dtype]
    if kind == "c":
        return lax.bitwise_or(_isinf(lax.real(x)), _isinf(lax.imag(x)))
    return lax.eq(lax.abs(x), like(x, np.inf)) if kind == "f" else lax.full_like(x, False, dtypes.BOOL)


isnan = document_unary(
    unary("isnan", np.isnan, _isnan),
    "Whether each element is NaN.",
    "bool",
    "jnp.isnan(jnp.array([1.0, jnp.nan]))",
    "Array([False,  True], dtype=bool)",
)
isfinite = document_unary(
    unary("isfinite", np.isfinite, _isfinite),
    "Whether each element is neither infinite nor NaN.",
    "bool",
    "jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))",
    "Array([ True, False, False], dtype=bool)",
)
isinf = document_unary(
    unary("isinf", np.isinf, _isinf, weak=False),
    "Whether each element is infinite.",
    "bool",
    "jnp.isinf(jnp.array([1.0, -jnp.inf]))",
    "Array([False,  True], dtype=bool)",
)


def _is_infinity(name, value, x, out):
    refuse_out(name, out)
    x = strong(_one(name, x))
    if dtypes.is_complex(x.dtype):
        raise ValueError("isposinf/isneginf are not well defined for complex types")
    if not dtypes.is_floating(x.dtype):
        return lax.full_like(x, False, dtypes.BOOL)
    return lax.eq(x, like(x, value))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is positive infinity.

    Arguments:
      x: an array of any shape, or a scalar; not complex.
      out: not supported; arrays are immutable.
    Returns:
      An array of booleans of the shape of ``x``.
    Raises:
      ValueError: ``x`` is complex.

    >>> import catena.numpy as jnp
    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf, 1.0]))
    Array([ True, False, False], dtype=bool)
    """
    return _is_infinity("isposinf", np.inf, x, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether each element is negative infinity.

    Arguments:
      x: an array of any shape, or a scalar; not complex.
      out: not supported; arrays are immutable.
    Returns:
      An array of booleans of the shape of ``x``.
    Raises:
      ValueError: ``x`` is complex.

    >>> import catena.numpy as jnp
    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf, 1.0]))
    Array([False,  True, False], dtype=bool)
    """
    return _is_infinity("isneginf", -np.inf, x, out)


def _iscomplex(x):
    x = _one("iscomplex", x)
    if dtypes.is_complex(x.dtype):
        return lax.ne(lax.imag(x), like(lax.imag(x), 0))
    return _constant_truth(x, False)


def _constant_truth(x, value):
    """A bool in the shape of ``x``, weak where ``x`` is a weak number."""
    return convert(lax.full_like(strong(x), value, dtypes.BOOL), dtypes.BOOL, x.weak_type and not x.ndim)


def _isreal(x):
    x = _one("isreal", x)
    if dtypes.is_complex(x.dtype):
        return lax.eq(lax.imag(x), like(lax.imag(x), 0))
    return _constant_truth(x, True)


iscomplex = document_unary(
    positional_or_keyword("iscomplex", whole(_iscomplex, "elementwise")),
    "Whether each element has an imaginary part other than zero.",
    "bool",
    "jnp.iscomplex(jnp.array([1 + 0j, 1j]))",
    "Array([False,  True], dtype=bool)",
)
isreal = document_unary(
    positional_or_keyword("isreal", whole(_isreal, "elementwise")),
    "Whether each element has no imaginary part other than zero.",
    "bool",
    "jnp.isreal(jnp.array([1 + 0j, 1j]))",
    "Array([ True, False], dtype=bool)",
)

# ---- near and equal arrays


@whole
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether elements of ``a`` and ``b`` differ by at most ``atol + rtol * abs(b)``.

    Arguments:
      a, b: arrays or scalars, of shapes that broadcast together.
      rtol, atol: the relative and absolute tolerance, arrays or scalars.
      equal_nan: whether NaN counts as close to NaN.
    Returns:
      An array of booleans of the broadcast shape.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the shapes do not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    if (near := _closeness(a, b, rtol, atol, equal_nan)) is not None:  # the hot path
        return make_array(near)
    a, b = operands("isclose", a, b)
    a, b = broadcast_together("isclose", [strong(x) for x in promote("isclose", a, b)])
    if not dtypes.is_inexact(a.dtype):
        if dtypes.is_extended(a.dtype):  # keys, which have no distance: near is equal
            return lax.eq(a, b)
        a, b = (convert(x, dtypes.to_inexact_dtype(x.dtype)) for x in (a, b))
    return _close(a, b, rtol, atol, equal_nan)


def _closeness(a, b, rtol, atol, equal_nan) -> np.ndarray | None:
    """The same of concrete arrays of one shape and one common dtype; None for all else."""
    found = concrete_values(REAL, a, b)
    if not found or not type(rtol) is type(atol) is float or not (rtol >= 0 <= atol):
        return None
    a, b = found
    shape = a.shape
    if shape != b.shape:
        return None
    tolerances = _tolerances(rtol, atol, a.dtype)
    if len(shape) == 1:
        return quiet.run(_close_values, a, b, *tolerances, equal_nan)
    return quiet.run(_close_values, a.reshape(-1), b.reshape(-1), *tolerances, equal_nan).reshape(shape)


def _close_values(a, b, rtol, atol, equal_nan) -> np.ndarray:
    """The same of NumPy vectors. An infinite ``b`` is close to what equals it."""
    distance, bound = a - b, b * rtol
    np.absolute(distance, distance)
    np.absolute(bound, bound)
    np.add(bound, atol, bound)
    near = distance <= bound
    if not math.isfinite(bound.dot(bound)):  # else no bound is infinite, which is all that needs more care
        near &= np.isfinite(b)
        near |= a == b
    if equal_nan:
        near |= np.isnan(a) & np.isnan(b)
    return near


@functools.lru_cache(64)
def _tolerances(rtol: float, atol: float, dtype) -> tuple:
    """Tolerances as arrays: NumPy adds them in half the time of Python numbers."""
    return quiet.run(np.array, rtol, dtype), quiet.run(np.array, atol, dtype)


def _close(a, b, rtol, atol, equal_nan):
    real = dtypes.to_real_dtype(a.dtype)
    rtol, atol = (convert(as_operand("isclose", t, i), real) for i, t in ((2, rtol), (3, atol)))
    distance, bound = lax.abs(lax.sub(a, b)), lax.add(atol, lax.mul(rtol, lax.abs(b)))
    near = lax.bitwise_and(isfinite(b), lax.le(distance, bound))
    close = lax.bitwise_or(lax.eq(a, b), near)
    if not equal_nan:
        return close
    return lax.bitwise_or(close, lax.bitwise_and(lax.ne(a, a), lax.ne(b, b)))


def every(x):
    """Whether all elements of an array of booleans are true."""
    if direct(x):
        return make_array(np.logical_and.reduce(x._value, None, out=...))
    return lax.reduce_and(x, tuple(range(x.ndim)))


@whole
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements of ``a`` and ``b`` differ by at most ``atol + rtol * abs(b)``.

    Arguments:
      a, b: arrays or scalars, of shapes that broadcast together.
      rtol, atol: the relative and absolute tolerance, arrays or scalars.
      equal_nan: whether NaN counts as close to NaN.
    Returns:
      A 0-d array, bool.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the shapes do not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1]))
    Array(False, dtype=bool)
    """
    if (near := _closeness(a, b, rtol, atol, equal_nan)) is not None:  # the hot path
        return make_array(np.array(np.count_nonzero(near) == near.size))
    return every(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements.

    Arguments:
      a1, a2: what ``asarray`` takes.
      equal_nan: whether NaN counts as equal to NaN.
    Returns:
      A 0-d array, bool.
    Raises:
      TypeError: an argument is nothing of which an array can be made.

    >>> import catena.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), jnp.array([0, 1, 2]))
    Array(True, dtype=bool)
    """
    a1, a2 = as_array_or_list("array_equal", a1), as_array_or_list("array_equal", a2)
    if a1.shape != a2.shape:
        return make_array(np.array(False))
    if not equal_nan and (found := concrete_values(_COMPARED, a1, a2)):  # the hot path
        return make_array(np.logical_and.reduce(found[0] == found[1], None, out=...))
    a1, a2 = promote("array_equal", strong(a1), strong(a2))
    same = lax.eq(a1, a2)
    if equal_nan:
        same = lax.bitwise_or(same, lax.bitwise_and(lax.ne(a1, a1), lax.ne(a2, a2)))
    return every(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast together and then have equal elements.

    Arguments:
      a1, a2: what ``asarray`` takes.
    Returns:
      A 0-d array, bool.
    Raises:
      TypeError: an argument is nothing of which an array can be made.

    >>> import catena.numpy as jnp
    >>> jnp.array_equiv(jnp.ones(2), jnp.ones((3, 2)))
    Array(True, dtype=bool)
    """
    a1, a2 = as_array_or_list("array_equiv", a1), as_array_or_list("array_equiv", a2)
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return make_array(np.array(False))
    return every(strong(equal(*spread_together("array_equiv", [a1, a2]))))


# ---- questions about values, answered in Python


def iscomplexobj(x: ArrayLike) -> bool:
    """Whether the dtype of ``x`` is complex.

    Arguments:
      x: an array, what stands for one (``ShapeDtypeStruct``), a scalar, or a type of scalars (``jnp.float32``); None,
        strings and arrays of objects are not complex.
    Returns:
      A Python bool.
    Raises:
      TypeError: ``x`` is none of these.

    >>> import catena.numpy as jnp
    >>> jnp.iscomplexobj(jnp.array(1j))
    True
    """
    if type(x) is Array:
        return dtypes.is_complex(x.dtype)
    if x is None or isinstance(x, str) or (isinstance(x, np.ndarray) and x.dtype.kind == "O"):
        return False  # no number at all, as NumPy says
    if isinstance(x, ShapeDtypeStruct | ScalarType):
        return dtypes.is_complex(x.dtype)
    return dtypes.is_complex(dtype_of(as_array_or_list("iscomplexobj", x))[0])


def isrealobj(x: ArrayLike) -> bool:
    """Whether the dtype of ``x`` is not complex.

    Arguments:
      x: an array or a scalar.
    Returns:
      A Python bool.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.isrealobj(jnp.array(1j))
    False
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a scalar: a Python or NumPy scalar, a string, or an array without axes, NumPy's too.

    Arguments:
      element: any object.
    Returns:
      A Python bool.

    >>> import catena.numpy as jnp
    >>> jnp.isscalar(3.0), jnp.isscalar(jnp.ones(1))
    (True, False)
    """
    kind = type(element)
    if kind in dtypes.python_scalar_dtypes:
        return True
    if getattr(kind, "_is_array", False) or hasattr(kind, "__jax_array__") or takes_part(kind):
        return as_array_argument("isscalar", element).ndim == 0
    return np.isscalar(element) or isinstance(element, np.ndarray) and element.ndim == 0
