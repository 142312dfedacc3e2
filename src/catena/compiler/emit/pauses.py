"""What a long nest does at a pause (see `plan.pauses`)."""

from __future__ import annotations

from catena.compiler.emit.branches import when_it_leaves
from catena.compiler.emit.emitter import Emitter


def write(e: Emitter) -> None:
    """Asks; the nest's function ends where a handler has raised."""
    question = e.op("load ptr, ptr %ask")
    with when_it_leaves(e, e.op(f"call i1 {question}(ptr %ask)")):
        e.do("ret void")
