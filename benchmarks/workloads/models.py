"""Training steps of small models, and derivatives of higher order."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax

    def mlp(params, x):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = params[-1]
        return x @ w + b

    def layers(*sizes):
        shapes = list(zip(sizes, sizes[1:], strict=False))
        return [[make.normal(m, n, scale=m**-0.5), make.normal(n, scale=0.1)] for m, n in shapes]

    half = lambda *shape: make.normal(*shape).astype(jnp.bfloat16)
    halves = lambda params: jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    squares = lambda params, x: jnp.mean(mlp(params, x).astype(jnp.float32) ** 2)

    def log_softmax(x):
        shifted = x - lax.stop_gradient(jnp.max(x, -1, keepdims=True))
        return shifted - jnp.log(jnp.sum(jnp.exp(shifted), -1, keepdims=True))

    def loss(params, x, labels):
        return -jnp.mean(jnp.take_along_axis(log_softmax(mlp(params, x)), labels[..., None], -1))

    def adam_step(loss):
        def step(params, first, second, *data):
            grads = jax.grad(loss)(params, *data)
            mean = lambda rate: lambda m, g: rate * m + (1 - rate) * g
            first = jax.tree.map(mean(0.9), first, grads)
            second = jax.tree.map(lambda v, g: mean(0.999)(v, g * g), second, grads)
            move = lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-3)
            return jax.tree.map(move, params, first, second), first, second

        return step

    def training(loss, params, *data):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return adam_step(loss), [params, zeros, zeros, *data]

    def norm(x):
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)

    def block(p, x):
        n, t, d = x.shape
        q, k, v = (a.reshape(n, t, 4, d // 4) for a in jnp.split(norm(x) @ p["qkv"], 3, -1))
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (d // 4) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
        mixed = jnp.einsum("nhqk,nkhd->nqhd", jnp.exp(log_softmax(scores)), v).reshape(n, t, d)
        x = x + mixed @ p["out"]
        return x + jnp.tanh(norm(x) @ p["up"]) @ p["down"]

    def gpt_loss(params, tokens):
        x = params["embed"][tokens[:, :-1]]
        for p in params["blocks"]:
            x = block(p, x)
        logits = norm(x) @ params["embed"].T
        return -jnp.mean(jnp.take_along_axis(log_softmax(logits), tokens[:, 1:, None], -1))

    def gpt_params(d, vocabulary, depth):
        shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
        blocks = [{k: make.normal(*s, scale=0.02) for k, s in shapes.items()} for _ in range(depth)]
        return {"embed": make.normal(vocabulary, d, scale=0.1), "blocks": blocks}

    def convolve(x, w, stride=1):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)

    def resnet_loss(params, x, labels):
        x = convolve(x, params["stem"])
        for first, second in params["blocks"]:
            x = x + convolve(jnp.maximum(convolve(jnp.maximum(norm(x), 0), first), 0), second)
        logits = jnp.mean(x, (1, 2)) @ params["head"]
        return -jnp.mean(jnp.take_along_axis(log_softmax(logits), labels[:, None], -1))

    def resnet_params(c):
        filters = lambda i, o: make.normal(3, 3, i, o, scale=(9 * i) ** -0.5)
        blocks = [[filters(c, c), filters(c, c)] for _ in range(2)]
        return {"stem": filters(3, c), "blocks": blocks, "head": make.normal(c, 10, scale=0.1)}

    def vae_loss(params, x, noise):
        encoder, decoder = params
        mean, log_var = jnp.split(mlp(encoder, x), 2, -1)
        logits = mlp(decoder, mean + jnp.exp(0.5 * log_var) * noise)
        likelihood = jnp.sum(x * logits - jnp.logaddexp(0.0, logits), -1)
        divergence = 0.5 * jnp.sum(jnp.exp(log_var) + mean**2 - 1 - log_var, -1)
        return jnp.mean(divergence - likelihood)

    def net(params, x):
        """A few channels, one picture."""
        for w in params["layers"]:
            x = jnp.maximum(convolve(x, w, 2), 0)
        return jnp.mean(x, (1, 2)) @ params["head"]

    def net_params():
        channels = (3, 16, 32, 64)
        layers = [make.normal(3, 3, i, o, scale=(9 * i) ** -0.5) for i, o in zip(channels, channels[1:], strict=False)]
        return {"layers": layers, "head": make.normal(64, 10, scale=0.1)}

    def net_loss(params, x, labels):
        return -jnp.mean(jnp.take_along_axis(log_softmax(net(params, x)), labels[:, None], -1))

    def gru_loss(params, xs, y):
        def cell(h, x):
            r, z = jnp.split(lax.logistic(x @ params["w"] + h @ params["u"]), 2, -1)
            n = jnp.tanh(x @ params["wn"] + (r * h) @ params["un"])
            return (1 - z) * n + z * h, None

        last, _ = lax.scan(cell, jnp.zeros(y.shape), xs)
        return jnp.mean((last - y) ** 2)

    def gru_params(d, n):
        shapes = {"w": (d, 2 * n), "u": (n, 2 * n), "wn": (d, n), "un": (n, n)}
        return {name: make.normal(*shape, scale=shape[0] ** -0.5) for name, shape in shapes.items()}

    def per_example(params, x, labels):
        return jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)

    def hessian_vector(params, v, x, labels):
        return jax.jvp(lambda p: jax.grad(loss)(p, x, labels), (params,), (v,))[1]

    batch = lambda n, d: [make.normal(n, d), make.ints(10, n)]
    vae = lambda: [layers(784, 256, 64), layers(32, 256, 784)]
    return {
        "MLP training step, batch 32": lambda: training(loss, layers(64, 128, 128, 10), *batch(32, 64)),
        "MLP gradient, bfloat16, batch 256": lambda: (
            jax.grad(squares),
            [halves(layers(512, 1024, 1024, 256)), half(256, 512)],
        ),
        "MLP training step, batch 256": lambda: training(loss, layers(784, 512, 512, 10), *batch(256, 784)),
        "small GPT training step": lambda: training(gpt_loss, gpt_params(128, 1000, 2), make.ints(1000, 8, 65)),
        "12-layer transformer training step": lambda: training(
            gpt_loss, gpt_params(128, 1000, 12), make.ints(1000, 8, 65)
        ),
        "small ResNet training step": lambda: training(
            resnet_loss, resnet_params(32), make.normal(8, 32, 32, 3), make.ints(10, 8)
        ),
        "convolutional net, one picture": lambda: (net, [net_params(), make.normal(1, 64, 64, 3)]),
        "convolutional net training step, one picture": lambda: training(
            net_loss, net_params(), make.normal(1, 64, 64, 3), make.ints(10, 1)
        ),
        "GRU training step, batch 16, 32 steps": lambda: training(
            gru_loss, gru_params(32, 64), make.normal(32, 16, 32), make.normal(16, 64)
        ),
        "VAE training step": lambda: training(vae_loss, vae(), make.uniform(128, 784), make.normal(128, 32)),
        "per-example gradients": lambda: (per_example, [layers(64, 128, 10), *batch(128, 64)]),
        "Hessian-vector product": lambda: (
            hessian_vector,
            [layers(64, 128, 128, 10), layers(64, 128, 128, 10), *batch(64, 64)],
        ),
    }
