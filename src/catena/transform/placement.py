"""Moving values between Python, NumPy and devices, and what lives there."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from catena.core import device as devices
from catena.core import dtypes
from catena.core.array import Array, as_array, live, typed_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.device import ARRAYS
from catena.core.errors import how_to_register
from catena.core.evaluate import abstract_cache
from catena.core.formats import Layout, laid_out
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.named_sharding import NamedSharding
from catena.core.placed import place, spans_processes, where
from catena.core.placement import Placement, default_placement
from catena.core.primitive import Primitive
from catena.core.staging import staged
from catena.core.struct import ShapeDtypeStruct, type_of_struct
from catena.core.targets import check_layout, in_memory, layout_of, target_placement
from catena.core.token import Token
from catena.core.trace import Tracer
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.zeros import Zero, get_aval
from catena.transform import canonical
from catena.transform.memo import all_caches

tree_errors: Any = LazyModule("catena.core.tree_errors")
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
    asked = tree_errors.flatten_axes("device_put device", tree, device) if leaves else []
    donated = tree_errors.broadcast_prefix(donate, x) if leaves else []
    if may_alias and any(donated):
        raise ValueError("may_alias and donate cannot be True at the same time.")
    target_placement(src)
    outs = put_all(leaves, asked, may_alias, donated)
    outs = traced(outs, asked, src, donated, may_alias)
    if context.trace is not None:
        outs = [staged(x) if type(x) is Array else x for x in outs]
    return tree_unflatten(tree, outs)


def put_all(leaves, asked, may_alias, donated) -> list:
    """Values on devices; those that are traced stay what they are."""
    targets = [target_placement(in_memory(x, d)) for x, d in zip(leaves, asked, strict=True)]
    compared: list = []
    outs = [put(leaf, d, may_alias, compared) for leaf, d in zip(leaves, targets, strict=True)]
    if compared:
        processes.check_same(compared, "device_put")
    outs = [lying(out, layout) if (layout := layout_of(d)) else out for out, d in zip(outs, asked, strict=True)]
    for leaf, out, give in zip(leaves, outs, donated, strict=True):
        if give and type(leaf) in ARRAYS and out is not leaf:
            leaf.delete()
    return outs


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


# ---- the same of traced values: an equation, which says where they are to be when it is evaluated


class ArrayCopySemantics(enum.Enum):
    """Whether the result of ``device_put_p`` shares memory with its operand: where it may, never, or takes it."""

    REUSE_INPUT = 0
    ALWAYS_COPY = 1
    DONATE_INPUT = 2


def traced(values, asked, src, donated, may_alias) -> list:
    """Values of which those that are traced are put where they are asked for, by one equation."""
    at = [i for i, x in enumerate(values) if isinstance(x, Tracer) and isinstance(x.aval, ShapedArray)]
    if not at:
        return values
    kinds = [
        ArrayCopySemantics.DONATE_INPUT
        if donated[i]
        else ArrayCopySemantics.ALWAYS_COPY
        if may_alias is False
        else ArrayCopySemantics.REUSE_INPUT
        for i in at
    ]
    outs = device_put_p.bind(
        *[values[i] for i in at],
        devices=tuple([asked[i] for i in at]),
        srcs=(src,) * len(at),
        copy_semantics=tuple(kinds),
    )
    found = dict(zip(at, outs, strict=True))
    return [found.get(i, x) for i, x in enumerate(values)]


def _evaluate(*arrays, devices, srcs, copy_semantics):
    """Each where it is asked for. Memory is taken from nobody: programs may use operands again."""
    return [
        put_all([x], [device], False if copy is ArrayCopySemantics.ALWAYS_COPY else None, [False])[0]
        for x, device, copy in zip(arrays, devices, copy_semantics, strict=True)
    ]


def _some(chosen, params) -> dict:
    """The parameters of some of the operands."""
    return {name: tuple([v for v, keep in zip(values, chosen, strict=True) if keep]) for name, values in params.items()}


def _jvp(primals, tangents, **params):
    outs = device_put_p.bind(*primals, **params)
    given = [type(t) is not Zero for t in tangents]
    moved = iter(device_put_p.bind(*[t for t in tangents if type(t) is not Zero], **_some(given, params)))
    return outs, [next(moved) if put else t for t, put in zip(tangents, given, strict=True)]


def _transpose(cts, *operands, devices, srcs, copy_semantics):
    """Cotangents go back to where the operands were, as far as that is said."""
    given = [type(ct) is not Zero for ct in cts]
    back = {"devices": srcs, "srcs": devices, "copy_semantics": (ArrayCopySemantics.ALWAYS_COPY,) * len(srcs)}
    moved = iter(device_put_p.bind(*[ct for ct in cts if type(ct) is not Zero], **_some(given, back)))
    return [next(moved) if put else ct for ct, put in zip(cts, given, strict=True)]


def _batch(axis, args, dims, *, devices, **params):
    """The axis of the examples is not split."""
    dims, ranks = list(dims), [get_aval(x).ndim for x in args]
    devices = tuple([with_whole_axis(*found) for found in zip(devices, dims, ranks, strict=True)])
    return device_put_p.bind(*args, devices=devices, **params), dims


def with_whole_axis(device, dim: int | None, ndim: int):
    """A place for arrays with so many axes, of which one is new and lies whole."""
    if dim is None or not isinstance(device, NamedSharding):
        return device
    parts = (*device.spec, *(None,) * (ndim - 1 - len(device.spec)))
    return device.update(spec=device.spec.update(partitions=(*parts[:dim], None, *parts[dim:])))


device_put_p = Primitive(
    "device_put",
    multiple_results=True,
    takes_arrays=True,
    places_results=True,
    abstract=lambda *avals, devices, srcs, copy_semantics: list(avals),
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=lambda b, *operands, **params: list(operands),
)


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
