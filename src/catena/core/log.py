"""The log: what ``jax_log_compiles``, ``jax_explain_cache_misses`` and the logging flags govern."""

import sys

from catena.core.lazy import LazyModule

logging = LazyModule("logging")
LEVELS = ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_handlers: dict = {}  # name of a logger + purpose -> its handler


def announce(message: str, *args, loud: bool) -> None:
    """Log a message: as a warning where a flag asked for it (``loud``), else at level DEBUG. While nobody has loaded
    ``logging``, nobody listens at that level.
    """
    if not loud and "logging" not in sys.modules:
        return
    logging.getLogger("catena").log(logging.WARNING if loud else logging.DEBUG, message, *args)


def set_level(level: str) -> None:
    """Show messages of this level and above on standard error; ``NOTSET`` leaves the log to Python's defaults."""
    show("catena", logging.NOTSET if level == "NOTSET" else getattr(logging, level))


def set_debug_modules(names: str | None) -> None:
    """Show everything that the modules in a comma-separated list log; the names of the last call are put back."""
    wanted = {own_name(name.strip()) for name in (names or "").split(",") if name.strip()}
    for name in [n for n in _handlers if n.endswith("(debug)")]:
        if name.removesuffix("(debug)") not in wanted:
            show(name.removesuffix("(debug)"), logging.NOTSET, "(debug)")
    for name in wanted:
        show(name, logging.DEBUG, "(debug)")


def own_name(module: str) -> str:
    """A module's name here: ``jax`` and its parts stand for this package."""
    return "catena" if module == "jax" or module.startswith("jax.") else module


def show(name: str, level: int, purpose: str = "") -> None:
    """Send a logger's messages of this level and above to standard error; ``NOTSET`` takes that back."""
    target = logging.getLogger(name)
    target.setLevel(level)
    handler = _handlers.pop(name + purpose, None)
    if handler is not None:
        target.removeHandler(handler)
    if level != logging.NOTSET:
        handler = _handlers[name + purpose] = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s: %(message)s"))
        handler.setLevel(level)
        target.addHandler(handler)
