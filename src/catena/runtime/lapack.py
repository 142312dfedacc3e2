"""Linear algebra on stacks of matrices: NumPy's batched LAPACK where it has the routine, the routine itself elsewhere.

Every kernel takes and returns NumPy arrays whose last axes are one problem and whose leading axes, equal for
all arguments, are a batch. A matrix on which LAPACK fails gives NaN in its results and leaves the others of
the batch alone.

NumPy's routines are called below ``np.linalg``, as the generalised ufuncs that it is made of: a small matrix
costs a third, float32 stays float32 (as in compiled programs), and failure of one matrix is not that of all. They know
no signals: `stacked` calls them for parts of a large stack, between which Ctrl-C ends what takes long. Nothing ends the
call for one matrix.

Compiled programs call the same routines of the same library (`lapack_calls`): of the OpenBLAS in NumPy's wheel, so
that NumPy's functions and ours agree; and where NumPy has another one, all of SciPy's.
"""

import contextvars
import functools
import math
import threading

import numpy as np
from numpy.linalg import _umath_linalg as gufuncs

from catena.core.lazy import load
from catena.runtime import lapack_calls, library
from catena.runtime.lapack_calls import real_dtype


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


def call(routine: lapack_calls.Call, operands: tuple, batch: tuple) -> list:
    """The results of a routine for every problem of a batch."""
    outs = [
        np.array(operands[routine.copies[k]], order="C") if k in routine.copies else np.empty(batch + shape, dtype)
        for k, (shape, dtype) in enumerate(routine.results)
    ]
    pointers, kept = routine.constants[0].copy(), []
    for i, kind, k in routine.places:
        kept.append(outs[k] if kind == "out" else np.ascontiguousarray(operands[k]))
        pointers[i] = kept[-1].__array_interface__["data"][0]
    workspaces, size = routine.workspaces
    if workspaces:
        kept.append(np.empty(size, np.uint8))
        start = kept[-1].__array_interface__["data"][0]
        for i, offset in workspaces:
            pointers[i] = start + offset
    function = routine.function
    count = math.prod(batch)
    if count:
        function(*pointers)
    for _ in range(count - 1):
        for (i, _, _), array in zip(routine.places, kept):
            pointers[i] += array.nbytes // count
        function(*pointers)
    return outs


PIECE = 1 << 24  # multiplications, or so, in one call for a part of a stack: a tenth of a second, and often less
FEWEST = 64  # multiplications for each element of the smallest matrices: what calling a routine costs


def stacked(gufunc, *operands, **options):
    """A generalised ufunc on stacks of matrices; large ones in parts, between which signals are handled.

    Arguments:
      gufunc: a function of ``gufuncs``, which treats each matrix by itself.
      operands: arrays whose leading axes broadcast.
      options: what the ufunc takes besides, such as ``out=...`` (then numbers are arrays too).
    Returns:
      Its result, or the tuple of them.
    """
    if all(x.ndim < 3 for x in operands):
        return gufunc(*operands, **options)
    batches = [x.shape[: x.ndim - rank] for x, rank in zip(operands, _ranks(gufunc), strict=True)]
    batch = np.broadcast_shapes(*batches) if len(batches) > 1 else batches[0]
    *_, m, n = operands[0].shape
    cost = m * n * (n + FEWEST) * operands[0].itemsize // 4
    if math.prod(batch) * cost <= PIECE:
        return gufunc(*operands, **options)
    spread = [
        x if own == batch else np.broadcast_to(x, batch + x.shape[len(own) :])
        for x, own in zip(operands, batches, strict=True)
    ]
    results: list[np.ndarray] = []
    for part in _parts(batch, cost):
        found = gufunc(*[x[part] for x in spread])
        found = found if isinstance(found, tuple) else (found,)
        if not results:
            core = len(batch[len(part) - 1 :])
            results = [np.empty(batch + x.shape[core:], x.dtype) for x in found]
        for result, x in zip(results, found, strict=True):
            result[part] = x
    return tuple(results) if gufunc.nout > 1 else results[0]


@functools.cache
def _ranks(gufunc) -> tuple[int, ...]:
    """How many axes of each operand belong to one matrix."""
    return tuple(operand.count(",") + 1 for operand in gufunc.signature.split("->")[0].split("),("))


def _parts(batch: tuple, cost: int):
    """The indices of parts of a stack that take about `PIECE` multiplications, where a member takes ``cost``."""
    axis = len(batch) - 1
    while axis and cost * batch[axis] <= PIECE:
        cost *= batch[axis]
        axis -= 1
    step = max(PIECE // cost, 1)
    for index in np.ndindex(batch[:axis]):
        for start in range(0, batch[axis], step):
            yield (*index, slice(start, start + step))


def flip(a):
    """The last two axes exchanged: rows become columns, as LAPACK has them, and back."""
    return a.swapaxes(-1, -2)


def _rows(a) -> np.ndarray:
    """Matrices from LAPACK, row after row in memory."""
    return np.ascontiguousarray(flip(a))


def _or_nan(info, *arrays) -> list:
    """Results, NaN for the problems of which LAPACK says that it failed."""
    if info.any():
        for x in arrays:
            x[info != 0] = np.nan
    return list(arrays)


def complex_dtype(dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


# ------------------------------------------------------------------------------------------------------------
# Factorisations


def potrf(a) -> list:
    """The lower Cholesky factor; NaN in its whole triangle where the matrix is not positive definite."""
    scales = _scales_for_factor(a)
    if scales is None:
        return [_lower_factor(a)]
    of_matrix, of_factor = scales
    return [_lower_factor(a * of_matrix) * of_factor]


def _lower_factor(a) -> np.ndarray:
    try:
        return strict.run(stacked, gufuncs.cholesky_lo, a)
    except FloatingPointError:
        return np.tril(stacked(gufuncs.cholesky_lo, a))


def _scales_for_factor(a) -> np.ndarray | None:
    """By what `lapack_calls.FACTOR_SCALES` says to multiply each matrix, and its factor; None where all stay."""
    if not a.size or not lapack_calls.may_be_scaled(a.dtype, a.shape[-1]):
        return None
    sizes = np.abs(a)
    has_small = ((sizes > 0) & (sizes <= lapack_calls.SMALL_IN_FACTOR)).any((-2, -1), keepdims=True)
    if not has_small.any():
        return None
    largest = sizes.max((-2, -1), keepdims=True)
    scales = np.ones((2, *has_small.shape), a.dtype)
    for most, *powers in lapack_calls.FACTOR_SCALES:
        scales[:, has_small & (largest < most)] = np.array(powers)[:, None]
    return scales


def getrf(a) -> list:
    """LU factors in one matrix, pivots and the permutation of rows."""
    m, n = a.shape[-2:]
    k = min(m, n)
    if k == 0:
        pivots = np.zeros((*a.shape[:-2], k), np.int32)
        return [a.copy(), pivots, pivots_to_permutation(pivots, m)[0]]
    lu, pivots, _ = call(lapack_calls.getrf(a.dtype, m, n), (flip(a),), a.shape[:-2])
    pivots = (pivots - 1).astype(np.int32)
    return [_rows(lu), pivots, pivots_to_permutation(pivots, m)[0]]


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
    taus = stacked(gufuncs.qr_r_raw, packed)
    full = full_matrices and m > n
    q = stacked(gufuncs.qr_complete if full else gufuncs.qr_reduced, packed, taus)
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
    return [_rows(call(lapack_calls.orgqr(a.dtype, m, n, taus.shape[-1]), (flip(a), taus), a.shape[:-2])[0])]


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


def syevd(a, *, lower: bool, compute_eigenvectors: bool = True) -> list:
    """Eigenvectors, where asked for, and ascending eigenvalues of a Hermitian matrix, of which one triangle is read."""
    if library.bundled() is None and a.size:
        routine = lapack_calls.syevd(a.dtype, a.shape[-1], lower, compute_eigenvectors)
        vectors, values, info = call(routine, (flip(a),), a.shape[:-2])
        return _or_nan(info, _rows(vectors), values) if compute_eigenvectors else _or_nan(info, values)
    if not compute_eigenvectors:
        return [stacked(gufuncs.eigvalsh_lo if lower else gufuncs.eigvalsh_up, a)]
    values, vectors = stacked(gufuncs.eigh_lo if lower else gufuncs.eigh_up, a)
    return [vectors, values]


def gesdd(a, *, full_matrices: bool, compute_uv: bool) -> list:
    """Singular values, and the left and the (conjugate) transposed right singular vectors."""
    if library.bundled() is None and a.size:
        routine = lapack_calls.gesdd(a.dtype, *a.shape[-2:], compute_uv, full_matrices)
        _, s, u, vt, info = call(routine, (flip(a),), a.shape[:-2])
        return _or_nan(info, s, _rows(u), _rows(vt)) if compute_uv else _or_nan(info, s)
    if not compute_uv:
        return [stacked(gufuncs.svd, a)]
    u, s, vh = stacked(gufuncs.svd_f if full_matrices else gufuncs.svd_s, a)
    return [s, u, vh]


def geev(a, *, left: bool, right: bool) -> list:
    """Eigenvalues, and left and right eigenvectors where asked for, of a square matrix."""
    n, dtype = a.shape[-1], complex_dtype(a.dtype)
    outs = [((n,), dtype)] + [((n, n), dtype)] * (left + right)
    if a.size == 0:
        return [np.zeros((*a.shape[:-2], *shape), d) for shape, d in outs]
    finite, scale = _finite_and_scale(a)
    good = a if finite is None else np.where(finite[..., None, None], a, 0)
    scaled = good if scale is None else good * scale[..., None, None]
    routine = lapack_calls.geev(a.dtype, n, left, right)
    _, *values, vl, vr, info = call(routine, (flip(scaled),), a.shape[:-2])
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    if scale is not None:
        w.real /= scale[..., None]  # part by part: NumPy divides complex numbers by way of squares
        w.imag /= scale[..., None]
    sides = [_rows(v) for v, wanted in ((vl, left), (vr, right)) if wanted]
    vectors = [v if v.dtype.kind == "c" else _unpack_pairs(v, w) for v in sides]
    return _or_nan(info if finite is None else info + ~finite, w, *vectors)


def _finite_and_scale(a) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which matrices are finite, and `lapack_calls.scale_for` them; None where all are, and where it is 1 for all."""
    size = np.abs(a) if a.dtype.kind != "c" else np.maximum(np.abs(a.real), np.abs(a.imag))
    largest = np.asarray(size.max((-2, -1)))
    if lapack_calls.needs_no_scale(largest):
        return None, None
    finite = np.isfinite(largest)
    return finite, lapack_calls.scale_for(np.where(finite, largest, 0))


def _unpack_pairs(v, w) -> np.ndarray:
    """Eigenvectors from LAPACK's real ones: a pair's real and imaginary parts are in adjacent columns."""
    out = v.astype(complex_dtype(v.dtype))
    *at, first = np.nonzero(w.imag > 0)
    for column, sign in ((0, 1), (1, -1)):
        out[(*at, slice(None), first + column)] = (
            v[(*at, slice(None), first)] + sign * 1j * v[(*at, slice(None), first + 1)]
        )
    return out


def gees(a, *, compute_schur_vectors: bool, select=None) -> list:
    """The Schur form and its vectors; ``select`` says of an eigenvalue whether it comes first."""
    n, batch = a.shape[-1], a.shape[:-2]
    outs = [((n, n), a.dtype)] * (1 + compute_schur_vectors)
    if a.size == 0:
        return [a.copy() for _ in outs]
    if select is None:
        finite = np.isfinite(a).all((-2, -1))
        a = a if finite.all() else np.where(finite[..., None, None], a, 0)
        t, *_, vectors, info = call(lapack_calls.gees(a.dtype, n, compute_schur_vectors), (flip(a),), batch)
        return _or_nan(info + ~finite, _rows(t), *[_rows(vectors)] * compute_schur_vectors)
    solve = routine("gees", a.dtype)
    # SciPy's wrapper counts the arguments of the function, so their number must be plain.
    if a.dtype.kind == "c":
        choose = lambda z: bool(select(complex(z)))  # noqa: E731
    else:
        choose = lambda re, im: bool(select(complex(re, im)))  # noqa: E731

    def one(x):
        if not np.isfinite(x).all():
            return None
        t, *_, vs, _work, info = solve(choose, x, compute_v=compute_schur_vectors, sort_t=1)
        return None if info and info <= n else [t, vs]

    return each(one, [a], [2], outs)


def gehrd(a) -> list:
    """The Hessenberg form with the reflections that made it below, and their factors."""
    n = a.shape[-1]
    if n <= 1 or a.size == 0:
        return [a.copy(), np.zeros((*a.shape[:-2], max(n - 1, 0)), a.dtype)]
    h, taus, _ = call(lapack_calls.gehrd(a.dtype, n), (flip(a),), a.shape[:-2])
    return [_rows(h), taus]


def sytrd(a, *, lower: bool) -> list:
    """The tridiagonal form with the reflections that made it, its diagonals, and the reflections' factors."""
    n, real = a.shape[-1], real_dtype(a.dtype)
    if n <= 1 or a.size == 0:
        rest = np.zeros((*a.shape[:-2], max(n - 1, 0)), real)
        return [a.copy(), np.diagonal(a, axis1=-2, axis2=-1).real.copy(), rest, rest.astype(a.dtype)]
    form, *rest, _ = call(lapack_calls.sytrd(a.dtype, n, lower), (flip(a),), a.shape[:-2])
    return [_rows(form), *rest]


# ------------------------------------------------------------------------------------------------------------
# Solving


def trsm(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal) -> list:
    """The solution of a triangular system."""
    if b.size == 0:
        return [b.copy()]
    if conjugate_a and not transpose_a:
        a = a.conj()
    transpose = (2 if conjugate_a else 1) if transpose_a else 0
    routine = lapack_calls.trsm(a.dtype, *b.shape[-2:], left_side, lower, transpose, unit_diagonal)
    return call(routine, (a, b), b.shape[:-2])


def gtsv(dl, d, du, b, *, perturb_singular: bool) -> list:
    """The solution of a tridiagonal system; NaN where it is singular, unless that is to be perturbed away."""
    n = d.shape[-1]
    if b.size == 0:
        return [b.copy()]
    n, k = b.shape[-2:]
    if n == 1:
        return [b / _off_zero(d, perturb_singular)[..., None]]
    routine, batch = lapack_calls.gtsv(d.dtype, n, k), b.shape[:-2]
    *_, x, info = call(routine, (dl[..., 1:], d, du[..., :-1], flip(b)), batch)
    if perturb_singular and info.any():
        scale = np.max([np.abs(part).max(-1) for part in (dl, d, du)], 0)
        shift = np.where(info != 0, np.finfo(d.dtype).eps * np.where(scale == 0, 1, scale), 0).astype(d.dtype)
        *_, x, info = call(routine, (dl[..., 1:], d + shift[..., None], du[..., :-1], flip(b)), batch)
    return _or_nan(info, _rows(x))


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
