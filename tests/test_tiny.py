"""The whole system in one page and a few seconds: the first test to run, and the first to read."""

import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

X = np.arange(1.0, 4.0, dtype=np.float32)


def f(x):
    return jnp.sum(jnp.sin(x) * x)


def df(x):
    return np.cos(x) * x + np.sin(x)


def d2f(x):
    return 2 * np.cos(x) - np.sin(x) * x


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


# arrays


def test_an_array_is_numpys_friend():
    x = jnp.arange(6.0).reshape(2, 3)
    assert repr(x[0]) == "Array([0., 1., 2.], dtype=float32)"
    assert (x.T @ x).shape == (3, 3)
    assert not np.asarray(x).flags.writeable
    close(np.sin(x), jnp.sin(x))


def test_an_array_never_changes():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1.0
    assert x.at[0].set(1.0).tolist() == [1, 0, 0]
    assert x.tolist() == [0, 0, 0]


def test_types_are_32_bit_and_scalars_are_weak():
    assert jnp.arange(3).dtype == jnp.int32
    assert (jnp.ones(2, jnp.bfloat16) * 2.0).dtype == jnp.bfloat16
    assert (jnp.arange(3) + 1.5).dtype == jnp.float32


# the language


def test_a_function_becomes_a_jaxpr():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    expected = "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }"
    assert str(closed) == expected
    close(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0), [np.sin(1.0) * 2])


# the transformations, alone and in chains


def test_grad():
    close(jax.grad(f)(X), df(X))


def test_jvp_and_vjp():
    close(jax.jvp(f, (X,), (np.ones(3, np.float32),))[1], df(X).sum())
    value, pull = jax.vjp(f, X)
    close(pull(jnp.ones_like(value))[0], df(X))


def test_hessian_is_forward_over_reverse():
    close(jax.hessian(f)(X), np.diag(d2f(X)))
    close(jax.jacrev(jax.jacfwd(f))(X), np.diag(d2f(X)))


def test_vmap():
    close(jax.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    close(jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(X), X / X.sum())


@pytest.mark.parametrize("chain", ["jit(grad)", "grad(jit)", "jit(vmap(grad))", "vmap(jit(grad(jit)))"])
def test_chains(chain):
    g = {
        "jit(grad)": jax.jit(jax.grad(f)),
        "grad(jit)": jax.grad(jax.jit(f)),
        "jit(vmap(grad))": jax.jit(jax.vmap(jax.grad(f))),
        "vmap(jit(grad(jit)))": jax.vmap(jax.jit(jax.grad(jax.jit(f)))),
    }[chain]
    x = np.stack([X, -X]) if "vmap" in chain else X
    close(g(x), df(x))


def test_trees_go_through_everything():
    params = {"w": jnp.ones((3, 2)), "b": (jnp.zeros(2), None)}

    def loss(p):
        return jnp.sum((X @ p["w"] + p["b"][0]) ** 2)

    value, grads = jax.jit(jax.value_and_grad(loss))(params)
    close(value, 72.0)
    close(grads["b"][0], [12.0, 12.0])
    assert jax.tree.structure(grads) == jax.tree.structure(params)
    close(jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)["b"][0], [-1.2, -1.2])


# control flow


def test_loops_and_branches():
    def power(x, n):
        return lax.fori_loop(0, n, lambda _, y: y * x, 1.0)

    close(jax.jit(power)(2.0, 10), 1024.0)
    close(jax.jit(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(0.0), 1.0)
    close(lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1), 128)
    total, partial = lax.scan(lambda c, x: (c + x, c), 0.0, X)
    close(total, 6.0)
    close(partial, [0.0, 1.0, 3.0])
    close(jax.grad(lambda x: lax.scan(lambda c, _: (c * x, None), 1.0, length=3)[0])(2.0), 12.0)


# own rules


def test_custom_rules():
    @jax.custom_vjp
    def clip_gradient(x):
        return x

    clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
    close(jax.jit(jax.grad(lambda x: 10 * clip_gradient(x)))(3.0), 1.0)


def test_checkpoint_changes_nothing_but_memory():
    close(jax.grad(lambda x: jax.checkpoint(f)(jnp.sin(x)))(X), df(np.sin(X)) * np.cos(X))


# what goes wrong is said


def test_errors_name_the_argument():
    def branch_on(x):
        return x if x > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError, match="branch_on.*argument x"):
        jax.jit(branch_on)(1.0)
    with pytest.raises(TypeError, match="int32"):
        jax.grad(lambda n: n * 2)(3)


def test_ahead_of_time_and_pickling():
    compiled = jax.jit(f).lower(X).compile()
    close(compiled(X), f(X))
    close(pickle.loads(pickle.dumps(jnp.asarray(X))), X)
