"""Reductions over segments."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, ops = jax.numpy, jax.ops
    many = lambda: [make.uniform(10**6), make.ints(10_000, 10**6)]
    ordered = lambda: [make.uniform(10**6), jnp.sort(make.ints(10_000, 10**6))]
    rows = lambda: [make.normal(60_000, 32), make.ints(1000, 60_000)]

    def softmax(x, ids):
        spread = jnp.exp(x - ops.segment_max(x, ids, 10_000)[ids])
        return spread / ops.segment_sum(spread, ids, 10_000)[ids]

    return {
        "segment_sum, 1e6 in 1e4": lambda: (lambda x, i: ops.segment_sum(x, i, 10_000), many()),
        "segment_prod, 1e6 in 1e4": lambda: (lambda x, i: ops.segment_prod(x, i, 10_000), many()),
        "segment_max, 1e6 in 1e4": lambda: (lambda x, i: ops.segment_max(x, i, 10_000), many()),
        "segment_sum, 1e6 in order": lambda: (lambda x, i: ops.segment_sum(x, i, 10_000, True), ordered()),
        "segment_max, 1e6 in order": lambda: (lambda x, i: ops.segment_max(x, i, 10_000, True), ordered()),
        "segment_sum of rows, 60000 x 32": lambda: (lambda x, i: ops.segment_sum(x, i, 1000), rows()),
        "segment_sum, gradient": lambda: (
            lambda x, i: jax.grad(lambda x: jnp.sum(jnp.sin(ops.segment_sum(x, i, 10_000))))(x),
            many(),
        ),
        "segment_max, gradient": lambda: (
            lambda x, i: jax.grad(lambda x: jnp.sum(jnp.sin(ops.segment_max(x, i, 10_000))))(x),
            many(),
        ),
        "softmax over segments": lambda: (softmax, many()),
    }
