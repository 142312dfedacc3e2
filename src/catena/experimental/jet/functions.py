"""``jet`` as users call it, and how rules are given to primitives of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable

import catena.numpy as jnp
from catena.core.dtypes import is_inexact
from catena.core.trace import leaf_value
from catena.core.tree import all_leaves, tree_flatten, tree_unflatten
from catena.core.zeros import get_aval, zeros
from catena.experimental.jet.trace import ZeroSeries, ZeroTerm, jet_flat
from catena.lax import lgamma
from catena.lax.control_flow.common import with_type
from catena.transform.functions import check_callable


def jet(fun: Callable, primals, series, factorial_scaled: bool = True, **_):
    """The derivatives of a function along a curve, of all orders up to some.

    Where ``x(t)`` is a curve with the value ``primals`` and the derivatives ``series`` at ``t = 0``, these are the
    value and the derivatives of ``fun(x(t))``.

    Arguments:
      fun: a function of arrays that returns a tree of arrays.
      primals: its arguments: a sequence of arrays.
      series: for each argument the sequence of its derivatives, or ``zero_series`` for a constant; single
        derivatives may be ``zero_term``. All sequences have one length.
      factorial_scaled: whether derivatives are meant, in arguments and results; else the coefficients of Taylor
        series, which are the derivatives divided by factorials.
    Returns:
      The value, and a tree as the value with the list of derivatives in place of each array.
    Raises:
      TypeError: ``fun`` cannot be called, or an argument with a series is of integers.
      ValueError: an argument is no array, or the lengths or shapes do not fit.

    >>> import catena.numpy as jnp
    >>> from catena.experimental.jet import jet
    >>> value, derivatives = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    >>> [float(d) for d in derivatives]
    [1.0, 1.0, 1.0]

    A. Griewank, A. Walther: Evaluating derivatives (2008), chapter 13.
    """
    check_callable(fun)
    primals = [value_at(i, x) for i, x in enumerate(primals)]
    terms, order = read_series(primals, list(series), factorial_scaled)
    result = {}

    def flat(*xs):
        outs, result["tree"] = tree_flatten(fun(*xs))
        return [leaf_value(x) for x in outs]

    outs, found = jet_flat(flat, primals, terms, order)
    scales = factorials(order, factorial_scaled)
    lists = [
        [zeros(tangent_type(x))] * order if t is None else [s * c for s, c in zip(scales, t, strict=True)]
        for x, t in zip(outs, found, strict=True)
    ]
    return tree_unflatten(result["tree"], outs), tree_unflatten(result["tree"], lists)


def jet2(fun: Callable, primals, series, *, factorial_scaled: bool = False, **_):
    """``jet`` with coefficients of Taylor series by default.

    Arguments:
      fun, primals, series, factorial_scaled: as for ``jet``.
    Returns:
      As ``jet``.

    >>> import catena.numpy as jnp
    >>> from catena.experimental.jet import jet2
    >>> [float(c) for c in jet2(jnp.exp, (0.0,), ((1.0, 0.0),))[1]]
    [1.0, 0.5]
    """
    return jet(fun, primals, series, factorial_scaled=factorial_scaled)


def value_at(position: int, x):
    """An argument, which must be an array."""
    if not all_leaves([x]):
        raise ValueError(f"primal value at position {position} is not an array: {x!r}")
    return leaf_value(x)


def tangent_type(x):
    """The type of the derivatives of a result."""
    aval = get_aval(x)
    return aval if is_inexact(aval.dtype) else get_aval(jnp.zeros(aval.shape))


def factorials(order: int, scaled: bool) -> list[float]:
    """What makes derivatives of coefficients."""
    return [float(math.factorial(k)) if scaled else 1.0 for k in range(1, order + 1)]


def read_series(primals: list, series: list, scaled: bool) -> tuple[list, int]:
    """The coefficients of each argument, or None, and how many there are."""
    if len(primals) != len(series):
        raise ValueError(
            f"jet takes a series for each primal: {len(primals)} primals and {len(series)} series were given"
        )
    lists = [None if isinstance(s, ZeroSeries) else list(s) for s in series]
    lengths = {len(s) for s in lists if s is not None}
    if len(lengths) > 1:
        raise ValueError(f"jet terms have inconsistent lengths for different arguments: {sorted(lengths)}")
    order = lengths.pop() if lengths else 0
    scales = factorials(order, scaled)
    return [None if s is None else coefficients(i, x, s, scales) for i, (x, s) in enumerate(zip(primals, lists))], order


def coefficients(position: int, primal, terms: list, scales: list) -> list:
    """The coefficients of one argument."""
    aval = get_aval(primal)
    if terms and not is_inexact(aval.dtype):
        raise TypeError(f"jet differentiates by floats and complex numbers; primal {position} is {aval.str_short()}")
    made = []
    for term, scale in zip(terms, scales, strict=True):
        x = zeros(aval) if isinstance(term, ZeroTerm) else leaf_value(term)
        if get_aval(x).shape != aval.shape:
            raise ValueError(
                f"the series of primal {position} must have its shape {aval.shape}, got a term of {get_aval(x).shape}"
            )
        made.append(with_type(x, aval) / scale if scale != 1 else with_type(x, aval))
    return made


def fact(n):
    """The factorial, of integers as floats.

    >>> float(fact(3))
    6.0
    """
    return jnp.round(jnp.exp(lgamma(jnp.asarray(n, float) + 1.0)))
