"""Cholesky, LU and QR factorisations, and the products of reflections that QR is made of.

Source of the derivatives: Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); for LU and QR of rectangular matrices, the same with the missing part
set to the identity.
"""

import operator
from functools import lru_cache

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.primitive import NoRule
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import add, mul, neg, sub
from catena.lax.comparison import eq, select_n
from catena.lax.complex_numbers import conj
from catena.lax.control_flow.fori_loop import fori_loop
from catena.lax.convert import convert_element_type
from catena.lax.dynamic_slicing import dynamic_slice_in_dim
from catena.lax.indexing import gather
from catena.lax.join import concatenate
from catena.lax.linalg.algebra import (
    adjoint,
    as_inexact,
    check_matrix,
    check_square,
    columns,
    conjugate,
    constant_like,
    diagonal,
    eye_like,
    kernel_primitive,
    lower_mask,
    lower_to_host,
    lower_triangle,
    mm,
    rows,
    scalar,
    stacked,
    swap,
    symmetrized,
    take_rows,
    tril,
    triu,
)
from catena.lax.linalg.solve import triangular_solve
from catena.lax.scattering import scatter
from catena.lax.shape import broadcast, broadcasted_iota, pad, slice_in_dim
from catena.lax.structure import like
from catena.lax.whole import whole
from catena.lax.windowed import GatherDimensionNumbers, ScatterDimensionNumbers
from catena.runtime import lapack

# ------------------------------------------------------------------------------------------------------------
# cholesky


def _cholesky_abstract(x):
    check_square("cholesky", x)
    return ShapedArray(x.shape, x.dtype)


def _cholesky_jvp(primals, tangents):
    factor = cholesky_p.bind(*primals)
    if type(tangents[0]) is Zero:
        return factor, Zero.of_primal(factor)
    return factor, cholesky_tangent(tril(factor), tangents[0])


def cholesky_tangent(factor, t):
    """The tangent of a lower Cholesky factor for the tangent ``t`` of the matrix."""
    inner = triangular_solve(factor, t, lower=True, transpose_a=True, conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    aval = get_aval(inner)
    halves = np.tril(np.ones(aval.shape[-2:])) - 0.5 * np.eye(aval.shape[-1])
    return mm(factor, mul(inner, stacked(like(inner, halves), aval.shape)))


cholesky_p = kernel_primitive("cholesky", lapack.potrf, abstract=_cholesky_abstract, jvp=_cholesky_jvp)


@whole
def cholesky(x, *, symmetrize_input: bool = True):
    """The Cholesky factor: the lower triangular ``l`` with ``l l^H = x``.

    Arguments:
      x: a stack of Hermitian positive definite matrices.
      symmetrize_input: whether to factorise the Hermitian part of ``x``; if not, its lower triangle is read.
    Returns:
      The factors; NaN where a matrix is not positive definite.
    Raises:
      TypeError: the matrices are not square.

    >>> import numpy as np
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = as_inexact(x)
    check_square("cholesky", get_aval(x), TypeError if symmetrize_input else ValueError)
    if symmetrize_input:
        x = symmetrized(x)
    factor = cholesky_p.bind(x)
    return select_n(lower_mask(get_aval(factor).shape), constant_like(factor, 0), factor)


def _update_abstract(r, w):
    check_matrix("cholesky_update", r)
    if r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as input. "
            f"Got shapes {r.shape} and {w.shape} instead"
        )
    if r.dtype != w.dtype or r.dtype.kind == "c":
        raise TypeError(f"cholesky_update: both arguments must have one real dtype, got {r.dtype} and {w.dtype}")
    return ShapedArray(r.shape, r.dtype)


def _update_jvp(primals, tangents):
    """As the Cholesky factor of the updated matrix."""
    r, w = primals
    out = cholesky_update_p.bind(r, w)
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return out, Zero.of_primal(out)
    r, r_t = triu(r), triu(instantiate(tangents[0]))
    half = add(mm(swap(r_t), r), mul(rows(instantiate(tangents[1]), out), columns(w, out)))
    return out, swap(cholesky_tangent(swap(triu(out)), add(half, swap(half))))


def _update_lower(b, r, w, *, outs):
    """The triangular factor of ``r`` with ``w`` as one more row, its diagonal made positive."""
    *batch, n, _ = r.shape
    r, row = lower_triangle(b, r, keep_lower=False), b.reshape(w, (*batch, 1, n))
    packed, _ = b.library(
        "qr", [b.concatenate([r, row], len(batch))], [((*batch, n + 1, n), r.dtype), ((*batch, n), r.dtype)]
    )
    zeros, stop = (0,) * len(r.shape), (*batch, n, n)
    upper = lower_triangle(b, b.slice(packed, zeros, stop, (1,) * len(stop)), keep_lower=False)
    identity = b.broadcast_in_dim(b.constant(np.eye(n, dtype=r.dtype)), stop, (len(batch), len(batch) + 1))
    on_diagonal = b.reduce("sum", b.map("mul", upper, identity), (len(batch) + 1,))
    negative = b.map("lt", on_diagonal, b.full(on_diagonal.shape, np.zeros((), r.dtype)))
    flip = b.broadcast_in_dim(negative, stop, tuple(range(len(batch) + 1)))
    made = b.map("select", flip, b.map("neg", upper), upper)
    return [lower_triangle(b, made, keep_lower=False)]  # without zeros that have a sign by now


cholesky_update_p = kernel_primitive(
    "cholesky_update", lapack.cholesky_update, abstract=_update_abstract, jvp=_update_jvp, lower=_update_lower
)


@whole
def cholesky_update(r_matrix, w_vector):
    """The upper Cholesky factor of ``r^T r + w w^T``, from that of ``r^T r``.

    Arguments:
      r_matrix: a stack of upper triangular real matrices.
      w_vector: a stack of vectors.
    Returns:
      The updated factors.
    Raises:
      ValueError: shapes do not fit.

    >>> import numpy as np
    >>> cholesky_update(np.eye(2), np.array([0.0, 0.75]))
    Array([[1.  , 0.  ],
           [0.  , 1.25]], dtype=float32)
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


# ------------------------------------------------------------------------------------------------------------
# lu


def _lu_abstract(x):
    check_matrix("lu", x)
    *batch, m, n = x.shape
    pivots, permutation = (*batch, min(m, n)), (*batch, m)
    return [ShapedArray(x.shape, x.dtype), ShapedArray(pivots, np.int32), ShapedArray(permutation, np.int32)]


def _lu_jvp(primals, tangents):
    lu, pivots, permutation = lu_p.bind(*primals)
    zeros = [Zero.of_primal(pivots), Zero.of_primal(permutation)]
    if type(tangents[0]) is Zero:
        return [lu, pivots, permutation], [Zero.of_primal(lu), *zeros]
    t = take_rows(tangents[0], permutation)
    m, n = get_aval(lu).shape[-2:]
    k = min(m, n)
    lower = _filled(tril(slice_in_dim(lu, 0, k, axis=-1), -1), m, m, 0)
    upper = _filled(triu(slice_in_dim(lu, 0, k, axis=-2)), n, n, k)
    inner = triangular_solve(lower, t, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(upper, inner)
    lower = add(lower, eye_like(lower))
    moved = add(mm(lower, tril(inner, -1)), mm(triu(inner), upper))
    return [lu, pivots, permutation], [moved, *zeros]


def _filled(x, m: int, n: int, ones_from: int):
    """``x`` padded with zeros to ``m`` by ``n``; ones on the diagonal from ``ones_from`` on if it is > 0."""
    shape = get_aval(x).shape
    config = [(0, 0, 0)] * (len(shape) - 2) + [(0, m - shape[-2], 0), (0, n - shape[-1], 0)]
    padded = pad(x, scalar(x, 0), config)
    if not ones_from or ones_from >= n:
        return padded
    ones = np.diag((np.arange(n) >= ones_from).astype(get_aval(x).dtype))
    return add(padded, stacked(ones, get_aval(padded).shape))


def _lu_lower(b, x, *, outs):
    *batch, m, n = x.shape
    pivots = ((*batch, min(m, n)), np.dtype(np.int32))
    lu, exchanges, _ = b.library("lu", [x], [outs[0], pivots, (tuple(batch), np.dtype(np.int32))])
    return [lu, exchanges, _permutation_lower(b, exchanges, outs=None, permutation_size=m)[0]]


lu_p = kernel_primitive("lu", lapack.getrf, abstract=_lu_abstract, jvp=_lu_jvp, lower=_lu_lower, multiple_results=True)


@whole
def lu(x):
    """The LU factorisation with exchanged rows.

    Arguments:
      x: a stack of matrices.
    Returns:
      A list: both factors in one matrix, the unit lower one below the diagonal; the pivots, row ``i`` was
      exchanged with row ``pivots[i]``; and the permutation of rows that these make.
    Raises:
      ValueError: ``x`` has less than two axes. TypeError: it is not of floats.

    >>> import numpy as np
    >>> lu(np.array([[1.0, 2.0], [2.0, 3.0]]))[0]
    Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32)
    """
    return list(lu_p.bind(x))


def _permutation_abstract(pivots, *, permutation_size):
    if pivots.dtype != np.int32:
        raise TypeError(
            f"lu_pivots_to_permutation does not accept dtype {pivots.dtype} at position 0. Accepted dtypes at position "
            "0 are subtypes of int32."
        )
    if pivots.ndim < 1:
        raise TypeError(f"Input 0 to lu_pivots_to_permutation must have rank at least 1, but got shape={pivots.shape}")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of the pivots. Got "
            f"pivots size {pivots.shape[-1]}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), np.int32)


def _permutation_jvp(primals, tangents, **params):
    out = lu_pivots_to_permutation_p.bind(*primals, **params)
    return out, Zero.of_primal(out)


FEW = 4  # elements, of which each is chosen where it is read


def _exchanged_apart(pivots, size: int):
    """The permutation of a few elements by one exchange after the other, each a value of its own."""
    *batch, count = get_aval(pivots).shape
    order = [broadcast(np.int32(k), (*batch, 1)) for k in range(size)]
    for i in range(count):
        there = slice_in_dim(pivots, i, i + 1, axis=len(batch))
        found = own = order[i]
        for k in (k for k in range(size) if k != i):
            here = eq(there, np.int32(k))
            found, order[k] = select_n(here, found, order[k]), select_n(here, order[k], own)
        order[i] = found
    return concatenate(order, len(batch))


def _exchanged(pivots, *, permutation_size: int):
    """The permutation by one exchange after the other, in terms of lax, for compilation."""
    if 0 < permutation_size <= FEW:
        return _exchanged_apart(pivots, permutation_size)
    shape = get_aval(pivots).shape
    count, rank = shape[-1], len(shape)
    batch = tuple(range(rank - 1))
    start = broadcasted_iota(np.int32, (*shape[:-1], permutation_size), rank - 1)
    reads = GatherDimensionNumbers((), (rank - 1,), (rank - 1,), batch, batch)
    writes = ScatterDimensionNumbers((), (rank - 1,), (rank - 1,), batch, batch)

    def exchange(i, order):
        there = dynamic_slice_in_dim(pivots, i, 1, rank - 1)
        here = broadcast(convert_element_type(i, np.int32), (*shape[:-1], 1))
        at_here, at_there = (gather(order, p, reads, (1,) * rank) for p in (here, there))
        order = scatter(order, here, at_there, writes, unique_indices=True)
        return scatter(order, there, at_here, writes, unique_indices=True)

    return fori_loop(0, count, exchange, start) if count else start


@lru_cache(256)
def _exchanged_jaxpr(aval, size: int):
    info = DebugInfo("lu_pivots_to_permutation", "exchange")
    return trace_to_closed_jaxpr(lambda p: [_exchanged(p, permutation_size=size)], (aval,), info)[0]


def _permutation_lower(b, pivots, *, outs, permutation_size):
    def make(shape, given):
        return _exchanged_jaxpr(ShapedArray(shape, pivots.dtype), *given)

    return b.call(b.traced(make, pivots.shape, (permutation_size,)), [pivots])


lu_pivots_to_permutation_p = kernel_primitive(
    "lu_pivots_to_permutation",
    lapack.pivots_to_permutation,
    abstract=_permutation_abstract,
    jvp=_permutation_jvp,
    lower=_permutation_lower,
    attrs=lambda permutation_size: {"size": permutation_size},
)


@whole
def lu_pivots_to_permutation(pivots, permutation_size: int):
    """The permutation of rows that a sequence of exchanges makes.

    Arguments:
      pivots: int32; row ``i`` is exchanged with row ``pivots[i]``, one after the other.
      permutation_size: the number of rows.
    Returns:
      The permutation: row ``i`` of the result is row ``permutation[i]`` of what was permuted.
    Raises:
      ValueError: there are more pivots than rows. TypeError: the pivots are not int32.

    >>> import numpy as np
    >>> lu_pivots_to_permutation(np.array([2, 2, 3], np.int32), 5)
    Array([2, 0, 3, 1, 4], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=operator.index(permutation_size))


# ------------------------------------------------------------------------------------------------------------
# qr


def _qr_abstract(x, *, pivoting, full_matrices):
    check_matrix("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    outs = [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype)]
    return [*outs, ShapedArray((*batch, n), np.int32)] if pivoting else outs


def _qr_jvp(primals, tangents, *, pivoting, full_matrices):
    outs = qr_p.bind(*primals, pivoting=pivoting, full_matrices=full_matrices)
    q, r, *order = outs
    zeros = [Zero.of_primal(p) for p in order]
    t = tangents[0]
    if type(t) is Zero:
        return outs, [Zero.of_primal(q), Zero.of_primal(r), *zeros]
    if pivoting:
        t = swap(take_rows(swap(t), order[0]))
    return outs, [*_qr_tangents(q, r, t), *zeros]


def _qr_tangents(q, r, t):
    """The tangents of both factors; they are determined by the first min(m, n) columns."""
    m, n = get_aval(t).shape[-2:]
    k = min(m, n)
    q1, r1, t1 = (
        slice_in_dim(q, 0, k, axis=-1),
        slice_in_dim(slice_in_dim(r, 0, k, axis=-1), 0, k, axis=-2),
        slice_in_dim(t, 0, k, axis=-1),
    )
    scaled = triangular_solve(r1, t1)
    inner = mm(adjoint(q1), scaled)
    turn = _skew(inner)
    q_t = add(mm(q1, sub(turn, inner)), scaled)
    if get_aval(q).shape[-1] > k:  # the rest of the basis turns with the first part, and not in itself
        rest = slice_in_dim(q, k, get_aval(q).shape[-1], axis=-1)
        rest_t = neg(mm(q1, mm(adjoint(q_t), rest)))
        q_t = concatenate([q_t, rest_t], get_aval(q).ndim - 1)
    r_t = sub(mm(adjoint(q), t), mm(mm(adjoint(q), q_t), r))
    return q_t, triu(r_t)


def _skew(x):
    """The skew-Hermitian matrix with the lower triangle of ``x``."""
    lower = tril(x, -1)
    turn = sub(lower, adjoint(lower))
    if get_aval(x).dtype.kind != "c":
        return turn
    imaginary = mul(scalar(x, 0.5), sub(diagonal(x), conj(diagonal(x))))
    return add(turn, mul(columns(imaginary, turn), eye_like(turn)))


def _qr_kernel(x, *, pivoting, full_matrices):
    return (lapack.geqp3 if pivoting else lapack.geqrf)(x, full_matrices=full_matrices)


def _qr_lower(b, x, *, outs, pivoting, full_matrices):
    if pivoting:
        return lower_to_host(b, lapack.geqp3, [x], outs, full_matrices=full_matrices)
    *batch, m, n = x.shape
    k = min(m, n)
    packed, taus = b.library("qr", [x], [(x.shape, x.dtype), ((*batch, k), x.dtype)])
    count = m if full_matrices else k
    q = b.library("householder_product", [_resized_columns(b, packed, count), taus], [outs[0]])[0]
    rows = b.slice(packed, (0,) * len(x.shape), (*batch, count, n), (1,) * len(x.shape))
    return [q, lower_triangle(b, rows, keep_lower=False)]


def _resized_columns(b, x, count: int):
    """The first ``count`` columns of each matrix, with columns of zeros where there are not so many."""
    config = [(0, 0, 0)] * (len(x.shape) - 1) + [(0, count - x.shape[-1], 0)]
    return b.pad(x, b.constant(np.zeros((), x.dtype)), config)


qr_p = kernel_primitive("qr", _qr_kernel, abstract=_qr_abstract, jvp=_qr_jvp, lower=_qr_lower, multiple_results=True)


@whole
def qr(x, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None):
    """The QR factorisation.

    Arguments:
      x: a stack of matrices.
      pivoting: whether to permute columns so that the diagonal of ``r`` decreases; the permutation is
        returned too.
      full_matrices: whether ``q`` is square, or has only as many columns as are determined.
      use_magma: a choice of library for GPUs; None or False, as CPUs have one.
    Returns:
      ``q``, ``r``, and the permutation where ``pivoting`` is set: ``q r = x[:, permutation]``.
    Raises:
      ValueError: ``x`` has less than two axes, or ``use_magma`` is set. TypeError: it is not of floats.

    >>> import numpy as np
    >>> q, r = qr(np.array([[3.0, 1.0], [4.0, 2.0]]), full_matrices=False)
    >>> np.round(np.asarray(q) @ np.asarray(r), 4).tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    if use_magma:
        raise ValueError("qr: use_magma must be None or False: MAGMA is a library for GPUs")
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices)))


# ------------------------------------------------------------------------------------------------------------
# Products of Householder reflections


def _householder_abstract(a, taus):
    check_matrix("householder_product", a)
    if a.shape[-2] < a.shape[-1]:
        raise ValueError(
            f"The first argument to householder_product must have at least as many rows as columns, got shape {a.shape}"
        )
    if a.dtype != taus.dtype:
        raise TypeError(
            f"lax.householder_product requires arguments to have the same dtypes, got {a.dtype}, {taus.dtype}."
        )
    if a.shape[:-2] != taus.shape[:-1] or taus.shape[-1] > a.shape[-1]:
        raise ValueError(
            "The second argument to householder_product must have one number for each of at most the columns of the "
            f"first, and its dtype, got {a.str_short()} and {taus.str_short()}"
        )
    return ShapedArray(a.shape, a.dtype)


NO_DERIVATIVE = NoRule("its derivative is not implemented, as in JAX; differentiate qr instead")

householder_product_p = kernel_primitive(
    "householder_product", lapack.orgqr, abstract=_householder_abstract, jvp=NO_DERIVATIVE
)


def householder_product(a, taus):
    """The first columns of a product of Householder reflections.

    Arguments:
      a: a stack of matrices whose columns hold, below the diagonal, the reflections' vectors; the element on
        the diagonal counts as 1.
      taus: the reflections' factors: each is ``1 - tau v v^H``.
    Returns:
      A stack of matrices like ``a``.
    Raises:
      ValueError: shapes do not fit.

    >>> import numpy as np
    >>> householder_product(np.zeros((2, 1)), np.array([2.0]))
    Array([[-1.],
           [-0.]], dtype=float32)
    """
    return householder_product_p.bind(a, taus)


def _ormqr_abstract(a, taus, c, *, left, transpose):
    for position, x in enumerate((a, c)):
        check_matrix("ormqr", x, 2 * position)
    if len({x.dtype for x in (a, taus, c)}) > 1:
        raise TypeError(
            f"lax.ormqr requires arguments to have the same dtypes, got {a.dtype}, {taus.dtype}, {c.dtype}."
        )
    side = -2 if left else -1
    if c.shape[side] != a.shape[-2]:
        what = "rows" if left else "columns"
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of {what} as the Householder matrix a"
            f"{'' if left else ' has rows'}. Got a shape {a.shape} and c shape {c.shape}."
        )
    if a.shape[:-2] != taus.shape[:-1] or a.shape[:-2] != c.shape[:-2] or taus.shape[-1] > a.shape[-1]:
        raise ValueError(
            "ormqr expects a, taus and c to have the same batch dimensions, and at most one factor for each column of "
            f"a. Got shapes {a.shape}, {taus.shape} and {c.shape}."
        )
    return ShapedArray(c.shape, c.dtype)


def _ormqr_jvp(primals, tangents, **params):
    if type(tangents[0]) is not Zero or type(tangents[1]) is not Zero:
        raise NotImplementedError(
            "The derivative of ormqr with respect to the reflections is not implemented; differentiate qr instead"
        )
    out = ormqr_p.bind(*primals, **params)
    if type(tangents[2]) is Zero:
        return out, Zero.of_primal(out)
    return out, ormqr_p.bind(*primals[:2], tangents[2], **params)


def _ormqr_transpose(ct, a, taus, c, *, left, transpose):
    """The transpose of Q is the conjugate of its adjoint."""
    out = ormqr_p.bind(a, taus, conjugate(instantiate(ct)), left=left, transpose=not transpose)
    return [None, None, conjugate(out)]


def _ormqr_lower(b, a, taus, c, *, outs, left, transpose):
    """The product of reflections, written out, times the matrix."""
    *batch, m, _ = a.shape
    square = _resized_columns(b, a, m)
    q = b.library("householder_product", [square, taus], [(square.shape, a.dtype)])[0]
    n, dims = len(a.shape), tuple(range(len(batch)))
    q = b.map("conj", q) if transpose and np.dtype(a.dtype).kind == "c" else q
    side = n - 2 if transpose == left else n - 1  # the axis of q that is summed over
    if left:
        return [b.dot_general(q, c, (((side,), (n - 2,)), (dims, dims)), c.dtype)]
    return [b.dot_general(c, q, (((n - 1,), (side,)), (dims, dims)), c.dtype)]


ormqr_p = kernel_primitive(
    "ormqr",
    lapack.ormqr,
    abstract=_ormqr_abstract,
    jvp=_ormqr_jvp,
    transpose=_ormqr_transpose,
    lower=_ormqr_lower,
)


def ormqr(a, taus, c, *, left: bool = True, transpose: bool = False):
    """A matrix multiplied by the full product of Householder reflections.

    Arguments:
      a, taus: the reflections, as for ``householder_product``.
      c: the matrix to multiply.
      left: whether the product of reflections stands at the left.
      transpose: whether to take its (conjugate) transpose.
    Returns:
      A stack of matrices like ``c``.
    Raises:
      ValueError: shapes do not fit. TypeError: dtypes differ.

    >>> import numpy as np
    >>> ormqr(np.zeros((2, 1)), np.array([2.0]), np.eye(2))
    Array([[-1.,  0.],
           [ 0.,  1.]], dtype=float32)
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))
