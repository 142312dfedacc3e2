"""Elementwise chains and reductions of flat arrays."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax, erf = jax.numpy, jax.lax, jax.lax.erf
    sizes = {"1e3": 10**3, "1e5": 10**5, "1e7": 10**7}

    def chain(x):
        return jnp.exp(-x * x) * jnp.sin(x) + jnp.tanh(x) * 0.5

    def black_scholes(s, k, t, r, v):
        cdf = lambda x: 0.5 * (1 + erf(x * 0.7071067811865476))
        root = v * jnp.sqrt(t)
        d1 = (jnp.log(s / k) + (r + 0.5 * v * v) * t) / root
        call = s * cdf(d1) - k * jnp.exp(-r * t) * cdf(d1 - root)
        return call, call - s + k * jnp.exp(-r * t)

    def mandelbrot(cr, ci):
        def step(_, state):
            zr, zi, n = state
            inside = zr * zr + zi * zi < 4
            next_r, next_i = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            return jnp.where(inside, next_r, zr), jnp.where(inside, next_i, zi), n + inside

        return lax.fori_loop(0, 100, step, (cr * 0, ci * 0, jnp.zeros(cr.shape, jnp.int32)))[2]

    def plane():
        axis = jnp.linspace(-2, 1, 300), jnp.linspace(-1.5, 1.5, 300)
        return jnp.meshgrid(*axis)

    def market(n):
        bounds = ((50, 150), (50, 150), (0.2, 2), (0, 0.1), (0.1, 0.5))
        return [make.uniform(n, low=low, high=high) for low, high in bounds]

    flat = {
        "x * 2 + 1": lambda x: x * 2 + 1,
        "chain of exp, sin, tanh": chain,
        "sum": jnp.sum,
        "max": jnp.max,
    }
    out = {
        f"{name}, {label}": lambda f=f, n=n: (f, [make.uniform(n)])
        for name, f in flat.items()
        for label, n in sizes.items()
    }
    return out | {
        "argmax, 1e7": lambda: (jnp.argmax, [make.normal(10**7)]),
        "sum of columns, 1e7": lambda: (lambda x: jnp.sum(x, 0), [make.normal(10_000, 1000)]),
        "max of columns, 1e7": lambda: (lambda x: jnp.max(x, 0), [make.normal(10_000, 1000)]),
        "max of middle axis, 4e6": lambda: (lambda x: jnp.max(x, 1), [make.normal(4, 1000, 1000)]),
        "argmax of rows of 10, 1e6": lambda: (lambda x: jnp.argmax(x, 1), [make.normal(100_000, 10)]),
        "gradient of a slice, 1e6": lambda: (
            jax.grad(lambda x: jnp.sum(jnp.sin(x[100:120]))),
            [make.normal(100_000, 10)],
        ),
        "mean and variance, 1e7": lambda: (lambda x: (jnp.mean(x), jnp.var(x)), [make.normal(10**7)]),
        "Black-Scholes, 1e6": lambda: (black_scholes, market(10**6)),
        "Mandelbrot, 300 x 300, 100 steps": lambda: (mandelbrot, plane()),
    }
