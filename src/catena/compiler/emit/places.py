"""Loads of several copies of a body at the same computed places: columns that an index vector tells, of several rows.

Where the places lie within a vector or two of a row, this is read, and its lanes are chosen, by one instruction of x86
processors since 2013. Otherwise the places are taken apart once, and elements are read one by one, which takes half the
time of gathers, each of which takes its places apart; where lanes are off, a gather is used.
"""

from __future__ import annotations

from catena.compiler.emit import strided
from catena.compiler.emit.branches import either
from catena.compiler.emit.masks import constant, every_lane
from catena.compiler.emit.sizes import is_size
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.graph.varying import varies
from catena.compiler.kernels.places import limits, table


def read(body, i: int, s, copies) -> None:
    """Writes load `s`, statement `i`, for copies that read at the same places of each."""
    t = TYPES[s.attr[1]]
    if (within := _within(body, i, s, t)) is not None:
        for c in copies:
            c.env[i] = _chosen(body, i, s, c, *within)
        return
    if not s.args:
        parts = _one_by_one(body, i, s, copies)
    else:
        mask = body.use(s.args[0], copies[0])
        parts = either(
            body.e,
            every_lane(body.e, mask, body.width),
            vector(t.memory, body.width),
            lambda: _one_by_one(body, i, s, copies),
            lambda: [_gathered(body, i, s, c, mask) for c in copies],
        )
    for c, raw in zip(copies, parts, strict=True):
        c.env[i] = body.e.widen(raw, t, body.width)


def _place(body, offset) -> tuple[int, int]:
    """The statement that tells the places of lanes, and by how much it counts."""
    ((t, k),) = [(t, k) for t, k in offset[2] if body.is_lanes(t)]
    return t, k


def _gathered(body, i: int, s, c, mask: str) -> str:
    t = TYPES[s.attr[1]]
    return body.e.gather(t, body.address(i, t.memory, s.attr[2], c, body.width)[0], body.width, mask)


def _one_by_one(body, i: int, s, copies) -> list[str]:
    e, memory, offset = body.e, TYPES[s.attr[1]].memory, s.attr[2]
    t, k = _place(body, offset)
    own, short = body.layout.coefficient(i, body.nest.vector), body.short_places(t, copies[0])
    lanes, type_ = (short, "i32") if short is not None else (copies[0].env[t], "i64")
    places = []
    for lane in range(body.width):
        x = e.op(f"extractelement <{body.width} x {type_}> {lanes}, i64 {lane}")
        x = e.op(f"sext i32 {x} to i64") if short is not None else x
        x = e.op(f"mul nsw i64 {x}, {k}") if k != 1 else x
        places.append(e.op(f"add nsw i64 {x}, {own * lane}") if own * lane else x)
    v, out = vector(memory, body.width), []
    for c in copies:
        pointer, whole = body.start_of(i, memory, offset, c)[0], "poison"
        for lane, at in enumerate(places):
            x = e.op(f"load {memory}, ptr {e.element(pointer, memory, at)}")
            whole = e.op(f"insertelement {v} {whole}, {memory} {x}, i64 {lane}")
        out.append(whole)
    return out


def from_words(body, i: int, s, c, mask: str | None) -> str | None:
    """Elements of one or two bytes, of the words that hold them, which are whole in a page; None for other loads, and
    where places are of 64 bits, of which an instruction gathers half as many.
    """
    e, t, width, offset = body.e, TYPES[s.attr[1]], body.width, s.attr[2]
    if t.bytes >= strided.WORD or width * strided.WORD != strided.WORDS or body.guard is not None:
        return None
    terms = [term for term in offset[2] if body.is_lanes(term[0])]
    if len(terms) != 1 or terms[0][1] != 1 or body.layout.coefficient(i, body.nest.vector):
        return None
    if (short := body.short_places(terms[0][0], c)) is None:
        return None
    pointer, _ = body.start_of(i, t.memory, offset, c)
    return e.widen(strided.of_words(e, t, pointer, short, width, mask), t, width)


# ---- lanes that are chosen -----------------------------------------------------------------------------------

LANES, FIRST = 19, 20  # roles of numbers in a table
CHOICES = {  # bytes of a vector and type of its lanes -> what chooses among those of one, and among those of two
    (64, "float"): ("avx512.permvar.sf.512", "avx512.vpermi2var.ps.512"),
    (64, "i32"): ("avx512.permvar.si.512", "avx512.vpermi2var.d.512"),
    (64, "double"): ("avx512.permvar.df.512", "avx512.vpermi2var.pd.512"),
    (64, "i64"): ("avx512.permvar.di.512", "avx512.vpermi2var.q.512"),
    (64, "i16"): ("avx512.permvar.hi.512", "avx512.vpermi2var.hi.512"),
    (64, "i8"): ("avx512.permvar.qi.512", "avx512.vpermi2var.qi.512"),
    (32, "float"): ("avx2.permps", None),
    (32, "i32"): ("avx2.permd", None),
}


def _within(body, i: int, s, t: Type) -> tuple[int, int] | None:
    """The bounds of the places that lanes read, where two vectors hold all that lies between."""
    place, k = _place(body, s.attr[2])
    bounds, alone = limits(body.nest, place, s.args[0] if s.args else -1)
    if bounds is None or not alone or k != 1 or body.layout.coefficient(i, body.nest.vector):
        return None
    size, least = body.nest.together.chooses, body.nest.together.least
    fits = t.bytes >= least and (size, t.memory) in CHOICES and bounds[1] - bounds[0] < 2 * _lanes(size, t.memory)
    return bounds if fits else None


def looked_up(body, i: int, s, c) -> str | None:
    """Lanes of a small table (see `kernels.places.table`); None for other loads."""
    together = body.nest.together
    if together is None or together.what != "tables" or body.guard is not None:
        return None
    within = table(body.nest, s, together.chooses, together.least)
    return None if within is None else _chosen(body, i, s, c, *within)


def _chosen(body, i: int, s, c, low: int, high: int) -> str:
    """The lanes that places tell of all that lies between their bounds."""
    e, t, size = body.e, TYPES[s.attr[1]], body.nest.together.chooses
    pointer, ((place, _),) = body.start_of(i, t.memory, s.attr[2], c)
    element = "i16" if t.memory == "half" else t.memory
    lanes, vectors = _lanes(size, element), []
    many, hangs = range(-(-(high + 1 - low) // lanes)), e.sizes is not None and is_size(low)
    ends = hangs or e.sizes is not None and varies(high)
    for k in many:
        start, mask = low + k * lanes, None
        if k + 1 == len(many) and (ends or high - start < lanes - 1):
            mask = _first_lanes(e, high + 1 - start, lanes, ends)
        raw = e.load_raw(t, e.element(pointer, t.memory, e.size(start) if hangs else start), lanes, 1, mask)
        vectors.append(_as(e, raw, t.memory, element, lanes))
    short = body.short_places(place, c)
    type_, x = ("i32", short) if short is not None else ("i64", c.env[place])
    found = choose(e, vectors, element, (type_, x, low), body.width, size)
    return e.widen(_as(e, found, element, t.memory, body.width), t, body.width)


def _first_lanes(e, count: int, lanes: int, hangs: bool) -> str:
    """The mask of so many lanes, which the text does not tell where it `hangs` on an extent."""
    if not hangs:
        return constant(n < count for n in range(lanes))
    order = ", ".join(f"i32 {n}" for n in range(lanes))
    return e.op(f"icmp ult <{lanes} x i32> <{order}>, {e.splat(e.sizes.named('i32', count, LANES), 'i32', lanes)}")


def _as(e, x: str, source: str, target: str, width: int) -> str:
    """The same bits."""
    return x if source == target else e.op(f"bitcast {vector(source, width)} {x} to {vector(target, width)}")


_BITS = {"double": 64, "float": 32}


def _bits_of(element: str) -> int:
    return _BITS.get(element) or int(element[1:])


def _lanes(size: int, element: str) -> int:
    return size * 8 // _bits_of(element)


def choose(e, vectors: list[str], element: str, places: tuple[str, str, int], width: int, size: int) -> str:
    """The elements of up to four vectors of `size` bytes at the places that `width` lanes hold: these are their type,
    their name, and the place that the first element has.
    """
    type_, x, first = places
    bits, count = _bits_of(element), _lanes(size, element)
    if type_ != f"i{bits}":
        x = e.op(f"{'sext' if bits == 64 else 'trunc'} <{width} x {type_}> {x} to <{width} x i{bits}>")
    half = 1 << bits - 1
    if first:
        wrapped = (first + half) % (2 * half) - half
        by = e.sizes.named(f"i{bits}", wrapped, FIRST) if e.sizes is not None and is_size(first) else wrapped
        x = e.op(f"sub <{width} x i{bits}> {x}, {e.splat(str(by), f'i{bits}', width)}")
    if width < count:
        order = ", ".join(f"i32 {min(k, width - 1)}" for k in range(count))
        x = e.op(f"shufflevector <{width} x i{bits}> {x}, <{width} x i{bits}> poison, <{count} x i32> <{order}>")
    v, i, (one, two) = f"<{count} x {element}>", f"<{count} x i{bits}>", CHOICES[size, element]
    if len(vectors) == 1:
        out = e.call(f"llvm.x86.{one}", v, [(v, vectors[0]), (i, x)])
    elif len(vectors) > 2:
        halves = [e.call(f"llvm.x86.{two}", v, [(v, a), (i, x), (v, b)]) for a, b in _in_pairs(vectors)]
        below = e.op(f"icmp ult {i} {x}, splat (i{bits} {(2 * count + half) % (2 * half) - half})")
        out = e.op(f"select <{count} x i1> {below}, {v} {halves[0]}, {v} {halves[1]}")
    elif two is not None:
        out = e.call(f"llvm.x86.{two}", v, [(v, vectors[0]), (i, x), (v, vectors[1])])
    else:
        halves = [e.call(f"llvm.x86.{one}", v, [(v, half), (i, x)]) for half in vectors]
        below = e.op(f"icmp slt {i} {x}, splat (i{bits} {count})")
        out = e.op(f"select <{count} x i1> {below}, {v} {halves[0]}, {v} {halves[1]}")
    if width == count:
        return out
    kept = ", ".join(f"i32 {k}" for k in range(width))
    return e.op(f"shufflevector {v} {out}, {v} poison, <{width} x i32> <{kept}>")


def _in_pairs(vectors: list[str]) -> list[tuple[str, str]]:
    """The first two vectors, and those behind, of which there is one or two."""
    return [(vectors[0], vectors[1]), (vectors[2], vectors[-1])]
