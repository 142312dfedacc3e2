"""Data in which expressions of lengths stand for numbers: one form of what is written for several lengths, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core import dimensions
from catena.core.dimensions import Dimension, Scope
from catena.core.named import NamedTuple
from catena.export.shapes import length_of
from catena.export.values import DTYPES, expect
from catena.transform import symbolic_shapes

EXPRESSION, DTYPE = "=", "dtype"  # what stands in files for a length, or a number of a dtype that is one


class Number(NamedTuple):
    """A literal, or a parameter that is a float (of no dtype): so many, as the bytes of a file say it."""

    length: Dimension
    dtype: str | None

    def at(self, lengths: dict[str, int]) -> str:
        """Its text."""
        value = dimensions.value(self.length, lengths)
        return float(value).hex() if self.dtype is None else np.asarray(value, DTYPES[self.dtype]).tobytes().hex()


class Differ(Exception):
    """What is written for several lengths is not of one form. ``cure``: the constraints that would help."""

    def __init__(self, message: str, cure: str = ""):
        super().__init__(message)
        self.cure = cure


# ---- one form of several


class Told(NamedTuple):
    """What tells expressions: lengths of the variables, and the values that something has for each of them."""

    scope: Scope
    points: list[dict[str, int]]
    given: list[Dimension]
    known: dict[tuple, Any]

    def expression(self, found: tuple[int, ...]) -> Dimension:
        """The length that has these values."""
        if found not in self.known:
            self.known[found] = symbolic_shapes.expression(found, self.points, self.scope, self.given)
        if self.known[found] is None:
            values = ", ".join(map(str, found))
            raise Differ(f"a number is {values} where {said(self.points)}, and no expression of these is so")
        return self.known[found]


def said(points: list[dict[str, int]]) -> str:
    """Lengths, for messages."""
    return " and ".join(f"{name} is {', '.join(str(p[name]) for p in points)}" for name in points[0])


def merged(found: Sequence, told: Told) -> Any:
    """Data of one form: with expressions, and numbers, where these differ."""
    first = found[0]
    if all(x == first for x in found):
        return first
    kinds = {type(x) for x in found}
    if kinds == {int}:
        return told.expression(tuple(found))
    if kinds == {dict} and all(x.keys() == first.keys() for x in found):
        if first.keys() == {"float"}:
            return {"float": _number([float.fromhex(x["float"]) for x in found], None, told)}
        return {k: merged([x[k] for x in found], told) for k in first}
    if kinds == {list} and all(len(x) == len(first) for x in found):
        if _is_literal(first):
            return [merged([x[0] for x in found], told), _literal(found, told)]
        return [merged(items, told) for items in zip(*found, strict=True)]
    raise Differ(
        f"{first!r:.60} where {said(told.points[:1])} is elsewhere {next(x for x in found if x != first)!r:.60}"
    )


def _is_literal(x: list) -> bool:
    """Whether this is a number by its type and bytes."""
    return len(x) == 2 and isinstance(x[0], list) and len(x[0]) == 3 and x[0][1] == [] and isinstance(x[1], str)


def _literal(found: Sequence[list], told: Told) -> Number:
    dtype = found[0][0][0]
    if not isinstance(dtype, str) or dtype not in DTYPES or any(x[0] != found[0][0] for x in found):
        raise Differ("literals are of several types")
    return _number([np.frombuffer(bytes.fromhex(x[1]), DTYPES[dtype])[0] for x in found], dtype, told)


def _number(values: list, dtype: str | None, told: Told) -> Number:
    """The number that has these values, which are lengths: of others, such as their roots, no expression tells."""
    if not all(np.isfinite(x) and int(x) == x for x in values):
        raise Differ(f"a number is {', '.join(map(str, values))} where {said(told.points)}, and this is no length")
    return Number(told.expression(tuple(map(int, values))), dtype)


def merged_programs(found: Sequence[list], told: Told) -> list:
    """Programs of one form; errors say what operation is of several."""
    if len({len(x) for x in found}) > 1:
        raise Differ(f"it calls {', '.join(str(len(x)) for x in found)} programs where {said(told.points)}")
    made = []
    for each in zip(*found, strict=True):
        equations = [x["equations"] for x in each]
        if len({len(x) for x in equations}) > 1:
            counts = ", ".join(str(len(x)) for x in equations)
            raise Differ(f"it has {counts} operations where {said(told.points)}")
        if any([n for n in x["constants"] if n not in each[0]["constants"] and isinstance(n, int)] for x in each):
            raise Differ("it holds an array that was made of a length while it was traced")
        rest = merged([{k: v for k, v in x.items() if k != "equations"} for x in each], told)
        made.append({**rest, "equations": [_equation(x, told) for x in zip(*equations, strict=True)]})
    return made


def _equation(found: Sequence[list], told: Told) -> Any:
    try:
        return merged(found, told)
    except Differ as error:
        raise Differ(f"of {found[0][0]}, {error}", error.cure) from None


# ---- data of expressions


def _replaced(data: Any, replace: Callable) -> Any:
    """Data with other leaves."""
    if isinstance(data, dict):
        return {k: _replaced(x, replace) for k, x in data.items()}
    if isinstance(data, list):
        return [_replaced(x, replace) for x in data]
    return replace(data)


def filled(data: Any, lengths: dict[str, int]) -> Any:
    """Data for known lengths."""

    def number(x):
        if isinstance(x, Dimension):
            return dimensions.value(x, lengths)
        return x.at(lengths) if isinstance(x, Number) else x

    return _replaced(data, number)


def write_data(data: Any) -> Any:
    """Data as files have it."""
    return _replaced(data, _written)


def _written(x: Any) -> Any:
    if isinstance(x, Dimension):
        return {EXPRESSION: str(x)}
    return {EXPRESSION: str(x.length), DTYPE: x.dtype} if isinstance(x, Number) else x


def read_data(data: Any, scope: Scope) -> Any:
    """The inverse of `write_data`."""
    if isinstance(data, list):
        return [read_data(x, scope) for x in data]
    if not isinstance(data, dict):
        return data
    if EXPRESSION not in data:
        return {k: read_data(x, scope) for k, x in data.items()}
    length = length_of(expect(data[EXPRESSION], str, "an expression"), "an exported length", scope)
    if DTYPE not in data:
        return length
    if data[DTYPE] is not None and data[DTYPE] not in DTYPES:
        raise ValueError(f"there is no dtype {data[DTYPE]!r:.80}")
    return Number(length, data[DTYPE])
