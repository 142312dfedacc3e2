"""Sparse arrays: products, derivatives, duplicates. Matrices of 1e4 x 1e4 with 1e5 and 1e6 elements."""

import importlib

import numpy as np

SIZE = 10_000


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp = jax.numpy
    sparse = importlib.import_module(f"{jax.__name__}.experimental.sparse")

    def buffers(nse):
        rows = np.sort(np.random.default_rng(0).integers(0, SIZE, nse)).astype(np.int32)
        columns = np.random.default_rng(1).integers(0, SIZE, nse).astype(np.int32)
        return [make.normal(nse), make.asarray(np.stack([rows, columns], axis=1))]

    def bcoo(data, indices):
        return sparse.BCOO((data, indices), shape=(SIZE, SIZE), indices_sorted=True)

    def bcsr(nse):
        return sparse.BCSR.from_bcoo(bcoo(*buffers(nse)))

    def by_data(data, indices, v, w):
        return jax.grad(lambda data: w @ (bcoo(data, indices) @ v))(data)

    def by_vector(data, indices, v, w):
        return jax.grad(lambda v: w @ (bcoo(data, indices) @ v))(v)

    def summed(data, indices):
        return bcoo(data, indices).sum_duplicates(nse=data.size).data

    chain = sparse.sparsify(lambda m, v: jnp.sin(2 * m).T @ v + v)
    vector, rows = lambda: make.normal(SIZE), lambda: make.normal(SIZE, 32)
    product = lambda m, x: m @ x
    found = {}
    for nse, size in ((10**5, "1e5"), (10**6, "1e6")):
        arguments = lambda nse=nse: buffers(nse)
        rowwise = lambda nse=nse: bcsr(nse)
        found |= {
            f"BCOO @ vector, {size}": lambda a=arguments: (lambda d, i, x: bcoo(d, i) @ x, [*a(), vector()]),
            f"vector @ BCOO, {size}": lambda a=arguments: (lambda d, i, x: x @ bcoo(d, i), [*a(), vector()]),
            f"BCOO @ 32 columns, {size}": lambda a=arguments: (lambda d, i, x: bcoo(d, i) @ x, [*a(), rows()]),
            f"gradient by data, {size}": lambda a=arguments: (by_data, [*a(), vector(), vector()]),
            f"gradient by vector, {size}": lambda a=arguments: (by_vector, [*a(), vector(), vector()]),
            f"BCSR @ vector, {size}": lambda m=rowwise: (product, [m(), vector()]),
            f"BCSR @ 32 columns, {size}": lambda m=rowwise: (product, [m(), rows()]),
            f"sum_duplicates, {size}": lambda a=arguments: (summed, a()),
            f"sparsify, {size}": lambda a=arguments: (
                lambda d, i, v: chain(sparse.BCOO((d, i), shape=(SIZE, SIZE), unique_indices=True), v),
                [*a(), vector()],
            ),
        }
    return found
