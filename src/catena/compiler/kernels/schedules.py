"""Schedules of loop nests, which are made once: nests that differ only in which values they touch, as those of equal
layers do, have the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from catena.compiler.graph import symbols
from catena.compiler.kernels import scheduling
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine

MOST = 1024
_known: dict[tuple, Nest] = {}  # with the values numbered in the order of `Nest.buffers`


def schedule(nest: Nest, machine: Machine, in_place: bool = False, few: int = scheduling.FEW) -> Nest:
    """As `scheduling.schedule` does, orders the loops of a nest and picks the dimension of its lanes."""
    if symbols.is_recording() or nest.is_checked:
        return scheduling.schedule(nest, machine, in_place, few)
    buffers = nest.buffers()
    asked = tuple(nest.depends), tuple(nest.ranges.items()), nest.independent
    key = nest.key(buffers), asked, machine, in_place, few
    found = _known.get(key)
    if found is None:
        scheduling.schedule(nest, machine, in_place, few)
        if len(_known) >= MOST:
            _known.clear()
        _known[key] = touching(nest, {b: i for i, b in enumerate(buffers)})
    else:
        vars(nest).update(vars(touching(found, dict(enumerate(buffers)))))
    return nest


def touching(nest: Nest, values: Mapping[int, int]) -> Nest:
    """The nest with other values in the places of those that it touches."""
    made = Nest(**{f.name: _own(getattr(nest, f.name)) for f in fields(Nest)})
    for i, s in enumerate(nest.stmts):
        if s.op in LOADS:
            made.stmts[i] = s._replace(attr=(values[s.attr[0]], *s.attr[1:]))
    made.stores = [s._replace(buffer=values[s.buffer]) for s in nest.stores]
    made.folds = [f._replace(dests=tuple([(values[b], t, o) for b, t, o in f.dests])) for f in nest.folds]
    return made


def _own(x):
    """What another nest may change of its own."""
    return x.copy() if isinstance(x, (list, dict)) else x
