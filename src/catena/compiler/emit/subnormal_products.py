"""Products by tiles of which some operand holds subnormal numbers, or whose products are such.

Processors take a hundred cycles for each multiplication of a vector with such a number, or whose sum is one. Tiles look
(for nothing) whether the processor has noted one, and leave their product to the function here then. It multiplies the
rows of A and the columns of B that hold small numbers by a power of two, gives copies to the same tile, and takes the
power off the sums, which are rounded once more where they are subnormal. Small is what may have a subnormal product
with a number that is not smaller. Rows and columns without any have the sums of a tile that was left alone, and so have
sums that the power makes infinite: which way a sum goes hangs on its own row and column alone. Where the processor has
noted nothing, no sum was rounded to steps of the least number, and the power would have changed none: so it does not
matter who looks.

Nothing here multiplies subnormal numbers: integers and additions bring them to other exponents, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catena.compiler.emit.branches import each_way, when, when_it_leaves
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.masks import any_lane
from catena.compiler.emit.module import COLD
from catena.compiler.graph.keys import remembered
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.vector_math.text import FORMATS
from catena.core.named import NamedTuple
from catena.runtime.float_control import NOTED, NOTED_RESULT

POWER = {
    "float": 48,
    "double": 400,
}  # of two, at least; of a row and a column that both are multiplied, sums below 2^31 stay finite
MET, MET_EARLY = 1, 2  # subnormal numbers, or so before all terms were done
UNKNOWN, NONE, COPIED = 0, 1, 2  # of a panel of B: nobody looked, no column has any, the columns that have are copied
WATCH = "{ i64, i64, ptr }"  # whether a tile has met subnormal numbers; what is known of its panel; room for copies
PARAMETERS = ("ptr %tile, ptr %watch, ptr readonly %a, ptr readonly %b, ptr %c, i64 %k, i64 %step, i64 %by_a, "
              "i64 %by_b, i64 %across, i64 %lanes, i1 %adds, i64 %rows, i64 %vectors")  # fmt: skip


def room(terms: int, rows: int, columns: int, size: int) -> int:
    """The bytes that `text` needs for a tile: for powers of columns and rows, copies of B and A, and sums twice."""
    return size * (columns + rows + terms * columns + rows * terms + 2 * rows * columns)


def has_noted(e: Emitter) -> str:
    """Whether the processor has noted a subnormal number."""
    return _has(e, _notes(e)[1], NOTED)


def forget(e: Emitter, which: int = NOTED) -> None:
    """Has the processor forget what it has noted, if it has noted such."""
    slot, notes = _notes(e)
    with when(e, _has(e, notes, which)):
        _forget(e, slot, notes, which)


def look_out(e: Emitter, met: str | int = MET) -> None:
    """Leaves a tile that is watched, and says what it has `met`, where the processor has noted a subnormal number."""
    with when_it_leaves(e, e.op(f"and i1 {has_noted(e)}, {e.op('icmp ne ptr %watch, null')}")):
        e.do(f"store i64 {met}, ptr %watch")
        e.do("ret void")


class Watch:
    """What tasks do about tiles that look out: their text, where `size` is the room for copies, in bytes."""

    def __init__(self, e: Emitter):
        self.e, self.at, self.copied = e, e.slot(WATCH, 8), e.slot("i1", 1)
        e.slots.append(f"  store {WATCH} zeroinitializer, ptr {self.at}")
        forget(e, NOTED_RESULT)  # of what ran before: exponentials have some

    def begin_panel(self) -> None:
        """Forgets what is known of the panel before."""
        self.e.do(f"store i64 {UNKNOWN}, ptr {self._field(1)}")

    def begin_copy(self) -> None:
        """The first tile will copy the panel, unless the processor has noted a subnormal number already."""
        self.e.do(f"store i1 {self.e.op(f'xor i1 {has_noted(self.e)}, true')}, ptr {self.copied}")

    def end_copy(self) -> None:
        """A tile that left early has not copied its panel: those after it read that where it lies."""
        is_early = self.e.op(f"icmp eq i64 {self.e.op(f'load i64, ptr {self.at}')}, {MET_EARLY}")
        with when(self.e, is_early):
            self.e.do(f"store i1 false, ptr {self.copied}")

    def is_copied(self) -> str:
        """Whether the panel is, or will be by the first tile."""
        return self.e.op(f"load i1, ptr {self.copied}")

    def has_met(self) -> str:
        """Whether the tile has left its product alone."""
        return self.e.op(f"icmp ne i64 {self.e.op(f'load i64, ptr {self.at}')}, 0")

    def multiply(self, careful: str, tile: str, given: str, vectors: str, size: str) -> None:
        """Calls what does it then, by a `tile` of the same rows. A task takes room once."""
        e, at = self.e, self._field(2)
        e.do(f"store i64 0, ptr {self.at}")
        with when(e, e.op(f"icmp eq ptr {e.op(f'load ptr, ptr {at}')}, null")):
            e.do(f"store ptr {e.op(f'alloca i8, i64 {size}, align 64')}, ptr {at}")
        e.do(f"call void {careful}(ptr {tile}, ptr {self.at}, {given}, i64 {vectors})")

    def _field(self, k: int) -> str:
        return self.e.op(f"getelementptr {WATCH}, ptr {self.at}, i64 0, i32 {k}")


def _notes(e: Emitter) -> tuple[str, str]:
    """A slot with what the processor has noted, and that."""
    slot = e.slot("i32", 4)
    e.do(f"call void @llvm.x86.sse.stmxcsr(ptr {slot})")
    return slot, e.op(f"load i32, ptr {slot}")


def _has(e: Emitter, notes: str, which: int) -> str:
    return e.op(f"icmp ne i32 {e.op(f'and i32 {notes}, {which}')}, 0")


def _forget(e: Emitter, slot: str, notes: str, which: int) -> None:
    e.do(f"store i32 {e.op(f'and i32 {notes}, {~which}')}, ptr {slot}")
    e.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {slot})")


@remembered(16)
def text(t: Type, width: int) -> str:
    """Parameters and body of the function that multiplies where a tile has met subnormal numbers, with its arguments
    (see `tiles.text`), and how many `vectors` it has.
    """
    careful = _Careful(t, width)
    careful.write()
    e = careful.e
    return "\n".join([f"({PARAMETERS}) {COLD}", "entry:", *e.slots, *e.lines, "  ret void", "}"])


class Room(NamedTuple):
    """Addresses; first of what is the same for all tiles of a panel."""

    powers_of_columns: str
    b: str
    powers_of_rows: str
    a: str
    sums: str
    others: str  # sums of operands that are not multiplied


class _Careful:
    def __init__(self, t: Type, width: int):
        self.e, self.type, self.width = Emitter(), t, width
        self.numbers = _Numbers(self.e, t, width)
        self.power = TYPES[f"int{8 * t.bytes}"]
        self.least, self.largest = (self.e.slot(self.numbers.integers, 64) for _ in range(2))  # see `_look`

    def write(self) -> None:
        """The whole."""
        e = self.e
        self.columns = e.op(f"mul nuw nsw i64 %vectors, {self.width}")
        self.there = e.op(f"sub nsw i64 {e.op(f'add nsw i64 {self.columns}, %lanes')}, {self.width}")
        self.room = self._lay_out()
        known = e.op(f"getelementptr {WATCH}, ptr %watch, i64 0, i32 1")
        with when(e, e.op(f"icmp eq i64 {e.op(f'load i64, ptr {known}')}, {UNKNOWN}")):
            self._look_at_b(known)
        in_b = e.op(f"icmp eq i64 {e.op(f'load i64, ptr {known}')}, {COPIED}")
        b, by_b = self._choose(in_b, "ptr", self.room.b, "%b"), self._choose(in_b, "i64", self.columns, "%by_b")
        a, step, by_a, in_a = self._look_at_a()
        with when_it_leaves(e, e.op(f"xor i1 {e.op(f'or i1 {in_a}, {in_b}')}, true")):
            self._as_usual()
        self._multiply(a, b, self.room.sums, step, by_a, by_b)
        self._store_all()

    def _lay_out(self) -> Room:
        """What lies in the room for copies, one behind the other."""
        e = self.e
        of_columns = e.op(f"load ptr, ptr {e.op(f'getelementptr {WATCH}, ptr %watch, i64 0, i32 2')}")
        of_b = self._at(of_columns, self.columns)
        of_rows = self._at(of_b, "%k", self.columns)
        of_a = self._at(of_rows, "%rows")
        sums = self._at(of_a, "%rows", "%k")
        return Room(of_columns, of_b, of_rows, of_a, sums, self._at(sums, "%rows", self.columns))

    def _as_usual(self) -> None:
        """There are no small numbers here: what was noted is forgotten."""
        e = self.e
        _forget(e, *_notes(e), NOTED)
        given = "i64 %k, i64 %step, i64 %by_a, i64 %by_b, i64 %across, i64 %lanes, i1 %adds, i64 %rows"
        e.do(f"call void %tile(ptr %a, ptr %b, ptr %c, {given}, ptr null)")
        e.do("ret void")

    def _multiply(self, a: str, b: str, sums: str, step: str, by_a: str, by_b: str) -> None:
        steps = f"i64 %k, i64 {step}, i64 {by_a}, i64 {by_b}, i64 {self.columns}"
        self.e.do(f"call void %tile(ptr {a}, ptr {b}, ptr {sums}, {steps}, i64 %lanes, i1 false, i64 %rows, ptr null)")

    # ---- operands ------------------------------------------------------------------------------------------

    def _look_at_b(self, known: str) -> None:
        """Notes which columns of B have small numbers, and copies B if some have."""
        e, n = self.e, self.numbers
        e.do(f"store i64 {NONE}, ptr {known}")
        first, mask, opened = self._begin_columns()
        least, largest = self._look(self._at("%b", first), "%by_b", 1, lambda term: mask)
        powers = n.power(least, largest, self.width)
        e.store(self.power, powers, self._at(self.room.powers_of_columns, first), self.width)
        with when(e, self._any(n.is_scaled(powers))):
            e.do(f"store i64 {COPIED}, ptr {known}")
        e.end_loop(opened)
        with when(e, e.op(f"icmp eq i64 {e.op(f'load i64, ptr {known}')}, {COPIED}")):
            self._copy_b()

    def _copy_b(self) -> None:
        e = self.e
        first, mask, opened = self._begin_columns()
        power = e.load(self.power, self._at(self.room.powers_of_columns, first), self.width)
        term, terms = e.begin_loop(0, "%k")
        x = e.load(self.type, self._at(self._at("%b", first), term, "%by_b"), self.width, mask=mask)
        copy = self._at(self._at(self.room.b, first), term, self.columns)
        e.store(self.type, self.numbers.scaled(x, power), copy, self.width)
        e.end_loop(terms)
        e.end_loop(opened)

    def _look_at_a(self) -> tuple[str, str, str, str]:
        """Where tiles read A, the steps from row to row and from term to term, and whether some row has small
        numbers. Rows are copied; but those whose columns lie side by side stay where none has any.
        """
        e = self.e
        found, source, step = e.slot("i1", 1), e.slot("ptr", 8), e.slot("i64", 8)
        for slot, x in ((found, "i1 false"), (source, "ptr %a"), (step, "i64 %step")):
            e.do(f"store {x}, ptr {slot}")
        is_apart = e.op("icmp ne i64 %by_a, 1")
        beside = e.op(f"and i1 {is_apart}, {e.op('icmp eq i64 %step, 1')}")
        for is_beside in each_way(e, beside):
            if is_beside:
                self._copy_columns(found)
                continue
            with when(e, is_apart):
                self._bring_together(source, step)
            self._copy_rows(source, step, found)
        some = e.op(f"load i1, ptr {found}")
        is_copied = e.op(f"or i1 {some}, {e.op(f'xor i1 {beside}, true')}")
        row, by_a = self._choose(beside, "i64", "1", "%k"), self._choose(beside, "i64", "%rows", "1")
        a, by_a = self._choose(is_copied, "ptr", self.room.a, "%a"), self._choose(is_copied, "i64", by_a, "%by_a")
        return a, row, by_a, some

    def _copy_columns(self, found: str) -> None:
        """Copies rows whose columns lie side by side, as they do, if some have small numbers: those multiplied."""
        e, n = self.e, self.numbers
        row, opened = e.begin_loop(0, "%rows", self.width)
        there = self._below(row, "%rows")
        least, largest = self._look(self._at("%a", row), "%by_a", 1, lambda term: there)
        powers = n.power(least, largest, self.width)
        self._note(self._any(e.op(f"and {n.truths} {there}, {n.is_scaled(powers)}")), found)
        e.store(self.power, powers, self._at(self.room.powers_of_rows, row), self.width, mask=there)
        e.end_loop(opened)
        with when(e, e.op(f"load i1, ptr {found}")):
            row, opened = e.begin_loop(0, "%rows", self.width)
            there = self._below(row, "%rows")
            powers = e.load(self.power, self._at(self.room.powers_of_rows, row), self.width, mask=there)
            term, terms = e.begin_loop(0, "%k")
            x = e.load(self.type, self._at(self._at("%a", row), term, "%by_a"), self.width, mask=there)
            copy = self._at(self._at(self.room.a, row), term, "%rows")
            e.store(self.type, n.scaled(x, powers), copy, self.width, mask=there)
            e.end_loop(terms)
            e.end_loop(opened)

    def _bring_together(self, source: str, step: str) -> None:
        """Copies rows whose terms lie apart."""
        e, t = self.e, self.type
        row, rows = e.begin_loop(0, "%rows")
        here, copy = self._at("%a", row, "%step"), self._at(self.room.a, row, "%k")
        term, terms = e.begin_loop(0, "%k")
        e.store(t, e.load(t, self._at(here, term, "%by_a"), 1), self._at(copy, term), 1)
        e.end_loop(terms)
        e.end_loop(rows)
        e.do(f"store ptr {self.room.a}, ptr {source}")
        e.do(f"store i64 %k, ptr {step}")

    def _copy_rows(self, source: str, step: str, found: str) -> None:
        """Copies rows, those with small numbers multiplied. They may lie where they go."""
        e, n = self.e, self.numbers
        row, opened = e.begin_loop(0, "%rows")
        here = self._at(e.op(f"load ptr, ptr {source}"), row, e.op(f"load i64, ptr {step}"))
        copy = self._at(self.room.a, row, "%k")
        least, largest = self._look(here, "1", self.width, lambda term: self._below(term, "%k"))
        power = n.power(self._reduced("umin", least), self._reduced("umax", largest), 1)
        self._note(e.op(f"icmp ne {n.integer} {power}, 0"), found)
        e.store(self.power, power, self._at(self.room.powers_of_rows, row), 1)
        every = e.splat(power, n.integer, self.width)
        term, terms = e.begin_loop(0, "%k", self.width)
        mask = self._below(term, "%k")
        x = n.scaled(e.load(self.type, self._at(here, term), self.width, mask=mask), every)
        e.store(self.type, x, self._at(copy, term), self.width, mask=mask)
        e.end_loop(terms)
        e.end_loop(opened)

    def _look(self, start: str, by: str, terms: int, mask: Callable[[str], str]) -> tuple[str, str]:
        """The bits, less one, of the least number but zero in each lane of vectors, so many `terms` on and each `by`
        elements further, and those of the largest.
        """
        e, n = self.e, self.numbers
        e.do(f"store {n.integers} {n.number(-1)}, ptr {self.least}")
        e.do(f"store {n.integers} zeroinitializer, ptr {self.largest}")
        term, opened = e.begin_loop(0, "%k", terms)
        size = n.size(e.load(self.type, self._at(start, term, by), self.width, mask=mask(term)))
        less = e.op(f"sub {n.integers} {size}, {n.number(1)}")
        for slot, x, name in ((self.least, less, "umin"), (self.largest, size, "umax")):
            before = e.op(f"load {n.integers}, ptr {slot}")
            e.do(f"store {n.integers} {n.chosen(name, before, x)}, ptr {slot}")
        e.end_loop(opened)
        least, largest = (e.op(f"load {n.integers}, ptr {slot}") for slot in (self.least, self.largest))
        return least, largest

    def _reduced(self, name: str, x: str) -> str:
        n = self.numbers
        if self.width == 1:
            return x
        return self.e.op(f"call {n.integer} @llvm.vector.reduce.{name}.v{self.width}{n.integer}({n.integers} {x})")

    # ---- sums ----------------------------------------------------------------------------------------------

    def _store_all(self) -> None:
        """Writes the sums; in the place of those that the power has made infinite, or no numbers, those without it."""
        e, n = self.e, self.numbers
        some = e.slot("i1", 1)
        e.do(f"store i1 false, ptr {some}")
        for row, first, mask in self._each_sum():
            x, power = self._sum(self.room.sums, row, first, mask), self._power(row, first)
            is_beyond = n.is_beyond(x, power)
            self._note(self._any(is_beyond), some)
            is_stored = e.op(f"and {n.truths} {mask}, {e.op(f'xor {n.truths} {is_beyond}, {n.truth}')}")
            self._store(n.unscaled(x, power), row, first, is_stored)
        with when(e, e.op(f"load i1, ptr {some}")):
            self._store_others()

    def _store_others(self) -> None:
        e, n = self.e, self.numbers
        self._multiply("%a", "%b", self.room.others, "%step", "%by_a", "%by_b")
        for row, first, mask in self._each_sum():
            x, power = self._sum(self.room.sums, row, first, mask), self._power(row, first)
            is_stored = e.op(f"and {n.truths} {mask}, {n.is_beyond(x, power)}")
            self._store(self._sum(self.room.others, row, first, mask), row, first, is_stored)

    def _each_sum(self) -> Iterator[tuple[str, str, str]]:
        """The body of a loop over vectors of sums: their row, the first column, and which are there."""
        row, rows = self.e.begin_loop(0, "%rows")
        first, mask, opened = self._begin_columns()
        yield row, first, mask
        self.e.end_loop(opened)
        self.e.end_loop(rows)

    def _store(self, x: str, row: str, first: str, mask: str) -> None:
        """Writes sums, or adds them to what is in C."""
        e, t = self.e, self.type
        c = self._at(self._at("%c", first), row, "%across")
        added = e.op(f"fadd {self.numbers.floats} {e.load(t, c, self.width, mask=mask)}, {x}")
        e.store(t, self._choose("%adds", self.numbers.floats, added, x), c, self.width, mask=mask)

    def _sum(self, sums: str, row: str, first: str, mask: str) -> str:
        return self.e.load(self.type, self._at(self._at(sums, first), row, self.columns), self.width, mask=mask)

    def _power(self, row: str, first: str) -> str:
        """Of two, that the sums of a row are multiplied by, in a vector of columns."""
        e, integer = self.e, self.numbers.integer
        of_row = e.splat(e.load(self.power, self._at(self.room.powers_of_rows, row), 1), integer, self.width)
        of_columns = e.load(self.power, self._at(self.room.powers_of_columns, first), self.width)
        return e.op(f"add {self.numbers.integers} {of_row}, {of_columns}")

    # ---- control -------------------------------------------------------------------------------------------

    def _begin_columns(self) -> tuple[str, str, tuple]:
        """A loop over vectors of columns: the first column, which are there, what ends the loop."""
        first, opened = self.e.begin_loop(0, self.columns, self.width)
        return first, self._below(first, self.there), opened

    def _below(self, first: str, stop: str) -> str:
        """The lanes, of which `first` is the first, that are before `stop`."""
        e, lanes = self.e, vector("i64", self.width)
        left = e.splat(e.op(f"sub nsw i64 {stop}, {first}"), "i64", self.width)
        return e.op(f"icmp slt {lanes} {e.lanes(self.width)}, {left}")

    def _at(self, start: str, steps: str, by: str = "1") -> str:
        e = self.e
        return e.element(start, self.type.memory, steps if by == "1" else e.op(f"mul nsw i64 {steps}, {by}"))

    def _any(self, truths: str) -> str:
        return any_lane(self.e, truths, self.width)

    def _note(self, truth: str, slot: str) -> None:
        """Has a slot hold that something was so once."""
        before = self.e.op(f"load i1, ptr {slot}")
        self.e.do(f"store i1 {self.e.op(f'or i1 {before}, {truth}')}, ptr {slot}")

    def _choose(self, condition: str, type_: str, x: str, y: str, truth: str = "i1") -> str:
        return self.e.op(f"select {truth} {condition}, {type_} {x}, {type_} {y}")


class _Numbers:
    """Vectors of floats, moved between exponents without a multiplication of subnormal ones. Powers of two are integers
    that floats' bits are more by, if they are multiplied.
    """

    def __init__(self, e: Emitter, t: Type, width: int):
        self.e, self.type, self.width = e, t, width
        self.format = FORMATS[t.register]
        self.integer = self.format.integer
        self.floats, self.integers, self.truths = (vector(x, width) for x in (t.register, self.integer, "i1"))
        self.truth = e.splat("true", "i1", width)

    def is_subnormal(self, x: str) -> str:
        """Which are, zero not."""
        less = self.e.op(f"sub {self.integers} {self.size(x)}, {self.number(1)}")
        return self.e.op(f"icmp ult {self.integers} {less}, {self.number(self._power(1) - 1)}")

    def is_small(self, least: str, width: int) -> str:
        """Whether bits, less one, are those of a number below the root of the least normal one."""
        root = self._power(1 + (self.format.bias - 1) // 2)
        return self.e.op(f"icmp ult {vector(self.integer, width)} {least}, {self.number(root - 1, width)}")

    def power(self, least: str, largest: str, width: int) -> str:
        """By which rows or columns with these numbers (see `_Careful._look`) are multiplied: none where no number is
        small; where all are, as many as make the largest about one.
        """
        e, integers = self.e, vector(self.integer, width)
        exponent = e.op(f"and {integers} {largest}, {self.number(-self._power(1), width)}")
        power = e.op(f"sub {integers} {self.number(self._power(self.format.bias), width)}, {exponent}")
        power = self.chosen("smax", power, self.number(self._power(POWER[self.type.register]), width), width)
        power = self.chosen("smin", power, self.number(self._power(self.format.bias - 1), width), width)
        is_small = self.is_small(least, width)
        return e.op(f"select {vector('i1', width)} {is_small}, {integers} {power}, {integers} {self.number(0, width)}")

    def is_scaled(self, power: str) -> str:
        return self.e.op(f"icmp ne {self.integers} {power}, {self.number(0)}")

    def is_beyond(self, x: str, power: str) -> str:
        """Which are infinite or no numbers, and may be so since they were multiplied."""
        infinity = self.number(self._power(2 * self.format.bias + 1))
        beyond = self.e.op(f"icmp uge {self.integers} {self.size(x)}, {infinity}")
        return self.e.op(f"and {self.truths} {beyond}, {self.is_scaled(power)}")

    def scaled(self, x: str, power: str) -> str:
        """x times a power. Of a subnormal number, whose bits count steps, these become those of a larger number, less
        the one that they count from.
        """
        e = self.e
        start = e.op(f"add {self.integers} {power}, {self.number(self._power(1))}")
        counted = self._of_bits(e.op(f"or {self.integers} {self.size(x)}, {start}"))
        small = self._with_sign(self._bits(e.op(f"fsub {self.floats} {counted}, {self._of_bits(start)}")), x)
        is_small = self.is_subnormal(x)
        factor = self._of_bits(e.op(f"add {self.integers} {power}, {self.number(self._power(self.format.bias))}"))
        usual = e.op(f"fmul {self.floats} {self._but(x, is_small)}, {factor}")
        return e.op(f"select {self.truths} {is_small}, {self.floats} {small}, {self.floats} {usual}")

    def unscaled(self, x: str, power: str) -> str:
        """x without a power, rounded to steps of the least number where that is subnormal: added to a number whose last
        bit is such a step, times the power.
        """
        e, size = self.e, self.size(x)
        start = e.op(f"add {self.integers} {power}, {self.number(self._power(1))}")  # the least normal number's
        is_small = e.op(f"icmp ult {self.integers} {size}, {start}")
        rounded = self._bits(e.op(f"fadd {self.floats} {self._of_bits(size)}, {self._of_bits(start)}"))
        small = e.op(f"sub {self.integers} {rounded}, {start}")
        usual = e.op(f"sub {self.integers} {size}, {power}")
        return self._with_sign(
            e.op(f"select {self.truths} {is_small}, {self.integers} {small}, {self.integers} {usual}"), x
        )

    def size(self, x: str) -> str:
        """The bits without the sign."""
        return self.e.op(f"and {self.integers} {self._bits(x)}, {self.number(self._sign - 1)}")

    def chosen(self, name: str, x: str, y: str, width: int = 0) -> str:
        """Each lane's least or largest, by the name of LLVM's."""
        integers = vector(self.integer, width or self.width)
        mangled = integers if (width or self.width) == 1 else f"v{width or self.width}{self.integer}"
        return self.e.op(f"call {integers} @llvm.{name}.{mangled}({integers} {x}, {integers} {y})")

    def _with_sign(self, bits: str, x: str) -> str:
        sign = self.e.op(f"and {self.integers} {self._bits(x)}, {self.number(-self._sign)}")
        return self._of_bits(self.e.op(f"or {self.integers} {bits}, {sign}"))

    def _but(self, x: str, is_left_out: str) -> str:
        """x, and zero where it is left out: as integers, since LLVM would leave out the choice before another one."""
        e = self.e
        mask = e.op(f"sext {self.truths} {e.op(f'xor {self.truths} {is_left_out}, {self.truth}')} to {self.integers}")
        return self._of_bits(e.op(f"and {self.integers} {self._bits(x)}, {mask}"))

    @property
    def _sign(self) -> int:
        return 1 << (8 * self.type.bytes - 1)

    def _power(self, exponent: int) -> int:
        """So many powers of two."""
        return exponent << self.format.mantissa_bits

    def _bits(self, x: str) -> str:
        return self.e.op(f"bitcast {self.floats} {x} to {self.integers}")

    def _of_bits(self, x: str) -> str:
        return self.e.op(f"bitcast {self.integers} {x} to {self.floats}")

    def number(self, x: int, width: int = 0) -> str:
        return self.e.splat(str(x), self.integer, width or self.width)
