"""``python -m catena info``."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import catena
from catena import __main__ as command
from catena.core import lazy
from catena.tools import info


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if not k.startswith("CATENA_")} | env
    return subprocess.run([sys.executable, "-m", "catena", *arguments], env=env, capture_output=True, text=True)


def lines(text: str) -> dict:
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines())}


def test_every_line_of_a_process(tmp_path):
    (tmp_path / "program").write_bytes(bytes(2_500_000))
    done = run("info", CATENA_COMPILER="none", CATENA_CACHE_DIR=str(tmp_path), CATENA_NUM_THREADS="3",
               CATENA_NUM_CPU_DEVICES="2", CATENA_ENABLE_X64="1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = lines(done.stdout)
    assert list(found) == list(info.LINES)
    assert found["NumPy"] == np.__version__ and sys.executable in found["Python"]
    assert found["compiler"] == "none (CATENA_COMPILER=none)"
    assert found["executor"] == "numpy: programs are evaluated step by step, since CATENA_COMPILER=none"
    assert found["threads"] == f"3 of {os.cpu_count()} processors (CATENA_NUM_THREADS)"
    assert found["devices"] == "CpuDevice(id=0), CpuDevice(id=1)"
    assert found["cache"].startswith(f"{tmp_path}: 1 files, 2.5 of at most")
    assert found["configuration"] == "jax_enable_x64=True, jax_num_cpu_devices=2"


def test_a_variable_set_to_nothing_is_not_set():
    empty = dict.fromkeys(("COMPILER", "TARGET", "NUM_THREADS", "POOL_BYTES", "CACHE", "CACHE_DIR", "CACHE_BYTES"), "")
    program = "import catena; assert catena.jit(lambda x: x + 1)(41.0) == 42.0"
    env = os.environ | {f"CATENA_{name}": value for name, value in empty.items()}
    assert subprocess.run([sys.executable, "-c", program], env=env).returncode == 0


def test_the_compiler_and_the_client_of_the_devices(capsys):
    command.main(["info"])
    found = lines(capsys.readouterr().out)
    executor = "llvm" if lazy.has_compiler() else "numpy"
    assert catena.devices()[0].client.executor == executor and found["executor"].startswith(executor)
    assert ("by llvmlite" in found["compiler"]) == lazy.has_compiler()


def test_a_cache_that_is_off(monkeypatch):
    monkeypatch.setenv("CATENA_CACHE", "0")
    assert info.cache_folder() == "off"


def test_help_and_errors(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0 and "info" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        command.main(["nothing"])
    assert ended.value.code == 2 and "'nothing'" in capsys.readouterr().err


def test_the_width_of_vectors(monkeypatch):
    for found, bits in ((["X86_V3", "X86_V4"], 512), (["SSE42", "AVX2"], 256), (["ASIMD"], 128), ([], 64)):
        shown = {"SIMD Extensions": {"baseline": [], "found": found}}
        monkeypatch.setattr(np, "show_config", lambda mode: shown)
        assert info.vector_bits() == bits


def test_a_package_that_is_not_installed():
    assert info.version("catena-of-nobody") == "not installed"
    assert Path(info.python().split(", ")[-1].rstrip(")")) == Path(sys.executable)
