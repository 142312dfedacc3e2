"""Compiles one function of the library over arrays: what the tests, the accuracy report and the timings run."""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from catena.core.lazy import llvm

from . import library
from .text import FORMATS, Type


def loop(name: str, elem: str, width: int) -> str:
    """void @run(inputs..., output, n): the function over n elements, n a multiple of width."""
    type_, symbol = Type(elem, width), library.symbol(name, elem, width)
    inputs = ["%x", "%y", "%z", "%w"][: library.arity(name)]
    loads = []
    for p in inputs:
        loads.append(f"  {p}.at = getelementptr {elem}, ptr {p}, i64 %i")
        loads.append(f"  {p}.v = load {type_}, ptr {p}.at, align 4")
    arguments = ", ".join(f"{type_} {p}.v" for p in inputs)
    body = "\n".join(loads)
    return f"""
define void @run({", ".join(f"ptr {p}" for p in inputs)}, ptr noalias %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %r = call {type_} {symbol}({arguments})
  %out.at = getelementptr {elem}, ptr %out, i64 %i
  store {type_} %r, ptr %out.at, align 4
  %next = add i64 %i, {width}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def module_text(name: str, elem: str, width: int) -> str:
    members = [(name, elem, width), *library.dependencies(name, elem, width)]
    declares = sorted(set().union(*(library.declarations(*m) for m in members)))
    return "\n".join([*declares, *(library.define(*m) for m in members), loop(name, elem, width)])


def optimised(text: str) -> tuple[Any, Any]:
    """The machine here and the module of a text, optimised for it."""
    binding = llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=2)
    module = binding.parse_assembly(text)
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine, module


def assembly(name: str, elem: str, width: int) -> str:
    """The assembly of one function for this machine."""
    machine, module = optimised(module_text(name, elem, width))
    return machine.emit_assembly(module)


@lru_cache(maxsize=128)  # several tests call each function
def engine_of(text: str) -> Any:
    """The code of a text, which stays as long as its engine."""
    machine, module = optimised(text)
    engine = llvm().create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


class Compiled:
    """One function compiled for this machine, as a callable on arrays whose length is a multiple of the width."""

    def __init__(self, name: str, elem: str, width: int) -> None:
        self.engine = engine_of(module_text(name, elem, width))
        self.arity, self.scalar = library.arity(name), FORMATS[elem].scalar
        types = [ctypes.c_void_p] * (self.arity + 1) + [ctypes.c_int64]
        self.function = ctypes.CFUNCTYPE(None, *types)(self.engine.get_function_address("run"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        given: list[np.ndarray] = [np.ascontiguousarray(a, self.scalar) for a in arrays]
        out = np.empty_like(given[0])
        self.function(*(a.ctypes.data for a in given), out.ctypes.data, out.size)
        return out
