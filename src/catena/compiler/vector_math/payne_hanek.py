"""The reduction of large angles modulo pi/2 (Payne & Hanek, "Radian Reduction for Trigonometric Functions",
1983).

Cold functions in hand-written LLVM IR, returning { r, the rounding error of r, n }: one for a double, one for
a float through it, and a loop over the lanes of a vector.
"""

from .constants import HALF_PI, TWO_OVER_PI, TWO_OVER_PI_BITS
from .text import FORMATS, Type, literal, symbol

NAME = "pi_reduction_large"

# 2/pi is stored last byte first, behind 40 zero bits, so that a little-endian load of 24 bytes is a window
# of it.
WINDOW_BYTES = 24
PADDED_BYTES = TWO_OVER_PI_BITS // 8 + 5


def definition(elem: str, width: int) -> str:
    if width > 1:
        return vector_reduction(elem, width)
    return double_reduction() if elem == "double" else float_reduction()


def declarations(elem: str, width: int) -> frozenset[str]:
    if (elem, width) != ("double", 1):
        return frozenset()
    return frozenset({
        "declare double @llvm.fma.f64(double, double, double)",
        "declare i64 @llvm.umax.i64(i64, i64)",
        "declare i64 @llvm.umin.i64(i64, i64)",
        "declare i192 @llvm.ctlz.i192(i192, i1)",
    })


def dependencies(elem: str, width: int) -> tuple[tuple[str, str, int], ...]:
    if width > 1:
        return ((NAME, elem, 1),)
    return () if elem == "double" else ((NAME, "double", 1),)


def vector_reduction(elem: str, width: int) -> str:
    """Every lane through the scalar function; the caller keeps those that are large."""
    vector, integers = Type(elem, width), Type(FORMATS[elem].integer, width)
    scalar = f"{{ {elem}, {elem}, {integers.elem} }}"
    result = f"{{ {vector}, {vector}, {integers} }}"
    return f"""
define internal {result} {symbol(NAME, elem, width)}({vector} %x) noinline cold nounwind {{
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %packed = phi {result} [ zeroinitializer, %entry ], [ %packed.out, %loop ]
  %lane = extractelement {vector} %x, i32 %k
  %r = call {scalar} {symbol(NAME, elem, 1)}({elem} %lane)
{_insert_lane(result, scalar, vector, 0, "packed", "packed.0")}
{_insert_lane(result, scalar, vector, 1, "packed.0", "packed.1")}
{_insert_lane(result, scalar, integers, 2, "packed.1", "packed.out")}
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, {width}
  br i1 %more, label %loop, label %done
done:
  ret {result} %packed.out
}}
"""


def _insert_lane(result: str, scalar: str, vector: Type, field: int, before: str, after: str) -> str:
    return f"""  %value.{field} = extractvalue {scalar} %r, {field}
  %field.{field} = extractvalue {result} %{before}, {field}
  %set.{field} = insertelement {vector} %field.{field}, {vector.elem} %value.{field}, i32 %k
  %{after} = insertvalue {result} %{before}, {vector} %set.{field}, {field}"""


def float_reduction() -> str:
    return f"""
define internal {{ float, float, i32 }} {symbol(NAME, "float", 1)}(float %x) noinline cold nounwind {{
  %wide = fpext float %x to double
  %r = call {{ double, double, i64 }} {symbol(NAME, "double", 1)}(double %wide)
  %r.wide = extractvalue {{ double, double, i64 }} %r, 0
  %n.wide = extractvalue {{ double, double, i64 }} %r, 2
  %high = fptrunc double %r.wide to float
  %high.wide = fpext float %high to double
  %low.wide = fsub double %r.wide, %high.wide
  %low = fptrunc double %low.wide to float
  %n = trunc i64 %n.wide to i32
  %pack0 = insertvalue {{ float, float, i32 }} poison, float %high, 0
  %pack1 = insertvalue {{ float, float, i32 }} %pack0, float %low, 1
  %pack2 = insertvalue {{ float, float, i32 }} %pack1, i32 %n, 2
  ret {{ float, float, i32 }} %pack2
}}
"""


def double_reduction() -> str:
    """|x| = m 2^E with a 53-bit integer m, for |x| >= 2^15.

    The bits of 2/pi whose product with 2^E is a multiple of 4 cannot matter; the next 192 are the window W,
    and m W mod 2^192 is |x| 2/pi mod 4 with 190 bits after the point, an error below 2^-125.
    """
    table = "".join(f"\\{byte:02X}" for byte in TWO_OVER_PI.to_bytes(PADDED_BYTES, "little"))
    high, low, _ = (literal(Type("double", 1), c) for c in HALF_PI["double"])
    name = symbol(NAME, "double", 1)
    return f"""
@catena.two_over_pi = private unnamed_addr constant [{PADDED_BYTES} x i8] c"{table}"

define internal {{ double, double, i64 }} {name}(double %x) noinline cold nounwind {{
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
