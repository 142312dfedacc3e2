"""An adaptive solution of the Lotka-Volterra equations and its derivative with respect to their parameters."""

import diffrax
import jax
import jax.numpy as jnp


def example():
    def field(t, y, args):
        prey, predator = y
        return jnp.stack([args[0] * prey - args[1] * prey * predator, -args[2] * predator + args[3] * prey * predator])

    @jax.jit
    @jax.value_and_grad
    def end(args):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=5.0,
            dt0=0.05,
            y0=jnp.array([10.0, 5.0]),
            args=args,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 5.0, 20)),
        )
        return jnp.mean(solution.ys)

    def step(args):
        value, gradient = end(args)
        return args - 1e-5 * gradient, value

    return step, jnp.array([1.1, 0.4, 0.4, 0.1])
