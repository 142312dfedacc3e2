"""The program: typed steps, one after another, over memory whose place and size are known.

`plan.passes` make a program of a graph; emission (`emit`) only walks it. A loop or branch holds blocks of steps of its
own; nothing else in it is nested. Values of the graph do not occur any more, but for the numbers by which loop nests
name what they read and write: a step's `operands` say where these are.

    launch      a loop nest: in place, as a function, or in chunks on threads
    rows        loop nests that run together on blocks of rows
    contract    a product or convolution by tiles, perhaps with a loop nest on each block of its rows
    amx         a product of bfloat16 or int8 by the processor's own tiles (`plan.amx`)
    pack        its right operand, as these want it
    gemm        a product by BLAS
    sort order ranks select                       rows of keys
    transform   Fourier transforms along an axis
    small_matrices  a factorisation or solution of each of a batch of small matrices
    lapack host                                   calls out of the program
    while scan branch                             control flow over blocks
    new_stack stack_length write_stack read_stack growing lists
    copy        bytes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from catena.compiler.graph.forms import HowToSolve
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

    def detail(self) -> str:
        """What a line of the printed program says of it beside its memory."""
        return ""


@dataclass(eq=False)
class Copy(Step):
    target: Buffer
    source: Buffer
    bytes: int
    piece: int = 0  # the bytes of an element, where elements are copied one by one
    name: ClassVar[str] = "copy"

    def reads(self):
        return [self.source]

    def writes(self):
        return [self.target]


# ---- loop nests ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Launch(Step):
    """A scheduled loop nest.

    `opened` are the loops whose ranges are arguments of the nest's function, None where the nest is written in place;
    `chunk` is how many iterations of the range at `cut` make a task for a thread, None for one call. Tasks leave
    `parts[value]` bytes each in memory of their own. `pause` is where a long nest asks whether to go on.
    """

    nest: Nest
    operands: dict[int, Buffer]
    in_place: bool
    opened: Any = None
    chunk: int | None = None
    cut: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    units: int = 0
    pause: Any = None
    names: dict[int, int] = field(default_factory=dict)  # of values, where the nest is that of an equal step
    name: ClassVar[str] = "launch"

    def reads(self):
        return nest_reads([self.nest], self.operands)

    def writes(self):
        return nest_writes([self.nest], self.operands)

    def nests(self):
        return [self.nest]

    def detail(self):
        shared = "" if self.chunk is None else f", tasks of {self.chunk}"
        return f"{extents(self.nest)}{shared}: {operations(self.nest)}"


@dataclass(eq=False)
class Rows(Step):
    """Loop nests in turn on blocks of `block` rows; `private` values, with their bytes per row, live within a task."""

    group: list[Nest]
    private: dict[int, int]
    operands: dict[int, Buffer]
    block: int
    blocks_each: int  # of rows, in a task
    blocks_in_all: int
    units: int
    pauses: list  # of each nest
    name: ClassVar[str] = "rows"

    def reads(self):
        return nest_reads(self.group, self.operands)

    def writes(self):
        return nest_writes(self.group, self.operands)

    def nests(self):
        return self.group

    def detail(self):
        return f"{self.block} at a time, {self.blocks_in_all} times: {' | '.join(map(operations, self.group))}"


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


# ---- products ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Contract(Step):
    """C = A B by tiles. `rest` holds the columns of B beyond the panels; None where B lies unpacked at `b`.

    `after` is a loop nest that a task runs on the rows that it has computed, with its operands; `in_place` says that it
    writes memory which it reads.
    """

    plan: Any  # contraction.Plan
    tasks: Any  # contraction.Tasks
    a: Buffer
    b: Buffer
    rest: Buffer | None
    c: Buffer
    after: Nest | None = None
    in_place: bool = False
    operands: dict[int, Buffer] = field(default_factory=dict)
    name: ClassVar[str] = "contract"

    def reads(self):
        of_nest = [b for b in nest_reads(self.nests(), self.operands) if b is not self.c]
        return [self.a, self.b, *([self.rest] if self.rest is not None else []), *of_nest]

    def writes(self):
        return [self.c, *nest_writes(self.nests(), self.operands)]

    def flops(self):
        return 2 * self.plan.contraction.products + super().flops()

    def nests(self):
        return [] if self.after is None else [self.after]

    def detail(self):
        form = self.plan.contraction
        axes = (
            ("batch", [x.extent for x in form.batch]),
            ("rows", [x.extent for x in form.rows]),
            ("columns", [form.columns]),
            ("terms", [x.extent for x in form.terms]),
        )
        listed = ", ".join(f"{what} {' x '.join(map(str, sizes))}" for what, sizes in axes if sizes)
        how = ", B packed" if self.plan.packed else ", panels of B packed by tasks" if self.plan.packs else ""
        tile = f"tiles {self.plan.rows} x {self.plan.columns}{how}"
        return f"{form.type.name} {listed}; {tile}{f'; on its rows: {operations(self.after)}' if self.after else ''}"


@dataclass(eq=False)
class Gemm(Step):
    """Batches of matrix products by BLAS."""

    product: Any  # plan.products.Product
    a: Buffer
    b: Buffer
    c: Buffer
    name: ClassVar[str] = "gemm"

    def reads(self):
        return [self.a, self.b]

    def writes(self):
        return [self.c]

    def flops(self):
        p = self.product
        return 2 * (4 if p.dtype.kind == "c" else 1) * p.batch * p.m * p.n * p.k

    def detail(self):
        p = self.product
        return f"{p.dtype.name} {p.batch} x {p.m} x {p.k} x {p.n}"


# ---- keys ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Sort(Step):
    """Rows of keys, each sorted where it lies."""

    keys: Any  # plan.sorting.Keys
    rows: int
    at: Buffer
    spare: Buffer
    tables: list[Buffer]
    name: ClassVar[str] = "sort"

    def reads(self):
        return [self.at]

    def writes(self):
        return [self.at]

    def scratch(self):
        return [self.spare, *self.tables]

    def detail(self):
        return f"{self.rows} rows of {self.keys.n} keys of {self.keys.bits} bits"


@dataclass(eq=False)
class Order(Step):
    """The first `k` places of the stable order of rows, by several keys, the first the most significant."""

    keys: list  # plan.sorting.Keys
    bits: list[int]  # of the keys as they are given
    rows: int
    k: int
    sources: list[Buffer]
    out: Buffer
    columns: list[Buffer]  # keys, places ... of rows that are being sorted
    tables: list[list[Buffer]]  # for each key
    name: ClassVar[str] = "order"

    def reads(self):
        return self.sources

    def writes(self):
        return [self.out]

    def scratch(self):
        return [*self.columns, *(b for table in self.tables for b in table)]

    def detail(self):
        return f"{self.rows} rows of {self.keys[0].n} by {len(self.keys)} keys, the first {self.k} places"


@dataclass(eq=False)
class Ranks(Step):
    """The keys of given ranks of each row."""

    keys: Any  # plan.sorting.Keys
    rows: int
    each: int
    source: Buffer
    ranks: Buffer
    out: Buffer
    columns: list[Buffer]
    name: ClassVar[str] = "ranks"

    def reads(self):
        return [self.source, self.ranks]

    def writes(self):
        return [self.out]

    def scratch(self):
        return self.columns

    def detail(self):
        return f"{self.each} of {self.keys.n} keys in each of {self.rows} rows"


@dataclass(eq=False)
class Select(Step):
    """The places of the `k` least keys of each row, in order."""

    plan: Any  # plan.sorting.Selection
    source: Buffer
    out: Buffer
    columns: list[Buffer]
    best: list[Buffer]
    name: ClassVar[str] = "select"

    def reads(self):
        return [self.source]

    def writes(self):
        return [self.out]

    def scratch(self):
        return [*self.columns, *self.best]

    def detail(self):
        return f"the least {self.plan.k} of {self.plan.n} keys in each of {self.plan.rows} rows"


# ---- libraries and the host ----------------------------------------------------------------------------------


@dataclass(eq=False)
class Transform(Step):
    """Fourier transforms; `plan` says by which sweeps, `parts` are memory between them."""

    plan: Any  # plan.fourier.Transforms
    source: Buffer
    target: Buffer
    parts: list[Buffer]
    name: ClassVar[str] = "transform"

    def reads(self):
        return [self.source]

    def writes(self):
        return [self.target]

    def scratch(self):
        return self.parts

    def detail(self):
        return self.plan.describe()


class Call(Step):
    """A step that reads its operands whole, and writes its results."""

    ins: list[Buffer]
    outs: list[Buffer]

    def reads(self):
        return self.ins

    def writes(self):
        return self.outs


@dataclass(eq=False)
class Lapack(Call):
    """A routine for every member of a batch; see `runtime/lapack_calls.py` for `arguments`."""

    routine: str
    arguments: tuple
    batch: int
    ins: list[Buffer]
    outs: list[Buffer]
    work: dict[int, Buffer]  # workspaces by argument, one part for each chunk
    chunks: int
    groups: int  # of members, between which the program asks whether somebody pressed Ctrl-C
    units: int
    name: ClassVar[str] = "lapack"

    def scratch(self):
        return list(self.work.values())

    def detail(self):
        return f"{self.routine} for {self.batch}"


@dataclass(eq=False)
class SmallMatrices(Call):
    """A factorisation or solution of every member of a batch of small matrices."""

    routine: str
    how: HowToSolve
    type: str
    shapes: list[tuple[int, int]]  # of a member's operands
    batch: int
    ins: list[Buffer]
    outs: list[Buffer]
    work: int  # elementary operations for a member
    units: int
    name: ClassVar[str] = "small_matrices"

    def detail(self):
        return f"{self.routine} for {self.batch}"


@dataclass(eq=False)
class Host(Call):
    """A call of a Python function with the addresses of operands and results."""

    callback: Callable
    specs: tuple  # (shape, dtype) of the operands, and of the results
    ins: list[Buffer]
    outs: list[Buffer]
    name: ClassVar[str] = "host"


# ---- control flow --------------------------------------------------------------------------------------------


@dataclass(eq=False)
class While(Step):
    """Repeats `body` while `cond` leaves a true byte in `flag`; `units` is the work of one iteration."""

    cond: Block
    body: Block
    inputs: list[Buffer]
    carries: list[Buffer]
    flag: Buffer
    frees_stacks: bool
    units: int
    name: ClassVar[str] = "while"

    def reads(self):
        return [*self.inputs, *self.carries]

    def writes(self):
        return [*self.carries, self.flag]

    def scratch(self):
        return [other for _, other in self.body.turns]

    def blocks(self):
        return [self.cond, self.body]

    def detail(self):
        return turns(self.body).removeprefix("; ")


def turns(body: Block) -> str:
    """What a line of the printed program says of carries that change places with other memory."""
    return "".join(f"; {carry} and {other} change places" for carry, other in body.turns)


@dataclass(eq=False)
class Scan(Step):
    """Repeats `body` `length` times; `slices` of whole arrays move along with the iterations."""

    body: Block
    length: int
    reverse: bool
    inputs: list[Buffer]
    carries: list[Buffer]
    slices: list[Buffer]  # read
    made: list[Buffer]  # slices that are written
    frees_stacks: bool
    units: int
    name: ClassVar[str] = "scan"

    def reads(self):
        return [*self.inputs, *self.carries, *(s.owner() for s in self.slices)]

    def writes(self):
        return [*self.carries, *(s.owner() for s in self.made)]

    def scratch(self):
        return [other for _, other in self.body.turns]

    def blocks(self):
        return [self.body]

    def detail(self):
        return f"{self.length} iterations{', from the last to the first' * self.reverse}{turns(self.body)}"


@dataclass(eq=False)
class Branch(Step):
    """Runs one of several blocks, told by an integer of `bits` bits (clamped) or a bool."""

    cases: list[Block]
    index: Buffer
    bits: int
    clamped: bool
    inputs: list[Buffer]
    outs: list[Buffer]
    name: ClassVar[str] = "branch"

    def reads(self):
        return [self.index, *self.inputs]

    def writes(self):
        return self.outs

    def blocks(self):
        return self.cases


# ---- stacks --------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class NewStack(Step):
    item_bytes: int
    out: Buffer
    name: ClassVar[str] = "new_stack"

    def writes(self):
        return [self.out]


@dataclass(eq=False)
class StackLength(Step):
    stack: Buffer
    out: Buffer
    name: ClassVar[str] = "stack_length"

    def reads(self):
        return [self.stack]

    def writes(self):
        return [self.out]


@dataclass(eq=False)
class WriteStack(Step):
    stack: Buffer
    at: Buffer
    item: Buffer
    out: Buffer
    name: ClassVar[str] = "write_stack"

    def reads(self):
        return [self.stack, self.at, self.item]

    def writes(self):
        return [self.out]


@dataclass(eq=False)
class ReadStack(Step):
    stack: Buffer
    at: Buffer
    out: Buffer
    name: ClassVar[str] = "read_stack"

    def reads(self):
        return [self.stack, self.at]

    def writes(self):
        return [self.out]


# ---- text ----------------------------------------------------------------------------------------------------


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
