"""Forks while other threads are in the middle of something: the child does everything, and ends."""

import os
import signal
import threading
import time

import numpy as np

import catena as jax
import catena.numpy as jnp
from attack.outcomes import check, slowness
from attack.threads import WORK as CHILD
from catena import lax

parallel = jax.jit(lambda x: jnp.sin(x) * 2)
BUSY = {
    "compiling": lambda k: jax.jit(lambda x: jnp.cos(x) * k + jnp.sort(x * k))(jnp.ones(50 + k % 50)),
    "running": lambda k: parallel(jnp.ones(1_000_000)),
    "allocating": lambda k: jnp.ones(300_000) + jnp.zeros(300_000),
    "tracing": lambda k: jax.make_jaxpr(jax.grad(lambda x: jnp.sin(x * k)))(1.0),
    "a product": lambda k: jnp.ones((400, 400)) @ jnp.ones((400, 400)),
    "drawing": lambda k: jax.random.normal(jax.random.key(k), (10_000,)),
    "in a callback": lambda k: jax.pure_callback(lambda x: [time.sleep(0.001), x][1], np.float32(0), np.float32(k)),
    "looping": lambda k: lax.fori_loop(0, 100_000, lambda i, c: jnp.sin(c), 1.0),
}
SECONDS = 30


def attacked(busy, work):
    """A case: a child of a process in which a thread is busy."""

    def case():
        over = threading.Event()

        def run():
            k = 0
            while not over.is_set():
                k += 1
                BUSY[busy](k)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.05)
        try:
            child = os.fork()
            if not child:
                run_child(work)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            over.set()
            thread.join()
        check(status != -signal.SIGALRM, "the child hung")
        check(status == 0, f"the child ended with {status}")

    return case


def run_child(work: str) -> None:
    """What a child does, and its end."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(SECONDS * slowness()))
    code = 3
    try:
        for k in (1, 2):
            CHILD[work](k)
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode()[:500])
    finally:
        os._exit(code)


def cases():
    for busy in BUSY:
        for work in CHILD:
            yield f"{busy}, then {work}", attacked(busy, work)
