"""Casts: the measured rules, one by one, with every warning an error."""

import warnings

import numpy as np
import pytest

import catena.numpy as jnp
from catena import lax
from catena.core.casts import convert
from catena.core.dtypes import ALL, COMPLEX, FLOATS, SIGNED, UNSIGNED

VALUES = (254.0, 255.0, 256.0, 257.0, -1.0, -1.5, 1e10, -1e10, np.nan, np.inf, -np.inf, 1.9)
I32, I64, U64 = 2**31, 2**63, 2**64

# What VALUES become, as float32 (1e10 is exact in it).
FLOAT_TO_INT = {
    "uint8": [254, 255, 255, 255, 0, 0, 255, 0, 0, 255, 0, 1],
    "int8": [127, 127, 127, 127, -1, -1, 127, -128, 0, 127, -128, 1],
    "uint16": [254, 255, 256, 257, 0, 0, 65535, 0, 0, 65535, 0, 1],
    "int16": [254, 255, 256, 257, -1, -1, 32767, -32768, 0, 32767, -32768, 1],
    "uint32": [254, 255, 256, 257, 0, 0, 2 * I32 - 1, 0, 0, 2 * I32 - 1, 0, 1],
    "int32": [254, 255, 256, 257, -1, -1, I32 - 1, -I32, 0, I32 - 1, -I32, 1],
    "uint64": [254, 255, 256, 257, 0, 0, 10**10, 0, 0, U64 - 1, 0, 1],
    "int64": [254, 255, 256, 257, -1, -1, 10**10, -(10**10), 0, I64 - 1, -I64, 1],
    "int4": [7, 7, 7, 7, -1, -1, 7, -8, 0, 7, -8, 1],
    "uint4": [15, 15, 15, 15, 0, 0, 15, 0, 0, 15, 0, 1],
    "int1": [0, 0, 0, 0, -1, -1, 0, -1, 0, 0, -1, 0],
    "uint1": [1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 1],
    "int2": [1, 1, 1, 1, -1, -1, 1, -2, 0, 1, -2, 1],
    "uint2": [3, 3, 3, 3, 0, 0, 3, 0, 0, 3, 0, 1],
    "bool": [True] * 12,
}
INT_TO_INT = [
    ("int64", [2**40 + 5, -1], "int32", [5, -1]),
    ("int32", [-1, 300, 2**31 - 1], "uint8", [255, 44, 255]),
    ("int32", [-1], "uint32", [4294967295]),
    ("uint32", [4294967295], "int32", [-1]),
    ("int32", [7, 8, -8, -9, 100], "int4", [7, -8, -8, 7, 4]),
    ("int32", [15, 16, -1], "uint4", [15, 0, 15]),
    ("int4", [-8, -1, 7], "uint4", [8, 15, 7]),
    ("uint4", [15, 8, 7], "int2", [-1, 0, -1]),
    ("int32", [0, 1, -1, 6], "int1", [0, -1, -1, 0]),
    ("int1", [0, -1], "uint1", [0, 1]),
    ("uint1", [0, 1], "int4", [0, 1]),
]
TO_FLOAT = [
    ([1e6, 65504.0, 65520.0, np.nan], "float16", [np.inf, 65504.0, np.inf, np.nan]),
    ([1e39, 3.4e38, 1.00390625], "bfloat16", [np.inf, np.inf, 1.0]),
    (
        [448.0, 449.0, 464.0, 465.0, 480.0, 1e4, np.inf, -np.inf, np.nan, 0.001],
        "float8_e4m3fn",
        [448.0, 448.0, 448.0, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, 2.0**-9],
    ),
    (
        [57344.0, 61440.0, 65536.0, np.inf, np.nan, 1e-5],
        "float8_e5m2",
        [57344.0, np.inf, np.inf, np.inf, np.nan, 2.0**-16],
    ),
    (
        [30.0, 31.0, 100.0, np.inf, np.nan, -0.0],
        "float8_e4m3b11fnuz",
        [30.0, np.nan, np.nan, np.nan, np.nan, 0.0],
    ),
    ([6.0, 7.0, np.inf, 0.25, 0.75, -8.0], "float4_e2m1fn", [6.0, 6.0, 6.0, 0.0, 1.0, -6.0]),
    ([7.5, 9.0, np.inf, 0.0625, 0.1875, -8.0], "float6_e2m3fn", [7.5, 7.5, 7.5, 0.0, 0.25, -7.5]),
    ([28.0, 31.0, np.inf, 0.03125, -40.0], "float6_e3m2fn", [28.0, 28.0, 28.0, 0.0, -28.0]),
]


def array(values, dtype):
    """An array of ``dtype``, made without a cast that is under test."""
    with np.errstate(over="ignore"):
        return np.array(values, "float64" if dtype in ("float32", "float16") else dtype).astype(dtype)


@pytest.mark.parametrize("dtype", FLOAT_TO_INT)
@pytest.mark.parametrize("source", ["float32", "float64", "complex64", "complex128"])
def test_floats_to_integers_saturate(source, dtype):
    found = convert(np.array(VALUES, source), np.dtype(dtype))
    assert found.dtype == dtype
    assert found.tolist() == FLOAT_TO_INT[dtype]


@pytest.mark.parametrize("dtype", FLOAT_TO_INT)
def test_scalars_cast_as_arrays_do(dtype):
    found = [convert(np.array(v, "float32"), np.dtype(dtype)) for v in VALUES]
    assert all(isinstance(x, np.ndarray) and x.shape == () and x.dtype == dtype for x in found)
    assert [x.item() for x in found] == FLOAT_TO_INT[dtype]


@pytest.mark.parametrize("dtype", [d for d in FLOAT_TO_INT if d != "bool"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float8_e5m2"])
def test_narrow_floats_to_integers(source, dtype):
    values = np.array([np.nan, np.inf, -np.inf, 1.75, -1.75], source)
    as_float32 = convert(values.astype("float32"), np.dtype(dtype))
    assert convert(values, np.dtype(dtype)).tolist() == as_float32.tolist()


def test_floats_to_integers_round_towards_zero():
    found = convert(np.array([0.5, 1.5, 2.5, -0.5], "float32"), np.dtype("int32"))
    assert found.tolist() == [0, 1, 2, 0]


def test_the_ends_of_the_range_are_exact():
    """The greatest float32 below 2**31 is cast exactly, and 2**31 itself saturates, beside it."""
    below = np.nextafter(np.float32(2**31), np.float32(0))
    found = convert(np.array([below, 2**31, -(2**31)], "float32"), np.dtype("int32"))
    assert found.tolist() == [2**31 - 128, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("source, values, dtype, expected", INT_TO_INT)
def test_integers_to_integers_keep_the_low_bits(source, values, dtype, expected):
    assert convert(np.array(values, source), np.dtype(dtype)).astype("int64").tolist() == expected


@pytest.mark.parametrize("values, dtype, expected", TO_FLOAT)
def test_to_narrow_floats(values, dtype, expected):
    found = convert(array(values, "float32"), np.dtype(dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(convert(found, np.dtype("float64")), np.array(expected, found.dtype).astype("f8"))


def test_complex_to_real_drops_the_imaginary_part():
    values = np.array([1 + 2j, 2j, 0], "complex64")
    assert convert(values, np.dtype("float32")).tolist() == [1.0, 0.0, 0.0]
    assert convert(values, np.dtype("bool")).tolist() == [True, False, False]


def test_same_dtype_is_not_copied():
    values = np.arange(3)
    assert convert(values, np.dtype("int64")) is values


@pytest.mark.parametrize("source", ALL, ids=str)
def test_every_pair_casts_silently(source):
    """From every dtype to every other, zero and one keep their values (float8_e8m0fnu has no zero).

    int1 has no one: its values are 0 and -1.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong = [dtype.name for dtype in ALL if not casts(source, dtype)]
    assert not wrong


def casts(source, dtype) -> bool:
    one = convert(np.array([[1], [1]]).astype(source), dtype)
    right = one.dtype == dtype and one.shape == (2, 1)
    if "int1" not in (source.name, dtype.name):
        right &= bool((one == np.ones((), dtype)).all())
    right &= convert(np.ones((0, 3), source), dtype).shape == (0, 3)
    if "e8m0" not in source.name + dtype.name:
        right &= not convert(np.zeros(3, source), dtype).astype(bool).any()
    if source in FLOATS or source in COMPLEX:
        hard = convert(np.array([1e300, -1e300, np.inf, -np.inf, np.nan]), source)
        right &= convert(hard, dtype).dtype == dtype
    return right


@pytest.mark.parametrize("source", [*SIGNED[-4:], *UNSIGNED[-4:]], ids=str)
def test_great_integers_to_narrow_floats_do_not_warn(source):
    greatest = np.array([np.iinfo(source).max], source)
    for dtype in FLOATS:
        assert convert(greatest, dtype).dtype == dtype


def test_only_admitted_dtypes_are_cast():
    with pytest.raises(TypeError, match="cannot cast values of dtype object to dtype float32"):
        convert(np.zeros(2, object), np.dtype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint32"])
def test_a_complex_number_is_no_real_one(dtype):
    for use in (
        lambda: jnp.full(2, 1j, dtype),
        lambda: lax.full_like(jnp.ones(2, dtype), 2 + 0j),
        lambda: lax.convert_element_type(1j, dtype),
        lambda: jnp.take(jnp.ones(2, dtype), jnp.array([5]), mode="fill", fill_value=1j),
    ):
        with pytest.raises(TypeError, match=f"of dtype {dtype} was expected, got the complex number"):
            use()
    assert jnp.full(1, 1j, bool) and lax.convert_element_type(1j, "complex64") == 1j
