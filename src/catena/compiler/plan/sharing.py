"""How loop nests are shared out among threads: which ones, and in which chunks.

The outermost kept loop is cut into chunks of about the same work. Chunks depend on the nest alone, never on
the number of threads.
"""

from __future__ import annotations

import functools
import math

from catena.compiler.graph import affine
from catena.compiler.graph.forms import COSTLY, OPS
from catena.compiler.graph.symbols import computed
from catena.compiler.graph.thresholds import reaches
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.loops import Nest, is_idempotent
from catena.compiler.machine import Machine, Sharing

COSTS = {op: facts.cost for op, facts in OPS.items()} | {"const": 0}  # of a statement; of all others it is 1

SEVERAL = 3  # functions of mathematics
UNEVEN = 1.05  # times half of the work may the busier one of two threads have
MORE = 4  # times as many chunks may there be, so that it is not more
NEAR_LINES = 16  # a page or more apart, which the nearest cache holds
LINE, LONG_ROW = 64, 512  # bytes; and elements of a row beside which a line that is shared is nothing


def work(nest: Nest) -> int:
    """Units of work, see `Sharing`."""
    return nest.trips * half_units(nest) // 2


def half_units(nest: Nest) -> int:
    """Half units of work of one iteration of a nest."""
    body = sum([COSTS.get(s.op, 1) for s in nest.stmts])
    body += sum(f.kind in ("max", "min") for f in nest.folds)  # several instructions each
    return max(body + len(nest.stores), 1)


def _is_worthwhile(sharing: Sharing, nest: Nest, total: int, in_loop: bool, awake: bool) -> bool:
    """Whether threads share a nest of so many units of work. Cheap operations take a fraction of a unit; beside several
    functions of mathematics for each element it is little to bring that to another core's cache. What folds may be
    shared otherwise where it is not so, by parts that others fold.
    """
    usual, of_moves = _least(sharing, nest, in_loop, awake)
    enough = total.__ge__ if nest.folds else functools.partial(reaches, total)
    if enough(usual) or enough(of_moves) and not _shares_lines(nest):  # asked last: it hangs on each extent
        return True
    functions = [OPS[s.op].cost for s in nest.stmts if s.op in COSTLY]
    return in_loop and len(functions) >= SEVERAL and nest.trips * sum(functions) // 2 >= sharing.functions_in_loops


def is_any_shared(sizes: tuple[int, ...], machine: Machine) -> bool:
    """Whether nests that make so many elements are shared whatever they compute: one at least."""
    return reaches(_largest(sizes), machine.sharing.worthwhile)


@computed
def _largest(sizes: tuple[int, ...]) -> int:
    return max(sizes, default=0)


def _least(sharing: Sharing, nest: Nest, in_loop: bool, awake: bool) -> tuple[int, int]:
    """The units of work from which on threads share a nest, and those from which on they do if tasks share no lines.
    What only brings elements to another layout waits for memory, whatever is counted.
    """
    least = sharing.worthwhile_in_loops if in_loop else sharing.worthwhile
    usual = least if in_loop else sharing.least(awake)
    if nest.folds or nest.sequential or any(s.op != "load" for s in nest.stmts) or not nest.stmts:
        return usual, usual
    return usual, least // (sharing.moving_awake if awake else sharing.moving)


def _shares_lines(nest: Nest) -> bool:
    """Whether tasks of a transposition would write parts of the same lines, and those would be much of a row."""
    if nest.tile is None or nest.vector is None or nest.extents[nest.vector] >= LONG_ROW:
        return False
    rows = [affine.coefficient(s.offset, nest.tile) * TYPES[s.dtype].bytes for s in nest.stores]
    return any(step % LINE for step in rows)


def chunk(sharing: Sharing, nest: Nest, in_place: bool, in_loop: bool = False, awake: bool = False) -> int | None:
    """Iterations of the outermost loop in one chunk; None when the nest stays on one thread."""
    total = work(nest)
    if not _is_worthwhile(sharing, nest, total, in_loop, awake) or any(f.running for f in nest.folds):
        return None
    if nest.sequential and nest.order[0] not in (nest.independent or ()):
        return None
    if not nest.sequential:
        _lift_long_loop(nest)
    outer = nest.order[0]
    extent = nest.extents[outer]
    if outer in nest.reduced:
        return None
    step = nest.step(outer)
    if outer == nest.vector and (extent < 4 * step or (not is_idempotent(nest, outer, in_place) and extent % step)):
        return None
    count = chunk_count(sharing, total, extent // step)
    if count < 2:
        return None
    return evenly(-(-extent // step), count) * step


@computed
def chunk_count(sharing: Sharing, work: int, *most: int) -> int:
    """Into how many chunks so much work is cut, of which there are no more than `most`."""
    return min(sharing.chunks(work), *most)


@computed
def evenly(units: int, count: int) -> int:
    """The units of a chunk, of which there are about so many or a few more: the most by which two threads, one from the
    first on and one from the last back, have about the same to do. Of three chunks, one of them had two.
    """
    sizes = [-(-units // n) for n in range(count, MORE * count + 1)]
    even = (size for size in sizes if _busier(units, size) <= UNEVEN * units / 2)
    return next(even, None) or min(sizes, key=lambda size: _busier(units, size))


def _busier(units: int, size: int) -> int:
    """The units that the busier one of two threads has."""
    pairs, odd = divmod(-(-units // size), 2)
    return pairs * size + (units - 2 * pairs * size if odd else 0)


def _lift_long_loop(nest: Nest) -> None:
    """Puts the longest of the kept loops outside when the outermost is too short to share. That of squares stays
    inside, where it follows the lines that it reads: outside, a transposed copy of 1 MB took 870 us in place of 60. So
    does one inside of the loop of the lanes, which reads the elements of short rows while their lines are near.
    """
    if nest.staged is not None:  # whose innermost loops lie one behind the other in memory
        return
    around = nest.order if nest.vector is None else nest.order[: nest.order.index(nest.vector)]
    kept = [d for d in around if d not in nest.reduced and d not in (nest.tile, nest.short)]
    if kept and nest.extents[nest.order[0]] < 8:
        longest = max(kept, key=lambda d: nest.extents[d])
        longer = nest.extents[longest] > nest.extents[nest.order[0]]
        if longer and not _writes_in_parts(nest, longest):
            nest.order.remove(longest)
            nest.order.insert(0, longest)


def _writes_in_parts(nest: Nest, d: int) -> bool:
    """Whether neighbours along a loop write into the same lines, and all others into so many that these would leave the
    nearest cache in between, were it outside. Panels of a product of 1 MB took 210 us so, not 100.
    """
    for s in nest.stores:
        size = TYPES[s.dtype].bytes
        if 0 < abs(affine.coefficient(s.offset, d)) * size < LINE:
            others = [nest.extents[k] for k, step in s.offset[1] if k != d and abs(step) * size >= LINE]
            if math.prod(others) > NEAR_LINES:
                return True
    return False
