"""What is measured in processes of their own: the second run of a script, and the peak of memory.

`python fresh.py run LIBRARY WORKLOAD` is the script: it imports the library, makes the arguments, compiles, calls
once and ends. `python fresh.py memory LIBRARY WORKLOAD` prints the bytes by which the process grew, at most, over
five calls of a compiled program; the arguments do not count, results and all temporaries do.
"""

import ctypes
import gc
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = (
    "MLP training step, batch 32",
    "LSTM gradient, batch 16, size 128",
    "small GPT training step",
    "12-layer transformer training step",
)
MEMORY = (
    "x * 2 + 1, 1e7",
    "softmax, 1e7",
    "layer norm gradient, 1e7",
    "cross entropy and gradient, 1e7",
    "attention gradient",
    "attention gradient, 4,096 positions",
    "attention gradient, 16,384 positions",
    "convolution gradients",
    "argsort, 1e6",
    "embedding gradient",
    "LSTM gradient, batch 16, size 128",
    "MLP training step, batch 256",
    "small GPT training step",
    "small ResNet training step",
)
CALLS = 5


def caches(folder: str) -> dict[str, str]:
    """The environment in which both libraries keep compiled programs in `folder`."""
    return {
        "CATENA_CACHE": "1",
        "CATENA_CACHE_DIR": f"{folder}/catena",
        "JAX_ENABLE_COMPILATION_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def script_seconds(pythons: dict, name: str, cached: dict, rounds: int) -> dict[str, float]:
    """Seconds of a run of the script when it ran before, by library; JAX keeps programs only if `cached` says."""
    with tempfile.TemporaryDirectory() as folder:
        times = {library: [] for library in pythons}
        for _ in range(rounds + 1):
            for library, python in pythons.items():
                env = os.environ | (caches(folder) if cached[library] else {})
                start = time.perf_counter()
                _run(python, "run", library, name, env)
                times[library].append(time.perf_counter() - start)
    return {library: min(seconds[1:]) for library, seconds in times.items()}


def peak_bytes(python: str, library: str, name: str) -> int:
    """The most of two processes: in one, what was free before may have hidden a part."""
    return max(int(_run(python, "memory", library, name, dict(os.environ))) for _ in range(2))


def _run(python: str, what: str, library: str, name: str, env: dict) -> str:
    env = {k: v for k, v in env.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as users have it
    done = subprocess.run([python, __file__, what, library, name], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


# ------------------------------------------------------------------------------ in the process


def program(library: str, name: str):
    """The library, the function, its arguments."""
    jax, make = importlib.import_module(library), importlib.import_module("workloads.inputs")
    for file in sorted((Path(__file__).parent / "workloads").glob("*.py")):
        module = importlib.import_module(f"workloads.{file.stem}")
        if module is not make and name in (found := module.workloads(jax, make.Inputs(jax))):
            return jax, *found[name]()
    raise SystemExit(f"no workload is called {name!r}")


def run(library: str, name: str) -> None:
    jax, function, arguments = program(library, name)
    jax.block_until_ready(jax.jit(function)(*arguments))


def memory(library: str, name: str) -> None:
    jax, function, arguments = program(library, name)
    compiled = jax.jit(function).lower(*arguments).compile()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free already would be used again, and not be seen
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    for _ in range(CALLS):
        jax.block_until_ready(compiled(*arguments))
    print(max(_status("VmHWM") - before, 1 << 16))


def _status(key: str) -> int:
    """Bytes, from what Linux knows of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"this system does not tell {key}")


if __name__ == "__main__":
    {"run": run, "memory": memory}[sys.argv[1]](*sys.argv[2:])
