"""Reductions over segments: against loops over the elements, their derivatives, and what they refuse."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import ops
from checkers import check_jvp

RNG = np.random.default_rng(3)
REDUCERS = {
    "sum": (ops.segment_sum, np.add, 0),
    "prod": (ops.segment_prod, np.multiply, 1),
    "max": (ops.segment_max, np.maximum, -np.inf),
    "min": (ops.segment_min, np.minimum, np.inf),
}
IDS = {
    "any": RNG.integers(0, 5, 40, np.int32),
    "sorted": np.sort(RNG.integers(0, 5, 40, np.int32)),
    "outside": RNG.integers(-3, 9, 40, np.int32),
    "narrow": RNG.integers(0, 5, 40, np.uint8),
}


def by_loop(ufunc, neutral, data, ids, count):
    out = np.full((count, *data.shape[1:]), neutral, data.dtype)
    for row, i in zip(data, ids, strict=True):
        if 0 <= i < count:
            out[i] = ufunc(out[i], row)
    return out


@pytest.mark.share(2)
@pytest.mark.parametrize("name", REDUCERS)
def test_values(name):
    function, ufunc, neutral = REDUCERS[name]
    data = RNG.integers(-3, 4, (40, 3)).astype(np.float32)  # of which sums and products are exact
    for kind, ids in IDS.items():
        expected = by_loop(ufunc, neutral, data, ids, 5)
        hints = {"indices_are_sorted": kind == "sorted"}
        for bucket_size in (None, 1, 7, 100):
            result = function(data, ids, 5, bucket_size=bucket_size, **hints)
            np.testing.assert_array_equal(result, expected)
        clipped = by_loop(ufunc, neutral, data, np.clip(ids, 0, 4), 5)
        np.testing.assert_array_equal(function(data, ids, 5, mode="clip", **hints), clipped)
    together = jax.jit(lambda x, ids: [function(x, i, 5) for i in ids])(data, list(IDS.values()))
    for result, ids in zip(together, IDS.values(), strict=True):
        np.testing.assert_array_equal(result, by_loop(ufunc, neutral, data, ids, 5))


@pytest.mark.parametrize("name", REDUCERS)
def test_buckets_in_double_precision(name):
    function, data = REDUCERS[name][0], np.arange(1.0, 6.0)
    with jax.enable_x64(True):
        for dtype in ("int8", "uint32", "int64"):
            ids = np.array([0, 2, 1, 0, 5], dtype)
            assert function(data, ids, 4, bucket_size=2).tolist() == function(data, ids, 4).tolist()
        far = np.array([0, 2**32, 1, 0, 2**40 + 1])  # what is out of bounds stays so
        assert function(data, far, 4, bucket_size=2).tolist() == function(data, far, 4).tolist()


@pytest.mark.parametrize("name", REDUCERS)
def test_batches(name):
    function, ufunc, neutral = REDUCERS[name]
    data = RNG.integers(-3, 4, (2, 40)).astype(np.float32)
    ids = np.stack([IDS["any"], IDS["outside"]])
    result = jax.vmap(lambda x, i: function(x, i, 5))(data, ids)
    for k in range(2):
        np.testing.assert_array_equal(result[k], by_loop(ufunc, neutral, data[k], ids[k], 5))


def test_neutral_elements():
    for dtype, low, high in (
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("bool", False, True),
        ("float16", -np.inf, np.inf),
    ):
        data, ids = jnp.ones(1, dtype), jnp.array([1])
        assert ops.segment_max(data, ids)[0] == low and ops.segment_min(data, ids)[0] == high
        assert ops.segment_max(data, ids).dtype == dtype


def test_the_number_of_segments():
    x, ids = jnp.arange(4.0), jnp.array([2, 0, 2, -1])
    assert ops.segment_sum(x, ids).shape == (3,)
    assert ops.segment_sum(x, jnp.array([-1, -1, -2, -1])).shape == (0,)
    assert ops.segment_sum(x, np.array([255, 0, 2, 3], "uint8")).shape == (256,)  # one more than a dtype holds
    assert ops.segment_sum(jnp.zeros((0, 2)), jnp.zeros(0, int), 3).shape == (3, 2)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="num_segments of segment_sum"):
        jax.jit(ops.segment_sum)(x, ids)


@pytest.mark.parametrize("name", REDUCERS)
def test_derivatives(name):
    function = REDUCERS[name][0]
    ids = np.array([0, 1, 1, 0, 2, 2, 2, 1, 0, 4, -1, 7])
    reduce = lambda x: function(x, ids, 5)[np.array([0, 1, 2, 4])]
    with jax.enable_x64(True):
        data = RNG.permutation(12) / 4 + 1.0
        check_jvp(reduce, (data,), rtol=1e-5)
        np.testing.assert_allclose(jax.jacrev(reduce)(data), jax.jacfwd(reduce)(data), rtol=1e-12)


def test_a_product_with_a_zero_has_a_derivative():
    gradient = jax.grad(lambda x: ops.segment_prod(x, jnp.array([0, 0, 0]), 1)[0])(jnp.array([2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(gradient, [0, 6, 0])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x, i: ops.segment_sum([1.0], i), TypeError, "segment_sum requires ndarray or scalar"),
        (lambda x, i: ops.segment_max(x, x), TypeError, "segment_ids must be integers, got float32"),
        (lambda x, i: ops.segment_max(x, i, -1), ValueError, "num_segments must be at least 0, got -1"),
        (lambda x, i: ops.segment_min(x, i, 2, bucket_size=0), ValueError, "bucket_size must be at least 1, got 0"),
        (lambda x, i: ops.segment_sum(x[:2], i, 2), ValueError, "broadcasting"),
        (lambda x, i: ops.segment_sum(x, i, 2.0), TypeError, "integer"),
        (lambda x, i: ops.segment_prod(x, i, 2, mode="round"), ValueError, "round"),
        (lambda x, i: ops.segment_sum(x > 0, i, 2), TypeError, "bool"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.arange(3.0), jnp.array([0, 1, 1]))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_as_many_segments_as_the_greatest_id_says(dtype):
    x = jnp.arange(4.0)
    for ids, count in (([0, 3, 3, 1], 4), ([2, 2, 0, 0], 3), ([0, 0, 0, 0], 1)):
        for _ in range(4):  # the same types, and other numbers of segments
            found = ops.segment_sum(x, jnp.array(ids, dtype))
            np.testing.assert_array_equal(found, ops.segment_sum(x, jnp.array(ids, dtype), count))
    assert ops.segment_sum(x, jnp.array([-1, -1, -1, -1])).shape == (0,)
    with pytest.raises(ValueError, match="num_segments must be at least 0"):
        ops.segment_sum(x, jnp.array([-3, -3, -2, -3]))
