"""Eigenvalues of Hermitian and of tridiagonal matrices."""

from __future__ import annotations

import math
import operator
from functools import partial

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.linalg.eigen import hermitian_eigenvalues
from catena.lax.whole import whole
from catena.numpy.boundary import concrete_or_error
from catena.scipy.linalg.arguments import inexact
from catena.transform.custom_jvp import custom_jvp
from catena.transform.jit import jit
from catena.typing import ArrayLike


@whole
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Arguments:
      a: a stack of matrices ``(..., n, n)``, of which the Hermitian part is taken.
      b: None: the generalised problem is not there.
      lower: not used, since both triangles are read.
      eigvals_only: whether to return the eigenvalues alone.
      overwrite_a, overwrite_b, turbo, check_finite: not used.
      eigvals: None, for all eigenvalues.
      type: 1.
    Returns:
      The eigenvalues, in ascending order; or the tuple of these and of the eigenvectors in columns.
    Raises:
      NotImplementedError: ``b``, ``eigvals`` or ``type`` is anything else, as in JAX.
      TypeError: the matrices are not square.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError("eigh: b must be None: the generalised problem is not implemented")
    if type != 1:
        raise NotImplementedError(f"eigh: type must be 1: the generalised problem is not implemented; got {type!r}")
    if eigvals is not None:
        raise NotImplementedError(f"eigh: eigvals must be None, got {eigvals!r}; take a slice of the result")
    (a,) = inexact(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise TypeError(f"eigh: expected square matrices of shape (..., n, n), got shape {a.shape}")
    if eigvals_only:
        return hermitian_eigenvalues(a, lower=lower)
    vectors, values = lax.linalg.eigh(a, lower=lower)
    return values, vectors


@whole
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """The eigenvalues and eigenvectors of a symmetric tridiagonal matrix.

    Arguments:
      d: the diagonal ``(n,)``, float32 or float64.
      e: the diagonals beside it ``(n - 1,)``, of the same dtype.
      eigvals_only: whether to return the eigenvalues alone.
      select: which: "a" for all; "i" for those whose index in ascending order lies in ``select_range``, the end
        included; "v" for those whose value does, the start excluded, which are counted, so not under ``jit``.
      select_range: start and end.
      tol: to how much eigenvalues are to be known; by default to rounding errors of the greatest.
      key: not used: nothing is drawn.
    Returns:
      The eigenvalues, in ascending order; or the tuple of these and of the eigenvectors in columns.
    Raises:
      TypeError: the dtypes are not as above, or ``e`` has another length.
      ValueError: ``d`` is no vector, ``select`` is unknown, or the range is not valid.

    Source: Barth, Martin and Wilkinson, "Calculation of the eigenvalues of a symmetric tridiagonal matrix by the
    method of bisection" (1967).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True).round(4)
    Array([1., 3.], dtype=float32)
    """
    d, e = jnp.asarray(d), jnp.asarray(e)
    if d.dtype != e.dtype or d.dtype not in (np.float32, np.float64):
        raise TypeError(f"eigh_tridiagonal: d and e must both be float32 or both float64, got {d.dtype} and {e.dtype}")
    if d.ndim != 1:
        raise ValueError(f"eigh_tridiagonal: d must be a vector, got shape {d.shape}")
    n = len(d)
    if e.shape != (max(n - 1, 0),):
        raise TypeError(f"eigh_tridiagonal: e must have one element less than d, got shapes {d.shape} and {e.shape}")
    if n <= 1:
        return d if eigvals_only else (d, jnp.ones((n, n), d.dtype))
    start, stop = _selected(d, e, select, select_range)
    if start == stop:
        return jnp.zeros(0, d.dtype) if eigvals_only else (jnp.zeros(0, d.dtype), jnp.zeros((n, 0), d.dtype))
    if eigvals_only:
        return _bisected(d, e, start, stop, 0.0 if tol is None else max(float(tol), 0.0))
    vectors, values = lax.linalg.eigh(_dense(d, e), symmetrize_input=False)
    return values[start:stop], vectors[:, start:stop]


def _selected(d, e, select: str, bounds) -> tuple[int, int]:
    """Start and end of the range of eigenvalues."""
    n = len(d)
    if select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: select must be 'a', 'i' or 'v', got {select!r}")
    if select == "a":
        return 0, n
    if bounds is None:
        raise ValueError(f"eigh_tridiagonal: select_range must be given where select is {select!r}")
    low, high = bounds[0], bounds[1]
    if low > high:
        raise ValueError(f"eigh_tridiagonal: select_range must not be empty, got {bounds}")
    if select == "i":
        low, high = operator.index(low), operator.index(high)
        if not 0 <= low <= high < n:
            raise ValueError(f"eigh_tridiagonal: select_range must be of the indices 0 to {n - 1}, got {bounds}")
        return low, high + 1
    # An eigenvalue that is the bound itself counts as below it.
    counts = _below(d, e, jnp.nextafter(jnp.asarray([low, high], d.dtype), jnp.asarray(np.inf, d.dtype)))
    found = concrete_or_error(np.asarray, counts, "with select='v', eigh_tridiagonal's result")
    return int(found[0]), int(found[1])


def _dense(d, e):
    return jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(e, -1)


@jit
def _below(d, e, x):
    """How many eigenvalues are below each of ``x``: how many pivots of ``t - x`` are negative (Sturm)."""
    squares = jnp.concatenate([jnp.zeros(1, d.dtype), e * e])
    least = jnp.asarray(dtypes.finfo(d.dtype).tiny, d.dtype) * jnp.maximum(jnp.max(squares), 1)

    def step(carry, row):
        pivot, count = carry
        diagonal, square = row
        pivot = (diagonal - x) - square / pivot
        pivot = jnp.where(jnp.abs(pivot) < least, -least, pivot)
        return (pivot, count + (pivot < 0)), None

    start = (jnp.ones_like(x), jnp.zeros(x.shape, "int32"))
    return lax.scan(step, start, (d, squares))[0][1]


@partial(custom_jvp, nondiff_argnums=(2, 3, 4))
def _bisected(d, e, start: int, stop: int, tol: float):
    return _bisection(d, e, start, stop, tol)


@_bisected.defjvp
def _bisected_jvp(start, stop, tol, primals, tangents):
    """An eigenvalue moves by ``v^T dT v``, its vector being ``v``."""
    (d, e), (d_dot, e_dot) = primals, tangents
    v = lax.linalg.eigh(_dense(d, e), symmetrize_input=False)[0][:, start:stop]
    moved = d_dot @ (v * v) + 2 * e_dot @ (v[:-1] * v[1:])
    return _bisected(d, e, start, stop, tol), moved


@partial(jit, static_argnums=(2, 3, 4))
def _bisection(d, e, start: int, stop: int, tol: float):
    """All eigenvalues at once, each in an interval from the bounds of Gershgorin that is halved."""
    beside = jnp.abs(jnp.pad(e, (1, 0))) + jnp.abs(jnp.pad(e, (0, 1)))
    low, high = jnp.min(d - beside), jnp.max(d + beside)
    size = jnp.maximum(jnp.abs(low), jnp.abs(high))
    eps = float(dtypes.finfo(d.dtype).eps)
    least = jnp.maximum(eps * size, tol)
    index = jnp.arange(start, stop, dtype="int32")
    halvings = math.ceil(-math.log2(eps)) + 2  # which the widest interval needs

    def halve(state):
        i, low, high = state
        middle = 0.5 * low + 0.5 * high
        above = _below(d, e, middle) > index
        return i + 1, jnp.where(above, low, middle), jnp.where(above, middle, high)

    def is_wide(state):
        i, low, high = state
        return (i < halvings) & (jnp.max(high - low) > least)

    ends = (jnp.full(index.shape, x) for x in (low - eps * size, high + eps * size))
    _, low, high = lax.while_loop(is_wide, halve, (0, *ends))
    return 0.5 * low + 0.5 * high
