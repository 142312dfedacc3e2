"""Computes the tables of `paired.py`, by hand: `python -m catena.compiler.vector_math.fit_paired > paired.py`.

Interpolation as in `fit_placed.py`, in what the argument is off the centre of its piece. The first coefficients are
sums of two floats, the others floats: what these are off counts little, for their powers are small.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from catena.core.named import NamedTuple

from .fit_placed import dawson, over_argument
from .fits import bessel_difference, interpolant
from .lookup import SIZE

GOAL = 1.2 * mp.mpf(2) ** -31  # of a function


class Fit(NamedTuple):
    """A function, which goes on below zero, and what tells its pieces (see `lookup.Paired`)."""

    function: Callable
    scale: float
    offset: float
    shift: int
    leading: int  # coefficients that are sums

    def pieces(self) -> Iterator[tuple[int, float, float]]:
        """The entry of each piece, its centre, and how far it reaches from there: the first is centred at zero."""
        first = int(np.float32(self.offset).view(np.int32)) >> self.shift
        for k in range(SIZE):
            low, high = (float(np.int32(first + k + i << self.shift).view(np.float32)) for i in range(2))
            low, high = (max(v - self.offset, 0.0) / self.scale for v in (low, high))
            centre = float(np.float32((low + high) / 2)) if k else 0.0
            yield (first + k) % SIZE, centre, max(high - centre, centre - low)

    @property
    def end(self) -> float:
        return max(centre + reach for _, centre, reach in self.pieces())


def bessel(order: int):
    return lambda x: mp.exp(-x) * mp.besseli(order, x)


# Pieces are so short that the first term that is none is less than a hundredth of the function.
FITS = {
    "I0E": Fit(bessel(0), 0.9375, 0.75, 22, 4),
    "I1E": Fit(over_argument(bessel(1), 0.5), 0.9375, 0.75, 22, 4),
    "BESSEL_DIFFERENCE": Fit(bessel_difference, 0.9375, 0.75, 22, 4),
    "DAWSON": Fit(over_argument(dawson, 1), 1.0, 0.5, 22, 4),
}


def rounded(number) -> float:
    return float(np.float32(float(number)))


def polynomial(function: Callable, centre: float, reach: float, degree: int) -> list:
    """Coefficients by powers of what the argument is off the centre."""
    found = interpolant(lambda t: function(centre + t), -mp.mpf(reach), mp.mpf(reach), degree)
    return [c / mp.mpf(reach) ** k for k, c in enumerate(found)]


def greatest_error(fit: Fit, centre: float, reach: float, numbers: list) -> mp.mpf:
    """That of the polynomial in the table, over the function."""
    kept = [rounded(c) + (rounded(c - rounded(c)) if k < fit.leading else 0.0) for k, c in enumerate(numbers)]
    points = [reach * mp.cos(mp.pi * (k + mp.mpf("0.37")) / 40) for k in range(40)]
    return max(abs(mp.polyval(kept[::-1], t) / fit.function(centre + t) - 1) for t in points)


def fitted(fit: Fit) -> list[list]:
    """Centres, and coefficients by powers, each by entries."""
    for degree in range(5, 20):
        rows: list = [None] * SIZE
        for entry, centre, reach in fit.pieces():
            numbers = polynomial(fit.function, centre, reach, degree)
            if greatest_error(fit, centre, reach, numbers) > GOAL:
                break
            rows[entry] = [centre, *numbers]
        else:
            return [list(column) for column in zip(*rows)]
    raise ValueError("no polynomials of moderate degree")


def numbers(row: list) -> str:
    text = "(" + ", ".join(str(np.float32(float(v))) for v in row) + "),"
    return textwrap.fill(text, 108, initial_indent=" " * 8, subsequent_indent=" " * 9, break_on_hyphens=False)


def main() -> None:
    print('"""Functions by eight pieces in pairs of floats; `fit_paired.py` prints and describes them."""\n')
    print("from .lookup import Paired")
    for name, fit in FITS.items():
        centres, *coefficients = fitted(fit)
        leading = coefficients[: fit.leading]
        low = [[c - rounded(c) for c in row] for row in leading]
        print(f"\n{name} = Paired(\n    {fit.end}, {fit.scale}, {fit.offset}, {fit.shift},\n{numbers(centres)[4:]}")
        for rows in (leading, low, coefficients[fit.leading :]):
            print("    (\n" + "\n".join(map(numbers, rows)) + "\n    ),")
        print(")  # fmt: skip")


if __name__ == "__main__":
    main()
