"""Minimisation by BFGS and by L-BFGS, which keeps a few steps instead of a matrix: Nocedal and Wright (2006)."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.array import Array
from catena.core.named import NamedTuple
from catena.scipy.optimize.line_search import EXHAUSTED, FOUND, strong_wolfe

CONVERGED, ITERATIONS, EVALUATIONS, GRADIENTS, FLAT = 0, 1, 2, 3, 4  # reasons to stop


class State(NamedTuple):
    """Where a minimisation is."""

    point: Array
    value: Array
    gradient: Array
    memory: tuple  # what approximates the inverse Hessian
    before: Array  # the value of the function one step ago
    iterations: Array
    evaluations: Array
    flat: Array  # whether the last step changed the value by next to nothing
    search: Array  # what came of the last search


def descend(function, start, memory, direction, updated, limits, norm, gtol, ftol, first_step, max_search) -> tuple:
    """The loop that both methods are.

    Arguments:
      function: of a point to its value and gradient.
      start: the first point, ``(n,)``.
      memory: what is known of the inverse Hessian at first.
      direction: of memory and gradient to where to go.
      updated: of memory, step and change of the gradient to the new memory.
      limits: of iterations and of evaluations.
      norm: the order of the norm of the gradient that has to fall below ``gtol``.
      ftol: the relative change of the value from which on it counts as flat.
      first_step: of the state and its slope to the first step that a search tries.
      max_search: the number of evaluations in a search.
    Returns:
      The last state, and whether its gradient is small.
    """
    max_iterations, max_evaluations = limits

    def small(state: State):
        return jnp.linalg.norm(state.gradient, ord=norm) < gtol

    def go_on(state: State):
        goes = (state.iterations < max_iterations) & (state.evaluations < max_evaluations)
        return goes & (state.search == FOUND) & ~state.flat & ~small(state)

    def step(state: State) -> State:
        along = direction(state.memory, state.gradient)
        first = first_step(state, jnp.vdot(state.gradient, along))
        search, outcome = strong_wolfe(function, state.point, along, state.value, state.gradient, first, max_search)
        moved = search.found
        change = search.trial * along
        new_value = jnp.where(moved, search.value, state.value)
        gradient = jnp.where(moved, search.gradient, state.gradient)
        larger = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(new_value)), 1)
        return State(
            jnp.where(moved, state.point + change, state.point),
            new_value,
            gradient,
            updated(state.memory, change, gradient - state.gradient, moved),
            state.value,
            state.iterations + 1,
            state.evaluations + search.evaluations,
            moved & (state.value - new_value <= ftol * larger),
            outcome,
        )

    value, gradient = function(start)
    before = value + jnp.linalg.norm(gradient) / 2
    begin = State(start, value, gradient, memory, before, 0, 1, False, FOUND)
    state = lax.while_loop(go_on, step, begin)
    return state, small(state)


# ---- BFGS


def bfgs(function, start, *, gtol=1e-5, norm=np.inf, maxiter=None, line_search_maxiter=10) -> dict:
    """Minimisation by algorithm 6.1, with the first step of equation 3.60."""
    n = start.size
    maxiter = 200 * n if maxiter is None else maxiter
    state, converged = descend(
        *(function, start, jnp.eye(n, dtype=start.dtype), lambda inverse, gradient: -inverse @ gradient, _rank_two),
        *((maxiter, np.inf), norm, gtol, -np.inf, _step_as_before, line_search_maxiter),
    )
    failed = state.search != FOUND
    status = jnp.where(converged, CONVERGED, jnp.where(failed, 2 + state.search, ITERATIONS))
    return result(state, converged, status, state.memory)


def _step_as_before(state: State, slope):
    """As if the value would fall as much as in the last iteration, a little more, and at most 1."""
    guess = 1.01 * 2 * (state.value - state.before) / slope
    return jnp.where((guess > 0) & (guess < 1), guess, 1)


def _rank_two(inverse, step, change, moved):
    """Equation 6.17, multiplied out: two products with vectors, and one pass over the matrix."""
    curvature, sound = _curvature(step, change, moved)
    image = inverse @ change
    scale = (curvature + jnp.vdot(change, image)) / curvature**2
    cross = jnp.outer(image, step) / curvature
    new = inverse + scale * jnp.outer(step, step) - cross - cross.T
    return jnp.where(sound, new, inverse)


def _curvature(step, change, moved) -> tuple:
    """The product of a step and the change of the gradient, which line searches make positive, and whether it is."""
    product = jnp.vdot(change, step)
    sound = moved & (product > 0)
    return jnp.where(sound, product, 1), sound


# ---- L-BFGS


class History(NamedTuple):
    """The last steps ``s`` and changes of the gradient ``y``, each written over the oldest; the inverses of their
    products, zero where there is none yet; the scale of the first approximation; the number of steps.
    """

    steps: Array
    changes: Array
    inverses: Array
    scale: Array
    count: Array


def lbfgs(
    function, start, *, maxiter=None, norm=np.inf, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-5, maxfun=None,
    maxgrad=None, maxls=20,
) -> dict:  # fmt: skip
    """Minimisation by algorithm 7.5; gradient and value are always evaluated together."""
    unlimited = np.inf if maxiter is not None or maxfun is not None or maxgrad is not None else 15000
    maxiter, maxfun, maxgrad = [unlimited if limit is None else limit for limit in (maxiter, maxfun, maxgrad)]
    rows = jnp.zeros((maxcor, start.size), start.dtype)
    memory = History(rows, rows, rows[:, 0], jnp.ones((), start.dtype), jnp.zeros((), int))
    state, converged = descend(
        *(function, start, memory, _two_loops, _remembered),
        *((maxiter, min(maxfun, maxgrad)), norm, gtol, ftol, lambda state, slope: 1, maxls),
    )
    reasons = [
        (converged, CONVERGED),
        (state.search != FOUND, 2 + EXHAUSTED),
        (state.flat, FLAT),
        (state.evaluations >= maxgrad, GRADIENTS),
        (state.evaluations >= maxfun, EVALUATIONS),
    ]
    status = jnp.select([reason for reason, _ in reasons], [code for _, code in reasons], ITERATIONS)
    return result(state, converged, status, None)


def _two_loops(history: History, gradient):
    """Algorithm 7.4: the product of the approximate inverse Hessian with the gradient, negative."""
    size = len(history.inverses)

    def backwards(k, carry):
        q, factors = carry
        i = (history.count - 1 - k) % size
        factor = history.inverses[i] * jnp.vdot(history.steps[i], q)
        return q - factor * history.changes[i], factors.at[i].set(factor)

    def forwards(k, r):
        i = (history.count + k) % size
        factor = history.inverses[i] * jnp.vdot(history.changes[i], r)
        return r + (factors[i] - factor) * history.steps[i]

    q, factors = lax.fori_loop(0, size, backwards, (gradient, jnp.zeros_like(history.inverses)))
    return -lax.fori_loop(0, size, forwards, history.scale * q)


def _remembered(history: History, step, change, moved):
    curvature, sound = _curvature(step, change, moved)
    new = History(
        *(rows.at[history.count % len(rows)].set(x) for rows, x in
          [(history.steps, step), (history.changes, change), (history.inverses, 1 / curvature)]),
        curvature / jnp.where(sound, jnp.vdot(change, change), 1),
        history.count + 1,
    )  # fmt: skip
    return History(*(jnp.where(sound, a, b) for a, b in zip(new, history, strict=True)))


def result(state: State, converged, status, inverse) -> dict:
    """What both methods return, by the names that ``OptimizeResults`` has for it."""
    return {
        "x": state.point,
        "success": converged,
        "status": status,
        "fun": state.value,
        "jac": state.gradient,
        "hess_inv": inverse,
        "nfev": state.evaluations,
        "njev": state.evaluations,
        "nit": state.iterations,
    }
