"""The names of a public module: what tab completion and ``dir`` show of it, and second names for functions."""

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable)


def shown(module: dict, *submodules: str) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module: the names that it offers and these submodules, but no other modules.

    Arguments:
      module: its ``globals()``.
      submodules: the modules among its names that are meant for users.
    """

    def names() -> list[str]:
        return sorted({*submodules, *(name for name, x in module.items() if is_shown(name, x))})

    def is_shown(name: str, x) -> bool:
        if name.startswith("_"):
            return name.endswith("__")
        return not isinstance(x, ModuleType) or name in submodules

    return names


def alias(function: F, name: str, module: str | None = None) -> F:
    """``function`` under a second name: an object of its own, so that help, errors and pickles say that name.

    It runs the same code, and costs what ``function`` costs.

    Arguments:
      function: a Python function.
      name: the name.
      module: where it is found under that name; by default where ``function`` is.
    """
    other = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    other.__dict__.update(function.__dict__)
    other.__doc__ = function.__doc__ and function.__doc__.replace(f".{function.__name__}(", f".{name}(")
    other.__kwdefaults__, other.__qualname__ = function.__kwdefaults__, name
    other.__annotations__, other.__module__ = function.__annotations__, module or function.__module__
    return cast(F, other)
