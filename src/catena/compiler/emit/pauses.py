"""What a long nest does at a pause (see `plan.pauses`)."""

from __future__ import annotations

from catena.compiler.emit.emitter import Emitter


def write(e: Emitter) -> None:
    """Asks; the nest's function ends where a handler has raised."""
    leave, go = e.label(), e.label()
    question = e.op("load ptr, ptr %ask")
    e.branch(e.op(f"call i1 {question}(ptr %ask)"), leave, go)
    e.start(leave)
    e.do("ret void")
    e.start(go)
