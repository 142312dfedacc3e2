"""Dense linear algebra, as calls of LAPACK with column-major operands, and Fourier transforms (see `fourier`).

`b.library(name, inputs, outs, **attrs)` finds its name in `LIBRARY` below. All matrices may have leading
batch dimensions. The results, in order, and the attributes:

    cholesky(a)                     l; zero above the diagonal; all NaN where a is not positive definite
    triangular_solve(a, b)          x; attrs left_side, lower, unit_diagonal, transpose_a (0; 1 transposed; 2 adjoint)
    lu(a)                           lu, pivots (int32, from 0), info
    qr(a)                           a with Householder vectors below R, taus
    householder_product(a, taus)    q with as many columns as a
    eigh(a)                         vectors, values (ascending); attr lower, compute_eigenvectors
    svd(a)                          s [, u, vt]; attrs compute_uv, full_matrices
    eig(a)                          values, left and right vectors (complex); attrs left, right: which are results
    schur(a)                        t, vectors; attr compute_vectors
    hessenberg(a)                   a with Householder vectors below H, taus
    tridiagonal(a)                  a with vectors, diagonal, off-diagonal, taus; attr lower
    tridiagonal_solve(dl, d, du, b) x
    fft(x)                          attrs kind (fft ifft rfft irfft), lengths

Where LAPACK does not converge, results are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from catena.compiler.graph import fourier, triangular
from catena.compiler.graph.forms import HowToSolve, Lapack, SmallMatrices
from catena.compiler.graph.keys import unkept
from catena.compiler.graph.symbols import computed
from catena.core.dtypes import KIND
from catena.core.errors import CompileError
from catena.runtime import lapack_calls
from catena.runtime.lapack_calls import Call


def library(b, name: str, inputs, outs, **attrs) -> list:
    """The results of the library function `name`, checked against the expected shapes and dtypes."""
    rule = LIBRARY.get(name)
    if rule is None:
        raise CompileError(f"library: no function is called {name!r}; there are {', '.join(LIBRARY)}")
    results = list(rule(b, *inputs, outs=outs, **attrs))
    if len(results) < len(outs):
        raise CompileError(f"library {name}: {len(outs)} results were expected, it has {len(results)}")
    for got, (shape, dtype) in zip(results, outs):
        if got.shape != tuple(shape) or got.dtype != np.dtype(dtype):
            raise CompileError(f"library {name}: gives {got!r} where {np.dtype(dtype).name}{list(shape)} was expected")
    return results[: len(outs)]


# ---- calls -------------------------------------------------------------------------------------------------


def call(b, routine: Call, ins: list, batch: tuple) -> list:
    """A LAPACK routine on every batch member."""
    specs = [((*batch, *shape), dtype) for shape, dtype in routine.results]
    arguments = lapack_calls.with_sizes(routine.given, _workspace_sizes(routine.routine, routine.given))
    params = Lapack(routine.routine, arguments, tuple(routine.copies.items()), math.prod(batch))
    return b.multi("lapack", ins, specs, params, key=(routine.routine, routine.given))  # sizes of workspaces follow


_workspace_sizes = computed(lapack_calls.workspace_sizes)  # so another length does without a plan, but not unasked


SMALL = 32  # rows and columns of matrices that the program factorises and solves itself, one matrix to a lane

SMALL_COMPLEX = 16  # of complex ones, of which members of small batches are not worked on in lanes
ROTATED = 8  # rows of symmetric ones whose eigenvalues it finds, too


def _is_small(*matrices) -> bool:
    """Whether all are small, and real. Sizes of a member alone decide, so that values do not depend on the batch."""
    return _is_at_most(SMALL, *matrices) and not _is_complex(matrices[0])


def _is_at_most(most: int, *matrices) -> bool:
    sizes = [n for x in matrices for n in x.shape[-2:]]
    _dtype(matrices[0])  # one that LAPACK has
    return max(sizes) <= most and min(sizes) > 0


def _is_eliminated(*matrices) -> bool:
    """Whether the program factorises and solves these itself, complex ones too."""
    return _is_at_most(SMALL_COMPLEX if _is_complex(matrices[0]) else SMALL, *matrices)


def small(b, routine: str, ins: list, outs: list, how: HowToSolve | None = None) -> list:
    """A routine of the program's own on every batch member."""
    params = SmallMatrices(routine, math.prod(ins[0].shape[:-2]))
    return b.multi("small_matrices", ins, outs, params if how is None else params._replace(how=how))


def _flip(b, x):
    """The last two dimensions exchanged."""
    return b.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _dtype(x) -> np.dtype:
    """The dtype of a matrix, for which LAPACK has routines."""
    if x.dtype.name not in lapack_calls.PREFIX:
        raise CompileError(f"linear algebra needs float32, float64, complex64 or complex128, got {x.dtype.name}")
    return x.dtype


def _or_nan(b, x, info, trailing: int):
    """`x`, NaN in the batch members whose `info` is not zero."""
    good = b.map("eq", info, b.constant(np.zeros((), info.dtype)))
    mask = b.broadcast_in_dim(good, x.shape, tuple(range(x.ndim - trailing)))
    return b.map("select", mask, x, b.full(x.shape, np.asarray(np.nan, x.dtype)))


def _finite(b, a) -> tuple:
    """The matrices with zeros in the place of those that are not finite, which some libraries do not end with; and
    which of them are.
    """
    parts = [b.map(part, a) for part in ("real", "imag")] if _is_complex(a) else [a]
    finite = [b.reduce("and", b.map("is_finite", x), (a.ndim - 2, a.ndim - 1)) for x in parts]
    good = b.map("and", *finite) if len(finite) > 1 else finite[0]
    mask = b.broadcast_in_dim(good, a.shape, tuple(range(a.ndim - 2)))
    return b.map("select", mask, a, b.full(a.shape, np.zeros((), a.dtype))), good


def _failed(b, info, good):
    """`info`, and 1 where a matrix was not `good`."""
    return b.map("select", good, info, b.full(info.shape, np.ones((), info.dtype)))


def _is_complex(x) -> bool:
    return KIND[x.dtype] == "c"


# ---- functions ---------------------------------------------------------------------------------------------


def _cholesky(b, a, *, outs, **_):
    if a.size and lapack_calls.may_be_scaled(a.dtype, a.shape[-1]):
        return [_cholesky_of_scaled(b, a)]
    return [_cholesky_factor(b, a)]


def _cholesky_factor(b, a):
    if _is_small(a):
        return small(b, "cholesky", [a], [(a.shape, a.dtype)])[0]
    factor, info = call(b, unkept(lapack_calls.potrf)(_dtype(a), a.shape[-1]), [_flip(b, a)], a.shape[:-2])
    rows, columns = (b.iota(np.int32, a.shape, a.ndim - d) for d in (2, 1))
    lower = b.map("select", b.map("ge", rows, columns), _flip(b, factor), b.full(a.shape, np.zeros((), a.dtype)))
    return _or_nan(b, lower, info, 2)


def _cholesky_of_scaled(b, a):
    """The factor of a matrix that is multiplied before, as `lapack_calls.FACTOR_SCALES` says."""
    sizes, axes = b.map("abs", a), (a.ndim - 2, a.ndim - 1)
    less = b.map("sub", b.bitcast(sizes, np.uint32), b.full(a.shape, np.uint32(1)))  # of zero, the largest integer
    least, largest = b.reduce("min", less, axes), b.reduce("max", sizes, axes)
    has_small = b.map("lt", least, b.full(least.shape, lapack_calls.SMALL_IN_FACTOR.view(np.uint32)))

    def times(x, scaled: str):
        power = b.full(largest.shape, np.float32(1))
        for scale in lapack_calls.FACTOR_SCALES:
            is_scaled = b.map("and", has_small, b.map("lt", largest, b.full(largest.shape, np.float32(scale.most))))
            power = b.map("select", is_scaled, b.full(largest.shape, np.float32(getattr(scale, scaled))), power)
        return b.map("mul", x, b.broadcast_in_dim(power, x.shape, tuple(range(x.ndim - 2))))

    return times(_cholesky_factor(b, times(a, "matrix")), "factor")


def _triangular_solve(b, a, x, *, outs, left_side, lower, transpose_a=0, unit_diagonal=False, conjugate_a=False, **_):
    transposed = int(getattr(transpose_a, "value", transpose_a)) or 0
    if conjugate_a and transposed == 1:
        transposed = 2
    how = HowToSolve(bool(left_side), bool(lower), bool(transposed), bool(unit_diagonal))
    if conjugate_a and transposed == 0 or transposed == 2 and _is_eliminated(a, x):
        a = b.map("conj", a)
    if _is_eliminated(a, x):
        return small(b, "triangular_solve", [a, x], [(x.shape, x.dtype)], how)
    if x.size and not _is_complex(a) and triangular.has_many_sides(a, x, how.left, SMALL):
        return [_with_many_sides(b, a, x, how)]
    routine = unkept(lapack_calls.trsm)(_dtype(a), *x.shape[-2:], left_side, lower, transposed, unit_diagonal)
    return call(b, routine, [a, x], x.shape[:-2])


def _with_many_sides(b, a, x, how: HowToSolve):
    """The solution of op(A) X = B, or of X op(A) = B, turned so that vectors are made of the sides."""
    if how.left:
        return small(b, "many_sides", [a, x], [(x.shape, x.dtype)], how)[0]
    turned = how._replace(left=True, transposed=not how.transposed)
    return _flip(b, _with_many_sides(b, a, _flip(b, x), turned))


def _lu(b, a, *, outs, **_):
    if _is_eliminated(a):
        *batch, m, n = a.shape
        return small(b, "lu", [a], [(a.shape, a.dtype), ((*batch, min(m, n)), np.int32), (tuple(batch), np.int32)])
    lu, pivots, info = call(b, unkept(lapack_calls.getrf)(_dtype(a), *a.shape[-2:]), [_flip(b, a)], a.shape[:-2])
    one = b.constant(np.ones((), pivots.dtype))
    return [_flip(b, lu), b.convert(b.map("sub", pivots, one), np.int32), b.convert(info, np.int32)]


def _qr(b, a, *, outs, **_):
    r, taus, _ = call(b, unkept(lapack_calls.geqrf)(_dtype(a), *a.shape[-2:]), [_flip(b, a)], a.shape[:-2])
    return [_flip(b, r), taus]


def _householder_product(b, a, taus, *, outs, **_):
    routine = unkept(lapack_calls.orgqr)(_dtype(a), *a.shape[-2:], taus.shape[-1])
    return [_flip(b, call(b, routine, [_flip(b, a), taus], a.shape[:-2])[0])]


def _eigh(b, a, *, outs, lower=True, compute_eigenvectors=True, **_):
    if not compute_eigenvectors and _is_small(a) and 1 < a.shape[-1] <= ROTATED:
        how = HowToSolve(True, bool(lower), False, False)
        return small(b, "eigenvalues", [a], [(a.shape[:-1], a.dtype)], how)
    routine = unkept(lapack_calls.syevd)(_dtype(a), a.shape[-1], bool(lower), bool(compute_eigenvectors))
    v, w, info = call(b, routine, [_flip(b, a)], a.shape[:-2])
    w = _or_nan(b, w, info, 1)
    return [_or_nan(b, _flip(b, v), info, 2), w] if compute_eigenvectors else [w]


def _svd(b, a, *, outs, compute_uv=True, full_matrices=True, **_):
    if not a.size:  # LAPACK leaves the bases as they are
        return [
            b.full(shape, np.zeros((), dtype)) if k == 0 else _identity(b, shape, dtype)
            for k, (shape, dtype) in enumerate(outs)
        ]
    routine = unkept(lapack_calls.gesdd)(_dtype(a), *a.shape[-2:], bool(compute_uv), bool(full_matrices))
    _, s, u, vt, info = call(b, routine, [_flip(b, a)], a.shape[:-2])
    s = _or_nan(b, s, info, 1)
    return [s, _or_nan(b, _flip(b, u), info, 2), _or_nan(b, _flip(b, vt), info, 2)] if compute_uv else [s]


def _identity(b, shape, dtype):
    rows, columns = (b.iota(np.int32, shape, len(shape) - d) for d in (2, 1))
    return b.convert(b.map("eq", rows, columns), dtype)


def _eig(b, a, *, outs, left=True, right=True, **_):
    if not a.size:
        return [b.full(shape, np.zeros((), dtype)) for shape, dtype in outs]
    a, good = _finite(b, a)
    scale = _scale(b, a)
    factor = b.broadcast_in_dim(scale, a.shape, tuple(range(a.ndim - 2)))
    scaled = _scaled(b, "mul", a, factor)
    routine = unkept(lapack_calls.geev)(_dtype(a), a.shape[-1], bool(left), bool(right))
    _, *values, vl, vr, info = call(b, routine, [_flip(b, scaled)], a.shape[:-2])
    info = _failed(b, info, good)
    sides = [_flip(b, v) if _is_complex(a) else _paired(b, v, values[1]) for v in (vl, vr)]
    w = values[0] if _is_complex(a) else b.map("complex", *values)
    w = _scaled(b, "div", w, b.broadcast_in_dim(scale, w.shape, tuple(range(w.ndim - 1))))
    used = [s for s, wanted in zip(sides, (left, right)) if wanted]
    return [_or_nan(b, w, info, 1), *[_or_nan(b, s, info, 2) for s in used]]


def _scale(b, a):
    """`lapack_calls.scale_for` the largest element of each matrix."""
    parts = [b.map("abs", b.map(p, a)) for p in ("real", "imag")] if _is_complex(a) else [b.map("abs", a)]
    largest = b.reduce("max", b.map("max", *parts) if _is_complex(a) else parts[0], (a.ndim - 2, a.ndim - 1))
    s = lapack_calls.SCALING[largest.dtype.itemsize]

    def word(value: int):
        return b.full(largest.shape, s.words.type(value))

    def number(value: float):
        return b.full(largest.shape, largest.dtype.type(value))

    bits = b.map("and", b.bitcast(largest, s.words), word(s.exponent))
    inverse = b.bitcast(b.map("sub", word(s.twice), b.map("min", bits, word(s.highest))), largest.dtype)
    where_small = b.map("select", b.map("lt", largest, number(s.small)), inverse, number(1))
    too_large = b.map("gt", largest, number(s.large))
    return b.map("select", too_large, b.map("mul", inverse, number(s.large)), where_small)


def _scaled(b, op: str, x, factor):
    """`x` multiplied or divided by real factors."""
    if not _is_complex(x):
        return b.map(op, x, factor)
    return b.map("complex", *[b.map(op, b.map(part, x), factor) for part in ("real", "imag")])


def _paired(b, v, wi):
    """Complex vectors from LAPACK's real ones (rows here): pairs of rows are real and imaginary parts."""
    rank, axis = v.ndim, v.ndim - 2
    zero = b.constant(np.zeros((), v.dtype))
    none = [(0, 0, 0)] * rank
    after = b.pad(v, zero, [*none[:axis], (-1, 1, 0), *none[axis + 1 :]])
    before = b.pad(v, zero, [*none[:axis], (1, -1, 0), *none[axis + 1 :]])
    wi = b.broadcast_in_dim(wi, v.shape, tuple(range(rank - 1)))
    zeros = b.full(v.shape, zero)
    first, second = b.map("gt", wi, zeros), b.map("lt", wi, zeros)
    re = b.map("select", second, before, v)
    im = b.map("select", first, after, b.map("select", second, b.map("neg", v), zeros))
    return _flip(b, b.map("complex", re, im))


def _schur(b, a, *, outs, compute_vectors=True, **_):
    routine = unkept(lapack_calls.gees)(_dtype(a), a.shape[-1], bool(compute_vectors))
    a, good = _finite(b, a)
    t, *_, vectors, info = call(b, routine, [_flip(b, a)], a.shape[:-2])
    info = _failed(b, info, good)
    pair = [_or_nan(b, _flip(b, t), info, 2)]
    return pair + ([_or_nan(b, _flip(b, vectors), info, 2)] if compute_vectors else [])


def _hessenberg(b, a, *, outs, **_):
    h, taus, info = call(b, unkept(lapack_calls.gehrd)(_dtype(a), a.shape[-1]), [_flip(b, a)], a.shape[:-2])
    return [_or_nan(b, _flip(b, h), info, 2), _or_nan(b, taus, info, 1)]


def _tridiagonal(b, a, *, outs, lower=True, **_):
    routine = unkept(lapack_calls.sytrd)(_dtype(a), a.shape[-1], bool(lower))
    v, d, e, taus, info = call(b, routine, [_flip(b, a)], a.shape[:-2])
    return [_flip(b, v), d, e, taus, b.convert(info, np.int32)]


def _tridiagonal_solve(b, dl, d, du, x, *, outs, **_):
    n, k = x.shape[-2:]
    rank = dl.ndim
    low = b.slice(dl, (0,) * (rank - 1) + (min(1, n),), dl.shape)
    high = b.slice(du, (0,) * rank, (*du.shape[:-1], max(n - 1, 0)))
    results = call(b, unkept(lapack_calls.gtsv)(_dtype(x), n, k), [low, d, high, _flip(b, x)], x.shape[:-2])
    return [_or_nan(b, _flip(b, results[3]), results[4], 2)]


LIBRARY: dict[str, Callable] = {
    "cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu, "qr": _qr,
    "householder_product": _householder_product, "eigh": _eigh, "svd": _svd, "eig": _eig, "schur": _schur,
    "hessenberg": _hessenberg, "tridiagonal": _tridiagonal, "tridiagonal_solve": _tridiagonal_solve, "fft": fourier.fft,
}  # fmt: skip
