"""Products of bfloat16 and int8, which processors with AMX compute by tiles of their own, against sums in float64 and in
integers; and the programs of such a processor, interpreted on any machine.
"""

import ml_dtypes
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpreted
from catena.compiler.machine import LEVELS, SAPPHIRE_RAPIDS
from catena.compiler.native import compile as compiler
from catena.compiler.native import host
from catena.compiler.plan.amx import AmxProduct
from catena.compiler.plan.verify import verify

BF16 = np.dtype(ml_dtypes.bfloat16)
SIZES = [
    (32, 32, 32), (2, 100, 33), (3, 64, 64), (100, 4, 16), (7, 9, 100), (33, 47, 50), (31, 33, 63), (65, 31, 32),
    (64, 96, 128), (300, 70, 513), (40, 600, 17),
]  # fmt: skip
EINSUMS = ["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn", "mk,kn->nm", "bmk,bkn->bmn", "mbk,nbk->bmn", "abmk,bkan->abmn",
           "amk,kn->amn", "mka,akn->mn", "ambk,anbk->abmn", "abmk,akbn->abmn"]  # fmt: skip


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(BF16)


def check(made, x, y, spec: str):
    """A product within the error of sums in float32, and of one rounding where the result is bfloat16."""
    wide = [a.astype(np.float64) for a in (x, y)]
    exact, size = np.einsum(spec, *wide), np.einsum(spec, *map(np.abs, wide))
    terms = x.size * y.size / max(exact.size, 1)
    bound = (16 + terms**0.5) * 2.0**-24 * size + (2.0**-8 * np.abs(exact) if made.dtype == BF16 else 0)
    assert made.shape == exact.shape
    assert np.all(np.abs(np.asarray(made, np.float64) - exact) <= bound)


def operands(rng, spec: str, sizes: dict):
    return [normal(rng, *(sizes[c] for c in s)) for s in spec.split("->")[0].split(",")]


def planned(f, *args):
    """The program of a processor that has such tiles, and the products by tiles in it."""
    program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=SAPPHIRE_RAPIDS)
    verify(program)
    return program, [step for _, step in program.steps() if isinstance(step, AmxProduct)]


@pytest.mark.share(3)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [None, np.float32])
def test_products_of_all_sizes(sizes, dtype):
    rng = np.random.default_rng(sum(sizes))
    for spec in EINSUMS[:5]:
        x, y = operands(rng, spec, dict(zip("mnk", sizes)))
        f = lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=dtype)
        check(jax.jit(f)(x, y), x, y, spec)
        program, tiles = planned(f, x, y)
        assert len(tiles) == 1
        check(interpreted(program, [x, y])[0], x, y, spec)


@pytest.mark.parametrize("spec", EINSUMS)
def test_products_of_all_layouts(spec):
    x, y = operands(np.random.default_rng(3), spec, dict(a=3, b=5, m=40, n=70, k=48))
    f = lambda x, y: jnp.einsum(spec, x, y)
    check(jax.jit(f)(x, y), x, y, spec)
    program, tiles = planned(f, x, y)
    assert tiles
    check(interpreted(program, [x, y])[0], x, y, spec)


def whole(rng, spec: str, sizes: dict):
    return [rng.integers(-128, 128, [sizes[c] for c in s], dtype=np.int8) for s in spec.split("->")[0].split(",")]


def exact(x, y, spec: str):
    return np.einsum(spec, x.astype(np.int64), y.astype(np.int64)).astype(np.int32)


@pytest.mark.share(3)
@pytest.mark.parametrize("spec", EINSUMS)
def test_products_of_bytes(spec):
    rng = np.random.default_rng(10)
    f = lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=jnp.int32)
    for m, n, k in ((40, 70, 48), (64, 96, 128), (33, 31, 65), (5, 100, 300)):
        x, y = whole(rng, spec, dict(a=3, b=5, m=m, n=n, k=k))
        np.testing.assert_array_equal(jax.jit(f)(x, y), exact(x, y, spec))
        program, tiles = planned(f, x, y)
        assert tiles
        np.testing.assert_array_equal(interpreted(program, [x, y])[0], exact(x, y, spec))


def check_steps(spec: str, steps: int, dtype, sizes: dict):
    """A product of whole numbers is exact, and takes so many steps."""
    rng = np.random.default_rng(13)
    x, y = (rng.integers(-9, 10, [sizes[c] for c in s]).astype(dtype) for s in spec.split("->")[0].split(","))
    f = lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=jnp.int32 if dtype == np.int8 else np.float32)
    program, tiles = planned(f, x, y)
    assert len(tiles) == 1 and len(list(program.steps())) == steps
    expected = np.einsum(spec, x.astype(np.float32), y.astype(np.float32))
    for made in (jax.jit(f)(x, y), interpreted(program, [x, y])[0]):
        np.testing.assert_array_equal(made, expected)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int8, BF16], ids=["int8", "bfloat16"])
@pytest.mark.parametrize("spec, steps", [("mk,kn->mn", 3), ("bmk,bkn->bmn", 3), ("mk,knb->mnb", 3), ("mk,nk->mn", 4)])
def test_the_right_operand_is_packed_from_where_it_lies(spec, steps, dtype):
    """In one step, after the left one, unless its columns do not lie side by side; 300 are more than 8 panels."""
    check_steps(spec, steps, dtype, dict(b=3, m=300, n=300, k=70))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int8, BF16], ids=["int8", "bfloat16"])
@pytest.mark.parametrize("spec, steps", [("mk,nk->mn", 2), ("bmk,bnk->bmn", 2), ("mkb,nkb->mn", 2), ("km,nk->mn", 3)])
def test_a_right_operand_whose_terms_lie_side_by_side_is_transposed_word_by_word(spec, steps, dtype):
    """As weights are in the gradient of what they are multiplied with: in one step, not in a copy and the packing."""
    check_steps(spec, steps, dtype, dict(b=2, m=300, n=320, k=128))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int8, BF16], ids=["int8", "bfloat16"])
@pytest.mark.parametrize(
    "spec, n, k",
    [("mk,kn->mn", 320, 128), ("mk,kn->mn", 640, 1344), ("mk,kn->mn", 300, 1088), ("bmk,bkn->bmn", 300, 64),
     ("mk,nk->mn", 320, 128), ("mk,nk->mn", 640, 1344), ("mkb,nkb->mn", 320, 640),
     ("ambk,anbk->abmn", 320, 128), ("abmk,akbn->abmn", 300, 64)],
)  # fmt: skip
def test_tasks_that_have_all_rows_pack_the_panels_that_they_multiply(spec, n, k, dtype):
    """In one step: several panels at a time, or one, in one task or in some; heads lie in another order than a batch."""
    check_steps(spec, 1, dtype, dict(a=3, b=2, m=40, n=n, k=k))


@pytest.mark.parametrize("spec", ["ambk,anbk->abmn", "abmk,akbn->abmn"])
def test_heads_are_packed_from_where_they_lie(spec):
    """Where that is a step of its own, too."""
    check_steps(spec, 2, BF16, dict(a=3, b=2, m=300, n=96, k=64))


@pytest.mark.parametrize("spec, steps, m, n, k", [("mk,kn->mn", 2, 40, 64, 4160), ("mk,nk->mn", 3, 40, 300, 1088)])
def test_tasks_pack_no_long_panels_nor_copies(spec, steps, m, n, k):
    """Of 4160 terms a panel would be much memory; 300 columns are no whole panels, and their terms lie side by side."""
    check_steps(spec, steps, BF16, dict(m=m, n=n, k=k))


@pytest.mark.share(2)
@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 70, 47), (300, 500, 257)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e19, 3e-20])
def test_results_are_sums_that_are_rounded(sizes, scale):
    """To the bit, NaN, infinity and the smallest ones, too."""
    m, k, n = sizes
    rng = np.random.default_rng(16)
    x, y = ((rng.normal(size=shape) * scale).astype(BF16) for shape in ((m, k), (k, n)))
    x[3], y[5], x[7, 2] = np.inf, -np.inf, np.nan
    sums = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=np.float32))(x, y)
    made = np.asarray(jax.jit(jnp.matmul)(x, y))
    np.testing.assert_array_equal(made.view(np.uint16), np.asarray(sums).astype(BF16).view(np.uint16))


@pytest.mark.parametrize("m, n", [(2049, 2048), (1030, 4100), (2050, 4096)])
def test_results_that_go_past_the_caches(m, n):
    """Those of 16 MiB and more, by whole lines where rows begin at such."""
    rng = np.random.default_rng(14)
    x, y = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((m, 40), (40, n)))
    expected = x @ y  # of whole numbers, which are exact
    for dtype, result in ((np.int8, np.int32), (BF16, np.float32), (BF16, BF16)):
        f = lambda x, y: jax.lax.dot(x, y, preferred_element_type=result)
        a, b = x.astype(dtype), y.astype(dtype)
        _, (tile,) = planned(f, a, b)
        assert tile.past_caches == (m * n * np.dtype(result).itemsize >= 1 << 24)
        assert np.array_equal(jax.jit(f)(a, b), expected.astype(result))


def test_sums_of_bytes_wrap_around():
    """Each term is 2**14: the sum of 2**17 of them is beyond the integers of 32 bits."""
    x, y = np.full((4, 1 << 17), -128, np.int8), np.full((1 << 17, 8), -128, np.int8)
    made = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32))(x, y)
    np.testing.assert_array_equal(made, np.full((4, 8), -(1 << 31), np.int32))


def test_other_products_of_bytes():
    """Whose sums are of other types, or whose operands are."""
    rng = np.random.default_rng(11)
    x, y = whole(rng, "mk,kn->mn", dict(m=40, n=50, k=64))
    expected = x.astype(np.int64) @ y.astype(np.int64)
    for dtype in (np.int8, np.int16, np.int64, np.float32):
        with jax.enable_x64(dtype == np.int64):
            made = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=dtype))(x, y)
        np.testing.assert_array_equal(made, expected.astype(dtype))
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, y.astype(np.int32)), expected)
    u = x.view(np.uint8)
    made = jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.int32))(u, u.T.copy())
    np.testing.assert_array_equal(made, u.astype(np.int64) @ u.T.astype(np.int64))


@pytest.mark.parametrize("spec", ["k,kn->n", "mk,kn->mn", "bk,bkn->bn", "bmk,bkn->bmn"])
def test_one_row_of_bytes_meets_columns_that_stay_bytes(spec):
    """Where terms of the columns lie apart; where they lie side by side, a loop reads them as they are."""
    rng = np.random.default_rng(15)
    x, y = whole(rng, spec, dict(b=3, m=1, n=70, k=300))
    f = lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=jnp.int32)
    program, tiles = planned(f, x, y)
    assert len(tiles) == 1 and program.arena_bytes < 4 * y.size
    for made in (jax.jit(f)(x, y), f(x, y), interpreted(program, [x, y])[0]):
        np.testing.assert_array_equal(made, exact(x, y, spec))
    assert not planned(
        lambda x, y: jnp.einsum("k,nk->n", x, y, preferred_element_type=jnp.int32),
        x.reshape(-1)[:300],
        y.reshape(-1, 300),
    )[1]


def test_weights_of_bytes_are_packed_before_a_loop():
    def f(h, w):
        step = lambda h: jax.lax.shift_right_arithmetic(jax.lax.dot(h, w, preferred_element_type=jnp.int32), 8)
        return jax.lax.fori_loop(0, 4, lambda _, h: jnp.clip(step(h), -128, 127).astype(jnp.int8), h)

    rng = np.random.default_rng(12)
    h, w = whole(rng, "mk,kn->mn", dict(m=40, n=128, k=128))
    program, tiles = planned(f, h, w)
    assert len(tiles) == 1
    expected = h.astype(np.int64)
    for _ in range(4):
        expected = np.clip((expected @ w.astype(np.int64)) >> 8, -128, 127)
    for made in (jax.jit(f)(h, w), interpreted(program, [h, w])[0]):
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    "sizes", [(0, 8, 64), (8, 0, 64), (8, 8, 0), (64, 64, 1), (1, 64, 64), (64, 1, 64), (1, 1, 900)]
)
def test_products_that_are_none_or_of_vectors(sizes):
    x, y = operands(np.random.default_rng(4), "mk,kn->mn", dict(zip("mnk", sizes)))
    check(jax.jit(jnp.matmul)(x, y), x, y, "mk,kn->mn")
    check(jnp.matmul(x, y), x, y, "mk,kn->mn")
    assert not planned(jnp.matmul, x, y)[1]


def test_what_is_no_number_stays_in_its_row_and_column():
    """Behind 33 terms of a row lies the next row, and behind 33 columns nothing."""
    rng = np.random.default_rng(5)
    x, y = normal(rng, 50, 33), normal(rng, 33, 33)
    x[7, 0], x[8, 32], x[20, 5], y[3, 32] = np.inf, -np.inf, np.nan, np.inf
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float32) @ y.astype(np.float32)
    made = np.asarray(jax.jit(jnp.matmul)(x, y), np.float32)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(made), finite)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(expected))
    np.testing.assert_array_equal(made[np.isinf(expected)], expected[np.isinf(expected)])


def test_subnormal_operands_and_sums_are_themselves_or_zero():
    """To within the least normal number for each factor of 1."""
    x = np.full((32, 32), 1e-39).astype(BF16)
    made = np.asarray(jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.float32))(x, np.ones_like(x)))
    assert np.all((made == 0) | (np.abs(made - 32 * x[0, 0].astype(np.float64)) < 1e-44))


def test_bits_hang_on_a_row_and_a_column_alone():
    rng = np.random.default_rng(6)
    x, y = normal(rng, 6, 150, 100), normal(rng, 6, 100, 90)
    product = jax.jit(lambda x, y: jax.lax.dot_general(x, y, (((x.ndim - 1,), (x.ndim - 2,)), ((0,) * (x.ndim > 2), (0,) * (x.ndim > 2))),
                                                       preferred_element_type=jnp.float32))  # fmt: skip
    whole = np.asarray(product(x, y))
    for part in (product(x[2:4], y[2:4])[0], product(x[2], y[2])):
        np.testing.assert_array_equal(part, whole[2])
    np.testing.assert_array_equal(product(x[2, 40:75], y[2]), whole[2, 40:75])
    np.testing.assert_array_equal(product(x[2], np.ascontiguousarray(y[2, :, 37:60])), whole[2, :, 37:60])
    np.testing.assert_array_equal(product(x[2], np.asfortranarray(y[2])), whole[2])


def test_eager_products_have_the_bits_of_compiled_ones():
    rng = np.random.default_rng(7)
    x, y, b = normal(rng, 300, 200), normal(rng, 200, 250), normal(rng, 250)
    alone = jnp.matmul(x, y)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, y), alone)
    layer = lambda x, y, b: jnp.maximum(x @ y + b, 0)
    np.testing.assert_array_equal(jax.jit(layer)(x, y, b), layer(jnp.asarray(x), jnp.asarray(y), b))


def mlp(p, x):
    h = jnp.maximum(x @ p[0] + p[1], 0)
    return jnp.mean((h @ p[2]).astype(jnp.float32) ** 2)


def test_the_gradient_of_an_mlp():
    rng = np.random.default_rng(8)
    p, x = [normal(rng, 64, 80), normal(rng, 80), normal(rng, 80, 36)], normal(rng, 48, 64)
    wide = [a.astype(np.float64) for a in (*p, x)]
    pre = wide[3] @ wide[0] + wide[1]
    out = np.maximum(pre, 0) @ wide[2]
    back = 2 * out / out.size
    hidden = (back @ wide[2].T) * (pre > 0)
    expected = [wide[3].T @ hidden, hidden.sum(0), np.maximum(pre, 0).T @ back]
    program, tiles = planned(jax.grad(mlp), p, x)
    assert len(tiles) == 5
    for made in (jax.jit(jax.grad(mlp))(p, x), jax.grad(mlp)([*map(jnp.asarray, p)], x), interpreted(program, [*p, x])):
        for g, e in zip(made, expected, strict=True):
            assert np.abs(np.asarray(g, np.float64) - e).max() <= 0.02 * np.abs(e).max()


def test_operands_that_are_read_again_keep_their_memory():
    def f(x, w):
        h = jnp.tanh(x @ w)
        y = jnp.tanh(jnp.tanh(h @ w) @ w)
        return jnp.tanh(y @ w) @ w + h

    rng = np.random.default_rng(13)
    x, w = normal(rng, 64, 64), (normal(rng, 64, 64).astype(np.float32) / 8).astype(BF16)
    program, tiles = planned(f, x, w)
    assert len(tiles) == 5
    layer = lambda x: (x.astype(np.float32) @ w.astype(np.float32)).astype(BF16)
    tanh = lambda x: np.tanh(x.astype(np.float32)).astype(BF16)
    h = tanh(layer(x))
    expected = layer(tanh(layer(tanh(layer(tanh(layer(h))))))).astype(np.float64) + h.astype(np.float64)
    for made in (jax.jit(f)(x, w), interpreted(program, [x, w])[0]):
        assert np.abs(np.asarray(made, np.float64) - expected).max() < 0.05


def test_what_does_not_change_in_a_loop_is_packed_before_it():
    def f(h, w):
        return jax.lax.fori_loop(0, 5, lambda _, h: jnp.tanh(h @ w), h)

    rng = np.random.default_rng(9)
    h, w = normal(rng, 20, 40), (normal(rng, 40, 40).astype(np.float32) / 6).astype(BF16)
    program, _ = planned(f, h, w)
    inside = [step.name for depth, step in program.steps() if depth]
    assert inside.count("amx") == 1 and inside.count("launch") <= 2  # rows of h, of 40 terms, get room for 64
    expected = h
    for _ in range(5):
        expected = np.tanh((expected.astype(np.float32) @ w.astype(np.float32)).astype(BF16).astype(np.float32)).astype(
            BF16
        )
    for made in (jax.jit(f)(h, w), interpreted(program, [h, w])[0]):
        assert np.abs(np.asarray(made, np.float64) - expected.astype(np.float64)).max() < 0.05


def test_processes_that_may_not_use_tiles_do_without():
    without = host.without_tiles(SAPPHIRE_RAPIDS)
    assert SAPPHIRE_RAPIDS.multiplied and not without.multiplied
    assert "-amx-tile" in without.flags.split(",") and "+amx-tile" in SAPPHIRE_RAPIDS.flags.split(",")
    assert not any(machine.multiplied for machine in LEVELS.values())
    x = np.ones((64, 64), BF16)
    program = compiler.program_of(jax.make_jaxpr(jnp.matmul)(x, x), machine=without)
    assert not any(isinstance(step, AmxProduct) for _, step in program.steps())
