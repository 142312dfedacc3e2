"""The vector product."""

from __future__ import annotations

import operator

import numpy as np

from catena import lax
from catena.core.array import Array, make_array
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, broadcast_together, canonical_axis, direct, run, strong
from catena.numpy.hot import NUMBER
from catena.numpy.manipulation import moveaxis
from catena.numpy.promotion import promote_dtypes
from catena.numpy.reading import read
from catena.typing import ArrayLike


@whole
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The vector products of vectors in two or three dimensions.

    Arguments:
      a, b: arrays that broadcast but for the axis of vectors.
      axisa, axisb, axisc: the axis over which the vectors of ``a``, ``b`` and the result run.
      axis: the same axis for all three.
    Returns:
      An array; of two vectors in two dimensions only the third component, without that axis.
    Raises:
      ValueError: vectors have neither two nor three components.

    >>> import catena.numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if type(a) is Array and type(b) is Array and direct(a) and axis is None and a.dtype is b.dtype in NUMBER:
        if a.shape == b.shape and a.shape[-1:] == (3,) and axisa == axisb == axisc == -1:
            return make_array(run(_cross_by_numpy, a._value, b._value))
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = as_array_argument("cross", a), as_array_argument("cross", b, 1)
    a = moveaxis(a, canonical_axis(operator.index(axisa), a.ndim), -1)
    b = moveaxis(b, canonical_axis(operator.index(axisb), b.ndim), -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    first, second = ([read(x, (..., i)) for i in range(x.shape[-1])] for x in (a, b))
    parts = promote_dtypes("cross", *first, *second)
    first, second = parts[: len(first)], parts[len(first) :]
    if len(first) == len(second) == 2:
        return _minor(first, second, 0, 1)
    parts = _components(first, second)
    result = lax.stack(broadcast_together("cross", parts), parts[0].ndim)
    return strong(moveaxis(result, -1, canonical_axis(operator.index(axisc), result.ndim)))


def _cross_by_numpy(a, b):
    """The products of vectors of three components along the last axis."""
    out = np.empty_like(a)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.subtract(a[..., j] * b[..., k], a[..., k] * b[..., j], out=out[..., i])
    return out


def _product(x, y):
    return lax.mul(*broadcast_together("cross", [x, y]))


def _minor(a, b, i: int, j: int):
    return lax.sub(_product(a[i], b[j]), _product(a[j], b[i]))


def _components(a: list, b: list) -> list:
    """The three components; a missing third component is 0, and its products are left out."""
    third = _minor(a, b, 0, 1)
    if len(a) == 3 and len(b) == 3:
        return [_minor(a, b, 1, 2), _minor(a, b, 2, 0), third]
    if len(a) == 3:
        return [lax.neg(_product(a[2], b[1])), _product(a[2], b[0]), third]
    return [_product(a[1], b[2]), lax.neg(_product(a[0], b[2])), third]
