"""The body of a loop nest as LLVM IR: its statements, in lanes or one by one, and what they read and write."""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit import (
    checks,
    columns,
    constant_divisors,
    integer_quotients,
    masks,
    ops,
    places,
    shared_divisors,
    small,
    stages,
    streams,
    strided,
)
from catena.compiler.emit.bounds import Guard
from catena.compiler.emit.emitter import Emitter, constant_of, spread
from catena.compiler.emit.layout import Layout
from catena.compiler.emit.short_rows import ShortRows
from catena.compiler.emit.sizes import LEAST
from catena.compiler.graph import affine
from catena.compiler.graph.keys import Keys
from catena.compiler.graph.symbols import is_power_of_two, whole
from catena.compiler.graph.types import TYPES, constant, vector
from catena.compiler.graph.varying import varies
from catena.compiler.kernels import scheduling
from catena.compiler.kernels.loops import LOADS, Nest
from catena.compiler.kernels.places import shares_place

ROWS_LATER = 32  # of squares that go past the caches: which rows are fetched meanwhile
BYTES_LATER = 256  # likewise, of what they read
GROUP = 4  # rows whose addresses are counted from one

THERE = "there"  # the lanes that are not beyond a row, where some are
PLACE = 21  # the role of such numbers in the table
LATER = "later"  # with a load of rows, what tells where one of a later iteration begins (see `ahead`)


class Copy:
    """The state of one unrolled copy of the body: statement results and advanced pointers."""

    def __init__(self, env: dict, pointers: dict, base=None):
        self.env, self.pointers, self.base = env, pointers, base

    def child(self) -> Copy:
        return Copy(dict(self.env), dict(self.pointers), self.base)


class BodyWriter:
    """Writes statements with `e`; `pointers` gives each buffer's base address. How many lanes there are and which of
    them are active is up to the loops around (`nest.NestWriter`), which also tell their indices (`iv`) and the folds
    that are open.
    """

    def __init__(self, e: Emitter, layout: Layout, pointers: dict[int, str], guard: Guard | None, stops: bool):
        self.e, self.layout, self.nest, self.pointers, self.guard = e, layout, layout.nest, pointers, guard
        self.width = 1
        self.active: str | None = None  # the mask of lanes that do something, if not all do
        self.iv: dict[int, object] = {}
        self.together: int | None = None  # the dimension whose iterations the copies are
        self.folds: list = []
        self.short: ShortRows | None = None  # the parts of short rows that are written
        self.tests = checks.Tests(stops)

    def first_copy(self) -> Copy:
        return _first_copy(self)

    def advance(self, c: Copy, d: int, i) -> None:
        """Moves every pointer to index `i` of dimension `d`; equal moves share their instructions."""
        moved, keys = dict[tuple, str](), Keys()
        for key, _, memory, offset in self.layout.accesses:
            coefficient = next((k for dim, k in offset[1] if dim == d), 0)
            if not coefficient:
                continue
            base, const = c.pointers[key]
            if isinstance(i, int):
                c.pointers[key] = base, const + i * coefficient
                continue
            known = moved.get(move := keys.of((base, memory, coefficient)))
            if known is None:
                by = i if coefficient == 1 else self.e.op(f"mul nsw i64 {i}, {self.e.size(coefficient)}")
                known = moved[move] = self.e.op(f"getelementptr {memory}, ptr {base}, i64 {by}")
            c.pointers[key] = known, const

    def moved_together(self, copies: list[Copy], d: int, i) -> list[Copy]:
        """Copies that are a few elements apart, at index `i` of the dimension of the lanes."""
        first = copies[0].child()
        first.base = i
        self.advance(first, d, i)
        moved = [first]
        for c in copies[1:]:
            same = c.child()
            same.base = i
            for key, (_, const) in copies[0].pointers.items():
                base, at = first.pointers[key]
                same.pointers[key] = base, at + c.pointers[key][1] - const
            moved.append(same)
        return apart(self, moved)

    # ---- statements ----------------------------------------------------------------------------------------

    def is_along_lanes(self, i: int) -> bool:
        """Whether a statement depends on the dimension that becomes lanes."""
        return self.nest.vector is not None and bool(self.nest.depends[i] >> self.nest.vector & 1)

    def is_lanes(self, i: int) -> bool:
        return self.width > 1 and self.is_along_lanes(i)

    def statement(self, i: int, copies: list[Copy]) -> None:
        """Writes a statement, and first stages of functions that wait for it."""
        if not self.layout.is_needed(i):
            return
        self._statement(i, copies)
        for waiting in self.layout.first_stages.get(i, ()) if self.short is None else ():
            if self.layout.is_needed(waiting):
                stages.first(self, waiting, copies)

    def _statement(self, i: int, copies: list[Copy]) -> None:
        if (s := self.nest.stmts[i]).op == "const":
            return
        if i in self.layout.settled:
            width = self.width if self.is_lanes(i) else 1
            for c in copies:
                c.env[i] = constant(self.layout.settled[i], TYPES[s.type], width)
            return
        for c in copies:
            c.env.pop((small.TOLD, i), None)
        if self.short is not None:
            self.short.statement(i)
            return
        if s.op == "check":
            each = self.is_along_lanes(i) if self.together is None else self.differs(i)
            self.tests.pending += [(i, s, c) for c in (copies if each else copies[:1])]
            return
        if self.together is not None:
            _for_each(self, i, s, copies)
        elif not self.is_along_lanes(i):
            _for_all(self, i, s, copies)
        elif self.width > 1 and self.nest.vector is not None and i in self.layout.loads_together:
            for c in copies:
                _read_columns(self, self.layout.loads_together[i], self.nest.vector, c)
        elif self.width == 1 or i not in self.layout.done_with_others[0]:
            _one_by_one(self, i, s, copies)

    def differs(self, i: int) -> bool:
        """Whether a statement differs in the iterations that are done together."""
        return self.together is not None and bool(self.nest.depends[i] >> self.together & 1)

    def one(self, i: int, s, c: Copy) -> str:
        """A statement, in a copy of the body."""
        width = self.width if self.is_lanes(i) else 1
        x = self._value(i, s, c, width)
        if i in self.layout.told.stmts:
            small.tell(self, i, x, c, width)
        return x

    def _value(self, i: int, s, c: Copy, width: int) -> str:
        if s.op == "affine":
            return self.index(s.attr, c, width)
        if s.op in LOADS:
            wanted = self.layout.settled.get(s.args[0]) if s.args else True
            if wanted is False:
                return constant(0, TYPES[s.type], width)
            mask = None if wanted else self.use(s.args[0], c, width)
            return self._load(i, s, c, width, mask)
        if s.op == "accumulator":
            return self.folds[s.attr[0]].current(s.attr[1], c)
        if s.op == "select" and s.args[0] in self.layout.settled:
            return self.use(s.args[1 if self.layout.settled[s.args[0]] else 2], c, width)
        if (out := _chosen_for_all(self, s, c, width)) is not None:
            return out
        if width > 1 and (lanes := masks.of_places(self, s, c)) is not None:
            return lanes
        if width > 1 and (stages.FIRST, i) in c.env:
            return stages.second(self, i, c)
        if (out := small.written(self, i, c, width)) is not None:
            return out
        if s.op == "and" and (between := _between(self.nest, s)) is not None:
            t = TYPES[self.nest.stmts[between.args[0]].type]
            x, bound = _operands(self, between, c, width)
            return self.e.op(f"icmp ult {vector(t.register, width)} {x}, {bound}")
        if (out := _divided(self, s, c, width) or constant_divisors.quotient(self, i, c, width)) is not None:
            return out
        if s.op == "div_by_inverse" and self.layout.divisions.is_by_divider(i):
            s = s._replace(op="div", args=s.args[:2])
        types = [TYPES[self.nest.stmts[a].type] for a in s.args]
        return ops.emit(self.e, s.op, TYPES[s.type], _operands(self, s, c, width), types, s.attr, width)

    def use(self, i: int, c: Copy, width: int | None = None) -> str:
        """Statement `i` in `width` lanes."""
        s = self.nest.stmts[i]
        width = self.width if width is None else width
        if self.short is not None and width > 1:
            return self.short.use(i, c)
        t = TYPES[s.type]
        if s.op == "const" and i in self.layout.bounds:
            return self.e.splat(str(self.e.size(s.attr)), t.register, width)
        if s.op == "const":
            return constant_of(self.e, s.attr, t, width)
        x = c.env[i]
        if width == 1 or self.is_lanes(i):
            return x
        return spread(self.e, x, t, width)

    def index(self, a, c: Copy, width: int) -> str:
        """The value of an index expression."""
        e, total = self.e, str(self.e.size(a[0]))
        for d, k in a[1]:
            if d == self.nest.vector:
                continue
            total = self.add(total, self.times(self.iv[d], k))
        own = next((k for d, k in a[1] if d == self.nest.vector), 0)
        if own and c.base is not None:
            total = self.add(total, self.times(_further(e, c.base, False), own))
        lanes = []
        for t, k in a[2]:
            if width > 1 and self.is_lanes(t):
                x = c.env[t]
                lanes.append(_multiplied(self.e, x, k, width))
            else:
                total = self.add(total, self.times(self.use(t, c, 1), k))
        if width == 1:
            return total if total[0] == "%" else e.op(f"add i64 0, {total}")
        out = e.splat(total, "i64", width)
        if own:
            lanes.append(e.multiples(width, own))
        for x in lanes:
            out = e.op(f"add <{width} x i64> {out}, {x}")
        return out

    def times(self, x, k: int) -> str:
        if isinstance(x, int) or not x.startswith("%"):
            return str(int(x) * k)
        return x if k == 1 else self.e.op(f"mul nsw i64 {x}, {self.e.size(k)}")

    def add(self, a: str, b: str) -> str:
        if a[0] != "%" and b[0] != "%":
            return str(int(a) + int(b))
        if b == "0":
            return a
        return b if a == "0" else self.e.op(f"add nsw i64 {a}, {b}")

    def store_all(self, copies: list[Copy]) -> None:
        """The nest's stores."""
        groups = self.layout.stores_together if self.width > 1 else {}
        for i, s in enumerate(self.nest.stores):
            if groups and i in self.layout.done_with_others[1]:
                continue
            for c in copies:
                if i in groups:
                    _write_columns(self, groups[i], c)
                    continue
                self.write_access(("store", i), s.dtype, s.offset, self.use(s.stmt, c), c, s.mask, s.past_caches)

    # ---- memory --------------------------------------------------------------------------------------------

    def address(self, key, memory: str, offset, c: Copy, width: int) -> tuple[str, bool]:
        """The pointer of an access and whether it is one pointer per lane."""
        pointer, vectors = self.start_of(key, memory, offset, c, width)
        if not vectors:
            return pointer, False
        own = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        if not own and len(vectors) == 1 and vectors[0][1] == 1 and (short := self.short_places(vectors[0][0], c)):
            return self.e.op(f"getelementptr {memory}, ptr {pointer}, <{width} x i32> {short}"), True
        at = self.e.multiples(width, own)
        for t, k in vectors:
            x = c.env[t]
            x = _multiplied(self.e, x, k, width)
            at = self.e.op(f"add <{width} x i64> {at}, {x}")
        return self.e.op(f"getelementptr {memory}, ptr {pointer}, <{width} x i64> {at}"), True

    def start_of(self, key, memory: str, offset, c: Copy, width: int | None = None) -> tuple[str, list]:
        """The pointer of an access without what differs in lanes, and the terms of its offset that do."""
        base, const = c.pointers[key]
        pointer, vectors = self.e.element(base, memory, _further(self.e, const, not offset[1])), []
        for t, k in offset[2]:
            if width != 1 and self.is_lanes(t):
                vectors.append((t, k))
            else:
                pointer = self.e.element(pointer, memory, self.times(self.use(t, c, 1), k))
        return pointer, vectors

    def short_places(self, t: int, c: Copy) -> str | None:
        """The lanes of a position that was computed in 32 bits: a gather takes twice as many of these at once."""
        s = self.nest.stmts[t]
        source = s.args[0] if s.op == "convert" else None
        return c.env.get(source) if source is not None and self.nest.stmts[source].type == "int32" else None

    def _load(self, key, s, c: Copy, width: int, mask: str | None) -> str:
        t, offset = TYPES[s.attr[1]], s.attr[2]
        if width > 1 and (found := places.looked_up(self, key, s, c)) is not None:
            return found
        if width > 1 and (found := places.from_words(self, key, s, c, _there(self.e, mask, c, width))) is not None:
            return found
        pointer, spread = self.address(key, t.memory, offset, c, width)
        if spread:
            mask = _there(self.e, mask, c, width)
            self.check("load", s.attr[0], pointer, t, width, None, mask)
            return self.e.widen(self.e.gather(t, pointer, width, mask), t, width)
        stride = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        if width > 1 and not stride:
            return _masked_scalar(self, s.attr[0], t, pointer, width, mask)
        self.check("load", s.attr[0], pointer, t, width, stride, _there(self.e, mask, c, width))
        if (later := c.env.get((LATER, key))) is not None:
            lanes = self.e.size(c.base) if self.nest.run is None else 0  # where the lanes are around the run
            streams.fetch(self.e, self.e.element(later, t.memory, lanes), soon=True)
        elif s.ahead and not offset[2]:
            soon = not (self.nest.rows or self.nest.staged)
            streams.fetch(self.e, self.e.element(pointer, t.memory, self.e.size(s.ahead)), soon)
        if mask is not None and width > 1:
            pointer, mask = masks.somewhere(self, pointer, s.args[0], c, mask, t, width, stride)
        if mask is None and width > 1 and stride == 1 and key in self.layout.chosen:
            return self.e.widen(strided.neighbours(self.e, t.memory, pointer, width, t.bytes, whole=True), t, width)
        return self.e.load(t, pointer, width, stride, _there(self.e, mask, c, width))

    def check(self, what: str, buffer: int, pointer: str, t, width: int, stride: int | None = 1, mask=None) -> None:
        """In checked mode, compares an access with its buffer's extent (see `bounds`)."""
        if self.guard is not None:
            self.guard.check(what, buffer, self.pointers[buffer], pointer, t, width, stride, mask)

    def write_access(
        self, key, dtype: str, offset, x: str, c: Copy, condition=-1, past_caches=False, width: int | None = None
    ) -> None:
        """Writes a value where the statement `condition` holds, if there is one."""
        t = TYPES[dtype]
        width = self.width if width is None else width
        wanted = self.layout.settled.get(condition)
        if wanted is False:
            return
        mask = self.use(condition, c, width) if condition >= 0 and not wanted else None
        pointer, spread = self.address(key, t.memory, offset, c, width)
        buffer = self.layout.buffers[key]
        if spread:
            self.check("store", buffer, pointer, t, width, None, mask)
            self.e.scatter(t, self.e.narrow(x, t, width), pointer, width, mask)
            return
        stride = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        active = _stored(self, c, width, past_caches) if mask is None else None
        self.check("store", buffer, pointer, t, width, stride or 1, mask or active)
        if mask is not None and width > 1:
            pointer, mask = masks.somewhere(self, pointer, condition, c, mask, t, width, stride, True)
        mask = mask or active
        later = self.layout.coefficient(key, self.nest.tile) * ROWS_LATER if self.nest.tile is not None else 0
        streams.store(self.e, past_caches, t, x, pointer, width, stride or 1, mask, later)


def _further(e: Emitter, n: int | str, is_once: bool) -> int | str:
    """So many elements, which are told where instructions reach them: not of one place, such as the last one, which is
    found once, nor of one that hangs on a length, as where a row of a few begins.
    """
    if e.sizes is not None and isinstance(n, int) and varies(n):
        return e.sizes.named("i64", n, PLACE)
    return e.size(n) if is_once else n


def _multiplied(e: Emitter, x: str, k: int, width: int) -> str:
    """Lanes times `k`, which the text tells if it is a power of two: then they are shifted."""
    if k == 1:
        return x
    told = k if is_power_of_two(k) else e.size(k)
    return e.op(f"mul <{width} x i64> {x}, {e.splat(str(told), 'i64', width)}")


def _between(nest, s):
    """What compares with the bound where a statement says that an index is not negative and below a bound that is not
    either: of unsigned numbers that is one comparison.
    """
    for low, high in (s.args, s.args[::-1]):
        a, b = nest.stmts[low], nest.stmts[high]
        if (
            (a.op, b.op) != ("ge", "lt")
            or a.args[0] != b.args[0]
            or nest.stmts[a.args[0]].type not in ("int32", "int64")
        ):
            continue
        zero, bound = nest.stmts[a.args[1]], nest.stmts[b.args[1]]
        if zero.op == bound.op == "const" and zero.attr == 0 <= bound.attr:
            return b
    return None


def further(body: BodyWriter, pointers: dict, d: int, by: int) -> dict:
    """Pointers at a later iteration of dimension `d`: so far behind or, where no text tells that, of their own."""
    e, moved, places = body.e, {}, {}
    for key, _, memory, offset in body.layout.accesses:
        (base, const), k = pointers[key], affine.coefficient(offset, d)
        if e.size(k) == k:
            moved[key] = base, const + by * k
            continue
        place = base, memory, k
        if place not in places:
            places[place] = e.element(base, memory, e.size(by * k))
        moved[key] = places[place], const
    return moved


def apart(body: BodyWriter, copies: list[Copy]) -> list[Copy]:
    """Copies that are at equal distances, with addresses whose text does not tell these, where they are rows of a
    square or share what they fold. Updates are a sixth slower so.
    """
    e, together, stepped, keys = body.e, body.nest.together, dict[tuple, list[str]](), Keys()
    wanted = len(copies) > 1 and together is not None and together.what in ("squares", "share")
    for key, _, memory, _ in body.layout.accesses if wanted else ():
        base, first = copies[0].pointers[key]
        by = copies[1].pointers[key][1] - first
        if e.size(by) == by:
            continue
        step = keys.of((base, memory, first, by))
        if step not in stepped:
            stepped[step] = _in_steps(e, base, memory, first, by, len(copies))
        for c, place in zip(copies, stepped[step]):
            c.pointers[key] = place, 0
    return copies


def _in_steps(e: Emitter, base: str, memory: str, first: int, by: int, count: int) -> list[str]:
    """The addresses of elements at equal distances. Where the text does not tell these, they are counted from every
    fourth place: distances from the first would each take a register, and steps from one to the next wait for the one
    before.
    """
    if e.size(by) == by:
        return [e.element(base, memory, first + k * by) for k in range(count)]
    places = [e.element(base, memory, first)]
    for k in range(1, count):
        start = (k - 1) // GROUP * GROUP
        places.append(e.element(places[start], memory, e.size((k - start) * by)))
    return places


def _there(e: Emitter, mask: str | None, c: Copy, width: int) -> str | None:
    """Of lanes under a mask, those that are there."""
    there = c.env.get(THERE) if width > 1 else None
    if mask is None or there is None:
        return mask or there
    return e.op(f"and {vector('i1', width)} {mask}, {there}")


def _stored(body: BodyWriter, c: Copy, width: int, past_caches: bool) -> str | None:
    """The lanes that are stored of a vector that is not of one line, or goes beyond the rows of a block."""
    return body.active if past_caches else c.env.get(THERE) if width > 1 else None


def _masked_scalar(body: BodyWriter, buffer: int, t, pointer: str, width: int, mask: str | None) -> str:
    """One address for all lanes, read only where some lane's mask holds."""
    e, some = body.e, None
    if mask is not None:
        some = masks.any_lane(e, mask, width)
    body.check("load", buffer, pointer, t, 1, 1, some)
    return e.splat(e.load(t, pointer, 1, 1, some), t.register, width)


def _first_copy(body: BodyWriter) -> Copy:
    """The state of the body before all loops."""
    keys, starts = Keys(), dict[int, dict]()  # by their buffers: places by their keys
    places = [(key, buffer, (memory, offset[0])) for key, buffer, memory, offset in body.layout.accesses]
    for _, buffer, place in places:
        starts.setdefault(buffer, {}).setdefault(keys.of(place), place)
    added = {buffer for _, buffer, _, offset in body.layout.accesses if not offset[2]}
    moved = {b: _moved_to_starts(body, b, each, b in added) for b, each in starts.items()}
    return Copy({}, {key: moved[b][keys.of(place)] for key, b, place in places})


NEAR = 128  # elements between places that instructions of one address reach
MOST_STARTS = 4  # places far from each other in one buffer, each of which takes a register
MOST_OF_FOLDS = 6  # the same where nothing but folds is written: stencils of as many take 1.15 of the time


def _moved_to_starts(
    body: BodyWriter, buffer: int, starts: dict[tuple, tuple], few: bool
) -> dict[tuple, tuple[str, int]]:
    """For the key of each place where accesses to a buffer start, with what lies there, a pointer to it or near it, and
    how far behind that it is. Of places far from each other, as in the parts of a concatenation and the rows of a
    stencil, the text does not tell how far, unless there are many that are to be `few`. Where elements lie at computed
    places, which takes longer than to read where these begin, there may be any number.
    """
    pointer = body.pointers[buffer]
    near: dict[tuple, tuple] = {}  # keys of places -> that of the first one that they are near to, which comes before
    for key, (memory, start) in starts.items():
        firsts = (k for k in near.values() if starts[k][0] == memory and _are_near(start - starts[k][1]))
        near[key] = next(firsts, key)
    most = MOST_OF_FOLDS if body.nest.folds and not body.nest.stores else MOST_STARTS
    if few and sum(key is first for key, first in near.items()) > most:
        return _in_rows(body.e, pointer, starts) or {key: (pointer, start) for key, (_, start) in starts.items()}
    found: dict[tuple, tuple[str, int]] = {}
    for key, first in near.items():
        memory, start = starts[key]
        if key is not first:
            base, at = found[first]
            found[key] = base, at + start - starts[first][1]
        elif (told := body.e.size(start)) == start:
            found[key] = pointer, start
        else:
            found[key] = body.e.element(pointer, memory, told), 0
    return found


def _are_near(distance: int) -> bool:
    """Whether instructions reach a place from another one; how long short rows are, they would tell."""
    most = LEAST if varies(distance) else NEAR
    return -most < distance < most


def _in_rows(e: Emitter, pointer: str, starts: dict[tuple, tuple]) -> dict[tuple, tuple[str, int]] | None:
    """For the key of each place a pointer to it, where they lie at equal distances that no text tells, as the rows
    that a product of few terms adds up.
    """
    (memory, first), (_, second), *others = starts.values()
    by = second - first
    if e.size(by) == by or any(m != memory or at != first + k * by for k, (m, at) in enumerate(others, 2)):
        return None
    return {key: (place, 0) for key, place in zip(starts, _in_steps(e, pointer, memory, first, by, len(starts)))}


# Operations of integers that are as fast where LLVM does not know an operand: places are kept within bounds by them.
UNTOLD = frozenset("add sub min max clamp select eq ne lt le gt ge".split())


def _operands(body: BodyWriter, s, c: Copy, width: int) -> list[str]:
    """What a statement is computed of. A power of two that lanes are divided by is told: LLVM then multiplies. Other
    divisors, and integers that may hang on an extent, are not, where that costs nothing.
    """
    out = [_untold(body, a, s.op, width) or body.use(a, c, width) for a in s.args]
    if s.op == "div":
        out[-1] = stages.divisor(body, s.args[-1], width) or out[-1]
    return out


def _chosen_for_all(body: BodyWriter, s, c: Copy, width: int) -> str | None:
    """A choice that is the same in all lanes and foreseen, told by one condition, of which processors make a jump; None
    for all else. As a mask, it would be made of the condition for each vector.
    """
    if s.op != "select" or width == 1 or body.short is not None or body.is_lanes(s.args[0]):
        return None
    if not _is_of_places(body.nest, s.args[0]):
        return None
    condition, r = body.use(s.args[0], c, 1), vector(TYPES[s.type].register, width)
    yes, no = (body.use(a, c, width) for a in s.args[1:])
    return body.e.op(f"select i1 {condition}, {r} {yes}, {r} {no}")


def _is_of_places(nest: Nest, i: int) -> bool:
    """Whether a statement compares places, not data: those change seldom what a comparison says, data in each row."""
    s = nest.stmts[i]
    if s.op == "affine":
        return not s.attr[2]
    return s.op == "const" or s.op in ("lt", "ge", "and", "or", "not") and all(_is_of_places(nest, a) for a in s.args)


def _divided(body: BodyWriter, s, c: Copy, width: int) -> str | None:
    """An integer divided by a constant that the text does not tell; None for all else."""
    if s.op not in ("div", "rem", "floor_div") or body.short is not None:
        return None
    by, t = body.nest.stmts[s.args[1]], TYPES[s.type]
    if by.op != "const" or t.kind not in "iu" or not integer_quotients.is_untold(body.e, t, whole(by.attr)):
        return None
    return ops.divided_by(body.e, s.op, t, body.use(s.args[0], c, width), whole(by.attr), width)


def _untold(body: BodyWriter, a: int, op: str, width: int) -> str | None:
    """An integer constant that the text of an operation does not tell, in all lanes; None for all else. Of factors,
    LLVM makes more: only those that hang on a length are not told.
    """
    s = body.nest.stmts[a]
    t = TYPES[s.type]
    if s.op != "const" or t.kind not in "iu" or t.narrow or body.short is not None:
        return None
    if op not in UNTOLD and not (op == "mul" and varies(whole(s.attr))):
        return None
    told = body.e.size(whole(s.attr), t.register)
    return None if isinstance(told, int) else body.e.splat(told, t.register, width)


def _one_by_one(body: BodyWriter, i: int, s, copies: list[Copy]) -> None:
    """A statement in each copy, but for divisions that ask something together."""
    divide = _divided_together(body, i) if len(copies) > 1 and body.is_lanes(i) else None
    if divide is None:
        for c in copies:
            c.env[i] = body.one(i, s, c)
        return
    for c, x in zip(copies, divide(body, i, copies), strict=True):
        c.env[i] = x
        if i in body.layout.told.stmts:
            small.tell(body, i, x, c, body.width)


def _divided_together(body: BodyWriter, i: int) -> Callable | None:
    """What writes a division in all copies at once; None where each has its own."""
    if constant_divisors.is_by_products(body, i):
        return constant_divisors.quotients
    return shared_divisors.divide if body.layout.divisions.is_of_few(i) else None


def _for_all(body: BodyWriter, i: int, s, copies: list[Copy]) -> None:
    """A statement that is the same for all."""
    result = body.one(i, s, copies[0])
    for c in copies:
        c.env[i] = result
        if i in body.layout.told.stmts:
            c.env[small.TOLD, i] = copies[0].env[small.TOLD, i]


def _for_each(body: BodyWriter, i: int, s, copies: list[Copy]) -> None:
    """A statement for iterations that are done together."""
    along = body.nest.vector
    if body.together is None or not body.differs(i):
        _for_all(body, i, s, copies)
    elif along is not None and body.together == body.nest.tile and scheduling.is_transposed(s, body.together, along):
        _transposed(body, i, s, along, copies)
    elif body.width > 1 and body.guard is None and shares_place(body.nest, s, body.together):
        places.read(body, i, s, copies)
    else:
        _one_by_one(body, i, s, copies)


def _transposed(body: BodyWriter, i: int, s, along: int, copies: list[Copy]) -> None:
    """A load for all lines of a square: contiguous rows, transposed in registers."""
    t, width = TYPES[s.attr[1]], body.width
    stride, v = body.layout.coefficient(i, along), vector(t.memory, body.width)
    base, const = copies[0].pointers[i]
    places = _in_steps(body.e, base, t.memory, const, stride, width)
    for place in places:
        body.check("load", s.attr[0], place, t, width)
        if later := s.ahead or streams.are_in(body.nest) and BYTES_LATER // t.bytes:
            streams.fetch(body.e, body.e.element(place, t.memory, later), soon=not s.ahead)
    rows = [body.e.op(f"load {v}, ptr {place}, align {t.bytes}") for place in places]
    for c, row in zip(copies, body.e.transposed(rows, t.memory), strict=True):
        c.env[i] = body.e.widen(row, t, width)


def _read_columns(body: BodyWriter, group: list[int], along: int, c: Copy) -> None:
    """Loads of columns as those of whole vectors."""
    stmts = [body.nest.stmts[i] for i in group]
    buffer, dtype, offset = stmts[0].attr
    t, n = TYPES[dtype], body.layout.coefficient(group[0], along)
    pointer, _ = body.address(group[0], t.memory, offset, c, body.width)
    places = [s.attr[2][0] - offset[0] for s in stmts]
    if n == 2:
        body.check("load", buffer, pointer, t, 2 * body.width)
        raw = body.e.load_interleaved(t, pointer, body.width)
    else:
        for at in places:
            body.check("load", buffer, body.e.element(pointer, t.memory, at), t, body.width, n)
        raw = columns.load(body.e, t, pointer, places, n, body.width)
    for i, x in zip(group, raw, strict=True):
        c.env[i] = body.e.widen(x, t, body.width)


def _write_columns(body: BodyWriter, group: list[int], c: Copy) -> None:
    """Stores of all columns as those of whole vectors."""
    s, n = body.nest.stores[group[0]], len(group)
    t = TYPES[s.dtype]
    pointer, _ = body.address(("store", group[0]), t.memory, s.offset, c, body.width)
    body.check("store", s.buffer, pointer, t, n * body.width)
    raw = [body.e.narrow(body.use(body.nest.stores[k].stmt, c), t, body.width) for k in group]
    if n == 2:
        body.e.store_interleaved(t, raw, pointer, body.width)
    else:
        columns.store(body.e, t, raw, pointer, body.width)
