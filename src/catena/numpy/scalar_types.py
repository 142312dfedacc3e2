"""Dtypes in the namespace: scalar types such as ``jnp.float32``, abstract kinds, and questions about dtypes."""

from __future__ import annotations

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.numpy.boundary import as_array_argument
from catena.numpy.protocol import takes_part
from catena.typing import ArrayLike, DTypeLike


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether values of one dtype can be cast to another.

    Arguments:
      from_: a dtype, or an array.
      to: a dtype.
      casting: which casts count: "no", "equiv", "safe", "same_kind" or "unsafe".
    Returns:
      A Python bool.
    Raises:
      TypeError: ``from_`` is a Python number, whose answer would depend on its value.

    >>> import catena.numpy as jnp
    >>> jnp.can_cast("int32", "float64"), jnp.can_cast("bfloat16", "float16")
    (True, False)
    """
    return _can_cast(from_.dtype if type(from_) is Array else from_, to, casting)


@dtypes.remembered
def _can_cast(from_, to, casting: str) -> bool:
    if isinstance(from_, int | float | complex) and not isinstance(from_, np.generic):
        raise TypeError("can_cast() does not support Python ints, floats, and complex; pass a dtype")
    if from_ is None or to is None:
        raise TypeError("can_cast() needs a dtype or an array, got None")
    from_ = _typed("can_cast", from_)
    source, target = dtypes.dtype_in_question(from_), dtypes.dtype_in_question(to)
    return bool(np.can_cast(source, target, casting=casting))


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype is another, or one of its kind.

    Arguments:
      arg1: a dtype, a scalar type or a name.
      arg2: the same, or an abstract kind such as ``jnp.floating``.
    Returns:
      A Python bool.
    Raises:
      TypeError: an argument is not a dtype.

    >>> import catena.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    return dtypes.issubdtype(arg1, arg2)


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Whether a dtype is of a kind, in the terms of the array API standard.

    Arguments:
      dtype: a dtype, a scalar type or a name.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
        "numeric"; a dtype; or a tuple of these.
    Returns:
      A Python bool.
    Raises:
      ValueError: ``kind`` is a string that names neither a kind nor a dtype.

    >>> import catena.numpy as jnp
    >>> jnp.isdtype(jnp.bfloat16, "real floating")
    True
    """
    return dtypes.isdtype(dtype, kind)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype that two dtypes promote to.

    Arguments:
      a, b: dtypes, scalar types or names; ``int``, ``float`` and ``complex`` are weak.
    Returns:
      A dtype.
    Raises:
      TypePromotionError: there is no implicit promotion.

    >>> import catena.numpy as jnp
    >>> jnp.promote_types("uint8", "int8")
    dtype('int16')
    """
    return dtypes.promote_types(a, b)


def result_type(*args: DTypeLike | ArrayLike) -> np.dtype:
    """The dtype that an operation on arrays, scalars and dtypes gives.

    Arguments:
      *args: arrays, scalars, dtypes or names; Python numbers are weak.
    Returns:
      A dtype, canonical under the flags in force.
    Raises:
      TypePromotionError: there is no implicit promotion.
      ValueError: there are no arguments.

    >>> import catena.numpy as jnp
    >>> jnp.result_type(jnp.int8(1), 2.5)
    dtype('float32')
    """
    return dtypes.result_type(*(_typed("result_type", x, i) for i, x in enumerate(args)))


def _typed(name: str, x, position: int = 0):
    """``x``, or the array that it converts itself to; lists, of which NumPy makes dtypes, are refused."""
    kind = type(x)
    if kind is Array or kind in dtypes.python_scalar_dtypes:
        return x
    foreign = hasattr(kind, "__jax_array__") or takes_part(kind) or kind is list or kind is np.ndarray
    return as_array_argument(name, x, position) if foreign else x
