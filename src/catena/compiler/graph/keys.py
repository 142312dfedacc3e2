"""Numbers that record (`symbols`) in the keys of caches and dictionaries, so that to look for them decides nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from catena.compiler.graph.symbols import Symbol, Unrecorded, state
from catena.compiler.graph.varying import varies


class Kept(Protocol):
    """What `functools.lru_cache` makes of a function."""

    __wrapped__: Callable

    def __call__(self, *args) -> Any: ...


def remembered(maxsize: int) -> Callable:
    """`functools.lru_cache`, which numbers that record pass by: to find them there is to decide what they are."""
    return lambda function: unkept(functools.lru_cache(maxsize)(function))


def unkept(kept: Kept) -> Callable:
    """A function that `functools.lru_cache` decorates, as `remembered` has it."""
    function = kept.__wrapped__
    return functools.wraps(function)(lambda *args: kept(*args) if is_plain(args) else function(*args))


def is_plain(x) -> bool:
    """Whether data holds no numbers that record, as far as one can see."""
    return state.record is None or _is_plain(x)


PLAIN = frozenset([int, bool, str, type(None)])


def _is_plain(x) -> bool:
    kind = type(x)
    return kind in PLAIN or issubclass(kind, float) or issubclass(kind, (tuple, frozenset)) and all(map(_is_plain, x))


def of(x):
    """What stands for plain data in a dictionary of one program's: numbers that record are told by their names, so
    that nothing is decided by looking for them.
    """
    return x if state.record is None else _named(x)


def _named(x):
    if type(x) is Symbol:
        return x.value if x.record.closed else (Symbol, x.name)
    return tuple(map(_named, x)) if isinstance(x, tuple) else x


class Keys:
    """The numbers in keys of one dictionary, by which what is asked for again is made once: which of them are equal is
    written down. That others differ is not: where they do not, the same is made twice, as it is of numbers that are
    equal by chance at the length at hand.
    """

    def __init__(self):
        self.first: dict[int, list] = {}  # by their value: the numbers that came first, which differ elsewhere

    def plain(self, x: int) -> int | tuple[int, int]:
        """The key of a number: its value; of one that records that, and which of those it is that have it by chance. It
        is never the key of a plain number, which this does not hear of where it is a part of data.
        """
        if type(x) is not Symbol or x.record.closed:  # a plain number by now
            return int(x)
        value = x.value
        known = self.first.setdefault(value, [])
        at = next((i for i, one in enumerate(known) if one is x or not varies(one - x)), len(known))
        if at == len(known):
            known.append(x)
        elif known[at] is not x and known[at] != x:  # which writes it down
            raise Unrecorded("equal numbers that differ")
        return value, at

    def of(self, x):
        """The key of data."""
        return x if state.record is None else self._of(x)

    def _of(self, x):
        if type(x) is Symbol:
            return self.plain(x)
        return tuple(map(self._of, x)) if isinstance(x, tuple) else x
