"""Quotients in the loop in which what a few vectors share, and are divided by, is another number each time: rows that
are divided, each by a number of its own, and folded away. That is inverted for all of them, and products with the
inverse are corrected, as where it does not change (`vector_math.inverses.quotient`). Little may be asked of the divisor
here; so divisors and dividends have limits each, within which what is rounded off a quotient is a normal number.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from catena.compiler.emit import branches, ops
from catena.compiler.emit.masks import any_lane, every_lane
from catena.compiler.emit.sizes import bits
from catena.compiler.graph.types import TYPES, mangled, vector

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy

# The least and the greatest; of bfloat16, inverses are normal numbers, and near enough without a correction.
DIVISORS = {
    "float32": (2.0**-22, 2.0**26),
    "float64": (2.0**-200, 2.0**200),
    "bfloat16": (2.0**-126, 2.0**126),
}
DIVIDENDS = {"float32": (2.0**-100, 2.0**100), "float64": (2.0**-700, 2.0**700)}
NAN = "0x7FF8000000000000"


def divide(body: BodyWriter, i: int, copies: list[Copy]) -> list[str]:
    """Division `i` in all copies of the body."""
    s, t, width = body.nest.stmts[i], TYPES[body.nest.stmts[i].type], body.width
    xs = [body.use(s.args[0], c, width) for c in copies]
    quotients = _Quotients(body, t.name, body.use(s.args[1], copies[0], 1), xs).made()
    return [ops.round_to(body.e, x, t, width, True) for x in quotients] if t.narrow else quotients


class _Quotients:
    """Vectors that are divided by one number."""

    def __init__(self, body: BodyWriter, dtype: str, divisor: str, dividends: list[str]):
        self.e, self.width, self.dtype = body.e, body.width, dtype
        self.register = TYPES[dtype].register
        self.int = "i64" if self.register == "double" else "i32"
        self.v, self.mask = vector(self.register, self.width), vector("i1", self.width)
        self.divisor, self.dividends = divisor, dividends

    def made(self) -> list[str]:
        """By the divider where something is beyond the limits; of float16, which has no such numbers, always so."""
        e, inverse = self.e, self.e.op(f"fdiv {self.register} 1.0, {self.divisor}")
        if self.dtype == "bfloat16":
            inverse = e.op(f"select i1 {self._is_far()}, {self.register} {NAN}, {self.register} {inverse}")
        inverse = e.splat(inverse, self.register, self.width)
        near = [e.op(f"fmul {self.v} {x}, {inverse}") for x in self.dividends]
        if self.dtype == "float16":
            return [self._unless_no_number(*pair) for pair in zip(self._corrected(near, inverse), near)]
        if self.dtype == "bfloat16":
            beyond = self._some([e.op(f"fcmp uno {self.v} {x}, {x}") for x in near])
            return branches.either(e, beyond, self.v, self._divided, lambda: near)
        return branches.either(e, self._are_beyond(), self.v, self._divided, lambda: self._corrected(near, inverse))

    def _divided(self) -> list[str]:
        divisor = self.e.splat(self.divisor, self.register, self.width)
        return [self.e.op(f"fdiv {self.v} {x}, {divisor}") for x in self.dividends]

    def _corrected(self, near: list[str], inverse: str) -> list[str]:
        divisor = self.e.splat(self.divisor, self.register, self.width)
        less = [self.e.op(f"fneg {self.v} {x}") for x in self.dividends]
        over = [self._fma(q, divisor, x) for q, x in zip(near, less)]
        left = [self.e.op(f"fneg {self.v} {x}") for x in over]  # in this order zeros keep their signs
        return [self._fma(rest, inverse, q) for q, rest in zip(near, left)]

    def _unless_no_number(self, x: str, near: str) -> str:
        """A corrected product, which zeros, infinities and NaN have not."""
        is_usual = self.e.op(f"fcmp one {self.v} {x}, zeroinitializer")
        return self.e.op(f"select {self.mask} {is_usual}, {self.v} {x}, {self.v} {near}")

    def _are_beyond(self) -> str:
        """Whether the divisor or a dividend is. Zeros are within, but for their signs where the divisor is negative.
        What is asked of dividends hangs on nothing else: they may be the same in each iteration.
        """
        e, some, beyond = self.e, [], []
        for x in self.dividends:
            some.append(e.op(f"fcmp une {self.v} {x}, zeroinitializer"))
            is_far = self._is_outside(x, self.width, DIVIDENDS[self.dtype])
            beyond.append(e.op(f"and {self.mask} {is_far}, {some[-1]}"))
        no_zero = every_lane(e, functools.reduce(lambda a, b: e.op(f"and {self.mask} {a}, {b}"), some), self.width)
        is_negative = e.op(f"fcmp olt {self.register} {self.divisor}, 0.0")
        signs = e.op(f"and i1 {is_negative}, {e.op(f'xor i1 {no_zero}, true')}")
        return ops.either(e, [self._is_far(), self._some(beyond), signs])

    def _is_far(self) -> str:
        return self._is_outside(self.divisor, 1, DIVISORS[self.dtype])

    def _is_outside(self, x: str, width: int, limits: tuple[float, float]) -> str:
        """Whether sizes are not between two numbers: by one comparison of integers."""
        e, ints = self.e, vector(self.int, width)
        least, most = (bits(limit, self.register) for limit in limits)
        sizes, first, span = (
            e.splat(str(n), self.int, width) for n in (2 ** (int(self.int[1:]) - 1) - 1, least, most - least)
        )
        code = e.op(f"bitcast {vector(self.register, width)} {x} to {ints}")
        above = e.op(f"sub {ints} {e.op(f'and {ints} {code}, {sizes}')}, {first}")
        return e.op(f"icmp ugt {ints} {above}, {span}")

    def _some(self, masks: list[str]) -> str:
        return any_lane(self.e, functools.reduce(lambda a, b: self.e.op(f"or {self.mask} {a}, {b}"), masks), self.width)

    def _fma(self, x: str, y: str, z: str) -> str:
        call = f"call {self.v} @llvm.fma.v{self.width}{mangled(self.register)}"
        return self.e.op(f"{call}({self.v} {x}, {self.v} {y}, {self.v} {z})")
