"""Numbers that record what is done with them: how a program that was planned for one length is had for another.

A `Symbol` stands for an extent (or another number of the jaxpr that hangs on one) and has the value that it has at the
length at hand. What is computed from it is a `Symbol` again. Whenever its value decides anything, that is written down:
comparisons with their outcome, and its value itself where somebody asks for a plain number, such as text that tells
it or NumPy. So the program that comes out is right at any length where all that was written down is so again, and what
it consists of are functions of the numbers that it began with (`Record.function`).

That nothing is missed hangs on this: it is no subclass of `int`, so that code written in C cannot look at its value
but by the methods here. `isinstance(n, int)` holds, as Python believes what a class says of itself.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from catena.compiler.graph.replayed import Function, Line

MOST = 60_000  # lines of a record: who does more with sizes plans anew
SMALL = 17  # numbers below are everywhere: see `Record._apart`


class Unrecorded(Exception):
    """Something cannot be written down: the program is planned without."""


class _State(threading.local):
    record: Record | None = None


state = _State()


@contextlib.contextmanager
def recording(others: Iterable[int] = ()) -> Iterator[Record]:
    """A record, for what this thread plans meanwhile; `others` are numbers of the program that do not change."""
    state.record = record = Record(frozenset(others))
    try:
        yield record
    finally:
        close()


def close() -> None:
    """Ends this thread's record: from now on its numbers are plain ones."""
    if state.record is not None:
        state.record.known.clear()
        state.record.closed, state.record = True, None


def is_recording() -> bool:
    """Whether this thread plans with numbers that record."""
    return state.record is not None


class Record:
    """What was done with the numbers of one program, as lines of Python."""

    def __init__(self, others: frozenset = frozenset()):
        self.others = others  # numbers of the program that do not change
        self.lines: list[Line] = []
        self.arguments: list[str] = []
        self.hashed: dict[str, Any] = {}  # what was a key, or a part of one, with its value
        self.objects: dict[str, Any] = {}  # that functions are given
        self.closed = False
        self.known: dict[tuple, Any] = {}  # what came out of operations, by these, and by names and plain numbers
        self._names: dict[str, str] = {}
        self._asked: set[str] = set()
        self.late: set[str] = set()  # names of what a program makes, and of what hangs on that:
        self._last: list[Line] = []  # it is run for numbers for which all else holds

    def argument(self, value) -> Symbol | Scalar:
        """A number that the program begins with; a constant of it, where that is an array."""
        self.arguments.append(f"a{len(self.arguments)}")
        kind = Scalar if isinstance(value, np.ndarray) else Symbol
        return kind(self, value, self.arguments[-1])

    def scalar(self, value: np.ndarray, text: str, read: tuple[str, ...]) -> Scalar | np.ndarray:
        """The constant of an expression."""
        if self.closed:
            return value
        return Scalar(self, value, self.number(0, text, read).name)

    def number(self, value, text: str, read: tuple[str, ...], is_late: bool = False) -> Symbol:
        """The number of an expression, of those that it reads; what a program makes is asked for late."""
        if self.closed:
            return value
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"t{len(self._names)}"
            self.late |= {name} if is_late else frozenset()
            self._add(name, text, read)
        return Symbol(self, value, name)

    def computed(self, value, text: str, read: tuple[str, ...]):
        """What comes of an expression: a number, or data that holds some."""
        made = self.number(value, text, read)
        return Computed(self, value, made.name) if type(made) is Symbol and type(value) is tuple else made

    def condition(self, text: str, holds: bool, read: tuple[str, ...]) -> bool:
        """Writes down whether a condition holds."""
        if not self.closed and text not in self._asked:
            self._asked.add(text)
            self._add("", text if holds else f"not ({text})", read)
        return holds

    def told(self, x, read: list[str]) -> str:
        """What is given to a function, as text; the names in it join those that are `read`."""
        if self._is_own(x):
            read.append(x.name)
            return x.name
        if type(x) is tuple:
            return f"({''.join([f'{self.told(y, read)}, ' for y in x])})"
        if type(x) in (Symbol, Computed):
            return repr(x.value)
        if type(x) in (int, float, bool):
            return repr(x)
        if isinstance(x, tuple) and any(type(y) in (Symbol, tuple) for y in x):
            raise Unrecorded("numbers within objects")
        name = f"o{id(x)}"
        self.objects[name] = x
        return name

    def _is_own(self, x) -> bool:
        """Whether a number is one of this record: caches keep some of those before, which are plain numbers by now."""
        return type(x) in (Symbol, Computed) and x.record is self

    def _add(self, *line) -> None:
        if len(self.lines) > MOST:
            raise Unrecorded("too much to write down")
        name, _, read = line
        is_late = name in self.late or not self.late.isdisjoint(read)
        if is_late and name:  # no condition
            self.late.add(name)
        (self._last if is_late else self.lines).append(line)

    def function(self, made: Sequence) -> Callable:
        """From the numbers of a program to what was made of them; None where what is written does not hold."""
        self.closed = True
        needed, body = {x.name for x in made if self._is_own(x)}, []
        for line in reversed([*self.lines, *self._apart(), *self._last]):
            if not line[0] or line[0] in needed:
                needed.update(line[2])
                body.append(line)
        told = [x.name if self._is_own(x) else int(x) for x in made]
        return Function(self.arguments, body[::-1], told, {**_FUNCTIONS, **self.objects})

    def _apart(self) -> Iterable[Line]:
        """That keys which differed differ again, and from other numbers: dictionaries do not say that they compared."""
        values: dict[Any, str] = {}
        for name, value in self.hashed.items():
            values.setdefault(value, name)  # equal ones were compared, which is written down
        names = tuple(values.values())
        if len(names) > 1:
            yield "", f"len({{{', '.join(names)}}}) == {len(names)}", names
        told = tuple(name for value, name in values.items() if value not in self.others)
        if told:
            self.objects["others"] = self.others
            yield "", f"others.isdisjoint(({', '.join(told)},))", told
        large = tuple(name for value, name in values.items() if value >= SMALL)
        if large:
            yield "", f"min({', '.join(large)}, {SMALL}) == {SMALL}", large


def _own(number: Symbol, other):
    """The other operand, if it is of the same record, which is open; one of a closed record is a plain number."""
    if type(other) is not Symbol or other.record is number.record:
        return other
    if other.record.closed:
        return other.value
    raise Unrecorded("numbers of two records")


def _once(asked: Callable, made: Callable) -> Callable:
    """An operation of a number that records, which is done once with the same operands."""

    def operation(self, other):
        record, kind = self.record, type(other)
        if record.closed:  # a plain number, by which the other operand, if it records, is asked
            return asked(self.value, other)
        if kind is int:
            told = made, self.name, other
        elif kind is Symbol and other.record is record:
            told = made, self.name, other.name
        else:
            return made(self, other)
        found = record.known.get(told)
        if found is None:
            found = record.known[told] = made(self, other)
        return found

    return operation


def _text(x) -> str:
    """A plain number as Python writes it."""
    kind = type(x)
    if kind in (int, float, bool):
        return repr(x)
    if isinstance(x, np.integer):
        return repr(int(x))
    if isinstance(x, float):
        return repr(float(x))
    raise Unrecorded(f"what {kind.__name__} does with numbers")


def _operation(pattern: str, function: Callable, swapped: bool = False) -> Callable:
    def operation(self, other):
        other = _own(self, other)
        if type(other) is Symbol:
            value, text = other.value, other.name
        else:
            value, text = other, _text(other)
        made = function(value, self.value) if swapped else function(self.value, value)
        texts = (text, self.name) if swapped else (self.name, text)
        read = (self.name, text) if type(other) is Symbol else (self.name,)
        return self.record.number(made, pattern.format(*texts), read)

    return _once((lambda a, b: function(b, a)) if swapped else function, operation)


def _comparison(sign: str, function: Callable) -> Callable:
    def comparison(self, other):
        other = _own(self, other)
        if type(other) is Symbol:
            if self.name == other.name:
                return function(self.value, self.value)
            text, read, value = f"{self.name} {sign} {other.name}", (self.name, other.name), other.value
        else:
            if not isinstance(other, (int, float, np.generic, np.ndarray)):
                return NotImplemented
            text, read, value = f"{self.name} {sign} {_text(other)}", (self.name,), other
        return self.record.condition(text, bool(function(self.value, value)), read)

    return _once(function, comparison)


def _of_one(pattern: str, function: Callable) -> Callable:
    return lambda self: self.record.number(function(self.value), pattern.format(self.name), (self.name,))


class Symbol:
    """An int or a float, and the name by which the record knows it."""

    __slots__ = ("record", "value", "name")
    __array_ufunc__ = None

    def __init__(self, record: Record, value, name: str):
        self.record, self.value, self.name = record, value, name

    __class__: Any = property(lambda self: type(self.value))

    def plain(self):
        """The value, which is written down."""
        told = (
            f"repr({self.name}) == {repr(self.value)!r}"
            if self.__class__ is float
            else f"{self.name} == {self.value!r}"
        )
        self.record.condition(told, True, (self.name,))
        return self.value

    def __index__(self):
        return self.plain().__index__()

    def __int__(self):
        return int(self.plain())

    def __float__(self):
        return float(self.plain())

    def __repr__(self):
        return repr(self.plain())

    def __str__(self):
        return str(self.plain())

    def __format__(self, spec):
        return format(self.plain(), spec)

    def __hash__(self):
        if not self.record.closed:
            if self.name in self.record.late:  # keys are told apart before
                raise Unrecorded("what a program makes as a key")
            self.record.hashed[self.name] = self.value
        return hash(self.value)

    def __bool__(self):
        return self.record.condition(f"{self.name} != 0", self.value != 0, (self.name,))

    def bit_length(self):
        return self.record.number(self.value.bit_length(), f"{self.name}.bit_length()", (self.name,))

    def item(self):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):  # what NumPy looks for
            raise AttributeError(name)
        return getattr(self.plain(), name)

    def __mul__(self, other):
        if type(other) is int and other == 1:
            return self
        return other * self.plain() if isinstance(other, (list, tuple, str)) else _MUL(self, other)

    def __add__(self, other):
        if type(other) is int and other == 0 and self.__class__ is int:
            return self
        return _ADD(self, other)

    __rmul__, __radd__ = __mul__, __add__
    __sub__ = _operation("{} - {}", lambda a, b: a - b)
    __rsub__ = _operation("{} - {}", lambda a, b: a - b, True)
    __floordiv__ = _operation("{} // {}", lambda a, b: a // b)
    __rfloordiv__ = _operation("{} // {}", lambda a, b: a // b, True)
    __mod__ = _operation("{} % {}", lambda a, b: a % b)
    __rmod__ = _operation("{} % {}", lambda a, b: a % b, True)
    __truediv__ = _operation("{} / {}", lambda a, b: a / b)
    __rtruediv__ = _operation("{} / {}", lambda a, b: a / b, True)
    __pow__ = _operation("{} ** {}", lambda a, b: a**b)
    __rpow__ = _operation("{} ** {}", lambda a, b: a**b, True)
    __lshift__ = _operation("{} << {}", lambda a, b: a << b)
    __rlshift__ = _operation("{} << {}", lambda a, b: a << b, True)
    __rshift__ = _operation("{} >> {}", lambda a, b: a >> b)
    __and__ = __rand__ = _operation("{} & {}", lambda a, b: a & b)
    __or__ = __ror__ = _operation("{} | {}", lambda a, b: a | b)
    __neg__ = _of_one("-{}", lambda a: -a)
    __abs__ = _of_one("abs({})", abs)
    __round__ = _of_one("round({})", round)
    __ceil__ = _of_one("math.ceil({})", math.ceil)
    __floor__ = _of_one("math.floor({})", math.floor)
    __eq__ = _comparison("==", lambda a, b: a == b)
    __ne__ = _comparison("!=", lambda a, b: a != b)
    __lt__ = _comparison("<", lambda a, b: a < b)
    __le__ = _comparison("<=", lambda a, b: a <= b)
    __gt__ = _comparison(">", lambda a, b: a > b)
    __ge__ = _comparison(">=", lambda a, b: a >= b)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


_MUL = _operation("{} * {}", lambda a, b: a * b)
_ADD = _operation("{} + {}", lambda a, b: a + b)


class Scalar:
    """A constant of a jaxpr that hangs on an extent, such as the count that a mean divides by: as an array of it."""

    __slots__ = ("record", "array", "name")
    shape: tuple = ()
    ndim, size = 0, 1

    def __init__(self, record: Record, array: np.ndarray, name: str):
        self.record, self.array, self.name = record, array, name

    __class__: Any = property(lambda self: np.ndarray)

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def item(self) -> Symbol:
        return self.record.number(self.array.item(), f"{self.name}.item()", (self.name,))

    min = max = item

    @property
    def _value(self) -> Scalar:
        """What literals hold."""
        return self

    @property
    def bits(self) -> Symbol:
        """An integer by which equal ones are found."""
        made = int.from_bytes(self.array.tobytes(), "little")
        return self.record.number(made, f"int.from_bytes({self.name}.tobytes(), 'little')", (self.name,))

    @property
    def real(self) -> Scalar:
        if self.dtype.kind == "c":
            raise Unrecorded("complex numbers")
        return self

    def astype(self, dtype) -> Scalar | np.ndarray:
        dtype = np.dtype(dtype)
        with np.errstate(all="ignore"):
            made = np.asarray(self.array.astype(dtype))
        return self.record.scalar(made, f"{self.name}.astype({dtype.str!r})", (self.name,))

    def plain(self) -> np.ndarray:
        """The array, which is written down."""
        content = self.array.tobytes()
        self.record.condition(f"{self.name}.tobytes() == {content!r}", True, (self.name,))
        return self.array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.plain(), dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__" or options or getattr(np, ufunc.__name__, None) is not ufunc:
            raise Unrecorded(ufunc.__name__)
        inputs = tuple([x.array if type(x) is Scalar and x.record.closed else x for x in inputs])
        record = next((x.record for x in inputs if type(x) is Scalar), None)
        if record is None:
            return ufunc(*inputs)
        parts = [(x.array, x.name) if type(x) is Scalar else _constant(x) for x in inputs]
        made = ufunc(*(array for array, _ in parts))
        text = f"np.{ufunc.__name__}({', '.join(name for _, name in parts)})"
        read = tuple(x.name for x in inputs if type(x) is Scalar)
        if ufunc.nout > 1:
            return tuple([record.scalar(np.asarray(x), f"{text}[{i}]", read) for i, x in enumerate(made)])
        if made.dtype == bool:
            return record.condition(text, bool(made), read)
        return record.scalar(np.asarray(made), text, read)

    def __abs__(self):
        return np.abs(self)

    def __bool__(self):
        return bool(self != 0)

    def __eq__(self, other):
        return np.equal(self, other)

    def __ne__(self, other):
        return np.not_equal(self, other)

    def __lt__(self, other):
        return np.less(self, other)

    def __gt__(self, other):
        return np.greater(self, other)

    def __hash__(self):
        return hash(self.bits)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.plain(), name)


def _constant(x) -> tuple[Any, str]:
    if type(x) in (int, float, bool):
        return x, repr(x)
    array = np.asarray(x)
    if array.shape or array.dtype.kind not in "fiub":
        raise Unrecorded("arrays")
    return array, f"np.frombuffer({array.tobytes()!r}, {array.dtype.str!r})[0]"


_FUNCTIONS: dict[str, Callable] = {}


def _register(function: Callable) -> None:
    """By its name, which is what a record says of it: another function of that name would be called in its place."""
    known = _FUNCTIONS.setdefault(function.__name__, function)
    if known.__module__ != function.__module__:
        raise NameError(
            f"{function.__name__} is a recorded function of {known.__module__}, not of {function.__module__}"
        )


def recorded(function: Callable) -> Callable:
    """A plain function of a number, and of what Python can write, as one that takes a `Symbol` too, and gives one."""
    _register(function)

    @functools.wraps(function)
    def asked(x, *others):
        if type(x) is not Symbol:
            return function(x, *others)
        made, text = function(x.value, *others), f"{function.__name__}({', '.join([x.name, *map(repr, others)])})"
        if type(made) is bool:
            return x.record.condition(text, made, (x.name,))
        return x.record.number(made, text, (x.name,))

    return asked


def decided(function: Callable) -> Callable:
    """A plain function of numbers, tuples of these, and objects, whose result decides: the record has the result, and
    not how it came about, so it is right wherever the result is the same.
    """
    _register(function)

    @functools.wraps(function)
    def asked(*given):
        record = state.record
        if record is None:
            return function(*given)
        made, text, read = _called(record, function, given)
        if read:
            record.condition(f"{text} == {made!r}", True, read)
        return made

    return asked


class Computed:
    """What a function made of numbers that record: data by whose look nothing is decided, as its parts record, too."""

    __slots__ = ("record", "value", "name")

    def __init__(self, record: Record, value: tuple, name: str):
        self.record, self.value, self.name = record, value, name

    def __getitem__(self, i: int):
        text = f"{self.name}[{i}]"
        return self.record.computed(self.value[i], text, (self.name,))


def computed(function: Callable) -> Callable:
    """A plain function of numbers and of what such functions made, whose results are whole numbers and tuples of these:
    the record calls it, so how it comes to its results decides nothing.
    """
    _register(function)

    @functools.wraps(function)
    def asked(*given):
        record = state.record
        if record is None:
            return function(*map(plain, given))
        made, text, read = _called(record, function, given)
        return record.computed(made, text, read) if read else made

    return asked


def _called(record: Record, function: Callable, given: tuple) -> tuple[Any, str, tuple[str, ...]]:
    """What a function makes, of plain numbers, the text of the call, and what that reads of the record."""
    read: list[str] = []
    told = ", ".join([record.told(x, read) for x in given])
    return function(*map(plain, given)), f"{function.__name__}({told})", tuple(read)


def plain(x):
    """What is given to a function, without its numbers being recorded."""
    if type(x) in (Symbol, Computed):
        return x.value
    return tuple(map(plain, x)) if type(x) is tuple else x


@recorded
def as_float(x) -> float:
    """A number as a float."""
    return float(x)


@recorded
def is_power_of_two(x: float) -> bool:
    """Whether a float is one, or one over it, positive."""
    return math.frexp(x)[0] == 0.5


def whole(n) -> int:
    """A number as an int, one of a record as it is."""
    return n if n.__class__ is int else int(n)


def array_of(x, dtype=None) -> np.ndarray:
    """A constant as an array, one of a record as it is."""
    if type(x) is Scalar:
        made = x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)
        return cast(np.ndarray, made)  # which it says it is
    if type(x) is Symbol and dtype is not None:
        dtype = np.dtype(dtype)
        text = f"np.asarray({x.name}).astype({dtype.str!r})[()]"
        return cast(np.ndarray, x.record.scalar(np.asarray(x.value).astype(dtype), text, (x.name,)))
    return np.asarray(x) if dtype is None else np.asarray(x).astype(dtype)


def bits_of(array: np.ndarray) -> int:
    """The content of a constant as an integer: that of one of a record records."""
    return cast(int, array.bits) if type(array) is Scalar else int.from_bytes(array.tobytes(), "little")


def wholes(numbers: Iterable) -> tuple[int, ...]:
    """Numbers as ints, those of records as they are."""
    return tuple([n if n.__class__ is int else int(n) for n in numbers])
