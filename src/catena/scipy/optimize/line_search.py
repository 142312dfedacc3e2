"""Steps that satisfy the strong Wolfe conditions: algorithms 3.5 and 3.6 of Nocedal and Wright (2006).

Both algorithms are one loop with one evaluation of the function and its gradient: as long as no interval is known to
hold a step, steps are doubled; then the interval shrinks. So the function is compiled once, however it is searched.
"""

from __future__ import annotations

from collections.abc import Callable

from catena import lax
from catena import numpy as jnp
from catena.core.array import Array
from catena.core.dtypes import finfo
from catena.core.named import NamedTuple

DECREASE, CURVATURE = 1e-4, 0.9  # the constants of the two conditions for quasi-Newton methods
IN_INTERVAL = 30  # steps that are tried at least where an interval holds one, which about halves it each time
FOUND, COLLAPSED, EXHAUSTED = 0, 1, 3  # what came of a search; JAX adds these to 2 in the status of a minimisation


class Step(NamedTuple):
    """A step, the value of the function there, and its slope along the direction."""

    size: Array
    value: Array
    slope: Array


class Search(NamedTuple):
    """The state of a search. ``low`` is the best step of those that decrease the value enough, ``high`` the other end
    of the interval where there is one, and ``last`` the end that it had before.
    """

    trial: Array
    low: Step
    high: Step
    last: Step
    enclosed: Array  # whether low and high enclose a step
    found: Array
    collapsed: Array
    evaluations: Array
    tries: Array  # how many of them since it is known whether an interval encloses a step
    value: Array  # at the last trial
    gradient: Array


def strong_wolfe(function: Callable, point, direction, value, gradient, first, max_tries: int) -> tuple[Search, Array]:
    """A step along a direction of descent.

    Arguments:
      function: of a point to its value and gradient.
      point, direction: where the search starts, and where it goes, ``(n,)``.
      value, gradient: of the function there.
      first: the size of the first step that is tried.
      max_tries: how many steps are tried at most before an interval is found that holds one; then as many, or 30.
    Returns:
      The state in which the search ended, and what came of it. If it has found a step, that is its last trial.
    """
    slope = jnp.vdot(gradient, direction)
    start = Step(jnp.zeros_like(value), value, slope)
    least = finfo(value.dtype).eps

    def go_on(search: Search):
        tries = jnp.where(search.enclosed, max(max_tries, IN_INTERVAL), max_tries)
        return ~search.found & ~search.collapsed & (search.tries < tries)

    def evaluate(search: Search) -> Search:
        value, gradient = function(point + search.trial * direction)
        trial = Step(search.trial, value, jnp.vdot(gradient, direction))
        low, high = search.low, search.high
        decreases = value <= start.value + DECREASE * trial.size * slope  # false for NaN, from which a search returns
        too_far = ~decreases | ((value >= low.value) & (low.size > 0))
        found = ~too_far & (jnp.abs(trial.slope) <= -CURVATURE * slope)
        ahead = jnp.where(search.enclosed, high.size - low.size, 1)
        turned = trial.slope * ahead >= 0  # the step lies behind the trial, between it and the old low
        enclosed = search.enclosed | too_far | turned
        new_high = _choose(too_far, trial, _choose(turned, low, high))
        new_low = _choose(too_far, low, trial)
        last = _choose(too_far | turned, high, low)
        last = _choose(search.enclosed, last, new_high)  # there was no interval before
        within = _interpolated(new_low, new_high, last, search.enclosed)
        width = jnp.abs(new_high.size - new_low.size)
        collapsed = enclosed & (width <= least * jnp.maximum(new_low.size, least))
        following = jnp.where(enclosed, within, 2 * trial.size)
        tries = jnp.where(enclosed & ~search.enclosed, 0, search.tries + 1)
        return Search(
            jnp.where(found, trial.size, following),
            *(new_low, new_high, last, enclosed, found, ~found & collapsed, search.evaluations + 1, tries),
            *(value, gradient),
        )

    begin = Search(jnp.asarray(first, value.dtype), start, start, start, False, False, False, 0, 0, value, gradient)
    search = lax.while_loop(go_on, evaluate, begin)
    return search, jnp.where(search.found, FOUND, jnp.where(search.collapsed, COLLAPSED, EXHAUSTED))


def _choose(condition, one: Step, other: Step) -> Step:
    return Step(*(jnp.where(condition, a, b) for a, b in zip(one, other, strict=True)))


def _interpolated(low: Step, high: Step, last: Step, cubic) -> Array:
    """The next step in an interval: the least value of the cubic through what is known of its ends and the end before,
    of the quadratic where there was none, or the middle where these lie close to an end.
    """
    width = high.size - low.size
    quadratic = _quotient(-low.slope * width, 2 * (high.value - low.value - low.slope * width))
    u, v = width, last.size - low.size
    p = high.value - low.value - low.slope * u
    q = last.value - low.value - low.slope * v
    scale = (u * v) ** 2 * (u - v)
    a, b = _quotient(v**2 * p - u**2 * q, scale), _quotient(u**3 * q - v**3 * p, scale)
    square = b * b - 3 * a * low.slope
    root = jnp.sqrt(jnp.where(square > 0, square, 1))
    by_cubic = _quotient(
        jnp.where(b > 0, -low.slope, root - b), jnp.where(b > 0, root + b, 3 * a) * width
    )  # none cancels
    share = jnp.where(cubic & (square > 0) & (by_cubic > 0.2) & (by_cubic < 0.8), by_cubic, quadratic)
    return low.size + width * jnp.where((share > 0.1) & (share < 0.9), share, 0.5)


def _quotient(p, q):
    """``p / q``, and 0 where that is no number, so that derivatives are numbers, too."""
    sound = (q != 0) & jnp.isfinite(p) & jnp.isfinite(q)
    return jnp.where(sound, jnp.where(sound, p, 0) / jnp.where(sound, q, 1), 0)
