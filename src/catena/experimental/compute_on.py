"""Where parts of a program are to be computed. A CPU is one place: the words are checked, and kept in jaxprs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from catena.core.config import overridden
from catena.core.context import context
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.tree_errors import broadcast_prefix
from catena.core.unbuilt import absent as _absent
from catena.lax.composites import annotated_call, call_annotated
from catena.transform.functions import check_callable
from catena.transform.stages import check_compiler_options

TYPES = ("device_host", "device", "tpu_sparsecore")
STREAM = "gpu_stream:"
SPACES = ("Device", "Host", "Any")

compute_on_p = annotated_call("compute_on")


def check_type(compute_type: Any) -> None:
    """Raise where this is no kind of place to compute on."""
    if not isinstance(compute_type, str):
        raise TypeError(f"compute_on: compute_type must be a string, got {compute_type!r}")
    if compute_type not in TYPES and not compute_type.startswith(STREAM):
        names = ", ".join(TYPES)
        raise ValueError(f"Invalid compute type {compute_type!r}: compute_on takes one of {names}, {STREAM}NUMBER")


def checked_spaces(name: str, spaces: tuple) -> tuple:
    """``spaces``, or a TypeError where one is no memory space."""
    for space in spaces:
        if getattr(space, "name", None) not in SPACES:
            raise TypeError(f"{name} must be memory spaces (of catena.memory.Space), got {space!r}")
    return spaces


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Compute what stands in a ``with`` block, or in a decorated function, on this kind of place.

    Here all of them are the processor that runs the program, so nothing changes but what equations note.

    Arguments:
      compute_type: ``"device_host"``, ``"device"``, ``"tpu_sparsecore"`` or ``"gpu_stream:NUMBER"``.
    Raises:
      TypeError: it is no string. ValueError: it is none of these.

    >>> import catena as jax
    >>> @compute_on("device_host")
    ... def f(x):
    ...     return x + 1
    >>> jax.make_jaxpr(f)(1.0).eqns[0].ctx.compute_type
    'device_host'
    """
    check_type(compute_type)
    with overridden("said", (compute_type, context.said[1])):
        yield


def compute_on2(
    f: Callable | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: dict | None = None,
) -> Callable:
    """A function whose calls are computed on this kind of place; in jaxprs they are one equation.

    Arguments:
      f: the function; without it, what is returned is a decorator.
      compute_type: as for ``compute_on``.
      out_memory_spaces: the memory spaces of the results, a tree that is a prefix of theirs.
      compiler_options: options of XLA; their names and values are checked.
    Returns:
      A function like ``f``, of positional arguments.
    Raises:
      TypeError, ValueError: an argument is not as described.

    >>> import catena as jax
    >>> from types import SimpleNamespace
    >>> device = SimpleNamespace(name="Device")
    >>> double = compute_on2(lambda x: 2 * x, compute_type="device_host", out_memory_spaces=device)
    >>> jax.make_jaxpr(double)(1.0).eqns[0].params["compute_type"]
    'device_host'
    """
    check_type(compute_type)
    check_compiler_options(compiler_options)
    if f is None:
        options = {"out_memory_spaces": out_memory_spaces, "compiler_options": compiler_options}
        return functools.partial(compute_on2, compute_type=compute_type, **options)
    check_callable(f)

    def parameters(tree) -> dict:
        spaces = broadcast_prefix(out_memory_spaces, tree.unflatten([0] * tree.num_leaves))
        spaces = checked_spaces("out_memory_spaces", tuple(spaces))
        return {"compute_type": compute_type, "out_memory_spaces": spaces}

    @functools.wraps(f)
    def call(*args):
        return call_annotated(compute_on_p, f, args, parameters)

    return call


_open_door(globals(), "catena.experimental.compute_on", own=True)
__dir__ = _shown(globals())

_absent(globals())
