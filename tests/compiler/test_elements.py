"""Small arrays in loops: those that are taken apart somewhere are computed element by element, whole ones by lanes."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import AARCH64, X86_64_V3
from catena.compiler.native.compile import program_of, text_of
from catena.compiler.plan import pieces
from catena.compiler.plan.program import walk
from catena.compiler.plan.steps import Launch

STEPS = 40


def lorenz(y):
    x, y, z = y
    return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def heun(y):
    """Steps of a method of two stages, each kept."""

    def step(y, _):
        k = lorenz(y)
        y = y + 0.005 * (k + lorenz(y + 0.01 * k))
        return y, y

    return lax.scan(step, y, None, length=STEPS)[1]


def sums(a, xs):
    """A recurrence of vectors whose elements nobody asks for."""
    return lax.scan(lambda c, x: (a * c + x, jnp.max(c)), jnp.zeros_like(a), xs)


def covariance(xs):
    """Outer products, added up: three by three."""

    def step(s, x):
        m, c = s
        d = x - m
        return (m + 0.1 * d, c + d[:, None] * d), c[0, 0]

    return lax.scan(step, (jnp.zeros(xs.shape[1]), jnp.zeros((xs.shape[1],) * 2)), xs)


def numbers(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def in_loop(f, *args) -> list[Launch]:
    """The loop nests of a program's loops, for a machine with vectors of eight floats."""
    program = program_of(jax.make_jaxpr(f)(*args), machine=X86_64_V3)
    return [s for depth, s in walk(program.body) if depth and isinstance(s, Launch)]


BATCHED = [(jax.jacfwd(heun), 3), (jax.vmap(heun), (3, 3)), (jax.vmap(heun), (5, 3))]


@pytest.mark.parametrize(("f", "shape"), BATCHED)
def test_what_is_taken_apart_has_no_lanes(f, shape):
    nests = [s.nest for s in in_loop(f, numbers(*np.atleast_1d(shape)))]
    assert {n.vector for n in nests if n.trips > 4} == {None}


@pytest.mark.parametrize("n", [8, 12, 16])
def test_whole_vectors_have_lanes(n):
    whole = [s.nest for s in in_loop(sums, numbers(n), numbers(STEPS, n))]
    assert [n.width > 1 for n in whole] == [True] * len(whole)


def test_slots_are_copied_as_they_are_read():
    """An array that is taken apart everywhere is copied by elements; a carry of one vector is copied whole."""
    apart = program_of(jax.make_jaxpr(jax.vmap(heun))(numbers(3, 3)), machine=X86_64_V3)
    whole = program_of(jax.make_jaxpr(sums)(numbers(16), numbers(STEPS, 16)), machine=X86_64_V3)
    assert set(pieces.of_slots(apart.body).values()) == {4}
    assert 64 not in [b.bytes for b in pieces.of_slots(whole.body)]


def test_rows_of_small_matrices_are_copied_as_rows():
    step = lambda c, x: (0.9 * c + x[:, None] * x, c @ x)  # noqa: E731
    f = lambda xs: lax.scan(step, jnp.zeros((5, 5)), xs)  # noqa: E731
    program = program_of(jax.make_jaxpr(f)(numbers(STEPS, 5)), machine=X86_64_V3)
    assert [size for b, size in pieces.of_slots(program.body).items() if b.bytes == 100] == [20] * 2
    c, xs = np.zeros((5, 5)), numbers(STEPS, 5)
    for x in xs.astype(np.float64):
        c = 0.9 * c + np.outer(x, x)
    np.testing.assert_allclose(jax.jit(f)(xs)[0], c, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("machine", [X86_64_V3, AARCH64])
@pytest.mark.parametrize("n", [12, 20, 33, 50])
def test_copies_are_of_the_vectors_that_loops_write(machine, n):
    """A longer one is no vector of a register: of 20 lanes, LLVM makes 20 scalars in each iteration."""
    f = lambda w, xs: lax.scan(lambda w, x: (0.9 * w + x, None), w, xs)[0]  # noqa: E731
    text = text_of(jax.make_jaxpr(f)(numbers(n), numbers(STEPS, n)), machine=machine)
    assert not [m for m in re.findall(r"(?:load|store) <(\d+) x ", text) if 4 * int(m) > machine.vector_bytes]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_functions_of_few_elements_have_lanes(n):
    """Each look-up in a table of a function's text, by a scalar, goes through memory."""
    f = lambda w, xs: lax.scan(lambda w, x: (jnp.tanh(0.9 * w + x), w), w, xs)  # noqa: E731
    w, xs = numbers(n), numbers(STEPS, n)
    assert n in [s.nest.width for s in in_loop(f, w, xs)]
    last, kept = jax.jit(f)(w, xs)
    for k in range(n):  # whatever the lanes
        np.testing.assert_array_equal(kept[:, k], jax.jit(f)(w[k], xs[:, k])[1])


@pytest.mark.parametrize("machine", [X86_64_V3, AARCH64])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_copies_of_slots_tell_their_sizes(machine, n):
    """What is copied by a size that is read from a table stays in memory."""
    text = text_of(jax.make_jaxpr(sums)(numbers(n), numbers(STEPS, n)), machine=machine)
    assert "llvm.memcpy" not in text


@pytest.mark.parametrize(("f", "shape"), BATCHED)
def test_the_same_bits_in_any_batch(f, shape):
    y = numbers(*np.atleast_1d(shape))
    found = np.asarray(jax.jit(f)(y))
    if np.ndim(shape):
        np.testing.assert_array_equal(found, [jax.jit(heun)(each) for each in y])
    with jax.disable_jit():
        np.testing.assert_allclose(found, np.asarray(f(y)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_outer_products(n):
    xs = numbers(STEPS, n)
    mean, products = np.zeros(n), np.zeros((n, n))
    for x in xs:
        d = x - mean
        mean, products = mean + 0.1 * d, products + np.outer(d, d)
    found = jax.jit(covariance)(xs)[0]
    np.testing.assert_allclose(found[0], mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], products, rtol=1e-5, atol=1e-5)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
@pytest.mark.parametrize("n", [2, 3, 5, 6, 16, 17])
def test_carries_of_any_size_are_copied(dtype, n):
    """Turned around in each step: what goes in, and what is left, are copies."""
    x = (numbers(n) > 0 if dtype == "bool" else 100 * numbers(n)).astype(dtype)
    kept = jax.jit(lambda x: lax.scan(lambda c, _: (c[::-1], c), x, None, length=3))(x)
    np.testing.assert_array_equal(kept[0], x[::-1])
    np.testing.assert_array_equal(kept[1], [x, x[::-1], x])


def test_loops_that_are_planned_stay_as_they_are():
    """What is small is asked when the first short line is planned, after the transposition of what is sorted."""
    x = np.random.default_rng(3).integers(-9, 9, (33, 7)).astype(np.int32)

    def step(i, a):
        a = jnp.sort(a.T.reshape(33, 7), 1)
        return lax.dynamic_update_slice(a, lax.dynamic_slice(a, (i - 1, 0), (1, 7)), (i, 0))

    wanted = x
    for i in range(8):
        wanted = np.sort(wanted.T.reshape(33, 7), 1)
        wanted[i] = wanted[i - 1]
    np.testing.assert_array_equal(jax.jit(lambda x: lax.fori_loop(0, 8, step, x))(x), wanted)
