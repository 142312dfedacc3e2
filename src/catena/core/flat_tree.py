"""Trees by their leaves: what is mapped over the leaves keeps its structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from catena.core.tree import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten


class FlatTree:
    """A tree as the tuple of its leaves, ``vals``, and its structure, ``tree``.

    >>> ft = FlatTree.flatten({"a": 1, "b": (2, 3)})
    >>> ft.map(lambda x: 10 * x).unflatten()
    {'a': 10, 'b': (20, 30)}
    """

    __slots__ = ("vals", "tree")

    def __init__(self, vals: Iterable, tree: PyTreeDef):
        self.vals, self.tree = tuple(vals), tree
        if len(self.vals) != tree.num_leaves:
            raise ValueError(f"a tree of {tree.num_leaves} leaves was given {len(self.vals)}: {tree}")

    @classmethod
    def flatten(cls, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> FlatTree:
        """A tree by its leaves; ``is_leaf`` as for ``tree.flatten``."""
        return cls(*tree_flatten(tree, is_leaf))

    def unflatten(self) -> Any:
        """The tree itself."""
        return tree_unflatten(self.tree, self.vals)

    def update(self, new_vals: Iterable) -> FlatTree:
        """A tree of this structure with other leaves."""
        return FlatTree(new_vals, self.tree)

    def map(self, f: Callable) -> FlatTree:
        """A tree of this structure with the leaves ``f(leaf)``."""
        return self.update(map(f, self.vals))

    def map2(self, f: Callable, t2: Iterable) -> FlatTree:
        """A tree of this structure with the leaves ``f(leaf, other)``; ``t2`` has as many leaves."""
        return self.update([f(a, b) for a, b in zip(self.vals, leaves_of(t2), strict=True)])

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator:
        return iter(self.vals)

    def __eq__(self, other) -> bool:
        return isinstance(other, FlatTree) and (self.vals, self.tree) == (other.vals, other.tree)

    def __hash__(self) -> int:
        return hash((self.vals, self.tree))

    def __repr__(self):
        return f"FlatTree({self.unflatten()})"


def leaves_of(x) -> Iterable:
    return x.vals if isinstance(x, FlatTree) else tree_leaves(x)
