"""Utilities for pytrees: nested containers of arrays. Names without the `tree_` prefix."""

from catena.core.tree import static
from catena.core.tree import tree_all as all
from catena.core.tree import tree_broadcast as broadcast
from catena.core.tree import tree_flatten as flatten
from catena.core.tree import tree_flatten_with_path as flatten_with_path
from catena.core.tree import tree_leaves as leaves
from catena.core.tree import tree_leaves_with_path as leaves_with_path
from catena.core.tree import tree_map as map
from catena.core.tree import tree_map_with_path as map_with_path
from catena.core.tree import tree_reduce as reduce
from catena.core.tree import tree_reduce_associative as reduce_associative
from catena.core.tree import tree_structure as structure
from catena.core.tree import tree_transpose as transpose
from catena.core.tree import tree_unflatten as unflatten

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
