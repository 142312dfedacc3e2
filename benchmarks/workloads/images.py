"""Images of other sizes."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp, image = jax.numpy, jax.image
    photo, batch = lambda: [make.uniform(512, 512, 3)], lambda: [make.uniform(8, 128, 128, 3)]

    def resize(shape, method):
        return lambda x: image.resize(x, shape, method)

    def gradient(shape, method):
        return lambda x: jax.grad(lambda x: jnp.sum(jnp.sin(image.resize(x, shape, method))))(x)

    def moved(x, scale, translation):
        return image.scale_and_translate(x, (300, 300, 3), (0, 1), scale, translation, "cubic")

    def fit(x, scale, translation):  # scaled down: a sum of 270,000 terms that cancel is known to three digits
        return jax.grad(lambda s: 1e-5 * jnp.sum(jnp.sin(moved(x, s, translation))))(scale)

    parameters = lambda: [jnp.array([0.55, 0.65]), jnp.array([3.0, -4.0])]
    return {
        "resize 512 to 224, linear": lambda: (resize((224, 224, 3), "linear"), photo()),
        "resize 512 to 224, lanczos3": lambda: (resize((224, 224, 3), "lanczos3"), photo()),
        "resize 512 to 1024, cubic": lambda: (resize((1024, 1024, 3), "cubic"), photo()),
        "resize 512 to 1024, nearest": lambda: (resize((1024, 1024, 3), "nearest"), photo()),
        "resize 8 of 128 to 64, area": lambda: (resize((8, 64, 64, 3), "area"), batch()),
        "resize 8 of 128 to 224, linear": lambda: (resize((8, 224, 224, 3), "linear"), batch()),
        "resize 512 to 224, gradient": lambda: (gradient((224, 224, 3), "linear"), photo()),
        "resize 512 to 1024, gradient": lambda: (gradient((1024, 1024, 3), "cubic"), photo()),
        "scale and translate": lambda: (moved, [*photo(), *parameters()]),
        "scale and translate, gradient by the scale": lambda: (fit, [*photo(), *parameters()]),
    }
