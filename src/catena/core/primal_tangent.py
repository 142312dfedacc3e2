"""Dtypes whose tangents are of another dtype than their values: numbers of few bits with gradients of many."""

from __future__ import annotations

import numpy as np

from catena.core import dtypes
from catena.core.dtype_table import ExtendedDType, extended


class primal_tangent(extended):  # noqa: N801
    """The scalar type of dtypes that ``primal_tangent_dtype`` makes."""


class PrimalTangentDType(ExtendedDType):
    """The dtype of values that are held as one dtype and have tangents of another."""

    __slots__ = ()
    type = primal_tangent

    def __init__(self, primal: np.dtype, tangent: np.dtype, name: str | None = None):
        short = dtypes.short_dtype_name
        name = name or f"PrimalTangentDType{{{short(primal)}/{short(tangent)}}}"
        super().__init__(name, primal.itemsize, (primal, tangent, name))

    def tangent_dtype(self) -> np.dtype:
        """The dtype of tangents."""
        return self._impl[1]

    def physical(self, shape: tuple) -> tuple:
        """Values are held as the first dtype."""
        return shape, self._impl[0]

    def array_repr(self, value) -> str:
        """The numbers, and the dtype that they are held as."""
        return f"EArray({np.array2string(np.asarray(value), separator=', ')}, dtype={dtypes.dtype_name(self._impl[0])})"

    def __reduce__(self):
        return PrimalTangentDType, self._impl


def primal_tangent_dtype(primal_dtype, tangent_dtype, name: str | None = None) -> PrimalTangentDType:
    """A dtype of values whose tangents, and so gradients, are of another dtype.

    ``lax.convert_element_type`` makes such values of numbers of ``primal_dtype``, and such numbers of them; all that
    moves elements takes them, what computes does not.

    Arguments:
      primal_dtype: the dtype that values are held as.
      tangent_dtype: the dtype of their tangents.
      name: how the dtype prints.
    Returns:
      The dtype.
    Raises:
      TypeError: an argument is no dtype of numbers.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.experimental import primal_tangent_dtype
    >>> code = primal_tangent_dtype("int8", "float32")
    >>> x = jax.lax.convert_element_type(jnp.array([1, 2], "int8"), code)
    >>> x[::-1], jax.typeof(x).to_tangent_aval()
    (EArray([2, 1], dtype=int8), ShapedArray(float32[2]))
    """
    primal, tangent = (dtypes.as_dtype(d) for d in (primal_dtype, tangent_dtype))
    for dtype in (primal, tangent):
        if dtypes.is_extended(dtype):
            raise TypeError(f"primal_tangent_dtype takes dtypes of numbers, got {dtype}")
    return PrimalTangentDType(primal, tangent, name)
