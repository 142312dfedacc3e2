"""The passes: from a graph to a program.

    block         what is too large to be stored is made in blocks                 Region -> Region
    bound         integers know their bounds; indices are not clamped twice, and have 32 bits  Region -> Region
    replace       what loops read where they have written is handed on             Region -> Region
    rotate        conditions that look at arrays are asked where these are made    Region -> Region
    inset         updates at known places are choices, element by element          Region -> Region
    trim          what is joined or padded and not read is left out, and zeros; folded stacks  Region -> Region
    turn          products that are only read transposed are computed so; of scaled operands  Region -> Region
    small         products that may be subnormal are told so; divisors inverted; equal results filled  Region -> Region
    fuse          which values are stored, and which loop nests compute them       Region -> Fused
    stitch        kernels over the same rows run together, block by block          Fused -> Fused
    epilogues     the kernel after a product runs on each block of its rows        Fused -> Fused
    place         memory for every value; nests are scheduled and shared out       Fused -> Program

Regions of loops and branches go through each pass with the region around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from catena.compiler.graph import (
    alike_places,
    carried,
    counted,
    filled,
    insets,
    intervals,
    inverted_rows,
    narrowing,
    replacement,
    rotation,
    scaled_products,
    small,
    stacked,
    taken_first,
    trimming,
    unpadded,
    updates,
)
from catena.compiler.graph.region import Region
from catena.compiler.machine import Machine
from catena.compiler.plan import (
    blocks,
    concurrent,
    control,
    epilogues,
    fourier,
    launches,
    libraries,
    narrow_operands,
    pieces,
    products,
    row_halves,
    sorting,
    stitch,
    turning,
)
from catena.compiler.plan.fuse import Fused, fuse
from catena.compiler.plan.nests import NestBuilder
from catena.compiler.plan.planner import Planner, Rule
from catena.compiler.plan.program import ARGUMENT, RESULT, Buffer, Program
from catena.core.context import context

RULES: dict[str, Rule] = {
    **launches.RULES,
    **products.RULES,
    **sorting.RULES,
    **fourier.RULES,
    **libraries.RULES,
    **control.RULES,
}
Shown = Callable[[str, object], None]  # takes the name of a pass and what it made


def plan(region: Region, machine: Machine, donated: Sequence[int] = (), shown: Shown | None = None) -> Program:
    """The program of a graph for a machine.

    Arguments: `region`; `machine`; `donated`, the inputs whose memory results may take; `shown`, called after
      each pass with its name and what it made.
    Raises: CompileError naming the operation that cannot be compiled.
    """
    fused: Any = region
    for name, run in PASSES:
        fused = run(fused, machine)
        if shown is not None:
            shown(name, fused)
    program = place(fused, machine, donated)
    if shown is not None:
        shown("place", program)
    return program


def _block(region: Region, machine: Machine) -> Region:
    return blocks.block(region, machine)


def _bound(region: Region, machine: Machine) -> Region:
    return narrowing.narrow(alike_places.spread(intervals.bound(region)))


def _replace(region: Region, machine: Machine) -> Region:
    return replacement.replace(region)


def _rotate(region: Region, machine: Machine) -> Region:
    return rotation.rotate(region)


def _inset(region: Region, machine: Machine) -> Region:
    return insets.inset(carried.add_in_place(counted.take_items(region)))


def _trim(region: Region, machine: Machine) -> Region:
    taken = taken_first.take_first(unpadded.unpad(stacked.unstack(region, machine.vector_bytes)))
    return updates.spare(trimming.trim(taken))


def _turn(region: Region, machine: Machine) -> Region:
    return turning.turn(scaled_products.scale_results(region), machine)


def _small(region: Region, machine: Machine) -> Region:
    if machine.stops_at_subnormals and not context.flush_subnormals:
        region = small.mark(region)
    return filled.fill_each(inverted_rows.invert(region, machine.vector_bytes))


def _fuse(region: Region, machine: Machine) -> Fused:
    fused = fuse(region)
    for each in tree(fused):
        narrow_operands.leave_narrow(each, machine)
        each.nests = NestBuilder(each)
    return fused


def _stitch(fused: Fused, machine: Machine) -> Fused:
    for each in tree(fused):
        stitch.group_rows(each, each.nests.of, machine)
    return fused


def _epilogues(fused: Fused, machine: Machine) -> Fused:
    for each in tree(fused):
        epilogues.attach(each, each.nests.of, machine)
    return fused


PASSES: tuple[tuple[str, Callable[[Any, Machine], Any]], ...] = (  # each takes what the one before has made
    ("block", _block),
    ("bound", _bound),
    ("replace", _replace),
    ("rotate", _rotate),
    ("inset", _inset),
    ("trim", _trim),
    ("turn", _turn),
    ("small", _small),
    ("fuse", _fuse),
    ("stitch", _stitch),
    ("epilogues", _epilogues),
)


def tree(fused: Fused) -> Iterator[Fused]:
    """The steps of a region, then those of the regions in it."""
    pending = [fused]
    while pending:
        each = pending.pop()
        yield each
        pending += [body for step in each.steps for body in step.bodies]


def place(fused: Fused, machine: Machine, donated: Sequence[int] = ()) -> Program:
    """The last pass: the program of fused steps."""
    region = fused.region
    inputs = [Buffer(ARGUMENT, v.nbytes, i) for i, v in enumerate(region.inputs)]
    outputs = [Buffer(RESULT, v.nbytes, k) for k, v in enumerate(region.outputs)]
    planner = Planner(machine, RULES)
    body = planner.block(fused, inputs, list(outputs), donated=donated)
    pieces.tell(body)
    if machine.threads and not context.check_bounds:
        row_halves.cut(body, planner)
        concurrent.pair(body, planner.reused)
    costs, checked = planner.costs, bool(region.sites)
    return Program(
        body, inputs, outputs, machine, fused, planner.arena.peak, planner.reused, costs.flops, costs.bytes,
        cell=planner.cell if checked else None, stops=any(not site.is_quiet for site in region.sites),
    )  # fmt: skip
