"""Products by BLAS: those of complex numbers. It reads operands where they lie when each of their groups of dimensions
(batch, free, contracted) has one stride and the matrix has one unit stride; else they are copied into that layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from catena.compiler.graph.forms import Transpose
from catena.compiler.graph.region import Value
from catena.compiler.plan import product_kinds, views
from catena.compiler.plan.copies import beside, copied
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.steps import Gemm
from catena.core.dtypes import KIND


def _matrix(p: Planner, frame: Frame, x: Value, batch, rows, columns) -> tuple[Buffer, tuple[int, int, int]]:
    """Where `x` is as batches of matrices, and the strides of batches, rows and columns; one of the last two is 1."""
    r, c = (math.prod(x.shape[d] for d in dims) for dims in (rows, columns))
    found = views.lies(frame, x)
    if found is not None:
        groups = [g for g in (views.group(x, found.strides, dims) for dims in (batch, rows, columns)) if g is not None]
        if len(groups) == 3:
            s, down, across = groups
            down, across = (down or (1 if across != 1 else c)), (across or (1 if down != 1 else r))
            if r == 1:
                down = max(c, 1) if across == 1 else 1
            if (down == 1 and across >= r) or (across == 1 and down >= c):
                return views.address(p, frame, found), (s, down, across)
    order = (*batch, *rows, *columns)
    moved = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(order))
    return copied(p, frame, moved), (r * c, c, 1)


def multiply(p: Planner, frame: Frame, v: Value) -> None:
    lhs, rhs = v.args
    lc, rc, lb, rb = v.params.numbers
    lfree = [d for d in range(lhs.ndim) if d not in lc and d not in lb]
    rfree = [d for d in range(rhs.ndim) if d not in rc and d not in rb]
    batch, m, n, k = product_kinds.sizes(v)
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
