"""Ctrl-C in long loops: every so much work, a loop lets Python run its signal handlers.

A signal only sets a flag in Python; its handler runs when the main thread next executes Python code, which a
native loop never does. Loops therefore count down their work, estimated when they are written, and after about
a tenth of a second take the interpreter's lock and ask it (`PyErr_CheckSignals`). When a handler raises, the
program ends with `INTERRUPTED`, and the exception is raised where it was called. Between the chunks of a long parallel
loop it is the same (`parallel.through_pool`). Nests that are long in themselves ask by a table that they are given
(`pauses`), on whichever thread they run: handlers run on the main thread only, a flag in the table tells the others.
"""

from __future__ import annotations

from catena.compiler.emit.branches import when
from catena.runtime import kernels
from catena.runtime.status import INTERRUPTED

BUDGET = 1 << 26  # units of work (see `plan.sharing.work`) between two questions
SHORT = 1 << 24  # loops known to do less than this never ask

TEXT = """
define internal i1 @ask_python(ptr %error, ptr %ensure, ptr %check, ptr %fetch, ptr %release) noinline {
entry:
  %state = call i32 %ensure()
  %result = call i32 %check()
  %raised = icmp ne i32 %result, 0
  br i1 %raised, label %keep, label %done
keep:
  %value = getelementptr ptr, ptr %error, i64 1
  %traceback = getelementptr ptr, ptr %error, i64 2
  call void %fetch(ptr %error, ptr %value, ptr %traceback)
  br label %done
done:
  call void %release(i32 %state)
  ret i1 %raised
}
"""
BY_TABLE = """
define internal i1 @ask_by_table(ptr %table) noinline {
entry:
  %flag = getelementptr ptr, ptr %table, i64 1
  %before = load atomic ptr, ptr %flag acquire, align 8
  %stopped = icmp ne ptr %before, null
  br i1 %stopped, label %stop, label %ask
ask:
  %1 = getelementptr ptr, ptr %table, i64 2
  %2 = getelementptr ptr, ptr %table, i64 3
  %3 = getelementptr ptr, ptr %table, i64 4
  %4 = getelementptr ptr, ptr %table, i64 5
  %5 = getelementptr ptr, ptr %table, i64 6
  %error = load ptr, ptr %1
  %ensure = load ptr, ptr %2
  %check = load ptr, ptr %3
  %fetch = load ptr, ptr %4
  %release = load ptr, ptr %5
  %raised = call i1 @ask_python(ptr %error, ptr %ensure, ptr %check, ptr %fetch, ptr %release)
  br i1 %raised, label %tell, label %go
tell:
  store atomic ptr %table, ptr %flag release, align 8
  br label %stop
stop:
  ret i1 true
go:
  ret i1 false
}
"""
ROUTINES = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyErr_Fetch", "PyGILState_Release")


def end_of_iteration(w, cost: int, trips: int | None) -> None:
    """Counts an iteration of `cost` units; `trips` iterations in all, None when that is not known."""
    cost = max(cost, 1)
    if trips is not None and trips * cost < SHORT:
        return
    e = w.e
    fuel = _fuel(w)
    left = e.op(f"sub i64 {e.op(f'load i64, ptr {fuel}')}, {w.number(cost)}")
    e.do(f"store i64 {left}, ptr {fuel}")
    with when(e, e.op(f"icmp slt i64 {left}, 0")):
        e.do(f"store i64 {BUDGET}, ptr {fuel}")
        w.helpers["ask_python"] = ("text", TEXT)
        w.stop_if(e.op(f"call i1 @ask_python({', '.join(f'ptr {t}' for t in _targets(w))})"), INTERRUPTED)


def table(w) -> str:
    """What nests that pause are given: the address of the question, the flag that a handler has raised, and
    what the question calls.
    """
    e = w.e
    if "table" not in w.asks:
        w.asks["table"] = e.slot(f"[{2 + 1 + len(ROUTINES)} x ptr]", 16)
    w.helpers["ask_python"], w.helpers["ask_by_table"] = ("text", TEXT), ("text", BY_TABLE)
    words = ["@ask_by_table", "null", *_targets(w)]
    for i, word in enumerate(words):
        e.do(f"store ptr {word}, ptr {e.element(w.asks['table'], 'ptr', i)}")
    return w.asks["table"]


def stop_if_asked(w, ask: str) -> None:
    """Ends the program where a nest has stopped because a handler has raised."""
    flag = w.e.op(f"load atomic ptr, ptr {w.e.element(ask, 'ptr', 1)} acquire, align 8")
    w.stop_if(w.e.op(f"icmp ne ptr {flag}, null"), INTERRUPTED)


def _targets(w) -> list[str]:
    return [w.external(kernels.PENDING_ERROR)] + [w.external(kernels.PythonRoutine(n)) for n in ROUTINES]


def _fuel(w) -> str:
    """The slot of the work that is left until the next question."""
    if "fuel" not in w.asks:
        w.asks["fuel"] = w.e.slot("i64", 8)
        w.e.slots.append(f"  store i64 {BUDGET}, ptr {w.asks['fuel']}")
    return w.asks["fuel"]
