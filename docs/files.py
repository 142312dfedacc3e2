"""Writes the list of files in `architecture.md` from the first lines of the files: `python docs/files.py`."""

import ast
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src" / "catena"
START, END = "<!-- files -->\n", "<!-- end of files -->\n"


def first_line(path: Path) -> str:
    """The first paragraph of a file's docstring, up to the end of its first sentence."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = paragraph.split(". ")[0]
    return sentence if sentence.endswith(".") or not sentence else sentence + "."


def listing() -> str:
    """The list: a heading for each folder, a line for each file that is not empty."""
    lines = []
    folders = sorted({path.parent for path in SOURCES.rglob("*.py")})
    for folder in folders:
        lines += [f"### `{folder.relative_to(SOURCES.parent)}/`", ""]
        lines += [f"- `{p.name}`: {first_line(p)}" for p in sorted(folder.glob("*.py")) if p.read_text().strip()]
        lines.append("")
    return "\n".join(lines)


def updated(text: str) -> str:
    """The page with the list as it should be."""
    before, rest = text.split(START)
    return before + START + "\n" + listing() + END + rest.split(END)[1]


if __name__ == "__main__":
    page = HERE / "architecture.md"
    page.write_text(updated(page.read_text()))
