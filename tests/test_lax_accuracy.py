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
    ("lgamma", "float64", (1e-310, -8.72836006e-314, 5e-324, 1e-300), 1.0),
    ("erfc", "float64", (26.0, 26.5, 26.6767115, 27.2, -1.0), 2.5),
    ("bessel_i0e", "float64", (0.0, 5.7e-05, 7.99, 8.01, 700.0, -3.0), 4.0),
    ("bessel_i1e", "float64", (5.7e-05, 7.99, 8.01, 700.0, -3.0), 4.0),
    ("bessel_i0e", "float32", (0.0, 0.3, 9808.35352), 0.51),
]
REFERENCES = {
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


def test_zeta_of_doubles():
    """SciPy's is off by twenty units at the first of these."""
    places = ((55.9922009, 61.6247275), (44.0523748, 27.6843068), (2.0, 1.0), (1.5, 0.01), (2.0, 1e300))
    with catena.enable_x64(True), mp.workprec(300):
        for s, q in places:
            exact = mp.zeta(s, q) if q < 1e3 else 1 / mp.mpf(q)
            result = float(lax.zeta(s, q))
            assert abs(result - exact) <= 5 * np.spacing(float(exact)), (s, q, result)
