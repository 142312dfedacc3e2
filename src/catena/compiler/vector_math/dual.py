"""Derivatives of algorithms by one operand: the same algorithm, on numbers with a derivative (Clifford 1873).

``derivative(algorithm, 0)`` is an algorithm like any other. What the algorithm compares, it compares by values, so that
both take the same branches; a series runs a little longer, as its derivative is slower to settle.
"""

import math
from collections.abc import Callable

LONGER = 2.0**-12  # times the precision


def _sum(x, y):
    """Of two derivatives, of which None is zero."""
    return y if x is None else x if y is None else x + y


def _times(slope, factor):
    return None if slope is None else slope * factor


class Dual:
    """A number and its derivative, values of some mathematics; None is the derivative of a constant."""

    __slots__ = ("value", "slope")

    def __init__(self, value, slope=None):
        self.value, self.slope = value, slope

    def __add__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.value + other, self.slope)
        return Dual(self.value + other.value, _sum(self.slope, other.slope))

    def __sub__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.value - other, self.slope)
        return Dual(self.value - other.value, _sum(self.slope, _times(other.slope, -1.0)))

    def __rsub__(self, other):
        return Dual(other - self.value, _times(self.slope, -1.0))

    def __mul__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.value * other, _times(self.slope, other))
        slope = _sum(_times(self.slope, other.value), _times(other.slope, self.value))
        return Dual(self.value * other.value, slope)

    def __truediv__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.value / other, _times(self.slope, 1.0 / other))
        quotient, inverse = self.value / other.value, 1.0 / other.value
        return Dual(quotient, _sum(_times(self.slope, inverse), _times(_times(other.slope, -quotient), inverse)))

    def __rtruediv__(self, other):
        quotient = other / self.value
        return Dual(quotient, _times(self.slope, -(quotient / self.value)))

    def __neg__(self):
        return Dual(-self.value, _times(self.slope, -1.0))

    def __lt__(self, other):
        return self.value < plain(other)

    def __le__(self, other):
        return self.value <= plain(other)

    def __gt__(self, other):
        return self.value > plain(other)

    def __ge__(self, other):
        return self.value >= plain(other)

    __radd__, __rmul__ = __add__, __mul__


def plain(x):
    return x.value if isinstance(x, Dual) else x


def slope_of(x):
    return x.slope if isinstance(x, Dual) else None


class Forward:
    """The mathematics of dual numbers over a mathematics ``m``."""

    def __init__(self, m):
        self.m = m

    def _chain(self, x, function: Callable, slope: Callable):
        """``function`` of a number; ``slope`` is given the number and the result."""
        y = function(x.value)
        return Dual(y, None if x.slope is None else slope(x.value, y) * x.slope)

    def exp(self, x):
        return self._chain(x, self.m.exp, lambda v, y: y)

    def log(self, x):
        return self._chain(x, self.m.log, lambda v, y: 1.0 / v)

    def sqrt(self, x):
        return self._chain(x, self.m.sqrt, lambda v, y: 0.5 / y)

    def sin(self, x):
        return self._chain(x, self.m.sin, lambda v, y: self.m.cos(v))

    def lgamma(self, x):
        return self._chain(x, self.m.lgamma, lambda v, y: self.m.digamma(v))

    def apart(self, function, *xs):
        return function(self, *xs)

    def abs(self, x):
        return self._chain(x, self.m.abs, lambda v, y: self.m.where(v < 0.0, self.m.like(v, -1.0), 1.0))

    def size(self, x):
        """What is to be small where a series ends: the number's and the derivative's."""
        size = self.m.abs(x.value)
        return Dual(size if x.slope is None else self.m.maximum(size, self.m.abs(x.slope)))

    def varies(self, x):
        return x.slope is not None

    def held(self, x):
        """The number as a constant."""
        return Dual(x.value)

    def power(self, x, y):
        """x^y for positive x."""
        return self._power(self.m.power(x.value, plain(y)), x, y)

    def plain_power(self, x, y):
        return self._power(self.m.plain_power(x.value, plain(y)), x, y)

    def _power(self, value, x, y):
        slope = None if x.slope is None else x.slope * (plain(y) * value / x.value)
        if slope_of(y) is not None:
            slope = _sum(slope, y.slope * (value * self.m.log(x.value)))
        return Dual(value, slope)

    def floor(self, x):
        return Dual(self.m.floor(x.value))

    def equal(self, x, y):
        return self.m.equal(x.value, plain(y))

    def like(self, x, number):
        return Dual(self.m.like(x.value, number))

    def product_error(self, x, y, product):
        x, y, product = (
            v if isinstance(v, Dual) else self.like(self._first(x, y, product), v) for v in (x, y, product)
        )
        return Dual(self.m.product_error(x.value, y.value, product.value))

    def fma(self, x, y, z):
        slope = _sum(_sum(_times(slope_of(x), plain(y)), _times(slope_of(y), plain(x))), slope_of(z))
        return Dual(self.m.fma(plain(x), plain(y), plain(z)), slope)

    def where(self, mask, x, y):
        slope, other = slope_of(x), slope_of(y)
        if slope is not None or other is not None:
            slope = self.m.where(mask, 0.0 if slope is None else slope, 0.0 if other is None else other)
        return Dual(self.m.where(mask, plain(x), plain(y)), slope)

    def where_any(self, mask, rare: Callable, otherwise):
        return self.where(mask, rare(), otherwise)

    def maximum(self, x, y):
        return self.where(x > y, x, y)

    def iterate(self, step: Callable, state: tuple) -> tuple:
        """Every number of the state may become a variable one on the way, so that all but the mask are."""
        on, *numbers = state
        flat = [part for x in numbers for part in self._parts(x)]

        def flat_step(on, *flat):
            on, *after = step(on, *(Dual(*pair) for pair in zip(flat[::2], flat[1::2])))
            return on, *(part for x in after for part in self._parts(x))

        on, *flat = self.m.iterate(flat_step, (on, *flat))
        return on, *(Dual(*pair) for pair in zip(flat[::2], flat[1::2]))

    def _parts(self, x) -> tuple:
        return x.value, self.m.like(x.value, 0.0) if x.slope is None else x.slope

    @staticmethod
    def _first(*xs):
        return next(x for x in xs if isinstance(x, Dual))


def derivative(algorithm: Callable, by: int) -> Callable:
    """The derivative of an algorithm by its operand number ``by``."""

    def slope(m, *xs, precision):
        given = [Dual(x, m.like(x, 1.0)) if i == by else Dual(x) for i, x in enumerate(xs)]
        out = algorithm(Forward(m), *given, precision=precision * LONGER)
        return m.where(m.abs(out.value) < math.inf, out.slope, math.nan)

    return slope
