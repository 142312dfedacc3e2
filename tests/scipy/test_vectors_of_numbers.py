"""Distributions of vectors, densities of samples, ranks: beside SciPy."""

import numpy as np
import pytest
import scipy.stats

import catena as jax
import catena.numpy as jnp
from catena.scipy import stats

RNG = np.random.default_rng(11)


def positive(n, *batch):
    m = RNG.normal(size=(*batch, n, n))
    return m @ m.swapaxes(-1, -2) + np.eye(n)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


# ---- distributions


def test_multivariate_normal(x64):
    x, mean, cov = RNG.normal(size=(5, 3)), RNG.normal(size=3), positive(3)
    normal, theirs = stats.multivariate_normal, scipy.stats.multivariate_normal
    np.testing.assert_allclose(normal.logpdf(x, mean, cov), theirs.logpdf(x, mean, cov))
    np.testing.assert_allclose(normal.pdf(x[0], mean, cov), theirs.pdf(x[0], mean, cov))
    np.testing.assert_allclose(normal.logpdf(x, mean, 2.0), theirs.logpdf(x, mean, 2.0))
    np.testing.assert_allclose(normal.logpdf(x, 0.5, 2.0), scipy.stats.norm.logpdf(x, 0.5, 2**0.5))
    covs, means = positive(3, 5), RNG.normal(size=(2, 1, 3))
    each = [[theirs.logpdf(x[i], m[0], covs[i]) for i in range(5)] for m in means]
    np.testing.assert_allclose(normal.logpdf(x, means, covs), each)
    np.testing.assert_allclose(
        jax.vmap(normal.logpdf)(x, jnp.tile(mean, (5, 1)), covs),
        [theirs.logpdf(*row) for row in zip(x, [mean] * 5, covs)],
    )
    inverse = np.linalg.inv(cov)
    by_cov = jax.grad(normal.logpdf, 2)(x[0], mean, cov)
    z = inverse @ (x[0] - mean)
    np.testing.assert_allclose(by_cov, 0.5 * (np.outer(z, z) - inverse), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(jax.grad(normal.logpdf, 1)(x[0], mean, cov), z)
    assert np.isnan(normal.logpdf(x[0], mean, -cov))


def test_a_normal_distribution_that_lacks_directions(x64):
    flat = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    x = np.array([[1.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    theirs = scipy.stats.multivariate_normal.logpdf(x, np.zeros(3), flat, allow_singular=True)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, jnp.zeros(3), flat, allow_singular=True), theirs)
    assert theirs[2] == -np.inf
    full = positive(3)
    np.testing.assert_allclose(
        stats.multivariate_normal.logpdf(x, jnp.zeros(3), full, True),
        stats.multivariate_normal.logpdf(x, jnp.zeros(3), full),
    )


@pytest.mark.parametrize("cov", [np.ones(3), np.ones((3, 2)), np.eye(2)])
def test_covariances_that_do_not_fit(cov):
    with pytest.raises(ValueError, match="cov must have a shape"):
        stats.multivariate_normal.logpdf(np.zeros(3), np.zeros(3), cov)


def test_dirichlet(x64):
    alpha, x = np.array([0.5, 1.0, 3.0]), RNG.dirichlet([1, 2, 3], 6).T
    theirs = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), theirs)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:-1], alpha), np.exp(theirs))
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:, 0], alpha), theirs[0])
    at_the_edge = np.array([0.25, 0.75, 0.0])
    assert float(stats.dirichlet.logpdf(at_the_edge, np.array([2.0, 2.0, 1.0]))) == pytest.approx(
        scipy.stats.dirichlet.logpdf(at_the_edge, [2, 2, 1])
    )
    assert (
        stats.dirichlet.logpdf(at_the_edge, alpha) == -np.inf
        and stats.dirichlet.logpdf(x[:, 0] * 1.1, alpha) == -np.inf
    )
    for wrong in ((x, alpha[None]), (x, 1.0), (x, np.ones(5)), (1.0, np.ones(1))):
        with pytest.raises(ValueError, match=r"alpha must|first axis"):
            stats.dirichlet.logpdf(*wrong)


def test_multinomial(x64):
    p, x = np.array([0.2, 0.3, 0.5]), RNG.multinomial(9, [0.2, 0.3, 0.5], 6)
    theirs = scipy.stats.multinomial.logpmf(x, 9, p)
    np.testing.assert_allclose(stats.multinomial.logpmf(x, 9, p), theirs)
    np.testing.assert_allclose(stats.multinomial.pmf(x, np.full(6, 9), p), np.exp(theirs))
    assert stats.multinomial.logpmf(x[0], 8, p) == -np.inf
    assert stats.multinomial.logpmf(np.array([10, -1, 0]), 9, p) == -np.inf
    assert float(stats.multinomial.pmf(np.array([4, 0, 5]), 9, np.array([0.5, 0.0, 0.5]))) == pytest.approx(126 / 512)
    with pytest.raises(ValueError, match="integers"):
        stats.multinomial.logpmf(x, 9.0, p)


# ---- densities of samples

SETS = {"line": RNG.normal(size=40), "plane": RNG.normal(size=(2, 30)) * [[1], [3]]}


@pytest.mark.parametrize(
    ("samples", "width", "weighted"),
    [("line", None, False), ("line", 0.3, True), ("plane", "silverman", True), ("plane", "scott", False)],
)
def test_gaussian_kde(x64, samples, width, weighted):
    data = SETS[samples]
    weights = RNG.uniform(size=data.shape[-1]) if weighted else None
    ours, theirs = stats.gaussian_kde(data, width, weights), scipy.stats.gaussian_kde(data, width, weights)
    points = RNG.normal(size=(theirs.d, 9))
    for name in ("covariance", "inv_cov", "neff", "weights", "d", "n"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours(points), theirs(points))
    np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points))
    np.testing.assert_allclose(jax.jit(lambda kde, x: kde.pdf(x))(ours, points), theirs.pdf(points))
    mean, cov = RNG.normal(size=theirs.d), positive(theirs.d)
    np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov))
    np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
    if theirs.d == 1:
        np.testing.assert_allclose(ours.integrate_box_1d(-0.5, np.inf), theirs.integrate_box_1d(-0.5, np.inf))


def test_gaussian_kde_is_a_tree_and_stays_as_it_is():
    kde = stats.gaussian_kde(SETS["plane"])
    assert len(jax.tree.leaves(kde)) == 5
    with pytest.raises(AttributeError):
        kde.dataset = 0
    slopes = jax.grad(lambda data: stats.gaussian_kde(data).logpdf(jnp.array([0.2]))[0])(jnp.array([0.0, 1.0, 3.0]))
    assert np.isfinite(slopes).all()
    far = stats.gaussian_kde(SETS["line"]).logpdf(jnp.array([100.0]))
    assert np.isfinite(far).all() and far[0] < -1e4


def test_resample():
    data = np.concatenate([np.full(50, -3.0), np.full(50, 5.0)]) + RNG.normal(size=100) * 0.1
    kde = stats.gaussian_kde(np.stack([data, RNG.normal(size=100) - data]), 0.1, np.repeat([0.25, 0.75], 50))
    drawn = kde.resample(jax.random.key(3), (20, 100))
    assert drawn.shape == (2, 20, 100) and kde.resample(jax.random.key(0)).shape == (2,)
    np.testing.assert_allclose(np.mean(drawn, axis=(1, 2)), [3.0, -3.0], atol=0.4)
    np.testing.assert_allclose(
        np.cov(drawn.reshape(2, -1)), np.cov(kde.dataset, aweights=kde.weights, bias=True), rtol=0.15
    )


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda: stats.gaussian_kde([1.0, 2.0])),
        (ValueError, lambda: stats.gaussian_kde(1.0)),
        (ValueError, lambda: stats.gaussian_kde(jnp.ones((2, 2, 2)))),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"], "wide")),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"], (1, 2))),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"], weights=jnp.ones(3))),
        (NotImplementedError, lambda: stats.gaussian_kde(SETS["line"] * 1j)),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"])(jnp.ones((2, 3)))),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"])(jnp.ones((1, 2, 3)))),
        (ValueError, lambda: stats.gaussian_kde(SETS["plane"]).integrate_box_1d(0, 1)),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"]).integrate_box_1d(jnp.ones(2), 1)),
        (ValueError, lambda: stats.gaussian_kde(SETS["line"]).integrate_kde(stats.gaussian_kde(SETS["plane"]))),
        (ValueError, lambda: stats.gaussian_kde(SETS["plane"]).integrate_gaussian(jnp.ones(3), jnp.eye(3))),
        (NotImplementedError, lambda: stats.gaussian_kde(SETS["line"]).set_bandwidth(1)),
        (NotImplementedError, lambda: stats.gaussian_kde(SETS["line"]).integrate_box(0, 1)),
    ],
)
def test_what_densities_refuse(error, call):
    with pytest.raises(error):
        call()


# ---- ranks, modes, errors of means

TIES = RNG.integers(0, 4, (5, 6))
GAPS = np.where(RNG.uniform(size=(5, 6)) < 0.2, np.nan, TIES).astype("float32")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method):
    for axis in (None, 0, 1):
        theirs = scipy.stats.rankdata(TIES, method, axis=axis)
        np.testing.assert_array_equal(
            stats.rankdata(TIES, method, axis=axis), theirs.ravel() if axis is None else theirs
        )
    for policy in ("propagate", "omit"):
        theirs = scipy.stats.rankdata(GAPS, method, axis=1, nan_policy=policy)
        np.testing.assert_array_equal(stats.rankdata(GAPS, method, axis=1, nan_policy=policy), theirs)
    compiled = jax.jit(lambda x: stats.rankdata(x, method, axis=0))(TIES)
    np.testing.assert_array_equal(compiled, scipy.stats.rankdata(TIES, method, axis=0))


def test_mode():
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            ours, theirs = (f.mode(TIES, axis=axis, keepdims=keepdims) for f in (stats, scipy.stats))
            np.testing.assert_array_equal(ours.mode, theirs.mode)
            np.testing.assert_array_equal(ours.count, theirs.count)
            assert np.shape(ours.mode) == np.shape(theirs.mode)
    ours, theirs = (f.mode(GAPS, axis=1, nan_policy="omit") for f in (stats, scipy.stats))
    np.testing.assert_array_equal(ours.mode, theirs.mode)
    np.testing.assert_array_equal(ours.count, theirs.count)
    value, count = stats.mode(jnp.array([np.nan, np.nan, 1.0]))
    assert np.isnan(value) and count == 2
    value, count = stats.mode(jnp.zeros((0, 2)))
    assert np.isnan(value).all() and (count == 0).all()
    assert [x.item() for x in jax.jit(stats.mode)(jnp.array([3, 1, 3]))] == [3, 2]


def test_sem():
    for axis, ddof, keepdims in [(0, 1, False), (1, 0, True), (None, 1, False)]:
        theirs = scipy.stats.sem(TIES, axis, ddof, keepdims=keepdims)
        np.testing.assert_allclose(stats.sem(TIES, axis, ddof, keepdims=keepdims), theirs, rtol=1e-5)
    theirs = scipy.stats.sem(GAPS, axis=1, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(GAPS, axis=1, nan_policy="omit"), theirs, rtol=1e-5)
    assert stats.sem(TIES, axis=None, keepdims=True).shape == (1, 1)
    np.testing.assert_array_equal(np.isnan(stats.sem(GAPS, axis=1)), np.isnan(GAPS).any(axis=1))


@pytest.mark.parametrize("function", [stats.rankdata, stats.mode, stats.sem])
def test_policies_and_axes(function):
    assert np.isfinite(jax.tree.leaves(function(TIES, axis=0, nan_policy="raise"))[0]).all()
    for array, options, error in [
        (GAPS, {"nan_policy": "raise"}, ValueError),
        (TIES, {"nan_policy": "other"}, ValueError),
        (TIES, {"axis": 2}, ValueError),
        (TIES, {"axis": (0, 1)}, TypeError),
        ([1.0, 2.0], {}, TypeError),
    ]:
        with pytest.raises(error):
            function(array, **options)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: function(x, nan_policy="raise"))(GAPS)


def test_methods_of_ranks():
    with pytest.raises(ValueError, match="method must be one of"):
        stats.rankdata(TIES, "other")


def test_a_density_of_floats_times_one_of_python_numbers_is_of_floats():
    data = np.linspace(-1, 1, 8).astype(np.float32)
    with jax.enable_x64(True):
        assert stats.gaussian_kde(data).integrate_gaussian(0.1, 0.5).dtype == np.float32
