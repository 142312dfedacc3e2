"""Configuration flags that users add (``config.add_option``), and flags as absl defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from catena.core.lazy import load
from catena.core.named import NamedTuple

DEFINERS = {
    bool: "DEFINE_bool",
    int: "DEFINE_integer",
    float: "DEFINE_float",
    str: "DEFINE_string",
    "enum": "DEFINE_enum",
}


class _Parts(NamedTuple):
    """The parts of an option."""

    holder: Any
    kind: Any
    args: tuple
    kwargs: dict


class Option(_Parts):
    """A flag: who holds its value, its type, and what absl defines it with behind its name and its value.

    Raises:
      ValueError: there is no such type.
    """

    __slots__ = ()

    def __new__(cls, holder, kind, args: tuple, kwargs: dict):
        if kind not in DEFINERS:
            raise ValueError(f"the type of an option must be bool, int, float, str or 'enum', got {kind!r}")
        return super().__new__(cls, holder, kind, args, kwargs)

    def parsed(self, text: str) -> Any:
        """The value that a text on the command line stands for; without one, a flag is on."""
        if self.kind is bool:
            return text.lower() in ("", "1", "true", "t", "yes", "y", "on")
        return self.kind(text) if self.kind in (int, float) else text


def define_with_absl(options: Iterable[tuple[str, Option]], update: Callable[[str, Any], None]) -> None:
    """Define flags of absl, and have those that the command line sets updated when ``app.run`` begins.

    Raises:
      ModuleNotFoundError: absl is not installed.
    """
    flags, app = load("absl.flags"), load("absl.app")
    options = list(options)
    for name, option in options:
        getattr(flags, DEFINERS[option.kind])(name, option.holder.value, *option.args, **option.kwargs)

    def take_over() -> None:
        for name, _ in options:
            if flags.FLAGS[name].present:
                update(name, flags.FLAGS[name].value)

    app.call_after_init(take_over)
