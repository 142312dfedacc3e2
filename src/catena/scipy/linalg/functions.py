"""Functions of matrices: the exponential and its derivative, the square root, and others by their values on numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.scipy.linalg.arguments import adjoint, check_square, inexact
from catena.scipy.linalg.schur_forms import rsf2csf, triangular_form
from catena.scipy.linalg.systems import solve_sylvester
from catena.scipy.linalg.triangular import by_columns, column_of, diagonal_of, shifted
from catena.transform.custom_jvp import custom_jvp
from catena.transform.grad import jvp
from catena.transform.jit import jit
from catena.transform.vmap import vmap
from catena.typing import ArrayLike

# ------------------------------------------------------------------------------------------------------------
# The exponential

# Of the Padé approximation with denominators of this degree, the coefficients, the lowest first; and the norm up to
# which its backward error is below rounding (Higham 2005, table 2.3; for single precision, Higham 2008, chapter 10).
_PADE_7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
_PADE_13 = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600),
    *(670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)
_PADE = {np.dtype("float32"): (_PADE_7, 3.925724783138660), np.dtype("float64"): (_PADE_13, 5.371920351148152)}


@whole
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:  # noqa: N803
    """The exponentials of matrices.

    Arguments:
      A: a stack of matrices ``(..., n, n)``, of float32, float64 or their complex kin; integers become floats.
      upper_triangular: a promise that they are, which saves half of the work.
      max_squarings: the result is NaN for matrices of so large a norm that they were to be halved more often.
    Returns:
      An array like ``A``.
    Raises:
      TypeError: the dtype is not supported. ValueError: the matrices are not square.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (a,) = inexact(A)
    check_square("expm", a)
    if dtypes.to_real_dtype(a.dtype) not in _PADE:
        raise TypeError(f"expm: A must be of float32, float64, complex64 or complex128, got {a.dtype}")
    return _expm(a, bool(upper_triangular), max_squarings) if a.size else a


@partial(jit, static_argnums=(1, 2))
def _expm(a, upper_triangular: bool, max_squarings):
    one = partial(_expm_of_one, upper_triangular=upper_triangular, max_squarings=max_squarings)
    for _ in range(a.ndim - 2):
        one = vmap(one)
    return one(a)


def _expm_of_one(a, *, upper_triangular: bool, max_squarings):
    coefficients, most = _PADE[dtypes.to_real_dtype(a.dtype)]
    norm = lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(a), axis=0)))
    halvings = jnp.maximum(jnp.ceil(jnp.log2(norm / most)), 0)
    scaled = a * jnp.exp2(-halvings).astype(a.dtype)
    odd, even = _pade(scaled, [np.asarray(c, a.dtype) for c in coefficients])
    if upper_triangular:
        result = lax.linalg.triangular_solve(even - odd, even + odd, left_side=True)
    else:
        result = jnp.linalg.solve(even - odd, even + odd)
    count = jnp.where(jnp.isfinite(halvings), halvings, 0).astype("int32")
    result = lax.fori_loop(0, count, lambda _, x: x @ x, result)
    return jnp.where(norm < most * 2.0 ** (max_squarings + 1), result, jnp.nan)


def _pade(a, c) -> tuple:
    """The odd and the even part of the numerator; those of the denominator are the same, the odd one negated."""
    identity = jnp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = c[1] * identity + c[3] * a2 + c[5] * a4 + c[7] * a6
    even = c[0] * identity + c[2] * a2 + c[4] * a4 + c[6] * a6
    if len(c) > 8:
        odd = odd + a6 @ (c[9] * a2 + c[11] * a4 + c[13] * a6)
        even = even + a6 @ (c[8] * a2 + c[10] * a4 + c[12] * a6)
    return a @ odd, even


@whole
def expm_frechet(
    A: ArrayLike,  # noqa: N803
    E: ArrayLike,  # noqa: N803
    *,
    method: str | None = None,
    compute_expm: bool = True,
) -> Array | tuple[Array, Array]:
    """The derivative of the exponential at ``A`` in direction ``E``.

    Arguments:
      A: a stack of matrices ``(..., n, n)``, as for ``expm``.
      E: a stack of matrices like ``A``.
      method: None, "SPS" or "blockEnlarge"; all are computed as "SPS".
      compute_expm: whether to return the exponential, too.
    Returns:
      The tuple ``(exponential, derivative)``, or the derivative alone.
    Raises:
      ValueError: the matrices are not square, or not of the same shape, or the method is unknown.
      TypeError: they have different dtypes, or not of floats.

    Source: Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix exponential, with an application to
    condition number estimation" (2009): scaling and squaring, differentiated.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.expm_frechet(jnp.zeros((1, 1)), jnp.array([[3.0]]), compute_expm=False)
    Array([[3.]], dtype=float32)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"expm_frechet: method must be None, 'SPS' or 'blockEnlarge', got {method!r}")
    a, e = jnp.asarray(A), jnp.asarray(E)
    check_square("expm_frechet", a)
    check_square("expm_frechet", e)
    if a.shape != e.shape:
        raise ValueError(f"expm_frechet: A and E must have one shape, got {a.shape} and {e.shape}")
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


# ------------------------------------------------------------------------------------------------------------
# By the Schur form


@whole
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:  # noqa: N803
    """The principal square root of a matrix.

    Arguments:
      A: a matrix ``(n, n)``.
      blocksize: not used: the algorithm has no blocks that depend on it.
    Returns:
      A complex array of shape ``(n, n)``; NaN where there is no square root.
    Raises:
      TypeError: ``A`` has less than two dimensions. ValueError: it is not one square matrix.

    Source: Björck and Hammarling, "A Schur method for the square root of a matrix" (1983). The derivative ``t`` at
    the root ``x`` solves ``x t + t x = dA`` (Higham, "Functions of matrices", 2008).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.sqrtm(jnp.array([[4.0, 1.0], [0.0, 4.0]])).real
    Array([[2.  , 0.25],
           [0.  , 2.  ]], dtype=float32)
    """
    a = jnp.asarray(A)
    if a.ndim < 2:
        raise TypeError(f"sqrtm: A must be a matrix, got shape {a.shape}")
    if a.ndim > 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"sqrtm: A must be one square matrix, got shape {a.shape}")
    return _sqrtm(a) if a.size else a.astype(dtypes.to_complex_dtype(a.dtype))


@custom_jvp
@jit
def _sqrtm(a):
    t, z = triangular_form(a)
    d = jnp.sqrt(diagonal_of(t))
    root = by_columns(d, lambda f, j: shifted(f, d, j), lambda f, j: column_of(t, j))
    without = (d[:, None] + d[None, :] == 0) & (jnp.triu(root, 1) != 0)
    return z @ jnp.where(without.any(), jnp.nan, root) @ adjoint(z)


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    root = _sqrtm(*primals)
    return root, solve_sylvester(root, root, *tangents)


@whole
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Array | tuple[Array, Array]:  # noqa: N803
    """A function of a matrix, given by its values on numbers; for matrices of distinct eigenvalues.

    Arguments:
      A: a matrix ``(n, n)`` of floats.
      func: from a vector of eigenvalues to the vector of the function's values.
      disp: whether to return the result alone; if not, an estimate of its relative error comes with it.
    Returns:
      A complex array of shape ``(n, n)``; or the tuple ``(array, error)``, with 1 for an error that is not known.
    Raises:
      ValueError: ``A`` is not one square matrix, or ``func`` returns no vector of its length.
      TypeError: ``A`` is not of floats.

    Source: Parlett's recurrence, in Golub and Van Loan, "Matrix computations" (1996), algorithm 11.1.1.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.funm(jnp.array([[1.0, 1.0], [0.0, 2.0]]), lambda x: x * x).real.round(4)
    Array([[1., 3.],
           [0., 4.]], dtype=float32)
    """
    a = jnp.asarray(A)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"funm: A must be one square matrix, got shape {a.shape}")
    if not a.size:
        result, error = a.astype(dtypes.to_complex_dtype(a.dtype)), jnp.zeros((), dtypes.to_real_dtype(a.dtype))
    else:
        t, z = _complex_form(a)
        values = func(diagonal_of(t))
        if jnp.shape(values) != (len(a),):
            raise ValueError(f"funm: func must return a vector of length {len(a)}, got shape {jnp.shape(values)}")
        result, error = _funm(t, z, jnp.asarray(values).astype(t.dtype))
    return result if disp else (result, error)


def _complex_form(a) -> list:
    """The complex Schur form; of real matrices from the real one, so that dtypes without one are refused."""
    form = lax.linalg.schur(a)
    return list(form) if dtypes.is_complex(a.dtype) else list(rsf2csf(*form))


@jit
def _funm(t, z, values):
    """Column by column: ``f t = t f`` says ``(t - t_jj) f_j = (f - f_jj) t_j`` above the diagonal."""
    d = diagonal_of(t)
    f = by_columns(
        values, lambda _, j: shifted(t, -d, j), lambda f, j: shifted(jnp.triu(f), -values, j) @ column_of(t, j)
    )
    result = z @ f @ adjoint(z)
    eps = float(dtypes.finfo(t.dtype).eps)
    pairs = jnp.triu(jnp.ones(t.shape, bool), 1)
    gap = jnp.min(jnp.where(pairs, jnp.abs(d[:, None] - d[None, :]), jnp.abs(t[0, 0])))
    gap = jnp.where(gap == 0, eps, gap)
    size = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), axis=0))
    error = jnp.minimum(1, jnp.maximum(eps, eps / gap * size))
    return result, jnp.where(jnp.isfinite(f).all(), error, jnp.inf)
