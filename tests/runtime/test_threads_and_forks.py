"""User code that waits for other threads while it is called, locks that are free in a fork's child, memory that is its own."""

import os
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core import locks
from catena.extend import core as extend_core
from catena.interpreters import batching, mlir
from catena.transform.canonical import Generations

SRC = Path(jax.__file__).parent


def elsewhere() -> float:
    """What another thread computes, which traces, loops, flattens, differentiates and compiles for it; 2.0.

    It must come, whatever of ours called the code that waits for it.
    """

    class Fresh(tuple):
        pass

    def work():
        @jax.jit
        def f(x):
            return jax.lax.fori_loop(0, 2, lambda i, y: y + x[0], 0.0)

        jax.tree.map(lambda x: x, [Fresh()])
        with jax.debug_nans(True):
            return float(jax.grad(f)((1.0,))[0])

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=60)


def in_jvp_rule():
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * elsewhere()))
    return jax.grad(jax.jit(lambda x: f(x)))(1.0)


def in_vjp_rule():
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * elsewhere(),))
    return jax.grad(jax.jit(lambda x: f(x)))(1.0)


def in_traced_function():
    return jax.jit(lambda: jnp.ones(()) * elsewhere())()


def in_loop_body():
    return jax.jit(lambda x: jax.lax.scan(lambda c, _: (c * elsewhere(), None), x, None, 1)[0])(1.0)


def in_checkpointed_function():
    return jax.grad(jax.jit(jax.checkpoint(lambda x: x * elsewhere())))(1.0)


def in_callback():
    return jax.jit(lambda: jax.pure_callback(lambda: np.float32(elsewhere()), jnp.float32(0)))()


def in_callback_of_a_parallel_program():
    def f(x):
        y = jnp.tanh(x) * 0
        return y + jax.pure_callback(lambda: np.float32(elsewhere()), jnp.float32(0))

    return jax.jit(f)(jnp.ones(1_000_000))[-1]


def in_flattening():
    class Node:
        pass

    def flatten(node):
        return (elsewhere(),), None

    jax.tree_util.register_pytree_node(Node, flatten, lambda _, children: children[0])
    return jax.jit(lambda x: x)(Node())


def in_metaclass():
    class Meta(type):
        def __hash__(cls):
            return int(elsewhere())

        def __getattr__(cls, name):
            elsewhere()
            raise AttributeError(name)

    class Leaf(metaclass=Meta):
        pass

    class Row(tuple, metaclass=Meta):
        __slots__ = ()

    assert len(jax.tree.leaves([Leaf(), Row()])) == 2
    jax.tree_util.register_pytree_node(Leaf, lambda _: ((), None), lambda *_: Leaf())
    return 2.0 + len(jax.tree.leaves(Leaf()))


class Static:
    """A static argument that is compared slowly."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        elsewhere()
        return 7

    def __eq__(self, other):
        elsewhere()
        return self.value == other.value


def in_comparison_of_static_arguments():
    f = jax.jit(lambda x, s: x * s.value, static_argnums=1)
    assert f(1.0, Static(3.0)) == 3
    return f(1.0, Static(2.0))


def in_comparison_of_parameters():
    p = extend_core.Primitive("waits")
    p.def_impl(lambda x, *, factor: x * factor.value)
    p.def_abstract_eval(lambda x, *, factor: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, factor: x * factor.value, multiple_results=False))
    batching.primitive_batchers[p] = lambda args, dims, **params: (p.bind(*args, **params), dims[0])

    def f(x):
        return jax.lax.fori_loop(0, 1, lambda i, y: p.bind(y, factor=Static(2.0)), x)

    assert f(1.0) == 2
    return jax.jit(f)(1.0)


def in_jax_array():
    class Boxed:
        def __jax_array__(self):
            return jnp.float32(elsewhere())

    return jnp.add(Boxed(), 0.0)


def in_lowering_rule():
    p = extend_core.Primitive("lowers")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * elsewhere(), multiple_results=False))
    return jax.jit(p.bind)(1.0)


def in_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *args, **kwargs: elsewhere()
        jax.jit(lambda x: x[0], donate_argnums=0)(jnp.ones(3))
    return 2.0


CODE = [value for name, value in globals().items() if name.startswith("in_")]


@pytest.mark.parametrize("code", CODE, ids=lambda f: f.__name__)
def test_user_code_may_wait_for_another_thread(code):
    assert float(code()) == 2.0


def test_locks_are_made_in_one_place():
    makers = re.compile(r"(?<!asyncio\.)\b(R?Lock|Condition|(Bounded)?Semaphore|Barrier)\(")
    made = {str(path.relative_to(SRC)) for path in SRC.rglob("*.py") if makers.search(path.read_text())}
    assert made == {"core/locks.py"}


def in_child(program: str) -> str:
    """What a program prints."""
    env = {**os.environ, "CATENA_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


FORK_WHILE_LOCKED = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import catena as jax, catena.numpy as jnp
from catena.core import locks, lazy
f = jax.jit(lambda x: jnp.sin(x) * 2)
x = f(jnp.ones(1_000_000))
taken, free = threading.Event(), threading.Event()
def hold():
    held = list(locks._locks)  # modules that are imported meanwhile make others
    for lock in held:
        lock.acquire()
    taken.set()
    free.wait()
    for lock in held:
        lock.release()
def call_llvm():  # a fork waits for what LLVM does
    with lazy.llvm().ffi.lib._lock:
        called.set()
        time.sleep(0.2)
called = threading.Event()
for work in (hold, call_llvm):
    threading.Thread(target=work, daemon=True).start()
taken.wait(), called.wait()
child = os.fork()
if not child:
    y = jax.jit(lambda x: jnp.cos(x).sum())(x)
    os._exit(0 if abs(float(y) + 111_000) < 1_000 else 1)
free.set()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORKED_MEMORY = """
import os, warnings
warnings.simplefilter("ignore")
import catena as jax, catena.numpy as jnp, numpy as np
f = jax.jit(lambda x: x * jnp.ones(300_000))
kept, idle = f(1.0), f(1.0)
del idle
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
mine = f(5.0 if child else 7.0)
if not child:
    jax.jit(lambda x: x * 0 + 9, donate_argnums=0)(kept)
    os.write(to_parent[1], b"x")
    os.read(to_child[0], 1)
    os._exit(int(np.asarray(mine).max()))
os.read(to_parent[0], 1)
os.write(to_child[1], b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.unique(np.asarray(mine)), np.unique(np.asarray(kept)))
"""

FORK_WHILE_LOADING = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
os.environ["CATENA_CACHE"] = "0"  # programs that are found on disk do not load the compiler
import catena as jax
from catena.core import lazy
started = threading.Event()
class Slowly:  # finds nothing, and takes its time
    def find_spec(self, name, path=None, target=None):
        if name == "catena.compiler.native.compile":
            started.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slowly())
threading.Thread(target=lambda: jax.jit(lambda x: x + 1)(1), daemon=True).start()
started.wait()
child = os.fork()
if not child:
    import signal
    signal.alarm(30)
    os._exit(int(jax.jit(lambda x: x + 4)(1)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")


@needs_fork
def test_a_child_of_a_fork_finds_no_lock_taken():
    assert in_child(FORK_WHILE_LOCKED) == "0\n"


@needs_fork
def test_a_fork_waits_for_llvm_where_programs_are_found_on_disk(folder):
    """Nothing was compiled in the parent, which did not know of LLVM's lock: the child waited for ever."""
    in_child(FORK_WHILE_LOCKED.partition("taken, free")[0])
    assert in_child(FORK_WHILE_LOCKED) == "0\n"


@needs_fork
def test_a_fork_waits_for_what_another_thread_imports():
    """The import system's locks stay taken in the child, which waited for ever for a module of ours."""
    assert in_child(FORK_WHILE_LOADING) == "5\n"


@needs_fork
def test_a_child_of_a_fork_writes_into_memory_of_its_own():
    """The pool's mappings were shared: a child's results appeared in its parent's arrays."""
    assert in_child(FORKED_MEMORY) == "7 [5.] [1.]\n"


def test_work_is_shared_by_the_threads_that_ask_for_it():
    shared, started, go = locks.Shared(), threading.Event(), threading.Event()
    calls = []

    def make():
        calls.append(threading.get_ident())
        started.set()
        go.wait(60)
        return object()

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(shared, "key", make)
        started.wait(60)
        others = [pool.submit(shared, "key", make) for _ in range(2)]
        while pool._work_queue.qsize():
            pass
        go.set()
        results = {future.result(60) for future in (first, *others)}
    assert len(results) == len(calls)
    assert shared("key", lambda: "again") == "again"


def test_work_that_fails_is_tried_by_whoever_waited():
    shared = locks.Shared()

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared("key", fail)
    assert shared("key", lambda: 1) == 1
    assert shared("outer", lambda: shared("outer", lambda: 2)) == 2  # a finaliser that asks in the middle


def test_what_there_must_be_one_of_is_made_once():
    calls = []

    @locks.made_once
    def make(n):
        calls.append(n)
        return object()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(make, [1] * 16))) == 1
    assert calls == [1]


def test_generations_forget_what_is_not_used():
    known = Generations(8)
    for i in range(100):
        assert known.setdefault(i, str(i)) == str(i)
        assert known.setdefault("used", "first" if i == 0 else "later") == "first"
        assert len(known) <= 8
    assert known.setdefault(99, "other") == "99"
    assert known.setdefault(0, "other") == "other"
