"""Eigenvalues, and the forms that lead to them: Schur, Hessenberg and tridiagonal.

Source of the derivatives: Giles (2008), as in ``factor.py``; of eigenvectors' normalisation: Boeddeker et
al., "On the computation of complex-valued gradients" (2017).
"""

from __future__ import annotations

import enum

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.primitive import NoRule
from catena.core.structural import reduce_sum_p
from catena.core.zeros import Zero, get_aval
from catena.lax.arithmetic import abs as abs_
from catena.lax.arithmetic import div, mul, sub
from catena.lax.comparison import eq
from catena.lax.complex_numbers import complex as complex_
from catena.lax.complex_numbers import conj, imag, real
from catena.lax.convert import convert_element_type
from catena.lax.linalg.algebra import (
    adjoint,
    as_inexact,
    check_square,
    columns,
    diagonal,
    inverse_differences,
    kernel_primitive,
    lower_to_host,
    mm,
    symmetrized,
)
from catena.lax.linalg.factor import lu_p
from catena.lax.linalg.solve import solve_with_lu
from catena.lax.reductions import reduce_max_p
from catena.lax.shape import slice_in_dim
from catena.lax.whole import whole
from catena.runtime import lapack


class EigImplementation(enum.Enum):
    """Libraries for eigenvalues of general matrices; on a CPU there is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Algorithms for eigenvalues of Hermitian matrices; on a CPU there is LAPACK's, named QR."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


# ------------------------------------------------------------------------------------------------------------
# eigh


def _eigh_abstract(x, *, lower, compute_eigenvectors=True):
    check_square("eigh", x)
    values = ShapedArray(x.shape[:-1], dtypes.to_real_dtype(x.dtype))
    return [ShapedArray(x.shape, x.dtype), values] if compute_eigenvectors else [values]


def _eigh_jvp(primals, tangents, *, lower, compute_eigenvectors=True):
    if type(tangents[0]) is Zero:
        outs = eigh_p.bind(*primals, lower=lower, compute_eigenvectors=compute_eigenvectors)
        return outs, [Zero.of_primal(out) for out in outs]
    v, w = eigh_p.bind(*primals, lower=lower, compute_eigenvectors=True)
    inner = mm(adjoint(v), tangents[0], v)
    values = diagonal(inner)
    values = real(values) if get_aval(v).dtype.kind == "c" else values
    if not compute_eigenvectors:
        return [w], [values]
    turn = mul(inverse_differences(convert_element_type(w, get_aval(v).dtype), v), inner)
    return [v, w], [mm(v, turn), values]


eigh_p = kernel_primitive("eigh", lapack.syevd, abstract=_eigh_abstract, jvp=_eigh_jvp, multiple_results=True)


@whole
def eigh(
    x,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
):
    """Eigenvectors and eigenvalues of Hermitian matrices.

    Arguments:
      x: a stack of Hermitian matrices.
      lower: which triangle is read where the input is not symmetrised.
      symmetrize_input: whether to take the Hermitian part of ``x``.
      sort_eigenvalues: whether the eigenvalues must ascend; they always do.
      subset_by_index: start and end of the range of eigenvalues to return, in ascending order; all by
        default.
      implementation: the algorithm; None or ``EighImplementation.QR``.
    Returns:
      The eigenvectors in columns, and the eigenvalues; NaN where the algorithm fails.
    Raises:
      TypeError: the matrices are not square. ValueError: the range is not valid.
      NotImplementedError: the algorithm is one for accelerators.

    >>> import numpy as np
    >>> eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)
    """
    if implementation is not None and EighImplementation(implementation) is not EighImplementation.QR:
        name = EighImplementation(implementation).name.capitalize()
        raise NotImplementedError(f"{name} implementation is not supported on CPU")
    x = _hermitian(x, symmetrize_input)
    v, w = eigh_p.bind(x, lower=bool(lower), compute_eigenvectors=True)
    if subset_by_index is None:
        return v, w
    start, end = subset_by_index
    n = get_aval(w).shape[-1]
    if not 0 <= start < end <= n:
        raise ValueError(f"subset_by_index must be a range in the {n} eigenvalues, got {subset_by_index}")
    return slice_in_dim(v, start, end, axis=-1), slice_in_dim(w, start, end, axis=-1)


def hermitian_eigenvalues(x, *, lower: bool = True, symmetrize_input: bool = True):
    """The eigenvalues that `eigh` gives, but for their last digits, in a third to two thirds of its time."""
    x = _hermitian(x, symmetrize_input)
    return eigh_p.bind(x, lower=bool(lower), compute_eigenvectors=False)[0]


def _hermitian(x, symmetrize_input: bool):
    x = as_inexact(x)
    check_square("eigh", get_aval(x), TypeError if symmetrize_input else ValueError)
    return symmetrized(x) if symmetrize_input else x


# ------------------------------------------------------------------------------------------------------------
# eig


def _eig_abstract(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs):
    check_square("eig", x)
    dtype = dtypes.to_complex_dtype(x.dtype)
    vectors = [ShapedArray(x.shape, dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)
    return [ShapedArray(x.shape[:-1], dtype), *vectors]


def _eig_jvp(primals, tangents, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs):
    has_vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if has_vectors and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the input that cannot be "
            "checked (see the enable_eigvec_derivs argument to lax.linalg.eig). Pass enable_eigvec_derivs=True to "
            "lax.linalg.eig to opt in."
        )
    (x,), (t,) = primals, tangents
    outs = eig_p.bind(
        x,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=True,
        enable_eigvec_derivs=True,  # what follows depends on the vectors only in ways that are differentiable
    )
    w, right = outs[0], outs[-1]
    kept = outs if compute_right_eigenvectors else outs[:-1]
    if type(t) is Zero:
        return kept, [Zero.of_primal(o) for o in kept]
    t = convert_element_type(t, get_aval(w).dtype)
    inner, moved = _vectors_tangent(w, right, t)
    out_tangents = [diagonal(inner)]
    if compute_left_eigenvectors:
        out_tangents.append(_vectors_tangent(conj(w), outs[1], adjoint(t))[1])
    return kept, out_tangents + [moved] * compute_right_eigenvectors


def _vectors_tangent(w, v, t):
    """``v^-1 t v``, whose diagonal is the eigenvalues' tangent, and the normalised eigenvectors' tangent."""
    factors, _, permutation = lu_p.bind(v)
    inner = solve_with_lu(factors, permutation, mm(t, v))
    moved = mm(v, mul(inverse_differences(w, v), inner))
    return inner, _along_normalised(v, moved)


def _along_normalised(v, t):
    """``t`` without what would change the norm of a column of ``v``, or the phase of its largest element."""
    axis = get_aval(v).ndim - 2
    length = reduce_sum_p.bind(real(mul(conj(v), t)), axes=(axis,))
    size = abs_(v)
    largest = eq(size, columns(reduce_max_p.bind(size, axes=(axis,)), size))
    mask = convert_element_type(largest, get_aval(size).dtype)
    turned = reduce_sum_p.bind(mul(mask, imag(mul(t, conj(v)))), axes=(axis,))
    weight = reduce_sum_p.bind(mul(mask, mul(size, size)), axes=(axis,))
    return sub(t, mul(v, columns(complex_(length, div(turned, weight)), v)))


eig_p = kernel_primitive(
    "eig",
    lapack.geev,
    abstract=_eig_abstract,
    jvp=_eig_jvp,
    attrs=lambda compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs: {
        "left": compute_left_eigenvectors,
        "right": compute_right_eigenvectors,
    },
    multiple_results=True,
)


@whole
def eig(
    x,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | str | None = None,
    use_magma: bool | None = None,
):
    """Eigenvalues and eigenvectors of general matrices.

    Arguments:
      x: a stack of square matrices.
      compute_left_eigenvectors: whether to return ``l`` with ``l^H x = w l^H``.
      compute_right_eigenvectors: whether to return ``r`` with ``x r = r w``.
      enable_eigvec_derivs: whether eigenvectors may be differentiated, which is right only where eigenvalues
        are distinct.
      implementation, use_magma: choices of library for accelerators; CPUs have LAPACK.
    Returns:
      A list: eigenvalues, and left and right eigenvectors as asked for, in columns of norm 1; all complex.
      NaN where a matrix is not finite or the algorithm fails.
    Raises:
      ValueError: the matrices are not square, or ``implementation`` is unknown.

    >>> import numpy as np
    >>> eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if implementation is not None:
        EigImplementation(implementation)
    if use_magma not in (None, True, False):
        raise ValueError(f"eig: use_magma must be a bool or None, got {use_magma!r}")
    return list(
        eig_p.bind(
            x,
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
        )
    )


# ------------------------------------------------------------------------------------------------------------
# Schur, Hessenberg and tridiagonal forms

NO_DERIVATIVE = NoRule("its derivative is not implemented, as in JAX")


def _schur_abstract(x, *, compute_schur_vectors, select_callable):
    check_square("schur", x)
    return [ShapedArray(x.shape, x.dtype)] * (1 + compute_schur_vectors)


def _schur_lower(b, x, *, outs, compute_schur_vectors, select_callable):
    if select_callable is not None:
        attrs = {"compute_schur_vectors": compute_schur_vectors, "select": select_callable}
        return lower_to_host(b, lapack.gees, [x], outs, **attrs)
    return b.library("schur", [x], outs, compute_vectors=compute_schur_vectors)


schur_p = kernel_primitive(
    "schur",
    lapack.gees,
    abstract=_schur_abstract,
    jvp=NO_DERIVATIVE,
    attrs=lambda compute_schur_vectors, select_callable: {
        "compute_schur_vectors": compute_schur_vectors,
        "select": select_callable,
    },
    lower=_schur_lower,
    multiple_results=True,
)


@whole
def schur(x, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable=None):
    """The Schur decomposition ``x = q t q^H`` with unitary ``q`` and (block) triangular ``t``.

    Arguments:
      x: a stack of square matrices.
      compute_schur_vectors: whether to return ``q``.
      sort_eig_vals: whether eigenvalues that ``select_callable`` selects come first.
      select_callable: from an eigenvalue, a Python complex number, to a bool.
    Returns:
      A list: ``t``, for real matrices with a block of two rows for each conjugate pair; and ``q`` if asked
      for. NaN where a matrix is not finite or the algorithm fails.
    Raises:
      ValueError: the matrices are not square, or sorting is asked for without a function to select by.

    >>> import numpy as np
    >>> np.asarray(schur(np.array([[1.0, 2.0], [0.0, 3.0]]))[0]).round(4).tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if sort_eig_vals and not callable(select_callable):
        raise ValueError(f"schur: sort_eig_vals needs a function select_callable, got {select_callable!r}")
    select = select_callable if sort_eig_vals else None
    return list(schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors), select_callable=select))


def _hessenberg_abstract(a):
    if a.ndim >= 2 and a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to Hessenberg reduction must have shape [..., n, n], got shape {a.shape}")
    check_square("hessenberg", a)
    taus = (*a.shape[:-2], max(a.shape[-1] - 1, 0))
    return [ShapedArray(a.shape, a.dtype), ShapedArray(taus, a.dtype)]


hessenberg_p = kernel_primitive(
    "hessenberg", lapack.gehrd, abstract=_hessenberg_abstract, jvp=NO_DERIVATIVE, multiple_results=True
)


@whole
def hessenberg(a):
    """The Hessenberg form ``q^H a q``, zero below the first subdiagonal.

    Arguments:
      a: a stack of square matrices.
    Returns:
      A list: the form, with the vectors of the reflections whose product is ``q`` below the subdiagonal, and
      the reflections' factors.
    Raises:
      ValueError: the matrices are not square.

    >>> import numpy as np
    >>> hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return list(hessenberg_p.bind(a))


def _tridiagonal_abstract(a, *, lower):
    check_square("tridiagonal", a)
    real_dtype = dtypes.to_real_dtype(a.dtype)
    *batch, n = a.shape[:-1]
    beside = (*batch, max(n - 1, 0))
    return [
        ShapedArray(a.shape, a.dtype),
        ShapedArray((*batch, n), real_dtype),
        ShapedArray(beside, real_dtype),
        ShapedArray(beside, a.dtype),
    ]


tridiagonal_p = kernel_primitive(
    "tridiagonal", lapack.sytrd, abstract=_tridiagonal_abstract, jvp=NO_DERIVATIVE, multiple_results=True
)


@whole
def tridiagonal(a, *, lower: bool = True):
    """The tridiagonal form ``q^H a q`` of Hermitian matrices.

    Arguments:
      a: a stack of Hermitian matrices, of which one triangle is read.
      lower: which one.
    Returns:
      A list: the form, with the vectors of the reflections whose product is ``q`` in the triangle that was
      read; its diagonal; the diagonal beside it; and the reflections' factors.
    Raises:
      ValueError: the matrices are not square.

    >>> import numpy as np
    >>> tridiagonal(np.array([[2.0, 1.0], [1.0, 3.0]]))[1]
    Array([2., 3.], dtype=float32)
    """
    return list(tridiagonal_p.bind(a, lower=bool(lower)))
