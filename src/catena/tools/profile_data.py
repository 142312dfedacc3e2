"""Traces in the format of XLA's profilers (``xplane.pb``): planes of lines of events, as a protocol buffer.

Source: the message ``XSpace`` of https://github.com/openxla/xla/blob/main/xla/tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from catena.core import protobuf
from catena.core.errors import JaxRuntimeError
from catena.tools.text_profile import serialized

# Fields: of a space, a plane, a line, an event, a statistic.
_PLANES = 1
_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES, _STATS = 2, 3, 4, 5, 6
_TIME, _EVENTS = 3, 4
_ID, _OFFSET, _DURATION, _EVENT_STATS = 1, 2, 3, 4
_STAT_ID, _DOUBLE, _UNSIGNED, _SIGNED, _TEXT, _DATA, _REFERENCE = 1, 2, 3, 4, 5, 6, 7


def _all(found: list, field: int) -> list:
    return [value for number, value in found if number == field]


def _one(found: list, field: int, default: Any) -> Any:
    return next(iter(_all(found, field)[-1:]), default)


def _names(found: list, field: int) -> dict[int, str]:
    """A table of names by numbers: its items are pairs of the number and a message that has the name."""
    table = {}
    for item in _all(found, field):
        pair = list(protobuf.fields(item))
        table[_one(pair, 1, 0)] = _one(list(protobuf.fields(_one(pair, 2, b""))), _NAME, b"").decode()
    return table


def _stats(found: list, field: int, names: dict[int, str]) -> Iterator[tuple[str, Any]]:
    for item in _all(found, field):
        parts = list(protobuf.fields(item))
        name = names.get(_one(parts, _STAT_ID, 0), "")
        for number, value in parts:
            if number in (_DOUBLE, _UNSIGNED, _DATA):
                yield name, value
            elif number == _SIGNED:
                yield name, protobuf.signed(value)
            elif number == _TEXT:
                yield name, value.decode()
            elif number == _REFERENCE:
                yield name, names.get(value, "")


class ProfileEvent:
    """Something that happened."""

    __slots__ = ("name", "start_ns", "duration_ns", "_found", "_stat_names")

    def __init__(self, found: list, names: dict[int, str], stat_names: dict[int, str], start: float):
        self._found, self._stat_names = found, stat_names
        self.name = names.get(_one(found, _ID, 0), "")
        self.start_ns = start + protobuf.signed(_one(found, _OFFSET, 0)) / 1000
        self.duration_ns = protobuf.signed(_one(found, _DURATION, 0)) / 1000

    @property
    def end_ns(self) -> float:
        """When it ended, in nanoseconds."""
        return self.start_ns + self.duration_ns

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """What else is known of it: names and values."""
        return _stats(self._found, _EVENT_STATS, self._stat_names)


class ProfileLine:
    """What happened one after the other, such as in a thread."""

    __slots__ = ("name", "_found", "_names", "_stat_names")

    def __init__(self, found: list, names: dict[int, str], stat_names: dict[int, str]):
        self._found, self._names, self._stat_names = found, names, stat_names
        self.name = _one(found, _NAME, b"").decode()

    @property
    def events(self) -> Iterator[ProfileEvent]:
        """Its events."""
        start = protobuf.signed(_one(self._found, _TIME, 0))
        for item in _all(self._found, _EVENTS):
            yield ProfileEvent(list(protobuf.fields(item)), self._names, self._stat_names, start)


class ProfilePlane:
    """What one device, or the host, did."""

    __slots__ = ("name", "_found", "_stat_names")

    def __init__(self, found: list):
        self._found, self._stat_names = found, _names(found, _STAT_NAMES)
        self.name = _one(found, _NAME, b"").decode()

    @property
    def lines(self) -> Iterator[ProfileLine]:
        """Its lines."""
        names = _names(self._found, _EVENT_NAMES)
        return (ProfileLine(list(protobuf.fields(x)), names, self._stat_names) for x in _all(self._found, _LINES))

    @property
    def stats(self) -> Iterator[tuple[str, Any]]:
        """What is known of it: names and values."""
        return _stats(self._found, _STATS, self._stat_names)


class ProfileData:
    """A trace that was written to ``xplane.pb``.

    Arguments:
      serialized_xspace: the bytes of the file.
    Raises:
      RuntimeError: they are no trace.

    >>> import os, tempfile
    >>> import catena as jax
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder), jax.profiler.TraceAnnotation("load", rows=3):
    ...         pass
    ...     (file,) = [os.path.join(f, n) for f, _, names in os.walk(folder) for n in names if n.endswith(".pb")]
    ...     plane = jax.profiler.ProfileData.from_file(file).find_plane_with_name("/host:CPU")
    >>> [(event.name, list(event.stats)) for line in plane.lines for event in line.events]
    [('load', [('rows', 3)])]
    """

    __slots__ = ("_planes",)

    def __init__(self, serialized_xspace: bytes):
        try:
            found = list(protobuf.fields(bytes(serialized_xspace)))
            self._planes = [ProfilePlane(list(protobuf.fields(item))) for item in _all(found, _PLANES)]
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            raise RuntimeError(f"these bytes are no profile: {error}") from error

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        """The trace in these bytes."""
        return cls(serialized_xspace)

    @classmethod
    def from_file(cls, proto_file_path: str) -> ProfileData:
        """The trace in a file.

        Raises: JaxRuntimeError: it cannot be read.
        """
        try:
            data = Path(proto_file_path).read_bytes()
        except OSError as error:
            raise JaxRuntimeError(f"NOT_FOUND: {proto_file_path}: {error.strerror}") from error
        return cls(data)

    @classmethod
    def from_text_proto(cls, text: str, /) -> ProfileData:
        """The trace in the text form of protocol buffers.

        Raises: ValueError: the text is none; it says on which line.
        """
        return cls(serialized(text))

    @staticmethod
    def text_proto_to_serialized_xspace(text: str, /) -> bytes:
        """The bytes of a trace that is in the text form of protocol buffers.

        Raises: ValueError: the text is none; it says on which line.
        """
        return serialized(text)

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """Its planes."""
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of a name, or None."""
        return next((plane for plane in self._planes if plane.name == name), None)


# ---- writing


class _Plane:
    """A plane that is being written: names are numbered as they come."""

    def __init__(self, name: str):
        self.parts, self.events, self.statistics = [protobuf.message(_NAME, name)], {}, {}

    def stat(self, field: int, name: str, value: Any) -> bytes:
        """A statistic, as a field of what it belongs to."""
        head = protobuf.number(_STAT_ID, self.statistics.setdefault(name, len(self.statistics) + 1))
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            return protobuf.message(field, head + protobuf.number(_SIGNED, value))
        if isinstance(value, float):
            return protobuf.message(field, head + protobuf.double(_DOUBLE, value))
        return protobuf.message(field, head + protobuf.message(_TEXT, str(value)))

    def line(self, name: str, events: Iterable[dict], began: float) -> None:
        """A line of events in the Trace Event format, their times since ``began``, in seconds since the epoch."""
        parts = [protobuf.message(_NAME, name)]
        for e in events:
            found = [protobuf.number(_ID, self.events.setdefault(e["name"], len(self.events) + 1))]
            found.append(protobuf.number(_OFFSET, max(0, round((e["ts"] - began * 1e6) * 1e6))))
            found.append(protobuf.number(_DURATION, max(0, round(e["dur"] * 1e6))))
            found += [self.stat(_EVENT_STATS, k, v) for k, v in e["args"].items()]
            parts.append(protobuf.message(_EVENTS, b"".join(found)))
        self.parts.append(protobuf.message(_LINES, b"".join(parts)))

    def finish(self) -> bytes:
        """The plane, as a field of a space."""
        for field, names in ((_EVENT_NAMES, self.events), (_STAT_NAMES, self.statistics)):
            for name, i in names.items():
                meaning = protobuf.number(1, i) + protobuf.message(_NAME, name)
                self.parts.append(protobuf.message(field, protobuf.number(1, i) + protobuf.message(2, meaning)))
        return protobuf.message(_PLANES, b"".join(self.parts))


def xspace(events: list[dict], threads: dict, began: float, ended: float, process: int) -> bytes:
    """A trace, whose events are in the Trace Event format, as the message.

    Arguments:
      events: the events.
      threads: names of threads, by the events' ``tid``.
      began, ended: when it was taken, in seconds since the epoch.
      process: the number of the process.
    """
    host = _Plane("/host:CPU")
    for tid, name in threads.items():
        host.line(name, [e for e in events if e["tid"] == tid], began)
    host.parts.append(host.stat(_STATS, "process_id", process))
    about = _Plane("Task Environment")
    times = (("profile_start_time", began), ("profile_stop_time", ended))
    about.parts += [about.stat(_STATS, name, round(seconds * 1e9)) for name, seconds in times]
    return host.finish() + about.finish()
