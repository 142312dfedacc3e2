"""Elementwise functions of ``catena.numpy``: values, dtypes, weak types, both paths, jit, errors, ufunc
methods.
"""

import operator
import subprocess
import sys

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena.core import dtypes
from promotion import PROMOTION, PYTHON, SHORT, entries

RNG = np.random.default_rng(7)
REALS = RNG.standard_normal(7).astype("float32")
POSITIVE = np.abs(REALS) + np.float32(0.1)
UNIT = (REALS / 4).astype("float32").clip(-0.9, 0.9)


def typed(x):
    """The dtype of a value and whether it is weak, as one string."""
    return str(x.dtype) + ("*" if x.weak_type else "")


def check_both_paths(fun, *args, rtol=3e-6):
    """The fast path, the general path (with debugging checks on, which switch it) and jit agree."""
    fast = fun(*args)
    with catena.debug_nans(True) if hasattr(catena, "debug_nans") else catena.config.debug_nans(True):
        general = fun(*args)
    compiled = catena.jit(fun)(*args)
    for other in (general, compiled):
        assert typed(fast) == typed(other) and fast.shape == other.shape
        np.testing.assert_allclose(np.asarray(fast), np.asarray(other), rtol=rtol, atol=1e-7)
    return fast


# ---- values against NumPy, by domain

UNARY = {
    "real": (
        REALS,
        "exp exp2 expm1 sin cos tan arctan sinh cosh tanh arcsinh cbrt deg2rad rad2deg degrees radians "
        "square "
        "negative abs absolute fabs sign floor ceil trunc rint reciprocal sinc i0 signbit isnan isinf "
        "isfinite "
        "positive isposinf isneginf logical_not conj real imag angle nan_to_num iscomplex isreal",
    ),
    "positive": (POSITIVE, "log log2 log10 log1p sqrt spacing"),
    "unit": (UNIT, "arcsin arccos arctanh"),
    "above one": (POSITIVE + np.float32(1), "arccosh"),
    "integers": (
        np.array([0, 5, -7], "int32"),
        "invert bitwise_not bitwise_count square negative abs sign floor",
    ),
}
UNARY_CASES = [(name, x) for x, names in UNARY.values() for name in names.split()]


@pytest.mark.parametrize(("name", "x"), UNARY_CASES, ids=[f"{n}-{x.dtype}" for n, x in UNARY_CASES])
def test_unary(name, x):
    actual = check_both_paths(getattr(jnp, name), jnp.asarray(x), rtol=1e-5)
    expected = getattr(np, name)(x.astype("float64") if x.dtype.kind == "f" and name != "spacing" else x)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "alias",
    [
        "acos arccos",
        "acosh arccosh",
        "asin arcsin",
        "asinh arcsinh",
        "atan arctan",
        "atanh arctanh",
        "abs absolute",
        "conj conjugate",
        "invert bitwise_invert",
    ],
)
def test_unary_aliases(alias):
    one, other = alias.split()
    x = jnp.arange(1, 3) if one == "invert" else jnp.array([0.5, 1.0])
    a, b = np.asarray(getattr(jnp, one)(x)), np.asarray(getattr(jnp, other)(x))
    np.testing.assert_array_equal(a, b)


BINARY_REAL = (
    "add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum fmax fmin "
    "arctan2 "
    "hypot logaddexp logaddexp2 heaviside copysign nextafter equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or logical_xor"
).split()
BINARY_INT = (
    "add subtract multiply floor_divide remainder mod fmod maximum minimum gcd lcm bitwise_and bitwise_or "
    "bitwise_xor left_shift equal less logical_and"
).split()


@pytest.mark.parametrize("name", BINARY_REAL)
def test_binary_of_floats(name):
    x, y = REALS, np.roll(REALS, 2) + np.float32(0.05)
    actual = check_both_paths(getattr(jnp, name), jnp.asarray(x), jnp.asarray(y), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(actual), getattr(np, name)(x, y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY_INT)
def test_binary_of_integers(name):
    x, y = np.array([7, -7, 12, -2147483647], "int32"), np.array([2, 3, 18, 5], "int32")
    actual = check_both_paths(getattr(jnp, name), jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_array_equal(np.asarray(actual), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", ["add", "less", "power", "logical_and", "hypot"])
def test_binary_broadcasts(name):
    x, y = jnp.arange(3.0), jnp.arange(2.0).reshape(2, 1)
    expected = getattr(np, name)(np.arange(3.0, dtype="float32"), np.arange(2.0, dtype="float32").reshape(2, 1))
    np.testing.assert_allclose(np.asarray(check_both_paths(getattr(jnp, name), x, y)), expected, rtol=1e-6)


# ---- the promotion table of the notes: x64 on, a row a dtype; a star marks weak results


def test_promotion_table():
    def operand(name):
        return PYTHON[name] if name in PYTHON else jnp.ones(1, SHORT[name])

    with catena.enable_x64(True):
        for a, b, expected in entries(PROMOTION):
            for fun in (jnp.add, jnp.multiply, operator.add) if {a, b} - set(PYTHON) else (jnp.add,):
                found = typed(fun(operand(a), operand(b)))
                assert found == SHORT[expected.rstrip("*")] + "*" * expected.endswith("*"), (a, b)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda: jnp.int8(1) + 1, "int8"),
        (lambda: jnp.int8(1) + 1.0, "float32*"),
        (lambda: jnp.asarray(1) + 1, "int32*"),
        (lambda: jnp.sin(1), "float32*"),
        (lambda: jnp.exp(True), "float32"),
        (lambda: jnp.array(1.0) == 1, "bool*"),
        (lambda: jnp.arange(3) / 2, "float32"),
        (lambda: jnp.floor(jnp.int32(3)), "int32"),
        (lambda: jnp.log2(2.0), "float32"),
        (lambda: jnp.square(True), "int32"),
        (lambda: jnp.abs(jnp.complex64(1j)), "float32"),
        (lambda: jnp.rad2deg(1), "float32*"),
        (lambda: jnp.array([True]) == 1, "bool*"),
        (lambda: jnp.array([True]) & 3, "int32*"),
        (lambda: jnp.isinf(1.0), "bool"),
        (lambda: jnp.hypot(1, 2), "float32*"),
        (lambda: jnp.hypot(jnp.int32(1), 2.0), "float32*"),
        (lambda: jnp.gcd(12, -18), "int32*"),
        (lambda: np.float64(1) + jnp.ones(1, "bfloat16"), "float32"),
        (lambda: jnp.ones(1, "float8_e4m3fn") + 1.0, "float8_e4m3fn"),
    ],
)
def test_result_types(expression, expected):
    assert typed(expression()) == expected


def test_strict_promotion():
    with catena.numpy_dtype_promotion("strict"), pytest.raises(dtypes.TypePromotionError, match="strict"):
        jnp.ones(2) + jnp.ones(2, int)


# ---- integers where JAX is not NumPy


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda i: i // jnp.array([2, 2, -2, -2]), [3, -4, -4, 3]),
        (lambda i: i % jnp.array([2, 2, -2, -2]), [1, 1, -1, -1]),
        (lambda i: i // 0, [-2, -2, -2, -2]),
        (lambda i: i % 0, [0, 0, 0, 0]),
        (lambda i: jnp.fmod(i, 0), [0, 0, 0, 0]),
        (lambda i: i // 2, [3, -4, 3, -4]),
        (lambda i: i % 4, [3, 1, 3, 1]),
        (lambda i: 7 // jnp.array([0, 2, -2, 7]), [-2, 3, -4, 1]),
        (lambda i: i << 33, [0, 0, 0, 0]),
        (lambda i: i >> 40, [0, -1, 0, -1]),
        (lambda i: jnp.power(i, 3), [343, -343, 343, -343]),
        (lambda i: i ** jnp.array([0, 1, 2, 3]), [1, -7, 49, -343]),
    ],
)
def test_integer_arithmetic(expression, expected):
    i = jnp.array([7, -7, 7, -7])
    for result in (expression(i), catena.jit(expression)(i)):
        assert result.dtype == "int32"
        np.testing.assert_array_equal(np.asarray(result), expected)


def test_integers_wrap_around():
    assert int(jnp.uint8(200) + 100) == 44 and int(jnp.int8(1) + 200) == -55
    assert int(jnp.array(2**31 - 1) + 1) == -(2**31)
    assert int((jnp.array([3]) ** jnp.array([100]))[0]) == 3**100 - (3**100 + 2**31 >> 32 << 32)


def test_zero_dividends_of_unsigned_integers():
    np.testing.assert_array_equal(np.asarray(jnp.array([1, 0], "uint8") // jnp.array([0, 0], "uint8")), [255, 255])


@pytest.mark.parametrize(
    ("x", "y", "quotient", "remainder"),
    [
        (7.0, 0.0, np.inf, np.nan),
        (-7.0, 2.0, -4.0, 1.0),
        (7.0, -2.0, -4.0, -1.0),
        (-1.0, np.inf, -1.0, np.inf),
        (0.0, np.inf, 0.0, 0.0),
    ],
)
def test_float_division_corners(x, y, quotient, remainder):
    x, y = jnp.float32(x), jnp.float32(y)
    for fun in (jnp.divmod, catena.jit(jnp.divmod), lambda a, b: (a // b, a % b)):
        found = fun(x, y)
        np.testing.assert_array_equal([float(v) for v in found], [quotient, remainder])


# ---- corners of floats


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda: jnp.maximum(jnp.nan, 1.0), np.nan),
        (lambda: jnp.fmax(jnp.nan, 1.0), 1.0),
        (lambda: jnp.fmin(1.0, jnp.nan), 1.0),
        (lambda: jnp.logaddexp(-jnp.inf, -jnp.inf), -np.inf),
        (lambda: jnp.logaddexp(jnp.inf, jnp.inf), np.inf),
        (lambda: jnp.hypot(jnp.inf, jnp.nan), np.inf),
        (lambda: jnp.clip(5, 2, 1), 1),
        (lambda: jnp.sinc(0.0), 1.0),
        (lambda: jnp.float32(0) ** 0, 1.0),
        (lambda: jnp.sign(jnp.nan), np.nan),
        (lambda: jnp.arctan2(0.0, -0.0), np.pi),
        (lambda: jnp.round(0.5), 0.0),
        (lambda: jnp.rint(1.5), 2.0),
        (lambda: jnp.float32(1e-40) * 1, np.float32(1e-40)),
        (lambda: jnp.ldexp(1.0, 4_000_000), np.inf),
        (lambda: jnp.ldexp(jnp.float32(np.ldexp(1.0, 100)), -240), np.ldexp(1.0, -140)),
        (lambda: jnp.ldexp(jnp.float16(1), jnp.int16(32767)), np.inf),
        (lambda: jnp.ldexp(jnp.float16(1), jnp.int16(-32768)), 0.0),
    ],
)
def test_float_corners(expression, expected):
    np.testing.assert_allclose(np.asarray(expression()), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(catena.jit(expression)()), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_maximum_with_zero_has_its_sign_and_keeps_nan(dtype):
    x = jnp.asarray(
        np.resize(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-7, -1e-7, 2.0, -2.0]), 50), dtype
    )
    for fun in (lambda v: jnp.maximum(v, 0), lambda v: jnp.maximum(0, v), catena.nn.relu):
        got = np.asarray(catena.jit(fun)(x)).astype("float64")
        np.testing.assert_array_equal(got, np.asarray(jnp.maximum(x, 0)).astype("float64"))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(np.asarray(x).astype("float64")))
        assert not np.signbit(got[~np.isnan(got)]).any()


def test_frexp_and_back():
    x = np.array([0.0, 1.0, -3.0, 1e-45, -1e-39, 3e38, np.inf, np.nan], "float32")
    for fun in (jnp.frexp, catena.jit(jnp.frexp)):
        mantissa, exponent = map(np.asarray, fun(jnp.asarray(x)))
        np.testing.assert_array_equal(mantissa[:6], np.frexp(x[:6])[0])
        np.testing.assert_array_equal(exponent[:6], np.frexp(x[:6])[1])
        np.testing.assert_array_equal(exponent[6:], [0, 0])
        np.testing.assert_array_equal(np.asarray(jnp.ldexp(mantissa, exponent)), x)


def test_complex_comparisons_are_lexicographic():
    x, y = jnp.array([1 + 1j, 1 + 2j, 2]), jnp.array([1 + 2j, 1 + 1j, 1 + 5j])
    np.testing.assert_array_equal(np.asarray(jnp.less(x, y)), [True, False, False])
    np.testing.assert_array_equal(np.asarray(jnp.greater_equal(x, y)), [False, True, True])
    np.testing.assert_array_equal(np.asarray(jnp.maximum(x, y)), [1 + 2j, 1 + 2j, 2])


@pytest.mark.parametrize(
    ("fun", "x", "expected"),
    [
        (jnp.i0, 0.0, 0.0),
        (lambda x: jnp.logaddexp(x, x), 1.0, 1.0),
        (lambda x: jnp.logaddexp(x, 0.0), -np.inf, 0.0),
        (lambda x: jnp.remainder(x, 2.0), 3.0, 1.0),
        (lambda x: jnp.floor_divide(x, 2.0), 3.0, 0.0),
        (lambda x: jnp.copysign(x, -1.0), 3.0, -1.0),
        (lambda x: jnp.clip(x, 0.0, 1.0), 0.0, 0.5),
        (lambda x: x**2, 3.0, 6.0),
        (catena.grad(jnp.sinc), 0.0, -(np.pi**2) / 3),
        (catena.grad(lambda x: jnp.logaddexp(x, 2.0)), 2.0, 0.25),
    ],
)
def test_derivatives_at_corners(fun, x, expected):
    np.testing.assert_allclose(float(catena.grad(fun)(x)), expected, rtol=1e-5, atol=1e-6)


# ---- near and equal


def test_isclose_family():
    x, nan = jnp.array([1.0, 2.0]), jnp.array([jnp.nan])
    assert bool(jnp.allclose(x, x + 1e-6)) and not bool(jnp.allclose(1.0, 1.0001))
    assert not bool(jnp.isclose(nan, nan)[0]) and bool(jnp.isclose(nan, nan, equal_nan=True)[0])
    assert bool(jnp.isclose(jnp.inf, jnp.inf)) and not bool(jnp.isclose(jnp.inf, 1.0))
    assert bool(catena.jit(jnp.isclose)(x, x)[0]) and bool(jnp.array_equiv(jnp.ones(2), jnp.ones((3, 2))))
    assert bool(jnp.array_equal([1, 2], jnp.array([1, 2]))) and not bool(jnp.array_equal(x, x[:1]))


def test_questions_answered_in_python():
    assert jnp.iscomplexobj(1j) is True and jnp.isrealobj(jnp.ones(1)) is True
    assert jnp.iscomplexobj(jnp.complex64) and jnp.isrealobj(jnp.bfloat16) and jnp.isrealobj(np.array([object()]))
    assert jnp.iscomplexobj(catena.ShapeDtypeStruct((2,), jnp.complex64)) and jnp.isrealobj(
        catena.ShapeDtypeStruct((), int)
    )
    assert jnp.isscalar(jnp.float32(1)) is True and jnp.isscalar(jnp.ones(1)) is False


# ---- errors


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        (
            lambda: jnp.sin([1.0]),
            TypeError,
            "sin requires ndarray or scalar arguments, got <class 'list'> at position 0.",
        ),
        (
            lambda: jnp.add([1], 2),
            TypeError,
            "add requires ndarray or scalar arguments, got <class 'list'> at position 0.",
        ),
        (
            lambda: jnp.add(1, None),
            TypeError,
            "add requires ndarray or scalar arguments, got <class 'NoneType'> at position 1.",
        ),
        (lambda: jnp.add("a", 2), TypeError, "add requires ndarray or scalar arguments, got <class 'str'>"),
        (
            lambda: jnp.ones(2) + jnp.ones(3),
            TypeError,
            "add got incompatible shapes for broadcasting: (2,), (3,).",
        ),
        (
            lambda: jnp.ones((2, 2)) + jnp.ones(3),
            ValueError,
            "Incompatible shapes for broadcasting: shapes=[(2, 2), (3,)]",
        ),
        (
            lambda: jnp.ones((4, 2)) - jnp.ones(4),
            ValueError,
            "As (4, 1) the one of shape (4,) fits: x[..., None], or keepdims=True",
        ),
        (lambda: ~jnp.ones(2), TypeError, "not does not accept dtype float32"),
        (lambda: jnp.ones(2) << 1, TypeError, "shift_left does not accept dtype float32"),
        (lambda: jnp.array([True]) - jnp.array([True]), TypeError, "sub does not accept dtype bool"),
        (lambda: -jnp.array([True]), TypeError, "neg does not accept dtype bool"),
        (lambda: jnp.arange(3) ** -1, TypeError, "Integers cannot be raised to negative powers"),
        (lambda: jnp.arange(3) ** jnp.array(-1), TypeError, "Integers cannot be raised to negative powers"),
        (lambda: jnp.arange(3) + 2**31, OverflowError, "2147483648 too large"),
        (lambda: jnp.add(1, 2, out=3), NotImplementedError, "out argument of <jnp.ufunc 'add'>"),
        (lambda: jnp.add(1, 2, where=True), NotImplementedError, "where argument of <jnp.ufunc 'add'>"),
        (lambda: jnp.gcd(1.0, 2), ValueError, "Arguments to jax.numpy.gcd must be integers."),
        (lambda: jnp.fabs(1j), TypeError, "does not support complex"),
        (lambda: jnp.hypot(1j, 1), ValueError, "complex"),
        (lambda: jnp.clip(1j, 0, 1), ValueError, "Clip received a complex value"),
        (lambda: jnp.round(True), ValueError, "round"),
        (
            lambda: jnp.around(123, -2),
            NotImplementedError,
            "integer np.round not implemented for decimals < 0",
        ),
        (lambda: jnp.ldexp(1.0, 2.0), ValueError, "ldexp not supported for input types"),
    ],
)
def test_errors(expression, error, text):
    with pytest.raises(error) as found:
        expression()
    assert text in str(found.value)


def test_rank_promotion_flag():
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with catena.numpy_rank_promotion("raise"):
        for fun in (jnp.add, operator.add):
            with pytest.raises(ValueError, match="Operands could not be broadcast together for add"):
                fun(x, y)
        assert (x + 1).shape == (2, 3) and (x + jnp.float32(1)).shape == (2, 3)
    with (
        catena.numpy_rank_promotion("warn"),
        pytest.warns(UserWarning, match="automatic rank promotion for add"),
    ):
        x + y


def test_debug_nans_reaches_the_general_path():
    with catena.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.zeros(2) / jnp.zeros(2)


# ---- the boundary: objects that convert themselves


class Temperature:
    """Something that knows how to become an array."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


@pytest.mark.parametrize("name", [*(n for n, _ in UNARY_CASES), *BINARY_REAL, "gcd", "bitwise_and"])
def test_functions_take_objects_with_jax_array(name):
    x = (
        jnp.array([1, 2])
        if name in ("gcd", "bitwise_and", "invert", "bitwise_not", "bitwise_count")
        else jnp.array([0.5, 0.9])
    )
    x = x + 1 if name == "arccosh" else x
    fun, count = getattr(jnp, name), 1 if any(name == n for n, _ in UNARY_CASES) else 2
    expected = fun(*[x] * count)
    actual = fun(*[Temperature(x)] * count)
    assert typed(actual) == typed(expected)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


def test_jax_array_must_return_an_array():
    with pytest.raises(TypeError, match=r"Temperature.__jax_array__\(\) must return an array"):
        jnp.sin(Temperature([1.0]))


# ---- ufuncs

UFUNCS = (
    "add subtract multiply maximum minimum logaddexp logical_and logical_or logical_xor bitwise_and bitwise_or".split()
)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("axis", [0, 1])
def test_ufunc_reduce_and_accumulate(name, axis):
    x = (
        np.array([[3, 5, 0], [2, 7, 1]])
        if "bitwise" in name or "logical" in name
        else np.array([[3.0, 5, 0], [2, 7, 1]])
    )
    ours, theirs = getattr(jnp, name), getattr(np, name)
    a = jnp.asarray(x)
    np.testing.assert_allclose(np.asarray(ours.reduce(a, axis=axis)), theirs.reduce(x, axis=axis), rtol=1e-6)
    kept = ours.reduce(a, axis=axis, keepdims=True)
    np.testing.assert_allclose(np.asarray(kept), theirs.reduce(x, axis=axis, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(ours.accumulate(a, axis=axis)), theirs.accumulate(x, axis=axis), rtol=1e-6)
    compiled = catena.jit(lambda a: ours.accumulate(a, axis=axis))(a)
    np.testing.assert_allclose(np.asarray(compiled), theirs.accumulate(x, axis=axis), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "multiply"])
def test_ufunc_outer_reduceat_and_at(name):
    ours, theirs = getattr(jnp, name), getattr(np, name)
    x = np.arange(8.0, dtype="float32") + 1
    indices = np.array([0, 4, 1, 5])
    np.testing.assert_allclose(np.asarray(ours.outer(x, x[:3])), theirs.outer(x, x[:3]))
    np.testing.assert_allclose(
        np.asarray(ours.reduceat(jnp.asarray(x), jnp.asarray(indices))), theirs.reduceat(x, indices)
    )
    expected = x.copy()
    theirs.at(expected, [0, 0, 3], 2.0)
    np.testing.assert_allclose(np.asarray(ours.at(jnp.asarray(x), jnp.array([0, 0, 3]), 2.0, inplace=False)), expected)


def test_ufunc_reduce_options():
    x = jnp.arange(5)
    assert int(jnp.subtract.reduce(x, initial=3)) == -7
    assert int(jnp.minimum.reduce(x, where=x > 1, initial=10)) == 2
    assert jnp.add.reduce(jnp.ones((2, 3), "int8")).dtype == "int32"
    assert float(jnp.add.reduce(jnp.ones((2, 3)), axis=None)) == 6
    assert (jnp.add.nin, jnp.add.nout, jnp.add.nargs, jnp.add.identity) == (2, 1, 2, 0)
    assert repr(jnp.add) == "<jnp.ufunc 'add'>"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.add.at(jnp.ones(3), 0, 5.0), NotImplementedError, "cannot operate inplace"),
        (lambda: jnp.subtract.reduce(jnp.ones((2, 2)), axis=(0, 1)), NotImplementedError, "tuple of axes"),
        (lambda: jnp.negative.reduce(jnp.ones(2)), ValueError, "reduce only supported for binary ufuncs"),
        (lambda: jnp.maximum.reduce(jnp.zeros(0)), ValueError, "has no identity"),
        (
            lambda: jnp.subtract.reduce(jnp.arange(3), where=jnp.ones(3, bool)),
            ValueError,
            "has to specify 'initial'",
        ),
        (lambda: jnp.add.reduce(jnp.float32(1)), ValueError, "axis 0 is out of bounds"),
    ],
)
def test_ufunc_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("counts", "kind", "text"),
    [
        ((1, "1"), TypeError, "nout must be an integer, got '1'"),
        ((1.5, 1), TypeError, "nin must be an integer, got 1.5"),
        ((0, 1), ValueError, "nin must be at least 1, got 0"),
        ((1, -1), ValueError, "nout must be at least 0, got -1"),
    ],
)
def test_frompyfunc_refuses_what_is_no_count(counts, kind, text):
    with pytest.raises(kind, match=text):
        jnp.frompyfunc(operator.neg, *counts)


def test_frompyfunc():
    f = jnp.frompyfunc(lambda a, b: 10 * a + b, 2, 1, identity=0)
    assert int(f.reduce(jnp.array([1, 2, 3]))) == 123
    np.testing.assert_array_equal(np.asarray(f(jnp.arange(3), 1)), [1, 11, 21])
    np.testing.assert_array_equal(np.asarray(f.accumulate(jnp.array([1, 2, 3]))), [1, 12, 123])
    both = jnp.frompyfunc(lambda a, b: (a + b, a * b), 2, 2)(jnp.arange(3), 2)
    np.testing.assert_array_equal(np.asarray(both[1]), [0, 2, 4])


UFUNCS = [name for name in dir(jnp) if isinstance(getattr(jnp, name), jnp.ufunc) and getattr(jnp, name).nin == 2]


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_methods_are_those_of_numpy(name):
    """Along every axis, of arrays that are not square, with masks of every shape, and of arrays of length 0."""
    ours, theirs = getattr(jnp, name), getattr(np, name)
    x = np.arange(6).reshape(2, 3) + 1
    x = x if name.startswith("bitwise") else x.astype(bool if name.startswith("logical") else "float32")
    mask = np.array([[1, 0, 1], [0, 1, 1]], bool)
    calls = [lambda f, a=a, m=m: f.reduce(x, axis=a, where=m, initial=1) for a in (0, 1, -1) for m in (mask, mask[0])]
    calls += [lambda f, a=a, n=n: f.accumulate(x[:, :n], axis=a) for a in (0, 1, -1) for n in (0, 3)]
    calls += [lambda f, a=a, n=n: f.reduceat(x, np.zeros(n, int), axis=a) for a in (0, 1) for n in (0, 2)]
    for call in calls:
        expected, found = call(theirs), np.asarray(call(ours))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.shape == expected.shape


def test_ufuncs_of_functions_get_elements():
    """A function that is not elementwise by itself sees scalars, as one of Python numbers would."""
    f = jnp.frompyfunc(lambda x, y: jnp.sum(x) + y if x.ndim == 0 else x, 2, 1)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(f(x, x), 2 * x)
    np.testing.assert_array_equal(f.reduce(x, axis=1), x.sum(1))
    np.testing.assert_array_equal(f.accumulate(x, axis=1), x.cumsum(1))
    np.testing.assert_array_equal(f.outer(x[0], x), np.add.outer(x[0], x))
    np.testing.assert_array_equal(f.reduceat(x, np.array([0, 1]), axis=1), np.add.reduceat(x, [0, 1], axis=1))
    np.testing.assert_array_equal(jnp.ufunc(f.__wrapped__, 2, 1)(x, x), 2 * x)


def test_ufuncs_of_one_function_are_equal():
    """So that jit, which takes them as static arguments, does not trace again."""
    first, second = (jnp.frompyfunc(operator.sub, 2, 1) for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert first != jnp.frompyfunc(operator.sub, 2, 1, identity=0) and first != jnp.frompyfunc(operator.add, 2, 1)
    assert jnp.add == jnp.add != jnp.subtract


def test_updates_have_the_dtype_of_the_function():
    add = jnp.frompyfunc(operator.add, 2, 1)
    assert add.at(jnp.arange(3), jnp.array([0, 0]), 1.5, inplace=False).tolist() == [3.0, 1.0, 2.0]
    assert jnp.logical_and.at(jnp.arange(3), 0, True, inplace=False).dtype == bool


def test_fromfunction_maps_indices():
    table = jnp.fromfunction(lambda i: (i + 1) * jnp.arange(3), shape=(2,))
    np.testing.assert_array_equal(table, [[0, 1, 2], [0, 2, 4]])
    tree = jnp.fromfunction(lambda i, j, k: {"a": i + 10 * j, "b": (k, i.ndim)}, (2, 3), dtype=int, k=5)
    np.testing.assert_array_equal(tree["a"], np.add.outer([0, 1], [0, 10, 20]))
    np.testing.assert_array_equal(tree["b"][0], np.full((2, 3), 5))


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_operands_by_name(name):
    """JAX's ``fmax`` and ``fmin`` take both by keyword; a class that takes part gets the public function."""

    class Own:
        def __jax_function__(self, function, types, args, kwargs):
            return function

    function, x = getattr(jnp, name), jnp.array([1.0, jnp.nan])
    np.testing.assert_array_equal(np.asarray(function(x1=x, x2=3.0)), np.asarray(function(x, 3.0)))
    np.testing.assert_array_equal(np.asarray(function(3.0, x2=x)), np.asarray(function(3.0, x)))
    assert function(Own(), 1.0) is function is function(x1=1.0, x2=Own())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_compiled_arctan2_of_few(dtype):
    """The program for three halves crashed: it called a routine of the C compiler's library that is not there."""
    y, x = (np.array(v).astype(jnp.dtype(dtype)) for v in ([0.5, -1.0, -0.0], [-2.0, 1.0, -3.0]))
    compiled, eager = catena.jit(jnp.arctan2)(y, x), jnp.arctan2(y, x)
    np.testing.assert_array_equal(np.asarray(compiled, np.float32), np.asarray(eager, np.float32))
    np.testing.assert_array_equal(np.signbit(np.asarray(compiled, np.float32)), [False, True, True])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_powers_of_one_integer_and_to_one_in_compiled_programs(dtype):
    x, one = np.arange(70, dtype=dtype), np.array(3, dtype)
    for f in (lambda x, k: k**x, lambda x, k: x**k, lambda x, k: (x[:, None] * k ** (x[:3] % 4)).sum(1)):
        np.testing.assert_array_equal(catena.jit(f)(x, one), f(jnp.asarray(x), jnp.asarray(one)))
    np.testing.assert_array_equal(
        catena.jit(lambda x: 31**x)(jnp.arange(9)), np.array([31**k % 2**32 for k in range(9)], "uint32").view("int32")
    )


def test_integer_powers_are_one_equation_and_wrap_around():
    x, n = jnp.array([2, -3, 7, -1]), jnp.array([31, 3, 100, -1])
    wanted = [-(2**31), -27, pow(7, 100, 2**32), -1]
    assert (x**n).tolist() == catena.jit(jnp.power)(x, n).tolist() == wanted
    assert len(catena.make_jaxpr(jnp.power)(x, n).jaxpr.eqns) == 1


@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_parts_of_complex_numbers_are_rounded_each(decimals):
    x = jnp.array([1.2345 - 77.777j, -0.005 + 15j, 25 - 0.004j, jnp.inf + 1.006j], "complex64")
    by_parts = [jnp.round(part, decimals) for part in (x.real, x.imag)]
    for rounded in (jnp.round(x, decimals), catena.jit(jnp.round, static_argnums=1)(x, decimals)):
        np.testing.assert_array_equal([rounded.real, rounded.imag], by_parts)


def test_few_modules_are_loaded_for_a_function():
    """What runs and cumulates is for its methods, which are rare."""
    script = """
import sys
import catena.numpy as jnp
print(*[name for name in ("vectorization", "cumulative") if jnp.maximum and f"catena.numpy.{name}" in sys.modules])
assert jnp.add.accumulate(jnp.arange(4)).tolist() == [0, 1, 3, 6]
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("\n", "")


def test_reductions_of_users_functions_start_with_the_identity():
    """Which need change nothing: then it is told from none."""
    x = jnp.arange(4).reshape(2, 2)
    added = lambda identity: jnp.frompyfunc(lambda a, b: a + 2 * b, 2, 1, identity=identity)  # noqa: E731
    np.testing.assert_array_equal(added(None).reduce(x, axis=1), [2, 8])
    np.testing.assert_array_equal(added(5).reduce(x, axis=1), [7, 15])
    assert added(5).reduce(x, axis=None) == 17 and added(5).reduce(x, axis=None, initial=1) == 13
