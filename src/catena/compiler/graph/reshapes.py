"""Reshapes: which dimensions become which, and reductions and maps of reshaped values as those of what was reshaped."""

from __future__ import annotations

import math

from catena.compiler.graph.forms import COSTLY

FEW = 8  # elementwise operations between a reshape and a reduction
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


def unshaped(b, x, axes: tuple) -> tuple | None:
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
