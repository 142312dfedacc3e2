"""Convolutions of few output channels: lanes are input channels where these lie side by side, else places."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from convolutions import WAYS, check, convolve, reference

CHANNELS = [(20, 3), (16, 4), (40, 8), (5, 6), (33, 2)]  # of the input and of the output


def arrays(*shapes, whole=False, dtype=np.float32):
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [(rng.integers(-3, 4, s) if whole else rng.normal(size=s)).astype(dtype) for s in shapes]


@pytest.mark.share(16)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("options", WAYS)
def test_channels(layout, channels, options):
    c, o = channels
    x, w = arrays((2, c, 7, 20), (o, c, 3, 2))
    check(x, w, layout, **options)


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kernel", [(1, 1), (1, 7), (5, 1), (6, 19)])
def test_kernels(layout, kernel):
    x, w = arrays((3, 17, 9, 33), (4, 17, *kernel))
    check(x, w, layout, window_strides=(1, 1), padding=((2, 0), (1, 3)))


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "int8"])
def test_types(layout, dtype):
    x, w = arrays((2, 24, 6, 18), (5, 24, 3, 3), whole=True, dtype=dtype)
    w = np.clip(w, -1, 1) * (np.abs(x[:1, :1, :3, :3]) < 2) if dtype == "int8" else w  # sums stay below 128
    check(x, w, layout, **WAYS[0])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_doubles(layout):
    x, w = arrays((2, 24, 6, 18), (3, 24, 3, 3), dtype=np.float64)
    with jax.enable_x64(True):
        check(x, w, layout, **WAYS[0])
        check(x, w, layout, **WAYS[3])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("outputs", [3, 8])
def test_a_batch_has_the_bits_of_its_members(layout, outputs):
    x, w = arrays((4, 32, 6, 40), (outputs, 32, 3, 3))
    whole = convolve(x, w, layout, **WAYS[0])
    for k in range(4):
        np.testing.assert_array_equal(convolve(x[k : k + 1], w, layout, **WAYS[0]), whole[k : k + 1])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_what_is_computed_around_it_does_not_change_it(layout):
    x, w = arrays((2, 32, 6, 40), (5, 32, 3, 3))
    given = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    f = lambda x: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=(layout, "OIHW", layout))
    alone = np.asarray(jax.jit(f)(given))
    both = jax.jit(lambda x: ((y := f(x * 1.0)), jnp.maximum(y + 1, 0), y.sum((0, 2, 3))))(given)
    np.testing.assert_array_equal(both[0], alone)
    np.testing.assert_array_equal(both[1], np.maximum(alone + np.float32(1), 0))
    in_loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (x, f(x)), (x, f(x) * 0))[1])(given)
    np.testing.assert_array_equal(in_loop, alone)


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_gradients(layout, strides):
    """Of few input channels the gradient by the image has few outputs."""
    x, w = arrays((2, 3, 8, 34), (20, 3, 3, 3), whole=True)
    given = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    f = lambda x, w: jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=(layout, "OIHW", layout))
    y, pull = jax.vjp(jax.jit(f), given, w)
    g, dx, dw = arrays(y.shape, given.shape, w.shape, whole=True)
    of_x, of_w = jax.jit(pull)(g)
    np.testing.assert_array_equal(np.vdot(g, f(dx, w)), np.vdot(dx, of_x))  # sums of whole numbers below 2**24
    np.testing.assert_array_equal(np.vdot(g, f(given, dw)), np.vdot(dw, of_w))


def test_one_dimension_and_three():
    x, w = arrays((2, 20, 40), (3, 20, 5))
    got = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "VALID"))(x, w)
    exact = reference(x[:, :, None], w[:, :, None], (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))[:, :, 0]
    np.testing.assert_allclose(got, exact, atol=1e-4)
    x, w = arrays((1, 4, 5, 36, 17), (2, 3, 2, 17, 6))
    numbers = ("NDHWC", "DHWIO", "NDHWC")
    got = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 2, 1), "VALID", dimension_numbers=numbers))(x, w)
    seen = np.lib.stride_tricks.sliding_window_view(x[0], (2, 3, 2), (0, 1, 2))[:, ::2]
    np.testing.assert_allclose(got[0], np.einsum("dhwcijk,ijkco->dhwo", seen, w), atol=1e-4)


def test_lanes_are_filled():
    def text(layout, outputs, stage):
        shape = (2, 32, 10, 40) if layout == "NCHW" else (2, 10, 40, 32)
        numbers = (layout, "OIHW", layout)
        f = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
        args = np.ones(shape, np.float32), np.ones((outputs, 32, 3, 3), np.float32)
        return jax.jit(f).lower(*args).compile().as_text(stage)

    assert text("NHWC", 3, "nests").count("fold dot") == 3  # few beside vectors of any width
    assert "rows 6, columns 40, terms 3 x 3 x 32" in text("NCHW", 6, "program")
