"""Which divisions are products by inverses: where dividers, which take long, are what a loop waits for."""

from __future__ import annotations

import math
from functools import cached_property

from catena.compiler import vector_math
from catena.compiler.emit.sizes import is_count
from catena.compiler.graph.symbols import Symbol, is_power_of_two
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import LOADS, Nest
from catena.compiler.vector_math.constant_divisors import inverse_pair
from catena.compiler.vector_math.inverses import MODERATE

# How many lanes there are at least where dividers take longest of all, and their cycles for a vector of 16 floats, or
# of 8 doubles; what multiplies by an inverse and corrects that takes 4. Two other operations are done in a cycle.
DIVIDERS = {"float": (16, 10), "double": (4, 16)}
CORRECTING, AT_ONCE = 4, 2
PAIRED = {"float32": 16, "float64": 8}  # lanes of the vectors of `DIVIDERS`
DIVIDED = frozenset(["div", "div_by_inverse", "sqrt"])  # what dividers do
FEW = 4  # vectors that share what they are divided by, for which this is inverted in the innermost loop
BY_CONSTANT = 3  # cycles of a quotient by two products (see `vector_math.constant_divisors`), with what they ask before
FOLDED = {"max": 2, "min": 2, "argmax": 4, "argmin": 4}  # operations of folds; of others one
ROUNDED = {"float16": "quotient_of_halves", "bfloat16": "quotient_of_bfloat16"}  # to fewer bits than are computed
ROUNDED_OF_SMALL = ROUNDED | {"bfloat16": "quotient_of_small_bfloat16"}  # floats hold all quotients of float16


class Divisions:
    """How the quotients of one nest are made."""

    def __init__(self, nest: Nest):
        self.nest = nest

    def function(self, i: int) -> str:
        """The function of the library that makes a quotient; "div" where the divider does, or two products."""
        s, v = self.nest.stmts[i], self.nest.vector
        if v is None or (register := TYPES[s.type].register) not in DIVIDERS:
            return s.op
        lanes, cycles = DIVIDERS[register]
        by = self.nest.stmts[s.args[1]]
        if self.pair(i) is not None or self.nest.width < lanes or by.op == "const" and is_power_of_two(by.attr):
            return s.op
        # Quotients of what may be small, told by `s.attr`, are long, and stay so.
        several, divided = (self._by_shared, self._divided) if s.attr is None else (1, 1)
        if self._is_longer(cycles, several, divided) or self.nest.extents[v] < 2 * self.nest.width:
            return s.op
        if s.type in ROUNDED:
            return ROUNDED[s.type] if s.attr is None else ROUNDED_OF_SMALL[s.type]
        if self._is_of_integers(s, by):
            return "quotient_of_integers"
        return "one_of_quotients" if divided > 1 else "quotient"

    def pair(self, i: int) -> tuple[float, float] | None:
        """The two numbers by whose products a quotient is made, of a constant divisor that hangs on no extent; None
        where the divider makes it, or what else there is for what lanes share.
        """
        s, v, nest = self.nest.stmts[i], self.nest.vector, self.nest
        by = nest.stmts[s.args[1]]
        if by.op != "const" or type(by.attr) is Symbol or is_count(by.attr) or s.type not in PAIRED:
            return None
        register = TYPES[s.type].register
        cycles = DIVIDERS[register][1] * nest.width / PAIRED[s.type]
        folding = sum(FOLDED.get(f.kind, 1) for f in nest.folds)
        work = (self._work - self._by_constants + folding) / AT_ONCE + BY_CONSTANT * self._by_constants
        if v is None or s.attr is not None or work > cycles * self._divided:
            return None
        return inverse_pair(float(by.attr), register)

    def is_of_few(self, i: int) -> bool:
        """Whether a quotient is made by what a few vectors share, and what changes in the loop in which they do."""
        s, nest = self.nest.stmts[i], self.nest
        if s.op != "div" or s.attr is not None or nest.unroll < FEW or nest.together is not None:
            return False
        by = s.args[1]
        is_there = not self._is_in_lanes(by) and self._last(by) == self._last(i)
        return is_there and self.function(i) in (*ROUNDED.values(), "quotient", "one_of_quotients")

    def _last(self, i: int) -> int:
        """The innermost loop in which a statement changes."""
        return max((k for k, d in enumerate(self.nest.order) if self.nest.depends[i] >> d & 1), default=-1)

    def is_by_divider(self, i: int) -> bool:
        """Whether the divider does a division by what is inverted all the same: beside so much it takes no time, and
        of floats that are folded, so many copies of the body stand in a text that the function would be called.
        """
        s = self.nest.stmts[i]
        if self.nest.folds and s.type == "float32":
            return True
        by_inverses = sum(s.op == "div_by_inverse" for s in self.nest.stmts)
        return self._is_longer(DIVIDERS[TYPES[s.type].register][1], by_inverses, self._divided)

    def _is_longer(self, cycles: int, several: int, divided: int) -> bool:
        """Whether so many corrected products, and the other operations, take longer than a divider does."""
        return self._work / AT_ONCE + CORRECTING * several > cycles * divided

    def _is_of_integers(self, s: Stmt, by: Stmt) -> bool:
        """Whether an integer that was converted is divided by a constant, as colours are by 255."""
        x = self.nest.stmts[s.args[0]]
        source = TYPES[self.nest.stmts[x.args[0]].type] if x.op == "convert" else None
        least, most, _ = MODERATE[TYPES[s.type].register]
        is_short = source is not None and source.kind in "iu" and source.bytes <= 4
        return is_short and by.op == "const" and bool(least <= by.attr <= most)

    def _is_in_lanes(self, i: int) -> bool:
        return bool(self.nest.depends[i] >> (self.nest.vector or 0) & 1)

    @cached_property
    def _in_lanes(self) -> list[Stmt]:
        return [s for i, s in enumerate(self.nest.stmts) if self._is_in_lanes(i)]

    @cached_property
    def _work(self) -> float:
        """The operations in lanes: no end of them where there are functions of the library."""
        is_long = any(s.op in vector_math.NAMES for s in self._in_lanes)
        return math.inf if is_long else sum(s.op not in LOADS for s in self._in_lanes)

    @cached_property
    def _by_shared(self) -> int:
        """How many divisions in lanes are by what these share; one at least."""
        divisions = [s.args for s in self._in_lanes if s.op == "div"]
        return max(1, sum(self._is_in_lanes(x) and not self._is_in_lanes(by) for x, by in divisions))

    @cached_property
    def _by_constants(self) -> int:
        """How many divisions are by constants."""
        return sum(s.op == "div" and self.nest.stmts[s.args[1]].op == "const" for s in self._in_lanes)

    @cached_property
    def _divided(self) -> int:
        """How many divisions and roots there are in lanes, those by what these share among them; one at least."""
        return max(1, sum(s.op in DIVIDED for s in self._in_lanes))
