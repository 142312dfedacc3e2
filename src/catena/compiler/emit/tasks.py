"""Tasks: rows that are shared out among threads, each task with scratch memory of its own.

How many there are depends on sizes alone, never on the number of threads. Their text does not tell sizes (see
`emit.sizes`), so that rows of any number share it.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit import interrupts, parallel
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.sizes import Sizes, place_in
from catena.compiler.graph import thresholds

TASKS, ITEMS, PARTS = 16, 17, 18  # roles of numbers in a table


def in_tasks(
    w, pointers: list[str], tasks: int, body: Callable[[Emitter, list[str]], None], units: int = 0, ask=None
) -> None:
    """Runs what `body` writes, given the pointers, for each task `%k` through the pool; for `units`
    and `ask` see there.
    """
    e = Emitter()
    table: list[int] = []
    own = [parallel.load_pointer(e, j) for j in range(len(pointers))]
    numbers = parallel.load_pointer(e, len(pointers))
    first, e.lines = e.lines, []  # before the slots: sizes are read there
    e.sizes = Sizes(e.slots, numbers, place_in(table))
    body(e, own)
    first = first if table else first[:-2]  # nothing is read where there are no numbers
    text = "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *first, *e.slots, *e.lines, "  ret void", "}"])
    parallel.through_pool(w, text, pointers, tasks, table, units, ask)


def over_rows(
    w,
    pointers: list[str],
    rows: int,
    n: int,
    body: Callable[[Emitter, list[str], str], None],
    units: int = 0,
    asks: bool = False,
) -> None:
    """Runs what `body` writes, given the pointers and the number of a row, for each row; `%k` is the task. Where that
    is many `units` of work, it is done in groups of rows, and a signal may end it in between. Where work on one row
    `asks` whether to go on, the emitter knows whom.
    """
    ask = interrupts.table(w) if asks else None
    given = [*pointers, ask] if ask is not None else pointers
    tasks = w.machine.sharing.tasks(rows, n)
    groups = min(units // w.machine.sharing.group, rows // tasks)

    def share(e: Emitter, own: list[str]) -> None:
        start, count = part_of_group(e, own[-1]) if groups > 1 else ("0", from_table(e, rows, ITEMS))
        first, stop = balanced(e, start, count, tasks)
        e.ask = own[len(pointers)] if asks else None
        row, opened = e.begin_loop(first, stop)
        body(e, own[: len(pointers)], row)
        e.end_loop(opened)

    if groups > 1:
        in_groups(w, rows, groups, lambda part: in_tasks(w, [*given, part], tasks, share, ask=ask), units)
    else:
        in_tasks(w, given, tasks, share, ask=ask)


def in_groups(w, count: int, groups: int, run: Callable[[str], None], units: int) -> None:
    """Runs what `run` writes for so many groups of `count` items, given the address of a group's first item and size;
    between two of them a signal may end the program.
    """
    e, part = w.e, w.e.slot("[2 x i64]", 8)
    g, opened = e.begin_loop(0, groups)
    whole = w.number(count)
    first, stop = (e.op(f"udiv i64 {e.op(f'mul i64 {x}, {whole}')}, {groups}") for x in (g, e.op(f"add i64 {g}, 1")))
    e.do(f"store i64 {first}, ptr {part}")
    e.do(f"store i64 {e.op(f'sub i64 {stop}, {first}')}, ptr {e.element(part, 'i64', 1)}")
    run(part)
    interrupts.end_of_iteration(w, units // groups, None)
    e.end_loop(opened)


def part_of_group(e: Emitter, part: str) -> tuple[str, str]:
    """A group's first item and size, in one of its tasks."""
    return e.op(f"load i64, ptr {part}"), e.op(f"load i64, ptr {e.element(part, 'i64', 1)}")


def balanced(e: Emitter, start: str, count: str | int, tasks: int) -> tuple[str, str]:
    """The range of task `%k` among `count` items from `start` on, of which there are at least as many as tasks."""
    among = from_table(e, tasks, TASKS)
    shares = (e.op(f"udiv i64 {e.op(f'mul i64 {x}, {count}')}, {among}") for x in ("%k", e.op("add i64 %k, 1")))
    first, end = shares if start == "0" else (e.op(f"add i64 {start}, {share}") for share in shares)
    return first, end


def from_table(e: Emitter, n: int, role: int) -> int | str:
    """A number that the text does not tell, unless it is one."""
    return n if e.sizes is None or not thresholds.differs(n, 1) else e.sizes.named("i64", n, role)
