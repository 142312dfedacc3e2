"""Writes the part of ``errors.md`` between its markers: mistakes that people make, run, and what they are told.

    python docs/errors.py

The mistakes stand in ``mistakes.txt``, each a program with its cause and its cure; a program that makes no error is an
error here.
"""

import logging
import re
import textwrap
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax

HERE = Path(__file__).resolve().parent
MARKERS = "<!-- mistakes -->\n", "<!-- end of mistakes -->\n"
FILE_NAME = "example.py"


class Mistake(NamedTuple):
    """A program that goes wrong, and what is said of it."""

    title: str
    code: str
    cause: str
    cure: str


def read_mistakes() -> dict[str, list[Mistake]]:
    """The mistakes of ``mistakes.txt``, by group."""
    groups: dict = {}
    for block in re.split(r"\n\n(?=##? )", (HERE / "mistakes.txt").read_text().strip())[1:]:
        head, *lines = block.splitlines()
        if head.startswith("## "):
            mistakes = groups.setdefault(head[3:], [])
            continue
        cause, cure = (line[2:] for line in lines if line.startswith("> "))
        code = "\n".join(
            line or "\n" for line in lines if not line.startswith("> ")
        )  # two empty lines around functions
        mistakes.append(Mistake(head[2:], code, cause, cure))
    return groups


def message_of(code: str) -> str:
    """What a program is told, as the last lines of its traceback say it."""
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "__name__": "example"}
    try:
        exec(compile(code, FILE_NAME, "exec"), names)
    except Exception as error:
        return f"{type(error).__name__}: " + "\n".join([str(error), *getattr(error, "__notes__", ())])
    raise AssertionError(f"no error:\n{code}")


def steady(message: str) -> str:
    """A message without what differs from machine to machine: its page is this one, addresses and the folder where the
    package lies are left out.
    """
    message = message.replace(f"{Path(jax.__file__).parents[1]}/", "")
    message = re.sub(r"\n+See \S+errors\.md#\w+", "", message)
    return re.sub(r" at 0x[0-9a-f]+", "", message).replace("\n\n", "\n")


def entry(mistake: Mistake) -> str:
    told = "\n".join(filled(line, 118, "  ") for line in steady(message_of(mistake.code)).splitlines())
    said = filled(f"**Cause.** {mistake.cause} **Cure.** {mistake.cure}", 120)
    return f"### {mistake.title}\n\n```python\n{mistake.code}\n```\n\n```\n{told}\n```\n\n{said}"


def filled(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def updated(text: str) -> str:
    """A page with the part between the markers written anew."""
    start, rest = text.split(MARKERS[0])
    _, end = rest.split(MARKERS[1])
    groups = read_mistakes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pages = [f"## {name}\n\n" + "\n\n".join(map(entry, mistakes)) for name, mistakes in groups.items()]
    return f"{start}{MARKERS[0]}\n" + "\n\n".join(pages) + f"\n\n{MARKERS[1]}{end}"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    page = HERE / "errors.md"
    page.write_text(updated(page.read_text()))
