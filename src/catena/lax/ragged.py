"""Contractions with groups: the rows of one operand fall into consecutive groups, each with its own matrix.

The meaning of a ragged contraction is written once, in ``_masked``, as a dense contraction over the groups
with a mask; differentiation, batching and compilation go through it. Evaluation takes the groups one by one.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate, is_undefined_primal
from catena.lax.arithmetic import sub
from catena.lax.bitwise import bitwise_and
from catena.lax.comparison import ge, lt, select_n
from catena.lax.contraction import (
    PrecisionLike,
    canonical_numbers,
    canonicalize_precision,
    dot_general,
    dot_general_p,
    preferred_dtype,
)
from catena.lax.convert import convert_element_type
from catena.lax.cumulative import cumsum
from catena.lax.dynamic_slicing import dynamic_slice_in_dim
from catena.lax.shape import broadcast, broadcast_in_dim, broadcasted_iota, reshape, transpose
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.transform.batch import batch_flat
from catena.transform.linearize import linearize_linear
from catena.transform.transpose import backward_pass


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes a ragged contraction contracts, pairs and groups.

    ``dot_dimension_numbers``: as for ``dot_general``. ``lhs_ragged_dimensions``: the one axis of ``lhs``
    whose elements fall into groups. ``rhs_group_dimensions``: the one axis of ``rhs`` with an element for
    each group, where the ragged axis is neither contracted nor a batch axis.
    """

    dot_dimension_numbers: tuple
    lhs_ragged_dimensions: tuple
    rhs_group_dimensions: tuple

    def __post_init__(self):
        object.__setattr__(self, "dot_dimension_numbers", canonical_numbers(self.dot_dimension_numbers))
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(map(operator.index, getattr(self, name))))


def _kind(numbers: RaggedDotDimensionNumbers) -> str:
    """What the ragged axis is: ``free``, ``contracting`` or ``batch``."""
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    ragged = numbers.lhs_ragged_dimensions[0]
    return "contracting" if ragged in contract else "batch" if ragged in batch else "free"


def _group_in_batch(numbers: RaggedDotDimensionNumbers):
    """The dense contraction's dimension numbers for ``rhs`` without its group axis."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    if not numbers.rhs_group_dimensions:
        return numbers.dot_dimension_numbers
    group = numbers.rhs_group_dimensions[0]

    def without(dims):
        return tuple(d - (d > group) for d in dims)

    return (lhs_contract, without(rhs_contract)), (lhs_batch, without(rhs_batch))


def _abstract(lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, **params):
    numbers = ragged_dot_dimension_numbers
    _check_numbers(lhs, rhs, group_sizes, numbers, bool(offset))
    kind = _kind(numbers)
    dense_rhs = rhs
    if kind == "free":
        group = numbers.rhs_group_dimensions[0]
        dense_rhs = rhs.update(shape=rhs.shape[:group] + rhs.shape[group + 1 :])
    out = dot_general_p.abstract(lhs, dense_rhs, dimension_numbers=_group_in_batch(numbers), **params)
    return out.update(shape=(group_sizes.shape[-1], *out.shape)) if kind == "contracting" else out


def _check_numbers(lhs, rhs, group_sizes, numbers: RaggedDotDimensionNumbers, has_offset: bool):
    if not dtypes.is_integer(group_sizes.dtype):
        raise TypeError(f"ragged_dot_general requires that group_sizes.dtype is integral, got {group_sizes.dtype}.")
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            f"ragged_dot_general expects exactly one lhs ragged dimension, got {numbers.lhs_ragged_dimensions}."
        )
    ragged = numbers.lhs_ragged_dimensions[0]
    if not 0 <= ragged < lhs.ndim:
        raise TypeError(f"ragged_dot_general: lhs ragged dimension {ragged} is not an axis of {lhs.str_short()}.")
    if group_sizes.ndim < 1:
        raise TypeError("expected rank of group_sizes to be at least 1, got 0.")
    (_, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    expected = tuple(lhs.shape[d] for d in lhs_batch)
    if group_sizes.ndim > 1 and group_sizes.shape[:-1] != expected:
        raise TypeError(
            f"expected group_sizes to have shape {(*expected, group_sizes.shape[-1])} or one axis, got "
            f"{group_sizes.shape}."
        )
    groups = numbers.rhs_group_dimensions
    if _kind(numbers) != "free":
        if groups:
            raise TypeError(
                "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is "
                f"contracting or batch, got {groups}."
            )
        return
    if len(groups) != 1 or not 0 <= groups[0] < rhs.ndim:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is noncontracting, "
            f"got {groups}."
        )
    if groups[0] in (*rhs_contract, *rhs_batch):
        raise TypeError("ragged_dot_general requires rhs group dimensions to be disjoint from the others.")
    if not has_offset and rhs.shape[groups[0]] != group_sizes.shape[-1]:
        raise TypeError(f"expected rhs group dimension size to be {group_sizes.shape[-1]}, got {rhs.shape[groups[0]]}.")


# ------------------------------------------------------------------------------------------------------------
# Meaning


def _masked(lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, **params):
    """All groups at once: ``lhs`` gets an axis of groups in front, and zeros outside of each."""
    numbers = ragged_dot_dimension_numbers
    kind = _kind(numbers)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    if kind == "batch":
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **params)
    ragged, shape = numbers.lhs_ragged_dimensions[0], get_aval(lhs).shape
    mask = _membership(group_sizes, shape[ragged])  # batch axes (or none), groups, ragged
    n_batch = get_aval(mask).ndim - 2
    if offset:
        count = get_aval(mask).shape[n_batch]
        if kind == "free":
            count = get_aval(rhs).shape[numbers.rhs_group_dimensions[0]]
        mask = dynamic_slice_in_dim(mask, reshape(offset[0], ()), count, n_batch)
    groups = get_aval(mask).shape[n_batch]
    wide = (groups, *shape)
    places = (*(d + 1 for d in lhs_batch[:n_batch]), 0, ragged + 1)
    order = tuple(int(i) for i in np.argsort(places))
    mask = broadcast_in_dim(transpose(mask, order), wide, tuple(sorted(places)))
    spread = broadcast_in_dim(lhs, wide, tuple(range(1, len(wide))))
    grouped = select_n(mask, broadcast(np.zeros((), get_aval(lhs).dtype), wide), spread)
    lhs_contract, lhs_batch = tuple(d + 1 for d in lhs_contract), tuple(d + 1 for d in lhs_batch)
    if kind == "free":
        lhs_contract, rhs_contract = (0, *lhs_contract), (numbers.rhs_group_dimensions[0], *rhs_contract)
    dense = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    out = dot_general(grouped, rhs, dense, **params)
    return move_axis(out, len(lhs_batch), 0) if kind == "contracting" else out


def _membership(group_sizes, n: int):
    """For each group and each place on the ragged axis, whether the place is in the group."""
    group_sizes = convert_element_type(group_sizes, np.int32)
    shape = get_aval(group_sizes).shape
    wide, axis = (*shape, n), len(shape) - 1
    ends = cumsum(group_sizes, axis)
    starts = sub(ends, group_sizes)
    place = broadcasted_iota(np.int32, wide, len(shape))
    along = tuple(range(axis + 1))
    after = ge(place, broadcast_in_dim(starts, wide, along))
    return bitwise_and(after, lt(place, broadcast_in_dim(ends, wide, along)))


def _evaluate(lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, **params):
    numbers = ragged_dot_dimension_numbers
    kind = _kind(numbers)
    if kind == "batch":
        return dot_general_p.evaluate(lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **params)
    first = int(offset[0].reshape(())) if offset else 0
    one = _free_groups if kind == "free" else _contracted_groups
    if group_sizes.ndim == 1:
        return one(lhs, rhs, group_sizes, first, numbers, params)
    return _for_each_of_batch(one, lhs, rhs, group_sizes, first, numbers, params)


def _slices(group_sizes, first: int, count: int, n: int):
    """The group's place among those wanted, and the range of the ragged axis that belongs to it.

    Sizes are added up in 32 bits, as compiled: a negative one lets the groups around it overlap.
    """
    sizes = group_sizes.astype(np.int32)
    ends = np.cumsum(sizes, dtype=np.int32)
    starts, ends = np.maximum(ends - sizes, 0), np.minimum(ends, n)
    last = min(first + count, len(ends))
    return [(g - first, slice(int(starts[g]), int(ends[g]))) for g in range(first, last) if ends[g] > starts[g]]


def _free_groups(lhs, rhs, group_sizes, first: int, numbers, params):
    ragged, group = numbers.lhs_ragged_dimensions[0], numbers.rhs_group_dimensions[0]
    dense = _group_in_batch(numbers)
    (lhs_contract, _), (lhs_batch, _) = dense
    free = [d for d in range(lhs.ndim) if d not in lhs_contract and d not in lhs_batch]
    axis = len(lhs_batch) + free.index(ragged)
    rhs = np.moveaxis(rhs, group, 0)
    example = dot_general_p.evaluate(_along(lhs, ragged, slice(0, 0)), rhs[0], dimension_numbers=dense, **params)
    shape = (*example.shape[:axis], lhs.shape[ragged], *example.shape[axis + 1 :])
    out = np.zeros(shape, example.dtype)
    for g, part in _slices(group_sizes, first, rhs.shape[0], lhs.shape[ragged]):
        rows = out[(slice(None),) * axis + (part,)]
        rows += dot_general_p.evaluate(_along(lhs, ragged, part), rhs[g], dimension_numbers=dense, **params)
    return out


def _contracted_groups(lhs, rhs, group_sizes, first: int, numbers, params):
    dense = numbers.dot_dimension_numbers
    (lhs_contract, rhs_contract), _ = dense
    ragged = numbers.lhs_ragged_dimensions[0]
    partner = rhs_contract[lhs_contract.index(ragged)]

    def product(part):
        parts = _along(lhs, ragged, part), _along(rhs, partner, part)
        return dot_general_p.evaluate(*parts, dimension_numbers=dense, **params)

    out = np.repeat(product(slice(0, 0))[None], len(group_sizes), axis=0)
    for g, part in _slices(group_sizes, first, len(group_sizes), lhs.shape[ragged]):
        out[g] = product(part)
    return out


def _along(x, axis: int, part: slice):
    return x[(slice(None),) * axis + (part,)]


def _for_each_of_batch(one, lhs, rhs, group_sizes, first: int, numbers, params):
    """Group sizes that differ along the batch axes: one element of the batch at a time."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    rest = (
        [d for d in range(lhs.ndim) if d not in lhs_batch],
        [d for d in range(rhs.ndim) if d not in rhs_batch],
    )
    inner = RaggedDotDimensionNumbers(
        ((tuple(map(rest[0].index, lhs_contract)), tuple(map(rest[1].index, rhs_contract))), ((), ())),
        tuple(map(rest[0].index, numbers.lhs_ragged_dimensions)),
        tuple(map(rest[1].index, numbers.rhs_group_dimensions)),
    )
    lhs, rhs = lhs.transpose((*lhs_batch, *rest[0])), rhs.transpose((*rhs_batch, *rest[1]))
    batch = group_sizes.shape[:-1]
    parts = [one(lhs[i], rhs[i], group_sizes[i], first, inner, params) for i in np.ndindex(batch)]
    out = np.stack(parts).reshape((*batch, *parts[0].shape))
    return np.moveaxis(out, len(batch), 0) if one is _contracted_groups else out


# ------------------------------------------------------------------------------------------------------------
# Rules


def _jvp(primals, tangents, **params):
    out = ragged_dot_general_p.bind(*primals, **params)
    total = Zero.of_primal(out)
    for i in (0, 1):
        if type(tangents[i]) is not Zero:
            args = [tangents[i] if j == i else x for j, x in enumerate(primals)]
            total = add_tangents(total, ragged_dot_general_p.bind(*args, **params))
    return out, total


def _transpose(ct, *args, **params):
    linear = [is_undefined_primal(x) for x in args]
    avals = [x.aval if lin else get_aval(x) for x, lin in zip(args, linear, strict=True)]
    given = [None if lin else x for x, lin in zip(args, linear, strict=True)]
    _, program = linearize_linear(lambda *xs: [_masked(*xs, **params)], avals, given)
    cts = iter(backward_pass(program, [instantiate(ct)]))
    return [next(cts) if lin else None for lin in linear]


def _batch(axis, args, dims, **params):
    (out,), (dim,) = batch_flat(lambda *xs: [_masked(*xs, **params)], axis, args, dims)
    return out, dim


@lru_cache(256)
def _masked_jaxpr(avals, params):
    info = DebugInfo("ragged_dot_general", "ragged_dot_general")
    return trace_to_closed_jaxpr(lambda *xs: [_masked(*xs, **dict(params))], avals, info)[0]


def _lower(b, *operands, **params):
    avals = tuple(ShapedArray(x.shape, x.dtype) for x in operands)
    return b.call(_masked_jaxpr(avals, tuple(params.items())), list(operands))[0]


ragged_dot_general_p = Primitive(
    "ragged_dot_general",
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)


def ragged_dot_general(
    lhs,
    rhs,
    group_sizes,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    group_offset=None,
    out_sharding=None,
):
    """A contraction in which consecutive elements of one axis of ``lhs`` fall into groups.

    Arguments:
      lhs: an array.
      rhs: an array; with an axis of groups where the ragged axis is neither contracted nor a batch axis.
      group_sizes: integers: how many elements of the ragged axis belong to each group; one for all, or with
        the batch axes in front. What is beyond the last group gives zeros.
      ragged_dot_dimension_numbers: which axes are which.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      group_offset: an integer, or an array of one: the group that the first element of the group axis of
        ``rhs`` belongs to, where it has only some of the groups.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      As ``dot_general`` for the group of each element, where the ragged axis is not contracted. Where it is,
      one product for each group, along a new first axis.
    Raises:
      TypeError: axes, shapes or dtypes do not fit.

    >>> import numpy as np
    >>> numbers = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> ragged_dot_general(np.ones((1, 3)), np.ones((3, 1)), np.array([1, 2]), numbers).reshape(-1)
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return told(
            out_sharding,
            ragged_dot_general,
            lhs,
            rhs,
            group_sizes,
            ragged_dot_dimension_numbers,
            precision,
            preferred_element_type,
            group_offset,
            None,
        )
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise TypeError(
            "ragged_dot_general: ragged_dot_dimension_numbers must be RaggedDotDimensionNumbers, got "
            f"{ragged_dot_dimension_numbers!r}"
        )
    return ragged_dot_general_p.bind(
        lhs,
        rhs,
        group_sizes,
        *(() if group_offset is None else (group_offset,)),
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_dtype("ragged_dot_general", preferred_element_type),
    )


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


@whole
def ragged_dot(
    lhs,
    rhs,
    group_sizes,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    group_offset=None,
    out_sharding=None,
):
    """The product of each row with the matrix of the group that the row belongs to.

    Arguments:
      lhs: rows, ``[m, k]``.
      rhs: a matrix for each group, ``[groups, k, n]``.
      group_sizes: integers ``[groups]``: how many consecutive rows belong to each group. Rows beyond give
        zeros.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      group_offset: the group of the first matrix of ``rhs``, where it has only some of the groups.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      ``[m, n]``.
    Raises:
      TypeError: shapes or dtypes do not fit.

    >>> import numpy as np
    >>> ragged_dot(np.ones((3, 1)), np.array([[[1.0]], [[5.0]]]), np.array([2, 1])).reshape(-1)
    Array([1., 1., 5.], dtype=float32)
    """
    rest = precision, preferred_element_type, group_offset, out_sharding
    return ragged_dot_general(lhs, rhs, group_sizes, _ROWS, *rest)
