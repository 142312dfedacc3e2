"""Polynomials by eight pieces, whose coefficients are entries of tables, for floats: as cheap as one polynomial.

Lanes choose entries of a constant vector. On x86 processors since 2013, LLVM makes one instruction of that, and memory
is not asked; elsewhere entries are taken one by one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .text import Type, Value, copysign, fabs, fma, literal, minimum, select

SIZE = 8  # what a vector of 2013 holds


class Rising(NamedTuple):
    """An odd function that rises from the origin to 1, where it is beyond ``end``, as `fit_pieces.py` prints it.

    The piece of ``a`` is told by three bits, from ``shift`` on, of ``a * scale + offset``. In a piece, the function is
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
    """The entry of a table of ``SIZE`` floats at the three low bits of ``index``, whatever the others are."""
    writer, width = index.writer, index.type.width
    size = max(width, SIZE)  # longer vectors hold the table again and again
    numbers = ", ".join(f"float {literal(Type('float', 1), number)}" for number in [*table] * (size // SIZE))
    name, definition = _definition(width, size)
    writer.declares.add(definition)
    result = Type("float", width)
    return writer.emit(result, f"call {result} {name}(<{size} x float> <{numbers}>, {index.type} {index.name})")


def _definition(width: int, size: int) -> tuple[str, str]:
    """The name and the text of what chooses entries for so many lanes, as LLVM makes one instruction of it."""
    name, index, result = f"@catena.entry.f32x{width}", Type("i32", width), Type("float", width)
    table = f"<{size} x float> %table"
    lines = [f"%at = and {index} %index, {literal(index, size - 1)}"]
    if width == 1:
        lines.append(f"%out.0 = extractelement {table}, i32 %at")
    else:
        for k in range(width):
            before = f"%out.{k - 1}" if k else "poison"
            lines.append(f"%at.{k} = extractelement {index} %at, i64 {k}")
            lines.append(f"%one.{k} = extractelement {table}, i32 %at.{k}")
            lines.append(f"%out.{k} = insertelement {result} {before}, float %one.{k}, i64 {k}")
    body = "\n".join(f"  {line}" for line in [*lines, f"ret {result} %out.{width - 1}"])
    return name, f"define internal {result} {name}({table}, {index} %index) alwaysinline nounwind {{\n{body}\n}}"
