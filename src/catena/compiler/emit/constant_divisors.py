"""Quotients by constants in loop nests, as two products each (see `vector_math.constant_divisors`). In the vectors of
an iteration, what is so small that it must be divided is asked together: one branch for all of them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from catena.compiler.emit import branches, stages
from catena.compiler.emit.masks import any_lane
from catena.compiler.emit.sizes import bits
from catena.compiler.graph.types import TYPES, mangled, vector
from catena.compiler.vector_math import FORMATS
from catena.compiler.vector_math.constant_divisors import LEAST

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy


def quotient(body: BodyWriter, i: int, c: Copy, width: int) -> str | None:
    """Statement `i`, if it is a division by a constant that two products make."""
    if width == 1 or not is_by_products(body, i):
        return None
    return quotients_of(body, i, [body.use(body.nest.stmts[i].args[0], c, width)])[0]


def quotients(body: BodyWriter, i: int, copies: list[Copy]) -> list[str]:
    """The same in all copies of the body."""
    return quotients_of(body, i, [body.use(body.nest.stmts[i].args[0], c, body.width) for c in copies])


def quotients_of(body: BodyWriter, i: int, xs: list[str]) -> list[str]:
    """The same of some dividends."""
    e, width, register = body.e, body.width, TYPES[body.nest.stmts[i].type].register
    (y, high, low), v = _numbers(body, i, width), vector(register, width)

    lows = [e.op(f"fmul {v} {x}, {low}") for x in xs]
    fma = f"call {v} @llvm.fma.v{width}{mangled(register)}"
    products = [e.op(f"{fma}({v} {x}, {v} {high}, {v} {z})") for x, z in zip(xs, lows, strict=True)]

    def divided() -> list[str]:
        return [e.op(f"fdiv {v} {x}, {y}") for x in xs]

    return branches.replaced(e, _some_is_small(body, i, register, xs), v, products, divided)


def is_by_products(body: BodyWriter, i: int) -> bool:
    """Whether statement `i` is a division that two products make."""
    return body.nest.stmts[i].op == "div" and body.layout.divisions.pair(i) is not None


def _numbers(body: BodyWriter, i: int, width: int) -> list[str]:
    """The divisor, and the two numbers by which quotients are made, in all lanes."""
    s, pair = body.nest.stmts[i], body.layout.divisions.pair(i)
    assert pair is not None  # see `is_by_products`
    by = float(body.nest.stmts[s.args[1]].attr)
    return [stages.untold(body, x, TYPES[s.type], width) for x in (by, *pair)]


def _some_is_small(body: BodyWriter, i: int, register: str, xs: list[str]) -> str:
    """Whether some dividend is so small that it is divided: none is less than a bound when its bits are moved so that
    zeros are the greatest integers: one comparison with signs, the only one that processors without AVX-512 have.
    """
    e, width, form = body.e, body.width, FORMATS[register]
    bound = bits(abs(float(body.nest.stmts[body.nest.stmts[i].args[1]].attr)) * LEAST[register], register)
    half = (1 << form.bits - 1) - 1
    least = stages.untold_bits(body, (bound << 1) + half & (1 << form.bits) - 1, f"i{form.bits}", width)
    ints = vector(f"i{form.bits}", width)
    one, shift = (e.splat(str(n), f"i{form.bits}", width) for n in (1, half))
    moved = []
    for x in xs:
        doubled = e.op(f"shl {ints} {e.op(f'bitcast {vector(register, width)} {x} to {ints}')}, {one}")
        moved.append(e.op(f"add {ints} {doubled}, {shift}"))
    smin = f"call {ints} @llvm.smin.v{width}i{form.bits}"
    tiniest = functools.reduce(lambda a, b: e.op(f"{smin}({ints} {a}, {ints} {b})"), moved)
    return any_lane(e, e.op(f"icmp slt {ints} {tiniest}, {least}"), width)
