"""A natural evolution strategy and differential evolution on Rosenbrock's function."""

import jax
import jax.numpy as jnp
from evosax.algorithms import SNES, DifferentialEvolution


def rosenbrock(x):
    return jnp.sum(100.0 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1.0 - x[..., :-1]) ** 2, axis=-1)


def example():
    key = jax.random.key(0)
    strategy = SNES(population_size=32, solution=jnp.zeros(6))
    other = DifferentialEvolution(population_size=32, solution=jnp.zeros(6))
    settings, others = strategy.default_params, other.default_params
    crowd = jax.random.normal(key, (32, 6))

    def generation(state, key):
        first, second = state
        ask, tell = jax.random.split(key)
        population, first = strategy.ask(ask, first, settings)
        first, _ = strategy.tell(tell, population, rosenbrock(population), first, settings)
        population, second = other.ask(ask, second, others)
        second, _ = other.tell(tell, population, rosenbrock(population), second, others)
        return (first, second), jnp.stack([first.best_fitness, second.best_fitness])

    @jax.jit
    def step(state):
        states, seed = state
        states, best = jax.lax.scan(generation, states, jax.random.split(jax.random.key(seed), 5))
        return (states, seed + 1), best[-1]

    first = strategy.init(key, jnp.zeros(6), settings)
    return step, ((first, other.init(key, crowd, rosenbrock(crowd), others)), 1)
