"""Events for those who watch a program: how long tracing and compiling took, and what users tell themselves.

Tracing and compiling a jitted function tell durations and time spans under ``/jax/core/compile/jaxpr_trace_duration``
and ``/jax/core/compile/backend_compile_duration``, with its name as ``fun_name``. Listeners run in the thread, and at
the time, of what they are told of.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.core import events as _events
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.transform.functions import check_callable as _check_callable


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell listeners that something happened.

    Arguments:
      event: its name.
      kwargs: what else is to be said of it.

    >>> from catena import monitoring
    >>> monitoring.register_event_listener(lambda event, **kwargs: print(event, kwargs))
    >>> monitoring.record_event("/mine/saved", step=3)
    /mine/saved {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    _events.plain.tell(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell listeners how long something took.

    Arguments:
      event: its name.
      duration: seconds.
      kwargs: what else is to be said of it.
    """
    _events.durations.tell(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tell listeners when something happened.

    Arguments:
      event: its name.
      start_time, end_time: seconds since the epoch, as `time.time` gives them.
      kwargs: what else is to be said of it.
    """
    _events.spans.tell(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell listeners a number.

    Arguments:
      event: its name.
      value: the number.
      kwargs: what else is to be said of it.
    """
    _events.scalars.tell(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, **kwargs)`` when something happens."""
    _register(_events.plain, callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, seconds, **kwargs)`` when it is known how long something took.

    >>> import catena as jax
    >>> found = []
    >>> jax.monitoring.register_event_duration_secs_listener(lambda event, seconds, **more: found.append(more))
    >>> jax.jit(lambda x: x + 1)(1).item()
    2
    >>> jax.monitoring.clear_event_listeners()
    >>> found[0]
    {'fun_name': '<lambda>'}
    """
    _register(_events.durations, callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, start, end, **kwargs)`` when something has happened."""
    _register(_events.spans, callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, value, **kwargs)`` when there is a number to tell."""
    _register(_events.scalars, callback)


def _register(listeners: _events.Listeners, callback: Callable) -> None:
    _check_callable(callback)
    listeners.append(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Call it no longer; a ValueError where it was not registered."""
    _events.remove(_events.plain, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Call it no longer; a ValueError where it was not registered."""
    _events.remove(_events.durations, callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call it no longer; a ValueError where it was not registered."""
    _events.remove(_events.spans, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Call it no longer; a ValueError where it was not registered."""
    _events.remove(_events.scalars, callback)


def clear_event_listeners() -> None:
    """Call nobody any longer."""
    for listeners in (_events.plain, _events.durations, _events.spans, _events.scalars):
        listeners.clear()


_open_door(globals(), "catena.monitoring")

__dir__ = _shown(globals())
