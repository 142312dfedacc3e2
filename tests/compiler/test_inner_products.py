"""Inner products of what loops compute: it is computed where it is multiplied, and added up as if it lay in memory."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

RNG = np.random.default_rng(0)
CASES = {  # what is multiplied, and how, of arrays of these shapes
    "vectors": ("k,k->", lambda x, y: (x - 1, y * y), (3000,), (3000,)),
    "differences": ("k,k->", lambda x, y: (x[1:] - x[:-1], jnp.exp(y[1:])), (1000,), (1000,)),
    "rows": ("ik,ik->i", lambda x, y: (x + y, x - y), (40, 300), (40, 300)),
    "columns": ("ki,ki->i", lambda x, y: (x * 2, y + 1), (300, 40), (300, 40)),
    "across": ("ik,ki->i", lambda x, y: (x * 2, y + 1), (33, 70), (70, 33)),
    "short": ("ik,ik->i", lambda x, y: (x - y, x * 2), (500, 3), (500, 3)),
    "by a row": ("ik,ik->i", lambda x, y: (x, x * y[0]), (50, 65), (1, 65)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_what_lies_in_memory(case, dtype):
    spec, made, *shapes = CASES[case]
    with jax.enable_x64(True):
        x, y = (jnp.asarray(RNG.standard_normal(s), dtype) for s in shapes)
        product = lambda a, b: jnp.einsum(spec, a, b)  # noqa: E731
        together = jax.jit(lambda x, y: product(*made(x, y)))(x, y)
        apart = jax.jit(product)(*jax.jit(made)(x, y))
        assert np.array_equal(together, apart)
        a, b = (np.asarray(z, "float64") for z in made(x, y))
        np.testing.assert_allclose(together, np.einsum(spec, a, b), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_written_for_them(case):
    spec, made, *shapes = CASES[case]
    x, y = (jnp.ones(s) for s in shapes)
    text = jax.jit(lambda x, y: jnp.einsum(spec, *made(x, y))).lower(x, y).compile().as_text("nests")
    assert text.count("nest for") + text.count("nest reduce") == 1
