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


# ---- memory for code that lies where it was linked to be, and stays until it is given back


def reserve(size: int) -> int | None:
    """The address of so many bytes of pages of their own; None where the system gives none."""
    if not hasattr(mmap, "PROT_EXEC"):
        return None
    try:
        kinds = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        made = _map()(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kinds, -1, 0)
    except (OSError, AttributeError):
        return None
    return None if made == _FAILED else made


def fill(start: int, content: bytes | bytearray, written: int) -> bool:
    """Whether pages hold these bytes now, and run as code up to what is `written` to, a whole number of pages."""
    ctypes.memmove(start, bytes(content), len(content))
    return not _protect()(ctypes.c_void_p(start), ctypes.c_size_t(written), mmap.PROT_READ | mmap.PROT_EXEC)


def free(start: int, size: int) -> None:
    """Gives reserved pages back."""
    ctypes.CDLL(None).munmap(ctypes.c_void_p(start), ctypes.c_size_t(size))


_FAILED = ctypes.c_void_p(-1).value


@functools.cache
def _map():
    function = ctypes.CDLL(None).mmap
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    function.restype = ctypes.c_void_p
    return function


@functools.cache
def _protect():
    return ctypes.CDLL(None).mprotect
