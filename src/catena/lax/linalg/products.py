"""Products with structure."""

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, add_tangents, get_aval
from catena.lax import native
from catena.lax.arithmetic import mul
from catena.lax.comparison import select_n
from catena.lax.elementwise import INEXACT, check_admitted
from catena.lax.linalg.algebra import NOT_LINEAR, lower_mask, mm, scalar, swap


def _abstract(a, c, *, alpha, beta):
    check_admitted("symmetric_product", a, INEXACT, 0)
    if a.ndim < 2:
        raise TypeError(f"Input 0 to symmetric_product must have rank at least 2, but got shape={a.shape}")
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of shape (n, n). Got "
            f"shapes {a.shape} and {c.shape}."
        )
    if a.dtype != c.dtype:
        raise TypeError(f"lax.symmetric_product requires arguments to have the same dtypes, got {a.dtype}, {c.dtype}.")
    return ShapedArray(c.shape, c.dtype, a.weak_type and c.weak_type)


def _evaluate(a, c, *, alpha, beta):
    wide = np.float32 if a.dtype.itemsize < 4 else a.dtype
    a_wide = a.astype(wide, copy=False)
    product = alpha * np.matmul(a_wide, np.swapaxes(a_wide, -1, -2))
    return (product + beta * c.astype(wide, copy=False) if beta else product).astype(c.dtype, copy=False)


def _jvp(primals, tangents, *, alpha, beta):
    a, c = primals
    a_t, c_t = tangents
    out = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    total = Zero.of_primal(out)
    if type(a_t) is not Zero:
        half = mm(a_t, swap(a))
        total = mul(add_tangents(half, swap(half)), scalar(half, alpha))
    if type(c_t) is not Zero:
        total = add_tangents(total, mul(c_t, scalar(c_t, beta)))
    return out, total


def _batch(axis, args, dims, **params):
    return symmetric_product_p.bind(*[at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)], **params), 0


def _lower(b, a, c, *, alpha, beta):
    n = len(a.shape)
    batch = tuple(range(n - 2))
    narrow = dtypes.itemsize_bits(a.dtype) < 32
    wide = np.dtype(np.float32) if narrow else a.dtype
    a_wide = b.convert(a, wide)
    product = b.dot_general(a_wide, a_wide, (((n - 1,), (n - 1,)), (batch, batch)), wide)
    out = b.map("mul", product, b.constant(np.asarray(alpha).astype(wide)))
    if beta:
        out = b.map("add", out, b.map("mul", b.convert(c, wide), b.constant(np.asarray(beta).astype(wide))))
    return b.convert(out, c.dtype)


symmetric_product_p = Primitive(
    "symmetric_product",
    abstract=_abstract,
    jvp=_jvp,
    transpose=NOT_LINEAR,
    batch=_batch,
    lower=_lower,
)
symmetric_product_p.evaluate = native.shaped(symmetric_product_p, _evaluate)


def symmetric_product(a_matrix, c_matrix, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False):
    """``alpha a a^T + beta c`` for symmetric ``c``.

    Arguments:
      a_matrix: a stack of matrices.
      c_matrix: a stack of symmetric matrices.
      alpha, beta: factors.
      symmetrize_output: whether the upper triangle must mirror the lower one.
    Returns:
      A stack of matrices like ``c_matrix``.
    Raises:
      ValueError: shapes do not fit. TypeError: dtypes are not floats or differ.

    >>> import numpy as np
    >>> symmetric_product(np.array([[1.0], [2.0]]), np.eye(2), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    return select_n(lower_mask(get_aval(out).shape), swap(out), out)
