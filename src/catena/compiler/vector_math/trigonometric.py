"""sin, cos, tan.

x = n pi/2 + r. For moderate |x| the three pieces of pi/2 are subtracted with fma, the first one exactly (Cody & Waite);
beyond, Payne & Hanek ("Radian Reduction for Trigonometric Functions", SIGNUM Newsletter 1983): a vector with a large lane
calls a cold function that multiplies, lane by lane, with the 192 bits of 2/pi that matter.
Then minimax polynomials on |r| <= pi/4, with r in two pieces for doubles (the kernels of FDLIBM; own coefficients).
"""

from . import tables
from .constants import HALF_PI, TWO_OVER_PI, TWO_OVER_PI_BITS
from .double_double import Pair, fast_two_sum, two_product, two_sum
from .text import FORMATS, Type, Value, call, fabs, fma, horner, if_any, literal, round_to_integer, select, symbol

# Up to here the remainder keeps full relative accuracy: no float comes closer than about 2^-62 (2^-31) to a multiple of pi/2.
MODERATE = {"float": 2.0**15, "double": 2.0**26}
LARGE_REDUCTION = "pi_reduction_large"


def reduce_angle(x: Value) -> tuple[Value, Pair]:
    """n (an integer, only its low bits matter) and r = x - n pi/2 as a pair."""
    n, n_integer, remainder = reduce_moderate_angle(x)
    large = fabs(x) >= MODERATE[x.elem]

    def slow() -> list[Value]:
        result = Type(f"{{ {x.type}, {x.type}, {n_integer.type} }}", 1)
        width = x.type.width
        reduced = call(result, LARGE_REDUCTION, x.elem, width, x)
        fields = [
            x.writer.emit(type_, f"extractvalue {result} {reduced.name}, {k}")
            for k, type_ in enumerate([x.type, x.type, n_integer.type])
        ]
        fast = [remainder.high, remainder.low, n_integer]
        return [select(large, s, f) for s, f in zip(fields, fast, strict=True)]

    high, low, n_integer = if_any(large, slow, [remainder.high, remainder.low, n_integer])
    return n_integer, Pair(high, low)


def reduce_moderate_angle(x: Value) -> tuple[Value, Value, Pair]:
    first, second, third = HALF_PI[x.elem]
    n, n_integer = round_to_integer(x * 0.6366197723675814)
    r = fma(n, -first, x)
    if x.elem == "float":
        return n, n_integer, Pair(fma(n, -third, fma(n, -second, r)), r.like(0.0))
    product = two_product(n, second)
    difference = two_sum(r, -product.high)
    return n, n_integer, fast_two_sum(difference.high, fma(n, -third, difference.low - product.low))


def sin_kernel(r: Pair) -> Value:
    """sin(r.high + r.low) for |r| <= pi/4."""
    x, z = r.high, r.high * r.high
    tail = x * z * horner(z, tables.SIN[x.elem])
    if x.elem == "float":
        return x + tail
    return x + (tail + fma(z * -0.5, r.low, r.low))


def cos_kernel(r: Pair) -> Value:
    x, z = r.high, r.high * r.high
    tail = z * z * horner(z, tables.COS[x.elem])
    if x.elem == "float":
        return fma(z, -0.5, 1.0) + tail
    half = z * 0.5
    leading = 1.0 - half
    return leading + (((1.0 - leading) - half) + (tail - x * r.low))


def circular(x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns pi/2)."""
    n, r = reduce_angle(x)
    n = n + quarter_turns
    value = select((n & 1).equals(0), sin_kernel(r), cos_kernel(r))
    sign = (n & 2) << (x.format.bits - 2)
    return (value.bits() ^ sign).as_float(x.elem)


def sin(x: Value) -> Value:
    # Zero and subnormals pass through: adding the (positive) zero tail would lose the sign of -0.
    return select(fabs(x) < x.format.tiny, x, circular(x, 0))


def cos(x: Value) -> Value:
    return circular(x, 1)


def tan(x: Value) -> Value:
    n, r = reduce_angle(x)
    odd = (n & 1).differs(0)
    sine, cosine = sin_kernel(r), cos_kernel(r)
    value = select(odd, -cosine, sine) / select(odd, sine, cosine)
    return select(fabs(x) < x.format.tiny, x, value)


def large_reduction(elem: str, width: int) -> str:
    """The cold function: reduces every lane of a vector, wherever |lane| >= MODERATE (other lanes give unused values)."""
    fmt, vector, integers = FORMATS[elem], Type(elem, width), Type(FORMATS[elem].integer, width)
    lane = "%x" if width == 1 else f"extractelement {vector} %x, i32 %k"
    result = f"{{ {vector}, {vector}, {integers} }}"
    widen = "fpext float %lane to double" if elem == "float" else "fadd double %lane, 0.0"
    head = f"define internal {result} {symbol(LARGE_REDUCTION, elem, width)}({vector} %x) noinline cold nounwind {{\n"
    if elem == "float":
        narrow = [
            "  %high = fptrunc double %high.d to float",
            "  %low = fadd float 0.0, 0.0",
            "  %n = trunc i64 %n.d to i32",
        ]
    else:
        narrow = ["  %high = fadd double %high.d, 0.0", "  %low = fadd double %low.d, 0.0", "  %n = add i64 %n.d, 0"]
    core = [
        f"  %wide = {widen}",
        "  %r = call { double, double, i64 } @catena.payne_hanek.f64(double %wide)",
        "  %high.d = extractvalue { double, double, i64 } %r, 0",
        "  %low.d = extractvalue { double, double, i64 } %r, 1",
        "  %n.d = extractvalue { double, double, i64 } %r, 2",
        *narrow,
    ]
    if width == 1:
        core[0] = core[0].replace("%lane", "%x")
        return head + "\n".join(["entry:", *core, *_pack(result, [elem, elem, fmt.integer], "")]) + "\n}\n"
    inserts = [
        f"  %{name}.out = insertelement {type_} %{name}.in, {type_.elem} %{name}, i32 %k"
        for name, type_ in [("high", vector), ("low", vector), ("n", integers)]
    ]
    lines = [
        "entry:", "  br label %loop", "loop:",
        "  %k = phi i32 [ 0, %entry ], [ %next, %loop ]",
        f"  %high.in = phi {vector} [ zeroinitializer, %entry ], [ %high.out, %loop ]",
        f"  %low.in = phi {vector} [ zeroinitializer, %entry ], [ %low.out, %loop ]",
        f"  %n.in = phi {integers} [ zeroinitializer, %entry ], [ %n.out, %loop ]",
        f"  %lane = {lane}", *core, *inserts,
        "  %next = add i32 %k, 1",
        f"  %more = icmp ult i32 %next, {width}",
        "  br i1 %more, label %loop, label %done", "done:",
        *_pack(result, [vector, vector, integers], ".out"),
    ]
    return head + "\n".join(lines) + "\n}\n"


def _pack(result: str, types: list, suffix: str) -> list[str]:
    names = [f"%{name}{suffix}" for name in ("high", "low", "n")]
    return [
        f"  %pack0 = insertvalue {result} poison, {types[0]} {names[0]}, 0",
        f"  %pack1 = insertvalue {result} %pack0, {types[1]} {names[1]}, 1",
        f"  %pack2 = insertvalue {result} %pack1, {types[2]} {names[2]}, 2",
        f"  ret {result} %pack2",
    ]


# The table is stored last byte first, behind 40 zero bits, so that a little-endian load of 24 bytes is a window of 2/pi.
WINDOW_BYTES = 24
PADDED_BYTES = TWO_OVER_PI_BITS // 8 + 5


def payne_hanek() -> str:
    """The scalar reduction of a double with |x| >= 2^15, as text.

    |x| = m 2^E with a 53-bit integer m. The bits of 2/pi whose product with 2^E is a multiple of 4 cannot matter; the next
    192 are the window W, and m W mod 2^192 is |x| 2/pi mod 4 with 190 bits after the point, an error below 2^-125.
    """
    table = "".join(f"\\{byte:02X}" for byte in TWO_OVER_PI.to_bytes(PADDED_BYTES, "little"))
    high, low, _ = (literal(Type("double", 1), c) for c in HALF_PI["double"])
    return f"""
@catena.two_over_pi = private unnamed_addr constant [{PADDED_BYTES} x i8] c"{table}"

define internal {{ double, double, i64 }} @catena.payne_hanek.f64(double %x) noinline cold nounwind {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %biased = and i64 %shifted, 2047
  %is.special = icmp eq i64 %biased, 2047
  %at.least = call i64 @llvm.umax.i64(i64 %biased, i64 1038)
  %exponent = call i64 @llvm.umin.i64(i64 %at.least, i64 2046)
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %skip = sub i64 %exponent, 1037
  %byte = lshr i64 %skip, 3
  %extra = and i64 %skip, 7
  %m.shifted = shl i64 %m, %extra
  %m.wide = zext i64 %m.shifted to i192
  %offset = sub i64 {PADDED_BYTES - WINDOW_BYTES}, %byte
  %address = getelementptr i8, ptr @catena.two_over_pi, i64 %offset
  %window = load i192, ptr %address, align 1
  %turns = mul i192 %m.wide, %window
  %half = shl i192 1, 189
  %rounded = add i192 %turns, %half
  %quadrant.wide = lshr i192 %rounded, 190
  %quadrant = trunc i192 %quadrant.wide to i64
  %whole = shl i192 %quadrant.wide, 190
  %signed = sub i192 %turns, %whole
  %is.negative = icmp slt i192 %signed, 0
  %negated = sub i192 0, %signed
  %magnitude = select i1 %is.negative, i192 %negated, i192 %signed
  %zeros.wide = call i192 @llvm.ctlz.i192(i192 %magnitude, i1 false)
  %zeros = trunc i192 %zeros.wide to i64
  %normal = shl i192 %magnitude, %zeros.wide
  %top.wide = lshr i192 %normal, 139
  %top = trunc i192 %top.wide to i64
  %next.wide = lshr i192 %normal, 86
  %next.long = trunc i192 %next.wide to i64
  %next = and i64 %next.long, 9007199254740991
  %top.float = uitofp i64 %top to double
  %next.float = uitofp i64 %next to double
  %scale.exponent = sub i64 972, %zeros
  %scale.bits = shl i64 %scale.exponent, 52
  %scale = bitcast i64 %scale.bits to double
  %f.high = fmul double %top.float, %scale
  %next.scaled = fmul double %next.float, %scale
  %f.low = fmul double %next.scaled, 0x3CA0000000000000
  %p = fmul double %f.high, {high}
  %p.negative = fneg double %p
  %p.error = call double @llvm.fma.f64(double %f.high, double {high}, double %p.negative)
  %p.cross = call double @llvm.fma.f64(double %f.high, double {low}, double %p.error)
  %p.low = call double @llvm.fma.f64(double %f.low, double {high}, double %p.cross)
  %r.high = fadd double %p, %p.low
  %r.drop = fsub double %r.high, %p
  %r.low = fsub double %p.low, %r.drop
  %x.negative = icmp slt i64 %bits, 0
  %flip = xor i1 %x.negative, %is.negative
  %minus.high = fneg double %r.high
  %minus.low = fneg double %r.low
  %high.finite = select i1 %flip, double %minus.high, double %r.high
  %high = select i1 %is.special, double 0x7FF8000000000000, double %high.finite
  %low = select i1 %flip, double %minus.low, double %r.low
  %minus.quadrant = sub i64 0, %quadrant
  %n = select i1 %x.negative, i64 %minus.quadrant, i64 %quadrant
  %pack0 = insertvalue {{ double, double, i64 }} poison, double %high, 0
  %pack1 = insertvalue {{ double, double, i64 }} %pack0, double %low, 1
  %pack2 = insertvalue {{ double, double, i64 }} %pack1, i64 %n, 2
  ret {{ double, double, i64 }} %pack2
}}
"""


PAYNE_HANEK_DECLARES = frozenset({
    "declare double @llvm.fma.f64(double, double, double)",
    "declare i64 @llvm.umax.i64(i64, i64)",
    "declare i64 @llvm.umin.i64(i64, i64)",
    "declare i192 @llvm.ctlz.i192(i192, i1)",
})

