"""Axes of values: one moved to another place, one put in, one brought to the front."""

from catena.core import dtypes
from catena.core.structural import broadcast_in_dim_p, transpose_p
from catena.core.zeros import Zero, get_aval, zeros


def move_axis(x, source: int, target: int):
    """``x`` with its axis ``source`` at the position ``target``, the others in their order."""
    if source == target:
        return x
    ndim = get_aval(x).ndim
    source, target = source % ndim, target % ndim
    if source == target:
        return x
    order = [i for i in range(ndim) if i != source]
    order.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(order))


def broadcast_axis(x, size: int, axis: int = 0):
    """``x`` repeated ``size`` times along a new axis."""
    aval = get_aval(x)
    axis %= aval.ndim + 1
    wide = aval.with_axis(axis, size)  # tokens refuse
    if wide.dtype == dtypes.float0:
        return zeros(wide)
    dims = tuple([i for i in range(wide.ndim) if i != axis])
    return broadcast_in_dim_p.bind(x, shape=wide.shape, broadcast_dimensions=dims)


def at_front(size: int, x, dim):
    """``x`` with its mapped axis moved to the front; without one, repeated along a new axis."""
    if type(x) is Zero:
        aval = x.aval
        return Zero(aval.with_axis(0, size)) if dim is None else x
    return broadcast_axis(x, size) if dim is None else move_axis(x, dim, 0)
