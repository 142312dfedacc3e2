"""Polynomials by eight pieces, whose coefficients are entries of tables: as cheap as one polynomial.

Lanes choose entries of a constant vector. On x86 processors since 2013, LLVM makes one instruction of that, and memory
is not asked; elsewhere entries are taken one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.core.named import NamedTuple

from . import helpers
from .double_double import Pair, fast_two_sum
from .helpers import SIZE, Choice, Part
from .text import FORMATS, Type, Value, fabs, fma, if_any, literal, maximum, minimum, select


class Pieces(NamedTuple):
    """Eight pieces of a function, as `fit_pieces.py` prints them: in each, it is ``value`` and a polynomial in
    ``t = a - centre`` without a constant term. Centres lie where the function is nearly a float.
    """

    centres: Sequence[float]
    values: Sequence[float]
    coefficients: Sequence[Sequence[float]]  # of t, t^2, ...

    def off_centre(self, a: Value, index: Value) -> Value:
        return a - entry(self.centres, index)

    def value(self, index: Value) -> Value:
        return entry(self.values, index)

    def slope(self, index: Value, t: Value) -> Value:
        """The polynomial over t."""
        result = entry(self.coefficients[-1], index)
        for numbers in reversed(self.coefficients[:-1]):
            result = fma(result, t, entry(numbers, index))
        return result


class Rising(NamedTuple):
    """An odd function that rises from the origin to 1, where it is beyond ``end``.

    The piece of ``a`` is told by three bits, from ``shift`` on, of ``a * scale + offset``. In the first one, which ends
    below ``edge``, the function is ``a`` and its polynomial; the values of the others are greater than ``edge``.
    """

    end: float
    scale: float
    offset: float
    shift: int
    edge: float
    pieces: Pieces

    def __call__(self, x: Value) -> Value:
        whole = minimum(fabs(x), self.end)
        subnormal = is_subnormal(x)
        a = if_any(subnormal, lambda: [select(subnormal, 0.0, whole)], [whole])[0]
        place = fma(a, self.scale, self.offset)
        index = place.bits().shift_right_logical(self.shift)
        t = self.pieces.off_centre(a, index)
        slope = self.pieces.slope(index, t)
        result = fma(slope, t, maximum(self.pieces.value(index), minimum(a, self.edge)))  # a choice without a mask
        size = if_any(subnormal, lambda: [select(subnormal, self.near_zero(whole), result)], [result])[0]
        sign = (x.bits() ^ fabs(x).bits()) | size.bits()  # of what is not below zero
        return sign.as_float(x.elem)

    def near_zero(self, a: Value) -> Value:
        """What the first piece is for subnormal numbers, rounded once."""
        first = int(np.float32(self.offset).view(np.int32)) >> self.shift
        slope = 1.0 + float(np.float32(self.pieces.coefficients[0][first % SIZE]))
        return (a.to_double() * slope).to_float()


class Smooth(NamedTuple):
    """A function for ``a >= 0``, by pieces that are told by three bits, from ``shift`` on, of ``a + offset``."""

    offset: float
    shift: int
    pieces: Pieces

    def __call__(self, a: Value) -> Pair:
        """It, with what is rounded off the last sum."""
        index = (a + self.offset).bits().shift_right_logical(self.shift)
        t = self.pieces.off_centre(a, index)
        value, rest = self.pieces.value(index), self.pieces.slope(index, t) * t
        return fast_two_sum(value, rest)


class Paired(NamedTuple):
    """A function for ``a`` from 0 to ``end``, as `fit_paired.py` prints it, nearly as exact as a double: the first
    coefficients, ``high`` and ``low``, and what is made of them are sums of two floats. The piece is told by three
    bits, from ``shift`` on, of ``a * scale + offset``.
    """

    end: float
    scale: float
    offset: float
    shift: int
    centres: Sequence[float]
    high: Sequence[Sequence[float]]
    low: Sequence[Sequence[float]]
    coefficients: Sequence[Sequence[float]]  # of the next powers

    def __call__(self, a: Value) -> Pair:
        index = fma(a, self.scale, self.offset).bits().shift_right_logical(self.shift)
        t = a - entry(self.centres, index)
        value = entry(self.coefficients[-1], index)
        for numbers in reversed(self.coefficients[:-1]):
            value = fma(value, t, entry(numbers, index))
        low = None
        for high_numbers, low_numbers in zip(reversed(self.high), reversed(self.low)):
            product, rest = value * t, entry(low_numbers, index)
            if low is not None:
                rest = fma(low, t, fma(value, t, -product) + rest)
            value, lost = fast_two_sum(entry(high_numbers, index), product)
            low = lost + rest
        assert low is not None
        return Pair(value, low)


class Placed(NamedTuple):
    """A function of ``a`` by seven pieces of the length 1 / ``scale``, of which the first is half as long, and beyond
    their ``end`` by one of ``u``, from 0 to 1 / ``far_scale``, as `fit_placed.py` prints it: polynomials in what ``a``
    or ``u`` is off the middle of its piece, over its length. Scales are floats of a few bits.
    """

    end: float
    scale: float
    far_scale: float
    low: Sequence[float]  # what is rounded off the first coefficients
    coefficients: Sequence[Sequence[float]]  # of 1, t, t^2, ...

    def __call__(self, m, a, u):
        far = a > self.end
        n, index = m.nearest(a, self.scale)
        t = m.where(far, m.fma(u, self.far_scale, -0.5), m.fma(a, self.scale, -n))
        index = m.where(far, SIZE - 1, index)
        result = m.entry(self.coefficients[-1], index)
        for numbers in reversed(self.coefficients[1:-1]):
            result = m.fma(result, t, m.entry(numbers, index))
        first = m.entry(self.coefficients[0], index)
        return first + m.fma(result, t, m.entry(self.low, index)) if self.low else m.fma(result, t, first)


def is_subnormal(x: Value) -> Value:
    """Of floats."""
    width, truth = x.type.width, x.with_elem("i1")
    x.writer.declares.add(helpers.subnormal(width))
    return x.writer.emit(truth, f"call {truth} {helpers.subnormal_name(width)}({x.type} {x.name})")


def part(which: str, x: Value) -> Value:
    """A `helpers.Part` of doubles, in registers of so many."""
    writer, width = x.writer, x.type.width
    if width > writer.doubles:
        low, high = (part(which, _half(x, k)) for k in range(2))
        return _shuffled(low, high, range(width))
    one = Part(which, x.elem, width)
    writer.declares.add(one.definition)
    return writer.emit(x.type, f"call {x.type} {one.name}({x.type} {x.name})")


def nearest(x: Value, factor: float) -> tuple[Value, Value]:
    """The nearest integer to a product, and bits whose lowest are those of the integer."""
    magic = 1.5 * 2.0**x.format.mantissa_bits
    shifted = fma(x, factor, magic)
    return shifted - magic, shifted.bits()


def entry(table: Sequence[float], index: Value) -> Value:
    """The entry of a table of ``SIZE`` floats at the three low bits of ``index``, whatever the others are; of doubles,
    where these are integers of 64 bits.
    """
    writer, width = index.writer, index.type.width
    elem = next(f.elem for f in FORMATS.values() if f.integer == index.elem)
    if elem == "double" and width > writer.doubles:
        low, high = (entry(table, _half(index, k)) for k in range(2))
        return _shuffled(low, high, range(width))
    if elem == "double" and width == SIZE // 2:
        return _by_halves(table, index)
    size = max(width, SIZE)  # longer vectors hold the table again and again
    return _called([*table] * (size // SIZE), elem, index)


def _called(table: Sequence[float], elem: str, index: Value) -> Value:
    writer, width = index.writer, index.type.width
    numbers = ", ".join(f"{elem} {literal(Type(elem, 1), number)}" for number in table)
    choice = Choice(elem, width)
    writer.declares.add(choice.definition)
    result = choice.result
    return writer.emit(result, f"call {result} {choice.name}({choice.table} <{numbers}>, {index.type} {index.name})")


def _by_halves(table: Sequence[float], index: Value) -> Value:
    """For registers of four doubles, which hold half of a table: words are chosen of each half, in pairs, which is one
    instruction on x86 processors since 2013.
    """
    writer, words = index.writer, Type("i32", SIZE)
    place = (index & (SIZE // 2 - 1)) << 1
    pairs = place | (place << 32) | (1 << 32)
    at = writer.emit(words, f"bitcast {pairs.type} {pairs.name} to {words}")
    halves = []
    for half in (table[: SIZE // 2], table[SIZE // 2 :]):
        chosen = _called(np.array(half, np.float64).view(np.int32).tolist(), "i32", at)
        doubles = Type("double", index.type.width)
        halves.append(writer.emit(doubles, f"bitcast {words} {chosen.name} to {doubles}"))
    return select((index & (SIZE // 2)).equals(0), *halves)


def _half(x: Value, which: int) -> Value:
    half = x.type.width // 2
    return _shuffled(x, x, range(which * half, (which + 1) * half))


def _shuffled(x: Value, y: Value, order: range) -> Value:
    numbers = ", ".join(f"i32 {k}" for k in order)
    text = f"shufflevector {x.type} {x.name}, {y.type} {y.name}, <{len(order)} x i32> <{numbers}>"
    return x.writer.emit(Type(x.elem, len(order)), text)
