"""Which products and quotients may be of subnormal numbers, or be such: those of exponentials and their kin.

Processors take a hundred cycles for each vector of these. They are told so (`Map.y`: the operands that may be small),
and written otherwise (`vector_math.small`), with the same bits. What is small is seen in what makes a value alone; of
what a program is given nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catena.compiler.graph.forms import FORMS, Map
from catena.compiler.graph.region import Region, Value

# Functions that come to zero by way of all exponents.
VANISHING = frozenset("exp exp2 logistic normal_density error_density erfc ndtr pow igamma igammac betainc".split())
FACTORS = frozenset("mul square div fma".split())  # what takes long of small operands
OF_FIRST = frozenset("neg abs convert square integer_pow reduce_precision checked div".split())  # small as that is
OF_ANY = frozenset("mul select min".split())
OF_ALL = frozenset("add sub max".split())
SQUARE = Map("integer_pow", 2)
FLOATS = ("float32", "bfloat16")  # which may be subnormal floats of 32 bits, in which both are computed
RANGE = (*FLOATS, "float64")  # whose converted numbers may be


def mark(region: Region, sums: bool) -> Region:
    """Tells products and quotients which of their operands may be small, in place; and `sums` of products."""
    if any(v.form == "map" and v.params.op in VANISHING for each in region.walk() for v in each.values):
        _mark(region, set())
        for each in region.walk() if not sums else ():
            for v in each.values:
                if v.form == "dot":
                    v.params = v.params._replace(small=None)
    return region


def _mark(region: Region, small: set[int]) -> set[int]:
    """Marks a region of whose inputs some are small; returns all that is."""
    for v in region.values:
        if FORMS[v.form].control:
            small.update(r.number for r in v.results if _CONTROL[v.form](v, small)[r.params.index])
        elif v.dtype.name in RANGE and _is_small(v, small):
            small.add(v.number)
        if v.form in ("map", "dot") and v.dtype.name in FLOATS:
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
        return op in VANISHING or op in OF_ANY and any(held) or op in OF_ALL and all(held)
    if v.form == "concatenate":
        return any(a.number in small for a in v.args)
    return FORMS[v.form].view and v.args[0].number in small


def _tell(v: Value, found: list[int]) -> None:
    if v.form == "dot":
        v.params = v.params._replace(small=tuple(found) or None)
        return
    if found and v.params == SQUARE:
        v.params = Map("square")
    if found and v.params.op in FACTORS:
        v.params = Map(v.params.op, tuple(found))


# ---- loops and branches: which results are small -------------------------------------------------------------


def _within(body: Region, args: Sequence[Value], small: set[int]) -> tuple[list[bool], set[int]]:
    """Which outputs of a region of these operands are small; and all that is in it."""
    found = _mark(body, {i.number for i, a in zip(body.inputs, args, strict=True) if a.number in small})
    return [o.number in found for o in body.outputs], found


def _scan(v: Value, small: set[int]) -> list[bool]:
    return _loop(v.params.body, v.args, v.params.consts, v.params.carries, small)


def _while(v: Value, small: set[int]) -> list[bool]:
    p = v.params
    _within(p.cond, (*v.args[: p.cond_consts], *v.args[p.consts :]), small)
    return _loop(p.body, v.args[p.cond_consts :], p.body_consts, len(p.body.outputs), small)


def _loop(body: Region, args: Sequence[Value], consts: int, carries: int, small: set[int]) -> list[bool]:
    """What is carried is small where it becomes so, too: the body is marked again, of these."""
    outputs, found = _within(body, args, small)
    become = {i.number for i, is_small in zip(body.inputs[consts : consts + carries], outputs) if is_small}
    if become <= found:
        return outputs
    found = _mark(body, found | become)
    return [o.number in found for o in body.outputs]


def _branch(v: Value, small: set[int]) -> list[bool]:
    each = [_within(body, v.args[1:], small)[0] for body in v.params.branches]
    return [any(outputs) for outputs in zip(*each)]


_CONTROL: dict[str, Callable[[Value, set[int]], list[bool]]] = {"scan": _scan, "while": _while, "branch": _branch}
