"""From a module's text to object code: helper functions, optimisation passes, code generation.

The text is already vectorised, so the passes only clean up: stack slots into registers, redundant
instructions, dead code. Everything that LLVM needs once is made once per process.
"""

from __future__ import annotations

import functools
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from catena.compiler import vector_math
from catena.compiler.emit import halves, quicksort, selection, small_floats, sorting, stack_steps
from catena.compiler.emit.module import MATH_CALL
from catena.compiler.native import cache
from catena.compiler.native.host import generator, identity, image_generator, this_machine
from catena.compiler.native.instructions import with_instructions
from catena.core.errors import CompileError
from catena.core.lazy import llvm
from catena.core.locks import Shared
from catena.runtime import native
from catena.runtime.buffers import check_room

ROOM, ROOM_PER_BYTE = 16 << 20, 20  # bytes of memory that LLVM may need, and for each byte of the text


@dataclass
class Times:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def mark(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def with_helpers(text: str, helpers: dict, often: frozenset[str] | None = None) -> str:
    """The module with the definitions and declarations that it calls, those `often` used not written in place."""
    often = too_many(Counter(MATH_CALL.findall(text)), helpers) if often is None else often
    lines = [line for symbol, need in helpers.items() for line in _definitions(symbol, need, often)]
    return "\n".join([*dict.fromkeys(lines), text])


def used_helpers(text: str, helpers: dict) -> dict:
    """Those helpers that the text calls, directly or not."""
    names = {symbol: _names(symbol, need) for symbol, need in helpers.items()}
    used: set[str] = set()
    pending = [text]
    while pending:
        source = pending.pop()
        for symbol, need in helpers.items():
            if symbol not in used and any(name in source for name in names[symbol]):
                used.add(symbol)
                pending += _definitions(symbol, need, frozenset())
    return {symbol: need for symbol, need in helpers.items() if symbol in used}


def _names(symbol: str, need) -> list[str]:
    """By what a text names a helper: texts define several functions, whose addresses are handed on too."""
    if isinstance(need, tuple) and need[0] in ("text", "stacks"):
        return defined("\n".join(_definitions(symbol, need, frozenset())))
    return [f"@{symbol.removeprefix('@')}("]


def _definitions(symbol: str, need, often: frozenset[str]) -> list[str]:
    """The definition of a helper, and what that needs."""
    if not isinstance(need, tuple):
        return [need if need.startswith("declare") else small_floats.define(symbol)]
    family, *key = need
    if family == "text":
        return [key[0]]
    if family == "stacks":
        return [*stack_steps.runtime_lines()]
    if family == "sorting":
        return [sorting.define(*key)]
    if family == "quicksort":
        return [quicksort.define(*key)]
    if family == "selection":
        return [selection.define(*key)]
    lines = []
    for each in (tuple(key), *vector_math.dependencies(*key)):
        lines.append(_shared_if(vector_math.symbol(*each) in often, vector_math.define(*each)))
        lines += sorted(vector_math.declarations(*each))  # a set: the text, which names code on disk, is in one order
    return lines


FREQUENT, LINES = 16, 2500  # calls of one function from which they are calls, if their bodies have so many lines, which
# LLVM compiles in a tenth of a second: in place, functions take two thirds of the time
SEVERAL, LONG = 2, 200  # likewise, of a function of floats of so many lines, which is as fast; doubles, of which a
# vector has half as many, take up to 1.4 times as long where they are called
# Functions that are shorter than calls of them, with what these keep on the stack.
SHORT = ("@catena.one_of_quotients.", "@catena.found_small_product")
_DEFINED = re.compile(r"\ndefine [^@\n]*(@[\w.]+)\(")  # found a tenth as fast where lines begin, by "^"


def defined(text: str) -> list[str]:
    """The functions that a text defines."""
    return _DEFINED.findall("\n" + text)


def too_many(calls: Mapping[str, int], helpers: dict) -> frozenset[str]:
    """The helpers that are called too often to be written in place."""
    several = ((symbol, n) for symbol, n in calls.items() if n > SEVERAL and not symbol.startswith(SHORT))
    return frozenset(symbol for symbol, n in several if _is_shared(n, helpers.get(symbol)))


def _is_shared(calls: int, need) -> bool:
    """Whether a helper that is called so often is one function."""
    if not isinstance(need, tuple) or need[0] != "vector_math":
        return calls > FREQUENT
    lines, is_of_floats = vector_math.define(*need[1:]).count("\n"), need[2] == "float"
    return calls > FREQUENT and calls * lines > LINES or is_of_floats and lines > LONG


def _shared_if(shared: bool, definition: str) -> str:
    return definition.replace(" alwaysinline ", " noinline ", 1) if shared else definition


def object_name(text: str, opt: int) -> str:
    """What the disk cache calls the object code of a module."""
    return cache.key(_own(text), *identity(), str(opt), str(PASSES))


@functools.lru_cache(maxsize=2)  # a text is named, and then compiled
def _own(text: str) -> str:
    return with_instructions(text, this_machine().features)


def object_code(name: str, text: str, times: Times, opt: int) -> bytes:
    """Object code of a module, from another program or the disk cache if it is there under its `object_name`.

    Threads that need it at the same time get it from the one that came first: this is LLVM's work alone.
    """
    code = native.object_code(name) or cache.load(name)
    times.mark("cache")
    if code is None:
        code = _compiling(name, lambda: compile_text(text, times, opt)[0])
        cache.save(name, code)
        times.mark("cache")
    return code


_compiling = Shared()


def compile_text(text: str, times: Times, opt: int) -> tuple[bytes, object]:
    """Object code of a module, and the module after the passes."""
    return _compile(text, times, generator(opt))


def relocatable_code(text: str) -> bytes:
    """Object code of a module that `image.image` can make an image of."""
    return _compile(text, Times(), image_generator())[0]


def _compile(text: str, times: Times, tm) -> tuple[bytes, object]:
    module = _optimised(text, times, tm)
    code = tm.emit_object(module)
    times.mark("generate")
    return code, module


def _optimised(text: str, times: Times, tm):
    """A module after the passes."""
    text = _own(text + _missing(text))
    check_room(ROOM + ROOM_PER_BYTE * len(text), "compiling a program")
    module = parsed(text)
    times.mark("parse")
    run_passes(module, tm, PASSES)
    if not is_valid(module):
        module = parsed(text)
        run_passes(module, tm, [name for name in PASSES if name != "sroa"])
    times.mark("optimise")
    return module


def _missing(text: str) -> str:
    """Definitions of what LLVM calls where the processor has no instruction for it."""
    return halves.TEXT if " half" in text and not this_machine().converts_halves else ""


def assembly(text: str, opt: int) -> str:
    """The machine code of a module, as text."""
    tm = generator(opt)
    return tm.emit_assembly(_optimised(text, Times(), tm))


def parsed(text: str):
    try:
        return llvm().parse_assembly(text)
    except RuntimeError as error:
        raise CompileError(f"LLVM rejects the program: {error}") from None


def is_valid(module) -> bool:
    """Whether the passes kept the module's form. SROA of LLVM 22 puts the parts of a vector together before they are
    computed where they are stored from the last to the first; code generation then aborts the process.
    """
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


PASSES = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "dead_code_elimination")


def run_passes(module, tm, passes) -> None:
    binding = llvm()
    builder = binding.create_pass_builder(tm, binding.create_pipeline_tuning_options(speed_level=1))
    program = binding.create_new_module_pass_manager()
    for name in passes:
        getattr(program, f"add_{name}_pass")()
    program.run(module, builder)


def code_level(size: int) -> int:
    """LLVM's effort: less for programs of very long texts."""
    return 2 if size < 2_000_000 else 1


# What an entry's module defines where it does nothing but find memory and call.
CALLING = frozenset(
    [
        *("@entry", "@free_arena", "@free_idle_arena", "@blas_enter", "@blas_leave"),
        *("@keep_control", "@set_control", "@flush_subnormals"),
    ]
)


def entry_level(text: str, level: int) -> int:
    """LLVM's effort for an entry: none for one that is not optimised anyway, which takes a ninth of the time. Where its
    module defines more, that runs often, and its products and sums are rounded together where LLVM is at its effort.
    """
    return 0 if " optnone " in text and CALLING.issuperset(defined(text)) else level
