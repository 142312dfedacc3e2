"""Types: what a type checker says of users' programs, where pyright is installed (`make types` installs it)."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "house" / "types"


@pytest.fixture(scope="module")
def reported() -> dict[str, list[int]]:
    """The lines on which pyright reports something, by file."""
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(PROGRAMS)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    lines: dict[str, list[int]] = {path.name: [] for path in PROGRAMS.glob("*.py")}
    for message in found["generalDiagnostics"]:
        lines[Path(message["file"]).name].append(message["range"]["start"]["line"] + 1)
    return lines


@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.py")))
def test_a_type_checker_reports_the_mistakes_and_nothing_else(reported, name):
    text = (PROGRAMS / name).read_text().splitlines()
    assert reported[name] == [number for number, line in enumerate(text, 1) if "# mistake" in line]


def test_the_program_runs_but_for_its_mistakes():
    text = (PROGRAMS / "user_program.py").read_text()
    lines = [line for line in text.splitlines() if "# mistake" not in line]
    assert len(text.splitlines()) - len(lines) == 2
    names: dict = {"__name__": "program"}
    exec(compile("\n".join(lines), "user_program.py", "exec"), names)
    assert isinstance(names["main"](2), float)


def test_the_stub_of_array_methods_is_current():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "docs" / "stubs.py")
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    assert stubs.STUB.read_text() == stubs.text(), "run `python docs/stubs.py`"
    assert (ROOT / "src" / "catena" / "py.typed").exists()


def test_mypy_leaves_nothing_out():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["packages"] == ["catena.core", "catena.transform", "catena.compiler"]
    assert "overrides" not in settings and "exclude" not in settings
