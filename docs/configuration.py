"""Writes the tables of `configuration.md` from the table of flags: `python docs/configuration.py`."""

from pathlib import Path

from catena.core.flags import FLAGS, Flag
from catena.core.foreign_flags import FOREIGN, GROUPS

PAGE = Path(__file__).resolve().parent / "configuration.md"
START, END = "<!-- tables -->\n", "<!-- end of tables -->\n"


def values(flag: Flag) -> str:
    """What a flag admits, in a word or as the list of values; a long list is shortened."""
    if isinstance(flag.kind, tuple):
        shown = [f"`{value!r}`" for value in flag.kind[:7]]
        return " ".join([*shown, "..."] if len(flag.kind) > 7 else shown)
    return flag.kind if isinstance(flag.kind, str) else flag.kind.__name__


def tables() -> str:
    """A row for each flag that governs something, then the names of the others under the reason why they do not."""
    own = [flag for name, flag in FLAGS.items() if name not in FOREIGN]
    lines = ["| name | default | values | what it does |", "|---|---|---|---|"]
    lines += [f"| `{f.name}` | `{f.default!r}` | {values(f)} | {f.help} |" for f in own]
    lines += ["", "## Options that govern nothing here", ""]
    lines += ["They can be set and read, and take JAX's values, so that programs that set them run.", ""]
    for reason, rows in GROUPS.items():
        lines += [f"- {reason[0].upper()}{reason[1:]}: {', '.join(f'`{name}`' for name in rows)}."]
    return "\n".join(lines) + "\n"


def updated(text: str) -> str:
    """The page with the tables as they should be."""
    before, rest = text.split(START)
    return before + START + "\n" + tables() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
