"""The accuracy of the library: bounds, references, and the command that measures and reports.

`python -m catena.compiler.vector_math.accuracy [points]`, run in the root of a checkout, compares every
function with mpmath at `points` arguments per function and type, and writes `docs/accuracy_vector_math.md`.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from .harness import Compiled
from .library import ELEMENTARY, arity
from .text import FORMATS

PRECISION = 200
INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Bound:
    """The greatest error in units in the last place, for floats and for doubles."""

    single: float
    double: float
    note: str = ""

    def of(self, elem: str) -> float:
        return self.single if elem == "float" else self.double


SQUARE_NOTE = (
    "floats follow Giles's polynomials in log(1 - x²) with x² rounded to a float, as random.normal requires:"
    " the error is against erf_inv of the root of that square"
)
REFLECTION_NOTE = "for x < 0, where the zeros are, in units in the last place of the greater of |f(x)| and |f(1 - x)|"

BOUNDS: dict[str, Bound] = {
    "exp": Bound(1.1, 1.1),
    "exp2": Bound(1.0, 1.0),
    "expm1": Bound(2.0, 2.0),
    "logistic": Bound(2.5, 2.5),
    "tanh": Bound(1.5, 1.5),
    "sinh": Bound(2.0, 2.0),
    "cosh": Bound(1.75, 1.75),
    "log": Bound(1.0, 1.0),
    "log1p": Bound(1.0, 1.0),
    "log2": Bound(1.0, 1.0),
    "log10": Bound(1.0, 1.0),
    "entr": Bound(0.75, 0.75),
    "logit": Bound(1.0, 1.0),
    "sin": Bound(0.75, 0.75),
    "cos": Bound(0.75, 0.75),
    "tan": Bound(0.75, 0.75),
    "asin": Bound(1.0, 1.0),
    "acos": Bound(1.0, 1.0),
    "atan": Bound(0.75, 0.5001),
    "atan2": Bound(0.75, 1.75),
    "asinh": Bound(0.75, 1.25),
    "acosh": Bound(0.75, 1.0),
    "atanh": Bound(0.75, 1.0),
    "erf": Bound(1.5, 1.5),
    "erfc": Bound(1.5, 4.0),
    "erf_inv": Bound(4.0, 3.0, SQUARE_NOTE),
    "error_density": Bound(1.5, 2.5),
    "normal_density": Bound(2.5, 2.5),
    "cbrt": Bound(0.75, 0.75),
    "rsqrt": Bound(1.5, 1.5),
    "hypot": Bound(0.75, 0.75),
    "modulus": Bound(1.25, 1.25),
    "pow": Bound(0.75, 1.0),
    "lgamma": Bound(1.0, 4.0, REFLECTION_NOTE),
    "digamma": Bound(1.0, 2.5, REFLECTION_NOTE),
    "trigamma": Bound(1.0, 2.5),
}


def reference_lgamma(x):
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def reference_digamma(x):
    return mp.digamma(x) if x > 0 else mp.digamma(1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)


def reference_trigamma(x):
    return mp.psi(1, x) if x > 0 else (mp.pi / mp.sinpi(x)) ** 2 - mp.psi(1, 1 - x)


def rounded_square_erf_inv(x):
    """erf_inv at the root of the float nearest to x^2."""
    square = mp.mpf(float(np.float32(np.float64(x) * np.float64(x))))
    if not square:
        return mp.erfinv(x)
    return mp.erfinv(mp.sqrt(square)) * x / mp.sqrt(square)


REFERENCES: dict[str, Callable] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "tanh": mp.tanh,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "log": mp.log,
    "log1p": mp.log1p,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": mp.log10,
    "entr": lambda x: -x * mp.log(x),
    "logit": lambda x: mp.log(x / (1 - x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erf_inv": mp.erfinv,
    "error_density": lambda x: 2 * mp.exp(-x * x) / mp.sqrt(mp.pi),
    "normal_density": mp.npdf,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "hypot": mp.hypot,
    "modulus": mp.hypot,
    "pow": mp.power,
    "lgamma": reference_lgamma,
    "digamma": reference_digamma,
    "trigamma": reference_trigamma,
}


@dataclass(frozen=True)
class Domain:
    """Where to sample: the interval, magnitudes down to the subnormals, and breakpoints' neighbours."""

    low: float
    high: float
    breakpoints: tuple[float, ...] = ()
    interesting: tuple[float, float] = (-4.0, 4.0)


# Eighths and quarters of a turn, and where the reduction changes.
ANGLES = (0.7853981633974483, 1.5707963267948966, 3.141592653589793, 6.283185307179586, 2.0**15, 2.0**26, 2.0**40)
DOMAINS: dict[str, Domain] = {
    "exp": Domain(-750, 711, (-745.13, -708.4, 709.78, -103.97, -87.3, 88.72), (-100, 88)),
    "exp2": Domain(-1080, 1025, (0.5, -0.5, 1024, -1074, -149, 128, 1.5), (-126, 128)),
    "expm1": Domain(-60, 711, (0.3466, -0.3466, 1.04, -1.04, 88.7, 709.7)),
    "logistic": Domain(-750, 50, (-88.7, -709.8), (-20, 20)),
    "tanh": Domain(-30, 30, (0.2561, 0.6396, 0.625, 2.94, 9.01, 19.06)),
    "sinh": Domain(-711, 711, (1, 89.4, 710.47)),
    "cosh": Domain(-711, 711, (1, 89.4, 710.47)),
    "log": Domain(0, INF, (1, 0.7071067811865476, 1.4142135623730951, 2, 0.5), (0.25, 4)),
    "log1p": Domain(-1, INF, (-0.2928932188134524, 0.4142135623730951), (-0.99, 3)),
    "log2": Domain(0, INF, (1, 0.7071067811865476, 1.4142135623730951, 2, 8), (0.25, 4)),
    "log10": Domain(0, INF, (1, 0.7071067811865476, 1.4142135623730951, 10, 1000), (0.25, 4)),
    "entr": Domain(0, 1e30, (1, 0.7071067811865476, 1.4142135623730951), (0.01, 4)),
    "logit": Domain(0, 1, (0.5, 0.25, 0.75, 0.41421356, 0.58578644), (0, 1)),
    "sin": Domain(-INF, INF, ANGLES, (-40, 40)),
    "cos": Domain(-INF, INF, ANGLES, (-40, 40)),
    "tan": Domain(-INF, INF, ANGLES, (-40, 40)),
    "asin": Domain(-1, 1, (0.5, 1), (-1, 1)),
    "acos": Domain(-1, 1, (0.5, -0.5, 1, -1), (-1, 1)),
    "atan": Domain(-INF, INF, (1,)),
    "atan2": Domain(-INF, INF, (1,)),
    "asinh": Domain(-INF, INF, (1, 2.0**28)),
    "acosh": Domain(1, INF, (1, 2, 2.0**28), (1, 5)),
    "atanh": Domain(-1, 1, (0.5, 1), (-1, 1)),
    "erf": Domain(-7, 7, (0.2275, 0.4775, 1, 3.7275, 3.97, 5.9)),
    "erfc": Domain(-7, 27.3, (0.5, -0.5, 1, 9.2, 10.05, 26.5), (-2, 6)),
    "erf_inv": Domain(-1, 1, (0.9966, 0.99903, 0.9999999), (-1, 1)),
    "error_density": Domain(-28, 28, (9.3, 10.2, 26.5), (-4, 4)),
    "normal_density": Domain(-39, 39, (13.1, 14.5, 37.5), (-4, 4)),
    "cbrt": Domain(-INF, INF, (1, 2, 8, 27)),
    "rsqrt": Domain(0, INF, (1, 4), (0.25, 4)),
    "hypot": Domain(-INF, INF, (2.0**500, 2.0**-450, 3, 4)),
    "modulus": Domain(-INF, INF, (2.0**500, 2.0**-450, 2.0**60, 2.0**-50, 3, 4)),
    "pow": Domain(-INF, INF, (1, 2, -3, 0.5), (-10, 10)),
    "lgamma": Domain(-1e15, INF, (0.5, 1, 1.25, 1.5, 2, 2.5), (-6, 10)),
    "digamma": Domain(-1e15, INF, (1, 1.4616321449683623, 2), (-6, 10)),
    "trigamma": Domain(-1e15, INF, (1, 2), (-6, 10)),
}

# Exact results at the edges; NaN gives NaN everywhere else than stated.
SPECIALS: dict[str, list[tuple]] = {
    "exp": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(INF, INF), (-INF, 0.0), (-0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125), (1e4, INF), (-1e4, 0.0)],
    "expm1": [(INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e4, INF), (-1e4, -1.0)],
    "logistic": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (1e4, 1.0), (-1e4, 0.0)],
    "tanh": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e30, 1.0)],
    "sinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-1e4, -INF)],
    "cosh": [(INF, INF), (-INF, INF), (-0.0, 1.0), (-1e4, INF)],
    "log": [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (1.0, 0.0), (-1e-40, NAN)],
    "log1p": [(INF, INF), (-1.0, -INF), (-2.0, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "log2": [(INF, INF), (0.0, -INF), (-1.0, NAN), (1.0, 0.0), (8.0, 3.0), (2.0**-149, -149.0)],
    "log10": [(INF, INF), (0.0, -INF), (-1.0, NAN), (1.0, 0.0), (1000.0, 3.0), (10.0, 1.0)],
    "entr": [
        (INF, -INF),
        (0.0, -0.0),
        (-0.0, -0.0),
        (-1.0, -INF),
        (1.0, -0.0),
        (2.0**-149, 149 * 2.0**-149 * 0.6931471805599453),
    ],
    "logit": [(0.0, -INF), (-0.0, -INF), (1.0, INF), (0.5, 0.0), (1.5, NAN), (-1e-40, NAN), (INF, NAN), (-INF, NAN)],
    "sin": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "cos": [(INF, NAN), (-INF, NAN), (0.0, 1.0), (-0.0, 1.0)],
    "tan": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0)],
    "atan2": [
        (0.0, 1.0, 0.0),
        (-0.0, 1.0, -0.0),
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0),
        (0.0, INF, 0.0),
        (-1.0, INF, -0.0),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "asinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0)],
    "acosh": [(INF, INF), (1.0, 0.0), (0.5, NAN), (-2.0, NAN), (-INF, NAN)],
    "atanh": [(1.0, INF), (-1.0, -INF), (0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)],
    "erf": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (-0.0, 1.0), (1e30, 0.0)],
    "erf_inv": [(1.0, INF), (-1.0, -INF), (0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)],
    "error_density": [(INF, 0.0), (-INF, 0.0), (0.0, 1.1283791670955126), (1e30, 0.0)],
    "normal_density": [(INF, 0.0), (-INF, 0.0), (0.0, 0.3989422804014327), (1e30, 0.0)],
    "cbrt": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0)],
    "rsqrt": [(INF, 0.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (4.0, 0.5)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, -0.0, 0.0), (3.0, -4.0, 5.0)],
    "modulus": [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, -0.0, 0.0), (3.0, -4.0, 5.0)],
    "pow": [
        (0.0, 0.0, 1.0),
        (NAN, 0.0, 1.0),
        (1.0, NAN, 1.0),
        (1.0, INF, 1.0),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (-1.0, NAN, NAN),
        (0.0, -1.0, INF),
        (-0.0, -1.0, -INF),
        (-0.0, -2.0, INF),
        (-0.0, 3.0, -0.0),
        (-0.0, 0.5, 0.0),
        (0.0, INF, 0.0),
        (0.0, -INF, INF),
        (-0.0, -INF, INF),
        (0.5, INF, 0.0),
        (2.0, INF, INF),
        (-2.0, INF, INF),
        (0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (INF, 2.0, INF),
        (INF, -2.0, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, 0.5, INF),
        (-1.0, 0.5, NAN),
        (9.0, 0.5, 3.0),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-8.0, 1 / 3, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, -2.0, 0.25),
        (INF, 0.0, 1.0),
        (10.0, 400.0, INF),
        (10.0, -400.0, 0.0),
        (-10.0, 401.0, -INF),
    ],
    "lgamma": [
        (INF, INF),
        (-INF, INF),
        (0.0, INF),
        (-0.0, INF),
        (-3.0, INF),
        (1.0, 0.0),
        (2.0, 0.0),
        (-1e30, INF),
    ],
    "digamma": [(INF, INF), (-INF, NAN), (0.0, NAN), (-0.0, NAN), (-3.0, NAN), (-1e30, NAN)],
    "trigamma": [(INF, 0.0), (-INF, INF), (0.0, INF), (-0.0, INF), (-3.0, INF), (-1e30, INF)],
}


# Left to SPECIALS: the sign and the NaNs of pow, and poles.
EXCLUDED: dict[str, Callable[..., bool]] = {
    "pow": lambda x, y: x < 0,
    "lgamma": lambda x: x <= 0 and x == int(x),
    "digamma": lambda x: x <= 0 and x == int(x),
    "trigamma": lambda x: x <= 0 and x == int(x),
}


def samples(name: str, elem: str, count: int) -> tuple[np.ndarray, ...]:
    """Arguments inside the domain: by exponent, in the interesting interval, and overall."""
    return tuple(_samples(DOMAINS[name], elem, count, seed) for seed in range(arity(name)))


def _samples(domain: Domain, elem: str, count: int, seed: int) -> np.ndarray:
    scalar = FORMATS[elem].scalar
    info, random = np.finfo(scalar), np.random.default_rng(seed)
    low, high = max(domain.low, -float(info.max)), min(domain.high, float(info.max))
    exponents = random.integers(info.minexp - info.nmant, info.maxexp, count // 3)
    signs = random.choice([-1.0, 1.0], count // 3)
    magnitudes = np.ldexp(random.uniform(1, 2, count // 3).astype(np.longdouble), exponents) * signs
    near = np.array([b for b in domain.breakpoints if float(info.tiny) < abs(b) < float(info.max)])
    steps = random.integers(-3, 4, (5, near.size)) * np.spacing(near.astype(scalar))
    groups = [
        magnitudes,
        random.uniform(domain.interesting[0], domain.interesting[1], count // 3),
        (near + steps).ravel(),
    ]
    if np.isfinite(domain.high - domain.low):
        groups.append(random.uniform(low, high, count // 3))
    values = np.concatenate([np.asarray(g, np.longdouble) for g in groups])
    values = random.permutation(values[(values > low) & (values < high)]).astype(scalar)
    values = values[(values > domain.low) & (values < domain.high)]
    return np.resize(values, -(-count // 16) * 16)


def last_place(value, elem: str):
    """The unit in the last place of an exact value; of the subnormals at the low end."""
    fmt = FORMATS[elem]
    exponent = max(mp.mag(value) - 1, 1 - fmt.bias) if value else 1 - fmt.bias
    return mp.ldexp(1, exponent - fmt.mantissa_bits)


def error(got: float, exact, elem: str, floor=0.0) -> float:
    """|got - exact| in units in the last place of the exact value (or of `floor`, if that is greater)."""
    if np.isnan(got):
        return INF
    limit = mp.mpf(FORMATS[elem].max)
    if abs(exact) > limit or np.isinf(got):
        # Around the greatest number both it and infinity are within the bounds.
        nearly = limit * (1 - 4 * FORMATS[elem].epsilon)
        return 0.0 if abs(exact) > nearly and abs(got) >= nearly and got * mp.sign(exact) > 0 else INF
    return float(abs(mp.mpf(float(got)) - exact) / last_place(max(abs(exact), mp.mpf(floor)), elem))


def exact_values(name: str, reference: Callable, arguments) -> list:
    """The reference at every point, as exactly as needed; None where `EXCLUDED` says so."""
    excluded = EXCLUDED.get(name, lambda *point: False)
    points = zip(*(a.tolist() for a in arguments))
    with mp.workprec(PRECISION):
        return [None if excluded(*p) else reference(*(mp.mpf(x) for x in p)) for p in points]


def floors_of(name: str, reference: Callable, arguments) -> list:
    """What the unit of the error is taken of where it is greater than the result: see `REFLECTION_NOTE`."""
    if name not in ("lgamma", "digamma"):
        return [0.0] * arguments[0].size
    with mp.workprec(PRECISION):
        return [abs(reference(1 - mp.mpf(x))) if x < 0 else 0.0 for x in arguments[0].tolist()]


def greatest_error(results, exact, floors, arguments, elem: str) -> tuple[float, tuple[float, ...]]:
    """The greatest error, and where it is."""
    worst, place = 0.0, ()
    with mp.workprec(PRECISION):
        for got, want, floor, *point in zip(results.tolist(), exact, floors, *(a.tolist() for a in arguments)):
            found = 0.0 if want is None else error(got, want, elem, floor)
            if found > worst:
                worst, place = found, tuple(point)
    return worst, place


def worst_error(name: str, elem: str, count: int, width: int = 8) -> tuple[float, tuple[float, ...]]:
    """The greatest error of the library over `count` samples, and where it is."""
    arguments = samples(name, elem, count)
    results = Compiled(name, elem, width)(*arguments)
    reference = rounded_square_erf_inv if (name, elem) == ("erf_inv", "float") else REFERENCES[name]
    exact, floors = (f(name, reference, arguments) for f in (exact_values, floors_of))
    return greatest_error(results, exact, floors, arguments, elem)


def report(count: int) -> str:
    lines = [
        "# Accuracy of the vector mathematics library",
        "",
        "Written by `python -m catena.compiler.vector_math.accuracy`; do not edit.",
        "",
        f"Greatest error found against mpmath at about {count} arguments per function and type, in units in",
        "the last place (0.5 is correct rounding), with the bound that `tests/compiler/test_vector_math.py` asserts.",
        "Arguments span every exponent, subnormals, and the neighbourhoods of all breakpoints. Results do",
        "not depend on the vector width. Subnormal arguments and results are computed like any others;",
        "nothing is flushed to zero. Special values are in `SPECIALS` of the same module, and are exact.",
        "",
        "| function | float32 | bound | at | float64 | bound | at |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ELEMENTARY:
        cells = [f"`{name}`"]
        for elem in FORMATS:
            worst, place = worst_error(name, elem, count)
            where = ", ".join(f"{p:.9g}" for p in place)
            cells += [f"{worst:.3f}", f"{BOUNDS[name].of(elem):g}", where]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    notes = [f"- `{name}`: {bound.note}." for name, bound in BOUNDS.items() if bound.note]
    return "\n".join([*lines, "", *notes, ""])


if __name__ == "__main__":
    text = report(int(sys.argv[1]) if len(sys.argv) > 1 else 30000)
    page = Path("docs/accuracy_vector_math.md")
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
