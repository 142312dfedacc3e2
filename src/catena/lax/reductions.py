"""Reductions: sums, products and their kin along axes, the place of the largest element, and folds by any function."""

import numpy as np

from catena.core import casts, dtypes
from catena.core.aval import ShapedArray
from catena.core.primitive import Primitive, define
from catena.core.shapes import check_positions
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.structural import reduce_sum_p
from catena.core.zeros import Zero, get_aval
from catena.lax import native
from catena.lax.arithmetic import add, div, max_p, min_p, mul
from catena.lax.comparison import eq
from catena.lax.convert import convert
from catena.lax.elementwise import (
    ANY,
    ANY_NUMBER,
    BITS,
    NOT_LINEAR,
    ORDERED,
    WIDER,
    WIDER_WITH_HALF,
    check_admitted,
)
from catena.lax.join import concatenate_p
from catena.lax.shape import as_scalar, broadcast_in_dim, reshape, skip, slice_in_dim, transpose
from catena.lax.signed_zeros import ordered
from catena.lax.structure import as_ints, dense, told

# ------------------------------------------------------------------------------------------------------------
# What several share


def as_axes(name: str, axes) -> tuple:
    """A sequence of axes as a tuple; one integer is not one."""
    if hasattr(axes, "__index__"):
        raise TypeError(f"{name}: axes must be a sequence of integers, got {axes!r}")
    return as_ints(axes, f"{name}: axes")


def check_axes(name: str, x, axes):
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x}.")


def _without(shape, axes) -> tuple:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def kept_axes(ndim: int, axes) -> tuple:
    """The axes that a reduction over ``axes`` leaves."""
    return tuple(i for i in range(ndim) if i not in axes)


def _reduction_batch(find):
    def batch(mapped, args, dims, *, axes, **params):
        (x,), (d,) = args, dims
        axes = skip(axes, d)
        return find().bind(x, axes=axes, **params), d - sum(a < d for a in axes)

    return batch


def _evaluated(reduce, wider, of_nothing=None):
    """``reduce(x, axes)`` for all dtypes; in ``wider`` ones where the dtype itself would lose digits or has
    no loop. ``of_nothing``: from a dtype to the result for no elements, where ``reduce`` has none.
    """

    def evaluate(x, *, axes):
        if not axes:
            return x
        dtype = x.dtype
        if of_nothing and not x.size:
            return np.full(_without(x.shape, axes), of_nothing(dtype), dtype)
        if dtype in wider:
            return casts.convert(np.asarray(reduce(x.astype(wider[dtype]), axes)), dtype)
        return reduce(x, axes)

    return evaluate


def reduction(
    primitive, reduce, admitted, jvp, *, kind, wider=WIDER, transpose=NOT_LINEAR, lower=None, of_nothing=None
):
    """A reduction along ``axes`` with all its rules."""
    primitive = define(primitive)
    name = primitive.name

    def abstract(x, *, axes):
        check_admitted(name, x, admitted)
        check_axes(name, x, axes)
        return ShapedArray(_without(x.shape, axes), x.dtype, x.weak_type)

    def lower_reduction(b, x, *, axes):
        if of_nothing and axes and 0 in x.shape:
            return b.full(_without(x.shape, axes), np.full((), of_nothing(x.dtype), x.dtype))
        return lower(b, x, axes=axes) if lower else b.reduce(kind, x, axes)

    primitive.define(
        abstract=abstract, evaluate=_evaluated(reduce, wider, of_nothing), jvp=jvp, transpose=transpose,
        batch=_reduction_batch(lambda: primitive),
        lower=lower_reduction,
    )  # fmt: skip
    primitive.evaluate = native.shaped(primitive, primitive.evaluate)
    return primitive


def initial_value(name: str, value, dtype):
    """What a fold of elements of ``dtype`` begins with, as a scalar of that dtype. A weak value becomes one; infinities
    stand for the ends of the range of integers, but no other number that an integer dtype lacks is taken.
    """
    check_initial_value(name, value, dtype)
    return as_scalar(value, dtype)


def check_initial_value(name: str, value, dtype):
    """TypeError where ``initial_value`` does not take a value."""
    aval = get_aval(value)
    if aval.dtype != dtype and not aval.weak_type:
        raise TypeError(f"{name}: initial value has dtype {aval.dtype}, but its operand has dtype {dtype}")
    if isinstance(value, (int, float, complex)) and not _has_value(dtype, value):
        raise TypeError(f"{name}: initial value {value!r} is no value of the operand's dtype {dtype}")


def _has_value(dtype, value) -> bool:
    kind = dtypes.KIND.get(dtype)
    if isinstance(value, complex):
        return kind == "c"
    if kind == "b":
        return value in (0, 1)
    if kind not in "iu" or value in (np.inf, -np.inf):
        return True
    info = dtypes.iinfo(dtype)
    return value == value // 1 and info.min <= value <= info.max


def spread_back(y, shape, axes):
    """The result of a reduction over ``axes``, repeated to the ``shape`` of the operand."""
    return broadcast_in_dim(y, shape, kept_axes(len(shape), axes))


BLOCK = 32  # so many rows are added one after another ...
MANY = 8 * BLOCK  # ... where there are so many


def _sum_of_rows(x, axis: int):
    """The sum along one axis, which stays."""
    blocks = x.shape[axis] // BLOCK
    if blocks < 8:
        return np.add.reduce(x, axis, keepdims=True)
    before, after = (slice(None),) * axis, x.shape[axis + 1 :]
    whole, rest = x[(*before, slice(blocks * BLOCK))], x[(*before, slice(blocks * BLOCK, None))]
    parts = np.add.reduce(whole.reshape(*x.shape[:axis], blocks, BLOCK, *after), axis + 1)
    return _sum_of_rows(parts, axis) + np.add.reduce(rest, axis, keepdims=True)


LONG = 64  # from which length on the last axis is folded by halves


def has_infinity(dtype) -> bool:
    """Whether a float or complex dtype has infinities."""
    return bool(np.isinf(casts.convert(np.asarray(np.inf, np.float32), dtype)))


def _size(shape, axes) -> int:
    size = 1
    for a in axes:
        size *= shape[a]
    return size


def _zero_jvp(find):
    def jvp(primals, tangents, **params):
        out = find().bind(*primals, **params)
        return out, Zero.of_primal(out)

    return jvp


# ---- reduce_sum


def add_reduce(x, axis, dtype=None, out=..., keepdims=False):
    """``np.add.reduce``. NumPy adds rows one after another, and rounding errors grow with their number: here
    many are added in blocks.
    """
    x = dense(x)
    if x.size <= MANY or x.ndim < 2 or axis is None or x.dtype.kind not in "fc":
        return np.add.reduce(x, axis, dtype, out=out, keepdims=keepdims)
    axes = (axis,) if isinstance(axis, int) else axis
    if x.shape[-1] == 1 or not any(-x.ndim <= a < x.ndim and x.shape[a] >= MANY for a in axes):
        return np.add.reduce(x, axis, dtype, out=out, keepdims=keepdims)
    axes = np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)
    if x.ndim - 1 in axes:
        return np.add.reduce(x, axis, dtype, out=out, keepdims=keepdims)
    for a in axes:
        x = _sum_of_rows(x, a)
    return x if keepdims else x.squeeze(axes)


def _sum_jvp(primals, tangents, *, axes):
    (x,), (t,) = primals, tangents
    out = reduce_sum_p.bind(x, axes=axes)
    return out, Zero.of_primal(out) if type(t) is Zero else reduce_sum_p.bind(t, axes=axes)


def _sum_transpose(ct, x, *, axes):
    return [Zero(x.aval) if type(ct) is Zero else spread_back(ct, x.aval.shape, axes)]


reduction(
    reduce_sum_p,
    lambda x, axes: add_reduce(x, axes, x.dtype),
    ANY_NUMBER,
    _sum_jvp,
    kind="sum",
    wider=WIDER_WITH_HALF,
    transpose=_sum_transpose,
)


def reduce_sum(operand, axes, *, out_sharding=None):
    """Sum along axes.

    Arguments:
      operand: array of numbers.
      axes: the axes to reduce, a sequence of nonnegative integers.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_sum(np.array([[1, 2], [3, 4]]), (0,)).tolist()
    [4, 6]
    """
    if out_sharding is not None:
        return told(out_sharding, reduce_sum, operand, axes)
    return reduce_sum_p.bind(operand, axes=as_axes("reduce_sum", axes))


def _bind_sum(operand, *, axes, out_sharding=None):
    """``bind`` takes what JAX's equations hold; how the result is split leaves equations of its own."""
    if out_sharding is not None:
        return told(out_sharding, reduce_sum, operand, axes)
    return Primitive.bind(reduce_sum_p, operand, axes=axes)


reduce_sum_p.bind = _bind_sum


# ---- reduce_prod


def reduced_axis_first(x, axes):
    """``x`` with the axes to reduce as one, in front of the others."""
    shape = get_aval(x).shape
    kept = kept_axes(len(shape), axes)
    return reshape(transpose(x, (*axes, *kept)), (_size(shape, axes), *(shape[i] for i in kept)))


def _product(x, axes):
    """Products, along a long last axis by halves: NumPy's loop waits for each product before the next."""
    x = dense(x)
    if x.size >= 4096 and x.ndim - 1 in axes and x.shape[-1] >= LONG:
        while (n := x.shape[-1]) >= LONG:
            half = n // 2
            y = np.multiply(x[..., :half], x[..., half : 2 * half])
            if n % 2:
                y[..., 0] *= x[..., -1]
            x = y
    return np.multiply.reduce(x, axis=axes, dtype=x.dtype)


def _prod_jvp(primals, tangents, *, axes):
    """Differentiate a tree of products: unlike a quotient by each factor, it is exact where factors are zero."""
    (x,), (t,) = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    aval = get_aval(x)
    if type(t) is Zero or not aval.size:
        return out, Zero.of_primal(out)
    x, t = reduced_axis_first(x, axes), reduced_axis_first(t, axes)
    while (n := get_aval(x).shape[0]) > 1:
        half = n // 2
        (x1, x2, *x_rest), (t1, t2, *t_rest) = _halves(x, half), _halves(t, half)
        x, t = mul(x1, x2), add(mul(t1, x2), mul(x1, t2))
        if x_rest:
            x, t = concatenate_p.bind(x, *x_rest, dimension=0), concatenate_p.bind(t, *t_rest, dimension=0)
    return out, reshape(t, get_aval(out).shape)


def _halves(x, half: int) -> list:
    n = get_aval(x).shape[0]
    parts = [slice_in_dim(x, 0, half), slice_in_dim(x, half, 2 * half)]
    return parts if n == 2 * half else [*parts, slice_in_dim(x, n - 1, n)]


reduce_prod_p = reduction("reduce_prod", _product, ANY_NUMBER, _prod_jvp, kind="prod", wider=WIDER_WITH_HALF)


def reduce_prod(operand, axes):
    """Product along axes.

    Arguments:
      operand: array of numbers.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_prod(np.array([[1, 2], [3, 4]]), (0,)).tolist()
    [3, 8]
    """
    return reduce_prod_p.bind(operand, axes=as_axes("reduce_prod", axes))


# ---- reduce_max


def _extreme_lower(kind, primitive, worst):
    """Lowering of the largest or smallest element; complex ones are compared by the elementwise primitive."""

    def lower(b, x, *, axes):
        if not dtypes.is_complex(x.dtype) or not axes:
            return b.reduce(kind, x, axes)
        scalar = ShapedArray((), x.dtype)
        info = DebugInfo("compilation", primitive.name)
        body, _ = trace_to_closed_jaxpr(lambda a, c: [primitive.bind(a, c)], [scalar, scalar], info)
        value = worst(x.dtype)
        start = b.constant(np.asarray(complex(value, value), x.dtype))
        return b.reduce_general([x], [start], axes, body)[0]

    return lower


def _extreme(ufunc):
    """Reduction by maximum or minimum."""
    return lambda x, axes: ordered(ufunc, lambda f, x: f.reduce(x, axis=axes), x)


def lowest(dtype):
    """The identity of the maximum."""
    kind = dtypes.KIND[dtype]
    if kind in "fc":
        return -np.inf if has_infinity(dtype) else dtypes.finfo(dtype).min
    return False if kind == "b" else dtypes.iinfo(dtype).min


def _extreme_jvp(find):
    """The mean of the tangents at the places where the extreme is reached."""

    def jvp(primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        out = find().bind(x, axes=axes)
        if type(t) is Zero:
            return out, Zero.of_primal(out)
        aval = get_aval(x)
        here = convert(eq(x, spread_back(out, aval.shape, axes)), aval.dtype)
        count = reduce_sum_p.bind(here, axes=axes)
        return out, div(reduce_sum_p.bind(mul(t, here), axes=axes), count)

    return jvp


reduce_max_p = reduction(
    "reduce_max",
    _extreme(np.maximum),
    ANY,
    _extreme_jvp(lambda: reduce_max_p),
    kind="max",
    lower=_extreme_lower("max", max_p, lowest),
    of_nothing=lowest,
)


def reduce_max(operand, axes):
    """Largest element along axes; NaN where there is one, and the lowest value of the dtype where there is nothing.

    Arguments:
      operand: array.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_max(np.array([[1, 2], [3, 4]]), (0,)).tolist()
    [3, 4]
    """
    return reduce_max_p.bind(operand, axes=as_axes("reduce_max", axes))


# ---- reduce_min


def highest(dtype):
    """The identity of the minimum."""
    kind = dtypes.KIND[dtype]
    if kind in "fc":
        return np.inf if has_infinity(dtype) else dtypes.finfo(dtype).max
    return True if kind == "b" else dtypes.iinfo(dtype).max


reduce_min_p = reduction(
    "reduce_min",
    _extreme(np.minimum),
    ANY,
    _extreme_jvp(lambda: reduce_min_p),
    kind="min",
    lower=_extreme_lower("min", min_p, highest),
    of_nothing=highest,
)


def reduce_min(operand, axes):
    """Smallest element along axes; NaN where there is one, and the highest value of the dtype where there is nothing.

    Arguments:
      operand: array.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_min(np.array([[1, 2], [3, 4]]), (0,)).tolist()
    [1, 2]
    """
    return reduce_min_p.bind(operand, axes=as_axes("reduce_min", axes))


# ---- reduce_and


def _reduce_by(ufunc):
    return lambda x, axes: ufunc.reduce(x, axis=axes, dtype=x.dtype)


reduce_and_p = reduction("reduce_and", _reduce_by(np.bitwise_and), BITS, _zero_jvp(lambda: reduce_and_p), kind="and")


def reduce_and(operand, axes):
    """Bitwise and (of booleans: whether all hold) along axes.

    Arguments:
      operand: array of integers or booleans.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_and(np.array([[6, 2], [3, 3]]), (0,)).tolist()
    [2, 2]
    """
    return reduce_and_p.bind(operand, axes=as_axes("reduce_and", axes))


# ---- reduce_or

reduce_or_p = reduction("reduce_or", _reduce_by(np.bitwise_or), BITS, _zero_jvp(lambda: reduce_or_p), kind="or")


def reduce_or(operand, axes):
    """Bitwise or (of booleans: whether any holds) along axes.

    Arguments:
      operand: array of integers or booleans.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_or(np.array([[6, 2], [3, 3]]), (0,)).tolist()
    [7, 3]
    """
    return reduce_or_p.bind(operand, axes=as_axes("reduce_or", axes))


# ---- reduce_xor

reduce_xor_p = reduction("reduce_xor", _reduce_by(np.bitwise_xor), BITS, _zero_jvp(lambda: reduce_xor_p), kind="xor")


def reduce_xor(operand, axes):
    """Bitwise exclusive or (of booleans: whether an odd number holds) along axes.

    Arguments:
      operand: array of integers or booleans.
      axes: the axes to reduce, a sequence of nonnegative integers.
    Returns:
      An array without those axes.
    Raises:
      TypeError: the dtype is not admitted.
      ValueError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_xor(np.array([[6, 2], [3, 3]]), (0,)).tolist()
    [5, 1]
    """
    return reduce_xor_p.bind(operand, axes=as_axes("reduce_xor", axes))


# ---- argmax


def _argreduction(name, find, admitted, kind) -> Primitive:
    def abstract(x, *, axes, index_dtype):
        (axis,) = axes
        check_admitted(name, x, admitted)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"index_dtype must be an integer type, but got {dtypes.dtype_name(index_dtype)}")
        if x.shape[axis] < 1:
            raise ValueError(f"argmin and argmax require non-empty reduced dimension. operand.shape={x.shape} {axis=}")
        check_positions(name, x.shape[axis], index_dtype, axis)
        return ShapedArray(_without(x.shape, axes), index_dtype)

    def in_numpy(x, *, axes, index_dtype):
        x = x.astype(WIDER[x.dtype]) if x.dtype in WIDER else x
        return np.asarray(find(x, axes[0])).astype(index_dtype)

    def evaluate(x, **params):
        """NumPy is quick along the last axis only."""
        return (in_numpy if params["axes"][0] == x.ndim - 1 else compiled)(x, **params)

    primitive = Primitive(
        name, abstract=abstract, evaluate=evaluate, jvp=_zero_jvp(lambda: primitive), transpose=NOT_LINEAR,
        batch=_reduction_batch(lambda: primitive),
        lower=lambda b, x, *, axes, index_dtype: b.argreduce(kind, x, axes[0], index_dtype),
    )  # fmt: skip
    compiled = native.shaped(primitive, in_numpy)
    return primitive


argmax_p = _argreduction("argmax", np.argmax, ORDERED, "max")


def argmax(operand, axis: int, index_dtype):
    """Index of the largest element along an axis: of the first one, and of the first NaN where there is one.

    Arguments:
      operand: array of real numbers or booleans.
      axis: the axis, not negative.
      index_dtype: the integer dtype of the result.
    Returns:
      An array of indices, without the axis.
    Raises:
      TypeError: the dtype is complex, or ``index_dtype`` is not an integer dtype.
      ValueError: there is no such axis, or it is empty.

    >>> import catena.lax as lax, numpy as np
    >>> lax.argmax(np.array([1, 3, 2]), 0, "int32").item()
    1
    """
    index_dtype = dtypes.check_user_dtype_supported(index_dtype, "argmax")
    return argmax_p.bind(operand, axes=as_ints((axis,), "argmax: axis"), index_dtype=index_dtype)


# ---- argmin

argmin_p = _argreduction("argmin", np.argmin, ORDERED, "min")


def argmin(operand, axis: int, index_dtype):
    """Index of the smallest element along an axis: of the first one, and of the first NaN where there is one.

    Arguments:
      operand: array of real numbers or booleans.
      axis: the axis, not negative.
      index_dtype: the integer dtype of the result.
    Returns:
      An array of indices, without the axis.
    Raises:
      TypeError: the dtype is complex, or ``index_dtype`` is not an integer dtype.
      ValueError: there is no such axis, or it is empty.

    >>> import catena.lax as lax, numpy as np
    >>> lax.argmin(np.array([1, 3, 2]), 0, "int32").item()
    0
    """
    index_dtype = dtypes.check_user_dtype_supported(index_dtype, "argmin")
    return argmin_p.bind(operand, axes=as_ints((axis,), "argmin: axis"), index_dtype=index_dtype)
