"""Matrix products, linear algebra and convolutions."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax, linalg = jax.numpy, jax.lax, jax.numpy.linalg

    def attention(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
        e = jnp.exp(scores - lax.stop_gradient(jnp.max(scores, -1, keepdims=True)))
        return jnp.einsum("bhqk,bhkd->bhqd", e / jnp.sum(e, -1, keepdims=True), v)

    def convolution(groups=1, stride=1):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lambda x, w: lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
        )

    def squares(f):
        return lambda *args: jnp.sum(f(*args) ** 2)

    matmul = lambda a, b: a @ b
    dense = lambda m, k, n: (matmul, [make.normal(m, k), make.normal(k, n)])
    dense_as = lambda dtype, n: (matmul, [make.normal(n, n).astype(dtype), make.normal(n, n).astype(dtype)])
    batch = lambda b, n: (matmul, [make.normal(b, n, n), make.normal(b, n, n)])

    def doubles(n):
        """A product in float64, which must be switched on around the call."""

        def product(a, b):
            with jax.enable_x64(True):
                return compiled(a, b)

        compiled, product.is_compiled = jax.jit(matmul), True
        with jax.enable_x64(True):
            return product, [make.asarray(make.rng.normal(size=(n, n))) for _ in range(2)]

    def singular(a):
        u, s, v = linalg.svd(a)
        return s, (u * s) @ v  # the vectors' signs are free

    def eigen(a):
        w, v = linalg.eigh(a)
        return w, (v * w) @ v.T

    heads = lambda: [make.normal(4, 8, 128, 64) for _ in range(3)]
    image = lambda: [make.normal(8, 32, 32, 32), make.normal(3, 3, 32, 64, scale=0.1)]
    channels = lambda: [make.normal(8, 32, 32, 64), make.normal(3, 3, 1, 64)]
    return {
        "product, 64": lambda: dense(64, 64, 64),
        "product, 256": lambda: dense(256, 256, 256),
        "product, 1024": lambda: dense(1024, 1024, 1024),
        "product, 2048": lambda: dense(2048, 2048, 2048),
        "product, 256, float64": lambda: doubles(256),
        "product, 1024, float64": lambda: doubles(1024),
        "product, 256, bfloat16": lambda: dense_as(jnp.bfloat16, 256),
        "product, 512, bfloat16": lambda: dense_as(jnp.bfloat16, 512),
        "product, 1024, bfloat16": lambda: dense_as(jnp.bfloat16, 1024),
        "product, 2048, bfloat16": lambda: dense_as(jnp.bfloat16, 2048),
        "product, 1024, int8": lambda: (
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
            [make.ints(100, 1024, 1024).astype(jnp.int8) for _ in range(2)],
        ),
        "product with bias and relu, 256": lambda: (
            lambda a, b, c: jnp.maximum(a @ b + c, 0),
            [make.normal(256, 256), make.normal(256, 256), make.normal(256)],
        ),
        "10,000 products of 4 x 4": lambda: (matmul, [make.normal(10_000, 4, 4), make.normal(10_000, 4, 4)]),
        "1,000 products of 16 x 16": lambda: batch(1000, 16),
        "100 products of 64 x 64": lambda: batch(100, 64),
        "vector times matrix, 4096": lambda: (matmul, [make.normal(4096), make.normal(4096, 4096)]),
        "matrix times vector, 4096": lambda: (matmul, [make.normal(4096, 4096), make.normal(4096)]),
        "tall times small, 1e5 x 16 x 16": lambda: dense(100_000, 16, 16),
        "Gram matrix of 1e5 x 16": lambda: (lambda x: x.T @ x, [make.normal(100_000, 16)]),
        "outer product, 2000": lambda: (jnp.outer, [make.normal(2000), make.normal(2000)]),
        "query times keys, 16 heads, 512 positions": lambda: (
            lambda q, k: jnp.einsum("bhd,bhtd->bht", q, k),
            [make.normal(2, 8, 64), make.normal(2, 8, 512, 64)],
        ),
        "attention": lambda: (attention, heads()),
        "attention gradient": lambda: (jax.grad(squares(attention), (0, 1, 2)), heads()),
        "cholesky, 256": lambda: (linalg.cholesky, [make.definite(256)]),
        "solve, 256": lambda: (linalg.solve, [make.definite(256), make.normal(256, 16)]),
        "singular values, 128": lambda: (lambda a: linalg.svd(a, compute_uv=False), [make.normal(128, 128)]),
        "singular value decomposition, 128": lambda: (singular, [make.normal(128, 128)]),
        "eigenvalues, 128": lambda: (linalg.eigvalsh, [make.definite(128)]),
        "eigenvectors, 128": lambda: (eigen, [make.definite(128)]),
        "convolution 3 x 3": lambda: (convolution(), image()),
        "convolution 3 x 3, stride 2": lambda: (convolution(stride=2), image()),
        "convolution gradients": lambda: (jax.grad(squares(convolution()), (0, 1)), image()),
        "depthwise convolution": lambda: (convolution(groups=64), channels()),
    }
