"""Extents beyond machines, eager, compiled and traced: a right result, or an error, soon."""

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import at_most, check
from catena import lax

EXTENTS = (0, 1, 2**31, 2**31 + 8, 2**32 + 1, 2**40, 2**47, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**100, -1)
PROGRAMS = {
    "ones": lambda n: jnp.ones((n,), "int8").sum(),
    "squares": lambda n: jnp.ones((n, n), "int8").sum(),
    "empty": lambda n: jnp.zeros((n, 0)).sum(),
    "arange": lambda n: jnp.arange(n).max(),
    "iota": lambda n: lax.broadcasted_iota("int32", (n, 3), 1).max(),
    "broadcast": lambda n: jnp.broadcast_to(jnp.float32(1), (n,)).min(),
    "pad": lambda n: lax.pad(jnp.ones(3), 0.0, [(n, n, n)]).sum(),
    "tile": lambda n: jnp.tile(jnp.ones(3), n).sum(),
    "repeat": lambda n: jnp.repeat(jnp.ones(3), n).sum(),
    "eye": lambda n: jnp.eye(n, dtype="int8").sum(),
    "slice": lambda n: jnp.arange(5.0)[n:].sum(),
    "dynamic slice": lambda n: lax.dynamic_slice(jnp.arange(5.0), (np.uint32(n % 2**32),), (2,)).sum(),
    "take": lambda n: jnp.arange(5.0)[jnp.asarray(n)],
    "roll": lambda n: jnp.roll(jnp.arange(5), n).sum(),
    "reshape": lambda n: jnp.ones(8).reshape(n, -1).sum(),
    "one_hot": lambda n: (jnp.arange(3)[:, None] == jnp.arange(n)).sum(),
    "random": lambda n: jax.random.bits(jax.random.key(0), (n,)).max(),
    "scan": lambda n: lax.scan(lambda c, _: (c + 1, None), 0, None, length=n)[0],
    "fori": lambda n: lax.fori_loop(0, n, lambda i, c: c + 1, 0),
    "shift": lambda n: jnp.int32(1) << jnp.asarray(n),
    "sort": lambda n: jnp.sort(jnp.ones((n,)))[-1:],
    "top_k": lambda n: lax.top_k(jnp.ones(5), n)[0].sum(),
    "vmap": lambda n: jax.vmap(lambda: 1.0, in_axes=(), axis_size=n)().sum(),
    "linspace": lambda n: jnp.linspace(0, 1, n).sum(),
}
MODES = {
    "compiled": lambda f: jax.jit(f)(),
    "types": lambda f: jax.eval_shape(f),
}
SECONDS = 0.4


def attacked(program, extent, mode):
    """A case: it may be refused, or take so long that it is interrupted; elements that can be counted are counted."""

    def case():
        found = None
        with at_most(SECONDS):
            found = MODES[mode](lambda: PROGRAMS[program](extent))
        if found is not None and mode == "compiled" and program in ("scan", "fori", "ones") and extent < 2**31:
            check(int(found) == max(extent, 0), f"{found} instead of {extent}")
        if found is not None and mode == "compiled" and program in ("broadcast", "iota") and extent > 0:
            check(int(found) == (2 if program == "iota" else 1), f"{found}")

    return case


def cases():
    for program in PROGRAMS:
        for extent in EXTENTS:
            for mode in MODES:
                yield f"{program}({extent}), {mode}", attacked(program, extent, mode)
