"""Elementwise operations of every dtype, at sizes around the SIMD width."""

import ml_dtypes
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph import types
from compiled import check, run

SIZES = [(), (0,), (1,), (3,), (16,), (17,), (64,), (1000,), (5, 7), (33, 65), (3, 0, 2)]
FLOATS = [np.float32, np.float64]
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
rng = np.random.default_rng(0)


def ints(shape, dtype):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.share(4)
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, np.float16, ml_dtypes.bfloat16])
def test_arithmetic_floats(shape, dtype):
    x, y = (np.asarray(rng.normal(size=shape)).astype(dtype) for _ in range(2))
    for op, fn in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
        with np.errstate(all="ignore"):
            check(lambda b, x, y, op=op: b.map(op, x, y), np.asarray(fn(x, y)).astype(dtype), x, y)


@pytest.mark.share(6)
@pytest.mark.parametrize("shape", [(), (3,), (100,), (5, 7)])
@pytest.mark.parametrize("dtype", INTS)
def test_arithmetic_ints(shape, dtype):
    x, y = np.asarray(ints(shape, dtype)), np.asarray(ints(shape, dtype))
    with np.errstate(all="ignore"):
        for op, fn in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("max", np.maximum),
            ("min", np.minimum),
            ("and", np.bitwise_and),
            ("or", np.bitwise_or),
            ("xor", np.bitwise_xor),
        ):
            check(lambda b, x, y, op=op: b.map(op, x, y), np.asarray(fn(x, y)), x, y)


def test_integer_division_edges():
    low = np.iinfo(np.int32).min
    x = np.array([7, -7, 7, -7, low, low, 0, 5, -5], np.int32)
    y = np.array([2, 2, -2, -2, -1, 0, 0, 0, 0], np.int32)
    check(lambda b, x, y: b.map("div", x, y), np.array([3, -3, -3, 3, low, -1, -1, -1, -1], np.int32), x, y)
    check(lambda b, x, y: b.map("rem", x, y), np.array([1, -1, 1, -1, 0, low, 0, 5, -5], np.int32), x, y)
    u = np.array([7, 200, 3], np.uint8)
    check(lambda b, u, w: b.map("div", u, w), np.array([3, 255, 3], np.uint8), u, np.array([2, 0, 1], np.uint8))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64])
def test_integer_quotients_next_to_whole_ones(dtype):
    """Dividends that are multiples of their divisors, one less and one more: all pairs, or those of some divisors."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    y = np.array(
        [*range(low, high + 1)] if high < 256 else [*range(-9, 10), low, high, high // 2, high - 1, 65537, 641]
    )
    y = y[(y != 0) & (low <= y) & (y <= high)].astype(object)
    wholes = [v * k for v in y for k in (*range(-20, 20), *(n // v for n in (low, high, low // 3, high // 2)))]
    x = np.array([n + d for n in wholes for d in (-1, 0, 1)], object)
    y = np.repeat(y, 44 * 3)
    kept = (low <= x) & (x <= high) & ~((x == low) & (y == -1))
    x, y = x[kept], y[kept]
    quotient = abs(x) // abs(y) * np.where((x < 0) == (y < 0), 1, -1)
    for op, expected in (("div", quotient), ("rem", x - quotient * y)):
        check(lambda b, x, y, op=op: b.map(op, x, y), expected.astype(dtype), x.astype(dtype), y.astype(dtype))


def test_shifts_past_the_width():
    x, n = np.array([1, -1, -8, 5], np.int32), np.array([31, 32, 40, -1], np.int32)
    check(lambda b, x, n: b.map("shift_left", x, n), np.array([-(2**31), 0, 0, 0], np.int32), x, n)
    check(lambda b, x, n: b.map("shift_right_arithmetic", x, n), np.array([0, -1, -1, 0], np.int32), x, n)
    check(lambda b, x, n: b.map("shift_right_logical", x, n), np.array([0, 0, 0, 0], np.int32), x, n)


def test_max_min_propagate_nan():
    x, y = np.array([1, np.nan, 2, np.nan], np.float32), np.array([np.nan, 1, 1, np.nan], np.float32)
    check(lambda b, x, y: b.map("max", x, y), np.maximum(x, y), x, y)
    check(lambda b, x, y: b.map("min", x, y), np.minimum(x, y), x, y)


def test_float_to_int_saturates():
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 1e20, -1e20, 300.0], np.float32)
    hi, lo = np.iinfo(np.int32).max, np.iinfo(np.int32).min
    check(lambda b, x: b.convert(x, np.int32), np.array([1, -1, 0, hi, lo, hi, lo, 300], np.int32), x)
    check(lambda b, x: b.convert(x, np.uint8), np.array([1, 0, 0, 255, 0, 255, 0, 255], np.uint8), x)
    check(lambda b, x: b.convert(x, np.int8), np.array([1, -1, 0, 127, -128, 127, -128, 127], np.int8), x)


ALL = [np.bool_, *INTS, *FLOATS, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128]


@pytest.mark.share(6)
@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_convert(source, target):
    x = np.array([0, 1, 2, 3, 100, 0, 1] * 3).astype(source)
    if np.dtype(source).kind == "c" and np.dtype(target).kind != "c":
        want = x.real.astype(target) if target is not np.bool_ else x != 0
    else:
        want = x.astype(target)
    check(lambda b, x: b.convert(x, target), want, x)


SMALL_FLOATS = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
)


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_small_floats(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.concatenate([rng.normal(size=2000), rng.normal(size=2000) * 100, [0.0, -0.0, 1e-30, 1e30, -1e30]]).astype(
        np.float32
    )
    if name == "float8_e8m0fnu":
        x = np.abs(x) + np.float32(1e-20)
    want = x.astype(dtype)
    check(lambda b, x: b.bitcast(b.convert(x, dtype), np.uint8), want.view(np.uint8), x)
    check(lambda b, q: b.convert(q, np.float32), want.astype(np.float32), want)


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_every_code_and_every_tie_of_small_floats(name):
    """All upper halves of f32 and their neighbours are all ties, ends of ranges and special values; NaN's bits count."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    halves = np.arange(1 << 16, dtype=np.uint32) << 16
    x = np.concatenate([halves, halves + 1, halves - 1, [1 << 15]]).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        codes = x.astype(dtype).view(np.uint8)
    check(lambda b, x: b.bitcast(b.convert(x, dtype), np.uint8), codes, x)
    every = np.unique(codes).view(dtype)
    check(lambda b, q: b.convert(q, np.float32), every.astype(np.float32), every)


def test_doubles_round_once_to_halves():
    """Their neighbours on both sides of each tie round apart, as in NumPy, though the nearest float is the tie itself."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = np.unique(codes[np.isfinite(codes)].astype(np.float64))
    ties = (values[1:] + values[:-1]) / 2
    beside = [np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)]
    extremes = [np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-60, -1e-60, 5e-324, -5e-324, 0.0, -0.0]
    x = np.concatenate([values, ties, *beside, extremes])
    with np.errstate(all="ignore"):
        rounded = x.astype(np.float16)
    check(lambda b, x: b.bitcast(b.convert(x, np.float16), np.uint16), rounded.view(np.uint16), x)


def test_narrow_integers_wrap():
    x = np.arange(-8, 8).astype(ml_dtypes.int4)
    check(
        lambda b, x: b.convert(b.map("add", x, x), np.int32),
        (((np.arange(-8, 8) * 2 + 8) % 16) - 8).astype(np.int32),
        x,
    )
    y = np.arange(16).astype(ml_dtypes.uint4)
    check(lambda b, x: b.convert(b.map("mul", x, x), np.int32), (np.arange(16) ** 2 % 16).astype(np.int32), y)
    check(lambda b, x: b.convert(b.map("neg", x), np.int32), (-np.arange(16) % 16).astype(np.int32), y)
    for op in ("neg", "abs"):
        wanted = [-8, *range(7, -1, -1), *(range(-1, -8, -1) if op == "neg" else range(1, 8))]
        check(lambda b, x, op=op: b.convert(b.map(op, x), np.int32), np.int32(wanted), x)


NARROW = [n for n, t in types.TYPES.items() if t.narrow and t.kind == "f" and t.bytes == 1]


@pytest.mark.parametrize("name", NARROW)
def test_every_value_of_a_narrow_float(name):
    """Some have no negative, and some are less than the next integer, which is none of the dtype."""
    dtype = types.DTYPES[name]
    x = np.unique(np.arange(1 << jnp.finfo(dtype).bits, dtype=np.uint8)).view(dtype)
    names = {"round_half_even": np.rint, "neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil}
    for op, fn in names.items():
        with np.errstate(all="ignore"):
            wanted = fn(x).astype(dtype).astype(np.float32)
        found = run(lambda b, x, op=op: b.convert(b.map(op, x), np.float32), x)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "op", "exp log1p tanh sin cos sqrt rsqrt logistic erf expm1 floor ceil sign abs neg cbrt square".split()
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_unary(op, dtype):
    special = pytest.importorskip("scipy.special")
    reference = {
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "logistic": special.expit,
        "erf": special.erf,
        "neg": np.negative,
    }
    x = rng.uniform(0.1, 3, 77).astype(dtype)
    want = reference.get(op, getattr(np, op, None))(x.astype(np.float64)).astype(dtype)
    check(lambda b, x: b.map(op, x), want, x, rtol=1e-6 if dtype == np.float32 else 1e-14)


def test_comparisons_select_clamp():
    x, y = rng.normal(size=50).astype(np.float32), rng.normal(size=50).astype(np.float32)
    for op, fn in (
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("lt", np.less),
        ("le", np.less_equal),
        ("gt", np.greater),
        ("ge", np.greater_equal),
    ):
        check(lambda b, x, y, op=op: b.map(op, x, y), fn(x, y), x, y)
    check(lambda b, x, y: b.map("select", b.map("gt", x, y), x, y), np.maximum(x, y), x, y)
    lo, hi = np.float32(-0.5), np.float32(0.5)
    check(lambda b, lo, x, hi: b.map("clamp", lo, x, hi), np.clip(x, lo, hi), lo, x, hi)
    t = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    t[0] = np.copysign(np.float32(np.nan), np.float32(-1))
    check(lambda b, x, y: b.map("lt_total", x, y), np.ones(7, bool), t[:-1], t[1:])


def test_bits():
    x = ints((100,), np.uint32)
    check(
        lambda b, x: b.map("population_count", x),
        np.array([bin(v).count("1") for v in x.tolist()], np.uint32),
        x,
    )
    check(lambda b, x: b.map("clz", x), np.array([32 - v.bit_length() for v in x.tolist()], np.uint32), x)
    y = ints((100,), np.uint32)
    check(
        lambda b, x, y: b.map("mulhi", x, y),
        ((x.astype(np.uint64) * y) >> np.uint64(32)).astype(np.uint32),
        x,
        y,
    )
    f = rng.normal(size=20).astype(np.float32)
    check(lambda b, f: b.bitcast(f, np.int32), f.view(np.int32), f)
    check(lambda b, f: b.bitcast(f, np.uint8), f.view(np.uint8).reshape(20, 4), f)
    check(lambda b, u: b.bitcast(u, np.float32), f, f.view(np.uint8).reshape(20, 4))


def test_nextafter_and_powers():
    x, y = rng.normal(size=40).astype(np.float32), rng.normal(size=40).astype(np.float32)
    x[:3], y[:3] = [0, 1, np.inf], [1, 1, 0]
    check(lambda b, x, y: b.map("nextafter", x, y), np.nextafter(x, y), x, y)
    check(lambda b, x: b.map("integer_pow", x, y=3), x * (x * x), x, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_integer_powers_wrap_around(dtype):
    x, bits = ints((200,), dtype), 8 * np.dtype(dtype).itemsize
    below, first = -rng.integers(0, 9, 200), np.array([1 << bits - 1], np.uint64)  # most are the inverses of powers
    small = [m.astype(dtype) for m in (rng.integers(0, 9, 200), below, np.resize(first, 200), np.zeros(200))]
    for n in (ints((200,), dtype), *small):
        wanted = [pow(int(a), int(b) % 2**bits, 2**bits) for a, b in zip(x, n, strict=True)]
        check(lambda b, x, n: b.map("pow", x, n), np.array(wanted, f"uint{bits}").view(dtype), x, n)


def test_reduce_precision_is_bfloat16():
    x = rng.normal(size=100).astype(np.float32)
    check(lambda b, x: b.reduce_precision(x, 8, 7), x.astype(ml_dtypes.bfloat16).astype(np.float32), x)
    y = (rng.normal(size=100) * 1e4).astype(np.float32)
    check(lambda b, x: b.reduce_precision(x, 5, 10), y.astype(np.float16).astype(np.float32), y)


@pytest.mark.parametrize("op", "exp log sqrt sin cos tan sinh cosh tanh abs neg conj square expm1 log1p".split())
def test_complex_unary(op):
    x = (rng.normal(size=40) + 1j * rng.normal(size=40)).astype(np.complex128)
    want = getattr(np, {"neg": "negative"}.get(op, op))(x)
    check(lambda b, x: b.map(op, x), want, x, rtol=1e-12, atol=1e-13)


def test_complex_binary():
    x, y = (rng.normal(size=(2, 40)) + 1j * rng.normal(size=(2, 40))).astype(np.complex64)
    for op, fn in (("add", np.add), ("mul", np.multiply), ("div", np.divide), ("pow", np.power)):
        check(lambda b, x, y, op=op: b.map(op, x, y), fn(x, y), x, y, rtol=2e-5, atol=1e-5)
    r = rng.normal(size=40).astype(np.float32)
    check(lambda b, r: b.map("complex", r, b.map("neg", r)), (r - 1j * r).astype(np.complex64), r)
    check(lambda b, x: b.map("real", x), x.real, x)
    check(lambda b, x: b.map("imag", x), x.imag, x)


def test_large_results_that_are_one_number_are_each_filled():
    """Not copied from another, which would be read: zeros for two averages, gradients of what nothing hangs on."""
    zeros = lambda x: (jnp.zeros_like(x), jnp.zeros_like(x))
    unused = jax.grad(lambda x, y: jnp.float32(2), (0, 1))
    x = jnp.ones(1 << 16)
    for f, args in ((zeros, (x,)), (unused, (x, x))):
        steps = jax.jit(f).lower(*args).compile().as_text("program").split("\n")
        assert sum(step.startswith("  launch 65536") for step in steps) == 2 and "  copy" not in steps
        for out in jax.jit(f)(*args):
            np.testing.assert_array_equal(out, np.zeros(1 << 16, np.float32))
    assert "  copy" in jax.jit(zeros).lower(jnp.ones(8)).compile().as_text("program").split("\n")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "complex64", "bool"])
def test_large_results_that_are_equal_are_computed_and_written_at_once(dtype):
    x = jnp.asarray(np.arange(1 << 20) % 100 - 50, dtype)
    f = jax.jit(lambda x: (~x, ~x, ~x) if dtype == "bool" else (x * 3, x * 3, x * 3))
    wanted = ~np.asarray(x) if dtype == "bool" else np.asarray(x) * np.asarray(3, dtype)
    for out in f(x):
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, wanted)
    steps = f.lower(x).compile().as_text("program").split("\n")
    assert steps.count("  copy") == (2 if dtype == "bool" else 0)
