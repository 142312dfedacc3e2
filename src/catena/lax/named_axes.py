"""Named axes of ``vmap`` and ``pmap``: their sizes, groups of their indices, and the index of an example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.manual_axes import ManualAxisType
from catena.core.primitive import NoRule, Primitive
from catena.core.zeros import Zero, get_aval
from catena.lax.arithmetic import add, mul
from catena.lax.dynamic_slicing import dynamic_index_in_dim
from catena.lax.indexing import GatherDimensionNumbers, gather
from catena.lax.shape import iota

INSIDE_ONLY = NoRule("a collective needs a named axis; call it inside vmap or pmap with axis_name")


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

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: x * jax.lax.axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    size = 1
    for name in axis_tuple(axis_name):
        size *= size_of(name)
    return size


# ---- the index along an axis


def _index_abstract(*, axis_name, varies=False):
    index = ShapedArray((), np.int32)
    return index.update(manual_axis_type=ManualAxisType(varying={axis_name})) if varies else index


def _index_batch(axis, args, dims, *, axis_name, varies=False):
    return iota(np.int32, axis.size), 0


axis_index_p = Primitive(
    "axis_index",
    axis_names=lambda params: (params["axis_name"],),
    abstract=_index_abstract,
    evaluate=INSIDE_ONLY,
    jvp=lambda primals, tangents, **params: (axis_index_p.bind(**params), Zero(ShapedArray((), dtypes.float0))),
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

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(lambda x: jax.lax.axis_index("i"), axis_name="i")(jnp.zeros(3))
    Array([0, 1, 2], dtype=int32)
    """
    index = None
    for name in axis_tuple(axis_name):
        one = axis_index_p.bind(axis_name=name, **({"varies": True} if name in context.typed_axes else {}))
        index = one if index is None else add(mul(index, np.int32(size_of(name))), one)
    return index


# ---- groups of indices


def groups_of(axis_index_groups, size: int, equal: bool = True):
    """The groups as tuples of indices that together cover the axis once, or ``None``; all of one size if ``equal``."""
    if axis_index_groups is None:
        return None
    groups = tuple(tuple(int(i) for i in group) for group in axis_index_groups)
    if sorted(i for group in groups for i in group) != list(range(size)) or (equal and len(set(map(len, groups))) > 1):
        raise ValueError(
            f"axis_index_groups must be groups {'of equal size ' if equal else ''}that cover each of the {size} "
            f"indices once, got {axis_index_groups}"
        )
    return groups


def group_size(groups, axis_name):
    """How many examples are in the group of this one: a number where all groups are alike, else an integer array."""
    if groups is None:
        return axis_size(axis_name)
    if len(set(map(len, groups))) == 1:
        return len(groups[0])
    return dynamic_index_in_dim(sizes_of(groups), axis_index(axis_name), 0, keepdims=False)


def sizes_of(groups) -> np.ndarray:
    """For each example, the size of its group."""
    size = {i: len(group) for group in groups for i in group}
    return np.array([size[i] for i in range(len(size))], np.int32)


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
