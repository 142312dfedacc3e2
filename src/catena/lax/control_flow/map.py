"""``map``: a function applied to each item in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.structural import reshape_p, slice_p
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax.control_flow import common
from catena.lax.control_flow.scan import scan, scan_length
from catena.lax.join import concatenate_p
from catena.transform.vmap import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:  # noqa: A001  (JAX's name)
    """Apply ``f`` to each item along the leading axis of ``xs``, one after the other, in one compiled loop.

    Arguments:
      f: a function of one item.
      xs: a tree of arrays with equal leading axes.
      batch_size: how many items to do at once, vectorised; one by default.
    Returns:
      The results, stacked along a new leading axis.
    Raises:
      ValueError: the leading axes differ or there are none, or ``batch_size`` is negative.

    >>> import catena.lax as lax, numpy as np
    >>> lax.map(lambda x: x * x, np.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    leaves, tree = common.flatten_values(xs)
    length = scan_length(leaves, None, "map") if leaves else 0
    if not batch_size:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if batch_size < 0:
        raise ValueError(f"lax.map: batch_size must be positive, got {batch_size}")
    whole = length // batch_size
    at_once = vmap(f)
    if whole == 0 or whole == 1 and length == batch_size:
        return at_once(tree_unflatten(tree, leaves)) if length else scan(lambda _, x: (None, f(x)), None, xs)[1]
    blocks = [reshaped(rows(x, 0, whole * batch_size), (whole, batch_size)) for x in leaves]
    done = scan(lambda _, x: (None, at_once(x)), None, tree_unflatten(tree, blocks))[1]
    done = tree_map(lambda y: reshaped(y, (whole * batch_size,), axes=2), done)
    if whole * batch_size == length:
        return done
    rest = at_once(tree_unflatten(tree, [rows(x, whole * batch_size, length) for x in leaves]))
    first, out_tree = tree_flatten(done)
    pairs = zip(first, tree_flatten(rest)[0], strict=True)
    return tree_unflatten(out_tree, [concatenate_p.bind(a, b, dimension=0) for a, b in pairs])


def rows(x, start: int, limit: int):
    """``x[start:limit]``."""
    shape = get_aval(x).shape
    if (start, limit) == (0, shape[0]):
        return x
    starts, limits = (start, *[0] * (len(shape) - 1)), (limit, *shape[1:])
    return slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=None)


def reshaped(x, leading: tuple, axes: int = 1):
    """``x`` with its first ``axes`` axes replaced by ``leading``."""
    return reshape_p.bind(x, new_sizes=(*leading, *get_aval(x).shape[axes:]), dimensions=None)
