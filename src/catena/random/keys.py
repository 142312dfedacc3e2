"""Keys: making, splitting and taking them apart."""

from __future__ import annotations

import warnings

import numpy as np

from catena.core import config, dtypes
from catena.core.array import Array, as_array, typed_array
from catena.core.context import context
from catena.core.placed import place_result
from catena.core.trace import Tracer
from catena.core.zeros import get_aval
from catena.lax.convert import convert_element_type
from catena.lax.structure import canonical_shape
from catena.random import kernels, reuse
from catena.random.dtype import generator_of, is_typed_key, key_aval, key_dtype_of, stored
from catena.random.generator import Generator, find_generator
from catena.random.primitives import (
    check_words,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
    stream,
)

LEGACY = (
    "Legacy uint32 key array passed as key to jax.random function. Please create keys using "
    'jax.random.key(). If use of a raw key array was intended, set jax_legacy_prng_key="allow".'
)


def default_generator() -> Generator:
    return find_generator(config.read("jax_default_prng_impl"))


def asked_shape(shape) -> tuple:
    """The shape that a user asks for: lengths known while tracing, none of them negative."""
    found = canonical_shape(shape)
    if any(n < 0 for n in found):
        raise ValueError(f"shape must have every element be nonnegative, got {found}")
    return found


def resolve_generator(impl, dtype=None) -> Generator:
    """The generator that ``impl`` and ``dtype`` ask for: a name, a generator, or a dtype of keys."""
    if impl is not None and dtype is not None:
        raise ValueError(f"cannot specify both 'impl' and 'dtype' arguments, got {impl!r} and {dtype!r}")
    asked = impl if dtype is None else dtype
    if asked is None:
        return default_generator()
    if dtypes.is_extended(asked):
        if not hasattr(asked, "_impl") or not isinstance(asked._impl, Generator):
            raise TypeError(f"dtype must be that of keys, such as key.dtype, got {asked}")
        return asked._impl
    if dtype is not None and not isinstance(dtype, str):
        raise TypeError(f"dtype must be that of keys, such as key.dtype, or the name of a generator, got {dtype!r}")
    return find_generator(asked)


# ---- making keys


def key(seed, *, impl=None, dtype=None) -> Array:
    """A typed key from a seed.

    Arguments:
      seed: an integer scalar; without x64 its low 32 bits count.
      impl: the generator: its name, itself, or the dtype of its keys; by default that of
        ``jax_default_prng_impl``.
      dtype: the dtype of the key or the name of a generator, another way to choose the generator.
    Returns:
      A scalar array of dtype ``key<...>``.
    Raises:
      TypeError: the seed is not an integer scalar.
      OverflowError: the seed is a Python integer of more than 64 bits.
      ValueError: there is no such generator.

    >>> from catena import random
    >>> random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    return seed_key("key", seed, resolve_generator(impl, dtype))


def PRNGKey(seed, *, impl=None):  # noqa: N802  (JAX's name)
    """A raw key, a plain uint32 array, from a seed; prefer ``key``.

    Arguments:
      seed: an integer scalar.
      impl: the generator, as for ``key``.
    Returns:
      An array of uint32 words; with ``jax_enable_custom_prng`` a typed key.
    Raises:
      TypeError: the seed is not an integer scalar.
      ValueError: there is no such generator.

    >>> from catena import random
    >>> random.PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    made = seed_key("PRNGKey", seed, resolve_generator(impl))
    return made if config.read("jax_enable_custom_prng") else unwrap(made)


def seed_key(name: str, seed, impl: Generator):
    """A typed key for the public function ``name``."""
    if is_typed_key(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if np.ndim(seed):
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {np.shape(seed)} != (). "
            "Use jax.vmap for batching"
        )
    if type(seed) is int and context.trace is None:
        return key_of_int(seed, impl)
    return random_seed_p.bind(offset_seed(seed_value(seed)), impl=impl)


def key_of_int(seed: int, impl: Generator):
    """A new key for a Python integer, whose words are remembered."""
    signature = (impl, seed, context.global_key, context.local_key)
    storage = _seeded.get(signature)
    if storage is None:
        made = random_seed_p.bind(offset_seed(seed_value(seed)), impl=impl)
        if len(_seeded) >= SEEDS_KEPT:
            _seeded.clear()
        storage = _seeded[signature] = made._value
    made = typed_array(storage, key_aval((), impl))
    return made if context.default_placement is None else place_result(made, context.default_placement, ())


SEEDS_KEPT = 4096
_seeded: dict = {}


def offset_seed(seed):
    """A seed plus the flag ``jax_random_seed_offset``."""
    offset = config.read("jax_random_seed_offset")
    return seed + convert_element_type(as_array(offset), get_aval(seed).dtype) if offset else seed


def seed_value(seed):
    """A seed as an integer array: of a Python integer the bits that the default integer holds."""
    if isinstance(seed, (Array, Tracer)):
        return seed
    if type(seed) is int and not -(2**63) <= seed < 2**63:
        raise OverflowError(f"a seed must be an integer of 64 bits (-2**63 <= seed < 2**63), got {seed}")
    if isinstance(seed, (np.ndarray, np.generic)):
        seed = seed.item() if seed.dtype.kind in "iu" else seed
    if type(seed) in (bool, int):
        width = 64 if context.x64 else 32
        low = int(seed) & (1 << width) - 1
        return as_array(np.array(low, f"uint{width}").astype(f"int{width}"))
    return as_array(seed)


def wrap_key_data(key_bits_array, *, impl=None, dtype=None) -> Array:
    """Typed keys from their words.

    Arguments:
      key_bits_array: a uint32 array whose trailing axes are the words of one key.
      impl, dtype: the generator, as for ``key``.
    Returns:
      An array of keys, without the trailing axes.
    Raises:
      TypeError: the array is not of uint32, or its trailing axes are not those of this generator's keys.

    >>> import numpy as np
    >>> from catena import random
    >>> random.wrap_key_data(np.array([0, 1], np.uint32)) == random.key(1)
    Array(True, dtype=bool)
    """
    return wrap(key_bits_array, resolve_generator(impl, dtype))


def wrap(data, impl: Generator):
    check_has_type(data)
    return random_wrap_p.bind(data, impl=impl)


def unwrap(keys):
    return random_unwrap_p.bind(keys, impl=generator_of(keys))


def check_has_type(x):
    """Raise TypeError where ``x`` is nothing like an array."""
    if not all(hasattr(x, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and dtype "
            f"attributes. Got {x!r}. Make a key with jax.random.key(seed)."
        )


# ---- what samplers are given


def check_key(name: str, given) -> tuple:
    """The single typed key that was given to the function ``name``, raw or typed, and whether it was typed."""
    if is_typed_key(given):
        found, typed, shape = given, True, given.shape
    else:
        check_has_type(given)
        found, typed, shape = wrap_raw(given, default_generator()), False, given.shape
        warn_of_legacy()
    if found.ndim:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {tuple(shape)} != (). "
            "Use jax.vmap for batching."
        )
    return found, typed


def wrap_raw(data, impl: Generator):
    """A raw key as a typed one; on concrete arrays without a primitive, for speed."""
    if context.trace is None and type(data) is Array and data.dtype == np.uint32:
        check_words(data.aval, impl)
        storage = stored(data._value, impl)
        return typed_array(storage, key_aval(storage.shape, impl))
    return random_wrap_p.bind(data, impl=impl)


def warn_of_legacy():
    """What ``jax_legacy_prng_key`` says about raw keys."""
    policy = config.read("jax_legacy_prng_key")
    if policy == "error":
        raise ValueError(LEGACY)
    if policy == "warn":
        warnings.warn(LEGACY, UserWarning, stacklevel=dtypes.levels_to_user())


def consumed_key(name: str, given):
    """The typed key given to the sampler ``name``, which uses it up."""
    found, typed = check_key(name, given)
    if typed and context.debug_key_reuse == "warn" and context.trace is None:
        reuse.note(found, name)
    return found


# ---- deriving keys


@kernels.remembered
def split(key, num: int | tuple = 2) -> Array:
    """New keys from one, which is used up.

    Arguments:
      key: a key, typed or raw.
      num: how many, or the shape of the array of keys.
    Returns:
      An array of keys of that shape; from a raw key, of their words.
    Raises:
      ValueError: ``key`` is an array of keys.
      TypeError: ``key`` is not a key, or ``num`` not a shape.

    Source: words of the stream of the key, as keys: Claessen, Palka, "Splittable pseudorandom number generators
    using cryptographic hashing" (2013).

    >>> from catena import random
    >>> a, b = random.split(random.key(0))
    >>> a
    Array((), dtype=key<fry>) overlaying:
    [1797259609 2579123966]
    """
    found, typed = check_key("split", key)
    if typed and context.debug_key_reuse == "warn" and context.trace is None:
        reuse.note(found, "split")
    return as_given(split_key(found, num), typed)


def split_key(key, num=2):
    """The keys split from one typed key."""
    return random_split_p.bind(key, impl=generator_of(key), shape=asked_shape(num), **stream())


def as_given(made, typed: bool):
    return made if typed else unwrap(made)


def pair(key):
    """Two keys split from one typed key."""
    both = split_key(key)
    return both[0], both[1]


def fold_in(key, data) -> Array:
    """A new key from a key and a number; the key may be folded with other numbers.

    Arguments:
      key: a key, typed or raw.
      data: an integer scalar of 32 bits; other numbers are converted.
    Returns:
      A key.
    Raises:
      ValueError: ``key`` is an array of keys.
      TypeError: ``key`` is not a key, or ``data`` not a scalar.
      OverflowError: ``data`` is a Python integer that 32 bits without a sign do not hold.

    Source: the word of the stream of the key at the position ``data``; see ``split``.

    >>> from catena import random
    >>> random.fold_in(random.key(0), 1)
    Array((), dtype=key<fry>) overlaying:
    [ 928981903 3453687069]
    """
    found, typed = check_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). "
            "Use jax.vmap for batching."
        )
    if type(data) is int:
        if not 0 <= data < 1 << 32:
            raise OverflowError(
                f"Python integer {data} out of bounds for uint32: data of fold_in must be in 0 ... 2**32 - 1"
            )
        data = np.uint32(data)
    if not isinstance(data, np.uint32):
        data = convert_element_type(data, np.uint32)
    return as_given(random_fold_in_p.bind(found, data, impl=generator_of(found)), typed)


def clone(key) -> Array:
    """The same key, as one that was not used yet: to draw the same numbers again on purpose.

    Arguments:
      key: keys, typed or raw.
    Returns:
      The keys; where ``jax_debug_key_reuse`` is set, they may be used although ``key`` was.
    Raises:
      TypeError: ``key`` is not a key.

    >>> from catena import random
    >>> key = random.key(0)
    >>> random.uniform(key) == random.uniform(random.clone(key))
    Array(True, dtype=bool)
    """
    if not is_typed_key(key):
        check_has_type(key)
        found = wrap_raw(key, default_generator())
        warn_of_legacy()
        return unwrap(random_clone_p.bind(found))
    return random_clone_p.bind(key)


# ---- looking inside


def key_data(keys) -> Array:
    """The words of keys.

    Arguments:
      keys: keys, typed or raw.
    Returns:
      A uint32 array with the words along trailing axes; raw keys as they are.
    Raises:
      TypeError: ``keys`` are not keys.

    >>> from catena import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    if is_typed_key(keys):
        return unwrap(keys)
    check_has_type(keys)
    found = wrap_raw(keys, default_generator())
    warn_of_legacy()
    return unwrap(found)


def key_impl(keys):
    """The generator of keys.

    Arguments:
      keys: keys, typed or raw.
    Returns:
      Its name, to be passed as ``impl``.
    Raises:
      TypeError: ``keys`` are not keys.

    >>> from catena import random
    >>> random.key_impl(random.key(0, impl="rbg"))
    'rbg'
    """
    if is_typed_key(keys):
        return generator_of(keys).name
    check_has_type(keys)
    check_words(get_aval(keys), default_generator())
    return default_generator().name


def key_dtype(impl_spec=None):
    """The dtype of keys of a generator.

    Arguments:
      impl_spec: its name, itself, a dtype of keys, or None for the default one.
    Returns:
      The dtype.
    Raises:
      ValueError: there is no such generator.

    >>> from catena import random
    >>> random.key_dtype("rbg")
    key<rbg>
    """
    return key_dtype_of(resolve_generator(impl_spec))
