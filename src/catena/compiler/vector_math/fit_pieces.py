"""Computes the tables of `pieces.py`, by hand: `python -m catena.compiler.vector_math.fit_pieces > pieces.py`.

Minimax by weights that grow where the error is great (C. L. Lawson, "Contributions to the theory of linear least
maximum approximation", 1961), in units in the last place. A coefficient is rounded to a float before the next ones
are computed, which then make up for that.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special  # type: ignore[import-untyped]

from catena.core.named import NamedTuple

from .lookup import SIZE

STEPS = 200  # of the search for weights
POINTS = 400  # in a piece


class Fit(NamedTuple):
    """A function, up to where it is wanted, and what tells its pieces: `lookup.Rising`, without a first `Smooth`."""

    function: Callable
    end: float
    scale: float
    offset: float
    shift: int
    degree: int  # of a piece
    first: float | None  # of an odd function, between the end of its first piece and the values of the others

    @property
    def is_odd(self) -> bool:
        return self.first is not None

    def bounds(self) -> Iterator[tuple[int, float, float]]:
        """The entry of each piece, and its ends."""
        ends: list[tuple[int, Any, Any]] = []
        place = np.float32(self.offset)
        while place < self.scale * self.end + self.offset:
            bits = int(place.view(np.int32)) >> self.shift
            after = np.int32(bits + 1 << self.shift).view(np.float32)
            ends.append((bits % SIZE, (place - self.offset) / self.scale, (after - self.offset) / self.scale))
            place = after
        return iter(ends)


def normal_tail(a):
    """The distribution function of the normal distribution at -a over exp(-a^2 / 2), 64 times."""
    return 32 * scipy.special.erfcx(a * np.sqrt(0.5))


def error_tail(a):
    """The complement of the error function over exp(-a^2), 64 times."""
    return 64 * scipy.special.erfcx(a)


# Of the offsets that were tried, these have the least errors over all floats, of the first two 0.73 and 0.76 units.
FITS = {
    "ERF": Fit(scipy.special.erf, 3.97, 0.3147, 1.25, 20, 7, 0.5),
    "TANH": Fit(np.tanh, 9.1, 1.6475, 1.0, 22, 7, 0.375),
    "NORMAL_TAIL": Fit(normal_tail, 14.5, 1.0, 1.0, 22, 8, None),
    "ERROR_TAIL": Fit(error_tail, 10.21, 1.0, 0.75, 22, 8, None),
}


def centre(function: Callable, middle: float) -> np.float32:
    """A float near to the middle of a piece, where the function is nearly a float too."""
    near = np.linspace(0.997 * middle, 1.003 * middle, 4001).astype(np.float32)
    values = function(near.astype(np.float64))
    rest = np.abs(values - values.astype(np.float32)) / np.spacing(values.astype(np.float32))
    return near[np.argmin(rest)]


def minimax(powers: np.ndarray, wanted: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The coefficients of the columns for which the greatest error is least."""
    weights, size = np.ones(len(wanted)), np.abs(powers).max(axis=0)
    for _ in range(STEPS):
        root = np.sqrt(weights) / units
        found = np.linalg.lstsq(powers / size * root[:, None], wanted * root)[0] / size
        weights *= np.abs(wanted - powers @ found) / units + 1e-30
        weights /= weights.sum()
    return found


def piece(fit: Fit, low: float, high: float) -> tuple[float, float, list[float]]:
    """The centre, the value there, and the coefficients from the first power on; an odd function begins with x."""
    function, is_first = fit.function, fit.is_odd and not low
    x = (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    at = 0.0 if is_first else float(centre(function, (low + high) / 2))
    value = float(np.float32(function(at)))
    rest, t, units = function(x) - (x if is_first else value), x - at, np.spacing(function(x).astype(np.float32))
    coefficients = []
    for k in range(1, fit.degree + 1):
        powers = t[:, None] ** np.arange(k, fit.degree + 1)
        coefficients.append(float(np.float32(minimax(powers, rest, units.astype(np.float64))[0])))
        rest = rest - coefficients[-1] * t**k
    return at, value, coefficients


def rows(fit: Fit) -> list[list[float]]:
    """Centres, values and coefficients by their entries; of entries that no piece has, zeros."""
    table = np.zeros((fit.degree + 2, SIZE))
    for entry, low, high in fit.bounds():
        at, value, coefficients = piece(fit, low, high)
        table[:, entry] = at, value, *coefficients
    return table.tolist()


def numbers(row: list[float]) -> str:
    text = "(" + ", ".join(str(np.float32(v)) for v in row) + "),"
    return textwrap.fill(text, 108, initial_indent=" " * 8, subsequent_indent=" " * 9, break_on_hyphens=False)


def main() -> None:
    print('"""Functions by eight pieces; `fit_pieces.py` prints and describes them."""\n')
    print("from .lookup import Pieces, Rising, Smooth")
    for name, fit in FITS.items():
        centres, values, *coefficients = map(numbers, rows(fit))
        told = f"{fit.end}, {fit.scale}, {fit.offset}, {fit.shift}, {fit.first}"
        kind, told = ("Rising", told) if fit.is_odd else ("Smooth", f"{fit.offset}, {fit.shift}")
        print(f"\n{name} = {kind}(\n    {told},\n    Pieces(\n{centres}\n{values}\n        (")
        print(textwrap.indent("\n".join(coefficients), "    ") + "\n        ),\n    ),\n)  # fmt: skip")


if __name__ == "__main__":
    main()
