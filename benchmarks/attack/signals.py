"""Signals whose handlers raise, at any time in whatever runs: the exception arrives soon, and all works afterwards."""

import signal
import time

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import Wrong, check, slowness
from catena import lax

LATEST = 2.0  # seconds from the signal to the exception; one is promised. On a busy machine, as many times that
DELAYS = (0.01, 0.1, 0.35, 0.8)
N = 20_000_000


class Stop(BaseException):
    """What the handler raises."""


def again(f):
    """``f`` again and again, until something stops it."""

    def work():
        while True:
            f()

    return work


def of_program(make, *args):
    """A compiled program, called again and again; arguments that are functions are called first."""

    def prepare():
        given = [x() if callable(x) else x for x in args]
        f = jax.jit(make).lower(*given).compile()
        return again(lambda: f(*given))

    return prepare


def of_function(f, make):
    """A function, called again and again on what ``make`` gives."""

    def prepare():
        x = make()
        return again(lambda: f(x))

    return prepare


def numbers(shape=(N,)):
    """Random numbers of this shape."""
    return lambda: jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def matrices(count: int):
    """So many matrices of 300 rows."""
    return lambda: jnp.broadcast_to(jnp.ones((300, 300)) + jnp.eye(300), (count, 300, 300))


def compiling():
    count = iter(range(10**9))
    return again(lambda: jax.jit(lambda x: jnp.tanh(x) * next(count) + jnp.sort(x))(jnp.ones(64)))


def tracing():
    return again(lambda: jax.make_jaxpr(jax.grad(lambda x: sum(jnp.sin(x * i) for i in range(100))))(1.0))


def rest_in_callback(x):
    time.sleep(0.05)
    return x


WORK = {
    "while": of_program(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: (c + 1) % 7, x), jnp.int32(1)),
    "fori": of_program(lambda x: lax.fori_loop(0, 2_000_000_000, lambda i, c: jnp.sin(c) + 1, x), jnp.float32(1)),
    "nested": of_program(
        lambda x: lax.fori_loop(0, 10**6, lambda i, c: lax.fori_loop(0, 10**6, lambda j, d: jnp.sin(d) + 1, c), x),
        jnp.float32(1),
    ),
    "scan of products": of_program(
        lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, 10**6)[0], jnp.ones((64, 64))
    ),
    "sort": of_program(jnp.sort, numbers()),
    "sort of rows": of_program(lambda x: jnp.sort(x, -1), numbers((N // 3000, 3000))),
    "argsort": of_program(jnp.argsort, numbers((N // 4,))),
    "sort of two": of_program(lambda x: lax.sort((x, x), num_keys=2), numbers((N // 4,))),
    "elementwise": of_program(lambda x: jnp.sin(jnp.cos(jnp.exp(x))), numbers()),
    "sum of much": of_program(lambda x: (x + jnp.zeros((2**38,), "float32")).sum(), jnp.float32(1)),
    "outer sum": of_program(lambda x: jnp.outer(x, x).sum(), jnp.ones(10**6, "int8")),
    "few beside many": of_program(lambda x: (jnp.arange(3.0)[:, None] == x + jnp.zeros(2**38)).sum(), jnp.float32(1)),
    "few and many": of_program(lambda x: (jnp.arange(3.0)[:, None] * x < jnp.zeros(2**38)).any(1), jnp.float32(1)),
    "transform": of_program(lambda x: jnp.fft.rfft(x[: 1 << 24]), numbers()),
    "cumulative sum": of_program(jnp.cumsum, numbers()),
    "product": of_program(lambda x: x @ x, jnp.ones((2000, 2000))),
    "batched svd": of_program(lambda x: jnp.linalg.svd(x)[1], matrices(200)),
    "batched eigh": of_program(lambda x: jnp.linalg.eigh(x)[0], matrices(200)),
    "batched solve": of_program(lambda x: jnp.linalg.solve(x, x), matrices(200)),
    "convolution": of_program(lambda x: jnp.convolve(x[:4_000_000], x[:512]), numbers()),
    "random": of_program(lambda k: jax.random.normal(k, (N,)).sum(), jax.random.key(0)),
    "callback": of_program(
        lambda x: lax.fori_loop(0, 10**6, lambda i, c: jax.pure_callback(rest_in_callback, c, c), x), jnp.float32(1)
    ),
    "eager": lambda: again(lambda: jnp.sin(jnp.ones(100)) @ jnp.ones(100)),
    "eager sort": of_function(jnp.sort, numbers((N // 8,))),
    "eager svd": of_function(jnp.linalg.svd, matrices(100)),
    "eager eigh": of_function(jnp.linalg.eigh, matrices(100)),
    "eager inverse": of_function(jnp.linalg.inv, matrices(200)),
    "eager qr": of_function(jnp.linalg.qr, matrices(100)),
    "eager product": of_function(lambda x: x @ x, matrices(200)),
    "compiling": compiling,
    "tracing": tracing,
}
_prepared: dict = {}


def attacked(name: str, delay: float):
    """A case: work that is stopped after ``delay`` seconds."""

    def case():
        work = _prepared.get(name) or _prepared.setdefault(name, WORK[name]())

        def handler(*_):
            raise Stop

        before = signal.signal(signal.SIGALRM, handler)
        sent = time.perf_counter() + delay
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            work()
        except Stop:
            pass
        except BaseException as error:
            raise Wrong(f"{type(error).__name__} instead of what the handler raised: {error}") from error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        late = time.perf_counter() - sent
        check(late < LATEST or late < LATEST * slowness(), f"{late:.1f} s late")
        check(float(jax.jit(lambda x: jnp.sum(x * delay))(jnp.ones(4))) == float(np.float32(4 * np.float32(delay))))

    return case


def cases():
    for name in WORK:
        for delay in DELAYS:
            yield f"{name}, after {delay} s", attacked(name, delay)
