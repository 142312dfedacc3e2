"""Gathers, scatters, sorting and cumulative operations."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax
    table = lambda: [make.normal(50_000, 128), make.ints(50_000, 8192)]
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
    }
