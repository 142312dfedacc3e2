"""What the first screen promises runs: the README's lines give what they say, and the demo learns to read."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_readme():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 8
    assert results.failed == 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's folder and what it printed, away from any terminal."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "digits.py")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_demo_reads_at_least_97_percent(demo):
    _, output = demo
    accuracy = float(re.search(r"Held-out accuracy ([\d.]+)%", output).group(1))
    assert accuracy >= 97


def test_the_demo_shows_its_progress_and_its_insides(demo):
    _, output = demo
    assert len(re.findall(r"epoch +\d+/\d+  loss \d+\.\d+  held out \d", output)) == 10
    assert "tanh" in output and "dot_general" in output and "{ lambda ; a:f32[128]" in output
    assert len(re.findall(r"image +\d+  norm +[\d.]+  is a \d, read as \d", output)) == 5


def test_the_demo_draws(demo):
    folder, output = demo
    [picture] = folder.iterdir()
    assert str(picture) in output
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000


def test_one_import_line_separates_the_demo_from_jax():
    source = (ROOT / "examples" / "digits.py").read_text()
    assert [line for line in source.splitlines() if re.search(r"\bcatena\b", line)] == ["import catena as jax"]
