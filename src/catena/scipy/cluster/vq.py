"""Vector quantisation: the nearest of a few vectors, for many."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.numpy.promotion import promote_dtypes_inexact
from catena.transform.jit import jit
from catena.typing import ArrayLike


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The code of each observation: which vector of a code book is nearest, and how far it is.

    Arguments:
      obs: the observations, ``(m, k)``, or ``(m,)`` for numbers.
      code_book: the vectors, ``(n, k)`` or ``(n,)``.
      check_finite: of no meaning, since NaN and infinities are ordered as they are; for SciPy's signature.
    Returns:
      The codes, of shape ``(m,)``, the first of several that are equally near, and the distances, ``(m,)``. Codes are
      integers of the default width, as those of ``argmin``: int64 with x64 on, where SciPy's are int32.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the lengths of the vectors differ.
      ValueError: the arguments do not have one or two axes, both the same number, or there is no code.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.cluster.vq import vq
    >>> vq(jnp.array([[1.0, 1.0], [4.0, 0.0]]), jnp.array([[0.0, 1.0], [4.0, 3.0]]))
    (Array([0, 1], dtype=int32), Array([1., 3.], dtype=float32))
    """
    obs, code_book = promote_dtypes_inexact("vq", obs, code_book)
    shapes = f"got the shapes {obs.shape} and {code_book.shape}"
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        raise ValueError(f"vq: obs and code_book must both have one axis, or two, {shapes}")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1]:
        raise TypeError(f"vq: the vectors of obs and code_book must have the same length, {shapes}")
    if not len(code_book):
        raise ValueError(f"vq: the code book must not be empty, {shapes}")
    return _nearest(obs, code_book)


@jit
def _nearest(obs, code_book):
    squares = jnp.sum(jnp.square(jnp.abs(obs[:, None] - code_book[None])), axis=-1)
    codes = jnp.argmin(squares, axis=1)
    return codes, jnp.sqrt(jnp.take_along_axis(squares, codes[:, None], axis=1)[:, 0])
