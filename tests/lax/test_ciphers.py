"""Ciphers: what is written down of them while a function is traced."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.lax.ciphers import threefry_2x32, threefry_4x32


@pytest.mark.parametrize("shapes", [[(), ()], [(1,), (1,)], [(5,), ()], [(3, 4), (3, 4)]])
@pytest.mark.parametrize("cipher, words", [(threefry_2x32, 2), (threefry_4x32, 4)])
def test_equations_that_are_written_at_once_are_those_that_are_traced(cipher, words, shapes):
    """So no program knows of it: neither its text, nor where its numbers and the user's lines are."""

    def traced(function):
        counter = [np.ones(shapes[i % 2], "uint32") for i in range(words)]
        return str(jax.make_jaxpr(lambda key: function([key[i] for i in range(words)], counter))(key))

    key = jnp.arange(words, dtype="uint32")
    assert traced(cipher) == traced(cipher.__wrapped__)
    assert traced(cipher).count("shift_left") == 20 * words // 2


def test_words_of_other_types_are_traced():
    """Of a batch, and of shapes that broadcast, as a user may give them."""
    draw = lambda key, n: threefry_2x32([key[0], key[1]], [n, n])[0]  # noqa: E731
    keys, n = jnp.arange(6, dtype="uint32").reshape(3, 2), jnp.arange(4, dtype="uint32")
    got = jax.jit(jax.vmap(lambda key: draw(key, n)))(keys)
    np.testing.assert_array_equal(got, np.stack([draw(np.asarray(key), np.asarray(n)) for key in keys]))
