"""PyTreeDef: the structure of a pytree with its leaves taken out.

A treedef is an immutable tree of nodes: each has a kind (how to take its type apart and put it together),
node data (dict keys, static fields ...) and child treedefs; every leaf is the one object `LEAF`. Trees may be
very deep, so everything here walks with explicit stacks, mostly through `fold`.

Equality must cost nothing when `jit` looks up a cache, so nodes are interned where that cannot be noticed:
equal structures then are one object, and `==` ends at `is`. It cannot be noticed when equal node data are
also indistinguishable; `1 == True` but a dict must get its own key back, hence the care in `tree_interning`.
Nodes outside the tables compare by structure, with cached hashes.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from catena.core.face import Face
from catena.core.lazy import LazyModule
from catena.core.tree_code import HOT, MOST_NODES, Code, code_of
from catena.core.tree_interning import MAX_INTERNED, intern_key
from catena.core.tree_keys import KeyEntry, KeyPath, keystr
from catena.core.tree_nodes import (
    DICT,
    LIST,
    NAMED_TUPLE,
    NONE,
    TUPLE,
    KeptDict,
    NodeKind,
    NodeTable,
    default_nodes,
    kept,
    own,
    sorted_keys,
)

tree_proto: Any = LazyModule("catena.core.tree_proto")  # few programs write structures so


class PyTreeDef(Face):
    """The structure of a pytree.

    Made by `tree_structure` and `tree_flatten`, never by its constructor. Comparable, hashable and picklable.

    >>> from catena.tree import structure
    >>> structure({"b": 1, "a": [2, (3, None)]})
    PyTreeDef({'a': [*, (*, None)], 'b': *})
    """

    __slots__ = (
        "__weakref__",
        "_children",
        "_code",
        "_data",
        "_hash",
        "_kind",
        "_num_leaves",
        "_num_nodes",
        "_paths",
        "_steps",
        "_uses",
    )
    _children: tuple[PyTreeDef, ...]
    _data: Any
    _hash: Any  # None until it is asked for
    _kind: Any  # a NodeKind; None in a leaf
    _num_leaves: int
    _num_nodes: int
    _code: Code | None  # for structures that are seen often
    _paths: list[KeyPath] | None
    _steps: list[tuple] | None
    _uses: int

    def __init__(self):
        raise TypeError("PyTreeDef has no constructor: make one with tree_structure or tree_flatten.")

    @property
    def num_leaves(self) -> int:
        """How many leaves a tree of this structure has."""
        return self._num_leaves

    @property
    def num_nodes(self) -> int:
        """How many nodes it has, leaves included."""
        return self._num_nodes

    def children(self) -> list[PyTreeDef]:
        """The structures of the direct children.

        >>> from catena.tree import structure
        >>> structure([1, (2, 3)]).children()
        [PyTreeDef(*), PyTreeDef((*, *))]
        """
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """`(type, data)` of the root node; None for a leaf.

        >>> from catena.tree import structure
        >>> structure({"a": 1}).node_data()
        (<class 'dict'>, ['a'])
        """
        if self._kind is None:
            return None
        return self._type, None if self._kind is NAMED_TUPLE else _public_data(self)

    @property
    def _type(self) -> type:
        return self._data if self._kind is NAMED_TUPLE else self._kind.type

    def _keys(self) -> list[KeyEntry]:
        return self._kind.keys(self._data, len(self._children)) if self._kind else []

    def unflatten(self, leaves: Iterable[Any], /) -> Any:
        """Build the tree of this structure that has these leaves. ValueError when their number is wrong.

        >>> from catena.tree import structure
        >>> structure({"a": 0, "b": (0, 0)}).unflatten([1, 2, 3])
        {'a': 1, 'b': (2, 3)}
        """
        if type(leaves) is not list:
            leaves = list(leaves)
        if len(leaves) != self._num_leaves:
            raise _wrong_leaf_count(self, leaves)
        # Hot path. The steps say: push so many leaves, then build a node from the last so many results, or None.
        if self._code is not None:
            return self._code.write(leaves)
        self._use()
        steps = self._steps or _unflatten_steps(self)
        if len(steps) == 1:
            _, arity, unflatten, data = steps[0]
            return unflatten(data, leaves) if unflatten is not None else leaves[0] if arity else None
        results: list = []
        rest = iter(leaves)
        for fresh, arity, unflatten, data in steps:
            if unflatten is None:
                results.extend(islice(rest, fresh))
                results.append(None)
                continue
            if fresh == arity:
                results.append(unflatten(data, list(islice(rest, arity))))
                continue
            results.extend(islice(rest, fresh))
            split = len(results) - arity
            children = results[split:]
            del results[split:]
            results.append(unflatten(data, children))
        return results[0]

    def _read(self, tree: Any, exact: bool) -> list[Any] | None:
        """The subtrees of `tree` at the leaves of this structure, where that is quick to say; None: perhaps there are
        none, perhaps the structure was not asked for often enough (see `tree_code`, also for what is `exact`).
        """
        if self._code is None:
            self._use()
            return None
        try:
            return self._code.read(tree, exact)
        except Exception:  # no such tree: the general way says why, where anybody asks
            return None

    def _use(self) -> bool:
        """Count that this structure was asked for; whether it has code as of now."""
        self._uses += 1
        if self._uses != HOT or self._num_nodes > MOST_NODES:
            return False
        self._code = code_of(self)
        return True

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at the leaves of this structure, which must be a prefix of it.

        Raises: ValueError naming the key path where `tree` departs from this structure.

        >>> from catena.tree import structure
        >>> structure([0, 0]).flatten_up_to([1, {"a": 2}])
        [1, {'a': 2}]
        """
        found = self._read(tree, False)
        if found is not None:
            return found
        subtrees: list = []
        try:
            _collect(self, tree, subtrees)
            return subtrees
        except (ValueError, RecursionError):  # the loop below says where, and goes to any depth
            subtrees.clear()
        todo: list[tuple[PyTreeDef, Any, Any]] = [(self, tree, None)]
        while todo:
            node, x, path = todo.pop()
            if node._kind is None:
                subtrees.append(x)
                continue
            children = _matching_children(node, x, path)
            if node._num_nodes == node._num_leaves + 1 == len(children) + 1:  # all of them leaves
                subtrees.extend(children)
                continue
            todo.extend((c, y, (path, node, i)) for i, (c, y) in reversed([*enumerate(zip(node._children, children))]))
        return subtrees

    def _known_paths(self) -> list[KeyPath] | None:
        """The key paths of the leaves; None where an instance says which keys it has, or where there are many."""
        if self._paths is None:
            nodes = postorder(self) if self._num_nodes <= MOST_NODES else [None]
            if not all(node and (node._kind is None or node._kind.keys_are_known) for node in nodes):
                return None
            self._paths = []
            todo: list[tuple[PyTreeDef, KeyPath]] = [(self, ())]
            while todo:
                node, path = todo.pop()
                if node._kind is None:
                    self._paths.append(path)
                todo.extend((c, (*path, key)) for c, key in reversed([*zip(node._children, node._keys())]))
        return self._paths

    def compose(self, arg: PyTreeDef, /) -> PyTreeDef:
        """The structure in which every leaf of this one is replaced by `arg`.

        >>> from catena.tree import structure
        >>> structure([0, 0]).compose(structure((0, 0)))
        PyTreeDef([(*, *), (*, *)])
        """
        check_treedef("compose: arg", arg)
        return fold(self, lambda: arg, lambda node, children: make_node(node._kind, node._data, children))

    def walk(
        self, f_node: Callable[[tuple, Any], Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any], /
    ) -> Any:
        """Evaluate this structure bottom-up: `f_leaf(leaf)` at leaves, `f_node(results, node_data)` at nodes.

        `f_leaf` may be None: leaves stand for themselves.

        >>> from catena.tree import structure
        >>> structure([0, (0, 0)]).walk(lambda results, data: sum(results), lambda x: 10 * x, [1, 2, 3])
        60
        """
        leaves = list(leaves)
        if len(leaves) != self._num_leaves:
            raise _wrong_leaf_count(self, leaves)
        rest = iter(leaves) if f_leaf is None else map(f_leaf, leaves)
        return fold(self, lambda: next(rest), lambda node, results: f_node(tuple(results), _public_data(node)))

    def from_iterable_tree(self, arg: Any, /) -> Any:
        """Build a tree of this structure from nested iterables of the same shape.

        >>> from catena.tree import structure
        >>> structure({"a": 0, "b": (0,)}).from_iterable_tree([1, [2]])
        {'a': 1, 'b': (2,)}
        """
        leaves, todo = [], [(self, arg)]
        while todo:
            node, x = todo.pop()
            if node._kind is None:
                leaves.append(x)
                continue
            xs = list(x)
            if len(xs) != len(node._children):
                raise ValueError(
                    f"Arity mismatch between trees: {node} needs {len(node._children)} "
                    f"children, got {len(xs)} in {_brief(x)}."
                )
            todo.extend(reversed([*zip(node._children, xs)]))
        return self.unflatten(leaves)

    @staticmethod
    def from_node_data_and_children(
        registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """The inverse of `node_data()` and `children()`.

        >>> from catena.tree import structure
        >>> from catena.tree_util import default_registry
        >>> leaf = structure(0)
        >>> leaf.from_node_data_and_children(default_registry, (dict, ["a", "b"]), [leaf, leaf])
        PyTreeDef({'a': *, 'b': *})
        """
        children = list(children)
        for child in children:
            check_treedef("from_node_data_and_children: children", child)
        if node_data is None:
            if children:
                raise ValueError(f"A leaf (node_data None) has no children, got {len(children)}.")
            return LEAF
        cls, data = node_data
        return node_from_data(registry.nodes, cls, data, children)

    def serialize_using_proto(self) -> bytes:
        """The structure as a protocol buffer, as JAX's libraries store it.

        Raises: ValueError where it has nodes other than lists, tuples, None, and dicts with text keys.

        >>> from catena.tree import structure
        >>> structure([1, {"a": 2}]).serialize_using_proto()[-3:]
        b'\\x12\\x01a'
        """
        return tree_proto.encoded([_proto_node(node) for node in postorder(self)])

    @staticmethod
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef:
        """The structure in a protocol buffer; the inverse of `serialize_using_proto`.

        Raises: ValueError where the bytes are none, TypeError where `data` is not bytes.

        >>> from catena.tree import structure
        >>> from catena.tree_util import default_registry
        >>> PyTreeDef.deserialize_using_proto(default_registry, structure([1, {"a": 2}]).serialize_using_proto())
        PyTreeDef([*, {'a': *}])
        """
        if not isinstance(data, bytes):
            raise TypeError(f"deserialize_using_proto: data must be bytes, got {type(data)}")
        nodes = tree_proto.decoded(data)
        parts = [None if n.kind == "leaf" else (_PROTO_TYPES[n.kind], n.keys or None, n.arity) for n in nodes]
        return _from_postorder(parts, registry.nodes)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return _same_structure(self, other) if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        return self._hash if self._hash is not None else fold(self, lambda: LEAF._hash, _hash_node)

    def __repr__(self) -> str:
        return f"PyTreeDef({fold(self, lambda: '*', _print_node)})"

    def __reduce__(self):
        parts = [None if n._kind is None else (n._type, own(n._data), len(n._children)) for n in postorder(self)]
        return _from_postorder, (parts,)


def _new_treedef(kind: NodeKind | None, data: Any, children: tuple, leaves: int, nodes: int) -> PyTreeDef:
    node = object.__new__(PyTreeDef)
    node._kind, node._data, node._children = kind, data, children
    node._num_leaves, node._num_nodes = leaves, nodes
    node._hash = node._steps = node._code = node._paths = None
    node._uses = 0
    return node


LEAF = _new_treedef(None, None, (), 1, 1)
LEAF._hash = hash("a pytree leaf")


def check_treedef(name: str, x: Any) -> None:
    if not isinstance(x, PyTreeDef):
        raise TypeError(f"{name} must be a PyTreeDef, got {_brief(x)} of type {type(x)}.")


# ---- making nodes, interned where it cannot be noticed -------------------------------------------------

interned_flat: dict[tuple, PyTreeDef] = {}  # nodes whose children are all leaves, by their number
interned: dict[tuple, PyTreeDef] = {}  # the others, by the ids of their children


def flat_node(kind: NodeKind, data: Any, n: int) -> PyTreeDef:
    """The node of `n` leaves."""
    key = (kind, n) if data is None else intern_key(kind, data, n)
    if key is None:
        return _new_treedef(kind, data, (LEAF,) * n, n, n + 1)
    return interned_flat.get(key) or _intern(interned_flat, key, _new_treedef(kind, kept(data), (LEAF,) * n, n, n + 1))


def make_node(kind: NodeKind, data: Any, children: Sequence[PyTreeDef]) -> PyTreeDef:
    """The node with these children."""
    # Children are named by id: hashing them would call Python. The table keeps them alive: ids stay theirs.
    ids = tuple(map(id, children))
    key = (kind, ids) if data is None else intern_key(kind, data, ids)
    return (key and interned.get(key)) or _make_new_node(kind, data, children, key)


def _make_new_node(kind: NodeKind, data: Any, children: Sequence[PyTreeDef], key: tuple | None) -> PyTreeDef:
    leaves = nodes = 0
    for child in children:
        leaves += child._num_leaves
        nodes += child._num_nodes
    if nodes == leaves == len(children):  # all of them leaves, or none at all
        return flat_node(kind, data, leaves)
    node = _new_treedef(kind, data, tuple(children), leaves, nodes + 1)
    # A child outside the tables is new each time: its parents would fill them, never to be found.
    if key is None or any(child._hash is None for child in children):
        return node
    node._data = kept(data)
    return _intern(interned, key, node)


def _intern(table: dict, key: tuple, node: PyTreeDef) -> PyTreeDef:
    if len(table) >= MAX_INTERNED:
        table.clear()
    _hash_node(node, [child._hash for child in node._children])  # a cached hash marks interned nodes
    return table.setdefault(key, node)


def node_from_data(nodes: NodeTable, cls: type, data: Any, children: Sequence[PyTreeDef]) -> PyTreeDef:
    """The node of a registered type, from its public node data."""
    kind = nodes.kind_of(cls)
    if kind is None:
        raise ValueError(f"Could not find type: {cls}. It is not registered as a pytree node.")
    if kind is NAMED_TUPLE:
        data = cls
    elif kind is DICT:
        data = tuple(data or ())
        if len(data) != len(children):
            raise ValueError(f"Number of keys and entries does not match: {len(data)} keys, {len(children)} children.")
    elif kind is NONE and children:
        raise ValueError(f"None has no children, got {len(children)}.")
    return make_node(kind, data, children)


def _from_postorder(parts: list, nodes: NodeTable = default_nodes) -> PyTreeDef:
    results: list[PyTreeDef] = []
    for part in parts:
        if part is None:
            results.append(LEAF)
            continue
        cls, data, arity = part
        if arity > len(results):
            raise ValueError(f"a node of {arity} children follows {len(results)} nodes")
        children = results[len(results) - arity :]
        del results[len(results) - arity :]
        results.append(node_from_data(nodes, cls, data, children))
    if len(results) != 1:
        raise ValueError(f"the nodes of a structure make one tree, got {len(results)}")
    return results[0]


_PROTO_TYPES = {"list": list, "tuple": tuple, "dict": dict, "None": type(None)}


def _proto_node(node: PyTreeDef) -> tree_proto.Node:
    """A node as `tree_proto` writes it."""
    if node._kind is None:
        return tree_proto.Node("leaf", 0)
    name = node._type.__name__
    if node._kind not in (LIST, TUPLE, DICT, NONE):
        raise ValueError(
            "only lists, tuples, dicts and None can be written as a protocol buffer, but this structure has a "
            f"{name}: convert it to one of these, or pickle the structure"
        )
    keys = node._data or ()
    if not all(type(key) is str for key in keys):
        raise ValueError(f"only dicts with str keys can be written as a protocol buffer, got keys {list(keys)}")
    return tree_proto.Node("None" if node._kind is NONE else name, len(node._children), keys)


# ---- walking -------------------------------------------------


def postorder(treedef: PyTreeDef) -> list[PyTreeDef]:
    """All nodes, children before parents, left to right."""
    order, todo = [], [treedef]
    while todo:
        node = todo.pop()
        order.append(node)
        todo.extend(node._children)
    order.reverse()
    return order


def fold(treedef: PyTreeDef, on_leaf: Callable[[], Any], on_node: Callable[[PyTreeDef, list], Any]) -> Any:
    """Evaluate a treedef bottom-up, leaves from left to right."""
    results: list[Any] = []
    for node in postorder(treedef):
        if node._kind is None:
            results.append(on_leaf())
            continue
        split = len(results) - len(node._children)
        children = results[split:]
        del results[split:]
        results.append(on_node(node, children))
    return results[0]


def _unflatten_steps(treedef: PyTreeDef) -> list[tuple]:
    """The program of `unflatten`: (leaves to push, children to take, unflatten, data) per inner node; no function for
    None, which is most of them in trees of modules.
    """
    steps: list[tuple] = []
    fresh = 0
    for node in postorder(treedef):
        if node._kind is None:
            fresh += 1
            continue
        steps.append((fresh, len(node._children), _rebuilder(node._kind, node._data), node._data))
        fresh = 0
    treedef._steps = steps = steps or [(1, 1, None, None)]
    return steps


def _rebuilder(kind: NodeKind, data: Any) -> Callable | None:
    if kind is NONE:
        return None
    unflatten = kind.unflatten
    return (lambda data, children: unflatten(dict(data), children)) if type(data) is KeptDict else unflatten


def _hash_node(node: PyTreeDef, children: list[int]) -> int:
    # Node data may be unhashable (JAX allows it); such nodes hash by kind and children alone.
    if node._hash is None:
        try:
            node._hash = hash((node._kind, node._data, *children))
        except TypeError:
            node._hash = hash((node._kind, *children))
    return node._hash


def _same_structure(a: PyTreeDef, b: PyTreeDef) -> bool:
    if a._num_leaves != b._num_leaves or a._num_nodes != b._num_nodes:
        return False
    todo = [(a, b)]
    while todo:
        a, b = todo.pop()
        if a is b:
            continue
        if a._kind is not b._kind or len(a._children) != len(b._children) or not same_data(a._data, b._data):
            return False
        todo.extend(zip(a._children, b._children))
    return True


def same_data(a: Any, b: Any) -> bool:
    try:
        return a is b or bool(a == b)
    except Exception as e:
        raise ValueError(
            "Exception raised while checking equality of metadata fields of pytree. Make sure that metadata fields "
            "are hashable and have simple equality semantics. (Note: arrays cannot be passed as metadata fields!) The "
            f"metadata are {_brief(a)} and {_brief(b)}."
        ) from e


def _public_data(node: PyTreeDef) -> Any:
    return list(node._data) if node._kind is DICT else own(node._data)


# ---- printing -------------------------------------------------


def _print_node(node: PyTreeDef, children: list[str]) -> str:
    inner = ", ".join(children)
    if node._kind is TUPLE:
        return f"({inner},)" if len(children) == 1 else f"({inner})"
    if node._kind is LIST:
        return f"[{inner}]"
    if node._kind is DICT:
        return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(node._data, children)) + "}"
    if node._kind is NONE:
        return "None"
    if node._kind is NAMED_TUPLE:
        return f"CustomNode(namedtuple[{node._data.__name__}], [{inner}])"
    return f"CustomNode({node._kind.type.__name__}[{node._data}], [{inner}])"


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 400 else reprlib.repr(x)


# ---- errors -------------------------------------------------


def _wrong_leaf_count(treedef: PyTreeDef, leaves: list) -> ValueError:
    if len(leaves) > treedef._num_leaves:
        return ValueError(f"Too many leaves for PyTreeDef; expected {treedef._num_leaves}, got {len(leaves)}.")
    return ValueError(f"Too few leaves for PyTreeDef; expected {treedef._num_leaves}, got {len(leaves)}")


_NONE_HINT = (
    "\n\nNone is a pytree without leaves, not a leaf. To treat it as a prefix of anything, pass is_leaf:\n"
    "  tree.map(lambda x, y: None if x is None else f(x, y), a, b, is_leaf=lambda x: x is None)"
)


def _matching_children(node: PyTreeDef, x: Any, path: Any) -> Sequence[Any]:
    """The children of `x`, which must be a node like `node`."""
    kind = node._kind
    if type(x) is not node._type:
        what = (
            f"Custom node type mismatch: expected type: {kind.type}, value: {_brief(x)}."
            if kind.noun.startswith("custom")
            else f"Expected {kind.noun}, got {_brief(x)}."
        )
        raise ValueError(what + _where(path) + (_NONE_HINT if kind is NONE else ""))
    if kind is DICT:
        return _matching_values(node._data, x, path)
    children, data = kind.flatten(x)
    if len(children) != len(node._children):
        noun = "Custom type" if kind.noun.startswith("custom") else kind.noun.capitalize()
        value = "value" if kind.noun.startswith("custom") else kind.noun
        raise ValueError(
            f"{noun} arity mismatch: {len(children)} != {len(node._children)}; {value}: {_brief(x)}." + _where(path)
        )
    if not same_data(node._data, data):
        raise ValueError(
            f"Mismatch {kind.noun} node data: {_brief(node._data)} != {_brief(data)}; "
            f"value: {_brief(x)}." + _where(path)
        )
    return children


def _collect(node: PyTreeDef, x: Any, subtrees: list) -> None:
    """Append the subtrees of `x` at the leaves of a structure."""
    for child, y in zip(node._children, _matching_children(node, x, None)) if node._kind else ((node, x),):
        if child._kind is None:
            subtrees.append(y)
        elif y is not None or child._kind is not NONE:
            _collect(child, y, subtrees)


def _matching_values(keys: tuple, d: Any, path: Any) -> list[Any]:
    try:
        if len(d) == len(keys):
            return [d[k] for k in keys]
    except KeyError:
        pass
    raise ValueError(
        f"Dict key mismatch; expected keys: {list(keys)}; present keys: {list(sorted_keys(d))}." + _where(path)
    )


def _where(path: Any) -> str:
    """A sentence for the key path kept as (path of parent, parent, index of child)."""
    keys: list[KeyEntry] = []
    while path is not None:
        path, parent, i = path
        keys.append(parent._keys()[i])
    return f" (at key path {keystr(tuple(reversed(keys)))})" if keys else ""
