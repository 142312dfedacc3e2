"""Products of bfloat16 and int8 as they are, by a plan of `plan.amx`: tasks, which go from block to block of C, and how
these are computed: by tiles of the processor's own (`amx`), or by its dot products of bytes (`byte_products`).
"""

from __future__ import annotations

from catena.compiler.emit import amx, amx_packing, byte_products, launches, parallel, streams
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.graph.types import Type
from catena.compiler.plan.amx import PACKED, SIDE, AmxProduct

NUMBERS = 14  # of a task's table, and some of how B lies where tasks pack it
OF_PACKING = 8


def product(w, step: AmxProduct) -> None:
    """Writes a product in tasks, and what follows on the rows that a task has computed."""
    p = step.plan
    after, own = launches.after(w, step)
    pointers = [w.pointer(buffer) for buffer in (step.a, step.b, step.c, *own)]
    size, sizes = p.operands.bytes, after.sizes if after else []
    numbers = [p.column_blocks, p.row_blocks, p.blocks * SIDE, p.rows, p.panels, p.all_panels, p.columns, p.steps,
               size * p.by_row, p.panel, int(step.past_caches), *p.by_member.bytes(size),
               *_of_packing(step), *sizes]  # fmt: skip
    in_tiles = p.operands.name in w.machine.multiplied_in_tiles
    if in_tiles:
        block = amx.text(p.operands.name, p.type, "avx512bf16" in w.machine.features, p.rows <= amx.ROWS)
    else:
        block = byte_products.text()
        w.helpers.update(byte_products.NEEDS)
    packing = None if step.packs is None else w.function(amx_packing.text_of(step.packs))
    body = _task(w.function(block), packing, in_tiles, p.type, after, len(pointers))
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


def _task(
    block: str, packing: str | None, in_tiles: bool, t: Type, after: launches.Kernel | None, pointers: int
) -> str:
    """The function of task %k: its table has the pointers to A, B and C and those of `after`, a function that it calls
    for its rows in the end, then numbers.
    """
    e = Emitter()
    a, b, c, *own = (parallel.load_pointer(e, i) for i in range(pointers))
    count = NUMBERS + (0 if packing is None else OF_PACKING)
    table, numbers = parallel.load_numbers(e, pointers, count)
    across, down, each, rows, panels, all_panels, columns, steps, by_row, panel, past, *told = numbers
    rest, column_block = divide(e, "%k", across)
    member, row_block = divide(e, rest, down)
    low = e.op(f"mul nuw nsw i64 {row_block}, {each}")
    is_last = e.op(f"icmp eq i64 {e.op(f'add nuw nsw i64 {row_block}, 1')}, {down}")
    high = e.op(f"select i1 {is_last}, i64 {rows}, i64 {e.op(f'add nuw nsw i64 {low}, {each}')}")
    first = e.op(f"mul nuw nsw i64 {column_block}, {panels}")
    end = e.least(e.op(f"add nuw nsw i64 {first}, {panels}"), all_panels)
    a = amx_packing.member_of(e, a, member, told[:3])
    before = e.op(f"mul nuw nsw i64 {member}, {rows}")
    last = e.most(e.op(f"sub nsw i64 {high}, {SIDE}"), 0)
    there = e.least(rows, SIDE)
    if in_tiles:
        e.do(f"call void @llvm.x86.ldtilecfg(ptr {amx.configuration(e)})")
    past = e.op(f"icmp ne i64 {past}, 0")
    by_groups = None
    if packing is None:
        b = e.element(b, "i8", e.op(f"mul nuw nsw i64 {e.op(f'mul nuw nsw i64 {member}, {all_panels}')}, {panel}"))
    else:
        own_panels = _Packing(e, packing, b, member, columns, panel, told[3:])
        group, by_groups = e.begin_loop(first, end, own_panels.at_once)
        first, end = group, e.least(e.op(f"add nuw nsw i64 {group}, {own_panels.at_once}"), end)
        b = own_panels.panels(first, end)
    i, by_rows = e.begin_loop(low, high, SIDE)
    row = e.least(i, last)  # rows that are left are computed with some of those before
    of_a = e.element(a, "i8", e.op(f"mul nsw i64 {row}, {by_row}"))
    place = e.op(f"mul nuw nsw i64 {e.op(f'add nuw nsw i64 {before}, {row}')}, {columns}")
    j, by_panels = e.begin_loop(first, end)  # a block of A is in the nearest cache meanwhile
    of_b = e.element(b, "i8", e.op(f"mul nuw nsw i64 {j}, {panel}"))
    column = e.op(f"mul nuw nsw i64 {j}, {SIDE}")
    lanes = e.least(e.op(f"sub nuw nsw i64 {columns}, {column}"), SIDE)
    of_c = e.element(c, t.memory, e.op(f"add nuw nsw i64 {place}, {column}"))
    given = (
        *(f"ptr {x}" for x in (of_a, of_b, of_c)),
        *(f"i64 {x}" for x in (steps, by_row, columns, lanes, there)),
        f"i1 {past}",
    )
    e.do(f"call void @{block}({', '.join(given)})")
    e.end_loop(by_panels)
    e.end_loop(by_rows)
    if by_groups is not None:
        e.end_loop(by_groups)
    if in_tiles:
        e.do("call void @llvm.x86.tilerelease()")
        e.lines.append(streams.FENCE)
    if after is not None:
        own += [e.element(table, "i64", count)] if after.sizes else []
        launches.on_rows(e, f"@{after.name}", own, *(e.op(f"add nuw nsw i64 {before}, {x}") for x in (low, high)))
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
