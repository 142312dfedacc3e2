"""The order of operations that do not need each other's results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from catena.core.effects import debug_effect
from catena.core.namespace import shown as _shown
from catena.core.primitive import Primitive
from catena.core.trace import leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.lax.elementwise import NOT_LINEAR

control_dep_p = Primitive(
    "control_dep",
    multiple_results=True,
    effects=lambda avals, params: frozenset([debug_effect]),
    abstract=lambda src, dst: [],
    evaluate=lambda src, dst: [],
    jvp=lambda primals, tangents: (control_dep_p.bind(*primals), []),
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims: (control_dep_p.bind(*args), []),
    lower=lambda b, src, dst: [],
)


def control_dep(src: Any, dst: Any) -> tuple:
    """Say that ``src`` is to be computed before ``dst``, and that both are, though nobody may read them.

    Programs compute one after the other what stands one after the other, where they do not compute it in one pass:
    there are no operations in flight that waited for such a word. The equation stays in jaxprs.

    Arguments:
      src, dst: arrays.
    Returns:
      An empty tuple.
    Raises:
      TypeError: one is no array.

    >>> import catena as jax
    >>> def f(x):
    ...     control_dep(x, x + 1)
    ...     return x
    >>> [eqn.primitive.name for eqn in jax.make_jaxpr(f)(1.0).eqns]
    ['add', 'control_dep']
    """
    return tuple(control_dep_p.bind(leaf_value(src), leaf_value(dst)))


def schedule(ops: Sequence) -> None:
    """Say that these are to be computed in this order.

    Arguments:
      ops: arrays.
    Raises:
      TypeError: one is no array.

    >>> import catena as jax
    >>> len(jax.make_jaxpr(lambda x: schedule([x, x + 1, x + 2]))(1.0).eqns)
    4
    """
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)


_open_door(globals(), "catena.experimental.control_deps", own=True)
__dir__ = _shown(globals())

_absent(globals())
