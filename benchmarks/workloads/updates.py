"""Updates of parts at known places, ``u.at[1:-1].add(v)``: steps of differential equations, filters, borders."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax

    def second(u):
        return u[2:] - 2 * u[1:-1] + u[:-2]

    def laplacian(u):
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]

    def heat(u):
        return u.at[1:-1].add(0.1 * second(u))

    def wave(u, before):
        return (2 * u - before).at[1:-1, 1:-1].add(0.1 * laplacian(u)), u

    def waves(u):
        (u, _), _ = lax.scan(lambda state, _: (wave(*state), None), (u, u), None, length=20)
        return u

    def upwind(u):
        return u.at[1:].add(-0.3 * (u[1:] - u[:-1])).at[0].set(1.0)

    def steps(f, n):
        return lambda u: lax.scan(lambda u, _: (f(u), None), u, None, length=n)[0]

    def gradient(f):
        return lambda u: jax.grad(lambda u: jnp.sum(f(u) ** 2))(u)

    def sobel(x):
        gx = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
        gy = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
        return jnp.zeros_like(x).at[1:-1, 1:-1].set(jnp.sqrt(gx**2 + gy**2))

    def life(x):
        n, m = x.shape
        p = jnp.zeros((n + 2, m + 2), x.dtype).at[1:-1, 1:-1].set(x)
        around = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
        alive = sum(p[i : i + n, j : j + m] for i, j in around)
        return ((alive == 3) | ((alive == 2) & (x == 1))).astype(x.dtype)

    def cavity(u):
        u = u.at[1:-1, 1:-1].add(0.1 * laplacian(u))
        return u.at[0].set(u[1]).at[-1].set(u[-2]).at[:, 0].set(u[:, 1]).at[:, -1].set(u[:, -2])

    def differences(x):
        d = jnp.zeros_like(x).at[1:-1].set(0.5 * (x[2:] - x[:-2]))
        return d.at[0].set(x[1] - x[0]).at[-1].set(x[-1] - x[-2])

    def blocks(a, b):
        n = len(a)
        whole = jnp.zeros((2 * n, 2 * n)).at[:n, :n].set(a).at[:n, n:].set(b)
        return whole.at[n:, :n].set(-b).at[n:, n:].set(a)

    square = lambda n: [make.normal(n, n)]
    return {
        "heat equation, a step of 1e6": lambda: (heat, [make.normal(10**6)]),
        "heat equation, gradient of a step of 1e6": lambda: (gradient(heat), [make.normal(10**6)]),
        "advection, 100 steps of 30000": lambda: (steps(upwind, 100), [make.normal(30_000)]),
        "advection, gradient of 20 steps of 30000": lambda: (gradient(steps(upwind, 20)), [make.normal(30_000)]),
        "wave equation, 20 steps of 256 x 256": lambda: (waves, square(256)),
        "wave equation, gradient of 20 steps of 256 x 256": lambda: (gradient(waves), square(256)),
        "Sobel filter, 1024 x 1024": lambda: (sobel, square(1024)),
        "game of life, 20 steps of 256 x 256": lambda: (steps(life, 20), [make.ints(2, 256, 256)]),
        "cavity with borders, 20 steps of 256 x 256": lambda: (steps(cavity, 20), square(256)),
        "finite differences, 1e6": lambda: (differences, [make.normal(10**6)]),
        "matrix of four blocks, 256 x 256 each": lambda: (blocks, square(256) * 2),
        "gradient of a slice of 1e6 rows": lambda: (gradient(lambda x: x[10:-10]), [make.normal(10**6, 3)]),
    }
