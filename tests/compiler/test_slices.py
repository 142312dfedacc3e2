"""Pieces of arguments and constants, which products read where they lie."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

RNG = np.random.default_rng(0)
LAYERS = RNG.integers(-4, 5, (5, 24, 24)).astype(np.float32)
X = RNG.integers(-4, 5, (9, 24)).astype(np.float32)
LONG = RNG.integers(-4, 5, (4, 16, 300)).astype(np.float32)


def copies(f, *args) -> int:
    """How many of a program's steps copy what is as large as a layer."""
    text = jax.jit(f).lower(*args).compile().as_text("program")
    return sum("copy" in line and "576" in line for line in text.splitlines())


def check(f, *args):
    """Whole numbers: the same however they are added up."""
    got, want = jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(f(*map(np.asarray, args)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: x @ w[3],
        lambda w, x: x @ w[4].T,
        lambda w, x: w[0] @ x.T,
        lambda w, x: w[2, 5:17] @ x[4],
        lambda w, x: x[4] @ w[1],
        lambda w, x: x @ w[1:2].reshape(24, 24),
        lambda w, x: x @ w[2] @ w[3] @ w[2],
        lambda w, x: (w[1:3] @ x.T, w[3:] @ x.T),
        lambda w, x: x @ w.reshape(120, 24)[24:48],
        lambda w, x: (x @ w[2], w[2], w[2] + 1),
        lambda w, x: x[3:7] @ w[2],
    ],
)
def test_products(f):
    check(f, LAYERS, X)


def test_long_sums():
    check(lambda w, z: w[2] @ z, LONG, LONG[0, 0])
    check(lambda w, z: w[2] @ z[:3].T, LONG, LONG[0])


def test_they_are_not_copied():
    assert copies(lambda w, x: x @ w[3], LAYERS, X) == 0
    assert copies(lambda w, x: x @ w[3] @ w[1:2].reshape(24, 24), LAYERS, X) == 0
    assert copies(lambda w, x: x @ w[:, 3:4, :].reshape(5, 24).T, LAYERS, X) == 0  # smaller, and not in one piece
    assert copies(lambda w, x: x @ (w[3] + 1), LAYERS, X) == 0


def test_of_constants():
    w = jnp.asarray(LAYERS)
    assert copies(lambda x: x @ w[3], X) == 0
    check(lambda x: x @ w[3], X)


def test_in_loops_and_branches():
    def loop(w, x):
        return jax.lax.fori_loop(0, 3, lambda i, c: jnp.clip(c @ w[2] + c @ w[4], -9, 9), x)

    def scan(w, x):
        pair = jnp.stack([w, w[::-1]], 1)
        return jax.lax.scan(lambda c, p: (jnp.clip(c @ p[0] - c @ p[1], -9, 9), c @ p[1]), x, pair)

    def branch(w, x, i):
        return jax.lax.switch(i, [lambda c: c @ w[1], lambda c: c @ w[1] + c @ w[3], lambda c: c], x) + x @ w[1]

    w, x = jnp.asarray(LAYERS), jnp.asarray(X)
    c = X
    for _ in range(3):
        c = np.clip(c @ LAYERS[2] + c @ LAYERS[4], -9, 9)
    np.testing.assert_array_equal(jax.jit(loop)(w, x), c)
    c, ys = X, []
    for a, b in zip(LAYERS, LAYERS[::-1]):
        ys.append(c @ b)
        c = np.clip(c @ a - c @ b, -9, 9)
    got, stacked = jax.jit(scan)(w, x)
    np.testing.assert_array_equal(got, c)
    np.testing.assert_array_equal(stacked, np.stack(ys))
    for i, more in enumerate([X @ LAYERS[1], X @ LAYERS[1] + X @ LAYERS[3], X]):
        np.testing.assert_array_equal(jax.jit(branch)(w, x, i), more + X @ LAYERS[1])


def test_carries_that_change():
    def step(i, c):
        w, x = c
        x = jnp.clip(x @ w[2], -9, 9)
        return w.at[2].set(w[1]).at[1].add(1.0), x + x @ w[2] * 0.0

    w, x = np.array(LAYERS), X
    for _ in range(3):
        x = np.clip(x @ w[2], -9, 9)
        w = w.copy()
        w[2] = w[1]
        w[1] += 1
    got = jax.jit(lambda w, x: jax.lax.fori_loop(0, 3, step, (w, x)))(LAYERS, X)
    np.testing.assert_array_equal(got[0], w)
    np.testing.assert_array_equal(got[1], x)


def test_donated_arguments_are_not_overwritten_before():
    def step(w, x):
        y = x @ w[3]
        return w * 2 + jnp.sum(y), y @ w[1]

    def update(w, x):
        return w.at[3].set(w[3] @ w[2]), x @ w[3]

    for f in (step, update):
        wanted = jax.tree.map(np.asarray, jax.jit(f)(LAYERS, X))
        got = jax.jit(f, donate_argnums=0)(jnp.array(LAYERS), X)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    y = X @ LAYERS[3]
    np.testing.assert_array_equal(jax.jit(step)(LAYERS, X)[0], LAYERS * 2 + y.sum())


def test_transformed():
    f = lambda w, x: jnp.sum((x @ w[3] @ w[1]) ** 2)
    got = jax.jit(jax.grad(f))(LAYERS, X)
    y = X @ LAYERS[3]
    z = 2 * (y @ LAYERS[1])
    wanted = np.zeros_like(LAYERS)
    wanted[1], wanted[3] = y.T @ z, X.T @ (z @ LAYERS[1].T)
    np.testing.assert_array_equal(got, wanted)
    batched = jax.jit(jax.vmap(lambda w, x: x @ w[1], (None, 0)))(LAYERS, np.stack([X, X + 1]))
    np.testing.assert_array_equal(batched, np.stack([X, X + 1]) @ LAYERS[1])
