"""A part of the tests in checked mode, another one each day; `make test-checked` runs all of them."""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from catena.core.config import config

TESTS = Path(__file__).parents[1]
FILES = (
    "compiler",
    "transform/test_compositions.py",
    *(f"lax/test_{name}.py" for name in ("indexing", "windows", "sorting")),
)
PARTS = 160  # of these files, one of which is run


@pytest.mark.skipif(config.jax_check_bounds, reason="all tests run in checked mode")
def test_the_part_of_today_passes_with_bounds_checks():
    part = datetime.date.today().toordinal() % PARTS
    options = ["-n", "0", "-p", "no:cacheprovider", "--assert=plain", f"--part={part}/{PARTS}"]
    command = [sys.executable, "-m", "pytest", "-q", *options]
    environment = {**os.environ, "CATENA_CHECK_BOUNDS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    files = [str(TESTS / name) for name in FILES]
    done = subprocess.run([*command, *files], env=environment, capture_output=True, text=True, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
