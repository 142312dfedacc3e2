"""Traces in the text form of protocol buffers (``planes { name: "/host:CPU" lines { ... } }``), as bytes.

Sources: https://protobuf.dev/reference/protobuf/textformat-spec and the messages of ``profile_data.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from catena.core import protobuf
from catena.core.named import NamedTuple


class Field(NamedTuple):
    """A field of a message: its number, its kind (a scalar's, or a message), whether it may come several times."""

    number: int
    kind: Any
    several: bool = False


_STAT = {
    "metadata_id": Field(1, "int"), "double_value": Field(2, "double"), "uint64_value": Field(3, "int"),
    "int64_value": Field(4, "int"), "str_value": Field(5, "text"), "bytes_value": Field(6, "text"),
    "ref_value": Field(7, "int"),
}  # fmt: skip
_EVENT = {
    "metadata_id": Field(1, "int"), "offset_ps": Field(2, "int"), "num_occurrences": Field(5, "int"),
    "duration_ps": Field(3, "int"), "stats": Field(4, _STAT, True),
}  # fmt: skip
_LINE = {
    "id": Field(1, "int"), "display_id": Field(10, "int"), "name": Field(2, "text"), "display_name": Field(11, "text"),
    "timestamp_ns": Field(3, "int"), "duration_ps": Field(9, "int"), "events": Field(4, _EVENT, True),
}  # fmt: skip
_EVENT_NAME = {
    "id": Field(1, "int"), "name": Field(2, "text"), "metadata": Field(3, "text"), "display_name": Field(4, "text"),
    "stats": Field(5, _STAT, True), "child_id": Field(6, "ints", True),
}  # fmt: skip
_STAT_NAME = {"id": Field(1, "int"), "name": Field(2, "text"), "description": Field(3, "text")}
_PLANE = {
    "id": Field(1, "int"), "name": Field(2, "text"), "lines": Field(3, _LINE, True),
    "event_metadata": Field(4, {"key": Field(1, "int"), "value": Field(2, _EVENT_NAME)}, True),
    "stat_metadata": Field(5, {"key": Field(1, "int"), "value": Field(2, _STAT_NAME)}, True),
    "stats": Field(6, _STAT, True),
}  # fmt: skip
_SPACE = {
    "planes": Field(1, _PLANE, True), "errors": Field(2, "text", True), "warnings": Field(3, "text", True),
    "hostnames": Field(4, "text", True),
}  # fmt: skip

_TOKEN = re.compile(r"""(?:\s|\#[^\n]*)*([{}<>\[\]:;,]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[-+\w.]+|\S|$)""")


_PART = re.compile(r"\\[xX][0-9a-fA-F]{1,2}|\\[0-7]{1,3}|\\.|[^\\]+")


class Reader:
    """The tokens of a text, of which ``next`` is the one that comes."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.take()

    def take(self) -> str:
        """The token that comes; it is behind us then."""
        taken = getattr(self, "next", "")
        match = _TOKEN.match(self.text, self.at)
        assert match is not None  # the pattern matches the end, too
        self.next, self.at = match.group(1), match.end()
        return taken

    def skip(self, *tokens: str) -> bool:
        """Whether one of these comes, which is left behind then."""
        return bool(self.next) and self.next in tokens and bool(self.take())

    def expect(self, token: str) -> None:
        """Leave this token behind. Raises ValueError where another one comes."""
        if not self.skip(token):
            raise self.error(f"{token!r} was expected")

    def error(self, problem: str) -> ValueError:
        """An error that says where it is."""
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"line {line}: {problem}, got {self.next!r}" if self.next else f"line {line}: {problem}")

    def message(self, fields: dict, end: str) -> bytes:
        """A message up to its end, its fields in the order of their numbers."""
        found: list[tuple[int, bytes]] = []
        packed: dict[int, bytes] = {}  # lists of integers are one field
        while self.next != end:
            name = self.take()
            if name not in fields:
                raise self.error(f"there is no field {name!r} here, but {', '.join(fields)}")
            field = fields[name]
            values = list(self.values(field.kind))
            if not field.several and (len(values) > 1 or any(n == field.number for n, _ in found)):
                raise self.error(f"the field {name!r} comes more than once")
            if field.kind == "ints":
                packed[field.number] = packed.get(field.number, b"") + b"".join(map(protobuf.varint, values))
            else:
                found += [(field.number, encoded(field, value)) for value in values]
            self.skip(",", ";")
        self.take()
        found += [(number, protobuf.message(number, data)) for number, data in packed.items()]
        return b"".join(data for _, data in sorted(found, key=lambda part: part[0]))

    def values(self, kind: Any) -> Iterator:
        """The value of a field, or those of a list."""
        colon = self.skip(":")
        if isinstance(kind, str) and not colon:
            raise self.error("':' was expected")
        if not self.skip("["):
            yield self.value(kind)
            return
        while not self.skip("]"):
            yield self.value(kind)
            if self.next != "]":
                self.expect(",")

    def value(self, kind: Any) -> Any:
        """One value: of a message its bytes."""
        if isinstance(kind, dict):
            closing = {"{": "}", "<": ">"}.get(self.next)
            if closing is None:
                raise self.error("a message was expected, in braces")
            self.take()
            return self.message(kind, closing)
        if kind == "text":
            return self.string()
        try:
            return SCALARS[kind](self.next)
        except ValueError:
            raise self.error(f"a number of kind {kind} was expected") from None
        finally:
            self.take()

    def string(self) -> bytes:
        """Strings, one behind the other, are one."""
        if self.next[:1] not in ("'", '"'):
            raise self.error("a string was expected")
        data = b""
        while self.next[:1] in ("'", '"'):
            data += b"".join(unescaped(part) for part in _PART.findall(self.take()[1:-1]))
        return data


SCALARS = {"int": lambda word: int(word, 0), "ints": lambda word: int(word, 0), "double": float}


def unescaped(part: str) -> bytes:
    """The bytes of a piece of a string: an escape as in C, or text."""
    if part[0] != "\\":
        return part.encode()
    if part[1] in "01234567":
        return bytes([int(part[1:], 8) & 0xFF])
    if part[1] in "xX":
        return bytes([int(part[2:], 16)])
    return ESCAPES.get(part[1], part[1]).encode()


ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def encoded(field: Field, value: Any) -> bytes:
    """A field in the wire format."""
    return protobuf.double(field.number, value) if field.kind == "double" else protobuf.field(field.number, value)


def serialized(text: str) -> bytes:
    """The bytes of a trace. Raises ValueError where the text is none."""
    return Reader(text).message(_SPACE, "")
