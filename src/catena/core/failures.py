"""What checks look for in running programs, where they stand, and the exceptions that say what they found.

The kinds: ``index`` (indices out of bounds), ``nan`` and ``inf`` (made by an operation whose operands have none),
``div`` (a divisor is zero), ``overflow`` (a signed integer does not hold its value). The flags ``jax_debug_nans`` and
``jax_debug_infs`` look for ``any nan`` and ``any inf``, whatever the operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from catena.core.context import context
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple
from catena.core.source import PlainSource, Source

# The cell of a running program, in words of 8 bytes: the number of the site that failed first, from 1 on; a lock; the
# place in its array; the values that it shows; the iterations of the loops around it; and those of the loops now.
PLACE, VALUES, FROZEN, LIVE = 2, 3, 6, 14
MOST_LOOPS = 8
WORDS = LIVE + MOST_LOOPS

KINDS = ("index", "nan", "inf", "div", "overflow")
MADE = {"nan": "nan", "inf": "inf", "any nan": "nan", "any inf": "inf"}  # kinds of results, by what they look for


def checks_named(value: str | Iterable[str] | None) -> str:
    """The kinds that a user named, comma-separated in the order of ``KINDS``.

    Arguments:
      value: one kind, several with commas between them or as a tuple, ``"all"``, or ``None`` or ``""`` for none.
    Raises:
      ValueError: there is no such kind.
      TypeError: it is no string and no tuple of strings.
    """
    names = value.split(",") if isinstance(value, str) else () if value is None else value
    if not isinstance(names, tuple | list | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"checks must be a string such as 'nan' or 'index,div', or a tuple of such; got {value!r}")
    asked = {name.strip() for name in names} - {""}
    unknown = sorted(asked - {*KINDS, "all"})
    if unknown:
        raise ValueError(f"checks must be among {', '.join(map(repr, KINDS))} and 'all', got {unknown[0]!r}")
    return ",".join(kind for kind in KINDS if kind in asked or "all" in asked)


def kinds_in_force() -> frozenset:
    """What is looked for now, in this thread."""
    kinds = {*context.checks.split(",")} if context.checks else set()
    if context.debug_nans:
        kinds.add("any nan")
    if context.debug_infs:
        kinds.add("any inf")
    return frozenset(kinds)


class Loop(NamedTuple):
    """A loop around an operation: where it stands, and how many iterations of the user's an iteration of it does."""

    source: Source | PlainSource | None
    each: int = 1


class Site(NamedTuple):
    """A test in a program: what it looks for, in which operation, and what is known beforehand of the array it tests.

    ``shown`` are the dtypes of the values that it hands over: the element of the result and those of the operands, or
    the index. ``examples`` are the axes of the array that stand for a ``vmap``, outermost first, with their names.
    ``details`` are, of an index, the shape that is indexed, the axis that each component addresses, and the sizes of
    the windows.
    """

    kind: str
    operation: str
    source: Source | PlainSource | None
    shape: tuple
    shown: tuple = ()
    loops: tuple[Loop, ...] = ()
    examples: tuple[tuple[int, Any], ...] = ()
    details: tuple = ()

    @property
    def is_quiet(self) -> bool:
        """Whether a failure is only of interest where a result of the program holds it."""
        return self.kind.startswith("any")

    def failure(self, place: int, values: Sequence, iterations: Sequence[int] = ()) -> Exception:
        """The exception for a failure at this place, counted in rows, of the array."""
        size = math.prod(self.shape)
        rounds, place = divmod(place, size) if size else (0, 0)
        iterations = list(iterations)
        if rounds and iterations:  # the loop was vectorised: its iterations are an axis in front
            iterations[-1] = rounds
        position = tuple(int(i) for i in np.unravel_index(place, self.shape)) if self.shape else ()
        category, message = MESSAGES[MADE.get(self.kind, self.kind)](self, position, values)
        error = category(message)
        known = {"position": position, "iterations": tuple(iterations), "source": self.source, "values": tuple(values)}
        known |= {"examples": tuple(position[d] for d, _ in self.examples), "shape": self.shape, "axes": None}
        vars(error).update(known)
        if self.kind in MADE and len(values) > 1:
            error.add_note(f"The result is {values[0]}, of {' and '.join(map(str, values[1:]))}.")
        for note in self.notes(position, iterations):
            error.add_note(note)
        return error

    def notes(self, position: tuple, iterations: Sequence[int]) -> list[str]:
        """Where it was, beside the line: a sentence each."""
        found = []
        if self.source is not None and self.source.backward:
            found.append(f"It happened in the backward pass of line {self.source.line}.")
        axes = len(position) - self.has_components
        own = [i for d, i in enumerate(position[:axes]) if d not in dict(self.examples)]
        if own:
            found.append(f"It is the element {own} of the {'indices' if self.kind == 'index' else 'result'}.")
        found += [of_example(position[d], name) for d, name in self.examples]
        found += [of_iteration(i, loop) for loop, i in zip(self.loops, iterations, strict=False)][::-1]
        return found

    @property
    def has_components(self) -> bool:
        """Whether the last axis of the array are the components of an index."""
        return self.kind == "index" and self.details[-1] is None

    @property
    def place(self) -> str:
        """The user's line, with a preposition."""
        if self.source is None:
            return ""
        return f" at {self.source}{', in its derivative' if self.source.backward else ''}"


FOUND = (IndexError, FloatingPointError, ZeroDivisionError, OverflowError)  # what failures raise, with `iterations`


def of_example(i: int, name) -> str:
    return f"It is example {i} of vmap{'' if name is None else f' over {name!r}'}."


def of_iteration(i: int, loop: Loop) -> str:
    at = "" if loop.source is None else f" at {loop.source}"
    some = f"iteration {i}" if loop.each == 1 else f"iterations {i * loop.each} to {(i + 1) * loop.each - 1}"
    return f"It was in {some} of the loop{at}."


def note_iteration(error: Exception, i: int) -> None:
    """Have a failure on its way out of a loop know in which iteration it was."""
    if hasattr(error, "iterations"):
        error.iterations = (i, *error.iterations)


def note_loop(error: Exception, source) -> None:
    """Have a failure on its way out of an equation say in which iteration of it it was, if that is a loop."""
    if len(getattr(error, "iterations", ())) > getattr(error, "loops_named", 0):
        error.loops_named = len(error.iterations)  # type: ignore[attr-defined]
        error.add_note(of_iteration(error.iterations[0], Loop(source)))  # type: ignore[attr-defined]


def note_example(error: Exception, shape: tuple, dim: int, name) -> None:
    """Have a failure on its way out of a vmap know of which example it is: those of the result are along an axis."""
    axes, position = error.axes, error.position  # type: ignore[attr-defined]
    axis = dim if axes is None else axes.index(dim) if dim in axes else None
    if axis is not None and axis < len(position) and (axes is not None or shape == error.shape):  # type: ignore[attr-defined]
        error.examples = (position[axis], *error.examples)  # type: ignore[attr-defined]
        error.add_note(of_example(position[axis], name))


# ---- a category and a message for each kind, from the site, the position and the values


def _not_finite(site: Site, position: tuple, values: Sequence) -> tuple[type[Exception], str]:
    kind = MADE[site.kind]
    test = np.isnan if kind == "nan" else np.isinf
    holding = [i for i, x in enumerate(values[1:]) if np.asarray(x).dtype.kind in "fc" and test(x)]
    given = f"; operand {holding[0]} of it is {kind} already" if holding else ""
    return FloatingPointError, f"invalid value ({kind}) encountered in {site.operation}{site.place}{given}"


def _division(site: Site, position: tuple, values: Sequence) -> tuple[type[Exception], str]:
    return ZeroDivisionError, f"division by zero encountered in {site.operation}{site.place}"


def _out_of_bounds(site: Site, position: tuple, values: Sequence) -> tuple[type[Exception], str]:
    shape, axes, windows, component = site.details
    axis = axes[component if component is not None else position[-1]]
    index, size, window = int(values[0]), shape[axis], windows[axis]
    part = f" (a part of {window} begins there)" if window > 1 else ""
    before = f" ({index - size} before it was counted from the end)" if index < 0 else ""
    return IndexError, (
        f"index {index}{before} is out of bounds for axis {axis} with size {size}{part}, in {site.operation} of an "
        f"array of shape {shape}{site.place}"
    )


def _overflow(site: Site, position: tuple, values: Sequence) -> tuple[type[Exception], str]:
    result, *operands = values
    dtype = site.shown[0].name
    given = f" of {' and '.join(map(str, operands))}" if operands else ""
    return (
        OverflowError,
        f"integer overflow encountered in {site.operation}{given}, which became {result} in {dtype}{site.place}",
    )


MESSAGES = {"nan": _not_finite, "inf": _not_finite, "div": _division, "index": _out_of_bounds, "overflow": _overflow}


def new_cell(*_) -> np.ndarray:
    """The cell of a program that begins."""
    return np.zeros(WORDS, np.int64)


def found(sites: Sequence[Site], cell: np.ndarray) -> Exception | None:
    """The exception for what the cell of a program notes, if it notes something."""
    number = int(cell[0])
    if not number:
        return None
    site = sites[number - 1]
    values = [value_in(word, dtype) for word, dtype in zip(cell[VALUES:FROZEN], site.shown, strict=False)]
    return site.failure(int(cell[PLACE]), values, cell[FROZEN : FROZEN + len(site.loops)].tolist())


def value_in(word: np.int64, dtype: np.dtype):
    """The value that a word of a cell holds: floats as doubles, integers extended."""
    as_it_is = np.asarray(word).view({"f": np.float64, "u": np.uint64}.get(KIND[dtype], np.int64))
    return as_it_is.astype(dtype)[()]
