"""What is loaded when first needed: llvmlite (80 ms), SciPy's parts, and the compiler (100 ms)."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType


@cache
def load(name: str) -> ModuleType:
    """The module `name`, imported on the first call."""
    return importlib.import_module(name)


def llvm() -> ModuleType:
    """llvmlite's binding layer."""
    return load("llvmlite.binding")


class LazyModule:
    """Stands for a module that is imported when something in it is first asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        return getattr(load(self._name), attribute)

    def __repr__(self):
        return f"<lazy module {self._name}>"


compiler = LazyModule("catena.compiler.compile")
