"""Calls in a row by a table (`emit.calls`), and arguments by a loop (`emit.entry`)."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import calls
from catena.core.context import context

MANY = 2 * calls.FEWEST


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def layers(x, w, count=MANY):
    for i in range(count):
        x = jax.nn.softmax(x @ w + x, axis=1) * (1 + i % 3)
        x = x - jnp.sum(x, axis=0) / 8
    return x


def lines_of_entry(f, *xs):
    text = jax.jit(f).lower(*xs).compile().as_text("llvm")
    return text[text.index("define i64 @entry") :].count("\n")


@pytest.mark.parametrize("rows", [24, 3000])
def test_many_layers_are_as_each_by_itself(rows):
    x, w = numbers(rows, 24), numbers(24, 24) / 8
    wanted, layer = x, jax.jit(layers, static_argnums=2)
    found = jax.jit(layers)(x, w)
    for _ in range(MANY // 3):
        wanted = layer(wanted, w, 3)
    np.testing.assert_array_equal(found, layer(wanted, w, MANY % 3))


def test_other_lengths_have_rows_of_their_own():
    f, w = jax.jit(layers), numbers(24, 24) / 8
    for rows in (40, 50, 60, 61, 95, 130):
        x = numbers(rows, 24)
        np.testing.assert_allclose(f(x, w), _in_turn(x, w), rtol=1e-3, atol=1e-4)


def _in_turn(x, w):
    for i in range(MANY):
        y = x @ w + x
        e = np.exp(y - y.max(1, keepdims=True))
        x = e / e.sum(1, keepdims=True) * (1 + i % 3)
        x = x - x.sum(0) / 8
    return x


def products(x, w, count):
    for _ in range(count):
        x = jnp.tanh(x @ w)
    return x


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_the_entry_does_not_grow_with_the_steps():
    x, w = numbers(96, 96), numbers(96, 96)
    few, many = (lines_of_entry(lambda x, w, n=n: products(x, w, n), x, w) for n in (MANY, 3 * MANY))
    assert few == many


def tree(count):
    return [numbers(i % 5 + 1, 3) for i in range(count)]


@pytest.mark.parametrize("place", [0, 17, 59])
def test_one_of_many_arguments_is_not_aligned(place):
    f = jax.jit(lambda xs: [x * (i + 1) for i, x in enumerate(xs)])
    xs = tree(60)
    wanted = f(xs)
    shape = xs[place].shape
    xs[place] = np.frombuffer(b"\0" + xs[place].tobytes(), np.uint8)[1:].view(np.float32).reshape(shape)
    assert not xs[place].flags.aligned
    for found, each in zip(f(xs), wanted, strict=True):
        np.testing.assert_array_equal(found, each)


def test_many_arguments_of_which_some_are_not_contiguous():
    f = jax.jit(lambda xs: sum(jnp.sum(x) for x in xs))
    xs = tree(60)
    np.testing.assert_array_equal(f([x[::-1, ::-1] for x in xs]), f([x[::-1, ::-1].copy() for x in xs]))


def test_a_loop_over_chunks_leaves_an_entry_that_is_not_optimised():
    x = numbers(3000, 2000)
    text = jax.jit(lambda x, w: x @ w).lower(x, numbers(2000, 300)).compile().as_text("llvm")
    assert " optnone " in text[text.index("define i64 @entry") :].split("\n", 1)[0]
