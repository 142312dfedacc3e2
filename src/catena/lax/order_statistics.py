"""Order statistics: the elements that sorting would bring to given places, found by selection."""

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.axes import at_front
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, get_aval
from catena.lax import native
from catena.lax.comparison import clamp
from catena.lax.elementwise import ORDERED, check_admitted
from catena.lax.shape import broadcasted_iota
from catena.lax.sorting import PERMUTES, sort_p, take_along


def _abstract(rows, ranks):
    check_admitted("order_statistics", rows, ORDERED)
    return ShapedArray(ranks.shape, rows.dtype)


def _in_numpy(rows, ranks):
    (ordered,) = sort_p.evaluate(rows, dimension=rows.ndim - 1, is_stable=False, num_keys=1)
    n = rows.shape[-1]
    lines = np.take_along_axis(ordered.reshape(-1, n), ranks.reshape(-1, ranks.shape[-1]), -1)
    return lines.reshape(ranks.shape)


def _jvp(primals, tangents):
    rows, ranks = primals
    last = get_aval(rows).ndim - 1
    place = broadcasted_iota(np.int32, get_aval(rows).shape, last)
    ordered, order = sort_p.bind(rows, place, dimension=last, is_stable=True, num_keys=1)
    out = take_along(ordered, ranks, last)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, take_along(tangents[0], take_along(order, ranks, last), last)


def _batch(axis, args, dims):
    return order_statistics_p.bind(*(at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True))), 0


def _lower(b, rows, ranks):
    return b.ranked(rows, ranks)


order_statistics_p = Primitive(
    "order_statistics", abstract=_abstract, jvp=_jvp, transpose=PERMUTES, batch=_batch, lower=_lower
)
order_statistics_p.evaluate = native.shaped(order_statistics_p, _in_numpy)


def order_statistics(rows, ranks):
    """The elements that sorting would bring to the places ``ranks`` of each row.

    Arguments:
      rows: an array of real numbers ``(batch..., n)``; NaN comes last.
      ranks: int32 ``(batch..., r)``; those outside of ``0 .. n - 1`` count as the nearest of these.
    Returns:
      An array ``(batch..., r)`` of the type of ``rows``.

    >>> import numpy as np
    >>> order_statistics(np.array([5, 1, 3]), np.array([1, 2], np.int32))
    Array([3, 5], dtype=int32)
    """
    least, most = np.int32(0), np.int32(get_aval(rows).shape[-1] - 1)
    return order_statistics_p.bind(rows, clamp(least, ranks, most))
