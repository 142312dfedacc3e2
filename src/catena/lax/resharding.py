"""Saying how an array is split: ``reshard`` changes its type, ``with_sharding_constraint`` leaves it."""

from __future__ import annotations

import functools

from catena.core.context import context, settling
from catena.core.formats import Format, Layout
from catena.core.mesh import AbstractMesh, AxisType, get_abstract_mesh, use_abstract_mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of
from catena.core.placed import place, retyped
from catena.core.primitive import Primitive
from catena.core.sharding import Sharding
from catena.core.structural import reshard_p
from catena.core.targets import on_devices, over_abstract_mesh, target_placement
from catena.core.trace import leaf_value
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.core.type_sharding import in_types
from catena.core.zeros import Zero, as_typed, get_aval, is_undefined_primal

# ------------------------------------------------------------------------------------------------------------
# The primitive


def _abstract(x, *, dst_sharding):
    return x.update(sharding=in_types(dst_sharding))


def _evaluate(x, *, dst_sharding):
    mesh = None if dst_sharding is None else dst_sharding.mesh
    if isinstance(mesh, AbstractMesh):  # its devices are those of the mesh in force, or those where the array is
        layout = getattr(x._placement, "layout", None)
        here = [m for m in (getattr(layout, "mesh", None), context.mesh) if m is not None and m.size == mesh.size]
        if not here:
            return retyped(x, _abstract(x.aval, dst_sharding=dst_sharding))
        dst_sharding = NamedSharding(here[0].update(axis_types=mesh.axis_types), dst_sharding.spec)
    if mesh is None:  # nothing is said: whole, where it is
        layout = getattr(x._placement, "layout", None)
        if in_types(layout) is None:
            return retyped(x, x.aval.unsplit())
        dst_sharding = layout.update(spec=PartitionSpec())
    return place(place(x, None), target_placement(dst_sharding))


def _jvp(primals, tangents, *, dst_sharding):
    out = reshard_p.bind(*primals, dst_sharding=dst_sharding)
    (t,) = tangents
    return out, Zero.of_primal(out) if type(t) is Zero else reshard_p.bind(t, dst_sharding=dst_sharding)


def _transpose(ct, x, *, dst_sharding):
    aval = x.aval if is_undefined_primal(x) else get_aval(x)
    return [ct if type(ct) is Zero else as_typed(ct, aval.to_ct_aval())]


def _batch(axis, args, dims, *, dst_sharding):
    (x,), (dim,) = args, dims
    if dst_sharding is None:
        return reshard_p.bind(x, dst_sharding=None), dim
    own, spec = get_aval(x).said_sharding, dst_sharding.spec
    part = None if own is None else own.spec[dim]
    used = {n for entry in spec for n in names_of(entry)}
    part = None if used.intersection(names_of(part)) else part
    parts = (*spec, *(None,) * (get_aval(x).ndim - 1 - len(spec)))
    spec = spec.update(partitions=(*parts[:dim], part, *parts[dim:]))
    return reshard_p.bind(x, dst_sharding=dst_sharding.update(spec=spec)), dim


reshard_p.define(
    takes_arrays=True,
    places_results=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=lambda b, x, *, dst_sharding: x,
)


# ------------------------------------------------------------------------------------------------------------
# What users name


def named_mesh():
    """The mesh that a bare PartitionSpec refers to: that of ``set_mesh``, or of the older ``with mesh:``."""
    return context.mesh or context.physical_mesh or context.abstract_mesh


def sharding_asked(name: str, target) -> NamedSharding:
    """The sharding that the parameter ``out_sharding`` of a function names: a PartitionSpec means the mesh in force.

    Raises:
      TypeError: it is neither a NamedSharding nor a PartitionSpec. ValueError: there is no mesh in force, or it names
        axes of a mesh that are not Explicit.
    """
    if isinstance(target, PartitionSpec):
        mesh = named_mesh()
        if mesh is None or mesh.empty:
            raise ValueError(
                f"{name}: out_sharding={target} means axes of the mesh in force, and there is none; put one in force "
                "by `with jax.set_mesh(mesh):`, or pass a NamedSharding"
            )
        abstract = context.abstract_mesh
        target = NamedSharding(abstract if abstract is not None and abstract != mesh.abstract_mesh else mesh, target)
    if not isinstance(target, NamedSharding):
        raise TypeError(f"{name}: out_sharding must be a NamedSharding or a PartitionSpec, got {target!r}")
    kinds = dict(zip(target.mesh.axis_names, target.mesh.axis_types, strict=True))
    for axis in (n for entry in target.spec for n in names_of(entry)):
        if kinds[axis] is not AxisType.Explicit:
            raise ValueError(
                f"{name}: out_sharding={target.spec} names the axis {axis!r} of the mesh, which is of type "
                f"{kinds[axis]}; only Explicit axes belong to types. jax.lax.with_sharding_constraint is for Auto ones"
            )
    return target


def resharded(name: str, x, target):
    """The result ``x`` of a function, split as its parameter ``out_sharding`` says."""
    return x if target is None else reshard_p.bind(x, dst_sharding=sharding_asked(name, target))


def told(target, function, *args, **kwargs):
    """What ``function`` gives, split as its parameter ``out_sharding`` says, whatever follows from its operands.

    Arguments:
      target: the value of that parameter.
      function: the function.
      args, kwargs: its other arguments.
    """
    sharding = sharding_asked(function.__name__, target)
    with settling():
        out = function(*args, **kwargs)
    return tree_map(lambda x: reshard_p.bind(x, dst_sharding=sharding), out)


def reshard(xs, out_shardings):
    """Arrays split in another way.

    Arguments:
      xs: a tree of arrays.
      out_shardings: for each of them, or for all below a place of the tree, a NamedSharding over Explicit axes of a
        mesh, or a PartitionSpec for the mesh in force.
    Returns:
      The arrays with these shardings in their types; on the devices, when they are computed.
    Raises:
      TypeError: a sharding is of another kind. ValueError: no mesh is in force, or an axis is not Explicit.

    >>> import catena as jax, catena.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("data",))):
    ...     jax.typeof(jax.reshard(jnp.zeros((4, 2)), jax.P("data")))
    ShapedArray(float32[4@data,2])
    """
    leaves, tree = tree_flatten(xs)
    targets = flatten_axes("reshard", tree, out_shardings)
    made = [reshard_p.bind(leaf_value(x), dst_sharding=sharding_asked("reshard", t)) for x, t in zip(leaves, targets)]
    return tree_unflatten(tree, made)


# ------------------------------------------------------------------------------------------------------------
# Constraints for the compiler


def _constraint_jvp(primals, tangents, *, sharding):
    out = sharding_constraint_p.bind(*primals, sharding=sharding)
    (t,) = tangents
    return out, Zero.of_primal(out) if type(t) is Zero else sharding_constraint_p.bind(t, sharding=sharding)


def _constraint_batch(axis, args, dims, *, sharding):
    if not isinstance(sharding, NamedSharding):
        return sharding_constraint_p.bind(*args, sharding=sharding), dims[0]
    parts = (*sharding.spec, *(None,) * (get_aval(args[0]).ndim - 1 - len(sharding.spec)))
    unsaid = PartitionSpec.UNCONSTRAINED if sharding.mesh.auto_axes else None
    spec = sharding.spec.update(partitions=(*parts[: dims[0]], unsaid, *parts[dims[0] :]))
    return sharding_constraint_p.bind(*args, sharding=sharding.update(spec=spec)), dims[0]


def _constrain(x, *, sharding):
    """The array on the devices of the mesh that is meant; over an abstract one, of its own, or of that in force."""
    found = on_devices(known_parts(sharding), x._placement)
    if over_abstract_mesh(found):
        raise TypeError(
            f"with_sharding_constraint: {sharding} is over an AbstractMesh, and neither does the array, of type "
            f"{x.aval.str_short()}, lie on such a mesh nor is one in force; pass a sharding over a Mesh, or put one in "
            "force by `with jax.set_mesh(mesh):`"
        )
    return place(place(x, None), target_placement(found))


sharding_constraint_p = Primitive(
    "sharding_constraint",
    takes_arrays=True,
    places_results=True,
    abstract=lambda x, *, sharding: x,
    evaluate=_constrain,
    jvp=_constraint_jvp,
    transpose=lambda ct, x, *, sharding: [
        ct if type(ct) is Zero else sharding_constraint_p.bind(ct, sharding=sharding)
    ],
    batch=_constraint_batch,
    lower=lambda b, x, *, sharding: x,
)


def known_parts(sharding: Sharding) -> Sharding:
    """The sharding with axes that were left to the compiler whole."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    parts = [None if entry is PartitionSpec.UNCONSTRAINED else entry for entry in sharding.spec]
    return sharding.update(spec=sharding.spec.update(partitions=parts))


def with_sharding_constraint(x, shardings):
    """Arrays, with a word to the compiler about how they are to be split along Auto axes of a mesh.

    Arguments:
      x: a tree of arrays.
      shardings: for each of them, or for all below a place of the tree, a Sharding, or a PartitionSpec for the mesh in
        force.
    Returns:
      The same values. Evaluated, they are laid out so. Along Explicit axes the types say how they are split, and here
      it is only checked; ``jax.reshard`` changes it.
    Raises:
      AssertionError: along Explicit axes an array is split in another way. ValueError: a NamedSharding names Explicit
        axes, or one does not fit an array. RuntimeError: a PartitionSpec, and no mesh is in force. TypeError: a
        sharding is of another kind.

    >>> import catena as jax, catena.numpy as jnp
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> x = jax.lax.with_sharding_constraint(jnp.zeros((4, 2)), jax.NamedSharding(mesh, jax.P("data")))
    >>> x.sharding.spec
    P('data',)
    """
    leaves, tree = tree_flatten(x)
    targets = flatten_axes("with_sharding_constraint shardings", tree, shardings)
    return tree_unflatten(tree, [_constrained(leaf_value(x), t) for x, t in zip(leaves, targets, strict=True)])


def _constrained(x, target):
    if target is None:
        raise ValueError("with_sharding_constraint: a sharding must not be None; leave the array out of the tree")
    given = isinstance(target, PartitionSpec)
    if given:
        mesh = named_mesh()
        if mesh is None or mesh.empty:
            raise RuntimeError(
                f"with_sharding_constraint: {target} means axes of the mesh in force, and there is none; put one in "
                "force by `with jax.set_mesh(mesh):`, or pass a NamedSharding"
            )
        target = NamedSharding(mesh, target)
    if isinstance(target, Format):
        if isinstance(target.layout, Layout):  # the order of axes in memory, which is the compiler's in programs
            target.layout.check_compatible_aval(get_aval(x).shape)
        target = target.sharding
    if not isinstance(target, Sharding):
        raise TypeError(f"with_sharding_constraint: shardings are Shardings or PartitionSpecs, got {target!r}")
    if isinstance(target, NamedSharding) and target.mesh.explicit_axes:
        return _agreeing(x, target, given)
    check_fits(known_parts(target), get_aval(x).shape)
    return sharding_constraint_p.bind(x, sharding=target)


def _agreeing(x, target: NamedSharding, given: bool):
    """``x``, whose type must say what ``target`` says of Explicit axes."""
    aval, explicit = get_aval(x), set(target.mesh.explicit_axes)
    named = {n for entry in target.spec if entry is not PartitionSpec.UNCONSTRAINED for n in names_of(entry)}
    if not target.mesh.are_all_axes_explicit or not given:
        if named & explicit:
            raise ValueError(
                f"with_sharding_constraint: {target.spec} may name Auto axes of the mesh only, and "
                f"{sorted(named & explicit)[0]!r} is Explicit; jax.reshard changes how types are split"
            )
        check_fits(known_parts(target), aval.shape)
        return sharding_constraint_p.bind(x, sharding=target)
    if aval.update(sharding=in_types(target)).said_sharding != aval.said_sharding:
        raise AssertionError(
            f"with_sharding_constraint: along Explicit axes it only checks, and {aval.str_short()} is not split as "
            f"{target.spec}; jax.reshard changes it"
        )
    return x


def check_fits(sharding: Sharding, shape: tuple):
    """Raise ValueError where arrays of this shape cannot be split so."""
    sharding.shard_shape(shape)


# ------------------------------------------------------------------------------------------------------------
# Functions over axes of another type


def auto_axes(f=None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding=None):
    """A function inside of which axes of the mesh in force are Auto: nothing is to be said of them there.

    Arguments:
      f: the function; without it, a decorator is returned.
      axes: names of Explicit axes; all of them by default.
      out_sharding: how the results are split, a tree prefix of PartitionSpecs or NamedShardings; it may be passed with
        the call instead.
    Returns:
      A function of the same arguments.
    Raises:
      TypeError: ``out_sharding`` is passed nowhere.

    >>> import catena as jax, catena.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("data",))):
    ...     x = jax.reshard(jnp.ones((4, 4)), jax.P("data"))
    ...     jax.typeof(jax.sharding.auto_axes(jnp.dot, out_sharding=jax.P("data"))(x, x.T))
    ShapedArray(float32[4@data,4])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        target = kwargs.pop("out_sharding", out_sharding)
        if target is None:
            raise TypeError("auto_axes: out_sharding must be passed, to auto_axes or with the call")
        mesh = get_abstract_mesh()
        inside = with_types(mesh, axes, AxisType.Auto)
        args, kwargs = tree_map(lambda x: into_mesh(x, inside), (args, kwargs))
        with use_abstract_mesh(inside):
            outs = f(*args, **kwargs)
        return reshard(outs, target)

    return wrapper


def explicit_axes(f=None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding=None):
    """A function inside of which axes of the mesh in force are Explicit: types say how arrays are split over them.

    Arguments:
      f: the function; without it, a decorator is returned.
      axes: names of Auto axes; all of them by default.
      in_sharding: how the arguments are split, a tree prefix of PartitionSpecs or NamedShardings; it may be passed with
        the call instead.
    Returns:
      A function of the same arguments.
    Raises:
      TypeError: ``in_sharding`` is passed nowhere.

    >>> import catena as jax, catena.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> with jax.set_mesh(mesh):
    ...     _ = jax.sharding.explicit_axes(lambda x: print(jax.typeof(x)), in_sharding=jax.P("data"))(jnp.ones(4))
    float32[4@data]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        target = kwargs.pop("in_sharding", in_sharding)
        if target is None:
            raise TypeError("explicit_axes: in_sharding must be passed, to explicit_axes or with the call")
        mesh = get_abstract_mesh()
        with use_abstract_mesh(with_types(mesh, axes, AxisType.Explicit)):
            args = reshard(args, target)
            outs = f(*args, **kwargs)
        return tree_map(lambda x: into_mesh(x, mesh), outs)

    return wrapper


def with_types(mesh: AbstractMesh, axes, kind: AxisType) -> AbstractMesh:
    """The mesh with some axes, or all, of another type."""
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def into_mesh(x, mesh: AbstractMesh):
    """``x`` as a value of a program over ``mesh``, which differs from the mesh before in types of axes."""
    x = leaf_value(x)
    own = get_aval(x).said_sharding
    return x if own is None else reshard_p.bind(x, dst_sharding=NamedSharding(mesh, own.spec))
