"""Memories that arrays are put in (``jax.memory``)."""

from catena.core.memory import MemorySpace as Space  # noqa: F401
