"""What benchmarks say of workloads that memory bounds."""

import sys
from pathlib import Path

import pytest

import catena as jax
import catena.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
ceiling = pytest.importorskip("ceiling")


def test_copies_take_what_is_read_and_written_and_the_rest_is_read_or_written():
    most = ceiling.Ceiling(read=10.0, written=8.0, copied=4.0)
    assert most.seconds(ceiling.Moved(100, 0)) == 10
    assert most.seconds(ceiling.Moved(0, 80)) == 10
    assert most.seconds(ceiling.Moved(120, 20)) == 40 / 4 + 100 / 10
    assert most.seconds(ceiling.Moved(20, 100)) == 40 / 4 + 80 / 8
    assert ceiling.best_of([most, ceiling.Ceiling(1.0, 9.0, 5.0)]) == ceiling.Ceiling(10.0, 9.0, 5.0)


def test_bytes_are_those_of_operands_and_results_and_of_rows_that_are_looked_up():
    x, i = jnp.ones((100, 8)), jnp.arange(5)
    assert ceiling.moved(jax, "x * 2 + 1, 1e7", lambda x: x * 2, [x]) == ceiling.Moved(3200, 3200)
    assert ceiling.moved(jax, "sum, 1e7", jnp.sum, [x]) == ceiling.Moved(3200, 4)
    assert ceiling.moved(jax, "gather of 40000 rows", lambda t, i: t[i], [x, i]) == ceiling.Moved(5 * 32 + 20, 5 * 32)


def test_everything_that_is_measured_is_positive():
    assert min(vars(ceiling.Measure(2, 1 << 16)()).values()) > 0
