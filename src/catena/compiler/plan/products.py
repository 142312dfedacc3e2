"""Products of arrays as steps: by tiles, of vectors or of the processor's own, complex ones by BLAS, tiny ones and
those with a vector as loop nests.
"""

from __future__ import annotations

import functools

from catena.compiler.graph.forms import Transpose
from catena.compiler.graph.products import read_once
from catena.compiler.graph.region import Value
from catena.compiler.kernels.loops import COPIES
from catena.compiler.plan import (
    alike,
    amx,
    blas,
    convolutions,
    narrow_operands,
    nests,
    product_kinds,
    split_products,
    tiled,
)
from catena.compiler.plan.copies import beside, laid_out
from catena.compiler.plan.fuse import Step
from catena.compiler.plan.launches import launch_alike
from catena.compiler.plan.planner import Frame, Planner


def dot(p: Planner, frame: Frame, i: int, v: Value) -> None:
    step = frame.fused.steps[i]
    tiled.define(p, frame, step)
    if product_kinds.is_narrow(v):
        amx.multiply(p, frame, step)
        return
    tiled.made_once(p, frame, step, functools.partial(_product, p, frame, step, v))


def _product(p: Planner, frame: Frame, step: Step, v: Value) -> None:
    if split_products.is_split(v, p.machine) and narrow_operands.right(frame.fused, v) is None:
        split_products.multiply(p, frame, step)
    elif product_kinds.has_tiles(v, p.machine):
        by = tiled.multiply_turned if tiled.is_quicker_turned(p, frame, v) else tiled.multiply
        by(p, frame, step)
    elif product_kinds.is_by_blas(v):
        blas.multiply(p, frame, v)
    else:
        _as_nest(p, frame, v)


def _as_nest(p: Planner, frame: Frame, v: Value) -> None:
    """A product as a loop nest. Where one operand has a few rows or columns, each is a sum of its own beside what lies
    in the lanes; where many read them across, they are brought side by side first.
    """
    side = product_kinds.few(v, p.machine)
    if side is None and product_kinds.reads_columns_apart(v, p.machine, p.depth > 0):
        _with_operand(p, frame, v, 1, (), "its columns are brought side by side", terms_last=False)
    elif side is None:
        _launch(p, frame, v)
    elif product_kinds.reads_across(v, side, p.machine):
        free = product_kinds.free_dimensions(v)[side]
        _with_operand(p, frame, v, side, free, "its terms are brought side by side", terms_last=True)
    else:
        _launch(p, frame, v, product_kinds.free_dimensions(v)[side], product_kinds.accumulators(v, p.machine))


def _launch(p: Planner, frame: Frame, v: Value, few: tuple = (), copies: int = COPIES) -> None:
    """A product as one loop nest (see `nests.dot`)."""
    asked = functools.partial(alike.of_values, frame.fused, ("dot", few, copies), v.args, v)
    add = functools.partial(nests.dot, frame.nests, v, few, copies)
    if read_once(v):
        add = functools.partial(nests.inner_product, frame.nests, v, p.machine)
    launch_alike(p, frame, asked, add)


def _with_operand(
    p: Planner, frame: Frame, v: Value, side: int, written_out: tuple, why: str, terms_last: bool
) -> None:
    """A product as a loop nest that reads one operand as it is copied before, its terms or its columns last."""
    operands, params = v.args, v.params
    x, contracted, batch = operands[side], params.numbers[side], params.numbers[2 + side]
    free = tuple(d for d in range(x.ndim) if d not in batch and d not in contracted)
    order = (*batch, *free, *contracted) if terms_last else (*batch, *contracted, *free)
    part = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(order))
    packed = laid_out(p, frame, part, why)
    sides, numbers = list(operands), list(params.numbers)
    sides[side], start = packed, len(batch) + len(free) * terms_last
    numbers[side], numbers[2 + side] = tuple(range(start, start + len(contracted))), tuple(range(len(batch)))
    v.args, v.params = tuple(sides), params._replace(numbers=tuple(numbers))
    _launch(p, frame, v, written_out, product_kinds.accumulators(v, p.machine))
    v.args, v.params = operands, params
    p.free_here(frame, (frame.blocks[packed.number],))


RULES = {"dot": dot, "convolve": convolutions.convolve}
