"""Sums whose terms cost much more than adding them up: the terms are computed into memory first, by all threads.

The order of a sum of floats is its own (see `plan.cascades`), so a sum of all elements, or of few rows, is one thread's
unless it is long enough for bands. That is little where terms are there to be read. Where each is a function or two of
mathematics (the mean of a loss, a logarithm of a likelihood), a thread would compute them all while the others wait. So
a nest makes the terms, and another one adds them up, in the same order.
"""

from __future__ import annotations

import dataclasses
import math

from catena.compiler.graph import affine
from catena.compiler.graph.forms import NOTHING
from catena.compiler.graph.region import Value
from catena.compiler.graph.thresholds import exceeds, reaches
from catena.compiler.graph.types import DTYPES, TYPES
from catena.compiler.kernels import unused
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import COMBINE, Nest, Store
from catena.compiler.machine import Machine
from catena.compiler.plan import sharing

COSTLY = 24  # half units of work of an element, from which on it is nothing beside that half of them change cores twice
MOST = 2  # terms for each element
MANY = 1 << 18  # elements, whose terms caches hold; sums of more are in bands, or shared
AT_HAND = (*LOADS, "const", "affine")  # statements whose results need no memory


def pays(machine: Machine, nest: Nest, in_loop: bool, awake: bool) -> bool:
    """Whether a scheduled nest is one that one thread would do, and takes less time so."""
    if not machine.threads or not nest.adds_floats or nest.together is not None or nest.run is not None:
        return False
    if nest.sequential or nest.rows or nest.is_checked:
        return False
    if sharing.half_units(nest) < COSTLY or not 0 < len(_terms(nest)) <= MOST:
        return False
    if any(f.running or f.small or f.kind not in COMBINE for f in nest.folds):
        return False
    types = [TYPES[nest.stmts[s].type] for s in _terms(nest)]
    least = machine.sharing.worthwhile_in_loops if in_loop else machine.sharing.least(awake)
    if any(t.kind != "f" or t.narrow for t in types) or exceeds(nest.trips, MANY):
        return False
    if not reaches(sharing.work(nest), least):
        return False
    return sharing.chunk(machine.sharing, nest, False, in_loop, awake) is None


def split(values: list[Value], nest: Nest) -> tuple[list[Value], list[Nest], list[Nest]]:
    """The values that hold the terms, which join `values`; the nest that makes them, and the one that adds them up."""
    strides = [math.prod(nest.extents[d + 1 :]) for d in range(len(nest.extents))]
    place = affine.combination((affine.dim(d), stride) for d, stride in enumerate(strides))
    made, stores, stmts = [], list(nest.stores), list(nest.stmts)
    for s in _terms(nest):
        name = nest.stmts[s].type
        terms = Value("beside", (math.prod(nest.extents),), DTYPES[name], (), NOTHING, len(values))
        values.append(terms)
        made.append(terms)
        stores.append(Store(terms.number, name, place, s))
        stmts[s] = Stmt("load", name, (), (terms.number, name, place))
    loaded = (1 << len(nest.extents)) - 1
    depends = [loaded if stmts[i] is not s else mask for i, (s, mask) in enumerate(zip(nest.stmts, nest.depends))]
    first = Nest(list(nest.extents), frozenset(), nest.stmts, nest.depends, stores, ranges=nest.ranges)
    then = dataclasses.replace(nest, stmts=stmts, depends=depends, stores=[], ranges={})
    return made, [unused.leave_out(first)], [unused.leave_out(then)]


def _terms(nest: Nest) -> list[int]:
    """The statements that are added up, and are more than a number in memory."""
    return list(dict.fromkeys(s for f in nest.folds for s in f.stmts if nest.stmts[s].op not in AT_HAND))
