"""Arguments of one dtype, each of its own shape: for functions whose arguments do not broadcast together."""

from __future__ import annotations

from catena.core import dtypes
from catena.numpy.boundary import array_arguments, convert, promoted_dtype


def promote_dtypes(name: str, *args) -> list:
    """Arguments as arrays of the dtype that they promote to."""
    return _converted(array_arguments(name, *args), lambda dtype: dtype)


def promote_dtypes_inexact(name: str, *args) -> list:
    """Arguments as arrays of the float or complex dtype that they promote to."""
    return _converted(array_arguments(name, *args), dtypes.to_inexact_dtype)


def _converted(arrays: list, adjust) -> list:
    if len(arrays) == 1:
        dtype, weak = arrays[0].dtype, arrays[0].weak_type
    else:
        dtype, weak = promoted_dtype(arrays)
    return [convert(x, adjust(dtype), weak) for x in arrays]
