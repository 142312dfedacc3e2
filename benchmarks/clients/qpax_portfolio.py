"""Quadratic programs by an interior point method, and their derivative: a portfolio for a batch of expectations."""

import jax
import jax.numpy as jnp
import qpax


def example():
    a = jax.random.normal(jax.random.key(0), (12, 12))
    risk = a @ a.T / 12 + 0.1 * jnp.eye(12)
    total, one = jnp.ones((1, 12)), jnp.ones(1)
    bounds, limits = jnp.concatenate([-jnp.eye(12), jnp.eye(12)]), jnp.repeat(jnp.array([0.0, 0.4]), 12)

    def risk_of(gains):
        held = qpax.solve_qp_primal(risk, -gains, total, one, bounds, limits, solver_tol=1e-4)
        return held @ risk @ held

    @jax.jit
    def step(gains):
        values, slopes = jax.vmap(jax.value_and_grad(risk_of))(gains)
        inside, *_, converged, _ = qpax.solve_qp(risk, -gains[0], total, one, bounds, limits, solver_tol=1e-4)
        return gains - 0.1 * slopes, jnp.concatenate([values, inside, converged[None].astype(gains.dtype)])

    return step, jax.random.normal(jax.random.key(1), (4, 12)) * 0.3


TOLERANCE = 1e-3
