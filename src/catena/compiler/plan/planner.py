"""From fused steps to a program: where every value lives, and what each step becomes.

Values get memory in the order of the steps: outputs are computed where they must end up, operands that die are updated
in place, everything else is a slot on the stack or a piece of the arena, given back after its last use. Loops and
branches are planned where they stand, so the memory of their bodies is free again after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from catena.compiler.graph import keys
from catena.compiler.graph.forms import FORMS, LOOPS
from catena.compiler.graph.later_arrays import LaterArray
from catena.compiler.graph.region import Value
from catena.compiler.graph.thresholds import reaches
from catena.compiler.kernels import loops
from catena.compiler.machine import Machine, Memory
from catena.compiler.plan import elements, sharing, slices
from catena.compiler.plan.alike import Planned
from catena.compiler.plan.fuse import Fused
from catena.compiler.plan.fuse import Step as FusedStep
from catena.compiler.plan.memory import SLOT_BYTES, SLOTS, Arena
from catena.compiler.plan.nests import NestBuilder
from catena.compiler.plan.program import ARENA, CELL, CONSTANT, PART, SLOT, Block, Buffer, Step
from catena.compiler.plan.steps import Copy
from catena.core import failures
from catena.core.errors import CompileError

MANY_STEPS = 12  # of a program, from which on its entry only calls
SHARED = 1 << 18  # bytes of a result from which on it is worth that no lanes of its last vector are written twice
UPDATES = ("dynamic_update_slice", "scatter")  # forms of nodes that change a few elements of an array


@dataclass
class Outside:
    """The loop around a region, of so many `trips`, in `frame`. `fixed` are the inputs of the region that do not change
    in it, by number, as they are called outside; what is `made` of them stands before the loop.
    """

    frame: Frame
    fixed: dict[int, Value]
    trips: int
    counted: int  # how often the loop itself runs, in the count of what the program costs
    made: list[Buffer] = field(default_factory=list)


@dataclass
class Frame:
    """One region while it is planned."""

    fused: Fused
    steps: list[Step] = field(default_factory=list)
    blocks: dict[int, Buffer] = field(default_factory=dict)  # root value -> memory
    targets: dict[int, Buffer] = field(default_factory=dict)  # root value -> where it must be computed
    last_use: dict[int, int] = field(default_factory=dict)
    protected: set[int] = field(default_factory=set)  # roots whose memory must not be overwritten
    outside: Outside | None = None  # of the body of a loop
    carries: frozenset[int] = frozenset()  # inputs whose memory the region's own outputs take
    awake: bool = False  # whether threads likely wait for work when a step comes

    @property
    def nests(self) -> NestBuilder:
        return self.fused.nests

    @property
    def has_many_steps(self) -> bool:
        return len(self.fused.steps) >= MANY_STEPS

    @cached_property
    def by_elements(self) -> frozenset[int]:
        """The small arrays that are not always whole lines (see `plan.elements`)."""
        return elements.by_elements(self.fused)

    def starts_as(self, node: Value, result: int, old: Value) -> bool:
        """Whether a result of a loop is a large carry that starts as `old`, which the loop reads nowhere else."""
        if node.form not in LOOPS or old.nbytes <= SLOT_BYTES:
            return False
        first = node.params.consts
        roots = [self.fused.root(x) for x in node.args]
        carries = len(node.results) if node.form == "while" else node.params.carries
        starts = {out.number: roots[first + j] for j, out in enumerate(node.results[:carries])}
        return starts.get(result) == old.number and roots.count(old.number) == 1

    def beginning(self, i: int, result: int, memory: Memory) -> int | None:
        """What a result of step `i` begins as, or is made of place by place: it takes its memory if that dies there."""
        step = self.fused.steps[i]
        if step.kernel is not None:
            return self._read_there(step, i, result, memory)
        node = step.node
        if node is not None and node.form in UPDATES:
            return None if self.reads_again(node) else self.fused.root(node.args[0])
        olds = [x for x in node.args if self.starts_as(node, result, x)] if node is not None else []
        return self.fused.root(olds[0]) if olds else None

    def _read_there(self, step: FusedStep, i: int, result: int, memory: Memory) -> int | None:
        """An array that a kernel reads for the last time, each element where it writes one of the result: of those that
        caches hold better than two, not of those that are written past them.
        """
        values, kernel = self.fused.region.values, step.own_kernel
        v = values[result]
        if kernel.axes or step.part or not reaches(v.nbytes, SHARED) or reaches(v.nbytes, memory.streamed):
            return None
        dying = (r for r in sorted(step.reads - kernel.moved) if self.last_use.get(r) == i and r not in self.protected)
        alike = (r for r in dying if (values[r].shape, values[r].dtype) == (v.shape, v.dtype))
        return next(alike, None)

    def reads_again(self, update: Value) -> bool:
        """Whether an update reads the array that it changes as its updates or indices too: it needs a copy then."""
        x, *others = (self.fused.root(a) for a in update.args)
        return x in others


@dataclass
class Costs:
    """What a program does, counted while it is planned; what loops do, as often as they run (`while` once)."""

    flops: int = 0
    bytes: int = 0
    units: int = 0  # of work, as `plan.sharing.work` estimates it
    trips: int = 1  # iterations of the loops around what is being planned

    def told(self) -> tuple[int, int, int]:
        return self.flops, self.bytes, self.units

    def add(self, flops: int, size: int, units: int) -> None:
        self.flops, self.bytes, self.units = self.flops + flops, self.bytes + size, self.units + units


Rule = Callable[["Planner", Frame, int, Any], None]  # given the node, if the step is one


class Planner:
    """Plans regions; `rules` tell for each form of node that is no kernel how it becomes steps."""

    def __init__(self, machine: Machine, rules: dict[str, Rule]):
        self.machine, self.rules = machine, rules
        self.arena = Arena()
        self.costs = Costs()
        self.depth = 0  # loops around what is being planned
        self.cell = Buffer(CELL, failures.WORDS * 8)
        self.reused: dict[int, int] = {}  # result of the program -> donated argument in whose memory it is
        self._slot_bytes = 0
        self._live: set[Buffer] = set()  # pieces of the arena
        self._constants: dict[int, Buffer] = {}
        self._known: dict = {}
        self.planned: dict[tuple, Planned] = {}  # steps, by their structure

    def known(self, function: Callable, x, *others):
        """What a function makes of plain data, for this machine: it is asked once in a program for the same."""
        name = function, keys.of((x, *others))
        if name not in self._known:
            self._known[name] = function(x, self.machine, *others)
        return self._known[name]

    # ---- regions -------------------------------------------------------------------------------------------

    def block(
        self,
        fused: Fused,
        inputs: list[Buffer],
        dests: list[Buffer],
        carried: dict[int, int] | None = None,
        donated: Sequence[int] = (),
        outside: Outside | None = None,
    ) -> Block:
        """The steps of a region that reads `inputs` and leaves its outputs at `dests`; a loop's body has an `outside`.

        `carried` maps an output to the input whose memory is that output's destination (loop carries). Inputs
        that are `donated` give their memory to outputs where that is safe: `self.reused` tells which.
        """
        carries = frozenset(fused.region.inputs[i].number for i in (carried or {}).values())
        frame = Frame(fused, outside=outside, carries=carries)
        frame.awake = frame.has_many_steps or _shares_step(fused, self.machine)
        for v, buffer in zip(fused.region.inputs, inputs):
            frame.blocks[v.number] = buffer
            frame.protected.add(v.number)
        for i, step in enumerate(fused.steps):
            frame.last_use.update(dict.fromkeys(step.reads, i))
        for step in fused.steps:
            if step.part:  # what it is a part of stays there as long, and one step more, which may overwrite it
                last = frame.last_use.get(step.writes[0], -1) + 1
                frame.last_use.update({r: max(last, frame.last_use[r]) for r in step.reads})
        if donated:
            self._reuse(frame, donated, inputs, dests)
        copies, turns = self._destinations(frame, dests, carried or {})
        self._start_there(frame, (carried or {}) | (self.reused if donated else {}), copies)
        for i, step in enumerate(fused.steps):
            before = len(frame.steps)
            self._step(frame, i, step)
            for planned in frame.steps[before:]:
                planned.origin = (frame.fused, step)
            self._release(frame, i, step)
        self._final_copies(frame, copies, dests)
        for r, buffer in frame.blocks.items():
            if r not in frame.protected and r not in frame.targets:  # those are whoever's who runs the region
                self.free(buffer)
        return Block(frame.steps, fused.region.values, turns)

    def _destinations(self, frame: Frame, dests: list[Buffer], carried: dict[int, int]) -> tuple[list[int], list]:
        """Chooses which outputs are computed in place; returns the others, to be copied in the end, and the turns that
        large carries take with memory beside them (`Block.turns`), which is free again when the loop is planned.
        """
        region, end = frame.fused.region, len(frame.fused.steps)
        made = {w: i for i, step in enumerate(frame.fused.steps) for w in step.writes}
        for out in region.outputs:
            r = frame.fused.root(out)
            if r not in made:
                frame.last_use[r] = end
        copies, turns = [], []
        in_registers: set[int] = set()  # what the next iteration waits for, which is not read from a stacked output
        for k, out in enumerate(region.outputs):
            r = frame.fused.root(out)
            if r in in_registers:
                copies.append(k)
            elif r in made and r not in frame.targets and self._may_write(frame, made[r], r, carried.get(k)):
                frame.targets[r] = dests[k]
                frame.last_use[r] = end
            elif r in made and r not in frame.targets and k in carried and out.nbytes > SLOT_BYTES:
                frame.targets[r] = self.allocate(out.nbytes)
                turns.append((dests[k], frame.targets[r]))
                frame.last_use[r] = end
            elif not (k in carried and r == region.inputs[carried[k]].number):
                copies.append(k)
                frame.last_use[r] = end
                if k in carried and r in made and r not in frame.targets and out.nbytes <= SLOT_BYTES:
                    in_registers.add(r)
        return copies, turns

    def _start_there(self, frame: Frame, overwritten: dict[int, int], copies: list[int]) -> None:
        """Has arrays of which an update or a loop makes an output computed where that goes: there they would be copied.
        So with what is updated to become these. `overwritten` maps an output to the input whose memory it takes;
        outputs that are `copies` do not say where they are computed.
        """
        steps = frame.fused.steps
        made = {w: i for i, step in enumerate(steps) for w in step.writes}
        for k, out in enumerate(frame.fused.region.outputs):
            r: int | None = None if k in copies else frame.fused.root(out)
            while r in frame.targets and r in made:
                step, target = made[r], frame.targets[r]
                r = frame.beginning(step, r, self.machine.memory)
                if r not in made or r in frame.targets or frame.last_use.get(r) != step:
                    break
                if _is_made_in_place(steps[made[r]].node):
                    break
                if not self._may_write(frame, made[r], r, overwritten.get(k)):
                    break
                frame.targets[r] = target

    def _reuse(self, frame: Frame, donated: Sequence[int], inputs: list[Buffer], dests: list[Buffer]) -> None:
        """Chooses outputs that are computed in the memory of donated inputs, and makes that their destination."""
        region, free = frame.fused.region, list(donated)
        made = {w: i for i, step in enumerate(frame.fused.steps) for w in step.writes}
        kept = {frame.fused.root(out) for out in region.outputs} - set(made)
        for k, out in enumerate(region.outputs):
            r = frame.fused.root(out)
            for i in free:
                x = region.inputs[i]
                alike = (x.shape, x.dtype) == (out.shape, out.dtype)
                if alike and x.number not in kept and r in made and self._may_write(frame, made[r], r, i):
                    free.remove(i)
                    self.reused[k], dests[k] = i, inputs[i]
                    break

    @staticmethod
    def _may_write(frame: Frame, step: int, r: int, carry: int | None) -> bool:
        """Whether the step may compute `r` over the memory of the loop carry `carry`."""
        if carry is None:
            return True
        old = frame.fused.region.inputs[carry]
        last = frame.last_use.get(old.number, -1)
        if last != step:
            return last < step
        s = frame.fused.steps[step]
        if s.kernel is not None:
            return old.number not in s.kernel.moved and not s.kernel.axes
        if s.node is None:
            return False
        if s.follower is not None and r != s.node.number:  # tasks of the product read all of its operands
            after = s.follower.own_kernel
            return old.number not in after.moved | s.operands and not after.axes
        if s.node.form in UPDATES:
            return frame.fused.root(s.node.args[0]) == old.number and not frame.reads_again(s.node)
        return frame.starts_as(s.node, r, old)

    def _final_copies(self, frame: Frame, copies: list[int], dests: list[Buffer]) -> None:
        """Copies outputs to where they must end up, those first whose old content nobody waits for."""
        outputs = frame.fused.region.outputs
        moves = [(dests[k], self.address(frame, outputs[k]), outputs[k].nbytes) for k in copies]
        moves = [move for move in moves if move[0] is not move[1]]
        while moves:
            sources = [source for _, source, _ in moves]
            free = next((k for k, (dest, *_) in enumerate(moves) if dest not in sources), None)
            if free is None:  # they change places
                dest, source, size = moves[0]
                staged = self.allocate(size)
                self.copy(frame, staged, source, size)
                moves[0] = dest, staged, size
            else:
                self.copy(frame, *moves.pop(free))

    # ---- memory --------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> Buffer:
        if size <= SLOT_BYTES and (self._slot_bytes < SLOTS or not size):
            self._slot_bytes += size
            return Buffer(SLOT, size)
        buffer = Buffer(ARENA, size, *self.arena.allocate(size))
        self._live.add(buffer)
        return buffer

    def allocate_anew(self, size: int) -> Buffer:
        """Memory that nothing has had so far: what is written there before a loop stays while the loop runs."""
        if size <= SLOT_BYTES:
            return self.allocate(size)
        buffer = Buffer(ARENA, size, *self.arena.extend(size))
        self._live.add(buffer)
        return buffer

    @contextmanager
    def before(self, outside: Outside) -> Iterator[None]:
        """What is planned meanwhile stands before a loop, and is counted once."""
        depth, trips = self.depth, self.costs.trips
        self.depth, self.costs.trips = depth - 1, outside.counted
        yield
        self.depth, self.costs.trips = depth, trips

    def free_here(self, frame: Frame, buffers: Iterable[Buffer]) -> None:
        """Gives back what was made for a step, unless that was before the loop around it, which reads it again."""
        kept = frame.outside.made if frame.outside is not None else ()
        for buffer in buffers:
            if buffer not in kept:
                self.free(buffer)

    def free(self, buffer: Buffer) -> None:
        """Gives a piece of the arena back; other memory is not the arena's."""
        if buffer in self._live:
            self._live.remove(buffer)
            self.arena.release(buffer.place, buffer.room)

    @staticmethod
    def copy(frame: Frame, target: Buffer, source: Buffer, size: int) -> None:
        if target is not source and size:
            frame.steps.append(Copy(target, source, size))

    def address(self, frame: Frame, v: Value) -> Buffer:
        """Where a stored value is."""
        r = frame.fused.root(v)
        buffer = frame.blocks.get(r)
        if buffer is None:
            source = frame.fused.region.values[r]
            if source.form != "constant":
                raise CompileError(f"the compiler lost the memory of {source!r}")
            buffer = frame.blocks[r] = self._constant(source.params.array)
            frame.protected.add(r)  # constants outlive the run: nothing is computed in their memory
        return buffer

    def _constant(self, array: np.ndarray) -> Buffer:
        if type(array) is not LaterArray:
            array = np.asarray(array)  # what is in memory is the same at any length
        known = self._constants.get(id(array))
        if known is None:
            known = self._constants[id(array)] = Buffer(CONSTANT, array.nbytes, len(self._constants), array=array)
        return known

    def define(self, frame: Frame, v: Value) -> Buffer:
        """Memory for a value about to be computed."""
        buffer = frame.blocks[v.number] = frame.targets.get(v.number) or self.allocate(v.nbytes)
        return buffer

    def place_part(self, frame: Frame, v: Value) -> bool:
        """Has a slice lie in what it is a part of, unless that is overwritten meanwhile, or it is wanted elsewhere."""
        whole = v.args[0]
        if v.number in frame.targets or frame.fused.root(whole) in frame.carries:
            return False
        first = slices.first_element(v)
        assert first is not None  # `slices.is_part` has asked
        frame.blocks[v.number] = Buffer(PART, v.nbytes, first * v.dtype.itemsize, base=self.address(frame, whole))
        frame.protected.add(v.number)
        return True

    def take(self, frame: Frame, operand: Value, v: Value, step: int) -> bool:
        """Gives `v` the memory of `operand` if that dies here; True when `v` starts as the operand."""
        r = frame.fused.root(operand)
        source = frame.blocks.get(r)
        target = frame.targets.get(v.number)
        if target is not None:
            frame.blocks[v.number] = target
            return source is target
        if source is not None and frame.last_use.get(r, -1) == step and r not in frame.protected:
            frame.blocks[v.number] = source
            del frame.blocks[r]
            return True
        self.define(frame, v)
        return False

    def start_as(self, frame: Frame, operand: Value, v: Value, step: int) -> Buffer:
        """Memory for a value that starts as the operand: its own where that dies here, else a copy."""
        source = self.address(frame, operand)
        if not self.take(frame, operand, v, step):
            self.copy(frame, frame.blocks[v.number], source, v.nbytes)
        return frame.blocks[v.number]

    def operands(self, frame: Frame, nest: loops.Nest) -> dict[int, Buffer]:
        """Where the values are that a nest touches."""
        return {b: self.operand(frame, b) for b in nest.buffers()}

    def operand(self, frame: Frame, number: int) -> Buffer:
        """Where a value is that a nest names by its number."""
        return self.cell if number == loops.CHECKS else self.address(frame, frame.fused.region.values[number])

    def _release(self, frame: Frame, i: int, step: FusedStep) -> None:
        """Frees what this step read or wrote for the last time."""
        for r in (*step.reads, *step.writes):
            if frame.last_use.get(r, -1) <= i and r not in frame.protected:
                buffer = frame.blocks.pop(r, None)
                if buffer is not None and r not in frame.targets:
                    self.free(buffer)

    # ---- steps ---------------------------------------------------------------------------------------------

    def _step(self, frame: Frame, i: int, step: FusedStep) -> None:
        if step.kernel is not None:
            form = "kernel"
        elif step.node is not None:
            form = step.node.form
        else:
            form = "rows"
        rule = self.rules.get(form)
        if rule is None:
            raise CompileError(f"operation {form!r} cannot be compiled")
        rule(self, frame, i, step.node)


def _is_made_in_place(node: Value | None) -> bool:
    """Whether a step, as sorts and routines of libraries are, changes its operand, which would be copied elsewhere."""
    return node is not None and FORMS[node.form].several and node.form not in LOOPS


def _shares_step(fused: Fused, machine: Machine) -> bool:
    """Whether threads share a step for sure, as it makes so many elements."""
    sizes = [fused.region.values[n].size for step in fused.steps for n in step.writes]
    return sharing.is_any_shared(tuple(sizes), machine)
