"""The array protocol: how classes of users take part in the functions of the NumPy API.

Level 1, conversion, is ``__jax_array__`` and happens at the boundary of every function (``boundary``). This
file is levels 2 and 3: a class that defines ``__jax_wrap__`` gets its class back from functions, and one that
defines ``__jax_function__`` says itself what a function means. ``docs/array_protocol.md`` is the standard for
users.

Nobody looks for such objects beforehand. The boundary, where it meets a value that is none of the language's
own and whose class takes part, raises ``Overridden``; the public function that was called catches it and asks
the classes. Elementwise functions, operators and ufuncs catch it on their general path only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from catena.core.traceback import door, shorten
from catena.core.tree import tree_map

Fun = TypeVar("Fun", bound=Callable[..., Any])


class Overridden(TypeError):
    """An argument's class takes part in the array protocol, so the public function has to ask it.

    It is a TypeError with a message of its own for the places that ask nobody, such as updates by ``x.at``.
    """

    def __init__(self, name: str, x):
        super().__init__(
            f"{name} got a {type(x).__name__}, whose class defines its own meaning of the functions of "
            "catena.numpy, in a place where classes are not asked. Call a function of catena.numpy instead, "
            "or convert the object with jnp.asarray first."
        )


def takes_part(kind: type) -> bool:
    """Whether a class defines level 2 or 3 of the protocol."""
    return hasattr(kind, "__jax_function__") or hasattr(kind, "__jax_wrap__")


def overridable(fun: Fun) -> Fun:
    """The public form of ``fun``, which asks the classes of its arguments; one and the same at every call."""
    return _public[fun] if fun in _public else present_as(fun, asking(fun))


def asking(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, asking the classes of its arguments where they take part."""

    def call(*args, **kwargs):
        try:
            return fun(*args, **kwargs)
        except Overridden as error:
            reason = error
        except Exception as error:
            shorten(error)
            raise
        return answer(reason, call, args, kwargs)

    # What functools.wraps does, in a third of the time: 400 functions go through here at import.
    call.__name__, call.__qualname__, call.__module__ = fun.__name__, fun.__qualname__, fun.__module__
    call.__doc__, call.__annotations__, call.__wrapped__ = fun.__doc__, fun.__annotations__, fun
    call.__dict__.update(fun.__dict__)
    return call


_public: dict[Callable[..., Any], Any] = {}


def public_form(function):
    """The object that users know ``function`` by."""
    while (known := _public.get(function, function)) is not function:
        function = known
    return function


def present_as(fun: Any, public: Fun) -> Fun:
    """Make ``public`` the object that users know ``fun`` by; ``fun`` itself if it catches ``Overridden``."""
    _public[fun] = public
    return public


def opened(name: str, fun: Callable[..., Any], module: str) -> Callable[..., Any]:
    """The form of a function that users of a public module know: it asks the classes of its arguments, but for the
    ``CLOSED`` ones, and is found by the module's name, as pickling needs.
    """
    if name not in CLOSED:
        fun = overridable(fun)
        if fun.__module__ != "catena.numpy":
            fun.__module__ = module
    return door(fun, module)


def open_namespace(namespace: dict[str, Any], module: str):
    """Give a public module, by its ``globals()``, the public forms of its functions."""
    for name, fun in list(namespace.items()):
        if type(fun) is FunctionType and not name.startswith("_"):
            namespace[name] = opened(name, fun, module)


# Functions that make arrays of objects, or speak of dtypes and printing: they ask no class.
CLOSED = frozenset(
    "array asarray from_dlpack frombuffer fromfile fromiter fromstring frompyfunc get_printoptions isdtype "
    "issubdtype iterable load printoptions promote_types save savez set_printoptions".split()
)

# ----------------------------------------------------------------------------------------------------
# Asking


def answer(reason: Overridden, function, args: tuple, kwargs: dict):
    """What a call with objects that take part gives: their own answer, or the function of their arrays.

    Arguments:
      reason: what the boundary raised.
      function: the public function that was called.
      args, kwargs: what it was called with.
    Raises:
      TypeError: no class has an answer, or several have different ones.
    """
    function = public_form(function)
    asked = by_precedence(participants((args, kwargs)))
    if not asked:  # the object was met further inside, where this call has no say
        raise reason
    types = tuple(map(type, asked))
    for x in asked:
        result = _own_meaning(x, function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    _check_convertible(types, function)
    result = function(*_arrays(args), **_arrays(kwargs))
    return tree_map(lambda leaf: _wrapped(leaf, function, asked), result, is_leaf=_is_array)


def participants(container) -> list:
    """The objects that take part, in order, in nested tuples, lists and dicts."""
    if isinstance(container, dict):
        container = container.values()
    elif not isinstance(container, tuple | list):
        return [container] if takes_part(type(container)) else []
    return [x for item in container for x in participants(item)]


def by_precedence(objects) -> list:
    """One object of each class: subclasses before their superclasses, otherwise as they come."""
    ordered = []
    for x in objects:
        kind = type(x)
        if any(type(y) is kind for y in ordered):
            continue
        ahead_of = (i for i, y in enumerate(ordered) if issubclass(kind, type(y)))
        ordered.insert(next(ahead_of, len(ordered)), x)
    return ordered


def _own_meaning(x, function, types, args, kwargs):
    """What ``x.__jax_function__`` says; NotImplemented where its class has none."""
    kind = type(x)
    if not hasattr(kind, "__jax_function__"):
        return NotImplemented
    if kind.__jax_function__ is None:
        raise TypeError(
            f"jnp.{function.__name__} was given a {kind.__name__}, which takes no part in functions: its "
            "__jax_function__ is None"
        )
    return x.__jax_function__(function, types, args, kwargs)


def _check_convertible(types, function):
    """Nobody has an answer: then all must be convertible to arrays."""
    fixed = [kind.__name__ for kind in types if not hasattr(kind, "__jax_array__")]
    if fixed:
        raise TypeError(
            f"jnp.{function.__name__} has no meaning for {', '.join(fixed)}: __jax_function__ returned "
            "NotImplemented for it, and there is no __jax_array__ to convert by."
        )


def _arrays(container):
    """``container`` with the objects that take part converted to arrays."""
    if isinstance(container, dict):
        return {name: _arrays(item) for name, item in container.items()}
    if type(container) in (tuple, list):
        return type(container)(map(_arrays, container))
    if isinstance(container, tuple | list):
        return tuple(map(_arrays, container))
    return converted(container) if takes_part(type(container)) else container


def converted(x):
    """``x.__jax_array__()``, if it is what the protocol asks for."""
    result = x.__jax_array__()
    if takes_part(type(result)) and not _is_array(result):
        raise TypeError(f"{type(x).__name__}.__jax_array__() must return an array, got {type(result)}")
    return result


def _is_array(x) -> bool:
    return getattr(type(x), "_is_array", False)


def _wrapped(leaf, function, asked):
    """An array among the results, as the one class among those asked that wants it; others stay."""
    if not _is_array(leaf):
        return leaf
    answers = [(x, x.__jax_wrap__(leaf, function)) for x in _wrappers(asked)]
    answers = [(x, result) for x, result in answers if result is not NotImplemented]
    if len(answers) > 1:
        names = " and ".join(type(x).__name__ for x, _ in answers)
        raise TypeError(
            f"jnp.{function.__name__} was given objects of {names}, which all wrap its result. Let the "
            "__jax_wrap__ of all but one return NotImplemented, or define __jax_function__ for this mixture."
        )
    return answers[0][1] if answers else leaf


def _wrappers(asked) -> list:
    """The objects whose classes wrap results, without those that a subclass among them speaks for."""
    wrappers = [x for x in asked if getattr(type(x), "__jax_wrap__", None) is not None]
    kinds = [type(x) for x in wrappers]
    return [x for x in wrappers if not any(k is not type(x) and issubclass(k, type(x)) for k in kinds)]


# ----------------------------------------------------------------------------------------------------
# Operators


_REFLECTED = {"eq": "__eq__", "ne": "__ne__", "lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"}


_WITHOUT_MEANING = (object, list, tuple)  # whose operators say nothing about arrays


def has_operator(kind: type, name: str, reflected: bool) -> bool:
    """Whether a class defines the operator that Python asks next, ``name`` of an array on the other side."""
    method = _REFLECTED.get(name, f"__r{name}__") if reflected else f"__{name}__"
    owner = next((base for base in kind.__mro__ if method in vars(base)), object)
    return owner not in _WITHOUT_MEANING
