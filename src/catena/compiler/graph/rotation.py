"""Loops that ask at the end of an iteration whether to go on, where what they ask about is at hand.

``while (more(x)) x = f(x)`` is ``go = more(x); while (go) { x = f(x); go = more(x); }``. Where the condition looks at
an array, as that of a loop over a batch does (is one of these still to be done?), it is then a fold in the kernel that
makes the array, which is not read again for it. A condition of a few scalars is as well asked first.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.forms import FORMS, Input, Output, While
from catena.compiler.graph.insertion import insert, number
from catena.compiler.graph.region import Region, Value

BOOL = np.dtype(bool)


def rotate(region: Region) -> Region:
    """The region, in place: its loops whose condition folds arrays, and such loops in others, ask at the end."""
    for each in region.walk():
        made = {v.number: _rotated(v) for v in each.control() if v.form == "while" and _folds(v.params.cond)}
        if made:
            insert(each, made)
    return region


def _folds(condition: Region) -> bool:
    """Whether a condition folds arrays, and does nothing else but compute."""
    live = [v for v in condition.live() if v.form not in ("input", "constant")]
    plain = all(FORMS[v.form].pure and (FORMS[v.form].inline or FORMS[v.form].fold) for v in live)
    checked = any(v.form == "map" and v.params.op == "checked" for v in live)
    return plain and not checked and not condition.effects and any(FORMS[v.form].fold for v in live)


def _rotated(node: Value) -> list[Value]:
    """Makes a loop carry whether to go on; returns the values that the region around it gets."""
    p: While = node.params
    consts, rest, start = node.args[: p.cond_consts], node.args[p.cond_consts : p.consts], node.args[p.consts :]
    before, first = _copied(p.cond, (*consts, *start))
    taken, body = [_input(x) for x in (*consts, first)], p.body
    behind, more = _copied(p.cond, (*taken[:-1], *body.outputs))
    body.inputs = [*taken[:-1], *body.inputs, taken[-1]]
    body.outputs = [*body.outputs, more]
    number(body, [*taken, *body.values, *behind])
    asked = [_input(x) for x in (*start, first)]
    condition = Region(list(asked), asked, asked[-1:])
    number(condition, asked)
    last = Value("output", (), BOOL, (node,), Output(len(start)), -1, node.source)
    node.args = (*consts, *rest, *start, first)
    node.params = While(condition, body, 0, p.consts)
    node.results = [*node.results, last]
    return [*before, last]


def _copied(condition: Region, given: tuple[Value, ...]) -> tuple[list[Value], Value]:
    """The values of a condition of what is given, in order, and the one that says whether to go on."""
    made = {x.number: y for x, y in zip(condition.inputs, given, strict=True)}
    new = []
    for v in condition.live():
        if v.number not in made:
            args = tuple(made[a.number] for a in v.args)
            x = made[v.number] = Value(v.form, v.shape, v.dtype, args, v.params, -1, v.source)
            x.bounds = v.bounds
            new.append(x)
    return new, made[condition.outputs[0].number]


def _input(like: Value) -> Value:
    return Value("input", like.shape, like.dtype, (), Input(), -1, like.source)
