"""Products with a vector read a matrix of narrow floats as it is, with the bits of one that was widened before."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpret
from catena.compiler.native.compile import program_of

RNG = np.random.default_rng(4)
SHAPES = [(128, 784), (3, 5000), (2000, 7), (5, 33, 70), (2, 3, 16, 40), (1, 300), (0, 4)]
PRODUCTS = {
    "matrix by vector": lambda a, v, u: a @ v,
    "vector by transpose": lambda a, v, u: v @ jnp.swapaxes(a, -1, -2),
    "vector by matrix": lambda a, v, u: jnp.einsum("i,...ij->...j", u, a),
    "one vector each": lambda a, v, u: jnp.einsum("...ij,...j->...i", a, a[..., 0, :]) if len(a) else a @ v,
    "what is computed": lambda a, v, u: (a * a + 1) @ v,
}


def given(shape, dtype):
    make = lambda shape: jnp.asarray(RNG.standard_normal(shape), dtype)  # noqa: E731
    return make(shape), make(shape[-1:]), make(shape[-2:-1])


CASES = [(name, dtype) for name in PRODUCTS for dtype in ("bfloat16", "float16")]
CASES += [("matrix by vector", "float8_e4m3fn"), ("vector by transpose", "float8_e4m3fn")]  # others are beyond 448


@pytest.mark.share(6)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_products(name, dtype, shape):
    f, args = PRODUCTS[name], given(shape, dtype)
    made = jax.jit(f)(*args)
    exact = f(*(jnp.asarray(x, "float32") for x in args))
    assert made.dtype == dtype and made.shape == exact.shape
    terms = np.asarray(f(*(jnp.abs(jnp.asarray(x, "float32")) for x in args)))  # what is rounded adds up to so much
    rough = {"bfloat16": 2**-7, "float16": 2**-10, "float8_e4m3fn": 2**-2}[dtype]
    np.testing.assert_allclose(np.asarray(made, "float32"), exact, rtol=rough, atol=rough * terms.max(initial=0))


@pytest.mark.parametrize("shape", SHAPES[:5])
def test_the_bits_are_those_of_a_matrix_that_was_widened(shape):
    """A widened matrix that is a result, too, is in memory."""
    a, v, _ = given(shape, "bfloat16")
    wide = jnp.asarray(a, "float32")
    alone = jax.jit(lambda a, v: jnp.matmul(a, v, preferred_element_type="float32"))(a, v)
    before = jax.jit(lambda a, v: a @ v)(wide, jnp.asarray(v, "float32"))
    assert np.asarray(alone).tobytes() == np.asarray(before).tobytes()


def test_gradients_and_loops():
    a, v, _ = given((40, 40), "float32")
    f = lambda a, v: jnp.sum(jnp.sin((a.astype("bfloat16") @ v.astype("bfloat16")).astype("float32")))  # noqa: E731
    for one, other in zip(jax.jit(jax.grad(f, (0, 1)))(a, v), jax.grad(f, (0, 1))(a, v), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02)
    b, w = a.astype("bfloat16") / 8, v.astype("bfloat16")
    made = jax.jit(lambda b, w: jax.lax.fori_loop(0, 4, lambda _, w: b @ w, w))(b, w)
    for _ in range(4):
        w = b @ w
    np.testing.assert_allclose(np.asarray(made, "float32"), np.asarray(w, "float32"), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", ["matrix by vector", "vector by transpose"])
def test_the_null_device_reads_narrow_matrices(name):
    args = given((30, 200), "float16")
    made = jax.make_jaxpr(PRODUCTS[name])(*args)
    (found,) = interpret(program_of(made), [np.asarray(x) for x in args])
    np.testing.assert_allclose(np.asarray(found, "float32"), np.asarray(PRODUCTS[name](*args), "float32"), rtol=2e-3)


def test_no_matrix_is_written():
    f = jax.jit(PRODUCTS["matrix by vector"])
    program = f.lower(*given((1000, 300), "bfloat16")).compile().as_text("program")
    assert "[1200000]" not in program
