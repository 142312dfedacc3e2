"""Mutable arrays, updated in loops."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax

    def histogram(ids):
        counts = jax.new_ref(jnp.zeros(1000))
        lax.fori_loop(0, ids.shape[0], lambda n, _: jax.ref.addupdate(counts, ids[n], 1.0), None)
        return jax.ref.freeze(counts)

    def relaxed(x):
        """Gauss-Seidel: each element is the mean of its neighbours as they are now."""
        ref = jax.new_ref(x)

        def sweep(_, carry):
            def at(n, carry):
                ref[n] = 0.5 * (ref[n - 1] + ref[n + 1])
                return carry

            return lax.fori_loop(1, x.shape[0] - 1, at, carry)

        lax.fori_loop(0, 5, sweep, None)
        return jax.ref.freeze(ref)

    def heat(x):
        """Rows of a plate, one after the other, in place."""
        ref = jax.new_ref(x)

        def row(n, carry):
            ref[n, 1:-1] = ref[n, 1:-1] + 0.1 * (ref[n - 1, 1:-1] + ref[n + 1, 1:-1] - 2.0 * ref[n, 1:-1])
            return carry

        lax.fori_loop(1, x.shape[0] - 1, row, None)
        return jax.ref.freeze(ref)

    def moments(xs):
        mean, square = jax.new_ref(jnp.zeros(xs.shape[1])), jax.new_ref(jnp.zeros(xs.shape[1]))

        def observe(n, x):
            delta = x - mean[...]
            mean[...] += delta / (n + 1.0)
            square[...] += delta * (x - mean[...])
            return n + 1.0, None

        lax.scan(observe, 0.0, xs)
        return jax.ref.freeze(mean), jax.ref.freeze(square)

    def recurrence(x):
        ref = jax.new_ref(x)

        def step(n, carry):
            ref[n] = jnp.sin(ref[n - 1]) + ref[n]
            return carry

        lax.fori_loop(1, x.shape[0], step, None)
        return jnp.sum(jax.ref.freeze(ref) ** 2)

    big = lambda: [jnp.zeros(25_000_000), make.ints(25_000_000, 100_000)]

    def scattered(x, places):
        ref = jax.new_ref(x)
        lax.fori_loop(0, places.shape[0], lambda n, _: jax.ref.addupdate(ref, places[n], 1.0), None)
        return ref[0]

    return {
        "histogram of 1e6 in a reference": lambda: (histogram, [make.ints(1000, 10**6)]),
        "relaxation in place, 5 sweeps of 1e5": lambda: (relaxed, [make.uniform(10**5)]),
        "heat in place, 1000 x 1000": lambda: (heat, [make.uniform(1000, 1000)]),
        "moments in references, 1e4 x 64": lambda: (moments, [make.normal(10_000, 64)]),
        "recurrence in a reference, gradient": lambda: (jax.grad(recurrence), [make.uniform(10_000)]),
        "100 MB reference, 1e5 updates": lambda: (scattered, big()),
    }
