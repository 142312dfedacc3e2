"""An optimiser's step of many layers of one shape: one kernel for each, however many are between its parts."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of


def adam(params, first, second, grads):
    """As whole trees are updated: all first moments, then all second ones, then all parameters."""
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
    second = [0.99 * v + 0.01 * (g * g) for v, g in zip(second, grads)]
    params = [p - 0.1 * m / (jnp.sqrt(v) + 1e-3) for p, m, v in zip(params, first, second)]
    return params, first, second


def leaves(count: int, shape: tuple, seed: int = 0):
    rng = np.random.default_rng(seed)
    of = lambda: [jnp.asarray(rng.uniform(0.5, 1.5, shape).astype(np.float32)) for _ in range(count)]
    return of(), of(), of(), of()


@pytest.mark.parametrize("count", [2, 5, 24])
def test_a_leaf_is_one_kernel(count):
    program = program_of(jax.make_jaxpr(adam)(*leaves(count, (80, 300))), machine=ICE_LAKE)
    launches = [step for _, step in program.steps() if step.name == "launch"]
    assert len(launches) == count
    assert all(len(step.nest.stores) == 3 for step in launches)


def test_the_numbers_are_those_of_each_leaf_by_itself():
    given = leaves(9, (33, 70), 1)
    together = jax.jit(adam)(*given)
    for k in range(9):
        alone = jax.jit(adam)(*([x[k]] for x in given))
        for a, b in zip(together, alone):
            np.testing.assert_array_equal(a[k], b[0])


def test_what_is_no_result_is_not_kept_for_long():
    """The slopes of many layers are computed where they are needed, not where their operands are read first."""

    def loss(x, weights):
        for w in weights:
            x = jnp.sin(x) @ w
        return jnp.sum(x)

    x, weights = jnp.ones((64, 64)), [jnp.full((64, 64), 0.01)] * 12
    compiled = jax.jit(jax.grad(loss)).lower(x, weights).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 2.5 * 12 * x.nbytes
