"""The bounds of integers: never narrower than what is computed, and no index is clamped that cannot be beyond."""

import itertools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import intervals
from catena.compiler.graph.intervals import EITHER, FALSE, TRUE, Interval

ENDS = range(-3, 4)
SIDES = [Interval(a, b) for a in ENDS for b in ENDS if a <= b]
TRUTHS = [FALSE, TRUE, EITHER]


def truncated(a, b):
    return int(a / b)


COMPUTED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": np.sign,
    "max": max,
    "min": min,
    "clamp": lambda low, x, high: min(max(x, low), high),
    "rem": lambda a, b: a - b * truncated(a, b),
    "div": truncated,
    "floor_div": lambda a, b: a // b,
    "shift_right_arithmetic": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "convert": lambda a: a,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def holds_all(rule, computed, sides) -> bool:
    """Whether the rule's interval has all that is computed from numbers of the sides."""
    found = rule(*sides)
    if found is None:
        return True
    return all(
        found.low <= computed(*x) <= found.high for x in itertools.product(*(range(s.low, s.high + 1) for s in sides))
    )


def test_every_rule_is_tried():
    assert set(COMPUTED) == set(intervals._OPS)


@pytest.mark.parametrize("op", COMPUTED)
def test_intervals_hold_what_is_computed(op):
    rule, computed = intervals._OPS[op], COMPUTED[op]
    count = computed.__code__.co_argcount if hasattr(computed, "__code__") else 2 if op in ("max", "min") else 1
    sides = SIDES if count < 3 else SIDES[::5]
    for x in itertools.product(sides, repeat=count):
        assert holds_all(rule, computed, x), (op, x)


@pytest.mark.parametrize("truths", list(itertools.product(TRUTHS, repeat=2)))
def test_a_conjunction_of_truths(truths):
    assert holds_all(intervals._OPS["and"], lambda a, b: a & b, truths)


X = jnp.arange(1.0, 11.0)
PLACES = {  # what is made of a counter from 0 to 11, some of it beyond the ten elements
    "as it is": lambda i: i,
    "before": lambda i: i - 1,
    "from behind": lambda i: -i,
    "far behind": lambda i: i - 12,
    "beyond": lambda i: i + 5,
    "each second": lambda i: 2 * i,
    "halves": lambda i: i // 2,
    "halves of negative ones": lambda i: lax.div(i - 6, 2),
    "remainder": lambda i: i % 10,
    "remainder by the sign": lambda i: lax.rem(i - 6, 10),
    "smaller": lambda i: jnp.minimum(i, 9),
    "greater": lambda i: jnp.maximum(i, 9),
    "clamped": lambda i: jnp.clip(i, 2, 7),
    "chosen": lambda i: jnp.where(i < 6, i + 3, i - 6),
    "not chosen": lambda i: jnp.where(i > 20, i + 3, i - 6),
    "narrow": lambda i: (i * 40).astype(jnp.int8),
    "without a sign": lambda i: (i - 1).astype(jnp.uint32),
    "bits": lambda i: (i & 7) - 1,
    "shifted": lambda i: (i - 4) >> 1,
}


def loops(place):
    """Sums of elements, weighted by the iteration, over loops of several kinds."""
    taken = lambda i, total: total * 1.01 + X[place(i)]
    written = lambda i, x: x.at[place(i)].add(1.0).at[place(i)].set(i, mode="drop")
    clamped = lambda x, i: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (place(i),), (3,)) * 0.5, (place(i),))
    below = lambda c: (c[0] + 3, taken(c[0], c[1]))
    return {
        "fori": lambda n: lax.fori_loop(0, 12, taken, 0.0),
        "fori, backwards": lambda n: lax.fori_loop(0, 12, lambda i, t: taken(11 - i, t), 0.0),
        "fori, as many as asked": lambda n: lax.fori_loop(0, n, taken, 0.0),
        "fori, from where asked": lambda n: lax.fori_loop(n - 14, n - 2, taken, 0.0),
        "updates": lambda n: lax.fori_loop(0, 12, written, X),
        "scan": lambda n: lax.scan(lambda t, i: (taken(i, t), t), 0.0, jnp.arange(12), reverse=True),
        "slices": lambda n: lax.scan(lambda x, i: (clamped(x, i), None), X, jnp.arange(12))[0],
        "while below": lambda n: lax.while_loop(lambda c: c[0] < 12, below, (0, 0.0)),
        "while at most": lambda n: lax.while_loop(lambda c: (c[1] < 1e9) & (c[0] <= n), below, (0, 0.0)),
        "nested": lambda n: lax.fori_loop(
            0, 3, lambda i, t: lax.fori_loop(0, 4, lambda j, t: taken(4 * i + j, t), t), 0.0
        ),
        "many": lambda n: X.at[place(jnp.arange(12))].get() + X.at[place(jnp.arange(12))].get(mode="fill"),
    }


@pytest.mark.share(3)
@pytest.mark.parametrize("name", PLACES)
def test_loops_read_and_write_what_they_do_without_a_compiler(name):
    for kind, f in loops(PLACES[name]).items():
        with jax.disable_jit():
            expected = f(jnp.int32(12))
        for got, want in zip(jax.tree.leaves(jax.jit(f)(jnp.int32(12))), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=kind)


def text(f, *args) -> str:
    return jax.jit(f).lower(*args).compile().as_text("nests")


@pytest.mark.parametrize("kind", ["fori", "fori, backwards", "scan", "while below", "nested"])
def test_an_index_that_is_never_beyond_is_used_as_it_is(kind):
    f = loops(lambda i: (i & 7) + 1)[kind]
    found = text(f, jnp.int32(12))
    assert not any(word in found for word in (" max ", " min ", " select "))


def test_a_counter_that_may_wrap_around_is_not_trusted():
    f = lambda x: lax.scan(lambda i, _: (i + jnp.int8(100), x[i]), jnp.int8(0), length=4)
    with jax.disable_jit():
        expected = f(X)
    np.testing.assert_array_equal(jax.jit(f)(X)[1], expected[1])
    assert int(jax.jit(f)(X)[0]) == int(expected[0]) == -112
