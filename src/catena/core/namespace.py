"""The names of a public module: where they come from, what ``dir`` shows of them, second names for functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from catena.core.lazy import load
from catena.core.named import NamedTuple
from catena.core.unbuilt import no_such_name

F = TypeVar("F", bound=Callable)


class Origin(NamedTuple):
    """Where a public name comes from: a module, and its name there."""

    module: str
    name: str


def origins(package: dict) -> dict[str, Origin]:
    """The public names of a package and where they come from: each is a line ``from module import name as public`` of
    the stub beside its ``__init__.py``, which type checkers read too.
    """
    path = package["__file__"].rpartition(".")[0] + ".pyi"
    lines = package["__loader__"].get_data(path).decode().splitlines()  # by the loader: also from a zip file
    words = (line.split() for line in lines if line.startswith("from "))
    return {public: Origin(module, name) for _, module, _, name, _, public in words}


class Whole(ModuleType):
    """A module whose ``__dict__`` holds all its names, loaded or not, for programs that go through them all."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in self.__all__:
            getattr(self, name)
        return _dict_of(self)


_dict_of = vars(ModuleType)["__dict__"].__get__
_packages: list[str] = []  # whose names are loaded late
_kinds: list[type] = [ModuleType]  # what such packages are; the last one counts


def make_whole() -> None:
    """From now on give programs that go through ``vars`` of a package all of its names. Not done for everybody: Python
    finds names in plain modules faster.
    """
    _kinds.append(Whole)
    for package in _packages:
        sys.modules[package].__class__ = Whole


def late(package: dict, opened: Callable[[str, Any], Any] | None = None) -> None:
    """Load each name of a public package when it is first asked for, so that programs wait for what they use only.

    Arguments:
      package: its ``globals()``.
      opened: makes the public form of a function, from its name and the function of the module that it comes from.
    """
    module, names = package["__name__"], origins(package)

    def ask(name: str) -> Any:
        origin = names.get(name)
        if origin is None:
            no_such_name(module, name, sys._getframe(1))
        if origin.module == module:
            return load(f"{module}.{origin.name}")
        value = getattr(load(origin.module), origin.name)
        if opened is not None and type(value) is FunctionType and not name.startswith("_"):
            value = opened(name, value)
        return package.setdefault(name, value)  # of several threads that ask at once all get the first one's

    _packages.append(module)
    sys.modules[module].__class__ = _kinds[-1]
    package["__getattr__"] = ask
    package["__all__"] = [name for name in names if not name.startswith("_")]
    package["__dir__"] = lambda: sorted({*names, *(name for name in package if name.endswith("__"))})


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
