"""The dtype of random keys, and how arrays of keys are held: one NumPy element a key.

A key of one word is a uint32, of two a uint64, of three or four a complex128, of which only the bits matter; so
whatever moves elements around (indexing, reshape, concatenate, select, scan ...) moves keys, in NumPy and in compiled
programs. A longer key is an opaque element of NumPy's (``np.void``); compiled programs see an axis of its words behind
the others, and move each word alike.
"""

from __future__ import annotations

import numpy as np

from catena.core.array import typed_array
from catena.core.aval import ShapedArray
from catena.core.dtypes import ExtendedDType, prng_key
from catena.core.lazy import load
from catena.core.source import function_place
from catena.core.trace import Tracer
from catena.lax.structure import broadcast_to
from catena.random.generator import Generator, find_generator

STORAGE = {
    1: np.dtype(np.uint32),
    2: np.dtype(np.uint64),
    3: np.dtype(np.complex128),
    4: np.dtype(np.complex128),
}
U32 = np.dtype(np.uint32)


def storage_dtype(words: int) -> np.dtype:
    """The NumPy dtype by which a key of so many words is held."""
    return STORAGE[words] if words in STORAGE else np.dtype((np.void, 4 * words))


class KeyRules:
    """How arrays of keys answer what other arrays do by their numbers."""

    @staticmethod
    def full(shape, fill_value, dtype):
        """``shape`` copies of a key: ``fill_value`` itself, or that whose words are all this number."""
        found = getattr(fill_value, "dtype", None)
        if found != dtype:
            if isinstance(fill_value, Tracer) or type(found) is KeyDType:
                raise TypeError(f"full: fill_value must be a number or a key of dtype {dtype}, got {fill_value!r}")
            fill_value = key_array(np.full(dtype._impl.key_shape, fill_value).astype(U32), dtype._impl)
        return broadcast_to(fill_value, tuple(shape))


class KeyDType(ExtendedDType):
    """The dtype of keys of a generator."""

    __slots__ = ()
    type = prng_key
    _rules = KeyRules

    def __init__(self, generator: Generator):
        super().__init__(f"key<{generator.tag}>", 4 * generator.words, generator)

    def physical(self, shape: tuple) -> tuple:
        return shape, storage_dtype(self._impl.words)

    def compiled(self, shape: tuple) -> tuple:
        return ((*shape, self._impl.words), U32) if self._impl.long else self.physical(shape)

    def by_parts(self, eqn):
        return load("catena.random.long_keys").by_words(eqn) if self._impl.long else None

    def for_host(self, x):
        return load("catena.random.keys").unwrap(x)

    def refuse_numpy(self) -> str:
        return (
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) "
            "if you wish to extract the underlying integer array."
        )

    def array_repr(self, value) -> str:
        return f"Array({value.shape}, dtype={self.name}) overlaying:\n{words_of(value, self._impl)}"

    def facts(self) -> dict:
        """What is known of the generator of the keys."""
        own = self._impl
        functions = {name: function_place(getattr(own, name)) for name in ("seed", "split", "random_bits", "fold_in")}
        return {"name": own.name, "tag": own.tag, "key_shape": own.key_shape, **functions}

    def __reduce__(self):
        return key_dtype_of, (self._impl,)


_dtypes: dict[str, KeyDType] = {}


def key_dtype_of(impl) -> KeyDType:
    """The dtype of keys of a generator, given by name or itself; one object for each."""
    generator = find_generator(impl)
    found = _dtypes.get(generator.name)
    if found is None or found._impl is not generator:
        found = _dtypes[generator.name] = KeyDType(generator)
    return found


def is_key_dtype(dtype) -> bool:
    return type(dtype) is KeyDType


def is_typed_key(x) -> bool:
    """Whether ``x`` is an array, or a tracer, of typed keys."""
    return type(getattr(x, "dtype", None)) is KeyDType


def generator_of(x) -> Generator:
    """The generator of an array, tracer or aval of typed keys."""
    return x.dtype._impl


def key_aval(shape: tuple, generator: Generator) -> ShapedArray:
    return ShapedArray(shape, key_dtype_of(generator))


def words_of(storage: np.ndarray, generator: Generator) -> np.ndarray:
    """The uint32 words of stored keys, along new trailing axes of shape ``key_shape``."""
    shape = storage.shape
    words = np.ascontiguousarray(storage).reshape(*shape, 1).view(U32)[..., : generator.words]
    return words.reshape(*shape, *generator.key_shape)


def stored(words: np.ndarray, generator: Generator) -> np.ndarray:
    """The storage of keys given by their words: the inverse of ``words_of``."""
    shape = words.shape[: words.ndim - len(generator.key_shape)]
    flat = words.reshape(*shape, generator.words)
    dtype = storage_dtype(generator.words)
    if 4 * generator.words != dtype.itemsize:
        flat = np.concatenate([flat, np.zeros((*shape, 1), U32)], axis=-1)
    return np.ascontiguousarray(flat, U32).view(dtype).reshape(shape)


def key_array(words: np.ndarray, generator: Generator):
    """An array of typed keys from their words."""
    storage = stored(words, generator)
    return typed_array(storage, key_aval(storage.shape, generator))
