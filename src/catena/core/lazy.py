"""What is loaded when first needed: llvmlite (80 ms), the compiler (200 ms), parts of SciPy, and what is rare."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import time
import warnings
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from catena.core import exits  # noqa: F401  (what is done last is registered first)
from catena.core.dtypes import levels_to_user
from catena.core.errors import CompileError
from catena.core.locks import hold_during_fork, loading

LOADED = time.time_ns()  # when the package was loaded: source that changed later is not what runs


@contextmanager
def without_collection():
    """Much is made that stays, or goes as soon as nobody holds it, as by loading many modules (a third of whose time
    goes into looking for garbage), by tracing (a fifth to two fifths) and by planning (a fifth of a large program's).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def load(name: str) -> ModuleType:
    """The module `name`, imported on the first call."""
    with loading, without_collection():
        module = importlib.import_module(name)
        if not gc.get_freeze_count():  # what was made is old now; else the next allocation looks through all of it
            gc.freeze()
            gc.unfreeze()
    return module


NO_COMPILER = "nothing was compiled: there is no compiler here, and jit evaluates step by step (docs/without_llvm.md)"
COMPILERS = ("llvm", "none")  # what the environment variable CATENA_COMPILER may say


@cache
def has_compiler() -> bool:
    """Whether programs are compiled; else they are evaluated step by step, and a warning says so if nobody chose it.

    Raises: ValueError: ``CATENA_COMPILER`` is neither of ``COMPILERS``.
    """
    reason = why_no_compiler()
    if reason == NOT_INSTALLED:
        warnings.warn(
            f"{NOT_INSTALLED}: catena runs without its compiler, and jit evaluates step by step. To compile, install "
            "it (pip install llvmlite); CATENA_COMPILER=none says that this is meant.",
            RuntimeWarning,
            stacklevel=levels_to_user(),
        )
    return reason is None


NOT_INSTALLED = "llvmlite is not installed"


def why_no_compiler() -> str | None:
    """Why programs are not compiled, or ``None`` where they are."""
    chosen = os.environ.get("CATENA_COMPILER") or "llvm"
    if chosen not in COMPILERS:
        raise ValueError(f"CATENA_COMPILER must be one of {', '.join(COMPILERS)}, got {chosen!r}")
    if chosen == "none":
        return "CATENA_COMPILER=none"
    return NOT_INSTALLED if importlib.util.find_spec("llvmlite") is None else None


def llvm() -> ModuleType:
    """llvmlite's binding layer: the only door to the compiler.

    Raises: CompileError: there is no compiler, or none is to be used.
    """
    if not has_compiler():
        raise CompileError(NO_COMPILER)
    return _llvm()


@cache
def _llvm() -> ModuleType:
    """A fork waits for the call that is running, in the middle of which LLVM would be of no use to the child."""
    binding = load("llvmlite.binding")
    hold_during_fork(binding.ffi.lib._lock)  # which a thread may take again: it does no harm if two threads are here
    return binding


class LazyModule:
    """Stands for a module that is imported when something in it is first asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        if attribute == "__wrapped__":  # what looks at every name of a module, as doctest does, must not load this one
            raise AttributeError(attribute)
        return getattr(load(self._name), attribute)

    def __repr__(self):
        return f"<lazy module {self._name}>"
