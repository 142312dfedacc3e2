"""Utilities for pytrees: the same functions as `catena.tree`, registration, key paths and treedefs."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.tree import PyTreeDef as PyTreeDef
from catena.core.tree import all_leaves as all_leaves
from catena.core.tree import default_registry as default_registry
from catena.core.tree import flatten_one_level as flatten_one_level
from catena.core.tree import flatten_one_level_with_keys as flatten_one_level_with_keys
from catena.core.tree import is_tree_node as is_tree_node
from catena.core.tree import register_dataclass as register_dataclass
from catena.core.tree import register_pytree_node as register_pytree_node
from catena.core.tree import register_pytree_node_class as register_pytree_node_class
from catena.core.tree import register_pytree_with_keys as register_pytree_with_keys
from catena.core.tree import register_pytree_with_keys_class as register_pytree_with_keys_class
from catena.core.tree import register_static as register_static
from catena.core.tree import tree_all as tree_all
from catena.core.tree import tree_broadcast as tree_broadcast
from catena.core.tree import tree_flatten as tree_flatten
from catena.core.tree import tree_flatten_with_path as tree_flatten_with_path
from catena.core.tree import tree_leaves as tree_leaves
from catena.core.tree import tree_leaves_with_path as tree_leaves_with_path
from catena.core.tree import tree_map as tree_map
from catena.core.tree import tree_map_with_path as tree_map_with_path
from catena.core.tree import tree_reduce as tree_reduce
from catena.core.tree import tree_reduce_associative as tree_reduce_associative
from catena.core.tree import tree_structure as tree_structure
from catena.core.tree import tree_transpose as tree_transpose
from catena.core.tree import tree_unflatten as tree_unflatten
from catena.core.tree import treedef_children as treedef_children
from catena.core.tree import treedef_is_leaf as treedef_is_leaf
from catena.core.tree import treedef_tuple as treedef_tuple
from catena.core.tree_keys import DictKey as DictKey
from catena.core.tree_keys import FlattenedIndexKey as FlattenedIndexKey
from catena.core.tree_keys import GetAttrKey as GetAttrKey
from catena.core.tree_keys import KeyEntry as KeyEntry
from catena.core.tree_keys import KeyPath as KeyPath
from catena.core.tree_keys import SequenceKey as SequenceKey
from catena.core.tree_keys import keystr as keystr
from catena.core.tree_partial import Partial as Partial

_open_door(globals(), "catena.tree_util")

__dir__ = _shown(globals())
