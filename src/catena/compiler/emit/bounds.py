"""Bounds checks: in checked mode, every load and store of a loop nest compares its place with the value's extent.

`CATENA_CHECK_BOUNDS=1` (the flag `jax_check_bounds`) compiles them in. An access beyond the memory of its value
is not made: the kernel ends, the program stops, and the caller gets an error that names the kernel and the value.
Masked lanes may point anywhere. What tiles of products read is known when they are written, and checked then.
Memory that nothing was written to yet holds NaN, and integers of -1, so results that hang on it are wrong each time.
"""

from __future__ import annotations

from catena.compiler.emit.branches import when_it_leaves
from catena.compiler.emit.masks import any_lane
from catena.compiler.graph.types import Type
from catena.runtime.status import FIRST_VIOLATION

GLOBAL = "@violation = global i64 0, align 8\n"


def unwritten(e, arena_bytes: int, results: list[tuple[str, int]]) -> None:
    """Fills the memory of temporaries and results, of which the pointers and bytes are told, before anything runs."""
    for pointer, size in [("%arena", arena_bytes), *results]:
        if size:
            e.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 -1, i64 {size}, i1 false)")


class Sites:
    """The accesses of a program that are checked, for the error's text."""

    def __init__(self):
        self.texts: list[str] = []

    def add(self, text: str) -> int:
        self.texts.append(text)
        return len(self.texts) - 1


class Guard:
    """Writes the checks of one nest into a function; `values` are those of its region, `shown` the nest's text."""

    def __init__(self, sites: Sites, e, values, shown: str, own_function: bool, sizes: dict[int, int]):
        self.sites, self.e, self.values, self.shown, self.own_function = sites, e, values, shown, own_function
        self.sizes = sizes  # bytes of the buffers that are parts of values

    def check(self, what: str, buffer: int, base: str, pointer: str, t: Type, width=1, stride=1, mask=None) -> None:
        """An access at `width` places `stride` elements apart, or at a vector of addresses (`stride` None)."""
        e, v = self.e, self.values[buffer]
        size = self.sizes.get(buffer, v.nbytes)
        start = e.op(f"ptrtoint ptr {base} to i64")
        if stride is None or (mask is not None and width > 1):
            wrong = self._lanes(pointer, start, size, t, width, stride, mask)
        else:
            wrong = self._run(pointer, start, size, t, width, stride, mask)
        site = self.sites.add(f"{what} of v{buffer}:{v.dtype.name}{list(v.shape)} in the kernel\n{self.shown}")
        with when_it_leaves(e, wrong):
            if self.own_function:
                e.do(f"cmpxchg ptr @violation, i64 0, i64 {FIRST_VIOLATION - site} acq_rel monotonic")
                e.do("ret void")
            else:
                e.do(f"store i64 {FIRST_VIOLATION - site}, ptr %status")
                e.jump("finish")

    def _run(self, pointer: str, start: str, size: int, t: Type, width: int, stride: int, mask: str | None) -> str:
        """Whether the first or the last of evenly spaced elements lies outside."""
        e = self.e
        if size < t.bytes:
            return mask or "true"
        first = e.op(f"sub i64 {e.op(f'ptrtoint ptr {pointer} to i64')}, {start}")
        wrong = e.op(f"icmp ugt i64 {first}, {size - t.bytes}")
        if width > 1 and stride:
            last = e.op(f"add i64 {first}, {(width - 1) * stride * t.bytes}")
            wrong = e.op(f"or i1 {wrong}, {e.op(f'icmp ugt i64 {last}, {size - t.bytes}')}")
        return wrong if mask is None else e.op(f"and i1 {wrong}, {mask}")

    def _lanes(self, pointer: str, start: str, size: int, t: Type, width: int, stride, mask: str | None) -> str:
        """Whether some lane that is not masked lies outside."""
        e, v, bits = self.e, f"<{width} x i64>", f"<{width} x i1>"
        if stride is None:
            at = e.op(f"ptrtoint <{width} x ptr> {pointer} to {v}")
        else:
            first = e.splat(e.op(f"ptrtoint ptr {pointer} to i64"), "i64", width)
            at = e.op(f"add {v} {first}, {e.lanes(width, stride * t.bytes)}")
        place = e.op(f"sub {v} {at}, {e.splat(start, 'i64', width)}")
        limit = f"splat (i64 {size - t.bytes})"
        wrong = e.op(f"icmp ugt {v} {place}, {limit}") if size >= t.bytes else "splat (i1 true)"
        if mask is not None:
            wrong = e.op(f"and {bits} {wrong}, {mask}")
        return any_lane(e, wrong, width)


def stop_if_violated(w) -> None:
    """Ends the program where a kernel that was called has stopped."""
    if w.sites is None:
        return
    e = w.e
    found = e.op("atomicrmw xchg ptr @violation, i64 0 acq_rel")
    with when_it_leaves(e, e.op(f"icmp ne i64 {found}, 0")):
        e.do(f"store i64 {found}, ptr %status")
        e.jump("finish")
