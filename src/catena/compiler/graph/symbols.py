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
import operator
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
        state.record.made.clear()
        state.record.closed, state.record = True, None


def is_recording() -> bool:
    """Whether this thread plans with numbers that record."""
    return state.record is not None


class Record:
    """What was done with the numbers of one program, as lines: a function each, and the names of what it is given."""

    def __init__(self, others: frozenset = frozenset()):
        self.others = others  # numbers of the program that do not change
        self.lines: list[Line] = []
        self.arguments: list[str] = []
        self.hashed: dict[str, Any] = {}  # what was a key, or a part of one, with its value
        self.constants: dict[str, Any] = {}  # plain numbers and objects that functions are given, by their names
        self.closed = False
        self.known: dict[tuple, Any] = {}  # what came out of operations, by these, and by names and plain numbers
        self.made: dict[str, tuple] = {}  # by the names of numbers: their values, and how they are had
        self._names: dict[tuple, str] = {}
        self._asked: set[tuple] = set()
        self.late: set[str] = set()  # names of what a program makes, and of what hangs on that:
        self._last: list[Line] = []  # it is run for numbers for which all else holds

    def argument(self, value: Any) -> Symbol | Scalar | Computed:
        """A number that the program begins with; a constant of it, where that is NumPy's; an array that it holds."""
        self.arguments.append(f"a{len(self.arguments)}")
        if np.shape(value):
            return Computed(self, value, self.arguments[-1])
        value = np.asarray(value) if isinstance(value, np.generic) else value
        self.made[self.arguments[-1]] = value, None, ()
        kind = Scalar if isinstance(value, np.ndarray) else Symbol
        return kind(self, value, self.arguments[-1])

    def scalar(self, value: np.ndarray, function: Callable, *read: str) -> Scalar | np.ndarray:
        """The constant that a function makes."""
        return value if self.closed else Scalar(self, value, self._made(value, function, read))

    def number(self, value, function: Callable, *read: str) -> Symbol:
        """The number that a function makes of what has these names."""
        return value if self.closed else Symbol(self, value, self._made(value, function, read))

    def _made(self, value, function: Callable, read: tuple[str, ...]) -> str:
        name = self.line(function, read)
        self.made[name] = value, function, read
        return name

    def computed(self, value, function: Callable, read: tuple[str, ...]):
        """What a function makes: a number, or data that holds some."""
        made = self.number(value, function, *read)
        return Computed(self, value, made.name) if type(made) is Symbol and type(value) is tuple else made

    def line(self, function: Callable, read: tuple[str, ...], is_late: bool = False) -> str:
        """The name of what a function makes, by a line that is written once; what a program makes is asked for late."""
        told = function, read
        name = self._names.get(told)
        if name is None:
            name = self._names[told] = f"t{len(self._names)}"
            self._add((name, function, read, True), is_late)
        return name

    def condition(self, holds: bool, function: Callable, *read: str) -> bool:
        """Writes down whether a condition holds."""
        told = function, read
        if not self.closed and told not in self._asked:
            self._asked.add(told)
            self._add(("", function, read, holds))
        return holds

    def constant(self, x) -> str:
        """The name of a plain number."""
        if type(x) not in (int, float, bool):
            if isinstance(x, np.integer):
                x = int(x)
            elif isinstance(x, float):
                x = float(x)
            else:
                raise Unrecorded(f"what {type(x).__name__} does with numbers")
        return self.named(repr(x), x)

    def named(self, name: str, x) -> str:
        """The name of what does not change, which is what no other has."""
        self.constants[name] = x
        return name

    def told(self, x) -> str:
        """The name of what is given to a function; a tuple of what records is made by a line."""
        if self._is_own(x):
            return x.name
        if type(x) is tuple:
            names = tuple(map(self.told, x))
            if self.constants.keys() >= {*names}:
                return self.named(f"({', '.join(names)})", plain(x))
            return self.line(_together, names)
        if type(x) in (Symbol, Computed):
            x = x.value
        if type(x) in (int, float, bool):
            return self.named(repr(x), x)
        if isinstance(x, tuple) and any(type(y) in (Symbol, tuple) for y in x):
            raise Unrecorded("numbers within objects")
        return self.named(f"o{id(x)}", x)

    def _is_own(self, x) -> bool:
        """Whether a number is one of this record: caches keep some of those before, which are plain numbers by now."""
        return type(x) in (Symbol, Computed) and x.record is self

    def _add(self, line: Line, is_late: bool = False) -> None:
        if len(self.lines) > MOST:
            raise Unrecorded("too much to write down")
        name, _, read, _ = line
        is_late = is_late or not self.late.isdisjoint(read)
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
        return Function(self.arguments, body[::-1], told, {k: self.constants[k] for k in self.constants if k in needed})

    def _apart(self) -> Iterable[Line]:
        """That keys which differed differ again, and from other numbers: dictionaries do not say that they compared."""
        values: dict[Any, str] = {}
        for name, value in self.hashed.items():
            values.setdefault(value, name)  # equal ones were compared, which is written down
        names = tuple(values.values())
        if len(names) > 1:
            yield "", _all_differ, names, True
        told = tuple(name for value, name in values.items() if value not in self.others)
        if told:
            yield "", _none_among, (self.told(self.others), *told), True
        large = tuple(name for value, name in values.items() if value >= SMALL)
        if large:
            yield "", _none_small, large, True


def _together(*parts) -> tuple:
    return parts


def _all_differ(*numbers) -> bool:
    return len({*numbers}) == len(numbers)


def _none_among(others: frozenset, *numbers) -> bool:
    return others.isdisjoint(numbers)


def _none_small(*numbers) -> bool:
    return min(numbers) >= SMALL


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


def _operation(function: Callable, swapped: bool = False) -> Callable:
    def operation(self, other):
        other = _own(self, other)
        if type(other) is Symbol:
            value, name = other.value, other.name
        else:
            value, name = other, self.record.constant(other)
        if swapped:
            return self.record.number(function(value, self.value), function, name, self.name)
        return self.record.number(function(self.value, value), function, self.name, name)

    return _once((lambda a, b: function(b, a)) if swapped else function, operation)


def _comparison(function: Callable) -> Callable:
    def comparison(self, other):
        other = _own(self, other)
        if type(other) is Symbol:
            if self.name == other.name:
                return function(self.value, self.value)
            value, name = other.value, other.name
        else:
            if not isinstance(other, (int, float, np.generic, np.ndarray)):
                return NotImplemented
            value, name = other, self.record.constant(other)
        return self.record.condition(bool(function(self.value, value)), function, self.name, name)

    return _once(function, comparison)


def _of_one(function: Callable) -> Callable:
    return lambda self: self.record.number(function(self.value), function, self.name)


def _has_text(x: float, text: str) -> bool:
    return repr(x) == text


_bit_length, _item = operator.methodcaller("bit_length"), operator.methodcaller("item")


class Symbol:
    """An int or a float, and the name by which the record knows it."""

    __slots__ = ("record", "value", "name")
    __array_ufunc__ = None

    def __init__(self, record: Record, value, name: str):
        self.record, self.value, self.name = record, value, name

    __class__: Any = property(lambda self: type(self.value))

    def plain(self):
        """The value, which is written down."""
        record, value = self.record, self.value
        if self.__class__ is float:
            record.condition(True, _has_text, self.name, record.named(f"'{value!r}'", repr(value)))
        else:
            record.condition(True, operator.eq, self.name, record.constant(value))
        return value

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
        return self.record.condition(self.value != 0, operator.ne, self.name, self.record.constant(0))

    bit_length = _of_one(_bit_length)

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
    __sub__ = _operation(operator.sub)
    __rsub__ = _operation(operator.sub, True)
    __floordiv__ = _operation(operator.floordiv)
    __rfloordiv__ = _operation(operator.floordiv, True)
    __mod__ = _operation(operator.mod)
    __rmod__ = _operation(operator.mod, True)
    __truediv__ = _operation(operator.truediv)
    __rtruediv__ = _operation(operator.truediv, True)
    __pow__ = _operation(operator.pow)
    __rpow__ = _operation(operator.pow, True)
    __lshift__ = _operation(operator.lshift)
    __rlshift__ = _operation(operator.lshift, True)
    __rshift__ = _operation(operator.rshift)
    __and__ = __rand__ = _operation(operator.and_)
    __or__ = __ror__ = _operation(operator.or_)
    __neg__ = _of_one(operator.neg)
    __abs__ = _of_one(abs)
    __round__ = _of_one(round)
    __ceil__ = _of_one(math.ceil)
    __floor__ = _of_one(math.floor)
    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


_MUL = _operation(operator.mul)
_ADD = _operation(operator.add)


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
        return self.record.number(self.array.item(), _item, self.name)

    min = max = item

    @property
    def _value(self) -> Scalar:
        """What literals hold."""
        return self

    @property
    def bits(self) -> Symbol:
        """An integer by which equal ones are found."""
        return self.record.number(_bits(self.array), _bits, self.name)

    @property
    def real(self) -> Scalar:
        if self.dtype.kind == "c":
            raise Unrecorded("complex numbers")
        return self

    def astype(self, dtype) -> Scalar | np.ndarray:
        dtype = np.dtype(dtype)
        with np.errstate(all="ignore"):
            made = np.asarray(self.array.astype(dtype))
        return self.record.scalar(made, _as_dtype, self.name, self.record.named(dtype.str, dtype))

    def plain(self) -> np.ndarray:
        """The array, which is written down."""
        content = self.array.tobytes()
        self.record.condition(True, _has_bytes, self.name, self.record.named(repr(content), content))
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
        parts = [(x.array, x.name) if type(x) is Scalar else _constant(record, x) for x in inputs]
        made, names = ufunc(*(array for array, _ in parts)), tuple(name for _, name in parts)
        if ufunc.nout > 1:
            all_ = record.line(ufunc, names)
            places = map(record.constant, range(ufunc.nout))
            return tuple([record.scalar(np.asarray(x), operator.getitem, all_, i) for x, i in zip(made, places)])
        if made.dtype == bool:
            return record.condition(bool(made), ufunc, *names)
        return record.scalar(np.asarray(made), ufunc, *names)

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


def _bits(x) -> int:
    return int.from_bytes(x.tobytes(), "little")


def _has_bytes(x, content: bytes) -> bool:
    return x.tobytes() == content


def _as_dtype(x, dtype: np.dtype):
    return np.asarray(x).astype(dtype)[()]


def _constant(record: Record, x) -> tuple[Any, str]:
    if type(x) in (int, float, bool):
        return x, record.constant(x)
    array = np.asarray(x)
    if array.shape or array.dtype.kind not in "fiub":
        raise Unrecorded("arrays")
    return array, record.named(f"{array.dtype.str}{array.tobytes().hex()}", array[()])


def recorded(function: Callable) -> Callable:
    """A plain function of a number, and of what does not change, as one that takes a `Symbol` too, and gives one."""

    @functools.wraps(function)
    def asked(x, *others):
        if type(x) is not Symbol:
            return function(x, *others)
        made, read = function(x.value, *others), (x.name, *map(x.record.told, others))
        if type(made) is bool:
            return x.record.condition(made, function, *read)
        return x.record.number(made, function, *read)

    return asked


def decided(function: Callable) -> Callable:
    """A plain function of numbers, tuples of these, and objects, whose result decides: the record has the result, and
    not how it came about, so it is right wherever the result is the same.
    """

    @functools.wraps(function)
    def asked(*given):
        record = state.record
        if record is None:
            return function(*given)
        made, read = _called(record, function, given)
        if read:
            record.condition(True, operator.eq, record.line(function, read), record.named(repr(made), made))
        return made

    return asked


class Computed:
    """What a function made of numbers that record: data by whose look nothing is decided, as its parts record, too."""

    __slots__ = ("record", "value", "name")

    def __init__(self, record: Record, value: tuple, name: str):
        self.record, self.value, self.name = record, value, name

    def __getitem__(self, i: int):
        return self.record.computed(self.value[i], operator.getitem, (self.name, self.record.constant(i)))


def computed(function: Callable) -> Callable:
    """A plain function of numbers and of what such functions made, whose results are whole numbers and tuples of these:
    the record calls it, so how it comes to its results decides nothing.
    """

    @functools.wraps(function)
    def asked(*given):
        record = state.record
        if record is None:
            return function(*map(plain, given))
        made, read = _called(record, function, given)
        return record.computed(made, function, read) if read else made

    return asked


def _called(record: Record, function: Callable, given: tuple) -> tuple[Any, tuple[str, ...]]:
    """What a function makes, of plain numbers, and the names of what it is given; none where nothing of it records."""
    read = tuple(map(record.told, given))
    return function(*map(plain, given)), () if record.constants.keys() >= {*read} else read


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
        made = x.record.scalar(np.asarray(x.value).astype(dtype), _as_dtype, x.name, x.record.named(dtype.str, dtype))
        return cast(np.ndarray, made)
    return np.asarray(x) if dtype is None else np.asarray(x).astype(dtype)


def bits_of(array: np.ndarray) -> int:
    """The content of a constant as an integer: that of one of a record records."""
    return cast(int, array.bits) if type(array) is Scalar else int.from_bytes(array.tobytes(), "little")


def wholes(numbers: Iterable) -> tuple[int, ...]:
    """Numbers as ints, those of records as they are."""
    return tuple([n if n.__class__ is int else int(n) for n in numbers])
