"""Small products that threads do not share are done at the same time, where neither reads what the other writes."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of
from catena.compiler.plan import concurrent
from catena.compiler.plan.verify import verify
from catena.core.errors import CompileError


def normal(seed: int, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(0, shape[-1] ** -0.5, shape).astype(np.float32))


def step_of_adam(depth: int, rows: int = 32, width: int = 128):
    """A training step of a network of so many layers, and what it is given."""

    def loss(weights, x):
        for w in weights:
            x = jnp.maximum(x @ w, 0)
        return jnp.sum(x * x)

    def step(weights, first, second, x):
        grads = jax.grad(loss)(weights, x)
        first = [0.5 * m + g for m, g in zip(first, grads)]
        second = [0.5 * v + g * g for v, g in zip(second, grads)]
        return [w - m / (jnp.sqrt(v) + 1) for w, m, v in zip(weights, first, second)], first, second

    weights = [normal(i, width, width) for i in range(depth)]
    zeros = [jnp.zeros_like(w) for w in weights]
    return step, (weights, zeros, zeros, normal(depth, rows, width))


def planned(f, args, donated=(), machine=ICE_LAKE):
    program = program_of(jax.make_jaxpr(f)(*args), donated, machine)
    verify(program)
    return program


def close(x, expected):
    np.testing.assert_allclose(x, expected, rtol=1e-3, atol=1e-5)


def found(program) -> list:
    return [step for _, step in program.steps() if step.name == "concurrent"]


def test_gradients_by_weights_go_beside_those_by_what_layers_are_given():
    program = planned(*step_of_adam(4))
    pairs = found(program)
    assert pairs
    for each in pairs:
        products = [sum(step.name == "contract" for step in block.steps) for block in each.sequences]
        assert len(products) == 2 and min(products) > 0


def test_sequences_that_share_memory_are_told():
    program = planned(*step_of_adam(4))
    step = found(program)[0]
    first, second = step.sequences
    second.steps.append(first.steps[0])
    with pytest.raises(CompileError, match="have memory in common"):
        verify(program)


@pytest.mark.parametrize("depth, rows, width", [(3, 32, 128), (4, 4, 16), (4, 512, 256)])
def test_steps_that_are_few_or_short_or_shared_stay_apart(depth, rows, width):
    assert not found(planned(*step_of_adam(depth, rows, width)))


def test_one_thread_does_one_after_the_other():
    f, args = step_of_adam(4)
    assert not found(planned(f, args, machine=ICE_LAKE._replace(threads=False)))


def test_what_is_written_over_arguments_that_the_other_reads():
    """The new weights of a layer, beside the gradient that goes through it."""
    f, args = step_of_adam(4)
    program = planned(f, args, [True] * 12 + [False])
    assert program.reused and found(planned(f, args))
    for each in found(program):
        first, second = each.sequences
        count, memory = len(first.steps), concurrent.touched([*first.steps, *second.steps], program.reused)
        assert not any(concurrent.meet(one, other) for one in memory[:count] for other in memory[count:])


@pytest.mark.share(2)
@pytest.mark.parametrize("donated", [(), (0, 1, 2)])
@pytest.mark.parametrize("depth, rows, width", [(4, 32, 128), (4, 17, 130), (5, 40, 96)])
def test_results_are_those_of_steps_in_order(depth, rows, width, donated):
    f, args = step_of_adam(depth, rows, width)
    with jax.disable_jit():
        expected = jax.tree.leaves(f(*args))
    leaves = [np.asarray(x) for x in jax.tree.leaves(args)]
    program = planned(f, args, [True] * (3 * depth) + [False] if donated else ())
    for interpreted, each in zip(run(program, leaves), expected, strict=True):
        close(interpreted, each)
    compiled = jax.jit(f, donate_argnums=donated)
    for _ in range(20):  # threads meet each time anew
        fresh = jax.tree.map(jnp.array, args)
        for x, each in zip(jax.tree.leaves(compiled(*fresh)), expected, strict=True):
            close(x, each)


def test_the_bits_are_those_of_one_thread(monkeypatch):
    f, args = step_of_adam(4)
    beside = jax.jit(f)(*args)
    monkeypatch.setattr(concurrent, "FEWEST", 1 << 20)
    jax.clear_caches()
    alone = jax.jit(lambda *args: f(*args))(*args)
    for x, each in zip(jax.tree.leaves(beside), jax.tree.leaves(alone), strict=True):
        np.testing.assert_array_equal(x, each)


def test_they_are_shown_with_their_steps():
    listed = str(planned(*step_of_adam(4))).splitlines()
    at = next(i for i, line in enumerate(listed) if line.startswith("  concurrent"))
    assert listed[at].endswith("steps") and listed[at + 2].startswith("    contract")


def test_profiles_have_a_row_for_each_of_their_steps():
    f, args = step_of_adam(4)
    assert "contract" in str(jax.jit(f).profile(*args))
