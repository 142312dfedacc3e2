"""``odeint`` beside solutions in closed form and SciPy's, and its derivatives beside theirs."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import catena as jax
import catena.numpy as jnp
from catena.experimental import ode
from catena.experimental.ode import odeint
from catena.flatten_util import ravel_pytree

T = jnp.linspace(0.0, 1.0, 4)


def close(a, b, tol=2e-4):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def decay(y, t, rate=1.0):
    return -rate * y


def test_closed_forms():
    exact = np.exp(-np.asarray(T))
    close(odeint(decay, 1.0, T), exact)
    close(odeint(decay, jnp.complex64(1), T, -1j), np.exp(1j * np.asarray(T)))
    close(odeint(lambda y, t: t, 0.0, T), np.asarray(T) ** 2 / 2)
    close(odeint(decay, jnp.float16(1), T), exact, 2e-3)
    close(odeint(decay, 1.0, jnp.array([0.0, 0.0, 1.0, 1.0])), np.exp([0.0, 0.0, -1.0, -1.0]))
    tree = odeint(lambda y, t: {"a": y["b"], "b": (-y["a"])}, {"a": 0.0, "b": jnp.ones(())}, T)
    close(tree["a"], np.sin(T))
    assert odeint(decay, 1.0, T[:1]).tolist() == [1.0] and odeint(decay, jnp.zeros(0), T).shape == (4, 0)
    assert not odeint(decay, 1.0, T).weak_type


def test_a_nonlinear_system_beside_scipy():
    def oscillator(y, t, mu):
        return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    times = np.linspace(0, 5, 6)
    theirs = solve_ivp(
        lambda t, y: [y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]], (0, 5), [1.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-10
    )
    with jax.enable_x64(True):
        ours = odeint(oscillator, jnp.array([1.0, 0.0]), jnp.asarray(times), 2)
        close(ours, theirs.y.T, 1e-7)
    few = odeint(oscillator, jnp.array([1.0, 0.0]), jnp.asarray(times, jnp.float32), 2, mxstep=2)
    small = odeint(oscillator, jnp.array([1.0, 0.0]), jnp.asarray(times, jnp.float32), 2, rtol=1.0, atol=1.0, hmax=0.05)
    assert np.abs(few - theirs.y.T).max() > 1e-2 > np.abs(small - theirs.y.T).max()


def test_gradients():
    last = lambda y, t, a: odeint(decay, y, t, a)[-1]
    y, a, e = 1.5, 2.0, np.exp(-2.0)
    close(jax.grad(last)(y, T, a), e)
    close(jax.grad(last, 1)(y, T, a), [a * y * e, 0, 0, -a * y * e])
    close(jax.grad(last, 2)(y, T, a), -y * e)
    close(jax.grad(lambda a: odeint(lambda y, t: -a * y, y, T)[-1])(a), -y * e)  # closed over
    close(jax.vmap(jax.grad(last, 2), (None, None, 0))(y, T, jnp.array([1.0, 2.0])), [-y * np.exp(-1), -y * e])
    close(jax.grad(lambda y: odeint(decay, y, T, 2)[-1])(y), e)  # an integer is no variable
    close(jax.grad(lambda t: odeint(decay, 1.0, t).sum())(T)[1:], -np.exp(-np.asarray(T))[1:])
    close(jax.jacrev(lambda y: odeint(decay, y, T))(jnp.ones(2))[-1], np.exp(-1) * np.eye(2))


def test_gradients_beside_finite_differences():
    def pendulum(y, t, p):
        return jnp.stack([y[1], -p["g"] * jnp.sin(y[0]) + p["f"] * jnp.cos(t)])

    def loss(y, g, f):
        return jnp.sum(odeint(pendulum, y, jnp.linspace(0.0, 2.0, 5), {"g": g, "f": f}) ** 2)

    with jax.enable_x64(True):
        at = jnp.array([0.5, 0.1]), jnp.float64(1.3), jnp.float64(0.2)
        dy, dg, df = jax.grad(loss, (0, 1, 2))(*at)
        h = 1e-5
        close(dg, (loss(at[0], 1.3 + h, 0.2) - loss(at[0], 1.3 - h, 0.2)) / (2 * h), 1e-6)
        close(df, (loss(at[0], 1.3, 0.2 + h) - loss(at[0], 1.3, 0.2 - h)) / (2 * h), 1e-6)
        unit = jnp.array([1.0, 0.0])
        close(dy[0], (loss(at[0] + h * unit, 1.3, 0.2) - loss(at[0] - h * unit, 1.3, 0.2)) / (2 * h), 1e-6)


def test_the_method():
    """A step is exact for polynomials of degree 5, and its interpolant for those of degree 4."""
    powers = lambda t: jnp.stack([t**k for k in range(6)])
    slopes = lambda y, t: jnp.stack([0.0 * t, *[k * t ** (k - 1) for k in range(1, 6)]])
    with jax.enable_x64(True):
        t0, dt = jnp.float64(0.3), jnp.float64(0.4)
        y1, f1, error, k = ode.runge_kutta_step(slopes, powers(t0), slopes(0, t0), t0, dt)
        close(y1, powers(t0 + dt), 1e-14)
        close(f1, slopes(0, t0 + dt), 1e-14)
        close(error[:5], np.zeros(5), 1e-15)
        middle = jnp.polyval(ode.interp_fit_dopri(powers(t0), y1, k, dt), 0.25)
        close(middle[:5], powers(t0 + 0.25 * dt)[:5], 1e-14)
    assert float(ode.optimal_step_size(1.0, 0.5)) > 1 == float(ode.optimal_step_size(1.0, 0.99))
    assert [float(ode.optimal_step_size(1.0, r)) for r in (0.0, 1e12)] == [10.0, pytest.approx(0.2)]


@pytest.mark.parametrize(
    ("kind", "pattern", "args"),
    [
        (TypeError, "callable", (3, 1.0, T)),
        (TypeError, "t must be an array of floats", (decay, 1.0, jnp.arange(3))),
        (TypeError, "t must be an array of floats", (decay, 1.0, [0.0, 1.0])),
        (TypeError, "y0 must be of floats", (decay, 1, T)),
        (TypeError, "must be arrays or scalars, but got 'a'", (decay, 1.0, T, "a")),
        (IndexError, "one axis", (decay, 1.0, jnp.float32(1))),
        (IndexError, "one axis", (decay, 1.0, jnp.zeros(0))),
        (TypeError, "each component of y0: 1, but it has 2", (lambda y, t: jnp.ones(2), 1.0, T)),
    ],
)
def test_wrong_arguments(kind, pattern, args):
    with pytest.raises(kind, match=pattern):
        odeint(*args)


def test_what_no_number_solves():
    assert np.isnan(odeint(lambda y, t: y * jnp.nan, 1.0, T)[1:]).all()
    assert np.isnan(odeint(decay, 1.0, T[::-1])[1:]).all()


def test_a_function_of_a_tree_as_one_of_a_vector():
    vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.ones(2)})
    f = ode.ravel_first_arg(lambda y, t: {"a": y["a"] * t, "b": y["b"]}, unravel, None)
    assert f(vector, 3.0).tolist() == [3.0, 1.0, 1.0]
