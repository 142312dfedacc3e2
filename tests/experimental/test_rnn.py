"""LSTMs beside their definition, step by step in NumPy."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.experimental import rnn

KEY = jax.random.key(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(x, h, c, w_ih, w_hh, b_ih, b_hh):
    """One sequence through one layer, ``(time, input)``."""
    ys = []
    for item in x:
        i, f, g, o = np.split(w_ih @ item + b_ih + w_hh @ h + b_hh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return np.array(ys), h, c


@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_lstm(layers, both):
    n, batch, time, features, hidden = layers * (1 + both), 2, 5, 3, 4
    weights = rnn.init_lstm_weight(KEY, features, hidden, layers, both)
    x = jax.random.normal(KEY, (batch, time, features))
    h0, c0 = jax.random.normal(KEY, (2, n, batch, hidden))
    lengths = np.array([5, 3])
    y, h, c = jax.jit(lambda w: rnn.lstm(x, h0, c0, w, lengths, features, hidden, layers, 0.0, both))(weights)
    parts = [
        {k: np.asarray(v) for k, v in p.items()}
        for p in rnn.unpack_lstm_weights(weights, features, hidden, layers, both)
    ]
    for example in range(batch):
        given = np.asarray(x)[example, : lengths[example]]
        for layer in range(layers):
            outs = []
            for back in range(1 + both):
                k = layer * (1 + both) + back
                step = -1 if back else 1
                start = np.asarray(h0)[k, example], np.asarray(c0)[k, example]
                out, last_h, last_c = by_hand(given[::step], *start, *[p[k] for p in parts])
                np.testing.assert_allclose(h[k, example], last_h, rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(c[k, example], last_c, rtol=1e-5, atol=1e-6)
                outs.append(out[::step])
            given = np.concatenate(outs, 1)
        np.testing.assert_allclose(y[example, : lengths[example]], given, rtol=1e-5, atol=1e-6)
        assert not np.asarray(y)[example, lengths[example] :].any()
    total = lambda w: rnn.lstm(x, h0, c0, w, lengths, features, hidden, layers, 0.0, both)[0].sum()
    step = jnp.zeros_like(weights).at[7].set(1e-2)
    slope = (total(weights + step) - total(weights - step)) / 2e-2
    np.testing.assert_allclose(jax.grad(total)(weights)[7], slope, rtol=2e-2, atol=1e-4)


def test_forwards_and_backwards_in_two_calls():
    sizes = 3, 4, 2, 0.0, True
    weights, lengths = rnn.init_lstm_weight(KEY, *sizes[:3], True), jnp.array([5, 3])
    x, h0, c0 = jax.random.normal(KEY, (2, 5, 3)), jnp.ones((4, 2, 4)), jnp.zeros((4, 2, 4))
    operands = x, h0, c0, weights

    @jax.jit
    def both(*operands):
        outs, residuals = rnn.lstm_fwd(*operands, lengths, *sizes, None)
        return outs, rnn.lstm_bwd(*sizes, None, residuals, outs)

    outs, found = both(*operands)
    expected, pullback = jax.vjp(lambda *xs: rnn.lstm(*xs, lengths, *sizes), *operands)
    assert found[4] is None
    for a, b in zip((*outs, *found[:4]), (*expected, *pullback(expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="precision|Precision"):
        rnn.lstm_fwd(*operands, lengths, *sizes, "exact")


def test_weights():
    assert [rnn.get_num_params_in_lstm(3, 4, n, b) for n in (1, 2) for b in (False, True)] == [144, 288, 304, 736]
    w = jnp.arange(16.0)
    assert rnn.swap_lstm_gates(w, 1, 1, 1, False).tolist() == [0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14]
    state = jnp.zeros((1, 2, 1))
    with pytest.raises(NotImplementedError, match="Dropout"):
        rnn.lstm(jnp.ones((2, 3, 1)), state, state, w, jnp.array([3, 3]), 1, 1, 1, 0.5, False)


def test_modules_of_other_machines_say_so():
    for name in ("pallas", "pallas.tpu", "mosaic", "jax2tf", "roofline", "topologies"):
        with pytest.raises(ModuleNotFoundError, match="another machine"):
            __import__(f"catena.experimental.{name}")
    with pytest.raises(AttributeError, match="another machine"):
        _ = jax.experimental.pallas
