"""softmax and its logarithm as SciPy has them: over all axes unless one is named."""

from catena.core.array import Array
from catena.numpy import softmax as along
from catena.typing import ArrayLike


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Positive numbers of sum 1 in the proportions of ``exp(x)``.

    Arguments:
      x: numbers.
      axis: the axis or axes along which they sum to 1; None for all, unlike ``nn.softmax``.
    Returns:
      An array of the shape of ``x``; float, or complex where ``x`` is complex.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or boolean, or ``axis`` is no integer.
      ValueError: an axis is out of bounds or given twice.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.softmax(jnp.array([[0.0, 0.0], [0.0, 0.0]]))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)

    Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).
    """
    return along.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of ``softmax``: ``x - logsumexp(x)``.

    Arguments:
      x: numbers.
      axis: the axis or axes along which the exponentials of the results sum to 1; None for all, unlike
        ``nn.log_softmax``.
    Returns:
      An array of the shape of ``x``; float, or complex where ``x`` is complex.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or boolean, or ``axis`` is no integer.
      ValueError: an axis is out of bounds or given twice.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.693, -0.693], dtype=float32)

    Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).
    """
    return along.log_softmax(x, axis)
