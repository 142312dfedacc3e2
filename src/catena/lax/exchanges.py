"""Collectives that move data between examples: permutations, gathers, and exchanges along a named axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.core.axes import at_front, move_axis
from catena.core.primitive import Primitive, pcast_p
from catena.core.trace import leaf_value
from catena.core.tree import tree_map
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax.arithmetic import mul
from catena.lax.comparison import eq, select_n
from catena.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from catena.lax.named_axes import INSIDE_ONLY, axis_index, axis_size, axis_tuple, groups_of, permute_rows, size_of
from catena.lax.reductions import reduce_sum
from catena.lax.shape import broadcast_in_dim, reshape
from catena.lax.slicing import slice_in_dim
from catena.lax.structure import canonical_axis
from catena.lax.varying import all_or_none, entering, linear_jvp, numbers, typed_names
from catena.transform.batch import Axis, batch_flat


def linear_collective(
    name: str, abstract, along, transpose, of_equals=lambda x, axis, /, **params: None, **rules
) -> Primitive:
    """A collective that is linear in its one operand.

    Arguments:
      name: of the primitive.
      abstract: the type of the result.
      along: from the operand, mapped along axis 0, the axis and the parameters to the result and its mapped axis: 0,
        or None where it is the same for all examples.
      transpose: from the cotangent and the parameters to that of the operand.
      of_equals: from an operand that all examples have in common to a result that they have in common, or None.
    """

    def batch(mapped, args, dims, /, **params):
        names = params["axis_name"]
        if mapped.name not in names:
            return shifted(at_front(mapped.size, args[0], dims[0]), params)
        if len(names) > 1:
            outs, out_dims = batch_flat(lambda x: [together(x, params)], mapped, args, dims)
            return outs[0], out_dims[0]
        common = of_equals(args[0], mapped, **params) if dims[0] is None else None
        if common is not None:
            return common, None
        return along(at_front(mapped.size, args[0], dims[0]), mapped, **params)

    def shifted(x, params):
        moved = {k: v + 1 if k in AXES_OF_ARRAYS else v for k, v in params.items()}
        return primitive.bind(x, **moved), 0

    def together(x, params):
        """Along several axes as if they were one: their examples are numbered in row-major order."""
        names = params["axis_name"]
        out, dim = along(all_rows(x, names), Axis(None, axis_size(names)), **params)
        return out if dim is None else own_row(out, names)

    primitive: Primitive = Primitive(
        name,
        axis_names=lambda params: params["axis_name"],
        abstract=abstract,
        evaluate=INSIDE_ONLY,
        transpose=lambda ct, x, **params: [transpose(instantiate(ct), **params)],
        batch=batch,
        lower=INSIDE_ONLY,
        **rules,
    )
    primitive.jvp = linear_jvp(primitive)
    return primitive


AXES_OF_ARRAYS = ("all_gather_dimension", "split_axis", "concat_axis", "scatter_dimension")


def exchange(primitive: Primitive, x, axis_name, /, **params):
    """Apply a linear collective along one named axis, or along several as if they were one."""
    names = axis_tuple(axis_name)
    return primitive.bind(entering(x, names), axis_name=names, **params)


def all_rows(x, names: tuple):
    """The values of all examples as rows: the same for every example."""
    shape = get_aval(x).shape
    for name in reversed(names):
        x = all_gather_p.bind(
            x, axis_name=(name,), all_gather_dimension=0, axis_size=size_of(name), tiled=False, axis_index_groups=None
        )
    return reshape(x, (axis_size(names), *shape))


def own_row(rows, names: tuple):
    """The row that belongs to this example."""
    return dynamic_index_in_dim(rows, axis_index(names), 0, keepdims=False)


# ---- permutations


def _same_type(aval, **params):
    return aval


def _ppermute_along(x, axis, *, axis_name, perm):
    source = np.full(axis.size, -1, np.int32)
    for src, dst in perm:
        source[dst] = src
    moved = permute_rows(x, np.maximum(source, 0))
    if (source >= 0).all():
        return moved, 0
    shape = get_aval(x).shape
    received = broadcast_in_dim(source >= 0, shape, (0,))
    return select_n(received, instantiate(Zero(get_aval(moved))), moved), 0


ppermute_p = linear_collective(
    "ppermute",
    _same_type,
    _ppermute_along,
    lambda ct, *, axis_name, perm: ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)),
    of_equals=lambda x, axis, /, *, axis_name, perm: x if len(perm) == axis.size else None,
)


def ppermute(x, axis_name, perm: Sequence[tuple[int, int]]):
    """Send values from examples to examples along a named axis.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis.
      perm: pairs ``(source, destination)`` of indices, each at most once; who receives nothing gets zeros.
    Raises:
      NameError: when no such axis is in scope. ValueError: where an index repeats or does not exist.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(1.0, 4.0))
    Array([0., 1., 2.], dtype=float32)
    """
    size = axis_size(axis_name)
    pairs = tuple((int(s), int(d)) for s, d in perm)
    for what, indices in (("sources", [s for s, _ in pairs]), ("destinations", [d for _, d in pairs])):
        if len(set(indices)) != len(indices) or any(not 0 <= i < size for i in indices):
            raise ValueError(f"ppermute {what} must be unique and in range({size}), got {indices}")
    return tree_map(lambda leaf: exchange(ppermute_p, leaf_value(leaf), axis_name, perm=pairs), x)


def pshuffle(x, axis_name, perm: Sequence[int]):
    """Reorder examples along a named axis: example ``i`` gets the value of example ``perm[i]``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3.0))
    Array([2., 0., 1.], dtype=float32)
    """
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def _from_one(x, axis, *, axis_name, source):
    shape = get_aval(x).shape
    return reshape(slice_in_dim(x, source, source + 1), shape[1:]), None


def _to_one(ct, *, axis_name, source):
    total = reduce_sum(all_rows(ct, axis_name), (0,))
    mine = eq(axis_index(axis_name), np.int32(source))
    return select_n(broadcast_in_dim(mine, get_aval(ct).shape, ()), instantiate(Zero(get_aval(ct))), total)


pbroadcast_p = linear_collective("pbroadcast", _same_type, _from_one, _to_one, of_equals=lambda x, axis, /, **params: x)


def pbroadcast(x, axis_name, source):
    """The value of one example for all of them.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis, or a tuple of names.
      source: the index of the example.
    Raises:
      NameError: when no such axis is in scope. ValueError: there is no such index.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 2), axis_name="i")(jnp.arange(3.0))
    Array([2., 2., 2.], dtype=float32)
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source must be in range({size}), got {source}")
    return tree_map(lambda leaf: exchange(pbroadcast_p, leaf_value(leaf), axis_name, source=int(source)), x)


# ---- gathering and scattering


def _gather_abstract(aval, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size
    shape = list(aval.shape)
    if tiled:
        shape[all_gather_dimension] *= n
    else:
        shape.insert(all_gather_dimension, n)
    return aval.update(shape=tuple(shape))


def _gather_along(x, mapped, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups=None):
    axis, groups = all_gather_dimension, axis_index_groups
    rows = groups or (tuple(range(mapped.size)),)
    full_shape = get_aval(x).shape
    x = permute_rows(x, [i for g in rows for i in g])
    x = reshape(x, (len(rows), len(rows[0]), *full_shape[1:]))
    x = move_axis(x, 1, axis + 1)  # (groups, ..., members at axis, ...)
    if tiled:
        shape = get_aval(x).shape
        x = reshape(x, (*shape[: axis + 1], shape[axis + 1] * shape[axis + 2], *shape[axis + 3 :]))
    if groups is None:
        return reshape(x, get_aval(x).shape[1:]), None
    spread = broadcast_in_dim(
        x, (len(rows), len(rows[0]), *get_aval(x).shape[1:]), (0, *range(2, get_aval(x).ndim + 1))
    )
    flat = reshape(spread, (mapped.size, *get_aval(x).shape[1:]))
    return permute_rows(flat, np.argsort([i for g in rows for i in g])), 0


all_gather_p = linear_collective(
    "all_gather",
    _gather_abstract,
    _gather_along,
    lambda ct, *, all_gather_dimension, **params: reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
)


def _own_part(ct, *, axis_name, all_gather_dimension, axis_size, tiled):
    """What the cotangent of the gathered value is of this example's own part."""
    size = get_aval(ct).shape[all_gather_dimension] // axis_size
    start = mul(axis_index(axis_name), np.int32(size))
    if tiled:
        return dynamic_slice_in_dim(ct, start, size, all_gather_dimension)
    return dynamic_index_in_dim(ct, start, all_gather_dimension, keepdims=False)


all_gather_invariant_p = linear_collective(
    "all_gather_invariant",
    _gather_abstract,
    _gather_along,
    _own_part,
    varying=lambda operands, /, *, axis_name, **params: operands[0] - set(axis_name),
)


def all_gather(x, axis_name, *, axis_index_groups=None, axis: int = 0, tiled: bool = False, to: str = "varying"):
    """The values of all examples along a named axis, stacked, for every example.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis.
      axis_index_groups: groups of indices to gather within.
      axis: where the stacked axis appears.
      tiled: whether to concatenate along ``axis`` instead of stacking.
      to: inside ``jax.shard_map``, whether the type of the result says that it varies over the axis (``"varying"``) or
        that it is the same for all (``"invarying"``). ``"reduced"`` says in addition that cotangents are still to be
        added up.
    Raises:
      NameError: when no such axis is in scope. ValueError: there is no such kind.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2.0))
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"all_gather: `to` must be 'varying', 'reduced' or 'invarying', got {to!r}")
    size = axis_size(axis_name)
    groups = groups_of(axis_index_groups, size)
    same = to != "varying" and groups is None and typed_names(axis_tuple(axis_name))

    def one(leaf):
        leaf = leaf_value(leaf)
        at = canonical_axis(axis, get_aval(leaf).ndim + (not tiled), "all_gather axis")
        params = {"all_gather_dimension": at, "axis_size": size, "tiled": tiled}
        if same and to == "invarying":
            return exchange(all_gather_invariant_p, leaf, axis_name, **params)
        rows = exchange(all_gather_p, leaf, axis_name, **params, axis_index_groups=groups)
        return pcast_p.bind(rows, axes=same, of="varying", to="reduced") if same else rows

    return tree_map(one, x)


def scatter_abstract(aval, *, scatter_dimension, axis_size, tiled, axis_index_groups, axis_name=None):
    (aval,) = numbers("psum_scatter", aval)
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size
    shape = list(aval.shape)
    if shape[scatter_dimension] % n if tiled else shape[scatter_dimension] != n:
        raise ValueError(
            f"psum_scatter: axis {scatter_dimension} of {aval.str_short()} must be "
            f"{'divisible by' if tiled else 'of'} the size {n} of the named axis"
        )
    if tiled:
        shape[scatter_dimension] //= n
    else:
        del shape[scatter_dimension]
    return aval.update(shape=tuple(shape))


def _scatter_along(x, mapped, *, axis_name, scatter_dimension, axis_size, tiled, axis_index_groups):
    rows = axis_index_groups or (tuple(range(mapped.size)),)
    full_shape = get_aval(x).shape
    x = permute_rows(x, [i for g in rows for i in g])
    total = reduce_sum(reshape(x, (len(rows), len(rows[0]), *full_shape[1:])), (1,))
    at = scatter_dimension + 1
    if tiled:
        shape = get_aval(total).shape
        total = reshape(total, (*shape[:at], len(rows[0]), shape[at] // len(rows[0]), *shape[at + 1 :]))
    total = move_axis(total, at, 1)
    flat = reshape(total, (mapped.size, *get_aval(total).shape[2:]))
    return permute_rows(flat, np.argsort([i for g in rows for i in g])), 0


reduce_scatter_p = linear_collective(
    "reduce_scatter",
    scatter_abstract,
    _scatter_along,
    lambda ct, *, scatter_dimension, **params: all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params),
)


def psum_scatter(x, axis_name, *, scatter_dimension: int = 0, axis_index_groups=None, tiled: bool = False):
    """The sum over a named axis, of which each example keeps its own slice.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis.
      scatter_dimension: the axis that is cut into slices.
      axis_index_groups: groups of indices to work within.
      tiled: whether the slices keep the axis.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i")(jnp.arange(4.0).reshape(2, 2))
    Array([2., 4.], dtype=float32)
    """
    size = axis_size(axis_name)
    groups = groups_of(axis_index_groups, size)

    def one(leaf):
        leaf = all_or_none(leaf, axis_tuple(axis_name), "jax.lax.psum_scatter")
        at = canonical_axis(scatter_dimension, get_aval(leaf).ndim, "psum_scatter scatter_dimension")
        params = {"scatter_dimension": at, "axis_size": size, "tiled": tiled, "axis_index_groups": groups}
        scatter_abstract(get_aval(leaf), **params)
        return exchange(reduce_scatter_p, leaf, axis_name, **params)

    return tree_map(one, x)


def exchange_abstract(aval, *, axis_name, split_axis, concat_axis, axis_size, axis_index_groups):
    n = len(axis_index_groups[0]) if axis_index_groups else axis_size
    shape = list(aval.shape)
    if shape[split_axis] % n:
        raise ValueError(
            f"all_to_all: axis {split_axis} of {aval.str_short()} must be divisible by the size {n} of the named axis"
        )
    shape[split_axis] //= n
    shape[concat_axis] *= n
    return aval.update(shape=tuple(shape))


def _exchange_along(x, mapped, *, axis_name, split_axis, concat_axis, axis_size, axis_index_groups):
    rows = axis_index_groups or (tuple(range(mapped.size)),)
    n = len(rows[0])
    order = [i for g in rows for i in g]
    x = permute_rows(x, order)
    shape = get_aval(x).shape
    x = reshape(x, (len(rows), n, *shape[1:]))  # (groups, source, ...)
    s, shape = split_axis + 2, get_aval(x).shape
    x = reshape(x, (*shape[:s], n, shape[s] // n, *shape[s + 1 :]))  # destination at s
    x = move_axis(x, s, 1)  # (groups, destination, source, ...)
    c = concat_axis + 2
    x = move_axis(x, 2, c)  # source just before the axis it is concatenated along
    shape = get_aval(x).shape
    x = reshape(x, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :]))
    flat = reshape(x, (mapped.size, *get_aval(x).shape[2:]))
    return permute_rows(flat, np.argsort(order)), 0


all_to_all_p = linear_collective(
    "all_to_all",
    exchange_abstract,
    _exchange_along,
    lambda ct, *, split_axis, concat_axis, **params: all_to_all_p.bind(
        ct, split_axis=concat_axis, concat_axis=split_axis, **params
    ),
)


def all_to_all(x, axis_name, split_axis: int, concat_axis: int, *, axis_index_groups=None, tiled: bool = False):
    """Exchange slices: example ``i`` sends slice ``j`` of its value to example ``j``.

    Arguments:
      x: a tree of arrays.
      axis_name: the name of the axis.
      split_axis: the axis that is cut into slices, one for each example.
      concat_axis: the axis along which the received slices are put together.
      axis_index_groups: groups of indices to exchange within.
      tiled: whether the axes stay (cut and concatenated) instead of being removed and inserted.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.arange(4.0).reshape(2, 2))
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    size = axis_size(axis_name)
    groups = groups_of(axis_index_groups, size)
    n = len(groups[0]) if groups else size

    def one(leaf):
        leaf = leaf_value(leaf)
        aval = get_aval(leaf)
        split = canonical_axis(split_axis, aval.ndim, "all_to_all split_axis")
        concat = canonical_axis(concat_axis, aval.ndim, "all_to_all concat_axis")
        params = {"axis_size": size, "axis_index_groups": groups}
        if tiled:
            exchange_abstract(aval, axis_name=axis_name, split_axis=split, concat_axis=concat, **params)
            return exchange(all_to_all_p, leaf, axis_name, split_axis=split, concat_axis=concat, **params)
        if aval.shape[split] != n:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are "
                f"{n} and {aval.shape[split]} respectively."
            )
        # insert the axis to concatenate along; then drop the axis that was cut, now of size 1
        shape = list(aval.shape)
        place = concat if concat <= split else concat + 1
        shape.insert(place, 1)
        split_now = split + (place <= split)
        out = exchange(
            all_to_all_p, reshape(leaf, tuple(shape)), axis_name, split_axis=split_now, concat_axis=place, **params
        )
        out_shape = list(get_aval(out).shape)
        del out_shape[split_now]
        return reshape(out, tuple(out_shape))

    return tree_map(one, x)


def pswapaxes(x, axis_name, axis: int, *, axis_index_groups=None):
    """Swap a named axis with an axis of the value, of the same size.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.arange(4.0).reshape(2, 2))
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
