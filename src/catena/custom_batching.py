"""Functions that say themselves how they are vectorised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten as _flatten
from catena.core.tree import tree_map as _tree_map
from catena.core.tree import tree_unflatten as _unflatten
from catena.lax.control_flow.map import map as _map
from catena.transform.custom_vmap import custom_vmap as custom_vmap


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function whose examples ``vmap`` computes one after another, in a loop.

    Arguments:
      f: the function.
    Returns:
      A `custom_vmap` function like it.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.custom_batching import sequential_vmap
    >>> @sequential_vmap
    ... def f(x):
    ...     jax.debug.print("{}", x)
    ...     return x + 1
    >>> jax.vmap(f)(jnp.arange(3))
    0
    1
    2
    Array([1, 2, 3], dtype=int32)
    """
    custom = custom_vmap(f)

    @custom.def_vmap
    def rule(axis_size: int, in_batched, *args):
        leaves, tree = _flatten(list(args))
        flags, _ = _flatten(in_batched)

        def one(mapped):
            mapped = iter(mapped)
            return custom(*_unflatten(tree, [next(mapped) if b else x for x, b in zip(leaves, flags, strict=True)]))

        out = _map(one, [x for x, b in zip(leaves, flags, strict=True) if b])
        return out, _tree_map(lambda _: True, out)

    return custom


_open_door(globals(), "catena.custom_batching")

__dir__ = _shown(globals())
