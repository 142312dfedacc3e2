"""Determinants."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.numpy import reductions
from catena.numpy.boundary import (
    broadcast_to,
    run,
)
from catena.numpy.diagonals import diagonal
from catena.numpy.einstein import einsum
from catena.numpy.index_update import IndexUpdateRef
from catena.numpy.linalg.decompositions import (
    matrix_value,
    square_matrix,
)
from catena.numpy.linalg.systems import inverse
from catena.numpy.reading import read
from catena.runtime import lapack
from catena.transform.custom_jvp import custom_jvp
from catena.transform.grad import jvp
from catena.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """What ``slogdet`` returns."""

    sign: Array
    logabsdet: Array


def det(a: ArrayLike) -> Array:
    """The determinants of matrices.

    Arguments:
      a: a stack of square matrices.
    Returns:
      An array without the last two dimensions of ``a``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    a = square_matrix("det", a)
    n = a.shape[-1]
    if n == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    if (value := matrix_value(a)) is not None:
        return make_array(run(lapack.stacked, lapack.gufuncs.det, value, out=...))
    return _small_det(a, n) if n <= 3 else _det(a)


def _small_det(a, n: int):
    entry = lambda i, j: read(a, (..., i, j))  # noqa: E731
    if n == 1:
        return entry(0, 0)
    minor = lambda i, j, k, m: lax.sub(lax.mul(entry(i, k), entry(j, m)), lax.mul(entry(i, m), entry(j, k)))  # noqa: E731
    if n == 2:
        return minor(0, 1, 0, 1)
    terms = [lax.mul(entry(0, c), minor(1, 2, (c + 1) % 3, (c + 2) % 3)) for c in range(3)]
    return lax.add(lax.add(terms[0], terms[1]), terms[2])


def _parity(pivots, dtype):
    """The sign of the permutation that exchanged row ``i`` with row ``pivots[i]`` in turn."""
    n = pivots.shape[-1]
    here = np.broadcast_to(np.arange(n, dtype=pivots.dtype), pivots.shape)
    count = lax.reduce_sum(lax.convert_element_type(lax.ne(pivots, here), np.dtype("int32")), (pivots.ndim - 1,))
    odd = lax.eq(lax.rem(count, np.int32(2)), np.int32(1))
    one = lax.full(odd.shape, 1, dtype)
    return lax.select(odd, lax.neg(one), one)


def _folded(combine, x):
    """All elements of the last axis combined, halves with halves: in an order that their number alone decides. Sums and
    products over an axis go in one that depends on the other axes, so that a member's bits would depend on its batch.
    """
    odd = []
    while (n := x.shape[-1]) > 1:
        half = n // 2
        if n % 2:
            odd.append(read(x, (..., -1)))
        x = combine(read(x, (..., slice(0, half))), read(x, (..., slice(half, 2 * half))))
    return functools.reduce(combine, odd, read(x, (..., 0)))


@custom_jvp
def _sum(x):
    """The sum over the last axis, see ``_folded``."""
    return _folded(lax.add, x) if x.shape[-1] else reductions.sum(x, -1)


_sum.defjvps(lambda t, y, x: reductions.sum(t, -1))


@custom_jvp
def _directions(x):
    """The product of complex numbers over the last axis, see ``_folded``."""
    return _folded(lax.mul, x) if x.shape[-1] else reductions.prod(x, -1)


@_directions.defjvp
def _directions_jvp(primals, tangents):
    return _directions(*primals), jvp(lambda x: reductions.prod(x, -1), primals, tangents)[1]


def _product(pivots, values):
    """The product over the last axis, with the sign of the permutation."""
    return lax.mul(_parity(pivots, values.dtype), _folded(lax.mul, values))


@custom_jvp
def _det(a):
    """The determinant as the product of the diagonal of the LU factors."""
    factors, pivots, _ = lax.linalg.lu(a)
    return _product(pivots, diagonal(factors, 0, -2, -1))


@_det.defjvp
def _det_jvp(primals, tangents):
    """The trace of adjugate times tangent, without division by the last pivot: it holds for rank ``n - 1`` too.

    With ``y`` from the lower triangular system and ``u`` the last pivot, ``u`` times the solution of the
    upper one is that of the system with 1 for ``u`` and with all but the last row of ``y`` multiplied by
    ``u``.
    """
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = lax.linalg.lu(a)
    diagonals = diagonal(factors, 0, -2, -1)
    others = _product(pivots, read(diagonals, (..., slice(None, -1))))
    last = read(diagonals, (..., slice(-1, None), None))
    n = a.shape[-1]
    rows = IndexUpdateRef(broadcast_to(last, (*a.shape[:-1], 1)), (..., n - 1, slice(None))).set(1)
    upper = IndexUpdateRef(factors, (..., n - 1, n - 1)).set(1)
    y = lax.linalg.triangular_solve(factors, _permuted(t, permutation), left_side=True, lower=True, unit_diagonal=True)
    z = lax.linalg.triangular_solve(upper, lax.mul(broadcast_to(rows, y.shape), y), left_side=True)
    tangent = lax.mul(others, _sum(diagonal(z, 0, -2, -1)))
    return _product(pivots, diagonals), tangent


def _permuted(x, permutation):
    from_rows = lax.broadcast_in_dim(permutation, x.shape, tuple(range(x.ndim - 1)))
    grid = [
        np.broadcast_to(np.arange(n).reshape((n,) + (1,) * (x.ndim - i - 1)), x.shape) for i, n in enumerate(x.shape)
    ]
    grid[-2] = from_rows
    return read(x, tuple(grid))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their sizes.

    Arguments:
      a: a stack of square matrices.
      method: "lu" (or None), or "qr".
    Returns:
      A named tuple ``(sign, logabsdet)``; 0 and -infinity for singular matrices.
    Raises:
      ValueError: the matrices are not square, or the method is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0.6931471, dtype=float32))
    """
    a = square_matrix("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    if (value := matrix_value(a)) is not None and (found := _slogdet_value(value)) is not None:
        return found
    return SlogdetResult(*(_sign_and_size(*_qr_diagonal(a)) if method == "qr" else _slogdet(a)))


def _sign_and_size(values, sign):
    """Those of the product of values, with a sign, over the last axis: the latter's logarithm."""
    sizes = lax.abs(values)
    prod = _directions if dtypes.is_complex(values.dtype) else lambda x: reductions.prod(x, -1)  # of signs it is exact
    return lax.mul(sign, prod(_direction(values, sizes))), _sum(lax.log(sizes))


@custom_jvp
def _slogdet(a):
    """The sign of the determinant, and the logarithm of its size, by the diagonal of the LU factors."""
    factors, pivots, _ = lax.linalg.lu(a)
    return _sign_and_size(diagonal(factors, 0, -2, -1), _parity(pivots, a.dtype))


@_slogdet.defjvp
def _slogdet_jvp(primals, tangents):
    """The trace of the inverse times the tangent is the slope of the determinant's logarithm: of a complex one, the
    imaginary part is how it turns.
    """
    (a,), (t,) = primals, tangents
    sign, size = _slogdet(a)
    slope = einsum("...ij,...ji->...", inverse(a), t, precision=lax.Precision.HIGHEST)
    if dtypes.is_complex(a.dtype):
        return (sign, size), (lax.mul(sign, lax.complex(lax.full_like(size, 0), lax.imag(slope))), lax.real(slope))
    return (sign, size), (lax.full_like(sign, 0), slope)


def _direction(values, sizes):
    """The sign of each value. That of a complex one has a derivative, which ``lax.sign``, as in JAX, has not."""
    if not dtypes.is_complex(values.dtype):
        return lax.sign(values)
    sizes = lax.select(lax.eq(sizes, lax.full_like(sizes, 0)), lax.full_like(sizes, 1), sizes)
    return lax.complex(lax.div(lax.real(values), sizes), lax.div(lax.imag(values), sizes))


def _slogdet_value(value):
    """The result for a NumPy value; None where there are NaN, which make the sign NaN too."""
    sign, size = run(lapack.stacked, lapack.gufuncs.slogdet, value, out=...)
    return SlogdetResult(make_array(sign), make_array(size)) if (size == size).all() else None


def _qr_diagonal(a):
    """The diagonal of R, and the determinant of Q, which has size 1."""
    q, r = lax.linalg.qr(a, full_matrices=False)
    return diagonal(r, 0, -2, -1), slogdet(q).sign
