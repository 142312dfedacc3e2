"""Fusion: which loop nests compute the values of a region that are stored (see `storage`).

Kernels are grown in topological order: a stored value joins an earlier kernel of the same iteration space when
all it reads exists by then, or is computed in that kernel at the same index. So an optimiser step with several
results, a sum beside the map it sums, or two sums of one array are one pass over memory. A value whose readers
all sit in its own kernel needs no memory after all.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from catena.compiler.graph import thresholds
from catena.compiler.graph.constants import scalar
from catena.compiler.graph.forms import FORMS
from catena.compiler.graph.region import Region, Value
from catena.compiler.plan import slices
from catena.compiler.plan.kernel_length import has_own_loop, is_better_apart, is_too_long
from catena.compiler.plan.storage import RESULT, Storage, is_checked
from catena.core.dtypes import KIND

MAX_ROOTS = 12
NEAR, MOST_READERS = 3, 8  # kernels that a value may join: the last ones, and readers of a value with so few
WIDE_SUMS = frozenset(map(np.dtype, ("float64", "complex128")))
COUNTED = 1 << 12  # elements of what is made of counting alone, and made first


@dataclass
class Kernel:
    """One loop nest over `space`: what it stores and what it reduces."""

    space: tuple
    axes: tuple = ()
    roots: list[Value] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)  # read at another index than that of the iteration
    dropped: set[int] = field(default_factory=set)  # roots that need no memory
    ops: int = 0
    kept: int = 0  # roots that may need memory
    piece: int = 0  # of the work on its space: see `cuts`

    @property
    def own(self) -> frozenset[int]:
        """The values that it makes, at the places where it reads them."""
        return frozenset([v.number for v in self.roots if not FORMS[v.form].fold])


@dataclass
class Step:
    """One thing that the program does: a kernel, or a node that is not one."""

    kernel: Kernel | None
    node: Value | None = None
    reads: set[int] = field(default_factory=set)  # values in memory that it reads (roots of aliases)
    writes: list[int] = field(default_factory=list)
    group: Any = None  # a `rows.RowGroup`: kernels that run together
    nest: Any = None  # the kernel's loop nest, once it is built
    alternates: bool = False  # whether that asks something at every so many places (see `nests.in_turn`)
    epilogue: Any = None  # of a product: the loop nest of the kernel that follows on each block of rows (`epilogues`)
    follower: Step | None = None  # the step that the epilogue was
    operands: frozenset[int] = frozenset()  # of a product with an epilogue: what the product itself reads
    part: bool = False  # whether it copies what may be read where it lies (see `slices`)
    bodies: list[Fused] = field(default_factory=list)  # of a loop (its condition first) or branch

    @property
    def own_kernel(self) -> Kernel:
        """The kernel of a step that is one."""
        assert self.kernel is not None
        return self.kernel

    @property
    def own_node(self) -> Value:
        """The node of a step that is one."""
        assert self.node is not None
        return self.node

    def what(self) -> str:
        """What a line of text says of the step."""
        if self.kernel is not None:
            over = f", reduces {self.kernel.axes}" if self.kernel.axes else ""
            return f"kernel over {self.kernel.space}{over}"
        if self.group is not None:
            return f"{len(self.group.members)} kernels on {self.group.block} rows at a time"
        follows = ", then a kernel on its rows" if self.follower is not None else ""
        return self.own_node.form + follows


def _numbers(values) -> str:
    return " ".join(f"v{n}" for n in sorted(values))


@dataclass
class Fused:
    region: Region
    steps: list[Step]
    stored: dict[int, str]  # values in memory, and why they are there
    roots: dict[int, int]  # value -> the value whose memory it shares
    nests: Any = None  # a `nests.NestBuilder`, once loop nests are made

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = []
        for step in self.steps:
            lines.append(f"{step.what()}: {_numbers(step.reads)} -> {_numbers(step.writes)}")
            lines += [f"  {line}" for body in step.bodies for line in body._lines()]
        return lines

    def root(self, v: Value) -> int:
        return self.roots.get(v.number, v.number)

    def is_stored(self, v: Value) -> bool:
        return v.number in self.stored


def fuse(region: Region) -> Fused:
    """The steps of a region, in order; those of the regions of its loops and branches are in the steps."""
    fuser = _Fuser(region)
    fused = Fused(region, fuser.run(), fuser.stored, fuser.storage.roots)
    for step in fused.steps:
        if step.node is not None:
            step.bodies = [fuse(inner) for inner in step.node.regions]
    return fused


class _Fuser:
    def __init__(self, region: Region):
        self.storage = Storage(region)
        self.stored = self.storage.stored
        self.steps: list[Step] = []
        self.at: dict[int, int] = {}  # stored value -> index of the step that makes it
        self.recent: dict[tuple, list[int]] = {}  # iteration space and piece -> steps with kernels over it
        self.readers: dict[int, set[int]] = {}
        self.moved: set[int] = set()

    def run(self) -> list[Step]:
        for v in _scalars_first(self.storage.live, self.stored):
            if v.number in self.stored:
                self._place(v)
        self._drop()
        return self.steps

    def _place(self, v: Value) -> None:
        if v.form in ("input", "constant", "output") or v.number in self.storage.roots:
            return
        if FORMS[v.form].inline or FORMS[v.form].fold:
            self._place_in_kernel(v)
            return
        reads = set()
        for a in v.args:
            if a.number in self.stored:
                reads.add(self.storage.root_of(a))
            else:
                reads |= set(self.storage.leaves(a)[0])
        self.steps.append(Step(None, v, reads, [v.number]))
        for r in reads:
            self.readers.setdefault(r, set()).add(len(self.steps) - 1)
        self.moved |= reads
        outs = [o.number for o in v.results] if FORMS[v.form].several else [v.number]
        self.steps[-1].writes = outs
        for o in outs:
            self.at[o] = len(self.steps) - 1

    def _place_in_kernel(self, v: Value) -> None:
        if FORMS[v.form].fold:
            (x,) = v.args
            space, axes = x.shape, v.params.axes
            leaves, ops = (
                self.storage.leaves(x)
                if x.number not in self.stored
                else ({self.storage.root_of(x): x.number == self.storage.root_of(x)}, 0)
            )
        else:
            space, axes = v.shape, ()
            leaves, ops = self.storage.leaves(v)
        piece = self.storage.cuts.piece(v, space)
        alone = slices.is_part(self.storage, v)
        may_join = (
            []
            if alone
            else self._last_kernels(space, piece, leaves, not axes and self.storage.needed.get(v.number) == RESULT)
        )
        step = self._joinable(may_join, v, space, axes, leaves, ops)
        if step is None:
            step = len(self.steps)
            self.steps.append(Step(Kernel(space, axes, piece=piece), part=alone))
            if not alone:
                self.recent.setdefault((space, piece), []).append(step)
        kernel = self.steps[step].own_kernel
        kernel.roots.append(v)
        kernel.ops += ops
        kernel.kept += v.number in self.storage.needed or not self.storage.cuts.stays(v, self.storage.users[v.number])
        kernel.axes = kernel.axes or axes
        own = {r.number for r in kernel.roots}
        for r, same in leaves.items():
            self.readers.setdefault(r, set()).add(step)
            if not same:
                self.moved.add(r)
                kernel.moved.add(r)
            if r not in own:
                kernel.reads.add(r)
        self.steps[step].writes.append(v.number)
        self.at[v.number] = step

    def _last_kernels(self, space: tuple, piece: int, leaves: dict, is_result: bool) -> list[int]:
        """The last kernels over a space; for a result, which is stored anyhow, also those with its operands."""
        found = set(self.recent.get((space, piece), ())[-NEAR:])
        if is_result:
            few = (x for r in leaves if len(x := self.readers.get(r, ())) <= MOST_READERS)
            beside = {self.at.get(r, -1) for r in leaves}.union(*few)
            found |= {i for i in beside if i >= 0 and (k := self.steps[i].kernel) is not None and k.space == space}
        return sorted(found, reverse=True)

    def _joinable(self, may_join: list[int], v: Value, space, axes, leaves: dict, ops: int) -> int | None:
        newest, sums = max((self.at.get(r, -1) for r in leaves), default=-1), _sums(v)
        for step in may_join:
            if step < newest:
                return None
            kernel = self.steps[step].own_kernel
            if axes and kernel.axes and axes != kernel.axes:
                continue
            if is_too_long(kernel.ops + ops, space, axes or kernel.axes) or kernel.kept >= MAX_ROOTS:
                continue
            if sums and not sums.issuperset(s for r in kernel.roots for s in _sums(r)):
                continue
            own = {r.number: r for r in kernel.roots}
            if axes and kernel.roots and has_own_loop(space, axes, kernel.roots, kernel.ops + ops, self.stored):
                continue
            folded = axes or kernel.axes
            if folded and kernel.roots and is_better_apart(space, folded, [*kernel.roots, v], self.stored):
                continue
            inside = [r for r in leaves if r in own]
            if any(not leaves[r] or FORMS[own[r].form].fold for r in inside):
                continue
            if inside or math.prod(space) <= 64 or any(r in kernel.reads for r in leaves):
                return step
        return None

    def _drop(self) -> None:
        """Roots that only their own kernel reads, at its own index, are not stored."""
        for i, step in enumerate(self.steps):
            if step.kernel is None:
                continue
            for v in step.kernel.roots:
                n = v.number
                if (
                    FORMS[v.form].inline
                    and n not in self.storage.needed
                    and n not in self.moved
                    and self.readers.get(n, {i}) == {i}
                ):
                    step.kernel.dropped.add(n)
            step.reads = step.kernel.reads
            step.writes = [n for n in step.writes if n not in step.kernel.dropped]
        for step in self.steps:
            if step.kernel is not None:
                for n in step.kernel.dropped:
                    del self.stored[n]


def _scalars_first(live: list[Value], stored: Collection[int]) -> list[Value]:
    """The values in an order in which scalars that are made of inputs alone come first, and small arrays that are made
    of counting alone, so that they do not stand between kernels that one loop could compute.
    """
    if any(map(is_checked, live)):
        return live  # the first that fails is told
    early: set[int] = set()
    counted: set[int] = set()
    for v in live:
        if v.form == "iota" or any(a.number in counted for a in v.args):
            number = (a.form == "constant" or a.number not in stored and scalar(a) is not None for a in v.args)
            known = all(n or a.number in counted for n, a in zip(number, v.args))
            if known and FORMS[v.form].inline and not thresholds.reaches(v.size, COUNTED + 1):
                counted.add(v.number)
        made = FORMS[v.form].inline and v.size == 1 and all(a.number in early for a in v.args)
        if made or v.form in ("input", "constant") or v.number in counted:
            early.add(v.number)
    return sorted(live, key=lambda v: v.number not in early)


def _sums(v: Value) -> set[bool]:
    """Of a sum or product of floats, whether it is a wide one: a kernel's lanes are as wide as its sums, and those that
    are added up must not hang on what is added up beside them.
    """
    return {v.dtype in WIDE_SUMS} if is_sum_of_floats(v) else set()


def is_sum_of_floats(v: Value) -> bool:
    """Whether a value is a sum or product of floats, whose bits hang on their order."""
    return FORMS[v.form].fold and v.params.kind in ("sum", "prod") and KIND[v.dtype] in "fc"
