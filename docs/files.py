"""Writes the lists of files in the docs: those of the source in `architecture.md`, from the files' first lines, and the
decisions in `decisions/README.md`, from their titles; and in `differences.md` the names that will not come, from
`core/unbuilt.py`: `python docs/files.py`; with `--check` it writes nothing and fails where a list is out of date.
"""

import ast
import re
import sys
import tokenize
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src" / "catena"


def docstring(path: Path) -> str:
    """A file's docstring, for which the rest of it is not read: the first token beside comments and empty lines."""
    with path.open() as file:
        tokens = (t for t in tokenize.generate_tokens(file.readline) if t.type not in (tokenize.COMMENT, tokenize.NL))
        first = next(tokens)
    return ast.literal_eval(first.string) if first.type == tokenize.STRING else ""


def first_line(path: Path) -> str:
    """The first paragraph of a file's docstring, up to the end of its first sentence."""
    paragraph = " ".join(docstring(path).split("\n\n")[0].split())
    sentence = paragraph.split(". ")[0]
    return sentence if sentence.endswith(".") or not sentence else sentence + "."


def files() -> str:
    """A heading for each folder, a line for each file that is not empty."""
    lines = []
    folders = sorted({path.parent for path in SOURCES.rglob("*.py")})
    for folder in folders:
        lines += [f"### `{folder.relative_to(SOURCES.parent)}/`", ""]
        lines += [f"- `{p.name}`: {first_line(p)}" for p in sorted(folder.glob("*.py")) if p.read_text().strip()]
        lines.append("")
    return "\n".join(lines)


def decisions() -> str:
    """A line for each decision."""
    pages = sorted((HERE / "decisions").glob("[0-9]*.md"))
    titles = [(page.name, *re.match(r"# (\d+)\. (.*)", page.read_text()).groups()) for page in pages]
    return "\n".join([f"{number}. [{title}]({name})" for name, number, title in titles]) + "\n\n"


def absent() -> str:
    """A row for each module of JAX's, and reason, of which names will not come: the table of `core/unbuilt.py`."""
    body = ast.parse((SOURCES / "core" / "unbuilt.py").read_text()).body
    facts = [x for x in body if isinstance(x, ast.Assign) and x.targets[0].id.startswith(("_NO_", "WITHOUT_MEANING"))]
    namespace: dict = {}
    exec(compile(ast.Module(facts, []), "unbuilt.py", "exec"), namespace)
    rows = []
    for module, names in sorted(namespace["WITHOUT_MEANING"].items()):
        for reason in dict.fromkeys(names.values()):
            own = ", ".join(f"`{name}`" for name, why in names.items() if why == reason)
            rows.append(f"| `{module.replace('catena', 'jax', 1)}` | {own} | {reason} |")
    return "\n".join(["| of | names | why |", "|---|---|---|", *rows, "", ""])


LISTS = {
    "architecture.md": ("files", files),
    "decisions/README.md": ("decisions", decisions),
    "differences.md": ("absent", absent),
}


def updated(page: str, text: str) -> str:
    """The page with the list as it should be."""
    name, listing = LISTS[page]
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, rest = text.split(start)
    return before + start + "\n" + listing() + end + rest.split(end)[1]


def main() -> int:
    outdated = []
    for page in LISTS:
        path = HERE / page
        text = path.read_text()
        if text != updated(page, text):
            outdated.append(page)
            if "--check" not in sys.argv:
                path.write_text(updated(page, text))
    if "--check" in sys.argv and outdated:
        print(f"run `python docs/files.py`: {', '.join(outdated)} out of date")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
