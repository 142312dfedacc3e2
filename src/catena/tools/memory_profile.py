"""What lives in memory, as a profile that ``pprof`` reads: the arrays, by their types.

Source: the format of profiles, https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import gzip

from catena.core.device import devices_of, live_arrays
from catena.core.protobuf import field, varint


class Strings(dict):
    """The numbers of strings, given as they come; 0 is the empty one."""

    def __init__(self):
        super().__init__({"": 0})

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))


def root(value):
    """The memory that a NumPy array is a view of."""
    base = getattr(value, "base", None)
    return value if base is None else root(base)


def buffers() -> dict[tuple[str, str], list[int]]:
    """By the type of arrays and the device that they are on: how many there are, and their bytes. What several arrays
    share is the first one's.
    """
    found: dict[tuple[str, str], list[int]] = {}
    seen: set[int] = set()
    for x in live_arrays():
        memory = root(x._value)
        device = devices_of(x)[0]
        entry = found.setdefault((x.aval.str_short(), f"{device.platform}:{device.id}"), [0, 0])
        entry[0] += 1
        if id(memory) not in seen:
            seen.add(id(memory))
            entry[1] += getattr(memory, "nbytes", x.nbytes)
    return found


def profile() -> bytes:
    """The profile, compressed: a sample for each type of arrays on each device."""
    strings, samples, places = Strings(), b"", b""
    kinds = b"".join(
        field(1, field(1, strings[kind]) + field(2, strings[unit]))
        for kind, unit in (("allocations", "count"), ("space", "bytes"))
    )
    for number, ((name, device), (count, size)) in enumerate(sorted(buffers().items()), 1):
        labels = b"".join(
            field(3, field(1, strings[key]) + field(2, strings[text]))
            for key, text in (("kind", "buffer"), ("device", device))
        )
        samples += field(2, field(1, varint(number)) + field(2, varint(count) + varint(size)) + labels)
        places += field(4, field(1, number) + field(4, field(1, number)))
        places += field(5, field(1, number) + field(2, strings[name]))
    table = b"".join(field(6, text.encode()) for text in strings)
    return gzip.compress(kinds + samples + places + table)
