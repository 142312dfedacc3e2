"""Functions in two stages: what hangs on operands that do not change in a loop is computed before it, to the same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of
from catena.compiler.vector_math import PARAMETERS, arity, define, in_stages
from catena.compiler.vector_math.library import STAGED
from catena.compiler.vector_math.stages import names
from catena.scipy import special, stats

N = 37  # lanes, and some that are left
SMALL_ARE_DIVIDED = ", splat (i32 2147483647)"  # added to the bits of what is divided by two products
FUNCTIONS = {
    "gamma.logpdf": (stats.gamma.logpdf, [3, 0.33], [3, 12.5], [3, np.inf], [3, np.nan], [3, 0.0], [3, 1.0]),
    "poisson.logpmf": (lambda mu, k: stats.poisson.logpmf(jnp.floor(k), mu), [0, 0.7], [0, 30.0], [0, np.inf]),
    "gammainc": (special.gammainc, [0, 2.5], [0, 40.0], [1, 0.3], [0, -1.0]),
    "gammaincc": (special.gammaincc, [0, 0.001], [1, 7.0]),
    "betainc": (lambda b, x: special.betainc(2.5, b, x / 9), [0, 1.5], [1, 3.0]),
    "zeta": (special.zeta, [0, 2.5], [1, 1.5]),
    "pow": (jnp.power, [0, 2.5], [1, 0.3], [0, -0.0]),
    "polygamma": (lambda n, x: special.polygamma(n.astype("int32"), x), [0, 2.0], [1, 1.5]),
}


def values(dtype):
    rng = np.random.default_rng(0)
    x = np.concatenate([9 * rng.random(N - 5), [0.0, -0.0, -1.0, np.inf, np.nan]])
    return jnp.asarray(rng.permutation(x), dtype)


def assert_same(got, want):
    np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(want, np.float64))


CASES = [(name, given) for name, (_, *cases) in FUNCTIONS.items() for given in cases]


@pytest.mark.share(8)
@pytest.mark.parametrize(("name", "given"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_scalar_operand_gives_the_bits_of_an_array_of_it(name, given, dtype):
    function, (place, number) = FUNCTIONS[name][0], given
    with jax.enable_x64(dtype == "float64"):
        x, scalar = values(dtype), jnp.asarray(number, dtype)
        ordered = lambda s, x: function(s, x) if place == 0 else function(x, s)  # noqa: E731
        got = jax.jit(ordered)(scalar, x)
        assert_same(got, jax.jit(ordered)(jnp.full(N, scalar), x))
        assert_same(got, ordered(jnp.full(N, scalar), x))


CONSTANTS = {
    "betainc": lambda x: special.betainc(2.5, 3.0, x / 9),
    "zeta": lambda x: special.zeta(2.5, x),
    "gammainc": lambda x: special.gammainc(0.7, x),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_operands_give_the_bits_of_arrays(name):
    x, numbers = values("float32"), {"betainc": (2.5, 3.0), "zeta": (2.5,), "gammainc": (0.7,)}[name]
    arrays = [jnp.full(N, number, "float32") for number in numbers]
    operands = [*arrays, x / 9 if name == "betainc" else x]
    assert_same(jax.jit(CONSTANTS[name])(x), jax.jit(getattr(special, name))(*operands))


def test_what_hangs_on_constants_of_a_long_function_is_computed_before_the_loop():
    text = jax.jit(CONSTANTS["betainc"]).lower(values("float32")).compile().as_text("llvm")
    assert "betainc.first.xy" in text and "betainc.second.xy" in text


def test_an_operand_of_each_row_gives_the_bits_of_an_array_of_it():
    x, shapes = jnp.stack([values("float32")] * 5), jnp.asarray([[0.33], [2.5], [11.0], [np.inf], [0.0]], "float32")
    got = jax.jit(stats.gamma.logpdf)(x, shapes)
    assert_same(got, stats.gamma.logpdf(x, jnp.broadcast_to(shapes, x.shape)))


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_rows_shorter_than_a_vector_are_given_what_the_first_stage_computed(columns):
    x, scale = jnp.stack([values("float32")] * columns, 1), jnp.arange(1.0, columns + 1)
    f = jax.jit(lambda x, scale, shape: stats.gamma.logpdf(x * scale, shape))
    assert_same(f(x, scale, 2.5), stats.gamma.logpdf(x * scale, jnp.full(x.shape, 2.5)))
    text = f.lower(x, scale, 2.5).compile().as_text("llvm")
    assert "log_gamma_density.second.x" in text and "@catena.log_gamma_density.f32" not in text


def test_the_second_stage_computes_nothing_of_a_known_shape():
    """What is left of a density whose shape is known is one logarithm, of the seven polynomials of the whole."""
    assert in_stages("log_gamma_density", "x", "float") is not None
    whole = define("log_gamma_density", "float", 8)
    first, second = (define(name, "float", w) for name, w in zip(names("log_gamma_density", "x"), (1, 8)))
    products = [text.count("@llvm.fma") for text in (whole, first, second)]
    assert products[0] == products[1] + products[2]
    assert products[1] > products[2]


@pytest.mark.parametrize("name", sorted(STAGED))
def test_every_function_in_stages_is_worth_them_for_some_operand(name):
    known = [PARAMETERS[:k] for k in range(1, arity(name))] + [(p,) for p in PARAMETERS[: arity(name)]]
    assert any(in_stages(name, "".join(p), "float") for p in known)


AWKWARD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0, -7.0]


def numbers_of_all_sizes(rng, shape, dtype, spread):
    """Numbers around one, or of any exponent, with awkward ones among them."""
    info = np.finfo(dtype)
    exponents = rng.integers(info.minexp - info.nmant, info.maxexp, shape) if spread else np.zeros(shape, int)
    with np.errstate(all="ignore"):
        x = np.ldexp(rng.standard_normal(shape).astype(dtype), exponents)
    special_ = np.array([*AWKWARD, info.max, info.tiny, info.smallest_subnormal], dtype)
    return np.where(rng.random(shape) < 0.1, rng.choice(special_, shape), x).astype(dtype)


def assert_divided(x, y):
    """Bits, but those of NaN."""
    with np.errstate(all="ignore"):
        want = x / y
    got = np.asarray(jax.jit(jnp.divide)(x, y))
    same = got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}")
    assert (same | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("divisors", ["rows", "one"])
def test_what_rows_are_divided_by_is_inverted_once(dtype, spread, divisors):
    """Products with the inverse, corrected, are quotients to the last bit: of zeros, and out of all ranges, too."""
    rng = np.random.default_rng(1)
    with jax.enable_x64(dtype == "float64"):
        x = numbers_of_all_sizes(rng, (60, 83), dtype, spread)
        for y in numbers_of_all_sizes(rng, (60, 1) if divisors == "rows" else (12, 1, 1), dtype, spread)[None]:
            for one in y if divisors == "one" else [y]:
                assert_divided(x, one)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spread", [False, True])
def test_several_quotients_of_a_loop_are_products_with_inverses(dtype, spread):
    rng = np.random.default_rng(6)
    with jax.enable_x64(dtype == "float64"):
        x, y = (numbers_of_all_sizes(rng, (60, 83), dtype, spread) for _ in range(2))
        for a, b in numbers_of_all_sizes(rng, (12, 2), dtype, spread):
            with np.errstate(all="ignore"):
                want = [x / a, y / b, (x - y) / a]
            got = jax.jit(lambda x, y, a, b: [x / a, y / b, (x - y) / a])(x, y, a, b)
            jax.tree.map(np.testing.assert_array_equal, got, want)
            there = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[there], np.signbit(want)[there])


def test_dividers_are_what_loops_of_several_quotients_wait_for():
    """By the work beside each."""
    x = jnp.ones((64, 256))
    several = lambda x: sum((x - k) ** 2 / (0.3 + k) for k in range(25))  # noqa: E731
    text = text_of(jax.make_jaxpr(several)(x), machine=X86_64_V4)
    assert text.count(SMALL_ARE_DIVIDED) == 25
    among_others = lambda x: (x + x * x - x * x * x + 1) * (x - 2) * (x + 3) * (x * 3 - 1) / 0.3 + jnp.sin(x) / 0.7  # noqa: E731
    text = text_of(jax.make_jaxpr(among_others)(x), machine=X86_64_V4)
    assert SMALL_ARE_DIVIDED not in text and "quotient" not in text


def test_all_dividers_of_a_loop_count_not_only_those_by_what_lanes_share():
    """Beside two that are needed, work that one alone would hide is still less than the divider takes."""
    polynomial = lambda x: (x + x * x - x * x * x + 1) * (x - 2) * (x + 3) * (x + 7) * (x + 9) * (x * 3 - 1)  # noqa: E731
    alone = lambda x, y: polynomial(x) / 0.3  # noqa: E731
    with_others = lambda x, y: polynomial(x) / y / jnp.sqrt(y) / 0.3  # noqa: E731
    x, y = (jnp.asarray(np.random.default_rng(k).uniform(0.5, 2, (3, 100)), "float32") for k in (1, 2))
    texts = [text_of(jax.make_jaxpr(f)(x, y), machine=X86_64_V4) for f in (alone, with_others)]
    assert [SMALL_ARE_DIVIDED in text for text in texts] == [False, True]
    with jax.disable_jit():
        want = with_others(x, y)
    np.testing.assert_allclose(jax.jit(with_others)(x, y), want, rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_divided_by_an_inverse_of_single_precision(dtype):
    x = jnp.asarray(numbers_of_all_sizes(np.random.default_rng(3), (40, 83), "float32", True)).astype(dtype)
    y = jnp.asarray(numbers_of_all_sizes(np.random.default_rng(4), (40, 1), "float32", False)).astype(dtype)
    wide = [np.asarray(v.astype("float32")) for v in (x, y)]
    with np.errstate(all="ignore"):
        want = jnp.asarray(wide[0] / wide[1]).astype(dtype)
    got = jax.jit(jnp.divide)(x, y)
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))
    there = ~np.isnan(np.asarray(want, np.float32))
    got, want = (np.signbit(np.asarray(v, np.float32)[there]) for v in (got, want))
    np.testing.assert_array_equal(got, want)


def every(dtype):
    """All numbers of two bytes."""
    return jnp.asarray(np.arange(1 << 16, dtype=np.uint16).view(dtype))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_number_of_half_precision_is_divided_as_by_a_divider(name):
    """Ties below the least normal number, what has no normal inverse, and all that is no number, too."""
    x, rng = every(jnp.dtype(name)), np.random.default_rng(5)
    of_all_sizes = np.asarray(x)[rng.integers(0, 1 << 16, 24)]
    with np.errstate(all="ignore"):
        few = np.array([1272, 1700, 3, -0.0, np.inf, 1e-7, 2.0**-130, 2.0**127]).astype(x.dtype)
        y = np.concatenate([of_all_sizes, few])
        want = (np.asarray(x, np.float32) / np.asarray(y, np.float32)[:, None]).astype(x.dtype)
        got = np.asarray(jax.jit(lambda x, y: x / y[:, None])(x, jnp.asarray(y)))
    is_nan = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(got.view(np.uint16)[~is_nan], want.view(np.uint16)[~is_nan])


def test_half_precision_is_divided_by_products_of_fewer_operations():
    for name, function in (("float16", "quotient_of_halves"), ("bfloat16", "quotient_of_bfloat16")):
        text = text_of(jax.make_jaxpr(lambda x: x / 3)(jnp.ones((64, 256), name)), machine=X86_64_V4)
        assert f"{function}.second.y" in text


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_quotients_of_divisors_next_to_powers_of_two(steps):
    """Where the inverse is furthest from what it is rounded from."""
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x = 1 + rng.integers(0, 1 << 52, (4, 5000)) * 2.0**-52
        for y in (2 - steps * 2.0**-52, 1 + steps * 2.0**-52):
            assert_divided(x, np.full((4, 1), y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_quotients_are_rounded_once(dtype):
    """To even in the middle between two, and elsewhere to the nearer one, of dividends of every size that has such."""
    info, rng = np.finfo(dtype), np.random.default_rng(5)
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    divisors = np.concatenate([np.arange(1, 20), 2.0 ** np.arange(-15, 15) * 1.5, rng.random(12) + 1])[:, None]
    with jax.enable_x64(dtype == "float64"):
        for most in (64, 1 << info.nmant // 2, 1 << info.nmant, 1 << info.nmant + 5):
            x = rng.integers(0, most, (len(divisors), 300)).astype(word).view(dtype)
            for y in (divisors, -divisors):
                assert_divided(np.where(rng.random(x.shape) < 0.5, x, -x), y.astype(dtype))
        middles = (rng.integers(0, 1 << 10, x.shape) + 0.5) * np.round(divisors * 8) + rng.integers(-1, 2, x.shape)
        assert_divided(np.ldexp(middles.astype(dtype), info.minexp - info.nmant), np.round(divisors * 8).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_divisors_below_zero_are_inverted_too(dtype):
    """Zeros, whose sign comes from the divider, among the dividends and not."""
    x = np.random.default_rng(7).standard_normal((40, 64)).astype(dtype)
    with jax.enable_x64(dtype == "float64"):
        for some in (x, np.maximum(x, 0), np.minimum(x, -0.0), np.where(x > 2, np.inf, x)):
            for y in (np.linspace(-3, 3, 40)[:, None], np.linspace(-3, 3, 64)[None]):
                assert_divided(some, y.astype(dtype))


def test_subnormal_dividends_are_no_operands_of_products():
    """They are brought to the size of others by their bits."""
    text = text_of(jax.make_jaxpr(jnp.divide)(jnp.ones((64, 256)), jnp.ones((64, 1))), machine=X86_64_V4)
    (body,) = [part for part in text.split("\ndefine ") if "@catena.quotient.second.y" in part.split("(")[0]]
    usual, *_, last = body.split("rare.")
    assert "fdiv" not in usual and "or <16 x i32>" in body and last


@pytest.mark.parametrize("bits", range(3, 9))
def test_quotients_by_an_inverse_are_exact_for_all_short_numbers(bits):
    """The algorithm for numbers of so few bits that all pairs can be tried."""
    numbers = [Fraction(k) for k in range(1 << (bits - 1), 1 << bits)]
    rounded = lambda v: round_to(v, bits)  # noqa: E731
    for y in numbers:
        inverse = rounded(1 / y)
        for x in numbers[:: 1 if bits < 7 else 5]:
            near = rounded(x * inverse)
            assert rounded(near - rounded(near * y - x) * inverse) == rounded(x / y)


def round_to(v: Fraction, bits: int) -> Fraction:
    """To nearest, even."""
    if v == 0:
        return v
    step = Fraction(2) ** (math.floor(math.log2(abs(v))) - bits + 2)
    while abs(v) / step < 1 << (bits - 1):
        step /= 2
    return round(v / step) * step


def test_divisions_by_what_changes_in_lanes_are_left_to_dividers():
    rows, columns = jnp.ones((64, 1)), jnp.ones(256)
    for by, is_inverted in ((rows, True), (columns, False), (jnp.float32(2.5), True)):
        text = text_of(jax.make_jaxpr(jnp.divide)(jnp.ones((64, 256)), by), machine=X86_64_V4)
        assert ("quotient.second.y" in text) == is_inverted
    for f in (lambda x: x / 4, lambda x: 3 / x):
        assert "quotient" not in text_of(jax.make_jaxpr(f)(jnp.ones((64, 256))), machine=X86_64_V4)


def test_truths_are_chosen_as_numbers():
    """By one instruction: LLVM makes integers of them, and floats of these."""
    text = text_of(jax.make_jaxpr(lambda x: (x > 0).astype("float32"))(jnp.ones(256)), machine=X86_64_V4)
    assert "uitofp" not in text
