"""The dtype of stacks: growing lists of items of one type, with which loops of unknown length remember.

A stack is a value like any other: it has an aval (``ShapedArray((), StackDType(item))``), may be returned by
branches, carried by loops, and held in arrays and in other stacks. Reading beyond its end gives zeros, so the
empty stack is the zero of every length.
"""

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.dtype_table import ExtendedDType, extended


class stack(extended):  # noqa: N801
    """The scalar type of the dtypes of stacks."""


class StackDType(ExtendedDType):
    """The dtype of stacks whose items have the type ``item``."""

    __slots__ = ()
    type = stack

    def __init__(self, item: ShapedArray):
        item = item.strip_weak_type()
        super().__init__(f"stack[{item.str_short(short_dtypes=True)}]", 8, item)

    @property
    def item(self) -> ShapedArray:
        """The type of the items."""
        return self._impl

    def tangent_dtype(self):
        """Tangents of a stack are stacks of tangents."""
        item = self.item.to_tangent_aval()
        return item.dtype if item.dtype == dtypes.float0 else StackDType(item)

    def physical(self, shape: tuple) -> tuple:
        """Compiled programs see the address of each stack."""
        return shape, np.dtype(np.uint64)

    def __reduce__(self):
        return StackDType, (self.item,)


def stack_aval(item: ShapedArray) -> ShapedArray:
    """The type of one stack of items of the type ``item``."""
    return ShapedArray((), StackDType(item))


def is_stack(aval) -> bool:
    """Whether values of the type ``aval`` are stacks or arrays of stacks."""
    return type(aval.dtype) is StackDType
