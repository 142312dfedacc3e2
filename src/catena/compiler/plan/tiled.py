"""Products by tiles (see `contraction`).

Tiles read the left operand where it lies, through transposes, unless it is large and each term in another line of
memory: then it is copied into panels of a tile's rows. The right one is read where it lies too when its columns lie
side by side and it is small or read few times; else it is packed into panels: by each task as it comes to them, or
first, where its columns do not lie so or it stays as it is in a loop.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from catena.compiler.graph.forms import Slice, Transpose
from catena.compiler.graph.products import has_terms_side_by_side
from catena.compiler.graph.region import Value
from catena.compiler.graph.thresholds import reaches
from catena.compiler.graph.transposes import adds_along_lines
from catena.compiler.graph.types import NAMES, TYPES
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.machine import Machine
from catena.compiler.plan import alike, contraction, narrow_operands, product_kinds, sharing, stitch, views, walks
from catena.compiler.plan.contraction import Axis, Contraction
from catena.compiler.plan.copies import beside, copied, copy
from catena.compiler.plan.fuse import Step
from catena.compiler.plan.launches import launch, once, schedule
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import NULL, Buffer
from catena.compiler.plan.steps import Contract
from catena.compiler.plan.stitch import RowGroup
from catena.compiler.plan.strided import row_major
from catena.core.context import context

PANELS = 8  # of the left operand that are filled at once: what is read of a term is whole lines
TURNED, TURNED_BY_FEW = 3, 2  # times as large as the left operand and the result is one that is not packed, but read
# where it lies; and where tasks that pack have few rows, or are one
WATCHED = ("float32", "float64")  # of whose products subnormal numbers take long
LEAST_PACKED = 1 << 15  # elements
UNIT = 8  # multiplications that take as long as a unit of work
MUCH_MORE = 8  # times as long as the product does an epilogue take that leaves its tasks


def made_once(p: Planner, frame: Frame, step: Step, add: Callable[[], None]) -> None:
    """Adds the steps of a product or convolution, or those of an equal one. How operands lie is asked of what they
    transpose, too, be they stored or not.
    """
    v = step.own_node
    if step.epilogue is not None or any(x.form == "transpose" for x in v.args) or narrow_operands.right(frame.fused, v):
        add()
    else:
        once(p, frame, functools.partial(alike.of_values, frame.fused, (), v.args, v), add)


def define(p: Planner, frame: Frame, step: Step) -> None:
    """Memory for a product: where its epilogue puts what it makes of each element, if that can be so."""
    heir = _heir(frame, step, p.machine.vector_bytes) if step.epilogue is not None else None
    if heir is None:
        p.define(frame, step.own_node)
    else:
        frame.blocks[step.own_node.number] = p.define(frame, frame.fused.region.values[heir])


def _heir(frame: Frame, step: Step, vector_bytes: int) -> int | None:
    """The value that the epilogue makes of each element of the product, in the same place, where nobody else reads the
    product. In memory of its own, that would go through the caches as well. Rows are whole vectors: a rest could not
    overlap the one before.
    """
    product, nest = step.own_node, step.epilogue
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


def multiply(p: Planner, frame: Frame, step: Step) -> None:
    """A product by tiles."""
    v = step.own_node
    lhs, rhs, (lc, rc, lb, rb) = product_kinds.vector_first(v)
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    a, b, sc = views.in_memory(frame, lhs), views.in_memory(frame, rhs), row_major(v.shape)
    sa, sb = a.strides, b.strides
    batch = [Axis(lhs.shape[p], sa[p], sb[q], sc[i]) for i, (p, q) in enumerate(zip(lb, rb))]
    steps = sc[len(lb) :]
    if product_kinds.is_vector_second(v):  # the dimensions of the matrix come first in the result
        steps = [*steps[len(rfree) :], *steps[: len(rfree)]]
    lines = [Axis(lhs.shape[d], sa[d], 0, step) for d, step in zip(lfree, steps)]
    terms = [Axis(lhs.shape[p], sa[p], sb[q], 0) for p, q in zip(lc, rc)]
    columns = [Axis(rhs.shape[d], 0, sb[d], step) for d, step in zip(rfree, steps[len(lfree) :])]
    left: tuple | None = (lhs, lb, lc, lfree)
    groups, columns = _column_groups(columns, math.prod(x.extent for x in lines) * views.uses(frame, rhs), v, p.machine)
    if groups:
        batch, left = [*batch, *groups], None  # the left operand is the same for all of them
    small = v.params.small is not None
    contract(p, frame, step, (a, b), (batch, lines, terms, columns), (rhs, rb, rc, rfree), left, small)


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


def is_quicker_turned(p: Planner, frame: Frame, v: Value) -> bool:
    """Whether the right operand of a product would be packed, and is more than the left one and the result together:
    its terms lie side by side, so as the left one it is read where it lies. Sums are the same either way.
    """
    members, m, n, terms = product_kinds.sizes(v)
    rhs, rc = v.args[1], v.params.numbers[1]
    limits = p.machine.products
    if 1 in (m, n) or not adds_along_lines(v) or views.is_fixed(frame.outside, rhs):
        return False
    packed, others = n * terms, m * (n + terms)
    if not has_terms_side_by_side(rhs, rc) or packed < TURNED_BY_FEW * others:
        return False
    if narrow_operands.right(frame.fused, v) is not None:  # which tasks widen as they pack it
        return False
    many = m >= limits.packing.rows or p.machine.threads and members * m * n * terms >= limits.shared
    return packed >= LEAST_PACKED and packed >= (TURNED if many else TURNED_BY_FEW) * others


def multiply_turned(p: Planner, frame: Frame, step: Step) -> None:
    """A product by tiles with its operands exchanged, and its transpose."""
    v = step.own_node
    (lhs, rhs), (lc, _, lb, _) = v.args, v.params.numbers
    batch, rows = range(len(lb)), [d + len(lb) for d in range(v.ndim - len(lb))]
    left = lhs.ndim - len(lc) - len(lb)
    order = (*batch, *rows[left:], *rows[:left])
    made = beside(frame, "dot", [v.shape[d] for d in order], (rhs, lhs), v.params.exchanged(), v.dtype)
    frame.blocks[made.number] = p.allocate(made.nbytes)
    frame.fused.stored[made.number] = "a large right operand is read where it lies, as the left one"
    multiply(p, frame, Step(None, made, writes=[made.number]))
    back = Transpose(tuple(order.index(d) for d in range(v.ndim)))
    after, in_place = epilogue(p, frame, step, False)
    copy(p, frame, beside(frame, "transpose", v.shape, (made,), back), v)
    p.free_here(frame, (frame.blocks[made.number],))
    follow(p, frame, step, after, in_place)


def contract(p: Planner, frame: Frame, step: Step, operands, axes, layout, left=None, small=False) -> None:
    """The contraction of operands where they lie; `layout` is a view of the right one, for packing it, and its
    dimensions by kind (batch, terms, columns), `left` one of the left one (batch, terms, rows), for copying it; None
    where they stay.
    """
    v = step.own_node
    a, b = operands
    batch, lines, terms, columns = map(contraction.merged, axes)
    n = math.prod(x.extent for x in columns)
    watched = v.dtype.name in WATCHED and p.machine.stops_at_subnormals and not context.flush_subnormals
    right = narrow_operands.right(frame.fused, v)
    form = Contraction(TYPES[NAMES[v.dtype]], batch, lines, n, terms, small, watched, right)
    if context.check_bounds:
        walks.check(form, a, b, v, columns)
    times, moved = (0 if x is None else views.uses(frame, x[0]) for x in (layout, left))
    plan = p.known(contraction.plan, form, _apart(columns), times or 1, moved)
    strips = None if left is None or not plan.in_tiles else _in_tiles(p, frame, left, plan)
    if right is not None and layout is not None:
        layout = narrow_operands.computed(frame, layout[0]), *layout[1:]
    packed = None if layout is None or not plan.packed else _panels(p, frame, layout, plan)
    panels, rest = packed or (views.address(p, frame, b), None)
    touched = a.base, b.base, v
    count(p, form.products, touched)
    has_whole_rows = n * math.prod(product_kinds.row_shape(v)) == v.size and contraction.has_rows_in_order(plan)
    among_steps = frame.has_many_steps or p.depth > 0
    awake = p.depth > 0 or _finds_threads_awake(p, frame, plan, touched)
    in_tasks = has_whole_rows and contraction.has_rows_enough(plan, p.machine, awake, among_steps)
    in_tasks = in_tasks and not _is_shared_alone(p, frame, step, plan, awake)
    after, in_place = epilogue(p, frame, step, in_tasks)
    of_after = {} if after is None else p.operands(frame, after)
    tasks = p.known(contraction.tasks, plan, awake, after is not None, among_steps)
    c, left_at = p.address(frame, v), strips or views.address(p, frame, a)
    made = Contract(plan, tasks, left_at, panels, rest, c=c, after=after, in_place=in_place, operands=of_after)
    frame.steps.append(made)
    if packed is not None:
        p.free_here(frame, packed)
    if strips is not None:
        p.free_here(frame, (strips,))
    follow(p, frame, step, after, in_place)


def _is_shared_alone(p: Planner, frame: Frame, step: Step, plan, awake: bool) -> bool:
    """Whether threads share what follows a product that they do not share, and that is much less than it."""
    if step.epilogue is None or p.depth or not p.machine.threads or contraction.is_shared(plan, p.machine, awake):
        return False
    work, own = sharing.work(step.epilogue), plan.contraction.products // UNIT
    return work >= max(p.machine.sharing.least(frame.awake), MUCH_MORE * own)


def _apart(columns: tuple[Axis, ...]) -> int:
    """The elements of a right operand from one column to the next; 0 where that differs."""
    return columns[0].b if len(columns) == 1 else int(not columns)


def _finds_threads_awake(p: Planner, frame: Frame, plan, values) -> bool:
    """Whether threads share a product as those in loops, since they are likely awake, and what it reads and writes is
    so much that it comes from other caches anyhow, or mostly lies in those of the cores that have a half of its rows.
    """
    if frame.has_many_steps and contraction.has_halves(plan, p.machine):
        return True
    return frame.awake and reaches(sum(x.nbytes for x in values), p.machine.products.tasks.moved)


def count(p: Planner, multiplications: int, values) -> None:
    """Notes what a product of stored values costs."""
    costs = p.costs
    costs.units += multiplications // UNIT
    costs.flops += costs.trips * 2 * multiplications
    costs.bytes += costs.trips * sum(x.nbytes for x in values)


def follow(p: Planner, frame: Frame, step: Step, after, in_place: bool) -> None:
    """What comes after a product: its epilogue, where no task runs it, whose result may have taken its memory."""
    if step.epilogue is not None and after is None:
        launch(p, frame, step.epilogue, in_place)
    product = step.own_node.number
    if frame.blocks[product] in [frame.blocks[n] for n in step.writes if n != product]:
        del frame.blocks[product]  # the memory is another value's now


def epilogue(p: Planner, frame: Frame, step: Step, in_tasks: bool):
    """The scheduled loop nest that a product's epilogue runs on its rows, None where rows are not one dimension, or
    tasks do not have whole ones; and whether it writes memory that it reads.
    """
    nest, values = step.epilogue, frame.fused.region.values
    if nest is None:
        return None, False
    written = [frame.blocks.get(n) or p.define(frame, values[n]) for n in step.writes if n != step.own_node.number]
    reads = {frame.blocks[r] for r in (*step.reads, step.own_node.number) if r in frame.blocks}
    in_place = any(b in reads for b in written)
    stitch.merge_rows(RowGroup([nest], len(product_kinds.row_shape(step.own_node)), 0, {}, 0, []))
    if len(nest.rows) != 1 or not in_tasks:
        nest.rows = ()
        return None, in_place
    schedule(p, nest, in_place)
    return nest, in_place


def _panels(p: Planner, frame: Frame, layout: tuple, plan, anew=False) -> tuple[Buffer, Buffer]:
    """The right operand packed: for each batch member and panel, the columns of each term; and the columns beyond the
    panels. Before the loop, in memory that is there `anew`, where it does not change in one.
    """
    x, batch, terms, columns = layout
    outside = frame.outside
    if outside is not None and views.is_fixed(outside, x):
        with p.before(outside):
            made = _panels(p, outside.frame, (views.fixed(outside, x), batch, terms, columns), plan, True)
        outside.made += list(dict.fromkeys(made))
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
    panels, rest = packed
    return panels, rest


def _in_tiles(p: Planner, frame: Frame, layout: tuple, plan, anew=False) -> Buffer:
    """The left operand in panels: for each member and tile, the rows of each term, and those that are left, in one of
    their own. Before the loop, in memory that is there `anew`, where it does not change in one.
    """
    x, batch, terms, rows = layout
    outside = frame.outside
    if outside is not None and views.is_fixed(outside, x):
        with p.before(outside):
            made = _in_tiles(p, outside.frame, (views.fixed(outside, x), batch, terms, rows), plan, True)
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
