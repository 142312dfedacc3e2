"""Flattening: pytrees to leaves, key paths and treedefs.

`flatten_into` is the hot path of every transformation and does plain flattening only, by recursion;
`flatten_with` adds `is_leaf` and key paths, with an explicit stack so that memory alone bounds the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np

from catena.core.named import NamedTuple
from catena.core.tree_code import HOT, MOST_NODES, CodeUnless, answering_again, code_unless
from catena.core.tree_keys import KeyEntry, KeyPath, keystr
from catena.core.tree_nodes import (
    DICT,
    LIST,
    NONE,
    TUPLE,
    NodeKind,
    NodeTable,
    UnsortableKeysError,
    default_nodes,
    sorted_keys,
)
from catena.core.treedef import LEAF, PyTreeDef, flat_node, interned, interned_flat, make_node

EMPTY_DICT = flat_node(DICT, (), 0)
NOTHING = flat_node(NONE, None, 0)  # None, of which trees of modules are full

_STR_ONLY = frozenset({str})

# Dicts of parameters come back with the same keys in the same order: remember the sorted keys, a getter, and
# the treedef for the case that all values are leaves.
_dict_layouts: dict[tuple[str, ...], tuple[tuple, Callable, PyTreeDef]] = {}
_MAX_LAYOUTS = 1024  # emptied when full


def _open_dict(d: dict) -> tuple[tuple, Sequence, PyTreeDef | None]:
    """Sorted keys, the values in that order, and, where known, the treedef for values that are all leaves."""
    order = tuple(d)
    # 1 == True and 'a' == StrEnum.A: only plain strings may stand for each other.
    if len(order) < 2 or not _STR_ONLY.issuperset(map(type, order)):
        keys = order if len(order) == 1 else sorted_keys(d)
        return keys, [d[key] for key in keys], None
    known = _dict_layouts.get(order)
    if known is None:
        keys = sorted_keys(d)
        if len(_dict_layouts) >= _MAX_LAYOUTS:
            _dict_layouts.clear()
        known = _dict_layouts[order] = keys, itemgetter(*keys), flat_node(DICT, keys, len(keys))
    keys, get, treedef = known
    return keys, get(d), treedef


# Structures with code (see `tree_code`), by what is seen of a tree at once: those it may have, latest first.
_guesses: dict[tuple | type, tuple[PyTreeDef, ...]] = {}
_MAX_GUESSES = 3  # for one look
_MAX_LOOKS = 1024  # emptied when full


def flatten_into(tree: Any, leaves: list, nodes: NodeTable = default_nodes) -> PyTreeDef:
    """Append the leaves of `tree` to `leaves` and return its treedef: the fast way for callers with a list.

    Hot path. The recursive `_flatten_node` handles nearly every tree; one too deep for it, or with an error
    to explain, is flattened again by the loop of `flatten_with`.
    """
    cls = type(tree)
    kind = None if cls in nodes.leaf_types else nodes.kinds.get(cls) or nodes.classify(cls)
    if kind is None:
        leaves.append(tree)
        return LEAF
    if (kind is TUPLE or kind is LIST) and nodes.leaf_types.issuperset(map(type, tree)):
        leaves += tree
        return interned_flat.get((kind, len(tree))) or flat_node(kind, None, len(tree))
    if nodes is default_nodes:
        look = (cls, len(tree)) if kind is DICT or kind is LIST or kind is TUPLE else cls
        guesses = _guesses.get(look, ())
        for treedef in guesses:
            found = treedef._read(tree, True)
            if found is not None and nodes.leaf_types.issuperset(map(type, found)):
                leaves += found
                return treedef
        treedef = _flatten_root(tree, kind, leaves, nodes)
        # Those outside the tables are new each time.
        if treedef._hash is not None and (treedef._code is not None or treedef._use()) and treedef not in guesses:
            if len(_guesses) >= _MAX_LOOKS:
                _guesses.clear()
            _guesses[look] = (treedef, *guesses)[:_MAX_GUESSES]
        return treedef
    return _flatten_root(tree, kind, leaves, nodes)


def _flatten_root(tree: Any, kind: NodeKind, leaves: list, nodes: NodeTable) -> PyTreeDef:
    start = len(leaves)
    try:
        return _flatten_node(tree, kind, leaves, nodes.leaf_types, nodes.kinds, nodes.classify)
    except UnsortableKeysError:
        del leaves[start:]
        flatten_with(tree, None, nodes=nodes)  # raises again, with the key path
        raise
    except RecursionError:
        del leaves[start:]
        more, treedef = flatten_with(tree, None, with_path=False, nodes=nodes)
        leaves += more
        return treedef


def _flatten_node(x: Any, kind: NodeKind, leaves: list, leaf_types: set, kinds: dict, classify: Callable) -> PyTreeDef:
    # A node whose children are all leaves is recognised by one set operation over their types and its treedef
    # found in a table, so the Python loop at the end runs over mixed nodes only.
    if kind is TUPLE or kind is LIST:
        if leaf_types.issuperset(map(type, x)):
            leaves += x
            return interned_flat.get((kind, len(x))) or flat_node(kind, None, len(x))
        children, data = x, None
    elif kind is not DICT:
        children, data = kind.flatten(x)
        if leaf_types.issuperset(map(type, children)):
            leaves += children
            return flat_node(kind, data, len(children))
    elif not x:
        return EMPTY_DICT
    else:
        data, children, flat = _open_dict(x)
        if leaf_types.issuperset(map(type, children)):
            leaves += children
            return flat or flat_node(DICT, data, len(children))
    treedefs = []
    for child in children:
        cls = type(child)
        kind_of_child = None if cls in leaf_types else kinds.get(cls) or classify(cls)
        if kind_of_child is None:
            leaves.append(child)
            treedefs.append(LEAF)
        elif child is None:
            treedefs.append(NOTHING)
        else:
            treedefs.append(_flatten_node(child, kind_of_child, leaves, leaf_types, kinds, classify))
    if data is None:  # the look-up of make_node, without its call
        return interned.get((kind, tuple(map(id, treedefs)))) or make_node(kind, None, treedefs)
    return make_node(kind, data, treedefs)


def flatten_with_path(
    tree: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """`(path, leaf)` pairs and the treedef, which knows the paths of most trees."""
    if is_leaf is None:
        leaves: list = []
        treedef = flatten_into(tree, leaves)
        paths = treedef._known_paths()
        if paths is not None:
            return [*zip(paths, leaves)], treedef
    return flatten_with(tree, is_leaf, is_leaf_takes_path)


class _Seen(NamedTuple):
    """What a tree and a function that ends its branches gave last: the structure, which leaves the function ended, how
    often that was seen, or once there is code for it, that and how often it was of no use.
    """

    treedef: PyTreeDef
    ended: list[bool]
    times: int
    code: CodeUnless | None


_seen: dict[tuple, _Seen] = {}  # by the look of the tree and the code of the function
_SIZED = (dict, list, tuple)


def flatten_unless(tree: Any, is_leaf: Callable, nodes: NodeTable = default_nodes) -> tuple[list, PyTreeDef]:
    """The leaves and the treedef, where `is_leaf` ends the tree earlier: by the code of the structure that such trees
    had, by recursion, and by the loop of `flatten_with` what is too deep for it or has an error to explain.
    """
    cls = type(tree)
    look = cls, len(tree) if cls in _SIZED else 0, getattr(is_leaf, "__code__", None) or type(is_leaf)
    seen, asking = _seen.get(look) if nodes is default_nodes else None, is_leaf
    if seen is not None and seen.code is not None:
        found = seen.code.read(tree, is_leaf)
        if type(found) is list:
            return found, seen.treedef
        asked, other = found
        answers = seen.code.answers[:asked]
        asking = answering_again(is_leaf, [*answers[: asked - len(other)], *other])
    leaves: list = []
    ended: list[bool] = []
    try:
        treedef = _flatten_unless(tree, asking, leaves, ended, nodes)
    except (RecursionError, UnsortableKeysError):
        return flatten_with(tree, is_leaf, with_path=False, nodes=nodes)
    if nodes is default_nodes and treedef._hash is not None and treedef._num_nodes <= MOST_NODES:
        if len(_seen) >= _MAX_LOOKS:
            _seen.clear()
        _seen[look] = _seen_again(seen, treedef, ended)
    return leaves, treedef


def _seen_again(seen: _Seen | None, treedef: PyTreeDef, ended: list[bool]) -> _Seen:
    if seen is not None and seen.code is not None and seen.times < 3 * HOT:
        return seen._replace(times=seen.times + 1)
    if seen is None or seen.code is not None or seen.treedef is not treedef or seen.ended != ended:
        return _Seen(treedef, ended, 1, None)
    return _Seen(treedef, ended, seen.times + 1, code_unless(treedef, ended) if seen.times + 1 == HOT else None)


def _flatten_unless(x: Any, is_leaf: Callable, leaves: list, ended: list[bool], nodes: NodeTable) -> PyTreeDef:
    cls, flag = type(x), is_leaf(x)
    ends = flag is not False and (flag is True or is_true(flag))
    kind = None if ends or cls in nodes.leaf_types else nodes.kinds.get(cls) or nodes.classify(cls)
    if kind is None:
        leaves.append(x)
        ended.append(ends)
        return LEAF
    if x is None:
        return NOTHING
    if kind is TUPLE or kind is LIST:
        children, data = x, None
    elif kind is DICT:
        data, children, _ = _open_dict(x) if x else ((), (), None)
    else:
        children, data = kind.flatten(x)
    treedefs, flat = [], True
    for child in children:
        treedef = _flatten_unless(child, is_leaf, leaves, ended, nodes)
        treedefs.append(treedef)
        flat = flat and treedef is LEAF
    return flat_node(kind, data, len(treedefs)) if flat else make_node(kind, data, treedefs)


# The deepest tree that is flattened: one that makes new children for ever would fill the memory.
DEEPEST = 1_000_000
# Keys in all paths together (8 bytes each): leaves at every level of a deep tree have long paths.
_MOST_KEYS = 1 << 28


class _Open(NamedTuple):
    """A node whose children are being flattened."""

    node: Any  # kept alive: its id stands for it in the set of enclosing nodes
    pairs: Any  # iterator over keyed children
    treedefs: list  # of the children so far
    kind: Any  # a NodeKind; None in the artificial node at the root
    data: Any
    key: KeyEntry  # in the node around it


def flatten_with(
    tree: Any,
    is_leaf: Callable | None,
    is_leaf_takes_path: bool = False,
    with_path: bool = True,
    nodes: NodeTable = default_nodes,
    longest: int | None = None,
) -> tuple[list, PyTreeDef]:
    """Flatten with key paths, `is_leaf`, or both. Leaves come as `(path, leaf)` pairs when `with_path`.

    Paths of more than `longest` keys are cut in the middle: so paths that are only shown take linear time.
    """
    leaves: list = []
    roots: list[PyTreeDef] = []
    keyed = with_path or is_leaf_takes_path
    # The root is the one child of an artificial node.
    enclosing = [_Open(None, iter([(None, tree)]), roots, None, None, None)]
    inside: set[int] = set()  # the ids of the enclosing nodes
    keys = 0
    while enclosing:
        _, siblings, treedefs, kind, data, _ = enclosing[-1]
        for key, child in siblings:
            here = _path(enclosing, key, longest) if is_leaf_takes_path else ()
            child_kind = _kind_unless_leaf(child, here, is_leaf, is_leaf_takes_path, nodes)
            if child_kind is not None:
                if id(child) in inside or len(enclosing) > DEEPEST:
                    raise _endless(tree, is_leaf, is_leaf_takes_path, nodes, enclosing, key, child, keyed)
                pairs, child_data = _open(child_kind, child, enclosing, key, keyed)
                inside.add(id(child))
                enclosing.append(_Open(child, iter(pairs), [], child_kind, child_data, key))
                break
            if with_path:
                here = here or _path(enclosing, key, longest)
                keys += len(here)
                if keys > _MOST_KEYS:
                    raise ValueError(f"the key paths of this pytree have more than {_MOST_KEYS:,} keys together")
            leaves.append((here, child) if with_path else child)
            treedefs.append(LEAF)
        else:
            inside.discard(id(enclosing.pop().node))
            if enclosing:
                enclosing[-1].treedefs.append(make_node(kind, data, treedefs))
    return leaves, roots[0]


class _Omitted:
    """What stands for the keys in the middle of a long path."""

    def __str__(self) -> str:
        return " ... "


_OMITTED = _Omitted()


def _path(enclosing: list[_Open], key: KeyEntry, longest: int | None = None) -> KeyPath:
    """The keys from the root to the child `key` of the innermost enclosing node."""
    if len(enclosing) == 1:
        return ()
    if longest is None or len(enclosing) - 1 <= longest:
        return (*[level.key for level in enclosing[2:]], key)
    half = longest // 2
    ends = enclosing[2 : 2 + half], enclosing[len(enclosing) - half :]
    return (*[level.key for level in ends[0]], _OMITTED, *[level.key for level in ends[1]], key)


def _endless(
    tree: Any, is_leaf: Callable | None, takes_path: bool, nodes: NodeTable, enclosing, key, child, keyed: bool
) -> ValueError:
    """The error for a tree without end, which names the key paths where it begins again."""
    again = [i for i, level in enumerate(enclosing) if i and level.node is child]
    if not again:
        return ValueError(f"this pytree is deeper than {DEEPEST:,} levels")
    if not keyed:
        try:
            flatten_with(tree, is_leaf, takes_path, nodes=nodes)
        except ValueError as error:
            return error
        return ValueError(f"a pytree must not contain itself: a {type(child).__name__} does")
    outer = enclosing[: again[0]]
    name = type(child).__name__
    start = keystr(_path(outer, enclosing[again[0]].key, 64))
    return ValueError(
        f"a pytree must not contain itself: at key path {keystr(_path(enclosing, key, 64))} stands the {name} "
        + (f"that is at key path {start}" if start else "that is its root")
    )


def _kind_unless_leaf(
    x: Any, path: KeyPath, is_leaf: Callable | None, takes_path: bool, nodes: NodeTable
) -> NodeKind | None:
    if is_leaf is not None and is_true(is_leaf(path, x) if takes_path else is_leaf(x)):
        return None
    return nodes.kind_of(type(x))


def is_true(flag: Any) -> bool:
    if flag is None or isinstance(flag, (bool, np.bool_)):
        return bool(flag)
    raise ValueError(f"is_leaf predicate returned a non-boolean value {flag!r}; expected a boolean")


def _open(kind: NodeKind, x: Any, enclosing: list, key: KeyEntry, keyed: bool) -> tuple[Any, Any]:
    try:
        if keyed:
            return kind.flatten_with_keys(x)
        children, data = kind.flatten(x)
        return zip(repeat(None), children), data
    except UnsortableKeysError as e:
        path = _path(enclosing, key) if keyed else ()
        raise ValueError(f"{e} (in the dict at key path {keystr(path)})" if path else str(e)) from e
