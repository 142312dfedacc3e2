"""Reshapes: which dimensions become which, and reductions and maps of reshaped values as those of what was reshaped.

Groups of a few channels, as group normalisation has them, are a last dimension that was taken apart. What is computed
of them element by element is computed of it, so that lanes are filled, and what folds groups and places folds the
places first.
"""

from __future__ import annotations

import math

from catena.compiler.graph.forms import COSTLY

FEW = 8  # elementwise operations between a reshape and a reduction
SHORT = 8  # elements of the groups that a last dimension is taken apart to, which are no vector
LEAST_LANES = 16  # elements of all groups of a place together, and how often those of what is spread over places are
MANY_GROUPS = 16  # that are folded to one
MANY = 64  # elementwise operations under a reshape: the work for each operation stays bounded


def groups(a: tuple, b: tuple) -> list[tuple[list, list]]:
    """Factors a reshape from `a` to `b` (without zero sizes) into the smallest runs of dimensions of equal product."""
    out, i, j = [], 0, 0
    while i < len(a) or j < len(b):
        ins: list[int] = []
        outs: list[int] = []
        p = q = 1
        while not (ins or outs) or p != q:
            if (p <= q and i < len(a)) or j >= len(b):
                p, ins, i = p * a[i], ins + [i], i + 1
            else:
                q, outs, j = q * b[j], outs + [j], j + 1
        while i < len(a) and a[i] == 1:
            ins, i = ins + [i], i + 1
        while j < len(b) and b[j] == 1:
            outs, j = outs + [j], j + 1
        out.append((ins, outs))
    return out


def reduced(b, kind: str, x, axes: tuple):
    """A reduction of what was reshaped, or by groups; None where it is done as it is."""
    if (found := _unshaped(b, x, axes)) is not None:
        return b.reshape(b.reduce(kind, *found), [n for d, n in enumerate(x.shape) if d not in axes])
    return None if x.form == "transpose" else _by_groups(b, kind, x, axes)  # which is reduced as it lies


def _unshaped(b, x, axes: tuple) -> tuple | None:
    """A value and axes to reduce in place of `x` and `axes`, where `x` is computed from a reshape that makes some
    dimensions one: its elements would be found by divisions. None where there is no such value.
    """
    source = _computed(x)
    if source is None or 0 in x.shape:
        return None
    found = []
    for ins, outs in groups(source.shape, x.shape):
        real = [d in axes for d in outs if x.shape[d] != 1]
        if any(real) != all(real):
            return None
        if any(real):
            found += [d for d in ins if source.shape[d] != 1]
    y = _before(b, x, source.shape, [FEW])
    return None if y is None or not found else (y, tuple(found))


def common(xs) -> tuple | None:
    """The shape that the operands of an elementwise operation had before they were reshaped, if it is one and the
    elements of some, in dimensions that became one, would be found by divisions.
    """
    sources = [x.args[0] for x in xs if x.form == "reshape"]
    if not sources or sources[0].ndim <= xs[0].ndim or 0 in xs[0].shape:
        return None
    if any(s.shape != sources[0].shape for s in sources) or not any(map(_spreads, sources)):
        return None
    alike = all(x.form == "reshape" or x.form == "broadcast" and x.args[0].size == 1 for x in xs)
    return sources[0].shape if alike else None


def before(b, x, shape: tuple):
    """One of these operands in that shape."""
    return x.args[0] if x.form == "reshape" else b.full(shape, b.reshape(x.args[0], ()))


def _is_in_groups(x) -> bool:
    """Whether a value is a reshape that takes the last dimension apart to groups of a few elements."""
    if x.form != "reshape" or x.ndim < 3 or not 1 < x.shape[-1] <= SHORT or 0 in x.shape:
        return False
    lanes = x.shape[-2] * x.shape[-1]
    return x.args[0].shape[-1:] == (lanes,) and x.shape[-2] > 1 and lanes >= LEAST_LANES


def ungrouped(b, f, xs):
    """`f` of the operands before their last dimension was taken apart to groups of a few elements, where what has one
    number for each group is small: lanes are filled so. None where that is not so.
    """
    first = next((x for x in xs if _is_in_groups(x)), None)
    if first is None:
        return None
    shape = (*first.shape[:-2], first.shape[-2] * first.shape[-1])
    found = [_ungrouped(b, x, shape) for x in xs]
    return None if any(x is None for x in found) else b.reshape(f(*found), first.shape)


def _ungrouped(b, x, shape: tuple):
    """An operand with its last two dimensions as one, `shape` then; None where its elements would be brought there."""
    if x.form == "reshape" and x.args[0].shape[-1:] == shape[-1:]:
        return b.reshape(x, shape)
    if x.form != "broadcast":
        return None
    small, dims = x.args[0], x.params.dims
    if small.size == 1:
        return b.full(shape, b.reshape(small, ()))
    last = x.ndim - 2
    outside = [d for d in dims if d < last]
    spread = (*(x.shape[d] for d in outside), *x.shape[last:])
    if list(dims) != sorted(dims) or math.prod(spread) * LEAST_LANES > x.size:
        return None
    at = [*outside, last, last + 1]
    rows = b.broadcast_in_dim(small, spread, [at.index(d) for d in dims])
    rows = b.reshape(rows, (*spread[:-2], shape[-1]))
    return b.broadcast_in_dim(rows, shape, (*outside, last))


def _by_groups(b, kind: str, x, axes: tuple):
    """A reduction of many groups of a few elements: of each element of the groups first, which lie side by side. None
    where it is another one, or what is narrow would be rounded in between.
    """
    outside = axes[:-1]
    if x.ndim < 3 or axes[-1] != x.ndim - 1 or x.ndim - 2 in axes or not outside:
        return None
    if kind in ("sum", "prod") and x.dtype.itemsize < 4:
        return None
    many = math.prod(x.shape[d] for d in outside)
    if not 1 < x.shape[-1] <= SHORT or x.shape[-2] < 2 or many < MANY_GROUPS:
        return None
    each = b.reduce(kind, x, outside)
    return b.reduce(kind, each, (each.ndim - 1,))


def _computed(x):
    """What is reshaped, under a few elementwise operations, where it is computed from smaller arrays."""
    for _ in range(FEW):
        if x.form == "reshape":
            source = x.args[0]
            return source if source.ndim > x.ndim and _spreads(source) else None
        big = [a for a in x.args if a.size == x.size] if x.form == "map" else []
        if not big:
            return None
        x = big[0]
    return None


def _spreads(v) -> bool:
    """Whether elements of smaller arrays meet in a value."""
    seen: set = set()
    pending = [v]
    while pending and len(seen) < MANY:
        x = pending.pop()
        if x.form == "broadcast" and math.prod(x.args[0].shape) > 1:
            return True
        if x.form in ("map", "transpose") and x not in seen:
            seen.add(x)
            pending += x.args
    return False


def _before(b, x, shape: tuple, left: list[int]):
    """`x` in the shape that a reshape had before; None where it does not come from there by a few operations."""
    left[0] -= 1
    if x.form == "reshape" and x.args[0].shape == shape:
        return x.args[0]
    if x.size == 1 or x.form == "broadcast" and x.args[0].size == 1:
        one = x.args[0] if x.form == "broadcast" else x
        return b.full(shape, b.reshape(one, ()))
    if x.form != "map" or x.params.op in COSTLY and x.params.op != "integer_pow" or left[0] < 0:
        return None
    args = [_before(b, a, shape, left) for a in x.args]
    if any(a is None for a in args):
        return None
    return b.convert(args[0], x.dtype) if x.params.op == "convert" else b.map(x.params.op, *args, y=x.params.y)
