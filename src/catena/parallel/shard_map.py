"""``shard_map``: a function for one device, run on all devices of a mesh, each with its part of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from catena.core.context import context
from catena.core.evaluate import varying_axes
from catena.core.jaxpr import ClosedJaxpr
from catena.core.mesh import AbstractMesh, Mesh, get_abstract_mesh
from catena.core.partition_spec import PartitionSpec
from catena.core.primitive import made_varying
from catena.core.ref import for_users
from catena.core.source import function_name, function_place
from catena.core.staging import DebugInfo, hoist_constants, trace_to_jaxpr
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import get_aval
from catena.parallel import border
from catena.parallel import specs as s
from catena.parallel.primitive import shard_map_p
from catena.parallel.region import Region, inside
from catena.transform.arguments import argument_names
from catena.transform.canonical import canonical


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = s.INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: set | frozenset = frozenset(),
    check_vma: bool = True,
) -> Callable:
    """Map a function over the devices of a mesh: each runs it on its part of the arguments.

    Arguments:
      f: a function of trees of arrays, positional arguments only. It sees the parts that one device has, and speaks to
        the others by collectives over the mesh's axes. Without it, a decorator is returned.
      out_specs: PartitionSpecs, a tree prefix of the result: how the array is made of the devices' parts. They are put
        together along the axes of the mesh that a spec names, and must be the same along the others.
      in_specs: PartitionSpecs, a tree prefix of the tuple of arguments (or one for all): how they are cut; ``None`` is
        ``P()``. By default the types of the arguments say it, where the axes are Explicit.
      mesh: the mesh; by default the one in force (``jax.set_mesh``).
      axis_names: the axes of the mesh that ``f`` is mapped over, by default all; along the others it is an ordinary
        function, of arrays that are laid out automatically.
      check_vma: whether types in ``f`` say over which axes values vary. Then results are known to be the same where
        ``out_specs`` needs it, and gradients take just the sums that are needed.
    Returns:
      The function of whole arrays.
    Raises:
      ValueError: specs do not fit the mesh, the arguments or the results, a result varies where it must not, or there
        is no mesh. TypeError: something is no PartitionSpec, no function, or no set of names.

    >>> import catena as jax, catena.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> mean = lambda x: jax.lax.pmean(jnp.mean(x), "data")
    >>> jax.shard_map(mean, mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P())(jnp.arange(4.0))
    Array(1.5, dtype=float32)
    """
    if f is None:
        options = {k: v for k, v in locals().items() if k != "f"}
        return functools.partial(shard_map, **options)
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}.")
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError(f"axis_names of shard_map must be a set of names of mesh axes, got {axis_names!r}")
    fun = f

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    @api_boundary
    def sharded(*args):
        region = Region(*region_for(mesh, frozenset(axis_names)), bool(check_vma))
        return call(fun, args, region, in_specs, out_specs)

    sharded.__wrapped__ = fun
    return sharded


def region_for(mesh, axis_names: frozenset, caller: str = "shard_map") -> tuple:
    """The mesh of a call, and those of its axes that become Manual.

    Raises:
      ValueError: there is no mesh, it is not the one in force, or it has no such axes.
    """
    around = get_abstract_mesh()
    if mesh is None:
        if around.empty:
            raise ValueError("shard_map needs a mesh, and none is in force: pass mesh=, or use jax.set_mesh(mesh)")
        mesh = around
    elif not isinstance(mesh, (Mesh, AbstractMesh)):
        raise ValueError(f"the mesh of shard_map must be a Mesh or an AbstractMesh, got {mesh!r} of type {type(mesh)}")
    elif not around.empty and mesh.abstract_mesh != around:
        raise ValueError(f"the mesh of {caller}, {mesh!s}, is not the one in force, {around!s}; leave it out")
    foreign = sorted(axis_names - set(mesh.axis_names), key=str)
    if foreign:
        raise ValueError(f"axis_names of shard_map has {foreign[0]!r}, which the mesh has not: {mesh!s}")
    names = axis_names or frozenset(mesh.axis_names)
    return mesh, tuple(n for n in mesh.axis_names if n in names and n not in mesh.manual_axes)


def call(fun: Callable, args: tuple, region: Region, in_specs, out_specs):
    """Trace ``fun`` for one device and bind the primitive."""
    leaves, in_tree = tree_flatten(args)
    leaves = [leaf_value(x) for x in leaves]
    avals = [get_aval(x) for x in leaves]
    names = argument_names(fun, args, {})
    place = lambda i: lambda: f"the argument {names[i]} of {function_name(fun)}"  # noqa: E731
    specs = specs_of_arguments(in_specs, args, avals, region)
    for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
        s.check_fits(spec, aval, region, "in_specs", place(i))
        s.check_divides(spec, aval, region, place(i))
        s.check_types_agree(spec, aval, region, place(i))
    s.check_are_specs("out_specs", out_specs, region)
    result: dict = {}
    leaves = [border.without_terms(x) for x in leaves]

    def body(*parts):
        parts = [border.enter(x, spec) for x, spec in zip(parts, specs, strict=True)]
        out = fun(*tree_unflatten(in_tree, for_users(parts)))
        outs, result["tree"] = tree_flatten(out)
        outs = [leaf_value(x) for x in outs]
        result["specs"] = s.flatten_specs("out_specs", out_specs, out)
        return [
            checked_result(x, spec, region, fun, i)
            for i, (x, spec) in enumerate(zip(outs, result["specs"], strict=True))
        ]

    info = DebugInfo("shard_map", function_place(fun), names)
    with inside(region):
        parts = [s.local_aval(get_aval(x), spec, region) for x, spec in zip(leaves, specs, strict=True)]
        jaxpr, consts = trace_to_jaxpr(body, parts, info)
    closed = ClosedJaxpr(hoist_constants(jaxpr).replace(debug_info=DebugInfo(info.traced_for, info.func_src_info)))
    if context.trace is None:
        closed = canonical(closed)
    outs = shard_map_p.bind(
        *consts,
        *leaves,
        check_vma=region.typed,
        in_specs=(PartitionSpec(),) * len(consts) + tuple(map(border.plain, specs)),
        jaxpr=closed,
        mesh=region.mesh,
        newly_manual_axes=frozenset(region.axes),
        out_specs=tuple(map(border.plain, result["specs"])),
    )
    outs = [border.with_terms_of(x, spec, region.mesh) for x, spec in zip(outs, result["specs"], strict=True)]
    return tree_unflatten(result["tree"], outs)


def specs_of_arguments(in_specs, args: tuple, avals, region: Region) -> list[PartitionSpec]:
    """A spec for each leaf of the arguments."""
    if in_specs is s.INFER:
        others = [name for name in region.axes if name not in region.mesh.explicit_axes]
        if others:
            raise TypeError(
                f"shard_map needs in_specs: the axes {others} are not Explicit, so that types do not say how arguments "
                "are laid out along them"
            )
        return [s.inferred(aval, region) for aval in avals]
    s.check_are_specs("in_specs", in_specs, region)
    return s.flatten_specs("in_specs", in_specs, args)


def checked_result(x, spec: PartitionSpec, region: Region, fun: Callable, i: int):
    """A result, varying over the axes that its spec names."""
    aval = get_aval(x)
    place = lambda: f"result {i} of {function_name(fun)}"  # noqa: E731
    s.check_fits(spec, aval, region, "out_specs", place)
    if not region.typed:
        return x
    s.check_is_replicated(spec, aval, region, place)
    x = border.leave(x, spec)
    missing = set(s.spec_names(spec)) - varying_axes(aval)
    return made_varying(x, frozenset(missing)) if missing else x


def smap(f: Callable | None = None, /, *, in_axes: Any = s.INFER, out_axes: Any, axis_name: Hashable) -> Callable:
    """Map a function over one axis of the mesh in force, as ``vmap`` maps over an axis of arrays.

    Arguments:
      f: a function of trees of arrays. Without it, a decorator is returned.
      in_axes: for each argument the axis that is cut, counted from the front, or ``None``: an integer, or a tree prefix
        of the tuple of arguments. By default the types of the arguments say it.
      out_axes: for each result the axis along which the parts are put together, or ``None`` where all have the same.
      axis_name: the axis of the mesh.
    Returns:
      The function of whole arrays.
    Raises:
      TypeError: ``axis_name`` is no name, or axes are no integers. ValueError: there is no mesh, or as ``shard_map``.

    >>> import catena as jax, catena.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))):
    ...     jax.smap(lambda x: jax.lax.psum(x, "i"), in_axes=0, out_axes=None, axis_name="i")(jnp.arange(2.0))
    Array([0., 1.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (tuple, list, set, frozenset)) or axis_name is None:
        raise TypeError(f"smap maps over one axis of the mesh, its name is axis_name; got {axis_name!r}")

    def spec(axis):
        if axis is None:
            return PartitionSpec()
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise TypeError(f"smap axes must be integers or None, got {axis!r}")
        if axis < 0:
            raise ValueError(f"smap axes are counted from the front, got {axis}")
        return PartitionSpec(*[None] * axis, axis_name)

    as_specs = lambda axes: tree_map(spec, axes, is_leaf=lambda x: x is None)  # noqa: E731
    specs = in_axes if in_axes is s.INFER else as_specs(in_axes)
    return shard_map(f, in_specs=specs, out_specs=as_specs(out_axes), axis_names={axis_name})
