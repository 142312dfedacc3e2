"""Computes the polynomials of `fitted.py`, by hand: `python -m catena.compiler.vector_math.fits [NAME ...]`.

Interpolation at Chebyshev points (Trefethen, "Approximation Theory and Approximation Practice", 2013, ch. 4), in
60-digit arithmetic by mpmath, of the lowest degree whose error is below 2^-57 of the function. Each piece is a
polynomial in t, which runs from -1 to 1 while the variable runs through its interval; some are given by powers of the
variable itself, which is t of an interval from -1 to 1.
"""

import sys
import textwrap

import mpmath as mp  # type: ignore[import-untyped]

mp.mp.dps = 60
HEAD = "Polynomials in t from -1 to 1, low power first, by pieces (low, high, coefficients); `fits.py` prints them."
INDENT = " " * 8
GOAL = mp.mpf(2) ** -57
SINGLE = mp.mpf(2) ** -32  # for results in single precision
GOALS = dict.fromkeys(
    (
        "QUANTILE_CENTRE_SINGLE",
        "QUANTILE_SINGLE",
        "ERFCX_SINGLE",
        "LOG_SINGLE",
        "EXP_SINGLE",
        "LGAMMA_SINGLE",
        "ERFCX_SLOPE_SINGLE",
        "BESSEL_DIFFERENCE_FAR_SINGLE",
    ),
    SINGLE,
) | {
    "STIRLING_SINGLE": SINGLE * 16,  # at most a ninth of the result
    "LOG_EXCESS_SINGLE": SINGLE * 8,  # at most a quarter of the logarithm
    "TANH_POWER": GOAL * 8,  # of which a tenth counts
}
BY_POWERS = (  # of small numbers
    *("LOG_SINGLE", "LOG_EXCESS_SINGLE", "EXP_SINGLE", "LGAMMA_SINGLE", "STIRLING_SINGLE", "TANH_POWER"),
    "BESSEL_DIFFERENCE_FAR_SINGLE",
)
X0 = mp.findroot(mp.ei, 0.37)  # the zero of the exponential integral
C0 = mp.findroot(mp.ci, 0.6)  # the first zero of the cosine integral


def sici_parts(x):
    """The auxiliary functions f and g of the sine and cosine integrals, DLMF 6.2.17-18."""
    sine, cosine = mp.si(x) - mp.pi / 2, mp.ci(x)
    return -sine * mp.cos(x) + cosine * mp.sin(x), -sine * mp.sin(x) - cosine * mp.cos(x)


def fresnel_parts(x):
    """Those of Fresnel's integrals, DLMF 7.5.3-4."""
    s, c, angle = 0.5 - mp.fresnels(x), 0.5 - mp.fresnelc(x), mp.pi * x * x / 2
    return s * mp.cos(angle) - c * mp.sin(angle), c * mp.cos(angle) + s * mp.sin(angle)


def quantile(r):
    """How far the normal quantile of exp(-r^2 / 2) lies above -r."""
    p = mp.exp(-r * r / 2)
    guess = -r + mp.log(2 * mp.pi * r * r) / (2 * r)
    return mp.findroot(lambda x: mp.log(mp.ncdf(x) / p), guess) + r


def quantile_factor(w):
    """The normal quantile of p over p - 1/2, where w = -log(4 p (1 - p))."""
    q = mp.sqrt(-mp.expm1(-w)) / 2
    return mp.sqrt(2) * mp.erfinv(2 * q) / q


def scaled_erfc(q):
    """exp(b^2) erfc(b) (b + 3), where q = (b - 3) / (b + 3)."""
    b = 3 * (1 + q) / (1 - q) if q < 1 else mp.inf
    if b > 100:
        return 1 / mp.sqrt(mp.pi) * (1 + 3 / b) * (1 - 1 / (2 * b**2) + 3 / (4 * b**4))
    return (b + 3) * mp.exp(b * b) * mp.erfc(b)


def stirling_rest(t):
    """log(gamma(z)) less (z - 1/2) log(z) - z + log(2 pi) / 2, over t = 1 / z."""
    z = 1 / t
    return z * (mp.loggamma(z) - (z - mp.mpf(1) / 2) * mp.log(z) + z - mp.log(2 * mp.pi) / 2)


def falling_of_erfcx(x):
    """The derivative of exp(x^2) erfc(x), which is negative, by its size."""
    return 2 / mp.sqrt(mp.pi) - 2 * x * mp.exp(x * x) * mp.erfc(x)


def scaled_falling_of_erfcx(q):
    """The same times (x + 3)^2, where q = (x - 3) / (x + 3)."""
    if q == 1:
        return 1 / mp.sqrt(mp.pi)
    x = 3 * (1 + q) / (1 - q)
    if x < 100:
        return falling_of_erfcx(x) * (x + 3) ** 2
    series = mp.fsum((-1) ** k * mp.fac2(2 * k + 1) / (2 * x * x) ** k for k in range(8))  # DLMF 7.12.1
    return (1 + 3 / x) ** 2 / mp.sqrt(mp.pi) * series


def bessel_difference(x):
    """exp(-x) (I0(x) - I1(x))."""
    return mp.exp(-x) * (mp.besseli(0, x) - mp.besseli(1, x))


def of_inverse(function, power=1):
    """As a function of x^-power; 0 is replaced by what is nearly so."""
    return lambda u: function(mp.mpf(max(u, mp.mpf(10) ** -12)) ** (-mp.mpf(1) / power))


def of_root(function, power):
    return lambda u: function(mp.mpf(max(u, mp.mpf(10) ** -30)) ** (mp.mpf(1) / power))


def two_pieces(function, bounds):
    return [(function, *ends) for ends in zip(bounds, bounds[1:])]


INVERSE = mp.mpf(1)
# Name -> pieces: a function of the variable, and its interval. What the variable is stands where the table is used.
FITS = {
    "EXP1_SMALL": [(lambda x: mp.e1(max(x, mp.mpf(10) ** -40)) + mp.log(max(x, mp.mpf(10) ** -40)), 0, 1)],
    "EXP1_LARGE": [(lambda q: mp.exp(3 * (1 + q) / (1 - q)) * mp.e1(3 * (1 + q) / (1 - q)) * (1 + 3 * (1 + q) / (1 - q))
                    if q < 1 else mp.mpf(1), low, high) for low, high in ((-0.5, 0.25), (0.25, 1))],
    "EI_SMALL": [(lambda x: (mp.ei(x) - mp.log(x / X0)) / (x - X0), low, high) for low, high in ((0.001, 3), (3, 6))],
    "EI_LARGE": two_pieces(
        of_inverse(lambda x: x * mp.exp(-x) * mp.ei(x)), (0, INVERSE / 40, INVERSE / 20, INVERSE / 10, INVERSE / 6)),
    "SI": [(of_root(lambda x: mp.si(x) / x, 2), 0, 16)],
    "CI": [(lambda x: (mp.ci(x) - mp.log(x / C0)) / (x - C0), 0.001, 4)],
    "SICI_F": two_pieces(of_inverse(lambda x: x * sici_parts(x)[0], 2), (0, INVERSE / 64, INVERSE / 16)),
    "SICI_G": two_pieces(of_inverse(lambda x: x * x * sici_parts(x)[1], 2), (0, INVERSE / 64, INVERSE / 16)),
    "FRESNEL_S": [(of_root(lambda x: mp.fresnels(x) / x**3, 4), 0, 6.5536)],
    "FRESNEL_C": [(of_root(lambda x: mp.fresnelc(x) / x, 4), 0, 6.5536)],
    "FRESNEL_F": two_pieces(of_inverse(lambda x: x * fresnel_parts(x)[0], 4), (0, INVERSE / 40, INVERSE / 6.5536)),
    "FRESNEL_G": two_pieces(of_inverse(lambda x: x**3 * fresnel_parts(x)[1], 4), (0, INVERSE / 40, INVERSE / 6.5536)),
    "QUANTILE": two_pieces(quantile, (2.27, 3.5, 6, 12, 39)),
    "GAMMA": [(mp.gamma, 2, 3)],
    "ERFCX_SLOPE": two_pieces(falling_of_erfcx, (1, 2, 4, 8)),
    "BESSEL_DIFFERENCE": two_pieces(bessel_difference, (0, 3, 8, 20)),
    "BESSEL_DIFFERENCE_FAR": [(of_inverse(lambda x: x * mp.sqrt(x) * bessel_difference(x)), 0, INVERSE / 20)],
    "BESSEL_DIFFERENCE_FAR_SINGLE": [(of_inverse(lambda x: x * mp.sqrt(x) * bessel_difference(x)), 0, INVERSE / 12)],
    "ERFCX_SLOPE_SINGLE": [(scaled_falling_of_erfcx, -1, 1)],
    "QUANTILE_CENTRE_SINGLE": [(of_root(quantile_factor, 1), 0, 5.5)],
    "QUANTILE_SINGLE": two_pieces(lambda root: quantile_factor(root**2), (2.3, 4.3, 10.2)),
    "ERFCX_SINGLE": [(scaled_erfc, -1, 1)],
    "LOG_SINGLE": [(lambda f: mp.log1p(f) / f, mp.mpf(-1) / 4, mp.mpf(1) / 2)],
    "LOG_EXCESS_SINGLE": [(lambda f: (f - mp.log1p(f)) / f**2, mp.mpf(-1) / 4, mp.mpf(1) / 2)],
    "EXP_SINGLE": [(mp.exp, -mp.log(2) / 2, mp.log(2) / 2)],
    "LGAMMA_SINGLE": [(lambda d: mp.loggamma(2 + d) / d, -0.75, 0.5)],
    "STIRLING_SINGLE": [(lambda t: stirling_rest(max(t, mp.mpf(10) ** -20)), 0, 0.4)],
    "TANH_POWER": [(lambda r: mp.expm1(r * mp.log(2)) / r if r else mp.log(2), mp.mpf(-1) / 2, mp.mpf(1) / 2)],
}  # fmt: skip

# Name -> a function over an interval, as a quotient of polynomials by powers of the variable: how many coefficients
# its numerator has, and its denominator beside the last one, which is 1.
QUOTIENTS = {"TANH": (lambda z: (1 - mp.tanh(mp.sqrt(z)) / mp.sqrt(z)) / z, 0, mp.mpf("0.49"), 3, 3)}


def quotient(function, low, high, over: int, under: int) -> tuple[list, list]:
    """The one that meets the function at Chebyshev points."""
    count = over + under
    nodes = [low + (high - low) * (1 + mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count)) / 2 for k in range(count)]
    rows = [[x**k for k in range(over)] + [-function(x) * x**k for k in range(under)] for x in nodes]
    found = list(mp.lu_solve(mp.matrix(rows), mp.matrix([function(x) * x**under for x in nodes])))
    return found[:over], [*found[over:], mp.mpf(1)]


def interpolant(function, low, high, degree: int) -> list:
    """Coefficients by powers of t, low power first."""
    low, high = mp.mpf(low), mp.mpf(high)
    count = degree + 1
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]
    values = [function((low + high) / 2 + (high - low) / 2 * t) for t in nodes]
    out, before, now = [mp.mpf(0)] * count, [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    for j in range(count):
        c = 2 * mp.fsum(v * mp.chebyt(j, t) for v, t in zip(values, nodes)) / count / (2 if j == 0 else 1)
        polynomial = before if j == 0 else now
        for k, p in enumerate(polynomial):
            out[k] += c * p
        if j:
            doubled = [mp.mpf(0), *(2 * p for p in now)]
            before, now = now, [d - (before[k] if k < len(before) else 0) for k, d in enumerate(doubled)]
    return out


def greatest_error(function, low, high, coefficients) -> mp.mpf:
    worst = mp.mpf(0)
    for k in range(1, 40):
        t = mp.cos(mp.pi * (k + mp.mpf("0.37")) / 40)
        want = function((mp.mpf(low) + high) / 2 + (mp.mpf(high) - low) / 2 * t)
        worst = max(worst, abs(mp.polyval(coefficients[::-1], t) / want - 1))
    return worst


def fit(function, low, high, goal=GOAL) -> list:
    for degree in range(6, 45):
        coefficients = interpolant(function, low, high, degree)
        if greatest_error(function, low, high, coefficients) < goal:
            return coefficients
    raise ValueError(f"no polynomial of moderate degree between {low} and {high}")


def by_powers(coefficients, low, high) -> list:
    """The coefficients by powers of the variable, of those by powers of t."""
    low, high = mp.mpf(low), mp.mpf(high)
    t, out = [-(low + high) / (high - low), 2 / (high - low)], [mp.mpf(0)]
    for c in reversed(coefficients):
        product = [mp.mpf(0)] * (len(out) + 1)
        for k, p in enumerate(out):
            product[k] += p * t[0]
            product[k + 1] += p * t[1]
        product[0] += c
        out = product
    return out[: len(coefficients)]


def main():
    print(f'"""{HEAD}"""')
    for name in [n for n in sys.argv[1:] or FITS if n in FITS]:
        pieces = FITS[name]
        print(f"\n{name} = (")
        for function, low, high in pieces:
            coefficients = fit(function, low, high, GOALS.get(name, GOAL))
            if name in BY_POWERS:
                coefficients, low, high = by_powers(coefficients, low, high), -1, 1
            numbers = ", ".join(repr(float(c)) for c in coefficients) + ","
            print(f"    ({float(low)!r}, {float(high)!r}, (")
            print(textwrap.fill(numbers, 112, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False))
            print("    )),")
        print(")  # fmt: skip")
    for name in set(sys.argv[1:] or QUOTIENTS) & set(QUOTIENTS):
        over, under = (tuple(float(c) for c in part) for part in quotient(*QUOTIENTS[name]))
        print(f"\n{name} = (\n    {over},\n    {under},\n)  # fmt: skip")


if __name__ == "__main__":
    main()
