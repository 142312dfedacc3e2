"""Generators of one's own, in JAX's manner."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

from catena import numpy as _jnp
from catena import random as _random
from catena.core.array import Array
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.extend.core.threefry import threefry2x32_p as threefry2x32_p
from catena.numpy.boundary import as_array_argument
from catena.random.generator import find_generator as _find
from catena.random.generator import generators as _generators
from catena.random.generator import register_generator as _register
from catena.random.primitives import random_seed_p

threefry_prng_impl = _find("threefry2x32")
rbg_prng_impl = _find("rbg")
unsafe_rbg_prng_impl = _find("unsafe_rbg")


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable,
    split: Callable,
    random_bits: Callable,
    fold_in: Callable,
    name: str = "<unnamed>",
    tag: str = "?",
) -> Hashable:
    """A generator, for the ``impl`` of ``random.key`` and its kin.

    Arguments:
      key_shape: the shape of the uint32 array that a key is.
      seed: from an integer scalar to a key.
      split: ``split(key, shape)`` gives keys, ``uint32[*shape, *key_shape]``.
      random_bits: ``random_bits(key, bit_width, shape)`` gives ``uint{bit_width}[*shape]``.
      fold_in: ``fold_in(key, data)`` gives a key.
      name: its name. One that is taken already is made different by a number.
      tag: how dtypes of its keys print.
    Returns:
      The generator.
    Raises:
      TypeError, ValueError: a part is not as described.

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.extend.random import define_prng_impl, seed_with_impl
    >>> constant = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda seed: jnp.full(1, seed, "uint32"),
    ...     fold_in=lambda key, data: key,
    ...     split=lambda key, shape: jnp.broadcast_to(key, (*shape, 1)),
    ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
    ...     name="constant",
    ... )
    >>> jax.random.bits(seed_with_impl(constant, 7), (2,))
    Array([7, 7], dtype=uint32)
    """
    names = itertools.chain([name], (f"{name} {i}" for i in itertools.count(2)))
    free = next(n for n in names if n not in _generators)
    return _register(
        free, key_shape=key_shape, seed=seed, split=split, random_bits=random_bits, fold_in=fold_in, tag=tag
    )


def seed_with_impl(impl: Hashable, seed: Any) -> Array:
    """A typed key of a generator.

    Arguments:
      impl: the generator.
      seed: an integer.
    Returns:
      A key.

    >>> from catena.extend import random
    >>> random.seed_with_impl(random.threefry_prng_impl, 0).dtype
    key<fry>
    """
    return _random.key(seed, impl=impl)


def random_seed(seeds: Any, impl: Hashable) -> Array:
    """Typed keys of a generator, one for each of an array of seeds.

    Arguments:
      seeds: integers of any shape.
      impl: the generator.
    Returns:
      Keys of that shape.

    >>> import catena.numpy as jnp
    >>> from catena.extend import random
    >>> random.random_seed(jnp.arange(3), random.threefry_prng_impl).shape
    (3,)
    """
    seeds = as_array_argument("random_seed", seeds)
    return random_seed_p.bind(seeds, impl=_find(impl))


_open_door(globals(), "catena.extend.random")


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """As many random words as there are counters: one half of them are encrypted together with the other half.

    Arguments:
      keypair: two uint32 words, the key: an array of two, or a pair of arrays.
      count: a uint32 array of any shape.
    Returns:
      A uint32 array of the same shape.
    Raises:
      TypeError: a dtype is another one.

    >>> import catena.numpy as jnp
    >>> from catena.extend import random
    >>> random.threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(4, dtype="uint32"))
    Array([4128513521, 3192206206, 2345921600, 3057534555], dtype=uint32)
    """
    first, second = keypair
    words = [as_array_argument("threefry_2x32", x) for x in (first, second, count)]
    if any(x.dtype != "uint32" for x in words):
        raise TypeError(f"threefry_2x32 takes uint32 arrays, got {', '.join(str(x.dtype) for x in words)}")
    k1, k2, flat = words[0], words[1], _jnp.ravel(words[2])
    half = (flat.size + 1) // 2
    padded = _jnp.concatenate([flat, _jnp.zeros(2 * half - flat.size, "uint32")])
    out = threefry2x32_p.bind(k1, k2, padded[:half], padded[half:])
    return _jnp.concatenate(out)[: flat.size].reshape(words[2].shape)


__dir__ = _shown(globals())

_absent(globals())
