"""The platform that programs run on, in JAX's manner: there is one, the CPU."""

from __future__ import annotations

import weakref
from typing import Any

from catena.core.config import devices_in_use as _devices_in_use
from catena.core.context import context as _context
from catena.core.device import Client as _Client
from catena.core.device import Device as _Device
from catena.core.device import devices as _devices
from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent
from catena.transform.placement import clear_caches as _clear_caches

_caches: weakref.WeakSet = weakref.WeakSet()


def get_backend(platform: str | _Client | None = None) -> _Client:
    """A platform.

    Arguments:
      platform: ``"cpu"``, or None for the default; a platform is returned as it is.
    Returns:
      The platform: its name, its devices.
    Raises:
      RuntimeError: there is no such platform.

    >>> from catena.extend import backend
    >>> backend.get_backend().platform
    'cpu'
    """
    return platform if isinstance(platform, _Client) else _devices(platform)[0].client


def backends() -> dict[str, _Client]:
    """All platforms, by their names.

    >>> from catena.extend import backend
    >>> list(backend.backends())
    ['cpu']
    """
    return {"cpu": get_backend()}


def get_default_device() -> _Device:
    """The device on which arrays are made that nobody places.

    >>> import catena as jax
    >>> from catena.extend import backend
    >>> with jax.default_device(jax.devices()[0]):
    ...     backend.get_default_device()
    CpuDevice(id=0)
    """
    device = _context.default_device
    return device if isinstance(device, _Device) else _devices(device)[0]


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA behind a platform: None, since there is none.

    >>> from catena.extend import backend
    >>> backend.backend_xla_version() is None
    True
    """
    get_backend(platform)
    return None


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Have ``clear_backends`` clear a cache of one's own: call its ``cache_clear()``. It is held weakly.

    Arguments:
      cache: an object with a method ``cache_clear``, such as ``functools.cache`` makes.
      for_what: what is kept in it, for errors.
    Raises:
      TypeError: there is no such method.

    >>> import functools
    >>> from catena.extend import backend
    >>> @functools.cache
    ... def platform():
    ...     return backend.get_backend().platform
    >>> backend.register_backend_cache(platform, "the platform's name")
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"register_backend_cache: the cache for {for_what} has no method cache_clear: {cache!r}")
    _caches.add(cache)


def clear_in_memory_compilation_cache() -> None:
    """Forget every program that was compiled in this process, and what it was traced from; the cache on disk stays.

    >>> from catena.extend import backend
    >>> backend.clear_in_memory_compilation_cache()
    """
    _clear_caches()


def clear_backends() -> None:
    """Forget every program and what is registered by ``register_backend_cache``; the number of devices
    (``jax_num_cpu_devices``) may be chosen anew. Arrays stay.

    >>> from catena.extend import backend
    >>> backend.clear_backends()
    """
    for cache in list(_caches):
        cache.cache_clear()
    _clear_caches()
    _devices_in_use.clear()


__dir__ = _shown(globals())

_absent(globals())
