"""The bytes of an exported program: a head that is text (JSON), the data of arrays, and a checksum of both.

Nothing in them is code, and nothing is unpickled: what reads them builds numbers, types and equations, and checks
these.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

MAGIC = b"catena exported 1\n"
_LENGTH, _DIGEST = 8, 32


def pack(head: dict, data: list[bytes]) -> bytearray:
    """The bytes of a head and of the data that it refers to by position."""
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    body = b"".join([MAGIC, len(text).to_bytes(_LENGTH, "little"), text, *data])
    return bytearray(body + hashlib.sha256(body).digest())


def unpack(blob: Any) -> tuple[dict, memoryview]:
    """The head and the data.

    Raises:
      TypeError: ``blob`` is not bytes. ValueError: they are not whole, or something else.
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize takes bytes, got {type(blob)}")
    given = memoryview(bytes(blob))
    body, digest = given[:-_DIGEST], given[-_DIGEST:]
    start = len(MAGIC) + _LENGTH
    if bytes(given[: len(MAGIC)]) != MAGIC or len(given) < start + _DIGEST:
        raise ValueError("these are not the bytes of a program that this version of catena exported")
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("the bytes of this exported program were changed or cut off: their checksum is wrong")
    end = start + int.from_bytes(given[len(MAGIC) : start], "little")
    if end > len(body):
        raise ValueError("the head of this exported program is longer than all of it")
    try:
        head = json.loads(bytes(body[start:end]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the head of this exported program cannot be read: {error}") from None
    return head, body[end:]
