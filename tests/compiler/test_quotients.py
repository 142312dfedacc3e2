"""The logarithm of a quotient against mpmath: next to 1, of numbers of every size, and at the ends."""

import mpmath as mp
import numpy as np
import pytest

from catena.compiler.vector_math import harness

INF, NAN = float("inf"), float("nan")


def _pairs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.exp(rng.uniform(-80, 80, 320))
    if kind == "near":
        return q * (1 + rng.choice([-1, 1], 320) * 10.0 ** rng.uniform(-15, -1, 320)), q
    if kind == "subnormal":
        return np.exp(rng.uniform(-743, -690, 320)), np.exp(rng.uniform(-743, -690, 320))
    return np.exp(rng.uniform(-80, 80, 320)), q


@pytest.mark.parametrize("kind", ["near", "far", "subnormal"])
@pytest.mark.parametrize("elem, scalar, bound", [("double", np.float64, 1.0), ("float", np.float32, 0.51)])
def test_error(kind, elem, scalar, bound):
    p, q = (v.astype(scalar) for v in _pairs(kind))
    if kind == "subnormal" and elem == "float":
        p, q = (np.ldexp(v, -140).astype(scalar) for v in np.random.default_rng(4).uniform(1, 2**14, (2, 320)))
    got = harness.Compiled("log_quotient", elem, 8)(p, q)
    with mp.workdps(50):
        exact = [mp.log(mp.mpf(float(a)) / mp.mpf(float(b))) for a, b in zip(p, q)]
        units = [float(np.spacing(scalar(abs(float(e))))) for e in exact]
        errors = [float(abs(mp.mpf(float(y)) - e) / u) for y, e, u in zip(got, exact, units)]
    # of subnormal doubles what is rounded off the quotient is left out
    assert max(errors) < (3.0 if (kind, elem) == ("subnormal", "double") else bound)


@pytest.mark.parametrize("elem, scalar", [("double", np.float64), ("float", np.float32)])
def test_ends(elem, scalar):
    big = float(np.finfo(scalar).max)
    rows = np.array([(1, 1, 0), (INF, 1, INF), (1, INF, -INF), (0, 1, -INF), (1, 0, INF), (INF, INF, NAN), (0, 0, NAN),
                     (NAN, 1, NAN), (1, NAN, NAN), (big, big, 0), (2, 0.5, np.log(4.0)), (0.5, 2, -np.log(4.0))], scalar)  # fmt: skip
    p, q, wanted = np.resize(rows, (16, 3)).T
    got = harness.Compiled("log_quotient", elem, 16)(p, q)
    np.testing.assert_allclose(got, wanted, rtol=1e-7 if elem == "float" else 1e-15)
    apart = harness.Compiled("log_quotient", elem, 1)(scalar([big]), scalar([1 / big]))  # a quotient beyond the format
    np.testing.assert_allclose(apart, [2 * np.log(float(big))], rtol=1e-7)
