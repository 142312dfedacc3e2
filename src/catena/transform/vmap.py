"""``vmap``: a function of one example becomes a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from catena.core import dtypes
from catena.core.array import as_array
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.ref import Ref, for_users
from catena.core.source import function_place
from catena.core.trace import VALUES
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_leaves_with_path, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.core.tree_keys import keystr
from catena.core.zeros import get_aval
from catena.transform.arguments import argument_names, leaf_names
from catena.transform.batch import Axis, batch_flat, match_axis
from catena.transform.functions import check_function, check_no_references, named_after
from catena.transform.vmappable import axis_types, classes, example_of, is_vmappable, leaves_of_trees, whole_of

P = ParamSpec("P")
R = TypeVar("R")
WRONG_IN_AXES = (
    "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the "
    "function, but got "
)


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name=None,
    axis_size: int | None = None,
    spmd_axis_name=None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Vectorise a function over an axis of its arguments.

    Arguments:
      fun: a function of trees of arrays.
      in_axes: which axis of each argument is mapped: an integer, ``None`` for not mapped, or a tuple with an
        entry for each positional argument, each a tree prefix of the argument. Keyword arguments are mapped
        along axis 0. What is not mapped may be any object, and reaches ``fun`` as it is.
      out_axes: where the mapped axis appears in the results; a tree prefix of the result.
      axis_name: a name by which collectives inside ``fun`` refer to the axis.
      axis_size: the size of the axis; needed only where nothing is mapped.
      spmd_axis_name: the name of a mesh axis, or a tuple of names, over whose devices sharding constraints inside
        ``fun`` spread the mapped axis; one device has nothing to spread.
      sum_match: whether a mapped result with ``out_axes`` ``None`` is summed instead of refused.
    Returns:
      The vectorised function.
    Raises:
      ValueError: where sizes of mapped axes differ, an axis does not exist, or a mapped result has out axis
        ``None``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.vmap(jnp.dot)(jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    check_function(fun)
    spread = mesh_axes(spmd_axis_name)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    check_arguments(in_axes, out_axes, axis_size)

    @named_after(fun, "The vectorised form")
    @api_boundary
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"{WRONG_IN_AXES}len(in_axes)={len(in_axes)}, len(args)={len(args)}")
        leaves, tree = tree_flatten((args, kwargs), leaves_of_trees())
        dims = flatten_axes("vmap in_axes", tree, (in_axes, 0), tupled_args=True)
        whole = {i: dims[i] for i, x in enumerate(leaves) if is_vmappable(x)} if classes else {}
        dims = [None if i in whole else d for i, d in enumerate(dims)]
        leaves = [x if d is None else mapped_leaf(x) for x, d in zip(leaves, dims, strict=True)]
        dims = canonical_dims(fun, args, kwargs, leaves, dims)
        size = mapped_size(fun, args, kwargs, leaves, dims, axis_size)
        axis = Axis(axis_name, size, spread=spread, split=split_of(leaves, dims))
        results = Results(out_axes, size, sum_match)

        def flat_fun(*xs):
            xs = [example_of(x, size, whole[i]) if i in whole else x for i, x in enumerate(for_users(xs))]
            call_args, call_kwargs = tree_unflatten(tree, xs)
            return results.flatten(fun(*call_args, **call_kwargs))

        return results.batch(*batch_flat(flat_fun, axis, leaves, dims, function_place(fun)))

    return vmap_f


class Results:
    """The results of a function that is vectorised: those of one example, and then of the batch."""

    __slots__ = ("out_axes", "size", "sum_match", "targets", "tree", "wholes")

    def __init__(self, out_axes, size: int, sum_match: bool):
        self.out_axes, self.size, self.sum_match = out_axes, size, sum_match

    def flatten(self, out) -> list:
        """Those of one example, whose batched form `batch` is given; containers that are mapped as wholes are kept."""
        outs, self.tree = tree_flatten(out, leaves_of_trees())
        check_no_references(outs)
        self.targets = flatten_axes("vmap out_axes", self.tree, self.out_axes)
        self.wholes: dict[int, Any] = {}
        for i, x in enumerate(outs if classes else ()):
            if is_vmappable(x):
                place = functools.partial(self._placed, i)
                self.wholes[i], outs[i] = whole_of(x, self.size, self.targets[i], place), None
        return [None if i in self.wholes else result_leaf(x) for i, x in enumerate(outs)]

    def batch(self, outs: list, dims: list):
        """The tree of all examples' results, whose mapped axes are where `out_axes` wants them."""
        placed = [
            self.wholes[i] if i in self.wholes else self._placed(i, x, d, t)
            for i, (x, d, t) in enumerate(zip(outs, dims, self.targets, strict=True))
        ]
        return tree_unflatten(self.tree, placed)

    def _placed(self, i: int, x, dim, target):
        return place_axis(x, dim, target, self.size, self.sum_match, self.tree, i)


def mesh_axes(spmd_axis_name) -> tuple:
    """The axes of a mesh that the mapped axis is spread over."""
    names = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
    if not all(isinstance(name, str) or name is None for name in names):
        raise TypeError(f"spmd_axis_name must be a name, a tuple of names or None, got {spmd_axis_name!r}")
    return () if spmd_axis_name is None else names


def check_arguments(in_axes, out_axes, axis_size) -> None:
    """Raise where these are not what ``vmap`` takes."""
    if in_axes is not None and type(in_axes) is not int and not isinstance(in_axes, (tuple, *axis_types())):
        raise TypeError(f"{WRONG_IN_AXES}{in_axes}.")
    if axis_size is not None and not hasattr(axis_size, "__index__"):
        raise TypeError(f"vmap axis_size must be an integer or None, got {axis_size!r} of type {type(axis_size)}")
    check_axes("vmap in_axes", in_axes)
    check_axes("vmap out_axes", out_axes)


def check_axes(name: str, axes) -> None:
    """Raise where the leaves of ``axes`` are anything but integers and None; True is no axis."""
    if any(type(axis) is not int and not isinstance(axis, axis_types()) for axis in tree_flatten(axes)[0]):
        raise TypeError(
            f"{name} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
        )


def mapped_leaf(x):
    """``x``, which has a mapped axis, as a value of the language, or an error."""
    if isinstance(x, VALUES):
        return x
    if dtypes.is_scalar_or_numpy(x) or type(x) is Ref:
        return as_array(x)
    raise TypeError(
        f"Argument {x!r} of type {type(x)} is not a valid JAX type; what vmap maps over are trees of arrays. "
        f"An in_axes of None passes anything through.{how_to_register(x)}"
    )


def result_leaf(x):
    """``x``, which the function returned, or an error; numbers stay numbers, for where they are not mapped."""
    if isinstance(x, VALUES) or dtypes.is_scalar_or_numpy(x):
        return x
    raise TypeError(
        f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type; vmap returns trees of "
        f"arrays.{how_to_register(x)}"
    )


def canonical_dims(fun, args, kwargs, leaves: list, dims: list) -> list:
    """``canonical_dim`` of the leaves of the arguments of ``fun``."""
    found: list = []
    try:
        for x, d in zip(leaves, dims, strict=True):
            found.append(canonical_dim(x, d))
    except (TypeError, ValueError) as error:
        names = argument_names(fun, args, kwargs)
        where = f" (It is {names[len(found)]} of {function_place(fun)}.)" if len(names) == len(leaves) else ""
        raise type(error)(f"{error}{where}") from None
    return found


def canonical_dim(x, dim, transformation: str = "vmap"):
    """``dim`` counted from the front, or an error where the argument has no such axis."""
    if dim is None:
        return None
    if type(dim) is not int:
        raise TypeError(f"{transformation} maps over arrays by an integer, got {dim!r} for one of {get_aval(x)}")
    shape = get_aval(x).shape
    if not -len(shape) <= dim < len(shape):
        raise ValueError(
            f"{transformation} was requested to map its argument along axis {dim}, which implies that its rank should "
            f"be at least {dim + 1 if dim >= 0 else -dim}, but is only {len(shape)} (its shape is {shape})"
        )
    return dim % len(shape)


def mapped_size(fun, args, kwargs, leaves, dims, axis_size, transformation: str = "vmap") -> int:
    """The common size of the mapped axes, or an error that names the arguments that disagree."""
    sizes = {get_aval(x).shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        if not leaves:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
                f"specified, got empty *args={args} and **kwargs={kwargs}"
            )
        raise ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified")
    raise ValueError(size_error(fun, args, kwargs, leaves, dims, axis_size, transformation))


def split_of(leaves, dims):
    """How types say that the mapped axis is split.

    Raises:
      ValueError: arguments are split along it in different ways.
    """
    if not context.laid_out:
        return None
    found = [get_aval(x).along(d) for x, d in zip(leaves, dims, strict=True) if d is not None and get_aval(x).ndim]
    if any(s != found[0] for s in found):
        specs = ", ".join(sorted({"P(None,)" if s is None else str(s.spec) for s in found}))
        raise ValueError(
            f"vmap: the mapped axes of all arguments must be split alike, but they are {specs}; jax.reshard changes it"
        )
    return found[0] if found else None


def size_error(fun, args, kwargs, leaves, dims, axis_size, transformation: str) -> str:
    """Which arguments have which size of the mapped axis."""
    names = [name if name.startswith("args[") else f"argument {name}" for name in argument_names(fun, args, {})]
    names += [name for key in sorted(kwargs) for name in leaf_names(f"kwargs[{key!r}]", kwargs[key])]
    by_size: dict[int, list[str]] = {}
    for name, x, d in zip(names, leaves, dims, strict=True):
        if d is not None:
            aval = get_aval(x)
            by_size.setdefault(aval.shape[d], []).append(f"axis {d} of {name} of type {aval.str_short()}")
    lines = [f"the `axis_size` argument was {axis_size}"] if axis_size is not None else []
    for size, places in by_size.items():
        if len(places) == 1:
            lines.append(f"one axis had size {size}: {places[0]}")
        else:
            shown = places[:3] + (["..."] if len(places) > 3 else [])
            lines.append(
                f"most axes ({len(places)} of them) had size {size}, e.g. {', '.join(shown)}"
                if len(places) > 3
                else f"some axes had size {size}: {', '.join(shown)}"
            )
    listed = ";\n".join(f"  * {line}" for line in lines)
    return f"{transformation} got inconsistent sizes for array axes to be mapped:\n{listed}"


def place_axis(x, dim, target, size: int, sum_match: bool, tree, position: int):
    """The result with its mapped axis where ``out_axes`` wants it."""
    if target is None:
        if dim is not None and not sum_match:
            paths = tree_leaves_with_path(tree_unflatten(tree, range(tree.num_leaves)))
            where = keystr(paths[position][0])
            raise ValueError(f"at vmap out_axes{where}, got axis spec None but output was batched on axis {dim}")
        return x if dim is None else match_axis(size, dim, None, x, sum_match=True)
    ndim = get_aval(x).ndim + (dim is None)
    if not -ndim <= target < ndim:
        raise ValueError(f"vmap out_axes is {target}, but the result has rank {ndim} with the mapped axis")
    return match_axis(size, dim, target % ndim, x)
