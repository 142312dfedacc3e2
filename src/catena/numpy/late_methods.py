"""Methods of arrays whose modules are loaded when somebody asks for one of them: sorts, statistics, selections."""

from __future__ import annotations

from catena.core.array import Array
from catena.core.aval import ShapedArray
from catena.core.lazy import load
from catena.core.trace import Tracer, give_member
from catena.core.traceback import api_boundary, is_boundary
from catena.numpy.protocol import overridable

LATE_METHODS = {  # name -> its module
    **dict.fromkeys(("argpartition", "argsort", "searchsorted", "sort"), "sorting"),
    **dict.fromkeys(("cumprod", "cumsum"), "cumulative"),
    **dict.fromkeys(("diagonal", "trace"), "diagonals"),
    **dict.fromkeys(("mean", "std", "var"), "averages"),
    "choose": "selection",
    "repeat": "editing",
    "take": "taking",
}
OVERRIDABLE = ("choose", "repeat", "searchsorted", "take")  # of these, those that ask the classes of their arguments


class LateMethod:
    """Stands for a method of arrays, traced values and their types until somebody asks for it."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, value, owner):
        give_method(self._name, loaded(self._name))
        return getattr(owner if value is None else value, self._name)


def loaded(name: str):
    """The function that such a method is."""
    method = getattr(load(f"catena.numpy.{LATE_METHODS[name]}"), name)
    return overridable(method) if name in OVERRIDABLE else method


def give_method(name: str, method) -> None:
    """Give a method to arrays and traced values."""
    give(name, method if is_boundary(method) else api_boundary(method))


def give(name: str, member) -> None:
    """Give a method or property to arrays and traced values."""
    setattr(Array, name, member)
    give_member(name, member)


def install() -> None:
    """Let arrays, traced values and types have the methods of the table."""
    for name in LATE_METHODS:
        for kind in (Array, Tracer, ShapedArray):
            setattr(kind, name, LateMethod(name))
