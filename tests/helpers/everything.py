"""Loads all modules of the package, for tests that look at everything there is."""

import importlib
import pkgutil
import warnings

import catena


def load_everything() -> None:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        for module in pkgutil.walk_packages(catena.__path__, "catena."):
            if not module.name.startswith(("catena.compiler.", "catena.compat")):
                importlib.import_module(module.name)
