"""Positions along axes: where an index points that counts from the end, or goes round."""

import numpy as np

from catena.core import dtypes
from catena.core.array import make_array
from catena.core.shapes import position_dtype
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add, min_p, rem
from catena.lax.broadcasting import iota_p
from catena.lax.comparison import eq, lt, select_n
from catena.lax.convert import convert, convert_element_type_p


def constant(value: int, dtype):
    """A scalar of exactly this dtype, 64 bits included."""
    return make_array(np.asarray(value, dtype))


def numbered(shape: tuple, axis: int, dtype):
    """For each element its position along an axis, of exactly this dtype."""
    return iota_p.bind(dtype=dtype, shape=shape, dimension=axis)


def unit_rows(count: int, first: int, size: int, dtype, weak_type: bool):
    """The rows of an identity matrix of `count` columns, transposed: of `size` of them, from the `first` on."""
    row, column = (numbered((count, size), axis, np.dtype(np.int32)) for axis in (0, 1))
    is_one = eq(row, add(column, constant(first, np.dtype(np.int32))))
    return convert_element_type_p.bind(is_one, new_dtype=dtype, weak_type=weak_type)


def as_position(index, dtype):
    """An integer index in the signed ``dtype``; what is too large for it becomes its largest."""
    own = get_aval(index)
    if dtypes.KIND[own.dtype] == "u" and own.dtype.itemsize >= dtype.itemsize:
        index = min_p.bind(index, constant(dtypes.iinfo(dtype).max, own.dtype))
    return convert(index, dtype) if own.dtype != dtype or own.weak_type else index


def from_end(index, size: int, dtype=None):
    """An integer index into an axis of ``size``, negative ones counted from the end.

    The result is of ``dtype`` (its own by default) where that can count to ``size``, else of a wider one.
    """
    own = get_aval(index).dtype
    signed = dtypes.KIND[own] == "i"
    dtype = position_dtype(size, own if dtype is None else dtype)
    index = as_position(index, dtype)
    if not signed:
        return index
    return select_n(lt(index, constant(0, dtype)), index, add(index, constant(size, dtype)))


def around(index, size: int):
    """An integer index modulo ``size``, not negative; of its own dtype, or of a wider one that can count so far."""
    dtype = position_dtype(max(size, 1), get_aval(index).dtype)
    bound = constant(max(size, 1), dtype)
    left = rem(as_position(index, dtype) if dtypes.KIND[dtype] == "i" else index, bound)
    return select_n(lt(left, constant(0, dtype)), left, add(left, bound))
