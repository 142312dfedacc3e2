"""Dense linear algebra, as calls of LAPACK with column-major operands, and Fourier transforms (see `fourier`).

`b.library(name, inputs, outs, **attrs)` finds its name in `LIBRARY` below. All matrices may have leading
batch dimensions. The results, in order, and the attributes:

    cholesky(a)                     l; zero above the diagonal; all NaN where a is not positive definite
    triangular_solve(a, b)          x; attrs left_side, lower, unit_diagonal, transpose_a (0; 1 transposed; 2 adjoint)
    lu(a)                           lu, pivots (int32, from 0), info
    qr(a)                           a with Householder vectors below R, taus
    householder_product(a, taus)    q with as many columns as a
    eigh(a)                         vectors, values (ascending); attr lower
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

import ctypes
import math
from functools import lru_cache

import numpy as np

from catena.compiler import fourier
from catena.core.dtypes import KIND
from catena.core.errors import CompileError
from catena.runtime import library as routines

PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
REAL = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


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


def call(b, routine: str, plan: list, ins: list, outs: list, copies: dict[int, int], batch: tuple) -> list:
    """A LAPACK routine on every batch member.

    `plan` lists its arguments: one-letter strings, integers, ("in", k), ("out", k), ("work", dtype, size or
    None for what the routine asks for), ("lwork", i) the size of the workspace at position i of the plan,
    ("null",). Results start with the contents of the operands that `copies` names.
    """
    plan = _sized(routine, plan)
    specs = [((*batch, *shape), dtype) for shape, dtype in outs]
    return b.multi("lapack", ins, specs, routine=routine, plan=plan, copies=copies, batch=math.prod(batch))


def _integer() -> np.dtype:
    return np.dtype(f"int{routines.integer_bits()}")


def _sized(routine: str, plan: list) -> tuple:
    """The plan with the workspace sizes that the routine asks for."""
    open_ = [i for i, arg in enumerate(plan) if isinstance(arg, tuple) and arg[0] == "work" and arg[2] is None]
    sizes = _query(routine, tuple(plan)) if open_ else {}
    return tuple(
        ("work", arg[1], sizes[i])
        if i in sizes
        else ("size", sizes[arg[1]])
        if isinstance(arg, tuple) and arg[0] == "lwork"
        else arg
        for i, arg in enumerate(plan)
    )


@lru_cache(maxsize=256)
def _query(routine: str, plan: tuple) -> dict[int, int]:
    """Calls the routine with workspace sizes of -1; it answers with what it needs."""
    keep, pointers = [], []
    for arg in plan:
        if isinstance(arg, str):
            cell = np.frombuffer(arg.encode(), np.uint8).copy()
        elif isinstance(arg, int):
            cell = np.array([arg], _integer())
        elif arg[0] == "lwork":
            cell = np.array([-1], _integer())
        else:
            cell = np.zeros(16, arg[1] if arg[0] == "work" else np.complex128)
        keep.append(cell)
        pointers.append(None if arg == ("null",) else cell.ctypes.data)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(plan))(routines.address(routine))
    function(*pointers)
    return {
        i: max(int(keep[i].real[0]) if KIND[keep[i].dtype] != "i" else int(keep[i][0]), 1)
        for i, arg in enumerate(plan)
        if isinstance(arg, tuple) and arg[0] == "work" and arg[2] is None
    }


def _flip(b, x):
    """The last two dimensions exchanged."""
    return b.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _name(x, suffix: str) -> str:
    prefix = PREFIX.get(x.dtype.name)
    if prefix is None:
        raise CompileError(f"linear algebra needs float32, float64, complex64 or complex128, got {x.dtype.name}")
    return prefix + suffix


def _or_nan(b, x, info, trailing: int):
    """`x`, NaN in the batch members whose `info` is not zero."""
    good = b.map("eq", info, b.constant(np.zeros((), info.dtype)))
    mask = b.broadcast_in_dim(good, x.shape, tuple(range(x.ndim - trailing)))
    return b.map("select", mask, x, b.full(x.shape, np.asarray(np.nan, x.dtype)))


def _is_complex(x) -> bool:
    return KIND[x.dtype] == "c"


def _real(dtype) -> np.dtype:
    return REAL.get(np.dtype(dtype).name, np.dtype(dtype))


# ---- functions ---------------------------------------------------------------------------------------------


def _cholesky(b, a, *, outs, **_):
    n, batch = a.shape[-1], a.shape[:-2]
    # In row-major memory the lower triangle is LAPACK's upper one, of the transpose.
    factor, info = call(
        b,
        _name(a, "potrf"),
        ["U", n, ("out", 0), max(n, 1), ("out", 1)],
        [a],
        [((n, n), a.dtype), ((), _integer())],
        {0: 0},
        batch,
    )
    rows, columns = (b.iota(np.int32, a.shape, a.ndim - d) for d in (2, 1))
    lower = b.map("select", b.map("ge", rows, columns), factor, b.full(a.shape, np.zeros((), a.dtype)))
    return [_or_nan(b, lower, info, 2)]


def _triangular_solve(b, a, x, *, outs, left_side, lower, transpose_a=0, unit_diagonal=False, conjugate_a=False, **_):
    m, n = x.shape[-2:]
    transposed = int(getattr(transpose_a, "value", transpose_a)) or 0
    if conjugate_a and transposed == 1:
        transposed = 2
    if conjugate_a and transposed == 0:
        a = b.map("conj", a)
    plan = [
        "R" if left_side else "L",
        "U" if lower else "L",
        "NTC"[transposed],
        "U" if unit_diagonal else "N",
        n,
        m,
        ("one", x.dtype.name),
        ("in", 0),
        max(m if left_side else n, 1),
        ("out", 0),
        max(n, 1),
    ]
    return call(b, _name(a, "trsm"), plan, [a, x], [((m, n), x.dtype)], {0: 1}, x.shape[:-2])


def _lu(b, a, *, outs, **_):
    m, n = a.shape[-2:]
    k = min(m, n)
    plan = [m, n, ("out", 0), max(m, 1), ("out", 1), ("out", 2)]
    lu, pivots, info = call(
        b,
        _name(a, "getrf"),
        plan,
        [_flip(b, a)],
        [((n, m), a.dtype), ((k,), _integer()), ((), _integer())],
        {0: 0},
        a.shape[:-2],
    )
    one = b.constant(np.ones((), _integer()))
    return [_flip(b, lu), b.convert(b.map("sub", pivots, one), np.int32), b.convert(info, np.int32)]


def _qr(b, a, *, outs, **_):
    m, n = a.shape[-2:]
    plan = [m, n, ("out", 0), max(m, 1), ("out", 1), ("work", a.dtype.name, None), ("lwork", 5), ("out", 2)]
    r, taus, _ = call(
        b,
        _name(a, "geqrf"),
        plan,
        [_flip(b, a)],
        [((n, m), a.dtype), ((min(m, n),), a.dtype), ((), _integer())],
        {0: 0},
        a.shape[:-2],
    )
    return [_flip(b, r), taus]


def _householder_product(b, a, taus, *, outs, **_):
    m, n = a.shape[-2:]
    plan = [
        m,
        n,
        taus.shape[-1],
        ("out", 0),
        max(m, 1),
        ("in", 1),
        ("work", a.dtype.name, None),
        ("lwork", 6),
        ("out", 1),
    ]
    q, _ = call(
        b,
        _name(a, "ungqr" if _is_complex(a) else "orgqr"),
        plan,
        [_flip(b, a), taus],
        [((n, m), a.dtype), ((), _integer())],
        {0: 0},
        a.shape[:-2],
    )
    return [_flip(b, q)]


def _eigh(b, a, *, outs, lower=True, **_):
    n, real = a.shape[-1], _real(a.dtype)
    plan = [
        "V",
        "L" if lower else "U",
        n,
        ("out", 0),
        max(n, 1),
        ("out", 1),
        ("work", a.dtype.name, None),
        ("lwork", 6),
    ]
    if _is_complex(a):
        plan += [("work", real.name, None), ("lwork", 8)]
    plan += [("work", _integer().name, None), ("lwork", len(plan)), ("out", 2)]
    v, w, info = call(
        b,
        _name(a, "heevd" if _is_complex(a) else "syevd"),
        plan,
        [_flip(b, a)],
        [((n, n), a.dtype), ((n,), real), ((), _integer())],
        {0: 0},
        a.shape[:-2],
    )
    return [_or_nan(b, _flip(b, v), info, 2), _or_nan(b, w, info, 1)]


def _svd(b, a, *, outs, compute_uv=True, full_matrices=True, **_):
    m, n = a.shape[-2:]
    k, real = min(m, n), _real(a.dtype)
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    p, q = {"N": (1, 1), "A": (m, n), "S": (k, k)}[job]
    plan = [
        job,
        m,
        n,
        ("out", 0),
        max(m, 1),
        ("out", 1),
        ("out", 2),
        max(m, 1),
        ("out", 3),
        max(q, 1),
        ("work", a.dtype.name, None),
        ("lwork", 10),
    ]
    if _is_complex(a):
        size = max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k) if job != "N" else 7 * k
        plan.append(("work", real.name, max(size, 1)))
    plan += [("work", _integer().name, max(8 * k, 1)), ("out", 4)]
    shapes = [
        ((n, m), a.dtype),
        ((k,), real),
        ((p, m) if job != "N" else (1, 1), a.dtype),
        ((n, q) if job != "N" else (1, 1), a.dtype),
        ((), _integer()),
    ]
    _, s, u, vt, info = call(b, _name(a, "gesdd"), plan, [_flip(b, a)], shapes, {0: 0}, a.shape[:-2])
    s = _or_nan(b, s, info, 1)
    return [s, _or_nan(b, _flip(b, u), info, 2), _or_nan(b, _flip(b, vt), info, 2)] if compute_uv else [s]


def _eig(b, a, *, outs, left=True, right=True, **_):
    n, real, integer = a.shape[-1], _real(a.dtype), _integer()
    ld = max(n, 1)
    vectors = [((n, n), a.dtype)] * 2
    jobs = ["V" if left else "N", "V" if right else "N"]
    if _is_complex(a):
        plan = [
            *jobs,
            n,
            ("out", 0),
            ld,
            ("out", 1),
            ("out", 2),
            ld,
            ("out", 3),
            ld,
            ("work", a.dtype.name, None),
            ("lwork", 10),
            ("work", real.name, max(2 * n, 1)),
            ("out", 4),
        ]
        _, w, vl, vr, info = call(
            b,
            _name(a, "geev"),
            plan,
            [_flip(b, a)],
            [((n, n), a.dtype), ((n,), a.dtype), *vectors, ((), integer)],
            {0: 0},
            a.shape[:-2],
        )
        sides = [_flip(b, vl), _flip(b, vr)]
    else:
        plan = [
            *jobs,
            n,
            ("out", 0),
            ld,
            ("out", 1),
            ("out", 2),
            ("out", 3),
            ld,
            ("out", 4),
            ld,
            ("work", a.dtype.name, None),
            ("lwork", 11),
            ("out", 5),
        ]
        _, wr, wi, vl, vr, info = call(
            b,
            _name(a, "geev"),
            plan,
            [_flip(b, a)],
            [((n, n), a.dtype), ((n,), real), ((n,), real), *vectors, ((), integer)],
            {0: 0},
            a.shape[:-2],
        )
        w = b.map("complex", wr, wi)
        sides = [_paired(b, vl, wi), _paired(b, vr, wi)]
    used = [s for s, wanted in zip(sides, (left, right)) if wanted]
    return [_or_nan(b, w, info, 1), *[_or_nan(b, s, info, 2) for s in used]]


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
    n, real, integer = a.shape[-1], _real(a.dtype), _integer()
    ld, values = max(n, 1), 1 if _is_complex(a) else 2
    plan = ["V" if compute_vectors else "N", "N", ("null",), n, ("out", 0), ld, ("out", 1)]
    plan += [("out", 2 + i) for i in range(values)] + [("out", 2 + values), ld]
    plan += [("work", a.dtype.name, None), ("lwork", len(plan))]
    plan += [("work", real.name, ld)] if _is_complex(a) else []
    plan += [("work", integer.name, ld), ("out", 3 + values)]
    shapes = [((n, n), a.dtype), ((), integer), *[((n,), a.dtype)] * values, ((n, n), a.dtype), ((), integer)]
    results = call(b, _name(a, "gees"), plan, [_flip(b, a)], shapes, {0: 0}, a.shape[:-2])
    t, vectors, info = results[0], results[2 + values], results[3 + values]
    pair = [_or_nan(b, _flip(b, t), info, 2)]
    return pair + ([_or_nan(b, _flip(b, vectors), info, 2)] if compute_vectors else [])


def _hessenberg(b, a, *, outs, **_):
    n = a.shape[-1]
    plan = [
        n,
        1,
        n,
        ("out", 0),
        max(n, 1),
        ("out", 1),
        ("work", a.dtype.name, None),
        ("lwork", 6),
        ("out", 2),
    ]
    h, taus, info = call(
        b,
        _name(a, "gehrd"),
        plan,
        [_flip(b, a)],
        [((n, n), a.dtype), ((max(n - 1, 0),), a.dtype), ((), _integer())],
        {0: 0},
        a.shape[:-2],
    )
    return [_or_nan(b, _flip(b, h), info, 2), _or_nan(b, taus, info, 1)]


def _tridiagonal(b, a, *, outs, lower=True, **_):
    n, real = a.shape[-1], _real(a.dtype)
    plan = [
        "L" if lower else "U",
        n,
        ("out", 0),
        max(n, 1),
        ("out", 1),
        ("out", 2),
        ("out", 3),
        ("work", a.dtype.name, None),
        ("lwork", 7),
        ("out", 4),
    ]
    less = max(n - 1, 0)
    shapes = [((n, n), a.dtype), ((n,), real), ((less,), real), ((less,), a.dtype), ((), _integer())]
    v, d, e, taus, info = call(
        b, _name(a, "hetrd" if _is_complex(a) else "sytrd"), plan, [_flip(b, a)], shapes, {0: 0}, a.shape[:-2]
    )
    return [_flip(b, v), d, e, taus, b.convert(info, np.int32)]


def _tridiagonal_solve(b, dl, d, du, x, *, outs, **_):
    n, k = x.shape[-2:]
    batch = x.shape[:-2]
    rank = dl.ndim
    low = b.slice(dl, (0,) * (rank - 1) + (min(1, n),), dl.shape)
    high = b.slice(du, (0,) * rank, (*du.shape[:-1], max(n - 1, 0)))
    plan = [n, k, ("out", 0), ("out", 1), ("out", 2), ("out", 3), max(n, 1), ("out", 4)]
    less = ((max(n - 1, 0),), x.dtype)
    results = call(
        b,
        _name(x, "gtsv"),
        plan,
        [low, d, high, _flip(b, x)],
        [less, ((n,), x.dtype), less, ((k, n), x.dtype), ((), _integer())],
        {0: 0, 1: 1, 2: 2, 3: 3},
        batch,
    )
    return [_or_nan(b, _flip(b, results[3]), results[4], 2)]


LIBRARY = {
    "cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu, "qr": _qr,
    "householder_product": _householder_product, "eigh": _eigh, "svd": _svd, "eig": _eig, "schur": _schur,
    "hessenberg": _hessenberg, "tridiagonal": _tridiagonal, "tridiagonal_solve": _tridiagonal_solve, "fft": fourier.fft,
}  # fmt: skip
