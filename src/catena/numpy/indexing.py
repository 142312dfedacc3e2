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
            if type(key) is np.ndarray:
                part = _take(value, key, 0) if key.size > _FEW else value[key]
            else:
                part = _take_along(value, key) if type(key) is tuple else value[key]
    except (IndexError, TypeError, ValueError):
        return None
    return part if type(part) is np.ndarray else np.asarray(part)


_FEW = 256
_WHOLE = slice(None)


def _take(value, key, axis: int):
    """``value[key]`` along an axis, for many places: ``take`` with the machine's own indices is three to five times as
    fast, and what it returns lies in order, as compiled programs read it.
    """
    return value[key] if key.dtype.kind == "b" else value.take(key.astype(np.intp, casting="safe", copy=False), axis)


def _take_along(value, key: tuple):
    """``value[key]``; by ``take`` where it is ``value[..., places]`` or ``value[:, places]`` with many places."""
    places = [k for k, item in enumerate(key) if type(item) is np.ndarray]
    if len(places) != 1 or key[places[0]].size <= _FEW or key[places[0]].dtype.kind == "b":
        return value[key]
    (k,) = places
    if not all(item is ... or type(item) is slice and item == _WHOLE for item in key[:k] + key[k + 1 :]):
        return value[key]
    return _take(value, key[k], k - len(key) if ... in key[:k] else k)
