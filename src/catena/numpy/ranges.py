"""Evenly spaced numbers and grids: ``arange``, ``linspace``, ``logspace``,
``geomspace``, ``meshgrid``, ``mgrid`` ...
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from catena import lax
from catena.core import casts, dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.lax.policy import PROGRAMMED
from catena.lax.whole import whole
from catena.numpy.boundary import (
    SCALARS,
    array_arguments,
    as_operand,
    broadcast_together,
    canonical_axis,
    concrete_or_error,
    convert,
    direct,
    dtype_of,
    like,
    operands,
    promoted_dtype,
    run,
    scalar_array,
    static_int,
    user_dtype,
)
from catena.numpy.creation import Shape, default_int, shape_argument
from catena.numpy.elementary import log10
from catena.numpy.float_parts import floor
from catena.numpy.hot import F64, REAL
from catena.numpy.placement import placed
from catena.runtime import buffers
from catena.transform.vmap import vmap
from catena.typing import ArrayLike, DTypeLike

MANY = 1 << 12  # numbers that are counted quicker by a primitive, which also says how many an int32 can number


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Numbers from ``start``, in steps, up to but not including ``stop``.

    Arguments:
      start: the first number; with one argument, the stop, and the first number is 0.
      stop: the bound, which is not reached.
      step: the distance between numbers, by default 1.
      dtype: the dtype; by default the one that the arguments promote to.
      device: the device to put it on; None for the default one.
      out_sharding: its sharding; None for that of a single device.
    Returns:
      An array with one axis.
    Raises:
      TypeError: an argument is not a number, or the dtype is bool.
      ValueError: an argument is no scalar, or is complex.
      ConcretizationTypeError: an argument is not known while tracing.
      ZeroDivisionError: ``step`` is 0.

    >>> import catena.numpy as jnp
    >>> jnp.arange(5), jnp.arange(0.0, 1.0, 0.25)
    (Array([0, 1, 2, 3, 4], dtype=int32), Array([0.  , 0.25, 0.5 , 0.75], dtype=float32))
    """
    dtype = user_dtype(dtype, "arange")
    if stop is None:
        bounds = [("stop", start)]
    else:
        bounds = [("start", start), ("stop", stop)]
    arguments = bounds + ([("step", step)] if step is not None else [])
    values = [_static_number(name, x) for name, x in arguments]
    found = dtypes.promote(*(dtype_of(as_operand("arange", x)) for _, x in arguments))[0]
    if stop is None:
        values.insert(0, 0)
    return placed(_range(values, dtype or found), device, out_sharding)


def _static_number(name: str, x):
    """An argument of ``arange`` as a Python number."""
    if type(x) is int or type(x) is float:
        return x
    if x is None:
        raise TypeError(f"arange: {name} must be a real number, got None")
    shape = getattr(x, "shape", ())
    if shape != ():
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={x}")
    value = as_operand("arange", x)
    if dtypes.is_complex(dtype_of(value)[0]):
        raise ValueError(f"jnp.arange: {name} must be a real number, got a complex one, {x}")
    value = concrete_or_error(lambda v: v, value, f"It arose in the jnp.arange argument '{name}'")
    return value if type(value) in SCALARS else value._value[()].item()


def _range(values, dtype):
    """Numbers between static values; with two integers, as an equation while tracing."""
    if dtype == dtypes.BOOL:
        raise TypeError(
            "iota does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, complexfloating."
        )
    if len(values) == 3 and values[2] == 0:
        raise ZeroDivisionError("arange: step must not be 0")
    if len(values) == 2 and values[0] == 0:  # positions, which count around where a short integer ends
        count = max(0, values[1] if type(values[1]) is int else int(np.ceil(values[1])))
        if context.trace is not None or count > MANY:
            return lax.iota(dtype, count)
        values = [0, count]
    numbers = np.arange(*values)
    if numbers.dtype.kind == "f" and dtypes.issubdtype(dtype, np.integer):
        # As many, from a start and by a step of that dtype.
        start, step = int(values[0]), int(values[2]) if len(values) == 3 else 1
        numbers = start + step * np.arange(numbers.size)
    return make_array(casts.convert(numbers, dtype))


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array | tuple[Array, Array]:
    """Numbers evenly spaced from ``start`` to ``stop``.

    Arguments:
      start, stop: the bounds, arrays or scalars of shapes that broadcast together.
      num: how many numbers.
      endpoint: whether ``stop`` is the last of them.
      retstep: whether to return the distance between numbers, too.
      dtype: the dtype of the result; by default a float (or complex) one. Integers are rounded down.
      axis: where the new axis is in the result.
      device: the device to put it on; None for the default one.
    Returns:
      An array with the axis of length ``num``; with ``retstep``, a pair of it and the step.
    Raises:
      TypeError: a bound is neither an array nor a scalar, or ``num`` is not an integer known while tracing.
      ValueError: ``num`` is negative.

    >>> import catena.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    numbers = _numbers(start, stop)
    if numbers and dtype is device is None and not retstep and axis == 0 and type(num) is int and 2 <= num < PROGRAMMED:
        return make_array(_means(*numbers, num, num - 1 if endpoint else num, endpoint))
    num = static_int(num, "'num' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    dtype = user_dtype(dtype, "linspace")
    start, stop = map(make_array, numbers) if numbers else operands("linspace", start, stop)
    axis = static_int(axis, "'axis' argument of jnp.linspace")
    found = _linspace(start, stop, num, endpoint, axis, dtype, retstep)
    return (placed(found[0], device), found[1]) if retstep else placed(found, device)


@whole
def _linspace(start, stop, num: int, endpoint: bool, axis: int, dtype, retstep: bool):
    """The numbers between operands, with the step between them if asked for."""
    found = dtypes.to_inexact_dtype(promoted_dtype([start, stop])[0])
    dtype = dtype or found
    wide = _computed_in(found, dtype)
    start, stop = broadcast_together("linspace", [convert(x, wide) for x in (start, stop)], ValueError)
    numbers, step = _spaced(start, stop, num, endpoint, canonical_axis(axis, start.ndim + 1))
    if dtypes.is_integer(dtype) and not dtypes.is_integer(wide):
        numbers = floor(numbers)
    numbers = convert(numbers, dtype)
    return (numbers, convert(step, dtype if dtypes.is_inexact(dtype) else wide)) if retstep else numbers


def _computed_in(found, asked):
    """The dtype to compute in for bounds of the dtype ``found`` and a result of another: no short float, for its whole
    numbers end early, and, in every mode of promotion, that to which both promote.
    """
    short = [np.dtype("float32") if dtypes.is_floating(d) and d.itemsize < 4 else d for d in (found, asked)]
    return dtypes.least_common(*(dtypes.to_inexact_dtype(d) for d in short))


def _numbers(*given):
    """Python numbers as NumPy's of the default float; None for all else."""
    if context.trace is not None or context.debug_checks or not _NUMBERS.issuperset(map(type, given)):
        return None
    values = quiet.run(np.array, given, dtypes.canonical(F64))
    return [values[i, ...] for i in range(len(given))]


_NUMBERS = frozenset({int, float})


def _spaced(start, stop, num, endpoint, axis) -> tuple:
    """The numbers along a new ``axis``, weighted means of the bounds, and the step between them."""
    intervals = num - 1 if endpoint else num
    shape = (*start.shape[:axis], num, *start.shape[axis:])
    if direct(start) and direct(stop) and start.dtype in REAL and not start.ndim and num > 1:
        return _spaced_values(start._value, stop._value, num, intervals, endpoint)
    others = tuple(i for i in range(len(shape)) if i != axis)
    span = lax.sub(stop, start)
    step = lax.div(span, like(span, intervals)) if intervals > 0 else lax.full_like(span, np.nan)
    first, last = (lax.broadcast_in_dim(x, shape, others) for x in (start, stop))
    if num <= 1:
        return first, step
    dtype = dtypes.to_real_dtype(start.dtype)
    scale, whole = _scale(intervals, dtype)
    index = lax.iota(np.dtype("int32"), num)
    position = convert(index, dtype)
    to_stop = lax.mul(position, scale)
    to_start = lax.mul(lax.sub(like(position, intervals), position), scale)
    to_start, to_stop = (lax.broadcast_in_dim(convert(w, start.dtype), shape, (axis,)) for w in (to_start, to_stop))
    mean = lax.div(lax.add(lax.mul(to_start, first), lax.mul(to_stop, last)), convert(whole, start.dtype))
    for end, value in ((0, first), (num - 1, last))[: 1 + endpoint]:  # the bounds are exact, whatever they are
        at_end = lax.broadcast_in_dim(lax.eq(index, like(index, end)), shape, (axis,))
        mean = lax.select(at_end, value, mean)
    return mean, step


def _scale(intervals: int, dtype) -> tuple:
    """By what weights that are integers are multiplied, a power of two, and the sum of weights then.

    With the weights i and n - i, and one division by n, every number that can be represented is found exactly, as
    long as products are exact; i / n would be rounded before it is multiplied. That sums and products do not
    overflow, the weights are scaled to at most 1, which is exact.
    """
    scale = 0.5 ** math.ceil(math.log2(intervals))
    return make_array(np.array(scale, dtype)), make_array(np.array(intervals * scale, dtype))


def _spaced_values(start, stop, num, intervals, endpoint) -> tuple:
    """The same for concrete scalar bounds."""
    mean = _means(start, stop, num, intervals, endpoint)
    step = run(np.subtract, stop, start) / start.dtype.type(intervals)
    return make_array(mean), make_array(np.asarray(step))


def _means(start, stop, num, intervals, endpoint) -> np.ndarray:
    """Weighted means of two NumPy numbers of one dtype."""
    if num <= _REMEMBERED:
        mean = run(_weighted, start, stop, *_weights(num, intervals, start.dtype))
    else:  # in pieces, whose weights stay in a cache
        mean = buffers.empty((num,), start.dtype)
        for at in range(0, num, _PIECE):
            out = mean[at : at + _PIECE]
            run(_weighted, start, stop, *_weights.__wrapped__(out.size, intervals, start.dtype, at), out)
    mean[0] = start
    if endpoint:
        mean[-1] = stop
    return mean


def _weighted(start, stop, to_start, to_stop, whole, out=None) -> np.ndarray:
    mean = np.multiply(to_start, start, out)
    mean += to_stop * stop
    return np.divide(mean, whole, mean)


_REMEMBERED = 1 << 10  # numbers whose weights are kept
_PIECE = 1 << 13  # of a longer row


@functools.lru_cache(64)
def _weights(num: int, intervals: int, dtype, at: int = 0) -> tuple:
    """The weights of both bounds in numbers between them, from number ``at`` on, and their sum (see ``_scale``)."""
    scale, whole = (a._value for a in _scale(intervals, dtype))
    to_stop = np.arange(num, dtype=dtype)
    to_stop += dtype.type(at)
    to_start = np.subtract(dtype.type(intervals), to_stop)
    to_start *= scale
    to_stop *= scale
    return to_start, to_stop, whole


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers evenly spaced on a logarithmic scale, from ``base ** start`` to ``base ** stop``.

    Arguments:
      start, stop: the exponents at the bounds, arrays or scalars of shapes that broadcast together.
      num: how many numbers.
      endpoint: whether ``base ** stop`` is the last of them.
      base: the base of the exponents, an array or a scalar.
      dtype: the dtype of the result; by default a float (or complex) one.
      axis: where the new axis is in the result.
    Returns:
      An array with the axis of length ``num``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or ``num`` is not an integer known while
        tracing.

    >>> import catena.numpy as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    num = static_int(num, "'num' argument of jnp.logspace")
    dtype = user_dtype(dtype, "logspace")
    numbers = _numbers(start, stop, base)
    start, stop, base = map(make_array, numbers) if numbers else operands("logspace", start, stop, base)
    return _logspace(start, stop, num, endpoint, base, dtype, axis)


@whole
def _logspace(start, stop, num: int, endpoint: bool, base, dtype, axis: int):
    found = dtypes.promote(*((dtypes.to_inexact_dtype(d), weak) for d, weak in map(dtype_of, (start, stop, base))))[0]
    exponents = linspace(convert(start, found), convert(stop, found), num, endpoint, axis=axis)
    powers = lax.pow(*broadcast_together("logspace", [convert(base, found), exponents]))
    return convert(powers, dtype or found)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers from ``start`` to ``stop`` in geometric progression.

    Arguments:
      start, stop: the bounds, not zero, both positive, both negative or complex; arrays or scalars.
      num: how many numbers.
      endpoint: whether ``stop`` is the last of them.
      dtype: the dtype of the result; by default a float (or complex) one.
      axis: where the new axis is in the result.
    Returns:
      An array with the axis of length ``num``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or ``num`` is not an integer known while
        tracing.

    >>> import catena.numpy as jnp
    >>> jnp.geomspace(1, 1000, 4)
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    num = static_int(num, "'num' argument of jnp.geomspace")
    dtype = user_dtype(dtype, "geomspace")
    numbers = _numbers(start, stop)
    start, stop = map(make_array, numbers) if numbers else operands("geomspace", start, stop)
    return _geomspace(start, stop, _logarithms(start, stop), num, endpoint, dtype, axis)


@whole
def _geomspace(start, stop, logarithms: tuple, num: int, endpoint: bool, dtype, axis: int):
    found = dtypes.to_inexact_dtype(promoted_dtype([start, stop])[0])
    wide = _computed_in(found, dtype or found)
    start, stop = broadcast_together("geomspace", [convert(x, wide) for x in (start, stop)])
    direction = lax.sign(start)
    start, stop = lax.div(start, direction), lax.div(stop, direction)
    if logarithms and num > 1:
        exponents, _ = _spaced(*logarithms, num, endpoint, 0)
    else:
        exponents = linspace(log10(start), log10(stop), num, endpoint, axis=axis)
    powers = convert(lax.pow(lax.broadcast(like(exponents, 10.0), exponents.shape), exponents), wide)
    axis = canonical_axis(static_int(axis, "'axis' argument of jnp.geomspace"), powers.ndim)
    powers = _exact_ends(powers, start, stop, endpoint, axis)
    spread = lax.broadcast_in_dim(direction, powers.shape, tuple(i for i in range(powers.ndim) if i != axis))
    return convert(lax.mul(powers, spread), dtype or found)


def _logarithms(start, stop) -> tuple:
    """Those of concrete bounds, divided by the sign of the first, as float64: in float32, log10(1000) is not 3."""
    bounds = [scalar_array(x) if type(x) in _NUMBERS else x for x in (start, stop)]
    if any(not direct(x) or x.ndim or dtypes.is_complex(x.dtype) for x in bounds):
        return ()
    values = np.array([x._value for x in bounds], F64)
    found = run(np.log10, run(np.divide, values, np.sign(values[:1])))
    return make_array(found[0, ...]), make_array(found[1, ...])


def _exact_ends(powers, start, stop, endpoint, axis):
    """The progression with its bounds as the user gave them, not as the logarithm rounded them."""
    num = powers.shape[axis]
    others = tuple(i for i in range(powers.ndim) if i != axis)
    position = lax.broadcasted_iota(np.dtype("int32"), powers.shape, axis)
    ends = [(0, start)] + ([(num - 1, stop)] if endpoint and num > 1 else [])
    for index, value in ends:
        exact = lax.broadcast_in_dim(value, powers.shape, others)
        powers = lax.select(lax.eq(position, like(position, index)), exact, powers)
    return powers


# ---- grids


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """The coordinates of the points of a grid, one array for each axis.

    Arguments:
      *xi: the coordinates along each axis, arrays with one axis.
      copy: only True.
      sparse: whether the results keep length 1 along the other axes, instead of being repeated.
      indexing: "xy" to exchange the first two axes of the results, as plots want it; "ij" to leave them.
    Returns:
      A list of arrays, one for each of ``xi``.
    Raises:
      ValueError: an argument does not have one axis, ``copy`` is False, or ``indexing`` is something else.

    >>> import catena.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij")
    [Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32), Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)]
    """
    arrays = array_arguments("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(a.ndim != 1 for a in arrays):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[a.shape for a in arrays]}")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) >= 2:
        order[:2] = [1, 0]
    shape = [0] * len(arrays)
    for axis, a in zip(order, arrays, strict=True):
        shape[axis] = a.shape[0]
    return [_along(a, axis, shape, sparse) for axis, a in zip(order, arrays, strict=True)]


def _along(a, axis: int, shape: list, sparse: bool):
    own = tuple(n if i == axis or not sparse else 1 for i, n in enumerate(shape))
    return lax.broadcast_in_dim(a, own, (axis,))


def indices(dimensions: Shape, dtype: DTypeLike | None = None, sparse: bool = False) -> Array | tuple[Array, ...]:
    """The indices of all elements of an array, one array of them for each axis.

    Arguments:
      dimensions: the shape of the array.
      dtype: the dtype of the indices; None for the default integer.
      sparse: whether to return a tuple of arrays that broadcast together, instead of one array.
    Returns:
      An array of shape ``(len(dimensions), *dimensions)``, or a tuple of arrays.
    Raises:
      TypeError: ``dimensions`` is not made of non-negative integers.

    >>> import catena.numpy as jnp
    >>> jnp.indices((2,))
    Array([[0, 1]], dtype=int32)
    """
    dtype = user_dtype(dtype, "indices", default_int())
    shape = shape_argument(dimensions)
    own = [tuple(n if i == axis or not sparse else 1 for i, n in enumerate(shape)) for axis in range(len(shape))]
    grids = tuple(lax.broadcasted_iota(dtype, s, axis) for axis, s in enumerate(own))
    if sparse:
        return grids
    if not grids:
        return make_array(np.zeros((0,), dtype))
    return lax.concatenate([lax.expand_dims(g, (0,)) for g in grids], 0)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """What ``function`` gives for the indices of the elements of an array of ``shape``.

    Arguments:
      function: a function of one index for each axis, arrays without axes; it returns any tree of arrays. It is called
        once for all elements, under ``vmap``.
      shape: the shape of the array.
      dtype: the dtype of the indices.
      **kwargs: passed on to ``function`` as they are.
    Returns:
      What ``function`` returns, each array with ``shape`` in front of its own.
    Raises:
      TypeError: ``shape`` is not made of non-negative integers.

    >>> import catena.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
    Array([[ 0, 10],
           [ 1, 11]], dtype=int32)
    """
    shape = shape_argument(shape)
    dtype = user_dtype(dtype, "fromfunction")
    of_index = functools.partial(function, **kwargs)
    for axis in reversed(range(len(shape))):
        of_index = vmap(of_index, in_axes=tuple(0 if i == axis else None for i in range(len(shape))))
    return of_index(*(arange(n, dtype=dtype) for n in shape))


class _Grid:
    """``mgrid`` and ``ogrid``: grids by indexing with slices; an imaginary step counts the points."""

    def __init__(self, sparse: bool, doc: str):
        self._sparse = sparse
        self._name = "jnp.ogrid" if sparse else "jnp.mgrid"
        self.__doc__ = doc

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return slice_range(key, self._name)
        if not key:
            return [] if self._sparse else lax.full((0,), 0, default_int())
        axes = [slice_range(k, self._name) for k in key]
        dtype = dtypes.promote(*((a.dtype, False) for a in axes))[0]
        grids = meshgrid(*(convert(a, dtype) for a in axes), sparse=self._sparse, indexing="ij")
        if self._sparse:
            return grids
        return lax.concatenate([lax.expand_dims(g, (0,)) for g in grids], 0)


def slice_range(key: slice, name: str) -> Array:
    """The numbers that a slice given to the object ``name`` stands for: a range, or with an imaginary step that
    many numbers, ends included.
    """
    start, stop, step = (
        concrete_or_error(lambda v: v, getattr(key, part), f"slice {part} of {name}")
        for part in ("start", "stop", "step")
    )
    start = 0 if start is None else start
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, 1 if step is None else step)


mgrid = _Grid(
    sparse=False,
    doc="Dense grids of coordinates: ``mgrid[0:2, 0:1:3j]`` is one array, an axis for each slice.",
)
ogrid = _Grid(sparse=True, doc="Open grids of coordinates: ``ogrid[0:2, 0:1:3j]`` are arrays that broadcast together.")
