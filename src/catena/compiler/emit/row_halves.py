"""A loop that two threads do at the same time, each for half of the rows (see `plan.row_halves`): a function of two
chunks, each of which makes its half of every step's calls, in all iterations.
"""

from __future__ import annotations

from catena.compiler.emit import contract, launches, parallel
from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.program import PART, SLICE, Block, Buffer, Step
from catena.compiler.plan.steps import Contract, Copy, Launch, Scan


def scan(w, step: Scan, halves: Block) -> None:
    """Writes the loop's function, and its call."""
    outside, w.values = w.values, halves.values
    text = _Text(w, step, [_chunks(w, each) for each in halves.steps])
    body = text.written()
    w.values = outside
    parallel.through_pool(w, body, text.addresses, 2, text.numbers)
    is_odd = w.e.op(f"trunc i64 {w.number(step.length)} to i1")
    for carry, other in step.body.turns:  # what the last iteration made is where it should be, or beside it
        with when(w.e, is_odd):
            w.copy_bytes(w.pointer(carry), w.pointer(other), carry.bytes)


def _chunks(w, step: Step) -> parallel.Chunks:
    if isinstance(step, Launch):
        return launches.chunks(w, step)
    if isinstance(step, Contract):
        return contract.chunks(w, step)
    assert isinstance(step, Copy)  # the plan has no others
    return parallel.Chunks(parallel.copy(), [step.target, step.source], 2, [step.bytes // 2, step.bytes], 0)


class _Text:
    """The function: its table holds `addresses`, and then that of its `numbers`."""

    def __init__(self, w, step: Scan, steps: list[parallel.Chunks]):
        self.w, self.step, self.steps = w, step, steps
        self.e = Emitter()
        self.addresses: list = []
        self.numbers: list[int] = []
        self._given: dict = {}
        self._here: dict[Buffer, str] = {}

    def written(self) -> str:
        e, step = self.e, self.step
        last, length = self._number(step.length - 1), self._number(step.length)
        before = [(self._address(x), self._address(y)) for x, y in step.body.turns]
        now = [(e.name(), e.name()) for _ in before]
        for pair, pointers in zip(step.body.turns, now):
            self._here.update(zip(pair, pointers))
        entered_from = e.block
        i, opened = e.begin_loop(0, length)
        at = len(e.lines)
        self._iteration = e.op(f"sub i64 {last}, {i}") if step.reverse else i
        for each in self.steps:
            given = [*each.pointers, *([[*each.numbers]] if each.numbers else [])]
            table = parallel.table(e, [self._pointer(x) for x in given])
            e.do(f"call void @{self.w.function(each.body)}(ptr {table}, i64 %k)")
        e.lines[at:at] = self._turns(before, now, entered_from)
        e.end_loop(opened)
        numbers = [f"  %numbers_at = getelementptr ptr, ptr %args, i64 {len(self.addresses)}"]
        numbers.append("  %numbers = load ptr, ptr %numbers_at")
        return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *numbers, *e.slots, *e.lines, "  ret void", "}"])

    def _turns(self, before: list, now: list, entered_from: str) -> list[str]:
        """Carries and the memory beside each change places after an iteration."""
        return [
            f"  {p} = phi ptr [ {first}, %{entered_from} ], [ {then}, %{self.e.block} ]"
            for (x, y), (x0, y0) in zip(now, before)
            for p, first, then in ((x, x0, y), (y, y0, x))
        ]

    def _pointer(self, x) -> str:
        """An address in this iteration."""
        if not isinstance(x, Buffer):
            return self._address(x)
        if x not in self._here:
            if x.kind == SLICE:
                by = self.e.op(f"mul nsw i64 {self._iteration}, {self._number(x.bytes)}")
                self._here[x] = self.e.element(self._pointer(x.base), "i8", by)
            elif x.kind == PART:
                self._here[x] = self.e.element(self._pointer(x.base), "i8", self._number(x.place))
            else:
                self._here[x] = self._address(x)
        return self._here[x]

    def _address(self, x) -> str:
        """One that the function is given."""
        key = x if isinstance(x, (Buffer, str)) else len(self.addresses)
        if key not in self._given:
            n = len(self.addresses)
            self.addresses.append(x)
            self.e.slots += [f"  %a{n}_at = getelementptr ptr, ptr %args, i64 {n}", f"  %a{n} = load ptr, ptr %a{n}_at"]
            self._given[key] = f"%a{n}"
        return self._given[key]

    def _number(self, value: int) -> str:
        n = len(self.numbers)
        self.numbers.append(value)
        self.e.slots += [f"  %n{n}_at = getelementptr i64, ptr %numbers, i64 {n}", f"  %n{n} = load i64, ptr %n{n}_at"]
        return f"%n{n}"
