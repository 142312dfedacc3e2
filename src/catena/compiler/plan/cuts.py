"""Where a long run of elementwise work is cut into kernels: where the fewest values are alive, so that few are stored.

A sum over fifty shifted images, written as a loop in Python, is several hundred operations, too many for one kernel.
Kernels grown until they are full would end anywhere, and store whatever is read later: each of the fifty terms. Cut in
the program's order, where little that was computed before is read after, each kernel stores the sum so far, and nothing
else. A program that computes all terms first, and then their sum, has no such place: there the order is that in which
each value is computed just before it is read for the first time.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from catena.compiler.graph.forms import COSTLY, FORMS
from catena.compiler.graph.region import Value
from catena.core.named import NamedTuple

SHORTEST, LONGEST = 60, 120  # operations between two cuts, if there is a good place
FEW = 6  # values alive at a good place
CHEAP = 1.0  # operations that are done again rather than stored


class InOrder(NamedTuple):
    """Cuts in the program's order: the numbers of the last values before them."""

    places: list[int]

    def before(self, v: Value) -> int:
        """How many cuts come before a value."""
        return bisect_left(self.places, v.number)


class ReadNext(NamedTuple):
    """Cuts where each value comes just before it is read for the first time: how many come before it."""

    counts: dict[int, int]

    def before(self, v: Value) -> int:
        counts = self.counts
        return counts[v.number] if v.number in counts else max((counts.get(a.number, 0) for a in v.args), default=0)


class Cuts(NamedTuple):
    """The cuts in the work on each shape that has any, and the values that are alive there."""

    spaces: dict[tuple, InOrder | ReadNext]
    alive: set[int]

    def piece(self, v: Value, space: tuple) -> int:
        """How many cuts of the work on arrays of shape `space` come before a value."""
        found = self.spaces.get(space)
        return 0 if found is None else found.before(v)

    def stays(self, v: Value, users: list[Value]) -> bool:
        """Whether all who read a value belong to the same kernel, at the same index."""
        if v.shape not in self.spaces:
            return False
        own = self.piece(v, v.shape)
        return all(u.form == "map" and u.shape == v.shape and self.piece(u, v.shape) == own for u in users)


def find(live: list[Value], users: dict[int, list[Value]], needed: dict[int, str], longest: int) -> Cuts:
    """The cuts of all shapes with more than `longest` operations; `needed` are values that are stored anyhow."""
    spaces: dict[tuple, list[Value]] = {}
    for v in live:
        if v.form == "map":
            spaces.setdefault(v.shape, []).append(v)
    cuts = Cuts({}, set())
    for space, values in spaces.items():
        if len(values) > longest:
            _cut(space, values, users, needed, cuts)
    return cuts


def _cut(space: tuple, values: list[Value], users, needed, cuts: Cuts) -> None:
    """Adds the cuts of one shape; `values` are the operations on it, in order."""
    ends, places = _found(values, users, needed)
    found: InOrder | ReadNext = InOrder([values[p].number for p in places])
    if _longest(places, len(values)) > LONGEST:
        late = _read_next(values, users, needed)
        late_ends, late_places = _found(late, users, needed)
        if _longest(late_places, len(late)) <= LONGEST:
            values, ends, places = late, late_ends, late_places
            found = ReadNext({v.number: bisect_left(places, i) for i, v in enumerate(values)})
    cuts.alive.update(values[i].number for p in places for i in range(p + 1) if ends[i] > p)
    if places:
        cuts.spaces[space] = found


def _longest(places: list[int], count: int) -> int:
    """The operations of the longest piece."""
    starts = [0, *(p + 1 for p in places)]
    return max(stop - start for start, stop in zip(starts, [*starts[1:], count], strict=True))


def _read_next(values: list[Value], users, needed) -> list[Value]:
    """The same values in the order in which each comes just before the first that reads it."""
    first = values[0].number  # what comes before it reads none of them
    members, seen, found = {v.number for v in values}, set(), []
    for last in values:
        if last.number not in needed and any(u.number in members for u in users[last.number]):
            continue
        ask = [(last, False)]
        while ask:
            v, is_read = ask.pop()
            if is_read:
                if v.number in members:
                    found.append(v)
            elif v.number not in seen:
                seen.add(v.number)
                ask += [(v, True), *((a, False) for a in reversed(v.args) if a.number >= first)]
    return found


def _found(values: list[Value], users, needed) -> tuple[list[int], list[int]]:
    """Of each value, the last operation before it is dead; and the operations after which cuts come."""
    at = {v.number: i for i, v in enumerate(values)}
    numbers = [v.number for v in values]
    cost: dict[int, float] = {}
    ends = []
    for i, v in enumerate(values):
        cost[v.number] = _cost(v, cost, needed)
        last = max((_place(u, at, numbers) for u in users[v.number]), default=i)
        ends.append(i if v.number in needed or cost[v.number] <= CHEAP else last)
    change = [0] * (len(values) + 1)
    for i, end in enumerate(ends):
        change[i] += 1
        change[end] -= 1
    return ends, _places(list(accumulate(change)), len(values))


def _place(user: Value, at: dict[int, int], numbers: list[int]) -> int:
    """The operation at which a user is done with what it reads."""
    own = at.get(user.number)
    return own if own is not None else min(bisect_left(numbers, user.number), len(numbers) - 1)


def _cost(v: Value, cost: dict[int, float], needed) -> float:
    """The operations that computing a value again takes, of what is stored."""
    if v.params.op in COSTLY:
        return CHEAP + 1
    total = 1.0
    for a in v.args:
        while a.number not in needed and FORMS[a.form].view:
            a = a.args[0]
        total += 0.0 if a.number in needed else cost.get(a.number, 0.0)
    return total


def _places(alive: list[int], count: int) -> list[int]:
    """The operations after which cuts come: of those that are neither too near nor too far the one where least is
    alive, the last of equal ones; where too much is, the next one where it is not.
    """
    places, start = [], 0
    while count - start > LONGEST:
        window = range(start + SHORTEST - 1, start + LONGEST)
        best = min(window, key=lambda i: (alive[i], -i))
        if alive[best] > FEW:
            later = (i for i in range(start + LONGEST, count - SHORTEST) if alive[i] <= FEW)
            best = next(later, count)
        if best >= count:
            break
        places.append(best)
        start = best + 1
    return places
