"""The kinds of memory that a device has, by the words of programs that do not ask which device."""

import enum


class MemorySpace(enum.Enum):
    """A memory to put arrays in, wherever they are: that of the device, that of its host, or any."""

    Device = 1
    Host = 2
    Any = 3

    def __repr__(self):
        return f"MemorySpace.{self.name}"
