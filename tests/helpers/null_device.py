"""The null device: with `CATENA_TEST_DEVICE=null`, every program is compiled, and then interpreted instead of run.

So every test of compiled programs asks the interpreter (`catena.compiler.interpret`) for its results. Programs that are
given stacks, or give them back, run as they are: these are addresses in native memory.
"""

from __future__ import annotations

import threading

import numpy as np

from catena.compiler.interpret.program import run
from catena.compiler.native import compile as compiler
from catena.compiler.plan.program import Program
from catena.compiler.plan.steps import NewStack, ReadStack, StackLength, WriteStack
from catena.runtime import kernels

_planned = threading.local()


class Interpreted:
    """An executable whose results are the interpreter's; all else is the compiled one's."""

    def __init__(self, executable, program: Program):
        self._executable, self._program = executable, program

    def __getattr__(self, name: str):
        return getattr(self._executable, name)

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(run(self._program, args))

    def entry(self, args: tuple, outs: tuple) -> int:
        for out, result in zip(outs, run(self._program, args), strict=False):
            kernels.view(out.ctypes.data, out.shape, out.dtype)[...] = result  # arrays that are given up are read-only
        return 0


def install() -> None:
    """Makes the compiler give out interpreted programs."""
    plan, compile_region = compiler.plan, compiler.compile_region

    def planned(*args):
        _planned.program = plan(*args)
        return _planned.program

    def interpreted(region, *args, **named):
        executable = compile_region(region, *args, **named)
        program = _planned.program
        return executable if _exchanges_stacks(program) else Interpreted(executable, program)

    compiler.plan, compiler.compile_region = planned, interpreted


def _exchanges_stacks(program: Program) -> bool:
    region = program.fused.region
    uses = any(isinstance(step, NewStack | ReadStack | StackLength | WriteStack) for _, step in program.steps())
    return uses and any(v.dtype == np.uint64 for v in (*region.inputs, *region.outputs))
