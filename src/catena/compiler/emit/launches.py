"""Loop nests of a program: written where they run, or as functions that programs share, called once or in tasks."""

from __future__ import annotations

from catena.compiler.emit import bounds, careful, interrupts, joins, parallel, staged, streams
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.emit.module import COLD
from catena.compiler.emit.nest import NestWriter
from catena.compiler.emit.sizes import Sizes, place_in
from catena.compiler.graph import keys, symbols
from catena.compiler.graph.forms import COSTLY
from catena.compiler.kernels import loops
from catena.compiler.kernels.loops import CarefulNest, Nest
from catena.compiler.plan.pauses import Pause
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.ranges import Open
from catena.compiler.plan.steps import Launch, Product, Rows
from catena.core.named import NamedTuple


class Text(NamedTuple):
    """The function of a nest."""

    body: str  # parameters and body
    needs: dict  # the helpers that it calls
    sizes: list[int]  # the table that it is given, if any, behind its other pointers (see `emit.sizes`)


class Kernel(NamedTuple):
    """A function of a program's text, and its table."""

    name: str
    sizes: list[int]


FEW_STATEMENTS = 16  # of a nest, which take no longer where they are not optimised
MOST_TEXTS = 2048
FEW_VARIANTS = 2  # of a nest in a program, with other constants, that have these in their text: more share one
_texts: dict[tuple, Text] = {}  # of nests that are functions


def launch(w, step: Launch) -> None:
    """Writes a nest here, or as a function and a call."""
    nest = step.nest
    if step.opened is None:
        pointers = {b: w.pointer(buffer) for b, buffer in step.operands.items()}
        w.loops_here += _is_work(nest)
        NestWriter(w.e, nest, pointers, step.in_place, guard=_guard(w, w.e, nest, False), stops=w.checks.stops).write()
        return
    ask = interrupts.table(w) if step.pause else None
    if step.chunk is not None:
        parallel.through_pool(w, *chunks(w, step, ask))
        return
    name, given, numbers = call(w, step)
    places = [parallel.address(w, x) for x in given]
    words = [*(f"ptr {p}" for p in (*places, *([ask] if ask else []))), *(f"i64 {w.number(n)}" for n in numbers)]
    w.e.do(f"call void @{name}({', '.join(words)})")
    if ask:
        interrupts.stop_if_asked(w, ask)
    bounds.stop_if_violated(w)


def call(w, step: Launch) -> tuple[str, list, list[int]]:
    """The function that a nest is, what addresses it is given (`parallel.address`), and numbers."""
    nest, buffers = step.nest, list(step.operands)
    of_nest = (nest, buffers, step.in_place, step.opened, step.pause)
    if step.parts:
        w.checks.calls += nest.is_checked
        name, sizes = _function(w, _text(w, *of_nest, sizes=step.parts))
    else:
        name, sizes = kernel(w, *of_nest)
    given, numbers = [*step.operands.values(), *([sizes] if sizes else [])], step.opened.whole(nest)
    if step.careful is None:
        return name, given, numbers
    slow, own = kernel(w, step.careful, *of_nest[1:])
    tables = [bool(sizes), bool(own)]
    text = careful.text(len(step.operands), tables, bool(step.pause), len(numbers))
    return w.function(text), [careful.memory(w), (name, slow), *given, *([own] if own else [])], numbers


def chunks(w, step: Launch, ask: str | None = None) -> parallel.Chunks:
    """Likewise of one that is cut into chunks."""
    assert step.chunk is not None
    name, given, numbers = call(w, step)
    each = [*([careful.BYTES, 0] if step.careful else []), *(step.parts.get(b, 0) for b in step.operands)]
    each += [0] * (len(given) - len(each))
    return parallel.cut(name, given, numbers, step.cut, step.chunk, step.units, each, ask)


def _is_work(nest: Nest) -> bool:
    """Whether a nest that is written in place is worth being optimised."""
    return nest.trips > 1 or len(nest.stmts) > FEW_STATEMENTS or any(s.op in COSTLY for s in nest.stmts)


def _guard(w, e: Emitter, nest: Nest, own_function: bool, sizes=None) -> bounds.Guard | None:
    """What writes the bounds checks of a nest, in checked mode."""
    if w.sites is None:
        return None
    return bounds.Guard(w.sites, e, w.values, loops.show(nest), own_function, sizes or {})


# ---- nests as functions --------------------------------------------------------------------------------------


def kernel(w, nest: Nest, buffers: list[int], in_place: bool, opened: Open, pause=None) -> Kernel:
    """The function that runs a nest on ranges of its open loops; equal nests have one, and are often one object."""
    one = None if symbols.is_recording() or w.sites is not None else (id(nest), in_place, opened, pause)
    if one in w.texts.of_nests:
        return w.texts.of_nests[one]
    dims = [d for d in (*nest.rows, opened.outer, opened.folded) if d is not None]
    sizes = tuple(w.values[b].nbytes for b in buffers) if w.sites is not None else ()  # checks hang on them
    w.checks.calls += nest.is_checked
    told = 0 in nest.extents, joins.are_few(nest)  # what texts tell of open extents: where one is 0, there is none
    key = (nest.key(buffers, dims), in_place, opened.key(nest), sizes, pause, w.tells, told)
    known, name = w.texts.kernels, keys.of(key)
    if name not in known:
        w.texts.variants[alike := _but_for_constants(name)] += 1
        floats = w.texts.variants[alike] > FEW_VARIANTS
        known[name] = _remembered(w, (key, floats), nest, buffers, in_place, opened, pause, floats)
    if one is not None and not nest.is_checked:
        w.texts.of_nests[one] = known[name]
    return known[name]


def _but_for_constants(key: tuple) -> tuple:
    """What nests have in common that differ in constants, as the iterations of a loop do that is written out."""
    (shape, stmts, *others), *how = key
    stmts = tuple([s[:3] if s[0] == "const" and isinstance(s[3], float) else s for s in stmts])
    return (shape, stmts, *others), *how


def _remembered(w, key: tuple, *of_nest) -> Kernel:
    """A nest's function; texts of programs written before are at hand, but not their checks of bounds."""
    if w.sites is not None or not keys.is_plain(key):
        return _function(w, _text(w, *of_nest))
    if key not in _texts:
        text = _text(w, *of_nest)
        if not keys.is_plain(tuple(text.sizes)):
            return _function(w, text)
        if len(_texts) >= MOST_TEXTS:
            _texts.clear()
        _texts[key] = text
    return _function(w, _texts[key])


def _function(w, text: Text) -> Kernel:
    w.helpers.update(text.needs)
    return Kernel(w.function(text.body), text.sizes)


def _text(
    w,
    nest: Nest,
    buffers: list[int],
    in_place: bool,
    opened: Open,
    pause: Pause | None,
    floats: bool = False,
    sizes: dict | None = None,
) -> Text:
    """The function of a nest, which reads its constants, too, if its text tells no `floats`; `sizes` are those of
    buffers that are parts of values. A careful one is given that in whose place it is called.
    """
    e, written = Emitter(), nest.written()
    table: list[int] = []
    if not w.tells:
        e.sizes = Sizes(e.slots, "%sizes", place_in(table), floats)
    outer = [f"%o{j}" for j in range(len(nest.rows) - 1)]
    names, guard = {b: f"%b{i}" for i, b in enumerate(buffers)}, _guard(w, e, nest, True, sizes)
    if nest.staged is not None and guard is None:
        staged.write(e, nest, names, opened.ranges(), pause)
    else:
        NestWriter(e, nest, names, in_place, opened.ranges(), outer, guard, pause).write()
    params = ["ptr %plain"] if isinstance(nest, CarefulNest) else []
    params += [f"ptr{'' if b in written else ' readonly'} %b{i}" for i, b in enumerate(buffers)]
    params += ["ptr readonly %sizes"] if table else []
    params += [*(["ptr %ask"] if pause else []), *(f"i64 {x}" for x in outer), *opened.parameters]
    head = f"({', '.join(params)}) {COLD if isinstance(nest, CarefulNest) else 'nounwind {'}"
    fence = [streams.FENCE] if streams.are_in(nest) and not nest.rows else []
    return Text("\n".join([head, "entry:", *e.slots, *e.lines, *fence, "  ret void", "}"]), e.needs, table)


def row_function(w, nest: Nest, buffers: list[int], pause: Pause | None = None, in_place: bool = False) -> Kernel:
    """The function that runs a nest of a row group on a range of rows."""
    return kernel(w, nest, buffers, in_place, Open(nest.rows[-1]), pause)


def after(w, step: Product) -> tuple[Kernel | None, list[Buffer]]:
    """The function of what a product's task runs on its rows, and the memory that it is given."""
    if step.after is None:
        return None, []
    return row_function(w, step.after, list(step.operands), in_place=step.in_place), list(step.operands.values())


def on_rows(e: Emitter, function: str, pointers: list[str], low: str, high: str) -> None:
    """Calls such a function for rows from `low` to `high`."""
    e.do(f"call void {function}({', '.join([*(f'ptr {p}' for p in pointers), f'i64 {low}', f'i64 {high}'])})")


# ---- row groups ----------------------------------------------------------------------------------------------


def rows(w, step: Rows) -> None:
    """Writes a row group as one function and its call, through the pool when it pays.

    Each nest is a function of the pointers, the indices of the outer row dimensions, and a range of the innermost one.
    Private values have a scratch block on the stack; their pointer is moved back by the rows before the block, so that
    nests address them as if the whole array were there.
    """
    parallel.through_pool(w, *chunks_of_rows(w, step))


def chunks_of_rows(w, step: Rows) -> parallel.Chunks:
    """The function of a row group, and what it is given."""
    first = step.group[0]
    extents = [first.extents[d] for d in first.rows]
    ask = interrupts.table(w) if any(step.pauses) else None
    kernels = [row_function(w, n, n.buffers(), pause) for n, pause in zip(step.group, step.pauses)]
    body = _rows_text(step, kernels, list(step.operands), len(extents))
    pointers = [*step.operands.values(), *([ask] if ask else [])]
    sizes = [n for kernel in kernels for n in kernel.sizes]
    numbers = [step.blocks_each, step.blocks_in_all, step.block, *extents, *step.private.values(), *sizes]
    count = -(-step.blocks_in_all // step.blocks_each)
    return parallel.Chunks(body, pointers, count, numbers, step.units, ask)


def _rows_text(step: Rows, kernels: list[Kernel], buffers: list[int], dims: int) -> str:
    """The text of the function that runs chunk %k. Its table holds the blocks in each chunk, all blocks, the rows of a
    block, the extents of the row dimensions, the bytes of a row of each private value, and the tables of the kernels:
    rows of any number and length share it.
    """
    e, asks = Emitter(), any(step.pauses)
    pointers = {b: parallel.load_pointer(e, i) for i, b in enumerate(buffers)}
    ask = parallel.load_pointer(e, len(buffers)) if asks else None
    fixed = 3 + dims + len(step.private)
    table, (each, blocks, block, *others) = parallel.load_numbers(e, len(buffers) + asks, fixed)
    extents, sizes = others[:dims], dict(zip(step.private, others[dims:]))
    scratch = {n: e.op(f"alloca i8, i64 {e.op(f'mul i64 {size}, {block}')}, align 64") for n, size in sizes.items()}
    first = e.op(f"mul nsw i64 %k, {each}")
    end = e.op(f"add nsw i64 {first}, {each}")
    last = e.least(end, blocks)
    k, opened = e.begin_loop(first, last)
    outer, inner = "0", k
    if dims > 1:
        beyond = e.op(f"add i64 {extents[-1]}, {block}")
        across = e.op(f"udiv i64 {e.op(f'sub i64 {beyond}, 1')}, {block}")
        outer, inner = divide(e, k, across)
    low = e.op(f"mul i64 {inner}, {block}")
    end = e.op(f"add i64 {low}, {block}")
    high = e.least(end, extents[-1])
    before = low
    if dims > 1:
        before = e.op(f"add i64 {low}, {e.op(f'mul i64 {outer}, {extents[-1]}')}")
    for n, slot in scratch.items():
        back = e.op(f"mul i64 {before}, {sizes[n]}")
        pointers[n] = e.op(f"getelementptr i8, ptr {slot}, i64 {e.op(f'sub i64 0, {back}')}")
    indices = [f"i64 {x}" for x in (*_outer_indices(e, outer, extents[:-1]), low, high)]
    for nest, pause, (name, told) in zip(step.group, step.pauses, kernels):
        own = [e.element(table, "i64", fixed)] if told else []
        fixed += len(told)
        given = [f"ptr {p}" for p in (*(pointers[b] for b in nest.buffers()), *own, *([ask] if pause else []))]
        e.do(f"call void @{name}({', '.join(given + indices)})")
    e.end_loop(opened)
    fence = [streams.FENCE] if any(map(streams.are_in, step.group)) else []
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, *fence, "  ret void", "}"])


def _outer_indices(e: Emitter, position: str, extents: list[str]) -> list[str]:
    """The position in row-major order as one index per dimension."""
    out: list[str] = []
    for n in reversed(extents[1:]):
        position, index = divide(e, position, n)
        out.insert(0, index)
    return [position, *out] if extents else []
