"""Functions in two stages in loop nests: one where the operands are that lanes share, one in the loop.

See `vector_math.stages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catena.compiler import vector_math
from catena.compiler.emit import ops
from catena.compiler.graph.types import TYPES
from catena.compiler.vector_math import stages

if TYPE_CHECKING:
    from catena.compiler.emit.body_text import BodyWriter, Copy

FIRST = "first stage"


def first(body: BodyWriter, i: int, copies: list[Copy]) -> None:
    """What the function of statement `i` computes of operands that are the same in all lanes: types and values."""
    e, s, known = body.e, body.nest.stmts[i], body.layout.known(i)
    register = TYPES[s.type].register
    types = vector_math.in_stages(s.op, known, register) or ()
    name, record = stages.names(s.op, known)[0], stages.record(types)
    symbol = vector_math.symbol(name, register, 1)
    e.needs.setdefault(symbol, ("vector_math", name, register, 1))
    operands = [body.use(a, copies[0], 1) for p, a in zip(vector_math.PARAMETERS, s.args) if p in known]
    out = e.op(f"call {record} {symbol}({', '.join(f'{register} {x}' for x in operands)})")
    given = [(t, e.op(f"extractvalue {record} {out}, {k}")) for k, t in enumerate(types)]
    for c in copies:
        c.env[FIRST, i] = given


def second(body: BodyWriter, i: int, c: Copy) -> str:
    """The function, of the operands that differ in lanes and what its first stage gave."""
    s, known = body.nest.stmts[i], body.layout.known(i)
    t, name = TYPES[s.type], stages.names(s.op, known)[1]
    others = [body.use(a, c, body.width) for p, a in zip(vector_math.PARAMETERS, s.args) if p not in known]
    out = ops.vector_call(body.e, name, t.register, others, body.width, c.env[FIRST, i])
    return ops.round_to(body.e, out, t, body.width) if t.narrow else out
