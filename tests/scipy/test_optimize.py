"""``minimize``: minima that are known, conditions that every step satisfies, and how it ends."""

import numpy as np
import pytest
import scipy.optimize

import catena as jax
import catena.numpy as jnp
from catena.scipy.optimize import OptimizeResults, minimize
from catena.scipy.optimize.line_search import COLLAPSED, CURVATURE, DECREASE, EXHAUSTED, FOUND, strong_wolfe

LBFGS = "l-bfgs-experimental-do-not-rely-on-this"
METHODS = ("BFGS", LBFGS)


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bowl(x, center=1.0):
    return jnp.sum(jnp.arange(1.0, x.size + 1) * (x - center) ** 2)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("method", METHODS)
def test_rosenbrock(x64, method):
    start = np.array([0.5, 2.0, 0.7, 2.0])
    options = {"ftol": 0.0} if method == LBFGS else {}
    found = jax.jit(lambda x: minimize(rosenbrock, x, method=method, options=options))(start)
    assert found.success and found.status == 0 and found.nfev == found.njev >= found.nit
    np.testing.assert_allclose(found.x, 1, atol=1e-4)
    np.testing.assert_allclose(found.jac, jax.grad(rosenbrock)(found.x), atol=1e-12)
    assert np.max(np.abs(found.jac)) < 1e-5 and found.fun == pytest.approx(float(rosenbrock(found.x)))
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method="BFGS")
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-4)
    if method == "BFGS":
        np.testing.assert_allclose(found.hess_inv, np.linalg.inv(jax.hessian(rosenbrock)(found.x)), rtol=0.2, atol=0.02)
    else:
        assert found.hess_inv is None


def test_bfgs_of_a_quadratic_knows_its_hessian(x64):
    found = minimize(bowl, jnp.zeros(4), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found.x, 1, atol=1e-9)
    np.testing.assert_allclose(found.hess_inv, np.diag(0.5 / np.arange(1, 5)), atol=1e-2)


def test_a_batch_is_a_loop():
    starts = jnp.array([[0.0, 0.0], [1.0, 1.0], [3.0, -1.0]])
    fields = ("x", "success", "status", "nit", "nfev")
    solve = lambda x: [getattr(minimize(bowl, x, method="BFGS"), name) for name in fields]
    batch = jax.vmap(solve)(starts)
    for i, start in enumerate(starts):
        for of_batch, alone in zip(batch, solve(start), strict=True):
            np.testing.assert_allclose(of_batch[i], alone, atol=1e-5)
    assert batch[3][1] == 0 and batch[4][1] == 1  # one begins at the minimum


def test_derivative_by_an_argument():
    best = lambda a: minimize(lambda x: jnp.sum((x - a) ** 2 + x**2), jnp.zeros(2), method="BFGS").x
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jacobian(best)(3.0), [0.5, 0.5], atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_complex(method):
    center = jnp.array([1 + 2j, -1j])
    found = minimize(lambda x: jnp.sum(jnp.abs(x - center) ** 2), jnp.zeros(2, "complex64"), method=method)
    assert found.success and found.x.dtype == "complex64"
    np.testing.assert_allclose(found.x, center, atol=1e-4)


def test_statuses():
    run = lambda fun, method="BFGS", **options: minimize(fun, jnp.array([-1.2, 1.0]), method=method, options=options)
    assert run(rosenbrock, maxiter=2)[1:3] == (False, 1) and run(rosenbrock, maxiter=2).nit == 2
    assert run(rosenbrock, LBFGS, maxiter=2)[1:3] == (False, 1)
    assert run(rosenbrock, LBFGS, maxfun=4)[1:3] == (False, 2)
    assert run(rosenbrock, LBFGS, maxgrad=4)[1:3] == (False, 3)
    assert run(bowl, LBFGS, ftol=0.5, gtol=0.0)[1:3] == (False, 4)
    for method in METHODS:
        endless = run(jnp.sum, method)
        assert endless[1:3] == (False, 5)
        np.testing.assert_array_equal(endless.x, np.float32([-1.2, 1.0]))  # what did not work is not taken
    kink = run(lambda x: jnp.sum(jnp.abs(x - 0.1)))
    assert not kink.success and kink.status in (3, 5)


def test_tol_is_the_tolerance_of_the_gradient():
    exact, coarse = (minimize(bowl, jnp.zeros(9), method="BFGS", tol=tol) for tol in (1e-4, 3.0))
    assert coarse.nit < exact.nit and 1e-4 < np.max(np.abs(coarse.jac)) < 3
    assert minimize(bowl, jnp.zeros(9), method="BFGS", tol=3.0, options={"gtol": 1e-4}).nit == exact.nit
    assert minimize(bowl, jnp.zeros(9), method=LBFGS, tol=3.0).nit < exact.nit


def test_a_search_leaves_where_the_function_is_not_defined():
    found = minimize(lambda x: jnp.sum(x - jnp.log(x)), jnp.array([20.0, 0.1]), method="BFGS")
    np.testing.assert_allclose(found.x, 1, atol=1e-3)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda: minimize(bowl, jnp.zeros(2), 3.0, method="BFGS")),
        (TypeError, lambda: minimize(bowl, jnp.zeros(2))),
        (ValueError, lambda: minimize(bowl, jnp.zeros(2), method="CG")),
        (TypeError, lambda: minimize(bowl, jnp.zeros((2, 2)), method="BFGS")),
        (TypeError, lambda: minimize(bowl, jnp.zeros(2, int), method="BFGS")),
        (TypeError, lambda: minimize(bowl, [0.0, 0.0], method="BFGS")),
        (TypeError, lambda: minimize(bowl, jnp.zeros(2), method="BFGS", options={"maxcor": 3})),
        (TypeError, lambda: minimize(bowl, jnp.zeros(2), method="BFGS", options=["maxiter"])),
        (TypeError, lambda: minimize(lambda x: x, jnp.zeros(2), method="BFGS")),
    ],
)
def test_bad_input(error, call):
    with pytest.raises(error):
        call()


def test_results_are_a_tree():
    found = minimize(bowl, jnp.ones(2), method="BFGS")
    assert isinstance(found, OptimizeResults) and len(jax.tree.leaves(found)) == 9
    assert found.nit == 0 and found.nfev == 1 and found.success


# ---- line search

CURVES = {
    "quadratic": lambda a: (a - 3.0) ** 2,
    "far": lambda a: (a - 300.0) ** 2,
    "near": lambda a: (a - 0.003) ** 2,
    "wavy": lambda a: (a - 2.0) ** 2 - jnp.sin(8 * a),  # Nocedal and Wright, section 3.5: what makes zoom necessary
    "flat": lambda a: -a / (a**2 + 2),  # More and Thuente (1994), function 5.1
    "pole": lambda a: a - 0.1 * jnp.log(jnp.where(a < 1, (1 - a) * (a + 0.01), jnp.nan)),
}


@pytest.mark.parametrize("name", CURVES)
def test_steps_satisfy_the_strong_wolfe_conditions(x64, name):
    curve = lambda x: CURVES[name](x[0])
    function, point, one = jax.value_and_grad(curve), jnp.zeros(1), jnp.ones(1)
    value, gradient = function(point)
    assert gradient[0] < 0
    search, outcome = strong_wolfe(function, point, one, value, gradient, 1.0, 30)
    assert outcome == FOUND
    there, slope = function(point + search.trial * one)
    assert there <= value + DECREASE * search.trial * gradient[0] and abs(slope[0]) <= -CURVATURE * gradient[0]
    # in the search, a loop, products are rounded with the sums they go into
    np.testing.assert_allclose([search.value, search.gradient[0]], [there, slope[0]], rtol=1e-14)


def test_an_interval_is_searched_to_the_least_value_of_a_parabola():
    """However few steps are allowed before it is found; the cubic through three points of a parabola is the parabola."""
    valley = lambda x: 100 * (x[1] - x[0]) ** 2 + (1 - x[0]) ** 2
    for method, name in (("BFGS", "line_search_maxiter"), (LBFGS, "maxls")):
        for tries in (2, 9):
            found = minimize(valley, jnp.zeros(2), method=method, options={name: tries, "maxiter": 1})
            np.testing.assert_allclose(found.x, [1 / 101, 0], 1e-5)


def test_searches_that_find_nothing(x64):
    start, one = jnp.zeros(1), jnp.ones(1)
    search = lambda curve: strong_wolfe(
        jax.value_and_grad(lambda x: curve(x[0])), start, one, 0.0 * one[0], -one, 1.0, 9
    )
    falling, outcome = search(lambda a: -a)
    assert outcome == EXHAUSTED and falling.evaluations == 9 and not falling.found
    cliff = jax.value_and_grad(lambda x: jnp.where(x[0] <= 0, -x[0], jnp.inf))
    assert strong_wolfe(cliff, start, one, 0.0 * one[0], -one, 1.0, 2000)[1] == COLLAPSED
