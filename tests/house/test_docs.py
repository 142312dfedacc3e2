"""The pages in `docs` are true: their examples run, and the list of files is complete."""

import ast
import doctest
import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import catena as jax
from catena.core import unbuilt
from catena.core.errors import page as page_of

ROOT = Path(__file__).resolve().parents[2]
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


# ---- pages that messages point at


def test_every_page_is_installed_with_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    installed = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert installed == {f"docs/{p.name}": f"catena/docs/{p.name}" for p in (ROOT / "docs").glob("*.md")}


def test_a_message_points_at_a_page_that_can_be_opened(tmp_path, monkeypatch):
    with pytest.raises(jax.errors.TracerBoolConversionError) as info:
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
    path, anchor = re.search(r"See (.*)#(\w+)$", str(info.value)).groups()
    assert f"## {anchor}" in Path(path).read_text().lower()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "errors.md").write_text("installed")
    monkeypatch.setattr("catena.core.errors.PACKAGE", str(tmp_path))
    assert Path(page_of("errors.md")).read_text() == "installed"


# ---- names that are not built yet


def test_a_missing_name_says_that_it_is_not_built():
    missing = 0
    for module, names in unbuilt.NAMES.items():
        module = importlib.import_module(module)
        for name in names.split():
            try:
                getattr(module, name)
            except AttributeError as error:
                missing += 1
                page = re.fullmatch(rf"{module.__name__}\.{name} is not built yet; see (.*)#(.*)", str(error))
                assert f"## {page[2].replace('-', ' ')}" in Path(page[1]).read_text().lower()
    assert missing
    assert not hasattr(jax.nn, "no_such_name")
    with pytest.raises(AttributeError, match="module 'catena.nn' has no attribute 'reluu'"):
        jax.nn.reluu


def test_a_missing_name_says_so_when_it_is_imported():
    for statement in ("from catena.core import no_such_name", "import catena.no_such_module"):
        with pytest.raises(ImportError, match="no_such"):
            exec(statement)
    names = [(module, name) for module, text in unbuilt.NAMES.items() for name in text.split()]
    for module, name in [(m, n) for m, n in names if not hasattr(importlib.import_module(m), n)]:
        with pytest.raises(ImportError, match=f"{module}.{name} is not built yet"):
            exec(f"from {module} import {name}")
    with pytest.raises(ModuleNotFoundError, match="catena.no_such"):
        importlib.import_module("catena.no_such")


@pytest.mark.parametrize("module", sorted(unbuilt.MODULES))
def test_a_missing_module_says_that_it_is_not_built(module):
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        assert f"{module} is not built yet; see " in str(error)


def test_what_is_an_attribute_without_import():
    assert jax.experimental.io_callback and jax.interpreters.ad.primitive_jvps is not None
    assert {"experimental", "interpreters"} <= set(dir(jax))
