"""The alias: who imports ``jax`` gets catena, every public module under JAX's name, and no module twice.

A finder at the head of ``sys.meta_path`` answers for ``jax``, its submodules and ``jaxlib``: ``jax.numpy`` is the very
module object ``catena.numpy``. The folder ``path`` beside this file is put at the head of ``sys.path``: it holds the
records that `importlib.metadata` reads versions from, and a package ``jax`` that sets the alias when it is imported,
for processes that this one starts (see `run`).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from catena.compat import private
from catena.core.namespace import make_whole

FOLDER = str(Path(__file__).parent / "path")
NAMES = ("jax", "jaxlib")
NUMPY = "catena.numpy"


class Alias:
    """The alias while it is in force: a finder of modules, and what takes it away again."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None):
        """Part of Python's import system: the module of ours that a name of JAX's stands for; None for other names."""
        if name.partition(".")[0] not in NAMES:
            return None
        return importlib.util.spec_from_loader(name, Loader(name, found(name)))

    def remove(self) -> None:
        """Take the alias away: names that were imported stay bound, later imports find what Python finds."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if FOLDER in sys.path:
            sys.path.remove(FOLDER)
        for name in [name for name in sys.modules if name.partition(".")[0] in NAMES]:
            del sys.modules[name]
        for parent, _, last in (name.rpartition(".") for name in private.NAMES):
            if parent not in private.NAMES and "catena" + parent[3:] in sys.modules:
                with contextlib.suppress(AttributeError):
                    delattr(sys.modules["catena" + parent[3:]], last)
        sys.modules[NUMPY].__name__ = NUMPY
        importlib.invalidate_caches()

    def __enter__(self) -> Alias:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Loader:
    """Gives the import system a module that is loaded already, under a second name."""

    def __init__(self, name: str, module: ModuleType):
        self.name, self.module, self.spec = name, module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; Python then sets its ``__spec__`` to that of the alias."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own ``__spec__`` back; it was executed when it was loaded."""
        module.__spec__ = self.spec
        for name in private.inside(self.name):
            sys.modules[f"{self.name}.{name}"] = made = found(f"{self.name}.{name}")
            setattr(module, name, made)


def found(name: str) -> ModuleType:
    """The module that stands for one of JAX's. Raises ModuleNotFoundError, in JAX's name, where there is none."""
    made = private.module(name)
    if made is not None:
        return made
    ours = "catena" + name.removeprefix("jax")
    try:
        return importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name is None or not ours.startswith(error.name):
            raise  # something else is missing that the module needs
        raise ModuleNotFoundError(_missing(name, str(error)), name=name) from None


def _missing(name: str, said: str) -> str:
    """What is said of a module that is not there; ``said``: what Python, or `core.unbuilt`, said of ours."""
    if name.startswith(("jax._src", "jaxlib")):
        return f"{name} is private to JAX, and catena, which is jax here, has no such module; see compat/private.py"
    return said.replace("catena", "jax", 1) if "not built" in said else f"No module named {name!r} (jax is catena here)"


def as_jax() -> Any:
    """Make ``import jax`` mean catena, for everybody in this process who imports it from now on.

    Every public submodule is found under JAX's name, ``jaxlib`` has a version, and ``importlib.metadata`` says that
    JAX of the version whose API this is (``catena.__version__``) is installed, so that libraries written for JAX run
    on catena unchanged. Calling it again changes nothing.
    Returns:
      The alias: ``remove()`` takes it away, as does leaving a ``with`` block.
    Raises:
      RuntimeError: the real JAX is imported already, whose objects its importers hold.

    >>> import catena
    >>> with catena.as_jax():
    ...     import jax
    ...     import jax.numpy as jnp
    >>> jax is catena, jnp is catena.numpy
    (True, True)
    """
    for finder in sys.meta_path:
        if isinstance(finder, Alias):
            return finder
    present = sys.modules.get("jax")
    if present is not None and present is not sys.modules["catena"] and getattr(present, "__file__", None) != SHIM:
        raise RuntimeError(
            f"catena.as_jax(): JAX itself is imported already, from {getattr(present, '__file__', present)!r}, and who "
            "imported it holds its objects. Call catena.as_jax() before the first import of jax, or start the program "
            "with: python -m catena run"
        )
    make_whole()
    alias = Alias()
    sys.meta_path.insert(0, alias)
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    importlib.invalidate_caches()
    sys.modules["jax"], sys.modules["jaxlib"] = sys.modules["catena"], found("jaxlib")
    importlib.import_module("jax._src")  # for those who write jax._src.module without importing it
    sys.modules[NUMPY].__name__ = "jax.numpy"  # by this array-api-compat, and SciPy, know whose namespace it is
    return alias


SHIM = str(Path(FOLDER) / "jax" / "__init__.py")
