"""Attention over long sequences, a transformer block that is trained, and what else stands in such models."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, nn = jax.numpy, jax.nn

    def operands(batch, length, heads, features=64):
        return [make.normal(batch, length, heads, features) for _ in range(3)]

    def sequence(length):
        return [make.normal(length, 4, 64) for _ in range(3)]

    def gradient(**options):
        loss = lambda q, k, v: jnp.sum(jnp.sin(nn.dot_product_attention(q, k, v, **options)))
        return jax.grad(loss, (0, 1, 2))

    def causal(q, k, v):
        return nn.dot_product_attention(q, k, v, is_causal=True)

    def norm(x):
        return nn.standardize(x)

    def block(p, x):
        heads = (*x.shape[:2], 4, -1)
        q, k, v = (a.reshape(heads) for a in jnp.split(norm(x) @ p["qkv"], 3, -1))
        x = x + causal(q, k, v).reshape(x.shape) @ p["out"]
        return x + nn.gelu(norm(x) @ p["up"]) @ p["down"]

    def loss(p, x, y):
        return jnp.mean((block(p, x) - y) ** 2)

    def parameters(d):
        shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
        return {name: make.normal(*shape, scale=d**-0.5) for name, shape in shapes.items()}

    def by_hand(q, k, v):
        """As many write it: products, a mask, softmax."""
        scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        mask = jnp.tril(jnp.ones((q.shape[0], k.shape[0]), bool))
        return jnp.einsum("hqk,khd->qhd", nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)

    total = lambda f: lambda x: jnp.sum(jnp.sin(f(x)))
    rows = lambda: [make.normal(1000, 1000)]
    return {
        "attention, 512 positions, 8 heads": lambda: (nn.dot_product_attention, operands(1, 512, 8)),
        "attention gradient, 512 positions, 8 heads": lambda: (gradient(), operands(1, 512, 8)),
        "attention, 4,096 positions": lambda: (nn.dot_product_attention, operands(1, 4096, 1)),
        "attention gradient, 4,096 positions": lambda: (gradient(), operands(1, 4096, 1)),
        "causal attention gradient, 4,096 positions": lambda: (gradient(is_causal=True), operands(1, 4096, 1)),
        "attention in a window, 4,096 positions": lambda: (
            lambda *a: nn.dot_product_attention(*a, local_window_size=128),
            operands(1, 4096, 1),
        ),
        "attention, 16,384 positions": lambda: (nn.dot_product_attention, operands(1, 16384, 1, 16)),
        "attention gradient, 16,384 positions": lambda: (gradient(), operands(1, 16384, 1, 16)),
        "attention by hand, 1,024 positions": lambda: (by_hand, sequence(1024)),
        "attention by hand, gradient, 1,024 positions": lambda: (
            jax.grad(lambda *a: jnp.sum(jnp.sin(by_hand(*a))), (0, 1, 2)),
            sequence(1024),
        ),
        "transformer block, step, 8 x 128 x 256": lambda: (
            jax.value_and_grad(loss),
            [parameters(256), make.normal(8, 128, 256), make.normal(8, 128, 256)],
        ),
        "softmax with where, 1e6": lambda: (lambda x: nn.softmax(x, where=x > -1), rows()),
        "softmax with where, gradient, 1e6": lambda: (
            jax.grad(total(lambda x: nn.softmax(x, where=x > -1))),
            rows(),
        ),
        "gelu, 1e6": lambda: (nn.gelu, rows()),
        "gelu gradient, 1e6": lambda: (jax.grad(total(nn.gelu)), rows()),
        "exact gelu, 1e6": lambda: (lambda x: nn.gelu(x, approximate=False), rows()),
        "silu gradient, 1e6": lambda: (jax.grad(total(nn.silu)), rows()),
        "standardize, 1e6": lambda: (nn.standardize, rows()),
        "standardize gradient, 1e6": lambda: (jax.grad(total(nn.standardize)), rows()),
        "logsumexp of rows, 1e6": lambda: (lambda x: nn.logsumexp(x, -1), rows()),
        "logsumexp of rows, gradient, 1e6": lambda: (jax.grad(total(lambda x: nn.logsumexp(x, -1))), rows()),
        "one_hot, 1e4 x 100": lambda: (lambda i: nn.one_hot(i, 100), [make.ints(100, 10_000)]),
    }
