"""Sorting unsigned keys, as LLVM IR text: insertion for short rows, least-significant-digit radix for the others.

`catena_sort_u32(keys, spare, n)` sorts keys; `catena_argsort_u32(keys, spare, index, spare_index, n)` moves
32-bit indices along with them. Both are stable, and leave the result in the first arrays. A radix pass over a
digit in which all keys agree is skipped, so small ranges of integers cost few passes. (Knuth, The Art of
Computer Programming 3, 5.2.5) A function that `asks` has one more argument, a table as `interrupts` makes it, and asks
before each pass whether to go on; where not, it leaves the keys in some order.
"""

from __future__ import annotations

from functools import cache

SHORT = {
    8: 32,
    16: 32,
    32: 48,
    64: 64,
}  # keys of so many bits, up to which inserting them is quicker than counting digits


@cache
def define(bits: int, paired: bool, short: int | None = None, asks: bool = False, seldom: bool = False) -> str:
    """The definition of one sorting function, which inserts up to `short` keys (or `SHORT`), if not `seldom`."""
    if seldom:
        return _define_seldom(bits, paired)
    name = symbol(bits, paired, short, asks, seldom)
    extra = ", ptr noalias %index, ptr noalias %spare_index" if paired else ""
    ask = ", ptr %ask" if asks else ""
    return "\n".join(
        [
            f"define internal void @{name}(ptr noalias %keys, ptr noalias %spare{extra}, i64 %n{ask}) {{",
            "entry:",
            f"  %count = alloca [{256 * (bits // 8)} x i64], align 64",
            f"  %short = icmp sle i64 %n, {SHORT[bits] if short is None else short}",
            "  br i1 %short, label %insertion, label %radix",
            *_insertion(bits, paired),
            *_radix(bits, paired, asks),
            "}",
        ]
    )


def _define_seldom(bits: int, paired: bool) -> str:
    """The definition of a function that is seldom called, and for many keys: its passes are a loop, each counts its
    digits, and LLVM does not optimise it, which takes longer than most sorts. It takes twice to three times as long.
    """
    extra = ", ptr noalias %index, ptr noalias %spare_index" if paired else ""
    rows = ("%keys", "%spare", "%index", "%spare_index") if paired else ("%keys", "%spare", "%keys", "%spare")
    kept = ("from", "into", "xfrom", "xinto")
    now = tuple(f"%{name}_now" for name in kept)
    lines = [
        f"define internal void @{symbol(bits, paired, seldom=True)}(ptr noalias %keys, ptr noalias %spare{extra}, "
        "i64 %n) noinline optnone {",
        "entry:",
        "  %count = alloca [256 x i64], align 64",
        "  br label %digits",
        "digits:",
        "  %digit = phi i64 [ 0, %entry ], [ %digit_next, %next ]",
        *(f"  {each} = phi ptr [ {row}, %entry ], [ %{name}, %next ]" for each, name, row in zip(now, kept, rows)),
        "  %digit_bits = mul i64 %digit, 8",
        f"  %low_bit = {f'trunc i64 %digit_bits to i{bits}' if bits < 64 else 'add i64 %digit_bits, 0'}",
        "  call void @llvm.memset.p0.i64(ptr %count, i8 0, i64 2048, i1 false)",
        "  br label %tally",
        "tally:",
        "  %h = phi i64 [ 0, %digits ], [ %h_next, %tally ]",
        f"  %h_p = getelementptr i{bits}, ptr %from_now, i64 %h",
        f"  %h_key = load i{bits}, ptr %h_p",
        *_counted("h", "%h_key", bits, "%low_bit", 0),
        "  %h_next = add i64 %h, 1",
        "  %h_more = icmp slt i64 %h_next, %n",
        "  br i1 %h_more, label %tally, label %pass",
        *_pass(bits, paired, "", "next", now, "%low_bit", 0),
        "next:",
        "  %digit_next = add i64 %digit, 1",
        f"  %digit_more = icmp slt i64 %digit_next, {bits // 8}",
        "  br i1 %digit_more, label %digits, label %passed",
        "passed:",
        *_brought_back(bits, paired, "%from"),
        "}",
    ]
    return "\n".join(lines)


def symbol(bits: int, paired: bool, short: int | None = None, asks: bool = False, seldom: bool = False) -> str:
    name = f"catena_{'argsort' if paired else 'sort'}_u{bits}" + (f"_{short}" if short is not None else "")
    return name + "_asking" * asks + "_seldom" * seldom


def _insertion(bits: int, paired: bool) -> list[str]:
    t = f"i{bits}"
    load = ["  %ix_p = getelementptr i32, ptr %index, i64 %i", "  %ix = load i32, ptr %ix_p"] if paired else []
    move = (
        [
            "  %jx_p = getelementptr i32, ptr %index, i64 %j1",
            "  %jx = load i32, ptr %jx_p",
            "  %jy_p = getelementptr i32, ptr %index, i64 %j",
            "  store i32 %jx, ptr %jy_p",
        ]
        if paired
        else []
    )
    place = ["  %to_x = getelementptr i32, ptr %index, i64 %j", "  store i32 %ix, ptr %to_x"] if paired else []
    return [
        "insertion:",
        "  %some = icmp sgt i64 %n, 1",
        "  br i1 %some, label %outer, label %done",
        "outer:",
        "  %i = phi i64 [ 1, %insertion ], [ %i_next, %placed ]",
        f"  %key_p = getelementptr {t}, ptr %keys, i64 %i",
        f"  %key = load {t}, ptr %key_p",
        *load,
        "  br label %inner",
        "inner:",
        "  %j = phi i64 [ %i, %outer ], [ %j1, %shift ]",
        "  %at_start = icmp eq i64 %j, 0",
        "  br i1 %at_start, label %placed, label %compare",
        "compare:",
        "  %j1 = sub i64 %j, 1",
        f"  %left_p = getelementptr {t}, ptr %keys, i64 %j1",
        f"  %left = load {t}, ptr %left_p",
        f"  %greater = icmp ugt {t} %left, %key",
        "  br i1 %greater, label %shift, label %placed",
        "shift:",
        f"  %right_p = getelementptr {t}, ptr %keys, i64 %j",
        f"  store {t} %left, ptr %right_p",
        *move,
        "  br label %inner",
        "placed:",
        f"  %to = getelementptr {t}, ptr %keys, i64 %j",
        f"  store {t} %key, ptr %to",
        *place,
        "  %i_next = add i64 %i, 1",
        "  %more = icmp slt i64 %i_next, %n",
        "  br i1 %more, label %outer, label %done",
        "done:",
        "  ret void",
    ]


def _radix(bits: int, paired: bool, asks: bool) -> list[str]:
    t, passes = f"i{bits}", bits // 8
    first = [f"ask{p}" if asks else f"pass{p}" for p in range(passes)] + [f"pass{passes}"]  # where passes begin
    source = ("%keys", "%spare", "%index", "%spare_index") if paired else ("%keys", "%spare", "%keys", "%spare")
    lines = [
        "radix:",
        f"  call void @llvm.memset.p0.i64(ptr %count, i8 0, i64 {256 * passes * 8}, i1 false)",
        "  br label %tally",
        "tally:",
        "  %h = phi i64 [ 0, %radix ], [ %h_next, %tally ]",
        f"  %h_p = getelementptr {t}, ptr %keys, i64 %h",
        f"  %h_key = load {t}, ptr %h_p",
    ]
    for p in range(passes):
        lines += _counted(f"h{p}", "%h_key", bits, 8 * p, 256 * p)
    lines += [
        "  %h_next = add i64 %h, 1",
        "  %h_more = icmp slt i64 %h_next, %n",
        f"  br i1 %h_more, label %tally, label %{first[0]}",
    ]
    for p in range(passes):
        lines += _question(p) if asks else []
        lines += _pass(bits, paired, str(p), first[p + 1], source, 8 * p, 256 * p)
        source = _after_pass(str(p))
    return [*lines, f"pass{passes}:", *_brought_back(bits, paired, source[0])]


def _counted(name: str, key: str, bits: int, shift, base) -> list[str]:
    """One more key of its digit."""
    return [
        *_digit(name, key, bits, shift, base),
        f"  %{name}_c = load i64, ptr %{name}_slot",
        f"  %{name}_d = add i64 %{name}_c, 1",
        f"  store i64 %{name}_d, ptr %{name}_slot",
    ]


def _brought_back(bits: int, paired: bool, source: str) -> list[str]:
    """The end: keys that are elsewhere after the last pass are copied."""
    lines = [
        f"  %moved = icmp ne ptr {source}, %keys",
        "  br i1 %moved, label %back, label %done_radix",
        "back:",
        f"  %bytes = mul i64 %n, {bits // 8}",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %spare, i64 %bytes, i1 false)",
    ]
    if paired:
        lines += [
            "  %xbytes = mul i64 %n, 4",
            "  call void @llvm.memcpy.p0.p0.i64(ptr %index, ptr %spare_index, i64 %xbytes, i1 false)",
        ]
    return [*lines, "  br label %done_radix", "done_radix:", "  ret void"]


def _after_pass(p: str) -> tuple:
    """Where keys and indices are after a pass, and where they may go."""
    return f"%from{p}", f"%into{p}", f"%xfrom{p}", f"%xinto{p}"


def _digit(name: str, key: str, bits: int, shift, base) -> list[str]:
    """The address of the counter of the digit of a key that begins at bit `shift`; its counters begin at `base`."""
    t = f"i{bits}"
    lines = [f"  %{name}_s = lshr {t} {key}, {shift}"]
    if bits > 8:
        lines += [f"  %{name}_b = trunc {t} %{name}_s to i8", f"  %{name}_w = zext i8 %{name}_b to i64"]
    else:
        lines += [f"  %{name}_w = zext i8 %{name}_s to i64"]
    return [
        *lines,
        f"  %{name}_i = add i64 %{name}_w, {base}",
        f"  %{name}_slot = getelementptr i64, ptr %count, i64 %{name}_i",
    ]


def _question(p: int) -> list[str]:
    return [
        f"ask{p}:",
        f"  %question{p} = load ptr, ptr %ask",
        f"  %stop{p} = call i1 %question{p}(ptr %ask)",
        f"  br i1 %stop{p}, label %done_radix, label %pass{p}",
    ]


def _pass(bits: int, paired: bool, p: str, after: str, source: tuple, shift, base) -> list[str]:
    """Prefix sums of the counts, then every key to its place; skipped when one digit holds all keys. All names that a
    pass has end in `p`.
    """
    t, (a, b, xa, xb) = f"i{bits}", source
    move = (
        [
            f"  %mxp{p} = getelementptr i32, ptr {xa}, i64 %m{p}",
            f"  %mx{p} = load i32, ptr %mxp{p}",
            f"  %nxp{p} = getelementptr i32, ptr {xb}, i64 %at{p}",
            f"  store i32 %mx{p}, ptr %nxp{p}",
        ]
        if paired
        else []
    )
    return [
        f"pass{p}:",
        f"  %firstp{p} = getelementptr {t}, ptr {a}, i64 0",
        f"  %first{p} = load {t}, ptr %firstp{p}",
        *_digit(f"f{p}", f"%first{p}", bits, shift, base),
        f"  %fc{p} = load i64, ptr %f{p}_slot",
        f"  %same{p} = icmp eq i64 %fc{p}, %n",
        f"  br i1 %same{p}, label %end{p}, label %sums{p}",
        f"sums{p}:",
        f"  %d{p} = phi i64 [ 0, %pass{p} ], [ %d_next{p}, %sums{p} ]",
        f"  %total{p} = phi i64 [ 0, %pass{p} ], [ %total_next{p}, %sums{p} ]",
        f"  %di{p} = add i64 %d{p}, {base}",
        f"  %dp{p} = getelementptr i64, ptr %count, i64 %di{p}",
        f"  %dc{p} = load i64, ptr %dp{p}",
        f"  store i64 %total{p}, ptr %dp{p}",
        f"  %total_next{p} = add i64 %total{p}, %dc{p}",
        f"  %d_next{p} = add i64 %d{p}, 1",
        f"  %d_more{p} = icmp slt i64 %d_next{p}, 256",
        f"  br i1 %d_more{p}, label %sums{p}, label %spread{p}",
        f"spread{p}:",
        f"  %m{p} = phi i64 [ 0, %sums{p} ], [ %m_next{p}, %spread{p} ]",
        f"  %mp{p} = getelementptr {t}, ptr {a}, i64 %m{p}",
        f"  %mk{p} = load {t}, ptr %mp{p}",
        *_digit(f"g{p}", f"%mk{p}", bits, shift, base),
        f"  %at{p} = load i64, ptr %g{p}_slot",
        f"  %at_next{p} = add i64 %at{p}, 1",
        f"  store i64 %at_next{p}, ptr %g{p}_slot",
        f"  %np{p} = getelementptr {t}, ptr {b}, i64 %at{p}",
        f"  store {t} %mk{p}, ptr %np{p}",
        *move,
        f"  %m_next{p} = add i64 %m{p}, 1",
        f"  %m_more{p} = icmp slt i64 %m_next{p}, %n",
        f"  br i1 %m_more{p}, label %spread{p}, label %end{p}",
        f"end{p}:",
        f"  %from{p} = phi ptr [ {a}, %pass{p} ], [ {b}, %spread{p} ]",
        f"  %into{p} = phi ptr [ {b}, %pass{p} ], [ {a}, %spread{p} ]",
        f"  %xfrom{p} = phi ptr [ {xa}, %pass{p} ], [ {xb}, %spread{p} ]",
        f"  %xinto{p} = phi ptr [ {xb}, %pass{p} ], [ {xa}, %spread{p} ]",
        f"  br label %{after}",
    ]
