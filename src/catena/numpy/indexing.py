"""Reading elements: ``x[...]``.

Eager indexing is NumPy's: a view where the index is basic, a copy where it is advanced. NumPy raises where
the language clamps, so whatever NumPy refuses goes to the general path (`reading`), which clamps or says what is wrong.
"""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.lazy import LazyModule
from catena.core.traceback import shorten

reading: Any = LazyModule("catena.numpy.reading")
_PLAIN = frozenset({int, slice, NoneType, EllipsisType, bool})


def numpy_key(index):
    """``index`` as one that NumPy reads the same way (in bounds), or raises TypeError or IndexError for."""
    if type(index) is not tuple:
        return _numpy_entry(index)
    for item in index:
        if type(item) not in _PLAIN:
            return tuple(map(_numpy_entry, index))
    return index


def _numpy_entry(item):
    kind = type(item)
    if kind in _PLAIN:
        return item
    value = item._value if kind is Array else item
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biu":
        return value
    raise TypeError("not an index that NumPy and this API read alike")


def getitem(x, index):
    """``x[index]`` for an Array or a traced value."""
    if type(x) is Array and context.trace is None:
        value = read_by_numpy(x._value, index)
        if value is not None:
            return make_array(value, x._weak)
    try:
        return reading.read_any(x, index)
    except Exception as error:
        shorten(error)
        raise


def read_by_numpy(value, index):
    """NumPy's ``value[index]``; None where the index is out of bounds, traced or wrong: the general path knows."""
    kind = type(index)
    try:
        if kind is int:
            return value[index, ...]
        if kind in _PLAIN:
            part = value[index]
        else:
            key = numpy_key(index)
            part = _take_rows(value, key) if type(key) is np.ndarray and key.size > _FEW else value[key]
    except (IndexError, TypeError, ValueError):
        return None
    return part if type(part) is np.ndarray else np.asarray(part)


_FEW = 256


def _take_rows(value, key):
    """``value[key]`` for many rows: ``take`` with the machine's own indices is five times as fast."""
    return value[key] if key.dtype.kind == "b" else value.take(key.astype(np.intp, casting="safe", copy=False), 0)
