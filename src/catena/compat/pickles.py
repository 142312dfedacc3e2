"""What pickles made by JAX hold, as ours: arrays, keys, structures of trees.

A pickle names the functions and classes that make its objects. Under the alias these names lead here (see
`private`), or to classes of ours whose parts are the same: key paths, dimension numbers, enumerations. What JAX itself
cannot pickle (devices, shardings, jitted functions) is in no pickle. Python's pickles run what they name: read those
only whose writers you trust.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core import dtypes
from catena.core.array import Array, ExtendedArray, make_array
from catena.core.treedef import PyTreeDef
from catena.random.generator import Generator, find_generator
from catena.random.keys import wrap_key_data


def array(make: Callable, arguments: tuple, state: tuple, aval: dict) -> Array:
    """An array: how NumPy makes an empty one, the state that it then takes, and whether its dtype is weak."""
    value = make(*arguments)
    value.__setstate__(state)
    return make_array(value.astype(dtypes.canonical(value.dtype), copy=False), aval.get("weak_type", False))


class Structure(PyTreeDef):
    """A treedef that is being read; it becomes a PyTreeDef when its state comes."""

    __slots__ = ()

    def __setstate__(self, state: tuple) -> None:
        registry, nodes = state
        done: list[PyTreeDef] = []
        for kind, arity, data, cls, _, _ in nodes:  # children first; the counts of leaves and nodes follow from them
            split = len(done) - arity
            done[split:] = [self.from_node_data_and_children(registry, node_data(kind, data, cls), done[split:])]
        become(self, PyTreeDef, done[0])


# The kinds of nodes that JAX stores by a number without their class; above them, a class stands beside the data.
CLASSES = {1: type(None), 2: tuple, 4: list, 5: dict}


def node_data(kind: int, data: Any, cls: type | None) -> tuple | None:
    """The class and the data of a node; None for a leaf (kind 0). A named tuple (3) has its class for data."""
    if kind == 0:
        return None
    return (data, None) if kind == 3 else (CLASSES.get(kind, cls), data)


class Keys(ExtendedArray):
    """An array of typed keys that is being read; it becomes an Array when its state comes."""

    __slots__ = ()

    def __setstate__(self, state: dict) -> None:
        become(self, ExtendedArray, wrap_key_data(state["_base_array"], impl=state["_impl"]))


def become(unfinished: Any, cls: type, finished: Any) -> None:
    """Give an object that pickle has made the parts, and the class, of what was read."""
    for part in (name for base in cls.__mro__ for name in getattr(base, "__slots__", ()) if name != "__weakref__"):
        if hasattr(finished, part):
            setattr(unfinished, part, getattr(finished, part))
    unfinished.__class__ = cls


class Implementation:
    """JAX's description of a generator: making it gives ours of that name. Its functions are placeholders."""

    def __new__(
        cls, key_shape: tuple, seed: Any, split: Any, bits: Any, fold_in: Any, name: str, tag: str
    ) -> Generator:
        return find_generator(name)
