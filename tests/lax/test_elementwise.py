"""Elementwise operations: XLA's semantics at the edges, the conventions of derivatives, and what errors
say.
"""

import ml_dtypes
import mpmath
import numpy as np
import pytest

import catena
from catena import grad, lax, vmap
from catena.core import dtypes
from catena.lax.policy import REPEATS, SHARED
from checkers import raises

F32 = np.float32
I32 = np.int32
INT_MIN = -(2**31)


def f32(*xs):
    return np.array(xs, F32)


def i32(*xs):
    return np.array(xs, I32)


def both(fun, *args):
    """The value of ``fun``, the same eagerly and compiled."""
    eager = np.asarray(fun(*args))
    np.testing.assert_array_equal(np.asarray(catena.jit(fun)(*args)), eager)
    return eager.tolist()


# ---- integers


def test_integer_division_truncates_and_never_traps():
    assert both(lax.div, i32(7, -7, 7, -7, 1, INT_MIN), i32(2, 2, -2, -2, 0, -1)) == [
        3,
        -3,
        -3,
        3,
        -1,
        INT_MIN,
    ]
    assert both(lax.rem, i32(7, -7, 7, -7, 5, INT_MIN), i32(2, 2, -2, -2, 0, -1)) == [1, -1, 1, -1, 5, 0]
    assert both(lax.div, np.uint8([1, 7]), np.uint8([0, 2])) == [255, 3]


def test_shifts_by_the_width_or_more():
    assert both(lax.shift_left, i32(1, 1, 1, 1), i32(31, 32, 33, -1)) == [INT_MIN, 0, 0, 0]
    assert both(lax.shift_right_logical, i32(-8, -8), i32(1, 32)) == [2147483644, 0]
    assert both(lax.shift_right_arithmetic, i32(-8, -8, 8), i32(1, 40, 40)) == [-4, -1, 0]


def test_bit_counts():
    assert both(lax.clz, i32(1, 0, -1)) == [31, 32, 0]
    assert both(lax.population_count, i32(-1, 0, 7)) == [32, 0, 3]
    assert lax.clz(np.array([1, 0], ml_dtypes.int4)).tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8"])
def test_mulhi_is_the_high_half_of_the_product(dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x, y = rng.integers(info.min, info.max, (2, 50), dtype, endpoint=True)
    with catena.enable_x64(True):
        actual = both(lax.mulhi, x, y)
    assert actual == [(int(a) * int(b)) >> info.bits for a, b in zip(x, y, strict=True)]


def test_integer_overflow_wraps():
    assert both(lax.add, i32(2**31 - 1), i32(1)) == [INT_MIN]
    assert both(lax.abs, np.int8([-128])) == [-128]
    assert both(lax.neg, np.uint8([1])) == [255]


# ---- floats


def test_max_and_min_propagate_nan():
    assert np.isnan(both(lax.max, f32(np.nan, 1), f32(1, np.nan))).all()
    assert np.isnan(both(lax.min, f32(np.nan, 1), f32(1, np.nan))).all()


def test_sign_keeps_zeros_and_nan():
    signs = np.asarray(lax.sign(f32(-0.0, 0.0, np.nan, -3)))
    assert np.signbit(signs[0]) and not np.signbit(signs[1]) and np.isnan(signs[2]) and signs[3] == -1


def test_rounding():
    x = f32(0.5, 1.5, 2.5, -0.5, 0.49999997, 8388609, 1e30)
    assert both(lax.round, x) == [1, 2, 3, -1, 0, 8388609, float(F32(1e30))]
    even = lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)  # noqa: E731
    assert both(even, x[:4]) == [0, 2, 2, 0]


def test_clamp():
    assert both(lax.clamp, F32(2), f32(5, 0), F32(1)) == [1, 1]  # the upper bound wins
    assert np.isnan(both(lax.clamp, F32(0), f32(np.nan), F32(1))).all()


def test_subnormals_are_kept():
    tiny = F32(1e-40)
    assert both(lax.add, f32(tiny), f32(tiny)) == [2 * float(tiny)]
    assert both(lax.logistic, f32(-100.0))[0] == pytest.approx(3.783505e-44)


def test_total_order_tells_zeros_apart():
    assert lax.eq_to_p.bind(F32(0), F32(-0.0)).item() is False
    assert lax.lt_to_p.bind(F32(-0.0), F32(0)).item() is True
    assert lax.lt_to_p.bind(F32(np.inf), F32(np.nan)).item() is True
    assert lax.eq_to_p.bind(F32(np.nan), F32(np.nan)).item() is True


def test_select_n_clamps_its_selector():
    cases = [f32(1, 1, 1), f32(2, 2, 2), f32(3, 3, 3)]
    assert both(lax.select_n, i32(0, -1, 5), *cases) == [1, 1, 3]


def test_reduce_precision():
    x = f32(1.2345678, 1e-6, 65520, 65519, 1e-8, np.inf, -1e-10)
    assert both(lambda x: lax.reduce_precision(x, 5, 10), x) == [1.234375, 0, np.inf, 65504, 0, np.inf, 0]
    assert both(lambda x: lax.reduce_precision(x, 8, 0), f32(1.7, 3.3, 0.3)) == [2, 4, 0.25]


def test_nextafter():
    steps = both(lax.nextafter, f32(0, 1, np.inf, 0), f32(1, 1, 0, -1))
    assert steps == [1.401298464324817e-45, 1, 3.4028234663852886e38, -1.401298464324817e-45]


# ---- conversions


def test_float_to_integer_saturates():
    x = f32(254, 300, -1.5, 1e10, -1e10, np.nan, 1.9)
    to = lambda dtype: lambda x: lax.convert_element_type(x, dtype)  # noqa: E731
    assert both(to("uint8"), x) == [254, 255, 0, 255, 0, 0, 1]
    assert both(to("int8"), x) == [127, 127, -1, 127, -128, 0, 1]
    assert both(to("int32"), x) == [254, 300, -1, 2**31 - 1, INT_MIN, 0, 1]
    assert both(to("bool"), f32(0, np.nan, 2)) == [False, True, True]


INTEGERS = "int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_every_float_to_every_integer(source):
    """At the ends of the integers, a step to both sides, and far beyond: the nearest integer, NaN 0."""
    ends = [s * 2.0**bits for bits in (3, 4, 7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1)]
    near = [y for x in ends for y in (x - 1, x - 0.5, x, x + 1)] + [np.inf, -np.inf, np.nan, -0.5]
    steps = np.nextafter(np.float32(ends), np.float32(0)).tolist() + np.nextafter(ends, 0).tolist()
    with catena.enable_x64(True), np.errstate(over="ignore"):
        x = np.array(near + steps).astype(source)
        finite = [0.0 if v != v else min(max(v, -1e30), 1e30) for v in x.astype(np.float64).tolist()]
        got = catena.jit(lambda x: [lax.convert_element_type(x, target) for target in INTEGERS])(x)
        for target, y in zip(INTEGERS, got, strict=True):
            least, most = int(catena.numpy.iinfo(target).min), int(catena.numpy.iinfo(target).max)
            assert np.asarray(y).astype(object).tolist() == [min(max(int(v), least), most) for v in finite], target


def test_complex_to_real_warns():
    with pytest.warns(np.exceptions.ComplexWarning):
        assert lax.convert_element_type(np.complex64(1 + 2j), "float32").item() == 1


def test_complex_to_bool_asks_the_real_part():
    x = np.array([1j, 0, 1, 1 + 1j], np.complex64)
    assert both(lambda x: lax.convert_element_type(x, bool), x) == [False, False, True, True]


def special_numbers(dtype):
    """Limits of a dtype and ordinary numbers; complex ones have all pairs of such parts."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(0)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        limits = np.array([low, low + 1, 0, 1, high - 1, high], dtype)
        return np.concatenate([np.repeat(limits, 6), rng.integers(low, high, 200, dtype, endpoint=True)])
    f = np.finfo(dtype)
    limits = [0, 1, f.max, f.max / 2, f.tiny, f.tiny / 3, f.smallest_subnormal, f.eps, 2.5, 0.5, np.inf]
    parts = np.array([*limits, *np.negative(limits), np.nan, *rng.normal(size=20)], f.dtype)
    if dtype.kind == "f":
        return parts
    out = np.empty(parts.size**2, dtype)
    out.real, out.imag = np.repeat(parts, parts.size), np.tile(parts, parts.size)
    return out


EXACT = {
    "f": "neg abs add sub mul div square floor ceil is_finite eq ne lt le gt ge",
    "i": "neg abs add sub mul square eq ne lt le gt ge bitwise_not bitwise_and bitwise_or bitwise_xor",
    "u": "neg add mul le bitwise_not bitwise_xor",
    "c": "neg abs conj add sub mul square eq ne",
}
CASES = [
    (name, dtype)
    for dtype in ("float32", "float64", "int8", "int32", "int64", "uint16", "uint32", "complex64", "complex128")
    for name in EXACT[np.dtype(dtype).kind].split()
]


@pytest.mark.share(2)
@pytest.mark.parametrize("name, dtype", CASES)
def test_arithmetic_is_the_same_small_large_and_compiled(name, dtype):
    """NumPy evaluates small arrays, a kernel very large ones: infinities, overflow, subnormals, signs of zeros."""
    with catena.enable_x64(True):
        fun, x = getattr(lax, name), special_numbers(dtype)
        unary = name in "neg abs conj square floor ceil is_finite bitwise_not".split()
        pairs = [x] if unary else [x, x[::-1]] if x.dtype.kind == "c" else [np.repeat(x, x.size), np.tile(x, x.size)]
        count = SHARED // pairs[0].nbytes + 1
        small, numbers = fun(*pairs), [np.tile(v, count) for v in pairs]
        for _ in range(REPEATS):
            fun(*numbers)
        large = fun(*numbers)
        for other in (large[: small.size], large[-small.size :], catena.jit(fun)(*pairs)):
            want, got = (np.asarray(v).view(v.real.dtype) for v in (small, other))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_conversion_drops_weakness():
    assert lax.convert_element_type(1.0, float).weak_type is False
    x = lax.full((2,), F32(1))
    assert lax.convert_element_type(x, "float32") is x


def test_bitcasts_between_widths():
    assert both(lambda x: lax.bitcast_convert_type(x, "uint8"), f32(1)) == [[0, 0, 128, 63]]
    assert both(lambda x: lax.bitcast_convert_type(x, "float32"), np.uint8([0, 0, 128, 63])) == 1
    assert lax.bitcast_convert_type(np.int8([17, -1]), "int4").tolist() == [[1, 1], [-1, -1]]
    ones = np.ones((3, 2), ml_dtypes.int4)
    assert lax.bitcast_convert_type(ones, "int8").tolist() == [17, 17, 17]


def test_mul_to_another_dtype():
    assert lax.mul(np.int8(100), np.int8(2), out_dtype="int32").item() == 200
    assert lax.mul(F32(3), F32(2), out_dtype="float16").dtype == np.float16


# ---- types of results


def test_result_is_weak_where_all_operands_are():
    assert lax.add(1.0, 2.0).weak_type and not lax.add(1.0, F32(2)).weak_type
    assert lax.lt(1, 2).weak_type and lax.abs(1j).weak_type
    assert catena.make_jaxpr(lambda x: lax.mul(x, 2.0))(1.0).out_avals[0].weak_type


@pytest.mark.parametrize("power, weak", [(2.0, False), (0.5, False), (2, True), (3, True)])
def test_slopes_of_powers_are_weak_where_the_power_is_an_integer(power, weak):
    """As in JAX, measured."""
    assert catena.grad(lambda x: x**power)(1.0).weak_type is weak
    primal, tangent = catena.jvp(lambda x: x**power, (1.0,), (1.0,))
    assert primal.weak_type and tangent.weak_type is weak and tangent == power


# ---- derivatives where they are a matter of convention (measured on JAX)


@pytest.mark.parametrize(
    "fun, at, expected",
    [
        (lax.abs, 0.0, 1.0),
        (lax.sqrt, 0.0, np.inf),
        (lambda x: lax.max(x, 0.0), 0.0, 0.5),
        (lambda x: lax.min(0.0, x), 0.0, 0.5),
        (lambda x: lax.max(x, 1.0), np.nan, 0.0),
        (lambda x: lax.clamp(0.0, x, 1.0), 0.0, 0.0),
        (lambda x: lax.pow(x, 0.0), 0.0, np.nan),
        (lambda x: lax.pow(0.0, x), 0.0, 0.0),
        (lambda x: lax.pow(x, 0), 0.0, 0.0),
        (lambda x: lax.integer_pow(x, 0), 0.0, 0.0),
        (lambda x: lax.atan2(x, 0.0), 0.0, np.nan),
        (lax.sign, 1.0, 0.0),
        (lax.floor, 1.5, 0.0),
        (lax.bessel_i1e, 0.0, 0.5),
        (lax.stop_gradient, 2.0, 0.0),
        (lambda x: lax.rem(x, 2.0), 5.0, 1.0),
        (lambda y: lax.rem(5.0, y), 2.0, -2.0),
    ],
)
def test_derivative_convention(fun, at, expected):
    np.testing.assert_array_equal(np.asarray(grad(fun)(at)), F32(expected))


def test_complex_derivatives_are_not_conjugated():
    assert grad(lax.imag)(1 + 1j).item() == -1j
    assert grad(lambda z: lax.square(lax.abs(z)))(1 + 2j).item() == pytest.approx(2 - 4j, rel=1e-6)
    assert catena.vjp(lax.conj, 1 + 2j)[1](np.complex64(2 + 3j))[0].item() == 2 - 3j
    assert [x.item() for x in catena.vjp(lax.complex, 1.0, 2.0)[1](np.complex64(2 + 3j))] == [2, -3]
    assert grad(lax.abs)(0j).item() == 0


def test_broadcast_operands_have_cotangents_of_their_own_shape():
    x, y = np.ones((3, 1), F32), np.ones((1, 4), F32)
    total = lambda x, y: lax.reduce_sum(lax.mul(x, y), (0, 1))  # noqa: E731
    gx, gy = grad(total, argnums=(0, 1))(x, y)
    assert gx.tolist() == [[4]] * 3 and gy.tolist() == [[3] * 4]
    assert grad(lambda s: lax.reduce_sum(lax.mul(s, y), (0, 1)))(2.0).item() == 4


def test_batched_scalars_meet_arrays():
    out = vmap(lax.mul, in_axes=(0, None))(f32(1, 2), np.ones((2, 3), F32))
    assert out.tolist() == [[[1] * 3] * 2, [[2] * 3] * 2]


# ---- special functions against mpmath


@pytest.mark.parametrize(
    "fun, reference, points",
    [
        (lax.igamma, lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), [(0.5, 0.3), (30, 25), (3, 9)]),
        (lax.igammac, lambda a, x: mpmath.gammainc(a, x, regularized=True), [(0.5, 0.3), (30, 25), (3, 9)]),
        (lax.zeta, mpmath.zeta, [(2, 1), (1.5, 30), (60, 12.5), (20, 0.1), (1.01, 3)]),
        (lax.polygamma, mpmath.polygamma, [(1, 0.5), (3, 7), (8, 20)]),
        (lambda n, x: lax.betainc(n, lax.full_like(n, 2.5), x),
         lambda a, x: mpmath.betainc(a, 2.5, 0, x, regularized=True),
         [(1.5, 0.2), (20, 0.9), (0.3, 0.99)]),
    ],
)  # fmt: skip
def test_special_functions(fun, reference, points):
    with catena.enable_x64(True), mpmath.workdps(30):
        for point in points:
            args = [np.float64(p) for p in point]
            if reference is mpmath.polygamma:
                expected = float(reference(int(point[0]), mpmath.mpf(point[1])))
            else:
                expected = float(reference(*map(mpmath.mpf, point)))
            for call in (fun, catena.jit(fun)):
                assert float(call(*args)) == pytest.approx(expected, rel=1e-12), point


@pytest.mark.parametrize("a, x", [(0.5, 0.3), (3, 2), (3, 8), (30, 25), (30, 40), (1e-3, 1e-5), (300, 310)])
def test_derivatives_of_gamma_distributions(a, x):
    with catena.enable_x64(True), mpmath.workdps(30):
        by_a = mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a)
        density = mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
        for transform in (lambda f: f, catena.jit):
            assert float(transform(lax.igamma_grad_a)(float(a), float(x))) == pytest.approx(float(by_a), rel=1e-11)
            sample = float(transform(lax.random_gamma_grad)(float(a), float(x)))
            assert sample == pytest.approx(float(-by_a / density), rel=1e-11)


def test_incomplete_gamma_function_of_huge_shapes():
    """SciPy's own function is off by percents in this tail; the expected value is an integral by mpmath."""
    a, x = 9001298.773240931, 8987033.569525996
    with catena.enable_x64(True):
        for transform in (lambda f: f, catena.jit):
            assert float(transform(lax.igamma)(a, x)) == pytest.approx(9.818342795e-07, rel=1e-7)
            assert float(transform(lax.igammac)(1e30, 1e30)) == pytest.approx(0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("f", "pole"),
    [(lax.lgamma, np.inf), (lax.digamma, np.nan), (lambda x: lax.polygamma(np.ones_like(x), x), np.inf)],
)
def test_functions_of_the_gamma_function_at_whole_numbers(f, pole, dtype):
    """Poles are where they are, and what lies beside has the value that it has alone."""
    with catena.enable_x64(dtype == np.float64):
        whole = np.concatenate([-np.arange(40.0), [-(2.0**23), -(2.0**60)]]).astype(dtype)
        assert np.array_equal(f(whole), np.full(whole.shape, pole, dtype), equal_nan=True)
        others = np.random.default_rng(3).uniform(-9, 9, whole.size).astype(dtype)
        mixed = np.asarray(f(np.stack([whole, others], 1).ravel())).reshape(-1, 2)
        assert np.array_equal(mixed[:, 0], np.full(whole.shape, pole, dtype), equal_nan=True)
        assert np.array_equal(mixed[:, 1], [np.asarray(f(x)) for x in others])


def test_limits_of_special_functions():
    assert np.isnan(lax.digamma(0.0).item()) and lax.lgamma(-np.inf).item() == np.inf
    assert lax.igamma(1.0, np.inf).item() == 1 and lax.igammac(1.0, np.inf).item() == 0
    assert lax.zeta(1.0, 2.0).item() == np.inf and np.isnan(lax.zeta(0.5, 2.0).item())
    assert np.signbit(np.asarray(lax.erf_inv(-0.0)))
    for fun in (lax.igamma, lax.igammac, lax.zeta):
        for args in (
            (1.0, 0.0),
            (2.0, 0.0),
            (1.0, np.inf),
            (-1.0, 1.0),
            (np.nan, 1.0),
            (2.0, -0.5),
            (0.0, 1.0),
        ):
            np.testing.assert_allclose(
                np.asarray(catena.jit(fun)(*args)),
                np.asarray(fun(*args)),
                rtol=1e-6,
                err_msg=f"{fun.__name__}{args}",
            )


# ---- errors


def test_errors():
    same = "(Tip: jnp.add is a similar function that does automatic type promotion on inputs)."
    raises(TypeError, f"lax.add requires arguments to have the same dtypes, got float32, int32. {same}",
           lax.add, 1.0, I32(1))  # fmt: skip
    raises(
        TypeError,
        "add got incompatible shapes for broadcasting: (2,), (3,).",
        lax.add,
        f32(1, 2),
        f32(1, 2, 3),
    )
    raises(TypeError, "add: arrays must have the same number of dimensions, got {1, 2}",
           lax.add, f32(1), np.ones((1, 1), F32))  # fmt: skip
    raises(TypeError, "sin does not accept dtype int32. Accepted dtypes are subtypes of floating, "
    "complexfloating.",
           lax.sin, 1)  # fmt: skip
    raises(TypeError, "lt does not accept dtype complex64 at position 0. Accepted dtypes at position 0 "
    "are subtypes of "
           "integer, floating, bool.", lax.lt, 1j, 1j)  # fmt: skip
    raises(TypeError, "Integers cannot be raised to negative powers, got integer_pow(", lax.integer_pow, 2, -1)
    raises(TypeError, "select cases must have the same shapes, got [(2,), (3,)].",
           lax.select_n, True, f32(1, 2), f32(1, 2, 3))  # fmt: skip
    raises(TypeError, "select `which` must be boolean or integer type, got float32.", lax.select_n, 1.0, 1.0, 2.0)
    raises(TypeError, "select with boolean `which` cannot have > 2 cases.", lax.select_n, True, 1, 2, 3)
    raises(TypeError, "clamp requires min.shape == operand.shape or min.shape == (), got min.shape=(2,), "
           "operand.shape=(3,).", lax.clamp, f32(0, 0), f32(1, 2, 3), 1.0)  # fmt: skip
    raises(ValueError, "dtype must be specified.", lax.convert_element_type, 1.0, None)
    raises(ValueError, "Attempting to convert array of shape (3,) from int8 of size 8 bits to int32 of "
    "size 32, bits "
           "but 3 * 8 != 32", lax.bitcast_convert_type, np.ones(3, np.int8), "int32")  # fmt: skip
    raises(TypeError, "lax.bitcast_convert_type does not support bool or complex values unless the "
    "operand and "
           "destination types match.", lax.bitcast_convert_type, 1.0, "bool")  # fmt: skip
    raises(ValueError, "reduce_precision: exponent_bits must be positive; got 0", lax.reduce_precision, 1.0, 0, 1)
    raises(ValueError, "5 is not a valid RoundingMethod", lax.round, 1.0, 5)
    raises(
        TypeError,
        "accuracy must be None, an AccuracyMode or a Tolerance, got 'x'",
        lambda: lax.sin(1.0, accuracy="x"),
    )


def test_accuracy_is_honoured_or_refused():
    assert lax.sin(0.0, accuracy=lax.AccuracyMode.HIGHEST).item() == 0
    assert lax.exp(0.0, accuracy=lax.Tolerance(ulps=5)).item() == 1
    with pytest.raises(ValueError, match="accuracy: no implementation is within 1 ulps everywhere"):
        lax.exp(0.0, accuracy=lax.Tolerance(ulps=1))


def test_parameters_without_derivative():
    with pytest.raises(ValueError, match="regularized_incomplete_beta gradient with respect to a is not supported"):
        grad(lax.betainc)(1.0, 2.0, 0.5)
    with pytest.raises(NotImplementedError, match="second derivatives of zeta by its exponent"):
        grad(grad(lax.zeta))(2.0, 3.0)


def test_stop_gradient_of_trees():
    out = lax.stop_gradient({"a": 1.0, "b": 2})
    assert out["a"].item() == 1 and out["b"] == 2
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        lax.stop_gradient("a")


NARROW = [d for d in (*dtypes.FLOATS, *dtypes.SIGNED, *dtypes.UNSIGNED) if dtypes.itemsize_bits(d) <= 16]


def patterns(dtype, shape):
    """Random bits as elements of a dtype."""
    width = dtypes.itemsize_bits(dtype)
    bits = np.random.default_rng(0).integers(0, 1 << width, shape, dtype=np.uint16 if width > 8 else np.uint8)
    if width >= 8 or dtypes.KIND[dtype] == "f":
        return bits.view(dtype)
    return (bits.astype(np.int64) - (bits >> (width - 1) << width if dtypes.KIND[dtype] == "i" else 0)).astype(dtype)


def fit(before, after) -> bool:
    old, new = dtypes.itemsize_bits(before), dtypes.itemsize_bits(after)
    return max(old, new) % min(old, new) == 0


@pytest.mark.parametrize("before", NARROW, ids=str)
def test_bits_of_narrow_dtypes(before):
    """As wider, narrower and equally wide dtypes: compiled (in one program) as evaluated, and back."""
    afters = [d for d in NARROW if fit(before, d)]
    counts = [max(dtypes.itemsize_bits(d) // dtypes.itemsize_bits(before), 1) for d in afters]
    xs = [patterns(before, (3, n)) for n in counts]
    compiled = catena.jit(lambda xs: [lax.bitcast_convert_type(x, d) for x, d in zip(xs, afters, strict=True)])(xs)
    for x, after, got in zip(xs, afters, compiled, strict=True):
        out = np.asarray(lax.bitcast_convert_type(x, after))
        assert out.dtype == got.dtype == after and out.shape == got.shape
        assert np.ascontiguousarray(out).tobytes() == np.asarray(got).tobytes(), after
        if (back := lax.bitcast_convert_type(out, before)).size == x.size:
            assert np.asarray(back).tobytes() == x.tobytes()
    for after in set(NARROW) - set(afters):
        with pytest.raises(ValueError, match="neither width is a multiple"):
            lax.bitcast_convert_type(patterns(before, (3, 4)), after)


@pytest.mark.parametrize("dtype", [d for d in dtypes.FLOATS if dtypes.itemsize_bits(d) <= 8], ids=str)
def test_neighbours_of_all_small_floats(dtype):
    codes = np.arange(1 << dtypes.itemsize_bits(dtype), dtype=np.uint8).view(dtype)
    x, y = np.repeat(codes, codes.size), np.tile(codes, codes.size)
    out, compiled = (np.asarray(f(x, y)).astype(np.float32) for f in (lax.nextafter, catena.jit(lax.nextafter)))
    np.testing.assert_array_equal(compiled, out)
    there = ~np.isnan(out)
    np.testing.assert_array_equal(np.signbit(compiled)[there], np.signbit(out)[there])
