"""Joining arrays along an axis, and cutting them up again."""

import itertools

import numpy as np

from catena.core.array import Array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.structural import reduce_sum_p
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal
from catena.lax import native
from catena.lax.elementwise import check_same_dtypes
from catena.lax.shape import insert, reshape, slice_in_dim, structural, unary_transpose
from catena.lax.structure import as_ints, canonical_axis


def _instantiated_jvp(find):
    """Differentiation of a linear primitive of several operands, of which some may have zero tangents."""

    def jvp(primals, tangents, **params):
        out = find().bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.of_primal(out)
        return out, find().bind(*map(instantiate, tangents), **params)

    return jvp


def _joining_transpose(cut):
    """The transpose of joining: ``cut(ct, avals, **params)`` gives each operand's part."""

    def transpose(ct, *xs, **params):
        if type(ct) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in xs]
        parts = cut(ct, [get_aval_of_operand(x) for x in xs], **params)
        return [p if is_undefined_primal(x) else None for x, p in zip(xs, parts, strict=True)]

    return transpose


def get_aval_of_operand(x):
    return x.aval if is_undefined_primal(x) else get_aval(x)


LARGE = 1 << 21  # bytes of the first and the last operand, from which on all threads copy quicker than one


# ------------------------------------------------------------------------------------------------------------
# concatenate


def _concatenate_abstract(*xs, dimension):
    if not xs:
        raise TypeError("concatenate expects at least one operand, got 0.")
    shapes = ", ".join(str(x.shape) for x in xs)
    if len({x.ndim for x in xs}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    if not 0 <= dimension < xs[0].ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    if len({insert(x.shape, dimension, 0)[: dimension + 1] + x.shape[dimension + 1 :] for x in xs}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
            f"concatenating along dimension {dimension} for shapes {shapes}."
        )
    check_same_dtypes("concatenate", xs)
    shape = list(xs[0].shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return ShapedArray(shape, xs[0].dtype, all(x.weak_type for x in xs))


def _cut_concatenated(ct, avals, *, dimension):
    ends = list(itertools.accumulate(a.shape[dimension] for a in avals))
    starts = [0, *ends[:-1]]
    return [slice_in_dim(ct, a, b, axis=dimension) for a, b in zip(starts, ends, strict=True)]


def _concatenate_batch(axis, args, dims, *, dimension):
    args = [at_front(axis.size, x, d) for x, d in zip(args, dims, strict=True)]
    return concatenate_p.bind(*args, dimension=dimension + 1), 0


concatenate_p = structural(
    "concatenate",
    abstract=_concatenate_abstract,
    evaluate=lambda *xs, dimension: np.concatenate(xs, axis=dimension),
    jvp=_instantiated_jvp(lambda: concatenate_p),
    transpose=_joining_transpose(_cut_concatenated),
    batch=_concatenate_batch,
    lower=lambda b, *xs, dimension: b.concatenate(xs, dimension),
)
concatenate_p.evaluate = native.shared(concatenate_p, concatenate_p.evaluate, LARGE)


def concatenate(operands, dimension: int):
    """Arrays joined along an axis.

    Arguments:
      operands: a sequence of arrays of the same dtype, whose shapes differ at most along the axis; or one
        array, whose rows are joined.
      dimension: the axis, not negative.
    Returns:
      The joined array.
    Raises:
      ValueError: there are no operands.
      TypeError: the types do not fit, or there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.concatenate([np.array([1, 2]), np.array([3])], 0).tolist()
    [1, 2, 3]
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=as_ints((dimension,), "concatenate: dimension")[0])


# ------------------------------------------------------------------------------------------------------------
# split


def _split_abstract(x, *, sizes, axis):
    if any(n < 0 for n in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
        )
    return [ShapedArray((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]


def _split(x, *, sizes, axis):
    return np.split(x, list(itertools.accumulate(sizes[:-1])), axis) if sizes else []


def _unary_list_jvp(find):
    def jvp(primals, tangents, **params):
        outs = find().bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return outs, [Zero.of_primal(out) for out in outs]
        return outs, find().bind(*tangents, **params)

    return jvp


def _split_transpose(cts, x, *, sizes, axis):
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    return [concatenate([instantiate(ct) for ct in cts], axis)]


def _split_batch(mapped, args, dims, *, sizes, axis):
    outs = split_p.bind(args[0], sizes=sizes, axis=axis + (axis >= dims[0]))
    return outs, [dims[0]] * len(outs)


def _split_lower(b, x, *, sizes, axis):
    ends = list(itertools.accumulate(sizes))
    outs = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        low = [start if d == axis else 0 for d in range(x.ndim)]
        outs.append(b.slice(x, low, [end if d == axis else n for d, n in enumerate(x.shape)], [1] * x.ndim))
    return outs


split_p = structural(
    "split",
    abstract=_split_abstract,
    evaluate=_split,
    jvp=_unary_list_jvp(lambda: split_p),
    transpose=_split_transpose,
    batch=_split_batch,
    lower=_split_lower,
    multiple_results=True,
)


def split(operand, sizes, axis: int = 0):
    """An array cut into parts along an axis.

    Arguments:
      operand: array.
      sizes: the sizes of the parts; they add up to the size of the axis.
      axis: the axis; a negative one counts from the end.
    Returns:
      A list of arrays.
    Raises:
      ValueError: the sizes do not add up, or there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> [part.tolist() for part in lax.split(np.arange(3), (1, 2))]
    [[0], [1, 2]]
    """
    axis = canonical_axis(axis, get_aval(operand).ndim, "split: axis")
    return split_p.bind(operand, sizes=as_ints(sizes, "split: sizes"), axis=axis)


# ------------------------------------------------------------------------------------------------------------
# stack, unstack


def _stack_abstract(*xs, axis):
    check_same_dtypes("stack", xs)
    shape = xs[0].shape
    if any(x.ndim != len(shape) for x in xs):
        got = ", ".join(str(x.shape) for x in xs)
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {got}.")
    if any(x.shape != shape for x in xs):
        got = ", ".join(str(x.shape) for x in xs)
        raise ValueError(f"Cannot stack arrays with different shapes: got {got}.")
    return ShapedArray(insert(shape, axis, len(xs)), xs[0].dtype, all(x.weak_type for x in xs))


def _stack_batch(mapped, args, dims, *, axis):
    return stack_p.bind(*[at_front(mapped.size, x, d) for x, d in zip(args, dims, strict=True)], axis=axis + 1), 0


def _stack_lower(b, *xs, axis):
    return b.concatenate([b.reshape(x, insert(x.shape, axis, 1)) for x in xs], axis)


stack_p = structural(
    "stack",
    abstract=_stack_abstract,
    evaluate=lambda *xs, axis: np.stack(xs, axis),
    jvp=_instantiated_jvp(lambda: stack_p),
    transpose=_joining_transpose(lambda ct, avals, *, axis: unstack_p.bind(ct, axis=axis)),
    batch=_stack_batch,
    lower=_stack_lower,
)
stack_p.evaluate = native.shared(stack_p, stack_p.evaluate, LARGE)


def stack(operands, axis: int = 0):
    """Arrays of one shape joined along a new axis.

    Arguments:
      operands: a sequence of arrays of the same shape and dtype.
      axis: where the new axis stands in the result; a negative one counts from its end.
    Returns:
      The stacked array.
    Raises:
      ValueError: there are no operands, their shapes differ, or the axis is out of bounds.
      TypeError: their dtypes differ.

    >>> import catena.lax as lax, numpy as np
    >>> lax.stack([np.array([1, 2]), np.array([3, 4])], -1).tolist()
    [[1, 3], [2, 4]]
    """
    if len(operands) == 0:
        raise ValueError("stack requires a non-empty sequence of arrays")
    axis = canonical_axis(axis, get_aval(operands[0]).ndim + 1, "stack: axis")
    return stack_p.bind(*operands, axis=axis)


def _unstack_abstract(x, *, axis):
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [ShapedArray(shape, x.dtype, x.weak_type)] * x.shape[axis]


def _unstack_transpose(cts, x, *, axis):
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    return [stack_p.bind(*map(instantiate, cts), axis=axis)]


def _unstack_batch(mapped, args, dims, *, axis):
    outs = unstack_p.bind(move_axis(args[0], dims[0], 0), axis=axis + 1)
    return outs, [0] * len(outs)


def _unstack_lower(b, x, *, axis):
    sizes = (1,) * x.shape[axis]
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return [b.reshape(part, shape) for part in _split_lower(b, x, sizes=sizes, axis=axis)]


unstack_p = structural(
    "unstack",
    abstract=_unstack_abstract,
    evaluate=lambda x, *, axis: [np.asarray(row) for row in np.moveaxis(x, axis, 0)],
    jvp=_unary_list_jvp(lambda: unstack_p),
    transpose=_unstack_transpose,
    batch=_unstack_batch,
    lower=_unstack_lower,
    multiple_results=True,
)


def unstack(x, axis: int = 0):
    """The slices of an array along an axis, without it.

    Arguments:
      x: array of at least one axis.
      axis: the axis; a negative one counts from the end.
    Returns:
      A tuple of arrays.
    Raises:
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> [row.tolist() for row in lax.unstack(np.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, get_aval(x).ndim, "unstack: axis")))


# ------------------------------------------------------------------------------------------------------------
# tile


def _tile_abstract(x, *, reps):
    if len(reps) != x.ndim:
        raise TypeError(f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and x.ndim={x.ndim}.")
    if any(r < 0 for r in reps):
        raise TypeError(f"tile reps must have every element be nonnegative, got {reps}.")
    return ShapedArray([n * r for n, r in zip(x.shape, reps, strict=True)], x.dtype, x.weak_type)


def _interleaved(shape, reps) -> tuple[tuple, tuple]:
    """The shape with an axis before each that is repeated, and which axes these are."""
    spread, copies = [], []
    for n, r in zip(shape, reps, strict=True):
        if r != 1:
            copies.append(len(spread))
            spread.append(r)
        spread.append(n)
    return tuple(spread), tuple(copies)


def tiled(x: np.ndarray, reps: tuple) -> np.ndarray:
    """Copies of a NumPy array of as many axes as there are numbers of copies."""
    spread, copies = _interleaved(x.shape, reps)
    single = tuple(1 if i in copies else n for i, n in enumerate(spread))
    return np.broadcast_to(x.reshape(single), spread).reshape([n * r for n, r in zip(x.shape, reps, strict=True)])


def _tile_transpose(ct, aval, *, reps):
    spread, copies = _interleaved(aval.shape, reps)
    return reduce_sum_p.bind(reshape(ct, spread), axes=copies)


def _tile_lower(b, x, *, reps):
    shape, copies = _interleaved(x.shape, reps)
    whole = b.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i not in copies])
    return b.reshape(whole, [n * r for n, r in zip(x.shape, reps, strict=True)])


tile_p = structural(
    "tile",
    abstract=_tile_abstract,
    evaluate=lambda x, *, reps: tiled(x, reps),
    transpose=unary_transpose(_tile_transpose),
    batch=lambda mapped, args, dims, *, reps: (tile_p.bind(args[0], reps=insert(reps, dims[0], 1)), dims[0]),
    lower=_tile_lower,
)


def tile(operand, reps):
    """An array repeated along its axes.

    Arguments:
      operand: array.
      reps: how often, for each axis.
    Returns:
      The larger array.
    Raises:
      TypeError: the number of repetitions differs from the rank, or one is negative.

    >>> import catena.lax as lax, numpy as np
    >>> lax.tile(np.array([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    return tile_p.bind(operand, reps=as_ints(reps, "tile: reps"))
