"""Contractions: ``dot_general`` and everything that is one."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Union

import numpy as np

from catena.core import casts, dtypes
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.named import NamedTuple
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, add_tangents, get_aval, instantiate, is_undefined_primal
from catena.lax import native
from catena.lax.convert import convert
from catena.lax.policy import LARGE, LONG_SUM, is_small_product
from catena.lax.reductions import add_reduce
from catena.lax.shape import transpose
from catena.lax.structure import dense, told

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

# ------------------------------------------------------------------------------------------------------------
# Precision


class Precision(enum.Enum):
    """How precisely an accelerator multiplies matrices. CPUs always use the full precision of the dtype.

    >>> Precision("float32")
    Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return _PRECISIONS.get(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISIONS = {
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    None: Precision.DEFAULT,
}


class DotAlgorithm(NamedTuple):
    """An algorithm for a matrix product, by the dtypes it multiplies and accumulates in.

    ``lhs_precision_type`` and ``rhs_precision_type``: what operands are rounded to. ``accumulation_type``:
    what sums are kept in. ``lhs_component_count``, ``rhs_component_count`` and ``num_primitive_operations``:
    into how many parts operands are split, and how many products of parts are computed.
    ``allow_imprecise_accumulation``: whether sums may be kept in less for some steps.
    """

    lhs_precision_type: np.dtype
    rhs_precision_type: np.dtype
    accumulation_type: np.dtype
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Well-known algorithms for matrix products.

    On a CPU all of them are computed at the full precision of the operands' dtype, or that of the preset's
    accumulation where it is higher. ``BF16_BF16_F32_X6`` is that precision, too, and what processors with AMX take less
    time for: large products of float32 are six products of parts of the numbers, each the sum of three bfloat16.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


PrecisionLike = Union[  # noqa: UP007  (a runtime value that prints like JAX's)
    None,
    str,
    Precision,
    tuple[str, str],
    tuple[Precision, Precision],
    DotAlgorithm,
    DotAlgorithmPreset,
]


def canonicalize_precision(precision: PrecisionLike):
    """What a user wrote for ``precision``, else the default that is set: None, two Precisions, or a preset."""
    if precision is None:
        precision = context.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithmPreset):
        return precision
    if isinstance(precision, DotAlgorithm):
        raise ValueError(f"The precision '{precision}' is not supported by dot_general on CPU")
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    both = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(both) == 2 and all(isinstance(p, Precision) or (isinstance(p, str) and p in _PRECISIONS) for p in both):
        return tuple(Precision(p) for p in both)
    raise ValueError(
        "Precision argument must be one of:\n"
        "- None,\n"
        f"- a string in {list(_PRECISIONS)},\n"
        "- a lax.Precision value,\n"
        "- a tuple of two lax.Precision values or strings,\n"
        "- a lax.DotAlgorithmPreset or the name of one of these presets, or\n"
        f"- a lax.DotAlgorithm value;\nbut got {precision}."
    )


# ------------------------------------------------------------------------------------------------------------
# Types


@lru_cache(1024)
def _free_axes(dimension_numbers, lhs_ndim: int, rhs_ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of either operand that a product keeps besides the batch; TypeError where numbers of axes are wrong."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    for side, ndim, batch, contract in (
        ("lhs", lhs_ndim, lhs_batch, lhs_contract),
        ("rhs", rhs_ndim, rhs_batch, rhs_contract),
    ):
        if not all(0 <= d < ndim for d in (*batch, *contract)):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of "
                f"the {side} value, got {side}_batch of {batch} and {side}_contracting of {contract} for {side} of "
                f"rank {ndim}"
            )
    if len(lhs_batch) != len(rhs_batch):
        raise TypeError(
            f"dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch {lhs_batch} and "
            f"rhs_batch {rhs_batch}."
        )
    for side, batch, contract in (("lhs", lhs_batch, lhs_contract), ("rhs", rhs_batch, rhs_contract)):
        for kind, name, dims in (("batch", "batch", batch), ("contracting", "contracting", contract)):
            if len(set(dims)) != len(dims):
                raise TypeError(
                    f"dot_general requires {side} {kind} dimensions to be distinct, got {side}_{name} {dims}."
                )
        if set(batch) & set(contract):
            raise TypeError(
                f"dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, got "
                f"{side}_batch {batch} and {side}_contracting {contract}."
            )
    return _free(lhs_ndim, lhs_contract, lhs_batch), _free(rhs_ndim, rhs_contract, rhs_batch)


def _check_sizes(kind: str, lhs, rhs, lhs_dims, rhs_dims):
    lhs_sizes, rhs_sizes = tuple([lhs.shape[d] for d in lhs_dims]), tuple([rhs.shape[d] for d in rhs_dims])
    if lhs_sizes != rhs_sizes:
        raise TypeError(
            f"dot_general requires {kind} dimensions to have the same shape, got {lhs_sizes} and {rhs_sizes}. They "
            f"are dimensions {lhs_dims} of the left operand, of shape {lhs.shape}, and {rhs_dims} of the right one, "
            f"of shape {rhs.shape}."
        )


def _product_dtype(lhs, rhs) -> np.dtype:
    """The dtype of a product of operands that may differ in dtype."""
    if lhs.dtype == rhs.dtype:
        return lhs.dtype
    return _promoted(lhs.dtype, rhs.dtype)


@lru_cache(256)
def _promoted(a, b) -> np.dtype:
    kinds = {dtypes.KIND[a], dtypes.KIND[b]}
    for kind in ("c", "f", "i", "u"):  # the widest of the highest kind; the left one of two equally wide
        of_kind = [d for d in (a, b) if dtypes.KIND[d] == kind]
        if of_kind and kind in kinds:
            return max(of_kind, key=dtypes.itemsize_bits)
    return a


def _check_preferred(name: str, dtype, preferred):
    if preferred is None:
        return dtype
    both_numbers = dtypes.KIND[dtype] in "iu" and dtypes.KIND[preferred] in "iu"
    both_inexact = dtypes.is_inexact(dtype) and dtypes.is_inexact(preferred)
    if both_numbers and dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got preferred_element_type of "
            f"{dtypes.dtype_name(preferred)} for result type of {dtypes.dtype_name(dtype)}."
        )
    if both_inexact and dtypes.is_complex(dtype) and not dtypes.is_complex(preferred):
        raise TypeError(
            f"{name}: preferred_element_type must be complex where the operands are, got "
            f"{dtypes.dtype_name(preferred)} for result type of {dtypes.dtype_name(dtype)}."
        )
    return preferred


def _abstract(lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    lhs_free, rhs_free = _free_axes(dimension_numbers, lhs.ndim, rhs.ndim)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_sizes("lhs batch dimensions and rhs batch", lhs, rhs, lhs_batch, rhs_batch)
    _check_sizes("contracting", lhs, rhs, lhs_contract, rhs_contract)
    dtype = _check_preferred("dot_general", _product_dtype(lhs, rhs), preferred_element_type)
    shape = *[lhs.shape[d] for d in (*lhs_batch, *lhs_free)], *[rhs.shape[d] for d in rhs_free]
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


# ------------------------------------------------------------------------------------------------------------
# Evaluation: permute and reshape to one (batched) matrix product


class _Plan:
    """How a contraction of given shapes becomes a matrix product."""

    def __init__(self, dimension_numbers, lhs_shape, rhs_shape):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        lhs_free, rhs_free = _free_axes(dimension_numbers, len(lhs_shape), len(rhs_shape))
        batch = tuple(lhs_shape[d] for d in lhs_batch)
        m = tuple(lhs_shape[d] for d in lhs_free)
        n = tuple(rhs_shape[d] for d in rhs_free)
        self.k = k = math.prod(lhs_shape[d] for d in lhs_contract)
        self.out_shape = batch + m + n
        self.lhs_order, self.rhs_order = (
            (*lhs_batch, *lhs_free, *lhs_contract),
            (*rhs_batch, *rhs_contract, *rhs_free),
        )
        self.lhs_matrix, self.rhs_matrix = (*batch, math.prod(m), k), (*batch, k, math.prod(n))
        self.batched = bool(batch)
        self.count = max(math.prod(batch), 1)  # matrices in the stack
        # Vectors and matrices whose axes are in NumPy's order need neither transposition nor reshaping.
        self.direct = (
            not batch
            and len(lhs_contract) == 1
            and 1 <= len(lhs_shape) <= 2
            and 1 <= len(rhs_shape) <= 2
            and lhs_contract[0] == len(lhs_shape) - 1
            and rhs_contract[0] == 0
        )


@lru_cache(4096)
def _plan(dimension_numbers, lhs_shape, rhs_shape) -> _Plan:
    return _Plan(dimension_numbers, lhs_shape, rhs_shape)


def _free(rank: int, *others) -> tuple:
    taken = {d for dims in others for d in dims}
    return tuple(d for d in range(rank) if d not in taken)


_BLAS = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


def product_in_numpy(lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    plan = _plan(dimension_numbers, lhs.shape, rhs.shape)
    dtype = lhs.dtype
    if dtype == rhs.dtype and dtype in _BLAS and preferred_element_type in (None, dtype):
        if plan.direct and 1 < plan.k <= LONG_SUM:
            return np.dot(dense(lhs), dense(rhs))
        return _contract(plan, lhs, rhs)
    return _evaluate_any_dtype(plan, lhs, rhs, preferred_element_type)


def _evaluate_any_dtype(plan: _Plan, lhs, rhs, preferred):
    out_dtype = _product_dtype(lhs, rhs) if preferred is None else preferred
    kinds = dtypes.KIND[lhs.dtype] + dtypes.KIND[rhs.dtype]
    if "f" in kinds or "c" in kinds or dtypes.is_inexact(out_dtype):
        wide = _inexact_compute_dtype(lhs, rhs, out_dtype)
        out = _contract(plan, casts.convert(lhs, wide), casts.convert(rhs, wide))
        return casts.convert(out, out_dtype)
    if out_dtype == dtypes.BOOL:
        return _contract(plan, lhs, rhs)
    return _integer_product(plan, lhs, rhs, out_dtype)


def _inexact_compute_dtype(lhs, rhs, out_dtype) -> np.dtype:
    """The BLAS dtype that a product of inexact operands or of inexact result is computed in."""
    given = [d for d in (lhs.dtype, rhs.dtype, out_dtype) if dtypes.is_inexact(d)]
    wide = any(dtypes.to_real_dtype(d) == np.float64 for d in given)
    if any(dtypes.is_complex(d) for d in given):
        return np.dtype("complex128" if wide else "complex64")
    return np.dtype("float64" if wide else "float32")


def _contract(plan: _Plan, lhs, rhs):
    lhs = dense(lhs.transpose(plan.lhs_order).reshape(plan.lhs_matrix))
    rhs = dense(rhs.transpose(plan.rhs_order).reshape(plan.rhs_matrix))
    if plan.k == 1 and lhs.dtype.kind != "c":  # nothing is added up, not even a zero, which would lose its sign
        return (lhs * rhs).reshape(plan.out_shape)
    if plan.k <= LONG_SUM or lhs.dtype.kind not in "fc":
        return np.matmul(lhs, rhs).reshape(plan.out_shape)
    starts = range(0, plan.k, LONG_SUM)
    parts = [np.matmul(dense(lhs[..., i : i + LONG_SUM]), rhs[..., i : i + LONG_SUM, :]) for i in starts]
    return add_reduce(np.stack(parts, -1), -1).reshape(plan.out_shape)


# ---- integers: NumPy multiplies them without BLAS, fifty times slower than floats


def _integer_product(plan: _Plan, lhs, rhs, dtype: np.dtype):
    """An exact integer product modulo the width of ``dtype``, through BLAS where floats are exact."""
    if 0 in plan.out_shape or plan.k == 0:
        return np.zeros(plan.out_shape, dtype)
    bound = _magnitude(lhs) * _magnitude(rhs) * plan.k
    for wide, exact in ((np.float32, 2**24), (np.float64, 2**53)):
        if bound <= exact:
            return _wrap(_contract(plan, lhs.astype(wide), rhs.astype(wide)).astype(np.int64), dtype)
    if max(lhs.dtype.itemsize, rhs.dtype.itemsize, dtype.itemsize) <= 4 and plan.k <= 2**20:
        return _wrap(_product_by_halves(plan, lhs, rhs), dtype)
    return _wrap(_contract(plan, _as_int64(lhs), _as_int64(rhs)), dtype)


def _magnitude(x) -> int:
    x = x.astype(np.int8) if x.dtype.kind == "V" else x
    return max(abs(int(x.max())), abs(int(x.min()))) if x.size else 0


def _as_int64(x):
    return x.astype(np.int8).astype(np.int64) if x.dtype.kind == "V" else x.astype(np.int64)


def _wrap(x, dtype):
    return x.astype(np.int8).astype(dtype) if dtype.kind == "V" else x.astype(dtype)


def _product_by_halves(plan: _Plan, lhs, rhs):
    """A product modulo 2**32: with x = 2**16 xh + xl, all partial products are exact in float64.

    The product of the high halves is a multiple of 2**32 and drops out.
    """
    (lhs_high, lhs_low), (rhs_high, rhs_low) = _halves(lhs), _halves(rhs)
    low = _contract(plan, lhs_low, rhs_low).astype(np.int64)
    cross = (_contract(plan, lhs_high, rhs_low) + _contract(plan, lhs_low, rhs_high)).astype(np.int64)
    return low + (cross << 16)


def _halves(x):
    bits = _as_int64(x)
    return (bits >> 16).astype(np.float64), (bits & 0xFFFF).astype(np.float64)


# ------------------------------------------------------------------------------------------------------------
# Derivatives and batching


def _jvp(primals, tangents, **params):
    lhs, rhs = primals
    lhs_t, rhs_t = tangents
    out = dot_general_p.bind(lhs, rhs, **params)
    total = Zero.of_primal(out)
    if type(total.aval) is ShapedArray and not dtypes.is_inexact(total.aval.dtype):
        return out, total
    if type(lhs_t) is not Zero:
        total = add_tangents(total, dot_general_p.bind(lhs_t, rhs, **params))
    if type(rhs_t) is not Zero:
        total = add_tangents(total, dot_general_p.bind(lhs, rhs_t, **params))
    return out, total


def _transpose(ct, lhs, rhs, *, dimension_numbers, **params):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    ct = instantiate(ct)
    if is_undefined_primal(lhs):
        return [
            _operand_cotangent(ct, lhs.aval, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch, 0, params),
            None,
        ]
    return [
        None,
        _operand_cotangent(ct, rhs.aval, lhs, rhs_contract, lhs_contract, rhs_batch, lhs_batch, 1, params),
    ]


def _operand_cotangent(ct, aval, other, contract, other_contract, batch, other_batch, side, params):
    """The cotangent of one operand: that of the product times the other, axes put where they belong."""
    other_ndim = get_aval(other).ndim
    free, other_free = _free(aval.ndim, contract, batch), _free(other_ndim, other_contract, other_batch)
    n_batch = len(batch)
    # In ct: batch axes, the left operand's free axes, the right operand's.
    first_other = n_batch + (len(free) if side == 0 else 0)
    ct_contract = tuple(range(first_other, first_other + len(other_free)))
    ct_batch = tuple(range(n_batch))
    out = dot_general_p.bind(
        ct, other, dimension_numbers=((ct_contract, other_free), (ct_batch, tuple(other_batch))), **params
    )
    # In out: batch axes, this operand's free axes, the other's contracted axes in the other's order.
    partner = dict(zip(other_contract, contract, strict=True))
    order = (*batch, *free, *(partner[d] for d in sorted(other_contract)))
    if get_aval(out).dtype != aval.dtype:
        out = convert(out, aval.dtype)
    return transpose(out, tuple(int(i) for i in np.argsort(order))) if order != tuple(range(aval.ndim)) else out


def _batch(axis, args, dims, *, dimension_numbers, **params):
    (lhs, rhs), (lhs_dim, rhs_dim) = args, dims
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    if lhs_dim is not None and rhs_dim is not None:
        numbers = (
            (_past(lhs_contract, lhs_dim), _past(rhs_contract, rhs_dim)),
            ((lhs_dim, *_past(lhs_batch, lhs_dim)), (rhs_dim, *_past(rhs_batch, rhs_dim))),
        )
        return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **params), 0
    n_batch = len(lhs_batch)
    if lhs_dim is not None:
        lhs_contract, lhs_batch = _past(lhs_contract, lhs_dim), _past(lhs_batch, lhs_dim)
        dim = n_batch + _free(get_aval(lhs).ndim, lhs_contract, lhs_batch).index(lhs_dim)
    else:
        n_lhs = get_aval(lhs).ndim - n_batch - len(lhs_contract)
        rhs_contract, rhs_batch = _past(rhs_contract, rhs_dim), _past(rhs_batch, rhs_dim)
        dim = n_batch + n_lhs + _free(get_aval(rhs).ndim, rhs_contract, rhs_batch).index(rhs_dim)
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **params), dim


def _past(dims, new: int) -> tuple:
    """Dimension numbers after a dimension was put in at ``new``."""
    return tuple(d + (d >= new) for d in dims)


def _lower(b, lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    out_dtype = _product_dtype(lhs, rhs) if preferred_element_type is None else preferred_element_type
    wide = out_dtype
    if dtypes.is_inexact(lhs.dtype) or dtypes.is_inexact(rhs.dtype) or dtypes.is_inexact(out_dtype):
        wide = _inexact_compute_dtype(lhs, rhs, out_dtype)
    by_parts = precision is DotAlgorithmPreset.BF16_BF16_F32_X6
    return b.dot_general(lhs, rhs, dimension_numbers, out_dtype, wide, by_parts)


dot_general_p = Primitive(
    "dot_general",
    abstract=_abstract,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)
_by_program = native.shaped(dot_general_p, product_in_numpy)


def _evaluate(lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
    """Small products by BLAS, and integers, which it multiplies exactly; others by a program."""
    plan = _plan(dimension_numbers, lhs.shape, rhs.shape)
    small = is_small_product(lhs.size // plan.count, rhs.size // plan.count, plan.k) and lhs.size + rhs.size < LARGE
    return (product_in_numpy if small else _by_program)(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


dot_general_p.evaluate = _evaluate

# ------------------------------------------------------------------------------------------------------------
# Public functions


def canonical_numbers(dimension_numbers) -> tuple:
    """Dimension numbers as nested tuples of Python integers."""
    try:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        ints = [tuple(map(operator.index, dims)) for dims in (lhs_contract, rhs_contract, lhs_batch, rhs_batch)]
    except (TypeError, ValueError):
        raise TypeError(
            "dot_general: dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), "
            f"each a sequence of integers, got {dimension_numbers!r}"
        ) from None
    return (ints[0], ints[1]), (ints[2], ints[3])


def preferred_dtype(name: str, dtype):
    """The canonical form of ``preferred_element_type``."""
    return None if dtype is None else dtypes.check_user_dtype_supported(dtype, name)


def dot_general(
    lhs,
    rhs,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    *,
    out_sharding=None,
):
    """The contraction of two arrays over some of their axes, for each element of others.

    Arguments:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, sequences of axes.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array with the batch axes, then the remaining axes of ``lhs``, then those of ``rhs``.
    Raises:
      TypeError: axes are not valid, or their sizes do not agree.

    >>> import numpy as np
    >>> dot_general(np.ones((2, 3, 4)), np.ones((2, 4, 5)), (((2,), (1,)), ((0,), (0,)))).shape
    (2, 3, 5)
    """
    if out_sharding is not None:
        return told(out_sharding, dot_general, lhs, rhs, dimension_numbers, precision, preferred_element_type)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=canonical_numbers(dimension_numbers),
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_dtype("dot_general", preferred_element_type),
    )


_MATRIX_NUMBERS = {n: (((max(n - 1, 0),), (0,)), ((), ())) for n in (1, 2)}


def dot(
    lhs,
    rhs,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type=None,
    out_sharding=None,
):
    """The product of vectors and matrices; with ``dimension_numbers``, ``dot_general``.

    Arguments:
      lhs, rhs: arrays of rank 1 or 2.
      dimension_numbers: as for ``dot_general``; then the ranks are arbitrary.
      precision: how precisely accelerators compute; CPUs always use full precision.
      preferred_element_type: the dtype in which to accumulate and return; by default the operands'.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The product over the last axis of ``lhs`` and the first of ``rhs``.
    Raises:
      ValueError: without dimension numbers, the shapes are not those of a simple product.

    >>> import numpy as np
    >>> dot(np.arange(3), np.arange(3))
    Array(5, dtype=int32)
    """
    if out_sharding is not None:
        return told(
            out_sharding,
            dot,
            lhs,
            rhs,
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    if dimension_numbers is None:
        lhs_shape, rhs_shape = get_aval(lhs).shape, get_aval(rhs).shape
        if not (1 <= len(lhs_shape) <= 2 and 1 <= len(rhs_shape) <= 2 and lhs_shape[-1] == rhs_shape[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched "
                f"matrix-matrix, matrix-vector, or vector-vector products; got lhs_shape={lhs_shape} "
                f"rhs_shape={rhs_shape}"
            )
        dimension_numbers = _MATRIX_NUMBERS[len(lhs_shape)]
    else:
        dimension_numbers = canonical_numbers(dimension_numbers)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_dtype("dot", preferred_element_type),
    )


def batch_matmul(lhs, rhs, precision: PrecisionLike = None):
    """The matrix product over the last two axes, for each element of the leading ones.

    Arguments:
      lhs, rhs: arrays of one rank, at least 2, with the same leading axes.
      precision: how precisely accelerators compute; CPUs always use full precision.
    Returns:
      The products.
    Raises:
      ValueError: an operand's rank is less than 2, or the ranks differ.
      TypeError: the shapes do not agree.

    >>> import numpy as np
    >>> batch_matmul(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    lhs_ndim, rhs_ndim = get_aval(lhs).ndim, get_aval(rhs).ndim
    if lhs_ndim < 2 or rhs_ndim < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {lhs_ndim}, {rhs_ndim}")
    if lhs_ndim != rhs_ndim:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {lhs_ndim}, {rhs_ndim}")
    batch = tuple(range(lhs_ndim - 2))
    numbers = (((lhs_ndim - 1,), (rhs_ndim - 2,)), (batch, tuple(range(rhs_ndim - 2))))
    return dot_general(lhs, rhs, numbers, precision)
