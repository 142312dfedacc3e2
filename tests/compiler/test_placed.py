"""Functions by eight pieces of doubles, or of pairs of floats: where pieces meet, the last ends, and the same bits in lanes of every number."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from catena.compiler.vector_math import (
    algorithms,
    bessel,
    fit_paired,
    fit_placed,
    harness,
    lookup,
    mathematics,
    paired,
    placed,
    polynomials,
)
from shares import alternate

EVEN = {
    "dawsn_slope": (fit_placed.dawson_slope, {"double": placed.DAWSON_SLOPE, "float": placed.DAWSON_SLOPE_SINGLE}),
    "bessel_i0e": (fit_paired.bessel(0), {"float": paired.I0E}),
    "bessel_difference": (fit_paired.bessel_difference, {"float": paired.BESSEL_DIFFERENCE}),
}
ODD = {
    "dawsn": (fit_placed.dawson, {"double": placed.DAWSON, "float": paired.DAWSON}),
    "bessel_i1e": (fit_paired.bessel(1), {"float": paired.I1E}),
}
CASES = [(name, elem) for name, (_, tables) in (EVEN | ODD).items() for elem in tables]
FORMATS = {"float": np.float32, "double": np.float64}


def ends_of(table: lookup.Placed | lookup.Paired) -> np.ndarray:
    """Where pieces end."""
    if isinstance(table, lookup.Placed):
        return (np.arange(lookup.SIZE - 1) + 0.5) / table.scale
    first = int(np.float32(table.offset).view(np.int32)) >> table.shift
    ends = np.arange(first + 1, first + 1 + lookup.SIZE, dtype=np.int32) << table.shift
    return (ends.view(np.float32) - table.offset) / table.scale


def around_the_ends(table: lookup.Placed | lookup.Paired, scalar: type) -> np.ndarray:
    """The numbers next to the ends of pieces, some far out, and some inside."""
    ends = ends_of(table).astype(scalar)
    next_ = [ends, np.nextafter(ends, scalar(0)), np.nextafter(ends, scalar(np.inf))]
    return np.concatenate([*next_, table.end * np.array([1.5, 3.0, 11.0], scalar), ends * scalar(0.83)])


@pytest.mark.parametrize("name, elem", CASES)
def test_pieces_meet(name, elem):
    function, tables = (EVEN | ODD)[name]
    x = around_the_ends(tables[elem], FORMATS[elem])
    x = np.resize(x, -(-x.size // 16) * 16)
    got = harness.Compiled(name, elem, 8)(np.concatenate([x, -x]))
    looked_at = alternate(2, range(x.size), 0)  # an end itself, or what is on both sides of it
    with mp.workdps(60):
        exact = [function(mp.mpf(float(x[i]))) for i in looked_at]
        units = np.spacing(np.abs(np.array(exact, np.float64)).astype(FORMATS[elem])).astype(np.float64)
        errors = [float(abs(mp.mpf(float(y)) - e) / u) for y, e, u in zip(got[looked_at], exact, units)]
    assert max(errors) < (0.51 if elem == "float" else 2.5)
    np.testing.assert_array_equal(got[x.size :], -got[: x.size] if name in ODD else got[: x.size])


@pytest.mark.parametrize("name, elem", CASES)
def test_lanes_are_the_same_in_every_number(name, elem):
    x = around_the_ends((EVEN | ODD)[name][1][elem], FORMATS[elem])
    x = np.resize(np.concatenate([x, [0, np.inf, -np.inf, np.nan]]).astype(x.dtype), 64)
    one = harness.Compiled(name, elem, 1)(x)
    for width in (2, 4, 8, 16):
        np.testing.assert_array_equal(harness.Compiled(name, elem, width)(x), one)
    with np.errstate(invalid="ignore", under="ignore"):
        by_numpy = mathematics.evaluated(algorithms.FUNCTIONS.get(name) or getattr(bessel, name), x)
    np.testing.assert_allclose(by_numpy.astype(x.dtype), one, rtol=1e-6 if elem == "float" else 1e-13)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_zeros_keep_their_signs(width):
    x = np.resize(np.array([0.0, -0.0]), 16)
    for name in ODD:
        np.testing.assert_array_equal(np.signbit(harness.Compiled(name, "float", width)(x)), np.signbit(x))


class Exact:
    """Mathematics of fractions."""

    @staticmethod
    def fma(x, y, z):
        return x * y + z


@pytest.mark.parametrize("count", range(3, 10))
def test_a_polynomial_in_pairs_is_the_polynomial(count):
    coefficients, x = [Fraction(k * k - 3, k + 2) for k in range(count)], Fraction(2, 7)
    exact = sum(c * x**k for k, c in enumerate(coefficients))
    assert polynomials.in_pairs(Exact, coefficients, x) == polynomials.horner(Exact, coefficients, x) == exact


def test_tables_are_those_of_the_fits():
    for name, fit in fit_placed.FITS.items():
        table = getattr(placed, name)
        assert (table.end, table.scale, table.far_scale) == (fit.end, fit.scale, fit.far_scale)
        assert bool(table.low) == (fit.goal < fit_placed.SINGLE)
        first = [float(f(mp.mpf(0))) for f in fit.pieces()]
        np.testing.assert_allclose(table.coefficients[0], first, rtol=1e-9)
    for name, fit in fit_paired.FITS.items():
        table = getattr(paired, name)
        assert (table.end, table.scale, table.offset, table.shift) == (fit.end, fit.scale, fit.offset, fit.shift)
        assert table.end == pytest.approx(max(ends_of(table)))
        places = {entry: (centre, reach) for entry, centre, reach in fit.pieces()}
        assert sorted(places) == list(range(lookup.SIZE))
        for entry, (centre, reach) in places.items():
            exact = fit.function(mp.mpf(centre))
            assert np.float32(table.centres[entry]) == centre
            assert reach <= max(centre / 2, 0.27)  # so that what is off the centre is a float
            first = [float(np.float32(rows[0][entry])) for rows in (table.high, table.low)]
            assert abs(sum(first) - float(exact)) < fit_paired.GOAL * exact
