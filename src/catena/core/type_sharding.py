"""What a type says of how an array is split: the part of a sharding that names Explicit axes of a mesh."""

from catena.core.manual_axes import names_text


def said(sharding, shape: tuple):
    """What of a sharding belongs to the type of an array, or ``None`` if nothing does.

    Arguments:
      sharding: a NamedSharding over an AbstractMesh.
      shape: the shape of the array.
    Raises:
      ValueError: the mesh is not abstract, or does not divide an axis.
    """
    mesh, spec = sharding.mesh, sharding.spec
    if mesh.abstract_mesh is not mesh:
        raise ValueError(f"the sharding of a type needs an AbstractMesh (mesh.abstract_mesh), got {mesh!r}")
    explicit = set(mesh.explicit_axes)
    parts = tuple(_kept(part, explicit) for part in spec.partitions)
    parts += (None,) * (len(shape) - len(parts))
    if not any(parts) and not spec.unreduced and not spec.reduced:
        return None
    if len(parts) > len(shape):
        raise ValueError(f"{spec} names {len(parts)} axes, the array has the shape {shape}")
    for i, (size, part) in enumerate(zip(shape, parts, strict=True)):
        ways = ways_of(part, mesh)
        if size % ways:
            raise ValueError(f"axis {i} of the shape {shape} has {size} elements, {spec} splits it in {ways} parts")
    return sharding if parts == spec.partitions else sharding.update(spec=spec.update(partitions=parts))


def in_types(sharding):
    """A layout as types have it: over an abstract mesh, or ``None`` where there are no Explicit axes."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.explicit_axes:
        return None
    return sharding.update(mesh=mesh.abstract_mesh, memory_kind=None)


def _kept(part, explicit: set):
    """The entry of a spec for one axis, as types have it: ``None`` where an axis of the mesh is not Explicit."""
    names = axes_of(part)
    if not names or not all(name in explicit for name in names):
        kept = tuple(name for name in names if name in explicit)
        return None if not kept else kept[0] if len(kept) == 1 else kept
    return names[0] if len(names) == 1 else names


def axes_of(part) -> tuple:
    """The names of the mesh's axes in one entry of a spec."""
    if part is None:
        return ()
    if isinstance(part, str):
        return (part,)
    return tuple(part) if isinstance(part, (tuple, list)) else ()


def ways_of(part, mesh) -> int:
    """In how many parts one entry of a spec splits an axis."""
    ways = 1
    for name in axes_of(part):
        ways *= mesh.shape[name]
    return ways


def fitted(sharding, ndim: int):
    """A sharding cut, or filled up, to a number of axes."""
    parts = sharding.spec.partitions[:ndim]
    return sharding.update(spec=sharding.spec.update(partitions=parts + (None,) * (ndim - len(parts))))


def axes_text(shape: tuple, sharding) -> str:
    """``8@data,4``: the lengths of the axes, with the axes of the mesh that split them."""
    if sharding is None:
        return ",".join(map(str, shape))
    parts = zip(shape, map(axes_of, sharding.spec.partitions), strict=True)
    return ",".join(f"{n}@{names_text(names)}" if names else str(n) for n, names in parts)


def kinds_text(mesh) -> str:
    """``{Explicit: ('data',), Auto: ('model',)}``: the axes of a mesh by their kinds."""
    kinds: dict = {}
    for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True):
        kinds[kind.name] = (*kinds.get(kind.name, ()), name)
    return f"{{{', '.join(f'{kind}: {names!r}' for kind, names in kinds.items())}}}"
