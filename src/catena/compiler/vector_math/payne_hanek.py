"""The reduction of large angles modulo pi/2 (Payne & Hanek, "Radian Reduction for Trigonometric Functions", 1983).

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
    return frozenset(
        {
            "declare double @llvm.fma.f64(double, double, double)",
            "declare i64 @llvm.umax.i64(i64, i64)",
            "declare i64 @llvm.umin.i64(i64, i64)",
        }
    )


def dependencies(elem: str, width: int) -> tuple[tuple[str, str, int], ...]:
    if width > 1:
        return ((NAME, elem, 1),)
    return () if elem == "double" else ((NAME, "double", 1),)


def vector_reduction(elem: str, width: int) -> str:
    """Every lane through the scalar function; the caller keeps those that are large."""
    vector, integers = Type(elem, width), Type(FORMATS[elem].integer, width)
    scalar = f"{{ {elem}, {elem}, {integers.elem} }}"
    result = f"{{ {vector}, {vector}, {integers} }}"
    fields = [vector, vector, integers]
    # One phi per field: LLVM takes twice as long over a phi of the whole structure.
    phis = [f"  %in.{k} = phi {t} [ zeroinitializer, %entry ], [ %out.{k}, %loop ]" for k, t in enumerate(fields)]
    sets = [
        f"  %r.{k} = extractvalue {scalar} %r, {k}\n  %out.{k} = insertelement {t} %in.{k}, {t.elem} %r.{k}, i32 %lane"
        for k, t in enumerate(fields)
    ]
    return f"""
define internal {result} {symbol(NAME, elem, width)}({vector} %x) noinline cold nounwind {{
entry:
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %next, %loop ]
{chr(10).join(phis)}
  %x.lane = extractelement {vector} %x, i32 %lane
  %r = call {scalar} {symbol(NAME, elem, 1)}({elem} %x.lane)
{chr(10).join(sets)}
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, {width}
  br i1 %more, label %loop, label %done
done:
  %pack.0 = insertvalue {result} poison, {vector} %out.0, 0
  %pack.1 = insertvalue {result} %pack.0, {vector} %out.1, 1
  %pack.2 = insertvalue {result} %pack.1, {integers} %out.2, 2
  ret {result} %pack.2
}}
"""


def two_to(exponent: int) -> str:
    return literal(Type("double", 1), 2.0**exponent)


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
  %m.wide = zext i64 %m.shifted to i128
  %offset = sub i64 {PADDED_BYTES - WINDOW_BYTES}, %byte
  %address.0 = getelementptr i8, ptr @catena.two_over_pi, i64 %offset
  %address.1 = getelementptr i8, ptr %address.0, i64 8
  %address.2 = getelementptr i8, ptr %address.0, i64 16
  %w.0 = load i64, ptr %address.0, align 1
  %w.1 = load i64, ptr %address.1, align 1
  %w.2 = load i64, ptr %address.2, align 1
  %w.0.wide = zext i64 %w.0 to i128
  %w.1.wide = zext i64 %w.1 to i128
  %product.0 = mul i128 %m.wide, %w.0.wide
  %product.1 = mul i128 %m.wide, %w.1.wide
  %product.2 = mul i64 %m.shifted, %w.2
  %carry = lshr i128 %product.0, 64
  %top.word = zext i64 %product.2 to i128
  %top = shl i128 %top.word, 64
  %middle = add i128 %product.1, %carry
  %turns = add i128 %top, %middle
  %half = shl i128 1, 125
  %rounded = add i128 %turns, %half
  %quadrant.wide = lshr i128 %rounded, 126
  %quadrant = trunc i128 %quadrant.wide to i64
  %whole = shl i128 %quadrant.wide, 126
  %f = sub i128 %turns, %whole
  %f.top.wide = ashr i128 %f, 75
  %f.top = trunc i128 %f.top.wide to i64
  %f.next.wide = lshr i128 %f, 11
  %f.next = trunc i128 %f.next.wide to i64
  %f.top.float = sitofp i64 %f.top to double
  %f.next.float = uitofp i64 %f.next to double
  %f.high = fmul double %f.top.float, {two_to(-51)}
  %f.low = fmul double %f.next.float, {two_to(-115)}
  %p = fmul double %f.high, {high}
  %p.negative = fneg double %p
  %p.error = call double @llvm.fma.f64(double %f.high, double {high}, double %p.negative)
  %p.cross = call double @llvm.fma.f64(double %f.high, double {low}, double %p.error)
  %p.low = call double @llvm.fma.f64(double %f.low, double {high}, double %p.cross)
  %r.high = fadd double %p, %p.low
  %r.drop = fsub double %r.high, %p
  %r.low = fsub double %p.low, %r.drop
  %x.negative = icmp slt i64 %bits, 0
  %minus.high = fneg double %r.high
  %minus.low = fneg double %r.low
  %high.finite = select i1 %x.negative, double %minus.high, double %r.high
  %high = select i1 %is.special, double 0x7FF8000000000000, double %high.finite
  %low = select i1 %x.negative, double %minus.low, double %r.low
  %minus.quadrant = sub i64 0, %quadrant
  %n = select i1 %x.negative, i64 %minus.quadrant, i64 %quadrant
  %pack0 = insertvalue {{ double, double, i64 }} poison, double %high, 0
  %pack1 = insertvalue {{ double, double, i64 }} %pack0, double %low, 1
  %pack2 = insertvalue {{ double, double, i64 }} %pack1, i64 %n, 2
  ret {{ double, double, i64 }} %pack2
}}
"""
