"""The wire format of protocol buffers, for the few messages that are read and written here.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # wire types


def varint(n: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*out, n))


def number(field: int, value: int) -> bytes:
    """A field that is an integer; negative ones are of 64 bits."""
    return varint(field << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def double(field: int, value: float) -> bytes:
    """A field that is a float of 64 bits."""
    return varint(field << 3 | _EIGHT) + struct.pack("<d", value)


def message(field: int, value: bytes | str) -> bytes:
    """A field that is a message, bytes or a text."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | _BYTES) + varint(len(data)) + data


def field(number_of: int, value: int | bytes) -> bytes:
    """A field that is an integer, or a message."""
    return number(number_of, value) if isinstance(value, int) else message(number_of, value)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where the next thing begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte <= 0x7F:
            return value, at


def varints(data: bytes) -> Iterator[int]:
    """Numbers, one behind the other."""
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        yield value


def fields(data: bytes) -> Iterator[tuple]:
    """The fields of a message with their numbers: integers, floats of 64 bits, and all else as bytes.

    Raises: ValueError, IndexError: these bytes are no message.
    """
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind, size = tag & 7, {_EIGHT: 8, _FOUR: 4}.get(tag & 7)
        if kind == _VARINT:
            value, at = read_varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = read_varint(data, at)
        if size is None:
            raise ValueError(f"no such wire type: {kind}")
        if at + size > len(data):
            raise ValueError("a field is cut off")
        part = data[at : at + size]
        yield tag >> 3, struct.unpack("<d", part)[0] if kind == _EIGHT else part
        at += size


def signed(value: int) -> int:
    """A number of 64 bits as one with a sign."""
    return value - (1 << 64) if value >= 1 << 63 else value
