"""Parts that loops add to what they carry, as the gradient of `w[i]` does: only these are read and written."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax


def whole(seed: int, *shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def layers(w, b, x):
    return jnp.sum(lax.fori_loop(0, len(w), lambda i, h: h @ w[i] + b[i], x))


def by_numpy(w, b, x):
    """The derivatives of `layers`."""
    inside = [x]
    for each, add in zip(w, b):
        inside.append(inside[-1] @ each + add)
    back, of_w, of_b = np.ones_like(inside[-1]), [], []
    for each, h in zip(w[::-1], inside[-2::-1]):
        of_w, of_b = [h.T @ back, *of_w], [back.sum(0), *of_b]
        back = back @ each.T
    return np.stack(of_w), np.stack(of_b)


@pytest.mark.parametrize("rows", [1, 5])
def test_gradients_of_parts_at_counted_places(rows):
    w, b, x = whole(0, 4, 20, 20), whole(1, 4, 20), whole(2, rows, 20)
    for got, expected in zip(jax.jit(jax.grad(layers, (0, 1)))(w, b, x), by_numpy(w, b, x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_iteration_goes_over_its_part_alone():
    args = whole(0, 8, 64, 64), whole(1, 8, 64), whole(2, 5, 64)
    program = jax.jit(jax.grad(layers)).lower(*args).compile().as_text("program")
    assert "8 x 64 x 64" not in program.split("from the last to the first")[1]


@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_sums_are_those_of_whole_arrays(kind):
    """At places that are beyond, or the same twice; of two dimensions; and of an array that begins as it likes."""
    start, v = whole(3, 9, 40, 2).astype(kind) * 0, whole(4, 40, 2).astype(kind)
    if kind == "float32":
        start[:4] = -0.0
    places = np.array([3, 3, 8, -1, 40, 0])

    def run(begin):
        def step(carry, k):
            a, b, c = carry
            zero = jnp.zeros(start.shape, kind)
            a = a + lax.dynamic_update_slice(zero, (v * k)[None], (k, 0, 0))
            b = zero.at[k].add(v * k, mode="drop") + b
            c = c + lax.dynamic_update_slice(zero, (v * k)[None, :3], (k, k - 3, 0))
            return (a, b, c), a[0, 0]

        (a, b, c), seen = lax.scan(step, (begin, begin, begin), places)
        return a, b, c, seen

    got = jax.tree.leaves([jax.jit(lambda: run(jnp.zeros(start.shape, kind)))(), jax.jit(run)(start)])
    expected = jax.tree.leaves([steps(np.zeros_like(start), v, places), steps(start, v, places)])
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def steps(begin, v, places):
    """What `run` does, by NumPy."""
    a, b, c = begin.copy(), begin.copy(), begin.copy()
    seen = []
    for k in places:
        row, across = np.clip(k % 9 if -9 <= k < 0 else k, 0, 8), np.clip(k - 3 if k >= 3 else k + 37, 0, 37)
        parts = [np.zeros_like(begin) for _ in range(3)]
        parts[0][row] = v * k
        if -9 <= k < 9:
            parts[1][k] = v * k + 0
        parts[2][row, across : across + 3] = v[:3] * k
        a, b, c = a + parts[0], parts[1] + b, c + parts[2]
        seen.append(a[0, 0])
    return a, b, c, np.array(seen)
