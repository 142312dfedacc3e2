"""Operations of constants, done while programs are written: the bits that the program would have computed."""

import itertools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import constants
from catena.compiler.native.compile import program_of

NUMBERS = [0.0, -0.0, 1.0, -1.5, 3.0, np.inf, -np.inf, np.nan, 1e-45, 3e38]
INTEGERS = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
UNARY = {"neg": lax.neg, "abs": lax.abs, "square": lax.square, "sqrt": lax.sqrt, "floor": lax.floor}
FUNCTIONS = {"log": lax.log, "log1p": lax.log1p, "exp": lax.exp, "expm1": lax.expm1, "exp2": lax.exp2}
FUNCTIONS |= {name: getattr(lax, name) for name in ("cos", "cosh", *constants.ZERO_AT_ZERO)}
BINARY = {"add": lax.add, "sub": lax.sub, "mul": lax.mul, "eq": lax.eq, "ne": lax.ne}
BINARY |= {"lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}
BITWISE = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}


def bits(x) -> bytes:
    x = np.asarray(x)
    floats = jnp.issubdtype(x.dtype, jnp.floating)  # of bfloat16, too: the sign of NaN tells nothing
    return np.where(np.isnan(x), np.float32(np.nan), x).tobytes() if floats else x.tobytes()


@pytest.mark.parametrize(
    ("dtype", "numbers", "table"),
    [(np.float32, NUMBERS, BINARY | {"div": lax.div}), (np.int32, INTEGERS, BINARY), (np.bool_, [0, 1], BITWISE)],
    ids=["floats", "integers", "truths"],
)
def test_pairs_of_constants_are_what_is_computed(dtype, numbers, table):
    pairs = np.asarray(list(itertools.product(numbers, numbers)), dtype)
    for function in table.values():
        computed = jax.jit(lambda x, y, f=function: f(x, y))(pairs[:, 0], pairs[:, 1])
        known = jax.jit(lambda f=function: [f(x, y) for x, y in pairs])()
        assert [bits(a) for a in known] == [bits(a) for a in np.asarray(computed)], function


def test_functions_of_constants_are_what_is_computed():
    xs = np.asarray(NUMBERS, np.float32)
    for function in (UNARY | FUNCTIONS | {"is_finite": lax.is_finite}).values():
        known = jax.jit(lambda f=function: [f(x) for x in xs])()
        assert [bits(a) for a in known] == [bits(a) for a in np.asarray(jax.jit(function)(xs))], function
    truths = np.asarray([False, True])
    assert [bool(a) for a in jax.jit(lambda: [lax.bitwise_not(x) for x in truths])()] == [True, False]


@pytest.mark.share(10)
@pytest.mark.parametrize("op", sorted(constants.NEUTRAL))
@pytest.mark.parametrize("number", [0, -0.0, 1, -1, 2, np.inf, -np.inf, True, False])
def test_a_constant_operand_changes_nothing_that_another_would_not(op, number):
    table = BINARY | BITWISE | {"div": lax.div, "pow": lax.pow, "max": lax.max, "min": lax.min}
    kinds = [(np.bool_, [0, 1])] if isinstance(number, bool) else [(np.float32, NUMBERS), (np.int32, INTEGERS)]
    for dtype, numbers in kinds[: 2 - np.isinf(number)]:
        if (op in BITWISE) != (dtype == np.bool_) or (op in ("div", "pow") and dtype == np.int32):
            continue
        xs, y = np.asarray(numbers, dtype), np.asarray(number, dtype)
        for places in (slice(None), slice(None, None, -1)):
            if places.step and op == "pow":
                continue  # powers of numbers are not of them
            known = jax.jit(lambda x: table[op](*(x, jnp.full_like(x, y))[places]))(xs)
            computed = jax.jit(lambda x, y: table[op](*(x, y)[places]))(xs, np.full_like(xs, y))
            assert bits(known) == bits(computed), (op, number, dtype, places)


def nests(f, *args) -> list[str]:
    """The loops of a program, those over single numbers not among them."""
    text = jax.jit(f).lower(*args).compile().as_text("nests")
    return [part for part in text.split("\n\n") if part.startswith("nest for")]


@pytest.mark.parametrize("spread", [lambda x: x * 1.0 - 0.0, lambda x: jnp.where(True, x, 0.0) / 1.0])
def test_what_changes_nothing_vanishes(spread):
    (nest,) = nests(lambda x: lax.neg(spread(x)), np.ones(1000, np.float32))
    assert nest.count(" = ") == 3, nest  # a load, its negative, and what is stored


@pytest.mark.parametrize("f", [lambda x: lax.max(-np.inf, lax.neg(x)), lambda x: lax.min(lax.neg(x), np.inf)])
def test_nothing_is_compared_with_what_is_least_or_greatest(f):
    (nest,) = nests(f, np.ones(1000, np.float32))
    assert nest.count(" = ") == 3, nest


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_the_least_and_the_greatest_integer_beside_others(dtype):
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.asarray([least, 0, 1, 5, greatest] * 20, dtype)
    for function, number in itertools.product((lax.max, lax.min), (least, greatest)):
        beside = jax.jit(lambda x, f=function, n=number: f(x, jnp.full_like(x, n)))
        reference = np.maximum if function is lax.max else np.minimum
        np.testing.assert_array_equal(beside(x), reference(x, np.asarray(number, dtype)))
        assert f" = {function.__name__}" not in beside.lower(x).compile().as_text("nests")


@pytest.mark.share(2)
@pytest.mark.parametrize("exponent", [2.0, 0.5, -1.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_have_their_bits_whatever_tells_the_exponent(dtype, exponent):
    with jax.enable_x64(True):
        x = np.abs(np.random.default_rng(1).standard_normal(40_000)).astype(dtype)
        of_arrays = jax.jit(lambda x, y: x**y)(x, np.full_like(x, exponent))
        assert bits(jax.jit(lambda x: x**exponent)(x)) == bits(of_arrays) == bits(jnp.asarray(x) ** exponent)


@pytest.mark.parametrize("exponent", [2.0, 3.0])
def test_powers_of_complex_numbers_that_are_products(exponent):
    x = (np.arange(1, 65) * np.exp(1j * np.arange(64))).astype(np.complex64)
    power = jax.jit(lambda x: x**exponent)
    np.testing.assert_allclose(power(x), x.astype(np.complex128) ** exponent, rtol=1e-6)
    of_arrays = jax.jit(lambda x, y: x**y)(x, np.full_like(x, exponent))
    assert bits(power(x)) == bits(of_arrays) == bits(jnp.asarray(x) ** exponent)
    assert "log" not in power.lower(x).compile().as_text("nests")


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
def test_numbers_without_a_sign_are_not_below_zero(name):
    xs = np.asarray([0, 1, 2**31, 2**32 - 1], np.uint32)
    for places in (slice(None), slice(None, None, -1)):
        known = jax.jit(lambda x: BINARY[name](*(x, jnp.zeros_like(x))[places]))(xs)
        np.testing.assert_array_equal(known, BINARY[name](*(xs, np.zeros_like(xs))[places]))


@pytest.mark.parametrize("truth", [True, False])
def test_truths_that_are_compared_with_one(truth):
    xs = np.asarray([True, False])
    for function in (lax.eq, lax.ne):
        for places in (slice(None), slice(None, None, -1)):
            known = jax.jit(lambda x: function(*(x, jnp.full_like(x, truth))[places]))(xs)
            np.testing.assert_array_equal(known, function(xs, np.asarray([truth, truth])))


def test_remainders_of_numbers_without_a_sign_are_not_corrected():
    xs = np.asarray([0, 1, 998244353, 2**32 - 1] * 64, np.uint32)
    (nest,) = nests(lambda x: x % 998244353 + x % 7, xs)
    assert "select" not in nest and "lt" not in nest, nest
    np.testing.assert_array_equal(jax.jit(lambda x: x % 998244353 + x % 7)(xs), xs % 998244353 + xs % 7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_quotients_by_powers_of_two_are_products_with_the_same_bits(dtype):
    """Also where they are subnormal, or beyond; a number whose inverse is not one of the type's is divided by."""
    with jax.enable_x64(True):
        limits = np.finfo(dtype)
        edges = [limits.smallest_subnormal, limits.tiny, limits.max, 1.0, 3.0, 0.0, np.inf, np.nan]
        random = np.random.default_rng(0).integers(0, 1 << limits.bits - 2, 500).astype(f"u{limits.bits // 8}")
        xs = np.concatenate([np.asarray(edges), random.view(dtype)]).astype(dtype)
        xs = np.concatenate([xs, -xs])
        powers = [2.0**k for k in (-3, 1, 9, limits.maxexp - 1, limits.minexp, limits.minexp - 2)]
        for y in np.asarray([*powers, *(-p for p in powers), 3.0, 0.0, np.inf, np.nan], dtype):
            known, computed = jax.jit(lambda x, y=y: x / y)(xs), jax.jit(lambda x, y: x / y)(xs, y)
            np.testing.assert_array_equal(
                *(np.asarray(a).view(f"u{limits.bits // 8}")[~np.isnan(a)] for a in (known, computed))
            )
            np.testing.assert_array_equal(np.isnan(known), np.isnan(computed))


def test_a_product_with_minus_one_is_a_sign():
    """Which is not asked whether it is subnormal, as products of what may be small are."""
    x = np.float32([-20, -9.5, -3, 0, 1, 9.3, 20])
    slopes = jax.jit(jax.grad(lambda x: jax.scipy.special.erfc(x).sum()))
    (nest,) = nests(slopes, np.ones(1000, np.float32))
    assert "neg" in nest and "mul" not in nest
    np.testing.assert_array_equal(slopes(x), -jax.grad(lambda x: jax.scipy.special.erf(x).sum())(x))


def test_what_is_divided_by_a_power_of_two_is_cheap():
    """It is computed where it is read, not stored."""
    x = np.ones((300, 40), np.float32)
    f = lambda n: nests(lambda x: (y := x / n)[1:] - y[:-1], x)
    assert len(f(3.0)) == 2 and len(f(64.0)) == 1
    assert " div " in f(3.0)[0] and " div " not in f(64.0)[0]


def test_a_choice_among_choices_of_numbers_costs_no_function():
    """As in the density of a uniform distribution."""
    f = lambda x: jnp.exp(jnp.where(jnp.isnan(x), jnp.nan, jnp.where(x > 1, -jnp.inf, jnp.where(x < -1, 2.0, 0.5))))
    x = np.float32([np.nan, 2, -2, 0])
    assert "exp" not in nests(f, np.ones(1000, np.float32))[-1]
    np.testing.assert_array_equal(jax.jit(f)(x), f(x))
    np.testing.assert_allclose(jax.jit(f)(x), np.exp(np.float32([np.nan, -np.inf, 2, 0.5])), rtol=1e-6)


def test_a_choice_of_two_numbers_costs_two_functions():
    def f(x, y):
        return x * jnp.log(jnp.where(x == 0, 1.0, y))

    (nest,) = nests(f, np.ones(1000, np.float32), np.float32(3))
    assert "log" not in nest
    xs = np.asarray([0.0, 2.0], np.float32)
    np.testing.assert_allclose(jax.jit(f)(xs, np.float32(3)), [0.0, 2 * np.log(3)], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_what_hangs_on_one_truth_is_one_of_two_numbers(dtype):
    """As what is computed of labels, of whose rows of 0 and 1 JAX's compiler knows that, too."""
    with jax.enable_x64(dtype == "float64"):
        i = jnp.arange(1000) % 7
        f = lambda i: jnp.log((i == 3).astype(dtype) ** 2 * 4 - 1 + 3)
        assert " log " not in nests(f, i)[-1] and " mul " not in nests(f, i)[-1]
        np.testing.assert_allclose(f(i).astype("float32"), jax.jit(f)(i).astype("float32"), rtol=1e-2)
        np.testing.assert_allclose(jax.jit(f)(i).astype("float32"), np.where(i == 3, np.log(6), np.log(2)), rtol=1e-2)


def test_a_truth_that_is_asked_again_is_itself():
    x = np.arange(1000, dtype=np.float32)
    (nest,) = nests(lambda x: jnp.where((x > 3).astype("int32") == 1, x, 2 * x), x)
    assert " eq " not in nest and "convert" not in nest


def test_of_two_truths_nothing_is_known():
    x = np.float32([1, 2, 3, 4])
    f = lambda x: (x > 1).astype("float32") * 2 + (x > 2).astype("float32") * 0.1
    np.testing.assert_array_equal(jax.jit(f)(x), np.float32([0, 2, 2.1, 2.1]))


def test_what_is_rounded_later_is_not_known():
    """Halves in a row of operations are rounded in the end."""
    x = np.float16([1, 2])
    f = lambda x: (x > 1).astype("float16") * np.float16(0.1) + np.float16(1e-3)
    np.testing.assert_array_equal(jax.jit(f)(x), jax.jit(lambda t: t * np.float16(0.1) + np.float16(1e-3))(x - 1))


def test_scalars_do_not_stand_between_loops():
    def f(x, s):
        y = jnp.sqrt(x)
        scale = jnp.exp(jnp.log(s) * 3)
        return y * scale, jnp.tanh(y)

    assert len(nests(f, np.ones(1000, np.float32), np.float32(2))) == 1


def test_rows_that_are_spread_are_computed_once():
    """What is done to rows that are the same in each place of a batch, is done to the row."""
    f = jax.jit(lambda x, y: x + jnp.exp(jnp.broadcast_to(y, x.shape) * 2 + 1))
    x, y = np.ones((400, 50), np.float32), np.linspace(-1, 1, 50, dtype=np.float32)
    np.testing.assert_allclose(f(x, y), 1 + np.exp(y * 2 + 1) * np.ones((400, 1)), rtol=1e-6)
    assert "exp" not in f.lower(x, y).compile().as_text("nests").split("nest for")[-1]


def test_a_mean_that_keeps_its_axes_is_the_same_row():
    """What is done to a row before it is given axes of one element is what is done behind that: nothing twice."""
    f = jax.jit(lambda x: (x - jnp.mean(x, (0, 1))) * jnp.std(x, (0, 1)) + (x - jnp.mean(x, (0, 1), keepdims=True)))
    x = np.random.default_rng(0).normal(size=(30, 4, 24)).astype(np.float32)
    centred = x - x.mean((0, 1))
    np.testing.assert_allclose(f(x), centred * x.std((0, 1)) + centred, rtol=1e-5, atol=1e-5)
    assert f.lower(x).as_text().count("op=sub") == 1


def test_a_row_beside_an_array_of_one_element():
    x, y = np.arange(1, 4, dtype=np.float32), np.array([2], np.float32)
    f = lambda x, y: lax.broadcast_in_dim(x, (4, 3), (1,)) * lax.broadcast_in_dim(y, (4, 3), (1,))
    np.testing.assert_array_equal(jax.jit(f)(x, y), np.tile(x * y, (4, 1)))


def test_a_column_beside_a_row_of_no_elements():
    x, y = np.arange(3, dtype=np.float32), np.zeros(0, np.float32)
    f = lambda x, y: lax.broadcast_in_dim(x, (1, 3, 0), (1,)) * lax.broadcast_in_dim(y, (1, 3, 0), (2,))
    assert jax.jit(f)(x, y).shape == (1, 3, 0)
    assert (
        jnp.linalg.multi_dot([x[:, None], y[None], np.zeros((0, 2), np.float32)]).tolist() == np.zeros((3, 2)).tolist()
    )


PARTS = {  # of what is spread, and pads that add nothing to it
    "a part": (lambda x: lax.slice(x, (1, 0), (3, 5)), "broadcast"),
    "what another cuts off": (lambda x: lax.pad(x, x[0, 0], [(-1, 0, 0), (0, -2, 0)]), "broadcast"),
    "a pad of nothing": (lambda x: lax.pad(x[4:], x[0, 0], [(2, 1, 1), (0, 0, 0)]), "broadcast"),
    "a pad with the same": (lambda x: lax.pad(x, x[0, 0], [(2, 1, 1), (0, 0, 3)]), "broadcast"),
    "a pad with another": (lambda x: lax.pad(x, x[0, 0] + 1, [(2, 1, 1), (0, 0, 3)]), "pad"),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_and_pads_of_one_number(name):
    f, form = PARTS[name]
    made = jax.jit(lambda: f(jnp.full((4, 5), 2.0)) * 1)
    assert f" = {form} " in made.lower().as_text()
    assert (" = pad " in made.lower().as_text()) is (form == "pad")
    np.testing.assert_array_equal(np.asarray(made()), np.asarray(f(jnp.full((4, 5), 2.0))))


@pytest.mark.parametrize("config", [(-1, 0, 0), (0, -2, 0), (-1, 3, 0), (2, -1, 1), (-4, 4, 0), (-2, -2, 0), (3, 0, 5)])
def test_pads_that_cut_off(config):
    for n in (1, 3, 4):
        x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) + 1
        try:
            expected = lax.pad(x, np.float32(7), [config, (0, 0, 0)])
        except ValueError:
            continue
        got = jax.jit(lambda x: lax.pad(x, np.float32(7), [config, (0, 0, 0)]))(x)  # noqa: B023
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


def test_gradients_of_extremes_divide_nothing():
    """Of the larger of two numbers either has all of the derivative, or half where they are the same."""
    x, y = np.float32([1, 2, 3, np.nan, np.inf]), np.float32([1, 3, 2, 1, np.inf])
    f = jax.jit(lambda x, y: jax.vjp(jnp.maximum, x, y)[1](x * 0 + 2))
    assert "op=div" not in f.lower(x, y).as_text()
    np.testing.assert_array_equal(f(x[:3], y[:3]), [[1, 0, 2], [1, 2, 0]])
    np.testing.assert_array_equal(
        jax.vjp(jnp.minimum, x[[0, 1, 4]], y[[0, 1, 4]])[1](jnp.ones(3)), [[0.5, 1, 0.5], [0.5, 0, 0.5]]
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_a_number_and_the_same_again(dtype):
    x = np.asarray([0, 1, 1, 0], dtype)
    table = {name: f for name, f in (BINARY | BITWISE).items() if dtype is not np.bool_ or name in ("xor", "eq", "ne")}
    for name, function in table.items():
        known, computed = jax.jit(lambda x, f=function: f(x, x))(x), jax.jit(function)(x, x.copy())
        assert known.dtype == computed.dtype and bits(known) == bits(computed), name
    if dtype is not np.bool_:
        assert jax.jit(lambda x: x * 0)(x).tolist() == [0] * 4
        assert not any("load" in nest for nest in nests(lambda x: (x - x) + x * 0 + 1, x))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
def test_a_number_divided_by_itself(dtype):
    """By zero, that is -1, and the rest is the number."""
    x = np.asarray([0, 1, 5, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    quotient, rest = jax.jit(lambda x: (lax.div(x, x), lax.rem(x, x)))(x)
    apart, left = jax.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))(x, x.copy())
    assert bits(quotient) == bits(apart) and bits(rest) == bits(left) == bits(np.zeros_like(x))
    for f in (lax.div, lax.rem):
        assert not any("div" in nest or "rem" in nest for nest in nests(lambda x, f=f: f(x, x), x))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_quotients_by_constants_are_rounded_down_by_their_remainders(dtype):
    x = np.asarray([0, 1, 6, 7, 8, 13, 100, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    x = np.concatenate([x, np.negative(x)]) if dtype != np.uint8 else x
    for by in (1, 7, 100, *((-1, -7) if dtype != np.uint8 else ())):
        got, apart = jax.jit(lambda x, k=by: x // k)(x), jax.jit(lambda x, y: x // y)(x, np.full_like(x, by))
        assert bits(got) == bits(apart)
        assert not any("sign" in nest for nest in nests(lambda x, k=by: x // k, x))
    assert jax.jit(lambda x: x // 0)(x).tolist() == jax.jit(lambda x, y: x // y)(x, x * 0).tolist()


def test_quotients_of_positions_are_as_rounded():
    """Numbers that count from zero have no remainder below it."""
    f = lambda: (jnp.arange(1000) // 10, jnp.arange(1000) % 10)
    assert not any("select" in nest for nest in nests(f))
    np.testing.assert_array_equal(jax.jit(f)()[0], np.arange(1000) // 10)
    np.testing.assert_array_equal(jax.jit(f)()[1], np.arange(1000) % 10)


def test_a_float_and_the_same_again_may_be_nan():
    x = np.asarray([np.nan, np.inf, 1.0], np.float32)
    difference, equal, product = jax.jit(lambda x: (x - x, x == x, x * 0))(x)
    np.testing.assert_array_equal(difference, [np.nan, np.nan, 0])
    np.testing.assert_array_equal(equal, [False, True, True])
    np.testing.assert_array_equal(product, [np.nan, np.nan, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16, np.float16])
def test_no_float_is_below_itself(dtype):
    x = np.asarray([np.nan, np.inf, 1.0, -0.0]).astype(dtype)
    with jax.enable_x64():
        for f in (lax.lt, lax.gt):
            assert not jax.jit(lambda x, f=f: f(x, x))(x).any()
            assert not any("load" in nest for nest in nests(lambda x, f=f: f(x, x), x))


@pytest.mark.share(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize(
    "shape, axis", [((2, 4000), 0), ((300, 7), 1), ((3, 5, 40), (0, 2)), ((5000,), 0), ((0, 5), 0)]
)
def test_folds_of_one_number_are_those_of_an_array_in_memory(shape, axis, dtype):
    with jax.enable_x64(True):
        numbers = [n for n in NUMBERS if np.isfinite(n) and abs(n) < 9] if np.dtype(dtype).kind in "iu" else NUMBERS
        for number in [*numbers, 200.0, 2.0**20 + 1]:
            x = np.full(shape, np.asarray(number).astype(dtype))
            for fold in (jnp.sum, *([jnp.max, jnp.min] if x.size else [])):
                known = jax.jit(lambda f=fold, x=x: f(jnp.full(shape, x.flat[0] if x.size else 1, dtype), axis))()
                assert bits(known) == bits(jax.jit(lambda x, f=fold: f(x, axis))(x)), (number, fold)


def test_a_sum_of_ones_is_no_pass_over_memory():
    made = jax.make_jaxpr(lambda x: x + jnp.sum(jnp.ones((2, 500_000)), 0))(jnp.ones(500_000))
    assert len(list(program_of(made).steps())) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [1.0, -1.0, 2.0, -8.0, 2.0**60])
def test_remainders_of_powers_of_two_are_exact(dtype, power):
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 4.0, -4.0, 2.0**70, -(2.0**61), 1e-42, -1e-42, 0.5, -7.5]
    x = np.concatenate([special, rng.normal(size=500) * 2.0 ** rng.integers(-40, 90, 500), rng.integers(-99, 99, 99)])
    x = x.astype(dtype)
    with jax.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        by = x.dtype.type(power)
        assert bits(jax.jit(lambda x: lax.rem(x, by))(x)) == bits(np.fmod(x, by))
        for f in (jnp.remainder, jnp.floor_divide):
            assert bits(jax.jit(lambda x, f=f: f(x, by))(x)) == bits(f(x, np.full_like(x, by)))


ROUND_TRIPS = [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float64"), ("int8", "float16")]
ROUND_TRIPS += [("uint8", "int32"), ("int32", "float64"), ("float8_e5m2", "float16")]


@pytest.mark.parametrize(("narrow", "wide"), ROUND_TRIPS)
def test_what_is_made_wider_and_narrow_again_is_what_it_was(narrow, wide):
    with jax.enable_x64(True):
        few = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan] if "float" in narrow else [0, 1, 7, 100]
        xs = jnp.asarray(few, narrow)
        there, back = (lambda x: x.astype(wide)), (lambda x: x.astype(narrow))
        for step in (there, lambda x: there(x) + 0, lambda x: 0.0 + there(x) if "float" in wide else there(x)):
            turned = lambda x, step=step: lax.fori_loop(0, 3, lambda _, x: back(step(x)), x)
            assert bits(jax.jit(turned)(xs)) == bits(back(step(xs))), (narrow, wide)
            assert "scan" not in jax.jit(turned).lower(xs).as_text()


@pytest.mark.parametrize(("dtype", "other"), [("float16", "bfloat16"), ("bfloat16", "float16"), ("int32", "float32")])
def test_what_is_rounded_on_its_way_stays_so(dtype, other):
    xs = jnp.asarray({"float16": [1 + 2**-10, 3], "bfloat16": [70000.0, 3], "int32": [2**24 + 1, 3]}[dtype], dtype)
    turn = lambda x: (x.astype(other) + 0).astype(dtype)
    assert bits(jax.jit(turn)(xs)) == bits(turn(xs)) != bits(xs)
