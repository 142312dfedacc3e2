"""Few elements of what is computed element by element are taken before they are computed with."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph.taken_first import take_first
from catena.compiler.native.compile import lower, nests

rng = np.random.default_rng(23)
x = rng.standard_normal((300, 40), np.float32)
places = rng.integers(0, 40, (7,)).astype(np.int32)
beyond = np.array([-400, -3, 0, 39, 40, 299, 300, 2**30], np.int32)


def computed(x):
    """Values in between are read several times."""
    y = jnp.exp(-x * x)
    return jnp.where(x > 0, jnp.tanh(y) * y, jnp.log1p(y) - x) + jnp.arange(x.shape[-1], dtype=x.dtype)


TAKES = {
    "rows": lambda x: computed(x)[places],
    "columns": lambda x: computed(x)[:, places],
    "elements": lambda x: computed(x)[places, places[::-1]],
    "flat": lambda x: computed(x).ravel()[places],
    "turned": lambda x: computed(x).T[places],
    "along": lambda x: jnp.take_along_axis(computed(x), jnp.argsort(x, 1)[:, :5], 1),
    "beyond: none": lambda x: jnp.take(computed(x), beyond, 0),
    "beyond: the last": lambda x: jnp.take(computed(x), beyond, 0, mode="clip"),
    "beyond: around": lambda x: jnp.take(computed(x), beyond, 1, mode="wrap"),
    "beyond: a number": lambda x: computed(x).at[:, beyond].get(mode="fill", fill_value=7),
    "slice": lambda x: computed(x)[20:90],
    "columns in a slice": lambda x: computed(x)[:, 3:30:2],
    "from behind": lambda x: computed(x)[::-1, ::-1][5:60],
    "at a computed place": lambda x: lax.dynamic_slice(computed(x), (jnp.argmax(x[:, 0]), 290), (50, 8)),
    "slice of a slice": lambda x: jnp.sin(computed(x)[10:150])[places],
    "elements of elements": lambda x: jnp.sin(computed(x)[places])[places[:3] % 7],
    "two": lambda x: (lambda y: y[places] - y[places[::-1]])(computed(x)),
    "two of what is alike": lambda x: (lambda y: jnp.exp(y)[places] - (y * y)[places])(computed(x)),
    "what else is read": lambda x: (lambda y: jnp.sin(y)[places] + jnp.max(y))(computed(x)),
    "of a stack": lambda x: jnp.stack([computed(x), x * 2, x])[:, places],
    "of parts": lambda x: jnp.exp(jnp.concatenate([computed(x)[:, :7], x * 3, computed(x[:, :5])], 1))[places],
    "of a slice of parts": lambda x: jnp.concatenate([computed(x), computed(x + 1), x], 1)[3:80, ::-1][places].T[3:90],
    "beyond parts": lambda x: jnp.take(jnp.stack([computed(x), x + 1], 2), beyond, 0),
    "of rows of a stack": lambda x: jnp.stack([computed(x), x * 2], 1).reshape(300, 80)[places],
    "around a seam": lambda x: jnp.concatenate([computed(x), x * 2])[290:320, places],
    "beside rows": lambda x: (jnp.exp(x[:1]) * computed(x) + x[0])[places],
    "beside columns": lambda x: (jnp.exp(x[:, :1]) * computed(x))[:, 5:12],
    "places that are computed": lambda x: (lambda y: y[jnp.argmin(y, 0)[:9]])(computed(x)),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TAKES)
def test_they_have_the_bits_of_the_whole(name, dtype):
    given = jnp.asarray(x, dtype)
    found = jax.jit(TAKES[name])(given)
    assert np.array_equal(found, TAKES[name](given), equal_nan=True)


def product(x):
    """Of 300 rows and columns; of whole numbers, which are exact in any order."""
    return jnp.round(x) @ jnp.round(x).T


def stacked(x):
    """The same of three matrices, by another."""
    return jnp.round(jnp.stack([x, x * 2, x - 1])) @ jnp.arange(40.0 * 30).reshape(40, 30).astype(x.dtype)


OF_PRODUCTS = {
    "rows": lambda x: product(x)[places],
    "columns": lambda x: jnp.sin(product(x))[:, places],
    "a block": lambda x: product(x)[3:9, 20:140:3],
    "the last": lambda x: jnp.exp(stacked(x) / 1e4)[:, -1],
    "of a batch": lambda x: stacked(x)[0, :10],
    "at a computed place": lambda x: lax.dynamic_slice(product(x), (jnp.argmax(x[:, 0]), 290), (50, 8)),
    "a row at one": lambda x: stacked(x)[:, jnp.argmax(x[:, 0])],
    "beyond": lambda x: jnp.take(product(x) + 1, beyond, 0),
    "turned": lambda x: (product(x) * x[:, :1]).T[places],
    "with a dimension more": lambda x: stacked(x)[None, :, :20, None],
    "of both": lambda x: (lambda y: y[:40] @ y[:, :9])(product(x) / 32),
    "across": lambda x: product(x).reshape(30, 10, 300)[:, 3],
    "of members": lambda x: jax.vmap(lambda y, i: y[i])(stacked(x), places[:3]),
    "two": lambda x: (lambda y: y[places] - y[places[::-1]])(product(x)),
    "of a row": lambda x: (jnp.round(x[0]) @ jnp.round(x).T)[places],
    "of products": lambda x: (product(x) @ jnp.round(x))[places],
    "of halves": lambda x: product(x.astype("bfloat16"))[places],
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + product(x + c[0])[places + i, 0], x[places, 0]),
}


@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_rows_and_columns_of_products(name):
    f = OF_PRODUCTS[name]
    np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name, most", [("rows", 7 * 300), ("columns", 7 * 300), ("a block", 6 * 40), ("the last", 90),
                                        ("of a batch", 300), ("beyond", 2400), ("two", 2 * 7 * 300), ("turned", 2100),
                                        ("a row at one", 90), ("with a dimension more", 1800)])  # fmt: skip
def test_the_other_rows_are_not_computed(name, most):
    region = take_first(lower(jax.make_jaxpr(OF_PRODUCTS[name])(x)))
    assert sum(v.size for v in region.live() if v.form == "dot") <= most, str(region)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["rows", "along", "beyond: none", "beyond: a number", "columns in a slice", "two"])
def test_gradients(name):
    slope = jax.grad(lambda x: jnp.nansum(jnp.sin(TAKES[name](x))))
    np.testing.assert_allclose(jax.jit(slope)(x), slope(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rows", "elements", "beyond: none", "slice", "from behind", "two", "beside rows",
                                  "of a stack", "of parts", "of a slice of parts", "beyond parts"])  # fmt: skip
def test_the_whole_is_not_computed(name):
    assert "<300" not in "".join(nests(jax.make_jaxpr(TAKES[name])(x)))


def test_most_of_it_is_computed_once():
    many = rng.integers(0, 300, (200,)).astype(np.int32)
    made = "".join(nests(jax.make_jaxpr(lambda x: computed(x)[many])(x)))
    assert "<300" in made


def test_in_a_loop_and_under_vmap():
    step = lambda i, c: c + jnp.sum(computed(x * c)[places + i])  # noqa: E731
    expected = jnp.float32(0.1)
    for i in range(3):
        expected = step(i, expected)
    found = jax.jit(lambda c: lax.fori_loop(0, 3, step, c))(jnp.float32(0.1))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    batch = jnp.stack([x, x + 1, x * 2])
    each = jax.jit(jax.vmap(lambda x, i: computed(x)[i]))(batch, places[:3])
    assert np.array_equal(each, np.stack([computed(b)[i] for b, i in zip(batch, places[:3], strict=True)]))
