"""Memory for large results: pages, huge ones where they fit, that are used again.

A fresh 40 MB array costs 9,766 page faults before its first element is written, more than the arithmetic
that fills it. Large arrays therefore come from a pool of mappings on huge pages; a mapping returns to the pool
when the last view of its array dies. What lies idle is bounded (`CATENA_POOL_BYTES`; by default an eighth of
the machine's memory, at most 1 GiB), the mapping that was idle longest goes first; what nobody uses for a while goes
too (see `idle`).
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import weakref
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from catena.core import locks
from catena.core.errors import OutOfMemoryError
from catena.core.ref import Block
from catena.runtime import idle
from catena.runtime.layout import DATA

SMALLEST = 1 << 17  # bytes from which malloc gives memory back to the system as soon as it is free
PAGE = 2 << 20
NEARLY_FULL = PAGE * 3 // 4  # bytes from which the last page of an array is a huge one
LINE = 64  # bytes of a line of memory: a vector of as many that begins inside of one is two accesses
ALIGNED = 1 << 16  # bytes from which a result begins with a line: finding its place takes as long as one pass gains
COPIED = 1 << 12  # the same of a copy of what a user has, which programs read again and again
BYTES = np.dtype(np.uint8)
_word = ctypes.c_uint64.from_address
STEP = 1 << 16  # between the sizes of mappings too small for huge pages
# Python maps shared memory where it is not told: a fork's child would write into its parent's arrays.
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def idle_bound() -> int:
    """The bytes that may lie idle in the pool."""
    chosen = os.environ.get("CATENA_POOL_BYTES")
    if chosen:
        if not chosen.isdigit():
            raise ValueError(f"CATENA_POOL_BYTES must be a number of bytes, got {chosen!r}")
        return int(chosen)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this platform
        memory = 4 << 30
    return min(memory // 8, 1 << 30)


def check_room(size: int, purpose: str) -> None:
    """Raises OutOfMemoryError unless so many bytes could be had now. For what ends the process where it cannot have
    them, as LLVM does; they are only asked for, nothing touches them.
    """
    try:
        mmap.mmap(-1, size, **PRIVATE).close()
    except OSError as error:
        raise OutOfMemoryError(f"RESOURCE_EXHAUSTED: Out of memory while {purpose}") from error


class Mapping:
    """Memory of the system's, from `start` on; large ones lie on huge pages where the system has them, as far as
    what they are made for fills these: the last one, of which most would stay empty, is left small.
    """

    __slots__ = ("size", "memory", "start", "since")

    def __init__(self, size: int, used: int):
        self.since = 0  # when it was given back last, counted in mappings that were
        if size < PAGE:
            self.size, self.memory, self.start = size, mmap.mmap(-1, size, **PRIVATE), 0
            return
        self.size, self.memory = size, mmap.mmap(-1, size + PAGE, **PRIVATE)
        self.start = -np.frombuffer(self.memory, np.uint8).ctypes.data % PAGE
        if hasattr(self.memory, "madvise") and hasattr(mmap, "MADV_HUGEPAGE"):
            self.memory.madvise(mmap.MADV_HUGEPAGE, 0, self._on_huge_pages(used))

    def _on_huge_pages(self, used: int) -> int:
        """The bytes of `memory` up to the last huge page that its first `used` ones fill, or nearly so."""
        whole, rest = divmod(used, PAGE)
        return self.start + (whole + (rest >= NEARLY_FULL)) * PAGE


class Lease(weakref.ref):
    """An array in a mapping, which goes back to the pool when the array dies."""

    __slots__ = ("mapping",)


class Pool:
    """Mappings by size; safe in threads, in weak references' callbacks and after a fork."""

    def __init__(self, bound: int):
        self.bound = bound
        self.by_size: dict[int, list[Mapping]] = {}  # those that are idle; what was last in use is at the end
        self.idle_bytes = self.live_bytes = self.peak_bytes = self.reused = self.made = 0
        self._clock = count()
        self._lay_idle: set[int] = set()  # since when those were idle that were so at the last look
        self._leases: dict[Mapping, Lease] = {}
        self._lock = locks.new_lock()  # taken again when the collector frees an array inside of it
        locks.after_fork(self._forget_idle)

    def empty(self, shape: tuple, dtype: np.dtype) -> np.ndarray:
        """An array with arbitrary contents."""
        used = math.prod(shape) * dtype.itemsize
        return self.lend(used, rounded(used), shape, dtype)

    def lend(self, used: int, size: int, shape: tuple, dtype: np.dtype) -> np.ndarray:
        """An array of so many bytes, in a mapping of `size` (`rounded`)."""
        try:
            mapping = self._take(used, size)
        except (OSError, OverflowError, ValueError) as error:  # what mmap says of sizes that cannot be had
            raise OutOfMemoryError(
                f"RESOURCE_EXHAUSTED: Out of memory while allocating {used:,} bytes for an array of shape "
                f"{shape} and dtype {dtype}"
            ) from error
        array = np.ndarray(shape, dtype, mapping.memory, mapping.start)
        lease = self._leases[mapping] = Lease(array, self._give_back)
        lease.mapping = mapping
        return array

    def _take(self, used: int, size: int) -> Mapping:
        with self._lock:
            idle_ones = self.by_size.get(size)
            if idle_ones:
                self.reused += 1
                self.idle_bytes -= size
                mapping = idle_ones.pop()
            else:
                mapping = Mapping(size, used)
                self.made += 1
                idle.watch(self)
            self.live_bytes += size
            if self.live_bytes > self.peak_bytes:
                self.peak_bytes = self.live_bytes
        return mapping

    def _give_back(self, lease: Lease) -> None:
        mapping = lease.mapping
        size = mapping.size
        with self._lock:
            del self._leases[mapping]
            self.live_bytes -= size
            if size > self.bound:
                return
            mapping.since = next(self._clock)
            if size in self.by_size:
                self.by_size[size].append(mapping)
            else:
                self.by_size[size] = [mapping]
            self.idle_bytes += size
            while self.idle_bytes > self.bound:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._drop(min((each[0] for each in self.by_size.values() if each), key=lambda mapping: mapping.since))

    def _drop(self, mapping: Mapping) -> None:
        self.by_size[mapping.size].remove(mapping)
        self.idle_bytes -= mapping.size

    def _idle(self) -> list[Mapping]:
        return [mapping for each in self.by_size.values() for mapping in each]

    def give_back_idle(self) -> None:
        """Gives the system what has been idle since this was called last."""
        with self._lock:
            for mapping in self._idle():
                if mapping.since in self._lay_idle:
                    self._drop(mapping)
            self._lay_idle = {mapping.since for mapping in self._idle()}

    def clear(self) -> None:
        """Gives all idle memory back to the system."""
        with self._lock:
            while self.idle_bytes:
                self._drop_oldest()

    def _forget_idle(self) -> None:
        """In a child: another thread may have been in the middle of moving a mapping."""
        self.by_size, self.idle_bytes = {}, 0

    def statistics(self) -> dict[str, int]:
        """Bytes in arrays, at most in arrays at any time, and idle; mappings made and used again."""
        return {
            "live_bytes": self.live_bytes,
            "peak_bytes": self.peak_bytes,
            "idle_bytes": self.idle_bytes,
            "made": self.made,
            "reused": self.reused,
        }


def rounded(size: int) -> int:
    """The size of the mapping for so many bytes: few different ones, at most an eighth larger."""
    smallest = STEP if size <= PAGE - STEP else PAGE
    step = max(smallest, 1 << max(size.bit_length() - 4, 0))
    return -(-size // step) * step


pool = Pool(idle_bound())


def maker(shape: tuple, dtype: np.dtype) -> Callable[[tuple, np.dtype], np.ndarray]:
    """What allocates arrays of this type: the pool where they are large, else `np.empty`, or where a line begins."""
    used = math.prod(shape) * dtype.itemsize
    if used >= SMALLEST:
        return partial(pool.lend, used, rounded(used))
    return partial(on_a_line, used) if used >= ALIGNED else np.empty


def on_a_line(used: int, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array of so many bytes that begins where a line does: of those that malloc gives, a quarter do."""
    block = Block(used + LINE, BYTES)
    return np.ndarray(shape, dtype, block, -_word(id(block) + DATA).value % LINE)


def copy(array: np.ndarray) -> np.ndarray:
    """A contiguous copy."""
    out = empty(array.shape, array.dtype)
    np.copyto(out, array)
    return out


def empty(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """`np.empty`, from the pool where the array is large."""
    return maker(shape, dtype)(shape, dtype)
