"""Numbers that the text of a function does not tell: it reads them where it begins, from a table that it is given.

Functions whose texts are the same are one, in all programs (see `native.shared`). So what hangs on an extent is read
from a table: the ends of loops, the distance from row to row, and the count that a mean divides by. Small numbers stay
in the text, where LLVM makes more of them, and so do offsets inside of a vector's reach, which instructions hold.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from catena.compiler.graph.keys import Keys
from catena.compiler.graph.symbols import Symbol, recorded

LEAST = 8  # numbers below are told
LEAST_COUNT = 32  # floats likewise: a tenth is rather a constant of the user's
MOST = 1 << 40  # beyond, a float is no count
MOST_PARTS = 1 << 16  # of a power of two: other constants have more digits
PLAIN = frozenset([0.0, 0.5, 1.0, 2.0])  # of which LLVM may make more: told everywhere, with either sign

Key = int | tuple[int, int]  # of a number (`Keys.plain`)


def place_in(table: list[int]) -> Callable[[int], int]:
    """What puts numbers into a table and says where."""

    def place(number: int) -> int:
        table.append(number)
        return len(table) - 1

    return place


class Sizes:
    """The numbers of one function, read in its first block; `place` puts one into the table and says where. All its
    `floats` are among them where other functions differ in constants alone.
    """

    def __init__(self, slots: list[str], table: str, place: Callable[[int], int], floats: bool = False):
        self._slots, self._table, self._place, self._floats = slots, table, place, floats
        self._names: dict[tuple[str, Key, int], str] = {}
        self._addresses: dict[Key, str] = {}
        self._keys: defaultdict[tuple, Keys] = defaultdict(Keys)  # of the numbers of a type and role

    def named(self, type_: str, bits: int, role: int = 0) -> str:
        """The name of the value with these bits; one for each role, where two may have the same value by chance."""
        key = type_, self._keys[type_, role].plain(bits), role
        if key not in self._names:
            name, at = f"%z{len(self._names)}", self._place(bits)
            self._slots += [
                f"  {name}_at = getelementptr i64, ptr {self._table}, i64 {at}",
                f"  {name} = load {type_}, ptr {name}_at, align 8",
            ]
            self._names[key] = name
        return self._names[key]

    def tells(self, x: float, narrow: bool) -> bool:
        """Whether a constant, of a float of 16 bits (`narrow`) or more, stands in the text itself."""
        hangs = type(x) is Symbol or is_count(x) or not narrow and is_part(x)  # as all narrow ones are
        return not hangs and (not self._floats or is_plain(x))

    def address(self, n: int) -> str:
        """Where a number stands in the table, for routines that want addresses."""
        key = self._keys["address",].plain(n)
        if key not in self._addresses:
            name = self._addresses[key] = f"%n{len(self._addresses)}"
            self._slots.append(f"  {name} = getelementptr i64, ptr {self._table}, i64 {self._place(n)}")
        return self._addresses[key]


def is_size(n: int) -> bool:
    """Whether a number may hang on an extent, as far as one can see."""
    return abs(n) >= LEAST


@recorded
def is_count(x: float) -> bool:
    """Whether a float is a whole number, or one over it: what means and their derivatives multiply and divide by."""
    if not math.isfinite(x) or not x:
        return False
    whole = abs(x) if abs(x) >= 1 else 1 / abs(x)
    return LEAST_COUNT <= whole < MOST and abs(whole - round(whole)) <= 1e-6 * whole


@recorded
def is_part(x: float) -> bool:
    """Whether a float is a part of a power of two above it, as steps of `linspace` are."""
    if not math.isfinite(x):
        return False
    part, parts = x.as_integer_ratio()
    return LEAST_COUNT <= abs(part) < parts <= MOST_PARTS


@recorded
def is_plain(x: float) -> bool:
    """Whether a float is one that is told everywhere."""
    return abs(x) in PLAIN


@recorded
def bits(x: float, register: str) -> int:
    """A float of a register's type as the integer that the table holds."""
    return int(np.float32(x).view(np.int32)) if register == "float" else int(np.float64(x).view(np.int64))
