"""Fourier transforms: of signals, of images, and what is made of them."""


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp = jax.numpy

    def waves(*shape):
        scale = shape[-1] ** -0.5
        return make.normal(*shape, scale=scale) + 1j * make.normal(*shape, scale=scale)

    def spectrogram(signal, window):
        frames = signal[jnp.arange(1000)[:, None] * 256 + jnp.arange(1024)]
        return jnp.log1p(jnp.abs(jnp.fft.rfft(frames * window)) ** 2)

    def convolution(signal, kernel):
        n = signal.shape[-1] + kernel.shape[-1] - 1
        return jnp.fft.irfft(jnp.fft.rfft(signal, n) * jnp.fft.rfft(kernel, n), n)

    def poisson(density):
        kx, ky = (jnp.fft.fftfreq(n) for n in density.shape)
        squares = (kx**2)[:, None] + ky**2
        return jnp.fft.ifft2(
            jnp.where(squares == 0, 0, jnp.fft.fft2(density) / jnp.where(squares == 0, 1, squares))
        ).real

    def mixed(x):
        return jnp.fft.fft2(x).real

    return {
        "fft, 1e6": lambda: (jnp.fft.fft, [waves(1 << 20)]),
        "fft, 1000 x 1000": lambda: (jnp.fft.fft, [waves(1000, 1000)]),
        "fft, 256": lambda: (jnp.fft.fft, [waves(256)]),
        "fft, 1000 x 997": lambda: (jnp.fft.fft, [waves(1000, 997)]),
        "fft2, 64 images of 128 x 128": lambda: (jnp.fft.fft2, [waves(64, 128, 128)]),
        "spectrogram": lambda: (spectrogram, [make.normal(1000 * 256 + 1024), make.normal(1024)]),
        "convolution of 64 signals": lambda: (convolution, [make.normal(64, 8192), make.normal(500)]),
        "Poisson equation, 512 x 512": lambda: (poisson, [make.normal(512, 512, scale=1e-3)]),
        "FNet layer, gradient": lambda: (
            jax.grad(lambda x: jnp.sum(jnp.tanh(mixed(x)))),
            [make.normal(8, 128, 256, scale=0.01)],
        ),
    }
