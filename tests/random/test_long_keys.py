"""Generators of users whose keys have more words than a number: they are moved, compared and drawn from as any key."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, random
from catena.extend.random import define_prng_impl

WORDS = 13


def mixed(key, count: int):
    """So many words that depend on all of a key."""
    total = jnp.sum(key * jnp.arange(1, WORDS + 1, dtype=jnp.uint32))
    return (jnp.arange(count, dtype=jnp.uint32) + total) * jnp.uint32(2654435761)


LONG = define_prng_impl(
    key_shape=(WORDS,),
    seed=lambda seed: jnp.arange(WORDS, dtype=jnp.uint32) + seed.astype(jnp.uint32),
    split=lambda key, shape: mixed(key, int(np.prod(shape)) * WORDS).reshape(*shape, WORDS),
    random_bits=lambda key, width, shape: mixed(key, int(np.prod(shape))).astype(f"uint{width}").reshape(shape),
    fold_in=lambda key, data: key ^ data,
    name="long",
)


def data(keys):
    return np.asarray(random.key_data(keys))


def loop(keys):
    def body(carry, key):
        return random.fold_in(carry, 3), (random.bits(key, (2,)), random.fold_in(key, 1))

    return lax.scan(body, keys[0], keys)


MOVES = {
    "rows": lambda keys: keys[::2],
    "one": lambda keys: keys[1],
    "split": lambda keys: random.split(keys[0], (2, 3)).T,
    "joined": lambda keys: jnp.concatenate([keys, keys[:1]]).reshape(5, 1),
    "chosen": lambda keys: jnp.where(jnp.arange(4) > 1, keys, keys[::-1]),
    "equal": lambda keys: keys == keys[1],
    "unequal": lambda keys: keys != keys[1],
    "drawn": lambda keys: jax.vmap(lambda k: random.uniform(k, (3,)))(keys),
    "looped": loop,
    "branched": lambda keys: lax.cond(jnp.arange(2)[1] > 0, lambda k: k[0], lambda k: k[1], keys),
    "clone": lambda keys: random.clone(keys),
}


def test_long_keys_are_keys():
    key = random.key(7, impl=LONG)
    np.testing.assert_array_equal(data(key), np.arange(WORDS) + 7)
    assert key.shape == () and key.dtype.itemsize == 4 * WORDS and random.key_impl(key) == "long"
    assert random.wrap_key_data(data(key), impl=LONG) == key
    keys = random.split(key, 4)
    everything = lambda keys: {name: move(keys) for name, move in MOVES.items()}
    eager, compiled = everything(keys), jax.jit(everything)(keys)
    plain = lambda x: data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)
    for (path, a), b in zip(jax.tree.leaves_with_path(eager), jax.tree.leaves(compiled), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, path
        np.testing.assert_array_equal(plain(a), plain(b), err_msg=str(path))
    np.testing.assert_array_equal(eager["equal"], [False, True, False, False])
    np.testing.assert_array_equal(data(eager["chosen"]), data(keys)[[3, 2, 2, 3]])
    made = jax.jit(lambda: (random.key(7, impl=LONG), keys[2]))()  # from nothing, and from a constant
    np.testing.assert_array_equal([data(x) for x in made], [data(key), data(keys)[2]])


def test_a_key_has_a_word():
    with pytest.raises(ValueError, match="one word or more"):
        random.register_generator("none", key_shape=(0,), seed=abs, random_bits=abs, split=abs, fold_in=abs)
