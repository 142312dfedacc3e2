"""Layers of a small batch are done by two threads at the same time, each for its half of the rows."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of
from catena.compiler.plan import concurrent
from catena.compiler.plan.program import ARENA, Buffer
from catena.compiler.plan.verify import verify
from catena.core.config import override
from catena.core.errors import CompileError

LAYERS = 12


def normal(seed: int, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(0, shape[-1] ** -0.5, shape).astype(np.float32))


def layers(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w)
    return x


def given(rows: int = 64, width: int = 64, many: int = LAYERS):
    return [normal(k, width, width) for k in range(many)], normal(many, rows, width)


def planned(f, *args, donated=(), machine=ICE_LAKE):
    with override("jax_check_bounds", False):  # where that is on, one thread does all rows
        program = program_of(jax.make_jaxpr(f)(*args), donated, machine)
    verify(program)
    return program


def found(program) -> list[int]:
    """How many steps each sequence has."""
    return [len(step.body.steps) for _, step in program.steps() if step.name == "by_halves"]


def test_threads_meet_once_after_all_layers():
    assert found(planned(layers, *given())) == [LAYERS]


@pytest.mark.parametrize("rows", [17, 33, 50, 64, 96])
def test_any_number_of_rows_has_two_halves(rows):
    assert found(planned(layers, *given(rows))) == [LAYERS]


@pytest.mark.parametrize("rows, width, many", [(64, 64, 4), (2, 32, 24), (4096, 256, 12), (6, 256, 12)])
def test_layers_that_are_few_or_small_or_large_are_not(rows, width, many):
    assert not found(planned(layers, *given(rows, width, many)))


@pytest.mark.parametrize("rows", range(7, 40, 2))
def test_the_smaller_half_has_a_quarter_of_the_rows(rows):
    for _, step in planned(layers, *given(rows, 256)).steps():
        assert step.name != "by_halves" or rows // 4 <= rows - step.at <= step.at


def normed(ws, x):
    """Layers with loop nests between the products."""
    for w in ws:
        x = jnp.tanh(x @ w)
        x = (x - jnp.mean(x, 1, keepdims=True)) / (jnp.std(x, 1, keepdims=True) + 1)
    return x


@pytest.mark.parametrize("rows", range(7, 70, 3))
def test_products_and_nests_are_cut_at_the_same_row(rows):
    """Of tiles of six rows, 49 rows are four of six and five of five."""
    for _, step in planned(normed, *given(rows, 128)).steps():
        for half in step.halves.steps if step.name == "by_halves" else ():
            if half.name == "contract":
                plan, tiles = half.plan, half.tasks.rows
                heights = [plan.rows] * plan.full + [plan.below] * (plan.units - plan.full)
                assert sum(heights) == rows and sum(heights[:tiles]) == step.at
            else:
                assert half.chunk == step.at


def test_one_thread_does_all_rows():
    assert not found(planned(layers, *given(), machine=ICE_LAKE._replace(threads=False)))


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x: x[::-1],
        lambda x: jnp.roll(x, 1, 0),
        lambda x: x - jnp.mean(x, 0),
        lambda x: jnp.concatenate([x[40:], x[:40]]),
        lambda x: x + x[:1],
        lambda x: x + (x @ x.T) @ x,
    ],
)
def test_a_sequence_ends_where_rows_read_others(mixed):
    def f(ws, x):
        return layers(ws[8:], mixed(layers(ws[:8], x)))

    ws, x = given(many=16)
    lengths = found(planned(f, ws, x))
    assert lengths and max(lengths) < 16
    expected = np.asarray(x, np.float64)
    for k, w in enumerate(ws):
        if k == 8:
            expected = np.asarray(mixed(jnp.asarray(expected, jnp.float32)), np.float64)
        expected = np.tanh(expected @ np.asarray(w, np.float64))
    for _ in range(10):  # threads meet each time anew
        np.testing.assert_allclose(jax.jit(f)(ws, x), expected, atol=1e-4)


def gradient(ws, x):
    return jax.grad(lambda ws, x: jnp.sum(layers(ws, x) ** 2), (0, 1))(ws, x)


@pytest.mark.share(2)
@pytest.mark.parametrize("rows, width", [(32, 128), (33, 70), (64, 64)])
def test_gradients_are_those_of_steps_in_order(rows, width):
    args = given(rows, width, 5)
    program = planned(gradient, *args)
    assert found(program)
    with jax.disable_jit():
        expected = jax.tree.leaves(gradient(*args))
    interpreted = run(program, [np.asarray(x) for x in jax.tree.leaves(args)])
    for x, each in zip(interpreted, expected, strict=True):
        np.testing.assert_allclose(x, each, rtol=1e-3, atol=1e-5)
    compiled = jax.jit(gradient)
    for _ in range(20):
        for x, each in zip(jax.tree.leaves(compiled(*args)), expected, strict=True):
            np.testing.assert_allclose(x, each, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("net, rows, width", [(layers, 50, 64), (normed, 37, 128), (normed, 49, 128)])
def test_the_bits_are_those_of_steps_in_order(net, rows, width, monkeypatch):
    args = given(rows, width)
    compiled = jax.jit(net)
    by_halves = [compiled(*args) for _ in range(20)]
    monkeypatch.setattr(concurrent, "FEWEST", 1 << 20)
    jax.clear_caches()
    expected = jax.jit(lambda *args: net(*args))(*args)
    for each in by_halves:
        np.testing.assert_array_equal(each, expected)


def test_rows_have_the_bits_that_they_have_among_more():
    ws, x = given(96)
    np.testing.assert_array_equal(jax.jit(layers)(ws, x)[:40], jax.jit(layers)(ws, x[:40]))


def test_memory_that_is_used_again_for_wider_rows_ends_a_sequence():
    """A half of wide rows lies where the other half of narrow ones does."""
    widths = [64, 192, 64, 128, 64, 192, 64, 128, 64, 192, 64, 128, 64]
    ws = [normal(k, *shape) for k, shape in enumerate(zip(widths, widths[1:]))]
    x = normal(20, 64, 64)
    lengths = found(planned(layers, ws, x))
    assert lengths and max(lengths) < 12
    expected = np.asarray(x, np.float64)
    for w in ws:
        expected = np.tanh(expected @ np.asarray(w, np.float64))
    for _ in range(20):
        np.testing.assert_allclose(jax.jit(layers)(ws, x), expected, atol=1e-4)


def test_halves_that_read_what_nothing_has_written_are_refused():
    program = planned(layers, *given())
    (step,) = [step for _, step in program.steps() if step.name == "by_halves"]
    step.halves.steps[0].a = Buffer(ARENA, 64, 0)
    with pytest.raises(CompileError, match="nothing has written"):
        verify(program)


def test_halves_that_meet_are_refused():
    program = planned(layers, *given())
    (step,) = [step for _, step in program.steps() if step.name == "by_halves"]
    step.body.steps[1].b = step.body.steps[0].c
    with pytest.raises(CompileError, match="have halves with memory in common"):
        verify(program)


def test_they_are_shown_with_their_steps():
    listed = str(planned(layers, *given())).splitlines()
    at = listed.index(f"  by_halves {LAYERS} steps")
    assert listed[at + 2].startswith("    contract")


def test_profiles_have_a_row_for_each_of_their_steps():
    assert str(jax.jit(layers).profile(*given())).count("contract") == LAYERS
