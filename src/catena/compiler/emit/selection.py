"""Selection: the k least keys of each row, in order, with their places, without sorting the row.

A row is scanned with a threshold, the k-th least key so far. What lies below it goes to a buffer of a few times k;
when that is full, it is sorted and all but its first k are dropped (where k is small, after each block, by
insertion: most are in order). Keys equal to the threshold come too late to be
among the first k, so the selection is stable, and a row in the worst order costs no more than sorting it. Long rows
are cut into parts that depend on their length alone; the least keys of the parts, sorted, hold those of the row.
"""

from __future__ import annotations

from functools import cache

from catena.compiler.emit import sorting
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.tasks import balanced, in_tasks
from catena.compiler.plan.sorting import BLOCK, FEW, Selection
from catena.compiler.plan.steps import Select

WORK = 4  # units of work (see `plan.sharing.work`) for each key


@cache
def define(bits: int, few: bool) -> str:
    """The definition of the function that selects from one part of a row: the `k` least of `n` keys at `%row`, and
    their places counted from `%first`, come to the front of `%keys` and `%index`, which have room for `%room`.
    """
    t, lanes = f"i{bits}", BLOCK
    first, full = (str(FEW), "sub i64 0, 1") if few else ("%room", f"sub i64 %room, {lanes}")
    sort = f"call void @{sorting.symbol(*_sort(bits, few))}(ptr %keys, ptr %spare, ptr %index, ptr %spare_index, i64"
    return f"""
define internal void @{symbol(bits, few)}(ptr %row, i64 %first, i64 %n, i64 %k, i64 %room, ptr noalias %keys, \
ptr noalias %spare, ptr noalias %index, ptr noalias %spare_index) {{
entry:
  %start = call i64 @llvm.smin.i64(i64 %n, i64 {first})
  %bytes = mul i64 %start, {bits // 8}
  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %row, i64 %bytes, i1 false)
  %k1 = sub i64 %k, 1
  %last = getelementptr {t}, ptr %keys, i64 %k1
  %full = {full}
  br label %number
number:
  %j = phi i64 [ 0, %entry ], [ %j1, %number ]
  %place = add i64 %first, %j
  %place32 = trunc i64 %place to i32
  %place_p = getelementptr i32, ptr %index, i64 %j
  store i32 %place32, ptr %place_p
  %j1 = add i64 %j, 1
  %j_more = icmp slt i64 %j1, %start
  br i1 %j_more, label %number, label %numbered
numbered:
  {sort} %start)
  %over = icmp eq i64 %start, %n
  br i1 %over, label %done, label %scan
scan:
  %bound0 = load {t}, ptr %last
  br label %block
block:
  %i = phi i64 [ %start, %scan ], [ %i1, %next ]
  %count = phi i64 [ %k, %scan ], [ %count_next, %next ]
  %bound = phi {t} [ %bound0, %scan ], [ %bound_next, %next ]
  %i1 = add i64 %i, {lanes}
  %whole = icmp sle i64 %i1, %n
  br i1 %whole, label %compare, label %tail
compare:
  %p = getelementptr {t}, ptr %row, i64 %i
  %x = load <{lanes} x {t}>, ptr %p, align {bits // 8}
  %b1 = insertelement <{lanes} x {t}> poison, {t} %bound, i64 0
  %b = shufflevector <{lanes} x {t}> %b1, <{lanes} x {t}> poison, <{lanes} x i32> zeroinitializer
  %below = icmp ult <{lanes} x {t}> %x, %b
  %all = bitcast <{lanes} x i1> %below to i64
  br label %some
tail:
  %rest = icmp slt i64 %i, %n
  br i1 %rest, label %one, label %finish
one:
  %o = phi i64 [ %i, %tail ], [ %o1, %one ]
  %bits = phi i64 [ 0, %tail ], [ %bits1, %one ]
  %op = getelementptr {t}, ptr %row, i64 %o
  %ox = load {t}, ptr %op
  %o_below = icmp ult {t} %ox, %bound
  %o_wide = zext i1 %o_below to i64
  %o_at = sub i64 %o, %i
  %o_bit = shl i64 %o_wide, %o_at
  %bits1 = or i64 %bits, %o_bit
  %o1 = add i64 %o, 1
  %o_more = icmp slt i64 %o1, %n
  br i1 %o_more, label %one, label %some
some:
  %found = phi i64 [ %all, %compare ], [ %bits1, %one ]
  %any = icmp ne i64 %found, 0
  br i1 %any, label %take, label %next
take:
  %left = phi i64 [ %found, %some ], [ %left1, %take ]
  %c = phi i64 [ %count, %some ], [ %c1, %take ]
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %at = add i64 %i, %lane
  %from = getelementptr {t}, ptr %row, i64 %at
  %key = load {t}, ptr %from
  %to = getelementptr {t}, ptr %keys, i64 %c
  store {t} %key, ptr %to
  %whence = add i64 %first, %at
  %whence32 = trunc i64 %whence to i32
  %to_index = getelementptr i32, ptr %index, i64 %c
  store i32 %whence32, ptr %to_index
  %c1 = add i64 %c, 1
  %less = sub i64 %left, 1
  %left1 = and i64 %left, %less
  %left_more = icmp ne i64 %left1, 0
  br i1 %left_more, label %take, label %taken
taken:
  %crowded = icmp sgt i64 %c1, %full
  br i1 %crowded, label %drop, label %next
drop:
  {sort} %c1)
  %bound1 = load {t}, ptr %last
  br label %next
next:
  %count_next = phi i64 [ %count, %some ], [ %c1, %taken ], [ %k, %drop ]
  %bound_next = phi {t} [ %bound, %some ], [ %bound, %taken ], [ %bound1, %drop ]
  br label %block
finish:
  {sort} %count)
  br label %done
done:
  ret void
}}"""


def symbol(bits: int, few: bool) -> str:
    return f"catena_select_{'few_' if few else ''}u{bits}"


def _sort(bits: int, few: bool) -> tuple:
    """The sorting function that keeps the buffer in order."""
    return (bits, True, FEW + BLOCK) if few else (bits, True)


def select(w, step: Select) -> None:
    """Finds the places of the k least keys of each row."""
    p = step.plan
    columns, best = ([w.pointer(b) for b in buffers] for buffers in (step.columns, step.best))
    index = w.pointer(step.out)
    results = best or [columns[0], index]
    w.helpers[symbol(p.bits, p.few)] = ("selection", p.bits, p.few)
    for sort in {_sort(p.bits, p.few), _sort(p.bits, False)}:
        w.helpers[sorting.symbol(*sort)] = ("sorting", *sort)
    pointers = [w.pointer(step.source), *columns, *results]
    in_tasks(w, pointers, p.tasks, lambda e, own: _task(e, p, own), WORK * p.rows * p.n)
    if p.parts > 1:
        _join(w, p, [*results, columns[1], columns[3]], index)


def _task(e: Emitter, p: Selection, pointers: list[str]) -> None:
    """Selects from the share of task %k of all parts of rows."""
    t, part, n, k, room = f"i{p.bits}", e.size(p.n // p.parts), e.size(p.n), e.size(p.k), e.size(p.room)
    keys, *scratch, best, places = pointers
    own = [e.element(a, m, e.op(f"mul i64 %k, {room}")) for a, m in zip(scratch, (t, t, "i32", "i32"))]
    piece, opened = e.begin_loop(*balanced(e, "0", e.size(p.rows * p.parts), p.tasks))
    row, at = (e.op(f"{division} i64 {piece}, {p.parts}") for division in ("udiv", "urem"))
    first = e.op(f"mul i64 {at}, {part}")
    is_last = e.op(f"icmp eq i64 {at}, {p.parts - 1}")
    last = e.size(p.n - (p.parts - 1) * (p.n // p.parts))
    count = e.op(f"select i1 {is_last}, i64 {last}, i64 {part}")
    start = e.element(keys, t, e.op(f"add i64 {first}, {e.op(f'mul i64 {row}, {n}')}"))
    buffers = ", ".join(f"ptr {a}" for a in own)
    e.do(f"call void @{symbol(p.bits, p.few)}(ptr {start}, i64 {first}, i64 {count}, i64 {k}, i64 {room}, {buffers})")
    target = e.op(f"mul i64 {piece}, {k}")
    if p.parts > 1:
        _copy(e, e.element(best, t, target), own[0], e.size(p.k * p.bits // 8))
    _copy(e, e.element(places, "i32", target), own[2], e.size(4 * p.k))
    e.end_loop(opened)


def _join(w, p: Selection, arrays: list[str], index: str) -> None:
    """The first k of the least keys of each row's parts; earlier parts come first, so equal keys stay in order."""
    e, (best, places, spare, spare_places) = w.e, arrays
    row, opened = e.begin_loop(0, w.number(p.rows))
    of_parts = w.number(p.parts * p.k)
    base = e.op(f"mul i64 {row}, {of_parts}")
    best, places = e.element(best, f"i{p.bits}", base), e.element(places, "i32", base)
    order = ", ".join(f"ptr {a}" for a in (best, spare, places, spare_places))
    e.do(f"call void @{sorting.symbol(p.bits, True)}({order}, i64 {of_parts})")
    to = e.element(index, "i32", e.op(f"mul i64 {row}, {w.number(p.k)}"))
    _copy(e, to, places, w.number(4 * p.k))
    e.end_loop(opened)


def _copy(e, dest: str, source: str, size: int | str) -> None:
    e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {dest}, ptr {source}, i64 {size}, i1 false)")
