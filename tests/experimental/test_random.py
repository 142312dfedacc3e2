"""The generator with a state: each draw is that of the next key."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import random
from catena.experimental.random import stateful_rng

BASE = random.key(7)


@pytest.mark.parametrize(
    "drawn, expected",
    [
        (lambda rng: rng.random(4), lambda key: random.uniform(key, (4,))),
        (lambda rng: rng.uniform(2, 9, (2, 3)), lambda key: random.uniform(key, (2, 3), minval=2, maxval=9)),
        (lambda rng: rng.uniform(jnp.arange(3.0), 5), lambda key: random.uniform(key, (3,), float, jnp.arange(3.0), 5)),
        (lambda rng: rng.normal(2, 3, 5), lambda key: random.normal(key, (5,)) * 3 + 2),
        (lambda rng: rng.normal(dtype=jnp.float16), lambda key: random.normal(key, (), jnp.float16)),
        (lambda rng: rng.integers(9, size=4), lambda key: random.randint(key, (4,), 0, 9)),
        (lambda rng: rng.integers(2, 9, dtype=jnp.int8), lambda key: random.randint(key, (), 2, 9, jnp.int8)),
        (lambda rng: random.key_data(rng.key((2,))), lambda key: random.key_data(random.split(key, 2))),
    ],
)
def test_draws(drawn, expected):
    rng = stateful_rng(7)
    first, second = drawn(rng), drawn(rng)
    for i, x in enumerate((first, second)):
        want = expected(random.fold_in(BASE, i))
        assert x.dtype == want.dtype and not x.weak_type
        np.testing.assert_array_equal(x, want)


def test_the_state_is_a_reference():
    rng = stateful_rng(7)
    draw = jax.jit(lambda rng: (rng.random(), rng.random()))
    assert len({float(x) for _ in range(3) for x in draw(rng)}) == 6
    _, (last, *_) = jax.lax.scan(lambda c, _: (c, rng.random()), 0, length=3)
    assert rng._counter[...] == 9 and last == random.uniform(random.fold_in(BASE, 6))
    many = stateful_rng(7).split((2,))
    a, b = jax.vmap(lambda rng: rng.normal(size=3))(many)
    np.testing.assert_array_equal(a, stateful_normal(random.split(random.fold_in(BASE, 0))[0]))
    assert (a != b).all()
    children = stateful_rng(7).spawn(2)
    assert children[0].random() != children[1].random()
    assert stateful_rng().random() != stateful_rng().random()


def stateful_normal(key):
    return random.normal(random.fold_in(key, 0), (3,))


def test_refusals():
    with pytest.raises(ValueError, match="under vmap"):
        stateful_rng(7).split(2).random()
    with pytest.raises(TypeError, match="must be given a seed"):
        jax.jit(lambda: stateful_rng().random())()
    with pytest.raises(TypeError):
        stateful_rng("a")
