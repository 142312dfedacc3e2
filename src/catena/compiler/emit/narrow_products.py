"""Products of bfloat16 and int8 as they are, by a plan of `plan.amx`: tasks, which go from block to block of C, and how
these are computed: by tiles of the processor's own (`amx`), or by its dot products of bytes (`byte_products`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from catena.compiler.emit import amx, amx_packing, byte_products, launches, parallel, streams
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.graph.types import Type
from catena.compiler.plan.amx import PACKED, SIDE, AmxProduct
from catena.core.named import NamedTuple

OF_MEMBERS = 3  # numbers of a task's table behind those of `_Told`: how members of A lie
OF_PACKING = 8  # and some of how B lies, where tasks pack it


def product(w, step: AmxProduct) -> None:
    """Writes a product in tasks, and what follows on the rows that a task has computed."""
    p = step.plan
    after, own = launches.after(w, step)
    pointers = [w.pointer(buffer) for buffer in (step.a, step.b, step.c, *own)]
    size, sizes = p.operands.bytes, after.sizes if after else []
    numbers = [p.column_blocks, p.row_blocks, p.blocks * SIDE, p.rows, p.panels, p.all_panels, p.columns, p.steps,
               size * p.by_row, p.panel, int(step.past_caches), *p.by_member.bytes(size),
               *_of_packing(step), *sizes]  # fmt: skip
    around: Callable[[Emitter], AbstractContextManager]
    if p.operands.name in w.machine.multiplied_in_tiles:
        block = amx.text(p.operands.name, p.type, "avx512bf16" in w.machine.features, p.rows <= amx.ROWS)
        around = _tiles
    else:
        block, around = byte_products.text(), nullcontext
        w.helpers.update(byte_products.NEEDS)
    packing = None if step.packs is None else w.function(amx_packing.text_of(step.packs))
    body = _task(w.function(block), around, packing, p.type, after, len(pointers))
    parallel.through_pool(w, body, pointers, p.tasks, numbers, p.products // 128)


def _of_packing(step: AmxProduct) -> list[int]:
    """What tasks are told that pack: how many panels at a time, and how B lies."""
    x = step.packs
    if x is None:
        return []
    size, at_once = x.type.bytes, min(PACKED // x.panel, step.plan.panels)
    apart = size * (x.by_column if x.has_terms_side_by_side else x.by_term)
    return [at_once, at_once * x.panel, x.groups, x.terms, apart, *x.by_member.bytes(size)]


class _Packing:
    """Panels of B that a task packs, some at a time, into memory of its own."""

    def __init__(self, e: Emitter, function: str, b: str, member: str, columns: str, panel: str, told: list[str]):
        self.e, self.function = e, function
        self.at_once, room, self.groups, self.terms, self.apart, *by_member = told
        self.columns, self.panel = columns, panel
        self.b = amx_packing.member_of(e, b, member, by_member)
        self.to = e.op(f"alloca i8, i64 {room}, align {amx.BYTES}")

    def panels(self, first: str, end: str) -> str:
        """Packs panels from `first` to `end`, and gives where panel 0 would be."""
        e = self.e
        before = e.op(f"mul nsw i64 {first}, {self.panel}")
        to = e.element(self.to, "i8", e.op(f"sub i64 0, {before}"))
        given = (0, self.groups, first, end, self.terms, self.columns, self.panel, self.apart)
        e.do(f"call void @{self.function}(ptr {self.b}, ptr {to}, {', '.join(f'i64 {x}' for x in given)})")
        return to


@contextmanager
def _tiles(e: Emitter) -> Iterator[None]:
    """Around blocks by tiles, which may have gone past the caches."""
    with amx.tiles(e):
        yield
    e.lines.append(streams.FENCE)


class _Told(NamedTuple):
    """What a task is told of A, C and the panels of B, as text."""

    column_blocks: str
    row_blocks: str
    each: str  # rows of a block of rows, but for the last one
    rows: str
    panels: str  # of a block of columns
    all_panels: str
    columns: str
    steps: str
    by_row: str
    panel: str
    past: str


class _Blocks:
    """Blocks of C, in rows from `low` to `high` of a member that has so many `before`; a function computes each."""

    def __init__(self, e: Emitter, told: _Told, block: str, t: Type, low: str, high: str, before: str):
        self.e, self.told, self.block, self.type = e, told, block, t
        self.low, self.high, self.before = low, high, before
        self.last = e.most(e.op(f"sub nsw i64 {high}, {SIDE}"), 0)
        self.there = e.least(told.rows, SIDE)

    def write(self, a: str, b: str, c: str, first: str, end: str, past: str) -> None:
        """Those of panels from `first` to `end`, `past` the caches or not."""
        e, told = self.e, self.told
        i, by_rows = e.begin_loop(self.low, self.high, SIDE)
        row = e.least(i, self.last)  # rows that are left are computed with some of those before
        of_a = e.element(a, "i8", e.op(f"mul nsw i64 {row}, {told.by_row}"))
        place = e.op(f"mul nuw nsw i64 {e.op(f'add nuw nsw i64 {self.before}, {row}')}, {told.columns}")
        j, by_panels = e.begin_loop(first, end)  # a block of A is in the nearest cache meanwhile
        of_b = e.element(b, "i8", e.op(f"mul nuw nsw i64 {j}, {told.panel}"))
        column = e.op(f"mul nuw nsw i64 {j}, {SIDE}")
        lanes = e.least(e.op(f"sub nuw nsw i64 {told.columns}, {column}"), SIDE)
        of_c = e.element(c, self.type.memory, e.op(f"add nuw nsw i64 {place}, {column}"))
        places = ", ".join(f"ptr {x}" for x in (of_a, of_b, of_c))
        numbers = ", ".join(f"i64 {x}" for x in (told.steps, told.by_row, told.columns, lanes, self.there))
        e.do(f"call void @{self.block}({places}, {numbers}, i1 {past})")
        e.end_loop(by_panels)
        e.end_loop(by_rows)


def _task(
    block: str,
    around: Callable[[Emitter], AbstractContextManager],
    packing: str | None,
    t: Type,
    after: launches.Kernel | None,
    pointers: int,
) -> str:
    """The function of task %k: its table has the pointers to A, B and C and those of `after`, a function that it calls
    for its rows in the end, then numbers. Blocks are computed by a function, with what is written `around` them.
    """
    e, size = Emitter(), len(_Told._fields)
    a, b, c, *own = (parallel.load_pointer(e, i) for i in range(pointers))
    count = size + OF_MEMBERS + (0 if packing is None else OF_PACKING)
    table, numbers = parallel.load_numbers(e, pointers, count)
    told, lies = _Told(*numbers[:size]), numbers[size:]
    rest, column_block = divide(e, "%k", told.column_blocks)
    member, row_block = divide(e, rest, told.row_blocks)
    low = e.op(f"mul nuw nsw i64 {row_block}, {told.each}")
    is_last = e.op(f"icmp eq i64 {e.op(f'add nuw nsw i64 {row_block}, 1')}, {told.row_blocks}")
    high = e.op(f"select i1 {is_last}, i64 {told.rows}, i64 {e.op(f'add nuw nsw i64 {low}, {told.each}')}")
    first = e.op(f"mul nuw nsw i64 {column_block}, {told.panels}")
    end = e.least(e.op(f"add nuw nsw i64 {first}, {told.panels}"), told.all_panels)
    a = amx_packing.member_of(e, a, member, lies[:OF_MEMBERS])
    before = e.op(f"mul nuw nsw i64 {member}, {told.rows}")
    blocks = _Blocks(e, told, block, t, low, high, before)
    with around(e):
        past = e.op(f"icmp ne i64 {told.past}, 0")
        if packing is None:
            panels = e.op(f"mul nuw nsw i64 {member}, {told.all_panels}")
            b = e.element(b, "i8", e.op(f"mul nuw nsw i64 {panels}, {told.panel}"))
            blocks.write(a, b, c, first, end, past)
        else:
            own_panels = _Packing(e, packing, b, member, told.columns, told.panel, lies[OF_MEMBERS:])
            group, opened = e.begin_loop(first, end, own_panels.at_once)
            end = e.least(e.op(f"add nuw nsw i64 {group}, {own_panels.at_once}"), end)
            b = own_panels.panels(group, end)
            blocks.write(a, b, c, group, end, past)
            e.end_loop(opened)
    if after is not None:
        own += [e.element(table, "i64", count)] if after.sizes else []
        launches.on_rows(e, f"@{after.name}", own, *(e.op(f"add nuw nsw i64 {before}, {x}") for x in (low, high)))
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
