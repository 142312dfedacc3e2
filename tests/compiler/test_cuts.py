"""Long runs of elementwise work end kernels where little is alive, with the same numbers."""

import numpy as np

import catena as jax
import catena.numpy as jnp

RNG = np.random.default_rng(0)


def weighted(x, count: int):
    """A weighted mean of shifted rows, all weights different: each term is read twice."""
    total = weights = 0.0
    for k in range(count):
        row = x[k : k + 4096]
        w = jnp.exp(-((row - x[:4096]) ** 2) - 0.01 * k)
        total, weights = total + w * row, weights + w
    return total / weights


def reference(x, count: int):
    rows = np.stack([x[k : k + 4096] for k in range(count)]).astype(np.float64)
    w = np.exp(-((rows - rows[0]) ** 2) - 0.01 * np.arange(count)[:, None])
    return (w * rows).sum(0) / w.sum(0)


def test_sums_of_many_terms_store_sums_and_no_terms():
    x = RNG.normal(size=4200).astype(np.float32)
    f = jax.jit(lambda x: weighted(x, 60))
    np.testing.assert_allclose(f(x), reference(x, 60), rtol=1e-5, atol=1e-5)
    temporary = f.lower(x).compile().memory_analysis().temp_size_in_bytes
    assert temporary <= 6 * 4 * 4096  # two sums at a time; the terms would be sixty arrays


def scaled_steps(x, ws):
    """All gradients first, then all moments of these, and then a sum over them, as lists of Python are written."""
    gradients = [w * 0.1 + x for w in ws]
    moments = [(0.9 * g, 0.999 * g * g) for g in gradients]
    return sum(m / (jnp.sqrt(v) + 1e-3) for m, v in moments)


def test_terms_that_are_computed_first_are_not_stored():
    for count in (8, 30, 75):
        x, ws = RNG.normal(size=4096).astype(np.float32), list(RNG.normal(size=(count, 4096)).astype(np.float32))
        f = jax.jit(scaled_steps)
        g = np.stack(ws).astype(np.float64) * 0.1 + x
        np.testing.assert_allclose(f(x, ws), (0.9 * g / (np.sqrt(0.999 * g * g) + 1e-3)).sum(0), rtol=1e-4, atol=1e-4)
        temporary = f.lower(x, ws).compile().memory_analysis().temp_size_in_bytes
        assert temporary <= 2 * 4 * 4096  # the sum so far


def test_terms_that_are_computed_first_and_results_too():
    """Gradients are results, and their sums over rows are read by all of the second half."""

    def f(x, ws):
        gradients = [jnp.tanh(w * 0.1 + x) for w in ws]
        totals = [g.sum(1, keepdims=True) for g in gradients[::9]]
        return (
            sum(g * g / (1 + abs(g) + totals[i % len(totals)] ** 2) for i, g in enumerate(gradients)),
            gradients[7],
            totals,
        )

    x, ws = RNG.normal(size=(5, 300)).astype(np.float32), list(RNG.normal(size=(60, 5, 300)).astype(np.float32))
    with jax.disable_jit():
        expected = jax.tree.leaves(f(x, ws))
    for a, b in zip(jax.tree.leaves(jax.jit(f)(x, ws)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_as_the_same_program_without_cuts():
    x = RNG.normal(size=4200).astype(np.float32)
    for count in (1, 9, 20, 33, 90):
        np.testing.assert_allclose(
            jax.jit(weighted, static_argnums=1)(x, count), reference(x, count), rtol=1e-5, atol=1e-5
        )


def test_folds_and_results_beside_a_long_run():
    """Values that are asked for on both sides of a cut, sums of some, and a last value that reads the first."""

    def f(x):
        first = jnp.tanh(x)
        y, kept = first, []
        for k in range(90):
            z = jnp.sin(y + k)
            y = y * 0.5 + z * z
            if k % 30 == 0:
                kept.append(z)
        return y + first, kept, y.sum(), kept[1].max()

    x = RNG.normal(size=(3, 500)).astype(np.float32)
    with jax.disable_jit():
        expected = jax.tree.leaves(f(x))
    for a, b in zip(jax.tree.leaves(jax.jit(f)(x)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_slopes_through_a_long_run():
    x = RNG.normal(size=4200)
    with jax.enable_x64():
        slope = jax.jit(jax.grad(lambda x: weighted(x, 40).sum()))(x)
        step = 1e-6
        for i in (0, 17, 2000, 4100):
            e = np.zeros_like(x)
            e[i] = step
            difference = (reference(x + e, 40).sum() - reference(x - e, 40).sum()) / (2 * step)
            np.testing.assert_allclose(slope[i], difference, rtol=1e-5, atol=1e-6)
