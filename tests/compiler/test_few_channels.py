"""Convolutions of few channels, and short windows, are sums of shifted arrays."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.host import this_machine
from convolutions import WAYS, check, convolve, padded, reference

rng = np.random.default_rng(0)


@pytest.mark.share(12)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN"])
@pytest.mark.parametrize("channels", [(1, 1), (3, 1), (1, 2), (17, 2), (20, 1), (33, 2), (2, 4), (2, 8), (3, 9)])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 4), (7, 6), (2, 35)])
def test_channels(layout, channels, kernel):
    c, o = channels
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, c, 9, 37), (o, c, *kernel)))
    check(x, w, layout, window_strides=(1, 1), padding=((1, 2), (3, 0)))


@pytest.mark.share(6)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("groups", ["none", "features", "batch"])
def test_ways(layout, options, groups):
    options = {k: v for k, v in options.items()}
    shapes = {
        "none": ((2, 3, 8, 9), (2, 3, 3, 2)),
        "features": ((2, 5, 8, 9), (5, 1, 3, 2)),
        "batch": ((5, 3, 8, 9), (5, 3, 3, 2)),
    }
    options |= {"features": {"feature_group_count": 5}, "batch": {"batch_group_count": 5}}.get(groups, {})
    x, w = (rng.normal(size=s).astype(np.float32) for s in shapes[groups])
    check(x, w, layout, **options)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
def test_types(dtype):
    x, w = (rng.integers(-3, 4, size=s).astype(dtype) for s in ((1, 2, 6, 7), (1, 2, 2, 3)))
    check(x, w, "NCHW", **WAYS[0])


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_channels_that_fill_lanes(outputs, options, dtype):
    x, w = (rng.integers(-3, 4, size=s).astype(dtype) for s in ((2, 34, 8, 9), (outputs, 34, 3, 2)))
    check(x, w, "NHWC", **options)


def test_complex():
    x, w = (
        rng.normal(size=(*s, 2)).astype(np.float32).view(np.complex64)[..., 0] for s in ((1, 2, 6, 7), (1, 2, 2, 3))
    )
    got = convolve(x, w, "NCHW", **WAYS[0])
    parts = [
        [reference(a, b, (1, 1), WAYS[0]["padding"], (1, 1), (1, 1)) for b in (w.real, w.imag)]
        for a in (x.real, x.imag)
    ]
    np.testing.assert_allclose(got, parts[0][0] - parts[1][1] + 1j * (parts[0][1] + parts[1][0]), atol=1e-4)


@pytest.mark.parametrize("groups, shapes", [(1, ((3, 2, 40, 9), (1, 2, 3, 3))), (4, ((3, 4, 40, 9), (4, 1, 3, 3)))])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_gradients(groups, shapes, strides):
    """A convolution is linear in both operands: <g, conv(dx, w)> is <dx, its gradient>."""
    x, w = (rng.normal(size=s).astype(np.float32) for s in shapes)
    f = lambda x, w: jax.lax.conv_general_dilated(x, w, strides, "SAME", feature_group_count=groups)  # noqa: E731
    y, pull = jax.vjp(jax.jit(f), x, w)
    g, dx, dw = (rng.normal(size=z.shape).astype(np.float32) for z in (y, x, w))
    of_x, of_w = jax.jit(pull)(g)
    size = float(np.abs(g).sum())
    np.testing.assert_allclose(np.vdot(g, f(dx, w)), np.vdot(dx, of_x), atol=1e-6 * size)
    np.testing.assert_allclose(np.vdot(g, f(x, dw)), np.vdot(dw, of_w), atol=1e-6 * size)


def test_a_batch_has_the_bits_of_its_members():
    x, w = rng.normal(size=(4, 1, 16, 33)).astype(np.float32), rng.normal(size=(2, 1, 3, 3)).astype(np.float32)
    f = jax.jit(lambda x: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"))
    np.testing.assert_array_equal(f(x), jnp.concatenate([f(x[i : i + 1]) for i in range(4)]))


@pytest.mark.share(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("window", [(3, 2), (3, 12), (1, 1)])
def test_windows(way, dtype, window):
    strides, padding = way["window_strides"], way["padding"]
    base, spread = way.get("lhs_dilation", (1, 1)), way.get("rhs_dilation", (1, 1))
    x = rng.integers(-9, 9, size=(6, 45)).astype(dtype)
    reach = [(k - 1) * d + 1 for k, d in zip(window, spread)]
    for operation, start, numpy in ((jax.lax.add, 0, np.sum), (jax.lax.max, -9, np.max), (jax.lax.min, 9, np.min)):
        init = np.asarray(start, dtype)
        f = lambda x: jax.lax.reduce_window(x, init, operation, window, strides, padding, base, spread)  # noqa: B023, E731
        every = np.lib.stride_tricks.sliding_window_view(padded(x, padding, base, start), reach)
        every = every[:: strides[0], :: strides[1], :: spread[0], :: spread[1]]
        np.testing.assert_array_equal(f(jnp.asarray(x)), numpy(every, (2, 3)))
        np.testing.assert_array_equal(jax.jit(f)(x), numpy(every, (2, 3)))


def test_zeros_and_nans():
    x = np.array([-0.0, -0.0, np.nan, 1.0, -0.0, -0.0], np.float32)
    total, most = (
        jax.jit(lambda x, f=f, s=s: jax.lax.reduce_window(x, s, f, (2,), (1,), "VALID"))(x)
        for f, s in ((jax.lax.add, 0.0), (jax.lax.max, -np.inf))
    )
    np.testing.assert_array_equal(np.signbit(total), [False, False, False, False, False])
    np.testing.assert_array_equal(np.isnan(most), [False, True, True, False, False])


@pytest.mark.parametrize("channels, groups", [(1, 1), (3, 3)])
def test_lanes_are_places_of_many_taps(channels, groups):
    """The loop over a kernel's rows is a fold beside which lanes are places; padding is written once, before it."""
    way = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=groups)
    x, w = np.ones((1, channels, 20, 40), np.float32), np.ones((groups, 1, 7, 9), np.float32)
    text = jax.jit(way).lower(x, w).compile().as_text("nests")
    (fold,) = [nest for nest in text.split("nest for")[1:] if "fold" in nest]
    assert re.search(r"i\d<40 lanes \d+x\d reduce i\d<7", fold) and "select" not in fold


@pytest.mark.share(2)
@pytest.mark.parametrize("options", WAYS)
def test_ways_of_many_taps(options):
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 1, 13, 15), (1, 1, 6, 7)))
    check(x, w, "NCHW", **options)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("outputs, groups", [(1, 1), (4, 1), (16, 1), (4, 4), (8, 4)])
def test_no_convolution_is_negative_zero(dtype, outputs, groups):
    """A sum begins with zero, eagerly and compiled, that of one product too."""
    x, w = -jnp.zeros((2, groups, 9), dtype), jnp.ones((outputs, 1, 1), dtype)
    f = lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=groups)  # noqa: E731
    assert not np.signbit(f(x, w)).any() and not np.signbit(jax.jit(f)(x, w)).any()


def test_windows_of_complex_numbers():
    x = (rng.normal(size=(7, 2)) @ [1, 1j]).astype(np.complex64)
    got = jax.jit(lambda x: jax.lax.reduce_window(x, np.complex64(0), jax.lax.add, (3,), (1,), "VALID"))(x)
    np.testing.assert_allclose(got, x[:-2] + x[1:-1] + x[2:], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lanes_are_channels(dtype):
    """No lane is read by itself."""
    x, w = np.zeros((2, 8, 64, 32), dtype), np.zeros((3, 3, 32, 1), dtype)
    numbers = ("NHWC", "HWIO", "NHWC")
    way = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers))
    nests = way.lower(x, w).compile().as_text("nests")
    assert re.search(r"reduce i\d<32 lanes \d+x1\n", nests)


def test_lanes_are_places():
    """A convolution of one channel folds nothing; without padding it tests nothing either."""
    f = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "VALID"))
    text = f.lower(np.ones((1, 1, 20, 40), np.float32), np.ones((1, 1, 3, 3), np.float32)).compile().as_text("nests")
    assert "fold" not in text and "select" not in text


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("channels, groups", [((2, 1), {}), ((3, 3), {"feature_group_count": 3}), ((40, 40), {})])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((-9, -9), (2, -9))])
def test_kernels_that_fit_nowhere(dtype, channels, groups, padding):
    """Of more taps than are written out, which have no place at all."""
    inputs, outputs = channels
    x = jnp.ones((2, inputs, 9, 3), dtype)
    w = jnp.ones((outputs, inputs // groups.get("feature_group_count", 1), 7, 6), dtype)
    got = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 2), padding, **groups))(x, w)
    assert got.dtype == dtype and got.shape == (2, outputs, 3 if padding[0] == (0, 0) else 0, 0)


@pytest.mark.share(2)
@pytest.mark.parametrize("operation, init", [(jax.lax.add, 0), (jax.lax.add, 3), (jax.lax.mul, 1), (jax.lax.max, -9)])
@pytest.mark.parametrize("window", [3, 40])
def test_windows_that_fit_nowhere(operation, init, window):
    f = lambda x: jax.lax.reduce_window(x, init, operation, (window, 1), (1, 1), ((-1, -2), (0, 0)))  # noqa: E731
    x = jnp.ones((2, 4), jnp.int32)
    for got in (f(x), jax.jit(f)(x)):
        assert got.shape == (0, 4)


@pytest.mark.share(4)
@pytest.mark.parametrize("taps", [33, 64, 256, 257])
@pytest.mark.parametrize("padding", [(0, 0), (5, 40), (-2, 3)])
def test_long_rows_of_taps(taps, padding):
    """Those of up to 256 are written out; lanes are places then."""
    x, w = np.random.default_rng(3).normal(size=(2, 1, 300)), np.random.default_rng(4).normal(size=(1, 1, taps))
    with jax.enable_x64(True):
        got = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), (padding,)))(x, w)
    low, high = padding
    padded = np.pad(x, ((0, 0), (0, 0), (max(low, 0), high)))[..., max(-low, 0) :]
    wanted = np.stack([[np.correlate(row[0], w[0, 0], "valid")] for row in padded])
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.share(4)
@pytest.mark.parametrize("outputs", [2, 3, 5, 8])
@pytest.mark.parametrize("taps, inputs", [(2, 8), (4, 4), (1, 16), (2, 4), (3, 8)])
def test_terms_that_fill_a_vector_once(outputs, taps, inputs):
    """Among them transposed convolutions with strides, whose taps are shared out."""
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((3, inputs, 7, 9), (outputs, inputs, 1, taps)))
    check(x, w, "NHWC", window_strides=(1, 1), padding=((0, 0), (taps // 2, 1)))


def test_no_lanes_of_such_terms_are_taken_apart():
    numbers = ("NHC", "HIO", "NHC")
    f = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=numbers))
    lanes = this_machine().vector_bytes // 4
    text = f.lower(np.ones((50, 9, lanes // 2), "float32"), np.ones((2, lanes // 2, 3), "float32")).compile()
    assert "contract" in text.as_text("program")
