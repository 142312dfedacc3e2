"""Forward and backward pass as two functions, and values in force that functions are traced anew for."""

import threading

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

X = jnp.arange(3.0)


@pytest.mark.parametrize("jitted", [True, False])
def test_passes(jitted):
    fwd, bwd = jax.fwd_and_bwd(lambda x, y: {"out": jnp.sin(x) * y}, (1, 0), jitted=jitted)
    value, saved = fwd(X, 2.0 * X)
    np.testing.assert_allclose(value["out"], np.sin(X) * 2 * X, rtol=1e-6)
    by_y, by_x = bwd(saved, {"out": X})
    np.testing.assert_allclose(by_y, np.sin(X) * X, rtol=1e-6)
    np.testing.assert_allclose(by_x, np.cos(X) * 2 * X * X, rtol=1e-6)


def test_one_argument_and_what_goes_with_it():
    fwd, bwd = jax.fwd_and_bwd(lambda x, n: (n * x, x), -2, has_aux=True)
    value, saved, aux = fwd(X, 3.0)
    np.testing.assert_array_equal(bwd(saved, X), 3 * X)
    np.testing.assert_array_equal(aux, X)
    with pytest.raises(ValueError, match="argnums has -2"):
        fwd(X)
    with pytest.raises(TypeError):
        jax.fwd_and_bwd(3, 0)


def test_user_context():
    scale, traced = jax.make_user_context(1), []

    @jax.jit
    def f(x):
        traced.append(scale.value)
        return x * scale.value

    assert f(2).item() == 2 and f(3).item() == 3
    with scale(10):
        assert f(2).item() == 20
        with scale(1):
            assert f(2).item() == 2
    assert traced[:2] == [1, 10] and len(traced) <= 3
    scale.set_global(7)
    found = []
    thread = threading.Thread(target=lambda: found.append(f(2).item()))
    thread.start()
    thread.join()
    assert found == [14] and scale.value == scale.get_global() == 7
    with scale([1]):  # not hashable
        assert scale.value == [1]
    with pytest.raises(TypeError, match="is a context manager"):
        bool(scale)
