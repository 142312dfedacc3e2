"""Checks compiled in: what they find, where they say it was, and that the three ways to run a program say the same."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.interpret.program import run as run_null
from catena.compiler.native import host
from catena.compiler.native.compile import lower
from catena.compiler.plan.passes import plan
from catena.core import lazy
from catena.core.flags import FLAGS, from_environment
from catena.transform import interpreted

X = jnp.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
N = jnp.arange(12)


def log(x):
    return jnp.log(x) + 1


def pick(x, i):
    return x[i] * 2


def loop(xs):
    return lax.scan(lambda c, x: (c + log(x), c), 0.0, xs)


def nested(x, i):
    step = lambda c, k: (lax.fori_loop(0, 4, lambda j, c: c + x[k * j], c), None)
    return lax.scan(step, 0.0, i)[0]


def until(x):
    return lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, jnp.sqrt(s[1] - 1)), (0, x))[1]


# kind, function, arguments, exception, words of the message, position, iterations, examples
CASES = {
    "log": ("nan", log, (X,), FloatingPointError, r"invalid value \(nan\).* log at .*\(log\)", (1, 1), (), ()),
    "exp": ("inf", jnp.exp, (100 * X,), FloatingPointError, r"\(inf\).* in exp", (0, 0), (), ()),
    "difference": ("nan", lambda x: x - x, (X / 0,), FloatingPointError, "in sub", (0, 0), (), ()),
    "sum": ("nan", lambda x: jnp.sum(x, 1), (jnp.array([[1, 2], [np.inf, -np.inf]]),), FloatingPointError, "reduce_sum", (1,), (), ()),
    "product": ("nan", lambda x, y: x @ y, (X, jnp.full((3, 2), np.inf)), FloatingPointError, "dot", (1, 0), (), ()),
    "cholesky": ("nan", jnp.linalg.cholesky, (-jnp.eye(2),), FloatingPointError, "cholesky", (0, 0), (), ()),
    "complex": ("nan", jnp.exp, (jnp.array([1j, complex(0, np.inf)]),), FloatingPointError, "exp", (1,), (), ()),
    "gather": ("index", pick, (N, jnp.array([3, 12])), IndexError, "index 12 .*axis 0 with size 12", (1, 0), (), ()),
    "past the start": ("index", pick, (N, jnp.array([-12, -13])), IndexError, r"index -1 \(-13 ", (1, 0), (), ()),
    "two": ("index", lambda x, i: x[i, i], (X, jnp.array([1, 2])), IndexError, "index 2 .*axis 0", (1, 0), (), ()),
    "scatter": ("index", lambda x, i: x.at[i].add(1), (N, jnp.array([0, 0, 99])), IndexError, "index 99.*scatter-add", (2, 0), (), ()),
    "slice": ("index", lambda x, i: lax.dynamic_slice(x, (i,), (3,)), (N, 10), IndexError, "index 10 .*a part of 3", (), (), ()),
    "update": ("index", lambda x, i: lax.dynamic_update_index_in_dim(x, 7, i, 0), (N, 12), IndexError, "index 12", (), (), ()),
    "take": ("index", lambda x: jnp.take(x, jnp.array([1, 40])), (N,), IndexError, "index 40", (1, 0), (), ()),
    "integers": ("div", lambda x, y: x // y, (N, N - 4), ZeroDivisionError, "in div at", (4,), (), ()),
    "remainder": ("div", lambda x, y: lax.rem(x, y), (N, N - 4), ZeroDivisionError, "in rem at", (4,), (), ()),
    "remainder of NumPy": ("div", lambda x, y: x % y, (N, N - 4), ZeroDivisionError, "in rem at", (4,), (), ()),
    "floats": ("div", lambda x: 1 / x, (X - 3,), ZeroDivisionError, "in div at", (0, 2), (), ()),
    "mul": ("overflow", lambda x: x * x * x, (1000 * N,), OverflowError, "in mul of 4000000 and 2000, which became", (2,), (), ()),
    "add": ("overflow", lambda x: x + x, (jnp.array([-(2**30), -(2**30) - 1]),), OverflowError, "in add", (1,), (), ()),
    "neg": ("overflow", jnp.negative, (jnp.array([-128], jnp.int8),), OverflowError, "in neg of -128", (0,), (), ()),
    "int sum": ("overflow", jnp.sum, (jnp.full(5, 2**30),), OverflowError, "in reduce_sum", (), (), ()),
    "conversion": ("overflow", lambda x: x.astype(jnp.int8), (100 * N,), OverflowError, "in convert_element_type of 200", (2,), (), ()),
    "scan": ("nan", loop, (jnp.array([1.0, 2.0, -1.0, -2.0]),), FloatingPointError, r"log at .*\(log\)", (), (2,), ()),
    "nested": ("index", nested, (N, jnp.array([1, 2, 5])), IndexError, "index 15 ", (), (2, 3), ()),
    "while": ("nan", until, (10.0,), FloatingPointError, "in sqrt", (), (3,), ()),
    "branch": ("nan", lambda x: lax.cond(x > 0, lambda x: x, log, x), (-1.0,), FloatingPointError, "in log", (), (), ()),
    "vmap": ("nan", jax.vmap(jax.vmap(log), 1, 1), (X,), FloatingPointError, "in log", (1, 1), (), (1, 1)),
    "vmap of loop": ("nan", jax.vmap(loop), (X,), FloatingPointError, "in log", (1,), (1,), (1,)),
    "vmap of gather": ("index", jax.vmap(pick), (X, jnp.array([[0, 1], [2, 3]])), IndexError, "index 3 .*axis 1", (1, 1, 0), (), (1,)),
    "checkpoint": ("nan", jax.value_and_grad(lambda x: jax.checkpoint(log)(x)), (-1.0,), FloatingPointError, "in log", (), (), ()),
}  # fmt: skip


def failure(f, *args):
    with pytest.raises((IndexError, FloatingPointError, ZeroDivisionError, OverflowError)) as caught:
        f(*args)
    return caught.value


def same(a, b) -> bool:
    return (type(a), str(a), a.position, a.iterations, a.examples) == (
        type(b),
        str(b),
        b.position,
        b.iterations,
        b.examples,
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("name", CASES)
def test_what_is_found_and_where(name):
    kind, f, args, category, words, position, iterations, examples = CASES[name]
    jitted = jax.jit(f, checks=kind)
    error = failure(jitted, *args)
    assert type(error) is category
    assert re.search(words, str(error))
    assert (error.position, error.iterations, error.examples) == (position, iterations, examples)
    assert "test_checks.py" in error.source.file_name or name in ("exp", "complex", "neg", "int sum", "cholesky")
    closed, values = jitted.trace(*args).jaxpr, [np.asarray(jnp.asarray(x)) for x in args]
    if lazy.has_compiler():
        null = failure(run_null, plan(lower(closed), host.this_machine()), values)
        assert same(null, error)

    steps = failure(interpreted.steps(closed), *values)
    assert same(steps, error)
    with jax.checks(kind):
        eager = failure(f, *args)
    assert type(eager) is category and eager.iterations == iterations
    assert re.search(words, str(eager))


def test_several_kinds_and_the_ways_to_ask(monkeypatch):
    f = lambda x, i: jnp.log(x[i])
    for ask in ("index,nan", ("nan", "index"), "all"):
        assert type(failure(jax.jit(f, checks=ask), X[0], 9)) is IndexError
        assert type(failure(jax.jit(f, checks=ask), -X[0], 1)) is FloatingPointError
    plain = jax.jit(f)
    assert np.isnan(plain(-X[0], 1))
    with jax.checks("nan"):
        assert type(failure(plain, -X[0], 1)) is FloatingPointError
        with jax.checks(None):
            assert np.isnan(plain(-X[0], 1))
        plain(X[0], 9)
        assert type(failure(jax.jit(f, checks="index"), X[0], 9)) is IndexError
    assert np.isnan(plain(-X[0], 1))
    jax.config.update("jax_checks", "nan")
    try:
        assert type(failure(plain, -X[0], 1)) is FloatingPointError
        assert type(failure(jnp.log, -1.0)) is FloatingPointError
    finally:
        jax.config.update("jax_checks", "")
    monkeypatch.setenv("CATENA_CHECKS", "div, nan")
    assert from_environment(FLAGS["jax_checks"], "CATENA_CHECKS") == "nan,div"
    for wrong, error in (("nans", ValueError), (3, TypeError), (("nan", 1), TypeError)):
        with pytest.raises(error, match="checks must be"):
            jax.jit(f, checks=wrong)


def test_checks_of_a_function_that_others_call():
    inner = jax.jit(log, checks="nan")
    assert type(failure(jax.jit(lambda x: inner(x) + jnp.sqrt(x)), -1.0)) is FloatingPointError
    assert np.isnan(jax.jit(lambda x: inner(abs(x)) + jnp.sqrt(x))(-1.0))
    assert failure(jax.jit(jax.vmap(inner)), -X[0]).examples == (0,)
    assert type(failure(jax.grad(lambda x: inner(x) * 2), -1.0)) is FloatingPointError
    assert type(failure(inner.lower(1.0).compile(), -1.0)) is FloatingPointError
    with jax.disable_jit():
        assert type(failure(inner, -1.0)) is FloatingPointError


def test_the_backward_pass_is_said_to_be_one():
    norm = lambda x: jnp.sqrt(jnp.sum(x**2))
    error = failure(jax.jit(jax.grad(norm), checks="nan"), jnp.zeros(3))
    assert error.source.backward and any("backward pass of line" in note for note in error.__notes__)
    until = jax.grad(lambda x: lax.fori_loop(0, 5, lambda i, y: jnp.sqrt(y), x))
    assert type(failure(jax.jit(until, checks="div"), 0.0)) is ZeroDivisionError


def test_large_arrays_report_the_first_element_on_any_thread():
    x = jnp.ones(1 << 20).at[jnp.array([70_000, 900_000, 250_000])].set(-1.0)
    f = jax.jit(lambda x: (jnp.sqrt(x) * 2).sum(), checks="nan")
    for _ in range(3):
        assert failure(f, x).position == (70_000,)
    assert f(abs(x)) == 2 << 20
    assert failure(jax.jit(lambda x: jnp.log(x).sum(1), checks="nan"), x.reshape(1024, 1024)).position == (68, 368)


def test_numbers_that_are_given_are_not_made():
    x = jnp.array([1.0, np.nan, np.inf])
    f = jax.jit(
        lambda x: jnp.where(jnp.isnan(x), 0, jnp.exp(-x) + x.sum() + (x[:, None] @ x[None])[0]), checks="nan,inf"
    )
    f(x)
    chain = jax.jit(lambda x: jnp.sqrt(x * 2 + 1) - 3, checks="nan")
    assert np.isnan(chain(x)[1])
    assert failure(chain, x.at[2].set(-5.0)).position == (2,)


def test_debug_nans_run_nothing_twice():
    calls = []

    def f(x):
        jax.debug.callback(lambda: calls.append(1))
        return log(x)

    with jax.debug_nans(True):
        error = failure(jax.jit(f), -1.0)
    jax.effects_barrier()
    assert calls == [1] and "in log at" in str(error)
    with jax.debug_nans(True):
        assert jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0))(-1.0) == 0


def test_programs_without_checks_are_what_they_were():
    plain = jax.jit(log).lower(X).compile().as_text()
    with jax.checks("all"):
        checked = jax.jit(log).lower(X).compile().as_text()
    assert "catena_note" in checked and "catena_note" not in plain
    assert jax.jit(log).lower(X).compile().as_text() == plain


@pytest.mark.parametrize("index", [lambda i: i, lambda i: i[0]])
@pytest.mark.parametrize("size", [1, 2])
def test_an_index_along_an_axis_of_any_size_is_checked(index, size):
    """Of an axis of size 1 the element is known whatever the index."""
    f = jax.jit(lambda x, i: x[index(i)], checks="index")
    assert f(jnp.ones(size), jnp.array([size - 1])) == 1
    with pytest.raises(IndexError, match=f"index {size} is out of bounds for axis 0 with size {size}"):
        f(jnp.ones(size), jnp.array([size]))


def test_what_is_not_chosen_is_checked_too():
    f = jax.jit(lambda x, i: lax.fori_loop(0, 3, lambda n, t: t + jnp.where(n < 0, x[i], x[n]), 0.0), checks="index")
    assert f(jnp.ones(3), 2) == 3
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        f(jnp.ones(3), 3)
