"""Hidden states: a linear Gaussian model climbs its likelihood, with a step of EM, beside a Markov model's."""

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM


def example():
    linear, hidden = LinearGaussianSSM(state_dim=3, emission_dim=2), GaussianHMM(num_states=4, emission_dim=2)
    params, properties = linear.initialize(jax.random.key(0))
    _, seen = linear.sample(params, jax.random.key(1), num_timesteps=60)
    states, _ = hidden.initialize(jax.random.key(2))

    def fit(weights):
        guess = params._replace(emissions=params.emissions._replace(weights=weights))
        return linear.marginal_log_prob(guess, seen) / 60, guess

    @jax.jit
    def step(weights):
        (value, guess), slope = jax.value_and_grad(fit, has_aux=True)(weights)
        statistics = jax.tree.map(lambda x: jnp.asarray(x)[None], linear.e_step(guess, seen)[0])
        better, _ = linear.m_step(guess, properties, statistics, linear.initialize_m_step_state(guess, properties))
        found = hidden.smoother(states, jnp.tanh(seen @ better.emissions.weights[:, :2]))
        values = jnp.stack([value, found.marginal_loglik / 60, (found.smoothed_probs @ jnp.arange(4.0)).mean()])
        return weights + 0.02 * slope / (1 + jnp.linalg.norm(slope)), values

    return step, params.emissions.weights + 0.1


TOLERANCE = 1e-3
