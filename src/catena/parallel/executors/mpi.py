"""The devices of a mesh as processes that MPI has started: one rank a device, in order of the mesh.

Every process runs the same program. Where arrays are whole in each, a rank takes its part of them, and results are put
together in all. Data move as bytes; only what MPI knows how to add is added by MPI.
"""

from __future__ import annotations

import functools

import numpy as np

from catena.core.context import context
from catena.core.device import process_count
from catena.core.errors import JaxRuntimeError
from catena.core.lazy import LazyModule
from catena.core.mesh import Mesh
from catena.parallel.communicator import Communicator, Group, speaking
from catena.parallel.execution import Local, place
from catena.parallel.executors.agreement import agree
from catena.parallel.specs import spec_names

MPI = LazyModule("mpi4py.MPI")


class ProcessGroup(Group):
    """Devices that are processes, and MPI's communicator of them."""

    def __init__(self, comm):
        self.comm, self.size, self.rank = comm, comm.Get_size(), comm.Get_rank()

    def gather(self, x):
        out = np.empty((self.size, *x.shape), x.dtype)
        self.comm.Allgather(as_bytes(x), as_bytes(out))
        return out

    def exchange(self, x):
        out = np.empty_like(x)
        self.comm.Alltoall(as_bytes(x), as_bytes(out))
        return out

    def permute(self, x, pairs):
        out = np.zeros_like(x)
        to = [destination for source, destination in pairs if source == self.rank]
        of = [source for source, destination in pairs if destination == self.rank]
        nobody = MPI.PROC_NULL
        self.comm.Sendrecv(as_bytes(x), to[0] if to else nobody, 0, as_bytes(out), of[0] if of else nobody, 0)
        return out

    def broadcast(self, x, source):
        out = x.copy()
        self.comm.Bcast(as_bytes(out), source)
        return out

    def barrier(self):
        self.comm.Barrier()

    def reduce(self, x, operation):
        kind = None if context.ordered_sums else native_type(x.dtype, operation)
        if kind is None:
            return super().reduce(x, operation)
        out = np.empty_like(x)
        self.comm.Allreduce([x, kind], [out, kind], getattr(MPI, operation.upper()))
        return out


def as_bytes(x: np.ndarray) -> np.ndarray:
    """The memory of an array."""
    return x.reshape(-1).view(np.uint8)


def native_type(dtype: np.dtype, operation: str):
    """MPI's type of such elements, where it does with them what NumPy does: its extrema of floats lose NaNs."""
    kinds = "iufc" if operation == "sum" else "iu"
    return MPI._typedict.get(dtype.char) if dtype.kind in kinds and dtype.isbuiltin == 1 and dtype.char != "e" else None


@functools.cache
def communicator_of(ranks: tuple):
    """MPI's communicator of these processes; all of them call, and nobody else."""
    world = MPI.COMM_WORLD
    return world.Create_group(world.Get_group().Incl(ranks), sum(ranks) % 1024)


class ProcessCommunicator(Communicator):
    """The connection of a device that is a process."""

    def __init__(self, mesh, ranks: tuple, number: int):
        place = np.unravel_index(number, tuple(mesh.shape.values()))
        super().__init__(mesh.shape, dict(zip(mesh.shape, map(int, place), strict=True)))
        self.ranks = ranks

    def connect(self, members, rank):
        return ProcessGroup(communicator_of(tuple(self.ranks[i] for i in members)))


@functools.cache
def communicator(mesh) -> Communicator | None:
    """The connection of this process's device of a mesh; ``None`` where it has none.

    Raises:
      JaxRuntimeError: there are fewer processes than devices, or a process has several.
    """
    ranks = ranks_of(mesh)
    world = MPI.COMM_WORLD
    if len(set(ranks)) < len(ranks) or max(ranks) >= world.Get_size():
        raise JaxRuntimeError(
            f"{mesh!s} has {mesh.size} devices, and the executor mpi needs a process for each, got {world.Get_size()}: "
            f"start the program by mpiexec -n {mesh.size}, or set jax_executor to vectorised"
        )
    own = world.Get_rank()
    return ProcessCommunicator(mesh, ranks, ranks.index(own)) if own in ranks else None


def ranks_of(mesh) -> tuple:
    """The processes that the devices of a mesh are in, in its order."""
    if isinstance(mesh, Mesh) and process_count() > 1:
        return tuple(d.process_index for d in mesh.devices.flat)
    return tuple(range(mesh.size))


def run(local: Local, values) -> list[np.ndarray]:
    """The whole results of a program of one device, for whole arguments that every process has."""
    found = communicator(local.region.mesh)
    if found is None:
        return local.run_as_one(values)
    with speaking(found):
        agree(found, local)
        parts = local.run(local.parts(values, found))
        return [
            together(part, spec, kind, local.region, found)
            for part, spec, kind in zip(parts, local.out_specs, local.out_types, strict=True)
        ]


def together(part: np.ndarray, spec, kind: tuple, region, own: Communicator) -> np.ndarray:
    """A whole result, of which every process has a part."""
    names, others = spec_names(spec), region.others(spec_names(spec))
    part = np.ascontiguousarray(part).reshape(part.shape)
    if others and not region.typed:  # then nothing says that they have the same
        part = own.group(others).broadcast(part, 0)
    if not names:
        return part
    out = np.empty(*kind)
    rows = own.group(names).gather(part)
    for row, along in zip(rows, np.ndindex(*[own.sizes[name] for name in names]), strict=True):
        device = Communicator(own.sizes, {**own.coordinates, **dict(zip(names, along, strict=True))})
        out[place(spec, part.shape, device)] = row
    return out
