"""Linear algebra on stacks of matrices: NumPy's batched LAPACK where it has the routine, SciPy's elsewhere.

Every kernel takes and returns NumPy arrays whose last axes are one problem and whose leading axes, equal for
all arguments, are a batch. A matrix on which LAPACK fails gives NaN in its results and leaves the others of
the batch alone.

NumPy's routines are called below ``np.linalg``, as the generalised ufuncs that it is made of: a small matrix
costs a third, float32 stays float32 (as in compiled programs), and failure of one matrix is not that of all.
"""

import contextvars
import functools
import math
import threading

import numpy as np
from numpy.linalg import _umath_linalg as gufuncs

from catena.core.lazy import load


class _Strict(threading.local):
    """A context of this thread in which a generalised ufunc raises FloatingPointError where LAPACK fails."""

    def __init__(self):
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore", invalid="raise")
        self.run = context.run


strict = _Strict()


def routine(name: str, dtype):
    """LAPACK's routine for matrices of ``dtype``."""
    return load("scipy.linalg.lapack").get_lapack_funcs((name,), dtype=dtype)[0]


_FAILED = {"f": np.nan, "c": complex(np.nan, np.nan)}


def each(fun, arrays, ranks, outs) -> list:
    """``fun`` applied to every problem of a batch.

    Arguments:
      fun: from the arrays of one problem to a sequence of its results, or None where it failed.
      arrays: the arguments with their batch axes.
      ranks: how many axes of each belong to one problem.
      outs: shape and dtype of each result of one problem.
    Returns:
      The results with batch axes; NaN (or 0 for integers) where ``fun`` failed.
    """
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    count = math.prod(batch)
    flat = [a.reshape((count, *a.shape[a.ndim - r :])) for a, r in zip(arrays, ranks, strict=True)]
    results = [np.empty((count, *shape), dtype) for shape, dtype in outs]
    for i in range(count):
        found = fun(*[a[i] for a in flat])
        for k, out in enumerate(results):
            out[i] = found[k] if found is not None else _FAILED.get(out.dtype.kind, 0)
    return [out.reshape(batch + out.shape[1:]) for out in results]


def real_dtype(dtype) -> np.dtype:
    return np.zeros((), dtype).real.dtype


def complex_dtype(dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


# ------------------------------------------------------------------------------------------------------------
# Factorisations


def potrf(a) -> list:
    """The lower Cholesky factor; NaN in its whole triangle where the matrix is not positive definite."""
    try:
        return [strict.run(gufuncs.cholesky_lo, a)]
    except FloatingPointError:
        return [np.tril(gufuncs.cholesky_lo(a))]


def getrf(a) -> list:
    """LU factors in one matrix, pivots and the permutation of rows."""
    m, n = a.shape[-2:]
    k = min(m, n)
    if k == 0:
        pivots = np.zeros((*a.shape[:-2], k), np.int32)
        return [a.copy(), pivots, pivots_to_permutation(pivots, m)[0]]
    factorise = routine("getrf", a.dtype)
    lu, pivots = each(lambda x: factorise(x)[:2], [a], [2], [((m, n), a.dtype), ((k,), np.int32)])
    return [lu, pivots, pivots_to_permutation(pivots, m)[0]]


def pivots_to_permutation(pivots, size: int) -> list:
    """The permutation of ``size`` rows that exchanging rows ``i`` and ``pivots[i]``, one by one, makes."""
    *batch, steps = pivots.shape
    flat = pivots.reshape(math.prod(batch), steps)
    out = np.empty((len(flat), size), np.int32)
    out[...] = np.arange(size, dtype=np.int32)
    every = np.arange(len(flat))
    for i, others in enumerate(flat.T):
        out[:, i], out[every, others] = out[every, others], out[:, i].copy()
    return [out.reshape(*batch, size)]


def geqrf(a, *, full_matrices: bool) -> list:
    """The orthogonal and the triangular factor, computed in double precision."""
    m, n = a.shape[-2:]
    packed = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64, order="C")  # overwritten
    taus = gufuncs.qr_r_raw(packed)
    full = full_matrices and m > n
    q = (gufuncs.qr_complete if full else gufuncs.qr_reduced)(packed, taus)
    rows = m if full else min(m, n)
    r = packed[..., :rows, :].astype(a.dtype, order="C")
    words = r.view(np.int32)  # "and" is several times as quick as a copy by a mask
    np.bitwise_and(words, _upper_words(rows, n, a.dtype.itemsize // 4), words)
    return [q.astype(a.dtype, copy=False), r]


@functools.lru_cache(256)
def _upper_words(m: int, n: int, words: int) -> np.ndarray:
    """All bits where an ``m`` by ``n`` matrix is upper triangular, else none; an element is so many 32-bit words."""
    return np.repeat(-np.tri(n, m, 0, np.int32).T, words, 1)


def geqp3(a, *, full_matrices: bool) -> list:
    """The orthogonal and the triangular factor of the matrix with permuted columns, and the permutation."""
    m, n = a.shape[-2:]
    k = min(m, n)
    q_shape, r_shape = ((m, m), (m, n)) if full_matrices else ((m, k), (k, n))
    if k == 0:
        q, r = geqrf(a, full_matrices=full_matrices)
        return [q, r, np.broadcast_to(np.arange(n, dtype=np.int32), (*a.shape[:-2], n)).copy()]
    qr = load("scipy.linalg").qr
    mode = "full" if full_matrices else "economic"

    def one(x):
        return qr(x, mode=mode, pivoting=True, check_finite=False)

    return each(one, [a], [2], [(q_shape, a.dtype), (r_shape, a.dtype), ((n,), np.int32)])


def orgqr(a, taus) -> list:
    """The first columns of the product of Householder reflections."""
    m, n = a.shape[-2:]
    if 0 in a.shape or taus.shape[-1] == 0:
        return [np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape).copy()]
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    form = routine(name, a.dtype)
    return each(lambda x, tau: form(x, tau)[:1], [a, taus], [2, 1], [((m, n), a.dtype)])


def ormqr(a, taus, c, *, left: bool, transpose: bool) -> list:
    """``c`` times the product of Householder reflections, or its (conjugate) transpose."""
    if c.size == 0 or taus.shape[-1] == 0:
        return [c.copy()]
    is_complex = a.dtype.kind == "c"
    multiply = routine("unmqr" if is_complex else "ormqr", a.dtype)
    trans = ("C" if is_complex else "T") if transpose else "N"
    side = "L" if left else "R"
    work = 64 * max(c.shape[-2:])

    def one(x, tau, y):
        return multiply(side, trans, x[:, : tau.shape[0]], tau, y, work)[:1]

    return each(one, [a, taus, c], [2, 1, 2], [(c.shape[-2:], c.dtype)])


# ------------------------------------------------------------------------------------------------------------
# Eigenvalues and singular values


def syevd(a, *, lower: bool) -> list:
    """Eigenvectors and ascending eigenvalues of a Hermitian matrix, of which one triangle is read."""
    values, vectors = (gufuncs.eigh_lo if lower else gufuncs.eigh_up)(a)
    return [vectors, values]


def gesdd(a, *, full_matrices: bool, compute_uv: bool) -> list:
    """Singular values, and the left and the (conjugate) transposed right singular vectors."""
    if not compute_uv:
        return [gufuncs.svd(a)]
    u, s, vh = (gufuncs.svd_f if full_matrices else gufuncs.svd_s)(a)
    return [s, u, vh]


def geev(a, *, left: bool, right: bool) -> list:
    """Eigenvalues, and left and right eigenvectors where asked for, of a square matrix."""
    n, dtype = a.shape[-1], complex_dtype(a.dtype)
    outs = [((n,), dtype)] + [((n, n), dtype)] * (left + right)
    if a.size == 0:
        return [np.zeros((*a.shape[:-2], *shape), d) for shape, d in outs]
    solve = routine("geev", a.dtype)

    def one(x):
        if not np.isfinite(x).all():
            return None
        *values, vl, vr, info = solve(x, compute_vl=left, compute_vr=right)
        if info:
            return None
        w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
        vectors = [v for v, wanted in ((vl, left), (vr, right)) if wanted]
        return [w, *[v if v.dtype.kind == "c" else _unpack_pairs(v, w) for v in vectors]]

    return each(one, [a], [2], outs)


def _unpack_pairs(v, w):
    """Eigenvectors from LAPACK's real ones: a pair's real and imaginary parts are in adjacent columns."""
    out = v.astype(complex_dtype(v.dtype))
    first = np.flatnonzero(w.imag > 0)
    out[:, first] = v[:, first] + 1j * v[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def gees(a, *, compute_schur_vectors: bool, select=None) -> list:
    """The Schur form and its vectors; ``select`` says of an eigenvalue whether it comes first."""
    n = a.shape[-1]
    outs = [((n, n), a.dtype)] * (1 + compute_schur_vectors)
    if a.size == 0:
        return [a.copy() for _ in outs]
    solve = routine("gees", a.dtype)
    # LAPACK's wrapper counts the arguments of the function, so their number must be plain.
    if select is None:
        choose = None
    elif a.dtype.kind == "c":
        choose = lambda z: bool(select(complex(z)))  # noqa: E731
    else:
        choose = lambda re, im: bool(select(complex(re, im)))  # noqa: E731
    sort = int(choose is not None)
    choose = choose or (lambda z: None)

    def one(x):
        if not np.isfinite(x).all():
            return None
        t, *_, vs, _work, info = solve(choose, x, compute_v=compute_schur_vectors, sort_t=sort)
        return None if info and info <= n else [t, vs]

    return each(one, [a], [2], outs)


def gehrd(a) -> list:
    """The Hessenberg form with the reflections that made it below, and their factors."""
    n = a.shape[-1]
    if n <= 1 or a.size == 0:
        return [a.copy(), np.zeros((*a.shape[:-2], max(n - 1, 0)), a.dtype)]
    reduce = routine("gehrd", a.dtype)
    return each(lambda x: reduce(x)[:2], [a], [2], [((n, n), a.dtype), ((n - 1,), a.dtype)])


def sytrd(a, *, lower: bool) -> list:
    """The tridiagonal form with the reflections that made it, its diagonals, and the reflections' factors."""
    n, real = a.shape[-1], real_dtype(a.dtype)
    if n <= 1 or a.size == 0:
        rest = np.zeros((*a.shape[:-2], max(n - 1, 0)), real)
        return [a.copy(), np.diagonal(a, axis1=-2, axis2=-1).real.copy(), rest, rest.astype(a.dtype)]
    reduce = routine("hetrd" if a.dtype.kind == "c" else "sytrd", a.dtype)
    outs = [((n, n), a.dtype), ((n,), real), ((n - 1,), real), ((n - 1,), a.dtype)]
    return each(lambda x: reduce(x, lower=lower)[:4], [a], [2], outs)


# ------------------------------------------------------------------------------------------------------------
# Solving


def trsm(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal) -> list:
    """The solution of a triangular system.

    BLAS wants columns to be contiguous, so it is given the transposes of both, with the sides exchanged.
    """
    if b.size == 0:
        return [b.copy()]
    if conjugate_a and not transpose_a:
        a = a.conj()
    solve = load("scipy.linalg.blas").get_blas_funcs(("trsm",), dtype=a.dtype)[0]
    trans = (2 if conjugate_a else 1) if transpose_a else 0

    def one(x, y):
        solution = solve(1, x.T, y.T, side=int(left_side), lower=int(not lower), trans_a=trans, diag=int(unit_diagonal))
        return [solution.T]

    return each(one, [a, b], [2, 2], [(b.shape[-2:], b.dtype)])


def gtsv(dl, d, du, b, *, perturb_singular: bool) -> list:
    """The solution of a tridiagonal system; NaN where it is singular, unless that is to be perturbed away."""
    n = d.shape[-1]
    if b.size == 0:
        return [b.copy()]
    solve = routine("gtsv", d.dtype)

    def one(lower, diagonal, upper, y):
        if n == 1:
            return [y / _off_zero(diagonal, perturb_singular)[:, None]]
        *_, x, info = solve(lower[1:], diagonal, upper[:-1], y)
        if info == 0:
            return [x]
        if not perturb_singular:
            return None
        scale = max(np.abs(lower).max(), np.abs(diagonal).max(), np.abs(upper).max())
        shift = (np.finfo(d.dtype).eps * (scale or 1)).astype(d.dtype)
        *_, x, info = solve(lower[1:], diagonal + shift, upper[:-1], y)
        return None if info else [x]

    return each(one, [dl, d, du, b], [1, 1, 1, 2], [(b.shape[-2:], b.dtype)])


def _off_zero(diagonal, perturb: bool):
    return np.where(diagonal == 0, np.finfo(diagonal.dtype).eps if perturb else np.nan, diagonal)


def cholesky_update(r, w) -> list:
    """The upper Cholesky factor of ``r^T r + w w^T``, by one rotation for each row.

    Source: Golub and Van Loan, "Matrix Computations", section 6.5.4.
    """
    r, w = np.triu(r), w.copy()
    for k in range(r.shape[-1]):
        x, y = r[..., k, k], w[..., k]
        length = np.hypot(x, y)
        safe = np.where(length == 0, 1, length)
        c, s = (np.where(length == 0, 1, x) / safe)[..., None], (y / safe)[..., None]
        row, rest = r[..., k, k:].copy(), w[..., k:].copy()
        r[..., k, k:] = c * row + s * rest
        w[..., k:] = c * rest - s * row
    return [r]
