"""Loop nests: one iteration space, a straight-line body, what it stores and what it folds.

A `Nest` iterates over `extents`; dimensions in `reduced` are folded away. In which order, and along which its SIMD
lanes lie, `scheduling` says. `verify` checks a nest, `show` prints it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.types import DTYPES, TYPES, Type
from catena.compiler.kernels import unused
from catena.compiler.kernels.body import Body, Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.core.dtypes import KIND
from catena.core.errors import CompileError
from catena.core.named import NamedTuple

COPIES = 4  # of the accumulators of a fold, which do not wait for each other
CHECKS = -1  # the number by which a nest that tests names the cell where failures are noted


class Staged(NamedTuple):
    """How a nest's results go past the caches by way of the stack, where rows begin inside of lines: so many rows of
    the innermost loop but one, which lie one behind the other; or squares of so many rows of the innermost one, by so
    many `lanes`. Vectors of so many `bytes` take them to memory.
    """

    rows: int
    lanes: int
    bytes: int


class Store(NamedTuple):
    buffer: int
    dtype: str
    offset: Affine
    stmt: int
    mask: int = -1
    past_caches: bool = False
    staged: Staged | None = None


class Run(NamedTuple):
    """A reduced dimension that is taken in runs: from the value of one statement up to that of another."""

    dim: int
    start: int
    stop: int
    in_order: bool  # whether what it holds is added up one by one

    @property
    def ends(self) -> tuple[int, int]:
        """The statements where it begins and ends."""
        return self.start, self.stop


class Fold(NamedTuple):
    """Accumulators over the reduced dimensions, stored when those loops end (`running`: at each step)."""

    kind: str
    stmts: tuple
    types: tuple
    dests: tuple  # (buffer, dtype, offset) for each result
    running: bool = False
    inits: tuple = ()  # statements, for general folds
    partial: bool = False  # stores its accumulators as they are (see `plan.partial`)
    run: Run | None = None  # of the one reduced dimension
    past_caches: bool = False
    along: bool | None = None  # whether lanes lie along what is folded, not along what is kept, where that is settled
    copies: int = COPIES  # of its accumulators along the lanes, at most
    small: tuple[int, ...] = ()  # factors, of a dot or a running product, that may be subnormal (see `graph.small`)
    of_two: bool = False  # running, over two numbers at most, whose sum is rounded once in single precision, too

    @property
    def is_ordered(self) -> bool:
        """Whether its bits hang on its order, which is ours to choose: those of sums and products of floats."""
        return self.kind in ("sum", "dot", "prod") and not self.running and TYPES[self.types[0]].kind == "f"


class ComparedFold(Fold):
    """An extreme of floats that is found by comparing these, not their bits (see `emit.extremes`)."""

    __slots__ = ()


class PlacedFold(Fold):
    """A place of the largest or smallest of what lies one behind the other (see `emit.positions`)."""

    __slots__ = ()

    @property
    def place_bytes(self) -> int:
        """Of the lanes that places are kept in, where lanes lie along what is folded; those of truths are bits."""
        size = TYPES[self.types[0]].bytes
        return 1 if self.types[0] == "bool" else max(size, 4)


class Together(NamedTuple):
    """So many iterations of a dimension that are done at once: the innermost one, cut into `squares` with the lanes
    that are transposed whole; one in which lanes read at the same `places`; all of `short` rows (see `short_rows`); or
    some that do not wait for each other, where those of other dimensions do (`apart`); some that `share` what they fold
    with; or lanes that whole blocks leave and that may not be done twice, however many these are: under a mask
    (`masked`), or in vectors of half as many each (`halves`). Of the lanes of vectors of `chooses` bytes, any are
    chosen at once, if they have `least` (see `Machine`).
    """

    dim: int
    size: int
    what: Literal["squares", "places", "short", "apart", "share", "tables", "masked", "halves"]
    chooses: int = 0
    least: int = 4


@dataclass
class Nest:
    extents: list[int]
    reduced: frozenset
    stmts: list[Stmt]
    depends: list[int]
    stores: list[Store] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    independent: frozenset | None = None  # of a sequential nest: dimensions along which different elements change
    order: list[int] = field(default_factory=list)
    vector: int | None = None
    width: int = 1
    unroll: int = 1
    turns: int = 1  # accumulators of a sum, to which vectors along the lanes are added in turn
    together: Together | None = None  # iterations that are done at once
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)  # of statements, where they are known
    rows: tuple[int, ...] = ()  # the row dimensions of a row group: outermost, in order

    @property
    def sequential(self) -> bool:
        """Whether the order of iterations matters (scatter): no lanes but along window dimensions."""
        return self.independent is not None

    @property
    def run(self) -> Run | None:
        """The reduced dimension that is taken in runs, if one is."""
        return next((f.run for f in self.folds if f.run is not None), None)

    @property
    def trips(self) -> int:
        """How often the body runs; runs are taken to share their dimension out."""
        if self.run is None:
            return math.prod(self.extents)
        return math.prod(n for d, n in enumerate(self.extents) if not self.hangs_on(d))

    def step(self, d: int) -> int:
        """The iterations of a loop that are done at once."""
        if self.together is not None and self.together.what != "squares" and d == self.together.dim:
            return self.together.size
        return self.width * self.unroll if d == self.vector else 1

    def block(self, d: int) -> int:
        """The iterations of a loop after which each accumulator has had its turn."""
        return self.width * self.turns if d == self.vector and self.turns > 1 else self.step(d)

    @property
    def tile(self) -> int | None:
        """The dimension that is cut into squares with the lanes."""
        return self.together.dim if self.together is not None and self.together.what == "squares" else None

    @property
    def short(self) -> int | None:
        """The dimension of rows that are shorter than a vector."""
        return self.together.dim if self.together is not None and self.together.what == "short" else None

    @property
    def rest(self) -> str | None:
        """How lanes that whole blocks leave are done, where the text does not tell how many these are."""
        return self.together.what if self.together is not None and self.together.what in ("masked", "halves") else None

    @property
    def staged(self) -> Staged | None:
        """How results go by way of the stack, where they do."""
        return self.stores[0].staged if self.stores else None

    @property
    def adds_floats(self) -> bool:
        """Whether the nest's bits hang on the order in which it folds."""
        return any(f.is_ordered for f in self.folds)

    def hangs_on(self, d: int) -> bool:
        """Whether a run begins or ends elsewhere from one iteration of dimension `d` to the next."""
        return self.run is not None and bool((self.depends[self.run.start] | self.depends[self.run.stop]) >> d & 1)

    def buffers(self) -> list[int]:
        """The values that the nest touches, in order of first appearance."""
        seen = {s.attr[0]: None for s in self.stmts if s.op in LOADS}
        seen |= {s.buffer: None for s in self.stores}
        seen |= {d[0]: None for f in self.folds for d in f.dests}
        return [*seen, *([CHECKS] if self.is_checked else [])]

    @property
    def is_checked(self) -> bool:
        """Whether some statement is a test."""
        return "check" in [s.op for s in self.stmts]

    def loaded(self) -> list[int]:
        """The values that the nest reads, in order; what it reads as it writes is not among them."""
        return list(dict.fromkeys(s.attr[0] for s in self.stmts if s.op == "load"))

    def written(self) -> set[int]:
        written = {s.buffer for s in self.stores} | {d[0] for f in self.folds for d in f.dests}
        return written | {CHECKS} if self.is_checked else written

    def key(self, buffers: list[int], opened: Collection[int] = ()) -> tuple:
        """The nest's structure, with its buffers numbered in this order: equal keys give equal text. The extents of
        `opened` loops are not in the text (see `plan.ranges`).
        """
        at = {b: i for i, b in enumerate(buffers)}
        stmts = tuple(
            (s.op, s.type, s.args, (at[s.attr[0]], *s.attr[1:]) if s.op in LOADS else s.attr, s.ahead)
            for s in self.stmts
        )
        stores = tuple((at[s.buffer], *s[1:]) for s in self.stores)
        folds = tuple((f[:3], tuple((at[b], t, o) for b, t, o in f.dests), f[4:]) for f in self.folds)
        loops = (tuple(self.order), self.rows, self.vector, self.width, self.unroll, self.turns, self._together())
        known = self.vector if self.staged is not None else None  # where rows end is asked
        extents = tuple(None if d in opened and d != known else n for d, n in enumerate(self.extents))
        shape = (extents, self.reduced, *loops, isinstance(self, CarefulNest))
        return shape, stmts, stores, folds, self.sequential

    def _together(self) -> tuple | None:
        """What the text tells of iterations that are done at once: how lanes read hangs on where the places lie."""
        if self.together is None or self.together.what == "squares":
            return self.together
        told = (t for s in self.stmts if s.op == "load" for t, _ in s.attr[2][2])
        return *self.together, tuple(map(self.ranges.get, told))

    def offsets(self):
        """Every affine expression of the nest."""
        for s in self.stmts:
            if s.op in LOADS:
                yield s.attr[2]
            elif s.op == "affine":
                yield s.attr
        for s in self.stores:
            yield s.offset
        for f in self.folds:
            for d in f.dests:
                yield d[2]


class CarefulNest(Nest):
    """A nest for where subnormal numbers were met, whose products ask for such (see `plan.careful`)."""


def from_body(body: Body, reduced=(), stores=(), folds=(), independent: frozenset | None = None) -> Nest:
    nest = Nest(
        list(body.extents),
        frozenset(reduced),
        body.stmts,
        body.depends,
        list(stores),
        list(folds),
        independent,
        ranges=body.ranges,
    )
    return unused.leave_out(nest) if body.exact else nest


def is_one_by_one(nest: Nest, fold: Fold) -> bool:
    """Whether lanes along what is added up hold all of it: such short rows are added up one by one, as they are where
    lanes lie along others.
    """
    whole = nest.vector in nest.reduced and math.prod(nest.extents[d] for d in nest.reduced) <= nest.width
    return whole and fold.is_ordered


def is_extreme(fold: Fold) -> bool:
    """Whether a fold is the largest or smallest of floats."""
    return fold.kind in ("max", "min") and not fold.running and KIND[DTYPES[fold.types[0]]] == "f"


def is_idempotent(nest: Nest, d: int, in_place: bool) -> bool:
    """Whether iterations of a dimension may be done twice."""
    return not (d in nest.reduced or in_place or nest.sequential or any(f.running for f in nest.folds))


# How two partial results become one.
COMBINE = {
    "sum": "add",
    "dot": "add",
    "prod": "mul",
    "max": "max",
    "min": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def accumulator_type(fold: Fold, name: str) -> Type:
    """Narrow floats accumulate in f32; running sums, which know no blocks (see `cascades`), in f64."""
    t = TYPES[name]
    if t.kind == "f" and fold.running and fold.kind == "sum" and not fold.of_two:
        return TYPES["float64"]
    return TYPES["float32"] if t.narrow and t.kind == "f" else t


# ---- printing and checking ---------------------------------------------------------------------------------


def show(nest: Nest) -> str:
    loops = " ".join(
        f"{'reduce' if d in nest.reduced else 'for'} i{d}<{nest.extents[d]}"
        + (f" lanes {nest.width}x{nest.unroll}" if d == nest.vector else " squares" if d == nest.tile else "")
        + (f" {nest.step(d)} at once" if d != nest.vector and nest.step(d) > 1 else "")
        for d in nest.order
    )
    lines = [f"nest {loops or 'once'}"]
    for i, s in enumerate(nest.stmts):
        attr = ""
        if s.op in LOADS:
            attr = f" v{s.attr[0]}[{affine.show(s.attr[2])}]"
        elif s.op == "affine":
            attr = " " + affine.show(s.attr)
        elif s.attr is not None:
            attr = f" {s.attr}"
        lines.append(f"  %{i}: {s.type} = {s.op}{attr} {' '.join(f'%{a}' for a in s.args)}".rstrip())
    for store in nest.stores:
        mask = f" if %{store.mask}" if store.mask >= 0 else ""
        lines.append(f"  v{store.buffer}[{affine.show(store.offset)}] = %{store.stmt}{mask}")
    for f in nest.folds:
        dests = " ".join(f"v{b}[{affine.show(o)}]" for b, _, o in f.dests)
        lines.append(f"  fold {f.kind}{' running' * f.running} {' '.join(f'%{s}' for s in f.stmts)} -> {dests}")
    return "\n".join(lines)


def verify(nest: Nest) -> None:
    """Raises unless every statement is defined before its use and depends only on loops of the nest."""
    loops = sum(1 << d for d in nest.order)
    for i, s in enumerate(nest.stmts):
        terms = [t for t, _ in (s.attr[2][2] if s.op in LOADS else s.attr[2] if s.op == "affine" else ())]
        for a in (*s.args, *terms):
            if not 0 <= a < i:
                raise CompileError(f"loop nest: statement %{i} ({s.op}) uses %{a} before its definition")
            if nest.depends[a] & ~nest.depends[i]:
                raise CompileError(f"loop nest: statement %{i} ({s.op}) hides the dimensions of %{a}")
        if nest.depends[i] & ~loops:
            raise CompileError(f"loop nest: statement %{i} ({s.op}) depends on a dimension without a loop")
    if nest.run is not None and (nest.run.dim not in nest.order or any(map(nest.hangs_on, nest.reduced))):
        raise CompileError("loop nest: a run has no loop, or depends on a dimension that is folded away")
    for store in nest.stores:
        if not 0 <= store.stmt < len(nest.stmts):
            raise CompileError(f"loop nest: a store to v{store.buffer} has no value")
    if sorted(nest.order) != [d for d, n in enumerate(nest.extents) if n != 1]:
        raise CompileError("loop nest: the order does not list each dimension once")
    kept_after = [
        d for i, d in enumerate(nest.order) if d not in nest.reduced and any(e in nest.reduced for e in nest.order[:i])
    ]
    if kept_after and nest.folds:
        raise CompileError("loop nest: a kept dimension lies inside a reduced one")
