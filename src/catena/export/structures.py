"""Structures of trees as data, and back: containers of Python's, and classes that users register by a name."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from catena.core.named import NamedTuple
from catena.core.tree import default_registry, tree_structure
from catena.core.treedef import LEAF, PyTreeDef, postorder
from catena.export.values import expect

T = TypeVar("T")


class Registration(NamedTuple):
    """How nodes of a class are written."""

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Any], Any] | None


_by_class: dict[type, Registration] = {}
_by_name: dict[str, Registration] = {}
_BUILTIN = {"tuple": tuple, "list": list, "none": type(None), "dict": dict, "ordered": OrderedDict}
_WORDS = {kind: word for word, kind in _BUILTIN.items()}


def _register(registration: Registration) -> None:
    kind, name = registration.kind, registration.name
    if kind in _by_class:
        raise ValueError(f"{kind} is registered for serialization already, as {_by_class[kind].name!r}")
    if name in _by_name:
        raise ValueError(f"serialized_name {name!r} is taken already, by {_by_name[name].kind}")
    _by_class[kind] = _by_name[name] = registration


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type[T]:
    """Say how nodes of a class of trees are written to exported programs.

    Arguments:
      nodetype: the class.
      serialized_name: its name in files; who reads them registers a class under the same name.
      serialize_auxdata: from the static data of a node to bytes.
      deserialize_auxdata: the inverse.
      from_children: from the static data and the children to a node; by default as registered with
        ``catena.tree_util``.
    Returns:
      ``nodetype``.
    Raises:
      ValueError: the class or the name is registered already, or the class is no tree.

    >>> import catena as jax
    >>> @jax.tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...
    ...     def tree_flatten(self):
    ...         return (self.a, self.b), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> no_bytes = {"serialize_auxdata": lambda aux: b"", "deserialize_auxdata": lambda data: None}
    >>> _ = jax.export.register_pytree_node_serialization(Pair, serialized_name="doc.Pair", **no_bytes)
    >>> double = jax.export.export(jax.jit(lambda p: Pair(p.b, p.a)))(Pair(1.0, 2.0))
    >>> jax.export.deserialize(double.serialize()).call(Pair(1.0, 2.0)).a
    Array(2., dtype=float32, weak_type=True)
    """
    for name, function in (("serialize_auxdata", serialize_auxdata), ("deserialize_auxdata", deserialize_auxdata)):
        if not callable(function):
            raise TypeError(f"register_pytree_node_serialization: {name} must be callable, got {function!r}")
    if from_children is None and default_registry.nodes.kind_of(nodetype) is None:
        raise ValueError(
            f"{nodetype} is no tree: call catena.tree_util.register_pytree_node first, or give from_children"
        )
    name = expect_name("register_pytree_node_serialization", serialized_name)
    _register(Registration(nodetype, name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Let a class of named tuples stand in exported programs.

    Arguments:
      nodetype: the class.
      serialized_name: its name in files; who reads them registers a class under the same name.
    Returns:
      ``nodetype``.
    Raises:
      ValueError: it is no class of named tuples, or the class or the name is registered already.

    >>> import catena as jax
    >>> from collections import namedtuple
    >>> Point = jax.export.register_namedtuple_serialization(namedtuple("Point", "x y"), serialized_name="doc.Point")
    >>> swap = jax.export.export(jax.jit(lambda p: Point(p.y, p.x)))(Point(1.0, 2.0))
    >>> jax.export.deserialize(swap.serialize()).call(Point(1.0, 2.0)).x.item()
    2.0
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"{nodetype!r} is no class of named tuples; see register_pytree_node_serialization")
    name = expect_name("register_namedtuple_serialization", serialized_name)
    _register(Registration(nodetype, name, lambda data: b"", lambda data: None, None))
    return nodetype


def expect_name(function: str, name) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{function}: serialized_name must be a string, got {name!r}")
    return name


def write_structure(tree: PyTreeDef) -> list:
    """The nodes, children before parents, each with its number of children."""
    return [_write_node(node) for node in postorder(tree)]


def _write_node(node: PyTreeDef) -> list | None:
    if node is LEAF:
        return None
    found = node.node_data()
    assert found is not None
    kind, data = found
    count = len(node.children())
    if kind in _WORDS:
        keys = list(data or ())
        if not all(type(key) in (str, int, bool) for key in keys):
            raise ValueError(f"keys of dictionaries in exported functions must be strings or integers, got {keys}")
        return [_WORDS[kind], count, keys]
    registration = _by_class.get(kind)
    if registration is None:
        raise ValueError(
            f"the class {kind} in the arguments or results of an exported function is not known to files: call "
            "catena.export.register_pytree_node_serialization, or register_namedtuple_serialization"
        )
    written = registration.write(data)
    if not isinstance(written, (bytes, bytearray)):
        raise TypeError(f"serialize_auxdata of {kind} must return bytes, got {written!r}")
    return ["registered", count, [registration.name, base64.b64encode(written).decode()]]


def read_structure(nodes) -> PyTreeDef:
    """The inverse of ``write_structure``.

    Raises:
      ValueError: these are no nodes of one tree, or of classes that are not registered.
    """
    done: list[PyTreeDef] = []
    for node in expect(nodes, list, "the nodes of a tree"):
        if node is None:
            done.append(LEAF)
            continue
        kind, count, data = expect(node, list, "a node")
        if not 0 <= expect(count, int, "the number of children") <= len(done):
            raise ValueError(f"a node of {count} children follows {len(done)} nodes")
        children = done[len(done) - count :]
        del done[len(done) - count :]
        done.append(_read_node(kind, data, children))
    if len(done) != 1:
        raise ValueError(f"the nodes of a structure make one tree, got {len(done)}")
    return done[0]


def _read_node(kind, data, children: list) -> PyTreeDef:
    if kind in _BUILTIN:
        cls = _BUILTIN[kind]
        keys: Any = list(data) if cls is dict else tuple(data) if cls is OrderedDict else None
        if keys is not None and (len(keys) != len(children) or len(set(keys)) != len(keys)):
            raise ValueError(f"a dictionary of {len(children)} items has the keys {keys}")
        return PyTreeDef.from_node_data_and_children(default_registry, (cls, keys), children)
    if kind != "registered":
        raise ValueError(f"there is no kind of node {kind!r}")
    name, written = data
    registration = _by_name.get(name)
    if registration is None:
        raise ValueError(
            f"the exported function has nodes of a class {name!r}: register one by this name, with "
            "catena.export.register_pytree_node_serialization"
        )
    aux = registration.read(base64.b64decode(written))
    if registration.build is not None:
        leaves = [child.unflatten([0] * child.num_leaves) for child in children]
        return tree_structure(registration.build(aux, tuple(leaves)))
    return PyTreeDef.from_node_data_and_children(default_registry, (registration.kind, aux), children)
