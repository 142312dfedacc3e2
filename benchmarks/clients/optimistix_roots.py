"""A root, a fixed point, a least squares fit, and a derivative through the root."""

import jax
import jax.numpy as jnp
import optimistix as optx


def example():
    def equation(y, scale):
        return y - jnp.tanh(scale * y + 1.0)

    def residuals(p, x):
        return p[0] * jnp.exp(-p[1] * x) - 2 * jnp.exp(-0.7 * x)

    @jax.jit
    def step(scale):
        root = lambda scale: optx.root_find(equation, optx.Newton(1e-6, 1e-6), jnp.array(0.5), scale).value
        fixed = optx.fixed_point(
            lambda y, s: jnp.tanh(s * y + 1.0), optx.FixedPointIteration(1e-5, 1e-5), jnp.array(0.5), scale
        )
        fitted = optx.least_squares(
            residuals, optx.LevenbergMarquardt(1e-6, 1e-6), jnp.array([1.0, 1.0]), jnp.linspace(0, 3, 30)
        )
        return scale * 0.9, jnp.stack([root(scale), jax.grad(root)(scale), fixed.value, *fitted.value])

    return step, jnp.array(0.5)
