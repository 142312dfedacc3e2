"""Names for parts of programs, and evaluation in the middle of tracing."""

from __future__ import annotations

import functools
from collections.abc import Callable

from catena.core.context import context
from catena.core.source import function_name
from catena.transform.functions import check_callable


class named_scope:  # noqa: N801
    """Name the operations inside a ``with`` block or a decorated function; the name is kept with each equation.

    Arguments:
      name: the name.

    >>> import catena as jax
    >>> with jax.named_scope("layer"):
    ...     y = 2
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string. Got {name!r}.")
        self.name = name

    def __call__(self, fun: Callable) -> Callable:
        """``fun``, its operations named; not by ``ContextDecorator``, whose line would stand for the user's."""

        @functools.wraps(fun)
        def scoped(*args, **kwargs):
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return scoped

    def __enter__(self):
        self.previous = context.name_stack
        context.name_stack = self.previous.extend(self.name)
        return self

    def __exit__(self, *exc_info):
        context.name_stack = self.previous


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """A function whose operations carry its name.

    Arguments:
      fun: the function.
      name: the name; by default that of the function.

    >>> import catena as jax
    >>> jax.named_call(lambda x: x + 1, name="increment")(1)
    2
    """
    check_callable(fun)
    return named_scope(function_name(fun) if name is None else name)(fun)
