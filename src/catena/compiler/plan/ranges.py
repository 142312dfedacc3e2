"""Loops whose extent is not in a kernel's text: the kernel is given the range, and serves every extent.

Of the loops of a nest, the one that moves furthest through memory is usually the batch: its extent is in no stride.
If it is the outermost loop, or the outermost of those that are folded away, its range is an argument of the kernel's
function; so is that of a loop that is cut into chunks for the threads. Everything else about a nest is in its text,
and how its lanes cover the loop: whole blocks alone, or a rest too.
"""

from __future__ import annotations

from catena.compiler.graph import affine, thresholds
from catena.compiler.kernels.loops import Nest, is_idempotent
from catena.compiler.plan import cascades
from catena.core.named import NamedTuple


class Range(NamedTuple):
    """The iterations of a loop: from `start` to `stop`, names of integers. Of a reduced SIMD dimension they are whole
    blocks, and `extent` is where the dimension ends; None where whole blocks cover it.
    """

    start: str
    stop: str
    extent: str | None = None


class Open(NamedTuple):
    """The loops of a nest that are given their range: the outermost one, and the outermost that is folded away."""

    outer: int | None = None
    folded: int | None = None
    ragged: bool = False  # whether lanes along `folded` leave a rest

    @property
    def parameters(self) -> list[str]:
        names = ["lo", "hi"] if self.outer is not None else []
        names += ["from", "to"] if self.folded is not None else []
        return [f"i64 %{x}" for x in (*names, *(["extent"] if self.ragged else []))]

    def ranges(self) -> dict[int, Range]:
        """What the parameters are to the writer of the nest."""
        found = {} if self.outer is None else {self.outer: Range("%lo", "%hi")}
        if self.folded is not None:
            found[self.folded] = Range("%from", "%to", "%extent" if self.ragged else None)
        return found

    def whole(self, nest: Nest) -> list[int]:
        """The arguments for all iterations, in the order of the parameters."""
        out = [] if self.outer is None else [0, nest.extents[self.outer]]
        if self.folded is not None:
            n = nest.extents[self.folded]
            out += [0, n - n % nest.block(self.folded), *([n] if self.ragged else [])]
        return out

    def key(self, nest: Nest) -> tuple:
        """What the kernel's text still tells of the loops that are open."""
        kept = sum(d not in nest.reduced for d in nest.order)
        plan = cascades.plan(nest, kept) if self.folded is not None else None
        return (*self, plan)


def choose(nest: Nest, in_place: bool, cut: int | None = None) -> Open:
    """The open loops of a scheduled nest; `cut` is the loop that runs in chunks, if one does."""
    if not nest.order:
        return Open()
    outer: int | None = nest.order[len(nest.rows) - 1 if nest.rows else 0]
    folded = first_folded(nest)
    if outer == folded:
        outer = None
    if nest.run is not None:  # which has its own range
        folded = None
    furthest = max((d for d in (outer, folded) if d is not None), key=lambda d: _reach(nest, d))
    wanted = [d for d in (furthest, cut) if d is not None and may_open(nest, d, in_place)]
    outer = outer if outer in wanted else None
    folded = folded if folded in wanted else None
    return Open(outer, folded, folded is not None and thresholds.some(nest.extents[folded] % nest.block(folded)))


def first_folded(nest: Nest) -> int | None:
    """The outermost loop that is folded away."""
    return next((d for d in nest.order if d in nest.reduced), None)


def _reach(nest: Nest, d: int) -> int:
    return max((abs(affine.coefficient(a, d)) for a in nest.offsets()), default=0)


def may_open(nest: Nest, d: int, in_place: bool) -> bool:
    """Whether the nest's text can do without the extent of a loop: along lanes, blocks must fit."""
    if d == nest.short:
        return False
    if d != nest.vector:
        return d != nest.tile or d == nest.order[0]  # outside of the lanes, it is a loop like others
    n = nest.extents[d]
    if n <= nest.width or n < nest.block(d):
        return False
    return d in nest.reduced or nest.rest is not None or is_idempotent(nest, d, in_place) or n % nest.block(d) == 0
