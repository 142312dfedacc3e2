"""The pool of threads that runs parallel loops of compiled programs.

`parallel_for(function, arguments, chunks, ask)` calls `function(arguments, k)` for every k below `chunks`, on the
calling thread and on idle workers. The chunks are fixed by the program, so results do not depend on who runs
them. A pool that is busy (a nested call, another Python thread) is not waited for: the caller then runs its
chunks alone, which also makes it safe after a fork, where the workers are gone. A caller that waits for long chunks
of others calls the first function in the table `ask`, where one is given, every tenth of a second or so (see
`compiler.emit.interrupts`).

A chunk is claimed by compare-and-swap on one word that holds the loop's generation and how many chunks are claimed from
the first on, by the caller, and from the last one back, by workers: so what one loop leaves in a core's cache is mostly
what the next one reads there. (All claim from the first on where there are so many that two counts have no room.) A
worker that wakes late can never touch a loop that has ended. Workers spin for half a millisecond or so, then sleep
on a futex: each first says that it is `asleep`, then the kernel looks whether the ticket it holds is still the last
one; a caller first gives out a ticket, then looks whether somebody is asleep. So none is missed, and nobody is called
where all are awake. They are Python threads that never leave native code. Chunks compute as the caller does, subnormal
numbers included, whichever thread runs them: the caller's `float_control` is a part of the loop.

`CATENA_NUM_THREADS` sets the number of threads; without it, one for each processor that the process may use.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading

from catena.core import locks
from catena.runtime import float_control

FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine()) if platform.system() == "Linux" else None
PAUSES = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
PAUSE = PAUSES.get(platform.machine(), "fence seq_cst")
SPINS = 25_000  # of a worker that waits, of some 20 ns: longer than most steps that one thread does take
SPLIT = 1 << 16  # chunks from which on one count has the room of two
YIELDS = 64  # of a caller that waits, between two questions; before each it spins for some 20 microseconds
_lock = locks.new_lock()


def text() -> str:
    """The pool as LLVM IR."""
    wait = f"call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr @wake, i32 128, i32 %ticket, ptr null)"
    wake = f"call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr @wake, i32 129, i32 2147483647)"
    return f"""
@word = global i64 0
@total = global i64 0
@done = global i64 0
@function = global ptr null
@arguments = global ptr null
@busy = global i32 0
@wake = global i32 0
@asleep = global i32 0
@workers = global i32 0
@control = global i64 0
{float_control.text()}
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()

; Claims and runs one chunk, the first or the last of those that are left; false when there is none.
define internal i1 @step(i1 %last) {{
entry:
  br label %try
try:
  %w = load atomic i64, ptr @word acquire, align 8
  %all = load atomic i64, ptr @total acquire, align 8
  %many = icmp ugt i64 %all, {SPLIT - 1}
  %claimed = and i64 %w, 4294967295
  %first = and i64 %w, {SPLIT - 1}
  %ends = lshr i64 %claimed, 16
  %both = add i64 %first, %ends
  %gone = select i1 %many, i64 %claimed, i64 %both
  %left = icmp ult i64 %gone, %all
  br i1 %left, label %claim, label %none
claim:
  %at_end = select i1 %many, i1 false, i1 %last
  %one = select i1 %at_end, i64 {SPLIT}, i64 1
  %w1 = add i64 %w, %one
  %pair = cmpxchg ptr @word, i64 %w, i64 %w1 acq_rel acquire
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %run, label %try
run:
  %f = load atomic ptr, ptr @function acquire, align 8
  %a = load atomic ptr, ptr @arguments acquire, align 8
  %begun = select i1 %many, i64 %claimed, i64 %first
  %end = sub i64 %all, %ends
  %ended = sub i64 %end, 1
  %next = select i1 %at_end, i64 %ended, i64 %begun
  call void @set_control(ptr @control)
  call void %f(ptr %a, i64 %next)
  %d = atomicrmw add ptr @done, i64 1 acq_rel
  ret i1 true
none:
  ret i1 false
}}

define void @parallel_for(ptr %f, ptr %a, i64 %chunks, ptr %ask) {{
entry:
  %helpers = load atomic i32, ptr @workers acquire, align 4
  %none = icmp eq i32 %helpers, 0
  %one = icmp ult i64 %chunks, 2
  %alone = or i1 %none, %one
  br i1 %alone, label %serial, label %try_busy
try_busy:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acq_rel acquire
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %publish, label %serial
serial:
  %k = phi i64 [ 0, %entry ], [ 0, %try_busy ], [ %k1, %serial ]
  call void %f(ptr %a, i64 %k)
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %chunks
  br i1 %more, label %serial, label %finished
publish:
  %old = load atomic i64, ptr @word acquire, align 8
  %generation = lshr i64 %old, 32
  %g1 = add i64 %generation, 1
  %open = shl i64 %g1, 32
  %closed = or i64 %open, 4294967295
  store atomic i64 %closed, ptr @word seq_cst, align 8
  store atomic ptr %f, ptr @function release, align 8
  store atomic ptr %a, ptr @arguments release, align 8
  call void @keep_control(ptr @control)
  store atomic i64 0, ptr @done release, align 8
  store atomic i64 %chunks, ptr @total release, align 8
  store atomic i64 %open, ptr @word seq_cst, align 8
  %ticket = atomicrmw add ptr @wake, i32 1 seq_cst
  %sleepers = load atomic i32, ptr @asleep seq_cst, align 4
  %all_awake = icmp eq i32 %sleepers, 0
  br i1 %all_awake, label %work, label %call
call:
  %woken = {wake}
  br label %work
work:
  %ran = call i1 @step(i1 false)
  br i1 %ran, label %work, label %join
join:
  %spin = phi i64 [ 0, %work ], [ %spin1, %again ], [ 0, %yield ], [ 0, %question ]
  %yields = phi i64 [ 0, %work ], [ %yields, %again ], [ %yields1, %yield ], [ %yields1, %question ]
  %d = load atomic i64, ptr @done acquire, align 8
  %complete = icmp eq i64 %d, %chunks
  br i1 %complete, label %release, label %pause
pause:
  {PAUSE}
  %spin1 = add i64 %spin, 1
  %long = icmp ugt i64 %spin1, 2000
  br i1 %long, label %yield, label %again
again:
  br label %join
yield:
  %y = call i32 @sched_yield()
  %yields1 = add i64 %yields, 1
  %often = and i64 %yields1, {YIELDS - 1}
  %time = icmp eq i64 %often, 0
  %given = icmp ne ptr %ask, null
  %both = and i1 %time, %given
  br i1 %both, label %question, label %join
question:
  %asked = load ptr, ptr %ask
  %stop = call i1 %asked(ptr %ask)
  br label %join
release:
  store atomic i32 0, ptr @busy release, align 4
  br label %finished
finished:
  ret void
}}

define void @worker() {{
entry:
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ 0, %ran ], [ %n1, %idle ], [ 0, %awake ]
  %some = call i1 @step(i1 true)
  br i1 %some, label %ran, label %idle_check
ran:
  br label %spin
idle_check:
  %n1 = add i64 %n, 1
  {PAUSE}
  %tired = icmp ugt i64 %n1, {SPINS}
  br i1 %tired, label %doze, label %idle
idle:
  br label %spin
doze:
  %ticket = load atomic i32, ptr @wake seq_cst, align 4
  %late = call i1 @step(i1 true)
  br i1 %late, label %awake, label %sleep
sleep:
  %before = atomicrmw add ptr @asleep, i32 1 seq_cst
  %slept = {wait}
  %after = atomicrmw sub ptr @asleep, i32 1 seq_cst
  br label %awake
awake:
  br label %spin
}}
"""


def count() -> int:
    """How many threads run parallel loops."""
    chosen = os.environ.get("CATENA_NUM_THREADS")
    if chosen:
        if not chosen.isdigit() or int(chosen) < 1:
            raise ValueError(f"CATENA_NUM_THREADS must be a positive integer, got {chosen!r}")
        return int(chosen)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """The pool in memory, given its loaded code."""

    def __init__(self, code):
        self.code = code
        self.address = code.address("parallel_for")
        self._workers = ctypes.c_int32.from_address(code.address("workers"))
        self._busy = ctypes.c_int32.from_address(code.address("busy"))
        self._asleep = ctypes.c_int32.from_address(code.address("asleep"))
        self._run = ctypes.CFUNCTYPE(None)(code.address("worker"))
        self.resize(count())
        locks.after_fork(self._forget)

    def resize(self, threads: int) -> None:
        """Starts workers until there are `threads` threads with the caller; it never stops any."""
        with _lock:
            for _ in range(self._workers.value, threads - 1):
                threading.Thread(target=self._run, daemon=True, name="catena-worker").start()
            self._workers.value = threads - 1

    def _forget(self) -> None:
        self._workers.value = 0
        self._busy.value = self._asleep.value = 0


class ParallelFor:
    """The address of the pool's `parallel_for`, for programs to call."""

    def __init__(self, pool):
        self.pool = pool

    @property
    def address(self) -> int:
        return self.pool().address

    def __eq__(self, other):
        return isinstance(other, ParallelFor)

    def __hash__(self):
        return hash(ParallelFor)


def available() -> bool:
    """Whether this platform has what the pool is built on."""
    return FUTEX is not None
