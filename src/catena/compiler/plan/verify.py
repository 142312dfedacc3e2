"""Checks a program: every step reads what was written before, and no two live pieces of memory overlap."""

from __future__ import annotations

from collections.abc import Iterator

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.symbols import plain
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import loops
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.plan import concurrent
from catena.compiler.plan.program import ARENA, ARGUMENT, CONSTANT, NULL, Block, Buffer, Program, Step
from catena.compiler.plan.steps import Branch, Concurrent, Copy, Launch, Scan
from catena.core.errors import CompileError


def verify(program: Program) -> None:
    """Raises CompileError naming the first step that is wrong."""
    spans: dict[Buffer, list[int]] = {}
    written = {b for b in program.inputs}
    _block(program.body, written, spans, 0)
    reused = {program.outputs[k] for k in program.reused}
    for k, buffer in enumerate(program.outputs):
        if buffer.bytes and buffer not in written and buffer not in reused:
            raise CompileError(f"program: nothing writes result {k}")
    _check_arena(program, spans)


def _block(block: Block, written: set[Buffer], spans: dict[Buffer, list[int]], at: int) -> int:
    """Checks the steps of a block, from place `at` on; returns the place after them."""
    for step in block.steps:
        start = at
        for buffer in step.reads():
            owner = buffer.owner()
            if owner.bytes and owner not in written and owner.kind not in (CONSTANT, ARGUMENT, NULL):
                raise CompileError(f"program: {_shown(step)} reads {buffer}, which nothing has written")
        _check_nests(step)
        at += 1
        if inner := step.blocks():
            # What the step writes is there for its blocks: the carries of a loop, and slices of whole arrays.
            inside = written | set(step.reads()) | {s for s in getattr(step, "slices", ())}
            halves = [step.halves] if isinstance(step, Scan) and step.halves is not None else []
            ends = []
            for each in (*inner, *halves):
                after = set(inside)
                at = _block(each, after, spans, at)
                ends.append(after)
            written |= set.intersection(*ends) if isinstance(step, Branch) or halves else ends[0]
        written.update(b for buffer in step.writes() for b in (buffer, buffer.owner()))
        if isinstance(step, Concurrent):  # each of whose steps has a span of its own
            _check_concurrent(step)
            continue
        for buffer in (*step.reads(), *step.writes(), *step.scratch()):
            span = spans.setdefault(buffer.owner(), [start, at])
            span[0], span[1] = min(span[0], start), max(span[1], at)
    return at


def _check_concurrent(step: Concurrent) -> None:
    """That neither of the sequences touches what the other writes."""
    first, second = step.sequences
    memory = concurrent.touched([*first.steps, *second.steps], {})
    count = len(first.steps)
    if any(concurrent.meet(one, other) for one in memory[:count] for other in memory[count:]):
        raise CompileError(f"program: {_shown(step)} have memory in common that one of them writes")


def _check_nests(step: Step) -> None:
    for nest in step.nests():
        loops.verify(nest)
    if isinstance(step, Launch) and not step.in_place and not step.parts:
        shared = set(step.reads()) & set(step.writes())
        if any(b.bytes for b in shared):
            raise CompileError(f"program: {_shown(step)} writes memory that it reads, and is not said to be in place")
    _check_places(step)
    if isinstance(step, Copy) and step.bytes > min(step.source.bytes, step.target.bytes):
        raise CompileError(f"program: {_shown(step)} copies more than there is")


def _check_places(step: Step) -> None:
    """That a loop nest which reads memory that the step writes as another value reads each byte where it is written:
    by the same nest, in the same iteration.
    """
    operands = getattr(step, "operands", None)
    written: dict[Buffer | None, dict[int, dict]] = {}  # by memory and value, the bytes of an iteration
    if not isinstance(operands, dict):
        return
    for k, nest in enumerate(step.nests()):
        for number, dtype, offset in _written(nest):
            by_value = written.setdefault(operands.get(number), {}).setdefault(number, {})
            way, first = _place(dtype, offset)
            by_value.setdefault((k, way), set()).update(range(first, first + TYPES[dtype].bytes))
    is_one = len(step.nests()) == 1 and step.nests()[0].trips == 1  # which reads before it writes
    for k, nest in enumerate(step.nests()) if written and not is_one else ():
        for number, dtype, offset in [s.attr for s in nest.stmts if s.op in LOADS and s.attr[0] in operands]:
            way, first = _place(dtype, offset)
            for other, places in written.get(operands[number], {}).items():
                if other != number and not places.get((k, way), set()).issuperset(
                    range(first, first + TYPES[dtype].bytes)
                ):
                    raise CompileError(
                        f"program: {_shown(step)} reads {operands[number]} where it has written elsewhere"
                    )


def _written(nest: loops.Nest) -> Iterator[tuple[int, str, Affine]]:
    """The values that a nest writes, and their places in each iteration."""
    for store in nest.stores:
        yield store.buffer, store.dtype, store.offset
    for fold in nest.folds:
        yield from fold.dests


def _place(dtype: str, offset: Affine) -> tuple[tuple, int]:
    """How a place moves with an iteration, in bytes, and where it begins: that what is checked lies so decides nothing,
    so no record needs it.
    """
    start, *moving = affine.scale(offset, TYPES[dtype].bytes)
    return plain(tuple(moving)), plain(start)


def _check_arena(program: Program, spans: dict[Buffer, list[int]]) -> None:
    pieces = [(b, span) for b, span in spans.items() if b.kind == ARENA and b.bytes]
    pieces.sort(key=lambda piece: piece[0].place)
    for i, (b, (start, stop)) in enumerate(pieces):
        end = b.place + b.bytes
        if end > program.arena_bytes:
            raise CompileError(f"program: {b} reaches beyond the {program.arena_bytes} bytes of temporaries")
        for c, (first, last) in pieces[i + 1 :]:
            if c.place >= end:
                break
            if first < stop and start < last:
                raise CompileError(f"program: {b} and {c} are in use at the same time and overlap")


def _shown(step: Step) -> str:
    return f"{step.name} ({step.detail()})"
