"""Products by tiles of which some operand holds subnormal numbers.

Processors take a hundred cycles for each multiplication of a vector with such a number, or whose sum is one. Tiles look
(for nothing) whether the processor has noted one, and leave their product to the function here then. It multiplies the
rows of A and the columns of B that hold subnormal numbers by a power of two, gives copies to the same tile, and takes
the power off the sums, which are rounded once more where they are subnormal. Rows and columns without any have the sums
of a tile that was left alone, and so have sums that the power makes infinite: which way a sum goes hangs on its own row
and column alone.

Nothing here multiplies subnormal numbers: integers and additions bring them to other exponents, and back.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit.branches import when, when_it_leaves
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.masks import any_lane
from catena.compiler.emit.module import COLD
from catena.compiler.graph.symbols import remembered
from catena.compiler.graph.types import Type, literal, vector
from catena.compiler.vector_math.text import FORMATS
from catena.core.named import NamedTuple
from catena.runtime.float_control import NOTED

POWER = {
    "float": 48,
    "double": 400,
}  # of two; of a row and a column that both are multiplied, sums below 2^31 stay finite
UNKNOWN, NONE, COPIED = 0, 1, 2  # of a panel of B: nobody looked, no column has any, the columns that have are copied
WATCH = "{ i64, i64, ptr }"  # whether a tile has met subnormal numbers; what is known of its panel; room for copies
PARAMETERS = ("ptr %tile, ptr %watch, ptr readonly %a, ptr readonly %b, ptr %c, i64 %k, i64 %step, i64 %by_a, "
              "i64 %by_b, i64 %across, i64 %lanes, i1 %adds, i64 %rows, i64 %vectors")  # fmt: skip


def room(terms: int, rows: int, columns: int, size: int) -> int:
    """The bytes that `text` needs for a tile: for factors of columns and rows, copies of B and A, and sums twice."""
    return size * (columns + rows + terms * columns + rows * terms + 2 * rows * columns)


def has_noted(e: Emitter) -> str:
    """Whether the processor has noted a subnormal number."""
    return e.op(f"icmp ne i32 {e.op(f'and i32 {_notes(e)[1]}, {NOTED}')}, 0")


def look_out(e: Emitter) -> None:
    """Leaves a tile that is watched, and says so, where the processor has noted a subnormal number."""
    with when_it_leaves(e, e.op(f"and i1 {has_noted(e)}, {e.op('icmp ne ptr %watch, null')}")):
        e.do("store i64 1, ptr %watch")
        e.do("ret void")


class Watch:
    """What tasks do about tiles that look out: their text, where `size` is the room for copies, in bytes."""

    def __init__(self, e: Emitter):
        self.e, self.at = e, e.slot(WATCH, 8)
        e.slots.append(f"  store {WATCH} zeroinitializer, ptr {self.at}")

    def begin_panel(self) -> None:
        """Forgets what is known of the panel before."""
        self.e.do(f"store i64 {UNKNOWN}, ptr {self._field(1)}")

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

    factors_of_columns: str
    b: str
    factors_of_rows: str
    a: str
    sums: str
    others: str  # sums of operands that are not multiplied


class _Careful:
    def __init__(self, t: Type, width: int):
        self.e, self.type, self.width = Emitter(), t, width
        self.numbers = _Numbers(self.e, t, width)
        self.met = self.e.slot(self.numbers.integers, 64)  # lanes in which some number was subnormal

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
        self._store(self._where_infinite())

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
        """There are no subnormal numbers here: what was noted is forgotten."""
        e = self.e
        slot, notes = _notes(e)
        e.do(f"store i32 {e.op(f'and i32 {notes}, {~NOTED}')}, ptr {slot}")
        e.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {slot})")
        given = "i64 %k, i64 %step, i64 %by_a, i64 %by_b, i64 %across, i64 %lanes, i1 %adds, i64 %rows"
        e.do(f"call void %tile(ptr %a, ptr %b, ptr %c, {given}, ptr null)")
        e.do("ret void")

    def _multiply(self, a: str, b: str, sums: str, step: str, by_a: str, by_b: str) -> None:
        steps = f"i64 %k, i64 {step}, i64 {by_a}, i64 {by_b}, i64 {self.columns}"
        self.e.do(f"call void %tile(ptr {a}, ptr {b}, ptr {sums}, {steps}, i64 %lanes, i1 false, i64 %rows, ptr null)")

    # ---- operands ------------------------------------------------------------------------------------------

    def _look_at_b(self, known: str) -> None:
        """Notes which columns of B have subnormal numbers, and copies B if some have."""
        e = self.e
        e.do(f"store i64 {NONE}, ptr {known}")
        first, mask, opened = self._begin_columns()
        self._look(self._at("%b", first), "%by_b", 1, lambda term: mask)
        e.store(
            self.type, self.numbers.factor(self._has_met()), self._at(self.room.factors_of_columns, first), self.width
        )
        with when(e, self._has_met_any()):
            e.do(f"store i64 {COPIED}, ptr {known}")
        e.end_loop(opened)
        with when(e, e.op(f"icmp eq i64 {e.op(f'load i64, ptr {known}')}, {COPIED}")):
            self._copy_b()

    def _copy_b(self) -> None:
        e = self.e
        first, mask, opened = self._begin_columns()
        is_scaled = self.numbers.is_scaled(e.load(self.type, self._at(self.room.factors_of_columns, first), self.width))
        term, terms = e.begin_loop(0, "%k")
        x = e.load(self.type, self._at(self._at("%b", first), term, "%by_b"), self.width, mask=mask)
        copy = self._at(self._at(self.room.b, first), term, self.columns)
        e.store(self.type, self.numbers.scaled(x, is_scaled), copy, self.width)
        e.end_loop(terms)
        e.end_loop(opened)

    def _look_at_a(self) -> tuple[str, str, str, str]:
        """Where tiles read A, the steps from row to row and from term to term, and whether some row has subnormal
        numbers. Rows are copied; but those whose columns lie side by side stay where none has any.
        """
        e = self.e
        found, source, step, copied = e.slot("i1", 1), e.slot("ptr", 8), e.slot("i64", 8), e.slot("i1", 1)
        for slot, x in ((found, "i1 false"), (source, "ptr %a"), (step, "i64 %step"), (copied, "i1 true")):
            e.do(f"store {x}, ptr {slot}")
        is_apart = e.op("icmp ne i64 %by_a, 1")
        row, opened = e.begin_loop(0, "%rows")
        e.store(self.type, literal(1.0, self.type), self._at(self.room.factors_of_rows, row), 1)
        e.end_loop(opened)
        with when(e, e.op(f"and i1 {is_apart}, {e.op('icmp eq i64 %step, 1')}")):
            self._look_at_columns(copied)
        is_copied = e.op(f"load i1, ptr {copied}")
        with when(e, e.op(f"and i1 {is_apart}, {is_copied}")):
            self._bring_together(source, step)
        with when(e, is_copied):
            self._copy_rows(source, step, found)
        a, row = self._choose(is_copied, "ptr", self.room.a, "%a"), self._choose(is_copied, "i64", "%k", "%step")
        return a, row, self._choose(is_copied, "i64", "1", "%by_a"), e.op(f"load i1, ptr {found}")

    def _look_at_columns(self, copied: str) -> None:
        self._look("%a", "%by_a", 1, lambda term: self._below("0", "%rows"))
        self.e.do(f"store i1 {self._has_met_any()}, ptr {copied}")

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
        """Copies rows, those with subnormal numbers multiplied. They may lie where they go."""
        e, n = self.e, self.numbers
        row, opened = e.begin_loop(0, "%rows")
        here = self._at(e.op(f"load ptr, ptr {source}"), row, e.op(f"load i64, ptr {step}"))
        copy = self._at(self.room.a, row, "%k")
        self._look(here, "1", self.width, lambda term: self._below(term, "%k"))
        is_scaled = self._has_met_any()
        self._note(is_scaled, found)
        e.store(self.type, n.factor(is_scaled, 1), self._at(self.room.factors_of_rows, row), 1)
        every = e.splat(is_scaled, "i1", self.width)
        term, terms = e.begin_loop(0, "%k", self.width)
        mask = self._below(term, "%k")
        x = n.scaled(e.load(self.type, self._at(here, term), self.width, mask=mask), every)
        e.store(self.type, x, self._at(copy, term), self.width, mask=mask)
        e.end_loop(terms)
        e.end_loop(opened)

    def _look(self, start: str, by: str, terms: int, mask: Callable[[str], str]) -> None:
        """Notes in which lanes of vectors, so many `terms` on and each `by` elements further, there is some."""
        e, n = self.e, self.numbers
        e.do(f"store {n.integers} zeroinitializer, ptr {self.met}")
        term, opened = e.begin_loop(0, "%k", terms)
        is_some = n.is_subnormal(e.load(self.type, self._at(start, term, by), self.width, mask=mask(term)))
        each = e.op(f"sext {n.truths} {is_some} to {n.integers}")
        before = e.op(f"load {n.integers}, ptr {self.met}")
        e.do(f"store {n.integers} {e.op(f'or {n.integers} {before}, {each}')}, ptr {self.met}")
        e.end_loop(opened)

    def _has_met(self) -> str:
        e, integers = self.e, self.numbers.integers
        return e.op(f"icmp ne {integers} {e.op(f'load {integers}, ptr {self.met}')}, zeroinitializer")

    def _has_met_any(self) -> str:
        return self._any(self._has_met())

    # ---- sums ----------------------------------------------------------------------------------------------

    def _where_infinite(self) -> str:
        """Where sums are that stand for those that the power has made infinite, or no numbers."""
        e, n = self.e, self.numbers
        some, others = e.slot("i1", 1), e.slot("ptr", 8)
        e.do(f"store i1 false, ptr {some}")
        e.do(f"store ptr {self.room.sums}, ptr {others}")
        row, rows = e.begin_loop(0, "%rows")
        first, mask, opened = self._begin_columns()
        x, factor = self._sum(self.room.sums, row, first, mask), self._factor(row, first)
        self._note(self._any(n.is_beyond(x, factor)), some)
        e.end_loop(opened)
        e.end_loop(rows)
        with when(e, e.op(f"load i1, ptr {some}")):
            self._multiply_again(others)
        return e.op(f"load ptr, ptr {others}")

    def _multiply_again(self, others: str) -> None:
        self._multiply("%a", "%b", self.room.others, "%step", "%by_a", "%by_b")
        self.e.do(f"store ptr {self.room.others}, ptr {others}")

    def _store(self, others: str) -> None:
        """Writes the sums without the power, or adds them to what is in C."""
        e, t, n = self.e, self.type, self.numbers
        row, rows = e.begin_loop(0, "%rows")
        first, mask, opened = self._begin_columns()
        x, factor = self._sum(self.room.sums, row, first, mask), self._factor(row, first)
        other = self._sum(others, row, first, mask)
        x = self._choose(n.is_beyond(x, factor), n.floats, other, n.unscaled(x, factor), n.truths)
        c = self._at(self._at("%c", first), row, "%across")
        added = e.op(f"fadd {n.floats} {e.load(t, c, self.width, mask=mask)}, {x}")
        e.store(t, self._choose("%adds", n.floats, added, x), c, self.width, mask=mask)
        e.end_loop(opened)
        e.end_loop(rows)

    def _sum(self, sums: str, row: str, first: str, mask: str) -> str:
        return self.e.load(self.type, self._at(self._at(sums, first), row, self.columns), self.width, mask=mask)

    def _factor(self, row: str, first: str) -> str:
        """What takes the power off the sums of a row, in a vector of columns."""
        e, t = self.e, self.type
        of_row = e.splat(e.load(t, self._at(self.room.factors_of_rows, row), 1), t.register, self.width)
        of_columns = e.load(t, self._at(self.room.factors_of_columns, first), self.width)
        return e.op(f"fmul {self.numbers.floats} {of_row}, {of_columns}")

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
    """Vectors of floats, moved between exponents without a multiplication of subnormal ones."""

    def __init__(self, e: Emitter, t: Type, width: int):
        self.e, self.type, self.width = e, t, width
        self.mantissa, self.power = FORMATS[t.register].mantissa_bits, POWER[t.register]
        self.integer = FORMATS[t.register].integer
        self.floats, self.integers, self.truths = (vector(x, width) for x in (t.register, self.integer, "i1"))

    def is_subnormal(self, x: str) -> str:
        """Which are, zero not."""
        before = self.e.op(f"sub {self.integers} {self._size(x)}, {self._integer(1)}")
        return self.e.op(f"icmp ult {self.integers} {before}, {self._integer((1 << self.mantissa) - 1)}")

    def factor(self, truth: str, width: int = 0) -> str:
        """What takes the power off: one where there is none."""
        width = width or self.width
        one, less = (self.e.splat(literal(x, self.type), self.type.register, width) for x in (1.0, 2.0**-self.power))
        floats = vector(self.type.register, width)
        return self.e.op(f"select {vector('i1', width)} {truth}, {floats} {less}, {floats} {one}")

    def is_scaled(self, factor: str) -> str:
        return self.e.op(f"fcmp olt {self.floats} {factor}, {self._float(1.0)}")

    def is_beyond(self, x: str, factor: str) -> str:
        """Which are infinite or no numbers, and may be so since they were multiplied."""
        beyond = self.e.op(f"icmp uge {self.integers} {self._size(x)}, {self._bits(self._float(float('inf')))}")
        return self.e.op(f"and {self.truths} {beyond}, {self.is_scaled(factor)}")

    def scaled(self, x: str, is_scaled: str) -> str:
        """x times the power where that `is_scaled`. Of a subnormal number, whose bits count steps, these become those
        of a larger number, less the one that they count from.
        """
        e = self.e
        start = self._integer((self.power + 1) << self.mantissa)
        counted = self._of_bits(e.op(f"or {self.integers} {self._size(x)}, {start}"))
        small = self._with_sign(self._bits(e.op(f"fsub {self.floats} {counted}, {self._of_bits(start)}")), x)
        is_small = self.is_subnormal(x)
        usual = e.op(f"fmul {self.floats} {self._but(x, is_small)}, {self._float(2.0**self.power)}")
        scaled = e.op(f"select {self.truths} {is_small}, {self.floats} {small}, {self.floats} {usual}")
        return e.op(f"select {self.truths} {is_scaled}, {self.floats} {scaled}, {self.floats} {x}")

    def unscaled(self, x: str, factor: str) -> str:
        """x times a factor, rounded to steps of the least number where that is subnormal: added to a number whose last
        bit is such a step, times the power.
        """
        e = self.e
        top = self._integer((FORMATS[self.type.register].bias + 1) << self.mantissa)
        start = e.op(f"sub {self.integers} {top}, {self._bits(factor)}")  # the least normal number, times the power
        size = self._of_bits(self._size(x))
        is_small = e.op(f"fcmp olt {self.floats} {size}, {self._of_bits(start)}")
        rounded = self._bits(e.op(f"fadd {self.floats} {size}, {self._of_bits(start)}"))
        small = self._with_sign(e.op(f"sub {self.integers} {rounded}, {start}"), x)
        usual = e.op(f"fmul {self.floats} {self._but(x, is_small)}, {factor}")
        return e.op(f"select {self.truths} {is_small}, {self.floats} {small}, {self.floats} {usual}")

    def _size(self, x: str) -> str:
        """The bits without the sign."""
        return self.e.op(f"and {self.integers} {self._bits(x)}, {self._integer(self._sign - 1)}")

    def _with_sign(self, bits: str, x: str) -> str:
        sign = self.e.op(f"and {self.integers} {self._bits(x)}, {self._integer(-self._sign)}")
        return self._of_bits(self.e.op(f"or {self.integers} {bits}, {sign}"))

    def _but(self, x: str, is_left_out: str) -> str:
        """x, and zero where it is left out: as integers, since LLVM would leave out the choice before another one."""
        e = self.e
        mask = e.op(
            f"sext {self.truths} {e.op(f'xor {self.truths} {is_left_out}, splat (i1 true)')} to {self.integers}"
        )
        return self._of_bits(e.op(f"and {self.integers} {self._bits(x)}, {mask}"))

    @property
    def _sign(self) -> int:
        return 1 << (8 * self.type.bytes - 1)

    def _bits(self, x: str) -> str:
        return self.e.op(f"bitcast {self.floats} {x} to {self.integers}")

    def _of_bits(self, x: str) -> str:
        return self.e.op(f"bitcast {self.integers} {x} to {self.floats}")

    def _integer(self, x: int) -> str:
        return self.e.splat(str(x), self.integer, self.width)

    def _float(self, x: float) -> str:
        return self.e.splat(literal(x, self.type), self.type.register, self.width)
