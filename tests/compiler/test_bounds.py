"""Checked mode: accesses beyond a value's memory are errors, and all others are not."""

from types import SimpleNamespace

import numpy as np
import pytest

from catena.compiler.emit.nest import NestWriter
from catena.compiler.graph.ordering import take_last
from catena.compiler.plan import walks
from catena.core.config import override
from catena.core.errors import CompileError, JaxRuntimeError
from compiled import compile_fn, run

x = np.arange(10, dtype=np.float32)


def taken(b, x, i):
    return b.map("neg", take_last(b, x, i))


@pytest.mark.share(2)
@pytest.mark.parametrize("count", [1, 3, 40, 5000, 2_000_000])
@pytest.mark.parametrize("bad", [10, -1, 2**31 - 1])
def test_a_load_beyond_its_value_is_an_error_that_names_it(count, bad):
    places = np.arange(count, dtype=np.int32) % 10
    with override("jax_check_bounds", True):
        program = compile_fn(taken, x, places)
    np.testing.assert_array_equal(program(x, places)[0], -x[places])
    places[count // 2] = bad
    with pytest.raises(JaxRuntimeError, match=r"load of v0:float32\[10\] in the kernel\nnest for i0|nest once"):
        program(x, places)
    places[count // 2] = 3
    np.testing.assert_array_equal(program(x, places)[0], -x[places])


@pytest.mark.parametrize("count", [1, 40])
def test_a_store_beyond_its_value_is_an_error_that_names_it(count):
    numbers = SimpleNamespace(
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        operand_batching_dims=(),
        scatter_indices_batching_dims=(),
    )
    places, updates = np.arange(count, dtype=np.int32)[:, None] % 10, np.ones(count, np.float32)
    with override("jax_check_bounds", True):
        program = compile_fn(lambda b, x, i, u: b.scatter("add", x, i, u, numbers, "promise"), x, places, updates)
    assert program(x, places, updates)[0].sum() == x.sum() + count
    places[-1] = 12
    with pytest.raises(JaxRuntimeError, match=r"v\d+:float32\[10\] in the kernel"):
        program(x, places, updates)


def test_masked_lanes_may_point_anywhere():
    table = np.arange(1000, dtype=np.float32)
    with override("jax_check_bounds", True):
        out = run(lambda b, x: b.pad(x, b.constant(np.float32(7)), [(3, 5, 0)]), table)
    np.testing.assert_array_equal(out, np.pad(table, (3, 5), constant_values=7))


def test_programs_are_as_they_were_outside_of_checked_mode():
    places = np.zeros(40, np.int32)
    with override("jax_check_bounds", False):
        assert not compile_fn(taken, x, places).parts.sites


def test_walks_of_products():
    walks.check_walk("it", [(3, 4), (4, 1)], 12)
    for steps in ([(3, 4), (5, 1)], [(3, -4)]):
        with pytest.raises(CompileError, match="walks over it"):
            walks.check_walk("it", steps, 12)


def test_what_is_not_written_is_nan_or_minus_one(monkeypatch):
    monkeypatch.setattr(NestWriter, "write", lambda self: None)
    with override("jax_check_bounds", True):
        floats, booleans = compile_fn(lambda b, x: (b.map("neg", x), b.map("lt", x, x)), x)(x)
        table = compile_fn(lambda b, x: b.map("neg", x), np.arange(10))(np.arange(10))[0]
    assert np.isnan(floats).all() and (table == -1).all() and booleans.view(np.int8).tolist() == [-1] * 10
