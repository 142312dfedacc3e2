"""Elements by position: ``take``, ``put``, their kin along an axis, and the diagonal."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.shapes import position_dtype
from catena.lax.policy import LARGE
from catena.lax.positions import around, as_position, from_end
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis, direct, refuse_out
from catena.numpy.index_update import IndexUpdateRef
from catena.numpy.reading import fill_scalar, read
from catena.numpy.selection import nonzero
from catena.numpy.shaping import broadcast_to as broadcast_to_shape
from catena.numpy.shaping import ravel, reshaped
from catena.typing import ArrayLike

_MODES = {None: "fill", "fill": "fill", "clip": "clip", "wrap": "wrap"}


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The slices of an array at positions along an axis.

    Arguments:
      a: an array.
      indices: integers, of any shape.
      axis: the axis; None takes from the flattened array.
      out: must be None.
      mode: for positions out of bounds: "fill" (or None) gives ``fill_value``, where negative ones count from
        the end; "wrap" takes them modulo the length; "clip" takes the nearest, 0 for negative ones.
      unique_indices, indices_are_sorted: promises that make gradients cheaper.
      fill_value: by default NaN, the smallest signed or the largest unsigned integer, or True.
    Returns:
      An array in which ``axis`` is replaced by the axes of ``indices``.
    Raises:
      ValueError: the axis is out of bounds, or the mode unknown. IndexError: something is taken from an empty
        axis.

    >>> import catena.numpy as jnp
    >>> jnp.take(jnp.array([1.0, 2.0]), jnp.array([1, -1, 5]))
    Array([ 2.,  2., nan], dtype=float32)
    """
    if type(a) is Array and type(indices) is Array and direct(a) and out is None and mode in _TAKE_FAST:
        result = _take_at_once(a, indices, axis, mode)
        if result is not None:
            return result
    refuse_out("take", out)
    return _any_take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value)


@whole
def _any_take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value):
    a, indices = as_array_argument("take", a, 0), as_array_argument("take", indices, 1)
    if axis is None:
        a, axis = reshaped(a, (a.size,)), 0
    axis = canonical_axis(operator.index(axis), a.ndim)
    indices = _integers(indices)
    mode = _take_mode(mode)
    if not a.shape[axis] and indices.size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode == "wrap":
        indices, mode = around(indices, a.shape[axis]), "clip"
    index = (slice(None),) * axis + (indices,)
    return read(a, index, mode, fill_value, indices_are_sorted, unique_indices, wrap=mode == "fill")


_U64 = np.dtype("uint64")  # whose greatest numbers no other integers hold
_TAKE_FAST = {None: "raise", "fill": "raise", "clip": "clip", "wrap": "wrap"}


def _take_at_once(a, indices, axis, mode):
    """The elements by NumPy; None where something is out of bounds or wrong."""
    index = indices._value
    if index.size >= LARGE or index.dtype.kind not in "iu" or index.dtype == _U64:
        return None
    if axis is not None and type(axis) is not int:
        return None
    try:
        return make_array(np.asarray(a._value.take(index.astype(np.intp), axis, mode=_TAKE_FAST[mode])), a.weak_type)
    except (IndexError, ValueError):
        return None


def _take_mode(mode) -> str:
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in _MODES:
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    return _MODES[mode]


def _integers(indices):
    """Indices as integers: booleans count as 0 and 1."""
    if indices.dtype == dtypes.BOOL:
        return lax.convert_element_type(indices, np.dtype("int32"))
    if not dtypes.is_integer(indices.dtype):
        raise ValueError(f"indices must have an integer type, got {dtypes.dtype_name(indices.dtype)}")
    return indices


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | lax.GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Of each position, the element of its line along an axis that an index says, as ``argsort`` gives them.

    Arguments:
      arr: an array.
      indices: integers, of as many dimensions; those but ``axis`` broadcast with ``arr``.
      axis: the axis; None flattens ``arr``, and indices are 1-D.
      mode: for indices out of bounds: "fill" (or None), "clip", "promise_in_bounds", or "one_hot", which fills
        with zeros: what a product with one-hot vectors gives.
      fill_value: for "fill": by default NaN, the smallest signed or the largest unsigned integer, or True.
      wrap_negative_indices: whether negative indices count from the end; by default they do.
    Returns:
      An array of the shape of ``indices``, broadcast.
    Raises:
      TypeError: the indices are not integers. ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> x = jnp.array([[3, 1], [2, 5]])
    >>> jnp.take_along_axis(x, jnp.array([[1], [0]]), axis=1)
    Array([[1],
           [2]], dtype=int32)
    """
    arr = as_array_argument("take_along_axis", arr, 0)
    indices = as_array_argument("take_along_axis", indices, 1)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {dtypes.dtype_name(indices.dtype)}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {indices.shape}")
        return take_along_axis(ravel(arr), indices, 0, mode, fill_value, wrap_negative_indices=wrap_negative_indices)
    if indices.ndim != arr.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices.ndim} vs. {arr.ndim}")
    axis = canonical_axis(operator.index(axis), arr.ndim)
    if not arr.shape[axis] and indices.size:
        raise IndexError("Cannot do a non-empty jnp.take_along_axis() from an empty axis.")
    wrap = wrap_negative_indices is None or wrap_negative_indices
    mode = lax.GatherScatterMode.from_any("fill" if mode is None else mode)
    if mode is lax.GatherScatterMode.ONE_HOT:
        mode, fill_value = lax.GatherScatterMode.FILL_OR_DROP, 0
    if arr.ndim == 1 and wrap and indices.size < LARGE and (found := _taken(arr, indices, 0)) is not None:
        return found
    return _along(arr, indices, axis, mode, fill_value, wrap)


def _taken(arr, indices, axis: int) -> Array | None:
    """``take_along_axis`` by NumPy; None where that is not asked, and where the general path fills, or refuses."""
    if not (direct(arr) and direct(indices)):
        return None
    try:
        if arr.ndim == 1:
            return make_array(arr._value.take(indices._value), arr.weak_type)
        return make_array(np.take_along_axis(arr._value, indices._value, axis), arr.weak_type)
    except (IndexError, ValueError, TypeError):
        return None


@whole
def _along(arr, indices, axis: int, mode, fill_value, wrap: bool):
    """``take_along_axis`` as one gather of single elements, of which the other axes are batch axes. NumPy, which makes
    indices of all axes, does the first calls.
    """
    if wrap and (found := _taken(arr, indices, axis)) is not None:
        return found
    others = lambda shape: tuple(1 if i == axis else n for i, n in enumerate(shape))  # noqa: E731
    common, size = lax.broadcast_shapes(indices.shape, others(arr.shape)), arr.shape[axis]
    if 0 in common:
        return lax.full(common, 0, arr.dtype)
    arr = broadcast_to_shape(arr, tuple(size if i == axis else n for i, n in enumerate(common)))
    places = from_end(indices, size) if wrap else as_position(indices, position_dtype(size, indices.dtype))
    places = lax.expand_dims(broadcast_to_shape(places, common), (len(common),))
    batch = tuple(i for i in range(len(common)) if i != axis)
    numbers = lax.GatherDimensionNumbers((), (axis,), (axis,), batch, batch)
    sizes = (1,) * len(common)
    return lax.gather(arr, places, numbers, sizes, mode=mode, fill_value=fill_scalar(fill_value))


def along_index(shape: tuple, axis: int, indices) -> tuple:
    """The index of all positions of ``shape``, with ``indices`` in the place of those along ``axis``."""
    rank = len(shape)
    return tuple(
        indices if i == axis else np.arange(n).reshape((n,) + (1,) * (rank - i - 1)) for i, n in enumerate(shape)
    )


# ----------------------------------------------------------------------------------------------------
# Writing


def refuse_in_place(name: str, inplace: bool):
    """Functions that write into arguments in NumPy return a new array here, and want to be told so."""
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass inplace=False to "
            "instead return an updated array."
        )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy of an array with elements of the flattened array replaced.

    Arguments:
      a: an array.
      ind: their positions.
      v: the values, repeated as often as needed.
      mode: for positions out of bounds: "clip" (or None) takes the nearest, "wrap" takes them modulo the
        size.
      inplace: must be False.
    Returns:
      An array like ``a``.
    Raises:
      ValueError: ``inplace`` is True, or the mode is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), jnp.array([7.0, 8.0]), inplace=False)
    Array([7., 0., 8., 0.], dtype=float32)
    """
    refuse_in_place("put", inplace)
    a, ind, v = (as_array_argument("put", x, i) for i, x in enumerate((a, ind, v)))
    if not a.size or not ind.size or not v.size:
        return a
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    ind, v = ravel(ind), ravel(v)
    values = read(v, np.arange(ind.size) % v.size) if v.size != ind.size else v
    if ind.dtype == dtypes.BOOL:  # positions 0 and 1, as in NumPy
        ind = lax.convert_element_type(ind, np.dtype("int32"))
    if mode == "wrap":
        ind = around(_integers(ind), a.size)
    flat = IndexUpdateRef(ravel(a), ind).set(values, mode="clip")
    return reshaped(flat, a.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy of an array with the elements replaced that ``take_along_axis`` would take.

    Arguments:
      arr: an array.
      indices: integers, of as many dimensions; those but ``axis`` broadcast with ``arr``.
      values: the values, which broadcast to the shape of ``indices``.
      axis: the axis; None flattens ``arr``, and indices are 1-D.
      inplace: must be False.
      mode: for indices out of bounds: "drop" (or "fill", or None) skips them, "clip" takes the nearest.
    Returns:
      An array like ``arr``.
    Raises:
      ValueError: ``inplace`` is True, or the shapes do not fit. TypeError: the indices are not integers.

    >>> import catena.numpy as jnp
    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 5.0, axis=1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], dtype=float32)
    """
    refuse_in_place("put_along_axis", inplace)
    arr, indices, values = (as_array_argument("put_along_axis", x, i) for i, x in enumerate((arr, indices, values)))
    if axis is None:
        flat = put_along_axis(ravel(arr), indices, values, 0, False, mode=mode)
        return reshaped(flat, arr.shape)
    if indices.ndim != arr.ndim:
        raise ValueError(
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={arr.ndim} and indices.ndim={indices.ndim}."
        )
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"put_along_axis indices must be of integer type, got {dtypes.dtype_name(indices.dtype)}")
    axis = canonical_axis(operator.index(axis), arr.ndim)
    shape = tuple(indices.shape[i] if i == axis else n for i, n in enumerate(arr.shape))
    indices = broadcast_to_shape(indices, shape)
    return IndexUpdateRef(arr, along_index(shape, axis, indices)).set(values, mode=mode)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of an array with the elements replaced where a mask holds.

    Arguments:
      arr: an array.
      mask: an array of the same size.
      vals: the values, in order, repeated as often as needed.
      inplace: must be False.
    Returns:
      An array like ``arr``.
    Raises:
      ValueError: ``inplace`` is True, the sizes differ, or there are no values.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.place(x, x > 1, jnp.array([7, 8]), inplace=False)
    Array([0, 1, 7, 8], dtype=int32)
    """
    refuse_in_place("place", inplace)
    arr, mask, vals = (as_array_argument("place", x, i) for i, x in enumerate((arr, mask, vals)))
    if arr.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    vals = ravel(vals)
    if not arr.size:
        return arr
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    (where,) = nonzero(ravel(mask), size=arr.size, fill_value=arr.size)
    values = read(vals, np.arange(arr.size) % vals.size)
    flat = IndexUpdateRef(ravel(arr), where).set(values, mode="drop")
    return reshaped(flat, arr.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy of an array with its main diagonal replaced.

    Arguments:
      a: an array of at least two dimensions; of equal lengths where there are more.
      val: the values, repeated as often as needed.
      wrap: must be False.
      inplace: must be False.
    Returns:
      An array like ``a``.
    Raises:
      NotImplementedError: ``inplace`` or ``wrap`` is True. ValueError: the shape does not fit.

    >>> import catena.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a, val = as_array_argument("fill_diagonal", a, 0), as_array_argument("fill_diagonal", val, 1)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    if val.ndim:
        val = read(ravel(val), np.arange(n) % val.size)
    return IndexUpdateRef(a, (np.arange(n),) * a.ndim).set(val)
