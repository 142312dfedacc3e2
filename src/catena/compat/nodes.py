"""The registry of pytree nodes as libraries read it that reach into JAX's: how a type is taken apart and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from catena.core.named import NamedTuple
from catena.core.tree_nodes import default_nodes


class Node(NamedTuple):
    """``to_iter(x)`` gives the children and the data of a node, and ``from_iter(data, children)`` rebuilds it."""

    to_iter: Callable
    from_iter: Callable


class Registry(Mapping[type, Node]):
    """What is registered now, by type."""

    def __getitem__(self, cls: type) -> Node:
        kind = default_nodes.kinds[cls]
        return Node(kind.flatten, kind.unflatten)

    def __iter__(self) -> Iterator[type]:
        return iter(default_nodes.kinds)

    def __len__(self) -> int:
        return len(default_nodes.kinds)


registry = Registry()
