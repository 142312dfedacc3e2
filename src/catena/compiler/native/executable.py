"""Compiled programs in memory: plain parts, loaded and called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.native import host
from catena.core.failures import Site, new_cell
from catena.core.named import NamedTuple
from catena.runtime import buffers, status
from catena.runtime.native import Code, Function, Native, Unit, loaded


class Parts(NamedTuple):
    """All there is to a program. `code_name` is what the disk cache calls its object code."""

    code: bytes
    code_name: str
    numbers: list[int]
    constants: list[np.ndarray]
    externals: list  # what the code calls: see `runtime.kernels`
    out_specs: list[tuple[tuple[int, ...], np.dtype]]
    reused: dict[int, int]  # results that are computed in the memory of a donated argument
    arena_bytes: int
    functions: int
    flops: int
    bytes: int
    can_fail: bool  # other than by a callback: it is interruptible, allocates, or checks bounds
    uses_stacks: bool
    returns_stacks: bool
    sites: Sequence[str] = ()  # of bounds checks, in checked mode
    is_bound: bool = False  # whether its code is no other program's
    imports: Sequence[Function] = ()  # functions that it calls in other code
    units: Sequence[Unit] = ()  # that code, and what it calls, before it
    found: Sequence[str] = ()  # functions that were linked, not compiled again (see `shared`),
    linked: int = 0  # and how many these are with what they call


class Executable:
    """A compiled program.

    `entry(args, outs)` is one native call on tuples of ndarrays (see `runtime.native`); calling the
    executable checks nothing but allocates the results. `reused` maps results to donated arguments: the caller
    passes the same array for both, the program works in its memory. Where `returns_stacks`, `outs` has one uint64 more,
    which receives the head of the chain of all stacks that the run made; the caller gives them back with
    `free_stacks(head)`. `text` makes the program's LLVM IR when somebody wants to read it; `linked` is where
    its imports are. `checks` say what the program tests; then `outs` has one array more, for what fails.
    """

    def __init__(
        self,
        parts: Parts,
        text: Callable[[], str],
        seconds: dict[str, float],
        linked: Sequence[Code] = (),
        checks: Sequence[Site] = (),
    ):
        self.parts, self._text = parts, text
        unit = None if parts.is_bound else Unit(parts.code_name, {}, [])
        code = (unit and loaded(unit.name)) or Code(parts.code, host.new_generator, (), unit)
        functions = [other.address(name) for other, (name, _) in zip(linked, parts.imports, strict=True)]
        self.native = Native(
            code, parts.constants, parts.externals, parts.numbers, functions, parts.uses_stacks, linked
        )
        self.entry, self.out_specs, self.reused = self.native.entry, tuple(parts.out_specs), parts.reused
        self.returns_stacks, self.free_stacks = parts.returns_stacks, self.native.free_stacks
        self._seconds = seconds
        self.checks = checks
        if parts.can_fail or self.native.callbacks or self.free_stacks:
            self.entry.errcheck = functools.partial(status.raise_failure, parts.sites, [*checks])

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results; a program that returns stacks gives their addresses, then the head of their chain."""
        specs = self.out_specs + ((((), np.uint64),) if self.returns_stacks else ())
        cell = (new_cell(),) if self.checks else ()
        args = tuple(np.array(a, order="C") if i in self.reused.values() else a for i, a in enumerate(args))
        outs = tuple(args[self.reused[k]] if k in self.reused else buffers.empty(*spec) for k, spec in enumerate(specs))
        refused = self.entry(args, outs + cell)
        while refused > 0:
            i = refused - 1
            args = (*args[:i], np.array(args[i], order="C", copy=True), *args[i + 1 :])
            refused = self.entry(args, outs + cell)
        return outs

    @property
    def temporary_bytes(self) -> int:
        """Memory for intermediate values, beside arguments and results."""
        return self.parts.arena_bytes

    @property
    def report(self) -> dict:
        """What making the program took, by stage, and what it consists of."""
        parts = self.parts
        return {
            "seconds": self._seconds,
            "bytes": len(parts.code),
            "functions": parts.functions,
            "linked": parts.linked,
            "arena": parts.arena_bytes,
        }

    def cost_analysis(self) -> dict[str, float]:
        """Arithmetic operations and bytes moved, counted on the loop nests (`while` counts once)."""
        return {"flops": float(self.parts.flops), "bytes accessed": float(self.parts.bytes)}

    def as_text(self) -> str:
        """The program as LLVM IR, with what it has from other programs."""
        linked = f"; linked, not compiled again: {', '.join(self.parts.found)}\n" if self.parts.found else ""
        return linked + self._text()
