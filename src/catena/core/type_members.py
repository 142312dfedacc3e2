"""Methods and properties that a type gives to values of which only the type is known.

A class of types has them as attributes; tracers look for what they do not have themselves at their type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, cast

from catena.core.named import NamedTuple
from catena.core.traceback import shorten


class aval_property(NamedTuple):  # noqa: N801
    """A property of values that are known by their type alone: ``fget`` takes the value.

    >>> from catena.experimental import hijax
    >>> class Pair(hijax.HiType):
    ...     first = hijax.aval_property(lambda pair: pair.parts[0])
    >>> isinstance(Pair().first, hijax.aval_property)
    True
    """

    fget: Callable


class aval_method(NamedTuple):  # noqa: N801
    """A method of values that are known by their type alone: ``fun`` takes the value and the arguments.

    >>> import catena as jax
    >>> jax.typeof(jax.numpy.ones(3)).sum.fun(jax.numpy.ones(3))
    Array(3., dtype=float32)
    """

    fun: Callable


def member_of(value: Any, name: str) -> Any:
    """What the type of a value gives to it under a name.

    Raises:
      AttributeError: nothing.
    """
    member = getattr(type(value.aval), name, None)
    if type(member) is aval_method:
        return partial(member.fun, value)
    if type(member) is aval_property:
        return member.fget(value)
    raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}", name=name, obj=value)


def cur_qdd(x):
    """The state of a value of a type with states, as the value itself says it: ``x.cur_qdd()``.

    Raises:
      AttributeError: its class says none.
    """
    return x.cur_qdd()


ASKED_BY_NAME = frozenset({"__array_namespace__"})  # special methods that libraries look for, not Python


def give(tracers: type, types: type, name: str, member: Any) -> None:
    """Let a class of types give a member to its values, and tracers ask for it: a method, or a property. What Python
    itself calls, a special method, is that of tracers.
    """
    if name.startswith("__"):
        setattr(tracers, name, member if name == "__reversed__" else shown_as_of_type(member))
        if name in ASKED_BY_NAME:
            setattr(types, name, aval_method(member))
    elif isinstance(member, property):
        setattr(types, name, aval_property(cast(Callable, member.fget)))
        setattr(tracers, name, property(lambda self: member_of(self, name), doc=member.__doc__))
    else:
        setattr(types, name, aval_method(member))
        setattr(tracers, name, _asked(name, member))


def _asked(name: str, fun: Callable) -> Callable:
    def method(self, *args, **kwargs):
        try:
            member = getattr(type(self.aval), name, None)
            if type(member) is not aval_method:
                return member_of(self, name)(*args, **kwargs)
            return member.fun(self, *args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    method.__name__ = method.__qualname__ = name
    method.__doc__ = fun.__doc__
    return method


_SHOWN, _WITH_KEYWORDS = (inspect.signature(f) for f in (lambda self, *args: 0, lambda self, *args, **kwargs: 0))


def shown_as_of_type(fun: Callable) -> Callable:
    """A copy of a special method with the signature of tracers' methods, whose arguments the type decides."""
    method = FunctionType(fun.__code__, fun.__globals__, fun.__name__, fun.__defaults__, fun.__closure__)
    update_wrapper(method, fun)
    method.__kwdefaults__ = fun.__kwdefaults__
    method.__signature__ = _WITH_KEYWORDS if fun.__name__ == "__array_namespace__" else _SHOWN  # type: ignore[attr-defined]
    return method
