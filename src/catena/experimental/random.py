"""A generator of random numbers that remembers how often it was asked, under ``jit`` and ``vmap`` too.

The state is a key that stays and a counter, a reference: each draw folds the counter into the key and adds one.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

import catena.numpy as jnp
from catena import random
from catena.core.context import context
from catena.core.namespace import shown as _shown
from catena.core.ref import Ref
from catena.core.traceback import open_door as _open_door
from catena.core.tree import register_dataclass
from catena.core.unbuilt import absent as _absent
from catena.lax.ref_lives import new_ref

Size = int | Sequence[int] | None


@register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers with a state; ``stateful_rng`` makes one.

    Its methods are those of NumPy's ``Generator``. It is a tree: functions take it as an argument.
    """

    _base_key: Any
    _counter: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of keys.

        Arguments:
          shape: of the array.
        Raises:
          ValueError: this is a stack of generators, as ``split`` gives; ``vmap`` takes it apart.

        >>> import catena as jax
        >>> from catena.experimental.random import stateful_rng
        >>> stateful_rng(7).key() == jax.random.fold_in(jax.random.key(7), 0)
        Array(True, dtype=bool)
        """
        if self._base_key.ndim:
            raise ValueError(f"a stack of generators, {self._base_key.shape}, is used one by one, under vmap")
        made = random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1)
        shape = lengths(shape)
        return random.split(made, shape) if shape else made

    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Floats between 0 and 1.

        Arguments:
          size: the shape.
          dtype: of the floats.

        >>> from catena.experimental.random import stateful_rng
        >>> stateful_rng(7).random(2).shape
        (2,)
        """
        return random.uniform(self.key(), lengths(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Floats between two bounds.

        Arguments:
          low, high: the bounds, arrays.
          size: the shape; by default that of the bounds.
          dtype: of the floats.

        >>> from catena.experimental.random import stateful_rng
        >>> 2 <= stateful_rng(7).uniform(2, 3) < 3
        Array(True, dtype=bool)
        """
        return random.uniform(self.key(), shape_of(size, low, high), dtype, minval=low, maxval=high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Normal numbers.

        Arguments:
          loc, scale: mean and standard deviation, arrays.
          size: the shape; by default that of the parameters.
          dtype: of the floats.

        >>> from catena.experimental.random import stateful_rng
        >>> stateful_rng(7).normal(size=(2, 3)).shape
        (2, 3)
        """
        drawn = random.normal(self.key(), shape_of(size, loc, scale), dtype)
        return drawn * jnp.asarray(scale, drawn.dtype) + jnp.asarray(loc, drawn.dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Any:
        """Integers from ``low`` up to and without ``high``; with one bound, from 0.

        Arguments:
          low, high: the bounds, arrays.
          size: the shape; by default that of the bounds.
          dtype: of the integers.

        >>> from catena.experimental.random import stateful_rng
        >>> stateful_rng(7).integers(2, 9, size=2)
        Array([2, 3], dtype=int32)
        """
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), shape_of(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """A stack of generators, for ``vmap`` to take apart.

        Arguments:
          num: how many, or the shape of the stack.

        >>> import catena as jax
        >>> from catena.experimental.random import stateful_rng
        >>> jax.vmap(lambda rng: rng.normal())(stateful_rng(7).split(3)).shape
        (3,)
        """
        shape = lengths(num)
        return StatefulPRNG(random.split(self.key(), shape), new_ref(jnp.zeros(shape, np.int32)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of new generators.

        Arguments:
          n_children: how many.

        >>> from catena.experimental.random import stateful_rng
        >>> len(stateful_rng(7).spawn(3))
        3
        """
        return [StatefulPRNG(key, new_ref(0)) for key in random.split(self.key(), n_children)]


def lengths(size: Size) -> tuple:
    """A shape that may be given as one number, or not at all."""
    return () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)


def shape_of(size: Size, *parameters) -> tuple:
    """The shape that was asked for, or else the parameters'."""
    return jnp.broadcast_shapes(*map(np.shape, parameters)) if size is None else lengths(size)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers that remembers how often it was asked.

    Arguments:
      seed: an integer; without it, the operating system draws one.
      impl: the name of the generator of keys, or the generator.
    Returns:
      A generator.
    Raises:
      TypeError: ``seed`` is no integer, or it is missing while a function is traced.

    >>> from catena.experimental.random import stateful_rng
    >>> rng = stateful_rng(7)
    >>> bool(rng.random() != rng.random())
    True
    """
    if seed is None:
        if context.trace is not None:
            raise TypeError("stateful_rng must be given a seed where a function is traced: else each run had the same")
        seed = secrets.randbits(31)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


_open_door(globals(), "catena.experimental.random", own=True)
__dir__ = _shown(globals())

_absent(globals())
