"""Results that go past the caches by way of the stack: whole lines, wherever rows begin and blocks and chunks end."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64, X86_64_V3, X86_64_V4
from catena.compiler.native import compile as compiler
from catena.compiler.native import host
from catena.compiler.plan.steps import Launch
from catena.core.context import context

LIMIT = 1 << 12  # bytes, in these tests

SHAPES = {
    "a transposition": ((301, 533), lambda x: x.T),
    "of few rows": ((263, 1001), lambda x: x.T),
    "of few columns": ((4001, 19), lambda x: x.T),
    "of many": ((5, 301, 77), lambda x: x.swapaxes(1, 2)),
    "with what is read along rows": ((300, 300), lambda x: x.T - x),
    "short rows": ((37, 50, 41), lambda x: x.swapaxes(0, 1)),
    "short rows, few around": ((3, 1700, 77), lambda x: x.swapaxes(0, 1)),
    "few short rows": ((1700, 3, 77), lambda x: x.swapaxes(0, 1)),
    "a border": ((9, 61, 61), lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1)))),
    "parts of rows": ((900, 211), lambda x: 2 * x[:, 5:106]),
    "parts of rows, reversed": ((900, 211), lambda x: x[:, 5:106][:, ::-1]),
}


@pytest.fixture(params=[X86_64, X86_64_V3, None], ids=["128 bits", "256 bits", "this machine"])
def little_is_much(monkeypatch, request):
    """Caches that hold next to nothing, and threads that share it."""
    here = host.this_machine()
    if not here.streams or request.param is not None and not request.param.features <= here.features:
        pytest.skip("not on this processor")
    memory = here.memory._replace(second_cache=1 << 8, streamed=LIMIT, streamed_squares=LIMIT, staged_squares=LIMIT)
    sharing = here.sharing._replace(worthwhile=LIMIT, chunk=LIMIT)
    machine = (request.param or here)._replace(memory=memory, sharing=sharing)
    monkeypatch.setattr(host, "this_machine", lambda: machine)
    monkeypatch.setenv("CATENA_CACHE", "0")
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
@pytest.mark.parametrize("name", SHAPES)
def test_blocks_meet_at_lines(little_is_much, name, dtype):
    shape, f = SHAPES[name]
    with jax.enable_x64(True):
        x = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
        run = jax.jit(f).lower(x).compile()
        np.testing.assert_array_equal(run(x), f(x))


@pytest.mark.parametrize("name", SHAPES)
def test_what_shares_lines_is_written_on_the_stack_first(name):
    shape, f = SHAPES[name]
    memory = X86_64_V4.memory._replace(streamed=LIMIT, streamed_squares=LIMIT, staged_squares=LIMIT)
    made = jax.make_jaxpr(f)(np.zeros(shape, np.float32))
    steps = [s for _, s in compiler.program_of(made, machine=X86_64_V4._replace(memory=memory)).steps()]
    assert [isinstance(s, Launch) and s.nest.staged is not None for s in steps] == [True]


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_a_fresh_length_finds_the_code(monkeypatch):
    memory = host.this_machine().memory._replace(streamed_squares=LIMIT, staged_squares=LIMIT)
    machine = host.this_machine()._replace(memory=memory)
    monkeypatch.setattr(host, "this_machine", lambda: machine)
    texts = {
        re.sub("; %numbers.*", "", compiler.text_of(jax.make_jaxpr(lambda x: x.T)(np.zeros((n, 333)))))
        for n in (555, 777)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("machine", [X86_64, X86_64_V3], ids=["128 bits", "256 bits"])
def test_squares_of_parts_of_lines_go_on_along_lanes(machine, monkeypatch):
    """Where lines that are read stay near: not in rows that are a page apart, nor where all is small."""
    shapes = {(513, 301): True, (7, 131, 203): True, (1024, 1024): False, (40, 30): False}
    for shape, is_along in shapes.items():
        made = jax.make_jaxpr(lambda x: 2 * jnp.swapaxes(x, -1, -2))(np.ones(shape, np.float32))
        for m, expected in ((machine, is_along), (X86_64_V4, False)):
            (step,) = [s for _, s in compiler.program_of(made, machine=m).steps() if isinstance(s, Launch)]
            last = step.nest.vector if expected else step.nest.tile
            assert last is not None and step.nest.order[-1] == last
    if not machine.features <= host.this_machine().features:
        return
    monkeypatch.setattr(host, "this_machine", lambda: machine)
    monkeypatch.setenv("CATENA_CACHE", "0")
    jax.clear_caches()
    for shape in shapes:
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        np.testing.assert_array_equal(jax.jit(lambda x: 2 * jnp.swapaxes(x, -1, -2))(x), 2 * np.swapaxes(x, -1, -2))
    jax.clear_caches()
