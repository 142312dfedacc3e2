"""Casts of NumPy arrays with the semantics of XLA's ConvertElementType, which NumPy shares only in part.

* float to integer: towards zero, saturating at the ends of the range, NaN to zero;
* integer to integer: the low bits, in two's complement, for those of 1, 2 and 4 bits too;
* complex to real: the real part (to bool: whether the real part is not zero);
* anything to bool: whether it is not zero; NaN is not;
* to a float: round to nearest even, then whatever the target has for overflow: infinity, NaN or its maximum.

Three deviations, each to the exact result: XLA saturates 6 and -6 in float4 (it rounds the bounds of the
integer to float4), flushes denormals to zero, and rounds float64 to float16 twice, by way of float32.

No cast warns. Which function does a cast depends on the two dtypes alone and is looked up in one table.
"""

from functools import partial

import ml_dtypes
import numpy as np

from catena.core.dtype_table import ALL, BFLOAT16, BITS, FLOAT4, FLOAT6, FLOAT8, KIND

_F32 = np.dtype("float32")
_I8 = np.dtype("int8")
_SMALL_FLOATS = (*FLOAT4, *FLOAT6, *FLOAT8, BFLOAT16, np.dtype("float16"))


def convert(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``values`` cast to ``dtype``: the same array where it has that dtype already, else a new one.

    >>> convert(np.array([1.9, 300.0, np.nan]), np.dtype("int8"))
    array([  1, 127,   0], dtype=int8)
    """
    source = values.dtype
    if source == dtype:
        return values
    cast = _CASTS.get((source, dtype)) or _remembered_cast(source, dtype)
    return cast(values)


def convert_into(out: np.ndarray, values: np.ndarray) -> None:
    """Write ``values``, cast to the dtype of ``out``, into it; NumPy's own casts need no memory beside it."""
    cast = _CASTS.get((values.dtype, out.dtype)) or _remembered_cast(values.dtype, out.dtype)
    if cast.func in (_plain, _quietly):
        with np.errstate(all="ignore"):
            np.copyto(out, values, casting="unsafe")
    else:
        np.copyto(out, cast(values))


def convert_scalar(x, dtype: np.dtype) -> np.ndarray:
    """A Python number as a 0-d array of ``dtype``, by way of the widest numbers and not of the default dtypes: an
    integer that 64 bits hold wraps around, and a float may be any. OverflowError for larger integers, TypeError where
    an imaginary part would be lost.

    >>> convert_scalar(2**32 + 1, np.dtype("int32")), convert_scalar(2**100, np.dtype("float32"))
    (array(1, dtype=int32), array(1.2676506e+30, dtype=float32))
    """
    kind = KIND.get(dtype)
    if type(x) is complex and kind != "c":
        if kind != "b":
            raise TypeError(
                f"a number of dtype {dtype} was expected, got the complex number {x}; take its .real or its abs()"
            )
        x = x != 0
    value = np.asarray(x)
    if value.dtype == object:  # an integer of more than 64 bits
        if kind in ("i", "u"):
            raise OverflowError(f"Python int {x} too large to convert to {dtype}: it takes more than 64 bits")
        value = np.asarray(x != 0 if kind == "b" else float(x))
    return convert(value, dtype)


def _remembered_cast(source, dtype):
    """The function that casts ``source`` to ``dtype``, put into the table."""
    if source not in ALL or dtype not in ALL:
        raise TypeError(f"cannot cast values of dtype {source} to dtype {dtype}")
    cast = _CASTS[source, dtype] = _cast(source, dtype)
    return cast


def _plain(dtype, values):
    return values.astype(dtype)


def _quietly(dtype, values):
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _through(middle, dtype, values):
    return convert(convert(values, middle), dtype)


def _real_part(dtype, values):
    return convert(values.real, dtype)


def _saturate(dtype, low, top, missing, values):
    """Cast float32 or float64 values to an integer dtype of 8 bits or more.

    ``low`` and ``top`` are the least and greatest floats whose integer parts are in range; ``missing`` is
    what the greatest integer exceeds ``top`` by. All steps are arithmetic: assigning through a mask takes ten
    times as long.
    """
    with np.errstate(all="ignore"):
        if values.ndim == 0:
            in_range = low <= values.item() <= top
        else:
            # NaN is the minimum of what contains it, and compares false.
            in_range = values.size == 0 or (values.min() >= low and values.max() <= top)
        if in_range:
            return values.astype(dtype)
        clipped = np.clip(values, low, top).astype(dtype)
        return np.asarray((clipped + (values > top) * missing) * (values == values))


def _saturation(source, dtype):
    """``_saturate`` with the bounds for casts from ``source`` to ``dtype``."""
    info = np.iinfo(dtype)
    stop = source.type(2.0 ** (info.bits if info.min == 0 else info.bits - 1))
    top = np.nextafter(stop, source.type(0))
    return partial(_saturate, dtype, float(info.min), float(top), dtype.type(info.max - int(top)))


def _saturate_narrow(dtype, low, high, values):
    """Cast float values to an integer dtype of less than 8 bits."""
    byte = np.dtype("int8" if low < 0 else "uint8")
    return np.asarray(np.clip(convert(values, byte), byte.type(low), byte.type(high)).astype(dtype))


def _has_direct_cast(source, dtype) -> bool:
    """Whether NumPy can cast between two dtypes: ml_dtypes leaves out some pairs of narrow ones."""
    try:
        np.zeros((), source).astype(dtype)
    except TypeError:
        return False
    return True


def _cast(source, dtype):
    """The function that casts from ``source`` to ``dtype``."""
    from_kind, to_kind = KIND[source], KIND[dtype]
    if from_kind == "c" and to_kind != "c":
        return partial(_real_part, dtype)
    if from_kind == "f" and to_kind in "iu":
        if BITS[dtype] < 8:
            info = ml_dtypes.iinfo(dtype)
            return partial(_saturate_narrow, dtype, int(info.min), int(info.max))
        return partial(_through, _F32, dtype) if source in _SMALL_FLOATS else _saturation(source, dtype)
    if BITS[source] <= 8 and BITS[dtype] <= 8 and not _has_direct_cast(source, dtype):
        return partial(_through, _I8 if to_kind in "iu" else _F32, dtype)
    may_warn = from_kind in "fc" or dtype in _SMALL_FLOATS
    return partial(_quietly if may_warn else _plain, dtype)


_CASTS: dict = {}  # by both dtypes; filled as they are needed, since filling it takes ten milliseconds
