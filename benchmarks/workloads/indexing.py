"""Gathers, scatters, sorting and cumulative operations."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax
    table = lambda: [make.normal(50_000, 128), make.ints(50_000, 8192)]
    square = lambda *indices: [make.normal(1000, 1000), *indices]
    along = lambda axis: lambda x, i: jnp.take_along_axis(x, i, axis)
    total = lambda f: lambda x, *rest: jnp.sum(jnp.sin(f(x, *rest)))

    def one_hot_product(i, table):
        return jax.nn.one_hot(i, 1000) @ table

    def selected(x):
        return x[jnp.nonzero(x > 1, size=200_000)]

    return {
        "embedding lookup": lambda: (lambda t, i: t[i], table()),
        "embedding gradient": lambda: (
            lambda t, i: jax.grad(lambda t: jnp.sum(jnp.sin(t[i])))(t),
            table(),
        ),
        "scatter-add, 1e6 into 1e4": lambda: (
            lambda i, x: jnp.zeros(10_000).at[i].add(x),
            [make.ints(10_000, 10**6), make.uniform(10**6)],
        ),
        "sort, 1e6": lambda: (jnp.sort, [make.permutation(10**6)]),
        "argsort, 1e6": lambda: (jnp.argsort, [make.permutation(10**6)]),
        "top-k, 1e6": lambda: (lambda x: lax.top_k(x, 100), [make.permutation(10**6)]),
        "median, 1e6": lambda: (jnp.median, [make.permutation(10**6)]),
        "cumsum, 1e6": lambda: (jnp.cumsum, [make.uniform(10**6, low=-1)]),
        "unique, 1e5": lambda: (lambda x: jnp.unique(x, size=1000), [make.ints(1000, 10**5)]),
        "histogram, 1e6": lambda: (lambda x: jnp.histogram(x, 64)[0], [make.uniform(10**6)]),
        "transpose, 3000 x 3000": lambda: (lambda x: x.T + 1, [make.normal(3000, 3000)]),
        "take_along_axis, last axis, 1e6": lambda: (along(1), square(make.ints(1000, 1000, 1000))),
        "take_along_axis, first axis, gradient": lambda: (
            jax.grad(total(along(0))),
            square(make.ints(1000, 100, 1000)),
        ),
        "500 columns of 1000": lambda: (lambda x, i: x[:, i], square(make.ints(1000, 500))),
        "1e5 elements of a matrix": lambda: (
            lambda x, i, j: x[i, j],
            square(make.ints(1000, 100_000), make.ints(1000, 100_000)),
        ),
        "one-hot product, 4096 x 1000 x 64": lambda: (
            one_hot_product,
            [make.ints(1000, 4096), make.normal(1000, 64)],
        ),
        "selection by a mask, 1e6": lambda: (selected, [make.normal(10**6)]),
        "selection by a mask, gradient, 1e6": lambda: (jax.grad(total(selected)), [make.normal(10**6)]),
    }
