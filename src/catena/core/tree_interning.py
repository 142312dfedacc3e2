"""Which nodes of trees are indistinguishable where they are equal, by keys under which they are interned."""

from __future__ import annotations

from marshal import dumps
from typing import Any

from catena.core.tree_nodes import KeptDict, NodeKind

MAX_INTERNED = 8192  # entries of a table; emptied when full. Nothing but speed depends on what is in them

# Equal values of these types are indistinguishable; equal tuples of _SCALARS are, given their types as well. Classes
# of marks that stand for nothing but themselves, such as `missing = Missing()`, join these when they are first seen.
_EXACT = frozenset({str, bytes, type(None), type})
_SCALARS = {*_EXACT, int, bool, float}


def intern_key(kind: NodeKind, data: Any, shape: Any) -> tuple | None:
    """A key to intern a node under: equal keys mean indistinguishable nodes. None: do not intern."""
    if data is None:
        return kind, shape
    if type(data) is dict or type(data) is KeptDict:  # equal ones may differ in their order
        items = (*data, *data.values())
        types = _telling_types(items)
        return (kind, shape, KeptDict, items, types) if types else None  # an empty one is to be filled by somebody
    if type(data) is not tuple:
        return (kind, shape, data) if type(data) in _EXACT else None
    if _EXACT.issuperset(map(type, data)):
        return kind, shape, data
    types = _telling_types(data)
    return types and (kind, shape, data, types)


def _telling_types(data: tuple) -> tuple | None:
    """The types of what a tuple holds, by which equal tuples are told apart; None where they do not tell enough."""
    types = tuple(map(type, data))
    if float in types and any(type(x) is float and x == 0 for x in data):  # 0.0 == -0.0
        return None
    if _SCALARS.issuperset(types):
        return types
    # Walking through tuples in tuples costs more than the rest of a node. What is written of plain ones tells their
    # types: nothing else is written so.
    try:
        written = dumps(data, 2)
    except ValueError:
        written = b""
    found = _told.get(written)
    if found is None:
        inner = [_telling_types(x) if type(x) is tuple else _telling_type(x) for x in data]
        found = None if None in inner else tuple(inner)
        if found is not None and _is_plain(data):
            if len(_told) >= MAX_INTERNED:
                _told.clear()
            _told[written] = found
    return found


_told: dict[bytes, tuple] = {}  # plain tuples as `marshal` writes them -> their telling types
_PLAIN = frozenset({str, int, bool, float, type(None)})


def _is_plain(x: Any) -> bool:
    """Whether this is of Python's own scalars, and tuples of such, alone."""
    return all(map(_is_plain, x)) if type(x) is tuple else type(x) in _PLAIN


def _telling_type(x: Any) -> type | None:
    cls = type(x)
    if cls not in _SCALARS:
        if cls.__bases__ != (object,) or cls.__eq__ is not object.__eq__ or getattr(x, "__dict__", True):
            return None
        _SCALARS.add(cls)
    return cls
