"""The program: typed steps, one after another, over memory whose place and size are known.

`plan.passes` make a program of a graph; emission (`emit`) only walks it. A loop or branch holds blocks of steps of its
own; nothing else in it is nested. Values of the graph do not occur any more, but for the numbers by which loop nests
name what they read and write: a step's `operands` say where these are. `plan.steps` has the kinds of steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine

ARGUMENT, RESULT, CONSTANT, SLOT, ARENA, SLICE, PART, NULL, CELL = (
    "argument result constant slot arena slice part null cell".split()
)
NUMBERED = (ARGUMENT, RESULT, CONSTANT)


@dataclass(eq=False, slots=True)
class Buffer:
    """A piece of memory of `bytes` bytes; each object is a piece of its own, equal to no other.

    kind      where it is                                   place
    argument  memory of the caller's                        number of the argument
    result    memory of the caller's                        number of the result
    constant  `array`, bound when the program is loaded
    slot      on the stack of the entry
    arena     in the block of temporaries                   bytes from its start, `room` of them taken
    slice     the part of `base` that an iteration works on
    part      a part of `base`                              bytes from its start
    null      nowhere: nothing is read or written there
    cell      memory of the caller's, behind the results: what checks found
    """

    kind: str
    bytes: int
    place: int = 0
    room: int = 0
    base: Buffer | None = None
    array: np.ndarray | None = None

    def __str__(self) -> str:
        if self.base is not None:
            return f"part of {self.base}" + (f" from {self.place} on" if self.kind == PART else "")
        where = f"+{self.place}" if self.kind == ARENA else f" {self.place}" if self.kind in NUMBERED else ""
        return f"{self.kind}{where}[{self.bytes}]"

    def owner(self) -> Buffer:
        """The whole that a slice is a part of."""
        return self if self.base is None else self.base.owner()


@dataclass
class Block:
    """Steps in order, and the values that their loop nests name by number. Of a loop's body, `turns` are carries and
    the memory beside each in which it makes their next values: these two change places after each iteration.
    """

    steps: list[Step]
    values: list
    turns: list[tuple[Buffer, Buffer]] = field(default_factory=list)


@dataclass
class Program:
    """What is written, and what is known of it beforehand."""

    body: Block
    inputs: list[Buffer]
    outputs: list[Buffer]
    machine: Machine
    fused: Any  # the steps that it was planned from, for reports
    arena_bytes: int = 0
    reused: dict[int, int] = field(default_factory=dict)  # result -> donated argument in whose memory it is
    flops: int = 0
    bytes: int = 0
    cell: Buffer | None = None  # of a program that is checked
    stops: bool = False  # where a check fails

    def __str__(self) -> str:
        return show(self)

    def nests(self) -> list[Nest]:
        """All loop nests."""
        return [nest for _, step in self.steps() for nest in step.nests()]

    def steps(self) -> Iterator[tuple[int, Step]]:
        """All steps with the number of loops and branches around them, in the order of the text."""
        return walk(self.body)


def walk(block: Block, depth: int = 0) -> Iterator[tuple[int, Step]]:
    """All steps of a block and of the blocks in it, and how deep they are."""
    pending = [(depth, step) for step in reversed(block.steps)]
    while pending:
        level, step = pending.pop()
        yield level, step
        for inner in reversed(step.blocks()):
            pending += [(level + 1, s) for s in reversed(inner.steps)]


@dataclass(eq=False, kw_only=True)
class Step:
    """One thing that the program does; `origin`, for reports, are the fused steps of its region and the one it was."""

    name: ClassVar[str] = ""
    origin: Any = None

    def reads(self) -> list[Buffer]:
        return []

    def writes(self) -> list[Buffer]:
        return []

    def scratch(self) -> list[Buffer]:
        """Memory that holds nothing before the step nor after it."""
        return []

    def blocks(self) -> list[Block]:
        return []

    def nests(self) -> list[Nest]:
        return []

    def flops(self) -> int:
        """Arithmetic operations."""
        return sum(nest_flops(nest) for nest in self.nests())

    def multiplied(self) -> str:
        """The name of the dtype of the products whose rate is the most that the step's operations may reach."""
        return "float32"

    def detail(self) -> str:
        """What a line of the printed program says of it beside its memory."""
        return ""


# ---- loop nests --------------------------------------------------------------------------------------------


def nest_reads(nests: Sequence[Nest], operands: dict[int, Buffer]) -> list[Buffer]:
    """The memory that nests read of what none of them writes before."""
    written: set[int] = set()
    found: dict[int, None] = {}
    for nest in nests:
        found |= dict.fromkeys(b for b in nest.loaded() if b not in written)
        written |= nest.written()
    return [operands[b] for b in found if b in operands]


def nest_writes(nests: Sequence[Nest], operands: dict[int, Buffer]) -> list[Buffer]:
    return [operands[b] for b in dict.fromkeys(b for n in nests for b in sorted(n.written())) if b in operands]


MOVES = ("const", "load", "load_now", "affine", "convert", "accumulator")  # statements that compute nothing


def nest_flops(nest: Nest) -> int:
    """Arithmetic operations of a nest."""
    return nest.trips * (sum(s.op not in MOVES for s in nest.stmts) + len(nest.folds))


def operations(nest: Nest) -> str:
    """What a nest computes, as the names of its operations."""
    names = Counter([s.op for s in nest.stmts if s.op not in MOVES] + [fold.kind for fold in nest.folds])
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in names.items()) or "copy"


def extents(nest: Nest) -> str:
    """The loops of a nest, outermost first; those that are folded away have a star."""
    loops = [f"{nest.extents[d]}{'*' if d in nest.reduced else ''}" for d in nest.order]
    return " x ".join(loops) or "once"


# ---- text --------------------------------------------------------------------------------------------------


def show(program: Program) -> str:
    """The program as text, a line for each step, those of loops and branches indented."""
    counts = f"{len(program.inputs)} arguments, {len(program.outputs)} results"
    head = f"program of {counts}, {program.arena_bytes} bytes of temporaries"
    return "\n".join([head, *(line for depth, step in program.steps() for line in show_step(depth, step))])


def show_step(depth: int, step: Step) -> list[str]:
    """What a step is, and under it the memory that it reads and writes."""
    memory = f"{', '.join(map(str, step.reads()))} -> {', '.join(map(str, step.writes()))}"
    margin = "  " * (depth + 1)
    return [f"{margin}{step.name} {step.detail()}".rstrip(), f"{margin}    {memory}"]
