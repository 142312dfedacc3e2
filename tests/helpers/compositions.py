"""Functions of a vector of three numbers, and transformations to put them through, under either library.

`tests/transform/test_compositions.py` compares each composition evaluated eagerly with the same one compiled;
`benchmarks/differential_transformations.py` compares it with JAX.
"""

import numpy as np

POINT = np.array([0.5, -1.2, 2.0], "float32")
MATRIX = np.arange(12, dtype="float32").reshape(3, 4) / 7 - np.float32(0.6)


def functions(jax) -> dict:
    """Name -> a function from a vector to a scalar: where autodiff, indexing and loops have their corners."""
    jnp, lax = jax.numpy, jax.lax
    matrix = jnp.asarray(MATRIX)
    twice, mixed = np.array([0, 0]), np.array([0, 2, 0])
    return {
        "constant": lambda x: 1.0,
        "element": lambda x: x[0],
        "sin": lambda x: jnp.sin(x).sum(),
        "prod": lambda x: jnp.prod(x),
        "max": lambda x: jnp.max(x) * jnp.min(x),
        "logsumexp": lambda x: jnp.log(jnp.sum(jnp.exp(x))),
        "softmax": lambda x: (jnp.exp(x - lax.stop_gradient(x.max())) / jnp.exp(x - x.max()).sum())[1],
        "logaddexp": lambda x: jnp.logaddexp(x[0], x[1]),
        "where": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), x**3).sum(),
        "abs": lambda x: jnp.abs(x).sum() + jnp.sign(x).sum(),
        "clip": lambda x: jnp.clip(x, -1, 1).sum(),
        "floor": lambda x: (jnp.floor(x) * x).sum(),
        "integers": lambda x: (x * x.astype(int)).sum(),
        "remainder": lambda x: (x % 0.7).sum(),
        "power": lambda x: (jnp.abs(x) ** x).sum(),
        "square": lambda x: (x**2.0).sum(),
        "angles": lambda x: jnp.arctan2(x[0], x[1]) + jnp.hypot(x[1], x[2]),
        "expm1": lambda x: (jnp.expm1(x) * jnp.log1p(jnp.abs(x))).sum(),
        "sinc": lambda x: jnp.sinc(x).sum(),
        "norm": lambda x: jnp.linalg.norm(x),
        "moments": lambda x: x.var() + x.mean(),
        "nanmean": lambda x: jnp.nanmean(x),
        "median": lambda x: jnp.median(x),
        "cumsum": lambda x: (jnp.cumsum(x) * x).sum(),
        "cumprod": lambda x: jnp.cumprod(x).sum(),
        "cummax": lambda x: (lax.cummax(x) * x).sum(),
        "sort": lambda x: (jnp.sort(x) * jnp.arange(3.0)).sum(),
        "argsort": lambda x: x[jnp.argsort(x)][0] * 2,
        "gather": lambda x: x[mixed].sum() * x[1],
        "slices": lambda x: (x[1:] * x[:-1]).sum(),
        "scatter": lambda x: (x.at[twice].add(x[:2] ** 2) ** 2).sum(),
        "update": lambda x: (lax.dynamic_update_slice(x, x[:1] * 3, (1,)) ** 2).sum(),
        "concatenate": lambda x: jnp.concatenate([x, x**2])[2:5].sum(),
        "pad": lambda x: (jnp.pad(x, 2) ** 2).sum(),
        "roll": lambda x: (jnp.roll(x, 1) * x).sum(),
        "triangle": lambda x: jnp.tril(jnp.outer(x, x)).sum(),
        "matmul": lambda x: (matrix.T @ x).sum() ** 2,
        "outer": lambda x: (jnp.outer(x, x) @ x).sum(),
        "einsum": lambda x: jnp.einsum("i,ij,j", x, jnp.outer(x, x), x),
        "solve": lambda x: jnp.linalg.solve(jnp.diag(x) + jnp.ones((3, 3)) * 0.1, x).sum(),
        "fft": lambda x: jnp.abs(jnp.fft.fft(x)[1]),
        "convolve": lambda x: jnp.convolve(x, x).sum(),
        "window": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID").sum(),
        "scan's carry": lambda x: lax.scan(lambda c, t: (c * t + jnp.sin(c), c), 1.0, x)[0],
        "scan's results": lambda x: lax.scan(lambda c, t: (c + t, c * t), 0.0, x)[1].sum(),
        "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + x, x).sum(),
        "cond": lambda x: lax.cond(x[0] > 0, lambda x: (x**2).sum(), lambda x: x.sum(), x),
        "switch": lambda x: lax.switch(1, [jnp.sum, jnp.prod], x),
        "map": lambda x: lax.map(lambda t: t**2, x).sum(),
        "associative scan": lambda x: lax.associative_scan(jnp.multiply, x).sum(),
        "checkpoint": lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)))(x).sum(),
        "jit inside": lambda x: jax.jit(lambda y: (y * y).sum())(x) * x[0],
    }


def transformations(jax) -> dict:
    """Name -> what to do with a function at a point."""
    jnp, lax, vmap, grad, jit = jax.numpy, jax.lax, jax.vmap, jax.grad, jax.jit
    both = lambda x: jnp.stack([x, x * 2])
    descend = lambda f: lambda x: lax.scan(lambda c, _: (c - 0.01 * grad(f)(c), f(c)), x, None, length=3)
    decay = lambda f: (
        lambda x: lax.while_loop(lambda c: c[1] < x[2], lambda c: (c[0] * 0.9 + f(x), c[1] + 1), (x, 0.0))[0]
    )
    branch = lambda f: lambda x: lax.cond(x[0] > 0.7, grad(f), lambda x: x, x)
    return {
        "f": lambda f, x: f(x),
        "jit": lambda f, x: jit(f)(x),
        "grad": lambda f, x: grad(f)(x),
        "jit grad": lambda f, x: jit(grad(f))(x),
        "grad jit": lambda f, x: grad(jit(f))(x),
        "vmap": lambda f, x: vmap(f)(both(x)),
        "vmap grad": lambda f, x: vmap(grad(f))(both(x)),
        "vmap grad by columns": lambda f, x: vmap(grad(f), in_axes=1, out_axes=1)(both(x).T),
        "grad vmap": lambda f, x: grad(lambda X: vmap(f)(X).sum())(both(x)),
        "jvp": lambda f, x: jax.jvp(f, (x,), (jnp.ones_like(x),)),
        "linearize": lambda f, x: jax.linearize(f, x)[1](x),
        "vjp": lambda f, x: jax.vjp(f, x)[1](jnp.ones_like(f(x))),
        "value and aux": lambda f, x: jax.value_and_grad(lambda x: (f(x), {"a": x}), has_aux=True)(x),
        "grad grad": lambda f, x: grad(lambda x: grad(f)(x).sum())(x),
        "hessian": lambda f, x: jax.hessian(f)(x),
        "reverse over reverse": lambda f, x: jax.jacrev(grad(f))(x),
        "jit hessian": lambda f, x: jit(jax.hessian(f))(x),
        "vmap jit jacfwd grad": lambda f, x: vmap(jit(jax.jacfwd(grad(f))))(both(x)),
        "jacfwd vmap": lambda f, x: jax.jacfwd(vmap(f))(both(x)),
        "third": lambda f, x: jax.jacfwd(jax.jacfwd(jax.jacrev(f)))(x),
        "grad checkpoint": lambda f, x: grad(jax.checkpoint(f))(x),
        "closed over": lambda f, x: grad(lambda s: grad(lambda y: f(y * s))(x).sum())(1.5),
        "scan of grad": lambda f, x: descend(f)(x),
        "jit vmap scan of grad": lambda f, x: jit(vmap(descend(f)))(both(x)),
        "grad of scan": lambda f, x: grad(lambda x: lax.scan(lambda c, _: (c * 0.9, f(c)), x, None, length=3)[1].sum())(
            x
        ),
        "pmap": lambda f, x: jax.pmap(grad(f))(x[None]),
        "vmap cond": lambda f, x: vmap(branch(f))(both(x)),
        "vmap while": lambda f, x: vmap(decay(f))(both(x)),
    }
