"""Products and quotients of what may be small, in loop nests: who makes the numbers tells it (see `vector_math.small`).

That something may be small is one truth for all lanes, kept beside a statement's value. An exponential returns it, a
product has it from its factors, and of all else it is asked where the value is made: so several products of one number
ask once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catena.compiler.emit import branches, ops
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.kernels import unused
from catena.compiler.kernels.loops import CarefulNest
from catena.compiler.vector_math import small, stages
from catena.core.named import NamedTuple

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy
    from catena.compiler.emit.layout import Layout
    from catena.compiler.kernels.loops import Stmt

TOLD = "told"
TOLD_OF_ALL = "told of all"  # with a statement: whether anything that products are made of is small (see `Parts`)
SAME = ("neg", "abs")  # what is as small as its operand


class Told(NamedTuple):
    """The statements of a nest that tell whether something may be below a power of two."""

    stmts: frozenset[int]
    least: int


def told(layout: Layout) -> Told:
    """Factors of products, and what these have it from. Of quotients by what lanes share, nothing need be told."""
    found: set[int] = set()
    least, stmts = small.LEAST_BY_LARGE, layout.nest.stmts
    for i in reversed(range(len(stmts))):
        s = stmts[i]
        is_product = ops.is_of_small(s.op, s.attr) and not layout.known(i)
        if is_product or i in found and s.op in SAME:
            found.update(_factors(s))
        if is_product:
            least = max(least, _least(s, stmts))
    return Told(frozenset(found), least)


def _least(s: Stmt, stmts: list[Stmt]) -> int:
    """From which power of two on the factors of a product that may be small have none that is subnormal."""
    if s.op == "square" or len(s.attr) > 1:
        return small.LEAST_OF_BOTH
    other = stmts[s.args[1 - s.attr[0]]]
    return small.least_beside(other.attr) if s.op != "div" and other.op == "const" else small.LEAST


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
        factors = _factors(s)
        c.env[TOLD, i] = ops.either(body.e, (_known(body, a, c, TOLD) for a in factors))
        if any((TOLD_OF_ALL, a) in c.env for a in factors):
            c.env[TOLD_OF_ALL, i] = ops.either(body.e, (_known(body, a, c, TOLD_OF_ALL) for a in factors))
    else:
        c.env[TOLD, i] = ops.is_small(body.e, TYPES[s.type], x, width, body.layout.told.least, s.op)


def _from_factors(body: BodyWriter, s: Stmt, c: Copy) -> str:
    """Whether some factor is small; quotients, which take longest, ask of their own."""
    key = TOLD if s.op == "div" else TOLD_OF_ALL
    return ops.either(body.e, (_known(body, a, c, key) for a in _factors(s)))


def _known(body: BodyWriter, i: int, c: Copy, key: str) -> str:
    """Whether statement `i` may be small; of what is not written by itself, asked here."""
    for told in (key, TOLD):
        if (told, i) in c.env:
            return c.env[told, i]
    s, width = body.nest.stmts[i], body.width if body.short is not None or body.is_lanes(i) else 1
    return ops.is_small(body.e, TYPES[s.type], body.use(i, c, width), width, body.layout.told.least, s.op)


def _telling(body: BodyWriter, i: int, c: Copy, width: int) -> str:
    s, e = body.nest.stmts[i], body.e
    name, register = small.asking(s.op, body.layout.told.least), TYPES[s.type].register
    types = stages.record([vector(register, width), "i1"])
    out = ops.vector_call(e, name, register, [body.use(s.args[0], c, width)], width, result=types)
    c.env[TOLD, i] = e.op(f"extractvalue {types} {out}, 1")
    return e.op(f"extractvalue {types} {out}, 0")


# ---- what is asked once for all --------------------------------------------------------------------------------

MANY = 4  # what tells, and products, from which these are written twice, where something is small and where nothing is:
# of fewer, and where all are made of one exponential, branches are guessed as well, and usual numbers pay a tenth;
# careful nests have products in all places, of which most vectors have none that is small


class Parts(NamedTuple):
    """The statements of the innermost loop: those that tell whether something is small, with what they are made of, and
    others; and all that tell something before the others are written.
    """

    telling: list[int]
    others: list[int]
    told: list[int]


def parts(layout: Layout) -> Parts | None:
    """See `Parts`; None where few products are told."""
    stmts, level = layout.nest.stmts, layout.levels[-1]
    if not layout.told.stmts or any(stmts[i].op in ("check", "accumulator") for i in level):
        return None
    behind: set[int] = set()  # what is made of products
    for i in level:
        if _is_product(layout, i) or not behind.isdisjoint(unused.read(stmts[i])):
            behind.add(i)
    told = sorted(i for i in layout.told.stmts - behind if stmts[i].op not in SAME)
    wanted: set[int] = set()
    pending = [*told]
    while pending:
        if (i := pending.pop()) not in wanted:
            wanted.add(i)
            pending += unused.read(stmts[i])
            pending += (k for group in layout.loads_together.values() if i in group for k in group)
    others = [i for i in level if i not in wanted]
    many = 1 if isinstance(layout.nest, CarefulNest) else MANY
    if min(len(told), sum(_is_product(layout, i) for i in others)) < many:
        return None
    return Parts([i for i in level if i in wanted], others, told)


def asked_once(body: BodyWriter) -> Parts | None:
    """The parts, where this is how the body is written."""
    return body.layout.parts if body.width > 1 and body.short is None and body.guard is None else None


def _is_product(layout: Layout, i: int) -> bool:
    s = layout.nest.stmts[i]
    return ops.is_of_small(s.op, s.attr) and not layout.known(i)


def each_way(body: BodyWriter, told: list[int], copies: list[Copy]) -> Iterator[list[Copy]]:
    """The copies of the body where something that these statements tell is small, and where nothing is."""
    truths = [c.env[TOLD, i] for i in told for c in copies if (TOLD, i) in c.env]  # others are not wanted, or constants
    if not truths:
        yield copies
        return
    for is_small in branches.each_way(body.e, ops.either(body.e, truths)):
        inner = [c.child() for c in copies]
        for c in inner:
            c.env |= {(TOLD_OF_ALL, i): "true" if is_small else "false" for i in told}
        yield inner
