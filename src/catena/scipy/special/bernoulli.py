"""Bernoulli's numbers, exact before they are rounded."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np

from catena.core.array import Array, make_array
from catena.numpy.creation import default_float
from catena.numpy.placement import placed


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers from 0 to ``n``; that of number 1 is -1/2.

    Arguments:
      n: the greatest number.
    Returns:
      A 1-D array of the default float dtype, each element rounded once.
    Raises:
      TypeError: ``n`` is no integer.
      ValueError: ``n`` is negative.

    Source: Brent and Harvey, "Fast computation of Bernoulli, tangent and secant numbers" (2013), 6.1.

    >>> from catena.scipy import special
    >>> special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
          dtype=float32)
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n}")
    values = np.zeros(n + 1)
    values[:2] = (1, -0.5)[: n + 1]
    for k, tangent in enumerate(_tangent_numbers(n // 2), 1):
        values[2 * k] = _rounded(Fraction((-1) ** (k - 1) * 2 * k * tangent, 4**k * (4**k - 1)))
    with np.errstate(over="ignore"):
        return placed(make_array(values.astype(default_float())))


def _tangent_numbers(count: int) -> list[int]:
    """The coefficients of x^(2k - 1) / (2k - 1)! in tan(x)."""
    numbers = [1] * min(count, 1)
    for k in range(1, count):
        numbers.append(k * numbers[-1])
    for k in range(1, count):
        for j in range(k, count):
            numbers[j] = (j - k) * numbers[j - 1] + (j - k + 2) * numbers[j]
    return numbers


def _rounded(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
