"""Rows that are shorter than a vector, or little longer: as many of them at once as a vector has lanes.

Lanes along rows of 3 or 10 elements leave most of a vector empty, and lanes across them read elements that lie apart.
Of W rows of n elements, W lanes a vector, n vectors hold all that lies between, in the order of memory. The body runs
on these n *parts*: what a row has one of, such as its sum, and what a column has one of, such as a weight, comes to
their lanes by shuffles. What is folded along the rows is brought to n vectors of columns first, a row in each lane;
where all rows are folded, or rows stay and loops inside are folded (`(x * w[:, :, None]).sum(0)`), each part has
accumulators of its own.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.symbols import decided
from catena.compiler.graph.types import TYPES, Type
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import is_extreme
from catena.compiler.kernels.places import limits
from catena.compiler.machine import LONG_VECTOR, Machine

MOST = 16  # elements of a row
LEAST_ROWS = 4  # vectors of them, in all loops outside together where rows are not folded, too
VECTORS, MOST_FOLDED = 3, 12  # of a row that is longer than one; and elements of it that registers hold for a fold
SPREAD = 3  # vectors that a part is read from at most
LONGEST = 256  # operations of the whole text
LONGEST_NUMBER = 8  # bytes
FOLDED = frozenset("sum prod max min and or xor".split())  # by accumulators for each part
PLAIN = frozenset(["div", "sqrt"])  # operations that take long, but are one instruction


def choose(nest, kept: list[int], inner: list[int], width: int, machine: Machine) -> tuple[int, int] | None:
    """The dimension of rows, and that of their elements; None where rows are taken one by one."""
    if nest.rows or nest.sequential or nest.is_checked or nest.run is not None:
        return None
    if any(f.running or f.kind == "general" for f in nest.folds) or bool(inner) != bool(nest.folds):
        return None  # folds without a loop, over one element, have results along the rows
    if (inside := _folds_inside(nest, kept, inner, width)) is not None:
        v, d, least = *inside, width
    elif len(kept) + len(inner) < 2:
        return None
    elif len(inner) != 1 and any(f.kind.startswith("arg") for f in nest.folds):
        return None
    else:
        v, d = [*kept, *inner][-2:]  # where loops outside stay, the parts' accumulators become one again and again
        least = max(LEAST_ROWS, nest.extents[d] // 2 if kept else 0) * width if v in inner else width
    n = nest.extents[d]
    if not 1 < n <= MOST or nest.extents[v] < least:
        return None
    if n > width - (not (inner and kept)) and not _may_be_longer(nest, d, n, width, machine):
        return None
    if inside is None and v not in inner and nest.trips < LEAST_ROWS * width * n:
        return None
    return (v, d) if _fits(nest, v, d, width, machine.chooses) and _length(nest, d, n) <= LONGEST else None


def _may_be_longer(nest, d: int, n: int, width: int, machine: Machine) -> bool:
    """Whether rows that are longer than a vector are worth it: what is read and written has no rest of a vector then.
    Extremes of floats, and of numbers of 64 bits with their places, spare joining the lanes of each row, which takes as
    long as reading two vectors where these are not long. Sums are added up by lanes, however many rows there are.
    """
    is_whole = n % width == 0
    if n > VECTORS * width:
        return False
    if not nest.folds:
        return not is_whole
    if d not in nest.reduced or machine.vector_bytes >= LONG_VECTOR:
        return False
    return all(_is_dear_to_join(f, is_whole) for f in nest.folds) and (len(nest.folds) > 1 or n <= MOST_FOLDED)


def _is_dear_to_join(fold, is_whole: bool) -> bool:
    is_long = TYPES[fold.types[0]].bytes == LONGEST_NUMBER
    if fold.kind.startswith("arg"):
        return is_long
    return not is_whole and (is_extreme(fold) or (is_long and fold.kind in ("max", "min")))


def may_overwrite(nest, v: int, width: int, shared: int) -> bool:
    """Whether short rows are taken together that are written where they are read: blocks must not overlap. Where rows
    are no whole blocks, one thread does them alone, which is so below `shared` iterations, and the last block is
    shorter, which chooses no lanes.
    """
    if nest.folds:
        return False
    chosen = any(s.op in LOADS and s.attr[2][2] for s in nest.stmts)
    return nest.extents[v] % width == 0 or (not chosen and nest.trips < shared)


def _folds_inside(nest, kept: list[int], inner: list[int], width: int) -> tuple[int, int] | None:
    """The dimensions of rows and of their elements where both stay, and loops inside of these are folded: there what
    lies in the lanes tells nothing of the order of sums.
    """
    if len(kept) < 2 or not inner:
        return None
    steps = {affine.coefficient(nest.folds[0].dests[0][2], k): k for k in kept}
    d = steps.get(1, -1)
    v, n = steps.get(nest.extents[d], -1), nest.extents[d]
    if min(d, v) < 0 or max(inner) > v:
        return None
    plain = all(f.kind in FOLDED and not f.along for f in nest.folds)
    whole = all(way(o, v, d, n, width) == "whole" and not o[2] for f in nest.folds for *_, o in f.dests)
    return (v, d) if plain and whole and n < width else None


def _length(nest, d: int, n: int) -> int:
    return sum(1 if is_looped(s.op) else n for s, mask in zip(nest.stmts, nest.depends) if mask >> d & 1)


def is_looped(op: str) -> bool:
    """Whether an operation is a function, whose text would be too long to stand there for each part."""
    return op in COSTLY and op not in PLAIN


def _fits(nest, v: int, d: int, width: int, chooses: int) -> bool:
    """Whether all that moves along the rows is read by whole vectors, and written so; some of it in memory's order."""
    loads = [s for s, mask in zip(nest.stmts, nest.depends) if s.op in ("load", "load_now") and mask >> d & 1]
    if any(s.op == "load_now" for s in loads) or any(s.mask >= 0 for s in nest.stores):
        return False
    n = nest.extents[d]
    told = [s for s in loads if s.attr[2][2]]
    if any(s.args for s in loads if s not in told) or any(within(nest, s, v, d, width, chooses) is None for s in told):
        return False
    ways = [way(s.attr[2], v, d, n, width) for s in loads if s not in told]
    written = [way(s.offset, v, d, n, width) if not s.offset[2] else None for s in nest.stores]
    if None in ways or any(w not in ("whole", "columns") for w in written):
        return False
    along = nest.folds and (v in nest.reduced or d in nest.reduced)
    return "whole" in (*ways, *written) and not (along and "columns" in (*ways, *written))


def within(nest, s, v: int, d: int, width: int, chooses: int) -> tuple[int, int] | None:
    """The bounds of the computed places that a load's lanes read in their rows, where two vectors hold the rows of each
    part, and lanes are chosen.
    """
    _, dims, terms = s.attr[2]
    along, inside = (dict(dims).get(x, 0) for x in (v, d))
    if len(terms) != 1 or terms[0][1] != 1 or inside or along < 1 or not chooses:
        return None
    bounds, alone = limits(nest, terms[0][0], s.args[0] if s.args else -1)
    if bounds is None or not alone or chosen_lane(TYPES[s.attr[1]], width, chooses) is None:
        return None
    n = nest.extents[d]
    rows = max(((part + 1) * width - 1) // n - part * width // n for part in range(n))
    return bounds if rows * along + bounds[1] - bounds[0] < 2 * width else None


def chosen_lane(t: Type, width: int, chooses: int) -> str | None:
    """The type of the lanes of whole vectors in which elements are chosen; None where they do not fit. Those that are
    smaller than a lane are widened before.
    """
    bits, size = 8 * chooses // width, 8 * t.bytes
    if size == bits:
        return t.memory if bits == 32 or (bits, chooses) == (64, 64) else None
    return f"i{bits}" if size < bits and bits in (32, 64) and chooses == 64 else None


def way(a: Affine, v: int, d: int, n: int, width: int) -> str | None:
    """How parts are read at an offset: `whole`, from a few vectors each (`spread`), or by `columns`."""
    along, inside = affine.coefficient(a, v), affine.coefficient(a, d)
    if (along, inside) == (n, 1):
        return "whole"
    if _are_few(along, inside, n, width):
        return "spread"
    return "columns" if along == 1 else None


@decided
def _are_few(along: int, inside: int, n: int, width: int) -> bool:
    """Whether a few vectors hold each part."""
    return all(vectors(places(along, inside, n, part, width), width) <= SPREAD for part in range(n))


def places(along: int, inside: int, n: int, part: int, width: int) -> list[int]:
    """Where the lanes of a part are, from the first element of the first row on."""
    numbers = range(part * width, (part + 1) * width)
    return [k // n * along + k % n * inside for k in numbers]


def vectors(at: list[int], width: int) -> int:
    """How many vectors hold such places."""
    return (max(at) - min(at)) // width + 1
