"""Half spectra of real rows, from complex transforms of half their length and back.

The transform Z of the even elements as real and the odd ones as imaginary parts is taken apart into those of both,
E and O, from which X[k] = E[k] + w**k O[k]; or E and O are found from X and put together. A function does a part of a
row; h is the length of Z, and X has one element more.

Source: Cooley, Lewis and Welch, "The fast Fourier transform algorithm: programming considerations in the calculation of
sine, cosine and Laplace transforms", J. Sound Vib. 12 (1970).
"""

from __future__ import annotations

from functools import cache

from catena.compiler.emit.branches import when
from catena.compiler.emit.butterflies import Lanes, in_vectors
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.module import NOT_INLINED


@cache
def define(real: str, width: int, to_spectrum: bool) -> str:
    """Parameters and body of the function that makes the elements from `first` to `last` of X, or of Z; the one that
    makes the first element of X makes the last one too.
    """
    e = Emitter()
    c = Lanes(e, real, width)
    with when(e, e.op("icmp eq i64 %first, 0")):
        _ends(c, to_spectrum)
    start = e.most("%first", 1)
    in_vectors(c, start, "%last", lambda k, count: _vector(c, k, count, to_spectrum))
    head = "(ptr %x, ptr %y, ptr %roots, i64 %first, i64 %last, i64 %h) " + NOT_INLINED
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


@cache
def define_in_lanes(real: str, width: int, to_spectrum: bool) -> str:
    """The same of whole rows that stand in lanes, as between passes (see `butterflies`), a row to a lane."""
    e = Emitter()
    c = Lanes(e, real, width)

    def place(pointer: str, k: str) -> str:
        return c.at(pointer, e.op(f"mul i64 {k}, {2 * width}"))

    def load(k: str) -> tuple:
        at = place("%x", k)
        return c.load(at), c.load(c.at(at, width))

    def store(z: tuple, k: str) -> None:
        at = place("%y", k)
        c.store(z[0], at)
        c.store(z[1], c.at(at, width))

    first = load("0")
    if to_spectrum:
        zero = c.constant(0.0)
        store((c.op("fadd", *first), zero), "0")
        store((c.op("fsub", *first), zero), "%h")
    else:
        second = load("%h")
        ends = c.op("fadd", first[0], second[0]), c.op("fsub", first[0], second[0])
        store(c.scale(ends, c.constant(0.5)), "0")
    k, opened = e.begin_loop(1, "%h")
    x, y = load(e.op(f"sub i64 %h, {k}"))
    opposite = x, e.op(f"fneg {c.vector} {y}")
    roots = c.splat(c.at("%roots", k)), c.splat(c.at("%roots", e.op(f"add i64 {k}, {e.op(f'add i64 %h, {width}')}")))
    z = (_apart if to_spectrum else _together)(c, load(k), opposite, roots)
    store(c.scale(z, c.constant(0.5)), k)
    e.end_loop(opened)
    head = "(ptr %x, ptr %y, ptr %roots, i64 %h) " + NOT_INLINED
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _vector(c: Lanes, k: str, count: str | None, to_spectrum: bool) -> None:
    """The elements from `k` on: a vector of them, or the first `count` reals of these."""
    e, width = c.e, c.width
    masks = c.pair_masks(count)
    forward = c.load_numbers(c.at("%x", e.op(f"shl i64 {k}, 1")), masks)
    backward = _backward(c, e.op(f"sub i64 %h, {k}"), count)
    places = c.at("%roots", k), c.at("%roots", e.op(f"add i64 {k}, {e.op(f'add i64 %h, {width}')}"))
    roots = c.load(places[0]), c.load(places[1])
    y = (_apart if to_spectrum else _together)(c, forward, backward, roots)
    c.store_numbers(c.scale(y, c.constant(0.5)), c.at("%y", e.op(f"shl i64 {k}, 1")), masks)


def _backward(c: Lanes, k: str, count: str | None) -> tuple:
    """The conjugates of the numbers from `k` on downwards. Only the last `count` reals are read, if it is given: what
    comes before may be in front of the row.
    """
    e, width = c.e, c.width
    masks: list = [None, None]
    if count is not None:
        unread = c.pair_masks(e.op(f"sub i64 {2 * width}, {count}"))
        masks = [e.op(f"xor <{width} x i1> {mask}, splat (i1 true)") for mask in unread]
    low = e.op(f"shl i64 {e.op(f'sub i64 {k}, {width - 1}')}, 1")
    x, y = (e.reversed(part, c.scalar, width) for part in c.load_numbers(c.at("%x", low), masks))
    return x, e.op(f"fneg {c.vector} {y}")


def _apart(c: Lanes, z: tuple, opposite: tuple, w: tuple) -> tuple:
    """2 X[k], given Z[k], the conjugate of Z[h - k], and w**k."""
    return c.add(c.add(z, opposite), c.multiply(c.down(c.subtract(z, opposite)), w))


def _together(c: Lanes, x: tuple, opposite: tuple, w: tuple) -> tuple:
    """2 Z[k], given X[k], the conjugate of X[h - k], and w**k."""
    odd = c.multiply(c.subtract(x, opposite), (w[0], c.e.op(f"fneg {c.vector} {w[1]}")))
    return c.subtract(c.add(x, opposite), c.down(odd))


def _ends(c: Lanes, to_spectrum: bool) -> None:
    """Z[0] holds the sums of the even and of the odd elements; X[0] and X[h] are their sum and difference, and real."""
    e, t = c.e, c.scalar
    end = c.at("%y" if to_spectrum else "%x", e.op("shl i64 %h, 1"))
    first = e.op(f"load {t}, ptr %x")
    second = e.op(f"load {t}, ptr {c.at('%x', 1) if to_spectrum else end}")
    total, difference = (e.op(f"{op} {t} {first}, {second}") for op in ("fadd", "fsub"))
    if to_spectrum:
        written = {"%y": total, c.at("%y", 1): "0.0", end: difference, c.at(end, 1): "0.0"}
    else:
        written = {"%y": e.op(f"fmul {t} {total}, 0.5"), c.at("%y", 1): e.op(f"fmul {t} {difference}, 0.5")}
    for place, value in written.items():
        e.do(f"store {t} {value}, ptr {place}")
