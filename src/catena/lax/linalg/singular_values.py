"""The singular value and the polar decomposition.

Source of the derivative: Townsend, "Differentiating the singular value decomposition" (2016).
"""

from __future__ import annotations

import enum
import math

import numpy as np

from catena.core import dtypes
from catena.core.array import make_array
from catena.core.aval import ShapedArray
from catena.core.structural import reduce_sum_p
from catena.core.zeros import Zero, get_aval
from catena.lax.arithmetic import abs as abs_
from catena.lax.arithmetic import add, div, max_p, mul, neg, sub
from catena.lax.comparison import lt, select_n
from catena.lax.complex_numbers import conj, real
from catena.lax.convert import convert_element_type
from catena.lax.join import concatenate
from catena.lax.linalg.algebra import (
    adjoint,
    as_inexact,
    check_matrix,
    columns,
    constant_like,
    diagonal,
    eye,
    eye_like,
    inverse_differences,
    kernel_primitive,
    mm,
    rows,
    scalar,
    symmetrized,
)
from catena.lax.linalg.factor import cholesky, qr
from catena.lax.linalg.solve import triangular_solve
from catena.lax.powers import sqrt
from catena.lax.reductions import reduce_max_p
from catena.lax.shape import broadcast, broadcasted_iota, slice_in_dim
from catena.lax.whole import whole
from catena.runtime import lapack


class SvdAlgorithm(enum.Enum):
    """Algorithms for the singular value decomposition.

    On a CPU it is LAPACK's divide and conquer; QR is accepted and computed by it too.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _svd_abstract(x, *, full_matrices, compute_uv):
    check_matrix("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    s = ShapedArray((*batch, k), dtypes.to_real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    u, vh = ((*batch, m, m), (*batch, n, n)) if full_matrices else ((*batch, m, k), (*batch, k, n))
    return [s, ShapedArray(u, x.dtype), ShapedArray(vh, x.dtype)]


def _svd_jvp(primals, tangents, *, full_matrices, compute_uv):
    t = tangents[0]
    if type(t) is Zero:
        outs = svd_p.bind(*primals, full_matrices=full_matrices, compute_uv=compute_uv)
        return outs, [Zero.of_primal(o) for o in outs]
    if not compute_uv:  # the vectors are needed, and come with the values
        s, u, vh = svd_p.bind(*primals, full_matrices=False, compute_uv=True)
        return [s], [_real(diagonal(mm(adjoint(u), t, adjoint(vh))))]
    outs = svd_p.bind(*primals, full_matrices=full_matrices, compute_uv=True)
    return outs, _svd_tangents(*outs, t)


def _real(x):
    return real(x) if get_aval(x).dtype.kind == "c" else x


def _svd_tangents(s, u, vh, t):
    k = get_aval(s).shape[-1]
    u1, v1 = slice_in_dim(u, 0, k, axis=-1), adjoint(slice_in_dim(vh, 0, k, axis=-2))
    inner = mm(adjoint(u1), t, v1)
    s_wide = convert_element_type(s, get_aval(u).dtype)
    squares = inverse_differences(mul(s_wide, s_wide), inner)
    by_columns, by_rows = mul(inner, columns(s_wide, inner)), mul(rows(s_wide, inner), inner)
    turn_u = mul(squares, add(by_columns, adjoint(by_columns)))
    turn_v = mul(squares, add(by_rows, adjoint(by_rows)))
    if get_aval(u).dtype.kind == "c":  # of a pair of singular vectors the common phase is free; u takes all of it
        d = diagonal(inner)
        phase = div(sub(d, conj(d)), mul(scalar(d, 2), s_wide))
        turn_u = add(turn_u, mul(columns(phase, turn_u), eye_like(turn_u)))
    u_t = _basis_tangent(u, u1, mm(u1, turn_u), mm(t, v1), s_wide, k)
    v = adjoint(vh)
    v_t = _basis_tangent(v, v1, mm(v1, turn_v), mm(adjoint(t), u1), s_wide, k)
    return [_real(diagonal(inner)), u_t, adjoint(v_t)]


def _basis_tangent(whole, first, inside, image, s, k: int):
    """The tangent of singular vectors: its part in their span, and the rest of the image outside of it."""
    size, count = get_aval(whole).shape[-2:]
    if size > k:
        outside = sub(image, mm(first, mm(adjoint(first), image)))
        inside = add(inside, div(outside, columns(s, outside)))
    if count == k:
        return inside
    rest = slice_in_dim(whole, k, count, axis=-1)  # turns with the first part, and not in itself
    rest_t = neg(mm(first, mm(adjoint(inside), rest)))
    return concatenate([inside, rest_t], get_aval(whole).ndim - 1)


svd_p = kernel_primitive("svd", lapack.gesdd, abstract=_svd_abstract, jvp=_svd_jvp, multiple_results=True)


@whole
def svd(
    x,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
):
    """The singular value decomposition ``x = u diag(s) vh``.

    Arguments:
      x: a stack of matrices.
      full_matrices: whether ``u`` and ``vh`` are square, or have only as many vectors as there are singular
        values.
      compute_uv: whether to return the singular vectors.
      subset_by_index: start and end of the range of singular values to return, in descending order; all by
        default.
      algorithm: ``SvdAlgorithm.DEFAULT``, ``QR`` or ``DIVIDE_AND_CONQUER``.
    Returns:
      ``u``, ``s`` in descending order and ``vh``, or ``s`` alone; NaN where the algorithm fails.
    Raises:
      ValueError: ``x`` has less than two axes, or the range is not valid.
      NotImplementedError: the algorithm is one for accelerators.

    >>> import numpy as np
    >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    if algorithm is not None and SvdAlgorithm(algorithm) in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("full_matrices and subset_by_index cannot both be set")
    outs = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))
    if subset_by_index is not None:
        outs = _subset(outs, *subset_by_index)
    return (outs[1], outs[0], outs[2]) if compute_uv else outs[0]


def _subset(outs, start: int, end: int) -> list:
    n = get_aval(outs[0]).shape[-1]
    if not 0 <= start < end <= n:
        raise ValueError(f"subset_by_index must be a range in the {n} singular values, got {(start, end)}")
    axes = (-1, -1, -2)
    return [slice_in_dim(x, start, end, axis=a) for x, a in zip(outs, axes, strict=False)]


# ------------------------------------------------------------------------------------------------------------
# qdwh


def _weights(dtype, max_iterations: int, eps: float) -> list[tuple[float, float, float]]:
    """The weights of the iterations, which depend on nothing but the precision of the dtype.

    The lower bound of the scaled singular values starts at the rounding error and grows to 1.
    """
    bound, weights = float(np.finfo(dtype).eps), []
    while abs(1 - bound) > 5 * eps and len(weights) < max_iterations:
        square = bound * bound
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        a = math.sqrt(1 + d) + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * math.sqrt(1 + d)))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        bound = min(bound * (a + b * square) / (1 + c * square), 1.0)
    return weights


def _iterate(u, a: float, b: float, c: float):
    """One step of the dynamically weighted Halley iteration: by QR while c is large, by Cholesky then."""
    shape = get_aval(u).shape
    n = shape[-1]
    if c > 100:
        root = math.sqrt(c)
        identity = eye((*shape[:-2], n, n), get_aval(u).dtype)
        q, _ = qr(concatenate([mul(u, scalar(u, root)), identity], len(shape) - 2), full_matrices=False)
        q1, q2 = (slice_in_dim(q, i, j, axis=-2) for i, j in ((0, shape[-2]), (shape[-2], shape[-2] + n)))
        step, factor = mm(q1, adjoint(q2)), (a - b / c) / root
    else:
        gram = mul(mm(adjoint(u), u), broadcast(scalar(u, c), (*shape[:-2], n, n)))
        lower = cholesky(add(gram, eye_like(gram)), symmetrize_input=False)
        step = triangular_solve(lower, u, lower=True, transpose_a=True, conjugate_a=True)
        step, factor = triangular_solve(lower, step, lower=True), a - b / c
    return add(mul(u, scalar(u, b / c)), mul(step, scalar(u, factor)))


@whole
def qdwh(
    x,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple | None = None,
):
    """The polar decomposition ``x = u h`` with unitary ``u`` and positive semidefinite ``h``.

    Arguments:
      x: a matrix with at least as many rows as columns.
      is_hermitian: whether ``x`` is Hermitian; then ``u`` is made so.
      max_iterations: at most how many iterations; 10 by default.
      eps: the precision to reach; by default the rounding error of the dtype.
      dynamic_shape: the shape of the part of ``x`` that counts, where it is padded; may be traced.
    Returns:
      ``u``, ``h``, the number of iterations, and whether they converged.
    Raises:
      ValueError: ``x`` has more columns than rows, or is no matrix.

    Source: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition" (2010).

    >>> import numpy as np
    >>> np.diagonal(qdwh(np.array([[0.0, -2.0], [3.0, 0.0]]))[1]).round(3).tolist()
    [3.0, 2.0]
    """
    x = as_inexact(x)
    aval = get_aval(x)
    check_matrix("qdwh", aval)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(f"The input `x` must have shape M x N with M >= N, got {aval.shape}")
    if dynamic_shape is not None:
        x = _masked(x, dynamic_shape)
    real_dtype = dtypes.to_real_dtype(aval.dtype)
    eps = float(np.finfo(real_dtype).eps) if eps is None else float(eps)
    weights = _weights(real_dtype, 10 if max_iterations is None else max_iterations, eps)
    u, moved = _scaled(x), None
    for abc in weights:
        before, u = u, _iterate(u, *abc)
        moved = sub(u, before)
    if is_hermitian and aval.shape[0] == aval.shape[1]:
        u = symmetrized(u)
    h = symmetrized(mm(adjoint(u), x))
    return u, h, make_array(np.asarray(len(weights), np.int32), weak_type=True), _has_converged(moved, u, eps)


def _masked(x, shape):
    """``x`` with zeros in rows and columns beyond ``shape``."""
    for d, n in enumerate(shape):
        place = broadcasted_iota(np.int32, get_aval(x).shape, d)
        inside = lt(place, convert_element_type(n, np.int32))
        x = select_n(inside, constant_like(x, 0), x)
    return x


def _scaled(x):
    """``x`` divided by a bound of its largest singular value, the geometric mean of two norms."""
    size = abs_(x)
    norms = [reduce_max_p.bind(reduce_sum_p.bind(size, axes=(axis,)), axes=(0,)) for axis in (0, 1)]
    bound = sqrt(mul(*norms))
    tiny = np.asarray(np.finfo(get_aval(bound).dtype).tiny)
    safe = max_p.bind(bound, tiny)
    return div(x, convert_element_type(safe, get_aval(x).dtype))


def _has_converged(moved, u, eps: float):
    """Whether the last step was small; the iteration is of third order, so the next is rounding error."""
    if moved is None:
        return lt(np.float32(0), np.float32(1))
    norm = [sqrt(reduce_sum_p.bind(mul(s, s), axes=(0, 1))) for s in (abs_(moved), abs_(u))]
    tolerance = np.asarray((4 * eps) ** (1 / 3)).astype(get_aval(norm[0]).dtype)
    return lt(norm[0], mul(norm[1], tolerance))
