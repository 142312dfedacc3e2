"""Workloads that do little but move numbers: arrays beyond the caches are read once and written once."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax
    flat = lambda: make.normal(10**7)
    matrix = lambda: make.normal(10_000, 1000)

    def adam(w, g, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.001 * m * lax.rsqrt(v + 1e-8), m, v

    table = lambda: make.normal(100_000, 256)
    return {
        "five arrays added, 5e6": lambda: (
            lambda *xs: sum(xs[1:], xs[0]),
            [make.normal(5 * 10**6) for _ in range(5)],
        ),
        "step of Adam, 5e6": lambda: (adam, [make.uniform(5 * 10**6) for _ in range(4)]),
        "concatenation, 1e7": lambda: (
            lambda x, y: jnp.concatenate([x, y], axis=1),
            [make.normal(10_000, 400), make.normal(10_000, 600)],
        ),
        "pad of an image, 1e7": lambda: (lambda x: jnp.pad(x, 1), [make.normal(3000, 3333)]),
        "columns reversed, 1e7": lambda: (lambda x: x[:, ::-1], [matrix()]),
        "swapped axes, 1e7": lambda: (lambda x: jnp.swapaxes(x, 0, 1), [make.normal(100, 1000, 100)]),
        "gather of 40000 rows": lambda: (lambda t, i: t[i], [table(), make.ints(100_000, 40_000)]),
        "scatter of 40000 rows": lambda: (
            lambda i, x: jnp.zeros((100_000, 256)).at[i].add(x),
            [make.ints(100_000, 40_000), make.normal(40_000, 256)],
        ),
        "choice by a mask, 1e7": lambda: (lambda x, y: jnp.where(x > y, x, 0.5), [flat(), flat()]),
        "to bfloat16, 2e7": lambda: (lambda x: x.astype(jnp.bfloat16), [make.normal(2 * 10**7)]),
        "sum and sum of squares, 1e7": lambda: (lambda x: (jnp.sum(x), jnp.sum(x * x)), [flat()]),
        "least and greatest of rows, 1e7": lambda: (lambda x: (jnp.min(x, 1), jnp.max(x, 1)), [matrix()]),
        "differences, 1e7": lambda: (jnp.diff, [flat()]),
    }
