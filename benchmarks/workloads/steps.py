"""More loops, each of a kind: dynamic programs, recurrences of matrices, choices in loops, nested ones, chains."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax

    def viterbi(transition, emission):
        """The likeliest states: the best one before each, and the way back."""

        def step(score, seen):
            scores = score[:, None] + transition
            return jnp.max(scores, 0) + seen, jnp.argmax(scores, 0)

        score, before = lax.scan(step, emission[0], emission[1:])

        def back(state, row):
            state = row[state]
            return state, state

        return lax.scan(back, jnp.argmax(score), before, reverse=True)[1]

    def forward(transition, emission):
        """The log-likelihood of a hidden Markov model."""

        def step(score, seen):
            return jax.scipy.special.logsumexp(score[:, None] + transition, axis=0) + seen, None

        return jax.scipy.special.logsumexp(lax.scan(step, emission[0], emission[1:])[0])

    def edit_distance(a, b):
        """Rows of a table, each of which is a loop over its cells."""

        def row(above, x):
            def cell(left, given):
                y, up, diagonal = given
                new = jnp.minimum(jnp.minimum(left, up) + 1, diagonal + (x != y))
                return new, new

            first = above[0] + 1
            rest = lax.scan(cell, first, (b, above[1:], above[:-1]))[1]
            return jnp.concatenate([first[None], rest]), None

        return lax.scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]

    def linear_attention(q, k, v):
        """A matrix is what is remembered."""

        def step(state, given):
            q, k, v = given
            state = 0.95 * state + k[:, None] * v[None]
            return state, q @ state

        return lax.scan(step, jnp.zeros((q.shape[1], v.shape[1])), (q, k, v))[1]

    def choices(x):
        """Each step does one thing or another."""

        def step(total, x):
            total = lax.cond(x > 0, lambda t: 0.9 * t + x, lambda t: jnp.sin(t) - x, total)
            return total, total

        return lax.scan(step, jnp.float32(0), x)[1]

    def power_iteration(a, v):
        def step(_, v):
            w = a @ v
            return w / jnp.linalg.norm(w)

        v = lax.fori_loop(0, 50, step, v)
        return v @ a @ v

    def metropolis(key, x):
        """A chain that draws its random numbers as it goes."""
        log_density = lambda x: -0.5 * jnp.sum(x * x) - 0.1 * jnp.sum(x**4)

        def step(state, key):
            x, old = state
            move, accept = jax.random.split(key)
            y = x + 0.5 * jax.random.normal(move, x.shape)
            new = log_density(y)
            good = jnp.log(jax.random.uniform(accept)) < new - old
            return (jnp.where(good, y, x), jnp.where(good, new, old)), jnp.where(good, y, x)

        return lax.scan(step, (x, log_density(x)), jax.random.split(key, 500))[1]

    def bisect(target):
        """A root of a cubic between bounds that close in on it."""

        def halve(bounds):
            low, high = bounds
            middle = 0.5 * (low + high)
            below = middle**3 + middle < target
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        return lax.while_loop(lambda s: s[1] - s[0] > 1e-3, halve, (0.0 * target, 10.0 + 0.0 * target))[0]

    def eliminate(a):
        """L and U in one matrix: rows and columns at places that the loop counts."""
        rows = jnp.arange(a.shape[0])

        def step(k, a):
            factors = jnp.where(rows > k, a[:, k] / a[k, k], 0.0)
            a = a - factors[:, None] * jnp.where(rows > k, a[k], 0.0)
            return a.at[:, k].set(jnp.where(rows > k, factors, a[:, k]))

        return lax.fori_loop(0, a.shape[0], step, a)

    def train(weights, xs, ys):
        """Epochs of batches, with a gradient in each."""
        loss = lambda w, x, y: jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

        def step(w, batch):
            return [a - 0.1 * d for a, d in zip(w, jax.grad(loss)(w, *batch))], None

        epoch = lambda w, _: (lax.scan(step, w, (xs, ys))[0], None)
        return lax.scan(epoch, weights, None, length=10)[0]

    def total(f):
        return lambda *args: jnp.sum(f(*args) ** 2)

    sequence = lambda states, length: [make.normal(states, states), make.normal(length, states)]
    heads = lambda: [make.normal(256, 32) for _ in range(3)]
    network = lambda: [make.normal(10, 32, scale=0.3), make.normal(32, 1, scale=0.3)]
    return {
        "Viterbi, 32 states, 500 steps": lambda: (viterbi, sequence(32, 500)),
        "hidden Markov model, gradient": lambda: (jax.grad(forward, (0, 1)), sequence(16, 500)),
        "edit distance, 100 x 100": lambda: (edit_distance, [make.ints(4, 100), make.ints(4, 100)]),
        "linear attention gradient, 256 steps": lambda: (jax.grad(total(linear_attention), (0, 1, 2)), heads()),
        "scan of 1e4 choices": lambda: (choices, [make.normal(10**4)]),
        "power iteration, 256": lambda: (power_iteration, [make.definite(256), make.normal(256)]),
        "Metropolis, 500 steps": lambda: (metropolis, [jax.random.PRNGKey(0), make.normal(4)]),
        "vmap of bisection, 1e3": lambda: (jax.vmap(bisect), [make.uniform(1000, high=50)]),
        "elimination, 64 x 64": lambda: (eliminate, [make.definite(64)]),
        "gradient steps, 10 epochs of 20 batches": lambda: (
            train,
            [network(), make.normal(20, 16, 10), make.normal(20, 16, 1)],
        ),
    }
