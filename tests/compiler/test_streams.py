"""Stores that go past the caches: of loops that write more than stays there."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import AARCH64, X86_64, X86_64_V3, X86_64_V4
from catena.compiler.native import compile as compiler
from catena.compiler.native import host

LIMIT = 1 << 12  # bytes, in these tests


def small(machine):
    """The machine, where so little is much already."""
    return machine._replace(memory=machine.memory._replace(streamed=LIMIT, streamed_squares=LIMIT))


@pytest.fixture
def much_is_little(monkeypatch):
    machine = small(host.this_machine())
    monkeypatch.setattr(host, "this_machine", lambda: machine)
    monkeypatch.setenv("CATENA_CACHE", "0")
    jax.clear_caches()
    yield
    jax.clear_caches()


def text(f, *args, machine=X86_64_V4):
    return compiler.text_of(jax.make_jaxpr(f)(*args), machine=small(machine))


def test_what_is_large_goes_past_the_caches_and_is_waited_for():
    x = jnp.ones(10_000)
    for machine in (X86_64_V3, X86_64_V4):
        written = text(lambda x: x * 2 + 1, x, machine=machine)
        assert "!nontemporal" in written and "sfence" in written
    rows = text(lambda x: x.reshape(400, 25)[:, ::-1] * 2, x)
    assert "nontemporal" not in rows  # which are short and meet inside of lines
    for f, machine in ((lambda x: x * 2 + 1, AARCH64), (lambda x: x[:500] * 2, X86_64_V4), (jnp.sum, X86_64_V4)):
        assert "nontemporal" not in text(f, x, machine=machine)
    inside = text(lambda x: jax.lax.fori_loop(0, 9, lambda i, y: y[::-1] * 2, x), x)
    assert "nontemporal" not in inside  # the next iteration reads it
    assert "nontemporal" not in compiler.text_of(jax.make_jaxpr(lambda x: x * 2)(x), machine=X86_64_V4)


def test_how_much_is_more_than_stays_in_caches():
    def tripled(mebibytes):
        x = jax.ShapeDtypeStruct((mebibytes << 18,), "float32")
        return compiler.text_of(jax.make_jaxpr(lambda x: x * 3)(x), machine=X86_64_V4)

    assert "!nontemporal" in tripled(16) and "!nontemporal" not in tripled(15)


def test_long_rows_that_meet_inside_of_lines_are_cut_at_lines():
    x = jnp.ones((10, 1003))
    scaled = lambda x: x * jnp.arange(10.0)[:, None]
    for machine in (X86_64_V3, X86_64_V4):
        written = text(scaled, x, machine=machine)
        assert "!nontemporal" in written and "masked.store" in written
    assert "!nontemporal" not in text(scaled, x, machine=X86_64)  # no masks, so no beginnings and ends
    halves = lambda x: scaled(x).astype(jnp.bfloat16)
    x = jnp.ones((10, 1103))
    assert "!nontemporal" not in text(halves, x, machine=X86_64_V3)  # none for these
    assert "!nontemporal" in text(halves, x, machine=X86_64_V4)


def normalised(x):
    centred = x - jnp.mean(x, 1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, 1, keepdims=True) + 1e-5)


def softmax(x):
    e = jnp.exp(x - jnp.max(x, 1, keepdims=True))
    return e / jnp.sum(e, 1, keepdims=True)


def test_what_kernels_over_the_same_rows_write_last_goes_past_the_caches():
    x = jnp.ones((1024, 1003))
    for f in (normalised, softmax):
        written = text(f, x)
        assert written.count("sfence()") == 1 and "!nontemporal" in written  # one for all blocks of rows
    again = text(lambda x: (e := jnp.exp(x - jnp.max(x, 1, keepdims=True)), jnp.sum(e, 1)), x)
    assert "!nontemporal" not in again  # what is read again, for the sum, is not far away


def adam(w, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m * jax.lax.rsqrt(v + 1e-8), m, v


def test_functions_that_take_less_than_memory_do_are_written_past_the_caches():
    """Of 5e6 floats on two threads, in ms: a step of Adam 5.2 -> 2.6, exp 0.88 -> 0.63, tanh of a sum 2.8 -> 1.7;
    two functions of one float gain nothing (softplus, sines and cosines 1.0), nor do long ones.
    """
    one = jnp.ones(1100)
    for f, count in ((jnp.exp, 1), (lambda x: jax.lax.rsqrt(x), 1), (adam, 4), (lambda x, y: x * jnp.tanh(y), 2)):
        assert "!nontemporal" in text(f, *[one + i for i in range(count)])
        assert "!nontemporal" not in text(f, *[one[:300] + i for i in range(count)])  # which caches hold
    for f in (lambda x: (jnp.sin(x), jnp.cos(x)), jax.nn.softplus, jax.lax.lgamma):
        assert "!nontemporal" not in text(f, one)
    assert "!nontemporal" not in text(lambda x: jnp.exp(x), jnp.ones(2200, jnp.bfloat16))  # computed as floats are


def test_lines_of_the_one_array_that_is_read_are_fetched_before():
    x = jnp.ones((1000, 2100))
    for f in (lambda x: x * 2, lambda x: x[:, ::-1], lambda x: x.astype(jnp.bfloat16)):
        written = text(f, x)
        assert "@llvm.prefetch" in written and "!nontemporal" in written
    assert "@llvm.prefetch" not in text(lambda x: x * 2, x[:600])  # which caches hold
    assert "@llvm.prefetch" not in text(lambda x, y: x + y, x, x + 1)  # of two, the one is read while the other waits


def test_squares_fetch_the_lines_that_they_write_in_part():
    written, near = (text(lambda x: x.T, jnp.ones((rows, rows))) for rows in (40, 30))
    of_writes = re.compile(r"@llvm.prefetch.p0\(ptr %\w+, i32 1")
    assert of_writes.search(written) and "!nontemporal" in written and not of_writes.search(near)
    bytes_ = text(lambda x: x.T, jnp.ones((80, 80), jnp.int8))  # whose squares write a quarter of a line
    assert of_writes.search(bytes_) and "!nontemporal" not in bytes_


def test_squares_of_whole_lines_go_past_the_caches_earlier():
    def turned(size, dtype):
        x = jax.ShapeDtypeStruct((size, size), dtype)
        return compiler.text_of(jax.make_jaxpr(lambda x: x.T)(x), machine=X86_64_V4)

    assert "!nontemporal" in turned(1450, "float32") and "!nontemporal" not in turned(1440, "float32")
    assert "!nontemporal" not in turned(2100, "bfloat16")  # half a line is nothing that memory takes by itself


def test_parts_of_what_is_large_go_past_the_caches():
    x = jnp.ones((10, 101))  # 4,040 bytes, of a result of twice as many
    joined = lambda x: jnp.concatenate([x, x * 2], axis=1)
    assert "!nontemporal" in text(joined, x) and "!nontemporal" not in text(joined, x[:5])


def test_the_next_rows_are_fetched_meanwhile():
    x = jnp.ones((1024, 1003))
    functions = text(softmax, x).split("define ")
    (fetching,) = [f for f in functions if "call void @llvm.prefetch" in f]
    assert "fdiv" not in fetching and "fsub" in fetching  # the exponentials: they take longest
    nearby = compiler.text_of(jax.make_jaxpr(softmax)(x), machine=X86_64_V4)
    assert "prefetch" not in nearby


CASES = {
    "chain": lambda x, y: jnp.abs(x) * 2 + y,
    "rows that begin inside of lines": lambda x, y: (x[:, :112] + 1, x[3:, 5:101] * y[:-3, :96]),
    "transposed": lambda x, y: x.T + y.T,
    "transposed in several types": lambda x, y: tuple(
        (x * 9).astype(t).T for t in (x.dtype, "int8", "int16", "bfloat16")
    ),
    "rows of planes transposed": lambda x, y: jnp.transpose((x + y).reshape(7, 29, 128), (2, 0, 1)),
    "padded": lambda x, y: jnp.pad(x * y, ((1, 2), (16, 0))),
    "several results": lambda x, y: (x + y, x - y, (x > y)),
    "joined": lambda x, y: jnp.concatenate([x, y, x], axis=1),
    "gathered": lambda x, y: x[::-1] + y[jnp.arange(203) % 7],
    "other sizes": lambda x, y: (x.astype(jnp.bfloat16), x.astype(jnp.int8), x > 0),
    "long rows": lambda x, y: (x.ravel()[:21860].reshape(20, 1093) * 2, y.ravel()[:20000].reshape(20, 1000) > 0),
    "parts of long rows": lambda x, y: jnp.concatenate([x.reshape(32, 812)[:, :505] + 1, y.reshape(32, 812)], axis=1),
    "rows of a few lines": lambda x, y: (x[:, :101] * 2 + y[:, 5:106], y[:, :117] > x[:, 11:]),
    "rows of a few lines at computed places": lambda x, y: x[jnp.arange(203) * 7 % 203][:, :101] + y[:, :101],
    "lanes at computed places": lambda x, y: jnp.take_along_axis(x, jnp.arange(203 * 101).reshape(203, 101) % 128, 1),
    "rows of a few lines, reversed": lambda x, y: x[:, 3:118][:, ::-1] + y[::-1, :115],
    "rows of a few lines, every second": lambda x, y: x.reshape(-1)[: 203 * 127 : 2][:12_800].reshape(100, 128)[:, :99],
    "rows of a few lines in several types": lambda x, y: (x * 9).reshape(58, 448)[:, 5:406].astype(jnp.int16),
    "parts alike": lambda x, y: jnp.concatenate([x[:, :101], y[:, :101], x[:, 1:102], y[:, :99]], axis=1),
    "parts alike one below the other": lambda x, y: jnp.concatenate([x[:, :101], y[:, 3:104]], axis=0),
    "swapped": lambda x, y: jnp.swapaxes((x - y).reshape(7, 29, 128)[:, :, :105], 0, 1),
    "long rows padded": lambda x, y: jnp.pad((x * y).reshape(29, 896), ((1, 1), (3, 5))),
    "read again": lambda x, y: jnp.sort(x + y, axis=1) @ jnp.ones((128, 2)),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_the_same(name, dtype, much_is_little):
    rng = np.random.default_rng(0)
    with jax.enable_x64(dtype == np.float64):
        x, y = (jnp.asarray(rng.normal(size=(203, 128)).astype(dtype)) for _ in range(2))
        compiled = jax.jit(CASES[name]).lower(x, y).compile()
        assert "nontemporal" in compiled.as_text() or "avx512bw" not in host.this_machine().features
        found = jax.tree.leaves(compiled(x, y))
        for ours, eager in zip(found, jax.tree.leaves(CASES[name](x, y)), strict=True):
            np.testing.assert_allclose(
                np.asarray(ours, float), np.asarray(eager, float), rtol=1e-5, atol=1e-6, strict=True
            )


@pytest.mark.parametrize("shape", [(5000,), (10, 500), (7, 499)])
def test_results_wherever_they_lie(shape, much_is_little):
    scale = np.arange(1, shape[0] + 1, dtype=np.float32).reshape(-1, *[1] * (len(shape) - 1))
    jaxpr = jax.make_jaxpr(lambda x, scale: x * scale + 1)(jnp.ones(shape), scale)
    executable = compiler.compile_region(compiler.lower(jaxpr))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for shift in range(0, 20):
        room = np.zeros(5040, np.float32)
        out = room[shift : shift + x.size].reshape(shape)
        assert executable.entry((x, scale), (out,)) == 0
        np.testing.assert_array_equal(out, x * scale + 1)
        assert not room[:shift].any() and not room[shift + x.size :].any()


@pytest.mark.share(6)
@pytest.mark.parametrize("f", [normalised, softmax])
@pytest.mark.parametrize("columns", [400, 1003, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_rows_have_the_same_bits_either_way(f, columns, dtype, monkeypatch):
    host_machine = host.this_machine()
    monkeypatch.setenv("CATENA_CACHE", "0")
    with jax.enable_x64(dtype == "float64"):
        x = jnp.asarray(np.random.default_rng(1).normal(size=(64, columns)), dtype)
        found = []
        for machine in (host_machine, small(host_machine)):
            monkeypatch.setattr(host, "this_machine", lambda: machine)
            jax.clear_caches()
            compiled = jax.jit(f).lower(x).compile()
            found.append((np.asarray(compiled(x)), "!nontemporal" in compiled.as_text()))
        jax.clear_caches()
    (near, _), (past, streamed) = found
    np.testing.assert_array_equal(near, past)
    assert streamed or not {"avx512bw", "avx2"} & host_machine.features or dtype == "bfloat16"


def test_threads_see_what_others_wrote(much_is_little):
    x = jnp.arange(1_000_003, dtype=jnp.float32)
    f = jax.jit(lambda x: jnp.flip(jnp.cumsum(jnp.flip(x + 1) - 1)) - x * 0)
    first = np.asarray(f(x))
    for _ in range(20):
        np.testing.assert_array_equal(f(x), first)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_parts_of_rows_are_written_in_turn(much_is_little, dtype):
    """A few rows at a time: the line that two parts share is complete before it leaves the caches."""
    x = np.random.default_rng(0).integers(-50, 50, (300, 2, 501)).astype(dtype)
    parts = x, x[:, :, :333], x[:, :, :347]
    for axis, arrays in ((2, parts), (1, (x, x[:, :1])), (0, (x, x[:7]))):
        run = jax.jit(lambda *xs: jnp.concatenate(xs, axis) + 0)  # noqa: B023 - it is called here
        np.testing.assert_array_equal(run(*arrays), np.concatenate(arrays, axis))
    made = jax.make_jaxpr(lambda *xs: jnp.concatenate(xs, 2))(*parts)
    steps = [s for _, s in compiler.program_of(made, machine=small(X86_64_V4)).steps()]
    assert [(type(s).__name__, len(s.nests())) for s in steps] == [("Rows", 3)]
    assert all(store.past_caches for nest in steps[0].nests() for store in nest.stores)
