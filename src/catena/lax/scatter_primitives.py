"""Scatters: writing windows into an operand at positions given by an array of indices.

Updates are applied in row-major order of the updates' batch positions, so where several set the same element
the last wins, here and in compiled code.
"""

import operator
from functools import lru_cache

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal, zeros
from catena.lax import native
from catena.lax.arithmetic import add, add_p, div, max_p, min_p, mul, mul_p, neg, sub_p
from catena.lax.comparison import eq, select_n
from catena.lax.convert import convert, convert_element_type
from catena.lax.declared import scatter_add_p
from catena.lax.elementwise import ANY, NOT_LINEAR, NUMBER, WIDER, check_admitted, check_same_dtypes
from catena.lax.indexing import gather_p
from catena.lax.shape import broadcast, iota, reshape
from catena.lax.signed_zeros import as_floats, as_integers, has_both_zeros
from catena.lax.structure import like
from catena.lax.windowed import (
    CLIP,
    FILL_OR_DROP,
    MODE_NAMES,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    Written,
    check_integer_indices,
    check_scatter,
    shift,
    slice_sizes_of,
)

# ------------------------------------------------------------------------------------------------------------
# Types


def scatter_abstract(name: str, admitted):
    """The type rule of the scatter that combines by the primitive called ``name`` (None: replaces)."""

    def abstract(operand, indices, updates, *, dimension_numbers, mode, **params):
        check_integer_indices(indices, "scatter")
        if mode not in MODE_NAMES:
            raise ValueError(f"scatter: mode must be one of 'clip', 'fill', 'drop' and 'promise_in_bounds', got {mode}")
        if name is not None:
            check_admitted(name, operand, admitted, 0)
        check_same_dtypes("scatter" if name is None else f"scatter_{name}", (operand, updates))
        check_scatter(operand.shape, indices.shape, updates.shape, dimension_numbers)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type)

    return abstract


# ------------------------------------------------------------------------------------------------------------
# Evaluation


def _set(operand, indices, updates, *, dimension_numbers, mode, **params):
    w = Written(operand, indices, updates, dimension_numbers, mode)
    if w.updates.size:
        w.table[w.rows.reshape(-1)] = w.updates.reshape((-1, *w.table.shape[1:]))
    return w.out


def _combine(ufunc: np.ufunc):
    """Evaluation of the scatter that combines by ``ufunc``. Narrow floats are rounded after each update, as they are in
    compiled code, which keeps what it accumulates where it lies.
    """

    def evaluate(operand, indices, updates, *, dimension_numbers, mode, **params):
        w = Written(operand, indices, updates, dimension_numbers, mode)
        if w.updates.size:
            w.combine(ufunc)
        return w.out

    return evaluate


def _combine_extreme(ufunc: np.ufunc):
    """The same for maxima and minima, which order zeros by their signs."""
    plain = _combine(ufunc)

    def evaluate(operand, indices, updates, **params):
        dtype = operand.dtype
        wide = WIDER.get(dtype, dtype)
        if wide.kind != "f":
            return plain(operand, indices, updates, **params)
        x, y = operand.astype(wide, copy=False), updates.astype(wide, copy=False)
        if not has_both_zeros(x, y):
            return plain(x, indices, y, **params).astype(dtype, copy=False)
        integers = [as_integers(v, ufunc is np.minimum) for v in (x, y)]
        return as_floats(plain(integers[0], indices, integers[1], **params), wide).astype(dtype, copy=False)

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
    "scatter-add": add_p,
    "scatter-sub": sub_p,
    "scatter-mul": mul_p,
    "scatter-min": min_p,
    "scatter-max": max_p,
}


@lru_cache(256)
def update_jaxpr(primitive: Primitive | None, dtype):
    """The jaxpr ``lambda a b. primitive a b`` on scalars of ``dtype``, which scatters show as a parameter."""
    if primitive is None:
        return None
    aval = ShapedArray((), dtype)
    a, b, out = Var(aval), Var(aval), Var(aval)
    return ClosedJaxpr(Jaxpr([], [a, b], [out], [Eqn([a, b], [out], primitive, {})]), [])


def batch_scatter(axis, args, dims, primitive, *, dimension_numbers, **params):
    (operand, indices, updates), (operand_dim, indices_dim, updates_dim) = args, dims
    n = dimension_numbers
    operand, updates = at_front(axis.size, operand, operand_dim), at_front(axis.size, updates, updates_dim)
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


def lowered_mode(mode) -> str:
    """The mode of compiled scatters: a broken promise must not write elsewhere, so it is dropped, too."""
    return "clip" if mode is CLIP else "fill"


def _lower(kind: str):
    def lower(b, operand, indices, updates, *, dimension_numbers, mode, **params):
        return b.scatter(kind, operand, indices, updates, dimension_numbers, lowered_mode(mode))

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


scatter_add_p.define(
    abstract=scatter_abstract("add", NUMBER),
    evaluate=_combine(np.add),
    jvp=_add_jvp,
    transpose=_add_transpose,
    batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, scatter_add_p, **params),
    lower=_lower("add"),
)
scatter_sub_p = Primitive(
    "scatter-sub",
    abstract=scatter_abstract("sub", NUMBER),
    evaluate=_combine(np.subtract),
    jvp=_sub_jvp,
    transpose=_sub_transpose,
    batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, scatter_sub_p, **params),
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
    winners = site.write(scatter_p, zeros(get_aval(operand).update(dtype=numbers.dtype, weak_type=False)), numbers)
    operand_t, updates_t = instantiate(operand_t), instantiate(updates_t)
    zero = like(out, 0)
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
    abstract=scatter_abstract(None, ANY),
    evaluate=_set,
    jvp=_set_jvp,
    transpose=_set_transpose,
    batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, scatter_p, **params),
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
    abstract=scatter_abstract("mul", NUMBER),
    evaluate=_combine(np.multiply),
    jvp=_mul_jvp,
    transpose=_mul_transpose,
    batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, scatter_mul_p, **params),
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
    dtype, weak = get_aval(out).dtype, get_aval(out).weak_type
    operand_hits = convert(eq(operand, out), dtype, weak)
    updates_hits = convert(eq(updates, site.read(out)), dtype, weak)
    count = site.write(scatter_add_p, operand_hits, updates_hits)
    # An element that is NaN equals nothing, itself included: nothing shares it and its derivative is 0.
    share = div(like(out, 1), max_p.bind(count, like(out, 1)))
    tangent = site.write(
        scatter_add_p, mul(instantiate(operand_t), operand_hits), mul(instantiate(updates_t), updates_hits)
    )
    return out, mul(tangent, share)


def _extremum_lower(kind: str):
    """Complex numbers are compared by the elementwise primitive."""
    of_real = _lower(kind)

    def lower(b, operand, indices, updates, *, dimension_numbers, mode, **params):
        if not dtypes.is_complex(operand.dtype):
            return of_real(b, operand, indices, updates, dimension_numbers=dimension_numbers, mode=mode)
        body = update_jaxpr(min_p if kind == "min" else max_p, operand.dtype)
        return b.scatter("general", operand, indices, updates, dimension_numbers, lowered_mode(mode), body)

    return lower


def _extremum(name: str, ufunc: np.ufunc) -> Primitive:
    primitive = Primitive(
        f"scatter-{name}",
        abstract=scatter_abstract(name, ANY),
        evaluate=_combine_extreme(ufunc),
        jvp=lambda primals, tangents, **params: _extremum_jvp(primals, tangents, primitive, params),
        transpose=NOT_LINEAR,
        batch=lambda axis, args, dims, **params: batch_scatter(axis, args, dims, primitive, **params),
        lower=_extremum_lower(name),
    )
    return primitive


scatter_min_p = _extremum("min", np.minimum)
scatter_max_p = _extremum("max", np.maximum)
for _primitive in (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p):
    _primitive.evaluate = native.shaped(_primitive, _primitive.evaluate)


# ------------------------------------------------------------------------------------------------------------
# Binding


def scatter_mode(mode) -> GatherScatterMode:
    """What a scatter does with updates out of bounds; one that is written by one-hot products drops them."""
    found = GatherScatterMode.from_any(mode)
    return FILL_OR_DROP if found is GatherScatterMode.ONE_HOT else found


def bind_scatter(primitive, operand, scatter_indices, updates, numbers, jaxpr, **hints):
    if not isinstance(numbers, ScatterDimensionNumbers):
        raise TypeError(f"scatter: dimension_numbers must be ScatterDimensionNumbers, got {numbers!r}")
    return primitive.bind(
        operand,
        scatter_indices,
        updates,
        dimension_numbers=ScatterDimensionNumbers(*(tuple(map(operator.index, dims)) for dims in numbers)),
        indices_are_sorted=bool(hints["indices_are_sorted"]),
        mode=scatter_mode(hints["mode"]),
        unique_indices=bool(hints["unique_indices"]),
        update_consts=(),
        update_jaxpr=jaxpr,
    )
