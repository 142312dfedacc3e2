"""What tab completion and ``dir`` show of a public module: its names, not how it is made."""

from collections.abc import Callable
from types import ModuleType


def shown(module: dict, *submodules: str) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module: the names that it offers and these submodules, but no other modules.

    Arguments:
      module: its ``globals()``.
      submodules: the modules among its names that are meant for users.
    """

    def names() -> list[str]:
        return sorted(name for name, x in module.items() if is_shown(name, x))

    def is_shown(name: str, x) -> bool:
        if name.startswith("_"):
            return name.endswith("__")
        return not isinstance(x, ModuleType) or name in submodules

    return names
