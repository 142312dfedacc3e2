"""A scatter by any function of the elements it addresses and of what is scattered."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from catena.core.array import as_array, make_array
from catena.core.aval import ShapedArray
from catena.core.evaluate import abstract_eval
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import get_aval
from catena.lax.elementwise import ANY, NOT_LINEAR
from catena.lax.scatter_primitives import (
    Site,
    batch_scatter,
    bind_scatter,
    lowered_mode,
    scatter_abstract,
    scatter_mode,
)
from catena.lax.scattering import scatter
from catena.lax.shape import broadcast, reshape
from catena.lax.windowed import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    Written,
)
from catena.transform.batch import Axis, batch_flat, batch_jaxpr

# ------------------------------------------------------------------------------------------------------------
# scatter-apply: a function applied to the elements that are addressed and to the updates, once for every index that
# addresses them, in order. It has the signature of the other scatters; `scatter_apply` takes the updates' shape only.


def _apply_evaluate(operand, indices, updates, *, dimension_numbers, mode, update_jaxpr, **params):
    """One round for each time that the most often addressed element is addressed."""
    operand, indices, updates = arrays = [as_array(x) for x in (operand, indices, updates)]
    said = {"dimension_numbers": dimension_numbers, "mode": mode, "update_jaxpr": update_jaxpr, **params}
    abstract_eval(scatter_apply_p, tuple([x.aval for x in arrays]), said)  # raises what is to be raised
    values = operand._value, indices._value, updates._value
    written = Written(*values, dimension_numbers, mode)
    table, rows, given = written.flat()
    by_row = np.argsort(rows, kind="stable")
    rows, given = rows[by_row], given[by_row]
    is_first = np.append(True, rows[1:] != rows[:-1])[: rows.size]
    first = np.flatnonzero(is_first)
    occurrence = np.arange(rows.size) - first[np.cumsum(is_first) - 1] if rows.size else rows
    for k in range(int(occurrence.max(initial=-1)) + 1):
        now = occurrence == k
        table[rows[now]] = _apply_to_all(update_jaxpr, table[rows[now]], given[now])
    return make_array(written.out, operand.weak_type)


def _apply_to_all(closed: ClosedJaxpr, values: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """A jaxpr from two scalars to one, elementwise."""
    vectorised, _ = batch_jaxpr(closed, Axis(None, values.size), (True, True), True)
    flat = [make_array(x.reshape(-1)) for x in (values, updates)]
    (out,) = eval_jaxpr(vectorised.jaxpr, vectorised.consts, *flat)
    return out._value.reshape(values.shape)


def _apply_lower(b, operand, indices, updates, *, dimension_numbers, mode, update_jaxpr, **params):
    return b.scatter("general", operand, indices, updates, dimension_numbers, lowered_mode(mode), update_jaxpr)


scatter_apply_p = Primitive(
    "scatter-apply",
    takes_arrays=True,
    abstract=scatter_abstract(None, ANY),
    evaluate=_apply_evaluate,
    jvp=NoRule("a repeated index applies the function repeatedly; promise unique_indices=True to differentiate"),
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, scatter_apply_p, **params),
    lower=_apply_lower,
)


def scatter_apply(
    operand,
    scatter_indices,
    func: Callable,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The operand with a function applied at given positions, once for every index that addresses an element.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      func: from a scalar to a scalar of the same dtype.
      dimension_numbers: which axes are which.
      update_shape: the shape that updates would have in the other scatters.
      indices_are_sorted: a promise that the indices are in order.
      unique_indices: a promise that no element is addressed twice; with it the result is differentiable, and
        ``func`` may use traced values from outside.
      mode: 'clip' moves windows inside; 'drop' (or 'fill', and None) skips those that stick out, as does
        'promise_in_bounds'.
    Returns:
      A new array like ``operand``.
    Raises:
      TypeError: shapes and dimension numbers do not fit, or ``func`` gives another type.

    >>> import numpy as np
    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_apply(np.arange(4), np.array([[1], [3], [3]]), lambda x: 10 * x, numbers, update_shape=(3,))
    Array([  0,  10,   2, 300], dtype=int32)
    """
    aval = ShapedArray((), get_aval(operand).dtype)
    info = DebugInfo("scatter_apply", getattr(func, "__name__", repr(func)))
    closed, outer = trace_to_closed_jaxpr(lambda x, y: [func(x)], (aval, aval), info)
    if closed.out_avals[0].strip_weak_type() is not aval:
        raise TypeError(f"scatter_apply: func must return {aval}, got {closed.out_avals[0]}")
    hints = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    updates = broadcast(np.zeros((), aval.dtype), tuple(map(operator.index, update_shape)))
    if unique_indices:
        return _apply_once(operand, scatter_indices, func, updates, dimension_numbers, hints)
    if outer:
        raise TypeError(
            "scatter_apply: func may use traced values from outside only with unique_indices=True, got "
            f"{len(outer)} such values"
        )
    return bind_scatter(scatter_apply_p, operand, scatter_indices, updates, dimension_numbers, closed, **hints)


def _apply_once(operand, indices, func, updates, numbers, hints):
    """``scatter_apply`` at positions without repetition, made of gather and scatter."""
    params = {"dimension_numbers": numbers, **hints, "mode": scatter_mode(hints["mode"])}
    current = Site(get_aval(operand), indices, get_aval(updates), **params).read(operand)
    shape = get_aval(current).shape
    axis = Axis(None, get_aval(current).size)
    (new,), (dim,) = batch_flat(lambda x: [func(x)], axis, [reshape(current, (axis.size,))], [0])
    new = broadcast(new, (axis.size,)) if dim is None else new
    return scatter(operand, indices, reshape(new, shape), numbers, **hints)
