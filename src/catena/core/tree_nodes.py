"""Which types are pytree nodes, and how each is taken apart and put together.

A `NodeKind` holds the functions of one registered type; a `NodeTable` maps types to kinds. Dispatch is on the
exact type: subclasses of registered types are leaves until registered, except named tuples, which are
recognised.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from catena.core.tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, SequenceKey


class UnsortableKeysError(ValueError):
    """The keys of a dict in a pytree cannot be compared with each other."""


class KeptDict(dict):
    """A dict of node data as an interned treedef keeps it: who asks for it gets a copy, as if `flatten` had made it."""


def kept(data: Any) -> Any:
    """Node data as an interned treedef keeps them: who made a dict may change it."""
    return KeptDict(data) if type(data) is dict else data


def own(data: Any) -> Any:
    """Node data for a function of the user's, which may change them."""
    return dict(data) if type(data) is KeptDict else data


class NodeKind:
    """One registered type of pytree node.

    `flatten(x)` gives `(children, data)`, with children a list or tuple; `flatten_with_keys(x)` gives
    `(pairs of key and child, data)`; `unflatten(data, children)` rebuilds; `keys(data, n)` names the children
    when only the treedef is at hand, and where `keys_are_known` those of all instances. `noun` is the word that error
    messages use. For `tree_code`, which checks for itself: `plain_flatten` and `plain_unflatten`, the functions of a
    user as they were given; `fields`, the names of data and static fields where flattening only reads them.
    """

    __slots__ = (
        "fields",
        "flatten",
        "flatten_with_keys",
        "keys",
        "keys_are_known",
        "noun",
        "plain_flatten",
        "plain_unflatten",
        "type",
        "unflatten",
    )

    def __init__(
        self,
        type: type,
        noun: str,
        flatten: Callable,
        unflatten: Callable,
        keys: Callable,
        flatten_with_keys: Callable | None = None,
    ):
        self.type = type
        self.noun = noun
        self.flatten = flatten
        self.unflatten = unflatten
        self.keys = keys
        self.flatten_with_keys = flatten_with_keys or self._zip_keys
        self.keys_are_known = flatten_with_keys is None
        self.plain_flatten, self.plain_unflatten = flatten, unflatten
        self.fields: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def _zip_keys(self, x: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
        children, data = self.flatten(x)
        return list(zip(self.keys(data, len(children)), children)), data

    def __repr__(self) -> str:
        return f"NodeKind({self.type.__name__})"


# ---- built-in kinds -------------------------------------------------


def sorted_keys(d: dict) -> tuple:
    """The keys of a dict in sorted order; UnsortableKeysError where they cannot be compared."""
    try:
        return tuple(sorted(d))
    except TypeError as e:
        types = ", ".join(sorted({type(k).__name__ for k in d}))
        raise UnsortableKeysError(
            "Comparator raised exception while sorting pytree dictionary keys. The keys of one dict must be "
            f"comparable with each other, but got keys of types {types}: {list(d)!r}"
        ) from e


def _flatten_dict(d: dict) -> tuple[list, tuple]:
    keys = sorted_keys(d)
    return [d[k] for k in keys], keys


def _flatten_defaultdict(d: defaultdict) -> tuple[list, tuple]:
    keys = sorted_keys(d)
    return [d[k] for k in keys], (d.default_factory, keys)


def _index_keys(data: Any, n: int) -> list[KeyEntry]:
    return [SequenceKey(i) for i in range(n)]


def _flat_index_keys(data: Any, n: int) -> list[KeyEntry]:
    return [FlattenedIndexKey(i) for i in range(n)]


def _dict_keys(data: Iterable, n: int) -> list[KeyEntry]:
    return [DictKey(k) for k in data]


TUPLE = NodeKind(tuple, "tuple", lambda x: (x, None), lambda data, children: tuple(children), _index_keys)
LIST = NodeKind(list, "list", lambda x: (x, None), lambda data, children: list(children), _index_keys)
NONE = NodeKind(type(None), "None", lambda x: ((), None), lambda data, children: None, _index_keys)
DICT = NodeKind(dict, "dict", _flatten_dict, lambda keys, children: dict(zip(keys, children)), _dict_keys)
ORDERED_DICT = NodeKind(
    OrderedDict,
    "custom",
    lambda d: (list(d.values()), tuple(d)),
    lambda keys, children: OrderedDict(zip(keys, children)),
    _dict_keys,
)
_ALL = slice(None)
DEFAULT_DICT = NodeKind(
    defaultdict,
    "custom",
    _flatten_defaultdict,
    lambda data, children: defaultdict(data[0], zip(data[1], children)),
    lambda data, n: _dict_keys(data[1], n),
)
# One kind serves every named tuple: its node data is the class itself. Its children are those of the tuple, whatever
# methods of its own for length and indexing the class has.
NAMED_TUPLE = NodeKind(
    tuple,
    "named tuple",
    lambda x: (tuple.__getitem__(x, _ALL), type(x)),
    lambda cls, children: cls(*children),
    lambda cls, n: [GetAttrKey(name) for name in cls._fields],
)

# Passing an iterator where a container was meant is a common mistake, so each flatten that meets one warns.
_ONE_SHOT_ITERATORS = frozenset(
    {
        type(iter(())),
        type(iter([])),
        type(iter({})),
        type({}.values()),
        type(iter({}.items())),
        type(iter(set())),
        type(x for x in ""),
        filter,
        map,
        zip,
        enumerate,
    }
)

_MAX_LEAF_TYPES = 4096  # of classes seen as leaves; emptied when full so that dynamic classes can be freed


class NodeTable:
    """The types that are pytree nodes.

    There is no lock, since looking at a class may run its metaclass's code: ``classify`` looks once more after it took
    a class for a leaf, and ``add`` takes it out of the leaves after it is there, so whichever comes last is right.
    """

    def __init__(self):
        builtin = (TUPLE, LIST, NONE, DICT, ORDERED_DICT, DEFAULT_DICT)
        self.kinds: dict[type, NodeKind] = {kind.type: kind for kind in builtin}
        self.leaf_types: set[type] = set()

    def kind_of(self, cls: type) -> NodeKind | None:
        """The kind of a type, None for leaves. Warns about one-shot iterators."""
        return None if cls in self.leaf_types else self.kinds.get(cls) or self.classify(cls)

    def classify(self, cls: type) -> NodeKind | None:
        """Decide once what an unregistered type is: a named tuple, or a leaf."""
        if cls in _ONE_SHOT_ITERATORS:
            warnings.warn(
                f"Python iterable type '{cls.__name__}' is treated as a leaf in PyTree. Pass a list or tuple "
                "if its elements are meant, or use is_leaf to suppress this warning if it is meant itself.",
                DeprecationWarning,
                stacklevel=4,
            )
            return None
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self.kinds.setdefault(cls, NAMED_TUPLE)
        if len(self.leaf_types) >= _MAX_LEAF_TYPES:
            self.leaf_types.clear()
        self.leaf_types.add(cls)
        registered = self.kinds.get(cls)
        if registered is not None:
            self.leaf_types.discard(cls)
        return registered

    def add(self, kind: NodeKind) -> None:
        """Register a kind for its type; ValueError when the type has one."""
        known = self.kinds.setdefault(kind.type, kind)
        if known is NAMED_TUPLE:
            self.kinds[kind.type] = kind
        elif known is not kind:
            raise ValueError(f"Duplicate {kind.noun} PyTreeDef type registration for {kind.type}.")
        self.leaf_types.discard(kind.type)

    def is_node(self, cls: type) -> bool:
        if cls in _ONE_SHOT_ITERATORS:
            return False
        return self.kind_of(cls) is not None


default_nodes = NodeTable()


# ---- kinds for users' types -------------------------------------------------


def custom_kind(
    nodetype: type, flatten_func: Callable, unflatten_func: Callable, flatten_with_keys_func: Callable | None = None
) -> NodeKind:
    """A kind from a user's functions, with what they return checked."""
    kind = NodeKind(
        nodetype,
        "custom",
        _checked_flatten(nodetype, flatten_func),
        lambda data, children: unflatten_func(data, tuple(children)),
        _flat_index_keys,
        flatten_with_keys_func and _checked_flatten_with_keys(nodetype, flatten_with_keys_func),
    )
    kind.plain_flatten, kind.plain_unflatten = flatten_func, unflatten_func
    return kind


def _checked_flatten(nodetype: type, func: Callable) -> Callable:
    def flatten(x):
        result = func(x)
        try:
            children, data = result
        except (TypeError, ValueError):
            raise _bad_flatten(nodetype, "(children, aux_data) tuple", result) from None
        if type(children) is tuple or type(children) is list:
            return children, data
        try:
            return tuple(children), data
        except TypeError:
            raise _bad_flatten(nodetype, "(children, aux_data) tuple where 'children' is iterable", result) from None

    return flatten


def _checked_flatten_with_keys(nodetype: type, func: Callable) -> Callable:
    def flatten_with_keys(x):
        result = func(x)
        try:
            pairs, data = result
            return [(key, child) for key, child in pairs], data
        except (TypeError, ValueError):
            raise _bad_flatten(nodetype, "(pairs of key and child, aux_data) tuple", result) from None

    return flatten_with_keys


def _bad_flatten(nodetype: type, expected: str, got: Any) -> ValueError:
    return ValueError(
        f"The to_iterable function for a custom PyTree node should return a {expected}, got {got!r} "
        f"(from the function registered for {nodetype})"
    )


def dataclass_kind(nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]) -> NodeKind:
    """A kind that reads fields as children and static data, and rebuilds by a call with keywords."""
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields or ())
    get_data, get_meta = _getter(data_fields), _getter(meta_fields)
    keys = [GetAttrKey(name) for name in data_fields]

    def unflatten(meta, children):
        return nodetype(**dict(zip(data_fields, children)), **dict(zip(meta_fields, meta)))

    kind = NodeKind(nodetype, "custom dataclass", lambda x: (get_data(x), get_meta(x)), unflatten, lambda data, n: keys)
    kind.fields = data_fields, meta_fields
    return kind


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """A function from an object to the tuple of its named fields; attrgetter does the work in C."""
    if not names:
        return lambda x: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda x: (get(x),)


def dataclass_fields(
    nodetype: type, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None, drop_fields: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Decide and check which fields are data and which are static. See `register_dataclass`."""
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got data_fields={data_fields!r} meta_fields={meta_fields!r}."
        )
    is_dataclass = isinstance(nodetype, type) and dataclasses.is_dataclass(nodetype)
    if data_fields is None:
        if not is_dataclass:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not a "
                f"dataclass. Got nodetype={nodetype!r}."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields or ())
    _check_fields(data_fields, meta_fields)
    if is_dataclass:
        _check_complete(nodetype, {*data_fields, *meta_fields}, set(drop_fields))
    return data_fields, meta_fields


def _check_fields(data_fields: tuple, meta_fields: tuple) -> None:
    for name in (*data_fields, *meta_fields):
        if not isinstance(name, str):
            raise TypeError(f"register_dataclass: field names must be strings, got {name!r}.")
    if overlap := set(data_fields) & set(meta_fields):
        raise ValueError(f"data_fields and meta_fields must not overlap. Overlapping fields: {overlap}.")


def _check_complete(nodetype: type, given: set[str], dropped: set[str]) -> None:
    init_fields = {f.name for f in dataclasses.fields(nodetype) if f.init}
    rule = "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them."
    if missing := init_fields - given - dropped:
        raise ValueError(f"{rule} Missing fields: {missing}. Add them to drop_fields to suppress this error.")
    if unexpected := given - init_fields:
        raise ValueError(f"{rule} Unexpected fields: {unexpected}.")
