"""Heavy dependencies, loaded when first needed: llvmlite (80 ms) and SciPy's parts."""

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
