"""Products of arrays: real ones by tiles (see `contraction`), complex ones by BLAS, tiny ones and those with a
vector as loop nests.

Tiles read the left operand where it lies, through transposes; the right one too when its columns lie side by
side and it is small or read few times, else it is packed into panels first. BLAS reads operands where they lie
when each of their groups of dimensions (batch, free, contracted) has one stride and the matrix has one unit
stride; else they are copied into that layout first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from catena.compiler import contraction, loops
from catena.compiler.contraction import Axis, Contraction
from catena.compiler.emit import bounds, parallel, rows
from catena.compiler.emit.emitter import Emitter
from catena.compiler.fuse import Step
from catena.compiler.graph import Value
from catena.compiler.rows import RowGroup
from catena.compiler.types import NAMES, TYPES
from catena.core.dtypes import KIND
from catena.runtime import kernels
from catena.runtime import library as routines

BLAS_NAMES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
FLOOR = 16 * 16 * 16  # multiplications from which a product is more than a loop nest
FEWEST_COLUMNS = 4  # of a product by tiles, whose lanes are columns; with fewer, lanes are terms
THREADS_FLOOR = 160**3  # multiplications below which threads do not pay
CHUNK = 128**3  # multiplications that make a block of work


def dot(w, frame, i: int, v: Value) -> None:
    """Writes the contraction `v`."""
    w.define(frame, v)
    if has_tiles(v):
        tiled(w, frame, frame.fused.steps[i])
    elif KIND[v.dtype] == "c" and v.size and _is_large(v):
        _blas(w, frame, v)
    else:
        w.nest(frame, frame.nests.dot(v))


def _is_large(v: Value) -> bool:
    lhs, rhs = v.args
    same = lhs.dtype == rhs.dtype == v.dtype
    batch, m, n, k = sizes(v)
    return same and m * n * k >= FLOOR and k > 0


def has_tiles(v: Value) -> bool:
    """Whether a value is a contraction by tiles."""
    if v.form == "convolve":
        return v.size > 0
    if v.form != "dot" or v.size == 0 or KIND[v.dtype] not in "fiu" or TYPES[NAMES[v.dtype]].narrow:
        return False
    return _is_large(v) and sizes(v)[2] >= FEWEST_COLUMNS


def row_shape(v: Value) -> tuple:
    """The leading dimensions of a contraction by tiles that are not its columns."""
    if v.form == "convolve":
        return v.shape[:-1]
    lhs, (lc, _, _, _) = v.args[0], v.params["numbers"]
    return v.shape[: lhs.ndim - len(lc)]


# ---- by tiles ----------------------------------------------------------------------------------------------


def tiled(w, frame, step: Step) -> None:
    """Writes a product by tiles."""
    v = step.node
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params["numbers"]
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    (a, sa), (b, sb), sc = strides(frame, lhs), strides(frame, rhs), row_major(v.shape)
    batch = [Axis(lhs.shape[p], sa[p], sb[q], sc[i]) for i, (p, q) in enumerate(zip(lb, rb))]
    lines = [Axis(lhs.shape[d], sa[d], 0, sc[len(lb) + i]) for i, d in enumerate(lfree)]
    terms = [Axis(lhs.shape[p], sa[p], sb[q], 0) for p, q in zip(lc, rc)]
    columns = [Axis(rhs.shape[d], 0, sb[d], 0) for d in rfree]
    contract(w, frame, step, (a, b), (batch, lines, terms, columns), (rhs, rb, rc, rfree))


def contract(w, frame, step: Step, operands, axes, layout) -> None:
    """Writes a contraction of stored operands; `layout` is a view of the right one, for packing it, and its
    dimensions by kind (batch, terms, columns).
    """
    v = step.node
    a, b = operands
    batch, lines, terms, columns = map(contraction.merged, axes)
    n = math.prod(x.extent for x in columns)
    form = Contraction(TYPES[NAMES[v.dtype]], batch, lines, n, terms)
    if w.sites is not None:
        _check_bounds(form, a, b, v, columns)
    side_by_side = not columns or (len(columns) == 1 and columns[0].b == 1)
    plan = contraction.plan(form, w.machine.vector_bytes, side_by_side)
    if plan.packed:
        panels, rest = _panels(w, frame, *layout, plan)
    else:
        panels = w.address(frame, b)
        rest = w.e.element(panels, form.type.memory, plan.panels * plan.columns)
    w.units += form.products // 8
    w.flops += w.trips * 2 * form.products
    w.bytes += w.trips * sum(x.nbytes for x in (a, b, v))
    after = _epilogue(w, frame, step, plan)
    contraction.write(w, plan, [w.address(frame, a), panels, rest, w.address(frame, v)], after)
    if step.epilogue is not None and after is None:
        w.nest(frame, step.epilogue)


def _check_bounds(form: Contraction, a: Value, b: Value, v: Value, columns) -> None:
    """In checked mode, that the walks over the operands and the result stay inside: their steps are all known."""
    axes = [*form.batch, *form.rows, *form.terms, *columns]
    bounds.check_walk("its left operand", [(x.extent, x.a) for x in axes], a.size)
    bounds.check_walk("its right operand", [(x.extent, x.b) for x in axes], b.size)
    bounds.check_walk("its result", [(x.extent, x.c) for x in axes if x not in columns] + [(form.columns, 1)], v.size)


def _epilogue(w, frame, step: Step, plan) -> tuple[str, list[str]] | None:
    """The function that runs a product's epilogue on a range of its rows, and its pointers; None where rows are
    not one dimension.
    """
    nest, values = step.epilogue, frame.fused.region.values
    if nest is None:
        return None
    for n in step.writes:
        if n != step.node.number:
            w.define(frame, values[n])
    rows.merge_rows(RowGroup([nest], len(row_shape(step.node)), 0, {}, 0))
    if len(nest.rows) != 1 or not contraction.has_rows_in_order(plan):
        nest.rows = ()
        return None
    loops.schedule(nest, w.machine.vector_bytes)
    w.count(nest)
    if w.keep_nests:
        w.shown.append(loops.show(nest))
    buffers = nest.buffers()
    return w.row_function(nest, buffers), [w.buffer(frame, b) for b in buffers]


def _panels(w, frame, x: Value, batch, terms, columns, plan) -> tuple[str, str]:
    """The addresses of `x` packed: for each batch member and panel, the columns of each term; and of the columns
    beyond the panels.
    """
    members, length, n = (math.prod(x.shape[d] for d in dims) for dims in (batch, terms, columns))
    order = (*batch, *terms, *columns)
    flat = beside(frame, "transpose", [x.shape[d] for d in order], (x,), perm=order)
    flat = beside(frame, "reshape", (members, length, n), (flat,))
    whole = plan.panels * plan.columns
    pointers = []
    for start, count, each in ((0, plan.panels, plan.columns), (whole, int(plan.rest > 0), plan.rest)):
        if not count:
            pointers.append(pointers[0] if pointers else "null")
            continue
        part = flat
        if count * each < n:
            part = beside(
                frame, "slice", (members, length, count * each), (flat,), start=(0, 0, start), strides=(1, 1, 1)
            )
        part = beside(frame, "reshape", (members, length, count, each), (part,))
        part = beside(frame, "transpose", (members, count, length, each), (part,), perm=(0, 2, 1, 3))
        packed = beside(frame, "packed", part.shape, (part,))
        w.define(frame, packed)
        w.nest(frame, frame.nests.copy(part, packed))
        pointers.append(w.address(frame, packed))
    return tuple(pointers)


def beside(frame, form: str, shape, args, **params) -> Value:
    """A value beside those of the graph, which only the nests written here read."""
    values = frame.fused.region.values
    new = Value(form, tuple(shape), args[0].dtype, args, params, len(values))
    values.append(new)
    return new


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
    lc, rc, lb, rb = v.params["numbers"]
    batch = math.prod(lhs.shape[d] for d in lb)
    k = math.prod(lhs.shape[d] for d in lc)
    m = math.prod(lhs.shape) // max(batch * k, 1) if lhs.size else 0
    n = math.prod(rhs.shape) // max(batch * k, 1) if rhs.size else 0
    return batch, m, n, k


def strides(frame, x: Value) -> tuple[Value, list[int]] | None:
    """The stored value under the transposes of `x`, and the stride of each dimension of `x` in it."""
    order = list(range(x.ndim))
    while not frame.fused.is_stored(x) and x.form == "transpose":
        order = [x.params["perm"][d] for d in order]
        x = x.args[0]
    if not frame.fused.is_stored(x):
        return None
    steps = row_major(x.shape)
    return x, [steps[d] for d in order]


def _group(x: Value, strides: list[int], dims) -> int | None:
    """The single stride of a group of dimensions, 0 when it has one element; None when there is none."""
    dims = [d for d in dims if x.shape[d] != 1]
    for a, b in zip(dims, dims[1:]):
        if strides[a] != strides[b] * x.shape[b]:
            return None
    return strides[dims[-1]] if dims else 0


def _matrix(w, frame, x: Value, batch, rows, columns) -> tuple[str, int, int, int]:
    """The address of `x` as batches of matrices, and the strides of batches, rows and columns; one of the
    last two is 1.
    """
    found = strides(frame, x)
    if found is not None:
        base, steps = found
        groups = [_group(x, steps, g) for g in (batch, rows, columns)]
        r = math.prod(x.shape[d] for d in rows)
        c = math.prod(x.shape[d] for d in columns)
        if None not in groups:
            s, p, q = groups
            p, q = (p or (1 if q != 1 else c)), (q or (1 if p != 1 else r))
            if r == 1:
                p = max(c, 1) if q == 1 else 1
            if (p == 1 and q >= r) or (q == 1 and p >= c):
                return w.address(frame, base), s, p, q
    return _copied(w, frame, x, [*batch, *rows, *columns], rows, columns)


def _copied(w, frame, x: Value, order: list[int], rows, columns) -> tuple[str, int, int, int]:
    region = frame.fused.region
    shape = tuple(x.shape[d] for d in order)
    moved = Value("transpose", shape, x.dtype, (x,), {"perm": tuple(order)}, len(region.values))
    packed = Value("packed", shape, x.dtype, (), {}, len(region.values) + 1)
    region.values += [moved, packed]
    w.define(frame, packed)
    w.nest(frame, frame.nests.copy(moved, packed))
    c = math.prod(x.shape[d] for d in columns)
    return w.address(frame, packed), math.prod(x.shape[d] for d in rows) * c, c, 1


def _blas(w, frame, v: Value) -> None:
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params["numbers"]
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    batch, m, n, k = sizes(v)
    a, sa, ap, aq = _matrix(w, frame, lhs, lb, lfree, lc)
    b, sb, bp, bq = _matrix(w, frame, rhs, rb, rc, rfree)
    product = Product(v.dtype, batch, m, n, k, (sa, ap, aq), (sb, bp, bq))
    w.uses_blas = True
    w.units += batch * m * n * k // 8
    w.flops += w.trips * 2 * (4 if KIND[v.dtype] == "c" else 1) * batch * m * n * k
    pointers = [a, b, w.address(frame, v), w.external(kernels.Routine(BLAS_NAMES[v.dtype.name]))]
    if batch * m * n * k >= THREADS_FLOOR and (batch > 1 or m > 1):
        product.in_parallel(w, pointers)
    else:
        product.shared(w, pointers)


@dataclass
class Product:
    """Batches of C = A B, rows of C contiguous, A and B with the strides (batch, rows, columns)."""

    dtype: np.dtype
    batch: int
    m: int
    n: int
    k: int
    a: tuple[int, int, int]
    b: tuple[int, int, int]

    def members(self, w, e, pointers: list[str], start, stop) -> None:
        """The products of the batch members from `start` to `stop`."""
        a, b, c, function = pointers
        opened, size = None, self.dtype.itemsize
        if self.batch > 1:
            t, opened = e.begin_loop(start, stop)
            steps = (self.a[0] * size, self.b[0] * size, self.m * self.n * size)
            a, b, c = (_step(e, p, t, by) for p, by in zip((a, b, c), steps))
        self._gemm(w, e, function, a, b, c, _number(w, self.m))
        if opened is not None:
            e.end_loop(opened)

    def shared(self, w, pointers: list[str]) -> None:
        """A call of a function that computes products of these sizes, the same for all of them."""
        e, names = Emitter(), ["%a", "%b", "%c", "%f"]
        self.members(w, e, names, 0, self.batch)
        params = ", ".join(f"ptr {n}" for n in names)
        name = w.function("\n".join([f"({params}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"]))
        w.e.do(f"call void @{name}({', '.join(f'ptr {p}' for p in pointers)})")

    def in_parallel(self, w, pointers: list[str]) -> None:
        """Blocks of batch members, or of rows, through the pool; the blocks depend on the sizes alone, so
        that BLAS gives the same sums on any number of threads.
        """
        extent = self.batch if self.batch > 1 else self.m
        each = self.batch * self.m * self.n * self.k / extent
        step = min(-(-extent // 2), max(int(CHUNK // each), 1))
        step = step if self.batch > 1 else min(-(-step // 16) * 16, extent)
        e = Emitter()
        e.lines += ["  %lo = mul nsw i64 %k, " + str(step), f"  %end = add nsw i64 %lo, {step}",
                    f"  %hi = call i64 @llvm.smin.i64(i64 %end, i64 {extent})"]  # fmt: skip
        inner = [e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}") for i in range(4)]
        if self.batch > 1:
            self.members(w, e, inner, "%lo", "%hi")
        else:
            self._rows(w, e, inner)
        body = "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
        work = self.batch * self.m * self.n * self.k // 8
        parallel.through_pool(w, body, pointers, -(-extent // step), units=work)

    def _rows(self, w, e, pointers: list[str]) -> None:
        a, b, c, function = pointers
        size, integer = self.dtype.itemsize, f"i{routines.integer_bits()}"
        count = e.op("sub i64 %hi, %lo")
        count = count if integer == "i64" else e.op(f"trunc i64 {count} to {integer}")
        rows = e.slot(integer, 8)
        e.do(f"store {integer} {count}, ptr {rows}")
        a, c = _step(e, a, "%lo", self.a[1] * size), _step(e, c, "%lo", self.n * size)
        self._gemm(w, e, function, a, b, c, rows)

    def _gemm(self, w, e, function: str, a: str, b: str, c: str, rows: str) -> None:
        """BLAS is column major: it computes C' = B' A', where C' has n rows and *`rows` columns."""
        (_, ap, aq), (_, bp, bq) = self.a, self.b
        flag_b, ldb = ("N", bp) if bq == 1 else ("T", bq)
        flag_a, lda = ("N", ap) if aq == 1 else ("T", aq)
        ldb = max(ldb, self.n if flag_b == "N" else self.k, 1)
        lda = max(lda, self.k if flag_a == "N" else self.m, 1)
        flags = [w.literal("i8", ord(f)) for f in (flag_b, flag_a)]
        args = [*flags, _number(w, self.n), rows, _number(w, self.k), self._factor(w, 1), b, _number(w, ldb), a,
                _number(w, lda), self._factor(w, 0), c, _number(w, self.n)]  # fmt: skip
        e.do(f"call void {function}({', '.join(f'ptr {p}' for p in args)})")

    def _factor(self, w, value: int) -> str:
        bits = np.asarray(value, self.dtype).tobytes()
        return w.literal(f"i{8 * len(bits)}", int.from_bytes(bits, "little"))


def _number(w, value: int) -> str:
    return w.literal(f"i{routines.integer_bits()}", value)


def _step(e, pointer: str, t: str, by: int) -> str:
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {t}, {by}')}") if by else pointer
