"""Moving values between Python, NumPy and devices, and what lives there."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core import device as devices
from catena.core import dtypes
from catena.core.array import Array, as_array, live, typed_array
from catena.core.context import context
from catena.core.device import ARRAYS
from catena.core.errors import how_to_register
from catena.core.evaluate import abstract_cache
from catena.core.formats import Layout, laid_out
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.placed import place, spans_processes, where
from catena.core.placement import Placement, default_placement
from catena.core.struct import ShapeDtypeStruct, type_of_struct
from catena.core.targets import check_layout, in_memory, layout_of, target_placement
from catena.core.token import Token
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import broadcast_prefix, flatten_axes
from catena.core.zeros import get_aval
from catena.transform import canonical
from catena.transform.memo import all_caches

processes: Any = LazyModule("catena.parallel.processes")  # where there are several


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """Put a tree of arrays on a device.

    Arguments:
      x: a tree of arrays, NumPy arrays or scalars.
      device: a device, a sharding over one, a ``Format``, a tree prefix of these, or ``None`` for where the values are
        or would be.
      src: where the values are now; a device or a sharding.
      donate: whether the memory of ``x`` may be taken; a bool or a tree prefix.
      may_alias: whether the result may share memory with ``x``; with ``False`` it is always a copy.
    Returns:
      A tree of Arrays.
    Raises:
      ValueError: where ``device`` is not a device, or memory is to be both shared and given away.

    >>> import catena as jax, numpy as np
    >>> jax.device_put(np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    asked = flatten_axes("device_put device", tree, device) if leaves else []
    targets = [target_placement(in_memory(x, d)) for x, d in zip(leaves, asked, strict=True)]
    target_placement(src)
    donated = broadcast_prefix(donate, x) if leaves else []
    if may_alias and any(donated):
        raise ValueError("may_alias and donate cannot be True at the same time.")
    compared: list = []
    outs = [put(leaf, d, may_alias, compared) for leaf, d in zip(leaves, targets, strict=True)]
    if compared:
        processes.check_same(compared, "device_put")
    outs = [lying(out, layout) if (layout := layout_of(d)) else out for out, d in zip(outs, asked, strict=True)]
    for leaf, out, give in zip(leaves, outs, donated, strict=True):
        if give and type(leaf) in ARRAYS and out is not leaf:
            leaf.delete()
    return tree_unflatten(tree, outs)


def put(x, placement: Placement | None, may_alias, compared: list):
    """One value on a device; if processes must have the same value for that, it is added to ``compared``."""
    if isinstance(x, (Tracer, Token)):
        return x
    if not isinstance(x, Array) and not dtypes.is_scalar_or_numpy(x):
        if hasattr(x, "__jax_array__"):
            raise ValueError(
                f"device_put was given a {type(x).__name__}, which has __jax_array__ but is not a pytree."
                f"{how_to_register(x)}"
            )
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.{how_to_register(x)}")
    array = as_array(x) if not isinstance(x, Array) else x
    if array is x and placement is None and may_alias is not False:
        return x
    if placement is None:
        placement = array._placement if array is x else default_placement(context.default_device)
    check_layout(placement, array.shape)
    if job.shared and placement is not None:
        check_move(array, placement)
        if is_from_everybody(array, placement, array is not x):
            compared.append(live(array))
    if spans_processes(array):
        return place(array, placement)
    value = live(array).copy() if array is x and may_alias is False else live(array)
    return place(typed_array(value, array.aval), placement)


def lying(x: Array, layout: Layout) -> Array:
    """The array with its axes in this order in memory; values in programs lie as the compiler chooses, keys as keys.

    Raises:
      ValueError: an array of this shape cannot lie so.
    """
    layout.check_compatible_aval(x.shape)
    if isinstance(x, Tracer) or x.aval.extended or spans_processes(x):
        return x
    return place(typed_array(laid_out(live(x), layout=layout), x.aval), x._placement)


def check_move(x: Array, placement: Placement) -> None:
    """Raise ValueError where an array that spans processes is to be on one device."""
    own = x._placement
    if own is not None and spans_processes(x) and placement.layout is None and placement.devices != own.devices:
        raise ValueError(
            "device_put on one device takes arrays of which this process has all, see "
            f"multihost_utils.process_allgather; got {x.aval.str_short()} on {where(own.devices)}"
        )


def is_from_everybody(x: Array, placement: Placement, from_host: bool) -> bool:
    """Whether every process puts its own value in a place that is in several."""
    if spans_processes(x) or len({d.process_index for d in placement.devices}) == 1:
        return False
    own = x._placement
    return from_host or own is None or not own.committed or len(own.devices) == 1


def device_get(x):
    """A tree of arrays as one of NumPy arrays, without copying where possible; keys and tracers stay what they are.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.device_get(jnp.ones(2))
    array([1., 1.], dtype=float32)
    """
    return tree_map(lambda leaf: np.asarray(leaf) if _has_value(leaf) else leaf, x)


def _has_value(leaf) -> bool:
    return isinstance(leaf, Array) and not isinstance(leaf, Tracer) and not leaf.aval.extended


def copy_to_host_async(x):
    """``x``, whose arrays are on their way to the host's memory; here they always are in it.

    Arguments:
      x: a tree; leaves that are not arrays are left alone.
    Returns:
      ``x``.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.copy_to_host_async(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    for leaf in tree_flatten(x)[0]:
        if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
            leaf.copy_to_host_async()
    return x


def block_until_ready(x):
    """``x``, once all its arrays are computed; here they always are.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.block_until_ready(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    for leaf in tree_flatten(x)[0]:
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def effects_barrier() -> None:
    """Wait for the effects of what was called: prints, callbacks. Here they have all happened when a call returns.

    >>> import catena as jax
    >>> jax.effects_barrier()
    """


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that are alive in this process.

    Arguments:
      platform: ``"cpu"`` or ``None``.

    >>> import catena as jax, catena.numpy as jnp
    >>> x = jnp.ones(2)
    >>> any(x is y for y in jax.live_arrays())
    True
    """
    if platform not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {platform}. Available backends are ['cpu']")
    return devices.live_arrays()


def clear_caches() -> None:
    """Forget everything that was traced and compiled in this process; the cache on disk stays.

    >>> import catena as jax
    >>> jax.clear_caches()
    """
    for function in list(all_caches):
        function.clear_cache()
    abstract_cache.clear()
    canonical.clear()


def typeof(x):
    """The type of a value of the language, its ``ShapedArray``; or of what a ``ShapeDtypeStruct`` describes.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.typeof(jnp.ones(2))
    ShapedArray(float32[2])
    """
    return type_of_struct(x) if type(x) is ShapeDtypeStruct else get_aval(x)
