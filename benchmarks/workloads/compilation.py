"""Programs whose compilation is timed: from the function to machine code, without caches."""

from workloads import loops, models


def workloads(jax, make):
    """Name -> function that makes (function, arguments); what is timed is their compilation."""
    jnp = jax.numpy

    def chain(n):
        def f(x):
            for k in range(n // 3):
                x = jnp.sin(x) * (1 + 0.001 * k) + 0.5
            return x

        return f, [make.normal(1000)]

    def unrolled(x):
        for _ in range(500):
            x = 0.5 * (x + 2.0 / x)
        return x

    steps, recurrent = models.workloads(jax, make), loops.workloads(jax, make)
    return {
        "compile MLP training step": steps["MLP training step, batch 32"],
        "compile small GPT step": steps["small GPT training step"],
        "compile LSTM gradient": recurrent["LSTM gradient, batch 16, size 128"],
        "compile 250 equations": lambda: chain(250),
        "compile 1000 equations": lambda: chain(1000),
        "compile 500 unrolled iterations": lambda: (unrolled, [make.uniform(10, low=1)]),
    }
