"""Pretty printing: documents that choose line breaks to fit a width (Wadler, "A prettier printer", 2003)."""

from __future__ import annotations

from catena.core.named import NamedTuple


class Line(NamedTuple):
    """A line break, or ``flat`` text where the group around it fits on one line."""

    flat: str = " "


class Nest(NamedTuple):
    """``body`` with line breaks indented by ``indent`` more."""

    indent: int
    body: object


class Group(NamedTuple):
    """``body`` on one line if it fits, else with every line break of its own broken."""

    body: object


def flat_width(document, limit: int) -> int:
    """The width of the document on one line; stops counting beyond ``limit``."""
    width, stack = 0, [document]
    while stack and width <= limit:
        part = stack.pop()
        if isinstance(part, str):
            width += len(part)
        elif isinstance(part, Line):
            width += len(part.flat)
        elif isinstance(part, (Nest, Group)):
            stack.append(part.body)
        else:
            stack.extend(reversed(part))
    return width


def render(document, width: int = 80) -> str:
    """The text of a document: strings, ``Line``, ``Nest``, ``Group`` and lists of these."""
    out: list[str] = []
    column = 0
    stack = [(0, True, document)]
    while stack:
        indent, broken, part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            column += len(part)
        elif isinstance(part, Line):
            if broken:
                out.append("\n" + " " * indent)
                column = indent
            else:
                out.append(part.flat)
                column += len(part.flat)
        elif isinstance(part, Nest):
            stack.append((indent + part.indent, broken, part.body))
        elif isinstance(part, Group):
            fits = not broken or flat_width(part.body, width - column) <= width - column
            stack.append((indent, not fits, part.body))
        else:
            stack.extend((indent, broken, p) for p in reversed(part))
    return "".join(out)
