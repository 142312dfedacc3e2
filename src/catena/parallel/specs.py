"""What ``in_specs`` and ``out_specs`` of a ``shard_map`` say: checked, and as types and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena.core.aval import ShapedArray
from catena.core.evaluate import varying_axes
from catena.core.manual_axes import ManualAxisType
from catena.core.named_sharding import DuplicateSpecError, NamedSharding
from catena.core.partition_spec import UNCONSTRAINED, PartitionSpec, names_of
from catena.core.terms import Terms, terms_of
from catena.core.tree import tree_flatten
from catena.core.tree_errors import broadcast_prefix
from catena.parallel.region import Region


class Infer:
    """The value of ``in_specs`` that lets the types of the arguments say it."""

    def __repr__(self):
        return "Infer"

    def __reduce__(self):
        return "INFER"


INFER = Infer()


def spec_names(spec: PartitionSpec) -> tuple:
    """The axes of the mesh that a spec names, in order of the array's axes."""
    return tuple(name for entry in spec for name in names_of(entry))


def is_leaf(x) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def flatten_specs(what: str, specs, tree_of_values) -> list[PartitionSpec]:
    """A spec for each leaf of ``tree_of_values``, of which ``specs`` is a prefix; ``None`` stands for ``P()``.

    Raises:
      ValueError: it is no prefix.
    """
    found = broadcast_prefix(specs, tree_of_values, is_leaf, f"shard_map {what}")
    return [PartitionSpec() if spec is None else spec for spec in found]


def check_are_specs(what: str, specs, region: Region) -> None:
    """Raise where leaves of ``specs`` are no PartitionSpecs, or name other axes than those of the region."""
    for spec in tree_flatten(specs, is_leaf=is_leaf)[0]:
        if spec is None:
            continue
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} must be a tree of PartitionSpecs (or None), but a leaf is {spec!r} of type "
                f"{type(spec).__name__}"
            )
        if UNCONSTRAINED in spec.partitions:
            raise ValueError(f"shard_map {what} says where each axis goes: {spec} leaves one to the compiler")
        foreign = sorted((spec.unreduced | spec.reduced) - explicit_names(region), key=str)
        if foreign or (spec.unreduced or spec.reduced) and not region.typed:
            raise ValueError(
                f"shard_map {what} has {spec}: what is unreduced or reduced must be so along Explicit axes of the mesh "
                f"that become Manual, with check_vma=True; those are {sorted(explicit_names(region))}"
            )
        names = spec_names(spec)
        for name in names:
            if name not in region.axes:
                raise ValueError(
                    f"shard_map {what} has {spec}, which names {name!r}: no axis that becomes Manual; those are "
                    f"{region.axes}"
                )
            if names.count(name) > 1:
                raise DuplicateSpecError(f"shard_map {what} has {spec}, which names {name!r} twice")


def partition_of(spec: PartitionSpec, ndim: int) -> tuple:
    """For each axis of an array the names of the mesh's axes that it is split over."""
    return tuple(names_of(spec[d]) if d < len(spec) else () for d in range(ndim))


def check_fits(spec: PartitionSpec, aval, region: Region, what: str, place: Callable[[], str]) -> None:
    """Raise ValueError where an array of type ``aval`` cannot be split as ``spec`` says."""
    if len(spec) > aval.ndim:
        scalar = "" if aval.ndim else "; for scalars it is P(), and x[None] is an array of one element"
        raise ValueError(
            f"shard_map {what} has {spec} with {len(spec)} entries for {place()}, which has {aval.ndim} axes: "
            f"{aval.str_short()}{scalar}"
        )


def explicit_names(region: Region) -> frozenset:
    """The Explicit axes of the mesh that become Manual."""
    return frozenset(region.mesh.explicit_axes) & set(region.axes)


def terms_along(aval, region: Region) -> Terms:
    """The terms that a type has along axes of the region."""
    return Terms(*(names & set(region.axes) for names in terms_of(aval)))


def check_divides(spec: PartitionSpec, aval, region: Region, place: Callable[[], str]) -> None:
    """Raise ValueError where the mesh does not divide an array as ``spec`` says."""
    for axis, names in enumerate(partition_of(spec, aval.ndim)):
        ways = region.size(names)
        if aval.shape[axis] % ways:
            raise ValueError(
                f"shard_map in_specs has {spec} for {place()} of type {aval.str_short()}: axis {axis} of {names} is "
                f"split in {ways} parts, which its size {aval.shape[axis]} is no multiple of"
            )


def check_is_replicated(spec: PartitionSpec, aval, region: Region, place: Callable[[], str]) -> None:
    """Raise ValueError where a result varies over axes that its spec does not name."""
    if (found := terms_along(aval, region)) != (spec.unreduced, spec.reduced):
        raise ValueError(
            f"shard_map out_specs has {spec} for {place()} of type {aval.str_short()}: it must be unreduced along "
            f"{sorted(found.unreduced)} and reduced along {sorted(found.reduced)}, as that type is; jax.lax.psum takes "
            "a sum, and jax.lax.pcast says something else"
        )
    more = varying_axes(aval) & set(region.others(spec_names(spec)))
    if more:
        raise ValueError(
            f"shard_map out_specs has {spec} for {place()} of type {aval.str_short()}, which says that all devices "
            f"along {sorted(more)} return the same; but it may vary over {sorted(more)}. Take a jax.lax.psum or "
            "another collective over them, name them in out_specs, or, if you know better, set check_vma=False"
        )


# ---- types


def region_of(mesh, axes, typed: bool, spec: PartitionSpec) -> Region:
    """What a function would be traced in, some of whose mesh's axes become Manual; ``spec`` names no others there."""
    region = Region(mesh, tuple(name for name in mesh.axis_names if name in axes), typed)
    if typed:
        check_are_specs("spec", spec, region)
    return region


def local_aval(aval, spec: PartitionSpec, region: Region):
    """The type of the part of an array that each device has."""
    shape = tuple(n // region.size(names) for n, names in zip(aval.shape, partition_of(spec, aval.ndim), strict=True))
    varying = varying_axes(aval) | set(spec_names(spec)) if region.typed else ()
    return typed(aval, shape, varying, explicit_rest(aval, region))


def global_aval(aval, spec: PartitionSpec, region: Region, around: frozenset):
    """The type of the array whose parts have the type ``aval``; it varies over axes ``around`` this region."""
    shape = tuple(n * region.size(names) for n, names in zip(aval.shape, partition_of(spec, aval.ndim), strict=True))
    explicit = set(region.mesh.explicit_axes)
    parts = [
        tuple(name for name in names if name in explicit) + rest
        for names, rest in zip(partition_of(spec, aval.ndim), explicit_parts(aval), strict=True)
    ]
    sharding = NamedSharding(region.mesh.abstract_mesh, PartitionSpec(*parts)) if any(parts) else None
    return typed(aval, shape, (varying_axes(aval) if region.typed else around) - set(region.axes), sharding)


def typed(aval, shape: tuple, varying, sharding):
    """The type ``aval`` with another shape and layout."""
    aval = untyped(aval)
    layout: dict[str, Any] = {} if sharding is None else {"sharding": sharding}
    if varying:
        layout["manual_axis_type"] = ManualAxisType(varying=varying)
    return aval.update(shape=shape, **layout)


def untyped(aval):
    """The type ``aval`` without what it says of meshes."""
    return aval if type(aval) is not ShapedArray or aval.plain else ShapedArray(aval.shape, aval.dtype, aval.weak_type)


def explicit_parts(aval) -> list[tuple]:
    """For each axis of an array the Explicit axes of the mesh that its type says it is split over."""
    said = aval.said_sharding
    return [()] * aval.ndim if said is None else list(partition_of(said.spec, aval.ndim))


def with_explicit(spec: PartitionSpec, aval) -> PartitionSpec:
    """The spec of a result, with what its type says of Explicit axes beside those of the spec."""
    named = spec_names(spec)
    rest = [tuple(name for name in names if name not in named) for names in explicit_parts(aval)]
    if not any(rest):
        return spec
    return PartitionSpec(*[names + more for names, more in zip(partition_of(spec, aval.ndim), rest, strict=True)])


def explicit_rest(aval, region: Region):
    """What the type of an array says of Explicit axes that stay so inside the region."""
    parts = [tuple(name for name in names if name not in region.axes) for names in explicit_parts(aval)]
    return NamedSharding(region.inner_mesh, PartitionSpec(*parts)) if any(parts) else None


def check_types_agree(spec: PartitionSpec, aval, region: Region, place: Callable[[], str]) -> None:
    """Raise ValueError where the type of an argument says another layout along Explicit axes than its spec.

    Where some axes of the mesh stay as they are, specs lay arguments out anew, as in JAX.
    """
    whole = len(region.axes) + len(region.mesh.manual_axes) == len(region.mesh.axis_names)
    explicit = set(region.axes) & set(region.mesh.explicit_axes) if whole else ()
    said = [tuple(n for n in names if n in explicit) for names in explicit_parts(aval)]
    asked = [tuple(n for n in names if n in explicit) for names in partition_of(spec, aval.ndim)]
    if said != asked or terms_along(aval, region) != (spec.unreduced, spec.reduced):
        raise ValueError(
            f"shard_map in_specs has {spec} for {place()}, whose type {aval.str_short()} says {PartitionSpec(*said)}. "
            "Leave in_specs out, and the types say it, or lay the argument out by jax.reshard first"
        )


def inferred(aval, region: Region) -> PartitionSpec:
    """The spec that the type of an argument says."""
    parts = [tuple(n for n in names if n in region.axes) for names in explicit_parts(aval)]
    while parts and not parts[-1]:
        parts.pop()
    return PartitionSpec(*parts, **terms_along(aval, region)._asdict())
