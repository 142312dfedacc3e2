"""Parts that loops add to what they carry, as the gradient of `w[i]` does: only these are read and written. And rows that
they read by their counters, which lie in memory.
"""

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


# ---- rows that are read by a counter -------------------------------------------------------------------------


def test_rows_at_a_counter_are_read_where_they_lie():
    args = whole(0, 8, 64, 64), whole(1, 8, 64), whole(2, 1, 64)
    program = jax.jit(layers).lower(*args).compile().as_text("program")
    assert "part of argument 0" in program and "copy\n        slot[8], argument 0" not in program
    gradient = jax.jit(jax.grad(layers, 2)).lower(*args).compile().as_text("program")
    assert "results, 0 bytes of temporaries" in gradient  # they are not kept anew for the way back


def test_rows_at_counters_and_at_others():
    """The loop counts all rows, or a part of them, from 0 or from 1, in steps of two, or counts what it carries."""
    w, x = whole(5, 6, 33), whole(6, 33)

    def run(w, x):
        all_rows = lax.fori_loop(0, 6, lambda i, h: jnp.sin(h) + w[i], x)
        some = lax.fori_loop(0, 4, lambda i, h: h * 2 + w[i], x)
        later = lax.fori_loop(1, 6, lambda i, h: h * 2 + w[i], x)
        kept = lax.scan(lambda i, _: (i + 1, (w[i], w[i] + x)), 0, None, length=6)[1]
        twos = lax.scan(lambda i, _: (i + 2, w[i]), 0, None, length=6)[1]
        carried = lax.fori_loop(0, 6, lambda i, c: c.at[0].add(c[i]), w)
        over = lax.scan(lambda c, _: ((c[0] + 1, c[1].at[c[0]].set(x)), c[1][c[0]]), (0, w), None, length=6)
        return all_rows, some, later, kept, twos, carried, over

    h = x
    for row in w:
        h = np.sin(h) + row
    some, later, carried = x, x, w.copy()
    for k in range(6):
        some = some * 2 + w[k] if k < 4 else some
        later = later * 2 + w[k] if k else later
        carried[0] += carried[k]
    twos = w[[0, 2, 4, 5, 5, 5]]
    expected = h, some, later, (w, w + x), twos, carried, ((np.int32(6), np.broadcast_to(x, w.shape)), w)
    for got, other in zip(jax.tree.leaves(jax.jit(run)(w, x)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, other, rtol=1e-5, atol=1e-5)


def test_rows_of_what_another_loop_carries():
    """An inner loop reads, and gives back, rows of what is overwritten in the same iteration."""
    w = whole(7, 5, 300)

    def outer(c, _):
        total, rows = lax.scan(lambda s, i: ((s[0] + 1, s[1] + c[s[0]]), c[s[0]]), (0, c[0]), None, length=5)
        return c * 2 + 1, (total[1], rows[::-1] + c)

    last, (totals, rows) = jax.jit(lambda w: lax.scan(outer, w, None, length=3))(w)
    c = w
    for k in range(3):
        np.testing.assert_array_equal(totals[k], c.sum(0) + c[0])
        np.testing.assert_array_equal(rows[k], c[::-1] + c)
        c = c * 2 + 1
    np.testing.assert_array_equal(last, c)
