"""Images: values between the elements of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.namespace import shown as _shown
from catena.lax.whole import whole
from catena.transform.jit import jit
from catena.typing import ArrayLike

__all__ = ["map_coordinates"]


def _mirrored(i, n: int):
    """Places reflected at the middles of the first and the last element."""
    around = jnp.mod(i, max(2 * (n - 1), 1))
    return jnp.where(around < n, around, 2 * (n - 1) - around)


def _reflected(i, n: int):
    """Places reflected at the borders of the first and the last element."""
    around = jnp.mod(i, 2 * n)
    return jnp.where(around < n, around, 2 * n - 1 - around)


# From a place, an integer, and the size to the place that stands for it.
_MODES = {
    "constant": lambda i, n: jnp.clip(i, 0, n - 1),  # beyond which the constant is taken
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: jnp.mod(i, n),
    "mirror": _mirrored,
    "reflect": _reflected,
}


@whole
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Values of an array at coordinates between its elements.

    Arguments:
      input: an array of rank ``n``.
      coordinates: ``n`` arrays of one shape, or what broadcasts: the coordinates along each axis, in elements.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: what lies beyond the array: "constant", "nearest" (the last element), "wrap" (the array again), "mirror"
        (reflected at the middle of the last element), "reflect" (at its border).
      cval: the constant.
    Returns:
      An array of the shape of the coordinates and of the dtype of ``input``; integers are rounded, halves away from 0.
    Raises:
      NotImplementedError: the order or the mode is another, as in JAX.
      ValueError: there is not one array of coordinates for each axis. TypeError: coordinates are not real.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.ndimage.map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.9, 3.0])], order=1)
    Array([ 5., 19.,  0.], dtype=float32)
    """
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 or 1, got {order!r}")
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    x = jnp.asarray(input)
    coordinates = [jnp.asarray(c) for c in coordinates]
    if len(coordinates) != x.ndim:
        raise ValueError(f"map_coordinates: there must be {x.ndim} arrays of coordinates, got {len(coordinates)}")
    for c in coordinates:
        if dtypes.is_complex(c.dtype):
            raise TypeError(f"map_coordinates: coordinates must be real, got {c.dtype}")
    try:
        shape = lax.broadcast_shapes(*(c.shape for c in coordinates))
    except ValueError as error:
        raise TypeError(f"map_coordinates: {error}") from None
    if not x.size and all(shape):
        raise TypeError(f"map_coordinates: input must have elements, got shape {x.shape}")
    cval = jnp.asarray(cval)
    if dtypes.is_complex(cval.dtype) or cval.ndim:
        raise TypeError(f"map_coordinates: cval must be a real scalar, got {cval.dtype} of shape {cval.shape}")
    return _interpolated(x, [jnp.broadcast_to(c, shape) for c in coordinates], cval, order=int(order), mode=mode)


def _interpolated_untyped(x, coordinates, cval, *, order: int, mode: str):
    nodes = [_nodes(c, n, order, mode) for c, n in zip(coordinates, x.shape, strict=True)]
    total = None
    for corner in itertools.product(*nodes):
        value = _taken(x, [place for place, _, _ in corner])
        weight = None
        for _, w, inside in corner:
            if inside is not None:
                value = jnp.where(inside, value, cval.astype(value.dtype))
            weight = w if weight is None or w is None else weight * w
        value = value if weight is None else value * weight
        total = value if total is None else total + value
    if dtypes.is_inexact(x.dtype) or x.dtype == bool:
        return total.astype(x.dtype)
    return (lax.round(total) if dtypes.is_inexact(total.dtype) else total).astype(x.dtype)


def _taken(x, places: list):
    """Elements at places that are in the array: by one number each, which is computed where it is used."""
    if not places or x.size > np.iinfo(np.int32).max:
        return x[tuple(places)]
    number = places[0]
    for place, n in zip(places[1:], x.shape[1:], strict=True):
        number = number * n + place
    return x.ravel().at[number].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _nodes(c, n: int, order: int, mode: str) -> list:
    """The elements beside coordinates along one axis: their places, weights, and whether they are in the array."""
    c = c if dtypes.is_inexact(c.dtype) else c.astype(dtypes.to_inexact_dtype(c.dtype))
    low = jnp.floor(c) if order else lax.round(c, lax.RoundingMethod.AWAY_FROM_ZERO)
    first = low.astype(np.int32)
    places = [(first, None)] if order == 0 else [(first, 1 - (c - low)), (first + 1, c - low)]
    within = lambda i: (i >= 0) & (i < n) if mode == "constant" else None  # noqa: E731
    return [(_MODES[mode](place, n), weight, within(place)) for place, weight in places]


_interpolated = jit(_interpolated_untyped, static_argnames=("order", "mode"))

__dir__ = _shown(globals())
