"""What depends on no argument, and takes long, is computed once, when the program is compiled, and is a constant then.

Sums of ones in the gradient of a running sum, the factor of a matrix that a function closes over, sines of positions,
draws by a known key: such values are the same in each call. Operations over whole arrays count, whose results are
stored anyway, and elementwise ones that take longer than to read their results. A program of their own makes them, of
the same kernels, so they have the same bits. Loops are left where they are: nobody knows how long they run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.graph.forms import COSTLY_FROM, OPS, Broadcast, Constant
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.later_arrays import LaterArray, is_one_number
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.symbols import array_of

WHOLE = frozenset(
    "reduce argreduce cumulative scatter runs dot convolve sort_keys argsort select ranked fourier lapack "
    "small_matrices".split()
)
OTHERS = frozenset(
    "map broadcast transpose reshape slice reverse pad gather dynamic_slice window alias concatenate "
    "dynamic_update_slice output".split()
)
FLOOR = 1 << 15  # tenths of nanoseconds, roughly, that are worth a program of their own
MOST = 1 << 28  # likewise, that compilation may take longer: what takes seconds is a call, which can be interrupted
MOST_BYTES = 1 << 20  # of a constant, and of all of a program twice as many: others need memory, too


def settle(region: Region, run: Callable[[Region], Sequence]) -> Region:
    """The region, in place, with constants for what depends on no argument.

    `run` gives the results of a region that has no inputs.
    """
    if values := found(region):
        numbers: dict[int, list[Value]] = {}
        for v, array in zip(values, run(_alone(values)), strict=True):
            if (first := _one_number(array)) is not None:
                writer = Writer(v.source)
                number = writer.value("constant", (), v.dtype, (), Constant(first))
                v.form, v.args, v.params = "broadcast", (number,), Broadcast(())
                numbers[v.number] = writer.made
            else:
                v.form, v.args, v.params = "constant", (), Constant(array)
        if numbers:
            insert(region, numbers)
    return region


def _one_number(array) -> np.ndarray | None:
    """The number that all elements are, if they are one."""
    if type(array) is LaterArray:
        return array_of(array.first) if array.is_one_number else None
    return np.asarray(array.flat[0]) if is_one_number(array) else None


def found(region: Region) -> list[Value]:
    """The last values in their order that depend on no argument and are worth it: those which others read."""
    work: dict[int, int] = {}  # of what depends on no argument: how long it takes, with what it is made from
    for v in region.values:
        if v.form in ("constant", "iota"):
            work[v.number] = 0
        elif v.form in WHOLE | OTHERS and v.args and all(a.number in work for a in v.args):
            work[v.number] = _work(v) + max(work[a.number] for a in v.args)
    read, last = {v.number for v in (*region.outputs, *region.effects)}, []
    for v in reversed(region.values):
        if v.number in read:
            total = work.get(v.number)
            if total is not None and _is_costly(v, total):  # asked first: what hangs on no extent
                if total < FLOOR:
                    continue  # as what it is made from
                if total <= MOST and _can_stay(v):
                    last.append(v)
                    continue
            read |= {a.number for a in v.args}
    return _some(last[::-1])


def _is_costly(v: Value, total: int) -> bool:
    """Whether a value takes long for its size, or is made whole."""
    return _node(v).form in WHOLE or total >= COSTLY_FROM * v.size


def _some(values: list[Value]) -> list[Value]:
    """As many of them as there is room for."""
    left, taken = 2 * MOST_BYTES, []
    for v in values:
        if v.nbytes <= left:
            taken.append(v)
            left -= v.nbytes
    return taken


def _node(v: Value) -> Value:
    """The node that a value is a result of."""
    return v.args[0] if v.form == "output" else v


def _can_stay(v: Value) -> bool:
    """Whether a value can be a constant: a node that has several results is none, nor is one of those alone."""
    results = _node(v).results or [v]
    return v in results and sum(x.nbytes for x in results) <= MOST_BYTES


def _work(v: Value) -> int:
    """How long a node takes by itself, roughly."""
    if v.form == "map":
        return v.size * OPS[v.params.op].cost
    if v.form == "dot":
        lhs, (contracted, *_) = v.args[0], v.params.numbers
        return v.size * math.prod(lhs.shape[d] for d in contracted) // 8
    if v.form == "convolve":
        return v.size * v.args[1].size
    size = sum(a.size for a in v.args) if v.form in WHOLE else 0
    return size * v.args[0].shape[-1] if v.form in ("lapack", "small_matrices") else size


def _alone(values: Sequence[Value]) -> Region:
    """A region without inputs that makes these values, of nodes of its own."""
    needed: set[int] = set()
    pending = list(values)
    for v in pending:  # grows while it is read
        if v.number not in needed:
            needed.add(v.number)
            pending += [*v.args, *v.results]
    by_number = {v.number: v for v in pending}
    region = Region([])
    own: dict[int, Value] = {}
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
