"""What libraries take from JAX's private `numpy.util`: checks of arguments, and arguments of one dtype."""

from __future__ import annotations

from typing import Any

from catena.core import dtypes
from catena.core.array import Array
from catena.numpy import promotion
from catena.numpy.boundary import array_arguments


def check_arraylike(fun_name: str, *args: Any, emit_warning: bool = False, stacklevel: int = 3) -> None:
    """Refuse arguments that are neither arrays nor numbers.

    Arguments:
      fun_name: the function whose arguments they are, for the error.
      args: the arguments.
      emit_warning, stacklevel: taken for JAX's sake; what is wrong is an error.
    Raises:
      TypeError: an argument is a list, a string, None ...

    >>> check_arraylike("hilbert", 1.5, 2)
    """
    array_arguments(fun_name, *args)


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """What `promote_dtypes_inexact` makes of arguments, as complex numbers.

    >>> import catena.numpy as jnp
    >>> [x.dtype.name for x in promote_dtypes_complex(1, jnp.zeros(3))]
    ['complex64', 'complex64']
    """
    arrays = promotion.promote_dtypes_inexact("promote_dtypes_complex", *args)
    return [x.astype(dtypes.to_complex_dtype(x.dtype)) for x in arrays]


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Arrays of the float or complex dtype that arguments promote to.

    Arguments:
      args: arrays and Python scalars.
    Returns:
      An array for each, of its own shape.
    Raises:
      TypeError: an argument is no number and no array.

    >>> import catena.numpy as jnp
    >>> [x.dtype.name for x in promote_dtypes_inexact(1, jnp.zeros(3, "bfloat16"))]
    ['bfloat16', 'bfloat16']
    """
    return promotion.promote_dtypes_inexact("promote_dtypes_inexact", *args)
