"""Contractions of narrow floats with a scale for each block of them (microscaling formats)."""

import numpy as np

from catena.core import dtypes
from catena.core.zeros import get_aval
from catena.lax.arithmetic import mul
from catena.lax.contraction import dot_general, preferred_dtype
from catena.lax.convert import convert_element_type
from catena.lax.shape import broadcast_in_dim, reshape


def scaled_dot(
    lhs,
    rhs,
    *,
    lhs_scale=None,
    rhs_scale=None,
    dimension_numbers=None,
    preferred_element_type=None,
):
    """The contraction of two arrays, each multiplied by scales that are shared by blocks of its elements.

    Arguments:
      lhs, rhs: arrays of any floats.
      lhs_scale, rhs_scale: arrays of the operands' shapes, but for contracted axes, whose sizes divide theirs: each
        scale is for a block of neighbouring elements; none by default.
      dimension_numbers: as for ``dot_general``; by default the matrix product over the last two axes.
      preferred_element_type: the dtype to return, by default bfloat16; sums are kept in float32 at least.
    Returns:
      The contraction of the scaled operands.
    Raises:
      TypeError: ranks or sizes do not fit.

    >>> import numpy as np
    >>> scaled_dot(np.ones((1, 4)), np.ones((4, 1)), lhs_scale=np.array([[2.0, 3.0]])).item()
    10.0
    """
    named = {"lhs": lhs, "rhs": rhs, "lhs_scale": lhs_scale, "rhs_scale": rhs_scale}
    ranks = {name: get_aval(x).ndim for name, x in named.items() if x is not None}
    if len(set(ranks.values())) > 1:
        got = " ".join(f"{name} rank: {rank}" for name, rank in ranks.items())
        raise TypeError(f"All input tensors must have the same rank. Got {got}.")
    if dimension_numbers is None:
        rank = ranks["lhs"]
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    out_dtype = preferred_dtype("scaled_dot", preferred_element_type) or dtypes.BFLOAT16
    wide = np.dtype(np.float64 if out_dtype == np.float64 else np.float32)
    over_lhs, over_rhs = dimension_numbers[0]
    operands = [_scaled("LHS", lhs, lhs_scale, over_lhs, wide), _scaled("RHS", rhs, rhs_scale, over_rhs, wide)]
    out = dot_general(*operands, dimension_numbers, preferred_element_type=wide)
    return convert_element_type(out, out_dtype)


def _scaled(name: str, x, scale, contracted, dtype):
    """``x`` times its scales."""
    x = convert_element_type(x, dtype)
    if scale is None:
        return x
    shape, blocks = get_aval(x).shape, get_aval(scale).shape
    contracted = {d % len(shape) for d in contracted}
    for d, (n, count) in enumerate(zip(shape, blocks, strict=True)):
        if d not in contracted and n != count:
            raise TypeError(f"{name} dim {d} of size {n} must be that of its scale, which is {count}.")
        if n != count and (count == 0 or n % count):
            raise TypeError(f"{name} dim {d} of size {n} must be divisible by its scale's dim size {count}.")
    split = tuple(k for n, count in zip(shape, blocks, strict=True) for k in (count, n // count))
    spread = broadcast_in_dim(convert_element_type(scale, dtype), split, tuple(range(0, 2 * len(shape), 2)))
    return mul(x, reshape(spread, shape))
