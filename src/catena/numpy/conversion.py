"""Making arrays of what the user has: ``array``, ``asarray``, ``astype``, ``copy``, buffers, DLPack.

These are the functions that take lists. A list of concrete values becomes one NumPy array of the dtype that
all its leaves promote to; a list with traced values in it is concatenated in the traced program. NumPy arrays
are always copied, because their owner could write to them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from catena import lax
from catena.core import casts, dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.errors import KeyCastError
from catena.core.primal_tangent import PrimalTangentDType
from catena.core.scalar_types import ScalarType
from catena.core.shapes import MOST_AXES
from catena.numpy.boundary import (
    SCALARS,
    as_array_argument,
    as_operand,
    convert,
    not_numeric,
    numpy_array,
    owned_copy,
    scalar_array,
    user_dtype,
)
from catena.numpy.placement import placed
from catena.numpy.protocol import takes_part
from catena.runtime import dlpack
from catena.typing import ArrayLike, DTypeLike

_PYTHON_NUMBERS = (bool, int, float, complex)
_OF_NUMPY = ("__array__", "__array_interface__", "__array_struct__")  # images of Pillow have the second alone


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """A new array of numbers, of (nested) lists of numbers and arrays, or of another array.

    Arguments:
      object: a scalar, an array of any library that NumPy can read, a list or tuple of such, nested to equal
        depth, or an object with ``__jax_array__``.
      dtype: the dtype of the result; by default the one that the elements promote to. A Python scalar without
        a dtype gives a weak array.
      *args: deprecated: ``copy``, ``order`` and ``ndmin`` by position.
      copy: whether an Array is copied too; other objects always are.
      order: only "K" and None; arrays have no memory order that a program could see.
      ndmin: the least number of axes; axes of size 1 are put in front.
      device: the device to put the result on; None for the default one.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      An array.
    Raises:
      TypeError: ``object`` holds something that is not a number.
      ValueError: the lists are ragged or hold None.
      OverflowError: a Python integer is too large for the dtype.

    >>> import catena.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if args:
        copy, order, ndmin = _positional(args, copy, order, ndmin)
    if order not in (None, "K"):
        raise NotImplementedError("Only implemented for order='K'")
    dtype = user_dtype(dtype, "array")
    result = from_object(object, dtype)
    if copy and result is object:
        result = _copied(result)
    if result.ndim < ndmin:
        result = lax.expand_dims(result, tuple(range(ndmin - result.ndim)))
    return _placed_if_new(result, object, device, out_sharding)


def _placed_if_new(result, source, device, out_sharding=None):
    """An array where it was asked for; the user's own one is no value of the program that is being traced."""
    if result is source and device is out_sharding is None and context.trace is not None:
        return result
    return placed(result, device, out_sharding)


def _positional(args: tuple, copy, order, ndmin) -> tuple:
    """The options that older programs pass by position."""
    if len(args) > 3:
        raise TypeError(f"array() takes from 1 to 5 positional arguments but {len(args) + 2} were given")
    warnings.warn(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. Use keywords instead.",
        DeprecationWarning,
        stacklevel=dtypes.levels_to_user(),
    )
    return (*args, *(copy, order, ndmin)[len(args) :])


def from_object(x, dtype=None):
    """``x`` as an Array or traced value, of ``dtype`` where one is given; Arrays of it already are not copied."""
    kind = type(x)
    if kind in SCALARS:
        return _from_scalar(x, dtype)
    if getattr(kind, "_is_array", False):
        return x if dtype is None else convert(x, dtype)
    if isinstance(x, np.ndarray | np.generic):
        return _from_numpy(x, dtype)
    if isinstance(x, list | tuple):
        return _from_sequence(x, dtype)
    return _from_other(x, dtype)


def _from_scalar(x, dtype):
    return scalar_array(x) if dtype is None else make_array(_as_dtype(x, dtype))


def _as_dtype(x, dtype) -> np.ndarray:
    """Python scalars, or lists of them, as a NumPy array of ``dtype``; what does not fit raises."""
    if dtypes.KIND.get(dtype) in ("i", "u") and dtype.kind == "V":  # narrow ints, which NumPy would wrap
        return casts.convert(np.array(x, "int8" if dtypes.KIND[dtype] == "i" else "uint8"), dtype)
    return np.array(x, dtype)


def _from_numpy(x, dtype):
    if dtype is None or dtype == dtypes.float0 or dtypes.is_extended(dtype):
        return numpy_array(x)
    if x.dtype in dtypes.KIND:
        return make_array(owned_copy(x, dtype))
    if x.dtype.kind in "SU":
        return make_array(np.array(x, dtype))
    return convert(numpy_array(x), dtype)


def _from_other(x, dtype):
    """An object that is none of the known kinds but can be converted."""
    if x is None:
        raise ValueError("None is not a valid value for jnp.array: it takes numbers, arrays and sequences of them")
    if hasattr(x, "__jax_array__") and not isinstance(x, type):
        return from_object(x.__jax_array__(), dtype)
    if isinstance(x, _PYTHON_NUMBERS):
        return convert(as_operand("array", x), dtype) if dtype else as_array_argument("array", x)
    if any(hasattr(x, name) for name in _OF_NUMPY) and not isinstance(x, type):
        return _from_numpy(np.asarray(x), dtype)
    if isinstance(x, range):
        return _from_sequence(list(x), dtype)
    if isinstance(x, str | bytes):
        if dtype is None:
            raise not_numeric(x, np.asarray(x).dtype)
        return make_array(np.array(x, dtype))  # a number as text, as NumPy reads it where a dtype is asked for
    try:
        return _from_numpy(np.asarray(memoryview(x)), dtype)
    except TypeError:
        raise not_numeric(x, np.dtype(object)) from None


_READ = frozenset([*SCALARS, str, bytes, np.str_, np.bytes_])  # what NumPy makes numbers of


def _from_sequence(x, dtype):
    leaves = list(_leaves(x))
    kinds = set(map(type, leaves))
    if kinds <= SCALARS:
        return make_array(_as_dtype(x, dtype or _leaf_dtype(kinds)))
    if dtype is not None and kinds <= _READ:
        return make_array(np.array(x, dtype))
    leaves = [_checked_leaf(leaf) for leaf in leaves]
    if dtype is None:
        dtype = dtypes.lattice_result_type(*leaves)[0]
    return _assemble(x, iter(leaves), dtype)


def as_array_or_list(name: str, x):
    """``asarray`` of an argument that may be a list; a class that takes part is asked first."""
    return as_array_argument(name, x) if takes_part(type(x)) else from_object(x)


def _leaf_dtype(kinds: set):
    """The dtype of a list of Python scalars of these types; of an empty list, the default float."""
    pairs = [dtypes.python_scalar_dtype(kind) for kind in kinds or {float}]
    return dtypes.promote(*pairs)[0]


def _leaves(x, depth: int = 1):
    """The elements of nested lists; ValueError where they are nested deeper than an array can be, or without end."""
    if depth > MOST_AXES:
        raise ValueError(f"arrays have at most {MOST_AXES} axes, but these lists are nested deeper")
    for item in x:
        if isinstance(item, list | tuple):
            yield from _leaves(item, depth + 1)
        else:
            yield item


def _checked_leaf(leaf):
    """A leaf of a list, as a Python scalar, an Array or a traced value."""
    return leaf if type(leaf) in SCALARS else from_object(leaf)


def _assemble(x, leaves, dtype):
    """The nested list ``x``, whose leaves come in order from ``leaves``, as one array of ``dtype``."""
    if not isinstance(x, list | tuple):
        leaf = next(leaves)
        return make_array(_as_dtype(leaf, dtype)) if type(leaf) in SCALARS else convert(leaf, dtype)
    parts = [_assemble(item, leaves, dtype) for item in x]
    if not parts:
        return make_array(np.zeros((0,), dtype))
    if all(type(p) is Array for p in parts) and context.trace is None and len({p.shape for p in parts}) == 1:
        return make_array(np.stack([p._value for p in parts]))
    return lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)


def _copied(x):
    """A copy of an Array, or an equation that copies a traced value."""
    if type(x) is Array and context.trace is None:
        return make_array(x._value.copy(), x.weak_type)
    return lax.copy_p.bind(x)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """What ``array`` makes of ``a``, without copying an Array that is it already.

    Arguments:
      a: what ``array`` takes.
      dtype: the dtype of the result; by default the one that the elements promote to.
      order: only "K" and None; arrays have no memory order that a program could see.
      copy: True to copy an Array too.
      device: the device to put the result on; None for the default one.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      An array; ``a`` itself where it is an Array of the dtype asked for.
    Raises:
      TypeError: ``a`` holds something that is not a number.
      ValueError: the lists are ragged or hold None.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(3)
    >>> jnp.asarray(x) is x
    True
    """
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array.

    Arguments:
      a: an array or a scalar.
      order: only "K" and None; arrays have no memory order that a program could see.
    Returns:
      A new array, equal to ``a``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    return array(as_array_argument("copy", a), order=order)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None) -> Array:
    """``x`` cast to ``dtype``: floats to integers towards zero and within range, integers by their low bits.

    Arguments:
      x: an array or a scalar.
      dtype: the dtype of the result; None for the default float.
      copy: whether to copy an array that has the dtype already.
      device: the device to put the result on; None for the default one.
    Returns:
      An array of the shape of ``x``.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      ValueError: one of the dtypes is that of random keys and the other is not.

    >>> import catena.numpy as jnp
    >>> jnp.astype(jnp.array([1.9, -1.9, jnp.nan]), "int32")
    Array([ 1, -1,  0], dtype=int32)
    """
    source = x
    x = as_array_argument("astype", x)
    dtype = dtypes.canonical(np.dtype("float64")) if dtype is None else user_dtype(dtype, "astype")
    extended = dtypes.is_extended(x.dtype)
    if dtypes.is_extended(dtype) != extended and PrimalTangentDType not in (type(dtype), type(x.dtype)):
        error = KeyCastError if extended else ValueError
        raise error(f"Cannot convert_element_type from {dtypes.dtype_name(x.dtype)} to {dtypes.dtype_name(dtype)}")
    result = _cast(x, dtype)
    return _placed_if_new(_copied(result) if copy and result is source else result, source, device)


def _cast(x, dtype):
    if x.dtype == dtype and not x.weak_type:
        return x
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        if dtype == dtypes.BOOL:
            return lax.ne(x, make_array(np.zeros((), x.dtype)))
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag "
            "to take the real/imaginary component of your input.",
            DeprecationWarning,
            stacklevel=dtypes.levels_to_user(),
        )
    return convert(x, dtype)


# ---- buffers, strings, other libraries


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the bytes of a buffer.

    Arguments:
      buffer: bytes, or any object with the buffer protocol.
      dtype: the dtype of the elements in the buffer.
      count: how many elements to read; -1 for all.
      offset: the byte at which to start.
    Returns:
      An array with one axis.
    Raises:
      ValueError: the buffer is too short, or its size is no multiple of that of an element.

    >>> import catena.numpy as jnp
    >>> jnp.frombuffer(b"abc", dtype="uint8")
    Array([97, 98, 99], dtype=uint8)
    """
    return placed(numpy_array(np.frombuffer(buffer, dtype=dtypes.as_dtype(dtype), count=count, offset=offset)))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a string.

    Arguments:
      string: numbers as text.
      dtype: the dtype of the result.
      count: how many numbers to read; -1 for all.
      sep: what separates the numbers.
    Returns:
      An array with one axis.
    Raises:
      ValueError: the text holds something other than numbers.

    >>> import catena.numpy as jnp
    >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
    Array([1, 2, 3], dtype=int32)
    """
    return placed(numpy_array(np.fromstring(string, dtype=dtypes.as_dtype(dtype), count=count, sep=sep)))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the values of another library's array, by the DLPack protocol.

    Arguments:
      x: an object with ``__dlpack__`` and ``__dlpack_device__``, on the CPU.
      device: the device to put the result on; None for the default one.
      copy: False to share memory or raise, True to copy; None shares the memory of other libraries, which must not
        write to it any more, and copies NumPy arrays that can be written to and dtypes that arrays cannot have.
    Returns:
      An array of the shape and (canonical) dtype of ``x``.
    Raises:
      TypeError: ``x`` does not have the protocol.
      BufferError: ``x`` is not on the CPU.
      ValueError: ``copy`` is False and memory cannot be shared safely.

    >>> import catena.numpy as jnp
    >>> import numpy as np
    >>> jnp.from_dlpack(np.arange(3.0, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    """
    return placed(dlpack.from_dlpack(x, copy), device)


def _impure(name: str) -> Callable:
    def refuse(*args: Any, **kwargs: Any) -> Array:
        raise NotImplementedError(
            f"jnp.{name}() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
            f"transformations. Consider using jnp.asarray(np.{name}(...)) instead, outside of transformed functions."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = _REFUSED.format(name=name)
    return refuse


_REFUSED = """Refused: NumPy's function reads from outside the program, which pure functions cannot.

    Arguments:
      *args, **kwargs: those of ``np.{name}``.
    Returns:
      Nothing.
    Raises:
      NotImplementedError: always; use ``jnp.asarray(np.{name}(...))`` outside of transformed functions.

    >>> import catena.numpy as jnp
    >>> jnp.{name}()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    NotImplementedError: jnp.{name}() is not implemented because it may be non-pure ...
    """


fromfile = _impure("fromfile")
fromiter = _impure("fromiter")


def _make_scalar(x, dtype) -> Array:
    """What calling a scalar type such as ``jnp.float32`` does."""
    return array(x, user_dtype(dtype, dtype.name))


ScalarType.make_array = staticmethod(_make_scalar)
