"""``python -m catena``: what catena finds on this machine; programs that import JAX, run on catena and looked into."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from catena.compat.run import found as program_named
from catena.compat.run import install_alias, run, uninstall_alias
from catena.core.lazy import LazyModule

# Programs that are run wait for none of these.
cache_report, info = LazyModule("catena.tools.cache_report"), LazyModule("catena.tools.info")
scripts = LazyModule("catena.tools.scripts")
CACHE = ("show", "clear", "verify")
PLAIN: dict[str, Callable[[], str]] = {
    "info": lambda: info.info(),
    "install-alias": install_alias,
    "uninstall-alias": uninstall_alias,
}


def main(arguments: list[str] | None = None) -> None:
    """Do what the arguments of the process ask for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m catena", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("info", help="versions, the compiler, the processor, what it does at most, the cache, flags")
    cache = commands.add_parser("cache", help="the compiler's cache on disk")
    cache.add_argument("action", nargs="?", choices=CACHE, default="show")
    program(commands, "run", "a program that imports jax gets catena")
    look = program(commands, "profile", "run a program, and write a page of where its time goes")
    look.add_argument("-o", "--output", metavar="page.html", help="by default the program's name, -profile.html")
    look.add_argument(
        "--memory", action="store_true", help="also by which lines arrays alive at the end were made (slow)"
    )
    program(commands, "explain", "run a program, and say why its functions were compiled, and to what")
    commands.add_parser("install-alias", help="let every program of this environment import catena as jax")
    commands.add_parser("uninstall-alias", help="undo install-alias")
    given, rest = split(arguments)
    found = parser.parse_args(given)
    if found.command in ("run", "profile", "explain"):
        if rest in ([], ["-m"], ["-c"]):
            parser.error(f"{found.command}: a script, -m and a module, or -c and a program is needed")
        output = getattr(found, "output", None)
        if output and not Path(output).parent.is_dir():  # said before the program runs, perhaps for hours
            parser.error(f"profile: --output is {output}, and there is no folder {Path(output).parent}")
        look_at(found, rest)
    else:
        print(getattr(cache_report, found.action)() if found.command == "cache" else PLAIN[found.command]())


def program(commands, name: str, what: str) -> argparse.ArgumentParser:
    """The parser of a command that runs a program, whose options come behind its name."""
    usage = f"python -m catena {name} [option ...] ([-m] name | -c text) [argument ...]"
    return commands.add_parser(name, help=what, usage=usage, description=what)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments for this command, and those that begin with the program to run, whose options are its own."""
    if arguments[:1] not in (["run"], ["profile"], ["explain"]):
        return arguments, []
    end = 1
    while end < len(arguments) and arguments[end].startswith("-") and arguments[end] not in ("-m", "-c"):
        end += 2 if arguments[end] in ("-o", "--output") else 1
    return arguments[:end], arguments[end:]


def look_at(found: argparse.Namespace, rest: list[str]) -> None:
    """Run the program that ``rest`` begins with."""
    kind, name, _ = program_named(rest, found.command)
    name = "program" if kind == "-c" else name
    if found.command == "run":
        run(rest)
    elif found.command == "profile":
        print(scripts.profile(lambda: run(rest, "profile"), name, found.output, found.memory))
    else:
        print(scripts.explain(lambda: run(rest, "explain"), name))


if __name__ == "__main__":
    main()
