"""The scatters as functions: one signature and one set of words for all, made from a table."""

from __future__ import annotations

from catena.core.zeros import get_aval
from catena.lax.scatter_primitives import (
    COMBINES,
    bind_scatter,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
    update_jaxpr,
)
from catena.lax.windowed import GatherScatterMode, ScatterDimensionNumbers

_DOCUMENTATION = """{summary}

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to {verb}: batch axes as ``scatter_indices`` without its last, and window axes; of the
        operand's dtype.
      dimension_numbers: which axes are which.
      indices_are_sorted: a promise that the indices are in order.
      unique_indices: a promise that no element is addressed twice (it makes derivatives cheaper).
      mode: 'clip' moves windows inside; 'drop' (or 'fill', and None) skips those that stick out, as does
        'promise_in_bounds'.
    Returns:
      A new array like ``operand``.
    Raises:
      TypeError: shapes, dtypes and dimension numbers do not fit.
      ValueError: the mode is unknown or the indices are no integers.

    Source: the semantics are those of XLA's Scatter.

    >>> import numpy as np
    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> {name}(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array({result}, dtype=int32)
    """


def _function(name: str, primitive, summary: str, verb: str, result: str):
    def function(
        operand,
        scatter_indices,
        updates,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ):
        return bind_scatter(
            primitive,
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            update_jaxpr(COMBINES[primitive.name], get_aval(operand).dtype),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENTATION.format(name=name, summary=summary, verb=verb, result=result)
    return function


scatter = _function(
    "scatter",
    scatter_p,
    "The operand with windows at given positions replaced; where several meet, the last one stays.",
    "write",
    "[5, 2, 3, 4]",
)
scatter_add = _function(
    "scatter_add", scatter_add_p, "The operand with updates added at given positions.", "add", "[6, 2, 8, 4]"
)
scatter_sub = _function(
    "scatter_sub",
    scatter_sub_p,
    "The operand with updates subtracted at given positions.",
    "subtract",
    "[-4,  2, -2,  4]",
)
scatter_mul = _function(
    "scatter_mul",
    scatter_mul_p,
    "The operand multiplied by updates at given positions.",
    "multiply by",
    "[ 5,  2, 18,  4]",
)
scatter_min = _function(
    "scatter_min",
    scatter_min_p,
    "The minimum of the operand and updates at given positions.",
    "compare with",
    "[1, 2, 2, 4]",
)
scatter_max = _function(
    "scatter_max",
    scatter_max_p,
    "The maximum of the operand and updates at given positions.",
    "compare with",
    "[5, 2, 3, 4]",
)
