"""Values beside those of the graph, which only the nests of a plan read, and copies of views into their memory."""

from __future__ import annotations

import functools

from catena.compiler.graph.forms import NOTHING
from catena.compiler.graph.region import Value
from catena.compiler.plan import alike
from catena.compiler.plan.launches import launch_alike
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import Buffer


def beside(frame: Frame, form: str, shape, args, params=NOTHING, dtype=None) -> Value:
    """A value beside those of the graph, which only the nests planned here read."""
    values = frame.fused.region.values
    new = Value(form, tuple(shape), args[0].dtype if dtype is None else dtype, args, params, len(values))
    values.append(new)
    return new


def copy(p: Planner, frame: Frame, part: Value, target: Value, start: int | None = None) -> None:
    """Writes a view's elements to memory; where `start` is given, to panels (`nests.in_panels`)."""
    asked = functools.partial(alike.of_values, frame.fused, ("copy", start), [part], target)
    launch_alike(p, frame, asked, lambda: frame.nests.copy(part, target, start))


def laid_out(p: Planner, frame: Frame, part: Value, why: str = "", anew: bool = False) -> Value:
    """A view's elements in memory of their own, in their order; and why they are there, if nests read them. In memory
    that is there `anew` they stay while a loop runs.
    """
    made = beside(frame, "beside", part.shape, (part,))
    frame.blocks[made.number] = p.allocate_anew(made.nbytes) if anew else p.allocate(made.nbytes)
    if why:
        frame.fused.stored[made.number] = why
    copy(p, frame, part, made)
    return made


def copied(p: Planner, frame: Frame, part: Value, anew: bool = False) -> Buffer:
    """Memory that holds a view's elements in their order."""
    return frame.blocks[laid_out(p, frame, part, anew=anew).number]
