"""Types of a user's own: what the values of a class are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.aval import AbstractValue
from catena.core.named import NamedTuple
from catena.core.zeros import add_tangents, high_types, zeros


class HiType(AbstractValue):
    """The type of values of a class that is registered by `register_hitype`; a subclass says what it is made of, by
    ``lo_ty()``, ``lower_val(value)`` and ``raise_val(*values)``, and has equality and a hash.
    """

    is_high = True

    def _lacks(self, method: str) -> AssertionError:
        return AssertionError(f"{type(self).__name__} does not say what it is made of: it has no {method}")

    def lo_ty(self) -> list:
        """The types of the arrays that a value is made of."""
        raise self._lacks("lo_ty")

    def lo_ty_qdd(self, qdd) -> list:
        """The same for a value in this state."""
        return self.lo_ty()

    def lower_val(self, hi_val) -> list:
        """The arrays that a value is made of."""
        raise self._lacks("lower_val")

    def raise_val(self, *lo_vals):
        """The value that is made of these arrays."""
        raise self._lacks("raise_val")

    def to_tangent_aval(self):
        """The type of tangents of such values."""
        raise self._lacks("to_tangent_aval")

    def vspace_zero(self):
        """The value all of whose arrays are zero."""
        return self.raise_val(*map(zeros, self.lo_ty()))

    def vspace_add(self, x, y):
        """The sum of two values, array by array."""
        return self.raise_val(*map(add_tangents, self.lower_val(x), self.lower_val(y)))


class MutableHiType(HiType):
    """The type of values with a state, whose own type may change while a program runs (``has_qdd``): what a value is
    made of depends on its state.
    """

    has_qdd = True
    is_writer = False  # whether a value of it is written to where it is made

    def type_state(self, value):
        """The state of a value."""
        raise self._lacks("type_state")

    def lo_ty_qdd(self, state, /) -> list:
        """The types of the arrays that a value in this state is made of."""
        raise self._lacks("lo_ty_qdd")

    def new_from_loval(self, state, /, *vals):
        """A new value in this state, made of these arrays."""
        raise self._lacks("new_from_loval")

    def read_loval(self, state, val, /) -> list:
        """The arrays that a value in this state is made of."""
        raise self._lacks("read_loval")

    def read_loval_in(self, state, val, /) -> list:
        """The same where the value is an argument of a program."""
        return self.read_loval(state, val)

    def read_loval_out(self, qdd, hi, /) -> list:
        """The same where the program has ended."""
        return self.read_loval(qdd, hi)

    def update_from_loval(self, state, val, /, *lo_vals) -> None:
        """Put a value in this state, made of these arrays."""
        raise self._lacks("update_from_loval")


class AvalQDD(NamedTuple):
    """A type together with a state of its values; what such a value is made of is asked of the type.

    Arguments:
      aval: the type.
      qdd: the state.
    """

    aval: Any
    qdd: Any
    has_qdd = True

    @property
    def is_high(self) -> bool:
        """Whether values are of a user's class."""
        return self.aval.is_high

    @property
    def is_writer(self) -> bool:
        """Whether a value is written to where it is made."""
        return self.aval.is_writer

    def lo_ty(self) -> list:
        """The types of the arrays that a value is made of."""
        return self.aval.lo_ty_qdd(self.qdd)

    def new_from_loval(self, *lovals):
        """A new value, made of these arrays."""
        return self.aval.new_from_loval(self.qdd, *lovals)

    def read_loval(self, val) -> list:
        """The arrays that a value is made of."""
        return self.aval.read_loval(self.qdd, val)

    def read_loval_in(self, val) -> list:
        """The same where the value is an argument of a program."""
        return self.aval.read_loval_in(self.qdd, val)

    def read_loval_out(self, val) -> list:
        """The same where the program has ended."""
        return self.aval.read_loval_out(self.qdd, val)

    def to_tangent_aval(self) -> AvalQDD:
        """The type of tangents, in the state of tangents where the state says which that is."""
        state = self.qdd.to_tangent_qdd() if hasattr(self.qdd, "to_tangent_qdd") else self.qdd
        return AvalQDD(self.aval.to_tangent_aval(), state)


class AvalMutableQDD(NamedTuple):
    """A type, and where the state of its values is kept while it changes."""

    aval: Any
    mutable_qdd: Any


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Let values of a class have types: ``jax.typeof(value)`` is ``typeof_fn(value)``.

    Arguments:
      val_cls: the class; its instances are leaves of trees.
      typeof_fn: gives the type of an instance.

    >>> import catena as jax
    >>> from catena.experimental import hijax
    >>> class Word(str): ...
    >>> class WordType(hijax.HiType): ...
    >>> hijax.register_hitype(Word, lambda word: WordType())
    >>> isinstance(jax.typeof(Word("x")), WordType)
    True
    """
    high_types[val_cls] = typeof_fn
