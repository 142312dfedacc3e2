"""Small programs of many domains, as users write them: chosen and written before any of them was measured."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax, nn, random = jax.numpy, jax.lax, jax.nn, jax.random

    def neighbours(x):
        return jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)

    def satisfied(variables, negated):
        """How many assignments of 16 variables satisfy all clauses, and the first that does."""
        numbers = jnp.arange(2**16, dtype=jnp.uint32)
        bits = ((numbers[:, None] >> jnp.arange(16, dtype=jnp.uint32)) & 1).astype(bool)
        found = jnp.all(jnp.any(bits[:, variables] ^ (negated == 1), -1), -1)
        return found.sum(), jnp.argmax(found)

    def heat_bath(states, keys):
        """Sweeps over Potts models, each a chain of its own."""

        def chain(states, key):
            def sweep(states, key):
                drawn = random.categorical(key, 0.9 * neighbours(nn.one_hot(states, 4)))
                moves = random.bernoulli(random.fold_in(key, 1), 0.5, states.shape)
                return jnp.where(moves, drawn, states), None

            return lax.scan(sweep, states, random.split(key, 10))[0]

        return jax.vmap(chain)(states, keys)

    def least_squares(ratings, seen, features):
        """The users' half of a step of alternating least squares."""

        def user(ratings, seen):
            own = features * seen[:, None]
            return jnp.linalg.solve(own.T @ features + 0.1 * jnp.eye(features.shape[1]), own.T @ ratings)

        return jax.vmap(user)(ratings, seen)

    def split(x, y):
        """The best split of a regression tree, by sorting every feature."""
        order = jnp.argsort(x, 0)
        n, left = x.shape[0], jnp.arange(1, x.shape[0] + 1)[:, None].astype(x.dtype)
        sums, squares = jnp.cumsum(y[order], 0), jnp.cumsum(y[order] ** 2, 0)
        right = jnp.maximum(n - left, 1)
        cost = squares - sums**2 / left + (squares[-1] - squares) - (sums[-1] - sums) ** 2 / right
        return jnp.argmin(jnp.where(left < n, cost, jnp.inf)), cost.min()

    def ctc(logits, labels):
        """Connectionist temporal classification, of a batch."""

        def one(logits, labels):
            states = 2 * labels.shape[0] + 1
            extended = jnp.zeros(states, jnp.int32).at[1::2].set(labels)
            skips = jnp.zeros(states, bool).at[2:].set((extended[2:] != 0) & (extended[2:] != extended[:-2]))
            first = jnp.full(states, -1e5).at[0].set(logits[0, 0]).at[1].set(logits[0, labels[0]])

            def step(alpha, row):
                before = jnp.concatenate([jnp.full(1, -1e5), alpha[:-1]])
                earlier = jnp.where(skips, jnp.concatenate([jnp.full(2, -1e5), alpha[:-2]]), -1e5)
                return jnp.logaddexp(jnp.logaddexp(alpha, before), earlier) + row[extended], None

            alpha = lax.scan(step, first, logits[1:])[0]
            return -jnp.logaddexp(alpha[-1], alpha[-2])

        return jax.vmap(one)(nn.log_softmax(logits), labels).mean()

    def forces(x):
        """Pressure forces between particles of a smoothed fluid."""
        apart = x[:, None] - x[None]
        r = jnp.sqrt(jnp.sum(apart * apart, -1) + 1e-12)
        q = r / 0.1
        near, far = 1 - 1.5 * q**2 + 0.75 * q**3, 0.25 * (2 - q) ** 3
        density = jnp.sum(jnp.where(q < 1, near, jnp.where(q < 2, far, 0.0)), 1)
        pressure = density / 5 - 1
        slope = jnp.where(q < 1, -3 * q + 2.25 * q**2, jnp.where(q < 2, -0.75 * (2 - q) ** 2, 0.0))
        return -jnp.sum(((pressure[:, None] + pressure) * slope / r)[..., None] * apart, 1)

    def search(values):
        """Simulations in trees that are arrays, of a batch."""
        visits, total = jnp.zeros(64), jnp.zeros(64)
        children, parents = jnp.full((64, 3), -1), jnp.full(64, -1)

        def simulate(k, tree):
            children, parents, visits, total = tree

            def down(state):
                node, _, _ = state
                kids = children[node]
                n = jnp.maximum(visits[kids], 1)
                bound = total[kids] / n + jnp.sqrt(jnp.log(visits[node] + 1) / n)
                action = jnp.argmax(jnp.where(kids >= 0, bound, 1e6 - jnp.arange(3)))
                return jnp.where(kids[action] >= 0, kids[action], node), action, kids[action] < 0

            def up(state):
                node, visits, total = state
                return parents[node], visits.at[node].add(1), total.at[node].add(value)

            node, action, _ = lax.while_loop(lambda s: ~s[2], down, (0, 0, False))
            children, parents = children.at[node, action].set(k + 1), parents.at[k + 1].set(node)
            value = values[k + 1, action]
            _, visits, total = lax.while_loop(lambda s: s[0] >= 0, up, (k + 1, visits, total))
            return children, parents, visits, total

        return lax.fori_loop(0, 50, simulate, (children, parents, visits, total))[2:]

    def distances(cost):
        """The shortest ways over a grid from its corner, relaxed until nothing changes."""

        def relax(state):
            d, _ = state
            p = jnp.pad(d, 1, constant_values=jnp.inf)
            least = jnp.minimum(jnp.minimum(p[2:, 1:-1], p[:-2, 1:-1]), jnp.minimum(p[1:-1, 2:], p[1:-1, :-2]))
            new = jnp.minimum(d, least + cost)
            return new, jnp.any(new < d)

        start = jnp.full(cost.shape, jnp.inf).at[0, 0].set(0.0)
        return lax.while_loop(lambda s: s[1], relax, (start, True))[0]

    def median(image):
        """A median filter of three by three."""
        p = jnp.pad(image, 1, mode="edge")
        h, w = image.shape
        return jnp.median(jnp.stack([p[i : i + h, j : j + w] for i in range(3) for j in range(3)]), 0)

    keys = lambda n: jax.vmap(random.PRNGKey)(make.ints(1000, n))
    return {
        "clauses over all assignments of 16 variables": lambda: (
            satisfied,
            [make.ints(16, 60, 3), make.ints(2, 60, 3)],
        ),
        "heat bath of Potts models": lambda: (heat_bath, [make.ints(4, 4, 32, 32), keys(4)]),
        "alternating least squares, 300 users": lambda: (
            least_squares,
            [make.uniform(300, 200), make.ints(2, 300, 200), make.normal(200, 12)],
        ),
        "split of a regression tree": lambda: (split, [make.normal(2000, 20), make.normal(2000)]),
        "CTC loss, gradient": lambda: (jax.grad(ctc), [make.normal(16, 60, 30), 1 + make.ints(29, 16, 10)]),
        "forces in a smoothed fluid": lambda: (forces, [make.uniform(1000, 2)]),
        "tree search, 8 trees": lambda: (jax.vmap(search), [make.uniform(8, 64, 3)]),
        "shortest ways over a grid": lambda: (distances, [make.uniform(64, 64, low=0.1)]),
        "median filter": lambda: (median, [make.normal(256, 256)]),
    }
