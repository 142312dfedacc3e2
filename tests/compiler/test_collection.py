"""While a program is planned, nobody looks for garbage."""

import gc

import catena as jax
import catena.numpy as jnp
from catena.compiler.native import compile as compiler


def layers(x):
    for k in range(100):
        x = jnp.tanh(x @ x) * (1 + 0.01 * k)
    return x


def test_planning_is_not_interrupted_by_the_collector(monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")
    seen, during = [], []
    compile_jaxpr = compiler.compile_jaxpr

    def compiled(*args, **options):
        before = len(seen)
        made = compile_jaxpr(*args, **options)
        during.append(len(seen) - before)
        return made

    monkeypatch.setattr(compiler, "compile_jaxpr", compiled)
    watch = lambda phase, info: seen.append(phase)
    gc.callbacks.append(watch)
    try:
        jax.jit(layers).lower(jnp.ones((3, 3))).compile()
    finally:
        gc.callbacks.remove(watch)
    assert during == [0] and gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        jax.jit(lambda x: layers(x) + 1).lower(jnp.ones((3, 3))).compile()
        assert not gc.isenabled()
    finally:
        gc.enable()
