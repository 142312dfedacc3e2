"""Collectives that reduce along a named axis of ``vmap`` or ``pmap``, as if the examples talked to each other.

A collective names the axes it works along. When a batch trace maps an axis of that name, its rule does the work on
the mapped axis; other axes of the collective stay for the traces outside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena.core import dtypes
from catena.core.axes import at_front
from catena.core.primitive import NoRule, Primitive
from catena.core.structural import convert_element_type_p
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import div, mul
from catena.lax.convert import convert_element_type
from catena.lax.exchanges import all_rows, own_row
from catena.lax.join import concatenate
from catena.lax.named_axes import INSIDE_ONLY, axis_size, axis_tuple, group_size, groups_of, permute_rows
from catena.lax.reductions import reduce_max, reduce_min, reduce_sum
from catena.lax.shape import broadcast_in_dim
from catena.lax.structure import like
from catena.lax.varying import all_or_none, entering, numbers, psum_invariant_p, typed_names


def _same_along(operands, /, *, axes, axis_index_groups):
    """What extrema vary over: not over the axes along which they are taken, if not in groups."""
    return [found if axis_index_groups else found - set(axes) for found in operands]


def reduction(name: str, reduce: Callable, repeat: Callable, rules: dict) -> Primitive:
    """A collective that reduces along named axes.

    Arguments:
      name: of the primitive.
      reduce: along an axis of an array.
      repeat: from an unmapped value and the size to the reduction of that many copies.
      rules: ``jvp`` and ``transpose``.
    """

    def batch(axis, args, dims, *, axes, axis_index_groups):
        if axis.name not in axes:
            return primitive.bind(*args, axes=axes, axis_index_groups=axis_index_groups), list(dims)
        done = [one(axis, x, d, axis_index_groups) for x, d in zip(args, dims, strict=True)]
        outs, out_dims = [x for x, _ in done], [d for _, d in done]
        rest = tuple(a for a in axes if a != axis.name)
        return (primitive.bind(*outs, axes=rest, axis_index_groups=None) if rest else outs), out_dims

    def one(axis, x, dim, groups):
        if groups is None:
            return (repeat(x, axis.size), None) if dim is None else (reduce(x, (dim,)), None)
        if dim is None and len(set(map(len, groups))) == 1:
            return repeat(x, len(groups[0])), None
        return within_groups(at_front(axis.size, x, dim), groups), 0

    def within_groups(rows, groups):
        """For each row, the reduction of the rows in its group."""
        shape = get_aval(rows).shape
        dims = tuple(range(1, len(shape)))
        done = [reduce(permute_rows(rows, group), (0,)) for group in groups]
        spread = [broadcast_in_dim(x, (len(g), *shape[1:]), dims) for x, g in zip(done, groups, strict=True)]
        return permute_rows(concatenate(spread, 0), np.argsort([i for g in groups for i in g]))

    primitive = Primitive(
        name,
        multiple_results=True,
        axis_names=lambda params: params["axes"],
        abstract=lambda *avals, axes, axis_index_groups: numbers(name, *avals),
        evaluate=INSIDE_ONLY,
        batch=batch,
        lower=INSIDE_ONLY,
        **rules,
    )
    WITHIN_GROUPS[primitive] = within_groups
    return primitive


WITHIN_GROUPS: dict = {}  # by primitive: from all examples as rows and the groups to all results as rows


def _psum_jvp(primals, tangents, **params):
    outs = psum_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        return outs, tangents
    return outs, psum_p.bind(*[instantiate(t) for t in tangents], **params)


def _psum_transpose(cts, *args, **params):
    return psum_p.bind(*[instantiate(ct) for ct in cts], **params)


psum_p = reduction(
    "psum",
    reduce_sum,
    lambda x, n: mul(x, np.asarray(n, get_aval(x).dtype)),
    {"jvp": _psum_jvp, "transpose": _psum_transpose},
)


def _extremum_jvp(name: str):
    def jvp(primals, tangents, *, axes, axis_index_groups):
        raise NotImplementedError(
            f"{name} along a named axis has no derivative; write it with all_gather and a maximum or minimum, which has"
        )

    return jvp


pmax_p = reduction(
    "pmax",
    reduce_max,
    lambda x, n: x,
    {"jvp": _extremum_jvp("pmax"), "transpose": NoRule("a maximum is not linear"), "varying": _same_along},
)
pmin_p = reduction(
    "pmin",
    reduce_min,
    lambda x, n: x,
    {"jvp": _extremum_jvp("pmin"), "transpose": NoRule("a minimum is not linear"), "varying": _same_along},
)


def bind_reduction(primitive: Primitive, x, axis_name, axis_index_groups):
    names = axis_tuple(axis_name)
    groups = groups_of(axis_index_groups, axis_size(axis_name), equal=False)
    if groups is not None and len(names) > 1:
        within = WITHIN_GROUPS[primitive]
        return tree_map(lambda leaf: own_row(within(all_rows(entering(leaf, names), names), groups), names), x)
    return tree_map(lambda leaf: reduce_one(primitive, leaf, names, groups), x)


def reduce_one(primitive: Primitive, leaf, names: tuple, groups):
    """An array reduced along named axes; a sum that is the same for all is another primitive where types say so."""
    typed = typed_names(names)
    if primitive is not psum_p or groups is not None or not typed:
        return primitive.bind(entering(leaf, names), axes=names, axis_index_groups=groups)[0]
    x = psum_invariant_p.bind(all_or_none(leaf, names, "jax.lax.psum"), axes=typed)
    others = tuple(name for name in names if name not in typed)
    return psum_p.bind(x, axes=others, axis_index_groups=None)[0] if others else x


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum over a named axis.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis, or a tuple of names.
      axis_index_groups: groups of indices to sum within, which together cover the axis.
    Returns:
      A tree like ``x``, the same for every example. A Python number gives a Python number: ``psum(1, axis)`` is the
      size of the axis (in groups of different sizes an array: that of the example's own group).
    Raises:
      NameError: when no such axis is in scope.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(4.0))
    Array([0.        , 0.16666667, 0.33333334, 0.5       ], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    arrays = [as_integer(leaf_value(leaf)) for leaf in leaves if type(leaf) not in NUMBER]
    sums = iter(bind_reduction(psum_p, arrays, axis_name, axis_index_groups) if arrays else ())
    times = group_size(groups_of(axis_index_groups, axis_size(axis_name), equal=False), axis_name)
    return tree_unflatten(tree, [times_number(leaf, times) if type(leaf) in NUMBER else next(sums) for leaf in leaves])


NUMBER = (int, float, complex)


def times_number(number, times):
    """``number * times``, where ``times`` may be an array."""
    return number * times if type(times) is int else mul(convert_element_type(times, get_aval(number).dtype), number)


def as_integer(x):
    """Booleans are summed as integers."""
    if get_aval(x).dtype != bool:
        return x
    return convert_element_type(x, np.int32)


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    count = group_size(groups_of(axis_index_groups, axis_size(axis_name), equal=False), axis_name)
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)

    def mean(v):
        if type(v) in NUMBER and type(count) is int:
            return v / count
        aval = get_aval(v)
        if not dtypes.is_inexact(aval.dtype):
            inexact = dtypes.canonicalize_dtype(np.float64)
            v = convert_element_type_p.bind(v, new_dtype=inexact, weak_type=aval.weak_type)
        return div(v, like(v, count) if type(count) is int else convert_element_type(count, get_aval(v).dtype))

    return tree_map(mean, total)


def pmax(x, axis_name, *, axis_index_groups=None):
    """The maximum over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([2., 2., 2.], dtype=float32)
    """
    return bind_reduction(pmax_p, x, axis_name, axis_index_groups)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The minimum over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([0., 0., 0.], dtype=float32)
    """
    return bind_reduction(pmin_p, x, axis_name, axis_index_groups)
