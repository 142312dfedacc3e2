"""The kinds of steps that programs consist of.

launch      a loop nest: in place, as a function, or in chunks on threads
rows        loop nests that run together on blocks of rows
contract    a product or convolution by tiles, perhaps with a loop nest on each block of its rows
amx         a product of bfloat16 or int8 as they are (`plan.amx`)
pack        its right operand, as these want it
split product   one of float32, whose numbers are sums of three bfloat16 (`plan.split_products`)
split       its operands, as these want them
gemm        a product by BLAS
sort order ranks select                       rows of keys
transform   Fourier transforms along an axis
small_matrices  a factorisation or solution of each of a batch of small matrices
lapack host                                   calls out of the program
while scan branch                             control flow over blocks
concurrent  two blocks at the same time
new_stack stack_length write_stack read_stack growing lists
copy        bytes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from catena.compiler.graph.forms import HowToSolve
from catena.compiler.kernels.loops import CarefulNest, Nest
from catena.compiler.plan.program import (
    Block,
    Buffer,
    Step,
    extents,
    nest_reads,
    nest_writes,
    operations,
)


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
    `parts[value]` bytes each in memory of their own. `pause` is where a long nest asks whether to go on. `careful` is
    the nest for where the processor has met subnormal numbers (see `plan.careful`).
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
    careful: CarefulNest | None = None
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


# ---- products ------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class Product(Step):
    """C = A B, in tasks. `after` is a loop nest that a task runs on the rows that it has computed, with its `operands`;
    `in_place` says that it writes memory which it reads.
    """

    c: Buffer
    after: Nest | None = None
    in_place: bool = False
    operands: dict[int, Buffer] = field(default_factory=dict)

    def factors(self) -> list[Buffer]:
        """What it multiplies."""
        raise NotImplementedError

    def panels(self) -> list[Buffer]:
        """Memory beside C that it writes for itself."""
        return []

    def multiplications(self) -> int:
        raise NotImplementedError

    def form(self) -> str:
        """What a line of the printed program says of the product alone."""
        raise NotImplementedError

    def reads(self):
        of_nest = [b for b in nest_reads(self.nests(), self.operands) if b is not self.c]
        return [*self.factors(), *of_nest]

    def writes(self):
        return [self.c, *self.panels(), *nest_writes(self.nests(), self.operands)]

    def nests(self):
        return [] if self.after is None else [self.after]

    def flops(self):
        return 2 * self.multiplications() + super().flops()

    def detail(self):
        return f"{self.form()}{f'; on its rows: {operations(self.after)}' if self.after else ''}"


@dataclass(eq=False)
class Contract(Product):
    """A product by tiles. `rest` holds the columns of B beyond the panels; None where B lies unpacked at `b`."""

    plan: Any  # contraction.Plan
    tasks: Any  # contraction.Tasks
    a: Buffer
    b: Buffer
    rest: Buffer | None
    name: ClassVar[str] = "contract"

    def factors(self):
        return [self.a, self.b, *([self.rest] if self.rest is not None else [])]

    def multiplications(self):
        return self.plan.contraction.products

    def multiplied(self):
        return self.plan.contraction.type.name

    def form(self):
        form = self.plan.contraction
        axes = (
            ("batch", [x.extent for x in form.batch]),
            ("rows", [x.extent for x in form.rows]),
            ("columns", [form.columns]),
            ("terms", [x.extent for x in form.terms]),
        )
        listed = ", ".join(f"{what} {' x '.join(map(str, sizes))}" for what, sizes in axes if sizes)
        how = ", B packed" if self.plan.packed else ", panels of B packed by tasks" if self.plan.packs else ""
        how += f" from {self.plan.read.name}" if self.plan.read is not form.type else ""
        return f"{form.type.name} {listed}; tiles {self.plan.rows} x {self.plan.columns}{how}"


@dataclass(eq=False)
class Gemm(Step):
    """Batches of matrix products by BLAS."""

    product: Any  # plan.blas.Product
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

    def multiplied(self):
        return self.product.dtype.name

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
    """Repeats `body` `length` times; `slices` of whole arrays move along with the iterations. `halves` is the body in
    steps of two tasks each, where threads do the first ones of all iterations and the second ones at the same time.
    """

    body: Block
    length: int
    reverse: bool
    inputs: list[Buffer]
    carries: list[Buffer]
    slices: list[Buffer]  # read
    made: list[Buffer]  # slices that are written
    frees_stacks: bool
    units: int
    halves: Block | None = None
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
        how = ", from the last to the first" * self.reverse + ", by halves of the rows" * (self.halves is not None)
        return f"{self.length} iterations{how}{turns(self.body)}"


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


@dataclass(eq=False)
class Concurrent(Step):
    """Two blocks at the same time, each on one thread; neither touches what the other writes (`plan.concurrent`)."""

    sequences: list[Block]
    name: ClassVar[str] = "concurrent"

    def reads(self):
        made = set(self.writes())
        return [b for b in self._each(lambda step: step.reads()) if b not in made]

    def writes(self):
        return self._each(lambda step: step.writes())

    def blocks(self):
        return self.sequences

    def detail(self):
        return " and ".join(str(len(each.steps)) for each in self.sequences) + " steps"

    def _each(self, of: Callable[[Step], list[Buffer]]) -> list[Buffer]:
        return list(dict.fromkeys(b for each in self.sequences for step in each.steps for b in of(step)))


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
