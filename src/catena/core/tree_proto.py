"""Treedefs as protocol buffers: the message in which JAX's libraries store structures of trees.

The message has the nodes of a tree, children first (field 1: arity, kind, and the keys of dicts as numbers of strings),
and the strings (field 2).
"""

from __future__ import annotations

from typing import Any

from catena.core.named import NamedTuple
from catena.core.protobuf import fields, message, number, varint, varints

_NODES, _STRINGS = 1, 2  # fields of the message
_ARITY, _KIND, _KEYS = 1, 2, 3  # fields of a node
_NUMBERS = 1  # field of the keys of a dict

KINDS = ("leaf", "list", "None", "tuple", "dict")  # numbered from 1


class Node(NamedTuple):
    """One node of a tree; its children are the last so many before it that are not children of others."""

    kind: str
    arity: int
    keys: tuple[str, ...] = ()


def encoded(nodes: list[Node]) -> bytes:
    """The message of a tree, whose nodes come children first."""
    numbers: dict[str, int] = {}
    written = b"".join([message(_NODES, _node(node, numbers)) for node in nodes])
    return written + b"".join([message(_STRINGS, key) for key in numbers])


def _node(node: Node, numbers: dict[str, int]) -> bytes:
    written = number(_ARITY, node.arity) if node.arity else b""
    written += number(_KIND, 1 + KINDS.index(node.kind))
    if not node.keys:
        return written
    packed = b"".join([varint(numbers.setdefault(key, len(numbers))) for key in node.keys])
    return written + message(_KEYS, message(_NUMBERS, packed))


def decoded(data: bytes) -> list[Node]:
    """The nodes in a message; ValueError where it is none."""
    try:
        found = list(fields(data))
        strings = [value.decode() for field, value in found if field == _STRINGS]
        return [_decoded_node(dict(fields(value)), strings) for field, value in found if field == _NODES]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"these {len(data)} bytes are not the message of a tree") from error


def _decoded_node(found: dict[int, Any], strings: list[str]) -> Node:
    packed = dict(fields(found.get(_KEYS, b""))).get(_NUMBERS, b"")
    return Node(("", *KINDS)[found[_KIND]], found.get(_ARITY, 0), tuple([strings[i] for i in varints(packed)]))
