"""Loop nests as steps: written in place, as functions, in tasks for threads, or in tasks whose results are folded."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from catena.compiler.graph import affine, symbols, thresholds
from catena.compiler.graph.forms import COSTLY, OPS
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import conditions, cutting, schedules, scheduling, short_rows
from catena.compiler.kernels.loops import Nest, Store
from catena.compiler.machine import Machine, Memory
from catena.compiler.plan import (
    ahead,
    alike,
    bands,
    careful,
    elements,
    partial,
    pauses,
    ranges,
    sharing,
    staging,
    stitch,
    sums_apart,
)
from catena.compiler.plan.alike import Planned, Structure
from catena.compiler.plan.nests import TOGETHER
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import nest_flops
from catena.compiler.plan.steps import Launch, Rows
from catena.core.context import context

INLINE, INLINE_IN_LOOP = 64, 4096  # nests of at most so much work (blocks * statements) are written in place
MOST_BLOCKS = 4  # of them, outside of loops
FUNCTION = 16  # statements that a function of mathematics is
FEWEST_ROWS = 256  # of a concatenation, whose parts are written in turn: threads share them
LEAST_LINES = 5  # of a row, from which on the lines at its ends, which are written through the caches, are few enough
LEAST_IN_PIECES = 30  # the same of a row in pieces: each has ends, and short ones are not cut at lines


def launch(p: Planner, frame: Frame, nest: Nest, in_place: bool = False, part_of: int = 0) -> None:
    """Adds the steps that run a nest; `in_place` says that it writes memory which it reads, `part_of` how many bytes it
    and others write one after the other, where others do.
    """
    if not in_place and (parts := cutting.cut(nest, p.machine)):
        for each in parts:
            written = frame.fused.region.values[each.stores[0].buffer].nbytes
            launch(p, frame, each, part_of=max(part_of, written))
        return
    schedules.schedule(nest, p.machine, in_place, _few(p, frame, nest))
    if (found := _bands(p, nest, in_place)) is not None:
        _in_two(p, frame, *bands.split(frame.fused.region.values, nest, *found), in_place)
        return
    if not in_place and sums_apart.pays(p.machine, nest, p.depth > 0, frame.awake):
        _in_two(p, frame, *sums_apart.split(frame.fused.region.values, nest))
        return
    _count(p, nest)
    scheduling.leave_rest_open(nest, p.machine, in_place)
    if not in_place and not p.depth and _streams(p.machine, nest, part_of):
        _stream(nest)
        staging.plan(p.machine, nest)
        (ahead.next_staged if nest.staged else ahead.next_lines)(p.machine.memory, frame.fused.region.values, nest)
    operands = p.operands(frame, nest)
    blocks = nest.trips // max(1, nest.width if nest.vector is not None else 1)
    chunk = sharing.chunk(p.machine.sharing, nest, in_place, p.depth > 0, frame.awake)
    with_care = careful.nest(nest, p.machine, p.depth > 0, chunk)
    if with_care is None and chunk is None and _in_place(nest, blocks, p.depth, frame.has_many_steps):
        frame.steps.append(Launch(nest, operands, in_place))
        return
    apart = chunk is None and not nest.adds_floats
    if apart and (size := partial.chunk(p.machine.sharing, nest, in_place)) is not None:
        _in_parts(p, frame, nest, size)
        return
    chunk = staging.chunk(nest, chunk) if p.machine.threads else None
    ahead.named_rows(p.machine.memory, frame.fused.region.values, nest)
    opened = ranges.choose(nest, in_place, nest.order[0] if chunk else None)
    units = sharing.work(nest)
    pause = pauses.plan(p.machine.sharing, nest, chunk / nest.extents[nest.order[0]] if chunk else 1)
    frame.steps.append(Launch(nest, operands, in_place, opened, chunk, units=units, pause=pause, careful=with_care))


def launch_alike(
    p: Planner, frame: Frame, asked: Callable[[], Structure], make: Callable[[], Nest], in_place: bool = False
) -> None:
    """Adds the steps that run a nest, as `launch` does; of nests of one structure, the first is planned."""
    once(p, frame, asked, lambda: launch(p, frame, make(), in_place), in_place)


def once(
    p: Planner, frame: Frame, asked: Callable[[], Structure], add: Callable[[], None], in_place: bool = False
) -> None:
    """Adds steps by `add`, or, where one of the same structure, which is `asked` for, is planned already, that one on
    other values. In loops all are planned, and where memory is checked or numbers record, which may not be asked.
    """
    apart = p.depth or symbols.is_recording() or context.check_bounds
    structure = None if apart else asked()
    if structure is None or not structure.is_whole:
        add()
        return
    key = structure.what, in_place, frame.has_many_steps, frame.awake, tuple(structure.told)
    found = p.planned.get(key)
    if found is not None:
        p.costs.add(*found.costs)
        numbers = list(structure.numbers)
        values = [(numbers[k], p.operand(frame, numbers[k])) for k in found.touched]
        frame.steps.append(alike.on_others(found.step, values))
        return
    before, costs = len(frame.steps), p.costs.told()
    add()
    made = frame.steps[before:]
    if len(made) == 1 and (touched := alike.touched(made[0], structure, frame.blocks)) is not None:
        p.planned[key] = Planned(made[0], touched, [b - a for a, b in zip(costs, p.costs.told())])


def _few(p: Planner, frame: Frame, nest: Nest) -> int:
    """How many iterations a nest has no lanes for."""
    apart = p.depth and elements.is_short_line(nest) and not frame.by_elements.isdisjoint(nest.buffers())
    return elements.SCALARS if apart else scheduling.FEW


def _in_place(nest: Nest, blocks: int, depth: int, many_steps: bool) -> bool:
    """Whether a nest is written where it runs. Outside of loops, what is written so takes longer to compile than to
    run, and for each length anew: there it is for a few vectors, and functions of mathematics count for what they are.
    Of many steps some are likely equal, or are at another length, and an entry that does nothing but call them takes
    LLVM a ninth of the time.
    """
    if depth:
        return blocks <= 1 or not thresholds.reaches(blocks * len(nest.stmts), INLINE_IN_LOOP + 1)
    text = len(nest.stmts) + FUNCTION * sum(s.op in COSTLY for s in nest.stmts)
    if many_steps:
        return not nest.order and text <= FUNCTION
    return blocks <= 1 or blocks <= MOST_BLOCKS and blocks * text <= INLINE


def _streams(machine: Machine, nest: Nest, part_of: int = 0) -> bool:
    """Whether a scheduled nest writes more than stays in caches, by itself or as part of so much, in whole lines, and
    reads none of it; and whether it waits for that.
    """
    if nest.vector is None or nest.sequential or not machine.streams or not _waits_for_memory(nest):
        return False
    lines = [s for s in nest.stores if s.mask < 0 and affine.coefficient(s.offset, nest.vector) == 1]
    written = sum(TYPES[s.dtype].bytes for s in lines) * math.prod(nest.extents)
    if nest.run is not None:
        return _streams_sums(machine, nest)
    if nest.reduced or len(lines) < len(nest.stores):
        return False
    whole = nest.tile is not None and all(TYPES[s.dtype].bytes * nest.width >= machine.memory.line for s in lines)
    least = machine.memory.streamed_squares if whole else machine.memory.streamed
    if max(written, part_of) < least:
        return False
    if nest.tile is not None or staging.may_be(machine, nest):
        return True
    return all(_begins_lines(machine, nest, s) or _cuts_lines(machine, nest, s) for s in lines)


def _waits_for_memory(nest: Nest) -> bool:
    """Whether what an iteration reads and writes takes longer than its functions of mathematics: of a byte that is a
    tenth of a nanosecond, in which `OPS` tells what these take. So it is beside one function of floats, and not of two.
    """
    functions = sum(OPS[s.op].cost for s in nest.stmts if short_rows.is_looped(s.op))
    read = sum(TYPES[s.type].bytes for s in nest.stmts if s.op == "load")
    return functions <= read + sum(TYPES[s.dtype].bytes for s in nest.stores)


def _streams_sums(machine: Machine, nest: Nest) -> bool:
    """Likewise for a nest that adds up runs of rows, and stores the sums."""
    assert nest.vector is not None
    sums = [Store(b, dtype, offset, 0) for f in nest.folds for b, dtype, offset in f.dests]
    kept = math.prod(n for d, n in enumerate(nest.extents) if d not in nest.reduced)
    large = sum(TYPES[s.dtype].bytes for s in sums) * kept >= machine.memory.streamed
    return not nest.stores and large and all(_begins_lines(machine, nest, s) for s in sums)


def _begins_lines(machine: Machine, nest: Nest, s: Store) -> bool:
    """Whether each row that a store writes begins where a line does, if the first one does: where rows meet in a line,
    that is written twice.
    """
    return not any(c * TYPES[s.dtype].bytes % machine.memory.line for d, c in s.offset[1] if d != nest.vector)


def _cuts_lines(machine: Machine, nest: Nest, s: Store) -> bool:
    """Whether rows that a store writes, which may begin inside of lines, are long enough to be cut at these."""
    assert nest.vector is not None
    size = TYPES[s.dtype].bytes
    least = LEAST_IN_PIECES if conditions.find(nest, nest.vector) else LEAST_LINES
    whole = nest.extents[nest.vector] * size >= least * machine.memory.line
    return whole and nest.together is None and not nest.is_checked and machine.masks_stores(size)


def _stream(nest: Nest) -> None:
    nest.stores = [s._replace(past_caches=True) for s in nest.stores]
    nest.folds = [f._replace(past_caches=True) for f in nest.folds]


def schedule(p: Planner, nest: Nest, in_place: bool = False) -> None:
    """Orders the loops of a nest, and counts what it costs."""
    schedules.schedule(nest, p.machine, in_place)
    _count(p, nest)


def _count(p: Planner, nest: Nest) -> None:
    costs = p.costs
    costs.flops += costs.trips * nest_flops(nest)
    costs.units += sharing.work(nest)
    costs.bytes += costs.trips * nest.trips * 4 * (len(nest.buffers()))


def _in_parts(p: Planner, frame: Frame, nest: Nest, size: int) -> None:
    """A reduction in tasks of `size` iterations, and the folds of what these leave."""
    outer = ranges.first_folded(nest)
    assert outer is not None  # `partial.chunk` has asked
    split = partial.split(frame.fused.region.values, nest, outer, size)
    for part in split.made:
        p.define(frame, part)
    operands, units = p.operands(frame, nest), sharing.work(nest)
    pause = pauses.plan(p.machine.sharing, nest, size / nest.extents[outer])
    frame.steps.append(Launch(nest, operands, False, split.opened, size, split.cut, split.each, units, pause))
    _join(p, frame, split.made, split.joins)


def _bands(p: Planner, nest: Nest, in_place: bool) -> bands.Bands | None:
    """The bands in which a reduction is done: for the sake of lanes, memory, the order of a sum, or threads."""
    found = bands.in_turn(nest, in_place, p.machine.vector_bytes) or bands.find(p.machine.memory, nest, in_place)
    if found is not None or nest.vector in nest.reduced or not nest.adds_floats:
        return found
    if sharing.chunk(p.machine.sharing, nest, in_place, p.depth > 0) is not None:
        return None
    size = partial.chunk(p.machine.sharing, nest, in_place)
    return None if size is None else bands.aligned(nest, size)


def _in_two(
    p: Planner, frame: Frame, made: list[Value], nests: list[Nest], joins: list[Nest], in_place: bool = False
) -> None:
    """Nests that leave bands' partial results, or terms, in memory that is made for them, and the folds of these."""
    for part in made:
        p.define(frame, part)
    for each in nests:
        launch(p, frame, each, in_place)
    _join(p, frame, made, joins)


def _join(p: Planner, frame: Frame, made: list[Value], joins: list[Nest]) -> None:
    """The folds of partial results, which are then forgotten."""
    for join in joins:
        launch(p, frame, join)
    for part in made:
        p.free(frame.blocks.pop(part.number))


# ---- rules ---------------------------------------------------------------------------------------------------


def kernel(p: Planner, frame: Frame, i: int, _) -> None:
    step = frame.fused.steps[i]
    if step.part and p.place_part(frame, frame.fused.region.values[step.writes[0]]):
        return
    written = [p.define(frame, frame.fused.region.values[n]) for n in step.writes]
    reads = {frame.blocks[r] for r in step.reads if r in frame.blocks}
    in_place = any(b in reads for b in written)
    asked = functools.partial(alike.of_kernel, frame.fused, step.own_kernel)
    launch_alike(p, frame, asked, lambda: frame.nests.alone(step), in_place)


def rows(p: Planner, frame: Frame, i: int, _) -> None:
    """A row group, in tasks of whole blocks of rows."""
    step = frame.fused.steps[i]
    group, values = step.group, frame.fused.region.values
    for n in step.writes:
        p.define(frame, values[n])
    stitch.merge_rows(group)
    for nest in group.nests:
        schedule(p, nest)
        if stitch.blocks(group)[0] > scheduling.FEW:
            scheduling.put_lanes_along_rows(nest, p.machine)
    if not p.depth:
        _stream_rows(p.machine, group)
    ahead.next_block(p.machine.memory, values, group, stitch.blocks(group)[0])
    _in_rows(p, frame, group)


def _in_rows(p: Planner, frame: Frame, group: stitch.RowGroup) -> None:
    """The step of a row group whose nests are scheduled."""
    names = dict.fromkeys(b for nest in group.nests for b in nest.buffers() if b not in group.private)
    operands = {b: p.operand(frame, b) for b in names}
    block, blocks = stitch.blocks(group)
    work = sum(sharing.work(nest) for nest in group.nests)
    limits = p.machine.sharing
    chunks = sharing.chunk_count(limits, work, blocks) if work > limits.least(frame.awake) else 1
    each = sharing.evenly(blocks, chunks) if chunks > 1 else blocks
    rows = math.prod(group.nests[0].extents[d] for d in group.nests[0].rows)
    stops = [pauses.plan(limits, nest, block / rows) for nest in group.nests]
    frame.steps.append(Rows(group.nests, group.private, operands, block, each, blocks, work, stops))


def _stream_rows(machine: Machine, group: stitch.RowGroup) -> None:
    """Sends past the caches what kernels of a group write, and none of them reads."""
    kept = {b for nest in group.nests for b in nest.loaded()} | set(group.private)
    for nest in group.nests:
        if kept.isdisjoint(nest.written()) and _streams(machine, nest):
            _stream(nest)


def concatenate(p: Planner, frame: Frame, i: int, v) -> None:
    p.define(frame, v)
    if (nest := frame.nests.columns(v)) is not None:
        launch(p, frame, nest, part_of=v.nbytes)
        return
    if not _has_long_parts(p.machine.memory, v):
        for nest in frame.nests.concatenate(v, TOGETHER):
            launch(p, frame, nest, part_of=v.nbytes)
        return
    nests = frame.nests.concatenate(v, 1, v.params.dimension)
    if p.depth or not p.machine.streams or not _joins_rows(p, frame, v, nests):
        for nest in nests:
            launch(p, frame, nest, part_of=v.nbytes)


def _joins_rows(p: Planner, frame: Frame, v: Value, nests: list[Nest]) -> bool:
    """Writes parts of rows in turn, a few rows at a time, where rows are short enough: lines that two parts share are
    complete soon, and are not read and written twice.
    """
    leading, memory = v.params.dimension, p.machine.memory
    count = math.prod(v.shape[:leading])
    row = v.nbytes // max(count, 1)
    if not leading or row > memory.first_cache or count < FEWEST_ROWS:
        return False
    group = stitch.RowGroup(nests, leading, count, {}, max(memory.first_cache // 2 // row, 1), [])
    stitch.merge_rows(group)
    for nest in nests:
        schedule(p, nest)
        if _streams(p.machine, nest, v.nbytes):
            _stream(nest)
            ahead.next_lines(memory, frame.fused.region.values, nest)
    _in_rows(p, frame, group)
    return True


def _has_long_parts(memory: Memory, v: Value) -> bool:
    """Whether parts of an array beyond the caches are so long that each is better written by itself, where lines begin
    elsewhere in its neighbours.
    """
    inside = math.prod(v.shape[v.params.dimension + 1 :]) * v.dtype.itemsize
    sizes = [x.shape[v.params.dimension] * inside for x in v.args]
    if v.nbytes < memory.streamed or any(size < LEAST_LINES * memory.line for size in sizes):
        return False
    return any(size % memory.line for size in sizes)  # asked last: it hangs on each extent


def update(p: Planner, frame: Frame, i: int, v) -> None:
    """A part of an array, or elements that indices name, written over a copy or over the array itself."""
    if frame.reads_again(v):
        source, target = p.address(frame, v.args[0]), p.define(frame, v)
        p.copy(frame, target, source, v.nbytes)
    else:
        p.start_as(frame, v.args[0], v, i)
    build = {"dynamic_update_slice": frame.nests.update_slice, "scatter": frame.nests.scatter}[v.form]
    launch(p, frame, build(v), in_place=True)


def unset(p: Planner, frame: Frame, i: int, v) -> None:
    p.define(frame, v)


def cumulative(p: Planner, frame: Frame, i: int, v) -> None:
    p.define(frame, v)
    launch(p, frame, frame.nests.cumulative(v))


def runs(p: Planner, frame: Frame, i: int, v) -> None:
    p.define(frame, v)
    launch(p, frame, frame.nests.runs(v))


def reduce_general(p: Planner, frame: Frame, i: int, node) -> None:
    for out in node.results:
        p.define(frame, out)
    launch(p, frame, frame.nests.reduce_general(node))


RULES = {
    "kernel": kernel,
    "rows": rows,
    "concatenate": concatenate,
    "dynamic_update_slice": update,
    "scatter": update,
    "unset": unset,
    "runs": runs,
    "cumulative": cumulative,
    "reduce_general": reduce_general,
}
