"""Resampling: what the kernels promise, beside sums written out, their derivatives, and what is refused."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import image
from catena.image import ResizeMethod
from checkers import check_jvp

RNG = np.random.default_rng(5)
SMOOTH = [m for m in ResizeMethod if m is not ResizeMethod.NEAREST]


def kernel(name: str, x: float) -> float:
    x = abs(x)
    if name == "LINEAR":
        return max(0.0, 1 - x)
    if name.startswith("LANCZOS"):
        radius = int(name[-1])
        return float(np.sinc(x) * np.sinc(x / radius)) if x < radius else 0.0
    a = -0.75 if name == "-0.75" else -0.5
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def sampled(line, method, new, scale, translation, antialias) -> list:
    """The new samples of a line, each a weighted mean written out."""
    out, step = [], 1 / scale
    for k in range(new):
        place = (k + 0.5 - translation) * step
        if method is ResizeMethod.AREA:
            ends = place - step / 2, place + step / 2
            w = [max(min(ends[1], i + 1) - max(ends[0], i), 0) for i in range(len(line))]
        elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:  # edges repeated
            beyond = np.pad(line, 3, mode="edge")
            out.append(sum(kernel("-0.75", place - i + 2.5) * x for i, x in enumerate(beyond)))
            continue
        else:
            stretch = max(step, 1) if antialias else 1
            w = [kernel(method.name, (place - i - 0.5) / stretch) for i in range(len(line))]
        out.append(np.dot(w, line) / sum(w) if 0 <= place <= len(line) else 0.0)
    return out


@pytest.mark.parametrize("method", SMOOTH)
def test_against_sums(method):
    line = RNG.normal(size=23)
    resized = [(7, True), (7, False), (22, True), (60, True)]
    moved = [(0.6, 0.3), (1.7, -4.2), (1.0, 30.0)]

    @jax.jit
    def ours(line):
        a = [image.resize(line, (new,), method, antialias) for new, antialias in resized]
        return a, [
            image.scale_and_translate(line, (30,), (0,), jnp.array([s]), jnp.array([t]), method) for s, t in moved
        ]

    with jax.enable_x64(True):
        first, second = ours(line)
    for x, (new, antialias) in zip(first, resized, strict=True):
        np.testing.assert_allclose(x, sampled(line, method, new, new / 23, 0.0, antialias), rtol=1e-12, atol=1e-13)
    for x, (scale, translation) in zip(second, moved, strict=True):
        np.testing.assert_allclose(x, sampled(line, method, 30, scale, translation, True), rtol=1e-12, atol=1e-13)


def test_constants_stay_constant():
    x = np.full((7, 9), 2.5, np.float32)
    for method in ResizeMethod:
        for result in jax.jit(lambda x: [image.resize(x, s, method) for s in ((3, 17), (200, 4))])(x):  # noqa: B023
            np.testing.assert_allclose(result, 2.5, rtol=1e-6)


@pytest.mark.parametrize("antialias", [True, False])
def test_whole_factors(antialias):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(image.resize(x, (6, 12), "nearest", antialias), x.repeat(2, 0).repeat(3, 1))
    np.testing.assert_allclose(image.resize(x, (6, 12), "area", antialias), x.repeat(2, 0).repeat(3, 1))
    np.testing.assert_allclose(image.resize(x, (3, 2), "area", antialias), x.reshape(3, 2, 2).mean(2))


def test_the_nearest_sample():
    for n, new in ((5, 3), (3, 5), (7, 7), (100, 33), (10, 29)):
        places = (np.arange(new) + 0.5) * n / new
        np.testing.assert_array_equal(image.resize(np.arange(n), (new,), "nearest"), np.floor(places))


@pytest.mark.parametrize("method", ResizeMethod)
def test_transformations(method):
    """Under ``jit`` and ``vmap``, and the same forwards and backwards."""
    x = RNG.normal(size=(4, 9, 8)).astype(np.float32)
    expected = image.resize(x, (4, 3, 20), method)
    one = jax.jit(lambda x: image.resize(x, (3, 20), method))
    np.testing.assert_allclose(jax.vmap(one)(x), expected, rtol=1e-6, atol=1e-6)
    forward = jax.jacfwd(one)(x[0])
    np.testing.assert_allclose(jax.jacrev(one)(x[0]), forward, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", SMOOTH)
def test_derivatives_by_scale_and_translation(method):
    x = RNG.normal(size=(3, 7))
    moved = jax.jit(lambda x, s, t: image.scale_and_translate(x, (3, 8), (1,), s, t, method))
    with jax.enable_x64(True):  # in steps that cross no kink of a kernel
        check_jvp(moved, (x, np.array([0.81]), np.array([0.17])), rtol=1e-5, atol=1e-5, step=1e-6)


def test_few_samples_of_each():
    """Where the program that runs finds few, new samples are summed from these; in a batch, and where it finds many,
    and in derivatives, matrices are multiplied.
    """
    x, scales = np.random.default_rng(0).normal(size=(50, 4)), np.array([[0.6], [0.05]])
    move = lambda x, s: image.scale_and_translate(x, (30, 4), (0,), s, np.array([1.5]), "cubic")
    with jax.enable_x64(True):
        moved = jax.jit(move)
        for scale, expected in zip(scales, jax.vmap(move, (None, 0))(x, scales)):
            np.testing.assert_allclose(moved(x, scale), expected, atol=1e-12)
        check_jvp(moved, (x, scales[0]), rtol=1e-5, atol=1e-5, step=1e-6)


def test_no_nan_in_derivatives_at_rest():
    """Where the image is neither scaled nor moved, the samples are where the kernels have kinks."""

    @jax.jit
    def gradients(s, t):
        moved = lambda method: lambda s, t: image.scale_and_translate(jnp.arange(5.0), (5,), (0,), s, t, method).sum()
        return [jax.grad(moved(method), (0, 1))(s, t) for method in SMOOTH]

    assert np.isfinite(gradients(jnp.ones(1), jnp.zeros(1))).all()


def test_dtypes():
    for dtype, expected in (
        ("int32", "float32"),
        ("bool", "float32"),
        ("float16", "float16"),
        ("complex64", "complex64"),
    ):
        x = jnp.ones((3, 3), dtype)
        assert image.resize(x, (2, 5), "cubic").dtype == expected
        assert image.scale_and_translate(x, (2, 5), (1,), jnp.ones(1), jnp.ones(1), "cubic").dtype == expected
        assert image.resize(x, (2, 5), "nearest").dtype == dtype


def test_no_elements():
    assert image.resize(jnp.ones((3, 3)), (0, 5), "linear").shape == (0, 5)
    assert image.resize(jnp.ones((0, 3)), (0, 5), "nearest").shape == (0, 5)
    none = image.scale_and_translate(jnp.ones((0, 3)), (2, 3), (0,), jnp.ones(1), jnp.zeros(1), "linear")
    np.testing.assert_array_equal(none, np.zeros((2, 3)))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: image.resize(x, (3, 3), "fancy"), ValueError, "Unknown resize method 'fancy'"),
        (lambda x: image.resize(x, (3, 3), 1), TypeError, "got 1"),
        (lambda x: image.resize(x, (3,), "linear"), ValueError, r"a length for each axis of the image, got \(3,\)"),
        (lambda x: image.resize(x, (3, -1), "linear"), ValueError, "must not be negative"),
        (lambda x: image.resize([[1.0]], (3, 1), "linear"), TypeError, "resize requires ndarray"),
        (lambda x: image.resize(x[:0], (3, 3), "linear"), ValueError, "an axis without elements"),
        (lambda x: image.resize(x, (3, 3), "linear", precision="odd"), ValueError, "recision"),
        (lambda x: image.scale_and_translate(x, (3, 3), (0,), x[0], x[0], "linear"), ValueError, "scale must have the"),
        (
            lambda x: image.scale_and_translate(x, (3, 3), (0,), x[0, :1], x[0], "linear"),
            ValueError,
            "translation must",
        ),
        (lambda x: image.scale_and_translate(x, (3, 3), (0, 0), x[0], x[0], "linear"), ValueError, "comes twice"),
        (lambda x: image.scale_and_translate(x, (3, 3), (2,), x[0], x[0], "linear"), ValueError, "out of bounds"),
        (lambda x: image.scale_and_translate(x, (3, 3), (0,), 1.0, 0.0, "linear"), TypeError, "scale must have the"),
        (lambda x: image.scale_and_translate(x, (3, 3), (), x, x, "nearest"), ValueError, "only there for resize"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.ones((2, 2)))
