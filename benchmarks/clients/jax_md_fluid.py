"""A fluid of soft spheres in a periodic box, at a given temperature."""

import jax
from jax_md import energy, simulate, space


def example():
    displacement, shift = space.periodic(8.0)
    places = jax.random.uniform(jax.random.key(0), (128, 3), minval=0.0, maxval=8.0)
    potential = energy.soft_sphere_pair(displacement)
    start, move = simulate.nvt_nose_hoover(potential, shift, 1e-3, 0.1)

    @jax.jit
    def step(state):
        state = jax.lax.fori_loop(0, 20, lambda i, state: move(state), state)
        return state, potential(state.position)

    return step, start(jax.random.key(1), places)


TOLERANCE = 1e-3  # of 200 steps of spheres that meet
