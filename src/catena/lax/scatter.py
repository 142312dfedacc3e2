"""Scatters: writing windows into an operand at positions given by an array of indices.

Updates are applied in row-major order of the updates' batch positions, so where several set the same element
the last wins, here and in compiled code.
"""

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from catena.core.array import as_array, make_array
from catena.core.aval import ShapedArray
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr
from catena.core.primitive import NoRule, Primitive, registry
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal, zeros
from catena.lax.arithmetic import add, div, mul, neg
from catena.lax.comparison import eq, select_n
from catena.lax.convert import convert_element_type
from catena.lax.elementwise import ANY, NOT_LINEAR, NUMBER, WIDER, check_admitted
from catena.lax.indexing import check_same_dtypes, gather_p
from catena.lax.shape import broadcast, iota, reshape
from catena.lax.structure import bind, front, move_axis
from catena.lax.windowed import (
    CLIP,
    FILL_OR_DROP,
    MODE_NAMES,
    GatherDimensionNumbers,
    GatherScatterMode,
    Numbers,
    ScatterDimensionNumbers,
    addressing,
    check_batching,
    check_disjoint,
    check_index_map,
    check_integer_indices,
    check_range,
    check_sorted,
    check_unique,
    shift,
)
from catena.transform.batch import Axis, batch_flat, batch_jaxpr

# ------------------------------------------------------------------------------------------------------------
# Types


def _scatter_abstract(name: str, admitted):
    """The type rule of the scatter that combines by the primitive called ``name`` (None: replaces)."""

    def abstract(operand, indices, updates, *, dimension_numbers, mode, **params):
        check_integer_indices(indices, "scatter")
        if mode not in MODE_NAMES:
            raise ValueError(
                f"scatter: mode must be one of 'clip', 'fill', 'drop' and 'promise_in_bounds', got {mode}"
            )
        if name is not None:
            check_admitted(name, operand, admitted, 0)
        check_same_dtypes("scatter" if name is None else f"scatter_{name}", operand, updates)
        check_scatter(operand.shape, indices.shape, updates.shape, dimension_numbers)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)

    return abstract


def check_scatter(operand_shape, indices_shape, updates_shape, n: ScatterDimensionNumbers):
    """TypeError where the dimension numbers make no sense for these shapes."""
    rank, op = len(operand_shape), "scatter"
    expected = len(indices_shape) - 1 + len(n.update_window_dims)
    if len(updates_shape) != expected:
        raise TypeError(f"Updates tensor must be of rank {expected}; got {len(updates_shape)}.")
    for dims, bound, name in (
        (n.update_window_dims, len(updates_shape), "update_window_dims"),
        (n.inserted_window_dims, rank, "inserted_window_dims"),
    ):
        check_sorted(dims, op, name)
        check_unique(dims, op, name)
        check_range(dims, bound, op, name)
    names = "operand_batching_dims", "scatter_indices_batching_dims"
    check_batching(
        operand_shape, indices_shape, n.operand_batching_dims, n.scatter_indices_batching_dims, op, names
    )
    check_disjoint(n.inserted_window_dims, n.operand_batching_dims, op, ("inserted_window_dims", names[0]))
    to_operand = "scatter_dims_to_operand_dims"
    check_disjoint(n.scatter_dims_to_operand_dims, n.operand_batching_dims, op, (to_operand, names[0]))
    window_rank = len(n.update_window_dims) + len(n.inserted_window_dims) + len(n.operand_batching_dims)
    if window_rank != rank:
        raise TypeError(
            f"Scatter op has window of size {window_rank}, and operand has rank {rank}; the sizes of "
            "update_window_dims, inserted_window_dims and operand_batching_dims must add up to the operand's "
            "rank."
        )
    check_index_map(n.scatter_dims_to_operand_dims, rank, indices_shape[-1], op, to_operand)
    for axis, d in zip(n.update_window_dims, _window_dims(rank, n), strict=True):
        if updates_shape[axis] > operand_shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding "
                "dimensions "
                f"of operand. For dimension {axis}, updates bound is {updates_shape[axis]}, operand bound is "
                f"{operand_shape[d]}."
            )
    scatter_axes = (d for d in range(len(updates_shape)) if d not in n.update_window_dims)
    for axis, size in zip(scatter_axes, indices_shape[:-1], strict=True):
        if updates_shape[axis] != size:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
                "corresponding "
                f"dimensions of scatter indices. For scatter dimension {axis}, updates bound is "
                f"{updates_shape[axis]}, "
                f"indices bound is {size}."
            )


def _window_dims(rank: int, n: ScatterDimensionNumbers) -> list:
    """The operand dimensions that updates have an axis for, in order."""
    return [d for d in range(rank) if d not in n.inserted_window_dims and d not in n.operand_batching_dims]


def slice_sizes_of(operand_shape, updates_shape, n: ScatterDimensionNumbers) -> tuple:
    """The shape of the windows: one size for each operand dimension."""
    sizes = [1] * len(operand_shape)
    for axis, d in zip(n.update_window_dims, _window_dims(len(operand_shape), n), strict=True):
        sizes[d] = updates_shape[axis]
    return tuple(sizes)


# ------------------------------------------------------------------------------------------------------------
# Evaluation


class Written:
    """A copy of the operand with the elements that a scatter addresses laid open.

    ``table`` is a writable view of the copy ``out``, flat but for the dimensions that are not indexed:
    element ``rows[u, w]`` of it is where window element ``w`` of update ``u`` goes.
    """

    def __init__(self, operand, indices, updates, numbers: ScatterDimensionNumbers, mode, dtype=None):
        sizes = slice_sizes_of(operand.shape, updates.shape, numbers)
        address = addressing(operand.shape, indices.shape, Numbers(*numbers, sizes))
        order = address.indexed + address.rest
        if address.leading:
            self.out = operand.astype(dtype or operand.dtype, order="C", copy=True)
            merged = self.out.reshape(address.merged_shape())
        else:
            moved = operand.transpose(order).astype(dtype or operand.dtype, order="C", copy=True)
            merged = moved.reshape(address.merged_shape())
            self.out = moved.transpose(np.argsort(order))
        self.table = merged[(slice(None), *address.rest_slices)]
        self.rows, valid = address.rows(indices, MODE_NAMES[mode])
        kept = self.table.shape[1:]
        work = updates.transpose(address.from_public).astype(dtype or updates.dtype, copy=False)
        n_updates = self.rows.shape[0] if valid is None else valid.shape[0]
        work = work.reshape((n_updates, self.rows.shape[1], *kept))
        self.updates = work if valid is None else work[valid]

    def flat(self):
        """Table, positions and updates with every element of the table addressed by itself.

        ``ufunc.at`` is five times faster on scalars than on rows.
        """
        table, rows, updates = self.table, self.rows.reshape(-1), self.updates
        if table.ndim == 1:
            return table, rows, updates.reshape(-1)
        strides = np.empty(table.shape, np.bool_).strides
        if not table.flags.c_contiguous:
            return table, rows, updates.reshape((-1, *table.shape[1:]))
        width = strides[0]
        positions = rows[:, None] * width + np.arange(width)
        return table.reshape(-1), positions.reshape(-1), updates.reshape(-1)


def _set(operand, indices, updates, *, dimension_numbers, mode, **params):
    w = Written(operand, indices, updates, dimension_numbers, mode)
    if w.updates.size:
        w.table[w.rows.reshape(-1)] = w.updates.reshape((-1, *w.table.shape[1:]))
    return w.out


def _combine(ufunc: np.ufunc):
    """Evaluation of the scatter that combines by ``ufunc``. Narrow floats are accumulated in float32."""

    def evaluate(operand, indices, updates, *, dimension_numbers, mode, **params):
        w = Written(operand, indices, updates, dimension_numbers, mode, WIDER.get(operand.dtype))
        if w.updates.size:
            ufunc.at(*w.flat())
        return w.out if w.out.dtype == operand.dtype else w.out.astype(operand.dtype)

    return evaluate


# ------------------------------------------------------------------------------------------------------------
# What the derivatives of all scatters are made of


def as_gather(n: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The numbers of the gather that reads where this scatter writes."""
    return GatherDimensionNumbers(*n)


class Site:
    """Where a scatter writes: applies other gathers and scatters at the same place."""

    def __init__(self, operand_aval, indices, updates_aval, *, dimension_numbers, mode, **hints):
        self.indices, self.numbers, self.mode = indices, dimension_numbers, mode
        self.hints = {k: hints[k] for k in ("indices_are_sorted", "unique_indices")}
        self.sizes = slice_sizes_of(operand_aval.shape, updates_aval.shape, dimension_numbers)

    def read(self, x):
        """What ``x`` holds where the updates go; 0 for updates that are dropped."""
        mode = CLIP if self.mode is CLIP else FILL_OR_DROP
        return gather_p.bind(
            x,
            self.indices,
            dimension_numbers=as_gather(self.numbers),
            fill_value=None if mode is CLIP else 0,
            mode=mode,
            slice_sizes=self.sizes,
            **self.hints,
        )

    def write(self, primitive, x, updates):
        """``x`` scattered to by ``primitive``."""
        dtype = get_aval(x).dtype
        return primitive.bind(
            x,
            self.indices,
            updates,
            dimension_numbers=self.numbers,
            mode=self.mode,
            update_consts=(),
            update_jaxpr=update_jaxpr(COMBINES[primitive.name], dtype),
            **self.hints,
        )


def _site(operand, indices, updates, params) -> Site:
    return Site(_aval(operand), indices, _aval(updates), **params)


def _aval(x):
    return x.aval if is_undefined_primal(x) else get_aval(x)


COMBINES = {
    "scatter": None,
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


@lru_cache(256)
def update_jaxpr(name: str | None, dtype):
    """The jaxpr ``lambda a b. name a b`` on scalars of ``dtype``, which scatters show as a parameter."""
    if name is None:
        return None
    aval = ShapedArray((), dtype)
    a, b, out = Var(aval), Var(aval), Var(aval)
    return ClosedJaxpr(Jaxpr([], [a, b], [out], [Eqn([a, b], [out], registry[name], {})]), [])


def _batch(axis, args, dims, primitive, *, dimension_numbers, **params):
    (operand, indices, updates), (operand_dim, indices_dim, updates_dim) = args, dims
    n = dimension_numbers
    operand, updates = front(axis, operand, operand_dim), front(axis, updates, updates_dim)
    if indices_dim is None:
        numbers = ScatterDimensionNumbers(
            (0, *shift(n.update_window_dims)),
            shift(n.inserted_window_dims),
            shift(n.scatter_dims_to_operand_dims),
            shift(n.operand_batching_dims),
            n.scatter_indices_batching_dims,
        )
    else:
        indices = move_axis(indices, indices_dim, 0)
        numbers = ScatterDimensionNumbers(
            shift(n.update_window_dims),
            shift(n.inserted_window_dims),
            shift(n.scatter_dims_to_operand_dims),
            (0, *shift(n.operand_batching_dims)),
            (0, *shift(n.scatter_indices_batching_dims)),
        )
    return primitive.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0


def _lowered_mode(mode) -> str:
    """The mode of compiled scatters: a broken promise must not write elsewhere, so it is dropped, too."""
    return "clip" if mode is CLIP else "fill"


def _lower(kind: str):
    def lower(b, operand, indices, updates, *, dimension_numbers, mode, **params):
        return b.scatter(kind, operand, indices, updates, dimension_numbers, _lowered_mode(mode))

    return lower


# ------------------------------------------------------------------------------------------------------------
# scatter-add and scatter-sub: linear in operand and updates


def _linear_jvp(primals, tangents, primitive, params):
    """Forward differentiation of a scatter that is linear in operand and updates together."""
    operand, indices, updates = primals
    out = primitive.bind(operand, indices, updates, **params)
    operand_t, _, updates_t = tangents
    if type(operand_t) is Zero and type(updates_t) is Zero:
        return out, Zero.of_primal(out)
    return out, primitive.bind(instantiate(operand_t), indices, instantiate(updates_t), **params)


def _add_jvp(primals, tangents, **params):
    return _linear_jvp(primals, tangents, scatter_add_p, params)


def _add_transpose(ct, operand, indices, updates, **params):
    ct = instantiate(ct)
    operand_ct = ct if is_undefined_primal(operand) else None
    updates_ct = _site(operand, indices, updates, params).read(ct) if is_undefined_primal(updates) else None
    return [operand_ct, None, updates_ct]


def _sub_jvp(primals, tangents, **params):
    return _linear_jvp(primals, tangents, scatter_sub_p, params)


def _sub_transpose(ct, operand, indices, updates, **params):
    operand_ct, _, updates_ct = _add_transpose(ct, operand, indices, updates, **params)
    return [operand_ct, None, None if updates_ct is None else neg(updates_ct)]


scatter_add_p = Primitive(
    "scatter-add",
    abstract=_scatter_abstract("add", NUMBER),
    evaluate=_combine(np.add),
    jvp=_add_jvp,
    transpose=_add_transpose,
    batch=lambda axis, args, dims, **params: _batch(axis, args, dims, scatter_add_p, **params),
    lower=_lower("add"),
)
scatter_sub_p = Primitive(
    "scatter-sub",
    abstract=_scatter_abstract("sub", NUMBER),
    evaluate=_combine(np.subtract),
    jvp=_sub_jvp,
    transpose=_sub_transpose,
    batch=lambda axis, args, dims, **params: _batch(axis, args, dims, scatter_sub_p, **params),
    lower=_lower("sub"),
)

# ------------------------------------------------------------------------------------------------------------
# scatter: the last update of an element wins


def _set_jvp(primals, tangents, **params):
    operand, indices, updates = primals
    operand_t, _, updates_t = tangents
    if type(operand_t) is Zero and type(updates_t) is Zero or params["unique_indices"]:
        return _linear_jvp(primals, tangents, scatter_p, params)
    out = scatter_p.bind(operand, indices, updates, **params)
    site = _site(operand, indices, updates, params)
    # Scatter the updates' own numbers to find out which of them won; the rest is linear.
    numbers = _numbered(get_aval(updates).shape)
    winners = site.write(
        scatter_p, zeros(get_aval(operand).update(dtype=numbers.dtype, weak_type=False)), numbers
    )
    operand_t, updates_t = instantiate(operand_t), instantiate(updates_t)
    zero = np.zeros((), get_aval(out).dtype)
    kept = _where(eq(winners, np.zeros((), numbers.dtype)), operand_t, zero)
    won = _where(eq(site.read(winners), numbers), updates_t, zero)
    return out, site.write(scatter_add_p, kept, won)


def _numbered(shape):
    """The numbers from 1 in an array of ``shape``."""
    size = int(np.prod(shape, dtype=np.int64))
    dtype = np.dtype(np.uint32 if size < 2**32 - 1 else np.uint64)
    return reshape(add(iota(dtype, size), np.ones((), dtype)), shape)


def _where(condition, on_true, on_false):
    """``on_true`` where the condition holds, else the scalar ``on_false``."""
    return select_n(condition, broadcast(on_false, get_aval(condition).shape), on_true)


def _set_transpose(ct, operand, indices, updates, **params):
    ct = instantiate(ct)
    site = _site(operand, indices, updates, params)
    operand_ct = updates_ct = None
    if is_undefined_primal(operand):
        operand_ct = site.write(scatter_p, ct, zeros(_aval(updates).update(dtype=get_aval(ct).dtype)))
    if is_undefined_primal(updates):
        updates_ct = site.read(ct)
    return [operand_ct, None, updates_ct]


scatter_p = Primitive(
    "scatter",
    abstract=_scatter_abstract(None, ANY),
    evaluate=_set,
    jvp=_set_jvp,
    transpose=_set_transpose,
    batch=lambda axis, args, dims, **params: _batch(axis, args, dims, scatter_p, **params),
    lower=_lower("set"),
)

# ------------------------------------------------------------------------------------------------------------
# scatter-mul


def _mul_jvp(primals, tangents, **params):
    operand, indices, updates = primals
    operand_t, _, updates_t = tangents
    out = scatter_mul_p.bind(operand, indices, updates, **params)
    site = _site(operand, indices, updates, params)
    tangent = Zero.of_primal(out)
    if type(operand_t) is not Zero:
        tangent = scatter_mul_p.bind(operand_t, indices, updates, **params)
    if type(updates_t) is not Zero:
        others = mul(site.read(operand), _product_of_others(site, operand, updates, params["unique_indices"]))
        start = zeros(get_aval(out)) if type(tangent) is Zero else tangent
        tangent = site.write(scatter_add_p, start, mul(updates_t, others))
    return out, tangent


def _product_of_others(site, operand, updates, unique: bool):
    """For each update the product of the other updates of the same element, by division except at zeros.

    At an element that several updates meet, of which some are zero, second derivatives are those of the
    division.
    """
    one, zero = (np.full((), v, get_aval(updates).dtype) for v in (1, 0))
    ones = broadcast(one, get_aval(updates).shape)
    if unique:
        return ones
    is_zero = eq(updates, broadcast(zero, get_aval(updates).shape))
    nonzero = select_n(is_zero, updates, ones)
    product = site.read(site.write(scatter_mul_p, broadcast(one, get_aval(operand).shape), nonzero))
    zero_flags = convert_element_type(is_zero, one.dtype)
    count = site.read(site.write(scatter_add_p, broadcast(zero, get_aval(operand).shape), zero_flags))
    without = select_n(is_zero, div(product, nonzero), product)
    alone = eq(count, zero_flags)  # no other update is zero
    return _where(alone, without, zero)


def _mul_transpose(ct, operand, indices, updates, **params):
    return [scatter_mul_p.bind(instantiate(ct), indices, updates, **params), None, None]


scatter_mul_p = Primitive(
    "scatter-mul",
    abstract=_scatter_abstract("mul", NUMBER),
    evaluate=_combine(np.multiply),
    jvp=_mul_jvp,
    transpose=_mul_transpose,
    batch=lambda axis, args, dims, **params: _batch(axis, args, dims, scatter_mul_p, **params),
    lower=_lower("mul"),
)

# ------------------------------------------------------------------------------------------------------------
# scatter-min and scatter-max: the derivative is shared evenly by all that equal the result


def _extremum_jvp(primals, tangents, primitive, params):
    operand, indices, updates = primals
    operand_t, _, updates_t = tangents
    out = primitive.bind(operand, indices, updates, **params)
    if type(operand_t) is Zero and type(updates_t) is Zero:
        return out, Zero.of_primal(out)
    site = _site(operand, indices, updates, params)
    dtype = get_aval(out).dtype
    operand_hits = convert_element_type(eq(operand, out), dtype)
    updates_hits = convert_element_type(eq(updates, site.read(out)), dtype)
    count = site.write(scatter_add_p, operand_hits, updates_hits)
    # An element that is NaN equals nothing, itself included: nothing shares it and its derivative is 0.
    share = div(np.ones((), dtype), bind("max", count, np.ones((), dtype)))
    tangent = site.write(
        scatter_add_p, mul(instantiate(operand_t), operand_hits), mul(instantiate(updates_t), updates_hits)
    )
    return out, mul(tangent, share)


def _extremum(name: str, ufunc: np.ufunc) -> Primitive:
    primitive = Primitive(
        f"scatter-{name}",
        abstract=_scatter_abstract(name, ANY),
        evaluate=_combine(ufunc),
        jvp=lambda primals, tangents, **params: _extremum_jvp(primals, tangents, primitive, params),
        transpose=NOT_LINEAR,
        batch=lambda axis, args, dims, **params: _batch(axis, args, dims, primitive, **params),
        lower=_lower(name),
    )
    return primitive


scatter_min_p = _extremum("min", np.minimum)
scatter_max_p = _extremum("max", np.maximum)

# ------------------------------------------------------------------------------------------------------------
# scatter-apply: a function applied to the elements that are addressed, once for every index that addresses
# them. It has the signature of the other scatters; of the updates only the shape is used.


def _apply_evaluate(operand, indices, updates, *, dimension_numbers, mode, update_jaxpr, **params):
    """One round for each time that the most often addressed element is addressed."""
    operand = as_array(operand)
    values = operand._value, as_array(indices)._value, as_array(updates)._value
    written = Written(*values, dimension_numbers, mode)
    table, rows, _ = written.flat()
    by_row = np.argsort(rows, kind="stable")
    rows = rows[by_row]
    is_first = np.append(True, rows[1:] != rows[:-1])[: rows.size]
    first = np.flatnonzero(is_first)
    occurrence = np.arange(rows.size) - first[np.cumsum(is_first) - 1] if rows.size else rows
    for k in range(int(occurrence.max(initial=-1)) + 1):
        at = rows[occurrence == k]
        table[at] = _apply_to_all(update_jaxpr, table[at])
    return make_array(written.out, operand.weak_type)


def _apply_to_all(closed: ClosedJaxpr, values: np.ndarray) -> np.ndarray:
    """A jaxpr from two scalars to one, for every element of ``values`` in the place of the first."""
    vectorised, _ = batch_jaxpr(closed, Axis(None, values.size), (True, False), True)
    unused = make_array(np.zeros((), values.dtype))
    (out,) = eval_jaxpr(vectorised.jaxpr, vectorised.consts, make_array(values.reshape(-1)), unused)
    return out._value.reshape(values.shape)


def _apply_lower(b, operand, indices, updates, *, dimension_numbers, mode, update_jaxpr, **params):
    return b.scatter("general", operand, indices, updates, dimension_numbers, _lowered_mode(mode), update_jaxpr)


scatter_apply_p = Primitive(
    "scatter-apply",
    takes_arrays=True,
    abstract=_scatter_abstract(None, ANY),
    evaluate=_apply_evaluate,
    jvp=NoRule(
        "a repeated index applies the function repeatedly; promise unique_indices=True to differentiate"
    ),
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims, **params: _batch(axis, args, dims, scatter_apply_p, **params),
    lower=_apply_lower,
)

# ------------------------------------------------------------------------------------------------------------
# Public functions


def _public(primitive, operand, scatter_indices, updates, numbers, jaxpr, **hints):
    if not isinstance(numbers, ScatterDimensionNumbers):
        raise TypeError(f"scatter: dimension_numbers must be ScatterDimensionNumbers, got {numbers!r}")
    return primitive.bind(
        operand,
        scatter_indices,
        updates,
        dimension_numbers=ScatterDimensionNumbers(*(tuple(map(operator.index, dims)) for dims in numbers)),
        indices_are_sorted=bool(hints["indices_are_sorted"]),
        mode=GatherScatterMode.from_any(hints["mode"]),
        unique_indices=bool(hints["unique_indices"]),
        update_consts=(),
        update_jaxpr=jaxpr,
    )


def _combining(primitive, operand, scatter_indices, updates, numbers, **hints):
    jaxpr = update_jaxpr(COMBINES[primitive.name], get_aval(operand).dtype)
    return _public(primitive, operand, scatter_indices, updates, numbers, jaxpr, **hints)


def scatter(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The operand with windows at given positions replaced; where several meet, the last one stays.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to write: batch axes as ``scatter_indices`` without its last, and window axes; of the
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
    >>> scatter(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([5, 2, 3, 4], dtype=int32)
    """
    return _public(
        scatter_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        None,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_add(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The operand with updates added at given positions.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to add: batch axes as ``scatter_indices`` without its last, and window axes; of the
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
    >>> scatter_add(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([6, 2, 8, 4], dtype=int32)
    """
    return _combining(
        scatter_add_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_sub(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The operand with updates subtracted at given positions.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to subtract: batch axes as ``scatter_indices`` without its last, and window axes; of the
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
    >>> scatter_sub(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([-4,  2, -2,  4], dtype=int32)
    """
    return _combining(
        scatter_sub_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_mul(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The operand multiplied by updates at given positions.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to multiply by: batch axes as ``scatter_indices`` without its last, and window axes; of
        the operand's dtype.
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
    >>> scatter_mul(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([ 5,  2, 18,  4], dtype=int32)
    """
    return _combining(
        scatter_mul_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_min(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The minimum of the operand and updates at given positions.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to compare with: batch axes as ``scatter_indices`` without its last, and window axes; of
        the operand's dtype.
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
    >>> scatter_min(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([1, 2, 2, 4], dtype=int32)
    """
    return _combining(
        scatter_min_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def scatter_max(
    operand,
    scatter_indices,
    updates,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """The maximum of the operand and updates at given positions.

    Arguments:
      operand: the array.
      scatter_indices: integers; the last axis holds one index vector.
      updates: what to compare with: batch axes as ``scatter_indices`` without its last, and window axes; of
        the operand's dtype.
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
    >>> scatter_max(np.arange(1, 5), np.array([[0], [2], [2]]), np.array([5, 2, 3]), numbers)
    Array([5, 2, 3, 4], dtype=int32)
    """
    return _combining(
        scatter_max_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
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
    return _public(scatter_apply_p, operand, scatter_indices, updates, dimension_numbers, closed, **hints)


def _apply_once(operand, indices, func, updates, numbers, hints):
    """``scatter_apply`` at positions without repetition, made of gather and scatter."""
    params = {"dimension_numbers": numbers, **hints, "mode": GatherScatterMode.from_any(hints["mode"])}
    current = Site(get_aval(operand), indices, get_aval(updates), **params).read(operand)
    shape = get_aval(current).shape
    axis = Axis(None, get_aval(current).size)
    (new,), (dim,) = batch_flat(lambda x: [func(x)], axis, [reshape(current, (axis.size,))], [0])
    new = broadcast(new, (axis.size,)) if dim is None else new
    return scatter(operand, indices, reshape(new, shape), numbers, **hints)
