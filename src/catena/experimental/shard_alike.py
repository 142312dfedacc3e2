"""Arrays that are to be laid out over devices in the same way."""

from __future__ import annotations

from typing import Any

from catena.core.axes import move_axis
from catena.core.namespace import shown as _shown
from catena.core.primitive import Primitive
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import instantiate, is_undefined_primal


def _transpose(cts, *args):
    return [instantiate(ct) if is_undefined_primal(x) else None for ct, x in zip(cts, args, strict=True)]


def _batch(axis, args, dims):
    """The mapped axes are put in the same place; where only one is mapped, there is no more to say."""
    if None in dims:
        return list(args), list(dims)
    x, y = [move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    return shard_alike_p.bind(x, y), [0, 0]


shard_alike_p = Primitive(
    "shard_alike",
    multiple_results=True,
    abstract=lambda x, y: [x, y],
    evaluate=lambda x, y: [x, y],
    jvp=lambda primals, tangents: (shard_alike_p.bind(*primals), tangents),
    transpose=lambda cts, *args: [
        instantiate(c) if is_undefined_primal(x) else None for c, x in zip(cts, args, strict=True)
    ],
    batch=_batch,
    lower=lambda b, x, y: [x, y],
)


def shard_alike(x: Any, y: Any) -> tuple:
    """Say that two trees of arrays are to be laid out over devices in the same way.

    Arguments:
      x, y: trees of the same structure, with arrays of the same shapes.
    Returns:
      Both, as they are: a program runs on one device, where all arrays are laid out alike.
    Raises:
      ValueError: structures or shapes differ. TypeError: a leaf is no array.

    >>> import catena.numpy as jnp
    >>> shard_alike(jnp.zeros(2), jnp.ones(2))[1]
    Array([1., 1.], dtype=float32)
    """
    (xs, tree), (ys, other) = tree_flatten(x), tree_flatten(y)
    if tree != other:
        raise ValueError(f"shard_alike: x and y must have the same structure, got {tree} and {other}")
    pairs = [(leaf_value(a), leaf_value(b)) for a, b in zip(xs, ys, strict=True)]
    for a, b in pairs:
        if a.shape != b.shape:
            raise ValueError(f"shard_alike: x and y must have leaves of the same shapes, got {a.shape} and {b.shape}")
    done = [shard_alike_p.bind(a, b) for a, b in pairs]
    return tree.unflatten([a for a, _ in done]), tree.unflatten([b for _, b in done])


_open_door(globals(), "catena.experimental.shard_alike", own=True)
__dir__ = _shown(globals())

_absent(globals())
