"""Rows that are shorter than a vector: as many at once as a vector has lanes."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import X86_64_V3, X86_64_V4
from catena.compiler.native.compile import program_of, shown_nests, text_of
from catena.core.config import override

ROWS = 83  # five vectors of 16 lanes, and a rest
X = np.random.default_rng(0).standard_normal((ROWS, 16), np.float32)
W, B = X[0] + 1, X[:, :1] - 1
SIZES = (2, 3, 7, 8, 12, 16)


def both(f, *args):
    """The compiled result, and that of one row after another."""
    got = np.asarray(jax.jit(f)(*args))
    rows = [np.asarray(f(*(a[k : k + 1] if a.shape[0] == ROWS else a for a in args))) for k in range(ROWS)]
    return got, np.concatenate(rows)


PROGRAMS = {
    "weights and biases": lambda x, w, b: x * w + b * 2,
    "a part of longer rows": lambda x, w, b: x[:, 1:] * w[1:],
    "places": lambda x, w, b: jnp.where(jnp.arange(x.shape[1]) > b * 3, x, w),
    "bytes": lambda x, w, b: (x > 0).astype("uint8") * (w > 0).astype("uint8"),
    "halves": lambda x, w, b: x.astype("float16") * w.astype("float16"),
    "columns that indices tell": lambda x, w, b: x[:, jnp.argsort(w)] * b,
    "columns that may not be there": lambda x, w, b: jnp.take(x, (w * 9).astype("int32"), axis=1),
    "largest": lambda x, w, b: jnp.max(x * w, 1),
    "place of the least": lambda x, w, b: jnp.argmin(x + w, 1),
    "any": lambda x, w, b: jnp.any(x > w, 1),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", SIZES)
def test_short_rows(name, n):
    x = np.ascontiguousarray(X[:, :n])
    x[5, n // 2] = np.nan
    np.testing.assert_array_equal(*both(PROGRAMS[name], x, W[:n], B))


@pytest.mark.share(6)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [5, 9, 11, 12, 16])
def test_rows_that_are_longer_than_a_vector(name, n):
    """Of doubles, a vector holds eight or four."""
    x = np.ascontiguousarray(X[:, :n].astype(np.float64))
    x[5, n // 2], x[6], x[7] = np.nan, -0.0, np.inf
    with jax.enable_x64(True):
        np.testing.assert_array_equal(*both(PROGRAMS[name], x, W[:n].astype(np.float64), B.astype(np.float64)))


LONGER = {  # what is done with rows, how many elements these have, and whether vectors of 64 and 32 bytes hold several
    "what has a rest": (lambda x: x * x[0] + x[:, :1], 9, True, True),
    "whole vectors": (lambda x: x * x[0] + x[:, :1], 8, False, False),
    "many vectors": (lambda x: x * x[0] + x[:, :1], 15, True, False),
    "extremes": (lambda x: jnp.max(x, 1), 10, False, True),
    "extremes of whole vectors": (lambda x: jnp.max(x, 1), 12, False, False),
    "extremes of many": (lambda x: jnp.max(x.astype(np.float32), 1), 13, False, False),
    "extremes of columns": (lambda x: jnp.max(x, 0), 10, False, False),
    "sums": (lambda x: jnp.sum(x, 1), 10, False, False),
    "sums beside extremes": (lambda x: (jnp.sum(x, 1), jnp.max(x, 1)), 10, False, False),
    "places": (lambda x: jnp.argmax(x, 1), 10, False, True),
    "extremes of long integers": (lambda x: jnp.max(x.astype(np.int64), 1), 10, False, True),
    "extremes of integers": (lambda x: jnp.max(x.astype(np.int32), 1), 10, False, False),
    "places in whole vectors": (lambda x: jnp.argmax(x, 1), 12, False, True),
    "places of small numbers": (lambda x: jnp.argmax(x.astype(np.float32), 1), 10, False, False),
}


@pytest.mark.parametrize("name", LONGER)
def test_which_rows_are_longer_than_a_vector(name):
    """Sums of which are added up by lanes, as those of few rows are."""
    f, n, *several = LONGER[name]
    with jax.enable_x64(True), override("jax_check_bounds", False):
        closed = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((4000, n), "float64"))
        nests = ["\n".join(shown_nests(program_of(closed, machine=m))) for m in (X86_64_V4, X86_64_V3)]
    assert [f"{n} at once" in text for text in nests] == several


@pytest.mark.parametrize("n", SIZES)
def test_sums_functions_and_transposes(n):
    x = np.ascontiguousarray(X[:, :n])
    exact = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(jax.jit(jax.nn.softmax)(x), exact / exact.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda x: jnp.sum(x * W[:n], 1))(x), (x * W[:n]).sum(1), rtol=1e-4, atol=1e-5)
    for given in (x, np.ascontiguousarray(x.T)):
        np.testing.assert_array_equal(jax.jit(lambda x: x.T + 1)(given), given.T + 1)


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
@pytest.mark.parametrize("rows", [64, 65, 79, 1000, 20_000, 20_003])
def test_rows_that_a_loop_carries_are_written_where_they_are_read(rows, dtype):
    """Blocks do not overlap there: what is left of them has fewer rows."""
    with jax.enable_x64(dtype == "float64"):
        for n in (2, 3, 7, 12):
            rng = np.random.default_rng(4)
            x, y, z = (jnp.asarray(9 * rng.standard_normal(s)).astype(dtype) for s in ((rows, n), (n,), (rows, 1)))
            f = lambda x: jnp.where(x > y, x + z, y - x)
            found, step = x, jax.jit(f)
            for _ in range(3):
                found = step(found)
            np.testing.assert_array_equal(jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: f(x), x))(x), found)


def test_rows_that_a_loop_carries_have_full_lanes():
    y = jnp.ones(7)
    for rows, is_short in ((50_000, True), (1001, True), (50_001, False)):
        made = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, x: x / y, x))(jnp.ones((rows, 7)))
        nests = shown_nests(program_of(made, machine=X86_64_V4))
        assert any("7 at once" in nest for nest in nests) == is_short


def test_arguments_that_are_given_up_and_rows_that_threads_share():
    x = np.random.default_rng(1).standard_normal((70_001, 7), np.float32)
    f = lambda x, w: x * w
    np.testing.assert_array_equal(jax.jit(f)(x, W[:7]), x * W[:7])
    np.testing.assert_array_equal(jax.jit(f, donate_argnums=0)(jnp.asarray(x), W[:7]), x * W[:7])
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.max(x, 1))(x), x.max(1))


def test_short_rows_stay_the_innermost_loop():
    """Where the outermost loop is short, a longer one changes places with it, so that threads can share it."""
    x, steps = np.random.default_rng(2).standard_normal((2, 14, 40_000), np.float32), np.arange(14, dtype=np.float32)
    turned = jax.jit(lambda x: x.transpose(0, 2, 1) + steps)(x)
    np.testing.assert_array_equal(turned, x.transpose(0, 2, 1) + steps)
    filters, image = np.ones((28, 14, 14, 21), np.float32), np.ones((14, 14, 28, 35), np.float32)
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2)
    np.testing.assert_array_equal(jax.jit(f)(image, filters), np.full((7, 28, 15, 15), 14.0 * 14 * 21))


def test_how_short_rows_are_written():
    softmax, scaled = (
        text_of(jax.make_jaxpr(f)(X[:, :8]), machine=X86_64_V4) for f in (jax.nn.softmax, lambda x: x * W[:8])
    )
    assert "masked.gather" not in softmax
    assert softmax.count("call <16 x float> @catena.exp") == 1  # the parts pass through it, one after another
    assert scaled.count("store <16 x float>") == 8  # whole vectors
    columns = text_of(jax.make_jaxpr(lambda x, i: x[:, i])(X[:, :3], np.array([2, 0, 1])), machine=X86_64_V4)
    assert columns.count("call <16 x float> @llvm.x86.avx512.vpermi2var") == 3


TOTALS = {
    "products": lambda np, x, w, b: np.sum(x * w * b),
    "largest": lambda np, x, w, b: np.max(np.abs(x) * w - b),
    "least, and how many": lambda np, x, w, b: (np.min(x + w), np.sum(x > w, dtype="int32")),
    "with what is kept": lambda np, x, w, b: (np.sum(x * w), x * w + b),
    "weights alone": lambda np, x, w, b: np.sum(x * 0 + w * w),
    "any": lambda np, x, w, b: np.any(x * w * b > 100),
    "integers": lambda np, x, w, b: np.sum(x.astype("int32") * w.astype("int32")),
    "one more axis": lambda np, x, w, b: np.sum(np.stack([x, x + b, x - b]) * w),
}


@pytest.mark.share(14)
@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rows", [64, 100, 2051, 40_003])
def test_rows_that_are_folded_too(rows, n, name):
    """Sums over all elements of what has a weight for each column: of integers, all of which, to 2^24, floats hold."""
    rng = np.random.default_rng(rows + n)
    x, w, b = (rng.integers(-5, 6, s).astype(np.float32) for s in ((rows, n), (n,), (rows, 1)))
    for got, exact in zip(*map(jax.tree.leaves, (jax.jit(lambda *xs: TOTALS[name](jnp, *xs))(x, w, b),
                                                 TOTALS[name](np, x, w, b)))):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(got), exact)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", [*TOTALS][:-1])
@pytest.mark.parametrize("shape", [(21, 64, 7), (3, 100, 15), (5, 2051, 2), (40, 130, 12)])
def test_rows_of_blocks_that_are_folded_too(shape, name):
    """Sums of each block of short rows, over both axes."""
    rng = np.random.default_rng(shape[0])
    x, w, b = (rng.integers(-5, 6, s).astype(np.float32) for s in (shape, shape[2:], (*shape[:2], 1)))
    exact = [TOTALS[name](np, each, w, more) for each, more in zip(x, b)]
    got = jax.jit(jax.vmap(lambda x, b: TOTALS[name](jnp, x, w, b)))(x, b)
    for y, *parts in zip(*map(jax.tree.leaves, (got, *exact))):
        np.testing.assert_array_equal(np.asarray(y), np.stack(parts))


COLUMNS = {
    "sum": lambda np, x, w, g: np.sum(x * w, 0),
    "beside what is kept": lambda np, x, w, g: (x * w, np.sum(x * w, 0)),
    "of differences": lambda np, x, w, g: np.sum((x - x[:1]) * w + g, 0),
    "two": lambda np, x, w, g: (np.sum(x * w, 0), np.sum(x - g, 0)),
    "largest and least": lambda np, x, w, g: (np.max(x * w, 0), np.min(x + w - g, 0)),
    "what rows alone tell": lambda np, x, w, g: np.sum(x * np.where(w > 0, w, np.abs(w * w)), 0),
    "integers": lambda np, x, w, g: np.sum((x * w).astype("int32"), 0),
    "any": lambda np, x, w, g: np.any(x * w > g * 9, 0),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("shape", [(200, 83, 3), (37, 16, 7), (5, 65, 15), (1003, 401, 2), (1, 64, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_short_rows_that_stay_where_others_are_folded(shape, name, dtype):
    """Of whole numbers, which all of these types hold in single precision."""
    rng = np.random.default_rng(shape[0])
    sizes = (shape, (*shape[:2], 1), (shape[0], 1, shape[2]))
    x, w, g = (rng.integers(-2, 3, s).astype(np.float32) for s in sizes)
    got = jax.jit(lambda *xs: COLUMNS[name](jnp, *xs))(*(jnp.asarray(a, dtype) for a in (x, w, g)))
    for y, exact in zip(*map(jax.tree.leaves, (got, COLUMNS[name](np, x, w, g)))):
        expected = np.asarray(jnp.asarray(exact, y.dtype))  # rounded once
        np.testing.assert_array_equal(np.asarray(y), expected)


def test_sums_over_what_stays_in_parts_are_those_of_memory():
    """In the order of the sum of what is stored, in bands and without."""
    for shape in ((200, 83, 3), (1003, 1000, 3)):
        x, w = (np.random.default_rng(7).standard_normal(s, np.float32) for s in (shape, shape[:2]))
        kept, total = jax.jit(lambda x, w: (y := x * w[..., None], jnp.sum(y, 0)))(x, w)
        np.testing.assert_array_equal(total, jax.jit(lambda y: jnp.sum(y, 0))(kept))
        np.testing.assert_array_equal(total, jax.jit(lambda x, w: jnp.sum(x * w[..., None], 0))(x, w))


def test_lanes_are_full_where_short_rows_stay():
    traced = jax.make_jaxpr(lambda x, w: jnp.sum(x * w[..., None], 0))(
        np.zeros((64, 64, 3), np.float32), np.zeros((64, 64), np.float32)
    )
    text = text_of(traced, machine=X86_64_V4)
    assert "load <3 x float>" not in text
    assert "load <16 x float>" in text


def test_how_rows_that_are_folded_too_are_written():
    for shape, axes in (((4096, 3), (0, 1)), ((90_000, 3), (0, 1)), ((9, 500, 3), (1, 2))):
        f = lambda x, w, axes=axes: jnp.sum(jnp.tanh(x) / w, axes)
        text = text_of(jax.make_jaxpr(f)(np.zeros(shape, np.float32), W[:3]), machine=X86_64_V4)
        assert "call <16 x float> @catena.tanh" in text
        assert "call <3 x float> @catena.tanh" not in text and "fdiv <3 x float>" not in text


def test_vectors_of_odd_lanes_are_read_in_parts():
    """What lies behind the last of three floats is nobody's, and may be a subnormal number."""
    step = lambda x, v: (w := x.T @ (x @ v)) / (jnp.max(jnp.abs(w)) + 1)
    f = jax.grad(lambda x: jnp.sum(lax.fori_loop(0, 9, lambda _, v: step(x, v), x[0])))
    text = text_of(jax.make_jaxpr(f)(np.zeros((300, 3), np.float32)), machine=X86_64_V4)
    assert "load <3 x float>" not in text
    assert "load <2 x float>" in text


def rolled(x):
    """Sums of an image's neighbours, channels last."""
    return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)


def padded(x):
    """Likewise, zero beyond the border."""
    p = jnp.pad(x, ((1, 1), (1, 1), (0, 0)))
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]


def hashed(x):
    """More operations than are written for each part of short rows."""
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    for k in range(1, 13):
        bits = (bits ^ (bits << k)) * jnp.uint32(2654435761 + 2 * k)
    return (bits >> 9).astype(jnp.float32)


@pytest.mark.share(4)
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("neighbours", [rolled, padded, hashed, lambda x: hashed(rolled(x))])
def test_folds_of_few_channels_after_much_else(neighbours, channels):
    x = np.random.default_rng(3).integers(-9, 9, (23, 19, channels)).astype(np.float32)
    values = np.asarray(neighbours(jnp.asarray(x)))
    got = jax.jit(lambda x: [f(neighbours(x), axis=-1) for f in (jnp.argmax, jnp.max, jnp.min)])(x)
    for y, f in zip(got, (np.argmax, np.max, np.min)):
        np.testing.assert_array_equal(y, f(values, axis=-1))
    later = jax.jit(lambda x: jnp.argmin(jnp.maximum(neighbours(x) * 2, x) + jnp.abs(x) - jnp.square(x), -1))(x)
    np.testing.assert_array_equal(later, np.argmin(np.maximum(values * 2, x) + np.abs(x) - np.square(x), -1))


@pytest.mark.parametrize("neighbours", [rolled, padded, hashed, lambda x: hashed(rolled(x))])
def test_lanes_are_full_where_few_channels_are_folded(neighbours):
    traced = jax.make_jaxpr(lambda x: jnp.argmax(jnp.tanh(neighbours(x)) + jnp.square(x) * jnp.abs(x - 1), -1))(
        np.zeros((64, 64, 4), np.float32)
    )
    text = text_of(traced, machine=X86_64_V4)
    assert "call <16 x float> @catena.tanh" in text
    assert "call <4 x float> @catena.tanh" not in text


FEW_BITS = {
    "repeated": lambda x: jnp.repeat(x, 2, -1),
    "repeated thrice": lambda x: jnp.repeat(x, 3, -1) * 2,
    "negated": lambda x: -jnp.repeat(x, 2, -1),
    "beside a number": lambda x: jnp.repeat(x, 2, -1) | x[0, 0],
    "limited": lambda x: jnp.maximum(jnp.repeat(x, 4, -1), 1),
    "pairs": lambda x: jnp.repeat(x.reshape(-1, 2), 2, -1) & 3,
    "reversed pairs": lambda x: x.reshape(-1, 2)[:, ::-1] & 3,
}


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize("name", FEW_BITS)
def test_integers_of_few_bits(name, dtype):
    """LLVM does not end where 64 of them are shuffled, and then masked."""
    f, x = FEW_BITS[name], jnp.asarray(np.arange(9 * 870).reshape(9, 870) % 4, dtype)
    program = program_of(jax.make_jaxpr(f)(x), machine=X86_64_V4)
    assert max(nest.width for _, step in program.steps() for nest in step.nests()) <= 32
    with jax.disable_jit():
        expected = np.asarray(f(x), np.int32)
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(x), np.int32), expected)


@pytest.mark.parametrize("f", [lambda x, k: x >> k, lambda x, k: (x + 1) >> (k % 8), lambda x, k: x[:, ::-1] >> k * 2])
def test_bytes_that_are_shifted_by_numbers_of_rows(f):
    """LLVM does not end where 64 of them are shuffled, and then tell how far others are shifted with their sign."""
    x, k = (
        jnp.asarray(np.arange(-870, 2130).reshape(1000, 3), "int8"),
        jnp.asarray(np.arange(1000)[:, None] % 9, "int8"),
    )
    program = program_of(jax.make_jaxpr(f)(x, k), machine=X86_64_V4)
    nests = [nest for _, step in program.steps() for nest in step.nests()]
    shifts = [nest.width for nest in nests if any(s.op == "shift_right_arithmetic" for s in nest.stmts)]
    assert shifts and max(shifts) <= 32
    with jax.disable_jit():
        expected = np.asarray(f(x, k))
    np.testing.assert_array_equal(jax.jit(f)(x, k), expected)


@pytest.mark.parametrize("rows", [129, 145, 257])
def test_folds_over_one_row_are_no_sums_of_short_rows(rows):
    """Sums of columns in blocks of rows leave one row, whose sum has a result for each of its elements."""
    x = np.random.default_rng(2).standard_normal((rows, 64, 11), np.float32)
    y = np.random.default_rng(3).standard_normal((rows, 64, 1), np.float32)
    total, moved = jax.jit(lambda x, y: (jnp.sum(jnp.square(x * 2 - 1), 0), x - y))(x, y)
    np.testing.assert_allclose(total, np.square(x.astype(np.float64) * 2 - 1).sum(0), rtol=1e-5)
    np.testing.assert_array_equal(moved, x - y)


EXTREME = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, 1e-30, 7, 255], np.float32)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [2, 3, 7, 11])
def test_quotients_by_columns(n, dtype):
    """Columns are inverted once, whatever they are; the bits are those of one division after the other."""
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((300, n)) * 10.0 ** rng.integers(-45, 38, (300, n))).astype(np.float32)
    x[:11] = EXTREME[:, None]
    for y in (rng.standard_normal(n).astype(np.float32), EXTREME[:n], EXTREME[::-1][:n]):
        x_, y_ = (jnp.asarray(v).astype(dtype) for v in (x, y))
        got, one = (np.asarray(v).astype(np.float32) for v in (jax.jit(jnp.divide)(x_, y_), x_ / y_))
        np.testing.assert_array_equal(got, one)
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(one)[~np.isnan(one)])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_pictures_are_normalised_without_a_divider(dtype):
    info = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(info.min, info.max, (3000, 3), dtype, endpoint=True)
    mean, scale = np.float32([0.1, -2, 30]), np.float32([0.2, 3, 0.7])
    normalise = lambda x: (x.astype(np.float32) / np.float32(255) - mean) / scale
    np.testing.assert_array_equal(jax.jit(normalise)(x), normalise(x))
    text = text_of(jax.make_jaxpr(normalise)(x), machine=X86_64_V4)
    assert "@catena.quotient_of_integers.second.y.f32x16" in text
    assert "@catena.one_of_quotients.lanes.y.f32x16" in text


@pytest.mark.parametrize("n", [5, 16])
@pytest.mark.parametrize("rows", [16, 17, 31])
def test_few_rows_at_a_time_of_many_in_all(rows, n):
    """One vector of them is enough, where loops outside have more: numbers are added up in the same order."""
    x, y = np.random.default_rng(n).standard_normal((2, 40, rows, n)).astype(np.float32)
    f = lambda x, y: jnp.einsum("eji,ei->ej", x, y)
    got = np.asarray(jax.jit(f)(x, y[:, 0]))
    one = np.zeros((40, rows), np.float32)
    for k in range(n):  # as `fma` does, by doubles: these products are exact there
        one = (one.astype("d") + x[..., k].astype("d") * y[:, :1, k].astype("d")).astype("f")
    np.testing.assert_allclose(got, one, rtol=1e-6, atol=1e-6)
    alone = np.stack([np.asarray(jax.jit(f)(x[k : k + 1], y[k : k + 1, 0]))[0] for k in range(40)])
    np.testing.assert_array_equal(got, alone)
    text = text_of(jax.make_jaxpr(f)(x, y[:, 0]), machine=X86_64_V4)
    assert "vector.reduce.fadd" not in text


@pytest.mark.parametrize("columns", [8, 13])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes_are_shifted_by_numbers_of_their_columns(dtype, columns):
    """LLVM's code generation did not end, as each part loaded the numbers for itself."""
    x, by = np.arange(-500, 500).astype(dtype), (np.arange(columns) % 8).astype(dtype)
    np.testing.assert_array_equal(jax.jit(lambda x, by: (x[:, None] >> by) & 1)(x, by), x[:, None] >> by & 1)
