"""Pytrees: the functions over nested containers.

`tree_nodes` says which types are nodes, `tree_flatten` takes trees apart, `treedef` is their structure,
`tree_errors` explains how two of them differ; this file is the public vocabulary written with them.
Transformations use `flatten_into` and `PyTreeDef.unflatten` directly.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from catena.core.lazy import LazyModule
from catena.core.tree_flatten import flatten_into, flatten_unless, flatten_with, flatten_with_path
from catena.core.tree_keys import KeyEntry, KeyPath
from catena.core.tree_nodes import NAMED_TUPLE, NodeTable, custom_kind, dataclass_fields, dataclass_kind, default_nodes
from catena.core.treedef import LEAF, TUPLE, PyTreeDef, check_treedef, make_node

__all__ = [
    "LEAF",
    "PyTreeDef",
    "flatten_into",
]

tree_errors: Any = LazyModule("catena.core.tree_errors")

IsLeaf = Callable[[Any], bool] | None
C = TypeVar("C", bound=type)
_MISSING: Any = object()


# ---- flattening -------------------------------------------------


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Split a pytree into its leaves and its structure.

    Arguments:
        tree: any pytree; dicts are taken in the order of their sorted keys, None has no leaves.
        is_leaf: a function of each node met; where it returns True, the node is a leaf.
    Returns: the list of leaves and the `PyTreeDef`.
    Raises: ValueError when the keys of a dict cannot be sorted.

    >>> tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    if is_leaf is not None:
        return flatten_unless(tree, is_leaf)
    leaves: list = []
    treedef = flatten_into(tree, leaves)
    return leaves, treedef


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a pytree, in order. Arguments and errors as for `tree_flatten`.

    >>> tree_leaves([1, {"x": (2, 3)}])
    [1, 2, 3]
    """
    if is_leaf is not None:
        return flatten_unless(tree, is_leaf)[0]
    leaves: list = []
    flatten_into(tree, leaves)
    return leaves


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a pytree. Arguments and errors as for `tree_flatten`.

    >>> tree_structure([1, {"x": (2, 3)}])
    PyTreeDef([*, {'x': (*, *)}])
    """
    return flatten_into(tree, []) if is_leaf is None else flatten_unless(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build the tree of the given structure with the given leaves; the inverse of `tree_flatten`.

    Arguments:
        treedef: a structure.
        leaves: as many leaves as it has.
    Returns: a pytree.
    Raises: ValueError when the number of leaves is wrong.

    >>> tree_unflatten(tree_structure({"a": 0, "b": [0]}), [1, 2])
    {'a': 1, 'b': [2]}
    """
    check_treedef("tree_unflatten: treedef", treedef)
    return treedef.unflatten(leaves)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like `tree_flatten`, with the key path of every leaf.

    Arguments:
        tree: any pytree.
        is_leaf: as for `tree_flatten`.
        is_leaf_takes_path: call `is_leaf(path, x)`.
    Returns: a list of `(path, leaf)` and the `PyTreeDef`.

    >>> tree_flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The `(path, leaf)` pairs of a pytree. Arguments as for `tree_flatten_with_path`.

    >>> tree_leaves_with_path((5,))
    [((SequenceKey(idx=0),), 5)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# ---- maps and reductions -------------------------------------------------


def tree_map(f: Callable, tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to every leaf.

    Arguments:
        f: a function of one leaf from each tree.
        tree: a pytree.
        rest: pytrees that `tree` is a prefix of; `f` gets their subtrees at the leaves of `tree`.
        is_leaf: as for `tree_flatten`, applied to `tree`.
    Returns: a pytree with the structure of `tree`.
    Raises: ValueError naming the key path where a tree in `rest` departs from `tree`.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [_leaves_up_to(treedef, tree, other, is_leaf, "tree_map tree") for other in rest]
    return treedef.unflatten([*map(f, leaves, *columns)])


def _leaves_up_to(treedef: PyTreeDef, tree: Any, other: Any, is_leaf: IsLeaf, name: str) -> list[Any]:
    """The subtrees of `other` at the leaves of `tree`; the error says where the two do not match."""
    try:
        return treedef.flatten_up_to(other)
    except ValueError as e:
        error = next(tree_errors.prefix_errors(tree, other, is_leaf), None)
        if error is None:
            raise
        raise error(name) from e


def tree_map_with_path(
    f: Callable, tree: Any, *rest: Any, is_leaf: Callable | None = None, is_leaf_takes_path: bool = False
) -> Any:
    """Like `tree_map`, with the key path of the leaf as the first argument of `f`.

    >>> from catena.core.tree_keys import keystr
    >>> tree_map_with_path(lambda path, x: f"{keystr(path)} = {x}", {"a": [1, 2]})
    {'a': ["['a'][0] = 1", "['a'][1] = 2"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    plain = None if is_leaf_takes_path else is_leaf
    columns = [_leaves_up_to(treedef, tree, other, plain, "tree_map_with_path tree") for other in rest]
    return treedef.unflatten([*map(f, paths, leaves, *columns)])


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Fold a function over the leaves from left to right, as `functools.reduce` does.

    Arguments:
        function: a function of the result so far and the next leaf.
        tree: a pytree.
        initializer: where to start; without it, the first leaf.
        is_leaf: as for `tree_flatten`.
    Returns: the result.
    Raises: TypeError when there is neither a leaf nor an initializer.

    >>> tree_reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    return (
        functools.reduce(function, leaves)
        if initializer is _MISSING
        else functools.reduce(function, leaves, initializer)
    )


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves with an associative operation, as a balanced tree of logarithmic depth.

    Arguments:
        operation: an associative function of two values.
        tree: a pytree.
        identity: the result for a tree without leaves.
        is_leaf: as for `tree_flatten`.
    Returns: the combination of all leaves.
    Raises: TypeError when there is neither a leaf nor an identity.

    >>> tree_reduce_associative(lambda a, b: f"({a}{b})", ["p", "q", "r", "s"])
    '((pq)(rs))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _balanced(operation, leaves)
    if identity is _MISSING:
        raise TypeError("Must specify identity for parallel reduction of empty sequence.")
    return identity


def _balanced(operation: Callable[[Any, Any], Any], xs: list[Any]) -> Any:
    if len(xs) == 1:
        return xs[0]
    half = len(xs) // 2
    return operation(_balanced(operation, xs[:half]), _balanced(operation, xs[half:]))


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> tree_all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Arguments:
        iterable: the elements to test.
        is_leaf: as for `tree_flatten`.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)]), all_leaves([None])
    (True, False, False)
    """
    if is_leaf is not None:
        return all(tree_structure(x, is_leaf) is LEAF for x in iterable)
    if type(iterable) in (list, tuple) and default_nodes.leaf_types.issuperset(map(type, iterable)):
        return True
    return all(default_nodes.kind_of(type(x)) is None for x in iterable)


# ---- broadcasting and transposing -------------------------------------------------


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Give every leaf of `full_tree` the value of the leaf of `prefix_tree` above it.

    Arguments:
        prefix_tree: a pytree that is a prefix of `full_tree`.
        full_tree: the pytree whose structure the result has.
        is_leaf: as for `tree_flatten`, applied to `prefix_tree`.
    Raises: ValueError naming the key path where `prefix_tree` is not a prefix.

    >>> tree_broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """
    treedef = tree_structure(full_tree)
    name = "broadcast_prefix prefix_tree"
    return treedef.unflatten(tree_errors.leaves_for(prefix_tree, full_tree, treedef, is_leaf, name))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out.

    Arguments:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure at each of its leaves; None: read it off the first.
        pytree_to_transpose: a tree of the composed structure.
    Returns: a tree of structure inner of outer.
    Raises: TypeError when the structure does not fit; ValueError when it cannot be read off.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure((0, 0, 0)), [(1, 2, 3), (4, 5, 6)])
    ([1, 4], [2, 5], [3, 6])
    """
    check_treedef("tree_transpose: outer_treedef", outer_treedef)
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = _first_inner(outer_treedef, pytree_to_transpose)
    check_treedef("tree_transpose: inner_treedef", inner_treedef)
    # As in JAX it is the number of leaves that must fit: rows may be other containers of the same size.
    if len(leaves) != outer_treedef.num_leaves * inner_treedef.num_leaves:
        raise TypeError(
            f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}\nThe first is the structure of "
            "pytree_to_transpose, the second what outer_treedef and inner_treedef promise."
        )
    n = inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[i::n]) for i in range(n)])


def _first_inner(outer: PyTreeDef, tree: Any) -> PyTreeDef:
    subtrees = outer.flatten_up_to(tree)
    if not subtrees:
        raise ValueError(f"tree_transpose: inner_treedef is needed when outer_treedef has no leaves, got {outer}.")
    return tree_structure(subtrees[0])


# ---- treedefs -------------------------------------------------


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of the given structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([1, 2])])
    PyTreeDef((*, [*, *]))
    """
    treedefs = list(treedefs)
    for treedef in treedefs:
        check_treedef("treedef_tuple: treedefs", treedef)
    return make_node(TUPLE, None, treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the direct children.

    >>> treedef_children(tree_structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    check_treedef("treedef_children: treedef", treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is one node without children: a leaf, or an empty container.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure((1,)))
    (True, False)
    """
    check_treedef("treedef_is_leaf: treedef", treedef)
    return treedef.num_nodes == 1


# ---- one level -------------------------------------------------


def is_tree_node(typ: type) -> bool:
    """Whether instances of a type are pytree nodes.

    >>> is_tree_node(dict), is_tree_node(int)
    (True, False)
    """
    return default_nodes.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The direct children of a node, and its node data.

    Raises: ValueError when `tree` is a leaf.

    >>> flatten_one_level({"b": (1,), "a": 2})
    ([2, (1,)], ('a', 'b'))
    """
    level = default_registry.flatten_one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Any]:
    """The direct children of a node with their keys, and its node data.

    Raises: ValueError when `tree` is a leaf.

    >>> flatten_one_level_with_keys((7,))
    ([(SequenceKey(idx=0), 7)], None)
    """
    level = default_registry.flatten_one_level_with_keys(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level


# ---- registration -------------------------------------------------


class PyTreeRegistry:
    """A table of pytree node types, and flattening by it. Nearly everybody uses the one `default_registry`.

    >>> PyTreeRegistry().flatten([1, (2,)])
    ([1, 2], PyTreeDef([*, (*,)]))
    """

    def __init__(self, nodes: NodeTable | None = None):
        self.nodes = NodeTable() if nodes is None else nodes

    def register_node(
        self, type: type, to_iterable: Callable, from_iterable: Callable, to_iterable_with_keys: Callable | None = None
    ) -> None:
        """Register a type. See `register_pytree_node`."""
        _check_class("register_node", type)
        _check_callables("register_node", to_iterable=to_iterable, from_iterable=from_iterable)
        if to_iterable_with_keys is not None:
            _check_callables("register_node", to_iterable_with_keys=to_iterable_with_keys)
        self.nodes.add(custom_kind(type, to_iterable, from_iterable, to_iterable_with_keys))

    def register_dataclass_node(self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str], /) -> None:
        """Register a class by the names of its fields. See `register_dataclass`."""
        _check_class("register_dataclass_node", type)
        self.nodes.add(dataclass_kind(type, data_fields, meta_fields))

    def is_node(self, type: type) -> bool:
        """Whether instances of the type are nodes."""
        return self.nodes.is_node(type)

    def flatten(self, tree: Any, leaf_predicate: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
        """Leaves and structure. See `tree_flatten`."""
        if leaf_predicate is not None:
            return flatten_unless(tree, leaf_predicate, self.nodes)
        leaves: list = []
        treedef = flatten_into(tree, leaves, self.nodes)
        return leaves, treedef

    def flatten_with_path(
        self,
        tree: Any,
        leaf_predicate: Callable[[KeyPath, Any], bool] | None = None,
    ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
        """Paths, leaves and structure; the predicate takes the path and the node."""
        return flatten_with(tree, leaf_predicate, is_leaf_takes_path=True, nodes=self.nodes)

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None:
        """Children and node data; None for a leaf."""
        kind = self.nodes.kind_of(type(tree))
        if kind is None:
            return None
        children, data = kind.flatten(tree)
        return (list(children) if kind is NAMED_TUPLE else children), data

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Any] | None:
        """Keyed children and node data; None for a leaf."""
        kind = self.nodes.kind_of(type(tree))
        return None if kind is None else kind.flatten_with_keys(tree)


default_registry = PyTreeRegistry(default_nodes)


def _check_class(function: str, cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"{function}: nodetype must be a class, got {cls!r}.")


def _check_callables(function: str, **functions: Any) -> None:
    for name, f in functions.items():
        if not callable(f):
            raise TypeError(f"{function}: {name} must be callable, got {f!r}.")


Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, tuple], Any]


def register_pytree_node(
    nodetype: type, flatten_func: Flatten, unflatten_func: Unflatten, flatten_with_keys_func: Flatten | None = None
) -> None:
    """Make a class a pytree node.

    Arguments:
        nodetype: the class; its subclasses are not affected.
        flatten_func: from an instance to `(children, aux_data)`; aux_data is static, hashable and comparable.
        unflatten_func: from `(aux_data, children)` to an instance. It must accept children of any type.
        flatten_with_keys_func: from an instance to `(pairs of key and child, aux_data)`.
    Raises: ValueError when the class is registered already; TypeError for a non-class or non-callable.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda aux, xy: Pair(*xy))
    >>> tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: C) -> C:
    """Class decorator: a pytree node by its methods `tree_flatten` and (class method) `tree_unflatten`.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_map(lambda x: x + 1, Box(1)).x
    2
    """
    _check_class("register_pytree_node_class", cls)
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Flatten, unflatten_func: Unflatten, flatten_func: Flatten | None = None
) -> None:
    """Make a class a pytree node whose children have keys.

    Arguments:
        nodetype: the class.
        flatten_with_keys: from an instance to `(pairs of key and child, aux_data)`.
        unflatten_func: from `(aux_data, children)` to an instance.
        flatten_func: from an instance to `(children, aux_data)`, where that can be faster.
    Raises: as `register_pytree_node`.

    >>> from catena.tree_util import GetAttrKey
    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(Point, lambda p: ([(GetAttrKey("x"), p.x)], None), lambda aux, c: Point(*c))
    >>> tree_leaves_with_path(Point(3))
    [((GetAttrKey(name='x'),), 3)]
    """

    def without_keys(x):
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: C) -> C:
    """Class decorator: a pytree node by its methods `tree_flatten_with_keys` and `tree_unflatten`.

    A method `tree_flatten`, if there is one, is used where keys are not needed.

    >>> from catena.tree_util import GetAttrKey
    >>> @register_pytree_with_keys_class
    ... class Wrap:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten_with_keys(self):
    ...         return [(GetAttrKey("x"), self.x)], None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_leaves_with_path(Wrap(3))
    [((GetAttrKey(name='x'),), 3)]
    """
    _check_class("register_pytree_with_keys_class", cls)
    flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    unflatten = cls.tree_unflatten  # type: ignore[attr-defined]
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type:
    """Make a dataclass (or a class like one) a pytree node; also a class decorator.

    Arguments:
        nodetype: the class, built by keyword arguments named like its fields.
        data_fields: the fields that are children. Default: those not marked static, see `static`.
        meta_fields: the fields that are static: hashable and comparable.
        drop_fields: fields left out; they get their defaults when an instance is rebuilt.
    Returns: the class.
    Raises: ValueError when fields are missing, unknown or in both lists, or the class is registered already;
        TypeError when only one list is given, or none for a class that is not a dataclass.

    >>> import dataclasses
    >>> from catena.tree import static
    >>> from catena.tree_util import register_dataclass, tree_structure
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: object
    ...     name: str = static(default="dense")
    >>> tree_structure(Layer(1.0))
    PyTreeDef(CustomNode(Layer[('dense',)], [*]))
    """
    data_fields, meta_fields = dataclass_fields(nodetype, data_fields, meta_fields, drop_fields)
    default_registry.register_dataclass_node(nodetype, data_fields, meta_fields)
    return nodetype


def register_static(cls: C) -> C:
    """Class decorator: a pytree node without leaves, whose instances are static data.

    Instances must be hashable and comparable, as they become part of the tree's structure.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree_flatten([1, Mode("train")])
    ([1], PyTreeDef([*, CustomNode(Mode[train], [])]))
    """
    _check_class("register_static", cls)
    default_nodes.add(custom_kind(cls, lambda x: ((), x), lambda x, _: x))
    return cls


def static(**kwargs: Any) -> Any:
    """A dataclass field that `register_dataclass` takes as static data. Arguments as for `dataclasses.field`.

    >>> static(default=3).metadata["static"]
    True
    """
    kwargs["metadata"] = {"static": True, **(kwargs.get("metadata") or {})}
    return dataclasses.field(**kwargs)
