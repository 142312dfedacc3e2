"""Keys, generators and samplers: the specification's examples, its four misuses, every sampler's
distribution.
"""

import copy
import importlib.util
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as stats

import catena as jax
import catena.numpy as jnp
from catena import dtypes, lax, random
from catena.random import kernels

IMPLS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
RNG = np.random.default_rng(3)
KEY = random.key(0)


@pytest.fixture(scope="module", autouse=True)
def squares():
    """The generator of ``examples/squares_generator.py``, registered once."""
    if "squares" not in random.generator.generators:
        path = Path(__file__).parents[2] / "examples" / "squares_generator.py"
        spec = importlib.util.spec_from_file_location("squares_generator", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def data(keys) -> list:
    return random.key_data(keys).tolist()


# ---- the specification's examples (jep-9263)


def test_old_and_new_keys():
    assert repr(random.PRNGKey(0)) == "Array([0, 0], dtype=uint32)"
    assert repr(random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert (KEY.shape, repr(KEY.dtype), KEY.ndim, KEY.size) == ((), "key<fry>", 0, 1)
    assert repr(random.key(0, impl="rbg")) == "Array((), dtype=key<rbg>) overlaying:\n[0 0 0 0]"


def test_key_arrays():
    keys = jax.vmap(random.key)(jnp.arange(4))
    assert repr(keys) == "Array((4,), dtype=key<fry>) overlaying:\n[[0 0]\n [0 1]\n [0 2]\n [0 3]]"
    assert keys.shape == (4,)


def test_key_data_of_old_and_new():
    assert random.key_data(KEY).tolist() == [0, 0]
    raw = random.PRNGKey(3)
    assert random.key_data(raw).tolist() == raw.tolist()


def test_detecting_typed_keys():
    assert dtypes.issubdtype(KEY.dtype, dtypes.prng_key) and jnp.issubdtype(KEY.dtype, dtypes.prng_key)
    assert not dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended) and dtypes.issubdtype(KEY.dtype, dtypes.extended)
    assert issubclass(KEY.dtype.type, np.generic) and KEY.dtype._impl.name == "threefry2x32"
    assert isinstance(KEY, jax.Array)


def test_values_of_the_specification():
    wanted = np.array([0.947667, 0.9785799, 0.33229148], np.float32)
    assert np.array_equal(random.uniform(random.key(0, impl="threefry2x32"), (3,)), wanted)
    wanted = np.array([0.39904642, 0.8805201, 0.73571277], np.float32)
    assert np.array_equal(random.uniform(random.key(0, impl="rbg"), (3,)), wanted)


def test_full_delegates_to_the_dtype():
    assert data(lax.full((2,), KEY, KEY.dtype)) == [[0, 0], [0, 0]]


# ---- the four misuses


def test_misuse_buffer_indexing():
    raw = random.PRNGKey(999)
    assert np.array_equal(random.PRNGKey(raw[1]), raw)  # the raw key's trap
    with pytest.raises(IndexError, match="Too many indices: array is 0-dimensional, but 1 were indexed"):
        random.key(999)[1]


def test_misuse_arithmetic():
    with pytest.raises(TypeError, match="does not accept dtypes? key<fry>"):
        KEY + 1
    with pytest.raises(TypeError, match="mul does not accept dtype key<fry> at position 0"):
        KEY * KEY
    with pytest.raises(TypeError, match="neg does not accept dtype key<fry>"):
        -KEY
    with pytest.raises(TypeError, match="Cannot interpret 'key<fry>' as a data type"):
        jnp.sum(random.split(KEY))
    with pytest.raises(TypeError, match="Cannot interpret 'key<fry>' as a data type"):
        jnp.sin(KEY)


def test_misuse_transposition():
    keys = random.split(KEY)
    assert keys.shape == (2,)
    with pytest.raises(ValueError, match="vmap was requested to map its argument along axis 1"):
        jax.vmap(random.uniform, in_axes=1)(keys)
    assert keys[None].T.shape == (2, 1)


def test_misuse_reuse():
    x, y = random.uniform(KEY, (100,)), random.uniform(KEY, (100,))
    assert np.array_equal(x, y)
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        key = random.key(0)
        random.uniform(key), random.uniform(key)


# ---- keys through the language


KEYS = {impl: random.split(random.key(7, impl=impl), 3) for impl in IMPLS}


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_move_like_any_array(impl):
    keys, words = KEYS[impl], random.key_data(KEYS[impl])
    moves = {
        "index": (lambda x: x[1]),
        "reverse": (lambda x: x[::-1]),
        "new axis": (lambda x: x[:, None]),
        "stack": (lambda x: jnp.stack([x[0], x[2]])),
        "concatenate": (lambda x: jnp.concatenate([x, x])),
        "where": (lambda x: jnp.where(jnp.arange(3) > 0, x, x[0]) if x.ndim == 1 else x),
        "update": (lambda x: x.at[0].set(x[2])),
        "unknown index": (lambda x: jax.jit(lambda y, i: y[i])(x, 2)),
    }
    for name, move in moves.items():
        if name == "where":
            assert data(move(keys)) == data(keys)[:1] + data(keys)[1:]
            continue
        assert random.key_data(move(keys)).tolist() == move(words).tolist(), name
        assert random.key_data(jax.jit(move)(keys)).tolist() == move(words).tolist(), name
    assert data(pickle.loads(pickle.dumps(keys))) == words.tolist()
    assert data(copy.deepcopy(keys)) == words.tolist()
    assert data(jax.device_put(keys)) == words.tolist()
    assert data(jnp.reshape(keys, (1, 3))) == [words.tolist()]
    assert (keys == keys).all() and not (keys[0] == keys[1])


MODES = [*[(impl, True) for impl in IMPLS], ("threefry2x32", False)]


@pytest.mark.share(2)
@pytest.mark.parametrize(("impl", "partitionable"), MODES)
def test_keys_through_control_flow_and_transformations(impl, partitionable):
    with jax.threefry_partitionable(partitionable):
        keys_through_control_flow(impl)
        keys_through_transformations(impl)


def keys_through_transformations(impl):
    keys = random.split(random.key(5, impl=impl), 4)
    assert data(jax.vmap(random.clone)(keys)) == data(keys) == data(jax.jit(lambda k: k)(keys))
    folded = [data(random.fold_in(k, i)) for i, k in enumerate(keys)]
    if impl != "unsafe_rbg":  # where ``vmap`` derives all keys from the first one, as JAX's does
        assert data(jax.vmap(random.fold_in)(keys, jnp.arange(4))) == folded
        assert data(jax.jit(jax.vmap(random.fold_in))(keys, jnp.arange(4))) == folded
    assert data(lax.map(lambda k: random.split(k)[0], keys)) == [data(random.split(k)[0]) for k in keys]
    assert data(jnp.where(jnp.arange(4) < 2, keys, keys[::-1])) == [*data(keys)[:2], *data(keys)[1::-1]]
    tree = jax.tree.map(lambda k: k[None], {"a": keys[0], "b": [keys[1]]})
    assert data(tree["b"][0]) == [data(keys[1])]

    def noisy(x, key):
        return jnp.sum(x * random.normal(key, x.shape))

    x = jnp.ones(3)
    for gradient in (jax.grad(noisy), jax.jit(jax.grad(noisy)), jax.grad(jax.checkpoint(noisy))):
        np.testing.assert_allclose(gradient(x, keys[0]), random.normal(keys[0], (3,)), rtol=1e-6)
    carried = jax.grad(lambda x: lax.scan(lambda c, k: (c + noisy(x, k), k), 0.0, keys)[0])(x)
    single = sum(np.asarray(random.normal(k, (3,))) for k in keys)
    np.testing.assert_allclose(carried, single, rtol=1e-5)


def keys_through_control_flow(impl):
    key = random.key(3, impl=impl)
    looped = lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), key)
    plain = key
    for i in range(3):
        plain = random.fold_in(plain, i)
    assert data(looped) == data(plain)
    carried, seen = lax.scan(lambda c, k: (random.fold_in(c, 1), k), key, KEYS[impl])
    assert data(seen) == data(KEYS[impl]) and carried.shape == ()
    taken = lax.cond(False, lambda k: k, lambda k: random.fold_in(k, 5), key)
    assert data(taken) == data(random.fold_in(key, 5))
    ended = lax.while_loop(lambda s: s[1] < 2, lambda s: (random.split(s[0])[1], s[1] + 1), (key, 0))[0]
    assert data(ended) == data(random.split(random.split(key)[1])[1])


def test_keys_have_float0_tangents():
    value, tangent = jax.jvp(lambda x: x * random.normal(KEY), (2.0,), (1.0,))
    assert np.isclose(tangent, random.normal(KEY)) and np.isclose(value, 2 * tangent)
    _, pull = jax.vjp(random.normal, KEY)
    assert pull(jnp.float32(1))[0].dtype == jax.float0
    slope, keys = jax.grad(lambda x: (x * random.normal(KEY), random.split(KEY)), has_aux=True)(1.0)
    assert np.isclose(slope, random.normal(KEY)) and keys.shape == (2,)


def test_conversions_are_refused():
    with pytest.raises(TypeError, match="PRNGKey dtype cannot be converted to a NumPy array"):
        np.asarray(KEY)
    for refused in (bool, int, float):
        with pytest.raises(TypeError):
            refused(KEY)
    for cast in (KEY.astype, lambda dtype: jnp.astype(KEY, dtype)):
        with pytest.raises(ValueError, match="Cannot convert_element_type from key<fry> to uint32") as error:
            cast("uint32")
        assert isinstance(error.value, NotImplementedError)
    for truths in (jnp.any, jnp.all, jax.jit(jnp.any)):
        with pytest.raises(ValueError, match="Cannot convert_element_type from key<fry> to bool"):
            truths(KEY)


def test_generators_do_not_mix():
    with pytest.raises((TypeError, ValueError)):
        jnp.stack([KEY, random.key(0, impl="philox4x32")])
    assert random.key_dtype("rbg") != random.key_dtype("unsafe_rbg")
    assert random.key(0, dtype=random.key_dtype("rbg")).dtype == random.key_dtype("rbg")


# ---- seeds and flags


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (1, [0, 1]),
        (-1, [0, 2**32 - 1]),
        (2**31, [0, 2**31]),
        (2**32, [0, 0]),
        (-(2**63), [0, 0]),
        (True, [0, 1]),
    ],
)
def test_seeds_keep_32_bits(seed, words):
    assert data(random.key(seed)) == words


def test_seeds_with_x64():
    with jax.enable_x64(True):
        assert data(random.key(2**32 + 5)) == [1, 5]
        assert data(random.key(-1)) == [2**32 - 1] * 2


def test_seeds_of_arrays_and_tracers():
    assert data(random.key(np.uint8(7))) == data(jax.jit(random.key)(7)) == [0, 7]


def test_flags():
    with jax.default_prng_impl("rbg"):
        assert random.PRNGKey(0).tolist() == [0, 0, 0, 0]
    with jax.enable_custom_prng(True):
        assert random.PRNGKey(0).dtype == KEY.dtype
    with jax.legacy_prng_key("error"), pytest.raises(ValueError, match="Legacy uint32 key array"):
        random.normal(random.PRNGKey(0))
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key array"):
        random.normal(random.PRNGKey(0))
    with jax.threefry_partitionable(False):
        assert random.normal(random.PRNGKey(0), (1,))[0] == np.float32(-0.20584226)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_raw_keys_draw_what_typed_ones_do(impl):
    raw, typed = random.PRNGKey(5, impl=impl), random.key(5, impl=impl)
    with jax.default_prng_impl(impl):
        assert np.array_equal(random.normal(raw, (3,)), random.normal(typed, (3,)))
        assert random.split(raw, 4).tolist() == data(random.split(typed, 4))
        assert random.fold_in(raw, 9).tolist() == data(random.fold_in(typed, 9))
        assert random.key_impl(raw) == random.key_impl(typed) == impl


# ---- errors

ERRORS = {
    "not a key": (lambda: random.normal(1), TypeError, "expected key_data to have ndim, shape, and dtype"),
    "raw floats": (lambda: random.normal(jnp.zeros(2)), TypeError, "expected key_data.dtype = uint32; got dtype=float32"),
    "key array": (lambda: random.normal(random.split(KEY)), ValueError, r"normal accepts a single key, but was given a key array of shape \(2,\)"),
    "raw key array": (lambda: random.normal(jnp.zeros((2, 2), "uint32")), ValueError, r"key array of shape \(2, 2\)"),
    "float seed": (lambda: random.key(1.5), TypeError, "PRNG key seed must be an integer"),
    "array seed": (lambda: random.key(jnp.arange(2)), TypeError, "key accepts a scalar seed"),
    "key as seed": (lambda: random.key(KEY), TypeError, "key accepts a scalar seed, but was given a PRNG key"),
    "bad name": (lambda: random.key(0, impl="bad"), ValueError, 'unrecognized PRNG implementation "bad"'),
    "bad impl": (lambda: random.key(0, impl=3), TypeError, "unrecognized type"),
    "negative data": (lambda: random.fold_in(KEY, -1), OverflowError, "Python integer -1 out of bounds for uint32"),
    "wrap of int32": (lambda: random.wrap_key_data(jnp.zeros(2, "int32")), TypeError, "expected key_data.dtype = uint32"),
    "wrap of three": (lambda: random.wrap_key_data(jnp.zeros(3, "uint32")), TypeError, r"to end with \(2,\); got shape=\(3,\)"),
    "integer uniform": (lambda: random.uniform(KEY, (), "int32"), ValueError, "dtype argument to `uniform` must be a float dtype, got int32"),
    "float randint": (lambda: random.randint(KEY, (), 0, 5, "float32"), TypeError, "randint only accepts integer dtypes, got float32"),
    "float shape": (lambda: random.normal(KEY, (2.5,)), TypeError, "Shapes must be 1D sequences of concrete values"),
    "too many": (lambda: random.choice(KEY, 3, (5,), replace=False), ValueError, "Cannot take a larger sample"),
    "no categories": (lambda: random.choice(KEY, 0, (2,)), ValueError, "a must be greater than 0"),
    "bad p": (lambda: random.choice(KEY, 5, (2,), p=jnp.ones(4)), ValueError, "p must be None or a 1D vector"),
    "float count": (lambda: random.permutation(KEY, 1.5), TypeError, "x must be an integer or at least 1-dimensional"),
    "integer p": (lambda: random.bernoulli(KEY, 1), TypeError, "bernoulli probability `p` must have a floating dtype"),
    "bad mode": (lambda: random.bernoulli(KEY, 0.5, mode="x"), ValueError, "expected 'high' or 'low'"),
    "bad method": (lambda: random.multivariate_normal(KEY, jnp.zeros(2), jnp.eye(2), method="x"), ValueError, "method must be one of"),
    "covariance": (lambda: random.multivariate_normal(KEY, jnp.zeros(3), jnp.eye(2)), ValueError, "requires cov.shape"),
    "scalar alpha": (lambda: random.dirichlet(KEY, 1.0), ValueError, "requires alpha.ndim >= 1"),
    "broadcast": (lambda: random.gamma(KEY, jnp.ones(3), (2,)), ValueError, "must be broadcast-compatible with shape argument"),
    "sharding": (lambda: random.normal(KEY, out_sharding="x"), TypeError, "out_sharding must be a NamedSharding"),
    "taken name": (lambda: random.register_generator("rbg", key_shape=(4,), seed=abs, random_bits=abs, split=abs, fold_in=abs), ValueError, "is taken"),
    "no words": (lambda: random.register_generator("none", key_shape=(0,), seed=abs, random_bits=abs, split=abs, fold_in=abs), ValueError, "one word or more"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


# ---- how eager draws are computed must not show

EDGES = (0, 1, 5, 1023, 1024, 1025, 3000, 65536, 70001)


@pytest.mark.share(5)
@pytest.mark.parametrize("impl", [*IMPLS, "squares"])
@pytest.mark.parametrize("draw", ["bits", "normal", "randint"])
def test_eager_draws_equal_compiled_ones(impl, draw):
    key = random.key(11, impl=impl)
    call = {
        "bits": random.bits,
        "normal": random.normal,
        "randint": lambda k, s: random.randint(k, s, -5, 1000),
    }[draw]
    for size in EDGES if impl == "threefry2x32" else (0, 7, 1025):
        eager, compiled = call(key, (size,)), jax.jit(lambda k, n=size: call(k, (n,)))(key)
        assert np.array_equal(eager, compiled) and eager.dtype == compiled.dtype, size


@pytest.mark.share(2)
@pytest.mark.parametrize("bit_width", [8, 16, 32])
@pytest.mark.parametrize("partitionable", [True, False])
def test_widths(bit_width, partitionable):
    with jax.threefry_partitionable(partitionable):
        for size in (1, 3, 1030):
            draw = lambda k, n=size: random.bits(k, (n,), f"uint{bit_width}")  # noqa: E731
            assert np.array_equal(draw(KEY), jax.jit(draw)(KEY))


def test_shapes_are_rows_of_one_stream():
    flat = random.normal(KEY, (2 * 3 * 700,))
    assert np.array_equal(random.normal(KEY, (2, 3, 700)).reshape(-1), flat)
    assert np.array_equal(random.normal(KEY, (1500,)), flat[:1500])
    assert random.normal(KEY, (0, 4)).shape == (0, 4) and random.normal(KEY, 3).shape == (3,)


def test_operands_broadcast():
    low, high = jnp.arange(3.0), jnp.array([[10.0], [20.0]])
    drawn = random.uniform(KEY, (2, 3), minval=low, maxval=high)
    assert np.array_equal(drawn, jax.jit(lambda a, b: random.uniform(KEY, (2, 3), minval=a, maxval=b))(low, high))
    assert (drawn >= low).all() and (drawn < high).all()
    long = random.uniform(KEY, (5, 2000), minval=jnp.zeros(2000), maxval=jnp.arange(1.0, 6.0)[:, None])
    assert np.array_equal(long, random.uniform(KEY, (5, 2000)) * jnp.arange(1.0, 6.0)[:, None])


def test_plans_are_not_mistaken():
    assert random.uniform(KEY, (2,), minval=0, maxval=1).dtype == random.uniform(KEY, (2,), minval=0.0).dtype
    random.normal(KEY, (2,))
    with pytest.raises(TypeError):
        random.normal(KEY, (2.0,))
    with jax.enable_x64(True):
        assert random.normal(KEY, (2,)).dtype == np.float64
    assert random.normal(KEY, (2,)).dtype == np.float32
    assert not np.array_equal(random.normal(random.key(1), (2,)), random.normal(KEY, (2,)))


def test_draws_of_arrays_are_of_those_of_the_call():
    """What a plan is known by are types: other arrays of these are its operands."""
    for n in (1, 5, 1024, 1500, 70000):
        for _ in range(3):
            p = jnp.asarray(RNG.random(n), np.float32)
            assert np.array_equal(random.bernoulli(KEY, p), random.uniform(KEY, (n,)) < p), n
            low = jnp.asarray(RNG.random(n), np.float32)
            found = random.uniform(KEY, (n,), np.float32, low, low + 1), random.uniform(KEY, (n,), None, low, low)
            alone = jax.jit(lambda a, b, n=n: random.uniform(KEY, (n,), np.float32, a, b))
            assert np.array_equal(found[0], alone(low, low + 1)) and np.array_equal(found[1], low)
            assert np.array_equal(random.bernoulli(KEY, p[0], (n,)), random.bernoulli(KEY, float(p[0]), (n,)))
    both = [random.uniform(KEY, (4,), np.float32, x, y) for x, y in ((2.0, low[0] + 7), (3.0, low[0] + 7))]
    assert (
        not np.array_equal(*both) and (both[1] >= 3.0).all()
    )  # of arrays and numbers, these are no operands of others
    for size in (2, 3):
        assert random.uniform(KEY, jnp.asarray([size, 2])).shape == (size, 2)


@pytest.mark.parametrize(
    "draw",
    [random.rayleigh, random.pareto, random.weibull_min, random.triangular, random.geometric, random.lognormal],
    ids=lambda f: f.__name__,
)
def test_plans_of_distributions_with_parameters(draw):
    """What is drawn by a plan is what a compiled program draws, of numbers and of arrays, whatever was drawn before."""
    count = {"weibull_min": 2, "triangular": 3}.get(draw.__name__, 1)
    for shape in ((7,), (3, 700)):
        compiled = jax.jit(lambda key, *params, shape=shape: draw(key, *params, shape))
        for first in (0.25, 0.5, 0.25):
            numbers = [first + 0.125 * i for i in range(count)]
            for params in (numbers, [jnp.full(shape, x) for x in numbers], [jnp.float32(numbers[0]), *numbers[1:]]):
                for key in (KEY, random.key(5)):
                    found = draw(key, *params, shape)
                    assert np.array_equal(found, compiled(key, *params)) and found.shape == shape
    draw(KEY, *numbers, (7,))
    before = dict(kernels._plans)
    draw(random.key(8), *numbers, (7,))
    assert kernels._plans == before and any(kind[0].__name__ == draw.__name__ for kind in before)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (3, 2)])
def test_parameters_of_weibull_min_have_more_axes_than_its_numbers(shape):
    """As in JAX: each number serves all parameters that it meets; without a shape there is one."""
    scale, concentration = jnp.array([1.0, 2.0]), jnp.array([[1.5], [3.0], [0.5]])
    unit = random.exponential(KEY, shape)
    found = random.weibull_min(KEY, scale, concentration, shape)
    assert found.shape == (3, 2) and np.allclose(found, scale * unit ** (1 / concentration), rtol=1e-5)
    assert np.array_equal(found, jax.jit(lambda k: random.weibull_min(k, scale, concentration, shape))(KEY))
    with pytest.raises(ValueError):
        random.weibull_min(KEY, jnp.ones(2), 1.0, (3,))


def test_double_sided_maxwell_without_a_shape_has_that_of_its_parameters_twice():
    """Its shape is one in front of the parameters', and theirs by default, as in JAX."""
    loc, scale = jnp.array([0.0, 1.0]), jnp.ones((3, 1))
    found = random.double_sided_maxwell(KEY, loc, scale)
    assert found.shape == (3, 2, 3, 2)
    assert np.array_equal(found, random.double_sided_maxwell(KEY, loc, scale, (3, 2)))
    assert random.double_sided_maxwell(KEY, 0.0, 1.0).shape == ()


def test_new_shapes_compile_nothing():
    random.normal(KEY, (70000,))
    before = len(kernels._kernels)
    for n in (1, 10, 999, 65537, 131073):
        random.normal(KEY, (n, 1))
    assert len(kernels._kernels) == before


def test_debug_flags():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        random.uniform(KEY, (3,), minval=np.nan)
    with jax.debug_nans(True):
        random.normal(random.wrap_key_data(np.full(4, 0xFFFFFFFF, np.uint32), impl="rbg"))


# ---- transformations


@pytest.mark.share(2)
@pytest.mark.parametrize("impl", ["threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "squares"])
def test_vmap_equals_a_loop(impl):
    keys = random.split(random.key(2, impl=impl), 4)
    for draw in (
        random.normal,
        lambda k: random.bits(k, (3,)),
        lambda k: random.gamma(k, 2.0, (2,)),
        random.split,
    ):
        together = jax.vmap(draw)(keys)
        for i in range(4):
            one = draw(keys[i])
            same = together[i] == one if one.dtype == keys.dtype else np.isclose(together[i], one, rtol=1e-5)
            assert np.all(same)


def test_vmap_of_rbg_draws_from_the_first_key():
    keys = random.split(random.key(0, impl="rbg"), 3)
    together = jax.vmap(lambda k: random.bits(k, (4,)))(keys)
    assert together.reshape(-1).tolist() == random.bits(keys[0], (12,)).tolist()


def test_vmap_of_parameters_and_of_both():
    drawn = jax.vmap(lambda a: random.gamma(KEY, a))(jnp.array([1.0, 2.0]))
    assert np.allclose(drawn, [random.gamma(KEY, 1.0), random.gamma(KEY, 2.0)])
    nested = jax.vmap(lambda k: jax.vmap(lambda i: random.fold_in(k, i))(jnp.arange(2)))(random.split(KEY, 3))
    assert data(nested[2, 1]) == data(random.fold_in(random.split(KEY, 3)[2], 1))


def gamma_quantile(a, probability):
    return stats.gamma.ppf(probability, a)


@pytest.mark.share(3)
@pytest.mark.parametrize("a", [0.4, 1.0, 3.7, 50.0])
def test_gamma_differentiates_its_quantile(a):
    sample, slope = jax.value_and_grad(lambda x: random.gamma(KEY, x))(a)
    probability = stats.gamma.cdf(float(sample), a)
    step = 1e-3 * a
    wanted = (gamma_quantile(a + step, probability) - gamma_quantile(a - step, probability)) / (2 * step)
    assert np.isclose(slope, wanted, rtol=2e-3)
    log_slope = jax.grad(lambda x: random.loggamma(KEY, x))(a)
    log_sample = float(random.loggamma(KEY, a))
    probability = stats.gamma.cdf(np.exp(log_sample), a)
    wanted = (np.log(gamma_quantile(a + step, probability)) - np.log(gamma_quantile(a - step, probability))) / (
        2 * step
    )
    assert np.isclose(log_slope, wanted, rtol=2e-3)


def test_parameters_are_differentiable():
    functions = {
        "uniform": lambda x: random.uniform(KEY, (3,), minval=0.0, maxval=x).sum(),
        "beta": lambda x: random.beta(KEY, x, 2.0),
        "dirichlet": lambda x: random.dirichlet(KEY, jnp.array([1.0, 2.0]) * x)[0],
        "chisquare": lambda x: random.chisquare(KEY, x),
        "f": lambda x: random.f(KEY, x, 3.0),
        "t": lambda x: random.t(KEY, x),
        "lognormal": lambda x: random.lognormal(KEY, x),
        "pareto": lambda x: random.pareto(KEY, x),
        "rayleigh": lambda x: random.rayleigh(KEY, x),
        "weibull_min": lambda x: random.weibull_min(KEY, x, 2.0),
        "truncated_normal": lambda x: random.truncated_normal(KEY, -x, x),
        "triangular": lambda x: random.triangular(KEY, 0.0, 1.0, x),
        "multivariate_normal": lambda x: random.multivariate_normal(KEY, jnp.zeros(2), x * jnp.eye(2)).sum(),
    }
    smooth = {"uniform", "lognormal", "pareto", "rayleigh", "weibull_min", "truncated_normal", "triangular"}
    for name, function in functions.items():
        slope = float(jax.grad(function)(2.5))
        assert np.isfinite(slope) and slope != 0, name
        if name in smooth:
            with jax.enable_x64(False):
                wanted = (float(function(2.5 + 1e-2)) - float(function(2.5 - 1e-2))) / 2e-2
            assert np.isclose(slope, wanted, rtol=2e-2), name


# ---- distributions, against SciPy

N = 20_000
DISTRIBUTIONS = {
    "uniform": (lambda k: random.uniform(k, (N,), minval=-2.0, maxval=5.0), stats.uniform(-2, 7)),
    "normal": (lambda k: random.normal(k, (N,)), stats.norm()),
    "truncated_normal": (lambda k: random.truncated_normal(k, -1.0, 2.0, (N,)), stats.truncnorm(-1, 2)),
    "lognormal": (lambda k: random.lognormal(k, 0.7, (N,)), stats.lognorm(0.7)),
    "exponential": (lambda k: random.exponential(k, (N,)), stats.expon()),
    "laplace": (lambda k: random.laplace(k, (N,)), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, (N,)), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, (N,)), stats.cauchy()),
    "gumbel": (lambda k: random.gumbel(k, (N,)), stats.gumbel_r()),
    "gumbel, high": (lambda k: random.gumbel(k, (N,), mode="high"), stats.gumbel_r()),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (N,)), stats.rayleigh(scale=2)),
    "pareto": (lambda k: random.pareto(k, 3.0, (N,)), stats.pareto(3)),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 1.5, (N,)), stats.weibull_min(1.5, scale=2)),
    "triangular": (lambda k: random.triangular(k, -1.0, 0.5, 2.0, (N,)), stats.triang(0.5, -1, 3)),
    "maxwell": (lambda k: random.maxwell(k, (N,)), stats.maxwell()),
    "wald": (lambda k: random.wald(k, 1.5, (N,)), stats.invgauss(1.5)),
    "gamma": (lambda k: random.gamma(k, 2.5, (N,)), stats.gamma(2.5)),
    "gamma below 1": (lambda k: random.gamma(k, 0.3, (N,)), stats.gamma(0.3)),
    "beta": (lambda k: random.beta(k, 2.0, 0.7, (N,)), stats.beta(2, 0.7)),
    "chisquare": (lambda k: random.chisquare(k, 3.0, (N,)), stats.chi2(3)),
    "f": (lambda k: random.f(k, 3.0, 5.0, (N,)), stats.f(3, 5)),
    "t": (lambda k: random.t(k, 3.0, (N,)), stats.t(3)),
    "generalized_normal": (lambda k: random.generalized_normal(k, 1.5, (N,)), stats.gennorm(1.5)),
    "dirichlet": (lambda k: random.dirichlet(k, jnp.array([2.0, 0.7, 1.0]), (N,))[:, 0], stats.beta(2, 1.7)),
    "ball": (lambda k: jnp.linalg.norm(random.ball(k, 3, shape=(N,)), axis=-1) ** 3, stats.uniform()),
    "orthogonal": (lambda k: random.orthogonal(k, 3, (N,))[:, 0, 0], stats.uniform(-1, 2)),
    "multivariate_normal": (
        lambda k: random.multivariate_normal(k, jnp.ones(2), jnp.array([[4.0, 1.0], [1.0, 2.0]]), (N,))[:, 0],
        stats.norm(1, 2),
    ),
    "double_sided_maxwell": (
        lambda k: jnp.abs(random.double_sided_maxwell(k, 1.0, 2.0, (N,)) - 1) / 2,
        stats.maxwell(),
    ),
}


@pytest.mark.share(8)
@pytest.mark.parametrize("impl", ["threefry2x32", "squares"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name, impl):
    draw, wanted = DISTRIBUTIONS[name]
    drawn = np.asarray(draw(random.key(123, impl=impl)), np.float64)
    assert stats.kstest(drawn, wanted.cdf).pvalue > 1e-3


DISCRETE = {
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), stats.bernoulli(0.3)),
    "bernoulli, high": (lambda k: random.bernoulli(k, 0.3, (N,), mode="high"), stats.bernoulli(0.3)),
    "randint": (lambda k: random.randint(k, (N,), -3, 7), stats.randint(-3, 7)),
    "geometric": (lambda k: random.geometric(k, 0.4, (N,)), stats.geom(0.4)),
    "poisson": (lambda k: random.poisson(k, 3.0, (N,)), stats.poisson(3)),
    "poisson, large": (lambda k: random.poisson(k, 40.0, (N,)), stats.poisson(40)),
    "binomial": (lambda k: random.binomial(k, 9.0, 0.3, (N,)), stats.binom(9, 0.3)),
    "binomial, large": (lambda k: random.binomial(k, 100.0, 0.6, (N,)), stats.binom(100, 0.6)),
    "multinomial": (lambda k: random.multinomial(k, 20.0, jnp.array([0.2, 0.3, 0.5]), shape=(N, 3))[:, 1], stats.binom(20, 0.3)),
    "categorical": (lambda k: random.categorical(k, jnp.log(jnp.array([0.2, 0.5, 0.3])), shape=(N,)), stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
    "choice": (lambda k: random.choice(k, 3, (N,), p=jnp.array([0.2, 0.5, 0.3])), stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
    "rademacher": (lambda k: random.rademacher(k, (N,)), stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))),
}  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name, impl):
    draw, wanted = DISCRETE[name]
    drawn = np.asarray(draw(random.key(7, impl=impl))).astype(int)
    values, counts = np.unique(drawn, return_counts=True)
    expected = wanted.pmf(values) * N
    common = expected > 5
    rest = N - expected[common].sum()
    if rest > 5:
        counts = np.append(counts[common], N - counts[common].sum())
        expected = np.append(expected[common], rest)
    else:
        counts, expected = counts[common], expected[common]
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_permutation_and_choice():
    drawn = random.permutation(KEY, 1000)
    assert sorted(drawn.tolist()) == list(range(1000)) and drawn.tolist() != list(range(1000))
    matrix = jnp.arange(12).reshape(3, 4)
    shuffled = random.permutation(KEY, matrix, axis=1)
    assert sorted(map(tuple, shuffled.T.tolist())) == sorted(map(tuple, matrix.T.tolist()))
    apart = random.permutation(KEY, jnp.tile(jnp.arange(50), (3, 1)), axis=1, independent=True)
    assert (jnp.sort(apart, axis=1) == jnp.arange(50)).all() and not (apart[0] == apart[1]).all()
    assert random.permutation(KEY, -3).shape == (0,)  # as in NumPy
    assert len(set(random.choice(KEY, 20, (20,), replace=False).tolist())) == 20
    assert random.choice(KEY, matrix, (5, 2), axis=1).shape == (3, 5, 2)
    assert len(set(random.categorical(KEY, jnp.zeros(6), shape=(6,), replace=False).tolist())) == 6


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_randint_reaches_both_ends(dtype):
    limits = jnp.iinfo(dtype)
    low = 0 if limits.min == 0 else -3
    drawn = random.randint(KEY, (4096,), low, 2, dtype)
    assert drawn.dtype == dtype and drawn.min() == low and drawn.max() == 1
    assert (random.randint(KEY, (5,), 3, 3, dtype) == 3).all()
    if limits.bits < 32:
        full = random.randint(KEY, (70000,), int(limits.min), int(limits.max) + 1, dtype)
        assert full.min() <= limits.min + 5 and full.max() >= limits.max - 5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    assert random.normal(KEY, (5,), dtype).dtype == dtype
    if dtype != "complex64":
        for draw in (random.uniform, random.exponential, random.gumbel, random.laplace, random.cauchy):
            drawn = draw(KEY, (50,), dtype)
            assert drawn.dtype == dtype and jnp.isfinite(drawn.astype("float32")).all()
        assert random.gamma(KEY, 2.0, (5,), dtype).dtype == dtype


# ---- a generator of one's own


def test_own_generator():
    key = random.key(1, impl="squares")
    assert repr(key.dtype) == "key<sq>" and random.key_impl(key) == "squares"
    assert data(pickle.loads(pickle.dumps(key))) == data(key)
    assert random.bits(key, (3,), "uint8").dtype == np.uint8
    with jax.enable_x64(True):
        assert random.bits(key, (3,), "uint64").dtype == np.uint64
    assert np.array_equal(jax.jit(random.normal)(key), random.normal(key))
    assert random.permutation(key, 10).shape == random.poisson(key, 3.0, (10,)).shape == (10,)


def test_primitives_print():
    text = str(jax.make_jaxpr(lambda k: random.wrap_key_data(random.key_data(random.fold_in(k, 3))))(KEY))
    assert text == (
        "{ lambda ; a:key<fry>[]. let\n    b:key<fry>[] = random_fold_in a 3:u32[]\n    c:u32[2] = random_unwrap b\n"
        "    d:key<fry>[] = random_wrap[impl=fry] c\n  in (d,) }"
    )
    text = str(jax.make_jaxpr(lambda k: random.bits(k, (2,)))(random.PRNGKey(0)))
    assert text == (
        "{ lambda ; a:u32[2]. let\n    b:key<fry>[] = random_wrap[impl=fry] a\n"
        "    c:u32[2] = random_bits[bit_width=32 shape=(2,)] b\n  in (c,) }"
    )
    assert (
        str(jax.make_jaxpr(random.key)(0)) == "{ lambda ; a:i32[]. let b:key<fry>[] = random_seed[impl=fry] a in (b,) }"
    )


# ---- lax


def test_rng_bit_generator():
    state, drawn = lax.rng_bit_generator(np.array([1, 2, 3, 4], np.uint32), (2, 3))
    assert state.tolist() == [1, 2, 5, 4] and drawn[0, 0] == 0x1E8FE864
    eager = lax.rng_bit_generator(np.zeros(4, np.uint32), (5,), np.uint16, lax.RandomAlgorithm.RNG_THREE_FRY)
    compiled = jax.jit(lambda k: lax.rng_bit_generator(k, (5,), np.uint16, lax.RandomAlgorithm.RNG_THREE_FRY))(
        np.zeros(4, np.uint32)
    )
    assert all(np.array_equal(a, b) for a, b in zip(eager, compiled, strict=True))
    with pytest.raises(TypeError, match="unsupported dtype int32"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (5,), np.int32)
    with pytest.raises(TypeError, match="key must be"):
        lax.rng_bit_generator(np.zeros(3, np.uint32), (5,))


def test_rng_uniform():
    first, second = lax.rng_uniform(0.0, 1.0, (50,)), lax.rng_uniform(0.0, 1.0, (50,))
    assert not np.array_equal(first, second) and 0 <= first.min() <= first.max() < 1
    drawn = jax.jit(lambda: lax.rng_uniform(3, 9, (500,)))()
    assert set(drawn.tolist()) == set(range(3, 9))
    each = jax.vmap(lambda a: lax.rng_uniform(a, a + 1, (20,)))(jnp.arange(3.0))
    assert (jnp.floor(each) == jnp.arange(3.0)[:, None]).all()


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        random.normal(KEY), random.split(KEY), random.gamma(KEY, 0.01)


def test_keys_that_a_jitted_function_closes_over():
    keys = random.split(random.key(3), 2)
    np.testing.assert_array_equal(random.key_data(jax.jit(lambda: keys)()), random.key_data(keys))


def test_keys_print_what_is_known_of_their_generator():
    text = jax.random.split(jax.random.key(0, impl="philox4x32"))[:1].pprint()
    assert "shape = (1,)" in text and "name = philox4x32" in text and "key_shape = (2,)" in text


def test_one_uniform_number_between_bounds_with_axes():
    """JAX takes bounds of one element for one number, which has the axes of the lower one (flashbax draws so)."""
    key, keys = random.key(0), random.split(random.key(1), 3)
    number = random.uniform(key, (), jnp.float32, 2.0, 5.0)
    np.testing.assert_array_equal(random.uniform(key, (), jnp.float32, jnp.full(1, 2.0), 5.0), [number])
    np.testing.assert_array_equal(random.uniform(key, (), jnp.float32, 2.0, jnp.full((1, 1), 5.0)), number)
    rows = jax.vmap(lambda key, low: random.uniform(key, (), jnp.float32, low, low + 1))(keys, jnp.ones((3, 1)))
    np.testing.assert_array_equal(rows[:, 0], [random.uniform(k, (), jnp.float32, 1.0, 2.0) for k in keys])
    with pytest.raises(ValueError, match="broadcast-compatible"):
        random.uniform(key, (), jnp.float32, jnp.zeros(2), 1.0)
