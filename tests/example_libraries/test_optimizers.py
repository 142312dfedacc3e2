"""Optimizers: they find a minimum, their first steps are those of their definitions, their states are trees."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.example_libraries import optimizers

MAKERS = {
    "sgd": lambda s: optimizers.sgd(s),
    "momentum": lambda s: optimizers.momentum(s, 0.5),
    "nesterov": lambda s: optimizers.nesterov(s, 0.5),
    "adagrad": lambda s: optimizers.adagrad(s),
    "rmsprop": lambda s: optimizers.rmsprop(s),
    "rmsprop_momentum": lambda s: optimizers.rmsprop_momentum(s, momentum=0.5),
    "adam": lambda s: optimizers.adam(s),
    "adamax": lambda s: optimizers.adamax(s),
    "sm3": lambda s: optimizers.sm3(s),
}
G, S = np.array([[0.5, -2.0]]), 0.1
FIRST = {  # the first step from 0 with the gradient G
    "sgd": -S * G, "momentum": -S * G, "nesterov": -S * 1.5 * G, "adagrad": -S * 0.1 * np.sign(G),
    "rmsprop": -S * np.sign(G) / np.sqrt(0.1), "rmsprop_momentum": -S * np.sign(G) / np.sqrt(0.1),
    "adam": -S * np.sign(G), "adamax": -S * np.sign(G), "sm3": -S * 0.1 * np.sign(G),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_minima_and_first_steps(name):
    init, update, parameters = MAKERS[name](S)
    first = parameters(update(0, jnp.asarray(G, jnp.float32), init(jnp.zeros(G.shape))))
    np.testing.assert_allclose(first, FIRST[name], rtol=1e-5)
    schedule = lambda i: 0.3 * 0.98**i
    init, update, parameters = MAKERS[name](schedule)
    loss = lambda p: jnp.sum((p["a"] - 1.0) ** 2) + (p["b"] + 0.5) ** 2
    step = lambda i, state: update(i, jax.grad(loss)(parameters(state)), state)
    start = init({"a": jnp.zeros((2, 2)), "b": jnp.zeros(())})
    final = parameters(jax.jit(lambda s: jax.lax.fori_loop(0, 300, step, s))(start))
    assert float(loss(final)) < 1e-3 * float(loss(parameters(start)))


def test_states_are_trees():
    init, update, parameters = optimizers.momentum(S, 0.9)
    state = update(0, {"w": jnp.ones(2), "b": 2.0}, init({"w": jnp.zeros(2), "b": 0.0}))
    unpacked = optimizers.unpack_optimizer_state(state)
    assert [np.asarray(x).tolist() for x in unpacked["w"].subtree] == [[np.float32(-0.1).item()] * 2, [1.0, 1.0]]
    again = optimizers.pack_optimizer_state(unpacked)
    assert (
        jax.tree.structure(again) == jax.tree.structure(state)
        and jax.tree.leaves(again)[0] is jax.tree.leaves(state)[0]
    )
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, {"w": jnp.ones(2)}, state)
    with pytest.raises(TypeError, match="JoinPoints"):
        optimizers.pack_optimizer_state({"w": 1.0})
    growing = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, g), lambda x: x))()
    with pytest.raises(TypeError, match="input structure"):
        growing.update_fn(0, 1.0, growing.init_fn(1.0))


def test_schedules():
    at = lambda schedule, *steps: [round(float(schedule(i)), 6) for i in steps]
    assert at(optimizers.constant(0.5), 0, 9) == [0.5, 0.5]
    assert at(optimizers.exponential_decay(1.0, 2, 0.25), 0, 1, 2) == [1.0, 0.5, 0.25]
    assert at(optimizers.inverse_time_decay(1.0, 2, 1.0), 0, 2, 6) == [1.0, 0.5, 0.25]
    assert at(optimizers.inverse_time_decay(1.0, 2, 1.0, staircase=True), 0, 1, 2, 3) == [1.0, 1.0, 0.5, 0.5]
    assert at(optimizers.polynomial_decay(1.0, 4, 0.2, power=2.0), 0, 2, 4, 9) == [1.0, 0.4, 0.2, 0.2]
    assert at(optimizers.piecewise_constant([2, 4], [3.0, 2.0, 1.0]), 0, 2, 3, 4, 5) == [3.0, 3.0, 2.0, 2.0, 1.0]
    for boundaries, values in (([2], [1.0]), ([[2]], [1.0, 2.0])):
        with pytest.raises(ValueError):
            optimizers.piecewise_constant(boundaries, values)
    for wrong in (jnp.ones(2), "a"):
        with pytest.raises(TypeError, match="a step size is"):
            optimizers.sgd(wrong)


def test_norms_of_gradients():
    tree = {"a": jnp.array([3.0]), "b": 4.0}
    assert float(optimizers.l2_norm(tree)) == 5.0
    assert float(optimizers.l2_norm(optimizers.clip_grads(tree, 1.0))) == pytest.approx(1.0)
    assert optimizers.clip_grads(tree, 10.0)["a"].tolist() == [3.0]
    assert optimizers.clip_grads({"a": jnp.zeros(1)}, 0.0)["a"].tolist() == [0.0]
