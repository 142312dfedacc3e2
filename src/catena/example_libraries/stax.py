"""Neural networks as pairs of functions.

A layer is a pair of ``init_fun(rng, input_shape) -> (output_shape, params)`` and ``apply_fun(params, inputs, **kwargs)
-> outputs``, and so is what ``serial`` and ``parallel`` make of layers.

>>> import catena as jax
>>> init, apply = serial(Dense(8), Relu, Dense(2), LogSoftmax)
>>> shape, params = init(jax.random.key(0), (-1, 5))
>>> shape, apply(params, jax.numpy.ones((3, 5))).shape
((-1, 2), (3, 2))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import catena.numpy as jnp
from catena import lax, random
from catena.core.namespace import shown as _shown
from catena.core.struct import ShapeDtypeStruct
from catena.core.traceback import open_door as _open_door
from catena.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from catena.nn.initializers import glorot_normal, normal, ones, zeros
from catena.transform.make_jaxpr import eval_shape

Layer = tuple[Callable, Callable]

glorot, randn = glorot_normal, normal
logsoftmax = log_softmax


# ---- layers with parameters


def Dense(out_dim: int, W_init=glorot_normal(), b_init=normal()) -> Layer:  # noqa: N802, N803, B008
    """A layer ``inputs @ W + b``.

    Arguments:
      out_dim: the length of the last axis of its outputs.
      W_init, b_init: initializers of the matrix and of the vector.
    Returns:
      The layer; its parameters are ``(W, b)``.
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        matrix, bias = params
        return jnp.dot(inputs, matrix) + bias

    return init_fun, apply_fun


def convolution(apply: Callable, dimension_numbers, out_chan: int, filter_shape, W_init, b_init) -> Layer:  # noqa: N803
    """A layer ``apply(inputs, W) + b``."""
    lhs, rhs, out = dimension_numbers
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))  # noqa: N806

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel = tuple(channels[c] if c in channels else next(sizes) for c in rhs)
        bias = tuple(out_chan if c == "C" else 1 for c in out)
        k1, k2 = random.split(rng)
        params = W_init(k1, kernel), b_init(k2, bias)
        shape = list(shape_of(apply, known(input_shape), kernel))
        shape[out.index("N")] = input_shape[lhs.index("N")]
        return tuple(shape), params

    def apply_fun(params, inputs, **kwargs):
        kernel, bias = params
        return apply(inputs, kernel) + bias

    return init_fun, apply_fun


def known(shape: Sequence[int]) -> tuple:
    """A shape with 1 where a size is -1: not known yet."""
    return tuple(1 if n == -1 else n for n in shape)


def shape_of(apply: Callable, *shapes) -> tuple:
    """The shape of what a function of float arrays of these shapes returns."""
    return eval_shape(apply, *[ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]).shape


def GeneralConv(  # noqa: N802
    dimension_numbers,
    out_chan: int,
    filter_shape: Sequence[int],
    strides=None,
    padding="VALID",
    W_init=None,  # noqa: N803
    b_init=normal(1e-6),  # noqa: B008
) -> Layer:
    """A convolution of any layout.

    Arguments:
      dimension_numbers: the layouts of inputs, kernel and outputs, such as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: the number of channels of its outputs.
      filter_shape: the extents of the kernel.
      strides: the steps along the spatial axes; 1 by default.
      padding: ``"SAME"``, ``"VALID"``, or pairs of numbers.
      W_init, b_init: initializers of the kernel and of the bias.
    Returns:
      The layer; its parameters are ``(W, b)``.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def apply(inputs, kernel):
        return lax.conv_general_dilated(inputs, kernel, steps, padding, dimension_numbers=dimension_numbers)

    return convolution(apply, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(  # noqa: N802
    dimension_numbers,
    out_chan: int,
    filter_shape: Sequence[int],
    strides=None,
    padding="VALID",
    W_init=None,  # noqa: N803
    b_init=normal(1e-6),  # noqa: B008
) -> Layer:
    """A transposed convolution of any layout.

    Arguments:
      dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init: as for ``GeneralConv``.
    Returns:
      The layer; its parameters are ``(W, b)``.
    """
    steps = tuple(strides or (1,) * len(filter_shape))

    def apply(inputs, kernel):
        return lax.conv_transpose(inputs, kernel, steps, padding, dimension_numbers=dimension_numbers)

    return convolution(apply, dimension_numbers, out_chan, filter_shape, W_init, b_init)


IMAGES, LINES = ("NHWC", "HWIO", "NHWC"), ("NHC", "HIO", "NHC")


def Conv(out_chan, filter_shape, strides=None, padding="VALID", W_init=None, b_init=normal(1e-6)) -> Layer:  # noqa: N802, N803, B008
    """A convolution of images, ``(batch, height, width, channels)``.

    Arguments:
      out_chan, filter_shape, strides, padding, W_init, b_init: as for ``GeneralConv``.
    """
    return GeneralConv(IMAGES, out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(out_chan, filter_shape, strides=None, padding="VALID", W_init=None, b_init=normal(1e-6)) -> Layer:  # noqa: N802, N803, B008
    """A transposed convolution of images, ``(batch, height, width, channels)``.

    Arguments:
      out_chan, filter_shape, strides, padding, W_init, b_init: as for ``GeneralConv``.
    """
    return GeneralConvTranspose(IMAGES, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(out_chan, filter_shape, strides=None, padding="VALID", W_init=None, b_init=normal(1e-6)) -> Layer:  # noqa: N802, N803, B008
    """A transposed convolution of lines, ``(batch, length, channels)``.

    Arguments:
      out_chan, filter_shape, strides, padding, W_init, b_init: as for ``GeneralConv``.
    """
    return GeneralConvTranspose(LINES, out_chan, filter_shape, strides, padding, W_init, b_init)


def BatchNorm(  # noqa: N802
    axis=(0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True, beta_init=zeros, gamma_init=ones
) -> Layer:
    """Inputs with mean 0 and variance 1 over a batch, then scaled and shifted.

    Arguments:
      axis: the axes over which means are taken.
      epsilon: added to the variance.
      center, scale: whether they are shifted, and scaled.
      beta_init, gamma_init: initializers of the shift and of the scale.
    Returns:
      The layer; its parameters are ``(beta, gamma)``, ``()`` in place of what it does without.

    S. Ioffe, C. Szegedy: Batch normalization (2015).
    """
    axes = (axis,) if jnp.isscalar(axis) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        z = z * jnp.expand_dims(gamma, axes) if scale else z
        return z + jnp.expand_dims(beta, axes) if center else z

    return init_fun, apply_fun


# ---- layers without


def elementwise(fun: Callable, **fun_kwargs) -> Layer:
    """A layer that applies a function to its inputs.

    Arguments:
      fun: a function of arrays that keeps their shape.
      fun_kwargs: what it is called with besides.
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def pool(reducer: Callable, start: float, window_shape, strides, padding, spec, count: bool = False) -> Layer:
    """A layer that reduces windows; with ``count`` divided by how many elements each has."""
    steps = list(strides or (1,) * len(window_shape))
    window = list(window_shape)
    for i in (0, len(window_shape) + 1) if spec is None else sorted((spec.index("N"), spec.index("C"))):
        window.insert(i, 1)
        steps.insert(i, 1)

    def reduced(x):
        return lax.reduce_window(x, start, reducer, tuple(window), tuple(steps), padding)

    def init_fun(rng, input_shape):
        found = shape_of(reduced, known(input_shape))
        return tuple(-1 if n == -1 else m for n, m in zip(input_shape, found, strict=True)), ()

    def apply_fun(params, inputs, **kwargs):
        return reduced(inputs) / reduced(jnp.ones_like(inputs)) if count else reduced(inputs)

    return init_fun, apply_fun


def MaxPool(window_shape, strides=None, padding="VALID", spec=None) -> Layer:  # noqa: N802
    """The largest element of each window.

    Arguments:
      window_shape: the extents of the windows along the spatial axes.
      strides: the steps from window to window; 1 by default.
      padding: ``"SAME"``, ``"VALID"``, or pairs of numbers.
      spec: the layout of the inputs, such as ``"NCHW"``; by default the batch stands first, the channels last.
    """
    return pool(lax.max, -math.inf, window_shape, strides, padding, spec)


def SumPool(window_shape, strides=None, padding="VALID", spec=None) -> Layer:  # noqa: N802
    """The sum of each window.

    Arguments:
      window_shape, strides, padding, spec: as for ``MaxPool``.
    """
    return pool(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(window_shape, strides=None, padding="VALID", spec=None) -> Layer:  # noqa: N802
    """The mean of each window, padding left out.

    Arguments:
      window_shape, strides, padding, spec: as for ``MaxPool``.
    """
    return pool(lax.add, 0.0, window_shape, strides, padding, spec, count=True)


Flatten = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:]))),
)


def FanOut(num: int) -> Layer:  # noqa: N802
    """Its inputs, ``num`` times as a list."""
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs[1:], inputs[0]),
)


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802
    """A list of inputs joined along an axis."""

    def init_fun(rng, input_shape):
        joined = list(input_shape[0])
        joined[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(joined), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802
    """Inputs of which a random part is 0, the others so much larger.

    Arguments:
      rate: the probability that an input is kept.
      mode: ``"train"``; in any other mode the inputs are returned as they are.
    Returns:
      The layer; its ``apply_fun`` takes a random key as ``rng``.

    N. Srivastava and others: Dropout (2014).
    """

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: apply_fun(params, inputs, "
                "rng=key), where key comes from catena.random.key."
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# ---- layers of layers


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Returns:
      The layer; its parameters are the list of those of the layers. A key ``rng`` is split among them.
    """

    def init_fun(rng, input_shape):
        params = []
        for init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for (_, apply), param, rng in zip(layers, params, split_key(kwargs.pop("rng", None), len(layers)), strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def split_key(rng, count: int) -> Sequence:
    """A key for each layer, or none."""
    return random.split(rng, count) if rng is not None and count else (None,) * count


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, each with an input of its own; see ``FanOut`` and ``FanInSum``.

    Returns:
      The layer, of lists of inputs and outputs; its parameters are the tuple of those of the layers.
    """

    def init_fun(rng, input_shape):
        rngs = split_key(rng, len(layers))
        found = [init(k, shape) for (init, _), k, shape in zip(layers, rngs, input_shape, strict=True)]
        return [shape for shape, _ in found], tuple(params for _, params in found)

    def apply_fun(params, inputs, **kwargs):
        rngs = split_key(kwargs.pop("rng", None), len(layers))
        given = zip(layers, params, inputs, rngs, strict=True)
        return [apply(p, x, rng=k, **kwargs) for (_, apply), p, x, k in given]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[tuple], Layer]) -> Layer:
    """A layer that is made when the shape of its inputs is known.

    Arguments:
      make_layer: from that shape to the layer.
    """

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape), apply_fun


_open_door(globals(), "catena.example_libraries.stax", own=True)
__dir__ = _shown(globals())
