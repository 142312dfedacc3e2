"""Products of bytes whose sums are integers: those of floats, which are exact up to so many terms, in parts where sums are
longer. Processors with AMX multiply signed ones as they are (`test_amx.py`), and so do those that add up products of four
bytes in a lane (`emit/byte_products.py`).
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import byte_products
from catena.compiler.interpret.program import run as interpreted
from catena.compiler.machine import CASCADE_LAKE, SAPPHIRE_RAPIDS, X86_64_V4
from catena.compiler.native import compile as compiler
from catena.compiler.plan.amx import AmxProduct
from catena.compiler.plan.verify import verify

ENDS = {"int8": (-128, 127), "uint8": (0, 255)}


def product(x, y):
    return jnp.einsum("...ij,...jk->...ik", x, y, preferred_element_type=jnp.int32)


def operands(left: str, right: str, terms: int, batch: tuple = ()):
    rng = np.random.default_rng(terms)
    made = lambda dtype, *shape: rng.choice(ENDS[dtype], (*batch, *shape)).astype(dtype)
    return made(left, 9, terms), made(right, terms, 40)


def planned(f, *args):
    return compiler.program_of(jax.make_jaxpr(f)(*args), machine=X86_64_V4)


@pytest.mark.share(4)
@pytest.mark.parametrize("left, right", [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize("terms", [16, 258, 259, 1024, 1025, 3000])
def test_products_are_exact(left, right, terms):
    """Of the greatest numbers, one row of the same sign among them: its sums are as large as can be."""
    x, y = operands(left, right, terms)
    x[0], y[:, 0] = ENDS[left][left == "uint8"], ENDS[right][right == "uint8"]
    exact = (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(jax.jit(product)(x, y), exact)
    (found,) = interpreted(planned(product, x, y), [x, y])
    np.testing.assert_array_equal(found, exact)


def test_batches_and_sums_that_wrap():
    x, y = operands("uint8", "uint8", 600, (3,))
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(jax.jit(product)(x, y), exact)
    x, y = np.full((4, 1 << 17), 255, np.uint8), np.full((1 << 17, 8), 255, np.uint8)
    assert int(product(x, y)[0, 0]) == int(jax.jit(product)(x, y)[0, 0]) == 255 * 255 * (1 << 17) - (1 << 33)


def test_they_are_multiplied_as_floats():
    """In as many parts as they need; by integers where these would be too many, or there is little to multiply."""

    def products(terms: int, rows: int = 9) -> list[str]:
        x, y = operands("int8", "int8", terms)
        steps = planned(product, x[:rows], y).steps()
        return [step.plan.contraction.type.memory for _, step in steps if step.name == "contract"]

    assert products(1024) == ["float"]
    assert products(3000) == ["float"] * 3
    assert "float" not in products(20_000)
    assert "float" not in products(64, 1)


@pytest.mark.share(4)
@pytest.mark.parametrize("spec", ["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "bmk,bkn->bmn", "mbk,nbk->bmn"])
@pytest.mark.parametrize("sizes", [(2, 100, 33), (8, 64, 64), (31, 33, 63), (33, 47, 50), (100, 64, 1025)], ids=str)
def test_signed_ones_are_multiplied_as_they_are(spec, sizes):
    """Of the greatest numbers, by a processor with dot products of bytes; here as it does it."""
    rng = np.random.default_rng(17)
    extent = dict(zip("mnk", sizes)) | {"b": 3}
    x, y = (
        rng.choice([-128, -127, 3, 127], [extent[c] for c in s]).astype(np.int8) for s in spec.split("->")[0].split(",")
    )
    exact = np.einsum(spec, x.astype(np.int64), y.astype(np.int64)).astype(np.int32)
    f = lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=jnp.int32)
    program = compiler.program_of(jax.make_jaxpr(f)(x, y), machine=CASCADE_LAKE)
    verify(program)
    assert [isinstance(step, AmxProduct) for _, step in program.steps()].count(True) == 1
    np.testing.assert_array_equal(interpreted(program, [x, y])[0], exact)
    np.testing.assert_array_equal(jax.jit(f)(x, y), exact)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_narrow_results_are_the_low_bits_of_sums(dtype):
    x, y = operands("int8", "int8", 70)
    f = lambda x, y: jnp.einsum("ij,jk->ik", x, y, preferred_element_type=dtype)
    program = compiler.program_of(jax.make_jaxpr(f)(x, y), machine=CASCADE_LAKE)
    assert any(isinstance(step, AmxProduct) for _, step in program.steps())
    exact = (x.astype(np.int64) @ y.astype(np.int64)).astype(dtype)
    for made in (jax.jit(f)(x, y), interpreted(program, [x, y])[0]):
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, exact)


@pytest.mark.share(2)
@pytest.mark.parametrize("left, right", [("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
@pytest.mark.parametrize("terms", [70, 1100])
def test_negative_sums_wrap_around_in_numbers_without_a_sign(left, right, terms):
    """By a processor that has to multiply floats, too, whose conversions would stop at zero."""
    x, y = operands(left, right, terms)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    for dtype in ("uint32", "uint64", "int64"):
        with jax.enable_x64():
            f = lambda x, y: jnp.einsum("ij,jk->ik", x, y, preferred_element_type=dtype)
            np.testing.assert_array_equal(jax.jit(f)(x, y), exact.astype(dtype))
            np.testing.assert_array_equal(interpreted(planned(f, x, y), [x, y])[0], exact.astype(dtype))


def test_which_instructions_multiply_bytes():
    """Tiles, where a processor has both."""
    assert CASCADE_LAKE.multiplied == {"int8"} and not CASCADE_LAKE.multiplied_in_tiles
    assert SAPPHIRE_RAPIDS.multiplied == SAPPHIRE_RAPIDS.multiplied_in_tiles == {"int8", "bfloat16"}
    assert not X86_64_V4.multiplied
    text = byte_products.text()
    assert text.count("vpdpbusd") == byte_products.ROWS * (1 + byte_products.VECTORS) and "tile" not in text
