"""What takes memory, by the line that made it: arrays that are alive, and what a backward pass keeps."""

from __future__ import annotations

import ctypes
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from catena.core.device import live_arrays
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.source import PACKAGE, PlainSource, Source, function_name
from catena.tools.memory_profile import root
from catena.tools.residuals import residuals
from catena.transform.explain import shown

page = LazyModule("catena.tools.page.document")
UNKNOWN = "lines are known of arrays made while Python traces memory (python -X tracemalloc=16; slow)"


class Item(NamedTuple):
    """Arrays of one type from one line: what they are, where they were made, how many they are, and their bytes."""

    what: str
    source: Source | PlainSource | None
    count: int
    bytes: int

    @property
    def where(self) -> str:
        """The file and the line, or nothing."""
        return "" if self.source is None else f"{os.path.basename(self.source.file_name)}:{self.source.line}"


class Held:
    """Arrays by the line that made them, largest first: ``items`` have ``what``, ``where``, ``count`` and ``bytes``.

    It prints as a table, and ``save`` writes a page that shows them beside the source.
    """

    def __init__(self, title: str, about: str, items: list[Item]):
        self.title, self.about = title, about
        self.items = sorted(items, key=lambda item: -item.bytes)

    @property
    def bytes(self) -> int:
        """The bytes of all items."""
        return sum(item.bytes for item in self.items)

    def __repr__(self) -> str:
        rows = [(shown(i.bytes), f"{i.count} x" if i.count > 1 else "", i.what, i.where) for i in self.items]
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
        texts = [f"  {a:>{widths[0]}}  {n:>{widths[1]}} {b:{widths[2]}}  {c}".rstrip() for a, n, b, c in rows]
        return "\n".join([f"{self.title}: {self.about}", *texts])

    def save(self, path: str | os.PathLike) -> None:
        """Write a page for any browser: the lines of the source with the bytes of what they made."""
        Path(path).write_text(page.of_held(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return page.framed(page.of_held(self), 420)


def memory() -> Held:
    """The arrays that are alive, by the line that made them.

    Returns:
      A table, and a page. Python knows the line of an array that was made while it traces memory (module
      ``tracemalloc``); the others are listed by their types. What several arrays share is counted once.

    >>> import catena as jax, catena.numpy as jnp
    >>> x = jnp.ones((1000, 5, 3))  # after ``tracemalloc.start(25)``, also this line
    >>> [(item.what, item.bytes) for item in jax.tools.memory().items if "1000,5,3" in item.what]
    [('float32[1000,5,3]', 60000)]
    """
    found: dict[tuple, list[int]] = {}
    seen: set[int] = set()
    for x in live_arrays():
        entry = found.setdefault((x.aval.str_short(), line_of(x)), [0, 0])
        entry[0] += 1
        held = root(x._value)
        if id(held) not in seen:
            seen.add(id(held))
            entry[1] += getattr(held, "nbytes", x.nbytes)
    items = [Item(what, source, *entry) for (what, source), entry in found.items()]
    total = shown(sum(item.bytes for item in items))
    lines = "" if any(item.source for item in items) or not items else f"; {UNKNOWN}"
    return Held("arrays in memory", f"{sum(item.count for item in items)} arrays, {total}{lines}", items)


def line_of(x) -> PlainSource | None:
    """The user's line that made an object, where Python traced its memory."""
    trace = _traceback(x) if tracemalloc.is_tracing() else None
    outside = [frame for frame in trace or () if not frame.filename.startswith((PACKAGE, "<frozen"))]
    return PlainSource(outside[-1].filename, outside[-1].lineno, "") if outside else None


def _traceback(x) -> tracemalloc.Traceback | None:
    """As tracemalloc tells it. Of objects that take users' attributes, as arrays do, Python 3.11 asks where they are,
    and not where their memory begins: two words further down, which hold the attributes.
    """
    found = tracemalloc.get_object_traceback(x)
    if found is not None or sys.version_info >= (3, 12):
        return found
    ask = ctypes.pythonapi._PyTraceMalloc_GetTraceback
    ask.argtypes, ask.restype = [ctypes.c_uint, ctypes.c_size_t], ctypes.py_object
    frames = ask(0, id(x) - 4 * ctypes.sizeof(ctypes.c_void_p))  # the attributes' two words, the collector's two
    return None if frames is None else tracemalloc.Traceback(frames)


def kept(f: Callable) -> Callable[..., Held]:
    """What the backward pass of a function keeps of its forward pass: the bytes, and the line that made them.

    Arguments:
      f: a function of trees of arrays.
    Returns:
      A function of the arguments of ``f``, which gives a table, and a page.

    >>> import catena as jax, catena.numpy as jnp
    >>> f = lambda x: jnp.sum(jnp.sin(x) * 2)
    >>> [(item.what, item.bytes) for item in jax.tools.kept(f)(jnp.ones(1000)).items]
    [('float32[1000]: output of cos', 4000)]
    """

    def look(*args, **kwargs) -> Held:
        items = [
            Item(f"{r.aval.str_short()}: {r.origin}", r.source, 1, r.aval.size * r.aval.dtype.itemsize)
            for r in residuals(f, *args, **kwargs)
        ]
        total = shown(sum(item.bytes for item in items))
        name = function_name(f)
        return Held("f" if name == "<lambda>" else name, f"the backward pass keeps {total} of the forward pass", items)

    return look
