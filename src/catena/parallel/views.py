"""Slices, paddings and concatenations along axes that are split: they are views until somebody reads them."""

from __future__ import annotations

import numpy as np

from catena.core.jaxpr import Eqn, Literal
from catena.lax.comparison import select_n
from catena.lax.named_axes import axis_index
from catena.lax.shape import broadcast_in_dim, iota
from catena.parallel.halos import View, all_of
from catena.parallel.moves import Form
from catena.parallel.values import Value


def under(value: Value) -> tuple[Value, dict]:
    """What a value is a view of, and how."""
    return (value, {}) if value.base is None else (value.base, value.views)


def lies_split(p, value: Value, axes) -> bool:
    """Whether what a value views is split along one of these axes, and may be viewed."""
    base, _ = under(value)
    return not value.aval.extended and any(p.proposal(base)[axis] for axis in axes)


def composed(p, eqn: Eqn, value: Value, axes, change) -> Value | None:
    """A value with the views of these axes changed, or ``None`` where nothing is gained, or it is not possible."""
    if not axes or not lies_split(p, value, axes):
        return None
    base, views = under(value)
    found = {**views, **{a: change(views.get(a) or all_of(value.aval.shape[a]), a) for a in axes}}
    if None in found.values():  # filled otherwise: then it is a view of this view
        base, found = value, {a: change(all_of(value.aval.shape[a]), a) for a in axes}
    return Value(eqn.outvars[0].aval, None, None, eqn, base, found)


def sliced(p, eqn: Eqn, values) -> Value | None:
    starts, stops, steps = (eqn.own_params[k] for k in ("start_indices", "limit_indices", "strides"))
    if steps is not None and any(s != 1 for s in steps):
        return None
    (value,), out = values, eqn.outvars[0].aval
    axes = [a for a in range(out.ndim) if out.shape[a] != value.aval.shape[a]]
    return composed(p, eqn, value, axes, lambda view, a: view.sliced(starts[a], stops[a]))


def padded(p, eqn: Eqn, values) -> Value | None:
    config = eqn.own_params["padding_config"]
    if any(interior for _, _, interior in config):
        return None
    value, fill = values
    axes = [a for a, (low, high, _) in enumerate(config) if low or high]
    if not axes or not lies_split(p, value, axes):
        return None
    own = eqn.invars[1]
    mark = ("number", str(np.asarray(own.val))) if type(own) is Literal else own
    filling = p.get(fill, Form(()), eqn, 1)
    return composed(p, eqn, value, axes, lambda view, a: view.padded(config[a][0], config[a][1], filling, mark))


def joined(p, eqn: Eqn, values) -> Value | None:
    """Pieces of one array that follow each other, round its end too, are a view of it; others are chosen from."""
    axis, out = eqn.own_params["dimension"], eqn.outvars[0].aval
    if out.extended or not any(lies_split(p, value, [axis]) for value in values):
        return None
    bases, views = zip(*map(under, values), strict=True)
    if all(base is bases[0] for base in bases) and values[0] is not bases[0]:
        own = [v.get(axis) or all_of(bases[0].aval.shape[axis]) for v in views]
        others = [{a: view for a, view in v.items() if a != axis} for v in views]
        if all(o == others[0] for o in others) and follow(own, bases[0].aval.shape[axis]):
            whole = View(own[0].offset, out.shape[axis], 0, out.shape[axis])
            return Value(out, None, None, eqn, bases[0], {**others[0], axis: whole})
    return chosen(p, eqn, values, axis)


def follow(views: list[View], size: int) -> bool:
    """Whether views of an axis follow each other on it, round its end too."""
    ends = zip(views, views[1:], strict=False)
    return all(v.is_full for v in views) and all((a.offset + a.size - b.offset) % size == 0 for a, b in ends)


def chosen(p, eqn: Eqn, values, axis: int) -> Value | None:
    """Each device has what of each operand belongs to its part of the result, and chooses by position."""
    out, split = eqn.outvars[0].aval, p.planned(eqn.outvars[0])
    if not split[axis]:
        return None
    size, local = out.shape[axis], p.local_aval(out, split)
    where = iota(np.int32, local.shape[axis]) + axis_index(split[axis]) * np.int32(local.shape[axis])
    found, begin = None, 0
    for i, value in enumerate(values):
        base, views = under(value)
        own = views.get(axis) or all_of(value.aval.shape[axis])
        wide = own.padded(begin, size - begin - own.size, None, None)
        if wide is None:
            base, views, wide = value, {}, all_of(own.size).padded(begin, size - begin - own.size, None, None)
        view = Value(out, None, None, eqn, base, {**views, axis: wide})
        x = p.get(view, Form(split), eqn, i)
        after = broadcast_in_dim(where >= np.int32(begin), local.shape, (axis,))
        found = x if found is None else select_n(after, found, x)
        begin += own.size
    return Value(out, Form(split), found, eqn)


VIEWS = {"slice": sliced, "pad": padded, "concatenate": joined}
