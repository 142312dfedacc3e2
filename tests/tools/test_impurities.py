"""What a function takes from the world outside, and does to it, is found with its line."""

import functools
import random
import time

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax, tools

rate = 0.5
history: list = []
settings = {"seen": [0]}


def kinds(fun, *args):
    """The kinds of what is found, and the lines counted from that of the function."""
    first = fun.__code__.co_firstlineno
    return [(found.kind, found.line - first) for found in tools.purity(fun)(*args)]


def reads_a_global(x):
    return x * rate


def keeps_a_tracer(x):
    history.append(x)
    return x


def assigns_a_global(x):
    global rate
    rate = rate * 1.0 + 0.5
    return x


def changes_a_dict(x):
    settings["seen"].append(len(settings))
    return x


def prints(x):
    y = x * 2
    print("y")
    return y


def reads_the_clock(x):
    return x + time.time()


def draws(x):
    return x + random.random()


def draws_by_numpy(x):
    return x + np.random.normal()


def default(x, seen=[]):  # noqa: B006
    seen.append(1)
    return x


def changes_its_own(x):
    state = dict(even=0, odd=0)
    for i in range(10):
        state["even" if i % 2 == 0 else "odd"] += x
    return state["even"] + state["odd"]


# A function, and what is found: kinds, and lines counted from its first
FOUND = {
    reads_a_global: [("captured", 1)],
    keeps_a_tracer: [("captured", 1), ("changed", 1)],
    assigns_a_global: [("captured", 2), ("assigned", 2)],
    changes_a_dict: [("captured", 1), ("changed", 1)],
    prints: [("effect", 2)],
    reads_the_clock: [("effect", 1)],
    draws: [("changed", 1)],
    draws_by_numpy: [("changed", 1)],
    default: [("changed", 1)],
    changes_its_own: [],
}


@pytest.mark.parametrize("function", FOUND, ids=lambda f: f.__name__)
def test_what_is_found(function):
    assert kinds(function, 1.0) == FOUND[function]


def test_closures_and_counters():
    scale, count = 2.0, 0

    def f(x):
        nonlocal count
        count += 1
        return x * scale

    assert kinds(f, 1.0) == [("captured", 2), ("assigned", 2), ("captured", 3)]


@pytest.mark.parametrize("make", [lambda: iter([1, 2]), lambda: (i for i in range(3)), lambda: map(abs, [1, 2])])
def test_iterators(make):
    iterator = make()

    def f(x):
        y = x * 2
        return y + next(iterator)

    found = [(x.kind, x.line) for x in tools.purity(f)(1.0)]
    assert ("consumed", f.__code__.co_firstlineno + 2) in found or isinstance(iterator, map)


def test_objects_and_their_methods():
    class Model:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            self.hidden = x
            return x

    model, line = Model(), Model.__call__.__code__.co_firstlineno
    for fun in (model, model.__call__, functools.partial(model), lambda x: model(x)):
        lines = [x.line - line for x in tools.purity(fun)(1.0) if x.kind == "changed"]
        assert lines == [1, 2]


def test_functions_inside_are_looked_at_though_they_were_traced_before():
    @jax.jit
    def inner(x):
        history.append(1)
        return x

    outer = jax.jit(lambda x: lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0])
    outer(1.0)
    report = tools.purity(outer)(1.0)
    assert [x.line for x in report if x.kind == "changed"] == [inner.__wrapped__.__code__.co_firstlineno + 2]


def test_static_arguments_stay_static():
    @functools.partial(jax.jit, static_argnames="n")
    def f(x, n):
        for _ in range(n):
            history.append(n)
        return x

    assert [x.kind for x in tools.purity(f)(1.0, n=2)] == ["captured", "changed"]


def test_a_report_prints_as_lines():
    report = tools.purity(keeps_a_tracer)(1.0)
    line = keeps_a_tracer.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}: history (list) is changed, and keeps a tracer: it happens when the" in repr(report)
    assert repr(tools.purity(changes_its_own)(1.0)).startswith("changes_its_own at ")


def test_what_is_made_inside_is_nobodys_concern():
    def f(x):
        parts = [x]
        parts.append(x + 1)
        rows = {"a": parts}
        rows["b"] = jnp.stack(parts)
        return rows["b"]

    assert not tools.purity(f)(jnp.ones(2))
