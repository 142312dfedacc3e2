"""What became of a program, stage by stage, as lines that know the places in the user's source and their steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from catena.compiler.graph.region import Region, show
from catena.compiler.kernels import loops
from catena.compiler.native import report
from catena.compiler.native.listing import Listed, Listing
from catena.compiler.plan.fuse import Fused
from catena.compiler.plan.program import Program, show_step
from catena.tools.page import jaxprs
from catena.tools.page.jaxprs import MOST_LINES, Line, bounded, line
from catena.tools.page.places import Places


class Linked:
    """Which steps compute the values of a program's graph, and from which places."""

    def __init__(self, program: Program, places: Places):
        self.program, self.places = program, places
        self.steps = [step for _, step in program.steps()]
        self.of_value: dict[tuple[int, int], list[int]] = {}  # region and value -> steps
        self.of_origin: dict[int, list[int]] = {}  # fused step -> steps
        self.sources: list[list[int]] = []  # the places of each step
        for number, step in enumerate(self.steps):
            made = report.values(*step.origin) if step.origin is not None else []
            self.sources.append(places.numbers(v.source for v in made))
            if step.origin is not None:
                fused, origin = step.origin
                self.of_origin.setdefault(id(origin), []).append(number)
                for v in made:
                    self.of_value.setdefault((id(fused.region), v.number), []).append(number)

    def value(self, region: Region, v) -> tuple[list[int], list[int]]:
        """The places and the steps of a value."""
        return self.places.numbers([v.source]), self.of_value.get((id(region), v.number), [])


def regions(region: Region, linked: Linked, depth: int = 0) -> Iterator[Line]:
    """The compiler's graph, with the graphs of loops and branches in it."""
    margin = "  " * depth
    yield line(f"{margin}region({', '.join(map(repr, region.inputs))})")
    for v in region.live():
        if v.form not in ("input", "output"):
            yield line(f"{margin}  {show(v)}", *linked.value(region, v))
            for inner in v.regions:
                yield from regions(inner, linked, depth + 2)
    yield line(f"{margin}  return {', '.join(map(repr, region.outputs))}")


def program(linked: Linked) -> Iterator[Line]:
    """The steps, as the program is printed."""
    count = len(linked.program.inputs), len(linked.program.outputs), linked.program.arena_bytes
    yield line("program of {} arguments, {} results, {} bytes of temporaries".format(*count))
    for number, (depth, step) in enumerate(linked.program.steps()):
        for text in show_step(depth, step):
            yield line(text, (), [number])


_VALUE = re.compile(r"\bv(\d+)\[")


def nests(linked: Linked) -> Iterator[Line]:
    """The loop nests of each step."""
    for number, step in enumerate(linked.steps):
        region = step.origin[0].region if step.origin is not None else None
        for nest in step.nests():
            for text in loops.show(nest).splitlines():
                touched = [int(n) for n in _VALUE.findall(text)]
                known = [region.values[n] for n in touched if region is not None and n < len(region.values)]
                yield line(text, linked.places.numbers(v.source for v in known), [number])
            yield line("")


def fusion(fused: Fused, linked: Linked, depth: int = 0) -> Iterator[Line]:
    """What runs together, what of it is in memory between steps, and why."""
    margin = "  " * depth
    for step in fused.steps:
        numbers = linked.of_origin.get(id(step), [])
        lines = report.step_lines(fused, step)
        for text in lines[:1] if step.bodies else lines:
            yield line(margin + text.split("   (")[0], (), numbers)
        private = step.group.private if step.group is not None else {}
        for n in [*step.writes, *private]:
            v = fused.region.values[n]
            why = "it stays in cache: only these kernels read it" if n in private else fused.stored[n]
            where = "in cache " if n in private else "in memory"
            text = f"{margin}    {where} {v!r}, {v.nbytes:,} bytes: {why}"
            yield line(text, linked.places.numbers([v.source]), numbers)
        for body in step.bodies:
            yield from fusion(body, linked, depth + 2)


def texts(listing: Listing) -> list[Line]:
    """The lines of LLVM's text or of machine code: those that a page may show; the others are only counted."""
    return [*(line(text, (), steps) for text, steps in listing[:MOST_LINES]), *listing[MOST_LINES:]]


LONG = 8  # steps of a line from which the page keeps the list once, for all lines


def shared_lists(stages: dict[str, list[Line]]) -> list[list[int]]:
    """The long lists of steps; in the lines, their numbers take their place."""
    numbers: dict[tuple, int] = {}
    for each in (x for lines in stages.values() for x in lines):
        if len(each) == 3 and len(each[2]) > LONG:
            each[2] = numbers.setdefault(tuple(each[2]), len(numbers))
    return [list(steps) for steps in numbers]


def stages(closed, region: Region, linked: Linked, programs: int) -> dict[str, list[Line]]:
    """All stages by name, for a page of so many programs."""
    listed = Listed(linked.program)
    made: dict[str, Callable[[], list[Line]]] = {
        "fusion": lambda: list(fusion(linked.program.fused, linked)),
        "jaxpr": lambda: jaxprs.lines(closed, linked.places),
        "graph": lambda: list(regions(region, linked)),
        "program": lambda: list(program(linked)),
        "kernels": lambda: list(nests(linked)),
        "llvm": lambda: texts(listed.llvm()),
        "assembly": lambda: texts(listed.assembly()),
    }
    return {name: bounded(make(), programs) for name, make in made.items()}
