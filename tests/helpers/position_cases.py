"""Places of the largest and smallest: of every dtype, at many lengths, with ties, NaN, infinities and zeros."""

import ml_dtypes
import numpy as np

import catena as jax
import catena.numpy as jnp
from shares import alternate

DTYPES = "bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64".split()
LENGTHS = (1, 7, 12, 17, 33, 140)
ROWS = 150


def rows(n: int, name: str) -> np.ndarray:
    """Rows of few different numbers: some of one number, and of floats all special ones."""
    rng = np.random.default_rng(n)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if name == "bool":
        x = rng.random((ROWS, n)) < rng.choice([0.5, 1 / n], (ROWS, 1))
    elif np.issubdtype(dtype, np.integer):
        x = rng.integers(0, 9, (ROWS, n))
        x[3], x[4] = np.iinfo(dtype).min, np.iinfo(dtype).max
    else:
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf])
        x = np.where(rng.random((ROWS, n)) < 0.5, rng.normal(size=(ROWS, n)), rng.choice(special, (ROWS, n)))
        x[3], x[4] = -np.inf, np.inf
        x[5::9] = np.where(rng.random((ROWS, n)) < 2 / n, np.nan, x)[5::9]
        x[6::9] = np.where(rng.random((ROWS, n)) < 2 / n, -np.nan, x)[6::9]
    x[0], x[1] = 0, 1
    return x.astype(dtype)


def check(name: str, lengths=LENGTHS) -> None:
    """Compares compiled places with NumPy's."""
    along = [jax.jit(lambda x, axis=axis: (jnp.argmax(x, axis), jnp.argmin(x, axis))) for axis in (0, 1)]
    apart = jax.jit(lambda x: (jnp.argmax(x[:, ::-1], 1), jnp.max(x, 1)))
    for n in lengths:
        x = rows(n, name)
        wide = x if name != "bfloat16" else x.astype(np.float32)  # NumPy compares only its own floats as it should
        for axis, f in enumerate(along):
            greatest, least = f(x)
            np.testing.assert_array_equal(greatest, np.argmax(wide, axis), f"{n} {axis}")
            np.testing.assert_array_equal(least, np.argmin(wide, axis), f"{n} {axis}")
        np.testing.assert_array_equal(apart(x)[0], np.argmax(wide[:, ::-1], 1), f"{n}")


def check_all() -> None:
    """Of dtypes of all sizes and kinds."""
    with jax.enable_x64(True):
        for k, name in enumerate(("bool", "int8", "int32", "int64", "bfloat16", "float32", "float64")):
            check(name, alternate(2, LENGTHS, k))
