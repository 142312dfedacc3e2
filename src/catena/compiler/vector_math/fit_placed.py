"""Computes the tables of `placed.py`, by hand: `python -m catena.compiler.vector_math.fit_placed > placed.py`.

Interpolation as in `fits.py`, of the lowest degree whose error is below the goal in all eight pieces: of the
function, or, where it has zeros, of the greatest value in a piece.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

from catena.core.named import NamedTuple

from .fits import interpolant
from .lookup import SIZE

GOAL, SINGLE = mp.mpf(2) ** -56, mp.mpf(2) ** -32
TINY = mp.mpf(10) ** -30


class Fit(NamedTuple):
    """A function of a, one of u up to 1 / ``far_scale`` beyond, and the error that is allowed (see `lookup.Placed`)."""

    near: Callable
    far: Callable
    scale: float
    far_scale: float
    goal: Any

    @property
    def end(self) -> float:
        return (SIZE - 1.5) / self.scale

    def pieces(self) -> list[Callable]:
        """The functions of the pieces, of t from -1/2 to 1/2."""
        near = [lambda t, n=n: self.near((n + t) / self.scale) for n in range(SIZE - 1)]
        return [*near, lambda t: self.far(max((t + mp.mpf(1) / 2) / self.far_scale, TINY))]


def dawson(x):
    """Dawson's integral, also where its factors are huge and tiny."""
    with mp.workdps(60 + int(x * x)):
        return +(mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2)


def far_dawson(v):
    """2 x times Dawson's integral of x = v^(-1/2)."""
    if v > mp.mpf(1) / 900:
        x = 1 / mp.sqrt(v)
        return 2 * x * dawson(x)
    return mp.fsum(mp.fac2(2 * k - 1) * (v / 2) ** k for k in range(60))  # DLMF 7.12.1


def over_argument(function, at_zero):
    return lambda x: function(x) / x if abs(x) > TINY else mp.mpf(at_zero)


def dawson_slope(x):
    """The derivative of Dawson's integral."""
    return 1 - 2 * x * dawson(x)


def far_dawson_slope(v):
    """That of x = v^(-1/2), over v."""
    return (1 - far_dawson(v)) / v if v > mp.mpf(10) ** -20 else mp.mpf(-1) / 2


def less_one(function):
    return lambda v: function(v) - 1 if v > mp.mpf(10) ** -20 else v / 2


# Pieces end at 6.5 and 4.
FITS = {
    "DAWSON": Fit(over_argument(dawson, 1), less_one(far_dawson), 1.0, 6.5**2, GOAL),
    "DAWSON_SLOPE": Fit(dawson_slope, far_dawson_slope, 1.0, 6.5**2, GOAL),
    "DAWSON_SLOPE_SINGLE": Fit(dawson_slope, far_dawson_slope, 1.625, 4.0**2, SINGLE),
}


def greatest_error(function: Callable, coefficients: list) -> mp.mpf:
    """That of a polynomial, over the values of a function, or, where it has a zero, over the greatest one."""
    points = [mp.cos(mp.pi * (k + mp.mpf("0.37")) / 40) / 2 for k in range(40)]
    wanted = [function(t) for t in points]
    most = max(abs(v) for v in wanted)
    changes = min(wanted) < 0 < max(wanted)
    return max(
        abs(mp.polyval(coefficients[::-1], t) - v) / (most if changes else abs(v)) for t, v in zip(points, wanted)
    )


def fitted(fit: Fit) -> list[list]:
    """Coefficients by powers of t, each of them for all pieces."""
    for degree in range(4, 30):
        found = [interpolant(f, mp.mpf(-1) / 2, mp.mpf(1) / 2, degree) for f in fit.pieces()]
        found = [[c * 2**k for k, c in enumerate(piece)] for piece in found]  # of t from -1 to 1
        if max(greatest_error(f, c) for f, c in zip(fit.pieces(), found)) < fit.goal:
            return [list(row) for row in zip(*found)]
    raise ValueError("no polynomials of moderate degree")


def numbers(row: list) -> str:
    text = "(" + ", ".join(repr(float(v)) for v in row) + "),"
    return textwrap.fill(text, 112, initial_indent=" " * 8, subsequent_indent=" " * 9, break_on_hyphens=False)


def main() -> None:
    print('"""Functions by eight pieces; `fit_placed.py` prints and describes them."""\n\nfrom .lookup import Placed')
    for name, fit in FITS.items():
        coefficients = fitted(fit)
        low = numbers([c - float(c) for c in coefficients[0]]).strip() if fit.goal < SINGLE else "(),"
        print(f"\n{name} = Placed(\n    {fit.end!r}, {fit.scale!r}, {fit.far_scale!r},\n    {low}\n    (")
        print("\n".join(numbers(row) for row in coefficients))
        print("    ),\n)  # fmt: skip")


if __name__ == "__main__":
    main()
