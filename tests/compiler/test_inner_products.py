"""Inner products of what loops compute: it is computed where it is multiplied, and added up as if it lay in memory."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of, text_of

RNG = np.random.default_rng(0)
CASES = {  # what is multiplied, and how, of arrays of these shapes
    "vectors": ("k,k->", lambda x, y: (x - 1, y * y), (3000,), (3000,)),
    "differences": ("k,k->", lambda x, y: (x[1:] - x[:-1], jnp.exp(y[1:])), (1000,), (1000,)),
    "rows": ("ik,ik->i", lambda x, y: (x + y, x - y), (40, 300), (40, 300)),
    "columns": ("ki,ki->i", lambda x, y: (x * 2, y + 1), (300, 40), (300, 40)),
    "across": ("ik,ki->i", lambda x, y: (x * 2, y + 1), (33, 70), (70, 33)),
    "short": ("ik,ik->i", lambda x, y: (x - y, x * 2), (500, 3), (500, 3)),
    "by a row": ("ik,ik->i", lambda x, y: (x, x * y[0]), (50, 65), (1, 65)),
    "a matrix": ("ik,k->i", lambda x, y: (jnp.abs(x) * 2, y), (70, 130), (130,)),
    "from the left": ("k,ik->i", lambda x, y: (x, y[:, ::-1] * 3), (1000,), (33, 1000)),
    "matrices": ("bik,bk->bi", lambda x, y: (x - x[:, :1], y), (5, 70, 64), (5, 64)),
    "whole matrices": ("ij,ij->", lambda x, y: (x - 1, y * y), (60, 50), (60, 50)),
    "a batch of whole ones": ("bij,bij->b", lambda x, y: (x + y, x * 2), (5, 33, 17), (5, 33, 17)),
    "in groups": (
        "ik,k->i",
        lambda x, y: ((x.reshape(40, 8, 32) * x[:, ::32, None]).reshape(40, 256), y),
        (40, 256),
        (256,),
    ),
}


TURNED = {  # of which one is written, in the order of the other; of what is stacked, none
    "over both, turned": ("bij,ji->b", lambda x, y: (x - 1, y * y), (20, 30, 64), (64, 30)),
    "over both, reversed": ("ij,ij->", lambda x, y: (x[:, ::-1], y * 3), (33, 17), (33, 17)),
    "stacked": ("bij,bij->b", lambda x, y: (jnp.stack([x, y]), jnp.stack([y - 1, x * x])), (33, 17), (33, 17)),
    "in a batch, turned": ("ji,abij->ab", lambda x, y: (x + y[0, 0].T, y * 3), (33, 40), (5, 7, 40, 33)),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("case", CASES | TURNED)
def test_the_bits_are_those_of_what_lies_in_memory(case, dtype):
    spec, made, *shapes = (CASES | TURNED)[case]
    with jax.enable_x64(True):
        x, y = (jnp.asarray(RNG.standard_normal((*s, 2)) @ [1, 1j], dtype) for s in shapes)
        if dtype.startswith("float"):
            x, y = x.real, y.real
        product = lambda a, b: jnp.einsum(spec, a, b)  # noqa: E731
        together = jax.jit(lambda x, y: product(*made(x, y)))(x, y)
        apart = jax.jit(product)(*jax.jit(made)(x, y))
        assert np.array_equal(together, apart)
        a, b = (np.asarray(z, "complex128" if dtype.startswith("complex") else "float64") for z in made(x, y))
        np.testing.assert_allclose(together, np.einsum(spec, a, b), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_written_for_them(case):
    spec, made, *shapes = CASES[case]
    x, y = (jnp.ones(s) for s in shapes)
    text = jax.jit(lambda x, y: jnp.einsum(spec, *made(x, y))).lower(x, y).compile().as_text("nests")
    assert text.count("nest for") + text.count("nest reduce") == 1


@pytest.mark.share(2)
@pytest.mark.parametrize("dtypes", [("bfloat16", "bfloat16"), ("float16", "float16"), ("bfloat16", "float32")])
@pytest.mark.parametrize("spec, shape", [("k,k->", (5000,)), ("ik,ik->i", (90, 70)), ("ki,ki->i", (70, 90))])
def test_halves_are_widened_where_they_are_multiplied(spec, shape, dtypes):
    """Neither vector is written as floats; the bits are those of the product of floats in memory."""
    x, y = (jnp.asarray(RNG.standard_normal(shape), t) for t in dtypes)
    product = jax.jit(lambda x, y: jnp.einsum(spec, x, y))
    made = jax.jit(lambda x, y: jnp.einsum(spec, x, y))(x.astype("float32"), y.astype("float32"))
    assert np.array_equal(product(x, y), made.astype(jnp.promote_types(*dtypes)))
    text = product.lower(x, y).compile().as_text("program")
    assert f"[{4 * x.size}]" not in text.replace(f"argument 1[{y.nbytes}]", ""), text


@pytest.mark.parametrize("spec", ["k,k->", "ik,ik->i", "ik,k->i", "k,ik->i"])
def test_complex_products_are_loops_where_terms_lie_side_by_side(spec):
    """BLAS takes ten times as long for one sum of products, and reads conjugates that were written before."""
    shapes = [tuple({"k": 5000, "i": 9}[d] for d in part) for part in spec.split("->")[0].split(",")]
    x, y = (jnp.asarray(RNG.standard_normal((*s, 2)) @ [1, 1j], "complex64") for s in shapes)
    product = jax.jit(lambda x, y: jnp.einsum(spec, x.conj() * 2, y))
    np.testing.assert_allclose(product(x, y), np.einsum(spec, 2 * np.conj(x), y), rtol=1e-4, atol=1e-2)
    text = product.lower(x, y).compile().as_text("program")
    assert "gemm" not in text and ("k,ik" in spec or text.count("launch") == 1), text


QUANTISED = {
    "rows": lambda x, w, s: (w.astype("float32") * s[:, None]) @ x,
    "turned": lambda x, w, s: x.reshape(1, -1) @ (w.astype("float32") * s[:, None]).T,
    "packed": lambda x, w, s: (jnp.stack([w & 15, w >> 4], -1).reshape(len(s), -1)[:, : x.size] * s[:, None]) @ x,
}


@pytest.mark.parametrize("name", QUANTISED)
def test_weights_of_bytes_are_widened_where_they_are_multiplied(name):
    f = QUANTISED[name]
    x, w, s = (
        np.arange(96.0, dtype=np.float32),
        RNG.integers(-100, 100, (80, 96), np.int8),
        np.full(80, 0.5, np.float32),
    )
    with jax.disable_jit():
        expected = np.asarray(f(x, w, s), np.float64)
    np.testing.assert_array_equal(jax.jit(f)(x, w, s), expected)  # whole and half numbers
    assert "0 bytes of temporaries" in jax.jit(f).lower(x, w, s).compile().as_text("program")


def test_matrices_that_take_long_are_made_before():
    x, w = jnp.ones(128), jnp.ones((128, 128))
    for f in (
        lambda x, w: jnp.tanh(w) @ x,
        lambda x, w: w.reshape(8, 16, 128).transpose(1, 0, 2).reshape(128, 128) @ x,
    ):
        text = jax.jit(f).lower(x, w).compile().as_text("nests")
        assert text.count("nest for") == 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_integers_are_widened_where_they_are_multiplied(dtype):
    """No matrix of 32 bits is written for a product with a vector, nor vectors for an inner product."""
    info, rng = np.iinfo(dtype), np.random.default_rng(1)
    w, x = (rng.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((70, 130), 130))
    wide = lambda a: a.astype(np.int32)  # noqa: E731
    for f in (
        lambda w, x: jnp.matmul(w, x, preferred_element_type="int32"),
        lambda w, x: jnp.matmul(x[None], w.T, preferred_element_type="int32")[0],
    ):
        np.testing.assert_array_equal(jax.jit(f)(w, x), wide(w) @ wide(x))
        if dtype != "int32":
            assert f"[{w.size * 4}]" not in jax.jit(f).lower(w, x).compile().as_text("program")
    inner = lambda w: jnp.vdot(w[0], w[1], preferred_element_type="int32")  # noqa: E731
    np.testing.assert_array_equal(jax.jit(inner)(w), wide(w[0]) @ wide(w[1]))


@pytest.mark.parametrize(
    "spec, shape", [("bij,ji->b", (50, 40, 72)), ("bijk,kji->b", (50, 8, 9, 40)), ("bij,jib->b", (7, 40, 72))]
)
def test_terms_of_what_is_turned_are_added_up_in_the_order_of_the_other(spec, shape):
    """One after the other, by lanes along them: a matrix read across takes a page for each element. So a transpose of
    the large operand is none. Each element of a batch has a vector of its own, which is as large.
    """
    sizes = dict(zip(spec.split(",")[0], shape))
    x, y = (RNG.integers(-9, 9, [sizes[d] for d in part]) for part in spec.split("->")[0].split(","))
    x, y = x.astype("float32"), y.astype("float32")
    order = (0, *range(x.ndim - 1, 0, -1))
    turned = lambda x, y: jnp.einsum(
        spec.replace(spec[: x.ndim], "".join(spec[d] for d in order)), x.transpose(order), y
    )  # noqa: E731
    for f in (lambda x, y: jnp.einsum(spec, x, y), turned):
        np.testing.assert_array_equal(jax.jit(f)(x, y), np.einsum(spec, x, y))
        program = program_of(jax.make_jaxpr(f)(x, y))
        (nest,) = [nest for _, step in program.steps() for nest in step.nests() if nest.folds]
        assert (len(nest.reduced) == 1) is (y.ndim < x.ndim)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 20, 30, 32, 60, 64, 100, 130])
def test_products_of_truths_say_whether_any_term_is_true(n):
    rng = np.random.default_rng(n)
    x, y = rng.random((40, n)) < 0.15, rng.random((9, n)) < 0.15
    x[:, -1] |= rng.random(40) < 0.5  # the last term alone, too
    y[:4, -1] = True
    want = (x[:, None] & y).any(-1)
    np.testing.assert_array_equal(jax.jit(lambda x, y: x @ y.T)(x, y), want)
    np.testing.assert_array_equal(jax.jit(lambda x, y: x @ y)(x, y[0]), want[:, 0])
    np.testing.assert_array_equal(jax.jit(lambda x, y: jnp.einsum("bij,bj->bi", x, y))(np.stack([x] * 9), y), want.T)


def test_lanes_of_truths_are_asked_for_any_at_once():
    """By halves they would be taken one by one where they are not a power of two: 30 ns a result beside 1."""
    x = jnp.ones((30, 30), bool)
    text = text_of(jax.make_jaxpr(lambda x, y: x @ y.T)(x, x), machine=ICE_LAKE)
    assert "call i1 @llvm.vector.reduce.or.v30i1" in text
