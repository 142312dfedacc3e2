"""The devices of a mesh as threads of this process: they meet, and read each other's memory.

Compiled programs run without the interpreter's lock, so that the devices compute side by side. Where devices wait for
one that will never come, since it has ended or waits elsewhere, that is found at once, and is an error.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from catena.core.context import context
from catena.core.errors import JaxRuntimeError
from catena.core.locks import after_fork, new_gate, new_lock
from catena.parallel.communicator import Communicator, Group, fold, speaking
from catena.parallel.execution import Local, deposit


class Stopped(Exception):
    """This device ends because another one has failed."""


class ThreadCommunicator(Communicator):
    """The connection of a device that is a thread; its ``gate`` is closed while it waits."""

    def __init__(self, sizes: Mapping, coordinates: Mapping):
        super().__init__(sizes, coordinates)
        self.team: Team | None = None  # those that run beside it
        self.gate = new_gate()

    def connect(self, members, rank):
        return ThreadGroup(self, members, rank)


class Meeting:
    """Where devices of a process meet: ``slots`` hold what each has brought, and for which line of the program;
    ``result`` what one of them makes of it for all.
    """

    def __init__(self, members: tuple):
        self.members = members
        self.slots: dict = {}
        self.result = None


class Team:
    """The devices of one run in this process: which of them wait, have ended, or have failed."""

    def __init__(self, devices: Sequence[ThreadCommunicator]):
        self.devices = {d.number: d for d in devices}
        self.meetings: dict[tuple, Meeting] = {}
        self.lock = new_lock()
        self.waiting: dict[int, Meeting] = {}
        self.ended: set[int] = set()
        self.errors: dict[int, BaseException] = {}
        for device in devices:
            device.team, device.groups = self, {}

    def meeting(self, group: tuple) -> Meeting:
        """Where those devices of a group meet that are in this process."""
        with self.lock:
            if group not in self.meetings:
                self.meetings[group] = Meeting(tuple(i for i in group if i in self.devices))
            return self.meetings[group]

    def wait(self, meeting: Meeting, number: int) -> None:
        """Return when all of a meeting have come.

        Raises:
          Stopped: a device has failed. JaxRuntimeError: some of them will never come.
        """
        device = self.devices[number]
        with self.lock:
            if self.errors:
                raise Stopped
            self.waiting[number] = meeting
            if all(self.waiting.get(i) is meeting for i in meeting.members):
                for i in meeting.members:
                    del self.waiting[i]
                    if i != number:
                        self.devices[i].gate.release()
                return
            self.check_progress()
        device.gate.acquire()
        if self.errors:
            raise Stopped

    def check_progress(self) -> None:
        """Raise where every device waits or has ended."""
        if self.waiting and len(self.waiting) + len(self.ended) == len(self.devices):
            lines = [f"  device {i} {self.state(d)}" for i, d in sorted(self.devices.items())]
            raise JaxRuntimeError(
                "the devices of a mesh do not meet: each collective must be reached by all devices along its axes, in "
                "the same order\n" + "\n".join(lines)
            )

    def state(self, device: Communicator) -> str:
        return "has ended" if device.number in self.ended else f"waits at {device.where}"

    def end(self, number: int, error: BaseException | None) -> None:
        """Note that a device has ended; if it failed, the others end too."""
        with self.lock:
            self.ended.add(number)
            try:
                if error is None and not self.errors:
                    self.check_progress()
            except JaxRuntimeError as found:
                error = found
            if error is not None:
                self.errors.setdefault(number, error)
                for i in self.waiting:
                    self.devices[i].gate.release()
                self.waiting.clear()


class LocalGroup(Group):
    """Devices of which some are threads of this process."""

    def __init__(self, device: ThreadCommunicator, members: tuple, rank: int):
        self.device, self.members, self.size, self.rank = device, members, len(members), rank
        self.meeting = device.team.meeting(members)

    def brought(self, x: np.ndarray) -> dict:
        """What all devices of the group in this process have brought, by their numbers.

        Raises:
          JaxRuntimeError: they have brought it for different things.
        """
        slots, number, where = self.meeting.slots, self.device.number, self.device.where
        slots[number] = x, where
        self.device.team.wait(self.meeting, number)
        for other, (theirs, line) in slots.items():
            if line != where or theirs.shape != x.shape:
                raise JaxRuntimeError(
                    f"the devices of a mesh do different things: device {number} is at {where} with an array of shape "
                    f"{x.shape}, device {other} at {line}, {theirs.shape}"
                )
        return {i: theirs for i, (theirs, _) in slots.items()}

    def wait(self) -> None:
        """Return when all devices of the group in this process have come."""
        self.device.team.wait(self.meeting, self.device.number)


class ThreadGroup(LocalGroup):
    """Devices that are all threads of this process."""

    def shared(self, x: np.ndarray, read: Callable):
        """What ``read`` makes of all arrays that the devices have brought, in order."""
        brought = self.brought(x)
        out = read([brought[i] for i in self.members])
        self.wait()  # from here on the others may use their memory again
        return out

    def gather(self, x):
        return self.shared(x, np.stack)

    def exchange(self, x):
        return self.shared(x, lambda all_rows: np.stack([rows[self.rank] for rows in all_rows]))

    def permute(self, x, pairs):
        sources = [source for source, destination in pairs if destination == self.rank]
        return self.shared(x, lambda slots: slots[sources[0]].copy() if sources else np.zeros_like(x))

    def broadcast(self, x, source):
        return self.shared(x, lambda slots: slots[source].copy())

    def scatter_sum(self, x):
        return self.shared(x, lambda all_rows: fold([rows[self.rank] for rows in all_rows], "sum"))


def team_of(sizes: Mapping) -> list[ThreadCommunicator]:
    """A device for each place of a mesh with these axes."""
    places = np.ndindex(*sizes.values())
    return [ThreadCommunicator(sizes, dict(zip(sizes, map(int, place), strict=True))) for place in places]


class Helper:
    """A thread that runs one task after another, and waits between them."""

    def __init__(self):
        self.tasks: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def start(self, task: Callable[[], None]):
        """Run a task, which raises nothing; a gate that opens when it is done."""
        gate = new_gate()
        self.tasks.put((task, gate))
        return gate

    def work(self) -> None:
        while True:
            task, gate = self.tasks.get()
            task()
            del task  # what it refers to
            idle.append(self)
            gate.release()


idle: list[Helper] = []
after_fork(idle.clear)  # their threads do not live on in the child


def helper() -> Helper:
    """A helper that has nothing to do."""
    try:
        return idle.pop()
    except IndexError:
        return Helper()


def on_all(devices: Sequence[ThreadCommunicator], work: Callable[[Communicator], None]) -> None:
    """Call ``work`` for every device, all at once; for the last one in this thread.

    Raises:
      What it raises on the device that failed first.
    """
    team, numbers = Team(devices), [d.number for d in devices]
    state = dict(vars(context)) if len(devices) > 1 else {}

    def device(number: int) -> None:
        error = None
        try:
            with speaking(team.devices[number]) as communicator:
                work(communicator)
        except Stopped:
            pass
        except BaseException as raised:  # raised again by the thread that waits for all
            error = raised
        team.end(number, error)

    def in_thread(number: int) -> None:
        vars(context).clear()
        vars(context).update(state)
        device(number)

    gates = [helper().start(functools.partial(in_thread, i)) for i in numbers[:-1]]
    device(numbers[-1])
    for gate in gates:
        gate.acquire()
    for error in team.errors.values():
        raise error


def run(local: Local, values) -> list[np.ndarray]:
    """The whole results of a program of one device, for whole arguments."""
    outs = [np.empty(*kind) for kind in local.out_types]

    def device(communicator: Communicator) -> None:
        parts = local.run(local.parts(values, communicator))
        for out, part, spec in zip(outs, parts, local.out_specs, strict=True):
            if local.returns(spec, communicator):
                deposit(out, part, spec, communicator)

    on_all(team_of(local.sizes), device)
    return outs
