"""Arrays of which other processes hold parts: what this process has of them, and that it has not the rest."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from catena.core.array import Absent
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.placement import Placement

processes: Any = LazyModule("catena.parallel.processes")  # by which the others are asked


class Parts(Absent):
    """What an Array holds in place of a NumPy array: the parts that lie on the devices of this process, each by its
    index in the whole. It knows its type; any use of the data raises, but for that of a part.
    """

    __slots__ = ("placement", "shards")

    def __init__(self, aval, placement: Placement, shards: dict):
        self.aval, self.placement = aval, placement
        self.shards = shards  # by device

    def error(self) -> RuntimeError:
        """The error for the use of elements that are elsewhere."""
        return RuntimeError(
            f"the array of type {self.aval.str_short()} spans devices of other processes, so that its elements cannot "
            "be read here. Use jax.experimental.multihost_utils.process_allgather(x, tiled=True), which all processes "
            "must call, or x.addressable_shards, the parts of this process."
        )

    def __str__(self):
        weak = ", weak_type=True" if getattr(self.aval, "weak_type", False) else ""
        return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype}{weak})"

    def __format__(self, spec):
        return str(self)

    def copy(self) -> Parts:
        """Parts that nobody else deletes; nobody writes to them."""
        return Parts(self.aval, self.placement, dict(self.shards))

    def __getitem__(self, index) -> np.ndarray:
        """The part of this process with this index, slices as ``devices_indices_map`` gives them."""
        return part_at(self, [s for s in index if s is not Ellipsis])

    def whole(self) -> np.ndarray:
        """All of the array, for which all processes must ask."""
        return processes.gather(self)

    def moved(self, placement: Placement) -> Parts:
        """The array as it lies at another place that is in several processes, all of which must ask."""
        return processes.move(self, placement)


def part_at(parts: Parts, index) -> np.ndarray:
    """The part of this process that stands at an index of slices.

    Raises:
      RuntimeError: it is no part of this process.
    """
    asked = bounds(index, parts.aval.shape)
    for device, own in indices_here(parts.placement, parts.aval.shape).items():
        if bounds(own, parts.aval.shape) == asked:
            return parts.shards[device]
    raise parts.error()


def bounds(index, shape: tuple) -> tuple:
    """Where the slices of an index begin and end."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def indices_everywhere(placement: Placement, shape: tuple) -> dict:
    """For each device, the index of its part."""
    if placement.layout is None:
        return {d: (slice(None),) * len(shape) for d in placement.devices}
    return placement.layout.devices_indices_map(shape)


def indices_here(placement: Placement, shape: tuple) -> dict:
    """The same for the devices of this process."""
    return _indices_of(job.index, placement, tuple(shape))


@functools.lru_cache(1024)
def _indices_of(process: int, placement: Placement, shape: tuple) -> dict:
    found = indices_everywhere(placement, shape)
    return {d: index for d, index in found.items() if d.process_index == process}


def spans(placement: Placement) -> bool:
    """Whether processes hold arrays at this place in parts, or this one has nothing of them."""
    return job.shared and _spans(job.index, placement)


@functools.lru_cache(1024)
def _spans(process: int, placement: Placement) -> bool:
    here = [d.process_index == process for d in placement.devices]
    return not any(here) or not (all(here) or placement.layout.is_fully_replicated)


def is_apart(placement: Placement) -> bool:
    """Whether several processes hold arrays at this place, each a part; all of them say the same."""
    apart = len({d.process_index for d in placement.devices}) > 1
    return apart and not placement.layout.is_fully_replicated


def own_parts(value: np.ndarray, aval, placement: Placement) -> Parts:
    """What this process keeps of a whole."""
    shards = {d: np.array(value[index]) for d, index in indices_here(placement, value.shape).items()}
    return Parts(aval, placement, shards)


def at_place(value, aval, placement: Placement | None):
    """What an array of this type at ``placement`` holds whose value, whole or in parts, is ``value``. Where parts are
    to lie otherwise, processes send each other what they need, or all ask for the whole, if all have it then.
    """
    if type(value) is Parts:
        if placement is not None and same_place(value.placement, placement, aval.ndim):
            return value
        if placement is not None and is_apart(placement):
            return value.moved(placement)
        value = value.whole()
    return own_parts(value, aval, placement) if placement is not None and spans(placement) else value


def same_place(a: Placement, b: Placement, ndim: int) -> bool:
    """Whether arrays of so many axes lie the same way at both."""
    if a.layout is None or b.layout is None:
        return a.layout is b.layout and a.devices == b.devices
    return a.layout.is_equivalent_to(b.layout, ndim)
