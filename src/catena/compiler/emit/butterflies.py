"""The inner steps of Fourier transforms, as LLVM IR text: small transforms in registers, one to a lane.

A *pass* of radix r does the transforms of length r that one factor of the length asks for, each times its power of the
root of unity; the passes of all factors, one after another, are the transform, with its results in order. Every lane
of a vector holds a transform of its own. Between passes the lanes stand in scratch memory as vectors: element j's real
parts at 2 j, the imaginary parts at 2 j + 1. The first pass may read, and the last one write, columns of complex
numbers, which are neighbours in memory; rows are brought into lanes, and back, by squares of vectors: see
`define_exchange`.

Sources: Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", Math. Comp. 19 (1965);
Stockham's order of passes, which needs no bit reversal: Cochran et al., "What is the fast Fourier transform?", Proc.
IEEE 55 (1967).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from catena.compiler.emit.branches import perhaps_never, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.module import NOT_INLINED
from catena.compiler.graph.fourier import MOST_RADIX, root_of_unity
from catena.compiler.graph.types import TYPES, constant, vector

NONE = "zeroinitializer"  # the imaginary parts of real numbers


class Lanes:
    """Complex numbers as pairs of vectors (real, imaginary)."""

    def __init__(self, e: Emitter, real: str, width: int):
        self.e, self.t, self.width = e, TYPES[real], width
        self.scalar, self.vector = self.t.register, vector(self.t.register, width)

    def op(self, name: str, x: str, y: str) -> str:
        """A sum, a difference or a product. What is left out of a real number, NONE, costs nothing."""
        if NONE in (x, y):
            if name == "fmul":
                return NONE
            return x if y == NONE else y if name == "fadd" else self.negative(y)
        return self.e.op(f"{name} contract {self.vector} {x}, {y}")

    def negative(self, x: str) -> str:
        return NONE if x == NONE else self.e.op(f"fneg {self.vector} {x}")

    def constant(self, value: float) -> str:
        return constant(value, self.t, self.width)

    def add(self, x: tuple, y: tuple) -> tuple:
        return self.op("fadd", x[0], y[0]), self.op("fadd", x[1], y[1])

    def subtract(self, x: tuple, y: tuple) -> tuple:
        return self.op("fsub", x[0], y[0]), self.op("fsub", x[1], y[1])

    def scale(self, x: tuple, by: str) -> tuple:
        return self.op("fmul", x[0], by), self.op("fmul", x[1], by)

    def multiply(self, x: tuple, y: tuple) -> tuple:
        real = self.op("fsub", self.op("fmul", x[0], y[0]), self.op("fmul", x[1], y[1]))
        return real, self.op("fadd", self.op("fmul", x[0], y[1]), self.op("fmul", x[1], y[0]))

    def down(self, x: tuple) -> tuple:
        """-i x."""
        return x[1], self.negative(x[0])

    def turn(self, x: tuple, k: int, n: int) -> tuple:
        """x times the power k of the n-th root of unity, exp(-2 pi i / n)."""
        k %= n
        if 4 * k % n == 0:
            for _ in range(4 * k // n):
                x = self.down(x)
            return x
        w = root_of_unity(k, n)
        return self.multiply(x, (self.constant(w.real), self.constant(w.imag)))

    def splat(self, pointer: str) -> str:
        """The number at an address, in all lanes."""
        return self.e.splat(self.e.op(f"load {self.scalar}, ptr {pointer}"), self.scalar, self.width)

    def splat_number(self, pointer: str) -> tuple:
        """The complex number at an address, in all lanes."""
        return self.splat(pointer), self.splat(self.at(pointer, 1))

    def load(self, pointer: str, mask: str | None = None) -> str:
        return self.e.load(self.t, pointer, self.width, mask=mask)

    def store(self, x: str, pointer: str, mask: str | None = None) -> None:
        self.e.store(self.t, x, pointer, self.width, mask=mask)

    def prefetch(self, place: str, write: int) -> None:
        """Asks for a vector's memory ahead of time; strides hide from the processor what comes."""
        self.e.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {write}, i32 3, i32 1)")

    def at(self, pointer: str, offset) -> str:
        """The address so many real numbers further."""
        return self.e.element(pointer, self.scalar, offset)

    def below(self, count: str, start: int = 0) -> str:
        """The mask of the lanes whose number, counted from `start`, is less than `count`."""
        numbers = "<" + ", ".join(f"i64 {start + k}" for k in range(self.width)) + ">"
        return self.e.op(f"icmp slt <{self.width} x i64> {numbers}, {self.e.splat(count, 'i64', self.width)}")

    def pair_masks(self, count: str | None) -> tuple:
        """The masks of the first `count` reals of two vectors; none where all of them are there."""
        return (None, None) if count is None else (self.below(count), self.below(count, self.width))

    def load_numbers(self, place: str, masks) -> tuple:
        """Complex numbers that are neighbours in memory, of which the masks tell those that are there."""
        return tuple(self.e.load_interleaved(self.t, place, self.width, masks))

    def store_numbers(self, x: tuple, place: str, masks) -> None:
        self.e.store_interleaved(self.t, list(x), place, self.width, masks)


# ---- transforms in registers -------------------------------------------------------------------------------


def transform(c: Lanes, xs: list[tuple]) -> list[tuple]:
    """The discrete Fourier transform of a few numbers."""
    n = len(xs)
    a = next((a for a in (4, 2, 3, 5, 7) if n % a == 0 and a < n), None)
    if a is not None:
        return _by_factors(c, xs, a)
    return _of_prime_length(c, xs) if n > 2 else [c.add(*xs), c.subtract(*xs)] if n == 2 else xs


def _by_factors(c: Lanes, xs: list[tuple], a: int) -> list[tuple]:
    """Of length a b: transforms of length a, whose results are turned, then transforms of length b."""
    n, b = len(xs), len(xs) // a
    inner = [transform(c, xs[j::b]) for j in range(b)]
    outer = [transform(c, [c.turn(inner[j][k], j * k, n) for j in range(b)]) for k in range(a)]
    return [outer[k % a][k // a] for k in range(n)]


def _of_prime_length(c: Lanes, xs: list[tuple]) -> list[tuple]:
    """Sums and differences of opposite elements, whose roots of unity are conjugates, times cosines and sines."""
    n, half = len(xs), len(xs) // 2
    sums = [c.add(xs[j], xs[n - j]) for j in range(1, half + 1)]
    differences = [c.subtract(xs[j], xs[n - j]) for j in range(1, half + 1)]
    total = xs[0]
    for x in sums:
        total = c.add(total, x)
    out = [total] * n
    for k in range(1, half + 1):
        roots = [root_of_unity(j * k, n).conjugate() for j in range(1, half + 1)]
        even: tuple = xs[0]
        odd: tuple = ()
        for x, d, w in zip(sums, differences, roots):
            even = c.add(even, c.scale(x, c.constant(w.real)))
            part = c.scale(d, c.constant(w.imag))
            odd = c.add(odd, part) if odd else part
        odd = odd[1], odd[0]  # -i times it, but for a sign
        out[k] = c.op("fadd", even[0], odd[0]), c.op("fsub", even[1], odd[1])
        out[n - k] = c.op("fsub", even[0], odd[0]), c.op("fadd", even[1], odd[1])
    return out


# ---- passes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """A kind of passes. Element j of the ones that go together is `m * s` vectors further than element 0, result k `s`
    vectors further than result 0; groups are `s` vectors apart, results of groups `radix * s`.

    x, y: addresses of operands and results; as columns, elements are `xs` and `ys` numbers apart.
    count: the columns; the other lanes are idle, if the pass is not `whole`: stores by masks are slow on processors
        that have no registers for masks.
    w: the roots of unity of each group, if the pass is `turned`.
    r: the radix where that is open. At `w` its cosines and sines then come first.
    t: roots by which results in columns are multiplied, if they are `twisted`: for each result a row of `ts` reals, the
        real parts for its lanes, imaginary parts `ti` further, and in `split` tables, at `tc`, a number for all lanes.
    scale: a factor of the results, where they are `scaled`.
    """

    real: str
    width: int
    radix: int | None  # None for any odd prime, that is given when the pass is called
    columns: tuple[bool, bool] = (False, False)  # whether operands are columns, where s is 1, and results, where m is 1
    whole: bool = True  # whether there is a column to every lane
    turned: bool = False
    twisted: bool = False
    split: bool = False
    swapped: tuple[bool, bool] = (False, False)  # real and imaginary parts, of operands and of results
    scaled: bool = False
    halved: bool = (
        False  # operands are real, vectors one after another; results that are conjugates of others are left out
    )
    far: bool = False  # columns are in main memory; those that come next are asked for ahead of time


PARAMETERS: tuple[str, ...] = (
    "ptr %x",
    "ptr %y",
    "i64 %m",
    "i64 %s",
    "i64 %xs",
    "i64 %ys",
    "i64 %count",
    "ptr %w",
    "ptr %t",
)
PARAMETERS += ("i64 %ts", "i64 %ti", "i64 %tc", "double %scale", "i64 %r")


@cache
def define_pass(p: Pass) -> str:
    """Parameters and body of the function that does a pass."""
    e = Emitter()
    c = Lanes(e, p.real, p.width)
    masks = c.pair_masks(None if p.whole else "%columns")
    scale = _scale(c) if p.scaled else None
    operands, results = (Strided(c, step, p.radix) for step in _steps(c, p))
    twists = Strided(c, _product(e, "%s", "%ts"), p.radix) if p.twisted else None
    group, groups = ("0", None) if p.columns[1] else e.begin_loop(0, "%m")
    roots = _roots(c, p.radix, group) if p.turned and p.radix is not None else []
    q, vectors = ("0", None) if p.columns[0] else e.begin_loop(0, "%s")
    operands.first, results.first = _first_operand(c, p, group, q), _first_result(c, p, group, q)
    if twists is not None:
        twists.first = c.at("%t", _product(e, q, "%ts"))

    def read(j) -> tuple:
        return _read(c, p, operands(j), masks)

    def write(k, y: tuple, root: tuple | None) -> None:
        y = y if root is None else c.multiply(y, root)
        y = y if scale is None else c.scale(y, scale)
        _write(c, p, y if twists is None else _twisted(c, p, y, twists(k)), results(k), masks)

    if p.radix is None:
        _any_prime(c, read, write, group if p.turned else None, p.halved)
    else:
        found = transform(c, [read(j) for j in range(p.radix)])
        for k, y in enumerate(found[: p.radix // 2 + 1] if p.halved else found):
            write(k, y, roots[k - 1] if p.turned and k else None)
    for opened in (vectors, groups):
        if opened is not None:
            e.end_loop(opened)
    head = ["entry:", "  %columns = shl i64 %count, 1", "  %half = lshr i64 %r, 1", "  %kept = add i64 %half, 1"]
    return "\n".join([f"({', '.join(PARAMETERS)}) {NOT_INLINED}", *head, *e.slots, *e.lines, "  ret void", "}"])


def _scale(c: Lanes) -> str:
    value = "%scale" if c.scalar == "double" else c.e.op("fptrunc double %scale to float")
    return c.e.splat(value, c.scalar, c.width)


def _roots(c: Lanes, radix: int, group: str) -> list[tuple]:
    start = c.at("%w", c.e.op(f"mul i64 {group}, {2 * (radix - 1)}"))
    return [c.splat_number(c.at(start, 2 * k)) for k in range(radix - 1)]


class Strided:
    """Addresses at equal distances. How far each is from the first one is computed once, before the loops, and by one
    addition: it was computed anew at each address, which was most of a pass's text.
    """

    def __init__(self, c: Lanes, step: str, count: int | None):
        self.c, self.step = c, step
        self.offsets: list[int | str] = [0, step]
        for _ in range(2, count or 2):
            self.offsets.append(c.e.op(f"add i64 {self.offsets[-1]}, {step}"))
        self.first = ""

    def __call__(self, number: int | str) -> str:
        offset = _product(self.c.e, number, self.step) if isinstance(number, str) else self.offsets[number]
        return self.c.at(self.first, offset)


def _product(e: Emitter, first, *factors) -> str:
    for factor in factors:
        first = e.op(f"mul i64 {first}, {factor}")
    return first


def _steps(c: Lanes, p: Pass) -> tuple[str, str]:
    """How many reals lie between operands, and between results."""
    e, pair = c.e, 2 * c.width
    if p.halved:
        operands = _product(e, "%m", c.width)
    elif p.columns[0]:
        operands = _product(e, "%m", "%xs", 2)
    else:
        operands = _product(e, "%m", "%s", pair)
    results = _product(e, "%s", "%ys", 2) if p.columns[1] else _product(e, "%s", pair)
    return operands, results


def _first_operand(c: Lanes, p: Pass, group: str, q: str) -> str:
    e = c.e
    if p.halved:
        return c.at("%x", _product(e, group, c.width))
    if p.columns[0]:
        return c.at("%x", _product(e, group, "%xs", 2))
    return c.at("%x", _product(e, e.op(f"add i64 {_product(e, group, '%s')}, {q}"), 2 * c.width))


def _first_result(c: Lanes, p: Pass, group: str, q: str) -> str:
    e = c.e
    if p.columns[1]:
        return c.at("%y", _product(e, q, "%ys", 2))
    kept = "%r" if p.radix is None else p.radix
    if p.halved:
        kept = "%kept" if p.radix is None else p.radix // 2 + 1
    return c.at("%y", _product(e, e.op(f"add i64 {_product(e, group, kept, '%s')}, {q}"), 2 * c.width))


def _read(c: Lanes, p: Pass, place: str, masks) -> tuple:
    if p.halved:
        return c.load(place), NONE
    if p.columns[0]:
        if p.far:
            for part in (2, 3):
                c.prefetch(c.at(place, part * c.width), 0)
        pair = c.load_numbers(place, masks)
    else:
        pair = c.load(place), c.load(c.at(place, c.width))
    return pair[::-1] if p.swapped[0] else pair


def _twisted(c: Lanes, p: Pass, y: tuple, row: str) -> tuple:
    """A result times its roots, of which each lane has its own."""
    y = c.multiply(y, (c.load(row), c.load(c.at(row, "%ti"))))
    return c.multiply(y, c.splat_number(c.at(row, "%tc"))) if p.split else y


def _write(c: Lanes, p: Pass, y: tuple, place: str, masks) -> None:
    y = y[::-1] if p.swapped[1] else y
    if not p.columns[1]:
        c.store(y[0], place)
        c.store(y[1], c.at(place, c.width))
        return
    if p.far:
        for part in (2, 3):
            c.prefetch(c.at(place, part * c.width), 1)
    c.store_numbers(y, place, masks)


def _any_prime(c: Lanes, read, write, group: str | None, halved: bool) -> None:
    """As `_of_prime_length` for a prime that the text does not tell; `group` tells the roots of its results, if any."""
    e, v = c.e, c.vector
    half, last, tables = "%half", "%kept", e.op("mul i64 %half, %half")
    kept = e.slot(f"[{4 * (MOST_RADIX // 2)} x {v}]", 64)  # sums and differences
    first = read(0)

    def bring(j: str, total: list[str]) -> list[str]:
        x, y = read(j), read(e.op(f"sub i64 %r, {j}"))
        place = c.at(kept, e.op(f"mul i64 {e.op(f'sub i64 {j}, 1')}, {4 * c.width}"))
        sums = c.add(x, y)
        for part, value in enumerate((*sums, *c.subtract(x, y))):
            c.store(value, c.at(place, part * c.width))
        return list(c.add(tuple(total), sums))

    write("0", tuple(_folded(c, "1", last, list(first), bring)), None)
    k, opened = e.begin_loop(1, last)
    row = e.op(f"mul i64 {e.op(f'sub i64 {k}, 1')}, {half}")

    def combine(j: str, parts: list[str]) -> list[str]:
        before = e.op(f"sub i64 {j}, 1")
        place = c.at(kept, e.op(f"mul i64 {before}, {4 * c.width}"))
        x, y, dx, dy = (c.load(c.at(place, part * c.width)) for part in range(4))
        pair = c.at("%w", e.op(f"shl i64 {e.op(f'add i64 {row}, {before}')}, 1"))
        cosine, sine = c.splat_number(pair)
        even, odd = c.scale((x, y), cosine), c.scale((dx, dy), sine)
        return [*c.add(tuple(parts[:2]), even), *c.add(tuple(parts[2:]), odd)]

    zero = "zeroinitializer"
    x, y, dx, dy = _folded(c, "1", last, [*first, zero, zero], combine)
    opposite = e.op(f"sub i64 %r, {k}")
    results = {k: (c.op("fadd", x, dy), c.op("fsub", y, dx)), opposite: (c.op("fsub", x, dy), c.op("fadd", y, dx))}
    for number, result in list(results.items())[: 1 if halved else 2]:
        root = None
        if group is not None:
            each = e.op("sub i64 %r, 1")
            before = e.op(f"add i64 {e.op(f'mul i64 {group}, {each}')}, {e.op(f'sub i64 {number}, 1')}")
            place = c.at("%w", e.op(f"shl i64 {e.op(f'add i64 {tables}, {before}')}, 1"))
            root = c.splat_number(place)
        write(number, result, root)
    e.end_loop(opened)


def _folded(c: Lanes, start: str, stop: str, values: list[str], step) -> list[str]:
    """Vectors that a loop changes from one iteration to the next by `step(j, values)`."""
    e = c.e
    j, opened = e.begin_loop(start, stop)
    before, at, names = opened[3], len(e.lines), [e.name() for _ in values]
    e.lines += [""] * len(values)
    after = step(j, names)
    for k, (name, initial, final) in enumerate(zip(names, values, after)):
        e.lines[at + k] = f"  {name} = phi {c.vector} [ {initial}, %{before} ], [ {final}, %{e.block} ]"
    e.end_loop(opened)
    return after


# ---- rows and lanes ----------------------------------------------------------------------------------------


@cache
def define_exchange(real: str, width: int, to_lanes: bool, far: bool, short: bool) -> str:
    """Parameters and body of the function that brings `count` rows of `n` reals, `step` apart, to lanes, or back, in
    squares of vectors. If they are `far`, the next rows are asked for.

    No mask is needed but for rows `short` of a vector. The last square overlaps the one before; idle lanes stand
    for the last row, and what they write there the last row, whose turn is after theirs, writes over.
    """
    e = Emitter()
    c = Lanes(e, real, width)
    last = e.op("sub i64 %count, 1")
    places = [e.least(k, last) for k in range(width)]
    rows = [c.at("%rows", e.op(f"mul i64 {k}, %step")) for k in places]

    def square(f: str, mask: str | None) -> None:
        lanes = c.at("%lanes", e.op(f"mul i64 {f}, {width}"))
        if to_lanes:
            for k, column in enumerate(e.transposed([c.load(c.at(row, f), mask) for row in rows], c.scalar)):
                c.store(column, c.at(lanes, k * width))
        else:
            columns = [c.load(c.at(lanes, k * width)) for k in range(width)]
            for row, x in reversed(list(zip(rows, e.transposed(columns, c.scalar)))):
                c.store(x, c.at(row, f), mask)

    if short:
        square("0", c.below("%n"))
    else:
        end = e.op(f"sub i64 %n, {width}")
        f, opened = e.begin_loop(0, "%n", width)
        if far:
            ahead = e.op(f"add i64 {f}, {e.op(f'mul i64 %step, {width}')}")
            for row in rows:
                c.prefetch(c.at(row, ahead), int(not to_lanes))
        square(e.least(f, end), None)
        e.end_loop(opened)
    head = "(ptr %rows, ptr %lanes, i64 %count, i64 %step, i64 %n) " + NOT_INLINED
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


def in_vectors(c: Lanes, first: str, last: str, step) -> None:
    """Writes `step(k, count)` for the numbers from `first` to `last`: whole vectors from k on, of which `count` is
    None, and one of which the first `count` reals are there.
    """
    e, width = c.e, c.width
    vectors = e.op(f"sdiv i64 {e.op(f'sub i64 {last}, {first}')}, {width}")
    end = e.op(f"add i64 {first}, {e.op(f'mul i64 {vectors}, {width}')}")
    with perhaps_never(e, first, end, width) as k:
        step(k, None)
    with when(e, e.op(f"icmp slt i64 {end}, {last}")):
        step(end, e.op(f"shl i64 {e.op(f'sub i64 {last}, {end}')}, 1"))


@cache
def define_unfold(real: str, width: int) -> str:
    """Parameters and body of the function that makes a spectrum up to its middle, of rows whose length r m is odd.
    Element k + r j is there for k up to r / 2, as number k + (r / 2 + 1) j; others are conjugates of those opposite.
    """
    e = Emitter()
    c = Lanes(e, real, width)
    kept = e.op(f"add i64 {e.op('lshr i64 %r, 1')}, 1")
    middle = e.op("lshr i64 %m, 1")

    def copy(start: str, stop: str, j: str, found, opposite: bool) -> None:
        k, opened = e.begin_loop(start, stop)
        place = c.at("%x", e.op(f"mul i64 {found(k)}, {2 * width}"))
        x, y = c.load(place), c.load(c.at(place, width))
        element = e.op(f"add i64 {e.op(f'mul i64 {j}, %r')}, {k}")
        place = c.at("%y", e.op(f"mul i64 {element}, {2 * width}"))
        c.store(x, place)
        c.store(c.negative(y) if opposite else y, c.at(place, width))
        e.end_loop(opened)

    def number(k: str, j: str) -> str:
        return e.op(f"add i64 {e.op(f'mul i64 {j}, {kept}')}, {k}")

    j, opened = e.begin_loop(0, e.op(f"add i64 {middle}, 1"))
    copy("0", kept, j, lambda k: number(k, j), False)
    e.end_loop(opened)
    j, opened = e.begin_loop(0, middle)
    other = e.op(f"sub i64 {e.op('sub i64 %m, 1')}, {j}")
    copy(kept, "%r", j, lambda k: number(e.op(f"sub i64 %r, {k}"), other), True)
    e.end_loop(opened)
    head = "(ptr %x, ptr %y, i64 %r, i64 %m) " + NOT_INLINED
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


@cache
def define_times(real: str, width: int) -> str:
    """Parameters and body of the function that multiplies the first `n` numbers of a row by factors, and writes zeros
    behind them until there are `m`; see `graph.fourier._crosswise` for the factors.
    """
    e = Emitter()
    c = Lanes(e, real, width)

    cross = c.at("%factors", e.op("shl i64 %n, 1"))
    exchanged = ", ".join(f"i32 {k ^ 1}" for k in range(width))

    def halves(k: str, count: str | None) -> list[tuple]:
        """The places and the masks of two vectors of reals."""
        return [(e.op(f"add i64 {e.op(f'shl i64 {k}, 1')}, {at}"), m) for at, m in zip((0, width), c.pair_masks(count))]

    def product(k: str, count: str | None) -> None:
        for at, mask in halves(k, count):
            x, w, v = (c.load(c.at(p, at), mask) for p in ("%x", "%factors", cross))
            turned = e.op(f"shufflevector {c.vector} {x}, {c.vector} poison, <{width} x i32> <{exchanged}>")
            c.store(c.op("fadd", c.op("fmul", x, w), c.op("fmul", turned, v)), c.at("%y", at), mask)

    def nothing(k: str, count: str | None) -> None:
        for at, mask in halves(k, count):
            c.store(NONE, c.at("%y", at), mask)

    in_vectors(c, "0", "%n", product)
    in_vectors(c, "%n", "%m", nothing)
    head = "(ptr %x, ptr %factors, ptr %y, i64 %n, i64 %m) " + NOT_INLINED
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])
