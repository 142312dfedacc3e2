"""What the namespace says of itself by the Python array API standard: ``__array_namespace_info__``."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.device import Device, devices

API_VERSION = "2024.12"
_DTYPES = tuple(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    )
)  # fmt: skip


class ArrayNamespaceInfo:
    """The devices, dtypes and capabilities of the namespace; its methods are those of the standard."""

    def capabilities(self) -> dict[str, bool | int]:
        """What of the standard's optional behaviour there is.

        Returns:
          A dictionary. What holds outside of transformations only, such as the shapes that depend on data,
          is given as absent: code that asks here works under ``jit``, too.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Device | None:
        """The device that arrays are made on: None, which stands for the one that the configuration says."""
        return None

    def devices(self) -> list[Device | None]:
        """The devices that ``device`` arguments take."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, np.dtype]:
        """The dtypes of arrays made without one.

        Arguments:
          device: a device; the answer is the same for all.
        Returns:
          A dictionary with the dtypes for "real floating", "complex floating", "integral" and "indexing".
        """
        _check_device("default_dtypes", device)
        wide = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: dtypes.canonicalize_dtype(name) for kind, name in wide.items()}

    def dtypes(self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The standard's dtypes that arrays can have: those of 64 bits only when x64 is on.

        Arguments:
          device: a device; the answer is the same for all.
          kind: the kinds asked for, named as by ``isdtype``: one or a tuple of them; None for all.
        Returns:
          A dictionary from names to dtypes.
        Raises:
          KeyError: there is no such kind.
        """
        _check_device("dtypes", device)
        known = tuple(dtypes.KINDS_BY_NAME)
        kinds = known if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in known]
        if unknown:
            raise KeyError(f"dtypes: kind must be among {known}, got {unknown[0]!r}")
        return {d.name: d for d in _DTYPES if dtypes.isdtype(d, kinds) and dtypes.canonical(d) == d}


def _check_device(name: str, device: Any):
    if device is not None and device not in devices():
        raise ValueError(f"{name}: device must be None or among {devices()}, got {device!r}")


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807
    """What this namespace offers, in the terms of the Python array API standard.

    Returns:
      An object with the methods ``capabilities``, ``default_device``, ``default_dtypes``, ``devices`` and
      ``dtypes``.

    >>> import catena.numpy as jnp
    >>> jnp.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32')}
    """
    return ArrayNamespaceInfo()
