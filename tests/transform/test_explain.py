"""`f.explain(...)`: what became of a program, in the user's terms."""

import logging

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax


@jax.jit
def layer(x, w):
    centred = x - jnp.mean(x, -1, keepdims=True)
    normal = centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)
    return jnp.tanh(normal @ w)


LINE = layer.__wrapped__.__code__.co_firstlineno


def test_rows_products_and_places():
    text = layer.explain(jnp.ones((1000, 512)), jnp.ones((512, 64)))
    assert "rows: 5 kernels together, on" in text
    assert "product: 1000 x 512 x 64 -> float32[1000,64]" in text
    assert f"kernel over 1000 x 64: tanh -> float32[1000,64]   (test_explain.py:{LINE + 4})" in text
    assert "results 256 KB" in text


def test_loops_and_branches_are_shown_inside():
    def f(x):
        x = lax.fori_loop(0, 10, lambda _, y: jnp.sin(y), x)
        return lax.cond(x[0] > 0, jnp.cos, lambda y: jnp.cumsum(y), x)

    lines = jax.jit(f).explain(jnp.ones(100)).splitlines()
    loop = next(i for i, line in enumerate(lines) if "loop: 10 iterations" in line)
    assert "sin" in "".join(lines[loop : loop + 3])
    assert any("branch: one of 2" in line for line in lines)
    assert any("step: cumulative operation" in line for line in lines)


def test_library_calls_sorts_and_scatters():
    def f(a, i):
        return jnp.linalg.cholesky(a), jnp.sort(a[0]), jnp.zeros(5).at[i].add(1.0)

    text = jax.jit(f).explain(2 * jnp.eye(4), jnp.array([1, 1]))
    assert "library call: " in text
    assert "step: sort" in text
    assert "step: scatter" in text


def test_nothing_to_compute():
    assert "0 steps" in jax.jit(lambda x: x).explain(1.0)


def test_it_says_why_a_function_was_traced_again():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    f(jnp.ones(3), 2)
    f(jnp.ones(4), 2)
    f(jnp.ones(4), 3)
    text = f.explain(jnp.ones(4), 3)
    assert "traced 3 times:" in text
    assert "2. different type of x: now float32[4], before float32[3]" in text
    assert "3. different static arguments: now {1: 3}, before {1: 2}" in text


def test_many_compilations_are_mentioned_once(caplog):
    f = jax.jit(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, "catena"):
        for n in range(1, 10):
            f(jnp.ones(n))
    (record,) = [r for r in caplog.records if "compiled for the" in r.getMessage()]
    assert "6th time: different type of x: now float32[6]" in record.getMessage()


def test_without_arguments_it_lists_all_traces_and_traces_nothing():
    f = jax.jit(lambda x, n=1: x * n, static_argnames="n")
    assert "not traced yet" in f.explain()
    for size, n in ((1, 1), (2, 1), (3, 1), (3, 2)):
        f(jnp.ones(size), n=n)
    head, *lines = f.explain().splitlines()
    assert head.endswith("traced 4 times") and "test_explain.py" in head
    assert lines == [
        "  1. x: float32[1], n=1",
        "  2. different type of x: now float32[2], before float32[1]",
        "  3. different type of x: now float32[3], before float32[2]",  # the latest before it, not the first
        "  4. different static arguments: now {'n': 2}, before {'n': 1}",
    ]
    assert f._cache_size() == 4


def test_a_function_that_needs_no_arguments_is_explained_as_called_without():
    assert "1 step\n" in jax.jit(lambda: jnp.sin(jnp.arange(3.0))).explain()


@pytest.mark.parametrize("name", ["jnp.stack", "jnp.where"])
def test_functions_of_the_package_are_not_mentioned(caplog, name):
    function = {"jnp.stack": lambda x: jnp.stack([x, x]), "jnp.where": lambda x: jnp.where(x > 0, x, 0)}[name]
    with caplog.at_level(logging.WARNING, "catena"):
        for n in range(1, 10):
            function(jnp.ones(n))
    assert not caplog.records
