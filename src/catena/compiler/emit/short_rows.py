"""The body of a loop nest on rows that are shorter than a vector (see `kernels.short_rows`), as LLVM IR."""

from __future__ import annotations

from catena.compiler.emit import columns, constant_divisors, masks, ops, small, stages
from catena.compiler.emit.emitter import constant_of
from catena.compiler.emit.places import choose
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.kernels import short_rows

COLUMNS = "columns"  # with a copy, what is written before its loop


class ShortRows:
    """The parts of `width` rows, each with a copy of the body; afterwards the columns that are folded. What hangs on
    the columns alone, such as weights, is written before the loop over the rows (`written`), where there is one.
    """

    def __init__(self, body, d: int, copy):
        self.body, self.e, self.nest, self.d = body, body.e, body.nest, d
        self.n, self.width = body.nest.extents[d], body.width
        self.copies = [copy.child() for _ in range(self.n)]
        self.part: int | None = None  # that is written; None for columns
        self.before = copy.env.get(COLUMNS)  # for each part
        for c, written in zip(self.copies, self.before or ()):
            c.env.update(written)

    def written(self) -> list[dict]:
        """Writes the statements that are the same in all rows, and inverts what these are divided by: for each part."""
        found: set[object] = set()
        inside = sum(1 << k for k in self.nest.order[self.nest.order.index(self.d) + 1 :])
        for i, s in enumerate(self.nest.stmts):
            is_same = not self.body.is_along_lanes(i) and not self.nest.depends[i] & inside
            if self.is_in_parts(i) and is_same and s.op != "accumulator":
                self.body.statement(i, self.copies)
                found.add(i)
            elif s.op == "div" and s.args[1] in found and self.body.layout.known(i):
                self._invert(i, s)
                found.add((stages.FIRST, i))
        return [{key: x for key, x in c.env.items() if key in found} for c in self.copies]

    def _invert(self, i: int, s) -> None:
        """The first stage of a division by columns, for the lanes of each part."""
        e, t, w = self.e, TYPES[s.type], self.width
        divisors = self.copies[0].env[s.args[1]]
        numbers = [e.op(f"extractelement {vector(t.register, w)} {divisors}, i64 {k}") for k in range(self.n)]
        for given in zip(*(stages.first_of(self.body, i, [x]) for x in numbers)):
            type_, joined = given[0][0], "poison"
            for k, (_, x) in enumerate(given):
                joined = e.op(f"insertelement {vector(type_, w)} {joined}, {type_} {x}, i64 {k}")
            for part, c in enumerate(self.copies):
                order = [(part * w + k) % self.n for k in range(w)]
                lanes = vector(type_, w), self._shuffled([joined], order, type_)
                c.env[stages.FIRST, i] = [*c.env.get((stages.FIRST, i), ()), lanes]

    def is_in_parts(self, i: int) -> bool:
        """Whether a statement differs along the rows."""
        return bool(self.nest.depends[i] >> self.d & 1)

    # ---- statements ----------------------------------------------------------------------------------------

    def statement(self, i: int) -> None:
        """Writes a statement for all parts, which is one for all where it tells something of rows alone."""
        if self.before is not None and i in self.before[0]:
            return
        s = self.nest.stmts[i]
        if not self.is_in_parts(i):
            self.part = None
            self.copies[0].env[i] = self.body.one(i, s, self.copies[0])
            _share(i, self.copies)
            return
        if s.op == "load":
            found = self._load(i, s)
        elif short_rows.is_looped(s.op):
            found = _looped(self, i, s)
        elif constant_divisors.is_by_products(self.body, i):
            found = constant_divisors.quotients_of(self.body, i, _in_parts(self, s.args[0]))
        else:
            found = [self._one(i, s, part) for part in range(self.n)]
        for c, x in zip(self.copies, found, strict=True):
            c.env[i] = x
        if i in self.body.layout.told.stmts:
            _tell(self, i)

    def _one(self, i: int, s, part: int) -> str:
        if s.op == "affine":
            return self._affine(s.attr, part)
        self.part = part
        if s.op == "div" and (out := stages.quotient(self.body, i, self.copies[part])) is not None:
            return out
        if (out := small.written(self.body, i, self.copies[part], self.width)) is not None:
            return out
        types, t = [TYPES[self.nest.stmts[a].type] for a in s.args], TYPES[s.type]
        xs = [self.use(a, self.copies[part]) for a in s.args]
        return ops.emit(self.e, s.op, t, xs, types, s.attr, self.width)

    def use(self, i: int, c) -> str:
        """Statement `i` in the lanes of the part, or of the column, that is written."""
        s, mask = self.nest.stmts[i], self.nest.depends[i]
        t = TYPES[s.type]
        if s.op == "const":
            return constant_of(self.e, s.attr, t, self.width)
        if mask >> self.d & 1 or (mask >> self.nest.vector & 1 and self.part is None):
            return c.env[i]
        if not mask >> self.nest.vector & 1:
            return self.e.splat(c.env[i], t.register, self.width)
        assert self.part is not None  # columns have returned
        return self._shuffled([c.env[i]], self._rows(self.part), t.register)

    def _rows(self, part: int) -> list[int]:
        """The row of each lane of a part."""
        return [(part * self.width + k) // self.n for k in range(self.width)]

    def _affine(self, a, part: int) -> str:
        """An index expression in the lanes of a part."""
        body, (const, dims, terms), c = self.body, a, self.copies[part]
        along, inside = (next((k for d, k in dims if d == e), 0) for e in (self.nest.vector, self.d))
        outer = tuple((d, k) for d, k in dims if d not in (self.nest.vector, self.d))
        total = body.index((const, outer, ()), c, 1)
        if along:
            total = body.add(total, body.times(c.base, along))
        out = self.e.splat(total, "i64", self.width)
        own = short_rows.places(along, inside, self.n, part, self.width)
        out = self.e.op(f"add <{self.width} x i64> {out}, <{', '.join(f'i64 {x}' for x in own)}>")
        self.part = part
        for t, k in terms:
            by = self.e.op(f"mul <{self.width} x i64> {self.use(t, c)}, splat (i64 {k})")
            out = self.e.op(f"add <{self.width} x i64> {out}, {by}")
        return out

    # ---- memory --------------------------------------------------------------------------------------------

    def _load(self, i: int, s) -> list[str]:
        t, c = TYPES[s.attr[1]], self.copies[0]
        if s.attr[2][2]:
            return [self._chosen(i, s, t, part) for part in range(self.n)]
        along, inside = (self.body.layout.coefficient(i, d) for d in (self.nest.vector, self.d))
        pointer, _ = self.body.start_of(i, t.memory, s.attr[2], c, 1)
        if short_rows.way(s.attr[2], self.nest.vector, self.d, self.n, self.width) == "columns":
            found = [self._read(s, t, place, 0) for place in _places(self, pointer, t, inside)]
            return [self.e.widen(x, t, self.width) for x in columns.to_parts(self.e, found, t.memory, self.width)]
        read: dict[tuple[int, int], str] = {}
        return [self._spread(s, t, pointer, along, inside, part, read) for part in range(self.n)]

    def _chosen(self, i: int, s, t: Type, part: int) -> str:
        """A part at computed places of its rows, from the vectors that hold all that lies between."""
        size = self.nest.together.chooses
        along, place = self.body.layout.coefficient(i, self.nest.vector), s.attr[2][2][0][0]
        lane = short_rows.chosen_lane(t, self.width, size)
        between = short_rows.within(self.nest, s, self.nest.vector, self.d, self.width, size)
        assert between is not None and lane is not None  # else the rows would not be taken together so
        low, high = between
        base, const = self.copies[part].pointers[i]
        at = short_rows.places(along, 0, self.n, part, self.width)
        first, last, read = min(at) + low, max(at) + high, []
        for start in range(first, last + 1, self.width):
            read.append(self._lanes(self._read(s, t, base, const + start, min(self.width, last + 1 - start)), t, lane))
        self.part = part
        short, type_ = self._unconverted(place)
        row = ", ".join(f"{type_} {x - first}" for x in at)
        x = self.e.op(f"add <{self.width} x {type_}> {self.use(short, self.copies[part])}, <{row}>")
        found = choose(self.e, read, lane, (type_, x, 0), self.width, size)
        if lane == t.memory:
            return self.e.widen(found, t, self.width)
        raw = self.e.op(f"trunc {vector(lane, self.width)} {found} to {vector(self._integer(t), self.width)}")
        return self.e.widen(self._cast(raw, self._integer(t), t.memory), t, self.width)

    def _lanes(self, raw: str, t: Type, lane: str) -> str:
        """Elements in whole lanes, by their bits."""
        if lane == t.memory:
            return raw
        raw = self._cast(raw, t.memory, self._integer(t))
        return self.e.op(f"zext {vector(self._integer(t), self.width)} {raw} to {vector(lane, self.width)}")

    @staticmethod
    def _integer(t: Type) -> str:
        """The integer that an element is in memory."""
        return f"i{8 * t.bytes}"

    def _cast(self, x: str, source: str, target: str) -> str:
        same = source == target
        return x if same else self.e.op(f"bitcast {vector(source, self.width)} {x} to {vector(target, self.width)}")

    def _unconverted(self, place: int) -> tuple[int, str]:
        """The statement that tells a place, and its type."""
        s = self.nest.stmts[place]
        is_short = s.op == "convert" and self.nest.stmts[s.args[0]].type == "int32"
        return (s.args[0], "i32") if is_short else (place, "i64")

    def _spread(self, s, t: Type, pointer: str, along: int, inside: int, part: int, read: dict) -> str:
        """A part, from the vectors that hold its lanes; `read` has those of parts before. Code generation of LLVM 22
        may never end where several masked loads of the same bytes are shuffled.
        """
        at = short_rows.places(along, inside, self.n, part, self.width)
        first, last = min(at), max(at)
        vectors = [(start, min(self.width, last + 1 - start)) for start in range(first, last + 1, self.width)]
        for start, count in vectors:
            if (start, count) not in read:
                read[start, count] = self._read(s, t, pointer, start, count)
        found = [read[each] for each in vectors]
        return self.e.widen(self._shuffled(found, [x - first for x in at], t.memory), t, self.width)

    def _read(self, s, t: Type, pointer: str, start: int, count: int | None = None) -> str:
        """A raw vector, of which the first `count` lanes are wanted, and what lies behind may not be there."""
        mask, there = None, self.width if count is None else count
        if there < self.width:
            mask = masks.constant(k < there for k in range(self.width))
        place = self.e.element(pointer, t.memory, start)
        self.body.check("load", s.attr[0], place, t, self.width, 1, mask)
        return self.e.load_raw(t, place, self.width, 1, mask)

    def finish(self) -> None:
        """The nest's stores, and what its folds take in."""
        self._store()
        if self.body.folds:
            self._fold()

    def _store(self) -> None:
        for number, s in enumerate(self.nest.stores):
            t, values = TYPES[s.dtype], []
            for part, c in enumerate(self.copies):
                self.part = part
                values.append(self.e.narrow(self.use(s.stmt, c), t, self.width))
            key, step = ("store", number), self.width
            if short_rows.way(s.offset, self.nest.vector, self.d, self.n, self.width) == "columns":
                values, step = self._columns(values, t.memory), self.body.layout.coefficient(key, self.d)
            pointer, _ = self.body.start_of(key, t.memory, s.offset, self.copies[0], 1)
            for place, x in zip(_places(self, pointer, t, step), values, strict=True):
                self._write(s.buffer, t, place, x)

    def _fold(self) -> None:
        """Takes columns into the folds, one after the other; of rows that are folded too, or stay, the parts."""
        if self.d not in self.nest.reduced or self.nest.vector in self.nest.reduced:
            self._fold_parts()
            return
        copies = [self.copies[0].child() for _ in range(self.n)]
        for i in {i for f in self.nest.folds for i in f.stmts}:
            s = self.nest.stmts[i]
            if s.op == "const" or not self.nest.depends[i] >> self.d & 1:
                continue
            parts = [c.env[i] for c in self.copies]
            for c, x in zip(copies, self._columns(parts, TYPES[s.type].register), strict=True):
                c.env[i] = x
        self.part = None
        for c in copies:
            for accumulators in self.body.folds:
                accumulators.step([c])

    def _fold_parts(self) -> None:
        active = self.body.active
        for part, c in enumerate(self.copies):
            self.part = part
            if active is not None:  # of rows
                self.body.active = self._shuffled([active], self._rows(part), "i1")
            for accumulators in self.body.folds:
                accumulators.step([c], part)
        self.body.active = active

    def store_folded(self, folds: list, copy) -> None:
        """The results of folds of parts that stay, which lie in the order of memory."""
        for number, accumulators in enumerate(folds):
            ((buffer, dtype, offset),) = accumulators.fold.dests
            t = TYPES[dtype]
            pointer, _ = self.body.start_of(("fold", number, 0), t.memory, offset, copy, 1)
            for part, row in enumerate(accumulators.results()):
                x = accumulators.value(row, self.width)
                x = self.e.narrow(ops.round_to(self.e, x, t, self.width) if t.narrow else x, t, self.width)
                self._write(buffer, t, self.e.element(pointer, t.memory, part * self.width), x)

    def _write(self, buffer: int, t: Type, place: str, x: str) -> None:
        self.body.check("store", buffer, place, t, self.width)
        self.e.do(f"store {vector(t.memory, self.width)} {x}, ptr {place}, align {t.bytes}")

    # ---- shuffles ------------------------------------------------------------------------------------------

    def _whole(self, x: str) -> str:
        """Booleans as integers: bits of a mask are not shuffled."""
        return self.e.op(f"sext {vector('i1', self.width)} {x} to {vector(self._lane, self.width)}")

    def _bits(self, x: str) -> str:
        return self.e.op(f"icmp ne {vector(self._lane, self.width)} {x}, zeroinitializer")

    @property
    def _lane(self) -> str:
        """The integer that fills a lane."""
        return f"i{8 * max(self.nest.together.chooses, 16) // self.width}"

    def _shuffled(self, vectors: list[str], order: list[int], element: str) -> str:
        """The lanes of vectors in an order, in which all lanes are numbered from the first vector on."""
        if element == "i1":
            return self._bits(self._shuffled([self._whole(x) for x in vectors], order, self._lane))
        return columns.shuffled(self.e, vectors, order, element, self.width)

    def _columns(self, parts: list[str], element: str) -> list[str]:
        """The parts as columns."""
        if element == "i1":
            return [self._bits(x) for x in self._columns([self._whole(x) for x in parts], self._lane)]
        return columns.from_parts(self.e, parts, element, self.width)


def _places(rows: ShortRows, pointer: str, t: Type, step: int) -> list[str]:
    """Where parts or columns begin: if a step may hang on an extent, each from the one before."""
    e, told = rows.e, step if step == rows.width else rows.e.size(step)
    if not isinstance(told, str):
        return [e.element(pointer, t.memory, k * step) for k in range(rows.n)]
    places = [pointer]
    for _ in range(rows.n - 1):
        places.append(e.element(places[-1], t.memory, told))
    return places


def _share(i: int, copies: list) -> None:
    """A statement of rows alone, and what it tells, are the same for all parts."""
    for key in (i, (small.TOLD, i)):
        if key in copies[0].env:
            for c in copies[1:]:
                c.env[key] = copies[0].env[key]


def _tell(rows: ShortRows, i: int) -> None:
    """Keeps whether a statement may be small in some part: what is told of all takes one branch."""
    for part, c in enumerate(rows.copies):
        rows.part = part
        small.tell(rows.body, i, c.env[i], c, rows.width)
    told = ops.either(rows.e, (c.env[small.TOLD, i] for c in rows.copies))
    for c in rows.copies:
        c.env[small.TOLD, i] = told


def _looped(rows: ShortRows, i: int, s) -> list[str]:
    """A function of all parts, which pass through memory, so that its text stands there once."""
    e, given = rows.e, rows.copies[0].env.get((stages.FIRST, i))
    operands = s.args if given is None else stages.others(rows.body, i)
    types, t = [TYPES[rows.nest.stmts[a].type] for a in operands], TYPES[s.type]
    slots = [e.slot(f"[{rows.n} x {vector(x.register, rows.width)}]", 64) for x in (*types, t)]
    for part, c in enumerate(rows.copies):
        rows.part = part
        for slot, a, x in zip(slots, operands, types):
            v = vector(x.register, rows.width)
            e.do(f"store {v} {rows.use(a, c)}, ptr {e.element(slot, v, part)}")
    k, opened = e.begin_loop(0, rows.n)
    vs = [vector(x.register, rows.width) for x in (*types, t)]
    at = [e.element(slot, v, k) for slot, v in zip(slots, vs)]
    xs = [e.op(f"load {v}, ptr {place}") for v, place in zip(vs, at[:-1])]
    if given is None:
        made = ops.emit(e, s.op, t, xs, types, s.attr, rows.width)
    else:
        made = stages.second_of(rows.body, i, xs, given)
    e.do(f"store {vs[-1]} {made}, ptr {at[-1]}")
    e.end_loop(opened)
    return [e.op(f"load {vs[-1]}, ptr {e.element(slots[-1], vs[-1], part)}") for part in range(rows.n)]


def _in_parts(rows: ShortRows, a: int) -> list[str]:
    """A statement that another reads, in all parts."""
    found = []
    for part, c in enumerate(rows.copies):
        rows.part = part
        found.append(rows.use(a, c))
    return found
