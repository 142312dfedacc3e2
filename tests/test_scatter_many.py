"""Scatters of many updates to few elements, which compiled programs do in parts."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler import indexing

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
