"""Differences, gradients, areas, unwrapping and interpolation of sampled functions."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy.arithmetic import absolute, remainder
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    as_operand,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    concrete_values,
    convert,
    direct,
    dtype_of,
    like,
    run,
    spread_together,
    static_int,
    strong_with_slopes,
)
from catena.numpy.cumulative import cumsum
from catena.numpy.editing import along
from catena.numpy.hot import NUMBER, REAL
from catena.numpy.joining import concatenate
from catena.numpy.promotion import promote_dtypes, promote_dtypes_inexact
from catena.numpy.reading import read
from catena.numpy.shaping import broadcast_to as checked_broadcast
from catena.numpy.shaping import ravel
from catena.numpy.sorting import argsort, positions_in
from catena.typing import ArrayLike

_MANY = 1 << 13  # elements, from which on the several passes of NumPy may be worth a program


def _slices(x, axis: int, first: slice, second: slice) -> tuple:
    return read(x, along(axis, first)), read(x, along(axis, second))


_LATER, _EARLIER = slice(1, None), slice(None, -1)


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours along an axis; of booleans, whether they differ.

    Arguments:
      a: an array of at least one dimension.
      n: how often to take differences.
      axis: the axis.
      prepend, append: values to put before and after: a scalar, or an array of the shape of ``a`` but for
        ``axis``.
    Returns:
      An array, shorter along the axis by ``n``.
    Raises:
      ValueError: ``n`` is negative, ``a`` is a scalar, or the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    a = as_array_argument("diff", a)
    if direct(a) and n == 1 and axis in (-1, 0) and prepend is append is None and a.ndim == 1 and a.dtype in NUMBER:
        value = a._value
        return make_array(run(np.subtract, value[1:], value[:-1]), a.weak_type)
    return _any_diff(a, n, axis, prepend, append)


@whole
def _any_diff(a, n, axis, prepend, append):
    n = static_int(n, "'n' argument of jnp.diff")
    axis = static_int(axis, "'axis' argument of jnp.diff")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    axis = canonical_axis(axis, a.ndim)
    parts = [_border(prepend, a, axis), a, _border(append, a, axis)]
    parts = [p for p in parts if p is not None]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    for _ in range(n):
        later, earlier = _slices(a, axis, _LATER, _EARLIER)
        a = lax.ne(later, earlier) if a.dtype == dtypes.BOOL else lax.sub(later, earlier)
    return a


def _border(values, a, axis: int):
    if values is None:
        return None
    values = as_array_argument("diff", values)
    if values.ndim:
        return values
    return broadcast_to(values, tuple(1 if i == axis else n for i, n in enumerate(a.shape)))


@whole
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours in a flattened array.

    Arguments:
      ary: an array.
      to_end, to_begin: values to put after and before them, converted to the dtype of ``ary``.
    Returns:
      A 1-D array of the dtype of ``ary``.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=0)
    Array([3, 5, 0], dtype=int32)
    """
    ary = ravel(as_array_argument("ediff1d", ary))
    parts = [lax.sub(*_slices(ary, 0, _LATER, _EARLIER))]
    if to_begin is not None:
        parts.insert(0, ravel(convert(as_operand("ediff1d", to_begin), ary.dtype)))
    if to_end is not None:
        parts.append(ravel(convert(as_operand("ediff1d", to_end), ary.dtype)))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


# ----------------------------------------------------------------------------------------------------
# Gradients and areas


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """The derivatives of a sampled function: central differences inside, one-sided ones at the ends.

    Arguments:
      f: the values, at least two along each axis.
      *varargs: the spacing: nothing for 1, one number for all axes, or for each axis a number or the
        coordinates.
      axis: the axes to differentiate along; by default all.
      edge_order: must be None.
    Returns:
      For one axis an array of the shape of ``f``, else a list of them.
    Raises:
      ValueError: an axis has less than two values. TypeError: the number of spacings does not fit.
      NotImplementedError: ``edge_order`` is given.

    >>> import catena.numpy as jnp
    >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
    Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    if not varargs and (found := concrete_values(REAL, f)) and found[0].size < _MANY:  # the hot path
        value = found[0]
        if axis is None and value.ndim == 1 and value.size > 1:
            return make_array(run(_unit_gradient, value))
        if type(axis) in (int, type(None)) and (results := _gradient_values(value, axis)):
            return results[0] if len(results) == 1 else results
    return _any_gradient(f, axis, *varargs)


@whole
def _any_gradient(f, axis, *varargs):
    f, *spacings = promote_dtypes_inexact("gradient", f, *varargs)
    axes = (
        canonical_axes(axis, f.ndim)
        if axis is None or not isinstance(axis, Sequence)
        else tuple(canonical_axis(operator.index(i), f.ndim) for i in axis)
    )
    if any(f.shape[i] < 2 for i in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are required."
        )
    spacings = [_weak(f, 1)] * len(axes) if not spacings else spacings * len(axes) if len(spacings) == 1 else spacings
    if len(spacings) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(spacings)} for {axis=}")
    results = [_gradient_along(f, i, _coordinates(h, f.shape[i])) for i, h in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else results


def _weak(x, value: int):
    """A number of the dtype of ``x``, as weak as it is, as Python's numbers are in expressions."""
    return make_array(np.asarray(value, x.dtype), x.weak_type)


def _inexact(name: str, x):
    x = as_array_argument(name, x)
    return convert(x, dtypes.to_inexact_dtype(x.dtype))


def _coordinates(h, n: int):
    """The spacing of an axis: a scalar, or the ``n - 1`` distances of neighbours."""
    if h.ndim > 1 or (h.ndim and h.size != n):
        raise ValueError(f"Spacing arguments must be scalars or 1D arrays with length {n} of the axis; got {h.shape}")
    if not h.ndim:
        return h
    return lax.sub(read(h, _LATER), read(h, _EARLIER))


def _gradient_along(f, axis: int, h):
    """Second-order differences for given distances ``h`` of neighbours."""
    if not h.ndim and (found := concrete_values(REAL, f, h)):  # the hot path
        return make_array(run(_gradient_value, *found, axis))
    later, earlier = _slices(f, axis, _LATER, _EARLIER)
    steps = lax.sub(later, earlier)
    if not h.ndim:
        quotients = lax.div(steps, h)
        inner = lax.div(lax.sub(*_slices(f, axis, slice(2, None), slice(None, -2))), lax.mul(h, _weak(h, 2)))
    else:
        h = lax.broadcast_in_dim(h, steps.shape, (axis,))
        quotients = lax.div(steps, h)
        after, before = _slices(h, axis, _LATER, _EARLIER)
        right, left = _slices(quotients, axis, _LATER, _EARLIER)
        weighted = lax.add(lax.mul(before, right), lax.mul(after, left))
        inner = lax.div(weighted, lax.add(before, after))
    first, last = _slices(quotients, axis, slice(0, 1), slice(-1, None))
    return lax.concatenate([first, inner, last], axis)


def _gradient_values(value, axis) -> list:
    """Differences of unit spacing along an axis or all; empty where the general path has to see to it."""
    axes = range(value.ndim) if axis is None else (axis,)
    if not all(-value.ndim <= i < value.ndim and value.shape[i] > 1 for i in axes):
        return []
    return [make_array(run(_unit_gradient, value.swapaxes(i, 0)).swapaxes(i, 0)) for i in axes]


def _unit_gradient(f):
    """Differences of unit spacing along the first axis."""
    out = np.empty(f.shape, f.dtype)
    inner = np.subtract(f[2:], f[:-2], out[1:-1])
    np.multiply(inner, _HALF[f.dtype], inner)
    out[0] = f[1] - f[0]
    out[-1] = f[-1] - f[-2]
    return out


# As an array of the same dtype, a constant is multiplied by in half the time of a Python number.
_HALF = {dtype: np.array(0.5, dtype) for dtype in REAL}


def _gradient_value(value, h, axis: int):
    out = np.empty(value.shape, value.dtype)
    f, g = value.swapaxes(axis, -1), out.swapaxes(axis, -1)
    np.divide(f[..., 2:] - f[..., :-2], h * h.dtype.type(2), g[..., 1:-1])
    np.divide(f[..., 1] - f[..., 0], h, g[..., 0])
    np.divide(f[..., -1] - f[..., -2], h, g[..., -1])
    return out


@whole
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The area below a sampled function, by the trapezoidal rule.

    Arguments:
      y: the values.
      x: their coordinates: of the shape of ``y``, or 1-D; by default ``dx`` apart.
      dx: the distance of coordinates.
      axis: the axis to integrate along.
    Returns:
      An array without that axis.
    Raises:
      ValueError: the axis is out of bounds. TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.trapezoid(jnp.array([0.0, 1.0, 2.0]), dx=2.0)
    Array(4., dtype=float32)
    """
    if x is not None and axis == -1 and (found := concrete_values(REAL, y, x)):  # the hot path
        if found[0].ndim == 1 and found[0].shape == found[1].shape:
            return make_array(run(_area_value, *found))
    y, axis = as_array_argument("trapezoid", y), operator.index(axis)
    canonical_axis(axis, y.ndim)
    if x is None:
        y, widths = promote_dtypes_inexact("trapezoid", _inexact("trapezoid", strong_with_slopes(y)), dx)
    else:
        y, x = promote_dtypes_inexact("trapezoid", y, x)
        if x.ndim == 1 and y.ndim > 1:
            x = lax.expand_dims(x, tuple(i for i in range(y.ndim) if i != axis % y.ndim))
        widths = _halves(x, axis, lax.sub)
    products = lax.mul(*spread_together("trapezoid", [widths, _halves(y, axis, lax.add)]))
    return lax.mul(lax.reduce_sum(products, (axis % products.ndim,)), like(y, 0.5))


def _halves(x, axis: int, combine):
    """What ``combine`` makes of each element along an axis and the one before it."""
    return combine(*_slices(x, canonical_axis(axis, x.ndim), _LATER, _EARLIER))


_FEW = 1 << 10  # numbers whose products BLAS sums as precisely as NumPy


def _area_value(y, x):
    y, x = dense(y), dense(x)
    sums, widths = y[1:] + y[:-1], x[1:] - x[:-1]
    total = np.dot(sums, widths) if sums.size <= _FEW else np.add.reduce(np.multiply(sums, widths, sums))
    return np.array(total * total.dtype.type(0.5))


# ----------------------------------------------------------------------------------------------------
# Unwrapping and interpolation


@whole
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """Values with jumps taken out by adding periods.

    Arguments:
      p: real numbers, such as angles.
      discont: the least jump that is taken out; by default half a period.
      axis: the axis along which they follow each other.
      period: the period.
    Returns:
      An array of the shape of ``p``.
    Raises:
      ValueError: ``p`` is complex, or the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 6, 1]), period=8)
    Array([0, 3, 6, 9], dtype=int32)
    """
    p, period = as_array_argument("unwrap", p), as_operand("unwrap", period, 3)
    if dtypes.is_complex(p.dtype) or dtypes.is_complex(dtype_of(period)[0]):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if p.ndim == 0:
        raise ValueError("unwrap requires an array of at least one dimension, got a scalar")
    axis = canonical_axis(operator.index(axis), p.ndim)
    p, period = promote_dtypes("unwrap", p, period)
    if p.dtype == dtypes.BOOL:
        p, period = promote_dtypes_inexact("unwrap", p, period)
    if not p.shape[axis]:
        return p
    later, earlier = _slices(p, axis, _LATER, _EARLIER)
    steps = lax.sub(later, earlier)
    half = lax.div(period, like(period, 2))
    wrapped = lax.sub(remainder(lax.add(steps, half), period), half)
    edge = lax.bitwise_and(lax.eq(wrapped, lax.neg(half)), lax.gt(steps, like(steps, 0)))
    wrapped = lax.select(edge, broadcast_to(half, steps.shape), wrapped)
    least = half if discont is None else convert(as_array_argument("unwrap", discont, 1), p.dtype)
    small = lax.lt(absolute(steps), least)
    correction = lax.select(small, lax.full_like(steps, 0), lax.sub(wrapped, steps))
    unwrapped = lax.add(later, cumsum(correction, axis))
    return lax.concatenate([read(p, along(axis, slice(0, 1))), unwrapped], axis)


@whole
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Linear interpolation between given points.

    Arguments:
      x: where to evaluate.
      xp: the coordinates of the points: 1-D, increasing (in any order with a period).
      fp: their values.
      left, right: values before the first and after the last point; by default those of these points, and for
        "extrapolate" those of the outermost lines.
      period: the period of the function.
    Returns:
      An array of the shape of ``x``.
    Raises:
      ValueError: the points are not two 1-D arrays of one size, or coordinates are complex.

    >>> import catena.numpy as jnp
    >>> jnp.interp(2.5, jnp.array([1.0, 2.0, 3.0]), jnp.array([10.0, 20.0, 40.0]))
    Array(30., dtype=float32)
    """
    x, xp, fp = array_arguments("interp", x, xp, fp)
    if dtypes.is_complex(x.dtype) or dtypes.is_complex(xp.dtype):
        raise ValueError("jnp.interp: complex x values not supported.")
    x, xp, fp = promote_dtypes_inexact("interp", x, xp, fp)
    x, xp = (lax.real(v) if dtypes.is_complex(v.dtype) else v for v in (x, xp))
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    if not xp.size:
        raise ValueError("interp: there must be at least one point, got xp of size 0")
    if period is not None:
        x, xp, fp = _one_period(x, xp, fp, period)
    if xp.size == 1:
        values = checked_broadcast(fp, x.shape) if x.ndim else lax.reshape(fp, ())
    else:
        values = _on_lines(x, xp, fp)
    if period is None:
        values = _outside(values, left, lax.lt(x, read(xp, 0)), read(fp, 0))
        values = _outside(values, right, lax.gt(x, read(xp, -1)), read(fp, -1))
    return values


def _one_period(x, xp, fp, period):
    """Everything within one period, and a point more at both ends."""
    period = as_array_argument("interp", period, 5)
    if period.ndim:
        raise ValueError(f"interp: period must be a scalar, got shape {period.shape}")
    period = lax.abs(convert(period, x.dtype))
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = read(xp, order), read(fp, order)
    ends = [lax.sub(read(xp, slice(-1, None)), period), xp, lax.add(read(xp, slice(0, 1)), period)]
    values = [read(fp, slice(-1, None)), fp, read(fp, slice(0, 1))]
    return x, lax.concatenate(ends, 0), lax.concatenate(values, 0)


def _on_lines(x, xp, fp):
    """The values on the line through the points on both sides, or through the two outermost points."""
    i = positions_in(xp, x, "right")
    i = lax.clamp(np.asarray(1, i.dtype), i, np.asarray(xp.size - 1, i.dtype))
    before = lax.sub(i, np.asarray(1, i.dtype))
    x0, f0 = read(xp, before), read(fp, before)
    width, rise = lax.sub(read(xp, i), x0), lax.sub(read(fp, i), f0)
    tiny = like(width, np.spacing(np.finfo(dtypes.finfo(x.dtype).dtype).eps))
    flat = lax.le(lax.abs(width), tiny)
    share = lax.div(lax.sub(x, x0), lax.select(flat, lax.full_like(width, 1), width))
    line = lax.add(f0, lax.mul(convert(share, fp.dtype, fp.weak_type), rise))
    return lax.select(flat, f0, line)


def _outside(values, wanted, mask, edge):
    if isinstance(wanted, str):
        if wanted != "extrapolate":
            raise ValueError(f"the only valid string value of `left` and `right` is 'extrapolate', but got: {wanted!r}")
        return values
    fill = edge if wanted is None else as_array_argument("interp", wanted, 3)
    if dtypes.is_complex(fill.dtype):
        values = convert(values, dtypes.to_complex_dtype(values.dtype))
    fill = convert(fill, values.dtype, fill.weak_type and values.weak_type)
    return lax.select(mask, broadcast_to(fill, values.shape), values)
