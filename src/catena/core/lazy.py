"""What is loaded when first needed: llvmlite (80 ms), the compiler (100 ms), parts of SciPy, and what is rare."""

from __future__ import annotations

import gc
import importlib
import time
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from catena.core.locks import loading

LOADED = time.time_ns()  # when the package was loaded: source that changed later is not what runs


@contextmanager
def without_collection():
    """Loads many modules: what they make stays, and looking for garbage in it takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # what was made is old now; else the next allocation looks through all of it
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@cache
def load(name: str) -> ModuleType:
    """The module `name`, imported on the first call."""
    with loading, without_collection():
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
elementwise = LazyModule("catena.compiler.elementwise")
programs = LazyModule("catena.compiler.programs")
