"""``associative_scan``: all prefix results of an associative operation, in logarithmic depth.

Algorithm: Blelloch, "Prefix sums and their applications" (1990): combine neighbours, scan the halves, and
combine what is between. About ``2 n`` applications of the operation, each over a whole slice at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.structural import slice_p
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_flatten_with_path, tree_unflatten
from catena.core.tree_keys import keystr
from catena.core.zeros import get_aval, zeros
from catena.lax.arithmetic import add_p
from catena.lax.bitwise import or_p
from catena.lax.broadcasting import broadcast_in_dim_p
from catena.lax.control_flow import common
from catena.lax.join import concatenate_p
from catena.lax.reshaping import rev_p
from catena.lax.slicing import pad_p
from catena.lax.structure import canonical_axis

FEW = 8  # elements of the last axis, which are rather joined one by one than put in place among zeros


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The results of ``fn`` over all prefixes along an axis.

    Arguments:
      fn: an associative function of two trees like ``elems`` (slices of them) that returns as many arrays, in a tree;
        it works elementwise along ``axis``.
      elems: a tree of arrays of one length along ``axis``.
      reverse: whether to take suffixes instead.
      axis: the axis.
    Returns:
      A tree like ``elems``: at position ``i``, the elements ``0 ... i`` combined.
    Raises:
      TypeError: ``fn`` is not callable, or does not return as many arrays as ``elems`` has.
      ValueError: the lengths differ, or the axis does not exist.
      AttributeError: a leaf is a Python number, which has no axes (JAX's type of error).

    >>> import catena.lax as lax, numpy as np
    >>> lax.associative_scan(lax.add, np.arange(5)).tolist()
    [0, 1, 3, 6, 10]
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = common.flatten_values(elems)
    if not leaves:
        return elems
    refuse_numbers(elems)
    axis = canonical_axis(axis, get_aval(leaves[0]).ndim, "associative_scan: axis")
    shapes = [get_aval(x).shape for x in leaves]
    if any(len(s) <= axis or s[axis] != shapes[0][axis] for s in shapes):
        raise ValueError(f"Array inputs to associative_scan must have the same first dimension. (saw: {shapes})")
    if reverse:
        leaves = [rev_p.bind(x, dimensions=(axis,)) for x in leaves]

    def combine(a, b):
        out, out_tree = tree_flatten(fn(tree_unflatten(tree, a), tree_unflatten(tree, b)))
        if len(out) != len(a):
            raise TypeError(f"lax.associative_scan: fn must return a tree like its arguments, {tree}, got {out_tree}")
        return [leaf_value(x) for x in out]

    outs = prefixes(combine, leaves, axis)
    if reverse:
        outs = [rev_p.bind(x, dimensions=(axis,)) for x in outs]
    return tree_unflatten(tree, outs)


def refuse_numbers(elems) -> None:
    """An error for a leaf that is a Python number."""
    for path, leaf in tree_flatten_with_path(elems)[0]:
        if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
            raise AttributeError(
                f"associative_scan: elems{keystr(path)} must be an array with an axis to scan along, got {leaf!r}, a "
                f"{type(leaf).__name__}, which has no attribute 'ndim'"
            )


def prefixes(combine, xs: list, axis: int) -> list:
    """All prefix results of ``combine`` over the arrays ``xs``."""
    length = get_aval(xs[0]).shape[axis]
    if length < 2:
        return xs
    pairs = combine([every_second(x, axis, 0, length - 1) for x in xs], [every_second(x, axis, 1, length) for x in xs])
    odd = prefixes(combine, pairs, axis)
    before = odd if length % 2 else [every_one(x, axis, 0, length // 2 - 1) for x in odd]
    even = combine(before, [every_second(x, axis, 2, length) for x in xs])
    even = [concatenate_p.bind(every_one(x, axis, 0, 1), e, dimension=axis) for x, e in zip(xs, even, strict=True)]
    return [interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def every_second(x, axis: int, start: int, limit: int):
    return sliced(x, axis, min(start, limit), limit, 2)


def every_one(x, axis: int, start: int, limit: int):
    return sliced(x, axis, start, limit, 1)


def sliced(x, axis: int, start: int, limit: int, stride: int):
    """``x[start:limit:stride]`` along ``axis``."""
    shape = get_aval(x).shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=tuple(strides))


def interleaved(a, b, axis: int):
    """``a[0], b[0], a[1], b[1] ...``; ``a`` may be one longer. Zeros lose their signs, as where halves are added."""
    aval = get_aval(a)
    n, m = aval.shape[axis], get_aval(b).shape[axis]
    zero = zeros(aval.update(shape=(), weak_type=False))
    combine = or_p if aval.dtype == bool else add_p
    if axis == aval.ndim - 1 and n + m <= FEW:
        turns = [every_one((a, b)[i % 2], axis, i // 2, i // 2 + 1) for i in range(n + m)]
        joined = concatenate_p.bind(*turns, dimension=axis)
        nothing = broadcast_in_dim_p.bind(zero, shape=get_aval(joined).shape, broadcast_dimensions=())
        return combine.bind(joined, nothing)
    return combine.bind(
        spread_out(a, axis, (0, 1 if n == m else 0), zero),
        spread_out(b, axis, (1, 1 if n > m else 0), zero),
    )


def spread_out(x, axis: int, edges: tuple, zero):
    """``x`` with zeros between its elements along ``axis`` and at both ends."""
    config = tuple((*edges, 1) if i == axis else (0, 0, 0) for i in range(get_aval(x).ndim))
    return pad_p.bind(x, zero, padding_config=config)
