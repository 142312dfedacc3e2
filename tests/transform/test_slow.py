"""The line that is logged where tracing and compiling took long."""

import re

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.jaxpr import ClosedJaxpr
from catena.core.staging import DebugInfo
from catena.transform import slow

X = jnp.ones(3)


@pytest.fixture
def limit():
    """Sets from how many seconds on the line is logged, for a test."""
    before = jax.config.jax_slow_compile_secs
    yield lambda seconds: jax.config.update("jax_slow_compile_secs", seconds)
    jax.config.update("jax_slow_compile_secs", before)


def lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if "to trace and compile" in r.getMessage()]


def many(x):
    for k in range(100):
        x = jnp.sin(x) * k  # the line
    return jnp.sum(x)


def test_a_function_is_told_once_with_its_line_its_parts_and_its_equations(caplog, limit):
    limit(0)
    f = jax.jit(many)
    for _ in range(2):
        f(X)
    (line,) = lines(caplog)
    first = many.__code__.co_firstlineno
    assert line.startswith(f"many at {__file__}:{first} took ")
    assert f": 201 equations, 200 of them made at {__file__}:{first + 2} (many). jax_slow_compile_secs" in line
    parts = re.search(r"\((.*?)\):", line).group(1).split(", ")
    seconds = [float(re.fullmatch(r"(.+) (\d+\.\d\d) s", part).group(2)) for part in parts]
    assert seconds == sorted(seconds, reverse=True)
    assert {part.rsplit(" ", 2)[0] for part in parts} <= {"tracing", "planning", "LLVM", "loading"}


def test_nothing_is_said_below_the_limit(caplog, limit):
    limit(1e9)
    jax.jit(lambda x: x * 3)(X)
    limit(float("inf"))
    jax.jit(lambda x: x * 4)(X)
    assert not lines(caplog)


def test_stages_and_programs_of_derivatives_are_told_of_too(caplog, limit):
    limit(0)
    jax.jit(jax.grad(many)).lower(X).compile()
    (line,) = lines(caplog)
    assert line.startswith(f"many at {__file__}:")


def one_equation(info) -> ClosedJaxpr:
    closed = jax.make_jaxpr(lambda x: x + 1)(X)
    return ClosedJaxpr(closed.jaxpr.replace(debug_info=info), closed.consts)


def test_tracing_counts(caplog, limit):
    limit(1e9)
    traced = jax.jit(lambda x: many(x)).trace(X)
    traced.jaxpr.jaxpr.debug_info.seconds = 2e9
    traced.lower().compile()
    (line,) = lines(caplog)
    assert line.startswith("<lambda> at") and "(tracing 2000000000.00 s):" in line


def test_the_greatest_part_comes_first(caplog):
    stages = {"lower": 1.0, "plan": 2.5, "emit": 0.5, "parse": 1.0, "optimise": 0.25, "generate": 2.0, "load": 1.0}
    slow.tell(one_equation(DebugInfo("jit", "f at file.py:3")), "f", 2.0, 9.0, stages)
    (line,) = lines(caplog)
    assert line == (
        "f at file.py:3 took 11.00 s to trace and compile (planning 4.00 s, LLVM 3.25 s, tracing 2.00 s, loading 1.75 "
        "s): 1 equation. jax_slow_compile_secs says from how many on this is said"
    )


def test_a_function_of_the_package_is_told_by_who_calls_it(caplog):
    slow.tell(one_equation(None), "while_loop", 0.0, 1.0, {})
    (line,) = lines(caplog)
    assert re.match(rf"while_loop, called at {re.escape(__file__)}:\d+ \(test_a_function_of\w+\), took 1.00 s", line)


def test_equations_of_calls_count_as_often_as_they_are_called_and_are_looked_at_once():
    def double(f):
        g = jax.jit(f)
        return lambda x: g(g(x))

    f = jnp.sin
    for _ in range(40):
        f = double(f)
    closed = jax.make_jaxpr(f)(X)
    assert slow.equations(closed.jaxpr).startswith(f"{2**40:,} equations")


def test_equations_in_loops_count_once():
    closed = jax.make_jaxpr(lambda x: lax.fori_loop(0, 10, lambda i, y: jnp.sin(y), x))(X)
    assert slow.equations(closed.jaxpr) == "2 equations"
