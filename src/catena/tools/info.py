"""What catena finds on this machine, for people who ask for help: ``python -m catena info``."""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from catena.compiler.native import cache
from catena.core import config, lazy
from catena.core.device import devices
from catena.core.flags import FLAGS
from catena.core.job import launched
from catena.runtime import threads
from catena.transform.profile import rate

measured = lazy.LazyModule("catena.compiler.native.profile")

# Bits of a vector by the feature of a processor that stands for it, widest first.
VECTORS = {"AVX512F": 512, "AVX2": 256, "SVE": 128, "NEON": 128, "ASIMD": 128, "VSX": 128, "SSE2": 128}


def info() -> str:
    """A line for each thing that decides how programs run here.

    >>> from catena.tools.info import info
    >>> "executor: " in info()
    True
    """
    width = max(map(len, LINES))
    return "\n".join(f"{name + ':':{width + 1}} {text()}" for name, text in LINES.items())


def version(package: str) -> str:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"


def compiler() -> str:
    reason = lazy.why_no_compiler()
    if reason is not None:
        return f"none ({reason})"
    return f"LLVM {'.'.join(map(str, lazy.llvm().llvm_version_info))}, by llvmlite {version('llvmlite')}"


def executor() -> str:
    """What runs programs, and why."""
    if devices()[0].client.executor == "llvm":
        return "llvm: programs are compiled to native code, since llvmlite is installed"
    return f"numpy: programs are evaluated step by step, since {lazy.why_no_compiler()}"


def processor() -> str:
    return f"{processor_name()}, vectors of {vector_bits()} bits"


def processor_name() -> str:
    """As the system calls it."""
    try:
        with open("/proc/cpuinfo") as file:
            named = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()


def vector_bits() -> int:
    """The width of vectors, by the features that NumPy finds."""
    features = np.show_config(mode="dicts")["SIMD Extensions"]
    known = {*features.get("baseline", ()), *features.get("found", ())}  # some may be switched off
    return next((bits for feature, bits in VECTORS.items() if known & {feature, *LEVELS.get(feature, ())}), 64)


# What newer releases of NumPy call groups of features.
LEVELS = {"AVX512F": ("X86_V4", "AVX512_SKX"), "AVX2": ("X86_V3",), "SSE2": ("X86_V2", "SSE42")}


def number_of_threads() -> str:
    chosen = os.environ.get("CATENA_NUM_THREADS")
    return f"{threads.count()} of {os.cpu_count()} processors{' (CATENA_NUM_THREADS)' if chosen else ''}"


def number_of_processes() -> str:
    """How many a launcher has started, and whether there is an MPI by which they would work together."""
    found, mpi = launched(), version("mpi4py")
    started = f"{found[1]} ({found[0]})" if found is not None else "1"
    return f"{started}, {f'mpi4py {mpi}' if mpi != 'not installed' else 'mpi4py is not installed'}"


def ceilings() -> str:
    """What the machine does at most in a second, measured now."""
    if not lazy.has_compiler():
        return "not measured: there is no compiler"
    most = measured.ceilings()
    near = f"{rate(most.cached_bytes_per_second)}B/s in a cache"
    return f"{rate(most.flops_per_second)}flop/s in products, copies {rate(most.bytes_per_second)}B/s, {near}"


def cache_folder() -> str:
    """Where compiled programs are kept, and how many."""
    folder = cache.directory()
    if folder is None:
        return "off"
    sizes = [size_of(path) for path in Path(folder).iterdir()]
    used, bound = sum(sizes), cache.bytes_bound()
    return f"{folder}: {len(sizes):,} files, {used / 1e6:,.1f} of at most {bound / 1e6:,.0f} MB"


def size_of(path: Path) -> int:
    """The bytes of a file; none where another process removed it meanwhile."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def changed_flags() -> str:
    """The flags of the configuration whose values are not their defaults."""
    values = config.config.values
    changed = [f"{name}={values[name]!r}" for name, flag in FLAGS.items() if values[name] != flag.default]
    return ", ".join(changed) or "all flags at their defaults"


LINES: dict[str, Callable[[], str]] = {
    "catena": lambda: version("catena"),
    "Python": python,
    "NumPy": lambda: np.__version__,
    "SciPy": lambda: version("scipy"),
    "compiler": compiler,
    "executor": executor,
    "processor": processor,
    "threads": number_of_threads,
    "processes": number_of_processes,
    "devices": lambda: ", ".join(map(repr, devices())),
    "ceilings": ceilings,
    "cache": cache_folder,
    "configuration": changed_flags,
}
