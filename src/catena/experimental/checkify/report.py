"""What checks have found so far: the number of the first that failed, and the values that it kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena.core.array import as_array
from catena.core.trace import Tracer
from catena.core.zeros import zeros
from catena.experimental.checkify.errors import Check, by_kind, kinds
from catena.lax import add, bitwise_and, cond, eq, ne, select
from catena.lax.control_flow.common import converted
from catena.lax.control_flow.scan import bind_zeros


def blank(aval):
    """A value of any type, where nothing is kept yet."""
    return bind_zeros(aval) if aval.extended else zeros(aval)


def blanks(checks) -> list:
    """The leaves of a report of these checks in which nothing failed."""
    return [np.int32(0), *[blank(aval) for kind in kinds(checks) for aval in kind]] if checks else []


class Report:
    """The state of a checked computation.

    ``code`` is 0 while nothing failed, then the number, from 1 on, of the check in ``checks`` that failed first; it is
    ``None`` while nothing could fail. It is one integer, however many checks there are: whether a program failed is
    known by one comparison. ``kept`` has the values of the failure, by their types.

    Checks of known values that do not fail leave no trace, so that a long eager computation has a short report.
    """

    __slots__ = ("checks", "code", "kept", "_places")

    def __init__(self):
        self.checks: list[Check] = []
        self.code = None
        self.kept: dict[tuple, list] = {}
        self._places: dict[int, tuple] = {}  # by id of a tuple of checks: where it starts, and the tuple, kept alive

    def add(self, failed, check: Check, keep: list | Callable[[], list] = ()):
        """Note a check that fails where ``failed``, a scalar, holds.

        Arguments:
          failed: whether it does.
          check: what it is.
          keep: the values that it keeps, or a function that gives them: called, or traced into a branch, for the
            first failure only.
        """
        self._note(failed, lambda start: np.int32(start + 1), (check,), keep)

    def absorb(self, code, leaves: list, checks: tuple):
        """Note what another report of these checks found: its code, and the values that it kept, of all kinds."""
        if checks:
            number = lambda start: add(code, np.int32(start)) if start else code  # noqa: E731
            self._note(ne(code, np.int32(0)), number, checks, leaves)

    def _note(self, failed, number: Callable, checks: tuple, keep):
        if not isinstance(failed, Tracer):
            if not bool(failed) or (self.code is not None and not isinstance(self.code, Tracer) and int(self.code)):
                return
            failed = as_array(np.bool_(True))
        start = self._place(checks)
        new = number(start)
        first = failed if self.code is None else bitwise_and(failed, eq(self.code, np.int32(0)))
        self.code = select(first, new, np.int32(0) if self.code is None else self.code)
        self._keep_first(first, checks, keep)

    def _keep_first(self, first, checks: tuple, keep):
        """Keep what these checks keep, a list or a function that gives one, where theirs is the first failure."""
        held = kinds(checks)
        avals = [aval for kind in held for aval in kind]
        before = [x for kind in held for x in self.kept.get(kind) or [blank(aval) for aval in kind]]
        if callable(keep):
            leaves = cond(first, lambda _: converted(keep(), avals), list, before)
        elif any(kind in self.kept for kind in held):
            leaves = [select(first, new, old) for new, old in zip(converted(keep, avals), before, strict=True)]
        else:
            leaves = converted(keep, avals)
        self.kept |= by_kind(checks, leaves)

    def resume(self, checks: tuple, leaves: list):
        """Begin where a report of these checks stood; ``leaves`` are those it had."""
        self.code, *kept = leaves
        self.checks, self.kept = list(checks), by_kind(checks, kept)
        self.place(checks, 0)

    def place(self, checks: tuple, start: int):
        """Say where these checks stand among all."""
        self._places[id(checks)] = start, checks

    def _place(self, checks: tuple) -> int:
        """The number of checks before these, which are added to the list if they do not stand there."""
        if id(checks) not in self._places:
            self.place(checks, len(self.checks))
            self.checks.extend(checks)
        return self._places[id(checks)][0]

    def _first_kept(self, first, checks: tuple, keep: Callable[[], list]) -> dict:
        """The values of these checks' kinds, where they are those of the first failure; else as they were."""
        if not kinds(checks):
            return {}
        before = [x for kind in kinds(checks) for x in self.kept.get(kind) or [zeros(aval) for aval in kind]]
        avals = [aval for kind in kinds(checks) for aval in kind]
        leaves = cond(first, lambda _: converted(keep(), avals), lambda old: list(old), before)
        return by_kind(checks, leaves)

    def leaves(self) -> list:
        """The code and the values of all kinds, in order, for those who hand them on together with ``checks``."""
        code = np.int32(0) if self.code is None else self.code
        return [code, *[x for kind in kinds(self.checks) for x in self.kept[kind]]] if self.checks else []
