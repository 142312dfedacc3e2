"""Arrays on meshes made from their parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core.array import Array, as_array, live, typed_array
from catena.core.aval import ShapedArray
from catena.core.dtypes import canonicalize_dtype, dtype_name
from catena.core.job import job
from catena.core.parts import Parts, bounds, indices_here, spans
from catena.core.placed import place, typed_parts
from catena.core.sharding import Sharding, placement_of
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.transform.placement import device_put


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding, data_callback: Callable[[tuple], Any], dtype: Any = None
) -> Array:
    """An array whose parts a function gives.

    Arguments:
      shape: the shape of the whole.
      sharding: how it is laid out.
      data_callback: called with the index of a part, a tuple of slices; returns the part. Devices that hold the same
        part share one call.
      dtype: the dtype that the parts have.
    Returns:
      An array of this shape and sharding.
    Raises:
      ValueError: the sharding does not fit the shape, or a part has another shape or dtype.
      TypeError: this is no sharding.

    >>> import catena as jax, numpy as np
    >>> whole = np.arange(4.0)
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> jax.make_array_from_callback((4,), jax.NamedSharding(mesh, jax.P("data")), lambda index: whole[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    shape = tuple(shape)
    check_sharding(sharding)
    parts: dict = {}
    for index in sharding.addressable_devices_indices_map(shape).values():
        if str(index) not in parts:
            part = data_callback(index)
            parts[str(index)] = index, part if isinstance(part, Array) else as_array(part)
    if not parts and dtype is None:
        raise ValueError(f"process {job.index} has no device of {sharding}: it must be told the dtype of the array")
    check_parts(shape, sharding, [part for _, part in parts.values()], dtype)
    return assembled(shape, sharding, list(parts.values()), dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: Any = None
) -> Array:
    """An array whose parts lie on their devices already.

    Arguments:
      shape: the shape of the whole.
      sharding: how it is laid out.
      arrays: for each device of ``sharding`` the part that it holds, in any order.
      dtype: the dtype that the parts have.
    Returns:
      An array of this shape and sharding.
    Raises:
      ValueError: there are more or fewer arrays than devices, they are elsewhere, or have another shape or dtype.
      TypeError: these are no arrays.

    >>> import catena as jax, numpy as np
    >>> parts = [jax.device_put(np.ones(2), device) for device in jax.devices()[:1]]
    >>> jax.make_array_from_single_device_arrays((2,), parts[0].sharding, parts)
    Array([1., 1.], dtype=float32)
    """
    shape = tuple(shape)
    check_sharding(sharding)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"arrays must be a list or tuple of arrays, one for each device, got {type(arrays).__name__}")
    for x in arrays:
        if not isinstance(x, Array):
            raise TypeError(f"the elements of arrays must be Arrays, each on its device, got {type(x).__name__}")
        if len(x.devices()) != 1:
            raise ValueError(f"each of arrays must be on one device; one is on {len(x.devices())}")
    indices = sharding.addressable_devices_indices_map(shape)
    if len(arrays) != len(indices):
        raise ValueError(f"the sharding has {len(indices)} devices, and {len(arrays)} arrays were given")
    held = {device: x for x in arrays for device in x.devices()}
    missing = sorted(d.id for d in set(indices) - set(held))
    if missing:
        raise ValueError(f"no array is on the devices {missing} of the sharding; arrays must be one on each")
    check_parts(shape, sharding, list(arrays), dtype)
    return assembled(shape, sharding, [(index, held[device]) for device, index in indices.items()], dtype)


def make_array_from_process_local_data(sharding: Sharding, local_data: Any, global_shape: tuple | None = None) -> Any:
    """A tree of arrays, of which each process has a part.

    Arguments:
      sharding: how they are laid out, or a tree of shardings.
      local_data: the parts of this process, a tree of arrays; with one process, the wholes.
      global_shape: the shape of the whole, or a tree of shapes; ``None`` for that of the parts put together.
    Returns:
      A tree of arrays.
    Raises:
      ValueError: a sharding does not fit its array, or ``global_shape`` is not what the parts make up.

    >>> import catena as jax, numpy as np
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> jax.make_array_from_process_local_data(jax.NamedSharding(mesh, jax.P("data")), np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    if job.shared:
        return from_processes(sharding, local_data, global_shape)
    if global_shape is not None:
        shapes = tree_map(lambda x: global_shape, local_data) if is_shape(global_shape) else global_shape
        tree_map(check_global_shape, local_data, shapes)
    return device_put(local_data, sharding)


def from_processes(sharding, local_data, global_shape):
    """The same where there are several processes."""
    leaves, tree = tree_flatten(local_data)
    shardings = flatten_axes("sharding", tree, sharding)
    if global_shape is None or is_shape(global_shape):
        shapes = [global_shape] * len(leaves)
    else:
        shapes = tree_flatten(global_shape, is_leaf=is_shape)[0]
    arrays = [from_process(s, x, shape) for s, x, shape in zip(shardings, leaves, shapes, strict=True)]
    return tree_unflatten(tree, arrays)


def from_process(sharding: Sharding, data, global_shape: tuple | None) -> Array:
    """An array of which ``data`` is the part of this process: all places that its devices hold, in order. Along axes
    on which it has the length of the whole, it is the whole.
    """
    check_sharding(sharding)
    data = as_array(data)
    if is_all_here(sharding, job.index):
        return device_put(data, sharding)
    asked = None if global_shape is None else checked_shape(global_shape)
    shape, places = places_in_part(sharding, data.shape, asked, job.index)
    placement = placement_of(sharding)
    parts = {d: np.array(live(data)[where], order="C") for d, where in places.items()}
    aval = data.aval.update(shape=shape)
    if not spans(placement):  # all of it, and copies in other processes
        return place(typed_array(next(iter(parts.values())), aval), placement)
    return typed_parts(Parts(aval, placement, parts))


@functools.lru_cache(1024)
def is_all_here(sharding: Sharding, process: int) -> bool:
    """Whether a process has all devices of a sharding.

    Raises:
      ValueError: it has none.
    """
    if not sharding.has_addressable_devices:
        raise ValueError(f"process {process} has data for an array and no device of {sharding}")
    return sharding.is_fully_addressable


@functools.lru_cache(1024)
def places_in_part(sharding: Sharding, part: tuple, whole: tuple | None, process: int) -> tuple[tuple, dict]:
    """The shape of an array of which a process has a part of the shape ``part``, and for each of its devices where in
    that part its own stands.
    """
    counts, tiles_of = sharding._tiles(len(part))
    own = tiles_of[[i for i, d in enumerate(sharding._device_assignment) if d.process_index == process]]
    here = [sorted(set(column)) for column in own.T.tolist()]  # which tiles of each axis the process has
    shape = whole or tuple(n * c // len(tiles) for n, c, tiles in zip(part, counts, here, strict=True))
    sizes = sharding.shard_shape(shape)
    starts = []
    for axis, (n, size, tiles) in enumerate(zip(part, sizes, here, strict=True)):
        if n not in (shape[axis], size * len(tiles)):
            raise ValueError(
                f"axis {axis} of the data of process {process} has {n} elements: it must have the {shape[axis]} of "
                f"the whole, of shape {shape}, or the {size * len(tiles)} that the process's devices hold"
            )
        starts.append({t: t * size if n == shape[axis] else i * size for i, t in enumerate(tiles)})

    def place_of(index) -> tuple:
        corner = [b // size if size else 0 for (b, _), size in zip(bounds(index, shape), sizes, strict=True)]
        first = [at[tile] for at, tile in zip(starts, corner, strict=True)]
        return tuple(slice(b, b + n) for b, n in zip(first, sizes, strict=True))

    indices = sharding.addressable_devices_indices_map(shape)
    return shape, {d: place_of(index) for d, index in indices.items()}


def checked_shape(shape) -> tuple:
    if None in shape:
        raise ValueError(f"global_shape must be all integers where there are several processes, got {shape}")
    return tuple(shape)


def part_of_process(x: Array) -> Array:
    """What the devices of this process hold of an array, in order.

    Raises:
      ValueError: they hold no block of it.
    """
    held = {bounds(s.index, x.shape): s.data for s in x.addressable_shards}
    corner = [min(b[axis][0] for b in held) for axis in range(x.ndim)]
    shape = tuple(max(b[axis][1] for b in held) - corner[axis] for axis in range(x.ndim))
    whole = np.empty(shape, live(next(iter(held.values()))).dtype)
    if sum(part.size for part in held.values()) != whole.size:
        raise ValueError(f"process {job.index} has no block of an array that is laid out by {x.sharding}")
    for where, part in held.items():
        whole[tuple(slice(b - c, e - c) for (b, e), c in zip(where, corner, strict=True))] = live(part)
    return as_array(whole)


def is_shape(x) -> bool:
    """Whether this is one shape, not a tree of them."""
    return isinstance(x, tuple) and all(n is None or isinstance(n, int) for n in x)


def check_global_shape(x, shape) -> None:
    """Raise where the only process has not all of an array of this shape."""
    if tuple(shape) != np.shape(x):
        raise ValueError(
            f"with one process, its data are the whole: global_shape must be None or {np.shape(x)}, got {shape}"
        )


def check_sharding(sharding) -> None:
    if not isinstance(sharding, Sharding):
        raise TypeError(f"sharding must be a jax.sharding.Sharding, got {sharding!r}")


def check_parts(shape: tuple, sharding: Sharding, parts: list[Array], dtype) -> None:
    """Raise ValueError where parts are not of the shape that the sharding makes, or of another dtype."""
    expected = sharding.shard_shape(shape)
    kind = parts[0].dtype if parts and dtype is None else canonicalize_dtype(dtype)
    for part in parts:
        if part.shape != expected:
            raise ValueError(
                f"the parts of an array of shape {shape} have the shape {expected}, got one of shape {part.shape}; the "
                f"sharding is {sharding}"
            )
        if part.dtype != kind:
            raise ValueError(f"all parts must be {dtype_name(kind)}, got one of dtype {dtype_name(part.dtype)}")


def assembled(shape: tuple, sharding: Sharding, parts: list, dtype) -> Array:
    """The array of these indices and parts."""
    if job.shared and not sharding.is_fully_addressable:
        return spanning(shape, sharding, parts, dtype)
    first = parts[0][1]
    if len(parts) == 1 or sharding.is_fully_replicated:
        return device_put(first, sharding)
    if first.aval.extended:
        raise TypeError("arrays of random keys are made whole, and laid out by device_put")
    whole = np.empty(shape, live(first).dtype)
    for index, part in parts:
        whole[index] = live(part)
    return device_put(whole, sharding)


def spanning(shape: tuple, sharding: Sharding, parts: list, dtype) -> Array:
    """The array of which these are the parts of this process."""
    held = {bounds(index, shape): part for index, part in parts}
    placement = placement_of(sharding)
    if not spans(placement):  # all of it, and copies in other processes
        return place(parts[0][1], placement)
    aval = parts[0][1].aval.update(shape=shape) if parts else ShapedArray(shape, canonicalize_dtype(dtype))
    shards = {d: live(held[bounds(index, shape)]) for d, index in indices_here(placement, shape).items()}
    return typed_parts(Parts(aval, placement, shards))
