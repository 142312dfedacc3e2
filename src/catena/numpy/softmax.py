"""Sums of exponentials, and shares of them: ``logsumexp``, ``softmax``, ``log_softmax``.

``nn`` and ``scipy.special`` show them to users. The greatest exponent is taken off all before they are raised, so that
nothing overflows and the greatest term is 1 (Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and
softmax functions", 2021). It cancels in the result, so derivatives treat it as a constant.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.context import context
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, broadcast_to, convert, spread_together, strong
from catena.numpy.promotion import promote_dtypes_inexact
from catena.numpy.reductions import Axis, lowest, mask_argument, max, split_axes, sum
from catena.transform.custom_jvp import custom_jvp
from catena.typing import ArrayLike


def masked(where, x, neutral):
    """``x`` with a constant where the mask is false, if there is a mask."""
    return x if where is None else lax.select(where, x, lax.full_like(x, neutral))


def _exponentials(x, where):
    """Exponentials, 0 where the mask is false: not of -inf, which takes processors ten times as long."""
    return masked(where, lax.exp(masked(where, x, 0)), 0)


def _with_mask(name: str, where, *xs) -> tuple:
    """Arrays and the mask, broadcast together."""
    if where is None:
        return (None, *spread_together(name, list(xs), ValueError))
    where, *xs = spread_together(name, [mask_argument(name, where), *xs], ValueError)
    return (where, *xs)


# ---- logsumexp


@whole
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
):
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Arguments:
      a: numbers.
      axis: an axis or a tuple of them; None for all.
      b: factors that broadcast with ``a``; where they are 0 the exponent plays no part.
      keepdims: whether the axes stay, with length 1.
      return_sign: whether to return the logarithm of the sum's magnitude, and its sign.
      where: booleans that broadcast with ``a``: which terms to take.
    Returns:
      An array without the axes, of the float or complex dtype that ``a`` and ``b`` promote to: -inf for a sum of
      nothing, NaN for a negative sum. With ``return_sign``, a pair of real magnitudes and signs, which for complex
      numbers are of magnitude 1.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: ``where`` is not boolean, shapes do not broadcast, or an axis is out of bounds or given twice.

    Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.logsumexp(jnp.array([1000.0, 1000.0]))
    Array(1000.693, dtype=float32)
    >>> jax.nn.logsumexp(jnp.array([1.0, 0.0]), b=jnp.array([1, -9]), return_sign=True)
    (Array(1.837, dtype=float32), Array(-1., dtype=float32))
    """
    if b is None:
        (a,) = promote_dtypes_inexact("logsumexp", a)
        where, a = _with_mask("logsumexp", where, a)
    else:
        where, a, b = _with_mask("logsumexp", where, *promote_dtypes_inexact("logsumexp", a, b))
        b = masked(where, b, 0)
        where = lax.ne(b, lax.full_like(b, 0))
    greatest = _greatest(masked(where, a, -np.inf), axis)
    terms = _exponentials(lax.sub(a, broadcast_to(convert(greatest, a.dtype), a.shape)), where)
    total = sum(terms if b is None else lax.mul(b, terms), axis, keepdims=keepdims)
    greatest = lax.reshape(greatest, total.shape)
    if return_sign:
        magnitude = lax.abs(total)
        return lax.add(lax.log(magnitude), greatest), lax.sign(total)
    return lax.add(lax.log(total), convert(greatest, total.dtype))


def _greatest(x, axis):
    """The greatest exponent along axes, which stay; 0 where it is not finite. A constant to derivatives."""
    x = lax.stop_gradient(x)
    real = lax.real(x) if dtypes.is_complex(x.dtype) else x
    found = max(real, axis, keepdims=True, initial=-np.inf)
    return lax.select(lax.is_finite(found), found, lax.full_like(found, 0))


# ---- softmax


@whole
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None):
    """Positive numbers of sum 1 in the proportions of ``exp(x)``.

    Arguments:
      x: numbers.
      axis: the axis or axes along which they sum to 1; None for all.
      where: booleans that broadcast with ``x``: which elements take part; the others give 0.
    Returns:
      An array of the shape of ``x`` and ``where`` together; float, or complex where ``x`` is complex.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or ``x`` is boolean.
      ValueError: ``where`` is not boolean, shapes do not broadcast, or an axis is out of bounds or given twice.

    Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.softmax(jnp.array([0.0, 1000.0, 1000.0]))
    Array([0. , 0.5, 0.5], dtype=float32)
    """
    if not context.softmax_custom_jvp:
        return _softmax(x, axis, where)
    return _softmax_by_rule(x, axis, where)


def _softmax(x, axis, where):
    below, where = _below_greatest("softmax", x, axis, where)
    terms = _exponentials(below, where)
    return masked(where, lax.div(terms, broadcast_to(_total(terms, axis, where), terms.shape)), 0)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _softmax_by_rule(x, axis, where):
    return _softmax(x, axis, where)


@_softmax_by_rule.defjvp
def _softmax_jvp(axis, where, primals, tangents):
    y = _softmax_by_rule(*primals, axis, where)
    change = y * tangents[0]
    return y, change - y * sum(change, axis, keepdims=True, where=where)


@whole
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None):
    """The logarithm of ``softmax``: ``x - logsumexp(x)``.

    Arguments:
      x: numbers.
      axis: the axis or axes along which the exponentials of the results sum to 1; None for all.
      where: booleans that broadcast with ``x``: which elements take part; the others give -inf.
    Returns:
      An array of the shape of ``x`` and ``where`` together; float, or complex where ``x`` is complex.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or ``x`` is boolean.
      ValueError: ``where`` is not boolean, shapes do not broadcast, or an axis is out of bounds or given twice.

    Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions" (2021).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.log_softmax(jnp.array([0.0, 1000.0]))
    Array([-1000.,     0.], dtype=float32)
    """
    below, where = _below_greatest("log_softmax", x, axis, where)
    logarithm = lax.log(_total(_exponentials(below, where), axis, where))
    return masked(where, lax.sub(below, broadcast_to(logarithm, below.shape)), -np.inf)


def _below_greatest(name: str, x, axis, where) -> tuple:
    """How far numbers lie below the greatest one along axes, and the mask."""
    x = as_array_argument(name, x)
    if x.dtype == dtypes.BOOL:
        raise TypeError(f"{name} takes numbers, got an array of booleans")
    x = strong(x)
    split_axes(axis, x.ndim)  # an axis that only the mask has is an error
    where, x = _with_mask(name, where, x)
    greatest = max(lax.stop_gradient(x), axis, keepdims=True, initial=lowest(x.dtype), where=where)
    return _difference(x, broadcast_to(greatest, x.shape)), where


def _difference(x, greatest):
    """``x - greatest`` as floats; of integers, whose difference may not fit their dtype, by way of unsigned ones."""
    if not dtypes.is_integer(x.dtype):
        return lax.sub(x, greatest)
    unsigned = np.dtype(f"uint{dtypes.itemsize_bits(x.dtype)}")
    distance = lax.sub(convert(greatest, unsigned), convert(x, unsigned))
    distance = convert(distance, dtypes.to_inexact_dtype(x.dtype))
    return lax.sub(lax.full_like(distance, 0), distance)  # 0 at the greatest, not -0


def _total(terms, axis, where):
    """The sum of exponentials along axes, which stay; 1 where all are masked, to divide by."""
    total = sum(terms, axis, keepdims=True)
    return total if where is None else masked(lax.ne(total, lax.full_like(total, 0)), total, 1)
