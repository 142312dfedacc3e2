"""SciPy's linear algebra, signals, images and rotations."""

from importlib import import_module

import numpy as np


def workloads(jax, make):
    """Name -> function that makes (function, arguments)."""
    jnp = jax.numpy
    names = ("linalg", "sparse.linalg", "signal", "ndimage", "fft", "spatial.transform")
    linalg, sparse, signal, ndimage, fft, spatial = (import_module(f"{jax.__name__}.scipy.{name}") for name in names)

    def laplacian(x):
        """Of a grid whose border is zero, plus a tenth of the identity."""
        padded = jnp.pad(x, 1)
        return 4.1 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]

    def drift(x):
        return laplacian(x) + 0.5 * (x - jnp.roll(x, 1, 0))

    def gradient(f):
        return lambda *args: jax.grad(lambda *args: jnp.sum(jnp.sin(f(*args))))(*args)

    def matrices(*shape, scale=1.0):
        return make.normal(*shape, scale=scale / shape[-1] ** 0.5)

    def shifted(n):
        return make.asarray((make.rng.normal(size=(n, n)) / n**0.5 + 2 * np.eye(n)).astype(np.float32))

    def solution(method, operator, **options):
        return lambda b: method(operator, b, **options)[0]

    there_and_back = lambda x: signal.istft(signal.stft(x, nperseg=256)[2])[1]
    rotated = lambda q, v: spatial.Rotation.from_quat(q).apply(v)
    angles = lambda q: spatial.Rotation.from_quat(q).as_matrix()
    turned = lambda v: spatial.Rotation.from_rotvec(v).as_quat()
    picture = lambda x, c: ndimage.map_coordinates(x, c, order=1, mode="nearest")
    places = lambda: make.uniform(2, 512, 512, low=-10, high=520)
    return {
        "expm 100": lambda: (linalg.expm, [matrices(100, 100, scale=3.0)]),
        "expm 100, gradient": lambda: (gradient(linalg.expm), [matrices(100, 100)]),
        "expm of 2000 4x4": lambda: (linalg.expm, [matrices(2000, 4, 4)]),
        "expm of 100 32x32": lambda: (linalg.expm, [matrices(100, 32, 32)]),
        "sqrtm 64": lambda: (lambda x: linalg.sqrtm(x).real, [make.definite(64)]),
        "solve_sylvester 64": lambda: (linalg.solve_sylvester, [shifted(64), shifted(64), make.normal(64, 64)]),
        "polar 128": lambda: (lambda x: linalg.polar(x)[1], [shifted(128)]),
        "cho_solve 256": lambda: (
            lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
            [make.definite(256), make.normal(256, 8)],
        ),
        "eigh_tridiagonal 300, values": lambda: (
            lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True),
            [make.normal(300), make.normal(299)],
        ),
        "toeplitz 1000": lambda: (linalg.toeplitz, [make.normal(1000), make.normal(1000)]),
        "cg 128x128": lambda: (solution(sparse.cg, laplacian), [make.normal(128, 128)]),
        "cg 128x128, gradient": lambda: (gradient(solution(sparse.cg, laplacian)), [make.normal(128, 128)]),
        "bicgstab 128x128": lambda: (solution(sparse.bicgstab, drift), [make.normal(128, 128)]),
        "gmres 128x128": lambda: (solution(sparse.gmres, drift), [make.normal(128, 128)]),
        "fftconvolve 1e5 with 1e3": lambda: (signal.fftconvolve, [make.normal(100_000), make.normal(1000)]),
        "fftconvolve 256x256": lambda: (signal.fftconvolve, [make.normal(256, 256), make.normal(31, 31)]),
        "convolve2d 256x256 with 7x7": lambda: (signal.convolve2d, [make.normal(256, 256), make.normal(7, 7)]),
        "stft 1e5": lambda: (lambda x: jnp.abs(signal.stft(x)[2]), [make.normal(100_000)]),
        "stft and istft 1e5": lambda: (there_and_back, [make.normal(100_000)]),
        "welch 1e5": lambda: (lambda x: signal.welch(x, nperseg=256)[1], [make.normal(100_000)]),
        "detrend 1e5": lambda: (signal.detrend, [make.normal(100_000)]),
        "dct 1000 of 512": lambda: (fft.dct, [make.normal(1000, 512)]),
        "dctn 512x512": lambda: (fft.dctn, [make.normal(512, 512)]),
        "idctn 512x512": lambda: (fft.idctn, [make.normal(512, 512)]),
        "map_coordinates 512x512": lambda: (picture, [make.normal(512, 512), places()]),
        "map_coordinates 512x512, gradient": lambda: (gradient(picture), [make.normal(512, 512), places()]),
        "rotate 1e5 vectors": lambda: (rotated, [make.normal(100_000, 4), make.normal(100_000, 3)]),
        "matrices of 1e5 quaternions": lambda: (angles, [make.normal(100_000, 4)]),
        "quaternions of 1e5 vectors": lambda: (turned, [make.normal(100_000, 3)]),
    }
