"""Derivatives of special functions beside mpmath: in single precision, where they are subnormal, and next to poles."""

import mpmath as mp
import numpy as np
import pytest

import catena
from catena import numpy as jnp
from catena.scipy import special


def within(got, exact, ulps):
    """Whether floats are so near to exact numbers, in units of their last places."""
    want = np.asarray([float(v) for v in exact])
    units = np.spacing(np.abs(want).astype(got.dtype)).astype(np.float64)
    return np.max(np.abs(got.astype(np.float64) - want) / units) <= ulps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trigamma_far_below_zero_and_next_to_its_poles(dtype):
    points = [-1000000.25, -4096.5, -3.25, -0.5, 2.0**-40, 0.75, 1.0, 1.5, 3.0, 1e10]
    with catena.enable_x64(dtype == "float64"):
        x = jnp.asarray(points, dtype)
        exact = [mp.psi(1, v) if v > 0 else (mp.pi / mp.sinpi(v)) ** 2 - mp.psi(1, 1 - v) for v in points]
        assert within(np.asarray(special.polygamma(1, x)), exact, 3)
        assert within(np.asarray(catena.jit(catena.vmap(catena.grad(special.digamma)))(x)), exact, 3)
    assert np.isposinf(special.polygamma(1, jnp.asarray([0.0, -0.0, -2.0]))).all()


@pytest.mark.parametrize(
    "function, slope, points",
    [
        (special.erf, lambda x: 2 * mp.exp(-x * x) / mp.sqrt(mp.pi), [0.0, 1.5, -4.75, 9.0, 9.75, -10.0]),
        (special.ndtr, mp.npdf, [0.0, 1.5, -4.75, 12.5, -14.25]),
        (
            special.erfcx,
            lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi),
            [-3.5, 0.0, 0.75, 20.0, 1e4],
        ),
        (special.i0e, lambda x: mp.exp(-x) * (mp.besseli(1, x) - mp.besseli(0, x)), [0.25, 3.75, 11.75, 12.25, 1e4]),
        (special.expi, lambda x: mp.exp(x) / x, [-80.5, -1.0, 0.5, 60.0]),
    ],
)
def test_slopes_in_single_precision(function, slope, points):
    """Also where they are subnormal."""
    with mp.workdps(60):
        exact = [slope(mp.mpf(v)) for v in points]
    x = jnp.asarray(points, "float32")
    assert within(np.asarray(catena.jit(catena.vmap(catena.grad(function)))(x)), exact, 3)


def test_bessel_functions_at_infinity_in_single_precision():
    x = jnp.asarray([np.inf, -np.inf, np.nan, 1e38], "float32")
    np.testing.assert_array_equal(catena.jit(special.i0e)(x)[:3], [0.0, 0.0, np.nan])
    np.testing.assert_array_equal(catena.jit(special.i0)(x), [np.inf, np.inf, np.nan, np.inf])
    assert within(np.asarray(special.i0e(x))[3:], [1 / mp.sqrt(2 * mp.pi * mp.mpf(1e38))], 1)
