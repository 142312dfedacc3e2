"""Nests of a program that differ in constants alone, as the iterations of a loop that is written out do, are one
function, which reads them.
"""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import text_of
from catena.core.context import context

w = np.linspace(-1, 1, 64).reshape(8, 8)
NUMBERS = [0.25, 1.01, -0.3, 3.0, 0.5, 1.0, -0.0, 0.0, 1e-30, 7.0, 37.0, 1 / 37, np.inf, -np.inf, np.nan, 0.1, 0.1, 2.0]


def step(x, number):
    y = jnp.where(x > number, x, x * number) + jnp.asarray(number, x.dtype)
    return jnp.cumsum(y, 0)


def steps(x, numbers):
    return [step(x + k, number) for k, number in enumerate(numbers)]


def iterations(x, w, count):
    for k in range(count):
        y = x * (1.013 + 0.01 * k)
        y = (y - jnp.mean(y, -1, keepdims=True)) @ w
        x = 0.9 * x + (0.1 + 0.001 * k) * jnp.tanh(y)
    return x


def functions(f, *args) -> int:
    return len(re.findall(r"^define ", text_of(jax.make_jaxpr(f)(*args)), re.MULTILINE))


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, kernels know their values' sizes")
def test_more_iterations_need_no_more_functions():
    x, w = jnp.ones((8, 16)), jnp.ones((16, 16))
    few, many = (functions(lambda x, w: iterations(x, w, n), x, w) for n in (40, 80))  # noqa: B023
    assert many <= few + 2  # constants of one iteration may be equal, and are one


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
def test_they_compute_what_each_does_alone(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(w, dtype)
        numbers = NUMBERS if dtype != "complex64" else [complex(a, b) for a, b in zip(NUMBERS, NUMBERS[1:12])]
        f = step if dtype != "complex64" else lambda x, number: jnp.cumsum(x * number + number, 0)
        together = jax.jit(lambda x: [f(x, number) for number in numbers])(x)
        for number, found in zip(numbers, together):
            alone = jax.jit(lambda x: f(x, number))(x)  # noqa: B023
            assert np.asarray(found).tobytes() == np.asarray(alone).tobytes(), number


def test_lengths_of_them_are_found():
    f = jax.jit(lambda x: steps(x, NUMBERS))
    for n in (40, 50, 60, 71, 83, 90):
        x = jnp.asarray(np.linspace(-2, 2, 3 * n).reshape(n, 3), "float32")
        for found, expected in zip(f(x), jax.jit(lambda x: steps(x, NUMBERS))(x)):
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), n
