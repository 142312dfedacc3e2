"""The sparse Jacobian and Hessian of a function, whose patterns are read off its jaxpr."""

import asdex
import jax
import jax.numpy as jnp


def example():
    def flow(x):
        inner = jnp.sin(x[2:]) * x[1:-1] ** 2 - x[:-2]
        ends = jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x[:2])[1]
        return jnp.concatenate([ends, jnp.where(inner > 0, inner, 0.1 * inner)])

    def energy(x):
        return jnp.sum(flow(x) ** 2) + jnp.exp(0.1 * x[0] * x[5])

    start = jnp.linspace(-1, 1, 24)
    pattern = asdex.hessian_sparsity(energy, start).todense()
    jacobian, hessian = asdex.jacobian(flow, start), asdex.hessian(energy, start)

    @jax.jit
    def step(x):
        slopes, bends = jacobian(x).todense(), hessian(x).todense()
        values = jnp.stack([slopes.sum(), jnp.linalg.norm(bends), pattern.sum(dtype=float)])
        return x - 0.01 * slopes.T @ flow(x), values

    return step, start
