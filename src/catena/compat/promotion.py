"""What libraries take from JAX's private `numpy.util`: arguments of one dtype."""

from __future__ import annotations

from typing import Any

from catena.core import dtypes
from catena.core.array import Array
from catena.numpy.promotion import promote_dtypes_inexact


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Arrays of the complex dtype that arguments promote to.

    Arguments:
      args: arrays and Python scalars.
    Returns:
      An array for each, of its own shape.
    Raises:
      TypeError: an argument is no number and no array.

    >>> import catena.numpy as jnp
    >>> [x.dtype.name for x in promote_dtypes_complex(1, jnp.zeros(3))]
    ['complex64', 'complex64']
    """
    arrays = promote_dtypes_inexact("promote_dtypes_complex", *args)
    return [x.astype(dtypes.to_complex_dtype(x.dtype)) for x in arrays]
