"""Accesses under masks, away from memory that is not there.

Lanes that are off touch no memory. But where all of them are off and their addresses lie beyond what is mapped, as
those of most places of a pad do, some processors take hundreds of cycles to find that out. So such an access is led to
memory that is always there: where a condition that is the same in all lanes does not hold, and, where lanes are seldom
on, by asking them. Where all conditions are the same in all lanes, neighbours then need no mask: stores with one take
tens of cycles on some processors, and what is read next has to wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from catena.compiler.emit.branches import either
from catena.compiler.graph.types import Type, mangled, vector
from catena.compiler.kernels.loops import Nest


def constant(lanes: Iterable[bool]) -> str:
    """A mask that is known: for each lane, whether it is on."""
    return "<" + ", ".join(f"i1 {'true' if on else 'false'}" for on in lanes) + ">"


def somewhere(body, pointer: str, i: int, c, mask: str, t: Type, width: int, stride: int, written=False):
    """The pointer and the mask (None for all lanes) of an access of `width` lanes that are `stride` apart, in copy `c`
    of the body, under statement `i`, which is `mask` there.
    """
    e, parts = body.e, list(_conjuncts(body, i))
    lanes = [k for k in parts if body.is_lanes(k)]
    conditions = [body.use(k, c, 1) for k in parts if k not in lanes]
    if any(_is_seldom_on(body.nest, k) for k in lanes):
        conditions.append(any_lane(e, mask, width))
    whole = stride == 1 and not lanes
    for condition in conditions:
        elsewhere = nowhere(e, t.bytes * width if whole else 16, written)
        pointer = e.op(f"select i1 {condition}, ptr {pointer}, ptr {elsewhere}")
    return pointer, None if whole else mask


def nowhere(e, size: int = 16, written: bool = False) -> str:
    """A stack slot of so many bytes that accesses with a false mask go to: one is read, another written. Of one for
    both, each update that is left out would wait for the one before it. Zeros are read: half an address is a subnormal
    number, whose products take processors 150 cycles, though nobody wants them.
    """
    if (size, written) not in e.nowhere:
        e.nowhere[size, written] = slot = e.slot(f"[{size} x i8]", 16)
        if not written:
            e.slots.append(f"  call void @llvm.memset.p0.i64(ptr {slot}, i8 0, i64 {size}, i1 false)")
    return e.nowhere[size, written]


def _conjuncts(body, i: int):
    """The statements that all have to hold for statement `i` to hold, those that are the same in all lanes whole; but
    for those that are known to.
    """
    s = body.nest.stmts[i]
    if body.layout.settled.get(i):
        return
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


NARROW = 16  # lanes from which on comparing places of 64 bits takes several vectors


def of_places(body, s, c) -> str | None:
    """The lanes of `s` in copy `c` of the body where it compares the place along the lanes with what all share: by
    bytes that count the lanes. None where it is something else.
    """
    if s.op not in ("lt", "ge") or body.width < NARROW or body.is_lanes(s.args[1]):
        return None
    e, v, place = body.e, f"<{body.width} x i8>", body.nest.stmts[s.args[0]]
    if (
        place.op != "affine"
        or (body.nest.vector, 1) not in place.attr[1]
        or any(body.is_lanes(t) for t, _ in place.attr[2])
    ):
        return None
    below = e.op(f"sub i64 {body.use(s.args[1], c, 1)}, {body.index(place.attr, c, 1)}")
    below = e.least(below, body.width)
    below = e.most(below, 0)
    order = "<" + ", ".join(f"i8 {k}" for k in range(body.width)) + ">"
    count = e.splat(e.op(f"trunc i64 {below} to i8"), "i8", body.width)
    return e.op(f"icmp {'slt' if s.op == 'lt' else 'sge'} {v} {order}, {count}")


def load(e, t: Type, pointer: str, width: int, mask: str) -> str:
    """Neighbours whose mask holds. Of elements of a byte or two, many processors load lane by lane then: so it is
    asked first whether they all are wanted, as they mostly are.
    """
    v, i1 = vector(t.memory, width), vector("i1", width)

    def some() -> list[str]:
        name = f"@llvm.masked.load.v{width}{mangled(t.memory)}.p0"
        return [e.op(f"call {v} {name}(ptr {pointer}, i32 {t.bytes}, {i1} {mask}, {v} zeroinitializer)")]

    if t.bytes > 2 or mask[0] != "%":
        return some()[0]
    return either(e, every_lane(e, mask, width), v, lambda: [e.op(f"load {v}, ptr {pointer}, align {t.bytes}")], some)[
        0
    ]


def any_lane(e, mask: str, width: int) -> str:
    """Whether a mask is on in some lane."""
    return mask if width == 1 else e.op(f"call i1 @llvm.vector.reduce.or.v{width}i1({vector('i1', width)} {mask})")


def every_lane(e, mask: str, width: int) -> str:
    return mask if width == 1 else e.op(f"call i1 @llvm.vector.reduce.and.v{width}i1({vector('i1', width)} {mask})")
