"""Who may compile: libraries put a function of their own in place of this one, which raises where it is forbidden."""

from __future__ import annotations

from typing import Any

from catena.core.device import devices
from catena.transform import execute


def backend_compile_and_load(backend: Any) -> None:
    """Called with the client of the backend before a program is compiled. What NumPy evaluates is not compiled."""


def ask() -> None:
    """Call the function that stands in this module."""
    backend_compile_and_load(devices()[0].client)


execute.before_compiling.append(ask)
