"""Products of bytes whose sums are integers: those of floats, which are exact up to so many terms, in parts where sums are
longer. Processors with AMX multiply signed ones as they are (`test_amx.py`).
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpreted
from catena.compiler.machine import X86_64_V4
from catena.compiler.native import compile as compiler

ENDS = {"int8": (-128, 127), "uint8": (0, 255)}


def product(x, y):
    return jnp.einsum("...ij,...jk->...ik", x, y, preferred_element_type=jnp.int32)


def operands(left: str, right: str, terms: int, batch: tuple = ()):
    rng = np.random.default_rng(terms)
    made = lambda dtype, *shape: rng.choice(ENDS[dtype], (*batch, *shape)).astype(dtype)
    return made(left, 9, terms), made(right, terms, 40)


def planned(f, *args):
    return compiler.program_of(jax.make_jaxpr(f)(*args), machine=X86_64_V4)


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
