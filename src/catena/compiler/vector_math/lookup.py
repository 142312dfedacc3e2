"""Polynomials by sixteen pieces, whose coefficients are entries of tables, for floats: as cheap as one polynomial.

Lanes choose entries of a constant vector. On x86 processors since 2013, LLVM makes one instruction of that (two and a
choice where vectors have eight lanes), and memory is not asked; elsewhere entries are taken one by one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .text import Type, Value, copysign, fabs, fma, literal, minimum, select

SIZE = 16


class Rising(NamedTuple):
    """An odd function that rises from the origin to 1, where it is beyond ``end``, as `fit_pieces.py` prints it.

    The piece of ``a`` is told by four bits, from ``shift`` on, of ``a * scale + offset``. In a piece, the function is
    ``value`` and a polynomial in ``t = a - centre`` without a constant term; in the first one, up to where that number
    is ``edge``, it is ``a`` and such a polynomial. Centres lie where the function is nearly a float.
    """

    end: float
    scale: float
    offset: float
    shift: int
    edge: float
    centres: Sequence[float]
    values: Sequence[float]
    coefficients: Sequence[Sequence[float]]  # of t, t^2, ...

    def __call__(self, x: Value) -> Value:
        a = minimum(fabs(x), self.end)
        place = fma(a, self.scale, self.offset)
        index = place.bits().shift_right_logical(self.shift)
        t = a - entry(self.centres, index)
        slope = entry(self.coefficients[-1], index)
        for numbers in reversed(self.coefficients[:-1]):
            slope = fma(slope, t, entry(numbers, index))
        value = select(place < self.edge, a, entry(self.values, index))
        return copysign(fma(slope, t, value), x)


def entry(table: Sequence[float], index: Value) -> Value:
    """The entry of a table of ``SIZE`` floats at the four low bits of ``index``, whatever the others are."""
    writer, width = index.writer, index.type.width
    numbers = ", ".join(f"float {literal(Type('float', 1), number)}" for number in table)
    name, definition = _definition(width)
    writer.declares.add(definition)
    result = Type("float", width)
    return writer.emit(result, f"call {result} {name}(<{SIZE} x float> <{numbers}>, {index.type} {index.name})")


def _definition(width: int) -> tuple[str, str]:
    """The name and the text of the function that chooses entries for so many lanes."""
    name, index, result = f"@catena.entry.f32x{width}", Type("i32", width), Type("float", width)
    part = 8 if width == 8 else SIZE
    lines: list[str] = []
    chosen = [_chosen(lines, start, part, width) for start in range(0, SIZE, part)]
    if len(chosen) > 1:
        lines.append(f"%high = icmp ugt {index} %place, {literal(index, part - 1)}")
        lines.append(f"%chosen = select <{width} x i1> %high, {result} {chosen[1]}, {result} {chosen[0]}")
        chosen = ["%chosen"]
    body = "\n".join(f"  {line}" for line in [f"%place = and {index} %index, {literal(index, SIZE - 1)}", *lines])
    head = f"define internal {result} {name}(<{SIZE} x float> %table, {index} %index) alwaysinline nounwind"
    return name, f"{head} {{\n{body}\n  ret {result} {chosen[0]}\n}}"


def _chosen(lines: list[str], start: int, part: int, width: int) -> str:
    """Writes the choice among ``part`` entries from ``start`` on, in the form of which LLVM makes an instruction."""
    places = ", ".join(f"i32 {start + k}" for k in range(part))
    table, index, result = f"<{part} x float> %table.{start}", Type("i32", width), Type("float", width)
    lines.append(
        f"%table.{start} = shufflevector <{SIZE} x float> %table, <{SIZE} x float> poison, <{part} x i32> <{places}>"
    )
    lines.append(f"%at.{start} = and {index} %place, {literal(index, part - 1)}")
    if width == 1:
        lines.append(f"%out.{start} = extractelement {table}, i32 %at.{start}")
        return f"%out.{start}"
    out = "poison"
    for k in range(width):
        lane = f"{start}.{k}"
        lines.append(f"%at.{lane} = extractelement {index} %at.{start}, i64 {k}")
        lines.append(f"%one.{lane} = extractelement {table}, i32 %at.{lane}")
        lines.append(f"%out.{lane} = insertelement {result} {out}, float %one.{lane}, i64 {k}")
        out = f"%out.{lane}"
    return out
