"""Contractions: large ones of BLAS types by BLAS, the others as loop nests.

Operands are read where they lie, through transposes, when each of their groups of dimensions (batch, free, contracted)
has one stride and the matrix has one unit stride; else they are copied into that layout first.
"""

from __future__ import annotations

import math

import numpy as np

from catena.compiler.graph import Value
from catena.runtime import kernels
from catena.runtime import library as routines

BLAS_NAMES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
BLAS_FLOOR = 16 * 16 * 16
THREADS_FLOOR = 384**3  # smaller products are faster on one thread, by far when the machine is busy


def dot(w, frame, i: int, v: Value) -> None:
    """Writes the contraction `v`."""
    lhs, rhs = v.args
    w.define(frame, v)
    if v.size == 0 or not _use_blas(v):
        w.nest(frame, frame.nests.dot(v))
        return
    _blas(w, frame, v)


def _use_blas(v: Value) -> bool:
    lhs, rhs = v.args
    same = lhs.dtype == rhs.dtype == v.dtype
    batch, m, n, k = sizes(v)
    return same and v.dtype.name in BLAS_NAMES and m * n * k >= BLAS_FLOOR and k > 0


def sizes(v: Value) -> tuple[int, int, int, int]:
    """Batch, rows, columns and contracted length."""
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params["numbers"]
    batch = math.prod(lhs.shape[d] for d in lb)
    k = math.prod(lhs.shape[d] for d in lc)
    m = math.prod(lhs.shape) // max(batch * k, 1) if lhs.size else 0
    n = math.prod(rhs.shape) // max(batch * k, 1) if rhs.size else 0
    return batch, m, n, k


def _strides(frame, x: Value) -> tuple[Value, list[int]] | None:
    """The stored value under the transposes of `x`, and the stride of each dimension of `x` in it."""
    order = list(range(x.ndim))
    while not frame.fused.is_stored(x) and x.form == "transpose":
        order = [x.params["perm"][d] for d in order]
        x = x.args[0]
    if not frame.fused.is_stored(x):
        return None
    strides, step = [0] * x.ndim, 1
    for d in reversed(range(x.ndim)):
        strides[d] = step
        step *= x.shape[d]
    return x, [strides[d] for d in order]


def _group(x: Value, strides: list[int], dims) -> int | None:
    """The single stride of a group of dimensions, 0 when it has one element; None when there is none."""
    dims = [d for d in dims if x.shape[d] != 1]
    for a, b in zip(dims, dims[1:]):
        if strides[a] != strides[b] * x.shape[b]:
            return None
    return strides[dims[-1]] if dims else 0


def _matrix(w, frame, x: Value, batch, rows, columns) -> tuple[str, int, int, int]:
    """The address of `x` as batches of matrices, and the strides of batches, rows and columns; one of the last two is 1."""
    found = _strides(frame, x)
    if found is not None:
        base, strides = found
        groups = [_group(x, strides, g) for g in (batch, rows, columns)]
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
    c = w.address(frame, v)
    e, size = w.e, v.dtype.itemsize
    threads = batch == 1 and m * n * k >= THREADS_FLOOR
    if threads:
        w.blas_threads("%blas_threads")
    # BLAS is column major: it computes the transposed product C' (n x m) = B' A'.
    call = _Gemm(w, v.dtype)
    w.uses_blas = True
    opened = None
    if batch > 1:
        t, opened = e.begin_loop(0, batch)
        a, b, c = (_step(e, p, t, s * size) for p, s in ((a, sa), (b, sb), (c, m * n)))
    call(n, m, k, b, bp, bq, a, ap, aq, c, n)
    if opened is not None:
        e.end_loop(opened)
    if threads:
        w.blas_threads("1")


def _step(e, pointer: str, t: str, by: int) -> str:
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {t}, {by}')}") if by else pointer


class _Gemm:
    """The call of one gemm; scalar arguments are passed by address, as Fortran wants."""

    def __init__(self, w, dtype: np.dtype):
        self.w, self.e, self.dtype = w, w.e, dtype
        self.function = w.external(kernels.Routine(BLAS_NAMES[dtype.name]))

    def _number(self, value: int) -> str:
        return self.w.literal(f"i{routines.integer_bits()}", value)

    def _factor(self, value: int) -> str:
        bits = np.asarray(value, self.dtype).tobytes()
        return self.w.literal(f"i{8 * len(bits)}", int.from_bytes(bits, "little"))

    def __call__(self, rows, columns, k, x, xp, xq, y, yp, yq, out, ld) -> None:
        """out' = x' y' with x of strides (xp, xq) as k x rows, and y of strides (yp, yq) as columns x k."""
        flag_x, ldx = (b"N", xp) if xq == 1 else (b"T", xq)
        flag_y, ldy = (b"N", yp) if yq == 1 else (b"T", yq)
        lda = max(ldx, rows if flag_x == b"N" else k, 1)
        ldb = max(ldy, k if flag_y == b"N" else columns, 1)
        args = [
            self.w.literal("i8", flag_x[0]),
            self.w.literal("i8", flag_y[0]),
            self._number(rows),
            self._number(columns),
            self._number(k),
            self._factor(1),
            x,
            self._number(lda),
            y,
            self._number(ldb),
            self._factor(0),
            out,
            self._number(ld),
        ]
        self.e.do(f"call void {self.function}({', '.join(f'ptr {p}' for p in args)})")
