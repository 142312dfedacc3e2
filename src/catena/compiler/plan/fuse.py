"""Fusion: which values are stored, and which loop nests compute them.

Every value of a region is either *stored* (it has memory) or *inlined* (computed again by whoever reads it,
at the index where it is read). Reductions, products, loops and the like are stored; elementwise values and
views are inlined when one kernel reads them, or when reading them twice costs less than a trip through
memory. A costly value is never inlined below a broadcast, window or gather, which would compute it again and
again.

Kernels are then grown in topological order: a stored value joins an earlier kernel of the same iteration
space when all it reads exists by then, or is computed in that kernel at the same index. So an optimiser step
with several results, a sum beside the map it sums, or two sums of one array are one pass over memory. A value
whose readers all sit in its own kernel needs no memory after all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from catena.compiler.graph.constants import scalar
from catena.compiler.graph.forms import COSTLY, FORMS, PARTS
from catena.compiler.graph.region import Region, Value
from catena.compiler.kernels import short_rows
from catena.compiler.plan import cuts
from catena.core.dtypes import KIND

MAX_DEPTH, MAX_OPS, MAX_ROOTS, MAX_KERNEL = 48, 100, 12, 160
CHEAP = 2
FEW_AGAIN, LARGE = 4, 1 << 17  # operations that are done again for each reader, and bytes of what is not written for it
CHEAP_BESIDE = 8  # the same of what is nothing beside what it is computed for: see `_is_beside`
NEAR, MOST_READERS = 3, 8  # kernels that a value may join: the last ones, and readers of a value with so few
RESULT = "it is a result"
WIDE = 8  # elements in a row
WIDE_SUMS = frozenset(map(np.dtype, ("float64", "complex128")))
FEW_OPS = 8  # that lanes which short rows leave empty may do
UNEVEN = PARTS | {"pad"}  # forms whose elements do not lie evenly in what they are read from
GATHERED = 4  # bytes of elements that an instruction gathers, at least
SHORT_ROWS = 256  # from so many on they are taken many at once: see `kernels.short_rows`
LONG_ROW = 128  # elements: what is computed once for each row of so many is nothing beside these
MOSTLY_PADDING = 4  # times as many elements as are in it: of those that lanes gather for a pad, most are thrown away
FEWER = 4  # times as many elements as a gather reads: they are not computed for it
COUNTED = 1 << 12  # elements of what is made of counting alone, and made first
BORDER = 4  # a border is at most one part of so many of what a pad makes
MAX_PARTS = 3  # of a concatenation that is read where its parts lie, and its readers
MAX_ROW_PARTS, PART_ROW = 4, 64  # of one along rows of so many elements at least, which other parts lie between


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
    bodies: list[Fused] = field(default_factory=list)  # of a loop (its condition first) or branch

    def what(self) -> str:
        """What a line of text says of the step."""
        if self.kernel is not None:
            over = f", reduces {self.kernel.axes}" if self.kernel.axes else ""
            return f"kernel over {self.kernel.space}{over}"
        if self.group is not None:
            return f"{len(self.group.members)} kernels on {self.group.block} rows at a time"
        follows = ", then a kernel on its rows" if self.follower is not None else ""
        return self.node.form + follows


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
    fused = Fused(region, fuser.run(), fuser.stored, fuser.roots)
    for step in fused.steps:
        if step.node is not None:
            step.bodies = [fuse(inner) for inner in step.node.regions]
    return fused


class _Fuser:
    def __init__(self, region: Region):
        self.live = region.live()
        self.users = region.users(self.live)
        self.tests = _tests(self.live, self.users) if any(map(_is_checked, self.live)) else set()
        self.needed = _needed(region, self.live)
        self.cuts = cuts.find(self.live, self.users, self.needed, MAX_KERNEL)
        self.stored: dict[int, str] = {}  # and why
        self.roots: dict[int, int] = {}
        self.effort: dict[int, tuple[int, float]] = {}  # of inlined values: the depth of operations, and their number
        self.costly: set[int] = set()
        self.steps: list[Step] = []
        self.at: dict[int, int] = {}  # stored value -> index of the step that makes it
        self.recent: dict[tuple, list[int]] = {}  # iteration space -> steps with kernels over it
        self.readers: dict[int, set[int]] = {}
        self.moved: set[int] = set()

    def run(self) -> list[Step]:
        for v in self.live:
            self._decide(v)
        for v in _scalars_first(self.live, self.stored):
            if v.number in self.stored:
                self._place(v)
        self._drop()
        return self.steps

    # ---- stored or inlined ---------------------------------------------------------------------------------

    def _decide(self, v: Value) -> None:
        n = v.number
        if v.form == "constant":
            if v.size != 1 or v.ndim:
                self.stored[n] = "it is there before the program runs"
            elif n in self.needed:
                self.stored[n] = self.needed[n]
        elif v.form in PARTS and self._joins_in_place(v):
            self._measure(v)
            depth, weight = self.effort[n]
            self.effort[n] = depth, weight + 1.0
        elif not FORMS[v.form].inline:
            self.stored[n] = self.needed.get(n) or "it is made as a whole before it is read"
            if FORMS[v.form].alias:
                self._share(v)
        elif v.form == "reshape" and n in self.needed:
            self.stored[n] = self.needed[n]
            self._share(v)
        elif n in self.tests and n not in self.needed:
            self.effort[n] = 0, 0.0
        else:
            self._measure(v)
            reason = self.needed.get(n) or self._why_stored(v)
            if reason is not None:
                self.stored[n] = reason
                self.effort[n] = 0, 0.0

    def _joins_in_place(self, v: Value) -> bool:
        """Whether who reads a concatenation reads its parts, such as those of a roll: views of what is stored."""
        users = self.users[v.number]
        if v.number in self.needed or len(users) > MAX_PARTS:
            return False
        if all(u.form == "gather" and u.args[0] is not v for u in users):
            return len(users) == 1  # indices of several axes: each reads its own part
        cheap = CHEAP if self._lies_in_rows(v) else 0.0
        views = all(a.number in self.stored or self._is_light(a, cheap) for a in v.args)
        plain = all(u.form == "map" or FORMS[u.form].fold or FORMS[u.form].view for u in users)
        return (
            len(v.args) <= (MAX_ROW_PARTS if cheap else MAX_PARTS)
            and views
            and plain
            and not any(FORMS[u.form].rereads for u in users)
        )

    def _lies_in_rows(self, v: Value) -> bool:
        """Whether parts are joined along rows that are long, and only elementwise operations read them, one after the
        other, up to what is stored, or to a fold of each part: then a loop over the rows of a part computes it, and
        does all of these.
        """
        if math.prod(v.shape[v.params.dimension + 1 :]) < PART_ROW:
            return False
        users = self._joined(self.users[v.number])
        while len(users) == 1 and users[0].form == "map":
            last = users[0].number
            users = self.users[last]
            if last in self.needed or len(users) > 1:
                return True
        return len(users) == 1 and _folds_within(users[0], v)

    def _joined(self, users: list) -> list:
        """The one of some readers that the others are for, as a choice is of a comparison and of what it compares."""
        last = max(users, key=lambda u: u.number, default=None)
        others = [u for u in users if u is not last]
        single = all(u.form == "map" and u.number not in self.needed and self.users[u.number] == [last] for u in others)
        return [last] if users and single else users

    def _is_light(self, v: Value, most: float) -> bool:
        return self.effort.get(v.number, (0, 1.0))[1] <= most and v.number not in self.costly

    def _share(self, v: Value) -> None:
        base = v.args[0].number
        self.roots[v.number] = self.roots.get(base, base)

    def _measure(self, v: Value) -> None:
        op = v.params.op if v.form == "map" else None
        depth, weight, costly = 0, 0.0 if op in (None, "checked") else 1.0, op in COSTLY
        for a in {a.number: a for a in (v.args[:1] if op == "checked" else v.args)}.values():
            if a.number not in self.stored:
                deep, heavy = self.effort.get(a.number, (0, 0.0))
                depth = max(depth, deep)
                if v.form != "dynamic_slice" or a is v.args[0]:  # where it starts is computed once, before the loops
                    weight += heavy / max(len(self.users[a.number]), 1)
                costly = costly or a.number in self.costly
        self.effort[v.number] = depth + 1, weight
        if costly:
            self.costly.add(v.number)

    def _why_stored(self, v: Value) -> str | None:
        """Why a value that could be computed where it is read is stored all the same; None where it is not."""
        n = v.number
        depth, weight = self.effort[n]
        if depth >= MAX_DEPTH or weight > MAX_OPS:
            return "the kernel that reads it would become too long"
        if n in self.cuts.alive:
            return "a kernel ends before it is read for the last time: it would become too long"
        users, costly = self.users[n], n in self.costly
        if v.size == 1 and v.ndim == 0 and weight <= CHEAP and not costly:
            return None
        for u in users:
            cheap = CHEAP_BESIDE if _is_beside(u, v) else CHEAP
            wasted = u.form == "pad" and u.size >= MOSTLY_PADDING * v.size and _reads(v, self.stored, _is_gather)
            if FORMS[u.form].fold and self._is_long(v, u.params.axes):
                return f"{u.form} v{u.number} folds short rows, of which lanes hold many where little is done"
            is_place = u.form == "gather" and v is not u.args[0] and u.size >= LONG_ROW * v.size
            if is_place and _reads(v, self.stored, _is_gather):
                return f"{u.form} v{u.number} would read each place at a place"
            if self._repeats(u, v) and (costly or weight > cheap or wasted):
                return f"{u.form} v{u.number} would compute each element several times"
        if len(users) > 1 and (costly or weight > 1):
            if not costly and v.size * v.dtype.itemsize >= LARGE and _is_of_one_array(v, self.stored, self.roots):
                return None
            return f"{len(users)} readers would compute it again"
        return None

    def _is_long(self, v: Value, axes: tuple) -> bool:
        """Whether too much is done for lanes to hold many short rows that are folded."""
        ops = self._leaves(v, ())[1]
        return ops > _most_ops(v.shape, axes) or self._has_own_loop(v.shape, axes, [v], ops)

    def _has_own_loop(self, space: tuple, axes: tuple, roots: list[Value], ops: int) -> bool:
        """Whether a loop of its own makes what is folded sooner: short rows of what does not lie evenly in memory, if
        much is done, since its lanes are full; and places that rows share, since it does several rows at once.
        """
        uneven = ops > FEW_OPS and _most_ops(space, axes) < MAX_KERNEL
        found = (lambda x: x.form in UNEVEN or _shares_places(x)) if uneven else _shares_places
        return any(_reads(r, self.stored, found) for r in roots)

    @staticmethod
    def _repeats(user: Value, v: Value) -> bool:
        """Whether `user` reads elements of `v` several times, or through an index map that needs memory."""
        if user.form == "broadcast":
            return user.size > v.size
        if user.form == "reshape":
            return FORMS[v.form].view
        if user.form == "gather" and v is user.args[0] and v not in user.args[1:] and user.size * FEWER <= v.size:
            return False
        if user.form == "pad" and (user.size - v.size) * BORDER <= user.size:
            return any(between for *_, between in user.params.config)
        return FORMS[user.form].rereads

    # ---- kernels -------------------------------------------------------------------------------------------

    def _place(self, v: Value) -> None:
        if v.form in ("input", "constant", "output") or v.number in self.roots:
            return
        if FORMS[v.form].inline or FORMS[v.form].fold:
            self._place_in_kernel(v)
            return
        reads = set()
        for a in v.args:
            if a.number in self.stored:
                reads.add(self.root_of(a))
            else:
                reads |= set(self._leaves(a, ())[0])
        self.steps.append(Step(None, v, reads, [v.number]))
        for r in reads:
            self.readers.setdefault(r, set()).add(len(self.steps) - 1)
        self.moved |= reads
        outs = [o.number for o in v.results] if FORMS[v.form].several else [v.number]
        self.steps[-1].writes = outs
        for o in outs:
            self.at[o] = len(self.steps) - 1

    def root_of(self, v: Value) -> int:
        return self.roots.get(v.number, v.number)

    def _leaves(self, v: Value, identity) -> tuple[dict[int, bool], int]:
        """Stored values that inlining `v` reads, and whether only at the iteration's index; and its size."""
        found: dict[int, bool] = {}
        seen: set[tuple[int, bool]] = set()
        stack, ops = [(v, True)], 0
        while stack:
            x, same = stack.pop()
            if (x.number, same) in seen:
                continue
            seen.add((x.number, same))
            if x.number in self.stored and x is not v:
                r = self.root_of(x)
                found[r] = found.get(r, True) and same and x.number == r
                continue
            ops += x.form == "map" and x.number not in self.tests
            same = same and x.form == "map"
            stack.extend((a, same) for a in x.args)
        return found, ops

    def _place_in_kernel(self, v: Value) -> None:
        if FORMS[v.form].fold:
            (x,) = v.args
            space, axes = x.shape, v.params.axes
            leaves, ops = (
                self._leaves(x, ())
                if x.number not in self.stored
                else ({self.root_of(x): x.number == self.root_of(x)}, 0)
            )
        else:
            space, axes = v.shape, ()
            leaves, ops = self._leaves(v, ())
        piece = self.cuts.piece(v, space)
        may_join = self._last_kernels(space, piece, leaves, not axes and self.needed.get(v.number) == RESULT)
        step = self._joinable(may_join, space, axes, leaves, ops, _sums(v))
        if step is None:
            step = len(self.steps)
            self.steps.append(Step(Kernel(space, axes, piece=piece)))
            self.recent.setdefault(space, []).append(step)
        kernel = self.steps[step].kernel
        kernel.roots.append(v)
        kernel.ops += ops
        kernel.kept += v.number in self.needed or not self.cuts.stays(v, self.users[v.number])
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
        found = {i for i in self.recent.get(space, ())[-NEAR:] if self.steps[i].kernel.piece == piece}
        if is_result:
            few = (x for r in leaves if len(x := self.readers.get(r, ())) <= MOST_READERS)
            beside = {self.at.get(r, -1) for r in leaves}.union(*few)
            found |= {i for i in beside if i >= 0 and (k := self.steps[i].kernel) is not None and k.space == space}
        return sorted(found, reverse=True)

    def _joinable(self, may_join: list[int], space, axes, leaves: dict, ops: int, sums: set[bool]) -> int | None:
        newest = max((self.at.get(r, -1) for r in leaves), default=-1)
        for step in may_join:
            if step < newest:
                return None
            kernel = self.steps[step].kernel
            if axes and kernel.axes and axes != kernel.axes:
                continue
            if kernel.ops + ops > _most_ops(space, axes or kernel.axes) or kernel.kept >= MAX_ROOTS:
                continue
            if sums and not sums.issuperset(s for r in kernel.roots for s in _sums(r)):
                continue
            own = {r.number: r for r in kernel.roots}
            if axes and kernel.roots and self._has_own_loop(space, axes, kernel.roots, kernel.ops + ops):
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
                    and n not in self.needed
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


def _is_of_one_array(v: Value, stored: Collection[int], roots: dict[int, int]) -> bool:
    """Whether a few cheap operations make a value of one array in memory, element by element, beside numbers: reading
    that again costs no more than reading this one, which would be written first.
    """
    ops, ask, seen, arrays = 0, [v], {v.number}, set()
    while ask and ops <= FEW_AGAIN:
        x = ask.pop()
        if x.size == 1 or x.form == "broadcast" and x.args[0].size == 1:
            continue
        if x.number in stored:
            arrays.add(roots.get(x.number, x.number))
            if x.size * x.dtype.itemsize > v.size * v.dtype.itemsize:
                return False
        elif x.form != "map":
            return False
        else:
            ops += 1
            ask.extend(a for a in x.args if a.number not in seen)
            seen.update(a.number for a in x.args)
    return ops <= FEW_AGAIN and len(arrays) == 1


def _scalars_first(live: list[Value], stored: Collection[int]) -> list[Value]:
    """The values in an order in which scalars that are made of inputs alone come first, and small arrays that are made
    of counting alone, so that they do not stand between kernels that one loop could compute.
    """
    if any(map(_is_checked, live)):
        return live  # the first that fails is told
    early: set[int] = set()
    counted: set[int] = set()
    for v in live:
        if v.form == "iota" or any(a.number in counted for a in v.args):
            number = (a.form == "constant" or a.number not in stored and scalar(a) is not None for a in v.args)
            known = all(n or a.number in counted for n, a in zip(number, v.args))
            if known and FORMS[v.form].inline and v.size <= COUNTED:
                counted.add(v.number)
        made = FORMS[v.form].inline and v.size == 1 and all(a.number in early for a in v.args)
        if made or v.form in ("input", "constant") or v.number in counted:
            early.add(v.number)
    return sorted(live, key=lambda v: v.number not in early)


def _folds_within(user: Value, v: Value) -> bool:
    """Whether a fold takes each part of a concatenation by itself, and no rows that many lanes hold."""
    if not FORMS[user.form].fold or v.params.dimension in user.params.axes:
        return False
    return v.ndim - 1 not in user.params.axes or v.shape[-1] >= PART_ROW


def _is_beside(user: Value, v: Value) -> bool:
    """Whether it is the index of a gather; or rows that a scatter adds to others, which it reads once, in lanes; or
    spread over long rows.
    """
    if user.form == "broadcast":
        last = max((d for d, n in zip(user.params.dims, v.shape) if n != 1), default=-1)
        return math.prod(user.shape[last + 1 :]) >= LONG_ROW
    if user.form == "scatter":
        at = user.params.indices
        rows = user.args[2].ndim - 1 in at.offset_dims and user.args[2].shape[-1] >= WIDE
        return rows and v is user.args[2] and v is not user.args[1]
    return user.form == "gather" and user.args[0] is not v


def _most_ops(space: tuple, axes: tuple) -> int:
    """The operations of a kernel over so many elements, at most: fewer where it folds many rows that are shorter than a
    vector, of which lanes then hold many.
    """
    last = len(space) - 1
    if last not in axes or not 1 < space[last] <= short_rows.MOST or math.prod(space[:last]) < SHORT_ROWS:
        return MAX_KERNEL
    return min(MAX_KERNEL, 3 * short_rows.LONGEST // (4 * space[last]))  # what is read counts too


def _reads(v: Value, stored, found: Callable[[Value], bool]) -> bool:
    """Whether a value that is not stored is made of others of which that is so, without memory between them."""
    ask, seen = [v], {v.number}
    while ask:
        x = ask.pop()
        if found(x):
            return True
        more = [a for a in x.args if a.number not in stored and a.number not in seen]
        seen.update(a.number for a in more)
        ask.extend(more)
    return False


def _sums(v: Value) -> set[bool]:
    """Of a sum or product of floats, whether it is a wide one: a kernel's lanes are as wide as its sums, and those that
    are added up must not hang on what is added up beside them.
    """
    if not FORMS[v.form].fold or v.params.kind not in ("sum", "prod") or KIND[v.dtype] not in "fc":
        return set()
    return {v.dtype in WIDE_SUMS}


def _is_gather(v: Value) -> bool:
    return v.form == "gather"


def _shares_places(v: Value) -> bool:
    """Whether small elements, which no instruction gathers, are read at places that many rows share: `x[:, i]`."""
    if not _is_gather(v) or v.dtype.itemsize >= GATHERED or not v.ndim or v.ndim - 1 in v.params.offset_dims:
        return False
    return math.prod(v.shape[d] for d in v.params.offset_dims) >= SHORT_ROWS


def _is_checked(v: Value) -> bool:
    return v.form == "map" and v.params.op == "checked"


def _tests(live: list[Value], users: dict[int, list[Value]]) -> set[int]:
    """What only tests read. These are made where the value is that they test, of what is read there anyway: so they do
    not count among the `users`, from which they are removed here.
    """
    tests: set[int] = set()
    for v in reversed(live):
        own = users[v.number]
        real = [u for u in own if u.number not in tests and not (_is_checked(u) and u.args[0] is not v)]
        if own and not real and FORMS[v.form].inline:
            tests.add(v.number)
        users[v.number] = real
    return tests


def _needed(region: Region, live: list[Value]) -> dict[int, str]:
    """Values that must be in memory because of who reads them, and who that is."""
    needed = {v.number: RESULT for v in region.outputs}
    for v in reversed(live):
        where = FORMS[v.form].in_memory
        if where == "all":
            read = v.args
        elif where == "bare":
            read = tuple(map(_under_transposes, v.args))
        elif where == "first":
            read = (v.args[0], *(a for a in v.args[1:] if FORMS[a.form].inline and _reaches(a, v.args[0])))
        elif v.form == "reshape" and v.number in needed:
            read = (v.args[0],)
        else:
            continue
        reason = needed[v.number] if v.form == "reshape" else f"{v.form} v{v.number} reads memory"
        for a in read:
            needed.setdefault(a.number, reason)
    return needed


def _under_transposes(v: Value) -> Value:
    while v.form == "transpose":
        v = v.args[0]
    return v


def _reaches(v: Value, target: Value, budget: int = 64) -> bool:
    """Whether inlining `v` may read the memory of `target`; unsure (too large) counts as yes."""
    while target.form in ("reshape", "alias"):
        target = target.args[0]
    stack = [v]
    while stack and budget:
        x, budget = stack.pop(), budget - 1
        if x is target:
            return True
        if FORMS[x.form].inline or FORMS[x.form].alias or x.form in PARTS:
            stack.extend(x.args)
    return bool(stack)
