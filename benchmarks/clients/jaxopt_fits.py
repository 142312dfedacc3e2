"""A regularised logistic regression by L-BFGS and by projected gradients."""

import jax
import jax.numpy as jnp
import jaxopt


def example():
    x = jax.random.normal(jax.random.key(0), (200, 10))
    labels = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(jnp.int32)

    def objective(w, strength):
        logits = x @ w
        return jnp.mean(jaxopt.loss.binary_logistic_loss(labels, logits)) + strength * jnp.sum(w**2)

    @jax.jit
    def step(strength):
        free = jaxopt.LBFGS(objective, maxiter=50).run(jnp.zeros(10), strength).params
        simplex = jaxopt.ProjectedGradient(objective, jaxopt.projection.projection_simplex, maxiter=50)
        held = simplex.run(jnp.full(10, 0.1), strength=strength).params
        return strength * 0.9, jnp.stack([jnp.linalg.norm(free), held.max()])

    return step, jnp.array(0.1)


TOLERANCE = 1e-3  # where iterations stop
