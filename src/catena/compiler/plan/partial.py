"""Reductions in parallel: chunks of the reduced loop leave partial results, which a second nest folds.

The chunks depend on the nest alone, so sums do not depend on the number of threads.
"""

from __future__ import annotations

import math

from catena.compiler.graph import affine
from catena.compiler.graph.forms import NOTHING
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import DTYPES
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import COMBINE, Fold, Nest, accumulator_type
from catena.compiler.machine import Sharing
from catena.compiler.plan import ranges, sharing
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

FEWEST = 8  # iterations in a chunk for each partial result that it leaves


def chunk(limits: Sharing, nest: Nest, in_place: bool) -> int | None:
    """Iterations of the outermost reduced loop in one chunk; None when the nest stays on one thread."""
    total = sharing.work(nest)
    if not is_foldable(nest, in_place) or total < limits.worthwhile:  # asked last: it hangs on each extent
        return None
    outer = ranges.first_folded(nest)
    assert outer is not None  # else it is not foldable
    step = nest.block(outer)
    kept = math.prod(n for d, n in enumerate(nest.extents) if d not in nest.reduced)
    most = nest.trips // (FEWEST * kept * len(nest.folds))
    count = sharing.chunk_count(limits, total, nest.extents[outer] // step, most)
    if count < 2:
        return None
    size = -(-nest.extents[outer] // count // step) * step
    return size if size <= nest.extents[outer] // 2 else None


def is_foldable(nest: Nest, in_place: bool) -> bool:
    """Whether a nest may leave partial results, which others fold."""
    if in_place or nest.sequential or not nest.folds or nest.rows or nest.run is not None:
        return False
    return all(not f.running and (f.kind in COMBINE or f.kind.startswith("arg")) for f in nest.folds)


class Split(NamedTuple):
    """A reduction in tasks: the ranges of its open loops and which of them is cut, the values that hold what the tasks
    leave and the bytes that each leaves in them, and the nests that fold that.
    """

    opened: ranges.Open
    cut: int
    made: list[Value]
    each: dict[int, int]
    joins: list[Nest]


def split(values: list[Value], nest: Nest, outer: int, size: int) -> Split:
    """Makes the nest one whose tasks of `size` iterations of `outer` leave partial results, which join `values`."""
    opened = ranges.choose(nest, False, outer)
    numbers = opened.whole(nest)
    cut = 0 if opened.outer is None else 2
    count = -(-numbers[cut + 1] // size)  # of whole blocks; the last chunk does the rest too
    made: list[Value] = []
    folds, joins = zip(*(part(values, made, nest, fold, count) for fold in nest.folds))
    nest.folds = list(folds)
    return Split(opened, cut, made, {v.number: v.nbytes // count for v in made}, list(joins))


def part(values: list[Value], made: list[Value], nest: Nest, fold: Fold, count: int) -> tuple[Fold, Nest]:
    """The fold of one of so many chunks, and the nest that folds the results of all; the value of these joins."""
    results = [accumulator_type(fold, t).name for t in fold.types]
    buffer, _, offset = fold.dests[0]
    length = values[buffer].size * (2 if KIND[values[buffer].dtype] == "c" else 1)
    dests, loads = [], []
    chunks = len(nest.extents)  # one more dimension
    for name in results:
        left = Value("beside", (count, length), DTYPES[name], (), NOTHING, len(values))
        values.append(left)
        made.append(left)
        dests.append((left.number, name, offset))
        at = affine.add(offset, affine.scale(affine.dim(chunks), length))
        loads.append(Stmt("load", name, (), (left.number, name, at)))
    kept = [1 if d in nest.reduced else n for d, n in enumerate(nest.extents)]
    depends = sum(1 << d for d, _ in offset[1]) | 1 << chunks
    kind = "sum" if fold.kind == "dot" else fold.kind
    whole = Fold(*fold)._replace(kind=kind, stmts=tuple(range(len(loads))), along=False, small=())
    join = Nest([*kept, count], frozenset([chunks]), loads, [depends] * len(loads), folds=[whole])
    return fold._replace(dests=tuple(dests), partial=True, along=nest.vector in nest.reduced), join
