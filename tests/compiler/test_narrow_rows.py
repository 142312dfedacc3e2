"""Rows of fewer elements than a vector has lanes: of booleans and small integers, what lies along them is folded by
lanes; of two or three numbers, lanes lie along what is kept.
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of

RNG = np.random.default_rng(0)
SIZES = (1, 5, 13, 17, 24, 31, 33, 48, 63, 64, 65, 100)
ROWS = 203


@pytest.mark.share(3)
@pytest.mark.parametrize("n", SIZES)
def test_booleans(n):
    x = RNG.random((ROWS, n)) < 0.5
    x[::3], x[1::3] = x[::3] & (RNG.random((len(x[::3]), n)) < 2 / n), True
    x[4, n // 2] = False
    folds = {"any": jnp.any, "all": jnp.all, "max": jnp.max, "min": jnp.min, "sum": jnp.sum, "argmax": jnp.argmax}
    for name, fold in folds.items():
        got = jax.jit(lambda x: fold(x, axis=1))(x)
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1), err_msg=name)
    odd = jax.jit(lambda x: jax.lax.reduce(x, False, jax.lax.bitwise_xor, (1,)))(x)
    np.testing.assert_array_equal(odd, np.logical_xor.reduce(x, 1))
    both = jax.jit(lambda x: jnp.any(x[:, None] & ~x[:, :, None], axis=(1, 2)))(x)
    np.testing.assert_array_equal(both, x.any(1) & ~x.all(1))


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("n", SIZES)
def test_small_integers(dtype, n):
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (ROWS, n), dtype, endpoint=True)
    for name in ("max", "min", "argmax", "any"):
        got = jax.jit(lambda x: getattr(jnp, name)(x, axis=1))(x)
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1), err_msg=name)
    for name in ("sum", "prod"):
        got = jax.jit(lambda x: getattr(jnp, name)(x, axis=1, dtype=dtype))(x)
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1, dtype=dtype), err_msg=name)
    for name, fold in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
        first = {"and": -1 if dtype[0] == "i" else np.iinfo(dtype).max}.get(name, 0)
        got = jax.jit(
            lambda x: jax.lax.reduce(x, np.dtype(dtype).type(first), getattr(jax.lax, f"bitwise_{name}"), (1,))
        )
        np.testing.assert_array_equal(got(x), fold.reduce(x, 1), err_msg=name)


def test_no_byte_is_gathered():
    for dtype in ("bool", "int8"):
        traced = jax.make_jaxpr(lambda x: jnp.any(x, axis=1))(np.zeros((2000, 24), dtype))
        text = text_of(traced, machine=X86_64_V4)
        assert "gather" not in text
        assert "vector.reduce.or.v24i1" in text


def overlaps(np, fold, boxes):
    """Of each pair of boxes, which are two corners in a row, those of its common part, folded."""
    first, second = boxes[:, None], boxes[None]
    return getattr(np, fold)(
        np.minimum(first[..., 2:], second[..., 2:]) - np.maximum(first[..., :2], second[..., :2]), -1
    )


@pytest.mark.parametrize("fold", ["sum", "prod", "max", "any", "argmin"])
def test_pairs_of_boxes(fold):
    boxes = RNG.standard_normal((53, 4)).astype(np.float32)
    got = jax.jit(lambda b: overlaps(jnp, fold, b))(boxes)
    np.testing.assert_allclose(got, overlaps(np, fold, boxes), rtol=1e-6)


def test_lanes_of_pairs_are_filled():
    """Many reads along the two numbers that are folded do not make up for lanes that are not used."""
    for fold in ("sum", "prod", "max"):
        text = text_of(
            jax.make_jaxpr(lambda b: overlaps(jnp, fold, b))(np.zeros((53, 4), np.float32)), machine=X86_64_V4
        )
        assert "fcmp olt <16 x float>" in text and "<2 x float>" not in text


@pytest.mark.parametrize("n", [2, 3])
def test_functions_of_few_columns_fill_lanes(n):
    """A function takes as long for two lanes as for sixteen, and what lies apart is read one by one in any case."""
    x = RNG.uniform(0.5, 2, (1000, n, n)).astype("float32")
    of_diagonal = lambda x: jnp.log(jnp.diagonal(x, 0, -2, -1))
    text = text_of(jax.make_jaxpr(of_diagonal)(x), machine=X86_64_V4)
    assert "<16 x float>" in text and f"<{n} x float>" not in text
    alone = jax.jit(jnp.log)(np.diagonal(x, 0, -2, -1).copy())
    np.testing.assert_array_equal(jax.jit(of_diagonal)(x), alone)


KEPT = {  # functions of elements that are kept, beside what is folded down the columns; how many loops they take
    "two columns": (2, lambda x: (jnp.exp(x), x.sum(0)), 2),
    "eight columns": (8, lambda x: (x.max(0), jnp.tanh(x)), 2),
    "nine columns": (9, lambda x: (jnp.exp(x), x.sum(0)), 1),
    "one column": (1, lambda x: (jnp.exp(x), x.sum(0)), 1),
    "no function": (2, lambda x: (x * 2, x.sum(0)), 1),
    "a function of both": (2, lambda x: (jnp.exp(x) * 3, jnp.exp(x).sum(0)), 2),
    "a fold of a function": (2, lambda x: (jnp.tanh(x), jnp.exp(x).sum(0)), 1),
}


@pytest.mark.parametrize("case", KEPT)
def test_functions_fill_lanes_that_few_columns_would_not(case):
    columns, f, loops = KEPT[case]
    x = RNG.standard_normal((2000, columns)).astype(np.float32)
    compiled = jax.jit(f).lower(x).compile()
    assert compiled.as_text("kernels").count("kernel over 2000 x") == loops
    for made, expected in zip(compiled(x), f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(made, expected, rtol=2e-5, atol=1e-4)
