"""What there is to check: for each primitive a function, its arguments, the dtypes it admits and what it
should give.
"""

from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np
import scipy.special as special

from catena import device_put, lax
from catena.core import dtypes
from catena.lax.arithmetic import add_any_p
from catena.lax.powers import wrapping_pow_p

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn")
COMPLEX = ("complex128", "complex64")
INTS = ("int64", "int32", "int8", "uint8", "uint32", "int4", "uint4")
BOOL = ("bool",)
NUMBERS = FLOATS + COMPLEX + INTS
ALL = NUMBERS + BOOL


@dataclass(frozen=True)
class Case:
    """One function to check; ``make(rng, dtype)`` gives its arguments."""

    name: str
    fun: object
    make: object
    dtypes: tuple
    reference: object = None
    ulps: float = 0.0
    magnitude: float = 0.0  # of what is added up: sums that nearly cancel are off by so many `ulps` of that
    order: int = 2
    modes: tuple = ("fwd", "rev")
    primitive: str = ""

    @property
    def covers(self) -> str:
        return self.primitive or self.name


CASES: dict[str, Case] = {}


def case(name, fun, make, dtypes, reference=None, **options):
    CASES[name] = Case(name, fun, make, dtypes, reference, **options)


def arguments(case: Case, dtype) -> tuple:
    """The arguments of a case: the same in every run."""
    return case.make(np.random.default_rng(7), dtype)


# ---- arguments


def numbers(rng, dtype, shape=(3, 4), low=-2.0, high=2.0):
    """Random numbers of a dtype: floats between bounds, integers over a small range, booleans."""
    dtype = np.dtype(dtype)
    kind = dtypes.KIND[dtype]
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        info = ml_dtypes.iinfo(dtype)
        return rng.integers(max(int(info.min), -100), min(int(info.max), 100), shape, endpoint=True).astype(dtype)
    out = rng.uniform(low, high, shape)
    if kind == "c":
        out = out + 1j * rng.uniform(low, high, shape)
    return out.astype(dtype)


def one(low=-2.0, high=2.0, shape=(3, 4)):
    return lambda rng, dtype: (numbers(rng, dtype, shape, low, high),)


def several(*bounds, shapes=((3, 4), (3, 4), (3, 4))):
    return lambda rng, dtype: tuple(numbers(rng, dtype, s, *b) for s, b in zip(shapes, bounds, strict=False))


def spaced(shape=(3, 4)):
    """Different numbers, far enough apart for finite differences of what is not smooth where they meet."""

    def make(rng, dtype):
        n = int(np.prod(shape))
        if dtypes.KIND[np.dtype(dtype)] not in "f":
            return (numbers(rng, dtype, shape),)
        return (rng.permutation(np.linspace(-2.0, 2.1, n)).reshape(shape).astype(dtype),)

    return make


def spaced_pair(rng, dtype):
    """Two arrays of numbers that are all different."""
    if dtypes.KIND[np.dtype(dtype)] != "f":
        return numbers(rng, dtype), numbers(rng, dtype)
    return tuple(rng.permutation(np.linspace(-2.0, 2.1, 24)).reshape(2, 3, 4).astype(dtype))


# ---- elementwise, one operand


def unary(name, reference, low=-2.0, high=2.0, types=FLOATS + COMPLEX, ulps=4.0, **options):
    case(name, getattr(lax, name), one(low, high), types, reference, ulps=ulps, **options)


unary("exp", np.exp)
unary("exp2", np.exp2, ulps=8)
unary("expm1", np.expm1)
unary("log", np.log, 0.1, 3.0)
unary("log1p", np.log1p, -0.8, 3.0)
unary("logistic", lambda x: 1 / (1 + np.exp(-x)))
unary("sin", np.sin)
unary("cos", np.cos)
unary("tan", np.tan, -1.2, 1.2)
unary("asin", np.arcsin, -0.9, 0.9)
unary("acos", np.arccos, -0.9, 0.9)
unary("atan", np.arctan)
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("tanh", np.tanh)
unary("asinh", np.arcsinh)
unary("acosh", np.arccosh, 1.2, 3.0)
unary("atanh", np.arctanh, -0.8, 0.8)
unary("sqrt", np.sqrt, 0.1, 3.0)
unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 3.0)
unary("cbrt", np.cbrt, 0.1, 3.0, types=FLOATS)
unary("neg", np.negative, types=FLOATS + COMPLEX, ulps=0)
unary("square", np.square)
unary("erf", special.erf, types=FLOATS)
unary("erfc", special.erfc, types=FLOATS)
unary("erf_inv", special.erfinv, -0.8, 0.8, types=FLOATS, ulps=8)
unary("lgamma", special.gammaln, 0.3, 5.0, types=FLOATS, ulps=16)
unary("digamma", special.psi, 2.0, 5.0, types=FLOATS, ulps=16)
unary("bessel_i0e", special.i0e, 0.2, 12.0, types=FLOATS, ulps=16)
unary("bessel_i1e", special.i1e, 0.2, 12.0, types=FLOATS, ulps=32)
for _name in ("floor", "ceil"):
    unary(_name, getattr(np, _name), -1.95, 1.95, types=FLOATS, ulps=0, order=0)
unary("is_finite", np.isfinite, types=FLOATS, ulps=0, order=0)
unary("real", np.real, types=COMPLEX, ulps=0)
unary("imag", np.imag, types=COMPLEX, ulps=0)
unary("conj", np.conjugate, types=COMPLEX, ulps=0)
case("conj_real", lax.conj, one(), ("float64", "float32"), lambda x: x + 0j, primitive="conj")
case("abs", lax.abs, spaced(), FLOATS + ("int64", "int32", "int8"), np.abs)
case("abs_complex", lax.abs, one(), COMPLEX, np.abs, ulps=4, primitive="abs")
case("sign", lax.sign, spaced(), NUMBERS, np.sign, ulps=4, order=0)
case("neg_int", lax.neg, one(), ("int32", "int8", "uint8"), None, primitive="neg")
case("not", lax.bitwise_not, one(), INTS + BOOL, None, order=0)
case("population_count", lax.population_count, one(), INTS, None, order=0)
case("clz", lax.clz, one(), INTS, None, order=0)
case("round", lax.round, spaced(), FLOATS, lambda x: np.trunc(x + np.copysign(0.5, x)), order=0)
case(
    "round_even",
    lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    spaced(),
    FLOATS,
    np.rint,
    order=0,
    primitive="round",
)
for _y in (0, 1, 2, 3, 7):
    case(
        f"integer_pow_{_y}",
        lambda x, y=_y: lax.integer_pow(x, y),
        one(0.5, 1.5),
        FLOATS[:4] + COMPLEX,
        lambda x, y=_y: x**y,
        ulps=8,
        primitive="integer_pow",
    )
case(
    "integer_pow_-2",
    lambda x: lax.integer_pow(x, -2),
    one(0.5, 1.5),
    FLOATS[:4] + COMPLEX,
    lambda x: 1.0 / x**2,
    ulps=8,
    primitive="integer_pow",
)
case("integer_pow_int", lambda x: lax.integer_pow(x, 3), one(), INTS, None, order=0, primitive="integer_pow")
case("stop_gradient", lax.stop_gradient, one(), FLOATS + COMPLEX, lambda x: x, order=0)
case("copy", lax.copy_p.bind, one(), ALL, lambda x: x)
case(
    "optimization_barrier",
    lambda x, y: lax.optimization_barrier((x, y)),
    several((-2, 2), (-2, 2)),
    ALL,
    lambda x, y: (x, y),
)
case("device_put", lambda x, y: device_put((x, y)), several((-2, 2), (-2, 2)), ALL, lambda x, y: (x, y))
case(
    "reduce_precision",
    lambda x: lax.reduce_precision(x, 5, 3),
    one(),
    FLOATS[:4],
    None,
    order=0,
)
for _to in ("float32", "int32", "uint8", "bool", "complex64", "bfloat16", "int4", "float64"):
    case(
        f"convert_to_{_to}",
        lambda x, to=_to: lax.convert_element_type_p.bind(x, new_dtype=np.dtype(to), weak_type=False),
        one(-5.0, 5.0),
        ALL,
        None,
        primitive="convert_element_type",
        order=2 if _to == "float64" else 0,
    )
for _from, _to in (("float32", "int32"), ("float64", "uint8"), ("int8", "int4"), ("bfloat16", "int16")):
    case(
        f"bitcast_{_from}_{_to}",
        lambda x, to=_to: lax.bitcast_convert_type(x, to),
        one(),
        (_from,),
        None,
        order=0,
        primitive="bitcast_convert_type",
    )


# ---- elementwise, several operands


def binary(name, reference, x=(-2.0, 2.0), y=(-2.0, 2.0), types=NUMBERS, ulps=4.0, fun=None, **options):
    fun = fun or getattr(lax, name)
    primitive = options.pop("primitive", name)
    case(name, fun, several(x, y), types, reference, ulps=ulps, primitive=primitive, **options)
    case(
        f"{name}_broadcast",
        fun,
        several(x, y, shapes=((3, 1), (1, 4))),
        types[:1],
        reference,
        ulps=ulps,
        primitive=primitive,
        **options,
    )
    case(
        f"{name}_scalar",
        fun,
        several(x, y, shapes=((), (3, 4))),
        types[:1],
        reference,
        ulps=ulps,
        primitive=primitive,
        **options,
    )


WRAPS = FLOATS + COMPLEX + ("int64", "int32")  # where float64 and int64 references do not wrap around
binary("add", np.add, types=WRAPS)
binary("sub", np.subtract, types=WRAPS)
binary("mul", np.multiply, types=WRAPS)
binary("div", np.divide, y=(0.5, 2.0), types=FLOATS + COMPLEX)
binary("rem", np.fmod, x=(2.2, 2.4), y=(0.85, 1.0), types=FLOATS)
binary("pow", np.power, x=(0.5, 2.0), types=FLOATS + COMPLEX, ulps=16)
binary("atan2", np.arctan2, types=FLOATS)
binary("complex", lambda x, y: x + 1j * y, types=("float64", "float32"), ulps=0)
binary("igamma", special.gammainc, (0.5, 3.0), (0.5, 3.0), types=FLOATS, ulps=32, order=1)
binary("igammac", special.gammaincc, (0.5, 3.0), (0.5, 3.0), types=FLOATS, ulps=32, order=1)
binary("igamma_grad_a", None, (0.5, 3.0), (0.5, 3.0), types=FLOATS, ulps=32, order=0)
binary("random_gamma_grad", None, (0.5, 3.0), (0.5, 3.0), types=FLOATS, ulps=32, order=0)
binary("zeta", special.zeta, (1.5, 4.0), (0.5, 4.0), types=FLOATS, ulps=32, order=0)
for _name, _np in (("eq", np.equal), ("ne", np.not_equal)):
    binary(_name, _np, types=ALL, ulps=0, order=0)
for _name, _np in (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
    binary(_name, _np, types=FLOATS + INTS + BOOL, ulps=0, order=0)
for _name, _np in (("eq_to", np.equal), ("lt_to", np.less), ("le_to", np.less_equal)):
    _p = getattr(lax, f"{_name}_p")
    binary(_name, _np, types=FLOATS + INTS, ulps=0, order=0, fun=_p.bind)
for _name, _np in (
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
):
    binary(_name, _np, types=INTS + BOOL, ulps=0, order=0, primitive=_name[8:])
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    case(
        _name,
        getattr(lax, _name),
        lambda rng, d: (numbers(rng, d), rng.integers(0, 7, (3, 4)).astype(d)),
        INTS,
        None,
        order=0,
    )
binary("mulhi", None, types=INTS, ulps=0, order=0)
case(
    "wrapping_pow",
    lambda x, y: wrapping_pow_p.bind(x, y),
    lambda rng, d: (numbers(rng, d), rng.integers(0, 7, (3, 4)).astype(d)),
    INTS,
    None,
    order=0,
)
binary("nextafter", None, types=FLOATS[:4], ulps=0, order=0)
case("add_any", lambda x, y: add_any_p.bind(x, y), several((-2, 2), (-2, 2)), WRAPS, np.add, ulps=4)
for _name, _np in (("max", np.maximum), ("min", np.minimum)):
    case(
        _name,
        getattr(lax, _name),
        spaced_pair,
        ALL,
        _np,
    )
case(
    "div_int",
    lax.div,
    lambda rng, d: (numbers(rng, d), numbers(rng, d)),
    INTS,
    None,
    order=0,
    primitive="div",
)
case(
    "rem_int",
    lax.rem,
    lambda rng, d: (numbers(rng, d), numbers(rng, d)),
    INTS,
    None,
    order=0,
    primitive="rem",
)
case(
    "pow_int",
    lax.pow,
    lambda rng, d: (numbers(rng, d, low=0.5), rng.integers(-2, 4, (3, 4)).astype("int32")),
    ("float32", "float16", "complex64"),
    lambda x, y: x ** y.astype(np.float64),
    ulps=8,
    primitive="pow",
)
case(
    "polygamma",
    lambda x: lax.polygamma(lax.full_like(x, 2), x),
    one(0.5, 3.0),
    FLOATS,
    lambda x: special.polygamma(2, x),
    ulps=32,
)
case(
    "betainc",
    lambda x: lax.betainc(lax.full_like(x, 1.5), lax.full_like(x, 0.75), x),
    one(0.1, 0.9),
    FLOATS,
    lambda x: special.betainc(1.5, 0.75, x),
    ulps=64,
    primitive="regularized_incomplete_beta",
)
case(
    "clamp",
    lax.clamp,
    lambda rng, d: (numbers(rng, d, (), -1.0, -0.9), spaced()(rng, d)[0], numbers(rng, d, (), 0.9, 1.0)),
    FLOATS + INTS + BOOL,
    lambda lo, x, hi: np.minimum(np.maximum(lo, x), hi),
)
case(
    "select_n",
    lambda x, y: lax.select_n(np.arange(12).reshape(3, 4) % 2 == 0, x, y),
    several((-2, 2), (-2, 2)),
    ALL,
    lambda x, y: np.where(np.arange(12).reshape(3, 4) % 2 == 0, y, x),
)
case(
    "select_n_which",
    lambda w, x, y, z: lax.select_n(w, x, y, z),
    lambda rng, d: (rng.integers(-1, 4, (3, 4)).astype(np.int32), *(numbers(rng, d) for _ in range(3))),
    ALL,
    lambda w, x, y, z: np.choose(np.clip(w, 0, 2), [x, y, z]),
    order=0,
    primitive="select_n",
)
case(
    "select_scalar",
    lambda w, x, y: lax.select(w, x, y),
    lambda rng, d: (np.bool_(True), numbers(rng, d), numbers(rng, d)),
    ("float32", "int32"),
    lambda w, x, y: x,
    order=0,
    primitive="select_n",
)


# ---- shapes


def shape_case(name, fun, reference, shape=(3, 4), types=ALL, **options):
    case(name, fun, one(shape=shape), types, reference, **options)


def _padded(x, config):
    """Padding, element by element."""
    sizes = [lo + hi + n + max(n - 1, 0) * mid for n, (lo, hi, mid) in zip(x.shape, config, strict=True)]
    out = np.zeros(sizes, x.dtype)
    for index in np.ndindex(x.shape):
        to = tuple(lo + i * (mid + 1) for i, (lo, _, mid) in zip(index, config, strict=True))
        if all(0 <= t < n for t, n in zip(to, sizes, strict=True)):
            out[to] = x[index]
    return out


shape_case(
    "broadcast_in_dim",
    lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)),
    lambda x: np.broadcast_to(x[None, :, None, :], (2, 3, 5, 4)),
)
shape_case(
    "broadcast_in_dim_one",
    lambda x: lax.broadcast_in_dim(x, (5, 4), (0, 1)),
    lambda x: np.broadcast_to(x, (5, 4)),
    shape=(1, 4),
    primitive="broadcast_in_dim",
)
shape_case("reshape", lambda x: lax.reshape(x, (2, 6)), lambda x: x.reshape(2, 6))
shape_case(
    "reshape_order",
    lambda x: lax.reshape(x, (2, 6), (1, 0)),
    lambda x: x.T.reshape(2, 6),
    primitive="reshape",
)
shape_case("collapse", lambda x: lax.collapse(x, 0), lambda x: x.reshape(-1), primitive="reshape")
shape_case("squeeze", lambda x: lax.squeeze(x, (0, -2)), lambda x: x.reshape(3, 4), shape=(1, 3, 1, 4))
shape_case(
    "expand_dims",
    lambda x: lax.expand_dims(x, (0, -1)),
    lambda x: x[None, ..., None],
    primitive="broadcast_in_dim",
)
shape_case("transpose", lambda x: lax.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), shape=(2, 3, 4))
shape_case("rev", lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1])
shape_case("slice", lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)), lambda x: x[0:3:2, 1:4])
shape_case("slice_in_dim", lambda x: lax.slice_in_dim(x, 0, -1, 2, axis=1), lambda x: x[:, 0:-1:2], primitive="slice")
for _id, _config in (
    ("pad", ((1, 2, 0), (0, 0, 1))),
    ("pad_negative", ((-1, 2, 0), (1, -2, 1))),
    ("pad_interior", ((-1, -1, 2), (0, 1, 3))),
):
    case(
        _id,
        lambda x, v, c=_config: lax.pad(x, v, c),
        lambda rng, d: (numbers(rng, d), np.zeros((), d)),
        ALL,
        lambda x, v, c=_config: _padded(x, c),
        primitive="pad",
    )
case(
    "concatenate",
    lambda x, y: lax.concatenate([x, y, x], 1),
    several((-2, 2), (-2, 2), shapes=((3, 4), (3, 2))),
    ALL,
    lambda x, y: np.concatenate([x, y, x], 1),
)
case(
    "stack",
    lambda x, y: lax.stack([x, y], 1),
    several((-2, 2), (-2, 2)),
    ALL,
    lambda x, y: np.stack([x, y], 1),
)
shape_case("unstack", lambda x: lax.unstack(x, 1), lambda x: tuple(x[:, i] for i in range(4)))
shape_case("split", lambda x: lax.split(x, (1, 0, 3), 1), lambda x: [x[:, :1], x[:, 1:1], x[:, 1:]])
shape_case("tile", lambda x: lax.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)))
shape_case(
    "full_like",
    lambda x: lax.full_like(x, 1),
    lambda x: np.ones_like(x),
    order=0,
    primitive="broadcast_in_dim",
)
case(
    "iota",
    lambda: lax.broadcasted_iota("float32", (2, 3), 1),
    lambda rng, d: (),
    ("float32",),
    lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    order=0,
)


# ---- reductions


def reduction(name, reference, types, *, make=None, ulps=4.0, order=2, **options):
    fun = getattr(lax, name)
    case(
        name,
        lambda x: fun(x, (0, 2)),
        make or one(shape=(2, 3, 4)),
        types,
        lambda x: reference(x, axis=(0, 2)),
        ulps=ulps,
        order=order,
        **options,
    )
    case(
        f"{name}_all",
        lambda x: fun(x, (0, 1)),
        make or one(),
        types[:2],
        lambda x: reference(x, axis=None),
        ulps=ulps,
        order=order,
        primitive=name,
        **options,
    ) if make is None else None


reduction("reduce_sum", np.sum, FLOATS[:4] + COMPLEX + ("int64", "int32"), ulps=16)
reduction("reduce_prod", np.prod, FLOATS[:4] + COMPLEX, ulps=64, make=one(0.5, 1.5, (2, 3, 4)))
reduction("reduce_max", np.max, ALL, make=spaced((2, 3, 4)), ulps=0)
reduction("reduce_min", np.min, ALL, make=spaced((2, 3, 4)), ulps=0)
for _name, _np in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    reduction(f"reduce_{_name}", _np.reduce, INTS[:5] + BOOL, ulps=0, order=0)
for _name in ("argmax", "argmin"):
    case(
        _name,
        partial(getattr(lax, _name), axis=1, index_dtype="int32"),
        spaced(),
        FLOATS + INTS + BOOL,
        partial(getattr(np, _name), axis=1),
        order=0,
    )
for _name, _np, _bounds in (
    ("cumsum", np.cumsum, (-2.0, 2.0)),
    ("cumprod", np.cumprod, (0.5, 1.5)),
    ("cummax", np.maximum.accumulate, None),
    ("cummin", np.minimum.accumulate, None),
    ("cumlogsumexp", np.logaddexp.accumulate, (-2.0, 2.0)),
):
    _fun = getattr(lax, _name)
    _make = one(*_bounds, (3, 5)) if _bounds else spaced((3, 5))
    _types = FLOATS[:4] if _name == "cumlogsumexp" else FLOATS[:4] + ("int64", "int32")
    case(_name, lambda x, f=_fun: f(x, 1), _make, _types, lambda x, f=_np: f(x, axis=1), ulps=32)
    case(
        f"{_name}_reverse",
        lambda x, f=_fun: f(x, 0, reverse=True),
        _make,
        _types,
        lambda x, f=_np: f(x[::-1], axis=0)[::-1],
        ulps=32,
        primitive=_name,
    )
case(
    "reduce",
    lambda x: lax.reduce(x, 0, lambda a, b: lax.add(lax.mul(a, b), lax.add(a, b)), (1,)),
    one(0.1, 0.5, (3, 5)),
    FLOATS[:4] + ("int32",),
    lambda x: np.prod(x + 1, axis=1) - 1,
    ulps=32,
)
case(
    "reduce_max_by_fold",
    lambda x: lax.reduce(x, 0, lambda a, b: lax.max(a, b), (0,)),
    one(0.1, 3.0),
    ("float32",),
    lambda x: np.max(x, axis=0),
    primitive="reduce",
)
