"""Events: what happens inside, told to listeners. See `catena.monitoring` for users."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

TRACE = "/jax/core/compile/jaxpr_trace_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"


class Listeners(list):
    """Functions that are called with every event of one kind; replaced, not changed, while events are told."""

    def tell(self, event: str, *values, **metadata) -> None:
        """Call all of them, in the order in which they came."""
        for listener in tuple(self):
            listener(event, *values, **metadata)


plain, durations, spans, scalars = Listeners(), Listeners(), Listeners(), Listeners()
attempts = Listeners()  # spans of what raised, too


@contextlib.contextmanager
def timed(event: str, **metadata: str | int) -> Iterator[None]:
    """Tell how long the ``with`` block took, where somebody listens; to ``attempts`` only where it raises."""
    if not (durations or spans or attempts):
        yield
        return
    start, begun = time.time(), time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - begun
        attempts.tell(event, start, start + seconds, **metadata)
    durations.tell(event, seconds, **metadata)
    spans.tell(event, start, start + seconds, **metadata)


def remove(listeners: Listeners, callback: Callable) -> None:
    """Take a listener out.

    Raises:
      ValueError: it is not there.
    """
    if callback not in listeners:
        raise ValueError(f"{callback!r} is not registered as a listener of these events")
    listeners.remove(callback)
