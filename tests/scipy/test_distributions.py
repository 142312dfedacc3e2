"""Every method of every distribution beside SciPy over its parameters, and the laws that tie the methods together."""

import importlib
import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.stats

import catena as jax
import catena.numpy as jnp
from catena.scipy import stats

# The parameters of each distribution, where they are tried, and where it is evaluated; `loc` and `scale` besides.
SMALL, PLACES = [0.3, 1.0, 2.0, 7.5, 60.0], [(0.0, 1.0), (-0.5, 2.0)]
LINE = np.array(
    [-np.inf, -1e9, -700, -40, -6.5, -2, -0.3, -1e-9, 0, 1e-9, 0.3, 1, 2.5, 6.5, 40, 700, 1e9, np.inf, np.nan]
)
UNIT = np.array([-0.5, 0, 1e-12, 1e-3, 0.3, 0.5, 0.8, 1 - 1e-9, 1, 1.5, np.nan])
COUNTS = np.array([-2.0, -1, 0, 1, 2, 3, 6, 20, 150, np.nan])
CONTINUOUS = {
    "beta": ([(a, b) for a in SMALL for b in SMALL], UNIT),
    "cauchy": ([()], LINE),
    "chi2": ([(a,) for a in SMALL], LINE),
    "expon": ([()], LINE),
    "gamma": ([(a,) for a in SMALL], LINE),
    "gumbel_l": ([()], LINE),
    "gumbel_r": ([()], LINE),
    "laplace": ([()], LINE),
    "logistic": ([()], LINE),
    "norm": ([()], LINE),
    "pareto": ([(a,) for a in SMALL], LINE),
    "t": ([(a,) for a in SMALL], LINE),
    "truncnorm": ([(-1.0, 2.0), (2.0, 3.0), (-9.0, -8.0), (-np.inf, 1.0), (3.0, np.inf), (-5.0, 30.0)], LINE),
    "uniform": ([()], LINE),
}
UNLOCATED = {
    "gennorm": ([(b,) for b in (0.5, 1.0, 2.0, 5.0)], LINE[4:-4]),
    "vonmises": ([(k,) for k in (0.01, 1.0, 50.0, 5000.0)], np.linspace(-7, 7, 15)),
    "wrapcauchy": ([(c,) for c in (0.01, 0.5, 0.99)], np.linspace(-1, 7, 17)),
}
COUNTING = {
    "bernoulli": ([(p,) for p in (0.0, 0.3, 1.0)], COUNTS),
    "betabinom": ([(n, a, b) for n in (0, 3, 150) for a in SMALL[:3] for b in SMALL[2:]], COUNTS),
    "binom": ([(n, p) for n in (0, 3, 150) for p in (0.0, 0.3, 0.999, 1.0)], COUNTS),
    "geom": ([(p,) for p in (1e-3, 0.3, 1.0)], COUNTS),
    "nbinom": ([(n, p) for n in (0.5, 3, 60) for p in (1e-3, 0.3, 1.0)], COUNTS),
    "poisson": ([(mu,) for mu in (0.0, 0.2, 3.0, 140.0)], COUNTS),
}
METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
TABLE = [
    pytest.param(name, method, rows, where, places, id=f"{name}.{method}")
    for table, places in ((CONTINUOUS, PLACES), (UNLOCATED, [()]), (COUNTING, [()]))
    for name, (rows, where) in table.items()
    for method in METHODS
    if hasattr(importlib.import_module(f"catena.scipy.stats.{name}"), method)
]
# Where SciPy is off itself, and what is right; `None`: no value of ours is wrong there, or conventions differ.
OUR_WAY = {
    "bernoulli.ppf": lambda q, *_: (q == 0) | (q == 1),  # an outcome that occurs, as in JAX: SciPy has -1, and 1
    "gumbel_l.logpdf": lambda x, *_: np.isinf(x),  # -inf, where SciPy has NaN
    "gumbel_r.logpdf": lambda x, *_: np.isinf(x),
    "gumbel_l.pdf": lambda x, *_: np.isinf(x),
    "gumbel_r.pdf": lambda x, *_: np.isinf(x),
    "gamma.logpdf": lambda x, *_: np.isinf(x),
    "gamma.pdf": lambda x, *_: np.isinf(x),
    "chi2.logpdf": lambda x, *_: np.isinf(x),
    "chi2.pdf": lambda x, *_: np.isinf(x),
}


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def grid(rows, where, places):
    """All parameters with all places, as columns, against where a method is evaluated."""
    columns = [np.array(column, float)[:, None] for column in zip(*(p + q for p, q in itertools.product(rows, places)))]
    return (where[None], *columns)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "method", "rows", "where", "places"), TABLE)
def test_beside_scipy(name, method, rows, where, places):
    arguments = grid(rows, UNIT if method in ("ppf", "isf") else where, places)
    ours = np.asarray(getattr(importlib.import_module(f"catena.scipy.stats.{name}"), method)(*arguments))
    with np.errstate(all="ignore"):
        theirs = getattr(getattr(scipy.stats, name), method)(*arguments)
    compared = ~np.broadcast_to(OUR_WAY.get(f"{name}.{method}", lambda x, *_: x != x)(*arguments), theirs.shape)
    if method.startswith("log"):
        compared &= ~(np.isneginf(theirs) & np.isfinite(ours))  # ours is not that of a probability that is too small
    least = 1e-12 if "pmf" in method else 1e-300  # logarithms of near certainty are differences of large ones
    np.testing.assert_allclose(ours[compared], theirs[compared], rtol=2e-9, atol=least)
    assert np.isnan(ours[..., np.isnan(arguments[0][0])]).all()  # NaN goes in, NaN comes out


# ---- laws


def module(name):
    return importlib.import_module(f"catena.scipy.stats.{name}")


INSIDE = {"beta": np.linspace(0.05, 0.95, 7), "pareto": np.linspace(1.1, 9, 7), "truncnorm": np.linspace(-0.9, 1.9, 7),
          "uniform": np.linspace(0.1, 0.9, 7), "wrapcauchy": np.linspace(0.1, 6, 7)}  # fmt: skip
ONE_ROW = {name: rows[len(rows) // 2 - 1] for table in (CONTINUOUS, UNLOCATED) for name, (rows, _) in table.items()}
ONE_ROW["truncnorm"] = (-1.0, 2.0)
REAL = sorted(set(CONTINUOUS) | set(UNLOCATED))


def inside(name):
    return jnp.array(INSIDE.get(name, np.linspace(0.2, 5, 7)))


def slope(fun, x, step=1e-5):
    return (fun(x + step) - fun(x - step)) / (2 * step)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", REAL)
def test_methods_belong_together(name):
    own, row, x = module(name), ONE_ROW[name], inside(name)
    np.testing.assert_allclose(np.exp(own.logpdf(x, *row)), own.pdf(x, *row))
    if hasattr(own, "cdf"):
        np.testing.assert_allclose(slope(lambda x: own.cdf(x, *row), x), own.pdf(x, *row), rtol=1e-5, atol=1e-8)
    if hasattr(own, "sf"):
        np.testing.assert_allclose(own.cdf(x, *row) + own.sf(x, *row), 1)
    for method, of in (("logcdf", "cdf"), ("logsf", "sf")):
        if hasattr(own, method):
            np.testing.assert_allclose(np.exp(getattr(own, method)(x, *row)), getattr(own, of)(x, *row), rtol=1e-10)
    for method, of in (("ppf", "cdf"), ("isf", "sf")):
        if hasattr(own, method):
            known = np.abs(own.pdf(x, *row)) > 1e-3  # where a probability is not too near 1 to say where it belongs
            back = getattr(own, method)(getattr(own, of)(x, *row), *row)
            np.testing.assert_allclose(back[known], x[known], rtol=1e-9)


def differentiable(name, method, row):
    """The positions of arguments by which a method has a derivative."""
    refused = {"beta": () if "pdf" in method else (1, 2), "gennorm": (1,) if method == "cdf" else ()}
    return [i for i in range(len(row)) if i not in refused.get(name, ())]


@pytest.mark.share(3)
@pytest.mark.parametrize("name", REAL)
def test_derivatives(name):
    """By every argument, beside finite differences, of all methods in one sum."""
    own, x = module(name), inside(name)
    row = (x, *ONE_ROW[name], *((0.0, 1.0) if name in CONTINUOUS else ()))
    row = (x, *(jnp.full(x.shape, p) for p in row[1:]))
    for method in METHODS:
        if not hasattr(own, method):
            continue
        at = (jnp.linspace(0.1, 0.9, len(x)), *row[1:]) if method in ("ppf", "isf") else row
        function = getattr(own, method)
        chosen = differentiable(name, method, at)
        found = jax.grad(lambda *a: jnp.sum(function(*a)), chosen)(*at)
        for i, derivative in zip(chosen, found, strict=True):
            if name == "uniform" and i > 0 and method in ("pdf", "logpdf") or name == "gennorm" and method == "cdf":
                assert np.isfinite(derivative).all()
            by_one = slope(lambda v: function(*at[:i], v, *at[i + 1 :]), at[i])
            np.testing.assert_allclose(derivative, by_one, rtol=2e-4, atol=1e-7, err_msg=f"{method} by {i}")


EDGES = {"beta": (0, 1), "chi2": (0,), "expon": (0,), "gamma": (0,), "pareto": (1,), "uniform": (0, 1)}


@pytest.mark.parametrize("name", [name for name in REAL if hasattr(module(name), "cdf")])
def test_slopes_of_probabilities_are_densities(name):
    """Out to the tails, where the probabilities themselves are 0 and 1, and outside, where they have none."""
    own, located = module(name), name in CONTINUOUS
    rows, where = (CONTINUOUS | UNLOCATED)[name]
    x, *row = map(np.ravel, np.broadcast_arrays(*grid(rows, where[np.abs(where) < 1e3], PLACES if located else [()])))
    z = (x - row[-2]) / row[-1] if located else x
    ends = row[:2] if name == "truncnorm" else EDGES.get(name, ())
    compared = np.all([z != end for end in ends], axis=0) if len(ends) else np.full(z.shape, True)
    chosen = (0, len(row) - 1, len(row)) if located else (0,)
    for method, sign in (("cdf", 1), ("sf", -1), ("logcdf", 1), ("logsf", -1)):
        if not hasattr(own, method):
            continue
        density = np.asarray(own.pdf(x, *row))
        if method.startswith("log"):
            share = np.asarray(getattr(own, method[3:])(x, *row))
            density = np.divide(density, share, out=np.zeros_like(share), where=share > 0)
            compared &= share > 1e-300
        found = jax.grad(lambda *a: jnp.sum(getattr(own, method)(*a)), chosen)(x, *row)
        for slopes, factor in zip(found, (1, -1, -z) if located else (1,), strict=False):
            with np.errstate(invalid="ignore"):  # at ends, where the density is infinite
                expected = sign * factor * density
            np.testing.assert_allclose(
                slopes[compared], expected[compared], rtol=1e-8, atol=1e-300, err_msg=f"{method} {factor}"
            )


def test_slopes_by_shapes_outside_are_none():
    assert jax.grad(stats.gamma.logpdf, 1)(-1.0, 0.5) == 0 == jax.grad(stats.truncnorm.cdf, 1)(-3.0, -1.0, 2.0)
    assert jax.grad(stats.pareto.logcdf, 1)(0.5, 2.0) == 0 == jax.grad(stats.gamma.cdf, 1)(-1.0, 0.5)


@pytest.mark.parametrize("name", sorted(COUNTING))
def test_probabilities_of_counts(name):
    own, (rows, _) = module(name), COUNTING[name]
    row = rows[len(rows) // 2]
    counts = np.arange(400.0)
    np.testing.assert_allclose(np.sum(own.pmf(counts, *row)), 1, rtol=1e-9)
    np.testing.assert_allclose(own.pmf(counts + 3, *row, 3), own.pmf(counts, *row))
    if name != "bernoulli":
        k, *rest = jnp.arange(1.0, 4), *(jnp.full(3, float(p)) for p in row)
        for i in range(len(rest)):
            if not (name in ("binom", "betabinom") and i == 0):
                fun = lambda v: jnp.sum(own.logpmf(k, *rest[:i], v, *rest[i + 1 :]))
                np.testing.assert_allclose(jnp.sum(jax.grad(fun)(rest[i])), slope(fun, rest[i], 1e-6), rtol=1e-5)


def test_poisson_cdf_and_entropy():
    mu, k = np.array([1e-6, 0.3, 4.0, 60.0, 99.0, 101.0, 900.0]), np.arange(2000)[:, None]
    theirs = np.sum(-scipy.stats.poisson.pmf(k, mu) * np.maximum(scipy.stats.poisson.logpmf(k, mu), -1e4), axis=0)
    np.testing.assert_allclose(stats.poisson.entropy(mu), theirs, rtol=1e-9)
    assert stats.poisson.entropy(0.0) == 0 and stats.poisson.entropy(jnp.float16(3.0)).dtype == jnp.float16
    assert float(stats.poisson.entropy(1e6)) == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 1e6), rel=1e-7)
    assert np.isnan(stats.poisson.entropy(np.array([-1.0, np.nan]))).all() and stats.poisson.entropy(np.inf) == np.inf
    around = jnp.array([3.0, 99.9, 100.1])
    np.testing.assert_allclose(
        jax.grad(lambda m: jnp.sum(stats.poisson.entropy(m)))(around), slope(stats.poisson.entropy, around), rtol=1e-6
    )


def test_compiled_calls_are_the_same():
    """All methods of a few distributions in one program each."""
    for name in ("cauchy", "gumbel_r", "truncnorm"):
        own, x = module(name), inside(name)
        run = lambda x: [
            getattr(own, m)(x, *ONE_ROW[name]) for m in METHODS if hasattr(own, m) and m not in ("ppf", "isf")
        ]
        for compiled, eager in zip(jax.jit(run)(x), run(x), strict=True):
            np.testing.assert_allclose(compiled, eager, rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(lambda x: own.logpdf(x, *ONE_ROW[name]))(x), own.logpdf(x, *ONE_ROW[name]))


# ---- single precision: tails and dtypes


def test_tails_in_single_precision():
    """What is far smaller than the smallest float32 has a logarithm; so do quantiles of small probabilities."""
    with jax.enable_x64(False):
        for value, exact in [
            (stats.norm.logsf(50.0), -1254.83137),
            (stats.logistic.logpdf(200.0), -200.0),
            (stats.gumbel_r.logsf(300.0), -300.0),
            (stats.gumbel_l.logcdf(-300.0), -300.0),
            (stats.cauchy.logsf(1e30), -70.2224),
            (stats.cauchy.ppf(1e-20), -3.18309886e19),
            (stats.expon.logcdf(1e-30), -69.0775528),
            (stats.pareto.logsf(1e30, 3.0), -207.232658),
            (stats.truncnorm.logpdf(31.0, 30.0, jnp.inf), 3.40230 - 30.5),
            (stats.norm.isf(1e-30), 11.4640249),
        ]:
            assert value.dtype == "float32"
            assert float(value) == pytest.approx(exact, rel=2e-6)


def log_of_tail(a, x):
    """log P(a, x) below the mean, log Q(a, x) above, by series."""
    with mp.workdps(30):
        term = total = mp.mpf(1) if x < a else 1 / mp.mpf(x) * a
        n = 0
        while term > 1e-18 * total:
            n += 1
            term *= mp.mpf(x) / (a + n) if x < a else (a - n) / mp.mpf(x)
            total += term
        return a * mp.log(x) - x - mp.loggamma(a + 1) + mp.log(total)


def test_logarithms_of_probabilities_of_huge_shapes():
    for a, x in [(2e6, 1.9e6), (2e6, 2.1e6), (1e9, 0.9e9), (3e7, 3.2e7), (4e6, 4.03e6)]:
        log = stats.gamma.logcdf if x < a else stats.gamma.logsf
        with jax.enable_x64(True):
            assert float(log(x, a)) == pytest.approx(float(log_of_tail(a, x)), rel=1e-9)
        with jax.enable_x64(False):
            assert float(log(np.float32(x), np.float32(a))) == pytest.approx(float(log_of_tail(a, x)), rel=1e-6)


LOGARITHMS = {  # of probabilities that are zero in the dtype, and some that are not
    "gamma.logcdf": ([(1e-30, 1.5), (1e-30, 30.0), (2.0, 90.0), (0.5, 2.0)], lambda x, a: mp.gammainc(a, 0, x)),
    "gamma.logsf": ([(900.0, 2.0), (5e3, 900.0), (0.5, 2.0)], lambda x, a: mp.gammainc(a, x, mp.inf)),
    "beta.logcdf": ([(1e-30, 1.5, 4.0), (1e-30, 40.0, 3.0), (0.01, 90.0, 0.5), (0.3, 2.0, 3.0)],
                    lambda x, a, b: mp.betainc(a, b, 0, x)),
    "beta.logsf": ([(0.999, 2.0, 300.0), (0.75, 3.0, 900.0), (0.3, 2.0, 3.0)], lambda x, a, b: mp.betainc(b, a, 0, 1 - x)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_of_probabilities_that_are_zero(name):
    """Values of floats and doubles, slopes of doubles by the argument, and by the shape where they are known."""
    rows, integral = LOGARITHMS[name]
    distribution, method = name.split(".")
    function, whole = getattr(getattr(stats, distribution), method), mp.gamma if distribution == "gamma" else mp.beta

    def slopes(by):
        step = mp.mpf(2) ** -60
        return [mp.diff(lambda v: exact(*p[:by], v, *p[by + 1 :]), p[by], h=step * p[by]) for p in points]

    def exact(*p):
        return mp.log(integral(*p) / whole(*p[1:]))

    for dtype in (np.float32, np.float64):
        given = [np.array(column, dtype) for column in zip(*rows)]
        with mp.workprec(200):
            points = [[mp.mpf(v) for v in point] for point in zip(*(x.tolist() for x in given))]
            values = [float(exact(*p)) for p in points]
        np.testing.assert_allclose(function(*given), values, 4 * np.finfo(dtype).eps)
    with mp.workprec(200):
        for by in range(2 if distribution == "gamma" else 1):
            got = jax.grad(lambda *xs: function(*xs).sum(), by)(*given)
            np.testing.assert_allclose(got, np.array(slopes(by), float), 1e-11)


def test_dtypes():
    with jax.enable_x64(False):
        half = jnp.ones(2, "float16")
        for x, dtype, weak in [(half, "float16", False), (half.astype("bfloat16"), "bfloat16", False), (jnp.arange(2), "float32", False),
                               (1.0, "float32", True), (1, "float32", True), (np.ones(2), "float32", False)]:  # fmt: skip
            found = stats.norm.logpdf(x)
            assert found.dtype == dtype and found.weak_type == weak
        assert stats.gamma.logpdf(half, jnp.float32(2)).dtype == "float32"
        assert stats.cauchy.cdf(jnp.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "call",
    [
        "norm.logpdf([1.0])",
        "norm.logpdf(None)",
        "gamma.cdf(1.0)",
        "norm.cdf(1.0, 2.0, 3.0, 4.0)",
        "norm.pdf(1.0, mu=3)",
    ],
)
def test_bad_input(call):
    with pytest.raises(TypeError):
        eval(call, {"norm": stats.norm, "gamma": stats.gamma})


def test_shapes_that_do_not_fit():
    with pytest.raises((TypeError, ValueError), match="incompatible|broadcast"):
        stats.norm.logpdf(jnp.ones(2), jnp.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_shape_for_all_gives_what_it_gives_each(dtype):
    """What hangs on the shape alone may be computed earlier then; infinite shapes and NaN are no exception."""
    shapes, x = [-1.0, 0.0, 1.0, 2.5, 9.0, 60.0, np.inf, np.nan], LINE.astype(dtype)
    each = jax.jit(lambda x, a: [stats.gamma.logpdf(x, k) for k in a])(x, [np.full_like(x, k) for k in shapes])
    written = jax.jit(lambda x: [stats.gamma.logpdf(x, k) for k in shapes])(x)
    given = jax.jit(lambda x, a: [stats.gamma.logpdf(x, k) for k in a])(x, [np.asarray(k, dtype) for k in shapes])
    np.testing.assert_array_equal(written, each)
    np.testing.assert_array_equal(given, each)


def test_logarithms_of_large_counts_have_digits():
    """Of floats: the terms of the formula are millions, their sum is a few."""
    k, mu = np.float32([1e6, 1e4, 12.0]), np.float32([1e6, 1.01e4, 11.0])
    np.testing.assert_allclose(stats.poisson.logpmf(k, mu), scipy.stats.poisson.logpmf(*np.float64([k, mu])), 1e-6)
    shapes = np.float32([1e6, 1e4, 12.0])
    np.testing.assert_allclose(
        stats.gamma.logpdf(mu, shapes), scipy.stats.gamma.logpdf(*np.float64([mu, shapes])), 1e-6
    )
    middle = np.float32([1e7, 3e12, 5e20, 7e26, 8e29])  # by Stirling
    np.testing.assert_allclose(stats.poisson.logpmf(middle, middle), -np.log(2 * np.pi * np.float64(middle)) / 2, 1e-6)
    with jax.enable_x64(False):
        slope = jax.grad(stats.poisson.logpmf, 1)(np.float32(1e6), np.float32(1.001e6))
    np.testing.assert_allclose(slope, np.float64(np.float32(1e6)) / np.float32(1.001e6) - 1, 1e-4)
    assert jax.grad(stats.poisson.logpmf, 1)(0, 0.0) == -1


def test_a_narrow_distribution_on_a_circle():
    x, kappa = np.float32(1e-3), np.float32(1e6)
    np.testing.assert_allclose(stats.vonmises.logpdf(x, kappa), np.log(kappa / (2 * np.pi)) / 2 - 0.5, 1e-5)


def test_counts_that_are_none():
    found, want = (stats.betabinom.pmf(np.float32(k), 7, 0.5, 2.0) for k in ([0.9, 7.5, -0.5], [0, 7, -1]))
    np.testing.assert_array_equal(found, want)
    with pytest.raises(TypeError):
        stats.bernoulli.cdf(np.ones(2), np.ones(3))


@pytest.mark.parametrize("name", ["gumbel_l", "gumbel_r"])
def test_slopes_far_below_and_above_are_zero(name):
    """Where exp(-z) is infinite or so great that the density is none."""
    far = np.array([-800.0, -90.0, 90.0, 800.0], np.float32)
    for method in ("pdf", "cdf", "sf"):
        slopes = jax.vmap(jax.grad(getattr(getattr(stats, name), method)))(far)
        np.testing.assert_allclose(slopes, 0, atol=1e-30)


def test_slopes_of_logarithms_of_tails_far_out():
    """They go to -1 / scale, where density and tail are zero."""
    with jax.enable_x64(True):
        for x in (3.0, 149.0, 400.0, 1e5, 1e30):
            with mp.workdps(60):
                density = mp.sqrt(mp.mpf(x)) * mp.exp(-mp.mpf(x))
                wanted = float(-density / mp.gammainc(mp.mpf(1.5), mp.mpf(x))) if x < 1e6 else -1.0
            np.testing.assert_allclose(jax.grad(lambda x: stats.gamma.logsf(x, 1.5))(x), wanted, 1e-12)
            np.testing.assert_allclose(jax.grad(lambda x: stats.chi2.logsf(2 * x, 3.0))(x), wanted, 1e-12)
        assert jax.grad(lambda x: stats.gamma.logsf(x, 1.5))(np.inf) == -1


def test_slopes_beside_the_support_are_numbers():
    inside = jax.grad(lambda a: stats.beta.pdf(0.3, a, 2.0))(1.5)
    found = jax.grad(lambda a: stats.beta.pdf(jnp.array([-0.5, 0.3, 1.5]), a, 2.0).sum())(1.5)
    np.testing.assert_allclose(found, inside, 1e-6)
    data = jnp.array([0.1, 0.5, -1.0, 2.0])
    half = lambda low: jax.grad(lambda d: stats.gaussian_kde(d).integrate_box_1d(low, 0.25))(data)  # noqa: E731
    np.testing.assert_allclose(half(-jnp.inf), half(-1e4), rtol=1e-5)


def test_the_upper_tail_of_the_beta_distribution_is_one_incomplete_beta_function():
    def tail(x):
        return stats.beta.sf(x, 2.0, 3.0)

    assert str(jax.make_jaxpr(tail)(0.5)).count("betainc") == 1
    x = np.asarray([0.0, 1e-3, 0.3, 0.5, 0.9, 1.0, 2.0], "float32")
    np.testing.assert_allclose(tail(x), scipy.stats.beta.sf(x.astype(float), 2.0, 3.0), 1e-6)
    np.testing.assert_allclose(jax.grad(tail)(0.3), -stats.beta.pdf(0.3, 2.0, 3.0), 1e-5)


@pytest.mark.parametrize("x", [1e-3, 0.5, 3.0, 1e5, 1e25, -1e30])
def test_slopes_of_heavy_tails_do_not_overflow(x):
    np.testing.assert_allclose(jax.grad(stats.cauchy.logpdf)(x), -2 / (x + 1 / x), 2e-6)
    np.testing.assert_allclose(jax.grad(lambda v: stats.t.logpdf(v, 4.0))(x), -5 / (x + 4 / x), 2e-6)
    np.testing.assert_allclose(stats.cauchy.logpdf(x), scipy.stats.cauchy.logpdf(x), 2e-6)


def test_gamma_densities_of_shapes_that_are_none_follow_the_formula():
    """As JAX's do: with the logarithm of the gamma function's size, which is infinite at its poles."""
    x, shapes = np.float32([1, 2.5, 0.3, 7, 1, 2]), np.float32([0, -0.5, -1.5, -3.5, -1, 4])
    exact = (shapes - 1.0) * np.log(x) - x - scipy.special.gammaln(shapes)
    np.testing.assert_allclose(stats.gamma.logpdf(x, shapes), exact, rtol=1e-6)
    np.testing.assert_allclose([jax.jit(stats.gamma.logpdf)(*of) for of in zip(x, shapes)], exact, rtol=1e-6)


def test_complex_numbers_are_refused_where_they_would_be_compared_and_have_values_elsewhere():
    z = jnp.array([0.5 + 0.25j, -1.0])
    with pytest.raises(TypeError, match=r"laplace\.cdf takes real numbers, got a complex x"):
        stats.laplace.cdf(z)
    with pytest.raises(TypeError, match=r"bernoulli\.pmf takes real numbers, got a complex p"):
        stats.bernoulli.pmf(1, np.asarray(0.5j))
    for fun in (stats.beta.cdf, stats.beta.logcdf, stats.beta.sf, stats.beta.logsf):  # as betainc, and JAX, do
        with pytest.raises(ValueError, match="takes real numbers, got a complex x"):
            fun(z, 1.0, 2.0)
    np.testing.assert_allclose(stats.norm.pdf(z), np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi), 1e-6)
    np.testing.assert_allclose(stats.cauchy.pdf(z), 1 / (np.pi * (1 + np.square(z))), 1e-6)
