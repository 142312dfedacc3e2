"""Makers of elementwise functions with a fast path.

Most calls in a program are on concrete arrays of the common dtypes. Such a call is one call of a NumPy ufunc and one
new Array: the functions made here test for it first and do it at once (0.6 us for ``sin``, 0.7 us for ``x + y``,
where the general path takes about 3 us). Everything else, traced values, promotion of dtypes, errors,
debugging checks, large arrays, goes to the general function, which defines the meaning; the fast path must give the
same dtype, weakness and value. So the ufunc is NumPy's where that computes exactly, and elsewhere a loop of our own,
which has the arithmetic of compiled programs (``lax/native.py``).

``out=...`` makes a NumPy ufunc return 0-d arrays instead of scalars.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import Array, as_array, make_array, scalar_value
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.core.lazy import has_compiler
from catena.core.named import NamedTuple
from catena.core.trace import Tracer
from catena.core.traceback import shorten
from catena.lax import native
from catena.lax.policy import CONVERTED, ELEMENTWISE, HALVES, INTEGERS, PROGRAMMED, SHARED, SPREAD
from catena.lax.whole import whole
from catena.numpy.boundary import SCALARS, scalar_array
from catena.numpy.protocol import Overridden, answer, has_operator, present_as, takes_part
from catena.typing import ArrayLike

Fun = TypeVar("Fun", bound=Callable[..., Any])


class Unary(Protocol):
    """A function of one array, given by position."""

    __name__: str
    __module__: str

    def __call__(self, x: ArrayLike, /) -> Array: ...


class NamedUnary(Protocol):
    """A function of one array, by position or name."""

    def __call__(self, x: ArrayLike) -> Array: ...


class Binary(Protocol):
    """A function of two arrays, given by position."""

    __name__: str
    __module__: str

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


class NamedBinary(Protocol):
    """A function of two arrays, by position or name."""

    def __call__(self, x1: ArrayLike, x2: ArrayLike) -> Array: ...


F32, F64 = np.dtype("float32"), np.dtype("float64")
I32, I64 = np.dtype("int32"), np.dtype("int64")
C64, C128 = np.dtype("complex64"), np.dtype("complex128")
BOOL = np.dtype("bool")

REAL = frozenset({F32, F64})
REAL_OR_INT = frozenset({F32, F64, I32, I64})
NUMBER = frozenset({F32, F64, I32, I64, C64, C128})
INT = frozenset({I32, I64})
BITS = frozenset({I32, I64, BOOL})
REAL_OR_INTEGER, NUMBER_OR_INTEGER = REAL | INTEGERS, NUMBER | INTEGERS
_JOINED = REAL_OR_INT | {BOOL}  # what they promote to, NumPy casts as we do
SCALAR_KINDS = frozenset({int, float})
LARGE, LARGE_OF_TWO = 1 << 18, SHARED // 2  # bytes from which on `lax` is quicker, with threads and compiled kernels
MANY_HALVES = 1 << 18  # elements of two operands, likewise
NONE = frozenset()


WEAK_NUMBER = "weak number"  # what is weak where it has no axes: constants of the function make other results strong
OWN = object()  # instead of a primitive: the loop of a function itself


def is_own(how) -> bool:
    """Whether dtypes are computed by the loop of a function itself: it has several operations, or would need none."""
    return how is OWN or (type(how) is tuple and how[1] is OWN)


def by_dtype(name: str, how, general, fast, arity: int) -> dict:
    """The ufuncs that compute the dtypes in ``fast`` at once, and halves where a primitive has loops for them.

    ``how`` is NumPy's function; the name of a primitive, whose loops they are; ``OWN``, for the loops of the function
    ``general`` itself; or a pair of NumPy's function, for the dtypes that it computes exactly, and one of the others.
    """
    if not fast:
        return {}
    exact, how = how if type(how) is tuple else (how, None) if callable(how) else (None, how)
    if arity == 1 and type(how) is str:
        fast = fast | (ELEMENTWISE[how].loop & HALVES)
    of_halves = {d: _of_halves(native.LOOPS[_PRIMITIVES[exact]], d) for d in HALVES} if _has_halves(exact) else {}
    if how is None:
        return dict.fromkeys(fast, exact) | of_halves
    if how is OWN and not has_compiler():  # ``general`` evaluates them step by step
        return dict.fromkeys(fast & INTEGERS, exact) if exact else {}
    loops = native.Loops(name, general, arity) if how is OWN else native.LOOPS[how]
    compiled = fast & (NUMBER - INT if how is OWN else ELEMENTWISE[how].loop)
    table = dict.fromkeys(fast, exact) | of_halves
    for dtype in compiled:
        table[dtype] = _made_when_called(table, loops, dtype)
    return table


# NumPy's functions that compute halves element by element, and the primitives whose loops are taken in their place.
_PRIMITIVES = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.equal: "eq", np.not_equal: "ne",
    np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge", np.maximum: "max", np.minimum: "min",
}  # fmt: skip


def _has_halves(exact) -> bool:
    return type(exact) is np.ufunc and exact in _PRIMITIVES and has_compiler()


def _of_halves(loops, dtype):
    """The function of two arrays of ``dtype``, or one and a Python number.

    Arrays of so many elements that threads share them are not for it.
    """

    def fun(x, y, out):
        if type(y) is not np.ndarray:
            y = casts.convert(scalar_value(y), dtype)
        elif type(x) is not np.ndarray:
            x = casts.convert(scalar_value(x), dtype)
        if x.size + y.size > MANY_HALVES:
            raise ValueError("a program computes these")
        return loops[dtype](x, y, out=out)

    return fun


def _made_when_called(table: dict, loops, dtype):
    """What stands in the table until the loop is first called."""

    def first(*xs, out):
        loop = table[dtype] = loops[dtype]
        return loop(*xs, out=out)

    return first


def unary(name: str, how, general, fast=REAL, weak: bool | str = True, inexact: bool = False) -> Unary:
    """The function ``name`` of one array: at once for the dtypes in ``fast`` (see ``by_dtype``), else ``general``.

    ``weak`` says whether a weak argument gives a weak result, or `WEAK_NUMBER`; ``inexact`` whether integers and
    booleans become floats first, so that NumPy may be asked about them and about Python floats too.
    """

    def fun(x: ArrayLike, /) -> Array:
        if type(x) is Array and context.trace is None and not context.debug_checks:
            value = x._value
            ufunc = ufuncs.get(value.dtype)
            if ufunc is not None and value.nbytes < LARGE:
                return make_array(quiet.run(ufunc, value, out=...), x._weak and weak_of[value.ndim > 0])
            if inexact and ufuncs and value.dtype in BITS and value.size < CONVERTED:
                value = value.astype(dtypes.to_inexact_dtype(value.dtype))
                return make_array(quiet.run(ufuncs[value.dtype], value, out=...), x._weak and weak_of[value.ndim > 0])
        elif inexact and ufuncs and type(x) is float and context.trace is None and not context.debug_checks:
            value = quiet.run(np.array, x, dtypes.canonical(F64))
            return make_array(quiet.run(ufuncs[value.dtype], value, out=...), weak_of[0])
        try:
            return program(x) if is_for_program(x) else general(x)
        except Overridden as error:
            reason = error
        except Exception as error:
            shorten(error)
            raise
        return answer(reason, fun, (x,), {})

    ufuncs = by_dtype(name, how, general, fast, 1)
    weak_of = bool(weak), weak is True
    program = whole(general, "elementwise")
    general = program if is_own(how) else general
    fun.__name__ = fun.__qualname__ = name
    return present_as(fun, fun)


def binary(
    name: str, how, general, fast=NUMBER, weak: bool | str = True, scalars=SCALAR_KINDS, inexact: bool = False
) -> Binary:
    """The function ``name`` of two arrays: at once where both have one dtype in ``fast`` (see ``by_dtype``).

    One may be a Python scalar of the types in ``scalars``; where that are all, the operands may also promote to a
    dtype in ``fast`` (by way of the float dtype for integers, if ``inexact``).
    """
    joins = bool(fast) and scalars == SCALAR_KINDS
    weak_of = bool(weak), weak is True

    def fun(x: ArrayLike, y: ArrayLike, /) -> Array:
        if context.trace is None and not context.debug_checks:
            if type(x) is Array:
                a = x._value
                if type(y) is Array:
                    b = y._value
                    if a.dtype is b.dtype and a.dtype in fast and a.nbytes < LARGE_OF_TWO and are_for_numpy(a, b):
                        try:
                            value = quiet.run(ufuncs[a.dtype], a, b, out=...)
                            return make_array(value, x._weak and y._weak and weak_of[value.ndim > 0])
                        except (ValueError, TypeError):  # the general path says what is wrong
                            pass
                elif a.dtype in fast and type(y) in scalars and a.nbytes < LARGE_OF_TWO and fits(a, type(y), y):
                    try:
                        return make_array(quiet.run(ufuncs[a.dtype], a, y, out=...), x._weak and weak_of[a.ndim > 0])
                    except ValueError:
                        pass
            elif (
                type(y) is Array
                and type(x) in scalars
                and (b := y._value).dtype in fast
                and b.nbytes < LARGE_OF_TWO
                and fits(b, type(x), x)
            ):
                try:
                    return make_array(quiet.run(ufuncs[b.dtype], x, b, out=...), y._weak and weak_of[b.ndim > 0])
                except ValueError:
                    pass
            if joins and (joined := joined_values(x, y, fast, inexact)) and not joined[2]:
                try:
                    return make_array(quiet.run(ufuncs[joined[0].dtype], *joined[:2], out=...))
                except (ValueError, TypeError):
                    pass
            if joins and (is_numpys_scalar(x) or is_numpys_scalar(y)):  # others look at numbers: powers, at exponents
                return fun(*[as_array(z) if is_numpys_scalar(z) else z for z in (x, y)])
        try:
            if are_for_program(x, y):
                return program(*(scalar_array(z) if type(z) is complex else z for z in (x, y)))
            return general(x, y)
        except Overridden as error:
            reason = error
        except Exception as error:
            shorten(error)
            raise
        return answer(reason, fun, (x, y), {})

    ufuncs = by_dtype(name, how, general, fast, 2)
    program = whole(general, "elementwise")
    general = program if is_own(how) else general
    fast = ufuncs.keys()
    fun.__name__ = fun.__qualname__ = name
    return present_as(fun, fun)


def is_numpys_scalar(x) -> bool:
    """Whether this is a number of NumPy's, which is an array without axes here."""
    return isinstance(x, np.generic) and x.dtype in dtypes.KIND


def are_long(*values) -> bool:
    """Whether NumPy values are so long that what NumPy goes over several times, or row by row, is quicker as one
    program, once it comes again. A program would copy those with gaps first.
    """
    long = [v for v in values if v.size >= PROGRAMMED]
    return bool(long) and all([v.flags.c_contiguous for v in long])


def is_for_program(x) -> bool:
    """Whether an argument that has no fast path is so long that one program, once it comes again, is quicker than
    operations that convert, spread and compute one after the other. On the hot path.
    """
    if type(x) is not Array or x._value.size < PROGRAMMED or context.trace is not None:
        return False
    return x._value.flags.c_contiguous or x._value.nbytes >= LARGE


def are_for_program(x, y) -> bool:
    """Likewise, of two arguments of which one may be a number. On the hot path."""
    a = x._value if type(x) is Array else None
    b = y._value if type(y) is Array else None
    if (a is None or a.size < PROGRAMMED) and (b is None or b.size < PROGRAMMED) or context.trace is not None:
        return False
    if isinstance(x, np.generic) or isinstance(y, np.generic):  # what is done hangs on their values
        return False
    values = [v for v in (a, b) if v is not None]
    return sum([v.nbytes for v in values]) >= LARGE or are_long(*values)


def nonzero_divisors(numpy_fun):
    """``numpy_fun``, a division, refusing integer divisors of zero, by which JAX divides differently, and many."""

    def divide(x, y, out):
        kind = type(y)
        if kind is int or kind is float:  # an array of its final type is divided by in half the time
            y = np.array(y, x.dtype)
        elif type(x) is not np.ndarray:
            x = np.array(x, y.dtype)
        if y.dtype in INTEGERS and (y.size >= PROGRAMMED and y.flags.c_contiguous or not y.all()):
            raise ValueError("an integer divisor is zero, or there are so many that a program is quicker")
        return numpy_fun(x, y, out=out)

    return divide


def second_names(fun: Fun) -> Fun:
    """``fun`` of two arrays with its parameters called ``x1`` and ``x2``, as many of them are."""
    if fun.__code__ not in _renamed:
        signature = inspect.signature(fun)
        parameters = [p.replace(name=new) for p, new in zip(signature.parameters.values(), ("x1", "x2"))]
        _renamed[fun.__code__] = signature.replace(parameters=parameters)
    fun.__signature__ = _renamed[fun.__code__]
    return fun


def by_keyword(fun) -> NamedBinary:
    """``fun`` of two arrays, that users may give by their names ``x1`` and ``x2`` too."""

    def named(x1: ArrayLike, x2: ArrayLike) -> Array:
        try:
            return fun(x1, x2)
        except Exception as error:
            shorten(error)
            raise

    named.__name__ = named.__qualname__ = fun.__name__
    present_as(fun, named)
    return present_as(named, named)


_renamed: dict = {}  # signatures by code: all functions that `binary` makes share one, which takes long to make


def positional_or_keyword(name: str, general) -> NamedUnary:
    """The function ``name`` of one array ``x`` that may be given by keyword, without a fast path."""

    def fun(x: ArrayLike) -> Array:
        return general(x)

    fun.__name__ = fun.__qualname__ = name
    return fun


def are_for_numpy(a, b) -> bool:
    """Whether two NumPy values may broadcast together without a word about their ranks, and NumPy is as quick as a
    program: it takes arrays of two shapes row by row.
    """
    if a.nbytes + b.nbytes >= SPREAD and a.ndim and b.ndim and a.shape != b.shape and are_long(a, b):
        return False
    return a.ndim == b.ndim or not a.ndim or not b.ndim or context.numpy_rank_promotion == "allow"


def joined_values(x, y, fast, inexact: bool):
    """Operands of different common dtypes as NumPy values of the dtype in ``fast`` that they promote to, and
    whether the result is weak; None where the general path has to see to it.
    """
    left, right = _typed(x), _typed(y)
    if left is None or right is None:
        return None
    a, dtype_a, weak_a = left
    b, dtype_b, weak_b = right
    if a.size + b.size >= CONVERTED and are_long(a, b):
        return None
    dtype, weak = dtypes.promote_pair(dtype_a, weak_a, dtype_b, weak_b)
    if inexact:
        dtype = dtypes.to_inexact_dtype(dtype)
    if dtype not in fast or (a.ndim and b.ndim and not are_for_numpy(a, b)):
        return None
    return quiet.run(a.astype, dtype, copy=False), quiet.run(b.astype, dtype, copy=False), weak


def _typed(x):
    """A small operand of a common dtype as a NumPy value with its dtype and weakness, else None."""
    if type(x) is Array:
        value = x._value
        return (value, value.dtype, x._weak) if value.dtype in _JOINED and value.nbytes < LARGE else None
    if type(x) in (float, complex) or type(x) is int and -0x80000000 <= x <= 0x7FFFFFFF:
        dtype, weak = dtypes.python_scalar_dtype(type(x))
        return quiet.run(np.array, x, dtype), dtype, weak
    return None


_USUAL = -0x80000000, 0x7FFFFFFF
_BOUNDS = {d: (max(np.iinfo(d).min, _USUAL[0]), min(np.iinfo(d).max, _USUAL[1])) for d in INTEGERS}


def fits(value, kind, scalar) -> bool:
    """Whether NumPy's result for an array and this Python scalar has the same dtype, as JAX's has; but of many halves a
    program computes it, to which a scalar is a constant.
    """
    dtype = value.dtype
    if dtype in HALVES and value.nbytes >= SPREAD:
        return False
    if kind is int:
        least, most = _BOUNDS.get(dtype, _USUAL)
        return dtype is not BOOL and least <= scalar <= most
    return kind is float and (dtype in REAL or dtype in HALVES)


class Operator(NamedTuple):
    """An infix operator: its symbol, its method's name, what it means, and its fast path (see ``binary``)."""

    symbol: str
    name: str
    fun: object
    how: object = np.positive  # of no dtype
    fast: frozenset = NONE
    inexact: bool = False

    def on_arrays(self):
        """The method of Array with the array on the left."""
        symbol, name, fun, how, fast, inexact = self
        ufuncs = by_dtype(fun.__name__, how, fun, fast, 2)
        fast = ufuncs.keys()

        def method(self, other):
            if context.trace is None and not context.debug_checks:
                a, kind = self._value, type(other)
                if kind is Array:
                    b = other._value
                    if a.dtype is b.dtype and a.dtype in fast and a.nbytes < LARGE_OF_TWO and are_for_numpy(a, b):
                        try:
                            value = quiet.run(ufuncs[a.dtype], a, b, out=...)
                            return make_array(value, self._weak and other._weak)
                        except (ValueError, TypeError):  # the general path says what is wrong
                            pass
                elif a.dtype in fast and a.nbytes < LARGE_OF_TWO and fits(a, kind, other):
                    try:
                        return make_array(quiet.run(ufuncs[a.dtype], a, other, out=...), self._weak)
                    except ValueError:
                        pass
                if fast and (joined := joined_values(self, other, fast, inexact)):
                    try:
                        return make_array(quiet.run(ufuncs[joined[0].dtype], *joined[:2], out=...), joined[2])
                    except (ValueError, TypeError):
                        pass
            try:
                return fun(self, other) if is_operand(other, name, True) else refuse(symbol, name, self, other)
            except Exception as error:
                shorten(error)
                raise

        return _named(method, f"__{name}__")

    def on_arrays_reflected(self):
        """The method of Array with the array on the right."""
        symbol, name, fun, how, fast, inexact = self
        ufuncs = by_dtype(fun.__name__, how, fun, fast, 2)
        fast = ufuncs.keys()

        def method(self, other):
            if context.trace is None and not context.debug_checks:
                b = self._value
                if b.dtype in fast and b.nbytes < LARGE_OF_TWO and fits(b, type(other), other):
                    try:
                        return make_array(quiet.run(ufuncs[b.dtype], other, b, out=...), self._weak)
                    except ValueError:
                        pass
                if fast and (joined := joined_values(other, self, fast, inexact)):
                    try:
                        return make_array(quiet.run(ufuncs[joined[0].dtype], *joined[:2], out=...), joined[2])
                    except (ValueError, TypeError):
                        pass
            try:
                return fun(other, self) if is_operand(other, name, False) else refuse(symbol, name, other, self)
            except Exception as error:
                shorten(error)
                raise

        return _named(method, f"__r{name}__")

    def on_tracers(self):
        """The method of traced values with the traced value on the left."""
        symbol, name, fun, *_ = self

        def method(self, other):
            try:
                return fun(self, other) if is_operand(other, name, True) else refuse(symbol, name, self, other)
            except Exception as error:
                shorten(error)
                raise

        return _named(method, f"__{name}__")

    def on_tracers_reflected(self):
        """The method of traced values with the traced value on the right."""
        symbol, name, fun, *_ = self

        def method(self, other):
            try:
                return fun(other, self) if is_operand(other, name, False) else refuse(symbol, name, other, self)
            except Exception as error:
                shorten(error)
                raise

        return _named(method, f"__r{name}__")


def refuse(symbol: str, name: str, left, right):
    """NotImplemented, so that Python asks the other operand; but never a list, which would do something
    else, unless its class (a NamedTuple, say) defines the operator itself.
    """
    asks_right = isinstance(right, list | tuple) and not has_operator(type(right), name, True)
    if isinstance(left, list | tuple) or asks_right:
        names = f"'{type(left).__name__}' and '{type(right).__name__}'"
        raise TypeError(f"unsupported operand type(s) for {symbol}: {names}")
    return NotImplemented


def is_operand(x, name: str, reflected: bool) -> bool:
    """Whether an array's operator ``name`` takes ``x``; for others Python asks ``x``, then raises.

    An object that takes part in the array protocol and has the operator that Python asks next (the reflected
    one, if ``reflected``) is not taken: its own meaning goes first.
    """
    kind = type(x)
    if kind is Array or kind in SCALARS or isinstance(x, Tracer | np.generic) or kind is np.ndarray:
        return True
    if takes_part(kind):
        return not has_operator(kind, name, reflected)
    return (
        isinstance(x, np.ndarray | bool | int | float | complex)
        or getattr(kind, "_is_array", False)
        or hasattr(kind, "__jax_array__")
    )


def _named(method, name: str):
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method
