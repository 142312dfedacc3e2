"""Continuous distributions with a quantile function: one uniform number, transformed."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.core.context import context
from catena.core.shapes import broadcast_shapes
from catena.core.zeros import get_aval
from catena.lax.structure import told
from catena.random.kernels import remembered
from catena.random.keys import asked_shape, consumed_key
from catena.random.primitives import bits_of
from catena.random.sampler import as_float, float_dtype, lift, safe_float, sampler, shape_of, spread
from catena.random.uniform_family import _uniform, rows


def smallest(dtype):
    """The smallest normal number."""
    return np.asarray(dtypes.finfo(dtype).tiny, dtype)[()]


def epsilon(dtype):
    return np.asarray(dtypes.finfo(dtype).eps, dtype)[()]


def beside_minus_one(dtype):
    """The number next to -1 towards 0."""
    return np.nextafter(dtype.type(-1), dtype.type(0))


def draw_simple(name: str, body, key, shape, dtype, out_sharding, **statics):
    """Check the arguments of a sampler without parameters, and draw."""
    if out_sharding is not None:
        return told(out_sharding, draw_simple, name, body, key, shape, dtype, None, **statics)
    key = consumed_key(name, key)
    return body(key, shape=asked_shape(shape), dtype=float_dtype(dtype, name), **statics)


def draw_with(name: str, body, key, parameter, shape, dtype, out_sharding=None):
    """Check the arguments of a sampler with one parameter that broadcasts, and draw."""
    if out_sharding is not None:
        return told(out_sharding, draw_with, name, body, key, parameter, shape, dtype, None)
    key = consumed_key(name, key)
    dtype = float_dtype(dtype, name)
    shape = shape_of(shape, name, parameter)
    return body(key, safe_float(parameter, dtype, name), shape=shape, dtype=dtype)


@remembered
def exponential(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Exponential numbers of rate 1.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.exponential(random.key(0), (2,)).shape
    (2,)
    """
    return draw_simple("exponential", _exponential, key, shape, dtype, out_sharding)


@sampler
def _exponential(key, *, shape, dtype):
    return lax.neg(lax.log1p(lax.neg(_uniform(key, 0.0, 1.0, shape=shape, dtype=dtype))))


@remembered
def laplace(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Laplace distribution, of mean 0 and scale 1.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    return draw_simple("laplace", _laplace, key, shape, dtype, out_sharding)


@sampler
def _laplace(key, *, shape, dtype):
    unit = _uniform(key, beside_minus_one(dtype), 1.0, shape=shape, dtype=dtype)
    return lax.mul(lax.sign(unit), lax.log1p(lax.neg(lax.abs(unit))))


@remembered
def logistic(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the logistic distribution, of mean 0 and scale 1.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    return draw_simple("logistic", _logistic, key, shape, dtype, out_sharding)


@sampler
def _logistic(key, *, shape, dtype):
    unit = _uniform(key, smallest(dtype), 1.0, shape=shape, dtype=dtype)
    return lax.sub(lax.log(unit), lax.log1p(lax.neg(unit)))


@remembered
def cauchy(key, shape=(), dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Cauchy distribution, of location 0 and scale 1.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    return draw_simple("cauchy", _cauchy, key, shape, dtype, out_sharding)


@sampler
def _cauchy(key, *, shape, dtype):
    unit = _uniform(key, epsilon(dtype), 1.0, shape=shape, dtype=dtype)
    return lax.tan(lax.mul(np.asarray(np.pi, dtype)[()], lax.sub(unit, np.asarray(0.5, dtype)[()])))


@remembered
def gumbel(key, shape=(), dtype=None, mode: str | None = None, *, out_sharding=None) -> Array:
    """Numbers of the Gumbel distribution, of location 0 and scale 1.

    Arguments:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: a float dtype.
      mode: ``"high"`` draws twice the bits, for a finer upper tail; ``"highest"`` makes both tails as fine as floats
        are; ``"low"`` neither. The default is low, or high where ``jax_high_dynamic_range_gumbel`` is set.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``mode`` is none of these.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    return draw_simple("gumbel", _gumbel, key, shape, dtype, out_sharding, mode=checked_mode(mode))


def checked_mode(mode) -> str:
    if mode not in (None, "highest", "high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return mode or ("high" if context.high_dynamic_range_gumbel else "low")


@sampler
def _gumbel(key, *, shape, dtype, mode):
    tiny = smallest(dtype)
    if mode == "low":
        unit = _uniform(key, tiny, 1.0, shape=shape, dtype=dtype)
        return lax.neg(lax.log(lax.neg(lax.log(unit))))
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(bits_of(key, bit_width=32, shape=(2, *shape)))
    high, low = rows(_uniform(key, 0.0, 1.0, shape=(2, *shape), dtype=dtype))
    finer = lax.add(lax.add(high, lax.mul(epsilon(dtype), low)), tiny)
    unit = lax.select_n(lax.ge(high, np.asarray(0.5, dtype)[()]), finer, high)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(unit)))))


def _gumbel_of_64_bits(drawn):
    """Gumbel numbers in single precision, each from a fraction of 64 bits.

    The distance of the fraction to the nearer of 0 and 1 is a float with all its digits, so neither tail is coarse.
    """
    high, low = rows(drawn)
    one, ones = np.uint32(1), np.uint32(2**32 - 1)
    near_0 = lax.lt(high, np.uint32(2**31))
    carry = lax.convert_element_type(lax.eq(low, np.uint32(0)), np.uint32)
    high = lax.select_n(near_0, lax.add(lax.bitwise_xor(high, ones), carry), high)
    low = lax.select_n(near_0, lax.add(lax.bitwise_xor(low, ones), one), low)
    distance = _fraction(high, low)
    from_0, from_1 = lax.log1p(lax.neg(distance)), lax.log(distance)
    return lax.neg(lax.log(lax.neg(lax.select_n(near_0, from_1, from_0))))


def _fraction(high, low):
    """The fraction of 64 bits below the point as a float32, cut after its digits."""
    zeros = lax.clz(high)
    empty = lax.eq(zeros, np.uint32(32))
    lead = lax.select_n(empty, zeros, lax.add(np.uint32(32), lax.clz(low)))
    behind = lax.select_n(
        empty, lax.shift_right_logical(low, lax.sub(np.uint32(32), zeros)), lax.shift_left(low, lax.clz(low))
    )
    digits = lax.bitwise_or(lax.shift_left(high, zeros), behind)  # the first of them is 1
    exponent = lax.shift_left(lax.sub(np.uint32(126), lead), np.uint32(23))
    mantissa = lax.bitwise_and(lax.shift_right_logical(digits, np.uint32(8)), np.uint32(2**23 - 1))
    return lax.bitcast_convert_type(lax.bitwise_or(exponent, mantissa), np.float32)


@remembered
def rayleigh(key, scale, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Rayleigh distribution.

    Arguments:
      key: a key, typed or raw.
      scale: the scale, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``scale`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``scale`` does not broadcast to ``shape``.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.rayleigh(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return draw_with("rayleigh", _rayleigh, key, scale, shape, dtype, out_sharding)


@sampler
def _rayleigh(key, scale, *, shape, dtype):
    unit = _uniform(key, 0.0, 1.0, shape=shape, dtype=dtype)
    return lax.mul(spread(scale, shape), lax.sqrt(lax.mul(lax.log(unit), np.asarray(-2, dtype)[()])))


@remembered
def pareto(key, b, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the Pareto distribution, of scale 1.

    Arguments:
      key: a key, typed or raw.
      b: the shape parameter, that broadcasts to ``shape``.
      shape: the shape of the result; that of ``b`` by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or ``b`` does not broadcast to ``shape``.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.pareto(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return draw_with("pareto", _pareto, key, b, shape, dtype, out_sharding)


@sampler
def _pareto(key, b, *, shape, dtype):
    return lax.exp(lax.div(_exponential(key, shape=shape, dtype=dtype), lift(b, shape)))


@remembered
def weibull_min(key, scale, concentration, shape=(), dtype=None) -> Array:
    """Numbers of the Weibull distribution.

    Arguments:
      key: a key, typed or raw.
      scale, concentration: its parameters.
      shape: how many numbers are drawn: without one, a single number serves all parameters, as in JAX.
      dtype: a float dtype.
    Returns:
      An array of that dtype, of the shape to which ``shape`` and the parameters broadcast.
    Raises:
      ValueError: the dtype is not a float dtype, or a parameter does not broadcast with ``shape``.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, (2,)).shape
    (2,)
    """
    key = consumed_key("weibull_min", key)
    dtype, shape = float_dtype(dtype, "weibull_min"), asked_shape(shape)
    scale, concentration = as_float(scale, dtype), as_float(concentration, dtype)
    full = broadcast_shapes(shape, np.shape(scale), np.shape(concentration))
    if full == shape:
        return _weibull_min(key, scale, concentration, shape=shape, dtype=dtype)
    return _powers(_exponential(key, shape=shape, dtype=dtype), scale, concentration, full)


@sampler
def _weibull_min(key, scale, concentration, *, shape, dtype):
    return _powers(_exponential(key, shape=shape, dtype=dtype), scale, concentration, shape)


def _powers(drawn, scale, concentration, shape: tuple):
    """Exponential numbers to the power of 1 / ``concentration``, times ``scale``."""
    power = lax.div(np.asarray(1, get_aval(concentration).dtype)[()], concentration)
    return lax.mul(lax.pow(lift(drawn, shape), lift(power, shape)), lift(scale, shape))


@remembered
def triangular(key, left, mode, right, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Numbers of the triangular distribution.

    Arguments:
      key: a key, typed or raw.
      left, mode, right: where the density starts, peaks and ends; they broadcast to ``shape``.
      shape: the shape of the result; that of the parameters by default.
      dtype: a float dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape and dtype.
    Raises:
      ValueError: the dtype is not a float dtype, or a parameter does not broadcast to ``shape``.

    Source: inversion of the distribution function; Devroye, "Non-uniform random variate generation" (1986), II.2.

    >>> from catena import random
    >>> random.triangular(random.key(0), 0.0, 0.5, 1.0, (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return told(out_sharding, triangular, key, left, mode, right, shape, dtype)
    key = consumed_key("triangular", key)
    dtype = float_dtype(dtype, "triangular")
    shape = shape_of(shape, "triangular", left, mode, right)
    return _triangular(
        key, *[safe_float(x, dtype, "triangular") for x in (left, mode, right)], shape=shape, dtype=dtype
    )


@sampler
def _triangular(key, left, mode, right, *, shape, dtype):
    left, mode, right = [spread(x, shape) for x in (left, mode, right)]
    width, rise, fall = lax.sub(right, left), lax.sub(mode, left), lax.sub(right, mode)
    unit = _uniform(key, 0.0, 1.0, shape=shape, dtype=dtype)
    below = lax.add(left, lax.sqrt(lax.mul(lax.mul(unit, width), rise)))
    rest = lax.sub(np.asarray(1, dtype)[()], unit)
    above = lax.sub(right, lax.sqrt(lax.mul(lax.mul(rest, width), fall)))
    return lax.select_n(lax.lt(unit, lax.div(rise, width)), above, below)
