"""Shapes: how many axes an array may have, what several broadcast to, and which integers number the elements."""

import operator

import numpy as np

from catena.core import dtypes
from catena.core.dimensions import Dimension, called

_INTEGERS = frozenset({int})
MOST_AXES = 64  # as many as NumPy's arrays, which hold ours, can have


NUMPY_SORTS = 32  # NumPy's sorts and searches go by an older iterator, which knows no more axes


def is_plain(shape) -> bool:
    """Whether a shape is a tuple of Python's integers already."""
    return type(shape) is tuple and _INTEGERS.issuperset(map(type, shape))


def check_axes(shape):
    """ValueError where a shape has more axes than an array can have."""
    if len(shape) > MOST_AXES:
        raise ValueError(f"arrays have at most {MOST_AXES} axes, but one of {len(shape)} is asked for: shape {shape}")


def max_dim(d1, d2):
    """The greater one of two lengths, which may be symbolic.

    >>> max_dim(2, 3)
    3
    """
    return _one_of("max", d1, d2)


def min_dim(d1, d2):
    """The smaller one of two lengths, which may be symbolic.

    >>> min_dim(2, 3)
    2
    """
    return _one_of("min", d1, d2)


def _one_of(name: str, d1, d2):
    lengths = [d if isinstance(d, Dimension) else operator.index(d) for d in (d1, d2)]
    return called(name, *lengths)


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The shape that arrays of these shapes have together, by NumPy's rules; ValueError where they do not fit.

    ``np.broadcast_shapes`` knows 32 axes.
    """
    common = common_shape(shapes)
    if common is None:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}{missing_axis(shapes)}")
    return common


def common_shape(shapes: tuple) -> tuple | None:
    """The shape that arrays of these shapes have together; None where they do not fit."""
    longest = max(shapes, key=len, default=())
    for shape in shapes:
        if shape and shape != longest:
            break
    else:  # as most are: equal, or numbers
        return tuple(longest)
    rank = len(longest)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + tuple(s) for s in shapes], strict=True):
        common = 1
        for n in sizes:
            if n != common and n != 1:
                if common != 1:
                    return None
                common = n
        out.append(common)
    return tuple(out)


def missing_axis(shapes: tuple) -> str:
    """What to do where shapes would fit if one of them had an axis of size 1 at its end, as after a reduction without
    ``keepdims``: the cause of most of such errors.
    """
    for i, shape in enumerate(shapes):
        longer = (*shape, 1)
        rank = max(map(len, shapes))
        if 0 < len(shape) < rank and common_shape((*shapes[:i], longer, *shapes[i + 1 :])) is not None:
            return (
                f". As {longer} the one of shape {tuple(shape)} fits: x[..., None], or keepdims=True where it was made"
            )
    return ""


# ---- positions along an axis


def holds(dtype, size: int) -> bool:
    """Whether integers of ``dtype`` can number ``size`` elements, and count them."""
    return size <= dtypes.iinfo(dtype).max


_WIDE = np.dtype(np.int32), np.dtype(np.int64)


def position_dtype(size: int, dtype) -> np.dtype:
    """The dtype to compute positions along an axis in: ``dtype`` where it holds them, else a wider one.

    That is int64 for more than 2**31 - 1 elements, whether or not users have 64-bit integers.
    """
    if holds(dtype, size):
        return dtype
    return _WIDE[0] if holds(_WIDE[0], size) else _WIDE[1]


def check_positions(name: str, size: int, dtype, axis: int | None = None):
    """OverflowError where results of ``dtype``, which say positions along an axis, cannot hold them all."""
    if not holds(dtype, size - 1):
        where = "in all" if axis is None else f"along axis {axis}"
        wider = "jax.config.update('jax_enable_x64', True) makes 64-bit integers available"
        raise OverflowError(
            f"{name}: {dtype} cannot hold the positions of {size} elements {where}; "
            + (wider if dtype == _WIDE[0] else "ask for a wider dtype")
        )
