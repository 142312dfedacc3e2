"""Calls of LAPACK routines as data: what compiled programs call, and eager evaluation likewise.

The routine, the order of its arguments and the sizes of its workspaces stand here once, so that a function calls
the same routine of the same library whether it is compiled or not: where results are determined only up to a sign
or an order, two libraries, or two releases of one, choose differently.

All matrices are column-major, as Fortran has them: what is row-major for us goes in and comes out transposed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from catena.core.named import NamedTuple
from catena.runtime import library

PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


class Call:
    """A call for one problem.

    ``arguments`` has one-letter strings, integers, ("in", k) the k-th operand, ("out", k) the k-th result, ("work",
    dtype, size) a workspace, ("one", dtype) the number 1, ("null",) no address. Among those that are ``given``, the
    size of a workspace is None where the routine is to be asked for it; it is the argument ("lwork",) behind it, too.
    """

    def __init__(self, routine: str, given: tuple, results: tuple, copies: tuple):
        self.routine, self.given = routine, given
        self.results = results  # pairs (shape, dtype)
        self.copies = dict(copies)  # result -> operand: results that start as copies of operands

    @cached_property
    def arguments(self) -> tuple:
        """Those that are given, with the sizes of all workspaces."""
        return with_sizes(self.given, workspace_sizes(self.routine, self.given))

    @cached_property
    def function(self):
        """The routine as a function of addresses."""
        return function(self.routine, len(self.arguments))

    @cached_property
    def constants(self) -> tuple:
        """The addresses of the arguments that are the same in every call, None for others; and what holds them."""
        cells = [cell(arg) for arg in self.arguments]
        return [c.ctypes.data if c is not None and c.size else None for c in cells], cells

    @cached_property
    def places(self) -> list:
        """Of operands and results: the position among the arguments, the kind and the number."""
        return [(i, *arg) for i, arg in enumerate(self.arguments) if isinstance(arg, tuple) and arg[0] in ("in", "out")]

    @cached_property
    def workspaces(self) -> tuple:
        """The positions of workspaces among the arguments, with where they begin in one piece of memory; its bytes."""
        found, size = [], 0
        for i, arg in enumerate(self.arguments):
            if isinstance(arg, tuple) and arg[0] == "work":
                found.append((i, size))
                size += -(-arg[2] * np.dtype(arg[1]).itemsize // 64) * 64
        return found, size


def _call(dtype, suffix: str, arguments: list, results: list, copies=((0, 0),)) -> Call:
    return Call(PREFIX[dtype.name] + suffix, tuple(arguments), tuple(results), tuple(copies))


def _integer() -> np.dtype:
    return np.dtype(f"int{library.integer_bits()}")


def _asked(given: tuple) -> list[int]:
    """Where the workspaces stand whose sizes a routine is asked for."""
    return [i for i, arg in enumerate(given) if isinstance(arg, tuple) and arg[0] == "work" and arg[2] is None]


def with_sizes(given: tuple, sizes: Sequence[int]) -> tuple:
    """The arguments with these sizes of the workspaces that a routine is asked for."""
    sized = list(given)
    for k, i in enumerate(_asked(given)):
        sized[i], sized[i + 1] = (*given[i][:2], sizes[k]), sizes[k]
    return tuple(sized)


def workspace_sizes(routine: str, given: tuple) -> tuple[int, ...]:
    """What a routine writes that is called with workspace sizes of -1: how many elements each is to have."""
    asked = _asked(given)
    if not asked:
        return ()
    cells = [np.array([-1], _integer()) if arg == ("lwork",) else cell(arg) for arg in given]
    cells = [np.zeros(16, arg[1] if arg[0] == "work" else np.complex128) if c is None else c
             for c, arg in zip(cells, given)]  # fmt: skip
    function(routine, len(given))(*[c.ctypes.data if c.size else None for c in cells])
    return tuple([max(int(cells[i].real[0]), 1) for i in asked])


def cell(arg) -> np.ndarray | None:
    """Memory that holds an argument which is the same in every call; empty for no address, None for one that is not."""
    if isinstance(arg, str):
        return np.frombuffer(arg.encode(), np.uint8)
    if isinstance(arg, int):
        return np.array([arg], _integer())
    if arg[0] == "one":
        return np.ones(1, arg[1])
    return np.empty(0) if arg[0] == "null" else None


@lru_cache(maxsize=256)
def function(routine: str, arguments: int):
    """A routine as a function of so many addresses."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(library.address(routine))


def real_dtype(dtype) -> np.dtype:
    return np.zeros((), dtype).real.dtype


# ------------------------------------------------------------------------------------------------------------
# Factorisations


@lru_cache(maxsize=256)
def potrf(dtype, n: int) -> Call:
    """The lower triangle becomes the Cholesky factor: the upper one takes OpenBLAS up to half as long again."""
    arguments = ["L", n, ("out", 0), max(n, 1), ("out", 1)]
    return _call(dtype, "potrf", arguments, [((n, n), dtype), ((), _integer())])


@lru_cache(maxsize=256)
def getrf(dtype, m: int, n: int) -> Call:
    """Both factors in one matrix, pivots from 1 on, info."""
    arguments = [m, n, ("out", 0), max(m, 1), ("out", 1), ("out", 2)]
    return _call(dtype, "getrf", arguments, [((n, m), dtype), ((min(m, n),), _integer()), ((), _integer())])


@lru_cache(maxsize=256)
def geqrf(dtype, m: int, n: int) -> Call:
    """R with the vectors of the reflections below it, their factors, info."""
    arguments = [m, n, ("out", 0), max(m, 1), ("out", 1), ("work", dtype.name, None), ("lwork",), ("out", 2)]
    return _call(dtype, "geqrf", arguments, [((n, m), dtype), ((min(m, n),), dtype), ((), _integer())])


@lru_cache(maxsize=256)
def orgqr(dtype, m: int, n: int, k: int) -> Call:
    """The first n columns of the product of k reflections, info; operands: their vectors and factors."""
    arguments = [m, n, k, ("out", 0), max(m, 1), ("in", 1), ("work", dtype.name, None), ("lwork",), ("out", 1)]
    suffix = "ungqr" if dtype.kind == "c" else "orgqr"
    return _call(dtype, suffix, arguments, [((n, m), dtype), ((), _integer())])


# ------------------------------------------------------------------------------------------------------------
# Eigenvalues and singular values


@lru_cache(maxsize=256)
def syevd(dtype, n: int, lower: bool, vectors: bool) -> Call:
    """Eigenvectors, or the destroyed matrix; eigenvalues, info."""
    real = real_dtype(dtype)
    arguments = ["V" if vectors else "N", "L" if lower else "U", n, ("out", 0), max(n, 1), ("out", 1)]
    arguments += [("work", dtype.name, None), ("lwork",)]
    arguments += [("work", real.name, None), ("lwork",)] if dtype.kind == "c" else []
    arguments += [("work", _integer().name, None), ("lwork",), ("out", 2)]
    suffix = "heevd" if dtype.kind == "c" else "syevd"
    return _call(dtype, suffix, arguments, [((n, n), dtype), ((n,), real), ((), _integer())])


@lru_cache(maxsize=256)
def gesdd(dtype, m: int, n: int, compute_uv: bool, full_matrices: bool) -> Call:
    """The destroyed matrix, singular values, left and right vectors, info."""
    k, real = min(m, n), real_dtype(dtype)
    job = "N" if not compute_uv else "A" if full_matrices else "S"
    p, q = {"N": (1, 1), "A": (m, n), "S": (k, k)}[job]
    arguments = [job, m, n, ("out", 0), max(m, 1), ("out", 1), ("out", 2), max(m, 1), ("out", 3), max(q, 1)]
    arguments += [("work", dtype.name, None), ("lwork",)]
    if dtype.kind == "c":
        size = max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k) if job != "N" else 7 * k
        arguments.append(("work", real.name, max(size, 1)))
    arguments += [("work", _integer().name, max(8 * k, 1)), ("out", 4)]
    left = (p, m) if job != "N" else (1, 1)
    right = (n, q) if job != "N" else (1, 1)
    return _call(
        dtype, "gesdd", arguments, [((n, m), dtype), ((k,), real), (left, dtype), (right, dtype), ((), _integer())]
    )


@lru_cache(maxsize=256)
def geev(dtype, n: int, left: bool, right: bool) -> Call:
    """The destroyed matrix, eigenvalues (of real matrices: their real and imaginary parts), left and right vectors (of
    real matrices: real and imaginary parts of a pair in two columns), info.
    """
    ld, real = max(n, 1), real_dtype(dtype)
    values = 1 if dtype.kind == "c" else 2
    vl, vr, info = (("out", 1 + values + i) for i in range(3))
    arguments = ["V" if left else "N", "V" if right else "N", n, ("out", 0), ld]
    arguments += [("out", 1 + i) for i in range(values)]
    arguments += [vl, ld, vr, ld, ("work", dtype.name, None), ("lwork",)]
    arguments += [("work", real.name, max(2 * n, 1))] if dtype.kind == "c" else []
    shapes = [((n, n), dtype), *[((n,), dtype)] * values, ((n, n), dtype), ((n, n), dtype), ((), _integer())]
    return _call(dtype, "geev", [*arguments, info], shapes)


@lru_cache(maxsize=256)
def gees(dtype, n: int, compute_vectors: bool) -> Call:
    """The Schur form, how many eigenvalues were selected (none), the eigenvalues as of ``geev``, vectors, info."""
    ld, real = max(n, 1), real_dtype(dtype)
    values = 1 if dtype.kind == "c" else 2
    arguments = ["V" if compute_vectors else "N", "N", ("null",), n, ("out", 0), ld, ("out", 1)]
    arguments += [("out", 2 + i) for i in range(values)] + [("out", 2 + values), ld]
    arguments += [("work", dtype.name, None), ("lwork",)]
    arguments += [("work", real.name, ld)] if dtype.kind == "c" else []
    arguments += [("work", _integer().name, ld), ("out", 3 + values)]
    shapes = [((n, n), dtype), ((), _integer()), *[((n,), dtype)] * values, ((n, n), dtype), ((), _integer())]
    return _call(dtype, "gees", arguments, shapes)


@lru_cache(maxsize=256)
def gehrd(dtype, n: int) -> Call:
    """The Hessenberg form with the vectors of the reflections below it, their factors, info."""
    arguments = [n, 1, n, ("out", 0), max(n, 1), ("out", 1), ("work", dtype.name, None), ("lwork",), ("out", 2)]
    return _call(dtype, "gehrd", arguments, [((n, n), dtype), ((max(n - 1, 0),), dtype), ((), _integer())])


@lru_cache(maxsize=256)
def sytrd(dtype, n: int, lower: bool) -> Call:
    """The tridiagonal form with the vectors of the reflections, its diagonals, the reflections' factors, info."""
    less, real = max(n - 1, 0), real_dtype(dtype)
    arguments = ["L" if lower else "U", n, ("out", 0), max(n, 1), ("out", 1), ("out", 2), ("out", 3)]
    arguments += [("work", dtype.name, None), ("lwork",), ("out", 4)]
    shapes = [((n, n), dtype), ((n,), real), ((less,), real), ((less,), dtype), ((), _integer())]
    return _call(dtype, "hetrd" if dtype.kind == "c" else "sytrd", arguments, shapes)


# ------------------------------------------------------------------------------------------------------------
# Solving


@lru_cache(maxsize=256)
def trsm(dtype, m: int, n: int, left_side: bool, lower: bool, transpose: int, unit_diagonal: bool) -> Call:
    """The solution of a triangular system; operands: the triangle, and m by n right sides.

    Both are row-major here, so sides and triangles are exchanged. ``transpose``: 0, 1, or 2 for the adjoint.
    """
    arguments = ["R" if left_side else "L", "U" if lower else "L", "NTC"[transpose], "U" if unit_diagonal else "N"]
    arguments += [n, m, ("one", dtype.name), ("in", 0), max(m if left_side else n, 1), ("out", 0), max(n, 1)]
    return _call(dtype, "trsm", arguments, [((m, n), dtype)], ((0, 1),))


@lru_cache(maxsize=256)
def gtsv(dtype, n: int, k: int) -> Call:
    """Three destroyed diagonals, the solution of the tridiagonal system, info."""
    arguments = [n, k, ("out", 0), ("out", 1), ("out", 2), ("out", 3), max(n, 1), ("out", 4)]
    less = ((max(n - 1, 0),), dtype)
    shapes = [less, ((n,), dtype), less, ((k, n), dtype), ((), _integer())]
    return _call(dtype, "gtsv", arguments, shapes, tuple((i, i) for i in range(4)))


# ------------------------------------------------------------------------------------------------------------
# Matrices of large or small norm


class Scaling(NamedTuple):
    """Floats of one width as words: how a power of two is found that brings a number near 1, and when."""

    words: np.dtype
    exponent: int  # the bits of the exponent
    highest: int  # the greatest exponent whose inverse is a normal number
    twice: int  # the bits of 1, twice: less the exponent of x they are the inverse of the power of two below x
    large: float  # powers of two between which LAPACK computes as it is
    small: float


SCALING = {
    4: Scaling(np.dtype(np.uint32), 0x7F800000, 253 << 23, 254 << 23, 2.0**37, 2.0**-37),
    8: Scaling(np.dtype(np.uint64), 0x7FF << 52, 2045 << 52, 2046 << 52, 2.0**450, 2.0**-450),
}


# Where elements of floats are that small, products in Cholesky's factorisation may be subnormal, as for covariances of
# what lies far apart: processors take a hundred cycles for each.
SMALL_IN_FACTOR = np.float32(2.0**-63)


class FactorScale(NamedTuple):
    """By what such a matrix is multiplied, if all its elements are below a number, and then its factor: powers of two,
    which round what is subnormal alone.
    """

    most: float
    matrix: float
    factor: float  # of the inverse, the root


FACTOR_SCALES = (FactorScale(2.0**34, 2.0**90, 2.0**-45), FactorScale(2.0**4, 2.0**120, 2.0**-60))  # the last that fits
UNSCALED = 16  # rows of matrices that are not looked at: it would take as long as what is done to them


def may_be_scaled(dtype, rows: int) -> bool:
    """Whether `FACTOR_SCALES` are for such matrices."""
    return dtype == np.float32 and rows > UNSCALED


def scale_for(largest: np.ndarray) -> np.ndarray:
    """By which power of two to multiply matrices of which this is the largest element, so that ``geev`` need not.

    Where it does, that of OpenBLAS 0.3.30 (in wheels of NumPy 2.3.3 to 2.4.0 and SciPy 1.17) forgets to scale the
    eigenvalues back. Multiplied so, no element is rounded but those that LAPACK would lose likewise.
    """
    s = SCALING[largest.dtype.itemsize]
    exponent = np.minimum(largest.view(s.words) & s.words.type(s.exponent), s.words.type(s.highest))
    inverse = (s.words.type(s.twice) - exponent).view(largest.dtype)
    one, large = largest.dtype.type(1), largest.dtype.type(s.large)
    return np.where(largest > large, inverse * large, np.where(largest < s.small, inverse, one))


def needs_no_scale(largest: np.ndarray) -> bool:
    """Whether `scale_for` gives 1 for all; not so where an element is NaN."""
    s = SCALING[largest.dtype.itemsize]
    return bool(s.small <= largest.min() and largest.max() <= s.large)
