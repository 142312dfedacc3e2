"""LLVM IR as text, one SSA value at a time, with the operators of arithmetic.

A `Value` is a typed SSA name; `x * y + 1.0` on values appends instructions to the function being written. The
same Python text therefore serves every element type and every vector width, and reads as the mathematics it
computes. No fast-math flag is ever attached: what is written is what is rounded. Only intrinsics that lower
to instructions are offered.
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """One IEEE binary format: its LLVM names and the constants that algorithms need."""

    elem: str
    suffix: str
    integer: str
    scalar: type
    mantissa_bits: int
    bias: int

    @property
    def bits(self) -> int:
        return int(self.integer[1:])

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return float(np.finfo(self.scalar).tiny)

    @property
    def max(self) -> float:
        return float(np.finfo(self.scalar).max)

    @property
    def epsilon(self) -> float:
        """Half a unit in the last place of one: the rounding error."""
        return 0.5 ** (self.mantissa_bits + 1)


FORMATS = {
    "float": Format("float", "f32", "i32", np.float32, 23, 127),
    "double": Format("double", "f64", "i64", np.float64, 52, 1023),
}


@dataclass(frozen=True)
class Type:
    """An element type (LLVM text) and a number of lanes; one lane is the scalar type."""

    elem: str
    width: int

    def __str__(self) -> str:
        return self.elem if self.width == 1 else f"<{self.width} x {self.elem}>"

    @property
    def intrinsic(self) -> str:
        suffix = FORMATS[self.elem].suffix if self.is_float else self.elem
        return suffix if self.width == 1 else f"v{self.width}{suffix}"

    @property
    def is_float(self) -> bool:
        return self.elem in FORMATS


def literal(type_: Type, number) -> str:
    """The LLVM text of a number of the given type, splatted over the lanes."""
    if type_.is_float:
        rounded = float(FORMATS[type_.elem].scalar(number))
        text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    elif type_.elem == "i1":
        text = "true" if number else "false"
    else:
        text = str(int(number))
    return text if type_.width == 1 else f"splat ({type_.elem} {text})"


class Writer:
    """The body of one function: its lines, the next SSA number, the current block, what it declares and calls, and
    whether it has loops. Of a function in two stages (see `stages`), the `outer` one writes scalars, the `inner` one
    vectors, of what it is `given` by the outer one too: parameters, and what spreads them over the lanes.
    """

    def __init__(self, outer: "Writer | None" = None, width: int = 1) -> None:
        self.lines: list[str] = ["entry:"]
        self.declares: set[str] = set()
        self.calls: set[tuple[str, str, int]] = set()
        self.block = "entry"
        self.count = 0
        self.loops = False
        self.doubles = 8  # how many a register holds, as far as the lanes of a function of floats tell
        self.outer, self.width = outer, width
        self.inner: Writer | None = None
        self.given: dict[str, Value] = {}
        if outer is not None:
            outer.inner = self

    def emit(self, type_: Type, instruction: str) -> "Value":
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return Value(self, type_, f"%v{self.count}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def own(self, x: "Value") -> "Value":
        """A value in this function; one of the outer stage in all lanes."""
        if x.writer is self:
            return x
        type_ = Type(x.elem, self.width)
        if not x.name.startswith("%"):
            return Value(self, type_, f"splat ({x.elem} {x.name})")
        return Value(self, type_, f"{self.scalar(x)}.all")

    def scalar(self, x: "Value") -> str:
        """The parameter that a value of the outer stage is."""
        self.given.setdefault(x.name, x)
        return f"%given.{list(self.given).index(x.name)}"

    def adds_lines(self, function: Callable) -> bool:
        """Whether a function that writes would write here."""
        before, kept = len(self.lines), [(w, _copied(vars(w))) for w in (self, self.outer) if w is not None]
        function()
        adds = len(self.lines) > before
        for writer, state in kept:
            vars(writer).update(state)
        return adds


def _copied(state: dict) -> dict:
    return {name: v.copy() if isinstance(v, list | set | dict) else v for name, v in state.items()}


class Value:
    """An SSA value: a float, integer or truth vector (or scalar) of a function being written."""

    __slots__ = ("writer", "type", "name")

    def __init__(self, writer: Writer, type_: Type, name: str) -> None:
        self.writer, self.type, self.name = writer, type_, name

    @property
    def format(self) -> Format:
        return FORMATS[self.type.elem]

    @property
    def elem(self) -> str:
        return self.type.elem

    def like(self, other) -> "Value":
        """`other` as a value of this type: numbers become constants."""
        return other if isinstance(other, Value) else Value(self.writer, self.type, literal(self.type, other))

    def with_elem(self, elem: str) -> Type:
        return Type(elem, self.type.width)

    def binary(self, float_op: str, int_op: str, other, swap: bool = False) -> "Value":
        left, right = joined(*((self.like(other), self) if swap else (self, self.like(other))))
        op = float_op if self.type.is_float else int_op
        return left.writer.emit(left.type, f"{op} {left.type} {left.name}, {right.name}")

    def compare(self, float_op: str, int_op: str, other) -> "Value":
        left, right = joined(self, self.like(other))
        op = f"fcmp {float_op}" if self.type.is_float else f"icmp {int_op}"
        return left.writer.emit(left.with_elem("i1"), f"{op} {left.type} {left.name}, {right.name}")

    def __add__(self, other):
        return self.binary("fadd", "add", other)

    def __radd__(self, other):
        return self.binary("fadd", "add", other, swap=True)

    def __sub__(self, other):
        return self.binary("fsub", "sub", other)

    def __rsub__(self, other):
        return self.binary("fsub", "sub", other, swap=True)

    def __mul__(self, other):
        return self.binary("fmul", "mul", other)

    def __rmul__(self, other):
        return self.binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other):
        return self.binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other):
        return self.binary("fdiv", "sdiv", other, swap=True)

    def __lshift__(self, other):
        return self.binary("", "shl", other)

    def __rshift__(self, other):
        return self.binary("", "ashr", other)

    def __and__(self, other):
        return self.binary("", "and", other)

    def __or__(self, other):
        return self.binary("", "or", other)

    def __xor__(self, other):
        return self.binary("", "xor", other)

    def __invert__(self):
        return self.binary("", "xor", 1 if self.elem == "i1" else -1)

    def __lt__(self, other):
        if not isinstance(other, Value) and other == math.inf:
            return self <= self.format.max  # of two comparisons, LLVM would make a longer test of kinds of numbers
        return self.compare("olt", "slt", other)

    def __le__(self, other):
        return self.compare("ole", "sle", other)

    def __gt__(self, other):
        if not isinstance(other, Value) and other == -math.inf:
            return self >= -self.format.max  # as above
        return self.compare("ogt", "sgt", other)

    def __ge__(self, other):
        return self.compare("oge", "sge", other)

    def __neg__(self):
        if not self.type.is_float:
            return 0 - self
        return self.writer.emit(self.type, f"fneg {self.type} {self.name}")

    def shift_right_logical(self, other):
        return self.binary("", "lshr", other)

    def equals(self, other):
        return self.compare("oeq", "eq", other)

    def differs(self, other):
        return self.compare("une", "ne", other)

    def is_above(self, other):
        """Of integers without signs."""
        return self.compare("", "ugt", other)

    def is_nan(self):
        return self.compare("uno", "", self)

    def cast(self, op: str, elem: str) -> "Value":
        result = self.with_elem(elem)
        return self.writer.emit(result, f"{op} {self.type} {self.name} to {result}")

    def bits(self) -> "Value":
        """The bit pattern, an integer of the same size."""
        return self.cast("bitcast", self.format.integer)

    def as_float(self, elem: str) -> "Value":
        """The float whose bit pattern this integer is."""
        return self.cast("bitcast", elem)

    def to_double(self) -> "Value":
        return self.cast("fpext", "double")

    def to_float(self) -> "Value":
        return self.cast("fptrunc", "float")


def joined(*values: Value) -> Sequence[Value]:
    """Values of one function: those of the inner stage, if some are of that."""
    inner = next((v.writer for v in values if v.writer.outer is not None), None)
    return values if inner is None else [inner.own(v) for v in values]


def select(mask: Value, on_true, on_false) -> Value:
    like = on_true if isinstance(on_true, Value) else on_false
    mask, on_true, on_false = joined(mask, like.like(on_true), like.like(on_false))
    text = f"select {mask.type} {mask.name}, {on_true.type} {on_true.name}, {on_true.type} {on_false.name}"
    return mask.writer.emit(on_true.type, text)


def intrinsic(name: str, *args: Value) -> Value:
    args = tuple(joined(*args))
    type_, writer = args[0].type, args[0].writer
    symbol = f"@llvm.{name}.{type_.intrinsic}"
    writer.declares.add(f"declare {type_} {symbol}({', '.join([str(type_)] * len(args))})")
    return writer.emit(type_, f"call {type_} {symbol}({', '.join(f'{type_} {a.name}' for a in args)})")


def fma(a: Value, b, c) -> Value:
    """a * b + c, rounded once."""
    return intrinsic("fma", a, a.like(b), a.like(c))


def sqrt(x: Value) -> Value:
    return intrinsic("sqrt", x)


def fabs(x: Value) -> Value:
    return intrinsic("fabs", x)


def without_tiny(x: Value, bound: float) -> Value:
    """x, or zero where it is so small that its powers count for nothing: they may be subnormal numbers, each product
    of which takes processors a hundred cycles.
    """
    return select(fabs(x) < bound, 0.0, x)


def round_half_even(x: Value) -> Value:
    return intrinsic("roundeven", x)


def trunc(x: Value) -> Value:
    return intrinsic("trunc", x)


def floor(x: Value) -> Value:
    return intrinsic("floor", x)


def fence(x: Value) -> Value:
    """x, of which nothing is told to LLVM."""
    return intrinsic("arithmetic.fence", x)


def copysign(magnitude, sign: Value) -> Value:
    return intrinsic("copysign", sign.like(magnitude), sign)


def minimum(x: Value, bound) -> Value:
    """min(x, bound), NaN where x is NaN (the comparison is false, so x is kept)."""
    return select(x > bound, bound, x)


def maximum(x: Value, bound) -> Value:
    """max(x, bound), NaN where x is NaN."""
    return select(x < bound, bound, x)


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial c[0] + c[1] x + c[2] x^2 + ..., from the highest power down, each step one fma."""
    result = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def round_to_integer(x: Value, factor: float | None = None, offset: int = 0) -> tuple[Value, Value]:
    """The nearest integer to x, or to x times a factor, as a float and as an integer; |x| < 2^(mantissa_bits - 2).

    Adding 1.5 * 2^mantissa_bits leaves the integer in the low bits: no conversion instruction, which AVX2
    lacks for doubles. Of the integer n, 2^(n + offset - bias) is one shift (see `power_of_two`).
    """
    low = 1.5 * 2.0**x.format.mantissa_bits
    magic = low + offset
    shifted = x + magic if factor is None else fma(x, factor, magic)
    return shifted - magic, shifted.bits() - x.like(low).bits() - offset


def power_of_two(n: Value, elem: str) -> Value:
    """2^n for an integer n within the normal exponents."""
    fmt = FORMATS[elem]
    return ((n + fmt.bias) << fmt.mantissa_bits).as_float(elem)


def raised(x: Value, by: int) -> Value:
    """x 2^by of a subnormal x >= 0, for by >= mantissa_bits: its bits count its steps, and a number that has as large
    ones is added and subtracted. A product with a subnormal number takes processors a hundred cycles, a sum does not.
    """
    base = x.like(x.format.tiny * 2.0**by)
    return (x.bits() | base.bits()).as_float(x.elem) - base


def any_lane(mask: Value) -> Value:
    """One truth value: whether any lane of the mask is set."""
    width = mask.type.width
    if width == 1:
        return mask
    packed = mask.writer.emit(Type(f"i{width}", 1), f"bitcast {mask.type} {mask.name} to i{width}")
    return packed.differs(0)


def _stage(values: Sequence[Value], function: Callable) -> Writer:
    """Who writes a branch or a loop: the outer stage, where all that is read and done in it is known there."""
    writer = joined(*values)[0].writer
    return writer if writer.inner is None or not writer.inner.adds_lines(function) else writer.inner


SELDOM = ', !prof !{!"branch_weights", i32 1, i32 1000}'


def either(mask: Value, slow: Callable[[], Value], fast: Callable[[], Value], told: str = "") -> Value:
    """`slow()` where any lane of the mask is set, else `fast()`, which is not computed where it is not wanted. What is
    `told` of the branch may be that it is `SELDOM` taken, for code that is written elsewhere then.
    """
    writer, ends = mask.writer, []
    labels, join = [writer.label("rare"), writer.label("usual")], writer.label("join")
    writer.lines.append(f"  br i1 {any_lane(mask).name}, label %{labels[0]}, label %{labels[1]}{told}")
    for label, function in zip(labels, (slow, fast)):
        writer.start_block(label)
        result = writer.own(function())
        writer.lines.append(f"  br label %{join}")
        ends.append((result, writer.block))
    writer.start_block(join)
    (rare, at_rare), (usual, at_usual) = ends
    return writer.emit(rare.type, f"phi {rare.type} [ {rare.name}, %{at_rare} ], [ {usual.name}, %{at_usual} ]")


def if_any(mask: Value, slow: Callable[[], Sequence[Value]], fast: Sequence[Value], told: str = "") -> list[Value]:
    """`slow()` where any lane of the mask is set, else `fast`: a branch per vector, for rare and expensive lanes."""
    writer = _stage((mask, *fast), slow)
    fast = [writer.own(x) for x in fast]
    condition = any_lane(mask).name if mask.writer is writer else writer.scalar(mask)
    before, rare, join = writer.block, writer.label("rare"), writer.label("join")
    writer.lines.append(f"  br i1 {condition}, label %{rare}, label %{join}{told}")
    writer.start_block(rare)
    slow_values = [writer.own(x) for x in slow()]
    after = writer.block
    writer.lines.append(f"  br label %{join}")
    writer.start_block(join)
    return [
        writer.emit(f.type, f"phi {f.type} [ {s.name}, %{after} ], [ {f.name}, %{before} ]")
        for s, f in zip(slow_values, fast, strict=True)
    ]


def symbol(name: str, elem: str, width: int) -> str:
    """The LLVM name of a function: @catena.exp.f32 for scalars, @catena.exp.f32x8 for vectors."""
    return f"@catena.{name}.{FORMATS[elem].suffix}" + (f"x{width}" if width > 1 else "")


MOST_INLINED = 600  # lines of a function that is written where it is called, for what does not change in a loop is then
# computed before it


def define(
    symbol_: str, writer: Writer, parameters: Sequence[str], type_: str, result: str, often: bool = True
) -> tuple[str, frozenset[str], tuple]:
    """The definition of a function, the declarations and the functions that it needs; it is inlined unless it is long,
    has loops, or is not called `often`.
    """
    inlined = "alwaysinline" if often and len(writer.lines) < MOST_INLINED and not writer.loops else "noinline"
    body = "\n".join([*writer.lines, f"  ret {type_} {result}"])
    text = f"define internal {type_} {symbol_}({', '.join(parameters)}) {inlined} nounwind {{\n{body}\n}}\n"
    return text, frozenset(writer.declares), tuple(sorted(writer.calls))


def call(result: Type, name: str, elem: str, width: int, *args: Value) -> Value:
    """A call of another function of this library, recorded as a dependency."""
    args = tuple(joined(*args))
    writer = args[0].writer
    writer.calls.add((name, elem, width))
    text = ", ".join(f"{a.type} {a.name}" for a in args)
    return writer.emit(result, f"call {result} {symbol(name, elem, width)}({text})")


def while_any(step: Callable, state: Sequence[Value]) -> tuple[Value, ...]:
    """A loop: ``state = step(*state)`` while ``state[0]``, a mask, is set in any lane."""
    writer = _stage(state, lambda: step(*state))
    state = [writer.own(x) for x in state]
    writer.loops = True
    before, head, body, exit_ = writer.block, *(writer.label(stem) for stem in ("while", "body", "done"))
    writer.lines.append(f"  br label %{head}")
    writer.start_block(head)
    at = len(writer.lines)
    phis = [writer.emit(x.type, "phi") for x in state]
    condition = any_lane(phis[0])
    writer.lines.append(f"  br i1 {condition.name}, label %{body}, label %{exit_}")
    writer.start_block(body)
    after = [writer.own(x) for x in step(*phis)]
    for k, (phi, first, then) in enumerate(zip(phis, state, after, strict=True)):
        sources = f"[ {first.name}, %{before} ], [ {then.name}, %{writer.block} ]"
        writer.lines[at + k] = f"  {phi.name} = phi {phi.type} {sources}"
    writer.lines.append(f"  br label %{head}")
    writer.start_block(exit_)
    return tuple(phis)
