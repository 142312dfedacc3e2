"""Trees as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax.convert import convert_element_type
from catena.lax.join import concatenate
from catena.lax.shape import reshape
from catena.lax.slicing import slice_in_dim
from catena.numpy.creation import zeros


def ravel_pytree(pytree: Any) -> tuple[Any, Callable]:
    """The leaves of a tree as one vector, and the way back.

    Arguments:
      pytree: a tree of arrays and scalars.
    Returns:
      ``(vector, unravel)``: the vector has the dtype that those of all leaves promote to, float32 where there are
      none; ``unravel`` maps a vector of its length and dtype to a tree like ``pytree``, with the shapes and dtypes of
      its leaves. Where these are of one dtype, the vector may have another, which its parts keep. Such functions are
      equal for trees of one type.
    Raises:
      ValueError: from ``unravel``, for a vector of another shape. TypeError: for one of another dtype, where the
        leaves are not all of one.

    >>> import catena.numpy as jnp
    >>> from catena.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> vector
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(2 * vector)
    {'a': Array([2., 2.], dtype=float32), 'b': Array(6., dtype=float32)}
    """
    leaves, tree = tree_flatten(pytree)
    leaves = [leaf_value(x) for x in leaves]
    avals = [get_aval(x) for x in leaves]
    dtype = dtypes.result_type(*(a.dtype for a in avals)) if avals else np.dtype("float32")
    same = [x if a.dtype == dtype else convert_element_type(x, dtype) for x, a in zip(leaves, avals, strict=True)]
    parts = [reshape(x, (a.size,)) for x, a in zip(same, avals, strict=True)]
    vector = concatenate(parts, 0) if parts else zeros(0, dtype)
    return vector, Unravel(tree, avals, dtype)


class Unravel:
    """From a vector to a tree of arrays of the types ``avals``."""

    def __init__(self, tree, avals, dtype):
        self.tree, self.avals, self.dtype = tree, tuple(avals), dtype
        self.of_one_dtype = all(a.dtype == dtype for a in avals)
        self.ends = np.cumsum([a.size for a in avals], dtype=int)

    def __eq__(self, other) -> bool:
        return isinstance(other, Unravel) and self._type == other._type

    def __hash__(self) -> int:
        return hash(self._type)

    @property
    def _type(self) -> tuple:
        return self.tree, tuple((a.shape, a.dtype) for a in self.avals), self.dtype

    def __call__(self, vector):
        aval = get_aval(vector)
        size = int(self.ends[-1]) if len(self.ends) else 0
        if aval.shape != (size,):
            raise ValueError(f"unravel function given array of shape {aval.shape}, but expected shape {(size,)}")
        if aval.dtype != self.dtype and not self.of_one_dtype:
            raise TypeError(
                f"unravel function given array of dtype {dtypes.dtype_name(aval.dtype)}, "
                f"but expected dtype {dtypes.dtype_name(self.dtype)}"
            )
        parts = [
            reshape(slice_in_dim(vector, int(end) - a.size, int(end)), a.shape)
            for a, end in zip(self.avals, self.ends, strict=True)
        ]
        if not self.of_one_dtype:
            parts = [convert_element_type(x, a.dtype) for x, a in zip(parts, self.avals, strict=True)]
        return tree_unflatten(self.tree, parts)


__all__ = ["ravel_pytree"]


def __dir__() -> list[str]:
    return __all__
