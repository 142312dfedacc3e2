"""Treedefs as protocol buffers: the message in which JAX's libraries store structures of trees.

Source: the wire format of protocol buffers, https://protobuf.dev/programming-guides/encoding. The message has the
nodes of a tree, children first (field 1: arity, kind, and the keys of dicts as numbers of strings), and the strings
(field 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_NODES, _STRINGS = 1, 2  # fields of the message
_ARITY, _KIND, _KEYS = 1, 2, 3  # fields of a node
_NUMBERS = 1  # field of the keys of a dict
_BYTES = 2  # wire type; the other one here is 0, a number

KINDS = ("leaf", "list", "None", "tuple", "dict")  # numbered from 1


class Node(NamedTuple):
    """One node of a tree; its children are the last so many before it that are not children of others."""

    kind: str
    arity: int
    keys: tuple[str, ...] = ()


def encoded(nodes: list[Node]) -> bytes:
    """The message of a tree, whose nodes come children first."""
    numbers: dict[str, int] = {}
    message = b"".join([_field(_NODES, _node(node, numbers)) for node in nodes])
    return message + b"".join([_field(_STRINGS, key.encode()) for key in numbers])


def _node(node: Node, numbers: dict[str, int]) -> bytes:
    message = _number(_ARITY, node.arity) if node.arity else b""
    message += _number(_KIND, 1 + KINDS.index(node.kind))
    if not node.keys:
        return message
    packed = b"".join([_varint(numbers.setdefault(key, len(numbers))) for key in node.keys])
    return message + _field(_KEYS, _field(_NUMBERS, packed))


def decoded(data: bytes) -> list[Node]:
    """The nodes in a message; ValueError where it is none."""
    try:
        fields = list(_fields(data))
        strings = [value.decode() for field, value in fields if field == _STRINGS]
        return [_decoded_node(dict(_fields(value)), strings) for field, value in fields if field == _NODES]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"these {len(data)} bytes are not the message of a tree") from error


def _decoded_node(fields: dict[int, Any], strings: list[str]) -> Node:
    packed = dict(_fields(fields.get(_KEYS, b""))).get(_NUMBERS, b"")
    return Node(("", *KINDS)[fields[_KIND]], fields.get(_ARITY, 0), tuple([strings[i] for i in _varints(packed)]))


# ---- the wire format -------------------------------------------------


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*out, n))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte <= 0x7F:
            return value, at


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers as integers, all else as bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == _BYTES:
            if at + value > len(data):
                raise ValueError("a field is cut off")
            yield tag >> 3, data[at : at + value]
            at += value
        elif tag & 7 == 0:
            yield tag >> 3, value
        else:
            raise ValueError(f"no such wire type here: {tag & 7}")
