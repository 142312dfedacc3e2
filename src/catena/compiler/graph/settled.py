"""What depends on no argument, and takes long, is computed once, when the program is compiled, and is a constant then.

Sums of ones in the gradient of a running sum, the factor of a matrix that a function closes over: such values are the
same in each call. Only operations over whole arrays count, whose results are stored anyway; elementwise ones are
computed where they are read. A program of their own makes them, of the same kernels, so they have the same bits. Loops
are left where they are: nobody knows how long they run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.graph.forms import Constant
from catena.compiler.graph.graph import Region, Value

WHOLE = frozenset(
    "reduce argreduce cumulative scatter runs dot convolve sort_keys argsort select ranked fourier lapack "
    "small_matrices".split()
)
AS_GIVEN = frozenset(
    "constant map iota broadcast transpose reshape slice reverse pad gather dynamic_slice window alias concatenate "
    "dynamic_update_slice output".split()
)
FLOOR = 1 << 14  # operations that are worth a program of their own
MOST_BYTES = 1 << 20  # of a constant, so that no memory is held for long that others need


def settle(region: Region, run: Callable[[Region], Sequence[np.ndarray]]) -> Region:
    """The region, in place, with constants for what depends on no argument; `run` gives the results of a region
    without inputs.
    """
    if found := _found(region):
        for v, array in zip(found, run(_alone(found)), strict=True):
            v.form, v.args, v.params = "constant", (), Constant(array)
    return region


def _found(region: Region) -> list[Value]:
    """The last values in their order that depend on no argument and are worth it: those which others read."""
    free = {v.number for v in region.values if v.form in ("constant", "iota")}
    taken: set[int] = set()
    for v in region.values:
        if v.form in WHOLE | AS_GIVEN and v.args and all(a.number in free for a in v.args):
            free.add(v.number)
            if _work(v) >= FLOOR:
                taken.add(v.number)
    if not taken:
        return []
    read = {v.number for v in (*region.outputs, *region.effects)}
    for v in reversed(region.values):
        if v.number in read and v.number not in taken:
            read |= {a.number for a in v.args}
    return [v for v in region.values if v.number in read & taken]


def _work(v: Value) -> int:
    """Operations that a value takes, roughly; none where it is no result over whole arrays, or too large to keep."""
    node = v.args[0] if v.form == "output" else v
    results = node.results or [node]
    if node.form not in WHOLE or v not in results or sum(x.nbytes for x in results) > MOST_BYTES:
        return 0
    if node.form == "dot":
        lhs, (contracted, *_) = node.args[0], node.params.numbers
        return v.size * math.prod(lhs.shape[d] for d in contracted)
    if node.form == "convolve":
        return v.size * node.args[1].size
    size = sum(a.size for a in node.args)
    return size * node.args[0].shape[-1] if node.form in ("lapack", "small_matrices") else size


def _alone(values: Sequence[Value]) -> Region:
    """A region without inputs that makes these values, of nodes of its own."""
    needed: set[int] = set()
    pending = list(values)
    for v in pending:  # grows while it is read
        if v.number not in needed:
            needed.add(v.number)
            pending += [*v.args, *v.results]
    by_number = {v.number: v for v in pending}
    region, own = Region([]), {}
    for number in sorted(needed):
        v = by_number[number]
        new = Value(v.form, v.shape, v.dtype, tuple(own[a.number] for a in v.args), v.params, len(own), v.source)
        new.bounds = v.bounds
        own[number] = new
        region.values.append(new)
    for number, new in own.items():
        new.results = [own[r.number] for r in by_number[number].results]
    region.outputs = [own[v.number] for v in values]
    return region
