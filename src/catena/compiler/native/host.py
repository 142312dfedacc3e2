"""The machine that programs run on: which processor it is, and LLVM's code generators for it.

What LLVM says of the processor is kept on disk, under what the system says of it: LLVM takes longer to load than all
else that a process does that finds its programs there.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import platform

import numpy as np

from catena.compiler.machine import LEVELS, Machine, Memory
from catena.compiler.native import cache
from catena.core.errors import CompileError
from catena.core.lazy import llvm, load
from catena.core.locks import made_once
from catena.core.named import NamedTuple
from catena.runtime import layout, library, permission, threads

# Passes of the code generator that find nothing to do in our loops: a third to a half of its time. Loops have one
# counter and x86 addresses are sums already; bodies are written in an order that suits the processor's own scheduler.
UNUSED_PASSES = ("-disable-lsr", "-disable-post-ra", "-enable-misched=false")

TELLING = ("vendor_id", "cpu family", "model", "stepping", "flags")  # lines of the system's list of processors


def this_machine() -> Machine:
    """The machine that this process runs on, with as many threads as the environment says."""
    return _with_threads(threads.available() and threads.count() > 1)


@functools.cache
def _with_threads(shared: bool) -> Machine:
    return _processor()._replace(threads=shared)


@made_once
def _processor() -> Machine:
    """What this process runs on."""
    chosen = chosen_machine(os.environ.get("CATENA_TARGET") or "native", _native())
    return chosen if "amx-tile" not in chosen.features or permission.to_use_tiles() else without_tiles(chosen)


def without_tiles(machine: Machine) -> Machine:
    """The machine, of a process that may not use the processor's registers for tiles."""
    tiles = frozenset(name for name in machine.features if name.startswith("amx-"))
    return machine._replace(features=machine.features - tiles, absent=machine.absent | tiles)


def _native() -> Machine:
    """The processor as LLVM sees it."""
    found = _seen()
    has = frozenset(found.features)
    wide = 64 if "avx512f" in has else 32 if "avx2" in has else 16
    return Machine(
        triple=found.triple,
        cpu=found.cpu,
        features=has,
        absent=frozenset(found.absent),
        vector_bytes=wide,
        vector_registers=32 if wide == 64 or "neon" in has else 16,
        memory=Memory(huge_pages=hasattr(mmap, "MADV_HUGEPAGE")),
    )


class Seen(NamedTuple):
    """What LLVM says of itself and of the processor."""

    version: list[int]
    triple: str
    cpu: str
    features: list[str]
    absent: list[str]


@made_once
def _seen() -> Seen:
    """What LLVM said in this process, or in one before where the system tells which processor this is."""
    name = cache.key("processor", *Seen._fields, as_told()) if "flags" in as_told() else None
    content = cache.load(name) if name else None
    if content is not None:
        return Seen(*json.loads(content))
    binding = llvm()
    features = binding.get_host_cpu_features()
    found = Seen(
        list(binding.llvm_version_info),
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        sorted(each for each, there in features.items() if there),
        sorted(each for each, there in features.items() if not there),
    )
    if name:
        cache.save(name, json.dumps(found).encode())
    return found


@functools.cache
def as_told() -> str:
    """What machine code depends on, as far as it can be seen without LLVM: its version, and the processor's features
    as NumPy and the system tell them.
    """
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    told = [load("llvmlite").__version__, platform.machine(), sorted(features.items())]
    try:
        with open("/proc/cpuinfo") as lines:
            told += [line for line in (next(lines, "") for _ in range(40)) if line.startswith(TELLING)]
    except OSError:
        pass  # a system without such a list
    return repr(told)


def chosen_machine(name: str, native: Machine) -> Machine:
    """The machine that the environment variable CATENA_TARGET names: all that is here, or a level of x86-64 below.

    Raises: CompileError where no machine is called so, or this one is not as much.
    """
    if name == "native":
        return native
    level = LEVELS.get(name)
    if level is None:
        raise CompileError(f"CATENA_TARGET must be native or one of {', '.join(LEVELS)}, got {name!r}")
    missing = sorted(level.features - native.features)
    if missing:
        raise CompileError(f"CATENA_TARGET={name}: this processor lacks {', '.join(missing)}")
    return level._replace(triple=native.triple, memory=native.memory)


def identity() -> tuple[str, ...]:
    """What object code depends on besides its program: LLVM's version, the processor, where tuples have their items,
    and which BLAS is called, with integers of 32 bits or of 64.
    """
    m = this_machine()
    path = library.path()
    blas = os.path.basename(path) if path is not None and library.bundled() is not None else "SciPy's"
    return str(_seen().version), m.cpu, m.flags, str(layout.TUPLE_ITEMS), blas


@made_once
def _ready():
    """LLVM, ready to generate code.

    Threads compile at the same time, with one code generator in common: llvmlite takes a lock of its own for each call
    of LLVM (and gives the interpreter's free), so calls of several compilations follow one another in any order.
    """
    binding = llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for option in UNUSED_PASSES:
        binding.set_option("", option)
    return binding


@functools.cache
def generator(opt: int):
    """LLVM's code generator, shared by all compilations."""
    return new_generator(opt)


@functools.cache
def image_generator():
    """The code generator for images (`image.py`), which refer to nothing far away."""
    return _new_generator(opt=2, codemodel="small")


def new_generator(opt: int = 1):
    """A code generator of its own: an execution engine takes its one away."""
    return _new_generator(opt=opt, codemodel="jitdefault", jit=True)


def _new_generator(**options):
    m = this_machine()
    target = _ready().Target.from_triple(m.triple)
    return target.create_target_machine(cpu=m.cpu, features=m.flags, reloc="pic", **options)
