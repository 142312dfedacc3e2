"""Algorithms of special functions, written once: NumPy runs them on arrays, and the compiler gets them as
jaxprs.

An algorithm is a function of a *mathematics* ``m`` and numbers with the usual operators. With ``NUMPY`` the
numbers
are NumPy arrays; with ``TRACED`` they are tracers in a wrapper that gives them operators. All of it is
computed in
float64, whatever the dtype of the operands, so that results in the smaller ones are correctly rounded but
for rare
cases.
"""

import numpy as np

from catena.core import casts
from catena.core.array import make_array
from catena.core.aval import ShapedArray
from catena.core.lazy import load
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import get_aval
from catena.lax import arithmetic, comparison, powers, transcendental
from catena.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from catena.lax.structure import bind, broadcast_to, like

F64 = np.dtype(np.float64)


# ------------------------------------------------------------------------------------------------------------
# Two mathematics


class Numpy:
    """The mathematics of NumPy and SciPy."""

    exp, log, log1p, abs, floor = np.exp, np.log, np.log1p, np.abs, np.floor
    where, maximum, sqrt, power = np.where, np.maximum, np.sqrt, np.power
    any = staticmethod(np.any)

    @staticmethod
    def lgamma(x):
        return load("scipy.special").gammaln(x)

    @staticmethod
    def digamma(x):
        return load("scipy.special").psi(x)

    @staticmethod
    def erfc(x):
        return load("scipy.special").erfc(x)


class Number:
    """A tracer with operators; what stands beside it in an operation is given its dtype."""

    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def _operand(y, beside):
    return y.x if type(y) is Number else like(beside, y)


def _infix(fun):
    def method(self, other):
        return Number(fun(self.x, _operand(other, self.x)))

    def reflected(self, other):
        return Number(fun(_operand(other, self.x), self.x))

    return method, reflected


for _name, _fun in {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul, "truediv": arithmetic.div,
    "and": bitwise_and, "or": bitwise_or,
}.items():  # fmt: skip
    _method, _reflected = _infix(_fun)
    setattr(Number, f"__{_name}__", _method)
    setattr(Number, f"__r{_name}__", _reflected)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _infix(getattr(comparison, _name))[0])
Number.__neg__ = lambda self: Number(arithmetic.neg(self.x))
Number.__invert__ = lambda self: Number(bitwise_not(self.x))
Number.__hash__ = None


def _function(fun):
    return staticmethod(lambda *xs: Number(fun(*[x.x for x in xs])))


class Traced:
    """The mathematics of tracers."""

    exp, log, log1p = (_function(getattr(transcendental, n)) for n in ("exp", "log", "log1p"))
    abs, floor, sqrt = (_function(f) for f in (arithmetic.abs, arithmetic.floor, powers.sqrt))
    power = _function(powers.pow)
    lgamma, digamma, erfc = (_function(lambda x, n=n: bind(n, x)) for n in ("lgamma", "digamma", "erfc"))

    @staticmethod
    def maximum(x, y):
        return Number(arithmetic.max(x.x, _operand(y, x.x)))

    @staticmethod
    def where(condition, x, y):
        shape = get_aval(condition.x).shape
        cases = [v.x if type(v) is Number else make_array(np.asarray(v, F64)) for v in (x, y)]
        return Number(comparison.select(condition.x, *[broadcast_to(c, shape) for c in cases]))

    @staticmethod
    def any(x):
        return Number(bind("reduce_or", x.x, axes=tuple(range(get_aval(x.x).ndim))))


# ------------------------------------------------------------------------------------------------------------
# Running algorithms


class Loop:
    """An iteration: ``start(m, *operands)`` gives the state, a tuple whose first part says which lanes go on;
    ``step(m, *state)`` gives the next state; ``finish(m, state, *operands)`` the result."""

    __slots__ = ("start", "step", "finish")

    def __init__(self, start, step, finish):
        self.start, self.step, self.finish = start, step, finish

    def evaluate(self, *xs, **params):
        """The result for NumPy arrays of any float dtype."""
        dtype = xs[0].dtype
        xs = np.broadcast_arrays(*[x.astype(F64) for x in xs])
        state = self.start(Numpy, *xs)
        while np.any(state[0]):
            state = self.step(Numpy, *state)
        return casts.convert(np.asarray(self.finish(Numpy, state, *xs), F64), dtype)

    def lower(self, b, *xs, **params):
        """The iteration as a loop of the compiler over whole arrays."""
        dtype = xs[0].dtype
        xs = [b.convert(x, F64) for x in same_shape(b, xs)]
        state = call(b, lambda *a: self.start(Traced, *a), xs)
        lanes = _staged(lambda *s: [Traced.any(s[0])], state)
        step = _staged(lambda *s: self.step(Traced, *s), state)
        state = b.while_loop(lanes, [], step, [], state)
        n = len(state)
        (out,) = call(b, lambda *a: [self.finish(Traced, a[:n], *a[n:])], [*state, *xs])
        return b.convert(out, dtype)


def same_shape(b, xs) -> list:
    """The operands in the builder, all broadcast to one shape."""
    shape = np.broadcast_shapes(*[x.shape for x in xs])
    return [b.broadcast_in_dim(x, shape, () if not x.shape else range(len(shape))) for x in xs]


def composed(algorithm):
    """The lowering of a function given as an algorithm without iteration."""

    def lower(b, *xs, **params):
        dtype = xs[0].dtype
        xs = [b.convert(x, F64) for x in same_shape(b, xs)]
        (out,) = call(b, lambda *a: [algorithm(Traced, *a)], xs)
        return b.convert(out, dtype)

    return lower


def call(b, algorithm, xs) -> list:
    """The results of an algorithm on values of the compiler's graph."""
    return b.call(_staged(algorithm, xs), xs)


def _staged(algorithm, xs):
    """An algorithm as a closed jaxpr for operands of the types of ``xs``."""

    def flat(*tracers):
        return [out.x for out in algorithm(*map(Number, tracers))]

    info = DebugInfo("compilation", getattr(algorithm, "__name__", repr(algorithm)))
    return trace_to_closed_jaxpr(flat, [ShapedArray(x.shape, x.dtype) for x in xs], info)[0]
