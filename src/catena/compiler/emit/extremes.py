"""Folds of floats to the largest or smallest, by the extremes of their bits as integers.

Processors compare integers in one instruction. For floats, where NaN wins and zeros are ordered by their signs, they
take half a dozen, each of which waits for the one before. The bits of floats of one sign are ordered as integers are:
the larger, the further from zero, and NaN furthest. So three integers tell both extremes of any number of floats:

- the greatest as signed integers is the greatest of those that are not negative, if there are any;
- the greatest as unsigned integers is the furthest from zero of those that are negative, if there are any;
- the least as signed integers is the nearest to zero where all have one sign; otherwise nobody asks for it.

Vectors of 64 bytes have one unit that compares integers, and two that compare floats. So where only one of the extremes
is asked for, and floats are in registers, the nearest is the extreme that the processor has of floats: of no NaN, nor
of zeros of two signs, is it asked for.

Without AVX-512, where one extreme is asked for, no integers are compared at all (`Compared`).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from catena.compiler.emit import folds, joins, ops, positions
from catena.compiler.graph.types import DTYPES, TYPES, Type, constant, vector
from catena.compiler.kernels.loops import ComparedFold, PlacedFold, accumulator_type, is_extreme
from catena.compiler.machine import LONG_VECTOR

COMPONENTS = (("max", "int"), ("max", "uint"), ("min", "int"))
NEAREST = 2  # of the components


def accumulators(body, levels: int, copies) -> list[folds.Accumulators]:
    """The accumulators of a nest's folds, for sums that go in blocks with `levels` above the first. The same integers
    tell the largest and the smallest of an operand, so these are kept once.
    """
    opened: list[folds.Accumulators] = []
    kept: dict[tuple, Extremes] = {}
    asked = Counter((fold.stmts, fold.types) for fold in body.nest.folds if is_extreme(fold))
    for index, fold in enumerate(body.nest.folds):
        if isinstance(fold, PlacedFold):
            kind = positions.FirstTruth if fold.types[0] == "bool" else positions.Places
            opened.append(kind(body, levels, index, fold, copies))
        elif isinstance(fold, ComparedFold):
            opened.append(Compared(body, levels, index, fold, copies))
        elif is_extreme(fold):
            of = fold.stmts, fold.types
            made = Extremes(body, levels, index, fold, copies, kept.get(of), asked[of] == 1)
            opened.append(made)
            kept.setdefault(of, made)
        else:
            opened.append(folds.Accumulators(body, levels, index, fold, copies))
    return opened


def _greater(of: Extremes | Compared, new: str, old: str, width: int) -> str:
    """The greater (or less) of floats, by one instruction: the old one where the new one is NaN."""
    order = "ogt" if of.fold.kind == "max" else "olt"
    return ops.processors_extreme(of.e, of.format.register, order, new, old, width)


class Extremes(folds.Accumulators):
    """The largest or smallest of floats, which come in registers or as the bits that they are in memory; `other` is
    the fold of the same floats to the other extreme, if that stands before this one, and whether there is none is told.
    """

    def __init__(
        self, body, levels: int, index: int, fold, copies, other: Extremes | None = None, is_alone: bool = True
    ):
        self.other, self.is_alone = other, is_alone
        self.row: list[str] = []  # of joined rows, for the other fold
        super().__init__(body, levels, index, fold, copies)

    def component_types(self) -> list[Type]:
        name = self.fold.types[0]
        self.is_raw = TYPES[self.body.nest.stmts[self.fold.stmts[0]].type].kind != "f"
        self.format = TYPES[name] if self.is_raw else accumulator_type(self.fold, name)
        return [TYPES[f"{integer}{self.format.bits}"] for _, integer in COMPONENTS]

    def _opened(self, copies) -> list[list[str]]:
        return super()._opened(copies) if self.other is None else self.other.slots

    def step(self, copies, first: int = 0, careful: bool = False) -> None:
        if self.other is None:
            super().step(copies, first, careful)

    @property
    def tells_both(self) -> bool:
        """Whether the integers tell another fold its extreme, too."""
        return self.other is None and not self.is_alone

    @property
    def _has_both(self) -> bool:
        """Whether those of another fold, whose rows are joined, tell this one its own."""
        return self.other is not None and self.other.kept is not None

    @property
    def has_float(self) -> bool:
        """Whether the nearest to zero is an extreme of floats."""
        return self.is_alone and not self.is_raw and self.width * self.format.bytes == LONG_VECTOR

    def _initial(self, j: int, t: Type, copy) -> str:
        if j == NEAREST and self.has_float:
            return constant(self._bits(-np.inf if self.fold.kind == "max" else np.inf), t, self.width)
        return constant(folds.identity(COMPONENTS[j][0], t.name), t, self.width)

    def _taken(self, c: int, new: list[str]) -> list[str]:
        bits = new[0] if self.is_raw else self._cast(new[0], self.format.register, self.types[0].register, self.width)
        old = [self._get(c, j) for j in range(len(self.types))]
        out = self._combine(old, [bits] * len(old), self.width)
        return [*out[:NEAREST], self._of_floats(new[0], old[NEAREST])] if self.has_float else out

    def _of_floats(self, new: str, old: str) -> str:
        """The greater (or less) float, the old one where the new one is NaN, as bits."""
        r, bits = self.format.register, self.types[NEAREST].register
        kept = self._cast(old, bits, r, self.width)
        return self._cast(_greater(self, new, kept, self.width), r, bits, self.width)

    def _combine(self, a: list[str], b: list[str], width: int) -> list[str]:
        each = zip(COMPONENTS, self.types, zip(a, b))
        return [ops.emit(self.e, kind, t, list(pair), [t, t], None, width) for (kind, _), t, pair in each]

    def _across_lanes(self, row: list[str]) -> list[str]:
        """The extremes of all lanes; some are repeated, since LLVM wants powers of two."""
        if self.width == 1:
            return row
        wide, r = 1 << (self.width - 1).bit_length(), self.types[0].register
        order = ", ".join(f"i32 {min(k, self.width - 1)}" for k in range(wide))
        v, out = vector(r, self.width), []
        for x, t, (kind, _) in zip(row, self.types, COMPONENTS):
            x = self.e.op(f"shufflevector {v} {x}, {v} poison, <{wide} x i32> <{order}>")
            name = f"@llvm.vector.reduce.{t.kind.replace('i', 's')}{kind}.v{wide}{r}"
            out.append(self.e.op(f"call {r} {name}(<{wide} x {r}> {x})"))
        return out

    def keep(self, number: str) -> None:
        """Of many rows, the lanes are kept as one integer each, which is the greater the more it is wanted: the least
        are those of numbers of the sign that is not, then come those of the other, then NaN of the sign that wins.
        Where both extremes are asked for, the three integers are kept, which tell both.
        """
        if self.tells_both:
            super().keep(number)
            return
        if self._has_both:
            return
        if self.kept is None:
            self.kept = joins.Kept(self.e, self.types[1:2], self.width)
        (greatest, furthest, nearest), (inf, sign) = self._joined(self._accumulated()), self._marks()
        v, zero = vector(self.types[0].register, self.width), constant(0, self.types[0], self.width)
        if self.fold.kind == "max":
            nan = (f"icmp ugt {v} {furthest}, {self._told(sign + inf)}", furthest)
            first = (f"icmp sge {v} {greatest}, {zero}", self._plus(greatest, inf + 1))
            rank = self._first([nan, first], self.e.op(f"sub {v} {self._told(sign + inf)}, {nearest}"), self.width)
        else:
            nan = (f"icmp sgt {v} {greatest}, {self._told(inf)}", self._plus(greatest, sign))
            first = (f"icmp slt {v} {furthest}, {zero}", self._plus(furthest, inf + 1 - sign))
            rank = self._first([nan, first], self.e.op(f"sub {v} {self._told(inf)}, {nearest}"), self.width)
        self.kept.keep([rank], number)

    def finish_kept(self, copy, mask: str) -> None:
        if self.tells_both:
            assert self.kept is not None
            self.row = self.kept.joined(lambda a, b: self._combine(a, b, self.width))
        if self.tells_both or self._has_both:
            row = self.row if self.other is None else self.other.row
            super()._write([self.value(row, self.width)], copy, self.width, mask)
            return
        assert self.kept is not None
        t, (inf, sign) = self.types[1], self._marks()
        (rank,) = self.kept.joined(lambda a, b: [ops.emit(self.e, "max", t, [a[0], b[0]], [t, t], None, self.width)])
        v, is_max = vector(t.register, self.width), self.fold.kind == "max"
        nan = (f"icmp ugt {v} {rank}, {self._told(sign + inf)}", rank if is_max else self._plus(rank, -sign))
        first = (f"icmp ugt {v} {rank}, {self._told(inf)}", self._plus(rank, -inf - 1 if is_max else sign - inf - 1))
        last = self.e.op(f"sub {v} {self._told(inf + sign if is_max else inf)}, {rank}")
        bits = self._first([nan, first], last, self.width)
        super()._write([self._as_float(bits, self.width)], copy, self.width, mask)

    def _marks(self) -> tuple[int, int]:
        """The bits of infinity, and that of the sign."""
        return self._bits(np.inf), 1 << self.format.bits - 1

    def _told(self, number: int) -> str:
        """An integer in all lanes, modulo all that there are."""
        half = 1 << self.format.bits - 1
        return constant((number + half) % (2 * half) - half, self.types[0], self.width)

    def _plus(self, x: str, number: int) -> str:
        return self.e.op(f"add {vector(self.types[0].register, self.width)} {x}, {self._told(number)}")

    def _write(self, row: list[str], copy, width: int | None = None, mask: str | None = None) -> None:
        width = width or (1 if self.body.layout.lanes_reduced else self.width)
        super()._write([self.value(row, width)], copy, width, mask)

    def value(self, row: list[str], width: int) -> str:
        return self._as_float(self._extreme(row, width), width)

    def _extreme(self, row: list[str], width: int) -> str:
        """The bits of the result, from the greatest, the furthest and the nearest."""
        (greatest, furthest, nearest), t = row, self.types[0]
        v, zero = vector(t.register, width), constant(0, t, width)
        if self.fold.kind == "max":
            negative_nan = f"icmp ugt {v} {furthest}, {constant(self._bits(-np.inf), t, width)}"
            return self._first(
                [(negative_nan, furthest), (f"icmp sge {v} {greatest}, {zero}", greatest)], nearest, width
            )
        positive_nan = f"icmp sgt {v} {greatest}, {constant(self._bits(np.inf), t, width)}"
        return self._first([(positive_nan, greatest), (f"icmp slt {v} {furthest}, {zero}", furthest)], nearest, width)

    def _first(self, cases: list[tuple[str, str]], otherwise: str, width: int) -> str:
        """The value of the first case whose condition holds."""
        i1, v = vector("i1", width), vector(self.types[0].register, width)
        for condition, x in reversed(cases):
            otherwise = self.e.op(f"select {i1} {self.e.op(condition)}, {v} {x}, {v} {otherwise}")
        return otherwise

    def _bits(self, value: float) -> int:
        return int(np.asarray(value, DTYPES[self.format.name]).view(f"i{self.format.bytes}"))

    def _as_float(self, bits: str, width: int) -> str:
        """Bits as a float in a register."""
        form = self.format.memory if self.is_raw else self.format.register
        x = self._cast(bits, self.types[0].register, form, width)
        return self.e.widen(x, self.format, width) if self.is_raw else x

    def _cast(self, x: str, source: str, target: str, width: int) -> str:
        if source == target:  # bfloat16 is an integer in memory
            return x
        return self.e.op(f"bitcast {vector(source, width)} {x} to {vector(target, width)}")


class Compared(folds.Accumulators):
    """The largest or smallest of floats by comparisons of floats, where those of integers are no quicker: the best
    number so far, which is not NaN and may be a zero of either sign; the common bits of all (of the smallest: those
    that any has), of which the sign is the result's; and whether there was NaN, by lanes of ones. Vectors that are
    folded into one result share the last two, and two are asked at once whether they hold NaN.
    """

    def component_types(self) -> list[Type]:
        self.format = accumulator_type(self.fold, self.fold.types[0])
        bits = TYPES[f"int{self.format.bits}"]
        return [self.format, bits, bits]

    @property
    def is_shared(self) -> bool:
        """Whether all vectors are folded into one result."""
        return self.body.layout.lanes_reduced and self.body.together is None and self.body.nest.short is None

    def _initial(self, j: int, t: Type, copy) -> str:
        largest = self.fold.kind == "max"
        return constant((folds.identity(self.fold.kind, t.name), -1 if largest else 0, 0)[j], t, self.width)

    def step(self, copies, first: int = 0, careful: bool = False) -> None:
        xs = [self._there(self.body.use(self.fold.stmts[0], copy, self.width)) for copy in copies]
        slots = [self._taker(k) for k in range(first, first + len(xs))]
        for c, x in zip(slots, xs):
            self._set(c, 0, _greater(self, x, self._get(c, 0), self.width))
        size = 2 if self.is_shared else 1
        for k in range(0, len(xs), size):
            self._look(0 if self.is_shared else slots[k], xs[k : k + size])

    def _there(self, x: str) -> str:
        """What lanes that are not there do not change."""
        active = self.body.active if self.body.layout.lanes_reduced else None
        if active is None:
            return x
        v, neutral = vector(self.format.register, self.width), self._initial(0, self.format, None)
        return self.e.op(f"select {vector('i1', self.width)} {active}, {v} {x}, {v} {neutral}")

    def _look(self, c: int, xs: list[str]) -> None:
        """Notes the signs of one or two vectors, and whether there is NaN among them."""
        form, v = vector(self.format.register, self.width), vector(self.types[1].register, self.width)
        signs, nans = self._get(c, 1), self._get(c, 2)
        for x in xs:
            signs = self._signs(v, signs, self.e.op(f"bitcast {form} {x} to {v}"))
        is_nan = self.e.op(f"fcmp uno {form} {xs[0]}, {xs[-1]}")
        is_nan = self.e.op(f"sext {vector('i1', self.width)} {is_nan} to {v}")
        self._set(c, 1, signs)
        self._set(c, 2, self.e.op(f"or {v} {nans}, {is_nan}"))

    def _signs(self, v: str, a: str, b: str) -> str:
        return self.e.op(f"{'and' if self.fold.kind == 'max' else 'or'} {v} {a}, {b}")

    def _joined(self, values: list[list[str]]) -> list[str]:
        if not self.is_shared:
            return super()._joined(values)
        numbers = [best for best, *_ in values]
        while len(numbers) > 1:
            pairs = zip(numbers[::2], numbers[1::2])
            numbers = [_greater(self, a, b, self.width) for a, b in pairs] + numbers[len(numbers) // 2 * 2 :]
        return [*numbers, *values[0][1:]]

    def _combine(self, a: list[str], b: list[str], width: int) -> list[str]:
        v = vector(self.types[1].register, width)
        return [_greater(self, a[0], b[0], width), self._signs(v, a[1], b[1]), self.e.op(f"or {v} {a[2]}, {b[2]}")]

    def _across_lanes(self, row: list[str]) -> list[str]:
        return self._halve(row, self.width)

    def _write(self, row: list[str], copy, width: int | None = None, mask: str | None = None) -> None:
        width = width or (1 if self.body.layout.lanes_reduced else self.width)
        super()._write([self.value(row, width)], copy, width, mask)

    def value(self, row: list[str], width: int) -> str:
        """The best number, with the sign that was noted; ones in all bits are NaN."""
        (best, signs, nans), t = row, self.types[1]
        form, v = vector(self.format.register, width), vector(t.register, width)
        sign = 1 << self.format.bits - 1
        size = self.e.op(f"and {v} {self.e.op(f'bitcast {form} {best} to {v}')}, {constant(sign - 1, t, width)}")
        signed = self.e.op(f"or {v} {size}, {self.e.op(f'and {v} {signs}, {constant(-sign, t, width)}')}")
        return self.e.op(f"bitcast {v} {self.e.op(f'or {v} {signed}, {nans}')} to {form}")
