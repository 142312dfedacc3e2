"""What views take of a product, as views of its operands: its rows are products of rows, its columns of columns."""

from __future__ import annotations

from typing import Any

from catena.compiler.graph.forms import Indices, Numbers, Slice
from catena.compiler.graph.region import Value
from catena.compiler.graph.ways_of_parts import Way

Places = list[int | None]  # where dimensions lie in the product; those of one element need not lie in it


def ways_of_operands(product: Value, way: Way) -> tuple[list[Way], Numbers] | None:
    """The ways that take of both operands what `way` takes of a product, and in which order it has the dimensions of
    theirs, but for some of one element. None where a view mixes rows and columns.
    """
    places: Places = [*range(product.ndim)]
    operands = [_Operand(x, own) for x, own in zip(product.args, _places_of_operands(product))]
    shape = product.shape
    for view in way:
        rule = _RULES.get(view.form)
        found = rule and rule(view, places, shape)
        if found is None:
            return None
        for x in operands:
            x.take(view, places)
        places, shape = found, view.shape
    order = [p for p in places if p is not None]
    return [tuple(x.way) for x in operands], (*order, *(d for d in range(product.ndim) if d not in order))


def _places_of_operands(product: Value) -> list[Places]:
    lc, rc, lb, rb = product.params.numbers
    sides, free = [], len(lb)
    for x, contracted, batch in ((product.args[0], lc, lb), (product.args[1], rc, rb)):
        own: Places = []
        for d in range(x.ndim):
            is_free = d not in batch and d not in contracted
            own.append(free if is_free else batch.index(d) if d in batch else None)
            free += is_free
        sides.append(own)
    return sides


class _Operand:
    """An operand of a product, and what is taken of it."""

    def __init__(self, x: Value, own: Places):
        self.x, self.own, self.shape = x, own, x.shape
        self.way: list[Value] = []

    def take(self, view: Value, places: Places) -> None:
        """Takes what a view takes along the operand's own dimensions, if it leaves anything out there."""
        at = [None if p is None or p not in places else places.index(p) for p in self.own]
        made = _TAKEN[view.form](view, at, self.shape) if view.form in _TAKEN else None
        if made is not None:
            self.shape, rest, params = made
            args = (self.x, *rest)
            self.way.append(Value(view.form, self.shape, self.x.dtype, args, params, view.number, view.source))


# ---- where the dimensions of a view lie, if they do


def _reshape(view: Value, places: Places, shape: tuple) -> Places | None:
    """Of one that adds or drops dimensions of one element."""
    kept = [p for p, n in zip(places, shape) if n != 1]
    if [n for n in shape if n != 1] != [n for n in view.shape if n != 1]:
        return None
    return [None if n == 1 else kept.pop(0) for n in view.shape]


def _transpose(view: Value, places: Places, shape: tuple) -> Places | None:
    return [places[d] for d in view.params.perm]


def _slice(view: Value, places: Places, shape: tuple) -> Places | None:
    return places


def _gather(view: Value, places: Places, shape: tuple) -> Places | None:
    """Of one that reads along one dimension, all else whole."""
    p = view.params
    if p.batching or len(p.batch_dims) != 1 or len(p.start_index_map) != 1:
        return None
    (d,) = p.start_index_map
    whole = all(n == shape[k] for k, n in enumerate(p.slice_sizes) if k != d)
    if places[d] is None or d in p.window_dims or not whole:
        return None
    found: Places = [places[d]] * view.ndim
    for out, k in zip(p.offset_dims, p.window_dims):
        found[out] = places[k]
    return found


_RULES = {
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "dynamic_slice": _slice,
    "gather": _gather,
}


# ---- a view of an operand whose dimensions lie `at` dimensions of what is taken of: its shape, what else it reads, its
# parameters; None where it leaves nothing out

Part = tuple[tuple, tuple, Any] | None


def _part_slice(view: Value, at: Places, shape: tuple) -> Part:
    sizes = tuple(n if k is None else view.shape[k] for n, k in zip(shape, at))
    start, strides = (tuple(other if k is None else given[k] for k in at) for given, other in zip(view.params, (0, 1)))
    return None if sizes == shape else (sizes, (), Slice(start, strides))


def _part_dynamic_slice(view: Value, at: Places, shape: tuple) -> Part:
    """Of dimensions that are read whole, wherever that is said to begin."""
    sizes = tuple(n if k is None else view.shape[k] for n, k in zip(shape, at))
    starts = view.args[1:]
    return None if sizes == shape else (sizes, tuple(starts[k or 0] for k in at), view.params)


def _part_gather(view: Value, at: Places, shape: tuple) -> Part:
    p = view.params
    (along,) = p.start_index_map
    if along not in at:
        return None
    d = at.index(along)
    others = tuple(k for k in range(len(shape)) if k != d)
    sizes = (*shape[:d], 1, *shape[d + 1 :])
    params = Indices(others, others, (d,), (), (d,), sizes, p.mode)
    return (*shape[:d], view.shape[p.batch_dims[0]], *shape[d + 1 :]), view.args[1:], params


_TAKEN = {"slice": _part_slice, "dynamic_slice": _part_dynamic_slice, "gather": _part_gather}
