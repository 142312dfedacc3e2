"""Functions in two stages in loop nests: one where the operands are that lanes share, one in the loop.

See `vector_math.stages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catena.compiler import vector_math
from catena.compiler.emit import ops
from catena.compiler.emit.sizes import bits
from catena.compiler.graph.symbols import is_power_of_two
from catena.compiler.graph.types import TYPES, Type, constant
from catena.compiler.vector_math import stages

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy

FIRST = "first stage"


def first(body: BodyWriter, i: int, copies: list[Copy]) -> None:
    """What the function of statement `i` computes of operands that are the same in all lanes: types and values."""
    s, known, name = body.nest.stmts[i], body.layout.known(i), body.layout.function(i)
    operands = [a for p, a in zip(vector_math.PARAMETERS, s.args) if p in known]
    apart = body.together is not None and any(map(body.differs, operands))
    for group in [[c] for c in copies] if apart else [copies]:
        numbers = [name != s.op and divisor(body, a, 1) or body.use(a, group[0], 1) for a in operands]
        results = first_of(body, i, numbers)
        for c in group:
            c.env[FIRST, i] = results


def first_of(body: BodyWriter, i: int, numbers: list[str]) -> list[tuple[str, str]]:
    """The same of such numbers."""
    e, name, known = body.e, body.layout.function(i), body.layout.known(i)
    register, stage = TYPES[body.nest.stmts[i].type].register, stages.names(name, known)[0]
    types = vector_math.in_stages(name, known, register) or ()
    record, symbol = stages.record(types), vector_math.symbol(stage, register, 1)
    e.needs.setdefault(symbol, ("vector_math", stage, register, 1))
    out = e.op(f"call {record} {symbol}({', '.join(f'{register} {x}' for x in numbers)})")
    return [(t, e.op(f"extractvalue {record} {out}, {k}")) for k, t in enumerate(types)]


def second(body: BodyWriter, i: int, c: Copy) -> str:
    """The function, of the operands that differ in lanes and what its first stage gave."""
    return second_of(body, i, [body.use(a, c, body.width) for a in others(body, i)], c.env[FIRST, i])


def others(body: BodyWriter, i: int) -> list[int]:
    """The operands that differ in lanes."""
    known = body.layout.known(i)
    return [a for p, a in zip(vector_math.PARAMETERS, body.nest.stmts[i].args) if p not in known]


def second_of(body: BodyWriter, i: int, lanes: list[str], given: list[tuple[str, str]]) -> str:
    """The same of such operands."""
    s, known = body.nest.stmts[i], body.layout.known(i)
    t, name = TYPES[s.type], stages.names(body.layout.function(i), known)[1]
    out = ops.vector_call(body.e, name, t.register, lanes, body.width, given)
    return ops.round_to(body.e, out, t, body.width, s.op in ops.ARITHMETIC) if t.narrow else out


def quotient(body: BodyWriter, i: int, c: Copy) -> str | None:
    """Division `i` in a part of short rows, by what is inverted before their loop; None where the divider does it."""
    s, name, e = body.nest.stmts[i], body.layout.function(i), body.e
    if name == s.op or body.short is None or (FIRST, i) not in c.env:
        return None
    t, dividend, known = TYPES[s.type], body.use(s.args[0], c, body.width), body.layout.known(i)
    stage = stages.LANES if body.short.is_in_parts(s.args[1]) else stages.SECOND
    out = ops.vector_call(e, f"{name}.{stage}.{known}", t.register, [dividend], body.width, c.env[FIRST, i])
    return ops.round_to(e, out, t, body.width, s.op in ops.ARITHMETIC) if t.narrow else out


def divisor(body: BodyWriter, i: int, width: int) -> str | None:
    """Statement `i`, which others are divided by, if it is a constant that is told for that, or is not told."""
    s = body.nest.stmts[i]
    if s.op != "const":
        return None
    t, is_power = TYPES[s.type], is_power_of_two(s.attr)
    if is_power:
        return constant(s.attr, t, width) if width > 1 else None
    if t.kind != "f" or body.e.sizes is None or body.short is not None:
        return None
    return untold(body, s.attr, t, width)


def untold(body: BodyWriter, x: float, t: Type, width: int) -> str:
    """A number in all lanes by which divisions are made, which texts do not tell that read such from a table."""
    if body.e.sizes is None or body.short is not None:
        return constant(x, t, width)
    return untold_bits(body, bits(x, t.register), t.register, width)


def untold_bits(body: BodyWriter, number: int, type_: str, width: int) -> str:
    """What has these bits, likewise."""
    sizes = body.e.sizes
    told = str(number) if sizes is None or body.short is not None else sizes.named(type_, number)
    return body.e.splat(told, type_, width)
