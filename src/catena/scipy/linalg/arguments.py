"""What the functions of this package take: matrices, and the right-hand sides of systems."""

from __future__ import annotations

import warnings

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.numpy.boundary import convert


def inexact(*xs) -> list:
    """Arguments, which may be lists, as arrays of one inexact dtype; weak ones where all are."""
    xs = [jnp.asarray(x) for x in xs]
    dtype = dtypes.to_inexact_dtype(jnp.result_type(*xs))
    return [convert(x, dtype, all(x.weak_type for x in xs)) for x in xs]


def adjoint(x):
    """The conjugate transposes of matrices."""
    x = jnp.swapaxes(x, -1, -2)
    return jnp.conj(x) if dtypes.is_complex(x.dtype) else x


def check_square(name: str, a):
    """ValueError where ``a`` is no stack of square matrices."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name}: expected square matrices of shape (..., n, n), got shape {a.shape}")


def in_columns(name: str, a, b):
    """Square matrices and right-hand sides of stacks that are broadcast, and how to undo it: a function of the
    solution. A ``b`` that is one vector, or a vector for each matrix, becomes one column.
    """
    check_square(name, a)
    vectors = b.ndim == 1
    if b.ndim > 1 and b.shape == a.shape[:-1]:
        warnings.warn(
            f"{name}: b of shape {b.shape} is taken for a stack of vectors; it will mean a matrix of right-hand sides, "
            "as everywhere else. Say b[..., None] to keep its meaning.",
            FutureWarning,
            stacklevel=dtypes.levels_to_user(),
        )
        vectors = True
    b = b[..., None] if vectors else b
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"{name}: b must have {a.shape[-1]} rows, as a has, got shapes {a.shape} and {b.shape}")
    stack = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    return a, b, (lambda x: x[..., 0]) if vectors else (lambda x: x)
