"""The watch over processes that work together: one that waits too long asks the others where they are.

Each process has a thread that answers, whatever the program is doing. A process that has waited for longer than the
limit asks all of them, and prints what they say, by their users' lines. Where some only take long to come, that is all,
and it goes on waiting. Where they can never meet, since one has ended or all wait at different places, the job ends.
An error that nobody catches ends it at once, after that process's traceback.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.core.traceback import is_internal, is_library
from catena.runtime.kernels import waits_in

MPI: Any = LazyModule("mpi4py.MPI")

ASK, STATE, ENDED = 1, 2, 3  # what messages of the watch are: a question, the answer, and a farewell
PERIOD = 0.2  # seconds between looks for messages
PATIENCE = 5.0  # seconds to wait for answers
NOTICE = 1.0  # seconds after which waiting for a process that has ended is an error


class State(NamedTuple):
    """What a process is doing: ``waits``, ``runs`` or ``has ended``; how many times it has waited before; and where."""

    what: str
    number: int
    where: str

    def to_bytes(self) -> np.ndarray:
        return np.frombuffer("\n".join((self.what, str(self.number), self.where)).encode(), np.uint8)

    @classmethod
    def from_bytes(cls, data: np.ndarray) -> State:
        what, number, where = data.tobytes().decode(errors="replace").split("\n", 2)
        return cls(what, int(number), where)

    def __str__(self) -> str:
        return f"{self.what} {self.where}".rstrip()


class Watch:
    """The watch of one process.

    Arguments:
      comm: MPI's communicator for messages of the watch alone.
      limit: the seconds after which a process that waits asks where the others are.
    """

    def __init__(self, comm, limit: float):
        self.comm, self.limit = comm, limit
        self.waits: tuple[float, str] | None = None  # since when, and what for
        self.inside: tuple[int, str] | None = None  # the collective that a program was seen in
        self.number = 0  # of times that the process has waited
        self.preempted = 0  # how often the process was told to end
        self.ending = False
        self.sent: list = []  # messages on their way
        self.stopped = threading.Event()
        self.main = threading.main_thread().ident
        faulthandler.enable()  # a fatal signal shows where it came
        self.hook = sys.excepthook
        sys.excepthook = self.fail
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.told_to_end)
        self.thread = threading.Thread(target=self.look, name="catena-watch", daemon=True)
        self.thread.start()

    # ---- what the program tells

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A block in which the process waits for others."""
        self.begin(what)
        try:
            yield
        finally:
            self.waits = None

    def begin(self, what: str) -> None:
        """Note that the process waits from now on; ``waits = None`` ends it."""
        self.number += 1
        self.waits = time.monotonic(), what

    def told_to_end(self, number: int, frame: FrameType | None) -> None:
        """What SIGTERM does: the first asks for a preemption point, the second ends the job."""
        self.preempted += 1
        if self.preempted == 1:
            self.say(
                "got SIGTERM: jax.experimental.multihost_utils.reached_preemption_sync_point(step) is True at the next "
                "step; a second SIGTERM ends the job now"
            )
            return
        self.say("got SIGTERM again, and ends the job, at")
        traceback.print_stack(frame)
        self.abort(128 + number)

    def fail(self, kind, error, trace) -> None:
        """An exception that nobody caught ends the job, after its traceback."""
        self.say("has failed, and ends the job:")
        self.hook(kind, error, trace)
        self.abort(1)

    def end(self, meet: Callable[[], bool]) -> None:
        """The program has come to its end: say so, and wait for the others by ``meet``."""
        self.ending = True  # of which the thread tells the others
        if not meet():
            self.say("has ended; the others have not, and it leaves without them")
        self.stopped.set()
        self.thread.join()
        sys.excepthook = self.hook

    # ---- the thread

    def look(self) -> None:
        """Answer questions, and ask where this process waits too long."""
        states: dict[int, State] = {}
        ended: set[int] = set()
        asked, told = 0.0, False
        while not self.stopped.wait(PERIOD):
            if self.ending and not told:
                told = True
                self.send_all(ENDED)
            self.read(states, ended)
            self.look_at_program()
            waits, now = self.waits, time.monotonic()
            if waits is None:
                asked = 0.0
                continue
            if asked < waits[0]:
                asked = 0.0
                states.clear()
            limit = min(self.limit, NOTICE) if ended else self.limit
            if now - max(waits[0], asked) > limit and not states:
                asked = now
                self.send_all(ASK)
            if asked and (len(states) == self.comm.Get_size() or now - asked > PATIENCE):
                self.judge(states, now - waits[0])
                states.clear()

    def look_at_program(self) -> None:
        """Note whether a compiled program waits in a collective that it has called itself."""
        found = waits_in()
        if found is not None and found != self.inside:
            self.begin(found[1])
        elif found is None and self.inside is not None:
            self.waits = None
        self.inside = found

    def read(self, states: dict, ended: set) -> None:
        """Read the messages that have come."""
        status = MPI.Status()
        while self.comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            source, tag = status.Get_source(), status.Get_tag()
            data = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            self.comm.Recv([data, MPI.BYTE], source, tag)
            if tag == ASK:
                self.send(source, STATE, self.state().to_bytes())
            elif tag == STATE:
                states[source] = State.from_bytes(data)
            else:
                ended.add(source)

    def send_all(self, tag: int) -> None:
        for i in range(self.comm.Get_size()):
            self.send(i, tag, np.empty(0, np.uint8))

    def send(self, to: int, tag: int, data: np.ndarray) -> None:
        """Send a message, which MPI may read later."""
        self.sent = [(request, kept) for request, kept in self.sent if not request.Test()]
        self.sent.append((self.comm.Isend([data, MPI.BYTE], to, tag), data))

    def state(self) -> State:
        """What this process is doing."""
        waits = self.waits
        if self.ending:
            return State("has ended", self.number, "")
        line = user_line(self.main)
        if waits is None:
            return State("runs", self.number, f"at {line}")
        return State("waits", self.number, f"for others ({waits[1]}) at {line}")

    def judge(self, states: dict[int, State], seconds: float) -> None:
        """Say where the processes are; end the job where they can never meet. Of those that wait, the first speaks."""
        waiting = [i for i, state in states.items() if state.what == "waits"]
        if min(waiting, default=-1) != self.comm.Get_rank():
            return
        missing = [i for i in range(self.comm.Get_size()) if i not in states]
        lines = [f"  process {i} {states.get(i, 'does not answer')}" for i in range(self.comm.Get_size())]
        ended = any(state.what == "has ended" for state in states.values())
        apart = len(waiting) == self.comm.Get_size() and len({states[i][1:] for i in waiting}) > 1
        hopeless = ended or apart or bool(missing)
        verdict = "they cannot meet, and the job ends" if hopeless else "it goes on waiting"
        self.say(f"has waited for {seconds:.0f} s; {verdict}:\n" + "\n".join(lines))
        if hopeless:
            self.abort(1)

    def say(self, what: str) -> None:
        """A line about this process."""
        print(f"catena: process {self.comm.Get_rank()} of {self.comm.Get_size()} {what}", file=sys.stderr, flush=True)

    def abort(self, status: int) -> None:
        """End all processes."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.comm.Abort(status)


def user_line(thread: int | None) -> str:
    """Where a thread is in its user's program."""
    frame = sys._current_frames().get(thread) if thread is not None else None
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_internal(name) and not is_library(name) and "mpi4py" not in name:
            return f"{name}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return "an unknown line"
