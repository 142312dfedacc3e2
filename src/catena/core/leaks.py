"""Leaked tracers, found while it can still be said who holds them (``jax_check_tracer_leaks``)."""

import gc
import sys
import weakref
from types import FrameType

from catena.core.context import context
from catena.core.errors import LeakedTracerError, UnexpectedTracerError, see
from catena.core.trace import Trace, Tracer


class running:  # noqa: N801  (a context manager, used like a keyword)
    """Run a function under ``trace`` within a ``with`` block, and end the trace with it.

    The block drops its own containers of tracers (``del outs``) and its name for the trace before it ends: what then
    still holds a tracer has leaked it, which is an error where ``jax_check_tracer_leaks`` is set.

    >>> from catena.core.staging import DebugInfo, JaxprTrace
    >>> with running(JaxprTrace(context.trace, DebugInfo("an example", "f"))) as trace:
    ...     assert context.trace is trace
    >>> trace.alive
    False
    """

    __slots__ = ("trace", "previous")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self):
        self.previous = context.trace
        context.trace = self.trace
        return self.trace

    def __exit__(self, error, *exc_info):
        context.trace = self.previous
        trace, self.trace = self.trace, None
        if error is not None or not context.check_tracer_leaks:
            trace.end()
            return
        kept, watched = trace.holders(), weakref.ref(trace)
        trace.end()
        del trace
        check(watched, kept)


def check(watched: weakref.ref, kept: list) -> None:
    """Raise where the watched trace is still alive because something but ``kept`` holds one of its tracers."""
    if watched() is None:
        return
    gc.collect()
    trace = watched()
    if trace is None:
        return
    tracers = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    kept.append(tracers)
    if not tracers or not holders_of(tracers, kept):  # one walk through the heap, where all is well
        return
    described = [describe(x, kept) for x in tracers if holders_of([x], kept)]
    if described:
        raise LeakedTracerError(
            f"Leaked trace of {trace.name}. Leaked tracer(s):\n\n"
            + "\n\n".join(described)
            + f"\n\nReturn the values from the function instead of storing them.{see(UnexpectedTracerError)}"
        )


def describe(tracer: Tracer, ignored: list) -> str:
    """A tracer, where it came from, and who holds it."""
    lines = [repr(tracer), f"It was made {tracer.describe_making()}."]
    for holder in holders_of([tracer], ignored)[:3]:
        lines.append(f"It is held by {describe_holder(holder, tracer)}.")
    return "\n".join(lines)


def holders_of(objects: list, ignored: list) -> list:
    """What refers to one of these objects, without running functions and what is listed."""
    asked = tuple(objects)  # itself what the call is given, and so known: Python 3.13 lists it
    skipped = {id(o) for o in (*ignored, objects, asked)}
    return [o for o in gc.get_referrers(*asked) if id(o) not in skipped and not isinstance(o, FrameType)]


def describe_holder(holder, held) -> str:
    """Who holds a value: a variable of a module, an attribute, an entry of a container."""
    found = module_variable(holder, held)
    if found:
        return found
    if isinstance(holder, dict):
        keys = [k for k, v in holder.items() if v is held]
        place = f"the key {keys[0]!r} of a dict" if keys else "a dict"
        owners = [o for o in holders_of([holder], []) if getattr(o, "__dict__", None) is holder]
        return (
            f"the attribute {keys[0]} of a {type(owners[0]).__name__}" if owners and keys else place + owner_of(holder)
        )
    if isinstance(holder, (list, tuple)):
        position = next(i for i, v in enumerate(holder) if v is held)
        return f"entry {position} of a {type(holder).__name__}{owner_of(holder)}"
    attribute = next((k for k, v in getattr(holder, "__dict__", {}).items() if v is held), None)
    return f"the attribute {attribute} of a {type(holder).__name__}" if attribute else f"a {type(holder).__name__}"


def owner_of(container) -> str:
    """``, the variable l of module m`` where a module's variable is this container."""
    for holder in holders_of([container], []):
        found = module_variable(holder, container)
        if found:
            return f", {found}"
    return ""


def module_variable(holder, held) -> str | None:
    """``the variable x of module m`` where ``holder`` is the namespace of a module."""
    if not isinstance(holder, dict) or "__name__" not in holder:
        return None
    module = sys.modules.get(holder["__name__"])
    if module is None or vars(module) is not holder:
        return None
    name = next((k for k, v in holder.items() if v is held), None)
    return f"the variable {name} of module {holder['__name__']}" if name else None
