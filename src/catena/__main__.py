"""``python -m catena``: what catena finds on this machine, and programs that import JAX, run on catena."""

import argparse
import sys

from catena.compat.run import install_alias, run, uninstall_alias
from catena.tools.info import info


def main(arguments: list[str] | None = None) -> None:
    """Do what the arguments of the process ask for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m catena", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("info", help="versions, the compiler, the processor, the cache and changed configuration")
    program = commands.add_parser(
        "run", help="a program that imports jax gets catena", usage="python -m catena run [-m] name [argument ...]"
    )
    commands.add_parser("install-alias", help="let every program of this environment import catena as jax")
    commands.add_parser("uninstall-alias", help="undo install-alias")
    if arguments[:1] == ["run"] and arguments[1:] not in ([], ["-m"], ["-h"], ["--help"]):
        run(arguments[1:])  # whose options are the program's
        return
    command = parser.parse_args(arguments).command
    if command == "run":
        program.error("a script, or -m and a module, is needed")
    print({"info": info, "install-alias": install_alias, "uninstall-alias": uninstall_alias}[command]())


if __name__ == "__main__":
    main()
