"""Loops and branches as native control flow in the function of the program; their blocks are written in place."""

from __future__ import annotations

from catena.compiler.emit import interrupts, row_halves
from catena.compiler.emit.branches import when
from catena.compiler.emit.checks import LoopCounter, stop_if_failed
from catena.compiler.emit.clock import Clock
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.steps import Branch, Scan, While


def while_loop(w, step: While) -> None:
    e = w.e
    _here(w, [*step.inputs, *step.carries])
    flag = w.pointer(step.flag)
    head, body, done = e.label(), e.label(), e.label()
    counter = LoopCounter(w)
    turns = Turns(w, step.body.turns)
    e.jump(head)
    e.start(head)
    turns.begin()
    w.loops += 1
    w.block(step.cond)
    more = e.op(f"trunc i8 {e.op(f'load i8, ptr {flag}')} to i1")
    e.branch(more, body, done)
    e.start(body)
    calls = w.checks.calls
    _iteration(w, step)
    stop_if_failed(w, calls)
    counter.next()
    interrupts.end_of_iteration(w, step.units, None)
    turns.take()
    e.jump(head)
    e.start(done)
    turns.end(taken=False)
    counter.end()


def scan(w, step: Scan) -> None:
    e = w.e
    if step.halves is not None and w.pool is not None and not isinstance(w.clock, Clock):
        row_halves.scan(w, step, step.halves)
        return
    moving = [*step.slices, *step.made]
    _here(w, [*step.inputs, *step.carries, *(b for s in moving if (b := s.base) is not None)])
    counter, turns = LoopCounter(w), Turns(w, step.body.turns)
    last = w.number(step.length - 1) if step.reverse else None
    items = Items(w, moving, last)
    k, opened = e.begin_loop(0, w.number(step.length))
    turns.begin()
    items.begin()
    counter.set(e.op(f"sub i64 {last}, {k}") if step.reverse else k)
    w.loops += 1
    calls = w.checks.calls
    _iteration(w, step)
    stop_if_failed(w, calls)
    interrupts.end_of_iteration(w, step.units, step.length)
    turns.take()
    items.next()
    e.end_loop(opened)
    turns.end(taken=True)
    counter.end()


class Items:
    """The places of what each iteration of a loop has an item of, counted on from one to the next: multiplied, each
    would take an operation of which a processor does one in a cycle.
    """

    def __init__(self, w, items: list[Buffer], last: str | None):
        """`last`: which item is the first, where the loop goes through them in reverse."""
        self.w, self.items, self.steps, self.first = w, items, [], []
        for item in items:
            size, place = w.number(item.bytes), w.pointer(item.base)
            if last is not None:
                place = self._moved(place, w.e.op(f"mul nsw i64 {last}, {size}"))
                size = w.e.op(f"sub nsw i64 0, {size}")
            self.steps.append(size)
            self.first.append(place)
        self.now = [w.e.name() for _ in items]
        self.entered_from, self.at = w.e.block, 0

    def begin(self) -> None:
        """Leaves room for where the items of this iteration are, at the head of the loop."""
        self.at = len(self.w.e.lines)
        self.w.e.lines += [""] * len(self.items)
        for item, place in zip(self.items, self.now, strict=True):
            self.w.place(item, place)

    def next(self) -> None:
        e = self.w.e
        for k, (place, first, step) in enumerate(zip(self.now, self.first, self.steps, strict=True)):
            then = self._moved(place, step)
            e.lines[self.at + k] = f"  {place} = phi ptr [ {first}, %{self.entered_from} ], [ {then}, %{e.block} ]"

    def _moved(self, place: str, by: str) -> str:
        return self.w.e.op(f"getelementptr i8, ptr {place}, i64 {by}")


class Turns:
    """The memory of carries that change places with what is beside them, after each iteration of a loop."""

    def __init__(self, w, pairs: list[tuple[Buffer, Buffer]]):
        self.w, self.pairs = w, pairs
        self.before = [(w.pointer(x), w.pointer(y)) for x, y in pairs]
        self.now = [(w.e.name(), w.e.name()) for _ in pairs]
        self.entered_from, self.at = w.e.block, 0

    def begin(self) -> None:
        """Leaves room for where the memory is in this iteration, at the head of the loop."""
        self.at = len(self.w.e.lines)
        self.w.e.lines += [""] * len(self.pairs)
        self._place(self.now)

    def take(self) -> None:
        """An iteration ends here: what was made in it is the carry."""
        e = self.w.e
        for k, ((x, y), (x0, y0)) in enumerate(zip(self.now, self.before)):
            phis = ((x, x0, y), (y, y0, x))
            e.lines[self.at + k] = "\n".join(
                f"  {p} = phi ptr [ {first}, %{self.entered_from} ], [ {then}, %{e.block} ]" for p, first, then in phis
            )

    def end(self, taken: bool) -> None:
        """Moves carries to where they were first; whether the turn of the last iteration is yet to be `taken`."""
        e = self.w.e
        for (x, y), (first, _), (carry, _) in zip(self.now, self.before, self.pairs):
            last = y if taken else x
            with when(e, e.op(f"icmp ne ptr {last}, {first}")):
                self.w.copy_bytes(first, last, carry.bytes)
        self._place(self.before)

    def _place(self, where: list[tuple[str, str]]) -> None:
        for pair, pointers in zip(self.pairs, where):
            for buffer, pointer in zip(pair, pointers):
                self.w.place(buffer, pointer)


def _here(w, buffers: list[Buffer]) -> None:
    """Writes the addresses of memory before the blocks that use it: they must be known on every way to them."""
    for buffer in buffers:
        w.pointer(buffer)


def _iteration(w, step: While | Scan) -> None:
    """One iteration of a loop; stacks that it makes and nobody can see after it are freed at its end."""
    if not step.frees_stacks:
        w.block(step.body)
        return
    w.uses.add("stacks")
    before = w.e.op("load ptr, ptr %stacks")
    w.block(step.body)
    w.e.do(f"call void @catena_stack_free_until(ptr %stacks, ptr {before})")


def branch(w, step: Branch) -> None:
    e, t = w.e, f"i{step.bits}"
    _here(w, [*step.inputs, *step.outs])
    choice = e.op(f"load {t}, ptr {w.pointer(step.index)}")
    labels, done = [e.label() for _ in step.cases], e.label()
    if step.clamped:
        low = e.op(f"call {t} @llvm.smax.{t}({t} {choice}, {t} 0)")
        choice = e.op(f"call {t} @llvm.smin.{t}({t} {low}, {t} {len(step.cases) - 1})")
    cases = " ".join(f"{t} {k}, label %{label}" for k, label in enumerate(labels[:-1]))
    e.do(f"switch {t} {choice}, label %{labels[-1]} [ {cases} ]")
    for label, case in zip(labels, step.cases):
        e.start(label)
        w.block(case)
        e.jump(done)
    e.start(done)
