"""Notes for XLA at operations: they are kept in jaxprs, where tools that read these find them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from catena.core.config import overridden
from catena.core.context import context
from catena.core.namespace import shown as _shown
from catena.core.primitive import Primitive
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_map
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import Zero


def check_metadata(name: str, metadata: dict) -> None:
    """Raise where a note cannot be a parameter of an equation."""
    for key, value in metadata.items():
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"{name}: {key} must be hashable, a string or a number, got {value!r}") from None


def _jvp(primals, tangents, **params):
    """Notes belong to the value, not to its derivative."""
    return xla_metadata_value_p.bind(*primals, **params), tangents[0]


xla_metadata_value_p = Primitive(
    "xla_metadata_value",
    abstract=lambda x, **params: x,
    evaluate=lambda x, **params: x,
    jvp=_jvp,
    transpose=lambda ct, x, **params: [ct if type(ct) is Zero else xla_metadata_value_p.bind(ct, **params)],
    batch=lambda axis, args, dims, **params: (xla_metadata_value_p.bind(*args, **params), dims[0]),
    lower=lambda b, x, **params: x,
)


@contextlib.contextmanager
def _noted(notes: dict) -> Iterator[None]:
    place, before = context.said
    with overridden("said", (place, tuple(sorted((dict(before) | notes).items())))):
        yield


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Put notes at the operation that computes ``x``.

    Arguments:
      x: a tree of arrays. Without it, what is returned is a context manager and decorator for all operations in it:
        their equations keep the notes, ``eqn.ctx.xla_metadata``.
      kwargs: the notes: strings, numbers, booleans.
    Returns:
      The same tree.
    Raises:
      TypeError: a leaf is no array, or a note cannot be hashed.

    >>> import catena as jax
    >>> jax.make_jaxpr(lambda x: set_xla_metadata(x + 1, group="a"))(1.0)
    { lambda ; a:f32[]. let
        b:f32[] = add a 1.0:f32[]
        c:f32[] = xla_metadata_value[xla_metadata_kvs=(('group', 'a'),)] b
      in (c,) }
    """
    check_metadata("set_xla_metadata", kwargs)
    if x is None:
        return _noted(kwargs)
    notes = tuple(sorted(kwargs.items()))
    return tree_map(lambda leaf: xla_metadata_value_p.bind(leaf_value(leaf), xla_metadata_kvs=notes), x)


_open_door(globals(), "catena.experimental.xla_metadata", own=True)
__dir__ = _shown(globals())

_absent(globals())
