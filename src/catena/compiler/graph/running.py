"""Running sums and extremes of what is the same all along: places times the number, and the number itself.

So are gradients of running sums that are summed. Running sums of floats are kept in twice the precision, so that of n
equal numbers is n times the number, rounded once, as their product is; of doubles where nothing is rounded.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph import constants

EXACT = {"float32": 1 << 24, "float64": 1 << 53}  # up to which floats are all integers


def of_equal(b, kind: str, x, axis: int, reverse: bool):
    """The running operation of `kind` of a value whose elements along the axis are the same; None if they are not."""
    if not _is_spread_along(x, axis):
        return None
    if kind in ("max", "min"):
        return x
    if kind != "sum" or not _is_counted(x, axis):
        return None
    places = b.iota(x.dtype, x.shape[axis : axis + 1], 0)
    counts = b.map("add", b.reverse(places, (0,)) if reverse else places, b.full(places.shape, np.ones((), x.dtype)))
    product = b.map("mul", x, b.broadcast_in_dim(counts, x.shape, (axis,)))
    number = constants.scalar(x)
    if x.dtype.kind != "f" or (type(number) is np.ndarray and number != 0):
        return product
    return b.map("add", product, b.full(x.shape, np.zeros((), x.dtype)))  # sums begin with 0: that of -0 is 0


def of_halves(b, x, dtype):
    """A running product or extreme of halves that were widened, and is made halves again, as that of the halves: which
    is kept in single precision, too, and rounded where it is written. None where `x` is none.
    """
    if x.form != "cumulative" or x.params.kind == "sum" or x.dtype.name != "float32" or dtype.itemsize != 2:
        return None  # sums are kept in double precision, and would be rounded once
    (wide,) = x.args
    if wide.form != "map" or wide.params.op != "convert" or wide.args[0].dtype != dtype or dtype.kind in "iu":
        return None
    return b.cumulative(x.params.kind, wide.args[0], x.params.axis, x.params.reverse)


def _is_spread_along(x, axis: int) -> bool:
    while x.form == "broadcast":
        (y,), dims = x.args, x.params.dims
        if axis not in dims or y.shape[dims.index(axis)] != x.shape[axis]:
            return True
        x, axis = y, dims.index(axis)
    return False


def _is_counted(x, axis: int) -> bool:
    """Whether as many of them are that many times one, rounded once."""
    if x.dtype.kind in "iu":
        return True
    if x.dtype.name == "float32":
        return x.shape[axis] <= EXACT["float32"]
    number = constants.scalar(x)
    if x.dtype.name != "float64" or type(number) is not np.ndarray or not float(number).is_integer():
        return False
    return x.shape[axis] * abs(int(number)) <= EXACT["float64"]
