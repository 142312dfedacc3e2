"""The machine that programs run on: which processor it is, and LLVM's code generators for it."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from catena.core.errors import CompileError
from catena.core.lazy import llvm
from catena.core.locks import hold_during_fork, made_once
from catena.runtime import layout, library


@dataclass(frozen=True)
class Target:
    cpu: str
    features: str
    vector_bytes: int


# Passes of the code generator that find nothing to do in our loops: a third to a half of its time. Loops have one
# counter and x86 addresses are sums already; bodies are written in an order that suits the processor's own scheduler.
UNUSED_PASSES = ("-disable-lsr", "-disable-post-ra", "-enable-misched=false")


@made_once
def target() -> Target:
    """The machine that this process runs on; LLVM is made ready for it.

    Threads compile at the same time, with one code generator in common: llvmlite takes a lock of its own for each call
    of LLVM (and gives the interpreter's free), so calls of several compilations follow one another in any order. A fork
    waits for the call that is running: LLVM stopped in the middle of one would be of no use to the child.
    """
    binding = llvm()
    hold_during_fork(binding.ffi.lib._lock)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for option in UNUSED_PASSES:
        binding.set_option("", option)
    features = binding.get_host_cpu_features()
    check_features(features)
    wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return Target(binding.get_host_cpu_name(), features.flatten(), wide)


def check_features(features) -> None:
    """Raises on x86 processors without fused multiplication and addition, which would be calls that nobody defines."""
    if "sse2" in features and not (features.get("avx2") and features.get("fma")):
        raise CompileError(
            "compiled programs need a processor with AVX2 and FMA (x86 since 2013), and this one has not both; "
            "jax.disable_jit() evaluates without compiling"
        )


def identity() -> tuple[str, ...]:
    """What object code depends on besides its program: LLVM's version, the processor, where tuples have their items,
    and which BLAS is called, with integers of 32 bits or of 64.
    """
    t = target()
    blas = library.path().name if library.bundled() is not None else "SciPy's"
    return str(llvm().llvm_version_info), t.cpu, t.features, str(layout.TUPLE_ITEMS), blas


@functools.cache
def machine(opt: int):
    """The code generator, shared by all compilations."""
    return new_machine(opt)


@functools.cache
def image_machine():
    """The code generator for images (`image.py`), which refer to nothing far away."""
    return _new_machine(opt=2, codemodel="small")


def new_machine(opt: int):
    """A code generator of its own: an execution engine takes its one away."""
    return _new_machine(opt=opt, codemodel="jitdefault", jit=True)


def _new_machine(**options):
    t = target()
    first = llvm().Target.from_default_triple()
    return first.create_target_machine(cpu=t.cpu, features=t.features, reloc="pic", **options)
