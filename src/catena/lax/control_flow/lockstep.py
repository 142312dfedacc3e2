"""Vectorisation in lockstep: blocks of examples run together until the last one of the block is done.

A loop of scalars whose length differs from example to example would leave most of a processor's lanes idle if each
example ran by itself. So examples run in blocks, those that are done unchanged; blocks are short enough to stay in
registers and first-level cache, and a block of quick examples does not wait for the slow ones elsewhere.
"""

from catena.core.axes import move_axis
from catena.core.jaxpr import subjaxprs
from catena.core.structural import broadcast_in_dim_p
from catena.core.zeros import get_aval
from catena.lax.control_flow.map import reshaped, rows
from catena.lax.join import concatenate_p

BLOCK = 128  # examples
LIGHT = 8  # elements of each value in a body that is worth it
ALONE = frozenset(
    "while while_save scan stack_scan cond sort top_k fft cholesky lu qr svd eig eigh schur hessenberg "
    "triangular_solve tridiagonal_solve custom_linear_solve gather scatter scatter_add".split()
)


def is_light(*jaxprs) -> bool:
    """Whether the bodies are arithmetic on scalars and small vectors, without loops and effects."""
    return all(_light(closed.jaxpr) for closed in jaxprs)


def _light(jaxpr) -> bool:
    return not jaxpr.effects and all(
        eqn.primitive.name not in ALONE
        and all(_small(v.aval) for v in (*eqn.invars, *eqn.outvars))
        and all(_light(inner) for inner in subjaxprs(eqn.own_params))
        for eqn in jaxpr.eqns
    )


def _small(aval) -> bool:
    return not aval.extended and aval.size <= LIGHT


def block_size(n: int) -> int:
    """Examples in a block: if there is one, a divisor of ``n`` that fills whole vectors."""
    if n <= 2 * BLOCK:
        return n
    divisors = [size for size in range(BLOCK // 2, 2 * BLOCK + 1, 16) if n % size == 0]
    return min(divisors, key=lambda size: abs(size - BLOCK), default=BLOCK)


def in_blocks(x, dim: int, count: int, size: int):
    """``x`` with its mapped axis in front, cut into ``count`` blocks; the last one is filled with copies."""
    x = move_axis(x, dim, 0)
    n, *shape = get_aval(x).shape
    missing = count * size - n
    if missing:
        last = rows(x, n - 1, n)
        dims = tuple(range(len(shape) + 1))
        copies = broadcast_in_dim_p.bind(last, shape=(missing, *shape), broadcast_dimensions=dims)
        x = concatenate_p.bind(x, copies, dimension=0)
    return reshaped(x, (count, size))


def joined(y, n: int):
    """The blocks in one, without the copies."""
    count, size = get_aval(y).shape[:2]
    return rows(reshaped(y, (count * size,), axes=2), 0, n)
