"""Where views of an array lie in it: the strides of what is transposed, sliced and reshaped."""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.graph.region import Value
from catena.core.named import NamedTuple

VIEWS = ("transpose", "reshape", "slice")


class Lies(NamedTuple):
    """A view of `base`: the elements from one step to the next in each dimension, and those before the first one."""

    base: Value
    strides: list[int]
    first: int = 0


def row_major(shape) -> list[int]:
    """Elements from one step to the next in each dimension of a contiguous array."""
    strides, step = [0] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d] = step
        step *= shape[d]
    return strides


def below(x: Value, is_base: Callable[[Value], bool]) -> Lies | None:
    """Where a view lies in the first such value below it; None where there is none, or no stride tells that."""
    views: list[Value] = []
    while not is_base(x):
        if x.form not in VIEWS:
            return None
        views.append(x)
        x = x.args[0]
    strides, first = row_major(x.shape), 0
    for v in reversed(views):
        if v.form == "transpose":
            strides = [strides[d] for d in v.params.perm]
        elif v.form == "slice":
            first += sum(start * step for start, step in zip(v.params.start, strides))
            strides = [step * by for step, by in zip(strides, v.params.strides)]
        else:
            found = _reshaped(v.args[0].shape, strides, v.shape)
            if found is None:
                return None
            strides = found
    return Lies(x, strides, first)


def _reshaped(old: tuple, steps: list[int], new: tuple) -> list[int] | None:
    """The strides of another shape; None where dimensions are joined that memory does not cross evenly."""
    if 0 in old:
        return row_major(new)
    groups = [(n, step) for n, step in zip(old, steps) if n != 1]
    strides: list[int] = []
    for n in reversed(new):
        if n == 1:
            strides.insert(0, 0)
            continue
        extent, step = groups.pop()
        while extent % n:
            if not groups or groups[-1][1] != step * extent:
                return None
            extent *= groups.pop()[0]
        strides.insert(0, step)
        if extent != n:
            groups.append((extent // n, step * n))
    return strides
