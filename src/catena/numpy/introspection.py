"""Questions about arrays, their text, and files: ``shape``, ``array_repr``, ``printoptions``, ``save``, ``load``."""

from __future__ import annotations

import os
import warnings
from typing import Any, BinaryIO

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.core.trace import Tracer
from catena.core.traceback import shorten
from catena.numpy.boundary import as_array_argument, canonical_axes
from catena.numpy.conversion import asarray
from catena.numpy.protocol import Overridden, answer, present_as, takes_part
from catena.numpy.reductions import Axis
from catena.typing import ArrayLike


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The lengths of the axes of an array.

    Arguments:
      a: an array or a scalar; nested lists are deprecated.
    Returns:
      A tuple of integers.

    >>> import catena.numpy as jnp
    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    if type(a) is Array:
        return a._value.shape
    try:
        return _lengths("shape", a)
    except Overridden as error:
        reason = error
    except Exception as error:
        shorten(error)
        raise
    return answer(reason, shape, (a,), {})


present_as(shape, shape)


def _lengths(name: str, a) -> tuple:
    """The shape of ``a``, without making an Array of it; a warning, in the name of the function ``name``, where it is
    neither an array nor a scalar.
    """
    if getattr(type(a), "_is_array", False):
        return a.shape
    if hasattr(type(a), "__jax_array__") or takes_part(type(a)):
        return as_array_argument("shape", a).shape
    if not hasattr(a, "shape") and not np.isscalar(a):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future JAX release this "
            "will be an error.",
            DeprecationWarning,
            stacklevel=dtypes.levels_to_user(),
        )
    return np.shape(a)


def ndim(a: ArrayLike) -> int:
    """The number of axes of an array.

    Arguments:
      a: an array or a scalar; nested lists are deprecated.
    Returns:
      An integer.

    >>> import catena.numpy as jnp
    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(_lengths("ndim", a))


def size(a: ArrayLike, axis: Axis = None) -> int:
    """The number of elements of an array, or its length along axes.

    Arguments:
      a: an array or a scalar; nested lists are deprecated.
      axis: an axis or a tuple of them; None for all.
    Returns:
      An integer.
    Raises:
      ValueError: an axis is out of bounds or given twice.

    >>> import catena.numpy as jnp
    >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
    (6, 3)
    """
    lengths = _lengths("size", a)
    result = 1
    for i in canonical_axes(axis, len(lengths)):
        result *= lengths[i]
    return result


def iterable(y: Any) -> bool:
    """Whether one can iterate over ``y``.

    Arguments:
      y: any object.
    Returns:
      A Python bool.

    >>> import catena.numpy as jnp
    >>> jnp.iterable(jnp.ones(2)), jnp.iterable(3)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text that ``repr`` gives for an array, with options.

    Arguments:
      arr: an array.
      max_line_width: where lines break.
      precision: how many digits floats have.
      suppress_small: whether numbers close to zero are written as zero.
    Returns:
      A string.

    >>> import catena.numpy as jnp
    >>> jnp.array_repr(jnp.array([0.123456789]), precision=3)
    'Array([0.123], dtype=float32)'
    """
    arr = as_array_argument("array_repr", arr)
    if isinstance(arr, Tracer):
        return repr(arr)
    options = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{k: v for k, v in options.items() if v is not None}):
        return repr(arr)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text that ``str`` gives for an array, with options.

    Arguments:
      a: an array.
      max_line_width: where lines break.
      precision: how many digits floats have.
      suppress_small: whether numbers close to zero are written as zero.
    Returns:
      A string.

    >>> import catena.numpy as jnp
    >>> jnp.array_str(jnp.array([0.123456789]), precision=3)
    '[0.123]'
    """
    a = as_array_argument("array_str", a)
    return str(a) if isinstance(a, Tracer) else np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how arrays are printed: NumPy's options, which are one with those here.

    Arguments:
      *args, **kwargs: those of ``numpy.set_printoptions``.
    Returns:
      Nothing.
    Raises:
      TypeError: there is no such option.

    >>> import catena.numpy as jnp
    >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> dict[str, Any]:
    """How arrays are printed: NumPy's options, which are one with those here.

    Returns:
      The options by name.

    >>> import catena.numpy as jnp
    >>> jnp.get_printoptions()["precision"]
    8
    """
    return np.get_printoptions()


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """A context manager within which arrays are printed with other options.

    Arguments:
      *args, **kwargs: those of ``numpy.printoptions``.
    Returns:
      The context manager.

    >>> import catena.numpy as jnp
    >>> with jnp.printoptions(precision=2):
    ...     print(jnp.array([0.12345]))
    [0.12]
    """
    return np.printoptions(*args, **kwargs)


def save(file: str | os.PathLike | BinaryIO, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's ``.npy`` format.

    Arguments:
      file: a path or a file open for writing bytes.
      arr: an array.
      allow_pickle: whether objects may be pickled; arrays of numbers never need it.
    Returns:
      Nothing.

    >>> import io
    >>> import catena.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> jnp.load(io.BytesIO(file.getvalue()))
    Array([0, 1, 2], dtype=int32)
    """
    np.save(file, np.asarray(asarray(arr)), allow_pickle=allow_pickle)


def savez(file: str | os.PathLike | BinaryIO, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Write several arrays to a file in NumPy's ``.npz`` format.

    Arguments:
      file: a path or a file open for writing bytes.
      *args, **kwds: arrays; those given by keyword have that name in the file.
      allow_pickle: whether objects may be pickled; arrays of numbers never need it.
    Returns:
      Nothing.

    >>> import io
    >>> import catena.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.savez(file, a=jnp.arange(3))
    >>> jnp.load(io.BytesIO(file.getvalue()))["a"]
    array([0, 1, 2], dtype=int32)
    """
    named = {name: np.asarray(asarray(x)) for name, x in kwds.items()}
    np.savez(file, *(np.asarray(asarray(x)) for x in args), allow_pickle=allow_pickle, **named)


def load(file: str | os.PathLike | BinaryIO, *args: Any, **kwargs: Any) -> Any:
    """Read what ``save`` or ``savez`` wrote.

    Arguments:
      file: a path or a file open for reading bytes.
      *args, **kwargs: those of ``numpy.load``.
    Returns:
      An array; for ``.npz`` files NumPy's mapping from names to NumPy arrays.
    Raises:
      ValueError: the file holds pickled objects and ``allow_pickle`` is not given.

    >>> import io
    >>> import catena.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2))
    >>> jnp.load(io.BytesIO(file.getvalue()))
    Array([1., 1.], dtype=float32)
    """
    found = np.load(file, *args, **kwargs)
    return asarray(_restored(found)) if isinstance(found, np.ndarray) else found


def _restored(value: np.ndarray) -> np.ndarray:
    """A loaded array; NumPy writes bfloat16, the only dtype of two bytes without a name there, as raw bytes."""
    if value.dtype == np.dtype("V2"):
        return value.view("bfloat16")
    return value
