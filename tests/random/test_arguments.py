"""What samplers and keys refuse, and corners of their arguments; the words are those measured beside JAX."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.core.config import override
from catena.dtypes import TypePromotionError
from catena.random import continuous

KEY = random.key(3)
SAFE = {
    "pareto": 1, "lognormal": 1, "rayleigh": 1, "wald": 1, "chisquare": 1, "t": 1, "f": 2, "beta": 2, "triangular": 3,
}  # fmt: skip


@pytest.mark.share(3)
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


@pytest.mark.share(2)
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


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_keys_that_are_near_are_equal(transform):
    keys = random.split(KEY, 3)
    assert transform(jnp.isclose)(keys, keys[1]).tolist() == [False, True, False]
    assert transform(jnp.allclose)(keys, keys) and not jnp.allclose(keys, keys[0], equal_nan=True)
    with pytest.raises(TypeError, match="isclose does not accept dtypes key<fry>, float32"):
        jnp.isclose(KEY, 1.0)


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


# ---- seeds, generators by name, keys in arrays


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1, 2**64, -(2**63) - 1])
@pytest.mark.parametrize("make", [random.key, random.PRNGKey, lambda s: random.key(s, impl="rbg")])
def test_seeds_of_more_than_64_bits(make, seed):
    for call in (make, lambda s: jax.jit(lambda: make(s))()):
        with pytest.raises(OverflowError, match="a seed must be an integer of 64 bits"):
            call(seed)
    assert random.key_data(random.key(2**63 - 1)).tolist() == [0, 2**32 - 1]
    assert random.key_data(random.key(np.uint64(2**63))).tolist() == [0, 0]


def test_the_dtype_of_a_key_may_be_the_name_of_a_generator():
    assert random.key(42, dtype="threefry2x32").dtype == random.key(0).dtype
    assert random.wrap_key_data(np.zeros(4, np.uint32), dtype="rbg").dtype == random.key_dtype("rbg")
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        random.key(42, dtype="nonsense")
    with pytest.raises(ValueError, match="both 'impl' and 'dtype'"):
        random.key(42, dtype="rbg", impl="rbg")


def test_arrays_filled_with_keys():
    keys = random.split(random.key(0), 4)
    for made in (jnp.full(4, 5, keys.dtype), jnp.full_like(keys, 5), jax.jit(lambda: jnp.full(4, 5, keys.dtype))()):
        assert made.dtype == keys.dtype and random.key_data(made).tolist() == [[5, 5]] * 4
    assert jax.device_get({"keys": keys})["keys"].dtype == keys.dtype


@pytest.mark.parametrize("shape", [2, np.int32(2)])
def test_the_shape_of_choice_is_a_sequence(shape):
    with pytest.raises(TypeError, match="shape must be a sequence"):
        random.choice(random.key(0), 5, shape)


@pytest.mark.parametrize("use", [random.uniform, random.split, random.clone, random.key_data])
def test_what_is_no_key_is_said_before_that_it_is_raw(use):
    with jax.legacy_prng_key("error"):
        for wrong in (jnp.zeros(1, "float32"), jnp.zeros(3, "uint32"), 3):
            with pytest.raises(TypeError, match="invalid PRNG key data"):
                use(wrong)
        with pytest.raises(ValueError, match="Legacy uint32 key"):
            use(jnp.zeros(2, "uint32"))
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key"):
        use(jnp.zeros(2, "uint32"))


def test_gumbel_numbers_whose_tails_are_both_fine():
    key = random.key(0)
    drawn = random.gumbel(key, (2,), mode="highest")
    np.testing.assert_allclose(drawn, [-1.0818492, -1.3463643], rtol=1e-6)  # as JAX 0.10.2
    assert random.categorical(key, jnp.zeros(5), shape=(6,), mode="highest").tolist() == [2, 0, 1, 4, 0, 3]
    with pytest.raises(ValueError, match="valid mode for gumbel"):
        random.gumbel(key, mode="higher")


@pytest.mark.parametrize("dtype", ["complex64", "uint8", "bool", "float16"])
def test_signs_of_every_dtype_are_those_of_the_default_one(dtype):
    expected = np.asarray(random.rademacher(KEY, (50,))).astype(dtype)
    np.testing.assert_array_equal(random.rademacher(KEY, (50,), dtype), expected, strict=True)
    np.testing.assert_array_equal(jax.jit(lambda k: random.rademacher(k, (50,), dtype))(KEY), expected, strict=True)


@pytest.mark.parametrize("logits", [jnp.arange(3), jnp.ones(3, bool), jnp.ones(3, "complex64")])
def test_logits_are_floats(logits):
    for replace in (True, False):
        with pytest.raises(ValueError, match=f"logits must be floats.*got {logits.dtype}"):
            random.categorical(KEY, logits, replace=replace)


def test_fractions_of_64_bits():
    high = np.array([0, 0, 0, 1, 2**31, 2**32 - 1, 5], np.uint32)
    low = np.array([1, 2**31, 2**32 - 1, 0, 0, 2**32 - 1, 7], np.uint32)
    exact = [(int(h) << 32 | int(n)) for h, n in zip(high, low, strict=True)]
    cut = [float(x >> max(x.bit_length() - 24, 0) << max(x.bit_length() - 24, 0)) / 2**64 for x in exact]
    assert continuous._fraction(high, low).tolist() == cut


# ---- which stream is drawn


def older(draw):
    def drawn(*args):
        with jax.threefry_partitionable(False):
            return draw(*args)

    return drawn


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: random.bits(k, (3,)),
        lambda k: random.key_data(random.split(k, 3)),
        lambda k: random.normal(k, (3,)),
        lambda k: random.permutation(k, 9),
        lambda k: random.bits(random.split(random.fold_in(k, 3))[0]),
        lambda k: jax.lax.scan(lambda c, _: (random.split(c)[0], random.bits(c)), k, None, length=2)[1],
        lambda k: jax.vmap(lambda key: random.bits(key, (2,)))(random.split(k, 2)),
        lambda k: jax.lax.cond(True, lambda key: random.bits(key), lambda key: random.bits(key) + 1, k),
        lambda k: jax.grad(lambda x: (x * random.uniform(k, (3,))).sum())(1.0),
        lambda k: random.bits(k, (300,)),
    ],
)
@pytest.mark.share(2)
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_the_stream_is_that_of_the_flag_where_the_program_is_written(draw, impl):
    key, new = random.key(0, impl=impl), jax.jit(draw)
    first, second = new(key), older(draw)(key)
    np.testing.assert_array_equal(jax.jit(older(draw))(key), second)
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(new(key), second)
        np.testing.assert_array_equal(draw(key), second)
    np.testing.assert_array_equal(new(key), first)
    np.testing.assert_array_equal(draw(key), first)
    if impl == "threefry2x32":
        assert not np.array_equal(first, second)
    closed = jax.make_jaxpr(older(draw))(key)
    np.testing.assert_array_equal(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, key)[0], second)


def test_the_flag_for_finer_tails():
    key = random.key(0)
    with override("jax_high_dynamic_range_gumbel", True):
        for draw in (
            lambda mode: random.gumbel(key, (3,), mode=mode),
            lambda mode: random.categorical(key, jnp.ones(5), shape=(8,), mode=mode),
        ):
            assert np.array_equal(draw(None), draw("high")) and not np.array_equal(draw(None), draw("low"))


def test_numbers_are_parameters_of_their_own_sign_and_dtype():
    """Python's numbers are converted once; zeros of both signs are equal, and two numbers."""
    for _ in range(3):
        for dtype in ("float32", "bfloat16"):
            ends = [random.triangular(KEY, zero, zero, zero, (2,), dtype) for zero in (0.0, -0.0)]
            assert [e.dtype for e in ends] == [dtype] * 2
            np.testing.assert_array_equal(
                random.wald(KEY, 1.5, (4,), dtype), random.wald(KEY, jnp.asarray(1.5, dtype), (4,), dtype)
            )
    assert not np.signbit(np.asarray(continuous.safe_float(0.0, np.dtype("float32"), "f")))
    assert np.signbit(np.asarray(continuous.safe_float(-0.0, np.dtype("float32"), "f")))


def test_choices_by_probabilities_are_those_of_compiled_ones():
    p = jnp.asarray([0.1, 0.0, 0.6, 0.3, 0.0])
    draw = lambda key, p: random.choice(key, 5, (40,), p=p)
    for seed in range(4):
        key = random.key(seed)
        first, again, compiled = draw(key, p), draw(key, p), jax.jit(draw)(key, p)
        np.testing.assert_array_equal(first, compiled)
        np.testing.assert_array_equal(again, compiled)
        assert not np.isin(first, [1, 4]).any()
