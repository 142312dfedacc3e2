"""Code as bytes that run wherever they are put (`compiler.image`, `entries`): on pages that are made executable."""

from __future__ import annotations

import ctypes
import functools
import mmap

_kept: list = []  # images of loops: there is one for each function and dtype, and NumPy's ufuncs hold their addresses


def load(image: bytes) -> int | None:
    """The address of an image in this process, where it stays; None where the system gives no memory for code."""
    made = pages(image)
    if made is None:
        return None
    _kept.append(made)
    return address(made)


def pages(image: bytes) -> mmap.mmap | None:
    """Executable pages that begin with these bytes; None where the system gives none."""
    if not hasattr(mmap, "PROT_EXEC"):
        return None
    try:
        made = mmap.mmap(-1, len(image), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        made[:] = image
        place, protect = ctypes.c_void_p(address(made)), _protect()
    except (OSError, TypeError, AttributeError):
        return None
    size = -(-len(image) // mmap.PAGESIZE) * mmap.PAGESIZE
    return None if protect(place, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC) else made


def address(made: mmap.mmap) -> int:
    """Where pages begin."""
    return ctypes.addressof(ctypes.c_char.from_buffer(made))


@functools.cache
def _protect():
    return ctypes.CDLL(None).mprotect
