"""Which values of a region are stored, and why.

Every value is either *stored* (it has memory) or *inlined* (computed again by whoever reads it, at the index where
it is read). Reductions, products, loops and the like are stored; elementwise values and views are inlined when one
kernel reads them, or when reading them twice costs less than a trip through memory. A costly value is never inlined
below a broadcast, window or gather, which would compute it again and again.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from catena.compiler.graph.forms import COSTLY, FORMS, PARTS, Map
from catena.compiler.graph.products import is_read_once, read_once
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.thresholds import reaches
from catena.compiler.plan import cuts, strided
from catena.compiler.plan.kernel_length import (
    FAR,
    MAX_KERNEL,
    has_own_loop,
    is_gather,
    is_too_long,
    is_turned,
    is_uneven,
    reads,
)
from catena.core.dtypes import KIND

MAX_DEPTH, MAX_OPS = 48, 100
CHEAP = 2
FEW_AGAIN, LARGE = 4, 1 << 17  # operations that are done again for each reader, and bytes of what is not written for it
MOST_MOVED = 12  # the same for all readers of what is made of neighbours
FAR_AGAIN, MOST_FAR = 24, 36  # the same two numbers for what no near cache holds
CHEAP_BESIDE = 8  # the same of what is nothing beside what it is computed for: see `_is_beside`
RESULT = "it is a result"
KEPT = ("input", "constant")  # forms of values that lie in memory as long as their region runs
MOST_MADE_THERE = 32  # values that the matrix of a product with a vector is made of, where it is multiplied
WIDE = 8  # elements in a row
LANES = 16  # the least elements in a row along which lanes lie, whatever folds it
WHOLE = 4  # bytes of an element, of which a vector has as many as of the places that it is computed from
LONG_ROW = 128  # elements: what is computed once for each row of so many is nothing beside these
MANY = 1 << 14  # elements beside which those of a row are nothing
FEW_COPIES = 4  # of an array, for each of which little is done again
OFTEN = 4  # times that what lanes gather is read, from which on it is stored: by a pad, most is thrown away
FEWER = 4  # times as many elements as a gather reads: they are not computed for it
BORDER = 4  # a border is at most one part of so many of what a pad makes
MOST_BETWEEN = 8  # operations between the readers of a concatenation and the one that they are for
SEVERAL = 4  # times that parts which are joined and spread are computed
MAX_PARTS = 3  # of a concatenation that is read where its parts lie, and its readers
MAX_ROW_PARTS, PART_ROW = 4, 64  # of one along rows of so many elements at least, which other parts lie between


class Storage:
    """The values of a region that are stored, and why, and those whose memory they share; the live values in order, who
    reads each, and what only tests read.
    """

    def __init__(self, region: Region):
        self.live = region.live()
        self.users = region.users(self.live)
        self.tests = _tests(self.live, self.users) if any(map(is_checked, self.live)) else set()
        self.needed = _needed(region, self.live)
        self.cuts = cuts.find(self.live, self.users, self.needed, MAX_KERNEL)
        self.stored: dict[int, str] = {}  # and why
        self.roots: dict[int, int] = {}  # value -> the value whose memory it shares
        self.effort: dict[int, tuple[int, float]] = {}  # of inlined values: the depth of operations, and their number
        self.costly: set[int] = set()
        for v in self.live:
            self._decide(v)

    def _decide(self, v: Value) -> None:
        n = v.number
        if v.form == "constant":
            if v.size != 1 or v.ndim:
                self.stored[n] = "it is there before the program runs"
            elif n in self.needed:
                self.stored[n] = self.needed[n]
        elif v.form in PARTS and self._joins_in_place(v):
            self._measure(v)
            depth, weight = self.effort[n]
            self.effort[n] = depth, weight + 1.0
        elif not FORMS[v.form].inline:
            self.stored[n] = self.needed.get(n) or "it is made as a whole before it is read"
            if FORMS[v.form].alias:
                self._share(v)
        elif v.form == "reshape" and n in self.needed:
            self.stored[n] = self.needed[n]
            self._share(v)
        elif n in self.tests and n not in self.needed:
            self.effort[n] = 0, 0.0
        else:
            self._measure(v)
            reason = self.needed.get(n) or self._why_stored(v)
            if reason is not None:
                self.stored[n] = reason
                self.effort[n] = 0, 0.0

    def _joins_in_place(self, v: Value) -> bool:
        """Whether who reads a concatenation reads its parts, such as those of a roll: views of what is stored."""
        users = self.users[v.number]
        if v.number in self.needed or len(users) > MAX_PARTS:
            return False
        if all(u.form == "gather" and u.args[0] is not v for u in users):
            return len(users) == 1  # indices of several axes: each reads its own part
        fewer = len(users) == 1 and _reads_less(users[0], v)
        cheap = CHEAP_BESIDE if fewer else CHEAP if self._lies_in_rows(v) else 0.0
        views = all(a.number in self.stored or self._is_light(a, cheap, fewer) for a in v.args)
        plain = all(u.form == "map" or FORMS[u.form].fold or FORMS[u.form].view for u in users)
        return (
            len(v.args) <= (MAX_PARTS if fewer or not cheap else MAX_ROW_PARTS)
            and views
            and plain
            and (fewer or not any(FORMS[u.form].rereads and (u.form != "pad" or self._repeats(u, v)) for u in users))
        )

    def _lies_in_rows(self, v: Value) -> bool:
        """Whether parts are joined along rows that are long, and only elementwise operations read them, one after the
        other, up to what is stored, or to a fold: then a loop over the rows of a part computes it, and does all of
        these. What is folded is cut where parts meet, so parts are long there if they have as many elements.
        """
        users = self._joined(v)
        while len(users) == 1 and (users[0].form == "map" or _keeps_parts(users[0], v)):
            last = users[0].number
            users = self.users[last]
            if last in self.needed or len(users) > 1:
                return _has_long_parts(v)
        return bool(users) and all(_folds_parts(u, v) for u in users)

    def _joined(self, v: Value) -> list:
        """The one value that all readers are for, as a choice is of a comparison and of what it compares: elementwise
        operations between are done where it is, of neighbours too.
        """
        users = self.users[v.number]
        ask = {u.number: u for u in users}
        for _ in range(MOST_BETWEEN):
            if len(ask) == 1:
                return list(ask.values())
            first = ask.pop(min(ask, default=0), None)
            if first is None or first.number in self.needed or not (first.form == "map" or _is_beside_parts(first, v)):
                break
            ask |= {u.number: u for u in self.users[first.number]}
        return users

    def _is_light(self, v: Value, most: float, costly: bool = False) -> bool:
        return self.effort.get(v.number, (0, 1.0))[1] <= most and (costly or v.number not in self.costly)

    def _share(self, v: Value) -> None:
        base = v.args[0].number
        self.roots[v.number] = self.roots.get(base, base)

    def _measure(self, v: Value) -> None:
        op = v.params.op if v.form == "map" else None
        depth, weight, costly = 0, 0.0 if op in (None, "checked") else 1.0, _is_costly(v)
        for a in {a.number: a for a in (v.args[:1] if op == "checked" else v.args)}.values():
            if a.number not in self.stored:
                deep, heavy = self.effort.get(a.number, (0, 0.0))
                depth = max(depth, deep)
                if v.form != "dynamic_slice" or a is v.args[0]:  # where it starts is computed once, before the loops
                    weight += heavy / max(len(self.users[a.number]), 1)
                costly = costly or a.number in self.costly
        self.effort[v.number] = depth + 1, weight
        if costly:
            self.costly.add(v.number)

    def _why_stored(self, v: Value) -> str | None:
        """Why a value that could be computed where it is read is stored all the same; None where it is not."""
        n = v.number
        depth, weight = self.effort[n]
        if depth >= MAX_DEPTH or weight > MAX_OPS:
            return "the kernel that reads it would become too long"
        if n in self.cuts.alive:
            return "a kernel ends before it is read for the last time: it would become too long"
        users, costly = self.users[n], n in self.costly
        if v.size == 1 and v.ndim == 0 and weight <= CHEAP and not costly:
            return None
        for u in users:
            cheap = CHEAP_BESIDE if _is_beside(u, v) or self._is_of_places(u, v) else CHEAP
            often = _reads_again(u, v) >= OFTEN
            wasted = often and (reads(v, self.stored, _lanes_gather) or _is_row_of_many(u, v, weight))
            wasted = wasted or often and _has_lanes_of(u, v) and reads(v, self.stored, is_turned)
            if (axes := _folded(u, v)) and self._is_long(v, axes):
                return f"{u.form} v{u.number} folds short rows, of which lanes hold many where little is done"
            is_place = u.form == "gather" and v is not u.args[0] and reaches(u.size, LONG_ROW * v.size)
            if is_place and reads(v, self.stored, is_gather):
                return f"{u.form} v{u.number} would read each place at a place"
            if u.form == "window" and v.form == "pad" and reaches(u.size, OFTEN * v.size):
                return f"window v{u.number} would ask for the border of each element that it reads"
            if costly and _is_in_order(u):
                return f"{u.form} v{u.number} would compute it one by one"
            if u.form == "scatter" and v is not u.args[0] and not _adds_rows(u) and reads(v, self.stored, is_uneven):
                return f"scatter v{u.number} would choose it one by one"
            # Most scatters have no lanes: who else reads what their places are made of spares them nothing.
            heavy = self.leaves(v)[1] if u.form == "scatter" else weight
            again = costly or (heavy > cheap or wasted) and not self._is_copied(u, v, weight)
            if again and self._repeats(u, v):
                return f"{u.form} v{u.number} would compute each element several times"
        if len(users) > 1 and (costly or weight > 1 and not self._is_made_again(v, users, weight)):
            return f"{len(users)} readers would compute it again"
        return None

    def _is_copied(self, user: Value, v: Value, weight: float) -> bool:
        """Whether a reader is a few copies of a large array, one behind the other, as results of `vmap` are that hang
        on nothing of the batch, and what makes it of one array is done for each: memory costs more, where little is
        done with them.
        """
        if user.form != "broadcast" or weight > FEW_AGAIN or len(self.users[v.number]) > 1:
            return False
        first = min((d for d, n in zip(user.params.dims, v.shape) if n != 1), default=0)
        copies, own = user.shape[:first], user.shape[first:]
        few = math.prod(copies) <= FEW_COPIES and [n for n in own if n != 1] == [n for n in v.shape if n != 1]
        return few and self._is_for_little(user) and self._is_made_again(v, [user], weight)

    def _is_for_little(self, v: Value) -> bool:
        """Whether no more than one value is made of it, nor anything costly of that soon."""
        for k in range(MOST_BETWEEN):
            users = self.users[v.number]
            if any(map(_is_costly, users)) or k == 0 and len(users) > 1:
                return False
            if not users:
                break
            v = users[0]
        return True

    def _is_made_again(self, v: Value, users: list[Value], weight: float) -> bool:
        """Whether each reader computes a cheap value: memory costs more where it is large, and where neighbours are
        read, since a vector that lies across two that were just written waits for both.
        """
        again = len(users) * weight
        if weight <= CHEAP and again <= MOST_MOVED and _read_neighbours(users):
            return again <= FEW_AGAIN or reaches(v.nbytes, LARGE)
        of_one = _is_of_one_array(v, len(users), self._reads_turned(users), self.stored, self.roots)
        return of_one and reaches(v.nbytes, LARGE)  # asked last: it hangs on each extent

    def _is_of_places(self, user: Value, v: Value) -> bool:
        """Whether a gather reads rows of what hangs on their places alone, such as those of an identity matrix. Small
        elements in a near cache are copied, many at once.
        """
        if user.form != "gather" or v is not user.args[0] or v in user.args[1:] or _lanes_gather(user):
            return False
        return (v.dtype.itemsize >= WHOLE or reaches(v.nbytes, LARGE)) and not self.leaves(v)[0]

    def _reads_turned(self, users: list[Value]) -> bool:
        """Whether some reader is transposed, or what it makes."""
        read = [*users, *(t for u in users if u.form == "map" for t in self.users[u.number])]
        return any(u.form == "transpose" for u in read)

    def _is_long(self, v: Value, axes: tuple) -> bool:
        """Whether too much is done for lanes to hold many short rows that are folded."""
        ops = self.leaves(v)[1]
        return is_too_long(ops, v.shape, axes) or has_own_loop(v.shape, axes, [v], ops, self.stored)

    @staticmethod
    def _repeats(user: Value, v: Value) -> bool:
        """Whether `user` reads elements of `v` several times, or through an index map that needs memory."""
        if user.form == "broadcast":
            return user.size > v.size
        if user.form == "reshape":
            return FORMS[v.form].view and not _has_same_extents(user, v)
        if user.form == "gather" and v is user.args[0] and v not in user.args[1:] and user.size * FEWER <= v.size:
            return False
        if user.form == "pad" and _has_little_border(user, v):
            return any(between for *_, between in user.params.config)
        return not is_read_once(v, user) and FORMS[user.form].rereads

    def root_of(self, v: Value) -> int:
        return self.roots.get(v.number, v.number)

    def leaves(self, v: Value) -> tuple[dict[int, bool], int]:
        """Stored values that inlining `v` reads, and whether only at the iteration's index; and its size."""
        found: dict[int, bool] = {}
        seen: set[tuple[int, bool]] = set()
        stack, ops = [(v, True)], 0
        while stack:
            x, same = stack.pop()
            if (x.number, same) in seen:
                continue
            seen.add((x.number, same))
            if x.number in self.stored and x is not v:
                r = self.root_of(x)
                found[r] = found.get(r, True) and same and x.number == r
                continue
            ops += x.form == "map" and x.number not in self.tests
            same = same and x.form == "map"
            stack.extend((a, same) for a in x.args)
        return found, ops


def _is_costly(v: Value) -> bool:
    """Whether an operation is never done again; a square or cube is a product or two."""
    return v.form == "map" and v.params.op in COSTLY and v.params not in (Map("integer_pow", 2), Map("integer_pow", 3))


def _is_of_one_array(v: Value, readers: int, turned: bool, stored: Collection[int], roots: dict[int, int]) -> bool:
    """Whether a few cheap operations make a value of one array in memory, beside numbers and counting: reading that
    again costs no more than reading this one, which would be written first, or it is a choice. So it is with neighbours
    in it, and then beside rows that are spread, where all readers together do not do much again; and with more
    operations where what is written goes to memory and comes back. Where it is read `turned`, too, what is transposed
    is a neighbour.
    """
    ops, ask, seen, arrays, rows, moved = 0, [v], {v.number}, set(), False, False
    while ask and ops <= FAR_AGAIN:
        x = ask.pop()
        if x.size == 1 or x.form == "iota" or x.form == "broadcast" and x.args[0].size == 1:
            continue
        if x.form == "broadcast" and x.args[0].number in stored and reaches(v.size, x.args[0].size * LONG_ROW):
            rows = True
        elif x.number in stored or _moves(x, turned) and x.args[0].number in stored:
            a, size = (x, x.size) if x.number in stored else (x.args[0], v.size)
            moved = moved or a is not x
            arrays.add(roots.get(a.number, a.number))
            if size * x.dtype.itemsize > v.nbytes and KIND[v.dtype] != "b":
                return False
        elif x.form in ("broadcast", "reshape") and _has_same_extents(x, x.args[0]):
            ask.append(x.args[0])
        elif x.form != "map":
            return False
        else:
            ops += 1
            ask.extend(a for a in x.args if a.number not in seen)
            seen.update(a.number for a in x.args)
    if not arrays:
        return ops <= FEW_AGAIN
    few = readers * ops <= MOST_MOVED if moved else not rows and ops <= FEW_AGAIN
    if few and ops <= FEW_AGAIN or ops > FAR_AGAIN or len(arrays) != 1:
        return ops <= FEW_AGAIN and len(arrays) == 1
    return (few or (readers - 1) * ops <= MOST_FAR) and v.nbytes >= FAR


def _moves(x: Value, turned: bool) -> bool:
    """Whether it reads neighbours as its reader would: a slice without gaps, or from behind; or what is turned."""
    if x.form == "slice":
        return all(n == 1 for n in x.params.strides)
    return x.form == "reverse" or x.form == "transpose" and turned


def _read_neighbours(users: list[Value]) -> bool:
    """Whether some read neighbours, and the others what is at their own place."""
    return all(u.form == "map" or _moves(u, turned=False) for u in users) and any(u.form != "map" for u in users)


def _reads_less(user: Value, v: Value) -> bool:
    """Whether a gather reads few elements of a concatenation, or in lanes rows of parts one below the other.

    Of these as many as there are at most: no more is computed for it than would be stored.
    """
    if user.form != "gather" or v is not user.args[0] or v in user.args[1:]:
        return False
    if user.size * FEWER <= v.size:
        return True
    in_lanes = user.ndim - 1 in user.params.offset_dims and user.shape[-1] >= WIDE
    return in_lanes and v.params.dimension < v.ndim - 1 and user.size <= v.size


def _has_long_parts(v: Value) -> bool:
    """Whether what is joined are long rows, or parts that lie one behind the other in memory."""
    d = v.params.dimension
    row = math.prod(v.shape[d + 1 :])
    return row >= PART_ROW or math.prod(v.shape[:d]) == 1 and v.size >= PART_ROW * len(v.args)


def _has_little_border(pad: Value, v: Value) -> bool:
    """Whether little is computed for the border of a pad. Loops are cut where rows begin that it adds, and so are long
    rows: of the border, some lanes are computed.
    """
    inside, whole = v.size, pad.size
    if v.ndim and (v.shape[-1] >= LONG_ROW or v.shape[-1] == pad.shape[-1] >= LANES):
        inside, whole = v.shape[-1], pad.shape[-1]
    return reaches(whole, (whole - inside) * BORDER)


def _keeps_parts(user: Value, v: Value) -> bool:
    """Whether a view of what parts are joined in moves elements within each part alone, or spreads all a few times."""
    d = v.params.dimension
    if user.form == "reverse":
        return d not in user.params.dims
    if user.form == "slice":
        return user.shape[d] == v.shape[d]
    if user.form == "broadcast":
        return user.size <= SEVERAL * v.size and _has_lanes_of(user, v)
    return user.form == "pad" and user.params.config[d] == (0, 0, 0)


def _is_beside_parts(user: Value, v: Value) -> bool:
    """Whether neighbours in each part are read, or an element of each row, which is spread along it."""
    if user.form == "broadcast":
        (x,), own = user.args, range(v.params.dimension + 1)
        return user.ndim == v.ndim and user.params.dims[: len(own)] == tuple(own) and _reads_again(user, x) <= 1
    return _moves(user, turned=False) and _keeps_parts(user, v)


def _folds_parts(user: Value, v: Value) -> bool:
    """Whether a fold reads parts of a concatenation that are long beside its seams, and no short rows: lanes hold many
    of these, and add up several axes in the order of memory.
    """
    if not FORMS[user.form].fold or math.prod(v.shape[v.params.dimension :]) < PART_ROW * len(v.args):
        return False
    return v.ndim - 1 not in user.params.axes or v.shape[-1] >= PART_ROW


def _has_same_extents(reshape: Value, v: Value) -> bool:
    """Whether a reshape only adds or drops dimensions of one element, so that places are those of what it reads."""
    return [n for n in reshape.shape if n != 1] == [n for n in v.shape if n != 1]


def _is_in_order(user: Value) -> bool:
    """Whether a reader takes one element after the other along an axis, and has hardly any lanes beside it."""
    if user.form != "cumulative" or math.prod(user.shape[user.params.axis + 1 :]) > 1:
        return False
    return user.size < WIDE * user.shape[user.params.axis]


def _reads_again(user: Value, v: Value) -> float:
    """How often a pad, or a broadcast but for that of numbers along rows, reads each element on average."""
    if user.form == "pad":
        return user.size / max(v.size, 1)
    if user.form != "broadcast":
        return 1.0
    return math.prod(user.shape[: _end_of_own(user, v)]) / max(v.size, 1)


def _is_row_of_many(user: Value, v: Value, weight: float) -> bool:
    """Whether floats are spread over so many rows that a step for them alone, of two operations, is nothing beside
    these; of one for halves, which are widened and rounded for it.
    """
    if user.form != "broadcast" or KIND[v.dtype] != "f" or not reaches(user.size, MANY):
        return False
    return weight >= (1 if v.dtype.itemsize < WHOLE else CHEAP)


def _end_of_own(broadcast: Value, v: Value) -> int:
    """Where a broadcast's dimensions along which `v` has several elements end: behind, these are repeated."""
    return 1 + max((d for d, n in zip(broadcast.params.dims, v.shape) if n != 1), default=-1)


def _folded(user: Value, v: Value) -> tuple:
    """The axes of `v` that its reader folds."""
    if FORMS[user.form].fold:
        return user.params.axes
    return user.params.numbers[0 if v is user.args[0] else 1] if is_read_once(v, user) else ()


def _lanes_gather(v: Value) -> bool:
    """Whether it is a gather of elements, or of short rows."""
    return v.form == "gather" and (v.ndim - 1 not in v.params.offset_dims or v.shape[-1] < WIDE)


def _has_lanes_of(user: Value, v: Value) -> bool:
    """Whether lanes of a broadcast lie along rows of what it repeats."""
    return user.form == "broadcast" and _end_of_own(user, v) == user.ndim and user.shape[-1] >= LANES


def _is_beside(user: Value, v: Value) -> bool:
    """Whether it is the index of a gather; or rows that a scatter adds to others, which it reads once, in lanes; or
    spread over long rows.
    """
    if user.form == "broadcast":
        return reaches(math.prod(user.shape[_end_of_own(user, v) :]), LONG_ROW)
    if user.form == "scatter":
        return _adds_rows(user) and v is user.args[2] and v is not user.args[1]
    return user.form == "gather" and user.args[0] is not v


def _adds_rows(scatter: Value) -> bool:
    """Whether what a scatter adds are rows, which lie in lanes."""
    updates = scatter.args[2]
    return updates.ndim - 1 in scatter.params.indices.offset_dims and updates.shape[-1] >= WIDE


def is_checked(v: Value) -> bool:
    return v.form == "map" and v.params.op == "checked"


def _tests(live: list[Value], users: dict[int, list[Value]]) -> set[int]:
    """What only tests read. These are made where the value is that they test, of what is read there anyway: so they do
    not count among the `users`, from which they are removed here.
    """
    tests: set[int] = set()
    for v in reversed(live):
        own = users[v.number]
        real = [u for u in own if u.number not in tests and not (is_checked(u) and u.args[0] is not v)]
        if own and not real and FORMS[v.form].inline:
            tests.add(v.number)
        users[v.number] = real
    return tests


def _needed(region: Region, live: list[Value]) -> dict[int, str]:
    """Values that must be in memory because of who reads them, and who that is."""
    needed = {v.number: RESULT for v in region.outputs}
    for v in reversed(live):
        where = FORMS[v.form].in_memory
        if where == "all":
            read = v.args
        elif where == "bare":
            read = tuple(_read_by(v, a) for a in v.args if not _is_made_there(a, v))
        elif where == "first":
            read = (v.args[0], *(a for a in v.args[1:] if FORMS[a.form].inline and _reaches(a, v.args[0])))
        elif v.form == "reshape" and v.number in needed:
            read = (v.args[0],)
        else:
            continue
        reason = needed[v.number] if v.form == "reshape" else f"{v.form} v{v.number} reads memory"
        for a in read:
            needed.setdefault(a.number, reason)
    return needed


def _read_by(product: Value, v: Value) -> Value:
    """What a product reads for an operand: what transposes are of; of one that is a slice of what is made as a whole,
    such as one of several parts of a product, that, at strides. Narrow numbers are read several at once.
    """
    bare = under_transposes(v)
    if product.form != "dot" or read_once(product) or v.dtype.itemsize < WHOLE or not v.size:
        return bare
    found = strided.below(v, lambda x: x.form not in strided.VIEWS)
    if found is None or 1 not in found.strides or found.base.size == v.size or found.base.form in KEPT:
        return bare
    return bare if FORMS[found.base.form].inline or found.base.form in PARTS else found.base


def _is_made_there(v: Value, product: Value) -> bool:
    """Whether a product computes an operand where it multiplies it: a vector, or a matrix of a few cheap operations.
    Beside functions that take long memory is nothing, and what is transposed below a reshape is read one by one.
    """
    if not is_read_once(v, product):
        return False
    stack, budget = [] if len(read_once(product)) > 1 else [(v, False)], MOST_MADE_THERE
    while stack and budget:
        (x, reshaped), budget = stack.pop(), budget - 1
        if _is_costly(x) or reshaped and x.form == "transpose":
            return False
        if FORMS[x.form].inline:
            stack.extend((a, reshaped or x.form == "reshape") for a in x.args)
    return not stack


def under_transposes(v: Value) -> Value:
    """The value that transposes are of, one of another."""
    while v.form == "transpose":
        v = v.args[0]
    return v


def _reaches(v: Value, target: Value, budget: int = 64) -> bool:
    """Whether inlining `v` may read the memory of `target`; unsure (too large) counts as yes."""
    while target.form in ("reshape", "alias"):
        target = target.args[0]
    stack = [v]
    while stack and budget:
        x, budget = stack.pop(), budget - 1
        if x is target:
            return True
        if FORMS[x.form].inline or FORMS[x.form].alias or x.form in PARTS:
            stack.extend(x.args)
    return bool(stack)
