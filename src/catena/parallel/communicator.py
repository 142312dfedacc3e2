"""How a device speaks to the others of its mesh: the seam between programs of one device and what carries their data.

A program of one device knows only its own ``Communicator``, and of that the ``Group`` of those that it works with in a
collective. What carries the data (threads of a process, processes under MPI) is a subclass of each.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from catena.core.dtypes import is_inexact

FOLDS: dict[str, Callable] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
SMALL = 1 << 13  # bytes up to which everybody adds up everything: one exchange in place of two


class Group:
    """Devices that work together in a collective; every one of them calls the same methods in the same order.

    ``size`` says how many they are, ``rank`` which of them this one is. Operands are C-contiguous arrays that may be
    views of memory which is used again after the call; results are new arrays, or such views of the operand.
    """

    size: int
    rank: int

    def gather(self, x: np.ndarray) -> np.ndarray:
        """What all have, stacked in order of rank."""
        raise NotImplementedError

    def exchange(self, x: np.ndarray) -> np.ndarray:
        """Row ``i`` of the result is what number ``i`` has in the row with this one's number."""
        raise NotImplementedError

    def permute(self, x: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """What the one has that sends to this one, by pairs (source, destination); zeros if nobody does."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Return when all have called."""
        self.gather(np.zeros(0, np.uint8))

    def broadcast(self, x: np.ndarray, source: int) -> np.ndarray:
        """What number ``source`` has."""
        return self.gather(x)[source]

    def reduce(self, x: np.ndarray, operation: str) -> np.ndarray:
        """The sum of what all have (or ``"max"``, ``"min"``), folded in order of rank: the same bits for everyone."""
        if self.size == 1:
            return x
        if x.nbytes <= SMALL:
            return fold(self.gather(x), operation)
        each = -(-x.size // self.size)
        parts = np.zeros((self.size, each), x.dtype)
        parts.reshape(-1)[: x.size] = x.reshape(-1)
        whole = self.gather(fold(self.exchange(parts), operation))
        return whole.reshape(-1)[: x.size].reshape(x.shape)

    def scatter_sum(self, x: np.ndarray) -> np.ndarray:
        """Of the sum of what all have, the row with this one's number."""
        return fold(self.exchange(x), "sum")


def fold(rows, operation: str) -> np.ndarray:
    """Rows folded from the first to the last; floats of 16 bits and fewer are added up in float32 and rounded once."""
    function, dtype = FOLDS[operation], rows[0].dtype
    wide = np.dtype(np.float32) if operation == "sum" and is_small_float(dtype) else dtype
    with np.errstate(all="ignore"):
        total = np.array(rows[0], wide)
        for row in rows[1:]:
            function(total, row, out=total, casting="unsafe")
        return total.astype(dtype, copy=False)


def is_small_float(dtype: np.dtype) -> bool:
    """Whether this is a float of fewer than 32 bits, of NumPy's or not."""
    return dtype.itemsize < 4 and is_inexact(dtype)


class Communicator:
    """One device's connection to the others of a mesh.

    Arguments:
      sizes: of the axes that the program is mapped over, by name, in the mesh's order.
      coordinates: where this device stands along each.
    """

    def __init__(self, sizes: Mapping, coordinates: Mapping):
        self.sizes, self.coordinates = dict(sizes), dict(coordinates)
        self.where = ""  # the user's line of the collective that the device is in, for whoever asks why it waits
        self.number = self.number_of(coordinates)  # of this device, in row-major order of all axes
        self.groups: dict[tuple, Group] = {}

    def group(self, names: tuple, partition: tuple | None = None) -> Group:
        """The devices that differ from this one along these axes only, numbered in row-major order of the names.

        Arguments:
          names: axes of the mesh.
          partition: groups of these numbers, that of this device being meant; ``None`` for one group.
        """
        found = self.groups.get((names, partition))
        if found is None:
            found = self.groups[names, partition] = self.connect(*self.members(names, partition))
        return found

    def connect(self, members: tuple, rank: int) -> Group:
        """The group of the devices with these numbers, of which this one stands at ``rank``."""
        raise NotImplementedError

    def number_of(self, coordinates: Mapping) -> int:
        """The number of the device that stands there."""
        number = 0
        for name, size in self.sizes.items():
            number = number * size + coordinates[name]
        return number

    def index(self, names: tuple) -> int:
        """The number of this device among those along these axes."""
        index = 0
        for name in names:
            index = index * self.sizes[name] + self.coordinates[name]
        return index

    def members(self, names: tuple, partition: tuple | None) -> tuple[tuple, int]:
        """The numbers of the devices in the group, and which of them is this one."""
        shape = [self.sizes[name] for name in names]
        own = self.index(names)
        ranks = range(math.prod(shape)) if partition is None else next(p for p in partition if own in p)
        along = [dict(zip(names, np.unravel_index(i, shape), strict=True)) for i in ranks]
        return tuple(int(self.number_of({**self.coordinates, **c})) for c in along), list(ranks).index(own)


class Running(threading.local):
    """The communicator of the device whose program runs in this thread."""

    communicator: Communicator | None = None


running = Running()


class speaking:  # noqa: N801  (a context manager, used like a keyword)
    """Run the program of one device in this thread within a ``with`` block: its collectives use ``communicator``."""

    __slots__ = ("communicator", "before")

    def __init__(self, communicator: Communicator):
        self.communicator = communicator

    def __enter__(self):
        self.before, running.communicator = running.communicator, self.communicator
        return self.communicator

    def __exit__(self, *exc_info):
        running.communicator = self.before
