"""Integers between known bounds: what a loop counts, and what is computed from it.

``x[i]`` asks for more than an element: `i` counts from the end where it is negative, and is clamped where it is beyond.
Where the bounds of `i` say that it is neither, only the element is left, at a place that moves with the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from catena.compiler.graph.forms import FORMS
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.symbols import whole
from catena.core.named import NamedTuple


class Interval(NamedTuple):
    """The least and the greatest value, both included."""

    low: int
    high: int

    def meets(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def joins(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


FALSE, TRUE, EITHER = Interval(0, 0), Interval(1, 1), Interval(0, 1)
MOST_ELEMENTS = 4096  # of a constant that is looked through


def bound(region: Region) -> Region:
    """The region, in place: integers, in its loops too, have their `bounds`, and choices that these decide are made."""
    pending = [region]
    while pending:
        each = pending.pop()
        pending += _bound(each, chooses=not region.sites)
    return region


def limits(dtype: np.dtype) -> Interval | None:
    """What integers of a dtype can be; None for other dtypes."""
    if dtype.kind == "b":
        return EITHER
    return Interval(np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else None


def interval_of(v: Value) -> Interval | None:
    """Where the elements of a value lie; None for values that are no integers."""
    return limits(v.dtype) if v.bounds is None else v.bounds


def span(dtype: np.dtype) -> Interval:
    """What integers of a dtype can be."""
    found = limits(dtype)
    if found is None:
        raise TypeError(f"{dtype} is no dtype of integers")
    return found


def interval(v: Value) -> Interval:
    """Where the elements of an integer value lie."""
    return span(v.dtype) if v.bounds is None else v.bounds


def _bound(region: Region, chooses: bool) -> list[Region]:
    """Bounds the values of a region, and the inputs of the regions in it, which are given back. In a program that is
    checked no choices are made: what is not chosen is looked at, too.
    """
    inner: list[Region] = []
    taken: dict[int, Value] = {}
    for v in region.live():
        if any(a.number in taken for a in v.args):
            v.args = tuple(taken.get(a.number, a) for a in v.args)
        if FORMS[v.form].control:
            _CONTROL[v.form](v)
            inner += v.params.regions
        elif limits(v.dtype) is not None:
            v.bounds = bounds_of(v)
            choice = _choice(v) if chooses else None
            if choice is not None:
                taken[v.number] = choice
    region.outputs = [taken.get(v.number, v) for v in region.outputs]
    return inner


def bounds_of(v: Value) -> Interval | None:
    """The bounds of an integer value; None where its dtype's limits are all that is known."""
    if v.bounds is not None:
        return v.bounds  # of an input of a loop, or one of its results
    rule = _RULES.get(v.form)
    found = rule(v) if rule else None
    return found if found is not None and found.within(span(v.dtype)) else None  # beyond them, it wraps around


def _choice(v: Value) -> Value | None:
    """The operand that a choice comes to, whatever the program is given."""
    if v.form != "map":
        return None
    found = None
    if v.params.op == "select":
        predicate, yes, no = v.args
        found = {TRUE: yes, FALSE: no}.get(interval(predicate)) if predicate.dtype.kind == "b" else None
    elif v.params.op in ("max", "min"):
        a, b = map(interval, v.args)
        greater = v.args if a.low >= b.high else v.args[::-1] if b.low >= a.high else (None, None)
        found = greater[v.params.op == "min"]
    elif v.params.op == "clamp":
        low, x, high = v.args
        if interval(x).within(Interval(interval(low).high, interval(high).low)):
            found = x
    return found if found is not None and (found.shape, found.dtype) == (v.shape, v.dtype) else None


# ---- elementwise operations ----------------------------------------------------------------------------------


def _map(v: Value) -> Interval | None:
    operands = [found for a in v.args if (found := interval_of(a)) is not None]
    if len(operands) < len(v.args):
        return None
    return _select(*v.args) if v.params.op == "select" else of_operation(v.params.op, operands)


def of_operation(op: str, sides: list[Interval]) -> Interval | None:
    """Where the exact result of an operation lies, before it wraps around; None where that is not known."""
    return _OPS[op](*sides) if op in _OPS else None


def _select(predicate: Value, yes: Value, no: Value) -> Interval:
    sides = [_where(yes, predicate, True), _where(no, predicate, False)]
    possible = [s for s, excluded in zip(sides, (FALSE, TRUE)) if s is not None and interval(predicate) != excluded]
    first, *rest = possible or [interval(yes), interval(no)]
    for other in rest:
        first = first.joins(other)
    return first


def _where(v: Value, predicate: Value, holds: bool) -> Interval | None:
    """Where a value lies if a condition holds, or does not: a comparison, or two; None where that cannot be."""
    op = predicate.params.op if predicate.form == "map" else ""
    if op not in ("and", "or") or predicate.dtype.kind != "b":
        return _where_compared(v, predicate, holds)
    sides = [_where_compared(v, a, holds) for a in predicate.args]
    possible = [side for side in sides if side is not None]
    if holds == (op == "and"):  # both do, or neither
        both = possible[0].meets(possible[-1]) if len(possible) == len(sides) else None
        return both if both is not None and both.low <= both.high else None
    return possible[0].joins(possible[-1]) if possible else None


def _where_compared(v: Value, predicate: Value, holds: bool) -> Interval | None:
    """Where a value lies if a comparison holds, or does not; None where that cannot be."""
    side = _COMPARED.get((predicate.params.op, holds)) if predicate.form == "map" else None
    if side is None or limits(predicate.args[0].dtype) is None:
        return interval(v)
    x, y = predicate.args
    seen = interval(x).meets(side(interval(y)))
    if seen.low > seen.high:
        return None
    if v is x:
        return seen
    if v.form == "map" and v.params.op == "add" and x in v.args:
        other = v.args[1] if v.args[0] is x else v.args[0]
        sums = _add(seen, interval(other))
        return sums if sums.within(span(v.dtype)) else interval(v)
    return interval(v)


ANY_LOW, ANY_HIGH = -(1 << 64), 1 << 64
_COMPARED: dict = {  # a comparison and whether it holds -> where that puts its left side, by where its right one lies
    ("lt", True): lambda y: Interval(ANY_LOW, y.high - 1),
    ("le", True): lambda y: Interval(ANY_LOW, y.high),
    ("gt", True): lambda y: Interval(y.low + 1, ANY_HIGH),
    ("ge", True): lambda y: Interval(y.low, ANY_HIGH),
    ("eq", True): lambda y: y,
}
_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "ne": "eq"}
_COMPARED |= {(op, False): _COMPARED[other, True] for op, other in _OPPOSITE.items()}


def _add(x: Interval, y: Interval) -> Interval:
    return Interval(x.low + y.low, x.high + y.high)


def _sub(x: Interval, y: Interval) -> Interval:
    return Interval(x.low - y.high, x.high - y.low)


def _mul(x: Interval, y: Interval) -> Interval:
    products = [a * b for a in x for b in y]
    return Interval(min(products), max(products))


def _rem(x: Interval, y: Interval) -> Interval | None:
    """The remainder has the sign of what is divided."""
    if y.low <= 0:
        return None
    most = y.high - 1
    return Interval(max(x.low, -most) if x.low < 0 else 0, min(x.high, most) if x.high > 0 else 0)


def _floor_div(x: Interval, y: Interval) -> Interval | None:
    return Interval(x.low // y.low, x.high // y.low) if 0 < y.low == y.high else None


def _div(x: Interval, y: Interval) -> Interval | None:
    """Rounded to zero."""
    if not 0 < y.low == y.high:
        return None
    return Interval(*(abs(end) // y.low if end >= 0 else -(abs(end) // y.low) for end in x))


def _shift_right(x: Interval, y: Interval) -> Interval | None:
    return Interval(x.low >> y.low, x.high >> y.low) if 0 <= y.low == y.high < 64 else None


def _and(x: Interval, y: Interval) -> Interval | None:
    """A bit that one side does not have, the result does not."""
    if x == y == TRUE:
        return TRUE
    most = [side.high for side in (x, y) if side.low >= 0]
    return Interval(0, min(most)) if most else None


def _abs(x: Interval) -> Interval:
    ends = [abs(end) for end in x]
    return Interval(0 if x.low <= 0 <= x.high else min(ends), max(ends))


def _compared(holds: Callable, fails: Callable) -> Callable:
    """The rule of a comparison, which holds, or fails, wherever its sides lie."""
    return lambda x, y: TRUE if holds(x, y) else FALSE if fails(x, y) else EITHER


_OPS: dict[str, Callable] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "neg": lambda x: Interval(-x.high, -x.low),
    "abs": _abs,
    "sign": lambda x: Interval(*((end > 0) - (end < 0) for end in x)),
    "max": lambda x, y: Interval(max(x.low, y.low), max(x.high, y.high)),
    "min": lambda x, y: Interval(min(x.low, y.low), min(x.high, y.high)),
    "clamp": lambda low, x, high: Interval(min(max(x.low, low.low), high.low), min(max(x.high, low.high), high.high)),
    "rem": _rem,
    "div": _div,
    "floor_div": _floor_div,
    "shift_right_arithmetic": _shift_right,
    "and": _and,
    "convert": lambda x: x,
    "lt": _compared(lambda x, y: x.high < y.low, lambda x, y: x.low >= y.high),
    "le": _compared(lambda x, y: x.high <= y.low, lambda x, y: x.low > y.high),
    "gt": _compared(lambda x, y: x.low > y.high, lambda x, y: x.high <= y.low),
    "ge": _compared(lambda x, y: x.low >= y.high, lambda x, y: x.high < y.low),
}


# ---- other forms ---------------------------------------------------------------------------------------------


def _constant(v: Value) -> Interval | None:
    array = v.params.array
    return Interval(whole(array.min()), whole(array.max())) if 0 < array.size <= MOST_ELEMENTS else None


def _first(v: Value) -> Interval | None:
    return interval_of(v.args[0])


def _any_of(*args: Value) -> Interval:
    first, *rest = map(interval, args)
    for other in rest:
        first = first.joins(other)
    return first


def _reduce(v: Value) -> Interval | None:
    (x,), count = v.args, math.prod(v.args[0].shape[d] for d in v.params.axes)
    if count and v.params.kind in ("max", "min"):
        return interval_of(x)
    return _mul(interval(x), Interval(count, count)) if v.params.kind == "sum" else None


def _argreduce(v: Value) -> Interval:
    count = math.prod(v.args[0].shape[d] for d in v.params.axes)
    return Interval(0, max(count - 1, 0))


_RULES: dict[str, Callable[[Value], Interval | None]] = {
    "map": _map,
    "constant": _constant,
    "iota": lambda v: Interval(0, max(v.shape[v.params.dimension] - 1, 0)),
    **dict.fromkeys(("broadcast", "transpose", "reshape", "slice", "reverse", "dynamic_slice"), _first),
    "gather": lambda v: _any_of(v.args[0], *v.args[2:]),  # and what is read where there is nothing
    "dynamic_update_slice": lambda v: _any_of(*v.args[:2]),
    **dict.fromkeys(("pad", "window", "concatenate"), lambda v: _any_of(*v.args)),
    "reduce": _reduce,
    "argreduce": _argreduce,
}


# ---- loops ---------------------------------------------------------------------------------------------------


def _pass(args, inputs) -> None:
    """The inputs of a region lie where what it is given does."""
    for a, x in zip(args, inputs, strict=True):
        x.bounds = interval_of(a)


def _scan(node: Value) -> None:
    p, body = node.params, node.params.body
    _pass(node.args, body.inputs)
    results = {r.params.index: r for r in node.results}
    for k in range(p.carries):
        carry, out = body.inputs[p.consts + k], body.outputs[k]
        init, carry.bounds = carry.bounds, None
        step = _step(carry, out)
        if init is None or step is None:
            continue
        ends = [_add(init, Interval(step * n, step * n)) for n in (0, max(p.length - 1, 0), p.length)]
        if all(end.within(span(carry.dtype)) for end in ends):
            carry.bounds = ends[0].joins(ends[1])
            if k in results:
                results[k].bounds = ends[2]


def _while(node: Value) -> None:
    p = node.params
    conditions, carries = node.args[: p.cond_consts], node.args[p.consts :]
    _pass((*conditions, *carries), p.cond.inputs)
    _pass(node.args[p.cond_consts :], p.body.inputs)
    for k, (asked, carry) in enumerate(zip(p.cond.inputs[p.cond_consts :], p.body.inputs[p.body_consts :])):
        init, asked.bounds, carry.bounds = carry.bounds, None, None
        step = _step(carry, p.body.outputs[k])
        if init is None or step is None:
            continue
        if step == 0:
            asked.bounds = carry.bounds = init
            continue
        last = _last(p.cond.outputs[0], asked)
        if step > 0 and last is not None and last + step <= span(carry.dtype).high:
            carry.bounds = Interval(init.low, max(last, init.low))
            asked.bounds = Interval(init.low, max(last + step, init.high))


def _last(condition: Value, carry: Value) -> int | None:
    """The greatest value of a carry with which the loop goes on."""
    if condition.form != "map":
        return None
    if condition.params.op == "and":
        found = [last for a in condition.args if (last := _last(a, carry)) is not None]
        return min(found, default=None)
    if condition.params.op in ("lt", "le") and condition.args[0] is carry:
        return _COMPARED[condition.params.op, True](_exact_or_limits(condition.args[1])).high
    return None


def _exact_or_limits(v: Value) -> Interval:
    """Where a value of a region lies of which only the inputs are bounded so far."""
    return _constant(v) or span(v.dtype) if v.form == "constant" else interval(v)


def _step(carry: Value, out: Value) -> int | None:
    """What each iteration adds to a carry: a number that is the same in all of them, or None."""
    if limits(carry.dtype) is None or carry.dtype.kind == "b":
        return None
    total = 0
    while out is not carry:
        if out.form != "map" or out.params.op not in ("add", "sub"):
            return None
        x, y = out.args
        if x.form == "constant" and out.params.op == "add":
            x, y = y, x
        if y.form != "constant" or y.size != 1:
            return None
        number = whole(y.params.array.item())
        total, out = total + (number if out.params.op == "add" else -number), x
    return total


def _branch(node: Value) -> None:
    for region in node.params.branches:
        _pass(node.args[1:], region.inputs)


_CONTROL: dict[str, Callable[[Value], None]] = {"scan": _scan, "while": _while, "branch": _branch}
