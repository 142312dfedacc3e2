"""Elements that lie a few apart, read by whole vectors and shuffles, or of words, not one by one; and neighbours."""

from __future__ import annotations

from catena.compiler.emit import masks
from catena.compiler.graph.types import TYPES, Type, vector

IN_PARTS = frozenset(["float", "double", "i32", "i64"])  # of bytes, LLVM makes less of the parts
WORD, WORDS = 4, 64  # bytes that instructions gather at least, and of vectors of so many that this is quick
FARTHEST = 1 << 24  # elements from one lane to the next of those whose places have 32 bits
EACH = 32  # bytes of a vector up to which loads one by one take no longer than a gather does


def neighbours(e, memory: str, pointer: str, width: int, align: int, whole: bool = False) -> str:
    """`width` neighbours, in parts of as many as are a power of two.

    A vector of three lanes is one of four in registers, and where LLVM knows of an address that it may, it reads four.
    The last one is whatever lies there, such as a part of an address, which is a subnormal number, with which a product
    takes 150 cycles. And what was written in two parts would be read in one, which waits until both are in the cache.

    All are read where `whole` is asked for, whatever lanes a choice takes. LLVM would read those alone: where that is
    none, of memory that nobody has touched lately, a processor takes a hundred cycles, and it stays untouched.
    """
    first = 1 << (width.bit_length() - 1)
    if first == width or memory not in IN_PARTS:
        return e.op(f"load{' volatile' * whole} <{width} x {memory}>, ptr {pointer}, align {align}")
    rest, v = width - first, f"<{first} x {memory}>"
    low = neighbours(e, memory, pointer, first, align, whole)
    high = neighbours(e, memory, e.element(pointer, memory, first), rest, align, whole)
    high = e.op(f"shufflevector <{rest} x {memory}> {high}, <{rest} x {memory}> poison, {_order(rest, first)}")
    return e.op(f"shufflevector {v} {low}, {v} {high}, {_order(width, width)}")


def _order(count: int, width: int) -> str:
    """The first `count` lanes, in the mask of a shuffle to `width`."""
    return f"<{width} x i32> <" + ", ".join(f"i32 {k}" if k < count else "i32 poison" for k in range(width)) + ">"


def load(e, t: Type, pointer: str, width: int, stride: int) -> str:
    """`width` elements `stride` apart, raw: a shuffle takes what each vector has; nothing behind the last is read."""
    v, out = vector(t.memory, width), "poison"
    for start in range(0, stride * width, width):
        here = {k: stride * k - start for k in range(width) if start <= stride * k < start + width}
        if not here:
            continue
        last = start + width > stride * (width - 1)
        mask = masks.constant(k <= max(here.values()) for k in range(width)) if last else None
        part = e.load_raw(t, e.element(pointer, t.memory, start), width, 1, mask)
        order = ", ".join(f"i32 {width + here[k] if k in here else k}" for k in range(width))
        out = e.op(f"shufflevector {v} {out}, {v} {part}, <{width} x i32> <{order}>")
    return out


def load_apart(e, t: Type, pointer: str, width: int, stride: int, mask: str | None) -> str | None:
    """Elements so far apart that each is an access, if that is better done without a gather of them."""
    if mask is None and t.bytes * width <= EACH:
        return load_each(e, t, pointer, width, stride)
    if t.bytes < WORD and width * WORD >= WORDS and abs(stride) <= FARTHEST:
        places = e.op(f"trunc {vector('i64', width)} {e.multiples(width, stride)} to {vector('i32', width)}")
        return of_words(e, t, pointer, places, width, mask)
    return None


def load_each(e, t: Type, pointer: str, width: int, stride: int) -> str:
    """`width` elements so far apart that each is an access: a gather would take places apart that are known here."""
    out, told = "poison", e.size(stride)
    for k in range(width):
        step = stride * k if told is stride or k == 0 else told if k == 1 else e.op(f"mul nsw i64 {told}, {k}")
        x = e.op(f"load {t.memory}, ptr {e.element(pointer, t.memory, step)}, align {t.bytes}")
        out = e.op(f"insertelement {vector(t.memory, width)} {out}, {t.memory} {x}, i64 {k}")
    return out


def of_words(e, t: Type, pointer: str, places: str, width: int, mask: str | None) -> str:
    """Elements of one or two bytes, raw, at places of 32 bits: of words that hold them, which are whole in a page."""
    each, integers = WORD // t.bytes, vector("i32", width)
    start = e.op(f"call ptr @llvm.ptrmask.p0.i64(ptr {pointer}, i64 {-WORD})")
    ahead = e.op(f"sub i64 {e.op(f'ptrtoint ptr {pointer} to i64')}, {e.op(f'ptrtoint ptr {start} to i64')}")
    ahead = e.op(f"sub i64 {e.op(f'lshr i64 {ahead}, {t.bytes - 1}')}, {each}")  # of the word behind: nothing overflows
    places = e.op(f"add {integers} {places}, {e.splat(e.op(f'trunc i64 {ahead} to i32'), 'i32', width)}")
    word = e.op(f"ashr {integers} {places}, splat (i32 {each.bit_length() - 1})")
    words = e.op(f"getelementptr i32, ptr {e.element(start, 'i32', 1)}, {integers} {word}")
    raw = e.gather(TYPES["int32"], words, width, mask)
    part = e.op(f"and {integers} {places}, splat (i32 {each - 1})")
    shifted = e.op(f"lshr {integers} {raw}, {e.op(f'mul {integers} {part}, splat (i32 {8 * t.bytes})')}")
    narrow = vector(f"i{8 * t.bytes}", width)
    bits = e.op(f"trunc {integers} {shifted} to {narrow}")
    return bits if t.memory == f"i{8 * t.bytes}" else e.op(f"bitcast {narrow} {bits} to {vector(t.memory, width)}")


def mask_of_every_second(e, mask: str, start: int, width: int) -> str:
    """For `width` neighbours from `start` on, the mask of those that are at even places; the others are off."""
    v = vector("i1", width)
    places = [n // 2 if n % 2 == 0 else width for n in range(start, start + width)]
    order = ", ".join(f"i32 {k}" for k in places)
    return e.op(f"shufflevector {v} {mask}, {v} zeroinitializer, <{width} x i32> <{order}>")


def load_every_second(e, t: Type, pointer: str, width: int, mask: str | None) -> str:
    """`width` elements 2 apart, such as one part of complex numbers: two vectors that overlap by an element,
    so that nothing behind the last one is read, and one shuffle; a gather would take an access an element.
    """
    v, halves = vector(t.memory, width), []
    for start in (0, width - 1):
        part = None if mask is None else mask_of_every_second(e, mask, start, width)
        halves.append(e.load_raw(t, e.element(pointer, t.memory, start), width, 1, part))
    order = ", ".join(f"i32 {k if k < width else k + 1}" for k in range(0, 2 * width, 2))
    return e.op(f"shufflevector {v} {halves[0]}, {v} {halves[1]}, <{width} x i32> <{order}>")


def store_every_second(e, t: Type, raw: str, pointer: str, width: int) -> None:
    """The reverse, by two masked stores; what lies between is not written."""
    v, written = vector(t.memory, width), 0
    for offset in (0, width - 1):
        lanes = {2 * j - offset: j for j in range(written, width) if 2 * j - offset < width}
        written += len(lanes)
        places = ", ".join(f"i32 {lanes.get(k, 'poison')}" for k in range(width))
        spread = e.op(f"shufflevector {v} {raw}, {v} poison, <{width} x i32> <{places}>")
        mask = masks.constant(k in lanes for k in range(width))
        e.store_raw(t, spread, e.element(pointer, t.memory, offset), width, mask)
