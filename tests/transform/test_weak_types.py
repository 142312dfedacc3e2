"""Weak types of derivatives of weak arrays: as JAX 0.10.2 has them, measured."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.zeros import add_cotangents, add_tangents


def weak(values):
    """A weakly typed array of these numbers, which only arithmetic with Python's numbers makes."""
    return sum(jnp.asarray(np.arange(len(values)) == i) * v for i, v in enumerate(values))


X, Y, S = weak([0.3, 0.6, 0.9]), weak([1.3, 1.6, 1.9]), jnp.array([1.0, 2.0, 3.0])
PLACES = jnp.array([0, 2, 1])
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))

# A function of weak x and a weak y, whether the gradients by them are weak, and whether the tangent is.
MEASURED = {
    "power": (lambda x, y: x**y, (False, True), False),
    "power of an integer": (lambda x, y: lax.pow(x, 2), (False, True), False),
    "power of integers": (lambda x, y: x**PLACES, (False, True), False),
    "product with a strong array": (lambda x, y: x * S + y, (True, True), False),
    "set to a strong array": (lambda x, y: x.at[PLACES].set(S), (True, True), True),
    "set of a strong array": (lambda x, y: S.at[PLACES].set(x), (True, True), False),
    "add to a strong array": (lambda x, y: S.at[PLACES].add(x), (True, True), False),
    "set one": (lambda x, y: S.at[0].set(y[0]), (True, False), False),
    "scatter": (lambda x, y: lax.scatter(x, PLACES[:, None], y, ROWS), (True, True), True),
    "put": (lambda x, y: jnp.put(x, PLACES, y, inplace=False), (True, True), True),
    "edges": (lambda x, y: jnp.pad(x, 1, mode="edge"), (True, True), True),
    "ramps": (lambda x, y: jnp.pad(x, 2, mode="linear_ramp"), (True, True), True),
    "differences": (lambda x, y: jnp.gradient(x), (False, True), True),
    "softmax": (lambda x, y: jax.nn.softmax(x), (True, True), False),
    "log_softmax": (lambda x, y: jax.nn.log_softmax(x), (True, True), False),
    "segments": (lambda x, y: jax.ops.segment_sum(x, PLACES), (True, True), False),
    "windows": (lambda x, y: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"), (True, True), True),
    "slice": (lambda x, y: x[:2], (False, True), True),
    "gather": (lambda x, y: x[PLACES], (False, True), True),
    "sum": (lambda x, y: x + y, (True, True), True),
}


@pytest.mark.parametrize("name", MEASURED)
def test_as_measured(name):
    fun, gradients, tangent = MEASURED[name]
    total = lambda x, y: jnp.sum(fun(x, y))
    for gradient in (jax.grad(total, (0, 1)), jax.jit(jax.grad(total, (0, 1)))):
        assert tuple(g.weak_type for g in gradient(X, Y)) == gradients
    assert jax.jvp(fun, (X, Y), (X, Y))[1].weak_type is tangent


@pytest.mark.parametrize("name", ["min", "max"])
def test_tangents_of_extremes_are_as_weak_as_their_values(name):
    for operand, values in ((X, Y), (X, S), (S, X)):
        put = lambda x, y: getattr(x.at[PLACES], name)(y)
        value, tangent = jax.jvp(put, (operand, values), (operand, values))
        assert value.weak_type is tangent.weak_type is operand.weak_type


def test_sums():
    """Those of tangents are weak where both are, those of cotangents where the first is."""
    assert not add_tangents(X, S).weak_type and not add_tangents(S, X).weak_type and add_tangents(X, Y).weak_type
    assert add_cotangents(X, S).weak_type and not add_cotangents(S, X).weak_type
    np.testing.assert_array_equal(add_tangents(X, S), add_cotangents(S, X))


def test_gradients_of_weak_numbers_promote_like_them():
    """Downstream a weak gradient does not widen what it meets."""
    half = jnp.ones(3, "bfloat16")
    step = jax.grad(lambda s: jnp.sum(S.at[0].set(s)))(0.5)
    assert (half - 0.1 * step).dtype == "bfloat16"
