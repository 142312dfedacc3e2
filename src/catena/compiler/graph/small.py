"""Which products and quotients may be of subnormal numbers, or be such: those of exponentials and their kin.

Processors take a hundred cycles for each vector of these. They are told so (`Map.y`: the operands that may be small),
and written otherwise (`vector_math.small`), with the same bits. What is small is seen in what makes a value alone; of
what a program is given nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from catena.compiler.graph.constants import is_zero
from catena.compiler.graph.forms import FORMS, Map
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.types import NAMES

# Functions that come to zero by way of all exponents.
VANISHING = frozenset("exp exp2 logistic normal_density error_density erfc ndtr pow igamma igammac betainc".split())
FACTORS = frozenset("mul square div fma".split())  # what takes long of small operands
OF_FIRST = frozenset("neg abs convert square integer_pow reduce_precision checked div".split())  # small as that is
OF_ANY = frozenset("mul select min".split())
OF_ALL = frozenset("add sub max".split())
SQUARE = Map("integer_pow", 2)
FLOATS = ("float32", "bfloat16")  # which may be subnormal floats of 32 bits, in which both are computed
HALVES_AND_FLOATS = (*FLOATS, "float16")  # of which running products are kept in floats of 32 bits
RANGE = (*FLOATS, "float64")  # whose converted numbers may be


def mark(region: Region) -> Region:
    """Tells products and quotients which of their operands may be small, in place; running products, that they are."""
    values = [v for each in region.walk() for v in each.values]
    for v in values:
        if v.form == "cumulative" and v.params.kind == "prod" and NAMES[v.dtype] in HALVES_AND_FLOATS:
            v.params = v.params._replace(decays=True)
    if any(v.form == "map" and v.params.op in VANISHING for v in values):
        _mark(region, set(), {})
    return region


Found = dict[int, set[int]]  # the numbers of all small values of a region, by its id


def _mark(region: Region, inputs: set[int], before: Found) -> set[int]:
    """Marks a region of whose inputs these are small; returns all that is. What was found before stays: a region is
    looked through again only where more of its inputs are small, else each loop around it would double the work.
    """
    small = before.get(id(region))
    if small is not None and inputs <= small:
        return small
    small = before.setdefault(id(region), set())
    small |= inputs
    for v in region.live():
        if FORMS[v.form].control:
            outputs = _CONTROL[v.form](v, small, before)
            small.update(r.number for r in v.results if outputs[r.params.index])
        elif NAMES[v.dtype] in RANGE and _is_small(v, small):
            small.add(v.number)
        if v.form in ("map", "dot") and NAMES[v.dtype] in (FLOATS if v.form == "map" else RANGE):
            _tell(v, [k for k, a in enumerate(v.args) if a.number in small])
    return small


def _is_small(v: Value, small: set[int]) -> bool:
    if v.form == "map":
        op = v.params.op
        held = [a.number in small for a in v.args]
        if op in OF_FIRST:
            return held[0]
        if op == "fma":
            return any(held[:2]) and held[2]
        if op in OF_ALL:
            return any(held) and all(h or _is_zero_mostly(a) for h, a in zip(held, v.args, strict=True))
        return op in VANISHING or op in OF_ANY and any(held)
    if v.form == "concatenate":
        return any(a.number in small for a in v.args)
    if v.form == "reduce":  # one number alone: of rows' sums, which are asked for each, most are no tails
        return v.ndim == 0 and v.params.kind == "sum" and v.args[0].number in small
    return FORMS[v.form].view and v.args[0].number in small


def _is_zero_mostly(v: Value) -> bool:
    """Whether it is zero, or is so but where labels or places say: what is added to it stays small."""
    while FORMS[v.form].view and v.form != "pad":
        v = v.args[0]
    if v.form == "map" and v.params.op == "select":
        return any(map(is_zero, v.args[1:]))
    if v.form == "map" and v.params.op == "convert":
        return v.args[0].dtype == np.bool_
    return is_zero(v) or v.form == "pad" and is_zero(v.args[1])


def _tell(v: Value, found: list[int]) -> None:
    if v.form == "dot":
        v.params = v.params._replace(small=tuple(found) or None)
        return
    if found and v.params == SQUARE:
        v.params = Map("square")
    if found and v.params.op in FACTORS:
        numbers = [k for k in found if _is_number(v.args[k])]
        each = [k for k in found if k not in numbers]
        v.params = Map(v.params.op, tuple(each or numbers))


def _is_number(v: Value) -> bool:
    """Whether it is one number, spread or not, which is asked once for all."""
    while v.form == "broadcast":
        (v,) = v.args
    return v.ndim == 0


# ---- loops and branches: which results are small -------------------------------------------------------------


def _within(body: Region, args: Sequence[Value], small: set[int], before: Found) -> list[bool]:
    """Which outputs of a region of these operands are small."""
    found = _mark(body, {i.number for i, a in zip(body.inputs, args, strict=True) if a.number in small}, before)
    return [o.number in found for o in body.outputs]


def _scan(v: Value, small: set[int], before: Found) -> list[bool]:
    return _loop(v.params.body, v.args, v.params.consts, v.params.carries, small, before)


def _while(v: Value, small: set[int], before: Found) -> list[bool]:
    p = v.params
    _within(p.cond, (*v.args[: p.cond_consts], *v.args[p.consts :]), small, before)
    return _loop(p.body, v.args[p.cond_consts :], p.body_consts, len(p.body.outputs), small, before)


def _loop(body: Region, args: Sequence[Value], consts: int, carries: int, small: set[int], before: Found) -> list[bool]:
    """What is carried is small where it becomes so, too: the body is marked again, of these."""
    outputs = _within(body, args, small, before)
    carried = body.inputs[consts : consts + carries]
    become = {i.number for i, is_small in zip(carried, outputs) if is_small}
    found = _mark(body, become, before)
    _tell_of_decaying(
        body, [(i, o) for i, o, a in zip(carried, body.outputs, args[consts:]) if _is_zero_mostly(a)], found
    )
    return [o.number in found for o in body.outputs]


def _tell_of_decaying(body: Region, empty: list[tuple[Value, Value]], small: set[int]) -> None:
    """Of what a loop carries and begins with zeros, that is small if it was: what decays and has small added. Matrix
    products of it are told; where it is updated, what is added is asked, which is no larger.
    """
    while empty and small:
        held = small | {i.number for i, _ in empty}
        values = [v for v in body.live() if not FORMS[v.form].control and NAMES[v.dtype] in RANGE]
        for v in values:
            if _is_small(v, held):
                held.add(v.number)
        if all(o.number in held for _, o in empty):
            for v in values:
                if v.form == "dot":
                    _tell(v, [k for k, a in enumerate(v.args) if a.number in held])
            return
        empty = [(i, o) for i, o in empty if o.number in held]


def _branch(v: Value, small: set[int], before: Found) -> list[bool]:
    each = [_within(body, v.args[1:], small, before) for body in v.params.branches]
    return [any(outputs) for outputs in zip(*each)]


_CONTROL: dict[str, Callable[[Value, set[int], Found], list[bool]]] = {
    "scan": _scan,
    "while": _while,
    "branch": _branch,
}
