"""Programs at other lengths: found by what their jaxprs have in common, their tables filled anew.

Jaxprs are of one *family* where they differ in numbers alone: extents, literals that hang on them, and what is in the
arrays that they hold, such as a mask that NumPy has made for a length. Of a family the
second program is planned with numbers that record what they decide (`graph.symbols`). A third one for which everything
is decided the same way consists of the same code; of its own are numbers in its table, which the record computes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.native import host, stored
from catena.compiler.native.executable import Executable, Parts
from catena.compiler.native.fingerprint import Unnamed, Writer
from catena.core.aval import ShapedArray
from catena.core.config import TRACED
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr, Literal
from catena.core.named import NamedTuple
from catena.runtime.native import Code, Function, loaded, resolved, units

MOST_FAMILIES = 512
MOST_PLANS = 32  # of a family
FIRST_TRIES = 12  # before one is of use; then, where none was, once at each doubling of the programs that came,
FEW_NUMBERS = 12000  # but of a program of so many numbers two
SMALL = 1000  # numbers of a program that is planned so at its second length: of larger ones that may be the last batch
PATIENCE = 1  # programs of a larger one, besides the first, that are planned without


# ---- what jaxprs have in common ------------------------------------------------------------------------------


class Content:
    """An array that a jaxpr holds, among its numbers: what is in it, and the array while the program is looked for."""

    __slots__ = ("told", "array")

    def __init__(self, told: str, array: np.ndarray | None):
        self.told, self.array = told, array

    def __eq__(self, other):
        return type(other) is Content and self.told == other.told

    def __hash__(self):
        return hash(self.told)

    def __repr__(self):
        return self.told

    def alone(self) -> Content:
        """The same without the array, to be kept."""
        return Content(self.told, None)


class Reader(Writer):
    """Writes a jaxpr without its numbers, which are listed instead, in the order in which `recording` replaces them."""

    def __init__(self):
        super().__init__()
        self.found: list = []

    def atom(self, v, names: dict) -> str:
        if type(v) is not Literal:
            return names[v]
        held = getattr(v.val, "_value", v.val)
        if not is_number(held):
            return self.array(held) + self.value(v.aval)
        dtype = held.dtype.str
        self.found.append((held.tobytes(), dtype))
        return f"literal {dtype} {self.value(v.aval)}"

    def const(self, x) -> str:
        told, held = self.array(x), content_of(x)
        if held is None:
            return told
        self.found.append(Content(told, held))
        return f"array {held.dtype.str} {held.ndim}"

    def value(self, x) -> str:
        kind = type(x)
        if kind is int:
            self.found.append(x)
            return "#"
        if kind is ShapedArray:
            if not x.plain:
                raise Unnamed
            self.found += x.shape
            if x.extended:
                return f"{super().value(x.dtype)}/{x.ndim}{x.weak_type}"
            return _without_shape(x.dtype, x.ndim, x.weak_type)
        if kind is tuple:
            return f"tuple({','.join([self.value(y) for y in x])})"
        return super().value(x)


@functools.lru_cache(maxsize=256)
def _without_shape(dtype, ndim: int, weak_type: bool) -> str:
    return f"{dtype.name}/{ndim}{weak_type}"


def read(closed: ClosedJaxpr) -> tuple[str, list] | None:
    """The text of a jaxpr without its numbers, and these; None where another one could not be known by them."""
    if closed.jaxpr.effects:
        return None
    reader = Reader()
    try:
        reader.number(closed)
        return "\n".join(reader.text(each) for each in reader.jaxprs), reader.found
    except Unnamed:
        return None


def content_of(x) -> np.ndarray | None:
    """What is in an array that a jaxpr holds, if other jaxprs of its family may hold another."""
    held, aval = getattr(x, "_value", x), getattr(x, "aval", None)
    if type(held) is not np.ndarray or not held.shape or held.dtype.kind not in "fiub":
        return None
    return None if aval is not None and aval.extended else held


def is_number(held) -> bool:
    """Whether the value of a literal is one that may hang on an extent."""
    return type(held) is np.ndarray and not held.shape and held.dtype.kind in "fiu"


# ---- families ------------------------------------------------------------------------------------------------


class Pattern:
    """A program, as far as those of other lengths consist of the same."""

    def __init__(self, parts: Parts, made: Made):
        constants: list = [None if i in made.constants else x for i, x in enumerate(parts.constants)]
        self.parts = parts._replace(code=b"", linked=parts.functions, constants=constants)
        self.choices, self.constants = made.choices, made.constants

    def code(self) -> Code | None:
        """The code of all of them, if it is in the process."""
        return loaded(self.parts.code_name)

    def filled(self, code: Code, made: list, text: Callable[[], str]) -> Executable | None:
        """The program of this code of which that is so (`Made.numbers`), if what it calls is in the process."""
        count = len(self.parts.numbers)
        arena_bytes, flops, moved, *others = made[count:]
        each = iter(others)
        specs = [(tuple([next(each) for _ in shape]), dtype) for shape, dtype in self.parts.out_specs]
        imports = [*self.parts.imports]
        held = []  # code of functions that are found by `resolved`
        for choice in self.choices:
            imports[choice.place], one = choice.find(tuple([next(each) for _ in range(choice.numbers)]))
            held.append(one)
        linked = resolved(imports)
        if linked is None:
            return None
        constants = [*self.parts.constants]
        for i in self.constants:
            constants[i] = next(each)
        parts = self.parts._replace(
            code=code.object_code, numbers=made[:count], constants=constants, out_specs=specs,
            arena_bytes=arena_bytes, flops=flops, bytes=moved,
            imports=imports, found=[f.name for f in imports], units=units(linked) if held else self.parts.units,
        )  # fmt: skip
        return Executable(parts, text, {}, linked)


class Part(Pattern):
    """A program without arguments that computes constants of another (see `graph.settled`), at any length."""

    def __init__(self, executable: Executable, made: Made):
        super().__init__(executable.parts, made)
        self._native = executable.native  # whose code stays in the process

    def __call__(self, numbers: tuple) -> tuple[np.ndarray, ...]:
        """Its results.

        Raises: ArithmeticError where its code is gone.
        """
        code = self.code()
        executable = None if code is None else self.filled(code, [*numbers], str)  # nobody reads its text
        if executable is None:
            raise ArithmeticError("code that is gone")
        return executable()


class Plan(Pattern):
    """How programs at other lengths are had from one, as far as they consist of the same code."""

    def __init__(self, parts: Parts, alike: list, made: Made):
        super().__init__(parts, made)
        self.alike = _kept(alike)  # for each number of the jaxpr its value, or which argument of the function it is
        self._make = made.function
        self._function: Callable | None = None

    def arguments(self, numbers: list) -> list | None:
        """Those of the function; None where a number that did not change does, or two that were equal are not."""
        found: dict[int, object] = {}
        for i, x in zip(self.alike, numbers, strict=True):
            if type(i) is Argument:
                if found.setdefault(i.number, x) != x:
                    return None
            elif i != x:
                return None
        return [given(x) for x in found.values()]

    def made(self, numbers: list) -> list[int] | None:
        """What `told` lists, for these numbers of the jaxpr; None where something was decided by others."""
        make = self._make  # other threads may do the same meanwhile
        if self._function is None and make is not None:
            self._function, self._make = make(), None
        given = self.arguments(numbers)
        try:
            return None if given is None or self._function is None else self._function(*given)
        except ArithmeticError:  # a quotient that was one is none: what led there was decided by others
            return None

    def program(self, numbers: list, text: Callable[[], str]) -> Executable | None:
        """The program for these numbers of the jaxpr, if it is of this code, and that is in the process."""
        code = self.code()
        made = None if code is None else self.made(numbers)
        return None if code is None or made is None else self.filled(code, made, text)


class Argument(NamedTuple):
    number: int


class Chosen(NamedTuple):
    """An import that is another function at other lengths: its place, and what finds it by so many numbers."""

    place: int
    numbers: int
    find: Callable[[tuple[int, ...]], tuple[Function, Code]]


class Made:
    """What other lengths change of a program: numbers (`told`), behind them those of its choices and constants, and
    what makes the function that gives them for other numbers of the jaxpr.
    """

    def __init__(self, is_part: bool = False):
        self.is_part = is_part  # of another program, of which the rest is planned still
        self.numbers: list = []
        self.choices: list[Chosen] = []
        self.constants: list[int] = []  # which of the program's constants come last in `numbers`
        self.function: Callable[[], Callable] | None = None


class Family:
    """Jaxprs of one text."""

    def __init__(self, first: list):
        self.first = _kept(first)  # the numbers of the one that was met first
        self.plans: list[Plan] = []  # that which was of use last first
        self.tries = 0  # programs that were planned with numbers that record,
        self.found = 0  # and those that were had from them
        self.came = 0  # programs that were not had from these

    def is_worth_it(self) -> bool:
        """Whether to plan once more so, which takes a third longer."""
        self.came += 1
        if not self.first or len(self.first) > SMALL and self.came <= PATIENCE:
            return False
        first = min(FIRST_TRIES, 1 + FEW_NUMBERS // len(self.first))
        is_doubled = not self.came & (self.came - 1)
        return self.tries < first + self.found or is_doubled

    def recorded(self, numbers: list) -> list:
        """What `compile.compile_recorded` is given: those that differ from the first program's in lists, those of them
        that were equal, and are, in one.
        """
        changed: dict[tuple, list] = {}
        pairs = zip(self.first, numbers, strict=True)
        return [changed.setdefault((old, new), [new]) if old != new else new for old, new in pairs]

    def add(self, executable: Executable, given: list, made: Made) -> None:
        """Keeps what was recorded, unless the program calls what is its own."""
        parts = executable.parts
        if not parts.is_bound and not parts.sites and stored.is_free(parts):
            places: dict[int, Argument] = {}
            for x in given:
                if type(x) is list:
                    places.setdefault(id(x), Argument(len(places)))
            plan = Plan(parts, [places.get(id(x), x) for x in given], made)
            self.plans = [plan, *self.plans[: MOST_PLANS - 1]]  # a new list: other threads may go through the old one

    def find(self, numbers: list, text: Callable[[], str]) -> Executable | None:
        """The program for these numbers of the jaxpr, if one of the plans says it."""
        for plan in self.plans:
            executable = plan.program(numbers, text)
            if executable is not None:
                self.found += 1
                self.plans = [plan, *(p for p in self.plans if p is not plan)]
                return executable
        return None


_families: dict[tuple, Family] = {}


def told(numbers: Sequence[int], arena_bytes: int, flops: int, moved: int, outputs: Sequence) -> list:
    """All by which programs of one plan differ."""
    return [*numbers, arena_bytes, flops, moved, *(n for v in outputs for n in v.shape)]


def family_of(text: str, donated: tuple[bool, ...], numbers: list) -> Family | None:
    """The family of a jaxpr, under the flags in force; None where programs tell more than their code."""
    if context.dump_ir_to or context.check_bounds:
        return None
    flags = [repr(getattr(context, flag.attribute)) for flag in TRACED]
    key = (text, tuple(donated), *flags, host.this_machine())
    found = _families.get(key)
    if found is None:
        if len(_families) >= MOST_FAMILIES:
            _families.clear()
        found = _families[key] = Family(numbers)
    return found


def _kept(numbers: list) -> list:
    """Numbers of a jaxpr without the arrays that it holds."""
    return [x.alone() if type(x) is Content else x for x in numbers]


def given(x):
    """What a function of numbers that were read is given for one: an extent, the number of a literal, an array."""
    return scalar_of(*x) if type(x) is tuple else x.array if type(x) is Content else x


def scalar_of(content: bytes, dtype: str) -> np.generic:
    """The number of a literal, as it was read."""
    return np.frombuffer(content, dtype)[0]
