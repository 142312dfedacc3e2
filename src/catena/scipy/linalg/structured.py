"""Matrices with a structure: of shifted vectors, of polynomials, of populations, and some that are known by name.

Those of vectors read each element from its place in the vector, so that stacks of vectors, gradients and ``vmap``
cost one gather. Those of a size alone are computed by NumPy in double precision, then rounded.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, convert
from catena.typing import ArrayLike, DTypeLike

# ------------------------------------------------------------------------------------------------------------
# Of vectors


def _vectors(name: str, *xs) -> list:
    """Arguments as stacks of vectors of one dtype; a scalar is a vector of one element."""
    xs = [as_array_argument(name, x, i) for i, x in enumerate(xs)]
    dtype = jnp.result_type(*xs)
    return [jnp.atleast_1d(x).astype(dtype) for x in xs] if len(xs) > 1 else [jnp.atleast_1d(xs[0])]


def _joined(x, y):
    """The elements of ``x``, then those of ``y``, of stacks that broadcast."""
    stack = lax.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    parts = [jnp.broadcast_to(v, (*stack, v.shape[-1])) for v in (x, y)]
    return jnp.concatenate(parts, axis=-1)


def _indices(shape: tuple[int, int]) -> list:
    """The rows and the columns of elements, computed: as constants they would make each size a program of its own."""
    return [lax.broadcasted_iota(np.dtype("int32"), shape, axis) for axis in (0, 1)]


def _monic(a):
    """Minus the coefficients of polynomials after the first, divided by it."""
    a = convert(a, dtypes.to_inexact_dtype(a.dtype), a.weak_type)
    return -a[..., 1:] / a[..., :1]


def _scattered(x, places: np.ndarray, ones: np.ndarray):
    """Matrices that hold element ``places[i, j] - 1`` of ``x`` at ``[i, j]``; where that is -1 one or zero."""
    constants = convert(jnp.asarray(ones.astype(x.dtype)), x.dtype, x.weak_type)
    return jnp.where(places > 0, x[..., np.maximum(places - 1, 0)], constants)


@whole
def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with these matrices on its diagonal, and zeros beside them.

    Arguments:
      *arrs: matrices; vectors and scalars are rows.
    Returns:
      A matrix of shape ``(sum of rows, sum of columns)``; of shape ``(1, 0)`` without arguments.
    Raises:
      ValueError: an argument has more than two dimensions. TypeError: it is no array.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.block_diag(jnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], dtype=float32)
    """
    blocks = [as_array_argument("block_diag", x, i) for i, x in enumerate(arrs)] or [jnp.zeros((1, 0))]
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"block_diag: each argument must have at most 2 dimensions, got shape {x.shape} at {i}")
    dtype = jnp.result_type(*blocks)
    blocks = [jnp.atleast_2d(x).astype(dtype) for x in blocks]
    width, before, zero, rows = sum(x.shape[1] for x in blocks), 0, np.zeros((), dtype), []
    for x in blocks:
        rows.append(lax.pad(x, zero, [(0, 0, 0), (before, width - before - x.shape[1], 0)]))
        before += x.shape[1]
    return jnp.concatenate(rows)


@whole
def circulant(c: ArrayLike) -> Array:
    """Circulant matrices: each column is the one before, moved around by one place.

    Arguments:
      c: a stack of vectors ``(..., n)``, the first columns.
    Returns:
      An array of shape ``(..., n, n)``.
    Raises:
      TypeError: ``c`` is no array.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    (c,) = _vectors("circulant", c)
    row, column = _indices(2 * c.shape[-1:])
    return c[..., jnp.where(row < column, c.shape[-1], 0) + row - column]


@whole
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Toeplitz matrices, constant along their diagonals.

    Arguments:
      c: a stack of vectors ``(..., m)``, the first columns.
      r: a stack of vectors ``(..., n)``, the first rows, of which the first element is not read; by default the
        conjugate of ``c``.
    Returns:
      An array of shape ``(..., m, n)``.
    Raises:
      TypeError: an argument is no array. ValueError: the stacks do not broadcast.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.toeplitz(jnp.array([1, 2]), jnp.array([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    c = as_array_argument("toeplitz", c)
    c, r = _vectors("toeplitz", c, jnp.conj(c) if r is None else as_array_argument("toeplitz", r, 1))
    m, n = c.shape[-1], r.shape[-1]
    row, column = _indices((m, n))
    return _joined(jnp.flip(c, -1), r[..., 1:])[..., column - row + max(m - 1, 0)]


@whole
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Hankel matrices, constant along the diagonals that go up to the right.

    Arguments:
      c: a stack of vectors ``(..., m)``, the first columns.
      r: a stack of vectors ``(..., n)``, the last rows, of which the first element is not read; zeros by default.
    Returns:
      An array of shape ``(..., m, n)``.
    Raises:
      TypeError: an argument is no array. ValueError: it is a scalar, or the stacks do not broadcast.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    c = as_array_argument("hankel", c)
    r = jnp.zeros_like(c) if r is None else as_array_argument("hankel", r, 1)
    for x, name in ((c, "c"), (r, "r")):
        if not x.ndim:
            raise ValueError(f"hankel: {name} must have at least one dimension, got a scalar")
    c, r = _vectors("hankel", c, r)
    row, column = _indices((c.shape[-1], r.shape[-1]))
    return _joined(c, r[..., 1:])[..., row + column]


@whole
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrices whose product with a vector of ``n`` elements is its convolution with ``a``.

    Arguments:
      a: a stack of vectors ``(..., m)``.
      n: the number of columns.
      mode: "full", "same" or "valid", as for ``numpy.convolve``.
    Returns:
      An array of shape ``(..., k, n)``: ``k`` is ``m + n - 1``, ``max(m, n)`` or ``max(m, n) - min(m, n) + 1``.
    Raises:
      TypeError: ``n`` is no integer, or ``a`` no array.
      ValueError: ``n`` is not positive, ``a`` has no elements, or the mode is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, n = as_array_argument("convolution_matrix", a), operator.index(n)
    if n < 1:
        raise ValueError(f"convolution_matrix: n must be a positive integer, got {n}")
    if not a.ndim or not a.shape[-1]:
        raise ValueError(f"convolution_matrix: a must be vectors of at least one element, got shape {a.shape}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolution_matrix: mode must be 'full', 'same' or 'valid', got {mode!r}")
    m = a.shape[-1]
    least = min(m, n) - 1
    before, after = {"full": (0, 0), "same": (least // 2, least - least // 2), "valid": (least, least)}[mode]
    row, column = np.indices((m + n - 1, n))
    places = (row - column + 1)[before : m + n - 1 - after]
    return _scattered(a, np.where(places <= m, places, 0), np.zeros(places.shape))


@whole
def companion(a: ArrayLike) -> Array:
    """Companion matrices: their characteristic polynomials have these coefficients.

    Arguments:
      a: a stack of polynomials ``(..., n)``, the coefficient of the highest power first.
    Returns:
      An inexact array of shape ``(..., n - 1, n - 1)``.
    Raises:
      TypeError: ``a`` is no array. ValueError: a polynomial has less than two coefficients.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = _vectors("companion", a)
    n = a.shape[-1] - 1
    if n < 1:
        raise ValueError(f"companion: a must have at least two coefficients in its last axis, got shape {a.shape}")
    row, column = np.indices((n, n))
    return _scattered(_monic(a), np.where(row == 0, column + 1, 0), row == column + 1)


@whole
def fiedler(a: ArrayLike) -> Array:
    """Fiedler matrices: ``[i, j]`` is the distance of ``a[i]`` and ``a[j]``.

    Arguments:
      a: a stack of vectors ``(..., n)``.
    Returns:
      A real array of shape ``(..., n, n)``.
    Raises:
      TypeError: ``a`` is no array, or of booleans.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.fiedler(jnp.array([1, 4, 6]))
    Array([[0, 3, 5],
           [3, 0, 2],
           [5, 2, 0]], dtype=int32)
    """
    (a,) = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@whole
def fiedler_companion(a: ArrayLike) -> Array:
    """Companion matrices with five diagonals.

    Arguments:
      a: a stack of polynomials ``(..., n)``, the coefficient of the highest power first.
    Returns:
      An inexact array of shape ``(..., n - 1, n - 1)``.
    Raises:
      TypeError: ``a`` is no array. ValueError: a polynomial has no coefficients.

    Source: Fiedler, "A note on companion matrices" (2003).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.fiedler_companion(jnp.array([1.0, -16.0, 86.0, -176.0]))
    Array([[ 16., -86.,   1.],
           [  1.,   0.,   0.],
           [  0., 176.,   0.]], dtype=float32)
    """
    (a,) = _vectors("fiedler_companion", a)
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(f"fiedler_companion: a must have coefficients in its last axis, got shape {a.shape}")
    row, column = np.indices((n, n))
    odd = row % 2 == 1
    places = np.where((row % 2 == 0) & (column == row + 1), column + 1, 0)  # even rows: -a[2], -a[4], ... to the right
    places = np.where(
        (row % 2 == 0) & (row > 0) & (column == row - 1), row + 1, places
    )  # -a[3], -a[5], ... to the left
    ones = (~odd & (column == row + 2)) | (odd & (row > 1) & (column == row - 2))
    if n:
        places[0, 0], ones[1:2, 0] = 1, True
    return _scattered(_monic(a), places, ones)


@whole
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices of populations: fecundities in the first row, survivals below the diagonal.

    Arguments:
      f: a stack of vectors ``(..., n)``.
      s: a stack of vectors ``(..., n - 1)``.
    Returns:
      An array of shape ``(..., n, n)``.
    Raises:
      TypeError: an argument is no array. ValueError: the lengths do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.leslie(jnp.array([0.0, 2.0, 1.0]), jnp.array([0.5, 0.25]))
    Array([[0.  , 2.  , 1.  ],
           [0.5 , 0.  , 0.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    """
    f, s = _vectors("leslie", f, s)
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ValueError(
            "leslie: f must have at least two elements in its last axis, and s one less, got shapes "
            f"{f.shape} and {s.shape}"
        )
    row, column = np.indices((n, n))
    places = np.where(row == 0, column + 1, np.where(row == column + 1, n + row, 0))
    return _scattered(_joined(f, s), places, np.zeros((n, n)))


# ------------------------------------------------------------------------------------------------------------
# Of a size alone


def _size(name: str, n) -> int:
    """``n`` as an integer; a float that is one will do."""
    n = int(n) if isinstance(n, float) and n.is_integer() else n
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"{name}: n must be an integer, got {n!r}") from None


def _rounded(x: np.ndarray, dtype=float) -> Array:
    return jnp.asarray(x.astype(dtypes.canonical(np.dtype(dtype))))


def _known(function: Callable) -> Callable:
    """A matrix of a size alone, small ones of which are kept: nobody may write to them."""
    kept = functools.lru_cache(maxsize=64)(function)
    return lambda n, *kind: kept(n, *kind) if n <= KEPT else function(n, *kind)


KEPT = 128  # rows


@_known
def _binomials(n: int) -> np.ndarray:
    """``[i, j]`` is i + j over i, each row the running sum of the one before."""
    table = np.ones((n, n))
    with np.errstate(over="ignore"):
        for i in range(1, n):
            np.cumsum(table[i - 1], out=table[i])
    return table


@_known
def _signs(n: int) -> np.ndarray:
    row, column = np.indices((n, n))
    return 1.0 - 2.0 * ((row + column) % 2)


def hilbert(n: int) -> Array:
    """The Hilbert matrix: ``1 / (i + j + 1)``.

    Arguments:
      n: the number of rows.
    Returns:
      A float array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is no natural number.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    if (n := _size("hilbert", n)) < 0:
        raise TypeError(f"hilbert: n must not be negative, got {n}")
    return _rounded(_quotients(n))


@_known
def _quotients(n: int) -> np.ndarray:
    row, column = np.indices((n, n))
    return 1.0 / (row + column + 1)


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, whose elements are integers.

    Arguments:
      n: the number of rows.
    Returns:
      A float array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is no integer.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = max(_size("invhilbert", n), 0)
    with np.errstate(over="ignore"):
        return _rounded(_signed_products(n))


@_known
def _signed_products(n: int) -> np.ndarray:
    row, column = np.indices((n, n))
    choose, beyond = _binomials(2 * n), row + column + 1
    with np.errstate(over="ignore"):
        sizes = beyond * choose[n - 1 - column, beyond] * choose[n - 1 - row, beyond] * choose[row, column] ** 2
        return _signs(n) * sizes


_KINDS = ("symmetric", "lower", "upper")


def _kind(name: str, kind) -> str:
    if kind is None:
        return "symmetric"
    if kind not in _KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    return kind


@_known
def _lower_binomials(n: int) -> np.ndarray:
    """``[i, j]`` is i over j."""
    row, column = np.indices((n, n))
    return np.where(row >= column, _binomials(n)[np.maximum(row - column, 0), column], 0.0)


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's matrix of binomial coefficients.

    Arguments:
      n: the number of rows.
      kind: "symmetric" (or None) for ``i + j`` over ``i``, "lower" for ``i`` over ``j``, or its transpose "upper".
    Returns:
      A float32 array of shape ``(n, n)``, with x64 on, too, as in JAX.
    Raises:
      TypeError: ``n`` is no integer. ValueError: the kind is unknown.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    kind, n = _kind("pascal", kind), max(_size("pascal", n), 0)
    if kind == "symmetric":
        return _rounded(_binomials(n), np.float32)
    lower = _lower_binomials(n)
    return _rounded(lower if kind == "lower" else lower.T, np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of Pascal's matrix, whose elements are integers.

    Arguments:
      n: the number of rows.
      kind: "symmetric" (or None), "lower" or "upper", as for ``pascal``.
    Returns:
      A float array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is no integer. ValueError: the kind is unknown.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.invpascal(3, "lower")
    Array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    kind, n = _kind("invpascal", kind), max(_size("invpascal", n), 0)
    return _rounded(_signed_binomials(n, kind))


@_known
def _signed_binomials(n: int, kind: str) -> np.ndarray:
    lower = _lower_binomials(n)
    sizes = {"symmetric": lower.T @ lower, "lower": lower, "upper": lower.T}[kind]
    return np.where(sizes == 0, 0.0, _signs(n) * sizes)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix: orthonormal rows, each the difference of an element and the mean of those before.

    Arguments:
      n: the number of columns.
      full: whether to begin with a row of equal elements, which makes the matrix orthogonal.
    Returns:
      A float array of shape ``(n - 1, n)`` or ``(n, n)``.
    Raises:
      TypeError: ``n`` is no integer. ValueError: it is not positive.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.helmert(2, full=True)
    Array([[ 0.70710677,  0.70710677],
           [ 0.70710677, -0.70710677]], dtype=float32)
    """
    if (n := _size("helmert", n)) < 1:
        raise ValueError(f"helmert: n must be a positive integer, got {n}")
    return _rounded(_differences(n)[not full :])


@_known
def _differences(n: int) -> np.ndarray:
    row, column = np.indices((n, n))
    rows = np.where(column < row, 1.0, np.where(column == row, -row, 0.0)) / np.sqrt(np.maximum(row * (row + 1.0), 1))
    rows[0] = n**-0.5
    return rows


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """The Hadamard matrix of Sylvester's construction: elements are 1 and -1, rows are orthogonal.

    Arguments:
      n: the number of rows, a power of two.
      dtype: of the result.
    Returns:
      An array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is no integer, or the dtype has no negative numbers. ValueError: ``n`` is no power of two.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _size("hadamard", n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a positive power of two, got {n}")
    dtype = dtypes.check_user_dtype_supported(dtype, "hadamard")
    if dtype.kind == "b":
        raise TypeError("hadamard: dtype must be one of numbers, got bool")
    return jnp.asarray(_signs_in_blocks(n)).astype(dtype)


@_known
def _signs_in_blocks(n: int) -> np.ndarray:
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: its product with a vector is the vector's transform.

    Arguments:
      n: the number of rows.
      scale: what rows are divided by: nothing (None), the root of ``n`` ("sqrtn"), or "n".
      dtype: of the result, complex.
    Returns:
      A complex array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is no integer. ValueError: the scale is unknown, or the dtype not complex.

    >>> import catena.scipy as jsp
    >>> jsp.linalg.dft(2)
    Array([[ 1.+0.j,  1.+0.j],
           [ 1.+0.j, -1.-0.j]], dtype=complex64)
    """
    n = max(_size("dft", n), 0)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    dtype = dtypes.check_user_dtype_supported(complex if dtype is None else dtype, "dft")
    if not dtypes.is_complex(dtype):
        raise ValueError(f"dft: dtype must be complex, got {dtype}")
    return jnp.asarray((_roots(n) / {None: 1, "sqrtn": max(n, 1) ** 0.5, "n": max(n, 1)}[scale]).astype(dtype))


@_known
def _roots(n: int) -> np.ndarray:
    row, column = np.indices((n, n))
    return np.exp(-2j * np.pi * (row * column % max(n, 1)) / max(n, 1))  # an angle within one turn is exact
