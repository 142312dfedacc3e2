"""Resampling of arrays: each axis by a matrix of weights, which is almost empty where a new sample has few old ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from catena import lax, numpy
from catena.core import dtypes
from catena.core.array import Array
from catena.image.weights import ResizeMethod, weights
from catena.lax.contraction import canonicalize_precision
from catena.lax.structure import canonical_shape
from catena.numpy.boundary import as_array_argument, canonical_axis, convert
from catena.transform.custom_gradient import linear_call
from catena.transform.custom_jvp import custom_jvp
from catena.transform.custom_vmap import custom_vmap
from catena.transform.jit import jit
from catena.transform.vmap import vmap

EPS = float(np.finfo(np.float32).eps)  # whatever the dtype: what it decides should not depend on it
MOST_TAPS = 24  # of a new sample, up to which it is summed from them; a product of matrices is quicker beyond
FEW = 16  # taken of each new sample where only the program that runs knows how many there are, if that is enough


def _method(method) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"a resize method is a string or a ResizeMethod, got {method!r}")
    return method


def _arguments(name: str, image, shape, method, precision) -> tuple:
    image, shape, method = as_array_argument(name, image), canonical_shape(shape), _method(method)
    canonicalize_precision(precision)
    if any(n < 0 for n in shape):
        raise ValueError(f"{name}: the lengths of a shape must not be negative, got {shape}")
    if len(shape) != image.ndim:
        raise ValueError(
            f"{name}: the shape must have a length for each axis of the image, got {shape} for {image.shape}"
        )
    return image, shape, method


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An array resampled to another shape: the corners of old and new samples' areas coincide.

    Arguments:
      image: an array of any rank; integers and booleans become floats, but for "nearest".
      shape: the new shape, of the same rank.
      method: how to interpolate: "nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", or a `ResizeMethod`.
      antialias: whether to weigh in all old samples where new ones are sparser; "nearest" never does, "area" always.
      precision: how precisely accelerators multiply; CPUs always use the full precision of the dtype.
    Returns:
      An array of that shape.
    Raises:
      TypeError: ``image`` is not an array, or ``method`` or a length is of another type.
      ValueError: ``shape`` has another rank, the method is unknown, or an axis without elements is to have some.

    >>> import catena.numpy as jnp
    >>> from catena import image
    >>> image.resize(jnp.array([0.0, 4.0, 8.0]), (5,), "linear")
    Array([0. , 1.6, 4. , 6.4, 8. ], dtype=float32)

    Source: see `catena.image.weights`.
    """
    image, shape, method = _arguments("resize", image, shape, method, precision)
    changes = _changes(image.shape, shape)
    if method is not ResizeMethod.NEAREST:
        image = convert(image, dtypes.to_inexact_dtype(image.dtype), image.weak_type)
    if not all(shape):
        return lax.full(shape, 0, image.dtype)
    if any(not n for n, _, _ in changes):
        raise ValueError(f"resize: an axis without elements cannot get some: {image.shape} to {shape}")
    if not changes:
        return image
    return _nearest(image, shape) if method is ResizeMethod.NEAREST else _resized(image, shape, method, bool(antialias))


def _changes(shape, new_shape) -> list:
    """``(n, new, axis)`` of the axes whose lengths change; those that shrink most come first, to leave less to do."""
    pairs = enumerate(zip(shape, new_shape, strict=True))
    return sorted(((n, new, axis) for axis, (n, new) in pairs if n != new), key=lambda c: c[1] / max(c[0], 1))


@partial(jit, static_argnums=1)
def _nearest(image, shape):
    for n, new, axis in _changes(image.shape, shape):
        image = numpy.take(image, (2 * np.arange(new) + 1) * n // (2 * new), axis, mode="clip")
    return image


@partial(jit, static_argnums=(1, 2, 3))
def _resized(image, shape, method, antialias):
    for n, new, axis in _changes(image.shape, shape):
        forth, back = line(method, n, new, antialias)
        image = linear_call(partial(_applied, forth, axis), partial(_applied, back, axis), (), image)
    return image


@lru_cache(256)
def line(method: ResizeMethod, n: int, new: int, antialias: bool) -> tuple:
    """The weights that take lines of ``n`` samples to ``new``, and their transpose, each as ``taps`` gives it."""
    matrix = weights(np, method, n, new, np.float64(n / new), 0.0, antialias, EPS)
    return taps(matrix), taps(matrix.T)


def taps(matrix) -> tuple:
    """A matrix of few rows per column as ``(first rows, weights (taps, columns))``; else ``(None, matrix)``."""
    used = matrix != 0
    first = np.where(used.any(0), used.argmax(0), 0)
    count = int((len(used) - used[::-1].argmax(0) - first)[used.any(0)].max(initial=1))
    if count > MOST_TAPS or 2 * count > len(matrix):
        return None, matrix
    first = np.minimum(first, len(matrix) - count)
    return first, np.take_along_axis(matrix, first + np.arange(count)[:, None], 0)


def _applied(line: tuple, axis: int, _, x):
    """A line of new samples for each along an axis."""
    first, factors = line
    if first is None:
        return _product(x, factors, axis)
    along = lambda w: lax.convert_element_type(w.reshape(-1, *[1] * (x.ndim - axis - 1)), x.dtype)
    return sum(numpy.take(x, first + k, axis, mode="clip") * along(w) for k, w in enumerate(factors))


def _product(x, matrix, axis: int):
    """``x`` with the lines along an axis multiplied by a matrix."""
    out = lax.dot_general(x, lax.convert_element_type(matrix, x.dtype), (((axis,), (0,)), ((), ())))
    return numpy.moveaxis(out, -1, axis)


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An array scaled and moved: what was at ``x`` along an axis is at ``scale * x + translation``.

    Places count from the corner of the first sample's area, so that the first sample is at 0.5. What comes from
    beyond the image is zero.

    Arguments:
      image: an array of any rank; integers and booleans become floats.
      shape: the new shape, of the same rank; only the lengths of ``spatial_dims`` are read.
      spatial_dims: the axes that are scaled and moved.
      scale: an array ``(len(spatial_dims),)`` of how much; it may be traced, and differentiated.
      translation: an array ``(len(spatial_dims),)`` of how far, in new samples; likewise.
      method: how to interpolate, as for `resize`, but not "nearest".
      antialias: whether to weigh in all old samples where new ones are sparser; "area" always does.
      precision: how precisely accelerators multiply; CPUs always use the full precision of the dtype.
    Returns:
      An array.
    Raises:
      TypeError: an argument is not an array, or of another type.
      ValueError: the lengths of arguments do not fit, an axis is out of bounds or comes twice, or the method is
        unknown or "nearest".

    >>> import catena.numpy as jnp
    >>> from catena import image
    >>> x = jnp.array([0.0, 4.0, 8.0])
    >>> image.scale_and_translate(x, (4,), (0,), jnp.array([1.0]), jnp.array([0.5]), "linear")
    Array([0., 2., 6., 8.], dtype=float32)

    Source: see `catena.image.weights`.
    """
    name = "scale_and_translate"
    image, shape, method = _arguments(name, image, shape, method, precision)
    if method is ResizeMethod.NEAREST:
        raise ValueError(f"{name}: the method 'nearest' is only there for resize")
    axes = tuple(canonical_axis(operator.index(i), image.ndim) for i in spatial_dims)
    scale, translation = as_array_argument(name, scale, "scale"), as_array_argument(name, translation, "translation")
    for argument, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(axes),):
            error = ValueError if x.ndim else TypeError
            raise error(f"{name}: {argument} must have the shape ({len(axes)},) of spatial_dims, got {x.shape}")
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: an axis comes twice in spatial_dims: {tuple(spatial_dims)}")
    image = convert(image, dtypes.to_inexact_dtype(image.dtype), image.weak_type)
    return _moved(image, scale, translation, shape, axes, method, bool(antialias)) if axes else image


@partial(jit, static_argnums=(3, 4, 5, 6))
def _moved(image, scale, translation, shape, axes, method, antialias):
    dtype = dtypes.promote_types(dtypes.promote_types(scale.dtype, translation.dtype), np.float32)
    for i, axis in enumerate(axes):
        step = 1 / scale[i].astype(dtype)
        moved = translation[i].astype(dtype)
        matrix = weights(numpy, method, image.shape[axis], shape[axis], step, moved, antialias, EPS)
        image = product_along(axis)(image, matrix)
    return image


@lru_cache(32)
def product_along(axis: int):
    """`_product` of a matrix that is known when the program runs: where it has few rows per column, new samples are
    summed from these. Derivatives, and products of which there are many, are products of matrices all the same.
    """
    dense = partial(_product, axis=axis)

    @custom_vmap
    def quick(x, matrix):
        used, n = matrix != 0, len(matrix)
        if n < 2 * FEW:
            return dense(x, matrix)
        first, last = numpy.argmax(used, 0), n - numpy.argmax(used[::-1], 0)
        few = numpy.all(~numpy.any(used, 0) | (last - first <= FEW))
        first = numpy.minimum(first, n - FEW)

        def sparse(x, matrix):
            factors = numpy.take_along_axis(matrix, first + np.arange(FEW)[:, None], 0)
            return _applied((first, factors), axis, (), x)

        return lax.cond(few, sparse, dense, x, matrix)

    @quick.def_vmap
    def _(size, batched, x, matrix):
        return vmap(dense, in_axes=tuple(0 if b else None for b in batched))(x, matrix), True

    product = custom_jvp(quick)
    product.defjvps(lambda dx, out, x, matrix: dense(dx, matrix), lambda dm, out, x, matrix: dense(x, dm))
    return product
