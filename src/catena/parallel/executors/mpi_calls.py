"""Collectives that compiled programs call themselves: functions of MPI by address, as routines of LAPACK are called.

That takes a few microseconds, where a call of Python takes ten times as much. It is possible where each process has one
device of the mesh. Communicators are filled in before the program first runs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from pathlib import Path

import numpy as np

from catena.core.context import context
from catena.core.lazy import LazyModule
from catena.parallel.communicator import Communicator
from catena.runtime.kernels import ForeignCall

MPI = LazyModule("mpi4py.MPI")
COMM, TYPE, OPERATION, TO, FROM, STATUS = range(6)  # the words of a call; the last ones are room for MPI_Status
WORDS = STATUS + 8
MOST = 2**31 - 1  # that MPI's functions count
IN, OUT, COMMUNICATOR, ELEMENT, FOLD = ("in", 0), ("out", 0), ("handle", COMM), ("handle", TYPE), ("handle", OPERATION)


class MpiCall(ForeignCall):
    """A collective of a program, along named axes of the mesh."""

    def __init__(self, function: str, arguments: tuple, element, params: dict, python):
        address = ctypes.cast(getattr(library(), function), ctypes.c_void_p).value
        super().__init__(address, arguments, WORDS, 8 * MPI._sizeof(MPI.Comm), python, params["where"])
        self.params, self.element = params, element

    def connect(self, communicator: Communicator) -> None:
        """Fill in who takes part, as seen from this process's device."""
        kind, detail = self.params["kind"], self.params["detail"]
        group = communicator.group(self.params["names"], self.params["partition"])
        words = self.cell.words.view(np.uint64)
        words[COMM] = MPI._handleof(group.comm if group.comm is not None else MPI.COMM_SELF)
        words[TYPE] = MPI._handleof(self.element)
        if kind in ("reduce", "scatter_sum"):
            words[OPERATION] = MPI._handleof(getattr(MPI, (detail or "sum").upper()))
        if kind == "permute":
            senders = {d: s for s, d in detail}
            words[TO], words[FROM] = (
                np.uint64(found.get(group.rank, MPI.PROC_NULL) % 2**64) for found in (dict(detail), senders)
            )


@functools.cache
def library() -> ctypes.CDLL:
    """The MPI that mpi4py has loaded."""
    MPI.COMM_WORLD  # noqa: B018 (it is loaded)
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = {line.split()[-1] for line in lines if "/libmpi" in line and ".so" in line}
    return ctypes.CDLL(min(found, key=len))


def native_call(shape: tuple, dtype: np.dtype, params: dict, python) -> MpiCall | None:
    """The call of MPI that a collective is, for an operand of this type; ``None`` where it takes more than one."""
    kind, size, detail = params["kind"], params["size"], params["detail"]
    count = math.prod(shape)
    n = count * dtype.itemsize
    if not n or n * size > MOST:
        return None
    element = MPI.BYTE
    if kind in ("reduce", "scatter_sum"):
        element = None if context.ordered_sums else native_type(dtype, detail or "sum")
        if element is None:
            return None
    if kind == "reduce":
        function, arguments = "MPI_Allreduce", (IN, OUT, count, ELEMENT, FOLD, COMMUNICATOR)
    elif kind == "scatter_sum":
        function, arguments = "MPI_Reduce_scatter_block", (IN, OUT, count // size, ELEMENT, FOLD, COMMUNICATOR)
    elif kind == "gather":
        function, arguments = "MPI_Allgather", (IN, n, ELEMENT, OUT, n, ELEMENT, COMMUNICATOR)
    elif kind == "exchange":
        function, arguments = "MPI_Alltoall", (IN, n // size, ELEMENT, OUT, n // size, ELEMENT, COMMUNICATOR)
    elif kind == "permute":  # where nobody sends to this device, its result stays as it was
        sent, got = (IN, n, ELEMENT, ("int", TO), 0), (OUT, n, ELEMENT, ("int", FROM), MPI.ANY_TAG)
        function, arguments = "MPI_Sendrecv", (*sent, *got, COMMUNICATOR, ("space", STATUS))
    else:
        return None
    return MpiCall(function, arguments, element, params, python)


def native_type(dtype: np.dtype, operation: str):
    """MPI's type of such elements, where it does with them what NumPy does: its extrema of floats lose NaNs."""
    kinds = "iufc" if operation == "sum" else "iu"
    return MPI._typedict.get(dtype.char) if dtype.kind in kinds and dtype.isbuiltin == 1 and dtype.char != "e" else None
