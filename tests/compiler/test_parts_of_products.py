"""Parts of what was computed, which products read where they lie."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.config import override

RNG = np.random.default_rng(0)
X = RNG.integers(-2, 3, (2, 24, 32)).astype(np.float32)
W = RNG.integers(-2, 3, (32, 96)).astype(np.float32)


def heads(x):
    """The three parts of each row, in heads."""
    return [a.reshape(*a.shape[:2], 2, -1) for a in np.split(x, 3, -1)]


def attention(x, w):
    q, k, v = (a.reshape(*a.shape[:2], 2, -1) for a in jnp.split(x @ w, 3, -1))
    return jnp.einsum("nqhd,nkhd->nhqk", q, k), jnp.einsum("nkhd,nkhe->nhde", k, v)


def by_numpy(x, w):
    q, k, v = heads(x @ w)
    return np.einsum("nqhd,nkhd->nhqk", q, k), np.einsum("nkhd,nkhe->nhde", k, v)


CASES = [
    (lambda y: y[..., 32:64] @ y[..., :32].mT, "columns"),
    (lambda y: y[0] @ y[1].T, "rows"),
    (lambda y: y[:, 3:20, 16:48].mT @ y[:, 3:20, 50:90], "rows and columns"),
    (lambda y: y[:, ::2, :32] @ y[:, 1::2, 64:].mT, "every second row"),
    (lambda y: y[..., :64:2] @ y[..., 1:65:2].mT, "every second column"),
    (lambda y: y[:, :, 32:64].reshape(48, 32) @ y[0, :, 64:].T, "rows of all members"),
    (lambda y: y[:, :20, 32:64].reshape(40, 32) @ y[0, :, 64:].T, "rows that do not follow each other evenly"),
    (lambda y: y[:, :, 32:64].reshape(2, 24, 4, 8).swapaxes(1, 2) @ y[:, None, :16, 64:72].mT, "heads of a part"),
    (lambda y: y[0, :, 32:64] @ y[1, 3, 32:64], "a vector"),
    (lambda y: (y[..., 32:64] @ y[..., :32].mT, y[..., 32:64] * 2, y[0, :, 32:64]), "what is a result, too"),
]


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=[what for _, what in CASES])
def test_whole_numbers(f, dtype):
    x, w = X.astype(dtype), W.astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        got = jax.tree.leaves(jax.jit(lambda x, w: f(x @ w))(x, w))
    for a, b in zip(got, jax.tree.leaves(f(x @ w)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("checked", [False, True])
def test_heads(checked):
    with override("jax_check_bounds", checked):
        got = jax.jit(attention)(X, W)
        for a, b in zip(got, by_numpy(X, W), strict=True):
            np.testing.assert_array_equal(a, b)


def test_transformed():
    xs = np.stack([X, X[::-1], X + 1])
    for a, *each in zip(jax.jit(jax.vmap(attention, (0, None)))(xs, W), *(by_numpy(x, W) for x in xs), strict=True):
        np.testing.assert_array_equal(a, np.stack(each))

    def loop(x, w):
        return jax.lax.fori_loop(0, 3, lambda i, x: jnp.clip((x @ w)[..., 32:64] @ (x @ w)[..., :32].mT, -1, 1) @ x, x)

    wanted = X
    for _ in range(3):
        y = wanted @ W
        wanted = np.clip(y[..., 32:64] @ y[..., :32].mT, -1, 1) @ wanted
    np.testing.assert_array_equal(jax.jit(loop)(X, W), wanted)


def test_gradients():
    """Of a sum of products of parts, by each of its factors."""
    got = jax.jit(jax.grad(lambda x, w: jnp.sum((x @ w)[0, :, :32] @ (x @ w)[1, :, 32:64].T), (0, 1)))(X, W)
    y = X @ W
    by_y = np.zeros_like(y)
    by_y[0, :, :32], by_y[1, :, 32:64] = y[1, :, 32:64].sum(0), y[0, :, :32].sum(0)
    np.testing.assert_array_equal(got[0], by_y @ W.T)
    np.testing.assert_array_equal(got[1], np.einsum("nij,nik->jk", X, by_y))


def test_large_ones():
    """By tiles that panels are packed for, before and by tasks, and by parts of numbers."""
    x = RNG.integers(-1, 2, (2, 192, 256)).astype(np.float32)
    w = RNG.integers(-1, 2, (256, 768)).astype(np.float32)
    y = x @ w
    q, k, v = np.split(y, 3, -1)
    f = lambda y: (y[..., :256] @ y[..., 256:512].mT, y[..., 256:512].mT @ y[..., 512:], y[0, :, 256:512] @ w[:, :99])
    for a, b in zip(jax.jit(lambda x, w: f(x @ w))(x, w), (q @ k.mT, k.mT @ v, k[0] @ w[:, :99]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_parts_are_not_copied():
    with override("jax_check_bounds", False):
        text = jax.jit(attention).lower(X, W).compile().as_text("program")
    assert not any("on its rows" in line for line in text.splitlines())
    assert sum("copy" in line for line in text.splitlines()) <= 1  # what is read across, at most
