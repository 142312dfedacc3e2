"""Tasks: rows that are shared out among threads, each task with scratch memory of its own.

How many there are depends on sizes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit import parallel
from catena.compiler.emit.emitter import Emitter

WORTHWHILE = 1 << 15  # elements from which threads pay
TASKS = 16


def in_tasks(w, pointers: list[str], tasks: int, body: Callable[[Emitter, list[str]], None]) -> None:
    """Runs what `body` writes, given the pointers, for each task `%k` through the pool."""
    e = Emitter()
    own = [e.op(f"load ptr, ptr {e.element('%args', 'ptr', j)}") for j in range(len(pointers))]
    body(e, own)
    text = "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
    parallel.through_pool(w, text, pointers, tasks)


def row_tasks(rows: int, n: int) -> int:
    """Among how many tasks rows are shared out."""
    return min(TASKS, rows) if rows * n >= WORTHWHILE else 1


def over_rows(w, pointers: list[str], rows: int, n: int, body: Callable[[Emitter, list[str], str], None]) -> None:
    """Runs what `body` writes, given the pointers and the number of a row, for each row; `%k` is the task."""
    tasks = row_tasks(rows, n)

    def share(e: Emitter, own: list[str]) -> None:
        first, stop = (e.op(f"udiv i64 {e.op(f'mul i64 {x}, {rows}')}, {tasks}") for x in ("%k", e.op("add i64 %k, 1")))
        row, opened = e.begin_loop(first, stop)
        body(e, own, row)
        e.end_loop(opened)

    in_tasks(w, pointers, tasks, share)
