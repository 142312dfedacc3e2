"""Python functions that run where devices are: the host of a CPU is the process that it belongs to.

In JAX they run on the machines that accelerators are attached to. Here a call is a call, of a function whose arguments
and results are arrays on devices of this process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from catena.core.array import Array
from catena.core.device import Device
from catena.core.job import job
from catena.core.mesh import Mesh
from catena.core.named import NamedTuple
from catena.core.namespace import shown as _shown
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import Tracer
from catena.core.traceback import open_door as _open_door
from catena.core.tree import tree_leaves, tree_map
from catena.core.unbuilt import absent as _absent
from catena.transform.placement import device_put


class Specialization(NamedTuple):
    """What is known of the calls of a function before they are made."""

    in_specs: Any = None
    out_specs_fn: Callable | None = None
    devices: tuple | None = None

    def narrowed(self, in_specs: Any, out_specs_fn: Callable | None, devices: Sequence[Device] | None):
        """This and what else is said. Raises ValueError where something is said twice."""
        given = Specialization(in_specs, out_specs_fn, None if devices is None else tuple(devices))
        for name, old, new in zip(self._fields, self, given, strict=True):
            if old is not None and new is not None:
                raise ValueError(f"specialize: {name} has been specified already")
        return Specialization(*(old if new is None else new for old, new in zip(self, given, strict=True)))


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices of the hosts of devices: of a CPU device, itself.

    Arguments:
      devices_or_mesh: devices, or a mesh of them.
    Returns:
      A list of devices, or a mesh.

    >>> import catena as jax
    >>> from catena.experimental import colocated_python
    >>> colocated_python.colocated_cpu_devices(jax.devices()[:1])
    [CpuDevice(id=0)]
    """
    return devices_or_mesh if isinstance(devices_or_mesh, Mesh) else list(devices_or_mesh)


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on the hosts of the devices that its arguments are on.

    Arguments:
      fun: a function of trees of arrays, all on the same devices, whose result is a tree of arrays.
    Returns:
      The function. Its method ``specialize(in_specs=None, out_specs_fn=None, devices=None)`` gives one of which more is
      known: the types of the arguments, a function from these to the types of the results, which says where these are
      put, and the devices, which a function without arguments needs.
    Raises:
      TypeError: called with what is no array. ValueError: the arguments are on different devices, or there are none and
        no devices were given, or a result is no array.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import colocated_python
    >>> colocated_python.colocated_python(lambda x: x + 1)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return specialized(fun, Specialization())


def specialized(fun: Callable[..., Any], known: Specialization) -> Callable[..., Any]:
    """The function of ``colocated_python`` of which this is known."""

    def call(*args, **kwargs):
        arguments = tree_leaves((args, kwargs))
        check_devices(arguments, known.devices)
        results = fun(*args, **kwargs)
        for x in tree_leaves(results):
            if not isinstance(x, Array):
                raise ValueError(f"colocated_python: results must be arrays, got {x!r} of {type(x)}")
        if known.out_specs_fn is None:
            return results
        types = tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), (args, kwargs))
        specs = known.out_specs_fn(*types[0], **types[1])
        return tree_map(lambda spec, x: device_put(x, getattr(spec, "sharding", None)), specs, results)

    def specialize(in_specs=None, out_specs_fn=None, devices=None):
        return specialized(fun, known.narrowed(in_specs, out_specs_fn, devices))

    call.specialize = specialize  # type: ignore[attr-defined]
    return functools.wraps(fun)(call)


def check_devices(arguments: list, devices: tuple | None) -> None:
    """Raise where a function cannot be called on the host of its arguments; ``devices``: of one without arguments."""
    for x in arguments:
        if not isinstance(x, Array) or isinstance(x, Tracer):
            raise TypeError(f"colocated_python: arguments must be arrays that have values, got {x!r} of {type(x)}")
    found = {x.sharding._device_assignment for x in arguments}
    if not found and devices is None:
        raise ValueError("colocated_python: a function without arguments needs devices: specialize(devices=...)")
    if len(found) > 1:
        raise ValueError(f"colocated_python: all arguments must be on the same devices, in the same order, got {found}")
    elsewhere = [d for group in found or {devices} for d in group or () if d.process_index != job.index]
    if elsewhere:
        raise ValueError(f"colocated_python: {elsewhere} belong to other processes, which do not wait for calls")


def colocated_python_class(cls: type[object]) -> type[object]:
    """A class whose objects are made, and whose methods run, on the hosts of the devices of the methods' arguments.

    Arguments:
      cls: the class. An object of it is made when a method is called for the first time.
    Returns:
      A class with its methods; attributes stay on the host.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import colocated_python
    >>> @colocated_python.colocated_python_class
    ... class Sum:
    ...     def __init__(self, start):
    ...         self.value = start
    ...
    ...     def add(self, x):
    ...         self.value = self.value + x
    ...         return self.value
    >>> total = Sum(10)
    >>> total.add(jnp.ones(2)), total.add(jnp.ones(2))
    (Array([11., 11.], dtype=float32), Array([12., 12.], dtype=float32))
    """

    def __init__(self, *args, **kwargs):
        self._remote = functools.cache(lambda: cls(*args, **kwargs))

    def method(name):
        original = getattr(cls, name)

        def call(self, *args, **kwargs):
            return colocated_python(lambda *a, **k: getattr(self._remote(), name)(*a, **k))(*args, **kwargs)

        return functools.wraps(original)(call)

    public = [name for name in dir(cls) if callable(getattr(cls, name)) and not name.startswith("__")]
    methods = {name: method(name) for name in [*public, *(["__call__"] if "__call__" in dir(cls) else [])]}
    made = type(cls.__name__, (), methods | {"__init__": __init__, "__doc__": cls.__doc__})
    made.__module__, made.__qualname__ = cls.__module__, cls.__qualname__
    return made


_open_door(globals(), "catena.experimental.colocated_python", own=True)
__dir__ = _shown(globals())

_absent(globals())
