"""Images of code in memory (`compiler.image`): copied to pages of their own, which are then made executable."""

from __future__ import annotations

import ctypes
import mmap

_kept: list = []  # images stay: there is one for each function and dtype, and NumPy's ufuncs hold their addresses


def load(image: bytes) -> int | None:
    """The address of an image in this process; None where the system gives no memory for code."""
    if not hasattr(mmap, "PROT_EXEC"):
        return None
    try:
        pages = mmap.mmap(-1, len(image), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        pages[:] = image
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        protect = ctypes.CDLL(None).mprotect
    except (OSError, TypeError, AttributeError):
        return None
    size = -(-len(image) // mmap.PAGESIZE) * mmap.PAGESIZE
    if protect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        return None
    _kept.append(pages)
    return address
