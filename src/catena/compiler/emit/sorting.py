"""Sorting unsigned keys, as LLVM IR text: insertion for short rows, least-significant-digit radix for the others.

`catena_sort_u32(keys, spare, n)` sorts keys; `catena_argsort_u32(keys, spare, index, spare_index, n)` moves
32-bit indices along with them. Both are stable, and leave the result in the first arrays. A radix pass over a
digit in which all keys agree is skipped, so small ranges of integers cost few passes. (Knuth, The Art of
Computer Programming 3, 5.2.5) A function that `asks` has one more argument, a table as `interrupts` makes it, and asks
before each pass whether to go on; where not, it leaves the keys in some order.
"""

from __future__ import annotations

from functools import cache

SHORT = 32


@cache
def define(bits: int, paired: bool, short: int = SHORT, asks: bool = False) -> str:
    """The definition of one sorting function, which inserts up to `short` keys."""
    name = symbol(bits, paired, short, asks)
    extra = ", ptr noalias %index, ptr noalias %spare_index" if paired else ""
    ask = ", ptr %ask" if asks else ""
    return "\n".join(
        [
            f"define internal void @{name}(ptr noalias %keys, ptr noalias %spare{extra}, i64 %n{ask}) {{",
            "entry:",
            f"  %count = alloca [{256 * (bits // 8)} x i64], align 64",
            f"  %short = icmp sle i64 %n, {short}",
            "  br i1 %short, label %insertion, label %radix",
            *_insertion(bits, paired),
            *_radix(bits, paired, asks),
            "}",
        ]
    )


def symbol(bits: int, paired: bool, short: int = SHORT, asks: bool = False) -> str:
    name = f"catena_{'argsort' if paired else 'sort'}_u{bits}" + (f"_{short}" if short != SHORT else "")
    return name + "_asking" if asks else name


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
    """All digits are counted in one pass over the keys, and then the passes are a loop: from the lowest digit on."""
    t, passes = f"i{bits}", bits // 8
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
        lines += [
            *_digit(f"h{p}", "%h_key", bits, 8 * p, 256 * p),
            f"  %h{p}_c = load i64, ptr %h{p}_slot",
            f"  %h{p}_d = add i64 %h{p}_c, 1",
            f"  store i64 %h{p}_d, ptr %h{p}_slot",
        ]
    first = "ask" if asks else "pass"
    arrays = [("", "%keys", "%spare"), ("x", "%index", "%spare_index")][: 1 + paired]
    lines += [
        "  %h_next = add i64 %h, 1",
        "  %h_more = icmp slt i64 %h_next, %n",
        "  br i1 %h_more, label %tally, label %begin",
        "begin:",
        "  %p = phi i64 [ 0, %tally ], [ %p_next, %end ]",
        *(f"  %{x}from = phi ptr [ {row}, %tally ], [ %{x}from_next, %end ]" for x, row, _ in arrays),
        *(f"  %{x}into = phi ptr [ {row}, %tally ], [ %{x}into_next, %end ]" for x, _, row in arrays),
        "  %p_bits = mul i64 %p, 8",
        "  %low_bit = " + (f"trunc i64 %p_bits to {t}" if bits < 64 else "add i64 %p_bits, 0"),
        "  %base = mul i64 %p, 256",
        f"  br label %{first}",
        *(_question() if asks else []),
        *_pass(bits, [x for x, *_ in arrays]),
        "  %p_next = add i64 %p, 1",
        f"  %p_more = icmp slt i64 %p_next, {passes}",
        "  br i1 %p_more, label %begin, label %last",
        "last:",
        "  %moved = icmp ne ptr %from_next, %keys",
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


def _question() -> list[str]:
    return [
        "ask:",
        "  %question = load ptr, ptr %ask",
        "  %stop = call i1 %question(ptr %ask)",
        "  br i1 %stop, label %done_radix, label %pass",
    ]


def _pass(bits: int, arrays: list[str]) -> list[str]:
    """Prefix sums of the counts, then every key to its place; skipped when one digit holds all keys."""
    t = f"i{bits}"
    move = [
        "  %mxp = getelementptr i32, ptr %xfrom, i64 %m",
        "  %mx = load i32, ptr %mxp",
        "  %nxp = getelementptr i32, ptr %xinto, i64 %at",
        "  store i32 %mx, ptr %nxp",
    ]
    return [
        "pass:",
        f"  %first = load {t}, ptr %from",
        *_digit("f", "%first", bits, "%low_bit", "%base"),
        "  %fc = load i64, ptr %f_slot",
        "  %same = icmp eq i64 %fc, %n",
        "  br i1 %same, label %end, label %sums",
        "sums:",
        "  %d = phi i64 [ 0, %pass ], [ %d_next, %sums ]",
        "  %total = phi i64 [ 0, %pass ], [ %total_next, %sums ]",
        "  %di = add i64 %d, %base",
        "  %dp = getelementptr i64, ptr %count, i64 %di",
        "  %dc = load i64, ptr %dp",
        "  store i64 %total, ptr %dp",
        "  %total_next = add i64 %total, %dc",
        "  %d_next = add i64 %d, 1",
        "  %d_more = icmp slt i64 %d_next, 256",
        "  br i1 %d_more, label %sums, label %spread",
        "spread:",
        "  %m = phi i64 [ 0, %sums ], [ %m_next, %spread ]",
        f"  %mp = getelementptr {t}, ptr %from, i64 %m",
        f"  %mk = load {t}, ptr %mp",
        *_digit("g", "%mk", bits, "%low_bit", "%base"),
        "  %at = load i64, ptr %g_slot",
        "  %at_next = add i64 %at, 1",
        "  store i64 %at_next, ptr %g_slot",
        f"  %np = getelementptr {t}, ptr %into, i64 %at",
        f"  store {t} %mk, ptr %np",
        *(move if len(arrays) > 1 else []),
        "  %m_next = add i64 %m, 1",
        "  %m_more = icmp slt i64 %m_next, %n",
        "  br i1 %m_more, label %spread, label %end",
        "end:",
        *(f"  %{x}from_next = phi ptr [ %{x}from, %pass ], [ %{x}into, %spread ]" for x in arrays),
        *(f"  %{x}into_next = phi ptr [ %{x}into, %pass ], [ %{x}from, %spread ]" for x in arrays),
    ]
