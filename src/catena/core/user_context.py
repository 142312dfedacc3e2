"""Values that functions read without being given them, and that compiled functions are traced anew for."""

from __future__ import annotations

import itertools
from typing import Any

from catena.core.config import TRACED, overridden, refresh_global
from catena.core.context import Context, context
from catena.core.flags import Flag

_numbers = itertools.count()


class _Held:
    """A value as caches compare it: by equality where it can be hashed, else by identity."""

    __slots__ = ("value", "key")

    def __init__(self, value):
        self.value = value
        try:
            hash(value)
            self.key = (type(value), value)
        except TypeError:
            self.key = (type(value), id(value))

    def __eq__(self, other) -> bool:
        return type(other) is _Held and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


class UserContext:
    """A value in force: ``with c(5): ...`` sets it in this thread, ``c.value`` reads it."""

    def __init__(self, default_value):
        self._attribute = f"user_context_{next(_numbers)}"
        held = _Held(default_value)
        setattr(Context, self._attribute, held)
        TRACED.append(Flag(f"jax_{self._attribute}", held, object, "A value of the user's.", traced=True))
        refresh_global()

    def __call__(self, new_value):
        return overridden(self._attribute, _Held(new_value))

    @property
    def value(self) -> Any:
        """The value in force in this thread."""
        return getattr(context, self._attribute).value

    def get_global(self) -> Any:
        """The process-wide value."""
        return getattr(Context, self._attribute).value

    def set_global(self, value) -> None:
        """Set the process-wide value; a thread's own ``with`` still wins there."""
        setattr(Context, self._attribute, _Held(value))
        refresh_global()

    def __bool__(self):
        raise TypeError("a user context is a context manager, not a value: its value is .value")


def make_user_context(default_value: Any = None) -> UserContext:
    """A value that functions may read without being given it; jitted ones are traced anew where it changes.

    Arguments:
      default_value: the value where nobody sets another.
    Returns:
      An object ``c``: ``with c(value):`` sets the value in this thread, ``c.value`` reads it.

    >>> import catena as jax
    >>> scale = jax.make_user_context(1)
    >>> f = jax.jit(lambda x: x * scale.value)
    >>> with scale(10):
    ...     f(2).item()
    20
    >>> f(2).item()
    2
    """
    return UserContext(default_value)
