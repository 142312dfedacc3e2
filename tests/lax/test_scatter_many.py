"""Scatters of many updates: to few elements, which compiled programs do in parts, and to elements in several axes."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph import indexing

rng = np.random.default_rng(8)
UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def expected(base, index, updates, kind, mode):
    """By NumPy, float64 for floats."""
    out = base.astype(np.float64) if base.dtype.kind == "f" else base.copy()
    at = np.where(index < 0, index + len(base), index)
    at = np.clip(at, 0, len(base) - 1) if mode == "clip" else at
    kept = (at >= 0) & (at < len(base))
    UFUNCS[kind].at(out, at[kept], updates[kept].astype(out.dtype))
    return out


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", UFUNCS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("count,size,row", [(300_003, 7, ()), (1 << 18, 5000, ()), (40_000, 50, (16,))])
def test_as_one_after_the_other(kind, dtype, count, size, row):
    index = rng.integers(-size - 2, size + 2, count).astype(np.int32)
    if kind == "mul":
        updates = rng.choice([-1, 1], (count, *row)).astype(dtype)
    else:
        updates = (rng.normal(size=(count, *row)) * 50).astype(np.int32).astype(dtype)
    base = rng.integers(0, 9, (size, *row)).astype(dtype)
    assert updates.size >= indexing.MANY
    for mode in ("drop", "clip"):
        got = jax.jit(lambda b, i, u, m=mode: getattr(b.at[i], {"mul": "multiply"}.get(kind, kind))(u, mode=m))
        np.testing.assert_array_equal(got(base, index, updates), expected(base, index, updates, kind, mode))


def test_sums_of_fractions_and_signs_of_zeros():
    index, updates = rng.integers(0, 100, 1 << 19).astype(np.int32), rng.normal(size=1 << 19).astype(np.float32)
    base = np.full(101, -0.0, np.float32)
    got = np.asarray(jax.jit(lambda b, i, u: b.at[i].add(u))(base, index, updates))
    np.testing.assert_allclose(got, expected(base, index, updates, "add", "drop"), rtol=1e-5, atol=2e-3)
    assert np.signbit(got[100])  # no update: -0 as it was


def test_gradients_and_members_of_vmap():
    index = jnp.asarray(rng.integers(0, 10, (2, 1 << 18)).astype(np.int32))
    table = jnp.asarray(rng.integers(0, 5, (2, 10)).astype(np.float32))
    got = jax.jit(jax.vmap(jax.grad(lambda t, i: jnp.sum(t[i]))))(table, index)
    want = [np.bincount(np.asarray(i), minlength=10) for i in index]
    np.testing.assert_array_equal(got, want)


def test_the_parts_are_shared_out_among_threads():
    text = jax.jit(lambda i, u: jnp.zeros(10).at[i].add(u)).explain(jnp.zeros(1 << 19, int), jnp.ones(1 << 19))
    assert f"scatter -> float32[{indexing.PARTS},10]" in text


# ---- single elements in several axes, whose places are found first


@pytest.mark.share(4)
@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
@pytest.mark.parametrize("integer", [np.int8, np.int32, np.uint8, np.uint32])
@pytest.mark.parametrize("shape,axes", [((50, 40), (0, 1)), ((50, 40), (1, 0)), ((3, 200, 5), (2, 0, 1))])
def test_single_elements(shape, axes, integer, mode):
    count, outside = indexing.POINTS + 3, 0 if mode == "promise_in_bounds" else 3
    low = 0 if np.dtype(integer).kind == "u" else -outside
    most = np.iinfo(integer).max
    index = np.stack([rng.integers(low, min(shape[d] + outside, most), count) for d in axes], -1).astype(integer)
    if not outside:
        index = np.minimum(index, np.array([shape[d] - 1 for d in axes])).astype(integer)
    updates = rng.integers(-3, 4, count).astype(np.float32)
    base = rng.integers(0, 9, shape).astype(np.float32)
    numbers = jax.lax.ScatterDimensionNumbers((), tuple(range(len(shape))), axes)
    places = [index[:, axes.index(d)].astype(np.int64) for d in range(len(shape))]
    if mode == "clip":
        places = [np.clip(p, 0, n - 1) for p, n in zip(places, shape)]
    kept = np.all([(p >= 0) & (p < n) for p, n in zip(places, shape)], 0)
    for scatter, combine in ((jax.lax.scatter_add, np.add), (jax.lax.scatter_max, np.maximum)):
        wanted = base.copy()
        combine.at(wanted, tuple(p[kept] for p in places), updates[kept])
        got = jax.jit(lambda b, i, u, s=scatter: s(b, i, u, numbers, mode=mode))(base, index, updates)
        np.testing.assert_array_equal(got, wanted)


def test_the_last_of_several_updates_of_one_element_stays():
    index = rng.integers(0, 30, (indexing.POINTS, 2)).astype(np.int32)
    wanted = np.zeros((30, 30), np.float32)
    for k, (i, j) in enumerate(index):
        wanted[i, j] = k
    got = jax.jit(lambda i: jnp.zeros((30, 30)).at[i[:, 0], i[:, 1]].set(jnp.arange(len(index), dtype=np.float32)))(
        index
    )
    np.testing.assert_array_equal(got, wanted)


def test_gradients_of_single_elements():
    index = rng.integers(0, 20, (2, indexing.POINTS)).astype(np.int32)
    table = rng.normal(size=(20, 20)).astype(np.float32)
    got = jax.jit(jax.grad(lambda t: jnp.sum(t[index[0], index[1]])))(table)
    wanted = np.zeros((20, 20), np.float32)
    np.add.at(wanted, tuple(index), 1)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.share(2)
@pytest.mark.parametrize("row", [(), (5,), (40,)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16"])
def test_narrow_floats_are_rounded_after_each_update(dtype, row):
    """Eagerly they were once summed in float32, and in compiled programs not."""
    dtype = jnp.dtype(dtype)
    most = 2.0 ** (jnp.finfo(dtype).nmant + 1)  # to which 1 adds nothing
    places, ones = np.zeros(9, np.int32), jnp.ones((9, *row), dtype)
    whole = jnp.full((2, *row), most, dtype)
    for add in (lambda b, u: b.at[places].add(u), lambda b, u: -(-b).at[places].subtract(u)):
        for run in (add, jax.jit(add)):
            assert np.array_equal(run(whole, ones), whole)
    index = rng.integers(0, 3, 200)
    updates = jnp.array(0.95 + 0.1 * rng.random((200, *row)), dtype)
    for name in ("add", "subtract", "multiply", "min", "max"):
        fun = lambda b, u, name=name: getattr(b.at[index], name)(u)
        assert np.array_equal(fun(whole[:1].repeat(3, 0), updates), jax.jit(fun)(whole[:1].repeat(3, 0), updates))


@pytest.mark.parametrize("write", ["set", "add", "max"])
def test_updates_by_one_hot_products_are_dropped_out_of_bounds(write):
    x, i = jnp.arange(4.0), jnp.array([1, 7])
    for run in (lambda f: f, jax.jit, jax.grad):
        write_as = lambda mode: run(lambda x: getattr(x.at[i], write)(9.0, mode=mode).sum())(x)  # noqa: B023, E731
        np.testing.assert_array_equal(write_as("one_hot"), write_as("drop"))
