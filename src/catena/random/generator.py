"""Random generators: pure functions from keys to bits, by name.

A generator is five facts: the shape of its keys (a few 32-bit words) and four pure functions of arrays, written with
``catena.lax`` or ``catena.numpy``, from which everything else follows: typed keys, every sampler, ``vmap``, ``jit``.
The generator of a key is part of the key's dtype, so keys of different generators never mix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

HELD_AS_NUMBERS = 4  # words that a number of 16 bytes holds


def always() -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Generator:
    """A random generator; made by ``register_generator``.

    Arguments:
      name: how users select it: ``key(0, impl=name)``.
      tag: how its dtype prints: ``key<tag>``.
      key_shape: the shape of the uint32 array that a key is.
      seed: from an integer scalar to a key.
      split: ``split(key, shape)`` gives keys, ``uint32[*shape, *key_shape]``.
      random_bits: ``random_bits(key, bit_width, shape)`` gives ``uint{bit_width}[*shape]``.
      fold_in: ``fold_in(key, data)`` with a uint32 scalar gives a key.
      bits_at: for generators that count: ``bits_at(key, bit_width, high, low, count)`` gives the bits
        numbered from the 64-bit position ``(high, low)``, a multiple of ``count``; lets eager draws of any size share
        one compiled kernel.
      split_at: the same for keys: ``split_at(key, high, low, count)`` gives ``uint32[count, *key_shape]``.
      counts: whether ``bits_at`` and ``split_at`` describe the streams that are drawn under the flags in
        force.
      joint: whether under ``vmap`` all draws come from the first key of the batch, as
        ``lax.rng_bit_generator`` has it.
    """

    name: str
    tag: str
    key_shape: tuple
    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable
    bits_at: Callable | None = None
    split_at: Callable | None = None
    counts: Callable = always
    joint: bool = False

    @property
    def words(self) -> int:
        """The number of 32-bit words of a key."""
        return math.prod(self.key_shape)

    @property
    def long(self) -> bool:
        """Whether a key has more words than a number."""
        return self.words > HELD_AS_NUMBERS

    @property
    def stable_name(self) -> str | None:
        """The name by which every process knows what it draws; None where that is the user's own."""
        functions = (self.seed, self.split, self.random_bits, self.fold_in)
        own = all(getattr(f, "__module__", "").startswith("catena.random.") for f in functions)
        return self.name if own else None

    def __repr__(self):
        return f"Generator(name={self.name!r}, tag={self.tag!r}, key_shape={self.key_shape})"

    def __str__(self):
        return self.tag

    def __reduce__(self):
        return find_generator, (self.name,)


generators: dict[str, Generator] = {}


def register_generator(
    name: str,
    *,
    key_shape: tuple,
    seed: Callable,
    random_bits: Callable,
    split: Callable,
    fold_in: Callable,
    tag: str | None = None,
    bits_at: Callable | None = None,
    split_at: Callable | None = None,
    counts: Callable = always,
    joint: bool = False,
) -> Generator:
    """Add a generator, to be used with every sampler: ``random.key(0, impl=name)``.

    Arguments:
      name: its name, new and unique.
      key_shape: the shape of the uint32 array that a key is.
      seed: ``seed(integer scalar)`` gives a key, ``uint32[key_shape]``.
      random_bits: ``random_bits(key, bit_width, shape)`` gives ``uint{bit_width}[shape]``, for widths 8, 16,
        32 and 64.
      split: ``split(key, shape)`` gives ``uint32[*shape, *key_shape]``.
      fold_in: ``fold_in(key, data: uint32 scalar)`` gives a key.
      tag: the short name in ``key<tag>``; the name by default.
      bits_at, split_at, counts: for generators that can start anywhere, see ``Generator``; without them
        everything works, and eager draws of each new size are compiled anew.
      joint: whether the functions draw through ``lax.rng_bit_generator``, see ``Generator``.
    Returns:
      The generator; it may be passed as ``impl`` in place of its name.
    Raises:
      ValueError: the name is taken, or a key has no words.
      TypeError: a function is missing.

    >>> import numpy as np, catena.lax as lax, catena.numpy as jnp
    >>> from catena import random
    >>> def toy_bits(key, bit_width, shape):
    ...     mixed = (lax.iota(jnp.uint32, int(np.prod(shape))) + key[0]) * jnp.uint32(2654435761)
    ...     return mixed.astype(f"uint{bit_width}").reshape(shape)
    >>> toy = random.register_generator(
    ...     "toy",
    ...     key_shape=(1,),
    ...     random_bits=toy_bits,
    ...     seed=lambda seed: seed.astype(jnp.uint32).reshape(1),
    ...     split=lambda key, shape: toy_bits(key, 32, (*shape, 1)),
    ...     fold_in=lambda key, data: key ^ data,
    ... )
    >>> random.uniform(random.key(1, impl="toy"), (2,)).shape
    (2,)
    """
    key_shape = tuple(key_shape)
    if name in generators:
        raise ValueError(f"register_generator: the name {name!r} is taken by {generators[name]!r}")
    if math.prod(key_shape) < 1:
        raise ValueError(f"register_generator: key_shape must hold one word or more, got {key_shape}")
    for what, function in {
        "seed": seed,
        "random_bits": random_bits,
        "split": split,
        "fold_in": fold_in,
    }.items():
        if not callable(function):
            raise TypeError(f"register_generator: {what} must be a function, got {function!r}")
    made = Generator(name, tag or name, key_shape, seed, split, random_bits, fold_in, bits_at, split_at, counts, joint)
    generators[name] = made
    return made


def find_generator(impl) -> Generator:
    """The generator that ``impl``, a name or a generator, stands for."""
    if isinstance(impl, Generator):
        return impl
    if not isinstance(impl, str):
        raise TypeError(f"unrecognized type {type(impl)} for specifying PRNG implementation.")
    if impl not in generators:
        known = ", ".join(f'"{name}"' for name in generators)
        raise ValueError(f'unrecognized PRNG implementation "{impl}". Did you mean one of: {known}?')
    return generators[impl]
