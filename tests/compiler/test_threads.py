"""Parallel loops: same results on one thread and on two, from many Python threads, and after a fork."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V3
from catena.compiler.native.compile import program_of
from catena.compiler.native.workers import pool
from catena.runtime.threads import SPLIT
from compiled import compile_fn


def test_functions_in_loops_are_shared_where_there_are_several_for_each_element():
    """Those of a cell of an LSTM, but not a single one, for which it costs more to bring elements to another core."""

    def steps(f):
        loop = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 9, lambda _, x: f(x), x))(jnp.ones((16, 128)))
        return str(program_of(loop, machine=X86_64_V3))

    assert "tasks of" in steps(lambda x: jnp.tanh(jnp.exp(jnp.sin(jnp.cos(jnp.tanh(x + 1) + 1) + 1) + 1)))
    assert "tasks of" not in steps(lambda x: jnp.tanh(x + 1))


@pytest.mark.parametrize("chunks", [1, 2, 7, 64, 1000, 65_535, 65_536, 70_001])
def test_each_chunk_is_run_once_the_first_ones_by_the_caller(chunks):
    """What a loop leaves in a core's cache the next one reads there. Counts of 16 bits are enough below 65,536."""
    caller, ran = threading.get_ident(), []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    def chunk(_, k):
        ran.append((threading.get_ident() == caller, k))

    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(pool().address)
    for _ in range(20 if chunks < 1000 else 1):
        ran.clear()
        run(ctypes.cast(chunk, ctypes.c_void_p), None, chunks, None)
        assert sorted(k for _, k in ran) == list(range(chunks))
        own = sorted(k for by_caller, k in ran if by_caller)
        assert chunks >= SPLIT or own == list(range(len(own)))


def test_callers_and_workers_meet_however_long_a_worker_waited():
    """Whether it spins, falls asleep or sleeps when the next loop comes."""
    exe, x = big()
    want = exe(x)[0]
    for microseconds in range(0, 1400, 13):
        end = time.perf_counter() + microseconds * 1e-6
        while time.perf_counter() < end:
            pass
        np.testing.assert_array_equal(exe(x)[0], want)


def big():
    x = np.random.default_rng(1).normal(size=1_000_000).astype(np.float32)
    return compile_fn(lambda b, x: b.map("tanh", b.map("exp", x)), x), x


def test_many_python_threads_call_at_once():
    exe, x = big()
    want, wrong = exe(x)[0], []

    def work():
        for _ in range(10):
            if not np.array_equal(exe(x)[0], want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(6)]
    [t.start() for t in workers]
    [t.join() for t in workers]
    assert not wrong


def test_many_python_threads_compile_at_once():
    results = {}

    def work(k):
        x = np.full(100 + k, k, np.float32)
        results[k] = compile_fn(lambda b, x: b.map("mul", x, x), x)(x)[0]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in workers]
    [t.join() for t in workers]
    assert all(np.array_equal(results[k], np.full(100 + k, k * k, np.float32)) for k in range(8))


FORK = """
import os, numpy as np, warnings
warnings.simplefilter("ignore")
from compiled import compile_fn
x = np.ones(1_000_000, np.float32)
exe = compile_fn(lambda b, x: b.map("tanh", b.map("exp", x)), x)
want = exe(x)[0]
child = os.fork()
if not child:
    os._exit(0 if np.array_equal(exe(x)[0], want) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_programs_run_after_a_fork():
    env = {**os.environ, "CATENA_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", FORK], env=env, check=True, timeout=60)


def test_blas_setting_is_restored():
    from catena.runtime import library

    control = library.bundled()
    x = np.ones((300, 300), np.float32)
    exe = compile_fn(lambda b, x: b.dot_general(x, x, (((1,), (0,)), ((), ())), np.float32), x)
    if control is None:
        return
    before = control.scipy_openblas_get_num_threads64_()
    control.scipy_openblas_set_num_threads64_(3)
    try:
        exe(x)
        assert control.scipy_openblas_get_num_threads64_() == 3
    finally:
        control.scipy_openblas_set_num_threads64_(before)
