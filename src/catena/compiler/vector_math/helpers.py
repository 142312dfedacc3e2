"""Small functions that functions of mathematics call, as any processor computes them, and by one of its instructions.

Those who compile a text put the latter in their place where the processor has it (`native/instructions.py`): texts are
the same for all, and so are the bits.
"""

from __future__ import annotations

from catena.core.named import NamedTuple

from .text import FORMATS, Type, literal

PREFIX = "@catena.one."  # of their names
SIZE = 8  # the least number of entries of a table: what a vector of 2013 holds


class Own(NamedTuple):
    """A helper by an instruction."""

    definition: str
    declares: tuple[str, ...]


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
    def places(self) -> Type:
        return Type(FORMATS[self.elem].integer if self.elem in FORMATS else self.elem, self.width)

    @property
    def result(self) -> Type:
        return Type(self.elem, self.width)

    @property
    def definition(self) -> str:
        """As LLVM makes one instruction of it, and one that leaves out the other bits of the integers."""
        index = self.places
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

    def by(self, instruction: str) -> Own:
        """By an instruction that takes the low bits."""
        call = f"{self.result} @{instruction}({self.table} %table, {self.places} %index)"
        lines = [f"%out = call {call}", f"ret {self.result} %out"]
        return Own(self._defined(lines), (f"declare {self.result} @{instruction}({self.table}, {self.places})",))

    def _defined(self, lines: list[str]) -> str:
        return _defined(self.result, f"{self.name}({self.table} %table, {self.places} %index)", lines)


def subnormal_name(width: int) -> str:
    return f"{PREFIX}subnormal.f32x{width}"


def subnormal(width: int) -> str:
    """Which of so many floats are subnormal numbers."""
    bits, truth, least, half = Type("i32", width), Type("i1", width), 1 << FORMATS["float"].mantissa_bits, 1 << 31
    lines = [
        f"%bits = bitcast {Type('float', width)} %x to {bits}",
        f"%size = and {bits} %bits, {literal(bits, (1 << 31) - 1)}",
        # An unsigned comparison by a signed one, the only one that processors without AVX-512 have.
        f"%less = add {bits} %size, {literal(bits, half - 1)}",
        f"%is = icmp slt {bits} %less, {literal(bits, least - 1 - half)}",
        f"ret {truth} %is",
    ]
    return _subnormal(width, lines)


def subnormal_by(instruction: str, kinds: int, width: int) -> Own:
    """By an instruction that tells kinds of numbers."""
    floats, truth = Type("float", width), Type("i1", width)
    lines = [f"%is = call {truth} @{instruction}({floats} %x, i32 {kinds})", f"ret {truth} %is"]
    return Own(_subnormal(width, lines), (f"declare {truth} @{instruction}({floats}, i32)",))


def _subnormal(width: int, lines: list[str]) -> str:
    return _defined(Type("i1", width), f"{subnormal_name(width)}({Type('float', width)} %x)", lines)


SPREAD = (4, 8, 16, 32)  # lanes that a float16 is spread over by these


def spread_name(width: int) -> str:
    return f"{PREFIX}spread.f16x{width}"


def spread(width: int) -> str:
    """A float16 as floats in so many lanes. Of such, LLVM makes operations of float16 where all operands are widened in
    lanes, which processors that have none widen again at each of them.
    """
    floats = Type("float", width)
    return _spread(width, ["%wide = fpext half %x to float", *_in_lanes(floats, "%wide"), f"ret {floats} %all"])


def spread_by(width: int) -> Own:
    """For processors that have them."""
    floats, halves = Type("float", width), Type("half", width)
    lines = [*_in_lanes(halves, "%x"), f"%wide = fpext {halves} %all to {floats}", f"ret {floats} %wide"]
    return Own(_spread(width, lines), ())


def _in_lanes(type_: Type, x: str) -> list[str]:
    order = f"<{type_.width} x i32> zeroinitializer"
    return [
        f"%one = insertelement {type_} poison, {type_.elem} {x}, i64 0",
        f"%all = shufflevector {type_} %one, {type_} poison, {order}",
    ]


def _spread(width: int, lines: list[str]) -> str:
    return _defined(Type("float", width), f"{spread_name(width)}(half %x)", lines)


HALVES = (1, 2, *SPREAD)  # lanes of which there is the greater or the less by comparisons of float16


class HalfExtreme(NamedTuple):
    """The greater or the less of numbers of float16 in registers of float, as `emit.ops` has it of floats."""

    which: str  # "maximum" or "minimum"
    width: int

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.which}.f16x{self.width}"

    @property
    def definition(self) -> str:
        """By comparisons of floats. LLVM would compare what was widened as float16, without the fence, and choose among
        the floats: no processor has an instruction for that, and some have to widen once more.
        """
        floats, integers = Type("float", self.width), Type("i32", self.width)
        fence = f"call {floats} @llvm.arithmetic.fence.{floats.intrinsic}({floats}"
        lines = [f"%a = {fence} %x)", f"%b = {fence} %y)", *self._extreme(floats, integers), f"ret {floats} %out"]
        return self._defined(lines)

    def by_halves(self) -> Own:
        """For processors that compare float16."""
        floats, halves, integers = Type("float", self.width), Type("half", self.width), Type("i16", self.width)
        lines = [
            *(f"{to} = fptrunc {floats} {of} to {halves}" for to, of in (("%a", "%x"), ("%b", "%y"))),
            *self._extreme(halves, integers),
            f"%wide = fpext {halves} %out to {floats}",
            f"ret {floats} %wide",
        ]
        return Own(self._defined(lines), ())

    def _extreme(self, t: Type, bits: Type) -> list[str]:
        """Of %a and %b."""
        order, logic = {"maximum": ("ogt", "and"), "minimum": ("olt", "or")}[self.which]
        truth, lines = Type("i1", self.width), []
        for name, x, y in (("one", "%a", "%b"), ("other", "%b", "%a")):
            lines += [
                f"%{name}.is = fcmp {order} {t} {x}, {y}",
                f"%{name} = select {truth} %{name}.is, {t} {x}, {t} {y}",
                f"%{name}.bits = bitcast {t} %{name} to {bits}",
            ]
        lines.append(f"%both = {logic} {bits} %one.bits, %other.bits")
        if logic == "or":  # what NaN and another number have together is NaN
            return [*lines, f"%out = bitcast {bits} %both to {t}"]
        return [
            *lines,
            f"%nan = fcmp uno {t} %a, %b",
            f"%all = select {truth} %nan, {bits} {literal(bits, -1)}, {bits} %both",
            f"%out = bitcast {bits} %all to {t}",
        ]

    def _defined(self, lines: list[str]) -> str:
        floats = Type("float", self.width)
        return _defined(floats, f"{self.name}({floats} %x, {floats} %y)", lines)


class Steps(NamedTuple):
    """Several floats; of lanes that are `%is_counted` the ones whose bits are the nearest integer, below 2^31."""

    width: int

    @property
    def floats(self) -> Type:
        return Type("float", self.width)

    @property
    def name(self) -> str:
        return f"{PREFIX}steps.f32x{self.width}"

    @property
    def nearest(self) -> str:
        return f"{self._integers} @llvm.lrint.{self._integers.intrinsic}.{self.floats.intrinsic}"

    @property
    def declared(self) -> str:
        return f"declare {self.nearest}({self.floats})"

    @property
    def definition(self) -> str:
        t = self._integers
        lines = [
            f"%nearest = call {self.nearest}({self.floats} %x)",
            f"%bits = bitcast {self.floats} %x to {t}",
            f"%counted = select {self._truths} %is_counted, {t} %nearest, {t} %bits",
        ]
        return self._defined(lines)

    def by(self, instruction: str) -> Own:
        """By one that converts these lanes and leaves the others."""
        t, mask = self._integers, f"i{self.width}"
        lines = [
            f"%bits = bitcast {self.floats} %x to {t}",
            f"%mask = bitcast {self._truths} %is_counted to {mask}",
            f"%counted = call {t} @{instruction}({self.floats} %x, {t} %bits, {mask} %mask, i32 {AS_ALWAYS})",
        ]
        return Own(self._defined(lines), (f"declare {t} @{instruction}({self.floats}, {t}, {mask}, i32)",))

    @property
    def _integers(self) -> Type:
        return Type("i32", self.width)

    @property
    def _truths(self) -> Type:
        return Type("i1", self.width)

    def _defined(self, lines: list[str]) -> str:
        end = [f"%out = bitcast {self._integers} %counted to {self.floats}", f"ret {self.floats} %out"]
        signature = f"{self.name}({self.floats} %x, {self._truths} %is_counted)"
        return _defined(self.floats, signature, [*lines, *end])


LONGEST = 16  # floats of a vector
SPLIT = 0.75  # significands are from here to twice that: around 1, so that both sides of it have the exponent 0


class Part(NamedTuple):
    """The exponent, as a float, or the significand of floats that are normal and above zero; of others, anything."""

    which: str  # "exponent" or "significand"
    elem: str
    width: int

    @property
    def floats(self) -> Type:
        return Type(self.elem, self.width)

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.which}.{FORMATS[self.elem].suffix}x{self.width}"

    @property
    def definition(self) -> str:
        return self._defined([*self._general(), f"ret {self.floats} %out"])

    def _general(self) -> list[str]:
        form, f = FORMATS[self.elem], self.floats
        i, shift = Type(form.integer, self.width), form.mantissa_bits
        integer = form.integer.replace("i", "int")
        split, magic = (int(form.scalar(v).view(integer)) for v in (SPLIT, 1.5 * 2.0**shift))
        more = form.bias + 1  # so exponents are above zero, and shifts logical: without AVX-512 no others have 64 bits
        lines = [f"%bits = bitcast {f} %x to {i}", f"%off = sub {i} %bits, {literal(i, split - (more << shift))}"]
        if self.which == "exponent":
            lines += [f"%k = lshr {i} %off, {literal(i, shift)}", f"%shifted = add {i} %k, {literal(i, magic - more)}"]
            lines += [
                f"%float = bitcast {i} %shifted to {f}",
                f"%out = fsub {f} %float, {literal(f, 1.5 * 2.0**shift)}",
            ]
        else:
            lines.append(f"%low = and {i} %off, {literal(i, (1 << shift) - 1)}")
            lines += [f"%rest = add {i} %low, {literal(i, split)}", f"%out = bitcast {i} %rest to {f}"]
        return lines

    def by(self, instruction: str) -> Own:
        """By instructions for exponents and significands from 1 to 2, and, `BETWEEN`, from 0.75 to 1.5; of constants as
        before, which LLVM computes.
        """
        f, mask = self.floats, f"i{self.width}"
        exponent = self.which == "exponent"
        types = ", ".join(map(str, (f, *([] if exponent else ["i32"]), f, mask, "i32")))
        given = f"{f} %more" if exponent else f"{f} %x, i32 {BETWEEN}"
        lines = [
            *self._general(),
            f"%more = fmul {f} %x, {literal(f, 1 / SPLIT)}",  # 1 and more from where significands are so
            f"%own = call {f} @{instruction}({given}, {f} zeroinitializer, {mask} -1, i32 {AS_ALWAYS})",
            f"%constant = call i1 @llvm.is.constant.{f.intrinsic}({f} %x)",
            f"%result = select i1 %constant, {f} %out, {f} %own",
            f"ret {f} %result",
        ]
        declared = [f"{f} @{instruction}({types})", f"i1 @llvm.is.constant.{f.intrinsic}({f})"]
        return Own(self._defined(lines), tuple(f"declare {d}" for d in declared))

    def _defined(self, lines: list[str]) -> str:
        return _defined(self.floats, f"{self.name}({self.floats} %x)", lines)


BETWEEN, AS_ALWAYS = 3, 4  # of the instruction for significands: their interval; how results are rounded


def _defined(result: Type, signature: str, lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"define internal {result} {signature} alwaysinline nounwind {{\n{body}\n}}"
