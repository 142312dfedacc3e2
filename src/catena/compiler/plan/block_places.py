"""Where an axis of one value lies in another one: in what is made of it, and in what that is made of."""

from __future__ import annotations

import math

from catena.compiler.graph.region import Value

SUMMED = -1  # the place of an axis that a value is a sum over


def place_in(v: Value, i: int, at: int) -> int | None:
    """Where dimension `at` of operand `i` lies in a value; `SUMMED` where products are added up along it; None where
    it does not go through it step by step.
    """
    x, p = v.args[i], v.params
    if v.form == "map":
        return at
    if v.form == "broadcast":
        return p.dims[at] if v.shape[p.dims[at]] == x.shape[at] else None
    if v.form == "transpose":
        return p.perm.index(at)
    if v.form in ("reduce", "argreduce"):
        return None if at in p.axes else at - sum(d < at for d in p.axes)
    if v.form == "reshape":
        return _same_dimension(x.shape, v.shape, at)
    return _in_product(v, i, at) if v.form == "dot" else None


def needs(v: Value, at: int) -> list[int | None]:
    """Where dimension `at` of a value lies in each of its operands; None where all of one is needed."""
    p = v.params
    if v.form == "map":
        return [at] * len(v.args)
    if v.form == "broadcast":
        (x,), own = v.args, p.dims.index(at) if at in p.dims else None
        return [own if own is not None and x.shape[own] == v.shape[at] else None]
    if v.form == "transpose":
        return [p.perm[at]]
    if v.form in ("reduce", "argreduce"):
        return [[d for d in range(v.args[0].ndim) if d not in p.axes][at]]
    if v.form == "reshape":
        return [_same_dimension(v.shape, v.args[0].shape, at)]
    return _of_product(v, at) if v.form == "dot" else []


def _same_dimension(old: tuple, new: tuple, at: int) -> int | None:
    """The dimension of another shape of the same elements whose steps are those of dimension `at`."""
    before = math.prod(old[:at])
    for d, n in enumerate(new):
        if n == old[at] and math.prod(new[:d]) == before:
            return d
    return None


def _free(v: Value) -> tuple[list[int], list[int]]:
    lc, rc, lb, rb = v.params.numbers
    lhs, rhs = v.args
    return (
        [d for d in range(lhs.ndim) if d not in lc and d not in lb],
        [d for d in range(rhs.ndim) if d not in rc and d not in rb],
    )


def _in_product(v: Value, i: int, at: int) -> int:
    contracted, batch, free = v.params.numbers[i], v.params.numbers[2 + i], _free(v)
    if at in contracted:
        return SUMMED
    if at in batch:
        return batch.index(at)
    return len(batch) + i * len(free[0]) + free[i].index(at)


def _of_product(v: Value, at: int) -> list[int | None]:
    lc, rc, lb, rb = v.params.numbers
    if at == SUMMED:
        return [lc[0], rc[0]]
    if at < len(lb):
        return [lb[at], rb[at]]
    left, right = _free(v)
    own = at - len(lb)
    return [left[own], None] if own < len(left) else [None, right[own - len(left)]]
