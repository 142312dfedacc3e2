"""Corners of loops and branches: many branches, lanes that part, transposed scans, mapped batches, roots."""

import dataclasses

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from checkers import check_grads, check_jit, check_vmap

X = np.linspace(0.5, 1.5, 6).reshape(3, 2)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def check(fun, args, ulps=16, order=2):
    check_jit(fun, args, ulps=ulps)
    check_vmap(fun, args, ulps=ulps)
    check_grads(fun, args, order=order)


@pytest.mark.parametrize("count", [1, 2, 33, 200])
def test_switch_of_many_branches(count):
    branches = [lambda x, k=k: x * k + k for k in range(count)]
    which = np.array([0, count // 2, count - 1, count + 5, -3], np.int32)
    expected = [1.5 * k + k for k in np.clip(which, 0, count - 1)]
    switch = lambda i: lax.switch(i, branches, 1.5)
    for run in (switch, jax.jit(switch)):
        assert [float(run(i)) for i in which] == expected
    for run in (jax.vmap(switch), jax.jit(jax.vmap(switch))):
        np.testing.assert_array_equal(run(which), expected)
    gradient = jax.vmap(jax.grad(lambda x, i: lax.switch(i, branches, x)), (None, 0))
    np.testing.assert_array_equal(gradient(1.5, which), np.clip(which, 0, count - 1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_scan_with_split_transpose(split, reverse):
    def run(w, xs):
        return lax.scan(lambda c, x: (jnp.sin(w * c) + x, c * x), xs[0], xs, reverse=reverse, _split_transpose=split)

    check(run, (np.array([0.3, 0.7]), X), ulps=64)


def test_scan_of_nothing_and_of_trees():
    count = lambda c, _: ({"n": c["n"] + 1, "none": None}, None)
    assert lax.scan(count, {"n": 0, "none": None}, None, length=4)[0] == {"n": 4, "none": None}
    carry, ys = lax.scan(lambda c, x: (c, x), 1.0, jnp.zeros((0, 3)))
    assert float(carry) == 1.0 and ys.shape == (0, 3)


@pytest.mark.parametrize("compiled", [False, True])
def test_lanes_of_a_while_loop_stop_by_themselves(compiled):
    """Each lane has rounds of its own: a lane whose next round would overflow to NaN has stopped before it."""

    def halvings(x):
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))

    run = jax.vmap(halvings)
    got, rounds = (jax.jit(run) if compiled else run)(np.array([1.0, 8.0, 1e300, np.inf * 0, -5.0]))
    np.testing.assert_array_equal(rounds, [0, 3, 997, 0, 0])
    assert np.isnan(got[3]) and float(got[4]) == -5.0


def test_branches_of_lanes_do_not_meet_the_arguments_of_others():
    """Neither values nor derivatives of the branch not taken: 1 / 0 would make NaN of them."""
    safe = lambda x: lax.cond(x != 0, lambda v: jnp.sin(v) / v, lambda v: jnp.ones_like(v), x)
    x = np.array([0.0, 2.0])
    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_allclose(wrap(jax.vmap(safe))(x), [1, np.sin(2) / 2], rtol=1e-12)
        slopes = wrap(jax.vmap(jax.grad(safe)))(x)
        np.testing.assert_allclose(slopes, [0, np.cos(2) / 2 - np.sin(2) / 4], rtol=1e-12)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 5])
def test_map_in_batches_is_differentiable(batch_size):
    check(lambda xs: lax.map(lambda x: jnp.sin(x) * x[0], xs, batch_size=batch_size), (X,))


def test_custom_root_under_all_transformations():
    def cube_root(a):
        newton = lambda f, x: lax.fori_loop(0, 30, lambda _, v: v - f(v) / (3 * v * v), x)
        return lax.custom_root(lambda x: x**3 - a, a, newton, lambda g, y: y / g(1.0))

    np.testing.assert_allclose(cube_root(8.0), 2.0, rtol=1e-12)
    check(cube_root, (np.float64(5.0),))


def test_custom_linear_solve_under_all_transformations():
    matrix = np.array([[3.0, 1.0], [0.5, 2.0]])

    def solve(scale, b):
        a = matrix * scale
        of = lambda m: lambda _, r: jnp.linalg.solve(m, r)
        return lax.custom_linear_solve(lambda x: a @ x, b, of(a), of(a.T))

    np.testing.assert_allclose(solve(2.0, X[0]), np.linalg.solve(2 * matrix, X[0]), rtol=1e-12)
    check(solve, (np.float64(2.0), X[0]), ulps=64)


def test_bodies_that_are_equal_by_value_are_traced_once():
    traces = []

    @dataclasses.dataclass(frozen=True)
    class Adds:
        by: float

        def __call__(self, carry, _):
            traces.append(self.by)
            return carry + self.by, None

    class Counts:  # equal to itself alone, and may change
        by = 1.0

        def __call__(self, carry):
            return carry + self.by

    first, same, other = Adds(1.0), Adds(1.0), Adds(2.0)
    assert [float(lax.scan(f, 0.0, length=3)[0]) for f in (first, same, other, first)] == [3.0, 3.0, 6.0, 3.0]
    assert traces == [1.0, 2.0]
    changing = Counts()
    assert float(lax.while_loop(lambda x: x < 3, changing, 0.0)) == 3.0
    changing.by = 2.0
    assert float(lax.while_loop(lambda x: x < 3, changing, 0.0)) == 4.0
    unhashable = dataclasses.make_dataclass("Unhashable", [], namespace={"__call__": lambda self, c, _: (c + 1, None)})
    assert float(lax.scan(unhashable(), 0.0, length=2)[0]) == 2.0
