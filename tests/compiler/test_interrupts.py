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
from catena.compiler.machine import X86_64_V3, Sharing
from catena.compiler.native import compile as compiler

LOOPS = {
    "while, tiny body": lambda x: lax.while_loop(lambda c: c >= 0, lambda c: (c + 1) % 7, x),
    "while, arrays": lambda x: lax.while_loop(
        lambda c: c[0] >= 0, lambda c: (c[0] * 0, jnp.sin(c[1])), (x, jnp.ones(10_000))
    )[0],
    "scan, products": lambda x: lax.fori_loop(0, 2_000_000, lambda i, c: jnp.tanh(c @ c), jnp.ones((64, 64)) * x)[0, 0],
    "nested": lambda x: lax.fori_loop(
        0, 1000, lambda i, c: lax.fori_loop(0, 1_000_000, lambda j, d: jnp.sin(d) + 1, c), x * 1.0
    ),
    "a sum that is never stored": lambda x: (x + jnp.zeros((2**38,))).sum(),
    "an outer sum": lambda x: jnp.outer(jnp.ones(10**6, "int8") * x.astype("int8"), jnp.ones(10**6, "int8")).sum(),
}


@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupt_ends_a_loop_within_a_second(name):
    f = jax.jit(LOOPS[name]).lower(1).compile()
    sent = []

    def interrupt():
        sent.append(time.process_time())  # not of the clock: the machine may be busy
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(jnp.int32(1))
    assert time.process_time() - sent[0] < 5  # a second, or two by all threads


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


LONG = {
    "a sort": lambda: jnp.sort(jnp.sin(jnp.arange(2.0**26))),
    "sorts of rows": lambda: jnp.sort(jnp.sin(jnp.arange(2.0**26)).reshape(-1, 1024)),
    "an order": lambda: jnp.argsort(jnp.sin(jnp.arange(2.0**26)).reshape(-1, 1024)),
    "a batch of matrices": lambda: jnp.linalg.svd(jnp.sin(jnp.arange(2.0**24)).reshape(256, 256, 256)),
    "a product": lambda: jnp.ones((5000, 5000)) @ jnp.sin(jnp.arange(5000.0**2)).reshape(5000, 5000),
    "elementwise": lambda: jnp.sin(jnp.arange(2.0**31)),
    "a batch of small matrices": lambda: jnp.linalg.svd(jnp.sin(jnp.arange(2.0**25)).reshape(-1, 2, 2)),
    "transforms": lambda: jnp.fft.fft2(jnp.sin(jnp.arange(2.0**24)).reshape(4096, 4096)),
    "a selection": lambda: lax.top_k(jnp.sin(jnp.arange(2.0**29)), 5),
    "sums of rows": lambda: jnp.sin(jnp.arange(2.0**31)).reshape(2**20, -1).sum(1),
}


@pytest.mark.parametrize("name", LONG)
def test_what_takes_seconds_asks_for_signals(name):
    assert "call i1 @ask_python(" in jax.jit(LONG[name]).lower().compile().as_text()


@pytest.mark.parametrize("name", ["a sort", "an order of one row"])
def test_one_row_that_one_thread_sorts_asks_before_each_pass(name):
    """Where a processor does not compress vectors, rows are sorted by digits."""
    programs = LONG | {"an order of one row": lambda: jnp.argsort(jnp.sin(jnp.arange(2.0**26)))}
    text = compiler.text_of(jax.make_jaxpr(programs[name])(), machine=X86_64_V3)
    assert "_asking(" in text and "@ask_by_table" in text
    small = compiler.text_of(jax.make_jaxpr(lambda: jnp.sort(jnp.sin(jnp.arange(2.0**15))))(), machine=X86_64_V3)
    assert "_asking(" not in small


def in_groups(x):
    rows = x.reshape(-1, 64)
    square = rows[:3000].reshape(-1, 5, 8, 8)[:, 0]
    return (
        jnp.sin(x), x.sum(), rows.sum(0), rows.sum(1), jnp.cumsum(x), rows / rows.sum(1, keepdims=True),
        jnp.sort(x), jnp.argsort(x), jnp.sort(rows), jnp.argsort(rows), jnp.median(rows, 1), lax.top_k(x, 3),
        rows.T @ rows, rows[:512] @ rows[:512].T, jnp.argmax(x), jnp.linalg.inv(square + 9 * jnp.eye(8)),
        jnp.linalg.svd(square)[1], jnp.linalg.cholesky(square @ square.mT + jnp.eye(8)), jnp.fft.fft(rows),
    )  # fmt: skip


def test_work_that_is_interruptible_gives_the_same(monkeypatch):
    """All that is long is cut into groups; here, all that is not short."""
    monkeypatch.setenv("CATENA_CACHE", "0")
    x = jnp.asarray(np.random.default_rng(0).normal(size=200_000).astype(np.float32).reshape(-1, 64)[:3125].ravel())
    expected = jax.jit(in_groups)(x)
    monkeypatch.setattr(Sharing, "group", 1 << 17)
    text = jax.jit(lambda x: in_groups(x)).lower(x).compile()
    assert text.as_text().count("call i1 @ask_python(") > 10
    for found, wanted in zip(jax.tree.leaves(text(x)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_an_interrupted_import_of_numpys_leaves_functions_that_compile():
    """NumPy's polynomials, of which we take the nodes of a quadrature: imported again, the package lacks its modules."""
    program = """
        import builtins, sys
        imported = builtins.__import__
        def interrupted(name, globals=None, locals=None, names=(), level=0):
            if name == "polynomial" and globals and globals["__name__"] == "numpy.polynomial":
                raise KeyboardInterrupt
            return imported(name, globals, locals, names, level)
        builtins.__import__ = interrupted
        try:
            import numpy.polynomial
        except KeyboardInterrupt:
            print("interrupted")
        builtins.__import__ = imported
        import catena as jax
        print(jax.jit(lambda x: jax.scipy.special.ndtr(x).sum())(jax.numpy.zeros(4)))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["interrupted", "2.0"], run.stderr
