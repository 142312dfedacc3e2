"""Products of many small matrices: the loop over their terms is written out, and adds up in the same order."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V3, X86_64_V4
from catena.compiler.native.compile import program_of, text_of
from catena.compiler.plan.steps import Contract
from catena.core.config import override

PRODUCTS = {"matrices": "bij,bjk->bik", "turned": "bji,bjk->bik", "vectors": "bij,bj->bi", "by one": "bij,jk->bik"}


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
@pytest.mark.parametrize("n", [2, 3, 4, 6, 7, 8, 9])
def test_they_are_what_numpy_finds(n, dtype):
    rng = np.random.default_rng(n)
    for which in PRODUCTS.values():
        x, y = (rng.integers(-9, 9, (70, n, n)).astype(dtype) for _ in range(2))
        y = y[:, 0] if which.endswith("->bi") else y[0] if ",jk" in which else y
        product = jax.jit(lambda x, y, which=which: jnp.einsum(which, x, y))
        np.testing.assert_array_equal(product(x, y), np.einsum(which, x, y))


@pytest.mark.parametrize("n", [3, 6, 7])
def test_a_product_has_the_bits_of_one_alone(n):
    x = np.random.default_rng(n).standard_normal((70, n, n), np.float32)
    product = jax.jit(lambda x: x @ x)
    whole = np.asarray(product(x))
    for k in (0, 69):
        assert whole[k].tobytes() == np.asarray(product(x[k : k + 1])).tobytes()


@pytest.mark.parametrize("machine", [X86_64_V3, X86_64_V4], ids=["v3", "v4"])
@pytest.mark.parametrize("rows, terms, loops", [(4, 4, 2), (5, 7, 2), (5, 8, 3)])
def test_how_many_loops_are_written(rows, terms, loops, machine):
    """Over matrices and their rows, and where terms are many over these."""
    x, y = (jax.ShapeDtypeStruct((1000, *shape), "float32") for shape in ((rows, terms), (terms, 5)))
    with override("jax_check_bounds", False):
        text = text_of(jax.make_jaxpr(jnp.matmul)(x, y), machine=machine)
    assert text.count("= phi i64") == loops


SHORT = {"rows": "ik,kj->ij", "columns": "ik,jk->ij", "turned": "ki,kj->ij", "members": "bik,bkj->bij"}


def _of_short_sums(which, terms, dtype):
    rng = np.random.default_rng(terms)
    extents = {"b": 3, "i": 3000, "j": 290, "k": terms}
    left, right = which.split("->")[0].split(",")
    return [rng.standard_normal([extents[d] for d in operand]).astype(dtype) for operand in (left, right)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("terms", [2, 3, 4, 5])
@pytest.mark.parametrize("which", SHORT.values(), ids=SHORT)
def test_short_sums_have_the_bits_that_they_have_in_smaller_results(which, terms, dtype):
    """Large results of few terms are loop nests, which write row after row, smaller ones are by tiles."""
    with override("jax_enable_x64", True):
        x, y = _of_short_sums(which, terms, dtype)
        product = jax.jit(lambda x, y: jnp.einsum(which, x, y))
        whole = np.asarray(product(x, y))
        np.testing.assert_allclose(whole, np.einsum(which, x, y), rtol=1e-5 if dtype == "float32" else 1e-14, atol=1e-6)
        axis = which.index("i")
        part = np.asarray(product(np.take(x, range(40, 60), axis), y))
        assert whole[..., 40:60, :].tobytes() == part.tobytes()


@pytest.mark.parametrize(
    "terms, rows, by_tiles",
    [(4, 40, {X86_64_V3, X86_64_V4}), (4, 1000, {X86_64_V4}), (4, 6000, set()), (5, 6000, {X86_64_V3, X86_64_V4})],
)
def test_which_short_sums_are_written_row_after_row(terms, rows, by_tiles):
    x, y = jax.ShapeDtypeStruct((rows, terms), "float32"), jax.ShapeDtypeStruct((terms, 200), "float32")
    for machine in (X86_64_V3, X86_64_V4):
        with override("jax_check_bounds", False):
            program = program_of(jax.make_jaxpr(jnp.matmul)(x, y), machine=machine)
        assert [isinstance(step, Contract) for _, step in program.steps()] == [machine in by_tiles]
