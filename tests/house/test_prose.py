"""How the source is written where a linter does not look: strings fill their lines, docstrings have one form."""

import ast
import io
import re
import tokenize
from pathlib import Path

from sources import nodes_of

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
