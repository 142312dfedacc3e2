"""Tokens: values that carry nothing but order."""

from __future__ import annotations

import numpy as np

from catena.core import dtypes
from catena.core.aval import abstract_token


class Token:
    """A token: it stands for having happened, and has no data. ``lax.create_token`` and ``lax.after_all`` make tokens.

    A value of the language, but no Array: programs and transformations pass it on, arithmetic refuses it.
    """

    __slots__ = ("__weakref__",)
    aval = _aval = abstract_token
    weak_type = False
    _placement = None
    _value = np.zeros((), dtypes.float0)  # what rules see of it

    def __init__(self, buf):
        raise TypeError("Token cannot be instantiated directly; use catena.lax.create_token or after_all")

    def block_until_ready(self) -> None:
        """Return once everything before the token has happened (here it always has).

        >>> import catena.lax as lax
        >>> lax.create_token().block_until_ready()
        """

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return "Token()"


def new_token() -> Token:
    """A token."""
    return object.__new__(Token)
