"""``f.profile(*args)``: what each step of a compiled function takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena.core.errors import CompileError
from catena.core.lazy import NO_COMPILER, LazyModule, has_compiler

compiler_profile = LazyModule("catena.compiler.native.profile")
page = LazyModule("catena.tools.page.document")


class Profile:
    """The steps of a compiled function and what they took; prints as a table, in which ``cache`` in place of
    a share of memory's peak says that a step was faster than memory is: its operands were in a cache.

    ``rows`` have ``what`` the step is, the user's lines as ``places``, how deep it is in loops and branches
    (``depth``), ``seconds`` of all its ``runs`` together, the ``bytes`` that one run reads and writes at most and its
    ``flops``, ``bytes_per_second`` and ``flops_per_second``, and the ``most_flops_per_second`` of products of its
    dtype. ``seconds`` is what the whole call took, ``ceilings`` what this machine does at most in a second, as measured
    (operations: of products of float32), ``closed`` the jaxpr.
    """

    def __init__(self, name: str, seconds: float, rows: Sequence[Any], ceilings: Any, closed: Any):
        self.name, self.seconds, self.rows, self.ceilings = name, seconds, tuple(rows), ceilings
        self.closed = closed

    def save(self, path: str | os.PathLike) -> None:
        """Write a page to look around in: the source beside what became of it, stage by stage, and what each step took.

        Arguments:
          path: where to; the page is one file, for any browser, and needs no network.

        >>> import os, tempfile
        >>> import catena as jax
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jax.jit(jax.numpy.sin).profile(1.0).save(os.path.join(folder, "sin.html"))
        ...     os.listdir(folder)
        ['sin.html']
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.of_profiles(self.name, [self]))

    def _repr_html_(self) -> str:
        return page.framed(page.of_profiles(self.name, [self]))

    def __repr__(self) -> str:
        most = self.ceilings
        head = (
            f"{self.name}: {duration(self.seconds)}; this machine copies {rate(most.bytes_per_second)}B/s and does "
            f"{rate(most.flops_per_second)}flop/s"
        )
        titles = ("time", "share", "runs", "B/s", "of peak", "flop/s", "of peak", "step")
        lines = [titles, *(self._line(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(titles) - 1)]
        shown = ["  ".join([*(x.rjust(n) for x, n in zip(line, widths, strict=False)), line[-1]]) for line in lines]
        return "\n".join([head, *("  " + line.rstrip() for line in shown)])

    def _line(self, row: Any) -> tuple[str, ...]:
        moved, done = row.bytes_per_second, row.flops_per_second
        place = f"   ({row.places})" if row.places else ""
        return (
            duration(row.seconds),
            share(row.seconds, self.seconds),
            str(row.runs),
            rate(moved),
            share(moved, self.ceilings.bytes_per_second) if moved <= self.ceilings.bytes_per_second else "cache",
            rate(done) if row.flops else "",
            share(done, row.most_flops_per_second) if row.flops else "",
            "  " * row.depth + row.what + place,
        )


REPEATS = 5


def profile(name: str, closed, values: Sequence[np.ndarray]) -> Profile:
    """The profile of a closed jaxpr on the values of its arguments: that of the quickest of some runs."""
    if not has_compiler():
        raise CompileError(NO_COMPILER)
    seconds, rows = compiler_profile.profile(closed, values, REPEATS)
    return Profile(name, seconds, rows, compiler_profile.ceilings(), closed)


def duration(seconds: float) -> str:
    """A time with a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def rate(number: float) -> str:
    """A number with a prefix of thousands."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if round(number / scale, 2) >= 1:
            return f"{number / scale:.3g} {prefix}"
    return f"{number:.3g} "


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""
