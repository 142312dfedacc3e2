"""Ctrl-C ends native loops."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import catena as jax
from catena import lax
from catena import numpy as jnp

LOOPS = {
    "while, tiny body": lambda x: lax.while_loop(lambda c: c >= 0, lambda c: (c + 1) % 7, x),
    "while, arrays": lambda x: lax.while_loop(
        lambda c: c[0] >= 0, lambda c: (c[0] * 0, jnp.sin(c[1])), (x, jnp.ones(10_000))
    )[0],
    "scan, products": lambda x: lax.fori_loop(0, 2_000_000, lambda i, c: jnp.tanh(c @ c), jnp.ones((64, 64)) * x)[0, 0],
    "nested": lambda x: lax.fori_loop(
        0, 1000, lambda i, c: lax.fori_loop(0, 1_000_000, lambda j, d: jnp.sin(d) + 1, c), x * 1.0
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupt_ends_a_loop_within_a_second(name):
    f = jax.jit(LOOPS[name]).lower(1).compile()
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(jnp.int32(1))
    assert time.perf_counter() - sent[0] < 5  # a second, on a machine that is not busy


def test_handlers_run_during_a_loop_and_may_raise_what_they_like():
    count = 0

    def handler(*_):
        nonlocal count
        count += 1
        if count == 2:
            raise LookupError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        with pytest.raises(LookupError, match="enough"):
            jax.jit(LOOPS["while, tiny body"])(jnp.int32(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_loops_in_other_threads_go_on():
    results = []
    body = lambda i, c: (c * 3 + 1) % 1000
    f = jax.jit(lambda n: lax.fori_loop(0, n, body, 1))
    work = threading.Thread(target=lambda: results.append(int(f(200_000_000))))
    work.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    work.join()
    assert len(results) == 1


def test_a_short_loop_is_not_slowed_by_questions():
    compiled = jax.jit(lambda x: lax.fori_loop(0, 10, lambda i, c: jnp.sin(c), x)).lower(1.0).compile()
    assert "ask_python" not in compiled.as_text()
    assert "ask_python" in jax.jit(LOOPS["while, arrays"]).lower(1).compile().as_text()


def test_interrupted_programs_work_afterwards():
    script = """
        import os, signal, threading
        import catena as jax
        from catena import lax
        f = jax.jit(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5), (0, 1.0)))
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                f(2_000_000_000)
        except KeyboardInterrupt:
            print(f(3)[1])
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert np.float32(out.stdout) == 0.125, out.stderr
