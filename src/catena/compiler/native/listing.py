"""The LLVM text and the machine code of a program, line by line, each line with the steps that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from catena.compiler.emit.entry import write_program
from catena.compiler.emit.marks import MARK, Marks
from catena.compiler.emit.module import Module, calls
from catena.compiler.emit.program import ProgramWriter
from catena.compiler.native import link, workers
from catena.compiler.plan.program import Program

Listing = list[tuple[str, tuple[int, ...]]]

_DEFINED = re.compile(r"define .*@([\w.$]+)\(")
_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
# Locations in the entry, a line for each step: LLVM then says of each instruction which step it comes from.
_SCOPE = 900_000
_ABOUT = f"""
!llvm.dbg.cu = !{{!{_SCOPE + 1}}}
!llvm.module.flags = !{{!{_SCOPE + 2}}}
!{_SCOPE} = distinct !DISubprogram(name: "entry", file: !{_SCOPE + 3}, unit: !{_SCOPE + 1}, spFlags: DISPFlagDefinition)
!{_SCOPE + 1} = distinct !DICompileUnit(language: DW_LANG_C, file: !{_SCOPE + 3}, emissionKind: DebugDirectivesOnly)
!{_SCOPE + 2} = !{{i32 2, !"Debug Info Version", i32 3}}
!{_SCOPE + 3} = !DIFile(filename: "program", directory: "")
"""


class Listed:
    """A program as it is written; ``llvm`` and ``assembly`` list it: its entry, kernels, helpers."""

    def __init__(self, program: Program):
        writer = ProgramWriter(program.machine, workers.parallel_for(program.machine), Marks(program))
        module = write_program(writer, program)
        self._text = link.with_helpers(module.text(), module.helpers)
        self._owners = _owners(module)
        self._count = sum(1 for _ in program.steps())

    def llvm(self) -> Listing:
        """The lines of the LLVM text."""
        blocks: list[Listing] = [[]]
        for line in self._text.splitlines():
            head = _DEFINED.match(line)
            if head is not None:
                blocks.append([])
                owners = self._owners.get(head[1], ())
            elif len(blocks) == 1:  # declarations
                owners = ()
            line, _, number = line.partition(MARK)
            blocks[-1].append((line, (int(number),) if number else owners))
            if line == "}":
                blocks.append([])
                owners = ()
        return _steps_first(blocks)

    def assembly(self) -> Listing:
        """The instructions of the machine code and the labels among them; no directives, no tables."""
        text = self._located()
        blocks: list[Listing] = []
        owners: tuple[int, ...] = ()
        for line in link.assembly(text, link.code_level(len(text))).splitlines():
            location = _LOCATION.match(line)
            name = line.partition(":")[0]
            if location is not None:
                owners = (int(location[1]) - 1,) if location[1] != "0" else owners
            elif line[:1].isalpha():
                owners = self._owners.get(name, ())
                blocks.append([(line, owners)])
            elif blocks and (line.startswith("\t") and line[1:2].isalpha() or line.startswith(".LBB")):
                blocks[-1].append((line.expandtabs(4), owners))
        return _steps_first(blocks)

    def _located(self) -> str:
        """The text with a location for each line of the entry that a step wrote."""
        lines = []
        for line in self._text.splitlines():
            line, mark, number = line.partition(MARK)
            if mark and line.startswith("  "):
                line += f", !dbg !{_SCOPE + 10 + int(number)}"
            elif "@entry(" in line and line.startswith("define"):
                line = f"{line.removesuffix('{')}!dbg !{_SCOPE} {{"
            lines.append(line)
        places = [f"!{_SCOPE + 10 + k} = !DILocation(line: {k + 1}, scope: !{_SCOPE})" for k in range(self._count)]
        return "\n".join([*lines, _ABOUT, *places])


def _owners(module: Module) -> dict[str, tuple[int, ...]]:
    """The steps that run each function of a module, be it in what they call."""
    owners: dict[str, set[int]] = {name: set() for name in module.functions}
    for line in module.entry.splitlines():
        _, mark, number = line.partition(MARK)
        for name in calls(line) if mark else ():
            owners[name].add(int(number))
    for name, body in reversed(module.functions.items()):  # callees stand before callers
        for called in calls(body):
            owners[called] |= owners[name]
    return {name: tuple(sorted(steps)) for name, steps in owners.items()}


def _steps_first(blocks: Iterable[Listing]) -> Listing:
    """The lines of the block in which most steps write, the entry, then of kernels, then of what belongs to no step."""
    ordered = sorted(blocks, key=lambda block: -len({steps for _, steps in block if steps}))
    return [line for block in ordered for line in block]
