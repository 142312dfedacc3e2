"""Light through a grating: modes of a layer by eigenvectors, a stack of layers, and the derivative by a thickness."""

import fmmax
import jax
import jax.numpy as jnp


def example():
    lattice = fmmax.LatticeVectors(u=fmmax.X, v=fmmax.Y)
    expansion = fmmax.generate_expansion(lattice, approximate_num_terms=12, truncation=fmmax.Truncation.CIRCULAR)
    bar = jnp.where(jnp.abs(jnp.arange(32) - 16) < 8, 4.0, 1.0)[:, None] * jnp.ones((32, 32)) + 0.01j

    def reflected(thickness):
        layers = [
            fmmax.eigensolve_isotropic_media(
                wavelength=jnp.asarray(0.7),
                in_plane_wavevector=jnp.zeros(2),
                primitive_lattice_vectors=lattice,
                permittivity=permittivity,
                expansion=expansion,
                formulation=fmmax.Formulation.FFT,
            )
            for permittivity in (jnp.ones((1, 1), complex), bar, jnp.full((1, 1), 2.25 + 0j))
        ]
        s_matrix = fmmax.stack_s_matrix(layers, [jnp.ones(()), thickness, jnp.ones(())])
        return jnp.sum(jnp.abs(s_matrix.s21[:, 0]) ** 2), jnp.sum(jnp.abs(s_matrix.s11[:, 0]) ** 2)

    def step(thickness):
        (value, through), slope = jax.value_and_grad(reflected, has_aux=True)(thickness)
        return thickness - 0.01 * slope, jnp.stack([value, through])

    return jax.jit(step), jnp.asarray(0.3)


TOLERANCE = 1e-3
