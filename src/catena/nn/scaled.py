"""Products of narrow floats with a scale for each block of them, and of arrays that are rounded to such.

Formats: MXFP8, blocks of 32 numbers of 8 bits with a power of 2 (Open Compute Project, "Microscaling formats (MX)
specification", 2023), which is rounded up here, so that nothing overflows (Mishra, Stosic, Layton, Micikevicius,
"Recipes for pre-training LLMs with MXFP8", 2025); NVFP4, blocks of 16 numbers of 4 bits with a scale of 8 bits and one
for the whole array (NVIDIA, "Pretraining large language models with NVFP4", 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.contraction import DotDimensionNumbers
from catena.lax.scaled import scaled_dot
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, user_dtype
from catena.transform.custom_vjp import custom_vjp
from catena.transform.make_jaxpr import eval_shape
from catena.typing import DTypeLike

LAST_OF_BOTH = (((2,), (2,)), ((0,), (0,)))


@dataclass(frozen=True, eq=False, slots=True)
class BlockScaleConfig:
    """How an array is rounded to narrow floats.

    Arguments:
      mode: the format's name.
      block_size: how many neighbours along the contracted axis share a scale.
      data_type: the dtype of the numbers.
      scale_type: the dtype of the scales.
      global_scale: a scale of the whole array, or None.
      infer_only: whether the product is never differentiated.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale: Array | None = None
) -> BlockScaleConfig:
    """How ``scaled_dot_general`` rounds an operand.

    Arguments:
      mode: the format, ``"nvfp4"`` or ``"mxfp8"``.
      global_scale: for ``"nvfp4"``, a scale of the whole array, by default 1.
    Returns:
      A configuration, one of the list that ``scaled_dot_general`` takes.
    Raises:
      ValueError: there is no such format.

    Source: see ``nn/scaled.py``.

    >>> import catena as jax
    >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None, False)
    if mode == "nvfp4":
        scale = jnp.ones((1,), jnp.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale, False)
    raise ValueError(f"get_scaled_dot_general_config: mode must be 'nvfp4' or 'mxfp8', got {mode!r}")


@whole
def scaled_matmul(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    rhs_scales: Array,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """The products of matrices of narrow floats, each block of neighbours along the contracted axis with a scale.

    Arguments:
      lhs: ``(b, m, k)``.
      rhs: ``(b, n, k)``.
      lhs_scales: ``(b, m, c)``, where ``c`` divides ``k``: each is for ``k / c`` neighbours.
      rhs_scales: ``(b, n, c)``.
      preferred_element_type: the dtype of the result; sums are kept in float32 at least.
    Returns:
      An array ``(b, m, n)``.
    Raises:
      TypeError: an operand is not an array.
      ValueError: shapes do not fit, or there is no ``preferred_element_type``.

    Source: Open Compute Project, "Microscaling formats (MX) specification" (2023).

    >>> import catena as jax, catena.numpy as jnp
    >>> x = jnp.ones((1, 1, 32), jnp.float8_e4m3fn)
    >>> jax.nn.scaled_matmul(x, x, jnp.full((1, 1, 1), 2.0), jnp.full((1, 1, 1), 0.5))
    Array([[[32.]]], dtype=float32)
    """
    arrays = [as_array_argument("scaled_matmul", x, i) for i, x in enumerate((lhs, rhs, lhs_scales, rhs_scales))]
    if preferred_element_type is None:
        raise ValueError("scaled_matmul: preferred_element_type must be a dtype, got None")
    if any(x.ndim != 3 for x in arrays):
        raise ValueError(f"scaled_matmul: operands must have 3 axes, got shapes {[x.shape for x in arrays]}")
    (b, m, k), (_, n, _), (_, _, blocks), _ = shapes = [x.shape for x in arrays]
    if shapes != [(b, m, k), (b, n, k), (b, m, blocks), (b, n, blocks)] or blocks == 0 or k % blocks:
        raise ValueError(
            "scaled_matmul: operands must have the shapes (b, m, k), (b, n, k), (b, m, c), (b, n, c), where c divides "
            f"k, got {shapes}"
        )
    return _product(*arrays, preferred_element_type)


def _product(x, y, x_scales, y_scales, dtype):
    return scaled_dot(
        x,
        y,
        lhs_scale=x_scales,
        rhs_scale=y_scales,
        dimension_numbers=LAST_OF_BOTH,
        preferred_element_type=dtype,
    )


def scaled_dot_general(
    lhs,
    rhs,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """``lax.dot_general`` of arrays that are rounded to narrow floats with scales for blocks of them.

    In derivatives, which are for reverse mode, operands and cotangents are rounded in the same way.

    Arguments:
      lhs, rhs: arrays of floats.
      dimension_numbers: as for ``lax.dot_general``.
      preferred_element_type: the dtype of the result.
      configs: how ``lhs``, ``rhs`` and cotangents are rounded; None for a product without rounding.
      implementation: None or ``"cudnn"``, which is as None here.
    Returns:
      An array as of ``lax.dot_general``.
    Raises:
      TypeError: contracted axes differ in length.
      IndexError: there are too few ``configs``.
      ValueError: there is no such ``implementation``.

    Source: see ``nn/scaled.py``.

    >>> import catena as jax, catena.numpy as jnp
    >>> mxfp8 = jax.nn.get_scaled_dot_general_config("mxfp8")
    >>> x = jnp.array([[1.0, 2.0, 3.0]])
    >>> jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=[mxfp8] * 3)
    Array([[14.]], dtype=float32)
    """
    if implementation not in (None, "cudnn"):
        raise ValueError(f"scaled_dot_general: implementation must be None or 'cudnn', got {implementation!r}")
    lhs, rhs = (as_array_argument("scaled_dot_general", x, i) for i, x in enumerate((lhs, rhs)))
    product = partial(lax.dot_general, preferred_element_type=preferred_element_type)
    shape = eval_shape(lambda x, y: product(x, y, dimension_numbers), lhs, rhs).shape  # or the error
    if configs is None:
        return product(lhs, rhs, dimension_numbers)
    (over_lhs, over_rhs), (batch_lhs, batch_rhs) = dimension_numbers
    x, y = _as_matrices(lhs, over_lhs, batch_lhs), _as_matrices(rhs, over_rhs, batch_rhs)
    dtype = user_dtype(preferred_element_type, "scaled_dot_general")
    return _rounded_product((configs[0], configs[1], *configs[2:3]), dtype, x, y).reshape(shape)


def _as_matrices(x, contracted, batch):
    """An array with its axes in three groups: batch, free and contracted ones."""
    free = [axis for axis in range(x.ndim) if axis not in {n % x.ndim for n in (*contracted, *batch)}]
    groups = [list(batch), free, list(contracted)]
    return lax.reshape(lax.transpose(x, sum(groups, [])), [math.prod(x.shape[i] for i in axes) for axes in groups])


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _rounded_product(configs, dtype, x, y):
    """The products ``(b, m, n)`` of ``(b, m, k)`` and ``(b, n, k)``, rounded."""
    return _product_of_rounded(x, configs[0], y, configs[1], dtype)


def _forward(configs, dtype, x, y):
    return _rounded_product(configs, dtype, x, y), (x, y)


def _backward(configs, dtype, saved, ct):
    """Each cotangent is the product of the rounded cotangent and the other operand, rounded along another axis."""
    (x, y), (of_x, of_y, of_ct) = saved, configs
    turned = lambda z: lax.transpose(z, (0, 2, 1))  # noqa: E731
    return (
        _product_of_rounded(ct, of_ct, turned(y), of_y, x.dtype),
        _product_of_rounded(turned(ct), of_ct, turned(x), of_x, y.dtype),
    )


_rounded_product.defvjp(_forward, _backward)


def _product_of_rounded(x, of_x: BlockScaleConfig, y, of_y: BlockScaleConfig, dtype):
    (x, x_scales), (y, y_scales) = _rounded(x, of_x), _rounded(y, of_y)
    whole = [jnp.asarray(c.global_scale, np.float32).reshape(()) for c in (of_x, of_y) if c.global_scale is not None]
    return math.prod(whole, start=_product(x, y, x_scales, y_scales, np.float32)).astype(dtype)


def _rounded(x, config: BlockScaleConfig) -> tuple:
    """An array ``(b, m, k)`` as narrow floats, zeros added to fill the last block, and their scales."""
    size = config.block_size
    x = jnp.pad(x.astype(np.float32), [(0, 0), (0, 0), (0, -x.shape[2] % size)])
    blocks = x.reshape(*x.shape[:2], x.shape[2] // size, size)
    if config.global_scale is not None:
        blocks = blocks / config.global_scale
    greatest = float(dtypes.finfo(config.data_type).max)
    needed = jnp.max(jnp.abs(blocks), -1, initial=0) / greatest
    scales = _next_power_of_two(needed) if config.mode == "mxfp8" else needed
    scales = jnp.where(needed > 0, scales, 1).astype(config.scale_type)
    divisors = scales.astype(np.float32)[..., None]
    blocks = jnp.where(divisors > 0, blocks / divisors, 0)
    return jnp.clip(blocks, -greatest, greatest).astype(config.data_type).reshape(x.shape), scales


def _next_power_of_two(x):
    """The least power of two that is not less, of those with an exponent of 8 bits."""
    mantissa, exponent = jnp.frexp(x)
    return jnp.exp2(jnp.clip(jnp.where(mantissa == 0.5, exponent - 1, exponent), -127, 127).astype(np.float32))
