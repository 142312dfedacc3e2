"""Right operands of 16 bits, which tasks of products widen as they pack them."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native import host
from catena.compiler.native.compile import program_of
from catena.core.lazy import has_compiler

RNG = np.random.default_rng(0)
NARROW = ["float16", "bfloat16"]


def numbers(shape, dtype, kind="usual"):
    x = RNG.standard_normal(shape)
    if kind == "small":  # some of which are subnormal numbers
        x = (
            x * 2.0 ** RNG.integers(-132, -110, shape)
            if dtype == "bfloat16"
            else x * 2.0 ** RNG.integers(-24, -8, shape)
        )
    elif kind == "special":
        x[RNG.random(shape) < 0.002] = np.inf
        x[RNG.random(shape) < 0.002] = np.nan
    return jnp.asarray(x, dtype)


def program(f, *args) -> str:
    """Of a processor without tiles for such numbers."""
    return str(program_of(jax.make_jaxpr(f)(*args), machine=ICE_LAKE))


def times(x, w):
    return x @ w


def times_turned(x, w):
    return x @ w.T


SHAPES = [(1, 300, 130), (1, 1024, 96), (2, 200, 200), (8, 513, 65), (9, 160, 208), (40, 600, 100), (130, 128, 150)]


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", ["usual", "small", "special"])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("f", [times, times_turned])
def test_the_bits_are_those_of_what_was_widened(f, dtype, kind):
    if has_compiler() and dtype in host.this_machine().multiplied:
        pytest.skip("this processor has tiles for such numbers, which are not widened")
    for rows, terms, columns in SHAPES:
        x = numbers((rows, terms), dtype, kind)
        w = numbers((terms, columns) if f is times else (columns, terms), dtype, kind)
        got = jax.jit(f)(x, w)
        want = jax.jit(f)(x.astype("float32"), w.astype("float32")).astype(dtype)
        np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("rows", [1, 8, 64])
def test_nothing_is_written_for_them(dtype, rows):
    x, w = numbers((rows, 256), dtype), numbers((256, 320), dtype)
    for f, args, products in (
        (times, (x, w), 1),
        (times_turned, (x, w.T.copy()), int(rows > 1)),  # of one row it is a loop nest, which reads them as well
        (lambda x, w, v: jnp.tanh(x @ w) @ v, (x, w, w.T.copy()), 2),
    ):
        text = program(f, *args)
        assert text.count(f"from {dtype}") == products
        assert "launch 81920" not in text


@pytest.mark.parametrize("dtype", NARROW)
def test_who_else_reads_them(dtype):
    """What is read otherwise, or as a left operand, is widened once."""
    x, w = numbers((8, 256), dtype), numbers((256, 256), dtype)
    for f in (
        lambda x, w: (x @ w, w.astype("float32")),
        lambda x, w: (x @ w, w.astype("float32").sum(0)),
        lambda x, w: (x @ w, w @ x.T),
        lambda x, w: w.T @ w,
    ):
        assert "from " not in program(f, x, w)


@pytest.mark.parametrize("dtype", NARROW)
def test_batches_gradients_and_loops(dtype):
    x, w = numbers((3, 12, 160), dtype), numbers((3, 160, 160), dtype)

    def layers(w, x):
        return lax.scan(lambda x, w: (jnp.tanh(x @ w * 0.1), None), x, w)[0]

    def changing(w, x):
        """The matrix is a carry, which is written after it was read."""
        return lax.fori_loop(0, 3, lambda i, c: (c[0] * 0.5, jnp.tanh(c[1] @ c[0] * 0.1)), (w, x))

    for f, args in (
        (lambda w, x: jnp.einsum("bij,bjk->bik", x, w), (w, x)),
        (lambda w, x: jnp.einsum("bij,bkj->bik", x, w), (w, x)),
        (lambda w, x: jnp.einsum("bij,jk->bik", x, w), (w[0], x)),
        (lambda w, x: jnp.einsum("nd,edh->neh", x, w), (w, x[0])),
        (lambda w, x: (w.at[3].set(1.0), x @ w), (w[0], x[0])),
        (lambda w, x: x @ w[1], (w, x[0])),
        (jax.vmap(times, (0, None)), (x, w[0])),
        (layers, (w, x[0])),
        (jax.grad(lambda w, x: jnp.sum(layers(w, x).astype("float32"))), (w, x[0])),
        (changing, (w[0], x[0])),
        (lambda x: x @ w[2], (x[0],)),
    ):
        got = jax.tree.leaves(jax.jit(f)(*args))
        with jax.disable_jit():
            want = jax.tree.leaves(f(*args))
        for a, b in zip(got, want, strict=True):
            scale = np.abs(np.asarray(b, np.float32)).max()
            np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), 0.02, 0.02 * scale)


def test_a_matrix_that_takes_its_memory_from_the_result():
    x, w = numbers((8, 256), "bfloat16"), numbers((256, 256), "bfloat16")
    want = jax.jit(times)(x, w)
    step = jax.jit(lambda w, x: (w * 2, x @ w), donate_argnums=0)
    doubled, got = step(w + 0, x)
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))
    np.testing.assert_array_equal(np.asarray(doubled, np.float32), np.asarray(w, np.float32) * 2)
