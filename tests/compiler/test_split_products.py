"""Products of float32 by parts of bfloat16 (precision BF16_BF16_F32_X6), on processors with AMX, against sums in double
precision; and the programs of such a processor, interpreted on any machine.
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpreted
from catena.compiler.machine import LEVELS, SAPPHIRE_RAPIDS
from catena.compiler.native import compile as compiler
from catena.compiler.native import host
from catena.compiler.plan import split_products
from catena.compiler.plan.split_products import SplitProduct, Splitting
from catena.compiler.plan.verify import verify
from catena.core.flags import PRECISIONS

UNIT = 2.0**-24
SIZES = [(256, 256, 64), (300, 333, 217), (256, 240, 1100), (177, 1000, 555)]  # rows, columns, terms
EINSUMS = ["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn", "mk,kn->nm", "bmk,bkn->bmn", "mbk,nbk->bmn",
           "bkm,bkn->bmn", "abmk,akbn->abmn", "mkc,ckn->mn"]  # fmt: skip


@pytest.fixture(autouse=True)
def by_parts():
    with jax.default_matmul_precision("BF16_BF16_F32_X6"):
        yield


def planned(f, *args, machine=SAPPHIRE_RAPIDS):
    """The program of a processor that has such tiles, and the products by parts in it."""
    program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=machine)
    verify(program)
    return program, [step for _, step in program.steps() if isinstance(step, SplitProduct)]


def exact(x, y, spec="mk,kn->mn"):
    """The sums, and those of the sizes of terms."""
    wide = [a.astype(np.float64) for a in (x, y)]
    with np.errstate(invalid="ignore"):
        return np.einsum(spec, *wide, optimize=True), np.einsum(spec, *map(np.abs, wide), optimize=True)


def check(made, x, y, spec="mk,kn->mn"):
    """Within what sums in float32 of so many terms have as a rule; infinite, or no number, where they are."""
    sums, sizes = exact(x, y, spec)
    with np.errstate(over="ignore"):
        rounded = sums.astype(np.float32)
    finite, made = np.isfinite(rounded), np.asarray(made)
    np.testing.assert_array_equal(made[~finite], rounded[~finite])
    bound = (8 + x.shape[-1] ** 0.5 / 4) * UNIT * sizes + 2.0**-149
    assert made.shape == sums.shape and np.all(np.abs(made[finite] - sums[finite]) <= bound[finite])


def operands(seed: int, spec: str, sizes: dict):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal([sizes[c] for c in s], np.float32) for s in spec.split("->")[0].split(",")]


@pytest.mark.share(4)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("spec", EINSUMS[:4])
def test_products_of_all_sizes(spec, sizes):
    x, y = operands(sum(sizes), spec, dict(zip("mnk", sizes)))
    f = lambda x, y: jnp.einsum(spec, x, y)
    check(jax.jit(f)(x, y), x, y, spec)
    program, products = planned(f, x, y)
    assert len(products) == 1
    check(interpreted(program, [x, y])[0], x, y, spec)


@pytest.mark.parametrize("spec", EINSUMS)
def test_products_of_all_layouts(spec):
    x, y = operands(3, spec, dict(a=2, b=3, c=2, m=260, n=240, k=100))
    f = lambda x, y: jnp.einsum(spec, x, y)
    check(jax.jit(f)(x, y), x, y, spec)
    program, products = planned(f, x, y)
    assert products
    check(interpreted(program, [x, y])[0], x, y, spec)


@pytest.mark.parametrize("spec, m, n, k", [("mk,kn->mn", 5000, 200, 256), ("km,kn->mn", 300, 5000, 250), ("mk,nk->mn", 3300, 3300, 200),
                                           ("bmk,bkn->bmn", 500, 600, 300), ("km,kn->mn", 700, 300, 5100), ("mk,nk->mn", 900, 1100, 2500)])  # fmt: skip
def test_large_operands_are_split_part_by_part(spec, m, n, k, monkeypatch):
    """Panels of 4 MB and more, with what follows on rows where parts have whole ones."""
    monkeypatch.setattr(split_products, "MOST_BYTES", 1 << 22)
    x, y = operands(13, spec, dict(b=5, m=m, n=n, k=k))
    f = lambda x, y: jnp.maximum(jnp.einsum(spec, x, y), 0)
    program, (product,) = planned(f, x, y)
    assert all(x.panels.bytes <= min(x.lines.bytes, 1 << 22) for x in (product.a, product.b))
    assert any(x.panels.bytes < x.lines.bytes for x in (product.a, product.b))
    expected = exact(x, y, spec)
    for made in (jax.jit(f)(x, y), interpreted(program, [x, y])[0]):
        assert np.all(np.abs(made - np.maximum(expected[0], 0)) <= (8 + k**0.5 / 4) * UNIT * expected[1])


def test_an_operand_is_the_sum_of_its_parts():
    """What is multiplied by one is itself, to the bit: each part is there, at its place."""
    x = np.random.default_rng(4).standard_normal((300, 256), np.float32)
    one = np.eye(256, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, one), x)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(one, x.T.copy()), x.T)


def test_products_are_by_parts_where_the_user_says_so():
    x, y = operands(0, "mk,kn->mn", dict(m=256, n=256, k=256))
    assert len(planned(lambda x, y: jnp.matmul(x, y, precision="BF16_BF16_F32_X6"), x, y)[1]) == 1
    for other in ("highest", "BF16_BF16_F32_X3", "F32_F32_F32"):
        assert not planned(lambda x, y: jnp.matmul(x, y, precision=other), x, y)[1]
    with jax.default_matmul_precision(None):
        assert not planned(jnp.matmul, x, y)[1]
        assert len(planned(lambda x, y: jax.lax.dot(x, y, precision="BF16_BF16_F32_X6"), x, y)[1]) == 1


@pytest.mark.parametrize("name", PRECISIONS)
def test_jaxprs_show_the_precision_that_is_set(name):
    x = jnp.ones((3, 3))
    shown = lambda f: jax.make_jaxpr(f)(x).eqns[0].params["precision"]
    with jax.default_matmul_precision(name):
        found = shown(lambda x: x @ x)
        assert found is not None and found == shown(lambda x: jnp.dot(x, x, precision=name))
        assert shown(lambda x: jnp.dot(x, x, precision="highest")) == (jax.lax.Precision.HIGHEST,) * 2


def test_small_products_are_not_by_parts():
    for m, n, k in ((64, 64, 1100), (100, 4096, 512), (4096, 100, 512), (4096, 512, 63)):
        assert not planned(jnp.matmul, *operands(0, "mk,kn->mn", dict(m=m, n=n, k=k)))[1]


@pytest.mark.parametrize("machine", LEVELS.values(), ids=LEVELS)
def test_other_processors_multiply_floats(machine):
    assert not planned(jnp.matmul, *operands(0, "mk,kn->mn", dict(m=256, n=256, k=256)), machine=machine)[1]


def scaled(x, by):
    return (x * np.float32(by)).astype(np.float32)


@pytest.mark.parametrize("of_x, of_y", [(1e-30, 1), (1e-18, 1e-18), (1e-20, 1e-20), (1e-41, 1e20), (1e37, 1e-20),
                                        (1e-30, 1e-30), (3e37, 3e-37)])  # fmt: skip
def test_large_and_small_numbers(of_x, of_y):
    """Whose parts, or products of these, are subnormal; and those whose sums are, or infinite."""
    x, y = operands(5, "mk,kn->mn", dict(m=250, n=260, k=256))
    x, y = scaled(x, of_x), scaled(y, of_y)
    check(jax.jit(jnp.matmul)(x, y), x, y)
    check(jax.jit(lambda x, y: x @ y.T)(x, y.T.copy()), x, y)


def test_sums_that_are_infinite():
    x, y = (np.abs(scaled(x, by)) for x, by in zip(operands(5, "mk,kn->mn", dict(m=250, n=260, k=256)), (1e30, 1e20)))
    check(jax.jit(jnp.matmul)(x, y), x, y)


def test_numbers_of_all_sizes():
    """Small terms are not lost where large ones meet zeros, or others as small."""
    rng = np.random.default_rng(6)
    x, y = (np.exp(rng.uniform(-60, 20, shape)).astype(np.float32) for shape in ((250, 256), (256, 260)))
    check(jax.jit(jnp.matmul)(x, y), x, y)
    x, y = np.zeros_like(x), np.zeros_like(y)
    x[:, 0], x[:, 1], y[0] = rng.standard_normal(250) * 1e-38, 1, rng.standard_normal(260) * 1e30
    check(jax.jit(jnp.matmul)(x, y), x, y)


def test_what_is_no_number_stays_in_its_row_and_column():
    x, y = operands(7, "mk,kn->mn", dict(m=300, n=250, k=256))
    x[7, 0], x[8, 32], x[20, 5], y[3, 32], x[9, 100] = np.inf, -np.inf, np.nan, np.inf, np.finfo(np.float32).max
    y[0, :5] = 0
    check(jax.jit(jnp.matmul)(x, y), x, y)
    finite = np.isfinite(x).all(1)[:, None] & np.isfinite(y).all(0)
    x[~np.isfinite(x)], y[~np.isfinite(y)] = 0, 0
    again = np.asarray(jax.jit(jnp.matmul)(x, y))
    x[7, 0] = np.inf
    np.testing.assert_array_equal(np.asarray(jax.jit(jnp.matmul)(x, y))[finite & (np.arange(300) != 7)[:, None]],
                                  again[finite & (np.arange(300) != 7)[:, None]])  # fmt: skip


def test_bits_hang_on_a_row_and_a_column_alone():
    if "bfloat16" not in host.this_machine().multiplied_in_tiles:
        pytest.skip("this processor has no AMX")
    x, y = operands(8, "bmk,bkn->bmn", dict(b=3, m=300, n=300, k=1100))
    matmul = jax.jit(jnp.matmul)
    whole = np.asarray(matmul(x, y))
    np.testing.assert_array_equal(matmul(x[1], y[1]), whole[1])
    np.testing.assert_array_equal(matmul(x[1, 40:290], y[1]), whole[1, 40:290])
    np.testing.assert_array_equal(matmul(x[1], np.ascontiguousarray(y[1, :, 37:290])), whole[1, :, 37:290])
    np.testing.assert_array_equal(jax.jit(lambda x, y: x @ y.T)(x[1], y[1].T.copy()), whole[1])
    np.testing.assert_array_equal(jax.jit(lambda x, y: x.T @ y)(x[1].T.copy(), y[1]), whole[1])


def test_eager_products_have_the_bits_of_compiled_ones():
    x, y = operands(9, "mk,kn->mn", dict(m=300, n=250, k=200))
    b = np.random.default_rng(10).standard_normal(250, np.float32)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, y), jnp.matmul(x, y))
    layer = lambda x, y, b: jnp.maximum(x @ y + b, 0)
    np.testing.assert_array_equal(jax.jit(layer)(x, y, b), layer(*map(jnp.asarray, (x, y, b))))


def test_weights_are_split_before_a_loop():
    def f(h, w):
        return jax.lax.fori_loop(0, 5, lambda _, h: jnp.tanh(h @ w), h)

    h, w = operands(11, "mk,kn->mn", dict(m=250, n=256, k=256))
    w *= 0.1
    program, products = planned(f, h, w)
    assert len(products) == 1
    top = [step for depth, step in program.steps() if isinstance(step, Splitting) and not depth]
    assert len(top) == 1 and not top[0].lines.is_left
    expected = h.astype(np.float64)
    for _ in range(5):
        expected = np.tanh(expected @ w)
    for made in (jax.jit(f)(h, w), interpreted(program, [h, w])[0]):
        np.testing.assert_allclose(made, expected, atol=3e-4)


def test_the_gradient_of_an_mlp():
    def loss(p, x):
        h = jnp.maximum(x @ p[0] + p[1], 0)
        return jnp.mean((h @ p[2]) ** 2)

    rng = np.random.default_rng(12)
    shapes = (256, 300), (300,), (300, 260), (250, 256)
    *p, x = (rng.standard_normal(shape, np.float32) * np.float32(0.1) for shape in shapes)
    program, products = planned(jax.grad(loss), p, x)
    assert len(products) == 5
    wide = [a.astype(np.float64) for a in (*p, x)]
    pre = wide[3] @ wide[0] + wide[1]
    out = np.maximum(pre, 0) @ wide[2]
    back = 2 * out / out.size
    hidden = (back @ wide[2].T) * (pre > 0)
    expected = [wide[3].T @ hidden, hidden.sum(0), np.maximum(pre, 0).T @ back]
    for made in (jax.jit(jax.grad(loss))(p, x), interpreted(program, [*p, x])):
        for g, e in zip(made, expected, strict=True):
            assert np.abs(np.asarray(g, np.float64) - e).max() <= 1e-5 * np.abs(e).max()
