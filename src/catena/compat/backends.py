"""The backends in use, as libraries read them in ``jax._src.xla_bridge``: chex asks whether there is one yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catena.core import config
from catena.core.device import devices


class Backends(Mapping[str, Any]):
    """Name of a backend -> its client: the CPU, from when devices are used for the first time."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return devices()[0].client

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def _names(self) -> list[str]:
        return ["cpu"] if config.devices_in_use else []


backends = Backends()
