"""Dtypes: names, kinds, promotion (all of the measured table), and casts (all of the measured rules)."""

import copy
import pickle
import re
import warnings
from contextlib import contextmanager
from enum import IntEnum
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import typing
from catena.core import dtypes, scalar_types
from catena.core.config import override
from catena.core.context import context
from catena.core.dtypes import TypePromotionError, result_type
from promotion import NARROW_PROMOTION, PROMOTION, PYTHON, SHORT, X32, entries


def argument(name):
    """What stands for a type of the tables among the arguments of ``result_type``."""
    return PYTHON[name] if name in PYTHON else np.zeros((), SHORT[name])


@contextmanager
def flags(**values):
    """Override flags of this thread's context, and restore them."""
    before = {name: vars(context)[name] for name in values if name in vars(context)}
    vars(context).update(values)
    try:
        yield
    finally:
        for name in values:
            del vars(context)[name]
        vars(context).update(before)


@pytest.fixture
def x64():
    with flags(x64=True):
        yield


@pytest.fixture
def x32():
    with flags(x64=False):
        yield


@pytest.fixture
def strict():
    with flags(x64=False, numpy_dtype_promotion="strict"):
        yield


class Weak:
    """A value with a dtype and weakness, as arrays have them."""

    def __init__(self, dtype, weak_type=True):
        self.dtype, self.weak_type = np.dtype(dtype), weak_type


# ---- promotion


@pytest.mark.parametrize("table", [PROMOTION, NARROW_PROMOTION], ids=["usual", "narrow"])
def test_promotion_table(x64, table):
    for a, b, expected in entries(table):
        if expected == "err":
            with pytest.raises(TypePromotionError, match="no available implicit dtype promotion path"):
                result_type(argument(a), argument(b))
            continue
        weak = expected.endswith("*")
        found = result_type(argument(a), argument(b), return_weak_type_flag=True)
        assert found == (np.dtype(SHORT[expected.rstrip("*")]), weak), (a, b)


def test_promotion_table_without_x64(x64):
    """The table holds after 64-bit types are truncated to their 32-bit kin."""
    for names in [names for *names, _ in entries(PROMOTION)]:
        a, b = (argument(x) if x in PYTHON else np.zeros((), X32.get(SHORT[x], SHORT[x])) for x in names)
        wide, weak = result_type(a, b, return_weak_type_flag=True)
        with flags(x64=False):
            narrow = result_type(a, b, return_weak_type_flag=True)
        assert narrow == (np.dtype(X32.get(wide.name, wide)), weak), names


def test_promotion_is_of_all_arguments_at_once(x64):
    assert result_type(np.uint64(1), np.int8(1), np.float16(1), return_weak_type_flag=True) == (
        "float16",
        False,
    )
    assert result_type(1, 1.0, 2j, return_weak_type_flag=True) == ("complex128", True)
    assert result_type(np.arange(3), 1.0, "bfloat16") == "bfloat16"


def test_promotion_of_python_types_and_none(x32):
    assert result_type(float, return_weak_type_flag=True) == ("float32", True)
    assert result_type(bool, return_weak_type_flag=True) == ("bool", False)
    assert result_type(True, return_weak_type_flag=True) == ("bool", False)
    assert result_type(int, "float16", return_weak_type_flag=True) == ("float16", False)
    assert result_type(None, return_weak_type_flag=True) == ("float32", False)
    assert result_type("int32", 1.0, return_weak_type_flag=True) == ("float32", True)
    assert result_type(2**80) == "int32"
    assert result_type(IntEnum("E", "one").one, return_weak_type_flag=True) == ("int32", True)


def test_numpy_scalars_are_strong(x32):
    assert result_type(np.float64(1), return_weak_type_flag=True) == ("float32", False)
    assert result_type(np.float64(1), "bfloat16") == "float32"
    assert result_type(np.int64(1), "int8") == "int32"


def test_weak_values(x32):
    assert result_type(Weak("int32"), return_weak_type_flag=True) == ("int32", True)
    assert result_type(Weak("int32"), Weak("float32"), return_weak_type_flag=True) == ("float32", True)
    assert result_type(Weak("float32"), np.int8(1), return_weak_type_flag=True) == ("float32", True)
    assert result_type(Weak("float32"), np.float16(1), return_weak_type_flag=True) == ("float16", False)
    assert result_type(Weak("bool"), Weak("int32"), return_weak_type_flag=True) == ("int32", True)
    assert dtypes.is_weakly_typed(1) and dtypes.is_weakly_typed(Weak("int8"))
    assert not any(map(dtypes.is_weakly_typed, (True, np.float64(1), np.zeros(1), Weak("int8", False))))


def test_result_type_warns_of_truncation_for_explicit_dtypes_only(x32):
    for explicit in ("float64", np.float64, np.dtype("float64")):
        with pytest.warns(UserWarning, match="jax_enable_x64"):
            assert result_type(explicit) == "float32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (scalar_types.float64, float, 1.0, np.zeros(1)):
            assert result_type(other) == "float32"


def test_result_type_errors(x32):
    with pytest.raises(ValueError, match="at least one array or dtype"):
        result_type()
    with pytest.raises(TypeError, match=r"cannot determine the dtype of \[1, 2\], a list"):
        result_type([1, 2])
    with pytest.raises(TypeError, match="not a valid array type"):
        result_type(np.zeros(2, object))
    with pytest.raises(TypeError, match="not a valid array type"):
        result_type(np.zeros(2, ">f4"))
    with pytest.raises(TypeError, match="'foo'"):
        result_type("foo")
    with pytest.raises(TypeError, match="dtype must be bool or that of a number, got <U3"):
        result_type("U3")


def test_float0_promotes_with_itself_only(x32):
    assert result_type(dtypes.float0, dtypes.float0) == dtypes.float0
    with pytest.raises(ValueError, match="float0 does not promote"):
        result_type(dtypes.float0, "float32")


STRICT_ALLOWED = [
    ((1, "float32"), "float32"),
    (("int32", "int32"), "int32"),
    (("uint8", 1), "uint8"),
    (("int4", 1), "int4"),
    ((1, 1.0), "float32"),
    ((1, 1j), "complex64"),
    ((1.0, 1j), "complex64"),
    (("complex64", 1.0), "complex64"),
    (("complex64", 1), "complex64"),
    (("bfloat16", 1.0), "bfloat16"),
    (("float8_e4m3fn", 1.0), "float8_e4m3fn"),
]
STRICT_REFUSED = [
    ("int32", "float32"),
    ("int32", 1.0),
    (True, "int32"),
    (True, 1),
    ("float32", 1j),
    ("bfloat16", "float32"),
    ("int4", 1.0),
    ("float8_e4m3fn", "float32"),
    ("int4", "int8"),
    ("int8", 1, 1.0),
    ("int8", "int16", "float32"),
]


@pytest.mark.parametrize("args, expected", STRICT_ALLOWED)
def test_strict_promotion(strict, args, expected):
    assert result_type(*args) == expected


@pytest.mark.parametrize("args", STRICT_REFUSED, ids=str)
def test_strict_promotion_refuses(strict, args):
    with pytest.raises(TypePromotionError, match="jax_numpy_dtype_promotion=strict"):
        result_type(*args)


EXPLICIT = {
    "zeros": lambda: jnp.zeros(2, "float64"),
    "array": lambda: jnp.array([1, 2], np.int64),
    "scalar type": lambda: jnp.float64(1),
    "astype": lambda: jnp.ones(2).astype("complex128"),
    "sum": lambda: jnp.ones(2).sum(dtype="float64"),
    "jit": lambda: jax.jit(lambda: jnp.arange(3, dtype="int64"))(),
    "lax.convert_element_type": lambda: jax.lax.convert_element_type(1, "uint64"),
    "lax.dot": lambda: jax.lax.dot(jnp.ones(2), jnp.ones(2), preferred_element_type="float64"),
    "bits": lambda: jax.random.bits(jax.random.key(0), (2,), "uint64"),
    "uniform": lambda: jax.random.uniform(jax.random.key(0), (2,), "float64"),
    "initializer": lambda: jax.nn.initializers.normal()(jax.random.key(0), (2,), "float64"),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_64_bits_asked_for_where_there_are_none(x32, name):
    make = EXPLICIT[name]
    with pytest.warns(UserWarning, match="Explicitly requested dtype .*64|128 is not available"):
        assert make().dtype.itemsize == (8 if name == "astype" else 4)
    with (
        override("jax_explicit_x64_dtypes", "error"),
        pytest.raises(ValueError, match="requested dtype .* is not available"),
    ):
        make()
    with override("jax_explicit_x64_dtypes", "allow"):
        wide = make()
        assert wide.dtype.itemsize == (16 if name == "astype" else 8)


def test_64_bits_that_are_allowed_stay(x32):
    """Arrays keep them in operations; Python numbers and NumPy's arrays have the default width as before."""
    with override("jax_explicit_x64_dtypes", "allow"):
        x = jnp.array([1.0, 2.0], "float64")
        for y in (x + 1, x + jnp.ones(2), jnp.sin(x), x.sum(), jax.jit(lambda x: x * 2)(x), jax.grad(jnp.sum)(x)):
            assert y.dtype == np.float64
        assert (x.astype(int) / 2).dtype == (jnp.ones(2, int) + np.ones(2)).dtype == jnp.array(1.0).dtype == np.float32
        assert (jnp.ones(2, "int64") / 2).dtype == np.float64
        drawn = jax.random.normal(jax.random.key(0), (2,), "float64")
    with jax.enable_x64(True):
        np.testing.assert_array_equal(drawn, jax.random.normal(jax.random.key(0), (2,)))


def test_promotion_errors_name_the_dtypes(x32):
    with pytest.raises(TypePromotionError) as error:
        result_type("float8_e4m3fn", "float32")
    assert str(error.value) == (
        "Input dtypes ('float8_e4m3fn', 'float32') have no available implicit dtype promotion path. Floats "
        "of 4, 6 or 8 bits and integers of 1, 2 or 4 bits are not promoted implicitly, lest values be widened "
        "unawares: they meet only booleans, Python numbers and, for floats, wider integers. Cast explicitly, "
        "for example with x.astype('float32')."
    )
    with pytest.raises(TypePromotionError, match=r"\('int4', 'weak float'\).*astype\('int32'\)"):
        result_type("int4", 1.0)
    assert issubclass(TypePromotionError, ValueError)


def test_promote_types_ignores_x64(x32):
    assert dtypes.promote_types("int8", "uint8") == "int16"
    assert dtypes.promote_types("float64", "int32") == "float64"
    assert dtypes.promote_types(int, float) == "float64"
    assert dtypes.promote_types(int, "int8") == "int8"
    assert dtypes.promote_types("uint64", "int8") == "float64"
    assert dtypes.promote_types(None, "int64") == "float64"
    with pytest.raises(ValueError, match="object does not promote"):
        dtypes.promote_types(object, "float32")
    with pytest.raises(TypeError):
        dtypes.promote_types(1, "float32")


def test_promote_pair_follows_the_flags():
    i64, f16 = np.dtype("int64"), np.dtype("float16")
    with flags(x64=False, numpy_dtype_promotion="standard"):
        assert dtypes.promote_pair(i64, False, i64, False) == ("int32", False)
        assert dtypes.promote_pair(i64, False, f16, False) == ("float16", False)
    with flags(x64=True, numpy_dtype_promotion="standard"):
        assert dtypes.promote_pair(i64, False, i64, False) == ("int64", False)
    with flags(x64=False, numpy_dtype_promotion="strict"), pytest.raises(TypePromotionError):
        dtypes.promote_pair(i64, False, f16, False)


def test_neighbours(x64):
    inexact = {
        "bool": "float32",
        "int4": "float32",
        "int8": "float32",
        "int32": "float32",
        "uint32": "float32",
        "int64": "float64",
        "uint64": "float64",
        "bfloat16": "bfloat16",
        "complex64": "complex64",
    }
    assert {d: dtypes.to_inexact_dtype(np.dtype(d)).name for d in inexact} == inexact
    assert dtypes.to_numeric_dtype(dtypes.BOOL) == "int32" and dtypes.to_numeric_dtype(np.dtype("int8")) == "int8"
    assert dtypes.to_complex_dtype(np.dtype("float16")) == "complex64"
    assert dtypes.to_complex_dtype(np.dtype("int64")) == "complex128"
    assert dtypes.to_real_dtype(np.dtype("complex64")) == "float32"
    with flags(x64=False):
        assert dtypes.to_inexact_dtype(np.dtype("int64")) == "float32"
        assert dtypes.to_numeric_dtype(dtypes.BOOL) == "int32"


# ---- what users write


def test_canonicalize(x32):
    canonical = dtypes.canonicalize_dtype
    expected = {"float64": "float32", np.int64: "int32", "uint64": "uint32", "complex128": "complex64",
                float: "float32", int: "int32", bool: "bool", complex: "complex64", None: "float32",
                scalar_types.float32: "float32", "int4": "int4", ml_dtypes.bfloat16: "bfloat16"}  # fmt: skip
    assert {d: canonical(d) for d in expected} == expected
    with flags(x64=True):
        assert canonical(int) == "int64" and canonical(None) == "float64"
    with pytest.raises(TypeError, match="not understood"):
        canonical("foo")
    with pytest.raises(TypeError, match="pass x.dtype instead of x"):
        canonical(np.zeros(3))


def test_questions_about_dtypes_may_be_asked_of_what_has_one():
    for x in (jnp.ones(2), np.float32(1), jax.ShapeDtypeStruct((2,), "float32")):
        assert jnp.isdtype(x, "real floating") and jnp.isdtype(np.float32, x) and jnp.issubdtype(x, np.floating)
        assert jnp.promote_types(x, "int8") == jnp.promote_types("int8", x) == "float32"
        assert jnp.can_cast(x, "float64") and jnp.can_cast("int8", x) and dtypes.itemsize_bits(x) == 32
    for question in (jnp.issubdtype, jnp.promote_types, jnp.isdtype):
        with pytest.raises(TypeError, match="pass x.dtype instead of x"):
            question(np.ones(2), "float32")


def test_user_dtypes(x32):
    check = dtypes.check_user_dtype_supported
    with pytest.warns(UserWarning, match="dtype float64 in zeros is not available.*float32.*jax_enable_x64") as record:
        assert check("float64", "zeros") == "float32"
    assert record[0].filename == __file__
    assert check(float, "zeros") == "float32" and check("int4", "zeros") == "int4"
    assert check(dtypes.float0, "zeros") == dtypes.float0
    with flags(x64=True):
        assert check("float64", "zeros") == "float64"
    for bad in (object, "U3", "datetime64[s]", np.dtype(">f4"), [("a", "f4")], np.longdouble):
        with pytest.raises(TypeError, match="zeros: dtype must be bool or that of a number"):
            check(bad, "zeros")
    for bad in ("foo", 3, np.zeros(2), np.floating):
        with pytest.raises(TypeError, match="zeros: dtype must stand for a dtype"):
            check(bad, "zeros")
    with pytest.raises(ValueError, match="zeros: dtype must stand for a dtype, got Array.*x.dtype instead of x"):
        check(jnp.zeros(2), "zeros")
    with pytest.raises(TypeError, match="zeros: dtype must be that of particular keys"):
        check(dtypes.prng_key, "zeros")
    with pytest.raises(ValueError, match="zeros: dtype must not be None"):
        check(None, "zeros")


def test_dtype_of_values(x32):
    assert dtypes.dtype(1) == "int64" and dtypes.dtype(1, canonicalize=True) == "int32"
    assert dtypes.dtype(np.zeros(1)) == "float64" and dtypes.dtype("int8") == "int8"
    assert dtypes.python_scalar_dtype(int) == ("int32", True) and dtypes.python_scalar_dtype(bool) == (
        "bool",
        False,
    )
    assert dtypes.is_scalar_or_numpy(1) and dtypes.is_scalar_or_numpy(np.zeros(1, "int4"))
    assert not any(map(dtypes.is_scalar_or_numpy, (None, "a", [1], np.zeros(1, object))))
    with pytest.raises(ValueError, match="got None"):
        dtypes.dtype(None)


def test_scalar_type_of():
    values = (1, True, 1.0, 1j, np.float32(1), np.zeros(1, "int4"), "bfloat16", float, np.dtype("complex64"))
    assert list(map(dtypes.scalar_type_of, values)) == [
        int,
        bool,
        float,
        complex,
        float,
        int,
        float,
        float,
        complex,
    ]
    for bad in ("U3", [1], dtypes.float0, np.zeros(1, object)):
        with pytest.raises(TypeError):
            dtypes.scalar_type_of(bad)


# ---- names, sizes, kinds


def test_names():
    short = {
        "bool": "bool",
        "int2": "i2",
        "uint4": "u4",
        "int64": "i64",
        "bfloat16": "bf16",
        "float32": "f32",
        "complex64": "c64",
        "float8_e4m3b11fnuz": "f8_e4m3b11fnuz",
        "float8_e8m0fnu": "f8_e8m0fnu",
        "float4_e2m1fn": "f4_e2m1fn",
    }
    assert {d: dtypes.short_dtype_name(np.dtype(d)) for d in short} == short
    assert dtypes.short_dtype_name(dtypes.float0) == dtypes.dtype_name(dtypes.float0) == "float0"
    assert dtypes.dtype_name(np.dtype("bool")) == "bool"


def test_itemsize_bits():
    bits = {"int2": 2, "uint4": 4, "float4_e2m1fn": 4, "bool": 8, "float8_e5m2": 8, "float32": 32, float: 64}
    assert {d: dtypes.itemsize_bits(d) for d in bits} == bits
    for bad in (None, object, dtypes.float0, dtypes.prng_key):
        with pytest.raises(ValueError, match="itemsize_bits: dtype must be"):
            dtypes.itemsize_bits(bad)


SUBTYPES = [
    ("bfloat16", np.floating),
    ("bfloat16", np.inexact),
    ("bfloat16", np.number),
    ("bfloat16", np.generic),
    ("bfloat16", scalar_types.bfloat16),
    ("int4", np.signedinteger),
    ("uint4", np.unsignedinteger),
    ("float8_e4m3fn", np.floating),
    ("float64", float),
    (float, np.floating),
    (bool, np.bool_),
    (dtypes.prng_key, dtypes.extended),
    (dtypes.extended, np.generic),
    (dtypes.float0, np.void),
    (np.integer, np.number),
    ("float32", "float32"),
    (None, np.floating),
    (np.float32(1), np.floating),
]
NOT_SUBTYPES = [
    ("bfloat16", float),
    ("float32", float),
    ("int32", int),
    (int, float),
    (bool, np.integer),
    ("int4", np.int8),
    ("uint4", np.signedinteger),
    ("int4", np.inexact),
    (dtypes.float0, np.floating),
    (np.floating, np.float32),
    (np.int8, dtypes.extended),
    (dtypes.prng_key, np.number),
    (np.generic, "bfloat16"),
    ("bfloat16", np.void),
]


def test_issubdtype():
    assert [p for p in SUBTYPES if not dtypes.issubdtype(*p)] == []
    assert [p for p in NOT_SUBTYPES if dtypes.issubdtype(*p)] == []
    for bad in (("foo", np.floating), (3, np.floating), (np.float32, 3), (np.zeros(2), np.floating)):
        with pytest.raises(TypeError):
            dtypes.issubdtype(*bad)


def test_isdtype():
    true = [("float32", "real floating"), ("int4", "signed integer"), ("int4", ("bool", "integral")),
            ("int4", scalar_types.int4), ("bfloat16", "numeric"), ("complex64", "complex floating"),
            ("bool", "bool"), (float, float), (np.float32(1), "real floating"), ("uint2", "unsigned integer"),
            ("float32", ("float32", "int32"))]  # fmt: skip
    false = [("float64", "float32"), ("bool", "numeric"), (dtypes.float0, "numeric"), ("float32", ()),
             ("int32", "unsigned integer"), ("float32", "complex floating")]  # fmt: skip
    assert [p for p in true if not dtypes.isdtype(*p)] == []
    assert [p for p in false if dtypes.isdtype(*p)] == []
    with pytest.raises(ValueError, match="kind must be one of .*got 'foo'"):
        dtypes.isdtype("int4", "foo")
    for bad in (3, np.floating, ["numeric"], ("bool", ("numeric",))):
        with pytest.raises(TypeError, match="kind must be"):
            dtypes.isdtype("float32", bad)


def test_finfo_and_iinfo():
    assert (
        repr(dtypes.finfo("float32")) == "finfo(resolution=1e-06, min=-3.4028235e+38, max=3.4028235e+38, dtype=float32)"
    )
    shown = repr(dtypes.finfo("bfloat16"))  # with the digits that this NumPy shows
    assert re.fullmatch(
        r"finfo\(resolution=0.01\d*, min= *- *3.389\d*e\+38, max= *3.389\d*e\+38, dtype=bfloat16\)", shown
    )
    assert dtypes.finfo(scalar_types.float8_e4m3fn).max == 448 and dtypes.finfo("complex64").dtype == "float32"
    assert repr(dtypes.iinfo(scalar_types.int4)) == "iinfo(min=-8, max=7, dtype=int4)"
    info = dtypes.iinfo("uint2")
    assert (info.min, info.max, info.bits, info.kind) == (0, 3, 2, "u")
    with pytest.raises(ValueError):
        dtypes.finfo("int32")
    with pytest.raises(ValueError):
        dtypes.iinfo("float32")


# ---- scalar types


def test_scalar_types_stand_for_dtypes():
    f32 = scalar_types.float32
    assert f32 == np.float32 and np.float32 == f32 and f32 == np.dtype("float32") and np.dtype("float32") == f32
    assert all(f32 != other for other in (scalar_types.float64, "float32", float, None))
    assert hash(f32) == hash(np.float32) and np.float32 in {f32}
    assert np.dtype(f32) == f32.dtype == np.zeros(1, f32).dtype and np.issubdtype(f32, np.floating)
    assert repr(f32) == "<class 'catena.numpy.float32'>" and f32.__name__ == "float32"
    assert isinstance(np.float32(1), f32) and not isinstance(1.0, f32)
    assert scalar_types.double is scalar_types.float64 and scalar_types.bool is scalar_types.bool_
    assert copy.deepcopy(f32) is f32


def test_scalar_types_make_arrays_through_the_hook(monkeypatch):
    make = staticmethod(lambda x, dtype: np.asarray(x, dtype))
    monkeypatch.setattr(scalar_types.ScalarType, "make_array", make)
    assert scalar_types.int8(3).dtype == "int8" and scalar_types.bfloat16([1, 2]).shape == (2,)
    assert scalar_types.int8(x=3) == 3
    with pytest.raises(TypeError):
        scalar_types.int8()


# ---- extended dtypes


class Dice(dtypes.ExtendedDType):
    type = dtypes.prng_key


def test_extended_dtypes():
    a, b, other = Dice("dice<a>", 8, "a"), Dice("dice<a>", 8, "a"), Dice("dice<b>", 8, "b")
    assert a == b and hash(a) == hash(b) and a != other and a != np.dtype("float32")
    assert repr(a) == str(a) == dtypes.dtype_name(a) == dtypes.short_dtype_name(a) == "dice<a>" and a.itemsize == 8
    assert dtypes.issubdtype(a, dtypes.prng_key) and dtypes.issubdtype(a, dtypes.extended)
    assert dtypes.issubdtype(a, np.generic) and dtypes.issubdtype(a, b) and not dtypes.issubdtype("float32", a)
    assert dtypes.canonicalize_dtype(a, allow_extended_dtype=True) is a
    assert dtypes.check_user_dtype_supported(a, "zeros") is a
    assert result_type(a, b) == a and not dtypes.is_inexact(a)
    for bad in (a, dtypes.prng_key):
        with pytest.raises(ValueError, match="must not be extended"):
            dtypes.canonicalize_dtype(bad)
    with pytest.raises(ValueError, match="does not promote"):
        result_type(a, other)
    with pytest.raises(TypeError):
        dtypes.isdtype(a, "numeric")
    with pytest.raises(TypeError):
        np.dtype(a)
    with pytest.raises(TypeError):
        dtypes.prng_key()
    assert repr(dtypes.prng_key) == "<class 'catena.dtypes.prng_key'>"
    assert pickle.loads(pickle.dumps(dtypes.prng_key)) is dtypes.prng_key


def test_typing_protocols():
    class Custom:
        def __jax_array__(self):
            return np.zeros(1)

    assert isinstance(Custom(), typing.SupportsJAXArray) and not isinstance(1, typing.SupportsJAXArray)
    assert float in typing.ArrayLike.__args__ and str in typing.DTypeLike.__args__


NARROW = (*dtypes.NARROW_SIGNED, *dtypes.NARROW_UNSIGNED, *dtypes.FLOAT4, *dtypes.FLOAT6)
BOTH_SIDES = (
    "add subtract multiply maximum minimum less floor_divide remainder true_divide power negative sign square "
    "sum prod max min cumsum sort argsort mean any"
)


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", BOTH_SIDES.split())
def test_narrow_arithmetic_is_the_same_eager_and_compiled(dtype, name):
    """JAX 0.10 has these dtypes too, but its compiler takes int1 for bool and has no float6."""
    x = jnp.arange(-4, 4).astype(dtype)
    y = jnp.array([1, 2, -1, 1, 3, 1, 1, 2]).astype(dtype)
    f = getattr(jnp, name)
    if name in ("sum", "prod"):
        f = partial(f, promote_integers=False)  # integers of a few bits do not promote to others
    args = (x, y) if name in BOTH_SIDES.split()[:10] else (x,)
    eager, compiled = f(*args), jax.jit(f)(*args)
    assert eager.dtype == compiled.dtype
    np.testing.assert_array_equal(np.asarray(eager).astype(float), np.asarray(compiled).astype(float))


def test_one_bit_wraps():
    assert (jnp.ones(2, jnp.uint1) + jnp.ones(2, jnp.uint1)).tolist() == [0, 0]
    assert jnp.arange(4).astype(jnp.int1).tolist() == [0, -1, 0, -1]
    assert jnp.iinfo(jnp.int1).min == -1 and jnp.finfo(jnp.float6_e3m2fn).max == 28


class TestAnswersAreKept:
    """What is asked about dtypes alone is asked of NumPy once."""

    def test_what_is_kept(self):
        asked = []

        @dtypes.remembered
        def question(a, b):
            asked.append(a)
            return len(asked)

        array = np.ones(2)
        assert [question("int8", jnp.float32) for _ in range(3)] == [1, 1, 1]
        assert [question("int8", ("integral", np.float32)) for _ in range(2)] == [2, 2]
        assert [question(array, "int8") for _ in range(2)] == [3, 4]  # not of arrays, which may change, and are large
        assert [question(object, "int8") for _ in range(2)] == [5, 6]  # nor of classes, of which there may be many

    def test_by_the_flags(self):
        assert dtypes.promote_types("int32", "float32") == "float32"
        assert dtypes.promote_types(int, float) == "float64"
        with override("jax_numpy_dtype_promotion", "strict"), pytest.raises(TypePromotionError):
            dtypes.promote_types("int32", "float32")
        with override("jax_enable_x64", False):
            assert dtypes.promote_types("int32", "uint32") == "int32"
        with override("jax_enable_x64", True):
            assert dtypes.promote_types("int32", "uint32") == "int64"

    def test_errors_come_each_time(self):
        for _ in range(2):
            with pytest.raises(TypeError, match="no dtype at all"):
                jnp.issubdtype("no dtype at all", "int8")
            with pytest.raises(TypeError, match="Python ints"):
                jnp.can_cast(1, "int8")

    def test_arrays_promote_as_they_are(self):
        weak = jnp.asarray(1.0)
        assert jnp.result_type(weak, jnp.float16(1)) == "float16"
        assert jnp.result_type(weak, jnp.int8(1), 2) == "float32"
        with override("jax_enable_x64", True):
            wide = jnp.ones(2, "float64")
        assert jnp.result_type(wide, wide) == "float64"
        assert jnp.result_type(wide, 1.0) == "float32"
        assert jnp.result_type("int8", np.uint8, float) == "float32"
