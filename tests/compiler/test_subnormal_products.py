"""Products by tiles of rows and columns with subnormal numbers, or with normal ones whose products are subnormal
(`emit/subnormal_products.py`): they are as near as any, and hang on their own row and column alone.
"""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import tiles
from catena.compiler.graph.types import TYPES
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of

SHAPES = {  # of rows, terms, columns
    "a tile": (8, 64, 48),
    "parts of tiles": (13, 70, 53),
    "a row": (1, 300, 130),
    "few rows": (3, 400, 65),
    "long sums": (33, 1700, 40),
    "panels that tasks pack": (150, 256, 260),
    "narrow": (200, 64, 16),
}
FORMS = {
    "rows and columns": "ij,jk->ik",
    "a transposed left one": "ji,jk->ik",
    "a transposed right one": "ij,kj->ik",
    "both transposed": "ji,kj->ik",
}


def operand(shape: tuple[int, int], axis: int, dtype, seed: int) -> np.ndarray:
    """Numbers around one; every third row (or column) has subnormal ones too, of both signs."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    tails = (rng.uniform(-1, 1, shape) * 2.0 ** -rng.integers(0, 30, shape)).astype(dtype) * info.tiny
    chosen = rng.random(shape) < 0.3
    chosen &= np.expand_dims(np.arange(shape[1 - axis]) % 3 == 0, axis)
    return np.where(chosen, tails, x)


def laid_out(form: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, right = form.split("->")[0].split(",")
    return (x.T if left == "ji" else x).copy(), (y.T if right == "kj" else y).copy()


def product(form: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(lambda x, y: jnp.einsum(form, x, y))(*laid_out(form, x, y)))


def assert_near(got: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Of finite operands: as near as sums of so many terms are, and as numbers below the least normal one are."""
    exact, sizes = (a.astype(np.longdouble) @ b.astype(np.longdouble) for a, b in ((x, y), (abs(x), abs(y))))
    info = np.finfo(got.dtype)
    bound = x.shape[1] * info.eps * sizes + info.smallest_subnormal
    assert (abs(got - exact) <= bound).all()


def bits(x: np.ndarray) -> np.ndarray:
    """The bits; NaN is one."""
    x = np.where(np.isnan(x), np.nan, x)
    return np.where(np.isnan(x), 0, x.view(f"uint{8 * x.itemsize}"))


@pytest.mark.share(12)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_they_are_near(shape, form, dtype):
    m, k, n = shape
    with jax.enable_x64(True):
        x, y = operand((m, k), 1, dtype, 1), operand((k, n), 0, dtype, 2)
        usual = np.where(abs(y) < 1, 1, y).astype(dtype)
        for a, b in ((x, usual), (np.where(abs(x) < 1, 1, x).astype(dtype), y), (x, y)):
            assert_near(product(form, a, b), a, b)


def normal(shape: tuple[int, int], axis: int, dtype, exponents: tuple[int, int], seed: int) -> np.ndarray:
    """Normal numbers with one exponent of these, lowered by up to 8, in each row (or column)."""
    rng = np.random.default_rng(seed)
    each = np.expand_dims(rng.choice(exponents, shape[1 - axis]), axis)
    return (np.ldexp(rng.uniform(0.5, 1, shape), each - rng.integers(0, 9, shape)) * rng.choice([-1, 1], shape)).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_that_are_subnormal(dtype):
    """More exact than where each step is rounded to steps of the least number."""
    with jax.enable_x64(True):
        x = operand((40, 300), 1, dtype, 3)
        x[::3] *= (abs(x[::3]) < np.finfo(dtype).tiny) * 2.0**-10
        y = np.random.default_rng(4).uniform(-1, 1, (300, 50)).astype(dtype)
        got, exact = product("ij,jk->ik", x, y), x.astype(np.longdouble) @ y.astype(np.longdouble)
        small = abs(exact) < np.finfo(dtype).tiny
        assert small.sum() > 300
        assert (abs(got - exact)[small] <= 0.51 * np.finfo(dtype).smallest_subnormal).all()


@pytest.mark.share(4)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("steps", [8, 0.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_normal_numbers_that_are_subnormal(dtype, steps, share):
    """They are rounded to steps of the least number once, be the numbers of one operand small or of both, and each product
    a few.
    """
    info = np.finfo(dtype)
    of_x = int(share * info.minexp)
    with jax.enable_x64(True):
        x = normal((40, 300), 1, dtype, (of_x,), 3)
        y = normal((300, 50), 0, dtype, (info.minexp - info.nmant - of_x,), 4) * np.dtype(dtype).type(steps)
        got = product("ij,jk->ik", x, y)
        exact, sizes = (a.astype(np.longdouble) @ b.astype(np.longdouble) for a, b in ((x, y), (abs(x), abs(y))))
        assert (abs(exact) < info.tiny).all()
        assert (abs(got - exact) <= 300 * info.eps * sizes + 0.51 * info.smallest_subnormal).all()


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products_of_normal_numbers_that_are_subnormal(shape, form, dtype):
    """Sums whose products are normal numbers are those of a tile that meets no others."""
    m, k, n = shape
    least = np.finfo(dtype).minexp  # of a normal number
    with jax.enable_x64(True):
        x = normal((m, k), 1, dtype, (0, least // 2, least + 9), 1)
        y = normal((k, n), 0, dtype, (0, 3, least // 2 - 9, least // 4, least + 9), 2)
        got = product(form, x, y)
        exact, sizes = (a.astype(np.longdouble) @ b.astype(np.longdouble) for a, b in ((x, y), (abs(x), abs(y))))
        info = np.finfo(dtype)
        assert (abs(got - exact) <= k * (info.eps * sizes + info.smallest_subnormal)).all()
        rows, columns = abs(x).max(1) > 0.1, abs(y).max(0) > 2.0 ** (least // 4 - 20)
        others = np.where(rows[:, None], x, 1).astype(dtype)
        usual = product(form, others, np.where(columns, y, 1).astype(dtype))
        np.testing.assert_array_equal(bits(got[rows][:, columns]), bits(usual[rows][:, columns]))
        np.testing.assert_array_equal(bits(product(form, others, y)[rows]), bits(got[rows]))


@pytest.mark.share(4)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@np.errstate(all="ignore")
def test_values_hang_on_their_row_and_column_alone(shape, form):
    m, k, n = shape
    x, y = operand((m, k), 1, "float32", 5), operand((k, n), 0, "float32", 6)
    others = np.array([np.inf, np.nan, 1e-40, 3e38, -1e30, 1e-45, 2e-38, -1e-25, 2, 0], np.float32)
    rng = np.random.default_rng(7)
    got = product(form, x, y)
    rows, columns = rng.random(m) < 0.5, rng.random(n) < 0.5
    a, b = np.where(rows[:, None], x, rng.choice(others, x.shape)), np.where(columns, y, rng.choice(others, y.shape))
    mixed = product(form, a, b)
    np.testing.assert_array_equal(bits(mixed[rows][:, columns]), bits(got[rows][:, columns]))
    again = product(form, np.where(rows[:, None], x, 1).astype("f4"), np.where(columns, y, 1).astype("f4"))
    np.testing.assert_array_equal(bits(again[rows][:, columns]), bits(got[rows][:, columns]))


def test_the_same_in_a_batch_with_an_epilogue_and_eagerly():
    x, y = operand((40, 130), 1, "float32", 8), operand((130, 70), 0, "float32", 9)
    alone = product("ij,jk->ik", x, y)
    batch = jax.jit(jax.vmap(jnp.matmul))(np.stack([x, x[::-1]]), np.stack([y, y]))
    np.testing.assert_array_equal(bits(np.asarray(batch)), bits(np.stack([alone, alone[::-1]])))
    np.testing.assert_array_equal(bits(np.asarray(jnp.matmul(x, y))), bits(alone))
    followed = jax.jit(lambda x, y: abs(x @ y))(x, y)
    np.testing.assert_array_equal(bits(np.asarray(followed)), bits(abs(alone)))
    looped = jax.jit(lambda x, y: jax.lax.map(lambda a: a @ y, x))(np.stack([x] * 3), y)
    np.testing.assert_array_equal(bits(np.asarray(looped)), bits(np.stack([alone] * 3)))


@np.errstate(all="ignore")
def test_beside_huge_numbers_infinities_and_nan():
    """What the power makes infinite is added up as it is; what is infinite, or no number, stays so."""
    x, y = operand((60, 100), 1, "float32", 10), operand((100, 90), 0, "float32", 11)
    x[3, 5], x[6, 5], x[9, 5], x[12, 5], x[15, 7] = 3e38, np.inf, np.nan, 1e30, -2e25
    y[7, 3], y[7, 6], y[7, 9], y[7, 12] = 3e38, -np.inf, np.nan, 1e20
    x[6, 7] = 0.5  # which times 3e38 is finite, where products are rounded before they are added to infinity, too
    got = product("ij,jk->ik", x, y)
    exact = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    np.testing.assert_array_equal(got[np.isinf(exact)], exact[np.isinf(exact)])
    x, y = np.nan_to_num(x, posinf=0), np.nan_to_num(y, neginf=0)
    sizes = abs(x).astype(np.float64) @ abs(y).astype(np.float64)
    assert (abs(got - exact) <= 100 * np.finfo(np.float32).eps * sizes + 1e-45)[finite].all()


def test_rows_and_columns_without_any_have_the_bits_that_they_have_elsewhere():
    rng = np.random.default_rng(12)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((50, 200), (200, 100)))
    usual = product("ij,jk->ik", x, y)
    x[7, 3], y[5, 11] = 1e-40, -3e-42
    got = product("ij,jk->ik", x, y)
    rows, columns = np.arange(50) != 7, np.arange(100) != 11
    np.testing.assert_array_equal(bits(got[rows][:, columns]), bits(usual[rows][:, columns]))
    assert_near(got, x, y)


def test_programs_that_flush_do_not_look():
    x = jax.ShapeDtypeStruct((64, 64), "float32")
    assert "stmxcsr" in text_of(jax.make_jaxpr(jnp.matmul)(x, x), machine=X86_64_V4)
    jax.config.update("jax_flush_subnormals", True)
    try:
        assert "%watch" not in text_of(jax.make_jaxpr(jnp.matmul)(x, x), machine=X86_64_V4)
    finally:
        jax.config.update("jax_flush_subnormals", False)


def test_rows_that_are_not_there_are_no_subnormal_numbers():
    """A tile that is added to C reads zeros for them, not what lies on the stack: half an address is such a number, of
    which the processor would tell all tiles after it.
    """
    text = tiles.text(tiles.Tile(TYPES["float32"], 16, 6, 4, 16, (), adds=True, ragged=True, watched=True))
    zeros = re.findall(r"memset\.p0\.i64\(ptr (%s\d+), i8 0, i64 256", text)
    assert len(zeros) == 1
    others = re.findall(r"select i1 %t\d+, ptr %t\d+, ptr (%s\d+)", text)
    assert others.count(zeros[0]) == 5 and len(set(others)) == 2


def test_rows_after_a_tile_that_left_early_do_not_read_its_copy_of_the_panel():
    """The first tile, of which each number is subnormal, looks out after a few terms, and copies no more of B."""
    rng = np.random.default_rng(13)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((150, 256), (256, 260)))
    usual = product("ij,jk->ik", x, y)
    x[:8] *= np.float32(2.0**-130)
    got = product("ij,jk->ik", x, y)
    np.testing.assert_array_equal(bits(got[8:]), bits(usual[8:]))
    assert_near(got, x, y)


def test_tiles_look_out_before_all_terms_are_done():
    """After a few terms, after several times as many, and in the end: one that meets many takes no longer for it."""
    text = tiles.text(tiles.Tile(TYPES["float32"], 16, 6, 4, 16, (), adds=False, watched=True))
    assert f", i64 {tiles.FIRST_TERMS})" in text
    part = text[text.rindex("smin.i64") :]  # to the last of a part's terms
    assert part.index("fmuladd") < part.index("stmxcsr") < part.index("store <16 x float>")
