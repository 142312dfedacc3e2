"""Names for decisions of policies, and zero tangents."""

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import ad_checkpoint
from catena.custom_derivatives import SymbolicZero, zero_from_primal


def test_decisions_of_policies():
    counts = []
    for decision in (
        ad_checkpoint.Saveable,
        ad_checkpoint.Recompute,
        ad_checkpoint.Offloadable("device", "pinned_host"),
    ):
        f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: decision)  # noqa: B023
        derivative = jax.jit(jax.grad(f))
        np.testing.assert_allclose(derivative(1.0), np.cos(np.sin(1)) * np.cos(1), rtol=1e-6)
        counts.append(str(jax.make_jaxpr(jax.grad(f))(1.0)).count(" sin "))
    assert counts[0] == counts[2] < counts[1]


def test_copies_to_the_host():
    x = jnp.ones(2)
    assert jax.copy_to_host_async({"a": x, "b": 3})["a"] is x
    np.testing.assert_array_equal(jax.jit(jax.copy_to_host_async)(x), x)


def test_zero_tangents():
    assert zero_from_primal(jnp.ones(2)).tolist() == [0, 0]
    assert np.asarray(zero_from_primal(3)).dtype == jax.dtypes.float0
    assert type(zero_from_primal(1.0, True)) is SymbolicZero
    assert zero_from_primal({"a": (1.0, None)})["a"][0] == 0.0
    assert SymbolicZero.from_primal_value(jnp.ones((2, 3))).shape == (2, 3)
