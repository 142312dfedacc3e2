"""Interpolation of values on a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np

from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.errors import ConcretizationTypeError
from catena.core.namespace import shown as _shown
from catena.core.trace import find_concrete
from catena.core.tree import register_pytree_node_class
from catena.numpy.boundary import as_array_argument
from catena.numpy.promotion import promote_dtypes, promote_dtypes_inexact
from catena.typing import ArrayLike

_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """A function between its values on a grid of rectangles.

    Arguments:
      points: the coordinates of the grid along each of its ``d`` axes, ascending: arrays ``(n1,)``, ..., ``(nd,)``.
      values: what it is there, ``(n1, ..., nd, ...)``.
      method: ``"linear"``, or ``"nearest"`` for the value of the nearest point of the grid, the one before it of two.
      bounds_error: whether points outside of the grid are an error; they have to be known then.
      fill_value: what the function is outside of the grid; None for what the nearest cell says.
    Returns:
      The function: of points, to values between.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: there is no such method, the points are not 1-D or do not fit the values, or the fill value has no
        place among them.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.interpolate import RegularGridInterpolator
    >>> x = jnp.arange(3.0)
    >>> plane = RegularGridInterpolator((x, x), 10 * x[:, None] + x)
    >>> plane(jnp.array([[0.5, 1.5], [2.0, 9.0]]))
    Array([6.5, nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ):
        self.method, self.bounds_error = _checked_method(method), bounds_error
        (self.values,) = promote_dtypes_inexact("RegularGridInterpolator", values)
        self.grid = tuple(promote_dtypes("RegularGridInterpolator", p)[0] for p in points)
        lengths = tuple(p.shape for p in self.grid)
        if lengths != tuple((n,) for n in self.values.shape[: len(self.grid)]):
            raise ValueError(
                "RegularGridInterpolator: points must be 1-D, of the lengths of the first axes of values, got the "
                f"shapes {', '.join(map(str, lengths))} and {self.values.shape}"
            )
        self.fill_value = fill_value
        if fill_value is not None:
            self.fill_value = as_array_argument("RegularGridInterpolator", fill_value, "at argument 'fill_value'")
            if dtypes.is_complex(self.fill_value.dtype) and not dtypes.is_complex(self.values.dtype):
                raise ValueError("RegularGridInterpolator: fill_value is complex, but values are real")

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """The values at points.

        Arguments:
          xi: the points, ``(..., d)``, or a tuple of the arrays of their coordinates, which broadcast together.
          method: ``"linear"`` or ``"nearest"``; by default that of the interpolator.
        Returns:
          An array ``(..., *values.shape[d:])``; a single point ``(d,)`` counts as one of a row.
        Raises:
          ValueError: there is no such method, the points do not have ``d`` coordinates, or they are outside of the
            grid where that is an error.
        """
        method = self.method if method is None else _checked_method(method)
        coordinates = self._coordinates(xi)
        outside = reduce(jnp.logical_or, [(x < p[0]) | (x > p[-1]) for x, p in zip(coordinates, self.grid)])
        if self.bounds_error:
            _refuse(outside)
        cells = [
            _cell(*promote_dtypes_inexact("RegularGridInterpolator", *both)) for both in zip(self.grid, coordinates)
        ]
        result = (self._linear if method == "linear" else self._nearest)(cells)
        if self.bounds_error or self.fill_value is None:
            return result
        return jnp.where(self._spread(outside), self.fill_value.astype(result.dtype), result)

    def tree_flatten(self):
        """The grid, the values and what is outside; the method and what is an error are fixed."""
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The interpolator of these parts."""
        self = cls.__new__(cls)
        (self.grid, self.values, self.fill_value), (self.method, self.bounds_error) = children, aux_data
        return self

    def _coordinates(self, xi) -> list:
        """The coordinates of points, an array for each axis of the grid."""
        d = len(self.grid)
        if isinstance(xi, tuple):
            xi = jnp.broadcast_arrays(*promote_dtypes("RegularGridInterpolator", *xi))
            xi = jnp.stack(xi, axis=-1)
        else:
            (xi,) = promote_dtypes("RegularGridInterpolator", xi)
            if xi.ndim < 2:
                xi = xi.reshape(-1, 1) if d == 1 else xi.reshape(1, -1)
        if xi.shape[-1] != d:
            raise ValueError(
                f"RegularGridInterpolator: points must have {d} coordinates, as the grid, got the shape {xi.shape}"
            )
        return [xi[..., i] for i in range(d)]

    def _spread(self, x):
        """Numbers for each point, to meet values that have axes of their own."""
        return x.reshape(x.shape + (1,) * (self.values.ndim - len(self.grid)))

    def _linear(self, cells):
        """The sum over the corners of a cell, weighted by the share of the opposite part."""
        total = 0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            shares = [share if upper else 1 - share for (_, share), upper in zip(cells, corner)]
            weight = reduce(jnp.multiply, shares)
            total = total + self._spread(weight) * self.values[tuple(i + up for (i, _), up in zip(cells, corner))]
        return total

    def _nearest(self, cells):
        nan = reduce(jnp.logical_or, [share != share for _, share in cells])
        found = self.values[tuple(jnp.where(share <= 0.5, i, i + 1) for i, share in cells)]
        return jnp.where(self._spread(nan), jnp.nan, found)


def _checked_method(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"RegularGridInterpolator: method must be one of {', '.join(_METHODS)}, got {method!r}")
    return method


def _cell(grid, x) -> tuple:
    """The cell of a grid in which coordinates lie, the first or last one where they are outside, and where in it."""
    i = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, max(len(grid) - 2, 0))
    return i, (x - grid[i]) / (grid[i + 1] - grid[i])


def _refuse(outside):
    known = find_concrete(outside)
    if known is None:
        raise ConcretizationTypeError(outside, "RegularGridInterpolator with bounds_error=True looks at the points.")
    if np.any(known._value):
        raise ValueError("RegularGridInterpolator: some points are outside of the grid, and bounds_error is set")


__dir__ = _shown(globals())
