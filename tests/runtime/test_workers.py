"""The recipes of `docs/workers.md`, each run as a program where its library is installed."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from catena.core import lazy

ROOT = Path(__file__).resolve().parents[2]
RECIPES = dict(re.findall(r"## (\S+)\n\n```python\n(.*?)```", (ROOT / "docs" / "workers.md").read_text(), re.DOTALL))


def installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # a package around it
        return False


@pytest.mark.parametrize("library", ["joblib", "dask.distributed", "ray"])
def test_a_recipe_runs(library, tmp_path):
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    program = tmp_path / "program.py"
    program.write_text(RECIPES[library])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "CATENA_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    if lazy.has_compiler():
        assert list((tmp_path / "cache").iterdir())  # of the workers as well


def test_every_recipe_is_run():
    assert set(RECIPES) == {"joblib", "dask.distributed", "ray"}
