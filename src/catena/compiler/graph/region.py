"""The compiler's graph: values of a small closed set of forms, in regions.

A `Value` is one array of the program: what forms it, from which other values, with which static parameters.
Equal pure values are one object (the `builder` hash-conses), so common subexpressions vanish while the graph is
written.

    input                                        an operand of the region
    constant array                               a NumPy array (scalars included)
    map op args                                  elementwise
    iota                                         position along one dimension
    broadcast transpose reshape slice reverse
    pad gather dynamic_slice window              views: an index map into the operand
    alias                                        the same bytes under another dtype and shape
    reduce argreduce reduce_general cumulative   along axes
    concatenate dynamic_update_slice scatter     written piecewise
    runs                                         sums of neighbouring rows, as many as the operand says
    dot convolve                                 contractions
    sort_keys argsort lapack while scan ...      several results, each an `output`

`FORMS` (`forms.py`) says what each form is.

Loops and branches hold `Region`s: closed graphs with their own inputs and outputs.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from catena.compiler.graph.forms import FORMS
from catena.core.errors import OutOfMemoryError, value_too_large


def too_large(value: Value) -> OutOfMemoryError:
    """The error for a value that no machine can hold."""
    return value_too_large(value.shape, value.dtype, value.nbytes, value.source)


class Value:
    """One array of the program."""

    __slots__ = (
        "form",
        "shape",
        "size",
        "dtype",
        "args",
        "params",
        "number",
        "source",
        "bounds",
        "_results",
        "__weakref__",
    )

    def __init__(self, form: str, shape: tuple, dtype: np.dtype, args: tuple, params, number: int, source=None):
        self.form, self.shape, self.dtype = form, shape, dtype
        self.size = math.prod(shape)  # asked for many times; a shape only ever changes its order
        self.args, self.params, self.number = args, params, number  # of the type that its row in `FORMS` names
        self.source = source  # where in the user's program it was first asked for
        self.bounds: Any = None  # where its integers lie, if that is known: see `intervals`
        self._results: tuple = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def regions(self) -> tuple[Region, ...]:
        """What a loop or branch runs: of `while`, the condition and the body."""
        return tuple(self.params.regions) if FORMS[self.form].control else ()

    @property
    def results(self) -> list[Value]:
        """The results of a node that has several. A result holds its node, and the region both; held by its node too,
        it would keep all that the graph refers to, a callback's closure among it, until the garbage collector runs.
        """
        return [r() for r in self._results]

    @results.setter
    def results(self, values: list[Value]) -> None:
        self._results = tuple(map(weakref.ref, values))

    def __repr__(self) -> str:
        return f"v{self.number}:{self.dtype.name}{list(self.shape)}"


@dataclass(eq=False)
class Region:
    """A closed graph: inputs, every value in creation (hence topological) order, outputs."""

    inputs: list[Value]
    values: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    effects: list[Value] = field(default_factory=list)
    sites: list = field(default_factory=list)  # of a program, what it is checked for: see `checks`

    def __str__(self) -> str:
        lines = [f"region({', '.join(map(repr, self.inputs))})"]
        for v in self.live():
            if v.form not in ("input", "output"):
                lines.append(f"  {show(v)}")
        return "\n".join(lines + [f"  return {', '.join(map(repr, self.outputs))}"])

    def walk(self) -> Iterator[Region]:
        """The region, and those of the loops and branches in it; whoever is given one may change what it holds."""
        pending = [self]
        while pending:
            each = pending.pop()
            yield each
            pending += [inner for v in each.values for inner in v.regions]

    def live(self) -> list[Value]:
        """Values that outputs or effects reach, and the inputs, in topological order."""
        marked = {v.number for v in (*self.outputs, *self.effects, *self.inputs)}
        for v in reversed(self.values):
            if v.number in marked:
                for a in v.args:
                    marked.add(a.number)
                for o in v.results if v._results else ():
                    marked.add(o.number)
        return [v for v in self.values if v.number in marked]

    def control(self) -> list[Value]:
        """The live loops and branches, in topological order."""
        if not any(FORMS[v.form].control for v in self.values):
            return []
        return [v for v in self.live() if FORMS[v.form].control]

    def users(self, live: Sequence[Value] | None = None) -> dict[int, list[Value]]:
        """The live values that read each live value; who has found out which those are hands them on."""
        live = self.live() if live is None else live
        users: dict[int, list[Value]] = {v.number: [] for v in live}
        for v in live:
            args = v.args
            for n in {a.number for a in args} if len(args) > 1 else [a.number for a in args]:
                users[n].append(v)
        return users


def show(v: Value) -> str:
    """A value and what forms it."""
    return f"{v!r} = {v.form} {' '.join(f'v{a.number}' for a in v.args)} {_brief(v.params)}"


def _brief(params) -> str:
    shown = []
    for key, val in zip(params._fields, params):
        if val is None:
            continue
        text = f"array{list(val.shape)}" if isinstance(val, np.ndarray) and val.ndim else str(val)
        shown.append(f"{key}={text}" if len(text) < 200 else f"{key}=...")
    return " ".join(shown)
