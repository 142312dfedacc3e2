"""Accumulators of folds: one stack slot per component and unrolled copy, which LLVM promotes to registers.

Where the lanes are folded away, each result has as many as `each` says, in which its vectors are added up by turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from catena.compiler.emit import joins, ops
from catena.compiler.emit.branches import each_way
from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES, constant, vector
from catena.compiler.kernels.loops import COMBINE, Fold, accumulator_type, is_one_by_one
from catena.compiler.kernels.scheduling import NARROW
from catena.compiler.plan.cascades import is_cascaded
from catena.compiler.vector_math import small

REDUCE_INT = {"sum": "add", "prod": "mul", "and": "and", "or": "or", "xor": "xor"}
REDUCE_BOOL = {"and": "and", "or": "or", "xor": "xor", "max": "or", "min": "and"}
REDUCE_BOOL |= {"sum": "or", "dot": "or", "prod": "and"}


def _rounds_products(body, fold: Fold, width: int) -> bool:
    """Whether products of short rows are rounded before they are added up, as they are in rows that are taken one by
    one, with lanes along them: so bits do not hang on how many rows there are.
    """
    short = body.nest.short
    return body.short is not None and body.nest.extents[short] * NARROW > width and not fold.small


def _asks_factors(fold: Fold) -> bool:
    """Whether it is a dot, which asks whether what it multiplies is small."""
    return bool(fold.small) and not fold.running


def identity(kind: str, name: str):
    """The neutral element of a fold."""
    t = TYPES[name]
    if kind in ("sum", "dot", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind == "and":
        return 1 if t.kind == "b" else -1 if t.kind == "i" else (1 << t.bits) - 1
    low = kind in ("max", "argmax")
    if t.kind == "f":
        return float("-inf") if low else float("inf")
    if t.kind == "b":
        return 0 if low else 1
    if t.kind == "u":
        return 0 if low else (1 << t.bits) - 1
    return -(1 << (t.bits - 1)) if low else (1 << (t.bits - 1)) - 1


def step(body, opened: list[Accumulators], copies) -> None:
    """Takes in the values of this iteration. Of all that dots multiply, it is asked once whether some is small."""
    e, asking = body.e, [a for a in opened if _asks_factors(a.fold)]
    asked: dict = {}
    for a in asking:
        for copy in copies:
            asked |= {(a.fold.stmts[k], id(copy)): (a.fold.stmts[k], copy, a.width) for k in a.fold.small}
    if not asked:
        _step(opened, copies)
        return
    least = small.LEAST_OF_BOTH if any(len(a.fold.small) > 1 for a in asking) else small.LEAST
    truths = []
    for width, each in itertools.groupby(sorted(asked.values(), key=lambda x: x[2]), key=lambda x: x[2]):
        truths.append(ops.has_small(e, [body.use(s, copy, width) for s, copy, _ in each], width, least))
    for careful in each_way(e, ops.either(e, truths)):
        _step(opened, copies, careful)


def _step(opened: list[Accumulators], copies, careful: bool = False) -> None:
    for a in opened:
        if careful and _asks_factors(a.fold):
            a.step(copies, careful=True)
        else:
            a.step(copies)


def store_identities(body, copy) -> None:
    """Fills the results of folds over no elements (running ones have none); `copy` knows what folds begin with."""
    e, nest = body.e, body.nest
    for fold in nest.folds:
        if fold.running:
            continue
        for j, (buffer, dtype, (first, coefficients, _)) in enumerate(fold.dests):
            t = TYPES[dtype]
            # results fill their memory, but parts of complex ones every other place
            step = min((k for d, k in coefficients if nest.extents[d] > 1), default=1)
            n = 1
            for d, extent in enumerate(nest.extents):
                n *= extent if d not in nest.reduced else 1
            if fold.inits:
                x = body.use(fold.inits[j], copy, 1)
            else:
                value = identity(fold.kind, dtype) if not fold.kind.startswith("arg") else 0
                x = constant(value, t, 1)
            start = e.element(body.pointers[buffer], t.memory, first)
            i, opened = e.begin_loop(0, n)
            place = e.op(f"mul nsw i64 {i}, {step}")
            e.store(t, x, e.element(start, t.memory, place), 1)
            e.end_loop(opened)


def finish(body, opened: list[Accumulators], copies) -> None:
    """Joins copies and lanes of folds that end together, and stores their results."""
    alike = [a for a in opened if a.is_met]
    if len(alike) * len(copies) < 2 or len({(a.fold.kind, a.types[0].register) for a in alike}) > 1:
        alike = []
    for a in opened:
        if a not in alike:
            a.finish(copies)
    if alike:
        _finish_met(body, alike, copies)


def _finish_met(body, alike: list[Accumulators], copies) -> None:
    """Joins the lanes of the results of all copies at once, as those of rows are (see `joins`)."""
    first, t, width = alike[0], alike[0].types[0], alike[0].width
    results = zip(*[list(a.results()) for a in alike])
    rows = [(row, a, copy) for copy, each in zip(copies, results) for a, row in zip(alike, each)]
    side_by_side = len(rows) <= width and _lie_side_by_side(body, alike, len(copies))
    for start in range(0, len(rows), width):
        part = rows[start : start + width]
        if len(part) == 1:  # which is left, and has nobody to be joined with
            ((row, a, copy),) = part
            a.finish_one(row, copy)
            continue
        lanes = 1 << (len(part) - 1).bit_length()
        x = joins.across(body.e, [x for (x,), _, _ in part], t, width, first._combine)
        if side_by_side:
            first._write([first._part(x, t, lanes, 0, len(part))], copies[0], len(part))
            continue
        for k, (_, a, copy) in enumerate(part):
            a._write([first._part(x, t, lanes, k, 1)], copy)


def _lie_side_by_side(body, alike: list[Accumulators], copies: int) -> bool:
    """Whether the results of folds lie one behind the other, and those of the next copy behind these."""
    ((buffer, dtype, offset),), count = alike[0].fold.dests, len(alike)
    if offset[2] or any(a.fold.past_caches for a in alike):
        return False
    if copies > 1 and affine.coefficient(offset, body.together) != count:
        return False
    return all(a.fold.dests == ((buffer, dtype, affine.shift(offset, k)),) for k, a in enumerate(alike))


class Accumulators:
    """One fold of a nest, between the opening of its loops and their end."""

    def __init__(self, body, levels: int, index: int, fold: Fold, copies):
        self.body, self.e, self.index, self.fold = body, body.e, index, fold
        self.types = self.component_types()
        nest = body.nest
        if body.layout.lanes_reduced:
            self.width = min(nest.width, nest.extents[nest.vector])
            self.each = self._count(nest)
        else:
            self.width, self.each = body.width, 1
        self.kept: joins.Kept | None = None
        self.turn = 0  # which of each result's accumulators is next, where copies are of several results
        self.in_turn = False  # whether the first of them is, and goes behind the others then
        self.slots = self._opened(copies)
        levels = levels if is_cascaded(fold) else 0
        t = self.types[0]
        start = constant(identity(fold.kind, t.name), t, self.width) if levels else ""
        self.upper = [[self._slot(t, start) for _ in self.slots] for _ in range(levels)]

    def _count(self, nest) -> int:
        """How many accumulators a result has: of short rows one for each part."""
        if nest.short is not None:
            return nest.extents[nest.short]
        count = nest.turns if self.fold.is_ordered else nest.unroll
        return count if nest.extents[nest.vector] >= nest.width * count else 1

    def component_types(self) -> list:
        return [accumulator_type(self.fold, t) for t in self.fold.types]

    def _opened(self, copies) -> list[list[str]]:
        """The slots of each copy, holding what the fold begins with."""
        slots = []
        for copy in copies:
            for _ in range(self.each):
                starts = [self._initial(j, t, copy) for j, t in enumerate(self.types)]
                slots.append([self._slot(t, start) for t, start in zip(self.types, starts)])
        return slots

    def _slot(self, t, start: str) -> str:
        slot = self.e.slot(vector(t.register, self.width))
        self.e.do(f"store {vector(t.register, self.width)} {start}, ptr {slot}")
        return slot

    def carry(self, level: int) -> None:
        """Adds the sums of a level to those of the next, and begins it anew (see `cascades`)."""
        if not self.upper:
            return
        t = self.types[0]
        v = vector(t.register, self.width)
        for c in range(len(self.slots)):
            low = self.upper[level - 1][c] if level else self.slots[c][0]
            high = self.upper[level][c]
            total = self._combine([self.e.op(f"load {v}, ptr {high}")], [self.e.op(f"load {v}, ptr {low}")], self.width)
            self.e.do(f"store {v} {total[0]}, ptr {high}")
            self.e.do(f"store {v} {constant(identity(self.fold.kind, t.name), t, self.width)}, ptr {low}")

    def _initial(self, j: int, t, copy) -> str:
        if self.fold.inits:
            x = self.body.use(self.fold.inits[j], copy, 1)
            return self.e.splat(x, t.register, self.width)
        if self.fold.kind.startswith("arg") and j == 1:
            return constant(0, t, self.width)  # where all values are the worst there is, it is the first
        return constant(identity(self.fold.kind, self.fold.types[j]), t, self.width)

    def _get(self, c: int, j: int) -> str:
        return self.e.op(f"load {vector(self.types[j].register, self.width)}, ptr {self.slots[c][j]}")

    def _set(self, c: int, j: int, x: str) -> None:
        self.e.do(f"store {vector(self.types[j].register, self.width)} {x}, ptr {self.slots[c][j]}")

    def current(self, j: int, copy) -> str:
        return self._get(0, j)

    def step(self, copies, first: int = 0, careful: bool = False) -> None:
        """Takes in the values of this iteration, by the accumulators from the first one on; of dots, some of whose
        factors are small, `careful`.
        """
        for k, copy in enumerate(copies, first):
            c = self._taker(k)
            new = [self.body.use(s, copy, self.width) for s in self.fold.stmts]
            if careful:
                out = [ops.of_small(self.e, "fma", self.types[0], [*new, self._get(c, 0)], self.width, "true")]
            else:
                out = new if self.fold.kind == "general" else self._taken(c, new)
            active = self.body.active if self.body.layout.lanes_reduced else None
            for j, x in enumerate(out):
                if active is not None:
                    r = vector(self.types[j].register, self.width)
                    x = self.e.op(f"select <{self.width} x i1> {active}, {r} {x}, {r} {self._get(c, j)}")
                self._set(c, j, x)
            if self.in_turn and self.each > 1:
                self._turn()
            if self.fold.running:
                self._write(out, copy)

    def _taker(self, k: int) -> int:
        """Which accumulator takes in a copy."""
        return k if self.body.together is None else k * self.each + self.turn

    def _turn(self) -> None:
        """Puts the accumulator that had its turn behind the others."""
        for j in range(len(self.types)):
            first, *others = (self._get(c, j) for c in range(self.each))
            for c, x in enumerate((*others, first)):
                self._set(c, j, x)

    def _taken(self, c: int, new: list[str]) -> list[str]:
        old = [self._get(c, j) for j in range(len(self.types))]
        if self.fold.running:
            new = [ops.convert(self.e, x, TYPES[self.fold.types[0]], self.types[0], self.width) for x in new]
        if self.fold.kind.startswith("arg"):
            return self._take_later(old, new)
        if self.fold.running and self.fold.small:
            told = ops.is_small(self.e, self.types[0], old[0], self.width, small.LEAST_BY_LARGE)
            return [ops.of_small(self.e, "mul", self.types[0], [*old, *new], self.width, told)]
        return [self._multiply_add(new, old[0])] if self.fold.kind == "dot" else self._combine(old, new, self.width)

    def _take_later(self, a: list[str], b: list[str]) -> list[str]:
        """The better value where the new one stands behind the old: of equal ones that stays, and the first NaN."""
        t, width = self.types[0], self.width
        more = "gt" if self.fold.kind == "argmax" else "lt"
        if t.kind == "f":
            r = vector(t.register, width)
            better, number = self.e.op(f"fcmp u{more} {r} {b[0]}, {a[0]}"), self.e.op(f"fcmp ord {r} {a[0]}, {a[0]}")
            take = self.e.op(f"and {vector('i1', width)} {better}, {number}")
        else:
            take = ops.emit(self.e, more, TYPES["bool"], [b[0], a[0]], [t, t], None, width)
        return self._chosen(take, a, b, width)

    def _chosen(self, take: str, a: list[str], b: list[str], width: int) -> list[str]:
        types = [vector(t.register, width) for t in self.types]
        i1 = vector("i1", width)
        return [self.e.op(f"select {i1} {take}, {r} {y}, {r} {x}") for r, x, y in zip(types, a, b)]

    def _multiply_add(self, xs: list[str], total: str) -> str:
        if _rounds_products(self.body, self.fold, self.width):
            return self._combine(
                [total], [ops.emit(self.e, "mul", self.types[0], xs, self.types * 2, None, self.width)], self.width
            )[0]
        return ops.intrinsic(self.e, "fma", self.types[0], [*xs, total], self.width)

    def _combine(self, a: list[str], b: list[str], width: int) -> list[str]:
        if self.fold.kind.startswith("arg"):
            return self._combine_arg(a, b, width)
        t = self.types[0]
        return [ops.emit(self.e, COMBINE[self.fold.kind], t, [a[0], b[0]], [t, t], None, width)]

    def _combine_arg(self, a, b, width: int) -> list[str]:
        """The better value, NaN best of all, and of equal ones the first."""
        t, i = self.types
        r, i1 = vector(t.register, width), vector("i1", width)
        more = "gt" if self.fold.kind == "argmax" else "lt"
        better = ops.emit(self.e, more, TYPES["bool"], [b[0], a[0]], [t, t], None, width)
        earlier = self.e.op(f"icmp slt {vector(i.register, width)} {b[1]}, {a[1]}")
        same = ops.emit(self.e, "eq", TYPES["bool"], [b[0], a[0]], [t, t], None, width)
        if t.kind == "f":
            nan_a = self.e.op(f"fcmp uno {r} {a[0]}, {a[0]}")
            nan_b = self.e.op(f"fcmp uno {r} {b[0]}, {b[0]}")
            both = self.e.op(f"and {i1} {nan_a}, {nan_b}")
            same = self.e.op(f"or {i1} {same}, {both}")
            fresh = self.e.op(f"xor {i1} {nan_a}, {constant(1, TYPES['bool'], width)}")
            first_nan = self.e.op(f"and {i1} {nan_b}, {fresh}")
            better = self.e.op(f"or {i1} {better}, {first_nan}")
        tie = self.e.op(f"and {i1} {same}, {earlier}")
        return self._chosen(self.e.op(f"or {i1} {better}, {tie}"), a, b, width)

    @property
    def is_met(self) -> bool:
        """Whether the lanes of its results are joined with those of others, which does not change their order."""
        halved = joins.are_halved(self.width) and self.body.layout.lanes_reduced
        alone = self.fold.partial or is_one_by_one(self.body.nest, self.fold)
        return halved and self.fold.is_ordered and not alone

    def results(self) -> Iterator[list[str]]:
        """The lanes of each copy's result."""
        values, n = self._accumulated(), self.each
        return (self._joined(values[k : k + n]) for k in range(0, len(values), n))

    def value(self, row: list[str], width: int) -> str:
        """The result that components tell, in so many lanes."""
        return row[0]

    def finish(self, copies) -> None:
        """Joins copies and lanes, and stores the results."""
        if self.fold.running:
            return
        for row, copy in zip(self.results(), copies):
            self.finish_one(row, copy)

    def finish_one(self, row: list[str], copy) -> None:
        """Joins the lanes of a result, and stores it."""
        self._write(self._across_lanes(row) if self.body.layout.lanes_reduced else row, copy)

    def _accumulated(self) -> list[list[str]]:
        for level in range(len(self.upper)):
            self.carry(level)
        if not self.upper:
            return [[self._get(c, j) for j in range(len(self.types))] for c in range(len(self.slots))]
        v = vector(self.types[0].register, self.width)
        return [[self.e.op(f"load {v}, ptr {slot}")] for slot in self.upper[-1]]

    def keep(self, number: str) -> None:
        """Keeps the lanes of a row, to be joined with those of others (see `joins`)."""
        if self.kept is None:
            self.kept = joins.Kept(self.e, self.types, self.width)
        self.kept.keep(self._joined(self._accumulated()), number)

    def finish_kept(self, copy, mask: str) -> None:
        """Joins the lanes of rows, and stores the results of those that are there; `copy` is of the first of them."""
        assert self.kept is not None
        row = self.kept.joined(lambda a, b: self._combine(a, b, self.width))
        self._write(row, copy, self.width, mask)

    def _joined(self, values: list[list[str]]) -> list[str]:
        """The lanes of one result from its accumulators."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2])
            values = [self._combine(a, b, self.width) for a, b in pairs] + values[len(values) // 2 * 2 :]
        return values[0]

    def _write(self, row: list[str], copy, width: int | None = None, mask: str | None = None) -> None:
        """Stores results: one, or those in the lanes of vectors, of so many lanes where it is told."""
        width = width or (1 if self.body.layout.lanes_reduced else self.width)
        positions = self.fold.kind.startswith("arg") and not self.fold.partial
        results, types = (row[1:], self.types[1:]) if positions else (row, self.types)
        for j, (x, t, (_, dtype, offset)) in enumerate(zip(results, types, self.fold.dests)):
            target = TYPES[dtype]
            if positions or (self.fold.running and self.fold.kind == "sum"):
                x = ops.convert(self.e, x, t, target, width)
            if target.narrow:
                x = ops.round_to(self.e, x, target, width)
            key = "fold", self.index, j
            if mask is None:
                past = self.fold.past_caches
                self.body.write_access(key, dtype, offset, x, copy, past_caches=past, width=width)
            else:
                joins.write(self.body, key, target, offset, x, copy, width, mask)

    def _across_lanes(self, row: list[str]) -> list[str]:
        width, kind, t = self.width, self.fold.kind, self.types[0]
        if width == 1:
            return row
        r = vector(t.register, width)
        if t.kind == "f" and kind in ("sum", "dot", "prod"):
            short, start = (
                ("f64" if t.register == "double" else "f32"),
                constant(1.0 if kind == "prod" else -0.0, t, 1),
            )
            name = "fmul" if kind == "prod" else "fadd"
            order = "" if is_one_by_one(self.body.nest, self.fold) else "reassoc "
            return [
                self.e.op(
                    f"call {order}{t.register} @llvm.vector.reduce.{name}.v{width}{short}("
                    f"{t.register} {start}, {r} {row[0]})"
                )
            ]
        if t.kind in "iu" and (kind in REDUCE_INT or kind in ("max", "min")):
            name = REDUCE_INT.get(kind) or ("s" if t.kind == "i" else "u") + kind
            x, width = self._filled(row[0], width)
            r = vector(t.register, width)
            return [self.e.op(f"call {t.register} @llvm.vector.reduce.{name}.v{width}{t.register}({r} {x})")]
        if t.kind == "b" and kind in REDUCE_BOOL:
            name = f"llvm.vector.reduce.{REDUCE_BOOL[kind]}.v{width}i1"
            return [self.e.op(f"call i1 @{name}(<{width} x i1> {row[0]})")]
        return self._halve(row, width)

    def _filled(self, x: str, width: int) -> tuple[str, int]:
        """Lanes of integers and neutral ones up to a power of two: of other numbers LLVM takes the lanes one by one."""
        t, whole = self.types[0], 1 << (width - 1).bit_length()
        if whole == width:
            return x, width
        v, neutral = vector(t.register, width), constant(identity(self.fold.kind, t.name), t, width)
        order = ", ".join(f"i32 {k}" for k in range(whole))  # those beyond are of the second operand
        return self.e.op(f"shufflevector {v} {x}, {v} {neutral}, <{whole} x i32> <{order}>"), whole

    def _halve(self, row: list[str], width: int) -> list[str]:
        """Joins the upper half of the lanes with the lower until one is left."""
        while width > 1:
            low, high = (width + 1) // 2, width // 2
            lower = [self._part(x, t, width, 0, low) for x, t in zip(row, self.types)]
            upper = [self._part(x, t, width, width - low, low) for x, t in zip(row, self.types)]
            if low != high and self.fold.kind in ("sum", "prod", "xor"):
                return self._one_by_one(row, width)
            row, width = self._combine(lower, upper, low), low
        return row

    def _part(self, x: str, t, width: int, start: int, count: int) -> str:
        v = vector(t.register, width)
        if count == 1:
            return self.e.op(f"extractelement {v} {x}, i64 {start}")
        order = ", ".join(f"i32 {start + k}" for k in range(count))
        return self.e.op(f"shufflevector {v} {x}, {v} poison, <{count} x i32> <{order}>")

    def _one_by_one(self, row: list[str], width: int) -> list[str]:
        out = [self._part(x, t, width, 0, 1) for x, t in zip(row, self.types)]
        for k in range(1, width):
            out = self._combine(out, [self._part(x, t, width, k, 1) for x, t in zip(row, self.types)], 1)
        return out
