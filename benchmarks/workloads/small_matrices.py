"""Many small matrices: inverses, factorisations and solutions of 3 to 32 rows."""

import numpy as np


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, linalg = jax.numpy, jax.numpy.linalg

    def regular(count, n):
        """Far from singular, so that both libraries' last bits agree."""
        a = make.rng.normal(size=(count, n, n)) / n**0.5 + 2 * np.eye(n)
        return make.asarray(a.astype(np.float32))

    def definite(count, n):
        a = make.rng.normal(size=(count, n, n)) / n**0.5
        return make.asarray((a @ a.swapaxes(1, 2) + np.eye(n)).astype(np.float32))

    def triangular(a, b):
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    determinants = jax.grad(lambda a: jnp.sum(jnp.sin(linalg.det(a))))
    return {
        "inverses of 5000 4 x 4": lambda: (linalg.inv, [regular(5000, 4)]),
        "determinants of 5000 3 x 3, gradient": lambda: (determinants, [regular(5000, 3)]),
        "Cholesky factors of 2000 8 x 8": lambda: (linalg.cholesky, [definite(2000, 8)]),
        "solutions of 500 16 x 16": lambda: (linalg.solve, [regular(500, 16), make.normal(500, 16, 4)]),
        "triangular solutions of 500 32 x 32": lambda: (triangular, [regular(500, 32), make.normal(500, 32, 4)]),
        "eigenvalues of 2000 3 x 3": lambda: (linalg.eigvalsh, [definite(2000, 3)]),
    }
