"""What views take of what is joined, as views of its parts: those that take the same of each part."""

from __future__ import annotations

import math

from catena.compiler.graph.region import Value

Way = tuple[Value, ...]  # views that are applied one after the other


def ways_of_parts(whole: Value, way: Way) -> tuple[list[Way], int] | None:
    """The ways that take of parts what `way` takes of what joins them, and the dimension along which that is joined.

    None where a view takes of one part what it does not of another.
    """
    shapes = [whole.shape, *(view.shape for view in way)]
    dims = [whole.params.dimension]
    for view, shape in zip(way, shapes):
        d = _RULES[view.form](view, shape, dims[-1])
        if d is None:
            return None
        dims.append(d)
    extents = [part.shape[dims[0]] for part in whole.args]
    return [tuple(map(_of_part, way, dims, dims[1:], [n] * len(way))) for n in extents], dims[-1]


def _of_part(view: Value, before: int, behind: int, n: int) -> Value:
    """The view with another extent of one dimension, which lies where `before` and `behind` say."""
    params = view.params
    if view.form == "gather":
        sizes = params.slice_sizes
        params = params._replace(slice_sizes=(*sizes[:before], n, *sizes[before + 1 :]))
    shape = (*view.shape[:behind], n, *view.shape[behind + 1 :])
    made = Value(view.form, shape, view.dtype, view.args, params, view.number, view.source)
    made.bounds = view.bounds
    return made


# ---- where a dimension of the operand, of that shape, lies in a view; None where that does not keep it whole


def _transpose(view: Value, shape: tuple, d: int) -> int | None:
    return view.params.perm.index(d)


def _reshape(view: Value, shape: tuple, d: int) -> int | None:
    outside = math.prod(shape[:d])
    for k, n in enumerate(view.shape):
        if n == shape[d] and math.prod(view.shape[:k]) == outside:
            return k
    return None


def _reverse(view: Value, shape: tuple, d: int) -> int | None:
    return None if d in view.params.dims else d


def _slice(view: Value, shape: tuple, d: int) -> int | None:
    return d if view.shape[d] == shape[d] else None


def _gather(view: Value, shape: tuple, d: int) -> int | None:
    at = view.params
    return at.offset_dims[at.window_dims.index(d)] if d in at.window_dims and at.slice_sizes[d] == shape[d] else None


_RULES = {
    "transpose": _transpose,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "dynamic_slice": _slice,
    "gather": _gather,
}
