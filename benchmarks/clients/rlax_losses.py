"""A value network trained on V-trace targets, a policy on its advantages, and distributional Q-learning, by rlax."""

import jax
import jax.numpy as jnp
import optax
import rlax


def example():
    keys = jax.random.split(jax.random.key(0), 6)
    features = jax.random.normal(keys[0], (16, 21, 8))
    actions = jax.random.randint(keys[1], (16, 20), 0, 4)
    rewards = jax.random.normal(keys[2], (16, 20))
    behaviour = jax.nn.log_softmax(jax.random.normal(keys[3], (16, 20, 4)))
    atoms = jnp.linspace(-2.0, 2.0, 21)
    sizes = {"value": (8, 1), "policy": (8, 4), "quality": (8, 4 * 21)}
    parameters = {n: 0.1 * jax.random.normal(k, s) for (n, s), k in zip(sizes.items(), jax.random.split(keys[4], 3))}
    optimizer = optax.rmsprop(1e-2)

    def one(parameters, x, action, reward, behaviour):
        values = (x @ parameters["value"])[:, 0]
        logits = x[:-1] @ parameters["policy"]
        policy = jax.nn.log_softmax(logits)
        rhos = rlax.categorical_importance_sampling_ratios(policy, behaviour, action)
        discounts = jnp.full_like(reward, 0.95)
        found = rlax.vtrace_td_error_and_advantage(values[:-1], values[1:], reward, discounts, rhos)
        gain = rlax.policy_gradient_loss(logits, action, found.pg_advantage, jnp.ones_like(reward))
        entropy = rlax.entropy_loss(logits, jnp.ones_like(reward))
        quality = (x @ parameters["quality"]).reshape(-1, 4, 21)
        learn = jax.vmap(rlax.categorical_q_learning, in_axes=(None, 0, 0, 0, 0, None, 0))
        distributional = learn(atoms, quality[:-1], action, reward, discounts, atoms, quality[1:])
        return gain + 0.01 * entropy + 0.5 * jnp.mean(found.errors**2) + distributional.mean()

    @jax.jit
    def step(state):
        parameters, memory = state

        def loss(parameters):
            each = jax.vmap(one, in_axes=(None, 0, 0, 0, 0))
            return each(parameters, features, actions, rewards, behaviour).mean()

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, memory = optimizer.update(gradients, memory)
        return (optax.apply_updates(parameters, updates), memory), value

    return step, (parameters, optimizer.init(parameters))
