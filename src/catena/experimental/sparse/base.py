"""What all sparse arrays are: a shape, buffers, and operators that say so where there is no meaning for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from catena.core import dtypes
from catena.core.trace import VALUES, Tracer
from catena.numpy import asarray


def missing(name: str):
    """An operator without a meaning for a class."""

    def operator(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no {name}; its todense() has, as an array")

    operator.__name__ = operator.__qualname__ = name
    return operator


class JAXSparse:
    """The class of all sparse arrays. Each of them is a pytree whose leaves are its buffers.

    Arguments:
      args: the buffers, an array each.
      shape: the shape of the array that they stand for.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    BUFFERS: tuple = ()  # the names of the attributes that are leaves
    FACTS: tuple = ("shape",)  # and of those that are not
    __array_ufunc__ = None  # NumPy arrays leave operators to this class
    __hash__ = None  # type: ignore[assignment]
    data: Any
    shape: tuple

    def __init__(self, args: tuple, *, shape: Sequence[int]):
        for name, x in zip(self.BUFFERS, args, strict=True):
            setattr(self, name, x if isinstance(x, VALUES) else asarray(x))
        self.shape = tuple(shape)

    @property
    def nse(self) -> int:
        """The number of specified elements."""
        return self.data.size

    @property
    def dtype(self):
        """The type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, specified or not."""
        return math.prod(self.shape)

    @property
    def T(self):
        """The array with its axes in the opposite order."""
        return self.transpose()

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        name, leaves = type(self).__name__, self.tree_flatten()[0]
        try:
            layout = "".join(f", {k}={getattr(self, k)}" for k in ("n_batch", "n_dense") if getattr(self, k, 0))
            text = f"{name}({dtypes.dtype_name(self.dtype)}{list(self.shape)}, nse={self.nse}{layout})"
        except (AttributeError, IndexError, KeyError, ValueError):  # leaves that a function of trees put there
            return f"{name}(<invalid>)"
        tracers = [x for x in leaves if isinstance(x, Tracer)]
        return f"{type(tracers[0]).__name__}[{text}]" if tracers else text

    def block_until_ready(self):
        """This array: its buffers were computed when they were returned."""
        return self

    def tree_flatten(self) -> tuple[tuple, dict]:
        """The buffers, and what else makes up the array."""
        return tuple(getattr(self, k) for k in self.BUFFERS), {k: getattr(self, k) for k in self.FACTS}

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The array of these buffers, which may be anything, as leaves of trees may."""
        new = object.__new__(cls)
        for name, value in zip(cls.BUFFERS, children, strict=True):
            setattr(new, name, value)
        for name, value in aux_data.items():
            setattr(new, name, value)
        return new

    transpose = missing("transpose")
    todense = missing("todense")
    sum = missing("sum")
    __neg__, __pos__ = missing("__neg__"), missing("__pos__")
    __add__, __radd__ = missing("__add__"), missing("__radd__")
    __sub__, __rsub__ = missing("__sub__"), missing("__rsub__")
    __mul__, __rmul__ = missing("__mul__"), missing("__rmul__")
    __matmul__, __rmatmul__ = missing("__matmul__"), missing("__rmatmul__")
    __getitem__ = missing("__getitem__")
