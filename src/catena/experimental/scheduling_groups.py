"""Calls with notes for a scheduler of operations. There is none on a CPU: the notes stay in jaxprs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catena.core.dead_code import prune_call
from catena.core.jaxpr import Eqn
from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_map as map  # noqa: F401
from catena.core.sequences import safe_zip as zip  # noqa: F401
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.experimental.xla_metadata import check_metadata
from catena.lax.composites import annotated_call, call_annotated
from catena.transform.functions import check_callable

xla_metadata_call_p = annotated_call("xla_metadata_call")


def xla_metadata_call(f: Callable | None = None, **meta: Any) -> Callable:
    """A function whose calls are one equation in jaxprs, with these notes.

    Arguments:
      f: the function; without it, what is returned is a decorator.
      meta: the notes: strings, numbers, booleans.
    Returns:
      A function like ``f``, of positional arguments.
    Raises:
      TypeError: a note cannot be hashed.

    >>> import catena as jax
    >>> jax.make_jaxpr(xla_metadata_call(lambda x: x + 1, cost=3))(1.0).eqns[0].params["cost"]
    3
    """
    check_metadata("xla_metadata_call", meta)
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    check_callable(f)

    @functools.wraps(f)
    def call(*args):
        return call_annotated(xla_metadata_call_p, f, args, lambda tree: meta)

    return call


def dce_jaxpr_xla_metadata_rule(used_outputs: list[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """What is left of a call with notes where not all of its results are used.

    Arguments:
      used_outputs: which results are.
      eqn: the call.
    Returns:
      For each operand whether it is still read, and the smaller equation; None where nothing is left.
    """
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    left = prune_call(eqn, used_outputs)
    return [v in left.invars for v in eqn.invars], left


xla_metadata_call_p.prune = prune_call


def scheduling_group(name: str) -> Callable:
    """A decorator for functions whose operations are to be scheduled together.

    Arguments:
      name: of the group.
    Returns:
      A decorator; the decorated function takes positional arguments.
    Raises:
      TypeError: ``name`` is no string.

    >>> import catena as jax
    >>> jax.make_jaxpr(scheduling_group("first")(lambda x: x + 1))(1.0).eqns[0].params["scheduling_group"]
    'first'
    """
    if not isinstance(name, str):
        raise TypeError(f"scheduling_group: the name must be a string, got {name!r}")
    return xla_metadata_call(scheduling_group=name)


_open_door(globals(), "catena.experimental.scheduling_groups", own=True)
__dir__ = _shown(globals())

_absent(globals())
