"""What is a traced value in a function that is written down: also what functions make of numbers alone."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    UnexpectedTracerError,
)

G = jnp.ones(3)

MAKE = {
    "ones(())": lambda: jnp.ones(()),
    "zeros": lambda: jnp.zeros(3),
    "full": lambda: jnp.full((), 2.0),
    "asarray of a number": lambda: jnp.asarray(1.0),
    "asarray of a list": lambda: jnp.asarray([1, 2]),
    "asarray of NumPy's": lambda: jnp.asarray(np.ones(3)),
    "array of an array": lambda: jnp.array(G),
    "a scalar type": lambda: jnp.float32(1),
    "arange": lambda: jnp.arange(1, 5, 2),
    "ones_like": lambda: jnp.ones_like(1.0),
    "hamming": lambda: jnp.hamming(3),
    "tril_indices": lambda: jnp.tril_indices(3)[1],
    "r_": lambda: jnp.r_[1:3],
    "frombuffer": lambda: jnp.frombuffer(b"ab", "int8"),
    "device_put": lambda: jax.device_put(np.ones(3)),
}
KEEP = {"asarray": lambda: jnp.asarray(G), "astype": lambda: G.astype("float32")}

WRITTEN_DOWN = {
    "jit": lambda f: jax.jit(f)(1.0),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0),
    "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2),
    "cond": lambda f: lax.cond(True, f, f, 1.0),
    "checkpoint": lambda f: jax.checkpoint(f)(1.0),
    "jit of vmap": lambda f: jax.jit(jax.vmap(f))(G),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0),
}
AT_ONCE = {
    "eager": lambda f: f(1.0),
    "grad": lambda f: jax.grad(f)(1.0),
    "vmap": lambda f: jax.vmap(f)(G),
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 1.0),
}


def is_traced(make, transform) -> bool:
    found = []

    def f(x):
        found.append(isinstance(make(), jax.core.Tracer))
        return x * 2.0

    transform(f)
    assert len(set(found)) == 1
    return found[0]


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_arrays_made_in_a_traced_function_are_traced(make):
    assert all(is_traced(make, transform) for transform in WRITTEN_DOWN.values())
    assert not any(is_traced(make, transform) for transform in AT_ONCE.values())


@pytest.mark.parametrize("make", KEEP.values(), ids=KEEP)
def test_the_users_own_array_is_not(make):
    assert not any(is_traced(make, transform) for transform in (WRITTEN_DOWN | AT_ONCE).values())


def test_they_are_literals_and_constants_without_an_equation():
    def f(x):
        return x * jnp.float32(2) + jnp.ones(()) + jnp.asarray(np.arange(3.0))

    closed = jax.make_jaxpr(f)(G)
    assert [e.primitive.name for e in closed.jaxpr.eqns] == ["mul", "add", "add"]
    assert len(closed.consts) == 1
    np.testing.assert_array_equal(jax.jit(f)(G), f(G))


def test_python_may_not_ask_for_their_values():
    for ask, error in [
        (lambda: bool(jnp.asarray(True)), TracerBoolConversionError),
        (lambda: float(jnp.ones(())), ConcretizationTypeError),
        (lambda: np.asarray(jnp.array([1.0, 2.0])), TracerArrayConversionError),
    ]:
        with pytest.raises(error, match=r"This value was made at .*test_staging\.py"):
            jax.jit(ask)()
        jax.vmap(lambda x, ask=ask: x + ask().sum() if error is TracerArrayConversionError else x + ask())(jnp.ones(2))


def test_they_do_not_leave_the_function():
    kept = []
    jax.jit(lambda x: (kept.append(jnp.ones(())), x)[1])(1.0)
    with pytest.raises(UnexpectedTracerError, match="made at .*test_staging"):
        kept[0] + 1


def test_indices_among_them_are_known():
    """So the program is that of Python's integers."""
    x = jnp.arange(5.0)
    for index, same in [(lambda: jnp.asarray(2), 2), (lambda: jnp.array([0, 4]), np.array([0, 4]))]:
        texts = [str(jax.make_jaxpr(lambda x, i=i: x[i()])(x)) for i in (index, lambda same=same: same)]
        assert texts[0] == texts[1]
    assert jax.jit(lambda x: x[jnp.array([True, False, True, False, False])])(x).tolist() == [0, 2]
    assert jax.jit(lambda x: jnp.repeat(x[:2], jnp.array([1, 2])))(x).tolist() == [0, 1, 1]


def test_what_is_computed_while_tracing_is_known():
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            n = jnp.asarray(2) * jnp.ones((), int)
            assert not isinstance(n, jax.core.Tracer)
        return x * int(n)

    assert f(3) == 6


def test_weak_types_stay():
    assert jax.jit(lambda: jnp.asarray(1.0))().weak_type
    assert jax.eval_shape(lambda x: x * jnp.asarray(2.0), jnp.ones(2, "bfloat16")).dtype == jnp.bfloat16
    assert not jax.jit(lambda: jnp.float32(1))().weak_type
