"""Algorithms written once, for NumPy and for LLVM.

An algorithm is a function of a *mathematics* ``m`` and of numbers with the usual operators. With ``Numpy`` the numbers
are arrays; with ``Written`` they are values of a function that is being written, and ``iterate`` writes a loop that a
vector leaves when its slowest lane is done. Lanes that are done keep their values, so that results depend neither on
the width nor on their neighbours. All is computed in double precision.
"""

import functools
from collections.abc import Callable

import numpy as np

from catena.core import error_free
from catena.core.lazy import load
from catena.core.shapes import broadcast_shapes

from . import (
    error_function,
    exponential,
    gamma,
    helpers,
    inverses,
    logarithm,
    lookup,
    powers,
    series,
    text,
    trigonometric,
)

DOUBLE = np.dtype(np.float64)
PRECISION = {"float": 2.0**-32, "double": 2.0**-53}  # of what is rounded to this type


class Numpy:
    """The mathematics of NumPy and SciPy, on arrays of doubles."""

    exp, log, log1p, abs, floor, sin, cos = np.exp, np.log, np.log1p, np.abs, np.floor, np.sin, np.cos
    where, maximum, sqrt, power, equal, like = np.where, np.maximum, np.sqrt, np.power, np.equal, np.full_like
    size, held, varies = np.abs, staticmethod(lambda x: x), staticmethod(lambda x: False)  # others for dual numbers

    @staticmethod
    def lgamma(x):
        return load("scipy.special").gammaln(x)

    short_lgamma = plain_lgamma = lgamma

    @staticmethod
    def short_factorial(a, large):
        """1 + log(gamma(a + 1)); where a is large, log(2 pi a) / 2 and the rest of Stirling's series."""
        b = np.where(large, a, series.LARGE_SHAPE)
        by_stirling = 0.5 * np.log(2.0 * np.pi * b) + series.stirling_rest(Numpy, b, 4)
        return np.where(large, by_stirling, 1.0 + Numpy.lgamma(np.where(large, 1.0, a + 1.0)))

    @staticmethod
    def digamma(x):
        return load("scipy.special").psi(x)

    @staticmethod
    def trigamma(x):
        return load("scipy.special").polygamma(1, x)

    @staticmethod
    def erfc(x):
        return load("scipy.special").erfc(x)

    @staticmethod
    def small_erf(x):
        """The error function of a number between -1 and 1."""
        return load("scipy.special").erf(x)

    @staticmethod
    def erf_inv(x):
        return load("scipy.special").erfinv(x)

    @staticmethod
    def nearest(x, factor: float):
        """The nearest integer to the product, and a number with the same three low bits."""
        n = np.rint(np.minimum(x * factor, 2.0**20))  # finite, for differences with it
        return n, n

    @staticmethod
    def entry(table, index):
        """The entry of a table of eight numbers at the three low bits."""
        return np.take(table, np.nan_to_num(index).astype(np.int64) & (lookup.SIZE - 1))

    @staticmethod
    def fma(x, y, z):
        """x y + z, here with the product rounded."""
        return x * y + z

    product_error = staticmethod(error_free.product_error)
    short_exp, short_sqrt = np.exp, np.sqrt

    @staticmethod
    def short_reciprocal(x):
        return 1.0 / x

    @staticmethod
    def inverse_power_of_two(x):
        return np.ldexp(1.0, 1 - np.frexp(x)[1])

    @staticmethod
    def short_rsqrt(x):
        return 1.0 / np.sqrt(x)

    @staticmethod
    def short_log(x):
        """log(x) of a positive normal number, something finite of others."""
        return np.log(np.clip(x, 1e-300, 1e300))

    @staticmethod
    def exponent(x):
        """The exponent of a positive normal number whose significand is from 0.75 to 1.5."""
        significand, exponent = np.frexp(x)
        return exponent - (significand < helpers.SPLIT)

    @staticmethod
    def significand(x):
        significand = np.frexp(x)[0]
        return np.where(significand < helpers.SPLIT, 2.0, 1.0) * significand

    @staticmethod
    def exp_pair(x):
        """exp(x) of moderate x, and what is rounded off it, as far as the long double has it."""
        exp = np.exp(x)
        return exp, (np.exp(x.astype(np.longdouble)) - exp).astype(DOUBLE)

    @staticmethod
    def log_pair(x, lost):
        """log(x + lost) for finite x > 0 and what was rounded off it, and what is rounded off the logarithm, as far as
        the long double has it.
        """
        log = np.log(x)
        return log, (np.log(x.astype(np.longdouble)) - log).astype(DOUBLE) + lost / x

    @staticmethod
    def plain_power(x, y):
        """x^y of finite x > 0."""
        return np.power(np.abs(x), y)

    @staticmethod
    def where_any(mask, rare: Callable, otherwise):
        """``rare()`` where the mask holds, which it seldom does anywhere."""
        return np.where(mask, rare(), otherwise)

    @staticmethod
    def apart(function: Callable, *xs):
        """``function(m, *xs)``, which is long, and seldom wanted or wanted several times."""
        return function(Numpy, *xs)

    @staticmethod
    def iterate(step: Callable, state: tuple) -> tuple:
        """``step`` until no lane is on; ``state[0]`` says which are."""
        while np.any(state[0]):
            state = step(*state)
        return state


class Written:
    """The mathematics of values of a function that is being written."""

    exp, log, log1p = exponential.exp, logarithm.log, logarithm.log1p
    abs, floor, sqrt, maximum, fma = text.fabs, text.floor, text.sqrt, text.maximum, text.fma
    small_erf = error_function.small_erf
    sin, cos, erf_inv = trigonometric.sin, trigonometric.cos, error_function.erf_inv
    lgamma, digamma, trigamma = gamma.lgamma, gamma.digamma, gamma.trigamma
    erfc, power = error_function.erfc, powers.pow
    iterate, size, held, varies = staticmethod(text.while_any), text.fabs, Numpy.held, Numpy.varies
    plain_power = powers.plain_power
    short_exp, short_log, short_lgamma = exponential.short_exp, logarithm.short_log, gamma.short_lgamma
    inverse_power_of_two = inverses.inverse_power_of_two
    short_reciprocal, short_rsqrt, short_sqrt = inverses.short_reciprocal, inverses.short_rsqrt, inverses.short_sqrt
    nearest, entry = staticmethod(lookup.nearest), staticmethod(lookup.entry)
    exponent, significand = functools.partial(lookup.part, "exponent"), functools.partial(lookup.part, "significand")
    short_factorial = gamma.short_factorial
    plain_lgamma, log_pair, exp_pair = gamma.plain_lgamma, logarithm.log_pair, exponential.exp_pair

    @staticmethod
    def where_any(mask, rare: Callable, otherwise):
        return text.if_any(mask, lambda: [text.select(mask, rare(), otherwise)], [otherwise])[0]

    @staticmethod
    def apart(function: Callable, *xs):
        """A call of a function that has a name in the library: written in place each time, it would be most of the
        text, and of LLVM's time.
        """
        first, *others = text.joined(*xs)
        return text.call(first.type, function.__name__, first.elem, first.type.width, first, *others)

    @staticmethod
    def where(mask, on_true, on_false):
        if not isinstance(on_true, text.Value) and not isinstance(on_false, text.Value):
            on_true = text.Value(mask.writer, mask.with_elem("double"), text.literal(mask.with_elem("double"), on_true))
        return text.select(mask, on_true, on_false)

    @staticmethod
    def product_error(x, y, product):
        return text.fma(x, y, -x.like(product))

    @staticmethod
    def equal(x, y):
        return x.equals(y)

    @staticmethod
    def like(x, number):
        return x.like(number)


def written(algorithm: Callable) -> Callable:
    """The function of the library for an algorithm: floats are widened, and the result is rounded once."""

    @functools.wraps(algorithm)
    def function(*args: text.Value) -> text.Value:
        precision = PRECISION[args[0].elem]
        if args[0].elem == "double":
            return algorithm(Written, *args, precision=precision)
        if args[0].type.width == 8:  # what a register holds that holds four doubles
            args[0].writer.doubles = 4
        return algorithm(Written, *(a.to_double() for a in args), precision=precision).to_float()

    return function


def evaluated(algorithm: Callable, *xs: np.ndarray) -> np.ndarray:
    """An algorithm on NumPy arrays of one float dtype, in double precision."""
    precision = PRECISION["double" if xs[0].dtype == DOUBLE else "float"]
    shape = broadcast_shapes(*[x.shape for x in xs])
    doubles = [np.broadcast_to(x.astype(DOUBLE), shape) for x in xs]
    return np.asarray(algorithm(Numpy, *doubles, precision=precision))
