"""The memory of a program that is interpreted: bytes for each buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from catena.compiler.graph.later_arrays import held
from catena.compiler.interpret.nests import Place
from catena.compiler.plan.program import ARENA, CELL, CONSTANT, PART, SLICE, Buffer, Program
from catena.core import failures
from catena.core.errors import CompileError

UNWRITTEN = 0xFF  # NaN in floats, -1 in integers


class Memory:
    """Where everything is while a program runs; `stacks` are those that it has made, by the numbers they go by."""

    def __init__(self, program: Program, args: Sequence[np.ndarray]):
        region = program.fused.region
        self._outputs = [np.empty(v.shape, v.dtype) for v in region.outputs]
        for k, i in program.reused.items():
            self._outputs[k] = np.array(args[i], order="C")
        taken = {i: self._outputs[k] for k, i in program.reused.items()}
        inputs = [taken.get(i, np.ascontiguousarray(x).reshape(np.shape(x))) for i, x in enumerate(args)]
        for buffer, x, v in zip(program.inputs, inputs, region.inputs, strict=True):
            if (x.shape, x.dtype) != (v.shape, v.dtype):
                raise CompileError(f"{buffer} is {v.dtype}{list(v.shape)}, not {x.dtype}{list(x.shape)}")
        self._arena = np.full(program.arena_bytes, UNWRITTEN, np.uint8)
        self._bytes: dict[Buffer, np.ndarray] = {b: bytes_of(x) for b, x in zip(program.inputs, inputs)}
        for k, (buffer, out) in enumerate(zip(program.outputs, self._outputs)):
            self._bytes[buffer] = bytes_of(out)
            if k not in program.reused:
                self.forget(buffer)
        self._moved: dict[Buffer, int] = {}  # of a slice, at which part of the whole it is
        self.stacks: dict[int, list] = {}
        self.made = 0
        self.cell = failures.new_cell()  # what checks find
        self.depth = 0  # loops around what runs

    def enter(self, iteration: int) -> None:
        """Says which iteration of the innermost loop begins."""
        if self.depth <= failures.MOST_LOOPS:
            self.cell[failures.LIVE + self.depth - 1] = iteration

    def results(self) -> list[np.ndarray]:
        return self._outputs

    def __getitem__(self, buffer: Buffer) -> np.ndarray:
        """The bytes of a buffer."""
        if buffer.kind == SLICE and buffer.base is not None:
            first = self._moved[buffer] * buffer.bytes
            return self[buffer.base][first : first + buffer.bytes]
        if buffer.kind == PART and buffer.base is not None:
            return self[buffer.base][buffer.place : buffer.place + buffer.bytes]
        found = self._bytes.get(buffer)
        if found is None:
            found = self._bytes[buffer] = self._new(buffer)
        return found

    def _new(self, buffer: Buffer) -> np.ndarray:
        if buffer.kind == ARENA:
            return self._arena[buffer.place : buffer.place + buffer.bytes]
        if buffer.kind == CELL:
            return bytes_of(self.cell)
        if buffer.kind == CONSTANT:
            return bytes_of(np.ascontiguousarray(held(buffer.array)))
        return np.full(buffer.bytes, UNWRITTEN, np.uint8)

    def move(self, part: Buffer, k: int) -> None:
        """Makes a slice the k-th part of the whole."""
        self._moved[part] = k

    def forget(self, buffer: Buffer) -> None:
        """Makes memory hold what nobody has written."""
        self[buffer][:] = UNWRITTEN

    def places(self, operands: Mapping[int, Buffer]) -> dict[int, Place]:
        """Where the values of a loop nest are."""
        return {number: Place(self[buffer]) for number, buffer in operands.items()}


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)
