"""Loops: recurrences, simulations, filters, samplers and solvers."""

import importlib

from workloads import steps


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax
    ode = importlib.import_module(f"{jax.__name__}.experimental.ode")

    def cheap_scan(x):
        return lax.scan(lambda c, x: (0.9 * c + x, c * c), 0.0, x)

    def lstm(params, xs, h):
        w, u, b = params
        n = h.shape[-1]

        def step(state, x):
            h, c = state
            gates = x @ w + h @ u + b
            i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
            sigmoid = lambda z: 0.5 * jnp.tanh(0.5 * z) + 0.5
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(step, (h, h), xs)[1]

    def lstm_arguments(batch, size):
        weights = [make.normal(size, 4 * size, scale=0.1) for _ in range(2)]
        return [[*weights, make.normal(4 * size)], make.normal(64, batch, size), make.normal(batch, size)]

    def lstm_loss(params, xs, h):
        return jnp.mean(lstm(params, xs, h) ** 2)

    def n_body(x, v):
        def step(_, state):
            x, v = state
            d = x[None] - x[:, None]
            force = jnp.sum(d * (jnp.sum(d * d, -1, keepdims=True) + 0.1) ** -1.5, 1)
            v = v + 0.001 * force
            return x + 0.001 * v, v

        return lax.fori_loop(0, 50, step, (x, v))

    def lorenz(y):
        x, y, z = y
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def rk4(y, h):
        def step(y, _):
            k1 = lorenz(y)
            k2 = lorenz(y + h / 2 * k1)
            k3 = lorenz(y + h / 2 * k2)
            k4 = lorenz(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y

        return lax.scan(step, y, None, length=1000)[1]

    def bogacki_shampine(state):
        """A step of order 3(2) with step control."""
        t, y, h = state
        k1 = lorenz(y)
        k2 = lorenz(y + h / 2 * k1)
        k3 = lorenz(y + 3 / 4 * h * k2)
        new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        error = h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * lorenz(new))
        size = jnp.max(jnp.abs(error)) / 1e-4
        good = size <= 1
        factor = lax.stop_gradient(jnp.clip(0.9 * (size + 1e-10) ** (-1 / 3), 0.2, 5.0))
        return jnp.where(good, t + h, t), jnp.where(good, new, y), h * factor

    def adaptive(y):
        return lax.while_loop(lambda s: s[0] < 1.0, bogacki_shampine, (0.0, y, 0.01))[1]

    def adaptive_bounded(y):
        """As many steps as are ever needed: a loop that JAX differentiates backwards."""

        def step(state, _):
            new = bogacki_shampine(state)
            going = state[0] < 1.0
            return jax.tree.map(lambda a, b: jnp.where(going, a, b), new, state), None

        return lax.scan(step, (jnp.float32(0), y, jnp.float32(0.01)), None, length=400)[0][1]

    def updates(x):
        change = lambda k, x: x.at[k + 1].set(x[k] * 0.5 + 1.0)
        return lax.fori_loop(0, 1000, change, x)

    def kalman(ys):
        f = jnp.array([[1, 0.1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1.0]])
        h = jnp.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0]])
        q, r = 0.01 * jnp.eye(4), 0.1 * jnp.eye(2)

        def step(state, y):
            m, p = f @ state[0], f @ state[1] @ f.T + q
            s = h @ p @ h.T + r
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = jnp.stack([jnp.stack([s[1, 1], -s[0, 1]]), jnp.stack([-s[1, 0], s[0, 0]])]) / det
            gain = p @ h.T @ inverse
            m = m + gain @ (y - h @ m)
            p = p - gain @ h @ p
            return (m, p), m

        return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1]

    def hmc(q, noise, uniforms):
        energy = lambda q: 0.5 * jnp.sum(q * q) + 0.1 * jnp.sum(q**4)
        gradient = jax.grad(energy)

        def sample(q, draws):
            p0, u = draws

            def leap(_, state):
                q, p = state
                p = p - 0.05 * gradient(q)
                q = q + 0.1 * p
                return q, p - 0.05 * gradient(q)

            new, p = lax.fori_loop(0, 10, leap, (q, p0))
            change = energy(q) + 0.5 * p0 @ p0 - energy(new) - 0.5 * p @ p
            return jnp.where(jnp.log(u) < change, new, q), None

        return lax.scan(sample, q, (noise, uniforms))[0]

    def newton(a):
        unfinished = lambda s: jnp.abs(s * s - a) > 1e-4 * a
        return lax.while_loop(unfinished, lambda s: 0.5 * (s + a / s), a)

    def conjugate_gradient(a, b):
        def step(_, state):
            x, r, p, rr = state
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / rr * p, new

        return lax.fori_loop(0, 20, step, (b * 0, b, b, b @ b))[0]

    def likelihood(log_scale, x, y):
        """The negative log-likelihood of a Gaussian process."""
        d = (x[:, None] - x[None]) * jnp.exp(-log_scale)
        k = jnp.exp(-0.5 * d * d) + 0.1 * jnp.eye(x.shape[0])
        chol = jnp.linalg.cholesky(k)
        z = lax.linalg.triangular_solve(chol, y[:, None], left_side=True, lower=True)
        return 0.5 * jnp.sum(z * z) + jnp.sum(jnp.log(jnp.diagonal(chol)))

    def hunt(y, t):
        """Predators and prey, as Lotka and Volterra have them."""
        return jnp.stack([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    def relax(y, t, w):
        """A network of neurons."""
        return jnp.tanh(w @ y) - y

    hunted = lambda y: ode.odeint(hunt, y, jnp.linspace(0.0, 10.0, 100))
    relaxed = lambda y, w: ode.odeint(relax, y, jnp.linspace(0.0, 10.0, 100), w)
    total = lambda f: lambda *args: jnp.sum(f(*args))
    network = lambda: [make.normal(64), make.normal(64, 64, scale=0.1)]
    lorenz_start = lambda: jnp.array([1.0, 1.0, 20.0])
    chains = lambda: [make.normal(100, 8), make.normal(100, 50, 8), make.uniform(100, 50)]
    return {
        "scan of 1e5 cheap steps": lambda: (cheap_scan, [make.normal(10**5)]),
        "LSTM, batch 1, size 32": lambda: (lstm, lstm_arguments(1, 32)),
        "LSTM, batch 16, size 128": lambda: (lstm, lstm_arguments(16, 128)),
        "LSTM gradient, batch 16, size 128": lambda: (jax.grad(lstm_loss), lstm_arguments(16, 128)),
        "n-body, 100 bodies, 50 steps": lambda: (n_body, [make.normal(100, 3), make.normal(100, 3)]),
        "Runge-Kutta 4, 1000 steps": lambda: (rk4, [lorenz_start(), 0.001]),
        "Runge-Kutta 4 gradient": lambda: (
            jax.grad(lambda y, h: jnp.sum(rk4(y, h)[-1])),
            [lorenz_start(), 0.0005],
        ),
        "adaptive ODE solver": lambda: (adaptive, [lorenz_start()]),
        "adaptive ODE solver, forward derivative": lambda: (jax.jacfwd(adaptive), [lorenz_start()]),
        "adaptive ODE solver, gradient": lambda: (
            jax.grad(lambda y: jnp.sum(adaptive_bounded(y))),
            [lorenz_start()],
        ),
        "odeint, predators and prey": lambda: (hunted, [jnp.array([10.0, 5.0])]),
        "odeint, predators and prey, gradient": lambda: (jax.grad(total(hunted)), [jnp.array([10.0, 5.0])]),
        "odeint, 100 hunts": lambda: (jax.vmap(hunted), [make.uniform(100, 2, low=1, high=10)]),
        "odeint, 64 neurons": lambda: (relaxed, network()),
        "odeint, 64 neurons, gradient": lambda: (jax.grad(total(relaxed), (0, 1)), network()),
        "1000 updates of 400 KB": lambda: (updates, [make.normal(100_000)]),
        "Kalman filter, 1000 steps": lambda: (kalman, [make.normal(1000, 2)]),
        "Kalman filter gradient, 1000 steps": lambda: (
            jax.grad(lambda ys: jnp.sum(kalman(ys) ** 2)),
            [make.normal(1000, 2)],
        ),
        "HMC, 100 chains": lambda: (jax.vmap(hmc), chains()),
        "vmap of while_loop, 1e4": lambda: (jax.vmap(newton), [make.uniform(10_000, low=1, high=100)]),
        "conjugate gradient, 512": lambda: (conjugate_gradient, [make.definite(512), make.normal(512)]),
        "Gaussian process with gradient, 200": lambda: (
            jax.value_and_grad(likelihood),
            [jnp.float32(0.1), make.normal(200), make.normal(200)],
        ),
        **steps.workloads(jax, make),
    }
