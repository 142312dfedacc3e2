"""The devices of a mesh in processes that MPI has started; those of one process are threads of it.

Every process runs the same program. Of arrays that are whole in each, a device takes its part, and results are put
together in all; of arrays that span processes, each has its parts, and so of results. In a collective the devices of a
process meet, and one of them speaks to the other processes for all. Data move as bytes; only what MPI adds up as NumPy
does is added up by MPI.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

import numpy as np

from catena.core.context import context
from catena.core.device import devices
from catena.core.errors import JaxRuntimeError
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.mesh import Mesh
from catena.parallel.communicator import Communicator, fold
from catena.parallel.execution import Local, deposit
from catena.parallel.executors.agreement import agree
from catena.parallel.executors.mpi_calls import MpiCall, native_type
from catena.parallel.executors.threads import LocalGroup, ThreadCommunicator, on_all, team_of
from catena.parallel.specs import spec_names

MPI = LazyModule("mpi4py.MPI")
processes = LazyModule("catena.parallel.processes")


class ProcessGroup(LocalGroup):
    """Devices in several processes. ``here`` says for each process, in the order of MPI's ranks, which ranks it has."""

    def __init__(self, device: ProcessCommunicator, members: tuple, rank: int):
        super().__init__(device, members, rank)
        homes = list(dict.fromkeys(device.ranks[i] for i in members))
        self.here = [[k for k, i in enumerate(members) if device.ranks[i] == home] for home in homes]
        self.own = homes.index(device.ranks[members[rank]])
        self.leads = self.here[self.own][0] == rank
        self.comm = mpi_communicator(tuple(homes), members) if self.leads and len(homes) > 1 else None

    def shared(self, x: np.ndarray, speak: Callable):
        """What ``speak``, called by one device for all of its process with what they have brought by rank, returns."""
        brought = self.brought(x)
        if self.leads:
            with waiting(self.device.where):
                self.meeting.result = speak({k: brought[self.members[k]] for k in self.here[self.own]})
        self.wait()  # from here on the others may use their memory again
        return self.meeting.result

    def gather(self, x):
        return self.shared(x, self.all_rows)

    def all_rows(self, brought: dict) -> np.ndarray:
        """What all devices have, in order of rank."""
        own = np.stack([brought[k] for k in self.here[self.own]])
        if self.comm is None:
            return own
        out = np.empty((self.size, *own.shape[1:]), own.dtype)
        each = own.nbytes // len(own)
        self.comm.Allgatherv(as_bytes(own), [as_bytes(out), [each * len(ranks) for ranks in self.here]])
        return in_order(out, self.here)

    def exchange(self, x):
        return self.shared(x, self.exchanged)[self.rank]

    def exchanged(self, brought: dict) -> dict:
        """For each device of this process, what all others have for it, in order of rank."""
        own = self.here[self.own]
        if self.comm is None:
            return {k: np.stack([brought[i][k] for i in range(self.size)]) for k in own}
        sent = np.stack([brought[i][k] for ranks in self.here for k in ranks for i in own])  # by receiver, then sender
        each = sent.nbytes // len(sent)
        counts = [each * len(own) * len(ranks) for ranks in self.here]
        got = np.empty((len(own) * self.size, *sent.shape[1:]), sent.dtype)
        self.comm.Alltoallv([as_bytes(sent), counts], [as_bytes(got), counts])
        blocks = np.split(got, np.cumsum([len(own) * len(ranks) for ranks in self.here])[:-1])
        rows = [b.reshape(len(own), len(ranks), *sent.shape[1:]) for b, ranks in zip(blocks, self.here, strict=True)]
        return {k: in_order(np.concatenate([b[j] for b in rows]), self.here) for j, k in enumerate(own)}

    def permute(self, x, pairs):
        return self.shared(x, lambda brought: self.sent(brought, pairs))[self.rank]

    def sent(self, brought: dict, pairs) -> dict:
        """For each device of this process what it receives."""
        out = {k: np.zeros_like(x) for k, x in brought.items()}
        home = {k: i for i, ranks in enumerate(self.here) for k in ranks}
        requests = []
        for source, destination in pairs:
            if source in brought and destination in brought:
                out[destination][...] = brought[source]
            elif source in brought:
                requests.append(self.comm.Isend(as_bytes(brought[source]), home[destination], destination))
            elif destination in brought:
                requests.append(self.comm.Irecv(as_bytes(out[destination]), home[source], destination))
        MPI.Request.Waitall(requests)
        return out

    def broadcast(self, x, source):
        return self.shared(x, lambda brought: self.spread(brought, source))

    def spread(self, brought: dict, source: int) -> np.ndarray:
        """What one device has."""
        out = brought.get(source, next(iter(brought.values()))).copy()
        if self.comm is not None:
            self.comm.Bcast(as_bytes(out), next(i for i, ranks in enumerate(self.here) if source in ranks))
        return out

    def reduce(self, x, operation):
        kind = None if context.ordered_sums else native_type(x.dtype, operation)
        if kind is None:
            return super().reduce(x, operation)
        return self.shared(x, lambda brought: self.reduced(brought, operation, kind))

    def reduced(self, brought: dict, operation: str, kind) -> np.ndarray:
        """What all devices have, folded: first in each process, then by MPI."""
        own = fold(list(brought.values()), operation)
        if self.comm is not None:
            self.comm.Allreduce(MPI.IN_PLACE, [own, kind], getattr(MPI, operation.upper()))
        return own


def waiting(where: str):
    """A ``with`` block in which this process waits for others; if there is a watch over them, it knows."""
    return processes.waiting(where) if job.shared else NOBODY


class Nobody:
    """A ``with`` block of which nobody knows."""

    def __enter__(self):
        return None

    def __exit__(self, *exc_info):
        return None


NOBODY = Nobody()


def as_bytes(x: np.ndarray) -> np.ndarray:
    """The memory of an array."""
    return x.reshape(-1).view(np.uint8)


def in_order(rows: np.ndarray, here: list) -> np.ndarray:
    """Rows that stand by process, in order of rank."""
    ranks = [k for own in here for k in own]
    return rows if ranks == sorted(ranks) else rows[np.argsort(ranks)]


@functools.cache
def mpi_communicator(ranks: tuple, members: tuple):
    """MPI's communicator of these processes, for the devices with these numbers, which are in them. Each group of
    devices has its own: in every process another device may speak for it, at the same time as others for other groups.
    """
    world = MPI.COMM_WORLD
    tag = zlib.crc32(repr(members).encode()) % world.Get_attr(MPI.TAG_UB)
    return world.Create_group(world.Get_group().Incl(ranks), tag)


class ProcessCommunicator(ThreadCommunicator):
    """The connection of a device to devices in other processes; ``ranks`` says in which process each device is."""

    ranks: tuple

    def connect(self, members, rank):
        return ProcessGroup(self, members, rank)


@functools.cache
def devices_here(mesh) -> list[ProcessCommunicator]:
    """The devices of a mesh that are in this process.

    Raises:
      JaxRuntimeError: there are not enough processes.
    """
    ranks = ranks_of(mesh)
    world = MPI.COMM_WORLD
    if max(ranks) >= world.Get_size():
        raise JaxRuntimeError(
            f"{mesh!s} has {mesh.size} devices, and the executor mpi needs a process for each, got {world.Get_size()}: "
            f"start the program by mpiexec -n {mesh.size}, or set jax_executor to vectorised"
        )
    found = []
    for plain in team_of(mesh.shape):
        if ranks[plain.number] == world.Get_rank():
            device = ProcessCommunicator(mesh.shape, plain.coordinates)
            device.ranks = ranks
            found.append(device)
    return found


def ranks_of(mesh) -> tuple:
    """The processes that the devices of a mesh are in, in its order: as they say, or where nobody has counted
    processes, one after the other.
    """
    if not job.shared:
        return tuple(range(mesh.size))
    flat = mesh.devices.flat if isinstance(mesh, Mesh) else devices()[: mesh.size]
    return tuple(d.process_index for d in flat)


def place_alone(mesh) -> tuple | None:
    """Where this process's device stands along the axes of a mesh, if every process has one at most, and this has."""
    ranks = ranks_of(mesh)
    here = devices_here(mesh)
    return tuple(here[0].coordinates.items()) if here and len(set(ranks)) == len(ranks) else None


def prepare(communicator: Communicator, local: Local) -> None:
    """Before a program first runs: all must have the same, and its calls of MPI are told who takes part."""
    if not is_prepared(communicator, local):
        agree(communicator, local)
        for call in local.program.executable.parts.externals if hasattr(local.program.executable, "parts") else ():
            if isinstance(call, MpiCall):
                call.connect(communicator)
        local.closed.memo[prepare, communicator] = True


def is_prepared(communicator: Communicator, local: Local) -> bool:
    """Whether all have the same program, and its calls of MPI know who takes part."""
    return (prepare, communicator) in local.closed.memo


def run_on(devices: list, local: Local, parts: Callable) -> dict[int, list]:
    """The parts of results that devices of this process have, by their numbers.

    Arguments:
      devices: those of the mesh that are here.
      local: the program.
      parts: from a device to the parts of arguments that it has.
    """
    found: dict[int, list] = {}

    def device(communicator: Communicator) -> None:
        prepare(communicator, local)
        found[communicator.number] = local.run(parts(communicator))

    on_all(devices, device)
    return found


def run(local: Local, values) -> list[np.ndarray]:
    """The whole results of a program of one device, for whole arguments that every process has."""
    if not devices_here(local.region.mesh):
        return local.run_as_one(values)
    outs: list = []

    def device(communicator: Communicator) -> None:
        prepare(communicator, local)
        parts = local.run(local.parts(values, communicator))
        found = [
            together(part, spec, kind, local.region, communicator)
            for part, spec, kind in zip(parts, local.out_specs, local.out_types, strict=True)
        ]
        outs[:] = found  # the same from each

    on_all(devices_here(local.region.mesh), device)
    return outs


def together(part: np.ndarray, spec, kind: tuple, region, own: Communicator) -> np.ndarray:
    """A whole result, of which every device has a part."""
    names, others = spec_names(spec), region.others(spec_names(spec))
    part = np.ascontiguousarray(part).reshape(part.shape)
    own.where = "putting results together"
    if others and not region.typed:  # then nothing says that they have the same
        part = own.group(others).broadcast(part, 0)
    if not names:
        return part
    out = np.empty(*kind)
    rows = own.group(names).gather(part)
    for row, along in zip(rows, np.ndindex(*[own.sizes[name] for name in names]), strict=True):
        deposit(out, row, spec, Communicator(own.sizes, {**own.coordinates, **dict(zip(names, along, strict=True))}))
    return out
