"""Kernels of eager draws that are kept on disk whole: found by another process, drawing the same numbers."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import random
from catena.compiler.native import compile as compiler
from catena.compiler.native import host, stored
from catena.core import lazy
from catena.core.config import config
from catena.random import kernels, uniform_family
from catena.random.generator import generators

SAMPLER = uniform_family._uniform.fun

DRAWS = {
    "normal": lambda key: random.normal(key, (100,)),
    "normal of 16 bits": lambda key: random.normal(key, (100,), jnp.bfloat16),
    "weak operands": lambda key: random.uniform(key, (100,), minval=-1, maxval=5),
    "array operands": lambda key: random.uniform(key, (4,), minval=jnp.arange(4.0), maxval=9),
    "integers": lambda key: random.rademacher(key, (100,), "int8"),
    "keys": lambda key: random.key_data(random.split(key, 30)),
    "bits": lambda key: random.bits(key, (100,)),
}


def forget():
    """As in a process that has drawn nothing yet."""
    kernels._kernels.clear()
    kernels._plans.clear()


@pytest.mark.share(2)
@pytest.mark.skipif(config.jax_check_bounds, reason="programs of checked mode are not kept whole")
@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
@pytest.mark.parametrize("name", DRAWS)
def test_another_process_compiles_nothing(name, impl, folder, monkeypatch):
    key = random.key(3, impl=impl)
    random.normal(key)  # what is not drawn, such as the second half of a key, may be compiled now
    forget()
    first = DRAWS[name](key)
    forget()

    def refuse(*args, **kwargs):
        raise AssertionError("a kernel was compiled again")

    monkeypatch.setattr(compiler, "compile_jaxpr", refuse)
    second = DRAWS[name](key)
    assert first.aval == second.aval
    np.testing.assert_array_equal(first, second)


def test_flags_and_statics_are_part_of_the_name(folder):
    key = random.key(0)
    drawn = []
    for partitionable in (True, False):
        for dtype in (np.float16, np.float32):
            with jax.threefry_partitionable(partitionable):
                forget()
                drawn.append(np.asarray(random.normal(key, (50,), dtype)).astype(np.float64))
    assert len({x.tobytes() for x in drawn}) == 4


@pytest.mark.skipif(config.jax_check_bounds, reason="programs of checked mode are not kept whole")
def test_changed_source_is_never_kept(folder, monkeypatch):
    assert stored.name_of("draw") != stored.name_of("other") is not None
    monkeypatch.setattr(lazy, "LOADED", 0)
    assert stored.source_stamp(0) == "" and stored.name_of("draw") is None
    assert stored.find(None) is None


def test_only_the_packages_own_are_kept(folder):
    def seed(number):
        return jnp.stack([number.astype("uint32")])

    def draw(key, bit_width, shape):
        return jnp.zeros(shape, f"uint{bit_width}")

    name = "kept nowhere"
    if name not in generators:
        random.register_generator(
            name, key_shape=(1,), seed=seed, random_bits=draw, split=lambda k, s: draw(k, 32, (*s, 1)), fold_in=max
        )
    ours, foreign = (random.key(0, impl=impl).aval for impl in ("threefry2x32", name))
    assert kernels.name_on_disk(SAMPLER, {}, ours, (), 5)
    assert kernels.name_on_disk(SAMPLER, {}, foreign, (), 5) is None
    assert kernels.name_on_disk(draw, {}, ours, (), 5) is None


def test_damaged_programs_are_made_again(folder):
    key = random.key(1)
    forget()
    first = random.normal(key, (10,))
    for entry in folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    forget()
    np.testing.assert_array_equal(first, random.normal(key, (10,)))


@pytest.mark.skipif(config.jax_check_bounds, reason="programs of checked mode are not kept whole")
def test_the_machine_is_part_of_the_name(folder, monkeypatch):
    here = stored.name_of("draw")
    monkeypatch.setattr(host, "identity", lambda: ("22", "other", ""))
    assert stored.name_of("draw") != here
