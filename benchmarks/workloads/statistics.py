"""Statistics and analysis by `scipy`: densities, ranks, estimates from samples, interpolation, minimisation."""

import importlib


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp = jax.numpy
    parts = ("stats", "optimize", "interpolate", "cluster.vq")
    stats, optimize, interpolate, vq = (importlib.import_module(f"{jax.__name__}.scipy.{part}") for part in parts)

    def log_likelihood(x, loc, scale):
        return jnp.sum(stats.norm.logpdf(x, loc, scale))

    def rosenbrock(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def steps(x):
        """A hundred; a little later JAX's search gives up."""
        return optimize.minimize(rosenbrock, x, method="BFGS", options={"maxiter": 100}).nit

    def regression(features, labels):
        """Logistic regression with a prior, fitted."""

        def loss(w):
            return jnp.sum(jnp.logaddexp(0, -labels * (features @ w))) + jnp.sum(w**2)

        return optimize.minimize(loss, jnp.zeros(features.shape[1]), method="BFGS").fun

    def interpolated(values, points):
        grid = tuple(jnp.linspace(0, 1, n) for n in values.shape)
        return interpolate.RegularGridInterpolator(grid, values)(points)

    def signs(n):
        return jnp.sign(make.normal(n))

    return {
        "norm.logpdf of 1e6, summed, gradient": lambda: (
            jax.grad(log_likelihood, (0, 1, 2)),
            [make.normal(1_000_000), make.normal(), make.uniform(low=1, high=2)],
        ),
        "gamma.logpdf of 1e5": lambda: (
            stats.gamma.logpdf,
            [make.uniform(100_000, low=0.1, high=5), make.uniform(100_000, low=0.5, high=5)],
        ),
        "truncnorm.logpdf of 1e5": lambda: (
            stats.truncnorm.logpdf,
            [make.uniform(100_000, low=-1, high=1), make.uniform(low=-2, high=-1), make.uniform(low=1, high=2)],
        ),
        "multivariate_normal.logpdf, 1e4 of 50": lambda: (
            stats.multivariate_normal.logpdf,
            [make.normal(10_000, 50), make.normal(50), make.definite(50)],
        ),
        "gaussian_kde, 2000 of 5000": lambda: (
            lambda data, points: stats.gaussian_kde(data)(points),
            [make.normal(5000), make.normal(2000)],
        ),
        "gaussian_kde.logpdf, 2000 of 5000 in 3 dimensions": lambda: (
            lambda data, points: stats.gaussian_kde(data).logpdf(points),
            [make.normal(3, 5000), make.normal(3, 2000)],
        ),
        "rankdata of 1e5": lambda: (stats.rankdata, [make.permutation(100_000)]),
        "mode of 1000 x 1000": lambda: (lambda x: stats.mode(x, axis=1).count, [make.ints(50, 1000, 1000)]),
        "RegularGridInterpolator, 1e6 in 256 x 256": lambda: (
            interpolated,
            [make.normal(256, 256), make.uniform(1_000_000, 2)],
        ),
        "vq, 1e5 of 16 by 64": lambda: (
            lambda x, codes: vq.vq(x, codes)[1],
            [make.normal(100_000, 16), make.normal(64, 16)],
        ),
        "BFGS of Rosenbrock, 100 dimensions": lambda: (steps, [jnp.linspace(0, 1, 100)]),
        "logistic regression by BFGS": lambda: (regression, [make.normal(2000, 30), signs(2000)]),
    }
