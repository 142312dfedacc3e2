"""Two sequences of steps at the same time: a function of two chunks, each of which makes one's calls."""

from __future__ import annotations

from collections.abc import Iterator

from catena.compiler.emit import calls, parallel
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.calls import Call
from catena.compiler.emit.clock import Clock
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.program import Step
from catena.compiler.plan.steps import Concurrent, Launch


def concurrent(w, step: Concurrent) -> None:
    """Writes them; one after the other where there is one thread, or each step has a clock."""
    if w.pool is None or isinstance(w.clock, Clock):
        for block in step.sequences:
            w.block(block)
        return
    found = [[(_made(w, each), isinstance(each, Launch)) for each in block.steps] for block in step.sequences]
    addresses = [x for sequence in found for call, _ in sequence for x in call.addresses]
    numbers = [n for sequence in found for call, _ in sequence for n in call.numbers]
    parallel.through_pool(w, _text(found, len(addresses), len(numbers)), addresses, len(found), numbers)


def _made(w, step: Step) -> Call:
    call = calls.of_step(w, step)
    assert call is not None  # the plan has no others beside each other
    return call


def _text(found: list[list[tuple[Call, bool]]], addresses: int, numbers: int) -> str:
    """The function that makes the calls of sequence %k of two; in its table stands what they are given, in order."""
    e = Emitter()
    places = iter(range(addresses))
    told = parallel.load_pointer(e, addresses) if numbers else "null"
    values = (e.op(f"load i64, ptr {e.element(told, 'i64', i)}") for i in range(numbers))
    for is_first in each_way(e, e.op("icmp eq i64 %k, 0")):
        for call, is_nest in found[not is_first]:
            _call(e, call, is_nest, places, values)
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _call(e: Emitter, call: Call, is_nest: bool, places: Iterator[int], numbers: Iterator[str]) -> None:
    """A call of a nest's function, or of one that runs a chunk, the only one."""
    pointers = [parallel.load_pointer(e, next(places)) for _ in call.addresses]
    if is_nest:
        given = [*(f"ptr {p}" for p in pointers), *(f"i64 {next(numbers)}" for _ in call.numbers)]
        e.do(f"call void @{call.function}({', '.join(given)})")
    else:
        e.do(f"call void @{call.function}(ptr {parallel.table(e, pointers)}, i64 0)")
