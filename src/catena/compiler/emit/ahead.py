"""Rows at computed places, of which those of later iterations are fetched while one is read (`plan.ahead`)."""

from __future__ import annotations

from catena.compiler.emit.body_text import LATER
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.loops import LOADS, Nest


def loads(nest: Nest) -> dict[int, int]:
    """The loads of such rows, and how many iterations before they are fetched."""
    return {i: s.ahead for i, s in enumerate(nest.stmts) if s.ahead and s.attr[2][2]}


def places(body, d: int, i, stop, outside, copies) -> None:
    """At iteration `i` of dimension `d`, which ends at `stop`, computes where the rows of later iterations begin, and
    tells the copies of the body there; `outside` is that around the loop.
    """
    e, now = body.e, body.iv.get(d)
    for key, count in loads(body.nest).items():
        if not body.layout.is_needed(key):
            continue
        last = e.op(f"sub i64 {e.size(stop)}, 1")
        later = e.least(e.op(f"add i64 {i}, {count}"), last)
        copy, body.iv[d] = outside.child(), later
        body.advance(copy, d, later)
        _, dtype, offset = body.nest.stmts[key].attr
        for t in _computed(body.nest, d, offset):
            body.statement(t, [copy])
        place, _ = body.start_of(key, TYPES[dtype].memory, offset, copy, 1)
        for c in copies:
            c.env[LATER, key] = place
        body.iv[d] = now


def in_run(body, d: int, i, copies) -> list:
    """The copies of the body at iteration `i` of a run along dimension `d`, told where rows of later ones begin: they
    may be those of the next run.
    """
    inner = [c.child() for c in copies]
    for outside, c in zip(copies, inner):
        places(body, d, i, body.nest.extents[d], outside, [c])
    return inner


def _computed(nest: Nest, d: int, offset: Affine) -> list[int]:
    """The statements that an offset is computed of, and that change with dimension `d`, in order."""
    found: set[int] = set()
    pending = [t for t, _ in offset[2]]
    while pending:
        i = pending.pop()
        if i in found or not nest.depends[i] >> d & 1:
            continue
        found.add(i)
        s = nest.stmts[i]
        inner = s.attr[2] if s.op in LOADS else s.attr if s.op == "affine" else None
        pending += [*s.args, *(t for t, _ in (inner[2] if inner else ()))]
    return sorted(found)
