"""Special functions of a million numbers."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    n = 10**6
    shapes = lambda: make.uniform(n, low=0.5, high=20)
    shares = lambda: make.uniform(n, low=0.01, high=0.99)
    made = {
        "gammainc": lambda: (jax.scipy.special.gammainc, [shapes(), make.uniform(n, low=0.5, high=20)]),
        "betainc": lambda: (jax.scipy.special.betainc, [shapes(), make.uniform(n, low=0.5, high=20), shares()]),
        "ndtri": lambda: (jax.scipy.special.ndtri, [shares()]),
        "log_ndtr": lambda: (jax.scipy.special.log_ndtr, [make.uniform(n, low=-20, high=5)]),
        "zeta": lambda: (jax.scipy.special.zeta, [make.uniform(n, low=1.1, high=10), shapes()]),
        "polygamma of order 2": lambda: (lambda x: jax.scipy.special.polygamma(2, x), [shapes()]),
        "hyp1f1": lambda: (
            jax.scipy.special.hyp1f1,
            [make.uniform(n, low=0.5, high=3), make.uniform(n, low=1, high=5), make.uniform(n, low=0, high=5)],
        ),
        "expi": lambda: (jax.scipy.special.expi, [shapes()]),
        "logsumexp": lambda: (jax.scipy.special.logsumexp, [make.normal(n)]),
    }
    return {f"{name}, 1e6": make_one for name, make_one in made.items()}
