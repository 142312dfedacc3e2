"""Locks of the process, and what is shared work between its threads.

No lock is held while a user's code runs (functions, rules, flatten functions, ``__eq__`` and ``__hash__``): such code
may wait for another thread, which may need the lock. What depends on a user's code is done by every thread that asks,
and ``dict.setdefault`` lets the first result win. What is left to lock is short and ours. A collection of garbage may
run somebody's finaliser in any line, so a lock may be taken again by the thread that has it.

Of a process's threads only one lives on in the child of a fork. A lock that another held would stay locked there for
ever, so all locks are made here, and are free in the child.
"""

import functools
import os
import threading
import weakref
from contextlib import AbstractContextManager

_locks: weakref.WeakSet = weakref.WeakSet()


def new_lock():
    """A lock that its thread may take again, free in the child of a fork."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def new_gate():
    """A closed gate: a thread waits for it (``acquire``) until another opens it (``release``). It belongs to what the
    threads of one run do together, of which nothing lives on in the child of a fork.
    """
    gate = threading.Lock()
    gate.acquire()
    return gate


def after_fork(renew) -> None:
    """Have ``renew()`` called in every child of a fork, where processes fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


_held: list[AbstractContextManager] = []  # for the time of a fork, in this order


def hold_during_fork(lock: AbstractContextManager) -> None:
    """Take a lock for the time of every fork, which so waits for what is done under it.

    For locks of other packages, around state that is of no use half changed. Nothing else may be waited for under it.
    """
    _held.append(lock)


class Loading:
    """Imports that a fork waits for, within ``with loading:``; the import system's locks stay as they are in the child.

    It is no lock: threads load at the same time, since an import may wait for another thread's.
    """

    PATIENCE = 20  # seconds that a fork waits

    def __init__(self):
        self._changed, self._depth = threading.Condition(), {}  # imports of each thread
        _held.insert(0, self._Fork(self))

    def __enter__(self):
        with self._changed:
            me = threading.get_ident()
            self._depth[me] = self._depth.get(me, 0) + 1

    def __exit__(self, *exc_info):
        with self._changed:
            me = threading.get_ident()
            self._depth[me] -= 1
            if not self._depth[me]:
                del self._depth[me]
            self._changed.notify_all()

    class _Fork:
        def __init__(self, loading):
            self.loading = loading

        def __enter__(self):
            me, changed, depth = threading.get_ident(), self.loading._changed, self.loading._depth
            changed.acquire()
            changed.wait_for(lambda: not depth.keys() - {me}, Loading.PATIENCE)

        def __exit__(self, *exc_info):
            self.loading._changed.release()


def _before_fork() -> None:
    for lock in _held:
        lock.__enter__()


def _after_fork() -> None:
    for lock in reversed(_held):
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@after_fork
def _free_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()


loading = Loading()


def made_once(make):
    """``functools.cache`` for what there must be only one of: of threads that ask at the same time, one makes it.

    ``make`` runs under a lock.
    """
    lock, cached = new_lock(), functools.cache(make)

    @functools.wraps(make)
    def made(*args):
        with lock:
            return cached(*args)

    return made


class Shared:
    """Work that is done once for all threads that ask for it at the same time; it must not call a user's code.

    Nothing is remembered when it is done, so ``shared(key, make)`` is a call of ``make`` that several threads share.
    """

    def __init__(self):
        self._running: dict = {}
        after_fork(self._running.clear)

    def __call__(self, key, make):
        """The result of ``make()``, from the thread that makes it already if there is one."""
        mine = _Work()
        try:
            work = self._running.setdefault(key, mine)
            if work is mine:
                work.result = (make(),)
            elif work.thread != threading.get_ident():  # else a finaliser asks, in the middle of the work itself
                work.done.wait()
            return work.result[0] if work.result else make()  # where it failed for another, this thread says why
        finally:
            if self._running.get(key) is mine:
                del self._running[key]
            mine.done.set()


class _Work:
    """What a thread is doing: ``result`` is empty until it is done."""

    __slots__ = ("done", "result", "thread")

    def __init__(self):
        self.done, self.result, self.thread = threading.Event(), (), threading.get_ident()
