"""Poses in space that are fitted to points seen from them, on the manifold."""

import jax
import jax.numpy as jnp
import jaxlie


def example():
    points = jax.random.normal(jax.random.key(0), (50, 3))
    truth = jax.vmap(jaxlie.SE3.exp)(jax.random.normal(jax.random.key(1), (8, 6)))
    seen = jax.vmap(lambda pose: jax.vmap(pose.apply)(points))(truth)

    def error(poses):
        return jnp.mean((jax.vmap(lambda pose: jax.vmap(pose.apply)(points))(poses) - seen) ** 2)

    @jax.jit
    def step(poses):
        value, slope = jaxlie.manifold.value_and_grad(error)(poses)
        return jaxlie.manifold.rplus(poses, -0.3 * slope), value

    return step, jax.vmap(jaxlie.SE3.exp)(jnp.zeros((8, 6)) + 0.01)
