"""In loops a product is rounded together with the sum it goes into: which one, the equations alone say."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

RNG = np.random.default_rng(5)
X, Y, Z = (jnp.asarray(RNG.standard_normal(40), jnp.float32) for _ in range(3))


def rounded_once(x, y, z):
    """x y + z of float32: double precision holds the product exactly, and the sum nearly so."""
    x, y, z = (np.asarray(v, np.float64) for v in (x, y, z))
    return (x * y + z).astype(np.float32)


def rounded_twice(x, y, z):
    return np.asarray(x) * np.asarray(y) + np.asarray(z)


def once(function, *args):
    """What one iteration of a loop makes of the last argument."""
    step = lambda i, c: function(*args[:-1], c)
    return np.asarray(jax.jit(lambda c: lax.fori_loop(0, 1, step, c))(args[-1]))


FORMS = {
    "product and sum": (lambda x, y, c: x * y + c, lambda x, y, c: (x, y, c)),
    "sum and product": (lambda x, y, c: c + x * y, lambda x, y, c: (x, y, c)),
    "less a number": (lambda x, y, c: x * y - c, lambda x, y, c: (x, y, -c)),
    "less a product": (lambda x, y, c: c - x * y, lambda x, y, c: (-x, y, c)),
    "square": (lambda x, y, c: lax.square(x) + c, lambda x, y, c: (x, x, c)),
    "a number's product": (lambda x, y, c: 0.3 * x + c, lambda x, y, c: (np.float32(0.3), x, c)),
    "of two products the first": (lambda x, y, c: x * y + y * c, lambda x, y, c: (x, y, np.asarray(y) * np.asarray(c))),
}


@pytest.mark.parametrize("name", FORMS)
def test_products_are_rounded_with_their_sums(name):
    function, of = FORMS[name]
    np.testing.assert_array_equal(once(function, X, Y, Z), rounded_once(*of(X, Y, Z)))


def test_outside_of_loops_each_operation_is_rounded():
    found = np.asarray(jax.jit(lambda x, y, z: x * y + z)(X, Y, Z))
    np.testing.assert_array_equal(found, rounded_twice(X, Y, Z))
    assert not np.array_equal(found, rounded_once(X, Y, Z))


def test_what_something_else_reads_is_rounded_by_itself_for_that():
    def step(carry, _):
        x, c = carry
        product = x * Y
        return (product, product + c), None

    product, found = jax.jit(lambda x, c: lax.scan(step, (x, c), None, 1)[0])(X, Z)
    np.testing.assert_array_equal(product, np.asarray(X) * np.asarray(Y))
    np.testing.assert_array_equal(found, rounded_once(X, Y, Z))


@pytest.mark.parametrize("seen", [lambda p: p, lambda p: p.reshape(5, 8), lambda p: p * p, lambda p: jnp.zeros(())])
def test_bits_do_not_hang_on_who_else_reads_a_product(seen):
    """Nor on whether a program wants what they make of it: where nobody does, it is left out when compiled."""

    def step(c, x):
        product = x * c
        seen(product * 2.0)
        return product + x, seen(product)

    both = lambda c, xs: lax.scan(step, c, xs)  # noqa: E731
    one = lambda c, xs: lax.scan(step, c, xs)[0]  # noqa: E731
    c, xs = X, jnp.stack([Y, Z, X])
    expected = np.asarray(jax.jit(one)(c, xs))
    for found in (
        jax.jit(both)(c, xs)[0],
        one(c, xs),
        both(c, xs)[0],
        jax.jit(jax.vmap(both))(c[None], xs[None])[0][0],
    ):
        np.testing.assert_array_equal(found, expected)


def test_what_lies_in_between_is_rounded_by_itself():
    found = once(lambda x, y, c: jnp.pad(x[1:] * y[1:], (1, 0)) + c, X, Y, Z)
    np.testing.assert_array_equal(found[1:], rounded_twice(X, Y, Z)[1:])


@pytest.mark.parametrize(
    "step", [lambda c, y, z: jnp.pad(c[1:] * y[1:], (1, 0)) + z, lambda c, y, z: jnp.where(z > 0, c * y + z, c - c * z)]
)
def test_bits_do_not_hang_on_extents(step):
    """Element i is computed of elements i alone: whatever is cut, masked or left for the end of a vector."""

    @jax.jit
    def run(y, z, c):
        return lax.fori_loop(0, 20, lambda i, c: step(c, y, z), c)

    whole = np.asarray(run(X, Y, Z))
    for n in (2, 3, 8, 15, 16, 17, 31, 33):
        np.testing.assert_array_equal(run(X[:n], Y[:n], Z[:n]), whole[:n])


def test_a_batch_has_the_bits_of_its_members():
    """What is not batched is multiplied before it is spread."""
    step = lambda w, c, x: (x * w + c - c * c * 0.1, c)
    run = lambda w, c, xs: lax.scan(lambda c, x: step(w, c, x), c, xs)
    w, c, xs = X[:3] * 0.1, Y[:12].reshape(4, 3) * 0.1, Z[:20].reshape(4, 5)
    found = jax.jit(jax.vmap(run, (None, 0, 0)))(w, c, xs)
    unbatched = jax.jit(jax.vmap(run, (None, 0, None)))(w, c, xs[0])
    for i in range(4):
        for a, b in zip(jax.jit(run)(w, c[i], xs[i]), found):
            np.testing.assert_array_equal(a, b[i])
        for a, b in zip(jax.jit(run)(w, c[i], xs[0]), unbatched):
            np.testing.assert_array_equal(a, b[i])


def test_narrow_floats_are_rounded_after_each_operation():
    x, y, z = (v.astype(jnp.bfloat16) for v in (X, Y, Z))
    np.testing.assert_array_equal(once(lambda x, y, c: x * y + c, x, y, z), x * y + z)


def test_nothing_is_multiplied_by_one():
    text = jax.jit(lambda c: lax.fori_loop(0, 9, lambda i, c: c * 1.0 + X, c)).lower(Y).compile().as_text("nests")
    assert "fma" not in text and "mul" not in text
