"""Devices in grids for meshes (``jax.experimental.mesh_utils``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena.core.device import devices as all_devices

device_kind_handler_dict: dict = {}  # kinds of devices whose wires say how they stand in a grid: none


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices in a grid, those that talk most being neighbours; CPU devices are all equally near.

    Arguments:
      mesh_shape: the shape of the grid.
      devices: the devices; all by default.
      contiguous_submeshes: whether the devices of each host stand together; here they always do.
      allow_split_physical_axes: whether an axis of the wires may serve several of the grid; there are none.
    Returns:
      An array of devices of this shape.
    Raises:
      ValueError: there are more or fewer devices.

    >>> import catena as jax
    >>> from catena.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1), jax.devices()[:1])
    array([[CpuDevice(id=0)]], dtype=object)
    """
    for name, value in zip(FLAGS, (contiguous_submeshes, allow_split_physical_axes), strict=True):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool, got {value!r}")
    sizes, among = tuple(int(n) for n in mesh_shape), list(all_devices() if devices is None else devices)
    if math.prod(sizes) != len(among):
        raise ValueError(f"a grid of shape {sizes} takes {math.prod(sizes)} devices, and there are {len(among)}")
    grid = np.empty(len(among), dtype=object)
    grid[:] = among
    return grid.reshape(sizes)


FLAGS = ("contiguous_submeshes", "allow_split_physical_axes")


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices in a grid of granules with a fast network inside and a slow one between them.

    Arguments:
      mesh_shape: the shape of the grid of each granule.
      dcn_mesh_shape: the shape of the grid of granules, of as many axes.
      devices: the devices; all by default.
      process_is_granule: whether a granule is a process; else it is a slice of a TPU, of which there are none.
      should_sort_granules_by_key: whether granules stand in the order of their numbers, or as in ``devices``.
      allow_split_physical_axes: as for ``create_device_mesh``.
    Returns:
      An array of devices, each of whose axes is the product of those of both grids.
    Raises:
      ValueError: there are more or fewer devices or granules, or granules are slices.

    >>> import catena as jax
    >>> from catena.experimental import mesh_utils
    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), jax.devices()[:1], process_is_granule=True)
    array([[CpuDevice(id=0)]], dtype=object)
    """
    if not process_is_granule:
        raise ValueError("the devices are no slices of a TPU; pass process_is_granule=True for processes as granules")
    sizes, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    if len(sizes) != len(outer):
        raise ValueError(f"mesh_shape and dcn_mesh_shape must have as many axes, got {sizes} and {outer}")
    among = list(all_devices() if devices is None else devices)
    numbers = list(dict.fromkeys(d.process_index for d in among))
    granules = [[d for d in among if d.process_index == i] for i in grouped(numbers, should_sort_granules_by_key)]
    if math.prod(outer) != len(granules):
        raise ValueError(
            f"a grid of granules of shape {outer} takes {math.prod(outer)}, and there are {len(granules)} processes"
        )
    flags = {"allow_split_physical_axes": allow_split_physical_axes}
    grids = np.stack([create_device_mesh(sizes, granule, **flags) for granule in granules]).reshape(*outer, *sizes)
    order = [axis for pair in zip(range(len(outer)), range(len(outer), 2 * len(outer)), strict=True) for axis in pair]
    return grids.transpose(order).reshape([a * b for a, b in zip(outer, sizes, strict=True)])


def grouped(numbers: list, in_order: bool) -> list:
    """The numbers of granules, in order or as they come."""
    return sorted(numbers) if in_order else numbers
