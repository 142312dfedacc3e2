"""Types for annotating functions of arrays (``jax.typing``).

``ArrayLike`` is what functions of ``catena.numpy`` take where they want an array, objects with the method of
``SupportsJAXArray`` among it, which transformations do not take; ``DTypeLike`` is what they take where they want a
dtype.
"""

from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from catena.core.array import Array
from catena.core.dtypes import ExtendedDType


@runtime_checkable
class SupportsDType(Protocol):
    """An object that carries a dtype, such as an array or a scalar type."""

    @property
    def dtype(self) -> np.dtype: ...


@runtime_checkable
class SupportsJAXArray(Protocol):
    """An object that converts itself to an array, when it is given to a function of ``catena.numpy``."""

    def __jax_array__(self) -> Array: ...


ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex, SupportsJAXArray]  # noqa: UP007
DTypeLike = Union[str, type[Any], np.dtype, ExtendedDType, SupportsDType]  # noqa: UP007

__all__ = ["ArrayLike", "DTypeLike", "SupportsDType", "SupportsJAXArray"]


def __dir__() -> list[str]:
    return __all__
