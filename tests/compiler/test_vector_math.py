"""The vector mathematics library against mpmath, exact special values, and itself at other widths."""

import ctypes
import importlib
import platform
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import catena
from catena.compiler import vector_math
from catena.compiler.native import link
from catena.compiler.vector_math import accuracy, harness, mathematics
from catena.compiler.vector_math.text import FORMATS
from shares import EVERY

CASES = [(name, elem) for name in vector_math.ELEMENTARY for elem in ("float", "double")]
POINTS = 120
ROOT = Path(__file__).resolve().parents[2]

# Measured with jax.lax.erf_inv (0.10.2, CPU): bits of x and of the result.
ERF_INV_OF_JAX = """
3f000000:3ef430fe be800000:be66b835 3a83126f:3a6851b2 9e3ce508:9e27674c 3f7fffff:407547ca bf7ffffe:c06f9c68
3f7f1aa0:4004253f bf7f212d:c0048db6 3f7f2325:4004adab 3f7ae148:3fd28e99 3e801907:3e66e6e2 3f4b5f9b:3f6523f8
3f0d26ad:3f0928b1 bf0cb1a5:bf089ea6 becca136:bebdae20 3f3f4266:3f4ef7f4 bf7d4dde:bfe783c8 3f24780d:3f268c4c
3f18197c:3f16768e bd8356a4:bd690ae2 bec9b1de:bebab3f1 bee2e465:bed4b4ee befb0378:beeeabfc bde0f7ab:bdc80198
3c150990:3c041572 3ddb200a:3dc2c7c2 3f7db237:3fec6b10 3f15d7c8:3f13a7f3 3e7a391b:3e6156f0 3f7a58fc:3fcf2d13
bf11c30f:bf0eaaf4 bf2df8b0:bf33dbc1
"""


def test_the_battery_calls_every_function(monkeypatch):
    """`make accuracy` calls functions by the names that they have here, or by a table of its own."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    battery = importlib.import_module("accuracy")
    assert all(callable(battery.call_of(catena, name)) for name in set(accuracy.REFERENCES) - battery.NO_PRIMITIVE)
    assert battery.CALLS["modulus"](catena.lax)(np.float32(3), np.float32(4)) == 5


def test_every_function_has_its_cases():
    assert set(vector_math.ELEMENTARY) == set(accuracy.BOUNDS) == set(accuracy.REFERENCES)
    assert set(vector_math.ELEMENTARY) == set(accuracy.DOMAINS) == set(accuracy.SPECIALS)


@pytest.mark.parametrize("name, elem", CASES)
def test_error_is_within_its_bound(name, elem):
    worst, place = accuracy.worst_error(name, elem, POINTS)
    assert worst <= accuracy.BOUNDS[name].of(elem), f"{name}{place}"


def padded(rows: list[tuple], scalar: type) -> list[np.ndarray]:
    """The columns of `rows` as arrays of a multiple of 16 elements."""
    return [np.resize(np.array(column, scalar), -(-len(column) // 16) * 16) for column in zip(*rows)]


@pytest.mark.parametrize("name, elem", CASES)
def test_special_values(name, elem):
    scalar = accuracy.FORMATS[elem].scalar
    rows = accuracy.SPECIALS[name]
    if vector_math.arity(name) == 1:
        rows = [*rows, (np.nan, np.nan)]
    with np.errstate(over="ignore", under="ignore"):
        *arguments, want = padded(rows, scalar)
    got = harness.Compiled(name, elem, 8)(*arguments)
    np.testing.assert_array_equal(got, want)
    finite = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[finite], np.signbit(want)[finite])


def special_and_sampled(name: str, elem: str) -> list[np.ndarray]:
    specials = padded([row[:-1] for row in accuracy.SPECIALS[name]], accuracy.FORMATS[elem].scalar)
    return [np.concatenate(pair) for pair in zip(specials, accuracy.samples(name, elem, 160))]


def bits(array: np.ndarray) -> bytes:
    """The bit patterns, all NaNs made one."""
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes()


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.share(24)
@pytest.mark.parametrize("width", (4, 8, 16), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_width_computes_the_same_bits(case, width):
    name, elem = case
    arguments = special_and_sampled(name, elem)
    scalar = bits(harness.Compiled(name, elem, 1)(*arguments))
    assert bits(harness.Compiled(name, elem, width)(*arguments)) == scalar


@pytest.mark.parametrize("name", vector_math.ELEMENTARY)
def test_nothing_is_called_but_our_own_cold_functions(name):
    assembly = harness.assembly(name, "float", 8)
    # Far calls go through a register, so every symbol loaded or called counts; .L are local constants.
    symbols = set(re.findall(r"(?:movabsq\s+\$|callq?\s+)([A-Za-z_]\w*(?:\.\w+)*)", assembly))
    assert all(symbol.startswith("catena.") for symbol in symbols), symbols
    assert bool(symbols) == bool(vector_math.dependencies(name, "float", 8))


def test_erf_inv_agrees_with_jax():
    pairs = [pair.split(":") for pair in ERF_INV_OF_JAX.split()]
    x, want = (np.array([int(p[k], 16) for p in pairs], np.uint32) for k in (0, 1))
    got = harness.Compiled("erf_inv", "float", 8)(x.view(np.float32)).view(np.uint32)
    assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max() <= 2


def test_angles_next_to_multiples_of_half_pi():
    """The double closest to a multiple of pi/2 of all (Muller, "Elementary Functions", 10.2), and others."""
    x = np.array([6381956970095103 * 2.0**797, 5.319372648326541e255, 1e22, np.finfo(np.float64).max] * 4)
    got = harness.Compiled("cos", "double", 8)(x)
    for point, value in zip(x.tolist(), got.tolist()):
        with accuracy.mp.workprec(1400):
            assert accuracy.error(value, accuracy.mp.cos(point), "double") <= 1.0


def test_log_gamma_next_to_its_poles_and_between_them_is_rounded_once():
    """Down to -2 by that of a number below one, from there on by that of a greater one."""
    steps = 2.0 ** -np.linspace(1, 22, 40)
    x = np.concatenate([-steps, -1 + steps, -1 - steps, -2 + steps, -2 - steps, -(2.0 ** -np.arange(23, 143, 3))])
    x = np.random.default_rng(5).permutation(x.astype(np.float32))
    x = np.resize(x, -(-len(x) // 16) * 16)
    for place, got in zip(x.tolist(), harness.Compiled("lgamma", "float", 16)(x).tolist()):
        assert accuracy.error(got, accuracy.reference_lgamma(accuracy.mp.mpf(place)), "float") <= 0.51, place


def test_subnormals_are_not_flushed():
    x = np.full(16, 1e-40, np.float32)
    assert (harness.Compiled("sin", "float", 8)(x) == x).all()
    assert (harness.Compiled("tanh", "float", 8)(x) == x).all()
    assert (harness.Compiled("expm1", "double", 8)(np.full(16, 5e-324)) == 5e-324).all()


@pytest.mark.parametrize("name", ["erf", "tanh", "log", "log1p", "cbrt"])
@pytest.mark.parametrize("elem", ["float", "double"])
def test_lanes_beside_subnormal_arguments(name, elem):
    """What a vector does for subnormal lanes changes no other one, and each of them is rounded as others are."""
    fmt = FORMATS[elem]
    step = np.finfo(fmt.scalar).smallest_subnormal
    low = step * np.array([1, 2, 3, 5, 1000, 12345, 2**22 + 1, 2**22 + 3], fmt.scalar)
    others = np.array([0, 0.1, 1, 20, fmt.tiny, np.nan, np.inf, 0.3], fmt.scalar)
    run = harness.Compiled(name, elem, 8)
    mixed = run(np.stack([low, others], 1).ravel()).reshape(8, 2)
    np.testing.assert_array_equal(mixed[:, 1], run(others))
    for x, got in zip(low.tolist(), mixed[:, 0].tolist()):
        assert accuracy.error(got, accuracy.REFERENCES[name](accuracy.mp.mpf(x)), elem) <= 0.75


@pytest.mark.parametrize("elem, bits", [("float", 60), ("double", 200)])
def test_what_keeps_subnormals_out_changes_no_result(elem, bits):
    """Arguments that are added to something negligible: those that it makes zero, those around, and subnormal ones."""
    scalar = FORMATS[elem].scalar
    tiny = scalar(0.5**bits) * np.array([1, 1 + np.finfo(scalar).eps, 0.5, 3, 2**-20, 2**20, 0], scalar)
    x = np.resize(np.concatenate([tiny, -tiny, [np.finfo(scalar).smallest_subnormal]]), 16).astype(scalar)
    for name, wanted in {"exp": 1, "exp2": 1, "cosh": 1, "logistic": 0.5}.items():
        assert (harness.Compiled(name, elem, 8)(x) == wanted).all(), name
    for name in ("expm1", "sinh", "tanh"):
        np.testing.assert_array_equal(harness.Compiled(name, elem, 8)(x), x)


def test_results_below_the_normal_numbers_are_rounded_once():
    """By the exponential of doubles, which is exact enough; NaN of either sign stays NaN beside them."""
    x = np.linspace(-104.5, -86.5, 4096, dtype=np.float32)
    least = np.finfo(np.float32).smallest_subnormal
    with np.errstate(under="ignore"):
        exact = np.exp(x.astype(np.float64))
        bound = np.where(exact < 2.0**-135, 0.501 * least, 1.1 * np.spacing(exact.astype(np.float32)))
    assert (np.abs(harness.Compiled("exp", "float", 8)(x) - exact) <= bound).all()
    odd = np.array([0xFFC12345, 0x7FC12345, 0xFF812345, 0x42B17217], np.uint32).view(np.float32)
    low = np.array([-100, -np.inf, -90, -1e30], np.float32)
    beside = harness.Compiled("exp", "float", 8)(np.concatenate([odd, low]))
    assert np.isnan(beside[:3]).all() and np.isfinite(beside[3:]).all() and beside[5] == beside[7] == 0


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("elem", FORMATS)
def test_remainders_are_exact(elem, width):
    """Random bit patterns, whose quotients have up to 2098 digits; small quotients; and special values."""
    scalar, rng = FORMATS[elem].scalar, np.random.default_rng(0)
    patterns = rng.integers(0, 256, (2, 40000, np.dtype(scalar).itemsize), dtype=np.uint8).view(scalar)[..., 0]
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -3, FORMATS[elem].tiny / 4, FORMATS[elem].max], scalar)
    near = rng.uniform(-9, 9, (2, 40000)), (rng.integers(-99, 99, 40000) * 0.1, np.full(40000, 0.1))
    x, y = (
        np.concatenate([p, f(special, special.size), u, v], dtype=scalar)
        for p, f, u, v in zip(patterns, (np.repeat, np.tile), *near, strict=True)
    )
    x, y = (a[: a.size // 8 * 8] for a in (x, y))
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    out = harness.Compiled("rem", elem, width)(x, y)
    np.testing.assert_array_equal(out, expected)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(out)[there], np.signbit(expected)[there])


def test_dependencies_are_closed_and_definitions_named():
    for name, elem in CASES:
        for member in [(name, elem, 4), *vector_math.dependencies(name, elem, 4)]:
            assert vector_math.symbol(*member) + "(" in vector_math.define(*member)
    assert ("pi_reduction_large", "double", 1) in vector_math.dependencies("sin", "float", 8)


@pytest.mark.parametrize("name, lines", [("log_beta", 800), ("beta", 900), ("poch", 1400), ("log_betainc", 2400)])
def test_long_functions_call_what_they_need_several_times(name, lines):
    """Logarithms of gamma functions, written in place, were most of them, and of the time that LLVM took."""
    assert ("log_gamma", "double", 16) in vector_math.dependencies(name, "float", 16)
    assert vector_math.define(name, "float", 16).count("\n") < lines


@pytest.mark.parametrize("name, inlined, called", [("exp", 49, 200), ("log", 17, 40)])
def test_functions_that_are_called_often_are_written_in_place_while_all_is_short(name, inlined, called):
    """What calls keep on the stack takes up to half as long again."""
    symbol = vector_math.symbol(name, "float", 16)
    helpers = {symbol: ("vector_math", name, "float", 16)}
    assert link.too_many({symbol: inlined}, helpers) == frozenset()
    assert link.too_many({symbol: called}, helpers) == {symbol}


def test_unknown_name():
    with pytest.raises(ValueError, match="vector_math has no function 'sinc'; it has exp, "):
        vector_math.define("sinc", "float", 4)


KINDS = (0.0, -0.0, 0.5, 0.9999, 1e-9, 1.0, -2.0, -2.5, 5.0, 11.0, 33.0, -40.25, 170.0)
KINDS += (1e-320, 1e8, 1e300, np.inf, np.nan)


LOGARITHMS = ["log", "log1p", "log2", "log10", "entr", "logit", "lgamma", "log_gamma_density", "log_beta"]


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [*LOGARITHMS, "erf_inv", "ndtri", "beta", "poch", "gamma", "erfcx", "dawsn"])
def test_lanes_do_not_hang_on_those_beside(name):
    """Branches are for vectors in which some lane is of their kind: each kind is alone in vectors, and among others."""
    alone = [a.ravel() for a in np.meshgrid(KINDS, KINDS, range(8), indexing="ij")]
    order = np.random.default_rng(0).permutation(alone[0].size)
    for elem in FORMATS:
        function = harness.Compiled(name, elem, 8)
        with np.errstate(over="ignore", under="ignore"):
            x = [a.astype(function.scalar) for a in alone[: function.arity]]
        assert bits(function(*x)[order]) == bits(function(*(a[order] for a in x)))


SUBNORMAL_OPERAND, UNDERFLOW = 0x02, 0x10  # what x86 processors note (Intel's manual, volume 1, 10.2.3)
ALLOWED = {  # to underflow inside: a comparison more would cost arguments that programs have
    "erf_inv": -64,
    "error_density": -52,
    "normal_density": -52,
    "entr": -100,
}
OUTSIDE = ("erf_inv", "rsqrt")  # of whose domains they may as well


@pytest.mark.skipif(
    (platform.machine(), platform.system()) != ("x86_64", "Linux"), reason="reads what such a processor notes"
)
@pytest.mark.parametrize("name", [n for n in vector_math.ELEMENTARY if vector_math.arity(n) == 1])
def test_functions_do_not_underflow_inside(name):
    """Each such product takes processors a hundred cycles, though nobody sees it in the result: powers of what is small,
    inverses of what is large, what is begun outside of the domain.
    """
    notes, function, slow = ctypes.CDLL("libm.so.6"), harness.Compiled(name, "float", 8), []
    for exponent in range(-126, 126):
        for x in (np.full(8, s * 1.2345 * 2.0**exponent, np.float32) for s in (1, -1)):
            notes.feclearexcept(SUBNORMAL_OPERAND | UNDERFLOW)
            y = function(x)
            if notes.fetestexcept(SUBNORMAL_OPERAND | UNDERFLOW) and not abs(y[0]) < FORMATS["float"].tiny:
                slow.extend([exponent] * (name not in OUTSIDE or not np.isnan(y[0])))
    assert max(slow, default=-1000) <= ALLOWED.get(name, -1000)


@pytest.mark.parametrize("exponent", [0.5, -1.0, 2.0, 3.0])
@pytest.mark.parametrize("elem", FORMATS)
def test_powers_of_few_operations(elem, exponent):
    """They are rounded once (with little besides), and have their bits beside other exponents, too."""
    scalar, rng = FORMATS[elem].scalar, np.random.default_rng(3)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.5, FORMATS[elem].tiny, 3e38]
    most = 300 if elem == "double" else 40
    usual = rng.choice([-1.0, 1.0], 502) * rng.uniform(1, 2, 502) * 2.0 ** rng.integers(-most, most, 502)
    x = np.concatenate([special, usual]).astype(scalar)
    function = harness.Compiled("pow", elem, 8)
    got = function(x, np.full_like(x, exponent))
    among = function(np.repeat(x, 4), np.tile(np.array([exponent, 1.7, 3.0, -1.0], scalar), x.size))[::4]
    assert bits(got) == bits(among)
    with np.errstate(all="ignore"):
        wide = {0.5: np.sqrt, -1.0: np.reciprocal, 2.0: np.square, 3.0: lambda a: a * a * a}[exponent](
            x.astype(np.longdouble)
        )
        expected = np.where(np.isneginf(x), np.inf, wide + 0.0) if exponent == 0.5 else wide
        np.testing.assert_array_equal(got[: len(special)], expected[: len(special)].astype(scalar))
        there = np.isfinite(expected.astype(scalar)) & (np.abs(expected) > FORMATS[elem].tiny)
        off = np.abs(got[there] - expected[there]) / np.spacing(np.abs(expected[there]).astype(scalar))
    np.testing.assert_array_equal(np.signbit(got)[there], np.signbit(expected)[there])
    assert off.max() <= 0.51


def test_erfcx_of_floats_is_rounded_once():
    x = np.concatenate([np.linspace(-9.5, 9.5, 4000 if EVERY else 1000), np.geomspace(1e-30, 1e30, 96)]).astype(
        np.float32
    )
    for value, exact in zip(harness.Compiled("erfcx", "float", 8)(x).tolist(), x.tolist()):
        with accuracy.mp.workprec(700):
            want = accuracy.mp.exp(exact * accuracy.mp.mpf(exact)) * accuracy.mp.erfc(exact) if exact < 20 else None
        if want is not None and want < FORMATS["float"].max:
            assert accuracy.error(value, want, "float") <= 0.51, exact


def test_what_is_rounded_off_a_product_in_numpy_is_exact():
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(500) * 10.0 ** rng.integers(-60, 60, 500) for _ in range(2))
    lost = mathematics.Numpy.product_error(x, y, x * y)
    assert [Fraction(a) * Fraction(b) - Fraction(a * b) for a, b in zip(x, y)] == [Fraction(e) for e in lost]


@pytest.mark.parametrize("function", [catena.numpy.exp, catena.nn.sigmoid])
def test_halves_have_the_functions_of_floats_rounded(function):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = catena.jit(lambda x: function(x.astype("float32")).astype("float16"))
    np.testing.assert_array_equal(catena.jit(function)(x), wide(x))
