"""Places where the usual algorithms lose digits: the exact results, from mpmath, to a few units in the last place.

`make accuracy` measures whole domains; this keeps what it found, and what was mended, from coming back.
"""

import mpmath as mp
import numpy as np
import pytest

import catena
from catena import lax

PLACES = [  # function, dtype, arguments, units in the last place
    ("cbrt", "float32", (27.0, -8.0, 1e-40, 27.0000019), 0.51),
    ("cbrt", "float64", (27.0, -8.0, 1e-310), 0.51),
    ("atan", "float64", (0.425421059737299, 0.41766203094777826, -0.5349501572833419, 2.1240779402169907), 0.5001),
    ("lgamma", "float64", (1e-310, -8.72836006e-314, 5e-324, 1e-300), 1.0),
    ("erfc", "float64", (26.0, 26.5, 26.6767115, 27.2, -1.0), 2.5),
    ("bessel_i0e", "float64", (0.0, 5.7e-05, 7.99, 8.01, 700.0, -3.0), 4.0),
    ("bessel_i1e", "float64", (5.7e-05, 7.99, 8.01, 700.0, -3.0), 4.0),
    ("bessel_i0e", "float32", (0.0, 0.3, 3.8883946, 12.0, 16.492016, 9808.35352), 0.51),
    ("bessel_i1e", "float32", (0.26260662, 11.950303, 11.958967, 16.323656, 3879.7236), 0.51),
]
REFERENCES = {
    "atan": mp.atan,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "erfc": mp.erfc,
    "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
}


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name, dtype, arguments, ulps", PLACES, ids=lambda v: v if type(v) is str else "")
def test_accurate(name, dtype, arguments, ulps, compiled):
    with catena.enable_x64(True), mp.workprec(300):
        function = catena.jit(getattr(lax, name)) if compiled else getattr(lax, name)
        x = np.array(arguments, dtype)
        results = np.asarray(function(x))
        for argument, result in zip(x.tolist(), results, strict=True):
            exact = REFERENCES[name](mp.mpf(argument))
            unit = mp.mpf(float(np.spacing(np.asarray(float(exact), dtype))))
            error = abs((mp.mpf(float(result)) - exact) / unit)
            assert error <= ulps, f"{name}({argument!r}) = {result!r}, off by {float(error):.3g} units"


def zeta(s, q):
    """The terms themselves where they fall fast, for which mpmath's loses digits; far out the integral, which is all."""
    if q > 1e50:
        return q ** (1 - s) / (s - 1)
    return mp.fsum((q + n) ** -s for n in range(6000)) if s > 30 else mp.zeta(s, q)


def test_zeta_of_doubles():
    """SciPy's is off by twenty units at the first of these."""
    with catena.enable_x64(True), mp.workprec(300):
        for s, q in ((55.9922009, 61.6247275), (44.0523748, 27.6843068), (2.0, 1.0), (1.5, 0.01)):
            exact = zeta(s, q)
            result = float(lax.zeta(s, q))
            assert abs(result - exact) <= 5 * np.spacing(float(exact)), (s, q, result)


@pytest.mark.parametrize("compiled", (False, True), ids=("eager", "compiled"))
@pytest.mark.parametrize("name", ("pow", "zeta", "betainc"))
def test_accurate_functions_of_several_arguments(name, compiled):
    """pow within half a unit (NumPy's is not); zeta far out, where powers underflow; betainc near 1 and of large shapes."""
    places, reference, ulps = {
        "pow": (((0.684620472, 2.34761131e-09), (1.4, -2.3), (0.0317, 17.25)), mp.power, 0.51),
        "zeta": (((2.0, 1e300), (3.0, 1e100), (37.3115677, 239.377049), (1.5, 3.0)), zeta, 1.25),
        "betainc": (
            ((28.3606179, 0.023068119, 0.993927513), (300.0, 250.0, 0.5), (4000.0, 3.5, 0.999)),
            lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
            200.0,
        ),
    }[name]
    with catena.enable_x64(True), mp.workprec(300):
        function = catena.jit(getattr(lax, name)) if compiled else getattr(lax, name)
        results = np.asarray(function(*np.array(places).T)).tolist()
        for place, got in zip(places, results, strict=True):
            exact = reference(*map(mp.mpf, place))
            assert abs(got - exact) <= ulps * mp.ldexp(1, mp.mag(exact) - 53), (place, got)


def test_pow_is_one_function_at_every_size():
    """Small arrays are padded, others cut into pieces that overlap."""
    with catena.enable_x64(True):
        x, y = np.random.default_rng(0).uniform(0.5, 2.0, (2, 20000))
        whole = np.asarray(catena.jit(lax.pow)(x, y))
        for n in (1, 2, 63, 64, 65, 255, 300, 1025, 20000):
            np.testing.assert_array_equal(lax.pow(x[:n], y[:n]), whole[:n])
        np.testing.assert_array_equal(lax.pow(x[0], y[0]), whole[0])
        np.testing.assert_array_equal(lax.pow(x[:0], y[:0]), whole[:0])
