"""Every transformation composed with every other: derivatives of sine, whatever the order in which they are
asked for.

A step takes a function that works element by element and gives another: itself, computed otherwise, or its
derivative.
After k derivatives of the sine the answer is sin(x + k pi / 2).
"""

import itertools
import random

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

X = np.array([0.3, -0.8, 1.7], np.float32)


def diagonal(jacobian):
    """From a Jacobian to the derivative of an elementwise function."""

    def derivative(x):
        j = jacobian(x)
        return jnp.sum(j, axis=-1) if jnp.ndim(x) else j

    return derivative


def custom(f):
    """``f`` with its own derivative as a rule."""
    wrapped = jax.custom_jvp(f)
    wrapped.defjvp(lambda p, t: jax.jvp(f, p, t))
    return wrapped


def custom_back(f):
    wrapped = jax.custom_vjp(f)
    wrapped.defvjp(lambda x: jax.vjp(f, x), lambda pull, ct: pull(ct))
    return wrapped


def loop(f):
    """``f`` in the body of a loop."""
    return lambda x: lax.fori_loop(0, 1, lambda _, y: f(y), x)


SAME = {
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(x) if jnp.ndim(x) else f(x),
    "vmap_of_nothing": lambda f: lambda x: jax.vmap(lambda _, y: f(y), (0, None), None)(np.zeros(2), x),
    "checkpoint": jax.checkpoint,
    "custom_jvp": custom,
    "custom_vjp": custom_back,
    "map": lambda f: lambda x: lax.map(f, x) if jnp.ndim(x) else f(x),
    "fori_loop": loop,
    "cond": lambda f: lambda x: lax.cond(jnp.sum(x) > -100.0, f, lambda y: y, x),
    "closure": lambda f: lambda x: jax.jit(lambda: f(x))(),
}
DERIVATIVES = {
    "grad": lambda f: jax.grad(lambda x: jnp.sum(f(x))),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1],
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.ones_like(x))[0],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.ones_like(x)),
    "jacfwd": lambda f: diagonal(jax.jacfwd(f)),
    "jacrev": lambda f: diagonal(jax.jacrev(f)),
}
STEPS = {**SAME, **DERIVATIVES}


def check(names):
    f, order = jnp.sin, 0
    for name in names:
        f = STEPS[name](f)
        order += name in DERIVATIVES
    expected = np.sin(X.astype(float) + order * np.pi / 2)
    np.testing.assert_allclose(np.asarray(f(X)), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(np.asarray(jax.jit(f)(X)), expected, rtol=2e-5, atol=2e-6)


def label(names):
    return "(".join(reversed(names)) + "(sin" + ")" * len(names)


PAIRS = list(itertools.product(STEPS, repeat=2))
TRIPLES = random.Random(0).sample(list(itertools.product(STEPS, repeat=3)), 150)
DEEP = random.Random(1).sample(list(itertools.product(STEPS, repeat=5)), 25)


@pytest.mark.share(7)
@pytest.mark.parametrize("names", PAIRS, ids=label)
def test_pairs(names):
    check(names)


@pytest.mark.share(5)
@pytest.mark.parametrize("names", TRIPLES, ids=label)
def test_triples(names):
    check(names)


@pytest.mark.parametrize("names", DEEP, ids=label)
def test_deep(names):
    check(names)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_traced_to_a_well_formed_jaxpr(name):
    with jax.enable_checks(True):
        f = STEPS[name](STEPS["grad"](jnp.sin))
        jax.make_jaxpr(f)(X)
        jax.make_jaxpr(jax.grad(lambda x: jnp.sum(f(x))))(X)
        jax.make_jaxpr(jax.vmap(f))(np.stack([X, X]))


# ---- what transformed functions say of themselves


def test_transformed_functions_say_what_they_are():
    def energy(x):
        """The energy of a spring."""
        return x**2

    for transformed, words in (
        (jax.grad(energy), "The gradient by argument 0 of energy"),
        (jax.value_and_grad(energy, argnums=(0,)), "The value, and the gradient by argument (0,), of energy"),
        (jax.vmap(energy), "The vectorised form of energy"),
        (jax.jacfwd(energy), "The Jacobian by argument 0 of energy"),
    ):
        assert transformed.__name__ == "energy" and transformed.__wrapped__ is energy
        assert transformed.__doc__.startswith(words) and transformed.__doc__.endswith("The energy of a spring.")
    assert jax.jit(energy).__doc__ == energy.__doc__
    lowered = jax.jit(energy).lower(1.0)
    assert (repr(lowered), repr(lowered.compile())) == (
        "<Lowered energy(x: float32[])>",
        "<Compiled energy(x: float32[])>",
    )
    assert repr(jax.vjp(energy, 1.0)[1]).startswith("<VJP of energy at ")
    assert repr(jax.linearize(energy, 1.0)[1]) == "<linear function of tangents of types float32[]>"


def test_the_configuration_shows_what_was_changed():
    before = jax.config.jax_slow_compile_secs
    jax.config.update("jax_slow_compile_secs", 12.5)
    try:
        assert "jax_slow_compile_secs=12.5" in repr(jax.config)
    finally:
        jax.config.update("jax_slow_compile_secs", before)


NESTED = {  # how deep, at least, under the usual recursion limit and with pytest's own frames; docs/differences.md
    "jvp": (100, lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones(()),))[0]),
    "linearize": (75, lambda f: lambda x: jax.linearize(f, x)[0]),
    "vjp": (75, lambda f: lambda x: jax.vjp(f, x)[0]),
}


@pytest.mark.parametrize("name", NESTED)
def test_transformations_nest(name):
    depth, transform = NESTED[name]
    f = lambda x: x * 2
    for _ in range(depth):
        f = transform(f)
    assert f(jnp.ones(())) == 2
