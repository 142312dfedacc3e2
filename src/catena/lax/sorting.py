"""Sorting and selection of the largest elements."""

import math
import operator

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.primitive import NoRule, Primitive
from catena.core.shapes import NUMPY_SORTS, check_positions
from catena.core.zeros import Zero, get_aval
from catena.lax import native
from catena.lax.indexing import gather
from catena.lax.policy import SHAPED
from catena.lax.shape import broadcasted_iota, expand_dims, slice_in_dim
from catena.lax.structure import canonical_axis
from catena.lax.whole import whole
from catena.lax.windowed import PROMISE_IN_BOUNDS, GatherDimensionNumbers

# ------------------------------------------------------------------------------------------------------------
# Keys: unsigned integers in the order of the values


def sort_key(x: np.ndarray, total_order: bool = False) -> np.ndarray:
    """Unsigned integers that are ordered as ``x``, a real array.

    Arguments:
      x: booleans, integers or real floats.
      total_order: whether -0 comes before 0 and NaNs are ordered by sign and bits, as in IEEE 754's
        totalOrder. If not, zeros are equal, and NaNs are equal and come last.
    """
    kind = dtypes.KIND[x.dtype]
    if kind == "b":
        return x.view(np.uint8)
    if kind == "f":
        return _float_key(x, total_order)
    if x.dtype.kind == "V":
        x = x.astype(np.uint8 if kind == "u" else np.int8)
    if kind == "u":
        return x
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return x.view(unsigned) ^ unsigned.type(1 << (8 * x.dtype.itemsize - 1))


def _float_key(x: np.ndarray, total_order: bool) -> np.ndarray:
    if x.dtype.kind == "V":  # narrow floats embed into float32 with their order
        x = x.astype(np.float32)
    width = 8 * x.dtype.itemsize
    if not total_order:
        x = np.where(x == x, x + x.dtype.type(0), x.dtype.type(np.nan))  # -0 + 0 is 0; a NaN without a sign
    bits = np.ascontiguousarray(x).view(f"int{width}")
    ones = bits >> (width - 1)  # all bits of negative numbers are flipped, of others the sign
    return (bits ^ (ones | np.iinfo(bits.dtype).min)).view(f"uint{width}")


def stable_argsort(key: np.ndarray, axis: int) -> np.ndarray:
    """The stable order of unsigned ``key`` along ``axis``.

    NumPy's stable sort of indices takes five times as long as its sort of 64-bit integers, so key and
    position are sorted as one integer. Keys that leave no room for the position are first replaced by their
    rank.
    """
    n = key.shape[axis]
    position_bits = max(n - 1, 1).bit_length()
    if 8 * key.dtype.itemsize + position_bits > 64:
        key = _ranks(key, axis)
    place = np.arange(n, dtype=np.uint64).reshape((-1,) + (1,) * (key.ndim - axis - 1))
    joined = (key.astype(np.uint64) << np.uint64(position_bits)) | place
    joined.sort(axis=axis)
    return (joined & np.uint64((1 << position_bits) - 1)).astype(np.intp)


def _ranks(key: np.ndarray, axis: int) -> np.ndarray:
    """Each key's rank among the different keys along ``axis``."""
    order = np.argsort(key, axis=axis)
    ordered = np.take_along_axis(key, order, axis)
    differs = np.diff(ordered, axis=axis) != 0
    ranks = np.zeros(key.shape, np.uint32)
    body = [slice(None)] * key.ndim
    body[axis] = slice(1, None)
    np.cumsum(differs, axis=axis, out=ranks[tuple(body)])
    out = np.empty_like(ranks)
    np.put_along_axis(out, order, ranks, axis)
    return out


def of_many_axes(evaluate, axis_name: str):
    """An ``evaluate`` rule along one axis, for any number of axes: those before it and behind it are merged."""

    def evaluate_merged(*operands, **params):
        shape = operands[0].shape
        if len(shape) <= NUMPY_SORTS:
            return evaluate(*operands, **params)
        axis = params[axis_name]
        sizes = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        outs = evaluate(*[x.reshape(sizes) for x in operands], **{**params, axis_name: 1})
        return [out.reshape(_resized(shape, axis, out.shape[1])) for out in outs]

    return evaluate_merged


def _resized(shape, axis: int, size: int) -> tuple:
    return (*shape[:axis], size, *shape[axis + 1 :])


# ------------------------------------------------------------------------------------------------------------
# sort


def check_ordered(name: str, operand):
    """Raise TypeError for elements that have no order, such as random keys."""
    if operand.extended:
        raise TypeError(f"{name} does not accept dtype {operand.dtype}. Accepted dtypes are subtypes of number, bool.")


def _sort_abstract(*operands, dimension, is_stable, num_keys):
    shapes = [o.shape for o in operands]
    if any(s != shapes[0] for s in shapes):
        raise TypeError(f"Arguments to sort must have equal shapes, got: {' '.join(map(str, shapes))}")
    for operand in operands[:num_keys]:
        check_ordered("sort", operand)
    return list(operands)


def _sort_evaluate(*operands, dimension, is_stable, num_keys):
    if operands[0].size == 0:
        return list(operands)
    if len(operands) == 1 and operands[0].dtype.itemsize > 1 and operands[0].size < SHAPED["sort"].longest:
        return [sort_values(operands[0], dimension, is_stable)]
    params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
    return _sort_repeated(*operands, **params)


def _sort_in_numpy(*operands, dimension, is_stable, num_keys):
    if len(operands) == 1:
        return [sort_values(operands[0], dimension, is_stable)]
    order = None
    for operand in reversed(operands[:num_keys]):  # by the least significant key first
        for part in reversed(_parts(operand)):
            order = _refine(order, sort_key(part), dimension)
    return [_taken(x, order, dimension) for x in operands]


def _taken(x, order, axis: int):
    """``np.take_along_axis``, which takes eight microseconds of any vector."""
    return x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)


def _parts(x: np.ndarray) -> tuple:
    """Real arrays in whose lexicographic order ``x`` is sorted."""
    return (x.real, x.imag) if x.dtype.kind == "c" else (x,)


def _refine(order, key, axis: int):
    if order is None:
        return stable_argsort(key, axis)
    finer = stable_argsort(_taken(key, order, axis), axis)
    return _taken(order, finer, axis)


def sort_values(x: np.ndarray, axis: int, is_stable: bool) -> np.ndarray:
    """One array sorted: equal values are the same but for zeros of two signs, so the fastest sort will do."""
    if x.dtype.kind == "c" or (dtypes.KIND[x.dtype] == "f" and is_stable and _has_both_zeros(x)):
        order = None
        for part in reversed(_parts(x)):
            order = _refine(order, sort_key(part), axis)
        return np.take_along_axis(x, order, axis)
    if x.dtype.isbuiltin != 1:
        wide = np.float32 if dtypes.KIND[x.dtype] == "f" else np.int8 if dtypes.KIND[x.dtype] == "i" else np.uint8
        return np.sort(x.astype(wide), axis=axis).astype(x.dtype)
    return np.sort(x, axis=axis, kind="stable" if x.dtype.itemsize == 1 else None)  # bytes are counted only so


def _has_both_zeros(x: np.ndarray) -> bool:
    if x.dtype.kind == "f" and np.count_nonzero(x) == x.size:
        return False
    zeros = x[x == 0]
    return bool(zeros.size) and 0 < np.count_nonzero(np.signbit(zeros.astype(np.float32))) < zeros.size


def take_along(x, indices, axis: int):
    """The elements of ``x`` at positions along ``axis``; all other axes run together."""
    shape = get_aval(x).shape
    if 0 in shape:
        return slice_in_dim(x, 0, get_aval(indices).shape[axis], 1, axis)  # no window fits into an array of nothing
    ndim = len(shape)
    others = tuple(d for d in range(ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(x, expand_dims(indices, (ndim,)), numbers, (1,) * ndim, mode=PROMISE_IN_BOUNDS)


def _sort_jvp(primals, tangents, *, dimension, is_stable, num_keys):
    place = broadcasted_iota(np.uint32, get_aval(primals[0]).shape, dimension)
    *outs, order = sort_p.bind(*primals, place, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    moved = [
        Zero.of_primal(out) if type(t) is Zero else take_along(t, order, dimension)
        for out, t in zip(outs, tangents, strict=True)
    ]
    return outs, moved


def _sort_batch(axis, args, dims, *, dimension, is_stable, num_keys):
    args = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
    outs = sort_p.bind(*args, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys)
    return outs, [0] * len(outs)


def _sort_lower(b, *operands, dimension, is_stable, num_keys):
    return b.sort(list(operands), dimension, num_keys, is_stable)


PERMUTES = NoRule("which element goes where depends on the values; differentiation turns it into a gather")

sort_p = Primitive(
    "sort",
    multiple_results=True,
    abstract=_sort_abstract,
    evaluate=of_many_axes(_sort_evaluate, "dimension"),
    jvp=_sort_jvp,
    transpose=PERMUTES,
    batch=_sort_batch,
    lower=_sort_lower,
)


_sort_repeated = native.shaped(sort_p, _sort_in_numpy)  # NumPy is fast for one array of wide elements


def sort(operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1):
    """One or several arrays sorted along an axis.

    NaNs come last; zeros of both signs are equal; complex numbers are ordered by real, then imaginary part.

    Arguments:
      operand: an array, or a sequence of arrays of one shape that are permuted together.
      dimension: the axis.
      is_stable: whether equal elements keep their order.
      num_keys: how many of the arrays decide the order, the first one first.
    Returns:
      The sorted array, or a tuple of them.
    Raises:
      ValueError: ``dimension`` is out of bounds, or ``num_keys`` is not between 1 and the number of arrays.
      TypeError: shapes differ, or there is no array.

    >>> import numpy as np
    >>> sort((np.array([2, 1, 2]), np.array([5, 6, 4])), num_keys=2)
    (Array([1, 2, 2], dtype=int32), Array([6, 4, 5], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("Sort requires at least one operand")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    axis = canonical_axis(dimension, get_aval(operands[0]).ndim, "sort: axis")
    outs = sort_p.bind(*operands, dimension=axis, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
    return tuple(outs) if several else outs[0]


def sort_key_val(keys, values, dimension: int = -1, is_stable: bool = True):
    """Keys sorted along an axis, and values permuted with them.

    Arguments:
      keys: an array.
      values: an array of the same shape.
      dimension: the axis.
      is_stable: whether equal keys keep their order.
    Returns:
      The sorted keys and the permuted values.
    Raises:
      ValueError: ``dimension`` is out of bounds.
      TypeError: shapes differ.

    >>> import numpy as np
    >>> sort_key_val(np.array([3, 1]), np.array([0, 1]))
    (Array([1, 3], dtype=int32), Array([1, 0], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, 1)


# ------------------------------------------------------------------------------------------------------------
# top_k


def _check_top_k(operand, k: int, axis: int):
    if dtypes.is_complex(operand.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if k > operand.shape[axis]:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with shape={list(operand.shape)} and axis={axis}"
        )


def _top_k_abstract(operand, *, k, axis):
    check_ordered("top_k", operand)
    _check_top_k(operand, k, axis)
    check_positions("top_k", operand.shape[axis], np.dtype(np.int32), axis)
    shape = _resized(operand.shape, axis, k)
    return [operand.update(shape=shape), ShapedArray(shape, np.int32, operand.weak_type)]


def _top_k_evaluate(operand, *, k, axis):
    chosen = _top_k_places(sort_key(operand, total_order=True), k, axis)
    return [np.take_along_axis(operand, chosen, axis), chosen.astype(np.int32)]


def _top_k_places(key: np.ndarray, k: int, axis: int) -> np.ndarray:
    """The places of the ``k`` largest keys, largest first, equal ones in their order."""
    n = key.shape[axis]
    if k == 0 or key.size == 0:
        return np.zeros(_resized(key.shape, axis, k), np.intp)
    if key.ndim == 1 and n > 64 * k:
        least = np.partition(key, n - k)[n - k]
        places = np.flatnonzero(key >= least)
        return places[_order_of_largest(key[places], k, axis)]
    return _order_of_largest(key, k, axis)


def _order_of_largest(key: np.ndarray, k: int, axis: int) -> np.ndarray:
    n = key.shape[axis]
    position_bits = max(n - 1, 1).bit_length()
    if 8 * key.dtype.itemsize + position_bits > 64:
        key = _ranks(key, axis)
    # Largest first and earlier before later: the smallest of (not key, position) in one integer.
    flipped = (~key).astype(np.uint64)
    place = np.arange(n, dtype=np.uint64).reshape((-1,) + (1,) * (key.ndim - axis - 1))
    joined = (flipped << np.uint64(position_bits)) | place
    if k < n:
        joined = np.take(np.partition(joined, k - 1, axis=axis), np.arange(k), axis=axis)
    joined.sort(axis=axis)
    return (joined & np.uint64((1 << position_bits) - 1)).astype(np.intp)


def _selection_jvp(primals, tangents, primitive, axis: int, params):
    values, places = primitive.bind(*primals, **params)
    t = tangents[0]
    moved = Zero.of_primal(values) if type(t) is Zero else take_along(t, places, axis)
    return [values, places], [moved, Zero.of_primal(places)]


def _top_k_jvp(primals, tangents, **params):
    return _selection_jvp(primals, tangents, top_k_p, params["axis"], params)


def _top_k_batch(mapped, args, dims, *, k, axis):
    return top_k_p.bind(move_axis(args[0], dims[0], 0), k=k, axis=axis + 1), [0, 0]


def _top_k_lower(b, operand, *, k, axis):
    return _compiled_top_k(b, operand, k, axis, largest=True)


def _compiled_top_k(b, x, k: int, axis: int, largest: bool):
    """Selection in the total order, by signed integers in the order of the floats. The elements are read where they
    are: the integers are only needed once, to make the keys.
    """
    dtype = x.dtype
    if dtypes.KIND[dtype] != "f":
        return b.top_k(x, k, axis)
    wide = np.dtype(np.float32) if dtype.itemsize == 1 else dtype
    ints = np.dtype(f"int{8 * wide.itemsize}")
    bits = b.bitcast(b.convert(x, wide), ints)
    width, low = (b.full(bits.shape, np.asarray(n, ints)) for n in (8 * ints.itemsize - 1, np.iinfo(ints).max))
    key = b.map("xor", bits, b.map("and", b.map("shift_right_arithmetic", bits, width), low))
    return b.top_k(key if largest else b.map("not", key), k, axis, x)


top_k_p = Primitive(
    "top_k",
    multiple_results=True,
    abstract=_top_k_abstract,
    jvp=_top_k_jvp,
    transpose=PERMUTES,
    batch=_top_k_batch,
    lower=_top_k_lower,
)
top_k_p.evaluate = of_many_axes(native.shaped(top_k_p, _top_k_evaluate), "axis")


@whole
def top_k(operand, k: int, *, axis: int = -1):
    """The largest elements along an axis, and where they are.

    The order is total: -0 is less than 0, and NaN is largest. Of equal elements the first ones are taken.

    Arguments:
      operand: a real array.
      k: how many.
      axis: the axis.
    Returns:
      A list: the elements, largest first, and their int32 indices.
    Raises:
      ValueError: ``k`` is negative or larger than the axis, or the operand is complex.

    >>> import numpy as np
    >>> top_k(np.array([1, 5, 3]), 2)
    [Array([5, 3], dtype=int32), Array([1, 2], dtype=int32)]
    """
    axis = canonical_axis(axis, get_aval(operand).ndim, "top_k: axis")
    return list(top_k_p.bind(operand, k=operator.index(k), axis=axis))


# ------------------------------------------------------------------------------------------------------------
# approx_max_k and approx_min_k: exact here, which any recall target admits


def _approx_size(aval, *, k, reduction_dimension, recall_target, reduction_input_size_override, **params) -> int:
    """How many candidates are returned where they are not aggregated.

    Source: Chern et al., "TPU-KNN: K Nearest Neighbor Search at Peak FLOP/s" (2022), for accelerators' tiles
    of 1024 numbers (one dimension) or 128.
    """
    n = aval.shape[reduction_dimension]
    tile = 1024 if aval.ndim == 1 else 128
    if n <= tile:
        return n
    given = max(n, reduction_input_size_override)
    tiles = -(-n // tile)
    most = (tiles - 1).bit_length()
    if k == 1:
        return tile
    bins = min(max(int((1.0 - k) / math.log(recall_target)) if recall_target < 1 else given, tile), given)
    halvings = min((given // bins).bit_length() - 1, most)
    if halvings == 0:
        return n
    return -(-tiles // 2**halvings) * tile


def _approx_abstract(operand, *, aggregate_to_topk, **params):
    if not operand.ndim:
        raise TypeError("approx_top_k operand must have >= 1 dimension, got ()")
    if not dtypes.is_floating(operand.dtype):
        raise ValueError("operand must be a floating type")
    k, axis, override = params["k"], params["reduction_dimension"], params["reduction_input_size_override"]
    n = operand.shape[axis]
    if n < k:
        raise ValueError(f"k must be smaller than the size of reduction_dim {n}, got {k}")
    if k < 0:
        raise ValueError(f"k must be nonnegative, got {k}")
    if not 0 < params["recall_target"] <= 1:
        raise ValueError(f"recall_target must be in (0, 1], got {params['recall_target']}")
    if override >= 0 and override < n:
        raise ValueError(f"reduction_input_size_override: {override} should be greater equals to {n}")
    check_positions("approx_top_k", n, np.dtype(np.int32), axis)
    size = k if aggregate_to_topk else _approx_size(operand, **params)
    shape = _resized(operand.shape, axis, size)
    return [operand.update(shape=shape), ShapedArray(shape, np.int32, operand.weak_type)]


def _approx_evaluate(operand, *, is_max_k, reduction_dimension, **params):
    size = _approx_candidates(operand, reduction_dimension=reduction_dimension, **params)
    key = sort_key(operand, total_order=True)
    padded = _padded_places(key if is_max_k else ~key, size, reduction_dimension)
    return [np.take_along_axis(operand, padded, reduction_dimension), padded.astype(np.int32)]


def _approx_candidates(operand, *, k, aggregate_to_topk, **params) -> int:
    return k if aggregate_to_topk else _approx_size(operand, k=k, **params)


def _padded_places(key, size: int, axis: int):
    """The best places; where more are asked for than there are, the last one is repeated."""
    n = key.shape[axis]
    places = _top_k_places(key, min(size, n), axis)
    if size <= n:
        return places
    return np.take(places, np.minimum(np.arange(size), n - 1), axis=axis)


def _approx_jvp(primals, tangents, **params):
    return _selection_jvp(primals, tangents, approx_top_k_p, params["reduction_dimension"], params)


def _approx_batch(axis, args, dims, *, reduction_dimension, **params):
    moved = move_axis(args[0], dims[0], 0)
    return approx_top_k_p.bind(moved, reduction_dimension=reduction_dimension + 1, **params), [0, 0]


def _approx_lower(b, operand, *, is_max_k, reduction_dimension, **params):
    size = _approx_candidates(operand, reduction_dimension=reduction_dimension, **params)
    n = operand.shape[reduction_dimension]
    values, places = _compiled_top_k(b, operand, min(size, n), reduction_dimension, is_max_k)
    if size > n:
        values, places = (_repeat_last(b, v, size - n, reduction_dimension) for v in (values, places))
    return [values, places]


def _repeat_last(b, x, count: int, axis: int):
    start = [0] * len(x.shape)
    start[axis] = x.shape[axis] - 1
    last = b.slice(x, start, x.shape, [1] * len(x.shape))
    shape = _resized(x.shape, axis, count)
    return b.concatenate([x, b.broadcast_in_dim(last, shape, range(len(shape)))], axis)


approx_top_k_p = Primitive(
    "approx_top_k",
    multiple_results=True,
    abstract=_approx_abstract,
    jvp=_approx_jvp,
    transpose=PERMUTES,
    batch=_approx_batch,
    lower=_approx_lower,
)
approx_top_k_p.evaluate = of_many_axes(native.shaped(approx_top_k_p, _approx_evaluate), "reduction_dimension")


def _approx_top_k(operand, k, dimension, recall_target, size_override, aggregate, is_max_k: bool):
    return list(
        approx_top_k_p.bind(
            operand,
            k=operator.index(k),
            reduction_dimension=canonical_axis(dimension, get_aval(operand).ndim or 1, "approx_top_k: axis"),
            recall_target=float(recall_target),
            is_max_k=is_max_k,
            reduction_input_size_override=operator.index(size_override),
            aggregate_to_topk=bool(aggregate),
        )
    )


@whole
def approx_max_k(
    operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
):
    """The largest elements along an axis, of which accelerators may miss some; here none is missed.

    Arguments:
      operand: an array of floats.
      k: how many.
      reduction_dimension: the axis.
      recall_target: which part of the largest elements is to be found.
      reduction_input_size_override: the size of the whole axis, where the operand is a part of it.
      aggregate_to_topk: whether to return ``k`` elements, or more candidates from which to choose them.
    Returns:
      A list: the elements and their int32 indices.
    Raises:
      ValueError: the operand is not of floats, or an argument is out of range.

    >>> import numpy as np
    >>> approx_max_k(np.array([1.0, 5.0, 3.0]), 2)
    [Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    rest = recall_target, reduction_input_size_override, aggregate_to_topk
    return _approx_top_k(operand, k, reduction_dimension, *rest, is_max_k=True)


@whole
def approx_min_k(
    operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
):
    """The smallest elements along an axis, of which accelerators may miss some; here none is missed.

    Arguments:
      operand: an array of floats.
      k: how many.
      reduction_dimension: the axis.
      recall_target: which part of the smallest elements is to be found.
      reduction_input_size_override: the size of the whole axis, where the operand is a part of it.
      aggregate_to_topk: whether to return ``k`` elements, or more candidates from which to choose them.
    Returns:
      A list: the elements and their int32 indices.
    Raises:
      ValueError: the operand is not of floats, or an argument is out of range.

    >>> import numpy as np
    >>> approx_min_k(np.array([1.0, 5.0, 3.0]), 2)
    [Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    rest = recall_target, reduction_input_size_override, aggregate_to_topk
    return _approx_top_k(operand, k, reduction_dimension, *rest, is_max_k=False)
