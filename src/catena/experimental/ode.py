"""Ordinary differential equations: ``odeint``, a Runge-Kutta method of order 5 with an adjoint.

One step is that of Dormand and Prince (1980), whose error estimate chooses the size of the next. Between steps the
solution is the polynomial of degree 4 through both ends, with their slopes, and through Shampine's (1986) estimate in
the middle; so the steps do not depend on where the solution is wanted. Derivatives are solutions too: those of the
adjoint equation, run backwards (Chen, Rubanova, Bettencourt, Duvenaud: Neural ordinary differential equations, 2018),
in memory that does not grow with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import catena.numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.jaxpr import eval_jaxpr
from catena.core.namespace import shown as _shown
from catena.core.sequences import safe_map as map  # noqa: F401
from catena.core.sequences import safe_zip as zip  # noqa: A004
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_flatten, tree_leaves, tree_unflatten
from catena.core.zeros import get_aval
from catena.extend import linear_util as lu
from catena.flatten_util import ravel_pytree
from catena.lax import scan, while_loop
from catena.transform.custom_vjp import custom_vjp
from catena.transform.functions import check_callable
from catena.transform.grad import vjp
from catena.transform.jit import jit
from catena.transform.vmap import vmap

# ---- one step

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),  # the last stage is the solution of order 5
)
# Less the solution of order 4 of Shampine, "Some practical Runge-Kutta formulas" (1986): two thirds of Dormand's and
# Prince's estimate.
ERROR = (71 / 86400, 0.0, -142 / 50085, 71 / 2880, -5751 / 169600, 44 / 1575, -1 / 60)
MIDDLE = (
    6025192743 / 60171106304, 0.0, 51252292925 / 130801643196, -2691868925 / 90256659456,
    187940372067 / 3189068634112, -1776094331 / 39487288512, 11237099 / 470086768,
)  # fmt: skip


def combination(weights, slopes: list):
    """The sum of slopes with weights."""
    return sum((w * k for w, k in zip(weights, slopes) if w), 0.0)


def stages(func: Callable, y0, f0, t0, dt) -> tuple:
    """A step from ``y0``, where the slope is ``f0``: the new state, and the slopes of all seven stages."""
    slopes, y = [f0], y0
    for node, weights in zip(NODES, STAGES):
        y = y0 + dt * combination(weights, slopes)
        slopes.append(func(y, t0 + dt * node))
    return y, slopes


def runge_kutta_step(func: Callable, y0, f0, t0, dt) -> tuple:
    """One step of the method of Dormand and Prince.

    Arguments:
      func: ``(y, t) -> dy/dt``.
      y0: the state, ``(n,)``.
      f0: its slope, ``(n,)``.
      t0: the time.
      dt: the size of the step.
    Returns:
      The state after the step and its slope, an estimate of the error of the state, and the slopes of the seven
        stages, ``(7, n)``.

    >>> import catena.numpy as jnp
    >>> y, *_ = runge_kutta_step(lambda y, t: -y, jnp.ones(1), -jnp.ones(1), jnp.float32(0), jnp.float32(0.1))
    >>> round(float(y[0]), 5)
    0.90484

    J. R. Dormand, P. J. Prince: A family of embedded Runge-Kutta formulae (1980).
    """
    y1, slopes = stages(func, y0, f0, t0, dt)
    return y1, slopes[-1], dt * combination(ERROR, slopes), jnp.stack(slopes)


def initial_step_size(fun: Callable, t0, y0, order, rtol, atol, f0):
    """A first step whose error will be about one hundredth of what is tolerated.

    Arguments:
      fun: ``(y, t) -> dy/dt``.
      t0, y0, f0: the time, the state and its slope, ``(n,)``.
      order: of the method.
      rtol, atol: the relative and absolute tolerance.
    Returns:
      The size of the step.

    >>> import catena.numpy as jnp
    >>> step = initial_step_size(lambda y, t: -y, 0.0, jnp.ones(1), 4, 1e-3, 1e-3, -jnp.ones(1))
    >>> 0.01 < step < 1
    Array(True, dtype=bool)

    E. Hairer, S. P. Norsett, G. Wanner: Solving ordinary differential equations I (1993), section II.4.
    """
    norm = lambda x: jnp.sqrt(jnp.sum(abs2(x / scale)))  # noqa: E731
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = norm(y0), norm(f0)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1, d1))
    d2 = norm(fun(y0 + h0 * f0, t0 + h0) - f0) / h0
    largest = jnp.maximum(d1, d2)
    flat = largest <= 1e-15
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(flat, 1, largest)) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1)


def abs2(x):
    """The square of the absolute value, elementwise.

    >>> abs2(3.0)
    9.0
    """
    return jnp.real(x) ** 2 + jnp.imag(x) ** 2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate, rtol, atol, y0, y1):
    """The error of a step in units of what is tolerated, the root of the mean of squares.

    Arguments:
      error_estimate: of the state, ``(n,)``.
      rtol, atol: the relative and absolute tolerance.
      y0, y1: the state before and after the step, ``(n,)``.

    >>> import catena.numpy as jnp
    >>> mean_error_ratio(jnp.array([0.002]), 1e-3, 1e-3, jnp.ones(1), jnp.zeros(1))
    Array(1., dtype=float32)
    """
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerated)))


def optimal_step_size(last_step, mean_error_ratio, safety=0.9, ifactor=10.0, dfactor=0.2, order=5.0):
    """The step that would have made the error what is tolerated, not too far from the last one.

    Arguments:
      last_step: its size.
      mean_error_ratio: its error in units of what is tolerated.
      safety: the share of the step that is taken.
      ifactor, dfactor: how many times larger or smaller it may become at most; after a step that was good enough
        it does not become smaller.
      order: of the method.

    >>> round(float(optimal_step_size(1.0, 2.0)), 4)
    0.7835
    """
    ratio = jnp.asarray(mean_error_ratio)
    least = jnp.where(ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(ratio ** (-1.0 / order) * safety, least))
    return jnp.where(ratio == 0, last_step * ifactor, last_step * factor)


# ---- between steps


def fit_4th_order_polynomial(y0, y1, y_mid, dy0, dy1, dt) -> tuple:
    """The polynomial of degree 4 on ``[0, 1]`` through three values, with the slopes at both ends.

    Arguments:
      y0, y1, y_mid: the values at 0, 1 and 1/2.
      dy0, dy1: the slopes by time.
      dt: the time between 0 and 1.
    Returns:
      The coefficients, that of the highest power first.

    >>> [float(c) for c in fit_4th_order_polynomial(0.0, 1.0, 0.25, 0.0, 2.0, 1.0)]
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    a = 2 * dt * (dy1 - dy0) - 8 * (y1 + y0) + 16 * y_mid
    b = dt * (5 * dy0 - 3 * dy1) + 18 * y0 + 14 * y1 - 32 * y_mid
    c = dt * (dy1 - 4 * dy0) - 11 * y0 - 5 * y1 + 16 * y_mid
    return a, b, c, dt * dy0, y0


def interp_fit_dopri(y0, y1, k, dt):
    """The polynomial that interpolates one step of the method of Dormand and Prince.

    Arguments:
      y0, y1: the states at its ends, ``(n,)``.
      k: the slopes of its stages, ``(7, n)``.
      dt: its size.
    Returns:
      The coefficients, ``(5, n)``, that of the highest power first, of a polynomial on ``[0, 1]``.

    >>> import catena.numpy as jnp
    >>> interp_fit_dopri(jnp.zeros(1), jnp.ones(1), jnp.ones((7, 1)), 1.0).round(4) + 0.0
    Array([[0.], [0.], [0.], [1.], [0.]], dtype=float32)

    L. F. Shampine: Some practical Runge-Kutta formulas, Mathematics of Computation 46 (1986).
    """
    y_mid = y0 + dt * combination(MIDDLE, list(k))
    return jnp.stack(jnp.broadcast_arrays(*fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt)))


# ---- the solver


def solve(func: Callable, rtol, atol, mxstep, hmax, y0, ts, args: tuple):
    """The states at the times ``ts``, one a row, of a vector that starts as ``y0``."""
    slope = lambda y, t: func(y, t, *args)  # noqa: E731
    f0 = slope(y0, ts[0])
    first = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), 0.0, hmax).astype(ts.dtype)

    def step(state):
        i, dt, t, y, f, last = state
        y1, slopes = stages(slope, y, f, t, dt)
        ratio = mean_error_ratio(dt * combination(ERROR, slopes), rtol, atol, y, y1)
        accepted = ratio <= 1.0
        choose = lambda new, old: jnp.where(accepted, new, old)  # noqa: E731
        middle = y + dt * combination(MIDDLE, slopes)
        taken = [choose(new, old) for new, old in zip((t, y, f, middle), last)]
        following = jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(ts.dtype)
        return i + 1, following, choose(t + dt, t), choose(y1, y), choose(slopes[-1], f), taken

    def until(state, target):
        going = lambda state: (state[2] < target) & (state[0] < mxstep) & (state[1] > 0)  # noqa: E731
        state = (0, *while_loop(going, step, (0, *state))[1:])
        _, _, t, y, f, (t_last, y_last, f_last, middle) = state
        span = t - t_last
        polynomial = fit_4th_order_polynomial(y_last, y, middle, f_last, f, span)
        place = jnp.where(target == t, 1.0, (target - t_last) / span)
        return state[1:], jnp.where(target == t, y, jnp.polyval(jnp.stack(polynomial), place.astype(span.dtype)))

    start = first, ts[0], y0, f0, [ts[0], y0, f0, y0]
    _, ys = scan(until, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def solution(func, rtol, atol, mxstep, hmax, y0, ts, args: tuple):
    """``solve``, with the adjoint as its derivative."""
    return solve(func, rtol, atol, mxstep, hmax, y0, ts, args)


def solution_forward(func, rtol, atol, mxstep, hmax, y0, ts, args: tuple):
    ys = solution(func, rtol, atol, mxstep, hmax, y0, ts, args)
    return ys, (ys, ts, args)


def solution_backward(func, rtol, atol, mxstep, hmax, residuals, g):
    """Backwards from each time to the one before: the state again, its cotangent, those of times and arguments."""
    ys, ts, args = residuals
    varied = [i for i, x in enumerate(args) if dtypes.is_inexact(get_aval(x).dtype)]
    nothing = jnp.zeros((), ts.dtype), [jnp.zeros_like(args[i]) for i in varied]
    _, unravel = ravel_pytree((ys[-1], g[-1], *nothing))

    def adjoint(state, minus_t, *args):
        def slope(y, t, *moving):
            given = dict(zip(varied, moving))
            return func(y, t, *[given.get(i, x) for i, x in enumerate(args)])

        y, ct, *_ = unravel(state)
        dy, pull = vjp(slope, y, -minus_t, *[args[i] for i in varied])
        ct_y, ct_t, *ct_args = pull(ct)
        return ravel_pytree((-dy, ct_y, ct_t, ct_args))[0]

    def interval(carry, row):
        (ct, ct_t0, ct_args), (y, g_here, g_before, t, before) = carry, row
        ct_t = jnp.real(jnp.dot(func(y, t, *args), g_here)).astype(ts.dtype)
        state = ravel_pytree((y, ct, ct_t0 - ct_t, ct_args))[0]
        ends = jnp.stack([-t, -before])
        _, ct, ct_t0, ct_args = unravel(solution(adjoint, rtol, atol, mxstep, hmax, state, ends, args)[1])
        return (ct + g_before, ct_t0, ct_args), ct_t

    rows = ys[1:], g[1:], g[:-1], ts[1:], ts[:-1]
    (ct, ct_t0, ct_args), ct_ts = scan(interval, (g[-1], *nothing), rows, reverse=True)
    found = dict(zip(varied, ct_args))
    return ct, jnp.concatenate([ct_t0[None], ct_ts]), tuple(found.get(i) for i in range(len(args)))


solution.defvjp(solution_forward, solution_backward)


@partial(jit, static_argnums=(0, 1, 2, 3, 4))
def integrate(func, rtol, atol, mxstep, hmax, y0, ts, args: tuple):
    """``odeint`` for trees, compiled."""
    vector, unravel = ravel_pytree(y0)
    narrow, wide = vector.dtype, jnp.promote_types(vector.dtype, np.float32)  # in half precision no step is too small
    leaves, tree = tree_flatten(args)

    def slope(y, t, *leaves):
        out = ravel_pytree(func(unravel(y.astype(narrow)), t, *tree_unflatten(tree, leaves)))[0]
        if out.shape != y.shape:
            raise TypeError(f"func must return a derivative for each component of y0: {y.size}, but it has {out.size}")
        return [out.astype(wide)]

    avals = [get_aval(x) for x in (vector.astype(wide), ts[0], *leaves)]
    closed, outer = trace_to_closed_jaxpr(slope, avals, DebugInfo("odeint", function_place(func)))
    flat = (
        lambda y, t, *args: eval_jaxpr(  # noqa: E731
            closed.jaxpr, closed.consts, *args[: len(outer)], y, t, *args[len(outer) :]
        )[0]
    )
    ys = solution(flat, rtol, atol, mxstep, hmax, vector.astype(wide), ts, (*outer, *leaves))
    return vmap(unravel)(ys.astype(narrow))


def odeint(func: Callable, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=jnp.inf, hmax=jnp.inf):
    """Integrate a system of ordinary differential equations.

    Arguments:
      func: ``(y, t, *args) -> dy/dt``, of the structure and the shapes of ``y0``.
      y0: the state at ``t[0]``: a tree of float or complex arrays.
      t: the times at which the state is wanted, increasing floats ``(m,)``; the first is that of ``y0``.
      args: trees of arrays, handed to ``func``.
      rtol, atol: the relative and the absolute error that is tolerated in a step.
      mxstep: how many steps are tried from one time to the next at most.
      hmax: the largest step.
    Returns:
      The states at the times ``t``: a tree as ``y0``, with a leading axis of length ``m`` at every array.
    Raises:
      TypeError: ``func`` cannot be called, or returns another number of components than ``y0`` has, ``t`` holds no
        floats, ``y0`` is of integers, or an argument is no tree of arrays.
      IndexError: ``t`` is not of one axis, or empty.

    >>> import catena.numpy as jnp
    >>> from catena.experimental.ode import odeint
    >>> decay = lambda y, t, rate: -rate * y
    >>> jnp.round(odeint(decay, 1.0, jnp.array([0.0, 1.0, 2.0]), 0.5), 3)
    Array([1.   , 0.607, 0.368], dtype=float32)

    J. R. Dormand, P. J. Prince: A family of embedded Runge-Kutta formulae (1980); L. F. Shampine: Some practical
    Runge-Kutta formulas (1986); R. T. Q. Chen and others: Neural ordinary differential equations (2018).
    """
    check_callable(func)
    for x in tree_leaves(args):
        if not isinstance(x, (Array, Tracer)) and not dtypes.is_scalar_or_numpy(x):
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {x!r}.")
    if not isinstance(t, (Array, Tracer, np.ndarray)) or not dtypes.is_floating(t.dtype):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    if t.ndim != 1 or not t.size:
        raise IndexError(f"t must have one axis and one element at least, got an array of shape {t.shape}")
    vector = ravel_pytree(y0)[0]
    if not dtypes.is_inexact(vector.dtype):
        raise TypeError(f"y0 must be of floats or complex numbers, which change continuously; got {vector.dtype}")
    return integrate(func, float(rtol), float(atol), float(mxstep), float(hmax), y0, leaf_value(t), args)


@lu.transformation2
def ravel_first_arg_(f: Callable, unravel: Callable, y_flat, *args):
    """A function of a tree, wrapped by ``linear_util``, as one of a vector that gives a vector."""
    return ravel_pytree(f(unravel(y_flat), *args))[0]


def ravel_first_arg(f: Callable, unravel: Callable, debug_info) -> Callable:
    """A function of a tree as one of a vector, that gives a vector.

    Arguments:
      f: the function; its first argument and its result are trees of one structure.
      unravel: from vectors to such trees, as ``ravel_pytree`` gives it.
      debug_info: what errors say of the function (``api_util.debug_info``).
    """
    return ravel_first_arg_(lu.wrap_init(f, debug_info=debug_info), unravel).call_wrapped


_open_door(globals(), "catena.experimental.ode", own=True)
__dir__ = _shown(globals())
