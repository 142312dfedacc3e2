"""Loops and branches as steps.

A loop's carries live in the memory of its results, small ones in slots on the stack, which LLVM promotes to registers;
small constants of the loop are copied into such slots too. The body computes each new carry in place where the old one
is dead by then, else beside it: small ones are copied at the end of the iteration, large ones change places with what
was there. Slices of `scan` are parts of the whole arrays.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph import forms
from catena.compiler.graph.region import Region, Value
from catena.compiler.plan.memory import SLOT_BYTES
from catena.compiler.plan.planner import Frame, Outside, Planner
from catena.compiler.plan.program import SLICE, SLOT, Block, Buffer
from catena.compiler.plan.steps import Branch, Scan, While

UNKNOWN_TRIPS = 8  # of a loop that ends when its condition says so


def while_loop(p: Planner, frame: Frame, i: int, node: Value) -> None:
    n: forms.While = node.params
    nc, nb = n.cond_consts, n.body_consts
    operands, init = node.args[: nc + nb], node.args[nc + nb :]
    consts = [_close(p, frame, x) for x in operands]
    carries = _start_carries(p, frame, i, init, node.results, {frame.fused.root(x) for x in operands})
    flag = Buffer(SLOT, 1)
    cond, body = frame.fused.steps[i].bodies
    before, p.depth = p.costs.units, p.depth + 1
    outside = _outside(p, frame, n.body, operands[nc:], UNKNOWN_TRIPS)
    iteration = p.block(body, consts[nc:] + carries, list(carries), _carried(len(carries), nb), outside=outside)
    test = p.block(cond, consts[:nc] + carries, [flag])  # its temporaries are not where something lies all the time
    _free_turns(p, iteration)
    p.depth -= 1
    units = p.costs.units - before
    inputs = consts + outside.made
    frame.steps.append(While(test, iteration, inputs, carries, flag, _frees_stacks(n.body), units))
    p.free_here(frame, outside.made)
    _finish_carries(p, frame, node.results, carries)


def scan(p: Planner, frame: Frame, i: int, node: Value) -> None:
    n: forms.Scan = node.params
    nk, nc, length, results = n.consts, n.carries, n.length, node.results
    consts, init, xs = node.args[:nk], node.args[nk : nk + nc], node.args[nk + nc :]
    inputs = [_close(p, frame, x) for x in consts]
    sources = [p.address(frame, x) for x in xs]
    keep = {frame.fused.root(x) for x in (*consts, *xs)}
    carries = _start_carries(p, frame, i, init, results[:nc], keep)
    whole = [p.define(frame, y) for y in results[nc:]]
    if length:
        slices = [_slice(source, x, length) for source, x in zip(sources, xs)]
        made = [_slice(target, y, length) for target, y in zip(whole, results[nc:])]
        (body,), costs = frame.fused.steps[i].bodies, p.costs
        outside = _outside(p, frame, n.body, consts, length)
        before, p.depth, costs.trips = costs.units, p.depth + 1, costs.trips * length
        iteration = p.block(body, inputs + carries + slices, carries + made, _carried(nc, nk), outside=outside)
        _free_turns(p, iteration)
        p.depth, costs.trips = p.depth - 1, costs.trips // length
        units = costs.units - before
        costs.units += (length - 1) * units
        frees = _frees_stacks(n.body)
        inputs += outside.made
        frame.steps.append(Scan(iteration, length, n.reverse, inputs, carries, slices, made, frees, units))
        p.free_here(frame, outside.made)
    _finish_carries(p, frame, results, carries)


def branch(p: Planner, frame: Frame, i: int, node: Value) -> None:
    index, *operands = node.args
    inputs = [p.address(frame, x) for x in operands]
    outs = [p.define(frame, out) for out in node.results]
    at = p.address(frame, index)
    cases = [p.block(case, inputs, list(outs)) for case in frame.fused.steps[i].bodies]
    bits, clamped = 8 * index.dtype.itemsize, index.dtype.kind != "b"
    frame.steps.append(Branch(cases, at, bits, clamped, inputs, outs))


# ---- carries and constants -----------------------------------------------------------------------------------


def _start_carries(p: Planner, frame: Frame, i: int, init, results: list[Value], keep: set[int]) -> list[Buffer]:
    """Memory of the carries, holding their initial values: the operand's own where it dies here, and the loop does not
    read it as a constant too (those are to `keep`).
    """
    held = keep - frame.protected
    frame.protected |= held
    buffers, used, roots = [], set(), [frame.fused.root(x) for x in init]
    for x, out, r in zip(init, results, roots):
        source = p.address(frame, x)
        shared = r in used or roots.count(r) > 1
        used.add(r)
        if shared or not p.take(frame, x, out, i):
            if out.number not in frame.blocks:
                p.define(frame, out)
            buffer, size = frame.blocks[out.number], out.nbytes
            if out.number in frame.targets and 0 < size <= SLOT_BYTES:
                buffer = p.allocate(size)
            p.copy(frame, buffer, source, size)
            buffers.append(buffer)
        else:
            buffers.append(frame.blocks[out.number])
    frame.protected -= held
    return buffers


def _finish_carries(p: Planner, frame: Frame, results: list[Value], carries: list[Buffer]) -> None:
    """Moves carries out of their slots, to results that must lie elsewhere."""
    for out, buffer in zip(results, carries):
        p.copy(frame, frame.blocks[out.number], buffer, out.nbytes)


def _free_turns(p: Planner, body: Block) -> None:
    """Gives back the memory beside the carries, when nothing more of the loop is planned."""
    for _, other in body.turns:
        p.free(other)


def _close(p: Planner, frame: Frame, x: Value) -> Buffer:
    """Where a loop's constant is: in a slot, if it is small, that nothing else in the loop can touch."""
    source, size = p.address(frame, x), x.nbytes
    if not 0 < size <= SLOT_BYTES or source.kind == SLOT:
        return source
    slot = p.allocate(size)
    p.copy(frame, slot, source, size)
    return slot


def _slice(whole: Buffer, x: Value, length: int) -> Buffer:
    return Buffer(SLICE, x.nbytes // length, base=whole)


def _outside(p: Planner, frame: Frame, body: Region, consts, trips: int) -> Outside:
    return Outside(frame, {v.number: x for v, x in zip(body.inputs, consts)}, trips, p.costs.trips)


def _carried(n: int, first: int) -> dict[int, int]:
    return {k: first + k for k in range(n)}


# ---- stacks that an iteration makes --------------------------------------------------------------------------


def _frees_stacks(region: Region) -> bool:
    """Whether stacks that an iteration makes cannot be seen after it: they are freed at its end."""
    return _makes_stacks(region) and not _stacks_escape(region)


def _makes_stacks(region: Region) -> bool:
    return any(v.form == "stack_new" for each in region.walk() for v in each.values)


def _stacks_escape(region: Region) -> bool:
    """Whether stacks of a region may outlive it: their addresses are results, or items of other stacks."""
    return any(v.dtype == np.uint64 for v in region.outputs) or _stores_addresses(region)


def _stores_addresses(region: Region) -> bool:
    writes = (v for each in region.walk() for v in each.values if v.form == "stack_write")
    return any(v.args[2].dtype == np.uint64 for v in writes)


RULES = {"while": while_loop, "scan": scan, "branch": branch}
