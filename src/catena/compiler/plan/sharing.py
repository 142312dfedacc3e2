"""How loop nests are shared out among threads: which ones, and in which chunks.

The outermost kept loop is cut into chunks of about the same work. Chunks depend on the nest alone, never on
the number of threads.
"""

from __future__ import annotations

from catena.compiler.forms import COSTLY
from catena.compiler.loops import Nest

WORTHWHILE = 1 << 19  # units of work below which threads cost more than they give
CHUNK = 1 << 16  # units of work that make a chunk
MOST_CHUNKS = 64  # but for loops so long that a chunk would be more than
LONG_CHUNK = 1 << 24  # units of work
GROUP = 32 * LONG_CHUNK  # units of work between two questions whether somebody pressed Ctrl-C


def work(nest: Nest) -> int:
    """Units of about a fifth of a nanosecond: one element read, written or combined."""
    return nest.trips * half_units(nest) // 2


def half_units(nest: Nest) -> int:
    """Half units of work of one iteration of a nest."""
    body = sum(8 if s.op in COSTLY else 0 if s.op == "const" else 1 for s in nest.stmts)
    body += sum(f.kind in ("max", "min") for f in nest.folds)  # several instructions each
    return max(body + len(nest.stores), 1)


def chunk(nest: Nest, in_place: bool) -> int | None:
    """Iterations of the outermost loop in one chunk; None when the nest stays on one thread."""
    total = work(nest)
    if total < WORTHWHILE or any(f.running for f in nest.folds):
        return None
    if nest.sequential and nest.order[0] not in nest.independent:
        return None
    if not nest.sequential:
        _lift_long_loop(nest)
    outer = nest.order[0]
    extent = nest.extents[outer]
    if outer in nest.reduced:
        return None
    step = nest.width * nest.unroll if outer == nest.vector else 1
    if outer == nest.vector and (extent < 4 * step or (in_place and extent % step)):
        return None
    count = min(chunks(total), extent // step)
    if count < 2:
        return None
    size = -(-extent // count)
    return -(-size // step) * step


def chunks(work: int) -> int:
    """Into how many chunks so much work is cut, where the loops allow it."""
    return max(min(MOST_CHUNKS, max(work // CHUNK, 2)), work // LONG_CHUNK)


def _lift_long_loop(nest: Nest) -> None:
    """Puts the longest of the kept loops outside when the outermost is too short to share."""
    kept = [d for d in nest.order if d not in nest.reduced and d != nest.vector]
    if kept and nest.extents[nest.order[0]] < 8:
        longest = max(kept, key=lambda d: nest.extents[d])
        if nest.extents[longest] > nest.extents[nest.order[0]] and nest.order[0] != nest.vector:
            nest.order.remove(longest)
            nest.order.insert(0, longest)
