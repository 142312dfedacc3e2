"""Checks compiled in: tests of operands and results, as nodes of the graph that hand on the value which they test.

Such a node, the operation ``checked`` of a value, of whether it fails there, and of values to show, is computed where
the value is: its loop nest tests each element as it makes it (``kernels.body``), and calls a routine where one fails,
which notes the first failure in the program's cell (``runtime.status``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.compiler.graph.forms import Map
from catena.core import value_checks
from catena.core.dtypes import KIND
from catena.core.failures import MADE, Loop, Site
from catena.core.named import NamedTuple
from catena.core.source import user_source
from catena.core.value_checks import Probe

MOST_SHOWN = 3
SHOWN = frozenset(np.dtype(t) for t in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))


class Checks(NamedTuple):
    """What a region is tested for; the sites of the program so far, which its regions share; the loops around."""

    kinds: frozenset
    sites: list[Site]
    loops: tuple[Loop, ...] = ()

    def inside(self, source, each: int = 1) -> Checks:
        """The checks of a loop's body."""
        return self._replace(loops=(*self.loops, Loop(source or user_source(), each)))

    def more(self, kinds: str) -> Checks:
        """These and some more kinds, with commas between them."""
        return self._replace(kinds=self.kinds | {*kinds.split(",")}) if kinds else self

    def around(self, b, eqn, rule, operands: list) -> list:
        """The results of an equation, by its lowering rule. Tested are they and the operands, not what the rule makes
        of the equation, unless that is a program.
        """
        if not self.kinds:
            return _several(rule(b, *operands, **eqn.own_params))
        if value_checks.runs_program(eqn):
            results = _several(rule(b, *operands, **eqn.own_params))
            return self.quiet().after(b, eqn, operands, results) if eqn.primitive.name == "cond" else results
        b.checks = self._replace(kinds=frozenset())
        operands = self.before(b, eqn, operands)
        results = self.after(b, eqn, operands, _several(rule(b, *operands, **eqn.own_params)))
        b.checks = self
        return results

    def quiet(self) -> Checks:
        """Those for what is in results, whether an operation makes it or, as branches may, hands it on."""
        return self._replace(kinds=frozenset(kind for kind in self.kinds if MADE.get(kind, kind) != kind))

    def before(self, b, eqn, operands: list) -> list:
        """The operands of an equation, tested."""
        tested, numbers = list(operands), GraphNumbers(b)
        for test in value_checks.operand_tests(numbers, self.kinds, eqn.primitive, eqn.own_params, operands):
            x = operands[test.position]
            tested[test.position] = self._checked(b, eqn, tested[test.position], test, x.shape)
        return tested

    def after(self, b, eqn, operands: list, results: list) -> list:
        """The results of an equation, tested; those of a program were tested where they were made."""
        tested, numbers = list(results), GraphNumbers(b)
        tests = value_checks.result_tests(numbers, self.kinds, eqn.primitive, eqn.own_params, operands, results)
        for test in tests:
            y = results[test.position]
            tested[test.position] = self._checked(b, eqn, tested[test.position], test, y.shape)
        return tested

    def _checked(self, b, eqn, x, test: Probe, shape: tuple):
        if test.failed.form == "constant" and not test.failed.params.array.any():
            return x
        shown = [s for s in test.shown if s.dtype in SHOWN and s.shape in (shape, ())][:MOST_SHOWN]
        examples = value_checks.examples_of(eqn, test)
        dtypes = tuple(s.dtype for s in shown)
        site = Site(test.kind, eqn.primitive.name, eqn.source, shape, dtypes, self.loops, examples, test.details)
        self.sites.append(site)
        args = [x, *(numbers_spread(b, y, shape) for y in (test.failed, *shown))]
        return b.value("map", shape, x.dtype, args, Map("checked", len(self.sites) - 1))


def _several(result) -> list:
    return list(result) if isinstance(result, list | tuple) else [result]


def numbers_spread(b, x, shape: tuple):
    """``x`` repeated along axes of size 1, or as often as there are elements."""
    if x.shape == tuple(shape):
        return x
    return b.broadcast_in_dim(x, shape, tuple(range(len(shape))) if x.ndim == len(shape) else ())


class GraphNumbers:
    """The operations of tests as nodes of the graph."""

    def __init__(self, b):
        self.b = b

    def map(self, op: str, *xs):
        shape: Any = np.broadcast_shapes(*(x.shape for x in xs))
        return self.b.map(op, *(numbers_spread(self.b, x, shape) for x in xs))

    def any(self, x, axes: tuple):
        return self.b.reduce("or", x, axes)

    def convert(self, x, dtype):
        return self.b.convert(x, dtype)

    def unsigned(self, x):
        return x if KIND[x.dtype] == "u" else self.b.bitcast(x, np.dtype(f"u{x.dtype.itemsize}"))

    def constant(self, value, dtype):
        return self.b.constant(np.asarray(value).astype(dtype))

    def spread(self, x, shape: tuple):
        return numbers_spread(self.b, x, tuple(shape))

    def along(self, row: np.ndarray, shape: tuple):
        return self.b.broadcast_in_dim(self.b.constant(row), shape, (len(shape) - 1,))

    def again(self, primitive, operands: list, params: dict):
        return primitive.rule("lower")(self.b, *operands, **params)
