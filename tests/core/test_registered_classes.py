"""Classes that are registered as arrays (`jax.core.pytype_aval_mappings`), as TensorFlow Probability does on JAX."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core import ShapedArray, pytype_aval_mappings
from catena.interpreters.xla import canonicalize_dtype_handlers


class Degrees:
    """Angles, that are radians as arrays."""

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)


@pytest.fixture
def registered():
    pytype_aval_mappings[Degrees] = lambda x: ShapedArray(x.values.shape, x.values.dtype)
    canonicalize_dtype_handlers[Degrees] = lambda x: np.deg2rad(x.values)
    yield
    del pytype_aval_mappings[Degrees], canonicalize_dtype_handlers[Degrees]


def test_instances_of_registered_classes_are_operands(registered):
    x = Degrees([0.0, 90.0])
    assert jax.typeof(x) == ShapedArray((2,), np.float32)
    for f in (jnp.sin, lax.sin, jax.jit(jnp.sin), jax.vmap(jnp.sin), lambda x: lax.cond(True, jnp.sin, jnp.cos, x)):
        np.testing.assert_allclose(f(x), [0, 1], atol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(jnp.sin(x)))(x), [1, 0], atol=1e-6)
    assert str(jax.make_jaxpr(jnp.sin)(x).in_avals[0]) == "float32[2]"


def test_an_entry_of_numpys_may_be_used_for_a_class_that_numpy_converts():
    class Held:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2, np.int16)

    for table in (pytype_aval_mappings, canonicalize_dtype_handlers):
        table[Held] = table[np.ndarray]
    try:
        assert jax.typeof(Held()) == ShapedArray((2,), np.int16)
        assert jnp.sum(Held(), dtype=jnp.int32) == 2
    finally:
        for table in (pytype_aval_mappings, canonicalize_dtype_handlers):
            del table[Held]


def test_others_are_refused():
    for f in (jax.typeof, jnp.sin, lax.sin, jax.jit(jnp.sin)):
        with pytest.raises(TypeError, match="Degrees"):
            f(Degrees(1.0))
