"""Complex operations as operations on real and imaginary parts, written into a loop body."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from catena.core.dtypes import KIND
from catena.core.errors import CompileError


class Part:
    """Arithmetic on statements of one real type, by operators."""

    def __init__(self, body, number: int, type_: str):
        self.body, self.number, self.type = body, number, type_

    def _lift(self, other):
        return (
            other if isinstance(other, Part) else Part(self.body, self.body.const(float(other), self.type), self.type)
        )

    def _op(self, op: str, *xs):
        return Part(self.body, self.body.stmt(op, self.type, tuple(x.number for x in xs)), self.type)

    def __add__(self, o):
        return self._op("add", self, self._lift(o))

    def __sub__(self, o):
        return self._op("sub", self, self._lift(o))

    def __mul__(self, o):
        return self._op("mul", self, self._lift(o))

    def __truediv__(self, o):
        return self._op("div", self, self._lift(o))

    def __rtruediv__(self, o):
        return self._lift(o) / self

    def __rsub__(self, o):
        return self._lift(o) - self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self._op("neg", self)

    def f(self, op: str, *others):
        return self._op(op, self, *map(self._lift, others))

    def compare(self, op: str, other) -> int:
        return self.body.stmt(op, "bool", (self.number, self._lift(other).number))

    def where(self, mask: int, other):
        """Self where the mask holds, else `other`."""
        other = self._lift(other)
        return Part(self.body, self.body.stmt("select", self.type, (mask, self.number, other.number)), self.type)


def part_name(dtype) -> str:
    return "float32" if dtype == np.complex64 else "float64"


def expand(body, op: str, v, xs: list):
    """The statements of `op`: a pair for complex results, one for real ones."""
    complex_in = next((a.dtype for a in v.args if KIND[a.dtype] == "c"), v.dtype)
    t = part_name(complex_in if KIND[complex_in] == "c" else v.dtype)
    if op == "convert":
        return _convert(body, v, xs[0])
    if op == "select":
        return tuple(body.stmt("select", t, (xs[0], y, n)) for y, n in zip(xs[1], xs[2]))
    if op == "complex":
        return xs[0], xs[1]
    pairs = [tuple(Part(body, s, t) for s in (x if isinstance(x, tuple) else (x, body.const(0.0, t)))) for x in xs]
    if op in ("eq", "ne"):
        (a, b), (c, d) = pairs
        return body.stmt("and" if op == "eq" else "or", "bool", (a.compare(op, c), b.compare(op, d)))
    if op == "is_finite":
        return body.stmt("and", "bool", tuple(body.stmt(op, "bool", (p.number,)) for p in pairs[0]))
    if op in _REAL:
        return _REAL[op](*pairs[0]).number
    if op == "integer_pow":
        return _numbers(_power(pairs[0], v.params.y))
    rule = _COMPLEX.get(op)
    if rule is None:
        raise CompileError(f"operation {op!r} on {v.dtype.name} cannot be compiled")
    return _numbers(rule(*pairs))


def _numbers(pair) -> tuple:
    return tuple(p.number for p in pair)


def _convert(body, v, x):
    source, target = v.args[0].dtype, v.dtype
    if KIND[target] == "c":
        t = part_name(target)
        re, im = x if isinstance(x, tuple) else (x, None)
        cast = re if source.name == t else body.stmt("convert", t, (re,))
        return cast, (body.const(0.0, t) if im is None else body.stmt("convert", t, (im,)))
    if target == np.bool_:
        return body.stmt("ne", "bool", (x[0], body.const(0.0, part_name(source))))
    return x[0] if part_name(source) == target.name else body.stmt("convert", target.name, (x[0],))


# ---- operations on pairs of parts --------------------------------------------------------------------------


def hypot(a, b):
    """sqrt(a^2 + b^2) without overflow; an infinite part wins over NaN."""
    return a.f("modulus", b)


def mul(x, y):
    """One of the two products of each part is rounded with their sum."""
    (a, b), (c, d) = x, y
    return a.f("fma", c, -(b * d)), a.f("fma", d, b * c)


def square(x):
    a, b = x
    return times(a - b, a + b), 2.0 * (a * b)


def large(x) -> int:
    """Whether sums and sizes of the parts may overflow."""
    return either(x[0].f("abs"), "gt", x[1].f("abs"), 1e30 if x[0].type == "float32" else 1e300)


def scaled(x, mask: int, factor: float):
    """Both parts times a power of two, where the mask holds."""
    return tuple((p * factor).where(mask, p) for p in x)


def div(x, y):
    """Smith's method: scaled by the larger part of the divisor. What is finite is nothing beside what is infinite."""
    far = large(y)
    endless = x[0].body.stmt("and", "bool", (infinite(y), _finite(x)))
    x, y = scaled(x, far, 0.25), scaled(y, far, 0.25)
    (a, b), (c, d) = x, y
    wide = c.f("abs").compare("ge", d.f("abs"))
    r = d.where(wide, c) / c.where(wide, d)
    bottom = c.where(wide, d) + d.where(wide, c) * r
    re = (a + b * r).where(wide, a * r + b) / bottom
    im = (b - a * r).where(wide, b * r - a) / bottom
    zero = a.body.stmt("and", "bool", (c.compare("eq", 0.0), d.compare("eq", 0.0)))
    re, im = (a / c).where(zero, re), (b / c).where(zero, im)
    return tuple(p._lift(0.0).where(endless, p) for p in (re, im))


def _finite(x) -> int:
    return x[0].body.stmt("and", "bool", tuple(p.body.stmt("is_finite", "bool", (p.number,)) for p in x))


def either(x, op: str, y, other) -> int:
    """Whether a comparison holds for either part."""
    return x.body.stmt("or", "bool", (x.compare(op, other), y.compare(op, other)))


def infinite(x) -> int:
    """Whether either part is infinite."""
    return either(x[0].f("abs"), "eq", x[1].f("abs"), math.inf)


def times(p, q):
    """The product of real parts, but zero where one of them is, whatever the other: C99, annex G."""

    def bounded(v):
        one = v._lift(1.0)
        return v.where(v.body.stmt("is_finite", "bool", (v.number,)), one.where(v.compare("gt", 0.0), -1.0))

    return (bounded(p) * bounded(q)).where(either(p, "eq", q, 0.0), p * q)


def exp(x):
    """Real where the imaginary part is zero; of an infinite real part infinity (or zero), whatever the angle."""
    a, b = x
    size, half = a.f("exp"), (a * 0.5).f("exp")
    real, over = b.compare("eq", 0.0), size.compare("eq", math.inf)

    def along(direction):
        """The size times a part of the direction, by halves where the size alone is too large."""
        return (half * direction * half).where(over, size * direction)

    re, im = along(b.f("cos")), along(b.f("sin"))
    lost, endless = re.compare("ne", re), a.compare("eq", math.inf)
    re = size.where(a.body.stmt("and", "bool", (endless, lost)), re)
    nothing = a.body.stmt("and", "bool", (a.compare("eq", -math.inf), lost))  # an angle that is no number
    re, im = (p._lift(0.0).where(nothing, p) for p in (re, im))
    return size.where(real, re), b.where(real, im)


def two_sum(x, y):
    """A sum, and what is lost in rounding it (Knuth)."""
    total = x + y
    moved = total - x
    return total, (x - (total - moved)) + (y - moved)


def excess(first, *numbers):
    """``first`` plus the squares of the numbers, in twice the precision: what is left where they cancel."""
    total, rest = first, None
    for v in numbers:
        power = v * v
        total, lost = two_sum(total, power)
        lost = lost + v.f("fma", v, -power)
        rest = lost if rest is None else rest + lost
    return total + rest


def faint(x) -> int:
    """Whether both parts are so small that their sizes have few digits."""
    size = x[0].f("abs").f("max", x[1].f("abs"))
    return size.compare("lt", 1e-30 if size.type == "float32" else 1e-290)


def balanced(x) -> tuple:
    """A number as ``scale * y`` with y neither large nor faint: y, and the scale, a power of two."""
    far, near = large(x), faint(x)
    scale = x[0]._lift(4.0).where(far, x[0]._lift(2.0**-40).where(near, 1.0))
    return scaled(scaled(x, far, 0.25), near, 2.0**40), scale


def _log_of_size(x):
    """The logarithm of the size of a number that is not near the unit circle, without overflow."""
    x, scale = balanced(x)
    return hypot(*x).f("log") + scale.f("log")


def _near_unit_circle(a, b) -> int:
    size = a.f("max", b)
    return a.body.stmt("and", "bool", (size.compare("gt", 0.5), size.compare("lt", 2.0)))


def log(x):
    """Near the unit circle by log1p of the excess of the squared size over 1, which keeps its digits."""
    a, b = (p.f("abs") for p in x)
    near = (excess(a._lift(-1.0), a.f("max", b), a.f("min", b)).f("log1p")) * 0.5
    return near.where(_near_unit_circle(a, b), _log_of_size(x)), x[1].f("atan2", x[0])


def sqrt(x):
    """Kahan's, on halves of large numbers, so that nothing overflows; the imaginary part keeps its sign."""
    a, b = x
    (p, q), scale = balanced(x)
    root = ((hypot(p, q) + p.f("abs")) * 0.5).f("sqrt")
    other = q.f("abs") / (root * 2.0)
    other = other._lift(0.0).where(root.compare("eq", 0.0), other)
    root, other = (v * scale.f("sqrt") for v in (root, other))
    right = a.compare("ge", 0.0)
    re, im = root.where(right, other), other.where(right, root)
    endless = b.f("abs").compare("eq", math.inf)  # both parts are then infinite, whatever the real part is
    re = re._lift(math.inf).where(endless, re)
    # An infinite real part leaves nothing of a finite imaginary one.
    long, thin = a.f("abs").compare("eq", math.inf), b.f("abs").compare("lt", math.inf)
    flat = a.body.stmt("and", "bool", (long, thin))
    zero = a._lift(0.0)
    re = zero.where(a.body.stmt("and", "bool", (flat, a.compare("lt", 0.0))), re)
    im = zero.where(a.body.stmt("and", "bool", (flat, a.compare("gt", 0.0))), im)
    im = b.f("abs").where(endless, im)
    return re, signed(im, b)


def signed(size, like):
    """The absolute value of ``size`` with the sign of ``like``, that of its zero included."""
    below = like.body.stmt("or", "bool", (like.compare("lt", 0.0), (1.0 / like).compare("eq", -math.inf)))
    size = size.f("abs")
    return (-size).where(below, size)


def _power(x, y: int):
    n, base, out = abs(int(y)), x, None
    while n:
        if n & 1:
            out = base if out is None else mul(out, base)
        n >>= 1
        base = mul(base, base) if n else base
    one = (x[0]._lift(1.0), x[0]._lift(0.0))
    out = one if out is None else out
    return div(one, out) if y < 0 else out


def pow_(x, y):
    """exp(y log x); squares and cubes are products, as where the exponent is a constant (`graph.constants`)."""
    a, b = x
    out = exp(mul(y, log(x)))
    for exponent, power in ((2.0, square(x)), (3.0, _power(x, 3))):
        such = a.body.stmt("and", "bool", (y[0].compare("eq", exponent), y[1].compare("eq", 0.0)))
        out = tuple(p.where(such, o) for p, o in zip(power, out))
    zero = a.body.stmt("and", "bool", (a.compare("eq", 0.0), b.compare("eq", 0.0)))
    flat = a.body.stmt("and", "bool", (y[0].compare("eq", 0.0), y[1].compare("eq", 0.0)))
    at_zero = (a._lift(1.0).where(flat, 0.0), a._lift(0.0))
    return tuple(z.where(zero, o) for z, o in zip(at_zero, out))


def _hyperbolic(a, of_sinh, of_cosh):
    """The products ``sinh(a) of_sinh`` and ``cosh(a) of_cosh``, by halves of e^|a| where that alone overflows."""
    half = (a.f("abs") * 0.5).f("exp")
    far = a.f("abs").compare("gt", 80.0 if a.type == "float32" else 700.0)
    first = times(times(a.f("sign") * half, of_sinh), half * 0.5).where(far, times(a.f("sinh"), of_sinh))
    return first, times(times(half, of_cosh), half * 0.5).where(far, times(a.f("cosh"), of_cosh))


def sinh(x):
    a, b = x
    return _hyperbolic(a, b.f("cos"), b.f("sin"))


def cosh(x):
    a, b = x
    im, re = _hyperbolic(a, b.f("sin"), b.f("cos"))
    return re, im


def sin(x):
    re, im = sinh((-x[1], x[0]))
    return im, -re


def cos(x):
    return cosh((-x[1], x[0]))


def tanh(x):
    """Kahan's form: with t = tan b, s = sinh a, c = cosh a."""
    a, b = x
    t, s = b.f("tan"), a.f("sinh")
    beta = t * t + 1.0
    c = (s * s + 1.0).f("sqrt")
    bottom = beta * s * s + 1.0
    far = a.f("abs").compare("gt", 20.0)
    fall = (-a.f("abs")).f("exp")
    im = (t / beta * 4.0 * fall * fall).where(far, t / bottom)
    endless = a.f("abs").compare("eq", math.inf)  # whatever the angle is
    im = (b._lift(0.0)).where(a.body.stmt("and", "bool", (endless, im.compare("ne", im))), im)
    sure = a.body.stmt("and", "bool", (far, a.body.stmt("or", "bool", (endless, t.compare("eq", t)))))
    return a.f("sign").where(sure, beta * c * s / bottom), im


def tan(x):
    re, im = tanh((-x[1], x[0]))
    return im, -re


def expm1(x):
    a, b = x
    re, im = exp(x)
    half = (b * 0.5).f("sin")
    near = a.f("expm1") * b.f("cos") - 2.0 * half * half
    return near.where(a.f("abs").compare("lt", 40.0), re - 1.0), im


def log1p(x):
    """As ``log``: the excess of the squared size of 1 + z over 1 is 2 a + a^2 + b^2."""
    a, b = x
    near = excess(2.0 * a, a, b).f("log1p") * 0.5
    small = hypot(a, b).compare("lt", 0.5)
    mask = a.body.stmt("or", "bool", (small, _near_unit_circle((a + 1.0).f("abs"), b.f("abs"))))
    return near.where(mask, _log_of_size((a + 1.0, b))), b.f("atan2", a + 1.0)


def logistic(x):
    one = (x[0]._lift(1.0), x[0]._lift(0.0))
    grown = exp((-x[0], -x[1]))
    return div(one, (grown[0] + 1.0, grown[1]))


def rsqrt(x):
    return div((x[0]._lift(1.0), x[0]._lift(0.0)), sqrt(x))


def sign(x):
    x, _ = balanced(x)
    size = hypot(*x)
    zero = size.compare("eq", 0.0)
    return tuple(p.where(zero, p / size) for p in x)


# Inverse functions: Kahan, Branch cuts for complex elementary functions (1987). Each is right on its cuts, on
# the side that the sign of a zero says; at infinity C99 decides.


def _roots(x):
    """sqrt(1 - z) and sqrt(1 + z)."""
    a, b = x
    return sqrt((1.0 - a, -b)), sqrt((1.0 + a, b))


def asin(x):
    a, b = x
    minus, plus = _roots(x)
    re = a.f("atan2", minus[0] * plus[0] - minus[1] * plus[1])
    im = (minus[0] * plus[1] - minus[1] * plus[0]).f("asinh")
    far = large(x)
    return a.f("atan2", b.f("abs")).where(far, re), signed(_log_of_twice(x).where(far, im), b)


def _log_of_twice(x):
    """What the inverse functions are like far from 0: log |2 z|."""
    return _log_of_size(x) + math.log(2.0)


def acos(x):
    a, b = x
    minus, plus = _roots(x)
    re = 2.0 * minus[0].f("atan2", plus[0])
    im = (plus[0] * minus[1] - plus[1] * minus[0]).f("asinh")
    far = large(x)
    return b.f("abs").f("atan2", a).where(far, re), -signed(_log_of_twice(x).where(far, im), b)


def acosh(x):
    a, b = x
    minus, plus = sqrt((a - 1.0, b)), sqrt((a + 1.0, b))
    re = (minus[0] * plus[0] + minus[1] * plus[1]).f("asinh")
    im = 2.0 * minus[1].f("atan2", plus[0])
    far = large(x)
    return _log_of_twice(x).where(far, re), b.f("atan2", a).where(far, im)


def asinh(x):
    re, im = asin((-x[1], x[0]))
    return im, -re


def atanh(x):
    """Real part: log1p(4 |a| / ((1 - |a|)^2 + b^2)) / 4."""
    a, b = x
    p, q = a.f("abs"), b.f("abs")
    huge = either(p, "gt", q, 1e18 if a.type == "float32" else 1e150)
    size = hypot(p, q)
    near = ((4.0 * p) / ((1.0 - p) * (1.0 - p) + q * q)).f("log1p") * 0.25
    distance = hypot(1.0 - p, q)  # to 1, where the square of it may be nothing
    near = (0.5 * (math.log(2.0) - distance.f("log"))).where(distance.compare("lt", 1e-6), near)
    far = (p / size) / size  # Re(1 / z)
    re = far.where(huge, near)
    re = re._lift(0.0).where(infinite(x), re)
    im = (2.0 * b).f("atan2", (1.0 - p) * (1.0 + p) - q * q) * 0.5
    im = signed(im._lift(math.pi / 2), b).where(huge, im)
    return signed(re, a), im


def atan(x):
    re, im = atanh((-x[1], x[0]))
    return im, -re


def log2(x):
    re, im = log(x)
    return re * (1 / math.log(2)), im * (1 / math.log(2))


def exp2(x):
    return exp((x[0] * math.log(2), x[1] * math.log(2)))


def cbrt(x):
    return pow_(x, (x[0]._lift(1 / 3), x[0]._lift(0.0)))


_REAL = {"real": lambda a, b: a, "imag": lambda a, b: b, "abs": hypot}
_COMPLEX: dict[str, Callable] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[0], x[1] - y[1]),
    "mul": mul,
    "div": div,
    "neg": lambda x: (-x[0], -x[1]),
    "conj": lambda x: (x[0], -x[1]),
    "square": square,
    "reciprocal": lambda x: div((x[0]._lift(1.0), x[0]._lift(0.0)), x),
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "pow": pow_,
    "sign": sign,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "expm1": expm1,
    "log1p": log1p,
    "logistic": logistic,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "log2": log2,
    "exp2": exp2,
    "cbrt": cbrt,
}
