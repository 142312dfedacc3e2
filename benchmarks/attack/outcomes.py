"""How a case may end, and the small tools that cases are made of."""

import contextlib
import signal
import time

import numpy as np


class Wrong(BaseException):
    """A case gave what it must not give."""


class Enough(BaseException):
    """The time that a case gives to what may take for ever is over."""


REFUSALS = (
    TypeError, ValueError, MemoryError, BufferError, OverflowError, IndexError, NotImplementedError, ZeroDivisionError
)  # fmt: skip


def is_refusal(error: BaseException) -> bool:
    """Whether an error says in words that the user can read that something cannot be done."""
    kind = type(error)
    known = issubclass(kind, REFUSALS) or kind.__module__.startswith("catena") or kind is RuntimeError
    return known and bool(str(error))


def check(condition, what: str = "the result is wrong") -> None:
    """End the case as wrong unless the condition holds."""
    if not condition:
        raise Wrong(what)


def check_close(found, expected, tolerance: float = 1e-4) -> None:
    """End the case as wrong unless two arrays agree to rounding, in shape too."""
    found, expected = np.asarray(found), np.asarray(expected)
    check(found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}")
    close = np.allclose(found.astype(complex), expected.astype(complex), rtol=tolerance, atol=tolerance, equal_nan=True)
    check(close, f"{found.ravel()[:4]} instead of {expected.ravel()[:4]}")


PROBE = 0.03  # seconds of computing that tell how busy the machine is


def slowness() -> float:
    """How many times longer than on an idle machine this process computes now: of ``PROBE`` seconds of its own work,
    how long they take.
    """
    start, stop = time.perf_counter(), time.thread_time() + PROBE
    while time.thread_time() < stop:
        pass
    return max((time.perf_counter() - start) / PROBE, 1.0)


@contextlib.contextmanager
def at_most(seconds: float, most_late: float = 3.0):
    """Run a block that may take for ever for so long; a block that cannot be ended by then is wrong.

    It may end ``most_late`` seconds late, which is much, and on a busy machine as many times that as all takes longer.
    """

    def stop(*_):
        raise Enough

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.perf_counter()
    try:
        yield
    except Enough:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    late = time.perf_counter() - start - seconds
    check(late < most_late or late < most_late * slowness(), f"it could not be interrupted for {late:.1f} seconds")
