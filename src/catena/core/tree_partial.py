"""Partial: a function with some arguments bound, as a pytree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catena.core.tree_nodes import custom_kind, default_nodes


class _Opaque:
    """A partial as the function of another: functools.partial would otherwise merge the two."""

    def __init__(self, func: Callable):
        self.func = func

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if isinstance(other, _Opaque) else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


class Partial(functools.partial):
    """`functools.partial` as a pytree: bound arguments are children, the function is static.

    Functions bound this way can be passed to transformed functions. A `functools.partial` or `Partial` given
    as `func` is kept whole: its own arguments are static too.

    Arguments:
        func: a callable, hashable for use with `jit`.
        args, kw: arguments to bind, pytrees.
    Returns: a callable pytree.
    Raises: TypeError when `func` is not callable.

    >>> from catena.tree import leaves
    >>> f = Partial(pow, 2)
    >>> f(5), leaves(f)
    (32, [2])
    """

    def __new__(cls, func: Callable, /, *args: Any, **kw: Any):
        if isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kw)

    def __repr__(self) -> str:
        parts = [repr(self.func), *map(repr, self.args), *(f"{k}={v!r}" for k, v in self.keywords.items())]
        return f"Partial({', '.join(parts)})"


def _unflatten_partial(func: Callable, children: tuple) -> Partial:
    args, kw = children
    return Partial(func, *args, **kw)


default_nodes.add(custom_kind(Partial, lambda p: ((p.args, p.keywords), p.func), _unflatten_partial))
