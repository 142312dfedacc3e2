"""Sums of costly terms, which threads make before one adds them up (`plan.sums_apart`)."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V3, X86_64_V4
from catena.compiler.native.compile import program_of
from catena.compiler.plan.steps import Launch
from catena.core.config import override


def loss(x):
    return jax.nn.softplus(x) - 0.3 * x


def launches(f, x, machine):
    with override("jax_check_bounds", False):
        program = program_of(jax.make_jaxpr(f)(x), machine=machine)
    return [step for _, step in program.steps() if isinstance(step, Launch)]


@pytest.mark.parametrize("machine", [X86_64_V3, X86_64_V4])
@pytest.mark.parametrize(
    "f, shape",
    [
        (lambda x: jnp.mean(loss(x)), (100_000,)),
        (lambda x: jax.value_and_grad(lambda x: jnp.sum(loss(x)))(x), (300, 257)),
        (lambda x: jax.lax.fori_loop(0, 5, lambda i, x: x + 1e-3 * jnp.mean(loss(x)), x), (70_000,)),
    ],
)
def test_costly_terms_are_made_by_all_threads(machine, f, shape):
    x = jnp.ones(shape)
    assert any("log1p" in step.detail() and step.chunk for step in launches(f, x, machine))
    adding = [step for step in launches(f, x, machine) if "sum" in step.detail()]
    assert adding and not any("log1p" in step.detail() for step in adding)
    alone = launches(f, x, machine._replace(threads=False))
    assert any("log1p" in step.detail() and "sum" in step.detail() for step in alone)


@pytest.mark.parametrize("f, shape", [(jnp.exp, (100_000,)), (loss, (2000,)), (loss, (2, 50_000)), (loss, (64, 1000))])
def test_what_is_cheap_or_shared_anyway_is_added_up_where_it_is_made(f, shape):
    made = launches(lambda x: jnp.sum(f(x), -1), jnp.ones(shape), X86_64_V4)
    assert all("sum" in step.detail() for step in made)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16])
@pytest.mark.parametrize("shape", [(20_000,), (100_003,), (131_072,), (300, 257), (7, 9001), (3, 5, 7000)])
def test_the_order_is_that_of_a_sum_of_what_lies_in_memory(shape, dtype):
    with jax.enable_x64():
        x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), dtype)
        terms = jax.jit(loss)(x)
        for axis in (None, -1):
            expected = jax.jit(lambda terms: jnp.sum(terms, axis))(terms)
            np.testing.assert_array_equal(jax.jit(lambda x: jnp.sum(loss(x), axis))(x), expected)
        total, largest, squares = jax.jit(lambda x: (jnp.sum(loss(x)), jnp.max(loss(x)), jnp.sum(loss(x) ** 2)))(x)
    np.testing.assert_array_equal(total, jax.jit(jnp.sum)(terms))
    np.testing.assert_array_equal(largest, terms.max())
    reference = np.sum(np.asarray(terms, np.float64) ** 2)
    np.testing.assert_allclose(np.float64(squares), reference, rtol=1e-2 if dtype == jnp.bfloat16 else 1e-5)
