"""Joining and splitting: ``concatenate``, ``stack``, ``block``, ``split``, ``tile`` and their kin.

The arrays to join may be given as a list or tuple, or as one array, whose first axis then runs over them.
They are promoted to one dtype. The parts that arrays are split into are views.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.errors import SectionsError
from catena.core.shapes import MOST_AXES, check_axes
from catena.lax.join import tiled
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axis,
    concrete_or_error,
    convert,
    direct,
    operands,
    promoted_dtype,
    refuse_out,
    static_int,
    user_dtype,
)
from catena.numpy.creation import shape_argument
from catena.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d
from catena.numpy.protocol import takes_part
from catena.numpy.shaping import ravel, reshaped
from catena.typing import ArrayLike, DTypeLike

Arrays = ArrayLike | Sequence[ArrayLike]


def array_sequence(name: str, arrays) -> list:
    """The arrays that a joining function is given: those of a sequence, or the rows of one array."""
    if isinstance(arrays, list | tuple):
        return operands(name, *arrays)
    if isinstance(arrays, str) or not _is_array(arrays):
        raise TypeError(f"{name} requires an array or a sequence of arrays, got {type(arrays)}")
    array = as_array_argument(name, arrays)
    return list(lax.unstack(array, 0)) if array.ndim else [array]


def _is_array(x) -> bool:
    kind = type(x)
    known = getattr(kind, "_is_array", False) or isinstance(x, np.ndarray)
    return known or hasattr(kind, "__jax_array__") or takes_part(kind)


def _plain_values(arrays, dtype) -> tuple | None:
    """The NumPy values and the weakness of concrete arrays of one dtype; None for anything else."""
    if context.trace is not None or context.debug_checks or dtype is not None:
        return None
    if type(arrays) not in (list, tuple) or not arrays:
        return None
    values, weak, first = [], True, None
    for x in arrays:
        if type(x) is not Array:
            return None
        value = x._value
        first = first or value.dtype
        if value.dtype is not first:
            return None
        weak = weak and x.weak_type
        values.append(value)
    return values, weak


def _joined_dtype(name: str, xs, dtype) -> tuple:
    if dtype is None:
        return promoted_dtype(xs) if len(xs) > 1 else (xs[0].dtype, xs[0].weak_type)
    return user_dtype(dtype, name), False


def concatenated(name: str, xs: list, axis: int, dtype=None):
    """Arrays of at least one dimension joined along ``axis``, promoted to one dtype."""
    plain = _plain_values(xs, dtype)
    if plain and type(axis) is int:
        try:
            return make_array(np.concatenate(plain[0], axis), plain[1])
        except ValueError:  # said below
            pass
    dtype, weak = _joined_dtype(name, xs, dtype)
    xs = [convert(x, dtype, weak) for x in xs]
    ranks = {x.ndim for x in xs}
    if len(ranks) > 1:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    axis = canonical_axis(axis, ranks.pop())
    if len(xs) == 1:
        return xs[0]
    if context.trace is None and not context.debug_checks and all(type(x) is Array for x in xs):
        try:
            return make_array(np.concatenate([x._value for x in xs], axis), weak)
        except ValueError:  # said by lax
            pass
    return lax.concatenate(xs, axis)


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an axis that they have.

    Arguments:
      arrays: arrays of equal shapes but for that axis.
      axis: the axis; None flattens the arrays first.
      dtype: the dtype of the result; by default the one that the arrays promote to.
    Returns:
      An array.
    Raises:
      ValueError: there are no arrays, they have no axes, or ``axis`` is out of bounds. TypeError: the shapes
        do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.concatenate([jnp.arange(2), jnp.ones(2)])
    Array([0., 1., 1., 1.], dtype=float32)
    """
    plain = _plain_values(arrays, dtype)
    if plain and (axis is None or type(axis) is int):
        try:
            return make_array(np.concatenate(plain[0], axis), plain[1])
        except (ValueError, TypeError):  # said below
            pass
    xs = array_sequence("concatenate", arrays)
    if not xs:
        raise ValueError("Need at least one array to concatenate.")
    xs = [as_array_argument("concatenate", x) for x in xs]
    if axis is None:
        return concatenated("concatenate", [ravel(x) for x in xs], 0, dtype)
    if not xs[0].ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return concatenated("concatenate", xs, operator.index(axis), dtype)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis that they have; the name of the array API standard for ``concatenate``.

    Arguments:
      arrays: arrays of equal shapes but for that axis.
      axis: the axis; None flattens the arrays first.
    Returns:
      An array of the dtype that the arrays promote to.
    Raises:
      ValueError: there are no arrays, they have no axes, or ``axis`` is out of bounds. TypeError: the shapes
        do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.concat([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along a new axis.

    Arguments:
      arrays: arrays of equal shapes.
      axis: where the new axis is in the result.
      out: must be None.
      dtype: the dtype of the result; by default the one that the arrays promote to.
    Returns:
      An array with one axis more.
    Raises:
      ValueError: there are no arrays, their shapes differ, or ``axis`` is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.stack([jnp.arange(2), jnp.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    refuse_out("stack", out)
    plain = _plain_values(arrays, dtype)
    if plain and axis == 0 and len({value.shape for value in plain[0]}) == 1 and plain[0][0].ndim < MOST_AXES:
        return make_array(np.concatenate([value[None] for value in plain[0]], 0), plain[1])
    xs = array_sequence("stack", arrays)
    if not xs:
        raise ValueError("Need at least one array to stack.")
    xs = [as_array_argument("stack", x) for x in xs]
    return _stacked("stack", xs, static_int(axis, "axis argument of stack"), dtype)


def _stacked(name: str, xs: list, axis: int, dtype):
    shapes = {x.shape for x in xs}
    if len({len(s) for s in shapes}) > 1:
        listed = ", ".join(str(x.shape) for x in xs)
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {listed}.")
    if len(shapes) > 1:
        raise ValueError(f"All input arrays must have the same shape. Got {', '.join(str(x.shape) for x in xs)}.")
    dtype, weak = _joined_dtype(name, xs, dtype)
    axis = canonical_axis(axis, xs[0].ndim + 1)
    check_axes((len(xs), *xs[0].shape))
    xs = [convert(x, dtype, weak) for x in xs]
    if context.trace is None and not context.debug_checks and all(type(x) is Array for x in xs):
        return make_array(np.stack([x._value for x in xs], axis), weak)
    return lax.stack(xs, axis)


def _stacking(name: str, tup, raised, axis, dtype):
    """``vstack`` and its kin: arrays raised to some rank, then joined."""
    xs = [raised(x) for x in array_sequence(name, tup)]
    if not xs:
        raise ValueError("Need at least one array to concatenate.")
    return concatenated(name, xs, axis(xs), dtype)


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the first axis, as rows where they are 1-D.

    Arguments:
      tup: arrays.
      dtype: the dtype of the result; by default the one that the arrays promote to.
    Returns:
      An array of at least two dimensions.
    Raises:
      ValueError: there are no arrays. TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return _stacking("vstack", tup, atleast_2d, lambda xs: 0, dtype)


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the second axis, or the first where they are 1-D.

    Arguments:
      tup: arrays.
      dtype: the dtype of the result; by default the one that the arrays promote to.
    Returns:
      An array.
    Raises:
      ValueError: there are no arrays. TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    return _stacking("hstack", tup, atleast_1d, lambda xs: 0 if xs[0].ndim == 1 else 1, dtype)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis.

    Arguments:
      tup: arrays.
      dtype: the dtype of the result; by default the one that the arrays promote to.
    Returns:
      An array of at least three dimensions.
    Raises:
      ValueError: there are no arrays. TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)])
    Array([[[0, 0],
            [1, 1]]], dtype=int32)
    """
    return _stacking("dstack", tup, atleast_3d, lambda xs: 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Arrays joined along the second axis, 1-D ones as columns.

    Arguments:
      tup: 1-D and 2-D arrays.
    Returns:
      A 2-D array.
    Raises:
      ValueError: there are no arrays. TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.column_stack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """

    def column(x):
        x = as_array_argument("column_stack", x)
        return x if x.ndim > 1 else reshaped(x, (x.size, 1))

    return _stacking("column_stack", tup, column, lambda xs: 1, None)


def block(arrays: ArrayLike | Sequence[Any]) -> Array:
    """An array put together from blocks.

    Arguments:
      arrays: a nested list of arrays: the innermost lists are joined along the last axis, the next along the
        one before, and so on.
    Returns:
      An array.
    Raises:
      ValueError: the lists are empty or of different depths, or there are tuples. TypeError: the shapes do
        not fit.

    >>> import catena.numpy as jnp
    >>> jnp.block([[jnp.eye(2), jnp.ones((2, 1))]])
    Array([[1., 0., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    if (value := _block_of_matrices(arrays)) is not None:  # the hot path
        return value
    depth = _depth(arrays)
    rank = max(depth, *(x.ndim for x in _leaves(arrays)), 1) if depth else 0
    return _assembled(arrays, depth, rank)


def _block_of_matrices(arrays):
    """Two levels of lists of concrete matrices of one dtype, joined by NumPy; None for all else."""
    if type(arrays) is not list:
        return None
    rows, weak = [], True
    try:
        for row in arrays:
            plain = _plain_values(row, None) if type(row) is list else None
            if plain is None:
                return None
            rows.append(np.concatenate(plain[0], 1))
            if rows[-1].dtype is not rows[0].dtype or rows[-1].ndim != 2:
                return None
            weak = weak and plain[1]
        return make_array(np.concatenate(rows), weak) if rows else None
    except ValueError:  # said by the general path
        return None


def _depth(x, around: int = 0) -> int:
    """The depth of nested lists, which must be the same everywhere; ``around``: the lists around this one."""
    if around > MOST_AXES:
        raise ValueError(f"jax.numpy.block: lists must not be nested more than {MOST_AXES} deep")
    if isinstance(x, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {x}")
    if not isinstance(x, list):
        return 0
    if not x:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    depths = {_depth(item, around + 1) for item in x}
    if len(depths) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    return 1 + depths.pop()


def _leaves(x):
    if isinstance(x, list):
        return [leaf for item in x for leaf in _leaves(item)]
    return [as_array_argument("block", x)]


def _assembled(x, depth: int, rank: int):
    if not isinstance(x, list):
        x = as_array_argument("block", x)
        return x if x.ndim >= rank else lax.expand_dims(x, tuple(range(rank - x.ndim)))
    return concatenated("block", [_assembled(item, depth - 1, rank) for item in x], rank - depth)


# ----------------------------------------------------------------------------------------------------
# Splitting


def _split(name: str, ary, indices_or_sections, axis: int, uneven: bool = False) -> list[Array]:
    ary = as_array_argument(name, ary)
    axis = canonical_axis(static_int(axis, f"in jax.numpy.{name} argument `axis`"), ary.ndim)
    n = ary.shape[axis]
    sizes = _section_sizes(name, indices_or_sections, n, uneven)
    if direct(ary) and all(s >= 0 for s in sizes) and sum(sizes) == n:
        return [make_array(part, ary.weak_type) for part in _parts(ary._value, sizes, axis)]
    return list(lax.split(ary, sizes, axis))


def _parts(value, sizes, axis: int):
    """Views of a NumPy array of the given lengths along an axis."""
    before, start = (slice(None),) * axis, 0
    for size in sizes:
        yield value[(*before, slice(start, start + size))]
        start += size


def _section_sizes(name: str, indices_or_sections, n: int, uneven: bool) -> list[int]:
    """The sizes of the parts of an axis of ``n``."""
    what = f"in jax.numpy.{name} argument 1"
    if hasattr(type(indices_or_sections), "__jax_array__"):
        indices_or_sections = as_array_argument(name, indices_or_sections, 1)
    if _is_sequence(indices_or_sections):
        ends = [concrete_or_error(operator.index, i, what) for i in indices_or_sections]
        return [b - a for a, b in itertools.pairwise([0, *ends, n])]
    count = static_int(indices_or_sections, what)
    if count <= 0:
        raise SectionsError(f"{name}: number of sections must be positive, got {count}")
    each, rest = divmod(n, count)
    if rest and not uneven:
        raise ValueError(
            f"array split does not result in an equal division: rest is {rest} of {n} in {count} parts; "
            "jnp.array_split makes parts of different lengths"
        )
    return [each + 1] * rest + [each] * (count - rest)


def _is_sequence(x) -> bool:
    """Whether ``x`` has axes; what a list holds is not looked at, as it may be traced."""
    return isinstance(x, list | tuple) or bool(x.ndim if hasattr(x, "ndim") else np.ndim(x))


Sections = int | Sequence[int] | Array


def split(ary: ArrayLike, indices_or_sections: Sections, axis: int = 0) -> list[Array]:
    """The parts of an array along an axis.

    Arguments:
      ary: an array.
      indices_or_sections: the number of equal parts, or the indices at which parts begin (but the first).
      axis: the axis.
    Returns:
      A list of arrays.
    Raises:
      ValueError: the axis is out of bounds, or cannot be divided into equal parts; or an index is beyond the axis.

    >>> import catena.numpy as jnp
    >>> jnp.split(jnp.arange(4), [1])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Sections, axis: int = 0) -> list[Array]:
    """The parts of an array along an axis, some longer by one where it cannot be divided into equal parts.

    Arguments:
      ary: an array.
      indices_or_sections: the number of parts, or the indices at which parts begin (but the first).
      axis: the axis.
    Returns:
      A list of arrays.
    Raises:
      ValueError: the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.array_split(jnp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def hsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[Array]:
    """The parts of an array along its second axis, or its first if it is 1-D.

    Arguments:
      ary: an array of at least one dimension.
      indices_or_sections: the number of equal parts, or the indices at which parts begin (but the first).
    Returns:
      A list of arrays.
    Raises:
      ValueError: the array has no axis, or it cannot be divided into equal parts.

    >>> import catena.numpy as jnp
    >>> jnp.hsplit(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    ary = as_array_argument("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[Array]:
    """The parts of an array along its first axis.

    Arguments:
      ary: an array.
      indices_or_sections: the number of equal parts, or the indices at which parts begin (but the first).
    Returns:
      A list of arrays.
    Raises:
      ValueError: the axis cannot be divided into equal parts.

    >>> import catena.numpy as jnp
    >>> [part.shape for part in jnp.vsplit(jnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[Array]:
    """The parts of an array along its third axis.

    Arguments:
      ary: an array of at least three dimensions.
      indices_or_sections: the number of equal parts, or the indices at which parts begin (but the first).
    Returns:
      A list of arrays.
    Raises:
      ValueError: the array has no third axis, or it cannot be divided into equal parts.

    >>> import catena.numpy as jnp
    >>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without that axis.

    Arguments:
      x: an array of at least one dimension.
      axis: the axis.
    Returns:
      A tuple of arrays.
    Raises:
      ValueError: the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = as_array_argument("unstack", x)
    axis = canonical_axis(operator.index(axis), x.ndim)
    if direct(x):
        rows = np.moveaxis(x._value, axis, 0)
        return tuple(make_array(rows[i, ...], x.weak_type) for i in range(x.shape[axis]))
    return tuple(lax.unstack(x, axis))


# ----------------------------------------------------------------------------------------------------
# Copies side by side


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:  # noqa: N803
    """An array repeated as a whole along its axes.

    Arguments:
      A: an array.
      reps: how often, for each axis; axes that either lacks are put in front.
    Returns:
      An array.
    Raises:
      TypeError: a number of repetitions is no nonnegative integer.

    >>> import catena.numpy as jnp
    >>> jnp.tile(jnp.arange(2), (2, 2))
    Array([[0, 1, 0, 1],
           [0, 1, 0, 1]], dtype=int32)
    """
    A = as_array_argument("tile", A)  # noqa: N806
    reps = shape_argument(reps)
    if any(r < 0 for r in reps):
        raise TypeError(f"tile: reps must be nonnegative, got {reps}")
    rank = max(len(reps), A.ndim)
    A = reshaped(A, (1,) * (rank - A.ndim) + A.shape)  # noqa: N806
    reps = (1,) * (rank - len(reps)) + reps
    if direct(A):
        return make_array(tiled(A._value, reps), A.weak_type)
    return lax.tile(A, reps)
