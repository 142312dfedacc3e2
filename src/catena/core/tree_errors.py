"""How two pytrees differ, said with key paths.

Trees and treedefs are compared by the same walk: a *view* of either is `level(x)`, which gives the root's
`(type, keys, children, data)` or None for a leaf, and `describe(x)`, which names what stands there.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from catena.core.lazy import load
from catena.core.named import NamedTuple
from catena.core.tree_flatten import flatten_into, flatten_unless, is_true
from catena.core.tree_keys import KeyEntry, KeyPath, key_name, keystr
from catena.core.tree_nodes import NAMED_TUPLE, default_nodes
from catena.core.treedef import LEAF, PyTreeDef, same_data


class Level(NamedTuple):
    type: type
    keys: list[KeyEntry]
    children: list[Any]
    data: Any


class TreeView:
    """Pytrees, cut at `is_leaf`."""

    def __init__(self, is_leaf: Callable[[Any], bool] | None = None):
        self.is_leaf = is_leaf

    def level(self, x: Any) -> Level | None:
        if self.is_leaf is not None and is_true(self.is_leaf(x)):
            return None
        kind = default_nodes.kind_of(type(x))
        if kind is None:
            return None
        pairs, data = kind.flatten_with_keys(x)
        keys, children = [k for k, _ in pairs], [c for _, c in pairs]
        return Level(type(x), keys, children, None if kind is NAMED_TUPLE else data)

    def describe(self, x: Any) -> str:
        return str(type(x))


class StructureView:
    """Treedefs."""

    def level(self, x: PyTreeDef) -> Level | None:
        if x is LEAF:
            return None
        return Level(x._type, x._keys(), x.children(), None if x._kind is NAMED_TUPLE else x._data)

    def describe(self, x: PyTreeDef) -> str:
        return "pytree leaf" if x is LEAF else str(x._type)


View = TreeView | StructureView


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[Callable[[str], ValueError]]:
    """Where `prefix_tree` fails to be a prefix of `full_tree`: functions from its name to an error.

    >>> [str(e("in_axes")).splitlines()[1].strip() for e in prefix_errors({"a": [0]}, {"a": [1, 2]})]
    ["in_axes['a']"]
    """
    return _prefix_errors((), prefix_tree, full_tree, TreeView(is_leaf), TreeView())


def prefix_errors_treedef(
    prefix_tree: Any,
    treedef: PyTreeDef,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Iterator[Callable[[str], ValueError]]:
    """The same where only the structure of the full tree is at hand."""
    return _prefix_errors((), prefix_tree, treedef, TreeView(is_leaf), StructureView())


def _prefix_errors(path: KeyPath, prefix: Any, full: Any, prefix_view: TreeView, full_view: View):
    todo = [(path, prefix, full)]
    while todo:
        path, prefix, full = todo.pop()
        a = prefix_view.level(prefix)
        if a is None:
            continue
        b = full_view.level(full)
        if b is None or a.type is not b.type:
            yield _different_types(path, prefix_view.describe(prefix), full_view.describe(full))
        elif len(a.children) != len(b.children):
            yield _different_lengths(path, a, b)
        elif not same_data(a.data, b.data):
            yield _different_metadata(path, a, b)
        else:
            steps = [((*path, k), x, y) for k, x, y in zip(a.keys, a.children, b.children)]
            todo.extend(reversed(steps))


def _different_types(path: KeyPath, a: str, b: str) -> Callable[[str], ValueError]:
    return lambda name: ValueError(
        "pytree structure error: different types at key path\n"
        f"    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type\n"
        f"    {a}\n"
        "but at the same key path the full pytree has a subtree of different type\n"
        f"    {b}."
    )


def _different_lengths(path: KeyPath, a: Level, b: Level) -> Callable[[str], ValueError]:
    if a.type in (list, tuple):
        kind = a.type.__name__
        return lambda name: ValueError(
            f"pytree structure error: different lengths of {kind} at key path\n"
            f"    {name}{keystr(path)}\n"
            f"At that key path, the prefix pytree {name} has a subtree of type {kind} of length "
            f"{len(a.children)}, but the full pytree has a subtree of the same type but of length "
            f"{len(b.children)}."
        )
    a_keys, b_keys = [str(key_name(k)) for k in a.keys], [str(key_name(k)) for k in b.keys]
    difference = [k for k in a_keys if k not in b_keys] + [k for k in b_keys if k not in a_keys]
    return lambda name: ValueError(
        "pytree structure error: different numbers of pytree children at key path\n"
        f"    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type\n"
        f"    {a.type}\n"
        f"with {len(a_keys)} child keys\n"
        f"    {' '.join(a_keys)}\n"
        f"but at the same key path the full pytree has a subtree of the same type but with {len(b_keys)} child keys\n"
        f"    {' '.join(b_keys)}\n"
        "so the symmetric difference on key sets is\n"
        f"    {' '.join(difference)}"
    )


def _different_metadata(path: KeyPath, a: Level, b: Level) -> Callable[[str], ValueError]:
    diff = "\n".join(load("difflib").ndiff(str(a.data).splitlines(), str(b.data).splitlines()))
    return lambda name: ValueError(
        "pytree structure error: different pytree metadata at key path\n"
        f"    {name}{keystr(path)}\n"
        f"At that key path, the prefix pytree {name} has a subtree of type\n"
        f"    {a.type}\n"
        "with metadata\n"
        f"    {a.data}\n"
        "but at the same key path the full pytree has a subtree of the same type but with metadata\n"
        f"    {b.data}\n"
        "so the diff in the metadata at these pytree nodes is\n"
        f"{textwrap.indent(diff, '    ')}"
    )


class Difference(NamedTuple):
    """One place where two structures differ: the key path, what stands there in each, and why they differ."""

    path: KeyPath
    first: str
    second: str
    reason: str


def equality_errors(tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Difference]:
    """The places where two pytrees differ in structure.

    >>> [tuple(d) for d in equality_errors([1, 2], [1, 2, 3])]
    [((), 'list of length 2', 'list of length 3', 'the lengths do not match')]
    """
    return _equality_errors(tree1, tree2, TreeView(is_leaf))


def equality_errors_treedef(treedef1: PyTreeDef, treedef2: PyTreeDef) -> Iterator[Difference]:
    """The places where two structures differ; leaves are called 'pytree leaf'."""
    return _equality_errors(treedef1, treedef2, StructureView())


def _equality_errors(x: Any, y: Any, view: View) -> Iterator[Difference]:
    todo: list[tuple[KeyPath, Any, Any]] = [((), x, y)]
    while todo:
        path, x, y = todo.pop()
        a, b = view.level(x), view.level(y)
        if a is None and b is None:
            continue
        if a is None or b is None or a.type is not b.type:
            yield Difference(path, view.describe(x), view.describe(y), "their Python types differ")
        elif len(a.children) != len(b.children):
            yield _length_difference(path, a, b)
        elif not same_data(a.data, b.data):
            yield Difference(
                path,
                f"{a.type} with pytree metadata {a.data}",
                f"{b.type} with pytree metadata {b.data}",
                "the pytree node metadata does not match",
            )
        else:
            todo.extend(reversed([((*path, k), u, v) for k, u, v in zip(a.keys, a.children, b.children)]))


def _length_difference(path: KeyPath, a: Level, b: Level) -> Difference:
    m, n = len(a.children), len(b.children)
    if a.type in (list, tuple):
        kind = a.type.__name__
        return Difference(path, f"{kind} of length {m}", f"{kind} of length {n}", "the lengths do not match")
    a_keys, b_keys = [key_name(k) for k in a.keys], [key_name(k) for k in b.keys]
    difference = [k for k in a_keys if k not in b_keys] + [k for k in b_keys if k not in a_keys]
    return Difference(
        path,
        f"{a.type} with {_children(m)}",
        f"{b.type} with {_children(n)}",
        "the numbers of children do not match, with the symmetric difference of key sets: "
        "{" + ", ".join(map(repr, difference)) + "}",
    )


def _children(n: int) -> str:
    return "1 child" if n == 1 else f"{n} children"


# ---- prefixes, broadcast -------------------------------------------------


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    name: str = "broadcast_prefix prefix_tree",
) -> list[Any]:
    """Each leaf of `prefix_tree`, once for every leaf of `full_tree` below it.

    Raises: ValueError naming the key path where `prefix_tree` is not a prefix of `full_tree`.

    >>> broadcast_prefix((1, [2, 3]), ((0, 0), [0, {"a": 0, "b": 0}]))
    [1, 1, 2, 3, 3]
    """
    return leaves_for(prefix_tree, full_tree, flatten_into(full_tree, []), is_leaf, name)


def leaves_for(prefix_tree: Any, full_tree: Any, treedef: PyTreeDef, is_leaf, name: str) -> list[Any]:
    """The same where ``treedef``, the structure of the full tree, is at hand."""
    leaves: list = []
    if is_leaf is None:
        prefix = flatten_into(prefix_tree, leaves)
    else:
        leaves, prefix = flatten_unless(prefix_tree, is_leaf)
    repeats = leaf_counts(prefix, treedef)
    if repeats is None:
        raise next(prefix_errors(prefix_tree, full_tree, is_leaf))(name)
    return [leaf for leaf, n in zip(leaves, repeats) for _ in range(n)]


def leaf_counts(prefix: PyTreeDef, full: PyTreeDef) -> list[int] | None:
    """How many leaves of `full` lie below each leaf of `prefix`; None where it is not a prefix.

    >>> from catena.tree import structure
    >>> leaf_counts(structure([0, 0]), structure([0, (0, 0, 0)]))
    [1, 3]
    """
    counts, todo = [], [(prefix, full)]
    while todo:
        a, b = todo.pop()
        if a is LEAF:
            counts.append(b._num_leaves)
        elif a is b:
            counts += [1] * a._num_leaves
        elif a._kind is b._kind and len(a._children) == len(b._children) and same_data(a._data, b._data):
            todo.extend(reversed([*zip(a._children, b._children)]))
        else:
            return None
    return counts


def _is_none(x: Any) -> bool:
    return x is None


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, *, tupled_args: bool = False) -> list[Any]:
    """One axis specification per leaf of `treedef`, from a prefix tree such as vmap's `in_axes`.

    None is an axis specification here, not an empty tree.

    Arguments:
        name: what to call `axis_tree` in errors.
        treedef: the structure of the arguments.
        axis_tree: a pytree prefix of that structure.
        tupled_args: `axis_tree` and `treedef` are those of positional arguments and of keywords; errors speak of the
            positional ones.

    >>> from catena.tree import structure
    >>> flatten_axes("in_axes", structure(((1, 2), {"a": 3})), (0, None))
    [0, 0, None]
    """
    leaves, prefix = flatten_unless(axis_tree, _is_none)
    repeats = leaf_counts(prefix, treedef)
    if repeats is not None:
        return [leaf for leaf, n in zip(leaves, repeats) for _ in range(n)]
    hint = ""
    if tupled_args:
        axis_tree, treedef = axis_tree[0], treedef.children()[0]
        if not isinstance(axis_tree, tuple):
            hint = f"Note that {name} that are non-trivial pytrees should always be wrapped in a tuple representing "
            hint += "the argument list."
    errors = [str(e(name)) for e in prefix_errors_treedef(axis_tree, treedef, _is_none)]
    details = "\n\n  ".join(errors)
    raise ValueError(
        f"{name} specification must be a tree prefix of the corresponding value; {hint}\n"
        f"  Mismatch details ({len(errors)} found):\n  {details}"
    )
