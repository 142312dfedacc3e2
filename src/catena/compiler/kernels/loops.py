"""Loop nests: one iteration space, a straight-line body, what it stores and what it folds.

A `Nest` iterates over `extents`; dimensions in `reduced` are folded away. It has no loops of its own order
yet: `schedule` drops dimensions of one element, merges neighbours that every access crosses contiguously,
orders the loops (kept dimensions outside, reduced ones inside) and picks the dimension that becomes SIMD
lanes. `verify` checks the result, `show` prints it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.types import DTYPES, TYPES, Type
from catena.compiler.kernels import by_columns, columns, merging, moves, short_rows, splitting, unused
from catena.compiler.kernels.body import Body, Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.places import shares_place, table
from catena.compiler.machine import Machine
from catena.core.dtypes import KIND
from catena.core.errors import CompileError

COPIES = 4  # of the accumulators of a fold, which do not wait for each other
CHECKS = -1  # the number by which a nest that tests names the cell where failures are noted
DIVIDED = ("div", "rem", "sqrt", "integer_pow")  # of which a scalar is an instruction or two
FEW = 4  # iterations of a nest without lanes: scalars in registers need no shuffles


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
    small: tuple[int, ...] = ()  # the factors of a dot that may be subnormal floats (see `graph.small`)
    of_two: bool = False  # running, over two numbers at most, whose sum is rounded once in single precision, too

    @property
    def is_ordered(self) -> bool:
        """Whether its bits hang on its order, which is ours to choose: those of sums and products of floats."""
        return self.kind in ("sum", "dot", "prod") and not self.running and TYPES[self.types[0]].kind == "f"


class Together(NamedTuple):
    """So many iterations of a dimension that are done at once: the innermost one, cut into `squares` with the lanes
    that are transposed whole; one in which lanes read at the same `places`; all of `short` rows (see `short_rows`); or
    some that do not wait for each other, where those of other dimensions do (`apart`); some that `share` what they fold
    with. Of the lanes of vectors of `chooses` bytes, any are chosen at once, if they have `least` (see `Machine`).
    """

    dim: int
    size: int
    what: Literal["squares", "places", "short", "apart", "share", "tables"]
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
        shape = (extents, self.reduced, *loops)
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


# ---- schedule ----------------------------------------------------------------------------------------------


def schedule(nest: Nest, machine: Machine, in_place: bool = False, few: int = FEW) -> Nest:
    """Merges dimensions, orders the loops, picks the SIMD dimension."""
    vector_bytes = machine.vector_bytes
    splitting.split(nest)
    merging.merge(nest)
    if not in_place and moves.to_units(nest):
        merging.merge(nest)
    live = [d for d, n in enumerate(nest.extents) if n != 1]
    kept = [d for d in live if d not in nest.reduced and d not in nest.rows]
    inner = [d for d in live if d in nest.reduced]
    width, shared = _lanes(nest, vector_bytes), machine.sharing.worthwhile_awake
    short = short_rows.choose(nest, kept, inner, width, machine.chooses)
    if short is not None and (not in_place or short_rows.may_overwrite(nest, short[0], width, shared)):
        nest.vector, d = short
        nest.width, nest.together = width, Together(d, nest.extents[d], "short", machine.chooses)
        outside, folded = (inner, []) if d in inner or nest.vector in inner else ([], inner)
        nest.order = [k for k in (*kept, *outside) if k not in short] + [*short, *folded]
        return nest
    if not in_place and (by_columns.unroll(nest, width) or by_columns.unroll_folds(nest, width)):
        kept = [d for d in kept if nest.extents[d] != 1]
    vector = _pick(nest, kept, inner, width) if nest.trips > _few(nest, vector_bytes, few) else None
    for group in (kept, inner):
        if vector in group:
            group.remove(vector)
            group.append(vector)
    transposed = vector in kept and not nest.folds and not nest.sequential
    inside = _block_transposes(nest, kept, vector) if transposed and vector is not None else None
    nest.order, nest.vector = [*nest.rows, *kept, *inner], vector
    if vector is None and nest.sequential:
        _interleave(nest)
    if vector is not None:
        extent = nest.extents[vector]
        if extent >= vector_bytes // HALF:
            _read_bits(nest, vector)
        nest.width = min(_lanes_of_sums(nest, vector_bytes, vector) or _lanes(nest, vector_bytes, vector), extent)
        light = sum(s.op not in ("const", "load", "load_now") for s in nest.stmts) <= 6
        side = min(nest.width, SQUARE)
        if inside is not None and _tiles(nest, inside, vector, side):
            nest.width, nest.together = side, Together(inside, side, "squares")
        in_copies = nest.folds and all(f.kind != "general" for f in nest.folds)  # these have one accumulator
        most = min((f.copies for f in nest.folds), default=COPIES)
        copies = most if in_copies and inner and extent >= most * nest.width else 1
        nest.unroll = copies if light else 1
        nest.turns = copies if vector in inner and nest.adds_floats else nest.unroll
        if transposed and nest.together is None:
            _share_places(nest, vector, machine)
        choice = machine.chooses, machine.least_chosen
        if nest.together is None and any(table(nest, s, *choice) is not None for s in nest.stmts):
            nest.together = Together(-1, 1, "tables", *choice)
        if nest.run is not None:  # each copy spares a look at what the columns share
            nest.unroll = nest.turns = min(COPIES, extent // nest.width)
        if kept and light and in_copies and not in_place and vector in inner:
            _share_loads(nest, kept[-1], vector, machine)
    return nest


def put_lanes_along_rows(nest: Nest, machine: Machine) -> None:
    """Lanes of a kernel that has one element for each row of a row group, where it finds these side by side."""
    if nest.order != [*nest.rows] or nest.folds or nest.is_checked or any(s.mask >= 0 for s in nest.stores):
        return
    d, types = nest.rows[-1], {s.type for s in nest.stmts if s.op in LOADS} | {s.dtype for s in nest.stores}
    apart = {affine.coefficient(s.attr[2], d) for s in nest.stmts if s.op in LOADS} - {0, 1}
    whole = all(not s.offset[2] and affine.coefficient(s.offset, d) == 1 for s in nest.stores)
    if whole and not apart and all(machine.masks_stores(TYPES[t].bytes) for t in types):
        nest.vector, nest.width = d, _lanes(nest, machine.vector_bytes, d)


def is_one_by_one(nest: Nest, fold: Fold) -> bool:
    """Whether lanes along what is added up hold all of it: such short rows are added up one by one, as they are where
    lanes lie along others.
    """
    whole = nest.vector in nest.reduced and math.prod(nest.extents[d] for d in nest.reduced) <= nest.width
    return whole and fold.is_ordered


def is_extreme(fold: Fold) -> bool:
    """Whether a fold is the largest or smallest of floats."""
    return fold.kind in ("max", "min") and not fold.running and KIND[DTYPES[fold.types[0]]] == "f"


def _few(nest: Nest, vector_bytes: int, few: int) -> int:
    """The iterations that have no lanes: not more than are added up one by one anyhow."""
    if not nest.reduced and any(s.op in COSTLY and s.op not in DIVIDED for s in nest.stmts):
        return 1
    sums = [_sum_bytes(f) for f in nest.folds if f.is_ordered]
    return FEW if sums and nest.trips > vector_bytes // max(sums) else few


HALF = 2  # bytes
LANES_OF_BITS = 32


def _read_bits(nest: Nest, vector: int) -> None:
    """Floats of `HALF` bytes of which only an extreme is wanted are read as their bits, which tell it (see
    `emit.extremes`): nothing is converted, and a vector holds twice as many.
    """
    found = {f.stmts[0] for f in nest.folds if is_extreme(f)}
    found -= {a for s in nest.stmts for a in s.args} | {s.stmt for s in nest.stores}
    found -= {s for f in nest.folds if not is_extreme(f) for s in (*f.stmts, *f.inits)}
    for i in found:
        s = nest.stmts[i]
        if s.op == "load" and s.type in ("bfloat16", "float16") and affine.coefficient(s.attr[2], vector) == 1:
            buffer, _, offset = s.attr
            nest.stmts[i] = s._replace(type="uint16", attr=(buffer, "uint16", offset))


def _block_transposes(nest: Nest, kept: list[int], vector: int) -> int | None:
    """Moves a dimension along which strided loads are contiguous inside the lanes, so that the lines they touch
    stay in cache; returns it.
    """
    for s in nest.stmts:
        if s.op == "load" and abs(affine.coefficient(s.attr[2], vector)) > 2:
            inner = [d for d in kept if d != vector and abs(affine.coefficient(s.attr[2], d)) == 1]
            if inner:
                kept.remove(inner[0])
                kept.append(inner[0])
                return inner[0]
    return None


TILED = 16  # statements of a body that is repeated for each line of a square
SQUARE = 16  # lines of a square at most, which registers hold, of elements of any size


def _tiles(nest: Nest, d: int, vector: int, width: int) -> bool:
    """Whether squares of so many lanes and dimension `d` are worth it: short bodies, some load that is transposed."""
    return (
        nest.extents[d] >= width
        and width in (4, 8, 16)
        and len(nest.stmts) <= TILED
        and all(s.op != "affine" for s in nest.stmts)
        and any(is_transposed(s, d, vector) for s in nest.stmts)
    )


AT_ONCE, FEWER_AT_ONCE, LONG_BODY = 8, 4, 8  # rows; and the statements from which on they are fewer
MOST_AT_ONCE = 128  # elements
SHARED_FROM, FOR_THREADS = 1 << 17, 8  # iterations from which threads share rows; and the times that are left to them


def _interleave(nest: Nest) -> None:
    """Does several iterations in which different elements change at once, where the order of others matters: additions
    to the same element wait for each other, and those to others run between them.
    """
    independent = nest.independent or frozenset()
    free = [d for d in nest.order[:-1] if d in independent]
    moving = [s for s in nest.stmts if s.op == "affine" and free and affine.coefficient(s.attr, free[-1])]
    if not free or nest.order[-1] in independent or moving or nest.is_checked or len(nest.stmts) > TILED:
        return
    rows = nest.extents[free[-1]]
    most = AT_ONCE if nest.trips < SHARED_FROM else min(AT_ONCE, rows // FOR_THREADS)
    count = next((k for k in range(most, 1, -1) if rows % k == 0), 1)
    if count > 1:
        nest.together = Together(free[-1], count, "apart")


def _share_places(nest: Nest, vector: int, machine: Machine) -> None:
    """Does several iterations of a loop at once where lanes read at places that are computed, and the same in all of
    them, as `x[:, i]` does: what tells the places is computed once, and its lanes are taken apart once.
    """
    loops = nest.order[len(nest.rows) : nest.order.index(vector)]
    shared = [d for d in loops if nest.extents[d] >= AT_ONCE and any(shares_place(nest, s, d) for s in nest.stmts)]
    if not shared or any(s.op == "affine" and affine.coefficient(s.attr, shared[-1]) for s in nest.stmts):
        return
    if nest.order[-1] != vector:
        return
    d = shared[-1]
    nest.order.remove(d)
    nest.order.insert(-1, d)
    own = sum(mask >> d & 1 and mask >> vector & 1 for mask in nest.depends)
    many = AT_ONCE if own <= LONG_BODY else FEWER_AT_ONCE
    nest.together = Together(
        d, max(min(many, MOST_AT_ONCE // nest.width), 2), "places", machine.chooses, machine.least_chosen
    )


def _share_loads(nest: Nest, d: int, vector: int, machine: Machine) -> None:
    """Folds several rows at once where they are folded with one vector, as those of `M @ v` are: it is read once for
    all of them. Each row is summed in the order in which it is summed alone.
    """
    loads = [(s, mask) for s, mask in zip(nest.stmts, nest.depends) if s.op in LOADS and mask >> vector & 1]
    shared = [s for s, mask in loads if not mask >> d & 1]
    plain = all(s.op == "load" and not s.args and not s.attr[2][2] for s, _ in loads)
    simple = plain and all(affine.coefficient(s.attr[2], vector) == 1 for s, _ in loads)
    moving = any(s.op == "affine" and affine.coefficient(s.attr, d) for s in nest.stmts)  # which all rows would share
    folds = all(f.kind in COMBINE and not f.partial for f in nest.folds) and not moving
    inner = [k for k in nest.order if k in nest.reduced]
    count = min(AT_ONCE, machine.vector_registers // (2 * nest.unroll * max(len(nest.folds), 1)))
    last = inner[-1:] == [vector]
    if not (shared and len(shared) < len(loads) and simple and folds and last) or nest.is_checked:
        return
    if 1 < count <= nest.extents[d] and nest.run is None:
        nest.together = Together(d, count, "share")


def is_transposed(s: Stmt, d: int, vector: int) -> bool:
    """Whether lanes read one column of rows that lie along `d`."""
    if s.op != "load" or s.args or s.attr[2][2]:
        return False
    return affine.coefficient(s.attr[2], d) == 1 and affine.coefficient(s.attr[2], vector) > 2


@functools.cache
def register_bytes(type_: str) -> int:
    """Bytes of one lane in a register: narrow floats are computed in 32 bits, booleans are masks."""
    if type_ == "bool":
        return 1
    dtype = np.dtype(type_) if type_ in _NUMPY else None
    return (
        max(dtype.itemsize, 4)
        if dtype is not None and KIND[dtype] == "f"
        else dtype.itemsize
        if dtype is not None
        else 4
        if "float" in type_
        else 1
    )


_NUMPY = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())


def _lanes(nest: Nest, vector_bytes: int, vector: int | None = None) -> int:
    """Lanes of a vector. LLVM's code generator never comes to an end where 64 bytes are shuffled and then masked by
    constants, as integers of 1, 2 and 4 bits are, or then tell how far others are shifted with their sign.
    """
    lanes = vector_bytes // _widest(nest, vector)
    types = {s.type for s in nest.stmts if s.op in LOADS} | {s.dtype for s in nest.stores}
    few = any(TYPES[t].kind in "iu" and TYPES[t].narrow for t in types) or any(
        _shifts_bytes(nest, s) for s in nest.stmts
    )
    return min(lanes, LANES_OF_BITS) if few else lanes


def _shifts_bytes(nest: Nest, s: Stmt) -> bool:
    """Whether bytes are shifted so, each by another number of places."""
    is_byte = s.op == "shift_right_arithmetic" and TYPES[s.type].bytes == 1
    return is_byte and nest.stmts[s.args[1]].op != "const"


def _lanes_of_sums(nest: Nest, vector_bytes: int, vector: int) -> int:
    """The lanes of vectors that are added up, which hang on the sums alone, not on what else the nest reads, so that
    their order does not either; 0 where lanes are not folded. Sums of one nest are of one size (see `plan.fuse`).
    """
    sums = [_sum_bytes(f) for f in nest.folds if f.is_ordered] if vector in nest.reduced else []
    return vector_bytes // max(sums) if sums else 0


def _sum_bytes(fold: Fold) -> int:
    return register_bytes(fold.types[0])


def _widest(nest: Nest, vector: int | None = None) -> int:
    """Bytes per lane that decide the width; index arithmetic does not count beside data, nor, where the dimension of
    the lanes is known, what is the same in all of them.
    """
    lanes = -1 if vector is None else 1 << vector
    data = [register_bytes(s.type) for s, mask in zip(nest.stmts, nest.depends) if s.op in LOADS and mask & lanes]
    data += [register_bytes(s.dtype) for s in nest.stores] + [
        register_bytes(nest.stmts[s].type) for f in nest.folds for s in f.stmts
    ]
    return max(data, default=4)


def _pick(nest: Nest, kept: list[int], inner: list[int], width: int) -> int | None:
    """The dimension whose lanes make most accesses contiguous; None for a scalar nest."""
    general, running = any(f.kind == "general" for f in nest.folds), any(f.running for f in nest.folds)
    if running:
        candidates = kept[-1:]
    elif general:
        candidates = kept  # what a function of its own folds is taken in order
    elif nest.sequential:
        candidates = [d for d in kept[-1:] if _window_dimension(nest, d)]
    elif nest.run is not None:
        candidates = [d for d in kept[-1:] if not nest.hangs_on(d)]
    elif nest.stores and not nest.folds:
        few = bool(kept) and nest.extents[kept[-1]] <= most_stride(width * _widest(nest)) and not nest.rows
        candidates = kept[-2 if few else -1 :] + inner[-1:]
    else:
        candidates = _summed(nest, kept, inner, width) if nest.adds_floats else kept + inner[-1:]
    best: int | None = None
    best_score, shuffled = -1.0, most_stride(width * _widest(nest))
    folded = _folded(nest, inner, width)
    loads = [(s, mask) for s, mask in zip(nest.stmts, nest.depends) if s.op in LOADS]
    offsets = [(s.attr[2], s.attr[1], 1.0) for s, mask in loads if not folded or mask & folded]
    offsets += [(s.offset, s.dtype, 2) for s in nest.stores]
    written = 2 if running else 2 / max(len(nest.folds), 1)  # after the loops, not in them
    offsets += [(offset, dtype, written) for f in nest.folds for _, dtype, offset in f.dests]
    in_order = general or running or not nest.folds  # what is folded has no lanes
    functions = sum(s.op in COSTLY for s in nest.stmts) if in_order else 0  # for all lanes, however few are used
    for d in candidates:
        if d in nest.rows:
            continue
        score, together = (1 + functions) * min(nest.extents[d], width) / width, columns.offsets(nest, d)
        for a, dtype, weight in offsets:
            fit = _fit(a, d, nest, columns.MOST if a in together else shuffled)
            score += weight * (ONE_BY_ONE if fit < 0 and TYPES[dtype].bytes < GATHERED else fit)
        if d in nest.reduced:
            places = any(f.kind.startswith("arg") for f in nest.folds)  # of which lanes are dear to compare in the end
            score += -1.0 if places and nest.extents[d] <= 2 * width else 0.5
        if score > best_score:
            best, best_score = d, score
    others = inner[-1:] if best in kept else kept[-1:] if best in inner else []
    fills = (d for d in others if best is not None and d in candidates and _fills(nest, best, d, width))
    return next(fills, best)


def _summed(nest: Nest, kept: list[int], inner: list[int], width: int) -> list[int]:
    """The dimensions along which lanes may lie of a nest that adds floats up, which extents alone say. Rows of one
    vector at most are added up one by one, so any do.
    """
    sums = [f for f in nest.folds if f.is_ordered]
    total, lanes = math.prod(nest.extents[d] for d in inner), width * _widest(nest) // max(_sum_bytes(f) for f in sums)
    if (along := sums[0].along) is not None or not inner:
        return inner[-1:] if along else kept
    if total <= lanes:
        return kept + (inner if len(inner) == 1 else [])
    if any(f.kind == "dot" for f in sums):  # whose operands are in memory, so it hangs on their layouts alone
        return kept + inner[-1:]
    columns = math.prod(nest.extents[d] for d in kept if d > inner[-1])
    narrow = NARROW * columns <= lanes < nest.extents[inner[-1]] <= READ_AGAIN
    return inner[-1:] if columns == 1 or narrow else kept


GATHERED, ONE_BY_ONE = 4, -1.5  # bytes of elements that a gather reads at least; how others fit that lie apart
NARROW = 3  # times a dimension fits into a vector, from which on one that is folded away does better
READ_AGAIN = 1 << 12  # iterations at most, since what they read is read for each element of the narrow dimension


def _fills(nest: Nest, narrow: int, d: int, width: int) -> bool:
    """Whether lanes along dimension `d` fill vectors that those along a `narrow` one do not, and find what they read
    without a gather. One of the two is folded away.
    """
    if NARROW * nest.extents[narrow] > width or width >= nest.extents[d] or nest.rows:
        return False
    if d in nest.reduced and nest.extents[d] > READ_AGAIN:
        return False
    if any(f.kind.startswith("arg") for f in nest.folds):
        return False
    shuffled = most_stride(width * _widest(nest))
    return all(_fit(s.attr[2], d, nest, shuffled) > 0 for s in nest.stmts if s.op in LOADS)


def _folded(nest: Nest, inner: list[int], width: int) -> int:
    """The loops that fold rows, as a mask, where these are long: how something is read once for each matters not."""
    return sum(1 << d for d in inner) if math.prod(nest.extents[d] for d in inner) >= width else 0


def most_stride(vector_bytes: int) -> int:
    """How far apart elements may lie that are read by whole vectors and shuffles, not one by one."""
    return 5 if vector_bytes >= 64 else 4


def _fit(a: Affine, d: int, nest: Nest, shuffled: int) -> float:
    if any(nest.depends[t] >> d & 1 for t, _ in a[2]):
        return -0.5
    c = affine.coefficient(a, d)
    return 1.0 if abs(c) == 1 else 0.25 if c == 0 else 0.5 if c == 2 else 0.25 if 2 < c <= shuffled else -0.5


def _window_dimension(nest: Nest, d: int) -> bool:
    """Whether lanes along `d` write distinct neighbouring elements whatever the indices are."""
    return all(
        affine.coefficient(s.offset, d) == 1 and not any(nest.depends[t] >> d & 1 for t, _ in s.offset[2])
        for s in nest.stores
    )


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
