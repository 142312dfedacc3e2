"""Collectives: operations along a named axis of ``vmap`` or ``pmap``, as if the examples talked to each other.

A collective names the axes it works along. When a batch trace maps an axis of that name, its rule does the work on
the mapped axis; other axes of the collective stay for the traces outside.
"""

from collections.abc import Callable, Sequence

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.primitive import NoRule, Primitive
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import add, div, mul
from catena.lax.convert import convert_element_type
from catena.lax.indexing import GatherDimensionNumbers, gather
from catena.lax.reductions import reduce_max, reduce_min, reduce_sum
from catena.lax.shape import broadcast_in_dim, iota, reshape
from catena.transform.batch import move_axis
from catena.transform.custom_call import leaf_value

INSIDE_ONLY = NoRule("a collective needs a named axis; call it inside vmap or pmap with axis_name")

# ---- named axes


def axis_tuple(axis_name) -> tuple:
    """One name or several as a tuple, each checked to be in scope."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        size_of(name)
    return names


def size_of(name) -> int:
    """The size of a named axis in scope."""
    try:
        return context.axis_env[name]
    except (KeyError, TypeError):
        raise NameError(
            f"unbound axis name: {name}. The axes in scope are {list(context.axis_env)}; "
            "vmap and pmap bind one by axis_name."
        ) from None


def axis_size(axis_name) -> int:
    """The number of examples along a named axis.

    Arguments:
      axis_name: the name, or a tuple of names for the product of the sizes.

    Raises:
      NameError: when no such axis is in scope.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: x * jax.lax.axis_size("i"), axis_name="i")(jnp.ones(3))
      Array([3., 3., 3.], dtype=float32)
    """
    size = 1
    for name in axis_tuple(axis_name):
        size *= size_of(name)
    return size


def groups_of(axis_index_groups, size: int):
    """The groups as a NumPy table of equal rows that covers the axis once, or ``None``."""
    if axis_index_groups is None:
        return None
    sizes = {len(g) for g in axis_index_groups}
    table = np.array(axis_index_groups, np.int32) if len(sizes) == 1 else None
    if table is None or sorted(table.ravel().tolist()) != list(range(size)):
        raise ValueError(
            f"axis_index_groups must be groups of equal size that cover each of the {size} indices once, "
            f"got {axis_index_groups}"
        )
    return tuple(tuple(int(i) for i in row) for row in table)


def permute_rows(x, order: Sequence[int]):
    """The rows of ``x`` along axis 0 in this order."""
    shape = get_aval(x).shape
    if list(order) == list(range(shape[0])):
        return x
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    indices = np.array(order, np.int32)[:, None]
    return gather(x, indices, numbers, slice_sizes=(1, *shape[1:]), mode="promise_in_bounds")


# ---- reductions


def _reduce_abstract(*avals, axes, axis_index_groups):
    return avals


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
        groups = groups_of(axis_index_groups, axis.size)
        done = [one(axis, x, d, groups) for x, d in zip(args, dims, strict=True)]
        outs, out_dims = [x for x, _ in done], [d for _, d in done]
        rest = tuple(a for a in axes if a != axis.name)
        return (primitive.bind(*outs, axes=rest, axis_index_groups=None) if rest else outs), out_dims

    def one(axis, x, dim, groups):
        if dim is None:
            return repeat(x, len(groups[0]) if groups else axis.size), None
        if groups is None:
            return reduce(x, (dim,)), None
        x = permute_rows(move_axis(x, dim, 0), [i for g in groups for i in g])
        shape = get_aval(x).shape
        inside = reduce(reshape(x, (len(groups), len(groups[0]), *shape[1:])), (1,))
        spread = broadcast_in_dim(inside, (len(groups), len(groups[0]), *shape[1:]), (0, *range(2, len(shape) + 1)))
        return permute_rows(reshape(spread, shape), np.argsort([i for g in groups for i in g])), 0

    primitive = Primitive(
        name,
        multiple_results=True,
        axis_names=lambda params: params["axes"],
        abstract=_reduce_abstract,
        evaluate=INSIDE_ONLY,
        batch=batch,
        lower=INSIDE_ONLY,
        **rules,
    )
    return primitive


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
        raise TypeError(
            f"{name} along a named axis has no derivative; write it with all_gather and a maximum or minimum, which has"
        )

    return jvp


pmax_p = reduction(
    "pmax", reduce_max, lambda x, n: x, {"jvp": _extremum_jvp("pmax"), "transpose": NoRule("a maximum is not linear")}
)
pmin_p = reduction(
    "pmin", reduce_min, lambda x, n: x, {"jvp": _extremum_jvp("pmin"), "transpose": NoRule("a minimum is not linear")}
)


def bind_reduction(primitive: Primitive, x, axis_name, axis_index_groups):
    from_names = axis_tuple(axis_name)
    groups = groups_of(axis_index_groups, axis_size(axis_name))
    return tree_map(lambda leaf: primitive.bind(leaf_value(leaf), axes=from_names, axis_index_groups=groups)[0], x)


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum over a named axis.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis, or a tuple of names.
      axis_index_groups: groups of indices to sum within, of equal size, covering the axis.

    Returns:
      A tree like ``x``, the same for every example. A Python number gives a Python number: ``psum(1, axis)`` is the
      size of the axis.

    Raises:
      NameError: when no such axis is in scope.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(4.0))
      Array([0.        , 0.16666667, 0.33333334, 0.5       ], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    arrays = [as_integer(leaf_value(leaf)) for leaf in leaves if type(leaf) not in NUMBER]
    sums = iter(bind_reduction(psum_p, arrays, axis_name, axis_index_groups) if arrays else ())
    size = axis_size(axis_name)
    groups = groups_of(axis_index_groups, size)
    times = len(groups[0]) if groups else size
    return tree_unflatten(tree, [leaf * times if type(leaf) in NUMBER else next(sums) for leaf in leaves])


NUMBER = (int, float, complex)


def as_integer(x):
    """Booleans are summed as integers."""
    if get_aval(x).dtype != bool:
        return x
    return convert_element_type(x, np.int32)


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
      Array([-1.,  0.,  1.], dtype=float32)
    """
    groups = groups_of(axis_index_groups, axis_size(axis_name))
    count = len(groups[0]) if groups else axis_size(axis_name)
    total = psum(tree_map(leaf_value, x), axis_name, axis_index_groups=axis_index_groups)

    def mean(v):
        dtype = get_aval(v).dtype
        inexact = dtype if dtypes.is_inexact(dtype) else dtypes.canonicalize_dtype(np.float64)
        return div(convert_element_type(v, inexact), np.asarray(count, inexact))

    return tree_map(mean, total)


def pmax(x, axis_name, *, axis_index_groups=None):
    """The maximum over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.arange(3.0))
      Array([2., 2., 2.], dtype=float32)
    """
    return bind_reduction(pmax_p, x, axis_name, axis_index_groups)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The minimum over a named axis.

    Arguments:
      x, axis_name, axis_index_groups: as for ``psum``.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.arange(3.0))
      Array([0., 0., 0.], dtype=float32)
    """
    return bind_reduction(pmin_p, x, axis_name, axis_index_groups)


# ---- the index along an axis


def _index_batch(axis, args, dims, *, axis_name):
    return iota(np.int32, axis.size), 0


axis_index_p = Primitive(
    "axis_index",
    axis_names=lambda params: (params["axis_name"],),
    abstract=lambda *, axis_name: ShapedArray((), np.int32),
    evaluate=INSIDE_ONLY,
    jvp=lambda primals, tangents, *, axis_name: (
        axis_index_p.bind(axis_name=axis_name),
        Zero(ShapedArray((), dtypes.float0)),
    ),
    transpose=NoRule("it has no operands"),
    batch=_index_batch,
    lower=INSIDE_ONLY,
)


def axis_index(axis_name):
    """The index of this example along a named axis, an int32 scalar.

    Arguments:
      axis_name: the name, or a tuple of names for the index in row-major order.

    Raises:
      NameError: when no such axis is in scope.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.vmap(lambda x: jax.lax.axis_index("i"), axis_name="i")(jnp.zeros(3))
      Array([0, 1, 2], dtype=int32)
    """
    index = None
    for name in axis_tuple(axis_name):
        one = axis_index_p.bind(axis_name=name)
        index = one if index is None else add(mul(index, np.int32(size_of(name))), one)
    return index
