"""Layers: the shapes they say are those they return, and a network of them learns."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.example_libraries import optimizers, stax

KEY = jax.random.key(0)
LAYERS = {
    "Dense": (stax.Dense(4), (-1, 3)),
    "Conv": (stax.Conv(4, (3, 3)), (2, 6, 6, 3)),
    "Conv, strides": (stax.Conv(4, (3, 3), (2, 2), "SAME"), (-1, 7, 6, 3)),
    "GeneralConv": (stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 2)), (2, 3, 6, 6)),
    "ConvTranspose": (stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"), (-1, 4, 4, 3)),
    "Conv1DTranspose": (stax.Conv1DTranspose(4, (3,), (2,)), (2, 5, 3)),
    "BatchNorm": (stax.BatchNorm(), (2, 4, 4, 3)),
    "BatchNorm, one axis": (stax.BatchNorm(axis=0, center=False, scale=False), (5, 3)),
    "Flatten": (stax.Flatten, (-1, 4, 3)),
    "MaxPool": (stax.MaxPool((2, 2), (2, 2), "SAME"), (-1, 5, 5, 3)),
    "SumPool": (stax.SumPool((2, 3)), (2, 5, 5, 3)),
    "AvgPool": (stax.AvgPool((2, 2), spec="NCHW"), (2, 3, 5, 5)),
    "shape_dependent": (stax.shape_dependent(lambda shape: stax.Dense(shape[-1] + 1)), (2, 3)),
    "serial": (stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.LogSoftmax), (-1, 3)),
    "branches": (
        stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity), stax.FanInConcat()), (-1, 3),
    ),
    "nothing": (stax.serial(), (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_return_the_shapes_they_say(name):
    (init, apply), shape = LAYERS[name]
    out_shape, params = init(KEY, shape)
    given = tuple(2 if n == -1 else n for n in shape)
    out = apply(params, jax.random.normal(KEY, given))
    assert all(n == m or (n == -1 and m == 2) for n, m in zip(out_shape, out.shape, strict=True))
    assert np.isfinite(out).all()


def test_layers_compute_what_they_are_named_for():
    x = jax.random.normal(KEY, (2, 4, 4, 3))
    init, apply = stax.BatchNorm()
    y = apply(init(KEY, x.shape)[1], x)
    np.testing.assert_allclose(y.mean((0, 1, 2)), np.zeros(3), atol=1e-5)
    np.testing.assert_allclose(y.var((0, 1, 2)), np.ones(3), rtol=1e-3)
    mean = stax.AvgPool((2, 2), padding="SAME")[1]((), jnp.ones((1, 3, 3, 1)))
    np.testing.assert_allclose(mean, np.ones((1, 3, 3, 1)))
    assert stax.FanInSum[1]((), [x, x, x]).tolist() == (x + x + x).tolist()
    assert float(stax.elementwise(jnp.clip, min=2.0)[1]((), jnp.ones(1))[0]) == 2.0
    assert stax.LogSoftmax[1]((), x).tolist() == stax.logsoftmax(x).tolist()


def test_dropout():
    _, apply = stax.Dropout(0.25)
    out = apply((), jnp.ones(10_000), rng=KEY)
    kept = np.asarray(out) != 0
    assert set(np.unique(out)) == {0.0, 4.0} and abs(kept.mean() - 0.25) < 0.02
    layers = stax.serial(stax.Dropout(0.5), stax.Dropout(0.5))
    assert abs((np.asarray(layers[1]([(), ()], jnp.ones(10_000), rng=KEY)) != 0).mean() - 0.25) < 0.02
    assert stax.Dropout(0.25, "test")[1]((), jnp.ones(3), rng=KEY).tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="PRNG key"):
        apply((), jnp.ones(3))


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    x = jnp.linspace(-1, 1, 32)[:, None]
    loss = lambda params: jnp.mean((apply(params, x) - jnp.sin(3 * x)) ** 2)
    start, update, parameters = optimizers.adam(0.02)
    step = lambda i, state: update(i, jax.grad(loss)(parameters(state)), state)
    state = start(init(KEY, (-1, 1))[1])
    trained = jax.jit(lambda s: jax.lax.fori_loop(0, 500, step, s))(state)
    assert float(loss(parameters(trained))) < 0.01 * float(loss(parameters(state)))
