"""Memory that lies idle is given back: a thread looks every few seconds what nobody has used since it looked last.

What keeps memory for the next time (the pool of large arrays, the temporaries of compiled programs) is *watched*: its
``give_back_idle()`` is called at each look, and gives back what lay idle at the look before, and since. A program that
runs again and again so never waits for memory, and a process that waits for its user holds none that it does not use.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol

from catena.core import locks

PERIOD = 10.0  # seconds between two looks


class Keeper(Protocol):
    """What keeps memory for the next time."""

    def give_back_idle(self) -> None:
        """Gives back what nobody has used since the last call."""


_watched: weakref.WeakSet[Keeper] = weakref.WeakSet()
_lock = locks.new_lock()
_thread: threading.Thread | None = None


def watch(keeper: Keeper) -> None:
    """Looks after a keeper as long as it lives."""
    global _thread
    with _lock:
        _watched.add(keeper)
        if _thread is None:
            _thread = threading.Thread(target=_look_for_ever, daemon=True, name="catena-idle")
            _thread.start()


def look() -> None:
    """Has everything that is watched give back what lay idle since the last look."""
    with _lock:
        keepers = list(_watched)
    for keeper in keepers:
        keeper.give_back_idle()


def _look_for_ever() -> None:
    while True:
        time.sleep(PERIOD)
        look()


@locks.after_fork
def _forget_thread() -> None:
    """A child has its parent's memory, and none of its threads: the next that is watched begins anew."""
    global _thread
    _thread = None
