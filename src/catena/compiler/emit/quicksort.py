"""Quicksort of unsigned keys by vectors, as LLVM IR text: of a whole row, or of the part of it that is asked for.

A pass compares a vector of keys with the pivot, and compresses what is less and what is not into two streams, without a
branch: what is less goes back to the front of the row, the rest to a spare row, from where it is copied behind. What
fits a few registers is sorted by a bitonic network. A range of ranks tells which places have to hold what sorting puts
there; parts outside of it are left as they are, which makes the same function a selection (quickselect).
Positions may go with the keys; equal keys are then ordered by position. Patterns that defeat the pivots end in a
radix sort (`sorting`), so no input takes more than O(n log n).

Sources: Hoare, "Quicksort", The Computer Journal 5 (1962), and Algorithm 65, "Find" (1961); compression by the masks of
AVX-512: Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake", IJACSA 8 (2017);
networks: Batcher, "Sorting networks and their applications" (1968), with every comparison ascending; the depth limit:
Musser, "Introspective sorting and selection algorithms" (1997).
"""

from __future__ import annotations

from functools import cache

from catena.compiler.emit import sorting
from catena.compiler.emit.emitter import Emitter, shortened
from catena.compiler.emit.masks import constant
from catena.compiler.emit.places import choose

REGISTER = 512  # bits
SAMPLES = 16  # keys whose median is the pivot
UNROLL = 4  # vectors in a step of a pass
LOOPED = 4  # vectors from which a network is a loop, since the comparisons of fewer wait for each other, and bits of
LOOPED_BITS = 32  # a key, since lanes of shorter ones change places more slowly where this is computed


class Columns:
    """Vectors of keys, and of positions that go with them: the same operation on both."""

    def __init__(self, e: Emitter, bits: int, paired: bool):
        self.e, self.lanes = e, REGISTER // bits
        self.types = [f"i{bits}", "i32"][: 1 + paired]
        self.vectors = [f"<{self.lanes} x {t}>" for t in self.types]
        self.mask = f"<{self.lanes} x i1>"

    def at(self, pointers: list[str], offset) -> list[str]:
        return [self.e.element(p, t, offset) for p, t in zip(pointers, self.types)]

    def load(self, pointers: list[str]) -> list[str]:
        return [
            self.e.op(f"load {v}, ptr {p}, align {_bytes(t)}") for v, t, p in zip(self.vectors, self.types, pointers)
        ]

    def store(self, xs: list[str], pointers: list[str]) -> None:
        for v, t, x, p in zip(self.vectors, self.types, xs, pointers):
            self.e.do(f"store {v} {x}, ptr {p}, align {_bytes(t)}")

    def load_first(self, pointers: list[str], mask: str) -> list[str]:
        """Vectors whose lanes beyond the mask come after everything else."""
        return [
            self.e.op(
                f"call {v} @llvm.masked.load.v{self.lanes}{t}.p0(ptr {p}, i32 {_bytes(t)}, {self.mask} {mask}, "
                f"{v} splat ({t} -1))"
            )
            for v, t, p in zip(self.vectors, self.types, pointers)
        ]

    def store_first(self, xs: list[str], pointers: list[str], mask: str) -> None:
        for v, t, x, p in zip(self.vectors, self.types, xs, pointers):
            self.e.do(
                f"call void @llvm.masked.store.v{self.lanes}{t}.p0({v} {x}, ptr {p}, i32 {_bytes(t)}, "
                f"{self.mask} {mask})"
            )

    def compress(self, xs: list[str], mask: str) -> list[str]:
        return [
            self.e.op(
                f"call {v} @llvm.experimental.vector.compress.v{self.lanes}{t}({v} {x}, {self.mask} {mask}, {v} poison)"
            )
            for v, t, x in zip(self.vectors, self.types, xs)
        ]

    def shuffle(self, xs: list[str], ys: list[str], order: list[int]) -> list[str]:
        places = ", ".join(f"i32 {k}" for k in order)
        return [
            self.e.op(f"shufflevector {v} {x}, {v} {y}, <{len(order)} x i32> <{places}>")
            for v, x, y in zip(self.vectors, xs, ys)
        ]

    def below(self, count: str) -> str:
        """The mask of as many lanes as `count` says."""
        e, bits = self.e, f"i{self.lanes}"
        beyond = e.op(f"sub i64 {self.lanes}, {e.least(count, self.lanes)}")
        beyond = beyond if self.lanes == 64 else e.op(f"trunc i64 {beyond} to {bits}")
        ones = e.op(f"lshr {bits} -1, {beyond}")
        some = e.op(f"icmp sgt i64 {count}, 0")
        return e.op(f"bitcast {bits} {e.op(f'select i1 {some}, {bits} {ones}, {bits} 0')} to {self.mask}")

    def first(self, count: str, vectors: int) -> list[str]:
        """The masks of so many vectors, one after the other, that `count` lanes are on, as many as a key can tell."""
        t, v = self.types[0], self.vectors[0]
        counts = self.e.splat(count, t, self.lanes)
        masks = []
        for k in range(vectors):
            numbers = ", ".join(f"{t} {k * self.lanes + lane}" for lane in range(self.lanes))
            masks.append(self.e.op(f"icmp ugt {v} {counts}, <{numbers}>"))
        return masks

    def count(self, mask: str) -> str:
        bits = self.e.op(f"bitcast {self.mask} {mask} to i{self.lanes}")
        ones = self.e.op(f"call i{self.lanes} @llvm.ctpop.i{self.lanes}(i{self.lanes} {bits})")
        return ones if self.lanes == 64 else self.e.op(f"zext i{self.lanes} {ones} to i64")

    def less(self, xs: list[str], ys: list[str]) -> str:
        """Where `xs` comes before `ys`."""
        found = self.e.op(f"icmp ult {self.vectors[0]} {xs[0]}, {ys[0]}")
        if len(xs) == 1:
            return found
        same = self.e.op(f"icmp eq {self.vectors[0]} {xs[0]}, {ys[0]}")
        earlier = self.e.op(f"icmp ult {self.vectors[1]} {xs[1]}, {ys[1]}")
        return self.e.op(f"or {self.mask} {found}, {self.e.op(f'and {self.mask} {same}, {earlier}')}")

    def opaque(self, xs: list[str]) -> list[str]:
        """The same vectors, of which LLVM knows nothing more: it asks each shuffle which bits of its operand are known,
        and of least and greatest ones goes back through all that were compared before, twice as many at each step.
        """
        out = []
        for v, t, x in zip(self.vectors, self.types, xs):
            n = self.lanes * _bytes(t) // 4
            floats = self.e.op(f"bitcast {v} {x} to <{n} x float>")
            fenced = self.e.op(f"call <{n} x float> @llvm.arithmetic.fence.v{n}f32(<{n} x float> {floats})")
            out.append(self.e.op(f"bitcast <{n} x float> {fenced} to {v}"))
        return out

    def choose_lanes(self, xs: list[str], order: str) -> list[str]:
        """The lanes whose numbers `order` holds."""
        size, t = REGISTER // 8, self.types[0]
        places = (t, order, 0)
        first = choose(self.e, xs[:1], t, places, self.lanes, size)
        return [first, *(choose(self.e, [x], "i32", places, self.lanes, 4 * self.lanes) for x in xs[1:])]

    def choose(self, mask: str, xs: list[str], ys: list[str]) -> list[str]:
        return [self.e.op(f"select {self.mask} {mask}, {v} {x}, {v} {y}") for v, x, y in zip(self.vectors, xs, ys)]

    def ordered(self, xs: list[str], ys: list[str]) -> tuple[list[str], list[str]]:
        """The lesser and the greater of each lane."""
        if len(xs) == 1:
            both = f"({self.vectors[0]} {xs[0]}, {self.vectors[0]} {ys[0]})"
            kind = f"v{self.lanes}{self.types[0]}"
            low, high = ([self.e.op(f"call {self.vectors[0]} @llvm.u{m}.{kind}{both}")] for m in ("min", "max"))
            return low, high
        less = self.less(xs, ys)
        return self.choose(less, xs, ys), self.choose(less, ys, xs)


def _bytes(element: str) -> int:
    return int(element[1:]) // 8


# ---- a network ---------------------------------------------------------------------------------------------


def network(c: Columns, rows: list, looped: bool) -> list:
    """The elements of some vectors in order. The network counts them down the columns, so that most comparisons are
    between registers; at the end they are brought into the order of memory.
    """
    span = 2
    while span <= len(rows):
        rows = _merged(c, _exchange(c, rows, span - 1), span // 4)
        span *= 2
    return _down_to_across(c, (_merge_lanes_in_loop if looped else _merge_lanes)(c, rows))


def _exchange(c: Columns, rows: list, across: int) -> list:
    """Each row compared with that whose number differs by the bits `across`."""
    out = list(rows)
    for v in (v for v in range(len(rows)) if v < v ^ across):
        out[v], out[v ^ across] = c.ordered(rows[v], rows[v ^ across])
    return out


def _merged(c: Columns, rows: list, across: int) -> list:
    """The last comparisons of a merge, from rows that are `across` apart on."""
    while across:
        rows, across = _exchange(c, rows, across), across // 2
    return rows


def _merge_lanes(c: Columns, rows: list) -> list:
    """Columns merged with ever more others, up to all lanes."""
    reach = 2
    while reach <= c.lanes:
        rows, lane = _exchange_lanes(c, rows, reach - 1, turned=True), reach // 4
        while lane:
            rows, lane = _exchange_lanes(c, rows, lane, turned=False), lane // 2
        rows, reach = _merged(c, rows, len(rows) // 2), 2 * reach
    return rows


def _exchange_lanes(c: Columns, rows: list, across: int, turned: bool) -> list:
    """Each lane of the rows compared with the lane whose number differs by the bits `across`: of the same row, or of
    that which stands where it does if the rows are `turned`.
    """
    order = [k ^ across for k in range(c.lanes)]
    upper = constant(k > k ^ across for k in range(c.lanes))
    rows = [c.opaque(row) for row in rows]
    others = rows[::-1] if turned else rows
    return [_kept(c, row, c.shuffle(other, other, order), upper) for row, other in zip(rows, others)]


def _merge_lanes_in_loop(c: Columns, rows: list) -> list:
    """`_merge_lanes` as a loop: how lanes are compared hangs on bits of their numbers alone. Written out, a network of
    many vectors is the longest text of a sort, and takes LLVM longer than all else.
    """
    e, t = c.e, c.types[0]
    slots = [[e.slot(v, REGISTER // 8) for v in c.vectors] for _ in rows]
    _write(c, rows, slots)
    merges, opened = e.begin_loop(1, c.lanes.bit_length())
    reach = e.op(f"shl {t} 1, {shortened(e, merges, t)}")
    first = e.op(f"lshr {t} {reach}, 1")
    rows = _read(c, slots)
    _write(c, _exchange_such_lanes(c, rows, e.op(f"sub {t} {reach}, 1"), first, turned=True), slots)
    ask, compare, merged, before = e.label(), e.label(), e.label(), e.block
    lane, half = e.name(), e.name()
    e.jump(ask)
    e.start(ask)
    e.do(f"{lane} = phi {t} [ {first}, %{before} ], [ {half}, %{compare} ]")
    e.do(f"{half} = lshr {t} {lane}, 1")
    e.branch(e.op(f"icmp eq {t} {half}, 0"), merged, compare)
    e.start(compare)
    rows = _read(c, slots)
    _write(c, _exchange_such_lanes(c, rows, half, half, turned=False), slots)
    e.jump(ask)
    e.start(merged)
    _write(c, _merged(c, _read(c, slots), len(rows) // 2), slots)
    e.end_loop(opened)
    return _read(c, slots)


def _exchange_such_lanes(c: Columns, rows: list, across: str, highest: str, turned: bool) -> list:
    """`_exchange_lanes` by bits that are computed; lanes whose number has the highest of them keep the greater one."""
    e, t, v = c.e, c.types[0], c.vectors[0]
    numbers = "<" + ", ".join(f"{t} {k}" for k in range(c.lanes)) + ">"
    order = e.op(f"xor {v} {numbers}, {e.splat(across, t, c.lanes)}")
    bit = e.op(f"and {v} {numbers}, {e.splat(highest, t, c.lanes)}")
    upper = e.op(f"icmp ne {v} {bit}, zeroinitializer")
    others = rows[::-1] if turned else rows
    return [_kept(c, row, c.choose_lanes(other, order), upper) for row, other in zip(rows, others)]


def _kept(c: Columns, row: list, other: list, upper: str) -> list:
    """The greater one in the lanes of `upper`, the lesser one in the others."""
    if len(row) == 1:
        least, most = c.ordered(row, other)
        return c.choose(upper, most, least)
    keep = c.e.op(f"xor {c.mask} {c.less(row, other)}, {upper}")  # no two elements are equal
    return c.choose(keep, row, other)


def _write(c: Columns, rows: list, slots: list) -> None:
    for row, slot in zip(rows, slots):
        c.store(row, slot)


def _read(c: Columns, slots: list) -> list:
    return [c.load(slot) for slot in slots]


def _down_to_across(c: Columns, rows: list) -> list:
    """Vectors of consecutive elements from those whose columns hold consecutive elements: as often as the number of
    vectors halves, each of the first half is interleaved with its counterpart.
    """
    half, lanes = len(rows) // 2, c.lanes
    low = [k // 2 + k % 2 * lanes for k in range(lanes)]
    high = [k + lanes // 2 for k in low]
    for _ in range(half.bit_length()):
        rows = [c.shuffle(rows[i // 2], rows[i // 2 + half], high if i % 2 else low) for i in range(len(rows))]
    return rows


@cache
def define_network(bits: int, paired: bool, vectors: int) -> str:
    """The definition of the function that sorts up to `vectors` registers of keys."""
    e = Emitter()
    c = Columns(e, bits, paired)
    places = [c.at(_arguments("", paired), v * c.lanes) for v in range(vectors)]
    masks = c.first(shortened(e, "%n", c.types[0]), vectors)
    rows = network(
        c, [c.load_first(p, m) for p, m in zip(places, masks)], looped=bits >= LOOPED_BITS and vectors >= LOOPED
    )
    for row, place, mask in zip(rows, places, masks):
        c.store_first(row, place, mask)
    e.do("ret void")
    parameters = ", ".join(f"ptr noalias {p}" for p in _arguments("", paired))
    return _function("void", network_symbol(bits, paired, vectors), f"{parameters}, i64 %n", e)


def network_symbol(bits: int, paired: bool, vectors: int) -> str:
    return f"catena_network{'_pairs' if paired else ''}_u{bits}_{vectors}"


# ---- a pass ------------------------------------------------------------------------------------------------


@cache
def define_pass(bits: int, paired: bool) -> str:
    """The definition of the function that brings the keys less than a pivot to the front, and returns how many there
    are; both parts stay in order. The spare rows have the room of the row.
    """
    e = Emitter()
    c = Columns(e, bits, paired)
    pivot = e.splat("%pivot", f"i{bits}", c.lanes)
    low, high = e.slot("i64"), e.slot("i64")
    e.do(f"store i64 0, ptr {low}")
    e.do(f"store i64 0, ptr {high}")
    start = "0"
    for vectors in (UNROLL, 1):
        start = _whole_vectors(c, pivot, low, high, start, vectors)
    _rest(c, pivot, low, high, start)
    ends = [e.op(f"load i64, ptr {p}") for p in (low, high)]
    for to, spare, t in zip(c.at(_arguments("", paired), ends[0]), _arguments("spare_", paired), c.types):
        size = e.op(f"mul i64 {ends[1]}, {_bytes(t)}")
        e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {spare}, i64 {size}, i1 false)")
    e.do(f"ret i64 {ends[0]}")
    return _function("i64", pass_symbol(bits, paired), f"{_rows(paired)}, i64 %n, i{bits} %pivot", e)


def pass_symbol(bits: int, paired: bool) -> str:
    return f"catena_pass{'_pairs' if paired else ''}_u{bits}"


def _whole_vectors(c: Columns, pivot: str, low: str, high: str, start: str, vectors: int) -> str:
    """Distributes from `start` as long as there are so many vectors; returns where it stopped."""
    e, step = c.e, vectors * c.lanes
    last = e.op(f"sub i64 %n, {step}")
    body, after = e.label(), e.label()
    before = e.block
    enough = e.op(f"icmp sle i64 {start}, {last}")
    e.branch(enough, body, after)
    e.start(body)
    i, following = e.name(), e.name()
    e.do(f"{i} = phi i64 [ {start}, %{before} ], [ {following}, %{body} ]")
    rows = [c.load(c.at(c.at(_arguments("", len(c.types) > 1), i), v * c.lanes)) for v in range(vectors)]
    for row in rows:
        less = e.op(f"icmp ult {c.vectors[0]} {row[0]}, {pivot}")
        _append(c, row, less, "", low)
        _append(c, row, e.op(f"xor {c.mask} {less}, splat (i1 true)"), "spare_", high)
    e.do(f"{following} = add i64 {i}, {step}")
    e.branch(e.op(f"icmp sle i64 {following}, {last}"), body, after)
    e.start(after)
    return e.op(f"phi i64 [ {start}, %{before} ], [ {following}, %{body} ]")


def _append(c: Columns, row: list, mask: str, rows: str, end: str) -> None:
    """Writes the lanes of the mask at the end of a stream, and some more, which are written over later: a stream is
    never longer than what has been read.
    """
    at = c.e.op(f"load i64, ptr {end}")
    c.store(c.compress(row, mask), c.at(_arguments(rows, len(row) > 1), at))
    c.e.do(f"store i64 {c.e.op(f'add i64 {at}, {c.count(mask)}')}, ptr {end}")


def _rest(c: Columns, pivot: str, low: str, high: str, start: str) -> None:
    """Distributes what is left behind the last whole vector, and writes no further than the row goes."""
    e, paired = c.e, len(c.types) > 1
    there = c.below(e.op(f"sub i64 %n, {start}"))
    row = c.load_first(c.at(_arguments("", paired), start), there)
    less = e.op(f"and {c.mask} {there}, {e.op(f'icmp ult {c.vectors[0]} {row[0]}, {pivot}')}")
    others = e.op(f"xor {c.mask} {there}, {less}")
    for mask, rows, end in ((less, "", low), (others, "spare_", high)):
        at, count = e.op(f"load i64, ptr {end}"), c.count(mask)
        c.store_first(c.compress(row, mask), c.at(_arguments(rows, paired), at), c.below(count))
        e.do(f"store i64 {e.op(f'add i64 {at}, {count}')}, ptr {end}")


# ---- the sort ----------------------------------------------------------------------------------------------


@cache
def define_sort(bits: int, paired: bool, vectors: int) -> str:
    """The definition of the function that sorts `n` keys as far as the ranks from `%low` to `%high` ask for it, in at
    most `%depth` levels before it turns to the radix sort. It calls itself for the left part, where both are needed,
    and goes on with the other.
    """
    e, rows, spares = Emitter(), _arguments("", paired), _arguments("spare_", paired)
    e.jump("part")
    e.start("part")
    for name, type_ in [*((p, "ptr") for p in rows), *((s, "i64") for s in ("%n", "%low", "%high", "%depth"))]:
        e.do(f"{name}.now = phi {type_} [ {name}, %entry ], [ {name}.right, %right ], [ {name}.left, %left ]")
    here = [f"{p}.now" for p in rows]
    e.branch(e.op(f"icmp sle i64 %n.now, {vectors * REGISTER // bits}"), "few", "many")
    e.start("few")
    e.do(f"call void @{network_symbol(bits, paired, vectors)}({_passed(here)}, i64 %n.now)")
    e.jump("done")
    e.start("many")
    e.branch(e.op("icmp eq i64 %depth.now, 0"), "unlucky", "sample")
    e.start("unlucky")
    order = [x for pair in zip(here, spares) for x in pair]
    e.do(f"call void @{sorting.symbol(bits, paired, seldom=True)}({_passed(order)}, i64 %n.now)")
    e.jump("done")
    e.start("sample")
    _split(e, bits, here, spares)
    _parts(e, bits, rows)
    e.branch("%needs_right", "right_too", "only_left")
    e.start("only_left")
    e.branch("%needs_left", "left", "done")
    e.start("left")
    e.jump("part")
    e.start("right_too")
    e.branch("%needs_left", "both", "right")
    e.start("both")
    left = _passed([*(f"{p}.left" for p in rows), *spares])
    ranks = "i64 %n.left, i64 %low.left, i64 %high.left, i64 %depth.left"
    e.do(f"call void @{symbol(bits, paired, vectors)}({left}, {ranks})")
    e.jump("right")
    e.start("right")
    e.jump("part")
    e.start("done")
    e.do("ret void")
    parameters = f"{_rows(paired)}, i64 %n, i64 %low, i64 %high, i64 %depth"
    return _function("void", symbol(bits, paired, vectors), parameters, e)


def symbol(bits: int, paired: bool, vectors: int) -> str:
    return f"catena_quicksort{'_pairs' if paired else ''}_u{bits}_{vectors}"


def _split(e: Emitter, bits: int, rows: list[str], spares: list[str]) -> None:
    """Splits the row: `%at` keys belong to the left, and are all the same if `%equal`."""
    t = f"i{bits}"
    split = f"call i64 @{pass_symbol(bits, len(rows) > 1)}({_passed([*rows, *spares])}, i64 %n.now, {t}"
    pivot = _pivot(e, bits, rows[0])
    sampled = e.block
    less = e.op(f"{split} {pivot})")
    e.branch(e.op(f"icmp eq i64 {less}, 0"), "least", "split")
    e.start("least")  # the pivot is the least key: what equals it goes to the left
    above = e.op(f"add {t} {pivot}, 1")
    e.branch(e.op(f"icmp eq {t} {above}, 0"), "done", "equal")
    e.start("equal")
    same = e.op(f"{split} {above})")
    e.jump("split")
    e.start("split")
    e.do(f"%at = phi i64 [ {less}, %{sampled} ], [ {same}, %equal ]")
    e.do(f"%equal_left = phi i1 [ false, %{sampled} ], [ true, %equal ]")


def _parts(e: Emitter, bits: int, rows: list[str]) -> None:
    """Both parts, the ranks that are asked for in each, and whether there are any."""
    for p, element in zip(rows, (f"i{bits}", "i32")):
        e.do(f"{p}.left = getelementptr {element}, ptr {p}.now, i64 0")
        e.do(f"{p}.right = getelementptr {element}, ptr {p}.now, i64 %at")
    e.do("%n.left = add i64 %at, 0")
    e.do("%n.right = sub i64 %n.now, %at")
    e.do("%low.left = add i64 %low.now, 0")
    e.do("%high.left = call i64 @llvm.smin.i64(i64 %high.now, i64 %at)")
    e.do(f"%low.right = call i64 @llvm.smax.i64(i64 {e.op('sub i64 %low.now, %at')}, i64 0)")
    e.do("%high.right = sub i64 %high.now, %at")
    e.do("%depth.left = sub i64 %depth.now, 1")
    e.do("%depth.right = sub i64 %depth.now, 1")
    unordered = e.op("xor i1 %equal_left, true")
    e.do(f"%needs_left = and i1 {unordered}, {e.op('icmp slt i64 %low.left, %high.left')}")
    e.do("%needs_right = icmp slt i64 %low.right, %high.right")


def _pivot(e: Emitter, bits: int, keys: str) -> str:
    """The median of some keys at equal distances: the greatest of those that at most half of them are less than."""
    wide = max(bits, 32)
    c, t = Columns(e, wide, False), f"i{wide}"
    vector, mask = c.vectors[0], c.mask
    sample = e.slot(f"[{SAMPLES} x {t}]", REGISTER // 8)
    distance = e.op(f"udiv i64 %n.now, {SAMPLES}")
    start = e.op(f"lshr i64 {distance}, 1")
    k, opened = e.begin_loop(0, SAMPLES)
    at = e.op(f"add i64 {start}, {e.op(f'mul i64 {k}, {distance}')}")
    key = e.op(f"load i{bits}, ptr {e.element(keys, f'i{bits}', at)}")
    key = key if bits == wide else e.op(f"zext i{bits} {key} to {t}")
    e.do(f"store {t} {key}, ptr {e.element(sample, t, k)}")
    e.end_loop(opened)
    rows = [c.load([e.element(sample, t, v * c.lanes)])[0] for v in range(SAMPLES // c.lanes)]
    ranks = [e.slot(vector, REGISTER // 8) for _ in rows]
    for rank in ranks:
        e.do(f"store {vector} zeroinitializer, ptr {rank}")
    k, opened = e.begin_loop(0, SAMPLES)
    each = e.splat(e.op(f"load {t}, ptr {e.element(sample, t, k)}"), t, c.lanes)
    for row, rank in zip(rows, ranks):
        less = e.op(f"zext {mask} {e.op(f'icmp ult {vector} {each}, {row}')} to {vector}")
        so_far = e.op(f"load {vector}, ptr {rank}")
        e.do(f"store {vector} {e.op(f'add {vector} {so_far}, {less}')}, ptr {rank}")
    e.end_loop(opened)
    half = f"splat ({t} {SAMPLES // 2})"
    low = [e.op(f"icmp ule {vector} {e.op(f'load {vector}, ptr {rank}')}, {half}") for rank in ranks]
    rows = [e.op(f"select {mask} {m}, {vector} {row}, {vector} zeroinitializer") for m, row in zip(low, rows)]
    most = rows[0]
    for row in rows[1:]:
        most = c.ordered([most], [row])[1][0]
    key = e.op(f"call {t} @llvm.vector.reduce.umax.v{c.lanes}{t}({vector} {most})")
    return key if bits == wide else e.op(f"trunc {t} {key} to i{bits}")


# ---- the functions that a program needs --------------------------------------------------------------------

REGISTERS = {(8, False): 2, (16, False): 4, (32, False): 8, (64, False): 16, (64, True): 4}  # of a network; measured


def capacity(bits: int, paired: bool) -> int:
    """Keys that the network sorts."""
    return REGISTERS[bits, paired] * REGISTER // bits


def needs(bits: int, paired: bool, n: int) -> dict[str, tuple]:
    """The helpers for rows of up to `n` keys: name -> family and key. A short row takes only a network of its size."""
    if n <= capacity(bits, paired):
        few = registers(bits, n)
        return {network_symbol(bits, paired, few): ("quicksort", "network", bits, paired, few)}
    most = REGISTERS[bits, paired]
    return {
        network_symbol(bits, paired, most): ("quicksort", "network", bits, paired, most),
        pass_symbol(bits, paired): ("quicksort", "pass", bits, paired),
        symbol(bits, paired, most): ("quicksort", "sort", bits, paired, most),
        sorting.symbol(bits, paired, seldom=True): ("sorting", bits, paired, None, False, True),
    }


def registers(bits: int, n: int) -> int:
    """A power of two of registers that hold `n` keys."""
    return 1 << max(-(-n * bits // REGISTER) - 1, 0).bit_length()


def define(what: str, *key) -> str:
    return {"network": define_network, "pass": define_pass, "sort": define_sort}[what](*key)


# ---- text --------------------------------------------------------------------------------------------------


def _arguments(prefix: str, paired: bool) -> list[str]:
    return [f"%{prefix}{name}" for name in ("keys", "index")[: 1 + paired]]


def _rows(paired: bool) -> str:
    return ", ".join(f"ptr noalias {p}" for p in [*_arguments("", paired), *_arguments("spare_", paired)])


def _passed(pointers: list[str]) -> str:
    return ", ".join(f"ptr {p}" for p in pointers)


def _function(result: str, name: str, parameters: str, e: Emitter) -> str:
    return "\n".join([f"define internal {result} @{name}({parameters}) nounwind {{", "entry:", *e.slots, *e.lines, "}"])
