"""A program as LLVM modules: all of it as one, or its entry and its functions each by themselves.

Functions are named by their text, so equal ones are one, in all programs. An entry reads its sizes from a table, and in
a module of its own each call finds its function there, by the order of the calls: so entries that differ in these alone
are one text, also where two of their functions are the same one by chance.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from catena.compiler.graph.symbols import Computed
from catena.core.named import NamedTuple

NUMBERS = "%numbers"  # where an entry has its program's sizes: extents, places in its memory, chunks
TABLE = "  ; "  # ends a line that asks where functions are, before their names
NOT_INLINED = "nounwind noinline {"  # ends the head of a function that stays one, for other programs to call
COLD = "nounwind noinline cold {"  # likewise, of one that hardly ever runs: it is compiled by itself, at less effort


@dataclass
class Module:
    """What the linker needs."""

    head: str  # globals
    literals: dict[str, str]  # constants in memory, by name
    functions: dict[str, str]  # parameters and bodies by name, callees before callers
    entry: str
    constants: list[np.ndarray]
    externals: list  # addresses or callables, bound at load in this order
    numbers: list[int]
    helpers: dict
    interruptible: bool = False
    sites: list[str] = field(default_factory=list)  # of bounds checks, in checked mode
    choices: dict[str, Choice] = field(default_factory=dict)  # by what the entry calls them

    def text(self) -> str:
        """LLVM IR of the whole program, but for the helpers that it calls, with a comment that says its numbers."""
        names = self.needed()
        said = f"; {NUMBERS}: {', '.join(map(str, self.numbers))}"
        parts = [*self.literals.values(), *self._defined(names, self.exported(names)), said, _with_table(self, ())]
        return "\n".join([self.head, *parts])

    def of_functions(self, names: Collection[str], exported: Collection[str]) -> str:
        """LLVM IR of some of the functions, for all programs; others that they call are declared."""
        texts = [self.functions[name] for name in names]
        parts = [*self._declared(texts, names), *self._defined(names, exported)]
        return "\n".join([*_literals_in(self, parts), *parts])

    def of_entry(self, own: Collection[str]) -> tuple[str, list[str]]:
        """LLVM IR of the entry and the functions of its `own`, which call no others; and those that it calls otherwise,
        whose addresses it has in its table: one for each place of the text that names a function, in this order.
        """
        called = [] if own else self.called
        parts = [*self._defined(own, self.exported(own)), _with_table(self, called)]
        return "\n".join([self.head, *_literals_in(self, parts), *parts]), called

    @property
    def called(self) -> list[str]:
        """The functions that the entry calls or passes on, as often as it does."""
        return [self.choices[name].name if name in self.choices else name for name in calls(self.entry)]

    def exported(self, names: Collection[str]) -> list[str]:
        """The functions that a module of these defines as such. Those with one caller, which runs chunks, are parts of
        it: they cost LLVM half as much.
        """
        if not names:
            return []
        count = Counter(called for name in self.needed() for called in facts(self.functions[name]).calls)
        count.update(self.called)
        inner = {called for name in names for called in facts(self.functions[name]).calls}
        return [n for n in names if n not in inner or count[n] != 1 or stays_one(self.functions[n])]

    def needed(self) -> list[str]:
        """The functions that the entry reaches, callees first."""
        needed = set(self.called)
        for name, body in reversed(self.functions.items()):
            if name in needed:
                needed.update(facts(body).calls)
        return [name for name in self.functions if name in needed]

    @property
    def size(self) -> int:
        """Characters of its text, about."""
        return len(self.entry) + sum(map(len, self.functions.values()))

    def math_calls(self) -> Counter:
        """How often functions of mathematics are called, by their symbols, by what does not hardly ever run: whether
        that has them in place hangs on itself.
        """
        count = Counter(MATH_CALL.findall(self.entry))
        for name in self.needed():
            if COLD not in self.functions[name]:
                count.update(facts(self.functions[name]).math)
        return count

    def _declared(self, texts: Iterable[str], defined: Collection[str]) -> list[str]:
        """Declarations of what texts call beside the functions that are defined."""
        others = dict.fromkeys(called for text in texts for called in calls(text) if called not in defined)
        heads = ((name, self.functions[name].partition(")")[0]) for name in others)
        return [f"declare void @{name}{_NAME.sub('', head)})" for name, head in heads]

    def _defined(self, names: Collection[str], exported: Collection[str]) -> list[str]:
        return [
            f"define dso_local void @{name}{self.functions[name]}"
            if name in exported
            else f"define internal void @{name}{_always_inline(self.functions[name])}"
            for name in names
        ]


def _with_table(module: Module, called: Sequence[str]) -> str:
    """The entry, with what it finds in its table: the arena that it keeps between calls, constants, externals,
    functions that it does not call by their names, numbers. Loops have none of it.
    """
    entry = module.entry
    for name, choice in module.choices.items():
        entry = entry.replace(name, choice.name)
    if "ptr %table)" not in entry:
        return entry
    functions = 1 + len(module.constants) + len(module.externals)
    places = {"constants": 1, "externals": 1 + len(module.constants), "numbers": functions + len(called)}
    heads = [f"  %{name} = getelementptr i64, ptr %table, i64 {at}" for name, at in places.items()]
    text = _from_table(entry, functions) if called else entry
    return text.replace("entry:\n", "\n".join(["entry:", *heads, ""]), 1)


def _from_table(entry: str, first: int) -> str:
    """An entry that reads the addresses of functions where it needs them, from its table, the place `first` and on."""
    places = itertools.count(first)

    def read(line: re.Match) -> str:
        """The lines before this one that read the addresses, and this one with these."""
        lines, found = [], [next(places) for _ in calls(line[0])]
        if TABLE in line[0]:
            return f"{line[0].partition(' = ')[0]} = getelementptr ptr, ptr %table, i64 {found[0]}"
        for i in found:
            at = f"  %k{i}_at = getelementptr ptr, ptr %table, i64 {i}"
            lines += [at, f"  %k{i} = load ptr, ptr %k{i}_at, align 8"]
        names = iter(found)
        return "\n".join([*lines, _FUNCTION.sub(lambda _: f"%k{next(names)}", line[0])])

    return _LINE_WITH_FUNCTION.sub(read, entry)


def _literals_in(module: Module, texts: Iterable[str]) -> list[str]:
    used = {name for text in texts for name in _LITERAL.findall(text)}
    return [line for name, line in module.literals.items() if name in used]


class Choice(NamedTuple):
    """A function whose text hangs on numbers that record: `write` makes that of any such numbers. The entry has another
    name for it, which says where programs of other lengths have another function.
    """

    name: str
    write: Callable[[tuple[int, ...]], str]
    numbers: list


class Texts:
    """What a program's text consists of beside its entry, while it is being written."""

    def __init__(self):
        self.functions: dict[str, str] = {}  # text -> name
        self.kernels: dict[tuple, str] = {}  # structure of a loop nest -> name of its function
        self.of_nests: dict = {}  # the same, by the nest itself
        self.variants: Counter = Counter()  # structure but for constants -> how many there are
        self.helpers: dict = {}
        self._constants: dict[int, tuple[int, np.ndarray]] = {}  # by their identity: the number of each
        self._externals: list = []
        self._numbers: list[int] = []
        self._tables: list[tuple[int, list[int]]] = []  # and behind them tables, with where it is told where they begin
        self._choices: dict[str, Choice] = {}
        self.tasks: dict = {}  # what tasks of products are made of, by what decides it
        self._literals: dict[str, str] = {}  # constants in memory, for routines that want addresses

    def constant(self, array: np.ndarray) -> tuple[int, bool]:
        """The number of a constant array, and whether it is new."""
        known = len(self._constants)
        return self._constants.setdefault(id(array), (known, array))[0], len(self._constants) > known

    def external(self, target) -> int:
        """The number of a library function or callback."""
        if target not in self._externals:
            self._externals.append(target)
        return self._externals.index(target)

    def literal(self, name: str, value: str) -> str:
        """The name of a constant in the module."""
        self._literals[f"@{name}"] = f"@{name} = private unnamed_addr constant {value}"
        return f"@{name}"

    def numbers(self, values: Sequence[int]) -> int:
        """Where in the table these numbers begin."""
        self._numbers += values
        return len(self._numbers) - len(values)

    def table(self, values: Sequence[int]) -> int:
        """Which number says where these numbers begin: of as many as there are, the text tells nothing."""
        self._tables.append((self.numbers([0]), [*values]))
        return self._tables[-1][0]

    def all_numbers(self) -> list[int]:
        """The numbers, and the tables behind them."""
        found = [*self._numbers]
        for told_at, values in self._tables:
            found[told_at] = len(found)
            found += values
        return found

    def function(self, body: str) -> str:
        return self.functions.setdefault(body, f"f{digest(body)}")

    def chosen(self, write: Callable[[tuple[int, ...]], str], numbers: Computed) -> str:
        """What the entry calls the function that is written for numbers that record, if it calls no others itself."""
        each, body = [numbers[i] for i in range(len(numbers.value))], write(numbers.value)
        if facts(body) != NOTHING:
            return self.function(write(tuple(map(int, each))))
        made = Choice(self.function(body), write, each)
        name = f"f{digest(f'{made.name} {numbers.name}')}"
        self._choices[name] = made
        return name

    @property
    def is_plain(self) -> bool:
        """Whether nothing is bound at load."""
        return not self._constants and not self._externals and not self._numbers

    def module(self, entry: str, globals_: list[str], interruptible: bool, sites: list[str]) -> Module:
        functions = {name: body for body, name in self.functions.items()}
        return Module(
            head="\n".join(globals_),
            literals=self._literals,
            functions=functions,
            entry=entry,
            constants=[array for _, array in self._constants.values()],
            externals=self._externals,
            numbers=self.all_numbers(),
            helpers=self.helpers,
            interruptible=interruptible,
            sites=sites,
            choices=self._choices,
        )


_FUNCTION = re.compile(r"@(f[0-9a-f]{24})\b")  # see `digest`
_LINE_WITH_FUNCTION = re.compile(rf"^.*{_FUNCTION.pattern}.*$", re.MULTILINE)
_LITERAL = re.compile(r"@k\.[\w.-]+")  # see `ProgramWriter.literal`
MATH_CALL = re.compile(r"call [^@\n]*(@catena\.[\w.]+)\(")
_BOUND = re.compile(r"@violation\b")  # which each program has for itself
_NAME = re.compile(r" %\w+")


def calls(text: str) -> list[str]:
    """The functions of a module that a text calls or passes on, as often as it does."""
    return _FUNCTION.findall(text)


class Facts(NamedTuple):
    """What a function's text says of it."""

    calls: list[str]  # functions of the module, as often as it calls them
    math: Counter  # functions of mathematics, likewise
    bound: bool  # whether it hangs on what differs between programs


NOTHING = Facts([], Counter(), False)


@functools.lru_cache(maxsize=1024)
def facts(body: str) -> Facts:
    return Facts(calls(body), Counter(MATH_CALL.findall(body)), _BOUND.search(body) is not None)


def stays_one(body: str) -> bool:
    """Whether a function is never written in place."""
    return NOT_INLINED in body or COLD in body


def _always_inline(body: str) -> str:
    return body.replace(") nounwind {", ") alwaysinline nounwind {", 1)


@functools.lru_cache(maxsize=1024)
def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
