"""Views, reductions, products and what fusion makes of them."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from compiled import check, compile_fn, run

rng = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def test_views():
    x = normal(4, 6, 10)
    check(lambda b, x: b.transpose(x, (2, 0, 1)), x.transpose(2, 0, 1), x)
    check(lambda b, x: b.reshape(x, (24, 10)), x.reshape(24, 10), x)
    check(lambda b, x: b.reshape(b.transpose(x, (1, 0, 2)), (60, 4)), x.transpose(1, 0, 2).reshape(60, 4), x)
    check(lambda b, x: b.slice(x, (1, 0, 2), (3, 6, 9), (1, 2, 3)), x[1:3, 0:6:2, 2:9:3], x)
    check(lambda b, x: b.reverse(x, (0, 2)), x[::-1, :, ::-1], x)
    check(lambda b, x: b.broadcast_in_dim(x, (3, 4, 6, 10), (1, 2, 3)), np.broadcast_to(x, (3, 4, 6, 10)), x)
    check(lambda b, x: b.map("add", b.reverse(x, (2,)), b.slice(x, (0, 0, 0), x.shape)), x[..., ::-1] + x, x)
    check(lambda b, x: b.map("mul", b.reshape(x, (4, 60)), b.reshape(x, (4, 60))), (x * x).reshape(4, 60), x)
    check(lambda b, x: b.reshape(b.map("mul", x, x), (2, 120)), (x * x).reshape(2, 120), x)
    check(
        lambda b, x: b.map("neg", b.reshape(b.transpose(x, (0, 2, 1)), (240,))),
        -x.transpose(0, 2, 1).reshape(240),
        x,
    )
    check(lambda b, x: x, x, x)


def test_iota_and_concatenate():
    check(lambda b: b.iota(np.int32, (3, 5), 1), np.broadcast_to(np.arange(5, dtype=np.int32), (3, 5)))
    check(
        lambda b: b.iota(np.float32, (40, 20), 0),
        np.broadcast_to(np.arange(40, dtype=np.float32)[:, None], (40, 20)),
    )
    x, y = normal(3, 20), normal(5, 20)
    check(lambda b, x, y: b.concatenate([x, y, x], 0), np.concatenate([x, y, x]), x, y)
    check(lambda b, x: b.concatenate([x, b.map("neg", x)], 1), np.concatenate([x, -x], 1), x)
    many = [x, x + 1, x + 2, x + 3, x + 4, y, y + 1, x]  # five of one shape, then two, then one
    check(lambda b, *xs: b.concatenate(xs, 0), np.concatenate(many), *many)


@pytest.mark.share(4)
@pytest.mark.parametrize("n", [2, 30, 33, 64, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int8, ml_dtypes.bfloat16])
def test_neighbours_that_are_read_and_written_together(n, dtype):
    x = normal(n).astype(dtype)
    even, odd = (lambda b, x, i=i: b.slice(x, [i], [n], [2]) for i in (0, 1))
    if n % 2 == 0:
        check(lambda b, x: b.map("add", even(b, x), odd(b, x)), x[::2] + x[1::2], x)
        check(lambda b, x: b.map("sub", odd(b, x), even(b, x)), x[1::2] - x[::2], x)
    check(lambda b, x: [odd(b, x), even(b, x)], [x[1::2], x[::2]], x)
    columns = lambda b, x: b.concatenate([b.reshape(v, (n, 1)) for v in (x, b.map("neg", x))], 1)
    check(columns, np.stack([x, -x], 1), x)


@pytest.mark.parametrize(
    "config",
    [((1, 2, 0), (0, 3, 0)), ((1, 0, 2), (2, 2, 1)), ((-1, 2, 0), (1, -2, 0)), ((-2, -1, 1), (0, 0, 3))],
)
def test_pad(config):
    x, v = normal(5, 30), np.float32(7)
    want = _pad(x, v, config)
    check(lambda b, x, v: b.pad(x, v, config), want, x, v)
    check(lambda b, x, v: b.reduce("sum", b.pad(x, v, config), (0,)), want.sum(0), x, v, rtol=1e-5, atol=1e-5)


def _pad(x, v, config):
    for axis, (lo, hi, mid) in enumerate(config):
        n = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = max(0, n + (n - 1) * mid)
        out = np.full(shape, v, x.dtype)
        out[(slice(None),) * axis + (slice(None, None, mid + 1),)] = x
        width = [(0, 0)] * x.ndim
        width[axis] = (max(lo, 0), max(hi, 0))
        out = np.pad(out, width, constant_values=v)
        cut = slice(max(-lo, 0), out.shape[axis] - max(-hi, 0))
        x = out[(slice(None),) * axis + (cut,)]
    return x


SHAPES = [
    (),
    (1,),
    (5,),
    (100,),
    (1037,),
    (3, 4),
    (17, 33),
    (64, 64),
    (5, 6, 70),
    (2, 300, 3),
    (0, 3),
    (4, 0),
]


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("shape", SHAPES)
def test_reductions(shape, dtype):
    x = (rng.normal(size=shape) * 3).astype(np.int64).astype(dtype)
    for axes in itertools.chain.from_iterable(itertools.combinations(range(x.ndim), k) for k in range(1, x.ndim + 1)):
        check(lambda b, x, axes=axes: b.reduce("sum", x, axes), x.sum(axes, dtype=dtype), x, rtol=1e-6)
        if x.size:
            check(lambda b, x, axes=axes: b.reduce("max", x, axes), x.max(axes), x)
            check(lambda b, x, axes=axes: b.reduce("min", x, axes), x.min(axes), x)
    for axis in range(x.ndim):
        if x.size:
            check(
                lambda b, x, axis=axis: b.argreduce("max", x, axis, np.int32),
                x.argmax(axis).astype(np.int32),
                x,
            )
            check(
                lambda b, x, axis=axis: b.argreduce("min", x, axis, np.int32),
                x.argmin(axis).astype(np.int32),
                x,
            )


def test_reductions_of_special_values():
    x = normal(7, 50)
    x[2, 30], x[4, 3], x[4, 40], x[5] = np.nan, np.nan, np.nan, -np.inf
    check(lambda b, x: b.reduce("max", x, (1,)), x.max(1), x)
    check(lambda b, x: b.argreduce("max", x, 1, np.int64), x.argmax(1), x)
    check(lambda b, x: b.argreduce("max", x, 0, np.int64), x.argmax(0), x)
    m = rng.random((20, 45)) > 0.9
    for axes in ((0,), (1,), (0, 1)):
        check(lambda b, m, axes=axes: b.reduce("or", m, axes), m.any(axes), m)
        check(lambda b, m, axes=axes: b.reduce("and", m, axes), m.all(axes), m)
    c = (normal(6, 40) + 1j * normal(6, 40)).astype(np.complex64)
    check(lambda b, c: b.reduce("sum", c, (1,)), c.sum(1), c, rtol=1e-4, atol=1e-5)
    check(lambda b, c: b.reduce("prod", c, (0,)), c.prod(0), c, rtol=1e-4, atol=1e-5)


def test_sum_is_accurate():
    x = rng.random(1_000_003).astype(np.float32)
    got = run(lambda b, x: b.reduce("sum", x, (0,)), x)
    assert abs(float(got) / x.astype(np.float64).sum() - 1) < 1e-6


def test_softmax_and_layer_norm():
    x = normal(33, 70)

    def softmax(b, x):
        m = b.broadcast_in_dim(b.reduce("max", x, (1,)), x.shape, (0,))
        e = b.map("exp", b.map("sub", x, m))
        return b.map("div", e, b.broadcast_in_dim(b.reduce("sum", e, (1,)), x.shape, (0,)))

    e = np.exp(x - x.max(1, keepdims=True))
    check(softmax, e / e.sum(1, keepdims=True), x, rtol=1e-5)


def test_several_outputs_share_a_pass():
    x = normal(1000)
    exe = compile_fn(
        lambda b, x: [
            b.map("mul", x, x),
            b.map("exp", b.map("mul", x, x)),
            b.reduce("sum", b.map("mul", x, x), (0,)),
        ],
        x,
    )
    assert exe.report["functions"] <= 1
    a, e, s = exe(x)
    np.testing.assert_array_equal(a, x * x)
    np.testing.assert_allclose(e, np.exp(x * x), rtol=1e-6)
    np.testing.assert_allclose(s, (x * x).sum(), rtol=1e-5)


def _dot(lc, rc, lb=(), rb=(), dtype=None):
    return lambda b, x, y: b.dot_general(x, y, ((lc, rc), (lb, rb)), dtype or x.dtype)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(
    "m,k,n",
    [
        (2, 3, 4),
        (1, 5, 1),
        (33, 40, 50),
        (64, 128, 96),
        (128, 1, 64),
        (1, 100, 200),
        (200, 64, 1),
        (0, 3, 4),
        (3, 0, 4),
    ],
)
def test_matmul(dtype, m, k, n):
    x, y = (normal(m, k) * 4).astype(dtype), (normal(k, n) * 4).astype(dtype)
    tol = {"rtol": 1e-4, "atol": 1e-3}
    check(_dot((1,), (0,)), x @ y, x, y, **tol)
    check(_dot((0,), (0,)), x @ y, np.ascontiguousarray(x.T), y, **tol)
    check(_dot((1,), (1,)), x @ y, x, np.ascontiguousarray(y.T), **tol)
    check(_dot((0,), (1,)), x @ y, np.ascontiguousarray(x.T), np.ascontiguousarray(y.T), **tol)


def test_batched_and_transposed_products():
    x, y = normal(6, 20, 30), normal(6, 30, 25)
    check(_dot((2,), (1,), (0,), (0,)), x @ y, x, y, rtol=1e-4, atol=1e-4)
    q, k = normal(2, 30, 4, 16), normal(2, 40, 4, 16)
    check(_dot((3,), (3,), (0, 2), (0, 2)), np.einsum("bqhd,bkhd->bhqk", q, k), q, k, rtol=1e-4, atol=1e-4)
    check(
        lambda b, x, y: b.dot_general(b.transpose(x, (1, 0)), y, (((1,), (0,)), ((), ())), x.dtype),
        x[0].T @ x[0],
        x[0],
        x[0],
        rtol=1e-4,
        atol=1e-4,
    )
    import ml_dtypes

    h, g = normal(40, 50, dtype=ml_dtypes.bfloat16), normal(50, 30, dtype=ml_dtypes.bfloat16)
    want = h.astype(np.float32) @ g.astype(np.float32)
    check(_dot((1,), (0,), dtype=np.float32), want, h, g, rtol=1e-5, atol=1e-5)
    check(_dot((1,), (0,)), want.astype(ml_dtypes.bfloat16), h, g, rtol=1e-2, atol=1e-2)


def test_constants_small_and_large():
    c = normal(50, 60)
    check(lambda b, x: b.map("add", x, b.constant(c)), c + c, c)
    check(lambda b: b.constant(np.float32(3.5)), np.float32(3.5))
    check(lambda b: b.full((4, 5), np.int32(7)), np.full((4, 5), 7, np.int32))


def test_arguments_that_are_not_contiguous():
    x = normal(40, 50)
    exe = compile_fn(lambda b, x: b.map("neg", x), x[:, ::2])
    np.testing.assert_array_equal(exe(x[:, ::2])[0], -x[:, ::2])
    assert exe.entry((x[:, ::2],), (np.empty((40, 25), np.float32),)) == 1


def test_deep_chains():
    """Deeper than Python's stack."""

    def chain(b, x):
        for i in range(3000):
            x = b.map("add", b.map("mul", x, b.constant(np.float32(0.5))), b.constant(np.float32(i)))
        return x

    x = want = normal(100)
    for i in range(3000):
        want = want * np.float32(0.5) + np.float32(i)
    check(chain, want, x)


def test_wide_reuse_does_not_explode():
    def ladder(b, x):
        y = x
        outs = []
        for _ in range(200):
            y = b.map("tanh", b.map("add", y, x))
            outs.append(b.reduce("sum", y, (0,)))
        return outs

    x = normal(500)
    out = run(ladder, x)
    y = x.astype(np.float64)
    for got in out:
        y = np.tanh(y + x)
        np.testing.assert_allclose(got, y.sum(), rtol=1e-3, atol=1e-3)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "shape,axes",
    [
        (((1 << 20) + 37,), (0,)),
        ((400_000, 3), (0,)),
        ((3, 400_001), (1,)),
        ((3, 400_001), (0, 1)),
        ((2, 300, 1101), (0, 2)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_])
def test_reductions_in_chunks(shape, axes, dtype):
    """Long reductions leave partial results; a store beside them is made once."""
    x = (rng.normal(size=shape) * 9).astype(dtype)
    sum_type = np.int64 if dtype is np.bool_ else dtype

    def f(b, x):
        wide = b.convert(x, sum_type)
        return [b.reduce("sum", wide, axes), b.reduce("max", x, axes), b.reduce("min", x, axes), b.map("neg", wide)]

    want = [x.sum(axes, sum_type), x.max(axes), x.min(axes), -x.astype(sum_type)]
    check(f, want, x, rtol=1e-9 if dtype is np.float64 else 0, atol=1e-9 if dtype is np.float64 else 0)
    if len(axes) == 1:
        for kind, best in (("max", np.argmax), ("min", np.argmin)):
            check(lambda b, x: b.argreduce(kind, x, axes[0], np.int32), best(x, axes[0]).astype(np.int32), x)
