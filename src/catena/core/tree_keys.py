"""Key paths: how a position inside a pytree is named, and how it is printed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DictKey:
    """The step into a dict: ``tree[key]``.

    >>> str(DictKey("w"))
    "['w']"
    """

    key: Hashable

    def __hash__(self) -> int:
        return hash((DictKey, self.key))

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The step into a list or tuple: ``tree[idx]``.

    >>> str(SequenceKey(2))
    '[2]'
    """

    idx: int

    def __post_init__(self):
        _check_field(self, "idx", self.idx, int)

    def __hash__(self) -> int:
        return hash((SequenceKey, self.idx))

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The step into a field of an object: ``tree.name``.

    >>> str(GetAttrKey("bias"))
    '.bias'
    """

    name: str

    def __post_init__(self):
        _check_field(self, "name", self.name, str)

    def __hash__(self) -> int:
        return hash((GetAttrKey, self.name))

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """The step into the ``key``-th child of a node whose type was registered without keys.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __post_init__(self):
        _check_field(self, "key", self.key, int)

    def __hash__(self) -> int:
        return hash((FlattenedIndexKey, self.key))

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any  # one of the four above, or whatever a user's flatten_with_keys returns
KeyPath = tuple[KeyEntry, ...]

_FIELD = {DictKey: "key", SequenceKey: "idx", GetAttrKey: "name", FlattenedIndexKey: "key"}


def _check_field(entry: Any, field: str, value: Any, expected: type) -> None:
    if not isinstance(value, expected):
        name = type(entry).__name__
        raise TypeError(f"{name}: {field} must be of type {expected.__name__}, got {value!r}.")


def key_name(entry: KeyEntry) -> Any:
    """The bare key, index or name inside a key-path entry."""
    field = _FIELD.get(type(entry))
    return entry if field is None else getattr(entry, field)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Print a key path.

    Arguments:
        keys: a key path, as yielded by `tree_flatten_with_path`.
        simple: print only the bare keys, indices and names.
        separator: what to put between entries.
    Returns: the entries of the path, printed and joined.

    >>> path = (DictKey("layer"), SequenceKey(0), GetAttrKey("w"))
    >>> keystr(path)
    "['layer'][0].w"
    >>> keystr(path, simple=True, separator="/")
    'layer/0/w'
    """
    return separator.join(str(key_name(k) if simple else k) for k in keys)
