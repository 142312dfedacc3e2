"""Computes the minimax polynomials of `tables.py`, by hand: `python -m catena.compiler.vector_math.remez [NAME ...]`.

Remez's exchange algorithm (E. Remez 1934; Cheney, "Introduction to Approximation Theory", ch. 3) on a fixed
Chebyshev grid, in 60-digit arithmetic by mpmath: find the polynomial p that minimises max |weight(x) (f(x) -
p(x))|. Each table states its function, interval, degree and weight; the weight makes the error relative to
the *whole* result that p contributes to.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp  # type: ignore[import-untyped]

mp.mp.dps = 60
HALF_LN2 = mp.log(2) / 2
PI_4 = mp.pi / 4
SIGNIFICANDS = (mp.sqrt(0.5) - 1.001, mp.sqrt(2) - 0.999)


@dataclass(frozen=True)
class Fit:
    function: Callable
    low: object
    high: object
    float_degree: int | None
    double_degree: int | None
    weight: Callable


def grid_of(low, high, count: int) -> list:
    """Chebyshev points, clustered at the ends; an even count never hits the midpoint (where quotients are 0/0)."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return [middle - half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]


def alternation(errors: list) -> list[int]:
    """The index of the largest error in each run of equal sign."""
    picks = [0]
    for k in range(1, len(errors)):
        if (errors[k] > 0) != (errors[picks[-1]] > 0):
            picks.append(k)
        elif abs(errors[k]) > abs(errors[picks[-1]]):
            picks[-1] = k
    return picks


def remez(fit: Fit, degree: int):
    """The minimax coefficients (low power first) and the weighted error."""
    size = degree + 2
    grid = grid_of(fit.low, fit.high, 24 * size)
    values, weights = [fit.function(x) for x in grid], [fit.weight(x) for x in grid]
    middle, half = (mp.mpf(fit.low) + fit.high) / 2, (mp.mpf(fit.high) - fit.low) / 2
    scaled = [(x - middle) / half for x in grid]
    nodes = [round((len(grid) - 1) * (1 - mp.cos(mp.pi * k / (size - 1))) / 2) for k in range(size)]
    for _ in range(12):
        matrix = mp.matrix(size, size)
        for row, k in enumerate(nodes):
            for column in range(degree + 1):
                matrix[row, column] = mp.chebyt(column, scaled[k])
            matrix[row, degree + 1] = (-1) ** row / weights[k]
        solution = mp.lu_solve(matrix, mp.matrix([values[k] for k in nodes]))
        power = chebyshev_to_powers(list(solution)[: degree + 1])
        errors = [w * (v - mp.polyval(power[::-1], s)) for w, v, s in zip(weights, values, scaled)]
        picks = alternation(errors)
        while len(picks) > size:
            picks.pop(0 if abs(errors[picks[0]]) < abs(errors[picks[-1]]) else -1)
        worst = max(abs(e) for e in errors)
        if len(picks) < size or worst < abs(solution[degree + 1]) * mp.mpf("1.01"):
            break
        nodes = picks
    return shift_powers(power, middle, half), worst


def chebyshev_to_powers(coefficients: list) -> list:
    previous, current = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    total = [mp.mpf(0)] * max(2, len(coefficients))
    for k, c in enumerate(coefficients):
        basis = previous if k == 0 else current
        for i, b in enumerate(basis):
            total[i] += c * b
        if k > 0:
            doubled = [mp.mpf(0)] + [2 * b for b in current]
            for i, b in enumerate(previous):
                doubled[i] -= b
            previous, current = current, doubled
    return total[: len(coefficients)]


def shift_powers(power: list, middle, half) -> list:
    """Coefficients in x of a polynomial in (x - middle) / half."""
    result = [mp.mpf(0)]
    for c in reversed(power):
        shifted = [mp.mpf(0)] + [r / half for r in result]
        for i, r in enumerate(result):
            shifted[i] -= r * middle / half
        shifted[0] += c
        result = shifted
    return result[: len(power)]


def in_square(f):
    """f as a function of z = x^2."""
    return lambda z: f(mp.sqrt(z))


ERFC_CENTRE = 3


def scaled_erfc(q):
    """(1 + 2a) exp(a^2) erfc(a) at a = 3 (1 + q) / (1 - q)."""
    a = ERFC_CENTRE * (1 + q) / (1 - q)
    return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


def q_of(a):
    return mp.mpf(a - ERFC_CENTRE) / (a + ERFC_CENTRE)


def inverse_log(w):
    """The x with w = -log(1 - x^2)."""
    return mp.sqrt(-mp.expm1(-w))


def erfinv_over_x(x):
    """erf_inv(x) / x for 0 < x < 1, by Newton's iteration on erfc, which keeps every digit near one."""
    return mp.erfinv(x) / x if x < 0.5 else erfinv_from_log(-mp.log1p(-x * x))


def erfinv_from_log(w):
    """erf_inv(x) / x with w = -log(1 - x^2): 1 - x = e^-w / (1 + x) without cancellation, then Newton on log erfc."""
    x = inverse_log(w)
    target = mp.log(mp.exp(-w) / (1 + x))
    y = mp.sqrt(w) if w > 1 else mp.mpf(1) / 2
    for _ in range(200):
        tail = mp.erfc(y)
        step = (mp.log(tail) - target) * tail * mp.sqrt(mp.pi) / (2 * mp.exp(-y * y))
        y += step
        if abs(step) < mp.mpf(10) ** -50:
            break
    return y / x


def at_inverse(f):
    return lambda t: f(1 / t)


def stirling_remainder(z):
    return z * (mp.loggamma(z) - (z - mp.mpf(1) / 2) * mp.log(z) + z - mp.log(2 * mp.pi) / 2)


def digamma_remainder(z):
    return z * z * (mp.log(z) - 1 / (2 * z) - mp.digamma(z))


def trigamma_remainder(z):
    return z**3 * (mp.psi(1, z) - 1 / z - 1 / (2 * z * z))


DIGAMMA_ZERO = mp.findroot(mp.digamma, 1.4616321449683623)


FITS = {
    # exp(r) = 1 + r + r^2 EXP(r); exact relative to exp(r) - 1, so that expm1 shares it
    "EXP": Fit(lambda r: (mp.expm1(r) - r) / r**2, -HALF_LN2 * 1.01, HALF_LN2 * 1.01, 4, 10, abs),
    # 2^r = 1 + r EXP2(r)
    "EXP2": Fit(lambda r: mp.expm1(r * mp.log(2)) / r, -0.5, 0.5, 5, 11, lambda r: 1),
    # log(1 + f) = f - f^2/2 + f^3 LOG_FLOAT(f) between sqrt(1/2) and sqrt(2)
    "LOG_FLOAT": Fit(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, *SIGNIFICANDS, 8, None, lambda f: f * f),
    # 2 atanh(s) = 2 s + s z LOG(z), z = s^2, s = f / (2 + f)
    "LOG": Fit(in_square(lambda s: (2 * mp.atanh(s) / s - 2) / s**2), 0, mp.mpf("0.0296"), 3, 6, lambda z: z),
    # sin r = r + r z SIN(z), cos r = 1 - z/2 + z^2 COS(z), z = r^2, |r| <= pi/4
    "SIN": Fit(in_square(lambda r: (mp.sin(r) - r) / r**3), 0, PI_4**2 * 1.02, None, 6, lambda z: z),
    "COS": Fit(in_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), 0, PI_4**2 * 1.02, None, 5, lambda z: z * z),
    # sinh x = x + x z SINH(z), z = x^2, x <= 1
    "SINH": Fit(in_square(lambda r: (mp.sinh(r) - r) / r**3), 0, 1, 3, 6, lambda z: z),
    # asin x = x + x z ASIN(z), x <= 1/2; atan x = x + x z ATAN(z), x <= 1
    "ASIN": Fit(in_square(lambda x: (mp.asin(x) - x) / x**3), 0, 0.25, 4, 11, lambda z: z),
    "ATAN": Fit(in_square(lambda x: (mp.atan(x) - x) / x**3), 0, 1, 8, 19, lambda z: z),
    # the same in doubles to 2^-34, for results that are rounded to floats, and atan to tan(pi/8)
    "SIN_SHORT": Fit(in_square(lambda r: (mp.sin(r) - r) / r**3), 0, PI_4**2 * 1.02, None, 3, lambda z: z),
    "COS_SHORT": Fit(
        in_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), 0, PI_4**2 * 1.02, None, 2, lambda z: z * z
    ),
    "ATAN_SHORT": Fit(in_square(lambda x: (mp.atan(x) - x) / x**3), 0, 1, None, 10, lambda z: z),
    # atan x = x - x z (1/3 - z (1/5 - z (1/7 - z ATAN_SMALL(z)))), x <= tan(pi/8)
    "ATAN_SMALL": Fit(
        in_square(lambda x: (mp.atan(x) / x - 1 + x**2 / 3 - x**4 / 5 + x**6 / 7) / x**8),
        0,
        mp.mpf("0.1717"),
        None,
        9,
        lambda z: z**4,
    ),  # fmt: skip
    # erf x = x + x ERF(z), z = x^2, x <= 1
    "ERF": Fit(in_square(lambda x: mp.erf(x) / x - 1), 0, 1, None, 11, lambda z: 1),
    # erfc a = exp(-a^2) ERFC(q) / (1 + 2a), q = (a - 3) / (a + 3), a >= 0.45
    "ERFC": Fit(scaled_erfc, q_of(0.45), q_of(28), None, 21, lambda q: 1 / scaled_erfc(q)),
    # erf_inv x = x p(...) with w = -log(1 - x^2), in w - 3.125, then in sqrt(w) - 3.25, then in sqrt(w)
    # - 5 (Giles's splits)
    "ERF_INV_CENTRE": Fit(lambda t: erfinv_over_x(inverse_log(t + 3.125)), -3.125, 3.125, None, 24, lambda t: 1),
    "ERF_INV_MIDDLE": Fit(lambda t: erfinv_from_log((t + 3.25) ** 2), -0.75, 0.75, None, 20, lambda t: mp.mpf(1) / 3),
    "ERF_INV_TAIL": Fit(lambda t: erfinv_from_log((t + 5) ** 2), -1, 1.1, None, 18, lambda t: mp.mpf(1) / 4),
    # atanh(s) = s (1 + z/3 + z^2 ATANH(z)), z = s^2: the logarithm of pow
    "ATANH": Fit(
        in_square(lambda s: (mp.atanh(s) / s - 1 - s * s / 3) / s**4), 0, mp.mpf("0.0296"), None, 6, lambda z: z * z
    ),
    # log2(1 + f) = f LOG2_SHORT(f), 2^r = 1 + r EXP2_SHORT(r): doubles for a float's pow, which needs
    # 2^-35 and 2^-28
    "LOG2_SHORT": Fit(lambda f: mp.log1p(f) / f / mp.log(2), *SIGNIFICANDS, None, 13, lambda f: 1),
    "EXP2_SHORT": Fit(lambda r: mp.expm1(r * mp.log(2)) / r, -0.5, 0.5, None, 6, abs),
    # m^(-1/3), 1 <= m <= 2: the start of cbrt's iteration
    "CBRT_START": Fit(lambda m: m ** (-mp.mpf(1) / 3), 1, 2, 3, 4, lambda m: m ** (mp.mpf(1) / 3)),
    # (1 - e)^(-1/2) = 1 + e RSQRT(e), where the start of `rsqrt` is so far off
    "RSQRT": Fit(lambda e: (1 / mp.sqrt(1 - e) - 1) / e, -mp.mpf("0.0683"), mp.mpf("0.0683"), 4, 2, abs),
    # 1 / (1 - e) = 1 + e RECIPROCAL(e), where the start of `short_reciprocal` is so far off
    "RECIPROCAL": Fit(lambda e: 1 / (1 - e), -mp.mpf("0.0506"), mp.mpf("0.0506"), None, 2, abs),
    # lgamma(2 + d) = d LGAMMA_TWO(d), -3/4 <= d <= 1/2
    "LGAMMA_TWO": Fit(lambda d: mp.loggamma(2 + d) / d, -0.75, 0.5, None, 20, lambda d: 2),
    # lgamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + t STIRLING(t), t = 1/z, z >= 2.5
    "STIRLING": Fit(at_inverse(stirling_remainder), 0, 0.4, None, 13, lambda t: t),
    # digamma(x) = (x - x0) DIGAMMA_ROOT(x - 1.5), 1 <= x <= 2, x0 the positive zero
    "DIGAMMA_ROOT": Fit(lambda d: mp.digamma(1.5 + d) / (1.5 + d - DIGAMMA_ZERO), -0.5, 0.5, None, 21, lambda d: 1),
    # digamma(z) = log z - t/2 - t^2 DIGAMMA_LARGE(t), t = 1/z, z >= 2
    "DIGAMMA_LARGE": Fit(at_inverse(digamma_remainder), 0, 0.5, None, 15, lambda t: t * t),
    # trigamma(x) = TRIGAMMA_ONE(x - 1.5), 1 <= x <= 2
    "TRIGAMMA_ONE": Fit(lambda d: mp.psi(1, 1.5 + d), -0.5, 0.5, None, 25, lambda d: 1),
    # trigamma(z) = t + t^2/2 + t^3 TRIGAMMA_LARGE(t), t = 1/z, z >= 2
    "TRIGAMMA_LARGE": Fit(at_inverse(trigamma_remainder), 0, 0.5, None, 17, lambda t: t * t),
}


def write_table(name: str) -> None:
    print(f"\n{name} = {{")
    for elem in ("float", "double"):
        degree = getattr(FITS[name], f"{elem}_degree")
        if degree is None:
            continue
        coefficients, error = remez(FITS[name], degree)
        print(f'    "{elem}": (  # error 2^{float(mp.log(error, 2)):.1f}')
        for k in range(0, len(coefficients), 3):
            print("        " + " ".join(f"{float(c)!r}," for c in coefficients[k : k + 3]))
        print("    ),")
    print("}", flush=True)


if __name__ == "__main__":
    print('"""Minimax polynomials, low power first; `remez.py` prints and describes them."""')
    for table in sys.argv[1:] or FITS:
        write_table(table)
