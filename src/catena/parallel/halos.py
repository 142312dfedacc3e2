"""Windows of an axis that is split: what a device needs of its neighbours' parts, by permutations.

A *view* of an axis has elements of it from some offset on, and a filling where it reaches beyond. Slices, paddings and
rotations are views, and views of views are; so a stencil of padded and shifted arrays needs its halos once, whatever
the sizes in between.
"""

from __future__ import annotations

import numpy as np

from catena.core.named import NamedTuple
from catena.core.zeros import get_aval
from catena.lax.comparison import select_n
from catena.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from catena.lax.exchanges import ppermute
from catena.lax.join import concatenate
from catena.lax.named_axes import axis_index
from catena.lax.shape import broadcast_in_dim, iota
from catena.lax.slicing import pad, slice_in_dim


class View(NamedTuple):
    """A view of an axis: element ``i`` is its element ``i + offset`` where ``first <= i < last``, else a filling.

    Arguments:
      offset, size, first, last: as said; ``size`` elements in all. Positions are counted round the axis.
      filling: the scalar that is elsewhere, or ``None`` where nobody reads it.
      mark: what is equal where fillings are.
    """

    offset: int
    size: int
    first: int
    last: int
    filling: object = None
    mark: object = None

    def sliced(self, start: int, stop: int) -> View:
        """Elements ``start`` to ``stop`` of the view."""
        size = stop - start
        first, last = (min(max(x - start, 0), size) for x in (self.first, self.last))
        return self._replace(offset=self.offset + start, size=size, first=first, last=last)

    @property
    def is_full(self) -> bool:
        """Whether all elements are elements of the axis."""
        return self.first == 0 and self.last == self.size

    def padded(self, low: int, high: int, filling, mark) -> View | None:
        """The view with more elements in front and behind, or less; ``None`` if they are not filled alike."""
        view = self.sliced(max(-low, 0), self.size - max(-high, 0))
        low, high = max(low, 0), max(high, 0)
        if (low or high) and not (view.is_full or view.mark == mark):
            return None
        moved = {"offset": view.offset - low, "first": view.first + low, "last": view.last + low}
        new = {"filling": filling, "mark": mark} if low or high else {}
        return view._replace(size=view.size + low + high, **moved, **new)


def all_of(size: int) -> View:
    """An axis, as a view of itself."""
    return View(0, size, 0, size)


class Halo(NamedTuple):
    """What each device needs of others.

    Arguments:
      pieces: by the distance of the neighbour, which elements of its part are sent: ``(first, last)``.
      takers: by the distance, the devices that need them.
      starts: for each device where in the pieces, put together, its window begins.
    """

    pieces: dict
    takers: dict
    starts: list


def halo(begins: list[int], length: int, part: int, valid: tuple) -> Halo:
    """What devices need whose windows of ``length`` elements begin at these positions of an axis in parts of ``part``.
    The positions that are read are from ``valid[0]`` on, and before ``valid[1]``.
    """
    pieces: dict = {}
    takers: dict = {}
    needs = [(max(b, valid[0]), min(b + length, valid[1])) for b in begins]
    for k, (a, b) in enumerate(needs):
        for j in range(a // part, (b - 1) // part + 1) if a < b else ():
            own = max(a, j * part) - j * part, min(b, (j + 1) * part) - j * part
            old = pieces.get(j - k, own)
            pieces[j - k] = min(old[0], own[0]), max(old[1], own[1])
            takers.setdefault(j - k, []).append(k)
    for d in list(pieces):
        if d + 1 in pieces:  # what lies side by side is put together without a gap
            pieces[d], pieces[d + 1] = (pieces[d][0], part), (0, pieces[d + 1][1])
    at, where = 0, {}
    for d in sorted(pieces):
        where[d] = at - pieces[d][0]
        at += pieces[d][1] - pieces[d][0]
    starts = [where[a // part - k] + begins[k] - a // part * part if a < b else 0 for k, (a, b) in enumerate(needs)]
    return Halo(dict(sorted(pieces.items())), takers, starts)


def elements_sent(found: Halo, ways: int) -> int:
    """How many elements along the axis a device sends."""
    return sum(b - a for d, (a, b) in found.pieces.items() if d % ways)


def fetched(x, axis: int, names: tuple, found: Halo, length: int, ways: int):
    """The window of this device."""
    pieces = []
    for d, (a, b) in found.pieces.items():
        piece = slice_in_dim(x, a, b, axis=axis)
        if d % ways:
            pairs = [((k + d) % ways, k) for k in found.takers[d]]
            piece = ppermute(piece, names, pairs)
        pieces.append(piece)
    low = max(0, -min(found.starts))
    total = sum(b - a for a, b in found.pieces.values())
    high = max(0, max(found.starts) + length - total)
    if not pieces:
        pieces = [slice_in_dim(x, 0, 0, axis=axis)]
    row = pieces[0] if len(pieces) == 1 else concatenate(pieces, axis)
    if low or high:
        zero = np.zeros((), get_aval(x).dtype)
        row = pad(row, zero, [(low, high, 0) if i == axis else (0, 0, 0) for i in range(get_aval(x).ndim)])
    starts = [s + low for s in found.starts]
    if len(set(starts)) == 1:
        return slice_in_dim(row, starts[0], starts[0] + length, axis=axis)
    return dynamic_slice_in_dim(row, of_device(starts, names), length, axis)


def of_device(numbers: list[int], names: tuple):
    """This device's one of some numbers."""
    return dynamic_index_in_dim(np.array(numbers, np.int32), axis_index(names), 0, keepdims=False)


def halo_of_view(view: View, size: int, ways: int) -> Halo:
    """What it takes to split a view as its axis, of ``size`` elements, is split."""
    part, own = size // ways, view.size // ways
    begins = [k * own + view.offset for k in range(ways)]
    return halo(begins, own, part, (view.first + view.offset, view.last + view.offset))


def part_of_view(x, axis: int, names: tuple, view: View, size: int, ways: int):
    """This device's part of a view, given that of its axis."""
    own = view.size // ways
    found = fetched(x, axis, names, halo_of_view(view, size, ways), own, ways)
    if view.filling is None or view.is_full:
        return found
    begins = axis_index(names) * np.int32(own) if names else np.int32(0)
    where = iota(np.int32, own) + begins
    inside = (where >= np.int32(view.first)) & (where < np.int32(view.last))
    shape = get_aval(found).shape
    return select_n(broadcast_in_dim(inside, shape, (axis,)), broadcast_in_dim(view.filling, shape, ()), found)
