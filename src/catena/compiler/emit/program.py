"""A program as one LLVM module: the steps in order, in the function of its entry.

Loops and branches are native control flow in the same function; their blocks are written in place. Big nests
become functions of their own, and nests with equal text share one. What becomes of memory was decided before (`plan`):
here its addresses are written where they are first needed.

In loops, where chains of operations are what takes the time, a product that goes into a sum is rounded with it
(one fused operation). Elsewhere each operation is rounded as it is when evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.compiler.emit import (
    amx_packing,
    bounds,
    calls,
    checks,
    concurrent,
    contract,
    control,
    fourier,
    gemm,
    launches,
    libraries,
    narrow_products,
    parallel,
    selection,
    small_matrices,
    sort_steps,
    split_packing,
    split_products,
    stack_steps,
    streams,
    strided,
)
from catena.compiler.emit.branches import when_it_leaves
from catena.compiler.emit.clock import Clock
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.marks import Marks
from catena.compiler.emit.module import NUMBERS, TABLE, Module, Texts, digest
from catena.compiler.graph.region import Value
from catena.compiler.graph.symbols import Computed, plain, recorded
from catena.compiler.graph.varying import varies
from catena.compiler.machine import Machine
from catena.compiler.plan import steps
from catena.compiler.plan.amx import AmxPacking, AmxProduct
from catena.compiler.plan.memory import SLOT_BYTES
from catena.compiler.plan.program import ARENA, CONSTANT, NULL, PART, SLOT, Block, Buffer, Step
from catena.compiler.plan.split_products import SplitProduct, Splitting
from catena.core.context import context
from catena.core.errors import CompileError

FEW_BYTES = 64  # that are copied as text tells them, though they hang on a length


class ProgramWriter:
    """Writes blocks of steps into one function; see the module's head."""

    def __init__(self, machine: Machine, pool=None, clock: Clock | Marks | None = None):
        self.e = Emitter()
        self.texts = Texts()
        self.machine = machine
        self.pool = pool  # the external that runs loops in parallel, if there is one
        self.clock = clock  # of programs that are profiled, or whose text is shown
        self.sites = bounds.Sites() if context.check_bounds else None  # in checked mode, the accesses
        self.values: list[Value] = []  # of the block that is being written
        self.asks: dict[str, str] = {}  # slots by which it asks whether somebody pressed Ctrl-C (see `interrupts`)
        self.checks = checks.State()
        self.tells = False  # whether its numbers are in the text itself
        self.loops = 0  # loops written so far
        self.loops_here = 0  # nests written where they run, not as functions
        self.uses: set[str] = set()  # "blas", "stacks", "control": what the entry makes ready
        self._pointers: dict[Buffer, str] = {}

    def block(self, block: Block, outermost: bool = False) -> None:
        """Writes the steps of a block; calls of the `outermost` one, which runs once, may stand in a table."""

        def write(step: Step) -> None:
            rule = RULES[type(step)]
            if self.clock is None:
                rule(self, step)
            else:
                self.clock.around(self, step, rule)

        outside, self.values = self.values, block.values
        calls.steps(self, block.steps, write, outermost)
        self.values = outside

    # ---- memory --------------------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer) -> str:
        """The address of a buffer, written here where it is needed for the first time."""
        found = self._pointers.get(buffer)
        if found is None:
            found = self._pointers[buffer] = self._address(buffer)
        return found

    def place(self, buffer: Buffer, pointer: str) -> None:
        """Says where a buffer is: an argument, a result, the part that an iteration works on."""
        self._pointers[buffer] = pointer

    def _address(self, buffer: Buffer) -> str:
        if buffer.kind == SLOT:
            return self.e.slot(f"[{slot_size(buffer.bytes)} x i8]", 16)
        if buffer.kind == ARENA:
            return self.e.op(f"getelementptr i8, ptr %arena, i64 {self.number(buffer.place)}")
        if buffer.kind == CONSTANT and buffer.array is not None:
            return self.constant(buffer.array)
        if buffer.kind == PART and buffer.base is not None:
            return self.e.element(self.pointer(buffer.base), "i8", self.number(buffer.place))
        if buffer.kind == NULL:
            return "null"
        raise CompileError(f"the compiler lost the memory of {buffer}")

    def copy_bytes(self, dest: str, source: str, size: int) -> None:
        """Copies so many bytes from one address to another."""
        if size > FEW_BYTES and varies(size):
            self._copy(dest, source, self.number(size))
        elif size in (1, 2, 4, 8):
            x = self.e.op(f"load i{8 * size}, ptr {source}, align 1")
            self.e.do(f"store i{8 * size} {x}, ptr {dest}, align 1")
        elif size <= SLOT_BYTES and size % 4 == 0:
            for at in range(0, size, self.machine.vector_bytes):  # as loops write them, so that LLVM keeps them apart
                n = min(self.machine.vector_bytes, size - at) // 4
                x = strided.neighbours(self.e, "i32", self.e.element(source, "i8", at), n, 1)
                self.e.do(f"store <{n} x i32> {x}, ptr {self.e.element(dest, 'i8', at)}, align 1")
        else:
            # of what is known, slots become registers
            self._copy(dest, source, size if size <= SLOT_BYTES else self.number(size))

    def _copy(self, dest: str, source: str, count: int | str) -> None:
        """Copies bytes by a call, which LLVM writes out where it knows how many there are."""
        self.e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {dest}, ptr {source}, i64 {count}, i1 false)")

    # ---- what the module holds -----------------------------------------------------------------------------

    @property
    def helpers(self) -> dict:
        """Functions that the text calls and that are written at the end, by name."""
        return self.texts.helpers

    def constant(self, array: np.ndarray) -> str:
        """The address of a constant array, bound at load."""
        number, is_new = self.texts.constant(array)
        if is_new:
            self.e.slots += [
                f"  %c{number}_at = getelementptr ptr, ptr %constants, i64 {number}",
                f"  %c{number} = load ptr, ptr %c{number}_at, align 8",
            ]
        return f"%c{number}"

    def external(self, target) -> str:
        """The address of a library function or callback, bound at load."""
        number = self.texts.external(target)
        return self.e.op(f"load ptr, ptr {self.e.element('%externals', 'ptr', number)}, align 8")

    def literal(self, type_: str, value: int) -> str:
        """The address of an integer constant."""
        return self.texts.literal(f"k.{type_}.{value}", f"{type_} {value}")

    def number(self, value: int) -> str:
        """A number that the text of the entry does not tell: it is read from the program's table, bound at load."""
        if self.tells:
            return str(value)
        at = self.e.element(NUMBERS, "i64", self.texts.numbers([value]))
        return self.e.op(f"load i64, ptr {at}, align 8")

    def numbers(self, values: Sequence[int]) -> str:
        """The address of some of the program's numbers, side by side."""
        if self.tells:
            listed = ", ".join(f"i64 {n}" for n in values)
            return self.texts.literal(f"k.{'.'.join(map(str, values))}", f"[{len(values)} x i64] [{listed}]")
        told_at = self.e.element(NUMBERS, "i64", self.texts.table(values))
        return self.e.element(NUMBERS, "i64", self.e.op(f"load i64, ptr {told_at}, align 8"))

    def function(self, body: str) -> str:
        """The name of the function with this text (parameters and body): equal ones are one, in all programs."""
        return self.texts.function(body)

    def chosen(self, write: Callable[[tuple[int, ...]], str], numbers) -> str:
        """The name of the function that is written for these numbers; where they record, of other lengths another."""
        if type(numbers) is Computed and not numbers.record.closed:
            return self.texts.chosen(write, numbers)
        return self.function(write(plain(numbers)))

    def functions(self, names: Sequence[str]) -> str:
        """The address of a table of functions (see `module`)."""
        each = [f"@{name}" for name in names]
        listed = self.texts.literal(f"k.{digest(' '.join(each))}", f"[{len(each)} x ptr] [ptr {', ptr '.join(each)}]")
        return self.e.op(f"getelementptr ptr, ptr {listed}, i64 0{TABLE}{' '.join(each)}")

    def stop_if(self, condition: str, status: int) -> None:
        """Ends the program with a status when the condition holds."""
        with when_it_leaves(self.e, condition):
            self.e.do(f"store i64 {status}, ptr %status")
            self.e.jump("finish")

    def finish(self, entry: str) -> Module:
        """The module, given the text of the entry function."""
        self.helpers.update(self.e.needs)
        sites = [] if self.sites is None else self.sites.texts
        globals_ = [] if self.sites is None else [bounds.GLOBAL]
        return self.texts.module(entry, globals_, bool(self.asks), sites)


@recorded
def slot_size(size: int) -> int:
    """The bytes of a slot: of more than a line a power of two, so that the entry's text tells no length."""
    return max(size, 1) if size <= streams.LINE else 1 << (size - 1).bit_length()


def _copy(w: ProgramWriter, step: steps.Copy) -> None:
    target, source, part = w.pointer(step.target), w.pointer(step.source), w.machine.memory.copied
    if w.pool is None or step.bytes < 2 * part:
        for i in range(0, step.bytes, step.piece) if step.piece else (0,):
            to, start = (w.e.op(f"getelementptr i8, ptr {p}, i64 {i}") if i else p for p in (target, source))
            w.copy_bytes(to, start, step.piece or step.bytes)
    else:
        parallel.through_pool(w, parallel.copy(), [target, source], -(-step.bytes // part), [part, step.bytes])


RULES: dict[type[Step], Callable[[ProgramWriter, Any], None]] = {  # each for steps of its type
    steps.Copy: _copy,
    steps.Launch: launches.launch,
    steps.Rows: launches.rows,
    steps.Contract: contract.contract,
    AmxProduct: narrow_products.product,
    AmxPacking: amx_packing.pack,
    SplitProduct: split_products.product,
    Splitting: split_packing.split,
    steps.Gemm: gemm.gemm,
    steps.Sort: sort_steps.sort,
    steps.Order: sort_steps.order,
    steps.Ranks: sort_steps.ranks,
    steps.Select: selection.select,
    steps.Transform: fourier.transform,
    steps.Lapack: libraries.lapack,
    steps.SmallMatrices: small_matrices.small_matrices,
    steps.Host: libraries.host,
    steps.While: control.while_loop,
    steps.Scan: control.scan,
    steps.Branch: control.branch,
    steps.Concurrent: concurrent.concurrent,
    steps.NewStack: stack_steps.new,
    steps.StackLength: stack_steps.length,
    steps.WriteStack: stack_steps.write,
    steps.ReadStack: stack_steps.read,
}
