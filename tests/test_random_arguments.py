"""What samplers and keys refuse, and corners of their arguments; the words are those measured beside JAX."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.dtypes import TypePromotionError

KEY = random.key(3)
SAFE = {
    "pareto": 1, "lognormal": 1, "rayleigh": 1, "wald": 1, "chisquare": 1, "t": 1, "f": 2, "beta": 2, "triangular": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", SAFE)
def test_parameters_lose_no_digits_by_themselves(name):
    ascending = np.arange(1, SAFE[name] + 1)
    sampler = getattr(random, name)
    wide = [jnp.float32(x) for x in ascending]
    with pytest.raises(TypePromotionError, match=f"to {name}, cannot safely cast argument of type float32 to bfloat16"):
        sampler(KEY, *wide, (2,), "bfloat16")
    for narrow in (float, int, jnp.float16, jnp.int8):
        assert sampler(KEY, *[narrow(x) for x in ascending], (2,), "float16").dtype == np.float16


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random.normal(KEY, (-1,)),
        lambda: random.bits(KEY, (2, -3)),
        lambda: random.uniform(KEY, -1),
        lambda: random.gamma(KEY, 1.0, (-1,)),
        lambda: random.split(KEY, -1),
        lambda: jax.jit(lambda k: random.normal(k, (-1,)))(KEY),
        lambda: random.randint(KEY, (-1,), 0, 3),
        lambda: random.choice(KEY, 3, (-1,)),
    ],
)
def test_negative_lengths(draw):
    with pytest.raises(ValueError, match="shape must have every element be nonnegative, got .*-"):
        draw()


def test_balls_of_several_norms():
    points = random.ball(KEY, 3, jnp.array([1.0, 2.0, 8.0]), (4000, 3))
    assert points.shape == (4000, 3, 3)
    for i, p in enumerate((1, 2, 8)):
        norms = np.linalg.norm(np.asarray(points[:, i]), p, axis=-1)
        assert norms.max() <= 1 + 1e-5
        np.testing.assert_allclose(np.mean(norms**3), 0.5, atol=0.02)  # its volume is uniform
    with pytest.raises(ValueError, match="ball parameter shapes"):
        random.ball(KEY, 2, jnp.array([1.0, 3.0]))


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_normal_vectors_of_16_bits(dtype, method):
    covariance = jnp.array([[2.0, 0.5], [0.5, 1.0]], dtype)
    drawn = random.multivariate_normal(KEY, jnp.zeros(2, dtype), covariance, (5000,), dtype, method)
    assert drawn.dtype == dtype
    np.testing.assert_allclose(np.cov(np.asarray(drawn, np.float32).T), [[2.0, 0.5], [0.5, 1.0]], atol=0.1)


def test_categories_without_replacement_are_of_32_bits():
    with jax.enable_x64(True):
        assert random.categorical(KEY, jnp.zeros(5), shape=(3,), replace=False).dtype == np.int32
        assert random.categorical(KEY, jnp.zeros(5), shape=(3,)).dtype == np.int64


# ---- keys among arrays


def data(keys) -> list:
    return random.key_data(keys).tolist()


def test_keys_of_equal_words():
    dtype = KEY.dtype
    for made in (jnp.zeros((2,), dtype), jnp.zeros_like(random.split(KEY)), lax.full((2,), 0, dtype)):
        assert made.dtype == dtype and data(made) == [[0, 0], [0, 0]]
    assert data(jnp.ones_like(KEY)) == [1, 1] and data(lax.full_like(KEY, 3)) == [3, 3]
    assert data(lax.full((2,), KEY, dtype)) == [[0, 3], [0, 3]]
    assert data(jax.jit(lambda k: lax.full((2,), k, k.dtype))(KEY)) == [[0, 3], [0, 3]]
    assert data(jnp.tril(random.split(KEY, (2, 2))))[0][1] == [0, 0]
    assert data(jnp.insert(random.split(KEY), 0, KEY))[0] == [0, 3]
    with pytest.raises(TypeError, match="fill_value must be a number or a key of dtype key<fry>"):
        lax.full((2,), random.key(0, impl="rbg"), dtype)


@pytest.mark.parametrize(
    "order",
    [
        jnp.sort, jnp.argsort, lax.sort, jnp.unique, jnp.max, jnp.argmin, jnp.median, lambda k: lax.top_k(k, 1),
        lambda k: jnp.searchsorted(k, k[0]), lambda k: lax.clamp(k, k, k), lambda k: k < k, jnp.cumsum,
    ],
)  # fmt: skip
def test_keys_have_no_order(order):
    keys = random.split(KEY, 3)
    for function in (order, jax.jit(order)):
        with pytest.raises((TypeError, ValueError), match="key<fry>"):
            function(keys)


def test_keys_are_carried_along_when_others_are_sorted():
    keys = random.split(KEY, 3)
    numbers, sorted_keys = lax.sort([jnp.array([2, 0, 1]), keys], num_keys=1)
    assert numbers.tolist() == [0, 1, 2] and data(sorted_keys) == data(keys[jnp.array([1, 2, 0])])


@pytest.mark.parametrize("impl", [None, "rbg"])
def test_deleted_keys(impl):
    key = random.key(0, impl=impl)
    random.normal(key)
    name = str(key.dtype)
    key.delete()
    assert key.is_deleted() and key.shape == () and str(key.dtype) == name
    uses = (
        random.normal, random.split, lambda k: random.fold_in(k, 1), random.key_data, lambda k: random.gamma(k, 1.0),
        jax.jit(random.normal), random.clone, repr, lambda k: k[None], iter,
    )  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match="Array has been deleted with shape=key<"):
            use(key)
