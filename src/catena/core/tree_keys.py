"""Key paths: how a position inside a pytree is named, and how it is printed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Entry:
    """What the steps have in common: one field, which does not change; equal are those of one class with equal fields.

    They are no dataclasses, the making of which takes longer than all that trees need else when they are imported.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()  # the name of the field

    def _put(self, value: Any, expected: type = object) -> None:
        (field,) = self.__match_args__
        if not isinstance(value, expected):
            raise TypeError(f"{type(self).__name__}: {field} must be of type {expected.__name__}, got {value!r}.")
        object.__setattr__(self, field, value)

    def _bare(self) -> Any:
        return getattr(self, self.__match_args__[0])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}: entries of key paths do not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete field {name!r}: entries of key paths do not change")

    def __eq__(self, other: object) -> bool:
        return self._bare() == other._bare() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._bare()))

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({self.__match_args__[0]}={self._bare()!r})"

    def __reduce__(self) -> tuple:
        return type(self), (self._bare(),)

    def __setstate__(self, state: list) -> None:
        """What is left to do for an entry that was pickled as a dataclass with slots, as JAX's are."""
        object.__setattr__(self, self.__match_args__[0], state[0])


class DictKey(Entry):
    """The step into a dict: ``tree[key]``.

    >>> str(DictKey("w"))
    "['w']"
    """

    __slots__ = __match_args__ = ("key",)
    key: Hashable

    def __init__(self, key: Hashable):
        self._put(key)

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(Entry):
    """The step into a list or tuple: ``tree[idx]``.

    >>> str(SequenceKey(2))
    '[2]'
    """

    __slots__ = __match_args__ = ("idx",)
    idx: int

    def __init__(self, idx: int):
        self._put(idx, int)

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class GetAttrKey(Entry):
    """The step into a field of an object: ``tree.name``.

    >>> str(GetAttrKey("bias"))
    '.bias'
    """

    __slots__ = __match_args__ = ("name",)
    name: str

    def __init__(self, name: str):
        self._put(name, str)

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(Entry):
    """The step into the ``key``-th child of a node whose type was registered without keys.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    __slots__ = __match_args__ = ("key",)
    key: int

    def __init__(self, key: int):
        self._put(key, int)

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any  # one of the four above, or whatever a user's flatten_with_keys returns
KeyPath = tuple[KeyEntry, ...]
STEPS = (DictKey, SequenceKey, GetAttrKey, FlattenedIndexKey)


def key_name(entry: KeyEntry) -> Any:
    """The bare key, index or name inside a key-path entry."""
    return entry._bare() if type(entry) in STEPS else entry


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
