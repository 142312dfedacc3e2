"""Random programs: eager, compiled, vectorised and NumPy agree, and derivatives agree with each other.

A program is a list of steps; each takes values that exist and makes one more. It is run with NumPy in double
precision
and with the language in every way there is.
"""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

import catena as jax
import catena.numpy as jnp

SHAPE = (2, 3)

# Every step is smooth and maps moderate numbers to moderate numbers, so that finite differences mean
# something.
UNARY = {
    "sin": lambda np_, x: np_.sin(x),
    "cos": lambda np_, x: np_.cos(x),
    "tanh": lambda np_, x: np_.tanh(x),
    "exp": lambda np_, x: np_.exp(np_.sin(x)),
    "log": lambda np_, x: np_.log(x * x + 2.0),
    "sqrt": lambda np_, x: np_.sqrt(x * x + 1.0),
    "neg": lambda np_, x: -x,
    "cube": lambda np_, x: np_.tanh(x) ** 3,
    "reverse": lambda np_, x: x[::-1],
    "transpose": lambda np_, x: np_.reshape(x.T, SHAPE),
    "sum": lambda np_, x: x - np_.sum(x, axis=1, keepdims=True) / 3,
    "max": lambda np_, x: x - np_.max(x, axis=0, keepdims=True),
    "cumsum": lambda np_, x: np_.cumsum(x, axis=1) / 3,
    "slice": lambda np_, x: np_.concatenate([x[:, 1:], x[:, :1]], axis=1),
    "mean": lambda np_, x: np_.broadcast_to(np_.mean(x), SHAPE),
    "outer": lambda np_, x: x @ (x.T @ x) / 9,
    "scale": lambda np_, x: x * 0.5 + 1.25,
    "row": lambda np_, x: np_.stack([x[0], x[0] * x[1]]),
    "where": lambda np_, x: np_.where(np_.arange(3) < 2, x, 2.0 * x),
    "jit": lambda np_, x: x * 0.25 if np_ is np else jax.jit(lambda y: y * 0.25)(x),
    "checkpoint": lambda np_, x: np.sin(x) if np_ is np else jax.checkpoint(jnp.sin)(x),
    "scan": lambda np_, x: np.cumsum(x, axis=0) / 2 if np_ is np else scanned(x),
    "vmap": lambda np_, x: np.sin(x) * x if np_ is np else jax.vmap(lambda r: jnp.sin(r) * r, 1, 1)(x),
    "cond": lambda np_, x: np.cos(x) if np_ is np else jax.lax.cond(x.shape[0] > 1, jnp.cos, jnp.sin, x),
}
BINARY = {
    "add": lambda np_, x, y: (x + y) / 2,
    "sub": lambda np_, x, y: x - y,
    "mul": lambda np_, x, y: np_.tanh(x) * y,
    "div": lambda np_, x, y: x / (y * y + 1.5),
    "atan2": lambda np_, x, y: np_.arctan2(x, y * y + 1.0),
    "dot": lambda np_, x, y: x @ np_.swapaxes(y, 0, 1) @ y / 9,
    "broadcast": lambda np_, x, y: x + y[:1] * 0.5,
}


def scanned(x):
    return jax.lax.scan(lambda c, row: (c + row / 2, c + row / 2), jnp.zeros_like(x[0]), x)[1]


@st.composite
def programs(draw):
    steps = []
    for i in range(draw(st.integers(1, 7))):
        value = st.integers(0, i + 1)  # two arguments and the steps so far
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(sorted(UNARY))), draw(value)))
        else:
            steps.append((draw(st.sampled_from(sorted(BINARY))), draw(value), draw(value)))
    return tuple(steps)


def run(steps, np_, a, b):
    """The last value of a program, and the mean of all of them so that every step counts."""
    values = [a, b]
    for name, *inputs in steps:
        rule = UNARY.get(name) or BINARY[name]
        values.append(rule(np_, *[values[i] for i in inputs]))
    return values[-1] + sum(values[2:]) / len(values)


arrays = st.integers(0, 10**6).map(lambda seed: np.random.default_rng(seed).uniform(-1.5, 1.5, (2, *SHAPE)))


def close(actual, expected, tol):
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


@settings(max_examples=30)
@given(programs(), arrays)
def test_values(steps, points):
    a, b = points.astype(np.float32)
    program = lambda a, b: run(steps, jnp, a, b)
    expected = run(steps, np, *points)
    eager = program(jnp.asarray(a), jnp.asarray(b))
    assert eager.shape == SHAPE and eager.dtype == jnp.float32
    close(eager, expected, 2e-5)
    close(jax.jit(program)(a, b), expected, 2e-5)
    batched = jax.vmap(program)(np.stack([a, b]), np.stack([b, a]))
    close(batched[0], expected, 2e-5)
    close(batched[1], run(steps, np, *points[::-1]), 2e-5)
    close(jax.vmap(program, (1, None), 2)(np.stack([a, a], 1), b)[:, :, 1], expected, 2e-5)


@settings(max_examples=20)
@given(programs(), arrays, arrays)
def test_derivatives(steps, points, directions):
    with jax.enable_x64(True):
        a, b = points
        program = lambda a, b: run(steps, jnp, a, b)
        v, w = directions
        value, tangent = jax.jvp(program, (a, b), (v, w))
        # forward mode against finite differences
        h = 1e-5
        difference = (run(steps, np, a + h * v, b + h * w) - run(steps, np, a - h * v, b - h * w)) / (2 * h)
        if "max" not in [s[0] for s in steps]:  # which has corners
            close(tangent, difference, 1e-6)
        # reverse against forward mode: <u, J v> = <J^T u, v>
        u = np.cos(np.arange(6.0)).reshape(SHAPE)
        _, pull = jax.vjp(program, a, b)
        ca, cb = pull(u)
        close(np.sum(u * np.asarray(tangent)), np.sum(np.asarray(ca) * v) + np.sum(np.asarray(cb) * w), 1e-9)
        # the derivative compiled, linearized, and of the compiled function
        close(jax.linearize(program, a, b)[1](v, w), tangent, 1e-12)
        loss = lambda a, b: jnp.sum(program(a, b) * u)
        for gradient in (jax.jit(jax.grad(loss, (0, 1))), jax.grad(jax.jit(loss), (0, 1))):
            close(gradient(a, b)[0], ca, 1e-9)
            close(gradient(a, b)[1], cb, 1e-9)
        # per-example gradients against one at a time
        each = jax.vmap(jax.grad(loss))(np.stack([a, b]), np.stack([b, a]))
        close(each[0], ca, 1e-9)


@settings(max_examples=15)
@given(programs(), arrays, arrays)
def test_second_derivatives(steps, points, directions):
    if "max" in [s[0] for s in steps]:
        return
    with jax.enable_x64(True):
        a, b = points
        v, _ = directions
        loss = lambda a: jnp.sum(jnp.sin(run(steps, jnp, a, b)))
        gradient = jax.grad(loss)
        h = 1e-5
        difference = (np.asarray(gradient(a + h * v)) - np.asarray(gradient(a - h * v))) / (2 * h)
        forward_over_reverse = jax.jvp(gradient, (a,), (v,))[1]
        close(forward_over_reverse, difference, 1e-5)
        close(jax.grad(lambda a: jnp.sum(gradient(a) * v))(a), forward_over_reverse, 1e-9)
        close(jax.grad(lambda a: jax.jvp(loss, (a,), (v,))[1])(a), forward_over_reverse, 1e-9)
        close(jax.jit(lambda a: jax.jvp(gradient, (a,), (v,))[1])(a), forward_over_reverse, 1e-9)
