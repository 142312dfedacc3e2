"""What is known of a scheduled loop nest before it is written: its statements by loop, and their accesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from catena.compiler import vector_math
from catena.compiler.emit import divisions, joins, small
from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import columns, conditions
from catena.compiler.kernels.loops import LOADS, Nest


class Layout:
    """The facts of one nest."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.kept = sum(d not in nest.reduced for d in nest.order)  # loops around those that are folded away
        self.settled: dict[int, bool] = {}  # conditions that are known in the pieces of loops that are written
        self.joined: joins.Rows | None = None  # the rows whose lanes are joined, which hangs on how loops are written
        self.needed: set[int] | None = None  # the statements that are wanted there; None for all

    @contextmanager
    def where(self, found: Mapping[int, bool]) -> Iterator[None]:
        """Pieces of loops where these conditions are known, too."""
        before = self.settled, self.needed
        if found:
            self.settled = conditions.follow(self.nest, {**self.settled, **found})
            self.needed = conditions.needed(self.nest, self.settled)
            for group in self.loads_together.values():
                self.needed.update(group if self.needed.intersection(group) else ())
        yield
        self.settled, self.needed = before

    def is_needed(self, i: int) -> bool:
        """Whether a statement is wanted in the pieces of loops that are written."""
        return self.needed is None or i in self.needed

    @cached_property
    def levels(self) -> list[list[int]]:
        """Statements by the number of loops around them."""
        by_level: list[list[int]] = [[] for _ in range(len(self.nest.order) + 1)]
        for i in range(len(self.nest.stmts)):
            by_level[self._level(i)].append(i)
        return by_level

    def _level(self, i: int) -> int:
        mask = self.nest.depends[i]
        return max((k + 1 for k, d in enumerate(self.nest.order) if mask >> d & 1), default=0)

    @cached_property
    def first_stages(self) -> dict[int, list[int]]:
        """Functions in two stages, by the last statement that is written of those that the first stage reads."""
        waiting: dict[int, list[int]] = {}
        for i, s in enumerate(self.nest.stmts):
            if known := self.known(i):
                operands = [a for p, a in zip(vector_math.PARAMETERS, s.args) if p in known]
                last = max(operands, key=lambda a: (self._level(a), self.nest.stmts[a].op != "const", a))
                if self._level(last) < self._level(i):
                    waiting.setdefault(last, []).append(i)
        return waiting

    @cached_property
    def chosen(self) -> frozenset[int]:
        """The loads that choices by lanes may leave out, or what is made of them at once (see `strided.neighbours`)."""
        stmts = self.nest.stmts
        made = {a for s in stmts if s.op == "select" and stmts[s.args[0]].op != "const" for a in s.args[1:]}
        found = made | {a for i in made for a in stmts[i].args}
        return frozenset(i for i in found if stmts[i].op == "load" and not stmts[i].args)

    @cached_property
    def told(self) -> small.Told:
        """The statements that tell whether something may be small."""
        return small.told(self)

    @cached_property
    def parts(self) -> small.Parts | None:
        """The innermost statements, where some are written twice."""
        return small.parts(self)

    @cached_property
    def divisions(self) -> divisions.Divisions:
        """How quotients are made."""
        return divisions.Divisions(self.nest)

    def function(self, i: int) -> str:
        """The function of the library that a statement is; of divisions, which are none, where these take longest."""
        return self.divisions.function(i) if self.nest.stmts[i].op == "div" else self.nest.stmts[i].op

    def known(self, i: int) -> str:
        """The parameters that are the same in all lanes, of a function that is done in two stages. What hangs on
        constants of one that is written where it is used, LLVM computes.
        """
        s, v, name = self.nest.stmts[i], self.nest.vector, self.function(i)
        if v is None or name == s.op and s.op not in vector_math.NAMES or len(s.args) < 2 or TYPES[s.type].kind != "f":
            return ""
        same = [p for p, a in zip(vector_math.PARAMETERS, s.args) if not self.nest.depends[a] >> v & 1]
        given = [p for p, a in zip(vector_math.PARAMETERS, s.args) if p in same and self.nest.stmts[a].op != "const"]
        known, register = "".join(same), TYPES[s.type].register
        if not same or len(same) == len(s.args) or not vector_math.in_stages(name, known, register):
            return ""
        return known if given or name != s.op or not vector_math.is_inlined(name, register) else ""

    @cached_property
    def accesses(self) -> list[tuple]:
        """(key, buffer, memory type, offset) of each load, store and fold result."""
        out = [(i, *s.attr) for i, s in enumerate(self.nest.stmts) if s.op in LOADS]
        out += [(("store", i), s.buffer, s.dtype, s.offset) for i, s in enumerate(self.nest.stores)]
        out += [(("fold", i, j), b, t, o) for i, f in enumerate(self.nest.folds) for j, (b, t, o) in enumerate(f.dests)]
        return [(k, b, TYPES[t].memory, o) for k, b, t, o in out]

    @cached_property
    def bounds(self) -> set[int]:
        """Numbers that places are compared with, and nothing else is done with."""
        numbers = {i for i, s in enumerate(self.nest.stmts) if s.op == "const" and s.type == conditions.INDEX}
        numbers -= {a for s in self.nest.stmts if s.op not in conditions.COMPARED for a in s.args}
        return numbers.difference(conditions.results(self.nest))

    @cached_property
    def buffers(self) -> dict[object, int]:
        """The value that each access touches, by its key."""
        return {key: buffer for key, buffer, _, _ in self.accesses}

    @cached_property
    def _offsets(self) -> dict[object, Affine]:
        return {key: offset for key, _, _, offset in self.accesses}

    def coefficient(self, key, d: int) -> int:
        """How far an access moves with a step of dimension `d`."""
        return affine.coefficient(self._offsets[key], d)

    @cached_property
    def loads_together(self) -> dict[int, list]:
        """Loads of columns of the same rows, in their order, by the first statement of each group."""
        return self._by_first(columns.loads)

    @cached_property
    def stores_together(self) -> dict[int, list]:
        """Stores of all columns of rows, likewise."""
        return self._by_first(columns.stores)

    def _by_first(self, find: Callable) -> dict[int, list]:
        if self.nest.vector is None:
            return {}
        groups = ([access[0] for access in group] for group in find(self.nest, self.nest.vector))
        return {min(group): group for group in groups}

    @cached_property
    def done_with_others(self) -> tuple[frozenset, frozenset]:
        """Loads and stores that are done where the first of their group is."""
        each = self.loads_together, self.stores_together
        loads, stores = (frozenset(k for first, g in x.items() for k in g if k != first) for x in each)
        return loads, stores

    @property
    def unrolled(self) -> int:
        """Statements when all loops are unrolled; a nest of one block has no loops."""
        n = 1
        for d in self.nest.order:
            lanes = max(self.nest.width, 1) if d == self.nest.vector else 1
            n *= math.ceil(self.nest.extents[d] / lanes)
        work = sum(s.op != "const" for s in self.nest.stmts) + len(self.nest.stores) + len(self.nest.folds)
        return n * work if n > 1 else 0

    @property
    def lanes_reduced(self) -> bool:
        """Whether the lanes are folded away."""
        return self.nest.vector is not None and self.nest.vector in self.nest.reduced
