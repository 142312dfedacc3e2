"""The scalar operations of loop bodies in NumPy: what `emit.ops` writes in LLVM IR, on arrays of register values.

Functions without an exact result are computed in double precision and rounded, so that for floats of 32 bits they are
as good as can be: an oracle for those of `vector_math`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.emit.ops import BOOL_ALIAS, is_of_type
from catena.compiler.graph.types import DTYPES, Type
from catena.compiler.vector_math import algorithms, mathematics
from catena.core import error_free
from catena.core.dtypes import itemsize_bits
from catena.core.errors import CompileError
from catena.core.lazy import LazyModule

special = LazyModule("scipy.special")


def register(t: Type) -> np.dtype:
    """The dtype of values in registers: narrow floats are computed in 32 bits, narrow integers in 8."""
    return np.dtype(np.float32) if t.narrow and t.kind == "f" else memory(t) if t.kind != "b" else DTYPES["bool"]


def memory(t: Type) -> np.dtype:
    """The dtype of values in memory: booleans, and integers of less than a byte, are bytes."""
    if t.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(f"{'int' if t.kind == 'i' else 'uint'}8") if t.narrow and t.kind != "f" else DTYPES[t.name]


def widen(raw: np.ndarray, t: Type) -> np.ndarray:
    """Values read from memory, as they are in registers."""
    if t.kind == "b":
        return raw != 0  # any byte but 0 is true
    if not t.narrow:
        return raw
    return raw.astype(np.float32) if t.kind == "f" else wrap(raw, t)


def narrow(x, t: Type) -> np.ndarray:
    """Register values as they are in memory."""
    if t.kind in "iu" and t.narrow:
        return x & memory(t).type((1 << t.bits) - 1)
    return np.asarray(x).astype(memory(t))


def wrap(x, t: Type) -> np.ndarray:
    """A narrow integer extended from its own bits to its register."""
    x, by = np.asarray(x).astype(memory(t)), memory(t).type(8 - t.bits)
    return (x << by) >> by


def round_to(x, t: Type) -> np.ndarray:
    """Register values rounded to the dtype's precision (wrapped, for narrow integers)."""
    return wrap(x, t) if t.kind in "iu" else widen(narrow(x, t), t)


def compute(op: str, t: Type, xs: Sequence[np.ndarray], types: Sequence[Type], attr=None) -> np.ndarray:
    """The result of an operation, of type `t`, on register values of these types.

    Raises: CompileError: there is no such operation.

    >>> from catena.compiler.graph.types import TYPES
    >>> i8 = TYPES["int8"]
    >>> compute("div", i8, [np.int8([7, -7, 7]), np.int8([2, 2, 0])], [i8, i8])
    array([ 3, -3, -1], dtype=int8)
    """
    form = _FORMS.get(op)
    if form is not None:
        out = form(t, xs, types, attr)
    else:
        s = types[0]
        rule = _FLOAT.get(op) if s.kind == "f" else _INTEGER.get(BOOL_ALIAS.get(op, op) if s.kind == "b" else op)
        if rule is None:
            raise CompileError(f"operation {op!r} on {s.name} cannot be interpreted")
        out = rule(s, xs, attr)
    if t.narrow and not is_of_type(op, t):
        return round_to(out, t)
    return np.asarray(out, register(t))


# ---- floats --------------------------------------------------------------------------------------------------


def greatest(x, y):
    """The greater of two floats: NaN wins, and zeros are ordered by their signs."""
    return np.where((x == y) & (x == 0), x + y, np.maximum(x, y))


def least(x, y):
    return np.where((x == y) & (x == 0), -(-x - y), np.minimum(x, y))


def _double(function: Callable) -> Callable:
    """A function computed in double precision, and rounded."""

    def rule(t, xs, attr):
        return np.asarray(function(*(x.astype(np.float64) for x in xs))).astype(register(t))

    return rule


def _algorithm(function: Callable) -> Callable:
    return lambda t, xs, attr: mathematics.evaluated(function, *xs).astype(register(t))


def _integer_pow(t, xs, attr):
    """Powers by squaring."""
    y, base, out = abs(int(attr)), xs[0], None
    while y:
        if y & 1:
            out = base if out is None else out * base
        y >>= 1
        if y:
            base = base * base
    out = np.ones_like(xs[0]) if out is None else out
    return 1 / out if int(attr) < 0 else out


def _round_half_away(x):
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x), x)


def _bits(x):
    """Floats as unsigned integers, and the dtype of these."""
    u = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return np.ascontiguousarray(x).view(u).reshape(x.shape), u.type


def _reduce_precision(t, xs, attr):
    """Rounds to nearest even with `m` mantissa bits and the range of `ex` exponent bits."""
    (ex, m), x = attr, np.asarray(xs[0])
    full, exponent = (52, 11) if x.dtype == np.float64 else (23, 8)
    bits, u = _bits(x)
    top, out = 8 * x.dtype.itemsize - 1, bits
    if m < full:
        drop = full - m
        out = (bits + u((1 << (drop - 1)) - 1) + ((bits >> u(drop)) & u(1))) & ~u((1 << drop) - 1)
    if ex < exponent:
        bias, reduced = (1 << (exponent - 1)) - 1, (1 << (ex - 1)) - 1
        sign, all_ones = out & u(1 << top), u(((1 << exponent) - 1) << full)
        size = out & all_ones
        out = np.where(size > u((bias + reduced) << full), sign | all_ones, out)
        out = np.where(size <= u((bias - reduced) << full), sign, out)
    return np.where(np.isnan(x), x, out.view(x.dtype))


def _nextafter(t, xs, attr):
    """The neighbour of xs[0] towards xs[1], in the format's own bits; equal ones give the second, NaN wins."""
    x, y = np.broadcast_arrays(*xs)
    bits, u = _bits(narrow(x, t))
    sign = u(1 << (int(itemsize_bits(DTYPES[t.name])) - 1))
    moved = np.where((y < x) == (x > 0), bits - u(1), bits + u(1))
    raw = np.where(x == 0, np.where(y < 0, sign | u(1), u(1)), moved)
    if t.name.endswith("fnuz"):  # formats with one zero, whose other one is NaN
        raw = np.where(raw == sign, u(0), raw)
    out = np.where(x == y, y, widen(raw.view(memory(t)), t))
    return np.where(np.isnan(x) | np.isnan(y), x + y, out)


_FLOAT: dict[str, Callable] = {
    "add": lambda t, xs, a: xs[0] + xs[1],
    "sub": lambda t, xs, a: xs[0] - xs[1],
    "mul": lambda t, xs, a: xs[0] * xs[1],
    "div": lambda t, xs, a: xs[0] / xs[1],
    "inverse": lambda t, xs, a: 1 / xs[0],
    "div_by_inverse": lambda t, xs, a: xs[0] / xs[1],
    "rem": lambda t, xs, a: np.fmod(*xs),
    "floor": lambda t, xs, a: np.floor(xs[0]),
    "ceil": lambda t, xs, a: np.ceil(xs[0]),
    "trunc": lambda t, xs, a: np.trunc(xs[0]),
    "round_half_even": lambda t, xs, a: np.rint(xs[0]),
    "round_half_away": lambda t, xs, a: _round_half_away(xs[0]),
    "sqrt": lambda t, xs, a: np.sqrt(xs[0]),
    "abs": lambda t, xs, a: np.abs(xs[0]),
    "neg": lambda t, xs, a: -xs[0],
    "max": lambda t, xs, a: greatest(*xs),
    "min": lambda t, xs, a: least(*xs),
    "sign": lambda t, xs, a: np.where((xs[0] == 0) | np.isnan(xs[0]), xs[0], np.copysign(xs[0].dtype.type(1), xs[0])),
    "square": lambda t, xs, a: xs[0] * xs[0],
    "reciprocal": lambda t, xs, a: 1 / xs[0],
    "rsqrt": lambda t, xs, a: 1 / np.sqrt(xs[0]),
    "fma": lambda t, xs, a: error_free.multiply_add(*xs),
    "integer_pow": _integer_pow,
    "nextafter": _nextafter,
    "reduce_precision": _reduce_precision,
    "pow": _double(np.power),
    "atan2": _double(np.arctan2),
    "hypot": _double(np.hypot),
    "modulus": _double(np.hypot),
    **{name: _double(getattr(np, name)) for name in "exp exp2 expm1 log log1p log2 log10 cbrt".split()},
    **{name: _double(getattr(np, name)) for name in "sin cos tan sinh cosh tanh".split()},
    **{name: _double(getattr(np, f"arc{name[1:]}")) for name in "asin acos atan asinh acosh atanh".split()},
    "logistic": _double(lambda x: special.expit(x)),
    "erf": _double(lambda x: special.erf(x)),
    "erfc": _double(lambda x: special.erfc(x)),
    "erf_inv": _double(lambda x: special.erfinv(x)),
    "error_density": _double(lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "normal_density": _double(lambda x: np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)),
    "trigamma": _double(lambda x: special.polygamma(1, x)),
    "lgamma": _double(lambda x: special.gammaln(x)),
    "digamma": _double(lambda x: special.psi(x)),
    "entr": _double(lambda x: special.entr(x)),
    "logit": _double(lambda x: special.logit(x)),
    "bessel_i0e": _double(lambda x: special.i0e(x)),
    "bessel_i1e": _double(lambda x: special.i1e(x)),
    **{name: _algorithm(function) for name, function in algorithms.ALGORITHMS.items()},
}


# ---- integers and booleans -------------------------------------------------------------------------------------


def _unsigned(x) -> np.ndarray:
    return np.asarray(x).view(f"uint{8 * x.dtype.itemsize}")


def _quotient(t, xs):
    """The quotient towards zero by a divisor that never traps, that divisor, and the mask of zero divisors."""
    x, y = xs
    zero = bad = y == 0
    if t.kind == "i":
        bad = zero | ((x == np.iinfo(x.dtype).min) & (y == -1))
    safe = np.where(bad, x.dtype.type(1), y)
    down = x // safe
    return down + ((x - down * safe != 0) & ((x < 0) != (safe < 0))), safe, zero


def _div(t, xs, attr):
    quotient, _, zero = _quotient(t, xs)
    ones = -1 if t.kind == "i" else (1 << t.bits) - 1
    return np.where(zero, quotient.dtype.type(ones), quotient)


def _rem(t, xs, attr):
    quotient, safe, zero = _quotient(t, xs)
    return np.where(zero, xs[0], xs[0] - quotient * safe)


def _shift(how: str) -> Callable:
    def rule(t, xs, attr):
        x, y = np.broadcast_arrays(*xs)
        by = _unsigned(y)
        fits = by < t.bits
        by = np.where(fits, by, by.dtype.type(t.bits - 1))
        if how == "arithmetic":
            signed = x.view(f"int{8 * x.dtype.itemsize}")
            if t.narrow and t.kind == "u":
                signed = wrap(signed, t._replace(kind="i"))
            return (signed >> by.view(signed.dtype)).view(x.dtype)
        bits = _unsigned(x)
        if how == "logical" and t.narrow:
            bits = bits & bits.dtype.type((1 << t.bits) - 1)
        moved = bits << by if how == "left" else bits >> by
        return np.where(fits, moved, bits.dtype.type(0)).view(x.dtype)

    return rule


def _own_bits(t, x):
    bits = _unsigned(x)
    return bits & bits.dtype.type((1 << t.bits) - 1) if t.narrow else bits


def _clz(t, xs, attr):
    bits = _own_bits(t, xs[0])
    length = sum(((bits >> bits.dtype.type(k)) != 0).astype(bits.dtype) for k in range(t.bits))
    return (t.bits - length).astype(xs[0].dtype)


def _mulhi(t, xs, attr):
    x, y = xs
    if t.narrow:
        return (x * y) >> x.dtype.type(t.bits)
    if t.bits < 64:
        wide = np.int64 if t.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> wide(t.bits)).astype(x.dtype)
    a, b, half, low = _unsigned(x), _unsigned(y), np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + ((a0 * b0) >> half)
    high = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    if t.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(x.dtype)


def _integer_power(t, xs, attr):
    """x ** y in the ring of their width; the bits of y count as an integer without a sign."""
    x, y = (_unsigned(x) for x in np.broadcast_arrays(*xs))
    return np.power(x, y).view(xs[0].dtype)


_INTEGER = {
    "add": lambda t, xs, a: xs[0] + xs[1],
    "sub": lambda t, xs, a: xs[0] - xs[1],
    "mul": lambda t, xs, a: xs[0] * xs[1],
    "and": lambda t, xs, a: xs[0] & xs[1],
    "or": lambda t, xs, a: xs[0] | xs[1],
    "xor": lambda t, xs, a: xs[0] ^ xs[1],
    "neg": lambda t, xs, a: xs[0].dtype.type(0) - xs[0],
    "not": lambda t, xs, a: ~xs[0],
    "abs": lambda t, xs, a: np.maximum(xs[0], xs[0].dtype.type(0) - xs[0]) if t.kind == "i" else xs[0],
    "max": lambda t, xs, a: np.maximum(*xs),
    "min": lambda t, xs, a: np.minimum(*xs),
    "div": _div,
    "rem": _rem,
    "floor_div": lambda t, xs, a: xs[0] // xs[1],
    "sign": lambda t, xs, a: np.sign(xs[0]),
    "square": lambda t, xs, a: xs[0] * xs[0],
    "integer_pow": _integer_pow,
    "pow": _integer_power,
    "shift_left": _shift("left"),
    "shift_right_logical": _shift("logical"),
    "shift_right_arithmetic": _shift("arithmetic"),
    "population_count": lambda t, xs, a: np.bitwise_count(_own_bits(t, xs[0])).astype(xs[0].dtype),
    "clz": _clz,
    "mulhi": _mulhi,
}


# ---- operations whose result or operands have several types ------------------------------------------------------


def order_keys(x: np.ndarray) -> np.ndarray:
    """Signed integers ordered like the floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN; their own inverse."""
    signed = np.dtype(f"int{8 * x.dtype.itemsize}").type
    bits = np.ascontiguousarray(x).view(signed).reshape(x.shape)
    return bits ^ ((bits >> signed(8 * x.dtype.itemsize - 1)) & signed(np.iinfo(signed).max))


def _total(compare: Callable) -> Callable:
    return lambda t, xs, types, attr: compare(*(map(order_keys, map(np.asarray, xs)) if types[0].kind == "f" else xs))


def _clamp(t, xs, types, attr):
    low = compute("max", t, xs[:2], [t, t])
    return compute("min", t, [low, xs[2]], [t, t])


def _is_finite(t, xs, types, attr):
    return np.isfinite(xs[0]) if types[0].kind == "f" else np.ones(np.shape(xs[0]), np.bool_)


def convert(x, s: Type, t: Type) -> np.ndarray:
    """Between register types: floats to integers saturate, and NaN is 0 then."""
    x = np.asarray(x)
    if t.kind == "b":
        return x != 0
    if s.kind != "f" or t.kind == "f":
        return (x.astype(memory(t)) if t.name == "float16" else x).astype(register(t))  # others are rounded twice
    low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)
    inside = (x >= float(low)) & (x < float(high + 1))
    whole = np.where(inside, x, x.dtype.type(0)).astype(register(t))
    n = register(t).type
    return np.where(x >= float(high + 1), n(high), np.where(x < low, n(low), whole))


def _bitcast(t, xs, types, attr):
    s = types[0]
    raw = np.ascontiguousarray(narrow(xs[0], s) if s.kind in "fb" else xs[0])
    out = raw.view(memory(t)).reshape(np.shape(xs[0]))
    return widen(out, t) if t.kind in "fb" else out


def _sort_key(t, xs, types, merge_zeros):
    """Unsigned integers ordered like the operand, NaN last."""
    s, x = types[0], np.asarray(xs[0])
    u = register(t).type
    if s.kind == "u":
        return x
    if s.kind == "b":
        return x.astype(u)
    high = u(1 << (t.bits - 1))
    if s.kind == "i":
        return x.view(u) ^ high
    raw, _ = _bits(narrow(np.where(x == 0, x.dtype.type(0), x) if merge_zeros else x, s))
    negative = (raw & high) != 0
    return np.where(np.isnan(x), ~u(0), raw ^ np.where(negative, ~u(0), high))


def _sort_unkey(t, xs, types, attr):
    """The element of a key."""
    s, key = types[0], np.asarray(xs[0])
    u = register(s).type
    if t.kind == "u":
        return key
    if t.kind == "b":
        return (key & u(1)) != 0
    high = u(1 << (s.bits - 1))
    if t.kind == "i":
        return (key ^ high).view(memory(t))
    raw = key ^ np.where((key & high) == 0, ~u(0), high)
    return widen(np.asarray(raw).view(memory(t)), t)


_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_FORMS: dict[str, Callable] = {
    **{op: lambda t, xs, types, attr, f=f: f(*xs) for op, f in _COMPARE.items()},
    "lt_total": _total(np.less),
    "le_total": _total(np.less_equal),
    "eq_total": _total(np.equal),
    "select": lambda t, xs, types, attr: np.where(*xs),
    "clamp": _clamp,
    "is_finite": _is_finite,
    "convert": lambda t, xs, types, attr: convert(xs[0], types[0], t),
    "bitcast": _bitcast,
    "sort_key": _sort_key,
    "sort_unkey": _sort_unkey,
}
