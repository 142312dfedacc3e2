"""Reductions in parallel: chunks of the reduced loop leave partial results, which a second nest folds.

The chunks depend on the nest alone, so sums do not depend on the number of threads.
"""

from __future__ import annotations

import math

from catena.compiler import affine
from catena.compiler.body import Stmt
from catena.compiler.emit import interrupts, parallel, pauses, ranges
from catena.compiler.emit.folds import COMBINE, accumulator_type
from catena.compiler.graph import Value
from catena.compiler.loops import Fold, Nest
from catena.compiler.types import DTYPES
from catena.core.dtypes import KIND

FEWEST = 8  # iterations in a chunk for each partial result that it leaves


def chunk(nest: Nest, in_place: bool) -> int | None:
    """Iterations of the outermost reduced loop in one chunk; None when the nest stays on one thread."""
    total = parallel.work(nest)
    foldable = all(f.kind in COMBINE or f.kind.startswith("arg") for f in nest.folds)
    if total < parallel.WORTHWHILE or in_place or nest.sequential or not nest.folds or not foldable:
        return None
    if any(f.running for f in nest.folds) or nest.rows:
        return None
    outer = ranges.first_folded(nest)
    step = ranges.step(nest, outer)
    kept = math.prod(n for d, n in enumerate(nest.extents) if d not in nest.reduced)
    most = nest.trips // (FEWEST * kept * len(nest.folds))
    count = min(parallel.chunks(total), nest.extents[outer] // step, most)
    if count < 2:
        return None
    size = -(-nest.extents[outer] // count // step) * step
    return size if size <= nest.extents[outer] // 2 else None


def write(w, frame, nest: Nest, size: int) -> None:
    """Writes the nest as chunks of `size` iterations, and the fold of what they leave."""
    outer = ranges.first_folded(nest)
    opened = ranges.choose(nest, False, outer)
    numbers = opened.whole(nest)
    cut = 0 if opened.outer is None else 2
    count = -(-numbers[cut + 1] // size)  # of whole blocks; the last chunk does the rest too
    joins = [_part(w, frame, nest, fold, count) for fold in nest.folds]
    nest.folds = [fold for fold, *_ in joins]
    each = {b: n for _, _, lengths in joins for b, n in lengths.items()}
    pointers = {b: w.buffer(frame, b) for b in nest.buffers()}
    pause = pauses.plan(nest, size / nest.extents[outer])
    ask = interrupts.table(w) if pause else None
    name = w.nest_function(nest, list(pointers), False, opened, pause, each)
    parts = [each.get(b, 0) for b in pointers]
    parallel.call(w, name, list(pointers.values()), numbers, cut, size, parallel.work(nest), parts, ask)
    for _, join, _ in joins:
        w.nest(frame, join)
    for b in each:
        w._free(frame.blocks.pop(b))


def _part(w, frame, nest: Nest, fold: Fold, count: int) -> tuple[Fold, Nest, dict[int, int]]:
    """The fold of a chunk, the nest that folds the results of all chunks, and the bytes that each leaves by buffer."""
    values, results = frame.fused.region.values, [accumulator_type(fold, t).name for t in fold.types]
    buffer, _, offset = fold.dests[0]
    length = values[buffer].size * (2 if KIND[values[buffer].dtype] == "c" else 1)
    dests, loads, lengths = [], [], {}
    chunks = len(nest.extents)  # one more dimension
    for name in results:
        part = Value("partial", (count, length), DTYPES[name], (), {}, len(values))
        values.append(part)
        w.define(frame, part)
        lengths[part.number] = length * part.dtype.itemsize
        dests.append((part.number, name, offset))
        at = affine.add(offset, affine.scale(affine.dim(chunks), length))
        loads.append(Stmt("load", name, (), (part.number, name, at)))
    kept = [1 if d in nest.reduced else n for d, n in enumerate(nest.extents)]
    depends = sum(1 << d for d, _ in offset[1]) | 1 << chunks
    kind = "sum" if fold.kind == "dot" else fold.kind
    whole = fold._replace(kind=kind, stmts=tuple(range(len(loads))))
    join = Nest([*kept, count], frozenset([chunks]), loads, [depends] * len(loads), folds=[whole])
    return fold._replace(dests=tuple(dests), partial=True), join, lengths
