"""The version of JAX whose API this is."""

__version__ = "0.10.2"
__version_info__ = tuple(int(part) for part in __version__.split("."))
