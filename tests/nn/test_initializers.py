"""Initial values of parameters: their distributions, shapes and errors; values are in random/test_vectors.py."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.nn import initializers

KEY = jax.random.key(0)
NAMED = {"glorot": ("fan_avg", 1.0), "xavier": ("fan_avg", 1.0), "lecun": ("fan_in", 1.0)}
NAMED |= {"he": ("fan_in", 2.0), "kaiming": ("fan_in", 2.0)}


@pytest.mark.share(2)
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
@pytest.mark.parametrize("name", NAMED)
def test_variances(name, distribution):
    mode, scale = NAMED[name]
    drawn = np.asarray(getattr(initializers, f"{name}_{distribution}")()(KEY, (300, 500)))
    number = {"fan_avg": 400, "fan_in": 300}[mode]
    np.testing.assert_allclose(drawn.var(), scale / number, rtol=0.02)
    assert abs(drawn.mean()) < 4 * np.sqrt(scale / number / drawn.size)


@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
@pytest.mark.parametrize(
    "mode, number", [("fan_in", 80), ("fan_out", 200), ("fan_avg", 140), ("fan_geo_avg", 16000**0.5)]
)
def test_windows_count(mode, number, distribution):
    init = initializers.variance_scaling(3.0, mode, distribution)
    drawn = np.asarray(init(KEY, (4, 5, 4, 10)))
    np.testing.assert_allclose(drawn.var(), 3.0 / number, rtol=0.15)


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_complex_variances(distribution):
    init = initializers.variance_scaling(2.0, "fan_in", distribution)
    drawn = np.asarray(init(KEY, (300, 500), "complex64"))
    np.testing.assert_allclose(np.mean(np.abs(drawn) ** 2), 2.0 / 300, rtol=0.02)
    np.testing.assert_allclose(drawn.real.var(), drawn.imag.var(), rtol=0.03)


def test_axes():
    init = initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=(0, 1), out_axis=2)
    np.testing.assert_allclose(np.asarray(init(KEY, (20, 30, 100))).var(), 1 / 600, rtol=0.03)
    batched = initializers.variance_scaling(1.0, "fan_in", "normal", batch_axis=0)
    np.testing.assert_allclose(np.asarray(batched(KEY, (20, 30, 100))).var(), 1 / 30, rtol=0.03)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape, axis", [((5, 3), -1), ((3, 5), -1), ((2, 3, 4), 1), ((4, 4), 0)])
def test_orthogonal(shape, axis, dtype):
    made = jnp.asarray(initializers.orthogonal(2.0, axis)(KEY, shape, dtype))
    assert made.dtype == dtype and made.shape == shape
    matrix = np.asarray(
        jnp.moveaxis(made, axis, -1).reshape(-1, shape[axis]).astype(jnp.promote_types(dtype, "float32"))
    )
    product = matrix.conj().T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.conj().T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=0.05 if "16" in dtype else 1e-5)


@pytest.mark.parametrize("window", [(3,), (4, 3), (2, 3, 5)])
def test_delta_orthogonal(window):
    kernel = np.asarray(initializers.delta_orthogonal()(KEY, (*window, 2, 4)))
    middle = kernel[tuple((n - 1) // 2 for n in window)]
    np.testing.assert_allclose(middle @ middle.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose((kernel**2).sum(), 2, atol=1e-5)


def test_dtypes():
    for init in (initializers.normal(), initializers.uniform(), initializers.glorot_normal(), initializers.zeros):
        assert init(KEY, (2, 3)).dtype == np.float32 and init(KEY, (2, 3), "float16").dtype == np.float16
        with jax.enable_x64(True):
            assert init(KEY, (2, 3)).dtype == np.float64
    assert initializers.normal(dtype="bfloat16")(KEY, (2,)).dtype == jnp.bfloat16
    assert initializers.constant(jnp.arange(2))(KEY, (3, 2)).tolist() == [[0, 1]] * 3
    assert initializers.he_normal()(KEY, (0, 3)).shape == initializers.orthogonal()(KEY, (0, 3)).shape == (0, 3)


def test_they_are_functions_like_any_other():
    init = initializers.lecun_normal()
    compiled = jax.jit(init, static_argnums=1)(KEY, (3, 4))
    np.testing.assert_allclose(compiled, init(KEY, (3, 4)), rtol=1e-6)
    assert jax.vmap(lambda k: init(k, (3, 4)))(jax.random.split(KEY, 5)).shape == (5, 3, 4)
    assert isinstance(init, initializers.Initializer) and jax.nn.initializers is initializers
    np.testing.assert_array_equal(init(jax.random.PRNGKey(0), (3, 4)), init(KEY, (3, 4)))


@pytest.mark.parametrize(
    "init, shape, words",
    [
        (initializers.variance_scaling(1.0, "fan", "normal"), (2, 3), "invalid mode .* fan"),
        (initializers.variance_scaling(1.0, "fan_in", "cauchy"), (2, 3), "invalid distribution .* cauchy"),
        (initializers.he_normal(), (3,), "1-dimensional weights tensor"),
        (initializers.orthogonal(), (3,), "at least a 2D shape"),
        (initializers.orthogonal(column_axis=5), (3, 4), "column_axis 5 is out of bounds"),
        (initializers.delta_orthogonal(), (3, 3), "3D, 4D or 5D"),
        (initializers.delta_orthogonal(), (3, 4, 3), "`fan_in` must be less or equal than `fan_out`, got 4 and 3"),
        (initializers.uniform(dtype="int32"), (2,), "must be a float dtype, got int32"),
    ],
)
def test_errors(init, shape, words):
    with pytest.raises(ValueError, match=words):
        init(KEY, shape)


@pytest.mark.parametrize("in_axis, out_axis", [(0, -1), ((0,), ()), ((), ()), ((), (0,))])
def test_vectors_have_fans_where_their_axes_are_named(in_axis, out_axis):
    init = initializers.variance_scaling(2.0, "fan_avg", "uniform", in_axis=in_axis, out_axis=out_axis)
    assert init(jax.random.key(1), (7,)).shape == (7,)
    with pytest.raises(ValueError, match="Must be at least 2D or specify in_axis"):
        initializers.variance_scaling(2.0, "fan_avg", "uniform")(jax.random.key(1), (7,))
