"""The scalar operations of loop bodies in LLVM IR, on scalars and on SIMD lanes alike.

`emit(e, op, type, xs, types, attr, width)` writes one operation. Semantics are XLA's: integer division by
zero gives -1 and its remainder the dividend, shifts past the width give zero or the sign, float to integer
saturates and sends NaN to 0, max and min propagate NaN. Floats narrower than 32 bits live in f32 registers
and are rounded after each operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catena.compiler import vector_math
from catena.compiler.emit import integer_quotients, special
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.masks import any_lane
from catena.compiler.graph.forms import OPS
from catena.compiler.graph.types import TYPES, Type, constant, vector
from catena.compiler.vector_math import helpers, small
from catena.core.errors import CompileError

COMPARE = {
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}
FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
OF_SMALL = {  # what takes long of subnormal numbers
    "mul": small.PRODUCT,
    "square": small.PRODUCT,
    "div": small.QUOTIENT,
    "fma": small.PRODUCT_SUM,
}
UNSIGNED = frozenset("exp exp2 logistic normal_density erfc ndtr abs".split())  # what is never below zero
INT_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
FLOAT_INTRINSICS = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round_half_even": "roundeven",
    "round_half_away": "round",
    "sqrt": "sqrt",
    "abs": "fabs",
}
ARITHMETIC = frozenset(("add", "sub", "mul", "div", "sqrt", "square"))  # processors' own, which keep what a NaN says
BOOL_ALIAS = {"add": "or", "mul": "and", "max": "or", "min": "and", "sub": "xor", "ne": "xor"}


def emit(e: Emitter, op: str, t: Type, xs: list[str], types: list[Type], attr, width: int) -> str:
    """Writes `op`; returns the register that holds its result, of type `t`."""
    special_form = _FORMS.get(op)
    if special_form is not None:
        out = special_form(e, t, xs, types, attr, width)
    elif types[0].kind == "f":
        out = _float(e, op, types[0], xs, width, attr)
    else:
        out = _integer(e, op, types[0], xs, width, attr)
    if t.narrow and not is_of_type(op, t):
        out = round_to(e, out, t, width, op in ARITHMETIC and types[0] == t)
    return out


def is_of_type(op: str, t: Type) -> bool:
    """Whether a result is a value of a narrow dtype as it is. Rounding would quiet a NaN."""
    if t.kind == "f":
        return op == "bitcast" or OPS[op].exact and not (op in LEAVING and t.name in INCOMPLETE)
    return OPS[op].exact and op not in ("neg", "abs")  # of the least integer they wrap around


# Floats of which some have no negative, or lie between the greatest and the next integer; and what gives such.
INCOMPLETE = [n for n in TYPES if n.endswith("fnuz") or n in ("float6_e2m3fn", "float8_e8m0fnu", "float8_e3m4")]
LEAVING = ("neg", "floor", "ceil", "trunc", "round_half_even", "round_half_away")


# ---- floats ------------------------------------------------------------------------------------------------


def _float(e: Emitter, op: str, t: Type, xs: list[str], width: int, attr) -> str:
    r = vector(t.register, width)
    if is_of_small(op, attr):
        asked = [is_small(e, t, xs[k], width, small.LEAST_OF_BOTH) for k in attr]
        return of_small(e, op, t, xs, width, either(e, asked))
    if op in FLOAT_BINARY:
        return e.op(f"{FLOAT_BINARY[op]} {r} {xs[0]}, {xs[1]}")
    if op in FLOAT_INTRINSICS:
        return intrinsic(e, FLOAT_INTRINSICS[op], t, xs, width)
    rule = _FLOAT.get(op)
    if rule is not None:
        return rule(e, t, xs, width, attr)
    return library(e, op, t, xs, width)


def is_of_small(op: str, attr) -> bool:
    """Whether an operation is told which of its operands may be small (see `graph.small`)."""
    return op in OF_SMALL and attr is not None


def of_small(e: Emitter, op: str, t: Type, xs: list[str], width: int, told: str) -> str:
    """Such an operation; `told`: whether something may be small."""
    xs, op = (xs * 2, "mul") if op == "square" else (xs, op)
    if told == "true":
        return vector_call(e, small.found(OF_SMALL[op]), t.register, xs, width)
    if told == "false":
        return intrinsic(e, op, t, xs, width) if op == "fma" else _float(e, op, t, xs, width, None)
    return vector_call(e, OF_SMALL[op], t.register, xs, width, [("i1", told)])


def either(e: Emitter, truths: Iterable[str]) -> str:
    """Whether some of them hold."""
    first, *others = dict.fromkeys(truths)
    for x in others:
        first = e.op(f"or i1 {first}, {x}")
    return first


def is_small(e: Emitter, t: Type, x: str, width: int, least: int, made: str = "") -> str:
    """Whether some lane may be below a power of two of what operation `made` gives."""
    name = small.asking(small.IS_SMALL_SIZE if made in UNSIGNED else small.IS_SMALL, least)
    return vector_call(e, name, t.register, [x], width, result="i1")


def has_small(e: Emitter, xs: list[str], width: int, exponent: int) -> str:
    """Whether some lane of some floats is below 2^`exponent`, but not zero. Of their bits without the sign, twice
    and less one, so that zeros are large, the least is compared.
    """
    v, suffix = vector("i32", width), "i32" if width == 1 else f"v{width}i32"
    one, bound = (e.splat(str(n), "i32", width) for n in (1, 2 * (127 + exponent) * small.EXPONENT - 1))
    least = ""
    for x in xs:
        bits = e.op(f"bitcast {vector('float', width)} {x} to {v}")
        size = e.op(f"sub {v} {e.op(f'add {v} {bits}, {bits}')}, {one}")
        least = e.op(f"call {v} @llvm.umin.{suffix}({v} {least}, {v} {size})") if least else size
    truth = e.op(f"icmp ult {v} {least}, {bound}")
    return any_lane(e, truth, width)


def intrinsic(e: Emitter, name: str, t: Type, xs: list[str], width: int) -> str:
    r = vector(t.register, width)
    short = {"float": "f32", "double": "f64"}.get(t.register, t.register)
    suffix = short if width == 1 else f"v{width}{short}"
    return e.op(f"call {r} @llvm.{name}.{suffix}({', '.join(f'{r} {x}' for x in xs)})")


def library(e: Emitter, op: str, t: Type, xs: list[str], width: int) -> str:
    """A transcendental function: ours where `vector_math` has it, else libm lane by lane."""
    element = "f64" if t.register == "double" else "f32"
    if op in vector_math.NAMES:
        rounded = vector_math.OF_HALVES if t.name == "float16" else {}
        return vector_call(e, rounded.get(op, op), t.register, xs, width)
    name = _LIBM.get(op)
    if name is None:
        raise CompileError(f"operation {op!r} on {t.name} cannot be compiled")
    return e.scalarised(name + ("f" if element == "f32" else ""), t.register, xs, width)


_LIBM = {
    n: n
    for n in "exp exp2 expm1 log log1p log2 tanh sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh "
    "erfc cbrt pow lgamma".split()
}


def vector_call(
    e: Emitter, op: str, register: str, xs: list[str], width: int, scalars: Sequence = (), result: str = ""
) -> str:
    """Calls the vector function of the next power-of-two width; `scalars` are types and values of further operands,
    `result` is the type of one that is no vector.
    """
    wide = 1 << (width - 1).bit_length()
    symbol = vector_math.symbol(op, register, wide)
    e.needs.setdefault(symbol, ("vector_math", op, register, wide))
    if wide != width:
        xs = [_resize(e, x, register, width, wide) for x in xs]
    v = vector(register, wide)
    operands = [*((v, x) for x in xs), *scalars]
    out = e.op(f"call {result or v} {symbol}({', '.join(f'{type_} {x}' for type_, x in operands)})")
    return out if wide == width or result else _resize(e, out, register, wide, width)


def _resize(e: Emitter, x: str, register: str, old: int, new: int) -> str:
    order = ", ".join(f"i32 {min(k, old - 1)}" for k in range(new))
    v = vector(register, old)
    return e.op(f"shufflevector {v} {x}, {v} poison, <{new} x i32> <{order}>")


def _float_extreme(name: str):
    """IEEE 754-2019's maximum and minimum: NaN wins, and zeros are ordered by their signs."""
    order, logic = {"maximum": ("ogt", "and"), "minimum": ("olt", "or")}[name]

    def rule(e, t, xs, width, attr):
        if width > 1:
            zero = constant(0.0, t, width)
            if name == "maximum" and zero in xs:
                return _above_zero(e, t, xs[0] if xs[1] == zero else xs[1], width)
            if any(x.startswith("splat") for x in xs):
                return intrinsic(e, name, t, xs, width)
        if t.name == "float16":
            return _half_extreme(e, t, helpers.HalfExtreme(name, width), xs)
        return _either_extreme(e, t, order, logic, *xs, width)

    return rule


def _above_zero(e: Emitter, t: Type, x: str, width: int) -> str:
    """max(x, 0): a sum has no zero below 0, so one comparison does, whose second operand is what is NaN."""
    r, zero = vector(t.register, width), constant(0.0, t, width)
    return processors_extreme(e, t.register, "ogt", zero, e.op(f"fadd {r} {x}, {zero}"), width)


def processors_extreme(e: Emitter, register: str, order: str, x: str, y: str, width: int) -> str:
    """The greater (`ogt`) or less (`olt`) of floats, by one instruction: y where they are equal, or one is NaN."""
    r = vector(register, width)
    return e.op(f"select {vector('i1', width)} {e.op(f'fcmp {order} {r} {x}, {y}')}, {r} {x}, {r} {y}")


def _either_extreme(e: Emitter, t: Type, order: str, logic: str, a: str, b: str, width: int) -> str:
    """Processors' extreme taken both ways round: one number, or zeros, of which `logic` makes what is asked for, or NaN
    and the other, of which `or` makes NaN. LLVM's own way looks at signs first, and chooses by masks three times.
    """
    r, integer = vector(t.register, width), "i64" if t.register == "double" else "i32"
    bits, both = vector(integer, width), []
    for x, y in ((a, b), (b, a)):
        best = processors_extreme(e, t.register, order, x, y, width)
        both.append(e.op(f"bitcast {r} {best} to {bits}"))
    out = e.op(f"{logic} {bits} {', '.join(both)}")
    if logic == "and":
        nan = e.op(f"fcmp uno {r} {a}, {b}")
        out = e.op(f"select {vector('i1', width)} {nan}, {bits} {e.splat('-1', integer, width)}, {bits} {out}")
    return e.op(f"bitcast {bits} {out} to {r}")


def _half_extreme(e: Emitter, t: Type, helper: helpers.HalfExtreme, xs: list[str]) -> str:
    """The same of float16, which processors compare as these or as floats."""
    e.needs.setdefault(helper.name, ("text", helper.definition))
    v = vector(t.register, helper.width)
    return e.op(f"call {v} {helper.name}({', '.join(f'{v} {x}' for x in xs)})")


def _float_sign(e, t, xs, width, attr):
    r = vector(t.register, width)
    one = intrinsic(e, "copysign", t, [constant(1.0, t, width), xs[0]], width)
    keep = e.op(f"fcmp ueq {r} {xs[0]}, {constant(0.0, t, width)}")
    return e.op(f"select {vector('i1', width)} {keep}, {r} {xs[0]}, {r} {one}")


def _reciprocal(e, t, xs, width, attr):
    return e.op(f"fdiv {vector(t.register, width)} {constant(1.0, t, width)}, {xs[0]}")


def _integer_pow(e, t, xs, width, attr):
    """Powers by squaring."""
    y, base, out = abs(int(attr)), xs[0], None
    multiply = "fmul" if t.kind == "f" else "mul"
    r = vector(t.register, width)
    while y:
        if y & 1:
            out = base if out is None else e.op(f"{multiply} {r} {out}, {base}")
        y >>= 1
        if y:
            base = e.op(f"{multiply} {r} {base}, {base}")
    out = constant(1, t, width) if out is None else out
    return _reciprocal(e, t, [out], width, None) if int(attr) < 0 else out


_FLOAT = {
    "neg": lambda e, t, xs, w, a: e.op(f"fneg {vector(t.register, w)} {xs[0]}"),
    "max": _float_extreme("maximum"),
    "min": _float_extreme("minimum"),
    "sign": _float_sign,
    "square": lambda e, t, xs, w, a: e.op(f"fmul {vector(t.register, w)} {xs[0]}, {xs[0]}"),
    "reciprocal": _reciprocal,
    "fma": lambda e, t, xs, w, a: intrinsic(e, "fma", t, xs, w),
    "integer_pow": _integer_pow,
    "nextafter": special.nextafter,
    "reduce_precision": special.reduce_precision,
    "erf_inv": lambda e, t, xs, w, a: library(e, "erf_inv", t, xs, w),
    "inverse": lambda e, t, xs, w, a: vector_call(e, "inverse", t.register, xs, w),
    "div_by_inverse": lambda e, t, xs, w, a: vector_call(e, "quotient_by_inverse", t.register, xs, w),
}


def round_to(e: Emitter, x: str, t: Type, width: int, is_arithmetic: bool = False) -> str:
    """A register value rounded to the dtype's precision (wrapped, for narrow integers); of what arithmetic makes of
    numbers of the dtype, a NaN is one of it.
    """
    if t.kind in "iu":
        return e.wrap(x, t, width)
    if t.name == "bfloat16":
        return special.round_bfloat16(e, x, width, is_arithmetic)
    return e.widen(e.narrow(x, t, width), t, width)


# ---- integers and booleans ---------------------------------------------------------------------------------


def _integer(e: Emitter, op: str, t: Type, xs: list[str], width: int, attr) -> str:
    if t.kind == "b":
        op = BOOL_ALIAS.get(op, op)
    r = vector(t.register, width)
    if op in INT_BINARY:
        return e.op(f"{INT_BINARY[op]} {r} {xs[0]}, {xs[1]}")
    rule = _INTEGER.get(op)
    if rule is None:
        raise CompileError(f"operation {op!r} on {t.name} cannot be compiled")
    return rule(e, t, xs, width, attr)


def _int_minmax(name: str):
    return lambda e, t, xs, w, a: intrinsic(e, ("s" if t.kind == "i" else "u") + name, t, xs, w)


def _division(e: Emitter, t: Type, xs: list[str], width: int) -> tuple[str, str, str]:
    """A divisor that never traps, the mask of zero divisors, and the register type."""
    r, i1 = vector(t.register, width), vector("i1", width)
    zero = e.op(f"icmp eq {r} {xs[1]}, {constant(0, t, width)}")
    bad = zero
    if t.kind == "i":
        low = e.op(f"icmp eq {r} {xs[0]}, {constant(-(1 << (8 * t.bytes - 1)), t, width)}")
        minus = e.op(f"icmp eq {r} {xs[1]}, {constant(-1, t, width)}")
        bad = e.op(f"or {i1} {zero}, {e.op(f'and {i1} {low}, {minus}')}")
    safe = e.op(f"select {i1} {bad}, {r} {constant(1, t, width)}, {r} {xs[1]}")
    return safe, zero, r


def _quotient(e: Emitter, t: Type, xs: list[str], safe: str, width: int) -> str:
    """The quotient, towards zero. Vectors divide floats alone: short integers go by way of those that hold them, whose
    quotient is off by less than the distance to the next integer. A division by a constant is no division.
    """
    r, s = vector(t.register, width), "s" if t.kind == "i" else "u"
    if width > 1 and t.bits > 32:
        return integer_quotients.quotient(e, t.kind, xs[0], xs[1], safe, width)
    if width == 1 or xs[1][0] != "%":
        return e.op(f"{s}div {r} {xs[0]}, {safe}")
    f = vector("float" if t.bits <= 16 else "double", width)
    x, y = (e.op(f"{s}itofp {r} {v} to {f}") for v in (xs[0], safe))
    return e.op(f"fpto{s}i {f} {e.op(f'fdiv {f} {x}, {y}')} to {r}")


def _int_div(e, t, xs, width, attr):
    safe, zero, r = _division(e, t, xs, width)
    ones = constant(-1 if t.kind == "i" else (1 << t.bits) - 1, t, width)
    return e.op(f"select {vector('i1', width)} {zero}, {r} {ones}, {r} {_quotient(e, t, xs, safe, width)}")


def _int_rem(e, t, xs, width, attr):
    safe, zero, r = _division(e, t, xs, width)
    rest = _rest(e, t, [xs[0], safe], _quotient(e, t, xs, safe, width), width)
    return e.op(f"select {vector('i1', width)} {zero}, {r} {xs[0]}, {r} {rest}")


def _floor_div(e, t, xs, width, attr):
    """Rounds down; the divisor is a positive constant."""
    return _rounded_down(e, t, xs, _quotient(e, t, xs, xs[1], width), width)


def divided_by(e: Emitter, op: str, t: Type, x: str, divisor: int, width: int) -> str:
    """An operation of an integer and a constant divisor which the text does not tell (see `integer_quotients`)."""
    quotient, by = integer_quotients.by_constant(e, t, x, divisor, width)
    if op == "div":
        return quotient
    return (_rest if op == "rem" else _rounded_down)(e, t, [x, by], quotient, width)


def _rest(e: Emitter, t: Type, xs: list[str], quotient: str, width: int) -> str:
    r = vector(t.register, width)
    return e.op(f"sub {r} {xs[0]}, {e.op(f'mul {r} {quotient}, {xs[1]}')}")


def _rounded_down(e: Emitter, t: Type, xs: list[str], quotient: str, width: int) -> str:
    r, i1, rest = vector(t.register, width), vector("i1", width), _rest(e, t, xs, quotient, width)
    down = e.op(f"icmp slt {r} {rest}, {constant(0, t, width)}")
    return e.op(f"add {r} {quotient}, {e.op(f'sext {i1} {down} to {r}')}")


def _shift(instruction: str, fill: str):
    def rule(e, t, xs, width, attr):
        r, i1 = vector(t.register, width), vector("i1", width)
        x = xs[0]
        if t.register == "i8" and not t.narrow and width > 1:
            return _shift_bytes(e, instruction, x, xs[1], width)
        limit = constant(t.bits, t, width)
        fits = e.op(f"icmp ult {r} {xs[1]}, {limit}")
        last = constant(t.bits - 1, t, width)
        by = e.op(f"select {i1} {fits}, {r} {xs[1]}, {r} {last}")
        if instruction == "lshr" and t.narrow and t.kind == "i":
            x = e.op(f"and {r} {x}, {constant((1 << t.bits) - 1, t, width)}")
        if instruction == "ashr" and t.narrow and t.kind == "u":
            x = e.wrap(x, t._replace(kind="i"), width)
        moved = e.op(f"{instruction} {r} {x}, {by}")
        if fill == "sign":
            return moved
        return e.op(f"select {i1} {fits}, {r} {moved}, {r} {constant(0, t, width)}")

    return rule


def _shift_bytes(e: Emitter, instruction: str, x: str, by: str, width: int) -> str:
    """In words, as no processor shifts bytes each by its own number. Up to 15 the byte's own end fills them, so that
    LLVM, which makes bytes of shifts by less than 8, leaves them words.
    """
    r, wide = vector("i8", width), vector("i16", width)
    extend = "sext" if instruction == "ashr" else "zext"
    x, by = e.op(f"{extend} {r} {x} to {wide}"), e.op(f"zext {r} {by} to {wide}")
    by = e.op(f"call {wide} @llvm.umin.v{width}i16({wide} {by}, {wide} {e.splat('15', 'i16', width)})")
    return e.op(f"trunc {wide} {e.op(f'{instruction} {wide} {x}, {by}')} to {r}")


def _int_sign(e, t, xs, width, attr):
    r, i1 = vector(t.register, width), vector("i1", width)
    positive = e.op(f"zext {i1} {e.op(f'icmp {_signed(t)}gt {r} {xs[0]}, {constant(0, t, width)}')} to {r}")
    if t.kind == "u":
        return e.op(f"zext {i1} {e.op(f'icmp ne {r} {xs[0]}, {constant(0, t, width)}')} to {r}")
    negative = e.op(f"zext {i1} {e.op(f'icmp slt {r} {xs[0]}, {constant(0, t, width)}')} to {r}")
    return e.op(f"sub {r} {positive}, {negative}")


def _signed(t: Type) -> str:
    return "s" if t.kind == "i" else "u"


def _count(name: str, flag: str):
    def rule(e, t, xs, width, attr):
        r = vector(t.register, width)
        x = xs[0]
        if t.narrow:
            x = e.op(f"and {r} {x}, {constant((1 << t.bits) - 1, t, width)}")
        suffix = t.register if width == 1 else f"v{width}{t.register}"
        out = e.op(f"call {r} @llvm.{name}.{suffix}({r} {x}{flag})")
        if name == "ctlz" and t.narrow:
            out = e.op(f"sub {r} {out}, {constant(8 - t.bits, t, width)}")
        return out

    return rule


def _mulhi(e, t, xs, width, attr):
    if t.narrow:
        r = vector(t.register, width)
        product = e.op(f"mul {r} {xs[0]}, {xs[1]}")
        return e.op(f"{'ashr' if t.kind == 'i' else 'lshr'} {r} {product}, {constant(t.bits, t, width)}")
    r, double = vector(t.register, width), vector(f"i{2 * t.bits}", width)
    grow = "sext" if t.kind == "i" else "zext"
    wide = [e.op(f"{grow} {r} {x} to {double}") for x in xs]
    product = e.op(f"mul {double} {wide[0]}, {wide[1]}")
    high = e.op(f"lshr {double} {product}, {e.splat(str(t.bits), f'i{2 * t.bits}', width)}")
    return e.op(f"trunc {double} {high} to {r}")


_INTEGER = {
    "neg": lambda e, t, xs, w, a: e.op(f"sub {vector(t.register, w)} {constant(0, t, w)}, {xs[0]}"),
    "not": lambda e, t, xs, w, a: e.op(
        f"xor {vector(t.register, w)} {xs[0]}, {constant(1 if t.kind == 'b' else -1, t, w)}"
    ),
    "abs": lambda e, t, xs, w, a: (
        xs[0]
        if t.kind != "i"
        else intrinsic(e, "smax", t, [xs[0], e.op(f"sub {vector(t.register, w)} {constant(0, t, w)}, {xs[0]}")], w)
    ),
    "max": _int_minmax("max"),
    "min": _int_minmax("min"),
    "div": _int_div,
    "rem": _int_rem,
    "floor_div": _floor_div,
    "sign": _int_sign,
    "square": lambda e, t, xs, w, a: e.op(f"mul {vector(t.register, w)} {xs[0]}, {xs[0]}"),
    "integer_pow": _integer_pow,
    "pow": special.integer_power,
    "shift_left": _shift("shl", "zero"),
    "shift_right_logical": _shift("lshr", "zero"),
    "shift_right_arithmetic": _shift("ashr", "sign"),
    "population_count": _count("ctpop", ""),
    "clz": _count("ctlz", ", i1 false"),
    "mulhi": _mulhi,
}


# ---- operations whose result or operands have several types ------------------------------------------------


def _compare(op: str):
    def rule(e, t, xs, types, attr, width):
        s = types[0]
        kind, predicates = (
            ("fcmp", COMPARE[op][0]) if s.kind == "f" else ("icmp", COMPARE[op][1 if s.kind == "i" else 2])
        )
        return e.op(f"{kind} {predicates} {vector(s.register, width)} {xs[0]}, {xs[1]}")

    return rule


def _total(op: str):
    def rule(e, t, xs, types, attr, width):
        keys, s = special.total_order_keys(e, xs, types[0], width)
        return _compare(op)(e, t, keys, [s, s], attr, width)

    return rule


def _select(e, t, xs, types, attr, width):
    r = vector(t.register, width)
    return e.op(f"select {vector('i1', width)} {xs[0]}, {r} {xs[1]}, {r} {xs[2]}")


def _clamp(e, t, xs, types, attr, width):
    low = emit(e, "max", t, [xs[0], xs[1]], [t, t], None, width)
    return emit(e, "min", t, [low, xs[2]], [t, t], None, width)


def _is_finite(e, t, xs, types, attr, width):
    s = types[0]
    if s.kind != "f":
        return constant(1, TYPES["bool"], width)
    size = intrinsic(e, "fabs", s, xs, width)
    greatest = vector_math.FORMATS[s.register].max  # as `Value.__lt__` compares
    return e.op(f"fcmp ole {vector(s.register, width)} {size}, {constant(greatest, s, width)}")


def _convert(e, t, xs, types, attr, width):
    return convert(e, xs[0], types[0], t, width)


def convert(e: Emitter, x: str, s: Type, t: Type, width: int) -> str:
    """Between register types; narrow results are rounded by `emit`."""
    a, b = vector(s.register, width), vector(t.register, width)
    if s.kind == "f" and t.kind == "f":
        if a == b:
            return x
        if t.name == "float16":
            return _rounded_to_odd(e, x, s, t, width)
        return e.op(f"{'fpext' if t.register == 'double' else 'fptrunc'} {a} {x} to {b}")
    if t.kind == "b":
        zero = constant(0, s, width)
        return e.op(f"fcmp une {a} {x}, {zero}") if s.kind == "f" else e.op(f"icmp ne {a} {x}, {zero}")
    if t.kind == "f" and s.kind == "b":  # chosen, by one instruction, where LLVM converts integers that are 0 or 1
        return e.op(f"select {a} {x}, {b} {constant(1.0, t, width)}, {b} {constant(0.0, t, width)}")
    if t.kind == "f":
        return e.op(f"{'sitofp' if s.kind == 'i' else 'uitofp'} {a} {x} to {b}")
    if s.kind == "f":
        return _float_to_int(e, x, s, t, width)
    if s.kind == "b":
        return e.op(f"zext {a} {x} to {b}")
    if s.bytes == t.bytes:
        return x
    return e.op(f"{'trunc' if s.bytes > t.bytes else 'sext' if s.kind == 'i' else 'zext'} {a} {x} to {b}")


def _rounded_to_odd(e: Emitter, x: str, s: Type, t: Type, width: int) -> str:
    """A double as a float that rounds to a float16 as the double itself does: the nearest float may lie halfway between
    two of them where the double does not. What is not exact is cut off, and its last bit is set.

    Algorithm: Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to
    odd", IEEE Transactions on Computers 57 (2008). (The other narrow floats are rounded twice, as NumPy does it.)
    """
    a, b, bits = vector(s.register, width), vector(t.register, width), vector("i32", width)
    nearest = e.op(f"fptrunc {a} {x} to {b}")
    wide = e.op(f"fpext {b} {nearest} to {a}")
    size, wide_size = intrinsic(e, "fabs", s, [x], width), intrinsic(e, "fabs", s, [wide], width)
    beyond = e.op(f"fcmp ogt {a} {wide_size}, {size}")
    inexact = e.op(f"fcmp one {a} {wide}, {x}")
    code = e.op(f"bitcast {b} {nearest} to {bits}")
    cut = e.op(f"add {bits} {code}, " + e.op(f"sext {vector('i1', width)} {beyond} to {bits}"))
    odd = e.op(f"or {bits} {cut}, " + e.op(f"zext {vector('i1', width)} {inexact} to {bits}"))
    return e.op(f"bitcast {bits} {odd} to {b}")


def _float_to_int(e: Emitter, x: str, s: Type, t: Type, width: int) -> str:
    """Towards zero; what is too large or too small becomes the nearest integer, NaN 0.

    Written out in compares and selections, since LLVM takes vectors apart for `fptosi.sat`.
    """
    a, b = vector(s.register, width), vector(t.register, width)
    least = -(1 << (t.bits - 1)) if t.kind == "i" else 0
    end = least + (1 << t.bits)  # one beyond the greatest; powers of two, hence floats
    cast = "fptosi" if t.kind == "i" else "fptoui"

    def choose(condition: str, bound: float, type_: str, chosen: str, other: str) -> str:
        mask = e.op(f"fcmp {condition} {a} {x}, {constant(bound, s, width)}")
        return e.op(f"select {vector('i1', width)} {mask}, {type_} {chosen}, {type_} {other}")

    if t.bits <= (53 if s.register == "double" else 24):  # the greatest integer is a float, too
        inside = choose("ogt", end - 1, a, constant(end - 1, s, width), x)
        inside = choose("olt", least, a, constant(least, s, width), inside)
        return e.op(f"{cast} {a} {choose('uno', 0, a, constant(0, s, width), inside)} to {b}")
    # What is outside converts to anything, and is then replaced.
    out = e.op(f"freeze {b} " + e.op(f"{cast} {a} {x} to {b}"))
    out = choose("oge", end, b, constant(end - 1, t, width), out)
    out = choose("olt", least, b, constant(least, t, width), out)
    return choose("uno", 0, b, constant(0, t, width), out)


def _bitcast(e, t, xs, types, attr, width):
    s = types[0]
    x = e.narrow(xs[0], s, width) if s.kind in "fb" else xs[0]
    mid = vector(f"i{8 * s.bytes}", width)
    if vector(s.memory, width) != mid:
        x = e.op(f"bitcast {vector(s.memory, width)} {x} to {mid}")
    if t.kind in "iu":
        return x
    if vector(t.memory, width) != mid:
        x = e.op(f"bitcast {mid} {x} to {vector(t.memory, width)}")
    return e.widen(x, t, width)


_FORMS = {
    **{op: _compare(op) for op in COMPARE},
    "lt_total": _total("lt"),
    "le_total": _total("le"),
    "eq_total": _total("eq"),
    "select": _select,
    "clamp": _clamp,
    "is_finite": _is_finite,
    "convert": _convert,
    "bitcast": _bitcast,
    "sort_key": special.sort_key,
    "sort_unkey": special.sort_unkey,
}
