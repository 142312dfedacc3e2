"""Functions by pieces: what a table's entry is, where pieces meet, and where the functions end."""

import math

import numpy as np
import pytest
import scipy.special

from catena.compiler.vector_math import fit_pieces, harness, lookup, pieces

EXACT = {"erf": math.erf, "tanh": math.tanh}


def around_the_ends(table) -> np.ndarray:
    """The floats next to each end of a piece."""
    places = np.arange(lookup.SIZE, dtype=np.int32) + (int(np.float32(table.offset).view(np.int32)) >> table.shift)
    ends = ((places << table.shift).view(np.float32).astype(np.float64) - table.offset) / table.scale
    ends = ends[(ends > 0.01) & (ends < table.end)].astype(np.float32)
    x = (ends.view(np.int32)[:, None] + np.arange(-40, 40, dtype=np.int32)).view(np.float32).ravel()
    return np.resize(x, -(-x.size // 16) * 16)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("name", EXACT)
def test_pieces_meet(name, width):
    x = around_the_ends(getattr(pieces, name.upper()))
    assert x.size > 500
    exact = np.array([EXACT[name](v) for v in x.tolist()])
    got = harness.Compiled(name, "float", width)(np.concatenate([x, -x]))
    assert (np.abs(got[: x.size] - exact) <= np.spacing(exact.astype(np.float32))).all()
    np.testing.assert_array_equal(got[x.size :], -got[: x.size])


@pytest.mark.parametrize("name", EXACT)
def test_results_are_at_most_one_and_reach_it(name):
    table = getattr(pieces, name.upper())
    x = np.linspace(0.9 * table.end, 1.1 * table.end, 1 << 15).astype(np.float32)
    got = harness.Compiled(name, "float", 16)(x)
    assert got.max() == 1 and (got[x > table.end] == 1).all()


@pytest.mark.parametrize("name", EXACT)
def test_subnormal_numbers_are_rounded_once(name):
    x = np.ldexp(np.arange(1, 4097, dtype=np.float64), -149).astype(np.float32)
    slope = 2 / math.sqrt(math.pi) if name == "erf" else 1
    np.testing.assert_array_equal(harness.Compiled(name, "float", 8)(x), (x.astype(np.float64) * slope).astype("f"))


def test_centres_lie_where_the_function_is_nearly_a_float():
    """So what a piece begins with is not wrong by half a unit to begin with."""
    for name, fit in fit_pieces.FITS.items():
        table = getattr(pieces, name)
        told = (fit.end, fit.scale, fit.offset, fit.shift, fit.first) if fit.is_odd else (fit.offset, fit.shift)
        assert table[: len(told)] == told and len(table.pieces.coefficients) == fit.degree
        for entry, low, high in fit.bounds():
            centre, value = (np.float32(x[entry]) for x in (table.pieces.centres, table.pieces.values))
            assert low <= centre <= high
            rest = abs(float(fit.function(np.float64(centre))) - float(value))
            assert rest < 0.06 * float(np.spacing(value)) or centre == 0 or value > 0.9999


@pytest.mark.parametrize("name", EXACT)
def test_the_first_piece_ends_below_the_edge_and_other_values_lie_above(name):
    """So the greater one of a piece's value and of the lesser one of argument and edge is what a piece begins with."""
    table, fit = getattr(pieces, name.upper()), fit_pieces.FITS[name.upper()]
    (first, _, end), *others = fit.bounds()
    assert table.pieces.values[first] == 0 and end < 0.9 * table.edge
    assert min(table.pieces.values[entry] for entry, _, _ in others) > 1.1 * table.edge


@pytest.mark.parametrize("name, bound", [("erf", 0.73), ("tanh", 0.76)])
def test_errors_between_the_ends(name, bound):
    """Errors of a share of all floats, which are less than those by sixteen pieces of degree 6 (0.764 and 0.786)."""
    first, last = (int(np.float32(v).view(np.int32)) for v in (2.0**-10, 9.5))
    x = np.arange(first, last, 317, dtype=np.int32).view(np.float32)
    x = np.resize(x, -(-x.size // 16) * 16)
    exact = fit_pieces.FITS[name.upper()].function(x.astype(np.float64))
    units = np.exp2(np.floor(np.log2(exact)) - 23)
    assert (np.abs(harness.Compiled(name, "float", 16)(x) - exact) / units).max() < bound


def normal_distribution(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By doubles, and its units in the last place as a float."""
    exact = scipy.special.ndtr(x.astype(np.float64))
    return exact, np.exp2(np.floor(np.log2(np.maximum(exact, 2.0**-126))) - 23)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_normal_distribution_between_the_ends(width):
    """Of a share of all floats, and of those next to each end of a piece."""
    ends = np.float32([0.5, 1, 2, 3, 5, 7, 11]).view(np.int32)[:, None] + np.arange(-40, 40, dtype=np.int32)
    first, last = (int(np.float32(v).view(np.int32)) for v in (2.0**-30, 14.3))
    a = np.concatenate([np.arange(first, last, 9973, dtype=np.int32), ends.ravel()]).view(np.float32)
    a = np.resize(a, -(-a.size // 16) * 16)
    compiled = harness.Compiled("ndtr", "float", width)
    for x, bound in ((-a, 1.25), (a, 0.95)):
        exact, units = normal_distribution(x)
        assert (np.abs(compiled(x) - exact) / units).max() < bound


def test_normal_distribution_beyond():
    x = np.float32([-np.inf, -1e30, -15, -14.5, -1e-40, -0.0, 0, 1e-45, 2.0**-28, 14.5, 1e30, np.inf, np.nan, -8, 6, 0])
    want = [0.0] * 4 + [0.5] * 5 + [1.0] * 3 + [math.nan]
    np.testing.assert_array_equal(harness.Compiled("ndtr", "float", 16)(x)[: len(want)], np.float32(want))
