"""Methods and properties of arrays whose modules are loaded when somebody asks for one: sorts, statistics, updates."""

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
    **dict.fromkeys(("conj", "conjugate", "round"), "float_parts"),
    **dict.fromkeys(("__delitem__", "__setitem__"), "index_update"),
    "choose": "selection",
    "repeat": "editing",
    "take": "taking",
}
LATE_PROPERTIES = {  # name -> its module, the name of what it is there, and what it says of itself
    "real": ("float_parts", "real", "The real part of each element."),
    "imag": ("float_parts", "imag", "The imaginary part of each element."),
    "at": ("index_update", "IndexUpdateHelper", "Updates that return a new array: ``x.at[index].set(y)``."),
}
OVERRIDABLE = ("choose", "repeat", "searchsorted", "take")  # of these, those that ask the classes of their arguments


class LateMethod:
    """Stands for a method or property of arrays, traced values and their types until somebody asks for it."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, value, owner):
        if self._name in LATE_PROPERTIES:
            module, name, doc = LATE_PROPERTIES[self._name]
            give(self._name, property(getattr(load(f"catena.numpy.{module}"), name), doc=doc))
        else:
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
    for name in (*LATE_METHODS, *LATE_PROPERTIES):
        for kind in (Array, Tracer, ShapedArray):
            setattr(kind, name, LateMethod(name))
