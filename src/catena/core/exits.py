"""The end of a process: no search for garbage in what the package made, which takes a fifth of a short script's time.

When Python ends it looks several times through all objects that may be in cycles, 15 ms each for what is loaded here,
to call the finalizers of some. Where nothing has a finalizer these searches are left out.
"""

import atexit
import gc
import sys


def settle() -> None:
    """Takes all objects out of the searches for garbage, unless one of them has something to do at its end, such as a
    file that is open or a generator that waits within ``finally``.
    """
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if _has_finalizer(kind)}
    standard = {id(x) for x in _standard_streams()}
    if all(id(x) in standard for x in objects if type(x) in kinds):
        gc.freeze()


def _has_finalizer(kind: type) -> bool:
    """Whether objects of a class have one that counts: LLVM's give memory back."""
    return any("__del__" in vars(c) for c in kind.__mro__) and not kind.__module__.startswith("llvmlite.")


def _standard_streams() -> list:
    """The files that are open in every process, and what they write to; Python writes out what they hold by itself."""
    streams = [x for x in (sys.__stdin__, sys.__stdout__, sys.__stderr__) if x is not None]
    buffers = [x.buffer for x in streams if hasattr(x, "buffer")]
    return [*streams, *buffers, *(x.raw for x in buffers if hasattr(x, "raw"))]


atexit.register(settle)
