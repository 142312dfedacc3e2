"""Schedules: in which order the loops of a nest lie, which dimension becomes SIMD lanes, and what is done at once.

`schedule` drops dimensions of one element, merges neighbours that every access crosses contiguously, orders the loops
(kept dimensions outside, reduced ones inside) and picks the dimension of the lanes.
"""

from __future__ import annotations

import functools
import math
from collections import Counter

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import by_columns, columns, merging, moves, short_rows, splitting
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import (
    COMBINE,
    COPIES,
    ComparedFold,
    Fold,
    Nest,
    PlacedFold,
    Together,
    is_extreme,
    is_idempotent,
)
from catena.compiler.kernels.places import shares_place, table
from catena.compiler.machine import Machine, Memory
from catena.core.dtypes import KIND

DIVIDED = ("div", "rem", "sqrt", "integer_pow")  # of which a scalar is an instruction or two
LIGHT = 12  # statements that may be written several times
BESIDE, MOST_BESIDE = 2, 48  # vectors of columns that are folded at once, and statements of a nest that does so
LEAST_MASKED = 8  # vectors of running folds, whose elements lie apart, before those under a mask take next to no time
FEW = 4  # iterations of a nest without lanes: scalars in registers need no shuffles


def schedule(nest: Nest, machine: Machine, in_place: bool = False, few: int = FEW) -> Nest:
    """Merges dimensions, orders the loops, picks the SIMD dimension."""
    vector_bytes = machine.vector_bytes
    if machine.compares_floats:
        nest.folds = _compared(nest.folds)
    splitting.split(nest)
    merging.merge(nest)
    if not in_place and moves.to_units(nest):
        merging.merge(nest)
    live = [d for d, n in enumerate(nest.extents) if n != 1]
    kept = [d for d in live if d not in nest.reduced and d not in nest.rows]
    inner = [d for d in live if d in nest.reduced]
    width, shared = _lanes(nest, vector_bytes), machine.sharing.worthwhile_awake
    short = short_rows.choose(nest, kept, inner, width, machine)
    if short is not None and (not in_place or short_rows.may_overwrite(nest, short[0], width, shared)):
        nest.vector, d = short
        nest.width, nest.together = width, Together(d, nest.extents[d], "short", machine.chooses)
        outside, folded = (inner, []) if d in inner or nest.vector in inner else ([], inner)
        nest.order = [k for k in (*kept, *outside) if k not in short] + [*short, *folded]
        return nest
    if not in_place and (by_columns.unroll(nest, width) or by_columns.unroll_folds(nest, width)):
        kept = [d for d in kept if nest.extents[d] != 1]
    vector = _pick(nest, kept, inner, width) if nest.trips > _few(nest, vector_bytes, few) else None
    around = nest.sequential and vector is not None and vector != kept[-1]  # updates of its elements wait inside
    for group in (kept, inner):
        if vector in group:
            group.remove(vector)
            group.insert(0 if around else len(group), vector)
    transposed = vector in kept and not nest.folds and not nest.sequential
    inside = _block_transposes(nest, kept, vector) if transposed and vector is not None else None
    nest.order, nest.vector = [*nest.rows, *kept, *inner], vector
    if vector is None and nest.sequential:
        _interleave(nest)
    if vector is not None:
        extent = nest.extents[vector]
        _read_bits(nest, vector, vector_bytes // HALF)
        nest.folds = [_placed(nest, f, vector) if f.kind.startswith("arg") else f for f in nest.folds]
        nest.width = min(_lanes_of_sums(nest, vector_bytes, vector) or _lanes(nest, vector_bytes, vector), extent)
        if not nest.adds_floats and any(isinstance(f, PlacedFold) and f.place_bytes == 1 for f in nest.folds):
            nest.width = 1 << nest.width.bit_length() - 1  # lanes of which bits are made
        light = sum(s.op not in ("const", "load", "load_now") for s in nest.stmts) <= 6
        side = min(nest.width, SQUARE)
        if inside is not None and _tiles(nest, inside, vector, side):
            nest.width, nest.together = side, Together(inside, side, "squares")
            if _finishes_lines(nest, inside, vector, machine):
                nest.order[-2:] = inside, vector
        in_copies = bool(nest.folds) and all(f.kind != "general" for f in nest.folds)  # these have one accumulator
        _unroll(nest, inner, extent, light, in_copies, around)
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


def _unroll(nest: Nest, inner: list[int], extent: int, light: bool, in_copies: bool, around: bool) -> None:
    """How many vectors of the SIMD dimension, which has such an `extent`, are done at once, and how many accumulators
    take turns; `in_copies` says whether folds may have several, `around` whether loops are inside of it.
    """
    is_folded = nest.vector in inner
    most = min((f.copies for f in nest.folds), default=COPIES)
    copies = most if in_copies and inner and extent >= most * nest.width else 1
    copies = max(1, min(AT_ONCE, extent // nest.width)) if around else copies
    nest.unroll = copies if light else 1
    if in_copies and inner and not is_folded and not around:
        nest.unroll = copies if light and copies > 1 else _columns_at_once(nest, extent, light)
    nest.turns = copies if is_folded and nest.adds_floats else nest.unroll


def _columns_at_once(nest: Nest, extent: int, light: bool) -> int:
    """How many vectors of so many columns are folded at once: what is read of a row lies side by side then, and its
    lines come twice as fast as where each is a row away from the one before. Where next to nothing is done, it is not
    worth columns that are done twice, and otherwise not many copies.
    """
    if not light and (len(nest.stmts) > MOST_BESIDE or any(s.op in COSTLY for s in nest.stmts)):
        return 1
    width = nest.width
    sizes = [n for n in range(1 if light else 2, BESIDE + 1) if n * width <= extent]
    return min(sizes, key=lambda n: (-(-extent // (n * width)) * n, -n if light else n), default=1)


def leave_rest_open(nest: Nest, machine: Machine, in_place: bool) -> None:
    """Chooses how lanes behind whole blocks, which may not be done twice, are done without the text telling how many
    these are. What is read soon after it was written under a mask waits for that: of light loops it is written by
    vectors of half as many lanes each.
    """
    d = nest.vector
    if d is None or d in nest.reduced or is_idempotent(nest, d, in_place) or nest.extents[d] <= nest.width:
        return
    if nest.sequential or nest.together is not None or nest.is_checked or any(s.mask >= 0 for s in nest.stores):
        return
    light = len(nest.stmts) <= LIGHT and not any(s.op in COSTLY for s in nest.stmts)
    if light and not nest.folds and nest.order[-1] == d:
        nest.together = Together(-1, 1, "halves")
        return
    types = {s.type for s in nest.stmts if s.op in LOADS} | {s.dtype for s in nest.stores}
    types |= {dtype for f in nest.folds for _, dtype, _ in f.dests}
    enough = not nest.folds or nest.extents[d] >= LEAST_MASKED * nest.width
    if enough and not columns.offsets(nest, d) and all(machine.masks(TYPES[t].bytes) for t in types):
        nest.together = Together(-1, 1, "masked")


def put_lanes_along_rows(nest: Nest, machine: Machine) -> None:
    """Lanes of a kernel that has one element for each row of a row group, where it finds these side by side."""
    if nest.order != [*nest.rows] or nest.folds or nest.is_checked or any(s.mask >= 0 for s in nest.stores):
        return
    d, types = nest.rows[-1], {s.type for s in nest.stmts if s.op in LOADS} | {s.dtype for s in nest.stores}
    apart = {affine.coefficient(s.attr[2], d) for s in nest.stmts if s.op in LOADS} - {0, 1}
    whole = all(not s.offset[2] and affine.coefficient(s.offset, d) == 1 for s in nest.stores)
    if whole and not apart and all(machine.masks_stores(TYPES[t].bytes) for t in types):
        nest.vector, nest.width = d, _lanes(nest, machine.vector_bytes, d)


def _few(nest: Nest, vector_bytes: int, few: int) -> int:
    """The iterations that have no lanes: not more than are added up one by one anyhow."""
    if not nest.reduced and any(s.op in COSTLY and s.op not in DIVIDED for s in nest.stmts):
        return 1
    sums = [_sum_bytes(f) for f in nest.folds if f.is_ordered]
    return FEW if sums and nest.trips > vector_bytes // max(sums) else few


def _compared(folds: list[Fold]) -> list[Fold]:
    """Extremes of doubles by comparing these; of other floats, whose bits tell both at once, where one is asked for."""
    asked = Counter(f.stmts for f in folds if is_extreme(f))
    compared = {"float64": 2, "float32": 1}  # and how many are asked for, at most
    return [ComparedFold(*f) if is_extreme(f) and asked[f.stmts] <= compared.get(f.types[0], 0) else f for f in folds]


def _placed(nest: Nest, fold: Fold, vector: int) -> Fold:
    """A place of an extreme, where lanes lie along places that follow each other, and 32 bits are enough for all."""
    place = nest.stmts[fold.stmts[1]]
    if place.op == "convert":
        place = nest.stmts[place.args[0]]
    is_next = place.op == "affine" and not place.attr[2] and affine.coefficient(place.attr, vector) == 1
    few = math.prod(nest.extents[d] for d in nest.reduced) < 1 << 31
    return PlacedFold(*fold) if vector in nest.reduced and is_next and few else Fold(*fold)


HALF = 2  # bytes
LANES_OF_BITS = 32


def _read_bits(nest: Nest, vector: int, lanes: int) -> None:
    """Floats of `HALF` bytes of which only an extreme is wanted are read as their bits, which tell it (see
    `emit.extremes`): nothing is converted, and a vector holds twice as many, `lanes`, where there are so many.
    """
    found = {f.stmts[0] for f in nest.folds if is_extreme(f)}
    found -= {a for s in nest.stmts for a in s.args} | {s.stmt for s in nest.stores}
    found -= {s for f in nest.folds if not is_extreme(f) for s in (*f.stmts, *f.inits)}
    for i in found:
        s = nest.stmts[i]
        is_half = s.op == "load" and s.type in ("bfloat16", "float16") and affine.coefficient(s.attr[2], vector) == 1
        if is_half and nest.extents[vector] >= lanes:
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


def _finishes_lines(nest: Nest, d: int, vector: int, machine: Machine) -> bool:
    """Whether squares whose lines are vectors, but parts of lines of memory, go on along the lanes: what is written in
    one line is written at once, if the lines that are read stay in the nearest cache until the next squares read the
    rest of them. Not where all of it stays there, nor what goes past the caches.
    """
    memory, size = machine.memory, TYPES[nest.stores[0].dtype].bytes
    matrix = nest.extents[d] * nest.extents[vector] * size
    if nest.width * size < machine.vector_bytes or nest.width * size >= memory.line:
        return False
    if nest.order[-2:] != [vector, d] or 2 * matrix <= memory.first_cache:
        return False
    if math.prod(nest.extents) * size >= memory.streamed_squares:
        return False
    across = [s for s in nest.stmts if is_transposed(s, d, vector)]
    steps = [affine.coefficient(s.attr[2], vector) * TYPES[s.attr[1]].bytes for s in across]
    sets = min(_sets(step, memory) for step in steps)
    return nest.extents[vector] * len(steps) <= sets * (memory.first_cache // memory.page)


def _sets(step: int, memory: Memory) -> int:
    """In how many sets of the nearest cache lines are kept that are so many bytes apart."""
    apart = memory.page
    while apart > memory.line and step % apart:
        apart //= 2
    return memory.page // apart


AT_ONCE, FEWER_AT_ONCE, LONG_BODY = 8, 4, 8  # rows; and the statements from which on they are fewer
MOST_AT_ONCE = 128  # elements
SHARED_FROM, FOR_THREADS = 1 << 17, 8  # iterations from which threads share rows; and the times that are left to them
AT_SAME_PLACES, FEWER_FOR_THREADS = 4, 2  # likewise, of rows that change at the same places, which are looked at once


def _interleave(nest: Nest) -> None:
    """Does several iterations in which different elements change at once, where the order of others matters: additions
    to the same element wait for each other, and those to others run between them.
    """
    independent = nest.independent or frozenset()
    free = [d for d in nest.order[:-1] if d in independent]
    if not free or nest.order[-1] in independent or nest.is_checked or len(nest.stmts) > TILED:
        return
    d, rows = free[-1], nest.extents[free[-1]]
    if any(s.op == "affine" and affine.coefficient(s.attr, d) for s in nest.stmts):
        return
    at_same = any(s.op in LOADS and not mask >> d & 1 for s, mask in zip(nest.stmts, nest.depends))
    most, left = (AT_SAME_PLACES, FEWER_FOR_THREADS) if at_same else (AT_ONCE, FOR_THREADS)
    most = most if nest.trips < SHARED_FROM else min(most, rows // left)
    count = next((k for k in range(most, 1, -1) if rows % k == 0), 1)
    if count > 1:
        nest.together = Together(d, count, "apart")


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
    own = [s for s, mask in zip(nest.stmts, nest.depends) if mask >> d & 1 and mask >> vector & 1]
    short = len(own) <= LONG_BODY and not any(s.op in COSTLY for s in own)  # which is written once for each iteration
    many = AT_ONCE if short else FEWER_AT_ONCE
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
    the lanes is known, what is the same in all of them, nor what counts them.
    """
    lanes = -1 if vector is None else 1 << vector
    data = [register_bytes(s.type) for s, mask in zip(nest.stmts, nest.depends) if s.op in LOADS and mask & lanes]
    data += [register_bytes(s.dtype) for s in nest.stores]
    for f in nest.folds:
        sizes = [register_bytes(nest.stmts[s].type) for s in f.stmts]
        data += [sizes[0], f.place_bytes] if isinstance(f, PlacedFold) else sizes
    return max(data, default=4)


def _pick(nest: Nest, kept: list[int], inner: list[int], width: int) -> int | None:
    """The dimension whose lanes make most accesses contiguous; None for a scalar nest."""
    general, running = any(f.kind == "general" for f in nest.folds), any(f.running for f in nest.folds)
    if running:
        candidates = kept[-1:]
    elif general:
        candidates = kept  # what a function of its own folds is taken in order
    elif nest.sequential:
        free = (d for d in kept[:-1] if d in (nest.independent or ()) and _needs_no_gather(nest, d, width))
        candidates = [d for d in (*free, *kept[-1:]) if _window_dimension(nest, d)]
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
            places = any(f.kind.startswith("arg") and f.types[0] != "bool" for f in nest.folds)
            score += -1.0 if places and nest.extents[d] <= 2 * width else 0.5  # lanes are dear to compare in the end
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
    return _needs_no_gather(nest, d, width)


def _needs_no_gather(nest: Nest, d: int, width: int) -> bool:
    """Whether lanes along dimension `d` read neighbours, or by whole vectors and shuffles."""
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
