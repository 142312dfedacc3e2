"""Sums of convolutions whose windows are as large as the image around them, in parts: gradients by the weights."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

NUMBERS = ("NHWC", "HWIO", "NHWC")


def convolve(x, w, **options):
    return lax.conv_general_dilated(x, w, padding="SAME", dimension_numbers=NUMBERS, **options)


def operands(n, h, channels, outputs, k, stride=1, groups=1, dtype="float32"):
    """An image, weights, and the gradient of a result, of whole numbers, whose sums are exact."""
    rng = np.random.default_rng(0)
    shapes = (n, h, h, channels), (k, k, channels // groups, outputs), (n, -(-h // stride), -(-h // stride), outputs)
    return [jnp.asarray(rng.integers(-3, 4, shape).astype(dtype)) for shape in shapes]


def gradient(x, w, g, **options):
    return jax.vjp(lambda w: convolve(x, w, **options), w)[1](g)[0]


def expected(x, g, k, stride=1, groups=1):
    """The gradient of a convolution with an odd window, tap by tap."""
    x, g = (np.asarray(a, np.float64) for a in (x, g))
    total = max((g.shape[1] - 1) * stride + k - x.shape[1], 0)
    x = np.pad(x, [(0, 0), *[(total // 2, total - total // 2 + stride)] * 2, (0, 0)])
    out = np.empty((k, k, x.shape[3] // groups, g.shape[3]))
    for i, j in np.ndindex(k, k):
        seen = x[:, i : i + g.shape[1] * stride : stride, j : j + g.shape[2] * stride : stride]
        parts = zip(np.split(seen, groups, -1), np.split(g, groups, -1))
        out[i, j] = np.concatenate([np.einsum("nhwi,nhwo->io", *part) for part in parts], -1)
    return out


@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 8, "h": 32, "channels": 8, "outputs": 20, "k": 3},
        {"n": 6, "h": 24, "channels": 3, "outputs": 32, "k": 5},
        {"n": 7, "h": 20, "channels": 16, "outputs": 16, "k": 1},
        {"n": 1, "h": 64, "channels": 16, "outputs": 18, "k": 3},
        {"n": 8, "h": 48, "channels": 12, "outputs": 24, "k": 3, "stride": 2},
        {"n": 4, "h": 32, "channels": 8, "outputs": 32, "k": 3, "groups": 2},
        {"n": 4, "h": 32, "channels": 16, "outputs": 64, "k": 3, "dtype": "float64"},
        {"n": 17, "h": 16, "channels": 8, "outputs": 24, "k": 3},
    ],
    ids=str,
)
def test_gradients_by_the_weights(sizes):
    groups, stride = sizes.get("groups", 1), sizes.get("stride", 1)
    with jax.enable_x64(True):
        x, w, g = operands(**sizes)
        options = {"window_strides": (stride, stride), "feature_group_count": groups}
        found = jax.jit(lambda x, w, g: gradient(x, w, g, **options))(x, w, g)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), expected(x, g, sizes["k"], stride, groups))


def test_what_is_done_to_them_comes_after_the_sum():
    """Steps of training: what reads the gradient element by element may take its memory."""
    x, w, g = operands(8, 32, 8, 16, 3)
    step = jax.jit(lambda x, w, g: w - 0.5 * gradient(x, w, g, window_strides=(1, 1)))
    np.testing.assert_array_equal(np.asarray(step(x, w, g)), np.asarray(w) - 0.5 * expected(x, g, 3))


def test_in_loops():
    x, w, g = operands(4, 32, 8, 16, 3)
    step = lambda k, w: gradient(x, w, g * (1 + k % 2), window_strides=(1, 1)) - w
    once = expected(x, g, 3)
    found = jax.jit(lambda w: lax.fori_loop(0, 3, step, w))(w)
    np.testing.assert_array_equal(np.asarray(found), once - (2 * once - (once - np.asarray(w))))


def test_lengths_of_a_batch_that_was_not_seen():
    f = jax.jit(lambda x, w, g: gradient(x, w, g, window_strides=(1, 1)))
    for n in (8, 16, 12, 24, 5, 9, 32, 10):
        x, w, g = operands(n, 16, 8, 16, 3)
        np.testing.assert_array_equal(np.asarray(f(x, w, g)), expected(x, g, 3))


def test_tasks_read_parts_of_the_operands():
    """A task of each part of the sum, where a task of each part of the result would read both operands as a whole;
    others than gradients are not cut, whatever the batch.
    """
    x, w, g = operands(8, 32, 32, 32, 3)
    program = jax.jit(lambda *xs: gradient(*xs, window_strides=(1, 1))).lower(x, w, g).compile().as_text("program")
    assert "contract float32 batch 8, rows 3 x 3 x 32, columns 32, terms 32 x 32" in program
    forward = jax.jit(lambda x, w: convolve(x, w, window_strides=(1, 1))).lower(x, w).compile().as_text("program")
    assert "contract float32 rows 8 x 32 x 32, columns 32, terms 3 x 96" in forward
