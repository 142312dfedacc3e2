"""Determinants."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.named import NamedTuple
from catena.lax.whole import whole
from catena.numpy import float_parts, reductions
from catena.numpy.boundary import (
    broadcast_to,
    run,
)
from catena.numpy.creation import eye
from catena.numpy.diagonals import diagonal
from catena.numpy.einstein import einsum
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
    return _any_det(a)


@whole
def _any_det(a):
    n = a.shape[-1]
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
    here = lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    count = lax.reduce_sum(lax.convert_element_type(lax.ne(pivots, here), np.dtype("int32")), (pivots.ndim - 1,))
    odd = lax.eq(lax.rem(count, np.int32(2)), np.int32(1))
    one = lax.full(odd.shape, 1, dtype)
    return lax.select(odd, lax.neg(one), one)


def _folded(combine, x, neutral: float):
    """All elements of the last axis combined, halves with halves: in an order that their number alone decides. Sums and
    products over an axis go in one that depends on the other axes, so that a member's bits would depend on its batch.
    There are a power of two of them, by `neutral` ones behind them, so few lengths are programs of their own.
    """
    n = x.shape[-1]
    size = 1 << (n - 1).bit_length()
    if n < size:
        x = lax.pad(x, np.asarray(neutral, x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(0, size - n, 0)])
    while size := size // 2:
        x = combine(read(x, (..., slice(0, size))), read(x, (..., slice(size, 2 * size))))
    return read(x, (..., 0))


@custom_jvp
def _sum(x):
    """The sum over the last axis, see ``_folded``."""
    return _folded(lax.add, x, -0.0) if x.shape[-1] else reductions.sum(x, -1)


_sum.defjvps(lambda t, y, x: reductions.sum(t, -1))


@custom_jvp
def _directions(x):
    """The product of complex numbers over the last axis, see ``_folded``."""
    return _folded(lax.mul, x, 1.0) if x.shape[-1] else reductions.prod(x, -1)


@_directions.defjvp
def _directions_jvp(primals, tangents):
    return _directions(*primals), jvp(lambda x: reductions.prod(x, -1), primals, tangents)[1]


def _product(pivots, values):
    """The product over the last axis, with the sign of the permutation."""
    return lax.mul(_parity(pivots, values.dtype), _folded(lax.mul, values, 1.0))


@custom_jvp
def _det(a):
    """The determinant as the product of the diagonal of the LU factors."""
    factors, pivots, _ = lax.linalg.lu(a)
    return _product(pivots, diagonal(factors, 0, -2, -1))


@_det.defjvp
def _det_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = lax.linalg.lu(a)
    slopes = lax.mul(_cofactors(factors, pivots, permutation), t)
    return _product(pivots, diagonal(factors, 0, -2, -1)), _sum(_sum(slopes))


def _cofactors(factors, pivots, permutation):
    """The derivative of the determinant by each element: ``det(a) * inv(a).T``, from the LU factors.

    The values on the diagonal are taken as mantissas and powers of two, and the powers are multiplied last: a cofactor
    is finite where it is a float, even if the determinant overflows, or a product of some of the values. Zeros count as
    numbers far below the others, which changes cofactors, polynomials, by less than their rounding.
    """
    n = factors.shape[-1]
    mantissas, exponents, singular = _without_zeros(*_parts(diagonal(factors, 0, -2, -1)), factors)
    product, power = _mantissa_product(mantissas, exponents)
    rows = _times_power(factors, lax.neg(_column(exponents)))
    upper = lax.select(_on_diagonal(rows), broadcast_to(_column(mantissas), rows.shape), rows)
    # Each row has its own power: the largest is divided by, up to room that lets small rows keep their digits, or the
    # quotients of several tiny values be floats.
    room = lax.full_like(power, dtypes.finfo(factors.dtype).maxexp // 2)
    least = lax.add(lax.reduce_min(exponents, (exponents.ndim - 1,)), lax.select(singular, lax.neg(room), room))
    start = _permuted(broadcast_to(eye(n, dtype=factors.dtype), factors.shape), permutation)
    y = lax.linalg.triangular_solve(factors, start, left_side=True, lower=True, unit_diagonal=True)
    y = _times_power(y, _column(lax.sub(_column(least), exponents)))
    z = lax.linalg.triangular_solve(upper, y, left_side=True)
    z = lax.mul(z, _block(lax.mul(_parity(pivots, factors.dtype), product), z.shape))
    z = _times_power(z, _column(_column(lax.sub(power, least))))
    return lax.transpose(z, (*range(z.ndim - 2), z.ndim - 1, z.ndim - 2))


def _without_zeros(mantissas, exponents, factors) -> tuple:
    """Values on the diagonal with tiny ones in the place of zeros, and whether there are any."""
    info = dtypes.finfo(mantissas.dtype)
    zero = lax.eq(mantissas, lax.full_like(mantissas, 0))
    least = lax.reduce_min(lax.select(zero, lax.full_like(exponents, info.maxexp), exponents), (exponents.ndim - 1,))
    largest = _parts(lax.reduce_max(lax.abs(factors), (factors.ndim - 2, factors.ndim - 1)))[1]
    tiny = _column(lax.sub(lax.min(least, largest), np.int32(info.nmant + 8)))
    exponents = lax.select(zero, broadcast_to(tiny, exponents.shape), exponents)
    return lax.select(zero, lax.full_like(mantissas, 1), mantissas), exponents, lax.reduce_or(zero, (zero.ndim - 1,))


def _on_diagonal(x):
    return lax.eq(*(lax.broadcasted_iota(np.dtype("int32"), x.shape, x.ndim - k) for k in (1, 2)))


def _block(x, shape: tuple):
    return broadcast_to(_column(_column(x)), shape)


def _column(x):
    return lax.expand_dims(x, (x.ndim,))


def _parts(x) -> tuple:
    """Mantissas and exponents of two: of complex numbers, by the larger part."""
    size = lax.max(lax.abs(lax.real(x)), lax.abs(lax.imag(x))) if dtypes.is_complex(x.dtype) else lax.abs(x)
    exponents = float_parts.frexp(lax.stop_gradient(size))[1]
    return _times_power(x, lax.neg(exponents)), exponents


def _times_power(x, exponents):
    """``x * 2 ** exponents``, of complex numbers too."""
    if dtypes.is_complex(x.dtype):
        return lax.complex(*[_times_power(part, exponents) for part in (lax.real(x), lax.imag(x))])
    return float_parts.ldexp(x, exponents)


def _mantissa_product(mantissas, exponents) -> tuple:
    """The product over the last axis, as one mantissa and one exponent; that of few mantissas does not underflow."""
    power = lax.reduce_sum(exponents, (exponents.ndim - 1,))
    while (n := mantissas.shape[-1]) > 1:
        few = min(n, 64)
        padding = [(0, 0, 0)] * (mantissas.ndim - 1) + [(0, -n % few, 0)]
        groups = lax.pad(mantissas, np.ones((), mantissas.dtype), padding)
        groups = lax.reshape(groups, (*mantissas.shape[:-1], (n + few - 1) // few, few))
        mantissas, exponents = _parts(_folded(lax.mul, groups, 1.0))
        power = lax.add(power, lax.reduce_sum(exponents, (exponents.ndim - 1,)))
    return read(mantissas, (..., 0)), power


def _permuted(x, permutation):
    from_rows = lax.broadcast_in_dim(permutation, x.shape, tuple(range(x.ndim - 1)))
    grid = [lax.broadcasted_iota(permutation.dtype, x.shape, axis) for axis in range(x.ndim)]
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
    return SlogdetResult(*_any_slogdet(a, method))


@whole
def _any_slogdet(a, method):
    return tuple(_sign_and_size(*_qr_diagonal(a)) if method == "qr" else _slogdet(a))


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
