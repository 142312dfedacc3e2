"""Memory for large results."""

import mmap
import threading

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.ref import Block
from catena.runtime import buffers, idle
from catena.runtime.buffers import PAGE, Mapping
from catena.runtime.native import Native


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="a system without huge pages on demand")
def test_a_page_of_which_most_stays_empty_is_no_huge_one():
    for used, whole in ((PAGE, 1), (3 * PAGE + 4096, 3), (2 * PAGE - 4096, 2), (4_000_000, 2), (40_000_000, 19)):
        mapping = Mapping(buffers.rounded(used), used)
        assert mapping._on_huge_pages(used) == mapping.start + whole * PAGE <= len(mapping.memory)


def test_memory_that_is_used_again_holds_a_larger_array():
    pool = buffers.Pool(1 << 26)
    first = pool.empty((9 * PAGE // 4 + 1000,), np.dtype(np.float32))
    size = next(iter(pool.by_size), None)
    del first
    again = pool.empty((9 * PAGE // 4 + 9000,), np.dtype(np.float32))
    again[:] = np.arange(again.size)
    assert size is None and pool.reused == 1
    np.testing.assert_array_equal(again, np.arange(again.size, dtype=np.float32))


def test_memory_that_nobody_uses_goes_back_at_the_second_look():
    pool = buffers.Pool(1 << 26)
    kept = pool.empty((PAGE,), np.dtype(np.uint8))
    kept[:] = 7
    for size in (PAGE, 3 * PAGE):
        pool.empty((size,), np.dtype(np.uint8))  # idle at once
    pool.give_back_idle()
    assert pool.statistics()["idle_bytes"] == 4 * PAGE
    used = pool.empty((3 * PAGE,), np.dtype(np.uint8))  # taken, and given back between the looks
    del used
    pool.give_back_idle()
    assert pool.statistics()["idle_bytes"] == 3 * PAGE
    pool.give_back_idle()
    assert pool.statistics()["idle_bytes"] == 0 and not any(pool.by_size.values())
    assert pool.statistics()["live_bytes"] == PAGE and np.all(kept == 7)


def test_temporaries_of_programs_that_do_not_run_go_back_at_the_second_look(monkeypatch):
    look = idle.look
    monkeypatch.setattr(idle, "look", lambda: None)  # the thread's, which may come between
    others = set(idle._watched)

    def f(x):
        return jnp.sort(jnp.outer(x, x), axis=0)[0] + jnp.sum(jnp.cumsum(jnp.outer(x, x + 1), axis=0), axis=0)

    x = jnp.arange(300, dtype=jnp.float32)
    compiled = jax.jit(f).lower(x).compile()
    first = np.asarray(compiled(x))
    (program,) = (k for k in set(idle._watched) - others if isinstance(k, Native))

    def has_memory() -> bool:
        return program._table[0] != 0  # where the memory is, and whether it was looked at

    assert has_memory()
    look()
    np.testing.assert_array_equal(compiled(x), first)  # in the arena that was looked at
    look()
    assert has_memory()
    np.testing.assert_array_equal(compiled(x), first)
    look()
    assert has_memory()  # it ran since, so its arena stays
    look()
    assert not has_memory()
    look()  # nothing is left to be given back
    np.testing.assert_array_equal(compiled(x), first)
    assert has_memory()


def test_a_program_that_runs_while_idle_memory_is_looked_for():
    x = jnp.arange(300_000, dtype=jnp.float32)
    f = jax.jit(lambda x: jnp.cumsum(jnp.sort(jnp.sin(x))))
    expected, stop = np.asarray(f(x)), threading.Event()

    def keep_looking():
        while not stop.wait(1e-4):  # the interpreter is the program's between two looks
            idle.look()

    looking = threading.Thread(target=keep_looking)
    looking.start()
    try:
        for _ in range(20):
            np.testing.assert_array_equal(f(x), expected)
    finally:
        stop.set()
        looking.join()


def test_one_thread_looks_for_idle_memory():
    buffers.pool.empty((PAGE + 12345,), np.dtype(np.uint8))
    buffers.pool.empty((5 * PAGE,), np.dtype(np.uint8))
    assert sum(t.name == "catena-idle" for t in threading.enumerate()) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16"])
def test_large_arrays_of_numpy_are_copied_to_the_memory_of_results(dtype):
    """It lies on huge pages, which is a tenth of a product's time; what is converted is so in pieces."""
    x = (np.arange(3_000_001 // 3 * 2).reshape(2, -1) % 251).astype(dtype).T
    before = buffers.pool.statistics()
    y = jnp.asarray(x, jnp.float32)
    after = buffers.pool.statistics()
    assert after["made"] + after["reused"] > before["made"] + before["reused"]
    np.testing.assert_array_equal(y, x.astype(np.float32))
    x[0, 0] = 7
    assert y[0, 0] == 0


def _place(x) -> int:
    """Where in a line of memory an Array begins."""
    return x.unsafe_buffer_pointer() % buffers.LINE


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8"])
@pytest.mark.parametrize("size", [4096, 5000, 40_000, 300_000])
def test_copies_of_numpys_arrays_begin_where_a_line_of_memory_does(dtype, size):
    """malloc says so of a quarter of the places it gives: of a dozen, some would not."""
    x = (np.arange(size) % 101).astype(dtype)
    copies = [jnp.asarray(x) for _ in range(12)]
    assert {_place(c) for c in copies} == {0}
    x[:] = 0
    for c in copies:
        np.testing.assert_array_equal(c, np.arange(size) % 101)


def test_results_begin_where_a_line_of_memory_does():
    f = jax.jit(lambda x: (x + 1, x[:-3] * 2, x.reshape(4, -1)[1:]))
    for _ in range(6):
        results = f(np.arange(24_000, dtype=np.float32))
        assert [_place(r) for r in results] == [0, 0, 0]


def test_memory_where_a_line_begins_is_an_arrays_own():
    """Donated, it is worked in; a snapshot of a reference in it stays as it is."""
    x = jnp.asarray(np.zeros(20_000, np.float32))
    place = x.unsafe_buffer_pointer()
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert y.unsafe_buffer_pointer() == place
    ref = jax.new_ref(jnp.asarray(np.zeros(20_000, np.float32)))
    before = ref[...]
    ref[3] = 5.0
    assert before[3] == 0 and ref[3] == 5
    part = np.asarray(y)[7:]  # of NumPy's: somebody else's memory
    assert part.base is not None and not isinstance(part.base, Block)
