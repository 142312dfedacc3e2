"""One jitted function at many lengths: each result has the bits of a program that was compiled alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import catena as jax
from catena.compiler.emit import launches
from catena.compiler.kernels import schedules
from catena.runtime import native
from length_programs import ELSEWHERE, PROGRAMS, results, told
from shares import alternate

LENGTHS = [5, 8, 17, 31, 33, 48, 64, 65, 100, 127, 130, 200, 255, 257, 301, 411]


@pytest.fixture
def alone(monkeypatch):
    """A function that compiles from now on as if nothing had been compiled before."""
    monkeypatch.setenv("CATENA_CACHE", "0")

    def forget():
        for registry in ("_codes", "_by_name"):
            monkeypatch.setattr(native, registry, type(native._codes)())
        monkeypatch.setattr(launches, "_texts", {})
        monkeypatch.setattr(schedules, "_known", {})

    return forget


@pytest.mark.share(5)
@pytest.mark.parametrize("case", PROGRAMS)
def test_a_fresh_length_has_the_bits_of_a_program_alone(case, alone):
    f, shapes = PROGRAMS[case]
    alone()
    together = jax.jit(f)
    kept = {n: results(together, shapes(n)) for n in LENGTHS}
    for n in alternate(4, LENGTHS, 0):
        alone()
        assert results(jax.jit(lambda *x: f(*x)), shapes(n)) == kept[n], n  # noqa: B023


def test_another_process_finds_the_same_bits(alone):
    """Both directions of the lengths in it: what was compiled before is other code each time."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), *sys.path])}
    lengths = [48, 65]
    run = subprocess.run(
        [sys.executable, "-m", "length_programs", *map(str, lengths)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    there = {name: found for name, *found in map(json.loads, run.stdout.splitlines())}
    assert there.keys() == ELSEWHERE.keys()
    for name, (f, shapes) in ELSEWHERE.items():
        step = jax.jit(f)
        here = {n: told(results(step, shapes(n))) for n in reversed(lengths)}
        assert [here[n] for n in lengths] == there[name], name
