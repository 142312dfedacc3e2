"""Conversions between dtypes: of values, of bits, and of precision."""

import math
import operator
import warnings

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import Array
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.dtype_table import held
from catena.core.primal_tangent import PrimalTangentDType
from catena.core.structural import convert_element_type_p
from catena.core.zeros import Zero, get_aval
from catena.lax import native
from catena.lax.elementwise import (
    FLOAT,
    batch_rule,
    check_admitted,
    elementwise,
)
from catena.lax.policy import NARROW, SHARED, converts_soon

# ------------------------------------------------------------------------------------------------------------
# Values


def _convert_abstract(x, *, new_dtype, weak_type):
    extended = next((d for d in (x.dtype, new_dtype) if dtypes.is_extended(d)), None)
    if extended is not None and x.dtype != new_dtype:
        other = new_dtype if x.dtype is extended else x.dtype
        if type(extended) is not PrimalTangentDType or other != held(extended):
            hint = f"; {extended} is held as {held(extended)}" if type(extended) is PrimalTangentDType else ""
            raise ValueError(
                f"Cannot convert_element_type from {dtypes.dtype_name(x.dtype)} to {dtypes.dtype_name(new_dtype)}{hint}"
            )
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_jvp(primals, tangents, *, new_dtype, weak_type):
    (x,), (t,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    tangent_dtype = new_dtype.tangent_dtype() if dtypes.is_extended(new_dtype) else new_dtype
    if type(t) is Zero or not dtypes.is_inexact(tangent_dtype):
        return out, Zero.of_primal(out)
    return out, convert(t, tangent_dtype, weak_type)


def _convert_transpose(ct, x, *, new_dtype, weak_type):
    if type(ct) is Zero:
        return [Zero(x.aval)]
    return [convert_element_type_p.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)]


def _convert_in_numpy(x, *, new_dtype, weak_type):
    return casts.convert(x, new_dtype)


def _convert(x, *, new_dtype, weak_type):
    """NumPy's conversions, but for large arrays to and from small dtypes, which it converts element by element."""
    new_dtype = held(new_dtype)
    if x.dtype == new_dtype:
        return x
    if converts_soon(x, new_dtype):
        return casts.convert(x, new_dtype)
    params = {"new_dtype": new_dtype, "weak_type": weak_type}
    if not SLOW.isdisjoint((x.dtype, new_dtype)):
        return _convert_by_loop(x, **params)
    if new_dtype.kind in "iu":  # NumPy asks once whether all floats are in range, a kernel for each
        return casts.convert(x, new_dtype)
    return _convert_by_all_threads(x, **params)


SLOW = NARROW | frozenset(map(np.dtype, ("int8", "uint8")))
convert_element_type_p.define(
    abstract=_convert_abstract,
    evaluate=_convert,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    lower=lambda b, x, *, new_dtype, weak_type: b.convert(x, held(new_dtype)),
)
convert_element_type_p.batch = batch_rule(convert_element_type_p)
_convert_by_loop = native.by_loop(convert_element_type_p, _convert_in_numpy)
_convert_by_all_threads = native.shared(convert_element_type_p, _convert_in_numpy, SHARED)


def convert_element_type(operand, new_dtype):
    """The elements of an array in another dtype.

    Floats become integers by rounding towards zero, saturating, with NaN as 0; integers wrap around; complex
    numbers become real by dropping the imaginary part, with a warning.

    Arguments:
      operand: array or scalar.
      new_dtype: the dtype of the result; 64-bit dtypes mean their 32-bit kin while x64 is off.
    Returns:
      An array of the shape of ``operand``.
    Raises:
      ValueError: ``new_dtype`` is None, or one of the dtypes is extended and the other neither it nor what it is held
        as.
      TypeError: ``new_dtype`` is not a dtype.

    >>> import catena.lax as lax, numpy as np
    >>> lax.convert_element_type(np.float32([1.9, -1.9, 1e20]), "int8").tolist()
    [1, -1, 127]
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    if type(operand) in dtypes.python_scalar_dtypes and new_dtype in dtypes.KIND:
        operand = casts.convert_scalar(operand, new_dtype)  # it need not fit its default dtype
    aval = get_aval(operand)
    if dtypes.is_complex(aval.dtype) and dtypes.KIND.get(new_dtype, "c") not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=dtypes.levels_to_user(),
        )
    return convert(operand, new_dtype)


def convert(x, new_dtype, weak_type: bool = False):
    """``x`` with dtype ``new_dtype`` (canonical) and weakness ``weak_type``; itself where it has that type already."""
    aval = get_aval(x)
    if aval.dtype == new_dtype and aval.weak_type == weak_type and isinstance(x, Array):
        return x
    return convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)


# ------------------------------------------------------------------------------------------------------------
# Bits


def _bitcast_shape(x, new_dtype) -> tuple:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new:
        return x.shape
    if max(old, new) % min(old, new):
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of {old} bits to {new_dtype.name} of "
            f"{new} bits, and neither width is a multiple of the other"
        )
    if old > new:
        return (*x.shape, old // new)
    last = x.shape[-1] if x.shape else 1
    if not x.shape or last * old != new:
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype.name} of size {old} bits to "
            f"{new_dtype.name} of size {new}, bits but {last} * {old} != {new}"
        )
    return x.shape[:-1]


def _bitcast_abstract(x, *, new_dtype):
    if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
        raise ValueError(f"Cannot bitcast_convert_type from {dtypes.dtype_name(x.dtype)} to {new_dtype}")
    shape = _bitcast_shape(x, new_dtype)
    if x.dtype != new_dtype and {dtypes.KIND[x.dtype], dtypes.KIND[new_dtype]} & {"b", "c"}:
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand and destination "
            f"types match. Got operand dtype={x.dtype}, {new_dtype=}. Consider using the arr.view() method instead."
        )
    return ShapedArray(shape, new_dtype)


def _bitcast(x, *, new_dtype):
    if x.dtype == new_dtype:
        return x
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old < 8 or new < 8:
        return _bitcast_packed(x, new_dtype, old, new)
    if old == new:
        return x.view(new_dtype)
    x = np.asarray(x, order="C")  # (`ascontiguousarray` makes a vector of a scalar)
    return x[..., None].view(new_dtype) if old > new else x.view(new_dtype)[..., 0]


def _bitcast_packed(x, new_dtype, old: int, new: int):
    """Bits of dtypes that are smaller than a byte, of which NumPy's arrays give a byte to each element."""
    raw = np.ascontiguousarray(x).view(np.uint8).reshape(x.size, x.dtype.itemsize)
    bits = np.unpackbits(raw, axis=-1, bitorder="little").reshape(*x.shape, 8 * x.dtype.itemsize)
    bits = bits[..., :old] if old < 8 else bits
    shape = x.shape if old == new else (*x.shape, old // new) if old > new else x.shape[:-1]
    bits = bits.reshape(*shape, new)
    if new < 8:
        return _from_small(_packed(bits)[..., 0], new_dtype, new)
    return _packed(bits).view(new_dtype)[..., 0]


def _packed(bits: np.ndarray) -> np.ndarray:
    """Bits along the last axis as bytes; NumPy's function knows only 32 axes."""
    rows = np.packbits(bits.reshape(math.prod(bits.shape[:-1]), bits.shape[-1]), axis=-1, bitorder="little")
    return rows.reshape(*bits.shape[:-1], rows.shape[-1])


def _from_small(byte, dtype, width: int):
    """Elements of a small dtype whose bits are the low ones of ``byte``."""
    if dtypes.KIND[dtype] == "i":
        shift = np.uint8(8 - width)
        return ((byte << shift).view(np.int8) >> shift.view(np.int8)).astype(dtype)
    return byte.astype(dtype) if dtypes.KIND[dtype] == "u" else byte.view(dtype)


def _bitcast_lower(b, x, *, new_dtype):
    """Elements smaller than a byte take a byte each in memory: they are cut out of bytes, and put together."""
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if x.dtype == new_dtype or (old >= 8 and new >= 8):
        return b.bitcast(x, new_dtype)
    byte = np.dtype(np.uint8)
    if old >= 8:
        return _as_narrow(b, b.reshape(_cut_bytes(b, b.bitcast(x, byte), new), (*x.shape, old // new)), new_dtype)
    bits = _narrow_bits(b, x)
    if new > old:
        whole = _join_bytes(b, b.reshape(bits, (*x.shape[:-1], max(new // 8, 1), min(new, 8) // old)), old)
        bits = whole if new > 8 else b.reshape(whole, x.shape[:-1])
    elif new < old:
        bits = b.reshape(_cut_bytes(b, bits, new, old // new), (*x.shape, old // new))
    return b.bitcast(bits, new_dtype) if new >= 8 else _as_narrow(b, bits, new_dtype)


def _narrow_bits(b, x):
    """The bits of elements that are smaller than a byte, each in a byte of its own."""
    byte, width = np.dtype(np.uint8), dtypes.itemsize_bits(x.dtype)
    whole = b.bitcast(x if dtypes.KIND[x.dtype] == "f" else b.convert(x, np.dtype(np.int8)), byte)
    return b.map("and", whole, b.constant(np.asarray((1 << width) - 1, byte)))


def _as_narrow(b, bits, dtype):
    """The elements of a dtype smaller than a byte whose bits these bytes hold."""
    return b.bitcast(bits, dtype) if dtypes.KIND[dtype] == "f" else b.convert(bits, dtype)


def _cut_bytes(b, x, width: int, count: int = 0):
    """Each byte as an array of its ``count`` (by default all) parts of ``width`` bits, the lowest first, along
    a new last axis.
    """
    count = count or 8 // width
    shape = (*x.shape, count)
    spread = b.broadcast_in_dim(x, shape, range(x.ndim))
    shift = b.convert(b.map("mul", b.iota(np.dtype(np.int32), shape, x.ndim), b.constant(np.int32(width))), x.dtype)
    shifted = b.map("shift_right_logical", spread, shift)
    return b.map("and", shifted, b.constant(np.asarray((1 << width) - 1, x.dtype)))


def _join_bytes(b, parts, width: int):
    """The inverse of ``_cut_bytes``."""
    last = parts.ndim - 1
    positions = b.iota(np.dtype(np.int32), parts.shape, last)
    shift = b.convert(b.map("mul", positions, b.constant(np.int32(width))), parts.dtype)
    return b.reduce("or", b.map("shift_left", parts, shift), (last,))


def _bitcast_jvp(primals, tangents, *, new_dtype):
    out = bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype)
    return out, Zero.of_primal(out)


def _bitcast_batch(axis, args, dims, *, new_dtype):
    """The batch axis goes first, since the last one may come or go."""
    return bitcast_convert_type_p.bind(move_axis(args[0], dims[0], 0), new_dtype=new_dtype), 0


bitcast_convert_type_p = elementwise(
    "bitcast_convert_type", _bitcast, FLOAT, abstract=_bitcast_abstract, jvp=_bitcast_jvp, wider={},
    lower=_bitcast_lower,
)  # fmt: skip
bitcast_convert_type_p.batch = _bitcast_batch


def bitcast_convert_type(operand, new_dtype):
    """The bits of an array, read as another dtype.

    Arguments:
      operand: array or scalar.
      new_dtype: the dtype of the result. A smaller one adds a last axis (least significant part first); a
        larger one takes the last axis away, whose size must be the ratio of the widths.
    Returns:
      An array of dtype ``new_dtype``.
    Raises:
      ValueError: the last axis does not fit.
      TypeError: one of the dtypes is boolean or complex and the other differs.

    >>> import catena.lax as lax, numpy as np
    >>> lax.bitcast_convert_type(np.float32(1), "int32").item()
    1065353216
    """
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


# ------------------------------------------------------------------------------------------------------------
# Precision


def _reduce_precision_abstract(x, *, exponent_bits, mantissa_bits):
    check_admitted("reduce_precision", x, FLOAT)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return ShapedArray(x.shape, x.dtype, x.weak_type)


def _reduce_precision(x, *, exponent_bits, mantissa_bits):
    """Round the bits to nearest even, then send what the smaller exponent cannot hold to infinity or zero."""
    info = dtypes.finfo(x.dtype)
    own_mantissa, own_exponent = int(info.nmant), 8 * x.dtype.itemsize - 1 - int(info.nmant)
    bits = x.view(f"uint{8 * x.dtype.itemsize}")
    one = bits.dtype.type(1)
    sign = bits & (one << bits.dtype.type(8 * x.dtype.itemsize - 1))
    size = bits ^ sign
    if mantissa_bits < own_mantissa:
        cut = bits.dtype.type(own_mantissa - mantissa_bits)
        odd = (size >> cut) & one
        half = (one << (cut - one)) - one
        size = (size + half + odd) >> cut << cut
    if exponent_bits < own_exponent:
        bias, own_bias = 2 ** (exponent_bits - 1) - 1, 2 ** (own_exponent - 1) - 1
        exponent = (size >> bits.dtype.type(own_mantissa)).astype(np.int64)
        infinity = bits.dtype.type(((1 << own_exponent) - 1) << own_mantissa)
        size = np.where(exponent > own_bias + bias, infinity, size)
        size = np.where(exponent <= own_bias - bias, bits.dtype.type(0), size)
    return np.where(np.isnan(x), x, (size | sign).view(x.dtype))


def _reduce_precision_tangent(t, x, out, *, exponent_bits, mantissa_bits):
    return reduce_precision_p.bind(t, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def _reduce_precision_lower(b, x, *, exponent_bits, mantissa_bits):
    return b.reduce_precision(x, exponent_bits, mantissa_bits)


def _reduce_precision_transpose(ct, x, **params):
    return [Zero(x.aval) if type(ct) is Zero else reduce_precision_p.bind(ct, **params)]


reduce_precision_p = elementwise(
    "reduce_precision", _reduce_precision, FLOAT, _reduce_precision_tangent,
    abstract=_reduce_precision_abstract, transpose=_reduce_precision_transpose, lower=_reduce_precision_lower,
)  # fmt: skip


def reduce_precision(operand, exponent_bits, mantissa_bits):
    """Round floats to a format with fewer bits, kept in their dtype.

    Arguments:
      operand: array of floats.
      exponent_bits: bits of the exponent, at least 1.
      mantissa_bits: bits of the mantissa, at least 0.
    Returns:
      An array of the same type: overflow gives infinity, and numbers too small for a normal one give zero.
    Raises:
      TypeError: the dtype is not a float dtype.
      ValueError: a number of bits is out of range.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reduce_precision(np.float32(1.2345678), 5, 10).item()
    1.234375
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    return reduce_precision_p.bind(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
