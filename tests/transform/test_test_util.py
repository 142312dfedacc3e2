"""`test_util` accepts derivatives that are right, of every kind of argument, and refuses those that are not."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.test_util import check_grads, check_jvp, check_vjp

X = jnp.array([0.3, 1.2, -0.7])


def test_right_derivatives():
    check_grads(lambda x, y: (jnp.sin(x) * y, {"a": x * x}), (X, 2.0), order=2)
    check_grads(jnp.exp, (X,), order=3, modes="fwd")
    check_grads(lambda z: z * z * 1j, (1.0 + 2.0j,), order=2)
    check_grads(lambda z: jnp.abs(z), (1.0 + 2.0j,), order=1)
    check_grads(jnp.tanh, (X.astype("bfloat16"),), order=1)
    with jax.enable_x64(True):
        check_grads(jnp.sin, (np.float64(1.0),), order=2, atol=1e-8, rtol=1e-8)


def wrong(at: str):
    """sin, whose derivative of one kind is off by a tenth."""

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), jnp.cos(primals[0]) * tangents[0] * 1.1

    @jax.custom_vjp
    def g(x):
        return jnp.sin(x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (jnp.cos(x) * ct * 1.1,))
    return f if at == "fwd" else g


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives(mode):
    with pytest.raises(AssertionError, match="derivative " + mode):
        check_grads(wrong(mode), (X,), order=1, modes=mode)


def test_wrong_at_the_second_order():
    def f(x):  # its second derivative is left out
        return jax.custom_gradient(lambda x: (jnp.sin(x), lambda ct: ct * jax.lax.stop_gradient(jnp.cos(x))))(x)

    check_grads(f, (X,), order=1, modes="rev")
    with pytest.raises(AssertionError, match="derivative rev of rev"):
        check_grads(f, (X,), order=2, modes="rev")


def test_single_checks():
    check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), jnp.cos(*p) * t[0]), (X,), eps=1e-2)
    check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (X,), eps=1e-2)
    with pytest.raises(AssertionError, match="JVP primal"):
        check_jvp(jnp.sin, lambda p, t: (1 + jnp.sin(*p), jnp.cos(*p) * t[0]), (X,), eps=1e-2)
    with pytest.raises(AssertionError, match="hm VJP cotangent"):
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda ct: (5 * ct,)), (X,), eps=1e-2, err_msg="hm")
    with pytest.raises(ValueError, match="'fwd' or 'rev', got 'odd'"):
        check_grads(jnp.sin, (X,), order=1, modes="odd")
