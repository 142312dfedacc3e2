"""Products of arrays as steps: real ones by tiles (see `contraction`), complex ones by BLAS, tiny ones and those with a
vector as loop nests; convolutions by tiles.

Tiles read the left operand where it lies, through transposes, unless it is large and each term in another line of
memory: then it is copied into panels of a tile's rows. The right one is read where it lies too when its columns lie
side by side and it is small or read few times; else it is packed into panels: by each task as it comes to them, or
first, where its columns do not lie so or it stays as it is in a loop. BLAS reads operands where they lie
when each of their groups of dimensions (batch, free, contracted) has one stride and the matrix has one unit
stride; else they are copied into that layout first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from catena.compiler.graph.convolution import terms_side_by_side
from catena.compiler.graph.forms import Convolve, Dot, Slice, Transpose
from catena.compiler.graph.products import FLOOR, LONG, SUMS, has_terms_side_by_side, is_inner
from catena.compiler.graph.region import Value
from catena.compiler.graph.symbols import remembered
from catena.compiler.graph.transposes import adds_along_lines, in_memory
from catena.compiler.graph.types import NAMES, TYPES
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import COPIES, Nest
from catena.compiler.machine import Machine
from catena.compiler.plan import alike, contraction, nests, stitch, walks
from catena.compiler.plan.contraction import Axis, Contraction
from catena.compiler.plan.copies import beside, copied, copy, laid_out
from catena.compiler.plan.fuse import Step
from catena.compiler.plan.launches import MANY_STEPS, launch, launch_alike, once, schedule
from catena.compiler.plan.planner import Frame, Outside, Planner
from catena.compiler.plan.program import NULL, Buffer, Contract, Gemm
from catena.compiler.plan.stitch import RowGroup
from catena.core.context import context
from catena.core.dtypes import KIND

FEW = 3  # rows or columns of a product whose lanes are terms, if these lie side by side in the other operand
ROWS = 2  # places of a convolution that share the weights they read
WRITTEN_OUT = 512  # multiplications from which each of these is a sum of its own
ROWS_READING = 2  # for each of which the columns of a right operand would be gathered
FEWEST_ROWS, FEWEST_TERMS = 16, 16  # where lanes are terms, from which the right operand is copied to have them so
PANELS = 8  # of the left operand that are filled at once: what is read of a term is whole lines
TURNED = 2  # times as large as the left operand and the result is one that is not packed, but read where it lies
LEAST_PACKED = 1 << 15  # elements
LEAST_IN_TILES = 512  # multiplications, below FLOOR, where lanes of a loop nest would be columns
FEWEST_BESIDE_VECTOR = 64  # likewise where one operand is a vector, and the other is read once


def dot(p: Planner, frame: Frame, i: int, v: Value) -> None:
    define(p, frame, frame.fused.steps[i])
    _once(p, frame, frame.fused.steps[i], functools.partial(_product, p, frame, frame.fused.steps[i]))


def _once(p: Planner, frame: Frame, step: Step, add: Callable[[], None]) -> None:
    """Adds the steps of a product or convolution, or those of an equal one. How operands lie is asked of what they
    transpose, too, be they stored or not.
    """
    v = step.node
    if step.epilogue is not None or any(x.form == "transpose" for x in v.args):
        add()
    else:
        once(p, frame, functools.partial(alike.of_values, frame.fused, (), v.args, v), add)


def _product(p: Planner, frame: Frame, step: Step) -> None:
    v = step.node
    if has_tiles(v, p.machine):
        by = _turned if _is_quicker_turned(frame, v) else _tiled
        by(p, frame, step)
    elif KIND[v.dtype] == "c" and v.size and _is_large(v):
        _by_blas(p, frame, v)
    else:
        _as_nest(p, frame, v)


def _as_nest(p: Planner, frame: Frame, v: Value) -> None:
    """A product as a loop nest. Where one operand has a few rows or columns, each is a sum of its own beside what lies
    in the lanes; where many read them across, they are brought side by side first.
    """
    side = few(v, p.machine)
    if side is None and p.depth == 0 and _reads_columns_apart(v, p.machine):
        _with_operand(p, frame, v, 1, (), "its columns are brought side by side", terms_last=False)
    elif side is None:
        _launch(p, frame, v)
    elif _reads_across(v, side, p.machine):
        _with_operand(p, frame, v, side, _free(v)[side], "its terms are brought side by side", terms_last=True)
    else:
        _launch(p, frame, v, _free(v)[side], _copies(v, p.machine))


def _launch(p: Planner, frame: Frame, v: Value, few: tuple = (), copies: int = COPIES) -> None:
    """A product as one loop nest (see `nests.dot`)."""
    asked = functools.partial(alike.of_values, frame.fused, ("dot", few, copies), v.args, v)
    made = nests.inner_product if is_inner(v) else nests.dot
    told = (p.machine,) if is_inner(v) else (few, copies)
    launch_alike(p, frame, asked, lambda: made(frame.nests, v, *told))


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
    v.args, v.params = tuple(sides), Dot(tuple(numbers))
    _launch(p, frame, v, written_out, _copies(v, p.machine))
    v.args, v.params = operands, params
    p.free_here(frame, (frame.blocks[packed.number],))


def _reads_columns_apart(v: Value, machine: Machine) -> bool:
    """Whether some rows would each read the columns of a small right operand one by one, since its terms lie side by
    side. These are so few that they are added up one by one, wherever they lie.
    """
    if KIND[v.dtype] not in "fiu" or v.size == 0:
        return False
    rhs, rc = v.args[1], v.params.numbers[1]
    _, m, n, terms = sizes(v)
    few_terms = 1 < terms <= machine.vector_bytes // v.dtype.itemsize
    return few_terms and m >= ROWS_READING and n > 1 and has_terms_side_by_side(rhs, rc)


def few(v: Value, machine: Machine) -> int | None:
    """Which operand of a product has so few rows or columns that lanes are better filled with terms, which lie side by
    side in the other one; None where neither has.
    """
    if v.form != "dot" or v.size == 0 or KIND[v.dtype] not in "fiu" or is_narrow(v):
        return None
    _, m, n, terms = sizes(v)
    lanes = machine.vector_bytes // v.dtype.itemsize
    most = max(FEW, lanes // 2 - 1) if terms >= lanes else FEW  # less than half a vector
    if m * n * terms < WRITTEN_OUT:
        return None
    for side, own, other in sorted([(1, n, m), (0, m, n)], key=lambda found: found[1]):
        if (
            (1 < own <= most or _is_half(v, side, machine))
            and other > 1
            and has_terms_side_by_side(v.args[1 - side], v.params.numbers[1 - side])
        ):
            return side
    return None


def _is_half(v: Value, side: int, machine: Machine) -> bool:
    """Whether the columns of a right operand fill half a vector, and a near cache holds their terms. As many rows of
    a left one find a matrix in panels in loops, where it is packed once.
    """
    _, _, n, terms = sizes(v)
    size = v.dtype.itemsize
    near = n * terms * size <= machine.memory.second_cache
    return side == 1 and n > FEW and 2 * n * size == machine.vector_bytes and terms >= LONG and near


def _copies(v: Value, machine: Machine) -> int:
    """The accumulators of a sum of a product as a loop nest: one where the sums of several columns, and of the rows
    that are done at once beside these, are so many that none waits for itself.
    """
    side = few(v, machine)
    _, m, n, terms = sizes(v)
    own = 0 if side is None else (m, n)[side]
    return 1 if own > FEW and terms >= LONG else COPIES


def _free(v: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions of a product that are those of its left operand alone, and of the right one."""
    lc, _, lb, _ = v.params.numbers
    rows = v.args[0].ndim - len(lc)
    return tuple(range(len(lb), rows)), tuple(range(rows, v.ndim))


def _reads_across(v: Value, side: int, machine: Machine) -> bool:
    """Whether many rows, whose terms lie side by side, meet a few of this operand, whose terms do not."""
    _, m, n, terms = sizes(v)
    if (n, m)[side] < FEWEST_ROWS and not _is_half(v, side, machine) or terms < FEWEST_TERMS:
        return False
    return not has_terms_side_by_side(v.args[side], v.params.numbers[side])


def define(p: Planner, frame: Frame, step: Step) -> None:
    """Memory for a product: where its epilogue puts what it makes of each element, if that can be so."""
    heir = _heir(frame, step, p.machine.vector_bytes) if step.epilogue is not None else None
    if heir is None:
        p.define(frame, step.node)
    else:
        frame.blocks[step.node.number] = p.define(frame, frame.fused.region.values[heir])


def _heir(frame: Frame, step: Step, vector_bytes: int) -> int | None:
    """The value that the epilogue makes of each element of the product, in the same place, where nobody else reads the
    product. In memory of its own, that would go through the caches as well. Rows are whole vectors: a rest could not
    overlap the one before.
    """
    product, nest = step.node, step.epilogue
    if product.shape[-1] * product.dtype.itemsize % vector_bytes:
        return None
    if product.number in frame.targets or product.number in frame.last_use or nest.folds or nest.sequential:
        return None
    read = {frame.blocks[r] for r in step.reads if r in frame.blocks}
    places = {s.attr[1:] for s in nest.stmts if s.op in LOADS and s.attr[0] == product.number}
    for s in nest.stores:
        if s.mask < 0 and places == {(s.dtype, s.offset)} and frame.targets.get(s.buffer) not in read:
            return s.buffer
    return None


def _is_large(v: Value, least: int = FLOOR) -> bool:
    lhs, rhs = v.args
    same = lhs.dtype == rhs.dtype == v.dtype
    _, m, n, k = sizes(v)
    return same and m * n * k >= least


def has_tiles(v: Value, machine: Machine) -> bool:
    """Whether a value is a contraction by tiles."""
    if v.form == "convolve":
        return v.size > 0 and not has_few_channels(v, machine)
    if is_narrow(v):
        return True
    if v.form != "dot" or v.size == 0 or KIND[v.dtype] not in "fiu" or TYPES[NAMES[v.dtype]].narrow:
        return False
    _, m, n, terms = sizes(v)
    if m > 1 and n > 1:
        in_lanes = terms >= machine.vector_bytes // v.dtype.itemsize and all(
            map(has_terms_side_by_side, v.args, v.params.numbers)
        )
        return _is_large(v, FLOOR if in_lanes else LEAST_IN_TILES) and few(v, machine) is None
    _, matrix, numbers = _vector_first(v)
    return _is_large(v) and max(m, n) >= FEWEST_BESIDE_VECTOR and not has_terms_side_by_side(matrix, numbers[1])


def is_narrow(v: Value) -> bool:
    """Whether a value is a product of narrow numbers as they are (see `plan.amx`)."""
    return v.form == "dot" and NAMES[v.dtype] in SUMS.get(NAMES[v.args[0].dtype], ())


def _vector_first(v: Value) -> tuple[Value, Value, tuple]:
    """The operands and the numbers of their dimensions; where the right one is a vector, it is the left one instead:
    the result is the same, and the matrix is read in the order of its columns.
    """
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params.numbers
    _, m, n, _ = sizes(v)
    return (rhs, lhs, (rc, lc, rb, lb)) if n == 1 < m else (lhs, rhs, v.params.numbers)


def apart(x: Value, terms) -> int:
    """The elements of memory from one of the terms to the next, the least of them; 0 where there are none."""
    x, dims = in_memory(x, terms)
    steps = row_major(x.shape)
    return min((steps[d] for d in dims), default=0)


def row_shape(v: Value) -> tuple:
    """The leading dimensions of a contraction by tiles that are not its columns."""
    if v.form == "convolve":
        return v.shape[:-1]
    lhs, (lc, _, lb, _) = v.args[0], v.params.numbers
    return v.shape[: len(lb) if _vector_first(v)[0] is not lhs else lhs.ndim - len(lc)]


# ---- by tiles ----------------------------------------------------------------------------------------------


def _tiled(p: Planner, frame: Frame, step: Step) -> None:
    """A product by tiles."""
    v = step.node
    lhs, rhs, (lc, rc, lb, rb) = _vector_first(v)
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    (a, sa), (b, sb), sc = strides(frame, lhs), strides(frame, rhs), row_major(v.shape)
    batch = [Axis(lhs.shape[p], sa[p], sb[q], sc[i]) for i, (p, q) in enumerate(zip(lb, rb))]
    lines = [Axis(lhs.shape[d], sa[d], 0, sc[len(lb) + i]) for i, d in enumerate(lfree)]
    terms = [Axis(lhs.shape[p], sa[p], sb[q], 0) for p, q in zip(lc, rc)]
    columns = [Axis(rhs.shape[d], 0, sb[d], step) for d, step in zip(rfree, sc[len(lb) + len(lfree) :])]
    left = (lhs, lb, lc, lfree)
    groups, columns = _column_groups(columns, math.prod(x.extent for x in lines) * _times(frame, rhs), v, p.machine)
    if groups:
        batch, left = [*batch, *groups], None  # the left operand is the same for all of them
    small = v.params.small is not None and (0 if lhs is v.args[0] else 1) in v.params.small
    _contract(p, frame, step, (a, b), (batch, lines, terms, columns), (rhs, rb, rc, rfree), left, small)


def _column_groups(columns: list[Axis], rows: int, v: Value, machine: Machine) -> tuple[list[Axis], list[Axis]]:
    """The axes of columns that lie apart, and those of columns side by side beneath them, where `rows` are so few that
    each group of columns is a product of its own sooner than all are packed (`nd,edh->neh`: weights of experts, heads).
    """
    *outer, last = contraction.merged(columns) or (Axis(1, 0, 1, 1),)
    vectors, limits = last.extent * v.dtype.itemsize // machine.vector_bytes, machine.products
    if not outer or last.b != 1:
        return [], columns
    few = rows * limits.most_vectors < limits.packing.rows * min(vectors, limits.most_vectors)
    return (outer, [last]) if few else ([], columns)


def _is_quicker_turned(frame: Frame, v: Value) -> bool:
    """Whether the right operand of a product would be packed, and is more than the left one and the result together:
    its terms lie side by side, so as the left one it is read where it lies. Sums are the same either way.
    """
    _, m, n, terms = sizes(v)
    rhs, rc = v.args[1], v.params.numbers[1]
    if min(m, n) == 1 or not adds_along_lines(v) or is_fixed(frame.outside, rhs):
        return False
    packed = n * terms >= LEAST_PACKED and has_terms_side_by_side(rhs, rc)
    return packed and n * terms >= TURNED * m * (n + terms)


def _turned(p: Planner, frame: Frame, step: Step) -> None:
    """A product by tiles with its operands exchanged, and its transpose."""
    v = step.node
    (lhs, rhs), (lc, _, lb, _) = v.args, v.params.numbers
    batch, rows = range(len(lb)), [d + len(lb) for d in range(v.ndim - len(lb))]
    left = lhs.ndim - len(lc) - len(lb)
    order = (*batch, *rows[left:], *rows[:left])
    made = beside(frame, "dot", [v.shape[d] for d in order], (rhs, lhs), v.params.exchanged(), v.dtype)
    frame.blocks[made.number] = p.allocate(made.nbytes)
    frame.fused.stored[made.number] = "a large right operand is read where it lies, as the left one"
    _tiled(p, frame, Step(None, made, writes=[made.number]))
    back = Transpose(tuple(order.index(d) for d in range(v.ndim)))
    after, in_place = epilogue(p, frame, step, False)
    copy(p, frame, beside(frame, "transpose", v.shape, (made,), back), v)
    p.free_here(frame, (frame.blocks[made.number],))
    follow(p, frame, step, after, in_place)


def convolve(p: Planner, frame: Frame, i: int, v: Value) -> None:
    """A convolution, N *S O: rows are places, terms are the taps of the window and the channels of a group. Windows are
    read where they lie.
    """
    define(p, frame, frame.fused.steps[i])
    if v.size and has_few_channels(v, p.machine):
        _by_channels(p, frame, v)
    elif v.size:
        by = _by_places if v.params.by_places else _by_windows
        _once(p, frame, frame.fused.steps[i], functools.partial(by, p, frame, frame.fused.steps[i]))


def _by_windows(p: Planner, frame: Frame, step: Step) -> None:
    """A convolution whose rows are the places of windows."""
    v = step.node
    lhs, rhs = v.args
    n: Convolve = v.params
    (a, sa), (b, sb), sc = strides(frame, lhs), strides(frame, rhs), row_major(v.shape)
    (image, c, *space), (o, inner, *taps) = n.lhs_spec, n.rhs_spec
    terms = [(Axis(rhs.shape[e], sa[d] * r, sb[e], 0), e) for d, e, r in zip(space, taps, n.dilation)]
    groups, members = n.feature_groups * n.batch_groups, rhs.shape[o]
    by_channel = n.feature_groups > 1
    group = Axis(groups, sa[c] * rhs.shape[inner] if by_channel else sa[image] * v.shape[0],
                 sb[o] * (members // groups), members // groups)  # fmt: skip
    lines = [Axis(v.shape[0], sa[image], 0, sc[0])]
    lines += [Axis(v.shape[1 + k], sa[d] * s, 0, sc[1 + k]) for k, (d, s) in enumerate(zip(space, n.strides))]
    terms = sorted([*terms, (Axis(rhs.shape[inner], sa[c], sb[inner], 0), inner)], key=lambda x: -x[0].a)
    columns = [Axis(members // groups, 0, sb[o], 0)]
    axes = ([group], lines, [x for x, _ in terms], columns)
    split, dims = _split(frame, rhs, o, groups)
    layout = (split, [o], [dims[e] for _, e in terms], [o + 1])
    _contract(p, frame, step, (a, b), axes, layout)


def has_few_channels(v: Value, machine: Machine) -> bool:
    """Whether a convolution has so few output channels that lanes are better filled with terms, as in a product with
    few columns: the input channels, which are the last dimension of the image, with the taps beside them.
    """
    n: Convolve = v.params
    image, w = v.args
    lanes = machine.vector_bytes // v.dtype.itemsize
    if n.by_places or not n.strides or n.feature_groups > 1 or n.batch_groups > 1 or n.lhs_spec[1] != image.ndim - 1:
        return False
    terms = terms_side_by_side(w.shape, n.rhs_spec, n.dilation)
    return 1 < w.shape[n.rhs_spec[0]] <= max(FEW, lanes // 2) and terms >= lanes


def _by_channels(p: Planner, frame: Frame, v: Value) -> None:
    """A convolution as a loop nest that adds up each output channel by itself, with weights that lie as the image."""
    w, (o, inner, *taps) = v.args[1], v.params.rhs_spec
    order, at_once = (o, *taps, inner), v.params.dilation[-1] == 1
    part = beside(frame, "transpose", [w.shape[d] for d in order], (w,), Transpose(order))
    if at_once:
        part = beside(frame, "reshape", (*part.shape[:-2], part.shape[-2] * part.shape[-1]), (part,))
    weights = laid_out(p, frame, part, "its terms are brought side by side")
    asked = functools.partial(alike.of_values, frame.fused, ("convolve", at_once), [v.args[0], weights], v)
    launch_alike(p, frame, asked, lambda: _channels(p, frame, v, weights, at_once))
    p.free_here(frame, (frame.blocks[weights.number],))


def _channels(p: Planner, frame: Frame, v: Value, weights: Value, at_once: bool) -> Nest:
    """The nest of a convolution by output channels, with as many accumulators as there are registers for."""
    nest = nests.convolution(frame.nests, v, weights, at_once)
    copies, room = COPIES, p.machine.vector_registers // (2 * ROWS * len(nest.folds))
    while copies > max(room, 1):
        copies //= 2
    nest.folds = [fold._replace(copies=copies) for fold in nest.folds]
    return nest


def _by_places(p: Planner, frame: Frame, step: Step) -> None:
    """A convolution whose columns are the places along the last dimension of space, with the weights on the left. Where
    these places do not lie side by side, the image is copied first.
    """
    v = step.node
    x, w = v.args
    n: Convolve = v.params
    (image, c, *space), (o, inner, *taps) = n.lhs_spec, n.rhs_spec
    (a, sa), (b, sb), sc = strides(frame, w), strides(frame, x), row_major(v.shape)
    moved = sb[space[-1]] != 1
    if moved:
        b, sb = laid_out(p, frame, x, "its places are brought side by side"), row_major(x.shape)
    steps = [sb[image], *(sb[d] * s for d, s in zip(space[:-1], n.strides))]
    members = [Axis(extent, 0, step, c) for extent, step, c in zip(v.shape[:-2], steps, sc)]
    terms = [Axis(w.shape[e], sa[e], sb[d] * r, 0) for d, e, r in zip(space, taps, n.dilation)]
    terms.append(Axis(w.shape[inner], sa[inner], sb[c], 0))
    axes = (members, [Axis(v.shape[-2], sa[o], 0, sc[-2])], terms, [Axis(v.shape[-1], 0, 1, 0)])
    _contract(p, frame, step, (a, b), axes, None)
    if moved:
        p.free_here(frame, (frame.blocks[b.number],))


def _split(frame: Frame, x: Value, d: int, groups: int) -> tuple[Value, list[int]]:
    """`x` with dimension `d` as groups and members, and where the other dimensions are."""
    shape = (*x.shape[:d], groups, x.shape[d] // groups, *x.shape[d + 1 :])
    return beside(frame, "reshape", shape, (x,)), [e + (e > d) for e in range(x.ndim)]


def _contract(p: Planner, frame: Frame, step: Step, operands, axes, layout, left=None, small=False) -> None:
    """The contraction of stored operands; `layout` is a view of the right one, for packing it, and its dimensions by
    kind (batch, terms, columns), `left` one of the left one (batch, terms, rows), for copying it; None where they stay.
    """
    v = step.node
    a, b = operands
    batch, lines, terms, columns = map(contraction.merged, axes)
    n = math.prod(x.extent for x in columns)
    form = Contraction(TYPES[NAMES[v.dtype]], batch, lines, n, terms, small)
    if context.check_bounds:
        walks.check(form, a, b, v, columns)
    side_by_side = not columns or (len(columns) == 1 and columns[0].b == 1)
    times, moved = (0 if x is None else _times(frame, x[0]) for x in (layout, left))
    plan = p.known(contraction.plan, form, side_by_side, times or 1, moved)
    lines = _in_tiles(p, frame, *left, plan) if plan.in_tiles else p.address(frame, a)
    panels, rest = _panels(p, frame, *layout, plan) if plan.packed else (p.address(frame, b), None)
    count(p, form.products, (a, b, v))
    has_whole_rows = n * math.prod(row_shape(v)) == v.size and contraction.has_rows_in_order(plan)
    in_tasks = has_whole_rows and contraction.has_rows_enough(plan, p.machine, p.depth > 0)
    after, in_place = epilogue(p, frame, step, in_tasks)
    of_after = {} if after is None else p.operands(frame, after)
    awake = p.depth > 0 or (after is None and _finds_threads_awake(p, frame, (a, b, v)))
    tasks = p.known(contraction.tasks, plan, awake, after is not None)
    c = p.address(frame, v)
    frame.steps.append(Contract(plan, tasks, lines, panels, rest, c, after, in_place, of_after))
    if plan.packed:
        p.free_here(frame, (panels, rest))
    if plan.in_tiles:
        p.free_here(frame, (lines,))
    follow(p, frame, step, after, in_place)


def _finds_threads_awake(p: Planner, frame: Frame, values) -> bool:
    """Whether threads share a product as those in loops, since they are likely awake, and what it reads and writes is
    so much that it comes from other caches anyhow.
    """
    return len(frame.fused.steps) >= MANY_STEPS and sum(x.nbytes for x in values) >= p.machine.products.tasks.moved


def count(p: Planner, multiplications: int, values) -> None:
    """Notes what a product of stored values costs."""
    costs = p.costs
    costs.units += multiplications // 8
    costs.flops += costs.trips * 2 * multiplications
    costs.bytes += costs.trips * sum(x.nbytes for x in values)


def follow(p: Planner, frame: Frame, step: Step, after, in_place: bool) -> None:
    """What comes after a product: its epilogue, where no task runs it, whose result may have taken its memory."""
    if step.epilogue is not None and after is None:
        launch(p, frame, step.epilogue, in_place)
    product = step.node.number
    if frame.blocks[product] in [frame.blocks[n] for n in step.writes if n != product]:
        del frame.blocks[product]  # the memory is another value's now


def epilogue(p: Planner, frame: Frame, step: Step, in_tasks: bool):
    """The scheduled loop nest that a product's epilogue runs on its rows, None where rows are not one dimension, or
    tasks do not have whole ones; and whether it writes memory that it reads.
    """
    nest, values = step.epilogue, frame.fused.region.values
    if nest is None:
        return None, False
    written = [frame.blocks.get(n) or p.define(frame, values[n]) for n in step.writes if n != step.node.number]
    reads = {frame.blocks[r] for r in (*step.reads, step.node.number) if r in frame.blocks}
    in_place = any(b in reads for b in written)
    stitch.merge_rows(RowGroup([nest], len(row_shape(step.node)), 0, {}, 0, []))
    if len(nest.rows) != 1 or not in_tasks:
        nest.rows = ()
        return None, in_place
    schedule(p, nest, in_place)
    return nest, in_place


def _panels(p: Planner, frame: Frame, x: Value, batch, terms, columns, plan, anew=False) -> tuple[Buffer, Buffer]:
    """`x` packed: for each batch member and panel, the columns of each term; and the columns beyond the panels. Before
    the loop, in memory that is there `anew`, where `x` does not change in one.
    """
    outside = frame.outside
    if is_fixed(outside, x):
        with p.before(outside):
            made = _panels(p, outside.frame, fixed(outside, x), batch, terms, columns, plan, True)
        outside.made += dict.fromkeys(made)
        return made
    members, length, n = (math.prod(x.shape[d] for d in dims) for dims in (batch, terms, columns))
    order = (*batch, *terms, *columns)
    flat = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(order))
    flat = beside(frame, "reshape", (members, length, n), (flat,))
    whole = plan.panels * plan.columns
    packed: list[Buffer] = []
    for start, count, each in ((0, plan.panels, plan.columns), (whole, int(plan.rest > 0), plan.rest)):
        if not count:
            packed.append(packed[0] if packed else Buffer(NULL, 0))
            continue
        part = flat
        if count * each < n:
            shape = (members, length, count * each)
            part = beside(frame, "slice", shape, (flat,), Slice((0, 0, start), (1, 1, 1)))
        part = beside(frame, "reshape", (members, length, count, each), (part,))
        part = beside(frame, "transpose", (members, count, length, each), (part,), Transpose((0, 2, 1, 3)))
        packed.append(copied(p, frame, part, anew))
    return tuple(packed)


def _in_tiles(p: Planner, frame: Frame, x: Value, batch, terms, rows, plan, anew=False) -> Buffer:
    """The left operand in panels: for each member and tile, the rows of each term, and those that are left, in one of
    their own. Before the loop, in memory that is there `anew`, where `x` does not change in one.
    """
    outside = frame.outside
    if is_fixed(outside, x):
        with p.before(outside):
            made = _in_tiles(p, outside.frame, fixed(outside, x), batch, terms, rows, plan, True)
        outside.made.append(made)
        return made
    members, length, m = (math.prod(x.shape[d] for d in dims) for dims in (batch, terms, rows))
    of, order = (members,) * (members > 1), (*batch, *terms, *rows)
    flat = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(order))
    flat = beside(frame, "reshape", (*of, length, m), (flat,))
    panels = beside(frame, "beside", (*of, plan.down + bool(plan.left), length, plan.rows), (x,))
    size, first = panels.nbytes, (0,) * len(of)
    turned = Transpose((*range(len(of)), *(d + len(of) for d in (1, 0, 2, 3))))
    buffer = frame.blocks[panels.number] = p.allocate_anew(size) if anew else p.allocate(size)
    blocks, few = divmod(plan.down, PANELS)
    parts = [(blocks, PANELS, plan.rows), (1, few, plan.rows), (1, 1, plan.left)]
    start = begin = 0
    for count, each, height in parts:
        taken = count * each * height
        if taken:
            part = flat
            if taken < m:
                cut = Slice((*first, 0, begin), (1,) * (len(of) + 2))
                part = beside(frame, "slice", (*of, length, taken), (flat,), cut)
            part = beside(frame, "reshape", (*of, length, count, each, height), (part,))
            part = beside(frame, "transpose", (*of, count, length, each, height), (part,), turned)
            copy(p, frame, part, panels, start)
            start, begin = start + count * each, begin + taken
    return buffer


def is_fixed(outside: Outside | None, x: Value) -> bool:
    """Whether a view is of what does not change in the loop around."""
    while x.form in ("transpose", "reshape"):
        x = x.args[0]
    return outside is not None and x.form == "input" and x.number in outside.fixed


def fixed(outside: Outside, x: Value) -> Value:
    """The same view as it is called outside of the loop."""
    if x.form == "input":
        return outside.fixed[x.number]
    return beside(outside.frame, x.form, x.shape, (fixed(outside, x.args[0]),), x.params)


def _times(frame: Frame, x: Value) -> int:
    """How often an operand is used once it is packed."""
    if not is_fixed(frame.outside, x):
        return 1
    return frame.outside.trips * _times(frame.outside.frame, fixed(frame.outside, x))


def row_major(shape) -> list[int]:
    """Elements from one step to the next in each dimension of a contiguous array."""
    strides, step = [0] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d] = step
        step *= shape[d]
    return strides


# ---- by BLAS -----------------------------------------------------------------------------------------------


def sizes(v: Value) -> tuple[int, int, int, int]:
    """Batch, rows, columns and contracted length."""
    lhs, rhs = v.args
    return _sizes(lhs.shape, rhs.shape, v.params.numbers)


@remembered(1024)
def _sizes(left: tuple, right: tuple, numbers: tuple) -> tuple[int, int, int, int]:
    lc, _, lb, _ = numbers
    batch = math.prod(left[d] for d in lb)
    k = math.prod(left[d] for d in lc)
    elements = math.prod(left), math.prod(right)
    m, n = (size // max(batch * k, 1) for size in elements)
    return batch, m, n, k


def strides(frame: Frame, x: Value) -> tuple[Value, list[int]] | None:
    """The stored value under the transposes of `x`, and the stride of each dimension of `x` in it."""
    order = list(range(x.ndim))
    while not frame.fused.is_stored(x) and x.form == "transpose":
        order = [x.params.perm[d] for d in order]
        x = x.args[0]
    if not frame.fused.is_stored(x):
        return None
    steps = row_major(x.shape)
    return x, [steps[d] for d in order]


def group(x: Value, strides: list[int], dims) -> int | None:
    """The single stride of a group of dimensions, 0 when it has one element; None when there is none."""
    dims = [d for d in dims if x.shape[d] != 1]
    for a, b in zip(dims, dims[1:]):
        if strides[a] != strides[b] * x.shape[b]:
            return None
    return strides[dims[-1]] if dims else 0


def _matrix(p: Planner, frame: Frame, x: Value, batch, rows, columns) -> tuple[Buffer, tuple[int, int, int]]:
    """Where `x` is as batches of matrices, and the strides of batches, rows and columns; one of the last two is 1."""
    r, c = (math.prod(x.shape[d] for d in dims) for dims in (rows, columns))
    found = strides(frame, x)
    if found is not None:
        base, steps = found
        groups = [group(x, steps, g) for g in (batch, rows, columns)]
        if None not in groups:
            s, down, across = groups
            down, across = (down or (1 if across != 1 else c)), (across or (1 if down != 1 else r))
            if r == 1:
                down = max(c, 1) if across == 1 else 1
            if (down == 1 and across >= r) or (across == 1 and down >= c):
                return p.address(frame, base), (s, down, across)
    order = (*batch, *rows, *columns)
    moved = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(order))
    return copied(p, frame, moved), (r * c, c, 1)


def _by_blas(p: Planner, frame: Frame, v: Value) -> None:
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params.numbers
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    batch, m, n, k = sizes(v)
    a, left = _matrix(p, frame, lhs, lb, lfree, lc)
    b, right = _matrix(p, frame, rhs, rb, rc, rfree)
    costs = p.costs
    costs.units += batch * m * n * k // 8
    costs.flops += costs.trips * 2 * (4 if KIND[v.dtype] == "c" else 1) * batch * m * n * k
    frame.steps.append(Gemm(Product(v.dtype, batch, m, n, k, left, right), a, b, p.address(frame, v)))


@dataclass(frozen=True)
class Product:
    """Batches of C = A B, rows of C contiguous, A and B with the strides (batch, rows, columns)."""

    dtype: np.dtype
    batch: int
    m: int
    n: int
    k: int
    a: tuple[int, int, int]
    b: tuple[int, int, int]


RULES = {"dot": dot, "convolve": convolve}
