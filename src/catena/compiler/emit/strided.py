"""Elements that lie a few apart, read by whole vectors and shuffles in place of an access for each."""

from __future__ import annotations

from catena.compiler.graph.types import Type, vector

EACH = 32  # bytes of a vector up to which loads one by one take no longer than a gather does


def load(e, t: Type, pointer: str, width: int, stride: int) -> str:
    """`width` elements `stride` apart, raw: a shuffle takes what each vector has; nothing behind the last is read."""
    v, out = vector(t.memory, width), "poison"
    for start in range(0, stride * width, width):
        here = {k: stride * k - start for k in range(width) if start <= stride * k < start + width}
        if not here:
            continue
        last = start + width > stride * (width - 1)
        mask = ", ".join(f"i1 {'true' if k <= max(here.values()) else 'false'}" for k in range(width))
        part = e.load_raw(t, e.element(pointer, t.memory, start), width, 1, f"<{mask}>" if last else None)
        order = ", ".join(f"i32 {width + here[k] if k in here else k}" for k in range(width))
        out = e.op(f"shufflevector {v} {out}, {v} {part}, <{width} x i32> <{order}>")
    return out


def load_each(e, t: Type, pointer: str, width: int, stride: int) -> str:
    """`width` elements so far apart that each is an access: a gather would take places apart that are known here."""
    out = "poison"
    for k in range(width):
        x = e.op(f"load {t.memory}, ptr {e.element(pointer, t.memory, stride * k)}, align {t.bytes}")
        out = e.op(f"insertelement {vector(t.memory, width)} {out}, {t.memory} {x}, i64 {k}")
    return out


def mask_of_every_second(e, mask: str, start: int, width: int) -> str:
    """For `width` neighbours from `start` on, the mask of those that are at even places; the others are off."""
    v = vector("i1", width)
    places = [n // 2 if n % 2 == 0 else width for n in range(start, start + width)]
    order = ", ".join(f"i32 {k}" for k in places)
    return e.op(f"shufflevector {v} {mask}, {v} zeroinitializer, <{width} x i32> <{order}>")
