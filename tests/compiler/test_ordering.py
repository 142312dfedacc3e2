"""Sorting, selection and convolution."""

import numpy as np
import pytest

import catena as jax
from compiled import check, run

rng = np.random.default_rng(3)


@pytest.mark.share(9)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int8, np.int32, np.uint16, np.int64, np.bool_]
)
@pytest.mark.parametrize(
    "shape,axis", [((5,), 0), ((1000,), 0), ((7, 40), 1), ((300, 6), 0), ((3, 100, 2), 1), ((0, 4), 1)]
)
def test_sort(dtype, shape, axis):
    x = (rng.normal(size=shape) * 50).astype(dtype)
    if x.size > 30 and np.dtype(dtype).kind == "f":
        x.flat[7], x.flat[11], x.flat[13] = np.nan, np.inf, -np.inf
    check(lambda b, x: b.sort([x], axis), np.sort(x, axis), x)
    i = np.broadcast_to(
        np.expand_dims(np.arange(shape[axis], dtype=np.int32), [d for d in range(x.ndim) if d != axis]), shape
    ).copy()
    order = np.argsort(x, axis, kind="stable")
    check(
        lambda b, x, i: b.sort([x, i], axis),
        [np.take_along_axis(x, order, axis), order.astype(np.int32)],
        x,
        i,
    )


def test_sort_by_two_keys():
    a, c, v = rng.integers(0, 4, 500), rng.normal(size=500).round(1), np.arange(500)
    order = np.lexsort((c, a))
    check(lambda b, a, c, v: b.sort([a, c, v], 0, num_keys=2), [a[order], c[order], v[order]], a, c, v)


@pytest.mark.parametrize("shape,k", [((10,), 3), ((4, 200), 7), ((2, 3, 50), 50), ((6,), 0)])
def test_top_k(shape, k):
    x = rng.integers(-50, 50, shape).astype(np.float32)
    order = np.argsort(-x, -1, kind="stable")[..., :k]
    check(lambda b, x: b.top_k(x, k), [np.take_along_axis(x, order, -1), order.astype(np.int32)], x)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int8", "uint16", "int32", "bool"])
@pytest.mark.parametrize(
    "shape,axis,k",
    [((6, 37), 1, 3), ((37, 6), 0, 4), ((3, 5, 4), 1, 2), ((2, 1024), 1, 4), ((2, 300), 1, 8), ((0, 7), 1, 3)],
)
def test_the_few_greatest_of_short_rows(dtype, shape, axis, k):
    """They are found one after the other: ties in the order of their places, NaN first, -0 and 0 alike."""
    x = rng.integers(0 if dtype[0] in "ub" else -4, 5, shape).astype(np.float32)
    if "float" in dtype:
        x = np.where(x == 4, np.nan, np.where(x == 3, -0.0, np.where(x == 2, -np.inf, x)))
    x = x.astype(jax.numpy.dtype(dtype))
    down = np.where(np.isnan(x.astype(np.float64)), -np.inf, -x.astype(np.float64))
    order = np.argsort(down, axis, kind="stable").take(range(k), axis)
    values, places = run(lambda b, x: b.top_k(x, k, axis), x)
    assert values.tobytes() == np.take_along_axis(x, order, axis).tobytes()
    np.testing.assert_array_equal(places, order.astype(np.int32))


def test_the_few_greatest_of_short_rows_are_not_sorted():
    text = lambda n, k: (
        jax.jit(lambda x: jax.lax.top_k(x, k)).lower(np.zeros((9, n), np.float32)).compile().as_text("program")
    )
    assert "min" in text(300, 3) and "min" in text(1024, 4)
    assert "min" in text(512, 8)
    assert not any("min" in text(n, k) for n, k in ((300, 9), (513, 5), (1025, 4)))


@pytest.mark.share(16)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64, np.bool_])
@pytest.mark.parametrize("shape,k", [((3, 1000), 5), ((200_000,), 100), ((200_003,), 9000), ((3, 70_001), 64)])
@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_top_k_of_long_rows(dtype, shape, k, order):
    x = (rng.normal(size=shape) * 1000).astype(dtype)
    if order != "random":
        x = np.ascontiguousarray(np.sort(x)[..., :: 1 if order == "ascending" else -1])
    down = -x.astype(np.float64) if x.dtype.kind == "f" else ~x
    places = np.argsort(down, -1, kind="stable")[..., :k]
    check(lambda b, x: b.top_k(x, k), [np.take_along_axis(x, places, -1), places.astype(np.int32)], x)


def _conv(x, w, strides, padding, lhs, rhs, groups):
    """A direct convolution, NCHW and OIHW."""
    n, c, *s = x.shape
    o, i, *k = w.shape
    big = np.zeros((n, c, *[(a - 1) * d + 1 for a, d in zip(s, lhs)]))
    big[(slice(None), slice(None), *[slice(None, None, d) for d in lhs])] = x
    big = np.pad(big, ((0, 0), (0, 0), *padding))
    out = [(b - ((q - 1) * d + 1)) // t + 1 for b, q, d, t in zip(big.shape[2:], k, rhs, strides)]
    y = np.zeros((n, o, *out))
    for p in np.ndindex(*out):
        for q in np.ndindex(*k):
            at = tuple(a * t + b * d for a, b, t, d in zip(p, q, strides, rhs))
            column = big[(slice(None), slice(None), *at)].reshape(n, groups, c // groups)
            kernel = w[(slice(None), slice(None), *q)].reshape(groups, o // groups, i)
            y[(slice(None), slice(None), *p)] += np.einsum("ngc,goc->ngo", column, kernel).reshape(n, o)
    return y


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "strides,padding,lhs,rhs,groups",
    [
        ((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1),
        ((2, 2), ((0, 1), (2, 0)), (1, 1), (1, 1), 1),
        ((1, 1), ((2, 2), (2, 2)), (2, 2), (1, 1), 1),
        ((1, 2), ((0, 0), (1, 1)), (1, 1), (2, 1), 1),
        ((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2),
        ((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 4),
    ],
)
def test_conv(strides, padding, lhs, rhs, groups):
    x = rng.normal(size=(3, 4, 9, 10)).astype(np.float32)
    w = rng.normal(size=(4 if groups == 4 else 8, 4 // groups, 3, 3)).astype(np.float32)
    want = _conv(x, w, strides, padding, lhs, rhs, groups).astype(np.float32)
    spec = ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    check(
        lambda b, x, w: b.conv(x, w, spec, (strides, padding, lhs, rhs), (groups, 1)),
        want,
        x,
        w,
        rtol=1e-4,
        atol=1e-4,
    )
    nhwc = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    check(
        lambda b, x, w: b.conv(x, w, nhwc, (strides, padding, lhs, rhs), (groups, 1)),
        want.transpose(0, 2, 3, 1),
        x.transpose(0, 2, 3, 1).copy(),
        w.transpose(2, 3, 1, 0).copy(),
        rtol=1e-4,
        atol=1e-4,
    )


def test_max_pool_gradient():
    x = rng.normal(size=(6, 8)).astype(np.float32)
    g = rng.normal(size=(3, 4)).astype(np.float32)
    want = np.zeros_like(x)
    for i in range(3):
        for j in range(4):
            block = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            p, q = np.unravel_index(block.argmax(), (2, 2))
            want[2 * i + p, 2 * j + q] += g[i, j]
    check(lambda b, g, x: b.select_and_scatter_add(g, x, "ge", (2, 2), (2, 2), ((0, 0), (0, 0))), want, g, x)


def test_the_greatest_elements_are_read_where_they_are():
    """Not where the integers lie that order as they do, which would be stored for that: only keys are."""
    found = jax.jit(lambda x: jax.lax.top_k(x, 9)).lower(np.zeros(100_000, np.float32)).compile().as_text("program")
    keys, *_ = [line for line in found.splitlines() if "sort_key" in line]
    assert found.splitlines()[found.splitlines().index(keys) + 1].endswith("-> arena+0[400000]")
