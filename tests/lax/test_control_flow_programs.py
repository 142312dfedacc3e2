"""Random programs of nested loops and branches: the rules agree with the same program unrolled in Python.

Without jit, loops and branches are Python's, and derivatives know nothing of them: an independent oracle.
"""

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import catena as jax
import catena.numpy as jnp
from catena import lax

SIMPLE = {
    "sin": jnp.sin,
    "scale": lambda x: x * 0.7 + 0.1,
    "square": lambda x: 0.3 * x * x,
    "mix": lambda x: jnp.tanh(x + x.sum() * 0.2),
    "roll": lambda x: jnp.concatenate([x[1:], x[:1]]),
}


def program(tree):
    """The function of a vector that a tree of names and numbers describes."""
    kind, *parts = tree
    if kind == "simple":
        return SIMPLE[parts[0]]
    if kind == "then":
        first, second = map(program, parts)
        return lambda x: second(first(x))
    if kind == "closure":  # the inner function also sees what the outer one has
        first, second = map(program, parts)
        return lambda x: lax.scan(lambda c, _: (first(c) + x, c.sum()), second(x), None, length=2)[0]
    if kind == "scan":
        body, reverse = program(parts[0]), parts[1]
        return lambda x: sum_pair(lax.scan(lambda c, t: (body(c) * t, c * 0.5), x, x, reverse=reverse))
    if kind == "while":
        body, n = program(parts[0]), parts[1]
        return lambda x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, body(c[1])), (0, x))[1]
    if kind == "fori":
        body, n = program(parts[0]), parts[1]
        return lambda x: lax.fori_loop(0, n, lambda i, c: body(c) + 0.1 * i, x)
    if kind == "until":  # how often depends on the value
        body = program(parts[0])
        stop = lambda c: (c[0] < 4) & (c[1].sum() > -0.2)
        return lambda x: lax.while_loop(stop, lambda c: (c[0] + 1, body(c[1]) - 0.15), (0, x))[1]
    first, second = map(program, parts)
    return lambda x: lax.cond(x[0] > 0.21, first, second, x)


def sum_pair(pair):
    carry, ys = pair
    return carry + ys.sum(0)


leaf = st.tuples(st.just("simple"), st.sampled_from(sorted(SIMPLE)))
trees = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("then"), inner, inner),
        st.tuples(st.just("closure"), inner, inner),
        st.tuples(st.just("scan"), inner, st.booleans()),
        st.tuples(st.just("while"), inner, st.integers(0, 3)),
        st.tuples(st.just("fori"), inner, st.integers(0, 3)),
        st.tuples(st.just("until"), inner),
        st.tuples(st.just("cond"), inner, inner),
    ),
    max_leaves=4,
)
X = np.array([0.5, -0.3, 0.8])


def in_float64(test):
    """Squares in loops amplify rounding; in float64 it stays far below what these tests tell apart."""

    @functools.wraps(test)
    def wrapped(*args, **kwargs):
        with jax.enable_x64(True):
            test(*args, **kwargs)

    return wrapped


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@settings(max_examples=8)
@given(trees)
@in_float64
def test_values_and_derivatives(tree):
    f = program(tree)
    loss = lambda x: (f(x) * jnp.asarray([1.0, -2.0, 3.0])).sum()
    second = lambda x: (jax.grad(loss)(x) ** 2).sum()
    with jax.disable_jit():
        value, gradient, curvature = f(X), jax.grad(loss)(X), jax.grad(second)(X)
        tangent = jax.jvp(f, (X,), (X[::-1].copy(),))[1]
    close(f(X), value)
    close(jax.jit(f)(X), value)
    close(jax.grad(loss)(X), gradient)
    close(jax.jit(jax.grad(loss))(X), gradient)
    close(jax.jvp(f, (X,), (X[::-1].copy(),))[1], tangent)
    close(jax.jit(jax.grad(second))(X), curvature)


@settings(max_examples=5)
@given(trees)
@in_float64
def test_vectorised(tree):
    f = program(tree)
    loss = lambda x: (f(x) * jnp.asarray([1.0, -2.0, 3.0])).sum()
    xs = np.stack([X, -X, X[::-1], 0.3 * X])
    with jax.disable_jit():
        values, gradients = [f(x) for x in xs], [jax.grad(loss)(x) for x in xs]
    close(jax.vmap(f)(xs), values)
    close(jax.jit(jax.vmap(jax.grad(loss)))(xs), gradients)
    close(jax.grad(lambda xs: jax.vmap(loss)(xs).sum())(xs), gradients)
