"""What a compiled function is called with, as Arrays for the time of the call."""

from __future__ import annotations

import numpy as np

from catena.core.array import Array, ExtendedArray, as_array, fresh_array, make_array
from catena.core.context import context
from catena.core.placed import PlacedArray
from catena.core.ref import Cell, Ref
from catena.core.token import Token

# NumPy dtypes of values that a program can read where they are, with and without 64-bit types.
READABLE = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4", "c8")))


def known_array(x) -> Array:
    """A Python or NumPy value as an Array whose type is known, for the hot path."""
    array = as_array(x)
    array.aval  # noqa: B018 (it is remembered)
    return array


_scalar_types: dict = {}  # dtype and aval, by Python type and whether there are 64-bit types


def scalar_array(x) -> Array:
    """``known_array`` for scalars, of which there are few types."""
    kind = type(x), context.x64
    if kind not in _scalar_types:
        array = known_array(x)
        _scalar_types[kind] = array.dtype, array.aval
    dtype, aval = _scalar_types[kind]
    return fresh_array(np.array(x, dtype), aval)


_array_types: dict = {}  # the type of an Array around a NumPy array, by shape and dtype; None: it cannot be read so


def readable_array(x: np.ndarray) -> Array:
    """A NumPy array as an Array for the time of one call: around the same memory, where programs can read it."""
    kind = x.shape, x.dtype
    aval = _array_types.get(kind, kind)
    if aval is kind:
        if len(_array_types) >= 1024:
            _array_types.clear()
        aval = _array_types[kind] = make_array(x, False).aval if x.dtype in READABLE else None
    return known_array(x) if aval is None else fresh_array(x, aval)


def readable_arrays(leaves: list) -> list:
    """Leaves as Arrays for the time of one call, and what else has a type of ours as it is. KeyError for the rest."""
    if WITH_TYPES.issuperset(map(type, leaves)):
        return leaves
    return [x if type(x) is Array else READERS[type(x)](x) for x in leaves]


def noted_types(arrays) -> list:
    """The types of arrays; of those that an operation has just made, they are noted here for the first time."""
    for x in arrays:
        if x._aval is None and type(x) is Array and type(x._value) is np.ndarray:
            x.aval  # noqa: B018
    return [x._aval for x in arrays]


def as_it_is(x):
    return x


READERS = dict.fromkeys((bool, int, float, complex, np.bool_, np.int32, np.int64, np.float32, np.float64), scalar_array)
READERS[np.ndarray] = readable_array
# As they are; only types of those in `WITH_TYPES` say where these are: keys that were placed have the types of others.
READERS.update(dict.fromkeys((PlacedArray, ExtendedArray, Token, Ref, Cell), as_it_is))
WITH_TYPES = frozenset([Array, PlacedArray])  # whose types say where they are, and so where results belong
