"""Structures that are seen often, as Python code: one function takes such a tree apart, another puts it together.

Walking through a tree asks at every node what it is. A program sees the same few structures again and again, so a
structure that was asked for often is written as straight code that asks at every node whether it is what it was:
some 100 ns a node instead of 1 us. Reading says None where a tree is another, or may be, and then the general way has
the word; so code is never more than a guess that is checked, all of it, at every call.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from operator import is_, itemgetter
from typing import Any

from catena.core.named import NamedTuple
from catena.core.tree_nodes import DICT, LIST, NAMED_TUPLE, NONE, TUPLE, KeptDict, NodeKind, default_nodes

HOT = 24  # times that a structure is asked for before it is written as code, which takes some 20 us a node
MOST_NODES = 4096
MANY = 6  # keys from which it is quicker to take them all at once

_KEY_TYPES = (str, int, bytes)  # keys of one of these types are the same where they are equal
_ALL = slice(None)


class Code(NamedTuple):
    """What is done with trees of one structure.

    ``read(tree, exact)`` gives the subtrees at the leaves of the structure, or None, and may raise; where it need not
    be ``exact``, equal keys of dicts are as good as the same. ``write(leaves)`` gives the tree with as many leaves as
    the structure has.
    """

    read: Callable[[Any, bool], list | None]
    write: Callable[[list], Any]


def code_of(treedef: Any) -> Code:
    """The code of a structure of at most MOST_NODES nodes."""
    names = _Names()
    lines = [*_reading(treedef, names), *_writing(treedef, names)]
    # The file name marks its frames as the package's own.
    exec(compile("\n".join(lines), f"{__file__} (a structure)", "exec"), names.values)
    return Code(names.values["read"], names.values["write"])


class _Names:
    """What the code refers to: values by their names, and names for variables."""

    def __init__(self):
        self.values: dict[str, Any] = {"same": same, "kinds": default_nodes.kinds, "getitem": tuple.__getitem__}
        self.count = 0

    def variable(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def of(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return name


# ---- reading -------------------------------------------------


def _reading(treedef: Any, names: _Names) -> list[str]:
    lines, leaves = ["def read(x0, exact):"], []
    todo = [(treedef, "x0")]
    while todo:
        node, x = todo.pop()
        if node._kind is None:
            leaves.append(x)
            continue
        flat = node._num_leaves == len(node._children) > 1 and node._num_nodes == node._num_leaves + 1
        children = [names.variable() for _ in node._children]
        unless, then, values = _opening(node, x, children, names, "return None")
        lines.append(f" if {unless}: return None")
        lines += [f" {line}" for line in then]
        if flat and values is not None:
            leaves.append(f"*{values}")
            continue
        if values is not None:
            lines += [f" {line}" for line in _unpack("".join(f"{child}, " for child in children), values)]
        todo.extend(reversed([*zip(node._children, children)]))
    return [*lines, f" return [{', '.join(leaves)}]"]


def _opening(node: Any, x: str, children: list[str], names: _Names, other: str) -> tuple[str, list[str], str | None]:
    """When `x` is no such node, the statements that name its children, with the statement `other` where it still is
    none, and what is to be unpacked for these names, known to be as many, if anything is.
    """
    kind, data = node._kind, node._data
    targets = "".join(f"{child}, " for child in children)
    if kind is NONE:
        return f"{x} is not None", [], None
    if kind is TUPLE or kind is LIST:
        return f"type({x}) is not {kind.type.__name__} or len({x}) != {len(children)}", [], x
    if kind is DICT:
        return _opening_dict(data, x, children, names)
    if kind is NAMED_TUPLE:  # which may have been registered since
        cls = names.of(data)
        unless = f"type({x}) is not {cls} or kinds.get({cls}) is not {names.of(kind)}"
        return unless, _unpack(targets, f"getitem({x}, {names.of(_ALL)})"), None
    unless = f"type({x}) is not {names.of(kind.type)}"
    if _has_plain_fields(kind):
        fields, static = kind.fields
        then = [f"{child} = {x}.{field}" for child, field in zip(children, fields)]
        for field, value in zip(static, data):
            then += [f"m = {x}.{field}", _unless_same("m", names.of(value), other)]
        return unless, then, None
    then = [f"c, d = {names.of(kind.plain_flatten)}({x})", _unless_same("d", names.of(data), other)]
    return unless, [*then, *(_unpack(targets, "c") or [f"if len(c): {other}"])], None


def _opening_dict(keys: tuple, x: str, children: list[str], names: _Names) -> tuple[str, list[str], str | None]:
    unless = f"type({x}) is not dict or len({x}) != {len(keys)}"
    if not keys:
        return unless, [], None
    cls = type(keys[0])
    if cls not in _KEY_TYPES or any(type(key) is not cls for key in keys):
        return "True", [], None  # equal keys may differ: 1 == True
    unless += f" or exact and not {names.of(frozenset({cls}))}.issuperset(map(type, {x}))"
    if len(keys) < MANY:
        return unless, [f"{child} = {x}[{key!r}]" for child, key in zip(children, keys)], None
    values = names.variable()
    in_order, get = names.of(keys), names.of(itemgetter(*keys))
    return unless, [f"{values} = {x}.values() if tuple({x}) == {in_order} else {get}({x})"], values


def _unpack(targets: str, value: str) -> list[str]:
    return [f"{targets}= {value}"] if targets else []


def _unless_same(x: str, known: str, other: str) -> str:
    return f"if {x} is not {known} and not same({x}, {known}): {other}"


def same(a: Any, b: Any) -> bool:
    """Whether node data are indistinguishable, as far as that is seen at once."""
    if a is b:
        return True
    cls = type(a)
    if cls is dict and type(b) is KeptDict:
        return same((*a, *a.values()), (*b, *b.values()))
    if cls is not type(b):
        return False
    if cls is tuple:
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(same, a, b)))
    return cls in _KEY_TYPES and a == b


# ---- reading where a function of the user's says what is a leaf ---------------------------


class CodeUnless(NamedTuple):
    """How trees of one structure are read of which a function ends some branches.

    ``read(tree, is_leaf)`` gives the subtrees at the leaves as a list; where the tree is another, how many nodes the
    function was asked about until that was seen, and in a tuple its last answer, if that was not the expected one.
    ``answers`` are those that are expected.
    """

    read: Callable[[Any, Callable], Any]
    answers: list[bool]


def code_unless(treedef: Any, ended: list[bool]) -> CodeUnless:
    """The code for a structure, given which of its leaves were `ended` by the function."""
    names = _Names()
    names.values["leaf_types"] = default_nodes.leaf_types
    lines, leaves, answers = ["def read(x0, is_leaf, exact=True):"], [], []
    todo, flags = [(treedef, "x0")], iter(ended)
    while todo:
        node, x = todo.pop()
        answers.append(node._kind is None and next(flags))
        asked = len(answers)
        lines.append(f" if (f := is_leaf({x})) is not {answers[-1]}: return {asked}, (f,)")
        other = f"return {asked}, ()"
        if node._kind is None:
            leaves.append(x)
            if not answers[-1]:
                lines.append(f" if type({x}) not in leaf_types: {other}")
            continue
        children = [names.variable() for _ in node._children]
        unless, then, values = _opening(node, x, children, names, other)
        lines.append(f" if {unless}: {other}")
        if values is not None:
            then += _unpack("".join(f"{child}, " for child in children), values)
        if then:  # what raises is no such tree: the general way says why
            lines += [" try:", *[f"  {line}" for line in then], f" except Exception: {other}"]
        todo.extend(reversed([*zip(node._children, children)]))
    lines.append(f" return [{', '.join(leaves)}]")
    exec(compile("\n".join(lines), f"{__file__} (a structure)", "exec"), names.values)
    return CodeUnless(names.values["read"], answers)


def answering_again(is_leaf: Callable, answers: list) -> Callable:
    """A function of the user's that was asked before: first it says again what it said then."""
    said = iter(answers)

    def asked_again(x: Any) -> Any:
        for answer in said:
            return answer
        return is_leaf(x)

    return asked_again


# ---- writing -------------------------------------------------


def _writing(treedef: Any, names: _Names) -> list[str]:
    leaves = [names.variable() for _ in range(treedef._num_leaves)]
    lines = ["def write(leaves):", *[f" {line}" for line in _unpack("".join(f"{x}, " for x in leaves), "leaves")]]
    rest = iter(leaves)
    results: list[str] = []  # as in `PyTreeDef.unflatten`, the names of trees
    todo = [(treedef, False)]
    while todo:
        node, opened = todo.pop()
        if node._kind is None:
            results.append(next(rest))
        elif not opened:
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(node._children))
        else:
            split = len(results) - len(node._children)
            children = results[split:]
            results[split:] = [names.variable()]
            lines.append(f" {results[-1]} = {_building(node, children, names)}")
    return [*lines, f" return {results[0]}"]


def _building(node: Any, children: list[str], names: _Names) -> str:
    kind, data = node._kind, node._data
    inner = "".join(f"{child}, " for child in children)
    if kind is NONE:
        return "None"
    if kind is TUPLE:
        return f"({inner})"
    if kind is LIST:
        return f"[{inner}]"
    if kind is DICT and len(children) >= MANY:
        return f"dict(zip({names.of(data)}, ({inner})))"
    if kind is DICT:
        keys = [repr(key) if type(key) in _KEY_TYPES else names.of(key) for key in data]
        return "{" + ", ".join(f"{key}: {child}" for key, child in zip(keys, children)) + "}"
    if kind is NAMED_TUPLE:
        return f"{names.of(data)}({inner})"
    if _has_plain_fields(kind):
        fields, static = kind.fields
        given = [*zip(fields, children), *((field, names.of(value)) for field, value in zip(static, data))]
        return f"{names.of(kind.type)}({', '.join(f'{field}={x}' for field, x in given)})"
    own_data = f"dict({names.of(data)})" if type(data) is KeptDict else names.of(data)
    return f"{names.of(kind.plain_unflatten)}({own_data}, ({inner}))"


def _has_plain_fields(kind: NodeKind) -> bool:
    """Whether the fields of a dataclass can be written as Python names."""
    if kind.fields is None:
        return False
    names = [name for group in kind.fields for name in group]
    return all(name.isascii() and name.isidentifier() and not keyword.iskeyword(name) for name in names)
