"""What notebooks show of arrays, keys, jaxprs, trees and compiled functions: a few kilobytes of HTML, quickly made.

Colours are of middle brightness, or those of the text around, so that they are read on light and on dark ground.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from catena.core.array import Array, Deleted, ExtendedArray, live
from catena.core.device import devices_of
from catena.core.jaxpr import ClosedJaxpr, Jaxpr
from catena.core.lazy import has_compiler
from catena.core.treedef import PyTreeDef
from catena.tools import pictures
from catena.tools.page import jaxprs
from catena.tools.page.places import Places
from catena.transform.explain import all_traces, shown
from catena.transform.jit import JitFunction
from catena.transform.stages import Compiled, Lowered, Stage, Traced

TYPE, NAME, WORD, QUIET = "#2a8fa0", "#b0722a", "#8a6fc0", "opacity:.65"
VALUES = 64  # elements that are written out
LINES = 300  # of a listing
NODES = 400  # of a tree
EQUATIONS = 2000  # of programs that are looked at closely
PRE = "margin:4px 0;background:none;color:inherit;font-size:12px;line-height:1.4;overflow:auto;max-height:30em"


def html(x: Any) -> str:
    """The face of a value."""
    draw = next(FACES[kind] for kind in type(x).__mro__ if kind in FACES)
    return f'<div style="font-size:13px">{draw(x)}</div>'


def colour(text: str, hue: str) -> str:
    return f'<span style="color:{hue}">{text}</span>'


def quiet(text: str) -> str:
    return f'<span style="{QUIET}">{text}</span>'


def head(title: str, *facts: str) -> str:
    """A line: what it is, and what else is known of it."""
    return f"<div><b>{title}</b> {quiet(' · '.join(escape(fact) for fact in facts if fact))}</div>"


def listing(text: str) -> str:
    """Lines of text, as they stand."""
    lines = text.splitlines()
    more = f"\n... {len(lines) - LINES:,} more lines" if len(lines) > LINES else ""
    return f'<pre style="{PRE}">{escape(chr(10).join(lines[:LINES]) + more)}</pre>'


def details(title: str, inside: str, is_open: bool = False) -> str:
    """What is behind a title, shown on demand."""
    return f"<details{' open' * is_open}><summary>{escape(title)}</summary>{inside}</details>"


# ---- arrays


def array(x: Array) -> str:
    """Type, bytes, place, range; the values of a small array, a picture of a larger one."""
    title = colour(escape(x.aval.str_short()), TYPE)
    if type(x._value) is Deleted:
        return head(title, "deleted: its memory was given away")
    value = np.asarray(live(x))
    facts = [shown(value.nbytes), place(x), "weakly typed" if x.weak_type else ""]
    if value.size <= VALUES:
        return head(title, *facts) + listing(str(value))
    ends = np.array2string(value, threshold=VALUES)
    seen = pictures.numbers(pictures.sample(value))
    return head(title, *facts, *measures(seen, value.size)) + pictures.picture(value) + details("values", listing(ends))


def measures(seen: np.ndarray, size: int) -> list[str]:
    """The range and the mean of the elements that were looked at, and how many are no numbers."""
    finite = seen[np.isfinite(seen)]
    found = [f"{finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}"] if finite.size else []
    if finite.size < seen.size:
        found.append(f"{seen.size - finite.size:,} NaN or infinite")
    return [*found, f"{seen.size:,} of {size:,} elements looked at" if seen.size < size else ""]


def place(x: Array) -> str:
    """The devices of an array."""
    devices = devices_of(x)
    first = f"{devices[0].platform}:{devices[0].id}"
    return first if len(devices) == 1 else f"{len(devices)} devices from {first} on"


def keys(x: ExtendedArray) -> str:
    """Opaque elements: their type, and the first few as they print."""
    title = colour(escape(x.aval.str_short()), TYPE)
    if type(x._value) is Deleted:
        return head(title, "deleted: its memory was given away")
    few = x if x.size <= VALUES else x.reshape(-1)[:VALUES]
    return head(title, shown(x._value.nbytes), place(x), "" if few is x else f"the first {VALUES}") + listing(repr(few))


# ---- jaxprs

_TOKENS = re.compile(r"(\b(?:lambda|let|in)\b)|(:[a-z]\w*\[[^\]]*\])|((?:(?<== )|(?<=\.let ))[a-z_]\w*)")


def jaxpr(x: ClosedJaxpr | Jaxpr) -> str:
    """The equations, numbered and coloured; hovering over one shows its line in the user's program."""
    places = Places()
    lines = jaxprs.lines(x, places)
    width = len(str(len(lines)))
    rows = [
        f'<div title="{escape(where(places, row))}">{quiet(f"{n:{width}}")}  {highlighted(row[0])}</div>'
        for n, row in enumerate(lines[:LINES], 1)
    ]
    more = [quiet(f"... {len(lines) - LINES:,} more lines")] if len(lines) > LINES else []
    return f'<pre style="{PRE}">{"".join(rows + more)}</pre>'


def where(places: Places, row: list) -> str:
    """The user's lines of a line of a listing."""
    found = [places.rows[number] for number in (row[1] if len(row) > 1 else ())]
    return ", ".join(dict.fromkeys(f"{places.name(file)}:{line}" for file, line, *_ in found))


def highlighted(text: str) -> str:
    """A line of a jaxpr with its words, types and primitives in colours."""
    parts, at = [], 0
    for match in _TOKENS.finditer(text):
        hue = (WORD, TYPE, NAME)[match.lastindex - 1]  # type: ignore[operator]
        parts += [escape(text[at : match.start()]), colour(escape(match[0]), hue)]
        at = match.end()
    return "".join([*parts, escape(text[at:])])


# ---- trees


def tree(x: PyTreeDef) -> str:
    """The containers, each to be folded away, with the leaves in them."""
    title = head(colour("PyTreeDef", TYPE), f"{x.num_leaves:,} leaves, {x.num_nodes:,} nodes")
    return title + (branch("", x) if x.num_nodes <= NODES else listing(str(x)[: 100 * LINES]))


def branch(name: str, x: PyTreeDef) -> str:
    """A node under its name in the one around it."""
    label = f"{name}: " if name else ""
    data = x.node_data()
    if data is None:
        return f'<div style="margin-left:14px">{escape(label)}*</div>'
    kind, about = data
    children = x.children()
    named = list(map(repr, about)) if kind is dict else list(map(str, range(len(children))))
    inside = "".join(branch(n, child) for n, child in zip(named, children, strict=True))
    title = f"{label}{kind.__name__} of {len(children)}" if children else f"{label}{kind.__name__}"
    return f'<div style="margin-left:14px">{details(title, inside, True) if children else escape(title)}</div>'


# ---- functions


def jitted(x: JitFunction) -> str:
    """For which types the function was traced, and why again."""
    first, *lines = all_traces(x._fun, dict(x._calls)).splitlines()
    return head(colour("jit", WORD), first) + (listing("\n".join(lines)) if lines else "")


def stage(x: Stage) -> str:
    """The name of a function and the types of its arguments and results."""
    arguments = ", ".join(f"{name}: {a.str_short()}" for name, a in zip(x._names, x._avals, strict=True))
    results = ", ".join(a.str_short() for a in x._call.closed.out_avals)
    kind = colour(type(x).__name__, WORD)
    return head(kind, f"{x.fun_name}({arguments}) -> {results}")


def traced(x: Traced) -> str:
    """The types and the jaxpr."""
    return stage(x) + jaxpr(x.jaxpr)


def lowered(x: Lowered) -> str:
    """The types, the jaxpr, and the compiler's graph."""
    closed = x._call.closed
    graph = details("graph", listing(x.as_text())) if has_compiler() and is_small(closed) else ""
    return stage(x) + details("jaxpr", jaxpr(closed)) + graph


def compiled(x: Compiled) -> str:
    """The types, the memory, what is one pass over memory, and the steps."""
    closed = x._call.closed
    inside = native(x) if has_compiler() and x.runtime_executable() is not None else ""
    return stage(x) + inside + details("jaxpr", jaxpr(closed))


def native(x: Compiled) -> str:
    """What the compiler made of a function."""
    memory = x.memory_analysis()
    sizes = [("arguments", memory.argument_size_in_bytes), ("results", memory.output_size_in_bytes)]
    sizes += [("temporaries", memory.temp_size_in_bytes), ("machine code", memory.generated_code_size_in_bytes)]
    facts = f"<div>{quiet(', '.join(f'{name} {shown(size)}' for name, size in sizes))}</div>"
    if not is_small(x._call.closed):
        return facts
    return facts + listing(x.as_text("kernels")) + details("program", listing(x.as_text("program")))


def is_small(closed: ClosedJaxpr) -> bool:
    """Whether a program is planned again in no time."""
    return len(closed.eqns) <= EQUATIONS


FACES: dict[type, Callable[[Any], str]] = {
    ExtendedArray: keys,
    Array: array,
    ClosedJaxpr: jaxpr,
    Jaxpr: jaxpr,
    PyTreeDef: tree,
    JitFunction: jitted,
    Traced: traced,
    Lowered: lowered,
    Compiled: compiled,
}
