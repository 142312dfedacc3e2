"""Elementwise functions as NumPy ufuncs of our own: one code for arrays of all sizes, that of compiled programs.

The code is kept on disk as an image (`image.py`), under the name of the function: a process that finds it there loads
neither LLVM nor the compiler.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.native import cache, host
from catena.compiler.native.stored import DTYPES, source_stamp
from catena.core import lazy
from catena.core.lazy import LazyModule
from catena.runtime import images, ufuncs

compiler = LazyModule("catena.compiler.native.compile")

BLOCK = 32  # elements that the code of a function computes at once: two vectors of floats where these are widest
_PLACE = struct.Struct("<Q")  # before an image: where its function begins


def ufunc(name: str, make_jaxpr: Callable, dtypes: Sequence[np.dtype], facts: tuple = ()) -> np.ufunc:
    """A NumPy ufunc that computes what compiled programs compute.

    Arguments: `name` of the function, which with its `facts` tells it from all others; `make_jaxpr`, which given a
      length makes the jaxpr of the function on operands of shape `(length,)`; `dtypes`, of the operands.
    Raises: CompileError where the function is not elementwise.
    """
    key = _name_on_disk(name, dtypes, facts)
    content = cache.load(key) if key else None
    if content is None:
        closed = make_jaxpr(BLOCK)
        result, text = closed.out_avals[0].dtype, compiler.loop_text(closed, name)
        made = compiler.loop_image(text)
        if made is None:
            return _linked(name, text, [*dtypes, result])
        content = _packed(made[0], made[1], result)
        if key:
            cache.save(key, content)
    place, result, image = _unpacked(content)
    address = images.load(image)
    if address is None:
        return _linked(name, compiler.loop_text(make_jaxpr(BLOCK), name), [*dtypes, result])
    return ufuncs.ufunc(name, address + place, [*dtypes, result])


def _linked(name: str, text: str, operands: Sequence[np.dtype]) -> np.ufunc:
    """The ufunc of code that LLVM loads: where there are no images for a processor, or no memory for them."""
    code = compiler.loop_code(text)
    return ufuncs.ufunc(name, code.address("loop"), operands, keep=code)


def _packed(image: bytes, place: int, result: np.dtype) -> bytes:
    """The content of an entry: an image, the place of its function and the dtype of its result."""
    return _PLACE.pack(place) + result.name.encode() + b"\n" + image


def _unpacked(content: bytes) -> tuple[int, np.dtype, bytes]:
    result, _, image = content[_PLACE.size :].partition(b"\n")
    return _PLACE.unpack_from(content)[0], DTYPES[result.decode()], image


def _name_on_disk(name: str, dtypes: Sequence[np.dtype], facts: tuple) -> str | None:
    stamp = source_stamp(lazy.LOADED)
    if not stamp or cache.directory() is None:
        return None
    target = str(os.environ.get("CATENA_TARGET"))
    return cache.key(stamp, host.as_told(), target, name, *[d.name for d in dtypes], *map(repr, facts))
