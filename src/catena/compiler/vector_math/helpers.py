"""Small functions that functions of mathematics call, as any processor computes them, and by one of its instructions.

Those who compile a text put the latter in their place where the processor has it (`native/instructions.py`): texts are
the same for all, and so are the bits.
"""

from typing import NamedTuple

from .text import FORMATS, Type, literal

PREFIX = "@catena.one."  # of their names
SIZE = 8  # the least number of entries of a table: what a vector of 2013 holds


class Choice(NamedTuple):
    """The entries of a table that lanes choose by the low bits of integers."""

    elem: str
    width: int

    @property
    def name(self) -> str:
        suffix = FORMATS[self.elem].suffix if self.elem in FORMATS else self.elem
        return f"{PREFIX}entry.{suffix}x{self.width}"

    @property
    def table(self) -> Type:
        """Longer vectors hold a table again and again."""
        return Type(self.elem, max(self.width, SIZE))

    @property
    def index(self) -> Type:
        return Type(FORMATS[self.elem].integer if self.elem in FORMATS else self.elem, self.width)

    @property
    def result(self) -> Type:
        return Type(self.elem, self.width)

    @property
    def definition(self) -> str:
        """As LLVM makes one instruction of it, and one that leaves out the other bits of the integers."""
        index = self.index
        lines = [f"%at = and {index} %index, {literal(index, self.table.width - 1)}"]
        if self.width == 1:
            lines.append(f"%out.0 = extractelement {self.table} %table, {index} %at")
        else:
            for k in range(self.width):
                before = f"%out.{k - 1}" if k else "poison"
                lines.append(f"%at.{k} = extractelement {index} %at, i64 {k}")
                lines.append(f"%one.{k} = extractelement {self.table} %table, {index.elem} %at.{k}")
                lines.append(f"%out.{k} = insertelement {self.result} {before}, {self.elem} %one.{k}, i64 {k}")
        return self._defined([*lines, f"ret {self.result} %out.{self.width - 1}"])

    def by(self, instruction: str) -> str:
        """By an instruction that takes the low bits."""
        call = f"{self.result} @{instruction}({self.table} %table, {self.index} %index)"
        lines = [f"%out = call {call}", f"ret {self.result} %out"]
        return f"declare {self.result} @{instruction}({self.table}, {self.index})\n{self._defined(lines)}"

    def _defined(self, lines: list[str]) -> str:
        return _defined(self.result, f"{self.name}({self.table} %table, {self.index} %index)", lines)


def subnormal_name(width: int) -> str:
    return f"{PREFIX}subnormal.f32x{width}"


def subnormal(width: int) -> str:
    """Which of so many floats are subnormal numbers."""
    bits, truth, least = Type("i32", width), Type("i1", width), 1 << FORMATS["float"].mantissa_bits
    lines = [
        f"%bits = bitcast {Type('float', width)} %x to {bits}",
        f"%size = and {bits} %bits, {literal(bits, (1 << 31) - 1)}",
        f"%less = sub {bits} %size, {literal(bits, 1)}",
        f"%is = icmp ult {bits} %less, {literal(bits, least - 1)}",
        f"ret {truth} %is",
    ]
    return _subnormal(width, lines)


def subnormal_by(instruction: str, kinds: int, width: int) -> str:
    """By an instruction that tells kinds of numbers."""
    floats, truth = Type("float", width), Type("i1", width)
    lines = [f"%is = call {truth} @{instruction}({floats} %x, i32 {kinds})", f"ret {truth} %is"]
    return f"declare {truth} @{instruction}({floats}, i32)\n{_subnormal(width, lines)}"


def _subnormal(width: int, lines: list[str]) -> str:
    return _defined(Type("i1", width), f"{subnormal_name(width)}({Type('float', width)} %x)", lines)


def _defined(result: Type, signature: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"define internal {result} {signature} alwaysinline nounwind {{\n{body}\n}}"
