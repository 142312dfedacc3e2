"""``python -m catena run``: a program that imports JAX, on catena, unchanged; and the switch for whole environments."""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from pathlib import Path

from catena.compat.alias import FOLDER, as_jax

SWITCH = "catena_as_jax.pth"


def run(arguments: list[str], command: str = "run") -> dict:
    """Run a script, or with ``-m`` a module, as Python would, with catena for JAX in it and in the processes it starts.

    Arguments:
      arguments: ``[-m] name``, and what the program finds in ``sys.argv`` behind its own name.
      command: what the user said, for errors.
    Returns:
      The names of the program, which hold what it made.
    Raises:
      SystemExit: there is no such file; and whatever the program raises.
    """
    module, name, rest = found(arguments, command)
    as_jax()
    for_children()
    sys.argv = [name, *rest]
    if module:
        sys.path.insert(0, os.getcwd())
        return runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.path.insert(0, str(Path(name).resolve().parent))
    return runpy.run_path(name, run_name="__main__")


def found(arguments: list[str], command: str) -> tuple[bool, str, list[str]]:
    """Whether a module is named, its name or that of the script, and what the program finds behind it.

    Raises:
      SystemExit: there is no such file.
    """
    module = arguments[:1] == ["-m"]
    name, *rest = arguments[1:] if module else arguments
    if not module and not Path(name).exists():
        raise SystemExit(f"python -m catena {command}: there is no file {name!r}; a module is named behind -m")
    return module, name, rest


def for_children() -> None:
    """Processes that this one starts find catena as ``jax`` before any other; by the path that Python takes over."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if FOLDER not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, *filter(None, paths)])


def install_alias(folder: str | None = None) -> str:
    """Let every program of this Python environment import catena as ``jax``, by a ``.pth`` file beside its packages.

    Arguments:
      folder: where the environment's packages are; by default those of this Python.
    Returns:
      What was done, in a sentence. It costs a starting Python one look at ``sys.path``; catena is loaded when
      somebody imports ``jax``.
    """
    switch = Path(folder or sysconfig.get_path("purelib")) / SWITCH
    switch.write_text(f"import sys; sys.path.insert(0, {FOLDER!r})\n")
    return (
        f"{switch} written: programs of {sys.prefix} that import jax get catena. Undo: python -m catena uninstall-alias"
    )


def uninstall_alias(folder: str | None = None) -> str:
    """Take back what ``install_alias`` did; returns what was done, in a sentence."""
    switch = Path(folder or sysconfig.get_path("purelib")) / SWITCH
    if not switch.exists():
        return f"There is no {switch}: programs of {sys.prefix} find whatever jax is installed."
    switch.unlink()
    return f"{switch} removed: programs of {sys.prefix} find whatever jax is installed."
