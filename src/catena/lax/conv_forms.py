"""Forms of convolution that ``conv_general_dilated`` and ``dot_general`` are made to give."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from catena.core.zeros import get_aval
from catena.lax.comparison import eq
from catena.lax.contraction import PrecisionLike, dot_general
from catena.lax.convert import convert_element_type
from catena.lax.convolution import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_permutations,
)
from catena.lax.shape import broadcast_in_dim, broadcasted_iota, reshape, rev, transpose
from catena.lax.whole import whole
from catena.lax.window_shapes import dilated, padtype_to_pads, reduce_window_shape_tuple


def conv(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type=None,
):
    """The plain convolution of a batch of arrays with a kernel.

    Arguments:
      lhs: the input: batch, features, space.
      rhs: the kernel: output features, input features, space.
      window_strides: one number for each axis of space.
      padding: 'VALID', 'SAME' or 'SAME_LOWER'.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
    Returns:
      Batch, output features, space.
    Raises:
      TypeError, ValueError: as ``conv_general_dilated``.

    >>> import numpy as np
    >>> conv(np.ones((1, 2, 4)), np.ones((3, 2, 2)), (2,), "VALID").shape
    (1, 3, 2)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type=None,
):
    """The convolution of a batch of arrays with a kernel, with explicit padding and dilations.

    Arguments:
      lhs: the input: batch, features, space.
      rhs: the kernel: output features, input features, space.
      window_strides: one number for each axis of space.
      padding: for each axis of space how much to pad before and after, or a string as for ``conv``.
      lhs_dilation, rhs_dilation: how far apart the elements of input and kernel are placed.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
    Returns:
      Batch, output features, space.
    Raises:
      TypeError, ValueError: as ``conv_general_dilated``.

    >>> import numpy as np
    >>> conv_with_general_padding(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), [(1, 0)], None, (2,)).shape
    (1, 1, 3)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@whole
def conv_transpose(
    lhs,
    rhs,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    use_consistent_padding: bool = False,
):
    """The transposed convolution ("deconvolution"): the input, dilated by the strides, convolved with the kernel.

    Arguments:
      lhs: the input.
      rhs: the kernel.
      strides: by how much space is stretched.
      padding: 'SAME', whose result is ``strides`` times as large; 'VALID', in which every element of the
        input meets the whole kernel; or for each axis of space how much to pad the dilated input before and
        after.
      rhs_dilation: how far apart the kernel's elements are placed; 1 by default.
      dimension_numbers: the layouts, as for ``conv_general_dilated``; by default features come last: 'NHC',
        'HIO', 'NHC' for one axis of space, 'NHWC', 'HWIO', 'NHWC' for two, 'NHWDC', 'HWDIO', 'NHWDC' for
        three.
      transpose_kernel: whether to flip the kernel and exchange its input and output features, which makes
        this the gradient of the convolution with that kernel and these strides.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      use_consistent_padding: whether explicit padding is that of the convolution whose gradient this is.
    Returns:
      The result in its layout.
    Raises:
      TypeError, ValueError: as ``conv_general_dilated``.

    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 4, 2)), np.ones((3, 2, 5)), (2,), "SAME").shape
    (1, 8, 5)
    """
    lhs_shape, rhs_shape = get_aval(lhs).shape, get_aval(rhs).shape
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise ValueError(
            f"conv_transpose: lhs and rhs must have one rank of at least 2, got {lhs_shape} and {rhs_shape}"
        )
    n_space = len(lhs_shape) - 2
    if len(strides) != n_space:
        raise TypeError(f"conv_transpose: strides must be {n_space} numbers, one for each axis of space, got {strides}")
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, _features_last(n_space, dimension_numbers))
    rhs_dilation = (1,) * n_space if rhs_dilation is None else tuple(map(operator.index, rhs_dilation))
    reach = [dilated(rhs_shape[d], r) for d, r in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
    if isinstance(padding, str):
        if padding in ("SAME", "VALID"):
            padding = [_transposed_padding(k, s, padding) for k, s in zip(reach, strides, strict=True)]
    elif use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(reach, padding, strict=True)]
    if transpose_kernel:
        rhs = _exchange_features(rev(rhs, numbers.rhs_spec[2:]), numbers.rhs_spec)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * n_space,
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _features_last(n_space: int, dimension_numbers):
    """The layouts, by default with features last."""
    if dimension_numbers is not None:
        return dimension_numbers
    if n_space > 3:
        raise ValueError("No 4+ dimensional dimension_number defaults: pass dimension_numbers to conv_transpose.")
    space = "HWD"[:n_space]
    return f"N{space}C", f"{space}IO", f"N{space}C"


def _transposed_padding(k: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of the dilated input for a kernel that reaches over ``k`` elements."""
    if padding not in ("VALID", "SAME"):
        raise ValueError(f"conv_transpose: padding must be 'VALID', 'SAME' or pairs of numbers, got {padding!r}")
    if padding == "VALID":
        total, low = k + stride - 2 + max(k - stride, 0), k - 1
    else:
        total = k + stride - 2
        low = k - 1 if stride > k - 1 else -(-total // 2)
    return low, total - low


def _exchange_features(kernel, spec):
    order = list(range(len(spec)))
    order[spec[0]], order[spec[1]] = spec[1], spec[0]
    return transpose(kernel, tuple(order))


@whole
def conv_general_dilated_patches(
    lhs,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type=None,
):
    """The patches that a convolution would multiply with its kernel.

    Arguments:
      lhs: the input.
      filter_shape: the shape of a patch, one number for each axis of space.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision,
        preferred_element_type: as for ``conv_general_dilated``; of the kernel's layout only the order of
          space matters.
    Returns:
      An array in the result's layout, whose features are those of the input times the elements of a patch,
      the latter running faster.
    Raises:
      TypeError, ValueError: as ``conv_general_dilated``.

    >>> import numpy as np
    >>> conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    aval = get_aval(lhs)
    filter_shape = tuple(map(operator.index, filter_shape))
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *filter_shape), dimension_numbers)
    lhs_spec, rhs_spec, out_spec = numbers
    taps, features = math.prod(filter_shape), aval.shape[lhs_spec[1]]
    identity = convert_element_type(
        eq(broadcasted_iota(np.int32, (taps, taps), 0), broadcasted_iota(np.int32, (taps, taps), 1)),
        aval.dtype,
    )
    kernel = broadcast_in_dim(identity, (features, taps, taps), (1, 2))
    kernel = reshape(kernel, (features * taps, 1, *filter_shape))
    kernel = transpose(kernel, tuple(int(i) for i in np.argsort(rhs_spec)))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
):
    """A convolution with another kernel at every place ("locally connected").

    Arguments:
      lhs: the input.
      rhs: the kernels in the kernel's layout: output features; input features times the elements of a patch,
        the latter running faster; and the places in the result.
      filter_shape: the shape of a patch, one number for each axis of space.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        ``conv_general_dilated``.
    Returns:
      The result in its layout.
    Raises:
      TypeError, ValueError: as ``conv_general_dilated`` and ``dot_general``.

    >>> import numpy as np
    >>> conv_general_dilated_local(np.ones((1, 1, 4)), np.arange(6.0).reshape(1, 2, 3), (1,), "VALID", (2,))
    Array([[[3., 5., 7.]]], dtype=float32)
    """
    numbers = conv_dimension_numbers(get_aval(lhs).shape, get_aval(rhs).shape, dimension_numbers)
    lhs_spec, rhs_spec, out_spec = numbers
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    space = tuple(out_spec[2:])
    product = dot_general(patches, rhs, (((out_spec[1],), (rhs_spec[1],)), (space, tuple(rhs_spec[2:]))), precision)
    n_space = len(space)  # product: space, batch, output features
    order = [0] * (n_space + 2)
    for position, d in enumerate((*space, out_spec[0], out_spec[1])):
        order[d] = position
    return transpose(product, tuple(order))


# ------------------------------------------------------------------------------------------------------------
# Shapes


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count: int = 1) -> tuple:
    """The shape of a convolution's result, batch and features first.

    Arguments:
      lhs_shape, rhs_shape: batch, features, space; output features, input features, space.
      strides: one number for each axis of space.
      pads: 'VALID', 'SAME', 'SAME_LOWER', or for each axis of space how much to pad before and after.
      batch_group_count: into how many groups the batch falls.
    Returns:
      Batch, output features, space.
    Raises:
      TypeError: the number of pads is not that of the axes of space.

    >>> conv_shape_tuple((1, 2, 9), (5, 2, 3), (2,), "VALID")
    (1, 5, 4)
    """
    space, kernel = tuple(lhs_shape[2:]), tuple(rhs_shape[2:])
    if not len(space) == len(kernel) == len(strides):
        raise ValueError(
            f"convolution of shapes {tuple(lhs_shape)} and {tuple(rhs_shape)} must have strides for {len(space)} axes "
            f"of space, got {tuple(strides)}"
        )
    if isinstance(pads, str):
        pads = padtype_to_pads(space, kernel, strides, pads)
    if len(pads) != len(space):
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(space)}, got {len(pads)}.")
    return (
        lhs_shape[0] // batch_group_count,
        rhs_shape[0],
        *reduce_window_shape_tuple(space, kernel, strides, pads),
    )


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers) -> tuple:
    """The shape of a convolution's result in any layout.

    Arguments:
      lhs_shape, rhs_shape, window_strides, padding: as for ``conv_shape_tuple``.
      dimension_numbers: three strings such as 'NHWC', 'HWIO', 'NHWC'.
    Returns:
      The shape in the result's layout.

    >>> conv_general_shape_tuple((1, 9, 2), (3, 2, 5), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 5, 5)
    """
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    plain = conv_shape_tuple(
        [lhs_shape[d] for d in lhs_spec], [rhs_shape[d] for d in rhs_spec], window_strides, padding
    )
    return tuple(plain[i] for i in np.argsort(out_spec))


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers) -> tuple:
    """The shape of a transposed convolution's result in any layout.

    Arguments:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      window_strides: by how much space is stretched.
      padding: 'SAME', 'VALID', or for each axis of space how much to pad the dilated input before and after.
      dimension_numbers: three strings such as 'NHWC', 'HWIO', 'NHWC'.
    Returns:
      The shape in the result's layout.

    >>> conv_transpose_shape_tuple((1, 9, 2), (3, 2, 5), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 18, 5)
    """
    numbers = ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))
    lhs, rhs = [lhs_shape[d] for d in numbers.lhs_spec], [rhs_shape[d] for d in numbers.rhs_spec]
    if isinstance(padding, str):
        padding = [_transposed_padding(k, s, padding.upper()) for k, s in zip(rhs[2:], window_strides, strict=True)]
    stretched = [dilated(n, s) for n, s in zip(lhs[2:], window_strides, strict=True)]
    plain = conv_shape_tuple([*lhs[:2], *stretched], rhs, (1,) * len(stretched), padding)
    return tuple(plain[i] for i in np.argsort(numbers.out_spec))
