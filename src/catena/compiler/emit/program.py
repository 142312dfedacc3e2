"""The whole program as one LLVM module: an entry that checks its arguments, then the steps in order.

Loops and branches are native control flow in the same function; their regions are written in place. Big nests
become functions of their own, and nests with equal text share one. Values get memory as the steps are
written: outputs are computed where they must end up, operands that die are updated in place, everything else
is a stack slot or a piece of the arena.

In loops, where chains of operations are what takes the time, a product that goes into a sum is rounded with it
(one fused operation). Elsewhere each operation is rounded as it is when evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from catena.compiler import epilogues, loops, products
from catena.compiler.emit import (
    bounds,
    control,
    convolve,
    fourier,
    interrupts,
    libraries,
    parallel,
    partial,
    pauses,
    ranges,
    rows,
    selection,
    sort_steps,
    stack_steps,
)
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.module import Module, digest
from catena.compiler.emit.nest import NestWriter
from catena.compiler.fuse import Fused, Step, fuse
from catena.compiler.graph import Region, Value
from catena.compiler.machine import Machine
from catena.compiler.memory import SLOT_BYTES, SLOTS, Arena, Block
from catena.compiler.nests import NestBuilder
from catena.compiler.rows import group_rows
from catena.core.context import context
from catena.core.errors import CompileError

INLINE, INLINE_IN_LOOP = 64, 4096  # nests of at most so much work (blocks * statements) are written in place
MOST_TEXTS = 2048
_texts: dict[tuple, tuple[str, dict]] = {}  # of nests that are functions, with the helpers that they need


@dataclass
class Frame:
    """The memory of one region while its steps are written."""

    fused: Fused
    nests: NestBuilder
    blocks: dict[int, Block] = field(default_factory=dict)  # root value -> memory
    targets: dict[int, Block] = field(default_factory=dict)  # root value -> where it must be computed
    last_use: dict[int, int] = field(default_factory=dict)
    protected: set[int] = field(default_factory=set)  # roots whose memory must not be overwritten

    def nest_of(self, step: Step) -> loops.Nest:
        """The loop nest of a kernel."""
        if step.nest is None:
            step.nest = self.nests.kernel(step.kernel)
        return step.nest


class ProgramWriter:
    """Writes regions into one function; see the module's head."""

    def __init__(self, machine: Machine, keep_nests: bool = False, pool=None):
        self.e = Emitter()
        self.arena = Arena()
        self.machine = machine
        self.functions: dict[str, str] = {}  # text of a nest -> name of its function
        self.nests_known: dict[tuple, str] = {}  # structure of a nest -> name of its function
        self.constants: list[np.ndarray] = []
        self.constant_at: dict[int, int] = {}
        self.externals: list = []
        self.helpers: dict = {}
        self.literals: dict[str, str] = {}  # integer constants in memory, for routines that want addresses
        self.uses_blas = False
        self.pool = pool  # the external that runs loops in parallel, if there is one
        self.keep_nests, self.shown = keep_nests, []
        self.uses_stacks, self.returned_stacks = False, None
        self.flops, self.bytes = 0, 0
        self.reused: dict[int, int] = {}  # result of the program -> donated argument in whose memory it is
        self.units = 0  # work written so far, as `parallel.work` estimates it; that of loops as often as they run
        self.fuel: str | None = None  # see `interrupts`
        self.ask: str | None = None  # see `interrupts.table`
        self.trips = 1  # iterations of the loops around what is being written
        self.slot_bytes = 0
        self.loops = 0  # loops written so far
        self.loops_here = 0  # nests, and loops over chunks, written where they run, not as functions
        self.sites = bounds.Sites() if context.check_bounds else None  # in checked mode, the accesses
        self.values: list[Value] = []  # of the region that is being written
        self.depth = 0  # loops around what is being written

    # ---- regions -------------------------------------------------------------------------------------------

    def region(
        self,
        region: Region,
        inputs: list[str],
        dests: list[str],
        carried: dict[int, int] | None = None,
        donated: Sequence[int] = (),
    ) -> None:
        """Writes a region that reads `inputs` and leaves its outputs at `dests`.

        `carried` maps an output to the input whose memory is that output's destination (loop carries). Inputs
        that are `donated` give their memory to outputs where that is safe: `self.reused` tells which.
        """
        outside, self.values = self.values, region.values
        fused = fuse(region)
        frame = Frame(fused, NestBuilder(fused))
        group_rows(fused, frame.nest_of)
        epilogues.attach(fused, frame.nest_of)
        for v, pointer in zip(region.inputs, inputs):
            frame.blocks[v.number] = Block(pointer)
            frame.protected.add(v.number)
        self._liveness(frame)
        if donated:
            self._reuse(frame, donated, inputs, dests)
        copies = self._destinations(frame, dests, carried or {})
        for i, step in enumerate(fused.steps):
            self._step(frame, i, step)
            self._release(frame, i, step)
        self._final_copies(frame, copies, dests, carried or {})
        for block in frame.blocks.values():
            self._free(block)
        self.values = outside

    def _liveness(self, frame: Frame) -> None:
        for i, step in enumerate(frame.fused.steps):
            for r in step.reads:
                frame.last_use[r] = i

    def _destinations(self, frame: Frame, dests: list[str], carried: dict[int, int]) -> list[int]:
        """Chooses which outputs are computed in place; returns the others, to be copied in the end."""
        region, end = frame.fused.region, len(frame.fused.steps)
        made = {w: i for i, step in enumerate(frame.fused.steps) for w in step.writes}
        for out in region.outputs:
            r = frame.fused.root(out)
            if r not in made:
                frame.last_use[r] = end
        copies = []
        for k, out in enumerate(region.outputs):
            r = frame.fused.root(out)
            if r in made and r not in frame.targets and self._may_write(frame, made[r], r, carried.get(k)):
                frame.targets[r] = Block(dests[k])
                frame.last_use[r] = end
            elif not (k in carried and r == region.inputs[carried[k]].number):
                copies.append(k)
                frame.last_use[r] = end
        return copies

    def _reuse(self, frame: Frame, donated: Sequence[int], inputs: list[str], dests: list[str]) -> None:
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

    def _may_write(self, frame: Frame, step: int, r: int, carry: int | None) -> bool:
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
        if s.node.form in ("dynamic_update_slice", "scatter"):
            return frame.fused.root(s.node.args[0]) == old.number and not _reads_again(frame, s.node)
        return s.node.form == "multi" and control.starts_as(frame, s.node, r, old)

    def _final_copies(self, frame: Frame, copies: list[int], dests: list[str], carried: dict[int, int]) -> None:
        region = frame.fused.region
        overwritten = {dests[k] for k in range(len(dests))} if carried else set()
        moves = []
        for k in copies:
            out = region.outputs[k]
            source, size = self.address(frame, out), out.nbytes
            if source in overwritten and source != dests[k] and size:
                staged = self.allocate(size)
                self.copy(staged.pointer, source, size)
                source = staged.pointer
            moves.append((dests[k], source, size))
        for dest, source, size in moves:
            self.copy(dest, source, size)

    # ---- memory --------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> Block:
        if size <= SLOT_BYTES and (self.slot_bytes < SLOTS or not size):
            self.slot_bytes += size
            return Block(self.e.slot(f"[{max(size, 1)} x i8]", 16))
        offset, room = self.arena.allocate(size)
        return Block(self.e.op(f"getelementptr i8, ptr %arena, i64 {offset}"), offset, room)

    def _free(self, block: Block) -> None:
        if block.size:
            self.arena.release(block.offset, block.size)
            block.size = 0

    def copy(self, dest: str, source: str, size: int) -> None:
        if dest == source or not size:
            return
        if size in (1, 2, 4, 8):
            x = self.e.op(f"load i{8 * size}, ptr {source}, align 1")
            self.e.do(f"store i{8 * size} {x}, ptr {dest}, align 1")
        elif 16 < size <= SLOT_BYTES and size % 4 == 0:
            x = self.e.op(f"load <{size // 4} x i32>, ptr {source}, align 1")
            self.e.do(f"store <{size // 4} x i32> {x}, ptr {dest}, align 1")
        else:
            self.e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {dest}, ptr {source}, i64 {size}, i1 false)")

    def address(self, frame: Frame, v: Value) -> str:
        """The pointer to a stored value."""
        r = frame.fused.root(v)
        block = frame.blocks.get(r)
        if block is None:
            source = frame.fused.region.values[r]
            if source.form != "constant":
                raise CompileError(f"the compiler lost the memory of {source!r}")
            block = frame.blocks[r] = Block(self.constant(source.params["array"]))
            frame.protected.add(r)  # constants outlive the run: nothing is computed in their memory
        return block.pointer

    def constant(self, array: np.ndarray) -> str:
        """The address of a constant array, bound at load."""
        known = self.constant_at.get(id(array))
        if known is None:
            known = self.constant_at[id(array)] = len(self.constants)
            self.constants.append(array)
            self.e.slots.append(
                f"  %c{known} = load ptr, ptr getelementptr (ptr, ptr @constants, i64 {known}), align 8"
            )
        return f"%c{known}"

    def external(self, target) -> str:
        """The address of a library function or callback, bound at load."""
        if target not in self.externals:
            self.externals.append(target)
        i = self.externals.index(target)
        return self.e.op(f"load ptr, ptr getelementptr (ptr, ptr @externals, i64 {i}), align 8")

    def literal(self, type_: str, value: int) -> str:
        """The address of an integer constant."""
        name = f"@k.{type_}.{value}"
        self.literals[name] = f"{name} = private unnamed_addr constant {type_} {value}"
        return name

    def numbers(self, values: Sequence[int]) -> str:
        """The address of a table of integers."""
        name = f"@n.{'.'.join(map(str, values))}"
        listed = ", ".join(f"i64 {n}" for n in values)
        self.literals[name] = f"{name} = private unnamed_addr constant [{len(values)} x i64] [{listed}]"
        return name

    def stop_if(self, condition: str, status: int) -> None:
        """Ends the program with a status when the condition holds."""
        e = self.e
        stop, go = e.label(), e.label()
        e.branch(condition, stop, go)
        e.start(stop)
        e.do(f"store i64 {status}, ptr %status")
        e.jump("finish")
        e.start(go)

    def define(self, frame: Frame, v: Value) -> str:
        """Memory for a value about to be computed."""
        block = frame.targets.get(v.number) or self.allocate(v.nbytes)
        frame.blocks[v.number] = block
        return block.pointer

    def take(self, frame: Frame, operand: Value, v: Value, step: int) -> bool:
        """Gives `v` the memory of `operand` if that dies here; True when `v` starts as the operand."""
        r = frame.fused.root(operand)
        source = frame.blocks.get(r)
        target = frame.targets.get(v.number)
        if target is not None:
            frame.blocks[v.number] = target
            return source is not None and source.pointer == target.pointer
        dies = frame.last_use.get(r, -1) == step and r not in frame.protected and source is not None
        if dies:
            frame.blocks[v.number] = source
            del frame.blocks[r]
            return True
        self.define(frame, v)
        return False

    def _release(self, frame: Frame, i: int, step: Step) -> None:
        """Frees what this step read or wrote for the last time."""
        for r in (*step.reads, *step.writes):
            if frame.last_use.get(r, -1) <= i and r not in frame.protected:
                block = frame.blocks.pop(r, None)
                if block is not None and r not in frame.targets:
                    self._free(block)

    # ---- steps ---------------------------------------------------------------------------------------------

    def _step(self, frame: Frame, i: int, step: Step) -> None:
        if step.kernel is not None:
            self._kernel(frame, i, step)
            return
        if step.group is not None:
            rows.write(self, frame, step.group, step.writes)
            return
        node = step.node
        if node.form == "multi":
            rule = _MULTI.get(node.params["op"])
            if rule is None:
                raise CompileError(f"operation {node.params['op']!r} cannot be compiled")
            rule(self, frame, i, node)
            return
        rule = _NODES.get(node.form)
        if rule is None:
            raise CompileError(f"operation {node.form!r} cannot be compiled")
        rule(self, frame, i, node)

    def _kernel(self, frame: Frame, i: int, step: Step) -> None:
        nest = frame.nest_of(step)
        written = [frame.fused.region.values[n] for n in step.writes]
        for v in written:
            self.define(frame, v)
        reads = {frame.blocks[r].pointer for r in step.reads if r in frame.blocks}
        in_place = any(frame.blocks[v.number].pointer in reads for v in written)
        self.nest(frame, nest, in_place)

    def nest(self, frame: Frame, nest: loops.Nest, in_place: bool = False) -> None:
        """Writes a nest here, or as a function and a call."""
        loops.schedule(nest, self.machine.vector_bytes)
        if self.keep_nests:
            self.shown.append(loops.show(nest))
        self.count(nest)
        pointers = {b: self.buffer(frame, b) for b in nest.buffers()}
        blocks = nest.trips // max(1, nest.width if nest.vector is not None else 1)
        if blocks <= 1 or blocks * len(nest.stmts) <= (INLINE_IN_LOOP if self.depth else INLINE):
            self.loops_here += 1
            self.e.contract = self.depth > 0
            NestWriter(self.e, nest, pointers, in_place, guard=self.guard(self.e, nest, False)).write()
            self.e.contract = False
            return
        self._outline(frame, nest, pointers, in_place)

    def guard(self, e: Emitter, nest: loops.Nest, own_function: bool, sizes=None) -> bounds.Guard | None:
        """What writes the bounds checks of a nest, in checked mode."""
        if self.sites is None:
            return None
        return bounds.Guard(self.sites, e, self.values, loops.show(nest), own_function, sizes or {})

    def _extents(self, buffers: list[int]) -> tuple:
        """In checked mode, what tells equal nests over values of different sizes apart."""
        return tuple(self.values[b].nbytes for b in buffers) if self.sites is not None else ()

    def count(self, nest: loops.Nest) -> None:
        """Adds a nest to the program's costs."""
        work = sum(s.op not in ("const", "load", "load_now", "affine", "convert") for s in nest.stmts) + len(nest.folds)
        self.flops += self.trips * nest.trips * work
        self.units += parallel.work(nest)
        self.bytes += self.trips * nest.trips * 4 * (len(nest.buffers()))

    def buffer(self, frame: Frame, number: int) -> str:
        return self.address(frame, frame.fused.region.values[number])

    def _outline(self, frame: Frame, nest: loops.Nest, pointers: dict[int, str], in_place: bool) -> None:
        chunk = parallel.chunk(nest, in_place)
        if chunk is None and (size := partial.chunk(nest, in_place)) is not None:
            partial.write(self, frame, nest, size)
            return
        if self.pool is None:
            chunk = None
        opened = ranges.choose(nest, in_place, nest.order[0] if chunk else None)
        pause = pauses.plan(nest, chunk / nest.extents[nest.order[0]] if chunk else 1)
        ask = interrupts.table(self) if pause else None
        name, numbers = self.kernel(nest, list(pointers), in_place, opened, pause), opened.whole(nest)
        if chunk:
            parallel.call(self, name, list(pointers.values()), numbers, 0, chunk, parallel.work(nest), ask=ask)
            return
        given = [*pointers.values(), *([ask] if ask else [])]
        self.e.do(f"call void @{name}({', '.join([*(f'ptr {p}' for p in given), *(f'i64 {n}' for n in numbers)])})")
        if ask:
            interrupts.stop_if_asked(self, ask)
        bounds.stop_if_violated(self)

    def kernel(
        self,
        nest: loops.Nest,
        buffers: list[int],
        in_place: bool,
        opened: ranges.Open,
        pause: pauses.Pause | None = None,
    ) -> str:
        """The name of the function that runs a nest on ranges of its open loops; equal nests have one."""
        dims = (*nest.rows, opened.outer, opened.folded)
        key = (nest.key(buffers, dims), in_place, opened.key(nest), self.depth > 0, self._extents(buffers), pause)
        if key not in self.nests_known:
            self.nests_known[key] = self._remembered(key, nest, buffers, in_place, opened, pause)
        return self.nests_known[key]

    def _remembered(self, key: tuple, *of_nest) -> str:
        """As `nest_function`; the texts of programs written before are at hand, but not their checks of bounds."""
        if self.sites is not None:
            return self.nest_function(*of_nest)
        if key not in _texts:
            if len(_texts) >= MOST_TEXTS:
                _texts.clear()
            _texts[key] = self.nest_text(*of_nest)
        body, needs = _texts[key]
        self.helpers.update(needs)
        return self.function(body)

    def nest_function(
        self,
        nest: loops.Nest,
        buffers: list[int],
        in_place: bool,
        opened: ranges.Open,
        pause: pauses.Pause | None = None,
        sizes: dict[int, int] | None = None,
    ) -> str:
        """The name of the function of a nest, given the sizes of buffers that are parts of values."""
        body, needs = self.nest_text(nest, buffers, in_place, opened, pause, sizes)
        self.helpers.update(needs)
        return self.function(body)

    def nest_text(
        self, nest: loops.Nest, buffers: list[int], in_place: bool, opened: ranges.Open, pause=None, sizes=None
    ) -> tuple[str, dict]:
        """Parameters and body of the function of a nest, and the helpers that it needs."""
        e, written = Emitter(), nest.written()
        e.contract = self.depth > 0
        outer = [f"%o{j}" for j in range(len(nest.rows) - 1)]
        names, guard = {b: f"%b{i}" for i, b in enumerate(buffers)}, self.guard(e, nest, True, sizes)
        NestWriter(e, nest, names, in_place, opened.ranges(), outer, guard, pause).write()
        params = [f"ptr{'' if b in written else ' readonly'} %b{i}" for i, b in enumerate(buffers)]
        params += [*(["ptr %ask"] if pause else []), *(f"i64 {x}" for x in outer), *opened.parameters]
        head = f"({', '.join(params)}) nounwind {{"
        return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"]), e.needs

    def row_function(self, nest: loops.Nest, buffers: list[int], pause: pauses.Pause | None = None) -> str:
        """The name of the function that runs a nest of a row group on a range of rows."""
        return self.kernel(nest, buffers, False, ranges.Open(nest.rows[-1]), pause)

    def function(self, body: str) -> str:
        """The name of the function with this text (parameters and body): equal ones are one, in all programs."""
        return self.functions.setdefault(body, f"f{digest(body)}")

    # ---- the module ----------------------------------------------------------------------------------------

    def finish(self, entry: str) -> Module:
        """The module, given the text of the entry function."""
        self.helpers.update(self.e.needs)
        head = [
            f"@constants = global [{max(len(self.constants), 1)} x ptr] zeroinitializer, align 16",
            f"@externals = global [{max(len(self.externals), 1)} x ptr] zeroinitializer, align 16",
            *self.literals.values(),
            *([bounds.GLOBAL] if self.sites is not None else []),
        ]
        functions = {name: body for body, name in self.functions.items()}
        return Module(
            "\n".join(head),
            functions,
            entry,
            self.constants,
            self.externals,
            self.helpers,
            self.arena.peak,
            self.shown,
            self.flops,
            self.bytes,
            self.fuel is not None or self.ask is not None,
            self.sites.texts if self.sites is not None else [],
        )


# ---- node forms that are not kernels -----------------------------------------------------------------------


def _concatenate(w: ProgramWriter, frame: Frame, i: int, v: Value) -> None:
    w.define(frame, v)
    for nest in frame.nests.concatenate(v):
        w.nest(frame, nest)


def _reads_again(frame: Frame, update: Value) -> bool:
    """Whether an update reads the array that it changes as its updates or indices too: it needs a copy then."""
    x, *others = (frame.fused.root(a) for a in update.args)
    return x in others


def _update(build: str):
    def rule(w: ProgramWriter, frame: Frame, i: int, v: Value) -> None:
        x = v.args[0]
        source = w.address(frame, x)
        if _reads_again(frame, v):
            w.define(frame, v)
            w.copy(w.address(frame, v), source, v.nbytes)
        elif not w.take(frame, x, v, i):
            w.copy(w.address(frame, v), source, v.nbytes)
        w.nest(frame, getattr(frame.nests, build)(v), in_place=True)

    return rule


def _cumulative(w: ProgramWriter, frame: Frame, i: int, v: Value) -> None:
    w.define(frame, v)
    w.nest(frame, frame.nests.cumulative(v))


def _reduce_general(w: ProgramWriter, frame: Frame, i: int, node: Value) -> None:
    for out in node.results:
        w.define(frame, out)
    w.nest(frame, frame.nests.reduce_general(node))


_NODES = {
    "concatenate": _concatenate,
    "dynamic_update_slice": _update("update_slice"),
    "scatter": _update("scatter"),
    "cumulative": _cumulative,
    "dot": products.dot,
    "convolve": convolve.convolve,
}
_MULTI = {
    "reduce_general": _reduce_general,
    "while": control.while_loop,
    "scan": control.scan,
    "branch": control.branch,
    "host": libraries.host,
    "lapack": libraries.lapack,
    "fourier": fourier.transform,
    "sort_keys": sort_steps.sort_keys,
    "argsort": sort_steps.argsort,
    "ranked": sort_steps.ranked,
    "select": selection.select,
    "stack_new": stack_steps.new,
    "stack_length": stack_steps.length,
    "stack_write": stack_steps.write,
    "stack_read": stack_steps.read,
}
