"""Weak types of derivatives of weak arrays: as JAX 0.10.2 has them, measured."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import catena.scipy as jsp
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


M = weak([0.3, 0.6, 0.9, 0.2]).reshape(2, 2) + jnp.eye(2, dtype=bool) * 2.0
LINEAR_ALGEBRA = {  # a function of a matrix, and whether its results are weak where the matrix is
    "cholesky": (jnp.linalg.cholesky, True),
    "lu": (lax.linalg.lu, True),
    "qr": (lambda m: lax.linalg.qr(m, pivoting=True), True),
    "svd": (jnp.linalg.svd, True),
    "eigh": (jnp.linalg.eigh, True),
    "eigvals": (jnp.linalg.eigvals, True),
    "schur": (lax.linalg.schur, True),
    "triangular solve": (lambda m: lax.linalg.triangular_solve(m, m), True),
    "triangular solve with a strong matrix": (lambda m: lax.linalg.triangular_solve(m, jnp.eye(2)), False),
    "solve": (lambda m: jnp.linalg.solve(m, m), True),
    "solve for a strong vector": (lambda m: jnp.linalg.solve(m, jnp.ones(2)), False),
    "solve, positive": (lambda m: jsp.linalg.solve(m + m.T, m, assume_a="pos"), True),
    "solve_triangular": (lambda m: jsp.linalg.solve_triangular(m, m[0]), True),
    "cho_solve": (lambda m: jsp.linalg.cho_solve((m, True), m), True),
    "lu_solve": (lambda m: jsp.linalg.lu_solve(jsp.linalg.lu_factor(m)[:1] + (jnp.arange(2),), m), True),
    "symmetric product": (lambda m: lax.linalg.symmetric_product(m, m), True),
    "det": (jnp.linalg.det, True),
    "inv": (jnp.linalg.inv, False),
    "pinv": (jnp.linalg.pinv, False),
    "top_k": (lambda m: lax.top_k(m, 1), True),
}


@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra_of_a_weak_matrix(name):
    fun, is_weak = LINEAR_ALGEBRA[name]
    for results in (fun(M), jax.jit(fun)(M), jax.eval_shape(fun, M)):
        assert {x.weak_type for x in jax.tree.leaves(results)} == {is_weak}
    strong = lax.convert_element_type(M, "float32")
    for ours, expected in zip(jax.tree.leaves(fun(M)), jax.tree.leaves(fun(strong)), strict=True):
        assert not expected.weak_type
        np.testing.assert_allclose(ours, expected, rtol=1e-5)


DERIVATIVES_OF_WEAK_MATRICES = {  # whose tangents and gradients are weak where the matrix is
    "cholesky": lambda m: jnp.linalg.cholesky(m + m.T),
    "singular values": lambda m: jnp.linalg.svd(m, compute_uv=False),
    "eigenvalues": lambda m: jnp.linalg.eigvalsh(m),
}


def test_the_gradient_of_an_inverse_is_as_weak_as_the_matrix():
    gradient = jax.grad(lambda m: jnp.sum(jnp.linalg.inv(m)))
    inverse = np.linalg.inv(M)
    for found in (gradient(M), jax.jit(gradient)(M)):
        assert found.weak_type
        np.testing.assert_allclose(found, -inverse.T @ np.ones((2, 2)) @ inverse.T, rtol=1e-4)


@pytest.mark.parametrize(
    "fun", [jsp.special.log_ndtr, jsp.special.expi, jsp.special.exp1, lambda x: jsp.special.expn(2, x)]
)
def test_special_functions_whose_values_are_not_weak(fun):
    for transformed in (fun, jax.grad(fun), jax.jit(fun), jax.jit(jax.grad(fun))):
        assert not transformed(0.5).weak_type and transformed(0.5).dtype == jnp.float32
    step = 1e-2
    np.testing.assert_allclose(jax.grad(fun)(0.5), (fun(0.5 + step) - fun(0.5 - step)) / (2 * step), rtol=1e-2)


def test_divisors_of_a_weak_number_and_a_truth_are_weak():
    six = jnp.asarray(6)
    for fun, expected in ((jnp.gcd, 1), (jnp.lcm, 6)):
        for x, y in ((six, True), (6, True), (jnp.bool_(True), six)):
            found = fun(x, y)
            assert found.weak_type and found == expected and found.dtype == jnp.int32
            assert jax.jit(fun)(x, y).weak_type


@pytest.mark.parametrize("name", DERIVATIVES_OF_WEAK_MATRICES)
def test_derivatives_of_factorisations_of_a_weak_matrix(name):
    fun = DERIVATIVES_OF_WEAK_MATRICES[name]
    strong = lax.convert_element_type(M, "float32")
    assert jax.jvp(fun, (M,), (M,))[1].weak_type and not jax.jvp(fun, (strong,), (strong,))[1].weak_type
    assert jax.grad(lambda m: jnp.sum(fun(m)))(M).weak_type
    np.testing.assert_array_equal(jax.jvp(fun, (M,), (M,))[1], jax.jvp(fun, (strong,), (strong,))[1])


def test_means_along_named_axes_are_as_weak_as_what_is_averaged():
    """Also of integers and constants, which become floats."""

    def mean(x):
        return jax.vmap(lambda v: lax.pmean(v, "i"), axis_name="i")(x)

    whole = lax.full_like(S, 2, "int32")
    assert mean(X).weak_type and not mean(S).weak_type and not mean(whole).weak_type
    weak_whole = jnp.stack([jnp.asarray(3)] * 3)
    assert weak_whole.weak_type and mean(weak_whole).weak_type and mean(weak_whole).dtype == "float32"
    assert jax.vmap(lambda v: lax.pmean(1, "i"), axis_name="i")(S).weak_type
    np.testing.assert_array_equal(mean(weak_whole), [3.0, 3.0, 3.0])


def test_integers_to_traced_integer_powers_are_not_weak():
    """As in JAX: what such a power meets decides nothing, so that narrow integers times it are of its width."""
    narrow = jnp.ones(2, np.int8)
    for base in (2, 3, jnp.asarray(2)):
        power = jax.jit(lambda n, base=base: base**n)
        assert not power(3).weak_type and (base ** jnp.asarray(3)).weak_type
        assert jax.jit(lambda n, base=base: base**n * narrow)(3).dtype == np.int32
    assert jax.jit(lambda n: n**2)(3).weak_type and jax.jit(lambda x: x**2.0)(3).weak_type
    assert not lax.fori_loop(0, 3, lambda i, c: c + 2**i, 0).weak_type
