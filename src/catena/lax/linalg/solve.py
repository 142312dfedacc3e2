"""Triangular and tridiagonal systems."""

from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate
from catena.lax.arithmetic import add_p, mul, neg, sub
from catena.lax.linalg.algebra import (
    check_matrix,
    conjugate,
    kernel_primitive,
    lower_to_host,
    mm,
    put_rows,
    rows,
    scalar,
    swap,
    take_rows,
    tril,
    triu,
)
from catena.lax.shape import expand_dims, pad, reshape, squeeze
from catena.lax.whole import whole
from catena.runtime import lapack

# ------------------------------------------------------------------------------------------------------------
# triangular_solve


def _triangular_abstract(a, b, *, left_side, **params):
    for position, x in enumerate((a, b)):
        check_matrix("triangular_solve", x, position)
    if a.dtype != b.dtype:
        raise TypeError(f"lax.triangular_solve requires arguments to have the same dtypes, got {a.dtype}, {b.dtype}.")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The first input to triangular_solve must be a square matrix. Got shape {a.shape}.")
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
    return ShapedArray(b.shape, b.dtype)


def _triangular_jvp(primals, tangents, **params):
    a, b = primals
    a_t, b_t = tangents
    x = triangular_solve_p.bind(a, b, **params)
    total = Zero.of_primal(x)
    if type(b_t) is not Zero:
        total = triangular_solve_p.bind(a, b_t, **params)
    if type(a_t) is not Zero:
        total = add_tangents(total, triangular_solve_p.bind(a, neg(_applied(a_t, x, **params)), **params))
    return x, total


def _applied(a, x, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """The triangle of ``a`` that the system reads, applied to ``x``."""
    triangle = tril(a, -int(unit_diagonal)) if lower else triu(a, int(unit_diagonal))
    if transpose_a:
        triangle = swap(triangle)
    if conjugate_a:
        triangle = conjugate(triangle)
    return mm(triangle, x) if left_side else mm(x, triangle)


def _triangular_transpose(ct, a, b, *, transpose_a, **params):
    out = triangular_solve_p.bind(a, instantiate(ct), transpose_a=not transpose_a, **params)
    return [None, out]


def _of_one_matrix(solve, b, b_dim: int, behind: int):
    """A batch of right-hand sides as more of them for one matrix: columns where the batch becomes the last axis
    (`behind` 1), rows where it becomes the last but two (3). Returns the solutions and the axis of the batch.
    """
    b = move_axis(b, b_dim, get_aval(b).ndim - behind)
    shape = get_aval(b).shape
    d = len(shape) - max(behind, 2)  # it and the next become one
    merged = reshape(b, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
    return reshape(solve(merged), shape), len(shape) - behind


def _triangular_batch(axis, args, dims, *, left_side, **params):
    (a, b), (a_dim, b_dim) = args, dims
    if a_dim is None:
        solve = lambda b: triangular_solve_p.bind(a, b, left_side=left_side, **params)  # noqa: E731
        return _of_one_matrix(solve, b, b_dim, 1 if left_side else 3)
    a, b = at_front(axis.size, a, a_dim), at_front(axis.size, b, b_dim)
    return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0


triangular_solve_p = kernel_primitive(
    "triangular_solve",
    lapack.trsm,
    abstract=_triangular_abstract,
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    batch=_triangular_batch,
)


@whole
def triangular_solve(
    a,
    b,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
):
    """The solution ``x`` of ``op(a) x = b`` or ``x op(a) = b`` for triangular ``a``.

    Arguments:
      a: a stack of square matrices, of which one triangle is read.
      b: a stack of right-hand sides; may be one vector for each matrix where ``left_side`` is set.
      left_side: whether ``a`` stands at the left of ``x``.
      lower: which triangle of ``a`` is read.
      transpose_a, conjugate_a: whether ``op`` transposes and conjugates.
      unit_diagonal: whether to take the diagonal of ``a`` for ones.
    Returns:
      An array like ``b``. Where ``a`` is singular it holds infinities and NaNs.
    Raises:
      ValueError: shapes do not fit. TypeError: dtypes are not floats or differ.

    >>> import numpy as np
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> triangular_solve(a, np.array([2.0, 9.0]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    vector = get_aval(b).ndim == get_aval(a).ndim - 1
    if vector:
        n = get_aval(b).ndim
        b = expand_dims(b, (n if left_side else n - 1,))
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return squeeze(out, (n if left_side else n - 1,)) if vector else out


def solve_with_lu(lu, permutation, b):
    """The solution of a system whose matrix has these LU factors."""
    b = take_rows(b, permutation)
    b = triangular_solve(lu, b, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(lu, b, left_side=True)


def solve_transposed_with_lu(lu, permutation, b):
    """The solution of a system whose matrix is the transpose of one that has these LU factors."""
    b = triangular_solve(lu, b, left_side=True, transpose_a=True)
    b = triangular_solve(lu, b, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    return put_rows(b, permutation)


# ------------------------------------------------------------------------------------------------------------
# tridiagonal_solve


def _tridiagonal_abstract(dl, d, du, b, *, perturb_singular):
    if not dl.shape == d.shape == du.shape:
        raise TypeError("tridiagonal_solve requires that all diagonal arguments have the same shape.")
    if b.ndim < 2:
        raise TypeError(f"Input 3 to tridiagonal_solve must have rank at least 2, but got shape={b.shape}")
    check_matrix("tridiagonal_solve", b, 3)
    if len({x.dtype for x in (dl, d, du, b)}) > 1:
        raise TypeError(
            "lax.tridiagonal_solve requires arguments to have the same dtypes, got "
            f"{', '.join(str(x.dtype) for x in (dl, d, du, b))}."
        )
    if b.shape[:-1] != d.shape:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the dimensions of the diagonal "
            f"arguments, got b of shape {b.shape} and diagonals of shape {d.shape}."
        )
    return ShapedArray(b.shape, b.dtype)


def _shifted(x, by: int):
    """``x`` with its rows moved down by ``by``, zeros moving in."""
    axis = get_aval(x).ndim - 2
    n = get_aval(x).shape[axis]
    config = [(0, 0, 0)] * (axis + 2)
    config[axis] = (by, -by, 0)
    return pad(x, scalar(x, 0), config) if n else x


def tridiagonal_product(dl, d, du, x):
    """The product of a tridiagonal matrix with ``x``."""
    middle = mul(rows(d, x), x)
    above = mul(rows(du, x), _shifted(x, -1))
    return add_p.bind(add_p.bind(middle, above), mul(rows(dl, x), _shifted(x, 1)))


def _tridiagonal_jvp(primals, tangents, *, perturb_singular):
    dl, d, du, b = primals
    x = tridiagonal_solve_p.bind(*primals, perturb_singular=perturb_singular)
    if all(type(t) is Zero for t in tangents):
        return x, Zero.of_primal(x)
    right = instantiate(tangents[3])
    if any(type(t) is not Zero for t in tangents[:3]):
        right = sub(right, tridiagonal_product(*[instantiate(t) for t in tangents[:3]], x))
    return x, tridiagonal_solve_p.bind(dl, d, du, right, perturb_singular=perturb_singular)


def _tridiagonal_transpose(ct, dl, d, du, b, *, perturb_singular):
    """The transposed matrix has the outer diagonals exchanged, each moved by one place."""
    axis = get_aval(d).ndim - 1
    config = [(0, 0, 0)] * axis
    below = pad(du, scalar(du, 0), [*config, (1, -1, 0)])
    above = pad(dl, scalar(dl, 0), [*config, (-1, 1, 0)])
    out = tridiagonal_solve_p.bind(below, d, above, instantiate(ct), perturb_singular=perturb_singular)
    return [None, None, None, out]


def _tridiagonal_batch(axis, args, dims, **params):
    if any(dim is not None for dim in dims[:3]):
        args = [at_front(axis.size, x, dim) for x, dim in zip(args, dims, strict=True)]
        return tridiagonal_solve_p.bind(*args, **params), 0
    *diagonals, b = args
    return _of_one_matrix(lambda b: tridiagonal_solve_p.bind(*diagonals, b, **params), b, dims[3], 1)


def _tridiagonal_lower(b, *xs, outs, perturb_singular):
    if perturb_singular:
        return lower_to_host(b, lapack.gtsv, xs, outs, perturb_singular=True)
    return b.library("tridiagonal_solve", list(xs), outs)


tridiagonal_solve_p = kernel_primitive(
    "tridiagonal_solve",
    lapack.gtsv,
    abstract=_tridiagonal_abstract,
    jvp=_tridiagonal_jvp,
    transpose=_tridiagonal_transpose,
    batch=_tridiagonal_batch,
    lower=_tridiagonal_lower,
)


def tridiagonal_solve(dl, d, du, b, *, perturb_singular: bool = False):
    """The solution of a system with a tridiagonal matrix.

    Arguments:
      dl: the diagonal below, ``dl[i]`` in row ``i``; ``dl[0]`` is not read.
      d: the main diagonal.
      du: the diagonal above, ``du[i]`` in row ``i``; the last one is not read.
      b: the right-hand sides, one in each column.
      perturb_singular: whether to shift the main diagonal by a rounding error where the matrix is singular.
    Returns:
      The solutions, like ``b``; NaN where the matrix is singular.
    Raises:
      TypeError: shapes or dtypes do not fit.

    >>> import numpy as np
    >>> ones = np.ones(3)
    >>> tridiagonal_solve(ones, 2 * ones, ones, np.array([[3.0], [4.0], [3.0]]))
    Array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))
