"""Threads that compile, run, loop, differentiate, configure and clear caches at once; users' code that waits."""

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import check, check_close
from catena import lax

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "runtime"))
import test_threads_and_forks as waiting  # noqa: E402

THREADS = 4
X = np.linspace(0.1, 1.0, 50).astype(np.float32)
shared = jax.jit(lambda x: jnp.tanh(x) * 2)


@jax.custom_jvp
def ruled(x):
    return jnp.sin(x)


ruled.defjvp(lambda p, t: (ruled(p[0]), t[0] * jax.jit(jnp.cos)(p[0])))


def configured(k):
    with jax.enable_x64(k % 2 == 1):
        check(jnp.arange(3.0).dtype == (np.float64 if k % 2 else np.float32), "a flag leaked between threads")
        check_close(jax.jit(lambda x: x * k)(X), X * k)


def cleared(k):
    if k % 8 == 0:
        jax.clear_caches()
        gc.collect()
    check_close(shared(X), np.tanh(X) * 2)


def donated(k):
    check_close(jax.jit(lambda x: x + k, donate_argnums=0)(jnp.asarray(X) + 0), X + k)


WORK = {
    "compile": lambda k: check_close(jax.jit(lambda x: jnp.sin(x) * k + 1)(X), np.sin(X) * k + 1),
    "the same program": lambda k: check_close(jax.jit(lambda x: jnp.cos(x) + 7)(X), np.cos(X) + 7),
    "the same function": lambda k: check_close(shared(X + k % 3), np.tanh(X + k % 3) * 2),
    "new shapes": lambda k: check_close(shared(np.ones(k % 40 + 1, np.float32)), np.full(k % 40 + 1, np.tanh(1) * 2)),
    "grad": lambda k: check_close(jax.grad(jax.jit(lambda x: ruled(x).sum() * k))(X), np.cos(X) * k),
    "vmap": lambda k: check_close(jax.jit(jax.vmap(lambda x: x * k))(X), X * k),
    "loop": lambda k: check_close(lax.fori_loop(0, 5, lambda i, c: c + k, X), X + 5 * k, 1e-3),
    "scan": lambda k: check_close(lax.scan(lambda c, x: (c + x, None), 0.0, X * k)[0], X.sum() * k, 1e-3),
    "parallel loop": lambda k: check_close(jax.jit(lambda x: (x + k).sum())(jnp.zeros(700_000)), 700_000 * k, 1e-2),
    "large arrays": lambda k: check_close((jnp.ones(200_000) * k)[::50_000], np.full(4, k)),
    "callback": lambda k: check_close(
        jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) + k, jax.ShapeDtypeStruct((50,), np.float32), x))(
            X
        ),
        X + k,
    ),
    "sort": lambda k: check_close(jax.jit(jnp.sort)(X[::-1] + k), X + k),
    "random": lambda k: check_close(
        jax.random.normal(jax.random.key(3), (5,)),
        np.asarray(jax.jit(lambda: jax.random.normal(jax.random.key(3), (5,)))()),
    ),
    "LAPACK": lambda k: check_close(jnp.linalg.solve(jnp.eye(8) * (k + 1), jnp.ones(8)), np.ones(8) / (k + 1)),
    "flags": configured,
    "clear": cleared,
    "donation": donated,
    "trees": lambda k: check(len(jax.tree.leaves([type(f"T{k}", (tuple,), {})()])) == 1),
}


def attacked(first, second):
    """A case: two kinds of work, two threads of each."""

    def case():
        start = threading.Barrier(THREADS)

        def work(j):
            start.wait()
            for k in range(1 + j, 5 + j):
                WORK[(first, second)[j % 2]](k)

        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(work, j) for j in range(THREADS)]:
                done.result()

    return case


def cases():
    for code in waiting.CODE:
        yield f"waiting {code.__name__}", lambda code=code: check_close(code(), 2.0)
    names = list(WORK)
    for i, first in enumerate(names):
        for second in names[i:]:
            yield f"{first} beside {second}", attacked(first, second)
