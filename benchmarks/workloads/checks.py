"""Functions transformed by `checkify`: what the checks add to a compiled program."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax
    checkify = __import__(f"{jax.__name__}.experimental.checkify", fromlist=["checkify"])

    def checked(f, errors):
        def run(*args):
            error, out = checkify.checkify(f, errors)(*args)
            flags = [x for x in jax.tree.leaves(error) if x.dtype == bool]
            return jnp.stack(flags).any(), out

        return run

    def chain(x):
        return jnp.sqrt(jnp.exp(-x * x) * jnp.sin(x) ** 2 + jnp.tanh(x) ** 2)

    def lookup(table, index):
        return jnp.sum(table[index] * table[index[::-1]])

    def recurrence(table, index):
        def step(total, i):
            return 0.5 * total + table[i], None

        return lax.scan(step, jnp.zeros(8), index)[0]

    def newton(x):
        def step(y, _):
            checkify.check(jnp.all(y > 0), "not positive")
            return 0.5 * (y + x / y), None

        return lax.scan(step, x, None, length=100)[0]

    nan, index, user = checkify.nan_checks, checkify.index_checks, checkify.user_checks
    every = checkify.all_checks
    return {
        "NaN checks, chain, 1e6": lambda: (checked(chain, nan), [make.uniform(10**6)]),
        "no checks, chain, 1e6": lambda: (chain, [make.uniform(10**6)]),
        "index checks, two gathers, 1e6": lambda: (
            checked(lookup, index),
            [make.uniform(1000), make.ints(1000, 10**6)],
        ),
        "index checks, scan of 1e4 gathers": lambda: (
            checked(recurrence, index),
            [make.uniform(8000).reshape(1000, 8), make.ints(1000, 10**4)],
        ),
        "all checks, scan of Newton steps": lambda: (checked(newton, every), [1 + make.uniform(1000)]),
        "user checks, scan of Newton steps": lambda: (checked(newton, user), [1 + make.uniform(1000)]),
    }
