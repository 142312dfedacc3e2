"""Initial values of parameters: functions of a key, a shape and a dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from catena import lax, random
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.traceback import open_door as _open_door
from catena.lax.structure import canonical_axis, canonical_shape
from catena.numpy import linalg

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """What an initializer is: ``init(key, shape, dtype=None, out_sharding=None)`` gives an array.

    >>> from catena.nn import initializers
    >>> isinstance(initializers.zeros, initializers.Initializer)
    True
    """

    def __call__(self, key, shape, dtype=None, out_sharding=None) -> Array:
        """The initial value: an array of ``shape`` drawn from ``key``."""


def dtype_asked(dtype, default):
    """The canonical dtype that a call asks for, or that its initializer was made with, or the default float."""
    asked = default if dtype is None else dtype
    return dtypes.check_user_dtype_supported(float if asked is None else asked, "initializer")


# ---- constants


def zeros(key, shape, dtype=None, out_sharding=None) -> Array:
    """Zeros.

    Arguments:
      key: not used.
      shape: the shape of the result.
      dtype: its dtype; the default float one.
      out_sharding: its sharding.
    Returns:
      An array.
    Raises:
      TypeError: ``shape`` is not a shape.

    >>> from catena.nn import initializers
    >>> initializers.zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, dtype_asked(dtype, None), out_sharding=out_sharding)


def ones(key, shape, dtype=None, out_sharding=None) -> Array:
    """Ones.

    Arguments:
      key: not used.
      shape: the shape of the result.
      dtype: its dtype; the default float one.
      out_sharding: its sharding.
    Returns:
      An array.
    Raises:
      TypeError: ``shape`` is not a shape.

    >>> from catena.nn import initializers
    >>> initializers.ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, dtype_asked(dtype, None), out_sharding=out_sharding)


def constant(value, dtype=None) -> Initializer:
    """An initializer of one value.

    Arguments:
      value: a scalar, or an array that broadcasts to the shapes asked for.
      dtype: the dtype where a call names none; the default float one.
    Returns:
      An initializer.
    Raises:
      TypeError: by the initializer, ``value`` is not an array or scalar.

    >>> from catena.nn import initializers
    >>> initializers.constant(3)(None, (2,))
    Array([3., 3.], dtype=float32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        return jnp.full(shape, value, dtype_asked(dtype, None), out_sharding=out_sharding)

    return init


# ---- numbers of one distribution, scaled


def uniform(scale: Any = 1e-2, dtype=None) -> Initializer:
    """An initializer of uniform numbers in ``[0, scale)``.

    Arguments:
      scale: the upper bound.
      dtype: the float dtype where a call names none; the default one.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, the dtype is not a float one.

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> initializers.uniform(5.0)(jax.random.key(0), (2,))
    Array([4.738335 , 4.8928995], dtype=float32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = dtype_asked(dtype, None)
        return random.uniform(key, shape, dtype, out_sharding=out_sharding) * jnp.array(scale, dtype)

    return init


def normal(stddev: Any = 1e-2, dtype=None) -> Initializer:
    """An initializer of normal numbers of mean 0.

    Arguments:
      stddev: the standard deviation.
      dtype: the float or complex dtype where a call names none; the default float one.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, the dtype is neither float nor complex.

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> initializers.normal(5.0)(jax.random.key(0), (2,))
    Array([ 8.113211, 10.126324], dtype=float32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = dtype_asked(dtype, None)
        return random.normal(key, shape, dtype, out_sharding=out_sharding) * jnp.array(stddev, dtype)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype=None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """An initializer of normal numbers between two bounds.

    Arguments:
      stddev: the standard deviation of the normal numbers, before those beyond the bounds are left out.
      dtype: the float dtype where a call names none; the default one.
      lower, upper: the bounds, in standard deviations.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, the dtype is not a float one.

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> initializers.truncated_normal(5.0)(jax.random.key(0), (2,)).shape
    (2,)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        dtype = dtype_asked(dtype, None)
        drawn = random.truncated_normal(key, lower, upper, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.array(stddev, dtype)

    return init


# ---- scaled by the shape


def sizes(shape: tuple, axes: Axes) -> float:
    axes = (axes,) if isinstance(axes, int) else axes
    return math.prod(shape[canonical_axis(a, len(shape), "axis")] for a in axes)


def fans(shape: tuple, in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input: channels, times the size of the window."""
    if len(shape) <= 1 and in_axis == -2:  # which is the default
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default "
            "in_axis. Must be at least 2D or specify in_axis explicitly."
        )
    ins, outs, batch = [sizes(shape, axes) for axes in (in_axis, out_axis, batch_axis)]
    if not ins * outs * batch:
        return 0.0, 0.0
    window = math.prod(shape) / ins / outs / batch
    return ins * window, outs * window


def divisor(mode: str, fan_in: float, fan_out: float) -> float:
    """What the variance is divided by."""
    modes = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }
    if mode not in modes:
        raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
    return modes[mode]


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype=None,
) -> Initializer:
    """An initializer whose variance is ``scale`` over the number of inputs or outputs of a layer.

    Arguments:
      scale: the variance times that number.
      mode: which number: ``fan_in``, ``fan_out``, their mean ``fan_avg`` or their geometric mean ``fan_geo_avg``.
      distribution: ``normal``, ``truncated_normal`` (at two standard deviations) or ``uniform``.
      in_axis, out_axis: the axes of inputs and outputs; other axes are those of a window.
      batch_axis: axes of independent parameters, which count in neither number.
      dtype: the float or complex dtype where a call names none; the default float one.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, there is no such mode or distribution, or the shape has fewer than two axes.

    Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers" (2015), and the papers named below.

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> init = initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> init(jax.random.key(0), (3, 4)).shape
    (3, 4)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        shape, dtype = canonical_shape(shape), dtype_asked(dtype, None)
        number = divisor(mode, *fans(shape, in_axis, out_axis, batch_axis))
        if distribution not in DRAWS:
            raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")
        if not math.prod(shape):
            return jnp.zeros(shape, dtype, out_sharding=out_sharding)
        real = np.zeros((), dtype).real.dtype
        drawn = DRAWS[distribution](key, shape, dtype, jnp.array(scale / number, real))
        return drawn if out_sharding is None else lax.with_sharding_constraint(drawn, out_sharding)

    return init


def draw_normal(key, shape, dtype, variance):
    return random.normal(key, shape, dtype) * jnp.sqrt(variance).astype(dtype)


def draw_truncated(key, shape, dtype, variance):
    if dtypes.is_complex(dtype):
        drawn, deviation = truncated_disc(key, shape, dtype, 2), TRUNCATED_DISC
    else:
        drawn, deviation = random.truncated_normal(key, -2, 2, shape, dtype), TRUNCATED
    return drawn * (jnp.sqrt(variance) / jnp.array(deviation, variance.dtype)).astype(dtype)


def draw_uniform(key, shape, dtype, variance):
    if dtypes.is_complex(dtype):
        return disc(key, shape, dtype) * jnp.sqrt(2 * variance).astype(dtype)
    return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)


DRAWS = {"normal": draw_normal, "truncated_normal": draw_truncated, "uniform": draw_uniform}


def on_circle(key, radius, dtype):
    """Complex numbers of given radii and uniform angle."""
    angle = (2 * math.pi) * random.uniform(key, radius.shape, radius.dtype)
    return radius.astype(dtype) * jnp.exp(lax.complex(jnp.zeros_like(angle), angle)).astype(dtype)


def disc(key, shape, dtype):
    """Complex numbers uniform in the unit disc."""
    of_radius, of_angle = random.split(key)
    radius = jnp.sqrt(random.uniform(of_radius, shape, np.zeros((), dtype).real.dtype))
    return on_circle(of_angle, radius, dtype)


def truncated_disc(key, shape, dtype, bound: float):
    """Complex normal numbers within ``bound`` of 0; the square of their radius is exponential."""
    of_radius, of_angle = random.split(key)
    share = random.uniform(of_radius, shape, np.zeros((), dtype).real.dtype)
    radius = jnp.sqrt(-jnp.log(1 - (1 - jnp.exp(jnp.array(-(bound**2), share.dtype))) * share))
    return on_circle(of_angle, radius, dtype)


# The standard deviation of a standard normal number within [-2, 2]; and that of a complex one within 2 of 0 as JAX has
# it, without division by the probability of lying there: such numbers come out 1 % too large.
TRUNCATED = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))
TRUNCATED_DISC = math.sqrt(1 - 5 * math.exp(-4))


NAMED = """An initializer of {what}, of variance {scale}{over}.

    Arguments:
      in_axis, out_axis: the axes of inputs and outputs; other axes are those of a window.
      batch_axis: axes of independent parameters.
      dtype: the float or complex dtype where a call names none; the default float one.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, the shape has fewer than two axes.

    Source: {source}.

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> initializers.{name}()(jax.random.key(0), (3, 4)).shape
    (3, 4)
    """
KINDS = {"truncated_normal": "normal numbers within two standard deviations", "uniform": "uniform numbers around 0"}
OVER = {"fan_avg": " over the mean of inputs and outputs", "fan_in": " over the number of inputs"}
GLOROT = 'Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010)'
LECUN = 'LeCun, Bottou, Orr, Mueller, "Efficient BackProp" (1998)'
HE = 'He, Zhang, Ren, Sun, "Delving deep into rectifiers" (2015)'


def named(name: str, scale: float, mode: str, distribution: str, source: str):
    """A maker of initializers by variance scaling."""

    def make(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype=None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = NAMED.format(what=KINDS[distribution], scale=scale, over=OVER[mode], source=source, name=name)
    return make


glorot_uniform = named("glorot_uniform", 1.0, "fan_avg", "uniform", GLOROT)
glorot_normal = named("glorot_normal", 1.0, "fan_avg", "truncated_normal", GLOROT)
lecun_uniform = named("lecun_uniform", 1.0, "fan_in", "uniform", LECUN)
lecun_normal = named("lecun_normal", 1.0, "fan_in", "truncated_normal", LECUN)
he_uniform = named("he_uniform", 2.0, "fan_in", "uniform", HE)
he_normal = named("he_normal", 2.0, "fan_in", "truncated_normal", HE)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# ---- orthogonal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """An initializer of matrices with orthogonal columns, or rows where there are fewer of these.

    Arguments:
      scale: their length.
      column_axis: the axis of the columns; the others together are that of the rows.
      dtype: the float or complex dtype where a call names none; the default float one.
    Returns:
      An initializer.
    Raises:
      ValueError: by the initializer, the shape has fewer than two axes.

    Source: Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2014).

    >>> import catena as jax, catena.numpy as jnp
    >>> from catena.nn import initializers
    >>> q = initializers.orthogonal()(jax.random.key(0), (4, 2))
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(2), atol=1e-6))
    True
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        shape, dtype = canonical_shape(shape), dtype_asked(dtype, None)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        axis = canonical_axis(column_axis, len(shape), "column_axis")
        columns = shape[axis]
        rows = math.prod(shape) // columns if columns else 0
        factor_dtype = dtype if dtypes.itemsize_bits(dtype) >= 32 else np.dtype(np.float32)
        drawn = random.normal(key, (max(rows, columns), min(rows, columns)), factor_dtype)
        q, r = linalg.qr(drawn)
        diagonal = jnp.diag(r)
        q = q * (diagonal / jnp.abs(diagonal).astype(q.dtype))
        matrix = q if rows >= columns else q.T
        whole = jnp.moveaxis(matrix.reshape(*shape[:axis], *shape[axis + 1 :], columns), -1, axis)
        made = jnp.array(scale, dtype) * whole.astype(dtype)
        return made if out_sharding is None else lax.with_sharding_constraint(made, out_sharding)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """An initializer of convolution kernels: an orthogonal matrix in the middle of the window, zeros around it.

    Arguments:
      scale: the length of its columns.
      column_axis: the axis of the columns of the matrix.
      dtype: the float or complex dtype where a call names none; the default float one.
    Returns:
      An initializer of shapes ``(*window, inputs, outputs)`` with windows of one to three axes.
    Raises:
      ValueError: by the initializer, the shape has not three to five axes, or there are more inputs than outputs.

    Source: Xiao, Bahri, Sohl-Dickstein, Schoenholz, Pennington, "Dynamical isometry and a mean field theory of CNNs"
    (2018).

    >>> import catena as jax
    >>> from catena.nn import initializers
    >>> kernel = initializers.delta_orthogonal()(jax.random.key(0), (3, 2, 2))
    >>> float(abs(kernel[0]).sum()), round(float((kernel[1] ** 2).sum()), 4)
    (0.0, 2.0)
    """
    matrix_of = orthogonal(scale, column_axis, dtype)

    def init(key, shape, dtype=dtype, out_sharding=None):
        shape, dtype = canonical_shape(shape), dtype_asked(dtype, None)
        if not 3 <= len(shape) <= 5:
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`, got {shape[-2]} and {shape[-1]}")
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        made = jnp.zeros(shape, dtype).at[middle].set(matrix_of(key, shape[-2:], dtype))
        return made if out_sharding is None else lax.with_sharding_constraint(made, out_sharding)

    return init


__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


def __dir__() -> list[str]:
    return __all__


_open_door(globals(), "catena.nn.initializers")
