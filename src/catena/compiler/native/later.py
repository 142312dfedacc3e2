"""Functions that hardly ever run, compiled when they are first called: for what has met subnormal numbers.

Each has what it is called in place of as its first argument, by which it can be done without. Where there is a cache on
disk, the text lies there until somebody compiles it: programs that are found there find it.
"""

from __future__ import annotations

import ctypes
import json
import zlib
from collections.abc import Callable

from catena.compiler.native import cache, host
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.runtime import float_control
from catena.runtime.deferred import Deferred, deferred
from catena.runtime.native import Code, Unit, loaded

link = LazyModule("catena.compiler.native.link")  # processes that find their programs on disk need it for these alone


class InPlace(NamedTuple):
    """What is done in place of a function: whether that will do (`is_needless` does it, if so), and `without` it."""

    is_needless: Callable[..., bool]
    without: Callable[..., None]


class Written(NamedTuple):
    """Such a function, as it is kept: its text, LLVM's effort, what its first argument is called, and how many."""

    text: str
    level: int
    called_for: str
    arguments: int


def put_off(unit: Unit, written: Written) -> Deferred | None:
    """The only function of a unit, made later; None where it is made already, or no code can be written here."""
    if loaded(unit.name) is not None or cache.load(unit.name) is not None:
        return None
    if cache.directory() is not None:
        head = json.dumps(written[1:]).encode()
        cache.save(_name(unit), b"\n".join([head, zlib.compress(written.text.encode())]))
    return _deferred(unit, written)


def found(unit: Unit) -> Deferred | None:
    """That of a unit whose text is on disk."""
    content = cache.load(_name(unit))
    if content is None:
        return None
    head, _, text = content.partition(b"\n")
    return _deferred(unit, Written(zlib.decompress(text).decode(), *json.loads(head)))


def _name(unit: Unit) -> str:
    return cache.key("text", unit.name)


def _deferred(unit: Unit, written: Written) -> Deferred | None:
    def make() -> Code:
        code = link.object_code(unit.name, written.text, link.Times(), written.level)
        return Code(code, host.new_generator, [], unit)

    return deferred(unit, written.arguments, make, *IN_PLACE[written.called_for])


# ---- tiles of products (see `emit.subnormal_products`) -------------------------------------------------------


def _does_tile(tile: int, watch: int, *given: int) -> bool:
    """Whether a tile does without the function, which is given these arguments: it is called again, once what the
    thread has met before is forgotten.
    """
    float_control.forget_subnormal()
    _call_tile(tile, given, watch)
    met = ctypes.c_int64.from_address(watch)
    has_met, met.value = met.value, 0
    return not has_met


def _tile_alone(tile: int, watch: int, *given: int) -> None:
    """The call of a tile that looks out for nothing."""
    _call_tile(tile, given, 0)


def _call_tile(tile: int, given: tuple[int, ...], watch: int) -> None:
    *of_tile, _ = given
    _call(tile, *of_tile, watch)


# ---- loop nests (see `emit.careful`) -------------------------------------------------------------------------


def _never(*given: int) -> bool:
    return False


def _call(function: int, *given: int) -> None:
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(given))(function)(*given)


IN_PLACE = {"tile": InPlace(_does_tile, _tile_alone), "plain": InPlace(_never, _call)}
