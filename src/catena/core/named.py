"""Named tuples, as `typing` makes them, in a fifth of the time: a process that runs a compiled program makes 80 such
classes, for which it waited 15 ms of some 240.

What annotations mean is not looked at, and the function that makes tuples of n values is compiled once for each n.
"""

from __future__ import annotations

import sys
from collections import _tuplegetter  # type: ignore[attr-defined]
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING

_Refused = ValueError if sys.version_info < (3, 13) else TypeError  # as `collections` has it


class _Tuple(tuple):
    """What all named tuples have, under the names that `collections.namedtuple` gives it."""

    __slots__ = ()
    _fields = ()  # type: tuple[str, ...]

    @classmethod
    def _make(cls, values):
        return tuple.__new__(cls, values)

    def _replace(self, /, **changes):
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise _Refused(f"Got unexpected field names: {[*changes]!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple:
        return tuple(self)

    def __repr__(self) -> str:
        values = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
        return f"{type(self).__name__}({', '.join(values)})"


@cache
def _maker(count: int) -> FunctionType:
    """Makes a tuple of a class of so many values."""
    values = "".join(f"value{i}, " for i in range(count))
    code = compile(f"lambda _cls, {values}: new(_cls, ({values}))", __file__, "eval")  # no line of a user's
    return eval(code, {"new": tuple.__new__, "__builtins__": {}})


@cache
def _getter(place: int):
    """Reads what stands at a place of a tuple."""
    return _tuplegetter(place, f"Alias for field number {place}")


def _class_of(name: str, fields: tuple[str, ...], body: dict) -> type:
    """The class of tuples with these fields and, for the last ones, what the body of the class says they are."""
    defaults = {field: body[field] for field in fields if field in body}
    if [*defaults] != [*fields[len(fields) - len(defaults) :]]:
        raise TypeError(f"{name}: a field without a default follows one that has one")
    maker = _maker(len(fields))
    code = maker.__code__.replace(co_varnames=("_cls", *fields))
    made = {
        "__slots__": (),
        "__new__": FunctionType(code, maker.__globals__, "__new__", tuple(defaults.values())),
        "__match_args__": fields,
        "_fields": fields,
        "_field_defaults": defaults,
    }
    return type(name, (_Tuple,), body | made | {field: _getter(i) for i, field in enumerate(fields)})


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Kind(type):
        """The class of ``NamedTuple``: of what is written as its subclass it makes a class of tuples."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            return _class_of(name, tuple(body.get("__annotations__", ())), body)

    class NamedTuple(metaclass=_Kind):
        """What classes of tuples with named fields are written as subclasses of; in files that begin with
        ``from __future__ import annotations``, since Python 3.14 does not list the fields of others.
        """
