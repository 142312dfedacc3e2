"""Activation functions: elementwise, each a line of mathematics.

Small arrays are evaluated by one compiled loop, as the functions of ``numpy`` are (``numpy/hot.py``); large ones by a
program compiled for their shape, which passes over them once. Traced, a function is the operations that it is made of.
"""

from __future__ import annotations

import math

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.namespace import alias
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axis,
    convert,
    one_inexact,
    promote_inexact,
    promote_numeric,
)
from catena.numpy.documentation import family
from catena.numpy.elementary import log_of_one_minus_exp
from catena.numpy.hot import OWN, REAL, binary, unary
from catena.transform.custom_jvp import custom_jvp
from catena.typing import ArrayLike


def of_one(fun, weak: bool = True):
    """An elementwise function of one array; ``weak`` says whether a weak argument gives a weak result."""
    return unary(fun.__name__.strip("_"), OWN, fun, REAL, weak)


def of_two(fun):
    """An elementwise function of an array and a parameter."""
    return binary(fun.__name__.strip("_"), OWN, fun, REAL)


described = family(
    x="numbers.",
    returns="An array of the shape of ``x``; integers become floats.",
    raises="TypeError: ``x`` is neither an array nor a scalar.",
)


# ---- of straight lines


def _line(name: str, fun, rises):
    """A function of straight lines: traced, one call whose slope is 1 where it ``rises``, 0 elsewhere and of NaN."""
    fun.__name__ = name
    function = custom_jvp(fun)
    function.defjvps(lambda t, y, x: jnp.where(rises(x), t, lax.full_like(t, 0)))
    return of_one(function)


_relu = _line("relu", lambda x: jnp.maximum(x, 0), lambda x: jnp.greater(x, 0))
_relu6 = _line(
    "relu6",
    lambda x: jnp.minimum(jnp.maximum(x, 0.0), 6.0),
    lambda x: jnp.logical_and(jnp.greater(x, 0), jnp.less(x, 6)),
)


@described
def relu(x: ArrayLike) -> Array:
    """The rectified linear unit: ``max(x, 0)``. Its derivative at 0 is 0.

    Returns:
      An array of the shape and dtype of ``x``; booleans become integers.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.relu(jnp.array([-2.0, 3.0])), jax.grad(jax.nn.relu)(0.0)
    (Array([0., 3.], dtype=float32), Array(0., dtype=float32, weak_type=True))
    """
    return _relu(x)


@described
def relu6(x: ArrayLike) -> Array:
    """``relu`` that ends at 6: ``min(max(x, 0), 6)``. Its derivative at 0 and at 6 is 0.

    Source: Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.relu6(jnp.array([-2.0, 3.0, 10.0]))
    Array([0., 3., 6.], dtype=float32)
    """
    return _relu6(x)


@of_two
def _leaky_relu(x, negative_slope):
    return jnp.where(jnp.greater_equal(x, 0), x, jnp.multiply(negative_slope, x))


@described
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """``x`` where it is not negative, ``negative_slope * x`` elsewhere.

    Arguments:
      negative_slope: the slope below 0.

    Source: Maas, Hannun, Ng, "Rectifier nonlinearities improve neural network acoustic models" (2013).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.leaky_relu(jnp.array([-2.0, 3.0]))
    Array([-0.02,  3.  ], dtype=float32)
    """
    return _leaky_relu(x, negative_slope)


@of_one
def _hard_tanh(x):
    (x,) = promote_numeric("hard_tanh", x, 1)[:1]
    low = x if dtypes.KIND[x.dtype] == "u" else jnp.where(x < -1, -1, x)
    return jnp.where(x > 1, 1, low)


@described
def hard_tanh(x: ArrayLike) -> Array:
    """``x``, held between -1 and 1.

    Returns:
      An array of the shape and dtype of ``x``; booleans become integers.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.hard_tanh(jnp.array([-2.0, 0.5, 3.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return _hard_tanh(x)


@of_one
def _hard_sigmoid(x):
    return _relu6(jnp.add(x, 3.0)) / 6.0


@described
def hard_sigmoid(x: ArrayLike) -> Array:
    """The sigmoid function in three straight lines: ``relu6(x + 3) / 6``.

    Source: Howard and others, "Searching for MobileNetV3" (2019).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _hard_sigmoid(x)


@of_one
def _hard_silu(x):
    return jnp.multiply(x, _hard_sigmoid(x))


@described
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``; it is called ``hard_swish``, too.

    Source: Howard and others, "Searching for MobileNetV3" (2019).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.hard_silu(jnp.array([-4.0, 1.5, 4.0]))
    Array([-0.   ,  1.125,  4.   ], dtype=float32)
    """
    return _hard_silu(x)


hard_swish = alias(hard_silu, "hard_swish")


@described
def identity(x: ArrayLike) -> Array:
    """``x`` as an array.

    Returns:
      An array of the shape and dtype of ``x``.

    >>> import catena as jax
    >>> jax.nn.identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return as_array_argument("identity", x)


# ---- of exponentials


def sigmoid(x: ArrayLike) -> Array:
    """The logistic function ``1 / (1 + exp(-x))``.

    Arguments:
      x: floats or complex numbers.
    Returns:
      An array of the shape and dtype of ``x``.
    Raises:
      TypeError: ``x`` is not an array or scalar of floats or complex numbers.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.sigmoid(jnp.array([-1.0, 0.0, 1.0]))
    Array([0.26894, 0.5    , 0.73106], dtype=float32)
    """
    return _sigmoid(x)


@of_one
def _sigmoid(x):
    return lax.logistic(as_array_argument("sigmoid", x))


@of_one
def _silu(x):
    x = as_array_argument("silu", x)
    return lax.mul(x, lax.logistic(x))


def silu(x: ArrayLike) -> Array:
    """The sigmoid linear unit: ``x * sigmoid(x)``; it is called ``swish``, too.

    Arguments:
      x: floats or complex numbers.
    Returns:
      An array of the shape and dtype of ``x``.
    Raises:
      TypeError: ``x`` is not an array or scalar of floats or complex numbers.

    Source: Elfwing, Uchibe, Doya, "Sigmoid-weighted linear units for neural network function approximation in
    reinforcement learning" (2018).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.silu(jnp.array([-1.0, 0.0, 1.0]))
    Array([-0.26894,  0.     ,  0.73106], dtype=float32)
    """
    return _silu(x)


swish = alias(silu, "swish")


@of_one
def _log_sigmoid(x):
    return lax.neg(_softplus(lax.neg(_numbers("log_sigmoid", x))))


def _numbers(name: str, x):
    """A float or complex operand, made of anything but booleans."""
    x = as_array_argument(name, x)
    if x.dtype == dtypes.BOOL:
        raise TypeError(f"{name} takes numbers, got an array of booleans")
    return one_inexact(name, x)


@described
def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the sigmoid function: ``-log(1 + exp(-x))``.

    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or is boolean.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.log_sigmoid(jnp.array([-1000.0]))
    Array([-1000.], dtype=float32)
    """
    return _log_sigmoid(x)


@of_one
def _softplus(x):
    return jnp.logaddexp(x, 0)


@described
def softplus(x: ArrayLike) -> Array:
    """A smooth ``relu``: ``log(1 + exp(x))``.

    Source: Dugas, Bengio, Belisle, Nadeau, Garcia, "Incorporating second-order functional knowledge for better option
    pricing" (2000).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.softplus(jnp.array([-1.0, 0.0, 1000.0]))
    Array([3.1326e-01, 6.9315e-01, 1.0000e+03], dtype=float32)
    """
    return _softplus(x)


@of_one
def _mish(x):
    return jnp.multiply(x, jnp.tanh(_softplus(x)))


@described
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    Source: Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.mish(jnp.array([-1.0, 0.0, 1.0]))
    Array([-0.3034,  0.    ,  0.8651 ], dtype=float32)
    """
    return _mish(x)


@of_two
def _elu(x, alpha):
    positive = jnp.greater(x, 0)
    return jnp.where(positive, x, jnp.multiply(alpha, jnp.expm1(jnp.where(positive, 0.0, x))))


@described
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit: ``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Arguments:
      alpha: the depth to which it falls.

    Source: Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning by exponential linear units"
    (2016).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.elu(jnp.array([-100.0, -1.0, 2.0]))
    Array([-1.     , -0.63212,  2.     ], dtype=float32)
    """
    return _elu(x, alpha)


@of_two
def _celu(x, alpha):
    return jnp.maximum(x, 0.0) + jnp.multiply(alpha, jnp.expm1(jnp.divide(jnp.minimum(x, 0.0), alpha)))


@described
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """``x`` where it is positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere: differentiable for every ``alpha``.

    Arguments:
      alpha: the depth to which it falls.

    Source: Barron, "Continuously differentiable exponential linear units" (2017).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.celu(jnp.array([-100.0, -1.0, 2.0]), 2.0)
    Array([-2.     , -0.78694,  2.     ], dtype=float32)
    """
    return _celu(x, alpha)


# The fixed point of mean 0 and variance 1 (Klambauer and others, 2017, equation 14).
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@of_one
def _selu(x):
    return SELU_SCALE * _elu(x, SELU_ALPHA)


@described
def selu(x: ArrayLike) -> Array:
    """``elu`` with the scales that keep mean 0 and variance 1 from layer to layer.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter, "Self-normalizing neural networks" (2017).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.selu(jnp.array([-1.0, 0.0, 1.0]))
    Array([-1.1113,  0.    ,  1.0507 ], dtype=float32)
    """
    return _selu(x)


def _inexact_strong(name: str, x):
    x = one_inexact(name, as_array_argument(name, x))
    return convert(x, x.dtype)


def _gelu(x):
    x = _inexact_strong("gelu", x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * lax.integer_pow(x, 3))
    return x * (0.5 * (1 + lax.tanh(inner)))


def _gelu_exact(x):
    x = _inexact_strong("gelu", x)
    return 0.5 * x * lax.erfc(-math.sqrt(0.5) * x)


_GELU = {True: of_one(_gelu, weak=False), False: of_one(_gelu_exact, weak=False)}


@described
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """The Gaussian error linear unit: ``x`` times the probability that a standard normal number is less than ``x``.

    Arguments:
      approximate: whether to compute the probability by way of ``tanh``, which is off by at most 0.0005, instead of
        the complementary error function, which takes no complex numbers.

    Source: Hendrycks, Gimpel, "Gaussian error linear units" (2016).

    >>> import catena as jax
    >>> float(jax.nn.gelu(1.0)), float(jax.nn.gelu(1.0, approximate=False))
    (0.841192, 0.841345)
    """
    return _GELU[bool(approximate)](x)


@whole
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The gated linear unit: one half of an array times the sigmoid function of the other.

    Arguments:
      x: floats or complex numbers.
      axis: the axis that is halved; of even length.
    Returns:
      An array of half the length along ``axis``.
    Raises:
      TypeError: ``x`` is not an array or scalar of floats or complex numbers, or ``axis`` is no integer.
      IndexError: the axis is out of bounds.
      AssertionError: its length is odd.

    Source: Dauphin, Fan, Auli, Grangier, "Language modeling with gated convolutional networks" (2017).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.glu(jnp.array([1.0, 2.0, 0.0, 100.0]))
    Array([0.5, 2. ], dtype=float32)
    """
    x = as_array_argument("glu", x)
    if not isinstance(axis, int):
        raise TypeError(f"glu: axis must be an integer, got {axis!r}")
    axis = canonical_axis(axis, x.ndim)
    if x.shape[axis] % 2:
        raise AssertionError(f"glu: the length of axis {axis} must be even, got {x.shape[axis]}")
    value, gate = jnp.split(x, 2, axis)
    return lax.mul(value, lax.logistic(gate))


_log_of_one_minus = custom_jvp(log_of_one_minus_exp)
_log_of_one_minus.defjvps(lambda g, y, x: g / lax.expm1(x))


@of_one
def _log1mexp(x):
    return _log_of_one_minus(_numbers("log1mexp", x))


@described
def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))``, exact for small and for large ``x``.

    Returns:
      An array of the shape of ``x``, NaN where it is negative; integers become floats.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar, or is boolean.

    Source: Maechler, "Accurately computing log(1 - exp(-|a|))" (2012).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.log1mexp(jnp.array([1e-10, 1.0, 20.0]))
    Array([-2.3026e+01, -4.5868e-01, -2.0612e-09], dtype=float32)
    """
    return _log1mexp(x)


# ---- of quotients, roots and squares


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Arguments:
      x: numbers.
    Returns:
      An array of the shape of ``x``; integers become floats.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.tanh(jnp.array([0.0, 1.0]))
    Array([0.     , 0.76159], dtype=float32)
    """
    return jnp.tanh(x)


@of_one
def _soft_sign(x):
    (x,) = promote_inexact("soft_sign", x, 0)[:1]
    return x / (jnp.abs(x) + 1)


@described
def soft_sign(x: ArrayLike) -> Array:
    """``x / (|x| + 1)``.

    Source: Turian, Bergstra, Bengio, "Quadratic features and deep architectures for chunking" (2009).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    return _soft_sign(x)


@of_two
def _squareplus(x, b):
    x = as_array_argument("squareplus", x)
    counted = convert(x, dtypes.to_numeric_dtype(x.dtype)) if x.dtype == dtypes.BOOL else x
    x, b = promote_inexact("squareplus", counted, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@described
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """A smooth ``relu`` without exponentials: ``(x + sqrt(x ** 2 + b)) / 2``.

    Arguments:
      b: how wide it is bent around 0.

    Source: Barron, "Squareplus: a softplus-like algebraic rectifier" (2021).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.squareplus(jnp.array([-3.0, 0.0, 3.0]))
    Array([0.30278, 1.     , 3.30278 ], dtype=float32)
    """
    return _squareplus(x, b)


@of_one
def _sparse_plus(x):
    (x,) = promote_inexact("sparse_plus", x, 0.0)[:1]
    below, above = x <= -1, x >= 1
    between = jnp.where(below | above, 0.0, x)  # elsewhere its square may overflow
    return jnp.where(below, 0.0, jnp.where(above, x, jnp.square(between + 1.0) / 4))


@described
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, ``x`` above 1, and ``(x + 1) ** 2 / 4`` between: the integral of ``sparse_sigmoid``.

    Source: Martins, Astudillo, "From softmax to sparsemax" (2016): the Huber loss of two classes, in another form.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    return _sparse_plus(x)


@of_one
def _sparse_sigmoid(x):
    return 0.5 * jnp.clip(jnp.add(x, 1.0), 0.0, 2.0)


@described
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The straight line from 0 at -1 to 1 at 1, and constant elsewhere: ``sparsemax`` of two classes.

    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      ValueError: ``x`` is complex.

    Source: Martins, Astudillo, "From softmax to sparsemax" (2016).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 0.5]))
    Array([0.  , 0.5 , 0.75], dtype=float32)
    """
    return _sparse_sigmoid(x)
