"""``python -m catena run``: a program that imports JAX, on catena, unchanged; and the switch for whole environments."""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from catena.compat.alias import FOLDER, as_jax

SWITCH = "catena_as_jax.pth"


def run(arguments: list[str], command: str = "run") -> dict:
    """Run a program as Python would, with catena for JAX in it and in the processes that it starts.

    Arguments:
      arguments: the name of a script, ``-m`` and a module, or ``-c`` and a text, and what the program finds in
        ``sys.argv`` behind its own name.
      command: what the user said, for errors.
    Returns:
      The names of the program, which hold what it made.
    Raises:
      SystemExit: there is no such file; and whatever the program raises.
    """
    kind, name, rest = found(arguments, command)
    as_jax()
    for_children()
    sys.argv = [kind if kind == "-c" else name, *rest]
    if kind == "-c":
        return run_text(name)
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        return runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.path.insert(0, str(Path(name).resolve().parent))
    return runpy.run_path(name, run_name="__main__")


def run_text(text: str) -> dict:
    """Run the text of a program as ``python -c`` would; returns its names."""
    program = sys.modules["__main__"] = ModuleType("__main__")
    sys.path.insert(0, "")
    exec(compile(text, "<string>", "exec"), vars(program))
    return vars(program)


def found(arguments: list[str], command: str) -> tuple[str, str, list[str]]:
    """What is named, its name or text, and what the program finds behind it.

    What is named is ``-m``, a module, ``-c``, the text of a program, or nothing, a script.

    Raises:
      SystemExit: there is no such file.
    """
    kind = arguments[0] if arguments[:1] in (["-m"], ["-c"]) else ""
    name, *rest = arguments[1:] if kind else arguments
    if not kind and not Path(name).exists():
        raise SystemExit(
            f"python -m catena {command}: there is no file {name!r}; a module is named behind -m, and the text of a "
            "program behind -c"
        )
    return kind, name, rest


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
