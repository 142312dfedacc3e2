"""Total variation denoising by ADMM of scico."""

import jax
import jax.numpy as jnp
from scico import functional, linop, loss
from scico.optimize import ProximalADMM


def example():
    noise = 0.2 * jax.random.normal(jax.random.key(0), (32, 32))
    image = jnp.zeros((32, 32)).at[8:24, 8:24].set(1.0) + noise
    difference = linop.FiniteDifference(input_shape=(32, 32), circular=True)
    solver = ProximalADMM(
        f=loss.SquaredL2Loss(y=image),
        g=0.3 * functional.L21Norm(),
        A=difference,
        rho=1.0,
        mu=8.0,
        nu=1.0,
        x0=image,
        maxiter=1,
    )

    def step(state):
        solver.step()
        return state, solver.x

    return step, ()
