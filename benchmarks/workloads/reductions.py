"""Reductions: over any axes and layouts, of products, gathers and comparisons, several of one operand."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp = jax.numpy

    def moments(x):
        return jnp.sum(x, 1), jnp.max(x, 1), jnp.min(x, 1), jnp.sum(x * x, 1)

    def comparisons(x):
        return jnp.any(x > 4, 1), jnp.all(x < 4, 1), jnp.sum(x > 0, 1)

    def nearest(a, b):
        return jnp.min(jnp.sum((a[:, None] - b) ** 2, -1), 1)

    square = lambda: make.normal(1000, 1000)
    return {
        "four reductions of rows, 1e6": lambda: (moments, [square()]),
        "max and argmax of columns, 1e6": lambda: (lambda x: (jnp.max(x, 0), jnp.argmax(x, 0)), [square()]),
        "comparisons of rows, 1e6": lambda: (comparisons, [square()]),
        "sum of the outer and the last axis, 1e6": lambda: (
            lambda x: jnp.sum(x, (0, 2)),
            [make.normal(64, 128, 128)],
        ),
        "sum of a product with a transpose, 1e6": lambda: (lambda a, b: jnp.sum(a * b.T), [square(), square()]),
        "norms of 1e5 rows of 4": lambda: (lambda x: jnp.sqrt(jnp.sum(x * x, 1)), [make.normal(100_000, 4)]),
        "means of 16 gathered rows": lambda: (
            lambda table, i: jnp.mean(table[i], 1),
            [make.normal(50_000, 64), make.ints(50_000, 1024, 16)],
        ),
        "nearest of 1000 points in 3 dimensions": lambda: (nearest, [make.normal(1000, 3), make.normal(1000, 3)]),
    }
