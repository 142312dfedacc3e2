"""``python -m catena info``: what catena finds on this machine."""

import argparse

from catena.tools.info import info

COMMANDS = {"info": info}


def main(arguments: list[str] | None = None) -> None:
    """Run the command that the arguments of the process name, and print what it says."""
    parser = argparse.ArgumentParser(prog="python -m catena", description="What catena finds on this machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("info", help="versions, the compiler, the processor, the cache and changed configuration")
    print(COMMANDS[parser.parse_args(arguments).command]())


if __name__ == "__main__":
    main()
