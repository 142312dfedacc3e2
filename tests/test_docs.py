"""The pages in `docs` are true: their examples run, and the list of files is complete."""

import ast
import doctest
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "catena"
FILES = sorted(p.relative_to(SOURCES).as_posix() for p in SOURCES.rglob("*.py") if p.read_text().strip())


@pytest.mark.parametrize(
    "page", ["architecture.md", "tour.md", "differences.md", "compiler.md", "random.md", "configuration.md"]
)
def test_examples(page):
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert tried and not failed


@pytest.mark.parametrize("path", FILES)
def test_every_file_says_what_it_is(path):
    docstring = ast.get_docstring(ast.parse((SOURCES / path).read_text()))
    assert docstring and docstring[0].isalnum() or docstring and docstring[0] in "`*", f"{path} has no docstring"


@pytest.mark.parametrize("script, page", [("files.py", "architecture.md"), ("configuration.py", "configuration.md")])
def test_what_scripts_write(script, page):
    spec = importlib.util.spec_from_file_location("script", ROOT / "docs" / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "docs" / page).read_text()
    assert text == module.updated(text), f"docs/{page} is out of date: run `python docs/{script}`"
