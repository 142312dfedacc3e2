"""Products and quotients of what may be small, in loop nests: who makes the numbers tells it (see `vector_math.small`).

That something may be small is one truth for all lanes, kept beside a statement's value. An exponential returns it, a
product has it from its factors, and of all else it is asked where the value is made: so several products of one number
ask once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catena.compiler.emit import ops
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.vector_math import small, stages
from catena.core.named import NamedTuple

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy
    from catena.compiler.emit.layout import Layout
    from catena.compiler.kernels.loops import Stmt

TOLD = "told"
SAME = ("neg", "abs")  # what is as small as its operand


class Told(NamedTuple):
    """The statements of a nest that tell whether something may be below a power of two."""

    stmts: frozenset[int]
    least: int


def told(layout: Layout) -> Told:
    """Factors of products, and what these have it from. Of quotients by what lanes share, nothing need be told."""
    found: set[int] = set()
    least, stmts = small.LEAST, layout.nest.stmts
    for i in reversed(range(len(stmts))):
        s = stmts[i]
        is_product = ops.is_of_small(s.op, s.attr) and not layout.known(i)
        if is_product or i in found and s.op in SAME:
            found.update(_factors(s))
        if is_product and (s.op == "square" or len(_factors(s)) > 1):
            least = small.LEAST_OF_BOTH
    return Told(frozenset(found), least)


def _factors(s: Stmt) -> list[int]:
    """The operands that may be small."""
    return [s.args[0]] if s.op in SAME else [s.args[k] for k in s.attr]


def written(body: BodyWriter, i: int, c: Copy, width: int) -> str | None:
    """Statement `i`, if it is an exponential that tells, or a product that is told."""
    s, t = body.nest.stmts[i], TYPES[body.nest.stmts[i].type]
    if ops.is_of_small(s.op, s.attr):
        xs = [body.use(a, c, width) for a in s.args]
        out = ops.of_small(body.e, s.op, t, xs, width, _from_factors(body, s, c))
    elif i in body.layout.told.stmts and s.op in small.TELLING and not width & width - 1:
        out = _telling(body, i, c, width)
    else:
        return None
    return ops.round_to(body.e, out, t, width, s.op in ops.ARITHMETIC) if t.narrow else out


def tell(body: BodyWriter, i: int, x: str, c: Copy, width: int) -> None:
    """Keeps whether statement `i`, of value `x`, may be small, if it is not known yet."""
    s = body.nest.stmts[i]
    if (TOLD, i) in c.env:
        return
    if s.op in SAME or ops.is_of_small(s.op, s.attr):
        c.env[TOLD, i] = _from_factors(body, s, c)
    else:
        c.env[TOLD, i] = ops.is_small(body.e, TYPES[s.type], x, width, body.layout.told.least, s.op)


def _from_factors(body: BodyWriter, s: Stmt, c: Copy) -> str:
    return ops.either(body.e, (_known(body, a, c) for a in _factors(s)))


def _known(body: BodyWriter, i: int, c: Copy) -> str:
    """Whether statement `i` may be small; of what is not written by itself, asked here."""
    if (TOLD, i) in c.env:
        return c.env[TOLD, i]
    s, width = body.nest.stmts[i], body.width if body.short is not None or body.is_lanes(i) else 1
    return ops.is_small(body.e, TYPES[s.type], body.use(i, c, width), width, body.layout.told.least, s.op)


def _telling(body: BodyWriter, i: int, c: Copy, width: int) -> str:
    s, e = body.nest.stmts[i], body.e
    name, register = small.asking(s.op, body.layout.told.least), TYPES[s.type].register
    types = stages.record([vector(register, width), "i1"])
    out = ops.vector_call(e, name, register, [body.use(s.args[0], c, width)], width, result=types)
    c.env[TOLD, i] = e.op(f"extractvalue {types} {out}, 1")
    return e.op(f"extractvalue {types} {out}, 0")
