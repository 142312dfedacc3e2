"""Operations on the rows of a matrix: normalisations, losses, attention scores."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, lax = jax.numpy, jax.lax

    def softmax(x):
        e = jnp.exp(x - lax.stop_gradient(jnp.max(x, -1, keepdims=True)))
        return e / jnp.sum(e, -1, keepdims=True)

    def log_softmax(x):
        shifted = x - lax.stop_gradient(jnp.max(x, -1, keepdims=True))
        return shifted - jnp.log(jnp.sum(jnp.exp(shifted), -1, keepdims=True))

    def layer_norm(x, scale, bias):
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5) * scale + bias

    def rms_norm(x, scale):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale

    def cross_entropy(x, labels):
        return -jnp.mean(jnp.take_along_axis(log_softmax(x), labels[:, None], -1))

    def masked_scores(scores):
        n = scores.shape[-1]
        return softmax(jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores * 0.125, -1e9))

    x = lambda: make.normal(10_000, 1000)
    affine = lambda: [x(), make.normal(1000), make.normal(1000)]
    total = lambda f: lambda *args: jnp.sum(jnp.sin(f(*args)))
    return {
        "softmax, 1e7": lambda: (softmax, [x()]),
        "softmax, 64 x 1000": lambda: (softmax, [make.normal(64, 1000)]),
        "softmax gradient, 1e7": lambda: (jax.grad(total(softmax)), [x()]),
        "log-softmax, 1e7": lambda: (log_softmax, [x()]),
        "layer norm, 1e7": lambda: (layer_norm, affine()),
        "layer norm gradient, 1e7": lambda: (jax.grad(total(layer_norm), (0, 1, 2)), affine()),
        "RMS norm, 1e7": lambda: (rms_norm, [x(), make.normal(1000)]),
        "cross entropy and gradient, 1e7": lambda: (
            jax.value_and_grad(cross_entropy),
            [x(), make.ints(1000, 10_000)],
        ),
        "masked attention scores": lambda: (masked_scores, [make.normal(8, 12, 128, 128)]),
    }
