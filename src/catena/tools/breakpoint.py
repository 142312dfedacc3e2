"""``debug.breakpoint``: stop in the middle of a traced or compiled function and look at the values of its variables.

At the breakpoint the frames of the user's functions are captured. Traced values in them travel through a
debug callback, so that they have arrived as numbers when the program, compiled, vectorised or differentiated,
reaches the breakpoint; there a small command-line debugger opens.
"""

from __future__ import annotations

import sys
from typing import Any

from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.source import PACKAGE
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax.callbacks import debug_callback, io_callback
from catena.tools.frames import Frame

debugger = LazyModule("catena.tools.debugger")


def captured_frames(filter_frames: bool, num_frames: int | None) -> list[Frame]:
    """The frames of the callers, innermost first."""
    frames: list[Frame] = []
    frame: Any = sys._getframe(1)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        code = frame.f_code
        internal = code.co_filename.startswith(PACKAGE)
        if not internal or (not filter_frames and frames):
            frames.append(Frame(code.co_filename, code.co_name, frame.f_lineno, dict(frame.f_locals), frame.f_globals))
        frame = frame.f_back
    return frames


class Hole(NamedTuple):
    """Stands in a captured variable for the traced value with this number."""

    number: int


def take_tracers(frames: list[Frame]) -> tuple[list[Frame], list]:
    """The frames with holes in place of traced values, and those values; dead tracers become text."""
    taken: dict[int, tuple[int, Any]] = {}

    def take(x):
        if not isinstance(x, Tracer):
            return x
        if not x._trace.alive:
            return f"<{x!r}, which is over>"
        return Hole(taken.setdefault(id(x), (len(taken), x))[0])

    emptied = [
        frame._replace(variables={k: map_leaves(take, v) for k, v in frame.variables.items()}) for frame in frames
    ]
    return emptied, [x for _, x in taken.values()]


def map_leaves(fun, value, depth: int = 4):
    """``value`` with ``fun`` of what is in its dicts, lists and tuples; other objects are not looked into."""
    kind = type(value)
    if kind is dict and depth:
        return {k: map_leaves(fun, v, depth - 1) for k, v in value.items()}
    if kind in (list, tuple) and depth:
        return kind(map_leaves(fun, v, depth - 1) for v in value)
    return fun(value)


def fill_holes(frames: list[Frame], values) -> list[Frame]:
    """The frames with values in the holes."""
    fill = lambda x: values[x.number] if type(x) is Hole else x
    return [frame._replace(variables={k: map_leaves(fill, v) for k, v in frame.variables.items()}) for frame in frames]


def breakpoint(  # noqa: A001  (the name that JAX gives it)
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs,
):
    """Open a debugger when the program reaches this point, also inside compiled and transformed functions.

    Arguments:
      backend: ``"cli"`` or ``None``: the command-line debugger.
      filter_frames: whether frames of this package are left out.
      num_frames: how many frames are captured, innermost first; all by default.
      ordered: whether breakpoints are reached in program order.
      token: a tree of arrays; the breakpoint is reached when they are computed, and they are returned. What
        is computed from the returned arrays is computed after the breakpoint.
      kwargs: ``stdin`` and ``stdout``: text files that replace those of the process.
    Returns:
      ``token``.
    Raises:
      ValueError: for another backend, or where both ``ordered`` and ``token`` are given.

    >>> import io, catena as jax
    >>> @jax.jit
    ... def f(x):
    ...     y = x + 1
    ...     jax.debug.breakpoint(stdin=io.StringIO("p y\\ncontinue\\n"))
    ...     return y
    >>> f(1)
    Entering the debugger; `help` lists the commands.
    (catena) Array(2, dtype=int32)
    (catena) Array(2, dtype=int32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli' only, got {backend!r}")
    if ordered and token is not None:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    if num_frames is not None and num_frames < 0:
        raise ValueError(f"num_frames must not be negative, got {num_frames}")
    unknown = kwargs.keys() - {"stdin", "stdout"}
    if unknown:
        raise TypeError(
            f"debug.breakpoint got unexpected keyword arguments {sorted(unknown)}; it takes stdin and stdout"
        )
    frames, traced = take_tracers(captured_frames(filter_frames, num_frames))

    def stop(*values):
        debugger.Debugger(fill_holes(frames, values), **kwargs).cmdloop()

    if token is None:
        debug_callback(stop, *traced, ordered=ordered)
        return None

    def stop_and_pass(token_leaves, *values):
        stop(*values)
        return token_leaves

    leaves, tree = tree_flatten(token)
    avals = [get_aval(x) for x in leaves]
    structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    return tree_unflatten(tree, io_callback(stop_and_pass, structs, leaves, *traced))
