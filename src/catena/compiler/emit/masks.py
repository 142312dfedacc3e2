"""Accesses under masks, away from memory that is not there.

Lanes that are off touch no memory. But where all of them are off and their addresses lie beyond what is mapped, as
those of most places of a pad do, some processors take hundreds of cycles to find that out. So such an access is led to
memory that is always there: where a condition that is the same in all lanes does not hold, and, where lanes are seldom
on, by asking them. Where all conditions are the same in all lanes, neighbours then need no mask: stores with one take
tens of cycles on some processors, and what is read next has to wait for them.
"""

from __future__ import annotations

from catena.compiler.kernels.loops import Nest


def somewhere(body, pointer: str, i: int, c, mask: str, width: int, bytes_: int) -> tuple[str, str | None]:
    """The pointer and the mask of an access of `width` lanes, so many bytes where they are neighbours and else 0, in
    copy `c` of the body, under statement `i`, which is `mask` there.
    """
    e, parts = body.e, list(_conjuncts(body, i))
    lanes = [k for k in parts if body.is_lanes(k)]
    conditions = [body.use(k, c, 1) for k in parts if k not in lanes]
    if any(_is_seldom_on(body.nest, k) for k in lanes):
        conditions.append(e.op(f"call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> {mask})"))
    whole = bool(bytes_) and not lanes
    for condition in conditions:
        pointer = e.op(f"select i1 {condition}, ptr {pointer}, ptr {e.nowhere(bytes_) if whole else e.nowhere()}")
    return pointer, None if whole else mask


def _conjuncts(body, i: int):
    """The statements that all have to hold for statement `i` to hold, those that are the same in all lanes whole."""
    s = body.nest.stmts[i]
    if s.op == "and" and body.is_lanes(i):
        for k in s.args:
            yield from _conjuncts(body, k)
    else:
        yield i


def _is_seldom_on(nest: Nest, i: int) -> bool:
    """Whether a statement is a comparison of the place along the lanes that fails for more than half of them."""
    if nest.vector is None:
        return False
    s, n = nest.stmts[i], nest.extents[nest.vector]
    if s.op not in ("lt", "ge") or nest.stmts[s.args[1]].op != "const" or nest.stmts[s.args[0]].op != "affine":
        return False
    place, bound = nest.stmts[s.args[0]].attr, nest.stmts[s.args[1]].attr
    if place[1] != ((nest.vector, 1),) or place[2]:
        return False
    below = bound - place[0]
    return 2 * (below if s.op == "lt" else n - below) < n
