"""``pmap``: run a function on several devices at once, one example each.

The devices are virtual CPU devices of one processor, so the mapped axis is vectorised and compiled as a whole; what
the user sees is one example a device, with collectives between them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from catena.core.device import Device, check_backend
from catena.core.device import devices as all_devices
from catena.core.source import function_name
from catena.core.tree import tree_leaves
from catena.core.tree_errors import broadcast_prefix
from catena.transform.arguments import as_int_tuple
from catena.transform.functions import check_callable
from catena.transform.jit import JitFunction, jit
from catena.transform.vmap import vmap


class _UnnamedAxis:
    """The name of a mapped axis that the user did not name."""

    def __repr__(self):
        return "<unnamed axis>"


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable:
    """Run a function in parallel on several devices, one example on each.

    Arguments:
      fun: a function of trees of arrays; it may use collectives over ``axis_name``.
      axis_name: the name of the mapped axis.
      in_axes, out_axes: as for ``vmap``.
      static_broadcasted_argnums: positions of arguments that are compile-time constants, the same for all devices.
      devices: the devices to use; all by default. ``jax_num_cpu_devices`` says how many there are.
      backend: the platform; ``"cpu"`` or ``None``.
      axis_size: the size of the mapped axis, where no argument tells it.
      donate_argnums: positions of arguments whose memory may be reused.

    Returns:
      The parallel function.

    Raises:
      ValueError: where the mapped axis is larger than the number of devices.

    Example:
      >>> import catena as jax, catena.numpy as jnp
      >>> jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(1.))
      Array([0.], dtype=float32)
    """
    check_callable(fun)
    check_backend(backend)
    name = _UnnamedAxis() if axis_name is None else axis_name
    static = as_int_tuple(static_broadcasted_argnums, "static_broadcasted_argnums")
    donate = as_int_tuple(donate_argnums, "donate_argnums")
    mapped = vectorised(fun, name, in_axes, out_axes, static, axis_size)
    compiled: JitFunction = jit(mapped, static_argnums=static or None, donate_argnums=donate or None)

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def parallel(*args, **kwargs):
        check_size(fun, args, kwargs, in_axes, static, axis_size, devices, backend)
        return compiled(*args, **kwargs)

    parallel.lower = compiled.lower
    parallel.trace = compiled.trace
    parallel.clear_cache = compiled.clear_cache
    return parallel


def vectorised(fun: Callable, name, in_axes, out_axes, static: tuple, axis_size) -> Callable:
    """``fun`` over the mapped axis, its static arguments taken out."""

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def mapped(*args, **kwargs):
        fixed = {i % len(args) for i in static}
        dynamic = [x for i, x in enumerate(args) if i not in fixed]
        axes = in_axes
        if isinstance(in_axes, (tuple, list)):
            axes = tuple(a for i, a in enumerate(in_axes) if i not in fixed)

        def call(*given, **given_kwargs):
            rest = iter(given)
            return fun(*[x if i in fixed else next(rest) for i, x in enumerate(args)], **given_kwargs)

        return vmap(call, in_axes=axes, out_axes=out_axes, axis_name=name, axis_size=axis_size)(*dynamic, **kwargs)

    return mapped


def check_size(fun, args, kwargs, in_axes, static, axis_size, devices, backend) -> None:
    """Raise where there are fewer devices than examples."""
    available = len(devices) if devices is not None else len(all_devices(backend))
    size = axis_size if axis_size is not None else first_size(args, kwargs, in_axes, static)
    if size is not None and size > available:
        raise ValueError(
            f"pmap of {function_name(fun)} over {size} examples needs {size} devices, but only {available} are available; set "
            "jax_num_cpu_devices (CATENA_NUM_CPU_DEVICES) to have more virtual CPU devices, or use vmap"
        )


def first_size(args, kwargs, in_axes, static) -> int | None:
    """The size of the first mapped axis among the arguments."""
    for i, x in enumerate(args):
        axes = in_axes[i] if isinstance(in_axes, (tuple, list)) and i < len(in_axes) else in_axes
        if i in static or axes is None or isinstance(in_axes, (tuple, list)) and i >= len(in_axes):
            continue
        dims = broadcast_prefix(axes, x, is_leaf=lambda a: a is None)
        for leaf, d in zip(tree_leaves(x), dims, strict=True):
            if d is not None and getattr(leaf, "ndim", 0) > d:
                return leaf.shape[d]
    for leaf in tree_leaves(kwargs):
        if getattr(leaf, "ndim", 0):
            return leaf.shape[0]
    return None
