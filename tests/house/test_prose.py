"""How the source is written where a linter does not look: strings fill their lines, docstrings have one form."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

from sources import by_kind, nodes_of

SRC = Path(__file__).resolve().parents[2] / "src" / "catena"
FILES = sorted(SRC.rglob("*.py"))
TEXTS = {path.relative_to(SRC).as_posix(): path.read_text() for path in FILES}


# Where an implicit concatenation may be: a quote, and only space, comments or the end of lines up to the next one.
ADJACENT = re.compile(r"""["']\s*(?:#.*\s*)?\n\s*[rfRF]{0,2}["']|["'][ \t]+[rfRF]{0,2}["']""")


def joined_strings(text: str) -> list[list[tokenize.TokenInfo]]:
    """The strings of each implicit concatenation."""
    if not ADJACENT.search(text):
        return []
    runs, run = [], []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            run.append(token)
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            runs.append(run)
            run = []
    return [run for run in runs if len(run) > 1]


def is_crumb(token: tokenize.TokenInfo) -> bool:
    """One to three words that would have fitted on the line before or after."""
    body = ast.literal_eval(token.string.lstrip("rfRF"))
    return len(body.split()) <= 3 and len(body) < 40 and not body.endswith("\n")


def is_idle(token: tokenize.TokenInfo) -> bool:
    """An f-string without a placeholder."""
    prefix = token.string[: re.search("[\"']", token.string).start()].lower()
    return "f" in prefix and not re.search(r"(?<!\{)(\{\{)*\{(?!\{)", token.string)


def docstrings(path: str):
    """(line, docstring as written) of a file."""
    for node in nodes_of(SRC / path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node, clean=False)
            if found:
                yield node.body[0].lineno, found


def test_strings_fill_their_lines():
    """A reflow by machine left words on lines of their own; where a string is cut, lines are full."""
    found = [
        f"{path}:{token.start[0]} {token.string}"
        for path, text in TEXTS.items()
        for run in joined_strings(text)
        for token in run
        if is_idle(token) or (token is not run[-1] and is_crumb(token))
    ]
    assert not found, "\n".join(found)


def test_docstrings_have_one_form():
    """A summary does not spill a word or two; examples stand without a heading; sections without gaps."""
    found = []
    for path in TEXTS:
        for line, doc in docstrings(path):
            summary = doc.split("\n\n")[0].rstrip().split("\n")
            if len(summary) == 2 and len(summary[1].split()) <= 3:
                found.append(f"{path}:{line} the summary spills: {summary[1].strip()!r}")
            if re.search(r"^ *Examples?:\s*$", doc, re.MULTILINE):
                found.append(f"{path}:{line} has a heading over its example")
            if re.search(r"^( *)(Arguments|Returns):.*\n(\1 .+\n)*\n+\1(Returns|Raises):", doc, re.MULTILINE):
                found.append(f"{path}:{line} has a gap between its sections")
    assert not found, "\n".join(found)


DOTTED = re.compile(r"`+([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)`+")
ELSEWHERE = {"ast", "catena", "ctypes", "jax", "jnp", "lax", "math", "mp", "nn", "np", "numpy", "os", "scipy", "sys"}
MODULES = defaultdict(set)  # by their names, and by those of their folders
for _path in TEXTS:
    MODULES[Path(_path).stem].add(_path)
    MODULES[Path(_path).parent.name].add(_path)


@cache
def names_in(path: str) -> set[str]:
    """What a file defines, imports and assigns, arguments and attributes among it."""
    nodes = by_kind(SRC / path)
    found = {n.name for kind in (ast.FunctionDef, ast.ClassDef) for n in nodes[kind]} | {n.id for n in nodes[ast.Name]}
    found |= {(n.asname or n.name).rpartition(".")[2] for n in nodes[ast.alias]}
    return found | {n.arg for n in nodes[ast.arg]} | {n.attr for n in nodes[ast.Attribute] if type(n.ctx) is ast.Store}


def is_there(path: str, named: str) -> bool:
    """Whether `module.name`, as `path` writes it, is a name in a module of ours; true of what names no module."""
    *before, module, name = named.split(".")
    if (
        module not in MODULES
        or module in names_in(path)
        or {*before, module} & ELSEWHERE
        or name.startswith("jax_")
        or name == "py"
    ):
        return True
    others = MODULES[module]
    if path.startswith("compiler/"):  # which speaks of its own modules, some of whose names others have too
        others = {other for other in others if other.startswith("compiler/")} or others
    return name in MODULES or any(name in names_in(other) for other in others)


def test_what_comments_name_is_there():
    """Renamed and moved, it would be looked for in vain."""
    named = (
        (path, text[: m.start()].count("\n") + 1, m[1]) for path, text in TEXTS.items() for m in DOTTED.finditer(text)
    )
    gone = [f"{path}:{line} {name}" for path, line, name in named if not is_there(path, name)]
    assert not gone, "\n".join(gone)
