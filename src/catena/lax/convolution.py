"""Convolutions.

NumPy evaluates ``conv_general_dilated`` in ``patches``. Both of its derivatives are convolutions again:

* with respect to the input: the cotangent, dilated by the strides, with the flipped kernel, whose input and
  output features change places;
* with respect to the kernel: the input with the cotangent as kernel, where batch and features change places,
  and strides and kernel dilation too.

Source of the two identities: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning"
(2016).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.named import NamedTuple
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate, is_undefined_primal
from catena.lax import native
from catena.lax.contraction import PrecisionLike, canonicalize_precision, preferred_dtype
from catena.lax.convert import convert_element_type
from catena.lax.elementwise import check_same_dtypes
from catena.lax.patches import convolution_in_numpy
from catena.lax.shape import reshape, rev
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.lax.window_shapes import dilated, padtype_to_pads, window_count

# ------------------------------------------------------------------------------------------------------------
# Dimension numbers


class ConvDimensionNumbers(NamedTuple):
    """Which axis is which: ``lhs_spec`` (batch, feature, space...), ``rhs_spec`` (output feature, input
    feature, space...), ``out_spec`` (batch, feature, space...).
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


def conv_general_permutations(dimension_numbers: tuple[str, str, str]) -> tuple:
    """The axes of three layouts written as strings, such as ``('NHWC', 'HWIO', 'NHWC')``.

    Arguments:
      dimension_numbers: the layouts of input, kernel and result. Letters other than N, C, O and I are axes
        of space; their order is that in the kernel's layout.
    Returns:
      For each layout, the positions of its batch (output) and feature (input) axes, then those of space.
    Raises:
      TypeError: a letter is missing or occurs twice, or the axes of space are not the same in all.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, (a, b)) in enumerate(zip(dimension_numbers, ("NC", "OI", "NC"), strict=True)):
        if spec.count(a) != 1 or spec.count(b) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{a}' and '{b}' exactly once, got "
                f"{spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}.")
    if not set(lhs) - {"N", "C"} == set(rhs) - {"O", "I"} == set(out) - {"N", "C"}:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, got "
            f"{tuple(dimension_numbers)}."
        )
    space = [c for c in rhs if c not in "OI"]
    return tuple(
        tuple(spec.index(c) for c in (*names, *space))
        for spec, names in zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)
    )


def conv_dimension_numbers(
    lhs_shape, rhs_shape, dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """What a user wrote for ``dimension_numbers``, as ``ConvDimensionNumbers``.

    Arguments:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      dimension_numbers: three strings, ConvDimensionNumbers, or None for batch, feature, space / output,
        input, space.
    Returns:
      The axes.
    Raises:
      TypeError: ranks or layouts do not fit.

    >>> conv_dimension_numbers((1, 2, 9), (5, 2, 3), None)
    ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*(tuple(map(operator.index, spec)) for spec in dimension_numbers))
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {rank} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise TypeError(
            f"convolution dimension_numbers must be a tuple of three strings or None, got {dimension_numbers!r}."
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        kinds = tuple(type(spec) for spec in dimension_numbers)
        raise TypeError(f"convolution dimension_numbers elements must be strings, got {kinds}.")
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != rank:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, got "
                f"{len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(tuple(dimension_numbers)))


# ------------------------------------------------------------------------------------------------------------
# Types


def _check_counts(lhs, rhs, numbers, feature_groups: int, batch_groups: int):
    """The checks of features, batch and groups against each other."""
    name = "conv_general_dilated"
    for what, count in (("feature_group_count", feature_groups), ("batch_group_count", batch_groups)):
        if count <= 0:
            raise ValueError(f"{name} {what} must be a positive integer, got {count}.")
    lhs_features, rhs_features = lhs.shape[numbers.lhs_spec[1]], rhs.shape[numbers.rhs_spec[1]]
    batch, out_features = lhs.shape[numbers.lhs_spec[0]], rhs.shape[numbers.rhs_spec[0]]
    if lhs_features % feature_groups:
        raise ValueError(
            f"{name} feature_group_count must divide lhs feature dimension size, but {feature_groups} does not divide "
            f"{lhs_features}."
        )
    if lhs_features // feature_groups != rhs_features:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs input feature "
            f"dimension size, but {lhs_features} // {feature_groups} != {rhs_features}."
        )
    for what, count in (("feature_group_count", feature_groups), ("batch_group_count", batch_groups)):
        if out_features % count:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of {what}, but {out_features} is not a "
                f"multiple of {count}."
            )
    if batch % batch_groups:
        raise ValueError(
            f"{name} batch_group_count must divide lhs batch dimension size, but {batch_groups} does not divide "
            f"{batch}."
        )
    if batch_groups > 1 and feature_groups > 1:
        raise ValueError(
            f"{name} at most one of batch_group_count and feature_group_count may be > 1, got {batch_groups} and "
            f"{feature_groups}."
        )


def _check_lengths(n_space: int, **values):
    for what, given in values.items():
        if len(given) != n_space:
            raise ValueError(
                f"conv_general_dilated window and {what} must have the same number of dimensions, but got {n_space} "
                f"and {len(given)}"
            )
    for what in ("lhs_dilation", "rhs_dilation"):
        if any(d <= 0 for d in values[what]):
            raise TypeError(f"All dilations must be positive, got {tuple(values[what])}.")
    if any(s <= 0 for s in values["window_strides"]):
        raise TypeError(f"conv_general_dilated window_strides must be positive, got {tuple(values['window_strides'])}.")


def _space(shape, spec) -> tuple:
    return tuple(shape[d] for d in spec[2:])


def _out_space(lhs_space, rhs_space, strides, padding, lhs_dilation, rhs_dilation) -> tuple:
    return tuple(map(window_count, lhs_space, rhs_space, strides, padding, lhs_dilation, rhs_dilation))


def _abstract(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
):
    check_same_dtypes("conv_general_dilated", (lhs, rhs))
    _check_counts(lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
    _check_lengths(lhs.ndim - 2, window_strides=window_strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation)
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(lhs.dtype):
        raise TypeError("`preferred_element_type` must not be narrower than the original type.")
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    batch = lhs.shape[lhs_spec[0]] // batch_group_count
    space = _out_space(
        _space(lhs.shape, lhs_spec),
        _space(rhs.shape, rhs_spec),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
    )
    shape = [0] * lhs.ndim
    for d, n in zip(out_spec, (batch, rhs.shape[rhs_spec[0]], *space), strict=True):
        shape[d] = n
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


# ------------------------------------------------------------------------------------------------------------
# Derivatives


def _jvp(primals, tangents, **params):
    lhs, rhs = primals
    lhs_t, rhs_t = tangents
    out = conv_general_dilated_p.bind(lhs, rhs, **params)
    total = Zero.of_primal(out)
    if type(lhs_t) is not Zero:
        total = add_tangents(total, conv_general_dilated_p.bind(lhs_t, rhs, **params))
    if type(rhs_t) is not Zero:
        total = add_tangents(total, conv_general_dilated_p.bind(lhs, rhs_t, **params))
    return out, total


def _transpose(ct, lhs, rhs, *, preferred_element_type, **params):
    ct = instantiate(ct)
    if is_undefined_primal(lhs):
        return [_lhs_cotangent(ct, lhs.aval, _as(rhs, get_aval(ct).dtype), **params), None]
    return [None, _rhs_cotangent(ct, _as(lhs, get_aval(ct).dtype), rhs.aval, **params)]


def _as(x, dtype):
    return x if get_aval(x).dtype == dtype else convert_element_type(x, dtype)


def _lhs_cotangent(
    ct,
    aval,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = max(feature_group_count, batch_group_count)
    kernel = rev(rhs, rhs_spec[2:])
    if groups > 1:  # output features (groups, per group) give their groups to the input features
        split = _split(kernel, rhs_spec[0], groups)
        i_dim = rhs_spec[1] + (rhs_spec[1] > rhs_spec[0])
        kernel = _merge(split, rhs_spec[0], i_dim)
    pads = [
        _lhs_padding(*sizes)
        for sizes in zip(
            _space(aval.shape, lhs_spec),
            _space(get_aval(rhs).shape, rhs_spec),
            _space(get_aval(ct).shape, out_spec),
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            strict=True,
        )
    ]
    out = conv_general_dilated_p.bind(
        ct,
        kernel,
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
    )
    if batch_group_count > 1:  # the groups among the features go back to the batch
        split = _split(out, lhs_spec[1], batch_group_count)
        n_dim = lhs_spec[0] + (lhs_spec[0] > lhs_spec[1])
        out = _merge(split, lhs_spec[1], n_dim)
    return _as(out, aval.dtype)


def _lhs_padding(n, k, out, stride, pad, lhs_dilation, rhs_dilation) -> tuple:
    """The padding with which every element of the dilated input meets all windows that contain it."""
    reach = dilated(k, rhs_dilation)
    low = reach - 1 - pad[0]
    return low, dilated(n, lhs_dilation) + reach - 1 - dilated(out, stride) - low


def _rhs_cotangent(
    ct,
    lhs,
    aval,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    pads = []
    for n, k, out, stride, (low, _), ld, rd in zip(
        _space(get_aval(lhs).shape, lhs_spec),
        _space(aval.shape, rhs_spec),
        _space(get_aval(ct).shape, out_spec),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        strict=True,
    ):
        pads.append((low, dilated(out, stride) + (k - 1) * rd - dilated(n, ld) - low))
    result = conv_general_dilated_p.bind(
        lhs,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(
            (lhs_spec[1], lhs_spec[0], *lhs_spec[2:]),
            (out_spec[1], out_spec[0], *out_spec[2:]),
            (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]),
        ),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=None,
    )
    return _as(result, aval.dtype)


# ------------------------------------------------------------------------------------------------------------
# Batching: the batch axis joins the batch, the output features or the groups


def _split(x, dim: int, n: int):
    """The axis ``dim`` as two, of which the first has size ``n``."""
    shape = get_aval(x).shape
    return reshape(x, (*shape[:dim], n, shape[dim] // n if n else 0, *shape[dim + 1 :]))


def _merge(x, axis: int, dim: int):
    """The axis ``axis`` merged into ``dim``, as the slower of the two."""
    target = dim - (axis < dim)
    x = move_axis(x, axis, target)
    shape = get_aval(x).shape
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def _after(dim: int, new: int) -> int:
    """Where ``dim`` is after an axis was put in at ``new``."""
    return dim + (dim >= new)


def _merge_batch(x, batch_dim: int, dim: int, groups: int = 1):
    """The batch axis merged into ``dim`` (counted without it), within each of ``groups``."""
    if groups == 1:
        return _merge(x, batch_dim, _after(dim, batch_dim))
    x = move_axis(x, batch_dim, 0)
    x = _split(x, dim + 1, groups)  # batch, ..., groups, within, ...
    x = _merge(x, 0, dim + 2)
    return _merge(x, dim, dim + 1)


def _split_batch(out, dim: int, size: int, groups: int = 1):
    """The batch axis taken out of ``dim`` again; it becomes the axis ``dim`` (or 0 with groups)."""
    if groups == 1:
        return _split(out, dim, size), dim
    out = _split(out, dim, groups)
    out = _split(out, dim + 1, size)  # ..., groups, batch, within, ...
    return _merge(move_axis(out, dim + 1, 0), dim + 1, dim + 2), 0


def _batch(axis, args, dims, *, dimension_numbers, feature_group_count, batch_group_count, **params):
    (lhs, rhs), (lhs_dim, rhs_dim) = args, dims
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    if lhs_dim is not None and rhs_dim is not None:
        which = "batch_group_count" if batch_group_count > 1 else "feature_group_count"
        lhs = _merge_batch(lhs, lhs_dim, lhs_spec[0 if batch_group_count > 1 else 1])
        rhs = _merge_batch(rhs, rhs_dim, rhs_spec[0])
        groups[which] *= axis.size
        where = out_spec[1], axis.size, 1
    elif lhs_dim is not None:
        lhs = _merge_batch(lhs, lhs_dim, lhs_spec[0], batch_group_count)
        where = out_spec[0], axis.size, 1
    else:
        count = max(feature_group_count, batch_group_count)
        rhs = _merge_batch(rhs, rhs_dim, rhs_spec[0], count)
        where = out_spec[1], axis.size, count
    out = conv_general_dilated_p.bind(lhs, rhs, dimension_numbers=dimension_numbers, **groups, **params)
    return _split_batch(out, *where)


def _lower(
    b,
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
):
    out_dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    narrow = dtypes.is_floating(out_dtype) and dtypes.itemsize_bits(out_dtype) < 32
    wide = np.dtype(np.float32) if narrow else out_dtype
    sizes, groups = (window_strides, padding, lhs_dilation, rhs_dilation), (feature_group_count, batch_group_count)
    out = b.conv(b.convert(lhs, wide), b.convert(rhs, wide), dimension_numbers, sizes, groups)
    return b.convert(out, out_dtype)


conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    abstract=_abstract,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)
conv_general_dilated_p.evaluate = native.shaped(conv_general_dilated_p, convolution_in_numpy)

# ------------------------------------------------------------------------------------------------------------
# The public function; what is derived from it stands in conv_forms.py


@whole
def conv_general_dilated(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    out_sharding=None,
):
    """The convolution of an array with a kernel (without flipping it), in any number of dimensions.

    Arguments:
      lhs: the input: batch, features and space in any order.
      rhs: the kernel: output features, input features (per group) and space in any order; of the input's
        dtype.
      window_strides: one number for each axis of space.
      padding: 'VALID', 'SAME', 'SAME_LOWER', or for each axis of space how much to pad before and after.
      lhs_dilation: how far apart the input's elements are placed (transposed convolution); 1 by default.
      rhs_dilation: how far apart the kernel's elements are placed (atrous convolution); 1 by default.
      dimension_numbers: the layouts of input, kernel and result as three strings such as 'NHWC', 'HWIO',
        'NHWC', or ConvDimensionNumbers; by default batch, feature, space and output, input, space.
      feature_group_count: into how many groups features fall, each convolved for itself.
      batch_group_count: into how many groups the batch falls, each convolved with its own output features.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The result in its layout.
    Raises:
      TypeError: ranks, dtypes, layouts or dilations do not fit.
      ValueError: features, groups or strides do not fit.

    >>> import numpy as np
    >>> conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2., 2.]]], dtype=float32)
    """
    if out_sharding is not None:
        return told(
            out_sharding,
            conv_general_dilated,
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
            None,
        )
    lhs_shape, rhs_shape = get_aval(lhs).shape, get_aval(rhs).shape
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    n_space = len(lhs_shape) - 2
    strides = _ints(window_strides, "window_strides")
    lhs_dilation = (1,) * n_space if lhs_dilation is None else _ints(lhs_dilation, "lhs_dilation")
    rhs_dilation = (1,) * n_space if rhs_dilation is None else _ints(rhs_dilation, "rhs_dilation")
    if isinstance(padding, str):
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op. Please either "
                "exactly specify the required padding or use conv_transpose."
            )
        _check_lengths(n_space, window_strides=strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation)
        reach = [dilated(k, d) for k, d in zip(_space(rhs_shape, numbers.rhs_spec), rhs_dilation, strict=True)]
        padding = padtype_to_pads(_space(lhs_shape, numbers.lhs_spec), reach, strides, padding)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=_pairs(padding, n_space),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_dtype("conv_general_dilated", preferred_element_type),
    )


def _ints(values, name: str) -> tuple:
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"conv_general_dilated: {name} must be a sequence of integers, got {values!r}") from None


def _pairs(padding, n_space: int) -> tuple:
    try:
        pairs = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, got "
            f"{padding}"
        ) from None
    if len(pairs) != n_space:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {n_space}, got {len(pairs)}.")
    return pairs
