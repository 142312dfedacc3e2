"""Interpolation in one and two dimensions by splines; the derivative by the values at the knots."""

import interpax
import jax
import jax.numpy as jnp


def example():
    x, y = jnp.linspace(0.0, 5.0, 30), jnp.linspace(-1.0, 1.0, 20)
    surface = jnp.sin(x)[:, None] * jnp.exp(y)[None]
    kinds = ("linear", "cubic", "cubic2", "cardinal", "monotonic", "akima")

    @jax.jit
    def step(values):
        points = jnp.linspace(0.1, 4.9, 200)

        def roughness(values):
            found = [interpax.interp1d(points, x, values, method=kind) for kind in kinds]
            slope = interpax.CubicSpline(x, values, check=False)(points, 1)
            plane = interpax.interp2d(points, jnp.cos(points), x, y, surface * values[:, None], method="cubic")
            return jnp.mean(jnp.stack([*found, slope, plane]) ** 2)

        value, gradient = jax.value_and_grad(roughness)(values)
        return values - 0.5 * gradient, value

    return step, jnp.cos(x)
