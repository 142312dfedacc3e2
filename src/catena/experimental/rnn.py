"""Long short-term memory (Hochreiter and Schmidhuber, 1997) in the layout of cuDNN: all weights in one vector.

The vector holds for each layer and direction the matrices ``W_ih`` and ``W_hh``, and behind all of them the biases
``b_ih`` and ``b_hh``, each with the rows of the input, the forget, the cell and the output gate. With two directions
layer ``l`` has the numbers ``2 l`` forwards and ``2 l + 1`` backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import catena.numpy as jnp
from catena import lax, nn, random
from catena.core.aval import ShapedArray
from catena.core.namespace import shown as _shown
from catena.core.primitive import Operation
from catena.core.traceback import open_door as _open_door
from catena.interpreters import mlir
from catena.transform.grad import vjp
from catena.transform.make_jaxpr import eval_shape

PRNGKeyArray = Any
sigmoid = nn.sigmoid
tanh = jnp.tanh


def shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> tuple[list, list]:
    """The shapes of the matrices of each layer and direction, ``(W_ih, W_hh)``, and of their biases."""
    directions, gates = 2 if bidirectional else 1, 4 * hidden_size
    sizes = [input_size if layer == 0 else hidden_size * directions for layer in range(num_layers)]
    matrices = [((gates, n), (gates, hidden_size)) for n in sizes for _ in range(directions)]
    return matrices, [((gates,), (gates,))] * len(matrices)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of weights of an LSTM.

    Arguments:
      input_size: the number of features of the inputs.
      hidden_size: of the state.
      num_layers: how many layers there are.
      bidirectional: whether each has two directions.

    >>> get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    matrices, biases = shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for pair in matrices + biases for shape in pair)


def init_lstm_weight(rng, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool):
    """Random weights, uniform between plus and minus the root of ``1 / hidden_size``.

    Arguments:
      rng: a random key.
      input_size, hidden_size, num_layers, bidirectional: as for ``get_num_params_in_lstm``.
    Returns:
      A vector.

    >>> import catena as jax
    >>> init_lstm_weight(jax.random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, -bound, bound)


def unpack_lstm_weights(weights, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> tuple:
    """The parts of a vector of weights.

    Arguments:
      weights: the vector.
      input_size, hidden_size, num_layers, bidirectional: as for ``get_num_params_in_lstm``.
    Returns:
      ``(W_ih, W_hh, b_ih, b_hh)``, each a dictionary by the number of the layer and direction.

    >>> import catena.numpy as jnp
    >>> parts = unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
    >>> [part[0].shape for part in parts]
    [(16, 3), (16, 4), (16,), (16,)]
    """
    found: tuple[dict, dict, dict, dict] = ({}, {}, {}, {})
    start = 0
    for first, pairs in zip((0, 2), shapes(input_size, hidden_size, num_layers, bidirectional), strict=True):
        for number, pair in enumerate(pairs):
            for part, shape in enumerate(pair, first):
                size = math.prod(shape)
                found[part][number] = weights[start : start + size].reshape(shape)
                start += size
    return found


def swap_lstm_gates(weights, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool):
    """The weights with the rows of the cell and of the output gate exchanged, as other libraries order them.

    Arguments:
      weights: the vector.
      input_size, hidden_size, num_layers, bidirectional: as for ``get_num_params_in_lstm``.
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)

    def swapped(x):
        i, f, g, o = jnp.split(x, 4)
        return jnp.concatenate([i, f, o, g]).ravel()

    matrices, biases = [zip(parts[k].values(), parts[k + 1].values(), strict=True) for k in (0, 2)]
    return jnp.concatenate([swapped(x) for pair in [*matrices, *biases] for x in pair])


def direction(x, h0, c0, weights: tuple, lengths):
    """One layer in one direction: the outputs ``(batch, time, hidden)``, and the last states."""
    w_ih, w_hh, b_ih, b_hh = weights
    given = jnp.swapaxes(x @ w_ih.T + (b_ih + b_hh), 0, 1)
    valid = jnp.arange(x.shape[1])[:, None] < lengths

    def step(state, item):
        h, c = state
        gates, on = item
        i, f, g, o = jnp.split(gates + h @ w_hh.T, 4, axis=1)
        new_c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        new_h = nn.sigmoid(o) * jnp.tanh(new_c)
        on = on[:, None]
        return (jnp.where(on, new_h, h), jnp.where(on, new_c, c)), jnp.where(on, new_h, 0)

    (h, c), ys = lax.scan(step, (h0, c0), (given, valid))
    return jnp.swapaxes(ys, 0, 1), h, c


def reversed_sequences(x, lengths):
    """Each sequence from its last item to its first; what is behind it stays."""
    places = jnp.arange(x.shape[1])
    back = jnp.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return jnp.take_along_axis(x, back[:, :, None], 1)


def lstm_ref(
    x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths,  # noqa: N803
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
):  # fmt: skip
    """An LSTM, by its parts.

    Arguments:
      x: the inputs, ``(batch, time, input_size)``.
      h_0, c_0: the first states, ``(layers * directions, batch, hidden_size)``.
      W_ih, W_hh, b_ih, b_hh: as from ``unpack_lstm_weights``.
      seq_lengths: the length of each sequence, ``(batch,)`` integers; outputs behind it are 0.
      input_size, hidden_size, num_layers, bidirectional: as for ``get_num_params_in_lstm``.
      dropout: must be 0: nothing here is random.
    Returns:
      The outputs ``(batch, time, hidden_size * directions)``, and the last states, as the first.
    Raises:
      NotImplementedError: ``dropout`` is not 0.
    """
    if dropout:
        raise NotImplementedError(
            "Dropout is not supported in LSTMs: there is no key to draw from. Drop inputs with catena.random.bernoulli."
        )
    last_h, last_c = [], []
    for layer in range(num_layers):
        outputs = []
        for backward in range(2 if bidirectional else 1):
            k = layer * (2 if bidirectional else 1) + backward
            inputs = reversed_sequences(x, seq_lengths) if backward else x
            y, h, c = direction(inputs, h_0[k], c_0[k], (W_ih[k], W_hh[k], b_ih[k], b_hh[k]), seq_lengths)
            outputs.append(reversed_sequences(y, seq_lengths) if backward else y)
            last_h.append(h)
            last_c.append(c)
        x = jnp.concatenate(outputs, axis=-1)
    return x, jnp.stack(last_h), jnp.stack(last_c)


def lstm(
    x, h_0, c_0, weights, seq_lengths,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision=None,
):  # fmt: skip
    """An LSTM.

    Arguments:
      x: the inputs, ``(batch, time, input_size)``.
      h_0, c_0: the first states, ``(layers * directions, batch, hidden_size)``.
      weights: the vector of all weights.
      seq_lengths: the length of each sequence, ``(batch,)`` integers; outputs behind it are 0.
      input_size, hidden_size, num_layers, bidirectional: as for ``get_num_params_in_lstm``.
      dropout: must be 0.
      precision: how exact products are at least, as in ``lax.dot``; here they always are as exact as their dtype.
    Returns:
      The outputs ``(batch, time, hidden_size * directions)``, and the last states, as the first.
    Raises:
      NotImplementedError: ``dropout`` is not 0.
      ValueError: ``precision`` is none.

    >>> import catena as jax, catena.numpy as jnp
    >>> weights = init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    >>> state = jnp.zeros((1, 2, 4))
    >>> y, h, c = lstm(jnp.ones((2, 5, 3)), state, state, weights, jnp.array([5, 2]), 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape, bool(jnp.all(y[1, 2:] == 0))
    ((2, 5, 4), (1, 2, 4), True)

    S. Hochreiter, J. Schmidhuber: Long short-term memory, Neural computation 9 (1997).
    """
    if precision is not None:
        lax.Precision(precision)
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    sizes = input_size, hidden_size, num_layers, dropout, bidirectional
    return lstm_ref(x, h_0, c_0, *parts, seq_lengths, *sizes)


# ---- forwards and backwards in two calls, in the form of cuDNN


def lstm_fwd(
    x, h_0, c_0, w, seq_lengths,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision,
):  # fmt: skip
    """``lstm``, and what ``lstm_bwd`` needs.

    Arguments:
      x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional, precision: as for
        ``lstm``.
    Returns:
      The results of ``lstm``, and the residuals.
    Raises:
      NotImplementedError: ``dropout`` is not 0. ValueError: ``precision`` is none.
    """
    sizes = parameters(input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    y, h_n, c_n, reserve_space = rnn_fwd_p.bind(x, h_0, c_0, w, seq_lengths, **sizes)
    return (y, h_n, c_n), (x, h_0, c_0, w, seq_lengths, y, reserve_space)


def lstm_bwd(
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision,
    residuals, gradients,
):  # fmt: skip
    """The cotangents of the operands of ``lstm``.

    Arguments:
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as for ``lstm``.
      residuals: what ``lstm_fwd`` returned.
      gradients: the cotangents of the outputs and of the last states.
    Returns:
      The cotangents of ``x``, ``h_0``, ``c_0`` and ``w``, and None, for the lengths.

    >>> import catena as jax, catena.numpy as jnp
    >>> weights, state = init_lstm_weight(jax.random.key(0), 3, 4, 1, False), jnp.zeros((1, 2, 4))
    >>> sizes = 3, 4, 1, 0.0, False, None
    >>> outs, residuals = lstm_fwd(jnp.ones((2, 5, 3)), state, state, weights, jnp.array([5, 2]), *sizes)
    >>> [x.shape for x in lstm_bwd(*sizes, residuals, outs)[:4]]
    [(2, 5, 3), (1, 2, 4), (1, 2, 4), (144,)]
    """
    x, h_0, c_0, w, seq_lengths, y, reserve_space = residuals
    sizes = parameters(input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    operands = *gradients, x, h_0, c_0, w, y, reserve_space, seq_lengths
    return (*rnn_bwd_p.bind(*operands, **sizes), None)


def parameters(input_size, hidden_size, num_layers, dropout, bidirectional, precision) -> dict:
    """The parameters of the primitives."""
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
    exact = precision is None or lax.Precision(precision) != lax.Precision.DEFAULT
    return {**sizes, "dropout": dropout, "bidirectional": bidirectional, "cudnn_allow_tf32": not exact}


def rnn_abstract_eval(
    x_aval, h_0_aval, c_0_aval, w_aval, seq_lengths_aval,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, cudnn_allow_tf32: bool,
):  # fmt: skip
    """The types of the results of ``rnn_fwd_p``: outputs, last states, and what is kept for the backward pass: nothing,
    since that computes the states again.
    """
    sizes = input_size, hidden_size, num_layers, dropout, bidirectional
    outs = eval_shape(lambda *xs: lstm(*xs, *sizes), x_aval, h_0_aval, c_0_aval, w_aval, seq_lengths_aval)
    return *(ShapedArray(out.shape, out.dtype) for out in outs), ShapedArray((0,), x_aval.dtype)


def rnn_bwd_abstract_eval(
    dy_aval, dhn_aval, dcn_aval, x_aval, h0_aval, c0_aval, w_aval, y_aval, reserve_space_aval, seq_lengths_aval,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, cudnn_allow_tf32: bool,
):  # fmt: skip
    """The types of the results of ``rnn_bwd_p``: those of ``x``, of the first states and of the weights."""
    return x_aval, h0_aval, c0_aval, w_aval


def _forward(x, h_0, c_0, w, seq_lengths, *, cudnn_allow_tf32: bool, **sizes) -> list:
    return [*lstm(x, h_0, c_0, w, seq_lengths, **sizes), jnp.zeros((0,), x.dtype)]


def _backward(dy, dhn, dcn, x, h0, c0, w, y, reserve_space, seq_lengths, *, cudnn_allow_tf32: bool, **sizes) -> list:
    pullback = vjp(lambda *xs: lstm(*xs, seq_lengths, **sizes), x, h0, c0, w)[1]
    return list(pullback((dy, dhn, dcn)))


def composed(name: str, function: Callable, abstract_eval: Callable) -> Operation:
    """A primitive that is a function of others."""
    primitive = Operation(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(abstract_eval)
    primitive.def_impl(function)
    mlir.register_lowering(primitive, mlir.lower_fun(function))
    return primitive


rnn_fwd_p = composed("rnn_fwd", _forward, rnn_abstract_eval)
rnn_bwd_p = composed("rnn_bwd", _backward, rnn_bwd_abstract_eval)

_open_door(globals(), "catena.experimental.rnn", own=True)
__dir__ = _shown(globals())
