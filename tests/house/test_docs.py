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
from sources import nodes_of

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "catena"
FILES = sorted(p.relative_to(SOURCES).as_posix() for p in SOURCES.rglob("*.py") if p.read_text().strip())


@pytest.mark.parametrize(
    "page",
    [
        "architecture.md",
        "tour.md",
        "differences.md",
        "compiler.md",
        "debugging.md",
        "random.md",
        "configuration.md",
        "image.md",
        "ops.md",
        "references.md",
        "scipy.md",
        "shard_map.md",
        "scipy_matrices.md",
        "sparse.md",
        "checkify.md",
        "checks.md",
        "experimental.md",
        "extending.md",
        "export.md",
        "nn.md",
        "profiling.md",
        "sharding.md",
    ],  # one a line
)
def test_examples(page):
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert tried and not failed


def test_every_file_says_what_it_is():
    docstrings = {path: ast.get_docstring(nodes_of(SOURCES / path)[0]) or " " for path in FILES}
    assert not [path for path, text in docstrings.items() if not text[0].isalnum() and text[0] not in "`*"]


def script(name: str):
    spec = importlib.util.spec_from_file_location("script", ROOT / "docs" / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_configuration_is_current():
    text = (ROOT / "docs" / "configuration.md").read_text()
    assert text == script("configuration.py").updated(text), "run `python docs/configuration.py`"


def test_the_gallery_of_errors_is_current():
    errors = script("errors.py")
    text = (ROOT / "docs" / "errors.md").read_text()
    assert sum(map(len, errors.read_mistakes().values())) >= 60
    assert text == errors.updated(text), "run `python docs/errors.py`"


def test_the_page_of_libraries_is_current(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    ecosystem = importlib.import_module("ecosystem")
    assert ecosystem.PAGE.read_text() == ecosystem.document(), "run `make clients ONLY=none WRITE=1`"


def test_lists_of_files_are_current(tmp_path, monkeypatch, capsys):
    files = script("files.py")
    monkeypatch.setattr("sys.argv", ["files.py", "--check"])
    assert files.main() == 0, capsys.readouterr().out
    page = tmp_path / "decisions" / "README.md"
    (page.parent / "0001-x.md").parent.mkdir()
    (page.parent / "0001-x.md").write_text("# 1. Why x\n")
    page.write_text("before\n<!-- decisions -->\nold\n<!-- end of decisions -->\nafter\n")
    monkeypatch.setattr(files, "HERE", tmp_path)
    monkeypatch.setattr(files, "LISTS", {"decisions/README.md": ("decisions", files.decisions)})
    assert files.main() == 1 and "old" in page.read_text()
    monkeypatch.setattr("sys.argv", ["files.py"])
    assert files.main() == 0 and "1. [Why x](0001-x.md)" in page.read_text() and "old" not in page.read_text()


def test_decisions_are_short_and_say_what_was_refused():
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(p.name[:4]) for p in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        assert len(text.splitlines()) <= 40 and "efused" in text, page.name
        for target in re.findall(r"`([a-z]+/[a-z_]+(?:\.py|/))`", text):
            assert (SOURCES / target).exists() or (ROOT / target).exists(), f"{page.name} names {target}"


def test_links_of_pages_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"


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
