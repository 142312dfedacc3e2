"""Many small arrays: an optimiser's step over trees of parameters, and calls with trees."""

from dataclasses import dataclass


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, tree = jax.numpy, jax.tree

    @jax.tree_util.register_dataclass
    @dataclass
    class State:
        position: object
        velocity: object
        mass: object

    def adam(params, first, second, grads):
        first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        return tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-3), params, first, second), first, second

    def leaves(count):
        """Weights, biases and scales, as layers have them."""
        shapes = [(32, 64), (64,), (64, 32), (32,), (32,)]
        return {f"leaf {k}": make.normal(*shapes[k % 5]) for k in range(count)}

    def training(count):
        squares = tree.map(jnp.square, leaves(count))
        return adam, [leaves(count), leaves(count), squares, leaves(count)]

    def move(state):
        return State(state.position + 0.1 * state.velocity, state.velocity * 0.9, state.mass)

    small = lambda: make.normal(8)
    doubled = lambda arrays: tree.map(lambda x: 2 * x, arrays)
    return {
        "Adam step, 50 leaves": lambda: training(50),
        "Adam step, 300 leaves": lambda: training(300),
        "call with a dict of 20 arrays": lambda: (doubled, [{f"array {k}": small() for k in range(20)}]),
        "call with a list of 100 arrays": lambda: (doubled, [[small() for _ in range(100)]]),
        "call with a dataclass of 3 arrays": lambda: (move, [State(small(), small(), small())]),
    }
