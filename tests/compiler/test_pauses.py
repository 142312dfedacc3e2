"""Ctrl-C ends loop nests, whichever of their loops is the long one, and what can be ended has the same bits."""

import signal
import time

import numpy as np
import pytest

import catena as jax
from catena import lax
from catena import numpy as jnp
from catena.compiler.graph import settled
from catena.compiler.machine import X86_64_V4, Sharing
from catena.compiler.native import compile as compiler
from catena.compiler.native import host
from catena.compiler.plan.steps import Launch


def wave(*extents):
    """An array that nobody stores: a function of the positions along each axis."""
    total = jnp.float32(0)
    for d in range(len(extents)):
        total = (d + 2) * lax.broadcasted_iota("float32", extents, d) - total
    return jnp.abs(total)


def whole(x):
    return x.astype(jnp.int32)


FOLDS = {
    "sum": lambda x, axes: x.sum(axes),
    "integers": lambda x, axes: whole(x).sum(axes),
    "max": lambda x, axes: x.max(axes),
    "all": lambda x, axes: (x < 9).all(axes),
    "argmin": lambda x, axes: jnp.argmin(x, axes[0]) if len(axes) == 1 else whole(x).min(axes),
    "two": lambda x, axes: (whole(x).sum(axes), (x > 2).sum(axes)),
    "a function": lambda x, axes: lax.reduce(whole(x), jnp.int32(0), lambda a, b: a * 3 ^ b, axes),
}
LONG = 2**38
SHAPES = {
    "all along": lambda n: ((n,), (0,)),
    "inside of all": lambda n: ((3, n), (0, 1)),
    "around all": lambda n: ((n, 3), (0, 1)),
    "inside": lambda n: ((3, n), (1,)),
    "around": lambda n: ((n, 3), (0,)),
    "between": lambda n: ((2, 3, n, 2), (0, 2)),
}
NESTS = [(shape, fold) for i, shape in enumerate(SHAPES) for j, fold in enumerate(FOLDS) if (i + j) % 3 == 0]


def reduced(shape, fold, n):
    extents, axes = SHAPES[shape](n)
    return lambda: FOLDS[fold](wave(*extents), axes)


@pytest.mark.parametrize(("shape", "fold"), NESTS)
def test_a_fold_of_any_loops_ends_when_a_handler_raises(shape, fold):
    run = jax.jit(reduced(shape, fold, LONG)).lower().compile()
    assert "call i1 @ask_python(" in run.as_text()

    def handler(*_):
        raise LookupError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(LookupError, match="enough"):
            run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < 5  # far less: this would take minutes


def others(n):
    x, square = wave(n) * 1e-3, wave(n // 96, 96)
    at = whole(jnp.fmod(x, 8) * 50)
    return {
        "elementwise": lambda: jnp.sin(x) + 1,
        "transposed": lambda: jnp.sin(square).T + 1,
        "cumulative": lambda: (jnp.cumsum(x), jnp.cumsum(square, 1), lax.cummax(square, 0, reverse=True)),
        "a function, running": lambda: lax.cumlogsumexp(x),
        "scatter": lambda: (jnp.zeros(400).at[at].add(x), jnp.zeros((400, 96)).at[at[: n // 96]].add(square)),
        "scatter of one": lambda: jnp.zeros(400).at[at].set(x),
        "an update": lambda: jnp.zeros((3, n)).at[1:].set(wave(2, n)),
        "rows": lambda: square / jnp.sqrt((square * square).sum(1, keepdims=True)),
        "windows": lambda: (
            lax.reduce_window(x, 0.0, lax.add, (n // 2,), (n // 8,), "valid"),
            lax.reduce_window(x, -jnp.inf, lax.max, (9,), (1,), "valid"),
        ),
        "in a loop": lambda: lax.scan(lambda c, i: (c + (wave(3, n) * i).sum(1), jnp.sum(x * i)), jnp.ones(3), at[:3]),
    }


def everything(n):
    """A program with nests of every kind."""
    folds = [reduced(shape, fold, n)() for shape, fold in NESTS]
    return folds, [f() for f in others(n).values()]


def on_one_thread(monkeypatch):
    alone = host.this_machine()._replace(threads=False)
    monkeypatch.setattr(host, "this_machine", lambda: alone)


@pytest.mark.parametrize("threads", ["one", "several"])
def test_nests_that_pause_give_the_same(monkeypatch, threads):
    n = 96 * 310 + 5
    expected = jax.jit(everything, static_argnums=0)(n)
    monkeypatch.setattr(settled, "FLOOR", np.inf)  # there is no argument: all would be constants
    monkeypatch.setattr(Sharing, "group", 1 << 16)
    if threads == "one":
        on_one_thread(monkeypatch)
    run = jax.jit(lambda: everything(n)).lower().compile()
    assert run.as_text().count("call i1 %t") > 20
    for found, wanted in zip(jax.tree.leaves(run()), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", others(9600))
def test_on_one_thread_every_long_nest_pauses(monkeypatch, name):
    on_one_thread(monkeypatch)
    assert "call i1 @ask_python(" in jax.jit(lambda: others(96 * 2**21)[name]()).lower().compile().as_text("llvm")


def test_short_nests_do_not():
    assert "ask_python" not in jax.jit(lambda: everything(960)).lower().compile().as_text()


def test_runs_pause_as_often_as_their_rows_in_the_mean(monkeypatch):
    """Rows share the updates out: a row is not as long as all of them, so it is no reason to ask."""
    monkeypatch.setattr(Sharing, "group", 1 << 18)
    made = jax.make_jaxpr(lambda i, x: jnp.zeros((9000, 128)).at[i].add(x))(jnp.zeros(5000, int), jnp.ones((5000, 128)))
    planned = compiler.program_of(made, machine=X86_64_V4._replace(threads=False)).steps()
    (runs,) = [s for _, s in planned if isinstance(s, Launch) and s.nest.run is not None and s.nest.vector is not None]
    assert runs.pause is not None and runs.nest.order[runs.pause.level] == 0 and runs.pause.block > 10
