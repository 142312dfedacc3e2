"""Spherical harmonics and a tensor product with features, differentiated by the positions."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp


def example():
    positions = jax.random.normal(jax.random.key(0), (32, 3))
    features = e3nn.normal("4x0e + 2x1o", jax.random.key(1), (32,))

    @jax.jit
    def step(positions):
        def energy(positions):
            harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", positions, normalize=True, normalization="component")
            product = e3nn.tensor_product(features, harmonics, filter_ir_out=("0e", "1o"))
            return e3nn.norm(product).array.mean() + jnp.mean(positions**2)

        value, gradient = jax.value_and_grad(energy)(positions)
        return positions - 0.1 * gradient, value

    return step, positions
