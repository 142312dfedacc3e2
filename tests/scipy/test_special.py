"""The special functions: values beside mpmath, derivatives beside differences, edges, dtypes and refusals."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import catena
from catena import numpy as jnp
from catena.compiler.vector_math import algorithms, dual, hypergeometric, mathematics
from catena.scipy import special

mp.mp.dps = 80


def w(x, y):
    z = mp.mpc(x, y)
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def owen(h, a):
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a / 2, a]) / (2 * mp.pi)


# Function, what it is, columns of arguments, units in the last place of doubles.
CASES = {
    "gamma": (mp.gamma, [(0.5, 3.7, 11.9, 12.1, 170.6, -0.5, -11.5, -60.3, 1e-30)], 8),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), [(0.5, 3.7, 1e10)], 4),
    "factorial": (lambda n: mp.gamma(n + 1), [(0.0, 5.0, 20.0, 2.5)], 8),
    "comb": (mp.binomial, [(5.0, 30.0, 10.5), (2.0, 15.0, 3.25)], 16),
    "poch": (lambda z, n: mp.gamma(z + n) / mp.gamma(z), [(2.0, 1.5, 1e8, -3.5), (3.0, 2.5, 0.5, 2.0)], 32),
    "beta": (mp.beta, [(2.0, 0.3, 1e-5, 300.0), (3.0, 50.0, 2.0, 0.5)], 16),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [(2.0, 1e8, 25.0, 1e-5), (3.0, 2.5, 4e5, 2e6)], 16),
    "multigammaln": (
        lambda a, d: mp.log(mp.pi) * 3 / 2 + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(3)),
        [(5.0, 7.5), (3.0, 3.0)],
        8,
    ),
    "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), [(2.0, 0.5, 30.0), (1.0, 3.0, 29.0)], 32),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [(2.0, 0.5), (1.0, 3.0)], 32),
    "digamma": (mp.digamma, [(0.1, 2.0, 50.0)], 4),
    "zeta": (mp.zeta, [(2.0, 3.5), (1.0, 0.25)], 8),
    "erf": (mp.erf, [(0.1, -2.0)], 4),
    "erfc": (mp.erfc, [(0.1, 5.0)], 4),
    "erfinv": (mp.erfinv, [(0.1, -0.9)], 4),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [(-20.0, -0.3, 0.2, 0.6, 24.0, 26.0, 1e10)], 4),
    "dawsn": (lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2, [(1e-9, 0.9, 1.1, 1.7, 3.2, -6.0, 7.9, 8.1, 30.0, 1e5)], 2),
    "ndtr": (mp.ncdf, [(-37.0, -1.5, 0.3, 5.0)], 6),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), [(-1e3, -5.0, 0.3, 6.0)], 6),
    "ndtri": (lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p), [(1e-30, 0.01, 0.4, 0.6, 0.999)], 6),
    "owens_t": (owen, [(0.5, 3.0, -0.2, 6.0), (0.4, 0.9, 3.0, -1.5)], 16),
    "exp1": (mp.e1, [(1e-10, 0.9, 1.1, 30.0)], 5),
    "expi": (mp.ei, [(-2.0, 0.3725, 3.0, 8.0, 15.0, 30.0, 705.0)], 5),
    "expn": (mp.expint, [(0.0, 1.0, 3.0, 3.0, 20.0, 1.5), (2.0, 0.5, 0.5, 4.0, 1.5, 0.3)], 16),
    "spence": (lambda x: mp.polylog(2, 1 - x), [(1e-5, 0.4, 0.9, 1.9, 2.5, 1e6)], 5),
    "i0": (lambda x: mp.besseli(0, x), [(0.5, -20.0, 705.0)], 8),
    "i1": (lambda x: mp.besseli(1, x), [(0.5, -20.0, 705.0)], 8),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [(0.5, -20.0)], 4),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [(0.5, -20.0)], 4),
    "hyp1f1": (mp.hyp1f1, [(1.5, 0.3, -2.5, 2.0), (2.5, 1.0, 0.7, 3.5), (0.7, -30.0, 5.0, 80.0)], 64),
    "hyp2f1": (
        mp.hyp2f1,
        [(0.5, 1.0, 1.0, 3.5, -2.0), (1.5, 2.0, 1.0, 4.0, 1.3), (2.2, 3.0, 2.0, 1.5, 0.4), (0.95, -50.0, 0.99, 0.9999, 3.0)],
        128,
    ),
    "entr": (lambda x: -x * mp.log(x), [(0.1, 2.0, 4.97959007e-08, 0.373845634)], 0.6),
    "rel_entr": (lambda p, q: p * mp.log(p / q), [(0.1, 2.0, 0.5), (0.4, 1.0, 0.5000001)], 64),
    "kl_div": (lambda p, q: p * mp.log(p / q) - p + q, [(0.1, 2.0), (0.4, 1.0)], 16),
    "xlogy": (lambda x, y: x * mp.log(y), [(0.1, 2.0), (0.4, 3.0)], 4),
    "xlog1py": (lambda x, y: x * mp.log1p(y), [(0.1, 2.0), (1e-9, 3.0)], 4),
    "logit": (lambda p: mp.log(p / (1 - p)), [(1e-9, 0.3, 0.5000001, 0.9)], 5),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [(-30.0, 0.5)], 4),
    "boxcox": (lambda x, k: (x**k - 1) / k, [(2.0, 0.3), (1e-5, -2.0)], 32),
    "boxcox1p": (lambda x, k: ((1 + x) ** k - 1) / k, [(2.0, 1e-9), (0.5, -2.0)], 32),
}  # fmt: skip


def call(name: str, *columns):
    if name == "multigammaln":
        return special.multigammaln(columns[0], 3)
    return getattr(special, name)(*columns)


def exact(name: str) -> list:
    reference, columns, _ = CASES[name]
    return [mp.re(reference(*map(mp.mpf, point))) for point in zip(*columns)]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    with catena.enable_x64(True):
        found = np.asarray(call(name, *(jnp.asarray(c) for c in CASES[name][1])))
    assert found.dtype == np.float64
    for point, got, want in zip(zip(*CASES[name][1]), found, exact(name), strict=True):
        assert abs(got - want) <= CASES[name][2] * np.spacing(abs(float(want))), (point, got, float(want))


IN_FLOATS = "gamma beta erfcx dawsn log_ndtr ndtri owens_t exp1 expi spence i0 zeta entr".split()


@pytest.mark.parametrize("name", IN_FLOATS)
def test_floats_are_doubles_rounded(name):
    columns = [np.float32(c) for c in CASES[name][1]]
    found = np.asarray(call(name, *(jnp.asarray(c) for c in columns)))
    reference, least, greatest = CASES[name][0], 2.0**-126, 2.0**127
    for point, got in zip(zip(*columns), found, strict=True):
        want = float(mp.re(reference(*(mp.mpf(float(x)) for x in point))))
        if least < abs(want) < greatest:
            assert abs(got - want) <= 0.51 * np.spacing(abs(np.float32(want))), (point, got, want)


EXTREMES = [  # where what functions are made of cancels, or under- or overflows
    ("betaln", np.float32, [(-0.5, 1e30, -0.5, -7.5), (1e30, -0.5, 40.0, 17.0)],
     lambda a, b: mp.log(abs(mp.gamma(min(a, b)))) + mp.loggamma(max(a, b)) - mp.loggamma(a + b)),
    ("betaln", np.float64, [(1e-160, 3e-268, 1e-120, 1e-250), (1e-160, 8e-121, 1e-200, 1e-90)],
     lambda a, b: mp.log(a + b) - mp.log(a) - mp.log(b)),
    ("comb", np.float32, [(1e30, 1e30, 130.0), (1.0, 0.5, 65.0)],
     lambda n, k: mp.sqrt(n) / mp.gamma(1.5) if k == 0.5 else mp.binomial(n, k)),
    ("gammaincc", np.float32, [(1e-20, 1e-9, 1e-4, 1e-3), (0.5, 0.01, 1.0, 1e-30)],
     lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True)),
    ("gammaincc", np.float64, [(1e-20, 1e-9, 1e-4, 1e-3), (0.5, 0.01, 1.0, 1e-30)],
     lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True)),
    ("expn", np.float32, [(-0.5, -1.5, -7.25), (0.25, 3.0, 9.0)], mp.expint),
    ("zeta", np.float32, [(1e30,), (1e-30,)], lambda s, q: mp.inf),
    # a factor of it rounds to the end of the interval from which the product starts
    ("gamma", np.float64, [(2 - 2.0**-52, -1 - 2.0**-52, 3 - 2.0**-51)], mp.gamma),
    # the signs of gamma functions too large to be multiplied
    ("hyp2f1", np.float32, [(1.125,), (38.5,), (0.15625,), (-1437.0,)], mp.hyp2f1),
]  # fmt: skip


@pytest.mark.parametrize("name, dtype, columns, reference", EXTREMES, ids=lambda v: v if isinstance(v, str) else "")
def test_extreme_arguments(name, dtype, columns, reference):
    columns = [np.array(c, dtype) for c in columns]
    with catena.enable_x64(True), mp.workprec(300):
        want = [float(reference(*map(mp.mpf, point))) for point in zip(*(c.tolist() for c in columns))]
        np.testing.assert_allclose(call(name, *map(jnp.asarray, columns)), want, 40 * np.finfo(dtype).eps)


CANCELLING = {  # where terms of their series do, so that every digit is lost
    "hyp1f1": [(47.3, 0.054, -34.0), (-30.5, 1.5, 40.0), (-120.2, 2.3, 90.0), (20.3, -2.6, -60.0), (90.0, 7.5, -200.0),
               (-70.25, 0.5, 900.0), (-8.5, 1.25, 30.0), (-40.0, 2.5, 33.0), (150.5, 120.25, -300.0)],
    "hyp2f1": [(45.0762, 36.0222, 2.1127, -0.2033), (7.5293, 51.4324, 0.0064, -0.387), (0.1072, 52.0913, 0.0054, -3.5),
               (47.9584, 12.5925, 0.9113, -0.0996)],
}  # fmt: skip


@pytest.mark.parametrize("name", CANCELLING)
def test_hypergeometric_functions_where_terms_cancel(name):
    points = np.array(CANCELLING[name])
    with catena.enable_x64(True), mp.workdps(60):
        for of, tolerance in ((points, 2e-12), (np.float32(points[:4]), 4e-7)):
            want = [float(getattr(mp, name)(*map(float, point))) for point in of]
            np.testing.assert_allclose(getattr(special, name)(*of.T), np.array(want, of.dtype), tolerance)


def test_the_cosine_integral_around_its_zero():
    x = np.array([0.2, 0.31, 0.4, 0.45, 0.482024943, 0.55, 0.61, 0.7, 0.8])
    with catena.enable_x64(True):
        found = np.asarray(special.sici(x)[1])
    for point, got in zip(x.tolist(), found.tolist()):
        want = mp.ci(point)
        assert abs(got - want) <= np.spacing(abs(float(want))), point


def test_wofz_far_below_the_axis():
    z = np.array([1e6 - 1e5j, -3e5 - 2e5j, 1e160 - 1e155j], np.complex128)
    with catena.enable_x64(True):
        np.testing.assert_allclose(special.wofz(z), 1j / np.sqrt(np.pi) / z, 1e-9)


def test_compiled_together():
    """What is compiled has the bits of what is eager."""
    names = ("gamma", "comb", "erfcx", "ndtri", "expi", "xlogy", "logit", "boxcox", "rel_entr")
    columns = {name: [jnp.asarray(np.float32(c)) for c in CASES[name][1]] for name in names}
    compiled = catena.jit(lambda given: {name: call(name, *xs) for name, xs in given.items()})(columns)
    for name, found in compiled.items():
        np.testing.assert_array_max_ulp(np.asarray(found), np.asarray(call(name, *columns[name])), 1)


# ---- derivatives

SLOPES = {  # where derivatives are compared with differences
    "gamma": (2.3,), "gammaln": (2.3,), "factorial": (1.3,), "comb": (5.5, 2.2), "poch": (2.3, 1.2), "beta": (1.3, 2.4),
    "betaln": (1.3, 12.4), "gammainc": (1.3, 2.4), "gammaincc": (1.3, 2.4), "digamma": (1.7,), "zeta": (2.5, 1.2),
    "erfcx": (-0.4,), "dawsn": (0.7,), "ndtr": (-1.5,), "log_ndtr": (-3.0,), "ndtri": (0.02,), "owens_t": (0.7, 1.3),
    "exp1": (0.7,), "expi": (0.7,), "spence": (0.7,), "i0": (0.7,), "i1": (0.7,), "hyp1f1": (0.7, 1.4, 1.2),
    "hyp2f1": (0.7, 1.4, 2.5, 0.3), "entr": (0.7,), "rel_entr": (0.7, 0.3), "kl_div": (0.7, 0.3), "xlogy": (0.7, 0.3),
    "xlog1py": (0.7, 0.3), "logit": (0.7,), "expit": (0.7,), "boxcox": (0.7, 0.3), "boxcox1p": (0.7, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name):
    point, step = SLOPES[name], 1e-5
    function = getattr(special, name)
    with catena.enable_x64(True):
        for i in range(len(point)) if name != "hyp2f1" else (0, 3):  # its other derivatives are those of the next test
            up, down = (function(*point[:i], point[i] + s, *point[i + 1 :]) for s in (step, -step))
            slope = catena.grad(function, i)(*map(float, point))
            np.testing.assert_allclose(slope, (up - down) / (2 * step), 1e-6, 1e-8)


PARAMETRIC = [("hyp1f1", (47.3, 0.6, -34.0)), ("hyp1f1", (-2.0, 3.0, 1.5)), ("hyp1f1", (2.5, -1.5, -20.0))]
PARAMETRIC += [
    ("hyp2f1", (30.5, 16.25, 0.75, -0.25)),
    ("hyp2f1", (0.7, 1.4, 2.5, 0.95)),
    ("hyp2f1", (-4.0, 4.25, 0.5, 0.9999)),
    ("hyp2f1", (-2.0, 0.5, 1.5, 0.5)),
    ("hyp2f1", (1.5, -3.0, 2.5, -4.0)),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("name, point", PARAMETRIC)
def test_derivatives_of_hypergeometric_functions(name, point):
    with catena.enable_x64(True), mp.workdps(50):
        slopes = catena.grad(getattr(special, name), tuple(range(len(point))))(*point)
        for k, slope in enumerate(slopes):
            wanted = mp.diff(
                lambda p: getattr(mp, name)(*point[:k], p, *point[k + 1 :]), mp.mpf(point[k]), h=mp.mpf(10) ** -12
            )
            np.testing.assert_allclose(float(slope), float(wanted), 1e-9, err_msg=str(k))


NEARLY_WHOLE = [  # a, b, c - a - b, x: rounding makes the difference whole, or leaves it next to an integer
    *[(0.3, 1.2, s, x) for s in (1.0, 1 + 1e-12, 1 - 1e-5, 2.03) for x in (0.985, 1 - 1e-9)],
    *[(2.63, 0.11, s, x) for s in (2 + 1e-15, -1.0, -2 - 1e-8, 1e-4) for x in (0.93, 0.99999)],
    (19.5, 16.2, 2 + 1e-14, 0.994), (6.3, 14.1, -4 + 1e-9, 1 - 2.0**-40), (5.4, -2.8, 1e-7, -61.9),
]  # fmt: skip


@pytest.mark.parametrize("a, b, s, x", NEARLY_WHOLE)
def test_hyp2f1_where_differences_of_parameters_are_nearly_whole(a, b, s, x):
    point = (a, b, a + b + s, x)
    with catena.enable_x64(True), mp.workdps(50):
        np.testing.assert_allclose(special.hyp2f1(*point), float(mp.hyp2f1(*point)), 1e-11)
        for k, slope in enumerate(catena.grad(special.hyp2f1, (0, 1, 2, 3))(*point)):
            by = lambda p: mp.hyp2f1(*point[:k], p, *point[k + 1 :])  # noqa: E731
            wanted = mp.diff(by, mp.mpf(point[k]), h=mp.mpf(10) ** -20)
            np.testing.assert_allclose(float(slope), float(wanted), 1e-10, err_msg=str(k))


def test_the_slope_of_quantiles_far_out():
    with catena.enable_x64(True):
        for p in (1e-300, 3e-30, 0.2, 0.75, 1 - 2.0**-40):
            with mp.workdps(400):
                y = mp.findroot(lambda y: mp.ncdf(y) - p, float(special.ndtri(p)), tol=0, maxsteps=30, verify=False)
                want = float(1 / mp.npdf(y))
            np.testing.assert_allclose(catena.grad(special.ndtri)(p), want, 2e-15)
        assert catena.grad(special.ndtri)(0.0) == np.inf == catena.grad(special.ndtri)(1.0)


def test_derivatives_of_pairs():
    with catena.enable_x64(True):
        for function in (special.fresnel, special.sici):
            slopes = catena.jacfwd(function)(0.7)
            for k, slope in enumerate(slopes):
                difference = (function(0.7 + 1e-5)[k] - function(0.7 - 1e-5)[k]) / 2e-5
                np.testing.assert_allclose(slope, difference, 1e-7)


def test_the_derivative_of_the_complex_error_function_is_holomorphic():
    with catena.enable_x64(True):
        z = 0.3 + 0.4j
        slope = catena.grad(special.wofz, holomorphic=True)(z)
        np.testing.assert_allclose(slope, -2 * z * special.wofz(z) + 2j / np.sqrt(np.pi), 1e-13)
        slope = catena.grad(special.loggamma, holomorphic=True)(-1.3 + 0.4j)
        np.testing.assert_allclose(complex(slope), complex(mp.digamma(-1.3 + 0.4j)), 1e-12)


def test_derivatives_at_edges_are_numbers():
    zero = jnp.zeros(())
    assert catena.grad(special.xlogy)(zero, 2.0) == np.float32(np.log(2))
    assert catena.grad(special.spence)(1.0) == -1
    assert catena.grad(special.i1)(0.0) == 0.5
    assert catena.grad(special.log_ndtr)(-1e20) > 1e19
    assert catena.grad(special.log_ndtr)(100.0) == 0
    np.testing.assert_allclose(catena.grad(special.boxcox, 1)(2.0, 0.0), np.log(2) ** 2 / 2, 1e-6)


def _far(x, first, second):
    """1 / x^2 and two terms more of an asymptotic series."""
    return (1 + first / (2 * x**2) + second / (4 * x**4)) / x**2


FAR_SLOPES = [  # where differences of what is near one another have no digits
    (
        "erfcx",
        np.float64,
        [(1.5, 2.5, 5.0, 7.9, 8.1, 13.1548114)],
        lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi),
    ),
    ("erfcx", np.float32, [(1e3, 5e4)], lambda x: -_far(x, -3, 15) / mp.sqrt(mp.pi)),
    ("dawsn", np.float64, [(1e3, 5e4)], lambda x: -_far(x, 3, 15) / 2),
    ("spence", np.float32, [(1e-20, 0.9)], lambda x: mp.log(x) / (1 - x)),
    ("betaln", np.float64, [(2e5, 2e-6, 3.0), (2e-6, 2e5, -0.25)], lambda a, b: mp.psi(0, a) - mp.psi(0, a + b)),
    ("poch", np.float32, [(1e5, 0.3), (-1e-3, 5.5)], lambda z, m: mp.rf(z, m) * (mp.psi(0, z + m) - mp.psi(0, z))),
]


@pytest.mark.parametrize("name, dtype, columns, reference", FAR_SLOPES, ids=lambda v: v if isinstance(v, str) else "")
def test_derivatives_far_away(name, dtype, columns, reference):
    columns = [np.array(c, dtype) for c in columns]
    with catena.enable_x64(True), mp.workprec(300):
        found = catena.grad(lambda *xs: getattr(special, name)(*xs).sum())(*columns)
        want = [float(reference(*map(mp.mpf, point))) for point in zip(*(c.tolist() for c in columns))]
    np.testing.assert_allclose(found, want, 16 * np.finfo(dtype).eps)


def test_derivatives_of_fresnel_integrals_far_away():
    """The square of a float, rounded, would be another angle."""
    x = np.float32(123.4)
    found = catena.jacfwd(special.fresnel)(x)
    turn = mp.pi * mp.mpf(float(x)) ** 2 / 2
    np.testing.assert_allclose(found, [float(mp.sin(turn)), float(mp.cos(turn))], 1e-6)


@pytest.mark.parametrize("name, order", [("i0e", 0), ("i1e", 1)])
def test_derivatives_of_scaled_bessel_functions(name, order):
    """Differences of functions of which far out only the first digits differ."""
    slope = catena.grad(lambda x: getattr(special, name)(x).sum())
    with catena.enable_x64(True), mp.workdps(40):
        for x in (1e-3, 2.9, 3.1, -7.9, 8.1, 19.9, 20.1, -700.0, 8574.04277, 1e9):
            a = mp.mpf(abs(x))
            scaled = [mp.exp(-a) * mp.besseli(k, a) if a < 1e4 else mp.hyp2f0(k + 0.5, 0.5 - k, 1 / (2 * a)) / mp.sqrt(2 * mp.pi * a) for k in (0, 1)]  # fmt: skip
            want = scaled[1] - scaled[0] if order == 0 else scaled[0] - scaled[1] - scaled[1] / a
            np.testing.assert_allclose(slope(x), float(want) * (np.sign(x) if order == 0 else 1), 16 * 2.0**-52)
        np.testing.assert_allclose(slope(np.array([0.0, np.inf, np.nan])), [0.5 * order, 0.0, np.nan])


@pytest.mark.parametrize("z", [0.1 + 0.2j, -1.9 + 0.5j, 1 - 1.5j, -2.5 - 1j, 2.19166978 + 19.6742008j, 3 + 0j,
                               15 - 0.5j, -1e3 + 2j, 3e4 + 1e-3j, -5e4 - 1e4j])  # fmt: skip
def test_derivatives_of_the_complex_error_function(z):
    """w' = -2 z w + 2 i / sqrt(pi), whose terms cancel far out: against that in many digits, part by part."""
    with catena.enable_x64(True), mp.workprec(400):
        a = mp.mpc(z)
        near = abs(z) < 25
        value = mp.exp(-a * a) * mp.erfc(-1j * a) if near else 0
        terms = [mp.fac2(2 * k - 1) / (2 * a * a) ** k for k in range(1, 20)]
        want = -2 * a * value + 2j / mp.sqrt(mp.pi) if near else -2j / mp.sqrt(mp.pi) * sum(terms)
        slope = complex(catena.grad(special.wofz, holomorphic=True)(z))
        assert abs(slope - want) <= 16 * 2.0**-52 * abs(want)
        np.testing.assert_allclose([slope.real, slope.imag], [float(want.real), float(want.imag)], 256 * 2.0**-52)


def test_derivatives_of_hypergeometric_functions_by_their_arguments_in_floats():
    """The parameters that are greater by one are not rounded to floats."""
    for name, point in (("hyp1f1", (7.32358885, 6.53954697, 44.5148163)), ("hyp2f1", (0.106679253, 2.00571489, 1.21307218, 0.574948728))):  # fmt: skip
        point = [np.float32(x) for x in point]
        *parameters, x = (mp.mpf(float(v)) for v in point)
        factor = parameters[0] / parameters[1] if name == "hyp1f1" else parameters[0] * parameters[1] / parameters[2]
        want = factor * getattr(mp, name)(*(p + 1 for p in parameters), x)
        found = float(catena.grad(getattr(special, name), len(parameters))(*point))
        assert abs(found - want) <= 0.51 * np.spacing(np.float32(want))


def test_the_slope_of_relative_entropy():
    """log(p / q) + 1, of a logarithm whose last place may be twice that of the sum."""
    rng = np.random.default_rng(0)
    p, q = (np.exp(rng.uniform(*ends, 200)) for ends in ((-14, -2), (0, 14)))
    with catena.enable_x64(True):
        found = catena.grad(lambda p: special.rel_entr(p, q).sum())(p).tolist()
        slope = catena.grad(catena.grad(special.rel_entr))(0.3, 0.7)
    want = [mp.log(mp.mpf(a) / mp.mpf(b)) + 1 for a, b in zip(p.tolist(), q.tolist())]
    assert all(abs(f - w) <= 2 * np.spacing(abs(float(w))) for f, w in zip(found, want))
    np.testing.assert_allclose(slope, 1 / 0.3, 1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_of_powers_by_small_exponents(dtype):
    """exp(u) u - exp(u) + 1 has no digits where u is small, and its series no end where it is not."""
    x = np.array([49.149117, 70.2558852, 1.5, 2.5, 20.0, 0.03, 3.0], dtype)
    exponent = np.array([0.00079206, 0.00047794, 0.2, 1.2, -1.5, 0.3, 0.0], dtype)
    with catena.enable_x64(True):
        found = catena.grad(lambda e: special.boxcox(x, e).sum())(exponent)
        second = catena.grad(catena.grad(special.boxcox, 1), 1)(2.0, 0.0)
    for got, a, e in zip(found.tolist(), map(mp.mpf, x.tolist()), map(mp.mpf, exponent.tolist())):
        u = e * mp.log(a)
        want = (u * mp.exp(u) - mp.expm1(u)) / e**2 if e else mp.log(a) ** 2 / 2
        assert abs(got - want) <= 8 * np.finfo(dtype).eps * abs(want)
    np.testing.assert_allclose(second, np.log(2) ** 3 / 3, 1e-14)


def test_second_derivatives_of_what_has_a_slope_of_its_own():
    with catena.enable_x64(True):
        for name, x, want in (
            ("erfcx", 0.7, lambda x: mp.exp(x * x) * mp.erfc(x)),
            ("dawsn", 0.7, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
            ("fresnel", 0.7, mp.fresnels),
            ("i0e", 1.7, lambda x: mp.exp(-x) * mp.besseli(0, x)),
            ("i1e", 1.7, lambda x: mp.exp(-x) * mp.besseli(1, x)),
        ):
            function = lambda x: jnp.ravel(jnp.asarray(getattr(special, name)(x)))[0]
            np.testing.assert_allclose(catena.grad(catena.grad(function))(x), float(mp.diff(want, x, 2)), 1e-9)
        found = catena.grad(catena.grad(special.betaln), (0, 1))(1.3, 12.4)
        want = mp.psi(1, 1.3) - mp.psi(1, 13.7), -mp.psi(1, 13.7)
        np.testing.assert_allclose(found, [float(w) for w in want], 1e-12)
        z = 2.5 + 1.5j
        found = catena.grad(catena.grad(special.wofz, holomorphic=True), holomorphic=True)(z)
        slope = -2 * z * special.wofz(z) + 2j / np.sqrt(np.pi)
        np.testing.assert_allclose(found, -2 * special.wofz(z) - 2 * z * slope, 1e-12)
        found = catena.grad(catena.grad(special.hyp1f1, 2), (0, 2))(0.7, 1.4, 1.2)
        want = [mp.diff(lambda a, x: mp.hyp1f1(a, 1.4, x), (0.7, 1.2), n) for n in ((1, 1), (0, 2))]
        np.testing.assert_allclose(found, [float(w) for w in want], 1e-9)
        found = catena.grad(catena.grad(special.hyp2f1, 3), 3)(0.7, 1.4, 2.5, 0.3)
        np.testing.assert_allclose(found, float(mp.diff(lambda x: mp.hyp2f1(0.7, 1.4, 2.5, x), 0.3, 2)), 1e-9)


def test_derivatives_by_dual_numbers():
    """The derivative of an algorithm, in NumPy: the third branch of the hypergeometric function, and Kummer's."""
    slope = dual.derivative(algorithms.ALGORITHMS["hyp1f1"], 1)
    got = mathematics.evaluated(slope, np.array([0.5]), np.array([1.5]), np.array([3.0]))
    np.testing.assert_allclose(got, float(mp.diff(lambda b: mp.hyp1f1(0.5, b, 3), 1.5)), 1e-12)
    for x in (0.3, 0.95, -2.0):
        slope = dual.derivative(hypergeometric.hyp2f1_off_integers, 2)
        got = mathematics.evaluated(slope, *(np.array([v]) for v in (0.7, 1.4, 2.5, x)))
        np.testing.assert_allclose(got, float(mp.diff(lambda c: mp.hyp2f1(0.7, 1.4, c, x), 2.5)), 1e-10)


# ---- edges

INF, NAN = np.inf, np.nan
EDGES = [
    ("gamma", (0.0, INF), (-0.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN), (200.0, INF), (-200.5, 0.0)),
    ("gammasgn", (0.0, 1.0), (-0.0, -1.0), (-0.5, -1.0), (-1.5, 1.0), (-2.0, NAN), (INF, 1.0), (-INF, NAN)),
    ("loggamma", (-0.5, NAN), (1.0, 0.0)),
    ("factorial", (-1.0, 0.0), (0.0, 1.0)),
    ("erfcx", (-30.0, INF), (INF, 0.0), (-INF, INF), (NAN, NAN)),
    ("dawsn", (0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (NAN, NAN)),
    ("ndtr", (-INF, 0.0), (INF, 1.0), (0.0, 0.5), (NAN, NAN)),
    ("log_ndtr", (-INF, -INF), (INF, 0.0), (NAN, NAN)),
    ("ndtri", (0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.1, NAN), (1.1, NAN), (NAN, NAN)),
    ("exp1", (0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)),
    ("expi", (0.0, -INF), (INF, INF), (-INF, 0.0), (NAN, NAN)),
    ("spence", (1.0, 0.0), (-1.0, NAN), (INF, -INF), (NAN, NAN)),
    ("i0", (0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)),
    ("i1", (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)),
    ("hyp2f1", (0.5, 0.7, 2.5, -INF, 0.0), (0.5, 0.7, 2.5, INF, INF), (INF, 0.7, 2.5, 0.5, INF), (-INF, 0.7, 2.5, 0.5, NAN)),
    ("hyp1f1", (INF, 2.0, 0.5, INF), (-INF, 2.0, 0.5, NAN), (0.5, 2.0, -INF, 0.0), (0.5, -INF, 3.0, 1.0), (0.5, INF, 3.0, 1.0)),
    ("entr", (0.0, 0.0), (-1.0, -INF), (INF, -INF), (NAN, NAN)),
    ("logit", (0.0, -INF), (1.0, INF), (0.5, 0.0), (2.0, NAN)),
    ("zeta", (0.0, -0.5), (1.0, INF), (-2.0, 0.0), (INF, 1.0), (NAN, NAN)),
    ("expn", (1, 0.0, INF), (3, 0.0, 0.5), (2, -1.0, NAN), (2, INF, 0.0), (-1, 2.0, 0.75 * np.exp(-2))),
    ("poch", (3.0, 0.0, 1.0), (-3.0, 2.0, 6.0), (-3.0, 4.0, 0.0), (0.0, 0.0, 1.0)),
    ("beta", (1.0, 1.0, 1.0), (0.0, 1.0, INF), (-0.0, 1.0, -INF), (INF, 1.0, 0.0), (-1.0, 0.5, NAN)),
    ("betaln", (INF, 1.0, -INF), (0.0, 1.0, INF), (NAN, 1.0, NAN)),
    ("owens_t", (0.0, INF, 0.25), (0.0, 1.0, 0.125), (1.0, 0.0, 0.0), (INF, 1.0, 0.0), (NAN, 1.0, NAN)),
    ("xlogy", (0.0, 0.0, 0.0), (0.0, NAN, NAN), (0.0, -1.0, 0.0), (1.0, 0.0, -INF)),
    ("rel_entr", (0.0, 0.0, 0.0), (1.0, 0.0, INF), (-1.0, 1.0, INF), (1.0, NAN, NAN)),
    ("kl_div", (0.0, 2.0, 2.0), (1.0, 0.0, INF), (1.0, 1.0, 0.0)),
    ("boxcox", (2.0, 0.0, float(np.log(2))), (0.0, 2.0, -0.5), (0.0, 0.0, -INF), (0.0, -1.0, -INF)),
    ("comb", (5, 6, 0.0), (5, -1, 0.0), (-1, 1, 0.0), (5, 0, 1.0)),
    ("hyp1f1", (0.0, 2.0, 5.0, 1.0), (1.0, -1.0, 0.5, INF), (-2.0, 3.0, 0.0, 1.0), (1.0, 1.0, NAN, NAN)),
    ("hyp2f1", (1.0, 1.0, 2.0, 1.0, INF), (1.0, 2.0, 4.0, 1.0, 3.0), (-2.0, 1.0, 1.0, 3.0, 4.0), (1.0, 1.0, 2.0, 2.0, INF)),
]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize("name, cases", [(name, cases) for name, *cases in EDGES], ids=[name for name, *_ in EDGES])
def test_edges(name, cases):
    *columns, want = map(np.asarray, zip(*cases))
    with catena.enable_x64(name == "hyp2f1"):  # which takes long to compile
        floats = [jnp.asarray(c, float) for c in columns]
        found = np.asarray(getattr(special, name)(*floats))
    np.testing.assert_allclose(found, want, 1e-6)
    zero = want == 0
    if name in ("dawsn", "i1"):
        assert (np.signbit(found) == np.signbit(want))[zero].all()


def test_complex_numbers():
    with catena.enable_x64(True):
        z = np.array([0.3 + 0.4j, -1.3 + 0.4j, -1.3 - 0.4j, 5 - 9j, -4 - 3j, 40.0 + 1e-3j, 1e5 + 1e5j])
        points = [mp.mpc(v) for v in z.tolist()]
        np.testing.assert_allclose(special.wofz(z), [complex(w(p.real, p.imag)) for p in points], 1e-13)
        few, points = z[:4], points[:4]
        np.testing.assert_allclose(special.loggamma(few), [complex(mp.loggamma(p)) for p in points], 1e-13)
        np.testing.assert_allclose(special.gamma(few), [complex(mp.gamma(p)) for p in points], 1e-12)
        erfcx = [complex(mp.exp(p * p) * mp.erfc(p)) for p in points]
        np.testing.assert_allclose(special.erfcx(few), erfcx, 1e-12)


def test_spherical_harmonics():
    with catena.enable_x64(True):
        n, m = np.array([0, 1, 1, 3, 20, 6, 2]), np.array([0, 1, -1, 2, -15, -6, 5])
        theta, phi = np.linspace(0.1, 3.0, 7), np.linspace(0.0, 6.0, 7)
        want = [
            0 if abs(b) > a else complex(mp.spherharm(int(a), int(b), s, t)) for a, b, s, t in zip(n, m, theta, phi)
        ]
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, 1e-12, 1e-15)
        np.testing.assert_allclose(catena.jit(special.sph_harm_y, static_argnames="n_max")(n, m, theta, phi, n_max=20),
                                   want, 1e-12, 1e-15)  # fmt: skip


def test_legendre_functions():
    with catena.enable_x64(True):
        z = np.linspace(-0.95, 0.95, 5)
        values, slopes = special.lpmn(6, 6, z)
        sine, start = np.sqrt(1 - z**2), np.polynomial.legendre.Legendre.basis
        for m, n in np.ndindex(7, 7):
            inner, outer = (start(n).deriv(k) if k else start(n) for k in (m, m + 1))  # Rodrigues' formula
            np.testing.assert_allclose(values[m, n], (-sine) ** m * inner(z), 1e-12, 1e-12)
            want = (-sine) ** m * outer(z) - m * z / sine**2 * (-sine) ** m * inner(z)
            np.testing.assert_allclose(slopes[m, n], want, 1e-11, 1e-11)
        normalized = special.lpmn_values(6, 6, np.cos(np.array([0.7])), True)[..., 0]
        points = np.array(list(np.ndindex(7, 7)))
        want = special.sph_harm_y(points[:, 1], points[:, 0], 0.7, 0.0, n_max=6).real.reshape(7, 7)
        np.testing.assert_allclose(normalized, want, 1e-13, 1e-14)


def test_legendre_functions_at_the_ends():
    values, slopes = special.lpmn(3, 3, jnp.array([-1.0, 1.0]))
    np.testing.assert_allclose(values[0], [[1, 1], [-1, 1], [1, 1], [-1, 1]], 1e-6)
    np.testing.assert_allclose(slopes[0], [[0, 0], [1, 1], [-3, 3], [6, 6]], 1e-6)
    np.testing.assert_array_equal(slopes[1, 1:], [[-np.inf, np.inf], [np.inf, np.inf], [-np.inf, np.inf]])
    np.testing.assert_allclose(slopes[2, 2:], [[6, -6], [-30, -30]], 1e-6)
    np.testing.assert_array_equal(slopes[3], 0)
    assert special.lpmn_values(0, 0, jnp.zeros(0), True).shape == (1, 1, 0)


def test_bessel_functions_of_several_orders():
    z = np.float32([[0.0, 1e-6, 1.0], [20.0, -7.5, 2.4048]])
    found = np.asarray(special.bessel_jn(z, v=3))
    assert found.shape == (4, 2, 3)
    want = [[[float(mp.besselj(v, float(x))) for x in row] for row in z] for v in range(4)]
    np.testing.assert_allclose(found, want, 1e-5, 1e-6)
    slope = catena.grad(lambda x: special.bessel_jn(x, v=1)[0])(2.0)
    np.testing.assert_allclose(slope, -float(mp.besselj(1, 2)), 1e-5)


def test_bernoulli_numbers():
    with catena.enable_x64(True):
        found = special.bernoulli(64)
        want = [float(mp.bernoulli(k)) for k in range(65)]
        assert found.tolist() == want
    assert special.bernoulli(1).tolist() == [1.0, -0.5]
    assert np.isinf(special.bernoulli(80)[80])


def test_the_slope_of_zeta():
    with catena.enable_x64(True):
        slope = catena.grad(special.zeta)(2.5, 1.2)
        np.testing.assert_allclose(slope, float(mp.zeta(2.5, 1.2, 1)), 1e-13)
        np.testing.assert_allclose(catena.grad(special.zeta)(-0.5), float(mp.zeta(-0.5, derivative=1)), 1e-12)


# ---- types


def test_dtypes():
    assert special.erfcx(2).dtype == np.float32 and not special.erfcx(2).weak_type
    assert special.entr(2).weak_type
    assert special.gammainc(jnp.ones(2, "bfloat16"), 2).dtype == jnp.bfloat16
    assert special.expit(jnp.ones(2, "float16")).dtype == np.float16
    assert special.beta(jnp.ones(3, "int8"), jnp.ones((2, 1), "float16")).shape == (2, 3)
    assert special.poch(jnp.zeros((0, 3)), 1).shape == (0, 3)
    assert special.wofz(0.5).dtype == np.complex64


def test_mapped():
    a, x = np.float32([[1.0, 2.0], [3.0, 0.5]]), np.float32([0.4, 1.4])
    mapped = catena.vmap(special.gammainc, (0, None))(a, x)
    np.testing.assert_array_equal(mapped, special.gammainc(a, x))
    mapped = catena.vmap(special.hyp1f1, (None, 0, None))(1.5, a, 0.3)
    np.testing.assert_array_equal(mapped, special.hyp1f1(1.5, a, 0.3))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda z: special.dawsn(z), ValueError),
        (lambda z: special.erf(z), TypeError),
        (lambda z: special.fresnel(z), NotImplementedError),
        (lambda z: special.ndtr(z), TypeError),
        (lambda z: special.ndtr(2), TypeError),
        (lambda z: special.spence(jnp.ones(2, "bfloat16")), TypeError),
        (lambda z: special.polygamma(1.0, 2.0), ValueError),
        (lambda z: special.log_ndtr(1.0, 31), ValueError),
        (lambda z: special.log_ndtr(1.0, 2.5), TypeError),
        (lambda z: special.bernoulli(-1), ValueError),
        (lambda z: special.bernoulli(2.5), TypeError),
        (lambda z: special.bessel_jn(1.0, v=2.5), TypeError),
        (lambda z: special.bessel_jn(1.0, v=5, n_iter=2), ValueError),
        (lambda z: special.bessel_jn(z, v=2), TypeError),
        (lambda z: special.factorial(3, exact=True), NotImplementedError),
        (lambda z: special.sph_harm_y(1, 1, 0.5, 0.5, diff_n=1), NotImplementedError),
        (lambda z: special.sph_harm_y(1.5, 1, 0.5, 0.5), TypeError),
        (lambda z: special.lpmn(2, 2, jnp.ones(2, int)), TypeError),
        (lambda z: special.lpmn(2, 2, jnp.float32(1)), ValueError),
        (lambda z: special.lpmn(-1, -1, jnp.ones(2)), ValueError),
        (lambda z: special.lpmn_values(2, 3, jnp.ones(2), True), NotImplementedError),
        (lambda z: special.multigammaln(3.0, jnp.arange(2)), TypeError),
        (lambda z: special.beta(jnp.ones(2), jnp.ones(3)), (TypeError, ValueError)),
        (lambda z: special.hyp1f1(None, 1, 2), TypeError),
        (lambda z: special.gamma([1.0]), TypeError),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call(jnp.asarray(0.5 + 0.3j))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_seams_of_the_normal_distribution(dtype):
    """Where one formula ends and the next begins, at the point itself and its neighbours."""
    with catena.enable_x64(True):
        seams = np.array([-1.0, -0.75, 0.75, 1.0, 0.0, -5.0, 5.0], dtype)
        x = np.concatenate([seams, np.nextafter(seams, -np.inf), np.nextafter(seams, np.inf)]).astype(dtype)
        for name in ("ndtr", "log_ndtr"):
            expected = getattr(scipy.special, name)(x.astype(np.float64))
            np.testing.assert_allclose(getattr(special, name)(x), expected, rtol=1e-6 if dtype == "float32" else 1e-13)


def test_softmax_is_over_all_axes_unless_one_is_named():
    x = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], np.float32)
    for axis in (None, 0, (0, 1), ()):
        for ours, theirs in (
            (special.softmax, scipy.special.softmax),
            (special.log_softmax, scipy.special.log_softmax),
        ):
            got = ours(x) if axis is None else ours(x, axis=axis)
            np.testing.assert_allclose(got, theirs(x, axis=axis), rtol=2e-6, atol=1e-6)
    assert special.softmax(2.0) == 1 and special.log_softmax(2.0) == 0
    with pytest.raises(TypeError):
        special.softmax(x, 0)


def test_slopes_of_boxcox_where_x_is_zero():
    """Of (x^lmbda - 1) / lmbda at 0: by lmbda 1 / lmbda^2, by x the power of lmbda - 1."""
    lmbda = jnp.array([0.5, 1.0, 2.0, 4.0])
    by_lmbda = catena.vmap(catena.grad(special.boxcox, 1), (None, 0))(0.0, lmbda)
    np.testing.assert_array_equal(by_lmbda, 1 / lmbda**2)
    np.testing.assert_array_equal(catena.vmap(catena.grad(special.boxcox1p, 1), (None, 0))(-1.0, lmbda), by_lmbda)
    by_x = catena.vmap(catena.grad(special.boxcox), (None, 0))(0.0, lmbda)
    np.testing.assert_array_equal(by_x, [np.inf, 1.0, 0.0, 0.0])


def test_slope_of_boxcox_by_x_is_a_power():
    rng = np.random.default_rng(0)
    x, lmbda = np.exp(rng.uniform(-5, 5, 2000)).astype(np.float32), rng.uniform(-3, 3, 2000).astype(np.float32)
    exact = x.astype(np.float64) ** (lmbda.astype(np.float64) - 1)
    for slope in (catena.grad(special.boxcox), catena.jit(catena.grad(special.boxcox))):
        error = np.abs(np.asarray(catena.vmap(slope)(x, lmbda)) - exact) / np.spacing(exact.astype(np.float32))
        assert error.max() <= 1.5


def test_the_slope_of_boxcox_by_its_exponent_where_that_by_a_constant_x_is_infinite():
    for exponent in (0.5, 2.0):
        np.testing.assert_allclose(catena.jvp(lambda p: special.boxcox(0.0, p), (exponent,), (1.0,))[1], exponent**-2)
        np.testing.assert_allclose(catena.grad(special.boxcox, 1)(0.0, exponent), exponent**-2)
    assert catena.grad(special.boxcox)(0.0, 0.5) == np.inf


def test_multigammaln_is_of_the_dtype_of_its_argument_with_64_bits_enabled():
    with catena.enable_x64(True):
        value = special.multigammaln(jnp.array([3.0, 5.0], "float32"), 2)
        assert value.dtype == "float32"
        np.testing.assert_allclose(value, scipy.special.multigammaln(np.array([3.0, 5.0]), 2), rtol=1e-6)
