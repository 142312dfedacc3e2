"""What `accuracy.py` compares of `scipy.special`: the functions that are no primitives of `lax`, and mpmath's of them.

Arguments stay where results are normal numbers, and away from zeros other than at the origin: next to a zero no
function of rounded arguments has digits, and units in the last place say nothing.
"""

import mpmath as mp
import numpy as np

NAN, INF = float("nan"), float("inf")


def uniform(*bounds):
    """Arguments between bounds."""

    def draw(elem, count):
        random, dtype = np.random.default_rng(2), np.float32 if elem == "float" else np.float64
        return tuple(random.uniform(low, high, count).astype(dtype) for low, high in bounds)

    return draw


def signed(draw):
    """The same arguments, every second one negative."""

    def negative(elem, count):
        return tuple(np.where(np.arange(count) % 2, -x, x) for x in draw(elem, count))

    return negative


def off_integers(draw):
    """The same arguments, those near whole numbers moved away."""

    def moved(elem, count):
        return tuple(np.where(np.abs(x - np.rint(x)) < 0.01, x + x.dtype.type(0.25), x) for x in draw(elem, count))

    return moved


def scaled_erfc(x):
    with mp.workprec(300 + int(3 * x * x) if x < 30 else 300):
        return mp.exp(x * x) * mp.erfc(x)


def log_ndtr(x):
    with mp.workprec(400 if x < 0 else 400 + int(x * x)):
        return mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def ndtri(p):
    with mp.workprec(500):
        return -mp.sqrt(2) * mp.erfinv(1 - 2 * p) if p > 1e-100 else None


def owens_t(h, a):
    with mp.workprec(120):
        ends = [0, a / 4, a / 2, a] if h * a < 20 else [0, *(k / h for k in (1, 3, 8, 16)), a]
        return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), ends) / (2 * mp.pi)


def dawsn(x):
    with mp.workprec(300 + int(3 * x * x) if x < 40 else 600):
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x) if abs(x) < 40 else _dawsn_far(x)


def _dawsn_far(x):
    term, total = 1 / (2 * x), 0
    for k in range(60):
        total += term
        term *= (2 * k + 1) / (2 * x * x)
    return total


def faddeeva(x, y):
    z = mp.mpc(x, y)
    with mp.workprec(400 + int(4 * abs(z) ** 2)):
        return mp.exp(-z * z) * mp.erfc(mp.mpc(0, -1) * z)


def in_precision(function, bits: int = 400):
    def precise(*arguments):
        with mp.workprec(bits):
            return function(*arguments)

    return precise


def functions(make, log_uniform, whole_orders) -> dict:
    """Name (and part) -> what ``make`` makes of the reference, the arguments and the share of their number."""
    two = log_uniform((1e-3, 1e2), (1e-3, 1e2))
    rows = {
        "gamma": (mp.gamma, off_integers(signed(uniform((0.01, 30.0)))), 1),
        "factorial": (lambda x: mp.gamma(x + 1), uniform((0.0, 30.0)), 1),
        "beta": (mp.beta, two, 1),
        "betaln": (lambda a, b: mp.log(mp.beta(a, b)), log_uniform((2.5, 1e4), (2.5, 1e4)), 1),
        "poch": (mp.rf, log_uniform((1e-2, 15.0), (1e-2, 15.0)), 1),
        "gammaln": (mp.loggamma, log_uniform((3.0, 1e30)), 1),
        "gammainc": (in_precision(lambda a, x: mp.gammainc(a, 0, x, regularized=True)),
                     log_uniform((0.1, 1e2), (0.1, 1e2)), 0.1),
        "erfcx": (scaled_erfc, log_uniform((1e-6, 25.0)), 0.5),
        "erfcx.negative": (scaled_erfc, uniform((-9.0, 0.0)), 0.3),
        "dawsn": (dawsn, log_uniform((1e-6, 1e3)), 0.3),
        "wofz.real": (lambda x, y: faddeeva(x, y).real, log_uniform((1e-2, 20.0), (1e-2, 20.0)), 0.2),
        "wofz.imag": (lambda x, y: faddeeva(x, y).imag, log_uniform((1e-2, 20.0), (1e-2, 20.0)), 0.2),
        "exp1": (mp.e1, log_uniform((1e-2, 80.0)), 0.5),
        "expi": (mp.ei, log_uniform((0.5, 80.0)), 0.5),
        "expi.negative": (mp.ei, lambda elem, n: (-log_uniform((1e-2, 80.0))(elem, n)[0],), 0.5),
        "expn": (in_precision(lambda n, x: mp.expint(int(n), x)), whole_orders(12, (1e-2, 60.0)), 0.3),
        "sici.sine": (mp.si, log_uniform((1e-6, 1e3)), 0.3),
        "sici.cosine": (mp.ci, log_uniform((1e-6, 0.5)), 0.3),
        "fresnel.sine": (mp.fresnels, log_uniform((1e-3, 50.0)), 0.3),
        "fresnel.cosine": (mp.fresnelc, log_uniform((1e-3, 50.0)), 0.3),
        "spence": (lambda x: mp.polylog(2, 1 - x).real, log_uniform((1.01, 1e4)), 0.3),
        "spence.below": (lambda x: mp.polylog(2, 1 - x).real, log_uniform((1e-6, 0.99)), 0.3),
        "ndtr": (in_precision(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2), uniform((-12.0, 12.0)), 0.5),
        "log_ndtr": (log_ndtr, uniform((-40.0, 12.0)), 0.3),
        "ndtri": (ndtri, log_uniform((1e-30, 0.45)), 0.2),
        "owens_t": (owens_t, log_uniform((1e-2, 8.0), (1e-2, 8.0)), 0.02),
        "i0": (lambda x: mp.besseli(0, x), log_uniform((1e-6, 80.0)), 0.2),
        "i1": (lambda x: mp.besseli(1, x), log_uniform((1e-6, 80.0)), 0.2),
        "hyp1f1": (in_precision(mp.hyp1f1), log_uniform((0.1, 10.0), (0.1, 10.0), (1e-2, 50.0)), 0.1),
        "hyp1f1.negative": (in_precision(mp.hyp1f1), lambda elem, n: (
            lambda a, b, x: (a, (a + b).astype(a.dtype), -x))(
                *log_uniform((0.1, 5.0), (0.1, 5.0), (1e-2, 50.0))(elem, n)), 0.1),
        "hyp2f1": (in_precision(mp.hyp2f1),
                   log_uniform((0.1, 5.0), (0.1, 5.0), (0.1, 5.0), (1e-3, 0.99)), 0.1),
        "hyp2f1.negative": (in_precision(mp.hyp2f1), lambda elem, n: (
            lambda a, b, c, x: (a, b, (a + b + c).astype(a.dtype), -x))(
                *log_uniform((0.1, 5.0), (0.1, 5.0), (0.1, 5.0), (1e-3, 50.0))(elem, n)), 0.1),
        "entr": (lambda x: -x * mp.log(x), log_uniform((1e-30, 0.9)), 1),
        "rel_entr": (lambda x, y: x * mp.log(x / y), log_uniform((1e-3, 1e-1), (1.0, 1e3)), 1),
        "kl_div": (in_precision(lambda x, y: x * mp.log(x / y) - x + y),
                   log_uniform((1e-3, 1e-1), (1.0, 1e3)), 1),
        "logit": (lambda p: mp.log(p / (1 - p)), log_uniform((1e-30, 0.4)), 1),
        "xlogy": (lambda x, y: x * mp.log(y), log_uniform((1e-3, 1e3), (2.0, 1e9)), 1),
        "xlog1py": (lambda x, y: x * mp.log1p(y), log_uniform((1e-3, 1e3), (1e-6, 1e6)), 1),
        "boxcox1p": (in_precision(lambda x, a: mp.expm1(a * mp.log1p(x)) / a),
                     log_uniform((1e-3, 1e2), (1e-3, 3.0)), 1),
    }  # fmt: skip
    return {f"special.{name}": make(*row) for name, row in rows.items()}


# ------------------------------------------------------------------------------ derivatives


def by_operand(reference, which: int):
    """The derivative by an operand: a difference quotient over a distance at which it has thirty digits."""

    def slope(*arguments):
        with mp.workprec(500):
            step = abs(arguments[which]) * mp.mpf(10) ** -16
            ends = [[x + sign * step * (i == which) for i, x in enumerate(arguments)] for sign in (1, -1)]
            return (reference(*ends[0]) - reference(*ends[1])) / (2 * step)

    return slope


def negated(draw):
    """The same arguments, all negative."""
    return lambda elem, count: tuple(-x for x in draw(elem, count))


def slopes(make, log_uniform) -> dict:
    """As `functions`, of derivatives by each operand, over wider domains: also where differences cancel."""
    near, far = (1e-3, 1e2), (1e-6, 1e6)
    rows = {
        "beta": (mp.beta, log_uniform((1e-2, 30.0), (1e-2, 30.0)), 0.3),
        "betaln": (lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b), log_uniform(far, far), 0.3),
        "boxcox": (lambda x, a: mp.expm1(a * mp.log(x)) / a, log_uniform((1.1, 1e2), far[:1] + (2.0,)), 0.3),
        "boxcox1p": (lambda x, a: mp.expm1(a * mp.log1p(x)) / a, log_uniform((1e-6, 1e2), far[:1] + (2.0,)), 0.3),
        "dawsn": (dawsn, log_uniform((1.1, 1e5)), 0.3),
        "digamma": (mp.digamma, log_uniform((1e-6, 1e20)), 0.3),
        "entr": (lambda x: -x * mp.log(x), log_uniform((1e-30, 0.3)), 0.3),
        "erf": (mp.erf, log_uniform((1e-6, 8.0)), 0.3),
        "erfcx": (scaled_erfc, log_uniform((1e-6, 1e5)), 0.3),
        "erfcx.negative": (scaled_erfc, uniform((-8.0, 0.0)), 0.3),
        "erfinv": (mp.erfinv, log_uniform((1e-6, 0.999)), 0.1),
        "exp1": (mp.e1, log_uniform((1e-6, 80.0)), 0.3),
        "expi": (mp.ei, log_uniform((1e-6, 80.0)), 0.3),
        "expi.negative": (mp.ei, negated(log_uniform((1e-6, 80.0))), 0.3),
        "expit": (lambda x: 1 / (1 + mp.exp(-x)), log_uniform((1e-6, 80.0)), 0.3),
        "expit.negative": (lambda x: 1 / (1 + mp.exp(-x)), negated(log_uniform((1e-6, 80.0))), 0.3),
        "fresnel.cosine": (mp.fresnelc, log_uniform((1e-3, 1e3)), 0.3),
        "fresnel.sine": (mp.fresnels, log_uniform((1e-3, 1e3)), 0.3),
        "gamma": (mp.gamma, off_integers(signed(uniform((0.01, 30.0)))), 0.3),
        "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), log_uniform((0.1, 1e2), (0.1, 1e2)), 0.05),
        "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
                      log_uniform((0.1, 50.0), (0.1, 50.0)), 0.05),
        "gammaln": (mp.loggamma, log_uniform((1e-30, 1e30)), 0.3),
        "hyp1f1": (mp.hyp1f1, log_uniform((0.1, 10.0), (0.1, 10.0), (1e-2, 50.0)), 0.1),
        "hyp1f1.negative": (mp.hyp1f1, lambda elem, n: (
            lambda a, b, x: (a, b, -x))(*log_uniform((0.1, 10.0), (0.1, 10.0), (1e-2, 50.0))(elem, n)), 0.1),
        "hyp2f1": (mp.hyp2f1, log_uniform((0.1, 5.0), (0.1, 5.0), (0.1, 5.0), (1e-3, 0.99)), 0.1),
        "hyp2f1.negative": (mp.hyp2f1, lambda elem, n: (
            lambda a, b, c, x: (a, b, c, -x))(
                *log_uniform((0.1, 5.0), (0.1, 5.0), (0.1, 5.0), (1e-3, 50.0))(elem, n)), 0.1),
        "i0": (lambda x: mp.besseli(0, x), log_uniform((1e-6, 80.0)), 0.1),
        "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-x), log_uniform((1e-6, 1e4)), 0.1),
        "i1": (lambda x: mp.besseli(1, x), log_uniform((1e-6, 80.0)), 0.1),
        "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-x), log_uniform((3.0, 1e4)), 0.1),
        "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, log_uniform((1e-6, 1e-1), (1.0, 1e6)), 0.3),
        "log_ndtr": (log_ndtr, uniform((-1000.0, 12.0)), 0.2),
        "logit": (lambda p: mp.log(p / (1 - p)), log_uniform((1e-30, 0.9999)), 0.3),
        "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, uniform((-12.0, 12.0)), 0.3),
        "ndtri": (ndtri, log_uniform((1e-30, 0.45)), 0.1),
        "owens_t": (owens_t, log_uniform((1e-2, 4.0), (1e-2, 1.0)), 0.01),
        "poch": (mp.rf, log_uniform((1e-2, 15.0), (1e-2, 15.0)), 0.3),
        "rel_entr": (lambda x, y: x * mp.log(x / y), log_uniform((1e-6, 1e-1), (1.0, 1e6)), 0.3),
        "sici.cosine": (mp.ci, log_uniform((1e-6, 1.5)), 0.2),
        "sici.sine": (mp.si, log_uniform((1e-6, 3.0)), 0.2),
        "spence": (lambda x: mp.polylog(2, 1 - x).real, log_uniform((1e-30, 1e4)), 0.1),
        "wofz.imag": (lambda x, y: faddeeva(x, y).imag, log_uniform((1e-2, 3.0), (3.0, 20.0)), 0.1),
        "wofz.real": (lambda x, y: faddeeva(x, y).real, log_uniform((1e-2, 3.0), (3.0, 20.0)), 0.1),
        "xlog1py": (lambda x, y: x * mp.log1p(y), log_uniform(near, far), 0.3),
        "xlogy": (lambda x, y: x * mp.log(y), log_uniform(near, (2.0, 1e9)), 0.3),
    }  # fmt: skip
    return {
        f"slope.{which}.special.{name}": make(by_operand(reference, which), *row)
        for name, (reference, *row) in rows.items()
        for which in range(len(row[0]("float", 4)))
    }
