"""Utilities for pytrees: nested containers of arrays. Names without the `tree_` prefix."""

from catena import tree_util as _tree
from catena.core.namespace import alias as _alias
from catena.core.tree import static

all = _alias(_tree.tree_all, "all", __name__)
broadcast = _alias(_tree.tree_broadcast, "broadcast", __name__)
flatten = _alias(_tree.tree_flatten, "flatten", __name__)
flatten_with_path = _alias(_tree.tree_flatten_with_path, "flatten_with_path", __name__)
leaves = _alias(_tree.tree_leaves, "leaves", __name__)
leaves_with_path = _alias(_tree.tree_leaves_with_path, "leaves_with_path", __name__)
map = _alias(_tree.tree_map, "map", __name__)
map_with_path = _alias(_tree.tree_map_with_path, "map_with_path", __name__)
reduce = _alias(_tree.tree_reduce, "reduce", __name__)
reduce_associative = _alias(_tree.tree_reduce_associative, "reduce_associative", __name__)
structure = _alias(_tree.tree_structure, "structure", __name__)
transpose = _alias(_tree.tree_transpose, "transpose", __name__)
unflatten = _alias(_tree.tree_unflatten, "unflatten", __name__)

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
