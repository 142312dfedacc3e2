"""Reductions over the rows of a large array, in bands of a few rows.

Where lanes are columns, the sum of each strip of columns reads a little of every row. Of rows that lie far apart in an
array beyond the caches, each such piece is fetched by itself, from another page. So a band of rows is reduced after
the other, to a row of partial results, and these are folded: memory is read in its order but for a band's few rows, and
so is what the same loops write for each row. Of short rows that end within lines, strips share lines: these are fetched
once for a band, not for each strip.

Where the order does not tell, rows that are shorter than a vector are taken in bands *in turn*: of 64 bands, each has
every 64th row, so their rows lie side by side, and vectors are full.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import conditions, unused
from catena.compiler.kernels.by_columns import UNORDERED
from catena.compiler.kernels.loops import LOADS, Fold, Nest
from catena.compiler.kernels.scheduling import register_bytes
from catena.compiler.machine import Memory
from catena.compiler.plan import partial
from catena.compiler.plan.cascades import BLOCK
from catena.compiler.plan.fuse import Kernel
from catena.core.named import NamedTuple

ROWS = BLOCK  # of a band: few enough streams for processors to follow, and the order of a sum that goes in blocks
FEWEST = 8  # bands
LONG = 1 << 17  # elements of a row along the lanes, from which on it is taken in bands,
BAND = 1 << 14  # of about so many
BEYOND = 2  # second caches, from which on an array is read from further away
APART = 1024  # bytes from a row to the next, from which it is on a strip's way to another page
MOST_SEAMS = 3  # at which what is read changes along the rows, that bands are told apart by
SHORT = 512  # bytes from a row to the next, up to which the lines that strips share are a good part of all
IN_TURN, LEAST_IN_TURN = 64, 16  # bands that take rows in turn, and rows of each
MOST_EMPTY = 4  # times that a row fits into a vector, from which on they do


class Bands(NamedTuple):
    """The dimension of a nest that is taken in bands, of how many of its iterations each is, and how far apart."""

    dim: int
    size: int
    step: int = 1


def find(memory: Memory, nest: Nest, in_place: bool) -> Bands | None:
    """The bands of a scheduled nest; None where there are none."""
    folded = [d for d in nest.order if d in nest.reduced]
    if nest.vector in nest.reduced and nest.adds_floats:
        return _of_long_rows(nest, folded)
    far = _far(memory, nest, folded, in_place)
    return None if far is None else Bands(far, ROWS)


def are_in(kernel: Kernel) -> bool:
    """Whether the rows that a kernel folds are so long that they may be taken in bands."""
    return math.prod(kernel.space[d] for d in kernel.axes) > LONG


def _of_long_rows(nest: Nest, folded: list[int]) -> Bands | None:
    """The bands of rows that lanes add up, by their lengths alone: it does not show whether threads share rows."""
    if math.prod(nest.extents[d] for d in folded) <= LONG or not partial.is_foldable(nest, False):
        return None
    outer, *inside = folded
    size = max(BAND // math.prod(nest.extents[d] for d in inside), 1)
    return Bands(outer, size) if nest.extents[outer] >= 2 * size else None


def aligned(nest: Nest, size: int) -> Bands | None:
    """Bands of about so many rows that are added up across the lanes: whole blocks of a cascade, so that the order is
    the same as without.
    """
    folded = [d for d in nest.order if d in nest.reduced]
    if len(folded) != 1:
        return None
    n, block = nest.extents[folded[0]], BLOCK
    while block * BLOCK <= size and n // block >= 2 * BLOCK and not BLOCK < n % (block * BLOCK) < 2 * BLOCK:
        block *= BLOCK  # a rest of one block and a part of another would be too short for blocks
    return Bands(folded[0], block) if n >= 2 * BLOCK else None


def in_turn(nest: Nest, in_place: bool, vector_bytes: int) -> Bands | None:
    """The bands of a scheduled nest that folds rows shorter than a vector, in any order, and reads whole rows alone."""
    folded, kept = ([d for d in nest.order if (d in nest.reduced) is is_in] for is_in in (True, False))
    if len(folded) != 1 or kept != [nest.vector] or nest.together is not None or nest.is_checked or nest.stores:
        return None
    (d,), (v,) = folded, kept
    if nest.extents[d] < LEAST_IN_TURN * IN_TURN or not partial.is_foldable(nest, in_place):
        return None
    if any(f.is_ordered or f.kind not in UNORDERED or _fills(nest, f, v, vector_bytes) for f in nest.folds):
        return None
    rows = all(mask >> d & 1 for s, mask in zip(nest.stmts, nest.depends) if mask >> v & 1)
    moving = [s for s, mask in zip(nest.stmts, nest.depends) if mask >> d & 1 and s.op in (*LOADS, "affine")]
    whole = all(s.op == "load" and not s.args and _is_whole(s.attr[2], nest, d, v) for s in moving)
    return Bands(d, nest.extents[d] // IN_TURN, IN_TURN) if rows and whole else None


def _fills(nest: Nest, fold: Fold, v: int, vector_bytes: int) -> bool:
    """Whether the elements of dimension `v` fill a good part of a vector of what is folded."""
    return MOST_EMPTY * nest.extents[v] * max(register_bytes(t) for t in fold.types) > vector_bytes


def _is_whole(a: Affine, nest: Nest, d: int, v: int) -> bool:
    """Whether rows `d` of elements `v` lie one behind the other."""
    return not a[2] and (affine.coefficient(a, v), affine.coefficient(a, d)) == (1, nest.extents[v])


def _far(memory: Memory, nest: Nest, folded: list[int], in_place: bool) -> int | None:
    """The dimension of rows that lie far apart in memory, if a nest folds these."""
    lanes = nest.vector
    if lanes is None or lanes in nest.reduced or len(folded) != 1 or nest.is_checked:
        return None
    if not partial.is_foldable(nest, in_place) or nest.extents[folded[0]] < FEWEST * ROWS:
        return None
    of_lanes = {lanes: 1} if nest.short is None else {lanes: nest.extents[nest.short], nest.short: 1}
    apart = [(s, _bytes_apart(memory, s, folded[0], of_lanes)) for s in nest.stmts]
    one_part = max((n for s, n in apart if s.args), default=0)  # of those that are read where it is their turn
    of_row = one_part + sum(n for s, n in apart if not s.args)
    read = of_row * nest.trips // math.prod(nest.extents[d] for d in of_lanes)
    return folded[0] if read > BEYOND * memory.second_cache else None


def _bytes_apart(memory: Memory, s, d: int, of_lanes: dict[int, int]) -> int:
    """How far apart the rows lie that a statement reads, if it does, side by side by steps of dimensions `of_lanes`,
    and if they lie far apart, or share lines.
    """
    if s.op not in LOADS or s.attr[2][2] or any(affine.coefficient(s.attr[2], k) != n for k, n in of_lanes.items()):
        return 0
    apart = abs(affine.coefficient(s.attr[2], d)) * TYPES[s.attr[1]].bytes
    shares_lines = memory.line < apart <= SHORT and apart % memory.line
    return apart if apart >= APART or shares_lines else 0


Made = tuple[list[Value], list[Nest], list[Nest]]


def split(values: list[Value], nest: Nest, d: int, rows: int, step: int = 1) -> Made:
    """The values of the partial results, which join `values`; the nests that make them, and those that fold them."""
    bands = step if step > 1 else nest.extents[d] // rows
    rest = nest.extents[d] - bands * rows
    made: list[Value] = []
    parts = [partial.part(values, made, nest, fold, bands + bool(rest)) for fold in nest.folds]
    nest = dataclasses.replace(nest, folds=[fold for fold, _ in parts])
    lengths = {v.number: v.shape[1] for v in made}
    cut = functools.partial(_band, nest, lengths, d)
    nests = (
        _in_turn(cut, bands, rows, rest) if step > 1 else _in_order(cut, conditions.find(nest, d), bands, rows, rest)
    )
    return made, nests, [join for _, join in parts]


def _in_turn(cut: Callable[..., Nest], bands: int, rows: int, rest: int) -> list[Nest]:
    """The bands that take rows in turn, and one more of those that are left."""
    whole = cut(0, bands, rows, 0, bands, 1)
    return [whole, cut(bands, 1, rest, bands * rows, 1, 1)] if rest else [whole]


def _in_order(cut: Callable[..., Nest], seams: dict, bands: int, rows: int, rest: int) -> list[Nest]:
    """The bands that lie one behind the other, the last of which may be shorter."""
    cuts = _cuts(seams, bands, rows)
    alike = [(first, stop, rows) for first, stop in zip([0, *cuts], [*cuts, bands])] + [(bands, bands + 1, rest)]
    nests = []
    for first, stop, size in alike[: None if rest else -1]:
        part = cut(first, stop - first, size, first * rows, 1, rows)
        known = conditions.settled(seams, first * rows, (stop - 1) * rows + size)
        nests.append(unused.leave_out(conditions.without(part, known)) if known else part)
    return nests


def _cuts(seams: dict[int, conditions.Seam], bands: int, rows: int) -> list[int]:
    """Where a nest over so many bands is cut: around those through which a seam goes. So what lies before and behind it
    is read without masks: a condition on a row within a band hangs on two loops, and would be asked for each element.
    """
    places = sorted({s.place for s in seams.values() if s.place is not None and 0 < s.place < bands * rows})
    if len(places) > MOST_SEAMS:
        return []
    return sorted({k for p in places for k in (p // rows, -(-p // rows)) if 0 < k < bands})


def _band(
    nest: Nest, lengths: dict[int, int], d: int, first: int, count: int, size: int, now: int, step: int, apart: int
) -> Nest:
    """The nest for `count` bands from the `first` one on, each of `size` rows, `step` apart; that begins at row `now`,
    each of the others `apart` rows behind the one before. They are one more dimension, which steps over the `lengths`
    of the values of partial results.
    """
    band = len(nest.extents)

    def moved(a: Affine) -> Affine:
        c = affine.coefficient(a, d)
        stepped = affine.add(affine.shift(a, c * now), affine.scale(affine.dim(d), c * (step - 1)))
        return affine.add(stepped, affine.scale(affine.dim(band), c * apart))

    def place(a: Affine, length: int) -> Affine:
        return affine.add(affine.shift(a, first * length), affine.scale(affine.dim(band), length))

    read = [s._replace(attr=(*s.attr[:2], moved(s.attr[2]))) if s.op in LOADS else s for s in nest.stmts]
    stmts = [s._replace(attr=moved(s.attr)) if s.op == "affine" else s for s in read]
    folds = [f._replace(dests=tuple((b, t, place(o, lengths[b])) for b, t, o in f.dests)) for f in nest.folds]
    extents = [*(size if k == d else n for k, n in enumerate(nest.extents)), count]
    depends = [m | (m >> d & 1) << band for m in nest.depends]
    stores = [s._replace(offset=moved(s.offset)) for s in nest.stores]
    return dataclasses.replace(nest, extents=extents, stmts=stmts, depends=depends, stores=stores, folds=folds)
