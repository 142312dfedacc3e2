"""Products by BLAS, which is column major: it computes C' = B' A'.

A product is cut into blocks of batch members or of rows for the threads; the blocks depend on the sizes alone, so that
BLAS gives the same sums on any number of threads.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.emit import parallel
from catena.compiler.emit.emitter import Emitter, shortened
from catena.compiler.plan.blas import Product
from catena.compiler.plan.steps import Gemm
from catena.runtime import kernels
from catena.runtime import library as routines

BLAS_NAMES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}


def gemm(w, step: Gemm) -> None:
    p = step.product
    w.uses.add("blas")
    pointers = [w.pointer(b) for b in (step.a, step.b, step.c)]
    pointers.append(w.external(kernels.Routine(BLAS_NAMES[p.dtype.name])))
    if p.batch * p.m * p.n * p.k >= w.machine.products.blas_shared and (p.batch > 1 or p.m > 1):
        _in_parallel(w, p, pointers)
    else:
        _shared(w, p, pointers)


def _members(w, p: Product, e, pointers: list[str], start, stop) -> None:
    """The products of the batch members from `start` to `stop`."""
    a, b, c, function = pointers
    opened, size = None, p.dtype.itemsize
    if p.batch > 1:
        t, opened = e.begin_loop(start, stop)
        steps = (p.a[0] * size, p.b[0] * size, p.m * p.n * size)
        a, b, c = (_step(e, p, t, by) for p, by in zip((a, b, c), steps))
    _gemm(w, p, e, function, a, b, c, _number(w, p.m))
    if opened is not None:
        e.end_loop(opened)


def _shared(w, p: Product, pointers: list[str]) -> None:
    """A call of a function that computes products of these sizes, the same for all of them."""
    e, names = Emitter(), ["%a", "%b", "%c", "%f"]
    _members(w, p, e, names, 0, p.batch)
    params = ", ".join(f"ptr {n}" for n in names)
    name = w.function("\n".join([f"({params}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"]))
    w.e.do(f"call void @{name}({', '.join(f'ptr {p}' for p in pointers)})")


def _in_parallel(w, p: Product, pointers: list[str]) -> None:
    """Blocks of batch members, or of rows, through the pool; the blocks depend on the sizes alone, so
    that BLAS gives the same sums on any number of threads.
    """
    extent = p.batch if p.batch > 1 else p.m
    each = p.batch * p.m * p.n * p.k / extent
    step = min(-(-extent // 2), max(int(w.machine.products.blas_task // each), 1))
    step = step if p.batch > 1 else min(-(-step // 16) * 16, extent)
    e = Emitter()
    e.lines += ["  %lo = mul nsw i64 %k, " + str(step), f"  %end = add nsw i64 %lo, {step}",
                f"  %hi = call i64 @llvm.smin.i64(i64 %end, i64 {extent})"]  # fmt: skip
    inner = [e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}") for i in range(4)]
    if p.batch > 1:
        _members(w, p, e, inner, "%lo", "%hi")
    else:
        _rows(w, p, e, inner)
    body = "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
    work = p.batch * p.m * p.n * p.k // 8
    parallel.through_pool(w, body, pointers, -(-extent // step), units=work)


def _rows(w, p: Product, e, pointers: list[str]) -> None:
    a, b, c, function = pointers
    size, integer = p.dtype.itemsize, f"i{routines.integer_bits()}"
    count = shortened(e, e.op("sub i64 %hi, %lo"), integer)
    rows = e.slot(integer, 8)
    e.do(f"store {integer} {count}, ptr {rows}")
    a, c = _step(e, a, "%lo", p.a[1] * size), _step(e, c, "%lo", p.n * size)
    _gemm(w, p, e, function, a, b, c, rows)


def _gemm(w, p: Product, e, function: str, a: str, b: str, c: str, rows: str) -> None:
    """BLAS is column major: it computes C' = B' A', where C' has n rows and *`rows` columns."""
    (_, ap, aq), (_, bp, bq) = p.a, p.b
    flag_b, ldb = ("N", bp) if bq == 1 else ("T", bq)
    flag_a, lda = ("N", ap) if aq == 1 else ("T", aq)
    ldb = max(ldb, p.n if flag_b == "N" else p.k, 1)
    lda = max(lda, p.k if flag_a == "N" else p.m, 1)
    flags = [w.literal("i8", ord(f)) for f in (flag_b, flag_a)]
    args = [*flags, _number(w, p.n), rows, _number(w, p.k), _factor(w, p, 1), b, _number(w, ldb), a,
            _number(w, lda), _factor(w, p, 0), c, _number(w, p.n)]  # fmt: skip
    e.do(f"call void {function}({', '.join(f'ptr {p}' for p in args)})")


def _factor(w, p: Product, value: int) -> str:
    bits = np.asarray(value, p.dtype).tobytes()
    return w.literal(f"i{8 * len(bits)}", int.from_bytes(bits, "little"))


def _number(w, value: int) -> str:
    return w.literal(f"i{routines.integer_bits()}", value)


def _step(e, pointer: str, t: str, by: int) -> str:
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {t}, {by}')}") if by else pointer
