"""A damped and driven mode of light: the master equation, and the photons in it."""

import dynamiqs as dq
import jax.numpy as jnp

dq.set_progress_meter(False)


def example():
    a = dq.destroy(12)
    number = dq.dag(a) @ a

    def step(drive):
        result = dq.mesolve(
            number + drive * (a + dq.dag(a)),
            [jnp.sqrt(0.2) * a],
            dq.coherent(12, 1.0),
            jnp.linspace(0, 1, 11),
            exp_ops=[number],
        )
        photons = result.expects[0].real
        return drive + 0.1 * photons[-1], photons

    return step, jnp.float32(0.3)
