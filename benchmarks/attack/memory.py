"""Too little memory for what is asked: a right result or an error, and the next call works."""

import resource
from pathlib import Path

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import check, check_close
from catena import lax

N = 20_000_000
MEGABYTES = (1, 20, 90, 200, 400)
USES = {
    "elementwise": lambda x: jnp.tanh(x) * 3,
    "sort": jnp.sort,
    "argsort": jnp.argsort,
    "cumsum": jnp.cumsum,
    "reverse": lambda x: x[::-1] + 0,
    "gather": lambda x: x[jnp.arange(N)[::-1]],
    "scatter": lambda x: jnp.zeros(N).at[jnp.arange(N)].set(x),
    "concatenate": lambda x: jnp.concatenate([x, x]),
    "product": lambda x: x[: 4000 * 4000].reshape(4000, 4000) @ x[:4000],
    "outer": lambda x: jnp.outer(x[:6000], x[:6000]),
    "convolve": lambda x: jnp.convolve(x, x[:64]),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), (N,)),
    "scan": lambda x: lax.scan(lambda c, y: (c, y + c), 1.0, x)[1],
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1],
    "gradient": jax.grad(lambda x: jnp.sum(jnp.sin(jnp.cos(x)) ** 3)),
    "fft": lambda x: jnp.fft.rfft(x),
    "inverse": lambda x: jnp.linalg.inv(x[: 1000 * 1000].reshape(1000, 1000)),
    "callback": lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((N,), np.float32), x),
}
MODES = {"eager": lambda f: f, "compiled": jax.jit}
_argument: list = []
_programs: dict = {}


def in_use() -> int:
    """Bytes of address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def attacked(use, megabytes, mode):
    """A case: what was compiled before runs with little memory left; then with enough."""

    def case():
        if not _argument:
            _argument.append(jnp.asarray(np.random.default_rng(0).normal(size=N).astype(np.float32)))
            jnp.linalg.inv(jnp.eye(600)), jax.jit(jnp.sort)(jnp.ones(70_000))  # threads, libraries
        (x,) = _argument
        if (use, mode) not in _programs:
            f = MODES[mode](USES[use])
            _programs[use, mode] = f if mode == "eager" else f.lower(x).compile()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (in_use() + (megabytes << 20), hard))
        try:
            found = _programs[use, mode](x)
            if hasattr(found, "shape"):
                check(found.size > 0)
            del found
        except MemoryError as error:
            check("alloc" in str(error).lower() or "memory" in str(error).lower(), f"not a word of memory: {error!r}")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        check_close(jax.jit(lambda x: x * megabytes)(np.ones(3, np.float32)), np.full(3, megabytes))

    return case


def cases():
    for use in USES:
        for mode in MODES:
            for megabytes in MEGABYTES:
                yield f"{use}, {megabytes} MB left, {mode}", attacked(use, megabytes, mode)
