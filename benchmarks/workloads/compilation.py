"""Programs whose compilation is timed: from the function to its first result, without caches."""

from workloads import loops, models

LONG = ("compile 2000 equations", "compile 4000 equations")  # JAX takes minutes


def workloads(jax, make):
    """Name -> function that makes (function, arguments); what is timed is their compilation and first run."""
    jnp = jax.numpy

    def chain(x):
        for k in range(100):
            x = jnp.sin(x) * (1 + 0.001 * k) + 0.5
        return x

    def equations(n):
        def f(x, w):
            for k in range(n // 10):
                y = x * (1 + 0.01 * k)
                y = (y - jnp.mean(y, -1, keepdims=True)) @ w
                x = 0.9 * x + 0.1 * jnp.tanh(y)
            return x

        return lambda: (f, [make.normal(8, 16), make.normal(16, 16, scale=0.1)])

    def unrolled(x):
        for _ in range(500):
            x = 0.5 * (x + 2.0 / x)
        return x

    steps, recurrent = models.workloads(jax, make), loops.workloads(jax, make)
    return {
        "compile MLP training step": steps["MLP training step, batch 32"],
        "compile small GPT step": steps["small GPT training step"],
        "compile 12-layer transformer step": steps["12-layer transformer training step"],
        "compile small ResNet step": steps["small ResNet training step"],
        "compile LSTM gradient": recurrent["LSTM gradient, batch 16, size 128"],
        "compile chain of 300 operations": lambda: (chain, [make.normal(1000)]),
        "compile 500 unrolled iterations": lambda: (unrolled, [make.uniform(10, low=1)]),
        **{f"compile {n} equations": equations(n) for n in (250, 500, 1000, 2000, 4000)},
    }
