"""Arrays on meshes made from their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core.array import Array, as_array, live
from catena.core.dtypes import canonicalize_dtype, dtype_name
from catena.core.sharding import Sharding
from catena.core.tree import tree_map
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
            parts[str(index)] = index, as_array(data_callback(index))
    check_parts(shape, sharding, [part for _, part in parts.values()], dtype)
    return assembled(shape, sharding, list(parts.values()))


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
    return assembled(shape, sharding, [(index, held[device]) for device, index in indices.items()])


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
    if global_shape is not None:
        shapes = tree_map(lambda x: global_shape, local_data) if is_shape(global_shape) else global_shape
        tree_map(check_global_shape, local_data, shapes)
    return device_put(local_data, sharding)


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
    kind = parts[0].dtype if dtype is None else canonicalize_dtype(dtype)
    for part in parts:
        if part.shape != expected:
            raise ValueError(
                f"the parts of an array of shape {shape} have the shape {expected}, got one of shape {part.shape}; the "
                f"sharding is {sharding}"
            )
        if part.dtype != kind:
            raise ValueError(f"all parts must be {dtype_name(kind)}, got one of dtype {dtype_name(part.dtype)}")


def assembled(shape: tuple, sharding: Sharding, parts: list) -> Array:
    """The array of these indices and parts."""
    first = parts[0][1]
    if len(parts) == 1 or sharding.is_fully_replicated:
        return device_put(first, sharding)
    if first.aval.extended:
        raise TypeError("arrays of random keys are made whole, and laid out by device_put")
    whole = np.empty(shape, live(first).dtype)
    for index, part in parts:
        whole[index] = live(part)
    return device_put(whole, sharding)
