"""What loop nests fetch from memory before they read it (`Stmt.ahead`).

Processors guess what is read next where that lies behind what was read before. Where kernels over the same rows compute
for a while with what stays in cache, memory has nothing to do meanwhile, so one of them fetches the next block of rows.
Rows at computed places cannot be guessed: those of later iterations are fetched. Loops that write past the caches wait
for what they read, which processors guess too late: lines of the one array that is read are fetched a while before.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.loops import LOADS, Nest
from catena.compiler.machine import Memory
from catena.compiler.plan import sharing, stitch

LEAST_ROW = 4  # lines of a row at a computed place that is fetched: fewer are on their way early anyhow
ON_THE_WAY = 1 << 13  # bytes of such rows that are fetched at a time
WAITS = 6  # half units of work that a store past the caches takes
BEYOND = 8  # second caches that they lie in
BEFORE = 1 << 10  # bytes of lines that loops which write past the caches fetch before they read them


def next_block(memory: Memory, values: list[Value], group: stitch.RowGroup, block: int) -> None:
    """Has the kernel with the most work of those that read an array beyond the caches fetch the next block of rows:
    one that waits for its own stores has time for that, too.
    """
    known = {b for nest in group.nests for b in nest.written()}
    for nest in sorted(group.nests, key=_time, reverse=True):
        for i, s in enumerate(nest.stmts):
            if s.op != "load" or s.args or s.attr[0] in known or values[s.attr[0]].nbytes < memory.streamed:
                continue
            if apart := _row_apart(nest, s.attr[2]):
                known.add(s.attr[0])
                nest.stmts[i] = s._replace(ahead=block * apart)


def _time(nest: Nest) -> int:
    """Half units of work of a row group's kernel, and what it waits for memory that it writes."""
    waits = WAITS * sum(s.past_caches for s in nest.stores)
    return nest.trips * (sharing.half_units(nest) + waits)


def _row_apart(nest: Nest, offset: affine.Affine) -> int:
    """How many elements further on the next row is read, where rows are read along the lanes."""
    return affine.coefficient(offset, nest.rows[-1]) if not offset[2] and _is_along(nest, offset) else 0


def _is_along(nest: Nest, offset: affine.Affine) -> bool:
    return nest.vector is not None and affine.coefficient(offset, nest.vector) == 1


def named_rows(memory: Memory, values: list[Value], nest: Nest) -> None:
    """Has a scheduled nest that reads rows at computed places of a large array fetch those of later iterations."""
    if nest.together is not None or nest.is_checked or len(nest.order) < 2:
        return
    d, inner = nest.order[-2:] if nest.run is None else (nest.run.dim, nest.order[-2])
    if inner != nest.vector or any(s.op == "accumulator" for s in nest.stmts):
        return
    if nest.run is None and d in nest.reduced or nest.order[-1] not in (nest.vector, d):
        return
    for i, s in enumerate(nest.stmts):
        if s.op not in LOADS or not s.attr[2][2] or not _is_along(nest, s.attr[2]):
            continue
        buffer, dtype, offset = s.attr
        size = nest.extents[nest.vector] * TYPES[dtype].bytes
        large = _is_large(memory, values[buffer]) and size >= LEAST_ROW * memory.line
        read = size if nest.run is None else nest.step(nest.vector) * TYPES[dtype].bytes  # by an iteration
        if large and all(_is_named(nest, t, d) for t, _ in offset[2]):
            nest.stmts[i] = s._replace(ahead=max(ON_THE_WAY // read, 1))


def next_lines(memory: Memory, values: list[Value], nest: Nest) -> None:
    """Has a scheduled nest that writes past the caches, and reads one large array, fetch the lines that it reads next;
    where it reads several, memory is at work for one while another is waited for.
    """
    if nest.together is not None or nest.order[-1] != nest.vector:
        return
    large = [i for i, s in enumerate(nest.stmts) if s.op == "load" and _is_large(memory, values[s.attr[0]])]
    if len({nest.stmts[i].attr[0] for i in large}) == 1:
        for i in large:
            s = nest.stmts[i]
            nest.stmts[i] = s._replace(ahead=_lines_before(nest, s.attr[2], TYPES[s.attr[1]].bytes))


def next_staged(memory: Memory, values: list[Value], nest: Nest) -> None:
    """Likewise for one that does so by way of the stack."""
    for i, s in enumerate(nest.stmts):
        if s.op == "load" and not s.args and not s.attr[2][2] and _is_large(memory, values[s.attr[0]]):
            later = _row_after if nest.tile is None else _square_after
            nest.stmts[i] = s._replace(ahead=later(memory, nest, s.attr[2], TYPES[s.attr[1]].bytes))


def _row_after(memory: Memory, nest: Nest, offset: affine.Affine, size: int) -> int:
    """How many elements further on short rows are read later: those that the loop around comes to next, if they lie
    behind these, and all that is read until then stays in cache; otherwise those some rows on.
    """
    assert nest.vector is not None
    n, rows = (nest.extents[d] for d in (nest.vector, nest.order[-2]))
    if not _is_along(nest, offset):
        return 0
    around = affine.coefficient(offset, nest.order[-3]) if len(nest.order) > 2 else 0
    if abs(around) == n and rows * (n * size + memory.line) <= memory.second_cache // 8:
        return around
    return affine.coefficient(offset, nest.order[-2]) * min(-(-ON_THE_WAY // (n * size)), rows)


def _square_after(memory: Memory, nest: Nest, offset: affine.Affine, size: int) -> int:
    """The same of squares: so many rows on that these are of the next block."""
    assert nest.staged is not None and nest.tile is not None
    return nest.staged.rows * affine.coefficient(offset, nest.tile)


def _is_large(memory: Memory, v: Value) -> bool:
    return v.nbytes >= BEYOND * memory.second_cache


def _lines_before(nest: Nest, offset: affine.Affine, size: int) -> int:
    """How many elements further on lies what is read so much later: along the lanes, or, where rows are short or read
    backwards and do not go on into each other, some rows on; 0 where neighbours are not read.
    """
    assert nest.vector is not None
    step, n = affine.coefficient(offset, nest.vector), nest.extents[nest.vector]
    if abs(step) != 1 or offset[2]:
        return 0
    across = affine.coefficient(offset, nest.order[-2]) if len(nest.order) > 1 else step * n
    if across == step * n or n * size >= 8 * BEFORE:
        return step * BEFORE // size
    return across * -(-BEFORE // (n * size))


def _is_named(nest: Nest, t: int, d: int) -> bool:
    """Whether a place changes with dimension `d`, and not along the lanes, of which there are some."""
    assert nest.vector is not None
    return bool(nest.depends[t] >> d & 1) and not nest.depends[t] >> nest.vector & 1
