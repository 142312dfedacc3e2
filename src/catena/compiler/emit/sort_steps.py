"""The steps of a program that sort and select: keys alone, the order of keys, and keys of given ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from catena.compiler.emit.branches import perhaps_never, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.row_sorting import WORK_OF_KEY, Rows, sort_long
from catena.compiler.emit.tasks import in_tasks, over_rows
from catena.compiler.graph.types import vector
from catena.compiler.plan.sorting import position_bits
from catena.compiler.plan.steps import Order, Ranks, Sort

FILL = 1 << 14  # keys in a task that prepares a part of a long row
WORK_OF_ELEMENT = 8  # units of work (see `plan.sharing.work`) for each of them
LANES = 16  # elements that are handled at once outside of the sorts


# ---- keys alone --------------------------------------------------------------------------------------------


def sort(w, step: Sort) -> None:
    """Sorts each row of unsigned keys."""
    r = Rows.of(step.keys)
    at, spare, *tables = (w.pointer(b) for b in (step.at, step.spare, *step.tables))
    if r.long:
        _each_long_row(w, r, step.rows, [at], lambda row: sort_long(w, r, row, [spare], tables, 0, r.n))
    else:
        units = WORK_OF_KEY * step.rows * r.n
        over_rows(w, [at, spare], step.rows, r.n, lambda e, p, row: _sort_row(w, e, r, p, row), units, r.asks(w))


def _each_long_row(w, r: Rows, rows: int, pointers: list[str], body) -> None:
    row, opened = w.e.begin_loop(0, w.number(rows))
    body(r.at(w.e, pointers, w.e.op(f"mul i64 {row}, {w.number(r.n)}")))
    w.e.end_loop(opened)


def _sort_row(w, e: Emitter, r: Rows, pointers: list[str], row: str) -> None:
    keys, spare = _part(e, r, pointers[0], row), _part(e, r, pointers[1], "%k")
    r.sort(w, e, [keys], [spare], r.size(e, r.n), 0, r.size(e, r.n))


def _part(e: Emitter, r: Rows, pointer: str, number: str, t: str | None = None) -> str:
    """Where the row, or a task's part of a spare one, begins."""
    return e.element(pointer, t or r.types[0], e.op(f"mul i64 {number}, {r.size(e, r.n)}"))


# ---- keys of given ranks -----------------------------------------------------------------------------------


def ranks(w, step: Ranks) -> None:
    """Finds the keys of given ranks of each row. A rank and the next one cost a selection together."""
    r, each = Rows.of(step.keys), step.each
    pointers = [w.pointer(b) for b in (step.source, step.ranks, step.out, *step.columns)]

    def body(e, p, row):
        own, spare = (_part(e, r, q, "%k") for q in p[3:])
        r.copy(e, [own], [_part(e, r, p[0], row)], r.size(e, r.n))
        wanted, result = (
            e.element(q, t, e.op(f"mul i64 {row}, {e.size(each)}")) for q, t in zip(p[1:], ("i32", r.types[0]))
        )
        _select_ranks(w, e, r, own, spare, wanted, result, each)

    over_rows(w, pointers, step.rows, r.n, body, WORK_OF_KEY * step.rows * r.n, r.asks(w))


def _select_ranks(w, e: Emitter, r: Rows, own: str, spare: str, wanted: str, result: str, each: int) -> None:
    done = e.slot("i64")  # a rank that is in its place, as is the next one
    e.do(f"store i64 -2, ptr {done}")
    if not r.quick:
        r.sort(w, e, [own], [spare], r.size(e, r.n), 0, r.size(e, r.n))
    j, opened = e.begin_loop(0, e.size(each))
    rank = e.op(f"sext i32 {_load(e, 'i32', wanted, j, 1)} to i64")
    if r.quick:
        past = e.op(f"sub i64 {rank}, {e.op(f'load i64, ptr {done}')}")
        with when(e, e.op(f"icmp uge i64 {past}, 2")):
            e.do(f"store i64 {rank}, ptr {done}")
            r.sort(w, e, [own], [spare], r.size(e, r.n), rank, e.op(f"add i64 {rank}, 2"))
    t = r.types[0]
    e.do(f"store {t} {e.op(f'load {t}, ptr {e.element(own, t, rank)}')}, ptr {e.element(result, t, j)}")
    e.end_loop(opened)


# ---- the order of keys -------------------------------------------------------------------------------------


def order(w, step: Order) -> None:
    """Finds the order of each row."""
    orders = [_Order(Rows.of(keys), bits, step.k) for keys, bits in zip(step.keys, step.bits)]
    n = orders[0].plan.n
    pointers = [w.pointer(b) for b in (*step.sources, step.out, *step.columns)]

    def short(e: Emitter, p: list[str], row: str) -> None:
        told = functools.partial(orders[0].plan.size, e)
        _short_order(w, e, orders, _pointers_of_row(e, orders, p, row, "%k", told))

    if step.tables:
        tables = [[w.pointer(b) for b in each] for each in step.tables]
        row, opened = w.e.begin_loop(0, w.number(step.rows))
        _long_order(w, orders, tables, _pointers_of_row(w.e, orders, pointers, row, "0", w.number))
        w.e.end_loop(opened)
    else:
        asks = any(o.plan.asks(w) for o in orders)
        over_rows(w, pointers, step.rows, n, short, WORK_OF_KEY * step.rows * n, asks)


@dataclass(frozen=True)
class _Order:
    """How the order by one of the keys is found: `bits` is the width of the key, `k` how much of the order is asked
    for in the end.
    """

    plan: Rows
    bits: int
    k: int

    def fill(self, e: Emitter, source: str, order: str | None, columns: list[str], low, high) -> None:
        """Keys, in the order found so far, and their positions, as they are sorted."""
        key, wide = f"i{self.bits}", self.plan.types[0]
        shift = self.plan.size(e, position_bits(self.plan.n), wide)

        def body(i, width):
            x = _load(e, key, source, i, width) if order is None else _look_up(e, key, source, order, i, width)
            place = _numbers(e, i, "i64", width)
            if self.plan.paired:
                _store(e, key, x, columns[0], i, width)
                return _store(e, "i32", _cast(e, "trunc", place, "i64", "i32", width), columns[1], i, width)
            v = vector(wide, width)
            x = e.op(f"shl {v} {_cast(e, 'zext', x, key, wide, width)}, {e.splat(str(shift), wide, width)}")
            place = place if wide == "i64" else _cast(e, "trunc", place, "i64", wide, width)
            return _store(e, wide, e.op(f"or {v} {x}, {place}"), columns[0], i, width)

        in_vectors(e, low, high, body)

    def extract(self, e: Emitter, columns: list[str], order: str | None, out: str, low, high) -> None:
        """The order by this key and those before it."""
        wide = self.plan.types[0]
        mask = self.plan.size(e, (1 << position_bits(self.plan.n)) - 1, wide)

        def body(i, width):
            if self.plan.paired:
                place = _load(e, "i32", columns[1], i, width)
            else:
                x = _load(e, wide, columns[0], i, width)
                place = e.op(f"and {vector(wide, width)} {x}, {e.splat(str(mask), wide, width)}")
                place = place if wide == "i32" else _cast(e, "trunc", place, wide, "i32", width)
            if order is not None:
                place = _gather(e, "i32", order, place, width)
            _store(e, "i32", place, out, i, width)

        in_vectors(e, low, high, body)


@dataclass
class _RowPointers:
    sources: list[str]
    index: str
    keys: list[str]  # and the spare ones
    orders: list[str]  # found so far, where there are several keys
    places: list[str]  # beside keys, and the spare ones

    def columns(self, r: Rows) -> tuple[list[str], list[str]]:
        first, second = ([self.keys[j], *self.places[j : j + r.paired]] for j in (0, 1))
        return first, second


def _pointers_of_row(
    e: Emitter, orders: list[_Order], pointers: list[str], row: str, task: str, told: Callable[[int], int | str]
) -> _RowPointers:
    """Where everything of a row begins; scratch memory is the task's. `told` names sizes."""
    n, count = told(orders[0].plan.n), len(orders)
    start, own = e.op(f"mul i64 {row}, {n}"), e.op(f"mul i64 {task}, {n}")
    wide = f"i{8 * max(o.plan.sizes[0] for o in orders)}"
    sources = [e.element(p, f"i{o.bits}", start) for p, o in zip(pointers, orders)]
    index = e.element(pointers[count], "i32", e.op(f"mul i64 {row}, {told(orders[0].k)}"))
    keys = [e.element(p, wide, own) for p in pointers[count + 1 : count + 3]]
    rest = [e.element(p, "i32", own) for p in pointers[count + 3 :]]
    between = 2 if count > 1 else 0
    return _RowPointers(sources, index, keys, rest[:between], rest[between:])


def _passes(orders: list[_Order], p: _RowPointers):
    """From the least significant key to the first one: how, its source, the order before and where to write the next
    one, and how much of that is needed.
    """
    before = None
    for number, (o, source) in enumerate(zip(reversed(orders), reversed(p.sources))):
        last = number == len(orders) - 1
        after = p.index if last else p.orders[number % 2]
        yield o, source, before, after, o.k if last else o.plan.n
        before = after


def _short_order(w, e: Emitter, orders: list[_Order], p: _RowPointers) -> None:
    for o, source, before, after, size in _passes(orders, p):
        own, spare = p.columns(o.plan)
        n, size = o.plan.size(e, o.plan.n), o.plan.size(e, size)
        o.fill(e, source, before, own, 0, n)
        o.plan.sort(w, e, own, spare, n, 0, size)
        o.extract(e, own, before, after, 0, size)


def _long_order(w, orders: list[_Order], tables: list[list[str]], p: _RowPointers) -> None:
    for table, (o, source, before, after, size) in zip(reversed(tables), _passes(orders, p)):
        own, spare = p.columns(o.plan)
        _in_chunks(w, o.fill, source, before, own, o.plan.n)
        sort_long(w, o.plan, own, spare, table, 0, size)
        _in_chunks(w, o.extract, own, before, after, size)


def _in_chunks(w, function, first, second, third, n: int) -> None:
    """Calls `function(e, first, second, third, low, high)` for chunks, in tasks; the three are pointers, lists
    of them or None.
    """
    groups = [x if isinstance(x, list) else [x] for x in (first, second, third)]
    passed = [p for group in groups for p in group if p is not None]

    def body(e, own):
        left = iter(own)
        mine = [[None if p is None else next(left) for p in group] for group in groups]
        low = e.op(f"mul i64 %k, {FILL}")
        high = e.least(e.op(f"add i64 {low}, {FILL}"), e.size(n))
        function(e, *(m if isinstance(x, list) else m[0] for m, x in zip(mine, (first, second, third))), low, high)

    in_tasks(w, passed, -(-n // FILL), body, WORK_OF_ELEMENT * n)


# ---- elements in vectors -----------------------------------------------------------------------------------


def in_vectors(e: Emitter, low, high, body) -> None:
    """Runs what `body(i, width)` writes for elements from `low` to `high`, most of them `LANES` at once."""
    size = e.op(f"sub i64 {high}, {low}")
    whole = e.op(f"add i64 {low}, {e.op(f'and i64 {size}, {-LANES}')}")
    for start, stop, width in ((low, whole, LANES), (whole, high, 1)):
        with perhaps_never(e, start, stop, width) as i:
            body(i, width)


def _load(e: Emitter, t: str, pointer: str, i: str, width: int) -> str:
    return e.op(f"load {vector(t, width)}, ptr {e.element(pointer, t, i)}, align {int(t[1:]) // 8}")


def _store(e: Emitter, t: str, x: str, pointer: str, i: str, width: int) -> None:
    e.do(f"store {vector(t, width)} {x}, ptr {e.element(pointer, t, i)}, align {int(t[1:]) // 8}")


def _look_up(e: Emitter, t: str, pointer: str, order: str, i: str, width: int) -> str:
    return _gather(e, t, pointer, _load(e, "i32", order, i, width), width)


def _gather(e: Emitter, t: str, pointer: str, places: str, width: int) -> str:
    wide = _cast(e, "sext", places, "i32", "i64", width)
    if width == 1:
        return e.op(f"load {t}, ptr {e.element(pointer, t, wide)}")
    addresses = e.op(f"getelementptr {t}, ptr {pointer}, {vector('i64', width)} {wide}")
    v, mask = vector(t, width), f"<{width} x i1> splat (i1 true)"
    return e.op(
        f"call {v} @llvm.masked.gather.v{width}{t}.v{width}p0(<{width} x ptr> {addresses}, i32 {int(t[1:]) // 8}, "
        f"{mask}, {v} poison)"
    )


def _cast(e: Emitter, how: str, x: str, source: str, target: str, width: int) -> str:
    if source == target:
        return x
    return e.op(f"{how} {vector(source, width)} {x} to {vector(target, width)}")


def _numbers(e: Emitter, i: str, t: str, width: int) -> str:
    """i, i + 1, ..."""
    if width == 1:
        return i
    return e.op(f"add {vector(t, width)} {e.splat(i, t, width)}, {e.lanes(width)}")
